//! Ordered spans of requests as a timeline: a trace that Perfetto opens, and a picture.

mod lanes;
mod perfetto;
mod picture;
mod trace;

pub use picture::picture;
pub(crate) use trace::WAITS;
pub use trace::trace;

use crate::table::lines_of;
use crate::value::show_number;
use base::Span;
use comfy_table::{ContentArrangement, Table, presets};
use record::{Place, Row, SpanRow};
use std::cmp::Reverse;

/// A request with its ordered spans.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its row.
    pub row: Row,
    /// Its spans, in the order in which they were claimed.
    pub spans: Vec<SpanRow>,
}

/// The name of a place, such as `switch 3`; empty for an unknown one.
pub(crate) fn name_of(place: Place) -> String {
    match place.numbers() {
        (0, _) => String::new(),
        (kind, index) => format!("{} {index}", Place::NAMES[usize::from(kind)]),
    }
}

/// The requests in a table, with their three longest spans and where they were.
pub fn text(requests: &[Shown]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["request", "", "latency ns", "longest spans"]);
    for Shown { row, spans } in requests {
        let latency = row.latency().as_ps().max(1) as f64;
        let mut longest: Vec<&SpanRow> = spans.iter().filter(|span| span.entry.counted > Span::ZERO).collect();
        longest.sort_by_key(|span| (Reverse(span.entry.counted), span.number));
        let each = longest.into_iter().take(3).map(|span| {
            let share = 100.0 * span.entry.counted.as_ps() as f64 / latency;
            format!("{} {share:.1} % {}", span.entry.kind.name(), name_of(span.entry.place)).trim_end().to_owned()
        });
        table.add_row([
            row.request.0.to_string(),
            row.operation.name().to_owned(),
            show_number((latency / 10.0).round() / 100.0),
            each.collect::<Vec<_>>().join(", "),
        ]);
    }
    lines_of(&table) + "\n"
}
