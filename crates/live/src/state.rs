//! State that survives a restart: identities of files and of the target itself, and reservations,
//! in one small file.
//!
//! The file is replaced atomically: written beside, synced, renamed, and the folder synced. After a
//! crash it is the old one or the new one. A file that cannot be read is an error and stays. One
//! target at a time uses it.

mod form;
mod keeper;

use crate::error::StartError;
use crate::identity::{Image, Uuid, new_uuid, uuid_text};
use crate::in_use::InUse;
use form::StateForm;
pub(crate) use keeper::{Keeper, SharedState, locked};
use nvme::target::Reservations;
use runtime::draft::{Draft, MadeFolder};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A namespace of a subsystem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamespaceName {
    pub subsystem: String,
    pub namespace: u32,
}

/// The identity of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    uuid: Uuid,
    path: PathBuf,
    /// Its inode number and creation time, which identify it after a move.
    inode: u64,
    created: Option<u64>,
}

/// The content of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    /// The target's own identity.
    instance: Uuid,
    files: Vec<Known>,
    /// Reservations that persist through a power loss.
    reservations: BTreeMap<NamespaceName, Reservations>,
}

/// The state and its file.
#[derive(Debug)]
pub(crate) struct State {
    /// The file; without one nothing survives the process.
    path: Option<PathBuf>,
    content: Content,
    /// Held while this process uses the folder.
    _lock: Option<File>,
    /// It is not another target's, which a check only reads.
    is_ours: bool,
    made: MadeFolder,
}

impl State {
    /// Reads the state in `folder`, which is created if it does not exist. A new folder stays when
    /// something is [kept](Self::keep).
    pub(crate) fn open(folder: Option<&str>, in_use: &InUse) -> Result<State, StartError> {
        let instance = new_uuid()?;
        let Some(folder) = folder.map(Path::new) else {
            let content = Content { instance, ..Content::default() };
            return Ok(State { path: None, content, _lock: None, is_ours: true, made: MadeFolder::default() });
        };
        let fail = |error| StartError::file(folder, error);
        let made = MadeFolder::make(folder).map_err(fail)?;
        let lock = File::open(folder).map_err(fail)?;
        let is_ours = lock.try_lock().is_ok();
        if !is_ours {
            in_use.meet(StartError::file(folder, "another target keeps its state there"))?;
        }
        let path = folder.join("state.json");
        let wrong = |reason: String| StartError::State { path: path.clone(), reason };
        let content = match fs::read_to_string(&path) {
            Ok(text) => StateForm::parse(&text).map_err(wrong)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Content { instance, ..Content::default() },
            Err(error) => return Err(wrong(error.to_string())),
        };
        Ok(State { path: Some(path), content, _lock: Some(lock), is_ours, made })
    }

    /// The target's own identity; `None` where none is kept.
    pub(crate) fn instance(&self) -> Option<Uuid> {
        self.path.as_ref().map(|_| self.content.instance)
    }

    /// The identity of a file: the kept one, found by its path or its inode, or a new one.
    pub(crate) fn identity(&mut self, image: &Image) -> Result<Uuid, StartError> {
        let has_moved_here = |known: &Known| {
            let is_it = (known.inode, known.created) == (image.place.1, image.created) && image.created.is_some();
            is_it && !image.is_elsewhere(&known.path)
        };
        let files = &mut self.content.files;
        let found = files.iter().position(|known| known.path == image.path);
        let uuid = match found.or_else(|| files.iter().position(has_moved_here)) {
            Some(at) => files.remove(at).uuid,
            None => {
                let uuid = new_uuid()?;
                tracing::info!(path = %image.path.display(), uuid = uuid_text(&uuid), "a new identity was made");
                uuid
            }
        };
        let (path, inode) = (image.path.clone(), image.place.1);
        files.push(Known { uuid, path, inode, created: image.created });
        Ok(uuid)
    }

    /// The reservations that have survived.
    pub(crate) fn reservations(&self, name: &NamespaceName) -> Reservations {
        self.content.reservations.get(name).cloned().unwrap_or_default()
    }

    /// Replaces the reservations of a namespace; only those that persist are kept.
    fn set_reservations(&mut self, name: &NamespaceName, reservations: Reservations) {
        self.content.reservations.remove(name);
        if reservations.persists {
            self.content.reservations.insert(name.clone(), reservations);
        }
    }

    /// Whether state survives the process.
    pub(crate) fn is_kept(&self) -> bool {
        self.path.is_some()
    }

    /// The text of the state, written beside the file.
    pub(crate) fn draft(&self) -> io::Result<Option<Draft>> {
        let path = self.path.as_ref().filter(|_| self.is_ours);
        path.map(|path| Draft::write(path, &StateForm::text(&self.content))).transpose()
    }

    /// Keeps the folder.
    pub(crate) fn keep(&mut self) {
        std::mem::take(&mut self.made).keep();
    }

    /// Returns when the state would survive a power loss.
    pub(crate) fn save(&self) -> io::Result<()> {
        self.draft()?.map_or(Ok(()), Draft::keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::storage::DiskFile;
    use nvme::HostId;
    use nvme::reservation::ReservationKind;
    use nvme::target::{HeldKind, RegisteredHost};

    fn name(namespace: u32) -> NamespaceName {
        NamespaceName { subsystem: "nqn.2026-11.io.rackweave:disk".into(), namespace }
    }

    fn image(folder: &Path, name: &str) -> Image {
        let file = DiskFile::open(&folder.join(name), Some(4096), false, false).expect("it is made");
        Image::of(&file).expect("it is there")
    }

    fn held(persists: bool) -> Reservations {
        Reservations {
            generation: 7,
            kind: HeldKind(ReservationKind::ExclusiveAccess),
            persists,
            registrants: vec![RegisteredHost { host: HostId([3; 16]), key: u64::MAX, is_holder: true }],
        }
    }

    #[test]
    fn identities_and_lasting_reservations_are_there_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("deep/state").display().to_string();
        let mut state = State::open(Some(&place), &InUse::Refused).expect("it is made");
        let images = ["one", "two"].map(|name| image(folder.path(), name));
        let uuids = images.each_ref().map(|image| state.identity(image).expect("there is randomness"));
        assert_ne!(uuids[0], uuids[1]);
        state.set_reservations(&name(1), held(true));
        state.set_reservations(&name(2), held(false));
        state.keep();
        state.save().expect("there is a disk");
        let instance = state.instance();
        assert!(
            State::open(Some(&place), &InUse::Refused).expect_err("it is taken").to_string().contains("another target")
        );
        let in_use = InUse::noted();
        let read = State::open(Some(&place), &in_use).expect("a check reads it");
        assert!(read.content == state.content && read.draft().expect("it is none").is_none());
        assert_eq!(in_use.into_all().len(), 1);
        drop(state);
        let mut again = State::open(Some(&place), &InUse::Refused).expect("it was written");
        assert_eq!(images.each_ref().map(|image| again.identity(image).expect("it is known")), uuids);
        assert_eq!(again.instance(), instance);
        assert_eq!(again.reservations(&name(1)), held(true));
        assert_eq!(again.reservations(&name(2)), Reservations::default());
    }

    #[test]
    fn an_identity_follows_a_file_that_is_renamed_or_restored_and_not_its_copy() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("state").display().to_string();
        let mut state = State::open(Some(&place), &InUse::Refused).expect("it is made");
        let uuid = state.identity(&image(folder.path(), "old")).expect("there is randomness");
        fs::copy(folder.path().join("old"), folder.path().join("copy")).expect("a disk");
        assert_ne!(state.identity(&image(folder.path(), "copy")).expect("it is new"), uuid);
        fs::rename(folder.path().join("old"), folder.path().join("new")).expect("a disk");
        assert_eq!(state.identity(&image(folder.path(), "new")).expect("it is known"), uuid);
        fs::copy(folder.path().join("copy"), folder.path().join("beside")).expect("a disk");
        fs::rename(folder.path().join("beside"), folder.path().join("new")).expect("a disk");
        assert_eq!(state.identity(&image(folder.path(), "new")).expect("it is restored"), uuid);
    }

    #[test]
    fn a_folder_that_nobody_keeps_anything_in_does_not_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("deep/state");
        drop(State::open(place.to_str(), &InUse::Refused).expect("it is made"));
        assert!(!folder.path().join("deep").exists());
    }

    #[test]
    fn a_damaged_file_is_an_error_and_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        let reservations = BTreeMap::from([(name(1), held(true))]);
        let good = StateForm::text(&Content { reservations, ..Content::default() });
        for text in
            ["", "{", "{\"version\":3,\"namespaces\":[]}", &good.replace("0303", "03"), &good.replace(": 2", ": 9")]
        {
            fs::write(&path, text).expect("a disk");
            let error = State::open(folder.path().to_str(), &InUse::Refused).expect_err("it is damaged").to_string();
            assert!(error.contains("move it away to start with new identities"), "{text}: {error}");
            assert_eq!(fs::read_to_string(&path).expect("it stays"), text);
        }
        fs::write(&path, &good).expect("a disk");
        State::open(folder.path().to_str(), &InUse::Refused).expect("it is whole");
    }
}
