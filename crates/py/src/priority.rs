//! A function of Python as EDM's priority, for study: each decision calls the interpreter.

use campaign::own::OwnPriority;
use edm::{Competitor, Priority};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::{Mutex, MutexGuard};

/// A demand that competes for its ports in EDM's scheduler.
#[pyclass(frozen, get_all, module = "rackweave._native")]
pub struct Demand {
    /// The node that sends the data.
    source: u32,
    /// The node that receives the data.
    target: u32,
    /// Its length in bytes.
    bytes: u32,
    /// Bytes that are not granted yet.
    remaining: u32,
    /// Whether it is the answer to a read; a write otherwise.
    is_answer: bool,
    /// Its place in the order of arrival at the switch, from 1.
    order: u64,
}

#[pymethods]
impl Demand {
    fn __repr__(&self) -> String {
        let Demand { source, target, bytes, remaining, order, .. } = self;
        let is_answer = if self.is_answer { "True" } else { "False" };
        format!(
            "Demand(source={source}, target={target}, bytes={bytes}, remaining={remaining}, is_answer={is_answer}, \
             order={order})"
        )
    }
}

impl From<&Competitor> for Demand {
    fn from(competitor: &Competitor) -> Demand {
        let Competitor { source, target, bytes, remaining, is_answer, order } = *competitor;
        Demand { source: source.0, target: target.0, bytes, remaining, is_answer, order }
    }
}

/// Calls a function of Python, until a call fails.
#[derive(Debug)]
pub struct Called {
    name: String,
    function: Py<PyAny>,
    failure: Mutex<Option<(String, Option<PyErr>)>>,
}

impl Called {
    /// Of a function that takes a [`Demand`] and returns an int.
    pub fn new(name: String, function: Bound<'_, PyAny>) -> Called {
        Called { name, function: function.unbind(), failure: Mutex::new(None) }
    }

    /// What a call has raised, if that is why it failed.
    pub fn take_cause(&self) -> Option<PyErr> {
        self.known().as_mut().and_then(|(_, cause)| cause.take())
    }

    fn known(&self) -> MutexGuard<'_, Option<(String, Option<PyErr>)>> {
        self.failure.lock().expect("nothing panics while it holds the failure")
    }

    fn call(&self, py: Python<'_>, competitor: &Competitor) -> Result<u32, (String, Option<PyErr>)> {
        let told = |what: String| {
            let demand = Demand::from(competitor).__repr__();
            format!("the priority `{}` {what} for {demand}", self.name)
        };
        let raised = |error: PyErr| (told(format!("raised {error}")), Some(error));
        let value = self.function.bind(py).call1((Demand::from(competitor),)).map_err(raised)?;
        let urgency = if value.is_instance_of::<PyBool>() { None } else { value.extract::<u32>().ok() };
        urgency.ok_or_else(|| {
            let got = value.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
            let needed = format!("needed is an int from 0 to {}, of which the least goes first", u32::MAX);
            (format!("{}: {needed}", told(format!("gave {got}"))), None)
        })
    }
}

impl Priority for Called {
    /// Zero once a call has failed: the run ends at its next report.
    fn of(&self, competitor: &Competitor) -> u32 {
        if self.known().is_some() {
            return 0;
        }
        let called = Python::attach(|py| self.call(py, competitor));
        called.unwrap_or_else(|failure| {
            self.known().get_or_insert(failure);
            0
        })
    }
}

impl OwnPriority for Called {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn failure(&self) -> Option<String> {
        self.known().as_ref().map(|(reason, _)| reason.clone())
    }
}
