//! What both loops of this crate do alike: they wait for fine timers, and hear signals.

use base::Time;
use mio::{Poll, Registry, Token};
use runtime::clock::Clock;
use runtime::error::{RunError, StartError};
use runtime::timer::Timer;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;
use std::io;

/// A timer that is set again only where it has to ring earlier, or has rung.
pub struct Alarm {
    timer: Timer,
    at: Option<Time>,
}

impl Alarm {
    /// One that is not set; it rings as an event of `token`.
    ///
    /// # Errors
    /// When the system has no more timers.
    pub fn new(registry: &Registry, token: Token) -> Result<Alarm, StartError> {
        Ok(Alarm { timer: Timer::new(registry, token)?, at: None })
    }

    /// It has rung.
    pub fn rang(&mut self) {
        self.at = None;
    }

    /// Has it ring at `due` at the latest.
    ///
    /// # Errors
    /// When the system does not set it.
    pub fn set(&mut self, now: Time, due: Option<Time>) -> Result<(), RunError> {
        if let Some(due) = due.filter(|due| self.at.is_none_or(|at| at > *due || at <= now)) {
            self.timer.set(Clock::wait(now, due)).map_err(RunError::in_("setting a timer"))?;
            self.at = Some(due);
        }
        Ok(())
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// An orderly end.
    End,
    /// To read the file anew.
    Reload,
}

/// Signals of a role: those that end it, and SIGHUP.
///
/// # Errors
/// When the system does not deliver them.
pub fn signals(poll: &Poll, token: Token) -> io::Result<Signals> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    poll.registry().register(&mut signals, token, mio::Interest::READABLE)?;
    Ok(signals)
}

/// What those that have come ask for.
pub fn heard(signals: &mut Option<Signals>) -> Option<Signal> {
    let pending: Vec<i32> = signals.iter_mut().flat_map(|signals| signals.pending()).collect();
    if pending.iter().any(|signal| *signal != SIGHUP) {
        return Some(Signal::End);
    }
    (!pending.is_empty()).then_some(Signal::Reload)
}
