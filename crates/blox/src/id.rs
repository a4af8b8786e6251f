//! Names inside the room.

use base::{NodeId, Time};
use serde::{Deserialize, Serialize};
use std::num::NonZero;

/// A virtual solid-state drive, unique in its rack (RackBlox, 3.3: four bytes on the wire).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VssdId(pub u32);

impl VssdId {
    /// As an index into a table of vSSDs.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The page of a vSSD that one request is about; also Hermes's key (4 KiB).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Page(pub u64);

/// Represents the data of a page: a number that no two writes of a run share (0: never written). On
/// the wire it is the first eight bytes of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Value(pub u64);

impl Value {
    /// Stands for data that are not there any more: no checksum fits, and no replica is known that
    /// has them. No write has it.
    pub const ROTTEN: Value = Value(u64::MAX);
}

/// A client's number for a request of its own, handed back in the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tag(pub u64);

/// Names a write that its client may send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId {
    /// The client.
    pub client: NodeId,
    /// Which of its lives: one that was started anew has forgotten what it had open.
    /// (Not 0: packets stay small.)
    pub life: NonZero<u32>,
    /// Its number for the write. Those of one life rise.
    pub tag: Tag,
}

impl WriteId {
    /// No other comes before it.
    pub(crate) const FIRST: WriteId = WriteId { client: NodeId(0), life: NonZero::<u32>::MIN, tag: Tag(0) };
}

/// A write that its client may send again, and which of its writes it still may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The write.
    pub id: WriteId,
    /// The oldest write of the volume that the client has open. No older one is sent again.
    pub oldest: Tag,
}

/// The earlier of two times, of which there need not be any.
pub(crate) fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}
