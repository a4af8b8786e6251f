//! Descriptions and results of attacks as text, JSON and JUnit XML.

use nvme::attack::{Attack, Verdict, VerdictClass};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// The description of an attack.
#[derive(Serialize)]
pub struct Explained {
    name: &'static str,
    about: &'static str,
    /// Document and section of the demand.
    source: &'static str,
    demand: &'static str,
    /// Published faults that it stems from.
    origins: Vec<&'static str>,
    /// Allowed alternatives of a target.
    allowed: Vec<String>,
}

impl Explained {
    pub fn new(attack: &Attack) -> Self {
        Explained {
            name: attack.name,
            about: attack.about,
            source: attack.rule.source,
            demand: attack.rule.text,
            origins: attack.origins(),
            allowed: attack.leeway.iter().map(|leeway| format!("{:?}: {}", leeway.kind, leeway.why)).collect(),
        }
    }
}

/// An attack for people.
pub fn explanation(attack: &Attack) -> String {
    let Explained { name, about, source, demand, origins, allowed } = Explained::new(attack);
    let origin = match origins.as_slice() {
        [] => "no published fault; it follows from the demand".into(),
        some => some.join(", "),
    };
    let allowed: String = allowed.iter().map(|what| format!("allowed instead: {what}\n")).collect();
    let sends: String = attack.sends().iter().map(|line| format!("    {line}\n")).collect();
    format!(
        "{name}: {about}\n\ndemanded by {source}:\n    {demand}\n{allowed}stems from: {origin}\n\nwhat the host does, by \
         connection (for a target with capsules of 8 KiB):\n{sends}"
    )
}

/// The result of one attack.
#[derive(Serialize)]
pub struct Shown {
    pub name: &'static str,
    about: &'static str,
    pub class: &'static str,
    pub verdict: String,
    /// Whether the target has no fault.
    pub sound: bool,
    source: &'static str,
    demand: &'static str,
    origins: Vec<&'static str>,
    seconds: f64,
    #[serde(skip)]
    is_applicable: bool,
}

impl Shown {
    pub fn new(attack: &Attack, verdict: &Verdict, took: Duration) -> Self {
        let class = verdict.class();
        Shown {
            name: attack.name,
            about: attack.about,
            class: class.name(),
            verdict: verdict.to_string(),
            sound: class.is_good(),
            source: attack.rule.source,
            demand: attack.rule.text,
            origins: attack.origins(),
            seconds: took.as_secs_f64(),
            is_applicable: class != VerdictClass::NotApplicable,
        }
    }

    /// A fault is a failure; what could not be played, or has killed the target, an error.
    fn case(&self) -> TestCase {
        let kind = match self.class {
            "fault" => NonSuccessKind::Failure,
            _ => NonSuccessKind::Error,
        };
        let mut status = match (self.sound, self.is_applicable) {
            (true, true) => TestCaseStatus::success(),
            (true, false) => TestCaseStatus::skipped(),
            (false, _) => TestCaseStatus::non_success(kind),
        };
        if !(self.sound && self.is_applicable) {
            status.set_message(self.verdict.as_str());
            status.set_description(format!("{}: {}", self.source, self.demand));
        }
        let mut case = TestCase::new(self.name, status);
        case.set_classname("rackweave.attack").set_time(Duration::from_secs_f64(self.seconds));
        case.set_system_out(format!("{}\n{}", self.about, self.verdict));
        case
    }
}

/// All of them in the format of the suffix of `file`.
pub fn report(file: &Path, address: &str, all: &[Shown]) -> Result<String, Box<dyn std::error::Error>> {
    if file.extension().is_none_or(|extension| extension != "xml") {
        return Ok(serde_json::to_string_pretty(all)? + "\n");
    }
    let mut suite = TestSuite::new(format!("rackweave attack {address}"));
    suite.add_test_cases(all.iter().map(Shown::case));
    let mut report = Report::new("rackweave attack");
    report.add_test_suite(suite);
    Ok(report.to_string()?)
}
