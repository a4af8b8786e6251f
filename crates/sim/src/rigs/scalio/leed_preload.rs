//! LEED's contents on flash when a run begins, without memory for them. Keys are kept in the order
//! of their blocks, and reads make segments and records from them.
//!
//! On each device, blocks and keys are in order. The log of records has a record a sector, and the
//! log of segments has them one behind the other. Sequences count as those of a server into which
//! block after block was loaded.

use super::keys::Keys;
use scalio::{
    BUCKET_ITEMS, Content, Contents, Dealt, Expiry, Extent, GRANULE_BYTES, Item, Key, PAGE_HEADER_BYTES, Page, Record,
    RecordPlace, SECTOR_BYTES, Segment, SegmentPointer, Sequence, Token,
};
use std::sync::Arc;

/// All keys of a run in the order of their blocks.
#[derive(Clone, Debug)]
pub struct LeedPreload {
    contents: Keys,
    dealt: Dealt,
    blocks: u32,
    devices: u32,
    /// Where the logs of records and of segments begin.
    records_at: u64,
    segments_at: u64,
    /// For each block how many keys its device has before it; then, for each device, how many it
    /// has.
    before: Vec<u32>,
    /// For each block the first sector of its segment, counted from the log's first.
    first_sector: Vec<u32>,
}

impl LeedPreload {
    /// All keys of `contents`, dealt to their blocks. `logs` are the first sectors of the logs of
    /// records and of segments.
    pub fn new(contents: Keys, blocks: u32, devices: u32, logs: [u64; 2]) -> LeedPreload {
        let dealt = Dealt::new(&contents, blocks);
        let keys = |block: u32| dealt.numbers_of(block).len();
        let before = summed(blocks, devices, |block| keys(block) as u32);
        // A block without keys has a segment, too: so a server loads it.
        let first_sector = summed(blocks, devices, |block| sectors_of(keys(block)));
        let [records_at, segments_at] = logs;
        LeedPreload { contents, dealt, blocks, devices, records_at, segments_at, before, first_sector }
    }

    /// The keys of a block, in order.
    pub fn keys_of(&self, block: u32) -> impl Iterator<Item = (Key, Token)> {
        let numbers = self.dealt.numbers_of(block).iter();
        numbers.map(|number| (self.contents.key(*number), self.contents.value(*number)))
    }

    /// Where the segment of a block lies.
    pub fn pointer(&self, block: u32) -> SegmentPointer {
        let sector = self.segments_at + u64::from(self.first_sector[block as usize]);
        let extent = Extent { sector, sectors: sectors_of(self.dealt.numbers_of(block).len()) };
        SegmentPointer::new(extent, self.segment_sequence(block))
    }

    /// Sequences of a block's device before its first record: one for each key and each segment
    /// before.
    fn sequences_before(&self, block: u32) -> u64 {
        u64::from(self.before[block as usize]) + u64::from(block / self.devices)
    }

    fn segment_sequence(&self, block: u32) -> Sequence {
        Sequence(self.sequences_before(block) + self.dealt.numbers_of(block).len() as u64 + 1)
    }

    /// The highest sequence of a device: as if one more block began.
    pub fn last_sequence(&self, device: u32) -> Sequence {
        let end = self.blocks + device;
        let blocks = (self.blocks + self.devices - 1 - device) / self.devices;
        Sequence(u64::from(self.before[end as usize]) + u64::from(blocks))
    }

    /// The segment of a block, as it was when the run began.
    pub fn segment(&self, block: u32) -> Segment {
        let (before, sequence) = (self.before[block as usize], self.sequences_before(block));
        let item = |(at, number): (u32, &u32)| Item {
            key: self.contents.key(*number),
            record: self.place(before + at),
            sequence: Sequence(sequence + u64::from(at) + 1),
            value_bytes: self.contents.value_bytes(),
            expiry: Expiry(0),
            is_fresh: false,
        };
        let items = (0u32..).zip(self.dealt.numbers_of(block)).map(item).collect();
        let (epoch, settled) = (0, Sequence(0));
        Segment { block, epoch, sequence: self.segment_sequence(block), settled, items }
    }

    /// The record that an item of such a segment names.
    pub fn record(&self, item: &Item) -> Record<Token> {
        let value = self.contents.value(self.contents.number(&item.key));
        Record { key: item.key, sequence: item.sequence, expiry: Expiry(0), value }
    }

    /// Where a device's record of that rank begins.
    fn place(&self, rank: u32) -> RecordPlace {
        let sector = self.records_at + u64::from(rank);
        RecordPlace((sector * u64::from(SECTOR_BYTES) + u64::from(PAGE_HEADER_BYTES)) / u64::from(GRANULE_BYTES))
    }

    /// All of a device that lies in a row of sectors, in order: what compaction reads.
    pub fn scan(&self, device: u32, extent: Extent) -> Vec<(u64, Content<Token>)> {
        let inside = |sector: u64| (extent.sector..extent.sector + u64::from(extent.sectors)).contains(&sector);
        let mut found: Vec<(u64, Content<Token>)> = Vec::new();
        for block in (device..self.blocks).step_by(self.devices as usize) {
            let sector = self.pointer(block).extent.sector;
            if inside(sector) {
                found.push((sector, Content::Segment(Arc::new(self.segment(block)))));
            }
            let first = self.records_at + u64::from(self.before[block as usize]);
            let keys = self.dealt.numbers_of(block).len() as u64;
            if first < extent.sector + u64::from(extent.sectors) && first + keys > extent.sector {
                let items = self.segment(block).items;
                let wanted = items.iter().filter(|item| inside(item.record.sector()));
                found.extend(wanted.map(|item| (item.record.sector(), Content::Page(Arc::new(self.page(item))))));
            }
        }
        found.sort_by_key(|(sector, _)| *sector);
        found
    }

    fn page(&self, item: &Item) -> Page<Token> {
        Page { epoch: 0, records: vec![self.record(item)] }
    }
}

fn sectors_of(keys: usize) -> u32 {
    (keys as u32).div_ceil(BUCKET_ITEMS).max(1)
}

/// For each block what those of its device before it have together; then the same for each device
/// as a whole.
fn summed(blocks: u32, devices: u32, of: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut sums = vec![0u32; devices as usize];
    let mut before: Vec<u32> = Vec::with_capacity((blocks + devices) as usize);
    for block in 0..blocks {
        let sum = &mut sums[(block % devices) as usize];
        before.push(*sum);
        *sum += of(block);
    }
    before.extend(sums);
    before
}
