//! `rackweave timeline`: the ordered spans of some requests.

use crate::arguments::TimelineArguments;
use crate::failure::{Failure, bad_input, print};
use crate::output::write;
use crate::results::Run;
use record::{Row, SpanRow};
use report::timeline::{self, Shown};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Writes the timeline of the chosen requests.
pub fn timeline(arguments: &TimelineArguments) -> Result<(), Failure> {
    let run = Run::one(&arguments.run)?;
    let seed = run.seed_or_first(arguments.seed)?;
    let kept = kept(&run, seed)?;
    let requests = with_spans(&run, seed, chosen(arguments, &run, seed, &kept)?)?;
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

/// The numbers of the requests whose spans were kept, rising.
fn kept(run: &Run, seed: u64) -> Result<Vec<u64>, Failure> {
    let mut kept = Vec::new();
    run.each_part_of_spans(seed, &mut |spans| {
        kept.extend(spans.iter().filter(|span| span.number == 0).map(|span| span.request.0));
    })?;
    kept.sort_unstable();
    kept.dedup();
    Ok(kept)
}

/// The rows of the requests that are asked for, the slowest first.
fn chosen(arguments: &TimelineArguments, run: &Run, seed: u64, kept: &[u64]) -> Result<Vec<Row>, Failure> {
    if let Some(missing) = arguments.requests.iter().find(|number| kept.binary_search(number).is_err()) {
        return Err(bad_input(format!(
            "{}: no spans of request {missing} were kept; `rackweave run --spans all` keeps those of every request",
            run.name()
        )));
    }
    let wanted: &[u64] = if arguments.requests.is_empty() { kept } else { &arguments.requests };
    let is_wanted = |row: &Row| match arguments.requests.is_empty() {
        true => wanted.binary_search(&row.request.0).is_ok(),
        false => wanted.contains(&row.request.0),
    };
    let most = if arguments.requests.is_empty() { arguments.slowest } else { usize::MAX };
    let mut slowest: BTreeMap<(Reverse<u64>, u64), Row> = BTreeMap::new();
    run.each_part(seed, &mut |rows| {
        for row in rows.iter().filter(|row| is_wanted(row)) {
            slowest.insert((Reverse(row.latency().as_ps()), row.request.0), *row);
            if slowest.len() > most {
                slowest.pop_last();
            }
        }
    })?;
    Ok(slowest.into_values().collect())
}

/// Adds their spans to the rows.
fn with_spans(run: &Run, seed: u64, rows: Vec<Row>) -> Result<Vec<Shown>, Failure> {
    let places: BTreeMap<u64, usize> = rows.iter().enumerate().map(|(place, row)| (row.request.0, place)).collect();
    let mut requests: Vec<Shown> = rows.into_iter().map(|row| Shown { row, spans: Vec::new() }).collect();
    run.each_part_of_spans(seed, &mut |spans: &[SpanRow]| {
        for span in spans {
            if let Some(place) = places.get(&span.request.0) {
                requests[*place].spans.push(*span);
            }
        }
    })?;
    Ok(requests)
}
