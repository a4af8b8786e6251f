//! Data of one command on NVMe/TCP, from both sides: who may send which bytes next (NVMe/TCP
//! Transport 1.0, 3.3.2). No bytes are held here.
//!
//! | | host | target |
//! | --- | --- | --- |
//! | write | [`HostWrite`]: in the capsule, or by H2CData as R2Ts ask | [`TargetWrite`]: asks by R2T, takes data |
//! | read | [`HostRead`]: takes C2HData | [`TargetRead`]: sends C2HData, SUCCESS with the last where it may |
//!
//! An error is a fault of the peer that ends the connection ([`PduError`] says how). The target
//! names its R2Ts by [`Tags`], so that a tag that is no longer in use is recognised.

mod host_read;
mod host_write;
mod tags;
mod target_read;
mod target_write;

pub use host_read::HostRead;
pub use host_write::HostWrite;
pub use tags::Tags;
pub use target_read::TargetRead;
pub use target_write::{ReadyPlan, TargetWrite};

use crate::Sgl;
use crate::pdu::{PduError, PduKind};

/// Where a command's data travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// Behind the entry.
    InCapsule,
    /// In PDUs of their own.
    Separate,
}

impl Carriage {
    /// Of data to a controller that takes `in_capsule_max` bytes in a capsule: all of them or none,
    /// as one descriptor tells one place.
    pub const fn of_write(length: u32, in_capsule_max: u32) -> Self {
        if length <= in_capsule_max { Carriage::InCapsule } else { Carriage::Separate }
    }

    /// The descriptor that says so.
    pub const fn sgl(self, length: u32) -> Sgl {
        match self {
            Carriage::InCapsule => Sgl::InCapsule { offset: 0, length },
            Carriage::Separate => Sgl::Transport { length },
        }
    }
}

/// That a PDU names the command it was brought to.
fn same_command(field: &'static str, got: u16, expected: u16) -> Result<(), PduError> {
    if got == expected {
        return Ok(());
    }
    Err(PduError::Field { field, at: 8, got: got.into(), allowed: "the command whose data these are" })
}

/// That `offset` is the next byte that may come and `length` at least one and within `to`.
fn next_piece(kind: PduKind, offset: u32, length: u32, from: u32, to: u32) -> Result<(), PduError> {
    let fits = offset == from && length > 0 && length <= to - from;
    if fits { Ok(()) } else { Err(PduError::OutOfRange { kind, offset, length, from, to }) }
}

#[cfg(test)]
mod tests;
