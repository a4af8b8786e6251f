//! What clients and servers say to each other.

use crate::{Key, Lifetime, Refusal};

/// A client of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(pub u16);

/// A client's request to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<V> {
    /// The requesting client.
    pub client: ClientId,
    /// Which of its requests: what is repeated has the same number.
    pub number: u64,
    /// All of its requests below this one are settled for it: it will not repeat them.
    pub settled: u64,
    /// Of the server, as the client knows it.
    pub epoch: u32,
    /// The body.
    pub body: RequestBody<V>,
}

/// What has to be under a key for a put to store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Anything, or nothing.
    #[default]
    Always,
    /// Nothing.
    Absent,
    /// Something.
    Present,
}

impl Condition {
    /// Whether a put stores, where the key is there or not.
    pub fn holds(self, is_there: bool) -> bool {
        match self {
            Condition::Always => true,
            Condition::Absent => !is_there,
            Condition::Present => is_there,
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestBody<V> {
    /// Stores.
    Put {
        /// Under this key.
        key: Key,
        /// This.
        value: V,
        /// For so long; `None` is for ever.
        time_to_live: Option<Lifetime>,
        /// If this is so.
        condition: Condition,
    },
    /// Forgets.
    Delete {
        /// This key.
        key: Key,
    },
    /// Forgets, and answers with what was there.
    Take {
        /// This key.
        key: Key,
    },
    /// Sets how long what is there is kept.
    Expire {
        /// Under this key.
        key: Key,
        /// For so long from now on; `None` is for ever, and unmet where it is so already.
        time_to_live: Option<Lifetime>,
    },
    /// Stores `new` if `expected` is there, in one step.
    CompareAndSwap {
        /// Under this key.
        key: Key,
        /// What should be there; `None`: nothing.
        expected: Option<V>,
        /// The value to store instead.
        new: V,
    },
}

impl<V> RequestBody<V> {
    /// The key that it is about.
    pub const fn key(&self) -> &Key {
        match self {
            RequestBody::Put { key, .. }
            | RequestBody::Delete { key }
            | RequestBody::Take { key }
            | RequestBody::Expire { key, .. }
            | RequestBody::CompareAndSwap { key, .. } => key,
        }
    }
    /// The value that it stores, if it does.
    pub const fn value(&self) -> Option<&V> {
        match self {
            RequestBody::Put { value, .. } | RequestBody::CompareAndSwap { new: value, .. } => Some(value),
            RequestBody::Delete { .. } | RequestBody::Take { .. } | RequestBody::Expire { .. } => None,
        }
    }
    /// For how long; `None` is for ever, or not said.
    pub const fn time_to_live(&self) -> Option<Lifetime> {
        match self {
            RequestBody::Put { time_to_live, .. } | RequestBody::Expire { time_to_live, .. } => *time_to_live,
            RequestBody::Delete { .. } | RequestBody::Take { .. } | RequestBody::CompareAndSwap { .. } => None,
        }
    }
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply<V> {
    /// The recipient.
    pub client: ClientId,
    /// To which of its requests.
    pub number: u64,
    /// Of the server.
    pub epoch: u32,
    /// The result.
    pub result: RequestResult<V>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestResult<V> {
    /// It is stored, durably, and nobody reads an older value any more.
    Stored,
    /// The condition of a put did not hold, or there was nothing to keep: nothing has changed.
    Unmet,
    /// It is forgotten, likewise.
    Deleted {
        /// Whether there was something.
        found: bool,
    },
    /// It is forgotten, likewise, and was this.
    Taken {
        /// The found.
        found: Option<V>,
    },
    /// A compare-and-swap found something else.
    Differs {
        /// The found.
        found: Option<V>,
    },
    /// It was not done.
    Refused(Refusal),
}
