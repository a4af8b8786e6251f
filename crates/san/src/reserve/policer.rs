//! Holds the answers of a session back that would exceed what it has booked, and nobody else's.

use super::{ClassId, ReservationConfig};
use crate::packet::Packet;
use base::{Bytes, Rate, Time};
use prefetch_index::prefetch_index;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use transport::TokenBucket;

/// The policer of one port's egress. Each class has a bucket and a queue of its own, so that a class that waits holds no other up.
#[derive(Clone, Debug)]
pub struct Policer {
    /// Empty until the first packet comes.
    classes: Vec<Class>,
    /// When the head of a class may leave. Entries that no longer agree with [`Class::due`] are stale.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    held: usize,
}

#[derive(Clone, Debug)]
struct Class {
    bucket: TokenBucket,
    waiting: VecDeque<Packet>,
    /// When the first that waits may leave; [`Time::MAX`] when none waits.
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
        Policer { classes: Vec::new(), due: BinaryHeap::new(), held: 0 }
    }

    /// Packets that wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// When [`release`](Self::release) is next to be called: not later than that, at times earlier.
    pub fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a packet to hold it, or lets it go on. It goes on when nothing of its session waits, there is `room` where it goes, and the bucket has its bytes or
    /// its session has booked nothing (`fill` is zero).
    pub fn offer(
        &mut self,
        config: &ReservationConfig,
        now: Time,
        class: ClassId,
        packet: &Packet,
        fill: Rate,
        room: Bytes,
    ) -> Held {
        let index = class.index();
        if self.classes.is_empty() {
            self.classes = vec![Class::new(config.burst); config.classes as usize];
        }
        let class = &mut self.classes[index];
        class.bucket.set_rate(now, fill);
        let has_room = u64::from(packet.frame) <= room.count();
        if class.waiting.is_empty() && has_room && class.may_pass(now, packet) {
            return Held::No;
        }
        class.waiting.push_back(*packet);
        self.held += 1;
        self.plan(now, index);
        Held::Yes
    }

    /// A packet of a class will come soon.
    #[inline]
    pub(crate) fn foresee(&self, class: ClassId) {
        prefetch_index(&self.classes, class.index());
    }

    /// The rate of a class's bucket has changed; what waits is looked at anew.
    pub fn refill(&mut self, now: Time, class: ClassId, fill: Rate) {
        let index = class.index();
        let Some(class) = self.classes.get_mut(index) else { return };
        class.bucket.set_rate(now, fill);
        if !class.waiting.is_empty() {
            self.plan(now, index);
        }
    }

    /// Takes one packet of at most `room` that may go on at `now`, the longest due first. `fill` tells what a class has booked: bookings lapse while packets
    /// wait, and then nothing holds those any more.
    pub fn release(&mut self, now: Time, room: Bytes, fill: impl Fn(ClassId) -> Rate) -> Released {
        while let Some(Reverse((at, index))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            let class = &mut self.classes[index as usize];
            let first = class.waiting.front().copied().filter(|_| class.due == at);
            if first.is_some_and(|first| u64::from(first.frame) > room.count()) {
                return Released::Blocked;
            }
            self.due.pop();
            let Some(first) = first else { continue };
            class.due = Time::MAX;
            class.bucket.set_rate(now, fill(ClassId(index)));
            let passes = class.may_pass(now, &first);
            if passes {
                class.waiting.pop_front();
                self.held -= 1;
            }
            self.plan(now, index as usize);
            if passes {
                return Released::Packet(first);
            }
        }
        Released::Nothing
    }

    /// Takes everything that waits, in the order of classes: the port has failed.
    pub fn drain(&mut self, mut take: impl FnMut(Packet)) {
        for class in &mut self.classes {
            class.due = Time::MAX;
            class.waiting.drain(..).for_each(&mut take);
        }
        self.due.clear();
        self.held = 0;
    }

    /// Notes when the first packet that waits in a class may leave.
    fn plan(&mut self, now: Time, index: usize) {
        let class = &mut self.classes[index];
        let Some(first) = class.waiting.front() else {
            class.due = Time::MAX;
            return;
        };
        let due = class.bucket.ready_at(now, Bytes::new(u64::from(first.frame))).unwrap_or(now);
        if due != class.due {
            class.due = due;
            self.due.push(Reverse((due, index as u32)));
        }
    }
}

impl Default for Policer {
    fn default() -> Policer {
        Policer::new()
    }
}

impl Class {
    fn new(burst: Bytes) -> Class {
        Class { bucket: TokenBucket::new(burst), waiting: VecDeque::new(), due: Time::MAX }
    }

    /// Takes the packet's tokens, if they are there or nothing was booked.
    fn may_pass(&mut self, now: Time, packet: &Packet) -> bool {
        !self.bucket.fills() || self.bucket.take(now, Bytes::new(u64::from(packet.frame)))
    }
}
