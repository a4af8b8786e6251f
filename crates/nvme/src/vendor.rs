//! S-Direct's commands as vendor-specific I/O commands (the design: crate `sdirect`; Lu, APNet,
//! section 2). The target checks what the host may do and gives them out as
//! [`EngineOperation`](crate::target::EngineOperation)s: how they are done is the engine's.
//!
//! | opcode | bits 1:0 | command | dwords | data |
//! | --- | --- | --- | --- | --- |
//! | 81h | 01b, host to controller | MultiCast | 10 and 11 first block, 12 bits 15:0 blocks less one, 13 bits 7:0 targets less one | 16 B a target: namespace u32, reserved u32, first block u64 |
//! | 84h | 00b, no data | add_write | 10 and 11 the first word's byte, 12 and 13 the second's; both multiples of 8 | |
//!
//! Directions are honest, since Linux maps the data of passthrough commands by them. The opcodes
//! are ours.

use crate::{CodecError, Vendor};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Opcode of MultiCast.
pub const MULTI_CAST: u8 = 0x81;
/// Opcode of add_write.
pub const ADD_WRITE: u8 = 0x84;
/// Most targets of a MultiCast: ours.
pub const TARGETS_MAX: usize = 32;

/// One of S-Direct's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VendorCommand {
    /// Blocks of the command's namespace are written to several places, [`MultiCastTarget`]s in its
    /// data. Where one fails, the others go on; the completion's result has a bit for each target
    /// on a namespace that failed, in their order.
    MultiCast {
        /// First block.
        start: u64,
        /// Blocks, less one.
        blocks_minus_one: u16,
        /// Targets, less one.
        targets_minus_one: u8,
    },
    /// The 64-bit little-endian words at two bytes of the namespace are added, wrapping, and the
    /// sum is written over the second. It is the completion's result. Atomic towards other
    /// add_writes; it is repeated if a plain write changes the words meanwhile.
    AddWrite {
        /// Byte of the first word.
        first: u64,
        /// Byte of the second.
        second: u64,
    },
}

/// Where MultiCast writes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct MultiCastTarget {
    /// Which namespace; of the same block size.
    pub namespace: U32,
    /// Reserved.
    pub reserved: U32,
    /// First block.
    pub start: U64,
}

impl MultiCastTarget {
    /// Bytes of a target.
    pub const BYTES: usize = size_of::<Self>();

    /// Blocks of a namespace from `start` on.
    pub fn new(namespace: u32, start: u64) -> Self {
        MultiCastTarget { namespace: namespace.into(), reserved: 0.into(), start: start.into() }
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        zerocopy::transmute!(*self)
    }

    /// The first `count` targets of `bytes`, in place.
    pub fn view(bytes: &[u8], count: usize) -> Result<&[MultiCastTarget], CodecError> {
        crate::range::list("targets of MultiCast", bytes, count)
    }
}

impl VendorCommand {
    /// The meaning of a vendor specific command; `None` for an unknown one.
    pub fn decode(command: &Vendor) -> Option<Self> {
        let [a, b, c, d, ..] = command.dwords_10;
        let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        match command.opcode {
            MULTI_CAST => Some(VendorCommand::MultiCast {
                start: wide(a, b),
                blocks_minus_one: c as u16,
                targets_minus_one: d as u8,
            }),
            ADD_WRITE => Some(VendorCommand::AddWrite { first: wide(a, b), second: wide(c, d) }),
            _ => None,
        }
    }

    /// As a vendor-specific command.
    pub fn encode(self) -> Vendor {
        let halves = |value: u64| [value as u32, (value >> 32) as u32];
        let (opcode, [a, b], [c, d]) = match self {
            VendorCommand::MultiCast { start, blocks_minus_one, targets_minus_one } => {
                (MULTI_CAST, halves(start), [blocks_minus_one.into(), targets_minus_one.into()])
            }
            VendorCommand::AddWrite { first, second } => (ADD_WRITE, halves(first), halves(second)),
        };
        Vendor { opcode, dwords_2: [0; 2], dwords_10: [a, b, c, d, 0, 0] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Command, Direction, Io, QueueKind, direction};
    use proptest::prelude::*;

    #[test]
    fn directions_are_honest() {
        assert_eq!(
            (Direction::of(MULTI_CAST), Direction::of(ADD_WRITE)),
            (Direction::HostToController, Direction::None)
        );
    }

    proptest! {
        #[test]
        fn commands_come_back(start in any::<u64>(), second in any::<u64>(), blocks in any::<u16>(), targets in any::<u8>()) {
            let cast = VendorCommand::MultiCast { start, blocks_minus_one: blocks, targets_minus_one: targets };
            for command in [cast, VendorCommand::AddWrite { first: start, second }] {
                let entry = Command::new(1, Body::Io(Io::Vendor(command.encode()))).encode();
                let Body::Io(Io::Vendor(vendor)) = Command::decode(&entry, QueueKind::Io).unwrap().body else { panic!() };
                prop_assert_eq!(VendorCommand::decode(&vendor), Some(command));
                prop_assert!(direction(&entry) != Direction::ControllerToHost);
            }
        }
    }
}
