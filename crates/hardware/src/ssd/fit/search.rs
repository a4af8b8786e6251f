//! The simplex: from a drive to the one near by that does best.

use super::model::Bench;
use super::parameter::Parameter;
use super::{Best, FitError, FitPoint};
use crate::ssd::drive::SolidStateConfig;
use argmin::core::{CostFunction, Error, Executor, State};
use argmin::solver::neldermead::NelderMead;
use argmin_math::{ArgminAdd, ArgminMul, ArgminSub};

/// Size of the first simplex and of the one that starts again from what was found: steps of ln(value). Ours.
const FIRST_STEP: f64 = 0.4;
const AGAIN_STEP: f64 = 0.1;
/// It ends when the sums of squares of its corners differ by less (standard deviation), or after so many rounds for each parameter. Ours: 1e-5 is an
/// error of 0.3 % of one point.
const TOLERANCE: f64 = 1e-5;
const ROUNDS: u64 = 30;
/// No parameter moves further than to 32 times its start, or a 32nd of it. Ours.
const STEP_MAX: f64 = 3.465_735_902_799_726_5;

/// What is searched: which parameters move, from where they are counted, and what is compared.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    /// The drive from whose values steps are counted.
    pub(super) origin: &'a SolidStateConfig,
    /// What moves.
    pub(super) free: &'a [Parameter],
    /// The points that count.
    pub(super) points: &'a [FitPoint],
    /// Where they are played.
    pub(super) bench: &'a Bench,
}

impl Search<'_> {
    /// The best drive that is found from `start`, in two parts: points that only read know nothing of the times of writes and are quick to play, so
    /// that the others are fitted to them first. `polished`: then all together, for writes know of reads (collection reads too).
    pub(super) fn best(&self, start: &SolidStateConfig, polished: bool) -> Result<Best, FitError> {
        let (writing, reading): (Vec<FitPoint>, Vec<FitPoint>) =
            self.points.iter().cloned().partition(|point| point.load.writes());
        let of_writes = [Parameter::Program, Parameter::WriteFirmware];
        let (late, early): (Vec<Parameter>, Vec<Parameter>) =
            self.free.iter().copied().partition(|parameter| of_writes.contains(parameter));
        let mut config = start.clone();
        if reading.is_empty() || writing.is_empty() {
            config = self.descend(&config, FIRST_STEP)?;
        } else {
            config = Search { free: &early, points: &reading, ..*self }.descend(&config, FIRST_STEP)?;
            config = Search { free: &late, points: &writing, ..*self }.descend(&config, FIRST_STEP)?;
        }
        if polished {
            config = self.descend(&config, AGAIN_STEP)?;
        }
        let squares = self.squares(&config)?;
        Ok(Best { config, squares })
    }
    /// ln(model / measured) of every point.
    pub(super) fn residuals(&self, config: &SolidStateConfig) -> Result<Vec<f64>, FitError> {
        let points = self.points.iter();
        points.map(|point| Ok((self.bench.iops(config, point.load)? / point.iops).ln())).collect()
    }

    fn squares(&self, config: &SolidStateConfig) -> Result<f64, FitError> {
        Ok(self.residuals(config)?.iter().map(|residual| residual * residual).sum())
    }
    fn at(&self, start: &SolidStateConfig, place: &Place) -> SolidStateConfig {
        let mut config = start.clone();
        for (parameter, step) in self.free.iter().zip(&place.0) {
            parameter.moved(&mut config, self.origin, step.clamp(-STEP_MAX, STEP_MAX));
        }
        config
    }
    fn descend(&self, start: &SolidStateConfig, step: f64) -> Result<SolidStateConfig, FitError> {
        if self.free.is_empty() {
            return Ok(start.clone());
        }
        let from = Place(self.free.iter().map(|parameter| parameter.step(start, self.origin)).collect());
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
        Ok(squares + beyond)
    }
}

/// Steps of the parameters. (argmin's own arithmetic of vectors would bring a second `rand` along.)
#[derive(Clone, Debug)]
struct Place(Vec<f64>);

impl Place {
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
