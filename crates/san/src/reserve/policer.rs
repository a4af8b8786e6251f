//! Holds the answers of a session back that would exceed what it has booked, and nobody else's.

use super::ClassId;
use crate::packet::Packet;
use base::{Bytes, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use transport::TokenBucket;

/// The policer of one port's egress. Each class has a bucket, which its [`Buckets`] keep, and a
/// queue of its own, so that a class that waits holds no other up.
#[derive(Clone, Debug, Default)]
pub struct Policer {
    /// By class, those of which anything has ever waited: few, and none where the bookings are as
    /// the estimates say.
    queues: BTreeMap<ClassId, Queue>,
    /// When the head of a class may leave. Entries that no longer agree with [`Queue::due`] are
    /// stale.
    due: BinaryHeap<Reverse<(Time, ClassId)>>,
    held: usize,
}

/// The buckets of a port.
pub trait Buckets {
    /// The bucket of a class, filling from `now` on at what the class has booked.
    fn bucket(&mut self, now: Time, class: ClassId) -> &mut TokenBucket;
}

/// What waits of a class.
#[derive(Clone, Debug)]
struct Queue {
    packets: VecDeque<Packet>,
    /// When the first may leave; [`Time::MAX`] when none waits.
    due: Time,
}

/// Whether a packet may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It may.
    No,
    /// It waits: see [`Policer::next_due`].
    Yes,
}

/// What came of asking for a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation a packet")]
pub enum Released {
    /// This one may go on.
    Packet(Packet),
    /// One may, but there is no room where it goes.
    Blocked,
    /// None may yet.
    Nothing,
}

impl Policer {
    /// Nothing waits.
    pub fn new() -> Policer {
        Policer::default()
    }

    /// Packets that wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// When [`release`](Self::release) is next to be called: not later than that, at times earlier.
    pub fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a packet to hold it, or lets it go on. It goes on when nothing of its session waits,
    /// there is `room` where it goes, and the bucket of its class has its bytes or its class has
    /// booked nothing (the bucket does not fill).
    #[inline]
    pub fn offer(&mut self, now: Time, class: ClassId, bucket: &mut TokenBucket, packet: &Packet, room: Bytes) -> Held {
        let has_room = u64::from(packet.frame) <= room.count();
        if has_room && !self.holds(class) && may_pass(bucket, now, packet) {
            return Held::No;
        }
        self.hold(now, class, bucket, packet);
        Held::Yes
    }

    /// Whether something of a class waits.
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

    /// The rate of a class's bucket has changed; what waits is looked at anew.
    #[inline]
    pub fn refill(&mut self, now: Time, class: ClassId, bucket: &mut TokenBucket) {
        if self.held == 0 {
            return;
        }
        if let Some(queue) = self.queues.get_mut(&class).filter(|queue| !queue.packets.is_empty()) {
            self.due.extend(queue.plan(now, class, bucket));
        }
    }

    /// Takes one packet of at most `room` that may go on at `now`, the longest due first. Buckets
    /// are asked anew: bookings lapse while packets wait, and then nothing holds those any more.
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

    /// Takes everything that waits, in the order of classes: the port has failed.
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

    /// Notes when the first packet may leave; what is to be added to the dues of the policer, if
    /// that has changed.
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

/// Takes the packet's tokens, if they are there or nothing was booked.
fn may_pass(bucket: &mut TokenBucket, now: Time, packet: &Packet) -> bool {
    !bucket.fills() || bucket.take(now, Bytes::new(u64::from(packet.frame)))
}
