//! Bringing a region into the state in which it is to be measured, without taking time.

use super::{RegionId, SoftwareDefinedFlash};
use crate::ssd::drive::{PreconditionError, Steady, amplification};

impl SoftwareDefinedFlash {
    /// Overwrites units of a region, in the order in which `next` names them, and collects whenever less than `keep_free` of its blocks is free, until write
    /// amplification is steady; returns that of each window. The region must hold `units` units already. Ends in any case: at the latest after
    /// [`Steady::windows_max`] windows, which is an error.
    pub fn fragment(
        &mut self,
        id: RegionId,
        units: u64,
        keep_free: f64,
        steady: Steady,
        mut next: impl FnMut() -> u64,
    ) -> Result<Vec<f64>, PreconditionError> {
        steady.check()?;
        self.use_up(id, keep_free, &mut next)?;
        let window = ((units as f64 * steady.window) as u64).max(1);
        let mut values = Vec::new();
        for _ in 0..steady.windows_max {
            values.push(self.overwrite(id, window, keep_free, &mut next)?);
            if steady.is_reached(&values) {
                return Ok(values);
            }
        }
        Err(steady.missed(&values))
    }

    /// Overwrites units until there is something to collect: before that write amplification is steady at 1 and says nothing.
    fn use_up(
        &mut self,
        id: RegionId,
        keep_free: f64,
        next: &mut impl FnMut() -> u64,
    ) -> Result<(), PreconditionError> {
        let erases = self.layer_counters(id)?.erases;
        // As many overwrites as there are units fill every block.
        for _ in 0..self.geometry().units() {
            if self.free_ratio(id)? <= keep_free || self.layer_counters(id)?.erases > erases {
                break;
            }
            self.write_untimed(id, next())?;
        }
        Ok(())
    }

    /// Overwrites so many units and returns the write amplification of that.
    fn overwrite(
        &mut self,
        id: RegionId,
        count: u64,
        keep_free: f64,
        next: &mut impl FnMut() -> u64,
    ) -> Result<f64, PreconditionError> {
        let before = self.layer_counters(id)?;
        for _ in 0..count {
            self.write_untimed(id, next())?;
            while self.free_ratio(id)? < keep_free && self.collect_untimed(id, None)? {}
        }
        Ok(amplification(&before, &self.layer_counters(id)?).expect("a window writes at least one unit"))
    }
}
