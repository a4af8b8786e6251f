//! Plans of the room `scalio`: a key-value store on a box of SSDs, its clients and what is between.

pub(crate) mod file;
mod print;
pub(crate) mod resolve;
mod warnings;

use crate::plan::{Fault, Run};
use base::{Bytes, Rate, Span};
pub use file::ProtocolName;
use hardware::{RdmaConfig, TargetOffloadConfig};
pub(crate) use print::file_of;

/// A box of SSDs, those who ask, and the store on it; or the SSDs alone, behind an NVMe-oF target.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalio {
    /// Scalio or a rival.
    pub design: crate::DesignName,
    /// Box, clients, keys and values.
    pub store: Store,
    /// Adapters and the network between.
    pub verbs: Verbs,
    /// The box's cores.
    pub cores: Cores,
    /// Of the design scalio.
    pub options: Option<Options>,
    /// Of the designs leed and leed-ditto.
    pub leed: Option<Leed>,
    /// Of the design leed-ditto.
    pub ditto: Option<Ditto>,
    /// Who asks for what, and when. An address is a key's number times the block.
    pub io: workload::storage::Config,
    /// What an open loop was asked to offer, in requests a second of all clients; `None` in a closed loop.
    pub requests_per_second: Option<f64>,
    /// Whether every operation is remembered and the history of each key judged.
    pub check_history: bool,
    /// What is measured, and how long stragglers are waited for.
    pub run: Run,
    /// Clients and the box that stop, and come back: nodes `0..clients` and the node after them.
    pub faults: Vec<Fault>,
}

/// Box, clients, keys and values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Store {
    /// SSDs in the box.
    pub devices: u32,
    /// Threads that ask.
    pub clients: u32,
    /// Machines that they are on, each with an adapter.
    pub client_nodes: u32,
    /// Keys that are there when a run begins.
    pub keys: u32,
    /// Of each value.
    pub value: Bytes,
    /// Keys that the cache has room for.
    pub cached_keys: u32,
    /// The share of the cache that is full of the most popular keys when a run begins.
    pub warmed: f64,
    /// Room of each SSD's log beyond what is there when a run begins, as a multiple of that.
    pub spare: f64,
}

/// Adapters and the network between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verbs {
    /// Line rate of every adapter.
    pub rate: Rate,
    /// Messages that an adapter begins a second.
    pub messages_per_second: u64,
    /// Swaps of a word that an adapter carries out a second.
    pub swaps_per_second: u64,
    /// From a thread's call until the adapter has the work request.
    pub post: Span,
    /// One pass of a message through an adapter.
    pub processing: Span,
    /// One way between adapters.
    pub wire: Span,
    /// From an adapter's request for memory to the data.
    pub memory_read: Span,
    /// From the adapter into memory, until a thread that polls sees it.
    pub memory_write: Span,
    /// What a message has on the wire beside its data.
    pub header: Bytes,
    /// NVMe-oF commands that the adapter of the box carries out a second by itself.
    pub offload_commands_per_second: u64,
    /// From such a command's arrival to the SSD's queue.
    pub offload_submission: Span,
    /// From the SSD's completion to the answer on its way.
    pub offload_completion: Span,
}

/// The box's cores: how many do what, and what each thing costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cores {
    /// All of them.
    pub count: u32,
    /// Those that serve the network. One of the rest has nothing to do with requests.
    pub network: u32,
    /// Those that serve SSDs, each SSD one of them in turn.
    pub flash: u32,
    /// To receive a request.
    pub receive: Span,
    /// To send an answer.
    pub send: Span,
    /// To submit an I/O, the store's own work for it included.
    pub submit: Span,
    /// To complete it, likewise.
    pub complete: Span,
    /// One operation on the index in memory.
    pub memory: Span,
    /// To form a group of updates.
    pub batch: Span,
    /// An NVMe-oF target in software: one I/O, all of it.
    pub target: Span,
}

/// Scalio's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Whose protocol.
    pub protocol: ProtocolName,
    /// Whether blocks have slots, in which keys and values are cached.
    pub cache: bool,
    /// Whether updates are written in groups.
    pub batching: bool,
    /// Slots of a block.
    pub slots: u32,
    /// Updates of a group at most.
    pub batch: u32,
    /// How long a group waits for more.
    pub idle_flush: Span,
    /// How long a filler may take; `None` in the paper's protocol without leases.
    pub lease: Option<Span>,
    /// From looking at a slot that somebody fills until looking again.
    pub retry: Span,
    /// From a request to its repetition.
    pub timeout: Span,
    /// How often a request is sent at most.
    pub attempts: u32,
    /// Whether SSDs may lose what they acknowledged: servers flush before they publish.
    pub volatile_cache: bool,
}

/// LEED's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leed {
    /// Segments of an SSD.
    pub segments: u32,
    /// Tokens of an SSD.
    pub tokens: u32,
}

/// Ditto's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ditto {
    /// Keys that an eviction chooses from.
    pub samples: u32,
}

impl Verbs {
    /// An adapter's.
    pub fn adapter(&self) -> RdmaConfig {
        RdmaConfig {
            rate: self.rate,
            messages_per_second: self.messages_per_second,
            swaps_per_second: self.swaps_per_second,
            post: self.post,
            processing: self.processing,
            wire: self.wire,
            memory_read: self.memory_read,
            memory_write: self.memory_write,
            header: self.header,
        }
    }

    /// The target in the box's adapter.
    pub fn offload(&self) -> TargetOffloadConfig {
        TargetOffloadConfig {
            commands_per_second: self.offload_commands_per_second,
            submission: self.offload_submission,
            completion: self.offload_completion,
        }
    }
}
