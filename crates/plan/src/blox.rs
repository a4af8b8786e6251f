//! Plans of the room `blox`: a rack of storage servers with virtual drives.

pub(crate) mod file;
mod flash;
pub(crate) mod print;
pub(crate) mod resolve;
mod warnings;

use crate::plan::{Fault, Run};
use base::{Bytes, Rate, Span, Time};
pub use file::{
    AddressesName, CoordinationName, FlashStateName, GrainName, IoArrivalsName, IsolationName, NetworkModeName,
    NetworkName, NetworkSchedulingName, PolicyName, PresetName, VictimName, WriteAckName,
};
use hardware::ssd::{RegionArchive, Steady, Suspension};
use std::sync::Arc;
use workload::block_trace::{BlockTrace, Format, ReplayConfig, Tolerance};

pub(crate) use print::file_of;
pub use resolve::{PAGE, REPLICAS_IN_RACK};

/// How often a page of a swap is tried before the swap is given up. Ours.
pub const SWAP_ATTEMPTS: u32 = 3;

/// A rack of storage servers behind one switch, with volumes and clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Blox {
    /// RackBlox or a rival.
    pub design: crate::DesignName,
    /// Delays between clients and rack from a file, in place of `rack.network`.
    pub recorded_network: Option<RecordedNetwork>,
    /// Servers, clients, switch and networks.
    pub rack: Rack,
    /// How packets cross the networks between clients and rack.
    pub emulate: Emulate,
    /// The drives.
    pub flash: Flash,
    /// Virtual drives of each drive.
    pub vssd: Vssd,
    /// The I/O scheduler of a server.
    pub scheduler: Scheduler,
    /// Garbage collection.
    pub collection: Collection,
    /// The software controller of the rivals.
    pub controller: Controller,
    /// Heartbeats and leases.
    pub membership: Membership,
    /// The load.
    pub io: workload::storage::Config,
    /// A block trace in place of `io`'s own requests, which then says clients, volumes and their
    /// data alone.
    pub replay: Option<BlockReplay>,
    /// Offered load of all clients, in requests a second; `None` in a closed loop.
    pub requests_per_second: Option<f64>,
    /// What is measured, and how long stragglers are waited for.
    pub run: Run,
    /// What breaks, in order of time.
    pub faults: Vec<Fault>,
    /// Drives that exchange what they hold, in order of time.
    pub swaps: Vec<PlannedSwap>,
    /// Whether every operation is remembered and the history checked for linearizability at the
    /// end.
    pub check_history: bool,
}

/// A block trace that is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockReplay {
    /// The file, as written.
    pub file: String,
    /// SHA-256 of its requests, hex.
    pub digest: String,
    /// How it is written down.
    pub format: Format,
    /// What was let pass when it was read.
    pub tolerance: Tolerance,
    /// How it is played.
    pub config: ReplayConfig,
    /// Its requests.
    pub trace: Arc<BlockTrace>,
}

/// Delays of a network, from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedNetwork {
    /// The file, as written.
    pub file: String,
    /// What a number without a unit counts in.
    pub unit: Option<Span>,
    /// SHA-256 of the delays, hex.
    pub digest: String,
    /// At least one.
    pub delays: Arc<[Span]>,
}

/// Servers, clients, switch and networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rack {
    /// Storage servers.
    pub servers: u32,
    /// Drives of each.
    pub ssds: u32,
    /// Clients, each behind a network path of its own.
    pub clients: u32,
    /// Line rate of every link.
    pub rate: Rate,
    /// Light in the fibre of every link in the rack.
    pub propagation: Span,
    /// Host software a packet, at clients and servers.
    pub host: Span,
    /// The switch, from a packet's last bit to its place in an output queue.
    pub pipeline: Span,
    /// A second pass through the switch.
    pub recirculation: Span,
    /// Output queue of a switch port.
    pub switch_queue: Bytes,
    /// Which packets of a port go first.
    pub scheduling: NetworkSchedulingName,
    /// High-priority traffic to every server, as a share of its link.
    pub background_load: f64,
    /// Mean length of its bursts, which come at line rate.
    pub background_burst: Span,
    /// The networks between clients and rack.
    pub network: NetworkName,
    /// Multiplies every delay of `network`.
    pub network_scale: f64,
    /// Whether a third replica lives in another rack.
    pub remote_replica: bool,
    /// One way between the racks.
    pub remote_delay: Span,
}

/// How packets cross the networks between clients and rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulate {
    /// What becomes of a delay.
    pub mode: NetworkModeName,
    /// Whether packets of the software controller, and redirected reads, cross a network as well.
    pub redirects: bool,
}

/// The drives.
#[derive(Clone, Debug, PartialEq)]
pub struct Flash {
    /// Model of the drive.
    pub preset: PresetName,
    /// What is different from the preset, as `rackweave fit` finds it.
    pub own: OwnNumbers,
    /// Pages of a block; the preset's own when not given.
    pub pages_per_block: Option<u32>,
    /// What reads may interrupt; the preset's own when not given.
    pub suspension: Option<Suspension>,
    /// Choice of the block to collect.
    pub victim: VictimName,
    /// Whether relocated data are kept apart from new data.
    pub hot_cold: bool,
    /// State of the drives at the start of a run.
    pub state: FlashState,
}

/// State of the drives at the start of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum FlashState {
    /// Nothing.
    Clean,
    /// The virtual drives' data, written once in order.
    Filled,
    /// That, overwritten at random until a share of the free blocks is used up
    /// ([`Vssd::used_before`]).
    Used,
    /// That, overwritten at random with so many blocks kept free, until write amplification is
    /// steady.
    Fragmented(Steady),
    /// What a snapshot holds.
    Snapshot(FlashSnapshot),
}

/// The drives' states, from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashSnapshot {
    /// The file, as written.
    pub file: String,
    /// SHA-256 of the file, hex.
    pub digest: String,
    /// The states, by the numbers of the virtual drives.
    pub archive: Arc<RegionArchive>,
}

/// Numbers of a drive in place of its preset's; the preset's own where nothing is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnNumbers {
    /// Dies of a channel.
    pub dies_per_channel: Option<u32>,
    /// Array time of a read of each kind of page.
    pub read: Option<Vec<Span>>,
    /// Array time of a program of each kind of page.
    pub program: Option<Vec<Span>>,
    /// Array time of an erase.
    pub erase: Option<Span>,
    /// Data rate of a channel.
    pub channel: Option<Rate>,
    /// The controller's time of a read, once a command.
    pub read_firmware: Option<Span>,
    /// The controller's time of a write, once a command.
    pub write_firmware: Option<Span>,
}

/// Virtual drives of each drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vssd {
    /// Virtual drives on each drive.
    pub per_ssd: u32,
    /// Own channels, or shares of common ones.
    pub isolation: IsolationName,
    /// Channels of a virtual drive, or of a channel group.
    pub channels: u32,
    /// Virtual drives that share channels, with software isolation.
    pub group: u32,
    /// Flash of a virtual drive, spare blocks included.
    pub capacity: Bytes,
    /// Share of it that holds data.
    pub data: f64,
    /// The share of free blocks that is used up before the run.
    pub used_before: f64,
    /// DRAM of its server that holds writes on their way to flash.
    pub write_cache: Bytes,
    /// When a write is answered.
    pub write_ack: WriteAckName,
    /// Share of `write_cache` at which flushing starts.
    pub flush_above: f64,
    /// Requests outstanding at the drive.
    pub device_depth: u32,
    /// Software isolation: requests a second that each may start; `None` for no limit.
    pub rate: Option<u32>,
    /// Software isolation: free blocks that are lent together.
    pub borrow: Bytes,
    /// Pages of each virtual drive that change places together in a swap.
    pub swap_batch: u32,
    /// How long a page of a swap makes way for requests at the device.
    pub swap_wait_max: Span,
}

/// Two drives of a server that exchange what they hold (RackBlox, 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedSwap {
    /// When it begins.
    pub at: Time,
    /// The storage server, from 0.
    pub server: u32,
    /// Its two drives, from 0.
    pub ssds: (u32, u32),
}

/// The I/O scheduler of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduler {
    /// The scheduler.
    pub policy: PolicyName,
    /// Whether network times count (RackBlox, 3.4).
    pub coordinated: bool,
    /// Latency target or deadline of reads.
    pub read_target: Span,
    /// Latency target or deadline of writes.
    pub write_target: Span,
    /// Packets over which the way back is predicted.
    pub window: u32,
}

/// Garbage collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collection {
    /// Coordinator.
    pub coordination: CoordinationName,
    /// Below this share of free blocks a server would like to collect.
    pub soft: f64,
    /// Below this share it must.
    pub regular: f64,
    /// At this share it stops.
    pub stop: f64,
    /// Period of checks of the free blocks.
    pub check_period: Span,
    /// How often an unanswered regular request is sent again.
    pub retries: u32,
    /// How long an answer is waited for.
    pub retry_after: Span,
    /// Whether idle time is used.
    pub background: bool,
    /// Share of free blocks below which it is.
    pub background_below: f64,
    /// Smoothing of the idle predictor.
    pub idle_alpha: f64,
    /// Predicted idle time from which garbage is collected in the background.
    pub idle_threshold: Span,
    /// Dies of a virtual drive that collect at the same time.
    pub streams: u32,
    /// What serves no requests during a burst.
    pub grain: GrainName,
    /// Pages that a die moves between host requests.
    pub burst: u32,
}

/// The software controller of the rivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controller {
    /// Between two allocations.
    pub period: Span,
    /// Cost of a write, in reads.
    pub write_cost: u32,
    /// Capacity of a virtual drive, in reads a second; `None` for what its flash can do.
    pub capacity: Option<u32>,
}

/// Heartbeats and leases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Membership {
    /// Between two heartbeats.
    pub heartbeat: Span,
    /// Beats missed before a server counts as dead.
    pub misses: u32,
    /// How long a server serves without having heard from the control plane.
    pub lease: Span,
    /// Time from a server's death to the rebuild of its replicas on others.
    pub replace_after: Span,
    /// Timeout of orders, invalidations and fetches, which are then repeated.
    pub resend: Span,
    /// Age at which an invalid page is replayed: its writer may have died.
    pub replay: Span,
    /// Outstanding pages of a rebuild.
    pub fetch_window: u32,
    /// Timeout of a client, which then tries another replica.
    pub client_timeout: Span,
    /// Attempts of a request at most.
    pub client_attempts: u32,
    /// Timeouts in a row, without a packet from the rack, after which a client takes its switch for
    /// dead.
    pub client_silence: u32,
}

impl Blox {
    /// Units that the region of a virtual drive has: its pages, and those that a swap needs.
    pub fn region_units(&self) -> u64 {
        let spare = if self.swaps.is_empty() { 0 } else { self.vssd.swap_batch };
        self.io.working_set_blocks + u64::from(spare)
    }
}

impl Membership {
    /// Longest wait of a client for an unanswered request, plus one timeout.
    pub fn client_wait_max(&self) -> Span {
        self.client_timeout * (u64::from(self.client_attempts) + 1)
    }
}
