//! The rules of `layers.toml`.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde::Deserialize;

/// The rule file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// The floors of the house, lowest first.
    pub(crate) floor: Vec<Floor>,
    /// Crates outside the house: no crate may import them, and they may import any.
    pub(crate) outside: Outside,
    /// Rules about imports beyond the floors.
    #[serde(default)]
    pub(crate) import: Vec<ImportRule>,
    /// Names that product code may mention in few places only.
    #[serde(default)]
    pub(crate) name: Vec<NameRule>,
    /// Size limits of functions and files.
    pub(crate) limits: Limits,
    /// Rules about documents and comments.
    #[serde(default)]
    pub(crate) text: Text,
}

/// One floor. Its number is its index in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Floor {
    /// The name, which [`ImportRule::of`] may use.
    pub name: String,
    /// Its crates, including planned ones.
    pub crates: Vec<String>,
}

/// Crates outside the house.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outside {
    /// Their names.
    pub crates: Vec<String>,
}

/// Restrictions on the imports of a crate, or of every crate of a floor, although the imported
/// crate is on a lower floor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportRule {
    /// A floor or a crate.
    pub of: String,
    /// Crates that it never imports.
    #[serde(default)]
    pub never: Vec<String>,
    /// The only crates of the workspace that it imports.
    pub only: Option<Vec<String>>,
    /// The reason, printed with each violation.
    pub reason: String,
}

/// Names that product code may mention in few places only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NameRule {
    /// The meaning of the names, in a word or two.
    pub what: String,
    /// Paths such as `std::time::Instant`; each includes everything below it. The keyword `unsafe`
    /// is also a path.
    pub paths: Vec<String>,
    /// Crates that may mention them.
    #[serde(default)]
    pub crates: Vec<String>,
    /// Files that may mention them, each with its reason.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The reason, printed with each violation.
    pub reason: String,
}

/// Sizes in lines; for files, without code marked `#[cfg(test)]`. Above the first a warning, above
/// the second an error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// A function from its `fn` to its closing brace, unless its body is one `match` of short arms.
    pub function_lines: [usize; 2],
    /// A file under `src/`.
    pub file_lines: [usize; 2],
    /// The longest arm of a `match` that only dispatches.
    pub dispatch_arm_lines: usize,
    /// Any file that git tracks, or does not ignore, in KiB.
    pub tree_file_kib: u64,
}

/// Rules about documents and comments.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    /// Maximum columns of a line of prose or of a comment; tables and code may be wider.
    pub columns: usize,
    /// Maximum words of a sentence in a document.
    pub words: usize,
    /// Markdown files, and folders of them.
    pub documents: Vec<String>,
    /// Crates whose comments are checked.
    pub crates: Vec<String>,
    /// Doc lines without information.
    pub stubs: Vec<String>,
}

impl Layers {
    /// Parses a rule file.
    ///
    /// # Errors
    /// When it is not of this form, names a crate twice, or has a rule about an unknown crate.
    pub fn parse(text: &str) -> anyhow::Result<Layers> {
        let layers: Layers = toml::from_str(text)?;
        layers.check_crates()?;
        for rule in &layers.import {
            layers.check_names(&rule.of, std::slice::from_ref(&rule.of))?;
            layers.check_names(&rule.of, &rule.never)?;
            layers.check_names(&rule.of, rule.only.as_deref().unwrap_or_default())?;
            ensure!(!rule.reason.is_empty(), "the import rule of {} has no reason", rule.of);
        }
        layers.check_names("text", &layers.text.crates)?;
        for rule in &layers.name {
            layers.check_names(&rule.what, &rule.crates)?;
            let reasons = [&rule.reason].into_iter().chain(rule.files.values());
            ensure!(reasons.into_iter().all(|reason| !reason.is_empty()), "{}: a reason is missing", rule.what);
        }
        Ok(layers)
    }

    /// Returns the floor of a crate; `None` for crates outside the floors and for unknown crates.
    pub(crate) fn floor_of(&self, name: &str) -> Option<usize> {
        self.floor.iter().position(|floor| floor.crates.iter().any(|other| other == name))
    }

    /// Returns whether a crate is outside the floors.
    pub(crate) fn is_outside(&self, name: &str) -> bool {
        self.outside.crates.iter().any(|other| other == name)
    }

    /// Returns the rules about the imports of a crate.
    pub(crate) fn import_rules(&self, name: &str) -> impl Iterator<Item = &ImportRule> {
        let floor = self.floor_of(name).map(|number| self.floor[number].name.as_str());
        self.import.iter().filter(move |rule| rule.of == name || Some(rule.of.as_str()) == floor)
    }

    fn check_crates(&self) -> anyhow::Result<()> {
        let all = self.floor.iter().flat_map(|floor| &floor.crates).chain(&self.outside.crates);
        let mut names: Vec<&String> = all.collect();
        names.sort();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        ensure!(twice.is_none(), "the crate {} stands in two places", twice.map_or("", |pair| pair[0]));
        Ok(())
    }

    fn check_names(&self, rule: &str, names: &[String]) -> anyhow::Result<()> {
        for name in names {
            let is_floor = self.floor.iter().any(|floor| floor.name == *name);
            let stands = is_floor || self.floor_of(name).is_some() || self.is_outside(name);
            ensure!(stands, "the rule {rule} names {name}, which is neither a floor nor a crate of one");
        }
        Ok(())
    }
}
