//! Bisection bandwidth: what two halves of the nodes can at least send each other, however the
//! network is halved.
//!
//! To find it is NP-hard in general (Garey, Johnson and Stockmeyer 1976). Kinds with a formula use
//! it. Up to [`ENUMERATED_MAX`] nodes every halving is tried. Beyond that the answer is two
//! numbers: the best halving that was found, and a bound below which no halving can be. For one
//! halving the least cut over all places for the switches is exact, by maximum flow.

use crate::graph::{Graph, VertexId};
use crate::partition::Partition;
use base::Rate;

/// The most nodes for which every halving is tried: 1,716 of them.
pub(crate) const ENUMERATED_MAX: usize = 13;
/// From how many different vertices the search for a good halving sets out.
const STARTS: usize = 16;
/// The part that the lower bound gives away to rounding in its sums of fractions.
const ROUNDING: f64 = 1e-9;

/// How a bisection was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By the kind's formula, [`Config::closed_form`](crate::Config::closed_form).
    ClosedForm,
    /// Exact: the least of this many halvings, which are all.
    Enumerated(u64),
    /// The best of some; the truth lies between `at_least` and `capacity`.
    Searched,
}

/// The bandwidth between the halves of a set of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisection {
    /// The least that was found, in one direction; the other has the same.
    pub capacity: Rate,
    /// Number of cut links.
    pub cables: u64,
    /// No halving has less. The same as `capacity` when that is exact.
    pub at_least: Rate,
    /// How it was found.
    pub method: Method,
    /// One of the halves, the smaller when the number of nodes is odd; empty when a formula gave
    /// the numbers.
    pub half: Vec<VertexId>,
}

impl Graph {
    /// The bisection of [`Graph::nodes`], by formula where the graph is whole and its kind has one.
    pub fn bisection(&self) -> Bisection {
        let closed = self.config.as_ref().filter(|_| self.is_whole());
        let cables = closed.and_then(|config| Some((config.closed_form().bisection_cables?, config.cabling.rate)));
        match cables {
            Some((cables, rate)) => {
                let capacity = Rate::bps(rate.as_bps() * cables);
                Bisection { capacity, cables, at_least: capacity, method: Method::ClosedForm, half: Vec::new() }
            }
            None => self.bisection_of(&self.nodes()),
        }
    }

    /// The bisection of any set of different vertices, without formulas. Traffic may pass all
    /// vertices that forward, and no endpoint outside the set.
    pub fn bisection_of(&self, nodes: &[VertexId]) -> Bisection {
        if nodes.len() <= ENUMERATED_MAX { self.enumerate_halves(nodes) } else { self.search_halves(nodes) }
    }

    fn enumerate_halves(&self, nodes: &[VertexId]) -> Bisection {
        let smaller = nodes.len() / 2;
        // With an even number, a halving and its mirror image are the same: the last node is in the
        // other half.
        let free = if nodes.len().is_multiple_of(2) { nodes.len().saturating_sub(1) } else { nodes.len() };
        let choices = (0u32..1 << free).filter(|chosen| chosen.count_ones() as usize == smaller);
        let mut tried = 0;
        let mut best: Option<(u64, u32)> = None;
        for chosen in choices {
            tried += 1;
            let bps = self.minimum_cut(&self.sides(nodes, |index| chosen >> index & 1 == 1)).capacity_bps;
            if best.is_none_or(|(least, _)| bps < least) {
                best = Some((bps, chosen));
            }
        }
        let (_, chosen) = best.expect("there is always one halving, if only of nothing");
        let found = self.halved(nodes, |index| chosen >> index & 1 == 1);
        Bisection { at_least: found.capacity, method: Method::Enumerated(tried), ..found }
    }

    fn search_halves(&self, nodes: &[VertexId]) -> Bisection {
        let step = nodes.len().div_ceil(STARTS);
        let searched = nodes.iter().step_by(step).map(|start| Partition::search(self, nodes, *start));
        let mut best = searched.min_by_key(Partition::cut_bps).expect("more than a few nodes give a start");
        best.make_first_half_smaller();
        let found = self.halved(nodes, |index| best.is_first(nodes[index]));
        Bisection { at_least: self.bisection_bound(nodes).min(found.capacity), ..found }
    }

    /// Every pair of nodes sends a unit along its shortest paths. A halving parts a known number of
    /// pairs, and no channel has more than the highest load for its rate: so much rate must be cut
    /// (Leighton, "Introduction to Parallel Algorithms and Architectures", 1992, section 1.9, by an
    /// embedding of the complete graph). Pairs that are not joined give no bound.
    fn bisection_bound(&self, nodes: &[VertexId]) -> Rate {
        if !self.joins(nodes) {
            return Rate::bps(0);
        }
        let loads = self.channel_loads(nodes);
        let per_bps = self.working_links().flat_map(|link| {
            let bps = self.link(link).rate.as_bps() as f64;
            [loads[link.forward().index()] / bps, loads[link.backward().index()] / bps]
        });
        let highest = per_bps.fold(0.0, f64::max);
        let parted = (nodes.len() / 2) as f64 * nodes.len().div_ceil(2) as f64;
        Rate::bps((parted / highest * (1.0 - ROUNDING)).floor() as u64)
    }

    fn sides(&self, nodes: &[VertexId], is_first: impl Fn(usize) -> bool) -> Vec<Option<bool>> {
        let mut sides = vec![None; self.vertices.len()];
        for (index, node) in nodes.iter().enumerate() {
            sides[node.index()] = Some(is_first(index));
        }
        sides
    }

    fn halved(&self, nodes: &[VertexId], is_first: impl Fn(usize) -> bool) -> Bisection {
        let cut = self.minimum_cut(&self.sides(nodes, &is_first));
        let half = (0..nodes.len()).filter(|index| is_first(*index)).map(|index| nodes[index]).collect();
        let capacity = Rate::bps(cut.capacity_bps);
        Bisection { capacity, cables: cut.links, at_least: capacity, method: Method::Searched, half }
    }
}
