//! One alarm for each thing of a storage server that may want to run by itself.

use base::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Who wants to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// The server itself, for its heartbeat.
    Heartbeat,
    /// A unit of collection.
    Unit(u32),
    /// A vSSD: its token bucket, its scheduler or its replica.
    Vssd(u32),
}

/// Alarms by time. An alarm that is moved to a later time still rings at the earlier one: ringing early changes nothing, and
/// most alarms (of a message that was answered in time) are moved with every request.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    by_time: BTreeSet<(Time, Alarm)>,
    by_alarm: BTreeMap<Alarm, Time>,
}

impl Timers {
    /// Rings `alarm` at `time` at the latest.
    pub fn ring_by(&mut self, alarm: Alarm, time: Time) {
        let armed = self.by_alarm.entry(alarm).or_insert(Time::MAX);
        if time < *armed {
            self.by_time.remove(&(*armed, alarm));
            self.by_time.insert((time, alarm));
            *armed = time;
        }
    }

    /// The next alarm that is due, which is silent afterwards.
    pub fn due(&mut self, now: Time) -> Option<Alarm> {
        let first = self.by_time.first().filter(|(time, _)| *time <= now)?;
        let alarm = first.1;
        self.by_time.pop_first();
        self.by_alarm.remove(&alarm);
        Some(alarm)
    }

    /// When the next one rings.
    pub fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// Silences all.
    pub fn clear(&mut self) {
        self.by_time.clear();
        self.by_alarm.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_rings_once_at_the_earliest_time_that_was_asked_for() {
        let mut timers = Timers::default();
        timers.ring_by(Alarm::Vssd(1), Time::us(30));
        timers.ring_by(Alarm::Vssd(1), Time::us(10));
        timers.ring_by(Alarm::Vssd(1), Time::us(20));
        assert_eq!(timers.due(Time::ns(9_999)), None);
        assert_eq!(timers.due(Time::us(10)), Some(Alarm::Vssd(1)));
        assert_eq!((timers.due(Time::us(40)), timers.next()), (None, None));
    }
}
