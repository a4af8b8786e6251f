//! The encoding of a packet: the PDU header and the header of this design, without data.

use super::{WireFormat, response_header};
use crate::packet::{Outcome, Packet, PacketKind};
use crate::trail::Trail;
use base::Operation;
use nvme::pdu::{
    ControllerData, Event, Framing, Header, HostData, InitializeRequest, InitializeResponse, Limits, PduError, Reader,
    ReadyToTransfer, Receiver,
};
use nvme::{Access, AccessFlags, Body, CodecError, Command, CommandError, Io, QueueKind, Sgl, Status};

/// Bytes between the PDU header and the trail: attempt (2), rank (1), flags (1), credit (4),
/// little-endian.
pub const EXTENSION_BYTES: usize = 8;
/// Bytes of a logical block, the unit of addresses on the wire.
const BLOCK: u64 = 512;
/// Opcode of the admin command that resets an association, from the vendor-specific range. The
/// registered opcode of Cross-Controller Reset takes a controller identity, which this design does
/// not have.
const RESET_OPCODE: u8 = 0xc5;
const LAST: u8 = 1;
const READ_MODIFY_WRITE: u8 = 2;

/// An error of encoding or decoding.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The PDU is invalid.
    #[error(transparent)]
    Pdu(#[from] PduError),
    /// The command in a capsule is invalid.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The header of this design is invalid.
    #[error(transparent)]
    Header(#[from] CodecError),
    /// The address is no multiple of a block, or a block number whose byte address exceeds 64 bits.
    #[error("address {got} is no multiple of a block of 512 B, or the number of a block beyond 64 bits of bytes")]
    Address {
        /// The address in bytes, or the block number.
        got: u64,
    },
    /// More bytes than a command can transfer.
    #[error("{got} B in one command, allowed are 1 to 33554432")]
    Length {
        /// Length in bytes.
        got: u32,
    },
    /// The PDU ends early.
    #[error("{got} bytes are no whole PDU header")]
    Short {
        /// Length in bytes.
        got: usize,
    },
    /// A packet of another command than expected.
    #[error("a packet of command {got:#06x} where {expected:#06x} was expected")]
    Foreign {
        /// The command of the packet.
        got: u16,
        /// The expected command.
        expected: u16,
    },
    /// A packet of the transport alone, such as an acknowledgement.
    #[error("a packet of the transport alone is no PDU")]
    Bare,
    /// A PDU that is no packet of an I/O.
    #[error("a {kind:?} PDU is no packet of an I/O")]
    Kind {
        /// The kind of the PDU.
        kind: nvme::pdu::PduKind,
    },
}

/// Appends the headers of `packet`, whose data begin at `offset` of its I/O. The data themselves
/// are not written: simulated packets have none.
pub fn encode(format: &WireFormat, packet: &Packet, offset: u32, bytes: &mut Vec<u8>) -> Result<(), WireError> {
    format.config.framing.append_header(&header_of(format, packet, offset)?, bytes);
    let is_last = matches!(packet.kind, PacketKind::WriteData { last: true } | PacketKind::ReadData { last: true });
    let is_rmw = packet.operation == Operation::ReadModifyWrite;
    let flags = (u8::from(is_last) * LAST) | (u8::from(is_rmw) * READ_MODIFY_WRITE);
    bytes.extend_from_slice(&packet.tag.attempt.to_le_bytes());
    bytes.extend_from_slice(&[packet.rank, flags]);
    bytes.extend_from_slice(&packet.credit.to_le_bytes());
    let start = bytes.len();
    bytes.resize(start + packet.trail.wire_bytes(), 0);
    let written = packet.trail.encode(&mut bytes[start..]);
    debug_assert!(written.is_some(), "room for the trail was made");
    Ok(())
}

fn header_of(format: &WireFormat, packet: &Packet, offset: u32) -> Result<Header, WireError> {
    let (command, length) = (packet.tag.command, packet.payload);
    Ok(match packet.kind {
        PacketKind::Command => Header::Command { entry: entry_of(format, packet)?, data_length: length },
        PacketKind::ReadyToTransfer => {
            let length = (packet.bytes - offset).min(format.config.ready_max);
            Header::ReadyToTransfer(ReadyToTransfer { command, tag: command, offset, length })
        }
        PacketKind::WriteData { last } => {
            Header::HostData(HostData { command, tag: command, offset, length, is_last: last })
        }
        PacketKind::ReadData { last } => {
            let is_success = last && format.config.success_flag;
            Header::ControllerData(ControllerData { command, offset, length, is_last: last, is_success })
        }
        PacketKind::Response => response_header(packet),
        PacketKind::Acknowledgement { .. } | PacketKind::Notification { .. } | PacketKind::Pause { .. } => {
            return Err(WireError::Bare);
        }
    })
}

fn entry_of(format: &WireFormat, packet: &Packet) -> Result<nvme::Sqe, WireError> {
    let id = packet.tag.command;
    if packet.bytes == 0 {
        let vendor = nvme::Vendor { opcode: RESET_OPCODE, dwords_2: [0; 2], dwords_10: [0; 6] };
        return Ok(Command::new(id, Body::Io(Io::Vendor(vendor))).encode());
    }
    if !packet.address.is_multiple_of(BLOCK) {
        return Err(WireError::Address { got: packet.address });
    }
    let blocks = u64::from(packet.bytes).div_ceil(BLOCK) - 1;
    let blocks_minus_one = u16::try_from(blocks).map_err(|_| WireError::Length { got: packet.bytes })?;
    let access = Access { start: packet.address / BLOCK, blocks_minus_one, flags: AccessFlags::empty() };
    let (body, data) = match packet.operation {
        Operation::Read => (Io::Read(access), Sgl::Transport { length: packet.bytes }),
        _ => (Io::Write(access), format.carriage(packet.operation, packet.bytes).sgl(packet.bytes)),
    };
    Ok(Command { namespace: 1, data, ..Command::new(id, Body::Io(body)) }.encode())
}

/// Decodes what [`encode`] wrote. `known` holds the state of the connection and, for packets after
/// a command, the fields of that command; its tag must name the same command. `frame` and `payload`
/// of the result are those of the encoded packet.
///
/// # Errors
/// When the bytes are cut short, break a rule of NVMe/TCP or of the header, or name another
/// command.
pub fn decode(format: &WireFormat, known: &Packet, bytes: &[u8]) -> Result<Packet, WireError> {
    let mut rest = bytes;
    let header = read_header(format, known.kind.is_outward(), &mut rest)?;
    let (extension, trail) =
        rest.split_first_chunk::<EXTENSION_BYTES>().ok_or(WireError::Short { got: bytes.len() })?;
    let [a0, a1, rank, flags, c0, c1, c2, c3] = *extension;
    let mut packet = Packet { rank, ..known.with_trail(Trail::decode(trail)?) };
    packet.tag.attempt = u16::from_le_bytes([a0, a1]);
    packet.credit = u32::from_le_bytes([c0, c1, c2, c3]);
    let offset = apply(&header, flags, &mut packet)?;
    packet.frame = format.frame_with(packet.kind, packet.payload, offset, &packet.trail);
    Ok(packet)
}

/// Copies the fields of a PDU header into `packet`; returns the offset of its data.
fn apply(header: &Header, flags: u8, packet: &mut Packet) -> Result<u32, WireError> {
    let named = match header {
        Header::Command { entry, .. } => entry.id.get(),
        Header::ReadyToTransfer(ready) => ready.command,
        Header::HostData(data) => data.command,
        Header::ControllerData(data) => data.command,
        Header::Response(completion) => completion.id,
        other => return Err(WireError::Kind { kind: other.kind() }),
    };
    if named != packet.tag.command {
        return Err(WireError::Foreign { got: named, expected: packet.tag.command });
    }
    packet.payload = header.data_length();
    let (kind, offset) = match *header {
        Header::Command { entry, .. } => {
            apply_command(&Command::decode(&entry, QueueKind::Io)?, flags, packet)?;
            (PacketKind::Command, 0)
        }
        Header::ReadyToTransfer(ready) => (PacketKind::ReadyToTransfer, ready.offset),
        Header::HostData(data) => (PacketKind::WriteData { last: data.is_last }, data.offset),
        Header::ControllerData(data) => (PacketKind::ReadData { last: data.is_last }, data.offset),
        Header::Response(completion) => {
            packet.status = outcome_of(completion.status);
            (PacketKind::Response, 0)
        }
        ref other => return Err(WireError::Kind { kind: other.kind() }),
    };
    packet.kind = kind;
    Ok(offset)
}

fn apply_command(command: &Command, flags: u8, packet: &mut Packet) -> Result<(), WireError> {
    let (operation, access) = match command.body {
        Body::Io(Io::Read(access)) => (Operation::Read, Some(access)),
        Body::Io(Io::Write(access)) if flags & READ_MODIFY_WRITE != 0 => (Operation::ReadModifyWrite, Some(access)),
        Body::Io(Io::Write(access)) => (Operation::Write, Some(access)),
        _ => (packet.operation, None),
    };
    packet.operation = operation;
    packet.bytes = access.map_or(0, |_| command.data.length().unwrap_or(0));
    if let Some(access) = access {
        let address = access.start.checked_mul(BLOCK);
        packet.address = address.ok_or(WireError::Address { got: access.start })?;
    }
    Ok(())
}

/// Reads the PDU header at the front of `rest`, with the reader of live connections.
fn read_header(format: &WireFormat, is_outward: bool, rest: &mut &[u8]) -> Result<Header, WireError> {
    let config = &format.config;
    let data_max = config.host_data_max.max(config.controller_data_max);
    let limits = Limits { in_capsule_max: config.in_capsule_max, data_max };
    let receiver = if is_outward { Receiver::Controller } else { Receiver::Host };
    let mut reader = Reader::new(receiver, limits);
    pass_initialization(&mut reader, config.framing, is_outward)?;
    let got = rest.len();
    // One header per call: the reader would take data from the bytes that follow it here.
    match reader.next(rest)? {
        Some(Event::Header(header)) => {
            // The padding before data is left to the sender: the reader consumes it with the data.
            let padding = config.framing.data_offset(header.kind(), header.data_length()) as usize
                - config.framing.data_offset(header.kind(), 0) as usize;
            *rest = rest.get(padding..).ok_or(WireError::Short { got })?;
            Ok(header)
        }
        _ => Err(WireError::Short { got }),
    }
}

/// Performs the initial exchange of a connection, which the reader requires.
fn pass_initialization(reader: &mut Reader, framing: Framing, is_outward: bool) -> Result<(), WireError> {
    let Framing { digests, alignment } = framing;
    let first = if is_outward {
        Header::InitializeRequest(InitializeRequest { alignment, digests, ready_max_minus_one: 0 })
    } else {
        let host_data_max = nvme::pdu::HOST_DATA_MAX_MIN;
        Header::InitializeResponse(InitializeResponse { alignment, digests, host_data_max })
    };
    let mut bytes = Vec::new();
    Framing::INITIAL.append_header(&first, &mut bytes);
    let mut input = &bytes[..];
    while reader.next(&mut input)?.is_some() {}
    reader.open(framing);
    Ok(())
}

/// Returns the NVMe status of an outcome.
pub(super) const fn status_of(outcome: Outcome) -> Status {
    match outcome {
        Outcome::Success => Status::SUCCESS,
        Outcome::Rejected => Status::INTERRUPTED,
        Outcome::Unreachable => Status::INTERNAL_PATH,
        Outcome::Incomplete => Status::TRANSIENT_TRANSPORT,
        Outcome::DriveFailed => Status::NAMESPACE_NOT_READY,
        Outcome::Aborted => Status::ABORT_REQUESTED,
    }
}

/// Returns the outcome of a status. One that our targets never send is an abort: the command has
/// ended and may be resent.
fn outcome_of(status: Status) -> Outcome {
    let all = [Outcome::Success, Outcome::Rejected, Outcome::Unreachable, Outcome::Incomplete, Outcome::DriveFailed];
    all.into_iter().find(|outcome| status_of(*outcome) == status).unwrap_or(Outcome::Aborted)
}
