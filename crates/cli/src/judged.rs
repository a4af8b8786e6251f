//! Claims with what came of them, and the file in which that is kept: `results.json`.

use crate::VERSION;
use crate::experiments::{DESIGNS, Measured};
use crate::failure::{Failure, bad_input};
use crate::play::Played;
use record::Summary;
use report::claims::{Claim, ledgers};
use report::{ClaimResult, Evidence, Interval, Judgement, Value, Verdict, claims_json, judge};
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

/// A verdict as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The claim's id.
    pub id: String,
    /// The value with which ours was compared.
    pub paper: Value,
    /// Ours.
    pub ours: Option<Value>,
    /// Its interval over seeds.
    pub interval: Option<Interval>,
    /// Number of seeds.
    pub seeds: usize,
    /// The results of the comparisons.
    pub verdict: Verdict,
    /// The reason of the verdict.
    pub reason: String,
}

impl Results {
    /// The part of `results` in `claims.json`.
    pub fn of(results: &[ClaimResult], scale: &str, partial: bool) -> Result<Results, Failure> {
        let claims = serde_json::from_str(&claims_json(results)).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Results { version: VERSION.into(), scale: scale.into(), partial, claims })
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
        result.ours.clone_from(&known.ours);
        result.interval.clone_from(&known.interval);
        result.seeds = known.seeds;
        result.verdict = known.verdict;
        result.reason.clone_from(&known.reason);
        true
    }
}
