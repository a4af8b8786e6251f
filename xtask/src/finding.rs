//! What breaks a rule, and the list of all that does.

use std::fmt;

/// Whether a finding fails the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// To be looked at.
    Warning,
    /// Fails the check.
    Error,
}

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Whether it fails the check.
    pub severity: Severity,
    /// The file, from the root of the workspace.
    pub file: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Finding {
    /// An error at a place.
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

/// Everything that was looked at and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    crates: usize,
    files: usize,
    findings: Vec<Finding>,
}

impl Report {
    /// Sorts the findings: warnings first, so that errors stand next to the last line, then by
    /// place.
    pub(crate) fn new(crates: usize, files: usize, mut findings: Vec<Finding>) -> Report {
        findings.sort();
        Report { crates, files, findings }
    }
    /// What was found, in the order of the printed report.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
    /// Whether the check has failed.
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
