//! Contenders for the same work take turns. The best turn of each is its figure, since noise only
//! ever adds CPU time. Contenders compare by the median over rounds of their ratio: turns of one
//! round have the same neighbours on the machine.

use runtime::processor::thread_ran_ns;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::time::Duration;

/// Measurements by key. A key contains its unit, and ends with the size or the rival that it
/// measures.
pub type Figures = BTreeMap<String, f64>;

/// The direction in which a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// For costs.
    Lower,
    /// For rates.
    Higher,
}

/// One implementation of the work of a [`Group`].
pub struct Contender {
    /// Its key in the figures.
    pub key: String,
    /// Prepares, executes the work and returns the figure: see [`cpu_seconds`].
    pub run: Box<dyn FnMut() -> f64>,
}

/// Contenders for the same work; the first is ours.
pub struct Group {
    /// The direction in which figures improve.
    pub better: Better,
    /// Number of turns of each contender; at least one.
    pub rounds: usize,
    /// The contenders, ours first.
    pub contenders: Vec<Contender>,
}

/// Returns the CPU time that `work` costs this process, in seconds. Other processes and waiting do
/// not count.
pub fn cpu_seconds(work: impl FnOnce()) -> f64 {
    let before = cpu_clock();
    work();
    (cpu_clock() - before).as_secs_f64()
}

/// The CPU time of this process.
fn cpu_clock() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// Returns the CPU time of this process without the calling thread: that of the server or the role,
/// which is the only other active one.
pub fn server_cpu() -> Duration {
    cpu_clock().saturating_sub(Duration::from_nanos(thread_ran_ns()))
}

impl Better {
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Better::Lower => a.min(b),
            Better::Higher => a.max(b),
        }
    }
    /// Returns how many times better `ours` is than `theirs`.
    fn ratio(self, ours: f64, theirs: f64) -> f64 {
        match self {
            Better::Lower => theirs / ours,
            Better::Higher => ours / theirs,
        }
    }
}

impl Group {
    /// Returns the group with only the contenders whose keys start with `key`, or `None` if there
    /// are none.
    pub fn only(mut self, key: &str) -> Option<Group> {
        self.contenders.retain(|contender| contender.key.starts_with(key));
        (!self.contenders.is_empty()).then_some(self)
    }
    /// Measures all contenders in turns, prints a table and returns the figures.
    pub fn measure_and_print(mut self) -> Figures {
        let measured = self.measure();
        for (contender, (figure, times_better)) in self.contenders.iter().zip(&measured) {
            println!("{}", row(&contender.key, *figure, *times_better));
        }
        let figures = measured.into_iter().map(|(figure, _)| figure);
        self.contenders.into_iter().map(|contender| contender.key).zip(figures).collect()
    }
    /// Returns the best figure of each contender, and how many times better ours is in the median
    /// round.
    fn measure(&mut self) -> Vec<(f64, f64)> {
        let rounds: Vec<Vec<f64>> = (0..self.rounds).map(|_| self.turn()).collect();
        let measured = |contender: usize| {
            let best = rounds.iter().map(|turn| turn[contender]).reduce(|a, b| self.better.of(a, b));
            let mut ratios: Vec<f64> = rounds.iter().map(|turn| self.better.ratio(turn[0], turn[contender])).collect();
            ratios.sort_by(f64::total_cmp);
            best.map(|best| (best, ratios[ratios.len() / 2]))
        };
        (0..self.contenders.len()).filter_map(measured).collect()
    }
    fn turn(&mut self) -> Vec<f64> {
        self.contenders.iter_mut().map(|contender| (contender.run)()).collect()
    }
}

fn row(key: &str, figure: f64, times_better: f64) -> String {
    format!("{key:<44} {figure:>12.2}   ours is {times_better:>5.2}x as good")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Creates a contender that appends its name to `log` at every turn and returns the given
    /// figures in order.
    fn scripted(key: &str, figures: &'static [f64], log: &Rc<RefCell<Vec<String>>>) -> Contender {
        let (name, log, mut figures) = (key.to_owned(), log.clone(), figures.iter().copied());
        let run = move || {
            log.borrow_mut().push(name.clone());
            figures.next().expect("no turn beyond the rounds")
        };
        Contender { key: key.to_owned(), run: Box::new(run) }
    }

    #[test]
    fn contenders_take_turns_and_the_best_turn_of_each_counts() {
        for (better, expected) in [(Better::Lower, [3.0, 7.0]), (Better::Higher, [5.0, 9.0])] {
            let log = Rc::default();
            let contenders = vec![scripted("ours", &[5.0, 3.0], &log), scripted("theirs", &[7.0, 9.0], &log)];
            let best = Group { better, rounds: 2, contenders }.measure().into_iter().map(|(best, _)| best);
            assert_eq!(best.collect::<Vec<_>>(), expected);
            assert_eq!(*log.borrow(), ["ours", "theirs", "ours", "theirs"]);
        }
    }

    /// A neighbour slows down the second round, and the third turn of one contender.
    #[test]
    fn contenders_compare_within_rounds() {
        let log = Rc::default();
        let contenders = vec![scripted("ours", &[4.0, 40.0, 4.0], &log), scripted("theirs", &[5.0, 50.0, 90.0], &log)];
        let measured = Group { better: Better::Lower, rounds: 3, contenders }.measure();
        assert_eq!(measured, [(4.0, 1.0), (5.0, 1.25)]);
    }

    #[test]
    fn only_the_wanted_keys_take_part() {
        let log = Rc::default();
        let group = |key: &str| {
            let contenders = vec![scripted("edm.a", &[1.0], &log), scripted("fast.a", &[2.0], &log)];
            Group { better: Better::Lower, rounds: 1, contenders }.only(key)
        };
        assert_eq!(group("fast").unwrap().measure(), [(2.0, 1.0)]);
        assert_eq!(*log.borrow(), ["fast.a"]);
        assert!(group("slow").is_none());
    }

    #[test]
    fn a_ratio_above_one_always_means_that_ours_is_better() {
        assert_eq!(Better::Lower.ratio(20.0, 60.0), 3.0);
        assert_eq!(Better::Higher.ratio(60.0, 20.0), 3.0);
    }

    #[test]
    fn work_costs_cpu_time() {
        let mut sum = 0u64;
        let seconds = cpu_seconds(|| (0..20_000_000u64).for_each(|n| sum = std::hint::black_box(sum ^ n)));
        assert!(seconds > 0.0);
    }
}
