//! The record of a run: one [`Row`] per request, whose spans sum exactly to its end-to-end time,
//! and the [`Summary`].
//!
//! * [`Ledger`] accounts for the time of one request, and detects gaps and time claimed twice;
//!   [`Keeper`] keeps the ordered spans of selected requests.
//! * [`Sink`] receives rows; [`ParquetWriter`] stores them as a dataset of Parquet parts, readable
//!   at any time, and [`read_part`] reads them back.
//! * [`Summarizer`] computes a [`Summary`] and latency histograms (HdrHistogram interval logs) from
//!   the same rows; [`Summary::over_seeds`] merges runs, with percentiles from their [`Pool`].
//! * [`Series`] declares what is sampled while a run goes on; each value is a [`SeriesRow`].
//! * [`metric`] declares the metrics of designs, and its [`Meter`](metric::Meter) collects readings
//!   of them.
//! * [`columns`] documents every column and every field with its unit.

mod availability;
mod backlog;
mod checksum;
mod column;
mod describe;
mod entries;
mod histogram_log;
mod keep;
mod label;
mod ledger;
pub mod metric;
mod pool;
mod read;
mod row;
mod seeds;
mod series;
mod steady;
mod summarize;
mod summary;
mod tally;
mod warn;
mod window;
mod write;

pub use availability::Availability;
pub use backlog::Backlog;
pub use checksum::CHECKSUM_KEY;
pub use describe::{Column, columns, has_number, number_paths, unit};
pub use entries::Entries;
pub use keep::{Keep, KeepError, Keeper, SpanRow};
pub use label::{Label, LabelValue};
pub use ledger::{Audit, Entry, Ledger, Place, Settled};
pub use pool::Pool;
pub use read::{Part, ReadError, read_part, read_parts, read_series, read_spans, verified};
pub use row::{Discard, Outcome, Row, Sink, SinkError, SpanKind, Spans};
pub use seeds::{MergeError, interval_95, student_t_975};
pub use series::{
    Over, SERIES_PLACES_MAX, Series, SeriesDefinition, SeriesFigure, SeriesForm, SeriesPlace, SeriesRow, series_page,
};
pub use steady::Transient;
pub use summarize::{ALL_OPERATIONS, RunFacts, RunIdentity, Summarizer};
pub use summary::{Counts, Load, Statistics, Summary, summary_json};
pub use write::{PLAN_HASH_KEY, ParquetWriter, Parts, Provenance, VERSION_KEY, Written, part_name};
