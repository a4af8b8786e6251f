//! A namespace (NVM Command Set 1.0, Figure 97).

use crate::CodecError;
use crate::layout::{Field, layout};

/// One way to format blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LbaFormat {
    /// Metadata bytes of a block (MS).
    pub metadata_bytes: u16,
    /// Block size as a power of two, 9 and up; 0 marks an unused format (LBADS).
    pub block_shift: u8,
    /// 0 best to 3 degraded (RP).
    pub performance: u8,
}

impl Field for LbaFormat {
    const BYTES: usize = 4;
    fn get(bytes: &[u8], name: &'static str) -> Result<Self, CodecError> {
        let word = u32::get(bytes, name)?;
        let (block_shift, performance) = ((word >> 16) as u8, (word >> 24 & 3) as u8);
        Ok(LbaFormat { metadata_bytes: word as u16, block_shift, performance })
    }
    fn put(&self, bytes: &mut [u8]) {
        let high = u32::from(self.block_shift) << 16 | u32::from(self.performance & 3) << 24;
        (u32::from(self.metadata_bytes) | high).put(bytes);
    }
}

layout! {
    /// A namespace: size, format, sharing, names.
    pub struct IdentifyNamespace [4096] {
        /// Blocks (NSZE); 0 for a namespace that is not active.
        size: u64 = 0,
        /// Blocks that may be allocated (NCAP).
        capacity: u64 = 8,
        /// Blocks that are (NUSE).
        used: u64 = 16,
        /// Bit 0 thin, 4 optimal sizes below are valid (NSFEAT).
        features: u8 = 24,
        /// Formats, less one (NLBAF).
        formats_minus_one: u8 = 25,
        /// Format in use: bits 3:0, and 6:5 above them (FLBAS).
        format: u8 = 26,
        /// Bit 0: attached to several controllers at a time (NMIC).
        sharing: u8 = 30,
        /// Reservations, a bit a type, 7 for the meaning of IEKEY; bit 0 persistence (RESCAP).
        reservations: u8 = 31,
        /// Deallocated blocks: 1 reads as zeros; bit 3 Write Zeroes may deallocate (DLFEAT).
        deallocation: u8 = 33,
        /// Largest atomic write, blocks less one (NAWUN).
        atomic_minus_one: u16 = 34,
        /// The same across a power loss (NAWUPF).
        atomic_power_fail_minus_one: u16 = 36,
        /// Largest fused compare and write, blocks less one (NACWU).
        atomic_compare_minus_one: u16 = 38,
        /// Bytes of the namespace (NVMCAP).
        bytes: u128 = 48,
        /// Preferred write granularity, blocks less one (NPWG).
        write_granularity_minus_one: u16 = 64,
        /// Preferred write alignment, blocks less one (NPWA).
        write_alignment_minus_one: u16 = 66,
        /// Preferred deallocation granularity, blocks less one (NPDG).
        deallocate_granularity_minus_one: u16 = 68,
        /// Preferred deallocation alignment, blocks less one (NPDA).
        deallocate_alignment_minus_one: u16 = 70,
        /// Optimal write, blocks less one (NOWS).
        write_optimal_minus_one: u16 = 72,
        /// Blocks of a range of Copy (MSSRL).
        copy_range_blocks_max: u16 = 74,
        /// Blocks of a Copy (MCL).
        copy_blocks_max: u32 = 76,
        /// Ranges of a Copy, less one (MSRC).
        copy_ranges_minus_one: u8 = 80,
        /// Group of asymmetric access, 0 for none (ANAGRPID).
        ana_group: u32 = 92,
        /// Bit 0: write protected (NSATTR).
        attributes: u8 = 99,
        /// Globally unique, or zero (NGUID).
        nguid: [u8; 16] = 104,
        /// EUI-64, or zero.
        eui64: [u8; 8] = 120,
        /// Formats; `formats_minus_one` plus one of them are valid.
        formats: [LbaFormat; 64] = 128,
    }
}

impl IdentifyNamespace {
    /// The format in use; fails if it is not valid or has no size.
    pub fn format_in_use(&self) -> Result<LbaFormat, CodecError> {
        let index = self.format & 0x0f | (self.format & 0x60) >> 1;
        let refused =
            CodecError::Field { field: "FLBAS", got: u64::from(self.format), allowed: "a format of the list" };
        let there = index <= self.formats_minus_one;
        let format = self.formats.get(usize::from(index)).filter(|_| there).ok_or(refused)?;
        // NVM Command Set 1.0, Figure 98: smaller than 512 B is not allowed. The upper bound is
        // ours: shifts stay inside 32 bits. What formats that are not in use say is no concern of a
        // host's.
        match format.block_shift {
            9..=31 => Ok(*format),
            0 => Err(refused),
            got => Err(CodecError::Field { field: "LBADS", got: u64::from(got), allowed: "9 to 31" }),
        }
    }
}

layout! {
    /// Properties of a namespace of any command set (Base 2.0, Figure 280).
    pub struct NamespaceSummary [4096] {
        /// As NSFEAT.
        features: u8 = 0,
        /// As NMIC.
        sharing: u8 = 1,
        /// As RESCAP.
        reservations: u8 = 2,
        /// As ANAGRPID.
        ana_group: u32 = 4,
        /// As NSATTR.
        attributes: u8 = 8,
        /// Bit 0: ready (NSTAT).
        state: u8 = 14,
    }
}
