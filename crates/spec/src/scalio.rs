//! Plans of the room `scalio`: a key-value store on a box of SSDs, its clients and what is between.

pub(crate) mod file;
pub mod fixed;
mod print;
pub(crate) mod resolve;
mod warnings;

use crate::blox::Flash;
use crate::design_file::EdmFile;
use crate::ground::Ground;
use crate::plan::{Fault, Run};
use base::{Bytes, Rate, Span};
pub use file::{CarrierName, ProtocolName};
use hardware::{DramConfig, RdmaConfig, TargetOffloadConfig};
pub(crate) use print::file_of;

/// A box of SSDs, those who ask, and the store on it; or the SSDs alone, behind an NVMe-oF target.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalio {
    /// Scalio or a rival.
    pub design: crate::DesignName,
    /// Box, clients, keys and values.
    pub store: Store,
    /// Numbers of the SSDs in place of those of the paper's, as `rackweave fit` writes them.
    pub flash: Option<Flash>,
    /// Adapters and the network between.
    pub rdma: Rdma,
    /// Of the design scalio: what carries operations on memory.
    pub carrier: Option<Carrier>,
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
pub struct Rdma {
    /// Every adapter.
    pub adapter: RdmaConfig,
    /// The target in the box's adapter.
    pub offload: TargetOffloadConfig,
}

/// What carries a client's operations on the box's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// Verbs, and then all that follows means nothing, or EDM.
    pub name: CarrierName,
    /// Line rate of every link.
    pub rate: Rate,
    /// Of one hop.
    pub propagation: Span,
    /// PMA, PMD and transceiver, one crossing.
    pub transceiver: Span,
    /// From a thread's call until EDM's logic has the request.
    pub post: Span,
    /// From EDM's logic until a thread sees the answer.
    pub completion: Span,
    /// From a request at the box's memory controller to the first byte.
    pub memory_latency: Span,
    /// What that memory delivers.
    pub memory_bandwidth: Rate,
}

impl Carrier {
    /// EDM as its paper has it.
    pub fn edm(&self) -> edm::Config {
        EdmFile::default().resolve(&Ground::shown(crate::DesignName::Edm)).config
    }

    /// The memory of the box behind EDM.
    pub fn memory(&self) -> DramConfig {
        DramConfig { latency: self.memory_latency, bandwidth: Some(self.memory_bandwidth) }
    }
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
    /// Whether a block that is read while it is written may come back in parts of before and after.
    pub torn_reads: bool,
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
