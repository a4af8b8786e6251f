//! The cores of a host that process its I/Os.

use base::{Span, Time};

/// The cores of a host. Each session has one (paper, 2.1: queues are aligned with cores).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoresConfig {
    /// Number of cores, at least 1.
    pub count: u32,
    /// Time of a core for an I/O, its end included. An idle core adds none of it to latency: the
    /// times of the stack are that.
    pub per_io: Span,
}

/// When each core is free.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    per_io: Span,
    free_at: Vec<Time>,
}

impl Cores {
    pub(super) fn new(config: CoresConfig) -> Cores {
        Cores { per_io: config.per_io, free_at: vec![Time::ZERO; config.count.max(1) as usize] }
    }

    /// Books the core of a session for an I/O. Returns when the I/O starts.
    pub(super) fn book(&mut self, now: Time, session: u32) -> Time {
        let core = session as usize % self.free_at.len();
        let start = self.free_at[core].max(now);
        self.free_at[core] = start + self.per_io;
        start
    }
}
