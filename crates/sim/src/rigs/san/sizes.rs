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
    from_send: Span,
}

impl Class {
    fn means(&self) -> [f64; 2] {
        [self.latency, self.from_send].map(|sum| sum.as_ns_f64() / self.count as f64)
    }
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

    /// An I/O that was asked for at `asked_at`, and first sent `held` later, has finished.
    pub fn add(&mut self, operation: Operation, bytes: Bytes, asked_at: Time, held: Span, latency: Span) {
        if asked_at < self.from {
            return;
        }
        let bits = bytes.count().next_power_of_two().trailing_zeros() as usize;
        let class = &mut self.classes[usize::from(operation != Operation::Read)][bits.min(CLASSES - 1)];
        class.count += 1;
        class.latency += latency;
        class.from_send += latency.saturating_sub(held);
    }

    /// Means from the first send, and both means of every class where there are several.
    pub fn facts(&self, meter: &mut Meter) {
        let totals = [metric::read_from_send_mean_ns, metric::write_from_send_mean_ns];
        let families = [
            [metric::read_bytes_latency_mean_ns, metric::read_bytes_from_send_mean_ns],
            [metric::write_bytes_latency_mean_ns, metric::write_bytes_from_send_mean_ns],
        ];
        for ((total, families), classes) in totals.into_iter().zip(families).zip(&self.classes) {
            let used = || classes.iter().enumerate().filter(|(_, class)| class.count > 0);
            if used().count() == 0 {
                continue;
            }
            let (sum, count) =
                used().fold((Span::ZERO, 0), |(sum, count), (_, class)| (sum + class.from_send, count + class.count));
            meter.put(total, sum.as_ns_f64() / count as f64);
            if used().count() < 2 {
                continue;
            }
            for (bits, class) in used() {
                for (family, mean) in families.into_iter().zip(class.means()) {
                    meter.put(family.at(&[&(1_u64 << bits)]), mean);
                }
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
            sizes.add(*operation, Bytes::new(*bytes), NOW, Span::us(7), Span::us(*latency_us));
            sizes.add(*operation, Bytes::new(*bytes), Time::us(2), Span::us(7), Span::us(9_999));
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
        // Each was held back for 7 us before its first send.
        let expected = [
            ("read_131072_bytes_from_send_mean_ns", 293_000.0),
            ("read_131072_bytes_latency_mean_ns", 300_000.0),
            ("read_4096_bytes_from_send_mean_ns", 93_000.0),
            ("read_4096_bytes_latency_mean_ns", 100_000.0),
            ("read_from_send_mean_ns", 479_000.0 / 3.0),
            ("write_32768_bytes_from_send_mean_ns", 43_000.0),
            ("write_32768_bytes_latency_mean_ns", 50_000.0),
            ("write_4096_bytes_from_send_mean_ns", 13_000.0),
            ("write_4096_bytes_latency_mean_ns", 20_000.0),
            ("write_from_send_mean_ns", 28_000.0),
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
        let facts = facts_of(&[(Operation::Read, 4_096, 10), (Operation::Write, 8_192, 10)]);
        let expected = ["read_from_send_mean_ns", "write_from_send_mean_ns"].map(|name| (name.to_string(), 3_000.0));
        assert_eq!(facts, expected.into());
    }
}
