//! The index and the log as bytes. Each part has a *view*, the bytes in place, and a meaning, which
//! the programs use.
//!
//! | view | meaning | bytes |
//! | --- | --- | --- |
//! | [`HeaderBytes`] | [`BlockHeader`](crate::BlockHeader) | 16, at the start of a block |
//! | [`SlotBytes`] | [`Slot`](crate::Slot) | 112 for each slot of a block |
//! | [`BucketBytes`], [`ItemBytes`] | [`Segment`](crate::Segment) | 512 a bucket: 32 and 15 times 32 |
//! | [`PageBytes`], [`RecordBytes`] | [`Page`](crate::Page) | 16, then the records |
//!
//! A record is 40 B and its value, up to the next 16. All are little endian, and all words of 8 B
//! are aligned. Checksums are CRC-32C, those on flash begun with the store's [`Seal`]. Bytes with a
//! wrong checksum have no meaning: they are [`Corrupt`](crate::Corrupt), or a slot without payload.

mod flash;
mod memory;
mod message;

pub use flash::{
    BucketBytes, ItemBytes, PageBytes, RecordBytes, Scan, Seal, decode_head, decode_page, decode_record,
    decode_segment, encode_content, scan, zone_kind,
};
pub use memory::{
    HeaderBytes, SLOT_BYTES, SlotBytes, block_bytes, decode_block, decode_block_unchecked, decode_header, decode_slot,
    encode_block, encode_header, encode_payload, encode_slot, offset,
};
pub use message::{
    MessageError, decode_reply, decode_request, encode_reply, encode_request, reply_bytes, request_bytes,
};
