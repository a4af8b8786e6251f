//! Links: when a frame is at the other end, and where its time went.

use super::flights::Flight;
use super::track::LegParts;
use base::{Bytes, Length, Serialization, Span, Time};
use hardware::Link;
use plan::san::{EndTimes, Passing};
use san::hop::Cards;
use san::{Packet, PacketKind, Port};
use topology::{Channel, Graph, Medium, VertexId, VertexKind};
use transport::framing::pause_wire;

/// Light in glass: 5 ns a metre, a refractive index of 1.5.
const PS_PER_MILLIMETRE: u64 = 5;

/// One direction of a link, as who sends needs it: a cache line.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Leg {
    link: Link,
    serialization: Serialization,
    /// Which of the times are its own.
    times: u32,
    is_up: bool,
}

const _: () = assert!(size_of::<Leg>() == 64);

/// Where a leg ends, and which times are its own: all that who receives needs. Apart, so that those
/// of all legs lie close together.
#[derive(Clone, Copy, Debug)]
struct End {
    to: VertexId,
    to_port: Port,
    times: u32,
}

/// What a frame takes on a leg beside its bits. Most legs of a network have these in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    propagation: Span,
    /// Adapters, switches and boards that end the leg, or begin it, before the part there has the
    /// frame.
    forwarding: Span,
    /// Between two cards of the adapter that sends; zero where none has several.
    crossing: Span,
    /// Software of the end that receives.
    stack: Span,
    /// Software of the end that sends; zero where a hop does.
    send_stack: Span,
}

impl Times {
    /// From the last bit leaving until the other end has the frame.
    fn behind(&self) -> Span {
        self.propagation + self.forwarding + self.stack
    }
}

/// When and where a packet went onto a leg.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// Which leg.
    pub channel: Channel,
    /// When it began to wait for the sending end's link.
    pub ready_at: Time,
    /// When its first bit went.
    start: Time,
    /// What has become of it.
    pub fate: Fate,
}

/// What becomes of a packet on a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It will arrive.
    Arrives,
    /// The link was cut while it was on it.
    Lost,
    /// It waits in an adapter at the end of the leg.
    Waits,
    /// It is not on a leg any more.
    Gone,
}

/// All links of a graph.
#[derive(Clone, Debug)]
pub(super) struct Wires {
    legs: Vec<Leg>,
    ends: Vec<End>,
    /// All that differ.
    times: Vec<Times>,
    /// The channels of vertex `v` by port: `channels[offsets[v]..offsets[v + 1]]`.
    offsets: Vec<u32>,
    channels: Vec<Channel>,
    /// By channel: the number of its cable at the end that sends; none for a board's. Empty where
    /// no adapter has several cards.
    cables: Vec<Option<u32>>,
    cards: Cards,
}

impl Wires {
    /// Of a graph in which everything works.
    pub fn new(graph: &Graph, passing: &Passing, ends: &EndTimes) -> Wires {
        let mut offsets = vec![0];
        let mut channels = Vec::new();
        for vertex in graph.vertex_ids() {
            channels.extend(graph.hops(vertex).iter().map(|hop| hop.channel));
            offsets.push(channels.len() as u32);
        }
        let all = || (0..graph.channel_count() as u32).map(Channel);
        let has_cards = passing.card_crossing > Span::ZERO;
        let cables = all().filter(|_| has_cards).map(|channel| graph.egress_port(channel)).collect();
        let cards = Cards { ports: passing.card_ports };
        let mut wires =
            Wires { legs: Vec::new(), ends: Vec::new(), times: Vec::new(), offsets, channels, cables, cards };
        for channel in all() {
            wires.add(graph, channel, times(graph, passing, ends, channel));
        }
        wires
    }

    /// The next leg.
    fn add(&mut self, graph: &Graph, channel: Channel, times: Times) {
        let known = self.times.iter().position(|known| *known == times);
        let place = known.unwrap_or_else(|| {
            self.times.push(times);
            self.times.len() - 1
        });
        let (rate, times) = (graph.link(channel.link()).rate, place as u32);
        self.legs.push(Leg { link: Link::new(rate), serialization: Serialization::new(rate), times, is_up: true });
        let to = graph.target(channel);
        let to_port = graph.hops(to).iter().position(|hop| hop.channel == channel.reverse());
        let to_port = to_port.expect("a channel of a whole graph has its reverse among the hops of its end");
        self.ends.push(End { to, to_port: Port(to_port as u16), times });
    }

    /// The channel out of a port.
    pub fn channel(&self, vertex: VertexId, port: Port) -> Channel {
        self.channels[self.offsets[vertex.index()] as usize + port.index()]
    }
    /// How many ports a vertex has.
    pub fn ports(&self, vertex: VertexId) -> u16 {
        (self.offsets[vertex.index() + 1] - self.offsets[vertex.index()]) as u16
    }
    /// Where a channel ends, and at which port there.
    pub fn end(&self, channel: Channel) -> (VertexId, Port) {
        let end = &self.ends[channel.index()];
        (end.to, end.to_port)
    }
    /// Whether frames pass.
    pub fn is_up(&self, channel: Channel) -> bool {
        self.legs[channel.index()].is_up
    }
    /// Cuts or mends a link.
    pub fn set_up(&mut self, channel: Channel, is_up: bool) {
        self.legs[channel.index()].is_up = is_up;
        self.legs[channel.reverse().index()].is_up = is_up;
    }

    /// Sends as soon as the link is free; returns when the other end has the packet.
    #[inline(always)]
    pub fn send(&mut self, now: Time, channel: Channel, packet: &Packet) -> (Time, Leaving) {
        let leg = &mut self.legs[channel.index()];
        let times = &self.times[leg.times as usize];
        let serialization = leg.serialization.of(Bytes::new(u64::from(packet.frame)));
        let (start, end) = leg.link.occupy(now + times.send_stack, serialization);
        let leaving = Leaving { channel, ready_at: now, start, fate: Fate::Arrives };
        // Pauses pass no part behind the end of the link.
        let is_pause = matches!(packet.kind, PacketKind::Pause { .. });
        let behind = if is_pause { times.propagation } else { times.behind() };
        let crossing = if self.cables.is_empty() { Span::ZERO } else { self.crossing(channel, packet) };
        (end + behind + crossing, leaving)
    }

    /// Time between two cards of an adapter that a packet spends before this leg. A pause comes
    /// from nowhere.
    #[cold]
    fn crossing(&self, channel: Channel, packet: &Packet) -> Span {
        let (from, _) = self.end(channel.reverse());
        let times = &self.times[self.legs[channel.index()].times as usize];
        let is_pause = matches!(packet.kind, PacketKind::Pause { .. });
        if times.crossing == Span::ZERO || is_pause || packet.ingress >= self.ports(from) {
            return Span::ZERO;
        }
        let ingress = self.channel(from, Port(packet.ingress));
        match (self.cables[ingress.index()], self.cables[channel.index()]) {
            (Some(ingress), Some(egress)) if self.cards.crosses(ingress, egress) => times.crossing,
            _ => Span::ZERO,
        }
    }

    /// Where the time of a flight went, up to its arrival, which is `now`: these parts sum to the
    /// time since it was ready exactly.
    #[inline]
    pub fn parts(&mut self, now: Time, flight: &Flight) -> LegParts {
        let Leaving { channel, ready_at, start, .. } = flight.leaving;
        let crossing = if self.cables.is_empty() { Span::ZERO } else { self.crossing(channel, &flight.packet) };
        let times = &self.times[self.ends[channel.index()].times as usize];
        let waited = start - (ready_at + times.send_stack);
        // Bits before it on that link that are its own I/O's.
        let own = match flight.packet.kind {
            PacketKind::Response if flight.packet.operation == base::Operation::Read => {
                let serialization = &mut self.legs[channel.index()].serialization;
                waited.min(serialization.of(Bytes::new(u64::from(flight.packet.bytes))))
            }
            _ => Span::ZERO,
        };
        let bits = (now - start) - times.behind() - crossing;
        LegParts {
            serialization: bits + own,
            propagation: times.propagation,
            forwarding: times.forwarding + crossing,
            nic_queue: waited - own,
            send_stack: times.send_stack,
            stack: times.stack,
        }
    }

    /// How long each direction of each link was busy.
    pub fn busy(&self, out: &mut Vec<Span>) {
        out.extend(self.legs.iter().map(|leg| leg.link.busy()));
    }

    /// The same without the two ends' software: from the first bit of a lone frame of so many bytes
    /// leaving until it is at the other end.
    pub fn lone(&self, channel: Channel, frame: u32) -> Span {
        let leg = &self.legs[channel.index()];
        let mut serialization = leg.serialization;
        let Times { propagation, forwarding, .. } = self.times[leg.times as usize];
        serialization.of(Bytes::new(u64::from(frame))) + propagation + forwarding
    }
}

fn times(graph: &Graph, passing: &Passing, ends: &EndTimes, channel: Channel) -> Times {
    let (link, from, to) = (graph.link(channel.link()), graph.source(channel), graph.target(channel));
    let kind = |vertex| graph.vertex(vertex).kind;
    let board = if link.medium == Medium::Board { passing.board_latency } else { Span::ZERO };
    let pass = match kind(to) {
        VertexKind::Adapter => passing.adapter_latency,
        VertexKind::Switch => passing.switch_latency,
        VertexKind::Host | VertexKind::Target => Span::ZERO,
    };
    Times {
        propagation: propagation(link.length),
        forwarding: pass + board,
        crossing: if kind(from) == VertexKind::Adapter { passing.card_crossing } else { Span::ZERO },
        stack: if kind(to) == VertexKind::Target { ends.target_receive } else { Span::ZERO },
        send_stack: match kind(from) {
            VertexKind::Host => ends.host_send,
            VertexKind::Target => ends.target_send,
            VertexKind::Adapter | VertexKind::Switch => Span::ZERO,
        },
    }
}

/// What may still come in by `link` once a hop wants its neighbour there to pause: what the loop of
/// link, parts and software holds, and of frames of at most `longest` the one that crossed the
/// threshold, those that both ends are sending, and one that has come in meanwhile.
pub(super) fn headroom(graph: &Graph, passing: &Passing, ends: &EndTimes, link: Channel, longest: Bytes) -> Bytes {
    let times = times(graph, passing, ends, link);
    let rate = graph.link(link.link()).rate;
    let in_loop = times.propagation * 2 + times.forwarding + times.send_stack;
    rate.bytes_in(in_loop) + Bytes::new(u64::from(pause_wire())) + longest * 4
}

fn propagation(length: Length) -> Span {
    Span::ps(length.as_mm() * PS_PER_MILLIMETRE)
}
