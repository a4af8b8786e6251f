//! Connections that keep to a rate, as queue pairs of RoCE with DCQCN do (SIGCOMM 2015), and the
//! links that they take turns at.
//!
//! A sender hands a packet to its link when the rate of the connection allows it, the link is free
//! and the hop at its other end has not paused it (IEEE 802.1Qbb). Acknowledgements and
//! notifications of congestion go beside that: they are a class which is never paused. The network
//! loses nothing until something breaks. What is lost then shows by what follows it, and the sender
//! goes back to it (go-back-N), or by silence. The receiver keeps what came meanwhile, as adapters
//! do that take packets out of order.

use super::{Flow, PacedConfig, Reply};
use crate::id::Port;
use crate::packet::{Packet, PacketKind};
use base::{Bytes, Rate, Serialization, Span, Time};
use std::collections::VecDeque;
use transport::common::Timers;
use transport::dcqcn::{Due, Notifier, Pacer, RateTimers};

/// No offset.
const NEVER: u64 = u64::MAX;

/// This side of a connection, beside its stream.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    pacer: Pacer,
    /// First byte that is not acknowledged.
    acknowledged: u64,
    /// Next byte to send; falls back to what is missing.
    next: u64,
    /// The hole that the receiver told of last and that was gone back to.
    mended: u64,
    /// When to go back to what is not acknowledged; [`Time::MAX`] when nothing is under way.
    deadline: Time,
    timeout: Span,
    hole_patience: Span,
    /// Whether it waits for its turn at a link.
    is_listed: bool,
    notifier: Notifier,
    /// The hole that this side, as a receiver, told of last.
    told: u64,
}

impl Paced {
    /// The first packet that was not sent, or is to be sent again: the offset behind it, and its
    /// place.
    pub(super) fn next_of(&self, kept: &VecDeque<(u64, u32)>) -> Option<(u64, u32)> {
        kept.get(kept.partition_point(|(behind, _)| *behind <= self.next)).copied()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        Some(self.deadline).filter(|deadline| *deadline != Time::MAX)
    }

    /// Everything before `offset` has come; `is_missing` where what is there has not, and something
    /// behind it has.
    pub(super) fn acknowledge(&mut self, now: Time, offset: u64, is_missing: bool) {
        if offset > self.acknowledged {
            self.acknowledged = offset;
            self.next = self.next.max(offset);
            self.deadline = if self.next > offset { now + self.timeout } else { Time::MAX };
        }
        if is_missing && offset == self.acknowledged && offset < self.next && offset != self.mended {
            self.mended = offset;
            match self.hole_patience {
                Span::ZERO => self.next = offset,
                patience => self.deadline = self.deadline.min(now + patience),
            }
        }
    }

    /// A packet leaves. What is known to be missing is not waited for any longer by it.
    fn expect_answer(&mut self, now: Time) {
        let is_patient = self.hole_patience > Span::ZERO && self.mended == self.acknowledged;
        if !is_patient || self.deadline == Time::MAX {
            self.deadline = now + self.timeout;
        }
    }

    /// It waits for no turn any more.
    pub(super) fn end_turn(&mut self) {
        self.is_listed = false;
    }

    /// Nothing was heard for too long.
    pub(super) fn time_out(&mut self) {
        (self.next, self.mended, self.deadline) = (self.acknowledged, NEVER, Time::MAX);
    }

    /// What a packet is answered with that has come, `delivered` packets being in order by it. The
    /// last of a command, of an answer or of data is acknowledged, as InfiniBand allows
    /// (9.7.5.1.2).
    pub(super) fn reply(&mut self, expected: u64, is_gap: bool, delivered: usize, packet: &Packet) -> Option<Reply> {
        if is_gap {
            let is_new = std::mem::replace(&mut self.told, expected) != expected;
            return is_new.then_some(Reply::Missing);
        }
        use PacketKind::{ReadData, WriteData};
        let ends = !matches!(packet.kind, WriteData { last: false } | ReadData { last: false });
        // None: it was there before, and its sender does not know.
        (ends || delivered != 1).then_some(Reply::Received)
    }
}

/// What the paced connections of a place have in common.
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

/// A link, and the connections that want it.
#[derive(Clone, Debug)]
struct Link {
    rate: Rate,
    serialization: Serialization,
    /// Until when it is taken.
    busy_until: Time,
    is_paused: bool,
    /// Connections that may send now, in turns.
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

    /// A connection begins, on the link of `port`: at its rate, as every flow starts.
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
            hole_patience: self.config.hole_patience,
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

    /// Lets a connection take its turn at the link of its next packet, now or when its rate allows.
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

    /// A link that is free and not paused, and the connection whose turn it is.
    pub(super) fn next_turn(&mut self, now: Time) -> Option<(Port, u32)> {
        let is_open = |link: &Link| !link.is_paused && link.busy_until <= now && !link.ring.is_empty();
        let port = self.links.iter().position(is_open)?;
        self.links[port].ring.pop_front().map(|place| (Port(port as u16), place))
    }

    /// A packet of `frame` bytes leaves in its turn, by `port`; `behind` is the offset behind it.
    pub(super) fn sent(&mut self, now: Time, flow: &mut Paced, (behind, frame): (u64, u32), port: Port) {
        flow.next = behind;
        flow.expect_answer(now);
        flow.pacer.sent(now, frame, &self.config.dcqcn);
        if let Some(link) = self.links.get_mut(port.index()) {
            link.occupy(now, frame);
        }
    }

    /// A packet that is never paused leaves behind what the link has already.
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

    /// A marked packet has come; whether its sender is told.
    pub(super) fn is_told(&self, now: Time, flow: &mut Paced) -> bool {
        flow.notifier.is_due(now, &self.config.dcqcn)
    }

    /// The receiver has told of marks.
    pub(super) fn notified(&mut self, now: Time, place: u32, flow: &mut Paced) {
        self.rates.notified(now, place, &mut flow.pacer, &self.config.dcqcn);
    }

    pub(super) fn rate_due(&mut self, now: Time) -> Option<Due> {
        self.rates.pop_due(now)
    }

    /// The rate of a connection moves: a packet that waits for it goes sooner or later.
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
