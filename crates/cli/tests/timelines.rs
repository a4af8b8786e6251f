//! `rackweave timeline`: the trace is read back, and has every kept span where it was.

mod support;

use record::{Place, SpanRow};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use support::{Home, SMALL};

fn events(home: &Home, file: &str) -> Vec<Value> {
    home.json(file)["traceEvents"].as_array().unwrap().clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Picoseconds of a time in microseconds.
fn ps(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1e6).round() as u64
}

/// A track: process and thread.
fn track(event: &Value) -> (u64, u64) {
    (number(&event["pid"]), number(&event["tid"]))
}

fn of_kind<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == phase).collect()
}

fn is_slice(span: &&SpanRow) -> bool {
    span.entry.end > span.entry.begin
}

#[test]
fn every_kept_span_is_a_slice_of_its_request_and_of_its_place() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --spans slowest:20 --out out");
    let out = home.run("timeline out");
    assert_eq!(out.lines().filter(|line| line.contains(" read ") || line.contains(" write ")).count(), 20, "{out}");
    let (spans, events) = (home.spans("out/seed-1/spans"), events(&home, "out/timeline.json"));
    let slices = of_kind(&events, "X");
    let requests: Vec<&&Value> = slices.iter().filter(|slice| slice["cat"] == "request").collect();
    assert_eq!(requests.len(), 20);
    let spans: Vec<&SpanRow> = spans.iter().filter(is_slice).collect();
    let placed = spans.iter().filter(|span| span.entry.place != Place::Nowhere).count();
    assert!(placed > 20);
    assert_eq!(slices.len(), 20 + spans.len() + placed);
    for span in spans {
        let is_it = |slice: &&&Value| {
            slice["cat"] == span.entry.kind.name()
                && number(&slice["args"]["request"]) == span.request.0
                && number(&slice["args"]["number"]) == u64::from(span.number)
        };
        let found: Vec<&&Value> = slices.iter().filter(is_it).collect();
        assert_eq!(found.len(), if span.entry.place == Place::Nowhere { 1 } else { 2 }, "{span:?}");
        for slice in found {
            assert_eq!(ps(&slice["ts"]), span.entry.begin.as_ps());
            assert_eq!(ps(&slice["dur"]), (span.entry.end - span.entry.begin).as_ps());
        }
    }
    let rows = home.rows("out/seed-1/records");
    for request in requests {
        let row = rows.iter().find(|row| row.request.0 == number(&request["args"]["request"])).unwrap();
        assert_eq!((ps(&request["ts"]), ps(&request["dur"])), (row.intended.as_ps(), row.latency().as_ps()));
    }
}

#[test]
fn slices_of_a_track_nest_and_every_track_has_a_name() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --spans all --out out");
    home.run("timeline out --slowest 200");
    let events = events(&home, "out/timeline.json");
    let named: BTreeSet<(u64, u64)> = events.iter().filter(|event| event["name"] == "thread_name").map(track).collect();
    let mut by_track: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for slice in of_kind(&events, "X") {
        assert!(named.contains(&track(slice)), "{slice}");
        let begin = ps(&slice["ts"]);
        by_track.entry(track(slice)).or_default().push((begin, begin + ps(&slice["dur"])));
    }
    for (track, mut slices) in by_track {
        slices.sort_by_key(|(begin, end)| (*begin, std::cmp::Reverse(*end)));
        let mut open: Vec<u64> = Vec::new();
        for (begin, end) in slices {
            open.retain(|until| *until > begin);
            assert!(open.last().is_none_or(|until| end <= *until), "{track:?}: a slice ends after the one around it");
            open.push(end);
        }
    }
    // Counters begin and end at zero, and are never negative.
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    for counter in of_kind(&events, "C") {
        let waiting = counter["args"]["requests"].as_i64().unwrap();
        assert!(waiting >= 0, "{counter}");
        last.insert(counter["name"].to_string(), waiting);
    }
    assert!(!last.is_empty() && last.values().all(|waiting| *waiting == 0), "{last:?}");
}

#[test]
fn arrows_follow_a_request_in_time() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --spans every:50 --out out");
    home.run("timeline out --request 100 --request 50 --out trace.json");
    let events = events(&home, "trace.json");
    let slices = of_kind(&events, "X");
    for request in [50, 100] {
        let arrows: Vec<&Value> = events.iter().filter(|event| event["id"] == request).collect();
        let phases: String = arrows.iter().map(|arrow| arrow["ph"].as_str().unwrap()).collect();
        assert!(phases.len() > 2 && phases.starts_with('s') && phases.ends_with('f'), "{phases}");
        assert!(phases[1..phases.len() - 1].bytes().all(|phase| phase == b't'), "{phases}");
        assert!(arrows.is_sorted_by_key(|arrow| ps(&arrow["ts"])));
        for arrow in arrows {
            let is_its = |slice: &&&Value| track(slice) == track(arrow) && slice["ts"] == arrow["ts"];
            assert!(slices.iter().any(|slice| is_its(&slice)), "an arrow is bound to a slice: {arrow}");
        }
    }
}

#[test]
fn the_same_run_gives_the_same_bytes_and_a_picture() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --spans slowest:5 --out out");
    home.run("timeline out --svg one.svg --out one.json");
    home.run("timeline out --svg two.svg --out two.json");
    assert_eq!((home.text("one.json"), home.text("one.svg")), (home.text("two.json"), home.text("two.svg")));
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
    assert!(!home.path("out/timeline.json").exists() && !home.path("bare/timeline.json").exists());
    let part = home.path("out/seed-1/spans/part-00000.parquet");
    let bytes = std::fs::read(&part).unwrap();
    std::fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
    home.say("timeline out").refused(2, &["part-00000.parquet: not a readable Parquet part"]);
}
