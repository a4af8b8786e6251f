//! Tests of hops in small networks: routes, bookings, failures.

mod lossless;
mod net;

use super::*;
use crate::egress::{Service, StorageDrivenConfig};
use crate::id::{SessionId, Tag};
use crate::reserve::OverCommitment;
use crate::route::{EcmpHash, Policy};
use crate::testing::{command, network, reservation, routes, torus};
use base::Span;
use net::Net;
use proptest::prelude::*;
use std::collections::BTreeMap;
use topology::{Graph, Kind, LinkId};

fn storage_driven() -> SchedulingConfig {
    let rank = RankConfig { quantum: 8, rank_max: 7, unknown_credit: 8, read_rank: 4 };
    SchedulingConfig::StorageDriven(StorageDrivenConfig {
        rank,
        queues: 5,
        service: Service::WeightedRoundRobin(vec![8, 4, 2, 1]),
    })
}

/// Returns a configuration with all techniques enabled; the network fills in the parts of each hop.
fn settings() -> HopConfig {
    HopConfig {
        here: VertexId(0),
        neighbours: Vec::new(),
        vertices: 0,
        drives: 9,
        route: routes(Policy::Isr),
        reservation: Some(reservation()),
        scheduling: storage_driven(),
        buffer: Bytes::kib(4 << 10),
        lossless: None,
        response_frame: 120,
    }
}

fn tag(session: u32, command: u16) -> Tag {
    Tag { session: SessionId(session), command, attempt: 0 }
}

const TARGETS: u32 = 9;
const HOST: VertexId = VertexId(18);

fn link_between(graph: &Graph, one: u32, other: u32) -> LinkId {
    graph.channels_between(VertexId(one), VertexId(other)).next().expect("they are neighbours").link()
}

/// Returns the adapter to which the first host is cabled.
fn entrance(graph: &Graph) -> u32 {
    graph.hops(HOST)[0].to.0
}

/// Returns the target at adapter `adapter`.
fn target(adapter: u32) -> VertexId {
    VertexId(TARGETS + adapter)
}

fn vertices(trail: &Trail) -> Vec<u32> {
    trail.hops().iter().map(|hop| hop.vertex).collect()
}

#[test]
fn a_read_goes_out_and_back_over_the_same_hops_which_learn_and_give_back() {
    let mut net = Net::new(torus(1), &settings());
    let first = entrance(&net.graph);
    let far = (0..9)
        .find(|adapter| net.hop(first).router().distances().distance(target(*adapter)) == Some(3))
        .expect("one is far");
    net.begin(Time::ZERO, HOST, target(far), Operation::Read, 8192, tag(0, 0));
    net.run(Time::us(5));
    let ingress =
        Port(net.graph.hops(VertexId(first)).iter().position(|hop| hop.to == HOST).expect("it is there") as u16);
    assert_eq!(net.hop(first).booked(net.now, ingress), Rate::gbps(10));
    net.run(Time::ms(1));
    assert_eq!((net.missing(), net.dropped.len(), net.at_targets.len(), net.at_hosts.len()), (0, 0, 1, 4 - 1));
    let (_, at_target) = net.at_targets[0].clone();
    assert_eq!(at_target.trail.hops().len(), 3);
    assert_eq!(at_target.frame, 170 + 3 * Trail::HOP_BYTES);
    for (_, packet) in &net.at_hosts {
        assert_eq!((vertices(&packet.trail), packet.trail.position()), (vertices(&at_target.trail), 0));
    }
    assert_eq!((net.hop(first).booked(net.now, ingress), net.hop(first).credit(DriveId(0))), (Rate::bps(0), Some(8)));
    let by = at_target.trail.hops()[1].vertex;
    let port = net.graph.hops(VertexId(first)).iter().position(|hop| hop.to.0 == by).expect("a neighbour");
    let learnt = net.hop(first).router().delays().estimate(0, target(far), Port(port as u16));
    // Two links out and back at 100 Gb/s and one at 400, 200 ns each way each, and both data
    // packets before the response.
    assert!((1_800..3_500).contains(&learnt), "{learnt} ns");
}

#[test]
fn write_data_follow_their_command_although_the_choice_has_changed() {
    let mut net = Net::new(torus(1), &settings());
    let first = entrance(&net.graph);
    let far = target(
        (0..9).find(|adapter| net.hop(first).router().distances().distance(target(*adapter)) == Some(3)).expect("far"),
    );
    net.begin(Time::ZERO, HOST, far, Operation::Write, 40_000, tag(0, 0));
    net.begin(Time::us(11), HOST, far, Operation::Read, 4096, tag(0, 1));
    net.run(Time::us(8));
    let way = vertices(&net.at_targets[0].1.trail);
    let hop = net.hops[first as usize].as_mut().expect("it is a hop");
    let used = net.graph.hops(VertexId(first)).iter().position(|hop| hop.to.0 == way[1]).expect("a neighbour");
    hop.router_mut().learn(Time::us(8), Port(used as u16), far, 0, 500_000_000);
    net.run(Time::ms(1));
    let of =
        |kind: fn(&Packet) -> bool| net.at_targets.iter().map(|(_, packet)| packet).filter(move |packet| kind(packet));
    let data: Vec<_> = of(|packet| packet.kind.is_outward() && packet.kind != PacketKind::Command).collect();
    assert_eq!(data.len(), 10);
    assert!(data.iter().all(|packet| vertices(&packet.trail) == way));
    let read = of(|packet| packet.operation == Operation::Read).next().expect("it came");
    assert_ne!(vertices(&read.trail), way, "what was chosen meanwhile");
    assert_eq!((net.responses().count(), net.refused, net.missing()), (2, 0, 0));
}

#[test]
fn without_bandwidth_a_read_is_answered_at_once_and_every_hop_before_gives_back() {
    let route = RouteConfig { policy: Policy::ShortestPath, ..routes(Policy::Isr) };
    let mut net = Net::new(network(Kind::DaisyChain { nodes: 4 }, 1, 4), &HopConfig { route, ..settings() });
    let host = VertexId(8);
    let first = net.graph.hops(host)[0].to.0;
    let far = VertexId(4 + if first < 2 { 3 } else { 0 });
    (0..15).for_each(|command| net.begin(Time::ZERO, host, far, Operation::Read, 128 << 10, tag(0, command)));
    (15..20).for_each(|command| net.begin(Time::ZERO, host, far, Operation::Write, 4096, tag(0, command)));
    net.run(Time::ms(2));
    assert_eq!((net.responses().count(), net.missing(), net.dropped.len()), (20, 0, 0));
    let rejected: Vec<_> = net.responses().filter(|packet| packet.status == Outcome::Rejected).collect();
    assert_eq!(rejected.len(), 5, "10 reads of 10 Gb/s fit into 100, and writes book nothing");
    assert!(rejected.iter().all(|packet| packet.frame == 120 && packet.trail.position() == 0));
    assert_eq!(net.hop(first).counts().rejected, 5);
    for hop in net.hops.iter().flatten() {
        (0..4)
            .filter(|port| hop.has_port(Port(*port)))
            .for_each(|port| assert_eq!(hop.booked(net.now, Port(port)), Rate::bps(0)));
    }
}

#[test]
fn a_session_that_booked_little_is_held_back_and_its_neighbour_is_not() {
    let over_commitment = vec![OverCommitment { headroom_min: 0, factor: 102 }];
    let held = ReservationConfig { over_commitment, ..reservation() };
    let finish = |reservation: Option<ReservationConfig>| {
        let mut net = Net::new(network(Kind::DaisyChain { nodes: 2 }, 1, 2), &HopConfig { reservation, ..settings() });
        let host = VertexId(4);
        net.begin(Time::ZERO, host, VertexId(2), Operation::Read, 128 << 10, tag(0, 0));
        net.begin(Time::ZERO, host, VertexId(2), Operation::Read, 4096, tag(1, 1));
        net.run(Time::ms(5));
        assert_eq!((net.missing(), net.dropped.len()), (0, 0));
        [0, 1].map(|session| {
            let of_session =
                |(_, packet): &&(Time, Packet)| packet.tag.session.0 == session && packet.kind == PacketKind::Response;
            net.at_hosts.iter().find(of_session).expect("it was answered").0
        })
    };
    let [large, small] = finish(None);
    let [large_held, small_held] = finish(Some(held));
    assert!(large_held > large + Span::us(800), "128 KiB at 1 Gb/s: {large:?} {large_held:?}");
    assert!(small_held < small, "{small:?} {small_held:?}");
}

/// Ten reads of 128 KiB arrive on a link of 100 Gb/s, one after the other, and leave by another.
/// Only the faster board link causes queueing. Each read has booked 10 Gb/s, so nine tenths of it
/// wait for tokens, while the wire is mostly idle during the first.
#[test]
fn what_the_policer_holds_takes_none_of_the_buffer() {
    let buffer = Bytes::kib(160);
    let read_all = |reservation: Option<ReservationConfig>| {
        let graph = network(Kind::DaisyChain { nodes: 2 }, 1, 2);
        let mut net = Net::new(graph, &HopConfig { buffer, reservation, ..settings() });
        let gap = Rate::gbps(100).span_of(Bytes::new(32 * 4_300));
        for read in 0..10 {
            net.begin(
                Time::ZERO + gap * u64::from(read),
                VertexId(4),
                VertexId(3),
                Operation::Read,
                128 << 10,
                tag(read, read as u16),
            );
        }
        net.run(Time::ms(5));
        assert_eq!((net.dropped.len(), net.missing()), (0, 0));
        assert_eq!(net.responses().filter(|packet| packet.status == Outcome::Success).count(), 10);
        net
    };
    let held_max = |net: &Net| {
        let ports =
            |hop: &Hop| (0..4).map(Port).filter(|port| hop.has_port(*port)).map(|port| hop.held_max(port)).max();
        net.hops.iter().flatten().filter_map(ports).max()
    };
    let plain = read_all(None);
    assert_eq!(held_max(&plain), Some(Bytes::ZERO));
    let shaped = read_all(Some(reservation()));
    // The k-th of ten overlapping reads has k tenths of its data still held when the last one
    // arrives: five and a half reads, less the bursts.
    let all = 32 * 4_200 * 11 / 2;
    let held = held_max(&shaped).expect("hops have ports").count();
    assert!(held > buffer.count() * 3 && (all * 3 / 4..=all).contains(&held), "{held} of {all}");
    let last = shaped.at_hosts.last().expect("all were answered").0;
    let alone = Rate::gbps(10).span_of(Bytes::new(31 * 4_200)) + Rate::gbps(100).span_of(Bytes::new(32 * 4_300)) * 9;
    assert!(last >= Time::ZERO + alone && last < Time::ZERO + alone + Span::us(40), "{last:?} {alone:?}");
}

/// Sixteen simultaneous reads of 128 KiB, from a board link of 400 Gb/s into one of 100 Gb/s whose
/// buffer holds 64 KiB. Each bucket fills at 10 Gb/s, 160 in total.
#[test]
fn what_was_booked_is_not_dropped_where_the_buffer_is_full() {
    let over_commitment = vec![OverCommitment { headroom_min: 0, factor: 512 }];
    let booked = ReservationConfig { over_commitment, fills_at_booked: false, ..reservation() };
    let read_all = |reservation: Option<ReservationConfig>| {
        let graph = network(Kind::DaisyChain { nodes: 2 }, 1, 2);
        let mut net = Net::new(graph, &HopConfig { buffer: Bytes::kib(64), reservation, ..settings() });
        for read in 0..16 {
            net.begin(Time::ZERO, VertexId(4), VertexId(3), Operation::Read, 128 << 10, tag(read, read as u16));
        }
        net.run(Time::ms(5));
        assert_eq!(net.missing(), 0);
        net
    };
    assert!(read_all(None).dropped.len() > 16 * 8);
    let net = read_all(Some(booked));
    assert_eq!((net.dropped.len(), net.refused), (0, 0));
    assert_eq!(net.responses().count(), 16);
    // 16 reads at 100 Gb/s after the drive's 10 us; at the end, fewer than ten do not fill the
    // link.
    let all = Rate::gbps(100).span_of(Bytes::new(16 * 32 * 4_216));
    let last = net.at_hosts.last().expect("all were answered").0;
    assert!(last >= Time::us(10) + all && last < Time::us(15) + all * 6 / 5, "{last:?} {all:?}");
}

#[test]
fn the_last_data_of_a_read_give_its_booking_back_where_no_response_follows() {
    let booked_after = |data_end_reads| {
        let reservation = Some(ReservationConfig { data_end_reads, ..reservation() });
        let mut net = Net::new(network(Kind::DaisyChain { nodes: 2 }, 1, 2), &HopConfig { reservation, ..settings() });
        net.data_end_reads = true;
        net.begin(Time::ZERO, VertexId(4), VertexId(3), Operation::Read, 128 << 10, tag(0, 0));
        net.run(Time::ms(1));
        let booked =
            |hop: &Hop| (0..4).map(Port).filter(|port| hop.has_port(*port)).map(|port| hop.booked(net.now, port)).max();
        net.hops.iter().flatten().filter_map(booked).max()
    };
    assert_eq!(booked_after(true), Some(Rate::bps(0)));
    assert_eq!(booked_after(false), Some(Rate::gbps(10)), "kept until it lapses after 10 ms");
}

#[test]
fn what_finds_the_buffer_full_is_dropped_and_counted() {
    for scheduling in [storage_driven(), SchedulingConfig::Fifo] {
        let settings = HopConfig { buffer: Bytes::new(20_000), scheduling, reservation: None, ..settings() };
        let mut net = Net::new(network(Kind::DaisyChain { nodes: 2 }, 1, 2), &settings);
        net.begin(Time::ZERO, VertexId(4), VertexId(2), Operation::Read, 256 << 10, tag(0, 0));
        net.run(Time::ms(5));
        let counted: u64 = net.hops.iter().flatten().map(|hop| hop.counts().dropped_full).sum();
        assert!(counted > 0 && counted == net.dropped.len() as u64);
        assert_eq!(net.missing(), 0);
    }
}

#[test]
fn a_long_queue_is_marked_in_the_bit_of_its_hop_only() {
    let route = RouteConfig { ecn_threshold: Some(Bytes::new(6_000)), ..routes(Policy::Isr) };
    let graph = network(Kind::DaisyChain { nodes: 3 }, 2, 3);
    let hosts: Vec<VertexId> = graph.vertex_ids().skip(6).collect();
    let mut net = Net::new(graph, &HopConfig { route, scheduling: SchedulingConfig::Fifo, ..settings() });
    for (session, host) in hosts.iter().enumerate() {
        net.begin(Time::ZERO, *host, VertexId(5), Operation::Write, 128 << 10, tag(session as u32, 0));
    }
    net.run(Time::ms(5));
    let marks: BTreeMap<u32, usize> = net.at_targets.iter().fold(BTreeMap::new(), |mut marks, (_, packet)| {
        for (index, hop) in packet.trail.hops().iter().enumerate() {
            let is_marked = packet.trail.congestion_from(index) > packet.trail.congestion_from(index + 1);
            *marks.entry(hop.vertex).or_default() += usize::from(is_marked);
        }
        marks
    });
    let counted: u64 = net.hops.iter().flatten().map(|hop| hop.counts().marked).sum();
    assert_eq!(counted, marks.values().sum::<usize>() as u64);
    let two_meet: Vec<_> = marks.iter().filter(|(_, count)| **count > 10).map(|(vertex, _)| *vertex).collect();
    assert_eq!(two_meet, [1], "two links' worth of data leave the middle by one: {marks:?}");
}

#[test]
fn a_command_that_has_no_way_is_answered_and_the_credit_of_what_is_gone_is_forgotten() {
    let mut net = Net::new(torus(1), &settings());
    let first = entrance(&net.graph);
    let other = (first + 1) % 9;
    net.begin(Time::ZERO, HOST, target(other), Operation::Read, 4096, tag(0, 0));
    net.run(Time::us(100));
    assert_eq!(net.hop(first).credit(DriveId(0)), Some(8));
    let board = link_between(&net.graph, other, target(other).0);
    net.toggle(Time::us(100), board);
    net.run(Time::ms(10));
    assert_eq!(net.hop(first).credit(DriveId(0)), None);
    net.begin(Time::ms(10), HOST, target(other), Operation::Read, 4096, tag(0, 1));
    net.run(Time::ms(11));
    assert_eq!(net.responses().last().map(|packet| packet.status), Some(Outcome::Unreachable));
    net.toggle(Time::ms(11), board);
    net.begin(Time::ms(12), HOST, target(other), Operation::Read, 4096, tag(0, 2));
    net.run(Time::ms(13));
    assert_eq!(net.responses().last().map(|packet| packet.status), Some(Outcome::Success));
}

#[test]
fn answers_whose_way_has_failed_come_by_another_one_and_keep_their_order() {
    let mut net = Net::new(torus(1), &settings());
    let first = entrance(&net.graph);
    let far = (0..9)
        .find(|adapter| net.hop(first).router().distances().distance(target(*adapter)) == Some(3))
        .expect("one is far");
    net.begin(Time::ZERO, HOST, target(far), Operation::Read, 64 << 10, tag(0, 0));
    net.run(Time::us(8));
    let way = vertices(&net.at_targets[0].1.trail);
    net.toggle(Time::us(9), link_between(&net.graph, way[0], way[1]));
    net.run(Time::ms(20));
    assert_eq!((net.dropped.len(), net.lost.len(), net.missing()), (0, 0, 0));
    assert_eq!(net.at_hosts.len(), 17);
    let pieces: Vec<u32> = net.at_hosts.iter().take(16).map(|(_, packet)| packet.payload).collect();
    assert!(pieces.is_sorted());
    assert!(net.at_hosts.iter().all(|(_, packet)| packet.trail.is_detour()));
    assert_eq!(net.hop(way[1]).counts().detoured, 17);
}

#[test]
fn what_waits_at_a_port_that_fails_is_sent_another_way() {
    let mut net = Net::new(torus(1), &settings());
    let first = entrance(&net.graph);
    let far = (0..9)
        .find(|adapter| net.hop(first).router().distances().distance(target(*adapter)) == Some(3))
        .expect("one is far");
    net.begin(Time::ZERO, HOST, target(far), Operation::Read, 128 << 10, tag(0, 0));
    net.run(Time::us(8));
    let way = vertices(&net.at_targets[0].1.trail);
    net.toggle(Time::us(17), link_between(&net.graph, way[0], way[1]));
    net.run(Time::ms(20));
    let ended = net.at_hosts.len() + net.lost.len();
    assert_eq!((net.dropped.len(), net.missing(), ended), (0, 0, 33));
    let detoured = net.at_hosts.iter().filter(|(_, packet)| packet.trail.is_detour()).count();
    assert!(net.lost.len() <= 2 && (10..33).contains(&detoured), "{} lost, {detoured} detoured", net.lost.len());
}

/// Designs with techniques disabled one by one.
fn designs() -> impl Strategy<Value = HopConfig> {
    let policy = prop_oneof![
        Just(Policy::Isr),
        Just(Policy::IsrAsPrinted),
        Just(Policy::ShortestPath),
        Just(Policy::Ecmp(EcmpHash::Session)),
        Just(Policy::Ecmp(EcmpHash::Io)),
    ];
    (policy, any::<bool>(), any::<bool>(), any::<bool>(), 0u16..4).prop_map(
        |(policy, is_symmetric, reserves, ranks, stretch_max)| HopConfig {
            route: RouteConfig { is_symmetric, stretch_max, ..routes(policy) },
            reservation: (reserves && is_symmetric).then(reservation),
            scheduling: if ranks { storage_driven() } else { SchedulingConfig::Fifo },
            ..settings()
        },
    )
}

fn graphs() -> impl Strategy<Value = Graph> {
    prop_oneof![
        Just(torus(3)),
        Just(network(Kind::Torus { dimensions: vec![2, 2] }, 2, 4)),
        Just(network(Kind::DualRing { nodes: 6 }, 2, 6)),
        Just(network(Kind::LeafSpine { leaves: 2, spines: 2, endpoints_per_leaf: 4 }, 3, 4)),
    ]
}

/// I/Os as (host, target, is a read, pages, microseconds after the previous one).
type Load = Vec<(u32, u32, bool, u32, u64)>;

fn loads() -> impl Strategy<Value = Load> {
    prop::collection::vec((any::<u32>(), any::<u32>(), any::<bool>(), 1u32..40, 0u64..4), 1..60)
}

/// Starts all I/Os from `start` on. Returns when the last one starts.
fn begin_all(net: &mut Net, load: &Load, start: Time, first_command: u16) -> Time {
    let of = |kind| net.graph.of_kind(kind).collect::<Vec<_>>();
    let (hosts, targets) = (of(topology::VertexKind::Host), of(topology::VertexKind::Target));
    let mut now = start;
    for (number, (host, target, is_read, pages, gap)) in load.iter().enumerate() {
        now += Span::us(*gap);
        let (host, target) = (*host as usize % hosts.len(), *target as usize % targets.len());
        let operation = if *is_read { Operation::Read } else { Operation::Write };
        let tag = tag((host * targets.len() + target) as u32, first_command + number as u16);
        net.begin(now, hosts[host], targets[target], operation, pages * 4096, tag);
    }
    now
}

fn all_booked(net: &Net) -> u64 {
    let ports =
        |hop: &Hop| (0..hop.ports.len() as u16).map(|port| hop.booked(net.now, Port(port)).as_bps()).sum::<u64>();
    net.hops.iter().flatten().map(ports).sum()
}

/// Groups the data packets by I/O and direction, in the order of arrival.
fn pieces<'a>(packets: impl Iterator<Item = &'a (Time, Packet)>) -> BTreeMap<(Tag, bool), Vec<u32>> {
    let mut pieces: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (_, packet) in
        packets.filter(|(_, packet)| matches!(packet.kind, PacketKind::ReadData { .. } | PacketKind::WriteData { .. }))
    {
        pieces.entry((packet.tag, packet.kind.is_outward())).or_default().push(packet.payload);
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn in_a_whole_network_every_io_is_answered_once_in_order_and_leaves_nothing_behind(
        graph in graphs(), design in designs(), load in loads(),
    ) {
        let mut net = Net::new(graph, &design);
        let last = begin_all(&mut net, &load, Time::ZERO, 0);
        net.run(last + Span::ms(8));
        prop_assert_eq!((net.missing(), net.dropped.len(), net.lost.len()), (0, 0, 0));
        prop_assert_eq!(net.responses().count(), load.len());
        let is_refused = net.responses().any(|packet| packet.status != Outcome::Success);
        prop_assert!(!is_refused || design.reservation.is_some() || design.route.stretch_max > 2 || design.route.policy == Policy::IsrAsPrinted);
        for (_, pieces) in pieces(net.at_hosts.iter().chain(&net.at_targets)) {
            prop_assert!(pieces.is_sorted(), "{:?}", pieces);
        }
        for (_, packet) in net.at_targets.iter().chain(&net.at_hosts) {
            let mut way = vertices(&packet.trail);
            way.sort();
            prop_assert!(way.windows(2).all(|pair| pair[0] != pair[1]), "twice at a hop: {:?}", way);
        }
        prop_assert_eq!(all_booked(&net), 0);
    }

    #[test]
    fn whatever_fails_packets_end_once_and_the_network_serves_again(
        graph in graphs(), design in designs(), load in loads(),
        failures in prop::collection::vec((any::<u32>(), 0u64..150), 1..8),
    ) {
        let mut net = Net::new(graph, &design);
        let mut now = Time::ZERO;
        for (link, gap) in failures {
            now += Span::us(gap);
            net.toggle(now, LinkId(link % net.graph.links().len() as u32));
        }
        let last = begin_all(&mut net, &load, Time::ZERO, 0);
        net.run(now.max(last) + Span::ms(20));
        prop_assert_eq!(net.missing(), 0);
        let counted: u64 = net.hops.iter().flatten().map(|hop| hop.counts().dropped()).sum();
        prop_assert_eq!(counted, net.dropped.len() as u64);
        let mut answered: Vec<Tag> = net.responses().map(|packet| packet.tag).collect();
        answered.sort();
        prop_assert!(answered.windows(2).all(|pair| pair[0] != pair[1]), "answered twice");
        for link in net.broken.clone() {
            net.toggle(net.now, link);
        }
        net.run(net.now + Span::ms(20));
        let (before, start) = (net.at_hosts.len(), net.now + Span::us(1));
        let last = begin_all(&mut net, &load, start, 1_000);
        net.run(last + Span::ms(8));
        prop_assert_eq!(net.missing(), 0);
        let again = net.at_hosts[before..].iter().filter(|(_, packet)| packet.kind == PacketKind::Response).count();
        prop_assert_eq!(again, load.len());
        prop_assert_eq!(all_booked(&net), 0);
    }

    #[test]
    fn no_trail_that_a_packet_may_bring_makes_a_hop_fall(
        hops in prop::collection::vec((0u16..12, 0u16..9, any::<u32>()), 0..=40),
        kinds in prop::collection::vec((0u8..6, any::<bool>(), 0u16..6, any::<bool>(), 0u8..30), 1..20),
    ) {
        let net = Net::new(torus(1), &settings());
        let mut hop = net.hops.into_iter().flatten().next().expect("there are hops");
        let mut out = Vec::new();
        for (kind, is_read, port, has_left, back) in kinds {
            let mut trail = Trail::default();
            for (vertex, port, time_ns) in &hops {
                trail.pass_out(TrailHop { vertex: u32::from(*vertex), port: *port, time_ns: *time_ns, is_marked: true }, true).expect("there is room");
            }
            if has_left {
                trail.way = Way::Detour;
            }
            trail.position = (hops.len() as u16).min(u16::from(back));
            let kind = [
                PacketKind::Command, PacketKind::ReadyToTransfer, PacketKind::WriteData { last: true },
                PacketKind::ReadData { last: false }, PacketKind::Response, PacketKind::Response,
            ][usize::from(kind)];
            let operation = if is_read { Operation::Read } else { Operation::Write };
            let packet = Packet { kind, trail, drive: DriveId(u32::from(back)), rank: back * 8, ..command(operation, 4096, HOST, target(4)) };
            hop.on(Time::us(1), HopIn::Packet { port: Port(port % 4), packet }, &mut out);
            hop.on(Time::us(2), HopIn::PortFree(Port(port % 4)), &mut out);
        }
        hop.on(Time::us(3), HopIn::LinkDown(Port(0)), &mut out);
        hop.on(Time::us(3), HopIn::LinkDown(Port(1)), &mut out);
        hop.on(Time::us(4), HopIn::Advertisement { port: Port(2), advertisement: crate::route::Advertisement { distances: [7; 40].into() } }, &mut out);
    }
}
