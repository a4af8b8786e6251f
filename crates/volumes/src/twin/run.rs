//! The journals of a run.

use super::model::Fit;
use super::replay::replay;
use super::requests::Requests;
use crate::configs::{self, name_of};
use crate::journal::{Beginning, JournalError, Reader};
use base::{NodeId, Span, Time};
use plan::rack::Rack;
use runtime::error::StartError;
use runtime::journal::{self, Kind};
use runtime::replay::Replayed;
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

/// Clocks of one run differ by less: 53 days, a quarter of what a [`Time`] can say.
const CLOCKS_NS: u64 = u64::MAX / 4_000;

/// The journals of all roles of a rack, in a folder.
#[derive(Clone, Debug)]
pub struct Journals {
    files: Vec<(PathBuf, Beginning)>,
    since_ns: u64,
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
        let since_ns = files.iter().map(|(_, beginning)| beginning.clock_ns).min();
        let since_ns = since_ns.ok_or_else(|| TwinError::Empty { folder: folder.into() })?;
        if let Some((path, _)) = files.iter().find(|(_, one)| one.clock_ns - since_ns > CLOCKS_NS) {
            return Err(TwinError::Foreign { path: path.clone() });
        }
        Ok(Journals { files, since_ns })
    }

    /// Whether all were written on one machine without a restart of it: their clocks agree.
    pub fn share_a_clock(&self) -> bool {
        self.files.iter().all(|(_, beginning)| beginning.boot == self.files[0].1.boot)
    }

    /// Replays all of them.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn replay(&self, rack: &Rack) -> Result<Told, TwinError> {
        let (mut requests, mut fit) = (Requests::default(), Fit::new(rack));
        let replay = |(path, _): &(PathBuf, Beginning)| {
            replay(rack, Reader::open(path)?, self.since_ns, &mut requests, &mut fit)
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
        if !self.share_a_clock() {
            return Err(TwinError::Lacking("the journals are of several machines, whose clocks differ".into()));
        }
        let has_none = |node: &u32| self.files.iter().all(|(_, beginning)| beginning.node != *node);
        if let Some(node) = (0..=configs::switch_node(rack).0).find(has_none) {
            return Err(TwinError::Lacking(format!("`{}` has no journal", name_of(rack, NodeId(node)))));
        }
        let life = |(place, replayed): (usize, &Replayed)| {
            let beginning = self.files[place].1.clone();
            let since = Span::ns(1) * (beginning.clock_ns - self.since_ns);
            let next = self.files.get(place + 1);
            let ends = !replayed.is_whole || next.is_some_and(|(_, next)| next.node == beginning.node);
            Life { beginning, start: Time::ZERO + since, end: replayed.end, ends }
        };
        Ok(told.replayed.iter().enumerate().map(life).collect())
    }
}
