//! The paths used by product code: clocks, sockets, files, threads, unordered maps, `unsafe`.
//!
//! The check uses syntax alone: a name is resolved by the `use` lines of its file. Inside macros,
//! which have no known syntax, every sequence like `a::b::c` counts. Comments, documentation and
//! strings do not.

mod mentions;

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::layers::{Layers, NameRule};
use crate::source::Source;
use mentions::{Mention, mentions};

/// The lines that mention each path of a rule: one finding per file and path, not one per mention.
type Breaches<'a> = BTreeMap<&'a str, Vec<usize>>;

/// Checks all product code, and that every exception for a file is needed.
pub(crate) fn check(layers: &Layers, sources: &[Source]) -> Vec<Finding> {
    let mentioned: Vec<(&Source, Vec<Mention>)> =
        sources.iter().filter(|source| source.is_product).map(|source| (source, mentions(&source.syntax))).collect();
    layers.name.iter().flat_map(|rule| check_rule(rule, &mentioned)).collect()
}

fn check_rule(rule: &NameRule, mentioned: &[(&Source, Vec<Mention>)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unused: Vec<&str> = rule.files.keys().map(String::as_str).collect();
    for (source, mentions) in mentioned.iter().filter(|(source, _)| !rule.crates.contains(&source.crate_name)) {
        let breaches = breaches(rule, mentions);
        if rule.files.contains_key(&source.file) {
            unused.retain(|file| *file != source.file || breaches.is_empty());
        } else {
            findings.extend(breaches.into_iter().map(|(path, lines)| breach(rule, source, path, &lines)));
        }
    }
    findings.extend(unused.into_iter().map(|file| {
        let message = format!("excepts {file} from the rule about {}, and nothing there needs it", rule.what);
        Finding::error("layers.toml", 0, message)
    }));
    findings
}

fn breaches<'a>(rule: &'a NameRule, mentions: &[Mention]) -> Breaches<'a> {
    let mut breaches = Breaches::new();
    for path in &rule.paths {
        let lines: Vec<usize> =
            mentions.iter().filter(|mention| mention.is_of(path)).map(|mention| mention.line).collect();
        if !lines.is_empty() {
            breaches.insert(path, lines);
        }
    }
    breaches
}

fn breach(rule: &NameRule, source: &Source, path: &str, lines: &[usize]) -> Finding {
    let line = lines.iter().copied().min().unwrap_or(0);
    let times = if lines.len() > 1 { format!(" ({} times in this file)", lines.len()) } else { String::new() };
    let message = format!("{path}{times}: {} is not for {}: {}", rule.what, source.crate_name, rule.reason);
    Finding::error(&source.file, line, message)
}
