//! Identifiers of sessions, drives, ports and commands.

/// One host with one drive: an NVMe-oF association. Numbered from 0 by the code that builds the
/// network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// A drive, numbered from 0 over the whole network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveId(pub u32);

/// A port of a vertex: the index of a channel among [`topology::Graph::hops`] of the *whole* graph,
/// so that a failure does not renumber ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// Identifies one command of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// The session that issued the command.
    pub session: SessionId,
    /// NVMe command identifier, unique among the open commands of the session.
    pub command: u16,
    /// Distinguishes repeats by association and send, see [`crate::session::Attempt`]. A repeat
    /// within the association keeps its command identifier, like a transport's retransmission. A
    /// repeat under another association is a new command, as NVMe requires.
    pub attempt: u16,
}

impl SessionId {
    /// Returns the index into a table of sessions.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl DriveId {
    /// Returns the index into a table of drives.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Port {
    /// Returns the index into a table of ports.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
