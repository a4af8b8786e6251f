//! Weighted round robin over a few queues, in packets.

/// The state of a round robin over at most 32 queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedRoundRobin {
    weights: Box<[u32]>,
    at: usize,
    /// Packets that queue `at` may still send in this turn.
    left: u32,
}

impl WeightedRoundRobin {
    /// Creates a round robin with one weight per queue: its packets per turn, at least one.
    pub fn new(weights: &[u32]) -> WeightedRoundRobin {
        assert!((1..=32).contains(&weights.len()), "between one and 32 queues");
        assert!(weights.iter().all(|weight| *weight > 0), "a weight is at least one");
        WeightedRoundRobin { weights: weights.into(), at: 0, left: weights[0] }
    }

    /// Returns the queue that sends the next packet; bit `i` of `waiting` is set if queue `i` has
    /// one. A queue that becomes empty during its turn loses the rest of it.
    pub fn next(&mut self, waiting: u32) -> Option<usize> {
        let waiting = waiting & self.all();
        if waiting == 0 {
            return None;
        }
        if self.left == 0 || (waiting >> self.at) & 1 == 0 {
            let behind = waiting & (u32::MAX << self.at << 1);
            self.at = if behind == 0 { waiting } else { behind }.trailing_zeros() as usize;
            self.left = self.weights[self.at];
        }
        self.left -= 1;
        Some(self.at)
    }

    fn all(&self) -> u32 {
        u32::MAX >> (32 - self.weights.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn busy_queues_share_by_weight_and_idle_ones_cost_nothing() {
        let mut turns = WeightedRoundRobin::new(&[3, 2, 1]);
        let shares: Vec<_> = (0..6).map(|_| turns.next(0b111).expect("all wait")).collect();
        assert_eq!(shares, [0, 0, 0, 1, 1, 2]);
        assert_eq!(turns.next(0b100), Some(2));
        assert_eq!(turns.next(0b100), Some(2));
        assert_eq!(turns.next(0), None);
        assert_eq!(turns.next(0b1000), None, "there is no such queue");
    }

    proptest! {
        #[test]
        fn over_whole_rounds_each_busy_queue_gets_its_weight(weights in prop::collection::vec(1u32..9, 1..9), rounds in 1u32..5) {
            let mut turns = WeightedRoundRobin::new(&weights);
            let mut got = vec![0; weights.len()];
            for _ in 0..weights.iter().sum::<u32>() * rounds {
                got[turns.next(u32::MAX).expect("all wait")] += 1;
            }
            prop_assert!(got.iter().zip(&weights).all(|(got, weight)| *got == weight * rounds));
        }

        #[test]
        fn only_a_queue_that_waits_is_served_and_none_waits_for_ever(
            weights in prop::collection::vec(1u32..5, 2..6), masks in prop::collection::vec(1u32..32, 1..200),
        ) {
            let mut turns = WeightedRoundRobin::new(&weights);
            let all = (1u32 << weights.len()) - 1;
            let mut waited = vec![0; weights.len()];
            for mask in masks.iter().map(|mask| mask & all).filter(|mask| *mask != 0) {
                let served = turns.next(mask).expect("one waits");
                prop_assert!((mask >> served) & 1 == 1);
                for (queue, waited) in waited.iter_mut().enumerate() {
                    *waited = if queue == served || (mask >> queue) & 1 == 0 { 0 } else { *waited + 1 };
                    prop_assert!(*waited <= 2 * weights.iter().sum::<u32>());
                }
            }
        }
    }
}
