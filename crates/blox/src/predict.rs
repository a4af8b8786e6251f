//! Predictions of a storage server: the return latency of an answer (RackBlox, 3.4), and whether a
//! vSSD stays idle (3.5.1).

use crate::schedule::JobKind;
use base::{Span, Time};
use std::collections::VecDeque;

/// How many packets the mean is over: the paper's choice, small enough to see congestion come,
/// large enough to smooth outliers.
pub const RETURN_WINDOW: usize = 100;

/// Predicts the network latency of an answer as the mean over the most recent incoming packets of
/// one vSSD, reads and writes apart because their answers differ in size.
#[derive(Clone, Debug)]
pub struct ReturnPredictor {
    reads: Window,
    writes: Window,
}

impl ReturnPredictor {
    /// Over windows of `packets` each, [`RETURN_WINDOW`] in the paper. 0 always predicts nothing.
    pub fn new(packets: usize) -> ReturnPredictor {
        let window = Window { size: packets, latencies_ns: VecDeque::with_capacity(packets), sum_ns: 0 };
        ReturnPredictor { reads: window.clone(), writes: window }
    }

    /// A request came in that has spent `latency_ns` in the network. [`JobKind::Other`] counts as a
    /// write.
    pub fn on_packet(&mut self, kind: JobKind, latency_ns: u32) {
        match kind {
            JobKind::Read => self.reads.add(latency_ns),
            JobKind::Write | JobKind::Other => self.writes.add(latency_ns),
        }
    }

    /// What the answer to a request of this kind will probably spend in the network; nothing while
    /// none was seen.
    pub fn predict(&self, kind: JobKind) -> Span {
        match kind {
            JobKind::Read => self.reads.mean(),
            JobKind::Write | JobKind::Other => self.writes.mean(),
        }
    }
}

#[derive(Clone, Debug)]
struct Window {
    size: usize,
    latencies_ns: VecDeque<u32>,
    sum_ns: u64,
}

impl Window {
    fn add(&mut self, latency_ns: u32) {
        self.latencies_ns.push_back(latency_ns);
        self.sum_ns += u64::from(latency_ns);
        if self.latencies_ns.len() > self.size {
            self.sum_ns -= self.latencies_ns.pop_front().map_or(0, u64::from);
        }
    }

    fn mean(&self) -> Span {
        match self.latencies_ns.len() as u64 {
            0 => Span::ZERO,
            count => Span::ns(self.sum_ns) / count,
        }
    }
}

/// How the idle predictor weighs and decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleConfig {
    /// Weight of the last gap between requests against the last prediction, in thousandths: the
    /// paper's alpha of 0.5 is 500.
    pub alpha_permille: u32,
    /// Collecting in the background pays when a longer gap is expected: 30 ms in the paper.
    pub threshold: Span,
}

/// Predicts the next gap between requests to one vSSD by exponential smoothing.
#[derive(Clone, Debug)]
pub struct IdlePredictor {
    config: IdleConfig,
    predicted: Span,
    last_request: Time,
}

impl IdlePredictor {
    /// Before the first request, which counts as a gap since the start of the run. Errors when
    /// alpha is above 1.
    pub fn new(config: IdleConfig) -> Result<IdlePredictor, AlphaError> {
        if config.alpha_permille > 1_000 {
            return Err(AlphaError { got: config.alpha_permille });
        }
        Ok(IdlePredictor { config, predicted: Span::ZERO, last_request: Time::ZERO })
    }

    /// A request came.
    pub fn on_request(&mut self, now: Time) {
        self.predicted = self.smoothed(now.saturating_since(self.last_request));
        self.last_request = self.last_request.max(now);
    }

    /// The gap that the requests so far predict.
    pub fn predicted(&self) -> Span {
        self.predicted
    }

    /// Returns whether the vSSD is expected to stay idle for longer than the threshold.
    ///
    /// The paper predicts from gaps that have ended, so that a vSSD whose requests stop for good
    /// would never count as idle. Ours: the gap that is open at `now` counts like one that has
    /// ended, once it is longer than predicted.
    pub fn is_idle(&self, now: Time) -> bool {
        let open = now.saturating_since(self.last_request);
        self.predicted.max(self.smoothed(open)) > self.config.threshold
    }

    fn smoothed(&self, gap: Span) -> Span {
        let alpha = u128::from(self.config.alpha_permille);
        let sum = u128::from(gap.as_ps()) * alpha + u128::from(self.predicted.as_ps()) * (1_000 - alpha);
        Span::ps((sum / 1_000) as u64)
    }
}

/// A smoothing weight above one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("idle predictor: alpha of {got} thousandths; 0 to 1000 are allowed")]
pub struct AlphaError {
    /// The weight given, in thousandths.
    pub got: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn idle_predictor() -> IdlePredictor {
        let config = IdleConfig { alpha_permille: 500, threshold: Span::ms(30) };
        IdlePredictor::new(config).expect("alpha of one half")
    }

    #[test]
    fn the_packet_before_the_last_hundred_no_longer_counts() {
        let mut predictor = ReturnPredictor::new(RETURN_WINDOW);
        predictor.on_packet(JobKind::Read, 1_000_000);
        (0..99).for_each(|_| predictor.on_packet(JobKind::Read, 0));
        assert_eq!(predictor.predict(JobKind::Read), Span::us(10));
        predictor.on_packet(JobKind::Read, 0);
        assert_eq!(predictor.predict(JobKind::Read), Span::ZERO);
    }

    #[test]
    fn reads_and_writes_are_predicted_apart_and_nothing_is_predicted_from_nothing() {
        let mut predictor = ReturnPredictor::new(RETURN_WINDOW);
        predictor.on_packet(JobKind::Write, 300);
        assert_eq!(predictor.predict(JobKind::Read), Span::ZERO);
        assert_eq!(predictor.predict(JobKind::Write), Span::ns(300));
    }

    #[test]
    fn a_request_every_30_ms_is_never_idle_and_one_every_31_ms_soon_is() {
        for (gap_ms, idle) in [(30, false), (31, true)] {
            let mut predictor = idle_predictor();
            (1..=40).for_each(|count| predictor.on_request(Time::ms(gap_ms * count)));
            assert_eq!(predictor.is_idle(Time::ms(gap_ms * 40)), idle, "a gap of {gap_ms} ms");
        }
    }

    #[test]
    fn a_gap_counts_half_and_the_prediction_before_it_half() {
        let mut predictor = idle_predictor();
        for (at_ms, predicted) in [(8, Span::ms(4)), (10, Span::ms(3)), (110, Span::us(51_500))] {
            predictor.on_request(Time::ms(at_ms));
            assert_eq!(predictor.predicted(), predicted);
        }
    }

    #[test]
    fn a_vssd_whose_requests_stop_becomes_idle_after_the_threshold_over_alpha() {
        let mut predictor = idle_predictor();
        (0..1_000).for_each(|count| predictor.on_request(Time::us(count)));
        let last = Time::us(999);
        assert!(!predictor.is_idle(last + Span::us(59_998)));
        assert!(predictor.is_idle(last + Span::us(60_001)));
    }

    #[test]
    fn an_alpha_above_one_is_refused() {
        let config = IdleConfig { alpha_permille: 1_001, threshold: Span::ms(30) };
        assert_eq!(IdlePredictor::new(config).err(), Some(AlphaError { got: 1_001 }));
    }

    proptest! {
        #[test]
        fn the_prediction_is_the_mean_of_exactly_the_last_hundred(latencies in prop::collection::vec(any::<u32>(), 1..350)) {
            let mut predictor = ReturnPredictor::new(RETURN_WINDOW);
            for (count, latency_ns) in (1..).zip(&latencies) {
                predictor.on_packet(JobKind::Read, *latency_ns);
                let recent = &latencies[count - count.min(100)..count];
                let sum_ps: u64 = recent.iter().map(|latency_ns| u64::from(*latency_ns) * 1_000).sum();
                prop_assert_eq!(predictor.predict(JobKind::Read), Span::ps(sum_ps / recent.len() as u64));
            }
        }
    }
}
