//! Locks: around what is whole at any time, also when a thread has panicked, and of files.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes one.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a file for as long as it is open, and makes it and its folder; `None` where another
/// process has it.
///
/// # Errors
/// When the system does not make, open or lock it.
pub fn lock_file(path: &Path) -> io::Result<Option<File>> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
