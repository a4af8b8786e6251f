//! How the packets of an association share the network with others, and how lost ones are repaired.
//!
//! One connection for each lane of a session, with a stream of bytes in each direction. A packet
//! waits until its sender lets it go, is kept until it is acknowledged, and is sent again when it
//! is lost. The receiver hands packets over in order. Who says when a packet may go:
//!
//! * [`Sharing::Window`]: TCP. The sender is the one of [`transport::dctcp`] (NewReno, with DCTCP's
//!   answer to marks where that is wanted); every packet is acknowledged at once.
//! * [`Sharing::Paced`]: RoCE with DCQCN over priority flow control.
//!
//! A later generation of the association is a new connection; what is left of an earlier one is
//! dropped. Resets ([`crate::retry`]) and what hops answer in a target's place go beside the
//! stream. A sender that nobody acknowledges after [`TIMEOUTS_MAX`] timeouts in a row gives up: the
//! host's own timers then end the association.

mod paced;

use crate::id::Port;
use crate::packet::{Outcome, Packet, PacketKind};
use crate::session::{Attempt, is_earlier_generation};
use crate::trail::Trail;
use base::{Bytes, Rate, Span, Time};
use paced::{Paced, Pacing};
use std::collections::{BTreeMap, VecDeque};
use transport::common::Timers;
use transport::config::{Dcqcn, Dctcp};
use transport::dctcp::Sender;
use transport::framing::roce_notification_wire;

/// Timeouts in a row after which a connection is dead. Linux' `tcp_retries2`.
pub const TIMEOUTS_MAX: u32 = 15;

/// The parameters of connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamConfig {
    /// The longest packet, and what a window grows by, bytes on the wire.
    pub segment: u32,
    /// The least retransmission timeout; where senders keep to a rate, the only one.
    pub timeout_min: Span,
    /// What an acknowledgement takes on the wire, bytes.
    pub acknowledgement: u32,
    /// Who says when a packet may go.
    pub sharing: Sharing,
}

/// Who says when a packet may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sharing {
    /// What is under way.
    Window(WindowConfig),
    /// A rate for each connection, and the hop at the other end of the link.
    Paced(PacedConfig),
}

/// Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Window of a new connection, bytes on the wire.
    pub initial: u32,
    /// The receive window: more is never under way, bytes on the wire.
    pub max: u32,
    /// Whether marks shrink the window: DCTCP (SIGCOMM 2010), with a gain of 1/16.
    pub obeys_marks: bool,
}

/// Rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacedConfig {
    /// DCQCN and priority flow control. Its `mtu` is the payload of a packet.
    pub dcqcn: Dcqcn,
    /// How long a hole in the stream may stay before its sender goes back to it. Zero where packets
    /// of a connection keep their order: what they lack is lost.
    pub hole_patience: Span,
}

impl StreamConfig {
    /// DCQCN and priority flow control, where sessions have them.
    pub fn dcqcn(&self) -> Option<&Dcqcn> {
        match &self.sharing {
            Sharing::Window(_) => None,
            Sharing::Paced(paced) => Some(&paced.dcqcn),
        }
    }

    /// Whether hops have to mark answers too.
    pub fn obeys_marks(&self) -> bool {
        matches!(self.sharing, Sharing::Window(WindowConfig { obeys_marks: true, .. }))
    }
}

/// What comes out of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Onto the link of a port.
    Send(Port, Packet),
    /// To the program, in order.
    Deliver(Port, Packet),
}

/// The connections of a host or a target, by place.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    config: StreamConfig,
    /// As far as any was used.
    ends: Vec<Option<Box<End>>>,
    /// What was submitted and is not acknowledged, of all connections: few have any at a time.
    kept: Kept,
    timers: Timers,
    /// What paced connections have in common; `None` with windows.
    pacing: Option<Box<Pacing>>,
}

/// Packets by place; places are used again, with the memory of what was there.
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

/// This side of a connection.
#[derive(Clone, Debug)]
struct End {
    generation: u8,
    sender: Sending,
    /// What was submitted and is not acknowledged: the offset behind it, and its place.
    kept: VecDeque<(u64, u32)>,
    /// Offset behind all that was submitted.
    submitted: u64,
    timeouts: u32,
    /// Everything before this offset has come.
    expected: u64,
    /// What has come beyond a hole.
    ahead: BTreeMap<u64, (Port, Packet)>,
}

/// Who says when the next packet may go.
#[derive(Clone, Debug)]
enum Sending {
    Window(Sender),
    Paced(Paced),
}

impl Connections {
    /// None yet; each takes memory when it is first used. `links` are the rates of the ports, which
    /// only paced connections ask for.
    pub(crate) fn new(config: StreamConfig, links: &[Rate]) -> Connections {
        let pacing = match config.sharing {
            Sharing::Window(_) => None,
            Sharing::Paced(paced) => Some(Box::new(Pacing::new(paced, config.timeout_min, links))),
        };
        Connections { config, ends: Vec::new(), kept: Kept::default(), timers: Timers::default(), pacing }
    }

    /// Whether a packet belongs into a stream.
    pub(crate) fn carries(packet: &Packet) -> bool {
        let by_hop = matches!(packet.status, Outcome::Rejected | Outcome::Unreachable);
        packet.bytes > 0 && !(packet.kind == PacketKind::Response && by_hop)
    }

    /// A program sends a packet that [`carries`](Self::carries) allows.
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
        // What it was made of may have come marked.
        let packet = Packet { stream, length: packet.frame, marked: false, ..packet.copied() };
        let frame = u64::from(packet.frame);
        end.kept.push_back((end.submitted, kept.enter(port, packet)));
        if let Sending::Window(sender) = &mut end.sender {
            sender.submit(0, frame);
        }
        self.pump(now, place, out);
        self.serve(now, out);
    }

    /// A packet has come that [`carries`](Self::carries) allows, by `port`.
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

    /// The next part of a stream, or a later one, has come.
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

    /// When [`on_wakeup`](Self::on_wakeup) is next to be called.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        let paced = self.pacing.as_ref().and_then(|pacing| pacing.next_wakeup());
        [self.timers.next(), paced].into_iter().flatten().min()
    }

    /// Retransmission timers are due, rates change, or links are free.
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

    /// Makes the connection of a packet: a new one where the packet is of a later association;
    /// `false` where it is of an earlier one.
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
        // Nobody acknowledges what was not sent.
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

    /// Sends what the window allows, or lists it where a rate does, and sets the timer.
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

/// What paced connections have beyond windows.
impl Connections {
    /// The hop at the other end of a port wants no more, or wants it again.
    pub(crate) fn pause(&mut self, now: Time, port: Port, stop: bool, out: &mut Vec<Flow>) {
        if let Some(pacing) = &mut self.pacing {
            pacing.pause(port, stop);
        }
        self.serve(now, out);
    }

    /// Sends what may go by links that are free, in turns.
    fn serve(&mut self, now: Time, out: &mut Vec<Flow>) {
        while let Some((port, place)) = self.pacing.as_mut().and_then(|pacing| pacing.next_turn(now)) {
            self.send_next(now, port, place, out);
            self.pump(now, place as usize, out);
        }
    }

    /// The turn of a connection at a link. What it has to send next may be for another one by now.
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

    /// Rates move, and connections that have kept to theirs may send.
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
        // Queues and marks are the network's business.
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

    /// Takes a packet in and hands over what is in order: so many packets.
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

/// What a receiver tells a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// Everything before an offset has come.
    Received,
    /// The same, and something behind it: what is there is missing.
    Missing,
    /// Packets come marked.
    Notification,
}

/// Goes back the way of what it answers.
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
