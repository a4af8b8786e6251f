//! Which tables of a file can be believed while others are wrong, so that each mistake is reported
//! for itself and none as a consequence of another.
//!
//! A key that the schema refuses is taken out, and its table is *broken*: what else is found there
//! may follow from the missing key, and is not reported. A table with a mistake of any kind is
//! *unsound*: checks of other tables that depend on it ([`Soundness::holds`]) are left out.

use crate::document::{Node, Value};
use crate::error::{PlanError, Problem};
use std::collections::BTreeSet;

/// What is known of the tables of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Soundness {
    /// Keys that were taken out, or are missed already.
    keys: BTreeSet<String>,
    broken: BTreeSet<String>,
    unsound: BTreeSet<String>,
}

impl Soundness {
    /// Takes out of `document` what the schema refused.
    pub(crate) fn take_out(&mut self, document: &mut Node, errors: &[PlanError]) {
        for error in errors {
            match &error.problem {
                Problem::UnknownKey { got, nearest, .. } => {
                    self.break_key(&join(&error.key, got));
                    document.take_out(&join(&error.key, got));
                    // What was misspelt is not missing.
                    nearest.iter().for_each(|meant| self.break_key(&join(&error.key, meant)));
                }
                Problem::Renamed { got, now } => {
                    document.take_out(&join(&error.key, got));
                    [got, now].into_iter().for_each(|key| self.break_key(&join(&error.key, key)));
                }
                Problem::Missing { wanted, .. } => self.break_key(&join(&error.key, wanted)),
                _ => {
                    let key = key_of(document, &error.key);
                    self.break_key(&key);
                    document.take_out(&key);
                }
            }
        }
    }

    /// Whatever the key's table would say is not known.
    pub(crate) fn break_key(&mut self, key: &str) {
        self.keys.insert(key.to_owned());
        self.broken.insert(table_of(key).to_owned());
        self.mark(key);
    }

    /// The key's table has a mistake.
    pub(crate) fn mark(&mut self, key: &str) {
        self.unsound.insert(table_of(key).to_owned());
    }

    /// Whether the schema refused something of the key's table.
    pub(crate) fn is_broken(&self, key: &str) -> bool {
        let table = table_of(key);
        self.broken.iter().any(|broken| broken == table || is_below(table, broken))
    }

    /// Whether a mistake says again that a key is missing.
    pub(crate) fn is_known(&self, error: &PlanError) -> bool {
        matches!(&error.problem, Problem::Missing { wanted, .. } if self.keys.contains(&join(&error.key, wanted)))
    }

    /// Whether a key was taken out, or is missed already.
    pub(crate) fn is_missed(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Whether no mistake is known of any of `tables`.
    pub(crate) fn holds(&self, tables: &[&str]) -> bool {
        let is_about =
            |unsound: &str, table: &str| unsound == table || is_below(unsound, table) || is_below(table, unsound);
        !tables.iter().any(|table| self.unsound.iter().any(|unsound| is_about(unsound, table)))
    }
}

/// The table of a key: up to its last index, else its first name. The tables of designs count one
/// by one.
fn table_of(key: &str) -> &str {
    let starts = || key.match_indices('.').map(|(at, _)| at).chain([key.len()]);
    let is_index = |end: &usize| {
        let last = key[..*end].rsplit('.').next().unwrap_or_default();
        !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
    };
    let names = if key.starts_with("design.") { 1 } else { 0 };
    let end = starts().rfind(is_index).or_else(|| starts().nth(names));
    &key[..end.unwrap_or(key.len())]
}

/// The innermost key of a table on the way to `path`: lists are taken out whole.
fn key_of(document: &Node, path: &str) -> String {
    let (mut node, mut walked, mut key) = (document, String::new(), path.to_owned());
    for name in path.split('.') {
        walked = join(&walked, name);
        if let Value::Table(_) = node.value {
            key.clone_from(&walked);
        }
        match node.child(name) {
            Some(child) => node = child,
            None => break,
        }
    }
    key
}

/// Whether `path` is a key of the table `table`.
fn is_below(path: &str, table: &str) -> bool {
    path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

/// The path of `key` in the table at `path`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Problems;

    #[test]
    fn a_keys_table_is_the_innermost_that_has_a_number_else_the_outermost() {
        for (key, table) in [
            ("seed", "seed"),
            ("flash.steady.window", "flash"),
            ("fault.3.node", "fault.3"),
            ("workload.mix.0.size.cdf", "workload.mix.0"),
            ("design.name", "design.name"),
            ("design.edm.chunk", "design.edm"),
            ("", ""),
        ] {
            assert_eq!(table_of(key), table);
        }
    }

    #[test]
    fn a_list_is_taken_out_whole_and_a_table_of_a_list_stays() {
        let mut problems = Problems::new("", None);
        let text = "io.sizes = [['4KiB', 'x']]\n[[fault]]\nat = 5\nnode = 1\n";
        let mut document = Node::parse(text, &mut problems);
        let place = document.place;
        for key in ["io.sizes.0.1", "fault.0.at"] {
            problems.add(place, key, Problem::Conflict("wrong".into()));
        }
        let mut soundness = Soundness::default();
        soundness.take_out(&mut document, problems.errors());
        assert_eq!(document.to_json(), serde_json::json!({ "io": {}, "fault": [{ "node": 1 }] }));
        assert!(soundness.is_broken("io.size") && soundness.is_broken("fault.0.node"));
        assert!(!soundness.is_broken("fault.1.node") && !soundness.holds(&["fault"]) && soundness.holds(&["run"]));
    }
}
