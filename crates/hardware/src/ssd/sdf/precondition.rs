//! Bringing a region into the state in which it is to be measured, without taking time.

use super::{RegionId, SoftwareDefinedFlash};
use crate::ssd::drive::{PreconditionError, Steady, amplification};

/// Which shares of a region's blocks its owner keeps free: below `begin` it collects, up to `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptFree {
    /// Below this share collection begins.
    pub begin: f64,
    /// With this share it ends.
    pub end: f64,
}

impl SoftwareDefinedFlash {
    /// Overwrites units of a region, in the order in which `next` names them, and collects as its
    /// owner does, until write amplification is steady; returns that of each window. The region
    /// must hold `units` units already. Ends in any case: at the latest after
    /// [`Steady::windows_max`] windows, which is an error.
    pub fn fragment(
        &mut self,
        id: RegionId,
        units: u64,
        kept: KeptFree,
        steady: Steady,
        mut next: impl FnMut() -> u64,
    ) -> Result<Vec<f64>, PreconditionError> {
        steady.check()?;
        self.use_up(id, kept, &mut next)?;
        let window = ((units as f64 * steady.window) as u64).max(1);
        let mut values = Vec::new();
        let mut turn = 0;
        for _ in 0..steady.windows_max {
            values.push(self.overwrite(id, window, (kept, &mut turn), &mut next)?);
            if steady.is_reached(&values) {
                return Ok(values);
            }
        }
        Err(steady.missed(&values))
    }

    /// Overwrites units until there is something to collect: before that write amplification is
    /// steady at 1 and says nothing.
    fn use_up(
        &mut self,
        id: RegionId,
        kept: KeptFree,
        next: &mut impl FnMut() -> u64,
    ) -> Result<(), PreconditionError> {
        let erases = self.layer_counters(id)?.erases;
        // A number of overwrites equal to the number of units fills every block.
        for _ in 0..self.geometry().units() {
            if self.free_ratio(id)? < kept.begin || self.layer_counters(id)?.erases > erases {
                break;
            }
            self.write_untimed(id, next())?;
        }
        Ok(())
    }

    /// Overwrites this many units and returns the resulting write amplification.
    fn overwrite(
        &mut self,
        id: RegionId,
        count: u64,
        (kept, turn): (KeptFree, &mut usize),
        next: &mut impl FnMut() -> u64,
    ) -> Result<f64, PreconditionError> {
        let before = self.layer_counters(id)?;
        for _ in 0..count {
            self.write_untimed(id, next())?;
            if self.free_ratio(id)? < kept.begin {
                self.collect_up_to(id, kept.end, turn)?;
            }
        }
        Ok(amplification(&before, &self.layer_counters(id)?).expect("a window writes at least one unit"))
    }

    /// Collects until so large a share is free, a block of each die in turn, as their owner's
    /// streams do.
    fn collect_up_to(&mut self, id: RegionId, end: f64, turn: &mut usize) -> Result<(), PreconditionError> {
        let dies = self.dies(id)?.to_vec();
        let mut in_vain = 0;
        while in_vain < dies.len() && self.free_ratio(id)? < end {
            let has_won = self.collect_untimed(id, Some(dies[*turn % dies.len()]))?;
            in_vain = if has_won { 0 } else { in_vain + 1 };
            *turn = (*turn + 1) % dies.len();
        }
        Ok(())
    }
}
