//! What the file readers share: lines with their numbers, and errors that name them.

use base::UnitError;
use std::io::{self, BufRead};

/// The longest line that is read; a longer one is an error before it is held in memory.
const LINE_BYTES_MAX: u64 = 4096;

/// Reason why a file was refused: which file, which line (from 1), and the reason with the value
/// that was found.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct FileError {
    /// The file's name, as it was given to the reader.
    pub file: String,
    /// The line, counted from 1; of an empty file, 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The file has no line of data.
    #[error("the file holds no data")]
    Empty,
    /// The file could not be read on.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The line's bytes are not text.
    #[error("is not UTF-8 text")]
    NotUtf8,
    /// The line is too long to be one.
    #[error("is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The last line does not end in a newline: the file was cut off.
    #[error("`{got}` does not end in a newline: the file is cut off")]
    Truncated {
        /// The line.
        got: String,
    },
    /// The first line is not the header.
    #[error("the header is `{got}`, it must be `{allowed}`")]
    Header {
        /// The line.
        got: String,
        /// What it must be.
        allowed: &'static str,
    },
    /// There are too many or too few columns, as when a line was cut off.
    #[error("`{line}` has {got} columns, it must have {allowed}")]
    Columns {
        /// The line.
        line: String,
        /// How many it has.
        got: usize,
        /// What it must have.
        allowed: String,
    },
    /// A field is not a number, is NaN or infinite, or is out of its range.
    #[error("{field} `{got}` is not {allowed}")]
    Value {
        /// The column.
        field: &'static str,
        /// The rejected value.
        got: String,
        /// What it may hold.
        allowed: String,
    },
    /// A time or size is not written as one.
    #[error("{field}: {error}")]
    Unit {
        /// The column.
        field: &'static str,
        /// The reason.
        error: UnitError,
    },
    /// A value that must not fall does.
    #[error("{field} {got} comes after {before}, it must not fall")]
    Falls {
        /// The column.
        field: &'static str,
        /// The rejected value.
        got: String,
        /// What the line before holds.
        before: String,
    },
    /// A cumulative distribution stops before 1.
    #[error("the last probability is {got}, it must be 1")]
    LastNotOne {
        /// The last one.
        got: f64,
    },
    /// A trace of messages where one of block storage belongs.
    #[error(
        "this is a trace of messages, not of block storage: workload.arrivals = \"trace\" with workload.file plays it"
    )]
    Messages,
    /// The lines fit none of the formats that were tried, or several.
    #[error("the format cannot be detected from `{got}`, {why}: name one of {allowed}")]
    Format {
        /// The first line.
        got: String,
        /// The error.
        why: String,
        /// What may be named.
        allowed: String,
    },
    /// There is more than may be kept in memory.
    #[error("the trace has more than {limit} requests, the maximum in memory: limit the number of requests")]
    TooMany {
        /// The most.
        limit: u64,
    },
    /// A line of a job file is neither a section nor an option.
    #[error("`{got}` is {why}")]
    Syntax {
        /// The line.
        got: String,
        /// What it would have to be.
        why: &'static str,
    },
    /// An option of a job file is not supported, or has a value that it cannot have.
    #[error("option `{option}` {why}")]
    Option {
        /// The option.
        option: String,
        /// The reason.
        why: String,
    },
    /// A node sends to itself.
    #[error("source and target are both {node}, they must differ")]
    AsksItself {
        /// The node.
        node: u32,
    },
}

/// Reads a file line by line and keeps count.
pub(crate) struct Lines<'a, R> {
    file: &'a str,
    reader: R,
    number: u64,
    buffer: Vec<u8>,
}

/// One line without its newline and the white space around it.
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    /// Whether a newline ended it; only the last line of a file may lack one.
    pub(crate) is_whole: bool,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub(crate) fn new(file: &'a str, reader: R) -> Self {
        Lines { file, reader, number: 0, buffer: Vec::new() }
    }

    /// The next line, or `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, FileError> {
        self.buffer.clear();
        self.number += 1;
        let read = io::Read::take(&mut self.reader, LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer);
        match read {
            Err(error) => return Err(self.error(Reason::Read(error))),
            Ok(0) => {
                self.number -= 1;
                return Ok(None);
            }
            Ok(_) => {}
        }
        let is_whole = self.buffer.ends_with(b"\n");
        if !is_whole && self.buffer.len() as u64 == LINE_BYTES_MAX {
            return Err(self.error(Reason::TooLong));
        }
        let (file, line) = (self.file, self.number);
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => Ok(Some(Line { text: text.trim(), is_whole })),
            Err(_) => Err(FileError { file: file.into(), line, reason: Reason::NotUtf8 }),
        }
    }

    /// `reason`, at the line that was read last.
    pub(crate) fn error(&self, reason: Reason) -> FileError {
        FileError { file: self.file.into(), line: self.number.max(1), reason }
    }
}

/// Returns whether a line says nothing: blank, or a `#` comment.
pub(crate) fn is_silent(text: &str) -> bool {
    text.is_empty() || text.starts_with('#')
}
