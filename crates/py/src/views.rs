//! What policies of Python are given, and what they answer.

use base::Decision;
use blox::{CollectionCheck, JobKind, QueuedJob, ReadPath, Urgency};
use edm::Competitor;
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// A decision that Python knows.
pub trait View: Decision {
    /// What an answer is, for a message.
    const NEEDED: &'static str;

    /// The situation as an object of Python.
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;

    /// The situation in a message.
    fn shown(&self) -> String;

    /// What an object of Python answers; `None` if that is no answer.
    fn answer(value: &Bound<'_, PyAny>) -> Option<Self::Answer>;
}

/// A value as Python writes it.
trait Written {
    fn written(&self) -> String;
}

impl Written for u32 {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl Written for u64 {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl Written for bool {
    fn written(&self) -> String {
        (if *self { "True" } else { "False" }).into()
    }
}

impl Written for &'static str {
    fn written(&self) -> String {
        format!("'{self}'")
    }
}

/// A class whose instances are written as calls of it.
macro_rules! class {
    ($(#[$doc:meta])* $name:ident { $( $(#[$of_field:meta])* $field:ident: $type:ty, )* }) => {
        $(#[$doc])*
        #[pyclass(frozen, get_all, module = "rackweave._native")]
        pub struct $name { $( $(#[$of_field])* $field: $type, )* }

        #[pymethods]
        impl $name {
            fn __repr__(&self) -> String {
                let fields = [ $( format!("{}={}", stringify!($field), self.$field.written()) ),* ];
                format!("{}({})", stringify!($name), fields.join(", "))
            }
        }
    };
}

class! {
    /// A demand that competes for its ports in EDM's scheduler.
    Demand {
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
}

class! {
    /// A job that joins the queue of a vSSD in RackBlox.
    Job {
        /// The node of the server.
        server: u32,
        /// The number of its vSSD.
        vssd: u32,
        /// ``"read"``, ``"write"`` (of the cache, to the flash) or ``"other"``.
        kind: &'static str,
        /// The number of the page.
        page: u64,
        /// Time at which it came to the server's storage stack, in ps.
        arrived_ps: u64,
        /// What it has spent in the network, and what its answer will probably spend, in ps.
        network_ps: u64,
        /// Its place in the order of the queue's jobs, from 1.
        order: u64,
    }
}

class! {
    /// A read that passes RackBlox's switch, the vSSD that it is addressed to, and its replica.
    Read {
        /// The number of the vSSD.
        vssd: u32,
        /// The node of its server.
        server: u32,
        /// Whether it collects garbage, as far as the switch knows.
        is_collecting: bool,
        /// Whether the link to its server is up.
        is_reachable: bool,
        /// Bytes that wait for that link.
        waiting_bytes: u64,
        /// The number of its replica.
        replica_vssd: u32,
        /// The node of the replica's server.
        replica_server: u32,
        /// Whether the replica collects, or has asked for it.
        is_replica_collecting: bool,
        /// Whether the link to the replica's server is up.
        is_replica_reachable: bool,
        /// Bytes that wait for that link.
        replica_waiting_bytes: u64,
        /// Its place in the order of the reads that were decided about, from 1.
        order: u64,
    }
}

class! {
    /// The vSSDs of RackBlox that collect garbage together, when their free blocks are checked.
    Unit {
        /// The node of their server.
        server: u32,
        /// The number of the first of them.
        vssd: u32,
        /// Their free blocks.
        free: u64,
        /// Their blocks.
        owned: u64,
        /// Whether a soft wish can be denied, so that replicas take turns.
        is_coordinated: bool,
        /// Whether no request is expected.
        is_idle: bool,
        /// Whether they collect already.
        is_collecting: bool,
        /// The time of the check, in ps.
        now_ps: u64,
    }
}

/// The parts of a view that are the same for all.
macro_rules! seen_as {
    ($class:ident) => {
        fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            Ok(Bound::new(py, $class::from(self))?.into_any())
        }

        fn shown(&self) -> String {
            $class::from(self).__repr__()
        }
    };
}

impl From<&Competitor> for Demand {
    fn from(competitor: &Competitor) -> Demand {
        let Competitor { source, target, bytes, remaining, is_answer, order } = *competitor;
        Demand { source: source.0, target: target.0, bytes, remaining, is_answer, order }
    }
}

impl View for Competitor {
    const NEEDED: &'static str = "an int from 0 to 4294967295, of which the least goes first";
    seen_as!(Demand);

    fn answer(value: &Bound<'_, PyAny>) -> Option<u32> {
        number(value)
    }
}

impl From<&QueuedJob> for Job {
    fn from(job: &QueuedJob) -> Job {
        let QueuedJob { server, vssd, kind, page, arrived, network, order } = *job;
        let kind = match kind {
            JobKind::Read => "read",
            JobKind::Write => "write",
            JobKind::Other => "other",
        };
        let (arrived_ps, network_ps) = (arrived.as_ps(), network.as_ps());
        Job { server: server.0, vssd: vssd.0, kind, page: page.0, arrived_ps, network_ps, order }
    }
}

impl View for QueuedJob {
    const NEEDED: &'static str = "an int of 64 bits with a sign, of which the least goes first";
    seen_as!(Job);

    fn answer(value: &Bound<'_, PyAny>) -> Option<i64> {
        number(value)
    }
}

impl From<&ReadPath> for Read {
    fn from(path: &ReadPath) -> Read {
        let ReadPath { own, replica, order } = *path;
        Read {
            vssd: own.vssd.0,
            server: own.server.0,
            is_collecting: own.is_collecting,
            is_reachable: own.is_reachable,
            waiting_bytes: own.waiting_bytes,
            replica_vssd: replica.vssd.0,
            replica_server: replica.server.0,
            is_replica_collecting: replica.is_collecting,
            is_replica_reachable: replica.is_reachable,
            replica_waiting_bytes: replica.waiting_bytes,
            order,
        }
    }
}

impl View for ReadPath {
    const NEEDED: &'static str = "a bool: whether the replica serves the read";
    seen_as!(Read);

    fn answer(value: &Bound<'_, PyAny>) -> Option<bool> {
        value.extract().ok()
    }
}

impl From<&CollectionCheck> for Unit {
    fn from(check: &CollectionCheck) -> Unit {
        let CollectionCheck { server, vssd, free, owned, is_coordinated, is_idle, is_collecting, now } = *check;
        let (server, vssd, now_ps) = (server.0, vssd.0, now.as_ps());
        Unit { server, vssd, free, owned, is_coordinated, is_idle, is_collecting, now_ps }
    }
}

impl View for CollectionCheck {
    const NEEDED: &'static str = "None, 'background', 'soft' or 'regular'";
    seen_as!(Unit);

    fn answer(value: &Bound<'_, PyAny>) -> Option<Option<Urgency>> {
        if value.is_none() {
            return Some(None);
        }
        match value.extract::<String>().ok()?.as_str() {
            "background" => Some(Some(Urgency::Background)),
            "soft" => Some(Some(Urgency::Soft)),
            "regular" => Some(Some(Urgency::Regular)),
            _ => None,
        }
    }
}

/// An int, or an integer of NumPy; no bool.
fn number<'a, 'py, T: FromPyObject<'a, 'py>>(value: &'a Bound<'py, PyAny>) -> Option<T> {
    if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
}
