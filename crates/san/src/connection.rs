//! Congestion control and loss recovery for the packets of an association.
//!
//! Each lane of a session has one connection, with a byte stream in each direction. A packet waits
//! until its sender releases it, is kept until it is acknowledged, and is retransmitted when it is
//! lost. The receiver delivers packets in order. [`Sharing`] selects the sender:
//!
//! * [`Sharing::Window`]: TCP. The sender is the one of [`transport::dctcp`] (NewReno, with DCTCP's
//!   reaction to marks if configured); every packet is acknowledged at once.
//! * [`Sharing::Paced`]: RoCE with DCQCN over priority flow control.
//!
//! A later generation of the association is a new connection; packets of an earlier generation are
//! dropped. Resets ([`crate::retry`]) and responses that hops send in a target's place bypass the
//! stream. After [`TIMEOUTS_MAX`] timeouts in a row without an acknowledgement a sender stops: the
//! host's own timers then end the association.

mod paced;

use crate::id::Port;
use crate::packet::{Outcome, Packet, PacketKind};
use crate::session::{Attempt, is_earlier_generation};
use crate::trail::Trail;
use base::{Bytes, Rate, Span, Time};
use paced::{Paced, Pacing};
use std::collections::{BTreeMap, VecDeque};
use transport::Allowance;
use transport::common::Timers;
use transport::config::{Dcqcn, Dctcp};
use transport::dctcp::Sender;
use transport::framing::roce_notification_wire;

/// Consecutive timeouts after which a connection is dead. Linux's `tcp_retries2`.
pub const TIMEOUTS_MAX: u32 = 15;

/// The parameters of connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamConfig {
    /// The longest packet and the unit of window growth, bytes on the wire.
    pub segment: u32,
    /// The minimum retransmission timeout; for paced senders, the only one.
    pub timeout_min: Span,
    /// Size of an acknowledgement, bytes on the wire.
    pub acknowledgement: u32,
    /// Congestion control.
    pub sharing: Sharing,
}

/// Congestion control: when a packet may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sharing {
    /// Limits the bytes in flight.
    Window(WindowConfig),
    /// Limits the rate of each connection; the hop at the other end of the link may pause it.
    Paced(PacedConfig),
}

/// The parameters of window-based connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Window of a new connection, bytes on the wire.
    pub initial: u32,
    /// The receive window, which bounds the bytes in flight, bytes on the wire.
    pub max: u32,
    /// Whether marks shrink the window: DCTCP (SIGCOMM 2010), with a gain of 1/16.
    pub obeys_marks: bool,
}

/// The parameters of paced connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacedConfig {
    /// DCQCN and priority flow control. Its `mtu` is the payload of a packet.
    pub dcqcn: Dcqcn,
    /// Time for which a gap in the stream may stay open before its sender goes back to it. Zero
    /// where the packets of a connection stay in order: a gap is then a loss.
    pub reorder_timeout: Span,
}

impl StreamConfig {
    /// Returns the parameters of DCQCN and priority flow control, or `None` with windows.
    pub fn dcqcn(&self) -> Option<&Dcqcn> {
        match &self.sharing {
            Sharing::Window(_) => None,
            Sharing::Paced(paced) => Some(&paced.dcqcn),
        }
    }

    /// Returns whether hops have to mark answers too.
    pub fn obeys_marks(&self) -> bool {
        matches!(self.sharing, Sharing::Window(WindowConfig { obeys_marks: true, .. }))
    }
}

/// An output of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// A packet for the link of a port.
    Send(Port, Packet),
    /// A packet for the program, in order.
    Deliver(Port, Packet),
}

/// The connections of a host or a target, by index.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    config: StreamConfig,
    /// Grows up to the highest index in use.
    ends: Vec<Option<Box<End>>>,
    /// Unacknowledged packets of all connections: few connections have any at a time.
    kept: Kept,
    timers: Timers,
    /// State that paced connections share; `None` with windows.
    pacing: Option<Box<Pacing>>,
}

/// A slab of packets: free slots are reused together with their memory.
#[derive(Clone, Debug, Default)]
struct Kept {
    packets: Vec<(Port, Packet)>,
    free: Vec<u32>,
}

impl Kept {
    fn enter(&mut self, port: Port, packet: Packet) -> u32 {
        let Some(place) = self.free.pop() else {
            self.packets.push((port, packet));
            return self.packets.len() as u32 - 1;
        };
        self.packets[place as usize] = (port, packet);
        place
    }

    fn leave(&mut self, place: u32) {
        self.free.push(place);
    }
}

/// The local end of a connection.
#[derive(Clone, Debug)]
struct End {
    generation: u8,
    sender: Sending,
    /// Unacknowledged packets: the offset behind each, and its slot in `Kept`.
    kept: VecDeque<(u64, u32)>,
    /// Offset behind the last submitted packet.
    submitted: u64,
    timeouts: u32,
    /// Next offset expected from the peer; everything before it was received.
    expected: u64,
    /// Packets received beyond a gap, by offset.
    ahead: BTreeMap<u64, (Port, Packet)>,
}

/// The sender's congestion control.
#[derive(Clone, Debug)]
enum Sending {
    Window(Sender),
    Paced(Paced),
}

impl Connections {
    /// Creates an empty table; a connection takes memory at its first use. `links` are the rates of
    /// the ports, which only paced connections need.
    pub(crate) fn new(config: StreamConfig, links: &[Rate]) -> Connections {
        let pacing = match config.sharing {
            Sharing::Window(_) => None,
            Sharing::Paced(paced) => Some(Box::new(Pacing::new(paced, config.timeout_min, links))),
        };
        Connections { config, ends: Vec::new(), kept: Kept::default(), timers: Timers::default(), pacing }
    }

    /// Returns the sum of the windows of all used connections, or of the rates of those that have
    /// something to send.
    pub(crate) fn allowance(&self) -> Allowance {
        let (mut window, mut rate_bps) = (0, 0.0);
        for end in self.ends.iter().flatten() {
            match &end.sender {
                Sending::Window(sender) => window += sender.window(),
                Sending::Paced(paced) if !end.kept.is_empty() => rate_bps += paced.rate_bps(),
                Sending::Paced(_) => {}
            }
        }
        match self.pacing {
            None => Allowance::Window(Bytes::new(window)),
            Some(_) => Allowance::Rate(rate_bps),
        }
    }

    /// Returns whether a packet belongs to a stream.
    pub(crate) fn carries(packet: &Packet) -> bool {
        let by_hop = matches!(packet.status, Outcome::Rejected | Outcome::Unreachable);
        packet.bytes > 0 && !(packet.kind == PacketKind::Response && by_hop)
    }

    /// Sends a packet of the program. [`carries`](Self::carries) must hold for the packet.
    pub(crate) fn depart(&mut self, now: Time, place: usize, port: Port, packet: &Packet, out: &mut Vec<Flow>) {
        if !self.begin(place, port, packet) {
            return;
        }
        let Connections { ends, kept, .. } = self;
        let Some(end) = ends[place].as_deref_mut().filter(|end| end.timeouts < TIMEOUTS_MAX) else {
            return;
        };
        end.submitted += u64::from(packet.frame);
        let stream = end.submitted - u64::from(packet.frame);
        // The packet that this one was made from may have been marked.
        let packet = Packet { stream, length: packet.frame, marked: false, ..packet.copied() };
        let frame = u64::from(packet.frame);
        end.kept.push_back((end.submitted, kept.enter(port, packet)));
        if let Sending::Window(sender) = &mut end.sender {
            sender.submit(0, frame);
        }
        self.pump(now, place, out);
        self.serve(now, out);
    }

    /// Receives a packet on `port`. [`carries`](Self::carries) must hold for the packet.
    pub(crate) fn arrive(&mut self, now: Time, place: usize, port: Port, packet: &Packet, out: &mut Vec<Flow>) {
        if !self.begin(place, port, packet) {
            return;
        }
        match packet.kind {
            PacketKind::Acknowledgement { .. } => self.acknowledged(now, place, packet, out),
            PacketKind::Notification { .. } => self.notified(now, place),
            _ => self.take(now, place, port, packet, out),
        }
        self.serve(now, out);
    }

    /// Receives the next part of a stream, or a later one, and acknowledges it.
    fn take(&mut self, now: Time, place: usize, port: Port, packet: &Packet, out: &mut Vec<Flow>) {
        let (acknowledgement, pacing) = (self.config.acknowledgement, self.pacing.as_deref_mut());
        let Some(end) = self.ends[place].as_deref_mut() else { return };
        let is_gap = packet.stream > end.expected;
        let delivered = end.take(port, packet, out);
        let reply = match (&mut end.sender, pacing) {
            (Sending::Paced(flow), Some(pacing)) => {
                if packet.marked && pacing.is_told(now, flow) {
                    let told = reply_to(packet, end.expected, Reply::Notification, roce_notification_wire());
                    out.push(pacing.beside(now, port, told));
                }
                let reply = flow.reply(end.expected, is_gap, delivered, packet);
                reply.map(|reply| pacing.beside(now, port, reply_to(packet, end.expected, reply, acknowledgement)))
            }
            _ => Some(Flow::Send(port, reply_to(packet, end.expected, Reply::Received, acknowledgement))),
        };
        out.extend(reply);
    }

    /// Returns when [`on_wakeup`](Self::on_wakeup) is due.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        let paced = self.pacing.as_ref().and_then(|pacing| pacing.next_wakeup());
        [self.timers.next(), paced].into_iter().flatten().min()
    }

    /// Runs expired retransmission timers, updates rates, and sends on free links.
    pub(crate) fn on_wakeup(&mut self, now: Time, out: &mut Vec<Flow>) {
        while let Some(place) = self.timers.pop_due(now) {
            let Some(end) = &mut self.ends[place as usize] else { continue };
            match &mut end.sender {
                Sending::Window(sender) => sender.time_out(),
                Sending::Paced(flow) => flow.time_out(),
            }
            end.timeouts += 1;
            if end.timeouts >= TIMEOUTS_MAX {
                end.kept.drain(..).for_each(|(_, packet)| self.kept.leave(packet));
            } else {
                self.pump(now, place as usize, out);
            }
        }
        self.follow_rates(now);
        self.serve(now, out);
    }

    /// Ensures that the connection of a packet exists, and replaces it if the packet is of a later
    /// association. Returns `false` if the packet is of an earlier one.
    fn begin(&mut self, place: usize, port: Port, packet: &Packet) -> bool {
        let generation = Attempt::of_bits(packet.tag.attempt).generation;
        if self.ends.len() <= place {
            self.ends.resize_with(place + 1, || None);
        }
        let known = self.ends[place].as_ref().map(|end| end.generation);
        match known {
            Some(known) if known == generation => true,
            Some(known) if is_earlier_generation(generation, known) => false,
            _ => {
                self.timers.cancel(place as u32);
                let sender = match &mut self.pacing {
                    None => Sending::Window(window_sender(&self.config)),
                    Some(pacing) => Sending::Paced(pacing.begin(place as u32, port)),
                };
                let end = Box::new(End::new(generation, sender));
                let before = self.ends[place].replace(end);
                let kept = before.into_iter().flat_map(|end| end.kept);
                kept.for_each(|(_, packet)| self.kept.leave(packet));
                true
            }
        }
    }

    fn acknowledged(&mut self, now: Time, place: usize, packet: &Packet, out: &mut Vec<Flow>) {
        let Some(end) = &mut self.ends[place] else { return };
        // An acknowledgement cannot exceed the submitted bytes.
        let offset = packet.stream.min(end.submitted);
        if end.kept.front().is_some_and(|(behind, _)| *behind <= offset) {
            end.timeouts = 0;
        }
        match &mut end.sender {
            Sending::Window(sender) => {
                sender.acknowledge(now, offset, packet.marked && self.config.obeys_marks());
            }
            Sending::Paced(flow) => flow.acknowledge(now, offset, packet.status == Outcome::Incomplete),
        }
        while let Some((_, packet)) = end.kept.front().copied().filter(|(behind, _)| *behind <= offset) {
            end.kept.pop_front();
            self.kept.leave(packet);
        }
        self.pump(now, place, out);
    }

    /// Sends what the window allows, or lists a paced connection for its turn, and sets the timer.
    fn pump(&mut self, now: Time, place: usize, out: &mut Vec<Flow>) {
        let Some(end) = self.ends[place].as_deref_mut() else { return };
        let deadline = match (&mut end.sender, self.pacing.as_deref_mut()) {
            (Sending::Window(sender), _) => {
                while let Some(segment) = sender.next_segment(now) {
                    let at = end.kept.partition_point(|(behind, _)| *behind <= segment.offset);
                    if let Some((_, place)) = end.kept.get(at) {
                        let (port, packet) = &self.kept.packets[*place as usize];
                        out.push(Flow::Send(*port, packet.copied()));
                    }
                }
                sender.deadline()
            }
            (Sending::Paced(flow), Some(pacing)) => {
                let next = flow.next_of(&end.kept).map(|(_, packet)| self.kept.packets[packet as usize].0);
                pacing.list(now, place as u32, flow, next);
                flow.deadline()
            }
            (Sending::Paced(_), None) => None,
        };
        match deadline {
            Some(deadline) => self.timers.set(place as u32, deadline),
            None => self.timers.cancel(place as u32),
        }
    }
}

/// The part for paced connections.
impl Connections {
    /// Stops or resumes sending on a port at the request of the hop at the other end of its link.
    pub(crate) fn pause(&mut self, now: Time, port: Port, stop: bool, out: &mut Vec<Flow>) {
        if let Some(pacing) = &mut self.pacing {
            pacing.pause(port, stop);
        }
        self.serve(now, out);
    }

    /// Sends on free links, round robin over the connections.
    fn serve(&mut self, now: Time, out: &mut Vec<Flow>) {
        while let Some((port, place)) = self.pacing.as_mut().and_then(|pacing| pacing.next_turn(now)) {
            self.send_next(now, port, place, out);
            self.pump(now, place as usize, out);
        }
    }

    /// Sends the next packet of a connection in its turn at a link, unless that packet now leaves
    /// by another port.
    fn send_next(&mut self, now: Time, turn: Port, place: u32, out: &mut Vec<Flow>) {
        let (Some(pacing), Some(end)) = (&mut self.pacing, self.ends[place as usize].as_deref_mut()) else { return };
        let Sending::Paced(flow) = &mut end.sender else { return };
        flow.end_turn();
        let Some((behind, packet)) = flow.next_of(&end.kept) else { return };
        let (port, packet) = &self.kept.packets[packet as usize];
        if *port == turn {
            pacing.sent(now, flow, (behind, packet.frame), turn);
            out.push(Flow::Send(turn, packet.copied()));
        }
    }

    fn notified(&mut self, now: Time, place: usize) {
        let (Some(pacing), Some(end)) = (&mut self.pacing, self.ends[place].as_deref_mut()) else { return };
        if let Sending::Paced(flow) = &mut end.sender {
            pacing.notified(now, place as u32, flow);
        }
    }

    /// Applies due rate changes, and lists connections whose pacing interval has passed.
    fn follow_rates(&mut self, now: Time) {
        let Connections { ends, kept, pacing: Some(pacing), .. } = self else { return };
        while let Some(due) = pacing.rate_due(now) {
            if let Some(Sending::Paced(flow)) = ends[due.flow() as usize].as_deref_mut().map(|end| &mut end.sender) {
                pacing.fire(now, due, flow);
            }
        }
        while let Some(place) = pacing.send_due(now) {
            let Some(end) = ends[place as usize].as_deref_mut() else { continue };
            let Sending::Paced(flow) = &mut end.sender else { continue };
            let next = flow.next_of(&end.kept).map(|(_, packet)| kept.packets[packet as usize].0);
            pacing.list(now, place, flow, next);
        }
    }
}

fn window_sender(config: &StreamConfig) -> Sender {
    let (initial, window_max) = match config.sharing {
        Sharing::Window(window) => (window.initial, window.max),
        Sharing::Paced(_) => (config.segment, config.segment),
    };
    let sender = Dctcp {
        mss: Bytes::new(u64::from(config.segment)),
        // The network queues and marks, not the sender.
        mark_above: Bytes::ZERO,
        queue: Bytes::ZERO,
        gain: 1.0 / 16.0,
        initial_window: initial.div_ceil(config.segment.max(1)),
        timeout_min: config.timeout_min,
        selective: false,
        connections: 1,
    };
    Sender::new(&sender).with_window_max(u64::from(window_max))
}

impl End {
    fn new(generation: u8, sender: Sending) -> End {
        End {
            generation,
            sender,
            kept: VecDeque::new(),
            submitted: 0,
            timeouts: 0,
            expected: 0,
            ahead: BTreeMap::new(),
        }
    }

    /// Accepts a packet and delivers what is in order. Returns the number of delivered packets.
    fn take(&mut self, port: Port, packet: &Packet, out: &mut Vec<Flow>) -> usize {
        if packet.stream > self.expected {
            self.ahead.entry(packet.stream).or_insert_with(|| (port, packet.copied()));
        }
        if packet.stream != self.expected {
            return 0;
        }
        let mut delivered = 0;
        let mut next = Some((port, packet.copied()));
        while let Some((port, packet)) = next {
            self.expected += u64::from(packet.length);
            out.push(Flow::Deliver(port, packet));
            next = self.ahead.remove(&self.expected);
            delivered += 1;
        }
        delivered
    }
}

/// A control packet from receiver to sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// Everything before an offset was received.
    Received,
    /// The same, and something behind it was received: the part at the offset is missing.
    Missing,
    /// Packets arrive marked.
    Notification,
}

/// Creates a reply that returns along the path of `packet`.
fn reply_to(packet: &Packet, expected: u64, reply: Reply, frame: u32) -> Packet {
    let to_target = !packet.kind.is_outward();
    let mut trail = Trail::default();
    trail.become_copy_of(&packet.trail);
    let trail = if to_target {
        trail.turned_at_host()
    } else {
        trail.turn_at_target(0);
        trail
    };
    Packet {
        kind: match reply {
            Reply::Notification => PacketKind::Notification { to_target },
            Reply::Received | Reply::Missing => PacketKind::Acknowledgement { to_target },
        },
        stream: expected,
        payload: 0,
        length: 0,
        frame,
        credit: 0,
        status: if reply == Reply::Missing { Outcome::Incomplete } else { Outcome::Success },
        ..packet.with_trail(trail)
    }
}
