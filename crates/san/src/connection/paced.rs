//! Rate-based connections, like queue pairs of RoCE with DCQCN (SIGCOMM 2015), and the links that
//! they share round robin.
//!
//! A sender passes a packet to its link when the connection's rate allows it and the link is free.
//! The hop at its other end must not have paused it (IEEE 802.1Qbb). Acknowledgements and
//! congestion notifications bypass this: their class is never paused. The network loses nothing
//! until something fails. A loss is then detected by a later packet, and the sender goes back to it
//! (go-back-N), or by a timeout. The receiver keeps packets that arrived meanwhile, like adapters
//! with out-of-order reception.

use super::{Flow, PacedConfig, Reply};
use crate::id::Port;
use crate::packet::{Packet, PacketKind};
use base::{Bytes, Rate, Serialization, Span, Time};
use std::collections::VecDeque;
use transport::common::Timers;
use transport::dcqcn::{Due, Notifier, Pacer, RateTimers};

/// No offset.
const NEVER: u64 = u64::MAX;

/// The local end of a connection, except its stream.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    pacer: Pacer,
    /// First unacknowledged byte.
    acknowledged: u64,
    /// Next byte to send; set back to a missing byte.
    next: u64,
    /// The last gap that the receiver reported and the sender went back to.
    mended: u64,
    /// When to go back to the first unacknowledged byte; [`Time::MAX`] if nothing is in flight.
    deadline: Time,
    timeout: Span,
    reorder_timeout: Span,
    /// Whether it waits for its turn at a link.
    is_listed: bool,
    notifier: Notifier,
    /// The last gap that this end, as a receiver, reported.
    told: u64,
}

impl Paced {
    /// Returns the first packet to send or resend: the offset behind it, and its slot.
    pub(super) fn next_of(&self, kept: &VecDeque<(u64, u32)>) -> Option<(u64, u32)> {
        kept.get(kept.partition_point(|(behind, _)| *behind <= self.next)).copied()
    }

    /// Returns the present rate in bits per second.
    pub(super) fn rate_bps(&self) -> f64 {
        self.pacer.rate_bps()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        Some(self.deadline).filter(|deadline| *deadline != Time::MAX)
    }

    /// Handles an acknowledgement of everything before `offset`. `is_missing` if the part at
    /// `offset` is missing and something behind it was received.
    pub(super) fn acknowledge(&mut self, now: Time, offset: u64, is_missing: bool) {
        if offset > self.acknowledged {
            self.acknowledged = offset;
            self.next = self.next.max(offset);
            self.deadline = if self.next > offset { now + self.timeout } else { Time::MAX };
        }
        if is_missing && offset == self.acknowledged && offset < self.next && offset != self.mended {
            self.mended = offset;
            match self.reorder_timeout {
                Span::ZERO => self.next = offset,
                timeout => self.deadline = self.deadline.min(now + timeout),
            }
        }
    }

    /// Sets the timeout of a packet that leaves. A deadline for a known gap is not postponed.
    fn expect_answer(&mut self, now: Time) {
        let waits_for_order = self.reorder_timeout > Span::ZERO && self.mended == self.acknowledged;
        if !waits_for_order || self.deadline == Time::MAX {
            self.deadline = now + self.timeout;
        }
    }

    /// Records that the connection has left the ring of its link.
    pub(super) fn end_turn(&mut self) {
        self.is_listed = false;
    }

    /// Goes back to the first unacknowledged byte after a timeout.
    pub(super) fn time_out(&mut self) {
        (self.next, self.mended, self.deadline) = (self.acknowledged, NEVER, Time::MAX);
    }

    /// Returns the reply to a received packet, which has completed the order of `delivered`
    /// packets. The last packet of a command, of an answer or of data is acknowledged, as
    /// InfiniBand allows (9.7.5.1.2).
    pub(super) fn reply(&mut self, expected: u64, is_gap: bool, delivered: usize, packet: &Packet) -> Option<Reply> {
        if is_gap {
            let is_new = std::mem::replace(&mut self.told, expected) != expected;
            return is_new.then_some(Reply::Missing);
        }
        use PacketKind::{ReadData, WriteData};
        let ends = !matches!(packet.kind, WriteData { last: false } | ReadData { last: false });
        // Zero delivered packets mean a duplicate, whose sender does not know it was received.
        (ends || delivered != 1).then_some(Reply::Received)
    }
}

/// The shared state of the paced connections of a host or a target.
#[derive(Clone, Debug)]
pub(super) struct Pacing {
    config: PacedConfig,
    timeout: Span,
    /// When connections that have used up their rate may send again.
    waits: Timers,
    rates: RateTimers,
    /// By port.
    links: Vec<Link>,
}

/// A link, and the connections that wait for it.
#[derive(Clone, Debug)]
struct Link {
    rate: Rate,
    serialization: Serialization,
    /// The time until which the link is busy.
    busy_until: Time,
    is_paused: bool,
    /// Connections that may send now, in round-robin order.
    ring: VecDeque<u32>,
}

impl Link {
    fn new(rate: Rate) -> Link {
        let serialization = Serialization::new(rate);
        Link { rate, serialization, busy_until: Time::ZERO, is_paused: false, ring: VecDeque::new() }
    }

    fn occupy(&mut self, now: Time, frame: u32) {
        let span = self.serialization.of(Bytes::new(u64::from(frame)));
        self.busy_until = self.busy_until.max(now) + span;
    }
}

impl Pacing {
    pub(super) fn new(config: PacedConfig, timeout: Span, links: &[Rate]) -> Pacing {
        let links = links.iter().map(|rate| Link::new(*rate)).collect();
        Pacing { config, timeout, waits: Timers::default(), rates: RateTimers::default(), links }
    }

    /// Starts a connection on the link of `port`, at the line rate like every new flow.
    pub(super) fn begin(&mut self, place: u32, port: Port) -> Paced {
        self.waits.cancel(place);
        self.rates.forget(place);
        let line = self.links.get(port.index()).map_or(Rate::gbps(100), |link| link.rate);
        Paced {
            pacer: Pacer::new(line, &self.config.dcqcn),
            acknowledged: 0,
            next: 0,
            mended: NEVER,
            deadline: Time::MAX,
            timeout: self.timeout,
            reorder_timeout: self.config.reorder_timeout,
            is_listed: false,
            notifier: Notifier::default(),
            told: NEVER,
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        let open = self.links.iter().filter(|link| !link.is_paused && !link.ring.is_empty());
        let free = open.map(|link| link.busy_until).min();
        [self.waits.next(), self.rates.next(), free].into_iter().flatten().min()
    }

    /// Lists a connection at the link of its next packet, now or when its rate allows.
    pub(super) fn list(&mut self, now: Time, place: u32, flow: &mut Paced, next: Option<Port>) {
        let Some(link) = next.and_then(|port| self.links.get_mut(port.index())).filter(|_| !flow.is_listed) else {
            return;
        };
        let at = flow.pacer.next_send();
        if at <= now {
            flow.is_listed = true;
            link.ring.push_back(place);
        } else {
            self.waits.set(place, at);
        }
    }

    /// Returns a link that is free and not paused, and the connection whose turn it is.
    pub(super) fn next_turn(&mut self, now: Time) -> Option<(Port, u32)> {
        let is_open = |link: &Link| !link.is_paused && link.busy_until <= now && !link.ring.is_empty();
        let port = self.links.iter().position(is_open)?;
        self.links[port].ring.pop_front().map(|place| (Port(port as u16), place))
    }

    /// Records that a packet of `frame` bytes leaves in its turn on `port`; `behind` is the offset
    /// behind it.
    pub(super) fn sent(&mut self, now: Time, flow: &mut Paced, (behind, frame): (u64, u32), port: Port) {
        flow.next = behind;
        flow.expect_answer(now);
        flow.pacer.sent(now, frame, &self.config.dcqcn);
        if let Some(link) = self.links.get_mut(port.index()) {
            link.occupy(now, frame);
        }
    }

    /// Sends a packet of the class that is never paused, behind the frames already on the link.
    pub(super) fn beside(&mut self, now: Time, port: Port, packet: Packet) -> Flow {
        if let Some(link) = self.links.get_mut(port.index()) {
            link.occupy(now, packet.frame);
        }
        Flow::Send(port, packet)
    }

    pub(super) fn pause(&mut self, port: Port, stop: bool) {
        if let Some(link) = self.links.get_mut(port.index()) {
            link.is_paused = stop;
        }
    }

    /// Returns whether the sender of a marked packet is to be notified.
    pub(super) fn is_told(&self, now: Time, flow: &mut Paced) -> bool {
        flow.notifier.is_due(now, &self.config.dcqcn)
    }

    /// Reduces the rate of a connection after a congestion notification.
    pub(super) fn notified(&mut self, now: Time, place: u32, flow: &mut Paced) {
        self.rates.notified(now, place, &mut flow.pacer, &self.config.dcqcn);
    }

    pub(super) fn rate_due(&mut self, now: Time) -> Option<Due> {
        self.rates.pop_due(now)
    }

    /// Runs a rate timer, and reschedules a packet that waits for the rate.
    pub(super) fn fire(&mut self, now: Time, due: Due, flow: &mut Paced) {
        self.rates.fire(now, due, &mut flow.pacer, &self.config.dcqcn);
        if self.waits.deadline(due.flow()).is_some() {
            self.waits.set(due.flow(), flow.pacer.next_send().max(now));
        }
    }

    pub(super) fn send_due(&mut self, now: Time) -> Option<u32> {
        self.waits.pop_due(now)
    }
}
