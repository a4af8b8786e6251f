//! Adapters that forward so many packets a second: each is a FIFO with a fixed time a frame.

use base::{Span, Time};
use plan::san::Passing;
use san::{Packet, PacketKind};
use topology::{Graph, VertexId, VertexKind};

/// Preamble, Ethernet header, frame check sequence and gap of a frame.
const FRAME: u64 = 38;

/// The forwarding engines of all adapters.
#[derive(Clone, Debug)]
pub(super) struct Engines {
    gap: Span,
    /// The longest frame on a wire.
    frame: u32,
    /// By vertex: when its engine is free; nothing where no vertex has one.
    free_at: Vec<Option<Time>>,
}

impl Engines {
    /// All free.
    pub fn new(graph: &Graph, passing: &Passing) -> Engines {
        let (gap, frame) = (passing.adapter_gap, (passing.mtu.count() + FRAME) as u32);
        let has_engine = |vertex| graph.vertex(vertex).kind == VertexKind::Adapter;
        let vertices = graph.vertex_ids().filter(|_| gap > Span::ZERO);
        let free_at = vertices.map(|vertex| has_engine(vertex).then_some(Time::ZERO)).collect();
        Engines { gap, frame, free_at }
    }

    /// A packet comes: when its engine begins with it, if it has to wait. A pause stops a port
    /// before anything is forwarded.
    #[inline]
    pub fn take(&mut self, now: Time, vertex: VertexId, packet: &Packet) -> Option<Time> {
        if self.free_at.is_empty() || matches!(packet.kind, PacketKind::Pause { .. }) {
            return None;
        }
        let free_at = self.free_at[vertex.index()].as_mut()?;
        let begin = now.max(*free_at);
        *free_at = begin + self.gap * u64::from(packet.frame.div_ceil(self.frame));
        (begin > now).then_some(begin)
    }
}
