//! Fabrics commands (NVM Express Base 2.0, 6): opcode 7Fh, the type in byte 4. Allowed on every
//! queue, Property and Disconnect as their clauses say.

use super::{CommandError, FABRICS_OPCODE, QueueKind, bits, dwords, wide};
use crate::Sqe;
use crate::layout::{codes, flags};

const PROPERTY_SET: u8 = 0x00;
const CONNECT: u8 = 0x01;
const PROPERTY_GET: u8 = 0x04;
const AUTHENTICATION_SEND: u8 = 0x05;
const AUTHENTICATION_RECEIVE: u8 = 0x06;
const DISCONNECT: u8 = 0x08;

/// A fabrics command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fabrics {
    /// 00h (6.4): writes a property; admin queue only.
    PropertySet {
        /// Offset of the property.
        offset: u32,
        /// Its size.
        size: PropertySize,
        /// The value to write.
        value: u64,
    },
    /// 01h (6.3).
    Connect(Connect),
    /// 04h (6.5): reads a property into the completion's result; admin queue only.
    PropertyGet {
        /// Offset of the property.
        offset: u32,
        /// Its size.
        size: PropertySize,
    },
    /// 05h (6.2): carries authentication data to the controller.
    AuthenticationSend {
        /// Security protocol: E9h.
        protocol: u8,
        /// Both bytes of the protocol specific field: 0101h.
        specific: u16,
        /// Bytes that are sent.
        length: u32,
    },
    /// 06h (6.1): returns authentication data.
    AuthenticationReceive {
        /// Security protocol: E9h.
        protocol: u8,
        /// Both bytes of the protocol specific field: 0101h.
        specific: u16,
        /// Allocation length, bytes.
        length: u32,
    },
    /// 08h (6.6): ends an I/O queue.
    Disconnect,
}

codes! {
    /// The width of a property (6.4, ATTRIB bits 2:0).
    pub enum PropertySize: u8 {
        /// 32 bits.
        Four = 0,
        /// 64 bits.
        Eight = 1,
    }
}

flags! {
    /// Attributes of a queue (6.3, CATTR without the priority class).
    pub struct ConnectAttributes: u8 {
        /// Without flow control: completions carry no SQHD, and success may be a flag of C2HData.
        NO_FLOW_CONTROL = 2,
        /// I/O queues may be deleted one by one.
        QUEUE_DELETION = 3,
    }
}

/// Connect (6.3): binds a connection to a queue of a controller. What it names is in its data,
/// [`ConnectData`](crate::ConnectData).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Queue, 0 the admin queue.
    pub queue: u16,
    /// Entries of the queue, less one.
    pub size_minus_one: u16,
    /// Attributes of the queue.
    pub attributes: ConnectAttributes,
    /// Keep-alive timeout, 0 for none; admin queue only.
    pub keep_alive_ms: u32,
}

/// What a completion of Connect carries (6.3, Figure 381): the controller, and whether
/// authentication has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectReply {
    /// The controller that the host now has.
    pub controller: u16,
    /// Bit 1 requires in-band authentication (ATR), bit 2 over a secure channel (ASCR).
    pub authentication: u16,
}

impl ConnectReply {
    /// As the completion's result.
    pub fn encode(self) -> u64 {
        u64::from(self.controller) | u64::from(self.authentication) << 16
    }

    /// From the completion's result.
    pub fn decode(result: u64) -> Self {
        ConnectReply { controller: result as u16, authentication: (result >> 16) as u16 }
    }
}

/// The result of Connect with "invalid parameters": the offset of the wrong one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRefusal {
    /// Byte offset of the field.
    pub offset: u16,
    /// Whether it is in the data and not in the entry.
    pub is_in_data: bool,
}

impl ConnectRefusal {
    /// As the completion's result.
    pub fn encode(self) -> u64 {
        u64::from(self.offset) | u64::from(self.is_in_data) << 16
    }

    /// From the completion's result.
    pub fn decode(result: u64) -> Self {
        ConnectRefusal { offset: result as u16, is_in_data: result >> 16 & 1 != 0 }
    }
}

pub(super) fn decode(entry: &Sqe, queue: QueueKind) -> Result<Fabrics, CommandError> {
    let kind = entry.namespace.get() as u8;
    Ok(match (kind, queue) {
        (PROPERTY_SET, QueueKind::Admin) => {
            let value = wide(entry.dword(2), entry.dword(3));
            Fabrics::PropertySet { offset: entry.dword(1), size: property_size(entry)?, value }
        }
        (PROPERTY_GET, QueueKind::Admin) => {
            Fabrics::PropertyGet { offset: entry.dword(1), size: property_size(entry)? }
        }
        (CONNECT, _) => Fabrics::Connect(decode_connect(entry)?),
        (AUTHENTICATION_SEND | AUTHENTICATION_RECEIVE, _) => decode_authentication(kind, entry),
        (DISCONNECT, QueueKind::Io) => {
            record_format(entry)?;
            Fabrics::Disconnect
        }
        _ => return Err(CommandError::Opcode { opcode: kind, queue }),
    })
}

fn property_size(entry: &Sqe) -> Result<PropertySize, CommandError> {
    Ok(PropertySize::checked(bits(entry.dword(0), 0, 3) as u8, "property size")?)
}

/// Only format 0 exists.
fn record_format(entry: &Sqe) -> Result<(), CommandError> {
    match bits(entry.dword(0), 0, 16) {
        0 => Ok(()),
        got => Err(crate::CodecError::Field { field: "record format", got: u64::from(got), allowed: "0" }.into()),
    }
}

fn decode_connect(entry: &Sqe) -> Result<Connect, CommandError> {
    record_format(entry)?;
    let second = entry.dword(1);
    Ok(Connect {
        queue: (entry.dword(0) >> 16) as u16,
        size_minus_one: second as u16,
        attributes: ConnectAttributes::from_bits_retain((second >> 16) as u8),
        keep_alive_ms: entry.dword(2),
    })
}

fn decode_authentication(kind: u8, entry: &Sqe) -> Fabrics {
    let (first, length) = (entry.dword(0), entry.dword(1));
    let (protocol, specific) = ((first >> 24) as u8, (first >> 8) as u16);
    match kind {
        AUTHENTICATION_SEND => Fabrics::AuthenticationSend { protocol, specific, length },
        _ => Fabrics::AuthenticationReceive { protocol, specific, length },
    }
}

pub(super) fn encode(body: &Fabrics, bare: Sqe) -> Sqe {
    let (kind, words) = match *body {
        Fabrics::PropertySet { offset, size, value } => {
            (PROPERTY_SET, dwords([size.code().into(), offset, value as u32, (value >> 32) as u32]))
        }
        Fabrics::Connect(connect) => (CONNECT, dwords(connect_dwords(connect))),
        Fabrics::PropertyGet { offset, size } => (PROPERTY_GET, dwords([size.code().into(), offset])),
        Fabrics::AuthenticationSend { protocol, specific, length } => {
            (AUTHENTICATION_SEND, dwords([u32::from(specific) << 8 | u32::from(protocol) << 24, length]))
        }
        Fabrics::AuthenticationReceive { protocol, specific, length } => {
            (AUTHENTICATION_RECEIVE, dwords([u32::from(specific) << 8 | u32::from(protocol) << 24, length]))
        }
        Fabrics::Disconnect => (DISCONNECT, dwords([])),
    };
    Sqe { opcode: FABRICS_OPCODE, namespace: u32::from(kind).into(), dwords_10: words, ..bare }
}

fn connect_dwords(connect: Connect) -> [u32; 3] {
    let attributes = u32::from(connect.attributes.bits());
    let queue = u32::from(connect.queue) << 16;
    [queue, u32::from(connect.size_minus_one) | attributes << 16, connect.keep_alive_ms]
}
