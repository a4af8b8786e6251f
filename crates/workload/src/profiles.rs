//! Message sizes of five applications over disaggregated memory.
//!
//! Figures: the `CDF_*.txt` files of the public repository wegul/EDM-tracegen (BSD licence), which
//! go with the EDM paper (ASPLOS'25, section 4.3.2). They are deciles in packets of 1460 bytes,
//! linear in between; most of them repeat the least size, so that 50 to 70 % of the messages are
//! exactly 4 packets.

use crate::config::SizeDistribution;
use base::Bytes;

/// Bytes of a size of 1 in [`Profile::points`].
const PACKET: Bytes = Bytes::new(1460);
const SOURCE: &str = "wegul/EDM-tracegen (BSD); EDM, ASPLOS'25, section 4.3.2";

/// One application's message sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// As experiment files name it.
    pub name: &'static str,
    /// As figures and tables name it.
    pub title: &'static str,
    /// Where the figures come from.
    pub source: &'static str,
    /// `(size in packets of 1460 bytes, cumulative probability)`.
    pub points: &'static [(u32, f64)],
}

/// The five application profiles.
pub const PROFILES: [Profile; 5] = [
    Profile { name: "hadoop", title: "Hadoop (sort)", source: SOURCE, points: &HADOOP },
    Profile { name: "spark", title: "Spark (sort)", source: SOURCE, points: &SPARK },
    Profile { name: "spark-sql", title: "Spark SQL (query)", source: SOURCE, points: &SPARK_SQL },
    Profile { name: "graphlab", title: "GraphLab (filtering)", source: SOURCE, points: &GRAPHLAB },
    Profile { name: "memcached", title: "Memcached (key-value store)", source: SOURCE, points: &MEMCACHED },
];

const HADOOP: [(u32, f64); 11] = deciles([4, 4, 4, 4, 4, 4, 4, 4, 88, 167, 920]);
const SPARK: [(u32, f64); 11] = deciles([4, 4, 4, 4, 4, 4, 4, 4, 13, 220, 930]);
const SPARK_SQL: [(u32, f64); 11] = deciles([4, 4, 4, 4, 4, 4, 7, 7, 83, 140, 980]);
const GRAPHLAB: [(u32, f64); 11] = deciles([4, 4, 4, 4, 4, 4, 4, 4, 88, 167, 1080]);
const MEMCACHED: [(u32, f64); 11] = deciles([4, 4, 4, 4, 4, 4, 4, 4, 64, 296, 1216]);

/// Sizes at the cumulative probabilities 0, 0.1, ... 1.
const fn deciles(packets: [u32; 11]) -> [(u32, f64); 11] {
    let mut points = [(0, 0.0); 11];
    let mut index = 0;
    while index < 11 {
        points[index] = (packets[index], index as f64 / 10.0);
        index += 1;
    }
    points
}

/// The distribution of the profile with this name, or `None`; [`PROFILES`] lists the names.
pub fn profile(name: &str) -> Option<SizeDistribution> {
    let profile = PROFILES.iter().find(|profile| profile.name == name)?;
    let bytes = |packets: u32| (PACKET * u64::from(packets)).count() as f64;
    let points = profile.points.iter().map(|(packets, probability)| (bytes(*packets), *probability));
    Some(SizeDistribution::Cdf { name: name.into(), points: points.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Sampler;
    use base::Seed;

    #[test]
    fn every_profile_is_a_distribution_and_others_do_not_exist() {
        for each in PROFILES {
            assert_eq!(profile(each.name).unwrap().problems("size"), [], "{}", each.name);
        }
        assert_eq!(profile("Hadoop"), None);
    }

    #[test]
    fn the_low_end_is_an_atom() {
        for (name, share) in
            [("hadoop", 0.7), ("spark", 0.7), ("spark-sql", 0.5), ("graphlab", 0.7), ("memcached", 0.7)]
        {
            let sampler = Sampler::new(&profile(name).unwrap());
            let mut stream = Seed(1).stream("test");
            let smallest = (0..100_000).filter(|_| sampler.at(stream.unit()) == Bytes::new(5840)).count();
            assert!((smallest as f64 / 1e5 - share).abs() < 0.01, "{name}: {smallest}");
        }
    }

    /// By hand, for Hadoop: 0.7 * 4 + 0.1 * (4 + 88) / 2 + 0.1 * (88 + 167) / 2 + 0.1 * (167 + 920)
    /// / 2 packets.
    #[test]
    fn the_mean_is_that_of_the_deciles() {
        let mean = profile("hadoop").unwrap().mean_bytes();
        assert!((mean - 74.5 * 1460.0).abs() < 1.0, "{mean}");
        assert_eq!(profile("hadoop").unwrap().max_bytes(), Bytes::new(920 * 1460));
    }
}
