//! Requests in flight and the commands that belong to them.

use super::track::{Owner, Tracks};
use sdirect::{ClientId, CommandId};
use std::collections::BTreeMap;

/// All requests in flight.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Where their time goes.
    pub tracks: Tracks,
    owners: BTreeMap<CommandId, Owner>,
    /// Number of the next command of clients on the machine itself.
    next_number: u32,
    /// Requests that did not succeed.
    pub failed: u64,
}

impl Requests {
    /// Names the command of a client on the machine itself.
    pub fn name(&mut self, client: u16, owner: Owner) -> CommandId {
        let id = CommandId { client: ClientId(client), number: self.next_number };
        self.next_number = self.next_number.wrapping_add(1);
        self.owners.insert(id, owner);
        id
    }
    /// Notes the request that a command belongs to, if it has one.
    pub fn insert(&mut self, id: CommandId, owner: Option<Owner>) {
        self.owners.extend(owner.map(|owner| (id, owner)));
    }
    /// The request that a command belongs to.
    pub fn owner_of(&self, id: CommandId) -> Option<Owner> {
        self.owners.get(&id).copied()
    }
    /// The same at its end.
    pub fn forget(&mut self, id: CommandId) -> Option<Owner> {
        self.owners.remove(&id)
    }
}
