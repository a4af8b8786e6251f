//! The smallest of many small numbers, exactly, while they change all the time: a tree in which
//! each node is the minimum of 64 below it.
//!
//! Rejected: lists of blocks by valid count, where each overwrite unlinks a block and so touches
//! three more cache lines; here it touches the number itself and, nearly always, one node that
//! stays in the first cache.

const FAN_OUT_BITS: u32 = 6;
const FAN_OUT: usize = 1 << FAN_OUT_BITS;

/// Numbers by index, and the minima above them.
#[derive(Clone, Debug)]
pub(super) struct MinTree {
    /// The numbers, then the minima of 64 numbers each, and so on until a level has at most 64.
    levels: Vec<Vec<u32>>,
}

impl MinTree {
    /// `len` numbers, all the largest.
    pub(super) fn new(len: usize) -> MinTree {
        let mut tree = MinTree { levels: vec![Vec::new()] };
        tree.grow(len);
        tree
    }
    /// Makes it longer, with largest numbers.
    pub(super) fn grow(&mut self, len: usize) {
        let mut len = len;
        let mut level = 0;
        while level < self.levels.len() || len > FAN_OUT {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            if level > 0 {
                len = len.div_ceil(FAN_OUT);
            }
            self.resize_level(level, len);
            level += 1;
        }
    }
    #[inline]
    pub(super) fn get(&self, index: u32) -> u32 {
        self.levels[0][index as usize]
    }
    /// Replaces a number by a smaller one.
    #[inline]
    pub(super) fn lower(&mut self, index: u32, value: u32) {
        let mut index = index as usize;
        for level in &mut self.levels {
            if level[index] <= value {
                break;
            }
            level[index] = value;
            index >>= FAN_OUT_BITS;
        }
    }
    /// Replaces a number by any other.
    pub(super) fn set(&mut self, index: u32, value: u32) {
        let mut index = index as usize;
        self.levels[0][index] = value;
        for level in 1..self.levels.len() {
            index >>= FAN_OUT_BITS;
            self.levels[level][index] = self.minimum_below(level, index);
        }
    }
    /// Replaces a number without updating minima: only for numbers that before and after exceed
    /// every limit passed to [`lowest`](Self::lowest).
    #[inline]
    pub(super) fn set_hidden(&mut self, index: u32, value: u32) {
        self.levels[0][index as usize] = value;
    }
    /// The smallest number in `from..to` and the first place that has it, if it is below `limit`.
    pub(super) fn lowest(&self, from: u32, to: u32, limit: u32) -> Option<(u32, u32)> {
        let (mut index, to) = (from as usize, to as usize);
        let mut best: Option<(usize, usize)> = None;
        let mut lowest = limit;
        while index < to {
            let level = self.level_within(index, to);
            let value = self.levels[level][index >> (FAN_OUT_BITS as usize * level)];
            if value < lowest {
                lowest = value;
                best = Some((level, index));
            }
            index += 1 << (FAN_OUT_BITS as usize * level);
        }
        best.map(|(level, index)| (lowest, self.first_below(level, index, lowest)))
    }
    pub(super) fn len(&self) -> usize {
        self.levels[0].len()
    }
    pub(super) fn memory_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.capacity() as u64 * 4).sum()
    }

    /// A level that gets longer has nodes that covered fewer numbers; new numbers are the largest,
    /// so no minimum changes, save on a new level.
    fn resize_level(&mut self, level: usize, len: usize) {
        let had = self.levels[level].len();
        if len > had {
            self.levels[level].reserve_exact(len - had);
            self.levels[level].resize(len, u32::MAX);
        }
        if level > 0 && had == 0 {
            (0..len).for_each(|index| self.levels[level][index] = self.minimum_below(level, index));
        }
    }
    fn minimum_below(&self, level: usize, index: usize) -> u32 {
        let below = &self.levels[level - 1];
        let start = index << FAN_OUT_BITS;
        below[start..below.len().min(start + FAN_OUT)].iter().copied().min().unwrap_or(u32::MAX)
    }
    /// The highest level that has a node of `index` onward that ends by `to`.
    fn level_within(&self, index: usize, to: usize) -> usize {
        let fits = |level: usize| {
            let span = 1usize << (FAN_OUT_BITS as usize * level);
            index.is_multiple_of(span) && index + span <= to
        };
        (1..self.levels.len()).take_while(|level| fits(*level)).last().unwrap_or(0)
    }
    fn first_below(&self, level: usize, index: usize, value: u32) -> u32 {
        let mut index = index >> (FAN_OUT_BITS as usize * level);
        for level in (0..level).rev() {
            index <<= FAN_OUT_BITS;
            while self.levels[level][index] != value {
                index += 1;
            }
        }
        index as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_lowest_of_a_range_is_the_first_of_its_smallest_numbers(
            len in 1usize..9_000,
            grown in 0usize..300,
            changes in prop::collection::vec((any::<u32>(), 0u32..50), 0..200),
            ranges in prop::collection::vec((any::<u32>(), any::<u32>(), 0u32..60), 1..20),
        ) {
            let mut tree = MinTree::new(len);
            let mut plain = vec![u32::MAX; len + grown];
            for (count, (index, value)) in changes.iter().enumerate() {
                if count == 100 {
                    tree.grow(len + grown);
                }
                let index = index % tree.len() as u32;
                if *value < plain[index as usize] && count % 2 == 0 {
                    tree.lower(index, *value);
                } else {
                    tree.set(index, *value);
                }
                plain[index as usize] = *value;
            }
            tree.grow(len + grown);
            for (one, other, limit) in ranges {
                let (one, other) = (one % (plain.len() as u32 + 1), other % (plain.len() as u32 + 1));
                let (from, to) = (one.min(other), one.max(other));
                let expected = (from..to).map(|index| (plain[index as usize], index)).min().filter(|(value, _)| *value < limit);
                prop_assert_eq!(tree.lowest(from, to, limit), expected);
            }
        }
    }
}
