//! `rackweave sweep`: every point once, however often it is stopped.

use crate::support::{Home, LONG, SMALL, SWEEP, Said, python};
use record::Summary;
use std::fs;

fn home() -> Home {
    Home::new().with("a.toml", &format!("{SMALL}{SWEEP}"))
}

fn points(home: &Home) -> Vec<Summary> {
    serde_json::from_str(&home.text("out/points.json")).unwrap()
}

#[test]
fn a_sweep_leaves_a_folder_for_each_point_and_a_table_in_order() {
    let home = home();
    let out = home.run("sweep a.toml --out out --jobs 2");
    assert!(out.contains("\n4 of 4 points are finished"), "{out}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("point ") && lines[1].starts_with("design.name=edm workload.load=0.2"), "{out}");
    // All, reads and writes of four points; each point is named once.
    assert_eq!(lines.iter().take_while(|line| !line.starts_with("warning")).count(), 13, "{out}");
    assert_eq!(out.matches("design.name=").count(), 4, "{out}");
    let folders =
        ["000-design=edm,load=0.2", "001-design=edm,load=0.5", "002-design=cxl,load=0.2", "003-design=cxl,load=0.5"];
    assert_eq!(home.entries("out/points"), folders);
    let designs: Vec<String> = points(&home).into_iter().map(|point| point.design).collect();
    assert_eq!(designs, ["edm", "edm", "cxl", "cxl"]);
    for (folder, point) in folders.iter().zip(points(&home)) {
        assert_eq!(home.summary(&format!("out/points/{folder}/summary.json")), point);
        assert_eq!(home.rows(&format!("out/points/{folder}/seed-1/records")).len(), 400);
    }
    home.run("run a.toml --set design.name=cxl --set workload.load=0.2 --out alone");
    // But for the columns of its labels.
    let rows = |folder: &str| home.rows(&format!("{folder}/seed-1/records"));
    assert_eq!(rows("alone"), rows("out/points/002-design=cxl,load=0.2"), "a point is what a run is");
}

#[test]
fn results_are_shown_in_the_form_that_is_asked_for() {
    let home = home();
    let csv = home.run("sweep a.toml --out out --format csv");
    let mean = |name: &str, operation: &str| {
        let line = csv.lines().find(|line| line.starts_with(name) && line.contains(operation)).unwrap();
        let place = csv.lines().next().unwrap().split(',').position(|column| column == "mean_ns").unwrap();
        line.split(',').nth(place).unwrap().parse::<f64>().unwrap()
    };
    let summaries = points(&home);
    assert_eq!(mean("design.name=cxl workload.load=0.2", ",read,"), summaries[2].latency_ns["read"].mean);
    let json: Vec<Summary> = serde_json::from_str(&home.run("sweep a.toml --out out --format json")).unwrap();
    assert_eq!(json, summaries);
    let one = "run a.toml --set design.name=cxl --set workload.load=0.2 --out one";
    let json: Summary = serde_json::from_str(&home.run(&format!("{one} --format json"))).unwrap();
    assert_eq!(json, home.summary("one/summary.json"));
    let csv = home.run(&format!("{one} --force --format csv"));
    assert_eq!(csv.lines().count(), 4, "{csv}");
}

#[test]
fn what_is_finished_is_not_played_again() {
    let home = home();
    home.run("sweep a.toml --out out");
    let all = home.files("out");
    // A point that was never finished, and one that was cut short.
    fs::remove_dir_all(home.path("out/points/003-design=cxl,load=0.5")).unwrap();
    let cut = home.path("out/points/001-design=edm,load=0.5/summary.json");
    fs::write(&cut, fs::read_to_string(&cut).unwrap().replace("\"partial\": false", "\"partial\": true")).unwrap();
    let untouched = home.path("out/points/000-design=edm,load=0.2/untouched");
    fs::write(&untouched, "").unwrap();
    let said = home.say("sweep a.toml --out out --resume");
    assert_eq!(said.err.lines().count(), 2, "two points are played: {}", said.err);
    assert!(untouched.exists() && said.out.contains("(2 were before"), "{said:?}");
    fs::remove_file(untouched).unwrap();
    assert_eq!(home.files("out"), all);
    assert_eq!(home.say("sweep a.toml --out out").err, "", "nothing is left to play");
}

#[test]
fn another_sweep_does_not_go_into_the_same_folder() {
    let home = home();
    home.say("sweep a.toml --out out --resume").refused(2, &["--resume", "out holds no sweep"]);
    home.run("sweep a.toml --out out");
    for change in ["--seed 2", "--set run.requests=300", "--no-records"] {
        home.say(&format!("sweep a.toml --out out {change}")).refused(2, &["out holds another sweep"]);
    }
    home.run("sweep a.toml --out out --force --no-records");
    assert_eq!(home.entries("out/points/000-design=edm,load=0.2/seed-1").len(), 4);
    home.run("run a.toml --set design.name=cxl --set workload.load=0.2 --out run");
    home.say("sweep a.toml --out run").refused(2, &["run exists"]);
}

#[test]
fn machines_share_a_sweep_by_index() {
    let home = home();
    assert!(home.run("sweep a.toml --out out --index 1/3").contains("\n1 of 4 points"));
    assert_eq!(home.entries("out/points"), ["001-design=edm,load=0.5"]);
    assert!(home.run("sweep a.toml --out out --index 0/3").contains("\n3 of 4 points"));
    assert!(home.run("sweep a.toml --out out --index 2/3").contains("\n4 of 4 points"));
    home.run("sweep a.toml --out whole");
    assert_eq!(home.files("out"), home.files("whole"));
    // All at once.
    let shares =
        [0, 1, 2].map(|index| home.command(&format!("sweep a.toml --out once --index {index}/3")).spawn().unwrap());
    assert!(shares.map(|mut share| share.wait().unwrap()).iter().all(std::process::ExitStatus::success));
    assert_eq!(home.files("once/points"), home.files("whole/points"));
}

#[test]
fn an_interrupted_sweep_keeps_what_is_finished_and_goes_on() {
    let axis = format!(
        "[[sweep.axis]]\nname = 'length'\npoints = [\n{{ label = 'short', set = {{ 'run.requests' = 400 }} }},\n\
         {{ label = 'long', set = {{ 'run.requests' = {LONG} }} }},\n]\n"
    );
    let home = Home::new().with("a.toml", &format!("{}{axis}", SMALL.replace("[run]\nrequests = 400\n", "")));
    let line = "sweep a.toml --out out --jobs 1";
    let running = home.start(line, "out/points/000-length=short/summary.json");
    // Before it is stopped the long one has begun: one thread plays them in turn.
    home.wait("out/points/.001-length=long.unfinished/seed-1/records/part-00000.parquet");
    running.signal("INT");
    running.end().refused(130, &["interrupted"]);
    let cut = home.summary("out/points/001-length=long/summary.json");
    assert!(cut.partial && cut.counts.issued == home.rows("out/points/001-length=long/seed-1/records").len() as u64);
    assert_eq!(points(&home).len(), 1, "the table holds whole points");
    let short = home.files("out/points/000-length=short");
    let running = home.start(line, "out/points/.001-length=long.unfinished/plan.toml");
    running.signal("TERM");
    assert_eq!(running.end().code, Some(130));
    assert_eq!(home.files("out/points/000-length=short"), short);
}

#[test]
fn a_run_and_a_sweep_have_a_page_with_figures() {
    let home = home();
    let out = home.run("sweep a.toml --out out");
    assert!(out.ends_with("page       out/index.html\n"), "{out}");
    let page = home.text("out/index.html");
    for words in [">Latency<", ">Throughput<", "workload.load", "edm", "latency (ns) by workload.load of "] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("http-equiv=\"refresh\""));
    let out = home.run("run a.toml --set design.name=cxl --set workload.load=0.2 --out one");
    assert!(out.ends_with("page       one/index.html\n"), "{out}");
    let page = home.text("one/index.html");
    let mean = home.summary("one/summary.json").latency_ns["read"].mean;
    assert!(page.contains("Where the time goes") && page.contains(&format!("\"y\":{mean}")), "{mean}");
}

#[test]
fn a_watched_page_says_how_far_the_sweep_is() {
    let home = Home::new().with("a.toml", &format!("{}{SWEEP}", SMALL.replace("400", LONG)));
    let running = home.start("sweep a.toml --out out --watch --jobs 1", "out/index.html");
    let page = home.text("out/index.html");
    assert!(page.contains("0 of 4 points") && page.contains("http-equiv=\"refresh\" content=\"5\""));
    running.signal("INT");
    running.end().refused(130, &["page: out/index.html", "interrupted"]);
    assert!(!home.text("out/index.html").contains("http-equiv=\"refresh\""));
}

#[test]
fn figures_are_exported_without_a_browser() {
    let Some(python) = python() else { return println!("skipped: no target/python") };
    let home = home().with("one.toml", SMALL);
    let python = python.to_str().unwrap();
    let run = |line: &str| {
        let out = home.command(line).env("RACKWEAVE_PYTHON", python).output().unwrap();
        assert!(out.status.success(), "{line}: {out:?}");
    };
    run("sweep a.toml --out out --export figures");
    let begins = |file: &str, with: &[u8]| {
        let bytes = fs::read(home.path(&format!("figures/{file}"))).unwrap();
        assert!(bytes.starts_with(with) && bytes.len() > 1_000, "{file}: {} bytes", bytes.len());
    };
    begins("small-figure-1.svg", b"<svg");
    begins("small-figure-1.png", b"\x89PNG\r\n");
    begins("small-figure-1.pdf", b"%PDF-1.");
    assert_eq!(home.text("figures/small-figure-1.csv").lines().count(), 1 + 4 * 4, "four points, four statistics");
    let picture = "figures/small-picture-1.svg";
    assert!(!home.path(picture).exists(), "no spans were kept");
    run("run one.toml --spans slowest:5 --out one --export figures");
    assert!(
        home.text(picture).matches("<rect").count() > 20 && home.text("one/index.html").contains(&home.text(picture))
    );
    begins("small-picture-1.png", b"\x89PNG\r\n");
    begins("small-picture-1.pdf", b"%PDF-1.");
    run("reproduce edm/table1 --out again --export claims --no-records");
    assert!(home.text("claims/claims.tex").contains("299.52 ns & 299.52 ns & 296.5 to 302.5 & agrees"));
}

#[test]
fn an_export_that_cannot_draw_is_refused_before_anything_is_played() {
    let home = home();
    let mut command = home.command("sweep a.toml --out out --export figures");
    let said = Said::of(command.env("RACKWEAVE_PYTHON", "no-python").output().unwrap());
    said.refused(2, &["no-python has no package vl-convert-python", "pip install"]);
    assert!(!home.path("out").exists() && !home.path("figures").exists());
}
