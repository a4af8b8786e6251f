//! Packets from the target to a host.

use super::TargetOut;
use super::flight::Flight;
use crate::id::Port;
use crate::packet::{Outcome, Packet, PacketKind};
use crate::wire::WireFormat;
use base::{Operation, Time};
use nvme::transfer::TargetRead;

/// Asks for the data that the flight's transfer has just asked for.
pub(super) fn ready(format: &WireFormat, flight: &Flight, credit: u32, out: &mut Vec<TargetOut>) {
    let kind = PacketKind::ReadyToTransfer;
    let base = Packet { credit, status: Outcome::Success, ..turned(&flight.packet, 0) };
    push(format, flight.port, &base, kind, 0, flight.received(), out);
}

/// Everything that a flight that is over is answered with: data of a read that succeeded, and a response unless the last data say success.
pub(super) fn all(
    format: &WireFormat,
    now: Time,
    flight: &Flight,
    outcome: Outcome,
    credit: u32,
    out: &mut Vec<TargetOut>,
) {
    // Wrapping like every time in the header.
    let drive_latency_ns = (now.saturating_since(flight.ready_at).as_ps() / 1_000) as u32;
    if flight.packet.operation == Operation::Read && outcome == Outcome::Success {
        let needs_response = data(format, flight, drive_latency_ns, credit, out);
        if !needs_response {
            return;
        }
    }
    respond(format, flight.port, &flight.packet, drive_latency_ns, outcome, credit, out);
}

/// Data of a read; whether a response has to follow.
fn data(format: &WireFormat, flight: &Flight, drive_latency_ns: u32, credit: u32, out: &mut Vec<TargetOut>) -> bool {
    let Packet { tag, bytes, .. } = flight.packet;
    let (pdu_max, may_flag) = (format.config().controller_data_max, format.config().success_flag);
    let base = Packet { credit, status: Outcome::Success, ..turned(&flight.packet, drive_latency_ns) };
    let mut read = TargetRead::new(tag.command, bytes, pdu_max, may_flag);
    while let Some(pdu) = read.next_data() {
        let (mut offset, end) = (pdu.offset, pdu.offset + pdu.length);
        while offset < end {
            let payload = format.segment(offset, end, pdu_max);
            let kind = PacketKind::ReadData { last: offset + payload == bytes };
            push(format, flight.port, &base, kind, payload, offset, out);
            offset += payload;
        }
    }
    read.needs_response()
}

/// A response to `packet`.
pub(super) fn respond(
    format: &WireFormat,
    port: Port,
    packet: &Packet,
    drive_latency_ns: u32,
    outcome: Outcome,
    credit: u32,
    out: &mut Vec<TargetOut>,
) {
    let base = Packet { credit, status: outcome, ..turned(packet, drive_latency_ns) };
    push(format, port, &base, PacketKind::Response, 0, 0, out);
}

fn turned(packet: &Packet, drive_latency_ns: u32) -> Packet {
    Packet { trail: packet.trail.turned_at_target(drive_latency_ns), ..*packet }
}

fn push(
    format: &WireFormat,
    port: Port,
    base: &Packet,
    kind: PacketKind,
    payload: u32,
    offset: u32,
    out: &mut Vec<TargetOut>,
) {
    let frame = format.frame_with(kind, payload, offset, &base.trail);
    out.push(TargetOut::Send { port, packet: Packet { kind, payload, frame, ..*base } });
}
