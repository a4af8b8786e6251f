//! Ctrl-C and SIGTERM: the first stops runs at their next report and lets everything be written,
//! the second ends the program.

use crate::failure::Failure;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A user wants it to stop.
static ASKED: AtomicBool = AtomicBool::new(false);
/// No run is to go on: a user wants it so, or one has failed.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// The code of a shell for a program that Ctrl-C has ended.
const EXIT_CODE: i32 = 130;

/// From here on an interrupt stops runs in order.
pub fn listen() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        stop();
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(EXIT_CODE);
        }
        eprintln!("stopping; once more to leave at once");
    })
    .map_err(|error| Failure::Failed(format!("the interrupt handler cannot be installed: {error}")))
}

/// Stops every run at its next report.
pub fn stop() {
    STOPPED.store(true, Ordering::SeqCst);
}

/// Whether runs should stop.
pub fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// The end of a command that has written all it could to `place`.
pub fn outcome(place: &Path) -> Result<(), Failure> {
    if ASKED.load(Ordering::SeqCst) { Err(Failure::Interrupted(place.display().to_string())) } else { Ok(()) }
}
