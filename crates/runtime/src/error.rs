//! Why a live host does not start, or stops.

use std::io;
use std::path::PathBuf;

/// Why a target does not start. Nothing was changed, except for files that it created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An invalid address.
    #[error("`{text}` is not a valid address to listen on: {reason}")]
    Address {
        /// The address as written.
        text: String,
        /// The system's reason.
        reason: io::Error,
    },
    /// Another socket listens on the address.
    #[error("{address} is in use{}", holder(.by))]
    InUse {
        /// The address.
        address: String,
        /// Process and name of the listener, if the system tells them.
        by: Option<(u32, String)>,
    },
    /// The system does not allow to listen.
    #[error("cannot listen at {address}: {reason}{}", hint(.reason))]
    Listen {
        /// The address.
        address: String,
        /// The system's reason.
        reason: io::Error,
    },
    /// A file of a namespace cannot be used.
    #[error("{}: {reason}", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why, and what would work.
        reason: String,
    },
    /// An emulated drive cannot be built.
    #[error("drive `{drive}`: {reason}")]
    Drive {
        /// Its preset.
        drive: String,
        /// The reason.
        reason: String,
    },
    /// The state of an earlier run cannot be read. It is kept.
    #[error("{}: {reason}; move it away to start with new identities and without reservations", .path.display())]
    State {
        /// Its path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The plan's parameters contradict each other.
    #[error("{0}")]
    Plan(String),
    /// The system refuses a common resource.
    #[error("{what}: {reason}")]
    System {
        /// The resource.
        what: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
}

impl StartError {
    /// What the plan asks for cannot be.
    pub fn plan(reason: impl std::fmt::Display) -> StartError {
        StartError::Plan(reason.to_string())
    }

    /// The system refuses `what`.
    pub fn system(what: &'static str) -> impl Fn(io::Error) -> StartError {
        move |reason| StartError::System { what, reason }
    }
    /// A file cannot be used.
    pub fn file(path: impl Into<PathBuf>, reason: impl ToString) -> StartError {
        StartError::File { path: path.into(), reason: reason.to_string() }
    }
}

fn holder(by: &Option<(u32, String)>) -> String {
    match by {
        Some((process, name)) => format!(" by process {process} ({name})"),
        None => " by a process that we may not see".into(),
    }
}

fn hint(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::PermissionDenied => " (ports below 1024 are for root: choose a higher one)",
        io::ErrorKind::AddrNotAvailable => " (no interface of this machine has that address)",
        _ => "",
    }
}

/// Why a running host has stopped without a request to.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct RunError {
    /// What failed.
    pub what: &'static str,
    /// The system's reason.
    pub reason: io::Error,
}

impl RunError {
    /// `what` failed.
    pub fn in_(what: &'static str) -> impl Fn(io::Error) -> RunError {
        move |reason| RunError { what, reason }
    }
}
