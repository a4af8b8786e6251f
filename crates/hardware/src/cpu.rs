//! Cores of a host, and what keeps them busy, by name.

use base::{Span, Time};
use std::collections::BTreeMap;

/// Cores that each do one piece of work after the other.
#[derive(Clone, Debug)]
pub struct Cpu {
    free_at: Vec<Time>,
    /// Busy time by what it was spent on.
    busy: BTreeMap<&'static str, Span>,
}

impl Cpu {
    /// Idle cores.
    pub fn new(cores: u32) -> Cpu {
        Cpu { free_at: vec![Time::ZERO; cores as usize], busy: BTreeMap::new() }
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        self.free_at.len()
    }

    /// Work for one core, behind what it has already: when it begins and ends. `work` is a name for
    /// the report.
    pub fn run(&mut self, now: Time, core: usize, work: &'static str, span: Span) -> (Time, Time) {
        let start = self.free_at[core].max(now);
        self.free_at[core] = start + span;
        *self.busy.entry(work).or_default() += span;
        (start, self.free_at[core])
    }

    /// Returns the time at which a core has done all that it was given.
    pub fn free_at(&self, core: usize) -> Time {
        self.free_at[core]
    }

    /// Returns the work that each core has been given and has not done at `now`.
    pub fn backlogs(&self, now: Time) -> impl Iterator<Item = Span> {
        self.free_at.iter().map(move |free_at| free_at.saturating_since(now))
    }

    /// Busy time of all cores by what it was spent on.
    pub fn busy(&self) -> &BTreeMap<&'static str, Span> {
        &self.busy
    }

    /// Busy time of all cores.
    pub fn busy_total(&self) -> Span {
        self.busy.values().copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_does_one_thing_after_the_other_and_cores_do_not_wait_for_each_other() {
        let mut cpu = Cpu::new(2);
        assert_eq!(cpu.run(Time::us(1), 0, "interrupt", Span::us(2)), (Time::us(1), Time::us(3)));
        assert_eq!(cpu.run(Time::us(2), 0, "block layer", Span::us(1)), (Time::us(3), Time::us(4)));
        assert_eq!(cpu.run(Time::us(2), 1, "interrupt", Span::us(1)), (Time::us(2), Time::us(3)));
        assert_eq!(cpu.busy()["interrupt"], Span::us(3));
        assert_eq!((cpu.busy_total(), cpu.free_at(0), cpu.cores()), (Span::us(4), Time::us(4), 2));
    }
}
