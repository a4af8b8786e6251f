//! Wear levelling across drives (RackBlox, 3.6): the choice of drives, the execution of a swap, and
//! a model of years.
//!
//! * [`LocalBalancer`] and [`GlobalBalancer`] decide: from the wear and the wear rates of the
//!   drives they name a [`Swap`].
//! * [`SwapProgress`] orders the steps of a swap, block by block, so that a crash at any step loses
//!   nothing; [`SwapCarrier`] executes it on a server, at lower priority than its requests.
//! * [`WearModel`] simulates a rack over years with the same two balancers.
//!
//! Days are bare numbers here: `base::Time` counts picoseconds and ends after 213 days.

mod carry;
mod global;
mod local;
mod model;
mod rate;
mod swap;

pub use carry::{CarrierConfig, CarrierCounters, CarrierIn, CarrierOut, Seat, SwapCarrier, SwapCopy};
pub use global::{GlobalBalancer, GlobalConfig};
pub use local::{LocalBalancer, LocalConfig, SwapTrigger};
pub use model::{
    Assignment, DriveFlash, Lifetime, Replacement, SwapCounts, WearArm, WearConfig, WearModel, WearReport, WearSample,
    WearSnapshot, WearWorkload,
};
pub use rate::RateMeter;
pub use swap::{Admission, Side, SwapAction, SwapBlock, SwapEvent, SwapPlan, SwapProgress, SwapStage};

use serde::Serialize;

/// What a balancer knows of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SsdWear {
    /// Wear: erases of a block, mean over all blocks of the drive, to date.
    pub erases: f64,
    /// Rate of wear, in erases of a block a day; [`RateMeter`] measures it.
    pub erases_per_day: f64,
}

/// A drive of the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SsdPlace {
    /// Its server, from 0.
    pub server: u32,
    /// Its place in the server, from 0.
    pub ssd: u32,
}

/// Two drives that exchange all they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Swap {
    /// The drive that shall rest.
    pub worn: SsdPlace,
    /// The drive whose load is light, and which takes the other's.
    pub resting: SsdPlace,
}

/// Numbers that make no balancer, no swap and no rack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: got {got}, and {allowed}")]
pub struct WearError {
    /// The field of the configuration.
    pub field: &'static str,
    /// The rejected value.
    pub got: String,
    /// The allowed range.
    pub allowed: &'static str,
}

impl WearError {
    /// An error unless `is_allowed`.
    fn check(
        is_allowed: bool,
        field: &'static str,
        got: impl ToString,
        allowed: &'static str,
    ) -> Result<(), WearError> {
        if is_allowed { Ok(()) } else { Err(WearError { field, got: got.to_string(), allowed }) }
    }
}

/// Wear imbalance: the largest of all over their mean (RackBlox, 3.6: lambda). 1 where nothing is
/// worn.
pub fn imbalance(erases: impl IntoIterator<Item = f64>) -> f64 {
    let (mut largest, mut sum, mut count) = (0.0, 0.0, 0.0);
    for each in erases {
        largest = f64::max(largest, each);
        sum += each;
        count += 1.0;
    }
    if sum > 0.0 { largest * count / sum } else { 1.0 }
}

/// The place of the largest value, the first of equals; `None` if there are no values.
fn place_of_largest(values: impl IntoIterator<Item = f64>) -> Option<usize> {
    let larger = |best: Option<(usize, f64)>, (place, value): (usize, f64)| match best {
        Some((_, most)) if most >= value => best,
        _ => Some((place, value)),
    };
    values.into_iter().enumerate().fold(None, larger).map(|(place, _)| place)
}

/// Time of a balancer's next check.
#[derive(Clone, Debug)]
struct LookOut {
    period_days: u32,
    next_day: u32,
}

impl LookOut {
    /// First after one period.
    fn new(period_days: u32) -> LookOut {
        LookOut { period_days, next_day: period_days }
    }
    /// Returns whether it is time; if so, the next time is a whole period later, however late this
    /// one is.
    fn is_due(&mut self, day: u32) -> bool {
        let is_due = day >= self.next_day;
        if is_due {
            self.next_day = day.saturating_add(self.period_days);
        }
        is_due
    }
}
