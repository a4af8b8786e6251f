//! Claims with what came of them, and the file in which that is kept: `results.json`.

use crate::VERSION;
use crate::experiments::{DESIGNS, Measured};
use crate::failure::{Failure, bad_input};
use record::Summary;
use report::claims::{Claim, ledgers};
use report::{ClaimResult, Evidence, Judgement, Value, Verdict, claims_json, judge};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The claims of a room's paper, or of all, in the order of the rooms.
pub fn claims(design: Option<&str>) -> Vec<Claim> {
    let ledgers = ledgers();
    let rooms = DESIGNS.into_iter().filter(|(room, _)| design.is_none_or(|design| design == *room));
    let papers = rooms.filter_map(|(_, paper)| ledgers.iter().find(|ledger| ledger.paper == paper));
    papers.flat_map(|ledger| ledger.claims.clone()).collect()
}

/// The verdicts by the points of each experiment, by its name; an experiment without points was not
/// run.
pub fn judge_by(
    claims: &[Claim],
    experiments: &[Measured],
    points: &BTreeMap<String, Vec<Summary>>,
) -> Result<Judgement, Failure> {
    let evidence: Vec<Evidence<'_>> = experiments.iter().map(|measured| evidence(measured, points)).collect();
    judge(claims, &evidence).map_err(bad_input)
}

fn evidence<'a>(measured: &'a Measured, points: &'a BTreeMap<String, Vec<Summary>>) -> Evidence<'a> {
    let Measured { name, bindings, published } = measured;
    let points = points.get(name).map_or(&[][..], Vec::as_slice);
    Evidence { experiment: name, bindings, points, published }
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
        result.verdict = known.verdict;
        result.reason.clone_from(&known.reason);
        true
    }
}
