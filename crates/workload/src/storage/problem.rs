//! What makes a load of block storage impossible, named by field.

use super::{Action, Addresses, Arrivals, Assignment, Config, Mix};
use crate::problem::{Checker, DEPTH_MAX, NODES_MAX, Problem};

/// The most blocks of a working set: the address of each, and a uniform draw of one, are exact far
/// beyond.
const WORKING_SET_BLOCKS_MAX: u64 = 1 << 40;
/// The largest block: a working set stays addressable by 64 bits.
const BLOCK_BYTES_MAX: u64 = 1 << 23;
/// The steepest zipfian law. At exactly 1 its inversion (Gray et al.) divides by zero.
const THETA_MAX: f64 = 4.0;

impl Config {
    /// What is impossible about this load, in the order of its fields; empty when it can be played.
    /// Whether the working set fits the volumes is the caller's to check: see
    /// [`Config::working_set`].
    pub fn problems(&self) -> Vec<Problem> {
        let mut check = Checker::default();
        check.range("clients", u64::from(self.clients), 1, u64::from(NODES_MAX) - 1);
        let volumes_max = u64::from(NODES_MAX).saturating_sub(u64::from(self.clients)).max(1);
        check.range("volumes", u64::from(self.volumes), 1, volumes_max);
        self.check_assignment(&mut check);
        check.range("block", self.block.count(), 1, BLOCK_BYTES_MAX);
        check.range("working_set_blocks", self.working_set_blocks, 1, WORKING_SET_BLOCKS_MAX);
        self.mix.check(&mut check);
        self.addresses.check(&mut check);
        self.arrivals.check(&mut check);
        if self.requests.is_none() && self.duration.is_none() {
            check.add(Problem::NoEnd);
        }
        check.problems()
    }

    fn check_assignment(&self, check: &mut Checker) {
        let Assignment::Fixed { lists } = &self.assignment else { return };
        let clients = u64::from(self.clients);
        check.range("assignment.lists", lists.len() as u64, clients, clients);
        for (client, list) in lists.iter().enumerate() {
            if list.is_empty() {
                check.add(Problem::Empty { field: format!("assignment.lists[{client}]") });
            }
            for (index, volume) in list.iter().enumerate() {
                let field = format!("assignment.lists[{client}][{index}]");
                check.range(field, u64::from(*volume), 0, u64::from(self.volumes.saturating_sub(1)));
            }
        }
    }
}

impl Mix {
    fn check(&self, check: &mut Checker) {
        match self {
            Mix::Independent { classes } => {
                check.weights("mix.classes", classes.iter().map(|class| class.weight));
                for (index, class) in classes.iter().enumerate() {
                    if let Action::Scan { blocks_max } = class.action {
                        let field = format!("mix.classes[{index}].action.blocks_max");
                        check.range(field, u64::from(blocks_max), 1, u64::from(u32::MAX));
                    }
                }
            }
            Mix::Runs { write_share, write_run } => check_runs(check, *write_share, *write_run),
        }
    }
}

fn check_runs(check: &mut Checker, write_share: f64, write_run: f64) {
    let has_both = write_share > 0.0 && write_share < 1.0;
    check.number("mix.write_share", write_share, "between 0 and 1, both excluded", has_both);
    // A share such as 0.8 is not exact in binary: the run of reads that follows from it may miss 1
    // by a rounding.
    let is_run = |run: f64| run.is_finite() && run >= 1.0 - 1e-9;
    let read_run = write_run * (1.0 - write_share) / write_share;
    let good = is_run(write_run) && (!has_both || is_run(read_run));
    check.number("mix.write_run", write_run, "long enough for runs of writes and of reads of 1 request or more", good);
}

impl Addresses {
    fn check(self, check: &mut Checker) {
        match self {
            Addresses::Uniform | Addresses::Sequential => {}
            Addresses::Zipfian { theta } | Addresses::ScrambledZipfian { theta } | Addresses::Latest { theta } => {
                let good = theta > 0.0 && theta <= THETA_MAX && theta != 1.0;
                check.number("addresses.theta", theta, "above 0, up to 4 and not 1", good);
            }
        }
    }
}

impl Arrivals {
    fn check(self, check: &mut Checker) {
        match self {
            Arrivals::Poisson { mean_gap_ps } => check.gap("arrivals.mean_gap_ps", mean_gap_ps),
            Arrivals::Deterministic { gap_ps } => check.gap("arrivals.gap_ps", gap_ps),
            Arrivals::Closed { depth, .. } => check.range("arrivals.depth", u64::from(depth), 1, u64::from(DEPTH_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Class;
    use super::*;
    use base::{Bytes, Span};

    fn good() -> Config {
        Config {
            clients: 2,
            volumes: 3,
            assignment: Assignment::RoundRobin,
            block: Bytes::new(4096),
            working_set_blocks: 10,
            mix: Mix::with_write_share(0.5),
            addresses: Addresses::Uniform,
            arrivals: Arrivals::Closed { depth: 1, think: Span::ZERO },
            requests: Some(10),
            duration: None,
        }
    }

    fn problem(change: impl FnOnce(&mut Config)) -> Vec<String> {
        let mut config = good();
        change(&mut config);
        config.problems().iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_good_load_has_no_problems_and_neither_have_its_edges() {
        assert_eq!(good().problems(), []);
        assert_eq!(problem(|config| config.mix = Mix::with_write_share(0.0)), [""; 0]);
        assert_eq!(problem(|config| config.mix = Mix::with_write_share(1.0)), [""; 0]);
        assert_eq!(problem(|config| config.mix = Mix::Runs { write_share: 0.5, write_run: 1.0 }), [""; 0]);
    }

    #[test]
    fn every_problem_names_its_field_and_what_is_allowed() {
        assert_eq!(problem(|config| config.clients = 0), ["clients: 0 is outside 1..=1048575"]);
        assert_eq!(problem(|config| config.volumes = 0), ["volumes: 0 is outside 1..=1048574"]);
        assert_eq!(problem(|config| config.block = Bytes::ZERO), ["block: 0 is outside 1..=8388608"]);
        assert_eq!(
            problem(|config| config.working_set_blocks = 0),
            ["working_set_blocks: 0 is outside 1..=1099511627776"]
        );
        assert_eq!(
            problem(|config| config.addresses = Addresses::Zipfian { theta: 1.0 }),
            ["addresses.theta: 1 is not above 0, up to 4 and not 1"]
        );
        assert_eq!(
            problem(|config| config.arrivals = Arrivals::Poisson { mean_gap_ps: f64::NAN }),
            ["arrivals.mean_gap_ps: NaN is not a positive, finite number of picoseconds"]
        );
        assert_eq!(
            problem(|config| config.arrivals = Arrivals::Closed { depth: 0, think: Span::ZERO }),
            ["arrivals.depth: 0 is outside 1..=1048576"]
        );
        assert_eq!(
            problem(|config| config.requests = None),
            ["requests, duration: neither is given, one of them must end the run"]
        );
    }

    #[test]
    fn lists_of_volumes_and_mixes_are_checked_entry_by_entry() {
        let lists = |lists| problem(|config| config.assignment = Assignment::Fixed { lists });
        assert_eq!(lists(vec![vec![0, 1, 2], vec![2]]), [""; 0]);
        assert_eq!(lists(vec![vec![0]]), ["assignment.lists: 1 is outside 2..=2"]);
        assert_eq!(
            lists(vec![vec![], vec![3]]),
            [
                "assignment.lists[0]: is empty, at least one entry is needed",
                "assignment.lists[1][0]: 3 is outside 0..=2"
            ]
        );
        let scan = Class { action: Action::Scan { blocks_max: 0 }, weight: 1.0 };
        assert_eq!(
            problem(|config| config.mix = Mix::Independent { classes: vec![scan] }),
            ["mix.classes[0].action.blocks_max: 0 is outside 1..=4294967295"]
        );
        assert_eq!(
            problem(|config| config.mix = Mix::Independent { classes: vec![] }),
            ["mix.classes: is empty, at least one entry is needed"]
        );
    }

    #[test]
    fn runs_of_reads_have_room_for_a_read() {
        let runs = |write_share, write_run| problem(|config| config.mix = Mix::Runs { write_share, write_run });
        let run = "is not long enough for runs of writes and of reads of 1 request or more";
        assert_eq!(runs(0.8, 4.0), [""; 0]);
        assert_eq!(runs(0.8, 3.9), [format!("mix.write_run: 3.9 {run}")]);
        assert_eq!(runs(0.2, 0.9), [format!("mix.write_run: 0.9 {run}")]);
        assert_eq!(runs(1.0, 4.0), ["mix.write_share: 1 is not between 0 and 1, both excluded"]);
    }
}
