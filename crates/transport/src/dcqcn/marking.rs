//! The congestion point: the marking of packets.

use crate::config::Dcqcn;
use base::{Bytes, Stream};

/// Marks with a probability that rises from 0 at K_min to P_max at K_max, and to 1 above
/// (SIGCOMM'15, Figure 5).
#[derive(Clone, Debug)]
pub struct Marking {
    from: f64,
    all: f64,
    probability: f64,
    random: Stream,
}

impl Marking {
    /// Creates a marker that draws from `random`.
    pub fn new(config: &Dcqcn, random: Stream) -> Marking {
        Marking {
            from: config.mark_from.count() as f64,
            all: config.mark_all.count() as f64,
            probability: config.mark_probability,
            random,
        }
    }
    /// Returns whether to mark a packet that arrives at an egress queue of this many bytes.
    pub fn marks(&mut self, queued: Bytes) -> bool {
        let queued = queued.count() as f64;
        if queued <= self.from {
            return false;
        }
        let share = (queued - self.from) / (self.all - self.from);
        queued > self.all || self.random.unit() < self.probability * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcqcn::testing::config;
    use base::Seed;

    /// The share of marked packets at a constant queue length is that of the straight line.
    #[test]
    fn the_share_of_marked_packets_is_that_of_the_line() {
        let config = Dcqcn { mark_probability: 0.2, ..config() };
        let (from, all) = (config.mark_from.count(), config.mark_all.count());
        for (queued, share) in [(from, 0.0), ((from + all) / 2, 0.1), (all, 0.2), (all + 1, 1.0)] {
            let mut marking = Marking::new(&config, Seed(1).stream("marks"));
            let marked = (0..100_000).filter(|_| marking.marks(Bytes::new(queued))).count() as f64 / 1e5;
            // Five standard deviations.
            assert!((marked - share).abs() < 0.007, "{queued}: {marked}, {share}");
        }
    }
}
