//! A program in a rig: when it wants to run next, and where its decisions go.

use base::{Program, Time};
use std::ops::{Deref, DerefMut};

/// The pending wake-up event of a program or a model. Only the earliest counts: one that an earlier
/// event has overtaken finds the alarm off or set to a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm(Time);

impl Alarm {
    /// No event is pending.
    pub const OFF: Alarm = Alarm(Time::MAX);

    /// Returns the time for which an event has to be scheduled so that one is due at `next`; `None`
    /// if one is due by then.
    #[inline]
    pub fn arm(&mut self, next: Option<Time>) -> Option<Time> {
        let next = next.filter(|next| *next < self.0)?;
        self.0 = next;
        Some(next)
    }
    /// Takes the event of `now`. Returns whether it is the pending one.
    #[inline]
    pub fn ring(&mut self, now: Time) -> bool {
        let is_due = self.0 <= now;
        if is_due {
            self.0 = Time::MAX;
        }
        is_due
    }
    /// The time of the pending event; [`Time::MAX`] if there is none.
    #[inline]
    pub fn time(&self) -> Time {
        self.0
    }
}

/// A program with its alarm and the buffer of its decisions, which is used again.
#[derive(Clone, Debug)]
pub struct Seat<P: Program> {
    program: P,
    alarm: Alarm,
    out: Vec<P::Out>,
}

impl<P: Program> Seat<P> {
    /// A program that wants nothing yet.
    pub fn new(program: P) -> Seat<P> {
        Seat { program, alarm: Alarm::OFF, out: Vec::new() }
    }
    /// Hands an input to the program and returns its decisions. The caller returns the buffer with
    /// [`recycle`](Seat::recycle).
    pub fn tell(&mut self, now: Time, input: P::In) -> Vec<P::Out> {
        let mut out = std::mem::take(&mut self.out);
        self.program.on(now, input, &mut out);
        out
    }
    /// The same with a wake-up event of the program; `None` if an earlier one has overtaken it.
    pub fn wake(&mut self, now: Time) -> Option<Vec<P::Out>> {
        self.alarm.ring(now).then(|| self.run(now))
    }
    /// The same without an event.
    pub fn run(&mut self, now: Time) -> Vec<P::Out> {
        let mut out = std::mem::take(&mut self.out);
        self.program.on_wakeup(now, &mut out);
        out
    }
    /// The same with an input or without.
    pub fn act(&mut self, now: Time, input: Option<P::In>) -> Vec<P::Out> {
        match input {
            Some(input) => self.tell(now, input),
            None => self.run(now),
        }
    }
    /// Takes the buffer of decisions back.
    pub fn recycle(&mut self, mut out: Vec<P::Out>) {
        out.clear();
        self.out = out;
    }
    /// Returns the time for which a wake-up event has to be scheduled, if one has to.
    pub fn arm(&mut self, now: Time) -> Option<Time> {
        self.alarm.arm(self.program.next_wakeup().map(|next| next.max(now)))
    }
    /// Takes the wake-up event of `now`, for a caller that [`run`](Seat::run)s the program later.
    pub fn ring(&mut self, now: Time) -> bool {
        self.alarm.ring(now)
    }
}

impl<P: Program> Deref for Seat<P> {
    type Target = P;
    fn deref(&self) -> &P {
        &self.program
    }
}

impl<P: Program> DerefMut for Seat<P> {
    fn deref_mut(&mut self) -> &mut P {
        &mut self.program
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Span;

    #[test]
    fn only_an_earlier_time_needs_an_event_of_its_own() {
        let mut alarm = Alarm::OFF;
        assert_eq!(alarm.arm(Some(Time::us(5))), Some(Time::us(5)));
        assert_eq!(alarm.arm(Some(Time::us(5))), None);
        assert_eq!(alarm.arm(Some(Time::us(7))), None);
        assert_eq!(alarm.arm(None), None);
        assert_eq!(alarm.arm(Some(Time::us(2))), Some(Time::us(2)));
    }

    #[test]
    fn an_event_that_was_overtaken_rings_nothing() {
        let mut alarm = Alarm::OFF;
        alarm.arm(Some(Time::us(5)));
        alarm.arm(Some(Time::us(2)));
        assert!(alarm.ring(Time::us(2)));
        assert!(!alarm.ring(Time::us(5)));
        assert_eq!(alarm.time(), Time::MAX);
    }

    /// Repeats an input after a microsecond.
    struct Echo(Option<(Time, u32)>);

    impl Program for Echo {
        type In = u32;
        type Out = u32;
        fn on(&mut self, now: Time, input: u32, out: &mut Vec<u32>) {
            self.0 = Some((now + Span::us(1), input));
            out.push(input);
        }
        fn next_wakeup(&self) -> Option<Time> {
            self.0.map(|(at, _)| at)
        }
        fn on_wakeup(&mut self, now: Time, out: &mut Vec<u32>) {
            out.extend(self.0.take_if(|(at, _)| *at <= now).map(|(_, input)| input));
        }
    }

    #[test]
    fn a_seat_runs_its_program_when_it_wants_to_and_keeps_its_buffer() {
        let mut seat = Seat::new(Echo(None));
        let out = seat.tell(Time::us(1), 7);
        assert_eq!(out, [7]);
        let room = out.capacity();
        seat.recycle(out);
        assert_eq!(seat.arm(Time::us(1)), Some(Time::us(2)));
        assert_eq!(seat.wake(Time::us(1)), None);
        let out = seat.wake(Time::us(2)).expect("its time has come");
        assert_eq!((out.as_slice(), out.capacity()), ([7].as_slice(), room));
        assert_eq!(seat.arm(Time::us(2)), None);
    }
}
