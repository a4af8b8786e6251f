//! Packets as bytes: NVMe/TCP PDUs, the header of this design, and sizes on an Ethernet wire.
//!
//! Data of an I/O go in PDUs of at most a negotiated length, and those in *segments*. A segment is
//! one packet of the simulator, and may be several Ethernet frames back to back. The header of this
//! design ([`EXTENSION_BYTES`] of its own and the [`Trail`]) follows the PDU header of every
//! packet.
//!
//! The bytes omit what TCP provides: the connection (session, lane, generation), the offset in it,
//! and so the request.

mod codec;
mod volume;

pub use codec::{EXTENSION_BYTES, WireError, decode, encode};
pub use volume::{Volume, VolumeModel};

use crate::packet::{Packet, PacketKind};
use crate::trail::Trail;
use base::{Bytes, Operation};
use nvme::Cqe;
use nvme::pdu::{Framing, Header, PduKind};
use nvme::transfer::Carriage;
use nvme::wire::{MtuError, Packets};

/// The wire format of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireConfig {
    /// Ethernet payload, bytes: 1,500 or 9,000.
    pub mtu: u32,
    /// Bytes of TCP options: 12 with timestamps (RFC 7323).
    pub tcp_options: u32,
    /// Whether packets carry the header of this design.
    pub has_header: bool,
    /// Digests and alignment of PDUs.
    pub framing: Framing,
    /// Maximum payload of a simulated packet, bytes.
    pub segment_max: u32,
    /// Maximum data in a command capsule (IOCCSZ), bytes.
    pub in_capsule_max: u32,
    /// Maximum data of one H2CData PDU (MAXH2CDATA), bytes.
    pub host_data_max: u32,
    /// Maximum data of one C2HData PDU, bytes.
    pub controller_data_max: u32,
    /// Maximum data that one R2T requests, bytes; one is open at a time.
    pub ready_max: u32,
    /// Whether the last data of a successful read complete it, without a response (SUCCESS flag).
    pub success_flag: bool,
    /// Whether data that are detected as missing are requested at once, as by TCP's fast retransmit
    /// and the NAK of RoCE; otherwise the host's timers recover them.
    pub fast_retransmit: bool,
}

/// A checked [`WireConfig`], with precomputed constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFormat {
    config: WireConfig,
    packets: Packets,
    ready_frame: u32,
    response_frame: u32,
}

/// Bytes of the fixed part of the trail's header.
const TRAIL_FIXED: u32 = 12;

impl WireFormat {
    /// Checks a configuration.
    ///
    /// # Errors
    ///
    /// When the MTU has no room behind the headers.
    pub fn new(config: &WireConfig) -> Result<Self, MtuError> {
        let own = if config.has_header { EXTENSION_BYTES as u32 + TRAIL_FIXED } else { 0 };
        let packets = Packets::new(config.mtu, config.tcp_options, own)?;
        let config = WireConfig {
            segment_max: config.segment_max.max(1),
            host_data_max: config.host_data_max.max(1),
            controller_data_max: config.controller_data_max.max(1),
            ready_max: config.ready_max.max(1),
            ..*config
        };
        let mut format = WireFormat { config, packets, ready_frame: 0, response_frame: 0 };
        format.ready_frame = format.frame_of(format.pdu_bytes(PduKind::ReadyToTransfer, 0));
        format.response_frame = format.frame_of(format.pdu_bytes(PduKind::Response, 0));
        Ok(format)
    }

    /// Returns the checked configuration.
    pub fn config(&self) -> &WireConfig {
        &self.config
    }

    /// Returns the longest packet of a program, bytes on the wire: a whole segment of data, or a
    /// command with full in-capsule data, each with a header of `hops_max` hops.
    pub fn longest(&self, hops_max: u32) -> u32 {
        let data = PacketKind::WriteData { last: true };
        let segment = self.frame(data, self.config.segment_max, 0);
        let command = self.frame(PacketKind::Command, self.config.in_capsule_max, 0);
        let hops = if self.config.has_header { hops_max * Trail::HOP_BYTES } else { 0 };
        segment.max(command) + hops
    }

    /// Returns the maximum number of hops whose header fits into a frame behind the longest PDU
    /// header.
    pub fn hops_max(config: &WireConfig) -> u32 {
        let bare = Packets::new(config.mtu, config.tcp_options, EXTENSION_BYTES as u32 + TRAIL_FIXED);
        // A command capsule: the common header of a PDU and a submission entry.
        let room = bare.map_or(0, |packets| packets.payload_max().count()).saturating_sub(8 + 64);
        (room as u32 / Trail::HOP_BYTES).min(crate::HOPS_MAX as u32)
    }

    /// Returns the transfer mode of an I/O's data.
    pub fn carriage(&self, operation: Operation, bytes: u32) -> Carriage {
        match operation {
            Operation::Read => Carriage::Separate,
            Operation::Write | Operation::ReadModifyWrite => Carriage::of_write(bytes, self.config.in_capsule_max),
        }
    }

    /// Returns the data in the capsule of an I/O's command, bytes.
    pub fn in_capsule(&self, operation: Operation, bytes: u32) -> u32 {
        match (operation, self.carriage(operation, bytes)) {
            (Operation::Read, _) | (_, Carriage::Separate) => 0,
            (_, Carriage::InCapsule) => bytes,
        }
    }

    /// Returns the length of the next segment of data at `offset` of `end`. It does not exceed a
    /// segment and does not cross a PDU boundary at a multiple of `pdu_max` bytes.
    pub fn segment(&self, offset: u32, end: u32, pdu_max: u32) -> u32 {
        (end - offset).min(self.config.segment_max).min(pdu_max - offset % pdu_max)
    }

    /// Returns the bytes on the wire of a packet whose trail has no hops yet. `offset` is the
    /// position of its data in the I/O.
    pub fn frame(&self, kind: PacketKind, payload: u32, offset: u32) -> u32 {
        match kind {
            PacketKind::Command => self.frame_of(self.pdu_bytes(PduKind::Command, payload)),
            PacketKind::ReadyToTransfer => self.ready_frame,
            PacketKind::Response => self.response_frame,
            PacketKind::Acknowledgement { .. } => transport::framing::tcp_wire(0),
            PacketKind::Notification { .. } => transport::framing::roce_notification_wire(),
            PacketKind::Pause { .. } => transport::framing::pause_wire(),
            PacketKind::WriteData { .. } => {
                self.data_frame(PduKind::HostData, self.config.host_data_max, payload, offset)
            }
            PacketKind::ReadData { .. } => {
                self.data_frame(PduKind::ControllerData, self.config.controller_data_max, payload, offset)
            }
        }
    }

    /// Returns the bytes on the wire of a packet with this trail: each hop adds
    /// [`Trail::HOP_BYTES`].
    pub fn frame_with(&self, kind: PacketKind, payload: u32, offset: u32, trail: &Trail) -> u32 {
        let hops = if self.config.has_header { trail.hops().len() as u32 } else { 0 };
        self.frame(kind, payload, offset) + hops * Trail::HOP_BYTES
    }

    /// Returns the bytes on the wire of a data segment. A segment at the start of a PDU includes
    /// the PDU header, one inside a PDU only its data.
    fn data_frame(&self, kind: PduKind, pdu_max: u32, payload: u32, offset: u32) -> u32 {
        let begins = offset.is_multiple_of(pdu_max);
        let header = if begins { self.pdu_bytes(kind, payload) - u64::from(payload) } else { 0 };
        self.frame_of(header + u64::from(payload))
    }

    fn pdu_bytes(&self, kind: PduKind, data: u32) -> u64 {
        let trailer = if self.config.framing.has_data_digest(kind, data) { nvme::pdu::DIGEST_BYTES as u64 } else { 0 };
        u64::from(self.config.framing.data_offset(kind, data)) + u64::from(data) + trailer
    }

    fn frame_of(&self, payload: u64) -> u32 {
        self.packets.wire_bytes(Bytes::new(payload)).count() as u32
    }
}

/// Returns the response header of a packet, for the encoder.
pub(crate) fn response_header(packet: &Packet) -> Header {
    let status = codec::status_of(packet.status);
    Header::Response(Cqe { result: u64::from(packet.credit), sq_head: 0, sq_id: 1, id: packet.tag.command, status })
}

#[cfg(test)]
mod tests;
