//! `models`: explores Scalio's cache protocol, tells what is wrong with a variant of it, and keeps the traces of the page about it.

use anyhow::{Context, bail};
use base::Seed;
use clap::{Parser, ValueEnum};
use comfy_table::{Table, presets};
use models::catalog::{self, Case};
use models::explore::{Outcome, explore};
use models::variant::Variant;
use models::{page, sweep};
use std::io::Read;

/// Explores Scalio's cache protocol and every broken variant of it. Ends with 1 if anything comes out otherwise than it must.
#[derive(Parser)]
struct Arguments {
    /// Only this case (H1 to H18, paper, paper-H2 ...).
    #[arg(long)]
    variant: Option<String>,
    /// Prints the execution that goes wrong.
    #[arg(long)]
    trace: bool,
    /// `large` explores ours in larger company too: millions of states, minutes in release.
    #[arg(long, value_enum, default_value_t = Size::Small)]
    size: Size,
    /// Explores ours in so many random scenarios as well, each up to a million states.
    #[arg(long, default_value_t = 0)]
    sweep: u64,
    /// Which random scenarios.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Reads a page, and writes it with its traces as they are now.
    #[arg(long)]
    page: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    Small,
    Large,
}

/// Of a random scenario; most are much smaller.
const SWEEP_STATES_MAX: usize = 1_000_000;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.page {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read the page")?;
        print!("{}", page::refresh(&text)?);
        return Ok(());
    }
    let mut report = Report::new(arguments.trace);
    for case in selected(arguments.variant.as_deref())? {
        report.explore_case(case);
    }
    if arguments.size == Size::Large {
        for (name, scenario) in catalog::large() {
            let at = std::time::Instant::now();
            report.add("ours", name, models::explore::explore_reduced(Variant::OURS, scenario, None), false);
            eprintln!("  {:?}", at.elapsed());
        }
    }
    report.sweep(Seed(arguments.seed), arguments.sweep);
    report.finish()
}

fn selected(name: Option<&str>) -> anyhow::Result<Vec<Case>> {
    match name {
        None => Ok(catalog::cases()),
        Some(name) => Ok(vec![catalog::find(name).with_context(|| format!("no case is called {name}"))?]),
    }
}

struct Report {
    table: Table,
    prints_traces: bool,
    surprises: Vec<String>,
}

impl Report {
    fn new(prints_traces: bool) -> Report {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["variant", "scenario", "states", "verdict"]);
        Report { table, prints_traces, surprises: Vec::new() }
    }

    /// The case, and ours in the same scenario.
    fn explore_case(&mut self, case: Case) {
        let what = case.variant.flaw.map_or("as written".to_owned(), |flaw| format!("{flaw:?}"));
        self.add(case.name, &what, explore(case.variant, case.scenario.clone(), None), case.fault.is_some());
        self.add("ours", &format!("of {}", case.name), explore(Variant::OURS, case.scenario, None), false);
    }

    fn sweep(&mut self, seed: Seed, scenarios: u64) {
        let mut states = 0;
        let mut cut = 0;
        for number in 0..scenarios {
            let outcome = explore(Variant::OURS, sweep::scenario(seed, number), Some(SWEEP_STATES_MAX));
            states += outcome.states;
            cut += u64::from(!outcome.is_whole);
            if outcome.trace.is_some() {
                self.add("ours", &format!("random scenario {number}"), outcome, false);
            }
        }
        if scenarios > 0 {
            let name = format!("{scenarios} random scenarios, {cut} of them in part");
            self.table.add_row(["ours", &name, &states.to_string(), "see above, if anything is wrong"]);
        }
    }

    fn add(&mut self, variant: &str, scenario: &str, outcome: Outcome, is_flawed: bool) {
        let verdict = match &outcome.trace {
            Some(trace) => {
                trace.fault().map_or(String::new(), |fault| format!("{fault} (after {} steps)", trace.steps()))
            }
            None if outcome.is_whole => "clean, all states seen".to_owned(),
            None => "clean so far".to_owned(),
        };
        if outcome.trace.is_some() != is_flawed {
            self.surprises.push(format!("{variant} ({scenario})"));
        }
        eprintln!("{variant} ({scenario}): {} states, {verdict}", outcome.states);
        self.table.add_row([variant, scenario, &outcome.states.to_string(), &verdict]);
        if let Some(trace) = outcome.trace.filter(|_| self.prints_traces || !is_flawed) {
            println!("{variant} ({scenario})\n{trace}\n");
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        println!("{}", self.table);
        if !self.surprises.is_empty() {
            bail!("came out otherwise than it must: {}", self.surprises.join(", "));
        }
        Ok(())
    }
}
