//! Fitting a drive to a measurement: its free parameters are moved until the model answers as a real drive did.
//!
//! A measurement is a set of [`FitPoint`]s, each a random load at a fixed queue depth with the commands a second that came of it; [`read_fio`]
//! takes them from fio's JSON. The model plays each load on the drive ([`SolidState`](super::SolidState)) in a closed loop, and Nelder and Mead's
//! simplex moves the parameters until the squares of ln(model / measured) are least over the points that are used. The number of dies is
//! no continuous number: a ladder of counts is walked from the preset's, with the others fitted at each.
//!
//! **What the data cannot tell is not fitted.** At the best place, each parameter is moved a little and the points answer. Its *own*
//! part of that answer is what no change of the other parameters makes as well. With an error `e` of each point
//! ([`FitRequest::point_error`]), a parameter is known within `e / own part`; one that is known worse than within [`KNOWN_WITHIN_MAX`] is held at its start (or refused,
//! when it was asked for by name) and the rest is fitted again. Of parameters that can only be told together, the first in the
//! order of [`Parameter::ALL`] is kept.
//!
//! The simplex is argmin's. A gradient would be of no use: the model counts whole commands, and its answers have small steps.

mod determine;
mod fio;
mod model;
mod parameter;
mod search;
#[cfg(test)]
mod tests;

pub use fio::{FioError, FioRun, read_fio};
pub use parameter::Parameter;

use super::drive::{DriveError, PreconditionError, SolidStateConfig};
use base::{Bytes, Seed, Span};
use determine::{Doubt, Sensitivity};
use model::Bench;
use parameter::ladder_of_dies;
use search::Search;
use std::collections::BTreeMap;

/// A parameter counts as determined when it is known at least so well, as a share of its value (or of its start, when that is larger: "much smaller
/// than it was" is an answer too). Ours.
pub const KNOWN_WITHIN_MAX: f64 = 0.3;
/// A count of dies is determined when the counts next to it make the sum of squares larger by so many squares of a point's error: two standard
/// deviations.
const DIES_MARGIN: f64 = 4.0;
/// The step of ln(value) by which a parameter is moved aside to see how the points answer. Ours: large beside the model's own steps.
const ASIDE: f64 = 0.1;

/// A random load in a closed loop: a command ends, the next begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoad {
    /// Which share of the commands are reads, 0 to 1.
    pub read_share: f64,
    /// Of a command; its address is a multiple of it.
    pub bytes: Bytes,
    /// Commands that are under way all the time.
    pub depth: u32,
}

/// What was measured under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct FitPoint {
    /// What it is called.
    pub name: String,
    /// What the drive was asked.
    pub load: ClosedLoad,
    /// Commands a second, reads and writes together.
    pub iops: f64,
    /// Mean latency of a command.
    pub latency: Span,
}

/// What the drive held when points that write were measured. (Points that only read find all data in flash, where they were written in order.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenState {
    /// Nothing: no garbage is collected.
    Fresh,
    /// It was full, and overwritten at random until write amplification was steady.
    Steady,
}

/// Which parameters are fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Free {
    /// All that the points determine.
    Determined,
    /// These; it is an error when the points do not determine one of them.
    These(Vec<Parameter>),
}

/// What is to be fitted.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// Where to begin; what is not fitted stays.
    pub start: SolidStateConfig,
    /// The measurement.
    pub points: Vec<FitPoint>,
    /// For each point, whether the fit may use it. The others tell how well the fit predicts.
    pub is_used: Vec<bool>,
    /// Which parameters.
    pub free: Free,
    /// What the drive held.
    pub state: WrittenState,
    /// How far a measured value may be off, as a share of it: decides what counts as determined.
    pub point_error: f64,
    /// Of the addresses.
    pub seed: Seed,
}

/// A drive that was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The drive.
    pub config: SolidStateConfig,
    /// Every parameter, in the order of [`Parameter::ALL`].
    pub parameters: Vec<FittedParameter>,
    /// Every point, in the order of the request.
    pub points: Vec<FittedPoint>,
}

/// What became of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedParameter {
    /// Which.
    pub parameter: Parameter,
    /// Its value before, in the unit of [`Parameter::unit`].
    pub start: f64,
    /// Its value now.
    pub value: f64,
    /// Whether it was fitted.
    pub outcome: Outcome,
}

/// Whether a parameter was fitted.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was, and is known within this share of its value: one standard deviation, from [`FitRequest::point_error`] or, when that is more, what the
    /// drive leaves of the points' errors. `None` for a count, which is known or not.
    Fitted(Option<f64>),
    /// It was not, because of this.
    Held(String),
}

/// A point and what the drive that was fitted makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedPoint {
    /// The point.
    pub point: FitPoint,
    /// Whether the fit used it.
    pub is_used: bool,
    /// The model's commands a second.
    pub model_iops: f64,
}

/// Why nothing was fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// There is nothing to fit to.
    #[error("no point is used: {given} were given, {held_out} of them held out")]
    NoPoint {
        /// Points.
        given: usize,
        /// Those held out.
        held_out: usize,
    },
    /// A value of a point that no drive can have shown.
    #[error("{point}: {what} is {got}, and {allowed} is needed")]
    Point {
        /// The point.
        point: String,
        /// Which of its values.
        what: &'static str,
        /// Its value.
        got: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A parameter that was asked for by name.
    #[error("{parameter} cannot be fitted: {reason}")]
    NotDetermined {
        /// Which.
        parameter: Parameter,
        /// Why not.
        reason: String,
    },
    /// None of the parameters is determined.
    #[error("the points that are used determine no parameter: {reasons}")]
    NothingDetermined {
        /// Why not, each.
        reasons: String,
    },
    /// The number for [`FitRequest::point_error`].
    #[error("point_error: {0}, and a share above 0 and below 1 is needed")]
    PointError(f64),
    /// The drive refused a load.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The drive could not be brought into the state in which it was measured.
    #[error(transparent)]
    State(#[from] PreconditionError),
    /// The simplex gave up.
    #[error("the search failed: {0}")]
    Search(String),
}

impl FittedPoint {
    /// How far the model is off, as a share of what was measured; negative when it is slower.
    pub fn error(&self) -> f64 {
        self.model_iops / self.point.iops - 1.0
    }
}

impl Fit {
    /// Mean and largest of the points' errors without their signs, of those that were used or of those that were not; `None` if there are none.
    pub fn errors(&self, used: bool) -> Option<(f64, f64)> {
        let errors: Vec<f64> =
            self.points.iter().filter(|point| point.is_used == used).map(|point| point.error().abs()).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let largest = errors.iter().copied().fold(0.0, f64::max);
        (!errors.is_empty()).then_some((mean, largest))
    }
}

impl ClosedLoad {
    /// Most commands under way.
    pub const DEPTH_MAX: u32 = 4096;
    /// Largest command.
    pub const BYTES_MAX: Bytes = Bytes::kib(16 << 10);

    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.read_share < 1.0
    }
    /// Whether it reads.
    pub fn reads(&self) -> bool {
        self.read_share > 0.0
    }
}

/// Fits a drive. The same request always gives the same answer.
pub fn fit(request: &FitRequest) -> Result<Fit, FitError> {
    check(request)?;
    let mut attempt = Attempt::new(request);
    let best = attempt.settle()?;
    attempt.finish(best)
}

/// How often each point of a load is answered by this drive: what [`fit`] compares with a measurement.
pub fn predict(config: &SolidStateConfig, load: ClosedLoad, state: WrittenState, seed: Seed) -> Result<f64, FitError> {
    check_load("load", &load)?;
    let bench = Bench::new(config, &[load], state, seed)?;
    Ok(bench.iops(config, load)?)
}

fn check(request: &FitRequest) -> Result<(), FitError> {
    if !(request.point_error > 0.0 && request.point_error < 1.0) {
        return Err(FitError::PointError(request.point_error));
    }
    request.start.check()?;
    for point in &request.points {
        check_load(&point.name, &point.load)?;
        if !(point.iops.is_finite() && point.iops > 0.0) {
            return Err(wrong(&point.name, "iops", point.iops, "a number above 0"));
        }
    }
    let (given, used) = (request.points.len(), request.used().count());
    if used == 0 { Err(FitError::NoPoint { given, held_out: given }) } else { Ok(()) }
}

fn check_load(name: &str, load: &ClosedLoad) -> Result<(), FitError> {
    if !(0.0..=1.0).contains(&load.read_share) {
        return Err(wrong(name, "read_share", load.read_share, "a share of 0 to 1"));
    }
    if load.depth == 0 || load.depth > ClosedLoad::DEPTH_MAX {
        return Err(wrong(name, "depth", load.depth, "1 to 4096"));
    }
    if load.bytes == Bytes::ZERO || load.bytes > ClosedLoad::BYTES_MAX {
        return Err(wrong(name, "bytes", load.bytes, "1 B to 16 MiB"));
    }
    Ok(())
}

fn wrong(point: &str, what: &'static str, got: impl ToString, allowed: &'static str) -> FitError {
    FitError::Point { point: point.into(), what, got: got.to_string(), allowed }
}

impl FitRequest {
    fn used(&self) -> impl Iterator<Item = &FitPoint> {
        self.points.iter().zip(&self.is_used).filter(|(_, used)| **used).map(|(point, _)| point)
    }
    /// Why the points can say nothing about a parameter whatever its value.
    fn out_of_question(&self, parameter: Parameter) -> Option<&'static str> {
        let reads = self.used().any(|point| point.load.reads());
        let writes = self.used().any(|point| point.load.writes());
        match parameter {
            Parameter::ArrayRead | Parameter::ReadFirmware if !reads => Some("no point that is used reads"),
            Parameter::Program | Parameter::WriteFirmware if !writes => Some("no point that is used writes"),
            _ => None,
        }
    }
}

/// The way to a fit: which parameters are still free, and why the others are not.
struct Attempt<'a> {
    request: &'a FitRequest,
    used: Vec<FitPoint>,
    free: Vec<Parameter>,
    held: Vec<(Parameter, String)>,
}

/// A drive and how well it does on the points that are used.
#[derive(Clone, Debug)]
struct Best {
    config: SolidStateConfig,
    /// Sum of the squares of ln(model / measured).
    squares: f64,
}

impl<'a> Attempt<'a> {
    fn new(request: &'a FitRequest) -> Attempt<'a> {
        let free = match &request.free {
            Free::Determined => Parameter::ALL.to_vec(),
            Free::These(these) => Parameter::ALL.into_iter().filter(|parameter| these.contains(parameter)).collect(),
        };
        let held = Parameter::ALL.into_iter().filter(|parameter| !free.contains(parameter));
        let held = held.map(|parameter| (parameter, "not asked for".to_owned())).collect();
        Attempt { request, used: request.used().cloned().collect(), free, held }
    }
    /// Fits, gives up what is not determined, and fits again until all that is left is.
    fn settle(&mut self) -> Result<Best, FitError> {
        for parameter in self.free.clone() {
            if let Some(reason) = self.request.out_of_question(parameter) {
                self.give_up(parameter, reason.into())?;
            }
        }
        let mut best = match self.free.contains(&Parameter::Dies) {
            true => self.count_dies()?,
            false => self.search(&self.request.start, true)?,
        };
        while let Some((doubtful, reason)) = self.doubtful(&best)? {
            self.give_up(doubtful, reason)?;
            best = self.search(&doubtful.with_value_of(&best.config, &self.request.start), true)?;
        }
        Ok(best)
    }
    /// Walks the ladder of dies to the best count, the others fitted at each. Back at the start's when its neighbours do nearly as well.
    fn count_dies(&mut self) -> Result<Best, FitError> {
        let (ladder, first) = ladder_of_dies(self.request.start.geometry.dies_per_channel);
        let mut tried: BTreeMap<usize, Best> = BTreeMap::new();
        let mut best = first;
        loop {
            let around = best.saturating_sub(1)..=(best + 1).min(ladder.len() - 1);
            for place in [best].into_iter().chain(around.clone()) {
                if !tried.contains_key(&place) {
                    tried.insert(place, self.search(&self.with_dies(ladder[place], tried.get(&best)), false)?);
                }
            }
            let squares = |place: &usize| tried[place].squares;
            match around.min_by(|one, other| squares(one).total_cmp(&squares(other))) {
                Some(next) if squares(&next) < squares(&best) => best = next,
                _ => break,
            }
        }
        let rivals = tried.iter().filter(|(place, _)| place.abs_diff(best) == 1);
        let margin = rivals.map(|(_, rival)| rival.squares - tried[&best].squares).fold(f64::INFINITY, f64::min);
        let error = self.request.point_error;
        if margin < DIES_MARGIN * error.powi(2) {
            self.give_up(Parameter::Dies, same_with_other_dies(&ladder, best, error))?;
            best = first;
        }
        Ok(tried.remove(&best).expect("the first place and the best were tried"))
    }
    fn with_dies(&self, dies: u32, near: Option<&Best>) -> SolidStateConfig {
        let mut config = near.map_or(&self.request.start, |near| &near.config).clone();
        config.geometry.dies_per_channel = dies;
        config
    }
    fn search(&self, start: &SolidStateConfig, polished: bool) -> Result<Best, FitError> {
        let bench = self.bench(start, &self.used)?;
        let free = self.continuous();
        self.searching(&bench, &free).best(start, polished)
    }
    fn searching<'b>(&'b self, bench: &'b Bench, free: &'b [Parameter]) -> Search<'b> {
        Search { origin: &self.request.start, free, points: &self.used, bench }
    }
    /// How the points answer to each parameter at the best place, by steps to both sides.
    fn sensitivity(&self, best: &Best, free: &[Parameter]) -> Result<Sensitivity, FitError> {
        let bench = self.bench(&best.config, &self.used)?;
        let search = self.searching(&bench, free);
        let answers = |parameter: &Parameter| {
            let aside = |step: f64| {
                let mut config = best.config.clone();
                parameter.moved(&mut config, &best.config, step);
                search.residuals(&config)
            };
            let (up, down) = (aside(ASIDE)?, aside(-ASIDE)?);
            Ok(up.iter().zip(down).map(|(up, down)| (up - down) / (2.0 * ASIDE)).collect())
        };
        let columns = free.iter().map(answers).collect::<Result<Vec<_>, FitError>>()?;
        let weights = free.iter().map(|parameter| parameter.step(&best.config, &self.request.start).exp().min(1.0));
        Ok(Sensitivity::new(columns, weights.collect()))
    }
    /// The parameter to give up next, and why.
    fn doubtful(&self, best: &Best) -> Result<Option<(Parameter, String)>, FitError> {
        let (free, error) = (self.continuous(), self.request.point_error);
        let doubt = self.sensitivity(best, &free)?.doubt(error);
        Ok(doubt.map(|(index, doubt)| (free[index], self.explain(free[index], doubt, error))))
    }
    /// How far a point is off: as the request says, or as this drive shows when that is more (root mean square, for each degree of freedom left).
    fn error_of(&self, best: &Best) -> f64 {
        let spare = self.used.len().saturating_sub(self.free.len()).max(1);
        (best.squares / spare as f64).sqrt().max(self.request.point_error)
    }
    fn explain(&self, parameter: Parameter, doubt: Doubt, error: f64) -> String {
        let others = self.continuous().into_iter().filter(|other| *other != parameter);
        let names: Vec<String> = others.map(|other| other.to_string()).collect();
        let what = match doubt {
            Doubt::NoInfluence => "hardly depend on it".to_owned(),
            Doubt::SameAsOthers => format!("cannot tell it from {}", names.join(", ")),
        };
        format!("at an error of {:.1} % a point, the points that are used {what}", error * 100.0)
    }
    fn give_up(&mut self, parameter: Parameter, reason: String) -> Result<(), FitError> {
        if matches!(self.request.free, Free::These(_)) {
            return Err(FitError::NotDetermined { parameter, reason });
        }
        self.free.retain(|free| *free != parameter);
        self.held.push((parameter, reason));
        if !self.free.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> =
            self.held.iter().map(|(parameter, reason)| format!("{parameter}: {reason}")).collect();
        Err(FitError::NothingDetermined { reasons: reasons.join("; ") })
    }
    fn continuous(&self) -> Vec<Parameter> {
        self.free.iter().copied().filter(|parameter| *parameter != Parameter::Dies).collect()
    }
    fn finish(&self, best: Best) -> Result<Fit, FitError> {
        let bench = self.bench(&best.config, &self.request.points)?;
        let points = self.request.points.iter().zip(&self.request.is_used).map(|(point, is_used)| {
            let model_iops = bench.iops(&best.config, point.load)?;
            Ok(FittedPoint { point: point.clone(), is_used: *is_used, model_iops })
        });
        let points = points.collect::<Result<Vec<_>, FitError>>()?;
        Ok(Fit { parameters: self.outcomes(&best)?, points, config: best.config })
    }
    fn outcomes(&self, best: &Best) -> Result<Vec<FittedParameter>, FitError> {
        let free = self.continuous();
        let known = self.sensitivity(best, &free)?.known_within(self.error_of(best));
        let outcome = |parameter| match free.iter().position(|free| *free == parameter) {
            Some(index) => Outcome::Fitted(Some(known[index])),
            None => match self.held.iter().find(|(held, _)| *held == parameter) {
                Some((_, reason)) => Outcome::Held(reason.clone()),
                None => Outcome::Fitted(None),
            },
        };
        let of = |parameter: Parameter| FittedParameter {
            parameter,
            start: parameter.value(&self.request.start),
            value: parameter.value(&best.config),
            outcome: outcome(parameter),
        };
        Ok(Parameter::ALL.map(of).into())
    }

    fn bench(&self, config: &SolidStateConfig, points: &[FitPoint]) -> Result<Bench, FitError> {
        let loads: Vec<ClosedLoad> = points.iter().map(|point| point.load).collect();
        Bench::new(config, &loads, self.request.state, self.request.seed)
    }
}

fn same_with_other_dies(ladder: &[u32], best: usize, error: f64) -> String {
    let (least, most) = (ladder[best.saturating_sub(1)], ladder[(best + 1).min(ladder.len() - 1)]);
    let percent = error * 100.0;
    format!(
        "at an error of {percent:.1} % a point, another count from {least} to {most} explains the points that are used as well"
    )
}
