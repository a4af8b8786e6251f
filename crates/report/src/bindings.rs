//! An experiment's measures of claims: `claims.toml` beside it.

use serde::Deserialize;
use toml::Spanned;

use crate::FileError;
use crate::measure::{Measure, RawMeasure};

/// The claims that one experiment measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bindings {
    /// The file, for messages.
    pub file: String,
    /// One a claim, in the order of the file.
    pub bindings: Vec<Binding>,
}

/// The measure of one claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The claim's id in its ledger.
    pub id: String,
    /// The line of its entry.
    pub line: usize,
    /// Measure of our value; absent only if it is not comparable.
    pub measure: Option<Measure>,
    /// Measure of the artifact's value in `published.csv`, if the artifact has one.
    pub artifact: Option<Measure>,
    /// Why ours differs. Shown only when it does.
    pub reason: Option<String>,
    /// A remark for readers.
    pub note: Option<String>,
    /// Why ours cannot be compared with the paper's, when it cannot.
    pub not_comparable: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBindings {
    claim: Vec<Spanned<RawBinding>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBinding {
    id: String,
    measure: Option<RawMeasure>,
    artifact: Option<RawMeasure>,
    reason: Option<String>,
    note: Option<String>,
    comparable: Option<String>,
}

/// Reads `text`, called `name` in errors: `[[claim]]` entries with `id`, `measure` (see
/// [`crate::measure`]) and, as needed, `artifact` (a measure of `published.csv`), `reason`, `note`
/// and `comparable = "no: why"`.
pub fn parse(name: &str, text: &str) -> Result<Bindings, FileError> {
    let raw: RawBindings = toml::from_str(text).map_err(|error| FileError::toml(name, text, &error))?;
    let mut bindings: Vec<Binding> = Vec::with_capacity(raw.claim.len());
    for entry in raw.claim {
        let at = |reason: String| FileError::at(name, text, entry.span().start, reason);
        let line = at(String::new()).line;
        let id = entry.get_ref().id.clone();
        if bindings.iter().any(|binding| binding.id == id) {
            return Err(at(format!("claim {id} is measured twice")));
        }
        let binding = check(line, entry.into_inner());
        bindings.push(binding.map_err(|reason| FileError {
            file: name.to_owned(),
            line,
            reason: format!("claim {id}: {reason}"),
        })?);
    }
    Ok(Bindings { file: name.to_owned(), bindings })
}

fn check(line: usize, raw: RawBinding) -> Result<Binding, String> {
    let translate = |raw: Option<RawMeasure>| raw.map(RawMeasure::check).transpose();
    let measure = translate(raw.measure).map_err(|reason| format!("measure: {reason}"))?;
    let artifact = translate(raw.artifact).map_err(|reason| format!("artifact: {reason}"))?;
    let not_comparable = raw.comparable.map(|text| why_not(&text)).transpose()?;
    if measure.is_none() && not_comparable.is_none() {
        return Err("there is no measure, and it is not said why (comparable = \"no: ...\")".to_owned());
    }
    let told = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    Ok(Binding { id: raw.id, line, measure, artifact, reason: told(raw.reason), note: told(raw.note), not_comparable })
}

fn why_not(text: &str) -> Result<String, String> {
    let why = text.strip_prefix("no:").map(str::trim).filter(|why| !why.is_empty());
    why.map(str::to_owned).ok_or_else(|| format!("comparable = {text:?}: expected \"no: why\", or no such key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_measured_or_told_why_not() {
        let text = "[[claim]]\nid = 'edm.a'\nmeasure = { metric = 'latency_ns.read.mean' }\nreason = ' slow '\n[[claim]]\nid = 'edm.b'\ncomparable = 'no: needs an FPGA'\n";
        let bindings = parse("claims.toml", text).unwrap().bindings;
        assert_eq!(bindings[0].reason.as_deref(), Some("slow"));
        assert_eq!((bindings[1].line, bindings[1].not_comparable.as_deref()), (5, Some("needs an FPGA")));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_claim_and_line() {
        let measured = "measure = { metric = 'events' }";
        for (body, line, words) in [
            ("measure = { metrik = 'a' }".to_owned(), 3, "unknown field `metrik`"),
            (
                "measure = { metric = 'events', reduce = 'most' }".to_owned(),
                1,
                "claim edm.a: measure: reduce = \"most\"",
            ),
            (format!("{measured}\nartifact = {{ scale = 2 }}"), 1, "artifact: a measure needs one of"),
            (format!("{measured}\ncomparable = 'maybe'"), 1, "expected \"no: why\""),
            ("measure = { metric = 'metrics.get' }".to_owned(), 1, "the nearest are metrics.gets"),
            ("measure = { sum = ['events', 'extra.gets'] }".to_owned(), 1, "write `metrics.gets`"),
            ("reason = 'x'".to_owned(), 1, "there is no measure"),
            (format!("{measured}\n[[claim]]\nid = 'edm.a'\n{measured}"), 4, "measured twice"),
        ] {
            let error = parse("edm/fig8a/claims.toml", &format!("[[claim]]\nid = 'edm.a'\n{body}\n")).unwrap_err();
            assert!(error.line == line && error.reason.contains(words), "{body}: {error}");
        }
    }
}
