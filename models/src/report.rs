//! What was explored: a line of progress each, and a table at the end.

use anyhow::bail;
use base::Seed;
use comfy_table::{Table, presets};
use models::catalog::{Case, Large};
use models::explore::{Outcome, explore, explore_reduced};
use models::programs::{self, SETTINGS, Tally};
use models::sweep;
use models::variant::Variant;
use std::time::Instant;

/// States, counted as often as they are reached, after which a large scenario counts as not
/// finished: ours, ten times what the largest takes.
const STATES_MAX: usize = 1_000_000_000;

/// What has come out so far.
pub struct Report {
    table: Table,
    prints_traces: bool,
    surprises: Vec<String>,
}

impl Report {
    /// Nothing yet. Traces of what must not happen are printed in any case.
    pub fn new(prints_traces: bool) -> Report {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["variant", "scenario", "states", "seconds", "verdict"]);
        Report { table, prints_traces, surprises: Vec::new() }
    }

    /// The case, and ours in the same scenario; the whole space, so that traces are shortest.
    pub fn explore_case(&mut self, case: Case) {
        let what = case.variant.flaw.map_or("as written".to_owned(), |flaw| format!("{flaw:?}"));
        self.run(case.name, &what, case.fault.is_some(), || explore(case.variant, case.scenario.clone(), None));
        self.run("ours", &format!("of {}", case.name), false, || explore(Variant::OURS, case.scenario, None));
    }

    /// Ours in large company, in the reduced space.
    pub fn explore_large(&mut self, large: Large) {
        self.run("ours", large.name, false, || explore_reduced(Variant::OURS, large.scenario, Some(STATES_MAX)));
    }

    /// Ours in random company, in the reduced space: one line for all that is clean.
    pub fn sweep(&mut self, seed: Seed, scenarios: u64) {
        let began = Instant::now();
        let mut states = 0;
        for number in 0..scenarios {
            let outcome = explore_reduced(Variant::OURS, sweep::scenario(seed, number), Some(STATES_MAX));
            states += outcome.states;
            if !outcome.is_whole {
                self.add("ours", &format!("random scenario {number}"), began, outcome, false);
            }
        }
        if scenarios > 0 {
            let outcome = Outcome { states, is_whole: true, trace: None };
            self.add("ours", &format!("{scenarios} random scenarios, but for those above"), began, outcome, false);
        }
    }

    /// The programs themselves in random worlds of each sort.
    pub fn play(&mut self, worlds: u64) {
        for setting in SETTINGS.iter().filter(|_| worlds > 0) {
            let began = Instant::now();
            let Tally { wrong, operations, crashes, hits, .. } = programs::explore(setting, 0..worlds);
            if wrong.is_some() != setting.is_flawed {
                self.surprises.push(format!("programs ({}): {wrong:?}", setting.name));
            }
            let seconds = format!("{:.1}", began.elapsed().as_secs_f64());
            let found = if wrong.is_some() { "caught" } else { "clean" };
            let verdict = format!("{found} after {operations} operations, {hits} hits, {crashes} crashes");
            eprintln!("programs ({}): {seconds} s, {verdict}", setting.name);
            self.table.add_row(["programs", setting.name, "", &seconds, &verdict]);
        }
    }

    fn run(&mut self, variant: &str, scenario: &str, is_flawed: bool, explore: impl FnOnce() -> Outcome) {
        let began = Instant::now();
        let outcome = explore();
        self.add(variant, scenario, began, outcome, is_flawed);
    }

    fn add(&mut self, variant: &str, scenario: &str, began: Instant, outcome: Outcome, is_flawed: bool) {
        let verdict = verdict(&outcome);
        if outcome.trace.is_some() != is_flawed || !is_flawed && !outcome.is_whole {
            self.surprises.push(format!("{variant} ({scenario}): {verdict}"));
        }
        let seconds = format!("{:.1}", began.elapsed().as_secs_f64());
        let states = outcome.states.to_string();
        eprintln!("{variant} ({scenario}): {states} states, {seconds} s, {} MB at most so far, {verdict}", peak_mb());
        self.table.add_row([variant, scenario, &states, &seconds, &verdict]);
        if let Some(trace) = outcome.trace.filter(|_| self.prints_traces || !is_flawed) {
            println!("{variant} ({scenario})\n{trace}\n");
        }
    }

    /// Prints the table; fails if anything came out otherwise than it must.
    pub fn finish(self) -> anyhow::Result<()> {
        println!("{}", self.table);
        if !self.surprises.is_empty() {
            bail!("came out otherwise than it must: {}", self.surprises.join("; "));
        }
        Ok(())
    }
}

fn verdict(outcome: &Outcome) -> String {
    match &outcome.trace {
        Some(trace) => trace.fault().map_or(String::new(), |fault| format!("{fault} (after {} steps)", trace.steps())),
        None if outcome.is_whole => "clean, all states seen".to_owned(),
        None => "not finished".to_owned(),
    }
}

/// Memory of this process at its fullest, as Linux counts it; elsewhere a dash.
fn peak_mb() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map_or("-".to_owned(), |kilobytes| (kilobytes / 1024).to_string())
}
