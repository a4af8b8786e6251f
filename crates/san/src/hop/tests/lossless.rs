//! Tests of flow control: pauses, marks, and the absence of drops.

use super::*;
use crate::deadlock::circle_of_ways;
use base::Seed;
use transport::config::{Dcqcn, Pause};

fn dcqcn(pause: Pause) -> Dcqcn {
    Dcqcn {
        mark_from: Bytes::new(12_500),
        mark_all: Bytes::new(500_000),
        pause,
        additive_bps: 100_000_000,
        hyper_bps: 1_000_000_000,
        ..Dcqcn::PUBLISHED
    }
}

/// Builds a lossless configuration; the network fills in the headrooms.
fn lossless(pause: Pause) -> Option<LosslessConfig> {
    Some(LosslessConfig { dcqcn: dcqcn(pause), headrooms: Vec::new(), seed: Seed(1) })
}

fn at(above: u64, below: u64) -> Pause {
    Pause::Static { above: Bytes::new(above), below: Bytes::new(below) }
}

fn pauses(net: &Net) -> u64 {
    net.hops.iter().flatten().map(|hop| hop.counts().pauses).sum()
}

/// Sixteen simultaneous reads of 128 KiB, of a near and a far target on board links of 400 Gb/s,
/// over links of 100 Gb/s. Packets that are dropped without flow control wait before the hop that
/// both pass, and the bottleneck never idles.
#[test]
fn a_full_hop_pauses_the_one_before_it_and_nothing_is_dropped() {
    let read_all = |lossless: Option<LosslessConfig>| {
        let settings = HopConfig {
            buffer: Bytes::kib(64),
            reservation: None,
            lossless,
            scheduling: SchedulingConfig::Fifo,
            ..settings()
        };
        let mut net = Net::new(network(Kind::DaisyChain { nodes: 3 }, 1, 3), &settings);
        for read in 0..16 {
            let (host, target) = (VertexId(6), VertexId(4 + read % 2));
            net.begin(Time::ZERO, host, target, Operation::Read, 128 << 10, tag(read, read as u16));
        }
        net.run(Time::ms(5));
        assert_eq!(net.missing(), 0);
        net
    };
    assert!(read_all(None).dropped.len() > 100);
    let net = read_all(lossless(at(40_000, 30_000)));
    assert_eq!((net.dropped.len(), net.responses().count()), (0, 16));
    assert!(pauses(&net) > 0);
    let all = Rate::gbps(100).span_of(Bytes::new(16 * 32 * 4_216));
    let last = net.at_hosts.last().expect("all were answered").0;
    assert!(last >= Time::us(10) + all && last < Time::us(15) + all * 11 / 10, "{last:?} {all:?}");
    let still = |hop: &Hop| (0..hop.ports.len() as u16).map(Port).any(|port| hop.pauses(port) || hop.is_paused(port));
    assert!(!net.hops.iter().flatten().any(still), "who was paused may go on");
}

/// Between hops, no port ever holds more than its threshold and headroom.
#[test]
fn headroom_holds_what_comes_after_the_pause() {
    let settings = HopConfig { reservation: None, lossless: lossless(at(20_000, 10_000)), ..settings() };
    let mut net = Net::new(network(Kind::DaisyChain { nodes: 3 }, 2, 3), &settings);
    for read in 0..24 {
        let (host, target) = (VertexId(6 + read % 2), VertexId(3 + read % 3));
        net.begin(Time::ZERO, host, target, Operation::Read, 256 << 10, tag(read, read as u16));
    }
    net.run(Time::ms(20));
    assert_eq!((net.dropped.len(), net.missing(), net.responses().count()), (0, 0, 24));
    for (vertex, hop) in (0..).map(VertexId).zip(&net.hops) {
        let Some(hop) = hop else { continue };
        for (port, end) in (0..).map(Port).zip(net.graph.hops(vertex)) {
            let rate = net.graph.link(end.channel.link()).rate;
            let most = Bytes::new(20_000 + 84 + 4 * 4_400) + rate.bytes_in(Span::ns(400));
            let is_hop = net.graph.vertex(end.to).kind.forwards();
            assert!(!is_hop || hop.ingress_max(port) <= most, "{vertex:?} by {port:?}");
        }
    }
}

/// A hop is paused by one neighbour: data wait, acknowledgements pass, and data resume as soon as
/// allowed.
#[test]
fn a_pause_holds_data_and_no_acknowledgement() {
    let net = Net::new(
        network(Kind::DaisyChain { nodes: 2 }, 1, 2),
        &HopConfig { reservation: None, lossless: lossless(at(40_000, 30_000)), ..settings() },
    );
    let mut hop = net.hop(0).clone();
    let by = |to: u32| Port(net.graph.hops(VertexId(0)).iter().position(|hop| hop.to.0 == to).unwrap() as u16);
    let (from, onward) = (by(4), by(1));
    let pause =
        |stop| Packet { kind: PacketKind::Pause { stop }, ..command(Operation::Read, 0, VertexId(1), VertexId(1)) };
    let mut read = command(Operation::Read, 4_096, VertexId(4), VertexId(3));
    let mut out = Vec::new();
    assert_eq!(hop.pass(Time::ZERO, onward, &mut pause(true), &mut out), Passed::Over);
    assert_eq!(hop.pass(Time::ZERO, from, &mut read, &mut out), Passed::Over, "it waits, and nobody need call");
    let to_target = PacketKind::Acknowledgement { to_target: true };
    let mut acknowledgement = Packet { kind: to_target, ..command(Operation::Read, 4_096, VertexId(4), VertexId(3)) };
    assert_eq!(hop.pass(Time::ZERO, from, &mut acknowledgement, &mut out), Passed::On(onward));
    let free = Time::ZERO + Rate::gbps(100).span_of(Bytes::new(u64::from(acknowledgement.frame)));
    assert_eq!(hop.pass(Time::ns(1), onward, &mut pause(false), &mut out), Passed::Waits(onward, free));
    assert_eq!(hop.next_to_send(free, onward).map(|packet| packet.kind), Some(PacketKind::Command));
    assert!(out.is_empty());
}

#[test]
fn a_link_that_comes_back_is_not_paused() {
    let net = Net::new(
        network(Kind::DaisyChain { nodes: 2 }, 1, 2),
        &HopConfig { reservation: None, lossless: lossless(at(40_000, 30_000)), ..settings() },
    );
    let mut hop = net.hop(0).clone();
    let port = Port(0);
    let pause =
        Packet { kind: PacketKind::Pause { stop: true }, ..command(Operation::Read, 0, VertexId(1), VertexId(1)) };
    let mut out = Vec::new();
    hop.on(Time::ZERO, HopIn::Packet { port, packet: pause }, &mut out);
    assert!(hop.is_paused(port));
    hop.on(Time::us(1), HopIn::LinkUp(port), &mut out);
    assert!(!hop.is_paused(port));
}

/// A command that a stream needs is forwarded without effect, and its host is notified all the
/// same.
#[test]
fn a_rejected_command_of_a_stream_goes_on_and_books_nothing() {
    let over_commitment = vec![OverCommitment { headroom_min: 0, factor: 1024 }];
    let reservation = ReservationConfig { passes_rejected: true, over_commitment, limit: 103, ..reservation() };
    let settings = HopConfig { reservation: Some(reservation), ..settings() };
    let mut net = Net::new(network(Kind::DaisyChain { nodes: 2 }, 1, 2), &settings);
    for read in 0..2 {
        net.begin(Time::ZERO, VertexId(4), VertexId(3), Operation::Read, 128 << 10, tag(read, read as u16));
    }
    net.run(Time::us(9));
    let came: Vec<Outcome> = net.at_targets.iter().map(|(_, packet)| packet.status).collect();
    assert_eq!(came, [Outcome::Success, Outcome::Rejected], "both come, and in their order");
    assert_eq!(net.responses().map(|packet| packet.status).collect::<Vec<_>>(), [Outcome::Rejected]);
    let booked =
        |hop: &Hop| (0..hop.ports.len() as u16).map(|port| hop.booked(net.now, Port(port)).as_bps()).sum::<u64>();
    assert!(net.hops.iter().flatten().all(|hop| booked(hop) <= 10_000_000_000), "once a hop");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Small thresholds, in networks without a cycle of routes, which could deadlock.
    #[test]
    fn a_lossless_network_loses_nothing_and_ends_with_nobody_paused(
        graph in graphs(), design in designs(), load in loads(),
        above in 6_000u64..60_000, is_dynamic in any::<bool>(),
    ) {
        let learns = matches!(design.route.policy, Policy::Isr | Policy::IsrAsPrinted);
        prop_assume!(circle_of_ways(&graph, learns && design.route.stretch_max > 0).is_none());
        let pause = if is_dynamic {
            Pause::Dynamic { shared: Bytes::new(above * 4), share: 0.5 }
        } else {
            at(above, above / 2)
        };
        let mut net = Net::new(graph, &HopConfig { buffer: Bytes::ZERO, lossless: lossless(pause), ..design });
        let last = begin_all(&mut net, &load, Time::ZERO, 0);
        net.run(last + Span::ms(20));
        prop_assert_eq!((net.missing(), net.dropped.len(), net.lost.len()), (0, 0, 0));
        prop_assert_eq!(net.responses().count(), load.len());
        for hop in net.hops.iter().flatten() {
            for port in (0..hop.ports.len() as u16).map(Port) {
                prop_assert!(!hop.pauses(port) && !hop.is_paused(port));
                prop_assert_eq!((hop.waiting(port), hop.waits_at(port).count()), (Bytes::ZERO, 0));
            }
        }
    }
}
