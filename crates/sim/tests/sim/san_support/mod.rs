//! What tests of the rig of storage networks share: small networks with everything on, and a run
//! whose rows add up.
#![allow(dead_code, reason = "each test binary uses a part")]

use base::{Bytes, Length, Rate, Seed, Span};
use hardware::DramConfig;
use hardware::ssd::presets::pm9a3_960_quick;
use nvme::pdu::Framing;
use plan::san::{EndTimes, Passing};
use record::{Outcome, Row, RunIdentity, Summary};
use san::connection::{PacedConfig, Sharing, StreamConfig, WindowConfig};
use san::egress::{RankConfig, SchedulingConfig, Service, StorageDrivenConfig};
use san::gimbal::GimbalConfig;
use san::host::{HostConfig, HostSessions};
use san::reserve::{Estimate, OverCommitment, ReservationConfig};
use san::retry::RetryPolicy;
use san::route::{DistanceConfig, Horizon, Policy, RouteConfig};
use san::target::{Admission, TargetConfig};
use san::wire::WireConfig;
use sim::drive::{Flow, Limits, Observer, Progress, WarmUp, play as play_rig};
use sim::rigs::san::{Checks, DriveModel, DrivesConfig, HopPolicy, SanRig, SanRigConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use topology::{Cabling, Config, Endpoints, Graph, Kind, Lengths, Placement, Ports, VertexId};
use transport::config::{Dcqcn, Pause};
use workload::storage::{Addresses, Arrivals, Assignment, Generator, Mix};

/// 4 KiB.
pub const BLOCK: Bytes = Bytes::kib(4);

/// A network of 100 Gb/s links of 2 m.
pub fn network(kind: Kind, hosts: u32, targets: u32) -> Graph {
    let config = Config {
        kind,
        endpoints: Endpoints { hosts, targets, placement: Placement::Spread },
        ports: Ports { endpoint: 8, adapter: 16, switch: 128 },
        cabling: Cabling {
            rate: Rate::gbps(100),
            board_rate: Rate::gbps(600),
            fabric_cables: 1,
            endpoint_cables: 1,
            lengths: Lengths { endpoint: Length::m(2), near: Length::m(2), far: Length::m(2) },
        },
    };
    config.build().expect("the network of a test is right")
}

/// What is common to the networks here, all of traffic control on.
pub fn config(graph: Graph) -> SanRigConfig {
    SanRigConfig {
        graph: Arc::new(graph),
        passing: Passing {
            adapter_latency: Span::ns(1_400),
            adapter_gap: Span::ZERO,
            switch_latency: Span::ns(600),
            board_latency: Span::us(1),
            card_crossing: Span::ZERO,
            card_ports: 2,
            detection: Span::us(50),
            queue: Bytes::kib(512),
            mtu: Bytes::new(1_500),
        },
        ends: EndTimes {
            host_send: Span::us(3),
            host_complete: Span::us(4),
            per_4_kib: Span::ns(600),
            target_receive: Span::us(4),
            target_send: Span::us(4),
        },
        drives: DrivesConfig { per_target: 1, model: DriveModel::Quick(pm9a3_960_quick(Bytes::kib(1 << 20))) },
        hop: HopPolicy { route: route(), reservation: Some(reservation()), scheduling: scheduling() },
        host: host(),
        target: target(),
        faults: Vec::new(),
        seed: Seed(1),
        checks: Checks { write_order: true, wire: false },
    }
}

fn route() -> RouteConfig {
    RouteConfig {
        policy: Policy::Isr,
        is_symmetric: true,
        has_header: true,
        ewma_weight: 128,
        ecn_threshold: Some(Bytes::kib(72)),
        marks_answers: false,
        stretch_max: 2,
        stale_after: Span::us(500),
        teams: false,
        distance: DistanceConfig {
            infinity: 32,
            period: Span::ms(1),
            hold: Span::ms(5),
            trigger_gap: Span::us(50),
            candidates: 6,
            horizon: Horizon::PoisonedReverse,
        },
    }
}

fn reservation() -> ReservationConfig {
    let estimate = |kib, gbps| Estimate { bytes_max: Bytes::kib(kib), rate: Rate::gbps(gbps) };
    ReservationConfig {
        estimates: vec![estimate(4, 1), estimate(32, 4), estimate(128, 10)],
        over_commitment: vec![
            OverCommitment { headroom_min: 512, factor: 128 },
            OverCommitment { headroom_min: 128, factor: 256 },
            OverCommitment { headroom_min: 0, factor: 512 },
        ],
        limit: 1_024,
        is_conservative: false,
        fills_at_booked: false,
        burst: Bytes::kib(256),
        classes: 64,
        lapse: Span::ms(5),
        control_delay: Span::ZERO,
        data_end_reads: true,
        passes_rejected: false,
    }
}

fn scheduling() -> SchedulingConfig {
    SchedulingConfig::StorageDriven(StorageDrivenConfig {
        rank: RankConfig { quantum: 4, rank_max: 7, unknown_credit: 32, read_rank: 4 },
        queues: 8,
        service: Service::Strict,
    })
}

fn wire() -> WireConfig {
    WireConfig {
        mtu: 1_500,
        tcp_options: 12,
        has_header: true,
        framing: Framing::default(),
        segment_max: 16 << 10,
        in_capsule_max: 0,
        host_data_max: 128 << 10,
        controller_data_max: 128 << 10,
        ready_max: 128 << 10,
        success_flag: true,
        fast_retransmit: true,
    }
}

fn host() -> HostConfig {
    HostConfig {
        vertex: VertexId(0),
        sessions: HostSessions::default(),
        wire: wire(),
        queue_entries: 256,
        credits: true,
        credit_initial: 32,
        waiting_max: 1 << 16,
        probe: Span::ms(5),
        timeout: Span::ms(5),
        timeout_min: None,
        cores: None,
        sends_max: 3,
        back_off: Span::us(20),
        back_off_max: Span::ms(1),
        suspect_for: Span::ms(5),
        stream: None,
        links: Vec::new(),
        retry: RetryPolicy::CrossControllerReset,
    }
}

fn target() -> TargetConfig {
    TargetConfig {
        wire: wire(),
        admission: Admission::Gimbal(gimbal()),
        drives: Vec::new(),
        sessions: Vec::new(),
        queue_entries: 256,
        lanes: 1,
        flights_max: 1 << 16,
        command_life_max: None,
        packet_life_max: None,
        stream: None,
        links: Vec::new(),
    }
}

/// TCP's windows.
pub fn windows() -> Sharing {
    Sharing::Window(WindowConfig { initial: 15_000, max: 288 << 10, obeys_marks: false })
}

/// DCQCN over priority flow control with small thresholds.
pub fn paced(reorder_timeout: Span) -> Sharing {
    let dcqcn = Dcqcn {
        mark_from: Bytes::new(12_500),
        mark_all: Bytes::new(500_000),
        pause: Pause::Static { above: Bytes::new(40_000), below: Bytes::new(20_000) },
        additive_bps: 100_000_000,
        hyper_bps: 1_000_000_000,
        ..Dcqcn::PUBLISHED
    };
    Sharing::Paced(PacedConfig { dcqcn, reorder_timeout })
}

/// The same network, whose sessions share it so.
pub fn shared(config: SanRigConfig, sharing: Sharing) -> SanRigConfig {
    let stream = StreamConfig { segment: 17_500, timeout_min: Span::ms(1), acknowledgement: 86, sharing };
    let (mut host, mut target) = (config.host, config.target);
    (host.stream, target.stream) = (Some(stream), Some(stream));
    (host.probe, host.timeout) = (Span::ms(100), Span::ms(100));
    let reservation = config.hop.reservation.map(|it| ReservationConfig { passes_rejected: true, ..it });
    SanRigConfig { host, target, hop: HopPolicy { reservation, ..config.hop }, ..config }
}

fn gimbal() -> GimbalConfig {
    GimbalConfig { waiting_max: 1 << 14, ..GimbalConfig::PUBLISHED }
}

/// Requests of 4 KiB from every host to every drive, uniform, in a closed loop.
pub fn load(config: &SanRigConfig, write_share: f64, depth: u32, requests: u64) -> workload::storage::Config {
    let count = |kind| config.graph.of_kind(kind).count() as u32;
    workload::storage::Config {
        clients: count(topology::VertexKind::Host),
        volumes: count(topology::VertexKind::Target) * config.drives.per_target,
        assignment: Assignment::All,
        block: BLOCK,
        working_set_blocks: 1 << 12,
        mix: Mix::with_write_share(write_share),
        addresses: Addresses::Uniform,
        arrivals: Arrivals::Closed { depth, think: Span::ZERO },
        requests: Some(requests),
        duration: None,
    }
}

/// A run and what came of it.
pub struct Played {
    pub rows: Vec<Row>,
    pub summary: Summary,
}

/// No run of these tests needs as many events. One that does goes round in circles.
const EVENTS_MAX: u64 = 20_000_000;

struct Bound;

impl Observer for Bound {
    fn progress(&mut self, progress: &Progress) -> Flow {
        assert!(progress.events < EVENTS_MAX, "no end after {progress:?}");
        Flow::Continue
    }
}

/// Plays a load; every row adds up, and each request ends once.
pub fn play(config: SanRigConfig, load: &workload::storage::Config, seed: u64) -> Played {
    let mut rig = SanRig::new(config).unwrap_or_else(|error| panic!("{error}"));
    let mut source = Generator::new(load, Seed(seed));
    let limits = Limits {
        warm_up: WarmUp::Requests(0),
        drain: Span::secs(2),
        memory: DramConfig { latency: Span::ZERO, bandwidth: None },
        planned_load: None,
        first_fault: None,
        spans: record::Keep::Nothing,
        series: None,
    };
    let identity = RunIdentity {
        version: "test".into(),
        plan_hash: "test".into(),
        design: "san".into(),
        seed,
        labels: BTreeMap::new(),
    };
    let mut rows = Vec::new();
    let mut played =
        play_rig(&mut rig, &mut source, &mut rows, identity, &limits, &mut Bound).expect("memory is a sink");
    rig.judge_write_order(&mut played.meter);
    rig.judge_pauses(&mut played.meter);
    let played = Played { rows, summary: played.finish().summary };
    played.check();
    played
}

impl Played {
    fn check(&self) {
        assert!(self.rows.iter().all(Row::adds_up), "spans sum to latencies");
        let mut requests: Vec<u64> = self.rows.iter().map(|row| row.request.0).collect();
        requests.sort_unstable();
        assert!(requests.windows(2).all(|pair| pair[0] < pair[1]), "each request ends once");
        assert_eq!(self.summary.counts.offered, self.rows.len() as u64);
    }
    /// A fact of the rig.
    pub fn fact(&self, name: &str) -> f64 {
        *self.summary.metrics.get(name).unwrap_or_else(|| panic!("no {name} among {:?}", self.summary.metrics.keys()))
    }
    pub fn finished(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome == Outcome::Finished).count()
    }
}
