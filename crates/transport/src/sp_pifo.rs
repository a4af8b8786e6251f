//! SP-PIFO (Alcoz, Dietmüller and Vanbever, NSDI'20): a push-in first-out queue approximated by a
//! few FIFO queues.
//!
//! This file has only the mapping from ranks to queues. The owner keeps the queues and chooses
//! their order of service.

/// The bounds of the queues. Queue 0 has the highest priority; bounds do not decrease from one
/// queue to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpPifo {
    bounds: Box<[u32]>,
}

impl SpPifo {
    /// Creates `queues` queues, at least one, with all bounds 0.
    pub fn new(queues: usize) -> SpPifo {
        assert!(queues > 0, "a scheduler has a queue");
        SpPifo { bounds: vec![0; queues].into_boxed_slice() }
    }

    /// Returns the bound of every queue, highest priority first.
    pub fn bounds(&self) -> &[u32] {
        &self.bounds
    }

    /// Returns the queue for a packet of `rank` (lower leaves earlier), and adapts the bounds.
    ///
    /// From the lowest priority up, the first queue whose bound is at most the rank takes the
    /// packet, and the rank becomes its bound (push-up). If even queue 0 has a higher bound, it
    /// takes the packet all the same, and all bounds decrease by the difference (push-down).
    pub fn place(&mut self, rank: u32) -> usize {
        match self.bounds.iter().rposition(|bound| *bound <= rank) {
            Some(queue) => {
                self.bounds[queue] = rank;
                queue
            }
            None => {
                self.push_down(self.bounds[0] - rank);
                0
            }
        }
    }

    fn push_down(&mut self, by: u32) {
        self.bounds.iter_mut().for_each(|bound| *bound = bound.saturating_sub(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_push_bounds_up_and_an_urgent_one_pushes_all_down() {
        let mut queues = SpPifo::new(3);
        assert_eq!(queues.place(5), 2);
        assert_eq!(queues.bounds(), [0, 0, 5]);
        assert_eq!(queues.place(4), 1);
        assert_eq!(queues.place(5), 2, "a rank equal to the bound belongs to it");
        assert_eq!(queues.place(3), 0);
        assert_eq!(queues.bounds(), [3, 4, 5]);
        assert_eq!(queues.place(1), 0);
        assert_eq!(queues.bounds(), [1, 2, 3]);
        assert_eq!(queues.place(3), 2);
    }

    #[test]
    fn one_queue_is_first_come_first_served() {
        let mut queue = SpPifo::new(1);
        assert!([7, 0, 3, 9].into_iter().all(|rank| queue.place(rank) == 0));
    }

    /// Returns the number of pairs that leave in the wrong order if all packets arrive before any
    /// leaves.
    fn inversions(ranks: &[u32], place: impl FnMut(&u32) -> usize) -> usize {
        let mut order: Vec<(usize, usize)> = ranks.iter().map(place).zip(0..).collect();
        order.sort();
        let left: Vec<u32> = order.iter().map(|(_, index)| ranks[*index]).collect();
        (0..left.len()).map(|at| left[at..].iter().filter(|later| **later < left[at]).count()).sum()
    }

    #[test]
    fn eight_queues_come_much_nearer_to_a_sorted_queue_than_one() {
        let mut stream = base::Seed(7).stream("ranks");
        let ranks: Vec<u32> = (0..400).map(|_| stream.below(100) as u32).collect();
        let mut queues = SpPifo::new(8);
        let sorted = inversions(&ranks, |rank| queues.place(*rank));
        let first_come = inversions(&ranks, |_| 0);
        assert!(sorted * 2 < first_come, "{sorted} against {first_come}");
    }

    proptest! {
        #[test]
        fn bounds_stay_in_order_and_the_bound_of_the_chosen_queue_is_the_rank(
            queues in 1usize..9, ranks in prop::collection::vec(0u32..50, 1..200),
        ) {
            let mut mapping = SpPifo::new(queues);
            for rank in ranks {
                let before = mapping.clone();
                let queue = mapping.place(rank);
                prop_assert!(mapping.bounds().is_sorted());
                prop_assert_eq!(mapping.bounds()[queue], rank);
                let lower_would_take = before.bounds()[queue + 1..].iter().any(|bound| *bound <= rank);
                prop_assert!(!lower_would_take, "a queue of lower priority was passed over");
                let is_push_down = before.bounds()[0] > rank;
                let others_moved = (0..queues).any(|at| at != queue && mapping.bounds()[at] != before.bounds()[at]);
                prop_assert!(is_push_down || !others_moved);
            }
        }
    }
}
