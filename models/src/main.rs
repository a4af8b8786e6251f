//! `models`: explores Scalio's cache protocol, prints the flaw of a variant, and updates the traces
//! of the page about it.

mod report;

use anyhow::Context;
use base::Seed;
use clap::{Parser, ValueEnum};
use models::catalog::{self, Case};
use models::page;
use report::Report;
use std::io::Read;

/// Explores Scalio's cache protocol and every broken variant of it. Ends with 1 if anything comes
/// out otherwise than it must.
#[derive(Parser)]
struct Arguments {
    /// Only this case (H1 to H18, paper, paper-H2 ...).
    #[arg(long)]
    variant: Option<String>,
    /// Prints the failing execution.
    #[arg(long)]
    trace: bool,
    /// `large` explores ours in larger company too, in the reduced space: minutes in release.
    #[arg(long, value_enum, default_value_t = Size::Small)]
    size: Size,
    /// Also explores ours in this many random scenarios.
    #[arg(long, default_value_t = 0)]
    sweep: u64,
    /// Runs this many random worlds of each kind with the programs themselves.
    #[arg(long, default_value_t = 0)]
    worlds: u64,
    /// The random scenarios.
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
    if arguments.size == Size::Large && arguments.variant.is_none() {
        catalog::large().into_iter().for_each(|large| report.explore_large(large));
    }
    report.play(arguments.worlds);
    report.sweep(Seed(arguments.seed), arguments.sweep);
    report.finish()
}

fn selected(name: Option<&str>) -> anyhow::Result<Vec<Case>> {
    match name {
        None => Ok(catalog::cases()),
        Some(name) => Ok(vec![catalog::find(name).with_context(|| format!("no case is called {name}"))?]),
    }
}
