//! The written form of the room `blox`, and its defaults, each with its source. "Paper" is
//! RackBlox, SOSP'23.

use crate::blox::{
    Collection, Controller, Emulate, Flash, FlashState, Membership, OwnNumbers, PlannedSwap, Rack, Scheduler, Vssd,
};
use crate::file::words;
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Rate, Span, Time};
use hardware::ssd::{Steady, Suspension};
use workload::block_trace::{Beyond, Format, Inversions};

words! {
    /// The networks between clients and rack.
    NetworkName {
        /// No delay.
        None,
        /// The published trace's quantiles and correlation (breidys2/RackBlox): 142 us on average,
        /// P95 210 us.
        Fast,
        /// The same, scaled so that P95 is 0.5 ms: the paper's own distribution is not published.
        Medium,
        /// The same, scaled so that P95 is 1.0 ms.
        Slow,
    }
}

words! {
    /// What becomes of the delays of the networks between clients and rack.
    NetworkModeName {
        /// A delay is added to the latency of its request, with the predicted way back. No packet
        /// of a request waits for it (paper, 3.7).
        Label,
        /// Packets wait for it on both ways.
        Delay,
    }
}

words! {
    /// Scheduling of a switch port (paper, 4.5.2).
    NetworkSchedulingName {
        /// In order of arrival.
        Fifo,
        /// In order of arrival, each flow held to its rate.
        TokenBucket,
        /// Flows in turn, by bytes.
        FairQueue,
        /// Higher classes first.
        Priority,
    }
}

words! {
    /// Isolation of virtual drives (paper, 3.3).
    IsolationName {
        /// Each has channels of its own.
        Hardware,
        /// A group shares channels; each has blocks and a rate of its own.
        Software,
    }
}

words! {
    /// Model of a drive: geometry and times.
    PresetName {
        /// The programmable drive of the paper's testbed: MLC, 16 channels.
        PSsd,
        /// Intel's data-centre family, by its public unloaded latencies.
        IntelDc,
        /// Intel Optane 900P, by its public unloaded latencies; no garbage collection.
        Optane,
        /// Samsung 970 Pro.
        #[serde(rename = "970-pro")]
        Samsung970Pro,
        /// Samsung PM9A3.
        Pm9a3,
        /// Intel P3700.
        P3700,
        /// A plain TLC drive of PCIe generation 4.
        TlcGen4,
    }
}

words! {
    /// Choice of the block to collect.
    VictimName {
        /// The one with the fewest valid units.
        Greedy,
        /// The one with the best ratio of gain to cost, by age.
        CostBenefit,
        /// The one that was filled first.
        Fifo,
        /// Any with something to gain.
        Random,
    }
}

words! {
    /// State of the drives at the start of a run.
    FlashStateName {
        /// Nothing. Reads of pages that were never written need no flash.
        Clean,
        /// `vssd.data`, written once in order.
        Filled,
        /// That, overwritten at random until `vssd.used_before` of the free blocks is used up
        /// (paper, 4.1).
        Used,
        /// Written once in order and overwritten at random, with blocks kept free as `[collection]`
        /// does it in a run, until write amplification is steady.
        Fragmented,
    }
}

words! {
    /// The I/O scheduler of a virtual drive (paper, 4.5.1).
    PolicyName {
        /// In order of arrival.
        Fifo,
        /// Reads and writes apart, each with a deadline (Linux mq-deadline).
        Deadline,
        /// Reads and writes apart, throttled to latency targets (Linux Kyber, 4.20 and later).
        Kyber,
    }
}

words! {
    /// Coordination of garbage collection.
    CoordinationName {
        /// Nobody.
        Uncoordinated,
        /// The switch, which also redirects reads (paper, 3.5).
        Switch,
        /// A controller on a server; storage servers redirect reads (paper, 4.1: RackBlox in
        /// software).
        Controller,
    }
}

table! {
    /// Servers, clients, switch and networks. With the designs rackblox, rackblox-software and vdc.
    RackFile => Rack {
        /// Storage servers (paper, 3.7: five machines, one of them the clients').
        servers: u32 [2 to 64] = 4,
        /// Drives of each (paper, 3.7: one).
        ssds: u32 [1 to 16] = 1,
        /// Clients, each behind a network path of its own.
        clients: u32 [1 to 1_024] = 4,
        /// Line rate of every link (paper, 3.7: 50 Gb/s).
        rate: Quantity<Rate> ["1Mbps" to "100Tbps"] = Rate::gbps(50),
        /// Light in the fibre of every link in the rack: 2 m.
        propagation: Quantity<Span> [to "1s"] = Span::ns(10),
        /// Host software a packet at clients and servers. Ours: a microsecond, as is usual for
        /// poll-mode drivers.
        host: Quantity<Span> [to "1s"] = Span::us(1),
        /// The switch, from a packet's last bit to its output queue. Ours: some hundreds of
        /// nanoseconds are usual.
        pipeline: Quantity<Span> [to "1s"] = Span::ns(600),
        /// A second pass through the switch, which a soft request needs (paper, 3.5.1). Ours: as
        /// long as the first.
        recirculation: Quantity<Span> [to "1s"] = Span::ns(600),
        /// Output queue of a switch port; packets that do not fit are dropped. Ours.
        switch_queue: Quantity<Bytes> [from "16KiB"] = Bytes::kib(2_048),
        /// Scheduling of a switch port (paper, 4.1: the default is priority-based isolation).
        scheduling: NetworkSchedulingName = NetworkSchedulingName::Priority,
        /// High-priority traffic to every server, as a share of its link (paper, 4.5.2: some, for
        /// Figure 18 only).
        background_load: f64 [0.0 to 0.95] = 0.0,
        /// Mean length of its bursts, which come at line rate. Ours.
        background_burst: Quantity<Span> ["1us" to "1s"] = Span::ms(1),
        /// The networks between clients and rack (paper, 3.7). Not with `network_file`.
        network: NetworkName = NetworkName::None,
        /// Multiplies every delay of `network` or `network_file`.
        network_scale: f64 [0.0 to 100.0] = 1.0,
        /// Whether a third replica lives in another rack (paper, 3.5.1).
        remote_replica: bool = true,
        /// One way between the racks. Ours: the mean of the published trace.
        remote_delay: Quantity<Span> [to "1s"] = Span::us(142),
    } beside {
        /// A file of one-way delays between clients and rack, one a line with its unit. Packets of
        /// a client take them in order, cyclically, from a start of its own.
        network_file: String,
        /// Unit of numbers without one, which are errors otherwise.
        network_unit: Quantity<Span> where [given network_file],
        /// SHA-256 of its delays, in hex. Another file is an error.
        network_digest: String where [given network_file],
    }
}

table! {
    /// How packets cross the networks between clients and rack. With the designs rackblox,
    /// rackblox-software and vdc.
    EmulateFile => Emulate {
        /// What becomes of a delay (paper, 3.7: it is stored in the packet, and added to the time
        /// at the storage server).
        mode: NetworkModeName = NetworkModeName::Label,
        /// Whether packets between the software controller and others, and reads that a storage
        /// server redirects, cross a network of the same kind. Controller packets wait for it in
        /// both modes. The paper does not say; ours stay in the rack.
        redirects: bool = false,
    }
}

table! {
    /// The drives. With the designs rackblox, rackblox-software and vdc.
    FlashFile => Flash with held: FlashState {
        /// Model of the drive. The number of blocks follows from the virtual drives.
        preset: PresetName = PresetName::PSsd,
        /// Pages of a block, in place of the preset's.
        pages_per_block: u32 [8 to 4_096] where [Volumes, Devices],
        /// Dies of a channel, in place of the preset's.
        dies_per_channel: u32 [1 to 64] where [preset != "optane"],
        /// Array time of a read, for each of the preset's kinds of pages (lower and upper, ...), in
        /// place of the preset's.
        read: Vec<Quantity<Span>> [length from 1] where [preset != "optane"],
        /// Array time of a program, for each of the preset's kinds of pages, in place of the
        /// preset's.
        program: Vec<Quantity<Span>> [length from 1] where [preset != "optane"],
        /// Array time of an erase, in place of the preset's.
        erase: Quantity<Span> [to "1s"] where [Volumes, San, Devices; preset != "optane"],
        /// Data rate of a channel, in place of the preset's.
        channel: Quantity<Rate> ["1Mbps" to "100Tbps"] where [preset != "optane"],
        /// The controller's time of a read, once a command, in place of the preset's.
        read_firmware: Quantity<Span> [to "1s"] where [preset != "optane"],
        /// The controller's time of a write, once a command, in place of the preset's.
        write_firmware: Quantity<Span> [to "1s"] where [preset != "optane"],
        /// Cost of a read that suspends a program or an erase, in place of the preset's rule. Not
        /// with `suspension_limit = 0`.
        suspension_overhead: Quantity<Span> where [Volumes, San, Devices],
        /// Suspensions of one operation at most; 0 for none.
        suspension_limit: u32 [to 1_000] where [Volumes, San, Devices],
        /// Choice of the block to collect (paper, 3.7: greedy).
        victim: VictimName where [Volumes, San, Devices] = VictimName::Greedy,
        /// Whether relocated data are kept apart from new data.
        hot_cold: bool where [Volumes, San, Devices] = false,
        /// State of the drives at the start of a run (paper, 4.1: used).
        state: FlashStateName where [Volumes, Devices; without snapshot] = FlashStateName::Used,
    } as {
        preset,
        own: OwnNumbers { dies_per_channel, read, program, erase, channel, read_firmware, write_firmware },
        pages_per_block,
        suspension,
        victim,
        hot_cold,
        state: held,
    } from {
        let suspension = match (suspension_overhead, suspension_limit) {
            (Some(overhead), Some(limit)) => Some(Suspension::Reads { overhead, limit }),
            // Other combinations are refused.
            (None, Some(_)) => Some(Suspension::None),
            (_, None) => None,
        };
    } to {
        let (suspension_overhead, suspension_limit) = match suspension {
            None => (None, None),
            Some(Suspension::None) => (None, Some(0)),
            Some(Suspension::Reads { overhead, limit }) => (Some(overhead), Some(limit)),
        };
        let state = match &held {
            FlashState::Clean => FlashStateName::Clean,
            FlashState::Filled => FlashStateName::Filled,
            FlashState::Used | FlashState::Snapshot(_) => FlashStateName::Used,
            FlashState::Fragmented(_) => FlashStateName::Fragmented,
        };
    } beside {
        /// When write amplification counts as steady.
        steady: SteadyFile where [Volumes, Devices; state = "fragmented"],
        /// A file of `rackweave precondition`: the initial state of the drives.
        snapshot: String where [Volumes; preset != "optane"],
        /// SHA-256 of the file, in hex. Another file is an error.
        snapshot_digest: String where [Volumes; given snapshot],
    }
}

table! {
    /// When write amplification counts as steady.
    SteadyFile => Steady {
        /// Overwrites of a window, as a share of a virtual drive's data. Ours.
        window: f64 [0.001 to 100.0] = 1.0,
        /// Windows that are compared. Ours.
        windows: u32 [2 to 1_000] = 3,
        /// Largest difference between two of them, as a share of their mean. Ours.
        tolerance: f64 [above 0.0 to 1.0] = 0.1,
        /// Windows after which it is an error that they do not agree. Ours.
        windows_max: u32 [2 to 100_000] = 100,
    }
}

table! {
    /// Source of the numbers of `[flash]`, written by `rackweave fit`. It has no effect, and
    /// printed plans leave it out.
    FitFile {
        /// The version that fitted.
        version: String,
        /// State of the drive in measurements of writes: `steady` or `fresh`.
        state: String,
        /// Parameters that were fitted.
        fitted: Vec<String>,
        /// Points that the fit did not use.
        held_out: Vec<String>,
        /// Mean error on the points that were used, as a share of what was measured.
        used_error_mean: f64,
        /// The largest of those errors.
        used_error_largest: f64,
        /// Mean error on the points that were held out.
        held_out_error_mean: f64,
        /// The largest of those errors.
        held_out_error_largest: f64,
        /// Output files of fio.
        input: Vec<FitInputFile>,
    }
}

table! {
    /// A file of fio.
    FitInputFile {
        /// Its name.
        file: String,
        /// SHA-256, in hex.
        sha256: String,
        /// The version of fio.
        fio: String,
    }
}

words! {
    /// When a write is answered.
    WriteAckName {
        /// When all replicas have it in DRAM (paper, 3.5.1).
        Dram,
        /// When, besides, the scheduler of the server that answers has given it to the drive.
        /// Every page is then flushed at once.
        Dequeued,
    }
}

table! {
    /// Virtual drives of each drive. With the designs rackblox, rackblox-software and vdc.
    VssdFile => Vssd with dies_per_channel: u32 {
        /// Virtual drives on each drive.
        per_ssd: u32 [1 to 128] = 2,
        /// Own channels, or shares of common ones (paper, 4.1: hardware).
        isolation: IsolationName = IsolationName::Hardware,
        /// Channels of a virtual drive, or of a channel group. Ours: of the paper's 1 TB on 16
        /// channels, 64 GB are one.
        channels: u32 [1 to 64] = 1,
        /// Virtual drives that share channels (paper, 4.5.4: two).
        group: u32 [2 to 128] where [isolation = "software"] = 2,
        /// Flash of a virtual drive, spare blocks included (paper, 4.1: 64 to 128 GB).
        capacity: Quantity<Bytes> = Bytes::kib(64 << 20),
        /// Share of it that holds data. Ours: the paper's 50 to 100 GB in 64 to 128 GB would leave
        /// fewer free blocks than its own thresholds require; with this, half of the free blocks
        /// used up leave 30 %, between the two thresholds.
        data: f64 [0.01 to 0.95] = 0.4,
        /// Share of free blocks that is consumed before the run (paper, 4.1: half).
        used_before: f64 [0.0 to 1.0] where [flash.state = "used"; without flash.snapshot] = 0.5,
        /// DRAM of its server that holds writes on their way to flash. The paper gives no number;
        /// ours is a thousandth of the capacity, and at least 4 MiB: what a smaller drive's writes
        /// wait for takes as long as that of a large one's.
        write_cache: Quantity<Bytes> => Bytes::new((capacity.count() / 1_024).max(4 << 20)),
        /// When a write is answered (paper, 3.5.1: from DRAM; its published code has reads and
        /// writes in one queue).
        write_ack: WriteAckName = WriteAckName::Dram,
        /// Share of `write_cache` at which flushing starts. Ours; just below 1 is the paper's
        /// Algorithm 2 by the letter.
        flush_above: f64 [0.0 to 0.9999] = 0.5,
        /// Requests outstanding at the drive. Ours: one for each die; what a die cannot start waits
        /// where the scheduler can still choose.
        device_depth: u32 [1 to 4_096] => channels * dies_per_channel,
        /// Requests a second of each. No limit when not given.
        rate: u32 [from 1] where [isolation = "software"],
        /// Size of a loan of free blocks (paper, 3.5.2: 1 GB). A 64th of the capacity when not
        /// given.
        borrow: Quantity<Bytes> where [isolation = "software"] => Bytes::new(capacity.count() / 64),
        /// With `[[swap]]`: pages of each virtual drive that change places together. Ours: few
        /// enough that requests to them wait for milliseconds.
        swap_batch: u32 [1 to 1_048_576] = 64,
        /// With `[[swap]]`: longest time that a page of a swap yields to requests at the device
        /// (paper, 3.6: regular requests have priority). Ours.
        swap_wait_max: Quantity<Span> [to "1s"] where [was swap_patience] = Span::us(200),
    } from {
        let group = if isolation == IsolationName::Hardware { 1 } else { group };
    } to {}
}

table! {
    /// Two drives of a server that exchange what they hold (paper, 3.6), one pair of virtual drives
    /// after the other.
    SwapFile => PlannedSwap {
        /// When it begins, from the start of the run.
        at: Quantity<Time> [to "24h"] where [needed] => Time::ZERO,
        /// The storage server, from 0.
        server: u32 where [needed] => 0,
        /// Its two drives, from 0.
        ssds: (u32, u32) where [needed] => (0, 0),
    }
}

/// RackBlox, 4.1: what coordination adds to a target, for the network's share.
const COORDINATION_EXTRA: Span = Span::ms(1);

/// The usual targets of reads and writes.
fn targets(policy: PolicyName, coordinated: bool) -> (Span, Span) {
    let (read, write) = match policy {
        // A first-come scheduler has no targets; these are shown and not used.
        PolicyName::Fifo | PolicyName::Kyber => (Span::us(750), Span::ms(3)),
        PolicyName::Deadline => (Span::us(500), Span::us(1_750)),
    };
    let extra = if coordinated { COORDINATION_EXTRA } else { Span::ZERO };
    (read + extra, write + extra)
}

table! {
    /// The I/O scheduler of a server. With the designs rackblox, rackblox-software and vdc.
    SchedulerFile => Scheduler with coordinates: bool {
        /// The scheduler (paper, 4.1: kyber).
        policy: PolicyName = PolicyName::Kyber,
        /// Whether deadlines include network times (paper, 3.4). By default with rackblox and
        /// rackblox-software.
        coordinated: bool => coordinates,
        /// Latency target of kyber, deadline of deadline. Paper, 4.1 and 4.5.1: 0.75 ms and 0.5 ms;
        /// 1 ms more when coordinated.
        read_target: Quantity<Span> ["1us" to "60s"] => targets(policy, coordinated).0,
        /// The same for writes: 3 ms and 1.75 ms; 1 ms more when coordinated.
        write_target: Quantity<Span> ["1us" to "60s"] => targets(policy, coordinated).1,
        /// Packets over which the way back is predicted (paper, 3.4: 100).
        window: u32 [1 to 100_000] = 100,
    }
}

words! {
    /// What serves no requests while a burst of collection moves pages.
    GrainName {
        /// The dies that collect.
        Die,
        /// The channels of the virtual drive, or of its group; requests go between two bursts.
        Channel,
    }
}

table! {
    /// Garbage collection. With the designs rackblox, rackblox-software and vdc.
    CollectionFile => Collection with usual: (CoordinationName, u32) {
        /// Coordinator. By default none with vdc, the switch with rackblox, the controller with
        /// rackblox-software.
        coordination: CoordinationName => usual.0,
        /// Share of free blocks below which a server requests collection (paper, 3.5.1: 35 %). Not
        /// without coordination.
        soft: f64 [0.0 to 1.0] = 0.35,
        /// Share below which it must collect (paper, 3.5.1: 25 %).
        regular: f64 [0.0 to 1.0] = 0.25,
        /// Share at which it stops. Ours: the paper gives none.
        stop: f64 [0.0 to 1.0] = 0.38,
        /// Period of checks of the free blocks (paper, 3.5.1: 30 s).
        check_period: Quantity<Span> ["1us" to "1h"] = Span::secs(30),
        /// Retries of an unanswered regular request (paper, 3.5.1: 3).
        retries: u32 [to 100] = 3,
        /// Timeout of a request to the coordinator. Ours.
        retry_after: Quantity<Span> ["1us" to "1h"] = Span::ms(1),
        /// Whether collection uses idle time (paper, 3.5.1).
        background: bool = true,
        /// Share of free blocks below which idle time is used. Algorithm 2 of the paper asks for
        /// idle time alone, which 1 is; its published code has 0.55.
        background_below: f64 [0.0 to 1.0] = 1.0,
        /// Smoothing of the idle predictor (paper, 3.5.1: 0.5).
        idle_alpha: f64 [0.0 to 1.0] = 0.5,
        /// Predicted idle time from which garbage is collected in the background (paper, 3.5.1: 30
        /// ms).
        idle_threshold: Quantity<Span> = Span::ms(30),
        /// Dies of a virtual drive that collect at the same time; all when not given. Ours.
        streams: u32 [1 to 4_096] => usual.1,
        /// What serves no requests during a burst (paper, 2.2: "an SSD channel cannot issue new I/O
        /// requests during GC").
        grain: GrainName = GrainName::Channel,
        /// Pages that a die moves between host requests. The paper has requests wait for some
        /// milliseconds (3.5); ours is four, which makes that of them.
        burst: u32 [1 to 4_096] = 4,
    }
}

table! {
    /// The software controller of vdc and rackblox-software.
    ControllerFile => Controller {
        /// Between two allocations. Not published by either paper; ours.
        period: Quantity<Span> ["10us" to "1h"] = Span::ms(100),
        /// Cost of a write, in reads. Ours: by the flash's times.
        write_cost: u32 [1 to 1_000] = 4,
        /// Capacity of a virtual drive, in reads a second. What its channels can transfer when not
        /// given.
        capacity: u32 [from 1],
    }
}

table! {
    /// Heartbeats and leases (paper, 3.7: heartbeats; the numbers are ours). With the designs
    /// rackblox, rackblox-software and vdc.
    MembershipFile => Membership {
        /// Between two heartbeats.
        heartbeat: Quantity<Span> ["1us" to "1h"] = Span::ms(10),
        /// Beats missed before a server counts as dead.
        misses: u32 [1 to 1_000] = 5,
        /// Lease of a server without contact to the control plane; shorter than `heartbeat` times
        /// `misses`.
        lease: Quantity<Span> = Span::ms(40),
        /// Time from a server's death to the rebuild of its replicas on others.
        replace_after: Quantity<Span> [to "24h"] = Span::secs(2),
        /// Timeout of orders, invalidations and fetches, which are then repeated.
        resend: Quantity<Span> ["1us" to "1h"] = Span::ms(20),
        /// Age at which an invalid page is replayed: its writer may have died.
        replay: Quantity<Span> ["1us" to "1h"] = Span::ms(60),
        /// Outstanding pages of a rebuild.
        fetch_window: u32 [1 to 65_536] = 64,
        /// Timeout of a client, which then tries another replica.
        client_timeout: Quantity<Span> ["1us" to "1h"] = Span::ms(500),
        /// Attempts of a request at most.
        client_attempts: u32 [1 to 100] = 3,
        /// Timeouts in a row, without a packet from the rack, after which a client takes its switch
        /// for dead.
        client_silence: u32 [1 to 10_000] = 8,
    }
}

words! {
    /// Arrival process.
    IoArrivalsName {
        /// Each client keeps `depth` requests outstanding.
        Closed,
        /// Open loop, independent exponential gaps.
        Poisson,
        /// Open loop, equal gaps.
        Deterministic,
    }
}

words! {
    /// Distribution of addresses.
    AddressesName {
        /// Every block alike.
        Uniform,
        /// Low blocks most.
        Zipfian,
        /// A skew like zipfian's, its hot blocks scattered, as YCSB does it.
        ScrambledZipfian,
        /// The newest blocks most.
        Latest,
        /// One after the other.
        Sequential,
    }
}

words! {
    /// Treatment of a trace's request that follows a later one, by at most 1 ms.
    InversionsName is Inversions {
        /// It is sorted and counted, with a warning.
        Sort is Inversions::Sort,
        /// It is an error of the file.
        Refuse is Inversions::Refuse,
    }
}

words! {
    /// Treatment of a trace's request that ends beyond its volume.
    BeyondName is Beyond {
        /// It is an error of the file.
        Refuse is Beyond::Refuse,
        /// Its address is taken modulo the volume.
        Fold is Beyond::Fold,
    }
}

words! {
    /// Format of a block trace (docs/reference/traces.md).
    TraceFormatName is Format {
        /// `time_ns device first_sector sectors type`; 0 writes, 1 reads.
        Mqsim is Format::Mqsim,
        /// The same with the time in milliseconds.
        Disksim is Format::Disksim,
        /// `asu,sector,bytes,r|w,seconds`.
        Spc is Format::Spc,
        /// `Timestamp,Response,IOType,LUN,Offset,Size`.
        Systor is Format::Systor,
        /// `filetime,host,disk,Read|Write,offset,bytes,response`.
        Msr is Format::Msr,
        /// `device,R|W,offset,bytes,microseconds`.
        Alibaba is Format::Alibaba,
        /// `seconds,sector,sectors,type,volume`.
        Tencent is Format::Tencent,
        /// What blkparse prints: requests as they were queued.
        Blktrace is Format::Blktrace,
        /// The same: requests as they were issued to the drive.
        BlktraceIssued is Format::BlktraceIssued,
        /// fio's I/O log, version 2 and 3.
        FioIolog is Format::FioIolog,
    }
}

words! {
    /// Volumes of each client.
    AssignmentName {
        /// Every client uses every volume.
        All,
        /// Volumes are assigned to the clients in turn.
        RoundRobin,
    }
}

table! {
    /// The block load: clients, addresses, and arrivals. `trace`, and in a SAN `job` and
    /// `imitation`, replace single requests; `sizes` replaces `size` in a SAN.
    IoFile {
        /// An application: YCSB A to F, or one of the paper's Table 2.
        profile: String where [
            Volumes, San, KeyValue; design.name != "nvme-of" | "nvme-of-offload";
            without trace | job | imitation | sizes
        ],
        /// Share of writes. Half when neither it nor `profile` is given; none with devices.
        write_share: f64 [0.0 to 1.0] where [
            design.name != "nvme-of" | "nvme-of-offload"; without profile | trace | job | imitation
        ],
        /// Mean length of a run of writes, with runs of reads between. Single requests when not
        /// given.
        write_run: f64 [1.0 to 1e9] where [Volumes, San; without profile | trace | job | imitation | sizes],
        /// Distribution of addresses. The profile's own when not given, else scrambled-zipfian;
        /// uniform with devices.
        addresses: AddressesName where [without trace | job | imitation],
        /// Exponent of the zipfian distributions (YCSB: 0.99).
        theta: f64 [0.01 to 4.0] where [
            without trace | job | imitation; addresses = "zipfian" | "scrambled-zipfian" | "latest"
        ] = 0.99,
        /// Arrival process. RackBlox does not say; its published client is an open loop, poisson.
        arrivals: IoArrivalsName where [without trace | job | imitation] = IoArrivalsName::Closed,
        /// Outstanding requests of each client in a closed loop; with `sizes` the limit of a host
        /// in an open loop too. Ours: with more, a drive of the paper's kind collects for more than
        /// half of the time under half writes, and both replicas collect at once.
        depth: u32 [1 to 65_536] where [without trace | job | imitation] = 16,
        /// Time from a completion to the client's next request.
        think: Quantity<Span> [to "24h"] where [
            without trace | job | imitation | sizes; arrivals = "closed"
        ] = Span::ZERO,
        /// Offered load of all clients together.
        requests_per_second: f64 [above 0.0 to 1e12] where [
            without trace | job | imitation; arrivals = "poisson" | "deterministic"; needed
        ],
        /// Volumes of each client.
        assignment: AssignmentName where [
            Volumes, San; without drive | trace | job | imitation | sizes
        ] = AssignmentName::RoundRobin,
        /// SAN: size of every request.
        size: Quantity<Bytes> where [San; without trace | job | imitation | sizes] = Bytes::kib(4),
        /// SAN: sizes with percentages, `[["4KiB", 70], ["128KiB", 30]]`.
        sizes: Vec<(Quantity<Bytes>, u32)> [length 1 to 64] where [San; without trace | job | imitation],
        /// SAN: bytes of each drive that requests address, from its first byte. All of it when not
        /// given.
        footprint: Quantity<Bytes> where [San],
        /// SAN: the only drive of the load, counted from 0 over all targets: incast.
        drive: u32 where [San; without trace | job | imitation],
        /// SAN: a fio job file. Its files are assigned to drives, its threads to hosts.
        job: String where [San],
        /// SHA-256 of its jobs, in hex. Other jobs are an error.
        job_digest: String where [San; given job],
        /// SAN: a load with the published statistics of a trace that cannot be shipped: oltp-like
        /// and others.
        imitation: String where [San; without job],
        /// A block trace to replay.
        trace: String where [Volumes, San; without job | imitation],
        /// Format of the trace. Detected from its first lines when not given.
        format: TraceFormatName where [Volumes, San; given trace],
        /// Size of the stripes into which devices are divided, and that are assigned to volumes or
        /// drives in turn. Whole devices when not given.
        stripe: Quantity<Bytes> where [Volumes, San; given trace],
        /// SHA-256 of its requests, in hex. Another trace is an error.
        trace_digest: String where [Volumes, San; given trace],
        /// Factor of the trace's times; 0.5 replays it twice as fast.
        time_scale: f64 [1e-6 to 1e6] where [Volumes, San; given trace | imitation] = 1.0,
        /// Treatment of requests beyond the data of a volume.
        beyond: BeyondName where [Volumes, San; given trace] = Beyond::Refuse,
        /// Bad lines that are skipped, counted and reported. One more is an error.
        skip_bad: u64 [to 1_000_000_000] where [Volumes, San; given trace] = 0,
        /// Treatment of requests that follow a later one, by at most 1 ms.
        inversions: InversionsName where [Volumes, San; given trace] = Inversions::Sort,
        /// Whether the history of all operations is recorded and checked for linearizability, page
        /// by page.
        check_history: bool where [Volumes, KeyValue; design.name != "nvme-of" | "nvme-of-offload"] = false,
    }
}
