//! One error for every file that this crate reads: it names the file, the line and the reason.

/// Why a file beside an experiment, or a ledger, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct FileError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from one.
    pub line: usize,
    /// The error, and the allowed values.
    pub reason: String,
}

impl FileError {
    /// An error at the byte `offset` of `text`.
    pub(crate) fn at(file: &str, text: &str, offset: usize, reason: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FileError { file: file.to_owned(), line, reason: reason.into() }
    }

    /// The error of the TOML parser.
    pub(crate) fn toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        FileError::at(file, text, offset, error.message().trim())
    }
}
