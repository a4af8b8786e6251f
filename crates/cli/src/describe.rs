//! `rackweave describe` and `rackweave schema`: what files mean.

use crate::arguments::{DescribeArguments, SchemaKind};
use crate::failure::{Failure, bad_input, print};
use record::Column;
use serde::Serialize;

/// Prints every column and field, or a page of keys.
pub fn describe(arguments: &DescribeArguments) -> Result<(), Failure> {
    if let Some(name) = &arguments.page {
        let pages = spec::reference::pages();
        let page = pages.iter().find(|page| page.name == *name).ok_or_else(|| {
            let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
            bad_input(format!("there is no page `{name}`; allowed are {}", names.join(", ")))
        })?;
        return print(&page.text);
    }
    let columns = record::columns();
    if arguments.json {
        return print_json(&columns);
    }
    let mut text = String::new();
    let tables = [
        ("records", "one row a request"),
        ("spans", "one row a span of a request, with `run --spans`"),
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
    format!("  {} ({}; unit: {})\n      {}\n", column.name, column.r#type, column.unit, column.doc)
}

/// Prints the JSON Schema of a file.
pub fn schema(of: SchemaKind) -> Result<(), Failure> {
    print_json(&match of {
        SchemaKind::Experiment => spec::schema(),
        SchemaKind::Target => spec::target::schema(),
    })
}

/// Prints `value` as indented JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Failed(error.to_string()))?;
    print(&(text + "\n"))
}
