//! Failures as the exceptions that `rackweave.errors` declares.

use campaign::Failure;
use plan::{Place, PlanError, PlanErrors};
use pyo3::prelude::*;

/// The exception for a failure.
pub fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    let made = match failure {
        Failure::Experiment(errors) => experiment_error(py, errors),
        Failure::BadInput(message) => exception(py, "InputError", message),
        Failure::Failed(message) | Failure::Partial(message) | Failure::NotReady(message) => {
            exception(py, "RunError", message)
        }
        Failure::Interrupted(place) => exception(py, "Interrupted", place),
    };
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Bad input that a door finds by itself.
pub fn bad_input(py: Python<'_>, message: impl std::fmt::Display) -> PyErr {
    raised(py, &campaign::failure::bad_input(message))
}

/// The exception for a policy of a user that failed, with the cause that it had.
pub fn policy_error(py: Python<'_>, message: &str, cause: Option<PyErr>) -> PyErr {
    let made = exception(py, "PolicyError", message);
    let error = made.map_or_else(|error| error, PyErr::from_value);
    error.set_cause(py, cause);
    error
}

fn exception<'py>(py: Python<'py>, class: &str, message: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("rackweave.errors")?.getattr(class)?.call1((message,))
}

fn experiment_error<'py>(py: Python<'py>, errors: &PlanErrors) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("rackweave.errors")?;
    let problem = |error: &PlanError| {
        let (line, column) = match error.place {
            Place::File { line, column } => (Some(line), Some(column)),
            Place::CommandLine => (None, None),
        };
        let key = Some(&error.key).filter(|key| !key.is_empty());
        module.getattr("Problem")?.call1((&error.file, line, column, key, error.problem.to_string(), &error.point))
    };
    let problems = errors.iter().map(problem).collect::<PyResult<Vec<_>>>()?;
    module.getattr("ExperimentError")?.call1((errors.to_string(), problems))
}
