//! The journals of a run.

use super::model::Fit;
use super::replay::{look, replay};
use super::requests::Requests;
use crate::configs::{self, name_of};
use crate::journal::{Beginning, JournalError, Reader};
use base::{NodeId, Span, Time};
use plan::rack::Rack;
use runtime::clocks::{Axis, Machines, Messages};
use runtime::error::StartError;
use runtime::journal::{self, Kind};
use runtime::replay::Replayed;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no twin.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A role cannot be made as it was.
    #[error(transparent)]
    Start(StartError),
    /// The folder cannot be read.
    #[error("{}: {reason}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// It has no journals.
    #[error(
        "{}: there are no journals; `journal = \"FOLDER\"` in the rack's file has its roles write some",
        .folder.display()
    )]
    Empty {
        /// The folder.
        folder: PathBuf,
    },
    /// A journal of another rack, or of another version of its file.
    #[error("{}: it is of another rack, or the rack's file has changed since", .path.display())]
    Foreign {
        /// The journal.
        path: PathBuf,
    },
    /// What a simulation needs is not there.
    #[error("{0}")]
    Lacking(String),
}

/// Journals of one machine and run are less apart: 53 days, a quarter of what a [`Time`] can say.
const CLOCKS_NS: u64 = u64::MAX / 4_000;

/// The journals of all roles of a rack, in a folder.
#[derive(Clone, Debug)]
pub struct Journals {
    files: Vec<(PathBuf, Beginning)>,
    machines: Machines,
}

/// What all journals say.
#[derive(Clone, Debug)]
pub struct Told {
    /// Each journal, replayed.
    pub replayed: Vec<Replayed>,
    /// The requests of all doors.
    pub requests: Requests,
    /// What was between the roles.
    pub fit: Fit,
    /// When the last input came at any of them.
    pub end: Time,
}

/// A role from its start to its end, by the clock of the rack.
#[derive(Clone, Debug)]
pub struct Life {
    /// What it was at its start.
    pub beginning: Beginning,
    /// When it started.
    pub start: Time,
    /// When its last input came.
    pub end: Time,
    /// Whether it was killed then, or started again later. One that ended in order for good may end
    /// what it has begun with.
    pub ends: bool,
}

impl Journals {
    /// Finds the journals in `folder`.
    ///
    /// # Errors
    /// When it has none, or one that is not of this rack.
    pub fn open(rack: &Rack, folder: &Path) -> Result<Journals, TwinError> {
        let wrong = |reason| TwinError::Folder { folder: folder.into(), reason };
        let mut files = Vec::new();
        for path in journal::paths(folder, Kind::Volumes).map_err(wrong)? {
            let beginning = Reader::open(&path)?.beginning().clone();
            let is_node = beginning.node <= configs::switch_node(rack).0;
            if beginning.rack != configs::version(rack) || !is_node {
                return Err(TwinError::Foreign { path });
            }
            files.push((path, beginning));
        }
        files.sort_by_key(|(_, beginning)| (beginning.node, beginning.clock_ns));
        if files.is_empty() {
            return Err(TwinError::Empty { folder: folder.into() });
        }
        let mut machines = Machines::of(files.iter().map(|(_, one)| (&*one.boot, one.clock_ns)));
        let is_far = |one: &Beginning| machines.own(&one.boot, one.clock_ns).1 > CLOCKS_NS;
        if let Some((path, _)) = files.iter().find(|(_, one)| is_far(one)) {
            return Err(TwinError::Foreign { path: path.clone() });
        }
        if machines.count() > 1 {
            machines.learn(&messages(rack, &files, &machines)?);
        }
        Ok(Journals { files, machines })
    }

    /// How far off times of one machine may be to those of another: zero where all journals are of
    /// one, and `None` where no packets tell.
    pub fn within(&self) -> Option<Span> {
        self.machines.within()
    }

    /// Replays all of them.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn replay(&self, rack: &Rack) -> Result<Told, TwinError> {
        let (mut requests, mut fit) = (Requests::default(), Fit::new(rack));
        let replay = |(path, _): &(PathBuf, Beginning)| {
            let journal = Reader::open(path)?;
            let axis = self.machines.axis(&journal.beginning().boot, journal.beginning().clock_ns);
            replay(rack, journal, axis, &mut requests, &mut fit)
        };
        let replayed: Vec<Replayed> = self.files.iter().map(replay).collect::<Result<_, _>>()?;
        requests.finish();
        let end = replayed.iter().map(|role| role.end).max().unwrap_or(Time::ZERO);
        Ok(Told { replayed, requests, fit, end })
    }

    /// The lives of all roles, in order of nodes and times. `told` is of these journals.
    ///
    /// # Errors
    /// When a role has none, or their clocks differ.
    pub fn lives(&self, rack: &Rack, told: &Told) -> Result<Vec<Life>, TwinError> {
        if self.within().is_none() {
            let why =
                "the journals are of several machines, and no packets there and back tell how their clocks differ";
            return Err(TwinError::Lacking(why.into()));
        }
        let has_none = |node: &u32| self.files.iter().all(|(_, beginning)| beginning.node != *node);
        if let Some(node) = (0..=configs::switch_node(rack).0).find(has_none) {
            return Err(TwinError::Lacking(format!("`{}` has no journal", name_of(rack, NodeId(node)))));
        }
        let life = |(place, replayed): (usize, &Replayed)| {
            let beginning = self.files[place].1.clone();
            let start = self.machines.axis(&beginning.boot, beginning.clock_ns).zero();
            let next = self.files.get(place + 1);
            let ends = !replayed.is_whole || next.is_some_and(|(_, next)| next.node == beginning.node);
            Life { beginning, start, end: replayed.end, ends }
        };
        Ok(told.replayed.iter().enumerate().map(life).collect())
    }
}

/// The packets between the machines of these journals. A node whose machine was started again has
/// two clocks, and its packets do not tell.
fn messages(rack: &Rack, files: &[(PathBuf, Beginning)], machines: &Machines) -> Result<Messages, TwinError> {
    let mut fit = Fit::new(rack);
    let mut of_node: BTreeMap<NodeId, Option<usize>> = BTreeMap::new();
    for (path, beginning) in files {
        let (machine, own_ns) = machines.own(&beginning.boot, beginning.clock_ns);
        let known = of_node.entry(NodeId(beginning.node)).or_insert(Some(machine));
        *known = known.filter(|known| *known == machine);
        look(Reader::open(path)?, Axis::from(Time::ZERO + Span::ns(own_ns)), &mut fit)?;
    }
    let mut messages = Messages::default();
    for [(from, sent), (to, came)] in fit.packets() {
        if let (Some(Some(from)), Some(Some(to))) = (of_node.get(&from), of_node.get(&to)) {
            messages.saw((*from, sent.as_ps() / 1_000), (*to, came.as_ps() / 1_000));
        }
    }
    Ok(messages)
}
