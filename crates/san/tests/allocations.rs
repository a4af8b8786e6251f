//! Tests that the ends of a session do not allocate while they run, with a counting allocator.
//!
//! `unsafe` is allowed here, and only here: an allocator is an unsafe trait. Each call is passed
//! unchanged to the system's allocator.
#![allow(unsafe_code)]

mod net;

use base::{Operation, Program, RequestId, Span, Time};
use net::{BLOCK, host_config, target_config};
use san::gimbal::GimbalConfig;
use san::host::{Host, HostIn, HostIo, HostOut, Uplinks};
use san::retry::RetryPolicy;
use san::target::{Admission, Target, TargetConfig, TargetIn, TargetOut};
use san::{Packet, Port};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed to `System` with unchanged arguments, so `System`'s guarantees hold.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A host and a target connected directly; the drive takes 80 us.
struct Pair {
    host: Host,
    target: Target,
    now: Time,
    outward: VecDeque<Packet>,
    back: VecDeque<Packet>,
    jobs: VecDeque<(Time, TargetIn)>,
    host_out: Vec<HostOut>,
    target_out: Vec<TargetOut>,
    asked: u64,
    done: u64,
}

impl Pair {
    fn new(admission: Admission) -> Pair {
        let host = Host::new(host_config(RetryPolicy::CrossControllerReset), Uplinks::One).unwrap();
        let target =
            Target::new(&TargetConfig { admission, command_life_max: Some(Span::ms(5)), ..target_config() }).unwrap();
        let (outward, back, jobs) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (host_out, target_out) = (Vec::new(), Vec::new());
        Pair { host, target, now: Time::ZERO, outward, back, jobs, host_out, target_out, asked: 0, done: 0 }
    }

    /// Runs until `most` I/Os have ended, with 40 submitted at a time.
    fn run(&mut self, most: u64) {
        while self.done < most {
            self.now += Span::us(2);
            while self.asked < self.done + 40 {
                let operation = if self.asked.is_multiple_of(2) { Operation::Write } else { Operation::Read };
                let (request, address) = (RequestId(self.asked), self.asked % 64 * u64::from(BLOCK));
                let io = HostIo { request, operation, address, bytes: 3 * BLOCK };
                self.asked += 1;
                self.host.on(self.now, HostIn::Submit { session: 0, io }, &mut self.host_out);
            }
            self.host_said();
            while let Some(packet) = self.outward.pop_front() {
                self.target.on(self.now, TargetIn::Packet { port: Port(0), packet }, &mut self.target_out);
            }
            while self.jobs.front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, done) = self.jobs.pop_front().unwrap();
                self.target.on(self.now, done, &mut self.target_out);
            }
            self.target.on_wakeup(self.now, &mut self.target_out);
            self.target_said();
            while let Some(packet) = self.back.pop_front() {
                self.host.on(self.now, HostIn::Packet { port: Port(0), packet }, &mut self.host_out);
            }
            self.host.on_wakeup(self.now, &mut self.host_out);
            self.host_said();
        }
    }

    fn host_said(&mut self) {
        for action in self.host_out.drain(..) {
            match action {
                HostOut::Send { packet, .. } => self.outward.push_back(packet),
                HostOut::Done(_) => self.done += 1,
            }
        }
    }

    fn target_said(&mut self) {
        for action in self.target_out.drain(..) {
            match action {
                TargetOut::Send { packet, .. } => self.back.push_back(packet),
                TargetOut::Submit { job, .. } => self.jobs.push_back((self.now + Span::us(80), TargetIn::Done { job })),
            }
        }
    }
}

fn gimbal() -> Admission {
    Admission::Gimbal(GimbalConfig { waiting_max: 256, ..GimbalConfig::PUBLISHED })
}

#[test]
fn host_and_target_allocate_nothing_once_they_run() {
    for admission in [gimbal(), target_config().admission] {
        let mut pair = Pair::new(admission);
        pair.run(3_000);
        let before = ALLOCATIONS.get();
        pair.run(10_000);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{admission:?}");
    }
}
