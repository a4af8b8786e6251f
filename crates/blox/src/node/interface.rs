//! Configuration, inputs and outputs of a storage server.

use crate::cache::{CacheConfig, CacheScope};
use crate::collect::{CollectionConfig, Coordination, Grain};
use crate::groups::{BlockMove, BorrowConfig};
use crate::id::{Page, Tag, Value, VssdId};
use crate::packet::{Packet, REPLICAS_MAX};
use crate::predict::{AlphaError, IdleConfig};
use crate::schedule::{Policy, SchedulerConfig};
use base::{NodeId, Span, Time};

/// A storage server. Every field is given; `plan` has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Its address.
    pub id: NodeId,
    /// The vSSDs that it hosts from the start.
    pub vssds: Vec<VssdConfig>,
    /// The DRAM write cache.
    pub cache: CacheConfig,
    /// When a client's write is answered.
    pub write_ack: WriteAck,
    /// The I/O scheduler that each vSSD has. A coordinated one also orders the writes that wait for
    /// room in the cache.
    pub scheduler: SchedulerConfig,
    /// Most reads and writes of one vSSD at the device, at least one.
    pub device_depth: u32,
    /// Garbage collection and its coordinator.
    pub collection: CollectionConfig,
    /// Lending of free blocks within channel groups; without it nobody lends.
    pub borrow: Option<BorrowConfig>,
    /// When a vSSD counts as idle.
    pub idle: IdleConfig,
    /// Incoming packets over which the network latency of answers is predicted (paper: 100).
    pub return_window: usize,
    /// Whether the predicted way back is added to LAT of an answer
    /// ([`Emulation::adds_labels`](crate::Emulation::adds_labels)).
    pub adds_labels: bool,
    /// Timeouts and pace of the replicas.
    pub replication: ReplicationConfig,
    /// The control plane, if there is one. Without it membership never changes, and a node that has
    /// recovered never serves again.
    pub control: Option<ControlLink>,
    /// Whether [`NodeOut::Mark`]s are made.
    pub marks: bool,
    /// How long the server knows the writes of a client from which nothing comes. One that a client
    /// sends again is not done twice ([`ClientConfig::resend`](crate::ClientConfig::resend), which
    /// has to be shorter). `None`: clients send no write again, as in the paper.
    pub remember: Option<Span>,
    /// The period in which every page on flash is read once, to see whether it is sound. `None`: a
    /// flash whose pages are.
    pub scrub: Option<Span>,
}

impl NodeConfig {
    /// A server that collects, lends and scrubs nothing, sends no write to the device before its
    /// cache is full, and has no control plane. Tests and fuzzers change what they are about.
    pub fn quiet(id: NodeId, vssds: Vec<VssdConfig>) -> NodeConfig {
        let never = Span::secs(1_000);
        NodeConfig {
            id,
            vssds,
            cache: CacheConfig { pages: 2, flush_above: 0, scope: CacheScope::Vssd },
            write_ack: WriteAck::Dram,
            scheduler: SchedulerConfig { policy: Policy::Fifo, coordinated: true },
            device_depth: 2,
            collection: CollectionConfig {
                check_period: never,
                first_check: Time::ZERO + never,
                regular_ppm: 0,
                soft_ppm: 0,
                stop_ppm: 0,
                retries: 3,
                answer_timeout: Span::ms(5),
                background: false,
                background_ppm: 0,
                coordination: Coordination::Uncoordinated,
                grain: Grain::Die,
            },
            borrow: None,
            idle: IdleConfig { alpha_permille: 500, threshold: never },
            return_window: 10,
            adds_labels: false,
            replication: ReplicationConfig { retransmit: Span::us(600), replay: Span::ms(2), fetch_window: 2 },
            control: None,
            marks: false,
            remember: None,
            scrub: None,
        }
    }
}

/// When a client's write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAck {
    /// When all replicas have it in DRAM (RackBlox, 3.5.1).
    Dram,
    /// When, besides, the scheduler of the server that answers has given it to the device: writes
    /// wait among reads, as in the paper's published code. Every page is flushed at once.
    Dequeued,
}

/// Timeouts and pace of the replicas (Hermes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationConfig {
    /// After so long without an acknowledgement an INV, and without an answer a fetch, is sent
    /// again.
    pub retransmit: Span,
    /// A page that has been invalid for so long is replayed: its writer may have died.
    pub replay: Span,
    /// Pages that a rebuild requests at a time, at least one.
    pub fetch_window: usize,
}

/// How a server and the control plane know of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlLink {
    /// Recipient of heartbeats.
    pub node: NodeId,
    /// Time between two heartbeats.
    pub heartbeat: Span,
    /// A server that has not heard from the control plane for so long answers no reads: it may have
    /// been removed. Shorter than the control plane's timeout of silent servers.
    pub lease: Span,
}

/// One vSSD of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VssdConfig {
    /// Its name in the rack.
    pub id: VssdId,
    /// Its size.
    pub pages: u64,
    /// vSSDs of the server with the same number collect together: a number of its own for each
    /// hardware-isolated vSSD, one for all software-isolated vSSDs of a channel group.
    pub unit: u32,
    /// Parallel streams of garbage collection (one a channel, or one a die), at least one.
    pub streams: u32,
    /// Its rate limit, when it is software-isolated.
    pub isolation: Option<IsolationConfig>,
    /// The epoch of `replicas`, at least 1.
    pub epoch: u32,
    /// `(server, vSSD there)` of each of its replicas, this one included, in the order of their
    /// rank. Ignored in [`NodeIn::Adopt`]: there the control plane's order applies.
    pub replicas: [Option<(NodeId, VssdId)>; REPLICAS_MAX],
}

/// Software isolation: a token bucket before the scheduler (3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolationConfig {
    /// Cost units a second; a read costs one.
    pub per_second: u64,
    /// Most units that can be saved up, at least one.
    pub burst: u64,
    /// What a write to the flash costs, in units.
    pub write_cost: u64,
}

/// The name of an operation at the device, given by the node and handed back by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceJob {
    /// Where the node keeps it; small and reused.
    pub slot: u32,
    /// Counts the node's restarts: answers to operations of an earlier life are ignored.
    pub life: u32,
}

/// What can happen to a storage server. "The host" is the rig in the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeIn {
    /// A packet has arrived.
    Packet(Packet),
    /// The device has read a page; a page never written reads as `Value(0)`.
    ReadDone {
        /// The read.
        job: DeviceJob,
        /// The page at the moment of the read.
        value: Value,
    },
    /// The device has read a page, and its checksum does not fit, or it cannot be read.
    ReadRotten {
        /// The read.
        job: DeviceJob,
        /// The value that the page should have, if the device knows it.
        named: Option<Value>,
    },
    /// The device has taken a page: from now on it is read back as written.
    WriteDone {
        /// The write.
        job: DeviceJob,
    },
    /// The device has no free block for a write. The node offers it again, under the same name,
    /// once there are free blocks.
    WriteRefused {
        /// The write.
        job: DeviceJob,
    },
    /// A step of collection has ended. The host reports the vSSD's [`Blocks`](NodeIn::Blocks)
    /// before.
    Collected {
        /// The vSSD.
        vssd: VssdId,
        /// The of its streams.
        stream: u32,
        /// A block was erased and is free.
        freed: bool,
        /// There was nothing to collect, and the step took no time.
        nothing: bool,
    },
    /// The device's count of a vSSD's blocks: whenever a block was allocated or freed, and at the
    /// start.
    Blocks {
        /// The vSSD.
        vssd: VssdId,
        /// Erased and unused.
        free: u32,
        /// All, borrowed ones included.
        owned: u32,
    },
    /// The answer to [`NodeOut::Lend`], with the number of blocks that have moved.
    Lent(BlockMove),
    /// The answer to [`NodeOut::Return`]: this many blocks have been erased and returned.
    Returned(BlockMove),
    /// The device can no longer hold the vSSD's data: it takes no new writes from clients.
    WornOut {
        /// The vSSD.
        vssd: VssdId,
    },
    /// The host has made room for one more vSSD, a replacement for a replica lost elsewhere. A bad
    /// configuration is counted and ignored.
    Adopt(VssdConfig),
    /// Power is lost: DRAM and all open work are gone, flash stays.
    Fail,
    /// Power is back. The node's data may be old: it serves nothing until the control plane has
    /// named its place.
    Recover,
}

/// Decisions of a storage server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOut {
    /// Send a packet.
    Send(Packet),
    /// Read a page from the device.
    Read {
        /// Named in the answer.
        job: DeviceJob,
        /// The vSSD.
        vssd: VssdId,
        /// The page.
        page: Page,
        /// The client and its request; none when another replica wants the page, or a scrub.
        request: Option<(NodeId, Tag)>,
    },
    /// Write a page to the device.
    Write {
        /// Named in the answer.
        job: DeviceJob,
        /// The vSSD.
        vssd: VssdId,
        /// The page.
        page: Page,
        /// The value.
        value: Value,
    },
    /// Do one step of collection: move one page, or erase one block.
    Collect {
        /// The vSSD.
        vssd: VssdId,
        /// The of its streams.
        stream: u32,
    },
    /// Move free blocks from one vSSD's list to another's and answer [`NodeIn::Lent`].
    Lend(BlockMove),
    /// Erase free blocks of a borrower, give them back to their owner and answer
    /// [`NodeIn::Returned`].
    Return(BlockMove),
    /// The control plane wants a vSSD here that is not: make room for it and answer
    /// [`NodeIn::Adopt`].
    Wanted {
        /// Its name.
        vssd: VssdId,
    },
    /// A request has reached a stage; for the accounting of latency alone.
    Mark {
        /// The requester.
        source: NodeId,
        /// The tag.
        tag: Tag,
        /// The stage.
        stage: Stage,
    },
}

/// Stages of a request in a storage server. The time between two marks belongs to the earlier one's
/// wait; the arrival of the packet and the sending of the answer are the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A read may be served: its page is valid here (not marked when it was so on arrival).
    Valid,
    /// A read has got past the token bucket into the scheduler.
    Queued,
    /// A read has been given to the device.
    Dispatched,
    /// The device has answered a read.
    Fetched,
    /// A read is served from the write cache.
    Cached,
    /// A write has got room in this server's cache.
    Admitted,
    /// Every live replica has the write.
    Replicated,
    /// A read has been sent on to another replica by this server (RackBlox in software).
    Redirected,
}

/// Reason why a configuration makes no storage server, with its numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// A number is out of its range.
    #[error("{field}: {got} is outside {min}..={max}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The kind.
        got: u64,
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
    },
    /// Collection thresholds in the wrong order.
    #[error(
        "collection thresholds must rise: regular {regular_ppm}, soft {soft_ppm}, stop {stop_ppm} (millionths of all blocks, at most 1000000)"
    )]
    Thresholds {
        /// Where a unit must collect.
        regular_ppm: u32,
        /// Where it would like to.
        soft_ppm: u32,
        /// Where it stops.
        stop_ppm: u32,
    },
    /// Two vSSDs have one name.
    #[error("vSSD {0:?} is on this server twice")]
    Twice(VssdId),
    /// A vSSD that is not among its own replicas.
    #[error("vSSD {vssd:?} of server {server:?} is not among the replicas that it is configured with")]
    NotAReplica {
        /// The vSSD.
        vssd: VssdId,
        /// On which server.
        server: NodeId,
    },
    /// The idle predictor cannot be made.
    #[error(transparent)]
    Alpha(#[from] AlphaError),
    /// A lease as long as a heartbeat period would lapse between two signs of life.
    #[error("a lease of {lease:?} is not longer than the {heartbeat:?} between two heartbeats")]
    Lease {
        /// The lease.
        lease: Span,
        /// The time between two heartbeats.
        heartbeat: Span,
    },
}
