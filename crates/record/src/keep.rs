//! The ordered spans of selected requests.

use crate::entries::Entries;
use crate::ledger::{Entry, Place};
use crate::row::{Row, Sink, SinkError, SpanKind};
use base::{RequestId, Span, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// One span of one request: a row of the spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRow {
    /// The request's number in the run.
    pub request: RequestId,
    /// The span's number in its request, from 0 in the order in which spans were claimed.
    pub number: u32,
    /// The claim.
    pub entry: Entry,
}

impl SpanRow {
    /// An empty row, for the reader to fill in.
    pub(crate) const BLANK: SpanRow = SpanRow {
        request: RequestId(0),
        number: 0,
        entry: Entry {
            kind: SpanKind::Wait,
            place: Place::Nowhere,
            begin: Time::ZERO,
            end: Time::ZERO,
            counted: Span::ZERO,
        },
    };
}

/// The requests whose ordered spans are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// No request.
    #[default]
    Nothing,
    /// This many requests with the longest latency.
    Slowest(u32),
    /// Every n-th request.
    Every(u64),
    /// All requests.
    All,
}

/// A text that is no valid selection of requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not say whose spans are kept; allowed are none, slowest:K, every:N and all, K and N from 1")]
pub struct KeepError(String);

impl FromStr for Keep {
    type Err = KeepError;
    fn from_str(text: &str) -> Result<Keep, KeepError> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
        let keep = match text.split_once(':') {
            None if text == "none" => Some(Keep::Nothing),
            None if text == "all" => Some(Keep::All),
            Some(("slowest", count)) => number(count).map(Keep::Slowest),
            Some(("every", step)) => number(step).map(|step| Keep::Every(step.into())),
            _ => None,
        };
        keep.ok_or_else(|| KeepError(text.into()))
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::Nothing => write!(out, "none"),
            Keep::Slowest(count) => write!(out, "slowest:{count}"),
            Keep::Every(step) => write!(out, "every:{step}"),
            Keep::All => write!(out, "all"),
        }
    }
}

/// Selects the requests whose spans are kept, and passes their spans to a sink: at once, or at the
/// end for the slowest.
#[derive(Clone, Debug, Default)]
pub struct Keeper {
    keep: Keep,
    /// By latency; of equal latencies, the earliest request comes last.
    slowest: BTreeMap<(Span, Reverse<RequestId>), Entries>,
    /// The shortest latency of those, once there are enough.
    least: Span,
}

impl Keeper {
    /// Creates a keeper before the first request.
    pub fn new(keep: Keep) -> Keeper {
        Keeper { keep, slowest: BTreeMap::new(), least: Span::ZERO }
    }

    /// Returns whether the spans of a request may be kept.
    #[inline]
    pub fn wants(&self, request: RequestId) -> bool {
        match self.keep {
            Keep::Nothing => false,
            Keep::Slowest(_) | Keep::All => true,
            Keep::Every(step) => request.0.is_multiple_of(step),
        }
    }

    /// The latency below which no further request is kept; zero if every one may be.
    #[inline]
    pub fn least(&self) -> Span {
        self.least
    }

    /// Handles the end of a request.
    #[inline]
    pub fn take(&mut self, row: &Row, entries: Entries, sink: &mut dyn Sink) -> Result<(), SinkError> {
        if entries.is_empty() || row.latency() < self.least {
            entries.discard();
            return Ok(());
        }
        self.add(row, entries, sink)
    }

    fn add(&mut self, row: &Row, entries: Entries, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let Keep::Slowest(count) = self.keep else { return pass(row.request, entries, sink) };
        self.slowest.insert((row.latency(), Reverse(row.request)), entries);
        if self.slowest.len() > count as usize
            && let Some((_, faster)) = self.slowest.pop_first()
        {
            faster.discard();
        }
        if self.slowest.len() == count as usize {
            self.least = self.slowest.first_key_value().map_or(Span::ZERO, |((latency, _), _)| *latency);
        }
        Ok(())
    }

    /// Passes on the spans kept until the end, the slowest first.
    pub fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let mut slowest = std::mem::take(&mut self.slowest).into_iter().rev();
        slowest.try_for_each(|((_, Reverse(request)), entries)| pass(request, entries, sink))
    }
}

/// Passes on the spans of a request.
fn pass(request: RequestId, entries: Entries, sink: &mut dyn Sink) -> Result<(), SinkError> {
    let spans: Vec<SpanRow> =
        entries.iter().zip(0..).map(|(entry, number)| SpanRow { request, number, entry }).collect();
    entries.discard();
    sink.spans(&spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Record;
    use crate::ledger::Ledger;

    #[derive(Default)]
    struct Spans(Vec<u64>);

    impl Sink for Spans {
        fn row(&mut self, _: &Row) -> Result<(), SinkError> {
            Ok(())
        }
        fn spans(&mut self, spans: &[SpanRow]) -> Result<(), SinkError> {
            self.0.extend(spans.iter().map(|span| span.request.0));
            Ok(())
        }
    }

    /// Returns the requests whose spans are kept, given the latencies of all requests.
    fn kept(keep: &str, latencies: &[u64]) -> Vec<u64> {
        let (mut keeper, mut sink) = (Keeper::new(keep.parse().unwrap()), Spans::default());
        for (latency, request) in latencies.iter().zip(0..) {
            let row = Row { request: RequestId(request), end: Time::ns(*latency), ..Row::blank() };
            let entry = SpanRow::BLANK.entry;
            let mut ledger = Ledger::open(entry.begin, keeper.wants(row.request));
            ledger.claim(entry.kind, entry.begin, row.end, entry.place);
            let entries = ledger.settle(row.end).entries;
            keeper.take(&row, entries, &mut sink).unwrap();
        }
        keeper.finish(&mut sink).unwrap();
        sink.0
    }

    #[test]
    fn those_are_kept_that_were_asked_for() {
        let latencies = [3, 9, 1, 9, 4];
        assert!(kept("none", &latencies).is_empty());
        assert_eq!(kept("all", &latencies), [0, 1, 2, 3, 4]);
        assert_eq!(kept("every:2", &latencies), [0, 2, 4]);
        assert_eq!(kept("slowest:3", &latencies), [1, 3, 4]);
        assert_eq!(kept("slowest:1", &latencies), [1]);
    }

    #[test]
    fn what_is_none_of_the_four_is_refused_and_each_is_written_as_it_is_read() {
        for text in ["none", "all", "every:1000", "slowest:20"] {
            assert_eq!(text.parse::<Keep>().unwrap().to_string(), text);
        }
        for text in ["", "some", "every", "every:0", "slowest:-1", "slowest:", "all:3"] {
            assert_eq!(text.parse::<Keep>(), Err(KeepError(text.into())));
        }
    }
}
