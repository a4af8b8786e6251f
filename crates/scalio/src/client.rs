//! A client: reads the store by itself, has the server change it.
//!
//! A GET reads the block. What a valid slot holds is the answer; a slot that somebody fills is
//! waited for. Else the client takes a slot, reads the block again (now nobody else can fill the
//! key, and a writer has to take the slot away), reads segment and record from flash, answers, and
//! fills the slot. With no slot to take it reads the block twice and, if no slot could hold the key
//! at the second time, believes the first one's pointer.

mod get;
mod names;
mod paper;
mod remote;
mod shared;
mod tasks;
mod update;

use crate::layout::{decode_block, decode_block_unchecked};
use crate::{
    Block, ClientId, FlashAnswer, FlashOperation, Key, Left, MemoryAnswer, MemoryOperation, Name, Refusal, Reply,
    Request, RequestId, RequestResult, Value,
};
use base::Span;
use derive_more::Add;
use shared::Shared;
use std::collections::BTreeMap;
use tasks::Tasks;

/// Whose cache protocol clients and servers speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Ours: linearizable, with clients and servers that may stop at any moment.
    #[default]
    Linearizable,
    /// The paper's (5.2): clients invalidate, flags are stored unconditionally, and payloads have
    /// no version.
    Paper {
        /// Its optional lease; without, a filler that dies locks its slot for ever.
        lease: bool,
    },
}

impl Protocol {
    /// Decodes a block that a one-sided read has found. Payloads of the paper's protocol have no
    /// checksum: `no_value` replaces a value whose bytes are of two writes. `None` where the bytes
    /// are no block.
    pub fn decode<V: Value>(self, bytes: &[u8], no_value: &V) -> Option<Block<V>> {
        match self {
            Protocol::Linearizable => decode_block(bytes),
            Protocol::Paper { .. } => decode_block_unchecked(bytes, no_value),
        }
    }
}

/// Configuration of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The client.
    pub client: ClientId,
    /// Blocks of the store.
    pub blocks: u32,
    /// Devices of the store; block `b` belongs to the device and the server `b % devices`.
    pub devices: u32,
    /// The protocol.
    pub protocol: Protocol,
    /// How long a filler may take before others take its slot. At most
    /// [`LEASE_MAX`](crate::LEASE_MAX).
    pub lease: Span,
    /// Interval between polls of a slot that another client fills.
    pub retry_wait: Span,
    /// Polls and restarts of one GET before it gives up.
    pub attempts_max: u32,
    /// Whether GETs of one key that wait at this client are answered by one of them.
    pub share_waits: bool,
    /// A request to a server is repeated after so long without an answer...
    pub reply_timeout: Span,
    /// ...and sent so often at most.
    pub sends_max: u32,
    /// Whether a hit writes down when it was. Without, slots leave in the order in which they were
    /// filled.
    pub touch: bool,
    /// Second of the store's clock at the client's time zero.
    pub start_second: u32,
}

/// Request of an application.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation<V> {
    /// The value of a key.
    Get {
        /// The key.
        key: Key,
    },
    /// A change by the server.
    Update(crate::RequestBody<V>),
}

/// Result of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<V> {
    /// A GET: what is there.
    Value(Option<V>),
    /// How long a key is there from now on; `None` where it is not there.
    Described(Option<Left>),
    /// The names of a block.
    Names(Vec<Name>),
    /// A PUT, or a compare-and-swap that swapped.
    Stored,
    /// The condition of a PUT did not hold.
    Unmet,
    /// A DELETE.
    Deleted {
        /// Whether there was something.
        found: bool,
    },
    /// What was there before it was forgotten.
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
    /// It may have been done, or may yet be: no answer came, or the server restarted meanwhile.
    Unknown,
    /// A GET gave up: memory or flash could not be reached, or others were always in the way.
    Unavailable,
}

impl<V> From<RequestResult<V>> for Outcome<V> {
    fn from(result: RequestResult<V>) -> Outcome<V> {
        match result {
            RequestResult::Stored => Outcome::Stored,
            RequestResult::Unmet => Outcome::Unmet,
            RequestResult::Deleted { found } => Outcome::Deleted { found },
            RequestResult::Taken { found } => Outcome::Taken { found },
            RequestResult::Differs { found } => Outcome::Differs { found },
            RequestResult::Refused(refusal) => Outcome::Refused(refusal),
        }
    }
}

/// Where the answer to a GET came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A slot.
    Cache,
    /// Flash.
    Flash,
    /// The server.
    Server,
}

/// Inputs of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientIn<V> {
    /// Its application wants something.
    Issue {
        /// The application's name for it.
        ticket: u64,
        /// The operation.
        operation: Operation<V>,
    },
    /// Its application asks whether a key is there and for how long, without its value. No slot is
    /// filled.
    Describe {
        /// The application's name for it.
        ticket: u64,
        /// The key.
        key: Key,
    },
    /// Its application asks for all names of a block.
    Names {
        /// The application's name for it.
        ticket: u64,
        /// The block.
        block: u32,
    },
    /// An operation on the index is done.
    Memory {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: MemoryAnswer<V>,
    },
    /// An offloaded operation on a device is done.
    Flash {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: FlashAnswer<V>,
    },
    /// A server answers.
    Reply(Reply<V>),
}

/// Decisions of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientOut<V> {
    /// An operation on the index.
    Memory {
        /// For the answer; `None`: the client does not want one.
        request: Option<RequestId>,
        /// On which block.
        block: u32,
        /// The operation.
        operation: MemoryOperation<V>,
    },
    /// A read of a device, without its server.
    Flash {
        /// For the answer.
        request: RequestId,
        /// The device.
        device: u32,
        /// The operation.
        operation: FlashOperation<V>,
    },
    /// To the server of a device.
    Send {
        /// The device.
        device: u32,
        /// The request.
        request: Request<V>,
    },
    /// An operation has ended.
    Done {
        /// The ticket.
        ticket: u64,
        /// The result.
        outcome: Outcome<V>,
        /// The source.
        source: Source,
    },
}

/// What a client has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Add)]
pub struct ClientCounters {
    /// GETs that a slot answered.
    pub hits: u64,
    /// GETs that flash answered.
    pub misses: u64,
    /// Of these, without a slot to take.
    pub bypasses: u64,
    /// Polls of a slot that another client was filling.
    pub waits: u64,
    /// GETs that another GET of the same client answered, hits and misses among them.
    pub shared: u64,
    /// Restarts because a slot was taken before us.
    pub lost_races: u64,
    /// Restarts because our own slot was taken away while we filled it.
    pub evictions: u64,
    /// Slots given back because another client filled the same key.
    pub ties: u64,
    /// Slots whose payload was not that of their word.
    pub torn: u64,
    /// Segments and records with other content, because their place was reused.
    pub foreign: u64,
    /// Segments and records whose checksum did not agree.
    pub corrupt: u64,
    /// Slots filled.
    pub fills: u64,
    /// Requests that were sent again.
    pub repeats: u64,
}

/// A client.
#[derive(Clone)]
pub struct Client<V> {
    config: ClientConfig,
    tasks: Tasks<V>,
    shared: Shared,
    /// Requests to servers that have no answer: number to task.
    open: BTreeMap<u64, u32>,
    next_number: u64,
    /// What the servers were last seen in, by device.
    epochs: Vec<u32>,
    counters: ClientCounters,
}

impl<V: Value> Client<V> {
    /// A client that has done nothing yet.
    pub fn new(config: ClientConfig) -> Client<V> {
        let epochs = vec![0; config.devices as usize];
        Client {
            config,
            tasks: Tasks::default(),
            shared: Shared::default(),
            open: BTreeMap::new(),
            next_number: 0,
            epochs,
            counters: ClientCounters::default(),
        }
    }
    /// The server of a device is in this epoch, as its host says when a client connects: without,
    /// the first update after a restart is refused, and whether it was done is unknown.
    pub fn learn_epoch(&mut self, device: u32, epoch: u32) {
        if let Some(known) = self.epochs.get_mut(device as usize) {
            *known = epoch.max(*known);
        }
    }
    /// What it has counted.
    pub fn counters(&self) -> ClientCounters {
        self.counters
    }
    /// Operations that are not done, fills that go on behind an answer among them.
    pub fn unfinished(&self) -> usize {
        self.tasks.len()
    }
}
