//! What another process has: a start ends with it; a check of a file notes it and goes on, since it
//! says nothing about the file.

use crate::error::StartError;
use std::cell::RefCell;

/// What is done about something that is in use.
pub(crate) enum InUse {
    /// It is refused.
    Refused,
    /// It is noted, and whoever found it does without.
    Noted(RefCell<Vec<StartError>>),
}

impl InUse {
    pub(crate) fn noted() -> InUse {
        InUse::Noted(RefCell::default())
    }

    /// Whether what is opened is to stay.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, InUse::Refused)
    }

    /// Notes it, or fails.
    pub(crate) fn meet(&self, error: StartError) -> Result<(), StartError> {
        match self {
            InUse::Refused => Err(error),
            InUse::Noted(all) => {
                all.borrow_mut().push(error);
                Ok(())
            }
        }
    }

    /// All that was noted.
    pub(crate) fn into_all(self) -> Vec<StartError> {
        match self {
            InUse::Refused => Vec::new(),
            InUse::Noted(all) => all.into_inner(),
        }
    }
}
