//! `rackweave describe` and `rackweave schema`: what files mean.

use crate::arguments::{DescribeArguments, SchemaKind};
use crate::failure::{Failure, bad_input, print};
use record::Column;
use serde::Serialize;

/// Prints every column and field, or a page of keys or metrics.
pub fn describe(arguments: &DescribeArguments) -> Result<(), Failure> {
    if let Some(name) = &arguments.page {
        let mut pages: Vec<(String, String)> =
            vec![("metrics".into(), record::metric::page()), ("series".into(), record::series_page())];
        pages.extend(plan::reference::pages().into_iter().map(|page| (page.name, page.text)));
        let (_, text) = pages.iter().find(|(known, _)| known == name).ok_or_else(|| {
            let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
            bad_input(format!("there is no page `{name}`; allowed are {}", names.join(", ")))
        })?;
        return print(text);
    }
    let columns = record::columns();
    if arguments.json {
        return print_json(&columns);
    }
    let mut text = String::new();
    let tables = [
        ("records", "one row a request"),
        ("spans", "one row a span of a request, with `run --spans`"),
        ("series", "one row a sampled value, with the key `record.series`; the metrics follow the columns"),
        ("summary", "one a point or a run"),
    ];
    for (table, what) in tables {
        text += &format!("{table}: {what}\n");
        text.extend(columns.iter().filter(|column| column.table == table).map(entry));
        text.push('\n');
    }
    print(text.trim_end_matches('\n')).and_then(|()| print("\n"))
}

fn entry(column: &Column) -> String {
    let Column { name, r#type, unit, doc, seeds, window, .. } = column;
    let merge = seeds.map_or_else(String::new, |seeds| format!("; seeds: {seeds}"));
    let window = window.as_ref().map_or_else(String::new, |window| format!("; {window}"));
    format!("  {name} ({type}; unit: {unit}{merge}{window})\n      {doc}\n")
}

/// Prints the JSON Schema of a file.
pub fn schema(of: SchemaKind) -> Result<(), Failure> {
    print_json(&match of {
        SchemaKind::Experiment => plan::schema(),
        SchemaKind::Target => plan::target::schema(),
        SchemaKind::Kv => plan::kv::schema(),
        SchemaKind::Jbof => plan::jbof::schema(),
        SchemaKind::Rack => plan::rack::schema(),
    })
}

/// Prints `value` as indented JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Failed(error.to_string()))?;
    print(&(text + "\n"))
}
