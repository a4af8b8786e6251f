//! The second layer of the index, on flash: all keys of one block, and where their records lie.

use crate::{Corrupt, Expiry, Key};

/// Unit of places on a device, and of a segment's chain (LEED, SIGCOMM 2023).
pub const SECTOR_BYTES: u32 = 512;
/// Items in a bucket of 512 B: 32 B each, and as much for what makes a bucket describe itself.
pub const BUCKET_ITEMS: u32 = 15;
/// Buckets of the longest chain.
pub const BUCKETS_MAX: u32 = 63;
/// Keys that a segment can list.
pub const SEGMENT_ITEMS_MAX: u32 = BUCKETS_MAX * BUCKET_ITEMS;
/// Bits of a segment's sequence in its pointer.
pub const POINTER_SEQUENCE_BITS: u32 = 24;
/// Sectors that a pointer can name: 2^34, or 8 TiB.
pub const SECTORS_MAX: u64 = 1 << 34;

/// Which of a server's updates: later ones have higher numbers, over restarts too. 40 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The highest.
    pub const MAX: Sequence = Sequence((1 << 40) - 1);
    /// No update follows this one. What remains is for compaction, and for 65,536 restarts.
    pub const UPDATES_MAX: Sequence = Sequence(Sequence::MAX.0 - (1 << 32));
}

/// A row of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// The first.
    pub sector: u64,
    /// The sectors.
    pub sectors: u32,
}

/// Where a segment lies, in one word: sector (34 bits), buckets (6), low bits of its sequence (24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentPointer {
    /// Its place; a bucket takes a sector.
    pub extent: Extent,
    /// The low 24 bits of its sequence: what lies there with other ones is another segment.
    pub tag: u32,
}

impl SegmentPointer {
    /// To the segment `sequence` in `extent`.
    pub const fn new(extent: Extent, sequence: Sequence) -> SegmentPointer {
        SegmentPointer { extent, tag: tag_of(sequence) }
    }
    /// Fails on a segment that is not the one of `block` to which this points: its place was used
    /// again.
    pub fn check(&self, block: u32, segment: &Segment) -> Result<(), Corrupt> {
        let same =
            segment.block == block && self.tag == tag_of(segment.sequence) && self.extent.sectors == segment.sectors();
        if same { Ok(()) } else { Err(Corrupt::Foreign { what: "segment" }) }
    }
}

const fn tag_of(sequence: Sequence) -> u32 {
    sequence.0 as u32 & ((1 << POINTER_SEQUENCE_BITS) - 1)
}

/// Where a record begins, in units of 16 B. 40 bits: 16 TiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordPlace(pub u64);

/// Unit of records' places.
pub const GRANULE_BYTES: u32 = 16;

/// One key of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key.
    pub key: Key,
    /// Where its record begins.
    pub record: RecordPlace,
    /// The record's sequence: one with another is not meant.
    pub sequence: Sequence,
    /// Length of the value as items list it: [`listed_bytes`].
    pub value_bytes: u32,
    /// When it is forgotten.
    pub expiry: Expiry,
    /// Its record was written together with this segment: if it is not there after a crash, the
    /// segment was never published.
    pub is_fresh: bool,
}

impl Item {
    /// Fails on a record that is not the one that is listed here: its place was used again.
    pub fn check<V>(&self, record: &Record<V>) -> Result<(), Corrupt> {
        let same = record.key == self.key && record.sequence == self.sequence;
        if same { Ok(()) } else { Err(Corrupt::Foreign { what: "record" }) }
    }
}

/// All keys of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The owner.
    pub block: u32,
    /// Of the server that wrote it.
    pub epoch: u32,
    /// The writing of the segment.
    pub sequence: Sequence,
    /// When it was written, every segment of its epoch up to this sequence was whole on the device:
    /// one of them that is not any more has rotted and was not cut off. 40 bits.
    pub settled: Sequence,
    /// In order of key, each once.
    pub items: Vec<Item>,
}

impl Segment {
    /// One that lists nothing and that nobody has written yet.
    pub const fn empty(block: u32) -> Segment {
        Segment { block, epoch: 0, sequence: Sequence(0), settled: Sequence(0), items: Vec::new() }
    }
    /// Sectors that it takes; one even where it lists nothing, since it says that all keys are
    /// gone.
    pub fn sectors(&self) -> u32 {
        (self.items.len() as u32).div_ceil(BUCKET_ITEMS).max(1)
    }
    /// What it says of `key`.
    pub fn find(&self, key: &Key) -> Option<&Item> {
        let at = self.items.binary_search_by(|item| item.key.cmp(key)).ok()?;
        self.items.get(at)
    }
    /// The same, to be changed.
    pub fn find_mut(&mut self, key: &Key) -> Option<&mut Item> {
        let at = self.items.binary_search_by(|item| item.key.cmp(key)).ok()?;
        self.items.get_mut(at)
    }
    /// Lists `item`, instead of what was listed under its key.
    pub fn put(&mut self, item: Item) -> Option<Item> {
        match self.items.binary_search_by(|listed| listed.key.cmp(&item.key)) {
            Ok(at) => Some(std::mem::replace(&mut self.items[at], item)),
            Err(at) => {
                self.items.insert(at, item);
                None
            }
        }
    }
    /// Lists `key` no more.
    pub fn remove(&mut self, key: &Key) -> Option<Item> {
        let at = self.items.binary_search_by(|listed| listed.key.cmp(key)).ok()?;
        Some(self.items.remove(at))
    }
}

/// A key with its value on flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<V> {
    /// The key.
    pub key: Key,
    /// The update of the store wrote it.
    pub sequence: Sequence,
    /// When it is forgotten.
    pub expiry: Expiry,
    /// The value.
    pub value: V,
}

impl<V> Record<V> {
    /// The same key with another value.
    pub fn with<W>(&self, value: W) -> Record<W> {
        Record { key: self.key, sequence: self.sequence, expiry: self.expiry, value }
    }
}

/// Records that were written at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<V> {
    /// Of the server that wrote them.
    pub epoch: u32,
    /// In the order in which they lie.
    pub records: Vec<Record<V>>,
}

/// Bytes in front of a page's records.
pub const PAGE_HEADER_BYTES: u32 = 16;
/// Bytes in front of a record's value, its key among them.
pub const RECORD_HEADER_BYTES: u32 = 40;

/// Bytes of the longest value that a record can have.
pub const RECORD_VALUE_BYTES_MAX: u32 = 1 << 30;

/// Lengths up to this are listed exactly.
const EXACT_MAX: u32 = 255;
/// Binary logarithm of the steps in which longer ones are listed, in each octave.
const STEPS_BITS: u32 = 5;

/// The length of a value in the 10 bits that an item has for it: up to 255 B exactly, above in 32
/// steps from each power of two to the next, rounded up.
pub(crate) const fn length_code(value_bytes: u32) -> u16 {
    if value_bytes <= EXACT_MAX {
        return value_bytes as u16;
    }
    let step = value_bytes.ilog2() - STEPS_BITS;
    // A full octave is the first step of the next one.
    let steps = value_bytes.div_ceil(1 << step) - (1 << STEPS_BITS);
    (EXACT_MAX + 1 + (((step + STEPS_BITS - 8) << STEPS_BITS) + steps)) as u16
}

/// The length that 10 bits say.
pub(crate) const fn length_of(code: u16) -> u32 {
    let code = code as u32;
    if code <= EXACT_MAX {
        return code;
    }
    let (octave, steps) = ((code - EXACT_MAX - 1) >> STEPS_BITS, (code - EXACT_MAX - 1) % (1 << STEPS_BITS));
    ((1 << STEPS_BITS) + steps) << (octave + 8 - STEPS_BITS)
}

/// The length of a value as its item lists it: of a value of more than 255 B, rounded up by a 32nd
/// at most. Its record takes that room and knows the exact length.
pub const fn listed_bytes(value_bytes: u32) -> u32 {
    length_of(length_code(value_bytes))
}

/// Bytes of a record with a value of `value_bytes`, up to the next.
pub const fn record_bytes(value_bytes: u32) -> u32 {
    (RECORD_HEADER_BYTES + listed_bytes(value_bytes)).next_multiple_of(GRANULE_BYTES)
}

/// Sectors of a page with one record.
pub const fn page_sectors(value_bytes: u32) -> u32 {
    (PAGE_HEADER_BYTES + record_bytes(value_bytes)).div_ceil(SECTOR_BYTES)
}

impl<V: crate::Value> Page<V> {
    /// Bytes that it takes.
    pub fn bytes(&self) -> u32 {
        PAGE_HEADER_BYTES + self.records.iter().map(|record| record_bytes(record.value.bytes())).sum::<u32>()
    }
    /// Sectors that it takes.
    pub fn sectors(&self) -> u32 {
        self.bytes().div_ceil(SECTOR_BYTES)
    }
    /// Where each record begins in a page that begins at `sector`.
    pub fn places(&self, sector: u64) -> impl Iterator<Item = (RecordPlace, &Record<V>)> {
        let start = (sector * u64::from(SECTOR_BYTES) + u64::from(PAGE_HEADER_BYTES)) / u64::from(GRANULE_BYTES);
        self.records.iter().scan(start, |next, record| {
            let place = *next;
            *next += u64::from(record_bytes(record.value.bytes()) / GRANULE_BYTES);
            Some((RecordPlace(place), record))
        })
    }
}

impl RecordPlace {
    /// The sectors in which a record with a value of `value_bytes` lies.
    pub const fn extent(self, value_bytes: u32) -> Extent {
        let first = self.0 * GRANULE_BYTES as u64;
        let end = first + record_bytes(value_bytes) as u64;
        let sector = first / SECTOR_BYTES as u64;
        Extent { sector, sectors: (end.div_ceil(SECTOR_BYTES as u64) - sector) as u32 }
    }
    /// Its first sector.
    pub const fn sector(self) -> u64 {
        self.0 * GRANULE_BYTES as u64 / SECTOR_BYTES as u64
    }
    /// The byte of that sector at which it begins.
    pub const fn within(self) -> usize {
        (self.0 * GRANULE_BYTES as u64 % SECTOR_BYTES as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &[u8]) -> Item {
        let key = Key::new(name).expect("short");
        Item { key, record: RecordPlace(0), sequence: Sequence(1), value_bytes: 64, expiry: Expiry(0), is_fresh: true }
    }

    #[test]
    fn a_chain_grows_by_a_bucket_after_each_15_keys() {
        let mut segment =
            Segment { block: 0, epoch: 0, sequence: Sequence(0), settled: Sequence(0), items: Vec::new() };
        assert_eq!(segment.sectors(), 1);
        for number in 0..30u8 {
            segment.put(item(&[number + 1]));
        }
        assert_eq!(segment.sectors(), 2);
        segment.put(item(b"one more"));
        assert_eq!(segment.sectors(), 3);
    }

    #[test]
    fn a_key_is_listed_once() {
        let mut segment =
            Segment { block: 0, epoch: 0, sequence: Sequence(0), settled: Sequence(0), items: Vec::new() };
        assert_eq!(segment.put(item(b"b")), None);
        assert_eq!(segment.put(item(b"a")), None);
        assert_eq!(segment.put(item(b"b")), Some(item(b"b")));
        assert_eq!(segment.items.len(), 2);
        assert_eq!(segment.remove(&item(b"b").key), Some(item(b"b")));
        assert_eq!(segment.find(&item(b"b").key), None);
    }

    #[test]
    fn records_lie_one_behind_the_other_behind_the_page_s_header() {
        let record = |name: &[u8], bytes| Record {
            key: item(name).key,
            sequence: Sequence(1),
            expiry: Expiry(0),
            value: vec![0; bytes],
        };
        let page = Page { epoch: 0, records: vec![record(b"a", 64), record(b"b", 8), record(b"c", 9)] };
        let places: Vec<u64> = page.places(2).map(|(place, _)| place.0 * 16).collect();
        // 40 + 64 is 104, up to 112; 40 + 8 is 48 already.
        assert_eq!(places, [1024 + 16, 1024 + 16 + 112, 1024 + 16 + 112 + 48]);
        assert_eq!(page.bytes(), 16 + 112 + 48 + 64);
    }

    #[test]
    fn a_record_over_the_edge_of_a_sector_takes_two() {
        let inside = RecordPlace((512 - 112) / 16).extent(64);
        assert_eq!(inside, Extent { sector: 0, sectors: 1 });
        let over = RecordPlace((512 - 96) / 16).extent(64);
        assert_eq!(over, Extent { sector: 0, sectors: 2 });
    }
}
