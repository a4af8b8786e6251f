//! What a role must know again after its process was killed, in a file.

use runtime::draft::Draft;
use runtime::error::StartError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::{fs, io};

/// Reads what was kept; `None` where nothing was yet.
///
/// # Errors
/// When the file cannot be read, or has something else.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StartError> {
    let wrong = |reason: String| StartError::State { path: path.into(), reason };
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(error.to_string())),
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| wrong(error.to_string())),
    }
}

/// Keeps it, whole or not at all.
pub(crate) fn write<T: Serialize>(path: &Path, kept: &T) -> io::Result<()> {
    let text = serde_json::to_string(kept).expect("numbers and names make a text");
    Draft::write(path, &text)?.keep()
}
