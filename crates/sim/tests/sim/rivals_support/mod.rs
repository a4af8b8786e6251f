//! What the tests of the rivals share: a network, random traffic, and measurements.
#![allow(dead_code, reason = "each test file uses some of it")]

use base::{Bytes, NodeId, Operation, Rate, Seed, Span, Time};
use hardware::{DramConfig, EthernetStack, RemoteAccess};
use sim::rigs::packet::{Bench, PacketRig, PacketRigConfig};
use transport::{Host, Switch};

pub const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::ReadModifyWrite];
pub const RATE: Rate = Rate::gbps(100);

/// A rack of `nodes` at 100 Gb/s with the latencies of EDM's Table 1. Every packet goes through its
/// wire format and back.
pub fn network(nodes: u32) -> PacketRigConfig {
    PacketRigConfig {
        nodes,
        rate: RATE,
        propagation: Span::ns(10),
        stack: EthernetStack::RAW,
        read_request_bytes: Bytes::new(8),
        memory: DramConfig { latency: Span::ns(50), bandwidth: Some(Rate::gbps(400)) },
        remote: RemoteAccess::default(),
        cut_through: false,
        wire_check: true,
        seed: Seed(1),
    }
}

pub fn write<H: Host, S: Switch>(
    bench: &mut Bench<H, S>,
    at: Time,
    source: u32,
    target: u32,
    bytes: u64,
) -> sim::drive::Ticket {
    bench.issue(at, Operation::Write, NodeId(source), NodeId(target), Bytes::new(bytes))
}

/// A schedule of requests between random pairs, at random times up to `within`, of random sizes up
/// to `bytes_max`.
pub fn random_requests<H: Host, S: Switch>(
    bench: &mut Bench<H, S>,
    seed: u64,
    nodes: u32,
    count: u32,
    within: Span,
    bytes_max: u64,
) {
    let mut stream = Seed(seed).stream("test/requests");
    let mut schedule: Vec<_> = (0..count)
        .map(|_| {
            let source = stream.below(u64::from(nodes)) as u32;
            let target = (source + 1 + stream.below(u64::from(nodes) - 1) as u32) % nodes;
            let operation = OPERATIONS[stream.below(3) as usize];
            let bytes = 1 + stream.below(bytes_max);
            (Time::ps(stream.below(within.as_ps())), operation, NodeId(source), NodeId(target), Bytes::new(bytes))
        })
        .collect();
    schedule.sort_by_key(|(at, ..)| *at);
    for (at, operation, source, target, bytes) in schedule {
        bench.issue(at, operation, source, target, bytes);
    }
}

/// How many of `count` requests ended, none of them twice.
pub fn ended_once<H: Host, S: Switch>(bench: &Bench<H, S>) -> usize {
    let mut tickets: Vec<_> = bench.ended.iter().map(|ended| ended.ticket).collect();
    tickets.sort();
    tickets.dedup();
    assert_eq!(tickets.len(), bench.ended.len(), "a request ended twice");
    tickets.len()
}

/// The share of the time up to `until` in which the links to `nodes` were busy.
pub fn utilisation<H: Host, S: Switch>(rig: &PacketRig<H, S>, nodes: std::ops::Range<u32>, until: Time) -> f64 {
    let count = nodes.len() as f64;
    let bytes: u64 = nodes.map(|node| rig.link_bytes(NodeId(node)).down).sum();
    bytes as f64 * 8.0 / (until.as_secs_f64() * RATE.as_bps() as f64 * count)
}
