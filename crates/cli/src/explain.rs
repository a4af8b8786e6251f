//! `rackweave explain`: why the slow requests of a run are slow.

use crate::arguments::{ExplainArguments, ExplainForm};
use crate::failure::{Failure, bad_input, print};
use crate::results::Run;
use record::Row;
use report::explain::{self, Facts};

/// Explains one run and seed.
pub fn explain(arguments: &ExplainArguments) -> Result<(), Failure> {
    let runs = Run::all_below(&arguments.run)?;
    let [run] = &runs[..] else {
        let place = arguments.run.display();
        return Err(bad_input(format!("{place}: a sweep of {} points; give the folder of one", runs.len())));
    };
    let seeds: Vec<u64> = run.seeds().collect();
    let seed = arguments.seed.or(seeds.first().copied()).filter(|seed| seeds.contains(seed));
    let Some(seed) = seed else {
        return Err(bad_input(format!("{}: it has no such seed; its seeds are {seeds:?}", run.name())));
    };
    let summary = run.summary_of(seed)?;
    let facts = Facts { first_fault_ns: summary.availability.map(|availability| availability.first_fault_ns) };
    let rows = |each: &mut dyn FnMut(&[Row])| run.each_part(seed, each);
    let Some(explanation) = explain::explain(&rows, facts, arguments.worst)? else {
        return Err(bad_input(format!("{}: no measured request has finished", run.name())));
    };
    print(&match arguments.format {
        ExplainForm::Json => explain::json(&explanation),
        ExplainForm::Text => format!("run        {}, seed {seed}\n{}", run.name(), explain::text(&explanation)),
    })
}
