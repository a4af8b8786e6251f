//! Fields packed from the least significant bit up, the order in which a block's payload is
//! transmitted.

/// Puts fields side by side into one word.
#[derive(Default)]
pub(super) struct Packer {
    word: u64,
    used: u32,
}

impl Packer {
    /// Appends the low `width` bits of `value`; the caller has checked that it has no others.
    pub(super) fn put(mut self, value: u64, width: u32) -> Self {
        debug_assert!(value >> width == 0 && self.used + width <= u64::BITS, "field of {width} bits holds {value:#x}");
        self.word |= value << self.used;
        self.used += width;
        self
    }

    pub(super) fn word(self) -> u64 {
        self.word
    }
}

/// Takes fields out of a word in the order in which [`Packer`] put them.
pub(super) struct Unpacker(pub(super) u64);

impl Unpacker {
    pub(super) fn take(&mut self, width: u32) -> u64 {
        let field = self.0 & ((1 << width) - 1);
        self.0 >>= width;
        field
    }

    /// Takes one bit.
    pub(super) fn flag(&mut self) -> bool {
        self.take(1) == 1
    }
}
