//! The log on a device.

use crate::segment::{length_code, length_of};
use crate::{
    BUCKET_ITEMS, BUCKETS_MAX, Content, Corrupt, Expiry, Extent, Item, KEY_BYTES_MAX, Key, Name, PAGE_HEADER_BYTES,
    Page, RECORD_HEADER_BYTES, RECORD_VALUE_BYTES_MAX, Record, RecordPlace, SECTOR_BYTES, Segment, Sequence, Value,
    ZoneKind, record_bytes,
};
use std::sync::Arc;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const SEGMENT_MAGIC: u32 = u32::from_le_bytes(*b"ScSg");
const PAGE_MAGIC: u32 = u32::from_le_bytes(*b"ScPg");

/// In front of a bucket's items.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BucketBytes {
    /// `ScSg`.
    pub magic: U32,
    /// Of all that follows in the bucket.
    pub checksum: U32,
    /// The segment's sequence: a bucket with another one is of another writing.
    pub sequence: U64,
    /// Block of the store.
    pub block: U32,
    /// Epoch of the server that wrote it.
    pub epoch: U32,
    /// The bucket of the chain.
    pub index: u8,
    /// Buckets of the chain.
    pub chain: u8,
    /// Items in this bucket.
    pub items: u8,
    /// Segments of this epoch up to this sequence are whole on the device.
    pub settled: [u8; 5],
}

/// One key.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ItemBytes {
    /// The key, the rest 0.
    pub key: [u8; KEY_BYTES_MAX],
    /// Low 32 bits of the record's place.
    pub place: U32,
    /// Low 32 bits of the record's sequence.
    pub sequence: U32,
    /// When it is forgotten.
    pub expiry: U32,
    /// High 8 bits of the place.
    pub place_high: u8,
    /// High 8 bits of the sequence.
    pub sequence_high: u8,
    /// Length of the key (5 bits), high 2 bits of the value's length, and whether the record was
    /// written together with the segment.
    pub key_bytes: u8,
    /// Low 8 bits of the value's length: up to 255 B exactly, then 32 steps an octave.
    pub value_bytes: u8,
}

/// In front of a page's records.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PageBytes {
    /// `ScPg`.
    pub magic: U32,
    /// Of the rest of this header.
    pub checksum: U32,
    /// Epoch of the server that wrote it.
    pub epoch: U32,
    /// How many records follow.
    pub records: U16,
    /// 0.
    pub rest: [u8; 2],
}

/// In front of a record's value.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RecordBytes {
    /// Of all that follows, the value too.
    pub checksum: U32,
    /// Length of the value, low 16 bits.
    pub value_bytes: U16,
    /// Length of the key.
    pub key_bytes: u8,
    /// 1, so that a record is never all zeros.
    pub format: u8,
    /// The update wrote it.
    pub sequence: U64,
    /// When it is forgotten.
    pub expiry: U32,
    /// Length of the value, high 16 bits.
    pub value_bytes_high: U32,
    /// The key, the rest 0.
    pub key: [u8; KEY_BYTES_MAX],
}

const FORMAT: u8 = 1;
const FRESH: u8 = 0x80;
const LENGTH_SHIFT: u8 = 5;
const KEY_LENGTH: u8 = (1 << LENGTH_SHIFT) - 1;
const BUCKET_HEADER_BYTES: usize = size_of::<BucketBytes>();
const _: () = assert!(BUCKET_HEADER_BYTES + BUCKET_ITEMS as usize * size_of::<ItemBytes>() == SECTOR_BYTES as usize);
const _: () = assert!(
    size_of::<PageBytes>() == PAGE_HEADER_BYTES as usize && size_of::<RecordBytes>() == RECORD_HEADER_BYTES as usize
);
const _: () = assert!(KEY_BYTES_MAX <= KEY_LENGTH as usize);

/// Value with which the checksums of a store on flash begin. A store chooses it at random and keeps
/// it to itself: nobody can then store a value whose bytes pass for a page or a segment, should a
/// restart find them where a page was torn or a zone is in use again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seal(pub u32);

impl Seal {
    fn sum(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, bytes)
    }
    /// Writes the checksum of all that follows it.
    fn write(self, bytes: &mut [u8], at: usize) {
        let sum = self.sum(&bytes[at + 4..]);
        bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }
    fn check(self, bytes: &[u8], expected: u32) -> Result<(), Corrupt> {
        let got = self.sum(bytes);
        if got == expected { Ok(()) } else { Err(Corrupt::Checksum { got, expected }) }
    }
}

/// What is written, in whole sectors.
pub fn encode_content<V: Value>(content: &Content<V>, seal: Seal) -> Vec<u8> {
    match content {
        Content::Segment(segment) => encode_segment(segment, seal),
        Content::Page(page) => encode_page(page, seal),
    }
}

fn encode_segment(segment: &Segment, seal: Seal) -> Vec<u8> {
    let chain = segment.sectors() as u8;
    let items =
        |index: u8| segment.items.iter().skip(usize::from(index) * BUCKET_ITEMS as usize).take(BUCKET_ITEMS as usize);
    let mut bytes = Vec::with_capacity(usize::from(chain) * SECTOR_BYTES as usize);
    for index in 0..chain {
        let start = bytes.len();
        let header = BucketBytes {
            magic: SEGMENT_MAGIC.into(),
            checksum: U32::ZERO,
            sequence: segment.sequence.0.into(),
            block: segment.block.into(),
            epoch: segment.epoch.into(),
            index,
            chain,
            items: items(index).count() as u8,
            settled: std::array::from_fn(|byte| (segment.settled.0 >> (8 * byte)) as u8),
        };
        bytes.extend_from_slice(header.as_bytes());
        items(index).for_each(|item| bytes.extend_from_slice(encode_item(item).as_bytes()));
        bytes.resize(start + SECTOR_BYTES as usize, 0);
        seal.write(&mut bytes[start..], 4);
    }
    bytes
}

fn encode_item(item: &Item) -> ItemBytes {
    let length = length_code(item.value_bytes);
    let fresh = if item.is_fresh { FRESH } else { 0 };
    ItemBytes {
        key: *item.key.padded(),
        place: (item.record.0 as u32).into(),
        sequence: (item.sequence.0 as u32).into(),
        expiry: item.expiry.0.into(),
        place_high: (item.record.0 >> 32) as u8,
        sequence_high: (item.sequence.0 >> 32) as u8,
        key_bytes: item.key.as_bytes().len() as u8 | ((length >> 8) as u8) << LENGTH_SHIFT | fresh,
        value_bytes: length as u8,
    }
}

fn encode_page<V: Value>(page: &Page<V>, seal: Seal) -> Vec<u8> {
    let header = PageBytes {
        magic: PAGE_MAGIC.into(),
        checksum: U32::ZERO,
        epoch: page.epoch.into(),
        records: (page.records.len() as u16).into(),
        rest: [0; 2],
    };
    let mut bytes = Vec::with_capacity((page.sectors() * SECTOR_BYTES) as usize);
    bytes.extend_from_slice(header.as_bytes());
    seal.write(&mut bytes, 4);
    page.records.iter().for_each(|record| encode_record(record, seal, &mut bytes));
    bytes.resize((page.sectors() * SECTOR_BYTES) as usize, 0);
    bytes
}

fn encode_record<V: Value>(record: &Record<V>, seal: Seal, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    let header = RecordBytes {
        checksum: U32::ZERO,
        value_bytes: (record.value.bytes() as u16).into(),
        key_bytes: record.key.as_bytes().len() as u8,
        format: FORMAT,
        sequence: record.sequence.0.into(),
        expiry: record.expiry.0.into(),
        value_bytes_high: (record.value.bytes() >> 16).into(),
        key: *record.key.padded(),
    };
    bytes.extend_from_slice(header.as_bytes());
    record.value.encode(bytes);
    seal.write(&mut bytes[start..], 0);
    bytes.resize(start + record_bytes(record.value.bytes()) as usize, 0);
}

/// A segment that begins with these bytes.
pub fn decode_segment(bytes: &[u8], seal: Seal) -> Result<Segment, Corrupt> {
    let first = bucket(bytes, seal)?;
    let chain = first.chain;
    if chain == 0 || u32::from(chain) > BUCKETS_MAX {
        return Err(field("chain", chain));
    }
    let mut segment = Segment {
        block: first.block.get(),
        epoch: first.epoch.get(),
        sequence: sequence(first.sequence.get())?,
        settled: Sequence(first.settled.iter().rev().fold(0, |high, byte| high << 8 | u64::from(*byte))),
        items: Vec::new(),
    };
    for index in 0..chain {
        let sector = bytes.get(usize::from(index) * SECTOR_BYTES as usize..).unwrap_or(&[]);
        let header = bucket(sector, seal)?;
        let same = (header.sequence, header.block, header.chain) == (first.sequence, first.block, chain);
        if !same || header.index != index {
            return Err(Corrupt::Foreign { what: "bucket" });
        }
        decode_items(header, sector, &mut segment.items)?;
    }
    if segment.items.is_sorted_by(|one, next| one.key < next.key) {
        Ok(segment)
    } else {
        Err(Corrupt::Foreign { what: "order of keys" })
    }
}

fn bucket(bytes: &[u8], seal: Seal) -> Result<&BucketBytes, Corrupt> {
    let sector =
        bytes.get(..SECTOR_BYTES as usize).ok_or(Corrupt::Short { got: bytes.len(), needed: SECTOR_BYTES as usize })?;
    let (header, _) = BucketBytes::ref_from_prefix(sector).map_err(|_| short(sector, BUCKET_HEADER_BYTES))?;
    magic(header.magic.get(), SEGMENT_MAGIC)?;
    seal.check(&sector[8..], header.checksum.get())?;
    Ok(header)
}

fn decode_items(header: &BucketBytes, sector: &[u8], items: &mut Vec<Item>) -> Result<(), Corrupt> {
    if u32::from(header.items) > BUCKET_ITEMS {
        return Err(field("items", header.items));
    }
    let rest = &sector[BUCKET_HEADER_BYTES..];
    let (views, _) = <[ItemBytes]>::ref_from_prefix_with_elems(rest, header.items.into())
        .map_err(|_| short(sector, SECTOR_BYTES as usize))?;
    for view in views {
        let length = u16::from((view.key_bytes & !FRESH) >> LENGTH_SHIFT) << 8 | u16::from(view.value_bytes);
        items.push(Item {
            key: key(&view.key, view.key_bytes & KEY_LENGTH)?,
            record: RecordPlace(u64::from(view.place.get()) | u64::from(view.place_high) << 32),
            sequence: Sequence(u64::from(view.sequence.get()) | u64::from(view.sequence_high) << 32),
            value_bytes: length_of(length),
            expiry: Expiry(view.expiry.get()),
            is_fresh: view.key_bytes & FRESH != 0,
        });
    }
    Ok(())
}

/// A record that begins with these bytes.
pub fn decode_record<V: Value>(bytes: &[u8], seal: Seal) -> Result<Record<V>, Corrupt> {
    let (view, rest) = RecordBytes::ref_from_prefix(bytes).map_err(|_| short(bytes, RECORD_HEADER_BYTES as usize))?;
    let length = u64::from(view.value_bytes_high.get()) << 16 | u64::from(view.value_bytes.get());
    if length > u64::from(RECORD_VALUE_BYTES_MAX) {
        return Err(field("value_bytes", length));
    }
    let length = length as usize;
    let value = rest.get(..length).ok_or_else(|| short(bytes, RECORD_HEADER_BYTES as usize + length))?;
    seal.check(&bytes[4..RECORD_HEADER_BYTES as usize + length], view.checksum.get())?;
    if view.format != FORMAT {
        return Err(field("format", view.format));
    }
    let value = V::decode(value).ok_or(Corrupt::Foreign { what: "kind of value" })?;
    Ok(Record {
        key: key(&view.key, view.key_bytes)?,
        sequence: sequence(view.sequence.get())?,
        expiry: Expiry(view.expiry.get()),
        value,
    })
}

/// The name in front of the value of the record that `item` lists, if these are the record's first
/// bytes. Its checksum is of all of the record; the name proves itself by its hash.
pub fn decode_head(item: &Item, bytes: &[u8]) -> Result<Name, Corrupt> {
    let (view, rest) = RecordBytes::ref_from_prefix(bytes).map_err(|_| short(bytes, RECORD_HEADER_BYTES as usize))?;
    if view.key != *item.key.padded() || view.sequence.get() != item.sequence.0 {
        return Err(Corrupt::Foreign { what: "record" });
    }
    Name::of_record(&item.key, rest).ok_or(Corrupt::Foreign { what: "name" })
}

/// A page that begins with these bytes; of its records those before the first that is not whole.
pub fn decode_page<V: Value>(bytes: &[u8], seal: Seal) -> Result<Page<V>, Corrupt> {
    decode_pages_front(bytes, seal).map(|(page, _)| page)
}

fn page_header(bytes: &[u8], seal: Seal) -> Result<&PageBytes, Corrupt> {
    let (view, _) = PageBytes::ref_from_prefix(bytes).map_err(|_| short(bytes, PAGE_HEADER_BYTES as usize))?;
    magic(view.magic.get(), PAGE_MAGIC)?;
    seal.check(&bytes[8..PAGE_HEADER_BYTES as usize], view.checksum.get())?;
    Ok(view)
}

/// The same, and how many bytes the page needs at least if its next record is to be whole.
fn decode_pages_front<V: Value>(bytes: &[u8], seal: Seal) -> Result<(Page<V>, usize), Corrupt> {
    let view = page_header(bytes, seal)?;
    let mut page = Page { epoch: view.epoch.get(), records: Vec::new() };
    let mut at = PAGE_HEADER_BYTES as usize;
    for _ in 0..view.records.get() {
        match decode_record::<V>(bytes.get(at..).unwrap_or(&[]), seal) {
            Ok(record) => {
                at += record_bytes(record.value.bytes()) as usize;
                page.records.push(record);
            }
            Err(Corrupt::Short { needed, .. }) => return Ok((page, at + needed)),
            Err(_) => break,
        }
    }
    Ok((page, at))
}

/// The kind of the zone that begins with this sector, if it begins with something.
pub fn zone_kind(sector: &[u8], seal: Seal) -> Option<ZoneKind> {
    if bucket(sector, seal).is_ok() {
        return Some(ZoneKind::Segments);
    }
    let page = page_header(sector, seal).ok()?;
    Some(if page.records.get() == 0 { ZoneKind::Segments } else { ZoneKind::Records })
}

/// What a scan has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan<V> {
    /// All that is whole, with its first sector, in order.
    pub found: Vec<(u64, Content<V>)>,
    /// Sectors that it has gone through. The rest, if any, begins with something that goes on
    /// behind the bytes.
    pub sectors: u32,
    /// Bytes that the rest needs for that.
    pub needs: usize,
}

/// Finds all that is whole in a row of sectors, whose first bytes are given.
pub fn scan<V: Value>(extent: Extent, bytes: &[u8], seal: Seal) -> Scan<V> {
    let mut scan = Scan { found: Vec::new(), sectors: 0, needs: 0 };
    while scan.sectors < extent.sectors {
        let rest = bytes.get(scan.sectors as usize * SECTOR_BYTES as usize..).unwrap_or(&[]);
        let room = (extent.sectors - scan.sectors) as usize * SECTOR_BYTES as usize;
        match content(rest, room, seal) {
            Ok(content) => {
                let sector = extent.sector + u64::from(scan.sectors);
                scan.sectors = extent.sectors.min(scan.sectors + content.sectors());
                scan.found.push((sector, content));
            }
            Err(Corrupt::Short { needed, .. }) if rest.len() < room && needed <= room => {
                scan.needs = needed;
                break;
            }
            Err(_) => scan.sectors += 1,
        }
    }
    scan
}

/// What begins with these bytes and has `room` bytes at most.
fn content<V: Value>(bytes: &[u8], room: usize, seal: Seal) -> Result<Content<V>, Corrupt> {
    match decode_segment(bytes, seal) {
        Ok(segment) => return Ok(Content::Segment(Arc::new(segment))),
        // Of a chain, its next bucket.
        Err(Corrupt::Short { .. }) => return Err(short(bytes, bytes.len() + SECTOR_BYTES as usize)),
        Err(_) => {}
    }
    let (page, needed) = decode_pages_front(bytes, seal)?;
    if needed > bytes.len() && needed <= room {
        return Err(short(bytes, needed));
    }
    Ok(Content::Page(Arc::new(page)))
}

fn key(padded: &[u8; KEY_BYTES_MAX], length: u8) -> Result<Key, Corrupt> {
    let bytes = padded.get(..length.into()).ok_or_else(|| field("key_bytes", length))?;
    Key::new(bytes).map_err(|_| field("key_bytes", length))
}

fn sequence(got: u64) -> Result<Sequence, Corrupt> {
    if got > Sequence::MAX.0 { Err(field("sequence", got)) } else { Ok(Sequence(got)) }
}

fn short(bytes: &[u8], needed: usize) -> Corrupt {
    Corrupt::Short { got: bytes.len(), needed }
}

fn magic(got: u32, expected: u32) -> Result<(), Corrupt> {
    if got == expected { Ok(()) } else { Err(Corrupt::Magic { got, expected }) }
}

fn field(field: &'static str, got: impl Into<u64>) -> Corrupt {
    Corrupt::Field { field, got: got.into() }
}
