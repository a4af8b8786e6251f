//! From an offered load to a request rate.
//!
//! A load of 1 means that the busiest link direction of the rack is always busy when every request
//! costs what a lone request of its class costs on the wire in that design, control messages
//! included ([`LoadBasis::Link`]), or with its payload alone ([`LoadBasis::Payload`]). The cost is
//! averaged over the mix and over each class's sizes: exactly for constants and tables, over
//! [`QUANTILES`] equally likely sizes for cumulative distributions.

use crate::file::LoadBasis;
use base::{Bytes, Operation, Rate};
use transport::cost::WireCost;
use workload::{Class, Pattern, SizeDistribution};

/// Number of sizes that represent a cumulative distribution.
pub(crate) const QUANTILES: u32 = 4_000;

/// What a lone request puts on its four link directions in some design.
pub(crate) type CostOf<'a> = &'a dyn Fn(Operation, Bytes) -> WireCost;

/// The mean bytes of a request on its four link directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MeanCost {
    pub requester_up: f64,
    pub requester_down: f64,
    pub target_up: f64,
    pub target_down: f64,
}

impl MeanCost {
    fn add(&mut self, cost: WireCost, share: f64) {
        self.requester_up += cost.requester_up as f64 * share;
        self.requester_down += cost.requester_down as f64 * share;
        self.target_up += cost.target_up as f64 * share;
        self.target_down += cost.target_down as f64 * share;
    }

    /// Over a whole mix, whose weights are not all zero.
    pub(crate) fn of(mix: &[Class], cost: CostOf<'_>) -> MeanCost {
        let total: f64 = mix.iter().map(|class| class.weight).sum();
        let mut mean = MeanCost::default();
        for class in mix {
            for_each_size(&class.size, &mut |bytes, share| {
                mean.add(cost(class.operation, bytes), share * class.weight / total);
            });
        }
        mean
    }

    /// Bytes on the busiest link direction for each request of one source (all sources, of those
    /// asking nodes make equally many).
    pub(crate) fn busiest(&self, pattern: &Pattern, nodes: u32) -> f64 {
        match pattern {
            // Every node sends as many requests as it receives.
            Pattern::AllToAll | Pattern::Permutation => {
                (self.requester_up + self.target_up).max(self.requester_down + self.target_down)
            }
            Pattern::RoleSplit { compute } => {
                let asked_per_target = f64::from(*compute) / f64::from(nodes.saturating_sub(*compute).max(1));
                self.busiest_of_roles(asked_per_target)
            }
            Pattern::Incast { sources, .. } => self.busiest_of_roles(f64::from(*sources)),
        }
    }

    /// `asked_per_target`: requests that a target receives for each one of a source.
    fn busiest_of_roles(&self, asked_per_target: f64) -> f64 {
        let asking = self.requester_up.max(self.requester_down);
        asking.max(self.target_up.max(self.target_down) * asked_per_target)
    }
}

/// Payload alone: data crosses one link direction at each end.
pub fn payload_cost(operation: Operation, bytes: Bytes) -> WireCost {
    let data = bytes.count();
    match operation {
        Operation::Write => WireCost { requester_up: data, target_down: data, ..WireCost::default() },
        Operation::Read | Operation::ReadModifyWrite => {
            WireCost { target_up: data, requester_down: data, ..WireCost::default() }
        }
    }
}

/// The mean gap between the requests of one source, in picoseconds, at which `busiest_bytes` a
/// request take `load` of a link.
pub(crate) fn mean_gap_ps(busiest_bytes: f64, load: f64, rate: Rate) -> f64 {
    busiest_bytes * 8.0 * 1e12 / (load * rate.as_bps() as f64)
}

/// The load of the busiest link direction, the inverse of [`mean_gap_ps`].
pub(crate) fn load_at(busiest_bytes: f64, gap_ps: f64, rate: Rate) -> f64 {
    busiest_bytes * 8.0 * 1e12 / (gap_ps * rate.as_bps() as f64)
}

/// What a load is computed with.
pub(crate) fn cost_for<'a>(basis: LoadBasis, design: CostOf<'a>) -> CostOf<'a> {
    match basis {
        LoadBasis::Link => design,
        LoadBasis::Payload => &payload_cost,
    }
}

/// How many nodes make requests.
pub(crate) fn asking_nodes(pattern: &Pattern, nodes: u32) -> u32 {
    match pattern {
        Pattern::AllToAll | Pattern::Permutation => nodes,
        Pattern::RoleSplit { compute } => *compute,
        Pattern::Incast { sources, .. } => *sources,
    }
}

/// Sizes with their shares, which sum to 1.
fn for_each_size(size: &SizeDistribution, visit: &mut dyn FnMut(Bytes, f64)) {
    match size {
        SizeDistribution::Constant { bytes } => visit(*bytes, 1.0),
        SizeDistribution::Table { entries } => {
            let total: f64 = entries.iter().map(|(_, weight)| weight).sum();
            entries.iter().for_each(|(bytes, weight)| visit(*bytes, weight / total));
        }
        SizeDistribution::Cdf { points, .. } => {
            for index in 0..QUANTILES {
                let probability = (f64::from(index) + 0.5) / f64::from(QUANTILES);
                visit(quantile(points, probability), 1.0 / f64::from(QUANTILES));
            }
        }
    }
}

/// The size at a cumulative probability, to the nearest byte and at least one, as the generator
/// draws it.
fn quantile(points: &[(f64, f64)], probability: f64) -> Bytes {
    let above = points.partition_point(|(_, cumulative)| *cumulative <= probability);
    let bytes = match (above.checked_sub(1).and_then(|below| points.get(below)), points.get(above)) {
        (Some((from, since)), Some((to, until))) => from + (to - from) * (probability - since) / (until - since),
        (None, Some((bytes, _))) | (Some((bytes, _)), None) => *bytes,
        (None, None) => 1.0,
    };
    Bytes::new((bytes.round() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::NodeId;

    const READ: Class =
        Class { operation: Operation::Read, weight: 1.0, size: SizeDistribution::Constant { bytes: Bytes::new(64) } };

    /// 10 bytes of request and 80 of answer to a read; 100 and an acknowledgement of 5 for a write.
    fn toy_cost(operation: Operation, _: Bytes) -> WireCost {
        match operation {
            Operation::Write => WireCost { requester_up: 100, requester_down: 5, target_up: 5, target_down: 100 },
            _ => WireCost { requester_up: 10, requester_down: 80, target_up: 80, target_down: 10 },
        }
    }
    fn half_and_half() -> Vec<Class> {
        vec![READ, Class { operation: Operation::Write, ..READ }]
    }

    #[test]
    fn every_node_of_an_all_to_all_carries_both_sides_of_a_request() {
        let mean = MeanCost::of(&half_and_half(), &toy_cost);
        assert_eq!(mean, MeanCost { requester_up: 55.0, requester_down: 42.5, target_up: 42.5, target_down: 55.0 });
        assert_eq!(mean.busiest(&Pattern::AllToAll, 144), 97.5);
        assert_eq!(mean.busiest(&Pattern::Permutation, 144), 97.5);
    }

    #[test]
    fn with_roles_the_smaller_side_is_the_busier() {
        let mean = MeanCost::of(&[READ], &toy_cost);
        // Three memory nodes for each compute node: the compute node's 80 bytes down are the
        // bottleneck.
        assert_eq!(mean.busiest(&Pattern::RoleSplit { compute: 36 }, 144), 80.0);
        // Three compute nodes for each memory node: it sends three answers for each request of one
        // of them.
        assert_eq!(mean.busiest(&Pattern::RoleSplit { compute: 108 }, 144), 240.0);
    }

    #[test]
    fn an_incast_is_bound_by_its_target() {
        let mean = MeanCost::of(&[Class { operation: Operation::Write, ..READ }], &toy_cost);
        assert_eq!(mean.busiest(&Pattern::Incast { target: NodeId(0), sources: 20 }, 144), 2_000.0);
        assert_eq!(mean.busiest(&Pattern::Incast { target: NodeId(0), sources: 1 }, 144), 100.0);
    }

    #[test]
    fn full_load_of_125_bytes_a_request_at_100_gbps_is_a_request_every_10_ns() {
        assert_eq!(mean_gap_ps(125.0, 1.0, Rate::gbps(100)), 10_000.0);
        assert_eq!(mean_gap_ps(125.0, 0.5, Rate::gbps(100)), 20_000.0);
        assert_eq!(load_at(125.0, 20_000.0, Rate::gbps(100)), 0.5);
    }

    #[test]
    fn payload_counts_data_once_at_each_end() {
        let mean = MeanCost::of(&half_and_half(), &payload_cost);
        assert_eq!(mean.busiest(&Pattern::AllToAll, 144), 64.0);
        assert_eq!(mean.busiest(&Pattern::RoleSplit { compute: 72 }, 144), 32.0);
    }

    #[test]
    fn tables_are_averaged_exactly_and_distributions_to_a_thousandth() {
        let identity = |_: Operation, bytes: Bytes| WireCost { requester_up: bytes.count(), ..WireCost::default() };
        let table = SizeDistribution::Table { entries: vec![(Bytes::new(64), 3.0), (Bytes::new(4096), 1.0)] };
        let mean = MeanCost::of(&[Class { size: table, ..READ }], &identity);
        assert_eq!(mean.requester_up, (3.0 * 64.0 + 4096.0) / 4.0);
        for shipped in workload::PROFILES {
            let size = workload::profile(shipped.name).expect("shipped");
            let exact = size.mean_bytes();
            let mean = MeanCost::of(&[Class { size, ..READ }], &identity).requester_up;
            assert!((mean / exact - 1.0).abs() < 1e-3, "{}: {mean} instead of {exact}", shipped.name);
        }
    }

    /// The curve jumps at 10: half of the mass lies there, the rest is even on 10..=20.
    #[test]
    fn quantiles_follow_the_points_on_both_sides_of_a_jump() {
        let points = [(10.0, 0.0), (10.0, 0.5), (20.0, 1.0)];
        assert_eq!(quantile(&points, 0.25), Bytes::new(10));
        assert_eq!(quantile(&points, 0.5), Bytes::new(10));
        assert_eq!(quantile(&points, 0.75), Bytes::new(15));
        assert_eq!(quantile(&[(7.0, 0.4), (8.0, 1.0)], 0.1), Bytes::new(7));
        assert_eq!(quantile(&[(0.0, 0.0), (1.0, 1.0)], 0.1), Bytes::new(1));
    }
}
