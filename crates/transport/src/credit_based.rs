//! A lossless memory fabric with hop-by-hop credits, as CXL inherits it from PCIe.
//!
//! Components and sources:
//! * A message is sent in flits. CXL's 68-byte flit has 64 bytes of payload, 2 of protocol id and 2
//!   of CRC (CXL 2.0, 4.2).
//! * A flit is sent only if its receiver has promised room: the sender holds one credit for each
//!   free place in the input buffer at the other end of the link (PCIe 5.0, 2.6.1; CXL 2.0, 4.2).
//!   Nothing is ever dropped.
//! * There are two virtual channels with separate buffers and credits: requests (reads, and writes
//!   with their data) and answers (the data of reads). PCIe separates posted, non-posted and
//!   completion credits, CXL.mem separates M2S requests from S2M responses, for the same reason: a
//!   blocked request must never block an answer (PCIe 5.0, 2.4.1).
//! * The switch has one FIFO per input port and channel, and a crossbar. Each output serves the
//!   heads of the inputs round robin, and the channels in turn. A head whose target has no credit
//!   or is busy blocks everything behind it. This is the head-of-line blocking that EDM
//!   (ASPLOS'25), 4.3.1, holds responsible for CXL's collapse in incasts.
//! * Credits return with the next flit in the other direction at no cost (the flit header has a
//!   field for them). If a quarter of a buffer is owed and no flit can be sent, they return in a
//!   packet of 8 bytes (a PCIe DLLP with its framing).
//!
//! Assumptions: each of a port's two channels has the whole configured buffer. A buffer place is
//! free again as soon as its flit starts to leave. A device drains its buffer at line rate. A host
//! interleaves its targets flit by flit (each flit is a separate memory transaction), in order
//! within a target and channel.

use crate::common::{Arrived, Inbox, Ready, ReadyRing, Sparse};
use crate::config::CreditBased;
use crate::cost::{Train, WireCost};
use crate::outgoing::Outgoing;
use crate::{Allowance, HostIn, HostOut, Message, Packet, PacketKind, SwitchIn, SwitchOut};
use base::{BoundedQueue, Bytes, NodeId, Operation, Program, Time};

/// Virtual channels: requests and answers.
const CHANNELS: usize = 2;
/// Wire bytes of a credit packet: a PCIe data link layer packet is 6 bytes and 2 of framing (PCIe
/// 5.0, chapters 3 and 4).
pub const CREDIT_PACKET_WIRE: u32 = 8;

/// Creates host or memory device `node`, idle and with all of its credits.
pub fn host(config: &CreditBased, node: NodeId) -> Host {
    Host::new(*config, node)
}

/// Creates an empty switch with `ports` ports and all of its credits.
pub fn switch(config: &CreditBased, ports: u32) -> Switch {
    Switch::new(*config, ports)
}

/// Returns the flits of a lone message of `bytes`. Credits ride on other flits, or wait until
/// enough are owed for a packet.
pub fn train(config: &CreditBased, bytes: Bytes) -> Train {
    Train::new(bytes, config.flit_payload, |_, _| config.flit_wire.count() as u32, 0)
}

/// Returns the wire cost of a lone request of `bytes`, whose read request is `read_request` long,
/// without credit packets.
pub fn wire_cost(config: &CreditBased, operation: Operation, bytes: Bytes, read_request: Bytes) -> WireCost {
    WireCost::of_messages(operation, bytes, read_request, |bytes| train(config, bytes))
}

/// Returns the number of owed credits at which a receiver with a buffer of `buffer` flits sends a
/// credit packet.
pub const fn return_from(buffer: u32) -> u32 {
    if buffer < 4 { 1 } else { buffer / 4 }
}

/// The link-level header of a flit, kept in [`Packet::priority`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlitHeader {
    /// The virtual channel that the flit uses: 0 for requests, 1 for answers.
    channel: usize,
    /// Returned credits, by channel.
    credits: [u32; CHANNELS],
}

impl FlitHeader {
    fn pack(self) -> u64 {
        self.channel as u64 | u64::from(self.credits[0]) << 2 | u64::from(self.credits[1]) << 33
    }
    fn unpack(header: u64) -> FlitHeader {
        let credits = [(header >> 2) as u32 & 0x7fff_ffff, (header >> 33) as u32];
        FlitHeader { channel: (header & 1) as usize, credits }
    }
}

/// One end of a link: its available credits, and those that it owes to the other end.
#[derive(Clone, Debug)]
struct LinkEnd {
    /// Free places at the other end that are not reserved for flits in flight.
    available: [u32; CHANNELS],
    /// Places freed here that were not reported to the other end.
    owed: [u32; CHANNELS],
    /// Number of owed credits at which a credit packet is sent.
    return_from: u32,
}

impl LinkEnd {
    /// Creates a link end. `theirs` is the other end's buffer, `ours` this end's, in flits per
    /// channel.
    fn new(theirs: u32, ours: u32) -> LinkEnd {
        LinkEnd { available: [theirs; CHANNELS], owed: [0; CHANNELS], return_from: return_from(ours) }
    }
    fn may_send(&self, channel: usize) -> bool {
        self.available[channel] > 0
    }
    fn must_return(&self) -> bool {
        self.owed.iter().any(|owed| *owed >= self.return_from)
    }
    fn take_owed(&mut self) -> [u32; CHANNELS] {
        std::mem::take(&mut self.owed)
    }
    fn accept(&mut self, credits: [u32; CHANNELS]) {
        for (available, credits) in self.available.iter_mut().zip(credits) {
            *available += credits;
        }
    }
    /// Uses the credit for `flit` and adds the owed credits to its header.
    fn stamp(&mut self, channel: usize, flit: Packet) -> Packet {
        self.available[channel] -= 1;
        Packet { priority: FlitHeader { channel, credits: self.take_owed() }.pack(), ..flit }
    }
    /// Returns a packet with the owed credits, if there are enough.
    fn credit_packet(&mut self, from: NodeId, to: NodeId) -> Option<Packet> {
        if !self.must_return() {
            return None;
        }
        let header = FlitHeader { channel: 0, credits: self.take_owed() };
        Some(Packet { priority: header.pack(), ..Packet::new(PacketKind::CreditReturn, from, to, CREDIT_PACKET_WIRE) })
    }
}

/// A host's data of one channel, with targets interleaved flit by flit.
#[derive(Clone, Debug)]
struct Outbox {
    pairs: Sparse<Outgoing>,
    turn: ReadyRing,
}

impl Outbox {
    fn new() -> Outbox {
        Outbox { pairs: Sparse::default(), turn: ReadyRing::default() }
    }
    fn push(&mut self, message: &Message) {
        self.pairs[message.target.index()].push(message);
        self.turn.add(message.target);
    }
    /// Returns the next flit, without its header.
    fn next_flit(&mut self, config: &CreditBased, source: NodeId) -> Option<Packet> {
        let target = self.turn.front()?;
        let pair = &mut self.pairs[target.index()];
        let piece = pair.take(config.flit_payload)?;
        self.turn.turn(if pair.is_empty() { Ready::Done } else { Ready::Again });
        Some(piece.packet(source, target, config.flit_wire.count() as u32))
    }
}

/// A host or memory device at the root of its link.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    config: CreditBased,
    link: LinkEnd,
    outboxes: [Outbox; CHANNELS],
    /// The channel that is served first.
    turn: usize,
    /// Reassembly, by source and channel.
    inboxes: Sparse<[Inbox; CHANNELS]>,
}

impl Host {
    fn new(config: CreditBased, node: NodeId) -> Host {
        Host {
            node,
            config,
            link: LinkEnd::new(config.switch_buffer_flits, config.device_buffer_flits),
            outboxes: [Outbox::new(), Outbox::new()],
            turn: 0,
            inboxes: Sparse::default(),
        }
    }
    /// Returns the number of flits that the host may send before it needs credits: requests and
    /// answers.
    pub fn credits(&self) -> [u32; 2] {
        self.link.available
    }
    fn receive(&mut self, packet: &Packet, out: &mut Vec<HostOut>) {
        let header = FlitHeader::unpack(packet.priority);
        self.link.accept(header.credits);
        if packet.kind != PacketKind::Data {
            return;
        }
        self.link.owed[header.channel] += 1;
        if let Arrived::Complete(_) = self.inboxes[packet.source.index()][header.channel].take(packet) {
            out.push(HostOut::Deliver { message: packet.message });
        }
    }
    fn flit_of(&mut self, channel: usize) -> Option<Packet> {
        if !self.link.may_send(channel) {
            return None;
        }
        let flit = self.outboxes[channel].next_flit(&self.config, self.node)?;
        self.turn = 1 - channel;
        Some(self.link.stamp(channel, flit))
    }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;
    fn on(&mut self, _: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match input {
            HostIn::Submit(message) => self.outboxes[usize::from(message.is_answer)].push(&message),
            HostIn::Receive(packet) => self.receive(&packet, out),
            HostIn::Announced(_) => {}
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _: Time, _: &mut Vec<HostOut>) {}
}

impl crate::Host for Host {
    fn poll_transmit(&mut self, _: Time) -> Option<Packet> {
        let (first, second) = (self.turn, 1 - self.turn);
        let flit = self.flit_of(first).or_else(|| self.flit_of(second));
        flit.or_else(|| self.link.credit_packet(self.node, self.node))
    }
    fn allowance(&self) -> Allowance {
        let flits: u64 = self.link.available.iter().copied().map(u64::from).sum();
        Allowance::Window(Bytes::new(flits * self.config.flit_payload.count()))
    }
}

/// A set of input ports.
#[derive(Clone, Debug)]
struct PortSet(Vec<u64>);

impl PortSet {
    fn new(ports: u32) -> PortSet {
        PortSet(vec![0; (ports as usize).div_ceil(64)])
    }
    fn insert(&mut self, port: usize) {
        self.0[port / 64] |= 1 << (port % 64);
    }
    fn remove(&mut self, port: usize) {
        self.0[port / 64] &= !(1 << (port % 64));
    }
    /// Returns the first member at or after `from`, or else the first of all.
    fn next_round(&self, from: usize) -> Option<usize> {
        let (word, below) = (from / 64, (1u64 << (from % 64)) - 1);
        let masked = |index: usize, mask: u64| {
            let bits = self.0[index] & mask;
            (bits != 0).then(|| index * 64 + bits.trailing_zeros() as usize)
        };
        masked(word, !below)
            .or_else(|| (word + 1..self.0.len()).chain(0..word).find_map(|index| masked(index, !0)))
            .or_else(|| masked(word, below))
    }
}

/// One output of the crossbar.
#[derive(Clone, Debug)]
struct Output {
    /// Inputs whose head is for this output, by channel.
    wanted_by: [PortSet; CHANNELS],
    /// The input that is served first, by channel.
    turn: [usize; CHANNELS],
    /// The channel that is served first.
    channel_turn: usize,
    /// Wire bytes for this output anywhere in the switch.
    queued: u64,
    queued_flits: usize,
}

/// One port of the switch.
#[derive(Clone, Debug)]
struct Port {
    link: LinkEnd,
    inputs: [BoundedQueue<Packet>; CHANNELS],
    output: Output,
}

impl Port {
    fn new(config: &CreditBased, ports: u32) -> Port {
        let input = || BoundedQueue::new(config.switch_buffer_flits as usize);
        let output = Output {
            wanted_by: [PortSet::new(ports), PortSet::new(ports)],
            turn: [0; CHANNELS],
            channel_turn: 0,
            queued: 0,
            queued_flits: 0,
        };
        let link = LinkEnd::new(config.device_buffer_flits, config.switch_buffer_flits);
        Port { link, inputs: [input(), input()], output }
    }
}

/// An input-buffered switch with one FIFO per input port and channel.
#[derive(Clone, Debug)]
pub struct Switch {
    ports: Vec<Port>,
    ready: Vec<NodeId>,
}

impl Switch {
    fn new(config: CreditBased, ports: u32) -> Switch {
        Switch { ports: (0..ports).map(|_| Port::new(&config, ports)).collect(), ready: Vec::new() }
    }
    /// Returns the highest number of flits in one input FIFO.
    pub fn highest_input(&self) -> usize {
        self.ports.iter().flat_map(|port| &port.inputs).map(BoundedQueue::highest).max().unwrap_or(0)
    }
    /// Registers the head of an input FIFO at its output.
    fn ask(&mut self, input: usize, channel: usize) {
        let Some(head) = self.ports[input].inputs[channel].front() else { return };
        let target = head.target;
        self.ports[target.index()].output.wanted_by[channel].insert(input);
        self.ready.push(target);
    }
    fn arrive(&mut self, input: usize, packet: Packet, out: &mut Vec<SwitchOut>) {
        let channel = FlitHeader::unpack(packet.priority).channel;
        let queue = &mut self.ports[input].inputs[channel];
        let was_empty = queue.is_empty();
        if let Err(full) = queue.push(packet) {
            out.push(SwitchOut::Drop(full.0));
            return;
        }
        self.ports[packet.target.index()].output.queued += u64::from(packet.wire);
        self.ports[packet.target.index()].output.queued_flits += 1;
        if was_empty {
            self.ask(input, channel);
        }
    }
    /// Returns the input whose turn it is at `output`, if `channel` has a credit there.
    fn winner(&self, output: usize, channel: usize) -> Option<usize> {
        let port = &self.ports[output];
        let wanted = port.link.may_send(channel).then_some(&port.output.wanted_by[channel])?;
        wanted.next_round(port.output.turn[channel])
    }
    fn forward(&mut self, output: usize, channel: usize) -> Option<Packet> {
        let input = self.winner(output, channel)?;
        let flit = self.take_head(input, channel)?;
        let ports = self.ports.len();
        let port = &mut self.ports[output];
        port.output.wanted_by[channel].remove(input);
        port.output.turn[channel] = (input + 1) % ports;
        port.output.channel_turn = 1 - channel;
        port.output.queued -= u64::from(flit.wire);
        port.output.queued_flits -= 1;
        let flit = port.link.stamp(channel, flit);
        self.ask(input, channel);
        Some(flit)
    }
    /// Removes the head of an input FIFO, and schedules its port if enough credits are owed.
    fn take_head(&mut self, input: usize, channel: usize) -> Option<Packet> {
        let port = &mut self.ports[input];
        let flit = port.inputs[channel].pop()?;
        port.link.owed[channel] += 1;
        if port.link.must_return() {
            self.ready.push(NodeId(input as u32));
        }
        Some(flit)
    }
}

impl Program for Switch {
    type In = SwitchIn;
    type Out = SwitchOut;
    fn on(&mut self, _: Time, input: SwitchIn, out: &mut Vec<SwitchOut>) {
        let header = FlitHeader::unpack(input.packet.priority);
        self.ports[input.port.index()].link.accept(header.credits);
        if header.credits != [0; CHANNELS] {
            self.ready.push(input.port);
        }
        if input.packet.kind == PacketKind::Data {
            self.arrive(input.port.index(), input.packet, out);
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _: Time, _: &mut Vec<SwitchOut>) {}
}

impl crate::Switch for Switch {
    fn poll_transmit(&mut self, _: Time, port: NodeId) -> Option<Packet> {
        let output = port.index();
        let first = self.ports[output].output.channel_turn;
        let flit = self.forward(output, first).or_else(|| self.forward(output, 1 - first));
        flit.or_else(|| self.ports[output].link.credit_packet(port, port))
    }
    fn take_ready(&mut self, ports: &mut Vec<NodeId>) {
        ports.append(&mut self.ready);
    }
    fn queued(&self, port: NodeId) -> Bytes {
        Bytes::new(self.ports[port.index()].output.queued)
    }
    fn queued_packets(&self, port: NodeId) -> usize {
        self.ports[port.index()].output.queued_flits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host as _, Switch as _};
    use proptest::prelude::*;

    const BUFFER: u32 = 8;

    fn config() -> CreditBased {
        CreditBased {
            flit_payload: Bytes::new(64),
            flit_wire: Bytes::new(68),
            switch_buffer_flits: BUFFER,
            device_buffer_flits: BUFFER,
        }
    }
    fn message(target: u32, bytes: u64, is_answer: bool) -> HostIn {
        let (source, target) = (NodeId(0), NodeId(target));
        HostIn::Submit(Message {
            id: target.0,
            source,
            target,
            bytes: Bytes::new(bytes),
            is_answer,
            expects_answer: false,
        })
    }
    fn give<P: Program>(program: &mut P, input: P::In) -> Vec<P::Out> {
        let mut out = Vec::new();
        program.on(Time::ZERO, input, &mut out);
        out
    }
    fn sent(host: &mut Host) -> Vec<Packet> {
        std::iter::from_fn(|| host.poll_transmit(Time::ZERO)).collect()
    }
    fn flit_to(target: u32, channel: usize) -> Packet {
        let priority = FlitHeader { channel, credits: [0; CHANNELS] }.pack();
        Packet { priority, payload: 64, value: 64, ..Packet::new(PacketKind::Data, NodeId(0), NodeId(target), 68) }
    }

    #[test]
    fn a_host_stops_at_its_last_credit_and_goes_on_with_the_first_that_comes_back() {
        let mut host = host(&config(), NodeId(0));
        give(&mut host, message(1, 64 * 20, false));
        assert_eq!(sent(&mut host).len(), BUFFER as usize);
        let priority = FlitHeader { channel: 0, credits: [1, 0] }.pack();
        let credit = Packet { priority, ..Packet::new(PacketKind::CreditReturn, NodeId(0), NodeId(0), 8) };
        give(&mut host, HostIn::Receive(credit));
        assert_eq!(sent(&mut host).len(), 1);
    }

    #[test]
    fn requests_without_credits_do_not_hold_answers_up() {
        let mut host = host(&config(), NodeId(0));
        give(&mut host, message(1, 64 * 20, false));
        sent(&mut host);
        give(&mut host, message(2, 64, true));
        assert_eq!(sent(&mut host).len(), 1);
    }

    #[test]
    fn a_host_interleaves_its_targets_and_keeps_each_in_order() {
        let mut host = host(&config(), NodeId(0));
        give(&mut host, message(1, 64 * 3, false));
        give(&mut host, message(2, 64 * 2, false));
        let order: Vec<_> = sent(&mut host).iter().map(|flit| (flit.target.0, flit.offset)).collect();
        assert_eq!(order, [(1, 0), (2, 0), (1, 64), (2, 64), (1, 128)]);
    }

    #[test]
    fn credits_ride_on_flits_and_get_a_packet_only_when_a_quarter_of_the_buffer_is_owed() {
        let mut host = host(&config(), NodeId(1));
        give(&mut host, HostIn::Receive(flit_to(1, 0)));
        assert_eq!(sent(&mut host), []);
        give(&mut host, HostIn::Receive(Packet { sequence: 1, ..flit_to(1, 0) }));
        let returned = sent(&mut host);
        assert_eq!((returned[0].kind, returned[0].wire), (PacketKind::CreditReturn, 8));
        assert_eq!(FlitHeader::unpack(returned[0].priority).credits, [2, 0]);
        give(&mut host, HostIn::Receive(Packet { sequence: 2, ..flit_to(1, 0) }));
        give(&mut host, message(2, 64, false));
        assert_eq!(FlitHeader::unpack(sent(&mut host)[0].priority).credits, [1, 0]);
    }

    #[test]
    fn a_blocked_head_blocks_its_channel_of_its_input_and_nothing_else() {
        let narrow = CreditBased { device_buffer_flits: 1, ..config() };
        let mut switch = switch(&narrow, 4);
        let arrive = |switch: &mut Switch, port, flit| give(switch, SwitchIn { port: NodeId(port), packet: flit });
        let next = |switch: &mut Switch, port| switch.poll_transmit(Time::ZERO, NodeId(port)).map(|flit| flit.target.0);
        arrive(&mut switch, 0, flit_to(2, 0));
        arrive(&mut switch, 0, flit_to(2, 0));
        arrive(&mut switch, 0, flit_to(3, 0));
        assert_eq!(next(&mut switch, 2), Some(2));
        assert_eq!((next(&mut switch, 2), next(&mut switch, 3)), (None, None));
        arrive(&mut switch, 1, flit_to(3, 0));
        arrive(&mut switch, 0, flit_to(3, 1));
        assert_eq!((next(&mut switch, 3), next(&mut switch, 3)), (Some(3), Some(3)));
        assert_eq!(switch.queued(NodeId(2)), Bytes::new(68));
    }

    #[test]
    fn a_sender_that_breaks_its_promise_loses_the_flit_and_not_others() {
        let mut switch = switch(&config(), 2);
        let mut arrive = || give(&mut switch, SwitchIn { port: NodeId(0), packet: flit_to(1, 0) });
        assert!((0..BUFFER).all(|_| arrive().is_empty()));
        assert_eq!(arrive(), [SwitchOut::Drop(flit_to(1, 0))]);
    }

    proptest! {
        #[test]
        fn a_port_set_goes_round_like_a_list(
            members in proptest::collection::btree_set(0usize..200, 0..20), from in 0usize..200,
        ) {
            let mut set = PortSet::new(200);
            members.iter().for_each(|port| set.insert(*port));
            let expected = members.range(from..).chain(&members).next();
            prop_assert_eq!(set.next_round(from), expected.copied());
        }

        #[test]
        fn a_header_comes_back_as_it_was(channel in 0usize..2, requests in 0u32..1 << 31, answers in 0u32..1 << 31) {
            let header = FlitHeader { channel, credits: [requests, answers] };
            prop_assert_eq!(FlitHeader::unpack(header.pack()), header);
        }
    }
}
