//! A store in its state after loading, without the loading: the places of segments and records of a
//! known set of keys, computed on access.
//!
//! A rack of 20 million keys would take gigabytes of flash contents. Here a key takes four bytes:
//! its number in a list by block.

use crate::{
    Expiry, Extent, Item, Key, PAGE_HEADER_BYTES, Page, Record, RecordPlace, SECTOR_BYTES, Segment, SegmentPointer,
    Sequence, Server, Value, listed_bytes, record_bytes,
};

/// The keys and what is under them.
pub trait Contents {
    /// What is under a key.
    type Value: Value;
    /// Number of keys.
    fn keys(&self) -> u32;
    /// The key of a number below [`keys`](Contents::keys). No two are the same.
    fn key(&self, number: u32) -> Key;
    /// The number of a key, if it is one of them.
    fn number_of(&self, key: &Key) -> Option<u32>;
    /// What is under it at first; all values are [`value_bytes`](Contents::value_bytes) long.
    fn value(&self, number: u32) -> Self::Value;
    /// The length of every value.
    fn value_bytes(&self) -> u32;
}

/// Where everything lies: on each device all segments in order of block, then in zones of their own
/// the pages with each block's records.
#[derive(Clone, Debug)]
pub struct Preload<C> {
    contents: C,
    devices: u32,
    dealt: Dealt,
    /// The first sector of each block's segment on its device.
    segments: Vec<u64>,
    /// The first sector of each block's pages.
    pages: Vec<u64>,
    /// Sectors that each device needs, in whole zones.
    needed: Vec<u64>,
    zone_sectors: u32,
    page_records: u32,
}

/// More keys than a segment can list belong to a block: more blocks are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{keys} keys belong to block {block}, and their {what} takes {sectors} sectors, allowed are {allowed}: more blocks are needed"
)]
pub struct PreloadError {
    /// The block.
    pub block: u32,
    /// Its keys.
    pub keys: u32,
    /// Their segment, or their row of pages.
    pub what: &'static str,
    /// The required amount.
    pub sectors: u32,
    /// The allowed amount.
    pub allowed: u32,
}

impl<C: Contents> Preload<C> {
    /// Works out where the contents lie in a store of `blocks` blocks on `devices` devices,
    /// `page_records` records a page.
    pub fn new(
        contents: C,
        blocks: u32,
        devices: u32,
        zone_sectors: u32,
        page_records: u32,
    ) -> Result<Preload<C>, PreloadError> {
        let dealt = Dealt::new(&contents, blocks);
        let needed = vec![0; devices as usize];
        let mut preload = Preload {
            contents,
            devices,
            dealt,
            segments: Vec::new(),
            pages: Vec::new(),
            needed,
            zone_sectors,
            page_records,
        };
        (0..blocks).try_for_each(|block| preload.check(block))?;
        preload.segments = preload.lay_out(blocks, Preload::segment_sectors);
        preload.pages = preload.lay_out(blocks, |preload, block| {
            preload.numbers_of(block).len().div_ceil(page_records as usize) as u32 * preload.page_sectors()
        });
        Ok(preload)
    }

    /// One row of sectors a block behind what is there already, each within a zone; the next kind
    /// begins with a zone of its own.
    fn lay_out(&mut self, blocks: u32, sectors: impl Fn(&Self, u32) -> u32) -> Vec<u64> {
        let zone = u64::from(self.zone_sectors);
        let mut firsts = Vec::with_capacity(blocks as usize);
        for block in 0..blocks {
            let (device, sectors) = ((block % self.devices) as usize, u64::from(sectors(self, block)));
            let end = self.needed[device];
            let first = if zone - end % zone < sectors { end.next_multiple_of(zone) } else { end };
            firsts.push(first);
            self.needed[device] = first + sectors;
        }
        self.needed.iter_mut().for_each(|end| *end = end.next_multiple_of(zone));
        firsts
    }

    /// The keys and values.
    pub fn contents(&self) -> &C {
        &self.contents
    }

    /// Sectors that a device needs for what lies on it, in whole zones.
    pub fn sectors_needed(&self, device: u32) -> u64 {
        self.needed[device as usize]
    }

    /// Informs a server of the content of its device.
    pub fn install(&self, device: u32, server: &mut Server<C::Value>) {
        for block in (device..self.segments.len() as u32).step_by(self.devices as usize) {
            if let Some(pointer) = self.pointer(block) {
                let records = self.numbers_of(block).len() as u32;
                server.install(
                    block,
                    pointer,
                    self.pages[block as usize],
                    records,
                    records * record_bytes(self.contents.value_bytes()),
                );
            }
        }
    }

    /// Where the segment of a block lies; `None` where no key belongs to it.
    pub fn pointer(&self, block: u32) -> Option<SegmentPointer> {
        let extent = Extent { sector: self.segments[block as usize], sectors: self.segment_sectors(block) };
        (extent.sectors > 0).then(|| SegmentPointer::new(extent, Sequence(0)))
    }

    /// The segment of a block.
    pub fn segment(&self, block: u32) -> Segment {
        let mut segment = Segment::empty(block);
        self.fill(block, &mut segment);
        segment
    }

    /// Makes another segment that of a block.
    pub fn fill(&self, block: u32, segment: &mut Segment) {
        let mut items = std::mem::take(&mut segment.items);
        items.clear();
        let item = |(number, record)| self.item(number, record);
        let pages = self.numbers_of(block).chunks(self.page_records as usize);
        pages.zip(self.rows(block)).for_each(|(numbers, places)| items.extend(numbers.iter().zip(places).map(item)));
        *segment = Segment { items, ..Segment::empty(block) };
    }

    fn item(&self, number: &u32, record: RecordPlace) -> Item {
        Item {
            key: self.contents.key(*number),
            record,
            sequence: Sequence(0),
            value_bytes: listed_bytes(self.contents.value_bytes()),
            expiry: Expiry::default(),
            is_fresh: false,
        }
    }

    /// Where the records of each of a block's pages begin.
    fn rows(&self, block: u32) -> impl Iterator<Item = impl Iterator<Item = RecordPlace>> {
        let granules = |bytes: u32| u64::from(bytes / crate::GRANULE_BYTES);
        let page = u64::from(self.page_sectors()) * granules(SECTOR_BYTES);
        let first = self.pages[block as usize] * granules(SECTOR_BYTES) + granules(PAGE_HEADER_BYTES);
        let step = granules(record_bytes(self.contents.value_bytes()));
        (0..).map(move |row| (0..).map(move |at| RecordPlace(first + row * page + at * step)))
    }

    /// The record of a key, if it is one that was loaded.
    pub fn record(&self, key: &Key) -> Option<Record<C::Value>> {
        let value = self.contents.value(self.contents.number_of(key)?);
        Some(Record { key: *key, sequence: Sequence(0), expiry: Expiry::default(), value })
    }

    /// All that begins within a row of sectors of a device, in order: segments and pages.
    pub fn scan(&self, device: u32, extent: Extent) -> Vec<(u64, crate::Content<C::Value>)> {
        let within = extent.sector..extent.sector + u64::from(extent.sectors);
        let blocks = (device..self.segments.len() as u32).step_by(self.devices as usize);
        let (mut segments, mut pages) = (Vec::new(), Vec::new());
        for block in blocks {
            if let Some(pointer) = self.pointer(block).filter(|pointer| within.contains(&pointer.extent.sector)) {
                segments.push((pointer.extent.sector, crate::Content::Segment(self.segment(block).into())));
            }
            let first = self.pages[block as usize];
            let chunks =
                self.numbers_of(block).chunks(self.page_records as usize).take_while(|_| within.contains(&first));
            pages.extend((0u64..).zip(chunks).map(|(at, numbers)| {
                let sector = first + at * u64::from(self.page_sectors());
                (sector, crate::Content::Page(self.page(numbers).into()))
            }));
        }
        segments.extend(pages);
        segments
    }

    fn page(&self, numbers: &[u32]) -> Page<C::Value> {
        let record = |number: &u32| {
            let (key, value) = (self.contents.key(*number), self.contents.value(*number));
            Record { key, sequence: Sequence(0), expiry: Expiry::default(), value }
        };
        Page { epoch: 0, records: numbers.iter().map(record).collect() }
    }

    fn page_sectors(&self) -> u32 {
        (PAGE_HEADER_BYTES + self.page_records * record_bytes(self.contents.value_bytes())).div_ceil(SECTOR_BYTES)
    }

    fn numbers_of(&self, block: u32) -> &[u32] {
        self.dealt.numbers_of(block)
    }

    fn segment_sectors(&self, block: u32) -> u32 {
        (self.numbers_of(block).len() as u32).div_ceil(crate::BUCKET_ITEMS)
    }

    fn check(&self, block: u32) -> Result<(), PreloadError> {
        let keys = self.numbers_of(block).len() as u32;
        let pages = keys.div_ceil(self.page_records) * self.page_sectors();
        let rows = [
            ("segment", self.segment_sectors(block), crate::BUCKETS_MAX.min(self.zone_sectors)),
            // A server counts the bytes of a block in 32 bits.
            ("row of pages", pages, self.zone_sectors.min(u32::MAX / SECTOR_BYTES)),
        ];
        let too_long = rows.into_iter().find(|(_, sectors, allowed)| sectors > allowed);
        too_long.map_or(Ok(()), |(what, sectors, allowed)| Err(PreloadError { block, keys, what, sectors, allowed }))
    }
}

/// Keys dealt to their blocks.
#[derive(Clone, Debug)]
pub struct Dealt {
    /// Numbers of keys, by block and within it by key.
    numbers: Vec<u32>,
    /// Where each block's begin in `numbers`, and an end.
    starts: Vec<u32>,
}

impl Dealt {
    /// All keys of `contents` in `blocks` blocks.
    pub fn new(contents: &impl Contents, blocks: u32) -> Dealt {
        let block_of = |number: u32| contents.key(number).place(blocks).block as usize;
        let mut starts = vec![0u32; blocks as usize + 1];
        (0..contents.keys()).for_each(|number| starts[block_of(number) + 1] += 1);
        for block in 0..blocks as usize {
            starts[block + 1] += starts[block];
        }
        let mut next = starts.clone();
        let mut numbers = vec![0u32; contents.keys() as usize];
        for number in 0..contents.keys() {
            let at = &mut next[block_of(number)];
            numbers[*at as usize] = number;
            *at += 1;
        }
        for block in 0..blocks as usize {
            numbers[starts[block] as usize..starts[block + 1] as usize].sort_by_key(|number| contents.key(*number));
        }
        Dealt { numbers, starts }
    }

    /// Numbers of a block's keys, in the order of the keys.
    pub fn numbers_of(&self, block: u32) -> &[u32] {
        let block = block as usize;
        &self.numbers[self.starts[block] as usize..self.starts[block + 1] as usize]
    }
}
