//! Logs of fixed form.

use crate::layout::{flags, layout};
use crate::name::Text;
use crate::{CodecError, Status};
use zerocopy::little_endian::U32;

layout! {
    /// An entry of the error log (5.16.1.2, Figure 205).
    pub struct ErrorEntry [64] {
        /// Counts errors over the life of the controller; 0 marks an entry that is not there.
        count: u64 = 0,
        /// Submission queue.
        queue: u16 = 8,
        /// Command.
        id: u16 = 10,
        /// Status as in a completion: above the phase tag, see [`ErrorEntry::status`].
        status_bits: u16 = 12,
        /// Which byte (7:0) and bit (10:8) of the command was wrong; FFFFh for none.
        parameter: u16 = 14,
        /// First block that failed.
        block: u64 = 16,
        /// Namespace.
        namespace: u32 = 24,
        /// Transport: 3 TCP.
        transport: u8 = 29,
        /// Of the command.
        specific: u64 = 32,
    }
}

impl ErrorEntry {
    /// The status of the command.
    pub fn status(&self) -> Status {
        Status::of_bits(self.status_bits >> 1)
    }
}

layout! {
    /// SMART and health (5.16.1.3, Figure 207).
    pub struct Health [512] {
        /// Spare low, temperature, reliability, read only, backup, persistent memory: bits 0 to 5.
        warnings: u8 = 0,
        /// Composite temperature, K.
        temperature_kelvin: u16 = 1,
        /// Spare left, per cent.
        spare_percent: u8 = 3,
        /// Below this it is too little.
        spare_threshold_percent: u8 = 4,
        /// Estimate of life used up, per cent; may pass 100, 255 for more.
        used_percent: u8 = 5,
        /// Thousands of 512 B read, rounded up.
        read_512_000: u128 = 32,
        /// Thousands of 512 B written, rounded up.
        written_512_000: u128 = 48,
        /// Read commands.
        reads: u128 = 64,
        /// Write commands.
        writes: u128 = 80,
        /// Minutes in which commands were outstanding.
        busy_minutes: u128 = 96,
        /// Power cycles.
        power_cycles: u128 = 112,
        /// Hours with power.
        power_on_hours: u128 = 128,
        /// Losses of power without shutdown.
        unsafe_shutdowns: u128 = 144,
        /// Unrecovered errors of media.
        media_errors: u128 = 160,
        /// Entries that the error log ever had.
        error_entries: u128 = 176,
        /// Minutes above the warning temperature.
        warning_minutes: u32 = 192,
        /// Minutes above the critical temperature.
        critical_minutes: u32 = 196,
        /// Sensors, K, 0 for none.
        sensors_kelvin: [u16; 8] = 200,
    }
}

layout! {
    /// Firmware slots (5.16.1.4, Figure 208). A slot without firmware is blank.
    pub struct FirmwareSlots [512] {
        /// Slot in use in bits 2:0, after the next reset in 6:4.
        active: u8 = 0,
        /// Slot 1.
        slot_1: Text<8> = 8,
    }
}

/// Namespaces that changed since the log was last read (5.16.1.5): rising, at most 1,024. If there
/// are more, the list is FFFFFFFFh alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedNamespaces(pub Vec<u32>);

impl ChangedNamespaces {
    /// Bytes of the log.
    pub const BYTES: usize = 4096;
    /// Most that it names.
    pub const COUNT_MAX: usize = 1024;
    /// Stands for more than it can name.
    pub const TOO_MANY: u32 = u32::MAX;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let too_many = [Self::TOO_MANY];
        let ids = if self.0.len() > Self::COUNT_MAX { &too_many[..] } else { &self.0 };
        let mut bytes = [0; Self::BYTES];
        for (place, id) in bytes.chunks_exact_mut(4).zip(ids) {
            place.copy_from_slice(&id.to_le_bytes());
        }
        bytes
    }

    /// Reads the log up to its first zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let all: &[U32] = crate::range::list("changed namespaces", bytes, Self::COUNT_MAX)?;
        Ok(ChangedNamespaces(all.iter().map(|id| id.get()).take_while(|id| *id != 0).collect()))
    }
}

flags! {
    /// Effects of a command (5.16.1.6, Figure 211).
    pub struct CommandEffect: u32 {
        /// Supported (CSUPP).
        SUPPORTED = 0,
        /// Content of blocks (LBCC).
        BLOCKS = 1,
        /// Changes namespace capabilities (NCC).
        NAMESPACE_CAPABILITY = 2,
        /// Which namespaces there are (NIC).
        NAMESPACE_INVENTORY = 3,
        /// Changes controller capabilities (CCC).
        CONTROLLER_CAPABILITY = 4,
    }
}

/// Commands and their effects (5.16.1.6): one word an opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEffects {
    /// By admin opcode.
    pub admin: [CommandEffect; 256],
    /// By I/O opcode.
    pub io: [CommandEffect; 256],
}

impl CommandEffects {
    /// Bytes of the log.
    pub const BYTES: usize = 4096;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = self.admin.iter().chain(&self.io);
        for (place, effect) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&effect.bits().to_le_bytes());
        }
        bytes
    }

    /// Reads the log.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let all: &[U32] = crate::range::list("command effects", bytes, 512)?;
        let effect = |index: usize| CommandEffect::from_bits_retain(all[index].get());
        Ok(CommandEffects { admin: std::array::from_fn(effect), io: std::array::from_fn(|at| effect(256 + at)) })
    }
}

layout! {
    /// A change of reservations (5.16.1.25, Figure 264).
    pub struct ReservationNotice [64] {
        /// Counts notices; 0 for none.
        count: u64 = 0,
        /// 0 empty, 1 a registrant was preempted, 2 the reservation was released, 3 preempted.
        kind: u8 = 8,
        /// Notices that wait behind this one.
        waiting: u8 = 9,
        /// Namespace.
        namespace: u32 = 12,
    }
}
