//! Linux's `kyber` as of 4.20 and later (block/kyber-iosched.c; "kyber: implement improved
//! heuristics", O. Sandoval, 2018) for one vSSD, which is one hardware queue.
//!
//! A job holds one of its domain's tokens from dispatch to completion. Each domain has two
//! histograms, of device time and of total time, which are evaluated at the end of a window. The
//! device is congested if the 90th percentile of any domain's device time is above its target. A
//! domain whose 99th percentile of total time is above its target gets more tokens; if the device
//! is congested, one below its target gets fewer; both in proportion.
//!
//! Left out: the domain of discards (a vSSD has none here), and the share of tags for asynchronous
//! writes (every write here is synchronous).

use super::queue::JobQueue;
use super::{Job, JobKind};
use base::{Span, Time};

const DOMAINS: usize = 3;
/// Tokens a domain (read, write, other) starts with, and never exceeds: `kyber_depth` of 4.20.
const DEPTH_MAX: [u32; DOMAINS] = [256, 128, 16];
/// Jobs of one domain in a row: `kyber_batch_size` of 4.20. (4.12 had 8 for others.)
const BATCH: [u32; DOMAINS] = [16, 8, 1];
/// From the first completion after a window to the end of the next: 100 ms (`HZ / 10`).
const WINDOW: Span = Span::ms(100);
/// Histogram buckets are quarters of the target: 2^2 up to it are good (`KYBER_GOOD_BUCKETS`), the
/// same number above are bad, the last open.
const GOOD_BUCKETS: usize = 4;
const BUCKETS: usize = 2 * GOOD_BUCKETS;
/// A percentile is taken from this many samples,
const SAMPLES_MIN: u32 = 500;
/// or from fewer once they have been waiting for this long.
const SAMPLES_WAIT_MAX: Span = Span::secs(1);
/// Percentile of device time that indicates congestion: not the 99th, so that an outlier does not.
const CONGESTION_PERCENT: u32 = 90;
/// Percentile of total time that depths follow.
const TOTAL_PERCENT: u32 = 99;

#[derive(Clone, Debug)]
pub(super) struct Kyber {
    domains: [Domain; DOMAINS],
    current: usize,
    /// Jobs that the current batch has sent.
    batched: u32,
    /// Jobs that wait, in all domains.
    waiting: usize,
    /// The largest time while nothing has completed since the last one.
    window_ends: Time,
}

impl Kyber {
    pub(super) fn new(read: Span, write: Span, coordinated: bool) -> Kyber {
        let targets = [Some(read), Some(write), None];
        let domains = std::array::from_fn(|domain| Domain::new(DEPTH_MAX[domain], targets[domain], coordinated));
        Kyber { domains, current: 0, batched: 0, waiting: 0, window_ends: Time::MAX }
    }

    pub(super) fn push(&mut self, job: Job) {
        self.waiting += 1;
        self.domains[domain_of(job.kind)].queue.push(job);
    }

    #[inline]
    pub(super) fn pop(&mut self, now: Time) -> Option<Job> {
        self.settle(now);
        if self.waiting == 0 {
            self.batched = 0;
            return None;
        }
        self.pop_waiting()
    }

    fn pop_waiting(&mut self) -> Option<Job> {
        if self.batched < BATCH[self.current]
            && let Some(job) = self.send()
        {
            return Some(job);
        }
        self.batched = 0;
        (0..DOMAINS).find_map(|_| {
            self.current = (self.current + 1) % DOMAINS;
            self.send()
        })
    }

    pub(super) fn completed(&mut self, now: Time, kind: JobKind, device_time: Span, total_time: Span) {
        self.settle(now);
        let domain = &mut self.domains[domain_of(kind)];
        domain.in_flight = domain.in_flight.saturating_sub(1);
        if let Some(latency) = &mut domain.latency {
            latency.device.add(latency.target, device_time);
            latency.total.add(latency.target, total_time);
            self.window_ends = self.window_ends.min(now + WINDOW);
        }
    }

    pub(super) fn window_ends(&self) -> Option<Time> {
        (self.window_ends < Time::MAX).then_some(self.window_ends)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    pub(super) fn depth(&self, kind: JobKind) -> u32 {
        self.domains[domain_of(kind)].depth
    }

    /// Ends the window if it is due.
    #[inline]
    pub(super) fn settle(&mut self, now: Time) {
        if self.window_ends <= now {
            self.window_ends = Time::MAX;
            self.adjust(now);
        }
    }

    /// The next job of the current domain, if it has one and a token for it.
    fn send(&mut self) -> Option<Job> {
        let job = self.domains[self.current].send()?;
        self.waiting -= 1;
        self.batched += 1;
        Some(job)
    }

    fn adjust(&mut self, now: Time) {
        // Not `any`: every domain's histogram must be evaluated, because the evaluation empties it.
        let congested = self.domains.iter_mut().fold(false, |congested, domain| domain.is_slow(now) | congested);
        for domain in &mut self.domains {
            domain.adjust(now, congested);
        }
    }
}

const fn domain_of(kind: JobKind) -> usize {
    match kind {
        JobKind::Read => 0,
        JobKind::Write => 1,
        JobKind::Other => 2,
    }
}

#[derive(Clone, Debug)]
struct Domain {
    queue: JobQueue,
    depth: u32,
    depth_max: u32,
    in_flight: u32,
    /// `None` for a domain without a target, whose depth never changes.
    latency: Option<Latency>,
}

impl Domain {
    fn new(depth_max: u32, target: Option<Span>, coordinated: bool) -> Domain {
        let latency = target.map(Latency::new);
        Domain { queue: JobQueue::new(coordinated), depth: depth_max, depth_max, in_flight: 0, latency }
    }

    fn send(&mut self) -> Option<Job> {
        if self.in_flight >= self.depth {
            return None;
        }
        let job = self.queue.pop()?;
        self.in_flight += 1;
        Some(job)
    }

    /// Returns whether the device's 90th percentile is above the target, as far as that is known.
    fn is_slow(&mut self, now: Time) -> bool {
        let bucket = self.latency.as_mut().and_then(|latency| latency.device_bucket(now));
        bucket.is_some_and(|bucket| bucket >= GOOD_BUCKETS)
    }

    fn adjust(&mut self, now: Time, congested: bool) {
        let Some(bucket) = self.latency.as_mut().and_then(|latency| latency.total_bucket(now, congested)) else {
            return;
        };
        if congested || bucket >= GOOD_BUCKETS {
            let scaled = self.depth * (bucket as u32 + 1) / GOOD_BUCKETS as u32;
            self.depth = scaled.clamp(1, self.depth_max);
        }
    }
}

/// What a domain knows of its latency.
#[derive(Clone, Debug)]
struct Latency {
    target: Span,
    device: Histogram,
    total: Histogram,
    /// Time after which few samples suffice. As in Linux both histograms share it: in a domain that
    /// is slow to gather samples, the first evaluation of one starts the wait of the other.
    wait_ends: Option<Time>,
    /// The last percentile of total time, kept for the next congestion: a domain need not have
    /// enough samples in the window in which another sees congestion. Used once, so that old news
    /// does not throttle twice.
    remembered: Option<usize>,
}

impl Latency {
    fn new(target: Span) -> Latency {
        let (device, total) = (Histogram::default(), Histogram::default());
        Latency { target, device, total, wait_ends: None, remembered: None }
    }

    fn device_bucket(&mut self, now: Time) -> Option<usize> {
        self.device.percentile(CONGESTION_PERCENT, now, &mut self.wait_ends)
    }

    fn total_bucket(&mut self, now: Time, congested: bool) -> Option<usize> {
        let bucket = self.total.percentile(TOTAL_PERCENT, now, &mut self.wait_ends);
        if congested {
            let remembered = self.remembered.take();
            return bucket.or(remembered);
        }
        self.remembered = bucket.or(self.remembered);
        bucket
    }
}

#[derive(Clone, Debug, Default)]
struct Histogram([u32; BUCKETS]);

impl Histogram {
    fn add(&mut self, target: Span, latency: Span) {
        let width_ps = (target.as_ps() / GOOD_BUCKETS as u64).max(1);
        let bucket = latency.as_ps().saturating_sub(1) / width_ps;
        self.0[bucket.min(BUCKETS as u64 - 1) as usize] += 1;
    }

    /// The bucket in which the percentile lies; the histogram is empty afterwards. `None` while
    /// there are too few samples.
    fn percentile(&mut self, percent: u32, now: Time, wait_ends: &mut Option<Time>) -> Option<usize> {
        let samples: u32 = self.0.iter().sum();
        if samples == 0 || (samples < SAMPLES_MIN && now < *wait_ends.get_or_insert(now + SAMPLES_WAIT_MAX)) {
            return None;
        }
        *wait_ends = None;
        let rank = (u64::from(samples) * u64::from(percent)).div_ceil(100);
        let counts = std::mem::take(&mut self.0);
        let mut below = counts.iter().scan(0, |sum, count| {
            *sum += u64::from(*count);
            Some(*sum)
        });
        below.position(|count| count >= rank)
    }
}
