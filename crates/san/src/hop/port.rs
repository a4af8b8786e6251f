//! One port of a hop: what waits to leave by it.

use crate::egress::{EgressQueue, SchedulingConfig};
use crate::packet::{Packet, PacketKind};
use crate::reserve::{Bookings, ClassId, Held, Ledger, Policer, Release, Released, ReservationConfig};
use base::{Bytes, Operation, Rate, Serialization, Time};

/// A port's egress. A packet passes the policer (answers of reads that keep to their way), then the
/// queues, then the wire. In this order in memory: what decides whether a packet goes on at once is
/// in the first cache line.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub(super) struct EgressPort {
    /// Until when the wire is taken.
    busy_until: Time,
    serialization: Serialization,
    /// The earliest wake-up that was asked for and has not come; [`Time::MAX`] when none.
    wake_at: Time,
    pub queue: EgressQueue,
    pub booked: Option<Booked>,
    /// Bytes of frames that wait in the policer, and the most that ever did. They have memory of
    /// their own and none of the buffer's: each session that is shaped has its queue (as in DPDK's
    /// QoS scheduler, which the paper uses), and what may come into it was let in when it was
    /// booked. Were it the buffer's, a port whose wire is idle would drop, and reservation drop
    /// what without it would pass. So a booked answer is not dropped either when the buffer is
    /// full: it stays in the queue of its session.
    held: u64,
    held_max: u64,
    /// Whether the policer waits for room in the queue.
    is_blocked: bool,
}

/// What a port knows of bookings.
#[derive(Clone, Debug)]
pub(super) struct Booked {
    pub bookings: Bookings,
    policer: Policer,
}

/// Where a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Onto the wire, now.
    Wire,
    /// Into a queue.
    Queue,
    /// The policer holds it.
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

    /// Bytes of frames that wait, wherever.
    pub(super) fn waiting(&self) -> Bytes {
        self.queue.used() + Bytes::new(self.held)
    }

    /// The most bytes of frames that ever waited in the policer.
    pub(super) fn held_max(&self) -> Bytes {
        Bytes::new(self.held_max)
    }

    /// Takes the most that waits from now on.
    pub(super) fn restart_highest(&mut self) {
        self.held_max = self.held;
        self.queue.restart_highest();
    }

    /// Takes a packet in; unless the port `is_open`, it does not go onto the wire.
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
            // What leaves the queue makes room.
            self.is_blocked |= Bytes::new(u64::from(packet.frame)) > room;
            return Entry::Policer;
        }
        self.enqueue(now, packet, is_open)
    }

    /// Past the policer.
    #[inline]
    fn enqueue(&mut self, now: Time, packet: &Packet, is_open: bool) -> Entry {
        if is_open && self.busy_until <= now && self.queue.is_empty() {
            self.queue.pass(packet);
            self.busy_until = now + self.serialization.of(Bytes::new(u64::from(packet.frame)));
            return Entry::Wire;
        }
        if self.queue.push(packet) { Entry::Queue } else { Entry::Refused }
    }

    /// Takes one packet out of the policer that may go on, if the queue has room for it, and lets
    /// it.
    pub(super) fn release(&mut self, config: &ReservationConfig, now: Time, is_open: bool) -> Option<(Packet, Entry)> {
        let room = self.queue.room_left();
        let released = self.booked.as_mut()?.release(config, now, room);
        self.is_blocked = released == Released::Blocked;
        let Released::Packet(packet) = released else { return None };
        self.held -= u64::from(packet.frame);
        let entry = self.enqueue(now, &packet, is_open);
        Some((packet, entry))
    }

    /// Takes the packet that is to leave now. It is to be read where it lies.
    pub(super) fn next_to_send(&mut self, now: Time) -> Option<&Packet> {
        if self.busy_until > now {
            return None;
        }
        let packet = self.queue.pop()?;
        self.busy_until = now + self.serialization.of(Bytes::new(u64::from(packet.frame)));
        Some(packet)
    }

    /// Whether nothing is on the wire.
    pub(super) fn is_free(&self, now: Time) -> bool {
        self.busy_until <= now
    }

    /// A packet leaves now that waited in no queue here.
    pub(super) fn occupy(&mut self, now: Time, frame: u32) {
        self.busy_until = now + self.serialization.of(Bytes::new(u64::from(frame)));
    }

    /// When to look at this port again, if no wake-up so early is under way.
    #[inline]
    pub(super) fn wake(&mut self) -> Option<Time> {
        self.wake_for(!self.queue.is_empty())
    }

    /// The same where it is known whether something waits that may go.
    pub(super) fn wake_for(&mut self, has_ready: bool) -> Option<Time> {
        let queue = if has_ready { self.busy_until } else { Time::MAX };
        let due = || self.booked.as_ref().and_then(|booked| booked.policer.next_due()).unwrap_or(Time::MAX);
        let policer = if self.is_blocked { Time::MAX } else { due() };
        let at = queue.min(policer);
        (at < self.wake_at).then(|| {
            self.wake_at = at;
            at
        })
    }

    /// A wake-up has come.
    pub(super) fn woken(&mut self, now: Time) {
        if self.wake_at <= now {
            self.wake_at = Time::MAX;
        }
    }

    /// Takes everything that waits and forgets all bookings: the link has gone.
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
    /// Something of a class will be booked here, or pass.
    #[inline]
    pub(super) fn foresee(&self, class: ClassId) {
        self.bookings.foresee(class);
    }

    /// Prefetches the class after [`foresee`](Self::foresee).
    #[inline]
    pub(super) fn foresee_live(&self, class: ClassId) {
        self.bookings.foresee_live(class);
    }

    /// Books for a read; from now on its session's bucket fills faster.
    pub(super) fn book(&mut self, config: &ReservationConfig, now: Time, packet: &Packet) -> bool {
        let class = config.class_of(packet.tag.session);
        let is_booked = self.bookings.book(config, now, class, packet.bytes);
        if is_booked {
            self.refill(config, now, class);
        }
        is_booked
    }

    fn offer(&mut self, config: &ReservationConfig, now: Time, packet: &Packet, room: Bytes) -> Held {
        let class = config.class_of(packet.tag.session);
        let bucket = self.bookings.bucket(config, now, class);
        let held = self.policer.offer(now, class, bucket, packet, room);
        if held == Held::No && ends_io(config, packet) {
            self.complete(config, now, class, packet);
        }
        held
    }

    fn release(&mut self, config: &ReservationConfig, now: Time, room: Bytes) -> Released {
        let released = self.policer.release(now, room, &mut Ledger { bookings: &mut self.bookings, config });
        if let Released::Packet(packet) = &released
            && ends_io(config, packet)
        {
            self.complete(config, now, config.class_of(packet.tag.session), packet);
        }
        released
    }

    /// Gives back what an I/O had booked, once what ends it is past the policer.
    #[inline(never)]
    fn complete(&mut self, config: &ReservationConfig, now: Time, class: ClassId, packet: &Packet) {
        let Some(hop) = packet.trail.ahead() else { return };
        let booked_at = super::moment(now, hop.time_ns);
        self.bookings.release(config, now, Release { class, bytes: packet.bytes, booked_at });
        self.refill(config, now, class);
        self.bookings.settle(class);
    }

    /// The bucket of a class fills at what it has booked by now.
    fn refill(&mut self, config: &ReservationConfig, now: Time, class: ClassId) {
        let bucket = self.bookings.bucket(config, now, class);
        self.policer.refill(now, class, bucket);
    }
}

/// Whether nothing of its read follows a packet.
fn ends_io(config: &ReservationConfig, packet: &Packet) -> bool {
    packet.kind == PacketKind::Response
        || config.data_end_reads && matches!(packet.kind, PacketKind::ReadData { last: true })
}

/// Whether a packet is an answer of a read that goes back the way of its request: only those were
/// booked for.
fn is_policed(packet: &Packet) -> bool {
    let is_answer = matches!(packet.kind, PacketKind::ReadData { .. } | PacketKind::Response);
    is_answer && packet.operation != Operation::Write && !packet.trail.has_left()
}
