//! Policies of a user's own, beside the plan.

use crate::arguments::RunArguments;
use crate::failure::{Failure, bad_input};
use crate::terminal::{Terminal, tell};
use clap::{Parser, Subcommand};
use edm::Competitor;
use plan::{DesignName, Point};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

/// A priority of a user's own, for EDM's scheduler.
pub trait OwnPriority: edm::Priority {
    /// Its name, as it is told with the results.
    fn name(&self) -> String;

    /// Why its values are none, if one was not: the run ends, and has no results.
    fn failure(&self) -> Option<String>;
}

/// Tells a point that it is played with `priority`: as a label of its rows, and as a warning, since
/// its plan does not have it.
///
/// # Errors
/// When the design has no place for a priority.
pub fn mark(point: &mut Point, priority: Option<&Arc<dyn OwnPriority>>) -> Result<(), Failure> {
    let Some(priority) = priority else { return Ok(()) };
    let (name, design) = (priority.name(), point.plan.design());
    if design != DesignName::Edm {
        return Err(bad_input(format!("priority: the design {} takes none; edm does", design.word())));
    }
    point.plan.warnings.push(format!(
        "demands follow the priority `{name}`, which is not part of the plan: the plan alone does not repeat this run"
    ));
    point.labels.insert("priority".into(), name);
    Ok(())
}

/// A priority that is compiled in.
#[derive(Debug)]
struct Compiled<P> {
    name: String,
    priority: P,
    failure: OnceLock<String>,
}

impl<P: edm::Priority> edm::Priority for Compiled<P> {
    /// A panic ends the run, with the demand that it was about.
    fn of(&self, competitor: &Competitor) -> u32 {
        catch_unwind(AssertUnwindSafe(|| self.priority.of(competitor))).unwrap_or_else(|_| {
            self.failure.get_or_init(|| format!("the priority `{}` panicked for {competitor:?}", self.name));
            0
        })
    }
}

impl<P: edm::Priority> OwnPriority for Compiled<P> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }
}

/// Plays experiments with a priority of one's own in EDM's scheduler.
#[derive(Debug, Parser)]
#[command(max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Play an experiment file of one point
    Run(RunArguments),
}

/// The whole `main` of a program with a priority of its own: `run FILE` does what `rackweave run`
/// does, with `priority` in place of the plan's policy. `rackweave new-policy` writes such a
/// program.
pub fn main(name: &str, priority: impl edm::Priority + 'static) -> ExitCode {
    let Verb::Run(mut arguments) = Arguments::parse().verb;
    arguments.priority = Some(Arc::new(Compiled { name: name.into(), priority, failure: OnceLock::new() }));
    match crate::run::run(&arguments, &Terminal).and_then(tell) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
