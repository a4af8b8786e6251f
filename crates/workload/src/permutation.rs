//! Every number of a range once, in random order, without a table.

/// Rounds of the network; four make a pseudorandom permutation of a good round function (Luby and
/// Rackoff, 1988).
const ROUNDS: u64 = 4;

/// A keyed permutation of `0..count`: a Feistel network over the next power of four, walked until
/// it lands in the range (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Takes
/// the place of fio's map of blocks, which needs a bit a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    count: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// Of at least one number and at most 2^62.
    pub(crate) fn new(count: u64, key: u64) -> Permutation {
        let bits = u64::BITS - (count.max(2) - 1).leading_zeros();
        Permutation { count, half_bits: bits.div_ceil(2), key }
    }

    /// Returns the image of `index`, which is in the range.
    pub(crate) fn at(&self, index: u64) -> u64 {
        let mut value = self.mixed(index);
        while value >= self.count {
            value = self.mixed(value);
        }
        value
    }

    fn mixed(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (self.hash(round, right) & mask));
        }
        (left << self.half_bits) | right
    }

    fn hash(&self, round: u64, value: u64) -> u64 {
        base::mix((self.key ^ (round << 56)).wrapping_add(value.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once_whatever_the_range_and_the_key() {
        for count in [1, 2, 3, 4, 5, 16, 17, 1000, 4096, 4097] {
            for key in [0, 1, u64::MAX] {
                let permutation = Permutation::new(count, key);
                let mut seen: Vec<u64> = (0..count).map(|index| permutation.at(index)).collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..count), "{count} {key}");
            }
        }
    }

    #[test]
    fn neighbours_are_not_neighbours_any_more_and_another_key_is_another_order() {
        let count = 10_000;
        let (first, second) = (Permutation::new(count, 1), Permutation::new(count, 2));
        let near = (1..count).filter(|index| first.at(*index).abs_diff(first.at(index - 1)) < 100).count();
        // Two numbers of 10,000 are less than 100 apart with a probability of 0.0197.
        assert!((120..280).contains(&near), "{near}");
        let same = (0..count).filter(|index| first.at(*index) == second.at(*index)).count();
        assert!(same < 10, "{same}");
    }
}
