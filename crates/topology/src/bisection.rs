//! Bisection bandwidth: the bandwidth that two halves of the nodes have at least, for any division
//! into halves.
//!
//! Finding it is NP-hard in general (Garey, Johnson and Stockmeyer 1976). Kinds with a formula use
//! it. Up to [`ENUMERATED_MAX`] nodes every halving is tried. Beyond that the result is two
//! numbers: the best halving found, and a lower bound of all halvings. For one halving, maximum
//! flow gives the exact least cut over all assignments of the switches.

use crate::graph::{Graph, VertexId};
use crate::partition::Partition;
use base::Rate;

/// Maximum number of nodes for which every halving is tried: 1,716 of them.
pub(crate) const ENUMERATED_MAX: usize = 13;
/// Number of start vertices of the search for a good halving.
const STARTS: usize = 16;
/// Fraction by which the lower bound is reduced, to cover rounding in its sums.
const ROUNDING: f64 = 1e-9;

/// The method that found a bisection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By the kind's formula, [`Config::closed_form`](crate::Config::closed_form).
    ClosedForm,
    /// Exact: the least of this many halvings, which are all.
    Enumerated(u64),
    /// The best of some halvings; the optimum is between `at_least` and `capacity`.
    Searched,
}

/// The bandwidth between the halves of a set of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisection {
    /// The least bandwidth found, in one direction; the other direction has the same.
    pub capacity: Rate,
    /// Number of cut links.
    pub cables: u64,
    /// A lower bound of all halvings. Equal to `capacity` if that is exact.
    pub at_least: Rate,
    /// The method that found it.
    pub method: Method,
    /// One of the halves, the smaller if the number of nodes is odd; empty if a formula gave the
    /// numbers.
    pub half: Vec<VertexId>,
}

impl Graph {
    /// Returns the bisection of [`Graph::nodes`], by formula if the graph is whole and its kind has
    /// one.
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

    /// Returns the bisection of any set of different vertices, without formulas. Traffic may pass
    /// through all forwarding vertices, and through no endpoint outside the set.
    pub fn bisection_of(&self, nodes: &[VertexId]) -> Bisection {
        if nodes.len() <= ENUMERATED_MAX { self.enumerate_halves(nodes) } else { self.search_halves(nodes) }
    }

    fn enumerate_halves(&self, nodes: &[VertexId]) -> Bisection {
        let smaller = nodes.len() / 2;
        // If the number is even, a halving and its mirror image are the same, so the last node is
        // fixed in the other half.
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

    /// Returns a lower bound. Every pair of nodes sends a unit along its shortest paths. A halving
    /// separates a known number of pairs, and no channel exceeds the highest load per rate, so at
    /// least that rate is cut. (Leighton, "Introduction to Parallel Algorithms and Architectures",
    /// 1992, section 1.9, by an embedding of the complete graph.) Disconnected pairs give no bound.
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
