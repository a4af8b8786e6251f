//! I/O commands of the NVM command set (NVM Command Set 1.0, 3) and reservations (Base 2.0, 7).

use super::{CommandError, QueueKind, bits, dwords, halves, wide};
use crate::Sqe;
use crate::layout::flags;
use crate::range::CopyFormat;
use crate::reservation::{AcquireAction, PersistChange, RegisterAction, ReleaseAction, ReservationKind};
use zerocopy::little_endian::U32;

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const COMPARE: u8 = 0x05;
const WRITE_ZEROES: u8 = 0x08;
const DATASET_MANAGEMENT: u8 = 0x09;
const VERIFY: u8 = 0x0c;
const RESERVATION_REGISTER: u8 = 0x0d;
const RESERVATION_REPORT: u8 = 0x0e;
const RESERVATION_ACQUIRE: u8 = 0x11;
const RESERVATION_RELEASE: u8 = 0x15;
const COPY: u8 = 0x19;
/// Opcodes from here on are the vendor's (Base 2.0, 3.1.3.4).
const VENDOR_MIN: u8 = 0x80;

/// An I/O command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// 00h (Base 7.1): earlier writes are durable when this completes.
    Flush,
    /// 01h.
    Write(Access),
    /// 02h.
    Read(Access),
    /// 05h: data of the host against data of the namespace.
    Compare(Access),
    /// 08h.
    WriteZeroes(Access),
    /// 09h.
    DatasetManagement(DatasetManagement),
    /// 0Ch: reads and keeps the data to itself.
    Verify(Access),
    /// 0Dh (Base 7.3).
    ReservationRegister(ReservationRegister),
    /// 0Eh (Base 7.5).
    ReservationReport {
        /// Dwords to return, less one.
        dwords_minus_one: u32,
        /// The structure with host identifiers of 16 bytes.
        is_extended: bool,
    },
    /// 11h (Base 7.2).
    ReservationAcquire(ReservationAcquire),
    /// 15h (Base 7.4).
    ReservationRelease(ReservationRelease),
    /// 19h.
    Copy(Copy),
    /// 80h and above.
    Vendor(Vendor),
}

/// A range of blocks, with flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// First block.
    pub start: u64,
    /// Blocks, less one.
    pub blocks_minus_one: u16,
    /// Flags.
    pub flags: AccessFlags,
}

impl Access {
    /// Blocks.
    pub fn blocks(&self) -> u32 {
        u32::from(self.blocks_minus_one) + 1
    }

    /// Whether all of its blocks are below `capacity`.
    pub fn is_within(&self, capacity: u64) -> bool {
        self.start.checked_add(u64::from(self.blocks())).is_some_and(|end| end <= capacity)
    }
}

flags! {
    /// The upper half of dword 12.
    pub struct AccessFlags: u16 {
        /// Write Zeroes: the blocks may be deallocated (DEAC).
        DEALLOCATE = 9,
        /// Durable when complete (FUA).
        FORCE_UNIT_ACCESS = 14,
        /// Less effort to recover data than usual (LR).
        LIMITED_RETRY = 15,
    }
}

/// Dataset Management: what the host means to do with ranges,
/// [`DatasetRange`](crate::range::DatasetRange)s in its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetManagement {
    /// Ranges, less one.
    pub ranges_minus_one: u8,
    /// The intended use.
    pub intent: DatasetUse,
}

flags! {
    /// The intended use of ranges (dword 11).
    pub struct DatasetUse: u32 {
        /// Read as a whole (IDR).
        INTEGRAL_READ = 0,
        /// Written as a whole (IDW).
        INTEGRAL_WRITE = 1,
        /// No longer needed (AD).
        DEALLOCATE = 2,
    }
}

/// Copy: ranges, [`CopyRange`](crate::range::CopyRange)s in its data, are written one behind the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// First block that is written.
    pub start: u64,
    /// Ranges, less one.
    pub ranges_minus_one: u8,
    /// The format of ranges.
    pub format: CopyFormat,
    /// Flags; only durability and retry apply here.
    pub flags: AccessFlags,
}

/// Reservation Register; its data are [`RegisterKeys`](crate::reservation::RegisterKeys).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationRegister {
    /// The change of the key.
    pub action: RegisterAction,
    /// The current key is not compared (IEKEY).
    pub ignore_key: bool,
    /// Whether reservations survive a power loss from now on (CPTPL).
    pub persist: PersistChange,
}

/// Reservation Acquire; its data are [`AcquireKeys`](crate::reservation::AcquireKeys).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationAcquire {
    /// Acquire, or take from another host.
    pub action: AcquireAction,
    /// The current key is not compared; forbidden by Base 2.0, 7.2: the controller refuses it.
    pub ignore_key: bool,
    /// The type of the reservation.
    pub kind: ReservationKind,
}

/// Reservation Release; its data are the key, eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationRelease {
    /// One's own or all.
    pub action: ReleaseAction,
    /// The current key is not compared.
    pub ignore_key: bool,
    /// The type of the held reservation.
    pub kind: ReservationKind,
}

/// A vendor specific command, with its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// 80h to FFh.
    pub opcode: u8,
    /// Dwords 2 and 3.
    pub dwords_2: [u32; 2],
    /// Dwords 10 to 15.
    pub dwords_10: [u32; 6],
}

pub(super) fn decode(entry: &Sqe) -> Result<Io, CommandError> {
    Ok(match entry.opcode {
        FLUSH => Io::Flush,
        WRITE => Io::Write(decode_access(entry)),
        READ => Io::Read(decode_access(entry)),
        COMPARE => Io::Compare(decode_access(entry)),
        WRITE_ZEROES => Io::WriteZeroes(decode_access(entry)),
        VERIFY => Io::Verify(decode_access(entry)),
        DATASET_MANAGEMENT => Io::DatasetManagement(DatasetManagement {
            ranges_minus_one: entry.dword(0) as u8,
            intent: DatasetUse::from_bits_retain(entry.dword(1)),
        }),
        RESERVATION_REGISTER => Io::ReservationRegister(decode_register(entry.dword(0))?),
        RESERVATION_REPORT => {
            Io::ReservationReport { dwords_minus_one: entry.dword(0), is_extended: entry.dword(1) & 1 != 0 }
        }
        RESERVATION_ACQUIRE => Io::ReservationAcquire(decode_acquire(entry.dword(0))?),
        RESERVATION_RELEASE => Io::ReservationRelease(decode_release(entry.dword(0))?),
        COPY => Io::Copy(decode_copy(entry)?),
        VENDOR_MIN.. => Io::Vendor(Vendor {
            opcode: entry.opcode,
            dwords_2: entry.dwords_2.map(U32::get),
            dwords_10: entry.dwords_10.map(U32::get),
        }),
        opcode => return Err(CommandError::Opcode { opcode, queue: QueueKind::Io }),
    })
}

fn decode_access(entry: &Sqe) -> Access {
    Access {
        start: wide(entry.dword(0), entry.dword(1)),
        blocks_minus_one: entry.dword(2) as u16,
        flags: AccessFlags::from_bits_retain((entry.dword(2) >> 16) as u16),
    }
}

fn decode_copy(entry: &Sqe) -> Result<Copy, CommandError> {
    let word = entry.dword(2);
    Ok(Copy {
        start: wide(entry.dword(0), entry.dword(1)),
        ranges_minus_one: word as u8,
        format: CopyFormat::checked(bits(word, 8, 4) as u8, "copy descriptor format")?,
        flags: AccessFlags::from_bits_retain((word >> 16) as u16),
    })
}

fn decode_register(word: u32) -> Result<ReservationRegister, CommandError> {
    Ok(ReservationRegister {
        action: RegisterAction::checked(bits(word, 0, 3) as u8, "reservation register action")?,
        ignore_key: bits(word, 3, 1) != 0,
        persist: PersistChange::checked(bits(word, 30, 2) as u8, "change of persistence")?,
    })
}

fn decode_acquire(word: u32) -> Result<ReservationAcquire, CommandError> {
    Ok(ReservationAcquire {
        action: AcquireAction::checked(bits(word, 0, 3) as u8, "reservation acquire action")?,
        ignore_key: bits(word, 3, 1) != 0,
        kind: ReservationKind::checked(bits(word, 8, 8) as u8, "reservation type")?,
    })
}

fn decode_release(word: u32) -> Result<ReservationRelease, CommandError> {
    Ok(ReservationRelease {
        action: ReleaseAction::checked(bits(word, 0, 3) as u8, "reservation release action")?,
        ignore_key: bits(word, 3, 1) != 0,
        kind: ReservationKind::checked(bits(word, 8, 8) as u8, "reservation type")?,
    })
}

pub(super) fn encode(body: &Io, bare: Sqe) -> Sqe {
    let (opcode, words) = match *body {
        Io::Flush => (FLUSH, dwords([])),
        Io::Write(access) => (WRITE, access_dwords(access)),
        Io::Read(access) => (READ, access_dwords(access)),
        Io::Compare(access) => (COMPARE, access_dwords(access)),
        Io::WriteZeroes(access) => (WRITE_ZEROES, access_dwords(access)),
        Io::Verify(access) => (VERIFY, access_dwords(access)),
        Io::DatasetManagement(DatasetManagement { ranges_minus_one, intent }) => {
            (DATASET_MANAGEMENT, dwords([u32::from(ranges_minus_one), intent.bits()]))
        }
        Io::ReservationRegister(register) => (RESERVATION_REGISTER, dwords([register_dword(register)])),
        Io::ReservationReport { dwords_minus_one, is_extended } => {
            (RESERVATION_REPORT, dwords([dwords_minus_one, u32::from(is_extended)]))
        }
        Io::ReservationAcquire(ReservationAcquire { action, ignore_key, kind }) => {
            (RESERVATION_ACQUIRE, dwords([held_dword(action.code(), ignore_key, kind)]))
        }
        Io::ReservationRelease(ReservationRelease { action, ignore_key, kind }) => {
            (RESERVATION_RELEASE, dwords([held_dword(action.code(), ignore_key, kind)]))
        }
        Io::Copy(copy) => (COPY, copy_dwords(copy)),
        Io::Vendor(Vendor { opcode, dwords_2, dwords_10 }) => {
            return Sqe { opcode, dwords_2: dwords_2.map(U32::from), dwords_10: dwords_10.map(U32::from), ..bare };
        }
    };
    Sqe { opcode, dwords_10: words, ..bare }
}

fn access_dwords(access: Access) -> [U32; 6] {
    let [low, high] = halves(access.start);
    let third = u32::from(access.blocks_minus_one) | u32::from(access.flags.bits()) << 16;
    dwords([low.get(), high.get(), third])
}

fn copy_dwords(copy: Copy) -> [U32; 6] {
    let [low, high] = halves(copy.start);
    let format = u32::from(copy.format.code()) << 8;
    let third = u32::from(copy.ranges_minus_one) | format | u32::from(copy.flags.bits()) << 16;
    dwords([low.get(), high.get(), third])
}

fn register_dword(register: ReservationRegister) -> u32 {
    let persist = u32::from(register.persist.code()) << 30;
    u32::from(register.action.code()) | u32::from(register.ignore_key) << 3 | persist
}

fn held_dword(action: u8, ignore_key: bool, kind: ReservationKind) -> u32 {
    u32::from(action) | u32::from(ignore_key) << 3 | u32::from(kind.code()) << 8
}
