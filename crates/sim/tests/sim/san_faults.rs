//! What breaks: every request ends once, nothing acknowledged is lost, and the network comes back.

use crate::san_support::{config, load, network, paced, play, shared, windows};
use base::{Bytes, Seed, Span, Time};
use record::Outcome;
use san::DriveId;
use san::retry::RetryPolicy;
use san::route::Policy;
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
        let streams = [None, Some(windows()), Some(paced(Span::us(100)))];
        for (number, stream) in streams.into_iter().enumerate() {
            let config = stream.map_or(config.clone(), |stream| shared(config.clone(), stream));
            // `play` sees that each request ends once and all of its time is accounted for.
            let played = play(config.clone(), &load(&config, 0.5, 16, 2_000), seed);
            assert_eq!(played.fact("write_order_violations"), 0.0, "seed {seed}, {number}");
            assert_eq!(played.finished(), 2_000, "seed {seed}, {number}: {:?}", played.summary.counts);
        }
    }
}

/// One of two hosts reads so much through two switches that they pause the targets. Then a cable
/// goes for a while, shorter or longer than its ends take to notice, or a switch restarts: whoever
/// was paused goes on.
#[test]
fn what_was_paused_when_a_link_or_a_switch_went_goes_on_when_it_is_back() {
    let graph = network(Kind::LeafSpine { leaves: 2, spines: 1, endpoints_per_leaf: 9 }, 2, 9);
    let cables: Vec<LinkId> = (0..graph.links().len() as u32).map(LinkId).collect();
    let spine = graph.of_kind(VertexKind::Switch).last().expect("there are three");
    let mut paused = 0;
    let away = [Span::us(20), Span::us(400)];
    let times = |away| [120, 150, 200, 300].map(|at_us| (away, Time::us(at_us)));
    for (away, at) in away.into_iter().flat_map(times) {
        for what in cables.iter().map(|link| FaultKind::Link(*link)).chain([FaultKind::Vertex(spine)]) {
            let mut config = shared(config(graph.clone()), paced(Span::ZERO));
            (config.hop.reservation, config.host.credits) = (None, false);
            config.hop.route.policy = Policy::ShortestPath;
            config.faults = vec![fault(at, what, false), fault(at + away, what, true)];
            let load = workload::storage::Config { block: Bytes::kib(64), ..load(&config, 0.2, 128, 1_200) };
            let played = play(config, &load, 1);
            assert_eq!(played.finished(), 1_200, "{what:?} for {away} from {at:?}: {:?}", played.summary.warnings);
            let fact = |name: &str| played.summary.metrics.get(name).copied().unwrap_or_default();
            assert_eq!(fact("pfc_deadlocked_links"), 0.0);
            let last = played.rows.iter().map(|row| row.end).max().expect("there are rows");
            // A host that has lost its link asks anew after its timeout of 100 ms, whatever the
            // transport.
            assert!(last < Time::ms(150), "{what:?} for {away} from {at:?}: {last:?}");
            paused += u64::from(fact("pause_frames") > 0.0);
        }
    }
    assert!(paused > 0, "nobody was ever paused");
}

/// Four adapters in a ring, each of which sends what is for the one opposite over the next: with
/// thresholds that the first packets pass, all wait for each other, and the run says so.
#[test]
fn a_ring_that_deadlocks_is_named() {
    let graph = network(Kind::Ring { nodes: 8 }, 8, 8);
    let mut config = shared(config(graph), paced(Span::ZERO));
    (config.hop.reservation, config.host.credits, config.hop.route.policy) = (None, false, Policy::ShortestPath);
    config.hop.scheduling = san::egress::SchedulingConfig::Fifo;
    let load = workload::storage::Config { block: Bytes::kib(256), ..load(&config, 0.0, 64, 3_000) };
    let played = play(config, &load, 1);
    assert!(played.finished() < 3_000);
    assert!(played.fact("pfc_deadlocked_links") >= 8.0);
    let named =
        |warning: &String| warning.starts_with("priority flow control has deadlocked: ") && warning.contains(" -> a");
    assert!(played.summary.warnings.iter().any(named), "{:?}", played.summary.warnings);
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
