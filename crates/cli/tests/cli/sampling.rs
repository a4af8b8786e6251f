//! Time series of runs and sweeps: their files, and that they change nothing else.

use crate::support::{Home, SMALL, SWEEP};
use record::{Series, SeriesPlace, SeriesRow, read_series};
use std::fs::File;

const SAMPLED: &str = "[record]\nseries = \"100ns\"\n";

/// All samples of a seed, part by part.
fn samples(home: &Home, seed: &str) -> Vec<SeriesRow> {
    let folder = format!("{seed}/series");
    let parts = home.entries(&folder).into_iter().map(|part| home.path(&format!("{folder}/{part}")));
    let read = |part: std::path::PathBuf| read_series("part", &File::open(part).unwrap()).unwrap().rows;
    parts.flat_map(read).collect()
}

#[test]
fn samples_are_beside_records_that_are_the_same_to_the_byte() {
    let home = Home::new().with("a.toml", SMALL).with("b.toml", &format!("{SMALL}{SAMPLED}"));
    home.run("run a.toml --out plain");
    home.run("run b.toml --out sampled");
    for folder in ["seed-1/records", "seed-1"] {
        let of = |run: &str| {
            let files = home.files(&format!("{run}/{folder}"));
            files.into_iter().filter(|(name, _)| !name.starts_with("series")).collect::<Vec<_>>()
        };
        assert!(!of("plain").is_empty() && of("plain") == of("sampled"), "{folder}");
    }
    assert!(!home.path("plain/seed-1/series").exists());
    let rows = samples(&home, "sampled/seed-1");
    let total = |metric| {
        let of_all = rows.iter().filter(|row| row.metric == metric && row.place == SeriesPlace::Total);
        of_all.map(|row| row.value).sum::<f64>()
    };
    assert_eq!((total(Series::RequestsBegun), total(Series::RequestsEnded)), (400.0, 400.0));
    assert_eq!(total(Series::FinishedBytes), 400.0 * 64.0);
    // The plan replays with its samples.
    home.run("run sampled/plan.toml --out again");
    assert!(home.files("again/seed-1/series") == home.files("sampled/seed-1/series"));
}

#[test]
fn a_wrong_interval_is_an_error_with_its_line() {
    for (value, words) in [
        ("\"0s\"", "a.toml:12:10: record.series: 0ps is out of range"),
        ("\"-1us\"", "a.toml:12:10: record.series: "),
        ("10", "a.toml:12:10: record.series: `10` has no unit"),
    ] {
        let home = Home::new().with("a.toml", &format!("{SMALL}[record]\nseries = {value}\n"));
        home.say("check a.toml").refused(2, &[words]);
        home.say("run a.toml --out out").refused(2, &[words]);
        assert!(!home.path("out").exists());
    }
}

#[test]
fn check_says_how_much_a_series_will_be() {
    let home = Home::new().with("a.toml", &format!("{SMALL}{SAMPLED}"));
    let said = home.say("check a.toml");
    assert!(said.err.contains("values of series in") && said.err.contains(" samples, "), "{said:?}");
    assert!(said.out.contains("[record]\nseries = \"100ns\""), "{said:?}");
}

#[test]
fn the_page_of_a_run_draws_what_was_sampled() {
    let home = Home::new().with("a.toml", &format!("{SMALL}{SAMPLED}"));
    home.run("run a.toml --out out");
    let page = home.text("out/index.html");
    for title in ["Throughput over time (Gb/s)", "Requests over time (requests)", "Queues over time", "Credits"] {
        assert!(page.contains(title), "{title}");
    }
    let without = home.run("run a.toml --out plain --set record.series=1ms");
    assert!(page.len() < 3_000_000, "{} {without}", page.len());
}

#[test]
fn the_page_of_a_sweep_draws_the_totals_of_its_points() {
    let home = Home::new().with("a.toml", &format!("{SMALL}{SWEEP}{SAMPLED}"));
    home.run("sweep a.toml --out out");
    let page = home.text("out/index.html");
    assert!(page.contains("Requests over time (requests)"));
    for point in ["design.name=edm workload.load=0.2", "design.name=cxl workload.load=0.5"] {
        assert!(page.contains(point), "{point}");
    }
    for folder in home.entries("out/points") {
        assert!(!samples(&home, &format!("out/points/{folder}/seed-1")).is_empty());
    }
    // Another interval is another sweep: its points are not taken for finished.
    let other = Home::new().with("a.toml", &format!("{SMALL}{SWEEP}"));
    other.run("sweep a.toml --out out");
    other.say("sweep a.toml --out out --set record.series=1us").refused(2, &["holds another sweep"]);
}

#[test]
fn the_program_describes_its_series() {
    let home = Home::new();
    let said = home.run("describe");
    assert!(
        said.contains("series: one row a sampled value") && said.contains("metric = port_queue_bytes (f64; unit: B")
    );
    assert!(home.run("describe series").contains("# Time series"));
}
