//! What outlives a restart: the identities of namespaces and their reservations, in one small file.
//!
//! The file is replaced as a whole: written beside, synced, renamed, and the folder synced, so that after a crash at any time it is the
//! old one or the new one. A file that cannot be read is an error and stays where it is.

mod form;
mod keeper;

use crate::backend::storage::sync_folder_of;
use crate::error::StartError;
use form::StateForm;
pub(crate) use keeper::{Keeper, SharedState, locked};
use nvme::target::Reservations;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Which namespace of which subsystem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamespaceName {
    pub subsystem: String,
    pub namespace: u32,
}

/// What is kept of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    uuid: [u8; 16],
    /// Those that survive a loss of power.
    reservations: Option<Reservations>,
}

/// Everything that is kept, and where.
#[derive(Debug)]
pub(crate) struct State {
    /// The file; without one nothing outlives the process.
    path: Option<PathBuf>,
    /// Makes identities of this machine differ from those of others.
    machine: String,
    namespaces: BTreeMap<NamespaceName, Kept>,
}

/// Identifies a machine: made once at its installation (machine-id(5)).
const MACHINE_ID: &str = "/etc/machine-id";

impl State {
    /// What is kept in `folder`, which is made when it is not there.
    pub(crate) fn open(folder: Option<&str>) -> Result<State, StartError> {
        let machine = fs::read_to_string(MACHINE_ID).unwrap_or_default().trim().to_owned();
        let Some(folder) = folder else { return Ok(State { path: None, machine, namespaces: BTreeMap::new() }) };
        let path = Path::new(folder).join("state.json");
        let fail = |reason: String| StartError::State { path: path.clone(), reason };
        fs::create_dir_all(folder).map_err(|error| StartError::file(folder, error))?;
        let namespaces = match fs::read_to_string(&path) {
            Ok(text) => StateForm::parse(&text).map_err(fail)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(fail(error.to_string())),
        };
        Ok(State { path: Some(path), machine, namespaces })
    }

    /// The UUID of a namespace: the given one, the kept one, or one that is made from its name and this machine's.
    pub(crate) fn uuid(&mut self, name: &NamespaceName, given: Option<[u8; 16]>) -> [u8; 16] {
        let uuid = given.or_else(|| Some(self.namespaces.get(name)?.uuid)).unwrap_or_else(|| self.made(name));
        let new = Kept { uuid, reservations: None };
        self.namespaces.entry(name.clone()).or_insert(new).uuid = uuid;
        uuid
    }

    /// The reservations that have survived.
    pub(crate) fn reservations(&self, name: &NamespaceName) -> Reservations {
        self.namespaces.get(name).and_then(|kept| kept.reservations.clone()).unwrap_or_default()
    }

    /// Replaces the reservations of a namespace; only those that are to survive are kept.
    fn set_reservations(&mut self, name: &NamespaceName, reservations: Reservations) {
        if let Some(kept) = self.namespaces.get_mut(name) {
            kept.reservations = Some(reservations).filter(|reservations| reservations.persists);
        }
    }

    /// Whether anything outlives the process.
    pub(crate) fn is_kept(&self) -> bool {
        self.path.is_some()
    }

    /// Returns when all would survive a loss of power.
    pub(crate) fn save(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let beside = path.with_extension("json.new");
        let mut file = File::create(&beside)?;
        file.write_all(StateForm::text(&self.namespaces).as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        sync_folder_of(path)
    }

    /// A UUID of version 8 (RFC 9562, 5.8) from a hash of names: the same after every start, and another on another machine.
    fn made(&self, name: &NamespaceName) -> [u8; 16] {
        let text = format!("{}\n{}\n{}", self.machine, name.subsystem, name.namespace);
        let digest = Sha256::digest(text.as_bytes());
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&digest[..16]);
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        uuid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::HostId;
    use nvme::reservation::ReservationKind;
    use nvme::target::{HeldKind, RegisteredHost};

    fn name(namespace: u32) -> NamespaceName {
        NamespaceName { subsystem: "nqn.2026-11.io.rackweave:disk".into(), namespace }
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
        let mut state = State::open(Some(&place)).expect("it is made");
        let uuids = [1, 2].map(|namespace| state.uuid(&name(namespace), None));
        assert_ne!(uuids[0], uuids[1]);
        state.uuid(&name(3), Some([9; 16]));
        state.set_reservations(&name(1), held(true));
        state.set_reservations(&name(2), held(false));
        state.save().expect("there is a disk");
        let mut again = State::open(Some(&place)).expect("it was written");
        assert_eq!([1, 2].map(|namespace| again.uuid(&name(namespace), None)), uuids);
        assert_eq!(again.uuid(&name(3), None), [9; 16]);
        assert_eq!(again.reservations(&name(1)), held(true));
        assert_eq!(again.reservations(&name(2)), Reservations::default());
    }

    #[test]
    fn without_a_folder_identities_are_the_same_at_every_start() {
        let uuid = || State::open(None).expect("nothing is opened").uuid(&name(1), None);
        assert_eq!(uuid(), uuid());
        assert_eq!((uuid()[6] >> 4, uuid()[8] >> 6), (8, 2));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        let good =
            StateForm::text(&BTreeMap::from([(name(1), Kept { uuid: [1; 16], reservations: Some(held(true)) })]));
        for text in
            ["", "{", "{\"version\":2,\"namespaces\":[]}", &good.replace("0303", "03"), &good.replace(": 2", ": 9")]
        {
            fs::write(&path, text).expect("a disk");
            let error = State::open(folder.path().to_str()).expect_err("it is damaged").to_string();
            assert!(error.contains("move it away to start with new identities"), "{text}: {error}");
            assert_eq!(fs::read_to_string(&path).expect("it stays"), text);
        }
        fs::write(&path, &good).expect("a disk");
        State::open(folder.path().to_str()).expect("it is whole");
    }
}
