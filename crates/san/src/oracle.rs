//! The optimum that no distributed scheme can exceed (paper, 4.2): the rates that a central
//! scheduler with global knowledge assigns.
//!
//! Traffic is fluid and may split over any number of paths. Hosts and targets forward nothing, and
//! nothing is lost to headers or queues. Two problems:
//!
//! * [`max_concurrent_flow`]: the largest common factor by which all demands can be met. A linear
//!   program.
//! * [`least_degradation`]: the least mean of demand over rate, the paper's `Perf_d`, with no rate
//!   above its demand. A second-order cone program, since `t >= 1 / u` is `(t + u, t - u, 2)` in
//!   that cone.
//!
//! Both are solved over edges, with the demands of one source (or of one target, if those are
//! fewer) aggregated. All-to-all traffic of 27 nodes thus has 27 commodities on 162 channels
//! instead of 702, and any such flow decomposes into paths.
//!
//! The solver is interior-point (`clarabel`). Objectives are accurate to about eight digits; the
//! rates that reach them, around which an objective is flat, to about four. A concurrent flow needs
//! no solver where two bounds meet, as in symmetric networks of any size: see [`Method::Bounds`].
//! Where they do not and the program is large, it is approximated with a computed gap: see
//! [`Method::Approximated`].

mod approximate;
mod bounds;
mod program;

use base::Rate;
use topology::{Graph, VertexId};

/// Unknowns of the largest program that is solved; the module `program` documents its solve times.
pub const UNKNOWNS_MAX: usize = 24_000;

/// Traffic between two vertices; that of a read is from target to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The source.
    pub from: VertexId,
    /// The destination.
    pub to: VertexId,
    /// The wanted rate, more than zero.
    pub rate: Rate,
}

/// The method by which an optimum was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// With an even split over shortest paths, the demands reach an upper bound of any division.
    /// The bound is the least of what ends of demands can send or receive, and of total capacity
    /// over the capacity that all demands use on shortest paths. Exact.
    Bounds,
    /// By the interior-point solver.
    Solved {
        /// Iterations of the solver.
        iterations: u32,
    },
    /// By a flow close to the optimum.
    Approximated {
        /// Rounds over all commodities.
        rounds: u32,
        /// Largest possible improvement, as a fraction of the objective. The bound follows from
        /// lengths assigned to channels.
        gap: f64,
    },
}

impl Optimum {
    /// Returns the largest possible improvement, as a fraction of the objective; 0 for an exact
    /// optimum.
    pub fn gap(&self) -> f64 {
        match self.method {
            Method::Approximated { gap, .. } => gap,
            Method::Bounds | Method::Solved { .. } => 0.0,
        }
    }
}

/// The optimal division of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// The common factor, or the mean of demand over rate.
    pub objective: f64,
    /// Rate of each demand, in bits a second.
    pub rates_bps: Vec<f64>,
    /// Load of each channel, in bits a second.
    pub loads_bps: Vec<f64>,
    /// The method that found it.
    pub method: Method,
}

/// An error of the oracle.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// The list of demands is empty.
    #[error("there are no demands")]
    NoDemand,
    /// A demand with a rate of zero, or from a vertex to itself.
    #[error("demand {index} is of {rate} from {from} to {to}: it must be more than 0bps between two places")]
    EmptyDemand {
        /// Index of the demand in the list, from 0.
        index: usize,
        /// The demand's rate, which is zero.
        rate: Rate,
        /// The source's name.
        from: String,
        /// The target's name.
        to: String,
    },
    /// No path joins the ends of a demand.
    #[error("demand {index}: there is no way from {from} to {to}")]
    NoWay {
        /// Index of the demand in the list, from 0.
        index: usize,
        /// The source's name.
        from: String,
        /// The target's name.
        to: String,
    },
    /// The program has more than [`UNKNOWNS_MAX`] unknowns.
    #[error(
        "{unknowns} unknowns are more than {UNKNOWNS_MAX}: {commodities} sources or targets on {channels} channels"
    )]
    TooLarge {
        /// Number of unknowns.
        unknowns: usize,
        /// Number of commodities.
        commodities: usize,
        /// Number of channels.
        channels: usize,
    },
    /// The solver stopped without a solution.
    #[error("the solver stopped with `{status}`")]
    Unsolved {
        /// The solver's status.
        status: String,
    },
}

/// Returns the largest factor by which all demands together can be met.
///
/// # Errors
///
/// When a demand is empty or has no path. Also when the network is too large even to approximate
/// and not symmetric enough for the bounds.
pub fn max_concurrent_flow(graph: &Graph, demands: &[Demand]) -> Result<Optimum, OracleError> {
    check(graph, demands)?;
    match bounds::tight(graph, demands) {
        Some(optimum) => Ok(optimum),
        None => match program::concurrent(graph, demands) {
            Err(OracleError::TooLarge { .. }) => approximate::concurrent(graph, demands),
            other => other,
        },
    }
}

/// Returns the rates, none above its demand, with the least mean of demand over rate.
///
/// # Errors
///
/// When a demand is empty or has no path, or the network is too large.
pub fn least_degradation(graph: &Graph, demands: &[Demand]) -> Result<Optimum, OracleError> {
    check(graph, demands)?;
    program::degradation(graph, demands)
}

/// Returns the mean of demand over rate for measured rates, in bits a second; infinite if a rate is
/// zero. A rate above its demand counts as the demand, so that no scheme beats the optimum by
/// exceeding a demand.
pub fn degradation(demands: &[Demand], rates_bps: &[f64]) -> f64 {
    let each = demands.iter().zip(rates_bps).map(|(demand, rate)| (demand.rate.as_bps() as f64 / rate).max(1.0));
    each.sum::<f64>() / demands.len() as f64
}

/// Returns a demand of `rate` from every node to every other.
pub fn all_to_all(nodes: &[VertexId], rate: Rate) -> Vec<Demand> {
    let pair =
        |from: VertexId| nodes.iter().filter(move |to| **to != from).map(move |to| Demand { from, to: *to, rate });
    nodes.iter().flat_map(|from| pair(*from)).collect()
}

/// Returns a demand of `rate` from each of `from` to each of `to`.
pub fn each_to_each(from: &[VertexId], to: &[VertexId], rate: Rate) -> Vec<Demand> {
    from.iter().flat_map(|from| to.iter().map(move |to| Demand { from: *from, to: *to, rate })).collect()
}

fn check(graph: &Graph, demands: &[Demand]) -> Result<(), OracleError> {
    if demands.is_empty() {
        return Err(OracleError::NoDemand);
    }
    let name = |vertex: VertexId| graph.vertex(vertex).name.clone();
    let empty = demands.iter().position(|demand| demand.rate.as_bps() == 0 || demand.from == demand.to);
    if let Some(index) = empty {
        let Demand { from, to, rate } = demands[index];
        return Err(OracleError::EmptyDemand { index, rate, from: name(from), to: name(to) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Length;
    use proptest::prelude::*;
    use topology::{Builder, Cabling, Config, Endpoints, Kind, Lengths, Placement, Ports, VertexKind};

    const LINK: Rate = Rate::gbps(100);

    fn built(kind: Kind, hosts: u32, targets: u32) -> Graph {
        let metre = Length::m(1);
        let config = Config {
            kind,
            endpoints: Endpoints { hosts, targets, placement: Placement::Spread },
            ports: Ports { endpoint: 64, adapter: 64, switch: 64 },
            cabling: Cabling {
                rate: LINK,
                board_rate: Rate::gbps(600),
                fabric_cables: 1,
                endpoint_cables: 1,
                lengths: Lengths { endpoint: metre, near: metre, far: metre },
            },
        };
        config.build().unwrap()
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-6 * right.abs().max(1.0)
    }

    /// Two hosts, a switch, and one target behind a single cable.
    fn bottleneck(rates: [Rate; 2]) -> (Graph, Vec<Demand>) {
        let graph = built(Kind::SingleSwitch, 2, 1);
        let (target, hosts) = (graph.named("t0").unwrap(), ["h0", "h1"].map(|name| graph.named(name).unwrap()));
        let demands = hosts.iter().zip(rates).map(|(to, rate)| Demand { from: target, to: *to, rate }).collect();
        (graph, demands)
    }

    #[test]
    fn in_the_torus_of_27_each_pair_gets_11_gigabits_by_bounds_and_by_solver() {
        let graph = built(Kind::Torus { dimensions: vec![3, 3, 3] }, 0, 0);
        let demands = all_to_all(&graph.nodes(), Rate::gbps(1));
        // 162 channels of 100 Gb/s for 702 pairs of 54/26 hops.
        let expected = 100.0 / 9.0;
        let by_bounds = max_concurrent_flow(&graph, &demands).unwrap();
        assert_eq!(by_bounds.method, Method::Bounds);
        assert!(near(by_bounds.objective, expected), "{}", by_bounds.objective);
        assert!(by_bounds.rates_bps.iter().all(|rate| near(*rate / 1e9, expected)));
        let by_solver = program::concurrent(&graph, &demands).unwrap();
        assert!(near(by_solver.objective, expected), "{}", by_solver.objective);
    }

    /// A rate over `h` hops uses its amount on `h` channels, so the optimal rates are proportional
    /// to the inverse roots of distances. Of the other nodes 6 are one hop away, 12 two and 8
    /// three, and all 600 Gb/s of each node are used.
    #[test]
    fn the_least_degradation_of_the_torus_of_27_gives_more_to_nearer_pairs() {
        let graph = built(Kind::Torus { dimensions: vec![3, 3, 3] }, 0, 0);
        let demands = all_to_all(&graph.nodes(), Rate::gbps(20));
        let least = least_degradation(&graph, &demands).unwrap();
        let roots: f64 =
            [(6.0, 1.0_f64), (12.0, 2.0), (8.0, 3.0)].iter().map(|(count, hops)| count * hops.sqrt()).sum();
        assert!(near(least.objective, 20.0 * roots * roots / (600.0 * 26.0)), "{}", least.objective);
        assert!(least.objective < degradation(&demands, &vec![100e9 / 9.0; demands.len()]));
    }

    #[test]
    fn a_torus_of_512_needs_no_solver() {
        let graph = built(Kind::Torus { dimensions: vec![8, 8, 8] }, 0, 0);
        let optimum = max_concurrent_flow(&graph, &all_to_all(&graph.nodes(), Rate::gbps(1))).unwrap();
        // Each node has 6 channels and 511 others at 3 * 8 * 8^2 * 2 = 3,072 hops together.
        assert!(near(optimum.objective, 600.0 / 3_072.0), "{}", optimum.objective);
    }

    #[test]
    fn hosts_that_read_from_everyone_in_a_torus_share_their_own_cables() {
        let graph = built(Kind::Torus { dimensions: vec![3, 3, 3] }, 27, 27);
        let ends = |kind| graph.of_kind(kind).collect::<Vec<_>>();
        let demands = each_to_each(&ends(VertexKind::Target), &ends(VertexKind::Host), Rate::gbps(1));
        let optimum = max_concurrent_flow(&graph, &demands).unwrap();
        assert!(near(optimum.objective, 100.0 / 27.0), "{}", optimum.objective);
    }

    /// Demands with sources and targets placed so unevenly that the bounds do not meet.
    fn uneven(nodes: usize) -> (Graph, Vec<Demand>) {
        let graph = built(Kind::Torus { dimensions: vec![3, 3] }, 0, 0);
        let all = graph.nodes();
        let rate = |index: usize| Rate::gbps(1 + index as u64 % 3);
        let demand =
            |(index, from): (usize, &VertexId)| Demand { from: *from, to: all[8 - index % 3], rate: rate(index) };
        let demands = all[..nodes].iter().enumerate().map(demand).collect();
        (graph, demands)
    }

    fn assert_near_the_exact(graph: &Graph, demands: &[Demand]) -> f64 {
        let exact = program::concurrent(graph, demands).unwrap().objective;
        let near = approximate::concurrent(graph, demands).unwrap();
        assert!(near.objective <= exact * (1.0 + 1e-6), "{} is more than the best, {exact}", near.objective);
        let most = near.objective * (1.0 + near.gap());
        assert!(most >= exact * (1.0 - 1e-6), "a bound of {most} is below the best, {exact}");
        for (index, load) in near.loads_bps.iter().enumerate() {
            let rate = graph.links()[index / 2].rate.as_bps() as f64;
            assert!(*load <= rate * (1.0 + 1e-9), "{load} on {rate}");
        }
        near.gap()
    }

    #[test]
    fn an_approximation_lies_within_its_gap_of_the_exact_program() {
        for nodes in [1, 3, 5, 6] {
            let (graph, demands) = uneven(nodes);
            assert!(assert_near_the_exact(&graph, &demands) <= 0.01, "{nodes}");
        }
        let torus = built(Kind::Torus { dimensions: vec![3, 3, 3] }, 0, 0);
        assert!(assert_near_the_exact(&torus, &all_to_all(&torus.nodes(), Rate::gbps(1))) <= 0.01);
    }

    #[test]
    fn a_network_of_64_with_a_cable_missing_is_approximated_and_its_gap_is_said() {
        let graph = built(Kind::Torus { dimensions: vec![4, 4, 4] }, 0, 0);
        let broken = graph.without(&topology::Failures::of_links([topology::LinkId(0), topology::LinkId(17)]));
        let demands = all_to_all(&broken.nodes(), Rate::gbps(1));
        let optimum = max_concurrent_flow(&broken, &demands).unwrap();
        assert!(matches!(optimum.method, Method::Approximated { .. }), "{:?}", optimum.method);
        assert!(optimum.gap() > 0.0 && optimum.gap() <= 0.05, "{}", optimum.gap());
        // The whole torus: 384 channels of 100 Gb/s for 4,032 pairs of 192/63 links.
        assert!(optimum.objective <= 100.0 * 384.0 / (64.0 * 192.0));
    }

    #[test]
    fn one_pair_of_a_ring_uses_both_ways_round() {
        let graph = built(Kind::Ring { nodes: 5 }, 0, 0);
        let [from, to] = ["a0", "a2"].map(|name| graph.named(name).unwrap());
        let optimum = max_concurrent_flow(&graph, &[Demand { from, to, rate: LINK }]).unwrap();
        assert!(near(optimum.objective, 2.0), "{}", optimum.objective);
        let least = least_degradation(&graph, &[Demand { from, to, rate: Rate::gbps(400) }]).unwrap();
        assert!(near(least.objective, 2.0), "{}", least.objective);
    }

    /// By Lagrange multipliers: at one shared limit, the least sum of d/r has rates proportional to
    /// the square roots of the demands.
    #[test]
    fn degradation_at_one_bottleneck_is_least_when_rates_go_with_the_roots_of_demands() {
        let (graph, demands) = bottleneck([Rate::gbps(100), Rate::gbps(400)]);
        let optimum = least_degradation(&graph, &demands).unwrap();
        assert!((optimum.rates_bps[0] / 1e9 - 100.0 / 3.0).abs() < 0.01, "{:?}", optimum.rates_bps);
        assert!((optimum.rates_bps[1] / 1e9 - 200.0 / 3.0).abs() < 0.01, "{:?}", optimum.rates_bps);
        assert!(near(optimum.objective, (3.0 + 6.0) / 2.0), "{}", optimum.objective);
        assert!(near(degradation(&demands, &optimum.rates_bps), optimum.objective));
    }

    #[test]
    fn nobody_gets_more_than_was_asked_for() {
        let (graph, demands) = bottleneck([Rate::gbps(10), Rate::gbps(400)]);
        let optimum = least_degradation(&graph, &demands).unwrap();
        assert!((optimum.rates_bps[0] / 1e9 - 10.0).abs() < 0.01, "{:?}", optimum.rates_bps);
        assert!((optimum.rates_bps[1] / 1e9 - 90.0).abs() < 0.01, "{:?}", optimum.rates_bps);
        let (graph, little) = bottleneck([Rate::gbps(10), Rate::gbps(20)]);
        assert!(near(least_degradation(&graph, &little).unwrap().objective, 1.0));
    }

    #[test]
    fn hosts_pass_nothing_on() {
        // Two switches that are joined by a host with two cables and by a slow cable.
        let mut builder = Builder::new();
        let switches = [0, 1].map(|index| builder.vertex(VertexKind::Switch, format!("s{index}"), 8));
        let [host, target] = [VertexKind::Host, VertexKind::Target].map(|kind| builder.vertex(kind, kind.word(), 8));
        builder.cable([host, switches[0]], LINK, Length::m(1));
        builder.cable([host, switches[1]], LINK, Length::m(1));
        builder.cable([switches[0], switches[1]], Rate::gbps(1), Length::m(1));
        builder.cable([target, switches[1]], LINK, Length::m(1));
        let other = builder.vertex(VertexKind::Host, "other", 8);
        builder.cable([other, switches[0]], LINK, Length::m(1));
        let graph = builder.finish().unwrap();
        let demand = Demand { from: target, to: other, rate: LINK };
        assert!(near(max_concurrent_flow(&graph, &[demand]).unwrap().objective, 0.01));
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_number() {
        let (graph, mut demands) = bottleneck([LINK, LINK]);
        assert_eq!(max_concurrent_flow(&graph, &[]), Err(OracleError::NoDemand));
        demands[1].rate = Rate::bps(0);
        let said = least_degradation(&graph, &demands).unwrap_err().to_string();
        assert_eq!(said, "demand 1 is of 0bps from t0 to h1: it must be more than 0bps between two places");
        demands[1].rate = LINK;
        let cut = graph.without(&topology::Failures::of_vertices(graph.named("h1")));
        let said = max_concurrent_flow(&cut, &demands).unwrap_err().to_string();
        assert_eq!(said, "demand 1: there is no way from t0 to h1");
    }

    #[test]
    fn a_program_that_would_not_end_is_refused() {
        let graph = built(Kind::Torus { dimensions: vec![16, 16, 2] }, 0, 0);
        let demands = all_to_all(&graph.nodes(), Rate::gbps(1));
        assert!(matches!(least_degradation(&graph, &demands), Err(OracleError::TooLarge { .. })));
    }

    /// A few adapters in a random connected network, with cables of random rates.
    fn network() -> impl Strategy<Value = (Graph, Vec<Demand>)> {
        let cables = prop::collection::vec((0..6u32, 0..6u32, 1..=4u64), 0..8);
        let demands = prop::collection::vec((0..6u32, 0..6u32, 1..=8u64), 1..8);
        (cables, prop::collection::vec(1..=4u64, 5), demands).prop_map(|(cables, spine, demands)| {
            let mut builder = Builder::new();
            let ids: Vec<_> = (0..6).map(|id| builder.vertex(VertexKind::Adapter, format!("a{id}"), 64)).collect();
            for (index, rate) in spine.into_iter().enumerate() {
                builder.cable([ids[index], ids[index + 1]], Rate::gbps(rate * 25), Length::m(1));
            }
            for (from, to, rate) in cables.into_iter().filter(|(from, to, _)| from != to) {
                builder.cable([ids[from as usize], ids[to as usize]], Rate::gbps(rate * 25), Length::m(1));
            }
            let demand = |(from, to, rate): (u32, u32, u64)| Demand {
                from: ids[from as usize],
                to: ids[if from == to { (to as usize + 1) % 6 } else { to as usize }],
                rate: Rate::gbps(rate * 10),
            };
            let demands = demands.into_iter().map(demand).collect();
            (builder.finish().unwrap(), demands)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_network_is_approximated_within_the_gap_that_is_said((graph, demands) in network()) {
            prop_assert!(assert_near_the_exact(&graph, &demands) <= 0.05);
        }

        #[test]
        fn an_optimum_fits_and_is_no_worse_than_the_other_ones_rates((graph, demands) in network()) {
            let factor = max_concurrent_flow(&graph, &demands).unwrap();
            let least = least_degradation(&graph, &demands).unwrap();
            for optimum in [&factor, &least] {
                for (index, load) in optimum.loads_bps.iter().enumerate() {
                    let rate = graph.links()[index / 2].rate.as_bps() as f64;
                    prop_assert!(*load <= rate * (1.0 + 1e-6), "{load} on {rate}");
                }
            }
            prop_assert!(least.objective <= degradation(&demands, &factor.rates_bps) * (1.0 + 1e-6));
            let reached = demands.iter().zip(&least.rates_bps).map(|(demand, rate)| rate / demand.rate.as_bps() as f64);
            let reached = reached.fold(f64::INFINITY, f64::min);
            prop_assert!(reached <= factor.objective * (1.0 + 1e-6), "{reached} over {}", factor.objective);
            // Flow is conserved at every vertex, except for what begins or ends there.
            for vertex in graph.vertex_ids() {
                let sum = |ends: fn(&Demand) -> VertexId| -> f64 {
                    let rates = demands.iter().zip(&factor.rates_bps);
                    rates.filter(|(demand, _)| ends(demand) == vertex).map(|(_, rate)| rate).sum()
                };
                let out: f64 = graph.hops(vertex).iter().map(|hop| factor.loads_bps[hop.channel.index()]).sum();
                let into: f64 = graph.hops(vertex).iter().map(|hop| factor.loads_bps[hop.channel.reverse().index()]).sum();
                let (begun, ended) = (sum(|demand| demand.from), sum(|demand| demand.to));
                prop_assert!((out - into - begun + ended).abs() <= 1e-5 * (out + into + 1e9), "{}", graph.vertex(vertex).name);
            }
        }
    }
}
