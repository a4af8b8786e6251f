//! Locks around what is whole at any time, also when a thread has panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes one.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
