//! The written form of a key-value store on a JBOF, and its defaults, each with its source. "Paper"
//! is Scalio, OSDI'25.

use super::{Carrier, Cores, Ditto, Leed, Options, Rdma, Store};
use crate::file::words;
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Rate, Span};
use hardware::{RdmaConfig, TargetOffloadConfig};

words! {
    /// Consistency protocol of cache and flash.
    ProtocolName {
        /// Ours: versions in the word of a slot, compare-and-swap everywhere, the server
        /// invalidates before it answers.
        Linearizable,
        /// The paper's (5.2), flags that are stored and a client that invalidates after the answer.
        /// Not linearizable with leases.
        Paper,
    }
}

table! {
    /// The JBOF (a box of SSDs), its clients, and the stored keys. With the designs scalio, leed,
    /// leed-ditto, nvme-of and nvme-of-offload.
    StoreFile => Store {
        /// SSDs of the JBOF (paper, 6.1: seven 970 PRO).
        devices: u32 [1 to 64] = 7,
        /// Client threads (paper, 6.1: up to 160).
        clients: u32 [1 to 4_096] = 160,
        /// Machines of the clients (paper, 6.1: five).
        client_nodes: u32 [1 to 256] = 5,
        /// Keys of the store at the start of a run (paper, 6.1: 20 million of 16 B).
        keys: u32 [1 to 200_000_000]
            where [design.name != "nvme-of" | "nvme-of-offload"] = 20_000_000,
        /// Size of each value (paper, 6.1: 64 B). Longer ones are in no slot, and each GET reads
        /// them from flash. With the design scalio they and their keys may take a ninth of `zone`,
        /// with its rivals they cannot be.
        value: Quantity<Bytes> ["8B" to "512MiB"]
            where [design.name != "nvme-of" | "nvme-of-offload"] = Bytes::new(64),
        /// Size of a zone of each SSD's log, the unit in which space is won back. 4 MiB when not
        /// given.
        zone: Quantity<Bytes> ["128KiB" to "8GiB"] where [design.name = "scalio"],
        /// Size of each SSD's log: whole zones, 12 at least. As `spare` says when not given.
        size: Quantity<Bytes> where [design.name = "scalio"],
        /// Capacity of the cache, in keys (paper, 6.1: about 2 million in 1 GB).
        cached_keys: u32 [1 to 200_000_000]
            where [design.name != "nvme-of" | "nvme-of-offload"] = 2_000_000,
        /// Share of the cache that holds the most popular keys at the start of a run. Ours: all of
        /// it, which shortens the warm-up.
        warmed: f64 [0.0 to 1.0]
            where [design.name != "nvme-of" | "nvme-of-offload"] = 1.0,
        /// Free space of each SSD's log at the start of a run, as a multiple of the used space.
        /// Ours: SSDs are far larger than the paper's data. With 0.05 compaction runs beside the
        /// load.
        spare: f64 [0.05 to 1_000.0]
            where [design.name != "nvme-of" | "nvme-of-offload"; without size] = 4.0,
        /// Whether a die's register keeps the page that it read last, so that the next read of that
        /// page does not take the die. Ours: NAND chips have such a register, and firmware may or
        /// may not use it so. Not of drives that `flash` describes.
        keeps_page: bool = true,
    }
}

table! {
    /// Adapters with remote direct memory access, the network between, and the NVMe-oF target in
    /// the JBOF's adapter. With the designs scalio, leed, leed-ditto, nvme-of and nvme-of-offload.
    RdmaFile => Rdma {
        /// Line rate of every adapter. The paper names a ConnectX-6, which is sold for up to 200
        /// Gb/s.
        rate: Quantity<Rate> ["1Mbps" to "100Tbps"] = Rate::gbps(200),
        /// Messages that an adapter begins a second (paper, 2.1: 200 million).
        messages_per_second: u64 [1 to 1_000_000_000_000_u64] = 200_000_000,
        /// Swaps of a word that an adapter carries out a second (paper, 1.2: a tenth of reads and
        /// writes).
        swaps_per_second: u64 [1 to 1_000_000_000_000_u64] = 20_000_000,
        /// From a thread's call until the adapter has the work request. Ours, like the next five: a
        /// read of a block comes to 2 us, as Kalia et al. (ATC'16) found for adapters of this
        /// family.
        post: Quantity<Span> [to "10ms"] = Span::ns(200),
        /// One pass of a message through an adapter.
        processing: Quantity<Span> [to "10ms"] = Span::ns(150),
        /// One way between adapters, cables and switch.
        wire: Quantity<Span> [to "10ms"] = Span::ns(350),
        /// From an adapter's request for memory over PCIe to the data.
        memory_read: Quantity<Span> [to "10ms"] = Span::ns(450),
        /// From the adapter into memory, until a thread that polls sees it.
        memory_write: Quantity<Span> [to "10ms"] = Span::ns(250),
        /// What a message has on the wire beside its data: InfiniBand's local and base transport
        /// headers, an extended one and two checks.
        header: Quantity<Bytes> [to "4KiB"] = Bytes::new(42),
        /// NVMe-oF commands a second of the target in the JBOF's adapter. Ours: more than seven
        /// SSDs take, since the paper's Figure 6 sees no limit.
        offload_commands_per_second: u64 [1 to 1_000_000_000_000_u64] = 8_000_000,
        /// From such a command's arrival to the SSD's queue, peer to peer. Ours.
        offload_submission: Quantity<Span> [to "10ms"] = Span::us(1),
        /// From the SSD's completion to the answer on its way. Ours.
        offload_completion: Quantity<Span> [to "10ms"] = Span::us(1),
    } as {
        adapter: RdmaConfig {
            rate,
            messages_per_second,
            swaps_per_second,
            post,
            processing,
            wire,
            memory_read,
            memory_write,
            header,
        },
        offload: TargetOffloadConfig {
            commands_per_second: offload_commands_per_second,
            submission: offload_submission,
            completion: offload_completion,
        },
    }
}

words! {
    /// Transport of a client's operations on the JBOF's memory.
    CarrierName {
        /// RDMA verbs of the adapters of `rdma`.
        Rdma,
        /// EDM's messages (ASPLOS'25), in a network of their own beside the adapters, which go on
        /// to carry requests to servers and offloaded reads.
        Edm,
    }
}

table! {
    /// Transport of a client's operations on the JBOF's memory. All keys but `name` are of EDM's
    /// network, whose other parameters are the defaults of `design.edm`. With the design scalio.
    CarrierFile => Carrier {
        /// RDMA or EDM.
        name: CarrierName = CarrierName::Rdma,
        /// Line rate of every link (EDM, 4.3: 100 Gb/s).
        rate: Quantity<Rate> ["1Mbps" to "100Tbps"] where [name = "edm"] = Rate::gbps(100),
        /// Light in the fibre between a machine and the switch (EDM, Table 1: 10 ns).
        propagation: Quantity<Span> [to "1ms"] where [name = "edm"] = Span::ns(10),
        /// PMA, PMD and transceiver, one crossing (EDM, Table 1: 19 ns).
        transceiver: Quantity<Span> [to "1ms"] where [name = "edm"] = Span::ns(19),
        /// From a thread's call until EDM's logic has the request. EDM (2.1) asks for a network
        /// controller beside the processor, tens of nanoseconds away.
        post: Quantity<Span> [to "1ms"] where [name = "edm"] = Span::ns(50),
        /// From EDM's logic until a thread that polls sees an answer, likewise.
        completion: Quantity<Span> [to "1ms"] where [name = "edm"; was seen] = Span::ns(50),
        /// From a request at the JBOF's memory controller to the first byte. Ours: DDR4.
        memory_latency: Quantity<Span> [to "1ms"] where [name = "edm"] = Span::ns(80),
        /// What that memory delivers: a channel of DDR4-3200, as a BlueField-2 has. Blocks are read
        /// line by line at this rate.
        memory_bandwidth: Quantity<Rate> ["1Mbps" to "100Tbps"] where [name = "edm"] = Rate::bps(204_800_000_000),
    }
}

table! {
    /// The JBOF's cores. One serves no requests (paper, 2.1). With the designs scalio, leed,
    /// leed-ditto, nvme-of and nvme-of-offload.
    CoresFile => Cores {
        /// Number of cores (paper, 6.1: limited to 8).
        count: u32 [3 to 256] = 8,
        /// Cores of the network. Three sevenths of all but one when not given, as LEED has 3 of 8
        /// (paper, 2.1).
        network: u32 [1 to 255] => (count.saturating_sub(1) * 3 / 7).max(1),
        /// Cores of the SSDs, to which SSDs are assigned in turn. The rest when not given, as LEED
        /// has 4 of 8 (paper, 2.1).
        flash: u32 [1 to 255] => count.saturating_sub(1).saturating_sub(network).max(1),
        /// CPU time to receive a request. Ours, of the order of RPC systems over RDMA.
        receive: Quantity<Span> [to "1s"] = Span::ns(600),
        /// CPU time to send a response. Ours.
        send: Quantity<Span> [to "1s"] = Span::ns(400),
        /// CPU time to submit an I/O, with the store's own work. Calibrated with `complete`: paper,
        /// Figure 5, where four cores do the two I/Os of 600,000 operations a second, 3.3 us for
        /// each.
        submit: Quantity<Span> [to "1s"] = Span::ns(1_500),
        /// CPU time to complete it, likewise.
        complete: Quantity<Span> [to "1s"] = Span::ns(1_800),
        /// CPU time of one operation on the index in memory. Ours: a cache miss.
        memory: Quantity<Span> [to "1s"] = Span::ns(100),
        /// CPU time to form a group of updates. Ours.
        batch: Quantity<Span> [to "1s"] = Span::ns(500),
        /// CPU time of one I/O of an NVMe-oF target in software. Calibrated: paper, Figure 6, where
        /// seven SSDs of 500,000 I/Os a second take 5.62 cores.
        target: Quantity<Span> [to "1s"] = Span::ns(1_606),
    }
}

table! {
    /// Parameters of Scalio. With the design scalio.
    ScalioFile => Options {
        /// Consistency protocol.
        protocol: ProtocolName = ProtocolName::Linearizable,
        /// Whether blocks have slots, in which keys and values are cached.
        cache: bool = true,
        /// Whether updates are written in groups.
        batching: bool = true,
        /// Slots of a block (paper, Figure 18: 4, 8 and 16). There are as many blocks as it takes
        /// for `store.cached_keys`.
        slots: u32 [1 to 64] = 8,
        /// Updates of a group at most; 4 KiB of updates are written earlier (the paper's artifact:
        /// 8).
        batch: u32 [1 to 256] = 8,
        /// Longest wait of a group for more updates (the paper's artifact: 1 ms).
        idle_flush: Quantity<Span> [to "1s"] = Span::ms(1),
        /// Groups of updates that a server has on their way at most. 32 when not given, so that
        /// none waits for another's I/Os.
        groups: u32 [1 to 1_024],
        /// Compaction begins when fewer zones are free. 8 when not given.
        compact_below: u32 [5 to 1_024],
        /// Whether a filler loses its slot after its lease. The linearizable protocol always has
        /// leases.
        leases: bool where [protocol = "paper"] = true,
        /// Lease of a filler. Ours: far beyond a read of flash under load.
        lease: Quantity<Span> ["100us" to "8s"] where [leases = true] = Span::ms(20),
        /// Period of polls of a slot that another client fills. Ours: about a read of flash;
        /// throughput hardly depends on it.
        retry: Quantity<Span> ["1us" to "1h"] = Span::us(50),
        /// Whether reads of one key that wait at a client for a slot are answered by one of them.
        /// Doors of a live store do so; the paper's clients do not.
        share_waits: bool where [protocol = "linearizable"] = false,
        /// Timeout of a request, which is then repeated. Ours.
        timeout: Quantity<Span> ["1us" to "1h"] = Span::ms(50),
        /// Attempts of a request at most. Ours.
        attempts: u32 [1 to 1_000] = 20,
        /// Whether a read of a block during a write may return old and new lines of 64 B, as real
        /// memory does. Otherwise reads are atomic.
        torn_reads: bool = true,
        /// Whether SSDs have a volatile write cache, so that servers flush before they publish. The
        /// paper's servers do not flush; a 970 PRO has no capacitors.
        volatile_cache: bool = true,
        /// Whether a segment for which an update waits stays in memory for it, as in the paper's
        /// artifact. Otherwise each update, or group, reads the SSD after it has the lock.
        hand_over: bool = true,
    } as {
        protocol,
        cache,
        batching,
        slots,
        batch,
        idle_flush,
        groups,
        compact_below,
        lease: filling,
        retry,
        share_waits,
        timeout,
        attempts,
        torn_reads,
        volatile_cache,
        hand_over,
    } from {
        let filling = leases.then_some(lease);
    } to {
        let (leases, lease) = (filling.is_some(), filling.unwrap_or(Span::ZERO));
    }
}

/// Items of a bucket, and how full LEED's chains of one bucket are on average.
const KEYS_OF_A_SEGMENT: u32 = 15 * 3 / 4;

table! {
    /// Parameters of LEED. With the designs leed and leed-ditto.
    LeedFile => Leed with keys_of_an_ssd: u32 {
        /// Segments of an SSD. As many as a chain of one bucket each needs, three quarters full,
        /// when not given.
        segments: u32 [1 to 100_000_000] => keys_of_an_ssd.div_ceil(KEYS_OF_A_SEGMENT).max(1),
        /// Tokens of an SSD (LEED's artifact: 1,024; a GET takes 3, a SET 8, a DEL 4).
        tokens: u32 [8 to 65_536] = 1_024,
        /// Whether a segment for which an update waits stays in memory for it, as in LEED's
        /// artifact. Otherwise each update reads the SSD after it has the lock.
        hand_over: bool = true,
    }
}

table! {
    /// Parameters of Ditto. With the design leed-ditto.
    DittoFile => Ditto {
        /// Keys among which an eviction chooses (Ditto, SOSP'23: 5).
        samples: u32 [1 to 64] = 5,
    }
}
