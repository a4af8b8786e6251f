//! Functions of Python as policies, for study: each decision calls the interpreter.

use crate::views::View;
use base::Decide;
use campaign::own::{Failed, Own};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyNone, PyString};
use sim::policies::Place;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// What the first call that failed has raised, if it has.
pub type Cause = Arc<Mutex<Option<PyErr>>>;

/// The longest that a message shows of a value, in characters.
const SHOWN_MAX: usize = 200;

/// Calls a function of Python, until a call fails.
#[derive(Debug)]
struct Called {
    name: String,
    function: Py<PyAny>,
    failed: Failed,
    cause: Cause,
}

/// Adds a function that takes a view and gives an answer.
pub fn choose<D: Place + View>(own: &mut Own, name: String, function: Bound<'_, PyAny>, cause: &Cause) {
    let called =
        Called { name: name.clone(), function: function.unbind(), failed: own.failed().clone(), cause: cause.clone() };
    own.choose::<D>(name, Arc::new(called));
}

impl Called {
    fn call<D: View>(&self, py: Python<'_>, situation: &D) -> Result<D::Answer, (String, Option<PyErr>)> {
        let told = |what: String| format!("`{}` by `{}` {what} for {}", D::NAME, self.name, situation.shown());
        let raised = |error: PyErr| (told(format!("raised {error}")), Some(error));
        let view = situation.view(py).map_err(raised)?;
        let value = self.function.bind(py).call1((view,)).map_err(raised)?;
        let answer = D::answer(&value);
        answer.ok_or_else(|| (format!("{}: needed is {}", told(format!("gave {}", shown(&value))), D::NEEDED), None))
    }
}

impl<D: View> Decide<D> for Called {
    /// A neutral answer once a call has failed: the run ends at its next report.
    fn decide(&self, situation: &D) -> D::Answer {
        if self.failed.is_set() {
            return D::NEUTRAL;
        }
        let called = Python::attach(|py| self.call(py, situation));
        called.unwrap_or_else(|(reason, raised)| {
            self.failed.report(|| {
                *self.cause.lock().expect("nothing panics while it holds the cause") = raised;
                reason
            });
            D::NEUTRAL
        })
    }
}

/// A value in a message: of a class of the user, whose code is not called, its type.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let is_plain = value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyNone>();
    let text = value.repr().ok().filter(|_| is_plain).map(|text| text.to_string());
    let class = || value.get_type().name().map_or_else(|_| "an object".into(), |name| format!("a {name}"));
    let text = text.unwrap_or_else(class);
    if text.chars().count() > SHOWN_MAX { text.chars().take(SHOWN_MAX).collect::<String>() + "..." } else { text }
}
