//! From records to tables, figures, a verdict on each published claim, and offline pages.
//!
//! Nothing here runs anything or knows a path: text and [`record::Summary`] values go in, text
//! comes out. In the order in which a run is reported:
//!
//! 1. [`claims::ledgers`] holds what the papers claim;
//! 2. [`bindings::parse`] reads how an experiment measures those claims, [`published::parse`] what
//!    others printed;
//! 3. [`judge`] computes *ours* for each claim and its [`Verdict`];
//! 4. [`settled::settle`] finds which verdicts hang on a number that nobody printed;
//! 5. [`table`] prints them on a terminal, [`claims_json`] for a machine, and [`page::pages`]
//!    with the [`figure`]s for a reader.

mod file_error;
mod table;
mod value;
mod verdict;

pub mod bindings;
pub mod claims;
pub mod compare;
pub mod explain;
pub mod export;
pub mod figure;
pub mod measure;
pub mod page;
pub mod points;
pub mod published;
pub mod series;
pub mod settle;
pub mod settled;
pub mod timeline;

pub use file_error::FileError;
pub use page::{PageInput, Picture, Section};
pub use table::{Known, claims_json, table, tally};
pub use value::{Accept, Interval, Value};
pub use verdict::{ClaimResult, Evidence, Judgement, Verdict, judge};
