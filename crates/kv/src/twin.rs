//! The twin of live stores: their programs run again without sockets, files, threads and values.
//!
//! Journals say what came in at each program ([`crate::journal`]). [`Journals::replay`] passes it
//! to the same program again and compares what it decides.

mod replay;

pub use runtime::replay::{Difference, Replayed};

use crate::journal::{Beginning, Reader};
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
        files.sort_by_key(|(_, beginning)| (beginning.name(), beginning.clock_ns));
        Ok(Journals { files })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Replays all of them, each alone, in order of their names and starts.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn replay(&self) -> Result<Vec<Replayed>, TwinError> {
        let replay = |(path, _): &(PathBuf, Beginning)| Ok(replay::replay(Reader::open(path)?)?);
        self.files.iter().map(replay).collect()
    }
}
