//! The end of a role, asked for by another thread.

use mio::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a role from another thread.
#[derive(Clone)]
pub struct Stopper {
    asked: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl Stopper {
    /// One for a loop that `waker` wakes.
    pub fn new(waker: Arc<Waker>) -> Stopper {
        Stopper { asked: Arc::default(), waker }
    }

    /// Requests an orderly end.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::Release);
        // It fails only when the loop is gone.
        let _ = self.waker.wake();
    }

    /// Whether the end was requested.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}
