//! What things weigh on the wire, and, in a checked run, that they come out of their bytes as they went in.

use super::IoWork;
use hardware::Verb;
use scalio::baseline::ditto::{PoolGeometry, PoolRequest};
use scalio::baseline::leed;
use scalio::layout::{
    block_bytes, decode_page, decode_reply, decode_request, decode_segment, encode_content, encode_reply,
    encode_request,
};
use scalio::{
    Content, Extent, FlashOperation, MemoryOperation, Operation, Reply, Request, RequestBody, SECTOR_BYTES, Token,
    Value,
};

/// An NVMe-oF command: its entry of 64 B and the address of the buffer.
pub const COMMAND: u32 = 80;
/// What a verb without data carries: address, key and length, and no more than that.
pub const REQUEST: u32 = 16;
/// Header of a call and of its answer, ours as in Scalio's messages.
const HEADER: u32 = 32;
/// An answer without data.
pub const REPLY: u32 = HEADER;
/// A compare-and-swap carries two words besides its address.
const SWAP: u32 = 32;
const WORD: u32 = 8;

/// What a client's operation on the index carries to the box.
pub fn carried(operation: &MemoryOperation<Token>) -> u32 {
    match operation {
        MemoryOperation::ReadBlock => REQUEST,
        MemoryOperation::Swap { .. } => SWAP,
        MemoryOperation::WritePayload { payload, .. } => REQUEST + payload_bytes(payload.value.bytes()),
        _ => REQUEST + WORD,
    }
}

/// Version, time, length and checksum, key, value.
fn payload_bytes(value: u32) -> u32 {
    16 + scalio::KEY_BYTES_MAX as u32 + value
}

/// Which verb it is, and what comes back.
pub fn of_verb(operation: &MemoryOperation<Token>, slots: u8) -> (Verb, u32) {
    match operation {
        MemoryOperation::ReadBlock => (Verb::Read, block_bytes(slots) as u32),
        MemoryOperation::Swap { .. } => (Verb::Swap, WORD),
        _ => (Verb::Write, 0),
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
    if !wire_check {
        let bytes = HEADER + body_bytes(&request.body);
        return (request, bytes);
    }
    let bytes = encode_request(&request);
    let read = decode_request(&bytes).expect("a request is read as it was written");
    assert_eq!(read, request, "a request is read as it was written");
    let told = HEADER + body_bytes(&request.body);
    assert_eq!(bytes.len() as u32, told, "a request has the bytes that it is sent with");
    (read, told)
}

/// A key with its length, a time to live, values with whether they are there and their length.
fn body_bytes(body: &RequestBody<Token>) -> u32 {
    let key = 1 + body.key().as_bytes().len() as u32;
    let value = |value: Option<&Token>| value.map_or(1, |value| 2 + value.bytes());
    match body {
        RequestBody::Put { value: stored, time_to_live, .. } => {
            key + if time_to_live.is_some() { 8 } else { 0 } + value(Some(stored))
        }
        RequestBody::Delete { .. } => key,
        RequestBody::CompareAndSwap { expected, new, .. } => key + value(expected.as_ref()) + value(Some(new)),
    }
}

/// A reply and its bytes.
pub fn of_reply(reply: Reply<Token>, wire_check: bool) -> (Reply<Token>, u32) {
    if !wire_check {
        return (reply, REPLY);
    }
    let bytes = encode_reply(&reply);
    let read = decode_reply(&bytes).expect("a reply is read as it was written");
    assert_eq!(read, reply, "a reply is read as it was written");
    (read, REPLY)
}

/// A call of LEED and its bytes.
pub fn of_call(call: leed::Call<Token>, _wire_check: bool) -> (leed::Call<Token>, u32) {
    let bytes = match &call.operation {
        Operation::Get { key } => HEADER + 1 + key.as_bytes().len() as u32,
        Operation::Update(body) => HEADER + body_bytes(body),
    };
    (call, bytes)
}

/// An answer of LEED and its bytes.
pub fn of_answer(answer: leed::Answer<Token>, _wire_check: bool) -> (leed::Answer<Token>, u32) {
    let bytes = match &answer.result {
        leed::CallResult::Value(Some(value)) => REPLY + 2 + value.bytes(),
        _ => REPLY,
    };
    (answer, bytes)
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
        let bytes = encode_content(content);
        match content {
            Content::Segment(segment) => {
                assert_eq!(
                    decode_segment(&bytes).as_ref(),
                    Ok(segment.as_ref()),
                    "a segment is read as it was written"
                );
            }
            Content::Page(page) => {
                assert_eq!(decode_page(&bytes).as_ref(), Ok(page.as_ref()), "a page is read as it was written");
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
