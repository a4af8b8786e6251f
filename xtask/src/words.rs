//! The style of texts: columns of comments and Markdown, words of a sentence, doc lines without
//! information.

use std::path::Path;

use crate::finding::Finding;
use crate::layers::Text;
use crate::markdown::{self, Kind};
use crate::source;
use crate::workspace::{Crate, relative};

/// Checks the documents and the comments of the crates that `rules` lists.
///
/// # Errors
/// When a listed file or folder cannot be read.
pub(crate) fn check(rules: &Text, root: &Path, crates: &[Crate]) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in &rules.documents {
        for path in source::files(&root.join(name), "md")? {
            findings.extend(check_document(rules, &relative(root, &path), &std::fs::read_to_string(path)?));
        }
    }
    for one in crates.iter().filter(|one| rules.crates.contains(&one.name)) {
        for path in source::files(&one.folder, "rs")? {
            findings.extend(check_comments(rules, &relative(root, &path), &std::fs::read_to_string(path)?));
        }
    }
    Ok(findings)
}

/// Checks one document. Pages generated from the schema are exempt, as they are as wide as its
/// texts.
fn check_document(rules: &Text, file: &str, text: &str) -> Vec<Finding> {
    if text.contains("\nMade from the schema") {
        return Vec::new();
    }
    let lines = text.lines().zip(markdown::kinds(text)).enumerate();
    let prose = lines.filter(|(_, (_, kind))| matches!(kind, Kind::Prose | Kind::Item));
    let wide = prose.filter_map(|(number, (line, _))| {
        let columns = too_wide(rules, line)?;
        Some(Finding::error(file, number + 1, format!("{columns} columns, at most {}", rules.columns)))
    });
    let long = markdown::sentences(text).into_iter().filter_map(|(line, sentence)| {
        let words = sentence.split_whitespace().count();
        let message = || format!("a sentence of {words} words, at most {}: {sentence}", rules.words);
        (words > rules.words).then(|| Finding::error(file, line, message()))
    });
    wide.chain(long).collect()
}

/// Checks the comments of one source.
fn check_comments(rules: &Text, file: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
    let finding = |(number, line): (usize, &str)| {
        let message = if let Some(columns) = too_wide(rules, line) {
            format!("{columns} columns, at most {}", rules.columns)
        } else if rules.stubs.iter().any(|stub| line.trim_start().strip_prefix("/// ") == Some(stub)) {
            format!("`{}` says nothing: give meaning and unit, or leave it out", line.trim())
        } else {
            return None;
        };
        Some(Finding::error(file, number + 1, message))
    };
    lines.filter_map(finding).collect()
}

/// Returns the columns of a line that is too wide and could be broken. Rows of tables could not.
fn too_wide(rules: &Text, line: &str) -> Option<usize> {
    let text = line.trim_start().trim_start_matches(['/', '!', '-', ' ']);
    let columns = line.chars().count();
    (columns > rules.columns && text.contains(' ') && !text.starts_with('|')).then_some(columns)
}
