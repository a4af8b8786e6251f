//! Runs the checker: breadth first and on one thread, so that what is found is shortest and the
//! same each time.

use crate::model::CacheModel;
use crate::reduced::Reduced;
use crate::scenario::Scenario;
use crate::trace::Trace;
use crate::variant::Variant;
use stateright::{Checker, HasDiscoveries, Model};

/// The result of an exploration.
pub struct Outcome {
    /// Different states that were seen.
    pub states: usize,
    /// Whether these are all that there are. (An exploration ends with the first thing that is
    /// wrong.)
    pub is_whole: bool,
    /// The shortest execution that ends wrong.
    pub trace: Option<Trace>,
}

/// Explores until something is wrong, all has been seen, or `states_max` states, counted as often
/// as they were reached, have.
pub fn explore(variant: Variant, scenario: Scenario, states_max: Option<usize>) -> Outcome {
    let model = CacheModel { variant, scenario };
    let builder = model.clone().checker().threads(1).finish_when(HasDiscoveries::AnyFailures);
    let builder = match states_max {
        Some(states_max) => builder.target_state_count(states_max),
        None => builder,
    };
    let checker = builder.spawn_bfs().join();
    let found = checker.discoveries().into_values().map(|path| Trace::new(model.clone(), path));
    let trace = found.min_by_key(|trace| (trace.steps(), trace.fault()));
    let is_cut = states_max.is_some_and(|states_max| checker.state_count() >= states_max);
    Outcome { states: checker.unique_state_count(), is_whole: trace.is_none() && !is_cut, trace }
}

/// The same verdict from fewer states, depth first: memory holds 8 bytes a state, and the execution
/// that is shown need not be the shortest.
pub fn explore_reduced(variant: Variant, scenario: Scenario, states_max: Option<usize>) -> Outcome {
    let model = CacheModel { variant, scenario };
    let reduced = Reduced::new(model.clone());
    let builder = reduced.clone().checker().threads(1).finish_when(HasDiscoveries::AnyFailures);
    let builder = match states_max {
        Some(states_max) => builder.target_state_count(states_max),
        None => builder,
    };
    let checker = builder.spawn_dfs().join();
    let found = checker.discoveries().into_values().next();
    let trace = found.map(|path| Trace::of_reduced(model, &reduced, path));
    let is_cut = states_max.is_some_and(|states_max| checker.state_count() >= states_max);
    Outcome { states: checker.unique_state_count(), is_whole: trace.is_none() && !is_cut, trace }
}
