//! What tests of the EDM rig share.
#![allow(dead_code)]

pub mod programs;

use base::{Bytes, Clock, NodeId, Operation, Rate, Request, RequestId, Seed, Span, Time};
use edm::Config;
use hardware::DramConfig;
use proptest::prelude::*;
use record::{Outcome, Row, RunIdentity, Summary};
use sim::drive::{Limits, Unobserved, WarmUp, drive};
use sim::rigs::edm::{EdmRig, EdmRigConfig};
use workload::{Arrival, Arrivals, Class, Generator, Pattern, SizeDistribution, Source};

/// EDM as on the paper's testbed: 25 GbE, everything at 2.56 ns.
pub fn testbed() -> EdmRigConfig {
    EdmRigConfig {
        edm: Config::TESTBED,
        nodes: 2,
        rate: Rate::gbps(25),
        propagation: Span::ns(10),
        transceiver: Span::ns(19),
        memory: DramConfig { latency: Span::ZERO, bandwidth: None },
        redundant: false,
        faults: Vec::new(),
        background: None,
        wire_check: true,
    }
}

/// EDM at scale: 100 Gb/s and a 3 GHz scheduler.
pub fn cluster(nodes: u32) -> EdmRigConfig {
    let testbed = testbed();
    let edm = Config { scheduler_clock: Clock::mhz(3_000), ..testbed.edm };
    EdmRigConfig { nodes, rate: Rate::gbps(100), edm, ..testbed }
}

/// Plays fixed requests.
pub struct Script(Vec<Arrival>);

impl Script {
    /// `(time, source, target, operation, bytes)` in order of time.
    pub fn new(requests: &[(Time, u32, u32, Operation, u64)]) -> Script {
        let arrival = |(id, &(at, source, target, operation, bytes)): (usize, &(Time, u32, u32, Operation, u64))| {
            let (id, source, target) = (RequestId(id as u64), NodeId(source), NodeId(target));
            Arrival { at, request: Request { id, operation, source, target, address: 0, bytes: Bytes::new(bytes) } }
        };
        Script(requests.iter().enumerate().map(arrival).collect())
    }
}

impl Source for Script {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        out.append(&mut self.0);
    }
    fn after_arrival(&mut self, _: &Arrival) -> Option<Arrival> {
        None
    }
    fn after_end(&mut self, _: Time, _: &Request) -> Option<Arrival> {
        None
    }
}

/// Runs `rig` over `source` without a warm-up and gives every row and the summary.
pub fn play(rig: &mut EdmRig, source: &mut dyn Source) -> (Vec<Row>, Summary) {
    play_with(rig, source, Span::ZERO)
}

/// Runs are measured after `warm_up` and waited for.
pub fn limits(warm_up: Span) -> Limits {
    Limits {
        warm_up: WarmUp::Time(warm_up),
        drain: Span::ms(100),
        memory: hardware::DramConfig { latency: Span::ZERO, bandwidth: None },
        planned_load: None,
        first_fault: None,
        spans: record::Keep::Nothing,
        series: None,
    }
}

/// Runs `rig` over `source` with a warm-up.
pub fn play_with(rig: &mut EdmRig, source: &mut dyn Source, warm_up: Span) -> (Vec<Row>, Summary) {
    let mut rows = Vec::new();
    let limits = limits(warm_up);
    let outcomes = drive(rig, source, &mut rows, RunIdentity::default(), &limits, &mut Unobserved);
    (rows, outcomes.expect("a vector takes every row").summary)
}

/// All-to-all Poisson requests of one size: reads with weight `reads`, writes with `1 - reads`.
pub fn uniform(nodes: u32, requests: u64, mean_gap_ps: f64, reads: f64, bytes: u64, seed: u64) -> Generator {
    let class =
        |operation, weight| Class { operation, weight, size: SizeDistribution::Constant { bytes: Bytes::new(bytes) } };
    let config = workload::Config {
        nodes,
        pattern: Pattern::AllToAll,
        mix: vec![class(Operation::Read, reads), class(Operation::Write, 1.0 - reads)],
        local_fraction: 0.0,
        arrivals: Arrivals::Poisson { mean_gap_ps },
        requests: Some(requests),
        duration: None,
    };
    Generator::new(&config, Seed(seed))
}

/// One request of a [`Script`]: `(time, source, target, operation, bytes)`.
pub type Plain = (Time, u32, u32, Operation, u64);

/// Random requests in order of time: sizes from 1 B to 100 KB (most are small), every operation,
/// spread out, in bursts, and from everybody to one.
pub fn loads(nodes: u32, most: usize) -> impl Strategy<Value = Vec<Plain>> {
    let size = prop_oneof![
        4 => 1u64..=8,
        4 => Just(64u64),
        4 => 1u64..1_000,
        1 => 1u64..100_000,
    ];
    let operation = prop_oneof![
        3 => Just(Operation::Read),
        3 => Just(Operation::Write),
        1 => Just(Operation::ReadModifyWrite),
    ];
    let gap = prop_oneof![3 => Just(0u64), 3 => 1u64..3_000, 1 => 1u64..1_000_000];
    let request = (gap, 0..nodes, 1..nodes, size, operation);
    (proptest::collection::vec(request, 1..most), any::<bool>()).prop_map(move |(requests, incast)| {
        let mut at = Time::ns(1);
        let plain = |(gap, source, distance, bytes, operation): (u64, u32, u32, u64, Operation)| {
            at += Span::ps(gap);
            let target = if incast && source != 0 { 0 } else { (source + distance) % nodes };
            (at, source, target, operation, bytes)
        };
        requests.into_iter().map(plain).collect()
    })
}

/// Panics unless every request has exactly one row, and that is about it.
pub fn everything_ends_once(requests: &[Plain], rows: &[Row]) {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.request);
    assert_eq!(rows.len(), requests.len(), "every request has one row");
    for (number, (row, (at, source, target, operation, bytes))) in rows.iter().zip(requests).enumerate() {
        assert_eq!(row.request, RequestId(number as u64));
        let said = (row.intended, row.source.0, row.target.0, row.operation, row.bytes.count());
        assert_eq!(said, (*at, *source, *target, *operation, *bytes));
        assert_ne!(row.outcome, Outcome::Unfinished, "{row:?}");
    }
}
