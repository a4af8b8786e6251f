//! The written form of a SAN's techniques, and their defaults, each with its source. "Paper" is the SAN study, NSDI'26; "ours" is what it does not say.

use super::EndTimes;
use crate::design_file::DesignName;
use crate::file::words;
use crate::quantity::{ByteCount, Of1024, Plain, Quantity};
use crate::rivals::DcqcnFile;
use crate::table::table;
use base::{Bytes, Rate, Span};
use nvme::pdu::{Digests, Framing};
use san::connection::StreamConfig;
use san::gimbal::GimbalConfig;
use san::host::{HostConfig, HostSessions};
use san::reserve::{Estimate, OverCommitment, ReservationConfig};
use san::retry::{RetryPolicy, quiesce_wait};
use san::route::{DistanceConfig, EcmpHash, Horizon, Policy, RouteConfig};
use san::target::{Admission, TargetConfig};
use san::wire::WireConfig;
use topology::VertexId;

words! {
    /// How the port of an I/O's first packet is chosen.
    RoutePolicyName is Policy {
        /// INT-assisted symmetric routing as the text of 4.3 has it: least delay, then fewest hops.
        Isr is Policy::Isr,
        /// As Algorithm 1 is printed: a faster port that is farther is never taken.
        IsrAsPrinted is Policy::IsrAsPrinted,
        /// Always the same one of the shortest ways.
        ShortestPath is Policy::ShortestPath,
        /// One of the shortest ways by a hash of the session, as flows over TCP are spread.
        EcmpSession is ECMP_SESSION,
        /// One of the shortest ways by a hash of the I/O.
        EcmpIo is ECMP_IO,
    }
}

const ECMP_SESSION: Policy = Policy::Ecmp(EcmpHash::Session);
const ECMP_IO: Policy = Policy::Ecmp(EcmpHash::Io);

/// Whether a policy learns from answers.
pub(crate) const fn learns(policy: Policy) -> bool {
    matches!(policy, Policy::Isr | Policy::IsrAsPrinted)
}

words! {
    /// What neighbours are told about ways that lead through themselves.
    HorizonName is Horizon {
        /// That there are none: split horizon with poisoned reverse.
        PoisonedReverse is Horizon::PoisonedReverse,
        /// The best way that does not begin with them.
        BestOther is Horizon::BestOther,
    }
}

table! {
    /// Which way I/Os take. With the designs san and san-plain.
    RoutingFile => RouteConfig with design: DesignName {
        /// How a port is chosen: isr with san, ecmp-session with san-plain when not given.
        policy: RoutePolicyName => match design {
            DesignName::San => Policy::Isr,
            _ => ECMP_SESSION,
        },
        /// Whether answers go back the way of their request (paper, 4.3). By default where ISR or reservation needs it.
        symmetric: bool => learns(policy),
        /// Whether packets carry the ISR header, which every hop lengthens (paper, Figure 10). By default where ISR or symmetry needs it.
        header: bool => symmetric,
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
        horizon: HorizonName = Horizon::PoisonedReverse,
    } as {
        policy,
        is_symmetric: symmetric,
        has_header: header,
        ewma_weight,
        ecn_threshold,
        marks_answers: mark_answers,
        stretch_max: stretch,
        stale_after,
        distance: DistanceConfig { infinity, period, hold, trigger_gap, candidates, horizon },
    } from {
        // The size of the network says it.
        let infinity = 0;
    } to {}
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
    HostFile => HostEnd with given: Sessions<'_> {
        /// Which: it gives the times that are not given.
        stack: StackName = StackName::Spdk,
        /// From the initiator to its link, each packet.
        send: Quantity<Span> [to "1s"] => stack.ends().host_send,
        /// From the response to the application.
        complete: Quantity<Span> [to "1s"] => stack.ends().host_complete,
        /// Copies and checksums at both ends for each 4 KiB of an I/O.
        per_4_kib: Quantity<Span> [to "1s"] => stack.ends().per_4_kib,
        /// From the target's link to its program, each packet.
        target_receive: Quantity<Span> [to "1s"] => stack.ends().target_receive,
        /// From the target's program to its link, each packet.
        target_send: Quantity<Span> [to "1s"] => stack.ends().target_send,
        /// Whether the outstanding I/Os of a session are kept within the credit that its target tells (paper, 4.5). By default with san.
        credits: bool => given.design == DesignName::San,
        /// What becomes of writes whose path failed.
        retry: RetryName = RetryName::CrossControllerReset,
        /// How long they wait. As long as a packet, a command and a drive's work can live when not
        /// given.
        quiesce_wait: Quantity<Span> [to "1h"] where [retry = "quiesce"] => given.life().unwrap_or(Span::ZERO),
        /// How long nothing may come for a command before it is sent a second time; `timeout` where that is shorter. 8 ms when not given; 30 s with
        /// windows, which repair losses by themselves. TCP's tail loss probe (RFC 8985, 7.2) as Linux has it:
        /// two round trips, small here, and 2 ticks of its clock (commit bb4d991a28cc), of which Ubuntu 22.04, the paper's, has 250 a second.
        probe: Quantity<Span> ["1us" to "1h"] => if given.repairs_losses() { Span::secs(30) } else { Span::ms(8) },
        /// How long nothing may come for it before it is sent again after that. 20 ms when not given,
        /// which is ours; with windows 30 s,
        /// as Linux' `nvme_core.io_timeout`.
        timeout: Quantity<Span> ["1us" to "1h"] => if given.repairs_losses() { Span::secs(30) } else { Span::ms(20) },
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
    } as {
        times: EndTimes {
            host_send: send,
            host_complete: complete,
            per_4_kib,
            target_receive,
            target_send,
        },
        host: HostConfig {
            vertex,
            sessions,
            wire,
            queue_entries,
            credits,
            credit_initial,
            waiting_max,
            probe,
            timeout,
            sends_max: sends,
            back_off,
            back_off_max,
            suspect_for: suspect,
            retry: policy,
            stream,
            links,
        },
    } from {
        // Each host's own.
        let (vertex, sessions, links) = (VertexId(0), HostSessions::default(), Vec::new());
        let (wire, stream) = (given.target.wire, given.target.stream);
        let credit_initial = given.credit_initial();
        let policy = match retry {
            RetryName::Naive => RetryPolicy::Naive,
            RetryName::CrossControllerReset => RetryPolicy::CrossControllerReset,
            RetryName::Quiesce => RetryPolicy::Quiesce { wait: quiesce_wait },
        };
    } to {
        // Which software it was decides nothing beside its times.
        let stack = StackName::Spdk;
        let (retry, quiesce_wait) = match policy {
            RetryPolicy::Naive => (RetryName::Naive, Span::ZERO),
            RetryPolicy::Quiesce { wait } => (RetryName::Quiesce, wait),
            RetryPolicy::CrossControllerReset => (RetryName::CrossControllerReset, Span::ZERO),
        };
    }
}

/// What a host's end of its sessions follows from.
#[derive(Clone, Copy)]
pub(crate) struct Sessions<'a> {
    pub target: &'a TargetConfig,
    pub design: DesignName,
}

impl Sessions<'_> {
    /// Whether sessions repair losses by themselves.
    fn repairs_losses(self) -> bool {
        self.target.stream.is_some()
    }

    /// How long a write of a failed path may live, where there is a limit.
    pub(crate) fn life(self) -> Option<Span> {
        let TargetConfig { command_life_max, packet_life_max, .. } = self.target;
        Some(quiesce_wait((*packet_life_max)?, (*command_life_max)?, DRIVE_TIME_MAX))
    }

    fn credit_initial(self) -> u32 {
        match &self.target.admission {
            Admission::Gimbal(gimbal) => gimbal.credit_initial,
            Admission::Fifo { credit, .. } => *credit,
        }
    }
}

/// The longest that a drive may take for one command; ours, ten times what a write behind garbage
/// collection takes at worst.
const DRIVE_TIME_MAX: Span = Span::ms(100);

/// A host, and the times of both ends.
#[derive(Clone)]
pub(crate) struct HostEnd {
    pub times: EndTimes,
    pub host: HostConfig,
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
    ReservationFile => ReservationConfig with given: Reserved {
        /// Whether it is used. By default with san.
        on: bool => given.is_on,
        /// What a read of up to so many bytes is expected to take, sizes rising: `[["4KiB", "400Mbps"], ["128KiB", "7Gbps"]]`; larger ones take as much as the last. The paper
        /// has it from profiles that it does not print; ours: the size over the unloaded latency of a PM9A3, of 80 us to 200 us.
        estimates: Vec<(Quantity<Bytes>, Quantity<Rate>)> [length 1 to 64] => ESTIMATES.to_vec(),
        /// The over-commitment factor by the headroom of a port, the share of what may be booked that
        /// reads under way are not expected to take: `[[headroom_at_least, factor], ...]`, the first
        /// that fits, else the last. A read books its estimate times the factor, and its answer may
        /// take the estimate over the factor. The paper has a step function that it found by trying and
        /// does not print (4.4), so that results that hang on it are undetermined. Ours is
        /// `[[0.5, 0.015625], [0.25, 0.125], [0.0, 0.25]]`: an idle port holds nothing back. Sensible
        /// are falling factors of 1/64 to 1 and a first step of 0.25 to 0.75. `[[0.0, 1.0]]` is the
        /// paper's ratio of 1 (Figure 18), which throttles an idle port too.
        over_commitment: Vec<(Of1024, Of1024)> [length 1 to 64] => Plain::plain(OVER_COMMITMENT.to_vec()),
        /// Whether a port without headroom doubles the factor, to 1 at most, and ranks commands as if
        /// their drives had half the credit. By default where the fabric has switches: the paper's
        /// switched prototype "is more conservative (in terms of rate limiter and rank calculation)
        /// when bandwidth over-subscription happens" (5.1), without a number; by half is ours.
        conservative: bool => given.is_switched,
        /// Share of a port's rate that may be booked; a request beyond it is rejected. Ours: all of it.
        limit: Of1024 [0.01 to 1.0] = 1_024,
        /// Whether answers are held to what was booked, the estimate times the factor, rather than to
        /// the estimate over the factor. Ours: the paper's Figure 18, where throughput grows with
        /// over-commitment, needs the latter.
        fills_at_booked: bool = false,
        /// What a session may send at once. Ours.
        burst: Quantity<Bytes> ["9KB" to "1GiB"] = Bytes::kib(64),
        /// Sessions are held in this many classes (session modulo classes). Ours: a class for each of the paper's sessions, at most.
        classes: u32 [1 to 65_536] = 1_024,
        /// A booking whose answer has not come after one to two such spans lapses. Ours.
        timeout: Quantity<Span> ["1us" to "1h"] where [was lapse] = Span::ms(10),
    } as {
        estimates: steps,
        over_commitment: factors,
        is_conservative: conservative,
        limit,
        fills_at_booked,
        burst,
        classes,
        lapse: timeout,
        data_end_reads,
        passes_rejected,
    } from {
        let steps = estimates.into_iter().map(|(bytes_max, rate)| Estimate { bytes_max, rate }).collect();
        let factor = |(headroom_min, factor)| OverCommitment { headroom_min, factor };
        let factors = over_commitment.into_iter().map(factor).collect();
        // The wire says these.
        let (data_end_reads, passes_rejected) = (false, false);
    } to {
        let on = true;
        let estimates: Vec<_> = steps.iter().map(|step| (step.bytes_max, step.rate)).collect();
        let over_commitment: Vec<_> = factors.iter().map(|step| (step.headroom_min, step.factor)).collect();
    }
}

/// What defaults of reservation follow from.
#[derive(Clone, Copy)]
pub(crate) struct Reserved {
    pub is_on: bool,
    pub is_switched: bool,
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
        weights: Vec<u32> [length 1 to 31] where [strict = false],
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
const ESTIMATES: [(Bytes, Rate); 5] = [
    (Bytes::kib(4), Rate::bps(400_000_000)),
    (Bytes::kib(32), Rate::bps(2_600_000_000)),
    (Bytes::kib(64), Rate::gbps(4)),
    (Bytes::kib(128), Rate::gbps(7)),
    (Bytes::kib(256), Rate::bps(10_500_000_000)),
];

/// Headroom and factor. A lone read of 128 KiB, expected to take 7 Gb/s, may take 448 with the first:
/// more than any link here.
const OVER_COMMITMENT: [(Of1024, Of1024); 3] =
    [(Of1024(0.5), Of1024(1.0 / 64.0)), (Of1024(0.25), Of1024(0.125)), (Of1024(0.0), Of1024(0.25))];

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
    TargetFile => TargetConfig with given: Serving {
        /// How commands get to drives: gimbal with san, fifo with san-plain when not given.
        policy: AdmissionName => given.policy(),
        /// Commands at a drive at a time. Ours: what fills every die of a PM9A3 several times.
        depth: u32 [1 to 65_535] where [policy = "fifo"] = 256,
        /// Commands that may wait for a drive; more are refused. Ours: a bound on memory.
        waiting_max: usize [1 to 1_048_576] where [policy = "fifo"] = 16_384,
        /// The credit that every answer carries. Ours: as much as Gimbal begins with.
        credit: u32 [1 to 65_535] where [policy = "fifo"] = 32,
        /// Commands of a target that may be under way in all. Ours: a bound on memory.
        flights_max: u32 [1 to 16_777_216] = 65_536,
        /// How long after its arrival a command may begin at the drive; a later one is aborted. "unlimited" for no limit, which `retry = "quiesce"` does not allow. Ours: far
        /// above what a drive without faults makes anyone wait.
        command_life: crate::quantity::Limit<Quantity<Span>> ["1us" to "1h"] = Some(Span::ms(50)),
        /// How old a packet may be when it comes, by the time that its first hop wrote; older ones are dropped. "unlimited" for no limit. Ours.
        packet_life: crate::quantity::Limit<Quantity<Span>> ["1us" to "1h"] = Some(Span::ms(20)),
    } as {
        wire,
        admission,
        drives,
        sessions,
        queue_entries,
        lanes,
        flights_max,
        command_life_max: command_life,
        packet_life_max: packet_life,
        stream,
        links,
    } from {
        // Each target's own.
        let (drives, sessions, links) = (Vec::new(), Vec::new(), Vec::new());
        let (lanes, Serving { wire, stream, queue_entries, gimbal, .. }) = (1, given);
        let admission = match policy {
            AdmissionName::Gimbal => Admission::Gimbal(gimbal),
            AdmissionName::Fifo => Admission::Fifo { depth, waiting_max, credit },
        };
    } to {
        let (policy, depth, waiting_max, credit) = match admission {
            Admission::Gimbal(_) => (AdmissionName::Gimbal, 0, 0, 0),
            Admission::Fifo { depth, waiting_max, credit } => (AdmissionName::Fifo, depth, waiting_max, credit),
        };
    }
}

/// What a target has beside its own table.
pub(crate) struct Serving {
    pub design: DesignName,
    pub wire: WireConfig,
    pub stream: Option<StreamConfig>,
    pub queue_entries: u16,
    pub gimbal: GimbalConfig,
}

impl Serving {
    const fn policy(&self) -> AdmissionName {
        match self.design {
            DesignName::San => AdmissionName::Gimbal,
            _ => AdmissionName::Fifo,
        }
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
    WireFile => WireConfig with given: OnWire {
        /// How sessions share the network. By default tcp with san-plain, as the paper's hosts speak
        /// NVMe/TCP; unpaced with san, whose commands take ways of their own, and where bandwidth is booked.
        transport: TransportName,
        /// The receive window of a session; more of it is never under way. Ours: a read of
        /// 256 KiB, the largest of the paper, with its headers; a drive of 6.8 GB/s sends it in 43 us.
        window_max: Quantity<Bytes> ["16KiB" to "1GiB"] where [transport = "tcp" | "dctcp"] = Bytes::kib(288),
        /// With windows: the least retransmission timeout. Ours: fine-grained timers, as "Safe and
        /// effective fine-grained TCP retransmissions" (SIGCOMM 2009) has them; Linux has 200 ms.
        /// With dcqcn+pfc: the timeout of a queue pair, by default 67.1 ms: 4.096 us times 2^14,
        /// which perftest asks adapters for.
        timeout_min: Quantity<Span> ["1us" to "60s"] where [transport = "tcp" | "dctcp" | "dcqcn+pfc"] = Span::ms(1),
        /// The parameters of both, as the rival dcqcn has them. `mtu` has no
        /// meaning: `fabric.mtu` and `segment` are the packets.
        dcqcn: DcqcnFile where [transport = "dcqcn+pfc"],
        /// Bytes of TCP options in every segment: 12 with timestamps (RFC 7323).
        tcp_options: u32 [to 40] where [transport = "tcp" | "dctcp" | "unpaced"] = 12,
        /// Payload of a simulated packet, several frames back to back: smaller is more exact and slower. Ours.
        segment: ByteCount ["1B" to "8MiB"] = 4 << 10,
        /// Data of a write that go with its command (IOCCSZ); larger ones wait for the target's ready-to-transfer. The paper's writes all do (2.1), and so 0.
        in_capsule: ByteCount [to "8MiB"] = 0,
        /// Data of one H2CData PDU (MAXH2CDATA). SPDK's default.
        host_data: ByteCount ["1B" to "8MiB"] = 128 << 10,
        /// Data of one C2HData PDU. SPDK's default.
        controller_data: ByteCount ["1B" to "8MiB"] = 128 << 10,
        /// Data that one ready-to-transfer asks for. SPDK's default.
        ready: ByteCount ["1B" to "8MiB"] = 128 << 10,
        /// Whether the last data of a successful read say so and no response follows. The paper's reads end with a response capsule (4.1), and bookings are given back by it.
        success_flag: bool = false,
        /// Whether data that are seen to be missing, because what follows has come, are asked for at once: TCP's fast retransmit and RoCE's NAK.
        fast_retransmit: bool = true,
        /// Digests of headers.
        header_digest: bool = false,
        /// Digests of data.
        data_digest: bool = false,
    } as {
        mtu,
        tcp_options: options,
        has_header,
        framing: Framing { digests: Digests { header: header_digest, data: data_digest }, alignment },
        segment_max: segment,
        in_capsule_max: in_capsule,
        host_data_max: host_data,
        controller_data_max: controller_data,
        ready_max: ready,
        success_flag,
        fast_retransmit,
    } from {
        let OnWire { mtu, has_header } = given;
        let alignment = 0;
        let options = if transport == Some(TransportName::DcqcnPfc) { ROCE_BEYOND_TCP } else { tcp_options };
    } to {
        let tcp_options = options;
        // How sessions share the network is not the wire's.
        let (transport, dcqcn) = (None::<TransportName>, None::<DcqcnFile>);
        let (window_max, timeout_min) = (Bytes::ZERO, Span::ZERO);
    }
}

/// What the wire's format has beside its table.
#[derive(Clone, Copy)]
pub(crate) struct OnWire {
    pub mtu: u32,
    pub has_header: bool,
}

/// Bytes of RoCE's headers beyond IPv4's and TCP's 40: UDP, BTH and ICRC are 24 beside IPv4's 20.
const ROCE_BEYOND_TCP: u32 = 4;
