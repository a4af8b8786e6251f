//! A vector of unsigned numbers of a fixed width in bits. Tables of tens of millions of entries are
//! what a drive's model spends its memory on, and a whole machine word for each would be half of it
//! wasted.

/// Numbers of `width` bits each, side by side in machine words. All start as 0.
#[derive(Clone, Debug)]
pub(super) struct PackedVec {
    words: Vec<u64>,
    width: u32,
    len: u64,
}

impl PackedVec {
    /// `len` zeros of `width` bits (1 to 63).
    pub(super) fn zeros(len: u64, width: u32) -> PackedVec {
        assert!((1..64).contains(&width), "a packed number has 1 to 63 bits, not {width}");
        PackedVec { words: vec![0; words_for(len, width)], width, len }
    }
    pub(super) fn len(&self) -> u64 {
        self.len
    }
    pub(super) fn width(&self) -> u32 {
        self.width
    }
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }
    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
    pub(super) fn memory_bytes(&self) -> u64 {
        self.words.capacity() as u64 * 8
    }
    /// The number at `index`, which must be below the length.
    #[inline]
    pub(super) fn get(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let (word, shift) = self.place(index);
        let pair = u128::from(self.words[word]) | u128::from(self.words[word + 1]) << 64;
        (pair >> shift) as u64 & self.mask()
    }
    /// Replaces the number at `index`; `value` must fit the width.
    #[inline]
    pub(super) fn set(&mut self, index: u64, value: u64) {
        debug_assert!(index < self.len && value <= self.mask());
        let (word, shift) = self.place(index);
        self.words[word] = self.words[word] & !(self.mask() << shift) | value << shift;
        if shift + self.width > 64 {
            let kept = !(self.mask() >> (64 - shift));
            self.words[word + 1] = self.words[word + 1] & kept | value >> (64 - shift);
        }
    }
    /// Returns the first position of `value` in `from..to`, both clipped to the length.
    #[inline]
    pub(super) fn position(&self, from: u64, to: u64, value: u64) -> Option<u64> {
        (from..to.min(self.len)).find(|index| self.get(*index) == value)
    }
    /// Reads one word of each cache line that holds `from..to`, so that the lines of several places
    /// are fetched concurrently.
    #[inline]
    pub(super) fn touch(&self, from: u64, to: u64) -> u64 {
        let (first, _) = self.place(from.min(self.len));
        let (last, _) = self.place(to.min(self.len));
        let inner = (first..last).step_by(8).fold(0, |sum, word| sum ^ self.words[word]);
        inner ^ self.words[last]
    }
    /// Makes the vector longer, with zeros.
    pub(super) fn grow(&mut self, len: u64) {
        let words = words_for(len, self.width);
        self.words.reserve_exact(words.saturating_sub(self.words.len()));
        self.words.resize(words.max(self.words.len()), 0);
        self.len = len.max(self.len);
    }
    /// The same numbers with at least `width` bits each.
    pub(super) fn widen(&mut self, width: u32) {
        if width <= self.width {
            return;
        }
        let mut wide = PackedVec::zeros(self.len, width);
        (0..self.len).for_each(|index| wide.set(index, self.get(index)));
        *self = wide;
    }

    #[inline]
    fn place(&self, index: u64) -> (usize, u32) {
        let bit = index * u64::from(self.width);
        ((bit >> 6) as usize, (bit & 63) as u32)
    }
    #[inline]
    fn mask(&self) -> u64 {
        (1 << self.width) - 1
    }
}

/// Words for `len` numbers, and one more so that the last number can be read as a pair of words.
pub(super) fn words_for(len: u64, width: u32) -> usize {
    (len * u64::from(width)).div_ceil(64) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_numbers_are_those_that_were_put_in(
            width in 1u32..64,
            writes in prop::collection::vec((0u64..200, any::<u64>()), 0..300),
            wider in 0u32..64,
        ) {
            let mut packed = PackedVec::zeros(200, width);
            let mut plain = vec![0u64; 200];
            for (index, value) in writes {
                let value = value & ((1 << width) - 1);
                packed.set(index, value);
                plain[index as usize] = value;
            }
            packed.widen(wider);
            packed.grow(300);
            plain.resize(300, 0);
            prop_assert_eq!((0..300).map(|index| packed.get(index)).collect::<Vec<_>>(), plain);
        }
    }
}
