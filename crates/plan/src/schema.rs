//! The JSON Schema of the experiment file.

use crate::file::ExperimentFile;
use crate::table::settle;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The JSON Schema (draft 2020-12) of an experiment file: every key with its description, allowed
/// values, unit and default.
///
/// It is not only printed: [`crate::parse`] checks every file against it, so the two cannot
/// disagree.
pub fn schema() -> Value {
    shared_schema().clone()
}

/// The same, made once.
pub(crate) fn shared_schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(schema_of::<ExperimentFile>);
    &SCHEMA
}

/// The schema of a written form.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

/// TOML has no null: an optional key is one that may be absent.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(object) => {
            drop_null(object);
            drop_null_value(object);
            settle(object);
            object.values_mut().for_each(tidy);
            require(object);
        }
        _ => {}
    }
}

/// A table lists the keys that it must have whatever else it has.
fn require(table: &mut Map<String, Value>) {
    let Some(Value::Object(keys)) = table.get_mut("properties") else { return };
    let is_always = |key: &Value| key.get("goesWith").is_none() && key.get("goesIf").is_none();
    let always = keys.iter_mut().filter(|(_, key)| key.get("needed") == Some(&Value::Bool(true)) && is_always(key));
    let mut required = Vec::new();
    for (name, key) in always {
        key.as_object_mut().expect("a key's schema is a table").remove("needed");
        required.push(Value::from(name.as_str()));
    }
    if !required.is_empty() {
        table.insert("required".into(), required.into());
    }
}

fn drop_null(object: &mut Map<String, Value>) {
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    let Some(Value::Array(branches)) = object.get_mut("anyOf") else { return };
    branches.retain(|branch| branch.get("type") != Some(&Value::from("null")));
    if let [Value::Object(only)] = branches.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        only.into_iter().for_each(|(key, value)| {
            object.entry(key).or_insert(value);
        });
    }
}

/// An `Option` in an enum leaves a null among its values.
fn drop_null_value(object: &mut Map<String, Value>) {
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}
