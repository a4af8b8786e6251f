//! `rackweave claims`: what the papers claim, and what we found.

use crate::arguments::ClaimsArguments;
use crate::describe::print_json;
use crate::experiments::{Library, design, in_room};
use crate::failure::{Failure, bad_input, print};
use crate::interrupt::Terminal;
use crate::judged::{Results, claims as claims_of, judge_by, searches};
use report::settled::{Decided, Searched, markdown, settle};
use report::{ClaimResult, Interval, Value, Verdict, table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Prints the claims with our values, as far as they were shipped or are in a folder.
pub fn claims(arguments: &ClaimsArguments) -> Result<(), Failure> {
    let room = arguments.design.as_deref().map(design).transpose()?.map(|(room, _)| room);
    let library = Library::shipped();
    let mut results = blank(&library, room)?;
    let sources = sources(&library, arguments.from.as_deref())?;
    let origins: Vec<Option<&Source>> = results.iter_mut().map(|result| complete(&sources, result)).collect();
    let searches = searches(&library, room, &Terminal)?;
    settle(&mut results, &searches);
    if arguments.markdown {
        return print(&markdown(&results, &searches));
    }
    if arguments.json {
        let lines: Vec<Line<'_>> = results.iter().zip(origins).map(|(result, origin)| line(result, origin)).collect();
        return print_json(&lines);
    }
    print(&format!("{}\n{}", table(&results), origin_lines(&sources, &origins)))
}

/// Every claim, with the artifact's value and the reason of its experiment, before anything was
/// run.
fn blank(library: &Library, room: Option<&str>) -> Result<Vec<ClaimResult>, Failure> {
    let is_wanted = |name: &&String| room.is_none_or(|room| in_room(name, room));
    let names = library.names();
    let measured = names.iter().filter(is_wanted).map(|name| library.measured(name)).collect::<Result<Vec<_>, _>>()?;
    Ok(judge_by(&claims_of(room), &measured, &BTreeMap::new())?.results)
}

/// Sources of our values.
struct Source {
    name: String,
    results: Results,
}

/// The folder's, or all that are shipped.
fn sources(library: &Library, from: Option<&Path>) -> Result<Vec<Source>, Failure> {
    let Some(folder) = from else {
        let rooms = crate::experiments::DESIGNS.into_iter();
        let shipped = rooms.filter_map(|(room, _)| library.results(room));
        return shipped.map(|(name, text)| read(name, text)).collect();
    };
    let file = folder.join("results.json");
    let name = file.display().to_string();
    let text = fs::read_to_string(&file).map_err(|error| {
        bad_input(format!("{name}: {error}; --from wants an output folder of `rackweave reproduce`"))
    })?;
    Ok(vec![read(name, &text)?])
}

fn read(name: String, text: &str) -> Result<Source, Failure> {
    Ok(Source { results: Results::parse(&name, text)?, name })
}

fn complete<'a>(sources: &'a [Source], result: &mut ClaimResult) -> Option<&'a Source> {
    sources.iter().find(|source| source.results.complete(result))
}

/// Says of each source how many of the values are from it.
fn origin_lines(sources: &[Source], origins: &[Option<&Source>]) -> String {
    let count = |source: &Source| origins.iter().flatten().filter(|origin| origin.name == source.name).count();
    let mut lines: Vec<String> = sources
        .iter()
        .filter(|source| count(source) > 0)
        .map(|source| format!("{} verdicts are from {}: {}", count(source), source.name, source.results.origin()))
        .collect();
    let missing = origins.iter().filter(|origin| origin.is_none()).count();
    if missing > 0 {
        lines.push(format!("{missing} claims were not run"));
    }
    lines.join("\n") + "\n"
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    r#where: &'a str,
    role: &'static str,
    metric: &'a str,
    unit: &'a str,
    paper: &'a Value,
    artifact: &'a Option<Value>,
    ours: &'a Option<Value>,
    interval: &'a Option<Interval>,
    seeds: usize,
    verdict: Verdict,
    reason: &'a str,
    #[serde(flatten)]
    decided: Option<&'a Decided>,
    searched: Option<&'a Searched>,
    /// Source of our value; null when it was not run.
    from: Option<Origin<'a>>,
}

#[derive(Serialize)]
struct Origin<'a> {
    file: &'a str,
    scale: &'a str,
    version: &'a str,
    partial: bool,
}

fn line<'a>(result: &'a ClaimResult, source: Option<&'a Source>) -> Line<'a> {
    Line {
        id: &result.id,
        r#where: &result.place,
        role: result.role.name(),
        metric: &result.metric,
        unit: &result.unit,
        paper: &result.paper,
        artifact: &result.artifact,
        ours: &result.ours,
        interval: &result.interval,
        seeds: result.seeds,
        verdict: result.verdict,
        reason: &result.reason,
        decided: result.settlement.as_ref().and_then(|settlement| settlement.decided.as_ref()),
        searched: result.settlement.as_ref().map(|settlement| &settlement.searched),
        from: source.map(origin),
    }
}

fn origin(source: &Source) -> Origin<'_> {
    let Results { scale, version, partial, .. } = &source.results;
    Origin { file: &source.name, scale, version, partial: *partial }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_results_are_about_the_claims_as_they_are() {
        let library = Library::shipped();
        let mut results = blank(&library, None).unwrap();
        for source in sources(&library, None).unwrap() {
            let taken = results.iter_mut().map(|result| usize::from(source.results.complete(result))).sum::<usize>();
            assert_eq!(taken, source.results.claims.len(), "{}: run `rackweave reproduce` again", source.name);
        }
    }

    #[test]
    fn shipped_searches_are_about_the_shipped_boxes() {
        let library = Library::shipped();
        let mut searched: Vec<String> =
            searches(&library, None, &Terminal).unwrap().into_iter().map(|one| one.experiment).collect();
        let rooms = crate::experiments::DESIGNS.into_iter();
        let mut boxes: Vec<String> =
            rooms.flat_map(|(room, _)| library.boxes(room)).map(|(experiment, ..)| experiment).collect();
        searched.sort();
        boxes.sort();
        assert_eq!(searched, boxes, "run `rackweave settle` again");
    }
}
