//! A nearly optimal concurrent flow with a bound on its gap, for networks that take the solver too
//! long.
//!
//! The search routes all demands once and then relieves the busiest channel. The length of a
//! channel follows from its load, by the exponential lengths of Shahrokhi and Matula (Journal of
//! the ACM 37, 1990). Each demand in turn adds its current shortest path to its paths. It moves
//! flow there from its longer paths, by the amount of a Newton step. This is gradient projection,
//! as in traffic assignment on roads (Jayakrishnan and others, Transportation Research Record 1443,
//! 1994).
//!
//! By the duality of linear programs, any lengths give a bound. No factor exceeds the sum over
//! channels of capacity times length, divided by the sum over demands of rate times distance. The
//! gap is between that bound and the best flow found.

use super::program::Network;
use super::{Demand, Method, Optimum, OracleError};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use topology::{Graph, VertexId};

/// The gap at which the search stops.
const GAP: f64 = 0.01;
/// Maximum number of demands: 512 hosts with 512 targets each, and about a gigabyte of paths.
const DEMANDS_MAX: usize = 300_000;
/// Budget of all rounds, in commodities times channels; at least [`ROUNDS_MIN`] rounds are made.
/// Our choice: about half a minute.
const LOOKED_AT_MAX: usize = 120_000_000;
const ROUNDS_MIN: usize = 30;
const ROUNDS_MAX: usize = 1_000;
/// Flow up to this fraction of its demand is dropped.
const NOTHING: f64 = 1e-9;

pub(super) fn concurrent(graph: &Graph, demands: &[Demand]) -> Result<Optimum, OracleError> {
    let network = Network::grouped(graph, demands)?;
    let (commodities, channels) = (network.commodities.len(), graph.channel_count());
    let entries = commodities.saturating_mul(channels);
    if demands.len() > DEMANDS_MAX {
        return Err(OracleError::TooLarge { unknowns: entries, commodities, channels });
    }
    let mut search = Search::new(&network);
    let rounds_max = (LOOKED_AT_MAX / entries.max(1)).clamp(ROUNDS_MIN, ROUNDS_MAX);
    let mut rounds = 0;
    while rounds < rounds_max && search.gap() > GAP {
        search.round();
        rounds += 1;
    }
    Ok(search.optimum(demands, rounds as u32))
}

/// A path of a demand, and its flow in bits a second when every demand is met once.
struct Taken {
    channels: Box<[u32]>,
    bps: f64,
}

/// A demand at the end opposite its root.
struct Leaf {
    vertex: VertexId,
    bps: f64,
    paths: Vec<Taken>,
}

/// Shortest paths from a root.
struct Tree {
    distances: Vec<f64>,
    /// By vertex: the channel that reaches it, and the vertex before it.
    by: Vec<Option<(u32, VertexId)>>,
}

struct Search {
    /// By channel, bits a second; 0 for a failed one.
    capacity: Vec<f64>,
    /// By vertex: its channels and their far ends, in the direction in which commodities are
    /// followed.
    out: Vec<Vec<(u32, VertexId)>>,
    forwards: Vec<bool>,
    commodities: Vec<(VertexId, Vec<Leaf>)>,
    /// By channel: the used fraction of its capacity when every demand is met once.
    loads: Vec<f64>,
    /// By channel: its length per bit a second.
    lengths: Vec<f64>,
    /// The growth of lengths with loads, and the load at which a channel's length is the inverse of
    /// its capacity.
    sharpness: f64,
    busiest: f64,
    /// The least load of the busiest channel so far, and all loads of that state.
    best: (f64, Vec<f64>),
    /// A lower bound on the load of the busiest channel.
    bound: f64,
}

impl Search {
    fn new(network: &Network<'_>) -> Search {
        let (graph, demands) = (network.graph, network.demands);
        let rate = |demand: usize| demands[demand].rate.as_bps() as f64;
        let mut out = vec![Vec::new(); graph.vertices().len()];
        let mut capacity = vec![0.0; graph.channel_count()];
        for (channel, from, to) in network.channels() {
            out[from.index()].push((channel.0, to));
            capacity[channel.index()] = graph.link(channel.link()).rate.as_bps() as f64;
        }
        let leaf =
            |(demand, vertex): &(usize, VertexId)| Leaf { vertex: *vertex, bps: rate(*demand), paths: Vec::new() };
        let leaves = |all: &Vec<(usize, VertexId)>| all.iter().map(leaf).collect();
        let commodities = network.commodities.iter().map(|(root, all)| (*root, leaves(all))).collect();
        let mut search = Search {
            forwards: graph.vertex_ids().map(|vertex| graph.vertex(vertex).kind.forwards()).collect(),
            loads: vec![0.0; capacity.len()],
            lengths: vec![0.0; capacity.len()],
            best: (f64::INFINITY, Vec::new()),
            bound: 0.0,
            sharpness: 0.0,
            busiest: 0.0,
            capacity,
            out,
            commodities,
        };
        search.measure(0.0);
        search.pass();
        search.add_up();
        search
    }

    /// Returns the largest possible improvement of the best flow, as a fraction of it.
    fn gap(&self) -> f64 {
        if self.bound > 0.0 { (self.best.0 / self.bound - 1.0).max(0.0) } else { f64::INFINITY }
    }

    /// Recomputes the loads, which avoids accumulated rounding, and keeps them if they are the
    /// best.
    fn add_up(&mut self) {
        let Search { loads, commodities, capacity, .. } = self;
        loads.fill(0.0);
        for path in commodities.iter().flat_map(|(_, leaves)| leaves).flat_map(|leaf| &leaf.paths) {
            path.channels.iter().for_each(|channel| loads[*channel as usize] += path.bps / capacity[*channel as usize]);
        }
        let busiest = loads.iter().copied().fold(0.0, f64::max);
        if busiest < self.best.0 {
            self.best = (busiest, self.loads.clone());
        }
    }

    /// Computes the lengths for the present loads.
    fn measure(&mut self, sharpness: f64) {
        (self.sharpness, self.busiest) = (sharpness, self.loads.iter().copied().fold(0.0, f64::max));
        (0..self.loads.len()).for_each(|channel| self.lengthen(channel));
    }

    fn lengthen(&mut self, channel: usize) {
        let over = (self.loads[channel] - self.busiest) * self.sharpness;
        self.lengths[channel] = over.min(600.0).exp() / self.capacity[channel];
    }

    fn round(&mut self) {
        // Chosen so that channels other than the busiest account for about half of the gap.
        let busiest = self.loads.iter().copied().fold(0.0, f64::max);
        let sharpness = 2.0 * (self.capacity.len() as f64).ln() / (busiest * self.gap().clamp(GAP / 2.0, 0.5));
        self.measure(sharpness);
        let distance: f64 = (0..self.commodities.len()).map(|index| self.distance(index)).sum();
        let working = self.lengths.iter().zip(&self.capacity).filter(|(_, capacity)| **capacity > 0.0);
        let capacity: f64 = working.map(|(length, capacity)| length * capacity).sum();
        self.bound = self.bound.max(distance / capacity);
        self.pass();
        self.add_up();
    }

    /// Returns the sum of rates times distances of a commodity.
    fn distance(&self, index: usize) -> f64 {
        let (root, leaves) = &self.commodities[index];
        let tree = self.tree(*root);
        leaves.iter().map(|leaf| leaf.bps * tree.distances[leaf.vertex.index()]).sum()
    }

    /// For every demand, adds its current shortest path to its paths and moves flow there.
    fn pass(&mut self) {
        for index in 0..self.commodities.len() {
            let tree = self.tree(self.commodities[index].0);
            let mut leaves = std::mem::take(&mut self.commodities[index].1);
            leaves.iter_mut().for_each(|leaf| self.relieve(leaf, &tree));
            self.commodities[index].1 = leaves;
        }
    }

    fn relieve(&mut self, leaf: &mut Leaf, tree: &Tree) {
        let channels = tree.path(leaf.vertex);
        if !leaf.paths.iter().any(|path| path.channels == channels) {
            // The first path takes the whole demand.
            let bps = if leaf.paths.is_empty() { leaf.bps } else { 0.0 };
            self.load(&channels, bps);
            leaf.paths.push(Taken { channels, bps });
        }
        let length = |path: &Taken| path.channels.iter().map(|channel| self.lengths[*channel as usize]).sum::<f64>();
        let lengths: Vec<f64> = leaf.paths.iter().map(length).collect();
        let shortest = (0..lengths.len()).min_by(|one, other| lengths[*one].total_cmp(&lengths[*other])).unwrap_or(0);
        for path in 0..leaf.paths.len() {
            if path != shortest && leaf.paths[path].bps > 0.0 {
                self.shift(leaf, path, shortest);
            }
        }
        leaf.paths.retain(|path| path.bps > leaf.bps * NOTHING);
    }

    /// Moves flow from a path to a shorter one: a Newton step, at most all of it.
    fn shift(&mut self, leaf: &mut Leaf, from: usize, to: usize) {
        let (mut longer, mut bend) = (0.0, 0.0);
        let [long, short] = [from, to].map(|path| &leaf.paths[path].channels);
        for (path, other, sign) in [(long, short, 1.0), (short, long, -1.0)] {
            for channel in path.iter().filter(|channel| !other.contains(channel)).map(|channel| *channel as usize) {
                longer += sign * self.lengths[channel];
                bend += self.lengths[channel] * self.sharpness / self.capacity[channel];
            }
        }
        let moved = if bend > 0.0 { (longer / bend).clamp(0.0, leaf.paths[from].bps) } else { 0.0 };
        for (path, change) in [(from, -moved), (to, moved)] {
            leaf.paths[path].bps += change;
            self.load(&leaf.paths[path].channels, change);
        }
    }

    fn load(&mut self, channels: &[u32], bps: f64) {
        for channel in channels.iter().map(|channel| *channel as usize) {
            self.loads[channel] += bps / self.capacity[channel];
            self.lengthen(channel);
        }
    }

    /// Dijkstra's algorithm.
    fn tree(&self, root: VertexId) -> Tree {
        let vertices = self.out.len();
        let mut tree = Tree { distances: vec![f64::INFINITY; vertices], by: vec![None; vertices] };
        tree.distances[root.index()] = 0.0;
        // The bits of nonnegative floats have the order of their values.
        let mut due = BinaryHeap::from([Reverse((0_u64, root))]);
        while let Some(Reverse((bits, vertex))) = due.pop() {
            let here = tree.distances[vertex.index()];
            if bits != here.to_bits() || vertex != root && !self.forwards[vertex.index()] {
                continue;
            }
            for (channel, to) in &self.out[vertex.index()] {
                let distance = here + self.lengths[*channel as usize];
                if distance < tree.distances[to.index()] {
                    (tree.distances[to.index()], tree.by[to.index()]) = (distance, Some((*channel, vertex)));
                    due.push(Reverse((distance.to_bits(), *to)));
                }
            }
        }
        tree
    }

    fn optimum(self, demands: &[Demand], rounds: u32) -> Optimum {
        let gap = self.gap();
        let (busiest, loads) = self.best;
        let objective = 1.0 / busiest;
        Optimum {
            objective,
            rates_bps: demands.iter().map(|demand| demand.rate.as_bps() as f64 * objective).collect(),
            loads_bps: loads.iter().zip(&self.capacity).map(|(load, capacity)| load * capacity * objective).collect(),
            method: Method::Approximated { rounds, gap },
        }
    }
}

impl Tree {
    /// Returns the channels of the path to a vertex, starting there.
    fn path(&self, to: VertexId) -> Box<[u32]> {
        let step = |at: &VertexId| self.by[at.index()];
        let steps = std::iter::successors(step(&to), |(_, at)| step(at));
        steps.map(|(channel, _)| channel).collect()
    }
}
