//! Counters of a drive.

use super::{Command, CommandKind, Done};
use crate::ssd::array::{ArrayCounters, Busy, FlashArray};
use crate::ssd::ftl::{FtlCounters, TranslationLayer, Wear};
use crate::ssd::volume::CollectStep;
use base::{Span, Time};
use hdrhistogram::Histogram;

/// A drive's report; everything counts from its start (see
/// [`restart_report`](super::SolidState::restart_report)).
#[derive(Clone, Debug, PartialEq)]
pub struct DriveReport {
    /// From the first command to the last end.
    pub elapsed: Span,
    /// Latencies of reads, `None` without any.
    pub reads: Option<LatencyQuantiles>,
    /// Latencies of writes, `None` without any.
    pub writes: Option<LatencyQuantiles>,
    /// Parts of reads that needed no flash.
    pub without_flash: u64,
    /// Units of which only a part was written.
    pub partial_writes: u64,
    /// Repetitions of reads.
    pub read_retries: u64,
    /// Programs and erases that were interrupted.
    pub interruptions: u64,
    /// Units programmed, moved and padded ones included, for each unit that the host wrote; `None`
    /// if it wrote none.
    pub write_amplification: Option<f64>,
    /// Units that the host wrote.
    pub host_units: u64,
    /// Units that collection moved.
    pub relocated_units: u64,
    /// Blocks erased.
    pub erases: u64,
    /// What collection kept dies busy, summed over its operations.
    pub collection_time: Span,
    /// Victims that were collected at once because no block was free.
    pub forced_collections: u64,
    /// Writes that waited for room in the buffer.
    pub stalls: u64,
    /// How long, summed.
    pub stall_time: Span,
    /// The share of the elapsed time for which each channel transferred.
    pub channel_utilisation: Vec<f64>,
    /// Erase counts, over the drive's life.
    pub wear: Wear,
}

/// A distribution of latencies. Values are exact to three digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyQuantiles {
    /// Commands.
    pub count: u64,
    /// Mean.
    pub mean: Span,
    /// Half are at most so long.
    pub p50: Span,
    /// 90 %.
    pub p90: Span,
    /// 99 %.
    pub p99: Span,
    /// 99.9 %.
    pub p999: Span,
    /// The longest.
    pub max: Span,
}

/// What the parts of a drive have seen since the report began.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) without_flash: u64,
    pub(super) partial_writes: u64,
    pub(super) forced_collections: u64,
    pub(super) stalls: u64,
    pub(super) stall_time: Span,
    collection_time: Span,
    /// In nanoseconds.
    reads: Histogram<u64>,
    writes: Histogram<u64>,
    first: Option<Time>,
    last: Time,
    array: ArrayCounters,
    layer: FtlCounters,
}

/// An hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

impl Observed {
    /// Nothing yet; what array and layer have done before does not count.
    pub(super) fn from(array: &FlashArray, layer: &TranslationLayer) -> Observed {
        let latencies =
            Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS).expect("bounds and digits of a histogram are sound");
        Observed {
            without_flash: 0,
            partial_writes: 0,
            forced_collections: 0,
            stalls: 0,
            stall_time: Span::ZERO,
            collection_time: Span::ZERO,
            reads: latencies.clone(),
            writes: latencies,
            first: None,
            last: Time::ZERO,
            array: array.counters().clone(),
            layer: layer.counters(),
        }
    }
    /// A command was booked.
    pub(super) fn command(&mut self, now: Time, command: Command, done: &Done) {
        self.first.get_or_insert(now);
        self.last = self.last.max(done.end);
        let latency_ns = (done.end - now).as_ps() / 1_000;
        match command.kind {
            CommandKind::Read => self.reads.saturating_record(latency_ns),
            CommandKind::Write => self.writes.saturating_record(latency_ns),
            CommandKind::Trim | CommandKind::Flush => {}
        }
    }
    /// A step of collection was booked.
    pub(super) fn collection(&mut self, step: &CollectStep) {
        if let Some(booked) = step.booked() {
            self.collection_time += booked.service;
        }
    }
    pub(super) fn report(&self, array: &FlashArray, layer: &TranslationLayer) -> DriveReport {
        let elapsed = self.first.map_or(Span::ZERO, |first| self.last.saturating_since(first));
        let (counters, written) = (layer.counters(), array.counters());
        DriveReport {
            elapsed,
            reads: quantiles(&self.reads),
            writes: quantiles(&self.writes),
            without_flash: self.without_flash,
            partial_writes: self.partial_writes,
            read_retries: written.retries - self.array.retries,
            interruptions: written.interruptions - self.array.interruptions,
            write_amplification: amplification(&self.layer, &counters),
            host_units: counters.host_units - self.layer.host_units,
            relocated_units: counters.relocated_units - self.layer.relocated_units,
            erases: counters.erases - self.layer.erases,
            collection_time: self.collection_time,
            forced_collections: self.forced_collections,
            stalls: self.stalls,
            stall_time: self.stall_time,
            channel_utilisation: utilisation(&self.array.channels, &written.channels, elapsed),
            wear: layer.wear(),
        }
    }
}

/// What was programmed between two moments for each unit that the host wrote.
pub(in crate::ssd) fn amplification(before: &FtlCounters, after: &FtlCounters) -> Option<f64> {
    let host = after.host_units - before.host_units;
    let moved = after.relocated_units - before.relocated_units;
    let padded = after.padded_units - before.padded_units;
    (host > 0).then(|| (host + moved + padded) as f64 / host as f64)
}

fn utilisation(before: &[Busy], after: &[Busy], elapsed: Span) -> Vec<f64> {
    let busy = before.iter().zip(after).map(|(before, after)| after.total() - before.total());
    busy.map(|busy| if elapsed == Span::ZERO { 0.0 } else { busy.ratio(elapsed) }).collect()
}

fn quantiles(latencies: &Histogram<u64>) -> Option<LatencyQuantiles> {
    let at = |quantile| Span::ns(latencies.value_at_quantile(quantile));
    (!latencies.is_empty()).then(|| LatencyQuantiles {
        count: latencies.len(),
        mean: Span::from_ps_f64(latencies.mean() * 1e3),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: Span::ns(latencies.max()),
    })
}
