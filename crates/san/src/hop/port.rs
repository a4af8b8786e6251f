//! One port of a hop: its egress side.

use crate::egress::{EgressQueue, SchedulingConfig};
use crate::packet::{Packet, PacketKind};
use crate::reserve::{Bookings, ClassId, ClassPlace, Held, Ledger, Policer, Released, ReservationConfig};
use base::{Bytes, Operation, Rate, Serialization, Time};

/// A port's egress. A packet passes the policer (answers of reads on the path of their request),
/// then the queues, then the wire. The memory order is fixed: the first cache line decides whether
/// a packet passes at once.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub(super) struct EgressPort {
    /// The time until which the wire is busy.
    busy_until: Time,
    serialization: Serialization,
    /// The earliest requested wake-up that has not arrived; [`Time::MAX`] if there is none.
    wake_at: Time,
    pub queue: EgressQueue,
    pub booked: Option<Booked>,
    /// Bytes of frames in the policer, and their highest number. They have separate memory and none
    /// of the buffer's. Each shaped session has its own queue (as in DPDK's QoS scheduler, which
    /// the paper uses), and its packets were admitted when they were booked.
    ///
    /// If they used the buffer, a port with an idle wire would drop, and reservation would drop
    /// packets that pass without it. For the same reason, a booked answer is not dropped when the
    /// buffer is full: it stays in the queue of its session.
    held: u64,
    held_max: u64,
    /// Whether the policer waits for room in the queue.
    is_blocked: bool,
}

/// The bookings of a port and their policer.
#[derive(Clone, Debug)]
pub(super) struct Booked {
    pub bookings: Bookings,
    policer: Policer,
}

/// Where a packet was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// On the wire, now.
    Wire,
    /// In a queue.
    Queue,
    /// In the policer.
    Policer,
    /// Nowhere: the buffer is full.
    Refused,
}

impl EgressPort {
    pub(super) fn new(
        rate: Rate,
        buffer: Bytes,
        scheduling: &SchedulingConfig,
        reservation: Option<&ReservationConfig>,
    ) -> EgressPort {
        let booked = |config| Booked { bookings: Bookings::new(config, rate), policer: Policer::new() };
        EgressPort {
            queue: EgressQueue::new(scheduling, buffer),
            booked: reservation.map(booked),
            serialization: Serialization::new(rate),
            busy_until: Time::ZERO,
            wake_at: Time::MAX,
            held: 0,
            held_max: 0,
            is_blocked: false,
        }
    }

    /// Returns the bytes of frames that wait in the queue or in the policer.
    pub(super) fn waiting(&self) -> Bytes {
        self.queue.used() + Bytes::new(self.held)
    }

    /// Returns the number of these packets.
    pub(super) fn packets(&self) -> usize {
        self.queue.packets() + self.booked.as_ref().map_or(0, |booked| booked.policer.held())
    }

    /// Returns the highest number of bytes of frames in the policer.
    pub(super) fn held_max(&self) -> Bytes {
        Bytes::new(self.held_max)
    }

    /// Restarts the highest fill levels at the present ones.
    pub(super) fn restart_highest(&mut self) {
        self.held_max = self.held;
        self.queue.restart_highest();
    }

    /// Accepts a packet; it is not sent at once unless the port `is_open`.
    #[inline]
    pub(super) fn enter(
        &mut self,
        config: Option<&ReservationConfig>,
        now: Time,
        packet: &Packet,
        is_open: bool,
    ) -> Entry {
        if Bytes::new(u64::from(packet.frame)) > self.queue.room() {
            return Entry::Refused;
        }
        let room = self.queue.room_left();
        if let (Some(config), Some(booked)) = (config, &mut self.booked)
            && is_policed(packet)
            && booked.offer(config, now, packet, room) == Held::Yes
        {
            self.held += u64::from(packet.frame);
            self.held_max = self.held_max.max(self.held);
            // A departure from the queue makes room.
            self.is_blocked |= Bytes::new(u64::from(packet.frame)) > room;
            return Entry::Policer;
        }
        self.enqueue(now, packet, is_open)
    }

    /// Queues or sends a packet that has passed the policer.
    #[inline]
    fn enqueue(&mut self, now: Time, packet: &Packet, is_open: bool) -> Entry {
        if is_open && self.busy_until <= now && self.queue.is_empty() {
            self.queue.pass(packet);
            self.busy_until = now + self.serialization.of(Bytes::new(u64::from(packet.frame)));
            return Entry::Wire;
        }
        if self.queue.push(packet) { Entry::Queue } else { Entry::Refused }
    }

    /// Returns whether [`release`](Self::release) may have something to do.
    #[inline]
    pub(super) fn may_release(&mut self) -> bool {
        let is_idle = self.booked.as_ref().is_none_or(Booked::is_idle);
        self.is_blocked &= !is_idle;
        !is_idle
    }

    /// Removes one packet from the policer that may proceed, if the queue has room for it, and
    /// queues or sends it.
    pub(super) fn release(&mut self, config: &ReservationConfig, now: Time, is_open: bool) -> Option<(Packet, Entry)> {
        let room = self.queue.room_left();
        let released = self.booked.as_mut()?.release(config, now, room);
        self.is_blocked = released == Released::Blocked;
        let Released::Packet(packet) = released else { return None };
        self.held -= u64::from(packet.frame);
        let entry = self.enqueue(now, &packet, is_open);
        Some((packet, entry))
    }

    /// Removes the packet to send now and returns a reference to its slot.
    pub(super) fn next_to_send(&mut self, now: Time) -> Option<&Packet> {
        if self.busy_until > now {
            return None;
        }
        let packet = self.queue.pop()?;
        self.busy_until = now + self.serialization.of(Bytes::new(u64::from(packet.frame)));
        Some(packet)
    }

    /// Returns whether the wire is free.
    pub(super) fn is_free(&self, now: Time) -> bool {
        self.busy_until <= now
    }

    /// Occupies the wire for a packet that was not queued here.
    pub(super) fn occupy(&mut self, now: Time, frame: u32) {
        self.busy_until = now + self.serialization.of(Bytes::new(u64::from(frame)));
    }

    /// Returns when to poll this port again, if no wake-up is pending for that time or earlier.
    #[inline]
    pub(super) fn wake(&mut self) -> Option<Time> {
        self.wake_for(!self.queue.is_empty())
    }

    /// The same, given whether a packet waits that may be sent.
    pub(super) fn wake_for(&mut self, has_ready: bool) -> Option<Time> {
        let queue = if has_ready { self.busy_until } else { Time::MAX };
        let due = || self.booked.as_ref().and_then(Booked::next_due).unwrap_or(Time::MAX);
        let policer = if self.is_blocked { Time::MAX } else { due() };
        let at = queue.min(policer);
        (at < self.wake_at).then(|| {
            self.wake_at = at;
            at
        })
    }

    /// Records that a wake-up has arrived.
    pub(super) fn woken(&mut self, now: Time) {
        if self.wake_at <= now {
            self.wake_at = Time::MAX;
        }
    }

    /// Removes all waiting packets and drops all bookings: the link has failed.
    pub(super) fn fail(&mut self, waiting: &mut Vec<Packet>) {
        while let Some(packet) = self.queue.pop() {
            waiting.push(packet.copied());
        }
        if let Some(booked) = &mut self.booked {
            booked.policer.drain(|packet| waiting.push(packet));
            booked.bookings.revoke();
        }
        (self.held, self.is_blocked) = (0, false);
        self.busy_until = Time::ZERO;
    }
}

impl Booked {
    /// Prefetches the bookings of a class.
    #[inline]
    pub(super) fn prefetch(&self, class: ClassId) {
        self.bookings.prefetch(class);
    }

    /// Books for a read; from now on its session's bucket fills faster.
    pub(super) fn book(&mut self, config: &ReservationConfig, now: Time, packet: &Packet) -> bool {
        let class = config.class_of(packet.tag.session);
        let place = self.bookings.book_at(config, now, class, packet.bytes);
        if let Some(place) = place {
            self.refill(config, now, class, place);
        }
        place.is_some()
    }

    /// Returns whether nothing waits here, for its tokens or for a rate.
    fn is_idle(&self) -> bool {
        self.policer.next_due().is_none() && self.bookings.is_direct()
    }

    /// Returns when to release packets: a rate that is installed meanwhile moves their times.
    fn next_due(&self) -> Option<Time> {
        let due = self.policer.next_due()?;
        Some(self.bookings.next_install().map_or(due, |install| due.min(install)))
    }

    fn offer(&mut self, config: &ReservationConfig, now: Time, packet: &Packet, room: Bytes) -> Held {
        self.install(config, now);
        let class = config.class_of(packet.tag.session);
        let place = self.bookings.meet(config, class);
        let bucket = self.bookings.bucket_at(config, now, place);
        let held = self.policer.offer(now, class, bucket, packet, room);
        if held == Held::No && ends_io(config, packet) {
            self.complete(config, now, class, place, packet);
        }
        held
    }

    fn release(&mut self, config: &ReservationConfig, now: Time, room: Bytes) -> Released {
        self.install(config, now);
        let released = self.policer.release(now, room, &mut Ledger { bookings: &mut self.bookings, config });
        if let Released::Packet(packet) = &released
            && ends_io(config, packet)
        {
            let class = config.class_of(packet.tag.session);
            let place = self.bookings.meet(config, class);
            self.complete(config, now, class, place, packet);
        }
        released
    }

    /// Releases the booking of an I/O, once its last packet has passed the policer.
    #[inline(never)]
    fn complete(&mut self, config: &ReservationConfig, now: Time, class: ClassId, place: ClassPlace, packet: &Packet) {
        let Some(hop) = packet.trail.ahead() else { return };
        let booked_at = super::moment(now, hop.time_ns);
        self.bookings.release_at(config, now, place, packet.bytes, booked_at);
        self.refill(config, now, class, place);
        self.bookings.settle(class);
    }

    /// Updates the fill rate of a class's bucket to its present bookings.
    fn refill(&mut self, config: &ReservationConfig, now: Time, class: ClassId, place: ClassPlace) {
        self.bookings.request(config, now, class, place);
        self.reschedule(config, now, class, place);
    }

    /// Installs the rates that the control plane has ready.
    #[inline]
    fn install(&mut self, config: &ReservationConfig, now: Time) {
        if !self.bookings.is_direct() {
            self.install_all(config, now);
        }
    }

    #[inline(never)]
    fn install_all(&mut self, config: &ReservationConfig, now: Time) {
        while let Some(class) = self.bookings.install(config, now) {
            let place = self.bookings.meet(config, class);
            self.reschedule(config, now, class, place);
            self.bookings.settle(class);
        }
    }

    #[inline]
    fn reschedule(&mut self, config: &ReservationConfig, now: Time, class: ClassId, place: ClassPlace) {
        let bucket = self.bookings.bucket_at(config, now, place);
        self.policer.refill(now, class, bucket);
    }
}

/// Returns whether a packet is the last one of its read.
fn ends_io(config: &ReservationConfig, packet: &Packet) -> bool {
    packet.kind == PacketKind::Response
        || config.data_end_reads && matches!(packet.kind, PacketKind::ReadData { last: true })
}

/// Returns whether a packet is an answer of a read on the path of its request: only those were
/// booked.
fn is_policed(packet: &Packet) -> bool {
    let is_answer = matches!(packet.kind, PacketKind::ReadData { .. } | PacketKind::Response);
    is_answer && packet.operation != Operation::Write && !packet.trail.has_left()
}
