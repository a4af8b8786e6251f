//! The replica table and the destination table (3.3, Figure 5) as the register arrays of a
//! programmable switch.
//!
//! A packet in the pipeline may access one entry of each array, once, and the arrays in the order
//! of their stages. A [`Pass`] enforces this: it provides each array as a value that an access
//! consumes, so code that would need two entries of an array does not compile. The order of stages
//! is asserted. Further accesses require another pass of the packet.

use crate::VssdId;
use base::{Bytes, NodeId};
use std::cell::Cell;

/// State of a vSSD, as in the replica table's GC byte. The destination table's bit is 1 in
/// [`Asking`](Phase::Asking), [`Granted`](Phase::Granted) and mostly in
/// [`Releasing`](Phase::Releasing).
///
/// Asking and releasing are locks: exactly one recirculating packet holds them, and only that
/// packet ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Does not collect.
    Idle = 0,
    /// Collects.
    Granted = 1,
    /// Has sent a soft request; its replicas are being checked.
    Asking = 2,
    /// Its entry is being cleared or replaced.
    Releasing = 3,
}

/// What the replica table holds for a vSSD that has not been created, and the destination table for
/// its server.
const NONE: u32 = u32::MAX;

/// Both tables.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    replica: Vec<u32>,
    server: Vec<u32>,
    collecting: Vec<bool>,
    phase: Vec<Phase>,
    /// The stage that the current packet has reached.
    stage: Cell<u8>,
}

/// What the tables of a number of entries take in the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableBytes {
    /// The replica table: GC status (1 B), replica vSSD (4 B) and the vSSD itself (4 B), which an
    /// exact match compares, an entry.
    pub replica: Bytes,
    /// The destination table: GC status (1 B), server address (4 B) and the vSSD (4 B) an entry.
    pub destination: Bytes,
    /// How much of both is GC status, and therefore in registers.
    pub registers: Bytes,
}

/// What the tables take in the switch with `entries` vSSDs: 131,072 where 64 servers have 16 SSDs
/// of 128 vSSDs each. The paper's text says 64 K of them, but its 1.3 MB (3.3) fit the product
/// only.
pub fn table_bytes(entries: u32) -> TableBytes {
    let entries = u64::from(entries);
    TableBytes {
        replica: Bytes::new(9 * entries),
        destination: Bytes::new(9 * entries),
        registers: Bytes::new(2 * entries),
    }
}

impl Tables {
    pub fn new(entries: u32) -> Tables {
        let entries = entries as usize;
        Tables {
            replica: vec![NONE; entries],
            server: vec![NONE; entries],
            collecting: vec![false; entries],
            phase: vec![Phase::Idle; entries],
            stage: Cell::new(0),
        }
    }

    pub fn holds(&self, vssd: VssdId) -> bool {
        vssd.index() < self.replica.len()
    }

    pub fn clear(&mut self) {
        *self = Tables::new(self.replica.len() as u32);
    }

    /// One packet's way through the pipeline.
    pub fn pass(&mut self) -> Pass<'_> {
        let stage = &self.stage;
        stage.set(0);
        Pass {
            replica: Register { array: &mut self.replica, place: 1, stage },
            server: Register { array: &mut self.server, place: 2, stage },
            collecting: Register { array: &mut self.collecting, place: 3, stage },
            phase: Register { array: &mut self.phase, place: 4, stage },
        }
    }

    /// The GC bits of a vSSD, destination table first. For tests and statistics: a control plane
    /// reads registers beside the pipeline.
    pub fn bits(&self, vssd: VssdId) -> (bool, Phase) {
        (self.collecting[vssd.index()], self.phase[vssd.index()])
    }

    /// Returns whether the vSSD is in the tables, read like [`bits`](Tables::bits).
    pub fn is_registered(&self, vssd: VssdId) -> bool {
        self.holds(vssd) && self.replica[vssd.index()] != NONE
    }

    /// The server of a vSSD, read like [`bits`](Tables::bits); `None` if it has not been created.
    pub fn server_of(&self, vssd: VssdId) -> Option<NodeId> {
        self.server.get(vssd.index()).copied().filter(|held| *held != NONE).map(NodeId)
    }
}

/// The arrays, each to be touched once, in this order.
pub(crate) struct Pass<'a> {
    /// Replica table: the replica of a vSSD.
    pub replica: Register<'a, u32>,
    /// Destination table: the server of a vSSD.
    pub server: Register<'a, u32>,
    /// Destination table: GC status.
    pub collecting: Register<'a, bool>,
    /// Replica table: GC status.
    pub phase: Register<'a, Phase>,
}

/// An array that has not been touched in this pass.
pub(crate) struct Register<'a, T> {
    array: &'a mut [T],
    place: u8,
    stage: &'a Cell<u8>,
}

impl<T: Copy> Register<'_, T> {
    /// Reads an entry and writes what `change` makes of it: all that a stateful unit can do. Gives
    /// what was there.
    fn touch(self, vssd: VssdId, change: impl FnOnce(T) -> T) -> T {
        debug_assert!(self.stage.get() < self.place, "a packet does not flow back to an earlier stage");
        self.stage.set(self.place);
        let entry = &mut self.array[vssd.index()];
        std::mem::replace(entry, change(*entry))
    }

    /// Reads an entry.
    pub fn read(self, vssd: VssdId) -> T {
        self.touch(vssd, |held| held)
    }

    /// Writes an entry and gives what was there.
    pub fn write(self, vssd: VssdId, value: T) -> T {
        self.touch(vssd, |_| value)
    }
}

impl Register<'_, Phase> {
    /// Changes from one of `from` to `to`; otherwise unchanged. Returns the old phase.
    pub fn step(self, vssd: VssdId, from: &[Phase], to: Phase) -> Phase {
        self.touch(vssd, |held| if from.contains(&held) { to } else { held })
    }
}

impl Register<'_, u32> {
    /// The replica of a vSSD; `None` when it has not been created.
    pub fn replica_of(self, vssd: VssdId) -> Option<VssdId> {
        Some(self.read(vssd)).filter(|held| *held != NONE).map(VssdId)
    }

    /// The server of a vSSD; `None` when it has not been created.
    pub fn server_of(self, vssd: VssdId) -> Option<NodeId> {
        Some(self.read(vssd)).filter(|held| *held != NONE).map(NodeId)
    }

    /// Replaces an entry, or empties it.
    pub fn set(self, vssd: VssdId, value: Option<u32>) {
        self.write(vssd, value.unwrap_or(NONE));
    }
}
