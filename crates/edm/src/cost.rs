//! What a request costs: bytes on each link, and its time alone in the network, in closed form.

use crate::budget::{CROSSINGS, Delays, HOPS, slot};
use crate::config::{Config, Place};
use crate::message::{Body, Modify};
use crate::pcs::memory as encoded;
use base::{Bytes, Operation, Span};
use transport::cost::WireCost;

/// Payload bytes of a 66-bit block.
const BLOCK_BYTES: u64 = 8;

/// The RMWREQ that represents [`Operation::ReadModifyWrite`] if the workload names no operation.
pub const REPRESENTATIVE_MODIFY: Modify = Modify::FetchAndAdd { addend: 1 };

/// The request message of a read or read-modify-write.
fn request_body(operation: Operation, bytes: u64) -> Body {
    match operation {
        Operation::ReadModifyWrite => Body::ReadModifyWrite { address: 0, modify: REPRESENTATIVE_MODIFY },
        Operation::Read | Operation::Write => Body::ReadRequest { address: 0, bytes: bytes as u32 },
    }
}

/// Bytes of data that a request moves: what it says, or the answer of the read-modify-write.
pub fn data_bytes(operation: Operation, bytes: Bytes) -> u64 {
    match operation {
        Operation::ReadModifyWrite => u64::from(REPRESENTATIVE_MODIFY.response_bytes()),
        Operation::Read | Operation::Write => bytes.count(),
    }
}

/// The chunks that the data of a request make.
struct Chunks {
    count: u64,
    /// Blocks of all of them.
    blocks: u64,
    /// Blocks of the last one.
    last: u64,
}

fn chunks_of(config: &Config, operation: Operation, bytes: Bytes) -> Chunks {
    let blocks = |chunk: u64| match operation {
        Operation::Write => encoded::write_blocks(chunk as u32),
        Operation::Read | Operation::ReadModifyWrite => encoded::response_blocks(chunk as u32),
    };
    let (data, chunk) = (data_bytes(operation, bytes), config.chunk.count());
    let (whole, rest) = (data / chunk, data % chunk);
    let rest_blocks = if rest == 0 { 0 } else { blocks(rest) };
    let last = if rest == 0 { blocks(chunk) } else { rest_blocks };
    Chunks { count: whole + u64::from(rest > 0), blocks: whole * blocks(chunk) + rest_blocks, last }
}

/// Bytes that a lone request puts on each direction of its two links: blocks of data, RREQ, /N/ and
/// /G/.
pub fn wire_cost(config: &Config, operation: Operation, bytes: Bytes) -> WireCost {
    let Chunks { count: chunks, blocks: data, .. } = chunks_of(config, operation, bytes);
    let blocks = if operation == Operation::Write {
        WireCost {
            requester_up: encoded::NOTIFICATION_BLOCKS + data,
            requester_down: chunks * encoded::GRANT_BLOCKS,
            target_up: 0,
            target_down: data,
        }
    } else {
        let request = encoded::message_blocks(&request_body(operation, bytes.count()));
        WireCost {
            requester_up: request,
            requester_down: data,
            target_up: data,
            target_down: request + (chunks - 1) * encoded::GRANT_BLOCKS,
        }
    };
    WireCost {
        requester_up: blocks.requester_up * BLOCK_BYTES,
        requester_down: blocks.requester_down * BLOCK_BYTES,
        target_up: blocks.target_up * BLOCK_BYTES,
        target_down: blocks.target_down * BLOCK_BYTES,
    }
}

/// The time on the wire that counts for a lone request: its control messages, then all of its data
/// in one stream.
pub fn serialization(config: &Config, place: &Place, operation: Operation, bytes: Bytes) -> Span {
    let chunks = chunks_of(config, operation, bytes);
    let control = if operation == Operation::Write {
        encoded::NOTIFICATION_BLOCKS + encoded::GRANT_BLOCKS
    } else {
        2 * encoded::message_blocks(&request_body(operation, bytes.count()))
    };
    place.blocks(control + chunks.blocks)
}

/// What a lone request takes beyond that because each of its chunks is granted a slot after the
/// last one; zero without slots. A memory that delays its first chunk hides it, and so does the
/// RREQ, which is longer on its way than the /G/ of the next chunk.
pub fn slot_gaps(config: &Config, place: &Place, operation: Operation, bytes: Bytes) -> Span {
    let chunks = chunks_of(config, operation, bytes);
    let granted = slot(config, place).unwrap_or(Span::ZERO) * chunks.count.saturating_sub(1);
    let first = if operation == Operation::Write {
        Span::ZERO
    } else {
        let (delays, request) = (Delays::new(config), request_body(operation, bytes.count()));
        let served = delays.take_request + delays.make_response + place.blocks(encoded::message_blocks(&request));
        served.saturating_sub(delays.take_grant + place.blocks(encoded::GRANT_BLOCKS))
    };
    granted.saturating_sub(place.blocks(chunks.blocks - chunks.last) + first)
}

/// The end-to-end time of a lone request, from the application's call to the last byte at the
/// application (read) or at the memory controller (write). `transceiver` is one crossing of PMA,
/// PMD and transceiver, `propagation` one hop. With slotted matching, [`slot_gaps`] come on top,
/// and less than a slot until the next one begins.
pub fn unloaded(
    config: &Config,
    place: &Place,
    transceiver: Span,
    propagation: Span,
    operation: Operation,
    bytes: Bytes,
) -> Span {
    let delays = Delays::new(config);
    let logic = if operation == Operation::Write { delays.write_logic() } else { delays.read_logic() };
    logic + (delays.pcs + transceiver) * CROSSINGS + propagation * HOPS + serialization(config, place, operation, bytes)
}

/// From the application's call to the grant of a lone write, when its first chunk may be made: what
/// a read of the source's memory overlaps.
pub fn until_granted(config: &Config, place: &Place, transceiver: Span, propagation: Span) -> Span {
    let delays = Delays::new(config);
    let hop = (delays.pcs + transceiver) * 2 + propagation;
    let logic = delays.make_request + delays.insert + delays.iteration + delays.emit + delays.take_grant;
    logic + hop * 2 + place.blocks(encoded::NOTIFICATION_BLOCKS + encoded::GRANT_BLOCKS)
}
