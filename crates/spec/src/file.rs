//! The written form of an experiment: what may stand in a file, as plain data. It is the source of the JSON Schema against which
//! every file is checked, and the form in which a resolved plan is printed. Defaults of the designs are in
//! [`crate::design_file`], all others in [`crate::resolve`].

use crate::blox::file::{
    CollectionFile, ControllerFile, FitFile, FlashFile, InversionsName, IoFile, MembershipFile, RackFile,
    SchedulerFile, SwapFile, VssdFile,
};
use crate::design_file::DesignFile;
use crate::quantity::{Choice, Limit, Quantity};
use crate::san::fabric_file::{DrivesFile, FabricKindName, PlacementName, PricesFile};
use crate::san::file::{
    CheckFile, GimbalFile, HostFile, ReservationFile, RoutingFile, SchedulingFile, TargetFile, WireFile,
};
use crate::san::lsm::LsmFile;
use crate::scalio::file::{CarrierFile, CoresFile, DittoFile, LeedFile, ScalioFile, StoreFile, VerbsFile};
use crate::sdirect::file::{AskersFile, MachineFile, NicFile, SoftwareFile, TaskFile};
use crate::wear::file::WearFile;
use base::{Bytes, Length, Operation, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A table of which every key may be left out.
macro_rules! written {
    ($(#[$meta:meta])* $name:ident { $( $(#[$field_meta:meta])* $field:ident : $type:ty, )* }) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        $(#[$meta])*
        pub struct $name {
            $( $(#[$field_meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>, )*
        }
    };
}
pub(crate) use written;

/// A table whose keys all have defaults that depend on nothing.
macro_rules! defaults_table {
    ($(#[$meta:meta])* $name:ident => $config:ident {
        $( $(#[$field_meta:meta])* $field:ident : $type:ty = $default:expr, )*
    } $(beside {
        $( $(#[$beside_meta:meta])* $beside:ident : $beside_type:ty, )*
    })?) => {
        $crate::file::written! {
            $(#[$meta])*
            $name { $(
                $(#[$field_meta])*
                #[schemars(extend("default" = <$type as $crate::quantity::Plain>::written($default)))]
                $field: $type,
            )* $($(
                $(#[$beside_meta])*
                $beside: $beside_type,
            )*)? }
        }
        impl $name {
            /// What is given, and defaults for the rest.
            pub(crate) fn resolve(&self) -> $config {
                $config { $( $field: self.$field.map_or($default, $crate::quantity::Plain::plain), )* }
            }
            /// The table that says all of `config`.
            pub(crate) fn of(config: &$config) -> $name {
                $name {
                    $( $field: Some($crate::quantity::Plain::written(config.$field)), )*
                    $( $( $beside: None, )* )?
                }
            }
        }
    };
}
pub(crate) use defaults_table;

written! {
    /// An experiment: a rack, a design, a workload, how long to run, and what to vary.
    #[schemars(title = "Rackweave experiment", extend("required" = ["title", "design"]))]
    ExperimentFile {
        /// What the experiment is about, in a few words.
        #[schemars(length(min = 1))]
        title: String,
        /// Decides every random draw: same file, same seed, same bytes.
        #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64), extend("default" = 1))]
        seed: u64,
        /// In place of `seed`: several, each of which makes a run of its own; results are over all of them.
        #[schemars(length(min = 1, max = 10_000), inner(range(min = 0, max = 9_223_372_036_854_775_807_u64)))]
        seeds: Vec<u64>,
        /// The folder that names of files are relative to, itself relative to the folder of this file. That folder when not given.
        #[schemars(length(min = 1))]
        files: String,
        /// The design: who moves the messages, or serves the volumes.
        design: DesignFile,
        /// The network: of messages, nodes around one switch (two with EDM's `redundant`); of a SAN, a topology. Required with both.
        fabric: FabricFile,
        /// Messages: the memory behind every node.
        memory: MemoryFile,
        /// Messages: who asks whom for how much, and when. Required there.
        workload: WorkloadFile,
        /// Messages: ordinary Ethernet traffic that shares the links; with design edm only.
        background: BackgroundFile,
        /// Volumes: servers, clients, switch and the networks around them.
        rack: RackFile,
        /// Volumes, SAN, devices and pairs: the drives.
        flash: FlashFile,
        /// Where the numbers of `flash` are from.
        fit: FitFile,
        /// Volumes: how drives are divided.
        vssd: VssdFile,
        /// Volumes: in which order a server hands requests to a drive.
        scheduler: SchedulerFile,
        /// Volumes: when garbage is collected.
        collection: CollectionFile,
        /// Volumes: the software controller of vdc and rackblox-software.
        controller: ControllerFile,
        /// Volumes: heartbeats and leases.
        membership: MembershipFile,
        /// Volumes, SAN, devices and pairs: who asks for what, and when.
        io: IoFile,
        /// SAN: key-value stores in place of `io`.
        lsm: LsmFile,
        /// SAN: the drives of every target.
        drives: DrivesFile,
        /// SAN: which way I/Os take.
        routing: RoutingFile,
        /// SAN: bandwidth for answers that is booked when their request passes.
        reservation: ReservationFile,
        /// SAN: queues of every port.
        scheduling: SchedulingFile,
        /// SAN: how a target serves the I/Os of its drives.
        gimbal: GimbalFile,
        /// SAN: what is checked at the end.
        check: CheckFile,
        /// SAN: software at both ends of a session.
        host: HostFile,
        /// SAN: how targets serve commands.
        target: TargetFile,
        /// SAN: how sessions use the wire.
        wire: WireFile,
        /// SAN: what parts cost.
        prices: PricesFile,
        /// Wear levelling: the rack, what wears it, and who swaps.
        wear: WearFile,
        /// Devices: the machine that they are in.
        machine: MachineFile,
        /// Devices: the NIC's logic, with the designs s-direct and target-offload.
        nic: NicFile,
        /// Devices: what the machine's software costs, with the designs linux and spdk.
        software: SoftwareFile,
        /// Devices: who asks, and the network between.
        askers: AskersFile,
        /// Devices: what each request of `io` is.
        task: TaskFile,
        /// Pairs: the box of SSDs, its clients, and what is stored.
        store: StoreFile,
        /// Pairs: adapters and the network between.
        verbs: VerbsFile,
        /// Pairs: what carries operations on the box's memory, with the design scalio.
        carrier: CarrierFile,
        /// Pairs: the box's cores.
        cores: CoresFile,
        /// Pairs: Scalio's own, with the design scalio.
        scalio: ScalioFile,
        /// Pairs: LEED's own, with the designs leed and leed-ditto.
        leed: LeedFile,
        /// Pairs: Ditto's own, with the design leed-ditto.
        ditto: DittoFile,
        /// How long to run and what to measure.
        run: RunFile,
        /// What breaks, and when.
        fault: Vec<FaultFile>,
        /// Volumes: drives that exchange what they hold, and when.
        swap: Vec<SwapFile>,
        /// What to vary: key paths with lists of values (their cross product), and `axis` for several keys at a time.
        sweep: SweepFile,
        /// Other values for some key paths at a given size of run; `sweep.KEY` replaces the values of an axis.
        scale: ScaleFile,
    }
}

written! {
    /// The network. Messages: nodes around one switch, given by `nodes`, `rate`, `propagation` and `transceiver`. SAN: a topology, given by `kind` and
    /// all other keys.
    FabricFile {
        /// Messages: how many nodes the switch has; ids run from 0. Required there. SAN: how many adapters, with daisy-chain, ring, dual-ring and full-mesh.
        #[schemars(range(min = 2, max = 65_536))]
        nodes: u32,
        /// Line rate of every link, above 64b/66b coding. Messages: required. SAN: of every cable, 100 Gb/s when not given (paper, 3.1).
        rate: Quantity<Rate>,
        /// Light in the fibre between a node and the switch (EDM, Table 1: 10 ns).
        #[schemars(extend("default" = "10ns"))]
        propagation: Quantity<Span>,
        /// PMA, PMD and transceiver, each crossing (EDM, Table 1: 19 ns). A link has two crossings.
        #[schemars(extend("default" = "19ns"))]
        transceiver: Quantity<Span>,
        /// SAN: what joins hosts and targets. Required there.
        kind: FabricKindName,
        /// SAN: clients. Required, except with `custom`.
        #[schemars(range(min = 1, max = 65_536))]
        hosts: u32,
        /// SAN: storage nodes. Required in a switched fabric; one an adapter when not given in a switchless one.
        #[schemars(range(min = 1, max = 65_536))]
        targets: u32,
        /// SAN: how endpoints are spread over leaf switches, and hosts over adapters.
        #[schemars(extend("default" = "spread"))]
        placement: PlacementName,
        /// With mesh and torus: adapters in each dimension.
        #[schemars(length(min = 1, max = 16))]
        dimensions: Vec<u32>,
        /// With redundant-switches: how many.
        #[schemars(range(min = 2, max = 1_024))]
        switches: u32,
        /// With leaf-spine: switches that endpoints are cabled to.
        #[schemars(range(min = 1, max = 65_536))]
        leaves: u32,
        /// With leaf-spine: switches that leaves are cabled to.
        #[schemars(range(min = 1, max = 65_536))]
        spines: u32,
        /// With leaf-spine: how many endpoints a leaf has room for.
        #[schemars(range(min = 1, max = 65_536))]
        endpoints_per_leaf: u32,
        /// With fat-tree: ports of a switch that the tree uses, even.
        #[schemars(range(min = 2, max = 65_536))]
        radix: u32,
        /// With fat-tree: layers of switches.
        #[schemars(range(min = 1, max = 16))]
        layers: u32,
        /// With dragonfly: adapters a group.
        #[schemars(range(min = 1, max = 65_536))]
        routers: u32,
        /// With dragonfly: ports of an adapter for other groups.
        #[schemars(range(min = 1, max = 65_536))]
        global_cables: u32,
        /// With dragonfly: how many groups.
        #[schemars(range(min = 2, max = 65_536))]
        groups: u32,
        /// With custom: the file of the graph (docs/reference/topologies.md).
        file: String,
        /// With custom: SHA-256 of the graph, hex, when it has to be this very graph.
        file_digest: String,
        /// SAN: ports of a switch, its radix. As many as the fullest one uses when not given.
        #[schemars(range(min = 1, max = 65_536))]
        switch_ports: u32,
        /// SAN: ports of an adapter, its radix. As many as the fullest one uses when not given.
        #[schemars(range(min = 1, max = 65_536))]
        adapter_ports: u32,
        /// SAN: ports of a host, and of a target in a switched fabric. As many as the fullest one uses when not given.
        #[schemars(range(min = 1, max = 65_536))]
        endpoint_ports: u32,
        /// SAN, switchless: between a target and its adapter. As much as the adapter's cables to other adapters carry together when not given, so that a node has the
        /// same bandwidth in both architectures (paper, 5.1).
        board_rate: Quantity<Rate>,
        /// SAN: every link stands for so many cables of `rate`, teamed into one pipe (paper, 3.1); `endpoint_cables` gives a bundle of separate cables instead.
        #[schemars(range(min = 1, max = 1_024), extend("default" = 1))]
        trunk: u32,
        /// SAN: parallel links between neighbours of the fabric.
        #[schemars(range(min = 1, max = 1_024), extend("default" = 1))]
        fabric_cables: u32,
        /// SAN: parallel links from a host or target to its switch (to each of its switches) or adapter.
        #[schemars(range(min = 1, max = 1_024), extend("default" = 1))]
        endpoint_cables: u32,
        /// SAN: of the cables of hosts and targets. Ours: within a rack.
        #[schemars(extend("default" = "2m"))]
        endpoint_length: Quantity<Length>,
        /// SAN: of cables between neighbours. Ours: within a rack.
        #[schemars(extend("default" = "2m"))]
        near_length: Quantity<Length>,
        /// SAN: of cables that lead back round a ring or torus, or between groups. Ours.
        #[schemars(extend("default" = "5m"))]
        far_length: Quantity<Length>,
        /// SAN: one pass of a packet through an adapter. Calibrated: paper, Figure 2c, where a hop adds 2.9 us and 3.1 us to a read, which passes it twice.
        #[schemars(extend("default" = "1400ns"))]
        adapter_latency: Quantity<Span>,
        /// SAN: one pass of a packet through a switch. Ours, from data sheets of 100 GbE switches.
        #[schemars(extend("default" = "600ns"))]
        switch_latency: Quantity<Span>,
        /// SAN, switchless: one crossing of PCIe between a target and its adapter. Calibrated: paper, Figure 2a, where an adapter costs a read 3.6 us more than a switch.
        #[schemars(extend("default" = "1us"))]
        board_latency: Quantity<Span>,
        /// SAN: from the failure or return of a link until the parts at its ends notice. Ours.
        #[schemars(extend("default" = "100us"))]
        detection: Quantity<Span>,
        /// SAN: every output queue; what does not fit is dropped. Ours.
        #[schemars(extend("default" = "512KiB"))]
        queue: Quantity<Bytes>,
        /// SAN: payload of the largest Ethernet frame. Ours: the standard one.
        #[schemars(extend("default" = "1500B"))]
        mtu: Quantity<Bytes>,
    }
}

written! {
    /// The memory behind every node.
    MemoryFile {
        /// From a request at the controller to its first byte. Zero measures the fabric alone.
        #[schemars(extend("default" = "0ns"))]
        latency: Quantity<Span>,
        /// All channels together.
        #[schemars(extend("default" = "unlimited"))]
        bandwidth: Limit<Quantity<Rate>>,
    }
}

written! {
    /// Who asks whom for how much, and when.
    WorkloadFile {
        /// Who asks whom. Not with a trace, which says it itself.
        #[schemars(extend("default" = "all-to-all"))]
        pattern: PatternName,
        /// With `role-split`: how many nodes, from 0, ask the others.
        #[schemars(range(min = 1))]
        compute: u32,
        /// With `incast`: the node that is asked.
        #[schemars(extend("default" = 0))]
        target: u32,
        /// With `incast`: how many nodes ask, from 0, the target left out. All others when not given.
        #[schemars(range(min = 1))]
        sources: u32,
        /// When requests come.
        #[schemars(extend("default" = "poisson"))]
        arrivals: ArrivalsName,
        /// With `on-off`: mean length of an on period.
        on: Quantity<Span>,
        /// With `on-off`: mean length of an off period.
        off: Quantity<Span>,
        /// With `closed`: requests that each asking node keeps outstanding.
        #[schemars(range(min = 1, max = 1_048_576), extend("default" = 1))]
        depth: u32,
        /// With `closed`: from an answer to the next request of that slot.
        #[schemars(extend("default" = "0ns"))]
        think: Quantity<Span>,
        /// With `trace`: the CSV file of messages.
        file: String,
        /// With `trace`: SHA-256 of the messages, in hex, when it has to be this very trace.
        digest: String,
        /// With `trace`: what becomes of messages that come behind a later one.
        #[schemars(extend("default" = "sort"))]
        inversions: InversionsName,
        /// Open loop: offered load as a fraction of the busiest link direction. Above 1 is allowed, with a warning.
        #[schemars(range(max = 10.0), extend("exclusiveMinimum" = 0.0))]
        load: f64,
        /// What `load` counts.
        #[schemars(extend("default" = "link"))]
        load_basis: LoadBasis,
        /// Share of requests for the asking node's own memory, which take the memory's time alone.
        #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.0))]
        local_fraction: f64,
        /// Share of reads; the rest are writes. Not together with `mix`.
        #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.5))]
        read_fraction: f64,
        /// Size of every request. Not together with `mix`.
        #[schemars(extend("default" = "64B"))]
        size: SizeFile,
        /// Classes of requests, in place of `read_fraction` and `size`.
        #[schemars(length(min = 1))]
        mix: Vec<ClassFile>,
    }
}

written! {
    /// One class of requests.
    #[schemars(extend("required" = ["operation", "size"]))]
    ClassFile {
        /// What it asks.
        operation: OperationName,
        /// Its share; weights need not sum to 1.
        #[schemars(range(min = 0.0), extend("default" = 1.0))]
        weight: f64,
        /// How large: what is read, written, or answered to a read-modify-write.
        size: SizeFile,
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

written! {
    /// A size distribution: exactly one of `profile`, `cdf`, `table` and `points`.
    DistributionFile {
        /// A distribution that is shipped: one of EDM's five applications.
        profile: String,
        /// A file with a cumulative distribution: lines `size 1 probability`, linear in between.
        cdf: String,
        /// With `cdf`: what a size of 1 in the file stands for.
        #[schemars(extend("default" = "1B"))]
        unit: Quantity<Bytes>,
        /// Sizes with weights, `[["64B", 3], ["4KiB", 1]]`.
        #[schemars(length(min = 1))]
        table: Vec<(Quantity<Bytes>, f64)>,
        /// A cumulative distribution in place: `[bytes, probability]`, neither falling, the last probability 1.
        #[schemars(length(min = 1))]
        points: Vec<(f64, f64)>,
        /// With `points`: where they come from.
        name: String,
    }
}

written! {
    /// Ordinary Ethernet frames between random nodes, on the links that memory traffic uses; with design edm only, whose `preemption`
    /// says how they share a link.
    #[schemars(extend("required" = ["stream"]))]
    BackgroundFile {
        /// Frames that a switch port can hold for its downlink; what does not fit is dropped. No standard value.
        #[schemars(extend("default" = "1MiB"))]
        egress_queue: Quantity<Bytes>,
        /// What every node sends.
        #[schemars(length(min = 1))]
        stream: Vec<BackgroundStreamFile>,
    }
}

written! {
    /// One kind of ordinary traffic, which every node sends to uniformly chosen others.
    #[schemars(extend("required" = ["name", "load"]))]
    BackgroundStreamFile {
        /// Its name in metrics, `extra.background_NAME_latency_mean_ns`: letters, digits, `-` and `_`, and no other stream's.
        #[schemars(length(min = 1))]
        name: String,
        /// Every frame, from the destination address to the check sequence: 64 to 9,018 bytes.
        #[schemars(extend("default" = "1518B"))]
        frame: Quantity<Bytes>,
        /// Share of every node's uplink that it offers, preamble and gap included.
        #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
        load: f64,
        /// Frames that are handed to the MAC together, for one target; bursts come as a Poisson process.
        #[schemars(range(min = 1, max = 1_000), extend("default" = 1))]
        burst_frames: u32,
    }
}

written! {
    /// How long to run and what to measure. At least one of `requests` and `duration`, except with a trace.
    RunFile {
        /// The workload ends after this many requests over all nodes.
        #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
        requests: u64,
        /// The workload ends after this time.
        duration: Quantity<Span>,
        /// Requests that start earlier are simulated but not measured. Not together with
        /// `warm_up_requests`. `"auto"`: the run is simulated twice, and the first one tells by MSER
        /// what of it is a transient.
        warm_up: Choice<Quantity<Span>>,
        /// The first so many requests are not measured. A tenth of `requests`, or of `duration`, by default.
        warm_up_requests: u64,
        /// How long after the last arrival unfinished requests are waited for.
        #[schemars(extend("default" = "100ms"))]
        drain_limit: Quantity<Span>,
    }
}

written! {
    /// Something that breaks.
    #[schemars(extend("required" = ["at", "kind"]))]
    FaultFile {
        /// When it breaks, from the start of the run.
        at: Quantity<Time>,
        /// What breaks.
        kind: FaultName,
        /// SAN: the names of the link's two ends; all links between them.
        #[schemars(length(min = 2, max = 2))]
        ends: Vec<String>,
        /// SAN: the name of the adapter, switch or target.
        vertex: String,
        /// SAN: the drive, counted from 0 over all targets.
        drive: u32,
        /// The node, or the node at the end of the link. Not with a SAN.
        node: u32,
        /// The switch, or the switch at the end of the link: 0, or 1 for the backup.
        #[schemars(range(max = 1), extend("default" = 0))]
        switch: u32,
    }
}

written! {
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

written! {
    /// An axis whose points change several keys together.
    #[schemars(extend("required" = ["name", "points"]))]
    AxisFile {
        /// The axis' name in labels and figures.
        name: String,
        /// Its points.
        #[schemars(length(min = 1))]
        points: Vec<AxisPointFile>,
    }
}

written! {
    /// One point of an axis.
    #[schemars(extend("required" = ["label", "set"]))]
    AxisPointFile {
        /// The point's name in labels and figures.
        label: String,
        /// Key paths and their values at this point.
        set: BTreeMap<String, serde_json::Value>,
    }
}

written! {
    /// Key paths and their values at a given size of run.
    ScaleFile {
        /// Minutes on a laptop: shows the shape.
        quick: BTreeMap<String, serde_json::Value>,
        /// What the paper ran.
        paper: BTreeMap<String, serde_json::Value>,
    }
}

/// A set of words. Each converts to and from its written form by serde.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $( $(#[$variant_meta:meta])* $variant:ident, )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $( $(#[$variant_meta])* $variant, )* }
        $crate::quantity::plain!($name);
        impl $name {
            /// The word as it stands in a file.
            #[allow(dead_code, reason = "not every set of words is named in a message")]
            pub fn word(self) -> String {
                $crate::file::word_of(&self)
            }
        }
    };
}
pub(crate) use words;

/// The written form of a unit variant.
pub(crate) fn word_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => panic!("a word is written as a string, not as {other:?}"),
    }
}

words! {
    /// Who asks whom.
    PatternName {
        /// Every node asks every other, uniformly.
        AllToAll,
        /// The first `compute` nodes ask the others, uniformly.
        RoleSplit,
        /// `sources` nodes ask `target`.
        Incast,
        /// Each node asks one fixed other and is asked by one.
        Permutation,
    }
}

words! {
    /// When requests come.
    ArrivalsName {
        /// Open loop, independent exponential gaps.
        Poisson,
        /// Open loop, equal gaps.
        Deterministic,
        /// Open loop, Poisson in exponential on periods, silent in off periods.
        OnOff,
        /// Closed loop: `depth` requests outstanding at every asking node.
        Closed,
        /// As a trace says.
        Trace,
    }
}

words! {
    /// What a load is a share of.
    LoadBasis {
        /// Every byte on the wire, control messages, headers and gaps included, as a lone request of its class costs it in this design.
        Link,
        /// Payload alone: the same requests a second for every design.
        Payload,
    }
}

words! {
    /// What a request asks.
    OperationName {
        /// Bytes come from the target.
        Read,
        /// Bytes go to the target.
        Write,
        /// An atomic read-modify-write of a word at the target.
        ReadModifyWrite,
    }
}

impl From<OperationName> for Operation {
    fn from(name: OperationName) -> Operation {
        match name {
            OperationName::Read => Operation::Read,
            OperationName::Write => Operation::Write,
            OperationName::ReadModifyWrite => Operation::ReadModifyWrite,
        }
    }
}

impl From<Operation> for OperationName {
    fn from(operation: Operation) -> OperationName {
        match operation {
            Operation::Read => OperationName::Read,
            Operation::Write => OperationName::Write,
            Operation::ReadModifyWrite => OperationName::ReadModifyWrite,
        }
    }
}

words! {
    /// What breaks.
    FaultName {
        /// The link of `node` to `switch` stops carrying anything.
        LinkDown,
        /// The switch stops.
        SwitchDown,
        /// The node stops answering.
        NodeDown,
        /// The link of `node` to `switch` damages what it carries until it is noticed and disabled.
        LinkCorrupt,
        /// With volumes: the link of storage server `node` carries again.
        LinkUp,
        /// With volumes: the switch comes back, its tables empty.
        SwitchUp,
        /// With volumes: storage server `node` comes back, its data as old as it left them. SAN: a target comes back. Pairs: a client goes on where it stopped, or the box restarts.
        NodeUp,
        /// SAN: an adapter stops passing anything.
        AdapterDown,
        /// SAN: an adapter passes packets again, its tables empty.
        AdapterUp,
        /// SAN: a drive stops answering.
        DriveDown,
        /// SAN: a drive answers again.
        DriveUp,
    }
}
