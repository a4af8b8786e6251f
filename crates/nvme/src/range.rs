//! Ranges of blocks in the data of Dataset Management and Copy (NVM Command Set 1.0, 3.2.3 and
//! 3.2.2): lists viewed in place.

use crate::CodecError;
use crate::layout::codes;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A range of Dataset Management (Figure 42).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DatasetRange {
    /// Hints about access; may be ignored.
    pub context: U32,
    /// Blocks, not less one: a range of no blocks is legal.
    pub blocks: U32,
    /// First block.
    pub start: U64,
}

impl DatasetRange {
    /// Bytes of a range.
    pub const BYTES: usize = size_of::<Self>();

    /// The first `count` ranges of `bytes`, in place.
    pub fn view(bytes: &[u8], count: usize) -> Result<&[DatasetRange], CodecError> {
        list("ranges of Dataset Management", bytes, count)
    }
}

codes! {
    /// Format of a range of Copy (NVM Command Set 1.1, Figure 36).
    pub enum CopyFormat: u8 {
        /// 32 bytes; the source is the namespace of the command.
        Short = 0,
        /// 40 bytes, for wider protection information.
        Long = 1,
        /// 32 bytes with a namespace of its own.
        ShortAcross = 2,
        /// 40 bytes with a namespace of its own.
        LongAcross = 3,
    }
}

impl CopyFormat {
    /// Bytes of a range.
    pub const fn bytes(self) -> usize {
        match self {
            CopyFormat::Short | CopyFormat::ShortAcross => 32,
            CopyFormat::Long | CopyFormat::LongAcross => 40,
        }
    }

    /// Whether a range names its namespace.
    pub const fn is_across(self) -> bool {
        matches!(self, CopyFormat::ShortAcross | CopyFormat::LongAcross)
    }
}

/// What the two lengths of a range have in common; protection information follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RangeHead {
    namespace: U32,
    _reserved: U32,
    start: U64,
    blocks_minus_one: U16,
    _rest: [u8; 6],
}

/// A source range of Copy, of any format; without protection information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRange {
    /// Where the blocks are, in the formats that say so.
    pub namespace: Option<u32>,
    /// First block.
    pub start: u64,
    /// Blocks, less one.
    pub blocks_minus_one: u16,
}

impl CopyRange {
    /// The first `count` ranges of `bytes`, read one by one as the iterator goes.
    pub fn list(
        bytes: &[u8],
        count: usize,
        format: CopyFormat,
    ) -> Result<impl ExactSizeIterator<Item = CopyRange> + '_, CodecError> {
        let needed = count * format.bytes();
        let bytes =
            bytes.get(..needed).ok_or(CodecError::Short { part: "ranges of Copy", got: bytes.len(), needed })?;
        Ok(bytes.chunks_exact(format.bytes()).map(move |range| CopyRange::read(range, format)))
    }

    fn read(bytes: &[u8], format: CopyFormat) -> CopyRange {
        let (head, _) = RangeHead::ref_from_prefix(bytes).expect("a range of any format is longer than its head");
        CopyRange {
            namespace: format.is_across().then_some(head.namespace.get()),
            start: head.start.get(),
            blocks_minus_one: head.blocks_minus_one.get(),
        }
    }

    /// Appends the range in `format`. A namespace is written only in the formats that have one, as
    /// 0 where none is given.
    pub fn write(&self, format: CopyFormat, bytes: &mut Vec<u8>) {
        let namespace = if format.is_across() { self.namespace.unwrap_or(0) } else { 0 };
        let head = RangeHead {
            namespace: namespace.into(),
            start: self.start.into(),
            blocks_minus_one: self.blocks_minus_one.into(),
            ..RangeHead::default()
        };
        let end = bytes.len() + format.bytes();
        bytes.extend_from_slice(head.as_bytes());
        bytes.resize(end, 0);
    }
}

/// `count` entries at the front of `bytes`, in place.
pub(crate) fn list<'a, T>(part: &'static str, bytes: &'a [u8], count: usize) -> Result<&'a [T], CodecError>
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    let needed = count.saturating_mul(size_of::<T>());
    match <[T]>::ref_from_prefix_with_elems(bytes, count) {
        Ok((entries, _)) => Ok(entries),
        Err(_) => Err(CodecError::Short { part, got: bytes.len(), needed }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// NVM Command Set 1.0, Figure 42.
    #[test]
    fn a_dataset_range_is_context_blocks_and_start() {
        let range = DatasetRange { context: 1.into(), blocks: 0x0203.into(), start: 0x0405.into() };
        assert_eq!(range.as_bytes(), [1, 0, 0, 0, 3, 2, 0, 0, 5, 4, 0, 0, 0, 0, 0, 0]);
        assert_eq!(DatasetRange::view(range.as_bytes(), 1), Ok(&[range][..]));
        assert_eq!(DatasetRange::view(&[], 0), Ok(&[][..]));
        let refused = CodecError::Short { part: "ranges of Dataset Management", got: 31, needed: 32 };
        assert_eq!(DatasetRange::view(&[0; 31], 2), Err(refused));
    }

    /// NVM Command Set 1.1, Figures 37 to 40: namespace at 0, first block at 8, length at 16.
    #[test]
    fn a_copy_range_has_its_fields_at_the_same_place_in_all_formats() {
        for format in CopyFormat::ALL {
            let mut bytes = Vec::new();
            CopyRange { namespace: Some(9), start: 0x0a0b, blocks_minus_one: 0x0c0d }.write(*format, &mut bytes);
            assert_eq!(bytes.len(), format.bytes());
            assert_eq!(bytes[0], if format.is_across() { 9 } else { 0 });
            assert_eq!((bytes[8], bytes[9], bytes[16], bytes[17]), (0x0b, 0x0a, 0x0d, 0x0c));
        }
    }

    proptest! {
        #[test]
        fn copy_ranges_come_back(all in prop::collection::vec(any::<(u32, u64, u16)>(), 0..5), format in 0usize..4) {
            let format = CopyFormat::ALL[format];
            let ranges: Vec<CopyRange> = all.into_iter().map(|(namespace, start, blocks_minus_one)| {
                CopyRange { namespace: format.is_across().then_some(namespace), start, blocks_minus_one }
            }).collect();
            let mut bytes = Vec::new();
            ranges.iter().for_each(|range| range.write(format, &mut bytes));
            let back: Vec<CopyRange> = CopyRange::list(&bytes, ranges.len(), format).unwrap().collect();
            prop_assert_eq!(&back, &ranges);
            prop_assert!(CopyRange::list(&bytes, ranges.len() + 1, format).is_err());
        }
    }
}
