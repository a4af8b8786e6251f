//! Windows: how the packets of an association share the network with others, and how lost ones are
//! repaired, as TCP does both.
//!
//! One connection for each lane of a session, with a stream of bytes in each direction. Its sender is
//! the one of [`transport::dctcp`] (NewReno, with DCTCP's answer to marks where that is wanted): a
//! packet waits until the window lets it go, is kept until it is acknowledged, and is sent again when
//! it is lost. Its receiver acknowledges every packet at once and hands packets over in order.
//!
//! A later generation of the association is a new connection; what is left of an earlier one is
//! dropped. Resets ([`crate::retry`]) and what hops answer in a target's place go beside the stream.
//! A sender that nobody acknowledges after [`TIMEOUTS_MAX`] timeouts in a row gives up: the host's
//! own timers then end the association.

use crate::id::Port;
use crate::packet::{Outcome, Packet, PacketKind};
use crate::session::{Attempt, is_earlier_generation};
use crate::trail::Trail;
use base::{Bytes, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use transport::common::Timers;
use transport::config::Dctcp;
use transport::dctcp::Sender;

/// Timeouts in a row after which a connection is dead. Linux' `tcp_retries2`.
pub const TIMEOUTS_MAX: u32 = 15;

/// A sender's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// What a window grows by, and the longest packet, bytes on the wire.
    pub segment: u32,
    /// Window of a new connection, bytes on the wire.
    pub initial_window: u32,
    /// The receive window: more is never under way, bytes on the wire.
    pub window_max: u32,
    /// The least retransmission timeout.
    pub timeout_min: Span,
    /// Whether marks shrink the window: DCTCP (SIGCOMM 2010), with a gain of 1/16.
    pub obeys_marks: bool,
    /// What an acknowledgement takes on the wire, bytes.
    pub acknowledgement: u32,
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
    config: WindowConfig,
    /// As far as any was used.
    ends: Vec<Option<Box<End>>>,
    /// What was submitted and is not acknowledged, of all connections: few have any at a time.
    kept: Kept,
    timers: Timers,
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
    sender: Sender,
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

impl Connections {
    /// None yet; each takes memory when it is first used.
    pub(crate) fn new(config: WindowConfig) -> Connections {
        Connections { config, ends: Vec::new(), kept: Kept::default(), timers: Timers::default() }
    }

    /// Whether a packet belongs into a stream.
    pub(crate) fn carries(packet: &Packet) -> bool {
        let by_hop = matches!(packet.status, Outcome::Rejected | Outcome::Unreachable);
        packet.bytes > 0 && !(packet.kind == PacketKind::Response && by_hop)
    }

    /// A program sends a packet that [`carries`](Self::carries) allows.
    pub(crate) fn depart(&mut self, now: Time, place: usize, port: Port, packet: &Packet, out: &mut Vec<Flow>) {
        if !self.begin(place, packet) {
            return;
        }
        let Connections { ends, kept, .. } = self;
        let Some(end) = ends[place].as_deref_mut().filter(|end| end.timeouts < TIMEOUTS_MAX) else {
            return;
        };
        end.submitted += u64::from(packet.frame);
        let stream = end.submitted - u64::from(packet.frame);
        let packet = Packet { stream, length: packet.frame, ..packet.copied() };
        let frame = u64::from(packet.frame);
        end.kept.push_back((end.submitted, kept.enter(port, packet)));
        end.sender.submit(0, frame);
        self.pump(now, place, out);
    }

    /// A packet has come that [`carries`](Self::carries) allows, by `port`.
    pub(crate) fn arrive(&mut self, now: Time, place: usize, port: Port, packet: &Packet, out: &mut Vec<Flow>) {
        let acknowledgement = self.config.acknowledgement;
        if !self.begin(place, packet) {
            return;
        }
        if let PacketKind::Acknowledgement { .. } = packet.kind {
            return self.acknowledged(now, place, packet, out);
        }
        let Some(end) = self.ends[place].as_deref_mut() else { return };
        end.take(port, packet, out);
        out.push(Flow::Send(port, acknowledgement_of(packet, end.expected, acknowledgement)));
    }

    /// When [`on_wakeup`](Self::on_wakeup) is next to be called.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Retransmission timers are due.
    pub(crate) fn on_wakeup(&mut self, now: Time, out: &mut Vec<Flow>) {
        while let Some(place) = self.timers.pop_due(now) {
            let Some(end) = &mut self.ends[place as usize] else { continue };
            end.sender.time_out();
            end.timeouts += 1;
            if end.timeouts >= TIMEOUTS_MAX {
                end.kept.drain(..).for_each(|(_, packet)| self.kept.leave(packet));
            } else {
                self.pump(now, place as usize, out);
            }
        }
    }

    /// Makes the connection of a packet: a new one where the packet is of a later association;
    /// `false` where it is of an earlier one.
    fn begin(&mut self, place: usize, packet: &Packet) -> bool {
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
                let end = Box::new(End::new(&self.config, generation));
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
        end.sender.acknowledge(now, offset, packet.marked && self.config.obeys_marks);
        while let Some((_, packet)) = end.kept.front().copied().filter(|(behind, _)| *behind <= offset) {
            end.kept.pop_front();
            self.kept.leave(packet);
        }
        self.pump(now, place, out);
    }

    /// Sends what the window allows, and sets the timer.
    fn pump(&mut self, now: Time, place: usize, out: &mut Vec<Flow>) {
        let Some(end) = &mut self.ends[place] else { return };
        while let Some(segment) = end.sender.next_segment(now) {
            let at = end.kept.partition_point(|(behind, _)| *behind <= segment.offset);
            if let Some((_, place)) = end.kept.get(at) {
                let (port, packet) = &self.kept.packets[*place as usize];
                out.push(Flow::Send(*port, packet.copied()));
            }
        }
        match end.sender.deadline() {
            Some(deadline) => self.timers.set(place as u32, deadline),
            None => self.timers.cancel(place as u32),
        }
    }
}

impl End {
    fn new(config: &WindowConfig, generation: u8) -> End {
        let segment = Bytes::new(u64::from(config.segment));
        let sender = Dctcp {
            mss: segment,
            // Queues and marks are the network's business.
            mark_above: Bytes::ZERO,
            queue: Bytes::ZERO,
            gain: 1.0 / 16.0,
            initial_window: config.initial_window.div_ceil(config.segment.max(1)),
            timeout_min: config.timeout_min,
            selective: false,
            connections: 1,
        };
        End {
            generation,
            sender: Sender::new(&sender).with_window_max(u64::from(config.window_max)),
            kept: VecDeque::new(),
            submitted: 0,
            timeouts: 0,
            expected: 0,
            ahead: BTreeMap::new(),
        }
    }

    /// Takes a packet in and hands over what is in order.
    fn take(&mut self, port: Port, packet: &Packet, out: &mut Vec<Flow>) {
        if packet.stream > self.expected {
            self.ahead.entry(packet.stream).or_insert_with(|| (port, packet.copied()));
        }
        if packet.stream != self.expected {
            return;
        }
        let mut next = Some((port, packet.copied()));
        while let Some((port, packet)) = next {
            self.expected += u64::from(packet.length);
            out.push(Flow::Deliver(port, packet));
            next = self.ahead.remove(&self.expected);
        }
    }
}

/// Goes back the way of what it acknowledges.
fn acknowledgement_of(packet: &Packet, expected: u64, frame: u32) -> Packet {
    let to_target = !packet.kind.is_outward();
    let mut trail = Trail::default();
    trail.become_copy_of(&packet.trail);
    let trail = if to_target {
        trail.turned_at_host()
    } else {
        trail.turn_at_target(0);
        trail
    };
    let kind = PacketKind::Acknowledgement { to_target };
    Packet {
        kind,
        stream: expected,
        payload: 0,
        length: 0,
        frame,
        credit: 0,
        status: Outcome::Success,
        ..packet.with_trail(trail)
    }
}
