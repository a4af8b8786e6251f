//! Do DuckDB, Polars and pandas read a sweep's records without the names of folders?

use crate::support::{Home, SMALL, SWEEP};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python with the three packages: that of tools/setup-test.sh, or what `RACKWEAVE_PYTHON` names.
fn python() -> PathBuf {
    let of_setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let named = std::env::var_os("RACKWEAVE_PYTHON").map(PathBuf::from);
    let found = named.unwrap_or(of_setup);
    if found.exists() { found } else { "python3".into() }
}

#[test]
fn duckdb_polars_and_pandas_read_a_sweep_by_its_labels() {
    let home = Home::new().with("a.toml", &format!("{SMALL}{SWEEP}[record]\nseries = \"1us\"\n"));
    home.run("sweep a.toml --seeds 1..=2 --out out");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/records/readers.py");
    let output = Command::new(python()).arg(&script).arg(home.path("out")).arg("--series").output();
    let output = output.unwrap_or_else(|error| panic!("python3 does not start: {error}"));
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(2) {
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!in_ci, "the packages of tools/setup-test.sh are required here: {error}");
        println!("SKIPPED: {error}");
        return;
    }
    assert!(output.status.success(), "{error}");
    let of = |reader: &str| -> Vec<String> {
        said.lines().filter_map(|line| line.strip_prefix(reader)).map(|line| line.trim().to_owned()).collect()
    };
    let delivered = of("delivered_with_duckdb");
    assert_eq!((of("delivered_with_polars"), of("delivered_with_pandas")), (delivered.clone(), delivered.clone()));
    let groups = of("with_duckdb");
    assert_eq!((of("with_polars"), of("with_pandas")), (groups.clone(), groups.clone()), "{said}");
    let places: BTreeSet<String> =
        groups.iter().map(|group| group.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    let expected = ["cxl", "edm"]
        .map(|design| ["0.2", "0.5"].map(|load| ["1", "2"].map(|seed| format!("{design} {load} {seed}"))));
    assert_eq!(places, expected.into_iter().flatten().flatten().collect());
    for group in &groups {
        let parts: Vec<&str> = group.split(' ').collect();
        let [design, load, seed, rows, mean] = parts[..] else { panic!("{group}") };
        let mut folders = home.entries("out/points").into_iter();
        let folder = folders.find(|folder| folder.ends_with(&format!("-design={design},load={load}")));
        let folder = folder.expect("every point has a folder");
        let one = home.summary(&format!("out/points/{folder}/seed-{seed}/summary.json"));
        let samples = delivered.iter().find(|group| group.starts_with(&format!("{design} {load} {seed} ")));
        let bytes = samples.and_then(|group| group.rsplit(' ').next()).and_then(|sum| sum.parse::<f64>().ok());
        assert_eq!(bytes, Some(64.0 * one.counts.finished as f64), "{group}");
        assert_eq!(rows, one.counts.measured.to_string(), "{group}");
        assert!((mean.parse::<f64>().unwrap() - one.latency_ns["all"].mean).abs() < 0.002, "{group}");
    }
}
