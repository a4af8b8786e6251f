//! Who held what a slow request waited for. Only ordered spans that a run kept can say it.

use super::Rows;
use crate::timeline::{WAITS, name_of};
use base::{Span, Time};
use record::{Place, SpanKind, SpanRow};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Holders that are named.
const NAMED: usize = 3;

/// The longest wait of a request, and who held the place meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Behind {
    /// The request that waited.
    pub request: u64,
    /// The kind of wait.
    pub span: &'static str,
    /// How long it waited there, in nanoseconds.
    pub wait_ns: f64,
    /// Where it waited, such as `drive 3`.
    pub place: String,
    /// What it waited for: where it was served next.
    pub resource: String,
    /// Those of the kept requests that held it longest during the wait, longest first.
    pub holders: Vec<Holder>,
    /// How many of them held it.
    pub held_by: usize,
    /// The share of the wait in which one of them held it.
    pub explained: f64,
}

/// A request that held a place while another waited for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holder {
    /// Its number.
    pub request: u64,
    /// What it did there.
    pub span: &'static str,
    /// For how long of the wait, in nanoseconds.
    pub held_ns: f64,
}

/// The wait of one request, and what holds its resource.
struct Window {
    request: u64,
    wait: SpanRow,
    resource: Place,
    /// What is done there; anything where nothing followed.
    service: Option<SpanKind>,
    held: BTreeMap<u64, (SpanKind, Span)>,
    times: Vec<(Time, Time)>,
}

/// Finds who held what these requests waited for longest, in their order. Requests whose spans were
/// not kept, and those that waited for nothing, are left out. Spans are read twice.
pub fn behind<E>(spans: &Rows<'_, E, SpanRow>, requests: &[u64]) -> Result<Vec<Behind>, E> {
    let mut own: BTreeMap<u64, Vec<SpanRow>> = requests.iter().map(|request| (*request, Vec::new())).collect();
    spans(&mut |part| {
        for span in part {
            if let Some(own) = own.get_mut(&span.request.0) {
                own.push(*span);
            }
        }
    })?;
    let mut windows: Vec<Window> = requests.iter().filter_map(|request| Window::of(*request, &own[request])).collect();
    spans(&mut |part| {
        for span in part.iter().filter(|span| !WAITS.contains(&span.entry.kind)) {
            windows.iter_mut().for_each(|window| window.meet(span));
        }
    })?;
    Ok(windows.into_iter().map(Window::answer).collect())
}

impl Window {
    fn of(request: u64, spans: &[SpanRow]) -> Option<Window> {
        let is_wait = |span: &&SpanRow| WAITS.contains(&span.entry.kind) && span.entry.end > span.entry.begin;
        let waits = spans.iter().filter(is_wait);
        let wait = *waits.max_by_key(|span| (span.entry.end - span.entry.begin, Reverse(span.number)))?;
        // It waited for what it got next.
        let is_next = |span: &&SpanRow| {
            !WAITS.contains(&span.entry.kind) && span.entry.begin >= wait.entry.end && span.entry.end > span.entry.begin
        };
        let next = spans.iter().filter(is_next).min_by_key(|span| (span.entry.begin, span.number));
        let resource = next.map_or(wait.entry.place, |next| next.entry.place);
        let service = next.map(|next| next.entry.kind);
        Some(Window { request, wait, resource, service, held: BTreeMap::new(), times: Vec::new() })
    }

    /// Another request's span, which may lie in the wait.
    fn meet(&mut self, span: &SpanRow) {
        let (entry, wait) = (&span.entry, &self.wait.entry);
        if self.service.is_some_and(|service| service != entry.kind) {
            return;
        }
        if entry.place != self.resource || entry.place == Place::Nowhere || span.request.0 == self.request {
            return;
        }
        let (begin, end) = (entry.begin.max(wait.begin), entry.end.min(wait.end));
        if begin < end {
            let held = self.held.entry(span.request.0).or_insert((entry.kind, Span::ZERO));
            held.1 += end - begin;
            self.times.push((begin, end));
        }
    }

    fn answer(mut self) -> Behind {
        let wait = self.wait.entry.end - self.wait.entry.begin;
        let mut holders: Vec<(u64, (SpanKind, Span))> = self.held.into_iter().collect();
        holders.sort_by_key(|(request, (_, held))| (Reverse(*held), *request));
        let held_by = holders.len();
        let named = holders.into_iter().take(NAMED);
        Behind {
            request: self.request,
            span: self.wait.entry.kind.name(),
            wait_ns: wait.as_ns_f64(),
            place: name_of(self.wait.entry.place),
            resource: name_of(self.resource),
            holders: named
                .map(|(request, (kind, held))| Holder { request, span: kind.name(), held_ns: held.as_ns_f64() })
                .collect(),
            held_by,
            explained: covered(&mut self.times).as_ns_f64() / wait.as_ns_f64(),
        }
    }
}

/// The time in which at least one of some intervals lies.
fn covered(times: &mut [(Time, Time)]) -> Span {
    times.sort_unstable();
    let (mut sum, mut until) = (Span::ZERO, Time::ZERO);
    for (begin, end) in times.iter() {
        let begin = (*begin).max(until);
        sum += (*end).saturating_since(begin);
        until = until.max(*end);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::RequestId;
    use record::Entry;
    use std::convert::Infallible;

    fn span(request: u64, number: u32, kind: SpanKind, place: Place, [begin, end]: [u64; 2]) -> SpanRow {
        let (begin, end) = (Time::ns(begin), Time::ns(end));
        SpanRow { request: RequestId(request), number, entry: Entry { kind, place, begin, end, counted: end - begin } }
    }

    #[test]
    fn those_that_held_the_next_place_are_named_by_their_time() {
        let (drive, link) = (Place::Drive(3), Place::Link(1));
        let all = [
            span(9, 0, SpanKind::NicQueue, link, [0, 5]),
            span(9, 1, SpanKind::Serialization, link, [5, 10]),
            span(9, 2, SpanKind::FlashWait, drive, [10, 110]),
            span(9, 3, SpanKind::Flash, drive, [110, 150]),
            // Holders for 60 and 25 ns, one that overlaps another, one elsewhere, one before.
            span(1, 0, SpanKind::Flash, drive, [0, 70]),
            span(2, 0, SpanKind::Flash, drive, [85, 120]),
            span(3, 0, SpanKind::Flash, drive, [60, 70]),
            span(4, 0, SpanKind::Flash, Place::Drive(2), [10, 110]),
            span(5, 0, SpanKind::Flash, drive, [0, 10]),
            span(6, 0, SpanKind::FlashWait, drive, [10, 110]),
            // Done there beside what the request waits for.
            span(7, 0, SpanKind::Stack, drive, [10, 110]),
        ];
        let read = |each: &mut dyn FnMut(&[SpanRow])| {
            all.chunks(3).for_each(each);
            Ok::<(), Infallible>(())
        };
        let Ok(found) = behind(&read, &[9, 77]);
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.request, one.span, one.wait_ns, one.place.as_str()), (9, "flash_wait", 100.0, "drive 3"));
        let holders: Vec<(u64, f64)> = one.holders.iter().map(|holder| (holder.request, holder.held_ns)).collect();
        assert_eq!((holders, one.held_by), (vec![(1, 60.0), (2, 25.0), (3, 10.0)], 3));
        assert!((one.explained - 0.85).abs() < 1e-9, "{}", one.explained);
    }
}
