//! Sums up a trace of any length in memory that does not grow with it.

use super::BlockRequest;
use base::{Bytes, Operation, Span, Time};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The unit of a footprint.
const BLOCK: u64 = 4096;
/// Number of smallest hashes that are kept: a footprint is exact up to this many blocks, and beyond
/// off by about `1 / sqrt`, 0.4 % (Bar-Yossef et al., "Counting distinct elements in a data
/// stream", 2002, algorithm 1).
const HASHES_KEPT: usize = 1 << 16;
/// Of a request larger than this many blocks, every n-th block counts for those between.
const BLOCKS_OF_A_REQUEST_MAX: u64 = 1 << 12;
/// A size is kept to this many bits: whole sectors up to 1 MiB are exact.
const SIZE_BITS: u32 = 11;
/// The most devices that are counted apart.
const DEVICES_MAX: usize = 1 << 16;

/// Collects what a [`Report`] says.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    reads: Direction,
    writes: Direction,
    gaps: Gaps,
    seconds: Seconds,
    footprint: Distinct,
    written: Distinct,
    devices: BTreeMap<u32, DeviceCount>,
    uncounted: u64,
    ends: BTreeMap<u32, u64>,
    sequential: u64,
    end: u64,
}

/// What there is to know about a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Its requests.
    pub requests: u64,
    /// Share of reads among them.
    pub read_share: f64,
    /// Its reads.
    pub reads: SizeSummary,
    /// Its writes.
    pub writes: SizeSummary,
    /// From the first request to the last, in seconds.
    pub span_s: f64,
    /// Requests a second over the whole span; 0 when it has none.
    pub requests_per_second: f64,
    /// Bytes a second over the whole span; 0 when it has none.
    pub bytes_per_second: f64,
    /// Requests in the busiest second, counted from the first request.
    pub requests_in_busiest_second: u64,
    /// Standard deviation of the gaps between requests over their mean: 1 for a Poisson process,
    /// more for bursts.
    pub gap_variation: f64,
    /// Share of requests that begin where the request before on the same device has ended.
    pub sequential_share: f64,
    /// How many different blocks of 4 KiB are touched.
    pub footprint: Footprint,
    /// How many different blocks of 4 KiB are written.
    pub written_footprint: Footprint,
    /// Where the last byte of all ends: a device must be at least this large.
    pub end_bytes: u64,
    /// Device by device, in order of their numbers.
    pub devices: Vec<DeviceCount>,
    /// Requests of further devices, which are not counted apart: only 65,536 are.
    pub requests_of_other_devices: u64,
}

/// Requests of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SizeSummary {
    /// The requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The mean size in bytes, 0 if there is none.
    pub mean_bytes: f64,
    /// The smallest size.
    pub least_bytes: u64,
    /// The size that half of them do not exceed. Percentiles are exact for whole sectors up to 1
    /// MiB, and rounded up by less than 0.1 % beyond.
    pub median_bytes: u64,
    /// The size that 90 of 100 do not exceed.
    pub p90_bytes: u64,
    /// The size that 99 of 100 do not exceed.
    pub p99_bytes: u64,
    /// The largest size.
    pub most_bytes: u64,
}

/// A number of different blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Footprint {
    /// In bytes, of blocks of 4 KiB.
    pub bytes: u64,
    /// Whether it is exact. An estimate is off by about 0.4 % (one standard deviation).
    pub is_exact: bool,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceCount {
    /// Its number.
    pub device: u32,
    /// Its name, where the trace gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Where its last byte ends.
    pub end_bytes: u64,
}

impl Inspection {
    /// Counts `request`, which does not come before the last one.
    pub fn add(&mut self, request: &BlockRequest) {
        self.gaps.add(request.at);
        self.seconds.add(request.at);
        match request.operation {
            Operation::Read => self.reads.add(request.bytes),
            Operation::Write | Operation::ReadModifyWrite => self.writes.add(request.bytes),
        }
        self.add_place(request);
        self.add_device(request);
    }

    fn add_place(&mut self, request: &BlockRequest) {
        let end = request.address + request.bytes.count();
        self.end = self.end.max(end);
        let (first, last) = (request.address / BLOCK, (end - 1) / BLOCK);
        let step = (last - first) / BLOCKS_OF_A_REQUEST_MAX + 1;
        for block in (first..=last).step_by(step as usize) {
            let hash = hash(request.device, block);
            self.footprint.add(hash);
            if request.operation != Operation::Read {
                self.written.add(hash);
            }
        }
    }

    fn add_device(&mut self, request: &BlockRequest) {
        if self.devices.len() == DEVICES_MAX && !self.devices.contains_key(&request.device) {
            self.uncounted += 1;
            return;
        }
        let end = request.address + request.bytes.count();
        let before = self.ends.insert(request.device, end);
        self.sequential += u64::from(before == Some(request.address));
        let count = self.devices.entry(request.device).or_default();
        count.device = request.device;
        match request.operation {
            Operation::Read => count.reads += 1,
            Operation::Write | Operation::ReadModifyWrite => count.writes += 1,
        }
        count.bytes += request.bytes.count();
        count.end_bytes = count.end_bytes.max(end);
    }

    /// The sum of it all. `name_of` gives the names of devices that have one.
    pub fn report(&self, name_of: impl Fn(u32) -> Option<String>) -> Report {
        let requests = self.reads.requests + self.writes.requests;
        let span_s = self.gaps.span().as_secs_f64();
        let per_second = |amount: u64| if span_s > 0.0 { amount as f64 / span_s } else { 0.0 };
        let named = |count: &DeviceCount| DeviceCount { name: name_of(count.device), ..count.clone() };
        Report {
            requests,
            read_share: share(self.reads.requests, requests),
            reads: self.reads.summary(),
            writes: self.writes.summary(),
            span_s,
            requests_per_second: per_second(requests),
            bytes_per_second: per_second(self.reads.bytes + self.writes.bytes),
            requests_in_busiest_second: self.seconds.most,
            gap_variation: self.gaps.variation(),
            sequential_share: share(self.sequential, requests),
            footprint: self.footprint.footprint(),
            written_footprint: self.written.footprint(),
            end_bytes: self.end,
            devices: self.devices.values().map(named).collect(),
            requests_of_other_devices: self.uncounted,
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Sizes of reads or of writes.
#[derive(Clone, Debug, Default)]
struct Direction {
    requests: u64,
    bytes: u64,
    sizes: BTreeMap<u64, u64>,
    least: Option<u64>,
    most: u64,
}

impl Direction {
    fn add(&mut self, bytes: Bytes) {
        let bytes = bytes.count();
        self.requests += 1;
        self.bytes += bytes;
        self.least = Some(self.least.map_or(bytes, |least| least.min(bytes)));
        self.most = self.most.max(bytes);
        *self.sizes.entry(rounded_up(bytes)).or_default() += 1;
    }

    fn summary(&self) -> SizeSummary {
        SizeSummary {
            requests: self.requests,
            bytes: self.bytes,
            mean_bytes: share(self.bytes, self.requests),
            least_bytes: self.least.unwrap_or(0),
            median_bytes: self.percentile(50),
            p90_bytes: self.percentile(90),
            p99_bytes: self.percentile(99),
            most_bytes: self.most,
        }
    }

    /// The least size that `percent` of 100 do not exceed.
    fn percentile(&self, percent: u64) -> u64 {
        let wanted = (u128::from(self.requests) * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        let reached = self.sizes.iter().find(|(_, count)| {
            seen += u128::from(**count);
            seen >= wanted
        });
        reached.map_or(0, |(size, _)| (*size).min(self.most))
    }
}

fn rounded_up(bytes: u64) -> u64 {
    let extra_bits = (u64::BITS - bytes.leading_zeros()).saturating_sub(SIZE_BITS);
    bytes.next_multiple_of(1 << extra_bits)
}

/// Gaps between requests.
#[derive(Clone, Debug, Default)]
struct Gaps {
    first: Option<Time>,
    last: Time,
    count: u64,
    /// Of gaps in nanoseconds: squares of picoseconds would not fit.
    squares: f64,
}

impl Gaps {
    fn add(&mut self, at: Time) {
        if self.first.is_some() {
            self.count += 1;
            self.squares += at.saturating_since(self.last).as_ns_f64().powi(2);
        }
        self.first.get_or_insert(at);
        self.last = at;
    }

    fn span(&self) -> Span {
        self.last.saturating_since(self.first.unwrap_or(self.last))
    }

    fn variation(&self) -> f64 {
        let mean = self.span().as_ns_f64() / self.count as f64;
        if self.count == 0 || mean == 0.0 {
            return 0.0;
        }
        let variance = (self.squares / self.count as f64 - mean * mean).max(0.0);
        variance.sqrt() / mean
    }
}

/// Requests in each second.
#[derive(Clone, Debug, Default)]
struct Seconds {
    second: u64,
    in_it: u64,
    most: u64,
}

impl Seconds {
    fn add(&mut self, at: Time) {
        let second = at.as_ps() / Time::secs(1).as_ps();
        self.in_it = if second == self.second { self.in_it + 1 } else { 1 };
        self.second = second;
        self.most = self.most.max(self.in_it);
    }
}

/// Counts different hashes by their smallest ones.
#[derive(Clone, Debug, Default)]
struct Distinct(BTreeSet<u64>);

impl Distinct {
    fn add(&mut self, hash: u64) {
        if self.0.len() < HASHES_KEPT {
            self.0.insert(hash);
        } else if self.0.last().is_some_and(|last| hash < *last) && self.0.insert(hash) {
            self.0.pop_last();
        }
    }

    fn footprint(&self) -> Footprint {
        let kept = self.0.len();
        let is_exact = kept < HASHES_KEPT;
        let largest = self.0.last().map_or(1.0, |last| *last as f64 / u64::MAX as f64);
        let blocks = if is_exact { kept as u64 } else { ((kept - 1) as f64 / largest).round() as u64 };
        Footprint { bytes: blocks * BLOCK, is_exact }
    }
}

/// SplitMix64's mixing (Steele et al., 2014), a permutation of 64 bits: blocks of up to 2^40 on up
/// to 2^24 devices never collide.
fn hash(device: u32, block: u64) -> u64 {
    let mut mixed = (u64::from(device) << 40) ^ block;
    mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_ns: u64, device: u32, operation: Operation, address: u64, bytes: u64) -> BlockRequest {
        BlockRequest { at: Time::ns(at_ns), device, operation, address, bytes: Bytes::new(bytes) }
    }

    fn report(requests: &[BlockRequest]) -> Report {
        let mut inspection = Inspection::default();
        requests.iter().for_each(|request| inspection.add(request));
        inspection.report(|_| None)
    }

    #[test]
    fn a_small_trace_is_summed_up_as_by_hand() {
        let second = 1_000_000_000;
        let report = report(&[
            request(0, 0, Operation::Read, 0, 4096),
            request(second, 0, Operation::Read, 4096, 8192),
            request(second, 7, Operation::Write, 4096, 512),
            request(4 * second, 0, Operation::Write, 0, 4096),
        ]);
        assert_eq!((report.requests, report.read_share), (4, 0.5));
        assert_eq!((report.reads.bytes, report.reads.mean_bytes), (12_288, 6144.0));
        assert_eq!((report.reads.median_bytes, report.reads.p99_bytes), (4096, 8192));
        assert_eq!((report.writes.least_bytes, report.writes.most_bytes), (512, 4096));
        assert_eq!((report.span_s, report.requests_per_second), (4.0, 1.0));
        assert_eq!(report.requests_in_busiest_second, 2);
        assert_eq!(report.sequential_share, 0.25, "the second follows the first; the third is on another device");
        assert_eq!(report.footprint, Footprint { bytes: 4 * 4096, is_exact: true });
        assert_eq!(report.written_footprint.bytes, 2 * 4096);
        assert_eq!(report.end_bytes, 12_288);
        let counts: Vec<_> = report.devices.iter().map(|device| (device.device, device.reads, device.writes)).collect();
        assert_eq!(counts, [(0, 2, 1), (7, 0, 1)]);
        // Gaps of 1, 0 and 3 s: mean 4/3, variance 14/9.
        assert!((report.gap_variation - (14.0f64 / 9.0).sqrt() / (4.0 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_share_and_no_rate() {
        let report = report(&[]);
        assert_eq!((report.requests, report.read_share, report.requests_per_second), (0, 0.0, 0.0));
        assert_eq!((report.reads.median_bytes, report.gap_variation), (0, 0.0));
    }

    #[test]
    fn sizes_are_exact_up_to_a_mebibyte_and_close_beyond() {
        for sectors in 1..=2048 {
            assert_eq!(rounded_up(512 * sectors), 512 * sectors);
        }
        for bytes in [(1 << 20) + 512, 12_345_678, u64::MAX >> 20] {
            let rounded = rounded_up(bytes);
            assert!(rounded >= bytes && (rounded - bytes) as f64 <= bytes as f64 / 1000.0, "{bytes}");
        }
    }

    #[test]
    fn a_footprint_is_exact_below_the_edge_and_within_two_percent_beyond() {
        let footprint = |blocks: u64| {
            let mut distinct = Distinct::default();
            (0..2).flat_map(|_| 0..blocks).for_each(|block| distinct.add(hash(3, block)));
            distinct.footprint()
        };
        let below = HASHES_KEPT as u64 - 1;
        assert_eq!(footprint(below), Footprint { bytes: below * BLOCK, is_exact: true });
        let beyond = footprint(400_000);
        assert!(!beyond.is_exact);
        assert!((beyond.bytes as f64 / (400_000 * BLOCK) as f64 - 1.0).abs() < 0.02, "{}", beyond.bytes);
    }
}
