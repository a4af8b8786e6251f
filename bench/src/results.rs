//! What results cost: keeping the ordered spans of the slowest requests, and explaining a run,
//! against sorting its latencies.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use plan::{NoFiles, Plan, parse};
use record::{Discard, Keep, Row, Sink, SinkError};
use report::explain::{Facts, explain};
use sim::drive::Unobserved;
use sim::{RunOptions, run};
use std::convert::Infallible;

const REQUESTS: usize = 100_000;
/// How often the rows are passed: ten million in all.
const TIMES: usize = 100;

fn plan() -> Plan {
    let text = format!(
        "title = \"bench\"\nfabric = {{ nodes = 64, rate = \"100Gbps\" }}\ndesign.name = \"edm\"\n\
         workload = {{ load = 0.6, size = \"64B\", read_fraction = 0.5 }}\nrun.requests = {REQUESTS}\n"
    );
    let experiment = parse("bench", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

/// Keeps all rows.
struct Rows(Vec<Row>);

impl Sink for Rows {
    fn row(&mut self, row: &Row) -> Result<(), SinkError> {
        self.0.push(*row);
        Ok(())
    }
}

fn played() -> Vec<Row> {
    let mut rows = Rows(Vec::with_capacity(REQUESTS));
    run(&plan(), &RunOptions::default(), &mut rows, &mut Unobserved).expect("the network can be built");
    assert_eq!(rows.0.len(), REQUESTS, "every request has a row");
    rows.0
}

/// A SAN, whose ledgers are written while packets travel; those of EDM are written at the end.
fn san() -> Plan {
    let text = format!(
        "title = \"bench\"\ndesign.name = \"san\"\nfabric = {{ kind = \"torus\", dimensions = [3, 3, 3], hosts = 27 }}\n\
         drives = {{ per_target = 1, model = \"quick\" }}\nio = {{ depth = 64, write_share = 0.3 }}\n\
         run.requests = {REQUESTS}\n"
    );
    let experiment = parse("bench", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

/// Requests per CPU second with and without the spans of the 20 slowest requests.
fn keeping(plan: fn() -> Plan, keys: [&str; 2]) -> Group {
    let contenders = [(Keep::Slowest(20), keys[0]), (Keep::Nothing, keys[1])];
    let contenders = contenders.map(|(spans, key)| {
        let plan = plan();
        let run = move || {
            let options = RunOptions { spans, ..RunOptions::default() };
            let play = || assert!(run(&plan, &options, &mut Discard, &mut Unobserved).is_ok(), "it is played");
            REQUESTS as f64 / cpu_seconds(play)
        };
        Contender { key: key.to_owned(), run: Box::new(run) }
    });
    Group { better: Better::Higher, rounds: 31, contenders: contenders.into() }
}

fn explained(rows: &[Row]) {
    let pass = |each: &mut dyn FnMut(&[Row])| {
        (0..TIMES).for_each(|_| each(rows));
        Ok::<(), Infallible>(())
    };
    let Ok(found) = explain(&pass, Facts::default(), 5);
    let found = found.expect("requests finished");
    assert!(found.slow > found.requests / 100, "{found:?}");
}

/// Rows per CPU second: an explanation, and sorting the latencies.
fn explaining() -> Group {
    let (ours, theirs) = (played(), played());
    let all = (TIMES * REQUESTS) as f64;
    let sorted = move || {
        all / cpu_seconds(|| {
            let mut latencies: Vec<u64> = Vec::with_capacity(TIMES * REQUESTS);
            (0..TIMES).for_each(|_| latencies.extend(theirs.iter().map(|row| row.latency().as_ps())));
            latencies.sort_unstable();
            assert!(latencies.is_sorted());
        })
    };
    let contenders = vec![
        Contender {
            key: "results.explained_rows_per_cpu_s".into(),
            run: Box::new(move || all / cpu_seconds(|| explained(&ours))),
        },
        Contender { key: "results.explained_rows_per_cpu_s.sort".into(), run: Box::new(sorted) },
    ];
    Group { better: Better::Higher, rounds: 3, contenders }
}

/// Returns the cost of kept spans, and of an explanation.
pub fn benchmarks() -> Vec<Group> {
    vec![
        keeping(plan, ["results.requests_per_cpu_s.slowest20", "results.requests_per_cpu_s.no_spans"]),
        keeping(san, ["results.san_commands_per_cpu_s.slowest20", "results.san_commands_per_cpu_s.no_spans"]),
        explaining(),
    ]
}

/// Explains ten million rows, to measure the memory.
pub fn memory_child() {
    explained(&played());
}
