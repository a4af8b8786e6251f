//! Resources that another process holds. A start fails on them. A check of a file notes them and
//! continues, since they say nothing about the file.

use crate::error::StartError;
use std::cell::RefCell;

/// How a resource in use is handled.
pub enum InUse {
    /// It is refused.
    Refused,
    /// It is noted, and the caller continues without it.
    Noted(RefCell<Vec<StartError>>),
}

impl InUse {
    /// Nothing was noted yet.
    pub fn noted() -> InUse {
        InUse::Noted(RefCell::default())
    }

    /// Whether opened resources are kept.
    pub fn is_refused(&self) -> bool {
        matches!(self, InUse::Refused)
    }

    /// Notes the error, or returns it.
    ///
    /// # Errors
    /// Where it is refused.
    pub fn meet(&self, error: StartError) -> Result<(), StartError> {
        match self {
            InUse::Refused => Err(error),
            InUse::Noted(all) => {
                all.borrow_mut().push(error);
                Ok(())
            }
        }
    }

    /// Returns all notes.
    pub fn into_all(self) -> Vec<StartError> {
        match self {
            InUse::Refused => Vec::new(),
            InUse::Noted(all) => all.into_inner(),
        }
    }
}
