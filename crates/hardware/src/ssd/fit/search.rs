//! The simplex: from a drive to the one near by that does best.

use super::model::Bench;
use super::parameter::Parameter;
use super::{Best, FitError, FitPoint};
use crate::ssd::drive::SolidStateConfig;
use argmin::core::{CostFunction, Error, Executor, State};
use argmin::solver::neldermead::NelderMead;
use argmin_math::{ArgminAdd, ArgminMul, ArgminSub};

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
        let from = self.place_of(start);
        let failed = |error: Error| FitError::Search(error.to_string());
        let solver = NelderMead::new(from.simplex(step)).with_sd_tolerance(TOLERANCE).map_err(failed)?;
        let rounds = ROUNDS * self.free.len() as u64;
        let run = Executor::new(Misfit { search: self, start }, solver)
            .configure(|state| state.max_iters(rounds))
            .timer(false)
            .run()
            .map_err(failed)?;
        let place = run.state.get_best_param().ok_or_else(|| FitError::Search("no place was tried".into()))?;
        Ok(self.at(start, place))
    }
}

/// What the simplex sees.
struct Misfit<'a> {
    search: &'a Search<'a>,
    start: &'a SolidStateConfig,
}

impl CostFunction for Misfit<'_> {
    type Param = Place;
    type Output = f64;
    fn cost(&self, place: &Place) -> Result<f64, Error> {
        let squares = self.search.squares(&self.search.at(self.start, place))?;
        // Beyond its bounds nothing changes any more: the way back must lead down.
        let beyond: f64 = place.0.iter().map(|step| (step.abs() - STEP_MAX).max(0.0)).sum();
        Ok(squares + BEYOND * beyond)
    }
}

/// Steps of the parameters. (argmin's own arithmetic of vectors would bring a second `rand` along.)
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
    fn simplex(self, step: f64) -> Vec<Place> {
        let corner = |index: usize| {
            let mut corner = self.clone();
            corner.0[index] += step;
            corner
        };
        let corners: Vec<Place> = (0..self.0.len()).map(corner).collect();
        [vec![self], corners].concat()
    }
    fn with(&self, other: &Place, combine: impl Fn(f64, f64) -> f64) -> Place {
        Place(self.0.iter().zip(&other.0).map(|(one, other)| combine(*one, *other)).collect())
    }
}

impl ArgminAdd<Place, Place> for Place {
    fn add(&self, other: &Place) -> Place {
        self.with(other, |one, other| one + other)
    }
}
impl ArgminSub<Place, Place> for Place {
    fn sub(&self, other: &Place) -> Place {
        self.with(other, |one, other| one - other)
    }
}
impl ArgminMul<f64, Place> for Place {
    fn mul(&self, factor: &f64) -> Place {
        Place(self.0.iter().map(|step| step * factor).collect())
    }
}
