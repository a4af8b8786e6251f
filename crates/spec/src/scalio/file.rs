//! The written form of a key-value store on a box of SSDs, and its defaults, each with its source. "Paper" is Scalio, OSDI'25.

use super::{Carrier, Store, Verbs};
use crate::file::{defaults_table, words, written};
use crate::quantity::Plain;
use crate::quantity::Quantity;
use base::{Bytes, Rate, Span};
use hardware::{RdmaConfig, TargetOffloadConfig};

words! {
    /// Whose protocol keeps cache and flash consistent.
    ProtocolName {
        /// Ours: versions in the word of a slot, compare-and-swap everywhere, the server invalidates before it answers.
        Linearizable,
        /// The paper's (5.2), flags that are stored and a client that invalidates after the answer. Not linearizable with leases.
        Paper,
    }
}

defaults_table! {
    /// The box of SSDs, its clients, and what is stored. With the designs scalio, leed, leed-ditto, nvme-of and nvme-of-offload.
    StoreFile => Store {
        /// SSDs in the box (paper, 6.1: seven 970 PRO).
        #[schemars(range(min = 1, max = 64))]
        devices: u32 = 7,
        /// Threads that ask (paper, 6.1: up to 160).
        #[schemars(range(min = 1, max = 4_096))]
        clients: u32 = 160,
        /// Machines that they are on (paper, 6.1: five).
        #[schemars(range(min = 1, max = 256))]
        client_nodes: u32 = 5,
        /// Keys that are there when a run begins (paper, 6.1: 20 million of 16 B).
        #[schemars(range(min = 1, max = 200_000_000))]
        keys: u32 = 20_000_000,
        /// Of each value (paper, 6.1: 64 B).
        value: Quantity<Bytes> = Bytes::new(64),
        /// Keys that the cache has room for (paper, 6.1: about 2 million in 1 GB).
        #[schemars(range(min = 1, max = 200_000_000))]
        cached_keys: u32 = 2_000_000,
        /// The share of the cache that is full of the most popular keys when a run begins. Ours: full, so that a run needs not be as long as the cache is large.
        #[schemars(range(min = 0.0, max = 1.0))]
        warmed: f64 = 1.0,
        /// Room of each SSD's log beyond what is there when a run begins, as a multiple of that. Ours: SSDs are far larger than what the paper stores. With 0.05 compaction
        /// runs beside the load, and a little more is written.
        #[schemars(range(min = 0.05, max = 1_000.0))]
        spare: f64 = 4.0,
    }
}

/// A table whose keys belong to parts of a plan: [`defaults_table`], a part after the other.
macro_rules! parts_table {
    ($(#[$meta:meta])* $name:ident => $config:ident { $(
        $part:ident : $part_config:ident {
            $( $(#[$field_meta:meta])* $key:ident as $field:ident : $type:ty = $default:expr, )*
        }
    )* }) => {
        written! {
            $(#[$meta])*
            $name { $($(
                $(#[$field_meta])*
                #[schemars(extend("default" = <$type as Plain>::written($default)))]
                $key: $type,
            )*)* }
        }
        impl $name {
            /// What is given, and defaults for the rest.
            pub(crate) fn resolve(&self) -> $config {
                $config { $( $part: $part_config { $( $field: self.$key.map_or($default, Plain::plain), )* }, )* }
            }
            /// The table that says all of `config`.
            pub(crate) fn of(config: &$config) -> $name {
                $name { $($( $key: Some(Plain::written(config.$part.$field)), )*)* }
            }
        }
    };
}

parts_table! {
    /// Adapters with remote direct memory access, the network between, and the NVMe-oF target in the box's adapter. With the designs scalio, leed, leed-ditto, nvme-of and
    /// nvme-of-offload.
    VerbsFile => Verbs {
        adapter: RdmaConfig {
            /// Line rate of every adapter. The paper names a ConnectX-6, which is sold for up to 200 Gb/s.
            rate as rate: Quantity<Rate> = Rate::gbps(200),
            /// Messages that an adapter begins a second (paper, 2.1: 200 million).
            #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
            messages_per_second as messages_per_second: u64 = 200_000_000,
            /// Swaps of a word that an adapter carries out a second (paper, 1.2: a tenth of reads and writes).
            #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
            swaps_per_second as swaps_per_second: u64 = 20_000_000,
            /// From a thread's call until the adapter has the work request. Ours, like the next five: a read of a block comes to 2 us, as Kalia et al. (ATC'16) found for
            /// adapters of this family.
            post as post: Quantity<Span> = Span::ns(200),
            /// One pass of a message through an adapter.
            processing as processing: Quantity<Span> = Span::ns(150),
            /// One way between adapters, cables and switch.
            wire as wire: Quantity<Span> = Span::ns(350),
            /// From an adapter's request for memory over PCIe to the data.
            memory_read as memory_read: Quantity<Span> = Span::ns(450),
            /// From the adapter into memory, until a thread that polls sees it.
            memory_write as memory_write: Quantity<Span> = Span::ns(250),
            /// What a message has on the wire beside its data: InfiniBand's local and base transport headers, an extended one and two checks.
            header as header: Quantity<Bytes> = Bytes::new(42),
        }
        offload: TargetOffloadConfig {
            /// NVMe-oF commands that the box's adapter carries out a second by itself. Ours: more than seven SSDs take, since the paper's Figure 6 sees no limit.
            #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
            offload_commands_per_second as commands_per_second: u64 = 8_000_000,
            /// From such a command's arrival to the SSD's queue, peer to peer. Ours.
            offload_submission as submission: Quantity<Span> = Span::us(1),
            /// From the SSD's completion to the answer on its way. Ours.
            offload_completion as completion: Quantity<Span> = Span::us(1),
        }
    }
}

words! {
    /// What carries a client's operations on the box's memory.
    CarrierName {
        /// Verbs of the adapters of `verbs`.
        Rdma,
        /// EDM's messages (ASPLOS'25), in a network of their own beside the adapters, which go on to carry requests to servers and offloaded reads.
        Edm,
    }
}

defaults_table! {
    /// What carries a client's operations on the box's memory; all keys but `name` are of EDM's network, whose other parameters are those that `design.edm` has when
    /// nothing is given. With the design scalio.
    CarrierFile => Carrier {
        /// Verbs or EDM.
        name: CarrierName = CarrierName::Rdma,
        /// Line rate of every link (EDM, 4.3: 100 Gb/s).
        rate: Quantity<Rate> = Rate::gbps(100),
        /// Light in the fibre between a machine and the switch (EDM, Table 1: 10 ns).
        propagation: Quantity<Span> = Span::ns(10),
        /// PMA, PMD and transceiver, one crossing (EDM, Table 1: 19 ns).
        transceiver: Quantity<Span> = Span::ns(19),
        /// From a thread's call until EDM's logic has the request. EDM (2.1) asks for a network controller beside the processor, tens of nanoseconds away.
        post: Quantity<Span> = Span::ns(50),
        /// From EDM's logic until a thread that polls sees an answer, likewise.
        seen: Quantity<Span> = Span::ns(50),
        /// From a request at the box's memory controller to the first byte. Ours: DDR4.
        memory_latency: Quantity<Span> = Span::ns(80),
        /// What that memory delivers: a channel of DDR4-3200, as a BlueField-2 has. Blocks are read line by line at this rate.
        memory_bandwidth: Quantity<Rate> = Rate::bps(204_800_000_000),
    }
}

written! {
    /// The box's cores. One has nothing to do with requests (paper, 2.1). With the designs scalio, leed, leed-ditto, nvme-of and nvme-of-offload.
    CoresFile {
        /// All of them (paper, 6.1: limited to 8).
        #[schemars(range(min = 3, max = 256), extend("default" = 8))]
        count: u32,
        /// Those that serve the network. Three sevenths of all but one when not given, as LEED has 3 of 8 (paper, 2.1).
        #[schemars(range(min = 1, max = 255))]
        network: u32,
        /// Those that serve SSDs, each SSD one of them in turn. The rest when not given, as LEED has 4 of 8 (paper, 2.1).
        #[schemars(range(min = 1, max = 255))]
        flash: u32,
        /// To receive a request. Ours, of the order of RPC systems over RDMA.
        #[schemars(extend("default" = "600ns"))]
        receive: Quantity<Span>,
        /// To send an answer. Ours.
        #[schemars(extend("default" = "400ns"))]
        send: Quantity<Span>,
        /// To submit an I/O, the store's own work for it included. Calibrated with `complete`: paper, Figure 5, where four cores do the two I/Os of 600,000 operations a second, 3.3 us
        /// for each.
        #[schemars(extend("default" = "1500ns"))]
        submit: Quantity<Span>,
        /// To complete it, likewise.
        #[schemars(extend("default" = "1800ns"))]
        complete: Quantity<Span>,
        /// One operation on the index in memory. Ours: a miss of the cache.
        #[schemars(extend("default" = "100ns"))]
        memory: Quantity<Span>,
        /// To form a group of updates. Ours.
        #[schemars(extend("default" = "500ns"))]
        batch: Quantity<Span>,
        /// An NVMe-oF target in software: one I/O, all of it. Calibrated: paper, Figure 6, where seven SSDs of 500,000 I/Os a second take 5.62 cores.
        #[schemars(extend("default" = "1606ns"))]
        target: Quantity<Span>,
    }
}

written! {
    /// Scalio's own. With the design scalio.
    ScalioFile {
        /// Whose protocol.
        #[schemars(extend("default" = "linearizable"))]
        protocol: ProtocolName,
        /// Whether blocks have slots, in which keys and values are cached.
        #[schemars(extend("default" = true))]
        cache: bool,
        /// Whether updates are written in groups.
        #[schemars(extend("default" = true))]
        batching: bool,
        /// Slots of a block (paper, Figure 18: 4, 8 and 16). There are as many blocks as it takes for `store.cached_keys`.
        #[schemars(range(min = 1, max = 64), extend("default" = 8))]
        slots: u32,
        /// Updates of a group at most; what fills 4 KiB goes before (the paper's artifact: 8).
        #[schemars(range(min = 1, max = 256), extend("default" = 8))]
        batch: u32,
        /// How long a group waits for more (the paper's artifact: 1 ms).
        #[schemars(extend("default" = "1ms"))]
        idle_flush: Quantity<Span>,
        /// With protocol = "paper": whether a filler's slot may be taken after its lease. Ours always has leases.
        #[schemars(extend("default" = true))]
        leases: bool,
        /// How long a filler may take. Ours: far beyond a read of flash under load.
        #[schemars(extend("default" = "20ms"))]
        lease: Quantity<Span>,
        /// From looking at a slot that somebody fills until looking again. Ours: about a read of flash; throughput hardly depends on it.
        #[schemars(extend("default" = "50us"))]
        retry: Quantity<Span>,
        /// From a request to its repetition. Ours.
        #[schemars(extend("default" = "50ms"))]
        timeout: Quantity<Span>,
        /// How often a request is sent at most. Ours.
        #[schemars(range(min = 1, max = 1_000), extend("default" = 20))]
        attempts: u32,
        /// Whether a block that a client reads while others write into it may come back with lines of 64 B from before and lines from after, as it does from real memory.
        /// Without, reads are of one moment, whatever the network.
        #[schemars(extend("default" = true))]
        torn_reads: bool,
        /// Whether SSDs may lose what they acknowledged, so that servers flush before they publish. The paper's does not; a 970 PRO has no capacitors.
        #[schemars(extend("default" = true))]
        volatile_cache: bool,
    }
}

written! {
    /// LEED's own. With the designs leed and leed-ditto.
    LeedFile {
        /// Segments of an SSD. As many as a chain of one bucket each needs, three quarters full, when not given.
        #[schemars(range(min = 1, max = 100_000_000))]
        segments: u32,
        /// Tokens of an SSD (LEED's artifact: 1,024; a GET takes 3, a SET 8, a DEL 4).
        #[schemars(range(min = 8, max = 65_536), extend("default" = 1_024))]
        tokens: u32,
    }
}

written! {
    /// Ditto's own. With the design leed-ditto.
    DittoFile {
        /// Keys that an eviction chooses from (Ditto, SOSP'23: 5).
        #[schemars(range(min = 1, max = 64), extend("default" = 5))]
        samples: u32,
    }
}
