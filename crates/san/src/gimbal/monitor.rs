//! The load of a drive, derived from its latency (Gimbal, 4.2).

use super::GimbalConfig;
use base::Span;

/// The load of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// The mean is at or below the lower bound: the rate grows fast.
    Underused,
    /// The mean is at or below the threshold: the rate grows.
    Avoiding,
    /// The mean is above the threshold: the rate falls.
    Congested,
    /// The mean is above the upper bound: the rate falls to the drive's completion rate.
    Overloaded,
}

/// The mean latency of one kind of I/O, and the threshold that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyMonitor {
    max: Span,
    min: Span,
    latency_shift: u32,
    threshold_shift: u32,
    /// `None` before the first I/O, whose latency becomes the mean.
    mean: Option<Span>,
    threshold: Span,
}

impl LatencyMonitor {
    /// Creates a monitor without I/Os; the threshold starts at its upper bound.
    pub fn new(config: &GimbalConfig) -> Self {
        LatencyMonitor {
            max: config.latency_max,
            min: config.latency_min,
            latency_shift: config.latency_shift,
            threshold_shift: config.threshold_shift,
            mean: None,
            threshold: config.latency_max,
        }
    }

    /// Records an I/O's `latency`; returns the new load.
    pub fn record(&mut self, latency: Span) -> Condition {
        let mean = self.mean.map_or(latency, |mean| toward(mean, latency, self.latency_shift));
        self.mean = Some(mean);
        let condition = self.condition(mean);
        self.threshold = match condition {
            Condition::Overloaded | Condition::Congested => toward(self.threshold, self.max, 1),
            // At least the lower bound, or an underused drive would count as congested.
            _ => toward(self.threshold, mean, self.threshold_shift).max(self.min),
        };
        condition
    }

    fn condition(&self, mean: Span) -> Condition {
        match mean {
            mean if mean > self.max => Condition::Overloaded,
            mean if mean > self.threshold => Condition::Congested,
            mean if mean > self.min => Condition::Avoiding,
            _ => Condition::Underused,
        }
    }

    /// Returns the mean latency, or `None` before the first I/O.
    pub fn mean(&self) -> Option<Span> {
        self.mean
    }

    /// Returns the mean latency above which the drive counts as congested.
    pub fn threshold(&self) -> Span {
        self.threshold
    }
}

/// Moves `from` by 1 / 2^`shift` of its distance to `to`.
fn toward(from: Span, to: Span, shift: u32) -> Span {
    if to >= from {
        from + Span::ps((to - from).as_ps() >> shift)
    } else {
        from - Span::ps((from - to).as_ps() >> shift)
    }
}
