//! Why a live host does not start, or stops.

use std::io;
use std::path::PathBuf;

/// Why a target does not start. Nothing was changed, save files that were made for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address that means nothing.
    #[error("`{text}` is no address to listen at: {reason}")]
    Address {
        /// As written.
        text: String,
        /// What the system said.
        reason: io::Error,
    },
    /// Somebody listens there already.
    #[error("{address} is in use{}", holder(.by))]
    InUse {
        /// Where.
        address: String,
        /// Who, as far as the system tells: process and name.
        by: Option<(u32, String)>,
    },
    /// The system does not let us listen there.
    #[error("cannot listen at {address}: {reason}{}", hint(.reason))]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        reason: io::Error,
    },
    /// A file of a namespace cannot be used.
    #[error("{}: {reason}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why, and what would do.
        reason: String,
    },
    /// A drive cannot be made.
    #[error("drive `{drive}`: {reason}")]
    Drive {
        /// Which preset.
        drive: String,
        /// Why.
        reason: String,
    },
    /// What was kept of an earlier run cannot be read: it is not thrown away.
    #[error("{}: {reason}; move it away to start with new identities and without reservations", .path.display())]
    State {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The numbers of the plan do not fit each other.
    #[error("{0}")]
    Plan(String),
    /// The system refuses something that everyone has.
    #[error("{what}: {reason}")]
    System {
        /// What.
        what: &'static str,
        /// What the system said.
        reason: io::Error,
    },
}

impl StartError {
    /// What the plan asks for cannot be.
    pub(crate) fn plan(reason: impl std::fmt::Display) -> StartError {
        StartError::Plan(reason.to_string())
    }

    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> StartError {
        move |reason| StartError::System { what, reason }
    }
    pub(crate) fn file(path: impl Into<PathBuf>, reason: impl ToString) -> StartError {
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

/// Why a host that ran has stopped, though nobody asked for it.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct RunError {
    /// What failed.
    pub what: &'static str,
    /// What the system said.
    pub reason: io::Error,
}

impl RunError {
    pub(crate) fn in_(what: &'static str) -> impl Fn(io::Error) -> RunError {
        move |reason| RunError { what, reason }
    }
}
