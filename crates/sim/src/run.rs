//! The one door of the simulator: plays a plan's scene and finishes its summary.

use crate::drive::{Observer, Outcomes};
use crate::policies::Policies;
use crate::rigs::blox::BuildError;
use crate::rigs::san::SanBuildError;
use crate::scene::{Scene, Stage};
use base::{Span, Time};
use plan::Plan;
use record::{Discard, Keep, Sink, SinkError, Transient};
use std::collections::BTreeMap;

/// Options of a run beside its plan.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The program's version, for the summary.
    pub version: String,
    /// The point's place in its sweep, for the summary.
    pub labels: BTreeMap<String, String>,
    /// Whether every message is encoded and decoded on its way.
    pub wire_check: bool,
    /// Whether the history of a key-value store is kept, and judged whatever the plan says.
    pub keep_history: bool,
    /// Requests whose spans are kept in their order, for the sink.
    pub spans: Keep,
    /// Policies of a user's own. Designs without their decisions pass them over.
    pub policies: Policies,
}

/// Reasons why a run ends early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The sink refuses further rows. It keeps the rows so far.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A part of the plan's rack rejects its parameters.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A part of the plan's storage network rejects its parameters.
    #[error(transparent)]
    San(#[from] SanBuildError),
    /// The model of wear rejects the plan's parameters.
    #[error(transparent)]
    Wear(#[from] blox::WearError),
}

/// Runs `plan` and writes its rows to `sink`, in the order in which requests end.
///
/// # Errors
/// When the rack cannot be built, or the sink refuses further rows.
pub fn run(
    plan: &Plan,
    options: &RunOptions,
    sink: &mut dyn Sink,
    observer: &mut dyn Observer,
) -> Result<Outcomes, RunError> {
    match plan.warm_up() {
        Some(plan::WarmUp::Auto) => run_twice(plan, options, sink, observer),
        _ => run_once(Stage { plan, options, sink, observer, warm_up_found: None }),
    }
}

/// The only list of scenes.
fn scene(plan: &Plan) -> &dyn Scene {
    match &plan.scene {
        plan::Scene::Messages(scene) => scene.as_ref(),
        plan::Scene::Blox(scene) => scene.as_ref(),
        plan::Scene::San(scene) => scene.as_ref(),
        plan::Scene::Wear(scene) => scene.as_ref(),
        plan::Scene::SDirect(scene) => scene.as_ref(),
        plan::Scene::Scalio(scene) => scene.as_ref(),
    }
}

/// The summary begins with the warnings of the plan.
fn run_once(stage: Stage<'_>) -> Result<Outcomes, RunError> {
    let plan = stage.plan;
    let mut outcomes = scene(plan).play(stage)?.finish();
    outcomes.summary.warnings.splice(0..0, plan.warnings.iter().cloned());
    Ok(outcomes)
}

/// The first run is measured from its beginning and yields the warm-up of the second.
fn run_twice(
    plan: &Plan,
    options: &RunOptions,
    sink: &mut dyn Sink,
    observer: &mut dyn Observer,
) -> Result<Outcomes, RunError> {
    let mut first = plan.with_warm_up(Span::ZERO);
    first.series = None;
    let unheard = RunOptions { keep_history: false, spans: Keep::Nothing, ..options.clone() };
    let found = run_once(Stage { plan: &first, options: &unheard, sink: &mut Discard, observer, warm_up_found: None })?;
    let (until, trouble) = match found.transient {
        Transient::Until(time) => (time, None),
        Transient::Unknown => {
            (Time::ZERO, Some("too few requests to tell a transient from the rest: all are measured"))
        }
        Transient::MoreThan(half) => (half, Some("the run has not become steady in its first half, which is left out")),
    };
    let span = until.saturating_since(Time::ZERO);
    let second = plan.with_warm_up(span);
    let mut outcomes = run_once(Stage { plan: &second, options, sink, observer, warm_up_found: Some(span) })?;
    outcomes.summary.plan_hash = plan.hash();
    outcomes.summary.warnings.extend(trouble.map(|trouble| format!("warm_up = \"auto\": {trouble}")));
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let experiment =
            plan::parse("shared.toml", text, &plan::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        experiment.points(None).remove(0).plan
    }

    const COLD: &str = r#"
title = "nothing is underway at first"
fabric = { nodes = 4, rate = "100Gbps" }
design = { name = "edm" }
workload = { load = 0.9 }
run = { requests = 20_000, warm_up = "auto" }
"#;

    fn rows(plan: &Plan) -> (Vec<record::Row>, Outcomes) {
        let mut rows = Vec::new();
        let outcomes = run(plan, &RunOptions::default(), &mut rows, &mut crate::drive::Unobserved);
        (rows, outcomes.unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn a_warm_up_that_is_found_is_one_that_could_be_given() {
        let auto = plan(COLD);
        let (found, outcomes) = rows(&auto);
        let us = outcomes.summary.metrics["warm_up_us"];
        assert!(us > 0.0 && outcomes.summary.plan_hash == auto.hash(), "{us}");
        let given = plan(&COLD.replace("auto", &format!("{us}us")));
        let (same, as_given) = rows(&given);
        assert_eq!(found, same);
        assert_eq!(outcomes.summary.latency_ns, as_given.summary.latency_ns);
        assert!(outcomes.summary.counts.measured < 20_000);
    }

    #[test]
    fn a_run_too_short_for_its_warm_up_to_be_found_says_so() {
        let (_, outcomes) = rows(&plan(&COLD.replace("20_000", "50")));
        assert_eq!(outcomes.summary.counts.measured, 50);
        assert!(outcomes.summary.warnings.iter().any(|warning| warning.contains("too few requests to tell")));
    }

    #[test]
    fn a_dead_node_of_eight_takes_a_quarter_of_uniform_messages_with_it() {
        // Its own and those to it: 2 of 8, since nobody sends to itself.
        let dead = r#"
title = "one node dies"
fabric = { nodes = 8, rate = "100Gbps" }
design = { name = "edm" }
workload = { load = 0.3 }
run = { requests = 40_000 }
fault = [{ at = "1us", kind = "node-down", node = 3 }]
"#;
        let (_, outcomes) = rows(&plan(dead));
        let availability = outcomes.summary.availability.expect("something broke");
        assert!((availability.fraction - 0.75).abs() < 0.01, "{availability:?}");
        assert_eq!(outcomes.summary.counts.in_flight_at_end, 0);
    }
}
