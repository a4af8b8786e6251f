//! Headers as meanings.

use crate::layout::{Field, codes};
use crate::pdu::{FatalStatus, HEADER_BYTES_MAX, PduError};
use crate::{Cqe, Sqe};

codes! {
    /// Type of a PDU (3.6.1, Figure 22).
    pub enum PduKind: u8 {
        /// ICReq, host to controller.
        InitializeRequest = 0x00,
        /// ICResp, controller to host.
        InitializeResponse = 0x01,
        /// H2CTermReq.
        HostTermination = 0x02,
        /// C2HTermReq.
        ControllerTermination = 0x03,
        /// CapsuleCmd, host to controller.
        Command = 0x04,
        /// CapsuleResp, controller to host.
        Response = 0x05,
        /// H2CData.
        HostData = 0x06,
        /// C2HData.
        ControllerData = 0x07,
        /// R2T, controller to host.
        ReadyToTransfer = 0x09,
    }
}

impl PduKind {
    /// Bytes of the header without its digest (HLEN).
    pub const fn header_bytes(self) -> usize {
        match self {
            PduKind::InitializeRequest | PduKind::InitializeResponse => HEADER_BYTES_MAX,
            PduKind::Command => 72,
            _ => SHORT_BYTES,
        }
    }

    /// Whether a host sends it.
    pub const fn is_from_host(self) -> bool {
        matches!(self, PduKind::InitializeRequest | PduKind::HostTermination | PduKind::Command | PduKind::HostData)
    }

    /// Whether digests, where agreed on, apply to it.
    pub const fn has_digests(self) -> bool {
        !self.is_initialization() && !self.is_termination()
    }

    /// Whether it is one of the first two of a connection.
    pub const fn is_initialization(self) -> bool {
        matches!(self, PduKind::InitializeRequest | PduKind::InitializeResponse)
    }

    /// Whether it ends the connection.
    pub const fn is_termination(self) -> bool {
        matches!(self, PduKind::HostTermination | PduKind::ControllerTermination)
    }

    /// Whether data may follow its header.
    pub const fn may_carry_data(self) -> bool {
        matches!(self, PduKind::Command | PduKind::HostData | PduKind::ControllerData) || self.is_termination()
    }
}

/// The host's parameters of a connection (ICReq, 3.6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitializeRequest {
    /// The host wants data from the controller at multiples of so many dwords, less one; at most
    /// 31.
    pub alignment: u8,
    /// Requested digests.
    pub digests: super::Digests,
    /// R2Ts a command that it allows to be open, less one (MAXR2T).
    pub ready_max_minus_one: u32,
}

/// The controller's parameters of a connection (ICResp, 3.6.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitializeResponse {
    /// The controller wants data from the host at multiples of so many dwords, less one; at most
    /// 31. Linux insists on 0.
    pub alignment: u8,
    /// Digests in use: among those that the host requested.
    pub digests: super::Digests,
    /// Bytes of data that one H2CData may carry (MAXH2CDATA): at least 4,096, a multiple of 4.
    pub host_data_max: u32,
}

/// Why a connection ends (H2CTermReq, C2HTermReq; 3.6.2.4). The offending header follows as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The violation.
    pub status: FatalStatus,
    /// The offset or value in question.
    pub information: u32,
    /// Bytes of the offending header that follow: at most 128.
    pub data_length: u32,
}

/// Data of a command to the controller (H2CData, 3.6.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostData {
    /// The command.
    pub command: u16,
    /// The R2T of the data.
    pub tag: u16,
    /// First byte, from the start of the command's data.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
    /// The last of its R2T.
    pub is_last: bool,
}

/// Data of a command to the host (C2HData, 3.6.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerData {
    /// The command.
    pub command: u16,
    /// First byte, from the start of the command's data.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
    /// The last of the command.
    pub is_last: bool,
    /// The command has succeeded and no response follows: only without flow control, and on the
    /// last.
    pub is_success: bool,
}

/// Requests data (R2T, 3.6.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyToTransfer {
    /// The command.
    pub command: u16,
    /// The controller's name for the request: any 16 bits.
    pub tag: u16,
    /// First byte, from the start of the command's data.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

/// Everything of a PDU but its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// ICReq.
    InitializeRequest(InitializeRequest),
    /// ICResp.
    InitializeResponse(InitializeResponse),
    /// H2CTermReq.
    HostTermination(Termination),
    /// C2HTermReq.
    ControllerTermination(Termination),
    /// CapsuleCmd.
    Command {
        /// The entry; [`Command`](crate::Command) is its meaning.
        entry: Sqe,
        /// Bytes of in-capsule data that follow.
        data_length: u32,
    },
    /// CapsuleResp.
    Response(Cqe),
    /// H2CData.
    HostData(HostData),
    /// C2HData.
    ControllerData(ControllerData),
    /// R2T.
    ReadyToTransfer(ReadyToTransfer),
}

impl ControllerData {
    /// The bytes behind the common header.
    fn specific(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&self.command.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }
}

/// Bytes of the header of all PDUs but initialization and commands (HLEN).
const SHORT_BYTES: usize = 24;
const FLAG_LAST: u8 = 0x04;
const FLAG_SUCCESS: u8 = 0x08;

impl Header {
    /// Its type.
    pub const fn kind(&self) -> PduKind {
        match self {
            Header::InitializeRequest(_) => PduKind::InitializeRequest,
            Header::InitializeResponse(_) => PduKind::InitializeResponse,
            Header::HostTermination(_) => PduKind::HostTermination,
            Header::ControllerTermination(_) => PduKind::ControllerTermination,
            Header::Command { .. } => PduKind::Command,
            Header::Response(_) => PduKind::Response,
            Header::HostData(_) => PduKind::HostData,
            Header::ControllerData(_) => PduKind::ControllerData,
            Header::ReadyToTransfer(_) => PduKind::ReadyToTransfer,
        }
    }

    /// Bytes of data that follow.
    pub const fn data_length(&self) -> u32 {
        match self {
            Header::HostTermination(end) | Header::ControllerTermination(end) => end.data_length,
            Header::Command { data_length, .. } => *data_length,
            Header::HostData(data) => data.length,
            Header::ControllerData(data) => data.length,
            _ => 0,
        }
    }

    /// Flags that are not about digests.
    pub(super) const fn flags(&self) -> u8 {
        match self {
            Header::HostData(data) => flag(data.is_last, FLAG_LAST),
            Header::ControllerData(data) => flag(data.is_last, FLAG_LAST) | flag(data.is_success, FLAG_SUCCESS),
            _ => 0,
        }
    }

    /// The whole header of a response or of data to the host, as it is without digests and padding.
    /// `None` for other types, and for data that no PDU holds.
    #[inline]
    pub(super) fn plain(&self) -> Option<[u8; SHORT_BYTES]> {
        let (kind, offset, specific) = match self {
            Header::Response(completion) => (PduKind::Response, 0, completion.encode()),
            Header::ControllerData(data) => (PduKind::ControllerData, SHORT_BYTES as u8, data.specific()),
            _ => return None,
        };
        let length = self.data_length().checked_add(SHORT_BYTES as u32)?;
        let offset = if self.data_length() > 0 { offset } else { 0 };
        let mut bytes = [0; SHORT_BYTES];
        bytes[..4].copy_from_slice(&[kind.code(), self.flags(), SHORT_BYTES as u8, offset]);
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..].copy_from_slice(&specific);
        Some(bytes)
    }

    /// Writes the bytes behind the common header. `bytes` are zeroed and begin with the PDU's
    /// first.
    pub(super) fn write_specific(&self, bytes: &mut [u8]) {
        match self {
            Header::InitializeRequest(request) => {
                (bytes[10], bytes[11]) = (request.alignment, request.digests.bits());
                request.ready_max_minus_one.put(&mut bytes[12..16]);
            }
            Header::InitializeResponse(response) => {
                (bytes[10], bytes[11]) = (response.alignment, response.digests.bits());
                response.host_data_max.put(&mut bytes[12..16]);
            }
            Header::HostTermination(end) | Header::ControllerTermination(end) => {
                end.status.put(&mut bytes[8..10]);
                end.information.put(&mut bytes[10..14]);
            }
            Header::Command { entry, .. } => entry.put(&mut bytes[8..72]),
            Header::Response(completion) => completion.put(&mut bytes[8..24]),
            Header::HostData(data) => put_range(bytes, data.command, data.tag, data.offset, data.length),
            Header::ControllerData(data) => bytes[8..24].copy_from_slice(&data.specific()),
            Header::ReadyToTransfer(ready) => put_range(bytes, ready.command, ready.tag, ready.offset, ready.length),
        }
    }

    /// Decodes a header whose common part is valid: `bytes` is as long as `kind` says. `carried` is
    /// the number of data bytes by its lengths.
    pub(super) fn read(kind: PduKind, bytes: &[u8], carried: u32) -> Result<Header, PduError> {
        let flags = bytes[1];
        Ok(match kind {
            PduKind::InitializeRequest => Header::InitializeRequest(read_request(bytes)?),
            PduKind::InitializeResponse => Header::InitializeResponse(read_response(bytes)?),
            PduKind::HostTermination => Header::HostTermination(read_termination(bytes, carried)?),
            PduKind::ControllerTermination => Header::ControllerTermination(read_termination(bytes, carried)?),
            PduKind::Command => Header::Command { entry: get(&bytes[8..]), data_length: carried },
            PduKind::Response => Header::Response(get(&bytes[8..])),
            PduKind::HostData => Header::HostData(HostData {
                command: get(&bytes[8..]),
                tag: get(&bytes[10..]),
                offset: get(&bytes[12..]),
                length: get(&bytes[16..]),
                is_last: flags & FLAG_LAST != 0,
            }),
            PduKind::ControllerData => Header::ControllerData(ControllerData {
                command: get(&bytes[8..]),
                offset: get(&bytes[12..]),
                length: get(&bytes[16..]),
                is_last: flags & FLAG_LAST != 0,
                is_success: flags & FLAG_SUCCESS != 0,
            }),
            PduKind::ReadyToTransfer => Header::ReadyToTransfer(ReadyToTransfer {
                command: get(&bytes[8..]),
                tag: get(&bytes[10..]),
                offset: get(&bytes[12..]),
                length: get(&bytes[16..]),
            }),
        })
    }
}

const fn flag(holds: bool, bit: u8) -> u8 {
    if holds { bit } else { 0 }
}

fn put_range(bytes: &mut [u8], command: u16, tag: u16, offset: u32, length: u32) {
    command.put(&mut bytes[8..10]);
    tag.put(&mut bytes[10..12]);
    offset.put(&mut bytes[12..16]);
    length.put(&mut bytes[16..20]);
}

/// A field that no bytes are wrong for.
fn get<F: Field>(bytes: &[u8]) -> F {
    F::get(bytes, "header").expect("a header is as long as its type says and its numbers may be any")
}

fn read_request(bytes: &[u8]) -> Result<InitializeRequest, PduError> {
    version_zero(bytes)?;
    Ok(InitializeRequest {
        alignment: alignment("HPDA", bytes)?,
        digests: digests(bytes)?,
        ready_max_minus_one: get(&bytes[12..]),
    })
}

fn read_response(bytes: &[u8]) -> Result<InitializeResponse, PduError> {
    version_zero(bytes)?;
    let host_data_max: u32 = get(&bytes[12..]);
    // Less than a dword lets no data pass; what else is odd is for the host to judge.
    if host_data_max < 4 {
        let got = u64::from(host_data_max);
        return Err(PduError::Field { field: "MAXH2CDATA", at: 12, got, allowed: "a multiple of 4 from 4096 on" });
    }
    Ok(InitializeResponse { alignment: alignment("CPDA", bytes)?, digests: digests(bytes)?, host_data_max })
}

fn version_zero(bytes: &[u8]) -> Result<(), PduError> {
    match get::<u16>(&bytes[8..]) {
        0 => Ok(()),
        got => Err(PduError::Unsupported { field: "PFV", at: 8, got: got.into(), supported: "0" }),
    }
}

fn alignment(field: &'static str, bytes: &[u8]) -> Result<u8, PduError> {
    match bytes[10] {
        dwords @ 0..=31 => Ok(dwords),
        got => Err(PduError::Field { field, at: 10, got: got.into(), allowed: "0 to 31" }),
    }
}

fn digests(bytes: &[u8]) -> Result<super::Digests, PduError> {
    match bytes[11] {
        bits @ 0..=3 => Ok(super::Digests::of_bits(bits)),
        got => Err(PduError::Field { field: "DGST", at: 11, got: got.into(), allowed: "bits 0 and 1" }),
    }
}

fn read_termination(bytes: &[u8], data_length: u32) -> Result<Termination, PduError> {
    let code: u16 = get(&bytes[8..]);
    let wrong = PduError::Field { field: "FES", at: 8, got: code.into(), allowed: "1 to 6" };
    let status = FatalStatus::of_code(code).ok_or(wrong)?;
    Ok(Termination { status, information: get(&bytes[10..]), data_length })
}
