//! The terminal as the console of a verb. Ctrl-C and SIGTERM: the first stops runs at their next
//! report and lets everything be written, the second ends the program.

use crate::failure::Failure;
use crate::{Console, Done, Stop};
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: Stop = Stop::new();

/// The code of a shell for a program that Ctrl-C has ended.
const EXIT_CODE: i32 = 130;

/// The standard error output, and signals.
pub struct Terminal;

impl Console for Terminal {
    fn say(&self, line: &str) {
        say(line);
    }

    fn has_bar(&self) -> bool {
        stderr().is_terminal()
    }

    fn event(&self, event: &Value) {
        say(event);
    }

    fn listen(&self) -> Result<(), Failure> {
        listen()
    }

    fn stop(&self) -> &Stop {
        &STOP
    }
}

/// Prints a line for people. An output that is closed, or whose disk is full, ends no program.
pub fn say(line: impl Display) {
    let _ = writeln!(stderr().lock(), "{line}");
}

/// From here on an interrupt stops runs in order. Once more changes nothing: a command may play
/// several experiments.
///
/// # Errors
/// When the handler of signals cannot be installed.
pub fn listen() -> Result<(), Failure> {
    static IS_HEARD: AtomicBool = AtomicBool::new(false);
    if IS_HEARD.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        if STOP.ask() {
            std::process::exit(EXIT_CODE);
        }
        say("stopping; once more to leave at once");
    })
    .map_err(|error| Failure::Failed(format!("the interrupt handler cannot be installed: {error}")))
}

/// Stops every run at its next report.
pub fn stop() {
    STOP.halt();
}

/// Whether runs should stop.
pub fn stopped() -> bool {
    STOP.is_set()
}

/// The end of a command that has written all it could to `place`.
///
/// # Errors
/// When a user has stopped it.
pub fn outcome(place: &Path) -> Result<(), Failure> {
    STOP.outcome(place)
}

/// Writes `text` to the standard output. A reader that has gone away (`| head`) is not a failure.
///
/// # Errors
/// When the standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Shows what a verb has done.
///
/// # Errors
/// When it ended early, or the standard output cannot be written.
pub fn tell(done: Done) -> Result<(), Failure> {
    print(&done.text)?;
    done.end
}
