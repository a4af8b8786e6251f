//! Parameters that can be fitted: their places in a drive's configuration, and their steps.

use crate::ssd::drive::SolidStateConfig;
use base::{Rate, Span};
use serde::Serialize;
use std::fmt;

/// A free parameter of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parameter {
    /// Mean array time of a read; the kinds of pages keep their proportions.
    ArrayRead,
    /// Mean array time of a program; the kinds of pages keep their proportions.
    Program,
    /// The controller's time of a read, once a command. The host's own time is part of what fio
    /// measures, and so of this.
    ReadFirmware,
    /// The controller's time of a write, once a command, with the host's own.
    WriteFirmware,
    /// Data rate of a channel.
    Channel,
    /// Dies of a channel.
    Dies,
}

/// Firmware that takes no time has no scale to be moved on; this is it then. Ours.
const FIRMWARE_SCALE_PS: f64 = 1e6;
/// No rate is rounded to less than this many bits a second, and none to nothing.
const RATE_STEP: f64 = 1e5;
/// The counts of dies that are tried, beside the preset's own: what packages are stacked of.
const DIES: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

impl Parameter {
    /// All parameters; of two that cannot be separated, the earlier one is kept.
    pub const ALL: [Parameter; 6] = [
        Parameter::ArrayRead,
        Parameter::Program,
        Parameter::ReadFirmware,
        Parameter::WriteFirmware,
        Parameter::Channel,
        Parameter::Dies,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Parameter::ArrayRead => "array-read",
            Parameter::Program => "program",
            Parameter::ReadFirmware => "read-firmware",
            Parameter::WriteFirmware => "write-firmware",
            Parameter::Channel => "channel",
            Parameter::Dies => "dies",
        }
    }
    /// The parameter of a name.
    pub fn of_name(name: &str) -> Option<Parameter> {
        Parameter::ALL.into_iter().find(|parameter| parameter.name() == name)
    }
    /// What its values count.
    pub fn unit(self) -> &'static str {
        match self {
            Parameter::Channel => "MB/s",
            Parameter::Dies => "a channel",
            _ => "us",
        }
    }
    /// Its value in a drive, in [`unit`](Self::unit).
    pub fn value(self, config: &SolidStateConfig) -> f64 {
        let pages = config.timing.pages.iter();
        let kinds = config.timing.pages.len() as f64;
        let us = |ps: f64| ps / 1e6;
        match self {
            Parameter::ArrayRead => us(pages.map(|page| page.read.as_ps() as f64).sum::<f64>() / kinds),
            Parameter::Program => us(pages.map(|page| page.program.as_ps() as f64).sum::<f64>() / kinds),
            Parameter::ReadFirmware => us(config.firmware.read.command.as_ps() as f64),
            Parameter::WriteFirmware => us(config.firmware.write.command.as_ps() as f64),
            Parameter::Channel => config.timing.channel.as_bps() as f64 / 8e6,
            Parameter::Dies => f64::from(config.geometry.dies_per_channel),
        }
    }
    /// The drive with this parameter at `start`'s value times e to the `step`; of the channel it is
    /// the time of a byte that grows. The number of dies does not move so. Times are rounded to
    /// nanoseconds.
    pub(super) fn moved(self, config: &mut SolidStateConfig, start: &SolidStateConfig, step: f64) {
        let factor = step.exp();
        let kinds = config.timing.pages.iter_mut().zip(&start.timing.pages);
        match self {
            Parameter::ArrayRead => kinds.for_each(|(kind, from)| kind.read = array_time(from.read, factor)),
            Parameter::Program => kinds.for_each(|(kind, from)| kind.program = array_time(from.program, factor)),
            Parameter::ReadFirmware => {
                config.firmware.read.command = firmware(start.firmware.read.command, factor);
            }
            Parameter::WriteFirmware => {
                config.firmware.write.command = firmware(start.firmware.write.command, factor);
            }
            Parameter::Channel => {
                let rate = (start.timing.channel.as_bps() as f64 / factor / RATE_STEP).round().max(1.0) * RATE_STEP;
                config.timing.channel = Rate::bps(rate as u64);
            }
            Parameter::Dies => {}
        }
    }
    /// The step that [`moved`](Self::moved) took from `start` to `config`; none where both take no
    /// time.
    pub(super) fn step(self, config: &SolidStateConfig, start: &SolidStateConfig) -> f64 {
        if self.value(config) == 0.0 && self.value(start) == 0.0 {
            return 0.0;
        }
        let ratio = match self {
            Parameter::Channel => self.value(start) / self.value(config),
            Parameter::ReadFirmware | Parameter::WriteFirmware => {
                self.value(config).max(1e-3) / firmware_scale(self.value(start) * 1e6) * 1e6
            }
            _ => self.value(config) / self.value(start),
        };
        ratio.ln()
    }
    /// The drive with this parameter as another has it.
    pub(super) fn with_value_of(self, config: &SolidStateConfig, other: &SolidStateConfig) -> SolidStateConfig {
        let mut changed = config.clone();
        match self {
            Parameter::ArrayRead | Parameter::Program | Parameter::Channel => self.moved(&mut changed, other, 0.0),
            Parameter::ReadFirmware => changed.firmware.read.command = other.firmware.read.command,
            Parameter::WriteFirmware => changed.firmware.write.command = other.firmware.write.command,
            Parameter::Dies => changed.geometry.dies_per_channel = other.geometry.dies_per_channel,
        }
        changed
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The ladder of counts of dies, and a drive's position on it.
pub(super) fn ladder_of_dies(own: u32) -> (Vec<u32>, usize) {
    let mut ladder: Vec<u32> = DIES.into();
    let place = ladder.partition_point(|count| *count < own);
    if ladder.get(place) != Some(&own) {
        ladder.insert(place, own);
    }
    (ladder, place)
}

fn array_time(from: Span, factor: f64) -> Span {
    whole_ns(from.as_ps() as f64 * factor, 1.0)
}

fn firmware(from: Span, factor: f64) -> Span {
    whole_ns(firmware_scale(from.as_ps() as f64) * factor, 0.0)
}

fn firmware_scale(ps: f64) -> f64 {
    if ps > 0.0 { ps } else { FIRMWARE_SCALE_PS }
}

fn whole_ns(ps: f64, least: f64) -> Span {
    Span::ns((ps / 1e3).round().max(least) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssd::presets::samsung_970_pro;
    use base::Seed;

    #[test]
    fn every_parameter_has_a_name_by_which_it_is_found() {
        for parameter in Parameter::ALL {
            assert_eq!(Parameter::of_name(parameter.name()), Some(parameter));
        }
        assert_eq!(Parameter::of_name("erase"), None);
    }

    #[test]
    fn a_step_that_was_taken_is_found_again_and_can_be_taken_back() {
        let start = samsung_970_pro(Seed(1));
        for parameter in Parameter::ALL.into_iter().filter(|parameter| *parameter != Parameter::Dies) {
            let mut config = start.clone();
            parameter.moved(&mut config, &start, 0.4);
            assert!((parameter.step(&config, &start) - 0.4).abs() < 1e-3, "{parameter}");
            let back = parameter.with_value_of(&config, &start);
            assert!((parameter.value(&back) - parameter.value(&start)).abs() < 1e-9, "{parameter}");
        }
    }

    #[test]
    fn kinds_of_pages_keep_their_proportion_and_a_slower_channel_has_a_smaller_rate() {
        let start = samsung_970_pro(Seed(1));
        let mut config = start.clone();
        Parameter::ArrayRead.moved(&mut config, &start, 2f64.ln());
        Parameter::Channel.moved(&mut config, &start, 2f64.ln());
        let reads: Vec<Span> = config.timing.pages.iter().map(|page| page.read).collect();
        assert_eq!(reads, [Span::ns(59_520), Span::ns(83_520)]);
        assert_eq!(config.timing.channel, Rate::bps(400 * 8_000_000));
    }

    #[test]
    fn the_ladder_of_dies_has_the_drives_own_count() {
        assert_eq!(ladder_of_dies(8), (DIES.to_vec(), 5));
        assert_eq!(ladder_of_dies(5).0[..6], [1, 2, 3, 4, 5, 6]);
        assert_eq!(ladder_of_dies(100).0.last(), Some(&100));
    }
}
