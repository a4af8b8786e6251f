//! The native part of the Python package `rackweave`: the verbs of [`campaign`], with typed errors,
//! an interpreter that goes on meanwhile, and results as Arrow. The package's Python part
//! (`python/src/rackweave`) gives them names and documentation.

mod console;
mod errors;
mod frame;
mod policy;
mod source;
mod verbs;
mod views;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::frame::{Stream, records, summaries};
    #[pymodule_export]
    use super::source::{files, points};
    #[pymodule_export]
    use super::verbs::{compare, drawings, explain, reproduce, run, sweep};
    #[pymodule_export]
    use super::views::{Demand, Job, Read, Unit};

    #[pymodule_export]
    const VERSION: &str = campaign::VERSION;
}
