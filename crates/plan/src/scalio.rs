//! Plans of key-value stores: a JBOF, its clients and the network between.

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

/// A JBOF, its clients, and the store on it; or its SSDs alone, behind an NVMe-oF target.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalio {
    /// Scalio or a rival.
    pub design: crate::DesignName,
    /// JBOF, clients, keys and values.
    pub store: Store,
    /// Numbers of the SSDs in place of those of the paper's, as `rackweave fit` writes them.
    pub flash: Option<Flash>,
    /// Adapters and the network between.
    pub rdma: Rdma,
    /// Of the design scalio: what carries operations on memory.
    pub carrier: Option<Carrier>,
    /// The JBOF's cores.
    pub cores: Cores,
    /// Of the design scalio.
    pub options: Option<Options>,
    /// Of the designs leed and leed-ditto.
    pub leed: Option<Leed>,
    /// Of the design leed-ditto.
    pub ditto: Option<Ditto>,
    /// The load. An address is a key's number times the block.
    pub io: workload::storage::Config,
    /// Offered load of all clients, in requests a second; `None` in a closed loop.
    pub requests_per_second: Option<f64>,
    /// Whether every operation is remembered and the history of each key judged.
    pub check_history: bool,
    /// What is measured, and how long stragglers are waited for.
    pub run: Run,
    /// Failures and returns of clients, nodes `0..clients`, and of the JBOF, the node after them.
    pub faults: Vec<Fault>,
}

/// JBOF, clients, keys and values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Store {
    /// SSDs of the JBOF.
    pub devices: u32,
    /// Client threads.
    pub clients: u32,
    /// Machines of the clients, each with an adapter.
    pub client_nodes: u32,
    /// Keys of the store at the start of a run.
    pub keys: u32,
    /// Of each value.
    pub value: Bytes,
    /// Of the design scalio: size of a zone, if it is not [`fixed::ZONE_SECTORS`].
    pub zone: Option<Bytes>,
    /// Of the design scalio: size of each SSD's log, in place of `spare`.
    pub size: Option<Bytes>,
    /// Capacity of the cache, in keys.
    pub cached_keys: u32,
    /// Share of the cache that holds the most popular keys at the start of a run.
    pub warmed: f64,
    /// Free space of each SSD's log at the start of a run, as a multiple of the used space.
    pub spare: f64,
    /// Whether a die's register keeps the page that it read last.
    pub keeps_page: bool,
}

/// Adapters and the network between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rdma {
    /// Every adapter.
    pub adapter: RdmaConfig,
    /// The target in the JBOF's adapter.
    pub offload: TargetOffloadConfig,
}

/// Transport of a client's operations on the JBOF's memory.
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
    /// From a request at the JBOF's memory controller to the first byte.
    pub memory_latency: Span,
    /// What that memory delivers.
    pub memory_bandwidth: Rate,
}

impl Store {
    /// Sectors of a zone.
    pub fn zone_sectors(&self) -> u32 {
        self.zone.map_or(fixed::ZONE_SECTORS, |zone| (zone.count() / fixed::SECTOR) as u32)
    }

    /// Whether a slot has room for a value.
    pub fn has_short_values(&self) -> bool {
        self.value <= fixed::SLOT_VALUE_MAX
    }
}

impl Carrier {
    /// EDM as its paper has it.
    pub fn edm(&self) -> edm::Config {
        EdmFile::default().resolve(&Ground::shown(crate::DesignName::Edm)).config
    }

    /// The memory of the JBOF behind EDM.
    pub fn memory(&self) -> DramConfig {
        DramConfig { latency: self.memory_latency, bandwidth: Some(self.memory_bandwidth) }
    }
}

/// The JBOF's cores: their division, and CPU times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cores {
    /// Number of cores.
    pub count: u32,
    /// Cores of the network. One of the rest serves no requests.
    pub network: u32,
    /// Cores of the SSDs, to which SSDs are assigned in turn.
    pub flash: u32,
    /// To receive a request.
    pub receive: Span,
    /// To send an answer.
    pub send: Span,
    /// CPU time to submit an I/O, with the store's own work.
    pub submit: Span,
    /// CPU time to complete it, likewise.
    pub complete: Span,
    /// One operation on the index in memory.
    pub memory: Span,
    /// To form a group of updates.
    pub batch: Span,
    /// CPU time of one I/O of an NVMe-oF target in software.
    pub target: Span,
}

/// Scalio's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Consistency protocol.
    pub protocol: ProtocolName,
    /// Whether blocks have slots, in which keys and values are cached.
    pub cache: bool,
    /// Whether updates are written in groups.
    pub batching: bool,
    /// Slots of a block.
    pub slots: u32,
    /// Updates of a group at most.
    pub batch: u32,
    /// Longest wait of a group for more updates.
    pub idle_flush: Span,
    /// Groups that a server has on their way, if not [`fixed::GROUPS`].
    pub groups: Option<u32>,
    /// Free zones at which compaction begins, if not [`fixed::COMPACT_BELOW`].
    pub compact_below: Option<u32>,
    /// Lease of a filler; `None` in the paper's protocol without leases.
    pub lease: Option<Span>,
    /// Period of polls of a slot that another client fills.
    pub retry: Span,
    /// Whether reads of one key that wait at a client are answered by one of them.
    pub share_waits: bool,
    /// Timeout of a request, which is then repeated.
    pub timeout: Span,
    /// Attempts of a request at most.
    pub attempts: u32,
    /// Whether a read of a block during a write may return old and new lines.
    pub torn_reads: bool,
    /// Whether SSDs have a volatile write cache: servers flush before they publish.
    pub volatile_cache: bool,
    /// Whether a segment for which an update waits stays in memory for it.
    pub hand_over: bool,
}

/// LEED's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leed {
    /// Segments of an SSD.
    pub segments: u32,
    /// Tokens of an SSD.
    pub tokens: u32,
    /// Whether a segment for which an update waits stays in memory for it.
    pub hand_over: bool,
}

/// Ditto's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ditto {
    /// Keys that an eviction chooses from.
    pub samples: u32,
}
