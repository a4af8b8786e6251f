//! Commands as meanings. The queue decides which command set an opcode belongs to, so that decoding
//! needs to know it.

mod admin;
mod fabrics;
mod io;

pub use admin::{Admin, FeatureSelect, GetLogPage, Identify, SetFeatures};
pub use fabrics::{Connect, ConnectAttributes, ConnectRefusal, ConnectReply, Fabrics, PropertySize};
pub use io::{
    Access, AccessFlags, Copy, DatasetManagement, DatasetUse, Io, ReservationAcquire, ReservationRegister,
    ReservationRelease, Vendor,
};

use crate::sgl::Sgl;
use crate::status::Status;
use crate::{CodecError, Sqe};

/// Opcode that all fabrics commands share.
pub const FABRICS_OPCODE: u8 = 0x7f;
/// Flags, bits 7:6 = 01: data are described by an SGL, as always on fabrics (Base 2.0, Figure 86).
const FLAGS_SGL: u8 = 0x40;

/// Which command set a queue carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueKind {
    /// Queue 0: fabrics and admin commands.
    Admin,
    /// Any other: fabrics (Connect, authentication, Disconnect) and NVM commands.
    Io,
}

impl QueueKind {
    /// Queue 0 is the admin queue.
    pub const fn of(queue: u16) -> Self {
        if queue == 0 { QueueKind::Admin } else { QueueKind::Io }
    }
}

crate::layout::codes! {
    /// Whether a command is one half of a fused pair (Base 2.0, Figure 86).
    pub enum Fuse: u8 {
        /// Alone.
        None = 0,
        /// First half; the second follows it in the queue.
        First = 1,
        /// Second half.
        Second = 2,
    }
}

/// Which way an opcode says that data go (Base 2.0, Figure 86: opcode bits 1:0). Vendors' opcodes
/// keep to it too, since hosts map data by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// 00b.
    None,
    /// 01b.
    HostToController,
    /// 10b.
    ControllerToHost,
    /// 11b.
    Both,
}

impl Direction {
    /// Of an opcode; of a fabrics command the type in its place.
    pub const fn of(opcode: u8) -> Self {
        match opcode & 3 {
            0 => Direction::None,
            1 => Direction::HostToController,
            2 => Direction::ControllerToHost,
            _ => Direction::Both,
        }
    }
}

/// A decoded command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The host's name for it: any 16 bits.
    pub id: u16,
    /// Half of a fused pair or not.
    pub fuse: Fuse,
    /// Namespace, 0 for none and FFFFFFFFh for all; fabrics commands have none (0).
    pub namespace: u32,
    /// Where its data are.
    pub data: Sgl,
    /// The operation.
    pub body: Body,
}

/// The operation, by command set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Any queue of a fabric.
    Fabrics(Fabrics),
    /// Queue 0.
    Admin(Admin),
    /// Other queues.
    Io(Io),
}

/// Why an entry is no valid command. The command fails, and the connection stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// No command of this queue has that opcode.
    #[error("opcode {opcode:#04x} is unknown on an {queue:?} queue")]
    Opcode {
        /// The opcode, of a fabrics command its type.
        opcode: u8,
        /// The queue's kind.
        queue: QueueKind,
    },
    /// A field has an invalid value.
    #[error(transparent)]
    Field(#[from] CodecError),
}

impl CommandError {
    /// The status of the completion: both errors would repeat.
    pub const fn status(&self) -> Status {
        match self {
            CommandError::Opcode { .. } => Status::INVALID_OPCODE.without_retry(),
            CommandError::Field(_) => Status::INVALID_FIELD.without_retry(),
        }
    }
}

impl Command {
    /// A command alone, without namespace or data.
    pub const fn new(id: u16, body: Body) -> Self {
        Command { id, fuse: Fuse::None, namespace: 0, data: Sgl::NONE, body }
    }

    /// Reads an entry that came by a queue of this kind. Reserved fields and those of features that
    /// are not spoken here (metadata, protection information, placement directives) are not looked
    /// at.
    pub fn decode(entry: &Sqe, queue: QueueKind) -> Result<Self, CommandError> {
        let fuse = Fuse::checked(entry.flags & 3, "fuse")?;
        let body = match (entry.opcode, queue) {
            (FABRICS_OPCODE, _) => Body::Fabrics(fabrics::decode(entry, queue)?),
            (_, QueueKind::Admin) => Body::Admin(admin::decode(entry)?),
            (_, QueueKind::Io) => Body::Io(io::decode(entry)?),
        };
        let namespace = if entry.opcode == FABRICS_OPCODE { 0 } else { entry.namespace.get() };
        Ok(Command { id: entry.id.get(), fuse, namespace, data: entry.sgl(), body })
    }

    /// As an entry.
    pub fn encode(&self) -> Sqe {
        let bare = Sqe {
            flags: FLAGS_SGL | self.fuse.code(),
            id: self.id.into(),
            namespace: self.namespace.into(),
            data: self.data.encode(),
            ..Sqe::default()
        };
        match &self.body {
            Body::Fabrics(body) => fabrics::encode(body, bare),
            Body::Admin(body) => admin::encode(body, bare),
            Body::Io(body) => io::encode(body, bare),
        }
    }
}

/// Which way data of an entry go: by opcode, of fabrics commands by type.
pub fn direction(entry: &Sqe) -> Direction {
    Direction::of(if entry.opcode == FABRICS_OPCODE { entry.namespace.get() as u8 } else { entry.opcode })
}

/// `count` bits of `word` from bit `low` on.
const fn bits(word: u32, low: u32, count: u32) -> u32 {
    word >> low & ((1 << count) - 1)
}

/// Two dwords as one number.
fn wide(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// One number as two dwords.
fn halves(value: u64) -> [zerocopy::little_endian::U32; 2] {
    [(value as u32).into(), ((value >> 32) as u32).into()]
}

/// Dwords 10 to 15, the first ones given.
fn dwords<const N: usize>(given: [u32; N]) -> [zerocopy::little_endian::U32; 6] {
    let mut all = [0.into(); 6];
    for (place, value) in all.iter_mut().zip(given) {
        *place = value.into();
    }
    all
}

#[cfg(test)]
mod tests;
