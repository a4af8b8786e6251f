//! Packets from the target to a host.

use super::TargetOut;
use super::flight::Flight;
use crate::id::Port;
use crate::packet::{Outcome, Packet, PacketKind};
use crate::wire::WireFormat;
use base::{Operation, Time};
use nvme::transfer::TargetRead;

/// Requests the data that the flight's transfer has just scheduled.
pub(super) fn ready(format: &WireFormat, flight: &Flight, credit: u32, out: &mut Vec<TargetOut>) {
    let kind = PacketKind::ReadyToTransfer;
    let answer = Answer { port: flight.port, credit, status: Outcome::Success, drive_latency_ns: 0 };
    answer.push(format, &flight.packet, kind, 0, flight.received(), out);
}

/// Sends the complete answer of a finished flight: data of a successful read, and a response unless
/// the last data indicate success.
pub(super) fn all(
    format: &WireFormat,
    now: Time,
    flight: &Flight,
    outcome: Outcome,
    credit: u32,
    out: &mut Vec<TargetOut>,
) {
    // Wraps like every time in the header.
    let drive_latency_ns = (now.saturating_since(flight.ready_at).as_ps() / 1_000) as u32;
    let answer = Answer { port: flight.port, credit, status: outcome, drive_latency_ns };
    let has_data = flight.packet.operation == Operation::Read && outcome == Outcome::Success;
    if !has_data || answer.data(format, &flight.packet, out) {
        answer.push(format, &flight.packet, PacketKind::Response, 0, 0, out);
    }
}

/// Sends a response to `packet`.
pub(super) fn respond(
    format: &WireFormat,
    port: Port,
    packet: &Packet,
    status: Outcome,
    credit: u32,
    out: &mut Vec<TargetOut>,
) {
    let answer = Answer { port, credit, status, drive_latency_ns: 0 };
    answer.push(format, packet, PacketKind::Response, 0, 0, out);
}

/// The common fields of all packets of an answer.
struct Answer {
    port: Port,
    credit: u32,
    status: Outcome,
    drive_latency_ns: u32,
}

impl Answer {
    /// Sends the data of a read. Returns whether a response must follow.
    fn data(&self, format: &WireFormat, request: &Packet, out: &mut Vec<TargetOut>) -> bool {
        let Packet { tag, bytes, .. } = *request;
        let (pdu_max, may_flag) = (format.config().controller_data_max, format.config().success_flag);
        let mut read = TargetRead::new(tag.command, bytes, pdu_max, may_flag);
        while let Some(pdu) = read.next_data() {
            let (mut offset, end) = (pdu.offset, pdu.offset + pdu.length);
            while offset < end {
                let payload = format.segment(offset, end, pdu_max);
                let kind = PacketKind::ReadData { last: offset + payload == bytes };
                self.push(format, request, kind, payload, offset, out);
                offset += payload;
            }
        }
        read.needs_response()
    }

    /// Appends a packet of the answer to `request`, which is copied once, into its place in `out`.
    fn push(
        &self,
        format: &WireFormat,
        request: &Packet,
        kind: PacketKind,
        payload: u32,
        offset: u32,
        out: &mut Vec<TargetOut>,
    ) {
        let frame = format.frame_with(kind, payload, offset, &request.trail);
        let (credit, status) = (self.credit, self.status);
        out.push(TargetOut::Send {
            port: self.port,
            packet: Packet { kind, payload, frame, credit, status, ..request.copied() },
        });
        let Some(TargetOut::Send { packet, .. }) = out.last_mut() else { return };
        packet.trail.turn_at_target(self.drive_latency_ns);
    }
}
