//! A client of a JBOF, whose time may be another one.

use crate::frames::Welcome;
use base::{Program, Span, Time};
use scalio::{Client, ClientConfig, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// A filler that takes longer loses its slot. Within one process none does but by a stalled device.
pub const LEASE: Span = Span::secs(1);
/// Interval between polls of a slot that another request fills.
pub const RETRY: Span = Span::us(50);
/// Polls and restarts of one read before it gives up: 5 s at least.
pub const ATTEMPTS_MAX: u32 = 100_000;
/// An update without an answer is sent again after so long...
pub const REPLY_TIMEOUT: Span = Span::secs(60);
/// ...and so often at most.
pub const SENDS_MAX: u32 = 2;

/// A client of a JBOF, and what it has to know.
pub struct Reader<V> {
    /// The program.
    pub program: Client<V>,
    /// How far the JBOF's time is ahead of the loop's, in picoseconds.
    ahead: i64,
    /// The JBOF's time that was used last.
    last: Time,
}

impl<V: Value> Reader<V> {
    /// One that begins now.
    pub fn new(now: Time, welcome: &Welcome) -> Reader<V> {
        let mut program = Client::new(client_config(welcome));
        program.learn_epoch(0, welcome.epoch);
        let mut reader = Reader { program, ahead: 0, last: Time::ZERO };
        reader.learn(now, welcome.now);
        reader
    }

    /// The JBOF's time is `there` now.
    pub fn learn(&mut self, now: Time, there: Time) {
        self.ahead = there.as_ps().wrapping_sub(now.as_ps()).cast_signed();
    }

    /// The JBOF's time, which never goes back.
    pub fn there(&mut self, now: Time) -> Time {
        self.last = self.at(now);
        self.last
    }

    /// The same, without the client hearing of it.
    pub fn at(&self, now: Time) -> Time {
        self.last.max(Time::ps(now.as_ps().saturating_add_signed(self.ahead)))
    }

    /// When the program wants to be woken, by the time of the loop.
    pub fn next_wakeup(&self) -> Option<Time> {
        let here = |due: Time| Time::ps(due.as_ps().saturating_add_signed(self.ahead.saturating_neg()));
        self.program.next_wakeup().map(here)
    }
}

/// The store's clock counts seconds since 1970, so that it goes on over restarts.
pub fn this_second() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX / 2)
}

fn client_config(welcome: &Welcome) -> ClientConfig {
    ClientConfig {
        client: welcome.client,
        blocks: welcome.blocks,
        devices: 1,
        protocol: welcome.protocol,
        lease: LEASE,
        retry_wait: RETRY,
        attempts_max: ATTEMPTS_MAX,
        share_waits: true,
        reply_timeout: REPLY_TIMEOUT,
        sends_max: SENDS_MAX,
        touch: true,
        start_second: welcome.start_second,
    }
}
