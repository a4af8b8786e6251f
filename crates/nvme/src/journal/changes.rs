//! Changes of the configuration while hosts are connected.

use super::{ADD, PATH, Player, REMOVE, RESIZE, Recorder, ReplayError, SECURED};
use crate::Nqn;
use crate::log::AnaState;
use crate::target::{BackendId, Channel, ConnectionId, ManageError, NamespaceConfig, PathState, PortId, Reservations};
use base::Time;
use std::io::{Read, Write};

const READ_ONLY: u8 = 1;
const VOLATILE_CACHE: u8 = 2;
const KEEPS_RESERVATIONS: u8 = 4;
const LENDS: u8 = 8;

/// A name with its length before it; names are shorter than 256 bytes.
fn named(name: Nqn) -> Vec<u8> {
    let text = name.as_str();
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn namespace_bytes(config: &NamespaceConfig) -> Vec<u8> {
    let read_only = if config.is_read_only { READ_ONLY } else { 0 };
    let cache = if config.has_volatile_cache { VOLATILE_CACHE } else { 0 };
    let keeps = if config.keeps_reservations { KEEPS_RESERVATIONS } else { 0 };
    let lends = if config.lends { LENDS } else { 0 };
    [
        &config.id.to_le_bytes()[..],
        &config.backend.0.to_le_bytes(),
        &config.blocks.to_le_bytes(),
        &[config.block_shift],
        &config.uuid,
        &config.nguid,
        &config.eui64,
        &config.group.to_le_bytes(),
        &[read_only | cache | keeps | lends],
    ]
    .concat()
}

impl<W: Write> Recorder<W> {
    /// As [`Target::add_namespace`](crate::target::Target::add_namespace); the namespace begins
    /// without reservations.
    pub fn add_namespace(&mut self, now: Time, name: Nqn, config: NamespaceConfig) -> Result<(), ManageError> {
        let config = NamespaceConfig { reservations: Reservations::default(), ..config };
        let told = [named(name), namespace_bytes(&config)].concat();
        let outcome = self.target.add_namespace(now, name, config);
        self.entry(ADD, now, &[&told, &[u8::from(outcome.is_ok())]]);
        outcome
    }

    /// As [`Target::remove_namespace`](crate::target::Target::remove_namespace).
    pub fn remove_namespace(&mut self, now: Time, name: Nqn, id: u32) -> Result<BackendId, ManageError> {
        let outcome = self.target.remove_namespace(now, name, id);
        self.entry(REMOVE, now, &[&named(name), &id.to_le_bytes(), &[u8::from(outcome.is_ok())]]);
        outcome
    }

    /// As [`Target::resize_namespace`](crate::target::Target::resize_namespace).
    pub fn resize_namespace(&mut self, now: Time, name: Nqn, id: u32, blocks: u64) -> Result<(), ManageError> {
        let outcome = self.target.resize_namespace(now, name, id, blocks);
        let decided = [u8::from(outcome.is_ok())];
        self.entry(RESIZE, now, &[&named(name), &id.to_le_bytes(), &blocks.to_le_bytes(), &decided]);
        outcome
    }

    /// As [`Target::set_path`](crate::target::Target::set_path).
    pub fn set_path(&mut self, now: Time, name: Nqn, path: PathState) -> Result<(), ManageError> {
        let outcome = self.target.set_path(now, name, path);
        let state = [path.state.code(), u8::from(outcome.is_ok())];
        self.entry(PATH, now, &[&named(name), &path.port.0.to_le_bytes(), &path.group.to_le_bytes(), &state]);
        outcome
    }
}

impl<W: Write> Recorder<W> {
    /// As [`Target::secured`](crate::target::Target::secured).
    pub fn secured(&mut self, now: Time, connection: ConnectionId, channel: Channel) {
        let names = [named(channel.host), named(channel.subsystem)].concat();
        self.entry(SECURED, now, &[&connection.bits().to_le_bytes(), &names]);
        self.target.secured(now, connection, channel);
    }
}

impl<R: Read> Player<R> {
    pub(super) fn secured(&mut self) -> Result<(), ReplayError> {
        let (connection, host, subsystem) = (ConnectionId::of_bits(self.u64()?), self.name()?, self.name()?);
        self.target.secured(self.now, connection, Channel { host, subsystem });
        Ok(())
    }

    /// A change, and whether it was done.
    pub(super) fn change(&mut self, kind: u8) -> Result<(), ReplayError> {
        let (now, name) = (self.now, self.name()?);
        let is_done = match kind {
            ADD => {
                let config = self.namespace()?;
                self.target.add_namespace(now, name, config).is_ok()
            }
            REMOVE => {
                let id = self.u32()?;
                self.target.remove_namespace(now, name, id).is_ok()
            }
            RESIZE => {
                let (id, blocks) = (self.u32()?, self.u64()?);
                self.target.resize_namespace(now, name, id, blocks).is_ok()
            }
            _ => {
                let path = self.path()?;
                self.target.set_path(now, name, path).is_ok()
            }
        };
        let [recorded] = self.bytes()?;
        self.compare("whether it was done", recorded.into(), is_done.into())
    }

    fn name(&mut self) -> Result<Nqn, ReplayError> {
        let [length] = self.bytes()?;
        let mut bytes = vec![0; length.into()];
        self.journal.read_exact(&mut bytes)?;
        let name = std::str::from_utf8(&bytes).ok().and_then(|name| Nqn::new(name).ok());
        name.ok_or(self.damaged("the length of a name", length.into()))
    }

    fn namespace(&mut self) -> Result<NamespaceConfig, ReplayError> {
        let (id, backend, blocks) = (self.u32()?, BackendId(self.u32()?), self.u64()?);
        let [block_shift] = self.bytes()?;
        let (uuid, nguid, eui64) = (self.bytes()?, self.bytes()?, self.bytes()?);
        let group = self.u32()?;
        let [flags] = self.bytes()?;
        Ok(NamespaceConfig {
            id,
            backend,
            blocks,
            block_shift,
            uuid,
            nguid,
            eui64,
            group,
            is_read_only: flags & READ_ONLY != 0,
            has_volatile_cache: flags & VOLATILE_CACHE != 0,
            keeps_reservations: flags & KEEPS_RESERVATIONS != 0,
            lends: flags & LENDS != 0,
            reservations: Reservations::default(),
        })
    }

    fn path(&mut self) -> Result<PathState, ReplayError> {
        let port = PortId(u16::from_le_bytes(self.bytes()?));
        let group = self.u32()?;
        let [code] = self.bytes()?;
        let state = AnaState::of_code(code).ok_or(self.damaged("the state of a path", code.into()))?;
        Ok(PathState { port, group, state })
    }
}
