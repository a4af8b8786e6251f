//! The constant parts of a packet's way, and the closed form of a lone message.

use super::PacketRigConfig;
use base::{Bytes, Rate, Span};
use hardware::EthernetStack;
use record::SpanKind;
use transport::Packet;
use transport::cost::Train;

/// What a cut-through switch has to see of a packet before it may go on: preamble and 64 bytes.
const CUT_THROUGH_BYTES: u32 = 72;
const PS_PER_BYTE_AT_1_BPS: u64 = 8_000_000_000_000;

/// Delays of one trip host, switch, host.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    rate: Rate,
    /// Set when a byte takes a whole number of picoseconds: spares a wide division a packet.
    byte: Option<Span>,
    propagation: Span,
    stack: EthernetStack,
    cut_through: bool,
}

/// What makes a lone sender wait between the packets of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Nothing but its link.
    Line,
    /// A fixed window of so many packets.
    Window(u64),
    /// A window of so many packets that grows by one with each acknowledgement.
    SlowStart(u64),
}

impl Path {
    /// Of the network of `config`.
    pub fn new(config: &PacketRigConfig) -> Path {
        let bps = config.rate.as_bps();
        Path {
            rate: config.rate,
            byte: PS_PER_BYTE_AT_1_BPS.is_multiple_of(bps).then(|| Span::ps(PS_PER_BYTE_AT_1_BPS / bps)),
            propagation: config.propagation,
            stack: config.stack,
            cut_through: config.cut_through,
        }
    }
    /// Of `wire` bytes.
    pub fn serialization(&self, wire: u32) -> Span {
        match self.byte {
            Some(byte) => byte * u64::from(wire),
            None => self.rate.span_of(Bytes::new(u64::from(wire))),
        }
    }
    /// From the start of a packet's transmission until the switch may forward it.
    pub fn host_to_switch(&self, packet: &Packet) -> Span {
        if packet.is_one_hop() {
            return self.serialization(packet.wire) + self.neighbour();
        }
        self.first_hop(packet.wire) + self.stack.host_pass() + self.propagation + self.stack.switch_receive()
    }
    /// From the end of a packet's transmission by the switch until the host has it.
    pub fn switch_to_host(&self, packet: &Packet) -> Span {
        if packet.is_one_hop() {
            return self.neighbour();
        }
        self.stack.switch_transmit() + self.propagation + self.stack.host_pass()
    }
    /// From the last bit sent to the neighbour's MAC having the whole frame.
    pub fn neighbour(&self) -> Span {
        self.stack.switch_transmit() * 2 + self.propagation
    }
    /// One trip without serialization and queues.
    pub fn fixed(&self) -> Span {
        self.stack.host_pass() * 2 + self.stack.switch_receive() + self.stack.switch_transmit() + self.propagation * 2
    }
    /// From the start of a lone packet's transmission until the receiving host has it.
    pub fn trip(&self, wire: u32) -> Span {
        self.first_hop(wire) + self.fixed() + self.serialization(wire)
    }
    /// From the start of a pause frame's transmission in the switch until no more packets of that
    /// host arrive. The sum of the frame's way, one longest packet that has just begun, and the
    /// contents of both pipelines and the fibre.
    pub fn pause_loop(&self, pause_wire: u32, longest_wire: u32) -> Span {
        let to_host = self.serialization(longest_wire) + self.serialization(pause_wire) + self.neighbour();
        let from_host = self.stack.host_pass() + self.propagation + self.stack.switch_receive();
        to_host + self.serialization(longest_wire) + from_host
    }
    /// The parts of the way of a packet of `wire` bytes from the start of its transmission until
    /// the switch may forward it.
    pub(super) fn way_to_switch(&self, wire: u32) -> [(SpanKind, Span); 7] {
        let EthernetStack { protocol, mac, pcs, transceiver, forwarding } = self.stack;
        [
            (SpanKind::Stack, protocol),
            (SpanKind::Serialization, self.first_hop(wire)),
            (SpanKind::Mac, mac * 2),
            (SpanKind::Pcs, pcs * 2),
            (SpanKind::Transceiver, transceiver * 2),
            (SpanKind::Propagation, self.propagation),
            (SpanKind::Forwarding, forwarding),
        ]
    }
    /// The same from the start of its transmission by the switch until the host has it.
    pub(super) fn way_to_host(&self, wire: u32) -> [(SpanKind, Span); 6] {
        let EthernetStack { protocol, mac, pcs, transceiver, .. } = self.stack;
        [
            (SpanKind::Serialization, self.serialization(wire)),
            (SpanKind::Mac, mac * 2),
            (SpanKind::Pcs, pcs * 2),
            (SpanKind::Transceiver, transceiver * 2),
            (SpanKind::Propagation, self.propagation),
            (SpanKind::Stack, protocol),
        ]
    }

    /// Serialization that a packet waits for on the first hop.
    fn first_hop(&self, wire: u32) -> Span {
        self.serialization(if self.cut_through { wire.min(CUT_THROUGH_BYTES) } else { wire })
    }

    /// From the submission of a lone message until its last packet is at the receiving host.
    pub fn lone_message(&self, train: &Train, departures: &Departures) -> Span {
        if train.packets == 1 {
            return self.trip(train.first);
        }
        let last = train.packets - 1;
        // A longer first packet holds all others up, and with store and forward those on the second
        // hop too.
        let behind_first = self.serialization(train.first) - self.serialization(train.middle);
        let start = |index| departures.at(index) + if index == 0 { Span::ZERO } else { behind_first };
        let (before, before_wire) = (start(last - 1), if last == 1 { train.first } else { train.middle });
        let held_up = self.first_hop(train.first).max(self.first_hop(before_wire));
        let ahead = before + held_up + self.serialization(before_wire);
        let arrived = start(last) + self.first_hop(train.last);
        arrived.max(ahead) + self.serialization(train.last) + self.fixed()
    }
}

/// When the packets of a lone message leave, counted from the first, all as long as the middle
/// ones.
#[derive(Clone, Debug)]
pub struct Departures {
    packet: Span,
    /// Time from one window's first packet to the next's, for windows that do not fill the round
    /// trip.
    window: Option<(u64, Span)>,
    /// The first ones, until only the link limits.
    table: Vec<Span>,
}

impl Departures {
    /// Of a design that makes trains like `train`, paced by `pacing`.
    pub fn new(path: &Path, train: &Train, pacing: Pacing) -> Departures {
        let packet = path.serialization(train.middle);
        let round_trip = path.trip(train.middle) + path.trip(train.acknowledgement);
        let line = Departures { packet, window: None, table: Vec::new() };
        match pacing {
            Pacing::Line => line,
            Pacing::Window(window) if packet * window >= round_trip => line,
            Pacing::Window(window) => Departures { window: Some((window, round_trip)), ..line },
            Pacing::SlowStart(initial) => Departures { table: slow_start(initial, packet, round_trip), ..line },
        }
    }
    /// When packet `index` leaves.
    pub fn at(&self, index: u64) -> Span {
        if let Some((window, round_trip)) = self.window {
            return round_trip * (index / window) + self.packet * (index % window);
        }
        match (self.table.get(index as usize), self.table.last()) {
            (Some(start), _) => *start,
            (None, Some(last)) => *last + self.packet * (index + 1 - self.table.len() as u64),
            (None, None) => self.packet * index,
        }
    }
}

/// When packets leave if the window starts at `initial` packets and every acknowledgement opens it
/// by two: packet k needs acknowledgement number ceil((k + 1 - initial) / 2). Ends where that one
/// lies a round trip of packets back: from there on only the link limits.
fn slow_start(initial: u64, packet: Span, round_trip: Span) -> Vec<Span> {
    let mut starts: Vec<Span> = Vec::new();
    for k in 0.. {
        let line = starts.last().map_or(Span::ZERO, |previous| *previous + packet);
        let awaited = (k + 1u64).checked_sub(initial).map_or(0, |beyond| beyond.div_ceil(2));
        if awaited > 0 && packet * (k + 1 - awaited) >= round_trip {
            break;
        }
        let opened = if awaited == 0 { Span::ZERO } else { starts[awaited as usize - 1] + round_trip };
        starts.push(line.max(opened));
    }
    starts
}
