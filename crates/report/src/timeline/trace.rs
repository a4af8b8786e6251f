//! Trace events in JSON, as ui.perfetto.dev and chrome://tracing open them.
//!
//! Process 1 has a track for each request, with the whole request and its spans. Each kind of place
//! is a process with a track for each place. Where spans overlap at a place, it has several tracks.
//! Arrows follow a request from place to place. Counters give the shown requests that wait there.
//! Times are those of the run.

use super::lanes::lanes;
use super::{Shown, name_of};
use base::{Span, Time};
use record::{Place, SpanKind, SpanRow};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The process of requests; kinds of places follow it.
const REQUESTS: u32 = 1;

/// Spans in which a request waits for others.
pub(crate) const WAITS: [SpanKind; 8] = [
    SpanKind::Wait,
    SpanKind::Schedule,
    SpanKind::NicQueue,
    SpanKind::SwitchQueue,
    SpanKind::StorageQueue,
    SpanKind::FlashWait,
    SpanKind::CollectionWait,
    SpanKind::Replication,
];

/// Returns the trace of some requests; the same requests give the same text.
pub fn trace(requests: &[Shown]) -> String {
    let mut tracks = Tracks::default();
    tracks.process(REQUESTS, "requests");
    let mut placed: BTreeMap<Place, Vec<(&Shown, &SpanRow)>> = BTreeMap::new();
    for shown in requests {
        tracks.request(shown);
        let spans = shown.spans.iter().filter(|span| is_slice(span) && span.entry.place != Place::Nowhere);
        spans.for_each(|span| placed.entry(span.entry.place).or_default().push((shown, span)));
    }
    for (place, spans) in &mut placed {
        spans.sort_by_key(|(shown, span)| (span.entry.begin, shown.row.request.0, span.number));
        tracks.place(*place, spans);
    }
    requests.iter().for_each(|shown| tracks.flow(shown));
    let trace = json!({ "displayTimeUnit": "ns", "traceEvents": tracks.events });
    serde_json::to_string(&trace).expect("events are texts and numbers") + "\n"
}

fn is_slice(span: &SpanRow) -> bool {
    span.entry.end > span.entry.begin
}

/// Microseconds, as trace events count.
fn us(at: Time) -> f64 {
    at.as_ps() as f64 / 1e6
}

fn us_of(span: Span) -> f64 {
    span.as_ps() as f64 / 1e6
}

/// Events, and the tracks that they are on.
#[derive(Default)]
struct Tracks {
    events: Vec<Value>,
    processes: BTreeMap<u32, u32>,
    /// The track of a span at its place, by request and number.
    of_span: BTreeMap<(u64, u32), (u32, u32)>,
}

impl Tracks {
    fn process(&mut self, pid: u32, name: &str) {
        if let Entry::Vacant(process) = self.processes.entry(pid) {
            process.insert(0);
            self.events.push(json!({ "ph": "M", "name": "process_name", "pid": pid, "args": { "name": name } }));
        }
    }

    /// Makes `count` tracks of one name, and returns the number of the first.
    fn tracks(&mut self, pid: u32, name: &str, count: usize) -> u32 {
        let next = self.processes.get_mut(&pid).expect("the process was made");
        let first = *next + 1;
        *next += count as u32;
        for lane in 0..count as u32 {
            let name = if lane == 0 { name.to_owned() } else { format!("{name} ({})", lane + 1) };
            let tid = first + lane;
            self.events
                .push(json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": { "name": name } }));
            let order = json!({ "ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": { "sort_index": tid } });
            self.events.push(order);
        }
        first
    }

    /// The whole request on a track, and its spans on it; parts that run in parallel have more.
    fn request(&mut self, shown: &Shown) {
        let row = &shown.row;
        let mut spans: Vec<&SpanRow> = shown.spans.iter().filter(|span| is_slice(span)).collect();
        spans.sort_by_key(|span| (span.entry.begin, span.number));
        let on = lanes(&spans.iter().map(|span| ends(span)).collect::<Vec<_>>());
        let count = on.iter().max().map_or(1, |most| most + 1);
        let first = self.tracks(REQUESTS, &format!("request {}", row.request.0), count);
        self.events.push(json!({
            "ph": "X", "cat": "request", "name": format!("{} {}", row.operation.name(), row.request.0),
            "pid": REQUESTS, "tid": first, "ts": us(row.intended), "dur": us_of(row.latency()),
            "args": {
                "request": row.request.0, "source": row.source.0, "target": row.target.0,
                "address": row.address, "bytes": row.bytes.count(), "outcome": row.outcome.name(),
            },
        }));
        for (span, lane) in spans.into_iter().zip(on) {
            let event = slice(shown, span, span.entry.kind.name().to_owned(), (REQUESTS, first + lane as u32));
            self.events.push(event);
        }
    }

    /// The spans at one place, and how many requests wait there.
    fn place(&mut self, place: Place, spans: &[(&Shown, &SpanRow)]) {
        let (kind, _) = place.numbers();
        let pid = REQUESTS + u32::from(kind);
        self.process(pid, Place::NAMES[usize::from(kind)]);
        let on = lanes(&spans.iter().map(|(_, span)| ends(span)).collect::<Vec<_>>());
        let count = on.iter().max().map_or(1, |most| most + 1);
        let first = self.tracks(pid, &name_of(place), count);
        for ((shown, span), lane) in spans.iter().zip(on) {
            let track = (pid, first + lane as u32);
            self.of_span.insert((shown.row.request.0, span.number), track);
            let name = format!("{} of {}", span.entry.kind.name(), shown.row.request.0);
            self.events.push(slice(shown, span, name, track));
        }
        self.counter(pid, place, spans);
    }

    fn counter(&mut self, pid: u32, place: Place, spans: &[(&Shown, &SpanRow)]) {
        let mut changes: BTreeMap<Time, i64> = BTreeMap::new();
        for (_, span) in spans.iter().filter(|(_, span)| WAITS.contains(&span.entry.kind)) {
            *changes.entry(span.entry.begin).or_default() += 1;
            *changes.entry(span.entry.end).or_default() -= 1;
        }
        let (name, mut waiting) = (format!("waiting at {}", name_of(place)), 0);
        for (at, change) in changes.into_iter().filter(|(_, change)| *change != 0) {
            waiting += change;
            self.events
                .push(json!({ "ph": "C", "name": name, "pid": pid, "ts": us(at), "args": { "requests": waiting } }));
        }
    }

    /// Arrows between the places of a request, in the order of time.
    fn flow(&mut self, shown: &Shown) {
        let number = shown.row.request.0;
        let mut spans: Vec<(&SpanRow, (u32, u32))> =
            shown.spans.iter().filter_map(|span| Some((span, *self.of_span.get(&(number, span.number))?))).collect();
        spans.sort_by_key(|(span, _)| (span.entry.begin, span.number));
        let last = spans.len().saturating_sub(1);
        for (place, (span, (pid, tid))) in spans.into_iter().enumerate().filter(|_| last > 0) {
            let phase = if place == 0 {
                "s"
            } else if place == last {
                "f"
            } else {
                "t"
            };
            let mut event = json!({
                "ph": phase, "cat": "request", "name": "request", "id": number, "pid": pid, "tid": tid,
                "ts": us(span.entry.begin),
            });
            if phase == "f" {
                // The slice that begins there, not the one after it.
                event["bp"] = "e".into();
            }
            self.events.push(event);
        }
    }
}

fn ends(span: &SpanRow) -> (u64, u64) {
    (span.entry.begin.as_ps(), span.entry.end.as_ps())
}

fn slice(shown: &Shown, span: &SpanRow, name: String, (pid, tid): (u32, u32)) -> Value {
    let entry = &span.entry;
    json!({
        "ph": "X", "cat": entry.kind.name(), "name": name, "pid": pid, "tid": tid,
        "ts": us(entry.begin), "dur": us_of(entry.end - entry.begin),
        "args": {
            "request": shown.row.request.0, "operation": shown.row.operation.name(), "number": span.number,
            "place": name_of(entry.place), "counted_ns": entry.counted.as_ps() as f64 / 1e3,
        },
    })
}
