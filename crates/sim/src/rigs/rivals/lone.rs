//! The end-to-end time of a lone request, from that of its messages.

use crate::rigs::packet::{Departures, Pacing, PacketRigConfig, Path, Unloaded, WORD};
use base::{Bytes, NodeId, Operation, Span, Time};
use hardware::Dram;
use transport::cost::{MODIFY_REQUEST, Part, Train};

/// The nodes of a network.
pub(super) fn nodes(rig: &PacketRigConfig) -> impl Iterator<Item = NodeId> {
    (0..rig.nodes).map(NodeId)
}

/// Trips and memory one after the other. An acknowledgement of the request leaves the target before
/// the answer, which waits for it if memory was quicker.
pub(super) fn closed_form(
    rig: &PacketRigConfig,
    pacing: Pacing,
    train: impl Fn(Part, Bytes) -> Train + Send + 'static,
) -> Unloaded {
    let (path, request, memory) = (Path::new(rig), rig.read_request_bytes, rig.memory);
    let departures = Departures::new(&path, &train(Part::Write, request), pacing);
    Box::new(move |operation, bytes| {
        let message = |part, bytes| path.lone_message(&train(part, bytes), &departures);
        let (ask, access) = match operation {
            Operation::Write => return message(Part::Write, bytes),
            Operation::Read => (request, memory.access(bytes)),
            Operation::ReadModifyWrite => (MODIFY_REQUEST, memory.access(WORD)),
        };
        let acknowledged = path.serialization(train(Part::Ask, ask).acknowledgement);
        message(Part::Ask, ask) + access.max(acknowledged) + message(Part::Answer, bytes)
    })
}

/// The time of a lone request whose messages, submitted at a time, are there at `message` of that
/// time and their size.
pub(super) fn request_of_messages(
    rig: &PacketRigConfig,
    message: impl Fn(Time, Bytes) -> Time + Send + 'static,
) -> Unloaded {
    let (memory, read_request) = (rig.memory, rig.read_request_bytes);
    let asked = move |request, accessed, bytes| {
        let there = message(Time::ZERO, request);
        match accessed {
            None => there,
            Some(accessed) => message(Dram::new(memory).submit(there, accessed), bytes),
        }
    };
    Box::new(move |operation, bytes| {
        let end = match operation {
            Operation::Write => asked(bytes, None, bytes),
            Operation::Read => asked(read_request, Some(bytes), bytes),
            Operation::ReadModifyWrite => asked(MODIFY_REQUEST, Some(WORD), bytes),
        };
        end - Time::ZERO
    })
}

/// When a packet is there that has left the sender at `last.0`, if the one before it left at
/// `before.0`; second are their wire bytes. A short packet waits in the switch for the long one
/// before it.
pub(super) fn behind(path: &Path, before: (Span, u32), last: (Span, u32)) -> Span {
    let first_hop = |wire| path.trip(wire) - path.fixed() - path.serialization(wire);
    let switch_is_free = before.0 + first_hop(before.1) + path.serialization(before.1);
    let forwarded = switch_is_free.max(last.0 + first_hop(last.1));
    forwarded + path.serialization(last.1) + path.fixed()
}

/// When the packet `index` of a window of `window` packets starts, if nothing else limits it but
/// its predecessor.
pub(super) fn paced(index: u64, window: u64, packet: Span, round_trip: Span) -> Span {
    if packet * window >= round_trip {
        return packet * index;
    }
    round_trip * (index / window) + packet * (index % window)
}
