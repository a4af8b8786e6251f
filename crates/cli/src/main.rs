//! The door: `rackweave` reads what it is told, hands it to the floors below, and shows what came
//! of it.

// `eprintln!` panics where the output is closed, or its disk is full.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

mod arguments;
mod attack;
mod check;
mod claims;
mod describe;
mod disk;
mod fabric;
mod failure;
mod fit;
mod init;
mod kv;
mod new_policy;
mod precondition;
mod rack;
mod settle;
mod target;
mod timeline;
mod trace;
mod twin;

use arguments::{Arguments, Command};
use campaign::terminal::say;
use campaign::terminal::{self as interrupt, Terminal, tell};
use campaign::{VERSION, compare, estimate, experiments, judged, load, output, play, seeds};
use clap::Parser;
use failure::{Failure, print};
use std::process::ExitCode;

fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Init(arguments) => init::init(&arguments),
        Command::NewPolicy(arguments) => new_policy::new_policy(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Run(arguments) if twin::run::is_rack(&arguments.source.file) => tell(twin::run::run(&arguments)?),
        Command::Run(arguments) => tell(campaign::run::run(&arguments, &Terminal)?),
        Command::Sweep(arguments) => tell(campaign::sweep::sweep(&arguments, &Terminal)?),
        Command::Explain(arguments) => print(&campaign::explain::explain(&arguments)?.shown(arguments.format)),
        Command::Timeline(arguments) => timeline::timeline(&arguments),
        Command::Compare(arguments) => {
            print(&compare::shown(&compare::compare(&arguments, &Terminal)?, arguments.format, arguments.all))
        }
        Command::Reproduce(arguments) => tell(campaign::reproduce::reproduce(&arguments, &Terminal)?),
        Command::Settle(arguments) => settle::settle(&arguments),
        Command::Claims(arguments) => claims::claims(&arguments),
        Command::Fit(arguments) => fit::fit(&arguments),
        Command::Precondition(arguments) => precondition::precondition(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::Fabric(arguments) => fabric::fabric(&arguments),
        Command::Describe(arguments) => describe::describe(&arguments),
        Command::Schema(arguments) => describe::schema(arguments.of),
        Command::Target(arguments) => target::target(&arguments),
        Command::Kv(arguments) => kv::kv(&arguments),
        Command::Jbof(arguments) => kv::jbof(&arguments),
        Command::Rack(arguments) => rack::rack(&arguments),
        Command::Twin(arguments) => twin::twin(&arguments),
        Command::Disk(arguments) => disk::disk(&arguments),
        Command::Attack(arguments) => attack::attack(&arguments),
    }
}
