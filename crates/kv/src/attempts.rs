//! A thread that tries to reach something until it does, or nobody waits for it.

use mio::Waker;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

/// Attempts, one after the other.
pub struct Attempts<T> {
    found: Receiver<T>,
    /// The thread sees that this is gone.
    _wanted: Arc<()>,
}

/// How far they are.
pub enum Looked<T> {
    /// They go on.
    NotYet,
    /// One has reached it.
    Found(T),
    /// There is no thread.
    Ended,
}

impl<T: Send + 'static> Attempts<T> {
    /// Has a thread call `open` at intervals of `again` until it succeeds, and wake the loop then.
    /// `what` is for messages.
    pub fn start(
        what: String,
        again: Duration,
        waker: Arc<Waker>,
        open: impl Fn() -> io::Result<T> + Send + 'static,
    ) -> Attempts<T> {
        let (tell, found) = channel();
        let wanted = Arc::new(());
        let is_wanted = Arc::downgrade(&wanted);
        let try_it = move || {
            while is_wanted.strong_count() > 0 {
                match open() {
                    Ok(reached) => {
                        // Both fail only when the loop is gone.
                        let _ = tell.send(reached);
                        let _ = waker.wake();
                        return;
                    }
                    Err(error) => tracing::debug!(what, %error, "not reached"),
                }
                thread::sleep(again);
            }
        };
        // Without a thread the channel is closed, and another one is tried.
        let _ = thread::Builder::new().name("reach".into()).spawn(try_it);
        Attempts { found, _wanted: wanted }
    }

    /// Whether it was reached.
    pub fn look(&self) -> Looked<T> {
        match self.found.try_recv() {
            Ok(reached) => Looked::Found(reached),
            Err(TryRecvError::Empty) => Looked::NotYet,
            Err(TryRecvError::Disconnected) => Looked::Ended,
        }
    }
}
