//! Two bounds on a concurrent flow, which meet in symmetric networks.

use super::{Demand, Method, Optimum};
use std::collections::BTreeMap;
use topology::{Distances, Graph, VertexId};

/// Tolerance for rounding between the two bounds.
const ROUNDING: f64 = 1e-9;

/// Returns the optimum if the even split over shortest paths reaches the upper bound, else `None`.
pub(super) fn tight(graph: &Graph, demands: &[Demand]) -> Option<Optimum> {
    let (unit_loads, travelled) = split_evenly(graph, demands)?;
    let capacity = |index: usize| graph.links()[index / 2].rate.as_bps() as f64;
    let loaded = unit_loads.iter().enumerate().filter(|(_, load)| **load > 0.0);
    let reached = loaded.map(|(index, load)| capacity(index) / load).fold(f64::INFINITY, f64::min);
    let all: f64 = graph.working_links().map(|link| 2.0 * graph.link(link).rate.as_bps() as f64).sum();
    let bound = (all / travelled).min(ends_bound(graph, demands));
    (reached >= bound * (1.0 - ROUNDING)).then(|| Optimum {
        objective: reached,
        rates_bps: demands.iter().map(|demand| demand.rate.as_bps() as f64 * reached).collect(),
        loads_bps: unit_loads.iter().map(|load| load * reached).collect(),
        method: Method::Bounds,
    })
}

/// Returns the load of each channel when every demand is met once, split over its shortest paths as
/// in `topology`. Also returns the sum over demands of bits a second times hops. `None` if a demand
/// has no path.
fn split_evenly(graph: &Graph, demands: &[Demand]) -> Option<(Vec<f64>, f64)> {
    let mut by_target: BTreeMap<VertexId, Vec<&Demand>> = BTreeMap::new();
    demands.iter().for_each(|demand| by_target.entry(demand.to).or_default().push(demand));
    let mut loads = vec![0.0; graph.channel_count()];
    let mut travelled = 0.0;
    for (target, demands) in by_target {
        let toward = graph.distances_from(target);
        let mut waiting = vec![0.0; graph.vertices().len()];
        for demand in demands {
            let rate = demand.rate.as_bps() as f64;
            waiting[demand.from.index()] += rate;
            travelled += rate * f64::from(toward.to(demand.from)?);
        }
        flow_down(graph, &toward, waiting, &mut loads);
    }
    Some((loads, travelled))
}

/// Distributes flow from the farthest vertices on: each splits its flow among its hops in
/// proportion to their numbers of shortest paths.
fn flow_down(graph: &Graph, toward: &Distances, mut waiting: Vec<f64>, loads: &mut [f64]) {
    let mut order: Vec<(u32, VertexId)> =
        graph.vertex_ids().filter_map(|vertex| Some((toward.to(vertex)?, vertex))).collect();
    order.sort_unstable();
    let mut paths = vec![0.0; graph.vertices().len()];
    paths[toward.from().index()] = 1.0;
    for (_, vertex) in &order[1..] {
        paths[vertex.index()] = graph.minimal_hops(*vertex, toward).map(|hop| paths[hop.to.index()]).sum();
    }
    for (_, vertex) in order[1..].iter().rev() {
        let through = waiting[vertex.index()];
        if through == 0.0 {
            continue;
        }
        for hop in graph.minimal_hops(*vertex, toward) {
            let share = through * paths[hop.to.index()] / paths[vertex.index()];
            loads[hop.channel.index()] += share;
            waiting[hop.to.index()] += share;
        }
    }
}

/// Returns the bound from the ends: a vertex cannot send or receive more than its links carry.
fn ends_bound(graph: &Graph, demands: &[Demand]) -> f64 {
    let mut asked = BTreeMap::<(VertexId, bool), f64>::new();
    for demand in demands {
        *asked.entry((demand.from, true)).or_default() += demand.rate.as_bps() as f64;
        *asked.entry((demand.to, false)).or_default() += demand.rate.as_bps() as f64;
    }
    let has = |vertex: VertexId| -> f64 {
        graph.hops(vertex).iter().map(|hop| graph.link(hop.channel.link()).rate.as_bps() as f64).sum()
    };
    asked.into_iter().map(|((vertex, _), asked)| has(vertex) / asked).fold(f64::INFINITY, f64::min)
}
