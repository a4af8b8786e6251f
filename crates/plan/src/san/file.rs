//! The written form of a SAN's techniques, and their defaults, each with its source. "Paper" is the
//! SAN study, NSDI'26; "ours" is what it does not say.

use super::EndTimes;
use crate::design_file::DesignName;
use crate::file::words;
use crate::quantity::{ByteCount, Of1024, Plain, Quantity};
use crate::rivals::DcqcnFile;
use crate::table::table;
use base::{Bytes, Rate, Span};
use nvme::pdu::{Digests, Framing};
use san::connection::StreamConfig;
use san::egress::{RankConfig, SchedulingConfig, Service, StorageDrivenConfig};
use san::gimbal::GimbalConfig;
use san::host::{CoresConfig, HostConfig, HostSessions};
use san::reserve::{Estimate, OverCommitment, ReservationConfig};
use san::retry::{RetryPolicy, quiesce_wait};
use san::route::{DistanceConfig, EcmpHash, Horizon, Policy, RouteConfig};
use san::target::{Admission, TargetConfig};
use san::wire::WireConfig;
use topology::VertexId;

words! {
    /// Choice of the egress port of an I/O's first packet.
    RoutePolicyName is Policy {
        /// INT-assisted symmetric routing as the text of 4.3 has it: least delay, then fewest hops.
        Isr is Policy::Isr,
        /// As Algorithm 1 is printed: a faster port that is farther is never taken.
        IsrAsPrinted is Policy::IsrAsPrinted,
        /// Always the same of the shortest paths.
        ShortestPath is Policy::ShortestPath,
        /// One of the shortest paths by a hash of the session, as with flows over TCP.
        EcmpSession is ECMP_SESSION,
        /// One of the shortest paths by a hash of the I/O.
        EcmpIo is ECMP_IO,
    }
}

const ECMP_SESSION: Policy = Policy::Ecmp(EcmpHash::Session);
const ECMP_IO: Policy = Policy::Ecmp(EcmpHash::Io);

/// Whether a policy learns from responses.
pub(crate) const fn learns(policy: Policy) -> bool {
    matches!(policy, Policy::Isr | Policy::IsrAsPrinted)
}

words! {
    /// Advertisements to neighbours of paths through themselves.
    HorizonName is Horizon {
        /// None: split horizon with poisoned reverse.
        PoisonedReverse is Horizon::PoisonedReverse,
        /// The best path that does not begin with them.
        BestOther is Horizon::BestOther,
    }
}

table! {
    /// Routing of I/Os. With the designs san and san-plain.
    RoutingFile => RouteConfig with design: DesignName {
        /// Choice of ports: isr with san, ecmp-session with san-plain when not given.
        policy: RoutePolicyName => match design {
            DesignName::San => Policy::Isr,
            _ => ECMP_SESSION,
        },
        /// Whether responses take the reverse path of their request (paper, 4.3). By default where
        /// ISR or reservation requires it.
        symmetric: bool => learns(policy),
        /// Whether packets carry the ISR header, which every hop lengthens (paper, Figure 10). By
        /// default where ISR or symmetry requires it.
        header: bool => symmetric,
        /// Weight of a new delay in the moving average, in 1,024ths. Ours: an eighth, as TCP's
        /// round-trip time has (RFC 6298).
        ewma_weight: u16 [1 to 1_024] = 128,
        /// Queue length of a port above which a hop marks packets. Ours: DCTCP's rule of a seventh
        /// of bandwidth times delay, for 100 Gb/s and 40 us, rounded to frames. "unlimited" marks
        /// nothing.
        ecn_threshold: crate::quantity::Limit<Quantity<Bytes>> = Some(Bytes::kib(72)),
        /// Whether hops mark responses too. The paper marks on the submission path only (4.3).
        mark_answers: bool = false,
        /// Extra hops of a chosen path beyond the shortest. The header of one frame limits the hops
        /// of a path. Ours.
        stretch: u16 [to 1_000] = 2,
        /// Half-life of learnt delays without news. Ours: some round trips to a drive.
        stale_after: Quantity<Span> ["1us" to "1h"] = Span::us(500),
        /// Whether parallel cables between two neighbours are a link aggregation group, of which a
        /// session uses one by a hash (paper, 3.1: NIC teaming). Otherwise the policy chooses among
        /// them as among paths. `fabric.trunk` is a group as one wide pipe.
        teams: bool = false,
        /// Candidate ports of each destination, the paper's K (3.2). Ours: as many as the adapter
        /// of a 3D torus has.
        candidates: u16 [1 to 256] = 6,
        /// Period of unsolicited advertisements of distances. Ours: recovery then takes about the
        /// millisecond of the paper (5.4).
        period: Quantity<Span> ["1us" to "1h"] = Span::ms(10),
        /// Silence after which a neighbour counts as dead; longer than `period`. Ours.
        hold: Quantity<Span> ["1us" to "1h"] = Span::ms(35),
        /// Shortest time between two advertisements. Ours.
        trigger_gap: Quantity<Span> ["1us" to "1h"] = Span::us(100),
        /// Advertisements to neighbours of paths through themselves. Ours.
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
        teams,
        distance: DistanceConfig { infinity, period, hold, trigger_gap, candidates, horizon },
    } from {
        // The size of the network says it.
        let infinity = 0;
    } to {}
}

table! {
    /// A target's estimate of the capacity of its drives, and its division among sessions: Gimbal
    /// (Min et al., SIGCOMM 2021), on which the paper builds (4.5). Used with
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
        /// Factor of the rate's growth while the drive is underused (Gimbal).
        underused_factor: u64 [1 to 1_024] = 8,
        /// The rate at the start. Gimbal begins with 1,000 MiB/s, a known part of what its drive
        /// reads, and climbs a byte or eight for each byte read: longer than most runs here. By
        /// default the rate of the drive's link, from which it falls when the drive is slow.
        rate_initial: Quantity<Rate> ["1Mbps" to "100Tbps"] = PM9A3_LINK,
        /// The least rate (Gimbal: 50 MiB/s).
        rate_min: Quantity<Rate> ["1Mbps" to "100Tbps"] = mebibytes_a_second(50),
        /// The greatest rate. Gimbal's is 4 GiB/s, above what its drive reads; that, or the rate of
        /// the drive's link where it is more.
        rate_max: Quantity<Rate> ["1Mbps" to "100Tbps"] = PM9A3_LINK,
        /// The most tokens of reads, and of writes (Gimbal).
        bucket_max: Quantity<Bytes> ["4KiB" to "1TiB"] = Bytes::kib(256),
        /// Completed bytes between two samples of the completion rate (Gimbal).
        sample_bytes: Quantity<Bytes> ["4KiB" to "1TiB"] = Bytes::kib(16 << 10),
        /// The write cost at the start and its greatest, in halves (Gimbal: 9).
        cost_max_halves: u32 [2 to 1_024] = 18,
        /// Decrease of the write cost while writes are quick, in halves (Gimbal: 0.5).
        cost_step_halves: u32 [1 to 1_024] = 1,
        /// Period of updates of the write cost (Gimbal).
        cost_period: Quantity<Span> ["1us" to "1h"] = Span::ms(100),
        /// Whether the write cost follows Gimbal's released code and not its paper: it rises only
        /// with reads in the period or when the drive is overloaded, and falls without writes too.
        cost_is_as_released: bool = false,
        /// Quantum of a session in each round (Gimbal).
        quantum: Quantity<Bytes> ["4KiB" to "1TiB"] = Bytes::kib(128),
        /// Weight of I/Os that fill a virtual slot (Gimbal).
        slot_bytes: Quantity<Bytes> ["4KiB" to "1TiB"] = Bytes::kib(128),
        /// Virtual slots that the active sessions share. Gimbal's 8 fill its drive, a DCT983 that
        /// reads 3.2 GB/s; by default as many for each 3.2 GB/s of the drive's link.
        slots: u32 [1 to 256] = 17,
        /// A session's credit before a slot of its own has completed (Gimbal).
        credit_initial: u32 [1 to 65_536] = 32,
        /// Queued I/Os of a session at a target at most. Ours: a bound on memory.
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
    /// Software of both ends of a session.
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
    /// SPDK's are fitted to Figure 2c: a read of 4 KiB through an adapter takes the 85 us and one
    /// of 256 KiB the 182 us that 2.9 us and 3.1 us are 3.4 % and 1.7 % of; the four passes of a
    /// read are taken as equal. (SPDK polls, over the kernel's sockets.) Linux' are ours: what
    /// interrupts and wake-ups usually add to SPDK's.
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
        /// The stack, which has the defaults of the times below.
        stack: StackName = StackName::Spdk,
        /// Latency from the initiator to its link, for each packet.
        send: Quantity<Span> [to "1s"] => stack.ends().host_send,
        /// Latency from the response to the application.
        complete: Quantity<Span> [to "1s"] => stack.ends().host_complete,
        /// Time of copies and checksums at both ends for each 4 KiB of an I/O.
        per_4_kib: Quantity<Span> [to "1s"] => stack.ends().per_4_kib,
        /// Latency from the target's link to its program, for each packet.
        target_receive: Quantity<Span> [to "1s"] => stack.ends().target_receive,
        /// Latency from the target's program to its link, for each packet.
        target_send: Quantity<Span> [to "1s"] => stack.ends().target_send,
        /// Whether a session limits its outstanding I/Os to the credit of its target (paper, 4.5).
        /// By default with san.
        credits: bool => given.design == DesignName::San,
        /// Cores of a host for its I/Os; each session has one of them. The paper's clients have two
        /// Xeons (3.1) and it does not say how many cores poll. There are always enough when not
        /// given.
        cores: u32 [1 to 1_024],
        /// Time of a core for an I/O, both ways. An idle core adds nothing to latency: that is in
        /// `send` and `complete`. Ours; 1 us to 4 us are usual for NVMe/TCP.
        core_time: Quantity<Span> ["1ns" to "1s"] = Span::us(2),
        /// Treatment of writes whose path failed.
        retry: RetryName = RetryName::CrossControllerReset,
        /// Their wait. By default the sum of the lifetimes of a packet, a command and a drive's
        /// work.
        quiesce_wait: Quantity<Span> [to "1h"] where [retry = "quiesce"] => given.life().unwrap_or(Span::ZERO),
        /// Silence after which a command is sent a second time; `timeout` where that is shorter. 8
        /// ms when not given; 30 s with windows, which repair losses by themselves. TCP's tail loss
        /// probe (RFC 8985, 7.2) as Linux has it: two round trips, small here, and 2 ticks of its
        /// clock (commit bb4d991a28cc), of which Ubuntu 22.04, the paper's, has 250 a second.
        probe: Quantity<Span> ["1us" to "1h"] => if given.repairs_losses() { Span::secs(30) } else { Span::ms(8) },
        /// Silence after which it is sent again later. 20 ms when not given, which is ours; with
        /// windows 30 s, as Linux' `nvme_core.io_timeout`.
        timeout: Quantity<Span> ["1us" to "1h"] => if given.repairs_losses() { Span::secs(30) } else { Span::ms(20) },
        /// Floor of an adaptive timeout, which takes the place of `probe` and `timeout` once a
        /// session has had a response: the smoothed time from sends to ends of I/Os plus four
        /// deviations, doubled by each loss up to `timeout` (RFC 6298). The paper says nothing of
        /// timeouts. Without a floor there is none: `probe` and `timeout` stay.
        timeout_min: Quantity<Span> ["1us" to "1h"],
        /// Sends without a response after which a path has failed. Ours.
        sends: u8 [1 to 255] = 3,
        /// Back-off after the first refusal of a command; it doubles with each. Ours: a fraction of
        /// a drive's read.
        back_off: Quantity<Span> ["1us" to "1h"] = Span::us(10),
        /// The longest back-off. Ours.
        back_off_max: Quantity<Span> ["1us" to "1h"] = Span::ms(1),
        /// Time for which a silent path is avoided where there is another. Ours.
        suspect: Quantity<Span> ["1us" to "1h"] = Span::ms(100),
        /// Entries of a queue pair. Linux' default for NVMe over fabrics.
        queue_entries: u16 [2 to 65_535] = 128,
        /// Queued I/Os of a session at most. Ours: a bound on memory.
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
            timeout_min,
            sends_max: sends,
            back_off,
            back_off_max,
            suspect_for: suspect,
            retry: policy,
            stream,
            links,
            cores: host_cores,
        },
    } from {
        let host_cores = cores.map(|count| CoresConfig { count, per_io: core_time });
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
        let (cores, core_time) = (host_cores.map(|all| all.count), host_cores.map_or(Span::us(2), |all| all.per_io));
        // Which software it was decides nothing beside its times.
        let stack = StackName::Spdk;
        let (retry, quiesce_wait) = match policy {
            RetryPolicy::Naive => (RetryName::Naive, Span::ZERO),
            RetryPolicy::Quiesce { wait } => (RetryName::Quiesce, wait),
            RetryPolicy::CrossControllerReset => (RetryName::CrossControllerReset, Span::ZERO),
        };
    }
}

/// Inputs of a host's end of its sessions.
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
        /// Whether every read returns the last acknowledged write of its block. By default with
        /// faults.
        write_order: bool,
    }
}

table! {
    /// Bandwidth for responses that their requests reserve on their way (paper, 4.4). With the
    /// designs san and san-plain.
    ReservationFile => ReservationConfig with given: Reserved {
        /// Whether requests reserve bandwidth. By default with san.
        on: bool => given.is_on,
        /// Expected rate of reads up to a size, sizes rising:
        /// `[["4KiB", "400Mbps"], ["128KiB", "7Gbps"]]`; larger ones have the rate of the last. The
        /// paper has it from profiles that it does not print; ours: the size over the unloaded
        /// latency of a PM9A3, of 80 us to 200 us.
        estimates: Vec<(Quantity<Bytes>, Quantity<Rate>)> [length 1 to 64] => ESTIMATES.to_vec(),
        /// The over-commitment factor by the headroom of a port, the share of what may be booked
        /// that reads under way are not expected to take: `[[headroom_at_least, factor], ...]`, the
        /// first that fits, else the last. A read books its estimate times the factor, and its
        /// answer may take the estimate over the factor. The paper has a step function that it
        /// found by trying and does not print (4.4), so that results that hang on it are
        /// undetermined. Ours is `[[0.5, 0.015625], [0.25, 0.125], [0.0, 0.25]]`: an idle port
        /// holds nothing back. Sensible are falling factors of 1/64 to 1 and a first step of 0.25
        /// to 0.75. `[[0.0, 1.0]]` is the paper's ratio of 1 (Figure 18), which throttles an idle
        /// port too.
        over_commitment: Vec<(Of1024, Of1024)> [length 1 to 64] => Plain::plain(OVER_COMMITMENT.to_vec()),
        /// Whether a port without headroom doubles the factor, to 1 at most, and ranks commands as
        /// if their drives had half the credit. By default where the fabric has switches: the
        /// paper's switched prototype "is more conservative (in terms of rate limiter and rank
        /// calculation) when bandwidth over-subscription happens" (5.1), without a number; by half
        /// is ours.
        conservative: bool => given.is_switched,
        /// Share of a port's rate that may be reserved. Requests beyond it are rejected. Ours: all
        /// of it.
        limit: Of1024 [0.01 to 1.0] = 1_024,
        /// Whether responses are limited to the reserved rate (the estimate times the factor), not
        /// to the estimate over the factor. Ours: the paper's Figure 18, where throughput grows
        /// with over-commitment, needs the latter.
        fills_at_booked: bool = false,
        /// Burst of a session. Ours.
        burst: Quantity<Bytes> ["9KB" to "1GiB"] = Bytes::kib(64),
        /// Number of classes of sessions (session modulo classes). Ours: a class for each of the
        /// paper's sessions, at most.
        classes: u32 [1 to 65_536] = 1_024,
        /// Time from a reservation or release until responses are limited by it. The paper's
        /// switched prototype "updates the reserved bandwidth through the control plane" (4.4)
        /// without a number; 50 us to 500 us are plausible. Zero: in the data plane, at once, as
        /// always in a switchless fabric, whose adapters have limiters in software (4.4).
        control_delay: Quantity<Span> [to "1s"] = Span::ZERO,
        /// Timeout of a reservation without a response: it lapses after one to two such spans.
        /// Ours.
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
        control_delay,
        data_end_reads,
        passes_rejected,
    } from {
        let steps = estimates.into_iter().map(|(bytes_max, rate)| Estimate { bytes_max, rate }).collect();
        let factor = |(headroom_min, factor)| OverCommitment { headroom_min, factor };
        let factors = over_commitment.into_iter().map(factor).collect();
        let control_delay = if given.is_switched { control_delay } else { Span::ZERO };
        // The wire says these.
        let (data_end_reads, passes_rejected) = (false, false);
    } to {
        let on = true;
        let estimates: Vec<_> = steps.iter().map(|step| (step.bytes_max, step.rate)).collect();
        let over_commitment: Vec<_> = factors.iter().map(|step| (step.headroom_min, step.factor)).collect();
    }
}

/// Inputs of the defaults of reservation.
#[derive(Clone, Copy)]
pub(crate) struct Reserved {
    pub is_on: bool,
    pub is_switched: bool,
}

words! {
    /// Queueing discipline of a port.
    QueueName {
        /// By rank, which follows from the credit of the target's drive (paper, 4.5).
        StorageDriven,
        /// One queue; packets that do not fit are dropped.
        Fifo,
    }
}

table! {
    /// Queues of every port. With the designs san and san-plain.
    SchedulingFile => SchedulingConfig with design: DesignName {
        /// Queueing discipline: storage-driven with san, fifo with san-plain when not given.
        policy: QueueName => match design {
            DesignName::San => QueueName::StorageDriven,
            _ => QueueName::Fifo,
        },
        /// Number of queues. The first is for packets that complete writes, with strict priority.
        /// Ours: the traffic classes of a switch port.
        queues: u8 [2 to 32] = 8,
        /// Packets a turn of each queue but the first, highest priority first (paper, 4.5: weighted
        /// round robin). Ours: 7, 6, 5 and so on with eight queues.
        weights: Vec<u32> [length 1 to 31] where [strict = false] => (1..u32::from(queues)).rev().collect(),
        /// Strict priority in place of turns: SP-PIFO as published.
        strict: bool = false,
        /// Credits of a step of the rank (paper, 4.5, without a number). Ours.
        credit_quantum: u32 [1 to 65_536] = 4,
        /// Rank of a drive without credit. This many quanta of credit and more have rank 0. Ours.
        rank_max: u8 [1 to 255] = 15,
        /// Credit of a drive without news. Ours: Gimbal's initial credit.
        unknown_credit: u32 [to 1_048_576] = 32,
        /// Rank of all packets that complete reads (paper, 4.5, without a number). Ours: the
        /// middle.
        read_rank: u8 [to 255] = 8,
    } as config from {
        let rank = RankConfig { quantum: credit_quantum, rank_max, unknown_credit, read_rank };
        let service = if strict { Service::Strict } else { Service::WeightedRoundRobin(weights) };
        let config = match policy {
            QueueName::Fifo => SchedulingConfig::Fifo,
            QueueName::StorageDriven => {
                SchedulingConfig::StorageDriven(StorageDrivenConfig { rank, queues, service })
            }
        };
    } to {
        let SchedulingConfig::StorageDriven(StorageDrivenConfig { rank, queues, service }) = config else {
            return SchedulingFile { policy: Some(QueueName::Fifo), ..SchedulingFile::default() };
        };
        let policy = QueueName::StorageDriven;
        let RankConfig { quantum: credit_quantum, rank_max, unknown_credit, read_rank } = rank;
        // Weights mean nothing beside `strict`.
        let (strict, weights) = match service {
            Service::Strict => (true, Vec::new()),
            Service::WeightedRoundRobin(weights) => (false, weights),
        };
    }
}

/// Expected rate of a read: its size over 80, 100, 130, 150 and 200 us.
const ESTIMATES: [(Bytes, Rate); 5] = [
    (Bytes::kib(4), Rate::bps(400_000_000)),
    (Bytes::kib(32), Rate::bps(2_600_000_000)),
    (Bytes::kib(64), Rate::gbps(4)),
    (Bytes::kib(128), Rate::gbps(7)),
    (Bytes::kib(256), Rate::bps(10_500_000_000)),
];

/// Headroom and factor. A lone read of 128 KiB, expected to take 7 Gb/s, may take 448 with the
/// first: more than any link here.
const OVER_COMMITMENT: [(Of1024, Of1024); 3] =
    [(Of1024(0.5), Of1024(1.0 / 64.0)), (Of1024(0.25), Of1024(0.125)), (Of1024(0.0), Of1024(0.25))];

words! {
    /// A host's treatment of the writes of a failed path.
    RetryName {
        /// Sends them again at once over another path: a late first copy then overwrites newer
        /// data.
        Naive,
        /// Sends them again when no first copy can be alive (NVMe TP4129).
        Quiesce,
        /// Has another association end the failed one, and sends them again when that is confirmed
        /// (NVMe TP8028).
        CrossControllerReset,
    }
}

words! {
    /// Admission of commands to a target's drives.
    AdmissionName {
        /// Gimbal, with credits of sessions (paper, 4.5).
        Gimbal,
        /// In order of arrival.
        Fifo,
    }
}

table! {
    /// Command processing of targets. With the designs san and san-plain.
    TargetFile => TargetConfig with given: Serving {
        /// Admission of commands: gimbal with san, fifo with san-plain when not given.
        policy: AdmissionName => given.policy(),
        /// Outstanding commands of a drive. Ours: several for every die of a PM9A3.
        depth: u32 [1 to 65_535] where [policy = "fifo"] = 256,
        /// Queued commands of a drive; more are refused. Ours: a bound on memory.
        waiting_max: usize [1 to 1_048_576] where [policy = "fifo"] = 16_384,
        /// Credit in every response. Ours: Gimbal's initial credit.
        credit: u32 [1 to 65_535] where [policy = "fifo"] = 32,
        /// Outstanding commands of a target. Ours: a bound on memory.
        flights_max: u32 [1 to 16_777_216] = 65_536,
        /// Longest time from a command's arrival to its start at the drive; later ones are aborted.
        /// "unlimited" for no limit, which `retry = "quiesce"` does not allow. Ours: far above the
        /// waits at a drive without faults.
        command_life: crate::quantity::Limit<Quantity<Span>> ["1us" to "1h"] = Some(Span::ms(50)),
        /// Largest age of a packet on arrival, by the time stamp of its first hop; older ones are
        /// dropped. "unlimited" for no limit. Ours.
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

/// Inputs of a target beside its own table.
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
    /// Transport of sessions: sharing of the network, and repair of losses.
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
        /// Packets leave as soon as the link is free. Commands whose packets are lost are sent
        /// again.
        Unpaced,
    }
}

table! {
    /// Transport and PDUs of sessions: NVMe/TCP. With the designs san and san-plain.
    WireFile => WireConfig with given: OnWire {
        /// Transport. By default tcp with san-plain, as the paper's hosts speak NVMe/TCP; unpaced
        /// with san, whose commands take paths of their own, and where bandwidth is reserved.
        transport: TransportName,
        /// The receive window of a session. Ours: a read of 256 KiB, the largest of the paper, with
        /// its headers; a drive of 6.8 GB/s sends it in 43 us.
        window_max: Quantity<Bytes> ["16KiB" to "1GiB"] where [transport = "tcp" | "dctcp"] = Bytes::kib(288),
        /// With windows: the least retransmission timeout. Ours: fine-grained timers, as "Safe and
        /// effective fine-grained TCP retransmissions" (SIGCOMM 2009) has them; Linux has 200 ms.
        /// With dcqcn+pfc: the timeout of a queue pair, by default 67.1 ms: 4.096 us times 2^14,
        /// which perftest asks adapters for.
        timeout_min: Quantity<Span> ["1us" to "60s"] where [transport = "tcp" | "dctcp" | "dcqcn+pfc"] = Span::ms(1),
        /// Parameters of both, as those of the rival dcqcn. `mtu` has no meaning: `fabric.mtu` and
        /// `segment` are the packets.
        dcqcn: DcqcnFile where [transport = "dcqcn+pfc"],
        /// Bytes of TCP options in every segment: 12 with timestamps (RFC 7323).
        tcp_options: u32 [to 40] where [transport = "tcp" | "dctcp" | "unpaced"] = 12,
        /// Payload of a simulated packet, several frames back to back: smaller is more exact and
        /// slower. Ours.
        segment: ByteCount ["1B" to "8MiB"] = 4 << 10,
        /// Largest in-capsule data of a write (IOCCSZ). Larger writes wait for the target's
        /// ready-to-transfer, as all of the paper's do (2.1).
        in_capsule: ByteCount [to "8MiB"] = 0,
        /// Data of one H2CData PDU (MAXH2CDATA). SPDK's default.
        host_data: ByteCount ["1B" to "8MiB"] = 128 << 10,
        /// Data of one C2HData PDU. SPDK's default.
        controller_data: ByteCount ["1B" to "8MiB"] = 128 << 10,
        /// Data of one ready-to-transfer. SPDK's default.
        ready: ByteCount ["1B" to "8MiB"] = 128 << 10,
        /// Whether the last data of a successful read have the success flag, without a response
        /// capsule. The paper's reads end with a response capsule (4.1), which releases their
        /// reservation.
        success_flag: bool = false,
        /// Whether a gap in the received data is requested at once: TCP's fast retransmit and
        /// RoCE's NAK.
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

/// Inputs of the wire's format beside its table.
#[derive(Clone, Copy)]
pub(crate) struct OnWire {
    pub mtu: u32,
    pub has_header: bool,
}

/// Bytes of RoCE's headers beyond IPv4's and TCP's 40: UDP, BTH and ICRC are 24 beside IPv4's 20.
const ROCE_BEYOND_TCP: u32 = 4;
