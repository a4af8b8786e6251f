//! Choice of the target node.

use crate::config::Pattern;
use base::{NodeId, Seed, Stream};

impl Pattern {
    /// Returns the client nodes among `nodes` nodes, in order of id.
    pub fn asking_nodes(&self, nodes: u32) -> Vec<NodeId> {
        match self {
            Pattern::AllToAll | Pattern::Permutation => (0..nodes).map(NodeId).collect(),
            Pattern::RoleSplit { compute } => (0..*compute).map(NodeId).collect(),
            Pattern::Incast { target, sources } => {
                (0..nodes).map(NodeId).filter(|node| node != target).take(*sources as usize).collect()
            }
        }
    }
}

/// A pattern made ready for drawing.
#[derive(Clone, Debug)]
pub(crate) enum Targets {
    /// Uniform over all nodes but the source.
    Others { nodes: u32 },
    /// Uniform over `count` nodes from `first`.
    Range { first: u32, count: u32 },
    /// Always this one.
    One(NodeId),
    /// One fixed target a node.
    Fixed(Vec<NodeId>),
}

impl Targets {
    pub(crate) fn new(pattern: &Pattern, nodes: u32, seed: Seed) -> Targets {
        match pattern {
            Pattern::AllToAll => Targets::Others { nodes },
            Pattern::RoleSplit { compute } => Targets::Range { first: *compute, count: nodes - compute },
            Pattern::Incast { target, .. } => Targets::One(*target),
            Pattern::Permutation => Targets::Fixed(derangement(nodes, &mut seed.stream("workload/permutation"))),
        }
    }

    /// Returns the next target of `source`; never itself.
    pub(crate) fn draw(&self, source: NodeId, stream: &mut Stream) -> NodeId {
        match self {
            Targets::Others { nodes } => {
                let other = stream.below(u64::from(nodes - 1)) as u32;
                NodeId(other + u32::from(other >= source.0))
            }
            Targets::Range { first, count } => NodeId(first + stream.below(u64::from(*count)) as u32),
            Targets::One(target) => *target,
            Targets::Fixed(targets) => targets[source.index()],
        }
    }
}

/// A permutation without a fixed point, uniform among all of them. At least two nodes.
///
/// Shuffles until none is left in place: about 1 in e shuffles does it. Sattolo's algorithm needs
/// one shuffle but makes only permutations that are a single cycle.
fn derangement(nodes: u32, stream: &mut Stream) -> Vec<NodeId> {
    let mut targets: Vec<NodeId> = (0..nodes).map(NodeId).collect();
    while targets.iter().enumerate().any(|(source, target)| source == target.index()) {
        shuffle(&mut targets, stream);
    }
    targets
}

/// Fisher-Yates, written out because a library's may draw differently in its next version, and
/// results would change.
fn shuffle(targets: &mut [NodeId], stream: &mut Stream) {
    for last in (1..targets.len()).rev() {
        targets.swap(last, stream.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_permutation_leaves_nobody_in_place_and_nobody_out() {
        for nodes in 2..200 {
            for seed in 0..5 {
                let targets = derangement(nodes, &mut Seed(seed).stream("test"));
                assert!(targets.iter().enumerate().all(|(source, target)| source != target.index()), "{targets:?}");
                let mut sorted = targets.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq((0..nodes).map(NodeId)), "{targets:?}");
            }
        }
    }

    #[test]
    fn all_nine_derangements_of_four_are_as_likely() {
        let mut counts: BTreeMap<Vec<NodeId>, u32> = BTreeMap::new();
        let mut stream = Seed(3).stream("test");
        for _ in 0..9_000 {
            *counts.entry(derangement(4, &mut stream)).or_default() += 1;
        }
        assert_eq!(counts.len(), 9);
        assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    /// Number of requests from `source` to each node in 30,000 draws.
    fn counts(pattern: Pattern, nodes: u32, source: u32) -> Vec<u32> {
        let targets = Targets::new(&pattern, nodes, Seed(1));
        let mut stream = Seed(1).stream("test");
        let mut counts = vec![0; nodes as usize];
        for _ in 0..30_000 {
            counts[targets.draw(NodeId(source), &mut stream).index()] += 1;
        }
        counts
    }

    #[test]
    fn targets_are_uniform_and_never_the_source() {
        for source in [0, 2, 3] {
            let counts = counts(Pattern::AllToAll, 4, source);
            for (node, count) in counts.iter().enumerate() {
                let expected = if node == source as usize { 0..1 } else { 9_600..10_400 };
                assert!(expected.contains(count), "{counts:?}");
            }
        }
        let split = counts(Pattern::RoleSplit { compute: 2 }, 5, 1);
        assert_eq!(split[..2], [0, 0]);
        assert!(split[2..].iter().all(|count| (9_600..10_400).contains(count)), "{split:?}");
    }

    #[test]
    fn asking_nodes_are_those_of_the_pattern() {
        let ids = |pattern: Pattern| pattern.asking_nodes(5).iter().map(|node| node.0).collect::<Vec<_>>();
        assert_eq!(ids(Pattern::AllToAll), [0, 1, 2, 3, 4]);
        assert_eq!(ids(Pattern::Permutation), [0, 1, 2, 3, 4]);
        assert_eq!(ids(Pattern::RoleSplit { compute: 2 }), [0, 1]);
        assert_eq!(ids(Pattern::Incast { target: NodeId(1), sources: 3 }), [0, 2, 3]);
        assert_eq!(ids(Pattern::Incast { target: NodeId(4), sources: 4 }), [0, 1, 2, 3]);
    }
}
