//! Numbers of a summary by dotted path.

use std::collections::BTreeMap;

use record::{Summary, has_number, number_paths};

/// Every number of a summary under its dotted path: `latency_ns.read.mean`,
/// `span_mean_ns.read.stack`, `metrics.NAME`, ...
pub(crate) type Flat = BTreeMap<String, f64>;

/// Lists the finite numbers of `summary`. The paths are the field names of [`Summary`], so that the
/// record's schema alone says what can be measured.
pub(crate) fn flatten(summary: &Summary) -> Flat {
    let mut flat = Flat::new();
    // A summary has nothing that JSON cannot say, except non-finite numbers, which become null and
    // are left out.
    walk(String::new(), &serde_json::to_value(summary).unwrap_or_default(), &mut flat);
    flat
}

fn walk(path: String, value: &serde_json::Value, flat: &mut Flat) {
    match value {
        serde_json::Value::Number(number) => {
            flat.extend(number.as_f64().map(|number| (path, number)));
        }
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                walk(if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, value, flat);
            }
        }
        _ => {}
    }
}

/// Names that a message offers for an unknown one.
const NEAREST: usize = 3;

/// Whether a summary can have a number under `path`; if not, why, with the nearest paths. A path
/// that ends with `.*` covers all with that prefix.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    let is_known = match path.strip_suffix('*').filter(|prefix| prefix.ends_with('.')) {
        Some(prefix) => number_paths().iter().any(|known| known.starts_with(prefix)),
        None => has_number(path),
    };
    if is_known {
        return Ok(());
    }
    if let Some(name) = path.strip_prefix("extra.") {
        return Err(format!("`{path}` is an old name: `extra` is called `metrics`, write `metrics.{name}`"));
    }
    Err(format!(
        "a summary has no number `{path}`; the nearest are {}; `rackweave describe` lists all",
        nearest(path).join(", ")
    ))
}

/// The paths that are most like `path`: of its own table, if that is known.
fn nearest(path: &str) -> Vec<String> {
    let table = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
    let mut known = number_paths();
    if known.iter().any(|known| table(known) == table(path)) {
        known.retain(|known| table(known) == table(path));
    }
    known.sort_by_cached_key(|known| std::cmp::Reverse((strsim::jaro_winkler(path, known) * 1e6) as u64));
    known.truncate(NEAREST);
    known
}

/// Suggestions for a path that does not exist: the names that continue the longest part of it that
/// exists.
pub(crate) fn neighbours(flat: &Flat, path: &str) -> String {
    let mut prefix = path;
    loop {
        let start = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
        let mut names: Vec<&str> = flat
            .keys()
            .filter_map(|key| key.strip_prefix(&start))
            .map(|rest| rest.split('.').next().unwrap_or(rest))
            .collect();
        names.dedup();
        if !names.is_empty() {
            let place = if prefix.is_empty() { "a summary" } else { prefix };
            return format!("{place} has {}", names.join(", "));
        }
        match prefix.rfind('.') {
            Some(dot) => prefix = &prefix[..dot],
            None if prefix.is_empty() => return "the summary has no numbers".to_owned(),
            None => prefix = "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Statistics;

    #[test]
    fn every_part_of_a_summary_can_be_named() {
        let mut summary = Summary::default();
        summary.latency_ns.insert("read".into(), Statistics { mean: 300.0, ..Statistics::default() });
        summary.span_mean_ns.entry("read".into()).or_default().insert("stack".into(), 107.52);
        summary.metrics.insert("gets".into(), 1.5);
        summary.load.requests_per_second = 2e6;
        let flat = flatten(&summary);
        for (path, number) in [
            ("latency_ns.read.mean", 300.0),
            ("span_mean_ns.read.stack", 107.52),
            ("metrics.gets", 1.5),
            ("load.requests_per_second", 2e6),
            ("counts.finished", 0.0),
        ] {
            assert_eq!(flat.get(path), Some(&number), "{path}");
        }
        assert_eq!(flat.get("latency_ns.read.mean_ci95"), None);
    }

    #[test]
    fn a_path_that_no_summary_has_is_refused_with_the_nearest() {
        for path in ["metrics.cache_hit_ratio", "metrics.read_4096_bytes_latency_mean_ns", "span_mean_ns.read.*"] {
            assert_eq!(check_path(path), Ok(()));
        }
        for (path, words) in [
            ("metrics.cache_hit_ration", "the nearest are metrics.cache_hit_ratio, "),
            ("metrics.server_cpu_cooking_s", "metrics.server_cpu_<work>_s"),
            ("latency_ns.read.p95", "latency_ns.read.p90, latency_ns.read.p99"),
            ("latency.read.mean", "the nearest are latency_ns.read.mean"),
            ("span_mean_ns.erase.*", "no number `span_mean_ns.erase.*`"),
            ("extra.gets", "write `metrics.gets`"),
        ] {
            let error = check_path(path).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_path_that_is_not_there_tells_what_is() {
        let mut summary = Summary::default();
        summary.span_mean_ns.entry("read".into()).or_default().insert("stack".into(), 1.0);
        let flat = flatten(&summary);
        assert_eq!(neighbours(&flat, "span_mean_ns.write.stack"), "span_mean_ns has read");
        assert!(neighbours(&flat, "nothing").starts_with("a summary has counts"));
    }
}
