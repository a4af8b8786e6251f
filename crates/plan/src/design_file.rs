//! The written form of the designs, and their defaults, each with its source.

use crate::file::words;
use crate::plan::Edm;
use crate::quantity::Quantity;
use crate::rivals::{
    CxlFile, DcqcnFile, DctcpFile, FastpassFile, HardwareTcpFile, PfabricFile, RawEthernetFile, ReceiverDrivenFile,
    Rocev2File,
};
use crate::table::table;
use base::{Bytes, Clock, Span};
use edm::pcs::multiplex::Policy as Preemption;

macro_rules! designs {
    ($( $(#[$doc:meta])* $rival:ident $key:ident : $file:ident of $config:ident; )*) => { words! {
    /// The designs.
    DesignName {
        /// EDM: memory messages in the Ethernet PHY, scheduled in the switch (ASPLOS'25).
        Edm,
        $( $(#[$doc])* $rival, )*
        /// RackBlox: switch and software-defined flash together (SOSP'23).
        Rackblox,
        /// RackBlox's coordination in a software controller (SOSP'23, 4.1).
        RackbloxSoftware,
        /// Virtual datacenters: rate limits at the hosts from a central controller (OSDI'14).
        Vdc,
        /// A SAN with NVMe-oF traffic control: routing by telemetry, eager bandwidth reservation,
        /// storage-driven scheduling (NSDI'26).
        San,
        /// The same SAN with each technique off, unless its table turns it on.
        SanPlain,
        /// RackBlox's wear levelling over years, without requests (SOSP'23, 3.6).
        WearLevelling,
        /// S-Direct: a NIC that drives NVMe devices peer to peer (Lu, APNet).
        SDirect,
        /// The Linux kernel's storage stack on the machine's cores; with clients elsewhere, an
        /// NVMe-oF target over it.
        Linux,
        /// SPDK, polling and batching, on the machine's cores; with clients elsewhere, an NVMe-oF
        /// target over it.
        Spdk,
        /// An NVMe-oF target in the NIC, without the machine's cores, whose data pass through its
        /// memory.
        TargetOffload,
        /// Scalio: a key-value store whose clients read the JBOF's memory and flash themselves
        /// (OSDI'25).
        Scalio,
        /// LEED: a key-value store in which the JBOF's cores do everything (SIGCOMM'23).
        Leed,
        /// LEED behind Ditto, a cache that clients run on the JBOF's memory (SOSP'23).
        LeedDitto,
        /// The box's SSDs behind an NVMe-oF target on its cores, without a store.
        NvmeOf,
        /// The same target in the JBOF's adapter.
        NvmeOfOffload,
    }
} };
}
crate::rivals!(designs);

impl DesignName {
    /// Whether it is the JBOF without a store.
    pub(crate) fn is_bare_flash(self) -> bool {
        matches!(self, DesignName::NvmeOf | DesignName::NvmeOfOffload)
    }
}

words! {
    /// The fixed latencies of hosts and switch (EDM, Table 1).
    StackName {
        /// The design's usual one: hardware TCP for dctcp, pfabric, fastpass and hardware-tcp;
        /// RoCEv2 for dcqcn and rocev2; raw Ethernet for receiver-driven and raw-ethernet; CXL
        /// ports for cxl.
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
    PreemptionName is Preemption {
        /// 66-bit blocks of both take turns (EDM, 3.2.3).
        Fair is Preemption::Fair,
        /// Memory blocks always go first.
        Strict is Preemption::Strict,
        /// A frame that has begun is finished first, as without EDM.
        None is Preemption::None,
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
    /// When a matching is formed.
    MatchingName is edm::Matching {
        /// As ports become free: chunks of different pairs begin at any time.
        Continuous is edm::Matching::Continuous,
        /// Once a chunk time, for all ports together, while the chunks of the last matching pass.
        Slotted is edm::Matching::Slotted,
    }
}

words! {
    /// What is kept in order.
    OrderingName is edm::Ordering {
        /// Nothing: messages of a pair overtake each other as the policy says. Not EDM as
        /// published.
        None is edm::Ordering::None,
        /// Each direction of a pair for itself: a read may overtake an earlier write.
        Channel is edm::Ordering::Channel,
        /// Reads and writes of one node at another take effect in the order of their issue.
        Pair is edm::Ordering::Pair,
    }
}

macro_rules! design_table {
    ($( $(#[$doc:meta])* $rival:ident $key:ident : $file:ident of $config:ident; )*) => { table! {
    /// What moves the messages. A table of a design that no point of the experiment uses is an
    /// error.
    #[serde(rename_all = "kebab-case")]
    DesignFile {
        /// Which design.
        name: DesignName where [needed],
        /// Which fixed latencies apply. EDM's pipeline is counted in cycles of its clocks.
        stack: StackName where [Messages; design.name != "edm"] = StackName::Own,
        /// Parameters of edm.
        edm: EdmFile,
        $( $(#[$doc])* $key: $file, )*
    }
} };
}
crate::rivals!(design_table);

table! {
    /// EDM. Sources are sections of its paper (ASPLOS'25).
    EdmFile => Edm on _ground of Edm {
        /// Most bytes that one grant lets through (4.3: 256 B).
        chunk: Quantity<Bytes> ["1B" to "65535B"] = Bytes::new(256),
        /// Most active notifications of an ordered pair, the paper's X (4.3: 3).
        active_per_pair: u8 [1 to 64] = 3,
        /// Whether reads and writes of a pair count together towards `active_per_pair` (3.1.2 does
        /// not say; each apart is ours).
        active_together: bool = false,
        /// Which message goes first (4.3.2 has heavy-tailed sizes, for which 3.1.1 recommends
        /// SRPT).
        policy: PolicyName = edm::Policy::Srpt,
        /// What is kept in order (3.1.1, property 5).
        ordering: OrderingName = edm::Ordering::Pair,
        /// When a matching is formed. 3.1.2 starts an iteration every three cycles; "the link
        /// remains busy while forming the next maximal matching" (3.1.3) permits slots.
        matching: MatchingName = edm::Matching::Continuous,
        /// Matching iterations before grants go out; 1 grants after every iteration (3.1.2). By
        /// default log2 of the nodes, rounded up, with slots (3.1.3).
        iterations: u32 [1 to 64] = 1,
        /// How many scheduler cycles before a port is free its next grant may be issued: an
        /// iteration's 3 (3.1.2) hide the round that a free port would otherwise wait for; 0 waits.
        look_ahead_cycles: u32 [to 1_000_000] = 3,
        /// Clock of host and switch PHY logic (3.2: 2.56 ns; 100 GbE bundles four such lanes, 4.1).
        phy_clock: Quantity<Clock> ["1MHz" to "100GHz"] = Clock::hz(390_625_000),
        /// Clock of the scheduler (4.1: 3 GHz as an ASIC; the FPGA testbed of Table 1 runs it at
        /// the PHY's clock).
        scheduler_clock: Quantity<Clock> ["1MHz" to "100GHz"] = Clock::mhz(3_000),
        /// Most bytes of small writes that share one notification (3.1.2); the size of a chunk by
        /// default, `"0B"` for never.
        batch: Quantity<Bytes> = Bytes::new(256),
        /// An unanswered read is answered with NULL after this long (3.3 leaves the value open;
        /// ours is far beyond any queue).
        timeout: Quantity<Span> ["1ps" to "1h"] = Span::ms(10),
        /// Whether every message also goes to a backup switch (3.3).
        redundant: bool = false,
        /// How memory and frames share a link (3.2.3).
        preemption: PreemptionName = Preemption::Fair,
        /// Measure, besides the run, the time to a maximal matching of a full demand matrix over so
        /// many random trials (3.1.3).
        matching_trials: u32 [to 10_000] = 0,
    } as {
        config: edm::Config {
            chunk,
            active_per_pair,
            active_together,
            policy,
            ordering,
            matching,
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
