//! Delays learned from answers (paper, 4.3, Algorithm 1, `PATH_ADAPT`).
//!
//! There are two tables, as in the paper. One has an average for each port and congestion level.
//! The other has, for each destination and port, a copy of the average that its last answer
//! updated. The first is shared by all destinations behind a port.
//!
//! The paper does not define the delay of untried paths and of paths not tried recently. Here, an
//! untried shortest path has a delay of zero, so that it is tried, and an old delay halves with
//! time. A longer path in either state is unknown, and the routing policy may try it with one I/O.

use crate::id::Port;
use base::{Span, Time};
use topology::VertexId;

/// The denominator of weights.
const WEIGHT_ONE: i64 = 1024;

/// A delay and when it was learned; 0 ns is "never".
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt {
    delay_ns: u32,
    /// Twice the number of the interval in which it was learned, plus 1 if the answer had passed a
    /// hop with a long queue.
    since: u32,
}

/// The delay tables of a router.
#[derive(Clone, Debug)]
pub struct DelayTables {
    ports: usize,
    weight: i64,
    stale_after: Span,
    /// The interval of the last update: its number and its start.
    latest: (u32, Time),
    /// By congestion level (the number of marked hops), then by port; grows up to the highest level
    /// seen.
    by_level: Vec<Learnt>,
    /// By destination: its row plus 1, or 0 if nothing was learned.
    rows: Vec<u16>,
    /// By row, then by port.
    by_destination: Vec<Learnt>,
}

impl DelayTables {
    /// Creates empty tables. `ewma_weight` is the weight of new delays, of 1,024.
    pub fn new(vertices: usize, ports: usize, ewma_weight: u16, stale_after: Span) -> DelayTables {
        assert!(stale_after > Span::ZERO, "what is learnt holds for some time");
        DelayTables {
            ports,
            weight: i64::from(ewma_weight),
            stale_after,
            latest: (0, Time::ZERO),
            by_level: Vec::new(),
            rows: vec![0; vertices],
            by_destination: Vec::new(),
        }
    }

    /// Returns the number of the interval that contains `now`, for [`estimate`](Self::estimate).
    /// Divides only if the interval is not that of the last update.
    #[inline]
    pub fn epoch(&self, now: Time) -> u32 {
        let (latest, since) = self.latest;
        if now >= since && now - since < self.stale_after { latest } else { self.number_of(now) as u32 }
    }
    /// Truncated to 31 bits: at the shortest allowed interval that is half an hour.
    fn number_of(&self, now: Time) -> u64 {
        (now.as_ps() / self.stale_after.as_ps()) & (u64::from(u32::MAX) >> 1)
    }
    fn remember_span(&mut self, now: Time) {
        let number = now.as_ps() / self.stale_after.as_ps();
        self.latest = (self.number_of(now) as u32, Time::ZERO + self.stale_after * number);
    }

    /// Returns the delay to `destination` by `port` in nanoseconds, 0 if unknown.
    pub fn estimate(&self, epoch: u32, destination: VertexId, port: Port) -> u32 {
        self.of(destination).get(port.index()).map_or(0, |learnt| learnt.estimate(epoch))
    }

    /// Returns the delays to a destination, by port.
    pub(super) fn of(&self, destination: VertexId) -> &[Learnt] {
        let row = self.rows.get(destination.index()).and_then(|row| row.checked_sub(1));
        row.map_or(&[], |row| &self.by_destination[usize::from(row) * self.ports..][..self.ports])
    }

    /// Returns the entry of a destination and port, and allocates it if necessary.
    fn place(&mut self, destination: VertexId, port: Port) -> Option<&mut Learnt> {
        let row = self.rows.get_mut(destination.index()).filter(|_| port.index() < self.ports)?;
        if *row == 0 {
            let rows = self.by_destination.len() / self.ports;
            // A vertex learns no path to itself, so the number of rows fits into 16 bits.
            *row = rows as u16 + 1;
            self.by_destination.resize((rows + 1) * self.ports, Learnt::default());
        }
        let place = usize::from(*row - 1) * self.ports + port.index();
        self.by_destination.get_mut(place)
    }

    /// Updates the delays from one answer; an unknown port or destination is ignored.
    pub fn learn(&mut self, now: Time, port: Port, destination: VertexId, level: u32, delay_ns: u32) {
        let epoch = self.epoch(now);
        if epoch != self.latest.0 {
            self.remember_span(now);
        }
        if port.index() >= self.ports {
            return;
        }
        let at = level as usize * self.ports + port.index();
        if self.by_level.len() <= at {
            self.by_level.resize((level as usize + 1) * self.ports, Learnt::default());
        }
        let average = &mut self.by_level[at];
        average.take_in(epoch, delay_ns.max(1), self.weight);
        let news = Learnt { since: average.since | u32::from(level > 0), ..*average };
        if let Some(place) = self.place(destination, port) {
            *place = news;
        }
    }

    /// Sets the delay of an unknown path that is being tried to `delay_ns` until an answer updates
    /// it, so that only one I/O tries it.
    pub(super) fn suppose(&mut self, epoch: u32, destination: VertexId, port: Port, delay_ns: u32) {
        if let Some(place) = self.place(destination, port) {
            *place = Learnt { delay_ns, since: epoch << 1 };
        }
    }

    /// Clears the delays of a port.
    pub fn forget(&mut self, port: Port) {
        for learnt in [&mut self.by_level, &mut self.by_destination] {
            let of_port = learnt.iter_mut().skip(port.index()).step_by(self.ports);
            of_port.for_each(|place| *place = Learnt::default());
        }
    }
}

impl Learnt {
    pub(super) fn estimate(&self, epoch: u32) -> u32 {
        (u64::from(self.delay_ns) >> epoch.saturating_sub(self.since >> 1).min(32)) as u32
    }

    /// Returns the delay, if it was learned in this interval or the previous one.
    pub(super) fn fresh(&self, epoch: u32) -> Option<u32> {
        (!self.is_old(epoch)).then_some(self.delay_ns)
    }
    /// Returns whether the last answer had passed a hop with a long queue.
    pub(super) fn is_marked(&self) -> bool {
        self.since & 1 == 1
    }
    fn is_old(&self, epoch: u32) -> bool {
        self.delay_ns == 0 || epoch.saturating_sub(self.since >> 1) > 1
    }

    /// Moves toward `delay_ns`; an old or unknown delay is replaced.
    fn take_in(&mut self, epoch: u32, delay_ns: u32, weight: i64) {
        let before = if self.is_old(epoch) { delay_ns } else { self.delay_ns };
        let moved = (i64::from(delay_ns) - i64::from(before)) * weight / WEIGHT_ONE;
        let delay_ns = (i64::from(before) + moved).clamp(1, i64::from(u32::MAX) - 1) as u32;
        *self = Learnt { delay_ns, since: epoch << 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(weight: u16) -> DelayTables {
        DelayTables::new(4, 2, weight, Span::ms(1))
    }
    const TARGET: VertexId = VertexId(3);

    #[test]
    fn the_average_moves_by_its_weight_and_levels_are_averaged_apart() {
        let mut tables = tables(256);
        tables.learn(Time::ZERO, Port(1), TARGET, 0, 1_000);
        assert_eq!(tables.estimate(0, TARGET, Port(1)), 1_000);
        tables.learn(Time::ZERO, Port(1), TARGET, 0, 2_000);
        assert_eq!(tables.estimate(0, TARGET, Port(1)), 1_250);
        tables.learn(Time::ZERO, Port(1), TARGET, 2, 9_000);
        assert_eq!(tables.estimate(0, TARGET, Port(1)), 9_000, "the first of its level");
        tables.learn(Time::ZERO, Port(1), TARGET, 0, 1_250);
        assert_eq!(tables.estimate(0, TARGET, Port(1)), 1_250, "level 0 is where it was");
    }

    #[test]
    fn a_level_is_shared_by_destinations_but_only_the_one_heard_of_gets_its_average() {
        let mut tables = tables(512);
        tables.learn(Time::ZERO, Port(0), VertexId(1), 0, 1_000);
        tables.learn(Time::ZERO, Port(0), VertexId(2), 0, 3_000);
        assert_eq!([1, 2, 3].map(|vertex| tables.estimate(0, VertexId(vertex), Port(0))), [1_000, 2_000, 0]);
    }

    #[test]
    fn what_is_old_halves_and_is_replaced_by_news() {
        let mut tables = tables(1);
        tables.learn(Time::ZERO, Port(0), TARGET, 0, 8_000);
        let at = |tables: &DelayTables, now| tables.estimate(tables.epoch(now), TARGET, Port(0));
        assert_eq!(at(&tables, Time::us(999)), 8_000);
        assert_eq!(at(&tables, Time::us(1_000)), 4_000);
        assert_eq!(at(&tables, Time::ms(3)), 1_000);
        assert_eq!(at(&tables, Time::secs(1)), 0);
        tables.learn(Time::ms(3), Port(0), TARGET, 0, 500);
        assert_eq!(at(&tables, Time::ms(3)), 500);
    }

    #[test]
    fn spans_are_counted_the_same_wherever_something_was_learnt_last() {
        let mut tables = tables(1024);
        let times = [0, 999, 1_000, 4_500, 4_999, 5_000, 3_000].map(Time::us);
        let numbers = [0, 0, 1, 4, 4, 5, 3];
        for learnt_at in times {
            tables.learn(learnt_at, Port(0), TARGET, 0, 500);
            assert_eq!(times.map(|now| tables.epoch(now)), numbers, "{learnt_at:?}");
        }
    }

    #[test]
    fn a_forgotten_port_counts_as_never_tried() {
        let mut tables = tables(1024);
        tables.learn(Time::ZERO, Port(0), TARGET, 0, 8_000);
        tables.learn(Time::ZERO, Port(1), TARGET, 0, 7_000);
        tables.forget(Port(0));
        assert_eq!([0, 1].map(|port| tables.estimate(0, TARGET, Port(port))), [0, 7_000]);
    }

    #[test]
    fn ports_and_vertices_that_do_not_exist_are_passed_over() {
        let mut tables = tables(1024);
        tables.learn(Time::ZERO, Port(9), TARGET, 0, 8_000);
        tables.learn(Time::ZERO, Port(0), VertexId(99), 77, 8_000);
        assert_eq!(tables.estimate(0, TARGET, Port(0)), 0);
    }
}
