//! A block in memory that is read from afar, word by word.

use crate::{
    Block, BlockHeader, Expiry, Extent, KEY_BYTES_MAX, Key, Payload, SegmentPointer, Slot, SlotWord, VALUE_BYTES_MAX,
    Value, Version,
};
use base::Time;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// In front of a block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct HeaderBytes {
    /// Sector (34 bits), buckets (6), tag (24). 1: no segment. 0: no block, since its server has
    /// not made the memory its own yet. Stored as one word, so that there is no reading half of it.
    pub segment: U64,
    /// Epoch of the server.
    pub epoch: U32,
    /// 0.
    pub reserved: U32,
}

/// A slot.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SlotBytes {
    /// [`SlotWord`].
    pub word: U64,
    /// Picoseconds.
    pub last_use: U64,
    /// Version under which what follows was written.
    pub version: U32,
    /// Of what follows, up to the end of the value.
    pub checksum: U32,
    /// Length of the key; 0: nothing was ever written.
    pub key_bytes: u8,
    /// 0.
    pub reserved: u8,
    /// Length of the value.
    pub value_bytes: U16,
    /// [`Expiry`].
    pub expiry: U32,
    /// The key, the rest 0.
    pub key: [u8; KEY_BYTES_MAX],
    /// The value, the rest of no meaning.
    pub value: [u8; VALUE_BYTES_MAX as usize],
}

/// Bytes of a slot.
pub const SLOT_BYTES: usize = size_of::<SlotBytes>();
const HEADER_BYTES: usize = size_of::<HeaderBytes>();
const NO_SEGMENT: u64 = 1;

/// Bytes of a block with this many slots.
pub const fn block_bytes(slots: u8) -> usize {
    HEADER_BYTES + slots as usize * SLOT_BYTES
}

/// Where things lie in the memory of all blocks: what one-sided operations address.
pub mod offset {
    use super::{HEADER_BYTES, SLOT_BYTES, block_bytes};

    /// Of a block.
    pub const fn block(block: u32, slots: u8) -> u64 {
        block as u64 * block_bytes(slots) as u64
    }
    /// Of a slot's word within its block.
    pub const fn word(slot: u8) -> usize {
        HEADER_BYTES + slot as usize * SLOT_BYTES
    }
    /// Of its last use.
    pub const fn last_use(slot: u8) -> usize {
        word(slot) + 8
    }
    /// Of its payload: from the version to the end of the slot.
    pub const fn payload(slot: u8) -> usize {
        word(slot) + 16
    }
}

/// A header as bytes.
pub fn encode_header(header: &BlockHeader) -> HeaderBytes {
    let word = |pointer: &SegmentPointer| {
        pointer.extent.sector << 30 | u64::from(pointer.extent.sectors) << 24 | u64::from(pointer.tag)
    };
    HeaderBytes {
        segment: header.segment.as_ref().map_or(NO_SEGMENT, word).into(),
        epoch: header.epoch.into(),
        reserved: U32::ZERO,
    }
}

/// What a header says; `None` where there is none.
pub fn decode_header(view: &HeaderBytes) -> Option<BlockHeader> {
    let word = view.segment.get();
    if word == 0 {
        return None;
    }
    let extent = Extent { sector: word >> 30, sectors: (word >> 24) as u32 & 0x3f };
    let pointer = SegmentPointer { extent, tag: word as u32 & 0xff_ffff };
    Some(BlockHeader { epoch: view.epoch.get(), segment: (extent.sectors > 0).then_some(pointer) })
}

/// A slot as bytes.
pub fn encode_slot<V: Value>(slot: &Slot<V>) -> SlotBytes {
    let mut view = slot.payload.as_ref().map_or_else(SlotBytes::empty, encode_payload);
    view.word = slot.word.0.into();
    view.last_use = slot.last_use.as_ps().into();
    view
}

/// A payload as bytes; the slot's words are 0.
pub fn encode_payload<V: Value>(payload: &Payload<V>) -> SlotBytes {
    let mut value = Vec::with_capacity(VALUE_BYTES_MAX as usize);
    payload.value.encode(&mut value);
    let mut view = SlotBytes {
        version: payload.version.0.into(),
        key_bytes: payload.key.as_bytes().len() as u8,
        value_bytes: (value.len() as u16).into(),
        expiry: payload.expiry.0.into(),
        key: *payload.key.padded(),
        ..SlotBytes::empty()
    };
    view.value[..value.len()].copy_from_slice(&value);
    view.checksum = view.sum().into();
    view
}

impl SlotBytes {
    fn empty() -> SlotBytes {
        SlotBytes::read_from_bytes(&[0; SLOT_BYTES]).expect("zeros of the right length are a slot")
    }
    fn sum(&self) -> u32 {
        let end = usize::from(self.value_bytes.get()).min(self.value.len());
        let head = crc32c::crc32c(self.version.as_bytes());
        let middle = crc32c::crc32c_append(head, &self.as_bytes()[24..48]);
        crc32c::crc32c_append(middle, &self.value[..end])
    }
}

/// What a slot says; without a payload where that is torn or was never written.
pub fn decode_slot<V: Value>(view: &SlotBytes) -> Slot<V> {
    Slot { word: SlotWord(view.word.get()), last_use: Time::ps(view.last_use.get()), payload: payload(view) }
}

fn payload<V: Value>(view: &SlotBytes) -> Option<Payload<V>> {
    if view.sum() != view.checksum.get() {
        return None;
    }
    unchecked_payload(view, None)
}

/// The meaning of a payload's bytes, by any mix of writers; `no_value` replaces an invalid value.
fn unchecked_payload<V: Value>(view: &SlotBytes, no_value: Option<V>) -> Option<Payload<V>> {
    let key = Key::new(view.key.get(..usize::from(view.key_bytes))?).ok()?;
    let value = view.value.get(..usize::from(view.value_bytes.get())).and_then(V::decode).or(no_value)?;
    Some(Payload { version: Version(view.version.get()), key, value, expiry: Expiry(view.expiry.get()) })
}

/// A block as bytes; without a header its server has not made the memory its own.
pub fn encode_block<V: Value>(header: Option<&BlockHeader>, slots: impl Iterator<Item = Slot<V>>) -> Vec<u8> {
    let mut bytes = header.map_or_else(|| vec![0; HEADER_BYTES], |header| encode_header(header).as_bytes().to_vec());
    slots.for_each(|slot| bytes.extend_from_slice(encode_slot(&slot).as_bytes()));
    bytes
}

/// [`decode_block`] for the paper's protocol, whose payloads have no checksum: any content is
/// accepted. `no_value` replaces invalid bytes.
pub fn decode_block_unchecked<V: Value>(bytes: &[u8], no_value: &V) -> Option<Block<V>> {
    let (header, rest) = HeaderBytes::ref_from_prefix(bytes).ok()?;
    let slots = <[SlotBytes]>::ref_from_bytes(rest).ok()?;
    let slot =
        |view: &SlotBytes| Slot { payload: unchecked_payload(view, Some(no_value.clone())), ..decode_slot(view) };
    Some(Block { header: decode_header(header)?, slots: slots.iter().map(slot).collect() })
}

/// What a block's bytes say; `None` where they are no header and whole slots: for a client, such a
/// block is unreachable.
pub fn decode_block<V: Value>(bytes: &[u8]) -> Option<Block<V>> {
    let (header, rest) = HeaderBytes::ref_from_prefix(bytes).ok()?;
    let slots = <[SlotBytes]>::ref_from_bytes(rest).ok()?;
    Some(Block { header: decode_header(header)?, slots: slots.iter().map(decode_slot).collect() })
}
