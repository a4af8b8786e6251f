//! The interval of a mean, by resampling.

use base::Seed;
use record::student_t_975;

/// Resamples: the ends of an interval then vary by about 1 % of its width.
const RESAMPLES: usize = 10_000;
/// The 0.975 quantile of the normal distribution.
const NORMAL_975: f64 = 1.959_964;

/// Returns the 95 % interval of the mean of `values`; `None` for fewer than two. The same values
/// give the same interval.
pub(super) fn interval(values: &[f64]) -> Option<[f64; 2]> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let count = values.len() as f64;
    let centre = values.iter().sum::<f64>() / count;
    let mut stream = Seed(0).stream("compare/bootstrap");
    let mut resampled = || {
        let drawn = (0..values.len()).map(|_| values[stream.below(values.len() as u64) as usize]);
        drawn.sum::<f64>() / count
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resampled()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let expansion = student_t_975(degrees) / NORMAL_975 * (count / degrees as f64).sqrt();
    let end = |mean: f64| centre + (mean - centre) * expansion;
    Some([end(means[RESAMPLES * 25 / 1_000]), end(means[RESAMPLES * 975 / 1_000 - 1])])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of twelve uniform numbers, minus six: nearly normal, of variance one.
    fn normal(stream: &mut base::Stream) -> f64 {
        (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn the_interval_has_the_true_mean_in_95_of_100_samples() {
        for count in [4, 10] {
            let mut stream = Seed(3).stream("samples");
            let has_truth = |_: &u32| {
                let values: Vec<f64> = (0..count).map(|_| 7.0 + normal(&mut stream)).collect();
                let [low, high] = interval(&values).unwrap();
                low <= 7.0 && 7.0 <= high
            };
            let covered = (0..400).filter(has_truth).count();
            assert!((364..=396).contains(&covered), "{covered} of 400 with {count} seeds");
        }
    }

    #[test]
    fn one_value_has_no_interval_and_equal_ones_have_an_empty_one() {
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[5.0]), None);
        assert_eq!(interval(&[5.0, 5.0]), Some([5.0, 5.0]));
    }
}
