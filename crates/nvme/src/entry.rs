//! Submission and completion queue entries as they are: 64 and 16 bytes, read and written in place.

use crate::sgl::Sgl;
use crate::status::Status;
use crate::{CodecError, layout::Field};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A submission queue entry (NVM Express Base 2.0, Figure 87): the view;
/// [`Command`](crate::Command) is the meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Sqe {
    /// Opcode; its two low bits hold the direction of data.
    pub opcode: u8,
    /// Fused operation in bits 1:0, PRP or SGL in 7:6.
    pub flags: u8,
    /// The host's name for the command: any 16 bits.
    pub id: U16,
    /// Namespace; the type of a fabrics command in its first byte.
    pub namespace: U32,
    /// Command dwords 2 and 3.
    pub dwords_2: [U32; 2],
    /// Where metadata are; not on fabrics.
    pub metadata: U64,
    /// Where data are, an [`Sgl`].
    pub data: [u8; 16],
    /// Command dwords 10 to 15.
    pub dwords_10: [U32; 6],
}

impl Sqe {
    /// Bytes of an entry.
    pub const BYTES: usize = size_of::<Self>();

    /// The front of `bytes` as an entry, without a copy.
    pub fn view(bytes: &[u8]) -> Result<&Sqe, CodecError> {
        let short = CodecError::Short { part: "Sqe", got: bytes.len(), needed: Self::BYTES };
        Sqe::ref_from_prefix(bytes).map(|(entry, _)| entry).map_err(|_| short)
    }

    /// Where its data are.
    pub fn sgl(&self) -> Sgl {
        Sgl::decode(&self.data)
    }

    /// Dword 10 + `index`.
    pub(crate) fn dword(&self, index: usize) -> u32 {
        self.dwords_10[index].get()
    }
}

impl Field for Sqe {
    const BYTES: usize = Sqe::BYTES;
    fn get(bytes: &[u8], _name: &'static str) -> Result<Self, CodecError> {
        Sqe::view(bytes).copied()
    }
    fn put(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self.as_bytes());
    }
}

/// A completion (Base 2.0, Figure 90; NVMe over Fabrics: phase tag reserved).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqe {
    /// Dwords 0 and 1: the result of the command.
    pub result: u64,
    /// How far the controller has taken entries from the submission queue; reserved where flow
    /// control is off.
    pub sq_head: u16,
    /// Submission queue of the command.
    pub sq_id: u16,
    /// The command's id.
    pub id: u16,
    /// The status.
    pub status: Status,
}

impl Cqe {
    /// Bytes of an entry.
    pub const BYTES: usize = 16;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.result.to_le_bytes());
        for (field, at) in [(self.sq_head, 8), (self.sq_id, 10), (self.id, 12), (self.status.bits() << 1, 14)] {
            bytes[at..at + 2].copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Reads the front of `bytes`; fails only when they are too few. The phase tag is not looked
    /// at.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let bytes: &[u8; Self::BYTES] = crate::error::leading("Cqe", bytes)?;
        let [result @ .., h0, h1, q0, q1, i0, i1, s0, s1] = *bytes;
        Ok(Cqe {
            result: u64::from_le_bytes(result),
            sq_head: u16::from_le_bytes([h0, h1]),
            sq_id: u16::from_le_bytes([q0, q1]),
            id: u16::from_le_bytes([i0, i1]),
            status: Status::of_bits(u16::from_le_bytes([s0, s1]) >> 1),
        })
    }
}

impl Field for Cqe {
    const BYTES: usize = Cqe::BYTES;
    fn get(bytes: &[u8], _name: &'static str) -> Result<Self, CodecError> {
        Self::decode(bytes)
    }
    fn put(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.encode());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Base 2.0, Figure 87: offsets of the fields.
    #[test]
    fn an_entry_has_its_fields_where_the_specification_has_them() {
        let entry = Sqe {
            opcode: 0x02,
            flags: 0x40,
            id: 0x1234.into(),
            namespace: 7.into(),
            dwords_10: [0x1111_1111.into(), 0.into(), 0.into(), 0.into(), 0.into(), 0x6666_6666.into()],
            data: Sgl::Transport { length: 4096 }.encode(),
            ..Sqe::default()
        };
        let bytes = entry.as_bytes();
        assert_eq!(bytes.len(), 64);
        assert_eq!(bytes[..8], [2, 0x40, 0x34, 0x12, 7, 0, 0, 0]);
        assert_eq!((bytes[33], bytes[39]), (0x10, 0x5a));
        assert_eq!((bytes[40], bytes[60]), (0x11, 0x66));
    }

    /// Base 2.0, Figures 90 and 93.
    #[test]
    fn a_completion_has_its_status_above_the_phase_tag() {
        let status = Status::LBA_OUT_OF_RANGE.without_retry();
        let completion = Cqe { result: 0x0102, sq_head: 0x0304, sq_id: 5, id: 0xfedc, status };
        let bytes = completion.encode();
        assert_eq!(bytes, [2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 5, 0, 0xdc, 0xfe, 0x00, 0x81]);
        let mut phased = bytes;
        phased[14] |= 1;
        assert_eq!(Cqe::decode(&phased), Ok(completion));
    }

    #[test]
    fn an_entry_cut_short_is_refused() {
        assert_eq!(Sqe::view(&[0; 63]), Err(CodecError::Short { part: "Sqe", got: 63, needed: 64 }));
        assert_eq!(Cqe::decode(&[0; 15]), Err(CodecError::Short { part: "Cqe", got: 15, needed: 16 }));
    }

    proptest! {
        #[test]
        fn a_completion_comes_back(result in any::<u64>(), fields in any::<[u16; 3]>(), bits in 0u16..1 << 15) {
            let [sq_head, sq_id, id] = fields;
            let completion = Cqe { result, sq_head, sq_id, id, status: Status::of_bits(bits) };
            prop_assert_eq!(Cqe::decode(&completion.encode()), Ok(completion));
        }
    }
}
