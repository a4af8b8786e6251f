//! The written form of a SAN's techniques, and their defaults, each with its source. "Paper" is the SAN study, NSDI'26; "ours" is what it does not say.

use super::EndTimes;
use crate::file::words;
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Rate, Span};
use san::gimbal::GimbalConfig;
use san::route::{EcmpHash, Horizon, Policy};

words! {
    /// How the port of an I/O's first packet is chosen.
    RoutePolicyName {
        /// INT-assisted symmetric routing as the text of 4.3 has it: least delay, then fewest hops.
        Isr,
        /// As Algorithm 1 is printed: a faster port that is farther is never taken.
        IsrAsPrinted,
        /// Always the same one of the shortest ways.
        ShortestPath,
        /// One of the shortest ways by a hash of the session, as flows over TCP are spread.
        EcmpSession,
        /// One of the shortest ways by a hash of the I/O.
        EcmpIo,
    }
}

impl RoutePolicyName {
    /// What it means to a hop.
    pub(crate) const fn policy(self) -> Policy {
        match self {
            RoutePolicyName::Isr => Policy::Isr,
            RoutePolicyName::IsrAsPrinted => Policy::IsrAsPrinted,
            RoutePolicyName::ShortestPath => Policy::ShortestPath,
            RoutePolicyName::EcmpSession => Policy::Ecmp(EcmpHash::Session),
            RoutePolicyName::EcmpIo => Policy::Ecmp(EcmpHash::Io),
        }
    }

    pub(crate) const fn of(policy: Policy) -> RoutePolicyName {
        match policy {
            Policy::Isr => RoutePolicyName::Isr,
            Policy::IsrAsPrinted => RoutePolicyName::IsrAsPrinted,
            Policy::ShortestPath => RoutePolicyName::ShortestPath,
            Policy::Ecmp(EcmpHash::Session) => RoutePolicyName::EcmpSession,
            Policy::Ecmp(EcmpHash::Io) => RoutePolicyName::EcmpIo,
        }
    }

    /// Whether it learns from answers.
    pub(crate) const fn learns(self) -> bool {
        matches!(self, RoutePolicyName::Isr | RoutePolicyName::IsrAsPrinted)
    }
}

words! {
    /// What neighbours are told about ways that lead through themselves.
    HorizonName {
        /// That there are none: split horizon with poisoned reverse.
        PoisonedReverse,
        /// The best way that does not begin with them.
        BestOther,
    }
}

impl HorizonName {
    pub(crate) const fn horizon(self) -> Horizon {
        match self {
            HorizonName::PoisonedReverse => Horizon::PoisonedReverse,
            HorizonName::BestOther => Horizon::BestOther,
        }
    }

    pub(crate) const fn of(horizon: Horizon) -> HorizonName {
        match horizon {
            Horizon::PoisonedReverse => HorizonName::PoisonedReverse,
            Horizon::BestOther => HorizonName::BestOther,
        }
    }
}

table! {
    /// Which way I/Os take. With the designs san and san-plain.
    RoutingFile {
        /// How a port is chosen: isr with san, ecmp-session with san-plain when not given.
        policy: RoutePolicyName,
        /// Whether answers go back the way of their request (paper, 4.3). By default where ISR or reservation needs it.
        symmetric: bool,
        /// Whether packets carry the ISR header, which every hop lengthens (paper, Figure 10). By default where ISR or symmetry needs it.
        header: bool,
        /// Weight of a new delay in the moving average, of 1,024. Ours: an eighth, as TCP's round-trip time has (RFC 6298).
        ewma_weight: u16 [1 to 1_024] = 128,
        /// A hop marks packets when more than this waits at their port. Ours: DCTCP's rule of a seventh of bandwidth times delay, for 100 Gb/s and
        /// 40 us, rounded to frames. "unlimited" marks nothing.
        ecn_threshold: crate::quantity::Limit<Quantity<Bytes>> = Some(Bytes::kib(72)),
        /// Whether answers are marked too. The paper marks on the submission path only (4.3).
        mark_answers: bool = false,
        /// How many hops more than the shortest way a chosen way may have; no way has more than a header in one frame records. Ours.
        stretch: u16 [to 1_000] = 2,
        /// What was learnt counts half after each such span without news. Ours: some round trips to a drive.
        stale_after: Quantity<Span> ["1us" to "1h"] = Span::us(500),
        /// Ports that are kept for each destination, the paper's K (3.2). Ours: as many as the adapter of a 3D torus has.
        candidates: u16 [1 to 256] = 6,
        /// Between advertisements of distances without cause. Ours: with it, recovery is of the millisecond that the paper shows (5.4).
        period: Quantity<Span> ["1us" to "1h"] = Span::ms(10),
        /// A neighbour that was not heard for so long is gone; longer than `period`. Ours.
        hold: Quantity<Span> ["1us" to "1h"] = Span::ms(35),
        /// Between any two advertisements at least. Ours.
        trigger_gap: Quantity<Span> ["1us" to "1h"] = Span::us(100),
        /// What neighbours are told about ways through themselves. Ours.
        horizon: HorizonName = HorizonName::PoisonedReverse,
    }
}

table! {
    /// How a target estimates what its drives can take and divides that among sessions: Gimbal (Min et al., SIGCOMM 2021), on which the paper builds (4.5). Used with
    /// `target.policy = "gimbal"`.
    GimbalFile => GimbalConfig {
        /// Mean latency above which a drive is overloaded (Gimbal).
        latency_max: Quantity<Span> [to "1h"] = Span::us(1_500),
        /// Mean latency below which it is underused (Gimbal).
        latency_min: Quantity<Span> = Span::us(250),
        /// A new latency counts 1 / 2^this in the mean (Gimbal).
        latency_shift: u32 [to 30] = 1,
        /// The threshold falls by 1 / 2^this of its distance to the mean (Gimbal).
        threshold_shift: u32 [to 30] = 4,
        /// How many times faster the rate grows while the drive is underused (Gimbal).
        underused_factor: u64 [1 to 1_024] = 8,
        /// The rate at the start. Gimbal begins with 1,000 MiB/s, a known part of what its drive reads,
        /// and climbs a byte or eight for each byte read: longer than most runs here. By default the
        /// rate of the drive's link, from which it falls when the drive is slow.
        rate_initial: Quantity<Rate> ["1Mbps" to "100Tbps"] = PM9A3_LINK,
        /// The least rate (Gimbal: 50 MiB/s).
        rate_min: Quantity<Rate> ["1Mbps" to "100Tbps"] = mebibytes_a_second(50),
        /// The greatest rate. Gimbal's is 4 GiB/s, above what its drive reads; that, or the rate of the
        /// drive's link where it is more.
        rate_max: Quantity<Rate> ["1Mbps" to "100Tbps"] = PM9A3_LINK,
        /// The most tokens of reads, and of writes (Gimbal).
        bucket_max: Quantity<Bytes> ["4KiB" to "1TiB"] = Bytes::kib(256),
        /// Completed bytes between two samples of the completion rate (Gimbal).
        sample_bytes: Quantity<Bytes> ["4KiB" to "1TiB"] = Bytes::kib(16 << 10),
        /// The write cost at the start and its greatest, in halves (Gimbal: 9).
        cost_max_halves: u32 [2 to 1_024] = 18,
        /// How much the write cost falls while writes are quick, in halves (Gimbal: 0.5).
        cost_step_halves: u32 [1 to 1_024] = 1,
        /// How often the write cost is looked at (Gimbal).
        cost_period: Quantity<Span> ["1us" to "1h"] = Span::ms(100),
        /// Whether the write cost follows Gimbal's released code and not its paper: it rises only
        /// with reads in the period or when the drive is overloaded, and falls without writes too.
        cost_is_as_released: bool = false,
        /// What a session gains in each round (Gimbal).
        quantum: Quantity<Bytes> ["4KiB" to "1TiB"] = Bytes::kib(128),
        /// Weight of I/Os that fill a virtual slot (Gimbal).
        slot_bytes: Quantity<Bytes> ["4KiB" to "1TiB"] = Bytes::kib(128),
        /// Virtual slots that the active sessions share. Gimbal's 8 fill its drive, a DCT983 that reads
        /// 3.2 GB/s; by default as many for each 3.2 GB/s of the drive's link.
        slots: u32 [1 to 256] = 17,
        /// A session's credit before a slot of its own has completed (Gimbal).
        credit_initial: u32 [1 to 65_536] = 32,
        /// The most I/Os of one session that may wait at a target. Ours: a bound on memory.
        waiting_max: usize [1 to 1_048_576] = 4_096,
    }
}

impl GimbalFile {
    /// The same, with what is not given and follows from the rate of the drive's link.
    pub(crate) fn for_drive(&self, link: Rate) -> GimbalFile {
        let slots = (link.as_bps() * 8).div_ceil(DCT983_READS.as_bps()).clamp(8, 256);
        GimbalFile {
            rate_initial: self.rate_initial.or(Some(Quantity(link))),
            rate_max: self.rate_max.or(Some(Quantity(link.max(mebibytes_a_second(4_096))))),
            slots: self.slots.or(Some(slots as u32)),
            ..self.clone()
        }
    }
}

const fn mebibytes_a_second(count: u64) -> Rate {
    Rate::bps(count << 23)
}

/// Of the default drive.
const PM9A3_LINK: Rate = Rate::bps(8 * 6_800_000_000);
/// What the drive of Gimbal's evaluation reads (5.1).
const DCT983_READS: Rate = Rate::bps(8 * 3_200_000_000);

words! {
    /// Which software serves sessions at both ends.
    StackName {
        /// SPDK: polls, in user space (paper, 3.2).
        Spdk,
        /// Linux: its NVMe/TCP initiator and target.
        Linux,
    }
}

impl StackName {
    /// Latencies of both ends.
    ///
    /// SPDK's are fitted to Figure 2c: a read of 4 KiB through an adapter takes the 85 us and one of 256 KiB the 182 us that 2.9 us and 3.1 us are 3.4 % and 1.7 % of; the four
    /// passes of a read are taken as equal. (SPDK polls, over the kernel's sockets.) Linux' are ours: what interrupts and wake-ups usually add to SPDK's.
    pub(crate) const fn ends(self) -> EndTimes {
        match self {
            StackName::Spdk => EndTimes {
                host_send: Span::ns(3_700),
                host_complete: Span::ns(3_700),
                per_4_kib: Span::ns(580),
                target_receive: Span::ns(3_700),
                target_send: Span::ns(3_700),
            },
            StackName::Linux => EndTimes {
                host_send: Span::us(5),
                host_complete: Span::us(7),
                per_4_kib: Span::ns(600),
                target_receive: Span::us(7),
                target_send: Span::us(5),
            },
        }
    }
}

table! {
    /// Software at both ends of a session. With the designs san and san-plain.
    HostFile {
        /// Which: it gives the times that are not given.
        stack: StackName = StackName::Spdk,
        /// From the initiator to its link, each packet.
        send: Quantity<Span> [to "1s"],
        /// From the response to the application.
        complete: Quantity<Span> [to "1s"],
        /// Copies and checksums at both ends for each 4 KiB of an I/O.
        per_4_kib: Quantity<Span> [to "1s"],
        /// From the target's link to its program, each packet.
        target_receive: Quantity<Span> [to "1s"],
        /// From the target's program to its link, each packet.
        target_send: Quantity<Span> [to "1s"],
        /// Whether the outstanding I/Os of a session are kept within the credit that its target tells (paper, 4.5). By default with san.
        credits: bool,
        /// What becomes of writes whose path failed.
        retry: RetryName = RetryName::CrossControllerReset,
        /// With `quiesce`: how long they wait. As long as a packet, a command and a drive's work can live when not given.
        quiesce_wait: Quantity<Span>,
        /// How long nothing may come for a command before it is sent a second time; `timeout` where that is shorter. 8 ms when not given; 30 s with
        /// windows, which repair losses by themselves. TCP's tail loss probe (RFC 8985, 7.2) as Linux has it:
        /// two round trips, small here, and 2 ticks of its clock (commit bb4d991a28cc), of which Ubuntu 22.04, the paper's, has 250 a second.
        probe: Quantity<Span> ["1us" to "1h"],
        /// How long nothing may come for it before it is sent again after that. 20 ms when not given,
        /// which is ours; with windows 30 s,
        /// as Linux' `nvme_core.io_timeout`.
        timeout: Quantity<Span> ["1us" to "1h"],
        /// Sends without an answer after which a path has failed. Ours.
        sends: u8 [1 to 255] = 3,
        /// How long to wait after the first refusal of a command; doubles with each. Ours: a fraction of a drive's read.
        back_off: Quantity<Span> ["1us" to "1h"] = Span::us(10),
        /// The longest such wait. Ours.
        back_off_max: Quantity<Span> ["1us" to "1h"] = Span::ms(1),
        /// How long a path that failed by silence is passed over where there is another. Ours.
        suspect: Quantity<Span> ["1us" to "1h"] = Span::ms(100),
        /// Entries of a queue pair. Linux' default for NVMe over fabrics.
        queue_entries: u16 [2 to 65_535] = 128,
        /// I/Os of a session that may wait. Ours: a bound on memory.
        waiting_max: usize [1 to 16_777_216] = 65_536,
    }
}

table! {
    /// What is checked at the end of a run. With the designs san and san-plain.
    CheckFile {
        /// Whether every block that is read holds what was written last and acknowledged. By default where something breaks.
        write_order: bool,
    }
}

table! {
    /// Bandwidth for answers that is booked when their request passes (paper, 4.4). With the designs san and san-plain.
    ReservationFile {
        /// Whether it is used. By default with san.
        on: bool,
        /// What a read of up to so many bytes is expected to take, sizes rising: `[["4KiB", "400Mbps"], ["128KiB", "7Gbps"]]`; larger ones take as much as the last. The paper
        /// has it from profiles that it does not print; ours: the size over the unloaded latency of a PM9A3, of 80 us to 200 us.
        estimates: Vec<(Quantity<Bytes>, Quantity<Rate>)> [length 1 to 64],
        /// The over-commitment factor by the headroom of a port, the share of what may be booked that
        /// reads under way are not expected to take: `[[headroom_at_least, factor], ...]`, the first
        /// that fits, else the last. A read books its estimate times the factor, and its answer may
        /// take the estimate over the factor. The paper has a step function that it found by trying and
        /// does not print (4.4), so that results that hang on it are undetermined. Ours is
        /// `[[0.5, 0.015625], [0.25, 0.125], [0.0, 0.25]]`: an idle port holds nothing back. Sensible
        /// are falling factors of 1/64 to 1 and a first step of 0.25 to 0.75. `[[0.0, 1.0]]` is the
        /// paper's ratio of 1 (Figure 18), which throttles an idle port too.
        over_commitment: Vec<(f64, f64)> [length 1 to 64],
        /// Whether a port without headroom doubles the factor, to 1 at most, and ranks commands as if
        /// their drives had half the credit. By default where the fabric has switches: the paper's
        /// switched prototype "is more conservative (in terms of rate limiter and rank calculation)
        /// when bandwidth over-subscription happens" (5.1), without a number; by half is ours.
        conservative: bool,
        /// Share of a port's rate that may be booked; a request beyond it is rejected. Ours: all of it.
        limit: f64 [0.01 to 1.0] = 1.0,
        /// Whether answers are held to what was booked, the estimate times the factor, rather than to
        /// the estimate over the factor. Ours: the paper's Figure 18, where throughput grows with
        /// over-commitment, needs the latter.
        fills_at_booked: bool = false,
        /// What a session may send at once. Ours.
        burst: Quantity<Bytes> ["9KB" to "1GiB"] = Bytes::kib(64),
        /// Sessions are held in this many classes (session modulo classes). Ours: a class for each of the paper's sessions, at most.
        classes: u32 [1 to 65_536] = 1_024,
        /// A booking whose answer has not come after one to two such spans lapses. Ours.
        lapse: Quantity<Span> ["1us" to "1h"] = Span::ms(10),
    }
}

words! {
    /// Which queue of a port serves whom.
    QueueName {
        /// By rank, which follows from the credit of the target's drive (paper, 4.5).
        StorageDriven,
        /// One queue; what does not fit is dropped.
        Fifo,
    }
}

table! {
    /// Queues of every port. With the designs san and san-plain.
    SchedulingFile {
        /// Which queue serves whom: storage-driven with san, fifo with san-plain when not given.
        policy: QueueName,
        /// Queues in all; the first is for what completes writes and always goes first. Ours: as many as a switch port has traffic classes.
        queues: u8 [2 to 32] = 8,
        /// Packets a turn of each queue but the first, highest priority first (paper, 4.5: weighted round robin). Ours: 7, 6, 5 and so on with eight queues.
        weights: Vec<u32> [length 1 to 31],
        /// The first queue that has something, in place of turns: SP-PIFO as published.
        strict: bool = false,
        /// A step of the rank has so many credits (paper, 4.5, without a number). Ours.
        credit_quantum: u32 [1 to 65_536] = 4,
        /// The rank of a drive without credit; so many quanta of credit and more are rank 0. Ours.
        rank_max: u8 [1 to 255] = 15,
        /// Credit of a drive of which nothing was heard yet. Ours: what Gimbal starts with.
        unknown_credit: u32 [to 1_048_576] = 32,
        /// The one rank of all that completes reads (paper, 4.5, without a number). Ours: the middle.
        read_rank: u8 [to 255] = 8,
    }
}

/// What a read is expected to take: its size over 80, 100, 130, 150 and 200 us.
pub(crate) const ESTIMATES: [(Bytes, Rate); 5] = [
    (Bytes::kib(4), Rate::bps(400_000_000)),
    (Bytes::kib(32), Rate::bps(2_600_000_000)),
    (Bytes::kib(64), Rate::gbps(4)),
    (Bytes::kib(128), Rate::gbps(7)),
    (Bytes::kib(256), Rate::bps(10_500_000_000)),
];

/// Headroom and factor. A lone read of 128 KiB, expected to take 7 Gb/s, may take 448 with the first:
/// more than any link here.
pub(crate) const OVER_COMMITMENT: [(f64, f64); 3] = [(0.5, 1.0 / 64.0), (0.25, 0.125), (0.0, 0.25)];

words! {
    /// What a host does with the writes of a path that has failed.
    RetryName {
        /// Sends them again at once over another path: a late first copy then undoes what was written after it.
        Naive,
        /// Sends them again when no first copy can live any more (NVMe TP4129).
        Quiesce,
        /// Has another association end the failed one, and sends them again when that is confirmed (NVMe TP8028).
        CrossControllerReset,
    }
}

words! {
    /// How commands get from a target to its drives.
    AdmissionName {
        /// By Gimbal, which gives sessions credits (paper, 4.5).
        Gimbal,
        /// In order of arrival.
        Fifo,
    }
}

table! {
    /// How targets serve commands. With the designs san and san-plain.
    TargetFile {
        /// How commands get to drives: gimbal with san, fifo with san-plain when not given.
        policy: AdmissionName,
        /// With fifo: commands at a drive at a time. Ours: what fills every die of a PM9A3 several times.
        depth: u32 [1 to 65_535] = 256,
        /// With fifo: commands that may wait for a drive; more are refused. Ours: a bound on memory.
        waiting_max: usize [1 to 1_048_576] = 16_384,
        /// With fifo: the credit that every answer carries. Ours: as much as Gimbal begins with.
        credit: u32 [1 to 65_535] = 32,
        /// Commands of a target that may be under way in all. Ours: a bound on memory.
        flights_max: u32 [1 to 16_777_216] = 65_536,
        /// How long after its arrival a command may begin at the drive; a later one is aborted. "unlimited" for no limit, which `retry = "quiesce"` does not allow. Ours: far
        /// above what a drive without faults makes anyone wait.
        command_life: crate::quantity::Limit<Quantity<Span>> ["1us" to "1h"] = Some(Span::ms(50)),
        /// How old a packet may be when it comes, by the time that its first hop wrote; older ones are dropped. "unlimited" for no limit. Ours.
        packet_life: crate::quantity::Limit<Quantity<Span>> ["1us" to "1h"] = Some(Span::ms(20)),
    }
}

words! {
    /// How sessions share the network, and how lost packets are repaired.
    TransportName {
        /// Windows that losses halve: TCP with NewReno (RFC 5681, 6582, 6298). No selective
        /// acknowledgements; the receiver acknowledges every packet.
        Tcp,
        /// The same with windows that marks shrink too: DCTCP (SIGCOMM 2010).
        Dctcp,
        /// RoCE: hops pause their neighbours instead of dropping (IEEE 802.1Qbb), and senders keep
        /// to the rates of DCQCN (SIGCOMM 2015). `[wire.dcqcn]` has their parameters.
        #[serde(rename = "dcqcn+pfc")]
        DcqcnPfc,
        /// Packets leave as soon as the link is free. Commands whose packets are lost are sent again.
        Unpaced,
    }
}

table! {
    /// How sessions use the wire: NVMe/TCP. With the designs san and san-plain.
    WireFile {
        /// How sessions share the network. By default tcp with san-plain, as the paper's hosts speak
        /// NVMe/TCP; unpaced with san, whose commands take ways of their own, and where bandwidth is booked.
        transport: TransportName,
        /// With windows: the receive window of a session; more of it is never under way. Ours: a read of
        /// 256 KiB, the largest of the paper, with its headers; a drive of 6.8 GB/s sends it in 43 us.
        window_max: Quantity<Bytes> ["16KiB" to "1GiB"] = Bytes::kib(288),
        /// With windows: the least retransmission timeout. Ours: fine-grained timers, as "Safe and
        /// effective fine-grained TCP retransmissions" (SIGCOMM 2009) has them; Linux has 200 ms.
        /// With dcqcn+pfc: the timeout of a queue pair, by default 67.1 ms: 4.096 us times 2^14,
        /// which perftest asks adapters for.
        timeout_min: Quantity<Span> ["1us" to "60s"] = Span::ms(1),
        /// With dcqcn+pfc: the parameters of both, as the rival dcqcn has them. `mtu` has no
        /// meaning: `fabric.mtu` and `segment` are the packets.
        dcqcn: crate::design_file::DcqcnFile,
        /// Bytes of TCP options in every segment: 12 with timestamps (RFC 7323).
        tcp_options: u32 [to 40] = 12,
        /// Payload of a simulated packet, several frames back to back: smaller is more exact and slower. Ours.
        segment: Quantity<Bytes> ["1B" to "8MiB"] = Bytes::kib(4),
        /// Data of a write that go with its command (IOCCSZ); larger ones wait for the target's ready-to-transfer. The paper's writes all do (2.1), and so 0.
        in_capsule: Quantity<Bytes> [to "8MiB"] = Bytes::ZERO,
        /// Data of one H2CData PDU (MAXH2CDATA). SPDK's default.
        host_data: Quantity<Bytes> ["1B" to "8MiB"] = Bytes::kib(128),
        /// Data of one C2HData PDU. SPDK's default.
        controller_data: Quantity<Bytes> ["1B" to "8MiB"] = Bytes::kib(128),
        /// Data that one ready-to-transfer asks for. SPDK's default.
        ready: Quantity<Bytes> ["1B" to "8MiB"] = Bytes::kib(128),
        /// Whether the last data of a successful read say so and no response follows. The paper's reads end with a response capsule (4.1), and bookings are given back by it.
        success_flag: bool = false,
        /// Whether data that are seen to be missing, because what follows has come, are asked for at once: TCP's fast retransmit and RoCE's NAK.
        fast_retransmit: bool = true,
        /// Digests of headers.
        header_digest: bool = false,
        /// Digests of data.
        data_digest: bool = false,
    }
}
