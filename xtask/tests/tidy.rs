//! Tests with small workspaces that keep the rules, and with one that breaks each rule.

use std::path::Path;

use tempfile::TempDir;
use xtask::{Layers, Report, Severity, tidy};

const LAYERS: &str = r#"
floor = [
    { name = "ground", crates = ["base"] },
    { name = "parts", crates = ["hardware", "record"] },
    { name = "rooms", crates = ["edm"] },
    { name = "outlet", crates = ["report"] },
    { name = "doors", crates = ["cli"] },
]
outside.crates = ["bench"]
import = [
    { of = "rooms", never = ["hardware"], reason = "designs meet hardware in a rig" },
    { of = "report", only = ["base", "record"], reason = "figures come from records" },
]
limits = { function_lines = [5, 8], file_lines = [20, 30], dispatch_arm_lines = 2, tree_file_kib = 64 }
[[name]]
what = "the clock"
paths = ["std::time::Instant"]
crates = ["cli"]
files = { "crates/base/src/clock.rs" = "the one door to it" }
reason = "time is an argument"
[[name]]
what = "an unordered container"
paths = ["std::collections::HashMap"]
reason = "its order leaks"
[[name]]
what = "unsafe code"
paths = ["unsafe"]
reason = "nothing needs it"
"#;

/// A workspace in a temporary folder, with the one file that `LAYERS` excepts.
struct Tree(TempDir);

impl Tree {
    fn new() -> Tree {
        let tree = Tree(TempDir::new().unwrap());
        let tree = tree.file("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
        let clock = "pub fn now() -> std::time::Instant { std::time::Instant::now() }\n";
        tree.file("layers.toml", LAYERS).member("base", &[], "").file("crates/base/src/clock.rs", clock)
    }
    fn file(self, path: &str, text: &str) -> Tree {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }
    /// Adds a crate with dependencies on others, each given as a whole line of the manifest or as
    /// the name of a sibling.
    fn member(self, name: &str, imports: &[&str], code: &str) -> Tree {
        let line = |import: &&str| match import.contains('=') {
            true => format!("{import}\n"),
            false => format!("{import} = {{ path = \"../{import}\" }}\n"),
        };
        let lines: String = imports.iter().map(line).collect();
        let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\n{lines}");
        self.file(&format!("crates/{name}/Cargo.toml"), &manifest).file(&format!("crates/{name}/src/lib.rs"), code)
    }
    fn tidy(&self) -> Report {
        tidy(self.0.path()).unwrap_or_else(|error| panic!("{error:#}"))
    }
    /// Returns the only finding of a tree that breaks one rule, as printed.
    fn only_finding(&self) -> String {
        let report = self.tidy();
        assert_eq!(report.findings().len(), 1, "{report}");
        report.findings()[0].to_string()
    }
    fn passes(&self) {
        let report = self.tidy();
        assert!(report.findings().is_empty(), "{report}");
    }
    /// Returns the finding about a crate `edm` with this code, which must be the only one.
    fn finding_in(code: &str) -> String {
        Tree::new().member("edm", &[], code).only_finding()
    }
    fn passes_with(code: &str) {
        Tree::new().member("edm", &[], code).passes();
    }
}

/// Returns a function of this many lines.
fn function(lines: usize) -> String {
    format!("fn long() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
}

#[test]
fn imports_that_go_down_pass_and_the_last_line_counts_what_was_seen() {
    let tree = Tree::new().member("hardware", &["base"], "").member("edm", &["base"], "").member("cli", &["edm"], "");
    let report = tree.tidy();
    assert!(!report.has_errors());
    assert_eq!(report.to_string(), "tidy: 4 crates, 5 files, 0 findings");
}

#[test]
fn an_import_of_a_higher_floor_is_found_with_its_line() {
    let tree = Tree::new().member("record", &["base", "edm"], "").member("edm", &["base"], "");
    let found = tree.only_finding();
    assert!(found.starts_with("error: crates/record/Cargo.toml:6: record (floor 1) must not import edm"), "{found}");
}

#[test]
fn an_import_of_the_same_floor_is_found() {
    let found = Tree::new().member("hardware", &["record"], "").member("record", &[], "").only_finding();
    assert!(found.contains("hardware (floor 1) must not import record: it stands on floor 1"), "{found}");
}

#[test]
fn an_import_that_only_tests_use_or_under_another_name_is_found_too() {
    let line = "[dev-dependencies]\nother = { path = \"../edm\", package = \"edm\" }";
    let found = Tree::new().member("record", &[line], "").member("edm", &[], "").only_finding();
    assert!(found.contains("record (floor 1) must not import edm"), "{found}");
}

#[test]
fn a_room_that_imports_hardware_is_found_although_hardware_stands_lower() {
    let found = Tree::new().member("edm", &["hardware"], "").member("hardware", &[], "").only_finding();
    assert!(found.ends_with("must not import hardware: designs meet hardware in a rig"), "{found}");
}

#[test]
fn a_crate_with_a_list_imports_nothing_else() {
    let tree = Tree::new().member("edm", &[], "").member("record", &[], "");
    let tree = tree.member("report", &["base", "record"], "");
    tree.passes();
    let found = tree.member("report", &["record", "edm"], "").only_finding();
    assert!(found.ends_with("report (floor 3) must not import edm: figures come from records"), "{found}");
}

#[test]
fn a_tool_outside_the_house_imports_anything_and_is_imported_by_nothing() {
    let tree = Tree::new().member("edm", &[], "").member("bench", &["edm"], "");
    tree.passes();
    let found = tree.member("cli", &["bench"], "").only_finding();
    assert!(found.ends_with("must not import bench: it stands outside the house"), "{found}");
}

#[test]
fn a_crate_that_stands_nowhere_is_found() {
    let found = Tree::new().member("stray", &[], "").only_finding();
    assert!(found.contains("the crate stray stands on no floor"), "{found}");
}

#[test]
fn a_forbidden_name_is_found_however_it_is_brought_in() {
    let ways = [
        ("fn f() -> u64 {\n    std::time::Instant::now().elapsed().as_secs()\n}", 2),
        ("fn f(at: ::std::time::Instant) {}", 1),
        ("\nuse std::{fmt, time::{Duration, Instant}};", 2),
        ("use std::time::Instant as Moment;", 1),
        ("use std::time::{self};\n\nfn f(at: time::Instant) {}", 3),
        ("use std::time as clock;\nfn f(at: Option<clock::Instant>) {}", 2),
        ("use std::time::*;", 1),
        ("fn f() {\n    println!(\"{:?}\", std::time::Instant::now());\n}", 2),
        ("use std::time;\nmacro_rules! m { () => { time::Instant::now() } }", 2),
    ];
    for (code, line) in ways {
        let found = Tree::finding_in(code);
        let expected = format!("error: crates/edm/src/lib.rs:{line}: std::time::Instant");
        assert!(found.starts_with(&expected), "{code}\n{found}");
        assert!(found.ends_with("the clock is not for edm: time is an argument"), "{found}");
    }
}

#[test]
fn many_mentions_of_a_name_are_one_finding() {
    let found =
        Tree::finding_in("use std::collections::HashMap;\ntype A = HashMap<u8, u8>;\ntype B = HashMap<u8, u8>;");
    assert!(
        found.contains("lib.rs:1: std::collections::HashMap (3 times in this file): an unordered container"),
        "{found}"
    );
}

#[test]
fn comments_strings_relatives_and_namesakes_pass() {
    Tree::passes_with(
        "//! Not std::time::Instant.\n/// Nor `std::time::Instant`.\nconst TEXT: &str = \"std::time::Instant\";",
    );
    Tree::passes_with("use std::time::Duration;\nuse std::collections::{BTreeMap, hash_map};");
    Tree::passes_with("struct Instant;\nfn f(at: Instant, time: u8) -> u8 { crate::time::Instant::now(); time }");
    Tree::passes_with("use std::fmt::*;");
}

#[test]
fn what_only_tests_compile_may_mention_anything() {
    Tree::passes_with(
        "#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}\n#[cfg(test)]\nuse std::collections::HashMap;",
    );
    let code = "#[cfg(test)]\nmod helpers;\n#[cfg(test)]\nmod tests;";
    let forbidden = "use std::time::Instant;";
    let tree = Tree::new().member("edm", &[], code);
    let tree =
        tree.file("crates/edm/src/helpers/mod.rs", "mod deep;").file("crates/edm/src/helpers/deep.rs", forbidden);
    let tree = tree.file("crates/edm/src/tests.rs", forbidden).file("crates/edm/tests/story.rs", forbidden);
    tree.file("crates/edm/examples/show.rs", "fn main() { std::time::Instant::now(); }").passes();
}

#[test]
fn code_behind_another_condition_is_product_code() {
    let found = Tree::finding_in("#[cfg(not(test))]\nmod clock {\n    use std::time::Instant;\n}");
    assert!(found.contains("lib.rs:3: std::time::Instant"), "{found}");
}

#[test]
fn a_crate_or_a_file_that_is_excepted_may_mention_the_name() {
    Tree::new().member("cli", &[], "use std::time::Instant;").passes();
    let found = Tree::new().file("crates/base/src/other.rs", "use std::time::Instant;").only_finding();
    assert!(found.starts_with("error: crates/base/src/other.rs:1"), "{found}");
}

#[test]
fn an_exception_that_nothing_needs_is_found() {
    let found = Tree::new().file("crates/base/src/clock.rs", "").only_finding();
    assert!(found.contains("excepts crates/base/src/clock.rs from the rule about the clock"), "{found}");
}

#[test]
fn unsafe_code_is_found_in_every_form() {
    let forms = [
        "fn f() { unsafe { g() } }",
        "unsafe fn f() {}",
        "struct S;\nunsafe impl Send for S {}",
        "unsafe trait T {}",
        "struct S;\nimpl S { unsafe fn f() {} }",
        "fn f() { vec![unsafe { g() }]; }",
    ];
    for code in forms {
        let found = Tree::finding_in(code);
        assert!(found.contains("unsafe code is not for edm"), "{code}\n{found}");
    }
}

#[test]
fn a_long_function_is_a_warning_and_a_very_long_one_an_error() {
    Tree::passes_with(&function(5));
    assert_eq!(Tree::finding_in(&function(6)), "warning: crates/edm/src/lib.rs:1: fn long has 6 lines, at most 5");
    assert_eq!(Tree::finding_in(&function(8)), "warning: crates/edm/src/lib.rs:1: fn long has 8 lines, at most 5");
    assert_eq!(Tree::finding_in(&function(9)), "error: crates/edm/src/lib.rs:1: fn long has 9 lines, at most 5");
}

#[test]
fn functions_of_impls_traits_and_tests_are_measured_without_their_documentation() {
    let long = function(6);
    for code in [format!("struct S;\nimpl S {{\n{long}}}"), format!("trait T {{\n\n{long}}}")] {
        assert_eq!(Tree::finding_in(&code), "warning: crates/edm/src/lib.rs:3: fn long has 6 lines, at most 5");
    }
    let test = format!("#[cfg(test)]\nmod tests {{\n{long}}}");
    assert!(Tree::finding_in(&test).contains("fn long has 6 lines"));
    Tree::passes_with(&format!("/// One.\n///\n/// Two.\n#[inline]\n{}", function(5)));
}

#[test]
fn a_match_that_only_dispatches_may_be_long_but_not_its_arms() {
    let dispatch = |arm: &str| format!("fn on(x: u8) {{\n    match x {{\n{}    }}\n}}\n", arm.repeat(10));
    Tree::passes_with(&dispatch("        1 => work(),\n"));
    let arm = "        1 => {\n            work();\n        }\n";
    assert!(Tree::new().member("edm", &[], &dispatch(arm)).tidy().has_errors());
    let more_than_a_match = dispatch("        1 => work(),\n").replace("    match x", "    work();\n    match x");
    assert!(Tree::new().member("edm", &[], &more_than_a_match).tidy().has_errors());
}

#[test]
fn a_large_file_is_found_but_its_tests_and_test_files_do_not_count() {
    let product = "const A: u8 = 0;\n".repeat(20);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{product}}}\n");
    Tree::passes_with(&format!("{product}{tests}"));
    assert_eq!(
        Tree::finding_in(&format!("{product}struct S;\n{tests}")),
        "warning: crates/edm/src/lib.rs: 21 lines without tests, at most 20"
    );
    let severity = |code: &str| Tree::new().member("edm", &[], code).tidy().findings()[0].severity;
    assert_eq!(severity(&product.repeat(2)), Severity::Error);
    Tree::new().file("crates/base/tests/story.rs", &product.repeat(2)).passes();
}

#[test]
fn a_file_that_is_not_rust_is_an_error_with_its_place() {
    let tree = Tree::new().member("edm", &[], "fn f() {}\nfn {");
    let error = tidy(tree.0.path()).expect_err("this is no Rust").to_string();
    assert!(error.starts_with("crates/edm/src/lib.rs:2: "), "{error}");
}

#[test]
fn rules_without_a_reason_or_about_nothing_are_refused() {
    let broken = [
        ("reason = \"its order leaks\"", "reason = \"\"", "a reason is missing"),
        ("never = [\"hardware\"]", "never = [\"hardwear\"]", "names hardwear"),
        ("[\"hardware\", \"record\"]", "[\"hardware\", \"record\", \"edm\"]", "the crate edm stands in two places"),
        ("outside.crates", "outside.crate", "unknown field"),
    ];
    for (right, wrong, reason) in broken {
        let error = format!("{:#}", Layers::parse(&LAYERS.replace(right, wrong)).expect_err(wrong));
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn the_rules_of_this_workspace_are_sound() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../layers.toml");
    Layers::parse(&std::fs::read_to_string(file).unwrap()).unwrap_or_else(|error| panic!("{error:#}"));
}

/// Rules about texts, for the crate `edm` and a folder of documents.
const TEXT: &str = r#"
[text]
columns = 40
words = 6
documents = ["docs"]
crates = ["edm"]
stubs = ["How many."]
"#;

/// Builds a tree with rules about texts.
fn texts(document: &str, code: &str) -> Tree {
    let layers = LAYERS.to_owned() + TEXT;
    Tree::new().file("layers.toml", &layers).file("docs/page.md", document).member("edm", &[], code)
}

#[test]
fn prose_that_fits_passes_and_so_do_wide_tables_and_code() {
    let table = format!("| {} | b |\n", "a ".repeat(40));
    let code = format!("    {}\n\n```sh\n{}\n```\n", "word ".repeat(20), "word ".repeat(20));
    let link = format!("See\n[this](https://example.org/{}).\n", "a".repeat(60));
    texts(&format!("# A page\n\nShort prose.\n\n{table}\n{code}\n{link}"), "/// Packets.\npub struct A;\n").passes();
    let made = "# Keys\n\nMade from the schema that checks files, by a command that nobody types by hand.\n";
    texts(made, "").passes();
}

#[test]
fn a_wide_line_of_prose_is_found() {
    let found = texts("# A page\n\nShort one. And another. And a third one!!\n", "").only_finding();
    assert_eq!(found, "error: docs/page.md:3: 41 columns, at most 40");
}

#[test]
fn a_long_sentence_is_found_where_its_paragraph_begins() {
    let found = texts("One. Two.\nThis has `a b c` six or so words.\n", "").only_finding();
    assert!(found.starts_with("error: docs/page.md:1: a sentence of 7 words, at most 6: This"), "{found}");
    // A list item is a sentence of its own.
    texts("- one two three four\n- five six seven eight\n", "").passes();
}

#[test]
fn a_wide_comment_and_a_doc_that_says_nothing_are_found() {
    let found = texts("", "// This comment has some more columns than 40.\n").only_finding();
    assert_eq!(found, "error: crates/edm/src/lib.rs:1: 46 columns, at most 40");
    let found = texts("", "pub struct A {\n    /// How many.\n    pub a: u32,\n}\n").only_finding();
    assert!(found.starts_with("error: crates/edm/src/lib.rs:2: `/// How many.` says nothing"), "{found}");
}

#[test]
fn a_heavy_file_is_an_error_unless_git_ignores_it() {
    let tree = Tree::new().file(".gitignore", "/target\n").file("target/any", &" ".repeat(100 << 10));
    let git = std::process::Command::new("git").arg("init").arg("--quiet").arg(tree.0.path()).status();
    assert!(git.expect("there is git").success());
    let tree = tree.file("trial/fits", &" ".repeat(64 << 10));
    assert!(!tree.tidy().has_errors());
    let report = tree.file("trial/out", &" ".repeat((64 << 10) + 1)).tidy();
    assert_eq!(report.findings().len(), 1);
    assert!(report.findings()[0].to_string().starts_with("error: trial/out: 65 KiB, at most 64"));
}
