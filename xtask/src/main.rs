//! `cargo xtask CHORE`: maintenance commands of the workspace that need more than one command of
//! cargo.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

const USAGE: &str = "\
Usage: cargo xtask CHORE

Chores:
  tidy    check floors, imports, forbidden names and sizes by layers.toml; fails when there is an error";

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

fn tidy() -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let report = xtask::tidy(root)?;
    println!("{report}");
    Ok(if report.has_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
