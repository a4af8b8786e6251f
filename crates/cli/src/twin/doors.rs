//! Stores of a live rack and their simulation, side by side.

use super::compare::{Counter, Times};
use super::stores;
use crate::failure::{Failure, bad_input};
use base::{Seed, Span};
use kv::twin::{Answered, Journals, Model, Replayed, Request, Requests, Seen, Simulated, Told, simulate};
use plan::rack::Rack;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Counters that say what programs have decided.
const DECISIONS: [&str; 14] = [
    "hits",
    "misses",
    "bypasses",
    "fills",
    "evictions",
    "lost_races",
    "ties",
    "shared",
    "waits",
    "updates",
    "groups",
    "invalidations",
    "handed_over",
    "zones_reclaimed",
];

/// A JBOF with its doors, live and simulated.
#[derive(Serialize)]
pub struct Site {
    /// The JBOF, or the store that has it inside.
    pub name: String,
    /// None where a simulation is impossible.
    pub comparison: Option<Comparison>,
    /// Why it is.
    pub no_simulation: Option<String>,
    /// Steps of walks (SCAN), which are not simulated.
    pub walks: u64,
    /// What was around its programs; it has a file of its own.
    #[serde(skip)]
    pub model: Model,
}

/// Both sides.
#[derive(Serialize)]
pub struct Comparison {
    /// Operations that ended, live and simulated.
    pub requests: [u64; 2],
    /// Operations without an end, live and simulated.
    pub open: [u64; 2],
    /// Time by operation and span.
    pub times: Vec<Times>,
    /// Counters of programs, live and simulated.
    pub counters: Vec<Counter>,
}

/// The twin of all stores.
#[derive(Default)]
pub struct Stores {
    /// Each journal, replayed.
    pub roles: Vec<Replayed>,
    /// Each JBOF of which there are journals.
    pub sites: Vec<Site>,
    /// How far off times of one machine may be to those of another, in nanoseconds.
    pub clocks_within_ns: u64,
}

/// Nanoseconds; 0 where it is not known.
pub fn within_ns(within: Option<Span>) -> u64 {
    within.map_or(0, |within| within.as_ps() / 1_000)
}

/// Replays and simulates the stores of a rack, with the model of the run itself or of the journals
/// in `calibration`.
pub fn twin(
    rack: &Rack,
    file: &Path,
    folder: &Path,
    (calibration, seed): (Option<&Path>, Seed),
) -> Result<Stores, Failure> {
    let told = told(rack, file, folder)?;
    if told.replayed.is_empty() {
        return Ok(Stores::default());
    }
    let fitted = calibration.map(|folder| self::told(rack, file, folder)).transpose()?;
    let model = |place: usize| match &fitted {
        Some(fitted) => fitted.sites[place].model_for_another_run(),
        None => told.sites[place].model(),
    };
    let seen = told.sites.iter().enumerate().filter(|(_, seen)| seen.has_journals());
    let sites = seen.map(|(place, seen)| site(seen, &told.replayed, model(place), seed)).collect();
    Ok(Stores { sites, clocks_within_ns: within_ns(told.within), roles: told.replayed })
}

fn told(rack: &Rack, file: &Path, folder: &Path) -> Result<Told, Failure> {
    let names: Vec<&str> = rack.jbofs.iter().chain(&rack.stores).map(|role| &*role.name).collect();
    let wrong = |error: kv::twin::TwinError| bad_input(error.to_string());
    let journals = Journals::open(&names, folder).map_err(wrong)?;
    let sites = if journals.is_empty() { Vec::new() } else { stores::twin_sites(rack, file)? };
    journals.replay(&sites).map_err(wrong)
}

fn site(seen: &Seen, replayed: &[Replayed], model: Model, seed: Seed) -> Site {
    let (comparison, no_simulation) = match simulate(seen, &model, seed) {
        Ok(twin) => (Some(compared(seen, replayed, &twin)), None),
        Err(why) => (None, Some(why)),
    };
    Site { name: seen.site.jbof.clone(), comparison, no_simulation, walks: seen.walks(), model }
}

fn compared(seen: &Seen, replayed: &[Replayed], twin: &Simulated) -> Comparison {
    let both = [&seen.requests, &twin.requests];
    let mut times = Vec::new();
    let [live, simulated] = both.map(sorted_times);
    for ((operation, span), live) in live {
        let twin = simulated.get(&(operation, span));
        times.extend(twin.map(|twin| Times::of(operation, span, &[live, twin.clone()])));
    }
    let live: BTreeMap<&str, &BTreeMap<String, u64>> =
        replayed.iter().map(|role| (&*role.name, &role.numbers)).collect();
    let mut counters = Vec::new();
    for (role, numbers) in &twin.numbers {
        for name in DECISIONS {
            let value = |of: Option<&BTreeMap<String, u64>>| of.and_then(|its| its.get(name)).copied().unwrap_or(0);
            let [live, twin] = [value(live.get(&**role).copied()), value(Some(numbers))];
            if live > 0 || twin > 0 {
                counters.push(Counter { role: role.clone(), name: name.into(), live, twin });
            }
        }
    }
    let requests = both.map(|requests| requests.all().len() as u64);
    Comparison { requests, open: both.map(Requests::open), times, counters }
}

/// Operations by how they were answered, and spans, in the order of the table.
type Sorted = BTreeMap<(&'static str, &'static str), Vec<u64>>;

/// The rising times of each operation and span, in nanoseconds.
fn sorted_times(requests: &Requests) -> Sorted {
    type Part = fn(&Request) -> Option<Span>;
    const PARTS: [(&str, Part); 6] = [
        ("total", |request| Some(request.total())),
        ("verbs", |request| (request.answered != Answered::Helper).then_some(request.verbs)),
        ("flash", |request| (request.answered == Answered::Flash).then_some(request.flash)),
        ("to the helper", |request| request.helper.map(|parts| parts[0])),
        ("in the helper", |request| request.helper.map(|parts| parts[1])),
        ("back", |request| request.helper.map(|parts| parts[2])),
    ];
    let mut sorted = Sorted::new();
    for request in requests.all() {
        let operation = match request.answered {
            Answered::Slot => "GETs from slots",
            Answered::Flash => "GETs from flash",
            Answered::Helper => "updates",
        };
        for (span, part) in PARTS {
            let time = part(request).map(|time| time.as_ps() / 1_000);
            if let Some(time) = time {
                sorted.entry((operation, span)).or_default().push(time);
            }
        }
    }
    sorted.values_mut().for_each(|times| times.sort_unstable());
    sorted
}
