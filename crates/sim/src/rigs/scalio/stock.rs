//! What LEED has on flash when a run begins, without room for it: keys in the order of their blocks, from which segments and records are made when somebody reads them.
//!
//! On each device the blocks are in their order, and so are their keys: a record a sector in the log of records, and segments one behind the other in theirs. Sequences
//! count as those of a server into which block after block was loaded.

use super::keys::Keys;
use scalio::{
    BUCKET_ITEMS, Content, Contents, Expiry, Extent, GRANULE_BYTES, Item, Key, PAGE_HEADER_BYTES, Page, Record,
    RecordPlace, SECTOR_BYTES, Segment, SegmentPointer, Sequence, Token,
};
use std::sync::Arc;

/// All keys of a run in the order of their blocks.
#[derive(Clone, Debug)]
pub struct Stock {
    contents: Keys,
    blocks: u32,
    devices: u32,
    /// Where the logs of records and of segments begin.
    records_at: u64,
    segments_at: u64,
    /// Keys by device, then block, then number.
    keys: Vec<u32>,
    /// For each block by device and number the place of its first key; one more at the end.
    first_key: Vec<u32>,
    /// Likewise the first sector of its segment, counted from the log's first.
    first_sector: Vec<u32>,
    /// For each device its first block, in the order of the two above; one more at the end.
    first_block: Vec<u32>,
}

impl Stock {
    /// All keys of `contents`, dealt to their blocks. `logs` are the first sectors of the logs of records and of segments.
    pub fn new(contents: Keys, blocks: u32, devices: u32, logs: [u64; 2]) -> Stock {
        let first_block = first_blocks(blocks, devices);
        let row = |block: u32| (first_block[(block % devices) as usize] + block / devices) as usize;
        let block_of: Vec<u32> = (0..contents.keys()).map(|number| contents.key(number).place(blocks).block).collect();
        let mut first_key = vec![0u32; blocks as usize + 1];
        block_of.iter().for_each(|block| first_key[row(*block) + 1] += 1);
        for at in 1..first_key.len() {
            first_key[at] += first_key[at - 1];
        }
        let mut next = first_key.clone();
        let mut keys = vec![0u32; block_of.len()];
        for (number, block) in (0u32..).zip(&block_of) {
            let place = &mut next[row(*block)];
            keys[*place as usize] = number;
            *place += 1;
        }
        let [records_at, segments_at] = logs;
        let first_sector = Vec::new();
        let mut stock =
            Stock { contents, blocks, devices, records_at, segments_at, keys, first_key, first_sector, first_block };
        stock.first_sector = stock.segments();
        stock
    }

    /// Sectors of all segments in front of each one, device by device. A block without keys has a segment, too: so a server loads it.
    fn segments(&self) -> Vec<u32> {
        let mut first = vec![0u32; self.blocks as usize + 1];
        for device in 0..self.devices as usize {
            let mut next = 0;
            for row in self.first_block[device]..self.first_block[device + 1] {
                first[row as usize] = next;
                next += sectors_of(self.keys_of_row(row as usize).len());
            }
        }
        first
    }

    fn keys_of_row(&self, row: usize) -> &[u32] {
        &self.keys[self.first_key[row] as usize..self.first_key[row + 1] as usize]
    }

    /// The keys of a block, in order.
    pub fn keys_of(&self, block: u32) -> impl Iterator<Item = (Key, Token)> {
        self.keys_of_row(self.row(block))
            .iter()
            .map(|number| (self.contents.key(*number), self.contents.value(*number)))
    }

    fn row(&self, block: u32) -> usize {
        (self.first_block[(block % self.devices) as usize] + block / self.devices) as usize
    }

    /// Keys of a device in front of a row.
    fn before(&self, row: usize, device: u32) -> u32 {
        self.first_key[row] - self.first_key[self.first_block[device as usize] as usize]
    }

    /// Where the segment of a block lies.
    pub fn pointer(&self, block: u32) -> SegmentPointer {
        let row = self.row(block);
        let sector = self.segments_at + u64::from(self.first_sector[row]);
        let extent = Extent { sector, sectors: sectors_of(self.keys_of_row(row).len()) };
        SegmentPointer::new(extent, self.segment_sequence(block, row))
    }

    /// Sequences of a device before the first record of a row.
    fn sequences_before(&self, row: usize, device: u32) -> u64 {
        u64::from(self.before(row, device)) + row as u64 - u64::from(self.first_block[device as usize])
    }

    fn segment_sequence(&self, block: u32, row: usize) -> Sequence {
        Sequence(self.sequences_before(row, block % self.devices) + self.keys_of_row(row).len() as u64 + 1)
    }

    /// The highest sequence of a device.
    pub fn last_sequence(&self, device: u32) -> Sequence {
        Sequence(self.sequences_before(self.first_block[device as usize + 1] as usize, device))
    }

    /// The segment of a block, as it was when the run began.
    pub fn segment(&self, block: u32) -> Segment {
        let (row, device) = (self.row(block), block % self.devices);
        let (before, sequence) = (self.before(row, device), self.sequences_before(row, device));
        let item = |(at, number): (u32, &u32)| Item {
            key: self.contents.key(*number),
            record: self.place(before + at),
            sequence: Sequence(sequence + u64::from(at) + 1),
            value_bytes: self.contents.value_bytes() as u16,
            expiry: Expiry(0),
            is_fresh: false,
        };
        let items = (0u32..).zip(self.keys_of_row(row)).map(item).collect();
        let (epoch, settled) = (0, Sequence(0));
        Segment { block, epoch, sequence: self.segment_sequence(block, row), settled, items }
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
            let first = self.records_at + u64::from(self.before(self.row(block), device));
            let keys = self.keys_of_row(self.row(block)).len() as u64;
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

/// For each device how many blocks those before it have.
fn first_blocks(blocks: u32, devices: u32) -> Vec<u32> {
    let of_device = |device: u32| blocks / devices + u32::from(device < blocks % devices);
    let mut first = vec![0];
    for device in 0..devices {
        first.push(first[device as usize] + of_device(device));
    }
    first
}
