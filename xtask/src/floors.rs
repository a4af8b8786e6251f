//! Dependencies between crates: only to lower floors, and not all of those.

use crate::finding::Finding;
use crate::layers::{ImportRule, Layers};
use crate::workspace::Crate;

/// Checks every dependency of every crate.
pub(crate) fn check(layers: &Layers, crates: &[Crate]) -> Vec<Finding> {
    crates.iter().flat_map(|one| check_crate(layers, one)).collect()
}

fn check_crate(layers: &Layers, one: &Crate) -> Vec<Finding> {
    if layers.is_outside(&one.name) {
        return Vec::new();
    }
    let Some(floor) = layers.floor_of(&one.name) else {
        let message = format!("the crate {} stands on no floor of layers.toml and not outside either", one.name);
        return vec![Finding::error(&one.manifest, 0, message)];
    };
    let breaches =
        one.imports.iter().flat_map(|import| breaches(layers, &one.name, floor, import).map(move |why| (import, why)));
    breaches
        .map(|(import, why)| {
            let message = format!("{} (floor {floor}) must not import {import}: {why}", one.name);
            Finding::error(&one.manifest, one.line_of(import), message)
        })
        .collect()
}

/// Returns the reasons why `name` on `floor` must not import `import`; none if it may.
fn breaches<'a>(layers: &'a Layers, name: &'a str, floor: usize, import: &'a str) -> impl Iterator<Item = String> + 'a {
    let by_floor = match layers.floor_of(import) {
        Some(below) if below < floor => None,
        Some(other) => Some(format!("it stands on floor {other}, and imports go to lower floors only")),
        None => Some("it stands outside the house".to_owned()),
    };
    let by_rule = layers.import_rules(name).filter(move |rule| forbids(rule, import)).map(|rule| rule.reason.clone());
    by_floor.into_iter().chain(by_rule)
}

fn forbids(rule: &ImportRule, import: &str) -> bool {
    let names = |list: &[String]| list.iter().any(|name| name == import);
    names(&rule.never) || rule.only.as_deref().is_some_and(|only| !names(only))
}
