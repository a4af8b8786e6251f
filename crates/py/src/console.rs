//! Python as the console of a verb. A verb plays on a thread of its own without the interpreter's
//! lock; the thread that called it hands on what it says, and looks for Ctrl-C.

use crate::errors::raised;
use campaign::{Console, Failure, Stop};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::Value;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Between two looks for Ctrl-C.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// What a verb says while it plays.
enum Said {
    Line(String),
    Event(String),
}

struct Sent {
    sender: Sender<Said>,
    has_bar: bool,
    stop: Stop,
}

impl Console for Sent {
    /// A listener that has ended with an exception hears no more.
    fn say(&self, line: &str) {
        let _ = self.sender.send(Said::Line(line.to_owned()));
    }

    fn has_bar(&self) -> bool {
        self.has_bar
    }

    fn event(&self, event: &Value) {
        let _ = self.sender.send(Said::Event(event.to_string()));
    }

    /// The thread that called listens from the beginning.
    fn listen(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn stop(&self) -> &Stop {
        &self.stop
    }
}

/// Plays `verb` to its end. `listener` has `bar`, a truth value, and takes lines by `say` and
/// events (JSON) by `event`; `look` is called again and again, with whether the end is wanted. An
/// exception of it, or of a signal, stops the runs; what was played until then is written, and the
/// exception goes on.
pub fn play<T: Send>(
    listener: &Bound<'_, PyAny>,
    verb: impl FnOnce(&dyn Console) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let py = listener.py();
    let (sender, receiver) = channel();
    let console = Sent { sender, has_bar: listener.getattr("bar")?.extract()?, stop: Stop::new() };
    let (ended, end) = channel::<()>();
    let listener = listener.clone().unbind();
    let (played, heard) = py.detach(move || {
        std::thread::scope(|scope| {
            let console = &console;
            let player = scope.spawn(move || {
                // Dropped at the end, of a panic too.
                let _ended = ended;
                verb(console)
            });
            let heard = hear(&listener, &receiver, &end, &console.stop);
            (player.join(), heard)
        })
    });
    let played = played.map_err(|_| raised(py, &Failure::Failed("a defect of rackweave ended the run".into())))?;
    match (played, heard) {
        // An interrupt is what was wanted, and the folder of results is told with it.
        (Err(failure @ Failure::Interrupted(_)), Err(error)) if is_interrupt(py, &error) => Err(raised(py, &failure)),
        (_, Err(error)) => Err(error),
        (played, Ok(())) => played.map_err(|failure| raised(py, &failure)),
    }
}

/// Whether it is Ctrl-C.
pub fn is_interrupt(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
}

/// Hands on what is said until the player has ended; an exception of the listener or a signal stops
/// it.
fn hear(listener: &Py<PyAny>, said: &Receiver<Said>, end: &Receiver<()>, stop: &Stop) -> PyResult<()> {
    let mut heard = Ok(());
    loop {
        let has_ended = end.recv_timeout(BETWEEN_LOOKS) != Err(RecvTimeoutError::Timeout);
        if heard.is_ok() {
            heard = Python::attach(|py| {
                py.check_signals()?;
                said.try_iter().try_for_each(|said| tell(listener.bind(py), said))
            });
        }
        if heard.is_err() {
            stop.ask();
        }
        // A policy that takes too long, or that holds up the end, is ended.
        let ended = Python::attach(|py| listener.call_method1(py, "look", (heard.is_err(),)).map(drop));
        heard = heard.and(ended);
        if has_ended {
            return heard;
        }
    }
}

fn tell(listener: &Bound<'_, PyAny>, said: Said) -> PyResult<()> {
    let (name, text) = match said {
        Said::Line(text) => ("say", text),
        Said::Event(text) => ("event", text),
    };
    listener.call_method1(name, (PyString::new(listener.py(), &text),)).map(drop)
}
