//! The event queue against the standard library's heap, by the hold model: pop the earliest, push
//! it again later.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use base::{Seed, Stream, Time};
use kernel::EventQueue;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

/// How many increments are drawn in advance, so that drawing them is not measured: a prime, so that
/// the same event does not meet the same increment again.
const INCREMENTS: usize = 8_191;
const SIZES: [(&str, usize); 3] = [("100", 100), ("10k", 10_000), ("1m", 1_000_000)];
const DISTRIBUTIONS: [Distribution; 5] = [
    Distribution { infix: "", draw: exponential, ties: false },
    Distribution { infix: "_uniform", draw: |stream| stream.below(2_000_000), ties: false },
    Distribution { infix: "_constant", draw: |_| 1_000_000, ties: true },
    Distribution { infix: "_net", draw: net, ties: false },
    Distribution { infix: "_timers", draw: timers, ties: false },
];

/// By how much an event is put off.
#[derive(Clone, Copy)]
struct Distribution {
    /// What its keys have between `hold` and `_ns`.
    infix: &'static str,
    /// One increment in picoseconds.
    draw: fn(&mut Stream) -> u64,
    /// All events start at the same time, and so stay together for ever.
    ties: bool,
}

/// Mean 1 us.
fn exponential(stream: &mut Stream) -> u64 {
    stream.exponential(1e6) as u64
}

/// A 4096-byte packet's serialization at 100 Gb/s, a link of 500 ns, or a flash read of 50 us give
/// or take a tenth.
fn net(stream: &mut Stream) -> u64 {
    match stream.below(3) {
        0 => 327_680,
        1 => 500_000,
        _ => 45_000_000 + stream.below(10_000_000),
    }
}

/// One event in a hundred is a timer of 1 to 2 ms, the others are exponential with a mean of 1 us.
fn timers(stream: &mut Stream) -> u64 {
    match stream.below(100) {
        0 => 1_000_000_000 + stream.below(1_000_000_000),
        _ => exponential(stream),
    }
}

/// Both contenders behind one face. Ties are first-in first-out.
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

/// The usual event queue of the standard library: time, then a sequence number for the ties, then
/// the payload.
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

/// Pops and pushes again; the result depends on every time and payload and on their order.
fn hold(pending: &mut impl Pending, increments: &[u64], holds: usize) -> u64 {
    let mut mixed = 0u64;
    for increment in increments.iter().cycle().take(holds) {
        let (at, payload) = pending.pop();
        mixed = mixed.rotate_left(1) ^ at ^ payload;
        pending.push(at + increment, payload);
    }
    mixed
}

/// Fills an empty queue, as if each event had been pushed some time ago, and holds until that no
/// longer shows.
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

/// One contender: nanoseconds of CPU time a hold.
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

/// Every distribution at every size.
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
