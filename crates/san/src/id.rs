//! Names of what a storage network carries.

/// One host with one drive: an NVMe-oF association. Counted from 0 by whoever wires the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// A drive, counted from 0 over the whole network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveId(pub u32);

/// A port of a vertex: the index of a channel among [`topology::Graph::hops`] of the *whole* graph,
/// so that a failure renumbers nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// One command of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// The session that issued the command.
    pub session: SessionId,
    /// NVMe command identifier, unique among the commands of the session that are open.
    pub command: u16,
    /// Tells repeats apart: association and send, see [`crate::session::Attempt`]. A repeat within
    /// the association keeps its command identifier, as a transport repeats; one under another
    /// association is a new command, as NVMe demands.
    pub attempt: u16,
}

impl SessionId {
    /// As an index into a table of sessions.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl DriveId {
    /// As an index into a table of drives.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Port {
    /// As an index into a table of ports.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
