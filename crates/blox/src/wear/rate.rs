//! How fast a drive wears.

/// The rate of wear of a drive, smoothed exponentially over a window of days.
///
/// The paper speaks of the rate of wear and gives no window: it is ours. A window as short as the
/// period between swaps makes the rule "largest wear against smallest rate" go wrong: a drive that
/// has just been given the lightest load is, for that, the next to be given the heaviest, worn as
/// it is, and the light load does no more than commute among the few most worn drives. A window
/// over several periods remembers that the drive wore fast until lately.
#[derive(Clone, Debug)]
pub struct RateMeter {
    window_days: u32,
    seen_days: u32,
    erases_per_day: f64,
}

impl RateMeter {
    /// Over a window of days; 0 counts as 1. While fewer days have been seen, their plain mean.
    pub fn new(window_days: u32) -> RateMeter {
        RateMeter { window_days: window_days.max(1), seen_days: 0, erases_per_day: 0.0 }
    }
    /// A day has ended in which a block was erased this many times, in the mean; erases by swaps
    /// are not counted.
    pub fn on_day(&mut self, erases: f64) {
        self.seen_days = (self.seen_days + 1).min(self.window_days);
        self.erases_per_day += (erases - self.erases_per_day) / f64::from(self.seen_days);
    }
    /// Erases of a block a day; 0 before the first day.
    pub fn erases_per_day(&self) -> f64 {
        self.erases_per_day
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_days_are_a_plain_mean_and_later_ones_forget() {
        let mut meter = RateMeter::new(4);
        for erases in [2.0, 4.0, 6.0] {
            meter.on_day(erases);
        }
        assert!((meter.erases_per_day() - 4.0).abs() < 1e-12);
        (0..40).for_each(|_| meter.on_day(1.0));
        // What is left of the difference of 3 shrinks by a quarter a day: 3 * 0.75^40.
        let left = meter.erases_per_day() - 1.0;
        assert!((left - 3.0 * 0.75f64.powi(40)).abs() < 1e-12, "{left}");
    }
}
