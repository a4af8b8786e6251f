//! The side of a verb that faces its user while it works: what it says, and how it is stopped.

use crate::failure::Failure;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A terminal, a notebook, or whatever else a user sits at.
pub trait Console: Sync {
    /// Shows a line for people: an estimate, or a warning.
    fn say(&self, line: &str);

    /// Whether progress is a bar on the standard error output, in place of events.
    fn has_bar(&self) -> bool;

    /// Shows progress: an object with `event` as `point` or `progress`.
    fn event(&self, event: &Value);

    /// Called when a verb begins to play: from here on an interrupt is to end it in order.
    ///
    /// # Errors
    /// When interrupts cannot be heard.
    fn listen(&self) -> Result<(), Failure>;

    /// What stops the runs.
    fn stop(&self) -> &Stop;
}

/// Stops runs at their next report, so that everything is written.
#[derive(Debug, Default)]
pub struct Stop {
    /// A user wants it to stop.
    asked: AtomicBool,
    /// No run is to go on: a user wants it so, or one has failed.
    stopped: AtomicBool,
}

impl Stop {
    /// Nothing is stopped yet.
    pub const fn new() -> Stop {
        Stop { asked: AtomicBool::new(false), stopped: AtomicBool::new(false) }
    }

    /// Stops every run because a user wants it so. Returns whether one had asked before.
    pub fn ask(&self) -> bool {
        self.halt();
        self.asked.swap(true, Ordering::SeqCst)
    }

    /// Stops every run.
    pub fn halt(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether runs should stop.
    pub fn is_set(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The end of a verb that has written all it could to `place`.
    ///
    /// # Errors
    /// When a user has stopped it.
    pub fn outcome(&self, place: &Path) -> Result<(), Failure> {
        match self.asked.load(Ordering::SeqCst) {
            true => Err(Failure::Interrupted(place.display().to_string())),
            false => Ok(()),
        }
    }
}
