//! Reservations (NVM Express Base 2.0, 7.2 to 7.5 and 8.19): who may read and write a shared
//! namespace.

use crate::layout::{codes, layout};
use crate::{CodecError, HostId};

codes! {
    /// Type of a reservation (8.19.3, Figure 468), 0 for none.
    pub enum ReservationKind: u8 {
        /// No reservation.
        None = 0,
        /// Others may read.
        WriteExclusive = 1,
        /// Others may neither read nor write.
        ExclusiveAccess = 2,
        /// Registrants may write, all may read.
        WriteExclusiveRegistrants = 3,
        /// Registrants may read and write.
        ExclusiveAccessRegistrants = 4,
        /// As 3, and every registrant holds it.
        WriteExclusiveAll = 5,
        /// As 4, and every registrant holds it.
        ExclusiveAccessAll = 6,
    }
}

codes! {
    /// Reservation Register (7.3, RREGA).
    pub enum RegisterAction: u8 {
        /// Become a registrant.
        Register = 0,
        /// Cease to be one.
        Unregister = 1,
        /// Change the key.
        Replace = 2,
    }
}

codes! {
    /// Whether reservations outlive a power loss from now on (7.3, CPTPL).
    pub enum PersistChange: u8 {
        /// As before.
        Keep = 0,
        /// They do not.
        Off = 2,
        /// They do.
        On = 3,
    }
}

codes! {
    /// Reservation Acquire (7.2, RACQA).
    pub enum AcquireAction: u8 {
        /// Hold it.
        Acquire = 0,
        /// Take it from another.
        Preempt = 1,
        /// As 1, and the other's commands end.
        PreemptAndAbort = 2,
    }
}

codes! {
    /// Reservation Release (7.4, RRELA).
    pub enum ReleaseAction: u8 {
        /// No longer hold it.
        Release = 0,
        /// All registrants and the reservation go.
        Clear = 1,
    }
}

layout! {
    /// Data of Reservation Register (7.3, Figure 410).
    pub struct RegisterKeys [16] {
        /// The key so far.
        current: u64 = 0,
        /// The key from now on.
        new: u64 = 8,
    }
}

layout! {
    /// Data of Reservation Acquire (7.2, Figure 405).
    pub struct AcquireKeys [16] {
        /// The host's own key.
        current: u64 = 0,
        /// The key of the host that loses its registration.
        preempt: u64 = 8,
    }
}

layout! {
    /// Head of Reservation Report's data (7.5, Figure 416).
    pub struct ReportHead [24] {
        /// Counts changes of registrants and reservation.
        generation: u32 = 0,
        /// The type of the reservation.
        kind: ReservationKind = 4,
        /// Registrants: bytes 5 and 6.
        registrants: u16 = 5,
        /// Whether reservations survive a power loss: 0 or 1.
        persists: u8 = 9,
    }
}

layout! {
    /// A registrant where host identifiers have eight bytes (7.5, Figure 417).
    pub struct Registrant [24] {
        /// The controller of the registered host; FFFFh when it is gone.
        controller: u16 = 0,
        /// Bit 0: holds the reservation.
        status: u8 = 2,
        /// Which host.
        host_id: u64 = 8,
        /// Its key.
        key: u64 = 16,
    }
}

layout! {
    /// A registrant where host identifiers have sixteen bytes (7.5, Figure 419).
    pub struct ExtendedRegistrant [64] {
        /// As in [`Registrant`].
        controller: u16 = 0,
        /// Bit 0: holds the reservation.
        status: u8 = 2,
        /// Its key.
        key: u64 = 8,
        /// Which host.
        host_id: HostId = 16,
    }
}

/// Reservation Report's data on fabrics, where host identifiers have sixteen bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedReport {
    /// Counts changes of registrants and reservation.
    pub generation: u32,
    /// The type of the reservation.
    pub kind: ReservationKind,
    /// Whether reservations survive a power loss.
    pub persists: bool,
    /// Every host that has registered.
    pub registrants: Vec<ExtendedRegistrant>,
}

impl ExtendedReport {
    /// Bytes of the head: the ordinary one and forty that are reserved.
    pub const HEAD_BYTES: usize = 64;

    /// As bytes; the caller cuts them to the requested length. Registrants beyond 65,535 are left
    /// out.
    pub fn encode(&self) -> Vec<u8> {
        let count = self.registrants.len().min(usize::from(u16::MAX));
        let (generation, kind) = (self.generation, self.kind);
        let head = ReportHead { generation, kind, registrants: count as u16, persists: self.persists.into() };
        let mut bytes = head.encode().to_vec();
        bytes.resize(Self::HEAD_BYTES, 0);
        self.registrants[..count].iter().for_each(|registrant| bytes.extend_from_slice(&registrant.encode()));
        bytes
    }

    /// Reads a whole report; fails when it holds fewer registrants than it says.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let head = ReportHead::decode(bytes)?;
        let needed = Self::HEAD_BYTES + usize::from(head.registrants) * ExtendedRegistrant::BYTES;
        let entries = bytes.get(Self::HEAD_BYTES..needed);
        let entries = entries.ok_or(CodecError::Short { part: "reservation report", got: bytes.len(), needed })?;
        let entries = entries.chunks_exact(ExtendedRegistrant::BYTES).map(ExtendedRegistrant::decode);
        Ok(ExtendedReport {
            generation: head.generation,
            kind: head.kind,
            persists: head.persists & 1 != 0,
            registrants: entries.collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> ExtendedReport {
        let registrant = ExtendedRegistrant { controller: 3, status: 1, key: 0xabcd, host_id: HostId([9; 16]) };
        let kind = ReservationKind::WriteExclusiveRegistrants;
        ExtendedReport { generation: 0x0102, kind, persists: true, registrants: vec![registrant; 2] }
    }

    /// Base 2.0, Figures 418 and 419.
    #[test]
    fn a_report_has_a_head_of_64_bytes_and_64_a_registrant() {
        let bytes = report().encode();
        assert_eq!(bytes.len(), 64 + 2 * 64);
        assert_eq!(bytes[..10], [2, 1, 0, 0, 3, 2, 0, 0, 0, 1]);
        assert_eq!((bytes[64], bytes[66], bytes[72], bytes[80]), (3, 1, 0xcd, 9));
        assert_eq!(ExtendedReport::decode(&bytes), Ok(report()));
    }

    #[test]
    fn a_report_that_counts_more_than_it_holds_is_refused_before_memory_is_taken() {
        let mut bytes = report().encode();
        bytes[5..7].copy_from_slice(&[0xff, 0xff]);
        let needed = 64 + 65_535 * 64;
        assert_eq!(
            ExtendedReport::decode(&bytes),
            Err(CodecError::Short { part: "reservation report", got: 192, needed })
        );
    }

    /// Base 2.0, Figures 405, 410 and 417.
    #[test]
    fn keys_and_registrants_come_back() {
        let keys = RegisterKeys { current: 1, new: 0x0203 };
        assert_eq!(keys.encode(), [1, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0]);
        let taken = AcquireKeys { current: 4, preempt: 5 };
        assert_eq!((taken.encode()[0], taken.encode()[8]), (4, 5));
        let registrant = Registrant { controller: 1, status: 1, host_id: 2, key: 3 };
        assert_eq!(Registrant::decode(&registrant.encode()), Ok(registrant));
        assert_eq!((registrant.encode()[2], registrant.encode()[8], registrant.encode()[16]), (1, 2, 3));
    }

    #[test]
    fn a_reservation_of_no_known_type_is_refused_with_what_is_allowed() {
        let mut bytes = report().encode();
        bytes[4] = 7;
        let refused = ExtendedReport::decode(&bytes).unwrap_err();
        assert_eq!(refused.to_string(), "kind is 0x7, allowed is one of 0 1 2 3 4 5 6");
    }
}
