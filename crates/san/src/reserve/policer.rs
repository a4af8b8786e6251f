//! The policer: holds back the answers of a session that exceed its bookings, without delaying
//! other sessions.

use super::ClassId;
use crate::packet::Packet;
use base::{Bytes, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use transport::TokenBucket;

/// The policer of one port's egress. Each class has a bucket, stored in its [`Buckets`], and a
/// queue of its own, so that a waiting class blocks no other.
#[derive(Clone, Debug, Default)]
pub struct Policer {
    /// Queues of the classes of which a packet has ever waited. Few, and none if traffic matches
    /// the estimates.
    queues: BTreeMap<ClassId, Queue>,
    /// When the head of a class may leave. Entries that differ from [`Queue::due`] are stale.
    due: BinaryHeap<Reverse<(Time, ClassId)>>,
    held: usize,
}

/// The buckets of a port.
pub trait Buckets {
    /// Returns the bucket of a class, which fills at the booked rate of the class from `now` on.
    fn bucket(&mut self, now: Time, class: ClassId) -> &mut TokenBucket;
}

/// The waiting packets of a class.
#[derive(Clone, Debug)]
struct Queue {
    packets: VecDeque<Packet>,
    /// When the first may leave; [`Time::MAX`] if none waits.
    due: Time,
}

/// Whether the policer holds a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The packet may proceed.
    No,
    /// The packet waits: see [`Policer::next_due`].
    Yes,
}

/// The result of [`Policer::release`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation a packet")]
pub enum Released {
    /// A packet that may proceed.
    Packet(Packet),
    /// A packet may proceed, but its destination has no room.
    Blocked,
    /// No packet may proceed yet.
    Nothing,
}

impl Policer {
    /// Creates an empty policer.
    pub fn new() -> Policer {
        Policer::default()
    }

    /// Returns the number of waiting packets.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns when to call [`release`](Self::release) at the latest; it may be earlier than
    /// necessary.
    pub fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Holds a packet or lets it proceed. It proceeds if no packet of its class waits and its
    /// destination has `room`. In addition, the class's bucket must have its bytes, or the class
    /// must have booked nothing (the bucket does not fill).
    #[inline]
    pub fn offer(&mut self, now: Time, class: ClassId, bucket: &mut TokenBucket, packet: &Packet, room: Bytes) -> Held {
        let has_room = u64::from(packet.frame) <= room.count();
        if has_room && !self.holds(class) && may_pass(bucket, now, packet) {
            return Held::No;
        }
        self.hold(now, class, bucket, packet);
        Held::Yes
    }

    /// Returns whether a packet of a class waits.
    fn holds(&self, class: ClassId) -> bool {
        self.held > 0 && self.queues.get(&class).is_some_and(|queue| !queue.packets.is_empty())
    }

    #[cold]
    fn hold(&mut self, now: Time, class: ClassId, bucket: &mut TokenBucket, packet: &Packet) {
        let queue = self.queues.entry(class).or_insert_with(Queue::new);
        queue.packets.push_back(packet.copied());
        self.held += 1;
        self.due.extend(queue.plan(now, class, bucket));
    }

    /// Reschedules the waiting packets of a class after a change of its bucket's rate.
    #[inline]
    pub fn refill(&mut self, now: Time, class: ClassId, bucket: &mut TokenBucket) {
        if self.held == 0 {
            return;
        }
        if let Some(queue) = self.queues.get_mut(&class).filter(|queue| !queue.packets.is_empty()) {
            self.due.extend(queue.plan(now, class, bucket));
        }
    }

    /// Removes one packet of at most `room` bytes that may proceed at `now`, the longest due first.
    /// Buckets are evaluated again: bookings may lapse while packets wait, and then nothing holds
    /// these back.
    pub fn release(&mut self, now: Time, room: Bytes, buckets: &mut impl Buckets) -> Released {
        while let Some(Reverse((at, class))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            let queue = self.queues.get_mut(&class).expect("a class that is due has waited");
            let first = queue.packets.front().filter(|_| queue.due == at);
            if first.is_some_and(|first| u64::from(first.frame) > room.count()) {
                return Released::Blocked;
            }
            self.due.pop();
            let Some(first) = first else { continue };
            let bucket = buckets.bucket(now, class);
            let passed = if may_pass(bucket, now, first) { queue.packets.pop_front() } else { None };
            queue.due = Time::MAX;
            self.due.extend(queue.plan(now, class, bucket));
            if let Some(packet) = passed {
                self.held -= 1;
                return Released::Packet(packet);
            }
        }
        Released::Nothing
    }

    /// Removes all waiting packets, in the order of classes: the port has failed.
    pub fn drain(&mut self, mut take: impl FnMut(Packet)) {
        for queue in self.queues.values_mut() {
            queue.due = Time::MAX;
            queue.packets.drain(..).for_each(&mut take);
        }
        self.due.clear();
        self.held = 0;
    }
}

impl Queue {
    fn new() -> Queue {
        Queue { packets: VecDeque::new(), due: Time::MAX }
    }

    /// Computes when the first packet may leave. Returns the new entry for the policer's dues, if
    /// the time has changed.
    fn plan(&mut self, now: Time, class: ClassId, bucket: &mut TokenBucket) -> Option<Reverse<(Time, ClassId)>> {
        let Some(first) = self.packets.front() else {
            self.due = Time::MAX;
            return None;
        };
        let due = bucket.ready_at(now, Bytes::new(u64::from(first.frame))).unwrap_or(now);
        let has_changed = due != self.due;
        self.due = due;
        has_changed.then_some(Reverse((due, class)))
    }
}

/// Takes the packet's tokens. Returns whether there were enough, or nothing is booked.
fn may_pass(bucket: &mut TokenBucket, now: Time, packet: &Packet) -> bool {
    !bucket.fills() || bucket.take(now, Bytes::new(u64::from(packet.frame)))
}
