//! Tests of the public interface of the records, by topic.

mod describing;
mod histograms;
mod metrics_page;
mod parquet_dataset;
mod seeds;
mod series_page;
mod summaries;
mod support;
