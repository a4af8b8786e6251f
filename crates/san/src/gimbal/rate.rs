//! The rate of I/Os to the drive, and the tokens of reads and writes (Gimbal, 4.2 and Appendix).

use super::{Condition, GimbalConfig, WriteCost};
use base::{Span, Time};

const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// The token bucket of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoKind {
    /// A read from the drive.
    Read = 0,
    /// A write to the drive, or a read-modify-write.
    Write = 1,
}

impl IoKind {
    /// Returns the kind of an operation.
    pub const fn of(operation: base::Operation) -> Self {
        match operation {
            base::Operation::Read => IoKind::Read,
            base::Operation::Write | base::Operation::ReadModifyWrite => IoKind::Write,
        }
    }

    const fn other(self) -> Self {
        match self {
            IoKind::Read => IoKind::Write,
            IoKind::Write => IoKind::Read,
        }
    }
}

/// Tokens of one kind, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    tokens: u64,
    /// Debt of I/Os larger than a full bucket; repaid before tokens accumulate.
    owed: u64,
}

impl Bucket {
    /// Adds `tokens`, up to `max`; returns the excess.
    fn fill(&mut self, tokens: u64, max: u64) -> u64 {
        let paid = tokens.min(self.owed);
        self.owed -= paid;
        let kept = (tokens - paid).min(max.saturating_sub(self.tokens));
        self.tokens += kept;
        tokens - paid - kept
    }

    fn take(&mut self, bytes: u64) {
        let paid = bytes.min(self.tokens);
        self.tokens -= paid;
        self.owed += bytes - paid;
    }

    /// Returns the number of tokens that `bytes` still need.
    fn missing(&self, bytes: u64) -> u64 {
        (bytes + self.owed).saturating_sub(self.tokens)
    }
}

/// The target rate and the two buckets that it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateController {
    /// Bytes a second.
    target: u64,
    target_min: u64,
    target_max: u64,
    underused_factor: u64,
    bucket_max: u64,
    /// Indexed by [`IoKind`].
    buckets: [Bucket; 2],
    refilled: Time,
    /// Fraction of a token left by the last refill, in 10^-12.
    remainder: u64,
    sample_bytes: u64,
    sampled: u64,
    sample_since: Time,
    /// Completion rate of the drive in the last sample, bytes a second.
    completion: Option<u64>,
}

impl RateController {
    /// Creates a controller with full buckets at the initial rate.
    pub fn new(config: &GimbalConfig) -> Self {
        let bucket_max = config.bucket_max.count().max(1);
        RateController {
            target: config.rate_initial.as_bps() / 8,
            target_min: (config.rate_min.as_bps() / 8).max(1),
            target_max: (config.rate_max.as_bps() / 8).max(1),
            underused_factor: config.underused_factor,
            bucket_max,
            buckets: [Bucket { tokens: bucket_max, owed: 0 }; 2],
            refilled: Time::ZERO,
            remainder: 0,
            sample_bytes: config.sample_bytes.count(),
            sampled: 0,
            sample_since: Time::ZERO,
            completion: None,
        }
    }

    /// Distributes the tokens earned since the last refill. Reads get cost / (cost + 1) of them;
    /// the overflow of a bucket is added to the other.
    pub fn refill(&mut self, now: Time, cost: WriteCost) {
        // Often called several times at the same time, when there is nothing to earn.
        if now <= self.refilled {
            return;
        }
        let tokens = self.earned(now - self.refilled);
        self.refilled = now;
        let reads = cost.share_of_reads(tokens);
        let [for_reads, for_writes] = &mut self.buckets;
        let over_reads = for_reads.fill(reads, self.bucket_max);
        let over_writes = for_writes.fill(tokens - reads, self.bucket_max);
        for_reads.fill(over_writes, self.bucket_max);
        for_writes.fill(over_reads, self.bucket_max);
    }

    /// Returns the whole tokens earned in a span. The result is capped at what both buckets can
    /// hold if the product exceeds 64 bits.
    fn earned(&mut self, span: Span) -> u64 {
        match self.target.checked_mul(span.as_ps()).and_then(|parts| parts.checked_add(self.remainder)) {
            Some(parts) => {
                self.remainder = parts % PS_PER_SECOND;
                parts / PS_PER_SECOND
            }
            None => {
                self.remainder = 0;
                2 * self.bucket_max + self.buckets[0].owed + self.buckets[1].owed
            }
        }
    }

    /// Returns whether there are tokens for an I/O. One that is larger than a bucket needs a full
    /// bucket and owes the rest.
    pub fn allows(&self, kind: IoKind, bytes: u32) -> bool {
        self.missing(kind, bytes) == 0
    }

    fn missing(&self, kind: IoKind, bytes: u32) -> u64 {
        self.buckets[kind as usize].missing(u64::from(bytes).min(self.bucket_max))
    }

    /// Takes the tokens of an I/O that [`RateController::allows`].
    pub fn take(&mut self, kind: IoKind, bytes: u32) {
        self.buckets[kind as usize].take(u64::from(bytes));
    }

    /// Returns the time until there are tokens for an I/O, if no others are taken and the rate
    /// stays; at least a nanosecond. Never too short, and too long by at most a few tokens.
    pub fn wait_for(&self, kind: IoKind, bytes: u32, cost: WriteCost) -> Span {
        let missing = self.missing(kind, bytes);
        let other = self.buckets[kind.other() as usize];
        let room = self.bucket_max + other.owed - other.tokens;
        // Tokens to distribute until the other bucket is full and all go here; until then only a
        // share does.
        let shared = match kind {
            IoKind::Read => cost.total_for_writes(room),
            IoKind::Write => cost.total_for_reads(room),
        };
        let reads = cost.share_of_reads(shared);
        let (got, alone) = match kind {
            IoKind::Read => (reads, cost.total_for_reads(missing)),
            IoKind::Write => (shared - reads, cost.total_for_writes(missing)),
        };
        let total = if got >= missing { alone } else { shared + (missing - got) };
        // One more token, since shares are rounded down at every refill.
        let parts = u128::from(total + 1) * u128::from(PS_PER_SECOND);
        Span::ps((parts.div_ceil(u128::from(self.target))) as u64).max(Span::ns(1))
    }

    /// Adapts the rate to `bytes` that completed while the drive was in `condition`.
    pub fn complete(&mut self, now: Time, bytes: u32, condition: Condition) {
        self.sample(now, bytes);
        let bytes = u64::from(bytes);
        let target = match condition {
            Condition::Overloaded => {
                self.buckets.iter_mut().for_each(|bucket| bucket.tokens = 0);
                self.target.min(self.completion.unwrap_or(self.target)).saturating_sub(bytes)
            }
            Condition::Congested => self.target.saturating_sub(bytes),
            Condition::Avoiding => self.target + bytes,
            Condition::Underused => self.target + self.underused_factor * bytes,
        };
        self.target = target.clamp(self.target_min, self.target_max);
    }

    fn sample(&mut self, now: Time, bytes: u32) {
        self.sampled += u64::from(bytes);
        if self.sampled < self.sample_bytes || now <= self.sample_since {
            return;
        }
        let span = u128::from((now - self.sample_since).as_ps());
        self.completion = Some((u128::from(self.sampled) * u128::from(PS_PER_SECOND) / span) as u64);
        (self.sampled, self.sample_since) = (0, now);
    }

    /// Returns the target rate, bytes a second.
    pub fn target(&self) -> u64 {
        self.target
    }

    /// Returns the tokens of a kind, bytes.
    pub fn tokens(&self, kind: IoKind) -> u64 {
        self.buckets[kind as usize].tokens
    }

    /// Returns the completion rate of the last sample, bytes a second, or `None` before the first.
    pub fn completion(&self) -> Option<u64> {
        self.completion
    }
}
