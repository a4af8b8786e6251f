//! The documents match the project: links lead to files and headings, TOML is valid, and commands,
//! metrics and spans exist. `crates/cli/tests/cli/documents.rs` checks commands of `rackweave` and
//! files of the live target.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plan::NoFiles;
use record::{SpanKind, metric};
use xtask::markdown::{Kind, blocks, kinds};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns every file below `folder` with `extension`, and its text. Skips the output of cargo and
/// of runs, and vendored files.
fn files(folder: &Path, extension: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && !["out", "target", "vendor"].contains(&&*name) {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == extension) {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    files.sort();
    files
}

fn documents() -> Vec<(PathBuf, String)> {
    files(&root(), "md")
}

/// Returns the targets of Markdown links, without web links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
}

/// Returns the anchors that a heading gets on GitHub and in mdBook.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().zip(kinds(text)).filter(|(_, kind)| *kind == Kind::Heading);
    let slug = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.collect::<String>().replace(' ', "-")
    };
    headings.map(|(heading, _)| slug(heading)).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut found = 0;
    let mut broken = Vec::new();
    for (path, text) in documents() {
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let has_anchor = |text: String| anchor.is_empty() || anchors(&text).contains(anchor);
            let is_page = file.extension().is_some_and(|extension| extension == "md");
            if !file.exists() || is_page && !has_anchor(std::fs::read_to_string(&file).unwrap()) {
                broken.push((path.clone(), link.to_owned()));
            }
            found += 1;
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(found > 100, "only {found} links were found");
}

/// Pages whose complete blocks are files of the live target; `crates/cli/tests/cli/documents.rs`
/// checks them.
const TARGET_PAGES: [&str; 2] = ["docs/guide/live-target.md", "docs/reference/target.md"];

/// Returns the warnings of an experiment, of all its points.
fn warnings(name: &str, text: &str) -> Vec<String> {
    let parsed = plan::parse(name, text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{name}: {errors}"));
    parsed.points(None).into_iter().flat_map(|point| point.plan.warnings).collect()
}

#[test]
fn every_block_of_toml_is_an_experiment_a_graph_a_target_or_a_fragment() {
    let mut found = [0; 3];
    for (path, text) in documents() {
        for block in blocks(&text).iter().filter(|block| block.info.starts_with("toml")) {
            let name = format!("{}:{}", path.display(), block.line);
            match block.info.as_str() {
                "toml" if TARGET_PAGES.iter().any(|page| path.ends_with(page)) => {
                    assert!(plan::target::is_target_file(&block.text), "{name}: no file of a target");
                }
                "toml" => {
                    let warnings = warnings(&name, &block.text);
                    assert!(warnings.is_empty(), "{name}: {warnings:?}");
                    found[0] += 1;
                }
                "toml graph" => {
                    topology::file::read(&name, block.text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
                    found[1] += 1;
                }
                "toml fragment" => {
                    toml::from_str::<toml::Table>(&block.text).unwrap_or_else(|error| panic!("{name}: {error}"));
                    found[2] += 1;
                }
                other => panic!("{name}: `{other}` is none of toml, toml graph, toml fragment"),
            }
        }
    }
    assert!(found[0] >= 6 && found[1] >= 1 && found[2] >= 6, "{found:?}");
}

#[test]
fn every_example_file_is_an_experiment() {
    let examples = files(&root().join("docs/guide/examples"), "toml");
    assert!(examples.len() >= 10, "{}", examples.len());
    for (path, text) in examples {
        warnings(&path.display().to_string(), &text);
    }
}

#[test]
fn the_book_has_every_page_once() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: Vec<PathBuf> = links(&summary).map(|link| docs.join(link)).collect();
    let pages = files(&docs, "md").into_iter().map(|(path, _)| path);
    let pages: Vec<PathBuf> = pages.filter(|path| !path.ends_with("SUMMARY.md")).collect();
    let times = |page: &&PathBuf| listed.iter().filter(|other| other == page).count();
    let wrong: Vec<_> = pages.iter().chain(&listed).filter(|page| times(page) != 1 || !pages.contains(page)).collect();
    assert!(wrong.is_empty(), "docs/SUMMARY.md lists each page of docs once, but {wrong:#?}");
}

/// Returns the code spans of `text`, and the lines of its code blocks.
fn code(text: &str) -> Vec<String> {
    let prose = text.lines().zip(kinds(text)).filter(|(_, kind)| *kind != Kind::Code);
    let prose: Vec<&str> = prose.map(|(line, _)| line).collect();
    let spans = prose.join("\n");
    let spans = spans.split('`').skip(1).step_by(2).map(str::to_owned);
    let lines = blocks(text).into_iter().flat_map(|block| block.text.lines().map(str::to_owned).collect::<Vec<_>>());
    spans.chain(lines).collect()
}

#[test]
fn every_target_of_make_exists() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let targets: BTreeSet<&str> =
        makefile.lines().filter_map(|line| line.split_once(':').map(|(name, _)| name)).collect();
    let mut found = 0;
    for (path, text) in documents().into_iter().filter(|(path, _)| !path.ends_with("CHANGELOG.md")) {
        for name in code(&text).iter().filter_map(|code| code.trim().strip_prefix("make ")) {
            let name = name.split_whitespace().next().unwrap();
            assert!(targets.contains(name), "{}: `make {name}` is no target of the Makefile", path.display());
            found += 1;
        }
    }
    assert!(found >= 10, "only {found} were found");
}

/// Returns the string literals of the product that can be names of metrics; `{...}` is a hole.
fn literals() -> BTreeSet<Vec<String>> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let mut literals = BTreeSet::new();
    let is_test = |path: &Path| path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
    for (_, text) in files(&root().join("crates"), "rs").into_iter().filter(|(path, _)| !is_test(path)) {
        for literal in text.split('"') {
            let mut parts = vec![String::new()];
            let mut rest = literal;
            while let Some((before, after)) = rest.split_once('{') {
                parts.last_mut().unwrap().push_str(before);
                parts.push(String::new());
                rest = after.split_once('}').map_or("?", |(_, after)| after);
            }
            parts.last_mut().unwrap().push_str(rest);
            if parts.iter().all(|part| part.chars().all(is_name)) && parts.concat().len() >= 3 {
                literals.insert(parts);
            }
        }
    }
    literals
}

/// Returns whether a name of a document, with capitals for its variable parts, is an instance of a
/// literal.
fn is_instance(name: &str, literal: &[String]) -> bool {
    let [first, holes @ ..] = literal else { return false };
    let Some(mut rest) = name.strip_prefix(first.as_str()) else { return false };
    for part in holes {
        let Some(at) = rest.rfind(part.as_str()) else { return false };
        rest = if part.is_empty() { "" } else { &rest[at + part.len()..] };
    }
    rest.is_empty()
}

/// Returns the first cells of the tables whose header begins with one of `headers`, as code spans.
fn first_cells(text: &str, headers: &[&str]) -> Vec<String> {
    let (mut names, mut is_ours, mut is_table) = (Vec::new(), false, false);
    for line in text.lines() {
        let cells = line.strip_prefix('|').and_then(|row| row.split('|').next());
        if let Some(cell) = cells {
            is_ours = if is_table { is_ours } else { headers.contains(&cell.trim()) };
            names.extend(cell.split('`').skip(1).step_by(2).filter(|_| is_ours).map(str::to_owned));
        }
        is_table = cells.is_some();
    }
    names
}

#[test]
fn every_metric_and_span_of_the_documents_exists() {
    let literals = literals();
    let exists = |name: &str| {
        let alone = name.strip_prefix("device_").unwrap_or(name);
        let is_declared = metric::find(&name.to_ascii_lowercase()).is_some();
        is_declared || [name, alone].iter().any(|name| literals.iter().any(|literal| is_instance(name, literal)))
    };
    // That page is generated from the declarations.
    let is_generated = |path: &Path| path.ends_with("reference/metrics.md");
    let (mut metrics, mut spans, mut lacking) = (0, 0, Vec::new());
    for (path, text) in files(&root().join("docs"), "md").into_iter().filter(|(path, _)| !is_generated(path)) {
        let mut names = first_cells(&text, &["name", "counter"]);
        names.extend(code(&text).iter().filter_map(|code| code.strip_prefix("metrics.").map(str::to_owned)));
        metrics += names.len();
        lacking.extend(names.into_iter().filter(|name| !exists(name)).map(|name| (path.clone(), name)));
        let names = first_cells(&text, &["span"]);
        spans += names.len();
        let is_span = |name: &String| SpanKind::ALL.iter().any(|kind| kind.name() == name);
        lacking.extend(names.into_iter().filter(|name| !is_span(name)).map(|name| (path.clone(), name)));
    }
    assert!(lacking.is_empty(), "no metric or span is called {lacking:#?}");
    assert!(metrics > 30 && spans > 15, "{metrics} metrics, {spans} spans");
}

/// The page that has the tables of `rtl/synth.py`.
const GATES: &str = "docs/concepts/edm-gates.md";

/// The tables that `rtl/synth.py` has put into a page: titles and rows.
fn tables_of_gates(page: &str) -> Vec<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let (_, text) = text.split_once("<!-- begin of the tables of rtl/synth.py -->").unwrap();
    let (text, _) = text.split_once("<!-- end of the tables of rtl/synth.py -->").unwrap();
    let field = |text: &str| text.trim_matches([' ', '*']).to_owned();
    let row = |text: &str| text.trim_matches('|').split('|').map(field).collect();
    let table = |text: &str| text.lines().filter(|line| !line.starts_with("| -")).map(row).collect();
    text.split("\n\n").map(str::trim).filter(|table| table.starts_with('|')).map(table).collect()
}

/// The rows of gates.csv that a row of a page's table is.
fn drawn(titles: &[String], row: &[String]) -> Vec<String> {
    let title = |at: usize| titles[at].strip_suffix(" of each").unwrap_or(&titles[at]);
    let of = |series: &str, x: &str, at: usize, facet| {
        let value = row[at].replace(',', "");
        value.parse::<f64>().is_ok().then(|| format!("{series},{x},{value},measured,{facet}"))
    };
    let all =
        |x: &str, places: std::ops::Range<usize>, facet| places.filter_map(|at| of(title(at), x, at, facet)).collect();
    let is_whole = row.get(1).is_some_and(|name| name == "whole");
    match (titles[0].as_str(), titles[1].as_str()) {
        ("ports", "part of the scheduler") if is_whole => all(&row[0], 3..5, "ports"),
        ("ports", "part of the scheduler") => of(&row[1], &row[0], 3, "part").into_iter().collect(),
        ("ports", _) if is_whole => all(&row[0], 3..5, "luts"),
        ("ports", _) => of(&row[1], &row[0], 5, "clock").into_iter().collect(),
        ("on an ECP5", _) => all(&row[0].replace(['`', ','], ""), 1..5, "ecp5"),
        ("module", _) => Vec::new(),
        _ => {
            let number: String = row[0].chars().filter(char::is_ascii_digit).collect();
            let x = if number.is_empty() { "0" } else { &number };
            all(x, 1..3, if row[0].starts_with('X') { "x" } else { "priority" })
        }
    }
}

#[test]
fn the_gates_that_are_drawn_are_those_of_the_page() {
    let tables = tables_of_gates(GATES);
    assert_eq!(tables, tables_of_gates("experiments/edm/rtl/README.md"));
    let rows = |table: &Vec<Vec<String>>| table[1..].iter().flat_map(|row| drawn(&table[0], row)).collect::<Vec<_>>();
    let page: BTreeSet<String> = tables.iter().flat_map(rows).collect();
    let text = std::fs::read_to_string(root().join("experiments/edm/rtl/gates.csv")).unwrap();
    let rows = text.lines().filter(|row| !row.starts_with('#')).skip(1);
    let file: BTreeSet<String> = rows.map(str::to_owned).collect();
    assert!(page.len() > 100, "{} numbers", page.len());
    assert_eq!(page.symmetric_difference(&file).collect::<Vec<_>>(), Vec::<&String>::new());
}
