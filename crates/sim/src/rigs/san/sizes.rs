//! Latencies apart by size: a summary tells reads from writes, and not small ones from large ones.

use base::{Bytes, Operation, Span};
use std::collections::BTreeMap;

/// The largest class: 2^23 bytes, more than any I/O here has.
const CLASSES: usize = 24;

/// Sums of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    count: u64,
    latency: Span,
}

/// Finished I/Os by operation and by size, rounded up to a power of two; warm-up included.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    classes: [[Class; CLASSES]; 2],
}

impl Sizes {
    /// An I/O has finished.
    pub fn add(&mut self, operation: Operation, bytes: Bytes, latency: Span) {
        let bits = bytes.count().next_power_of_two().trailing_zeros() as usize;
        let class = &mut self.classes[usize::from(operation != Operation::Read)][bits.min(CLASSES - 1)];
        class.count += 1;
        class.latency += latency;
    }

    /// Means of every class, where there are several: of one the summary says it all.
    pub fn facts(&self, out: &mut BTreeMap<String, f64>) {
        for (name, classes) in ["read", "write"].iter().zip(&self.classes) {
            if classes.iter().filter(|class| class.count > 0).count() < 2 {
                continue;
            }
            for (bits, class) in classes.iter().enumerate().filter(|(_, class)| class.count > 0) {
                let mean = class.latency.as_ns_f64() / class.count as f64;
                out.insert(format!("{name}_{}_bytes_latency_mean_ns", 1_u64 << bits), mean);
            }
        }
    }
}
