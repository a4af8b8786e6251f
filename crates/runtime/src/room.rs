//! How much room files have and may come to need on their file system.

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is left of the file system of a file or folder.
///
/// # Errors
/// When the system does not tell.
pub fn free_bytes(file: &File) -> io::Result<u64> {
    let about = fstatvfs(file)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

/// The bytes of a file that take no room yet, where it has or will have `bytes`.
pub fn hole_bytes(bytes: u64, about: &Metadata) -> u64 {
    /// What the system counts blocks of files in.
    const BLOCK: u64 = 512;
    bytes.saturating_sub(about.blocks().saturating_mul(BLOCK))
}

/// The first byte at `at` or behind it that is no hole; `None` where a hole is to the end. What
/// knows no holes has none.
///
/// # Errors
/// When the system fails.
pub fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

/// The bytes of holes of a file that has or will have `bytes`, and those that are free, where the
/// former are more.
fn shortage(file: &File, bytes: u64) -> io::Result<Option<[u64; 2]>> {
    let [wanted, free] = [hole_bytes(bytes, &file.metadata()?), free_bytes(file)?];
    Ok((wanted > free).then_some([wanted, free]))
}

/// Warns where a file of `bytes`, whose holes take no room yet, may come to need more than its file
/// system has left. Returns whether it does.
///
/// # Errors
/// When the system does not tell.
pub fn warn_of_room(path: &Path, file: &File, bytes: u64) -> io::Result<bool> {
    let short = shortage(file, bytes)?;
    if let Some(both) = short {
        let [wanted_mib, free_mib] = both.map(|bytes| bytes >> 20);
        let path = path.display();
        tracing::warn!(%path, wanted_mib, free_mib, "its file system may get full: writes to new places fail then");
    }
    Ok(short.is_some())
}

/// Whether [`reserve`] finds room.
///
/// # Errors
/// When there is too little, or the system does not tell.
pub fn check_room(file: &File, bytes: u64) -> io::Result<()> {
    if let Some([wanted, free]) = shortage(file, bytes)? {
        let reason = format!("{wanted} of {bytes} bytes are to be reserved, and {free} are free");
        return Err(io::Error::new(io::ErrorKind::StorageFull, reason));
    }
    Ok(())
}

/// Takes the room of the first `bytes` of a regular file.
///
/// # Errors
/// When the file system has too little, of which nothing is taken then, or cannot reserve any.
pub fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    check_room(file, bytes)?;
    Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_file_may_be_short_of_room_by_its_holes() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        let free = free_bytes(&file).expect("it tells");
        let is_short = |bytes| warn_of_room(Path::new("disk"), &file, bytes).expect("it tells");
        assert!(is_short(2 * free + (1 << 30)));
        assert!(!is_short(free / 2));
        file.write_all_at(&[1; 1 << 16], 0).and_then(|()| file.sync_all()).expect("it is written");
        let about = file.metadata().expect("it is open");
        let holes = [1 << 16, 1 << 20].map(|bytes| hole_bytes(bytes, &about));
        assert_eq!(holes, [0, (1 << 20) - (1 << 16)]);
    }
}
