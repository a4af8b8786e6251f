//! Operations of programs on memory and flash, local or remote. The host chooses the carrier, and
//! answers.
//!
//! Each operation has one answer. Operations of one client on the memory of one block are executed
//! in the order of their requests, as on a reliable connection; nothing else is ordered.

use crate::{
    Block, BlockHeader, Corrupt, ENTRY_BYTES, Extent, Item, Length, Name, Page, Payload, Record, Segment,
    SegmentPointer, SlotWord,
};
use base::Time;
use std::sync::Arc;

/// Which request an answer is to. A program gives each of its own another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// An operation on the index. For clients by remote direct memory access, for the server on its own
/// memory.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryOperation<V> {
    /// Reads a block. Words of 8 B are whole; the block may be torn between them.
    ReadBlock,
    /// Reads a block, then its header, then the word of a slot, strictly one after the other: three
    /// reads posted at once on a connection that carries them out in order. Read in any other
    /// order, a filler could take a pointer for that of a moment at which its slot was still its
    /// own, or no other held the key (the model in `models` finds both).
    Check {
        /// The slot.
        slot: u8,
    },
    /// Compares the word of a slot and swaps it, atomically.
    Swap {
        /// The slot.
        slot: u8,
        /// What should be there.
        expected: SlotWord,
        /// The value to store instead.
        new: SlotWord,
    },
    /// Writes a slot's payload, not atomically.
    WritePayload {
        /// The slot.
        slot: u8,
        /// The payload.
        payload: Payload<V>,
    },
    /// Writes when a slot was last used.
    Touch {
        /// The slot.
        slot: u8,
        /// The time.
        at: Time,
    },
    /// Stores flags of a slot unconditionally (the paper's protocol alone), each separately from
    /// the other and from the rest of the word.
    StoreFlags {
        /// The slot.
        slot: u8,
        /// Whether a key is in it.
        occupied: Option<bool>,
        /// Whether its value is.
        complete: Option<bool>,
        /// The end of a lease that is stored beside them.
        lease: Option<Time>,
    },
    /// Stores where the keys of the block are listed: an aligned word (the server alone).
    Publish {
        /// The place.
        segment: SegmentPointer,
    },
    /// Makes the block unreachable until it is reset (the server alone, when it begins to recover).
    Close,
    /// Makes the block as new, all slots free (the server alone, when it has recovered): the header
    /// before the slots.
    Reset {
        /// With this header.
        header: BlockHeader,
    },
}

/// Result of an operation on the index.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryAnswer<V> {
    /// What a read found.
    Block(Block<V>),
    /// What a check found; the block's header is the one that was read after its slots.
    Checked {
        /// The block.
        block: Block<V>,
        /// The word of the slot.
        word: SlotWord,
    },
    /// What a compare-and-swap found: it swapped where that is what it expected.
    Found(SlotWord),
    /// A write is done.
    Done,
    /// The memory cannot be reached, or holds no block: its server has not made it its own yet.
    Unreachable,
}

impl<V> MemoryAnswer<V> {
    /// The answer of a read: of a block, or of a check, whose header and word were read after it.
    pub fn of_read(block: Option<Block<V>>, header: Option<BlockHeader>, word: Option<SlotWord>) -> Self {
        match (block, header, word) {
            (Some(block), _, None) => MemoryAnswer::Block(block),
            (Some(block), Some(header), Some(word)) => MemoryAnswer::Checked { block: Block { header, ..block }, word },
            _ => MemoryAnswer::Unreachable,
        }
    }
}

/// What a zone of a device holds. Moving a record costs a new segment, moving a segment costs no
/// more than itself: so they do not share zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// Segments, each of which lives until the next update of its block, and the marks of restarts.
    Segments,
    /// Pages of records.
    Records,
}

/// What is written to a device at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Content<V> {
    /// Keys of a block.
    Segment(Arc<Segment>),
    /// Records.
    Page(Arc<Page<V>>),
}

impl<V: crate::Value> Content<V> {
    /// Sectors that it takes.
    pub fn sectors(&self) -> u32 {
        match self {
            Content::Segment(segment) => segment.sectors(),
            Content::Page(page) => page.sectors(),
        }
    }

    /// The kind of the zones that it is written to. A page without records is a restart's mark.
    pub fn kind(&self) -> ZoneKind {
        match self {
            Content::Page(page) if !page.records.is_empty() => ZoneKind::Records,
            Content::Page(_) | Content::Segment(_) => ZoneKind::Segments,
        }
    }

    /// The same, without the values.
    pub fn listed(&self) -> Content<Length> {
        let record = |record: &Record<V>| record.with(Length(record.value.bytes()));
        match self {
            Content::Segment(segment) => Content::Segment(Arc::clone(segment)),
            Content::Page(page) => {
                let records = page.records.iter().map(record).collect();
                Content::Page(Arc::new(Page { epoch: page.epoch, records }))
            }
        }
    }
}

/// An operation on a device.
#[derive(Clone, Debug, PartialEq)]
pub enum FlashOperation<V> {
    /// Reads a segment.
    ReadSegment {
        /// Of this block.
        block: u32,
        /// From here.
        pointer: SegmentPointer,
    },
    /// Reads a record.
    ReadRecord {
        /// As this item says.
        item: Item,
    },
    /// Reads the front of a record: its header, and as much as the longest name has.
    ReadHead {
        /// As this item says.
        item: Item,
    },
    /// Writes.
    Write {
        /// The place.
        extent: Extent,
        /// The content.
        content: Content<V>,
    },
    /// Makes durable all that was answered to have been written, and to have been forgotten.
    Flush,
    /// Reads of which kind a zone is, by what its first sector holds.
    ReadKind {
        /// The first sector.
        sector: u64,
    },
    /// Reads all that is whole in a row of sectors.
    Scan {
        /// The extent.
        extent: Extent,
    },
    /// The same, without the values.
    List {
        /// The extent.
        extent: Extent,
    },
    /// Forgets a row of sectors: from then on they are read as zeros.
    Trim {
        /// The extent.
        extent: Extent,
    },
}

/// Result of an operation on a device.
#[derive(Clone, Debug, PartialEq)]
pub enum FlashAnswer<V> {
    /// A segment, if it is the expected one and whole.
    Segment(Result<Arc<Segment>, Corrupt>),
    /// A record, likewise.
    Record(Result<Record<V>, Corrupt>),
    /// The name at the front of a record, likewise.
    Head(Result<Name, Corrupt>),
    /// The kind of a zone; `None` where no content begins at its first sector.
    Kind(Option<ZoneKind>),
    /// All that is whole, with its first sector, in order.
    Scanned(Vec<(u64, Content<V>)>),
    /// The same, without the values.
    Listed(Vec<(u64, Content<Length>)>),
    /// A write, a flush or a trim is done.
    Done,
    /// The device failed.
    Failed,
}

impl<V> FlashOperation<V> {
    /// The sectors that it concerns; `None` for a flush.
    pub fn extent(&self) -> Option<Extent> {
        match self {
            FlashOperation::ReadSegment { pointer, .. } => Some(pointer.extent),
            FlashOperation::ReadRecord { item } => Some(item.record.extent(item.value_bytes)),
            FlashOperation::ReadHead { item } => Some(item.record.extent(item.value_bytes.min(ENTRY_BYTES))),
            FlashOperation::Write { extent, .. }
            | FlashOperation::Scan { extent }
            | FlashOperation::List { extent }
            | FlashOperation::Trim { extent } => Some(*extent),
            FlashOperation::ReadKind { sector } => Some(Extent { sector: *sector, sectors: 1 }),
            FlashOperation::Flush => None,
        }
    }
}
