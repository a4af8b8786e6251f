//! What things weigh on the wire, and, in a checked run, that they come out of their bytes as they
//! went in.

use super::IoWork;
use hardware::Verb;
use scalio::baseline::ditto::{PoolGeometry, PoolRequest};
use scalio::baseline::leed;
use scalio::layout::{
    MessageError, Seal, block_bytes, decode_block, decode_page, decode_reply, decode_request, decode_segment,
    encode_block, encode_content, encode_reply, encode_request, reply_bytes, request_bytes,
};
use scalio::{
    Content, Extent, FlashOperation, MemoryAnswer, MemoryOperation, Reply, Request, SECTOR_BYTES, Token, Value,
};
use std::fmt::Debug;

/// An NVMe-oF command: its entry of 64 B and the address of the buffer.
pub const COMMAND: u32 = 80;
/// What a verb without data carries: address, key and length, and no more than that.
pub const REQUEST: u32 = 16;
/// What gives out a chunk of Ditto's pool: as long as a message of Scalio without key and value.
pub const REPLY: u32 = 32;
/// A compare-and-swap carries two words besides its address.
const SWAP: u32 = 32;
/// A word.
pub const WORD: u32 = 8;
/// What stands in front of a block.
pub const BLOCK_HEADER: u32 = block_bytes(0) as u32;

/// Messages of a client's operation on the index, and what each carries to the box. A check is
/// three reads.
pub fn carried(operation: &MemoryOperation<Token>) -> (u32, u32) {
    match operation {
        MemoryOperation::ReadBlock => (1, REQUEST),
        MemoryOperation::Check { .. } => (3, REQUEST),
        MemoryOperation::Swap { .. } => (1, SWAP),
        MemoryOperation::WritePayload { payload, .. } => (1, REQUEST + payload_bytes(payload.value.bytes())),
        MemoryOperation::Touch { .. }
        | MemoryOperation::StoreFlags { .. }
        | MemoryOperation::Publish { .. }
        | MemoryOperation::Close
        | MemoryOperation::Reset { .. } => (1, REQUEST + WORD),
    }
}

/// Version, time, length and checksum, key, value.
pub fn payload_bytes(value: u32) -> u32 {
    16 + scalio::KEY_BYTES_MAX as u32 + value
}

/// Which verb it is, and what comes back; of a check, what comes back of its first.
pub fn of_verb(operation: &MemoryOperation<Token>, slots: u8) -> (Verb, u32) {
    match operation {
        MemoryOperation::ReadBlock | MemoryOperation::Check { .. } => (Verb::Read, block_bytes(slots) as u32),
        MemoryOperation::Swap { .. } => (Verb::Swap, WORD),
        MemoryOperation::WritePayload { .. }
        | MemoryOperation::Touch { .. }
        | MemoryOperation::StoreFlags { .. }
        | MemoryOperation::Publish { .. }
        | MemoryOperation::Close
        | MemoryOperation::Reset { .. } => (Verb::Write, 0),
    }
}

/// The same of Ditto's.
pub fn of_pool(operation: &PoolRequest<Token>, geometry: &PoolGeometry) -> (Verb, u32) {
    let verb = match operation {
        PoolRequest::ReadBuckets { .. } | PoolRequest::ReadObject { .. } => Verb::Read,
        PoolRequest::Swap { .. } => Verb::Swap,
        PoolRequest::WriteObject { .. } | PoolRequest::Touch { .. } | PoolRequest::Describe { .. } => Verb::Write,
    };
    (verb, operation.answer_bytes(geometry))
}

/// What an offloaded read brings back.
pub fn of_read(operation: &FlashOperation<Token>) -> u32 {
    operation.extent().map_or(0, |extent| extent.sectors * SECTOR_BYTES)
}

/// A request and its bytes.
pub fn of_request(request: Request<Token>, wire_check: bool) -> (Request<Token>, u32) {
    let told = request_bytes(&request.body);
    carried_as_told(request, told, wire_check, encode_request, decode_request)
}

/// A reply and its bytes.
pub fn of_reply(reply: Reply<Token>, wire_check: bool) -> (Reply<Token>, u32) {
    let told = reply_bytes(&reply.result);
    carried_as_told(reply, told, wire_check, encode_reply, decode_reply)
}

/// A call of LEED and its bytes.
pub fn of_call(call: leed::Call<Token>, wire_check: bool) -> (leed::Call<Token>, u32) {
    let told = leed::call_bytes(&call);
    carried_as_told(call, told, wire_check, leed::encode_call, leed::decode_call)
}

/// An answer of LEED and its bytes.
pub fn of_answer(answer: leed::Answer<Token>, wire_check: bool) -> (leed::Answer<Token>, u32) {
    let told = leed::answer_bytes(&answer);
    carried_as_told(answer, told, wire_check, leed::encode_answer, leed::decode_answer)
}

/// A message and its bytes; in a checked run what comes out of its bytes, which are as many as
/// told.
fn carried_as_told<M: PartialEq + Debug>(
    message: M,
    told: usize,
    wire_check: bool,
    encode: fn(&M) -> Vec<u8>,
    decode: fn(&[u8]) -> Result<M, MessageError>,
) -> (M, u32) {
    if !wire_check {
        return (message, told as u32);
    }
    let bytes = encode(&message);
    assert_eq!(bytes.len(), told, "a message has the bytes that it is sent with");
    let read = decode(&bytes).expect("a message is read as it was written");
    assert_eq!(read, message, "a message is read as it was written");
    (read, told as u32)
}

/// A block comes out of its bytes as it went in.
pub fn check_block(answer: &MemoryAnswer<Token>) {
    if let MemoryAnswer::Block(block) | MemoryAnswer::Checked { block, .. } = answer {
        let read = decode_block(&encode_block(Some(&block.header), block.slots.iter().copied()));
        assert_eq!(read.as_ref(), Some(block), "a block is read as it was written");
    }
}

/// A payload comes out of its bytes as it went in.
pub fn check_memory(operation: &MemoryOperation<Token>) {
    if let MemoryOperation::WritePayload { payload, .. } = operation {
        let slot =
            scalio::Slot { word: scalio::SlotWord::fresh(0), last_use: base::Time::ZERO, payload: Some(*payload) };
        let read = scalio::layout::decode_slot::<Token>(&scalio::layout::encode_slot(&slot));
        assert_eq!(read.payload.as_ref(), Some(payload), "a payload is read as it was written");
    }
}

/// What is written to a device comes out of its bytes as it went in.
pub fn check_flash(work: &IoWork) {
    if let IoWork::Operation(FlashOperation::Write { content, .. }) = work {
        let bytes = encode_content(content, Seal::default());
        match content {
            Content::Segment(segment) => {
                assert_eq!(
                    decode_segment(&bytes, Seal::default()).as_ref(),
                    Ok(segment.as_ref()),
                    "a segment is read as it was written"
                );
            }
            Content::Page(page) => {
                assert_eq!(
                    decode_page(&bytes, Seal::default()).as_ref(),
                    Ok(page.as_ref()),
                    "a page is read as it was written"
                );
            }
        }
    }
}

/// From the first to the last of what is written at once.
pub fn run_extent(contents: &[(u64, Content<Token>)]) -> Option<Extent> {
    let end = |(sector, content): &(u64, Content<Token>)| {
        sector
            + u64::from(match content {
                Content::Segment(segment) => segment.sectors(),
                Content::Page(page) => page.sectors(),
            })
    };
    let first = contents.iter().map(|(sector, _)| *sector).min()?;
    let last = contents.iter().map(end).max()?;
    Some(Extent { sector: first, sectors: (last - first) as u32 })
}
