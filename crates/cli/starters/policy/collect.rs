//! When the vSSDs of RackBlox collect garbage. `cargo run --release -- run FILE` plays an
//! experiment with it.

use base::Decide;
use blox::{CollectionCheck, Urgency};
use campaign::own::{Own, main as play};
use std::process::ExitCode;

/// By the share of free blocks, as in RackBlox with the thresholds of the plan's defaults. Write
/// your own here.
#[derive(Debug)]
pub struct Mine;

impl Decide<CollectionCheck> for Mine {
    /// Whether the unit wants to collect now, and how urgently.
    fn decide(&self, unit: &CollectionCheck) -> Option<Urgency> {
        let is_below = |percent| unit.free * 100 < unit.owned * percent;
        if is_below(25) {
            return Some(Urgency::Regular);
        }
        if unit.is_coordinated && is_below(35) {
            return Some(Urgency::Soft);
        }
        (unit.is_idle && is_below(100)).then_some(Urgency::Background)
    }
}

fn main() -> ExitCode {
    play(Own::of("NAME", Mine))
}
