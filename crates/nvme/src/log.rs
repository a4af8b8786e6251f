//! Log pages (NVM Express Base 2.0, 5.16.1).

mod ana;
mod discovery;
mod pages;

pub use ana::{AnaGroup, AnaLog, AnaState};
pub use discovery::{AddressFamily, DiscoveryEntry, DiscoveryHead, SubsystemKind, TransportKind, TransportSecurity};
pub use pages::{
    ChangedNamespaces, CommandEffect, CommandEffects, ErrorEntry, FirmwareSlots, Health, ReservationNotice,
};

use crate::layout::codes;

codes! {
    /// Which log (LID, Figure 202).
    pub enum LogId: u8 {
        /// Which logs there are: 256 dwords, bit 0 supported.
        Supported = 0x00,
        /// [`ErrorEntry`]s, newest first.
        Errors = 0x01,
        /// [`Health`].
        Health = 0x02,
        /// [`FirmwareSlots`].
        Firmware = 0x03,
        /// [`ChangedNamespaces`].
        ChangedNamespaces = 0x04,
        /// [`CommandEffects`].
        CommandEffects = 0x05,
        /// [`AnaLog`].
        AsymmetricAccess = 0x0c,
        /// [`DiscoveryHead`] and [`DiscoveryEntry`]s.
        Discovery = 0x70,
        /// [`ReservationNotice`].
        Reservations = 0x80,
    }
}

/// The part of a log of `log_bytes` for a request of `length` from `offset` on. It is a range
/// inside the log, shorter than requested at its end: the rest of the host's buffer reads as zeros.
/// `None` when the offset is beyond the log. No sum of the host's numbers can overflow here.
pub fn window(log_bytes: usize, offset: u64, length: u64) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(offset).ok().filter(|start| *start <= log_bytes)?;
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(log_bytes - start);
    Some(start..start + length)
}

#[cfg(test)]
mod tests;
