//! What makes a workload impossible, named by field.

use crate::config::{Arrivals, Class, Config, Pattern, SizeDistribution, TraceMessage};
use base::{Bytes, Span};

/// The most nodes that a workload may have.
pub const NODES_MAX: u32 = 1 << 20;
/// The largest size of a request.
pub const SIZE_MAX: Bytes = Bytes::new(1 << 40);
/// The most requests that one node may keep outstanding in a closed loop.
pub(crate) const DEPTH_MAX: u32 = 1 << 20;
/// An on period holds this fraction of a request at least: shorter ones are no bursts, and a gap
/// would take the generator through thousands of periods.
const ON_PERIOD_REQUESTS_MIN: f64 = 1e-3;

/// Reason why a workload cannot be played. `field` is the path in [`Config`], such as
/// `mix[1].weight`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A whole number lies outside its range.
    #[error("{field}: {got} is outside {min}..={max}")]
    OutOfRange {
        /// The field.
        field: String,
        /// The rejected value.
        got: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// A real number is NaN, infinite, negative or otherwise of no use.
    #[error("{field}: {got} is not {allowed}")]
    BadNumber {
        /// The field.
        field: String,
        /// The rejected value.
        got: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// A list has no entry.
    #[error("{field}: is empty, at least one entry is needed")]
    Empty {
        /// The field.
        field: String,
    },
    /// Every weight of a list is zero.
    #[error("{field}: all weights are 0, at least one must be positive")]
    NoWeight {
        /// The field.
        field: String,
    },
    /// A list that must not fall does.
    #[error("{field}: {got} comes after {before}, values must not fall")]
    Falls {
        /// The field.
        field: String,
        /// The value.
        got: f64,
        /// The value before it.
        before: f64,
    },
    /// A message's source is its target.
    #[error("{field}: node {node} sends to itself; source and target must differ")]
    AsksItself {
        /// The message.
        field: String,
        /// The node.
        node: u32,
    },
    /// A span that must not be zero is.
    #[error("{field}: {got} is too short, allowed is {min} or more")]
    TooShort {
        /// The field.
        field: String,
        /// The rejected value.
        got: Span,
        /// The least that is allowed.
        min: Span,
    },
    /// Nothing ends the run.
    #[error("requests, duration: neither is given, one of them must end the run")]
    NoEnd,
}

/// Collects problems; its methods are the checks that several fields share.
#[derive(Default)]
pub(crate) struct Checker(Vec<Problem>);

impl Checker {
    /// Everything that was found, in the order of the checks.
    pub(crate) fn problems(self) -> Vec<Problem> {
        self.0
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub(crate) fn range(&mut self, field: impl Into<String>, got: u64, min: u64, max: u64) {
        if !(min..=max).contains(&got) {
            self.0.push(Problem::OutOfRange { field: field.into(), got, min, max });
        }
    }

    pub(crate) fn number(&mut self, field: impl Into<String>, got: f64, allowed: &'static str, good: bool) {
        if !good {
            self.0.push(Problem::BadNumber { field: field.into(), got, allowed });
        }
    }

    pub(crate) fn gap(&mut self, field: &str, picoseconds: f64) {
        let good = picoseconds.is_finite() && picoseconds > 0.0;
        self.number(field, picoseconds, "a positive, finite number of picoseconds", good);
    }

    fn size(&mut self, field: impl Into<String>, bytes: Bytes) {
        self.range(field, bytes.count(), 1, SIZE_MAX.count());
    }

    pub(crate) fn weights(&mut self, field: &str, weights: impl ExactSizeIterator<Item = f64>) {
        if weights.len() == 0 {
            return self.0.push(Problem::Empty { field: field.into() });
        }
        let mut total = 0.0;
        for (index, weight) in weights.enumerate() {
            let good = weight.is_finite() && weight >= 0.0;
            self.number(format!("{field}[{index}].weight"), weight, "a finite number of 0 or more", good);
            total += weight;
        }
        if total == 0.0 {
            self.0.push(Problem::NoWeight { field: field.into() });
        } else if total == f64::INFINITY {
            self.number(field, total, "a finite sum of weights", false);
        }
    }

    fn not_falling(&mut self, field: impl Into<String>, before: f64, got: f64) {
        if got < before {
            self.0.push(Problem::Falls { field: field.into(), got, before });
        }
    }

    fn pattern(&mut self, pattern: &Pattern, nodes: u32) {
        let others = u64::from(nodes.saturating_sub(1));
        match pattern {
            Pattern::AllToAll | Pattern::Permutation => {}
            Pattern::RoleSplit { compute } => self.range("pattern.compute", u64::from(*compute), 1, others),
            Pattern::Incast { target, sources } => {
                self.range("pattern.target", u64::from(target.0), 0, others);
                self.range("pattern.sources", u64::from(*sources), 1, others);
            }
        }
    }

    fn mix(&mut self, mix: &[Class]) {
        self.weights("mix", mix.iter().map(|class| class.weight));
        for (index, class) in mix.iter().enumerate() {
            self.sizes(&format!("mix[{index}].size"), &class.size);
        }
    }

    fn sizes(&mut self, field: &str, size: &SizeDistribution) {
        match size {
            SizeDistribution::Constant { bytes } => self.size(format!("{field}.bytes"), *bytes),
            SizeDistribution::Table { entries } => {
                let field = format!("{field}.entries");
                self.weights(&field, entries.iter().map(|(_, weight)| *weight));
                for (index, (bytes, _)) in entries.iter().enumerate() {
                    self.size(format!("{field}[{index}].size"), *bytes);
                }
            }
            SizeDistribution::Cdf { points, .. } => self.points(&format!("{field}.points"), points),
        }
    }

    fn points(&mut self, field: &str, points: &[(f64, f64)]) {
        let Some((_, last)) = points.last() else {
            return self.0.push(Problem::Empty { field: field.into() });
        };
        for (index, point) in points.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| points[before]);
            self.point(&format!("{field}[{index}]"), *point, before);
        }
        self.number(
            format!("{field}[{}].probability", points.len() - 1),
            *last,
            "1, as the last must be",
            *last == 1.0,
        );
    }

    fn point(&mut self, field: &str, (bytes, probability): (f64, f64), before: Option<(f64, f64)>) {
        let may_be_zero = probability == 0.0;
        let good = bytes <= SIZE_MAX.count() as f64 && (bytes > 0.0 || (bytes == 0.0 && may_be_zero));
        self.number(format!("{field}.bytes"), bytes, "a size up to 1TiB, above 0 where the probability is", good);
        let good = (0.0..=1.0).contains(&probability);
        self.number(format!("{field}.probability"), probability, "in 0..=1", good);
        if let Some((bytes_before, probability_before)) = before {
            self.not_falling(format!("{field}.bytes"), bytes_before, bytes);
            self.not_falling(format!("{field}.probability"), probability_before, probability);
        }
    }

    fn arrivals(&mut self, arrivals: &Arrivals, nodes: u32) {
        match arrivals {
            Arrivals::Poisson { mean_gap_ps } => self.gap("arrivals.mean_gap_ps", *mean_gap_ps),
            Arrivals::Deterministic { gap_ps } => self.gap("arrivals.gap_ps", *gap_ps),
            Arrivals::OnOff { mean_gap_ps, on, .. } => {
                self.gap("arrivals.mean_gap_ps", *mean_gap_ps);
                self.on_period(*mean_gap_ps, *on);
            }
            Arrivals::Closed { depth, .. } => {
                self.range("arrivals.depth", u64::from(*depth), 1, u64::from(DEPTH_MAX));
            }
            Arrivals::Trace { messages } => self.trace(messages, nodes),
        }
    }

    fn on_period(&mut self, mean_gap_ps: f64, on: Span) {
        let min = Span::from_ps_f64((mean_gap_ps * ON_PERIOD_REQUESTS_MIN).ceil().max(1.0));
        if on < min {
            self.0.push(Problem::TooShort { field: "arrivals.on".into(), got: on, min });
        }
    }

    fn trace(&mut self, messages: &[TraceMessage], nodes: u32) {
        if messages.is_empty() {
            self.0.push(Problem::Empty { field: "arrivals.messages".into() });
        }
        for (index, message) in messages.iter().enumerate() {
            if !message.fits(nodes) {
                self.message(&format!("arrivals.messages[{index}]"), message, nodes);
            }
        }
        for (index, pair) in messages.windows(2).enumerate().filter(|(_, pair)| pair[1].at < pair[0].at) {
            let field = format!("arrivals.messages[{}].at (ps)", index + 1);
            self.not_falling(field, pair[0].at.as_ps() as f64, pair[1].at.as_ps() as f64);
        }
    }

    fn message(&mut self, field: &str, message: &TraceMessage, nodes: u32) {
        let last = u64::from(nodes.saturating_sub(1));
        self.range(format!("{field}.source"), u64::from(message.source.0), 0, last);
        self.range(format!("{field}.target"), u64::from(message.target.0), 0, last);
        self.size(format!("{field}.bytes"), message.bytes);
        if message.source == message.target {
            self.0.push(Problem::AsksItself { field: field.into(), node: message.source.0 });
        }
    }

    fn end(&mut self, config: &Config) {
        let local = config.local_fraction;
        self.number("local_fraction", local, "a share from 0 to 1", (0.0..=1.0).contains(&local));
        match config.requests {
            Some(requests) => self.range("requests", requests, 1, u64::MAX),
            None if config.duration.is_none() && !config.is_trace() => self.0.push(Problem::NoEnd),
            None => {}
        }
        if config.duration == Some(Span::ZERO) {
            self.0.push(Problem::TooShort { field: "duration".into(), got: Span::ZERO, min: Span::ps(1) });
        }
    }
}

impl TraceMessage {
    /// Returns whether a rack of this many nodes can carry it out; the fast check of long traces.
    fn fits(&self, nodes: u32) -> bool {
        let inside = self.source.0 < nodes && self.target.0 < nodes && self.source != self.target;
        inside && self.bytes > Bytes::ZERO && self.bytes <= SIZE_MAX
    }
}

impl Config {
    /// Returns everything that makes this workload impossible to run; empty if
    /// [`crate::Generator::new`] accepts it. With a trace, `pattern` and `mix` are ignored, and
    /// neither `requests` nor `duration` is required.
    pub fn problems(&self) -> Vec<Problem> {
        let mut checker = Checker(Vec::new());
        checker.range("nodes", u64::from(self.nodes), 2, u64::from(NODES_MAX));
        if !self.is_trace() {
            checker.pattern(&self.pattern, self.nodes);
            checker.mix(&self.mix);
        }
        checker.arrivals(&self.arrivals, self.nodes);
        checker.end(self);
        checker.0
    }

    fn is_trace(&self) -> bool {
        matches!(self.arrivals, Arrivals::Trace { .. })
    }
}

impl SizeDistribution {
    /// Everything that makes it no distribution of sizes; empty when it is one. `field` begins the
    /// names of fields.
    pub fn problems(&self, field: &str) -> Vec<Problem> {
        let mut checker = Checker(Vec::new());
        checker.sizes(field, self);
        checker.0
    }
}
