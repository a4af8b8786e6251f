//! docs/reference lists every key, made from the schema that checks files: a new key without a
//! document fails here.

use std::fs;
use std::path::{Path, PathBuf};

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(format!("{name}.md"))
}

#[test]
fn the_reference_has_every_key() {
    for page in plan::reference::pages() {
        if std::env::var_os("BLESS").is_some() {
            fs::write(place(&page.name), &page.text).expect("a page can be written");
        }
        let there = fs::read_to_string(place(&page.name)).unwrap_or_default();
        let stale = page.text.lines().find(|line| !there.lines().any(|other| other == *line));
        assert!(
            there == page.text,
            "{} is stale, as in {stale:?}: BLESS=1 cargo test -p plan --test plan reference",
            page.name
        );
    }
}

/// Every key of a table, however deep, in the schema and on some page.
#[test]
fn no_key_of_the_schema_is_on_no_page() {
    let all: String = plan::reference::pages().into_iter().map(|page| page.text).collect();
    let mut keys = 0;
    for (name, table) in plan::schema()["$defs"].as_object().expect("tables have names") {
        for (key, schema) in table["properties"].as_object().into_iter().flatten() {
            let begin = schema["description"].as_str().expect("it is described").replace('\n', " ").replace('|', "\\|");
            let is_row = |line: &str| line.starts_with(&format!("| `{key}` | ")) && line.contains(&begin);
            assert!(all.lines().any(is_row), "{name}.{key}");
            keys += 1;
        }
    }
    assert!(keys > 400, "{keys}");
}

/// CONTRIBUTING shows how a parameter and a rival are added by code of this crate, word for word.
#[test]
fn what_contributing_shows_is_in_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("../../CONTRIBUTING.md")).expect("it is there");
    let files = ["src/scalio/file.rs", "src/rivals/receiver_driven.rs", "src/rivals.rs"];
    let code: String = files.iter().map(|file| fs::read_to_string(root.join(file)).expect("it is there")).collect();
    let blocks: Vec<&str> = text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), files.len());
    for block in blocks {
        assert!(code.contains(block), "not in the code any more:\n{block}");
    }
}
