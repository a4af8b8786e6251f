//! The labels of a sweep as columns of the records: named so that no query has to quote them, typed
//! so that numbers sort as numbers.

use plan::Point;
use record::{Label, LabelValue};
use std::collections::{BTreeMap, BTreeSet};

/// The type of an axis: the narrowest that fits all of its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Integer,
    Number,
    Truth,
    Text,
}

/// For each point the labels of its rows, without design and seed: the same columns for all.
pub fn of_points(points: &[Point]) -> Vec<Vec<Label>> {
    of_maps(&points.iter().map(|point| &point.labels).collect::<Vec<_>>())
}

/// The same for labels as a summary has them: names of axes with values as they are written.
pub fn of_maps(points: &[&BTreeMap<String, String>]) -> Vec<Vec<Label>> {
    let axes: BTreeSet<&str> = points.iter().flat_map(|labels| labels.keys().map(String::as_str)).collect();
    let mut columns: Vec<(&str, String, Type)> = Vec::new();
    for axis in axes {
        let mut name = column(axis);
        // Two axes may differ in a letter alone that no column has.
        while columns.iter().any(|(_, known, _)| *known == name) {
            name.push('_');
        }
        let texts: Vec<&str> = points.iter().filter_map(|labels| labels.get(axis)).map(String::as_str).collect();
        columns.push((axis, name, type_of(&texts)));
    }
    let labels = |point: &&BTreeMap<String, String>| {
        let label = |(axis, name, r#type): &(&str, String, Type)| {
            let text = point.get(*axis).map(String::as_str);
            Label { name: name.clone(), value: value(*r#type, text) }
        };
        columns.iter().map(label).collect()
    };
    points.iter().map(labels).collect()
}

/// `label_io_size` of the axis `io.size`.
fn column(axis: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    Label::PREFIX.to_owned() + &axis.chars().map(safe).collect::<String>()
}

fn type_of(texts: &[&str]) -> Type {
    let fits = |test: fn(&str) -> bool| texts.iter().all(|text| test(text));
    if fits(|text| text.parse::<i64>().is_ok()) {
        Type::Integer
    } else if fits(|text| number(text).is_some()) {
        Type::Number
    } else if fits(|text| text.parse::<bool>().is_ok()) {
        Type::Truth
    } else {
        Type::Text
    }
}

/// Names such as `inf` and `nan` are texts.
fn number(text: &str) -> Option<f64> {
    let is_numeral = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.parse().ok().filter(|_| text.bytes().all(is_numeral))
}

fn value(r#type: Type, text: Option<&str>) -> LabelValue {
    match r#type {
        Type::Integer => LabelValue::Integer(text.and_then(|text| text.parse().ok())),
        Type::Number => LabelValue::Number(text.and_then(number)),
        Type::Truth => LabelValue::Truth(text.and_then(|text| text.parse().ok())),
        Type::Text => LabelValue::Text(text.map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::NoFiles;

    fn labels(sweep: &str) -> Vec<Vec<Label>> {
        let text = "title = \"t\"\nfabric = { nodes = 2, rate = \"100Gbps\" }\ndesign.name = \"edm\"\n\
                    workload.load = 0.5\nrun.requests = 10\n";
        of_points(&plan::parse("t", &format!("{text}{sweep}"), &NoFiles, &[]).unwrap().points(None))
    }

    #[test]
    fn an_axis_has_the_type_that_fits_all_of_its_points() {
        let of = |texts: &[&str]| type_of(texts);
        assert_eq!(of(&["1", "-20"]), Type::Integer);
        assert_eq!(of(&["1", "0.5", "1e6"]), Type::Number);
        assert_eq!(of(&["true", "false"]), Type::Truth);
        for texts in [&["1", "auto"][..], &["4KiB", "1MiB"], &["inf"], &["nan", "1"], &["true", "1"]] {
            assert_eq!(of(texts), Type::Text, "{texts:?}");
        }
    }

    #[test]
    fn every_point_has_every_column() {
        let found = labels("[sweep]\n\"workload.load\" = [0.5, 1]\n\"fabric.nodes\" = [2, 4]\n");
        assert_eq!(found.len(), 4);
        let label = |name: &str, value| Label { name: name.into(), value };
        let first = [
            label("label_fabric_nodes", LabelValue::Integer(Some(2))),
            label("label_workload_load", LabelValue::Number(Some(0.5))),
        ];
        assert_eq!(found[0], first);
        assert!(found[3].contains(&label("label_workload_load", LabelValue::Number(Some(1.0)))));
        assert!(labels("").iter().all(Vec::is_empty), "a point without a sweep has none");
    }
}
