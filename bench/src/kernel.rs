//! The event queue against the standard library's heap, by the hold model: pop the earliest event,
//! and push it again later.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use base::{Seed, Stream, Time};
use kernel::EventQueue;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

/// Number of increments drawn in advance, so that drawing is not measured. A prime, so that an
/// event does not meet the same increment again.
const INCREMENTS: usize = 8_191;
const SIZES: [(&str, usize); 3] = [("100", 100), ("10k", 10_000), ("1m", 1_000_000)];
const DISTRIBUTIONS: [Distribution; 5] = [
    Distribution { infix: "", draw: exponential, ties: false },
    Distribution { infix: "_uniform", draw: |stream| stream.below(2_000_000), ties: false },
    Distribution { infix: "_constant", draw: |_| 1_000_000, ties: true },
    Distribution { infix: "_net", draw: net, ties: false },
    Distribution { infix: "_timers", draw: timers, ties: false },
];

/// A distribution of the time by which an event is postponed.
#[derive(Clone, Copy)]
struct Distribution {
    /// The part of its keys between `hold` and `_ns`.
    infix: &'static str,
    /// Draws one increment in picoseconds.
    draw: fn(&mut Stream) -> u64,
    /// Whether all events start at the same time, and so stay together forever.
    ties: bool,
}

/// Draws an increment with a mean of 1 us.
fn exponential(stream: &mut Stream) -> u64 {
    stream.exponential(1e6) as u64
}

/// Draws the serialization of a 4096-byte packet at 100 Gb/s, a link delay of 500 ns, or a flash
/// read of 50 us plus or minus a tenth.
fn net(stream: &mut Stream) -> u64 {
    match stream.below(3) {
        0 => 327_680,
        1 => 500_000,
        _ => 45_000_000 + stream.below(10_000_000),
    }
}

/// Draws a timer of 1 to 2 ms for one event in a hundred, else an exponential increment with a mean
/// of 1 us.
fn timers(stream: &mut Stream) -> u64 {
    match stream.below(100) {
        0 => 1_000_000_000 + stream.below(1_000_000_000),
        _ => exponential(stream),
    }
}

/// The common interface of both contenders. Ties are first in, first out.
trait Pending {
    fn push(&mut self, at: u64, payload: u64);
    fn pop(&mut self) -> (u64, u64);
}

impl Pending for EventQueue<u64> {
    #[inline]
    fn push(&mut self, at: u64, payload: u64) {
        EventQueue::push(self, Time::ps(at), payload);
    }
    #[inline]
    fn pop(&mut self) -> (u64, u64) {
        let (at, payload) = EventQueue::pop(self).expect("the hold model never empties the queue");
        (at.as_ps(), payload)
    }
}

/// The usual event queue of the standard library: time, then a sequence number for ties, then the
/// payload.
#[derive(Default)]
struct Heap {
    entries: BinaryHeap<Reverse<(u64, u64, u64)>>,
    sequence: u64,
}

impl Pending for Heap {
    #[inline]
    fn push(&mut self, at: u64, payload: u64) {
        self.entries.push(Reverse((at, self.sequence, payload)));
        self.sequence += 1;
    }
    #[inline]
    fn pop(&mut self) -> (u64, u64) {
        let Reverse((at, _, payload)) = self.entries.pop().expect("the hold model never empties the heap");
        (at, payload)
    }
}

/// Pops and pushes events; the result depends on every time and payload and on their order.
fn hold(pending: &mut impl Pending, increments: &[u64], holds: usize) -> u64 {
    let mut mixed = 0u64;
    for increment in increments.iter().cycle().take(holds) {
        let (at, payload) = pending.pop();
        mixed = mixed.rotate_left(1) ^ at ^ payload;
        pending.push(at + increment, payload);
    }
    mixed
}

/// Fills an empty queue as if each event had been pushed some time ago, and holds until the initial
/// state has no effect.
fn warm_up(pending: &mut impl Pending, distribution: Distribution, increments: &[u64], size: usize) {
    let mut elapsed = Seed(2).stream(distribution.infix);
    for (payload, increment) in (0..size as u64).zip(increments.iter().cycle()) {
        let at = if distribution.ties { *increment } else { elapsed.below(increment + 1) };
        pending.push(at, payload);
    }
    hold(pending, increments, 2 * size);
}

fn increments(distribution: Distribution) -> Vec<u64> {
    let mut stream = Seed(1).stream(distribution.infix);
    (0..INCREMENTS).map(|_| (distribution.draw)(&mut stream)).collect()
}

/// Creates a contender: nanoseconds of CPU time per hold.
fn contender<P: Pending + Default>(key: String, distribution: Distribution, size: usize) -> Contender {
    let increments = increments(distribution);
    let holds = size.max(1_000_000);
    let run = move || {
        let mut pending = P::default();
        warm_up(&mut pending, distribution, &increments, size);
        let seconds = cpu_seconds(|| {
            black_box(hold(&mut pending, &increments, holds));
        });
        seconds * 1e9 / holds as f64
    };
    Contender { key, run: Box::new(run) }
}

fn group(distribution: Distribution, (name, size): (&str, usize)) -> Group {
    let key = format!("kernel.hold{}_ns.{name}", distribution.infix);
    let ours = contender::<EventQueue<u64>>(key.clone(), distribution, size);
    let theirs = contender::<Heap>(key + ".binaryheap", distribution, size);
    Group { better: Better::Lower, rounds: if size < 1_000_000 { 5 } else { 3 }, contenders: vec![ours, theirs] }
}

/// Returns every distribution at every size.
pub fn benchmarks() -> Vec<Group> {
    let groups_of = |distribution| SIZES.into_iter().map(move |size| group(distribution, size));
    DISTRIBUTIONS.into_iter().flat_map(groups_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_contenders_give_the_same_events_in_the_same_order() {
        for distribution in DISTRIBUTIONS {
            let increments = increments(distribution);
            let (mut ours, mut theirs) = (EventQueue::new(), Heap::default());
            warm_up(&mut ours, distribution, &increments, 1_000);
            warm_up(&mut theirs, distribution, &increments, 1_000);
            let (ours, theirs) = (hold(&mut ours, &increments, 100_000), hold(&mut theirs, &increments, 100_000));
            assert_eq!(ours, theirs, "hold{}", distribution.infix);
        }
    }

    #[test]
    fn the_keys_that_others_read_are_there() {
        let keys: Vec<_> = benchmarks().into_iter().flat_map(|group| group.contenders).map(|one| one.key).collect();
        for key in ["kernel.hold_ns.100", "kernel.hold_ns.10k", "kernel.hold_ns.1m", "kernel.hold_ns.10k.binaryheap"] {
            assert!(keys.iter().any(|one| one == key), "{key}");
        }
    }
}
