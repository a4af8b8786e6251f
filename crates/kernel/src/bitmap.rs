//! The set of occupied slots: one bit per slot and one summary bit per word of these.

/// A set of small integers with a fast successor search.
pub(crate) struct Bitmap {
    words: Vec<u64>,
    /// Bit `w` is set if `words[w]` is not zero.
    summary: Vec<u64>,
}

impl Bitmap {
    /// Creates the empty set over `0..bits`.
    pub(crate) fn new(bits: usize) -> Self {
        let words = bits.div_ceil(64);
        Bitmap { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }
    #[inline]
    pub(crate) fn insert(&mut self, bit: usize) {
        let word = bit / 64;
        self.words[word] |= 1 << (bit % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }
    #[inline]
    pub(crate) fn remove(&mut self, bit: usize) {
        let word = bit / 64;
        self.words[word] &= !(1 << (bit % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }
    /// Returns the first member at or after `from`, which must be below the number of bits.
    #[inline]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        match self.words[word] & (u64::MAX << (from % 64)) {
            0 => self.next_after_word(word),
            rest => Some(word * 64 + rest.trailing_zeros() as usize),
        }
    }
    fn next_after_word(&self, word: usize) -> Option<usize> {
        let group = word / 64;
        let later_in_group = self.summary[group] & u64::MAX.checked_shl(word as u32 % 64 + 1).unwrap_or(0);
        let word = match later_in_group {
            0 => first_in(&self.summary, group + 1)?,
            rest => group * 64 + rest.trailing_zeros() as usize,
        };
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.summary.fill(0);
    }
}

fn first_in(words: &[u64], from: usize) -> Option<usize> {
    let skipped = words[from..].iter().position(|word| *word != 0)?;
    let word = from + skipped;
    Some(word * 64 + words[word].trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Returns every member, in order.
    fn members(bitmap: &Bitmap) -> impl Iterator<Item = usize> + '_ {
        let bits = bitmap.words.len() * 64;
        let after = move |bit: &usize| (bit + 1 < bits).then(|| bitmap.next(bit + 1)).flatten();
        std::iter::successors(bitmap.next(0), after)
    }

    proptest! {
        #[test]
        fn it_holds_and_finds_what_a_set_does(
            bits in 1usize..20_000,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..40),
            from in any::<prop::sample::Index>(),
        ) {
            let (mut bitmap, mut set) = (Bitmap::new(bits), BTreeSet::new());
            for (bit, insert) in changes {
                let bit = bit.index(bits);
                if insert {
                    bitmap.insert(bit);
                    set.insert(bit);
                } else {
                    bitmap.remove(bit);
                    set.remove(&bit);
                }
            }
            let from = from.index(bits);
            prop_assert_eq!(bitmap.next(from), set.range(from..).next().copied());
            prop_assert!(members(&bitmap).eq(set));
        }
    }
}
