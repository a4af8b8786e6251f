//! Does a running network allocate? Counted by an allocator of this test's own.
//!
//! `unsafe` is allowed here, and only here: an allocator is an unsafe trait. Each call goes to the
//! system's allocator as it came.
#![allow(unsafe_code)]

#[path = "sim/support/mod.rs"]
mod support;

use record::{Row, RunIdentity, Sink, SinkError};
use sim::drive::{Unobserved, drive};
use sim::rigs::edm::{EdmRig, EdmRigConfig};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use support::{cluster, limits, uniform};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on to `System` with the arguments with which it came, so its
// promises are `System`'s.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Notes the number of allocations when so many requests have ended.
struct Milestones {
    rows: u64,
    at: [u64; 2],
    allocations: [u64; 2],
}

impl Sink for Milestones {
    fn row(&mut self, _: &Row) -> Result<(), SinkError> {
        self.rows += 1;
        if let Some(milestone) = self.at.iter().position(|at| *at == self.rows) {
            self.allocations[milestone] = ALLOCATIONS.load(Relaxed);
        }
        Ok(())
    }
}

/// Allocations of `config` at load 0.8 of 64 B reads and writes while 100,000 requests end, after
/// the first 20,000.
fn allocations_in_steady_state(config: EdmRigConfig) -> u64 {
    let nodes = config.nodes;
    let mut rig = EdmRig::new(config);
    // Ten blocks of data and 1.5 of control, at 0.8 of 100 Gb/s, reads and writes alike.
    let gap_ps = 11.5 * 640.0 / 0.8;
    let mut source = uniform(nodes, 130_000, gap_ps, 0.5, 64, 11);
    let mut sink = Milestones { rows: 0, at: [20_000, 120_000], allocations: [0; 2] };
    let limits = limits(base::Span::ZERO);
    drive(&mut rig, &mut source, &mut sink, RunIdentity::default(), &limits, &mut Unobserved)
        .expect("it takes every row");
    assert_eq!(sink.rows, 130_000);
    sink.allocations[1] - sink.allocations[0]
}

/// What is left are buffers that double when a new longest queue comes up (an ordered list of one
/// of 144 ports, a queue of one host). They are few, and rarer the longer a run is. None is per
/// event or request. All in one test: tests run beside each other, and the counter is one for all.
#[test]
fn a_network_in_steady_state_does_not_allocate() {
    let plain = EdmRigConfig { wire_check: false, ..cluster(144) };
    let doublings_at_most = 60;
    for (name, config) in [
        ("plain", plain.clone()),
        ("encoded", EdmRigConfig { wire_check: true, ..plain.clone() }),
        ("with a backup", EdmRigConfig { redundant: true, ..plain }),
    ] {
        let allocations = allocations_in_steady_state(config);
        assert!(allocations <= doublings_at_most, "{name}: {allocations} allocations while 100,000 requests ended");
    }
}
