//! When a program wants to run next, so that one event is scheduled for it and not one for each
//! time that it is asked.

use base::Time;

/// A time that is reached once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarm(Option<Time>);

impl Alarm {
    /// Whether an event has to be scheduled for `next`: none is due before.
    pub fn set(&mut self, next: Option<Time>) -> Option<Time> {
        let next = next?;
        if self.0.is_some_and(|at| at <= next) {
            return None;
        }
        self.0 = Some(next);
        self.0
    }
    /// The event of `now` is there.
    pub fn ring(&mut self, now: Time) {
        if self.0 == Some(now) {
            self.0 = None;
        }
    }
}
