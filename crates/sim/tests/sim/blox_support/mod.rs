//! Helpers of the tests of RackBlox's rig. The rack is so small that a drive has no free blocks
//! after a thousand writes. A run has a bound, its rows add up, and its history is linearizable.
#![allow(dead_code, reason = "each test binary uses a part")]

use base::{Span, Time};
use plan::blox::Blox;
use plan::{Files, NoFiles, Plan, Scene};
use record::{Outcome, Row};
use sim::drive::{Flow, Observer, Outcomes, Progress};
use sim::{RunOptions, run};

/// A volume of 16 MiB on two servers, on flash of 128 blocks of 128 KiB each, and clients without a
/// network before them.
pub const SMALL: &str = r#"
title = "small"
seed = 1
[design]
name = "rackblox"
[rack]
servers = 2
clients = 2
network = "none"
remote_replica = false
[emulate]
mode = "delay"
[flash]
pages_per_block = 8
[vssd]
per_ssd = 1
capacity = "16MiB"
write_cache = "256KiB"
[collection]
check_period = "4ms"
grain = "die"
background_below = 0.38
[io]
addresses = "uniform"
check_history = true
[run]
requests = 1500
warm_up = "0ns"
"#;

/// Two volumes on three servers, and a third replica of each elsewhere.
pub const THREE_REPLICAS: [(&str, &str); 3] =
    [("rack.remote_replica", "true"), ("rack.servers", "4"), ("rack.clients", "3")];

/// No run of these tests needs as many events. One that does goes round in circles.
const EVENTS_MAX: u64 = 20_000_000;

/// A change of [`SMALL`]: a key path and its value in TOML.
pub type Change<'a> = (&'a str, &'a str);

/// [`SMALL`] with changes.
pub fn plan(changes: &[Change<'_>]) -> Plan {
    plan_with("", changes)
}

/// [`SMALL`] with more tables behind it, and changes.
pub fn plan_with(tables: &str, changes: &[Change<'_>]) -> Plan {
    plan_from(&NoFiles, tables, changes)
}

/// The same, with files that it refers to.
pub fn plan_from(files: &dyn Files, tables: &str, changes: &[Change<'_>]) -> Plan {
    plan_of(&format!("{SMALL}{tables}"), files, changes)
}

/// How many random cases a property has: as many as `PROPTEST_CASES` says, or as many as usual.
pub fn cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.map_or(usual, |text| text.parse().unwrap_or_else(|error| panic!("PROPTEST_CASES is {text:?}: {error}")))
}

/// A whole file with changes.
pub fn plan_of(text: &str, files: &dyn Files, changes: &[Change<'_>]) -> Plan {
    let changes: Vec<(String, String)> =
        changes.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let experiment = plan::parse("small.toml", text, files, &changes);
    let experiment = experiment.unwrap_or_else(|errors| panic!("{errors}\n{text}{changes:?}"));
    experiment.points(None).remove(0).plan
}

/// The rack of a plan.
pub fn rack(plan: &Plan) -> &Blox {
    let Scene::Blox(blox) = &plan.scene else { panic!("{:?}", plan.scene) };
    blox
}

/// A run and what came of it.
pub struct Played {
    pub rows: Vec<Row>,
    pub outcomes: Outcomes,
}

/// Plays a plan; each of its requests ends in one row or is counted, and replicas have agreed.
pub fn play(plan: &Plan) -> Played {
    play_with(plan, false)
}

/// The same, with every packet encoded and decoded on its way if `wire_check`.
pub fn play_with(plan: &Plan, wire_check: bool) -> Played {
    let options = RunOptions { wire_check, ..RunOptions::default() };
    let mut rows = Vec::new();
    let outcomes = run(plan, &options, &mut rows, &mut Bound);
    let played = Played { rows, outcomes: outcomes.unwrap_or_else(|error| panic!("{error}\n{}", plan.to_toml())) };
    played.check(plan);
    played
}

/// [`SMALL`] with changes, played.
pub fn played(changes: &[Change<'_>]) -> Played {
    play(&plan(changes))
}

struct Bound;

impl Observer for Bound {
    fn progress(&mut self, progress: &Progress) -> Flow {
        assert!(progress.events < EVENTS_MAX, "no end after {progress:?}");
        Flow::Continue
    }
}

impl Played {
    fn check(&self, plan: &Plan) {
        let counts = self.outcomes.summary.counts;
        let ended = counts.finished
            + counts.timed_out
            + counts.rejected
            + counts.lost
            + counts.unavailable
            + counts.in_flight_at_end;
        assert_eq!((counts.offered, self.rows.len() as u64), (ended, ended), "{}", plan.to_toml());
        let mut requests: Vec<u64> = self.rows.iter().map(|row| row.request.0).collect();
        requests.sort_unstable();
        assert!(requests.iter().copied().eq(0..ended), "every request has one row");
        self.rows.iter().for_each(|row| assert!(row.adds_up() && row.start >= row.intended, "{row:?}"));
        // While the tables are being filled a server may ask about what they do not have yet.
        let is_calm = rack(plan).faults.is_empty() && rack(plan).collection.check_period > Span::us(100);
        if is_calm && rack(plan).rack.recirculation < Span::us(100) {
            assert_eq!(self.metric("switch_malformed_packets"), 0.0, "{}", plan.to_toml());
        }
        if rack(plan).check_history {
            let warnings = &self.outcomes.summary.warnings;
            assert_eq!(self.metric("history_violations"), 0.0, "{warnings:#?}\n{}", plan.to_toml());
            assert!(counts.finished == 0 || self.metric("history_operations") > 0.0);
        }
    }

    /// What only this rig counts.
    pub fn metric(&self, name: &str) -> f64 {
        let metrics = &self.outcomes.summary.metrics;
        *metrics.get(name).unwrap_or_else(|| panic!("{name} is not among {:?}", metrics.keys()))
    }

    /// How many requests ended so.
    pub fn ended(&self, outcome: Outcome) -> usize {
        self.rows.iter().filter(|row| row.outcome == outcome).count()
    }

    /// Fails unless every request was answered.
    pub fn all_finished(self) -> Played {
        let counts = self.outcomes.summary.counts;
        assert_eq!(counts.finished, counts.offered, "{counts:?} {:#?}", self.outcomes.summary.metrics);
        self
    }

    /// Mean latency of the rows that `picks` picks.
    pub fn mean(&self, picks: impl Fn(&Row) -> bool) -> Span {
        let picked: Vec<Span> = self.rows.iter().filter(|row| picks(row)).map(Row::latency).collect();
        assert!(!picked.is_empty(), "no row is picked");
        picked.iter().copied().sum::<Span>() / picked.len() as u64
    }

    /// When the run ended.
    pub fn ends(&self) -> Time {
        self.rows.iter().map(|row| row.end).max().unwrap_or(Time::ZERO)
    }

    /// All rows as bytes, as a file would have them.
    pub fn bytes(&self) -> String {
        format!("{:?}", self.rows)
    }
}
