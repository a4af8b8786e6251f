//! Claims with what came of them, and the file in which that is kept.

use crate::VERSION;
use crate::experiments::{DESIGNS, Measured};
use crate::failure::{Failure, bad_input};
use record::Summary;
use report::claims::{Claim, ledgers};
use report::{ClaimResult, Evidence, Judgement, Value, Verdict, claims_json, judge};
use serde::{Deserialize, Serialize};

/// The claims of a room's paper, or of all, in the order of the rooms.
pub fn claims(design: Option<&str>) -> Vec<Claim> {
    let ledgers = ledgers();
    let rooms = DESIGNS.into_iter().filter(|(room, _)| design.is_none_or(|design| design == *room));
    let of = |(_, paper)| ledgers.iter().find(|ledger| ledger.paper == paper).expect("each room has its ledger");
    rooms.flat_map(|room| of(room).claims.clone()).collect()
}

/// The verdicts by what was run of each experiment; nothing, when it was not.
pub fn judge_by(claims: &[Claim], experiments: &[(&Measured, &[Summary])]) -> Result<Judgement, Failure> {
    let evidence = |(measured, points): &(&'_ Measured, &'_ [Summary])| Evidence {
        experiment: unsafe_free_name(measured),
        bindings: &measured.bindings,
        points,
        published: &measured.published,
    };
    judge(claims, &experiments.iter().map(evidence).collect::<Vec<_>>()).map_err(bad_input)
}
