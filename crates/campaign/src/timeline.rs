//! The requests of a run whose ordered spans were kept.

use crate::failure::{Failure, bad_input};
use crate::results::Run;
use record::{Row, SpanRow};
use report::timeline::Shown;
use std::cmp::Reverse;
use std::collections::BTreeMap;

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

/// The slowest requests whose spans were kept, the slowest first.
///
/// # Errors
/// Spans or records that are missing or not readable.
pub fn slowest(run: &Run, seed: u64, most: usize) -> Result<Vec<Shown>, Failure> {
    let kept = kept(run, seed)?;
    with_spans(run, seed, chosen(run, seed, &kept, most)?)
}

/// The requests with these numbers, the slowest first.
///
/// # Errors
/// As [`slowest`], and a number whose spans were not kept.
pub fn these(run: &Run, seed: u64, asked: &[u64]) -> Result<Vec<Shown>, Failure> {
    let kept = kept(run, seed)?;
    if let Some(missing) = asked.iter().find(|number| kept.binary_search(number).is_err()) {
        return Err(bad_input(format!(
            "{}: no spans of request {missing} were kept; `rackweave run --spans all` keeps those of every request",
            run.name()
        )));
    }
    let mut asked = asked.to_vec();
    asked.sort_unstable();
    with_spans(run, seed, chosen(run, seed, &asked, usize::MAX)?)
}

/// The rows of at most `most` of the requests with numbers that rise, the slowest first.
fn chosen(run: &Run, seed: u64, numbers: &[u64], most: usize) -> Result<Vec<Row>, Failure> {
    let mut slowest: BTreeMap<(Reverse<u64>, u64), Row> = BTreeMap::new();
    run.each_part(seed, &mut |rows| {
        for row in rows.iter().filter(|row| numbers.binary_search(&row.request.0).is_ok()) {
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
