//! The door: `rackweave` reads what it is told, hands it to the floors below, and shows what came
//! of it.

mod arguments;
mod attack;
mod campaign;
mod check;
mod claims;
mod compare;
mod describe;
mod disk;
mod estimate;
mod experiments;
mod explain;
mod export;
mod fabric;
mod failure;
mod fit;
mod init;
mod interrupt;
mod judged;
mod labels;
mod load;
mod output;
mod page;
mod play;
mod precondition;
mod progress;
mod reproduce;
mod results;
mod run;
mod seeds;
mod settle;
mod sweep;
mod target;
mod timeline;
mod trace;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

/// The program's version: it goes into every output.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Init(arguments) => init::init(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Sweep(arguments) => sweep::sweep(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Timeline(arguments) => timeline::timeline(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Settle(arguments) => settle::settle(&arguments),
        Command::Claims(arguments) => claims::claims(&arguments),
        Command::Fit(arguments) => fit::fit(&arguments),
        Command::Precondition(arguments) => precondition::precondition(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::Fabric(arguments) => fabric::fabric(&arguments),
        Command::Describe(arguments) => describe::describe(&arguments),
        Command::Schema(arguments) => describe::schema(arguments.of),
        Command::Target(arguments) => target::target(&arguments),
        Command::Disk(arguments) => disk::disk(&arguments),
        Command::Attack(arguments) => attack::attack(&arguments),
    }
}
