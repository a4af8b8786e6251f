//! What points say about parameters: how each point answers to a step of each parameter, and which
//! part of that answer is a parameter's own.

use super::KNOWN_WITHIN_MAX;

/// Each parameter's answers, one for each point: the change of ln(model) for a step of 1.
pub(super) struct Sensitivity {
    columns: Vec<Vec<f64>>,
    /// What an error of 1 in ln(value) means as a share of the value or, where that is larger, of
    /// the start: 1 and less.
    weights: Vec<f64>,
}

/// Reason why a parameter is not determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The points hardly answer to it.
    NoInfluence,
    /// The others together make the same answer.
    SameAsOthers,
}

impl Sensitivity {
    /// Of answers and weights, one of each for every parameter.
    pub(super) fn new(columns: Vec<Vec<f64>>, weights: Vec<f64>) -> Sensitivity {
        Sensitivity { columns, weights }
    }
    /// Within which share of its value each parameter is known when each point is known within
    /// `error`: one standard deviation of least squares.
    pub(super) fn known_within(&self, error: f64) -> Vec<f64> {
        (0..self.columns.len()).map(|index| error * self.weights[index] / self.own(index)).collect()
    }
    /// The parameter to give up first: one without influence, else the last of those that the
    /// others can replace.
    pub(super) fn doubt(&self, error: f64) -> Option<(usize, Doubt)> {
        let alone = |index: usize| error * self.weights[index] / length(&self.columns[index]);
        // Not a number (nothing of nothing) is not known either.
        let is_known = |within: f64| within <= KNOWN_WITHIN_MAX;
        let mute = (0..self.columns.len()).rev().find(|index| !is_known(alone(*index)));
        let replaced = || self.known_within(error).iter().rposition(|within| !is_known(*within));
        mute.map(|index| (index, Doubt::NoInfluence)).or_else(|| replaced().map(|index| (index, Doubt::SameAsOthers)))
    }
    /// The length of what is left of a column when all that the others can make of it is taken
    /// away.
    fn own(&self, index: usize) -> f64 {
        let mut base: Vec<Vec<f64>> = Vec::new();
        for (_, column) in self.columns.iter().enumerate().filter(|(other, _)| *other != index) {
            let rest = without(column, &base);
            let left = length(&rest);
            if left > RESOLUTION * length(column) {
                base.push(rest.iter().map(|value| value / left).collect());
            }
        }
        length(&without(&self.columns[index], &base))
    }
}

/// What is left of a column is rounding below this share of it.
const RESOLUTION: f64 = 1e-6;

/// A column less its parts along the directions of `base` (orthonormal; twice, against rounding).
fn without(column: &[f64], base: &[Vec<f64>]) -> Vec<f64> {
    let mut rest = column.to_vec();
    for direction in base.iter().chain(base) {
        let part: f64 = rest.iter().zip(direction).map(|(value, along)| value * along).sum();
        rest.iter_mut().zip(direction).for_each(|(value, along)| *value -= part * along);
    }
    rest
}

fn length(column: &[f64]) -> f64 {
    column.iter().map(|value| value * value).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sensitivity(columns: &[&[f64]]) -> Sensitivity {
        Sensitivity::new(columns.iter().map(|column| column.to_vec()).collect(), vec![1.0; columns.len()])
    }

    #[test]
    fn one_parameter_alone_is_known_as_least_squares_say() {
        // Four points that all answer in proportion: the mean of four, half of one's error.
        let four = sensitivity(&[&[1.0, 1.0, 1.0, 1.0]]);
        assert!((four.known_within(0.02)[0] - 0.01).abs() < 1e-12);
        assert_eq!(four.doubt(0.02), None);
    }

    #[test]
    fn a_slope_and_an_offset_are_known_as_the_normal_equations_say() {
        // y = a + b x at x = 0, 1, 2: var(b) = s^2 / 2, var(a) = 5 s^2 / 6.
        let line = sensitivity(&[&[1.0, 1.0, 1.0], &[0.0, 1.0, 2.0]]);
        let known = line.known_within(0.06);
        assert!((known[0] - 0.06 * (5.0f64 / 6.0).sqrt()).abs() < 1e-12, "{known:?}");
        assert!((known[1] - 0.06 / 2f64.sqrt()).abs() < 1e-12, "{known:?}");
    }

    #[test]
    fn of_two_that_do_the_same_the_later_is_given_up_and_one_without_influence_goes_first() {
        let crowd = sensitivity(&[&[-1.0, -0.5], &[-0.5, -1.0], &[0.0, -1.0]]);
        assert_eq!(crowd.doubt(0.02), Some((2, Doubt::SameAsOthers)), "three parameters and two points");
        let twins = sensitivity(&[&[-1.0, -0.5, 0.0], &[-0.5, -0.25, 0.0], &[0.0, 0.0, -1.0]]);
        assert_eq!(twins.doubt(0.02), Some((1, Doubt::SameAsOthers)));
        let mute = sensitivity(&[&[-1.0, -0.5, 0.0], &[0.0, 0.0, 0.0], &[0.0, 0.0, -1.0]]);
        assert_eq!(mute.doubt(0.02), Some((1, Doubt::NoInfluence)));
    }

    #[test]
    fn a_parameter_counts_as_determined_up_to_the_limit_and_not_beyond() {
        let just = |own: f64| sensitivity(&[&[own]]).doubt(0.02);
        assert_eq!(just(0.02 / KNOWN_WITHIN_MAX * 1.001), None);
        assert_eq!(just(0.02 / KNOWN_WITHIN_MAX * 0.999), Some((0, Doubt::NoInfluence)));
    }
}
