//! Bandwidth reservation for answers, made when the request passes (paper, 4.4).
//!
//! A read books, on the egress of its ingress port, the estimated bandwidth of its answer. A token
//! bucket per session releases the answers at the total rate that their session has booked. The
//! response releases the booking. [`Bookings`] keeps the totals; one [`Policer`] per port holds
//! packets back.
//!
//! The estimates of current reads leave *headroom*, which controls the over-commitment. On an idle
//! port a read books next to nothing and its answer is not held back; on a full port it books much
//! of its estimate and is held close to it. A port is *over-subscribed* when the estimates of its
//! reads leave no headroom.
//!
//! A booking is a number, not a record. The amount that a response releases follows from the size
//! of its I/O and the time that the hop itself wrote into the trail. Bookings are kept for two
//! intervals (the current and the previous one). Older ones, whose response was lost or took
//! another path, lapse. So memory does not grow with I/Os in flight and nothing leaks.

mod booking;
mod class;
mod control;
mod policer;

pub(crate) use booking::Ledger;
pub use booking::{Bookings, Release};
pub(crate) use class::ClassPlace;
pub use policer::{Buckets, Held, Policer, Released};

use crate::id::SessionId;
use base::{Bytes, Rate, Span};

/// Parameters of eager bandwidth reservation. The paper measures the first two and publishes
/// neither (4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationConfig {
    /// Estimated bandwidth of a read, by its size: the first entry whose size is at least the
    /// I/O's, else the last. From profiles, in ascending order of size, not empty.
    pub estimates: Vec<Estimate>,
    /// The over-commitment factor by the headroom of the port: the first step whose `headroom_min`
    /// (of 1,024) is available, else the last. Not empty.
    pub over_commitment: Vec<OverCommitment>,
    /// Whether an over-subscribed port over-commits only half as much, and ranks commands as if
    /// their drives had half the credit (paper, 5.1, on its switched prototype).
    pub is_conservative: bool,
    /// Bookable part of a port's rate, of 1,024.
    pub limit: u16,
    /// Whether a session's bucket fills at the booked rate (the estimates times the factor) instead
    /// of the estimates over the factor.
    pub fills_at_booked: bool,
    /// Size of a session's bucket, which is its maximum burst. At least an MTU.
    pub burst: Bytes,
    /// Number of classes in which sessions are policed (session modulo classes). With as many
    /// classes as sessions, each is policed alone.
    pub classes: u32,
    /// Lapse interval: a booking without a response lapses after one to two of these. Whole
    /// nanoseconds, the resolution of trails.
    pub lapse: Span,
    /// Time from a booking or release until the bucket fills at the new rate. The paper's switched
    /// prototype "updates the reserved bandwidth through the control plane" (4.4). Zero: at once.
    /// Admission and ranks follow the bookings at once in any case.
    pub control_delay: Span,
    /// Whether the last data of a read end it without a response:
    /// [`crate::wire::WireConfig::success_flag`].
    pub data_end_reads: bool,
    /// Whether a rejected command is forwarded to its target, where it has no effect, in addition
    /// to the answer sent back. The stream of its connection then has no gap
    /// ([`crate::connection`]).
    pub passes_rejected: bool,
}

/// Sessions that are policed together: see [`ReservationConfig::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

impl ClassId {
    /// Returns the index into a table of classes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One entry of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Maximum size of the I/Os.
    pub bytes_max: Bytes,
    /// Estimated rate of such an I/O's answer.
    pub rate: Rate,
}

/// One step of the over-commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverCommitment {
    /// Minimum free part of the limit, of 1,024.
    pub headroom_min: u16,
    /// Booked part of an estimate, of 1,024; answers may take the estimate over it. 1,024 is no
    /// over-commitment.
    pub factor: u16,
}

impl ReservationConfig {
    /// Returns the class of a session.
    pub fn class_of(&self, session: SessionId) -> ClassId {
        // Usually each session is its own class, and a division would dominate the cost.
        ClassId(if session.0 < self.classes { session.0 } else { session.0 % self.classes })
    }

    /// Returns the estimated bandwidth of a read of `bytes`, in bits a second.
    pub fn estimate_bps(&self, bytes: u32) -> u64 {
        let fits = |estimate: &&Estimate| estimate.bytes_max.count() >= u64::from(bytes);
        self.estimates.iter().find(fits).or(self.estimates.last()).map_or(0, |estimate| estimate.rate.as_bps())
    }

    /// Returns the factor, of 1,024, if `free` of `limit` is free.
    pub fn factor(&self, free: u64, limit: u64) -> u64 {
        let is_there = |step: &&OverCommitment| free * 1024 >= u64::from(step.headroom_min) * limit;
        let step = self.over_commitment.iter().find(is_there).or(self.over_commitment.last());
        let factor = step.map_or(1024, |step| u64::from(step.factor));
        if free == 0 && self.is_conservative { (2 * factor).min(1024) } else { factor }
    }
}

#[cfg(test)]
mod tests;
