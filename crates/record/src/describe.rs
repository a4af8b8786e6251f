//! The descriptions of every column of the records and every field of a summary, for `rackweave
//! describe`.

use crate::availability::Availability;
use crate::column::{OPERATION_WORDS, Record};
use crate::keep::SpanRow;
use crate::label::Label;
use crate::metric::{self, Definition};
use crate::row::{Row, SpanKind};
use crate::series::{Series, SeriesRow};
use crate::summarize::ALL_OPERATIONS;
use crate::summary::{Counts, Load, Statistics, Summary};

/// One column of the records, of the spans or of the series, one metric of the series, or one field
/// of a summary.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Column {
    /// The table: `records`, `spans`, `series` or `summary`.
    pub table: &'static str,
    /// Its name; in a summary the path to it, with `<operation>`, `<axis>` and other placeholders.
    pub name: String,
    /// Its unit, or `none`.
    pub unit: &'static str,
    /// Its type.
    pub r#type: &'static str,
    /// Its meaning.
    pub doc: String,
    /// For a metric, how the values of several seeds are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<&'static str>,
    /// For a metric, the part of a run that it covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// The description of a field of a summary's structs, as [`described!`] generates it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    pub unit: &'static str,
    pub rust_type: &'static str,
    /// The lines of the doc comment.
    pub doc: &'static [&'static str],
}

/// Declares a struct whose doc comments the program can read: each field is followed by its unit.
macro_rules! described {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[serde($($serde:tt)+)])?
                pub $field:ident: $type:ty [$unit:literal],
            )+
        }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $(
                $(#[doc = $doc])+
                $(#[serde($($serde)+)])?
                pub $field: $type,
            )+
        }

        impl $name {
            /// The fields with their units and documentation.
            pub(crate) const FIELDS: &'static [$crate::describe::Field] = &[$(
                $crate::describe::Field {
                    name: stringify!($field),
                    unit: $unit,
                    rust_type: stringify!($type),
                    doc: &[$($doc),+],
                },
            )+];
        }
    };
}
pub(crate) use described;

/// Returns every column of the records, of the spans and of the series, in the order of the files,
/// the metrics of series, and then every field of a summary, in the order of the JSON.
pub fn columns() -> Vec<Column> {
    let summary = Summary::FIELDS.iter().flat_map(summary_field);
    let series = table::<SeriesRow>("series").chain(Series::ALL.iter().map(|metric| series_metric(*metric)));
    table::<Row>("records").chain(table::<SpanRow>("spans")).chain(series).chain(summary).collect()
}

/// Returns the dotted paths of all numbers that a summary can have. Names of metric families
/// contain placeholders such as `<stream>`.
pub fn number_paths() -> Vec<String> {
    let operations = || OPERATION_WORDS.into_iter().chain([ALL_OPERATIONS]);
    let numbers = Summary::FIELDS.iter().flat_map(summary_field).filter(|column| is_number(column.r#type));
    let paths = numbers.flat_map(|column| match column.name.contains("<operation>") {
        true => operations().map(|name| column.name.replace("<operation>", name)).collect(),
        false => vec![column.name],
    });
    paths.collect()
}

/// Returns whether a summary can have a number at this dotted path.
pub fn has_number(path: &str) -> bool {
    match path.strip_prefix("metrics.") {
        Some(name) => metric::find(name).is_some(),
        None => number_paths().iter().any(|known| known == path),
    }
}

/// Returns the unit of the number at a dotted path of a summary.
pub fn unit(path: &str) -> Option<&'static str> {
    if let Some(name) = path.strip_prefix("metrics.") {
        return metric::find(name).map(|metric| metric.unit);
    }
    let parts: Vec<&str> = path.split('.').collect();
    let fits = |pattern: &str| {
        let pattern: Vec<&str> = pattern.split('.').collect();
        let fits = |(part, given): (&&str, &&str)| part == given || part.starts_with('<');
        pattern.len() == parts.len() && pattern.iter().zip(&parts).all(fits)
    };
    let fields = Summary::FIELDS.iter().filter(|field| field.name == parts[0]).flat_map(summary_field);
    fields.into_iter().find(|column| fits(&column.name)).map(|column| column.unit)
}

fn is_number(r#type: &str) -> bool {
    r#type == "u64" || r#type.starts_with("f64")
}

fn table<R: Record>(table: &'static str) -> impl Iterator<Item = Column> {
    let labels = Label::COLUMNS.iter().map(move |(name, r#type, doc)| Column {
        table,
        name: (*name).into(),
        unit: "none",
        r#type,
        doc: (*doc).into(),
        seeds: None,
        window: None,
    });
    let columns = R::COLUMNS.iter().map(move |column| Column {
        table,
        name: column.name.into(),
        unit: column.unit,
        r#type: column.type_name(),
        doc: column.doc.into(),
        seeds: None,
        window: None,
    });
    columns.chain(labels)
}

/// Returns the leaves under one field of a summary.
fn summary_field(field: &Field) -> Vec<Column> {
    let name = field.name;
    match name {
        "counts" => nested(field, Counts::FIELDS, name),
        "load" => nested(field, Load::FIELDS, name),
        "availability" => nested(field, Availability::FIELDS, name),
        "latency_ns" | "slowdown" => nested(field, Statistics::FIELDS, &format!("{name}.<operation>")),
        "unloaded_ns" => vec![leaf(field, format!("{name}.<operation>"))],
        "span_mean_ns" => SpanKind::ALL.iter().map(|kind| span_mean(field, *kind)).collect(),
        "labels" => vec![leaf(field, format!("{name}.<axis>"))],
        "metrics" => metric::all().map(|metric| metric_field(field, metric)).collect(),
        _ => vec![leaf(field, name.into())],
    }
}

fn nested(parent: &Field, fields: &[Field], prefix: &str) -> Vec<Column> {
    let inherit = |field: &Field| if field.unit == "inherited" { parent.unit } else { field.unit };
    let place = |field| Column { unit: inherit(field), ..leaf(field, format!("{prefix}.{}", field.name)) };
    let with_parent = |column: Column| Column { doc: format!("{} ({})", column.doc, text(parent.doc)), ..column };
    let quantity = prefix.ends_with("<operation>");
    fields.iter().map(place).map(|column| if quantity { with_parent(column) } else { column }).collect()
}

fn span_mean(field: &Field, kind: SpanKind) -> Column {
    let column = leaf(field, format!("{}.<operation>.{}", field.name, kind.name()));
    Column { doc: format!("{} {}", text(field.doc), kind.doc()), ..column }
}

fn metric_field(field: &Field, metric: &Definition) -> Column {
    let name = metric.name.replace('{', "<").replace('}', ">");
    Column {
        unit: metric.unit,
        doc: metric.doc(),
        seeds: Some(metric.merge().name()),
        window: Some(metric.window.text()),
        ..leaf(field, format!("{}.{name}", field.name))
    }
}

fn series_metric(metric: Series) -> Column {
    let definition = metric.definition();
    Column {
        table: "series",
        name: format!("metric = {}", definition.name),
        unit: definition.unit,
        r#type: "f64",
        doc: definition.doc(),
        seeds: None,
        window: Some(definition.form.name().to_owned()),
    }
}

fn leaf(field: &Field, name: String) -> Column {
    let (unit, r#type, doc) = (field.unit, json_type(field.rust_type), text(field.doc));
    Column { table: "summary", name, unit, r#type, doc, seeds: None, window: None }
}

fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Returns the JSON type of a leaf of this Rust type; for a map, that of its values.
fn json_type(rust_type: &str) -> &'static str {
    let plain: String = rust_type.chars().filter(|character| !character.is_whitespace()).collect();
    match plain.as_str() {
        "u64" => "u64",
        "bool" => "bool",
        "f64" | "BTreeMap<String,f64>" | "BTreeMap<String,BTreeMap<String,f64>>" => "f64",
        "Option<f64>" => "f64, may be absent",
        "String" | "BTreeMap<String,String>" => "string",
        "Vec<u64>" => "list of u64",
        "Vec<String>" => "list of strings",
        other => unreachable!("the summary has a field of the undescribed type {other}"),
    }
}
