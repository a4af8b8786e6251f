//! What is wrong with an experiment file, where, and what would be right.

use base::UnitError;
use std::fmt;

/// Everything that is wrong with an experiment file, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PlanErrors {
    errors: Vec<PlanError>,
}

impl PlanErrors {
    /// Sorts by place and drops what several sweep points report alike. `errors` must not be empty.
    pub(crate) fn new(mut errors: Vec<PlanError>) -> PlanErrors {
        assert!(!errors.is_empty(), "a failure without a reason");
        errors.sort_by(|left, right| (left.place, &left.key).cmp(&(right.place, &right.key)));
        let mut kept: Vec<PlanError> = Vec::new();
        for error in errors {
            match kept.iter_mut().find(|other| other.says_the_same(&error)) {
                Some(known) if known.point != error.point => known.other_points += 1,
                Some(_) => {}
                None => kept.push(error),
            }
        }
        PlanErrors { errors: kept }
    }
    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &PlanError> {
        self.errors.iter()
    }
    /// How many there are.
    pub fn count(&self) -> usize {
        self.errors.len()
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(out, "{separator}{error}")?;
        }
        Ok(())
    }
}

/// One mistake: where it is and what it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.describe())]
pub struct PlanError {
    /// The experiment file, as the caller named it.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// The key path, `workload.load`; empty for the file as a whole.
    pub key: String,
    /// The sweep point at which it shows, `design.name = dctcp`; `None` when it does not depend on
    /// the point.
    pub point: Option<String>,
    /// At how many more points it shows in the same way.
    pub other_points: usize,
    /// What is wrong.
    pub problem: Problem,
}

impl PlanError {
    fn describe(&self) -> String {
        let place = match self.place {
            Place::File { line, column } => format!("{}:{line}:{column}", self.file),
            Place::CommandLine => format!("{} with a setting from outside", self.file),
        };
        let key = if self.key.is_empty() { String::new() } else { format!(" {}:", self.key) };
        format!("{place}:{key} {}{}", self.problem, self.describe_points())
    }
    fn describe_points(&self) -> String {
        match (&self.point, self.other_points) {
            (None, _) => String::new(),
            (Some(point), 0) => format!(" (at the sweep point {point})"),
            (Some(point), others) => format!(" (at the sweep point {point}, and at {others} more)"),
        }
    }
    fn says_the_same(&self, other: &PlanError) -> bool {
        (self.place, &self.key, &self.problem) == (other.place, &other.key, &other.problem)
    }
}

/// Where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the experiment file; both count from 1, columns in characters.
    File {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// Given beside the file (`--set`, `--seed`).
    CommandLine,
}

impl Place {
    /// The beginning of the file.
    pub(crate) const START: Place = Place::File { line: 1, column: 1 };
}

/// Kinds of mistakes. Each message says what was got and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Not TOML.
    #[error("not valid TOML: {reason}")]
    Syntax {
        /// What the parser said.
        reason: String,
    },
    /// A key that means nothing here.
    #[error("unknown key `{got}`{}; allowed are {}", suggestion(.nearest), .allowed.join(", "))]
    UnknownKey {
        /// The key.
        got: String,
        /// The most similar allowed key.
        nearest: Option<String>,
        /// Every key that would do.
        allowed: Vec<String>,
    },
    /// A key by the name that it had in an earlier version.
    #[error("`{got}` is now called `{now}`")]
    Renamed {
        /// The old name.
        got: String,
        /// The name.
        now: String,
    },
    /// A key that must be there.
    #[error("`{wanted}` is missing{why}")]
    Missing {
        /// The key.
        wanted: String,
        /// Why it is needed and what to write; may be empty.
        why: String,
    },
    /// The value has the wrong type.
    #[error("{got} where {expected} belongs")]
    WrongType {
        /// What was written.
        got: String,
        /// What would do.
        expected: String,
    },
    /// A quantity without a unit, with a wrong one, or not exact.
    #[error("{0}")]
    Quantity(UnitError),
    /// A word that is not one of the allowed ones.
    #[error("`{got}` is not allowed{}; allowed are {}", suggestion(.nearest), .allowed.join(", "))]
    NotAllowed {
        /// The word.
        got: String,
        /// The most similar allowed word.
        nearest: Option<String>,
        /// Every word that would do.
        allowed: Vec<String>,
    },
    /// A value outside its range.
    #[error("{got} is out of range; allowed is {allowed}")]
    OutOfRange {
        /// The value.
        got: String,
        /// The range, in words.
        allowed: String,
    },
    /// Values that cannot go together.
    #[error("{0}")]
    Conflict(String),
    /// A referenced file that cannot be opened or does not hold what it should.
    #[error("file `{file}`: {reason}")]
    File {
        /// The file, as written.
        file: String,
        /// The line in it and the reason.
        reason: String,
    },
}

impl Problem {
    /// A key that a table with these keys does not have: an old name of one, or an unknown key.
    pub(crate) fn no_key(got: &str, keys: &serde_json::Map<String, serde_json::Value>) -> Problem {
        match keys.iter().find(|(_, schema)| schema.get("was").is_some_and(|old| old == got)) {
            Some((now, _)) => Problem::Renamed { got: got.into(), now: now.clone() },
            None => Problem::unknown_key(got, keys.keys().cloned().collect()),
        }
    }
    /// An unknown key among `allowed`.
    pub(crate) fn unknown_key(got: &str, allowed: Vec<String>) -> Problem {
        Problem::UnknownKey { got: got.into(), nearest: nearest(got, &allowed), allowed }
    }
    /// A word that is not among `allowed`.
    pub(crate) fn not_allowed(got: &str, allowed: Vec<String>) -> Problem {
        Problem::NotAllowed { got: got.into(), nearest: nearest(got, &allowed), allowed }
    }
    /// A missing key and why it is needed.
    pub(crate) fn missing(wanted: &str, why: &str) -> Problem {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        Problem::Missing { wanted: wanted.into(), why }
    }
    /// A value outside its range.
    pub(crate) fn out_of_range(got: impl fmt::Display, allowed: impl Into<String>) -> Problem {
        Problem::OutOfRange { got: got.to_string(), allowed: allowed.into() }
    }
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|word| format!(", did you mean `{word}`?")).unwrap_or_default()
}

/// The most similar allowed word to `got`, if any is similar.
fn nearest(got: &str, allowed: &[String]) -> Option<String> {
    let likeness = |word: &String| (strsim::jaro_winkler(got, word) * 1e6) as u64;
    allowed.iter().max_by_key(|word| likeness(word)).filter(|word| likeness(word) >= 800_000).cloned()
}

/// Collects mistakes while a file is read.
#[derive(Debug)]
pub(crate) struct Problems {
    file: String,
    point: Option<String>,
    errors: Vec<PlanError>,
}

impl Problems {
    pub(crate) fn new(file: &str, point: Option<String>) -> Problems {
        Problems { file: file.into(), point, errors: Vec::new() }
    }
    pub(crate) fn add(&mut self, place: Place, key: &str, problem: Problem) {
        let (file, point) = (self.file.clone(), self.point.clone());
        self.errors.push(PlanError { file, place, key: key.into(), point, other_points: 0, problem });
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }
    /// All so far, in the order in which they were found.
    pub(crate) fn errors(&self) -> &[PlanError] {
        &self.errors
    }
    /// Keeps those that are wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl FnMut(&PlanError) -> bool) {
        self.errors.retain(is_wanted);
    }
    /// Takes away what was found after the first `kept`.
    pub(crate) fn split_off(&mut self, kept: usize) -> Vec<PlanError> {
        self.errors.split_off(kept)
    }
    /// Adds what was found elsewhere.
    pub(crate) fn extend(&mut self, errors: impl IntoIterator<Item = PlanError>) {
        self.errors.extend(errors);
    }
    pub(crate) fn into_errors(self) -> Vec<PlanError> {
        self.errors
    }
    /// `Ok` when nothing was wrong.
    pub(crate) fn finish(self) -> Result<(), PlanErrors> {
        if self.errors.is_empty() { Ok(()) } else { Err(PlanErrors::new(self.errors)) }
    }
}
