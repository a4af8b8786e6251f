//! Builds a page from made-up summaries and opens it: does it say what it must, does it fetch
//! nothing, does it render.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use record::{Statistics, Summary};
use report::figure::{self, Figure};
use report::page::{PageFile, pages};
use report::{Evidence, Judgement, PageInput, Section, bindings, claims, judge, published};

const DESIGNS: [(&str, f64); 7] = [
    ("edm", 0.1),
    ("receiver-driven", 0.3),
    ("pfabric", 0.5),
    ("dcqcn", 0.6),
    ("dctcp", 0.7),
    ("cxl", 0.9),
    ("fastpass", 8.0),
];
const LOADS: [&str; 5] = ["0.2", "0.4", "0.6", "0.8", "0.9"];

/// A queue's mean delay grows as load / (1 - load); `slope` is how much a design suffers from it.
fn point(design: &str, slope: f64, load: &str, mix: &str, seeds: &[u64]) -> Summary {
    let offered: f64 = load.parse().unwrap();
    let mean = 1.0 + slope * offered / (1.0 - offered) * if mix == "reads" { 0.4 } else { 0.6 };
    let interval = (seeds.len() > 1).then_some(0.06 * mean);
    let mut point =
        Summary { version: "0.1.0".into(), design: design.into(), seeds: seeds.to_vec(), ..Summary::default() };
    point.plan_hash =
        format!("{:064x}", (offered * 100.0) as u64 + design.len() as u64 * 1000 + mix.len() as u64 * 1_000_000);
    point.labels.insert("load".into(), load.into());
    point.labels.insert("mix".into(), mix.into());
    point.slowdown.insert("all".into(), Statistics { mean, mean_ci95: interval, ..Statistics::default() });
    point.latency_ns.insert("all".into(), Statistics { mean: 300.0 * mean, ..Statistics::default() });
    point.counts.measured = 100_000;
    point.load.planned = Some(offered);
    point.load.offered_gbps = offered * 14_400.0;
    point.load.achieved_gbps = offered * 14_390.0;
    if design == "fastpass" && offered > 0.7 {
        point.warnings.push("Achieved load is below 95 % of the offered load: the network is saturated.".into());
    }
    point
}

fn loaded_points() -> Vec<Summary> {
    let mut points = Vec::new();
    for mix in ["reads", "writes"] {
        for (design, slope) in DESIGNS {
            points.extend(LOADS.iter().map(|load| point(design, slope, load, mix, &[1, 2, 3])));
        }
    }
    points
}

/// Table 1 of the paper, as a run that reproduces it would give it.
fn unloaded_points() -> Vec<Summary> {
    let parts = [
        ("stack", [66.56, 64.0]),
        ("pcs", [40.96, 40.96]),
        ("transceiver", [152.0, 152.0]),
        ("propagation", [40.0, 40.0]),
    ];
    let mut point = Summary { version: "0.1.0".into(), design: "edm".into(), seeds: vec![1], ..Summary::default() };
    for (index, operation) in ["read", "write"].into_iter().enumerate() {
        let spans = point.span_mean_ns.entry(operation.into()).or_default();
        spans.extend(parts.iter().map(|(part, values)| ((*part).to_owned(), values[index])));
        let mean = parts.iter().map(|(_, values)| values[index]).sum();
        point.latency_ns.insert(operation.into(), Statistics { mean, ..Statistics::default() });
    }
    vec![point]
}

const FIGURE_8A: &str = r#"
title = "Mean latency under load, 64 B messages"
caption = "144 nodes at 100 Gb/s. EDM's scheduler keeps the latency near that of an unloaded network; protocols that react to queues do not."
kind = "line"
facet = "mix"
published = "published.csv"
notes = ["The artifact's x is the load that its trace generator was asked for."]
[x]
label = "load"
title = "Offered load (fraction of link rate)"
[y]
metric = "slowdown.all.mean"
title = "Mean latency / unloaded latency"
scale = "log"
[names]
reads = "64 B reads"
writes = "64 B writes"
"#;

const FIGURE_8A_BARS: &str = r#"
title = "Both mixes at load 0.8"
caption = "The same numbers at one load."
kind = "bars"
published = "published.csv"
[x]
label = "mix"
title = "Mix"
[y]
metric = "slowdown.all.mean"
title = "Mean latency / unloaded latency"
scale = "log"
[filter]
load = 0.8
"#;

/// The artifact's means at the load that it calls 0.8, and the paper's limits for EDM.
const ROWS_8A_BARS: &str = "series,x,value,source
edm,reads,1.20,artifact\nreceiver-driven,reads,1.50,artifact\nfastpass,reads,25.11,artifact
edm,writes,1.35,artifact\nreceiver-driven,writes,1.61,artifact\nfastpass,writes,28.99,artifact
edm,reads,1.2,paper\nedm,writes,1.3,paper
";

const FIGURE_5: &str = r#"
title = "Where the time of an unloaded 64 B request goes"
caption = "EDM at 25 GbE, without the transmission of the bits."
kind = "stacked-bars"
series = "part"
published = "published.csv"
[x]
label = "operation"
title = "Operation"
[y]
title = "Mean latency (ns)"
metrics = [
  { metric = "span_mean_ns.read.stack", set = { operation = "read", part = "stack" } },
  { metric = "span_mean_ns.read.pcs", set = { operation = "read", part = "pcs" } },
  { metric = "span_mean_ns.read.transceiver", set = { operation = "read", part = "transceiver" } },
  { metric = "span_mean_ns.read.propagation", set = { operation = "read", part = "propagation" } },
  { metric = "span_mean_ns.write.stack", set = { operation = "write", part = "stack" } },
  { metric = "span_mean_ns.write.pcs", set = { operation = "write", part = "pcs" } },
  { metric = "span_mean_ns.write.transceiver", set = { operation = "write", part = "transceiver" } },
  { metric = "span_mean_ns.write.propagation", set = { operation = "write", part = "propagation" } },
]
"#;

const TABLE_1: &str = r#"
title = "Fabric latency, unloaded"
caption = "Table 1 of the paper."
kind = "table"
published = { file = "published.csv", where = { facet = "total" } }
[x]
label = "operation"
title = "operation"
[y]
title = "Mean latency (ns)"
metrics = [
  { metric = "latency_ns.read.mean", set = { operation = "read" } },
  { metric = "latency_ns.write.mean", set = { operation = "write" } },
]
"#;

const CLAIMS: &str = r#"
[[claim]]
id = "edm.table1.read.total"
measure = { metric = "latency_ns.read.mean" }
[[claim]]
id = "edm.table1.write.total"
measure = { metric = "latency_ns.write.mean", scale = 2 }
reason = "Ours is doubled by this test, to show how a difference looks. <b>Not markup.</b>"
"#;

fn figure(definition: &str, rows: &str) -> Figure {
    Figure {
        definition: figure::parse("figure.toml", definition).unwrap(),
        published: published::parse("published.csv", rows).unwrap(),
        given: Vec::new(),
    }
}

fn input() -> PageInput {
    let unloaded = unloaded_points();
    let bindings = bindings::parse("edm/table1/claims.toml", CLAIMS).unwrap();
    let evidence =
        Evidence { experiment: "edm/table1", bindings: &bindings, points: &unloaded, by_seed: &[], published: &[] };
    let Judgement { results, problems } = judge(&claims::ledgers()[0].claims, &[evidence]).unwrap();
    assert_eq!(problems, []);
    let measured = results.into_iter().filter(|result| result.ours.is_some()).collect();
    let table_1 = Section {
        experiment: "edm/table1".into(),
        readme: "Unloaded latency at **25 GbE**, [source](https://example.org/x).\n\n<script>alert(1)</script>".into(),
        points: unloaded,
        figures: vec![
            figure(TABLE_1, include_str!("../../../experiments/edm/table1/published.csv")),
            figure(FIGURE_5, include_str!("../../../experiments/edm/fig5/published.csv")),
        ],
        claims: measured,
        pictures: Vec::new(),
    };
    let figure_8a = Section {
        experiment: "edm/fig8a".into(),
        readme: "Seven schedulers, all-to-all, loads 0.2 to 0.9.".into(),
        points: loaded_points(),
        figures: vec![
            figure(FIGURE_8A, include_str!("../../../experiments/edm/fig8a/published.csv")),
            figure(FIGURE_8A_BARS, ROWS_8A_BARS),
        ],
        claims: vec![],
        pictures: Vec::new(),
    };
    PageInput {
        title: "EDM <reproduced>".into(),
        scale: "quick".into(),
        facts: vec![("Command".into(), "rackweave reproduce edm".into())],
        sections: vec![table_1, figure_8a],
        searches: vec![],
        refresh: None,
    }
}

/// All pages, one after the other.
fn text(input: &PageInput) -> String {
    pages(input).into_iter().filter(|file| file.name.ends_with(".html")).map(|file| file.text).collect()
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(pages(&input()), pages(&input()));
}

#[test]
fn several_experiments_have_a_page_each_and_share_a_script() {
    let names = |input: &PageInput| pages(input).into_iter().map(|file| file.name).collect::<Vec<_>>();
    assert_eq!(names(&input()), ["index.html", "edm-table1.html", "edm-fig8a.html", "figures.js"]);
    let mut one = input();
    one.sections.truncate(1);
    assert_eq!(names(&one), ["index.html"]);
}

#[test]
fn a_figure_comes_before_verdicts_and_those_before_words() {
    let html = &pages(&input())[1].text;
    let places = ["<figure", "table class=\"claims\"", "class=\"prose\""].map(|part| html.find(part).expect(part));
    assert!(places.is_sorted(), "{places:?}");
    assert!(html.contains("aria-label=\"Ours "));
}

#[test]
fn the_page_says_what_was_run_and_what_came_of_it() {
    let html = text(&input());
    for words in [
        "rackweave 0.1.0",
        "1 to 3",
        "rackweave reproduce edm",
        "2 claims: 1 agree, 1 differ, 0 not comparable",
        "296.96 ns",
        "593.92 ns",
        "of 71 points carry warnings",
        "the network is saturated",
        "95 % confidence over seeds",
        "<noscript>",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn text_from_files_stays_text() {
    let html = text(&input());
    assert!(html.contains("EDM &lt;reproduced&gt;") && html.contains("&lt;b&gt;Not markup.&lt;/b&gt;"));
    assert!(html.contains("&lt;script&gt;alert(1)"));
    assert!(!html.contains("<script>alert(1)"));
}

#[test]
fn nothing_in_the_page_names_something_to_fetch() {
    let html = text(&input());
    for address in ["sourceMappingURL", "@import", "url(http"] {
        assert!(!html.contains(address), "{address}");
    }
    let outside_scripts: String =
        html.split("<script").map(|part| part.split_once("</script>").map_or(part, |(_, rest)| rest)).collect();
    for fetched in ["href=\"http", "<link", "<iframe", "<img"] {
        assert!(!outside_scripts.contains(fetched), "{fetched}");
    }
    let begun = html.matches("<script").count();
    assert_eq!(html.matches("</script>").count(), begun, "a script ends early");
}

#[test]
fn a_page_of_tables_needs_no_script() {
    let mut only_tables = input();
    only_tables.sections.truncate(1);
    only_tables.sections[0].figures.truncate(1);
    let html = text(&only_tables);
    assert!(!html.contains("<script") && html.contains("299.52"));
    assert!(html.len() < 60_000, "{}", html.len());
}

/// Writes a report into a folder; returns its pages.
fn written(folder: &Path, files: Vec<PageFile>) -> Vec<PathBuf> {
    let write = |file: PageFile| {
        let path = folder.join(file.name);
        std::fs::write(&path, file.text).unwrap();
        path
    };
    files.into_iter().map(write).filter(|path| path.extension() == Some("html".as_ref())).collect()
}

#[test]
fn the_pages_render_offline_in_chromium() {
    let folder = tempfile::tempdir().unwrap();
    let files = written(folder.path(), pages(&input()));
    if let Some(output) = checked(&files, std::env::var_os("RACKWEAVE_SCREENSHOT")) {
        let fine: Vec<&str> = output.lines().filter_map(|line| line.rsplit_once(", ")).map(|(line, _)| line).collect();
        let expected = [("index", 0, 0), ("edm-table1", 1, 2), ("edm-fig8a", 2, 0)].map(|(name, figures, claims)| {
            ["1400 px, light", "1400 px, dark", "400 px, light", "400 px, dark"]
                .map(|at| format!("fine: {name}.html at {at}: {figures} figures, {claims} claims"))
        });
        assert_eq!(fine, expected.as_flattened());
    }
}

#[test]
fn a_broken_page_does_not_pass_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = pages(&input());
    for file in &mut files {
        let wide = "<img src=\"http://example.org/x.png\" ><div style=\"width:2000px\">wide</div></main>";
        file.text =
            file.text.replace("</main>", wide).replace("\"mark\":{\"type\":\"bar\"}", "\"mark\":{\"type\":\"barr\"}");
        file.text = file.text.replace("\"labelFontSize\":12,", "\"labelFontSize\":9,");
    }
    let Some(output) = checked(&written(folder.path(), files), None) else { return };
    for words in [
        "has no marks",
        "console: ",
        "policy: img-src http://example.org/x.png",
        "wider than the window of 1400 px",
        "wider than the window of 400 px",
        "has letters of 9 px",
    ] {
        assert!(output.contains(words), "{words}: {output}");
    }
}

/// What `tests/page/check.py` prints about the pages; none when there is no Chromium and none is
/// required. Leaves a picture in `screenshot`:
/// `RACKWEAVE_SCREENSHOT=page.png cargo test -p report --test page` is how to look at a page.
fn checked(files: &[PathBuf], screenshot: Option<OsString>) -> Option<String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/page/check.py");
    let mut command = Command::new("python3");
    command.arg(script).args(files);
    command.args(["--width", "1400", "--width", "400", "--theme", "light", "--theme", "dark"]);
    if let Some(shot) = screenshot {
        command.arg("--screenshot").arg(shot).arg("--height").arg("4200");
    }
    let output = command.output().expect("python3 starts");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(2) && complaint.contains("no chromium") {
        let required = std::env::var("RACKWEAVE_REQUIRE_CHROMIUM").is_ok_and(|value| value == "1");
        assert!(!required, "RACKWEAVE_REQUIRE_CHROMIUM=1, but {complaint}");
        println!("skipped: {complaint}");
        return None;
    }
    assert!(output.status.code() != Some(2), "{complaint}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
