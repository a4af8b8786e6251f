//! Bringing a drive into the state in which it is to be measured, without taking time, and checking
//! that it got there.

use super::report::amplification;
use super::{DriveError, SolidState};
use crate::ssd::ftl::{FtlError, Wear};
use crate::ssd::sdf::SdfError;
use base::Stream;

/// What a drive shall hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precondition {
    /// The share of the drive that holds data, from its begin: 0 to 1.
    pub fill: f64,
    /// How the data came there.
    pub pattern: Pattern,
}

/// How data came onto a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Written once, in order. (A clean drive is one of which nothing is filled.)
    Sequential,
    /// Written once in order and then overwritten at random, until write amplification is steady.
    Fragmented(Steady),
}

/// When write amplification counts as steady: when its values over some windows of writes lie close
/// together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Overwrites of a window, as a share of the filled units.
    pub window: f64,
    /// Windows that are compared, at least 2.
    pub windows: u32,
    /// Largest difference between two of them, as a share of their mean.
    pub tolerance: f64,
    /// Windows after which it is an error that they do not agree.
    pub windows_max: u32,
}

/// The result of the preparation.
#[derive(Clone, Debug, PartialEq)]
pub struct PreconditionReport {
    /// Units that hold data.
    pub filled_units: u64,
    /// Units that were written, the first filling included.
    pub written_units: u64,
    /// Write amplification of each window.
    pub windows: Vec<f64>,
    /// Erase counts.
    pub wear: Wear,
}

/// Reason why the state was not reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreconditionError {
    /// More than the drive holds, or less than nothing.
    #[error("filled to {fill}, and a share of 0 to 1 of the drive's {units} units is needed")]
    Fill {
        /// The rejected value.
        fill: f64,
        /// What the drive has.
        units: u64,
    },
    /// Numbers that can never be steady.
    #[error(
        "windows of {window} of the filled units, {windows} compared within {tolerance}, at most {windows_max}: needed are a share above 0, at least 2, a tolerance above 0, and not fewer in all"
    )]
    Windows {
        /// Share of the filled units.
        window: f64,
        /// Windows compared.
        windows: u32,
        /// Their largest difference.
        tolerance: f64,
        /// Windows at most.
        windows_max: u32,
    },
    /// The windows ended before write amplification agreed.
    #[error(
        "write amplification is not steady after {windows} windows: the last {compared} lie between {least:.3} and {most:.3}, and their difference may be {tolerance} of their mean"
    )]
    NotSteady {
        /// Windows written.
        windows: u32,
        /// Windows compared.
        compared: u32,
        /// The least of those.
        least: f64,
        /// The largest.
        most: f64,
        /// The allowed range.
        tolerance: f64,
    },
    /// The drive could not take the data: worn out.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// A region could not.
    #[error(transparent)]
    Region(#[from] SdfError),
}

impl SolidState {
    /// Brings the drive into a state and resets its report. No operation is in flight, the buffer
    /// is empty, and no time passes. Always terminates: at the latest after the windows of
    /// [`Steady::windows_max`].
    pub fn precondition(&mut self, state: Precondition) -> Result<PreconditionReport, PreconditionError> {
        let units = self.logical_units;
        if !(0.0..=1.0).contains(&state.fill) {
            return Err(PreconditionError::Fill { fill: state.fill, units });
        }
        if let Pattern::Fragmented(steady) = state.pattern {
            steady.check()?;
        }
        self.rest();
        let filled_units = (units as f64 * state.fill) as u64;
        let before = self.volume.layer.counters().host_units;
        let windows = self.fill(filled_units, state.pattern)?;
        self.volume.settle();
        self.restart_report();
        Ok(PreconditionReport {
            filled_units,
            written_units: self.volume.layer.counters().host_units - before,
            windows,
            wear: self.volume.layer.wear(),
        })
    }

    fn fill(&mut self, units: u64, pattern: Pattern) -> Result<Vec<f64>, PreconditionError> {
        for unit in units..self.logical_units {
            self.volume.layer.trim(unit);
        }
        for unit in 0..units {
            self.write_untimed(unit)?;
        }
        match pattern {
            Pattern::Fragmented(steady) if units > 0 => self.fragment(units, steady),
            _ => Ok(Vec::new()),
        }
    }
    fn fragment(&mut self, units: u64, steady: Steady) -> Result<Vec<f64>, PreconditionError> {
        let mut stream = self.config.seed.stream("ssd/precondition");
        let window = ((units as f64 * steady.window) as u64).max(1);
        let mut values = Vec::new();
        self.use_up(units, &mut stream)?;
        for _ in 0..steady.windows_max {
            values.push(self.overwrite(units, window, &mut stream)?);
            if steady.is_reached(&values) {
                return Ok(values);
            }
        }
        Err(steady.missed(&values))
    }
    /// Overwrites until there is something to collect: before that write amplification is steady at
    /// 1 and says nothing.
    fn use_up(&mut self, units: u64, stream: &mut Stream) -> Result<(), DriveError> {
        let erases = self.volume.layer.counters().erases;
        // A number of overwrites equal to the number of units fills every block.
        for _ in 0..self.config.geometry.units() {
            if self.volume.layer.counters().erases > erases {
                break;
            }
            self.write_untimed(stream.below(units))?;
        }
        Ok(())
    }
    /// Overwrites units at random and returns the write amplification of that.
    fn overwrite(&mut self, units: u64, count: u64, stream: &mut Stream) -> Result<f64, PreconditionError> {
        let before = self.volume.layer.counters();
        for _ in 0..count {
            self.write_untimed(stream.below(units))?;
        }
        Ok(amplification(&before, &self.volume.layer.counters()).expect("a window writes at least one unit"))
    }
    fn write_untimed(&mut self, unit: u64) -> Result<(), DriveError> {
        loop {
            match self.volume.layer.write(unit) {
                Ok(written) => {
                    if let Some(page) = written.program {
                        let die = self.config.geometry.die_of(page.block);
                        self.collector.host_programs_untimed(die, &mut self.volume);
                    }
                    return Ok(());
                }
                Err(FtlError::NoFreeBlock) if self.volume.collect_untimed(None) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    /// Lets everything that is underway be done.
    fn rest(&mut self) {
        self.volume.settle();
        self.volume.layer.pad();
        self.collector.rest();
        self.buffer.rest();
    }
}

impl Steady {
    pub(in crate::ssd) fn check(&self) -> Result<(), PreconditionError> {
        let Steady { window, windows, tolerance, windows_max } = *self;
        // Not a number is above nothing.
        let is_sound = window > 0.0 && window.is_finite() && tolerance > 0.0 && windows >= 2 && windows_max >= windows;
        if is_sound { Ok(()) } else { Err(PreconditionError::Windows { window, windows, tolerance, windows_max }) }
    }
    pub(in crate::ssd) fn is_reached(&self, values: &[f64]) -> bool {
        let Some(start) = values.len().checked_sub(self.windows as usize) else { return false };
        let compared = &values[start..];
        let (least, most) = range(compared);
        let mean = compared.iter().sum::<f64>() / compared.len() as f64;
        most - least <= self.tolerance * mean
    }
    pub(in crate::ssd) fn missed(&self, values: &[f64]) -> PreconditionError {
        let (least, most) = range(&values[values.len() - self.windows as usize..]);
        PreconditionError::NotSteady {
            windows: self.windows_max,
            compared: self.windows,
            least,
            most,
            tolerance: self.tolerance,
        }
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)))
}
