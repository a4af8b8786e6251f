//! `rackweave rack status`: what runs, and how.

use super::process::{Started, Usage};
use super::{Kind, Role, Site, page, up};
use crate::describe::print_json;
use crate::failure::{Failure, print};
use base::Bytes;
use comfy_table::{ContentArrangement, Table, presets::NOTHING};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers shown of a role whose important ones are not known.
const NUMBERS_SHOWN_MAX: usize = 4;

/// What a role does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It serves.
    Ready,
    /// It runs, and is not ready yet.
    Starting,
    /// It was ready and runs, and does not answer where its health is.
    Silent,
    /// It was started and has ended by itself.
    Dead,
    /// It was never started, or was ended by `down`.
    NotStarted,
}

impl State {
    pub fn words(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Starting => "starting",
            State::Silent => "silent",
            State::Dead => "dead",
            State::NotStarted => "not started",
        }
    }
}

/// A role at this moment.
#[derive(Serialize)]
pub struct Report {
    pub role: String,
    kind: &'static str,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_unix_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    pub metrics: BTreeMap<String, f64>,
    /// What is wrong with its own file now.
    #[serde(skip)]
    pub broken: Option<String>,
    #[serde(skip)]
    shown: String,
}

/// Shows the chosen roles. It fails unless all of them are ready.
pub fn status(site: &Site, only: &[String], json: bool) -> Result<(), Failure> {
    let reports = reports(site, only)?;
    if json { print_json(&reports) } else { print(&shown(&reports)) }?;
    let late: Vec<&str> = reports.iter().filter(|one| one.state != State::Ready).map(|one| one.role.as_str()).collect();
    let all = reports.len();
    match late.len() {
        0 => Ok(()),
        count => Err(Failure::NotReady(format!("not ready are {count} of {all} roles: {}", late.join(", ")))),
    }
}

/// The chosen roles at this moment.
pub fn reports(site: &Site, only: &[String]) -> Result<Vec<Report>, Failure> {
    site.chosen(only)?.iter().map(|role| report(site, role)).collect()
}

/// The state of a role by its process, its health where that is served, and its log elsewhere.
pub fn state_of(site: &Site, role: &Role) -> Result<State, Failure> {
    let Some(started) = site.started(&role.name)? else { return Ok(State::NotStarted) };
    if !started.is_alive() {
        return Ok(State::Dead);
    }
    let has_said_ready = || up::has_said_ready(&site.log(&role.name), started.log_begin);
    Ok(match &role.metrics {
        Some(address) if page::is_healthy(address) => State::Ready,
        Some(_) if has_said_ready() => State::Silent,
        None if has_said_ready() => State::Ready,
        _ => State::Starting,
    })
}

fn report(site: &Site, role: &Role) -> Result<Report, Failure> {
    let mut role = role.clone();
    // A file that was broken since does not hide whether the role runs.
    let broken = role.complete().err().map(|error| error.to_string());
    let state = state_of(site, &role)?;
    let is_running = !matches!(state, State::Dead | State::NotStarted);
    let started = site.started(&role.name)?.filter(|_| is_running);
    let usage = started.as_ref().and_then(Started::usage);
    let page = role.metrics.as_ref().filter(|_| is_running);
    let metrics = page.and_then(|address| page::metrics(address)).unwrap_or_default();
    let shown = match (&broken, is_running) {
        (Some(error), _) => error.clone(),
        (None, true) if role.metrics.is_none() => "serves no metrics".into(),
        (None, _) => told(role.kind, &metrics),
    };
    Ok(Report {
        kind: role.kind.word(),
        role: role.name,
        state,
        pid: started.map(|started| started.pid),
        since_unix_s: usage.map(|usage| usage.since_s),
        cpu_s: usage.map(|usage| usage.cpu_s),
        memory_bytes: usage.map(|usage: Usage| usage.memory_bytes),
        metrics,
        broken,
        shown,
    })
}

/// What is most worth to know of a role's metrics.
fn told(kind: Kind, metrics: &BTreeMap<String, f64>) -> String {
    let (prefix, names): (&str, &[&str]) = match kind {
        Kind::Store => ("rackweave_kv_", &["keys", "commands", "hits", "misses"]),
        Kind::Jbof => ("rackweave_jbof_", &["keys", "doors", "requests", "verbs"]),
        Kind::Door | Kind::Target => ("rackweave_target_", &["connections", "commands", "reads", "writes"]),
        Kind::Storage => ("rackweave_storage_", &["collecting", "reads", "writes", "redirected"]),
        Kind::Switch => ("rackweave_switch_", &[]),
        Kind::Control => ("rackweave_control_", &[]),
    };
    let value = |name: &str| {
        let (gauge, counter) = (format!("{prefix}{name}"), format!("{prefix}{name}_total"));
        metrics.get(&gauge).or_else(|| metrics.get(&counter))
    };
    let known = names.iter().filter_map(|name| Some(format!("{name} {}", value(name)?)));
    let own = |(name, value): (&String, &f64)| {
        let name = name.strip_prefix(prefix)?;
        Some(format!("{} {value}", name.strip_suffix("_total").unwrap_or(name)))
    };
    let all: Vec<String> = match names {
        [] => metrics.iter().filter_map(own).take(NUMBERS_SHOWN_MAX).collect(),
        _ => known.collect(),
    };
    all.join(", ")
}

fn shown(reports: &[Report]) -> String {
    let mut table = table(["role", "state", "process", "since", "CPU s", "memory", "metrics"]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    for one in reports {
        let text = |value: Option<String>| value.unwrap_or_default();
        table.add_row([
            one.role.clone(),
            one.state.words().into(),
            text(one.pid.map(|pid| pid.to_string())),
            text(one.since_unix_s.map(|since| ago(now.saturating_sub(since)))),
            text(one.cpu_s.map(|seconds| format!("{seconds:.2}"))),
            text(one.memory_bytes.map(|bytes| Bytes::new(bytes >> 20 << 20).to_string())),
            one.shown.clone(),
        ]);
    }
    format!("{table}\n")
}

/// A table of the house, with this head.
pub fn table<const N: usize>(head: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(head);
    table
}

/// A time in its two largest units.
pub fn ago(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units() {
        let times = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 200_000].map(ago);
        let wanted = ["0 s", "59 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "23 h 59 min", "1 d 0 h", "2 d 7 h"];
        assert_eq!(times, wanted);
    }

    #[test]
    fn what_is_known_is_shown_and_of_others_the_first() {
        let metrics =
            |names: &[&str]| names.iter().zip(1..).map(|(name, value)| ((*name).into(), value.into())).collect();
        let storage = metrics(&["rackweave_storage_reads_total", "rackweave_storage_collecting", "other_reads_total"]);
        assert_eq!(told(Kind::Storage, &storage), "collecting 2, reads 1");
        let switch = metrics(&["rackweave_switch_a_total", "rackweave_switch_b", "process_c", "rackweave_switch_d"]);
        assert_eq!(told(Kind::Switch, &switch), "a 1, b 2, d 4");
        assert_eq!(told(Kind::Door, &BTreeMap::new()), "");
    }
}
