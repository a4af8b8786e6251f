//! Several arrivals from a call that can hand out one.

#[cfg(test)]
use crate::generator::Arrival;
use base::Time;
use std::collections::BinaryHeap;

/// Holds what a [`Source`](crate::Source) has made and could not yet hand out.
///
/// Every call of the source ends with [`pop`](Outbox::pop), which hands out the earliest. Nothing
/// is handed out late by that: whenever something is left here, an arrival that was handed out
/// before is still to come, and is no later than all that is left; when it comes, `after_arrival`
/// pops the next.
#[derive(Clone, Debug)]
pub(crate) struct Outbox<T> {
    waiting: BinaryHeap<Waiting<T>>,
    pushed: u64,
}

/// Ordered by time and then by age, the first of them greatest.
#[derive(Clone, Debug)]
struct Waiting<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> Default for Outbox<T> {
    fn default() -> Outbox<T> {
        Outbox { waiting: BinaryHeap::new(), pushed: 0 }
    }
}

impl<T> Outbox<T> {
    /// Keeps `what`, which is due at `at`.
    pub(crate) fn push(&mut self, at: Time, what: T) {
        self.waiting.push(Waiting { at, number: self.pushed, what });
        self.pushed += 1;
    }

    /// The earliest; of equal ones, the oldest.
    pub(crate) fn pop(&mut self) -> Option<(Time, T)> {
        self.waiting.pop().map(|waiting| (waiting.at, waiting.what))
    }
}

/// Calls a source as the driver does: arrivals in order of time, each request ends `served` after
/// its arrival. For tests.
#[cfg(test)]
pub(crate) fn play(
    source: &mut dyn crate::Source,
    mut served: impl FnMut(&Arrival) -> base::Span,
    mut seen: impl FnMut(&Arrival),
    events_max: usize,
) {
    use std::collections::BTreeMap;
    enum Event {
        Arrival(Arrival),
        End(base::Request),
    }
    let mut queue: BTreeMap<(Time, u64), Event> = BTreeMap::new();
    let mut number = 0;
    let mut first = Vec::new();
    source.start(&mut first);
    let mut push = |queue: &mut BTreeMap<(Time, u64), Event>, at, event| {
        number += 1;
        queue.insert((at, number), event);
    };
    first.into_iter().for_each(|arrival| push(&mut queue, arrival.at, Event::Arrival(arrival)));
    for _ in 0..events_max {
        let Some(((now, _), event)) = queue.pop_first() else { return };
        let next = match event {
            Event::Arrival(arrival) => {
                seen(&arrival);
                push(&mut queue, now + served(&arrival), Event::End(arrival.request));
                source.after_arrival(&arrival)
            }
            Event::End(request) => source.after_end(now, &request),
        };
        if let Some(next) = next {
            assert!(next.at >= now, "an arrival at {} was handed out at {now}", next.at);
            push(&mut queue, next.at, Event::Arrival(next));
        }
    }
}
