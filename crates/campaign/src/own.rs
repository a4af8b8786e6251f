//! Policies of a user's own, beside the plan.

mod compiled;

use crate::arguments::RunArguments;
use crate::failure::{Failure, bad_input};
use crate::output;
use crate::terminal::{Terminal, say, tell};
use base::{Decide, Decision};
use clap::{Parser, Subcommand};
use compiled::{Compiled, Watched};
use plan::{DesignName, Point};
use sim::policies::{Place, Policies};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Policies of a user's own for the decisions of a run; those of the plan where there are none.
#[derive(Clone, Debug, Default)]
pub struct Own {
    policies: Policies,
    chosen: Vec<Chosen>,
    failed: Failed,
    watched: Vec<Arc<dyn Watched>>,
}

/// A policy that was given.
#[derive(Clone, Debug)]
struct Chosen {
    decision: &'static str,
    designs: &'static [DesignName],
    name: String,
    is_asked: Arc<AtomicBool>,
}

/// A policy, and whether it was ever asked.
#[derive(Debug)]
struct Asked<D> {
    policy: Arc<dyn Decide<D>>,
    is_asked: Arc<AtomicBool>,
}

impl<D: Decision> Decide<D> for Asked<D> {
    fn decide(&self, situation: &D) -> D::Answer {
        // Many threads ask: one of them writes, the others read.
        if !self.is_asked.load(Ordering::Relaxed) {
            self.is_asked.store(true, Ordering::Relaxed);
        }
        self.policy.decide(situation)
    }
}

/// Why an answer of a policy is none, if one was not: the run ends, and has no results. Copies
/// share it.
#[derive(Clone, Debug, Default)]
pub struct Failed(Arc<OnceLock<String>>);

impl Failed {
    /// The first reason counts.
    pub fn report(&self, reason: impl FnOnce() -> String) {
        self.0.get_or_init(reason);
    }

    /// Whether there is a reason.
    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// The reason, if there is one.
    pub fn reason(&self) -> Option<String> {
        self.0.get().cloned()
    }
}

impl Own {
    /// A policy that is compiled in, for one decision. Its name is told with the results.
    pub fn of<D: Place>(name: &str, policy: impl Decide<D> + 'static) -> Own {
        Own::default().and::<D>(name, policy)
    }

    /// The same with a policy for another decision.
    pub fn and<D: Place>(mut self, name: &str, policy: impl Decide<D> + 'static) -> Own {
        let compiled = Arc::new(Compiled::new(name.into(), policy, self.failed.clone()));
        self.watched.push(compiled.clone());
        self.choose::<D>(name.into(), compiled);
        self
    }

    /// Takes a policy that reports a failure to [`failed`](Own::failed) and does not panic.
    pub fn choose<D: Place>(&mut self, name: String, policy: Arc<dyn Decide<D>>) {
        let is_asked = Arc::new(AtomicBool::new(false));
        self.chosen.push(Chosen { decision: D::NAME, designs: D::DESIGNS, name, is_asked: is_asked.clone() });
        *D::of(&mut self.policies) = Some(Arc::new(Asked { policy, is_asked }));
    }

    /// Where policies report that they failed.
    pub fn failed(&self) -> &Failed {
        &self.failed
    }

    /// What the simulator follows.
    pub fn policies(&self) -> Policies {
        self.policies.clone()
    }

    /// Tells a point that it is played with these policies: as labels of its rows, and as warnings,
    /// since its plan does not have them.
    ///
    /// # Errors
    /// When the design has no place for one of them.
    pub fn mark(&self, point: &mut Point) -> Result<(), Failure> {
        let design = point.plan.design();
        for Chosen { decision, designs, name, .. } in &self.chosen {
            if !designs.contains(&design) {
                let takes: Vec<_> = designs.iter().map(|design| design.word()).collect();
                let (word, takes) = (design.word(), takes.join(", "));
                return Err(bad_input(format!("{decision}: not decided in the design {word}; designs: {takes}")));
            }
            point.plan.warnings.push(format!(
                "`{decision}` by `{name}` is not part of the plan: the plan alone does not repeat this run"
            ));
            point.labels.insert((*decision).into(), name.clone());
        }
        Ok(())
    }

    /// A warning for each policy that no run has asked: the results are as without it.
    pub fn unasked(&self) -> Vec<String> {
        let unasked = self.chosen.iter().filter(|chosen| !chosen.is_asked.load(Ordering::Relaxed));
        let warning = |Chosen { decision, name, .. }: &Chosen| {
            format!("`{decision}` by `{name}` was never asked: nothing that it decides came up in this run")
        };
        unasked.map(warning).collect()
    }

    /// Ends the program when a call goes on for more looks than these, one a second. The folder
    /// `root` of the run is removed, as that of any policy that fails.
    fn watch(&self, looks_max: u32, root: &Path) {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let stuck = self.watched.iter().find_map(|watched| watched.stuck(looks_max));
            if let Some(call) = stuck {
                self.failed.report(|| format!("{call} has not ended for {looks_max} s; --policy-timeout allows more"));
                let failure = Failure::BadInput(self.failed.reason().unwrap_or_default());
                say(&failure);
                output::discard(root);
                std::process::exit(failure.exit_code().into());
            }
        }
    }
}

/// Plays experiments with a policy of one's own.
#[derive(Debug, Parser)]
#[command(max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Play an experiment file of one point
    Run {
        #[command(flatten)]
        run: RunArguments,
        /// The longest that a call of the policy may take, in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        policy_timeout: u32,
    },
}

/// The whole `main` of a program with policies of its own: `run FILE` does what `rackweave run`
/// does, with them in place of the plan's. `rackweave new-policy` writes such a program.
pub fn main(own: Own) -> ExitCode {
    play(own, std::env::args_os())
}

/// The same with the arguments of a command line. A call that does not end ends the program.
pub fn play(own: Own, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Verb::Run { mut run, policy_timeout } = Arguments::parse_from(arguments).verb;
    let root = crate::run::root(&run);
    run.own = own.clone();
    std::thread::spawn(move || own.watch(policy_timeout, &root));
    match crate::run::run(&run, &Terminal).and_then(tell) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}
