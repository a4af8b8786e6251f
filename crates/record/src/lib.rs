//! The record of a run: one [`Row`] a request, whose spans sum exactly to its end-to-end time.

mod row;

pub use row::{Discard, Outcome, Row, Sink, SinkError, SpanKind, Spans};
