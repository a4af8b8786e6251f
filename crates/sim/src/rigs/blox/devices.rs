//! The drives of all servers, and what they are doing.

use super::drives::Drives;
use super::swaps::Swapped;
use crate::slab::Slab;
use blox::{DeviceJob, Tag, Value, VssdId};
use hardware::ssd::Booked;
use std::ops::{Index, IndexMut};

/// An operation of a drive.
#[derive(Clone, Copy, Debug)]
pub enum Doing {
    /// Reads a page for a server, and for a client's request if it has a tag.
    Read { job: DeviceJob, value: Value, booked: Booked, tag: Option<Tag> },
    /// Writes a page for a server.
    Write { job: DeviceJob },
    /// Collects garbage.
    Collect { vssd: VssdId, stream: u32, freed: bool },
    /// Copies a page of a swap.
    Copy(Swapped),
}

/// The drives, by server.
pub struct Devices {
    /// Those of the other rack last.
    pub servers: Vec<Drives>,
    doing: Slab<(usize, Doing)>,
}

impl Devices {
    /// Idle drives.
    pub fn new(servers: Vec<Drives>) -> Devices {
        Devices { servers, doing: Slab::new() }
    }
    /// Notes an operation of a server's drive; returns its number.
    pub fn begin(&mut self, server: usize, doing: Doing) -> u32 {
        self.doing.insert((server, doing))
    }
    /// Ends an operation.
    pub fn end(&mut self, number: u32) -> (usize, Doing) {
        self.doing.remove(number)
    }
}

impl Index<usize> for Devices {
    type Output = Drives;
    fn index(&self, server: usize) -> &Drives {
        &self.servers[server]
    }
}

impl IndexMut<usize> for Devices {
    fn index_mut(&mut self, server: usize) -> &mut Drives {
        &mut self.servers[server]
    }
}
