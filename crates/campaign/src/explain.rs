//! `rackweave explain`: why the slow requests of a run are slow.

use crate::arguments::{ExplainArguments, ExplainForm};
use crate::failure::{Failure, bad_input};
use crate::output::write;
use crate::results::Run;
use record::{Row, SpanRow};
use report::explain::{self, Explanation, Facts};

/// Why the slow requests of a run are slow.
#[derive(Debug)]
pub struct Explained {
    run: String,
    seed: u64,
    explanation: Explanation,
}

/// Explains one run and seed.
///
/// # Errors
/// When the folder is no run with records, or no request has finished.
pub fn explain(arguments: &ExplainArguments) -> Result<Explained, Failure> {
    let run = Run::one(&arguments.run)?;
    let seed = run.seed_or_first(arguments.seed)?;
    let summary = run.summary_of(seed)?;
    let facts = Facts { first_fault_ns: summary.availability.map(|availability| availability.first_fault_ns) };
    let rows = |each: &mut dyn FnMut(&[Row])| run.each_part(seed, each);
    let Some(mut explanation) = explain::explain(&rows, facts, arguments.worst)? else {
        return Err(bad_input(format!("{}: no measured request has finished", run.name())));
    };
    if run.has_spans(seed) {
        let worst: Vec<u64> = explanation.worst.iter().map(|one| one.request).collect();
        let spans = |each: &mut dyn FnMut(&[SpanRow])| run.each_part_of_spans(seed, each);
        explanation.behind = explain::behind(&spans, &worst)?;
    }
    if let Some(file) = &arguments.svg {
        write(file, explain::picture(&explanation, &format!("{}, seed {seed}", run.name())))?;
    }
    Ok(Explained { run: run.name(), seed, explanation })
}

impl Explained {
    /// In words, or as an object.
    pub fn shown(&self, form: ExplainForm) -> String {
        match form {
            ExplainForm::Json => explain::json(&self.explanation),
            ExplainForm::Text => {
                format!("run        {}, seed {}\n{}", self.run, self.seed, explain::text(&self.explanation))
            }
        }
    }
}
