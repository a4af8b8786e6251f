//! Estimates of the time, memory and disk of runs.

use crate::console::Console;
use crate::failure::{Failure, bad_input};
use crate::play::{Task, requests_of};
use crate::progress::work;
use plan::{Plan, Scene, SeriesEstimate, san::Estimate};

/// A row of the records, packed.
pub const ROW_BYTES: f64 = 30.0;
/// A value of a series, packed.
const SERIES_ROW_BYTES: f64 = 4.0;
/// What takes less of a core, or of a disk, is not told of.
const LONG_SECONDS: f64 = 10.0;
const LARGE_BYTES: f64 = 1e9;

/// What runs may take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Time of one core, seconds.
    pub seconds: f64,
    /// The most memory of one run, bytes; zero where no formula is known.
    memory: f64,
    /// Records, bytes.
    disk: f64,
}

impl Cost {
    /// Of all seeds of some points.
    pub fn of<'a>(points: impl IntoIterator<Item = (&'a plan::Point, &'a [u64])>, keeps_rows: bool) -> Cost {
        let mut cost = Cost::default();
        for (point, seeds) in points {
            cost.seconds += seconds_of(&point.plan) * seeds.len() as f64;
            cost.memory = cost.memory.max(of(&point.plan).map_or(0.0, |estimate| estimate.bytes));
            cost.disk += if keeps_rows { requests_of(point, seeds) as f64 * ROW_BYTES } else { 0.0 };
        }
        cost
    }

    fn of_tasks<'a>(tasks: impl IntoIterator<Item = &'a Task>, keeps_rows: bool) -> Cost {
        Cost::of(tasks.into_iter().map(|task| (&task.point, &task.seeds[..])), keeps_rows)
    }
}

/// Says what tasks may take, if that is much.
pub fn announce<'a>(tasks: impl IntoIterator<Item = &'a Task>, keeps_rows: bool, console: &dyn Console) {
    let cost = Cost::of_tasks(tasks, keeps_rows);
    if cost.seconds < LONG_SECONDS && cost.disk < LARGE_BYTES {
        return;
    }
    let memory = if cost.memory > 0.0 { format!(", {} of memory a run", bytes(cost.memory)) } else { String::new() };
    let disk = if cost.disk > 0.0 { format!(", {} of records", bytes(cost.disk)) } else { String::new() };
    console.say(&format!("estimate: about {} of a core{memory}{disk}", seconds(cost.seconds)));
}

/// Time of a core for one seed; zero where only the duration is known.
fn seconds_of(plan: &Plan) -> f64 {
    if let Some(estimate) = of(plan) {
        return estimate.seconds;
    }
    // Fitted to the shipped experiments at quick scale, on a core of a server of 2024: within a
    // factor of two of most that take seconds. Points with a duration alone count nothing.
    let a_unit = match plan.scene {
        Scene::Messages(_) => 2.5e-6,
        Scene::Blox(_) | Scene::SDirect(_) => 1.1e-6,
        Scene::Scalio(_) => 2.1e-6,
        Scene::San(_) | Scene::Wear(_) => 1.0e-6,
    };
    work(plan).unwrap_or(0) as f64 * a_unit
}

/// What a run of a plan may take, where there is a formula for it: SANs and series have one.
pub fn texts(plan: &Plan) -> Vec<String> {
    let whole = of(plan).map(|Estimate { bytes: memory, seconds: time, .. }| {
        format!("estimate: about {} of memory and {} of a core", bytes(memory), seconds(time))
    });
    let series = plan.series_estimate().map(|SeriesEstimate { samples, values }| {
        let disk = bytes(values as f64 * SERIES_ROW_BYTES);
        format!("estimate: about {values} values of series in {samples} samples, {disk}")
    });
    whole.into_iter().chain(series).collect()
}

/// Refuses a run that would not find the memory that it may take.
pub fn refuse_too_large(plan: &Plan) -> Result<(), Failure> {
    let (Some(estimate), Some(available)) = (of(plan), available()) else { return Ok(()) };
    if estimate.bytes <= available {
        return Ok(());
    }
    let (needed, there) = (bytes(estimate.bytes), bytes(available));
    Err(bad_input(format!(
        "the estimate is {needed} of memory, and {there} are available; reduce the nodes, or give --long"
    )))
}

fn of(plan: &Plan) -> Option<Estimate> {
    plan.san()?.estimate()
}

/// Memory that may be had without swapping, bytes; `None` where the system does not say it as Linux
/// does.
fn available() -> Option<f64> {
    available_of(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available_of(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kibibytes| kibibytes * 1024.0)
}

/// With two digits: no more of an estimate means anything.
fn bytes(bytes: f64) -> String {
    if bytes < 1e9 { format!("{} MB", two_digits(bytes / 1e6)) } else { format!("{:.1} GB", bytes / 1e9) }
}

/// With two digits, for people.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => "less than a second".into(),
        some if some < 600.0 => format!("{} s", two_digits(some)),
        long if long < 36_000.0 => format!("{} min", two_digits(long / 60.0)),
        days => format!("{} h", two_digits(days / 3_600.0)),
    }
}

fn two_digits(number: f64) -> u64 {
    let unit = 10_f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
    ((number / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_have_two_digits() {
        assert_eq!([40e6, 394e6, 3.44e9].map(bytes), ["40 MB", "390 MB", "3.4 GB"]);
        let said = [0.2, 7.2, 394.0, 3_700.0, 1e6].map(seconds);
        assert_eq!(said, ["less than a second", "7 s", "390 s", "62 min", "280 h"]);
    }

    #[test]
    fn available_memory_is_what_linux_says() {
        assert_eq!(available_of("MemTotal:  9 kB\nMemAvailable:   2048 kB\n"), Some(2_097_152.0));
        assert_eq!(available_of("MemTotal:  9 kB\n"), None);
    }
}
