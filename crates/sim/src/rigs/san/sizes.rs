//! Latencies apart by size: a summary tells reads from writes, and not small ones from large ones.

use base::{Bytes, Operation, Span, Time};
use record::metric::{self, Meter};

/// The largest class: 2^23 bytes, more than any I/O here has.
const CLASSES: usize = 24;

/// Sums of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    count: u64,
    latency: Span,
}

/// Finished I/Os by operation and by size, rounded up to a power of two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    classes: [[Class; CLASSES]; 2],
    from: Time,
}

impl Sizes {
    /// Of I/Os that are asked for from now on.
    pub fn from(now: Time) -> Sizes {
        Sizes { from: now, ..Sizes::default() }
    }

    /// An I/O that was asked for at `asked_at` has finished.
    pub fn add(&mut self, operation: Operation, bytes: Bytes, asked_at: Time, latency: Span) {
        if asked_at < self.from {
            return;
        }
        let bits = bytes.count().next_power_of_two().trailing_zeros() as usize;
        let class = &mut self.classes[usize::from(operation != Operation::Read)][bits.min(CLASSES - 1)];
        class.count += 1;
        class.latency += latency;
    }

    /// Means of every class, where there are several: of one the summary says it all.
    pub fn facts(&self, meter: &mut Meter) {
        let families = [metric::read_bytes_latency_mean_ns, metric::write_bytes_latency_mean_ns];
        for (family, classes) in families.into_iter().zip(&self.classes) {
            if classes.iter().filter(|class| class.count > 0).count() < 2 {
                continue;
            }
            for (bits, class) in classes.iter().enumerate().filter(|(_, class)| class.count > 0) {
                let mean = class.latency.as_ns_f64() / class.count as f64;
                meter.put(family.at(&[&(1_u64 << bits)]), mean);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const NOW: Time = Time::us(3);

    fn facts_of(ios: &[(Operation, u64, u64)]) -> BTreeMap<String, f64> {
        let mut sizes = Sizes::from(NOW);
        for (operation, bytes, latency_us) in ios {
            sizes.add(*operation, Bytes::new(*bytes), NOW, Span::us(*latency_us));
            sizes.add(*operation, Bytes::new(*bytes), Time::us(2), Span::us(9_999));
        }
        let mut meter = Meter::new();
        sizes.facts(&mut meter);
        meter.finish().0
    }

    #[test]
    fn reads_and_writes_of_each_size_have_a_mean_of_their_own() {
        let (read, write) = (Operation::Read, Operation::Write);
        let facts = facts_of(&[
            (read, 4_096, 80),
            (read, 4_096, 120),
            (read, 131_072, 300),
            (write, 4_096, 20),
            (write, 32_768, 50),
        ]);
        let expected = [
            ("read_131072_bytes_latency_mean_ns", 300_000.0),
            ("read_4096_bytes_latency_mean_ns", 100_000.0),
            ("write_32768_bytes_latency_mean_ns", 50_000.0),
            ("write_4096_bytes_latency_mean_ns", 20_000.0),
        ];
        assert_eq!(facts, expected.map(|(name, mean)| (name.to_string(), mean)).into());
    }

    #[test]
    fn a_size_counts_with_the_next_power_of_two_and_the_largest_class_has_no_end() {
        let facts = facts_of(&[
            (Operation::Read, 4_096, 10),
            (Operation::Read, 4_097, 20),
            (Operation::Read, 8_192, 40),
            (Operation::Read, 1 << 30, 70),
        ]);
        assert_eq!(facts["read_8192_bytes_latency_mean_ns"], 30_000.0);
        assert_eq!(facts["read_8388608_bytes_latency_mean_ns"], 70_000.0);
    }

    #[test]
    fn of_one_size_the_summary_says_it_all() {
        assert!(facts_of(&[(Operation::Read, 4_096, 10), (Operation::Write, 8_192, 10)]).is_empty());
    }
}
