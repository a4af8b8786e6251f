//! The ISR header (paper, 4.3, Figure 10): what the hops wrote into a packet, and which way it goes on.
//!
//! A hop on the way out writes itself, the time, whether its queue is long, and *the port that the packet came in by*, which is where the
//! answer has to leave. On the way back each hop takes that port and writes there the port that the answer came in by, so that the host
//! can send the write's data along the same way: each hop keeps one port per direction yet to come, and no state of its own. The paper's
//! header has ids only, which do not tell two cables between the same two adapters apart.

use topology::VertexId;

use crate::id::Port;

/// Most hops of a way; the diameter of an 8 x 8 x 8 torus is 12.
pub const HOPS_MAX: usize = 24;

/// What one hop wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrailHop {
    /// The hop: its vertex.
    pub vertex: u16,
    /// Where a packet in the opposite direction leaves this hop.
    pub port: u16,
    /// When the last packet on the way out passed, in nanoseconds, wrapping.
    pub time_ns: u32,
}

/// The header. On the way out `position` hops have been passed; on the way back that many are still ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    pub(crate) hops: [TrailHop; HOPS_MAX],
    /// Bit `i`: the queue of hop `i` was over the threshold.
    pub(crate) ecn: u32,
    pub(crate) drive_latency_ns: u32,
    pub(crate) length: u8,
    pub(crate) position: u8,
    pub(crate) is_detour: bool,
}

impl Trail {
    /// What one hop adds to the header on the wire.
    pub const HOP_BYTES: u32 = 8;
    /// The hops so far, from the host on.
    pub fn hops(&self) -> &[TrailHop] {
        &self.hops[..usize::from(self.length)]
    }
    /// Hops passed on the way out, hops ahead on the way back.
    pub fn position(&self) -> usize {
        usize::from(self.position)
    }
    /// Time between the last packet of the request reaching the target and this answer leaving it, nanoseconds.
    pub fn drive_latency_ns(&self) -> u32 {
        self.drive_latency_ns
    }
    /// Whether an answer has left its request's way: the hops are then those of the detour, and nobody can go or learn by them. A host
    /// that gets such a ready-to-transfer sends its data with [`Trail::default`].
    pub fn is_detour(&self) -> bool {
        self.is_detour
    }
    /// Marks set at the hops from `index` on: the congestion level of what lies behind.
    pub fn congestion_from(&self, index: usize) -> u32 {
        (self.ecn >> index.min(31)).count_ones()
    }
    /// For the target: the header of an answer to the packet that brought this one (the command of a read, the last data of a write), given
    /// out `drive_latency_ns` after that packet came.
    pub fn turned_at_target(mut self, drive_latency_ns: u32) -> Trail {
        self.position = self.length;
        self.drive_latency_ns = drive_latency_ns;
        self
    }
    /// For the host: the header of data that follows a ready-to-transfer with this header.
    pub fn turned_at_host(self) -> Trail {
        if self.is_detour { Trail::default() } else { Trail { position: 0, drive_latency_ns: 0, ecn: 0, ..self } }
    }
    /// Whether `vertex` is among the hops.
    pub fn has_visited(&self, vertex: VertexId) -> bool {
        self.hops().iter().any(|hop| u32::from(hop.vertex) == vertex.0)
    }
    /// Where a packet on its way out leaves `vertex`, which it visits for the second time in the same direction; for tests and tools.
    pub fn port_at(&self, vertex: VertexId) -> Option<Port> {
        self.hops().iter().find(|hop| u32::from(hop.vertex) == vertex.0).map(|hop| Port(hop.port))
    }
}
