//! Secrets from files, and unpredictable bytes.

use crate::error::StartError;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Longest file of a secret: one line of some hundred letters is expected.
const FILE_MAX: u64 = 64 << 10;
/// Read permission for all users.
const FOR_ALL: u32 = 0o004;

/// Unpredictable bytes from the system.
///
/// # Errors
/// When the system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// Letters of a secret that keys are made of at least: `openssl rand -base64 32` has 44.
const LONG_MIN: usize = 32;

/// Reads a secret that keys are made of.
///
/// # Errors
/// When the file cannot be read, or its first line is too short.
pub fn long_secret_in(path: &Path) -> Result<String, StartError> {
    secret_in(path, |line| match line.len() {
        LONG_MIN.. => Ok(line.to_owned()),
        length => Err(format!("its first line has {length} letters, and a secret needs {LONG_MIN}")),
    })
}

/// Reads the secret that a file holds: its first line.
///
/// # Errors
/// When it cannot be read or holds none. The reason does not show the content.
pub fn secret_in<T, E: std::fmt::Display>(path: &Path, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, StartError> {
    let wrong = |reason: String| StartError::file(path, reason);
    let facts = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if facts.len() > FILE_MAX {
        return Err(wrong("it is too long for a secret".into()));
    }
    if facts.permissions().mode() & FOR_ALL != 0 {
        tracing::warn!(path = %path.display(), "all users of this machine can read this secret");
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    parse(text.lines().next().unwrap_or_default()).map_err(|error| wrong(error.to_string()))
}
