//! Adapters that forward so many packets a second: each is a FIFO with a fixed time a frame.

use base::{Span, Time};
use plan::san::Passing;
use record::metric::Meter;
use san::{Packet, PacketKind};
use topology::{Graph, VertexId, VertexKind};

/// Preamble, Ethernet header, frame check sequence and gap of a frame.
const FRAME: u64 = 38;
/// The share of a run in which an engine works, from which on it is full.
const FULL: f64 = 0.95;

/// The forwarding engines of all adapters.
#[derive(Clone, Debug)]
pub(super) struct Engines {
    gap: Span,
    /// The longest frame on a wire.
    frame: u32,
    /// By vertex: when its engine is free; nothing where no vertex has one.
    free_at: Vec<Option<Time>>,
    /// By vertex: how long its engine has worked.
    busy: Vec<Span>,
}

impl Engines {
    /// All free.
    pub fn new(graph: &Graph, passing: &Passing) -> Engines {
        let (gap, frame) = (passing.adapter_gap, (passing.mtu.count() + FRAME) as u32);
        let has_engine = |vertex| graph.vertex(vertex).kind == VertexKind::Adapter;
        let vertices = graph.vertex_ids().filter(|_| gap > Span::ZERO);
        let free_at: Vec<Option<Time>> = vertices.map(|vertex| has_engine(vertex).then_some(Time::ZERO)).collect();
        let busy = vec![Span::ZERO; free_at.len()];
        Engines { gap, frame, free_at, busy }
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
        let work = self.gap * u64::from(packet.frame.div_ceil(self.frame));
        *free_at = begin + work;
        self.busy[vertex.index()] += work;
        (begin > now).then_some(begin)
    }

    /// Warns of the adapter that forwarded without a pause for nearly all of `time`, if one did.
    pub fn warn(&self, time: Span, graph: &Graph, meter: &mut Meter) {
        let busiest = (0..self.busy.len()).max_by_key(|vertex| self.busy[*vertex]);
        let Some(vertex) = busiest.filter(|vertex| self.busy[*vertex].as_ps() as f64 > FULL * time.as_ps() as f64)
        else {
            return;
        };
        let name = &graph.vertex(VertexId(vertex as u32)).name;
        meter
            .warn(format!("adapter {name} forwards as many frames as it can (fabric.adapter_gap): it is what is full"));
    }
}
