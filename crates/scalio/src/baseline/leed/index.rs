//! The index in memory: where each segment lies, in 8 bytes.

use crate::{Extent, POINTER_SEQUENCE_BITS, SegmentPointer};

const BUCKETS_BITS: u32 = 6;

/// A pointer for each block of a device, by its place among them.
#[derive(Clone, Debug)]
pub(super) struct Index(Vec<u64>);

impl Index {
    pub(super) fn new(segments: usize) -> Index {
        Index(vec![0; segments])
    }

    pub(super) fn get(&self, segment: u32) -> Option<SegmentPointer> {
        unpack(self.0[segment as usize])
    }

    pub(super) fn set(&mut self, segment: u32, pointer: Option<SegmentPointer>) {
        self.0[segment as usize] = pointer.map_or(0, pack);
    }
}

/// A chain has at least one bucket, so no pointer is 0.
fn pack(pointer: SegmentPointer) -> u64 {
    let place = pointer.extent.sector << BUCKETS_BITS | u64::from(pointer.extent.sectors);
    place << POINTER_SEQUENCE_BITS | u64::from(pointer.tag)
}

fn unpack(word: u64) -> Option<SegmentPointer> {
    if word == 0 {
        return None;
    }
    let place = word >> POINTER_SEQUENCE_BITS;
    let sectors = (place & ((1 << BUCKETS_BITS) - 1)) as u32;
    let tag = (word & ((1 << POINTER_SEQUENCE_BITS) - 1)) as u32;
    Some(SegmentPointer { extent: Extent { sector: place >> BUCKETS_BITS, sectors }, tag })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BUCKETS_MAX, SECTORS_MAX};

    #[test]
    fn the_longest_segment_at_the_last_sector_is_kept() {
        let mut index = Index::new(2);
        let extent = Extent { sector: SECTORS_MAX - 1, sectors: BUCKETS_MAX };
        let pointer = SegmentPointer { extent, tag: (1 << POINTER_SEQUENCE_BITS) - 1 };
        index.set(1, Some(pointer));
        assert_eq!((index.get(0), index.get(1)), (None, Some(pointer)));
        index.set(1, None);
        assert_eq!(index.get(1), None);
    }
}
