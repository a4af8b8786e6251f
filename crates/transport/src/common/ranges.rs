//! The received bytes of a message or stream.

use std::collections::VecDeque;

/// A set of byte offsets, stored as disjoint, nonadjacent ranges in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// `[start, end)`, ascending. In-order arrival keeps this at one entry.
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    /// Creates the empty set.
    pub fn new() -> Ranges {
        Ranges::default()
    }
    /// Adds `[start, end)` and returns the number of new bytes.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let first = self.first_reaching(start);
        let last = self.past_touching(first, end);
        if first == last {
            self.ranges.insert(first, (start, end));
            return end - start;
        }
        let known: u64 = self.ranges.range(first..last).map(|range| overlap(*range, start, end)).sum();
        let merged = (self.ranges[first].0.min(start), self.ranges[last - 1].1.max(end));
        self.ranges[first] = merged;
        if last - first > 1 {
            self.ranges.drain(first + 1..last);
        }
        end - start - known
    }
    /// Returns whether every byte of `[start, end)` is in the set.
    pub fn contains(&self, start: u64, end: u64) -> bool {
        start >= end
            || self.ranges.get(self.first_reaching(start)).is_some_and(|range| range.0 <= start && end <= range.1)
    }
    /// Returns the end of the range that contains or touches `from`, or `from`: everything between
    /// is in the set.
    pub fn contiguous_from(&self, from: u64) -> u64 {
        match self.ranges.get(self.first_reaching(from)) {
            Some(range) if range.0 <= from => range.1,
            _ => from,
        }
    }
    /// Removes every byte below `offset`.
    pub fn forget_below(&mut self, offset: u64) {
        while self.ranges.front().is_some_and(|range| range.1 <= offset) {
            self.ranges.pop_front();
        }
        if let Some(range) = self.ranges.front_mut() {
            range.0 = range.0.max(offset);
        }
    }
    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    /// Removes everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
    /// Returns the ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    /// Returns the index of the first range that ends at or after `offset`: it touches or follows
    /// it.
    fn first_reaching(&self, offset: u64) -> usize {
        self.ranges.partition_point(|range| range.1 < offset)
    }
    /// Returns the index behind the last range, from `first` on, that starts at or before `end`.
    fn past_touching(&self, first: usize, end: u64) -> usize {
        first + self.ranges.range(first..).take_while(|range| range.0 <= end).count()
    }
}

fn overlap(range: (u64, u64), start: u64, end: u64) -> u64 {
    range.1.min(end).saturating_sub(range.0.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hole_closes_and_touching_ranges_become_one() {
        let mut ranges = Ranges::new();
        assert_eq!(ranges.insert(0, 10), 10);
        assert_eq!(ranges.insert(20, 30), 10);
        assert!(!ranges.contains(5, 25));
        assert_eq!(ranges.contiguous_from(0), 10);
        assert_eq!(ranges.insert(5, 20), 10);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(0, 30)]);
        assert_eq!(ranges.insert(0, 30), 0);
        ranges.forget_below(12);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(12, 30)]);
    }

    proptest! {
        #[test]
        fn it_counts_each_byte_once_like_a_plain_set(pieces in proptest::collection::vec((0u64..200, 0u64..40), 1..40)) {
            let mut ranges = Ranges::new();
            let mut plain = std::collections::BTreeSet::new();
            for (start, length) in pieces {
                let new = (start..start + length).filter(|byte| plain.insert(*byte)).count() as u64;
                prop_assert_eq!(ranges.insert(start, start + length), new);
                let listed: Vec<u64> = ranges.iter().flat_map(|(from, to)| from..to).collect();
                prop_assert_eq!(listed, plain.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(left, right)| left.1 < right.0));
            }
        }
    }
}
