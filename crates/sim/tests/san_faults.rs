//! What breaks: every request ends once, nothing acknowledged is lost, and the network comes back.

mod san_support;

use base::{Seed, Span, Time};
use record::Outcome;
use san::DriveId;
use san::retry::RetryPolicy;
use san_support::{config, load, network, play};
use sim::rigs::san::{Fault, FaultKind, SanRigConfig};
use topology::{Graph, Kind, LinkId, VertexKind};

fn torus() -> Graph {
    network(Kind::Torus { dimensions: vec![3, 3] }, 4, 9)
}

fn two_switches() -> Graph {
    network(Kind::RedundantSwitches { switches: 2 }, 4, 9)
}

fn fault(at: Time, what: FaultKind, is_up: bool) -> Fault {
    Fault { at, what, is_up }
}

/// Breaks `what` at 500 us and mends it at 1.5 ms.
fn broken_for_a_millisecond(graph: Graph, what: FaultKind) -> SanRigConfig {
    let mut config = config(graph);
    config.faults = vec![fault(Time::us(500), what, false), fault(Time::us(1_500), what, true)];
    config
}

#[test]
fn a_link_between_adapters_may_go_without_a_request_being_lost() {
    let graph = torus();
    let between = |link: &LinkId| graph.link(*link).ends.iter().all(|end| graph.vertex(end.vertex).kind.forwards());
    let link = (0..graph.links().len() as u32).map(LinkId).find(between).expect("a torus has them");
    let config = broken_for_a_millisecond(graph.clone(), FaultKind::Link(link));
    let played = play(config.clone(), &load(&config, 0.5, 32, 6_000), 1);
    assert_eq!(played.finished(), 6_000);
    assert_eq!(played.fact("write_order_violations"), 0.0);
}

#[test]
fn one_of_two_switches_may_go_without_a_request_being_lost() {
    let graph = two_switches();
    let switch = graph.of_kind(VertexKind::Switch).next().expect("there are two");
    let config = broken_for_a_millisecond(graph, FaultKind::Vertex(switch));
    let played = play(config.clone(), &load(&config, 0.5, 32, 6_000), 1);
    assert_eq!(played.finished(), 6_000);
    assert!(played.fact("host_path_failures") > 0.0);
    assert_eq!(played.fact("write_order_violations"), 0.0);
}

#[test]
fn what_a_failed_drive_was_asked_ends_with_an_error_and_the_rest_is_served() {
    let config = broken_for_a_millisecond(torus(), FaultKind::Drive(DriveId(4)));
    let played = play(config.clone(), &load(&config, 0.5, 32, 6_000), 1);
    let failed: Vec<_> = played.rows.iter().filter(|row| row.outcome != Outcome::Finished).collect();
    assert!(!failed.is_empty() && failed.iter().all(|row| row.outcome == Outcome::Lost && row.target.0 == 4 + 4));
    assert!(failed.iter().all(|row| row.intended < Time::us(1_500)), "a drive that is back serves again");
    assert_eq!(played.fact("write_order_violations"), 0.0);
}

#[test]
fn under_random_faults_every_request_ends_once_and_no_acknowledged_write_is_undone() {
    for seed in 0..6 {
        let graph = if seed % 2 == 0 { torus() } else { two_switches() };
        let mut stream = Seed(seed).stream("faults");
        let mut config = config(graph);
        let links = config.graph.links().len() as u64;
        for _ in 0..4 {
            let what = FaultKind::Link(LinkId(stream.below(links) as u32));
            let at = Time::us(100 + stream.below(2_000));
            config.faults.push(fault(at, what, false));
            config.faults.push(fault(at + Span::us(20 + stream.below(3_000)), what, true));
        }
        let policy = [RetryPolicy::CrossControllerReset, RetryPolicy::Quiesce { wait: Span::ms(20) }];
        config.host.retry = policy[seed as usize / 2 % 2];
        // `play` sees that each request ends once and all of its time is accounted for.
        let played = play(config.clone(), &load(&config, 0.5, 16, 2_000), seed);
        assert_eq!(played.fact("write_order_violations"), 0.0, "seed {seed}");
        assert_eq!(played.finished(), 2_000, "seed {seed}: {:?}", played.summary.counts);
    }
}

#[test]
fn memory_is_bounded_by_what_is_in_flight() {
    let config = config(torus());
    let events = |requests| {
        let played = play(config.clone(), &load(&config, 0.3, 32, requests), 1);
        played.fact("in_flight_packets_max")
    };
    let (short, long) = (events(2_000), events(10_000));
    assert!(long <= short * 2.0 && long < 4_000.0, "{short} {long}");
}
