//! When answers are overdue. What is sent again and again is given twice as long each time: copies
//! that come faster than they are answered would fill every queue on the way for good.

use base::{Span, Time};
use std::collections::VecDeque;

/// Deadlines in queues, by how often their time was doubled: each queue is in order.
#[derive(Clone, Debug)]
pub struct Timeouts<T> {
    span: Span,
    queues: Vec<VecDeque<(Time, T)>>,
}

impl<T: Copy> Timeouts<T> {
    /// The first time is `span`; it is doubled up to `doublings` times.
    pub fn new(span: Span, doublings: u32) -> Timeouts<T> {
        // What were due at once would be set again for ever.
        let queues = (0..=doublings).map(|_| VecDeque::new()).collect();
        Timeouts { span: span.max(Span::ps(1)), queues }
    }

    /// Sets a deadline for what was sent so many times before.
    pub fn push(&mut self, now: Time, tries: u32, what: T) {
        let level = (tries as usize).min(self.queues.len() - 1);
        let at = now.checked_add(self.span * (1 << level)).unwrap_or(Time::MAX);
        self.queues[level].push_back((at, what));
    }

    /// The earliest that is due.
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        let fronts = self.queues.iter().enumerate();
        let (at, level) = fronts.filter_map(|(level, queue)| Some((queue.front()?.0, level))).min()?;
        if at > now {
            return None;
        }
        self.queues[level].pop_front().map(|(_, what)| what)
    }

    /// The earliest of all.
    pub fn next(&self) -> Option<Time> {
        self.queues.iter().filter_map(|queue| queue.front().map(|(at, _)| *at)).min()
    }

    /// Drops those at the fronts that do not matter any more, so that nobody is woken for them.
    pub fn trim(&mut self, matters: impl Fn(&T) -> bool) {
        for queue in &mut self.queues {
            while queue.front().is_some_and(|(_, what)| !matters(what)) {
                queue.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_try_has_twice_as_long_up_to_the_last_doubling() {
        let mut timeouts = Timeouts::new(Span::us(10), 2);
        let mut at = Vec::new();
        let mut now = Time::ZERO;
        for tries in 0..5 {
            timeouts.push(now, tries, tries);
            now = timeouts.next().expect("it was set");
            assert_eq!(timeouts.pop_due(now), Some(tries));
            at.push(now.as_ps() / 1_000_000);
        }
        assert_eq!(at, [10, 30, 70, 110, 150]);
        assert_eq!((timeouts.next(), timeouts.pop_due(Time::MAX)), (None, None));
    }

    #[test]
    fn the_earliest_of_all_queues_comes_first_and_not_before_it_is_due() {
        let mut timeouts = Timeouts::new(Span::us(10), 3);
        let at = |us: u64| Time::ZERO + Span::us(us);
        timeouts.push(at(0), 2, 'c');
        timeouts.push(at(0), 0, 'a');
        timeouts.push(at(15), 0, 'b');
        assert_eq!((timeouts.pop_due(at(9)), timeouts.next()), (None, Some(at(10))));
        let all: String = std::iter::from_fn(|| timeouts.pop_due(at(40))).collect();
        assert_eq!(all, "abc");
        timeouts.push(at(0), 1, 'd');
        timeouts.push(at(0), 1, 'e');
        timeouts.trim(|what| *what == 'e');
        assert_eq!(timeouts.pop_due(Time::MAX), Some('e'));
    }
}
