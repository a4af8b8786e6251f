//! Findings, and the report of all of them.

use std::fmt;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// To be reviewed.
    Warning,
    /// Fails the check.
    Error,
}

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Whether it fails the check.
    pub severity: Severity,
    /// The file, from the root of the workspace.
    pub file: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The violation, and what is allowed.
    pub message: String,
}

impl Finding {
    /// Creates an error at a line.
    pub(crate) fn error(file: impl Into<String>, line: usize, message: String) -> Finding {
        Finding { severity: Severity::Error, file: file.into(), line, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.severity == Severity::Error { "error" } else { "warning" };
        let line = if self.line == 0 { String::new() } else { format!(":{}", self.line) };
        write!(out, "{severity}: {}{line}: {}", self.file, self.message)
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    crates: usize,
    files: usize,
    findings: Vec<Finding>,
}

impl Report {
    /// Creates a report. Sorts the findings: warnings first, so that errors are next to the last
    /// line, then by location.
    pub(crate) fn new(crates: usize, files: usize, mut findings: Vec<Finding>) -> Report {
        findings.sort();
        Report { crates, files, findings }
    }
    /// Returns the findings, in the order of the printed report.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
    /// Returns whether the check has failed.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(out, "{finding}")?;
        }
        write!(out, "tidy: {} crates, {} files, {} findings", self.crates, self.files, self.findings.len())
    }
}
