//! Headers and data as bytes, by the parameters of a connection.

use crate::layout::Field;
use crate::pdu::{DIGEST_BYTES, Header, PduError, PduKind, TERMINATION_DATA_MAX, Termination};

/// Which digests a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Of headers (HDGST): a wrong one ends the connection.
    pub header: bool,
    /// Of data (DDGST): a wrong one fails the command.
    pub data: bool,
}

impl Digests {
    pub(super) const fn bits(self) -> u8 {
        self.header as u8 | (self.data as u8) << 1
    }

    pub(super) const fn of_bits(bits: u8) -> Self {
        Digests { header: bits & 1 != 0, data: bits & 2 != 0 }
    }
}

/// The framing of one direction of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Digests of both directions.
    pub digests: Digests,
    /// Data begin at a multiple of so many dwords, less one: what the receiver asked for. At most
    /// 31.
    pub alignment: u8,
}

impl Framing {
    /// Before anything is agreed on.
    pub const INITIAL: Framing = Framing { digests: Digests { header: false, data: false }, alignment: 0 };

    /// Whether a header of this type carries its digest.
    pub const fn has_header_digest(&self, kind: PduKind) -> bool {
        self.digests.header && kind.has_digests()
    }

    /// Whether data of a PDU of this type carry theirs. Without data there is none (3.6.1, DDGSTF).
    pub const fn has_data_digest(&self, kind: PduKind, data_length: u32) -> bool {
        self.digests.data && kind.has_digests() && data_length > 0
    }

    /// Bytes before data: header, digest, padding. Without data no padding.
    pub const fn data_offset(&self, kind: PduKind, data_length: u32) -> u32 {
        let digest = if self.has_header_digest(kind) { DIGEST_BYTES } else { 0 };
        let end = (kind.header_bytes() + digest) as u32;
        if data_length == 0 || !kind.has_digests() { end } else { end.next_multiple_of(self.step()) }
    }

    /// Bytes that data are aligned to.
    pub const fn step(&self) -> u32 {
        (self.alignment as u32 + 1) * 4
    }

    /// Bytes of the whole PDU (PLEN): what the simulator puts on the wire. 64 bits, since a header
    /// from outside may claim up to 4 GiB of data.
    pub const fn pdu_bytes(&self, header: &Header) -> u64 {
        let (kind, data) = (header.kind(), header.data_length());
        let digest = if self.has_data_digest(kind, data) { DIGEST_BYTES as u64 } else { 0 };
        self.data_offset(kind, data) as u64 + data as u64 + digest
    }

    /// Appends the header, up to where data begin.
    ///
    /// # Panics
    /// When the PDU would be longer than 4 GiB: senders split data long before.
    pub fn append_header(&self, header: &Header, out: &mut Vec<u8>) {
        // Writing these as all others would cost a third of a read's instructions.
        if let Some(bytes) = header.plain().filter(|_| *self == Framing::INITIAL) {
            return out.extend_from_slice(&bytes);
        }
        self.append_any_header(header, out);
    }

    pub(super) fn append_any_header(&self, header: &Header, out: &mut Vec<u8>) {
        let (kind, data) = (header.kind(), header.data_length());
        let length = u32::try_from(self.pdu_bytes(header)).expect("a PDU is shorter than 4 GiB");
        let digests = Digests { header: self.has_header_digest(kind), data: self.has_data_digest(kind, data) };
        let (begin, header_bytes) = (out.len(), kind.header_bytes());
        let offset = self.data_offset(kind, data);
        out.resize(begin + offset as usize, 0);
        let bytes = &mut out[begin..];
        (bytes[0], bytes[1], bytes[2]) = (kind.code(), header.flags() | digests.bits(), header_bytes as u8);
        // PDO is reserved, zero, in PDUs that carry none and in terminations, whose data stand
        // straight behind (3.6.2.4).
        bytes[3] = if data > 0 && kind.has_digests() { offset as u8 } else { 0 };
        length.put(&mut bytes[4..8]);
        header.write_specific(bytes);
        if digests.header {
            let digest = crc32c::crc32c(&bytes[..header_bytes]);
            digest.put(&mut bytes[header_bytes..header_bytes + DIGEST_BYTES]);
        }
    }

    /// The digest that follows `data` of a PDU of this type, if there is one.
    pub fn trailer(&self, kind: PduKind, data: &[u8]) -> Option<[u8; DIGEST_BYTES]> {
        let some = u32::from(!data.is_empty());
        self.has_data_digest(kind, some).then(|| crc32c::crc32c(data).to_le_bytes())
    }

    /// Appends the whole PDU.
    ///
    /// # Panics
    /// When `data` are not as long as the header says.
    pub fn write(&self, header: &Header, data: &[u8], bytes: &mut Vec<u8>) {
        assert_eq!(data.len(), header.data_length() as usize, "data are as long as their header says");
        self.append_header(header, bytes);
        bytes.extend_from_slice(data);
        bytes.extend(self.trailer(header.kind(), data).into_iter().flatten());
    }

    /// Appends the termination for `error`; `offending` is the header that was wrong, as far as it
    /// was read.
    pub fn write_termination(sender_is_host: bool, error: &PduError, offending: &[u8], bytes: &mut Vec<u8>) {
        let offending = &offending[..offending.len().min(TERMINATION_DATA_MAX as usize)];
        let (status, information) = (error.fatal_status(), error.information());
        let end = Termination { status, information, data_length: offending.len() as u32 };
        let header = if sender_is_host { Header::HostTermination(end) } else { Header::ControllerTermination(end) };
        Self::INITIAL.write(&header, offending, bytes);
    }
}
