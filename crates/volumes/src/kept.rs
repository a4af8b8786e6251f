//! What a role must know again after its process was killed, in a file.

use runtime::draft::Draft;
use runtime::error::StartError;
use runtime::lock::lock_file;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The file, which no other process has meanwhile: a second one would keep something else.
pub(crate) struct Place {
    path: PathBuf,
    _lock: File,
}

impl Place {
    /// Takes the file for this process, by a lock beside it. Makes its folder.
    ///
    /// # Errors
    /// When another process has it, or the folder cannot be written.
    pub fn take(path: PathBuf) -> Result<Place, StartError> {
        let beside = path.with_extension("lock");
        let lock = lock_file(&beside).map_err(|error| StartError::file(&beside, error))?;
        let lock = lock.ok_or_else(|| StartError::file(&beside, "another process has it: the role runs"))?;
        Ok(Place { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what was kept; `None` where nothing was yet.
    ///
    /// # Errors
    /// When the file cannot be read, or has something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, StartError> {
        let wrong = |reason: String| StartError::State { path: self.path.clone(), reason };
        match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(error.to_string())),
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| wrong(error.to_string())),
        }
    }

    /// Keeps it, whole or not at all.
    pub fn write<T: Serialize>(&self, kept: &T) -> io::Result<()> {
        let text = serde_json::to_string(kept).expect("numbers and names make a text");
        Draft::write(&self.path, &text)?.keep()
    }
}
