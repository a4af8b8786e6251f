//! Why a command ends without success, and with which exit code.

use std::fmt::Display;
use std::io;
use std::path::Path;

/// Why a command ends without success.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The input is not valid; nothing was written.
    #[error("{0}")]
    BadInput(String),
    /// The experiment file is not valid; nothing was written.
    #[error("{0}")]
    Experiment(#[from] plan::PlanErrors),
    /// Something went wrong on the way; what was finished before is there.
    #[error("{0}")]
    Failed(String),
    /// A run ended before it had offered its load; the results until then exist.
    #[error("partial: {0}")]
    Partial(String),
    /// A role of a rack does not serve.
    #[error("{0}")]
    NotReady(String),
    /// The user stopped it; what was finished until then is there.
    #[error("interrupted: what was finished is in {0}")]
    Interrupted(String),
}

impl Failure {
    /// 2 for bad input (as for a wrong option), 3 for a partial run, 4 for a role that is not
    /// ready, 130 for an interrupt (as a shell does), 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::BadInput(_) | Failure::Experiment(_) => 2,
            Failure::Partial(_) => 3,
            Failure::NotReady(_) => 4,
            Failure::Interrupted(_) => 130,
        }
    }
}

/// Bad input, as the error about it says.
pub fn bad_input(error: impl Display) -> Failure {
    Failure::BadInput(error.to_string())
}

/// A failure on a file or folder.
pub fn failed_at(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::Failed(format!("{}: {error}", path.display()))
}
