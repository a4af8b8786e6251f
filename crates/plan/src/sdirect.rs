//! Plans of S-Direct and its rivals: a machine with devices, its clients, and the network between.

pub(crate) mod file;
mod print;
pub(crate) mod resolve;
mod warnings;

use crate::blox::{Flash, PresetName};
use crate::plan::Run;
use base::{Bytes, Rate, Span};
pub use file::{ByName, TaskName};
pub(crate) use print::file_of;
use sdirect::baseline::stack::StackConfig;

/// A machine with devices, its clients, and the network between.
#[derive(Clone, Debug, PartialEq)]
pub struct SDirect {
    /// S-Direct or a rival.
    pub design: crate::DesignName,
    /// The machine.
    pub machine: Machine,
    /// Numbers of the devices in place of their preset's, and what they hold; as `rackweave fit`
    /// writes them.
    pub flash: Option<Flash>,
    /// The NIC's logic; of s-direct and target-offload.
    pub nic: Option<Nic>,
    /// The machine's software; of linux and spdk.
    pub software: Option<StackConfig>,
    /// The clients.
    pub clients: Clients,
    /// Operation of each request.
    pub task: Task,
    /// The load.
    pub io: workload::storage::Config,
    /// Offered load of all clients, in requests a second; `None` in a closed loop.
    pub requests_per_second: Option<f64>,
    /// What is measured, and how long stragglers are waited for.
    pub run: Run,
}

/// The machine: root complex, PCIe switch, NIC and devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Devices below the switch.
    pub devices: u32,
    /// Model of the devices.
    pub preset: PresetName,
    /// Blocks of a plane.
    pub blocks_per_plane: u32,
    /// The share of a device that was written before the run.
    pub filled: f64,
    /// Commands a second that a device's controller begins.
    pub commands_per_second: u32,
    /// A device's link.
    pub device_link: Rate,
    /// The NIC's link.
    pub nic_link: Rate,
    /// The switch's link to the root complex.
    pub root_link: Rate,
    /// Largest payload of a PCIe packet.
    pub payload_max: Bytes,
    /// Largest PCIe read request.
    pub read_max: Bytes,
    /// Overhead of a PCIe packet.
    pub packet_overhead: Bytes,
    /// From one end of a PCIe link to the other.
    pub link_latency: Span,
    /// The host's memory, to the first byte.
    pub memory_latency: Span,
    /// The host's memory, all channels.
    pub memory_bandwidth: Rate,
}

/// The NIC's logic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nic {
    /// Outstanding commands of a device's queue pair.
    pub queue_depth: u32,
    /// Most bytes of one NVMe command.
    pub transfer_max: Bytes,
    /// Bound of a pair's FIFO.
    pub fifo: Bytes,
    /// Processing time of each command, completion and packet.
    pub processing: Span,
    /// Commands at once.
    pub commands_max: u32,
    /// Timeout of granted data.
    pub grant_timeout: Span,
    /// Grants of the same data.
    pub grants_max: u32,
}

/// The clients, and the network between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// Number of clients.
    pub count: u32,
    /// Whether they are remote.
    pub remote: bool,
    /// Line rate of the network's links.
    pub rate: Rate,
    /// One way through the network.
    pub delay: Span,
    /// Most data of a packet.
    pub packet: Bytes,
    /// What a packet has beside its data.
    pub header: Bytes,
    /// Of a hundred packets, how many are lost.
    pub loss_percent: f64,
    /// Timeout of a command, which is then repeated.
    pub timeout: Span,
    /// Attempts of a command at most.
    pub attempts: u32,
}

/// Operation of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Operation.
    pub kind: TaskName,
    /// Mover of the data.
    pub moved_by: ByName,
    /// Devices that receive them.
    pub targets: u32,
    /// Size of the data.
    pub bytes: Bytes,
}
