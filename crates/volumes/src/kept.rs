//! What a role must know again after its process was killed, in a file.

use runtime::draft::{PRIVATE, sync_folder_of};
use runtime::error::StartError;
use runtime::lock::lock_file;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file, which no other process has meanwhile: a second one would keep something else.
///
/// What it has is written into a spare file beside it, which then takes its place, and it that of
/// the spare one. So a change needs no room of a full disk. Blanks behind the text keep room.
pub(crate) struct Place {
    path: PathBuf,
    spare: PathBuf,
    _lock: File,
}

/// The length of a file with a text of `bytes`: it grows seldom, and has room for twice the text.
fn length_for(bytes: usize) -> usize {
    const LEAST: usize = 16 << 10;
    (2 * bytes).next_power_of_two().max(LEAST)
}

impl Place {
    /// Takes the file for this process, by a lock beside it. Makes its folder.
    ///
    /// # Errors
    /// When another process has it, or the folder cannot be written.
    pub fn take(path: PathBuf) -> Result<Place, StartError> {
        let beside = path.with_extension("lock");
        let lock = lock_file(&beside).map_err(|error| StartError::file(&beside, error))?;
        let lock = lock.ok_or_else(|| StartError::file(&beside, "another process has it: the role runs"))?;
        let place = Place { spare: path.with_extension("spare"), path, _lock: lock };
        place.make_spare(length_for(0));
        Ok(place)
    }

    /// Makes the spare file where there is none.
    fn make_spare(&self, bytes: usize) {
        if !self.spare.exists()
            && let Err(error) = self.fill_spare(&vec![b' '; bytes])
        {
            let path = self.spare.display();
            tracing::warn!(%path, %error, "no room is kept for changes of the state: on a full disk they fail");
        }
    }

    fn fill_spare(&self, text: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(false).mode(PRIVATE).open(&self.spare)?;
        file.write_all(text)?;
        file.set_len(text.len() as u64)?;
        file.sync_all()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what was kept; `None` where nothing was yet.
    ///
    /// # Errors
    /// When the file cannot be read, or has something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, StartError> {
        let wrong = |reason: String| StartError::State { path: self.path.clone(), reason };
        match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(error.to_string())),
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| wrong(error.to_string())),
        }
    }

    /// Keeps it, whole or not at all.
    pub fn write<T: Serialize>(&self, kept: &T) -> io::Result<()> {
        let mut text = serde_json::to_vec(kept).expect("numbers and names make a text");
        let length = length_for(text.len());
        text.resize(length, b' ');
        self.fill_spare(&text)?;
        match renameat_with(CWD, &self.spare, CWD, &self.path, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // There is no file yet, or the file system exchanges none.
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {
                fs::rename(&self.spare, &self.path)?;
                self.make_spare(length);
            }
            Err(error) => return Err(error.into()),
        }
        sync_folder_of(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::os::unix::fs::MetadataExt;

    /// The two files by their numbers, each with the room that it takes.
    fn files(place: &Place) -> BTreeSet<(u64, u64)> {
        let about = [&place.path, &place.spare].map(|path| fs::metadata(path).expect("it is there"));
        about.iter().map(|about| (about.ino(), about.blocks())).collect()
    }

    #[test]
    fn a_change_overwrites_the_file_of_the_last_but_one_and_takes_no_room() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let path = folder.path().join("state.json");
        let place = Place::take(path.clone()).expect("it is free");
        assert_eq!(place.read::<u64>().expect("nothing is wrong"), None);
        place.write(&0).expect("there is room");
        place.write(&0).expect("there is room");
        let before = files(&place);
        assert_eq!(before.len(), 2);
        for length in [4000, 1, 4000, 4000, 1, 1] {
            place.write(&vec![7u64; length]).expect("there is room");
            assert_eq!(place.read().expect("it is whole"), Some(vec![7u64; length]));
            assert_eq!(files(&place), before, "{length}");
        }
        // A process that was killed while it wrote.
        fs::write(&place.spare, "[1, 2").expect("a disk");
        drop(place);
        let place = Place::take(path).expect("it is free again");
        assert_eq!(place.read().expect("it is whole"), Some(vec![7u64]));
        let long = vec![1u64; 20_000];
        place.write(&long).expect("there is room");
        assert_eq!(place.read().expect("it is whole"), Some(long));
        for value in 1..4u64 {
            place.write(&value).expect("there is room");
            assert_eq!(place.read().expect("it is whole"), Some(value));
        }
    }
}
