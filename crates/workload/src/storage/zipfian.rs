//! Zipfian ranks by the method of Gray et al. ("Quickly Generating Billion-Record Synthetic
//! Databases", SIGMOD 1994), as YCSB uses it.

/// Number of items that YCSB's scrambled zipfian generator draws from, for any size of its key
/// space.
pub const YCSB_ITEMS: u64 = 10_000_000_000;
/// YCSB's published `ZETAN`: [`zeta`] of [`YCSB_ITEMS`] at its exponent 0.99.
pub const YCSB_ZETA: f64 = 26.469_028_201_783_02;

/// The first terms are added one by one, the others by the Euler-Maclaurin formula, whose error is
/// then far below that of the sum.
const TERMS_ADDED: u64 = 1_000;

/// The generalised harmonic number: the sum of `1 / k^theta` for `k` in `1..=items`.
pub fn zeta(items: u64, theta: f64) -> f64 {
    let term = |k: u64| (k as f64).powf(-theta);
    let added = items.min(TERMS_ADDED);
    let sum: f64 = (1..=added).map(term).sum();
    if items == added { sum } else { sum - term(added) + tail(added as f64, items as f64, theta) }
}

/// The terms from `first` to `last` by the Euler-Maclaurin formula: integral, ends, first and third
/// derivatives.
fn tail(first: f64, last: f64, theta: f64) -> f64 {
    let power = |x: f64, lower: f64| x.powf(-theta - lower);
    let integral = (last.powf(1.0 - theta) - first.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (power(first, 0.0) + power(last, 0.0)) / 2.0;
    let slopes = theta * (power(first, 1.0) - power(last, 1.0)) / 12.0;
    let thirds = theta * (theta + 1.0) * (theta + 2.0) * (power(first, 3.0) - power(last, 3.0)) / 720.0;
    integral + ends + slopes - thirds
}

/// YCSB's `fnvhash64`: FNV-1a over the eight bytes of `value`, least first, as a signed number
/// without its sign.
pub fn scramble(value: u64) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 1_099_511_628_211;
    let hash =
        value.to_le_bytes().iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    (hash as i64).unsigned_abs()
}

/// Ranks from 0 (the most popular) with probabilities near `1 / (rank + 1)^theta / zeta`: exact for
/// the first two, the others by inversion of a smooth approximation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipfian {
    items: u64,
    zeta: f64,
    /// Below this a draw times `zeta` is rank 1.
    second: f64,
    alpha: f64,
    eta: f64,
}

impl Zipfian {
    /// Over `items` (at least 1), with an exponent `theta` above 0 that is not 1.
    pub fn new(items: u64, theta: f64) -> Zipfian {
        Zipfian::with_zeta(items, theta, zeta(items, theta))
    }

    /// YCSB's generator under its scrambled one. Its range includes both ends, so that there is one
    /// item more than its zeta counts.
    pub fn ycsb(theta: f64) -> Zipfian {
        Zipfian::with_zeta(YCSB_ITEMS + 1, theta, zeta(YCSB_ITEMS, theta))
    }

    fn with_zeta(items: u64, theta: f64, zeta: f64) -> Zipfian {
        let second = 1.0 + 0.5f64.powf(theta);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - second / zeta);
        Zipfian { items, zeta, second, alpha: 1.0 / (1.0 - theta), eta }
    }

    /// The rank of a draw from `[0, 1)`.
    pub fn rank(&self, draw: f64) -> u64 {
        let scaled = draw * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        let rank = if scaled < self.second {
            1
        } else {
            (self.items as f64 * (self.eta * draw - self.eta + 1.0).powf(self.alpha)) as u64
        };
        rank.min(self.items - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use proptest::prelude::*;

    fn added(items: u64, theta: f64) -> f64 {
        (1..=items).rev().map(|k| (k as f64).powf(-theta)).sum()
    }

    #[test]
    fn zeta_is_the_sum_on_both_sides_of_the_edge_of_the_formula() {
        for items in [1, 2, 999, 1_000, 1_001, 1_002, 200_000] {
            for theta in [0.2, 0.5, 0.99, 1.01, 2.0] {
                let (formula, sum) = (zeta(items, theta), added(items, theta));
                assert!((formula / sum - 1.0).abs() < 1e-12, "{items} {theta}: {formula} {sum}");
            }
        }
    }

    /// YCSB added ten billion terms one after the other, and their rounding shows in its last
    /// digits.
    #[test]
    fn zeta_of_ten_billion_items_is_the_one_that_ycsb_publishes() {
        assert!((zeta(YCSB_ITEMS, 0.99) - YCSB_ZETA).abs() < 1e-8, "{}", zeta(YCSB_ITEMS, 0.99));
    }

    /// The first keys that YCSB inserts are known to all its users: user6284781860667377211,
    /// user8517097267634966620 and user1820151046732198393.
    #[test]
    fn keys_are_scrambled_as_in_ycsb() {
        let keys = [0, 1, 2].map(scramble);
        assert_eq!(keys, [6_284_781_860_667_377_211, 8_517_097_267_634_966_620, 1_820_151_046_732_198_393]);
    }

    #[test]
    fn the_first_two_ranks_have_exactly_their_probabilities() {
        let zipfian = Zipfian::new(1_000_000, 0.99);
        let (first, second) = (1.0 / zipfian.zeta, zipfian.second / zipfian.zeta);
        let near = |draw: f64, step: f64| zipfian.rank(draw + step);
        assert_eq!((near(first, -1e-12), near(first, 1e-12)), (0, 1));
        assert_eq!((near(second, -1e-12), near(second, 1e-12)), (1, 2));
    }

    #[test]
    fn popular_ranks_come_as_often_as_the_law_says() {
        for theta in [0.5, 0.99, 1.01] {
            let zipfian = Zipfian::new(100_000, theta);
            let mut stream = Seed(3).stream("test");
            let draws = 400_000;
            let ranks: Vec<u64> = (0..draws).map(|_| zipfian.rank(stream.unit())).collect();
            for below in [1u64, 2, 10, 100, 1_000, 10_000] {
                let share = ranks.iter().filter(|rank| **rank < below).count() as f64 / f64::from(draws);
                let law = zeta(below, theta) / zeta(100_000, theta);
                // Gray's inversion is smooth where the law has steps: it is up to 1.25 % of all
                // draws off in between.
                assert!((share - law).abs() < 0.015, "{theta}, {below}: {share} {law}");
            }
        }
    }

    #[test]
    fn one_or_two_items_are_all_that_is_drawn() {
        for draw in [0.0, 0.3, 0.7, 1.0 - f64::EPSILON / 2.0] {
            assert_eq!(Zipfian::new(1, 0.5).rank(draw), 0);
            assert!(Zipfian::new(2, 0.5).rank(draw) < 2);
        }
    }

    proptest! {
        #[test]
        fn ranks_stay_inside_and_grow_with_the_draw(
            items in 1u64..1 << 40, theta in prop_oneof![0.01f64..0.999, 1.001f64..4.0], low in 0.0f64..1.0, high in 0.0f64..1.0,
        ) {
            let zipfian = Zipfian::new(items, theta);
            let (low, high) = (zipfian.rank(low.min(high)), zipfian.rank(low.max(high)));
            prop_assert!(low <= high && high < items);
        }
    }
}
