//! Tests that everything is described, and nothing else.

use crate::support::{dataset, read, summarizer, summary};
use base::{Operation, Span, Time};
use parquet::file::reader::{FileReader, SerializedFileReader};
use record::{Availability, SpanKind, Summary, columns, has_number, metric, number_paths};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn described(table: &str) -> Vec<String> {
    columns().into_iter().filter(|column| column.table == table).map(|column| column.name).collect()
}

#[test]
fn the_columns_of_the_file_are_the_described_columns_in_their_order() {
    let bytes = bytes::Bytes::from(dataset(&[], 1).parts.remove(0));
    let file = SerializedFileReader::new(bytes).unwrap();
    let schema = file.metadata().file_metadata().schema();
    let names: Vec<String> = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    let described = described("records");
    let (columns, labels) = described.split_at(names.len());
    assert_eq!((columns, labels), (&names[..], &["design", "seed", "label_<axis>"].map(String::from)[..]));
}

#[test]
fn every_kind_of_span_has_its_column_named_for_it() {
    let names = described("records");
    let spans: Vec<String> = names.into_iter().filter(|name| name.starts_with("span_")).collect();
    let expected: Vec<String> = SpanKind::ALL.iter().map(|kind| format!("span_{}_ps", kind.name())).collect();
    assert_eq!(spans, expected);
}

/// Builds a summary with every field present and an entry in every map and list.
fn full_summary() -> Summary {
    let mut row = read(0, Time::ZERO, Span::ns(1), Span::ns(1));
    row.operation = Operation::Write;
    let pool = summarizer(std::slice::from_ref(&row), Time::ZERO).pool();
    let mut one = summary(&[row], Time::ns(2));
    one.seeds = vec![1];
    one.load.planned = Some(0.5);
    one.availability = Some(Availability { requests: 1, recovery_ns: Some(0.0), ..Availability::default() });
    one.labels = BTreeMap::from([("load".into(), "0.5".into())]);
    let two = Summary { seeds: vec![2], ..one.clone() };
    // Under the declared names: one name stands for its whole family.
    let metrics = metric::all().map(|metric| (metric.name.into(), 1.0)).collect();
    let mut full = Summary { metrics, ..Summary::over_seeds(&[one, two], &pool).unwrap() };
    let statistics = full.latency_ns.values_mut().chain(full.slowdown.values_mut());
    statistics.for_each(|statistics| statistics.lower_bound_from = Some(0.99));
    full
}

/// Collects the paths to the leaves, as `columns` writes them.
fn leaves(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Value::Object(fields) = value else {
        found.insert(path.to_owned());
        return;
    };
    for (key, value) in fields {
        let key = match path {
            "" => key.clone(),
            "latency_ns" | "slowdown" | "unloaded_ns" | "span_mean_ns" => format!("{path}.<operation>"),
            "labels" => format!("{path}.<axis>"),
            "metrics" => format!("{path}.{}", key.replace('{', "<").replace('}', ">")),
            _ => format!("{path}.{key}"),
        };
        leaves(value, &key, found);
    }
}

#[test]
fn the_fields_of_a_summary_are_the_described_fields() {
    let mut found = BTreeSet::new();
    leaves(&serde_json::to_value(full_summary()).unwrap(), "", &mut found);
    let described = described("summary");
    assert_eq!(found, described.iter().cloned().collect());
    assert_eq!(found.len(), described.len(), "nothing is described twice");
}

#[test]
fn every_number_of_a_summary_has_a_known_path_and_nothing_else_has() {
    for path in [
        "latency_ns.read-modify-write.p99",
        "span_mean_ns.all.flash",
        "unloaded_ns.all",
        "metrics.background_ip_latency_p99_ns",
        "availability.fraction",
        "events",
    ] {
        assert!(has_number(path), "{path}");
    }
    for path in ["latency_ns.reads.p99", "latency_ns", "labels.load", "partial", "metrics.grants", "gets", ""] {
        assert!(!has_number(path), "{path}");
    }
    assert!(number_paths().contains(&"metrics.background_<stream>_latency_mean_ns".to_owned()));
}

#[test]
fn every_description_says_something_and_names_its_unit() {
    for column in columns() {
        assert!(column.doc.len() > 10 && column.doc.ends_with(['.', ')']), "{column:?}");
        assert!(!column.unit.is_empty() && column.unit != "inherited", "{column:?}");
        assert!(!column.name.ends_with("_ps") || column.unit == "ps", "{column:?}");
        assert!(!column.name.contains("_ns") || ["ns", "requests", "fraction"].contains(&column.unit), "{column:?}");
    }
}
