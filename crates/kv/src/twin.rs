//! The twin of live stores: their programs run again without sockets, files, threads and values.
//!
//! Journals say what came in at each program ([`crate::journal`]). [`Journals::replay`] passes it
//! to the same program again and compares what it decides. [`simulate`] lets the programs of a JBOF
//! and of its doors run together in virtual time, with what the doors were asked. Around them is a
//! [`Model`] of processors, memory and flash, taken from journals. Both give [`Requests`], whose
//! spans have one definition.

mod flash;
mod messages;
mod model;
mod replay;
mod requests;
mod seen;
mod simulate;

pub use model::{Answers, Model};
pub use requests::{Answered, Request, Requests};
pub use runtime::replay::{Difference, Replayed};
pub use runtime::times::Times;
pub use seen::{Seen, Site};
pub use simulate::{Simulated, simulate};

use crate::journal::{Beginning, Part, Reader};
use base::Span;
use runtime::clocks::Machines;
use runtime::journal::{JournalError, Kind, paths};
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no twin.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The folder cannot be read.
    #[error("{}: {reason}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// A journal of a role that the rack does not have.
    #[error("{}: the rack has no store and no JBOF `{role}`", .path.display())]
    Foreign {
        /// The journal.
        path: PathBuf,
        /// The role.
        role: String,
    },
}

/// The journals of all stores and JBOFs of a rack, in a folder.
#[derive(Clone, Debug)]
pub struct Journals {
    files: Vec<(PathBuf, Beginning)>,
}

/// What all journals say.
#[derive(Clone, Debug)]
pub struct Told {
    /// Each journal, replayed, in order of names and starts.
    pub replayed: Vec<Replayed>,
    /// What those of each site say together.
    pub sites: Vec<Seen>,
    /// How far off times of one machine may be to those of another; `None` where it is not known.
    pub within: Option<Span>,
}

impl Journals {
    /// Finds the journals of `roles` in `folder`. There may be none.
    ///
    /// # Errors
    /// When one cannot be read, or is of another role.
    pub fn open(roles: &[&str], folder: &Path) -> Result<Journals, TwinError> {
        let wrong = |reason| TwinError::Folder { folder: folder.into(), reason };
        let mut files = Vec::new();
        for path in paths(folder, Kind::Stores).map_err(wrong)? {
            let beginning = Reader::open(&path)?.beginning().clone();
            if !roles.contains(&&*beginning.role) {
                return Err(TwinError::Foreign { path, role: beginning.role });
            }
            files.push((path, beginning));
        }
        // Loops are seen before the helper that may be in the thread of one.
        let is_helper = |beginning: &Beginning| beginning.part == Part::Helper;
        files.sort_by_key(|(_, one)| (is_helper(one), one.name(), one.clock_ns));
        Ok(Journals { files })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Replays all of them, each alone.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn replay(&self, sites: &[Site]) -> Result<Told, TwinError> {
        let mut machines = Machines::of(self.files.iter().map(|(_, one)| (&*one.boot, one.clock_ns)));
        if machines.count() > 1 {
            machines.learn(&messages::messages(&self.files, sites, &machines)?);
        }
        let mut sites: Vec<Seen> = sites.iter().cloned().map(Seen::new).collect();
        let mut replayed = Vec::new();
        for (path, beginning) in &self.files {
            let mut seen = sites.iter_mut().find(|seen| seen.site.has(beginning));
            let axis = machines.axis(&beginning.boot, beginning.clock_ns);
            seen.iter_mut().for_each(|seen| seen.begin(beginning, axis, machines.within().is_some()));
            replayed.push(replay::replay(Reader::open(path)?, seen)?);
        }
        sites.iter_mut().for_each(Seen::finish);
        replayed.sort_by(|one: &Replayed, other| one.name.cmp(&other.name));
        Ok(Told { replayed, sites, within: machines.within() })
    }
}
