//! One alarm for each thing of a storage server that may want to run by itself.

use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The owner of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// The server itself, for its heartbeat.
    Heartbeat,
    /// A unit of collection.
    Unit(u32),
    /// A vSSD: its token bucket, its scheduler or its replica.
    Vssd(u32),
    /// The server itself, for the next page to scrub.
    Scrub,
}

/// Alarms by time. An alarm that is moved to a later time still rings at the earlier one: ringing
/// early changes nothing, and most alarms (of a message that was answered in time) are moved with
/// every request.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    /// The entries that count are those that `armed` says; when an alarm is moved to an earlier
    /// time its old entry stays, and is passed over.
    by_time: BinaryHeap<Reverse<(Time, Alarm)>>,
    heartbeat: Option<Time>,
    units: Vec<Option<Time>>,
    vssds: Vec<Option<Time>>,
    scrub: Option<Time>,
}

impl Timers {
    /// Rings `alarm` at `time` at the latest.
    pub fn ring_by(&mut self, alarm: Alarm, time: Time) {
        let armed = self.armed_mut(alarm);
        if armed.is_none_or(|armed| time < armed) {
            *armed = Some(time);
            self.by_time.push(Reverse((time, alarm)));
        }
    }

    /// The next alarm that is due, which is silent afterwards.
    pub fn due(&mut self, now: Time) -> Option<Alarm> {
        let Reverse((_, alarm)) = *self.by_time.peek().filter(|first| first.0.0 <= now)?;
        *self.armed_mut(alarm) = None;
        self.by_time.pop();
        self.pass_over();
        Some(alarm)
    }

    /// Returns the time at which the next one rings.
    pub fn next(&self) -> Option<Time> {
        self.by_time.peek().map(|Reverse((time, _))| *time)
    }

    /// Silences all.
    pub fn clear(&mut self) {
        *self = Timers::default();
    }

    /// Drops entries that do not count from the front, so that the first does.
    fn pass_over(&mut self) {
        while let Some(Reverse((time, alarm))) = self.by_time.peek().copied()
            && *self.armed_mut(alarm) != Some(time)
        {
            self.by_time.pop();
        }
    }

    fn armed_mut(&mut self, alarm: Alarm) -> &mut Option<Time> {
        match alarm {
            Alarm::Heartbeat => &mut self.heartbeat,
            Alarm::Unit(unit) => place(&mut self.units, unit),
            Alarm::Vssd(index) => place(&mut self.vssds, index),
            Alarm::Scrub => &mut self.scrub,
        }
    }
}

fn place(times: &mut Vec<Option<Time>>, index: u32) -> &mut Option<Time> {
    let index = index as usize;
    if times.len() <= index {
        times.resize(index + 1, None);
    }
    &mut times[index]
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
