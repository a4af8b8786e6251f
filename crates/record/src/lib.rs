//! The record of a run: one [`Row`] a request, whose spans sum exactly to its end-to-end time, and the [`Summary`].

mod row;
mod summary;

pub use row::{Discard, Outcome, Row, Sink, SinkError, SpanKind, Spans};
pub use summary::{Counts, Load, Statistics, Summary};
