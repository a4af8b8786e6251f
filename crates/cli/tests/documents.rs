//! What the documents say of the live target's file: docs/reference/target-keys.md is made from the schema that
//! checks files, so that a new key without a document fails here, and every example is one that would be served.

mod support;

use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use support::Home;

const PLACE: &str = "docs/reference/target-keys.md";

const HEAD: &str = "# Every key of the live target

Made from the schema that checks files (`rackweave schema target`) by
`BLESS=1 cargo test --package cli --test documents`. What the keys do together is in
[the live target](target.md).
";

/// The definition that a schema names, or the schema itself.
fn followed<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => root.pointer(&name[1..]).expect("a reference leads into the schema"),
        None => schema,
    }
}

/// Words that may stand for the value, each with its meaning.
fn words(schema: &Value) -> Vec<(String, String)> {
    let text = |value: &Value, key| value[key].as_str().map(str::to_owned).unwrap_or_default();
    let choices = schema["oneOf"].as_array().map_or(&[][..], Vec::as_slice);
    choices.iter().map(|choice| (text(choice, "const"), text(choice, "description"))).collect()
}

fn values(root: &Value, schema: &Value) -> String {
    let schema = followed(root, schema);
    let words = words(schema);
    if !words.is_empty() {
        return words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        return branches.iter().map(|branch| values(root, branch)).collect::<Vec<_>>().join(" or ");
    }
    if let Some(only) = schema["enum"].as_array() {
        return only.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    match schema["type"].as_str().expect("a key has a type") {
        "array" if is_table(root, &schema["items"]) => "tables, below".into(),
        "array" => format!("list of {}", values(root, &schema["items"])),
        "object" => "table, below".into(),
        "integer" => match (&schema["minimum"], &schema["maximum"]) {
            (Value::Null, _) | (_, Value::Null) => "number".into(),
            (least, most) => format!("{least} to {most}"),
        },
        "string" => match schema["examples"][0].as_str() {
            Some(example) => format!("{} such as `\"{example}\"`", schema["format"].as_str().unwrap_or("text")),
            None => "text".into(),
        },
        other => other.into(),
    }
}

fn is_table(root: &Value, schema: &Value) -> bool {
    followed(root, schema)["properties"].is_object()
}

fn row(root: &Value, key: &str, schema: &Value) -> String {
    let mut meaning = schema["description"].as_str().unwrap_or_else(|| panic!("`{key}` has no description")).to_owned();
    for (word, what) in words(followed(root, schema)) {
        write!(meaning, " `{word}`: {what}").expect("a text takes all");
    }
    let default = match schema.get("default") {
        Some(default) => format!("`{default}`"),
        None => String::new(),
    };
    format!("| `{key}` | {} | {default} | {} |\n", values(root, schema), meaning.replace('\n', " ").replace('|', "\\|"))
}

/// The section of a table, and behind it those of the tables inside.
fn section(root: &Value, name: &str, schema: &Value, text: &mut String) {
    let description = schema["description"].as_str().unwrap_or("");
    let title = if name.is_empty() { "The file".to_owned() } else { format!("`{name}`") };
    write!(text, "\n## {title}\n\n{description}\n\n| key | values | default | meaning |\n| --- | --- | --- | --- |\n")
        .expect("a text takes all");
    let properties = schema["properties"].as_object().expect("a table has keys");
    properties.iter().for_each(|(key, schema)| *text += &row(root, key, schema));
    for (key, schema) in properties {
        let inner = name.trim_matches(['[', ']']);
        let path = if inner.is_empty() { key.clone() } else { format!("{inner}.{key}") };
        let items = &followed(root, schema)["items"];
        if is_table(root, items) {
            section(root, &format!("[[{path}]]"), followed(root, items), text);
        } else if is_table(root, schema) {
            section(root, &format!("[{path}]"), followed(root, schema), text);
        }
    }
}

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

#[test]
fn the_reference_has_every_key() {
    let schema: Value = serde_json::from_str(&Home::new().run("schema target")).expect("it is JSON");
    let mut expected = HEAD.to_owned();
    section(&schema, "", &schema, &mut expected);
    if std::env::var_os("BLESS").is_some() {
        fs::write(document(PLACE), &expected).expect("the document can be written");
    }
    let there = fs::read_to_string(document(PLACE)).unwrap_or_default();
    let stale = expected.lines().find(|line| !there.lines().any(|other| other == *line));
    assert!(there == expected, "{PLACE} is stale, as in {stale:?}: BLESS=1 cargo test -p cli --test documents");
}

/// The fenced blocks of TOML.
fn examples(text: &str) -> impl Iterator<Item = &str> {
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next())
}

#[test]
fn every_example_is_a_target_by_itself() {
    let home = Home::new()
        .with("host1.secret", "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:\n")
        .with("host1.key", "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:\n");
    let mut found = 0;
    for name in ["docs/guide/live-target.md", "docs/reference/target.md"] {
        for example in examples(&fs::read_to_string(document(name)).expect("it is there")) {
            found += 1;
            // Secrets and addresses of this machine in the place of the reader's.
            let here = example.replace("/etc/rackweave/", "").replace("10.0.0.1:4420", "127.0.0.1:0");
            let here = here.replace("10.0.1.1:4420", "127.0.0.2:0");
            fs::write(home.path("example.toml"), &here).expect("the home can be written");
            let checked = home.say("target --check --config example.toml");
            if example.contains("tls = \"required\"") && !cfg!(feature = "tls") {
                checked.refused(2, &["built without TLS"]);
            } else {
                assert_eq!(checked.code, Some(0), "{name}:\n{example}\n{checked:?}");
            }
        }
    }
    assert!(found >= 2, "{found} examples were found");
}

/// README.md calls OpenSSL's headers optional: then no build of `make test` may ask for them.
#[test]
fn systemd_reads_the_unit_without_a_complaint() {
    let unit = fs::read_to_string(document("examples/systemd/rackweave-target.service")).expect("it is there");
    let unit = unit.replace("/usr/local/bin/rackweave", env!("CARGO_BIN_EXE_rackweave"));
    let home = Home::new().with("rackweave-target.service", &unit.replace("#LoadCredential", "LoadCredential"));
    let mut analyze = std::process::Command::new("systemd-analyze");
    match analyze.args(["verify", "--man=no"]).arg(home.path("rackweave-target.service")).output() {
        Err(error) => println!("SKIPPED: there is no systemd-analyze: {error}"),
        Ok(verified) => {
            let told = String::from_utf8_lossy(&verified.stderr);
            // It may complain of other units of this machine.
            assert!(verified.status.success() && !told.contains("rackweave-target.service"), "{told}");
        }
    }
}

#[test]
fn make_test_builds_nothing_with_tls_where_it_cannot() {
    let mut make = std::process::Command::new("make");
    make.args(["--dry-run", "test", "TLS=--no-default-features"]).current_dir(document("")).env_remove("MAKEFLAGS");
    let said = String::from_utf8(make.output().expect("make is there").stdout).expect("text");
    let builds = |line: &&str| ["clippy", "cargo test", "cargo doc", "test-go"].iter().any(|word| line.contains(word));
    let lines: Vec<_> = said.lines().filter(builds).collect();
    assert!(lines.len() >= 4, "{said}");
    lines.iter().for_each(|line| assert!(line.contains("--no-default-features"), "{line}"));
}
