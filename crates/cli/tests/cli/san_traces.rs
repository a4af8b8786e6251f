//! Recorded loads on storage networks, from the file to the records: both architectures, every
//! message as bytes, the order of writes checked.

use crate::support::Home;
use std::path::PathBuf;

/// Of each trace.
const REQUESTS: u64 = 600;

/// Drives that hold all addresses of the traces; a hundred times as fast as they were recorded, in
/// the age of disks.
const STORAGE: &str = r#"title = "a trace on a storage network"
design.name = "san"
[drives]
per_target = 4
model = "quick"
capacity = "256GiB"
[io]
trace = "own.trace"
time_scale = 0.01
[check]
write_order = true
[run]
requests = 600
warm_up_requests = 0
[fabric]
hosts = 4
"#;
const SWITCHED: &str = "kind = \"single-switch\"\ntargets = 4\ntrunk = 4\n";
const SWITCHLESS: &str = "kind = \"torus\"\ndimensions = [2, 2]\n";

/// A trace of real requests, where it is at hand.
fn real(name: &str) -> Option<String> {
    let path = PathBuf::from(format!("{}/../../../shared/data/traces/{name}", env!("CARGO_MANIFEST_DIR")));
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        eprintln!("skipped: {name} is not at hand");
    }
    text
}

/// Plays the first requests of a trace. Each must come out once, as the trace has it, and no
/// acknowledged write may be undone.
fn replay(trace: &str, network: &str) -> Home {
    let home = Home::new().with("own.trace", trace).with("a.toml", &format!("{STORAGE}{network}"));
    home.run("run a.toml --wire --out out");
    let (summary, mut rows) = (home.summary("out/summary.json"), home.rows("out/seed-1/records"));
    assert_eq!((summary.counts.offered, summary.counts.finished), (REQUESTS, REQUESTS), "{network}");
    assert_eq!(summary.metrics["write_order_violations"], 0.0, "{network}");
    rows.sort_by_key(|row| row.request);
    for (line, row) in trace.lines().zip(&rows) {
        let fields: Vec<u64> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
        let is_read = row.operation == base::Operation::Read;
        assert_eq!((row.bytes.count(), is_read), (fields[3] * 512, fields[4] == 1), "{network}: {line}");
        assert!(row.adds_up(), "{network}: {line}");
    }
    let blocks_read = summary.metrics["write_order_reads_judged"];
    assert!(blocks_read >= rows.iter().filter(|row| row.operation == base::Operation::Read).count() as f64);
    home
}

#[test]
fn real_traces_replay_over_both_architectures_and_lose_no_write() {
    for name in ["tpcc-small.trace", "wsrch-small.trace"] {
        let Some(trace) = real(name) else { continue };
        for network in [SWITCHED, SWITCHLESS] {
            replay(&trace, network);
        }
    }
}

#[test]
fn a_trace_replayed_twice_with_one_seed_gives_the_same_bytes() {
    let made =
        || (0..REQUESTS).map(|line| format!("{} {} {} 16 {}\n", line * 90_000, line % 5, line % 40 * 16, line % 2));
    let trace = real("tpcc-small.trace").unwrap_or_else(|| made().collect());
    for network in [SWITCHED, SWITCHLESS] {
        let home = replay(&trace, network);
        home.run("run a.toml --wire --out again");
        assert_eq!(home.files("out"), home.files("again"), "{network}");
    }
}
