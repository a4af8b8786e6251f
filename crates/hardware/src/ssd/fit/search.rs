//! The simplex: from a drive to the one near by that does best.

use super::model::Bench;
use super::parameter::Parameter;
use super::{Best, FitError, FitPoint};
use crate::ssd::drive::SolidStateConfig;
use basin::{CostFunction, Executor, NelderMead, SimplexProgress};

/// Size of the first simplex and of the one that starts again from what was found: steps of
/// ln(value). Ours.
const FIRST_STEP: f64 = 0.4;
const AGAIN_STEP: f64 = 0.1;
/// The search ends when the sums of squares of its corners differ by less than this (standard
/// deviation, in units of the points' errors), or after this many rounds per parameter. Ours.
const TOLERANCE: f64 = 0.05;
const ROUNDS: u64 = 30;
/// Number of additional starting points per parameter; the search descends from the best of them.
/// Ours.
const LOOKS: usize = 6;
const DESCENTS: usize = 3;
/// How far those places lie around the start: steps of ln(value), a factor of 6. Ours.
const AROUND: f64 = 1.791_759_469_228_055;
/// Sum of squares for a step beyond the bounds. Ours: more than any misfit wins.
const BEYOND: f64 = 1e4;
/// No parameter moves further than to 32 times its start, or a 32nd of it. Ours.
const STEP_MAX: f64 = 3.465_735_902_799_726_5;

/// What is searched: which parameters move, from where they are counted, and what is compared.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    /// The drive from whose values steps are counted.
    pub(super) origin: &'a SolidStateConfig,
    /// The parameters that are varied.
    pub(super) free: &'a [Parameter],
    /// The points that count.
    pub(super) points: &'a [UsedPoint],
    /// Where they are played.
    pub(super) bench: &'a Bench,
}

/// A point that the fit uses.
#[derive(Clone, Debug)]
pub(super) struct UsedPoint {
    pub(super) point: FitPoint,
    /// Standard deviation of ln(model / measured): of the measurement and of the model's own draws.
    pub(super) error: f64,
}

impl Search<'_> {
    /// The best drive that is found from `start`, in two parts: points that only read know nothing
    /// of the times of writes and are quick to play, so that the others are fitted to them first.
    /// Then all together, for writes know of reads (collection reads too). `is_wide`: from several
    /// places, which lie the same way for every request.
    pub(super) fn best(&self, start: &SolidStateConfig, is_wide: bool) -> Result<Best, FitError> {
        let (writing, reading): (Vec<UsedPoint>, Vec<UsedPoint>) =
            self.points.iter().cloned().partition(|used| used.point.load.writes());
        let of_writes = [Parameter::Program, Parameter::WriteFirmware];
        let (late, early): (Vec<Parameter>, Vec<Parameter>) =
            self.free.iter().copied().partition(|parameter| of_writes.contains(parameter));
        let first = |search: Search<'_>, start: &SolidStateConfig| match is_wide {
            true => search.descend_from_several(start),
            false => search.descend(start, FIRST_STEP),
        };
        let mut config = start.clone();
        if reading.is_empty() || writing.is_empty() {
            config = first(*self, &config)?;
        } else {
            config = first(Search { free: &early, points: &reading, ..*self }, &config)?;
            config = Search { free: &late, points: &writing, ..*self }.descend(&config, FIRST_STEP)?;
        }
        self.again(&config)
    }
    /// The best drive close to one that is nearly it.
    pub(super) fn again(&self, near: &SolidStateConfig) -> Result<Best, FitError> {
        let config = self.descend(near, AGAIN_STEP)?;
        let squares = self.squares(&config)?;
        Ok(Best { config, squares })
    }
    /// The best of what is found from a start and from the best of many places around it.
    fn descend_from_several(&self, start: &SolidStateConfig) -> Result<SolidStateConfig, FitError> {
        let mut looks = Vec::new();
        for number in 1..=LOOKS * self.free.len() {
            let config = self.at(start, &halton(number, self.free.len()));
            looks.push((self.squares(&config)?, config));
        }
        looks.sort_by(|one, other| one.0.total_cmp(&other.0));
        let starts = [start.clone()].into_iter().chain(looks.into_iter().map(|look| look.1).take(DESCENTS - 1));
        let mut best: Option<(f64, SolidStateConfig)> = None;
        for start in starts {
            let config = self.descend(&start, FIRST_STEP)?;
            let squares = self.squares(&config)?;
            if best.as_ref().is_none_or(|best| squares < best.0) {
                best = Some((squares, config));
            }
        }
        Ok(best.expect("the start is one of the starts").1)
    }
    /// ln(model / measured) of every point, in units of its error.
    pub(super) fn residuals(&self, config: &SolidStateConfig) -> Result<Vec<f64>, FitError> {
        let points = self.points.iter();
        let residual = |used: &UsedPoint| {
            let model = self.bench.iops(config, used.point.load)?;
            Ok((model / used.point.iops).ln() / used.error)
        };
        points.map(residual).collect()
    }

    pub(super) fn squares(&self, config: &SolidStateConfig) -> Result<f64, FitError> {
        Ok(self.residuals(config)?.iter().map(|residual| residual * residual).sum())
    }
    pub(super) fn at(&self, start: &SolidStateConfig, place: &Place) -> SolidStateConfig {
        let mut config = start.clone();
        for (parameter, step) in self.free.iter().zip(&place.0) {
            parameter.moved(&mut config, self.origin, step.clamp(-STEP_MAX, STEP_MAX));
        }
        config
    }
    /// The steps that lead from the origin to a drive.
    pub(super) fn place_of(&self, config: &SolidStateConfig) -> Place {
        Place(self.free.iter().map(|parameter| parameter.step(config, self.origin)).collect())
    }
    fn descend(&self, start: &SolidStateConfig, step: f64) -> Result<SolidStateConfig, FitError> {
        if self.free.is_empty() {
            return Ok(start.clone());
        }
        let simplex = SimplexProgress::from_simplex(self.place_of(start).simplex(step));
        // The spread of the sums of squares alone ends the search.
        let solver = NelderMead::new()
            .with_absolute_simplex_size_tolerance(None)
            .with_relative_simplex_size_tolerance(None)
            .with_absolute_simplex_cost_tolerance(None)
            .with_relative_simplex_cost_tolerance(None)
            .with_absolute_simplex_cost_std_dev_tolerance(TOLERANCE);
        let rounds = ROUNDS * self.free.len() as u64;
        let found = Executor::new(Misfit { search: self, start }, solver, simplex).max_iter(rounds).run()?;
        Ok(self.at(start, &Place(found.best_param().clone())))
    }
}

/// What the simplex sees.
struct Misfit<'a> {
    search: &'a Search<'a>,
    start: &'a SolidStateConfig,
}

impl CostFunction for Misfit<'_> {
    type Param = Vec<f64>;
    type Output = f64;
    type Error = FitError;
    fn cost(&self, place: &Vec<f64>) -> Result<f64, FitError> {
        let squares = self.search.squares(&self.search.at(self.start, &Place(place.clone())))?;
        // Beyond its bounds nothing changes any more: the way back must lead down.
        let beyond: f64 = place.iter().map(|step| (step.abs() - STEP_MAX).max(0.0)).sum();
        Ok(squares + BEYOND * beyond)
    }
}

/// Steps of the parameters.
#[derive(Clone, Debug)]
pub(super) struct Place(Vec<f64>);

/// A place of a sequence that fills the box around the start evenly (Halton 1960): digits of its
/// number behind the point, in the base of a prime for each parameter.
fn halton(number: usize, parameters: usize) -> Place {
    let digits = |base: usize| {
        let (mut rest, mut unit, mut value) = (number, 1.0, 0.0);
        while rest > 0 {
            unit /= base as f64;
            value += unit * (rest % base) as f64;
            rest /= base;
        }
        AROUND * (2.0 * value - 1.0)
    };
    Place([2, 3, 5, 7, 11].into_iter().take(parameters).map(digits).collect())
}

impl Place {
    pub(super) fn step(&self, index: usize) -> f64 {
        self.0[index]
    }
    pub(super) fn with_step(&self, index: usize, step: f64) -> Place {
        let mut place = self.clone();
        place.0[index] = step;
        place
    }
    /// The corners of a simplex: the place itself, and a step from it along each parameter.
    fn simplex(self, step: f64) -> Vec<Vec<f64>> {
        let corner = |index: usize| {
            let mut corner = self.0.clone();
            corner[index] += step;
            corner
        };
        let corners: Vec<Vec<f64>> = (0..self.0.len()).map(corner).collect();
        [vec![self.0], corners].concat()
    }
}
