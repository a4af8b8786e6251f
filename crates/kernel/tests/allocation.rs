//! A queue that has reached its size does not allocate, as counted by the allocator.
//!
//! The only test in this file, because the count covers the whole process.
#![expect(unsafe_code, reason = "a global allocator can only be written with it; it hands every call to the system's")]

use base::{Seed, Span, Stream, Time};
use kernel::EventQueue;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is passed to the system's allocator with the caller's own arguments; counting
// touches none of its memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Draws mostly a microsecond, sometimes zero, sometimes a timer of a millisecond.
fn delay(stream: &mut Stream) -> Span {
    match stream.below(50) {
        0 => Span::ms(1),
        1..5 => Span::ZERO,
        _ => Span::from_ps_f64(stream.exponential(1e6)),
    }
}

fn hold(queue: &mut EventQueue<[u64; 3]>, stream: &mut Stream, times: usize) {
    for _ in 0..times {
        let (now, event) = queue.pop().expect("as many go in as come out");
        queue.push(now + delay(stream), event);
    }
}

#[test]
fn a_million_events_pass_without_one_allocation_once_the_queue_has_its_size() {
    let counted_before = ALLOCATIONS.load(Ordering::Relaxed);
    let mut queue = EventQueue::new();
    let mut stream = Seed(1).stream("delays");
    (0..5_000).for_each(|n| queue.push(Time::ZERO + delay(&mut stream), [n; 3]));
    hold(&mut queue, &mut stream, 1_000_000);
    let warm = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(warm > counted_before, "the allocator does not count");
    hold(&mut queue, &mut stream, 1_000_000);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - warm, 0, "{:?}", queue.statistics());
}
