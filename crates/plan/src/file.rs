//! The written form of an experiment: the contents of a file, as plain data. It is the source of
//! the JSON Schema against which every file is checked, and the form in which a resolved plan is
//! printed. Each table has its defaults, those of EDM's rivals are in [`crate::rivals`].

use crate::blox::file::{
    CollectionFile, ControllerFile, EmulateFile, FitFile, FlashFile, InversionsName, IoFile, MembershipFile, RackFile,
    SchedulerFile, SwapFile, VssdFile,
};
use crate::design_file::DesignFile;
use crate::plan::{Background, BackgroundStream, Memory, Run, RunLimits, WarmUp};
use crate::quantity::{Choice, Limit, NodeNumber, Quantity};
use crate::san::fabric_file::{DrivesFile, FabricKindName, PlacementName, PricesFile};
use crate::san::file::{
    CheckFile, GimbalFile, HostFile, ReservationFile, RoutingFile, SchedulingFile, TargetFile, WireFile,
};
use crate::san::lsm::LsmFile;
use crate::scalio::file::{CarrierFile, CoresFile, DittoFile, LeedFile, RdmaFile, ScalioFile, StoreFile};
use crate::sdirect::file::{ClientsFile, MachineFile, NicFile, SoftwareFile, TaskFile};
use crate::table::table;
use crate::wear::file::WearFile;
use base::{Bytes, Length, NodeId, Operation, Rate, Span, Time};
use hardware::{DramConfig, RemoteAccess};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use topology::Placement;
use workload::block_trace::Inversions;

table! {
    /// An experiment: a rack, a design, a workload, how long to run, and what to vary.
    #[schemars(title = "Rackweave experiment")]
    ExperimentFile {
        /// The subject of the experiment, in a few words.
        title: String [length from 1] where [needed],
        /// Seed of every random draw: same file, same seed, same bytes.
        seed: u64 [0 to 9_223_372_036_854_775_807_u64] where [without seeds] = 1,
        /// In place of `seed`: one run for each; results are over all of them.
        #[schemars(inner(range(min = 0, max = 9_223_372_036_854_775_807_u64)))]
        seeds: Vec<u64> [length 1 to 10_000],
        /// The folder that names of files are relative to, itself relative to the folder of this
        /// file. That folder when not given.
        files: String [length from 1],
        /// The design that is simulated.
        design: DesignFile where [needed],
        /// The network: of messages, nodes around one switch (two with EDM's `redundant`); of a
        /// SAN, a topology.
        fabric: FabricFile where [Messages, San; needed],
        /// Messages: the memory behind every node.
        memory: MemoryFile where [Messages],
        /// Messages: sources, targets, sizes and arrivals of requests.
        workload: WorkloadFile where [Messages; needed],
        /// Messages: ordinary Ethernet traffic that shares the links.
        background: BackgroundFile where [Messages; design.name = "edm"],
        /// Volumes: servers, clients, switch and the networks around them.
        rack: RackFile where [Volumes],
        /// Volumes: how packets cross the networks between clients and rack.
        emulate: EmulateFile where [Volumes],
        /// Volumes, SAN, devices and key-value stores: the drives.
        flash: FlashFile where [Volumes, San, Devices, KeyValue],
        /// Source of the numbers of `flash`.
        fit: FitFile where [Volumes, San, Devices, KeyValue],
        /// Volumes: the virtual drives of each drive.
        vssd: VssdFile where [Volumes],
        /// Volumes: the I/O scheduler of a server.
        scheduler: SchedulerFile where [Volumes],
        /// Volumes: garbage collection.
        collection: CollectionFile where [Volumes],
        /// Volumes: the software controller of vdc and rackblox-software.
        controller: ControllerFile where [Volumes],
        /// Volumes: heartbeats and leases.
        membership: MembershipFile where [Volumes],
        /// Volumes, SAN, devices and key-value stores: the block load.
        io: IoFile where [Volumes, San, Devices, KeyValue; without lsm],
        /// SAN: key-value stores in place of `io`.
        lsm: LsmFile where [San],
        /// SAN: the drives of every target.
        drives: DrivesFile where [San],
        /// SAN: routing of I/Os.
        routing: RoutingFile where [San],
        /// SAN: bandwidth for responses that their requests reserve on their way.
        reservation: ReservationFile where [San],
        /// SAN: queues of every port.
        scheduling: SchedulingFile where [San],
        /// SAN: Gimbal, the scheduler of a target's drives.
        gimbal: GimbalFile where [San],
        /// SAN: checks of the results.
        check: CheckFile where [San],
        /// SAN: software at both ends of a session.
        host: HostFile where [San],
        /// SAN: command processing of targets.
        target: TargetFile where [San],
        /// SAN: transport and PDUs of sessions.
        wire: WireFile where [San],
        /// SAN: prices of parts.
        prices: PricesFile where [San],
        /// Wear levelling: the rack, its writes, and the policy of swaps.
        wear: WearFile where [Wear],
        /// Devices: the machine that contains them.
        machine: MachineFile where [Devices],
        /// Devices: the NIC's logic.
        nic: NicFile where [Devices; design.name = "s-direct" | "target-offload"],
        /// Devices: CPU times of the machine's software.
        software: SoftwareFile where [Devices; design.name = "linux" | "spdk"],
        /// Devices: the clients, and the network between.
        clients: ClientsFile where [Devices; was askers],
        /// Devices: the operation of each request of `io`.
        task: TaskFile where [Devices],
        /// Key-value: the JBOF, its clients, and the stored keys.
        store: StoreFile where [KeyValue],
        /// Key-value: RDMA adapters and the network between.
        rdma: RdmaFile where [KeyValue; was verbs],
        /// Key-value: the transport of operations on the JBOF's memory.
        carrier: CarrierFile where [KeyValue; design.name = "scalio"],
        /// Key-value: the JBOF's cores.
        cores: CoresFile where [KeyValue],
        /// Key-value: parameters of Scalio.
        scalio: ScalioFile where [KeyValue; design.name = "scalio"],
        /// Key-value: parameters of LEED.
        leed: LeedFile where [KeyValue; design.name = "leed" | "leed-ditto"],
        /// Key-value: parameters of Ditto.
        ditto: DittoFile where [KeyValue; design.name = "leed-ditto"],
        /// Length of the run, and its measured part.
        run: RunFile where [Messages, Volumes, San, Devices, KeyValue],
        /// What is recorded of a run beside its requests.
        record: RecordFile,
        /// Faults, with their times.
        fault: Vec<FaultFile> where [Messages, Volumes, San, KeyValue],
        /// Volumes: exchanges of the data of two drives.
        swap: Vec<SwapFile> where [Volumes],
        /// What to vary: key paths with lists of values (their cross product), and `axis` for
        /// several keys at a time.
        sweep: SweepFile,
        /// Other values for some key paths at a given size of run; `sweep.KEY` replaces the values
        /// of an axis.
        scale: ScaleFile,
    }
}

table! {
    /// The network. Messages: nodes around one switch, given by `nodes`, `rate`, `propagation` and
    /// `transceiver`. SAN: a topology, given by `kind` and all other keys.
    FabricFile {
        /// Messages: how many nodes the switch has; ids run from 0. SAN: how many adapters.
        nodes: u32 [2 to 65_536] where [needed; kind = "daisy-chain" | "ring" | "dual-ring" | "full-mesh"],
        /// Line rate of every link, above 64b/66b coding. SAN: of every cable, 100 Gb/s when not
        /// given (paper, 3.1).
        rate: Quantity<Rate> ["1Mbps" to "100Tbps"] where [needed Messages; kind != "custom"],
        /// Light in the fibre between a node and the switch (EDM, Table 1: 10 ns).
        propagation: Quantity<Span> [to "1s"] where [Messages] = Span::ns(10),
        /// PMA, PMD and transceiver, each crossing (EDM, Table 1: 19 ns). A link has two crossings.
        transceiver: Quantity<Span> [to "1s"] where [Messages] = Span::ns(19),
        /// SAN: topology.
        kind: FabricKindName where [San; needed],
        /// SAN: clients.
        hosts: u32 [1 to 65_536] where [San; kind != "custom"; needed],
        /// SAN: storage nodes. Required in a switched fabric; one an adapter when not given in a
        /// switchless one.
        targets: u32 [1 to 65_536] where [San; kind != "custom"],
        /// SAN: placement of endpoints on leaf switches, and of hosts on adapters.
        placement: PlacementName where [San; kind != "custom"] = Placement::Spread,
        /// Adapters in each dimension.
        dimensions: Vec<u32> [length 1 to 16] where [San; kind = "mesh" | "torus"; needed],
        /// Number of switches.
        switches: u32 [2 to 1_024] where [San; kind = "redundant-switches"; needed],
        /// Switches that endpoints are cabled to.
        leaves: u32 [1 to 65_536] where [San; kind = "leaf-spine"; needed],
        /// Switches that leaves are cabled to.
        spines: u32 [1 to 65_536] where [San; kind = "leaf-spine"; needed],
        /// Endpoints of a leaf at most.
        endpoints_per_leaf: u32 [1 to 65_536] where [San; kind = "leaf-spine"; needed],
        /// Ports of a switch that the tree uses, even.
        radix: u32 [2 to 65_536] where [San; kind = "fat-tree"; needed],
        /// Layers of switches.
        layers: u32 [1 to 16] where [San; kind = "fat-tree"; needed],
        /// Adapters of a group.
        routers: u32 [1 to 65_536] where [San; kind = "dragonfly"; needed],
        /// Ports of an adapter for other groups.
        global_cables: u32 [1 to 65_536] where [San; kind = "dragonfly"; needed],
        /// Number of groups.
        groups: u32 [2 to 65_536] where [San; kind = "dragonfly"; needed],
        /// The file of the graph (docs/reference/topologies.md).
        file: String where [San; kind = "custom"; needed],
        /// SHA-256 of the graph, in hex. Another graph is an error.
        file_digest: String where [San; kind = "custom"],
        /// SAN: ports of a switch, its radix. As many as the fullest one uses when not given.
        switch_ports: u32 [1 to 65_536] where [San; kind != "custom"],
        /// SAN: ports of an adapter, its radix. As many as the fullest one uses when not given.
        adapter_ports: u32 [1 to 65_536] where [San; kind != "custom"],
        /// SAN: ports of a host, and of a target in a switched fabric. As many as the fullest one
        /// uses when not given.
        endpoint_ports: u32 [1 to 65_536] where [San; kind != "custom"],
        /// SAN, switchless: rate between a target and its adapter. By default the sum of the
        /// adapter's cables to other adapters: a node then has the same bandwidth in both
        /// architectures (paper, 5.1).
        board_rate: Quantity<Rate> ["1Mbps" to "100Tbps"]
            where [San; kind = "daisy-chain" | "ring" | "dual-ring" | "full-mesh" | "mesh" | "torus" | "dragonfly"],
        /// SAN: number of cables of `rate` that each link teams into one pipe (paper, 3.1);
        /// `endpoint_cables` gives a bundle of separate cables instead.
        trunk: u32 [1 to 1_024] where [San; kind != "custom"] = 1,
        /// SAN: parallel links between neighbours of the fabric.
        fabric_cables: u32 [1 to 1_024] where [San; kind != "custom"] = 1,
        /// SAN: parallel links from a host or target to its switch (to each of its switches) or
        /// adapter.
        endpoint_cables: u32 [1 to 1_024] where [San; kind != "custom"] = 1,
        /// SAN: length of the cables of hosts and targets. Ours: within a rack.
        endpoint_length: Quantity<Length> where [San; kind != "custom"] = Length::m(2),
        /// SAN: length of cables between neighbours. Ours: within a rack.
        near_length: Quantity<Length> where [San; kind != "custom"] = Length::m(2),
        /// SAN: length of cables that close a ring or torus, or join groups. Ours.
        far_length: Quantity<Length> where [San; kind != "custom"] = Length::m(5),
        /// SAN: one pass of a packet through an adapter. Fitted to the calibration claims
        /// san.fig2c.hop.4k and san.fig2c.hop.256k alone: a hop adds 2.9 us and 3.1 us to a read,
        /// which passes it twice; twice this, a frame of 1,500 B and a command sent once more, and
        /// 2 m of cable there and back are 2.96 us.
        adapter_latency: Quantity<Span> [to "1s"] where [San] = Span::ns(1_400),
        /// SAN, switchless: from one frame that an adapter forwards to the next, at least, on all
        /// its ports together. The paper prints none; 8 to 20 million frames a second are usual,
        /// 125 ns to 50 ns. Frames wait in the adapter's memory, which is not bounded. Zero: as
        /// many as its links carry.
        adapter_gap: Quantity<Span> [to "1ms"] where [San] = Span::ZERO,
        /// SAN: one pass of a packet through a high-radix switch. Ours: data sheets of 100 GbE
        /// switches of the paper's generation give 0.4 us to 0.8 us from port to port.
        switch_latency: Quantity<Span> [to "1s"] where [San] = Span::ns(600),
        /// SAN, switchless: one crossing of PCIe between a target and its adapter (paper, 3.2).
        /// Fitted to the calibration claim san.fig2a.adapter alone: an adapter costs a read 3.6 us
        /// more than a switch, twice (1.4 us + this - 0.6 us).
        board_latency: Quantity<Span> [to "1s"] where [San] = Span::us(1),
        /// SAN, switchless: one crossing of PCIe between two cards of an adapter in transit: the
        /// paper builds adapters of three ports and more from several cards (3.2). It prints no
        /// number; 1 us to 3 us are plausible beside `board_latency`. Zero: one card has all ports.
        card_crossing: Quantity<Span> [to "1ms"] where [San] = Span::ZERO,
        /// SAN, switchless: cable ports of a card (paper, 3.2: BlueField-2, of two).
        card_ports: u32 [1 to 64] where [San] = 2,
        /// SAN: time from the failure or return of a link to its detection at both ends. Ours: a
        /// link is down when its PCS has lost the signal (IEEE 802.3, 49 and 91: tens of
        /// microseconds), and a driver polls that.
        detection: Quantity<Span> [to "1s"] where [San] = Span::us(100),
        /// SAN: every output queue; packets that do not fit are dropped. Ours: what a 100 GbE
        /// switch of the paper's generation (16 MiB for 32 ports) has a port.
        queue: Quantity<Bytes> where [San; wire.transport = "tcp" | "dctcp" | "unpaced"] = Bytes::kib(512),
        /// SAN: payload of the largest Ethernet frame. Ours: the standard one.
        mtu: Quantity<Bytes> ["576B" to "9KB"] where [San] = Bytes::new(1_500),
    }
}

table! {
    /// The memory behind every node.
    MemoryFile => Memory {
        /// From a request at the controller to its first byte. Zero measures the fabric alone.
        latency: Quantity<Span> [to "1s"] = Span::ZERO,
        /// All channels together.
        bandwidth: Limit<Quantity<Rate>> ["1Mbps" to "100Tbps"] = None,
        /// Whether a remote write ends when the target's memory has taken its data, as a local
        /// write does; when its last byte is at the memory controller otherwise. EDM's hosts send
        /// a write's data to the memory controller (EDM, 3.2.1).
        stores_writes: bool = true,
        /// Whether the data of a remote write are read from the source's memory. EDM has them in a
        /// data buffer (3.2.1); its published simulator reads memory while the write is announced,
        /// and before anything else in its rivals.
        fetches_writes: bool = false,
        /// Whether a remote read ends when the source's memory has taken its data, as in EDM's
        /// published simulator. It ends at the application otherwise (EDM, Table 1).
        stores_reads: bool = false,
    } as {
        dram: DramConfig { latency, bandwidth },
        remote: RemoteAccess { stores_writes, fetches_writes, stores_reads },
    }
}

table! {
    /// Sources, targets, sizes and arrivals of requests.
    WorkloadFile {
        /// Choice of targets. A trace has its own.
        pattern: PatternName where [arrivals != "trace"] = PatternName::AllToAll,
        /// Number of nodes, from 0, that send requests to the others.
        compute: u32 [from 1] where [pattern = "role-split"; needed],
        /// The only target.
        target: NodeNumber where [pattern = "incast"] = NodeId(0),
        /// Number of sources, from 0, without the target. All others when not given.
        sources: u32 [from 1] where [pattern = "incast"],
        /// Arrival process.
        arrivals: ArrivalsName = ArrivalsName::Poisson,
        /// Mean length of an on period.
        on: Quantity<Span> [above "0ns" to "24h"] where [arrivals = "on-off"; needed],
        /// Mean length of an off period.
        off: Quantity<Span> [to "24h"] where [arrivals = "on-off"; needed],
        /// Outstanding requests of each source.
        depth: u32 [1 to 1_048_576] where [arrivals = "closed"] = 1,
        /// Time from a completion to the next request of that slot.
        think: Quantity<Span> [to "24h"] where [arrivals = "closed"] = Span::ZERO,
        /// The CSV file of messages.
        file: String where [arrivals = "trace"; needed],
        /// SHA-256 of the messages, in hex. Another trace is an error.
        digest: String where [arrivals = "trace"],
        /// Treatment of messages that follow a later one.
        inversions: InversionsName where [arrivals = "trace"] = Inversions::Sort,
        /// Offered load as a fraction of the busiest link direction. Above 1 is allowed, with a
        /// warning.
        load: f64 [above 0.0 to 10.0] where [arrivals = "poisson" | "deterministic" | "on-off"; needed],
        /// What `load` counts.
        load_basis: LoadBasis where [arrivals = "poisson" | "deterministic" | "on-off"] = LoadBasis::Link,
        /// Share of requests for the source's own memory, which take the memory's time alone.
        local_fraction: f64 [0.0 to 1.0] where [arrivals = "closed"] = 0.0,
        /// Share of reads; the rest are writes.
        read_fraction: f64 [0.0 to 1.0] where [arrivals != "trace"; without mix] = 0.5,
        /// Size of every request: the size of a cache line, and of the paper's microbenchmarks,
        /// when not given (EDM, 4.3.1).
        #[schemars(extend("default" = "64B"))]
        size: SizeFile where [arrivals != "trace"; without mix],
        /// Classes of requests, in place of `read_fraction` and `size`.
        mix: Vec<ClassFile> [length from 1] where [arrivals != "trace"],
    }
}

table! {
    /// One class of requests.
    ClassFile {
        /// Operation.
        operation: OperationName where [needed],
        /// Its share; weights need not sum to 1.
        weight: f64 [from 0.0] = 1.0,
        /// How large: what is read, written, or answered to a read-modify-write.
        size: SizeFile where [needed],
    }
}

/// How large requests are: one size, or a distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SizeFile {
    /// All the same.
    Constant(Quantity<Bytes>),
    /// A distribution.
    Distribution(DistributionFile),
}

table! {
    /// A size distribution: exactly one of `profile`, `cdf`, `table` and `points`.
    DistributionFile {
        /// A distribution that is shipped: one of EDM's five applications.
        profile: String,
        /// A file with a cumulative distribution: lines `size 1 probability`, linear in between.
        cdf: String,
        /// Unit of the sizes in the file.
        unit: Quantity<Bytes> [above "0B"] where [given cdf] = Bytes::new(1),
        /// Sizes with weights, `[["64B", 3], ["4KiB", 1]]`.
        table: Vec<(Quantity<Bytes>, f64)> [length from 1],
        /// A cumulative distribution in place: `[bytes, probability]`, neither falling, the last
        /// probability 1.
        points: Vec<(f64, f64)> [length from 1],
        /// Where the points come from.
        name: String where [given points],
    }
}

table! {
    /// Ordinary Ethernet frames between random nodes, on the links that memory traffic uses;
    /// `design.edm.preemption` says how they share a link.
    BackgroundFile => Background {
        /// Frames that a switch port can hold for its downlink; packets that do not fit are
        /// dropped. No standard value.
        egress_queue: Quantity<Bytes> = Bytes::kib(1 << 10),
        /// What every node sends.
        stream: Vec<BackgroundStreamFile> [length from 1] where [needed] => Vec::new(),
    } as { egress_queue, streams: stream }
}

table! {
    /// One kind of ordinary traffic, which every node sends to uniformly chosen others.
    BackgroundStreamFile => BackgroundStream {
        /// Its name in metrics, `metrics.background_NAME_latency_mean_ns`: letters, digits, `-` and
        /// `_`, and no other stream's.
        name: String [length from 1] where [needed] => String::new(),
        /// Every frame, from the destination address to the check sequence: 64 to 9,018 bytes.
        frame: Quantity<Bytes> ["64B" to "9018B"] = Bytes::new(1_518),
        /// Share of every node's uplink that it offers, preamble and gap included.
        load: f64 [above 0.0 to 1.0] where [needed] => 1.0,
        /// Frames that are handed to the MAC together, for one target; bursts come as a Poisson
        /// process.
        burst_frames: u32 [1 to 1_000] = 1,
    }
}

table! {
    /// What is recorded of a run beside its requests. It changes no result.
    RecordFile {
        /// Interval of virtual time at which the state of the run is sampled: queues, throughput,
        /// free blocks, credits (docs/reference/series.md). Nothing is sampled when not given. With
        /// the design wear-levelling, whole days.
        series: Quantity<Span> ["1ns" to "4800h"],
    }
}

/// The share of a run that is not measured by default.
const WARM_UP_SHARE: u64 = 10;

table! {
    /// Length of the run, and its measured part. At least one of `requests` and `duration`, except
    /// with a trace.
    RunFile => RunLimits {
        /// The workload ends after this many requests over all nodes.
        requests: u64 [1 to 1_000_000_000_000_u64],
        /// The workload ends after this time.
        duration: Quantity<Span> [above "0ns" to "24h"],
        /// Requests that start earlier are simulated but not measured. `"auto"` simulates the run
        /// twice, and finds the transient of the first one by MSER.
        warm_up: Choice<Quantity<Span>> [to "24h"] where [without warm_up_requests],
        /// The first so many requests are not measured. A tenth of `requests`, or of `duration`, by
        /// default.
        warm_up_requests: u64,
        /// Longest wait for unfinished requests after the last arrival.
        drain_limit: Quantity<Span> [to "24h"] = Span::ms(100),
    } as {
        requests,
        duration,
        run: Run { warm_up: unmeasured, drain_limit },
    } from {
        let unmeasured = match (warm_up, warm_up_requests, requests, duration) {
            (Some(Choice::Given(span)), ..) => WarmUp::Time(span),
            (Some(Choice::Auto), ..) => WarmUp::Auto,
            (None, Some(count), ..) => WarmUp::Requests(count),
            (None, None, Some(requests), _) => WarmUp::Requests(requests / WARM_UP_SHARE),
            (None, None, None, Some(duration)) => WarmUp::Time(duration / WARM_UP_SHARE),
            // A trace without an end of its own.
            (None, None, None, None) => WarmUp::Requests(0),
        };
    } to {
        let (warm_up, warm_up_requests) = match unmeasured {
            WarmUp::Time(span) => (Some(Choice::Given(span)), None),
            WarmUp::Requests(count) => (None, Some(count)),
            WarmUp::Auto => (Some(Choice::Auto), None),
        };
    }
}

table! {
    /// A fault or a repair.
    FaultFile {
        /// Time from the start of the run.
        at: Quantity<Time> where [needed],
        /// Kind of fault.
        kind: FaultName where [needed],
        /// The names of the link's two ends; all links between them.
        ends: Vec<String> [length 2 to 2] where [San; kind = "link-down" | "link-up"; needed],
        /// The name of the adapter, switch or target.
        vertex: String where [
            San; kind = "adapter-down" | "adapter-up" | "switch-down" | "switch-up" | "node-down" | "node-up"; needed
        ],
        /// The drive, counted from 0 over all targets.
        drive: u32 where [San; kind = "drive-down" | "drive-up"; needed],
        /// The node, or the node at the end of the link: a storage server with volumes, a client of
        /// a key-value store, whose JBOF has the number after the last client's.
        node: NodeNumber where [Messages, Volumes, KeyValue; kind != "switch-down" | "switch-up"; needed],
        /// The switch, or the switch at the end of the link: 0, or 1 for the backup.
        switch: u32 [to 1] where [Messages, Volumes; kind != "node-down" | "node-up"] = 0,
    }
}

table! {
    /// What to vary: every key path here is an axis with its list of values.
    #[schemars(extend("additionalProperties" = true))]
    SweepFile {
        /// Axes that change several keys together.
        axis: Vec<AxisFile>,
        /// `"workload.load" = [0.2, 0.8]`, or `workload.load = [0.2, 0.8]`.
        #[serde(flatten)]
        paths: BTreeMap<String, serde_json::Value>,
    }
}

table! {
    /// An axis whose points change several keys together.
    AxisFile {
        /// The axis' name in labels and figures.
        name: String where [needed],
        /// Its points.
        points: Vec<AxisPointFile> [length from 1] where [needed],
    }
}

table! {
    /// One point of an axis.
    AxisPointFile {
        /// The point's name in labels and figures.
        label: String where [needed],
        /// Key paths and their values at this point.
        set: BTreeMap<String, serde_json::Value> where [needed],
    }
}

table! {
    /// Key paths and their values at a given size of run.
    ScaleFile {
        /// Minutes on a laptop: shows the shape.
        quick: BTreeMap<String, serde_json::Value>,
        /// The size at which claims are judged. Those of `quick` when not given.
        judged: BTreeMap<String, serde_json::Value>,
        /// What the paper ran.
        paper: BTreeMap<String, serde_json::Value>,
    }
}

/// A set of words, each of which converts to and from its written form by serde. `Name is Meaning`:
/// what a key with such a word is in a plan, given by each word (`Word is Meaning::Other`).
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $( $(#[$variant_meta:meta])* $variant:ident, )* }) => {
        $crate::file::word_list! { $(#[$meta])* $name { $( $(#[$variant_meta])* $variant, )* } }
        $crate::quantity::plain!($name);
    };
    ($(#[$meta:meta])* $name:ident is $meaning:ty { $(
        $(#[$variant_meta:meta])* $variant:ident is $value:path,
    )* }) => {
        $crate::file::word_list! { $(#[$meta])* $name { $( $(#[$variant_meta])* $variant, )* } }
        impl $crate::quantity::Plain for $name {
            type Value = $meaning;
            fn plain(self) -> $meaning {
                match self { $( $name::$variant => $value, )* }
            }
            fn written(value: $meaning) -> $name {
                match value { $( $value => $name::$variant, )* }
            }
        }
    };
}
pub(crate) use words;

/// The words alone.
macro_rules! word_list {
    ($(#[$meta:meta])* $name:ident { $( $(#[$variant_meta:meta])* $variant:ident, )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $( $(#[$variant_meta])* $variant, )* }
        #[allow(dead_code, reason = "not every set of words is named in a message")]
        impl $name {
            /// Every word.
            pub const ALL: &[$name] = &[$( $name::$variant, )*];
            /// The word as written in a file.
            pub fn word(self) -> String {
                $crate::file::word_of(&self)
            }
        }
    };
}
pub(crate) use word_list;

/// The written form of a unit variant.
pub(crate) fn word_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => panic!("a word is written as a string, not as {other:?}"),
    }
}

words! {
    /// Choice of targets.
    PatternName {
        /// Every node sends requests to all others, uniformly.
        AllToAll,
        /// The first `compute` nodes send requests to the others, uniformly.
        RoleSplit,
        /// `sources` nodes send requests to `target`.
        Incast,
        /// Each node sends requests to one fixed node, and receives those of one.
        Permutation,
    }
}

words! {
    /// Arrival process.
    ArrivalsName {
        /// Open loop, independent exponential gaps.
        Poisson,
        /// Open loop, equal gaps.
        Deterministic,
        /// Open loop, Poisson in exponential on periods, silent in off periods.
        OnOff,
        /// Closed loop: `depth` outstanding requests of every source.
        Closed,
        /// The times of a trace.
        Trace,
    }
}

words! {
    /// What a load is a share of.
    LoadBasis {
        /// Every byte on the wire, control messages, headers and gaps included, as a lone request
        /// of its class costs it in this design.
        Link,
        /// Payload alone: the same requests a second for every design.
        Payload,
    }
}

words! {
    /// Operation of a request.
    OperationName is Operation {
        /// Bytes come from the target.
        Read is Operation::Read,
        /// Bytes go to the target.
        Write is Operation::Write,
        /// An atomic read-modify-write of a word at the target.
        ReadModifyWrite is Operation::ReadModifyWrite,
    }
}

words! {
    /// Kind of fault.
    FaultName {
        /// The link of `node` to `switch` stops carrying anything.
        LinkDown,
        /// The switch fails.
        SwitchDown,
        /// The node fails.
        NodeDown,
        /// The link of `node` to `switch` damages what it carries until it is noticed and disabled.
        LinkCorrupt,
        /// With volumes: the link of storage server `node` carries again.
        LinkUp,
        /// With volumes: the switch returns with empty tables.
        SwitchUp,
        /// With volumes: storage server `node` returns with its old data. SAN: a target returns.
        /// Key-value: a client continues, or the JBOF restarts.
        NodeUp,
        /// SAN: an adapter stops forwarding.
        AdapterDown,
        /// SAN: an adapter forwards again, with empty tables.
        AdapterUp,
        /// SAN: a drive stops answering.
        DriveDown,
        /// SAN: a drive answers again.
        DriveUp,
    }
}
