//! The written form of a machine with devices, and its defaults, each with its source. "Paper" is
//! S-Direct (Lu, APNet).

use super::{Clients, Machine, Nic, Task};
use crate::blox::file::PresetName;
use crate::file::words;
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Rate, Span};
use sdirect::baseline::stack::{Notice, StackConfig};

table! {
    /// The machine that holds the devices: a PCIe tree of root complex, switch, NIC and devices
    /// (paper, Figure 1). With the designs s-direct, linux, spdk and target-offload.
    MachineFile => Machine {
        /// Devices below the switch.
        devices: u32 [1 to 64] = 1,
        /// Model of the devices (paper, section 3: Intel DC P3700).
        preset: PresetName = PresetName::P3700,
        /// Blocks of a plane: less flash than the real device has, of the same speed.
        blocks_per_plane: u32 [8 to 65_536] = 64,
        /// The share of a device that was written before the run, in order.
        filled: f64 [0.0 to 1.0] = 0.5,
        /// Commands a second that a device's controller begins (Intel's sheet of the P3700: 460,000
        /// reads of 4 KiB).
        commands_per_second: u32 [1 to 1_000_000_000] = 460_000,
        /// A device's link to the switch: PCIe 3.0 x4, 985 MB/s a lane after coding.
        device_link: Quantity<Rate> ["1Mbps" to "100Tbps"] = Rate::bps(31_520_000_000),
        /// The NIC's link to the switch: PCIe 3.0 x8.
        nic_link: Quantity<Rate> ["1Mbps" to "100Tbps"] = Rate::bps(63_040_000_000),
        /// The link between switch and root complex: PCIe 3.0 x16. The paper's bottleneck.
        root_link: Quantity<Rate> ["1Mbps" to "100Tbps"] = Rate::bps(126_080_000_000),
        /// Largest payload of a PCIe packet. Usual of servers.
        payload_max: Quantity<Bytes> ["64B" to "4KiB"] = Bytes::new(256),
        /// Largest PCIe read request. Usual of servers.
        read_max: Quantity<Bytes> ["64B" to "4KiB"] = Bytes::new(512),
        /// Overhead of a PCIe packet (Neugebauer et al., SIGCOMM'18, section 3: 24 B of a write
        /// with 64-bit address).
        packet_overhead: Quantity<Bytes> [to "1KiB"] = Bytes::new(24),
        /// From one end of a PCIe link to the other, forwarding included. Ours: a read of host
        /// memory over two links takes about 0.5 us with it, as measured by Neugebauer et al.
        link_latency: Quantity<Span> [to "1ms"] = Span::ns(110),
        /// The host's memory, from a request to its first byte.
        memory_latency: Quantity<Span> [to "1ms"] = Span::ns(80),
        /// The host's memory, all channels: four of DDR4-2133.
        memory_bandwidth: Quantity<Rate> ["1Mbps" to "100Tbps"] = Rate::bps(546_000_000_000),
    }
}

table! {
    /// The NIC's logic. With the designs s-direct and target-offload.
    NicFile => Nic {
        /// Outstanding commands of a device's queue pair.
        queue_depth: u32 [1 to 4_096] = 128,
        /// Most bytes of one NVMe command (P3700: MDTS of 128 KiB).
        transfer_max: Quantity<Bytes> where [was piece] = Bytes::kib(128),
        /// Bound of the FIFO of each pair that communicates. Ours: the paper has "several MBs" of
        /// memory for all.
        fifo: Quantity<Bytes> = Bytes::kib(256),
        /// Processing time of each command, completion and packet. Ours: some hundred cycles of an
        /// FPGA.
        processing: Quantity<Span> [to "60s"] where [was step] = Span::ns(300),
        /// Commands at once.
        commands_max: u32 [1 to 1_048_576] = 65_536,
        /// Timeout of granted data, which are then granted again.
        grant_timeout: Quantity<Span> ["1us" to "60s"] where [was patience] = Span::ms(1),
        /// Grants of the same data before their client counts as dead.
        grants_max: u32 [1 to 1_000] = 16,
    }
}

/// The software whose defaults apply, and the number of devices.
#[derive(Clone, Copy)]
pub(crate) struct Usual {
    pub is_linux: bool,
    pub devices: u16,
}

impl Usual {
    fn of<T>(self, linux: T, spdk: T) -> T {
        if self.is_linux { linux } else { spdk }
    }
}

table! {
    /// What the machine's software costs. Defaults of linux: Yang, Minturn and Hady (FAST'12,
    /// section 3) on an interrupt-driven read of 4 KiB: 4.4 us of the kernel's own, of which a
    /// context switch is 1.4 us; the split of the rest is ours. Defaults of spdk are ours: SPDK's
    /// own overhead is some hundred nanoseconds a command (Yang et al., CloudCom'17, Figure 5).
    SoftwareFile => StackConfig with usual: Usual {
        /// Cores of the software, each with queue pairs of its own. Ours: as many as carry a
        /// device's peak, 4 for linux and 1 for spdk, a device.
        cores: u32 [1 to 1_024] => usual.of(4, 1) * u32::from(usual.devices),
        /// Commands in a queue pair at once.
        queue_depth: u16 [1 to 4_096] = 1_024,
        /// From the application's call to the command in memory, each command: 1.5 us for linux,
        /// 200 ns for spdk.
        submission: Quantity<Span> [to "1s"] => Span::ns(usual.of(1_500, 200)),
        /// A doorbell: 100 ns.
        doorbell: Quantity<Span> => Span::ns(100),
        /// From the completion in memory to the application, each command, notice left out: 700 ns
        /// for linux, 200 ns for spdk.
        completion: Quantity<Span> [to "1s"] => Span::ns(usual.of(700, 200)),
        /// Commands that are submitted together: 1 for linux, 128 for spdk. The paper's batch is
        /// "large" and not given; 128 fill a queue of usual depth.
        batch: u32 [1 to 4_096] => usual.of(1, 128),
        /// How long a batch waits for more.
        batch_time: Quantity<Span> [to "1s"] = Span::ms(1),
        /// Entering and leaving an interrupt's handler: 700 ns.
        interrupt: Quantity<Span> where [design.name = "linux"] => Span::ns(700),
        /// Waking the thread that waits, each command: 1.4 us.
        context_switch: Quantity<Span> where [design.name = "linux"] => Span::ns(1_400),
        /// Completions that an interrupt waits for. By default 1, for none: Linux leaves feature
        /// 08h as it is.
        coalesce: u32 [1 to 256] where [design.name = "linux"] => 1,
        /// How long an interrupt waits for them: 100 us.
        coalesce_time: Quantity<Span> where [design.name = "linux"] => Span::us(100),
        /// One poll of the completion queues: 100 ns.
        poll: Quantity<Span> where [design.name = "spdk"; was look] => Span::ns(100),
    } as { cores, devices, queue_depth, submission, doorbell, completion, batch, batch_time, notice } from {
        let devices = usual.devices;
        let notice = match usual.is_linux {
            true => Notice::Interrupt {
                handler: interrupt,
                context_switch,
                threshold: coalesce,
                time: coalesce_time,
            },
            false => Notice::Poll { look: poll },
        };
    } to {
        let nothing = Span::ZERO;
        let (interrupt, context_switch, coalesce, coalesce_time, poll) = match notice {
            Notice::Interrupt { handler, context_switch, threshold, time } => {
                (handler, context_switch, threshold, time, nothing)
            }
            Notice::Poll { look } => (nothing, nothing, 0, nothing, look),
        };
    }
}

table! {
    /// The clients, and the network between. With the designs s-direct, linux, spdk and
    /// target-offload.
    ClientsFile => Clients {
        /// How many clients there are.
        count: u32 [1 to 1_024] = 1,
        /// Whether they are remote. Otherwise requests begin in the NIC's logic, or in applications
        /// on the machine's cores, as the paper measured (section 3: "local NVMe devices").
        remote: bool = false,
        /// Line rate of the links of NIC and clients.
        rate: Quantity<Rate> ["1Mbps" to "100Tbps"] where [remote = true] = Rate::gbps(40),
        /// One way through the network, cables and switch.
        delay: Quantity<Span> [to "1s"] where [remote = true] = Span::us(1),
        /// Most data of a packet.
        packet: Quantity<Bytes> ["64B" to "64KiB"] where [remote = true] = Bytes::new(4_096),
        /// What a packet has beside its data: Ethernet with preamble and gap, IP, UDP, and the 26 B
        /// of `sdirect::Message`. Ours.
        header: Quantity<Bytes> [to "4KiB"] where [remote = true] = Bytes::new(92),
        /// Of a hundred packets, how many the network loses.
        loss_percent: f64 [0.0 to 50.0] where [remote = true] = 0.0,
        /// Timeout of a client, which then repeats the command.
        timeout: Quantity<Span> ["1us" to "1h"] where [remote = true] = Span::ms(20),
        /// How often it sends a command at most.
        attempts: u32 [1 to 1_000] where [remote = true] = 5,
    }
}

words! {
    /// What a request is.
    TaskName {
        /// A read or a write.
        ReadWrite,
        /// The range of its device is copied to the next device.
        Copy,
        /// Data reach `targets` devices: from the device before them, or from the client.
        Replicate,
        /// The word at its address is added to the one a block further on.
        AddWrite,
    }
}

words! {
    /// Mover of the data.
    ByName {
        /// The NIC, from device to device.
        Nic,
        /// The client, by reads and writes.
        Client,
    }
}

table! {
    /// What each request of `io` is. With the designs s-direct, linux, spdk and target-offload.
    TaskFile => Task with is_nic: bool {
        /// Operation.
        kind: TaskName = TaskName::ReadWrite,
        /// Mover of the data. `nic` requires the design s-direct.
        moved_by: ByName where [kind = "copy" | "replicate"; was by] => if is_nic { ByName::Nic } else { ByName::Client },
        /// How many devices get the data.
        targets: u32 [1 to 16] where [kind = "replicate"] = 2,
        /// The length of each.
        bytes: Quantity<Bytes> = Bytes::kib(4),
    } from {
        let targets = if kind == TaskName::Replicate { targets } else { 1 };
    } to {}
}
