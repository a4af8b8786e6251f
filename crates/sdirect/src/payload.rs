//! Data in flight: real bytes in the live engine and in tests, only sizes in the simulator.

/// Some bytes in a row.
pub trait Payload: Clone {
    /// Length in bytes.
    fn size(&self) -> u32;
    /// `bytes` of them from `from` on; both are within.
    fn part(&self, from: u32, bytes: u32) -> Self;
    /// Puts more bytes behind these.
    fn append(&mut self, more: &Self);
    /// The 64-bit little-endian word at `at`, all of which is within.
    fn word(&self, at: u32) -> u64;
    /// The same with another word at `at`.
    fn with_word(&self, at: u32, word: u64) -> Self;
}

/// Data without contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u32);

impl Payload for Size {
    fn size(&self) -> u32 {
        self.0
    }
    fn part(&self, _: u32, bytes: u32) -> Size {
        Size(bytes)
    }
    fn append(&mut self, more: &Size) {
        self.0 += more.0;
    }
    fn word(&self, _: u32) -> u64 {
        0
    }
    fn with_word(&self, _: u32, _: u64) -> Size {
        *self
    }
}

impl Payload for Vec<u8> {
    fn size(&self) -> u32 {
        self.len() as u32
    }
    fn part(&self, from: u32, bytes: u32) -> Vec<u8> {
        self[from as usize..(from + bytes) as usize].to_vec()
    }
    fn append(&mut self, more: &Vec<u8>) {
        self.extend_from_slice(more);
    }
    fn word(&self, at: u32) -> u64 {
        let bytes = &self[at as usize..at as usize + 8];
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
    fn with_word(&self, at: u32, word: u64) -> Vec<u8> {
        let mut changed = self.clone();
        changed[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_little_endian_and_lies_where_it_was_put() {
        let data = vec![0u8; 24].with_word(8, 0x0102_0304_0506_0708);
        assert_eq!(data[8..16], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!((data.word(8), data.word(0), data.word(16)), (0x0102_0304_0506_0708, 0, 0));
        assert_eq!(data.part(8, 8).word(0), data.word(8));
    }
}
