//! Campaigns: one run, a sweep, variants that are compared, published experiments. Each verb takes
//! its arguments and a [`Console`], leaves a folder of results, and returns what a door shows. The
//! command line and Python are such doors; neither has a verb of its own for these.

// `eprintln!` panics where the output is closed, or its disk is full.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

pub mod arguments;
pub mod compare;
pub mod console;
pub mod estimate;
pub mod experiments;
pub mod explain;
mod export;
pub mod failure;
pub mod judged;
pub mod labels;
pub mod load;
pub mod output;
pub mod own;
pub mod page;
pub mod parallel;
pub mod play;
pub mod progress;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod seeds;
pub mod sweep;
pub mod terminal;
pub mod timeline;

pub use console::{Console, Stop};
pub use failure::Failure;

use std::path::PathBuf;

/// The program's version: it goes into every output.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a verb has done.
#[derive(Debug)]
pub struct Done {
    /// The folder of the results.
    pub root: PathBuf,
    /// The results in words, or in the form that was asked for; empty when there are none.
    pub text: String,
    /// Whether all of it was done. The results until then are in the folder.
    pub end: Result<(), Failure>,
}
