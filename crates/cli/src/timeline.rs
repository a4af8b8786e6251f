//! `rackweave timeline`: the ordered spans of some requests.

use crate::arguments::TimelineArguments;
use crate::failure::{Failure, print};
use crate::output::write;
use campaign::results::Run;
use campaign::timeline::{slowest, these};
use report::timeline;

/// Writes the timeline of the chosen requests.
pub fn timeline(arguments: &TimelineArguments) -> Result<(), Failure> {
    let run = Run::one(&arguments.run)?;
    let seed = run.seed_or_first(arguments.seed)?;
    let requests = match arguments.requests.as_slice() {
        [] => slowest(&run, seed, arguments.slowest)?,
        asked => these(&run, seed, asked)?,
    };
    let trace = arguments.out.clone().unwrap_or_else(|| arguments.run.join("timeline.pftrace"));
    write(&trace, timeline::trace(&requests))?;
    let mut text =
        format!("{}\ntrace      {} (opens in ui.perfetto.dev)\n", timeline::text(&requests), trace.display());
    if let Some(file) = &arguments.svg {
        write(file, timeline::picture(&requests, &format!("{}, seed {seed}", run.name())))?;
        text += &format!("picture    {}\n", file.display());
    }
    print(&text)
}
