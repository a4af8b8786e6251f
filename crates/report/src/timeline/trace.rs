//! A trace in the format of Perfetto, as ui.perfetto.dev opens it.
//!
//! A group of tracks has the requests, each with itself and its spans. Each kind of place is a
//! group with a track for each place. Where spans overlap, there are several tracks. Arrows follow
//! a request from place to place. Counters give the shown requests that wait there. Times are those
//! of the run, in nanoseconds; slices name their picoseconds.

use super::lanes::lanes;
use super::perfetto::{
    CLEARED, COUNTER, CounterDescriptor, DebugAnnotation, EXPLICIT, SLICE_BEGIN, SLICE_END, Trace, TracePacket,
    TrackDescriptor, TrackEvent,
};
use super::{Shown, name_of};
use base::Time;
use prost::Message;
use record::{Place, SpanKind, SpanRow};
use std::collections::BTreeMap;

/// The group of requests; groups of places follow it.
const REQUESTS: u64 = 1;
/// Beyond all groups.
const FIRST_TRACK: u64 = 1 << 16;
/// One sequence has everything.
const SEQUENCE: u32 = 1;

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

/// Returns the trace of some requests; the same requests give the same bytes.
pub fn trace(requests: &[Shown]) -> Vec<u8> {
    let mut tracks = Tracks::default();
    tracks.group(REQUESTS, "requests");
    let mut placed: BTreeMap<Place, Vec<(&Shown, &SpanRow)>> = BTreeMap::new();
    for shown in requests {
        tracks.request(shown);
        for span in stops(shown) {
            placed.entry(span.entry.place).or_default().push((shown, span));
        }
    }
    for (place, spans) in &mut placed {
        spans.sort_by_key(|(shown, span)| (span.entry.begin, shown.row.request.0, span.number));
        tracks.place(*place, spans);
    }
    Trace { packet: tracks.packets }.encode_to_vec()
}

fn is_slice(span: &SpanRow) -> bool {
    span.entry.end > span.entry.begin
}

/// The spans of a request that have a place, in the order of time.
fn stops(shown: &Shown) -> Vec<&SpanRow> {
    let mut spans: Vec<&SpanRow> =
        shown.spans.iter().filter(|span| is_slice(span) && span.entry.place != Place::Nowhere).collect();
    spans.sort_by_key(|span| (span.entry.begin, span.number));
    spans
}

#[derive(Default)]
struct Tracks {
    packets: Vec<TracePacket>,
    groups: BTreeMap<u64, i32>,
    made: u64,
}

impl Tracks {
    fn push(&mut self, packet: TracePacket) {
        let sequence_flags = self.packets.is_empty().then_some(CLEARED);
        self.packets.push(TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), sequence_flags, ..packet });
    }

    fn event(&mut self, at: Time, track: u64, r#type: i32, event: TrackEvent) {
        let event = TrackEvent { r#type: Some(r#type), track_uuid: Some(track), ..event };
        let timestamp = Some(at.as_ps() / 1_000);
        self.push(TracePacket { timestamp, track_event: Some(event), ..TracePacket::default() });
    }

    fn descriptor(&mut self, descriptor: TrackDescriptor) {
        self.push(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
    }

    fn group(&mut self, group: u64, name: &str) {
        if self.groups.contains_key(&group) {
            return;
        }
        self.groups.insert(group, 0);
        self.descriptor(TrackDescriptor {
            uuid: Some(group),
            name: Some(name.to_owned()),
            child_ordering: Some(EXPLICIT),
            ..TrackDescriptor::default()
        });
    }

    /// Makes a track of a group, and returns it.
    fn track(&mut self, group: u64, name: String, counter: Option<CounterDescriptor>) -> u64 {
        let rank = self.groups.get_mut(&group).expect("the group was made");
        *rank += 1;
        let sibling_order_rank = Some(*rank);
        self.made += 1;
        let uuid = FIRST_TRACK + self.made;
        self.descriptor(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: Some(group),
            counter,
            child_ordering: None,
            sibling_order_rank,
        });
        uuid
    }

    /// Makes as many tracks of one name as spans need that overlap; the track of each span.
    fn tracks_for(&mut self, group: u64, name: &str, spans: &[&SpanRow]) -> (u64, Vec<u64>) {
        let ends = |span: &&SpanRow| (span.entry.begin.as_ps(), span.entry.end.as_ps());
        let on = lanes(&spans.iter().map(ends).collect::<Vec<_>>());
        let count = on.iter().max().map_or(1, |most| most + 1);
        let name_of = |lane: usize| if lane == 0 { name.to_owned() } else { format!("{name} ({})", lane + 1) };
        let made: Vec<u64> = (0..count).map(|lane| self.track(group, name_of(lane), None)).collect();
        (made[0], on.into_iter().map(|lane| made[lane]).collect())
    }

    /// The whole request on a track, and its spans on it; parts that run in parallel have more.
    fn request(&mut self, shown: &Shown) {
        let row = &shown.row;
        let mut spans: Vec<&SpanRow> = shown.spans.iter().filter(|span| is_slice(span)).collect();
        spans.sort_by_key(|span| (span.entry.begin, span.number));
        let (first, on) = self.tracks_for(REQUESTS, &format!("request {}", row.request.0), &spans);
        let whole = TrackEvent {
            name: Some(format!("{} {}", row.operation.name(), row.request.0)),
            categories: vec!["request".to_owned()],
            debug_annotations: vec![
                DebugAnnotation::number("request", row.request.0),
                DebugAnnotation::number("source", row.source.0.into()),
                DebugAnnotation::number("target", row.target.0.into()),
                DebugAnnotation::number("address", row.address),
                DebugAnnotation::number("bytes", row.bytes.count()),
                DebugAnnotation::text("outcome", row.outcome.name()),
                DebugAnnotation::number("begin_ps", row.intended.as_ps()),
                DebugAnnotation::number("duration_ps", row.latency().as_ps()),
            ],
            ..TrackEvent::default()
        };
        self.event(row.intended, first, SLICE_BEGIN, whole);
        for (span, track) in spans.into_iter().zip(on) {
            self.slice(shown, span, span.entry.kind.name().to_owned(), track, [Vec::new(), Vec::new()]);
        }
        self.event(row.intended + row.latency(), first, SLICE_END, TrackEvent::default());
    }

    /// The spans at one place, and how many requests wait there.
    fn place(&mut self, place: Place, spans: &[(&Shown, &SpanRow)]) {
        let (kind, _) = place.numbers();
        let group = REQUESTS + u64::from(kind);
        self.group(group, Place::NAMES[usize::from(kind)]);
        let rows: Vec<&SpanRow> = spans.iter().map(|(_, span)| *span).collect();
        let (_, on) = self.tracks_for(group, &name_of(place), &rows);
        for ((shown, span), track) in spans.iter().zip(on) {
            let name = format!("{} of {}", span.entry.kind.name(), shown.row.request.0);
            self.slice(shown, span, name, track, flows(shown, span));
        }
        self.counter(group, place, &rows);
    }

    fn slice(&mut self, shown: &Shown, span: &SpanRow, name: String, track: u64, [on, off]: [Vec<u64>; 2]) {
        let entry = &span.entry;
        let event = TrackEvent {
            name: Some(name),
            categories: vec![entry.kind.name().to_owned()],
            debug_annotations: vec![
                DebugAnnotation::number("request", shown.row.request.0),
                DebugAnnotation::text("operation", shown.row.operation.name()),
                DebugAnnotation::number("number", span.number.into()),
                DebugAnnotation::text("place", name_of(entry.place)),
                DebugAnnotation::number("begin_ps", entry.begin.as_ps()),
                DebugAnnotation::number("duration_ps", (entry.end - entry.begin).as_ps()),
                DebugAnnotation::number("counted_ps", entry.counted.as_ps()),
            ],
            flow_ids: on,
            terminating_flow_ids: off,
            ..TrackEvent::default()
        };
        self.event(entry.begin, track, SLICE_BEGIN, event);
        self.event(entry.end, track, SLICE_END, TrackEvent::default());
    }

    fn counter(&mut self, group: u64, place: Place, spans: &[&SpanRow]) {
        let mut changes: BTreeMap<Time, i64> = BTreeMap::new();
        for span in spans.iter().filter(|span| WAITS.contains(&span.entry.kind)) {
            *changes.entry(span.entry.begin).or_default() += 1;
            *changes.entry(span.entry.end).or_default() -= 1;
        }
        if changes.is_empty() {
            return;
        }
        let unit = CounterDescriptor { unit_name: Some("requests".to_owned()) };
        let track = self.track(group, format!("waiting at {}", name_of(place)), Some(unit));
        let mut waiting = 0;
        for (at, change) in changes.into_iter().filter(|(_, change)| *change != 0) {
            waiting += change;
            self.event(at, track, COUNTER, TrackEvent { counter_value: Some(waiting), ..TrackEvent::default() });
        }
    }
}

/// The arrows of a request that pass by a span: one that goes on, or one that ends. A request with
/// one stop has none.
fn flows(shown: &Shown, span: &SpanRow) -> [Vec<u64>; 2] {
    let stops = stops(shown);
    // Zero is no flow.
    let flow = vec![shown.row.request.0 + 1];
    match stops.last() {
        _ if stops.len() < 2 => [Vec::new(), Vec::new()],
        Some(last) if last.number == span.number => [Vec::new(), flow],
        _ => [flow, Vec::new()],
    }
}
