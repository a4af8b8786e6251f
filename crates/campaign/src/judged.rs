//! Claims with what came of them, and the file in which that is kept: `results.json`.

use crate::VERSION;
use crate::console::Console;
use crate::experiments::{DESIGNS, Library, Measured};
use crate::failure::{Failure, bad_input};
use crate::play::Played;
use record::Summary;
use report::claims::{Claim, ledgers};
use report::settled::Settled;
use report::{ClaimResult, Evidence, Judgement, Known, judge};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was played of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The summaries of its points over all seeds.
    pub points: Vec<Summary>,
    /// The same by seed; empty when a seed of a point is missing.
    pub by_seed: Vec<Vec<Summary>>,
}

/// What was played, by experiment.
pub type Points = BTreeMap<String, Runs>;

impl Runs {
    /// Sorts the seeds of points out. `wanted` is the number of seeds of each point.
    pub fn of(played: Vec<Played>, wanted: usize) -> Runs {
        let is_whole = played.iter().all(|point| point.by_seed.len() == wanted);
        let (points, seeds): (Vec<Summary>, Vec<Vec<Summary>>) =
            played.into_iter().map(|point| (point.summary, point.by_seed)).unzip();
        let mut by_seed = vec![Vec::new(); if is_whole { wanted } else { 0 }];
        for runs in seeds {
            by_seed.iter_mut().zip(runs).for_each(|(seed, run)| seed.push(run));
        }
        Runs { points, by_seed }
    }
}

/// The claims of a room's paper, or of all, in the order of the rooms.
pub fn claims(design: Option<&str>) -> Vec<Claim> {
    let ledgers = ledgers();
    let rooms = DESIGNS.into_iter().filter(|(room, _)| design.is_none_or(|design| design == *room));
    let papers = rooms.filter_map(|(_, paper)| ledgers.iter().find(|ledger| ledger.paper == paper));
    papers.flat_map(|ledger| ledger.claims.clone()).collect()
}

/// The verdicts by the points of each experiment, by its name; an experiment without points was not
/// run.
pub fn judge_by(claims: &[Claim], experiments: &[Measured], points: &Points) -> Result<Judgement, Failure> {
    let evidence: Vec<Evidence<'_>> = experiments.iter().map(|measured| evidence(measured, points)).collect();
    judge(claims, &evidence).map_err(bad_input)
}

fn evidence<'a>(measured: &'a Measured, points: &'a Points) -> Evidence<'a> {
    let Measured { name, bindings, published } = measured;
    let runs = points.get(name);
    let points = runs.map_or(&[][..], |runs| &runs.points);
    let by_seed = runs.map_or(&[][..], |runs| &runs.by_seed);
    Evidence { experiment: name, bindings, points, by_seed, published }
}

/// The searches that a library has for the claims of a room, or of all. One of another box than
/// its `settle.toml` has now does not count: a warning names it.
pub fn searches(library: &Library, design: Option<&str>, console: &dyn Console) -> Result<Vec<Settled>, Failure> {
    let mut found = Vec::new();
    for (room, _) in DESIGNS.into_iter().filter(|(room, _)| design.is_none_or(|design| design == *room)) {
        let Some((name, text)) = library.settled(room) else { continue };
        let all: Vec<Settled> =
            serde_json::from_str(text).map_err(|error| bad_input(format!("{name}:{}: {error}", error.line())))?;
        let (known, boxes) = (claims(Some(room)), library.boxes(room));
        for one in all {
            let beside = boxes.iter().find(|(experiment, ..)| *experiment == one.experiment);
            let parse = |(_, file, text): &(String, String, &str)| report::settle::parse(file, text, &known);
            if beside.map(parse).transpose().map_err(bad_input)?.is_some_and(|settle| one.is_of(&settle)) {
                found.push(one);
            } else {
                let again = "run `rackweave settle` again";
                let about = &one.experiment;
                console.say(&format!("warning: {name} is about another box than {about}/settle.toml: {again}"));
            }
        }
    }
    Ok(found)
}

/// Verdicts with where they come from. What `rackweave reproduce` leaves, and what is shipped with
/// an experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// The program's version.
    pub version: String,
    /// The scale of the run.
    pub scale: String,
    /// Whether the run was cut short.
    pub partial: bool,
    /// One a claim that has a value of ours, or was found not comparable by its experiment.
    pub claims: Vec<Known>,
}

impl Results {
    /// The part of `results` in `claims.json`.
    pub fn of(results: &[ClaimResult], scale: &str, partial: bool) -> Results {
        Results {
            version: VERSION.into(),
            scale: scale.into(),
            partial,
            claims: results.iter().map(Known::of).collect(),
        }
    }

    /// Reads the file `name`.
    pub fn parse(name: &str, text: &str) -> Result<Results, Failure> {
        serde_json::from_str(text).map_err(|error| bad_input(format!("{name}:{}: {error}", error.line())))
    }

    /// In words, for a reader of the values.
    pub fn origin(&self) -> String {
        let partial = if self.partial { ", cut short" } else { "" };
        format!("{} scale{partial}, rackweave {}", self.scale, self.version)
    }

    /// Gives what is kept for a claim to its result. False when nothing is, or when it was about
    /// another value of the paper.
    pub fn complete(&self, result: &mut ClaimResult) -> bool {
        let Some(known) = self.claims.iter().find(|known| known.id == result.id) else { return false };
        if known.paper != result.paper {
            result.reason = "not run since the claim has changed".into();
            return false;
        }
        known.complete(result);
        true
    }
}
