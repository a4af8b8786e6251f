//! Max-min fair rates over several resources, in whole units, by progressive filling.

/// Fractions of a resource are counted in this many parts of its unit.
const PARTS: u64 = 1 << 20;

/// What one unit of a flow's rate takes of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    resource: usize,
    parts_per_unit: u64,
}

impl Usage {
    /// `amount` of the resource for every `units` of rate, rounded up to a part. `units` is not 0.
    pub(super) fn new(resource: usize, amount: u64, units: u64) -> Usage {
        let parts = (u128::from(amount) * u128::from(PARTS)).div_ceil(u128::from(units));
        Usage { resource, parts_per_unit: u64::try_from(parts).unwrap_or(u64::MAX) }
    }
}

/// Users and capacities of the resources.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    /// By flow. An amount of 0 is no use.
    pub(super) usages: Vec<Vec<Usage>>,
    /// By resource.
    pub(super) capacities: Vec<u64>,
}

impl Problem {
    /// Raises the rates of all flows together from `start`, each up to its own `limits`, until
    /// resources are full: a flow stops when one of its resources is full. Full means that less
    /// than a whole unit of rate is left for each flow that still rises on it. Afterwards a flow
    /// below its limit can gain a unit only if a flow with at most its raise loses one. `start`
    /// must fit.
    pub(super) fn raise(&self, start: &[u64], limits: &[u64]) -> Vec<u64> {
        let mut filling =
            Filling { problem: self, start, limits, level: 0, rates: start.to_vec(), rising: vec![true; start.len()] };
        while filling.rise() {}
        filling.rates
    }

    fn overloaded(&self, rates: &[u64]) -> Vec<bool> {
        let mut load = vec![0; self.capacities.len()];
        for (usages, rate) in self.usages.iter().zip(rates) {
            for usage in usages {
                load[usage.resource] += u128::from(*rate) * u128::from(usage.parts_per_unit);
            }
        }
        let capacities = self.capacities.iter().map(|capacity| u128::from(*capacity) * u128::from(PARTS));
        load.into_iter().zip(capacities).map(|(load, capacity)| load > capacity).collect()
    }

    fn fits(&self, rates: &[u64]) -> bool {
        !self.overloaded(rates).contains(&true)
    }
}

struct Filling<'a> {
    problem: &'a Problem,
    start: &'a [u64],
    limits: &'a [u64],
    /// By how much those that still rise have been raised.
    level: u64,
    rates: Vec<u64>,
    rising: Vec<bool>,
}

impl Filling<'_> {
    /// Raises to the next level at which a resource is full, and stops the flows that use it.
    /// Whether any still rises.
    fn rise(&mut self) -> bool {
        self.level = self.highest_level();
        self.rates = self.at(self.level);
        for flow in 0..self.rates.len() {
            self.rising[flow] &= self.rates[flow] < self.limits[flow];
        }
        let full = self.problem.overloaded(&self.at(self.level.saturating_add(1)));
        for flow in 0..self.rates.len() {
            self.rising[flow] &= !self.uses(flow, &full);
        }
        self.rising.contains(&true)
    }

    /// The highest level that fits, by bisection: load never falls as the level rises.
    fn highest_level(&self) -> u64 {
        let rooms = self.limits.iter().zip(self.start).map(|(limit, start)| limit.saturating_sub(*start));
        let (mut fits, mut most) = (self.level, rooms.max().unwrap_or(0).max(self.level));
        while fits < most {
            let middle = fits + (most - fits).div_ceil(2);
            if self.problem.fits(&self.at(middle)) {
                fits = middle;
            } else {
                most = middle - 1;
            }
        }
        fits
    }

    fn at(&self, level: u64) -> Vec<u64> {
        let flows = self.rates.iter().zip(self.start).zip(self.limits).zip(&self.rising);
        flows
            .map(
                |(((rate, start), limit), rising)| {
                    if *rising { start.saturating_add(level).min(*limit).max(*start) } else { *rate }
                },
            )
            .collect()
    }

    fn uses(&self, flow: usize, full: &[bool]) -> bool {
        self.problem.usages[flow].iter().any(|usage| usage.parts_per_unit > 0 && full[usage.resource])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_resource(flows: usize, capacity: u64) -> Problem {
        Problem { usages: vec![vec![Usage::new(0, 1, 1)]; flows], capacities: vec![capacity] }
    }

    #[test]
    fn flows_that_want_little_get_it_and_the_others_share_the_rest() {
        let rates = one_resource(4, 100).raise(&[0; 4], &[10, 20, 80, 90]);
        assert_eq!(rates, [10, 20, 35, 35]);
    }

    #[test]
    fn what_is_wanted_is_given_when_everything_fits() {
        assert_eq!(one_resource(3, 60).raise(&[0; 3], &[10, 20, 30]), [10, 20, 30]);
        assert_eq!(one_resource(3, 59).raise(&[0; 3], &[10, 20, 30]), [10, 20, 29]);
    }

    #[test]
    fn units_that_are_not_enough_for_everybody_stay_unused() {
        assert_eq!(one_resource(3, 11).raise(&[0; 3], &[100; 3]), [3; 3]);
        assert_eq!(one_resource(3, 12).raise(&[0; 3], &[100; 3]), [4; 3]);
    }

    #[test]
    fn a_flow_held_back_at_one_resource_leaves_room_at_another() {
        let on = |resource| Usage::new(resource, 1, 1);
        // The textbook's line of two links: the long flow and the first short one share the narrow
        // link.
        let problem = Problem { usages: vec![vec![on(0), on(1)], vec![on(0)], vec![on(1)]], capacities: vec![10, 30] };
        assert_eq!(problem.raise(&[0; 3], &[1_000; 3]), [5, 5, 25]);
    }

    #[test]
    fn a_flow_that_takes_more_per_unit_fills_the_resource_sooner() {
        let dear = Usage::new(0, 5, 2);
        let cheap = Usage::new(0, 1, 2);
        let problem = Problem { usages: vec![vec![dear], vec![cheap]], capacities: vec![30] };
        assert_eq!(problem.raise(&[0; 2], &[1_000; 2]), [10, 10]);
    }

    /// Returns whether a flow's gain must be another's loss there, and nobody there has more: it
    /// uses the resource, which has not a whole unit for everybody left, and has the highest rate
    /// on it.
    fn is_bottleneck(problem: &Problem, rates: &[u64], flow: usize, resource: usize) -> bool {
        let is_user = |flow: usize| {
            problem.usages[flow].iter().any(|usage| usage.resource == resource && usage.parts_per_unit > 0)
        };
        let one_more: Vec<u64> = (0..rates.len()).map(|flow| rates[flow] + u64::from(is_user(flow))).collect();
        let is_highest = (0..rates.len()).filter(|other| is_user(*other)).all(|other| rates[other] <= rates[flow]);
        is_user(flow) && is_highest && problem.overloaded(&one_more)[resource]
    }

    fn problems() -> impl Strategy<Value = (Problem, Vec<u64>)> {
        let usage =
            (0_usize..4, 0_u64..5, 1_u64..4).prop_map(|(resource, amount, units)| Usage::new(resource, amount, units));
        let flow = (prop::collection::vec(usage, 0..4), 0_u64..300);
        (prop::collection::vec(flow, 1..8), prop::collection::vec(0_u64..500, 4)).prop_map(|(flows, capacities)| {
            let (mut usages, limits): (Vec<Vec<Usage>>, Vec<u64>) = flows.into_iter().unzip();
            for usages in &mut usages {
                usages.sort_by_key(|usage| usage.resource);
                usages.dedup_by_key(|usage| usage.resource);
            }
            (Problem { usages, capacities }, limits)
        })
    }

    proptest! {
        #[test]
        fn no_flow_can_gain_without_a_loss_to_one_that_has_no_more((problem, limits) in problems()) {
            let rates = problem.raise(&vec![0; limits.len()], &limits);
            prop_assert!(problem.fits(&rates));
            for flow in 0..rates.len() {
                prop_assert!(rates[flow] <= limits[flow]);
                let has_all = rates[flow] == limits[flow];
                prop_assert!(has_all || (0..4).any(|resource| is_bottleneck(&problem, &rates, flow, resource)), "{flow} of {rates:?}");
            }
        }

        #[test]
        fn raising_again_takes_nothing_away((problem, limits) in problems()) {
            let wanted = problem.raise(&vec![0; limits.len()], &limits);
            let raised = problem.raise(&wanted, &vec![1_000_000; limits.len()]);
            prop_assert!(problem.fits(&raised));
            prop_assert!(wanted.iter().zip(&raised).all(|(before, after)| before <= after));
        }
    }
}
