//! The written form of the designs, and their defaults, each with its source.

use crate::file::words;
use crate::plan::Edm;
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Clock, Span};
use transport::config::{
    CreditBased, Dcqcn, Dctcp, Fastpass, Pause, Pfabric, RateControl, Reaction, ReceiverDriven,
};
use transport::uncontrolled::Uncontrolled;

words! {
    /// The designs.
    DesignName {
        /// EDM: memory messages in the Ethernet PHY, scheduled in the switch (ASPLOS'25).
        Edm,
        /// DCTCP over ECN-marking output queues (SIGCOMM'10).
        Dctcp,
        /// RoCEv2 with DCQCN over priority flow control (SIGCOMM'15).
        Dcqcn,
        /// pFabric: tiny priority queues (SIGCOMM'13).
        Pfabric,
        /// An idealised receiver-driven protocol.
        ReceiverDriven,
        /// A lossless fabric with hop-by-hop credits, like CXL.
        Cxl,
        /// Fastpass: an arbiter node gives every packet a time slot (SIGCOMM'14).
        Fastpass,
        /// Ethernet frames with nothing above the MAC.
        RawEthernet,
        /// RoCEv2 in hardware, without congestion control: for unloaded measurements.
        Rocev2,
        /// TCP in hardware, without congestion control: for unloaded measurements.
        HardwareTcp,
        /// RackBlox: switch and software-defined flash together (SOSP'23).
        Rackblox,
        /// RackBlox's coordination in a software controller (SOSP'23, 4.1).
        RackbloxSoftware,
        /// Virtual datacenters: rate limits at the hosts from a central controller (OSDI'14).
        Vdc,
        /// A SAN with NVMe-oF traffic control: routing by telemetry, eager bandwidth reservation, storage-driven scheduling (NSDI'26).
        San,
        /// The same SAN with each technique off, unless its table turns it on.
        SanPlain,
        /// RackBlox's wear levelling over years, without requests (SOSP'23, 3.6).
        WearLevelling,
        /// S-Direct: a NIC that drives NVMe devices peer to peer (Lu, APNet).
        SDirect,
        /// The Linux kernel's storage stack on the machine's cores; with clients elsewhere, an NVMe-oF target over it.
        Linux,
        /// SPDK, polling and batching, on the machine's cores; with clients elsewhere, an NVMe-oF target over it.
        Spdk,
        /// An NVMe-oF target in the NIC, without the machine's cores, whose data pass through its memory.
        TargetOffload,
        /// Scalio: a key-value store whose clients read the box's memory and flash themselves (OSDI'25).
        Scalio,
        /// LEED: a key-value store in which the box's cores do everything (SIGCOMM'23).
        Leed,
        /// LEED behind Ditto, a cache that clients run on the box's memory (SOSP'23).
        LeedDitto,
        /// The box's SSDs behind an NVMe-oF target on its cores, without a store.
        NvmeOf,
        /// The same target in the box's adapter.
        NvmeOfOffload,
    }
}

impl DesignName {
    /// Whether it is the box without a store.
    pub(crate) fn is_bare_flash(self) -> bool {
        matches!(self, DesignName::NvmeOf | DesignName::NvmeOfOffload)
    }
}

words! {
    /// The fixed latencies of hosts and switch (EDM, Table 1).
    StackName {
        /// The design's usual one: hardware TCP for dctcp, pfabric, fastpass and hardware-tcp; RoCEv2 for dcqcn and rocev2; raw Ethernet for
        /// receiver-driven and raw-ethernet; CXL ports for cxl.
        Own,
        /// No latency but the transceivers'.
        None,
        /// MAC, PCS and layer-2 forwarding.
        Raw,
        /// The same and a RoCEv2 stack at each end.
        Roce,
        /// The same and a hardware TCP stack at each end.
        Tcp,
    }
}

words! {
    /// How memory blocks and ordinary frames share a link.
    PreemptionName {
        /// 66-bit blocks of both take turns (EDM, 3.2.3).
        Fair,
        /// Memory blocks always go first.
        Strict,
        /// A frame that has begun is finished first, as without EDM.
        None,
    }
}

words! {
    /// Which of the messages that compete for a port goes first.
    PolicyName is edm::Policy {
        /// The one with the fewest bytes left.
        Srpt is edm::Policy::Srpt,
        /// The one that was announced first.
        Fcfs is edm::Policy::Fcfs,
    }
}

words! {
    /// What is kept in order.
    OrderingName is edm::Ordering {
        /// Nothing: messages of a pair overtake each other as the policy says. Not EDM as published.
        None is edm::Ordering::None,
        /// Each direction of a pair for itself: a read may overtake an earlier write.
        Channel is edm::Ordering::Channel,
        /// Reads and writes of one node at another take effect in the order of their issue.
        Pair is edm::Ordering::Pair,
    }
}

table! {
    /// What moves the messages. A table of a design that no point of the experiment uses is an error.
    DesignFile {
        /// Which design.
        name: DesignName where [needed],
        /// Which fixed latencies apply. EDM's pipeline is counted in cycles of its clocks.
        stack: StackName where [Messages; design.name != "edm"] = StackName::Own,
        /// Parameters of edm.
        edm: EdmFile,
        /// Parameters of dctcp.
        dctcp: DctcpFile,
        /// Parameters of dcqcn.
        dcqcn: DcqcnFile,
        /// Parameters of pfabric.
        pfabric: PfabricFile,
        /// Parameters of receiver-driven.
        #[serde(rename = "receiver-driven")]
        receiver_driven: ReceiverDrivenFile,
        /// Parameters of cxl.
        cxl: CxlFile,
        /// Parameters of fastpass.
        fastpass: FastpassFile,
        /// Parameters of raw-ethernet.
        #[serde(rename = "raw-ethernet")]
        raw_ethernet: RawEthernetFile,
        /// Parameters of rocev2.
        rocev2: Rocev2File,
        /// Parameters of hardware-tcp.
        #[serde(rename = "hardware-tcp")]
        hardware_tcp: HardwareTcpFile,
    }
}

table! {
    /// EDM. Sources are sections of its paper (ASPLOS'25).
    EdmFile => Edm on _ground of Edm {
        /// Most bytes that one grant lets through (4.3: 256 B).
        chunk: Quantity<Bytes> ["1B" to "65535B"] = Bytes::new(256),
        /// Most active notifications of an ordered pair, the paper's X (4.3: 3).
        active_per_pair: u8 [1 to 64] = 3,
        /// Which message goes first (4.3.2 has heavy-tailed sizes, for which 3.1.1 recommends SRPT).
        policy: PolicyName = edm::Policy::Srpt,
        /// What is kept in order (3.1.1, property 5).
        ordering: OrderingName = edm::Ordering::Pair,
        /// Matching iterations before grants go out; 1 grants after every iteration (3.1.2).
        iterations: u32 [1 to 64] = 1,
        /// How many scheduler cycles before a port is free its next grant may be issued: an iteration's 3 (3.1.2) hide the round that a
        /// free port would otherwise wait for; 0 waits.
        look_ahead_cycles: u32 [to 1_000_000] = 3,
        /// Clock of host and switch PHY logic (3.2: 2.56 ns; 100 GbE bundles four such lanes, 4.1).
        phy_clock: Quantity<Clock> ["1MHz" to "100GHz"] = Clock::hz(390_625_000),
        /// Clock of the scheduler (4.1: 3 GHz as an ASIC; the FPGA testbed of Table 1 runs it at the PHY's clock).
        scheduler_clock: Quantity<Clock> ["1MHz" to "100GHz"] = Clock::mhz(3_000),
        /// Most bytes of small writes that share one notification (3.1.2); the size of a chunk by default, `"0B"` for never.
        batch: Quantity<Bytes> = Bytes::new(256),
        /// An unanswered read is answered with NULL after this long (3.3 leaves the value open; ours is far beyond any queue).
        timeout: Quantity<Span> ["1ps" to "1h"] = Span::ms(10),
        /// Whether every message also goes to a backup switch (3.3).
        redundant: bool = false,
        /// How memory and frames share a link (3.2.3).
        preemption: PreemptionName = PreemptionName::Fair,
        /// Measure, besides the run, the time to a maximal matching of a full demand matrix over so many random trials (3.1.3).
        matching_trials: u32 [to 10_000] = 0,
    } as {
        config: edm::Config {
            chunk,
            active_per_pair,
            policy,
            ordering,
            iterations_per_round: iterations,
            look_ahead_cycles,
            phy_clock,
            scheduler_clock,
            batch,
            timeout,
        },
        redundant,
        preemption,
        matching_trials,
    }
}

table! {
    /// DCTCP. "Paper" is SIGCOMM'10.
    DctcpFile => Dctcp on _ground of Dctcp {
        /// Largest segment: 1500 bytes less the IPv4 and TCP headers.
        mss: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1460),
        /// Marking threshold K on the wire: 65 full frames, as the paper uses at 10 Gb/s (3.4); well above its bound of a seventh of the
        /// bandwidth-delay product here.
        mark_above: Quantity<Bytes> [to "1TiB"] = Bytes::new(65 * 1538),
        /// Room of an output queue: a port's share of a shallow-buffered switch (paper, 2.3.4: 4 MB shared, one port can take about 700 KB).
        queue: Quantity<Bytes> ["1B" to "1TiB"] = Bytes::new(700_000),
        /// Gain g (paper, 3.4: 1/16).
        gain: f64 [above 0.0 to 1.0] = 1.0 / 16.0,
        /// Initial window, in segments (RFC 6928: 10).
        initial_window: u32 [1 to 65_536] = 10,
        /// Least retransmission timeout: 1 ms (Vasudevan et al., SIGCOMM'09, for data centers; the paper's own is 10 ms, 4.2.1).
        timeout_min: Quantity<Span> ["1ps" to "1h"] = Span::ms(1),
        /// Whether receivers tell what came beyond a hole, so that all of a window's holes are filled in
        /// one round trip: Linux does by default. `false` is NewReno.
        selective: bool = true,
        /// Connections between two nodes each way. A message goes over the one that has the least to
        /// send. One is ours; servers have tens in all (paper, 2.2).
        connections: u32 [1 to 64] = 1,
    }
}

words! {
    /// Whose constants DCQCN has, where its table does not say otherwise.
    DcqcnPreset {
        /// The paper's (SIGCOMM'15); those that are bytes in a queue or bits a second scale from
        /// its 40 Gb/s to the link rate.
        Scaled,
        /// The paper's as they are, with the dynamic thresholds of its testbed; meant for links of
        /// 40 Gb/s.
        Paper,
        /// Those that HPCC's simulator (SIGCOMM'19) gives DCQCN, which it scales from 25 Gb/s, and
        /// its reaction.
        Hpcc,
    }
}

words! {
    /// When the switch pauses an ingress port.
    PfcName {
        /// At `pause_above` bytes.
        Static,
        /// Above `free_share` of what is free of `shared_buffer`.
        Dynamic,
    }
}

words! {
    /// How a flow answers notifications of congestion.
    ReactionName {
        /// Each cuts the rate and raises alpha (SIGCOMM'15).
        AtOnce,
        /// The rate is cut at most once a `cut_interval`, alpha moves once an `alpha_timer` (HPCC's
        /// simulator, after adapters).
        Periodic,
    }
}

table! {
    /// RoCEv2 with DCQCN and priority flow control. "Paper" is SIGCOMM'15, whose values are for 40
    /// Gb/s; those that are bytes in a queue or bits a second scale with the link rate, unless
    /// `preset` says otherwise. What `paper` and `hpcc` have instead is in
    /// docs/concepts/rivals-dcqcn.md.
    DcqcnFile => Dcqcn on ground of Dcqcn {
        /// Whose constants the other keys have when they are not given.
        preset: DcqcnPreset = DcqcnPreset::Scaled,
        /// Largest payload: the RoCE MTU of 1024 bytes, which fits into a standard frame (paper, 6).
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_024),
        /// No marks below this queue (paper, Figure 14: 5 KB at 40 Gb/s).
        mark_from: Quantity<Bytes> = Bytes::new(ground.scaled_from_40g(5_000)),
        /// All marked above this queue (paper, Figure 14: 200 KB at 40 Gb/s).
        mark_all: Quantity<Bytes> ["1B" to "1TiB"] = Bytes::new(ground.scaled_from_40g(200_000)),
        /// Marking probability just below `mark_all` (paper, Figure 14: 1 %).
        mark_probability: f64 [above 0.0 to 1.0] = 0.01,
        /// When the switch pauses an ingress port.
        pfc: PfcName = PfcName::Static,
        /// XOFF threshold of an ingress port, above `mark_all`, so that marks come
        /// before pauses (paper, 4).
        pause_above: Quantity<Bytes> ["1B" to "1TiB"] where [pfc = "static"] = Bytes::new(ground.scaled_from_40g(240_000)),
        /// XON threshold, two full frames lower (paper, 4).
        resume_below: Quantity<Bytes> where [pfc = "static"] = Bytes::new(ground.scaled_from_40g(240_000).saturating_sub(2 * 1538).max(1)),
        /// The buffer that all ports share, without headroom. What the paper's 12 MB
        /// leave beside 22.4 KB for each of eight classes at 32 ports (paper, 4).
        shared_buffer: Quantity<Bytes> ["1B" to "1TiB"] where [pfc = "dynamic"] = DCQCN_SHARED,
        /// The share of what is free of it that one port may hold (paper, 4: beta /
        /// 8, with beta = 8).
        free_share: f64 [above 0.0 to 1_024.0] where [pfc = "dynamic"] = 1.0,
        /// Gain g of alpha (paper, Figure 14: 1/256).
        gain: f64 [above 0.0 to 1.0] = 1.0 / 256.0,
        /// Least rate of a flow in bits a second. The paper gives none; 100 Mb/s is in the published
        /// simulator of DCQCN's authors, HPCC's experiments at 100 Gb/s have 1 Gb/s.
        rate_min_bps: u64 [from 1] = 100_000_000,
        /// Least time between two congestion notifications of a flow (paper, 3.1: 50 us).
        notification_interval: Quantity<Span> ["1ps" to "1h"] = Span::us(50),
        /// How a flow answers notifications.
        reaction: ReactionName = ReactionName::AtOnce,
        /// Time between two looks at whether a notification has come (HPCC's
        /// simulator: 4 us).
        cut_interval: Quantity<Span> ["1ps" to "1h"] where [reaction = "periodic"] = Span::us(4),
        /// Alpha decays when no notification came for this long (paper, 3.1: 55 us).
        alpha_timer: Quantity<Span> ["1ps" to "1h"] = Span::us(55),
        /// Rate-increase timer (paper, Figure 14: 55 us).
        increase_timer: Quantity<Span> ["1ps" to "1h"] = Span::us(55),
        /// Rate-increase byte counter (paper, Figure 14: 10 MB).
        increase_bytes: Quantity<Bytes> ["1B" to "1TiB"] where [reaction = "at-once"] = Bytes::new(10_000_000),
        /// Rounds of fast recovery, F (paper, 3.1: 5).
        fast_recovery_rounds: u32 [1 to 1_000] = 5,
        /// Additive step in bits a second (paper, 3.1: 40 Mb/s at 40 Gb/s).
        additive_bps: u64 [from 1] = ground.scaled_from_40g(40_000_000),
        /// Hyper step in bits a second; the paper gives none, ten additive steps is what its vendor's adapters ship with.
        hyper_bps: u64 [from 1] = ground.scaled_from_40g(400_000_000),
    } as {
        mtu,
        mark_from,
        mark_all,
        mark_probability,
        pause,
        reaction: answer,
        gain,
        rate_min_bps,
        notification_interval,
        alpha_timer,
        increase_timer,
        fast_recovery_rounds,
        additive_bps,
        hyper_bps,
    } from {
        let pause = match pfc {
            PfcName::Static => Pause::Static { above: pause_above, below: resume_below },
            PfcName::Dynamic => Pause::Dynamic { shared: shared_buffer, share: free_share },
        };
        let answer = match reaction {
            ReactionName::AtOnce => Reaction::AtOnce { increase_bytes },
            ReactionName::Periodic => Reaction::Periodic { cut_interval },
        };
    } to {
        // What its values were taken from says nothing more.
        let preset = DcqcnPreset::Scaled;
        let (pfc, [pause_above, resume_below], shared_buffer, free_share) = match pause {
            Pause::Static { above, below } => (PfcName::Static, [above, below], Bytes::ZERO, 0.0),
            Pause::Dynamic { shared, share } => (PfcName::Dynamic, [Bytes::ZERO; 2], shared, share),
        };
        let (reaction, increase_bytes, cut_interval) = match answer {
            Reaction::AtOnce { increase_bytes } => (ReactionName::AtOnce, increase_bytes, Span::ZERO),
            Reaction::Periodic { cut_interval } => (ReactionName::Periodic, Bytes::ZERO, cut_interval),
        };
    }
}

/// SIGCOMM'15, 4.
const DCQCN_SHARED: Bytes = Bytes::new(12_000_000 - 8 * 32 * 22_400);

words! {
    /// What decides how much of a flow of pFabric is under way.
    RateControlName {
        /// pFabric's own window, timeout and probes (SIGCOMM'13, 4.2).
        Minimal,
        /// DCTCP: each flow is a connection of its own (EDM, ASPLOS'25, 4.3, has pFabric on top of
        /// DCTCP).
        Dctcp,
    }
}

table! {
    /// pFabric. "Paper" is SIGCOMM'13.
    PfabricFile => Pfabric on ground of Pfabric {
        /// Largest segment: 1500 bytes less the IPv4 and TCP headers, and the priority.
        mss: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_452),
        /// Room of an output queue: two bandwidth-delay products (paper, 4.1).
        queue: Quantity<Bytes> = ground.bandwidth_delay() * 2,
        /// Window that a flow starts with, in segments: a bandwidth-delay product (paper, 4.2).
        window: u32 [1 to 1_048_576] = ground.frames_in_flight(),
        /// Retransmission timeout: a round trip, a full queue, and a frame that is being sent at
        /// either host, so that a packet which only waits is never sent twice. That is a little
        /// over three round trips (paper, 5.2: 45 us at 14.6 us). With dctcp the least, and doubled
        /// by each timeout.
        timeout: Quantity<Span> ["1ps" to "1h"] = ground.round_trip() + ground.full_queue(ground.bandwidth_delay() * 2),
        /// What decides how much of a flow is under way.
        rate_control: RateControlName = RateControlName::Minimal,
        /// Timeouts in a row before a flow probes (paper, 5.2: 5).
        probe_after: u32 [1 to 1_000] where [rate_control = "minimal"] = 5,
        /// Marking threshold of an output queue. Neither paper gives one for queues of
        /// two bandwidth-delay products: half of that, above DCTCP's bound of a seventh of one
        /// (SIGCOMM'10, 3.4).
        mark_above: Quantity<Bytes> where [rate_control = "dctcp"] = ground.bandwidth_delay(),
    } as { mss, queue, window, timeout, control } from {
        let control = match rate_control {
            RateControlName::Minimal => RateControl::Minimal { probe_after },
            RateControlName::Dctcp => RateControl::Dctcp(Dctcp {
                mss,
                mark_above,
                queue,
                initial_window: window,
                timeout_min: timeout,
                ..DctcpFile::default().resolve(ground)
            }),
        };
    } to {
        let (rate_control, probe_after, mark_above) = match control {
            RateControl::Minimal { probe_after } => (RateControlName::Minimal, probe_after, Bytes::ZERO),
            RateControl::Dctcp(dctcp) => (RateControlName::Dctcp, 0, dctcp.mark_above),
        };
    }
}

table! {
    /// The idealised receiver-driven protocol.
    ReceiverDrivenFile => ReceiverDriven on ground of ReceiverDriven {
        /// Largest payload of a packet: 1500 bytes less the IPv4 and UDP headers and 16 of its own.
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_456),
        /// Credits out at once: a bandwidth-delay product of payload (Homa, SIGCOMM'18, 3.2: RTTbytes).
        outstanding: Quantity<Bytes> = Bytes::new(1_456) * u64::from(ground.frames_in_flight()),
    }
}

table! {
    /// Hop-by-hop credits.
    CxlFile => CreditBased on _ground of Cxl {
        /// Payload of a flit (CXL 2.0, 4.2: four 16-byte slots).
        flit_payload: Quantity<Bytes> ["16B" to "9KB"] = Bytes::new(64),
        /// A flit on the wire (CXL 2.0, 4.2: 68 bytes with protocol id and CRC).
        flit_wire: Quantity<Bytes> = Bytes::new(68),
        /// Input buffer of a switch port in flits. No standard value: enough for several link round trips at 100 Gb/s.
        switch_buffer_flits: u32 [2 to 1_048_576] = 128,
        /// Input buffer of a device in flits; likewise.
        device_buffer_flits: u32 [2 to 1_048_576] = 128,
    }
}

table! {
    /// Fastpass. "Paper" is SIGCOMM'14.
    FastpassFile => Fastpass on _ground of Fastpass {
        /// Payload of a time slot: one full packet (paper, 3: a slot is an MTU on the link).
        slot_payload: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_460),
        /// Time slots that the arbiter plans together (public code: `BATCH_SIZE`, 16).
        batch: u32 [1 to 32] = 16,
        /// A demand without an answer for so long is stated again (public code:
        /// `CONTROLLER_SEND_TIMEOUT_SECS`, 200 us with slots of a microsecond).
        timeout: Quantity<Span> ["1ps" to "1h"] = Span::us(200),
    }
}

table! {
    /// Frames with nothing above the MAC.
    RawEthernetFile => Uncontrolled on _ground of RawEthernet {
        /// Largest payload of a frame (IEEE 802.3: 1500 bytes).
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_500),
    }
}

table! {
    /// RoCEv2 without congestion control.
    Rocev2File => Uncontrolled on _ground of Rocev2 {
        /// Largest payload of a packet: the RoCE MTU that fits into a standard frame.
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_024),
    }
}

table! {
    /// Hardware TCP without congestion control.
    HardwareTcpFile => Uncontrolled on _ground of HardwareTcp {
        /// Largest payload of a segment: 1500 bytes less the IPv4 and TCP headers.
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_460),
    }
}

// A table of other tables too: its parameters depend on their rack.
crate::quantity::plain!(DcqcnFile);
