//! Tests of the records as their users see them, sorted by what they are about.

mod describing;
mod histograms;
mod metrics_page;
mod parquet_dataset;
mod seeds;
mod summaries;
mod support;
