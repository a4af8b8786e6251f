//! Rackweave simulates racks of disaggregated memory and storage. This crate is its entry for Rust
//! programs: an experiment file becomes plans, a plan is run, and a run gives a summary and one row
//! per request. The command `rackweave` does the same from a shell.
//!
//! # Run an experiment
//!
//! An experiment file names a design and what differs from its defaults. [`parse`] reports every
//! error of the file with its line. [`run_plan`] plays one plan to its end.
//!
//! ```
//! use rackweave::{parse, run_plan, NoFiles};
//!
//! let text = r#"
//!     title = "Small messages"
//!     design.name = "edm"
//!     fabric = { nodes = 8, rate = "100Gbps" }
//!     workload.load = 0.4
//!     run.requests = 2_000
//! "#;
//! let experiment = parse("small.toml", text, &NoFiles, &[])?;
//! let summary = run_plan(&experiment.points(None)[0].plan)?.summary;
//! assert_eq!(summary.counts.finished, 2_000);
//! println!("mean latency of reads: {:.0} ns", summary.latency_ns["read"].mean);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Look at every request
//!
//! A [`Sink`] takes the row of each request when it ends. `Vec<Row>` is one. The spans of a row say
//! where the request spent its time; they sum to its latency exactly.
//!
//! ```
//! use rackweave::{parse, run, NoFiles, Row, RunOptions, SpanKind, Unobserved};
//!
//! let text = "title = 'Queues'\ndesign.name = 'dctcp'\nfabric = { nodes = 8, rate = '100Gbps' }\n\
//!             workload.load = 0.6\nrun.requests = 2_000";
//! let plan = &parse("queues.toml", text, &NoFiles, &[])?.points(None)[0].plan;
//! let mut rows: Vec<Row> = Vec::new();
//! run(plan, &RunOptions::default(), &mut rows, &mut Unobserved)?;
//! let slowest = rows.iter().max_by_key(|row| row.latency()).expect("some requests ended");
//! assert_eq!(slowest.spans.total(), slowest.latency());
//! println!("the slowest request waited {} in switches", slowest.spans.get(SpanKind::SwitchQueue));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Compare designs and seeds
//!
//! A sweep in the file gives one [`Point`] for each combination of its values, with their labels.
//! The same seed gives the same arrivals for every design, and the same bytes in every run.
//!
//! ```
//! use rackweave::{parse, run_plan, NoFiles};
//!
//! let text = "title = 'Three designs'\nfabric = { nodes = 8, rate = '100Gbps' }\n\
//!             workload.load = 0.5\nrun.requests = 1_000\n\
//!             [sweep]\n'design.name' = ['edm', 'pfabric', 'cxl']";
//! let points = parse("three.toml", text, &NoFiles, &[])?.points(None);
//! assert_eq!(points.len(), 3);
//! for point in &points {
//!     let (one, same) = (run_plan(&point.plan)?, run_plan(&point.plan)?);
//!     assert_eq!(one.summary, same.summary);
//!     println!("{:?}: p99 {:.0} ns", point.labels, one.summary.latency_ns["read"].p99);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What the parts are called
//!
//! | here | what it is |
//! | --- | --- |
//! | [`Experiment`], [`Point`], [`Plan`] | a checked file, one run of it, and that run with every default |
//! | [`Scene`] | the rack of a plan: messages, volumes, wear, SAN, devices or key-value pairs |
//! | [`Row`], [`Spans`], [`Sink`] | one request with its times, and where rows go |
//! | [`Summary`] | all numbers of a run; `rackweave describe` lists them with their units |
//! | [`Observer`] | sees the progress of a run and may stop it |

pub use base::{Bytes, Operation, Rate, Seed, Span, Time};
pub use plan::{Experiment, Files, NoFiles, Plan, PlanErrors, Point, Scale, Scene, parse};
pub use record::{Discard, Outcome, Row, Sink, SinkError, SpanKind, Spans, Statistics, Summary};
pub use sim::drive::{Flow, Observer, Outcomes, Progress, Unobserved};
pub use sim::{RunError, RunOptions, run};

/// Runs `plan` to its end and keeps its numbers, not its rows.
///
/// # Errors
/// When a part of the rack refuses the plan's numbers.
pub fn run_plan(plan: &Plan) -> Result<Outcomes, RunError> {
    run(plan, &RunOptions::default(), &mut Discard, &mut Unobserved)
}
