//! Which values of a parameter the points allow: its profile likelihood.
//!
//! The parameter is set aside step by step, and at each place all others are fitted anew, so that
//! what they can make up for counts. The range ends where the sum of squares, in units of the
//! points' errors, has risen by [`RISE_95`]: with normal errors it contains the truth in 95 % of
//! all measurements (Wilks 1938; Venzon and Moolgavkar, Applied Statistics 1988; Raue et al.,
//! Bioinformatics 2009). A range that does not end within a factor of [`FAR`] is open: the points
//! do not identify the parameter on that side.

use super::FitError;
use super::search::{Place, Search};
use crate::ssd::drive::SolidStateConfig;

/// 95 % of squares of a standard normal variate are less.
pub(super) const RISE_95: f64 = 3.841;
/// How far values are sought, as ln(value): a factor of 10. Ours.
const FAR: f64 = std::f64::consts::LN_10;
/// The first step of ln(value), which then doubles. Ours.
const FIRST: f64 = 0.04;
/// Places tried between the last inside and the first outside. Ours.
const BETWEEN: usize = 3;
/// By how much a sum of squares must fall for the best place not to have been the best. Ours.
const BETTER: f64 = 0.5;
/// The step of ln(value) of a difference quotient, and how far one correction may go. Ours.
const ASIDE: f64 = 0.05;
const CORRECTION_MAX: f64 = 0.5;
/// Corrections of the others at each place. Ours.
const CORRECTIONS: usize = 3;

/// The values of a parameter that the points allow, in 95 % of all measurements with the truth
/// among them. In the unit of the parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// Whether the least is only the least that was tried.
    pub is_open_below: bool,
    /// Whether the largest is only the largest that was tried.
    pub is_open_above: bool,
}

impl Range {
    /// Returns whether a value is in it.
    pub fn contains(&self, value: f64) -> bool {
        (self.low <= value || self.is_open_below) && (value <= self.high || self.is_open_above)
    }
    /// The least range that has all of both.
    pub(super) fn with(self, other: Range) -> Range {
        Range {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            is_open_below: self.is_open_below || other.is_open_below,
            is_open_above: self.is_open_above || other.is_open_above,
        }
    }
}

/// What came of a profile.
pub(super) enum Profile {
    /// The values that the points allow.
    Range(Range),
    /// A place that does better than the best one.
    Better(Box<SolidStateConfig>),
}

enum End {
    At { value: f64, is_open: bool },
    Better(Box<SolidStateConfig>),
}

/// The best place, and how much its squares may rise.
pub(super) struct Profiler<'a> {
    pub(super) search: Search<'a>,
    pub(super) best: &'a SolidStateConfig,
    /// At the best place.
    pub(super) squares: f64,
    pub(super) rise: f64,
}

impl Profiler<'_> {
    /// The range of the free parameter with this index.
    pub(super) fn of(&self, index: usize) -> Result<Profile, FitError> {
        let mut ends = Vec::new();
        for direction in [-1.0, 1.0] {
            match self.end(index, direction)? {
                End::At { value, is_open } => ends.push((value, is_open)),
                End::Better(config) => return Ok(Profile::Better(config)),
            }
        }
        // A longer time of a byte is a smaller rate.
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let [(low, is_open_below), (high, is_open_above)] = [ends[0], ends[1]];
        Ok(Profile::Range(Range { low, high, is_open_below, is_open_above }))
    }

    fn end(&self, index: usize, direction: f64) -> Result<End, FitError> {
        let best = self.search.place_of(self.best);
        let mut inside = (0.0, 0.0, best.clone());
        let mut distance = FIRST;
        let mut outside = loop {
            let place = inside.2.with_step(index, best.step(index) + direction * distance);
            let (squares, place) = self.refit(index, place)?;
            let rise = squares - self.squares;
            if rise < -BETTER {
                return Ok(End::Better(Box::new(self.search.at(self.best, &place))));
            }
            if rise > self.rise {
                break (distance, rise);
            }
            inside = (distance, rise.max(0.0), place);
            if distance >= FAR {
                return Ok(End::At { value: self.value(index, &inside.2), is_open: true });
            }
            distance = (2.0 * distance).min(FAR);
        };
        for _ in 0..BETWEEN {
            // The square root of a rise grows about evenly.
            let share = (self.rise.sqrt() - inside.1.sqrt()) / (outside.1.sqrt() - inside.1.sqrt());
            let between = inside.0 + (outside.0 - inside.0) * share.clamp(0.1, 0.9);
            let place = inside.2.with_step(index, best.step(index) + direction * between);
            let (squares, place) = self.refit(index, place)?;
            match squares - self.squares {
                rise if rise > self.rise => outside = (between, rise),
                rise => inside = (between, rise.max(0.0), place),
            }
        }
        // The outer of the two: the model's own small steps must not make the range too short.
        let place = inside.2.with_step(index, best.step(index) + direction * outside.0);
        Ok(End::At { value: self.value(index, &place), is_open: false })
    }

    fn value(&self, index: usize, place: &Place) -> f64 {
        self.search.free[index].value(&self.search.at(self.best, place))
    }

    /// Fits all but one parameter, from a place that is not far off (Gauss and Newton).
    fn refit(&self, fixed: usize, place: Place) -> Result<(f64, Place), FitError> {
        let others: Vec<usize> = (0..self.search.free.len()).filter(|index| *index != fixed).collect();
        let mut residuals = self.residuals(&place)?;
        let mut place = place;
        for _ in 0..CORRECTIONS {
            let answer = |index: &usize| {
                let aside = self.residuals(&place.with_step(*index, place.step(*index) + ASIDE))?;
                Ok(aside.iter().zip(&residuals).map(|(aside, here)| (aside - here) / ASIDE).collect())
            };
            let columns = others.iter().map(answer).collect::<Result<Vec<Vec<f64>>, FitError>>()?;
            let corrections = least_squares(&columns, &residuals);
            let moved = others.iter().zip(corrections).fold(place.clone(), |moved, (index, correction)| {
                moved.with_step(*index, moved.step(*index) - correction.clamp(-CORRECTION_MAX, CORRECTION_MAX))
            });
            let moved_residuals = self.residuals(&moved)?;
            if squares(&moved_residuals) >= squares(&residuals) {
                break;
            }
            let gain = squares(&residuals) - squares(&moved_residuals);
            (place, residuals) = (moved, moved_residuals);
            if gain < 0.05 {
                break;
            }
        }
        Ok((squares(&residuals), place))
    }
    fn residuals(&self, place: &Place) -> Result<Vec<f64>, FitError> {
        self.search.residuals(&self.search.at(self.best, place))
    }
}

fn squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|residual| residual * residual).sum()
}

/// How much of each column makes up `target` best: the normal equations, solved by elimination.
/// Columns that say the same share their part (a small ridge).
fn least_squares(columns: &[Vec<f64>], target: &[f64]) -> Vec<f64> {
    let product = |one: &[f64], other: &[f64]| -> f64 { one.iter().zip(other).map(|(one, other)| one * other).sum() };
    let count = columns.len();
    let ridge = 1e-6 * columns.iter().map(|column| product(column, column)).sum::<f64>() + f64::MIN_POSITIVE;
    let row = |at: usize| -> Vec<f64> {
        let entries =
            (0..count).map(|other| product(&columns[at], &columns[other]) + if at == other { ridge } else { 0.0 });
        entries.chain([product(&columns[at], target)]).collect()
    };
    let mut rows: Vec<Vec<f64>> = (0..count).map(row).collect();
    // Symmetric and positive definite: no pivot is zero.
    for pivot in 0..count {
        for at in (0..count).filter(|at| *at != pivot) {
            let factor = rows[at][pivot] / rows[pivot][pivot];
            let above = rows[pivot].clone();
            rows[at].iter_mut().zip(above).for_each(|(entry, above)| *entry -= factor * above);
        }
    }
    (0..count).map(|at| rows[at][count] / rows[at][at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_squares_solves_a_line() {
        // y = 2 + 3 x at x = 0, 1, 2.
        let found = least_squares(&[vec![1.0; 3], vec![0.0, 1.0, 2.0]], &[2.0, 5.0, 8.0]);
        assert!((found[0] - 2.0).abs() < 1e-3 && (found[1] - 3.0).abs() < 1e-3, "{found:?}");
        assert!(least_squares(&[vec![0.0; 3]], &[1.0; 3])[0].abs() < 1e-9, "what has no answer is left alone");
    }

    #[test]
    fn an_open_end_contains_what_lies_beyond() {
        let range = Range { low: 1.0, high: 2.0, is_open_below: false, is_open_above: true };
        assert!(range.contains(1.0) && range.contains(9.0) && !range.contains(0.9));
        let wider = range.with(Range { low: 0.5, high: 0.7, is_open_below: false, is_open_above: false });
        assert_eq!((wider.low, wider.high, wider.is_open_above), (0.5, 2.0, true));
    }
}
