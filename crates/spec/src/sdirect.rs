//! Plans of the room `sdirect`: a machine's devices, and who brings them to clients.

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

/// A machine with devices, its clients, and what is between.
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
    /// Who asks.
    pub clients: Clients,
    /// What each request is.
    pub task: Task,
    /// Who asks for what, and when.
    pub io: workload::storage::Config,
    /// What an open loop was asked to offer, in requests a second of all clients; `None` in a closed loop.
    pub requests_per_second: Option<f64>,
    /// What is measured, and how long stragglers are waited for.
    pub run: Run,
}

/// The machine: root complex, PCIe switch, NIC and devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Devices below the switch.
    pub devices: u32,
    /// What they are.
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
    /// Most data of a PCIe packet.
    pub payload_max: Bytes,
    /// Most data that a PCIe read asks for.
    pub read_max: Bytes,
    /// What a PCIe packet has beside its data.
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
    /// Commands in a device's queue pair at once.
    pub queue_depth: u32,
    /// Most bytes of one NVMe command.
    pub transfer_max: Bytes,
    /// Bound of a pair's FIFO.
    pub fifo: Bytes,
    /// The logic's time for each command, completion and packet.
    pub processing: Span,
    /// Commands at once.
    pub commands_max: u32,
    /// How long granted data are waited for.
    pub grant_timeout: Span,
    /// Grants of the same data.
    pub grants_max: u32,
}

/// Who asks, and the network between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// How many.
    pub count: u32,
    /// Whether they are other machines.
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
    /// Without a sign of life for so long, a command is repeated.
    pub timeout: Span,
    /// How often a command is sent at most.
    pub attempts: u32,
}

/// What each request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// What.
    pub kind: TaskName,
    /// Who moves the data.
    pub moved_by: ByName,
    /// How many devices get them.
    pub targets: u32,
    /// How many.
    pub bytes: Bytes,
}
