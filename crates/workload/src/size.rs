//! Sizes of requests: one sampler for all distributions, and their moments in closed form.

use crate::config::{Class, SizeDistribution};
use base::Bytes;

/// A piece of a cumulative distribution: sizes from `from` to `to`, uniform, with the probability
/// `until - since`. An atom has `from == to`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    since: f64,
    until: f64,
    from: f64,
    to: f64,
}

impl Piece {
    fn weight(&self) -> f64 {
        self.until - self.since
    }

    /// Mean and second moment of a size drawn from this piece, rounded to the nearest byte and at
    /// least 1.
    ///
    /// Exact: with `m` the nearest byte to `from`, the rounded size is `m + r` and `r` integrates
    /// in closed form.
    fn moments(&self) -> (f64, f64) {
        let width = self.to - self.from;
        if width == 0.0 {
            let size = round(self.from) as f64;
            return (size, size * size);
        }
        let nearest = (self.from + 0.5).floor();
        let (first, second) = integrals_of_rounding(self.to - nearest);
        let (first, second) = (first / width, second / width);
        let raised_to_one = (self.to.min(0.5) - self.from.min(0.5)) / width;
        (nearest + first + raised_to_one, nearest * nearest + 2.0 * nearest * first + second + raised_to_one)
    }
}

/// The integrals of `round(x)` and `round(x)^2` from below 0.5 (where both are zero) to `end`.
fn integrals_of_rounding(end: f64) -> (f64, f64) {
    let whole = (end + 0.5).floor();
    let rest = end + 0.5 - whole;
    let first = whole * (whole - 1.0) / 2.0 + whole * rest;
    let second = (whole - 1.0) * whole * (2.0 * whole - 1.0) / 6.0 + whole * whole * rest;
    (first, second)
}

/// To the nearest byte, and at least one. Sizes are under 2^52, so adding a half is exact enough
/// and needs no call.
fn round(bytes: f64) -> u64 {
    ((bytes + 0.5) as u64).max(1)
}

impl SizeDistribution {
    /// The mean size in bytes, of sizes as they are drawn (rounded to the nearest byte, at least
    /// 1).
    pub fn mean_bytes(&self) -> f64 {
        self.sum(|piece| piece.moments().0)
    }

    /// The mean of the squared size, in bytes squared, of sizes as they are drawn; with the mean it
    /// gives the variance, and the waiting time of an M/G/1 queue.
    pub fn second_moment(&self) -> f64 {
        self.sum(|piece| piece.moments().1)
    }

    /// The largest size that can be drawn.
    pub fn max_bytes(&self) -> Bytes {
        let largest = self.pieces().iter().map(|piece| round(piece.to)).max();
        Bytes::new(largest.unwrap_or(0))
    }

    fn sum(&self, moment: impl Fn(&Piece) -> f64) -> f64 {
        self.pieces().iter().map(|piece| piece.weight() * moment(piece)).sum()
    }

    /// As pieces of positive weight, in order; their weights sum to 1.
    fn pieces(&self) -> Vec<Piece> {
        match self {
            SizeDistribution::Constant { bytes } => atoms(&[(*bytes, 1.0)]),
            SizeDistribution::Table { entries } => atoms(entries),
            SizeDistribution::Cdf { points, .. } => between(points),
        }
    }
}

fn atoms(entries: &[(Bytes, f64)]) -> Vec<Piece> {
    let weights = entries.iter().map(|(_, weight)| *weight);
    let until = cumulative(weights);
    let since = std::iter::once(0.0).chain(until.iter().copied());
    let pieces = entries.iter().zip(since.zip(&until)).map(|((bytes, _), (since, until))| {
        let size = bytes.count() as f64;
        Piece { since, until: *until, from: size, to: size }
    });
    pieces.filter(|piece| piece.weight() > 0.0).collect()
}

fn between(points: &[(f64, f64)]) -> Vec<Piece> {
    let Some(first) = points.first() else { return Vec::new() };
    let before = std::iter::once((first.0, 0.0)).chain(points.iter().copied());
    let pieces = before.zip(points).map(|((from, since), (to, until))| Piece { since, until: *until, from, to: *to });
    pieces.filter(|piece| piece.weight() > 0.0).collect()
}

/// Running sums of the weights as probabilities; the last positive one is exactly 1 so that every
/// draw below 1 finds its place.
pub(crate) fn cumulative(weights: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let total: f64 = weights.clone().sum();
    let mut sum = 0.0;
    let mut sums: Vec<f64> = weights
        .map(|weight| {
            sum += weight;
            sum / total
        })
        .collect();
    let last = sums.last().copied();
    sums.iter_mut().filter(|sum| Some(**sum) == last).for_each(|sum| *sum = 1.0);
    sums
}

/// A distribution made ready for drawing: one search and one multiplication a draw, no allocation.
#[derive(Clone, Debug)]
pub(crate) struct Sampler(Vec<Slope>);

/// A [`Piece`] with its slope worked out.
#[derive(Clone, Copy, Debug)]
struct Slope {
    until: f64,
    since: f64,
    from: f64,
    bytes_per_probability: f64,
}

impl Sampler {
    pub(crate) fn new(distribution: &SizeDistribution) -> Sampler {
        let slope = |piece: &Piece| Slope {
            until: piece.until,
            since: piece.since,
            from: piece.from,
            bytes_per_probability: (piece.to - piece.from) / piece.weight(),
        };
        Sampler(distribution.pieces().iter().map(slope).collect())
    }

    /// The size at the cumulative probability `probability`, which lies in `[0, 1)`.
    pub(crate) fn at(&self, probability: f64) -> Bytes {
        let slope = &self.0[self.0.partition_point(|slope| slope.until <= probability)];
        Bytes::new(round(slope.from + (probability - slope.since) * slope.bytes_per_probability))
    }
}

/// A mix of classes made ready for drawing.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    until: Vec<f64>,
    classes: Vec<(base::Operation, Sampler)>,
}

impl Mix {
    pub(crate) fn new(mix: &[Class]) -> Mix {
        Mix {
            until: cumulative(mix.iter().map(|class| class.weight)),
            classes: mix.iter().map(|class| (class.operation, Sampler::new(&class.size))).collect(),
        }
    }

    /// The class at one cumulative probability and its size at another, both in `[0, 1)`.
    pub(crate) fn at(&self, class: f64, size: f64) -> (base::Operation, Bytes) {
        let (operation, sampler) = &self.classes[self.until.partition_point(|until| *until <= class)];
        (*operation, sampler.at(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::{PROFILES, profile};
    use base::Seed;
    use proptest::prelude::*;

    fn draws(distribution: &SizeDistribution, count: usize) -> Vec<u64> {
        let sampler = Sampler::new(distribution);
        let mut stream = Seed(11).stream("sizes");
        (0..count).map(|_| sampler.at(stream.unit()).count()).collect()
    }

    fn cdf(points: &[(f64, f64)]) -> SizeDistribution {
        SizeDistribution::Cdf { name: "test".into(), points: points.to_vec() }
    }

    /// Mean, second moment and largest of every quantile on a fine, even grid: sampling without its
    /// noise.
    fn by_quantiles(distribution: &SizeDistribution) -> (f64, f64, u64) {
        const STEPS: u32 = 200_000;
        let sampler = Sampler::new(distribution);
        let sizes = (0..STEPS).map(|step| sampler.at((f64::from(step) + 0.5) / f64::from(STEPS)).count());
        let (mut first, mut second, mut largest) = (0.0, 0.0, 0);
        for size in sizes {
            first += size as f64 / f64::from(STEPS);
            second += (size as f64).powi(2) / f64::from(STEPS);
            largest = largest.max(size);
        }
        (first, second, largest)
    }

    fn agrees(distribution: &SizeDistribution, tolerance: f64) {
        let (mean, second, largest) = by_quantiles(distribution);
        assert!((mean / distribution.mean_bytes() - 1.0).abs() < tolerance, "{mean} {distribution:?}");
        assert!((second / distribution.second_moment() - 1.0).abs() < tolerance, "{second} {distribution:?}");
        assert!(largest <= distribution.max_bytes().count(), "{largest} {distribution:?}");
    }

    #[test]
    fn moments_agree_with_what_is_drawn() {
        agrees(&SizeDistribution::Constant { bytes: Bytes::new(64) }, 1e-9);
        let entries = vec![(Bytes::new(64), 3.0), (Bytes::new(4096), 0.0), (Bytes::new(1460), 1.0)];
        agrees(&SizeDistribution::Table { entries }, 1e-4);
        agrees(&cdf(&[(0.0, 0.0), (3.2, 0.5), (3.2, 0.75), (10.7, 1.0)]), 1e-4);
        agrees(&cdf(&[(1e9, 0.25), (1e9 + 1.0, 1.0)]), 1e-9);
        for each in PROFILES {
            agrees(&profile(each.name).unwrap(), 1e-4);
        }
    }

    #[test]
    fn moments_of_small_sizes_count_the_rounding() {
        // Uniform on 0..2: half a byte of width rounds up to 1, [0.5, 1.5) is 1, [1.5, 2) is 2.
        let small = cdf(&[(0.0, 0.0), (2.0, 1.0)]);
        assert_eq!(small.mean_bytes(), 0.75 * 1.0 + 0.25 * 2.0);
        assert_eq!(small.second_moment(), 0.75 * 1.0 + 0.25 * 4.0);
        assert_eq!(small.max_bytes(), Bytes::new(2));
    }

    #[test]
    fn an_entry_of_weight_zero_is_never_drawn() {
        let entries = vec![(Bytes::new(1), 0.0), (Bytes::new(2), 1.0), (Bytes::new(3), 0.0)];
        let table = SizeDistribution::Table { entries };
        assert!(draws(&table, 1_000).iter().all(|size| *size == 2));
        assert_eq!(table.max_bytes(), Bytes::new(2));
        assert_eq!(Sampler::new(&table).at(1.0 - f64::EPSILON), Bytes::new(2));
    }

    #[test]
    fn a_table_is_drawn_by_its_weights() {
        let table = SizeDistribution::Table { entries: vec![(Bytes::new(64), 3.0), (Bytes::new(4096), 1.0)] };
        let small = draws(&table, 100_000).iter().filter(|size| **size == 64).count();
        assert!((74_000..76_000).contains(&small), "{small}");
    }

    #[test]
    fn the_edges_of_a_piece_belong_to_the_next_one() {
        let sampler = Sampler::new(&cdf(&[(100.0, 0.5), (200.0, 0.75), (300.0, 1.0)]));
        assert_eq!(sampler.at(0.0), Bytes::new(100));
        assert_eq!(sampler.at(0.5 - 1e-12), Bytes::new(100));
        assert_eq!(sampler.at(0.5), Bytes::new(100));
        assert_eq!(sampler.at(0.625), Bytes::new(150));
        assert_eq!(sampler.at(0.75), Bytes::new(200));
        assert_eq!(sampler.at(1.0 - 1e-12), Bytes::new(300));
    }

    /// Kolmogorov-Smirnov: at the 0.1 % level the largest difference of the two cumulative curves
    /// is 1.95 / sqrt(n).
    #[test]
    fn what_is_drawn_follows_the_points() {
        const COUNT: usize = 100_000;
        for each in PROFILES {
            let Some(SizeDistribution::Cdf { points, name }) = profile(each.name) else { panic!("a CDF") };
            let mut sizes = draws(&cdf(&points), COUNT);
            sizes.sort_unstable();
            for (index, (bytes, probability)) in points.iter().enumerate() {
                let is_last_of_its_size = points.get(index + 1).is_none_or(|next| next.0 > *bytes);
                let below = sizes.partition_point(|size| *size as f64 <= *bytes) as f64 / COUNT as f64;
                let bound = 1.95 / (COUNT as f64).sqrt();
                assert!(!is_last_of_its_size || (below - probability).abs() < bound, "{name} {bytes}: {below}");
            }
        }
    }

    proptest! {
        #[test]
        fn moments_of_any_distribution_agree_with_what_is_drawn(
            steps in proptest::collection::vec((0.0..50.0f64, 0.05..1.0f64), 1..6), start in 0.0..20.0f64,
        ) {
            let total: f64 = steps.iter().map(|step| step.1).sum();
            let (mut size, mut sum) = (start, 0.0);
            let mut points = vec![(start, 0.0)];
            for (bytes, weight) in steps {
                size += bytes;
                sum += weight;
                points.push((size, sum / total));
            }
            points.last_mut().unwrap().1 = 1.0;
            agrees(&cdf(&points), 1e-3);
        }
    }
}
