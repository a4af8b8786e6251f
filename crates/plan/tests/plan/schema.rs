//! The JSON Schema and the reader agree, because the reader uses it; and it says what a newcomer
//! needs.

use crate::common;

use crate::common::{DESIGNS, complaints, experiment};
use plan::schema;
use serde_json::Value;

const EXAMPLES: [&str; 4] = [
    include_str!("experiments/every-key.toml"),
    include_str!("experiments/sweep.toml"),
    include_str!("experiments/files.toml"),
    include_str!("experiments/trace.toml"),
];

/// The alternatives of a schema, references followed.
fn branches<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let name = schema.get("$ref").and_then(Value::as_str).map(|name| name.trim_start_matches("#/$defs/"));
    let schema = name.map_or(schema, |name| &root["$defs"][name]);
    match schema.get("anyOf").and_then(Value::as_array) {
        Some(list) => list.iter().flat_map(|branch| branches(root, branch)).collect(),
        None => vec![schema],
    }
}

/// Key paths of `value` that are no property in the schema: a second, independent reading of it.
fn strangers(root: &Value, schema: &Value, value: &toml::Value, path: &str, out: &mut Vec<String>) {
    let branches = branches(root, schema);
    match value {
        toml::Value::Table(table) => {
            for (key, below) in table {
                let path = format!("{path}.{key}");
                match branches.iter().find_map(|branch| branch.get("properties")?.get(key)) {
                    Some(property) => strangers(root, property, below, &path, out),
                    None if branches.iter().any(|branch| branch["additionalProperties"] == Value::Bool(false)) => {
                        out.push(path)
                    }
                    None => {}
                }
            }
        }
        toml::Value::Array(items) => {
            let below = branches.iter().find_map(|branch| branch.get("items"));
            for (item, below) in
                items.iter().zip(std::iter::repeat(below)).filter_map(|(item, below)| Some((item, below?)))
            {
                strangers(root, below, item, &format!("{path}[]"), out);
            }
        }
        _ => {}
    }
}

fn strangers_in(text: &str) -> Vec<String> {
    let (root, mut out) = (schema(), Vec::new());
    strangers(&root, &root, &toml::from_str(text).expect("an example is TOML"), "", &mut out);
    out
}

#[test]
fn every_example_uses_keys_of_the_schema_and_makes_plans() {
    for text in EXAMPLES {
        assert_eq!(strangers_in(text), [""; 0]);
        assert!(!experiment(text).points(None).is_empty());
    }
}

#[test]
fn an_unknown_key_fails_by_the_schema_and_by_the_reader() {
    for (line, path) in [
        ("[memory]", ".memory.colour"),
        ("[[fault]]", ".fault[].colour"),
        ("[design.edm]", ".design.edm.colour"),
        ("[[background.stream]]", ".background.stream[].colour"),
    ] {
        let text = EXAMPLES[0].replacen(line, &format!("{line}\ncolour = 1"), 1);
        assert_eq!(strangers_in(&text), [path]);
        assert!(complaints(&text)[0].contains("unknown key `colour`"));
    }
}

fn visit<'a>(value: &'a Value, path: String, see: &mut dyn FnMut(&str, &'a Value)) {
    see(&path, value);
    match value {
        Value::Object(object) => object.iter().for_each(|(key, below)| visit(below, format!("{path}/{key}"), see)),
        Value::Array(items) => items.iter().for_each(|below| visit(below, format!("{path}/-"), see)),
        _ => {}
    }
}

#[test]
fn every_key_is_described() {
    visit(&schema(), String::new(), &mut |path, value| {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            for (key, property) in properties {
                assert!(property["description"].as_str().is_some_and(|text| text.len() > 5), "{path}/{key}");
            }
        }
    });
}

#[test]
fn quantities_have_a_pattern_that_their_default_and_example_meet() {
    let mut seen = 0;
    visit(&schema(), String::new(), &mut |path, value| {
        let Some(pattern) = value.get("pattern").and_then(Value::as_str) else { return };
        let units = pattern.rsplit_once('(').unwrap().1.trim_end_matches(r")\s*$");
        let examples = value["examples"].as_array().into_iter().flatten().chain(value.get("default"));
        for text in examples.filter_map(Value::as_str) {
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            assert!(units.split('|').any(|allowed| allowed == unit), "{path}: {text}");
            seen += 1;
        }
    });
    assert!(seen > 40, "{seen}");
}

/// On the rack that the schema shows defaults for, a design without a table prints exactly those.
#[test]
fn every_default_of_the_schema_is_in_the_resolved_plan() {
    let root = schema();
    for design in DESIGNS.iter() {
        let text = common::with("name = \"edm\"", &format!("name = \"{design}\""));
        let printed: Value = serde_json::to_value(common::plan(&text)).unwrap();
        for section in ["fabric", "memory", "run"] {
            defaults_are_printed(&root, &root["properties"][section], &printed[section], section);
        }
        let tables = branches(&root, &root["properties"]["design"])[0];
        defaults_are_printed(&root, &tables["properties"][design], &printed["design"][design], design);
        assert_eq!(printed["seed"], root["properties"]["seed"]["default"]);
    }
}

fn defaults_are_printed(root: &Value, schema: &Value, printed: &Value, name: &str) {
    let table = branches(root, schema)[0];
    for (key, property) in table["properties"].as_object().unwrap() {
        // What only a SAN reads is tried with a SAN. A key that goes with a choice is printed with
        // it; what a preset stands for is printed key by key.
        let is_elsewhere = !property["goesWith"].is_null() || !property["goesIf"].is_null() || key == "preset";
        if let Some(default) = property.get("default").filter(|_| !is_elsewhere || !printed[key].is_null()) {
            let (shown, got) = (default.to_string(), printed[key].to_string());
            assert!(same(default, &printed[key]), "{name}.{key}: {shown} in the schema, {got} in the plan");
        }
    }
}

fn same(left: &Value, right: &Value) -> bool {
    let span = |value: &Value| value.as_str().and_then(|text| text.parse::<base::Span>().ok());
    left == right || (span(left).is_some() && span(left) == span(right))
}

#[test]
fn the_defaults_of_the_workload_are_printed_too() {
    let printed = serde_json::to_value(common::plan(common::SMALL)).unwrap();
    let workload = &printed["workload"];
    assert_eq!((&workload["pattern"], &workload["arrivals"]), (&"all-to-all".into(), &"poisson".into()));
    assert_eq!(workload["load_basis"], "link");
    assert_eq!(workload["mix"].as_array().unwrap().len(), 2);
    assert_eq!(workload["mix"][0]["size"], "64B");
    assert_eq!(workload["mix"][0]["weight"], 0.5);
}
