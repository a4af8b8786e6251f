//! The check of `cargo xtask tidy`: that the workspace keeps the rules of `layers.toml`.
//!
//! * [`Layers`] is the rule file; a rule without a reason, and an unused exception, are errors too.
//! * `workspace` reads the crates and their dependencies from cargo; `source` parses their sources.
//! * `floors` checks dependencies, `names` the paths used by product code, `sizes` functions and
//!   files.
//! * `words` checks documents and comments: columns, words of a sentence, doc lines without
//!   information.
//! * `weight` checks that no file in the tree is large: a commit keeps it for ever.
//!
//! Product code is `src/` without the code marked `#[cfg(test)]`: tests, examples and benchmarks
//! may open files and read clocks.

mod finding;
mod floors;
mod layers;
pub mod markdown;
mod names;
mod product;
mod sizes;
mod source;
mod weight;
mod words;
mod workspace;

use std::path::Path;

use anyhow::Context;

pub use finding::{Finding, Report, Severity};
pub use layers::Layers;

/// Checks the workspace at `root` by its `layers.toml`.
///
/// # Errors
/// When the workspace or its rules cannot be read. A violation of a rule is a [`Finding`] and not
/// an error.
pub fn tidy(root: &Path) -> anyhow::Result<Report> {
    let file = root.join("layers.toml");
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let layers = Layers::parse(&text).with_context(|| file.display().to_string())?;
    let crates = workspace::crates(root)?;
    let mut sources = Vec::new();
    for one in &crates {
        sources.extend(source::read_all(root, one)?);
    }
    let mut findings = floors::check(&layers, &crates);
    findings.extend(names::check(&layers, &sources));
    findings.extend(sources.iter().flat_map(|source| sizes::check(&layers.limits, source)));
    findings.extend(words::check(&layers.text, root, &crates)?);
    findings.extend(weight::check(root, layers.limits.tree_file_kib)?);
    Ok(Report::new(crates.len(), sources.len(), findings))
}
