//! An experiment of Python as one of the library, and its plans.

use crate::errors::{bad_input, raised};
use campaign::arguments::{SeedArguments, Setting, SourceArguments};
use campaign::seeds::Seeds;
use campaign::{estimate, load, play};
use plan::Scale;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// What a `rackweave.Experiment` holds.
#[derive(FromPyObject)]
pub struct Source {
    file: PathBuf,
    text: Option<String>,
    settings: Vec<(String, String)>,
    scale: Option<String>,
}

impl Source {
    /// As the arguments of a verb.
    pub fn arguments(self, py: Python<'_>) -> PyResult<SourceArguments> {
        let settings = self.settings.into_iter().map(|(key, value)| Setting(key, value)).collect();
        let scale = self.scale.map(|scale| scale_of(py, &scale)).transpose()?;
        Ok(SourceArguments { file: self.file, text: self.text, scale, settings })
    }
}

/// A size of runs by its name.
pub fn scale_of(py: Python<'_>, name: &str) -> PyResult<Scale> {
    name.parse::<Scale>().map_err(|error| bad_input(py, format!("scale: {error}")))
}

/// Chosen seeds; those of the file when `None`.
pub fn seeds_of(py: Python<'_>, seeds: Option<Vec<u64>>) -> PyResult<SeedArguments> {
    let seeds = seeds.map(Seeds::of).transpose().map_err(|error| bad_input(py, format!("seeds: {error}")))?;
    Ok(SeedArguments { seed: None, seeds })
}

/// The names of the files that an experiment reads, relative to its folder.
#[pyfunction]
pub fn files(py: Python<'_>, source: Source) -> PyResult<Vec<String>> {
    let source = source.arguments(py)?;
    py.detach(|| load::files(&source)).map_err(|failure| raised(py, &failure))
}

/// The points of an experiment, each a dict with `labels`, `seeds`, `text`, `hash`, `warnings` and
/// `estimate`.
#[pyfunction]
pub fn points<'py>(py: Python<'py>, source: Source) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let source = source.arguments(py)?;
    let points = py.detach(|| load::points(&source)).map_err(|failure| raised(py, &failure))?;
    let described = |point: &plan::Point| {
        let plan = &point.plan;
        let dict = PyDict::new(py);
        dict.set_item("labels", &point.labels)?;
        dict.set_item("design", plan.design().word())?;
        dict.set_item("seeds", &plan.seeds)?;
        dict.set_item("text", play::printed(point, &plan.seeds, plan.files.clone()))?;
        dict.set_item("hash", plan.hash())?;
        dict.set_item("warnings", plan.warnings.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let estimate = estimate::texts(plan);
        dict.set_item("estimate", (!estimate.is_empty()).then(|| estimate.join("\n")))?;
        Ok(dict)
    };
    points.iter().map(described).collect()
}
