//! Volumes by the names that a target's file gives them.

use crate::volume::{Door, Volume, place_of};
use base::Seed;
use plan::rack::Rack;
use plan::target::Backend;
use runtime::error::StartError;
use runtime::secret::random;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

/// The doors of this process: one is one node of its rack, whatever volumes are behind it.
static DOORS: Mutex<BTreeMap<(PathBuf, String), Weak<Door>>> = Mutex::new(BTreeMap::new());

fn rack_of(file: &str) -> Result<Rack, StartError> {
    Rack::read(Path::new(file)).map_err(StartError::plan)
}

/// Opens a volume of the rack in `file` by a door of it, which this process opens once.
///
/// # Errors
/// When the file is wrong, or has no such door or volume, or another process is the door.
pub fn open(file: &str, door: &str, volume: &str) -> Result<Volume, StartError> {
    let rack = rack_of(file)?;
    let key = (PathBuf::from(file), door.to_owned());
    let mut doors = DOORS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let opened = match doors.get(&key).and_then(Weak::upgrade) {
        Some(door) => door,
        None => Door::open(&rack, door)?,
    };
    doors.insert(key, Arc::downgrade(&opened));
    opened.volume(&rack, volume)
}

/// The size of a volume of the rack in `file`.
///
/// # Errors
/// When the file is wrong, or has no such volume.
pub fn bytes_of(file: &str, volume: &str) -> Result<u64, StartError> {
    let rack = rack_of(file)?;
    let place = place_of("volume", rack.volumes.iter().map(|volume| &*volume.name), volume)?;
    Ok(rack.volumes[place].size.count())
}

/// The UUID of a volume, the same at every door of the rack's folder; none for other backends.
///
/// # Errors
/// When the rack's file is wrong, or the rack's own identity cannot be read or kept.
pub fn identity_of(backend: &Backend) -> Result<Option<[u8; 16]>, StartError> {
    let Backend::Volume { rack, volume, .. } = backend else { return Ok(None) };
    let folder = rack_of(rack)?.folder;
    let path = folder.join("rack.id");
    let own = identity(&folder, &path).map_err(|error| StartError::file(&path, error))?;
    let mut uuid = [0; 16];
    for (half, word) in uuid.chunks_mut(8).zip(own) {
        half.copy_from_slice(&Seed(word).child(volume).0.to_be_bytes());
    }
    // Version 8, of our own making (RFC 9562, 5.8).
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(Some(uuid))
}

/// The rack's own number, made at random by who needs it first. Several doors may be the first at
/// the same time: each holds the file's lock while it looks.
fn identity(folder: &Path, path: &Path) -> io::Result<[u64; 2]> {
    fs::create_dir_all(folder)?;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    let mut bytes = [0; 16];
    if file.metadata()?.len() < bytes.len() as u64 {
        bytes = random()?;
        file.write_all_at(&bytes, 0)?;
        file.sync_all()?;
    }
    file.read_exact_at(&mut bytes, 0)?;
    let (words, _) = bytes.as_chunks();
    Ok([u64::from_be_bytes(words[0]), u64::from_be_bytes(words[1])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_that_open_a_new_rack_at_the_same_time_agree_who_it_is() {
        for _ in 0..100 {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("rack.id");
            let own = || identity(folder.path(), &path).expect("it can be kept");
            let all: Vec<[u64; 2]> = std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(own));
                threads.map(|thread| thread.join().expect("no panic")).to_vec()
            });
            assert!(all.iter().all(|one| *one == all[0]), "{all:x?}");
            assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
        }
    }
}
