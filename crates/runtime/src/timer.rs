//! Wake-ups finer than the millisecond of epoll: a timer of the system as an event source.

use crate::error::StartError;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// One alarm at a time.
pub struct Timer {
    alarm: OwnedFd,
}

impl Timer {
    /// A timer without an alarm, whose expiry is an event of `token`.
    ///
    /// # Errors
    /// When the system has none.
    pub fn new(registry: &Registry, token: Token) -> Result<Timer, StartError> {
        let fail = StartError::system("a timer");
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(|error| fail(error.into()))?;
        registry.register(&mut SourceFd(&alarm.as_raw_fd()), token, Interest::READABLE).map_err(fail)?;
        Ok(Timer { alarm })
    }

    /// Expires after `wait`, in place of an earlier setting.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn set(&self, wait: Duration) -> io::Result<()> {
        // Zero would disarm it.
        let wait = wait.max(Duration::from_nanos(1));
        let at = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: never, it_value: at })?;
        Ok(())
    }
}
