//! Latency histograms as files for the standard HdrHistogram tools; `Summarizer::histograms`
//! describes the format.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use std::time::Duration;

/// Values are in picoseconds; the maximum in a line is in nanoseconds.
const PICOSECONDS_IN_A_NANOSECOND: f64 = 1e3;

/// Returns the whole file of one operation's histogram, over `(start, length)` of virtual time.
pub(crate) fn histogram_log(
    operation: &str,
    histogram: &Histogram<u64>,
    (start, length): (Duration, Duration),
) -> Vec<u8> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!("Latency of operation {operation}, values in picoseconds"))
        .with_max_value_divisor(PICOSECONDS_IN_A_NANOSECOND)
        .begin_log_with(&mut text, &mut serializer)
        .expect("memory takes every byte");
    log.write_histogram(histogram, start, length, None).expect("memory takes every byte, and V2 every histogram");
    text
}
