//! Bandwidth for answers, booked when the request passes (paper, 4.4).
//!
//! A read that comes in by a port books, on that port's egress, the bandwidth that its answer is
//! expected to take; a token bucket a session lets the answers out at the sum of what their session
//! has booked; the response gives the booking back. [`Bookings`] counts, one [`Policer`] a port
//! holds packets back.
//!
//! What reads under way are expected to take leaves *headroom*, and the over-commitment follows it:
//! on an idle port a read books next to nothing and its answer is not held back, on a full one it
//! books much of its estimate and is held near to it. A port is *over-subscribed* when the
//! estimates of its reads leave none.
//!
//! A booking is a number, not a record: what one response gives back is found from the size of its
//! I/O and the time that the hop itself wrote into the trail. Bookings are kept in two spans
//! ("this" and "the last"); what is older, because its response was lost or took another way,
//! lapses. So memory does not grow with I/Os in flight and nothing leaks.

mod booking;
mod class;
mod policer;

pub(crate) use booking::Ledger;
pub use booking::{Bookings, Release};
pub use policer::{Buckets, Held, Policer, Released};

use crate::id::SessionId;
use base::{Bytes, Rate, Span};

/// Parameters of eager bandwidth reservation. The paper measures the first two and prints neither
/// (4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationConfig {
    /// Bandwidth that a read is expected to take, by its size: the first entry whose size is at
    /// least the I/O's, else the last. From profiles, sizes rising, not empty.
    pub estimates: Vec<Estimate>,
    /// The over-commitment factor by the headroom of the port: the first step whose `headroom_min`
    /// (of 1,024) is there, else the last. Not empty.
    pub over_commitment: Vec<OverCommitment>,
    /// Whether a port that is over-subscribed commits only half as much over, and ranks commands as
    /// if their drives had half the credit (paper, 5.1, of its switched prototype).
    pub is_conservative: bool,
    /// Part of a port's rate that may be booked, of 1,024.
    pub limit: u16,
    /// Whether a session's bucket fills at what is booked, the estimates times the factor, rather
    /// than at the estimates over the factor.
    pub fills_at_booked: bool,
    /// What a session may send at once: the bucket's size. At least an MTU.
    pub burst: Bytes,
    /// Sessions are policed in this many classes (session modulo classes): as many as sessions
    /// polices each alone.
    pub classes: u32,
    /// A booking whose response has not come within one to two of these lapses. Whole nanoseconds,
    /// as trails tell times.
    pub lapse: Span,
    /// Whether the last data of a read end it and no response follows:
    /// [`crate::wire::WireConfig::success_flag`].
    pub data_end_reads: bool,
    /// Whether a rejected command goes on to its target, where it does nothing, beside the answer
    /// that goes back: the stream of its connection has no hole then ([`crate::connection`]).
    pub passes_rejected: bool,
}

/// Sessions that are policed together: see [`ReservationConfig::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

impl ClassId {
    /// As an index into a table of classes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One entry of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// I/Os up to this size.
    pub bytes_max: Bytes,
    /// Take this rate.
    pub rate: Rate,
}

/// One step of the over-commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverCommitment {
    /// Where at least this part of the limit is free, of 1,024.
    pub headroom_min: u16,
    /// This part of an estimate is booked, of 1,024, and answers may take the estimate over it:
    /// 1,024 is no over-commitment.
    pub factor: u16,
}

impl ReservationConfig {
    /// The class in which a session is policed.
    pub fn class_of(&self, session: SessionId) -> ClassId {
        // Usually each session is its own class, and a division would cost more than all else here.
        ClassId(if session.0 < self.classes { session.0 } else { session.0 % self.classes })
    }

    /// What a read of `bytes` is expected to take, in bits a second.
    pub fn estimate_bps(&self, bytes: u32) -> u64 {
        let fits = |estimate: &&Estimate| estimate.bytes_max.count() >= u64::from(bytes);
        self.estimates.iter().find(fits).or(self.estimates.last()).map_or(0, |estimate| estimate.rate.as_bps())
    }

    /// The factor, of 1,024, where `free` of `limit` is free.
    pub fn factor(&self, free: u64, limit: u64) -> u64 {
        let is_there = |step: &&OverCommitment| free * 1024 >= u64::from(step.headroom_min) * limit;
        let step = self.over_commitment.iter().find(is_there).or(self.over_commitment.last());
        let factor = step.map_or(1024, |step| u64::from(step.factor));
        if free == 0 && self.is_conservative { (2 * factor).min(1024) } else { factor }
    }
}

#[cfg(test)]
mod tests;
