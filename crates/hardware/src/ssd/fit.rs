//! Fits a drive to a measurement: adjusts its free parameters until the model matches a real drive.
//!
//! A measurement is a set of [`FitPoint`]s, each a random load at a fixed queue depth with the
//! measured commands per second; [`read_fio`] reads them from fio's JSON. The model runs each load
//! on the drive ([`SolidState`](super::SolidState)) in a closed loop. Nelder and Mead's simplex
//! adjusts the parameters to minimise the squares of ln(model / measured) over the used points. The
//! number of dies is not continuous: the search climbs a ladder of counts from the preset's, with
//! the others fitted at each.
//!
//! The search descends from several places, the same for every request, since a wrong preset leads
//! into local minima.
//!
//! **Undetermined parameters are not fitted.** First all parameters are fitted together, and the
//! *range* of each is measured: the values that the points allow when all others are fitted again
//! for each of them (profile likelihood; 95 %). Then undetermined ones are fixed at their start (or
//! refused, if requested by name), and the rest is fitted again. A parameter is undetermined in two
//! cases. Either the effect of a small step of it, apart from what changes of the others can
//! imitate, determines it worse than within [`KNOWN_WITHIN_MAX`]. Or its range with those fixed is
//! wider than that. Of parameters that cannot be separated, the first in the order of
//! [`Parameter::ALL`] is kept. A start outside the range is no place to fix a parameter: then it
//! keeps the best value.
//!
//! The error of a point combines that of the measurement ([`FitRequest::point_error`]) and what
//! remains of the model's own after its drawn addresses are allowed for. The simplex is that of the
//! crate basin. A gradient would not help: the model counts whole commands, and its answers have
//! small steps.

mod attempt;
mod determine;
mod fio;
mod model;
mod parameter;
mod profile;
mod search;
#[cfg(test)]
mod tests;

pub use fio::{FioError, FioRun, read_fio};
pub use parameter::Parameter;
pub use profile::Range;

use super::drive::{DriveError, PreconditionError, SolidStateConfig};
use attempt::Attempt;
use base::{Bytes, Seed, Span};
use model::Bench;

/// A parameter counts as determined when it is known at least so well, as a share of its value (or
/// of its start, when that is larger: "much smaller than it was" is an answer too). Ours.
pub const KNOWN_WITHIN_MAX: f64 = 0.3;
/// A count of dies is determined when the counts next to it make the sum of squares larger by so
/// much, in units of the points' errors: two standard deviations.
const DIES_MARGIN: f64 = 4.0;
/// The step of ln(value) by which a parameter is moved aside to see how the points answer. Ours:
/// large beside the model's own steps.
const ASIDE: f64 = 0.1;

/// A random load in a closed loop: a command ends, the next begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoad {
    /// Which share of the commands are reads, 0 to 1.
    pub read_share: f64,
    /// Of a command; its address is a multiple of it.
    pub bytes: Bytes,
    /// Commands in flight at all times.
    pub depth: u32,
}

/// What was measured under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct FitPoint {
    /// What it is called.
    pub name: String,
    /// The load of the drive.
    pub load: ClosedLoad,
    /// Commands a second, reads and writes together.
    pub iops: f64,
    /// Mean latency of a command.
    pub latency: Span,
}

/// What the drive held when points that write were measured. (Points that only read find all data
/// in flash, where they were written in order.)
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
    /// For each point, whether the fit may use it. The others measure its prediction error.
    pub is_used: Vec<bool>,
    /// The parameters to fit.
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
    /// The parameter.
    pub parameter: Parameter,
    /// Its value before, in the unit of [`Parameter::unit`].
    pub start: f64,
    /// Its value now.
    pub value: f64,
    /// The values that the points allow, for any values of the others; `None` if they do not
    /// constrain it.
    pub range: Option<Range>,
    /// Whether it was fitted.
    pub outcome: Outcome,
}

/// Whether a parameter was fitted.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was fitted: alone, or with those held fixed from which the points cannot separate it.
    Fitted,
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

/// Reason why nothing was fitted.
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
        /// The of its values.
        what: &'static str,
        /// Its value.
        got: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A parameter requested by name.
    #[error("{parameter} cannot be fitted: {reason}")]
    NotDetermined {
        /// The parameter.
        parameter: Parameter,
        /// The reason.
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
}

impl FittedPoint {
    /// How far the model is off, as a share of what was measured; negative when it is slower.
    pub fn error(&self) -> f64 {
        self.model_iops / self.point.iops - 1.0
    }
}

impl Fit {
    /// Mean and largest of the points' errors without their signs, of those that were used or of
    /// those that were not; `None` if there are none.
    pub fn errors(&self, used: bool) -> Option<(f64, f64)> {
        let errors: Vec<f64> =
            self.points.iter().filter(|point| point.is_used == used).map(|point| point.error().abs()).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let largest = errors.iter().copied().fold(0.0, f64::max);
        (!errors.is_empty()).then_some((mean, largest))
    }
}

impl ClosedLoad {
    /// Maximum commands in flight.
    pub const DEPTH_MAX: u32 = 4096;
    /// Largest command.
    pub const BYTES_MAX: Bytes = Bytes::kib(16 << 10);

    /// Returns whether it writes.
    pub fn writes(&self) -> bool {
        self.read_share < 1.0
    }
    /// Returns whether it reads.
    pub fn reads(&self) -> bool {
        self.read_share > 0.0
    }
}

/// Fits a drive. The same request always gives the same answer.
pub fn fit(request: &FitRequest) -> Result<Fit, FitError> {
    check(request)?;
    let mut attempt = Attempt::new(request)?;
    let best = attempt.settle()?;
    attempt.finish(best)
}

/// How often each point of a load is answered by this drive: what [`fit`] compares with a
/// measurement.
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
    /// Why the points do not depend on a parameter at all.
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
/// A drive and how well it does on the points that are used.
#[derive(Clone, Debug)]
struct Best {
    config: SolidStateConfig,
    /// Sum of the squares of ln(model / measured), in units of the points' errors.
    squares: f64,
}
