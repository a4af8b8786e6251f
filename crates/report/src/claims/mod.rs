//! The claims of the papers: the ledgers of `experiments/claims`.

mod embedded;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::{Accept, FileError, Value};

pub use embedded::ledgers;

/// Why a ledger cannot be used.
pub type ClaimError = FileError;

/// The claims of one paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// The paper's short name: every id starts with it and a dot.
    pub paper: String,
    /// Its claims, in the order of the file.
    pub claims: Vec<Claim>,
}

/// The purpose of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Arithmetic or cycle counts: no model freedom.
    Exact,
    /// A characterisation of the hardware: parameters may be fitted to it.
    Calibration,
    /// A result that must follow from the mechanisms: nothing may be fitted to it.
    Validation,
}

impl Role {
    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Exact => "exact",
            Role::Calibration => "calibration",
            Role::Validation => "validation",
        }
    }
}

/// One published number or statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Stable name, `paper.figure.what`.
    pub id: String,
    /// Figure, table or section of the paper (`where` in the file).
    pub place: String,
    /// Its purpose.
    pub role: Role,
    /// The conditions of the measurement.
    pub setting: String,
    /// The quantity.
    pub metric: String,
    /// Its unit; `ratio` and `fraction` have no dimension, `bool` is a statement.
    pub unit: String,
    /// The printed value.
    pub paper: Value,
    /// The interval of agreement.
    pub accept: Accept,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLedger {
    paper: String,
    claim: Vec<Spanned<RawClaim>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    id: String,
    r#where: String,
    role: Role,
    setting: String,
    metric: String,
    unit: String,
    paper: toml::Value,
    accept: toml::Value,
}

/// Reads the ledger `text`, called `name` in errors. Refuses unknown or missing keys, ids that
/// occur twice or do not start with the paper's name, and intervals that do not fit the paper's
/// value or leave it out.
pub fn parse(name: &str, text: &str) -> Result<Ledger, ClaimError> {
    let raw: RawLedger = toml::from_str(text).map_err(|error| FileError::toml(name, text, &error))?;
    let mut seen = BTreeMap::new();
    let mut claims = Vec::with_capacity(raw.claim.len());
    for entry in raw.claim {
        let offset = entry.span().start;
        let at = |reason: String| FileError::at(name, text, offset, reason);
        let claim = check(&raw.paper, entry.into_inner()).map_err(at)?;
        if seen.insert(claim.id.clone(), offset).is_some() {
            return Err(at(format!("claim {} occurs twice", claim.id)));
        }
        claims.push(claim);
    }
    Ok(Ledger { paper: raw.paper, claims })
}

fn check(paper_name: &str, raw: RawClaim) -> Result<Claim, String> {
    let about = |reason: String| format!("claim {}: {reason}", raw.id);
    if raw.id.strip_prefix(paper_name).is_none_or(|rest| !rest.starts_with('.') || rest.len() < 2) {
        return Err(about(format!("the id must start with \"{paper_name}.\"")));
    }
    let texts = [("where", &raw.r#where), ("setting", &raw.setting), ("metric", &raw.metric), ("unit", &raw.unit)];
    if let Some((key, _)) = texts.iter().find(|(_, text)| text.trim().is_empty()) {
        return Err(about(format!("{key} is empty")));
    }
    let paper = Value::read(&raw.paper).map_err(|reason| about(format!("paper: {reason}")))?;
    let accept = Accept::read(&paper, &raw.accept).map_err(about)?;
    if !accept.contains(&paper) {
        return Err(about(format!("the paper's {} lies outside accept, {}", paper.show(), accept.show())));
    }
    Ok(Claim {
        place: raw.r#where,
        role: raw.role,
        setting: raw.setting,
        metric: raw.metric,
        unit: raw.unit,
        id: raw.id,
        paper,
        accept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
paper = "edm"
[[claim]]
id = "edm.table1.read"
where = "Table 1"
role = "exact"
setting = "unloaded"
metric = "latency"
unit = "ns"
paper = 299.52
accept = [296.5, 302.5]
"#;

    fn refused(from: &str, to: &str) -> ClaimError {
        assert!(GOOD.contains(from), "the test replaces {from}");
        parse("claims/edm.toml", &GOOD.replace(from, to)).unwrap_err()
    }

    #[test]
    fn a_ledger_is_read_whole() {
        let ledger = parse("edm.toml", GOOD).unwrap();
        let claim = &ledger.claims[0];
        assert_eq!((claim.id.as_str(), claim.place.as_str(), claim.role), ("edm.table1.read", "Table 1", Role::Exact));
        assert_eq!(claim.paper, Value::Number(299.52));
        assert_eq!(claim.accept, Accept::Between { low: 296.5, high: 302.5 });
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, line, words) in [
            ("unit = \"ns\"", "units = \"ns\"", 9, "unknown field `units`"),
            ("role = \"exact\"", "role = \"guess\"", 6, "unknown variant `guess`"),
            ("id = \"edm.table1.read\"", "id = \"san.table1.read\"", 3, "must start with \"edm.\""),
            ("accept = [296.5, 302.5]", "accept = [302.5, 296.5]", 3, "above its end"),
            ("accept = [296.5, 302.5]", "accept = [300, 302.5]", 3, "lies outside accept"),
            ("accept = [296.5, 302.5]", "accept = [true, true]", 3, "two numbers"),
            ("paper = 299.52", "paper = [299.52, 1]", 3, "accept must be [low, high]"),
            ("paper = 299.52", "paper = nan", 3, "finite number"),
            ("setting = \"unloaded\"", "setting = \" \"", 3, "setting is empty"),
        ] {
            let error = refused(from, to);
            assert_eq!((error.file.as_str(), error.line), ("claims/edm.toml", line), "{error}");
            assert!(error.reason.contains(words), "{error}");
        }
    }

    #[test]
    fn an_id_occurs_once() {
        let twice = format!("{GOOD}{}", GOOD.replace("paper = \"edm\"", ""));
        let error = parse("edm.toml", &twice).unwrap_err();
        assert!(error.reason.contains("occurs twice") && error.line == 14, "{error}");
    }

    #[test]
    fn lists_of_lists_and_statements_have_intervals_of_their_shape() {
        let nested = GOOD
            .replace("paper = 299.52", "paper = [[2.0, 5.0], [1, 2]]")
            .replace("[296.5, 302.5]", "[[[1.5, 2.6], [3.7, 6.3]], [[0.9, 1.3], [1.5, 2.6]]]");
        assert_eq!(parse("x", &nested).unwrap().claims[0].paper.show(), "(2, 5) (1, 2)");
        let statement = GOOD.replace("paper = 299.52", "paper = true").replace("[296.5, 302.5]", "[true, true]");
        assert_eq!(parse("x", &statement).unwrap().claims[0].accept, Accept::Truth(true));
    }
}
