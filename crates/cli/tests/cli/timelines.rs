//! `rackweave timeline`: the trace is read back, and has every kept span where it was.

use crate::support::{Home, SMALL, python};
use record::SpanRow;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn is_slice(span: &&SpanRow) -> bool {
    span.entry.end > span.entry.begin
}

/// What `tests/timeline/check.py` prints about a trace of `out`; `None` without its Python
/// packages.
fn checked(home: &Home, trace: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/timeline/check.py");
    let mut command = Command::new(python()?);
    let out = command.arg(script).arg(home.path(trace)).arg(home.path("out/seed-1")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8(out.stdout).unwrap())
}

#[test]
fn perfetto_reads_every_kept_span_of_the_slowest_requests() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --spans slowest:20 --out out");
    let out = home.run("timeline out");
    assert_eq!(out.lines().filter(|line| line.contains(" read ") || line.contains(" write ")).count(), 20, "{out}");
    let spans = home.spans("out/seed-1/spans").iter().filter(is_slice).count();
    let Some(found) = checked(&home, "out/timeline.pftrace") else { return };
    assert!(found.starts_with(&format!("20 requests, {spans} spans, ")), "{found}");
}

#[test]
fn perfetto_reads_all_requests_and_those_that_are_asked_for() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --spans all --out out");
    home.run("timeline out --slowest 200");
    home.run("timeline out --request 100 --request 50 --out trace.pftrace");
    let Some(found) = checked(&home, "out/timeline.pftrace") else { return };
    assert!(found.starts_with("200 requests, ") && !found.contains(" 0 "), "{found}");
    assert!(checked(&home, "trace.pftrace").unwrap().starts_with("2 requests, "));
}

#[test]
fn the_same_run_gives_the_same_bytes_and_a_picture() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --spans slowest:5 --out out");
    home.run("timeline out --svg one.svg --out one.pftrace");
    home.run("timeline out --svg two.svg --out two.pftrace");
    let bytes = |name: &str| std::fs::read(home.path(name)).unwrap();
    assert_eq!((bytes("one.pftrace"), bytes("one.svg")), (bytes("two.pftrace"), bytes("two.svg")));
    let picture = home.text("one.svg");
    assert!(picture.starts_with("<svg") && picture.contains("<title>") && picture.contains("<desc>"), "{picture}");
    let spans = home.spans("out/seed-1/spans");
    let bars = spans.iter().filter(is_slice).count();
    let kinds: BTreeSet<_> = spans.iter().map(|span| span.entry.kind).collect();
    // Bars, the boxes of the legend, and the ground.
    assert_eq!(picture.matches("<rect").count(), bars + kinds.len() + 1);
}

#[test]
fn what_has_no_spans_is_refused_by_name() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --out bare");
    home.say("timeline bare").refused(2, &["bare/seed-1/spans: no spans were kept", "--spans"]);
    home.run("run a.toml --spans every:50 --out out");
    home.say("timeline out --request 51").refused(2, &["no spans of request 51", "--spans all"]);
    home.say("timeline out --seed 2").refused(2, &["no such seed"]);
    home.say("timeline gone").refused(2, &["gone: there is no such folder"]);
    assert!(!home.path("out/timeline.pftrace").exists() && !home.path("bare/timeline.pftrace").exists());
    let part = home.path("out/seed-1/spans/part-00000.parquet");
    let bytes = std::fs::read(&part).unwrap();
    std::fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
    home.say("timeline out").refused(2, &["part-00000.parquet: not a readable Parquet part"]);
}
