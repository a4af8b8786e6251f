//! Closed forms of write amplification, for uniformly random writes in steady state.
//!
//! Below, `ratio` is physical to logical space, of the blocks that hold data or garbage: free
//! blocks and those that are being filled do not count. The tests of crate `hardware` hold the
//! models to them, and `rackweave check` prints what to expect.

use super::ftl::VictimPolicy;

/// Units programmed for each unit that the host writes; `None` where nobody has a closed form
/// (cost-benefit, choices), or there is no spare space.
pub fn uniform_amplification(victim: VictimPolicy, ratio: f64, units_per_block: u32) -> Option<f64> {
    if !(ratio > 1.0 && ratio.is_finite()) {
        return None;
    }
    match victim {
        VictimPolicy::Greedy => Some(greedy(ratio, units_per_block)),
        VictimPolicy::Fifo => Some(fifo(ratio)),
        VictimPolicy::Random => Some(random(ratio, units_per_block)),
        VictimPolicy::CostBenefit | VictimPolicy::Choices(_) => None,
    }
}

/// Blocks in the order of their writing. Between two visits of the cleaner to a place, all of the
/// physical space is written once. The host writes `1 / A = 1 - u` of it if a share `u` of a victim
/// is valid. All these writes miss a unit with `u = exp(-ratio (1 - u))`. That is `A = ratio /
/// (ratio + W(-ratio e^-ratio))` with Lambert's W (Desnoyers, SYSTOR 2012; Luojie and Kurkoski,
/// ICNC 2012, who print 2.36 for a ratio of 1.3).
fn fifo(ratio: f64) -> f64 {
    let missed = |share: f64| (-ratio * (1.0 - share)).exp();
    // The other solution is 1. In between, where the slope of `missed` is 1, it is below the share.
    let (mut low, mut high) = (0.0, 1.0 - ratio.ln() / ratio);
    for _ in 0..f64::MANTISSA_DIGITS {
        let middle = (low + high) / 2.0;
        if middle < missed(middle) { low = middle } else { high = middle }
    }
    1.0 / (1.0 - low)
}

/// The emptiest block of `b` units first. Units are overwritten one by one, so equally many blocks
/// pass each count of valid units above that of victims, `m`, and there are `c / j` blocks with `j`
/// valid ones. With harmonic numbers `H`, `1 / ratio = (b - m) / (b (H(b) - H(m)))`, and then `A =
/// b / (b - m)`, linear between whole `m` (Bux and Iliadis, Performance Evaluation 2010; the mean
/// field of Van Houdt, SIGMETRICS 2013, for an increasing number of choices). In the limit of large
/// blocks it equals FIFO.
fn greedy(ratio: f64, units_per_block: u32) -> f64 {
    let b = f64::from(units_per_block);
    let mut harmonic = 0.0;
    let mut above = b;
    let mut share_above = 1.0;
    for m in (0..units_per_block).rev() {
        let valid = f64::from(m);
        harmonic += 1.0 / (valid + 1.0);
        let share = (b - valid) / (b * harmonic);
        if share <= 1.0 / ratio {
            let victim = valid + (above - valid) * (1.0 / ratio - share) / (share_above - share);
            return b / (b - victim);
        }
        (above, share_above) = (valid, share);
    }
    1.0
}

/// Any block: it is as full as all, `1 / (1 - 1 / ratio)` (Van Houdt 2013). Blocks without anything
/// invalid are drawn again here; they appear with each cleaning and go with the first of their `b`
/// units that is overwritten, which makes `1 / (1 - (1 - 1 / b) / ratio)`.
fn random(ratio: f64, units_per_block: u32) -> f64 {
    1.0 / (1.0 - (1.0 - 1.0 / f64::from(units_per_block)) / ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Luojie and Kurkoski ("An Improved Analytic Expression for Write Amplification in NAND
    /// Flash", ICNC 2012, arXiv 1110.4245): 2.36, and 2.35 simulated with greedy victims.
    #[test]
    fn a_published_value_comes_out() {
        let of = |victim, units| uniform_amplification(victim, 1.3, units).expect("a closed form");
        assert!((of(VictimPolicy::Fifo, 256) - 2.36).abs() < 0.005, "{}", of(VictimPolicy::Fifo, 256));
        assert!((of(VictimPolicy::Greedy, 256) - 2.35).abs() < 0.005, "{}", of(VictimPolicy::Greedy, 256));
    }

    #[test]
    fn fifo_solves_its_own_equation_and_large_blocks_make_greedy_the_same() {
        for ratio in [1.001, 1.07, 1.125, 1.28, 2.0, 10.0] {
            let amplification = fifo(ratio);
            let valid = 1.0 - 1.0 / amplification;
            assert!(((-ratio * (1.0 - valid)).exp() - valid).abs() < 1e-12, "{ratio}");
            let [small, large] = [64, 65_536].map(|units| greedy(ratio, units));
            assert!(small < large && large < amplification && large > 0.98 * amplification, "{ratio}: {small} {large}");
        }
    }

    #[test]
    fn one_unit_a_block_needs_no_copies_and_no_spare_space_has_no_answer() {
        assert_eq!(uniform_amplification(VictimPolicy::Greedy, 1.28, 1), Some(1.0));
        assert_eq!(uniform_amplification(VictimPolicy::Random, 1.28, 1), Some(1.0));
        for ratio in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(uniform_amplification(VictimPolicy::Fifo, ratio, 64), None);
        }
        assert_eq!(uniform_amplification(VictimPolicy::CostBenefit, 1.28, 64), None);
    }
}
