//! Detection of saturation: a growing number of requests underway.

/// Minimum number of batches; at twice as many, neighbours merge. Fewer allow no conclusion.
const BATCHES: usize = 64;
/// Standard deviations that a rise must exceed: one stable run in 2,000 does.
const DEVIATIONS: f64 = 3.29;

/// The requests underway in an open loop, as seen by its arrivals, in batches with equal numbers of
/// arrivals. When there are twice as many batches as needed, neighbours merge.
#[derive(Clone, Debug)]
pub struct Backlog {
    /// Sums over complete batches.
    sums: Vec<u64>,
    per_batch: u64,
    sum: u64,
    count: u64,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog { sums: Vec::with_capacity(2 * BATCHES), per_batch: 1, sum: 0, count: 0 }
    }
}

impl Backlog {
    /// Records that an arrival finds `underway` requests.
    pub fn add(&mut self, underway: u64) {
        self.sum += underway;
        self.count += 1;
        if self.count < self.per_batch {
            return;
        }
        self.sums.push(self.sum);
        (self.sum, self.count) = (0, 0);
        if self.sums.len() == 2 * BATCHES {
            self.sums = self.sums.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
            self.per_batch *= 2;
        }
    }

    /// Returns the growth of the backlog in requests per arrival, if it grows: the share of the
    /// load that the design cannot carry.
    ///
    /// The growth is the rise from the second quarter of the arrivals to the last one; the first
    /// quarter may still fill what a steady run keeps full. Under critical load with Poisson
    /// arrivals the backlog changes by about √n requests over n arrivals. A rise that chance
    /// explains does not count.
    pub fn growth(&self) -> Option<f64> {
        let quarter = self.sums.len() / 4;
        if self.sums.len() < BATCHES {
            return None;
        }
        let batches = |from: usize| &self.sums[from..from + quarter];
        let mean = |sums: &[u64]| sums.iter().sum::<u64>() as f64 / (quarter as u64 * self.per_batch) as f64;
        let rise = mean(batches(self.sums.len() - quarter)) - mean(batches(quarter));
        let between = ((self.sums.len() - 2 * quarter) as u64 * self.per_batch) as f64;
        (rise > DEVIATIONS * between.sqrt()).then(|| rise / between)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    /// Simulates the arrivals at one server: each of `arrivals` follows the last one after an
    /// exponential gap of mean 1, and takes `service`.
    fn queue(arrivals: u64, service: f64, seed: u64) -> Backlog {
        let mut random = Seed(seed).stream("gaps");
        let (mut now, mut free_at, mut backlog) = (0.0f64, 0.0f64, Backlog::default());
        for _ in 0..arrivals {
            now += random.exponential(1.0);
            backlog.add(((free_at - now).max(0.0) / service).ceil() as u64);
            free_at = free_at.max(now) + service;
        }
        backlog
    }

    /// The server carries 1 of a load of 1.1, so 1 - 1 / 1.1 of the arrivals accumulate.
    #[test]
    fn beyond_saturation_the_growth_is_the_share_that_is_not_carried() {
        for arrivals in [5_000, 30_000, 1_000_000] {
            let growth = queue(arrivals, 1.1, 1).growth().expect("it grows");
            assert!((growth / (1.0 - 1.0 / 1.1) - 1.0).abs() < 0.3, "{arrivals}: {growth}");
        }
    }

    #[test]
    fn a_stable_queue_does_not_grow_however_short_the_run() {
        for (seed, load) in (0..200).flat_map(|seed| [0.5, 0.9].map(|load| (seed, load))) {
            for arrivals in [10, 500, 20_000] {
                let growth = queue(arrivals, load, seed).growth().unwrap_or(0.0);
                assert!(growth < 0.02, "seed {seed}, load {load}, {arrivals} arrivals: {growth}");
            }
        }
    }

    /// A closed pipeline fills at first and then keeps its content.
    #[test]
    fn what_only_fills_at_first_does_not_grow() {
        let mut backlog = Backlog::default();
        (0..100_000u64).for_each(|arrival| backlog.add(arrival.min(20_000)));
        assert_eq!(backlog.growth(), None);
    }

    #[test]
    fn batches_merge_and_none_is_lost() {
        let mut backlog = Backlog::default();
        (0..100_000).for_each(|_| backlog.add(3));
        assert!(backlog.sums.len() < 2 * BATCHES);
        assert!(backlog.sums.iter().all(|sum| *sum == 3 * backlog.per_batch));
        assert_eq!(backlog.growth(), None);
    }
}
