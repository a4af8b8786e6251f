//! The clock of a live host: monotonic, counted from its start.

use base::Time;
use std::time::{Duration, Instant};

/// Counts time from its creation. A [`Time`] ends after 213 days: the clock then stops, and no
/// timer of a peer expires any more.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that is at zero now.
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }
    /// Returns the time.
    pub fn now(&self) -> Time {
        let picoseconds = self.start.elapsed().as_nanos().saturating_mul(1_000);
        Time::ps(u64::try_from(picoseconds).unwrap_or(u64::MAX))
    }
    /// The time from `now` until `until`, rounded up to a nanosecond; zero if that has passed.
    pub fn wait(now: Time, until: Time) -> Duration {
        Duration::from_nanos(until.saturating_since(now).as_ps().div_ceil(1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back_and_waits_are_rounded_up() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert_eq!(Clock::wait(Time::ns(5), Time::ps(5_001)), Duration::from_nanos(1));
        assert_eq!(Clock::wait(Time::ns(5), Time::ns(4)), Duration::ZERO);
    }
}
