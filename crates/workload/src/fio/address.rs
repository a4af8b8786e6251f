//! Random blocks of a region, by each distribution.

use super::job::{Distribution, ZoneExtent};
use crate::permutation::Permutation;
use crate::storage::Zipfian;
use base::Stream;
use std::f64::consts::TAU;

/// Skewed ranks are scattered over the region, as fio does. Its hash lets ranks collide; a
/// permutation keeps the popularities.
const SCATTER_KEY: u64 = 0x61c8_8646_80b5_83eb;

/// Chooses blocks of `0..blocks`.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    blocks: u64,
    scatter: Permutation,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform,
    /// The most popular block is `center`.
    Zipf {
        zipfian: Zipfian,
        center: u64,
    },
    Pareto {
        exponent: f64,
        center: u64,
    },
    Normal {
        deviation: f64,
        center: f64,
    },
    /// Up to which percentage, from which block on, how many blocks.
    Zones(Vec<(u32, u64, u64)>),
}

impl Chooser {
    /// Of at least one block of `block` bytes each. A distribution without a centre draws one from
    /// `stream`.
    pub(super) fn new(distribution: &Distribution, blocks: u64, block: u64, stream: &mut Stream) -> Chooser {
        let mut place = |center: Option<f64>| match center {
            Some(share) => ((share * blocks as f64) as u64).min(blocks - 1),
            None => stream.below(blocks),
        };
        let law = match distribution {
            Distribution::Uniform => Law::Uniform,
            Distribution::Zipf { theta, center } => {
                Law::Zipf { zipfian: Zipfian::new(blocks, *theta), center: place(*center) }
            }
            Distribution::Pareto { power, center } => {
                Law::Pareto { exponent: power.ln() / (1.0 - power).ln(), center: place(*center) }
            }
            Distribution::Normal { deviation_percent, center } => {
                Law::Normal { deviation: deviation_percent / 100.0 * blocks as f64, center: center * blocks as f64 }
            }
            Distribution::Zoned { zones } => {
                let mut bounds = Bounds { blocks, block, percent: 0, extent_percent: 0, from: 0 };
                Law::Zones(zones.iter().map(|zone| bounds.next(zone.access_percent, zone.extent)).collect())
            }
        };
        Chooser { blocks, scatter: Permutation::new(blocks, SCATTER_KEY), law }
    }

    /// A block.
    pub(super) fn draw(&self, stream: &mut Stream) -> u64 {
        match &self.law {
            Law::Uniform => stream.below(self.blocks),
            Law::Zipf { zipfian, center } => self.scattered(zipfian.rank(stream.unit()), *center),
            Law::Pareto { exponent, center } => {
                let rank = ((self.blocks - 1) as f64 * stream.unit().powf(*exponent)) as u64;
                self.scattered(rank, *center)
            }
            Law::Normal { deviation, center } => {
                let place = center + deviation * normal(stream);
                (place.floor().rem_euclid(self.blocks as f64) as u64).min(self.blocks - 1)
            }
            Law::Zones(zones) => {
                let percent = stream.below(100) as u32;
                let found = zones.iter().find(|(until, _, _)| percent < *until).or(zones.last());
                found.map_or(0, |(_, from, count)| from + stream.below(*count))
            }
        }
    }

    fn scattered(&self, rank: u64, center: u64) -> u64 {
        let from_first = self.scatter.at(rank) + self.blocks - self.scatter.at(0);
        (from_first % self.blocks + center) % self.blocks
    }
}

/// A standard normal variate (Box and Muller, 1958).
fn normal(stream: &mut Stream) -> f64 {
    let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
    radius * (TAU * stream.unit()).cos()
}

/// Lays zones one behind the other.
struct Bounds {
    blocks: u64,
    block: u64,
    percent: u32,
    extent_percent: u32,
    from: u64,
}

impl Bounds {
    fn next(&mut self, access_percent: u32, extent: ZoneExtent) -> (u32, u64, u64) {
        let from = self.from.min(self.blocks - 1);
        let to = match extent {
            ZoneExtent::Percent(percent) => {
                self.extent_percent += percent;
                (u128::from(self.blocks) * u128::from(self.extent_percent) / 100) as u64
            }
            ZoneExtent::Bytes(bytes) => from + bytes / self.block,
        };
        self.percent += access_percent;
        self.from = to.min(self.blocks);
        (self.percent, from, self.from.saturating_sub(from).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::Zone;
    use super::*;
    use base::Seed;

    const DRAWS: usize = 200_000;

    /// How often each block is drawn.
    fn counts(distribution: &Distribution, blocks: u64) -> Vec<f64> {
        let mut stream = Seed(5).stream("draws");
        let chooser = Chooser::new(distribution, blocks, 4096, &mut stream);
        let mut counts = vec![0.0; blocks as usize];
        (0..DRAWS).for_each(|_| counts[chooser.draw(&mut stream) as usize] += 1.0 / DRAWS as f64);
        counts
    }

    #[test]
    fn zipf_gives_the_centre_its_share_on_both_sides_of_one() {
        for theta in [0.8, 1.2] {
            let zipf = Distribution::Zipf { theta, center: Some(0.25) };
            let share = counts(&zipf, 1000)[250];
            let expected = 1.0 / (1..=1000).map(|k| f64::from(k).powf(-theta)).sum::<f64>();
            assert!((share / expected - 1.0).abs() < 0.03, "{theta}: {share} {expected}");
        }
    }

    /// With the power h, a share of 1 - h of the draws falls on a share of h of the ranks: h = 0.2
    /// is the rule of 80 and 20.
    #[test]
    fn pareto_keeps_its_rule() {
        let mut counts = counts(&Distribution::Pareto { power: 0.2, center: None }, 1000);
        counts.sort_by(|first, second| second.total_cmp(first));
        let top: f64 = counts[..200].iter().sum();
        assert!((top - 0.8).abs() < 0.03, "{top}");
    }

    #[test]
    fn normal_has_its_centre_and_deviation() {
        let counts = counts(&Distribution::Normal { deviation_percent: 10.0, center: 0.5 }, 1000);
        let within = |from: usize, to: usize| counts[from..to].iter().sum::<f64>();
        assert!((within(400, 600) - 0.6827).abs() < 0.01, "{}", within(400, 600));
        assert!((within(300, 700) - 0.9545).abs() < 0.01, "{}", within(300, 700));
    }

    #[test]
    fn zones_have_their_shares_in_percent_and_in_bytes() {
        let zone = |access_percent, extent| Zone { access_percent, extent };
        let relative =
            [(60, 10), (30, 20), (8, 30), (2, 40)].map(|(access, size)| zone(access, ZoneExtent::Percent(size)));
        let shares = counts(&Distribution::Zoned { zones: relative.to_vec() }, 1000);
        for (from, to, share) in [(0, 100, 0.6), (100, 300, 0.3), (300, 600, 0.08), (600, 1000, 0.02)] {
            assert!((shares[from..to].iter().sum::<f64>() - share).abs() < 0.005, "{from}");
        }
        let absolute = vec![zone(90, ZoneExtent::Bytes(4096)), zone(10, ZoneExtent::Bytes(8192))];
        let shares = counts(&Distribution::Zoned { zones: absolute }, 1000);
        assert!((shares[0] - 0.9).abs() < 0.005 && (shares[1] + shares[2] - 0.1).abs() < 0.005);
        assert!(shares[3..].iter().all(|share| *share == 0.0));
    }
}
