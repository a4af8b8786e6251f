//! DCTCP, DCQCN with PFC, and pFabric in their rigs.

use base::{Bytes, NodeId, Operation, Rate, Seed, Span, Time};
use hardware::{DramConfig, EthernetStack, RemoteAccess};
use proptest::prelude::*;
use record::SpanKind;
use sim::drive::{Rig, Ticket};
use sim::rigs::packet::{self, Bench, PacketRig, PacketRigConfig};
use sim::rigs::rivals;
use transport::config::{Dcqcn, Dctcp, Pause, Pfabric, RateControl, Reaction};
use transport::cost::WireCost;
use transport::framing::{pfabric_wire, roce_request_wire, roce_response_wire, roce_wire, tcp_wire};
use transport::{Host, Switch};

const SIZES: [u64; 14] = [1, 8, 64, 100, 1023, 1024, 1025, 1460, 1461, 2920, 14_600, 14_601, 100_000, 1_000_003];
const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::ReadModifyWrite];

fn network(nodes: u32, stack: EthernetStack) -> PacketRigConfig {
    PacketRigConfig {
        nodes,
        rate: Rate::gbps(100),
        propagation: Span::ns(10),
        stack,
        read_request_bytes: Bytes::new(8),
        memory: DramConfig { latency: Span::ZERO, bandwidth: None },
        remote: RemoteAccess::default(),
        cut_through: false,
        wire_check: false,
        seed: Seed(1),
    }
}

fn dctcp_config() -> Dctcp {
    Dctcp {
        mss: Bytes::new(1460),
        mark_above: Bytes::new(65 * 1538),
        queue: Bytes::new(400 * 1538),
        gain: 1.0 / 16.0,
        initial_window: 10,
        timeout_min: Span::us(200),
        selective: true,
        connections: 1,
    }
}

const PAUSE_ABOVE: Bytes = Bytes::kib(64);

fn dcqcn_config() -> Dcqcn {
    Dcqcn {
        mtu: Bytes::new(1024),
        mark_from: Bytes::kib(5),
        mark_all: Bytes::kib(200),
        mark_probability: 0.01,
        pause: Pause::Static { above: PAUSE_ABOVE, below: Bytes::kib(60) },
        reaction: Reaction::AtOnce { increase_bytes: Bytes::new(10_000_000) },
        gain: 1.0 / 256.0,
        rate_min_bps: 100_000_000,
        notification_interval: Span::us(50),
        alpha_timer: Span::us(55),
        increase_timer: Span::us(55),
        fast_recovery_rounds: 5,
        additive_bps: 400_000_000,
        hyper_bps: 4_000_000_000,
    }
}

fn pfabric_config() -> Pfabric {
    let control = RateControl::Minimal { probe_after: 5 };
    Pfabric { mss: Bytes::new(1460), queue: Bytes::new(36_000), window: 40, timeout: Span::us(15), control }
}

/// pFabric's queues, and DCTCP's window: a segment is as long on the wire as one of
/// [`dctcp_config`].
fn over_dctcp_config() -> Pfabric {
    let dctcp = Dctcp { mss: Bytes::new(1452), ..dctcp_config() };
    let Dctcp { mss, queue, initial_window: window, timeout_min: timeout, .. } = dctcp;
    Pfabric { mss, queue, window, timeout, control: RateControl::Dctcp(dctcp) }
}

/// The same with another queue and threshold, and another first window.
fn over_dctcp_with(queue: Bytes, mark_above: Bytes, window: u32) -> Pfabric {
    let config = over_dctcp_config();
    let RateControl::Dctcp(dctcp) = config.control else { unreachable!("it is over DCTCP") };
    let dctcp = Dctcp { queue, mark_above, initial_window: window, ..dctcp };
    Pfabric { queue, window, control: RateControl::Dctcp(dctcp), ..config }
}

fn over_dctcp(nodes: u32) -> PacketRig<transport::pfabric::Host, transport::pfabric::Switch> {
    rivals::pfabric(&over_dctcp_config(), &network(nodes, EthernetStack::TCP))
}

fn dctcp(nodes: u32) -> PacketRig<transport::dctcp::Host, transport::dctcp::Switch> {
    rivals::dctcp(&dctcp_config(), &network(nodes, EthernetStack::TCP))
}

fn dcqcn(nodes: u32) -> PacketRig<transport::dcqcn::Host, transport::dcqcn::Switch> {
    rivals::dcqcn(&dcqcn_config(), &network(nodes, EthernetStack::ROCE))
}

fn pfabric(nodes: u32) -> PacketRig<transport::pfabric::Host, transport::pfabric::Switch> {
    rivals::pfabric(&pfabric_config(), &network(nodes, EthernetStack::TCP))
}

// Is the model right: a lone request against the closed form.

fn closed_form_holds<H: Host, S: Switch>(make: impl Fn() -> PacketRig<H, S>) {
    for (operation, size) in OPERATIONS.into_iter().flat_map(|operation| SIZES.map(|size| (operation, size))) {
        let bytes = Bytes::new(size);
        let expected = make().unloaded(operation, bytes).unwrap();
        let (ended, rig) = packet::lone(make(), operation, bytes);
        assert_eq!(ended.end - Time::ZERO, expected, "{operation:?} of {bytes}");
        assert_eq!(ended.spans().total(), expected);
        assert_eq!(rig.dropped_packets() + rig.retransmitted_packets(), 0);
    }
}

#[test]
fn a_lone_request_takes_its_closed_form() {
    closed_form_holds(|| dctcp(2));
    closed_form_holds(|| dcqcn(2));
    closed_form_holds(|| pfabric(2));
    closed_form_holds(|| over_dctcp(2));
}

#[test]
fn the_closed_form_holds_with_memory_cut_through_and_small_windows_too() {
    let slow_memory = DramConfig { latency: Span::ns(82), bandwidth: Some(Rate::gbps(400)) };
    let network = PacketRigConfig { memory: slow_memory, cut_through: true, ..network(2, EthernetStack::TCP) };
    let small_dctcp = Dctcp { initial_window: 2, ..dctcp_config() };
    let small_pfabric = Pfabric { window: 3, ..pfabric_config() };
    closed_form_holds(|| rivals::dctcp(&small_dctcp, &network));
    closed_form_holds(|| rivals::pfabric(&small_pfabric, &network));
    let small_window = over_dctcp_with(Bytes::new(400 * 1538), Bytes::new(65 * 1538), 2);
    closed_form_holds(|| rivals::pfabric(&small_window, &network));
    closed_form_holds(|| rivals::dcqcn(&dcqcn_config(), &network));
}

#[test]
fn the_closed_form_holds_where_a_byte_is_no_whole_number_of_picoseconds() {
    let network = PacketRigConfig { rate: Rate::gbps(56), ..network(2, EthernetStack::ROCE) };
    closed_form_holds(|| rivals::dctcp(&dctcp_config(), &network));
    closed_form_holds(|| rivals::pfabric(&pfabric_config(), &network));
    closed_form_holds(|| rivals::dcqcn(&dcqcn_config(), &network));
}

/// Table 1 of EDM: 2.03 us and 1.02 us for RoCEv2, 3.79 us and 1.89 us for TCP, without
/// serialization.
#[test]
fn an_unloaded_64_byte_access_is_table_1_and_its_serialization() {
    let wire = |bytes: u32| Span::ps(80) * u64::from(bytes);
    let write = dcqcn(2).unloaded(Operation::Write, Bytes::new(64)).unwrap();
    assert_eq!(write, Span::ps(1_017_840) + wire(roce_wire(64, true)) * 2);
    let read = dcqcn(2).unloaded(Operation::Read, Bytes::new(64)).unwrap();
    assert_eq!(read, Span::ps(2_035_680) + (wire(roce_request_wire(8)) + wire(roce_response_wire(64, true))) * 2);
    let read = dctcp(2).unloaded(Operation::Read, Bytes::new(64)).unwrap();
    let acknowledgement = wire(84);
    assert_eq!(read, Span::ps(3_779_680) + wire(tcp_wire(8)) * 2 + acknowledgement + wire(tcp_wire(64)) * 2);
}

// Where the time goes.

#[test]
fn a_second_message_of_a_host_waits_in_its_nic_and_one_from_elsewhere_in_the_switch() {
    let mut bench = Bench::new(dcqcn(4));
    let first = write(&mut bench, Time::ZERO, 0, 3, 1024);
    let second = write(&mut bench, Time::ZERO, 0, 2, 64);
    let rival = write(&mut bench, Time::ps(1), 1, 3, 1024);
    bench.run();
    let packet = Span::ps(80) * u64::from(roce_wire(1024, true));
    let span = |ticket, kind| bench.end_of(ticket).expect("it has ended").spans().get(kind);
    assert_eq!(span(first, SpanKind::NicQueue) + span(first, SpanKind::SwitchQueue), Span::ZERO);
    assert_eq!(span(second, SpanKind::NicQueue), packet);
    assert_eq!(span(rival, SpanKind::SwitchQueue), packet - Span::ps(1));
    assert_eq!(span(rival, SpanKind::NicQueue) + span(rival, SpanKind::Schedule), Span::ZERO);
}

#[test]
fn a_window_that_is_too_small_shows_as_schedule() {
    let narrow = Pfabric { window: 1, ..pfabric_config() };
    let (ended, _) =
        packet::lone(rivals::pfabric(&narrow, &network(2, EthernetStack::TCP)), Operation::Write, Bytes::new(3 * 1460));
    let data = Span::ps(80) * u64::from(pfabric_wire(1460));
    let acknowledgement = Span::ps(80) * 84;
    let round_trip = Span::ps(1_889_840) * 2 + data * 2 + acknowledgement * 2;
    assert_eq!(ended.spans().get(SpanKind::Schedule), (round_trip - data) * 2);
    assert_eq!(ended.spans().get(SpanKind::Serialization), data * 4, "three on the first link, the last on the second");
}

/// A read takes its target's memory once. What else a remote request takes of memory comes before
/// its message is sent, or after the last one has arrived.
#[test]
fn remote_requests_take_the_memories_that_they_access() {
    let memory = DramConfig { latency: Span::ns(82), bandwidth: Some(Rate::gbps(512)) };
    let of = |fetches_writes, stores_writes, stores_reads| RemoteAccess { fetches_writes, stores_writes, stores_reads };
    for (remote, reads, writes) in [
        (of(false, false, false), 1, 0),
        (of(false, true, false), 1, 1),
        (of(true, true, false), 1, 2),
        (of(true, true, true), 2, 2),
    ] {
        let config = PacketRigConfig { memory, remote, ..network(2, EthernetStack::ROCE) };
        let without = PacketRigConfig { remote: of(false, false, false), ..config };
        let (one, word) = (Span::ns(83), Span::ps(82_125));
        for (operation, bytes, accesses, added) in [
            (Operation::Read, 64, one * reads, one * (reads - 1)),
            (Operation::Write, 64, one * writes, one * writes),
            (Operation::ReadModifyWrite, 8, word, Span::ZERO),
        ] {
            let bytes = Bytes::new(bytes);
            let run = |config: &PacketRigConfig| {
                let rig = rivals::dcqcn(&dcqcn_config(), config);
                let unloaded = rig.unloaded(operation, bytes).expect("every rival knows it");
                let (ended, _) = packet::lone(rig, operation, bytes);
                let took = ended.end.saturating_since(Time::ZERO);
                assert_eq!(took, unloaded, "{operation:?} with {remote:?}");
                (took, ended.spans().get(SpanKind::Memory))
            };
            let (took, spans) = run(&config);
            assert_eq!(spans, accesses, "{operation:?} with {remote:?}");
            assert_eq!(took, run(&without).0 + added);
        }
    }
}

fn cost_holds<H: Host, S: Switch>(make: impl Fn() -> PacketRig<H, S>, cost: impl Fn(Operation, Bytes) -> WireCost) {
    for (operation, size) in OPERATIONS.into_iter().flat_map(|operation| SIZES.map(|size| (operation, size))) {
        let bytes = Bytes::new(size);
        let counted = packet::wire_cost_by_simulation(make(), operation, bytes);
        assert_eq!(cost(operation, bytes), counted, "{operation:?} of {bytes}");
    }
}

#[test]
fn the_wire_cost_is_what_a_lone_request_puts_on_the_wires() {
    let request = Bytes::new(8);
    cost_holds(|| dctcp(2), |op, bytes| transport::dctcp::wire_cost(&dctcp_config(), op, bytes, request));
    cost_holds(|| dcqcn(2), |op, bytes| transport::dcqcn::wire_cost(&dcqcn_config(), op, bytes, request));
    cost_holds(|| over_dctcp(2), |op, bytes| transport::pfabric::wire_cost(&over_dctcp_config(), op, bytes, request));
    cost_holds(|| pfabric(2), |op, bytes| transport::pfabric::wire_cost(&pfabric_config(), op, bytes, request));
}

/// Payload bits a second of one long write over the line's share for payload.
fn long_flow_efficiency<H: Host, S: Switch>(rig: PacketRig<H, S>, payload: f64, wire: u32) -> f64 {
    let bytes = Bytes::new(20_000_000);
    let (ended, _) = packet::lone(rig, Operation::Write, bytes);
    let goodput = bytes.bits() as f64 / (ended.end - Time::ZERO).as_secs_f64();
    goodput / (100e9 * payload / f64::from(wire))
}

#[test]
fn one_long_flow_fills_the_line_but_for_headers() {
    assert!(long_flow_efficiency(dctcp(2), 1460.0, tcp_wire(1460)) > 0.99);
    assert!(long_flow_efficiency(dcqcn(2), 1024.0, roce_wire(1024, false)) > 0.99);
    assert!(long_flow_efficiency(pfabric(2), 1460.0, pfabric_wire(1460)) > 0.99);
}

// Does each rival do what its paper says.

const MEGABYTE: u64 = 1_000_000;

fn write<H: Host, S: Switch>(bench: &mut Bench<H, S>, at: Time, source: u32, target: u32, bytes: u64) -> Ticket {
    bench.issue(at, Operation::Write, NodeId(source), NodeId(target), Bytes::new(bytes))
}

fn latency<H: Host, S: Switch>(bench: &Bench<H, S>, ticket: Ticket) -> Span {
    let ended = bench.end_of(ticket).expect("the request has ended");
    ended.end - ended.start
}

/// What waits for `port`, looked at every microsecond from `from` to `until`, in wire bytes.
fn queue_samples<H: Host, S: Switch>(bench: &mut Bench<H, S>, port: NodeId, from: u64, until: u64) -> Vec<u64> {
    let sample = |at| {
        bench.run_until(Time::us(at));
        bench.rig.switch().queued(port).count()
    };
    (from..until).map(sample).collect()
}

fn mean(samples: &[u64]) -> f64 {
    samples.iter().sum::<u64>() as f64 / samples.len() as f64
}

/// SIGCOMM'10, Figure 1 and 3.3: the queue stays around K, whatever the buffer.
#[test]
fn dctcp_keeps_its_queue_near_k_with_two_long_flows_and_drops_nothing() {
    let mut bench = Bench::new(dctcp(3));
    write(&mut bench, Time::ZERO, 0, 2, 20 * MEGABYTE);
    write(&mut bench, Time::ZERO, 1, 2, 20 * MEGABYTE);
    let samples = queue_samples(&mut bench, NodeId(2), 500, 2_500);
    let threshold = 65.0 * 1538.0;
    let relative = mean(&samples) / threshold;
    assert!((0.7..1.1).contains(&relative), "mean queue is {relative:.2} K");
    let highest = *samples.iter().max().expect("samples") as f64;
    assert!(highest < 1.3 * threshold, "the queue reached {:.2} K", highest / threshold);
    assert!(*samples.iter().min().expect("samples") > 0, "the link was never idle");
    bench.run();
    assert_eq!((bench.rig.dropped_packets(), bench.ended.len()), (0, 2));
    let windows = [0, 1].map(|node| bench.rig.host(NodeId(node)).marked_fraction(NodeId(2)));
    assert!(windows.iter().all(|alpha| (0.0..0.5).contains(alpha)), "alpha fell from 1 to what was seen: {windows:?}");
}

/// SIGCOMM'10, 3.3: with N flows in step the queue is at most K + N packets. It falls below that by
/// half the root of 2 N (C RTT + K).
#[test]
fn dctcps_queue_swings_as_far_as_the_papers_formula_says() {
    let (flows, threshold, frame) = (2.0, 65.0, 1538.0);
    let mut bench = Bench::new(dctcp(3));
    write(&mut bench, Time::ZERO, 0, 2, 60 * MEGABYTE);
    write(&mut bench, Time::ZERO, 1, 2, 60 * MEGABYTE);
    let samples = queue_samples(&mut bench, NodeId(2), 2_000, 6_000);
    let packets = |bytes: Option<&u64>| *bytes.expect("samples") as f64 / frame;
    let (highest, lowest) = (packets(samples.iter().max()), packets(samples.iter().min()));
    // A full frame there and an acknowledgement back, on an empty path: 4.04 us, 32.8 frames.
    let swing = f64::sqrt(2.0 * flows * (32.8 + threshold)) / 2.0;
    println!(
        "dctcp: queue {lowest:.1} to {highest:.1} packets, the formula {:.1} to {:.1}",
        threshold + flows - swing,
        threshold + flows
    );
    assert!((highest - (threshold + flows)).abs() <= 2.0, "{highest}");
    assert!((0.5..2.0).contains(&((highest - lowest) / swing)), "{lowest} to {highest}, {swing}");
}

/// Requests 1 MB of so many servers at 1 Gb/s, which answer at once. Returns what is dropped, and
/// how often a server had to wait for its timer of 10 ms. A port has 100 packets, K is 20
/// (SIGCOMM'10, 4.2.1 and 4).
fn incast(servers: u32) -> (u64, usize) {
    let config = Dctcp {
        mark_above: Bytes::new(20 * 1538),
        queue: Bytes::new(100 * 1538),
        initial_window: 2,
        timeout_min: Span::ms(10),
        ..dctcp_config()
    };
    // 100 us there and back, as in the paper's racks.
    let slow =
        PacketRigConfig { rate: Rate::gbps(1), propagation: Span::us(18), ..network(servers + 1, EthernetStack::TCP) };
    let mut bench = Bench::new(rivals::dctcp(&config, &slow));
    for server in 0..servers {
        write(&mut bench, Time::ZERO, server, servers, MEGABYTE / u64::from(servers));
    }
    bench.run();
    assert_eq!(bench.ended.len(), servers as usize);
    let late = bench.ended.iter().filter(|ended| ended.end - Time::ZERO > Span::ms(15)).count();
    (bench.rig.dropped_packets(), late)
}

/// SIGCOMM'10, 4.2.1, Figure 18: with 100 packets a port DCTCP sees no timeouts up to about 35
/// servers. Two packets of each then fill the port. The least time is 8.2 ms.
#[test]
fn dctcp_survives_incast_until_two_packets_of_each_server_fill_the_port() {
    let seen = [10, 20, 30, 40, 50, 60, 80].map(|servers| (servers, incast(servers)));
    println!("dctcp incast, servers and (dropped, late): {seen:?}");
    for (servers, (dropped, late)) in seen {
        if servers <= 30 {
            assert_eq!((dropped, late), (0, 0), "{servers} servers");
        }
    }
    assert!(seen.iter().any(|(servers, (dropped, _))| *servers > 30 && *dropped > 0));
}

/// Eight segments in a row of one message are lost in a burst: with blocks they go again in one
/// round trip.
#[test]
fn selective_acknowledgements_shorten_an_incast_with_losses() {
    let shallow = |selective| Dctcp {
        queue: Bytes::new(20 * 1538),
        mark_above: Bytes::new(400 * 1538),
        timeout_min: Span::ms(1),
        initial_window: 30,
        selective,
        ..dctcp_config()
    };
    let last = |selective| {
        let mut bench = Bench::new(rivals::dctcp(&shallow(selective), &network(3, EthernetStack::TCP)));
        for source in 0..2 {
            write(&mut bench, Time::ZERO, source, 2, 300_000);
        }
        bench.run();
        assert!(bench.rig.dropped_packets() > 2);
        bench.ended.iter().map(|ended| ended.end - Time::ZERO).max().expect("two ends")
    };
    let (with, without) = (last(true), last(false));
    println!("dctcp: two of 300 kB with losses take {with} with blocks, {without} without");
    assert!(with < without, "{with} {without}");
}

/// One connection delivers in order: a short message waits behind a long one of its pair. Over two
/// it does not.
#[test]
fn with_two_connections_a_short_message_passes_a_long_one_of_its_pair() {
    let short = |connections| {
        let config = Dctcp { connections, ..dctcp_config() };
        let mut bench = Bench::new(rivals::dctcp(&config, &network(2, EthernetStack::TCP)));
        write(&mut bench, Time::ZERO, 0, 1, MEGABYTE);
        let short = write(&mut bench, Time::us(20), 0, 1, 1460);
        bench.run();
        (latency(&bench, short), bench.rig.unloaded(Operation::Write, Bytes::new(1460)).unwrap())
    };
    // A megabyte takes 84 us; two connections take turns, a packet each.
    let packet = Rate::gbps(100).span_of(Bytes::new(1538));
    let (one, _) = short(1);
    let (two, alone) = short(2);
    assert!(one > Span::us(60), "{one}");
    assert!(two <= alone + packet * 2, "{two} {alone}");
}

#[test]
fn dctcp_shares_the_link_of_two_long_flows_evenly() {
    let mut bench = Bench::new(dctcp(3));
    write(&mut bench, Time::ZERO, 0, 2, 100 * MEGABYTE);
    write(&mut bench, Time::us(300), 1, 2, 100 * MEGABYTE);
    let ratio = ratio_of_senders(&mut bench, Time::ms(5), Time::ms(9));
    assert!((0.7..1.4).contains(&ratio), "{ratio:.2}");
}

/// Bytes that host 0 sends between two times over those that host 1 does.
fn ratio_of_senders<H: Host, S: Switch>(bench: &mut Bench<H, S>, from: Time, until: Time) -> f64 {
    let mut sent = |at| {
        bench.run_until(at);
        [0, 1].map(|node| bench.rig.link_bytes(NodeId(node)).up)
    };
    let (before, after) = (sent(from), sent(until));
    (after[0] - before[0]) as f64 / (after[1] - before[1]) as f64
}

#[test]
fn dctcp_recovers_from_an_incast_that_overflows_a_shallow_queue() {
    let shallow = Dctcp { queue: Bytes::new(20 * 1538), mark_above: Bytes::new(10 * 1538), ..dctcp_config() };
    let mut bench = Bench::new(rivals::dctcp(&shallow, &network(17, EthernetStack::TCP)));
    for source in 0..16 {
        write(&mut bench, Time::ZERO, source, 16, 100_000);
    }
    bench.run();
    assert_eq!(bench.ended.len(), 16);
    assert!(bench.rig.dropped_packets() > 0);
    assert!(bench.rig.retransmitted_packets() > 0);
    let last = bench.ended.iter().map(|ended| ended.end).max().expect("sixteen ends");
    let line = Rate::gbps(100).span_of(Bytes::new(1_600_000));
    assert!(last - Time::ZERO > line, "no faster than the last link");
}

/// A lost segment with nothing behind it is only found by the timer (EDM 2.4, limitation 6).
#[test]
fn dctcp_needs_its_timer_for_a_lost_single_segment_message() {
    let shallow = Dctcp { queue: Bytes::new(4 * 1538), ..dctcp_config() };
    let mut bench = Bench::new(rivals::dctcp(&shallow, &network(17, EthernetStack::TCP)));
    let tickets: Vec<Ticket> = (0..16).map(|source| write(&mut bench, Time::ZERO, source, 16, 1460)).collect();
    bench.run();
    let latencies: Vec<Span> = tickets.iter().map(|ticket| latency(&bench, *ticket)).collect();
    assert!(latencies.iter().any(|latency| *latency < Span::us(5)));
    assert!(latencies.iter().any(|latency| *latency > Span::us(200)));
    assert!(latencies.iter().all(|latency| *latency < Span::us(5) || *latency > Span::us(200)));
}

/// SIGCOMM'15, 5.2: flows that start at different times converge to the same rate.
#[test]
fn dcqcn_flows_converge_to_a_fair_share_without_a_loss() {
    let mut bench = Bench::new(dcqcn(3));
    write(&mut bench, Time::ZERO, 0, 2, 400 * MEGABYTE);
    write(&mut bench, Time::us(500), 1, 2, 400 * MEGABYTE);
    let ratio = ratio_of_senders(&mut bench, Time::ms(8), Time::ms(16));
    assert!((0.8..1.25).contains(&ratio), "{ratio:.2}");
    let carried = bench.rig.link_bytes(NodeId(2)).down as f64 * 8.0 / 16e-3 / 100e9;
    assert!(carried > 0.9, "the link is used: {carried:.2}");
    assert_eq!(bench.rig.dropped_packets(), 0);
}

/// 802.1Qbb: an ingress port over its threshold stops the host behind it; nothing is lost, and
/// everybody goes on in the end.
#[test]
fn pfc_pauses_upstream_under_incast_and_never_drops() {
    let mut bench = Bench::new(dcqcn(9));
    for source in 0..8 {
        write(&mut bench, Time::ZERO, source, 8, 2 * MEGABYTE);
    }
    bench.run_until(Time::us(20));
    assert!((0..8).all(|node| bench.rig.host(NodeId(node)).is_paused()));
    bench.run();
    assert!((0..8).all(|node| !bench.rig.host(NodeId(node)).is_paused()));
    assert!(bench.rig.switch().pause_frames() >= 8);
    assert!((0..8).all(|node| bench.rig.switch().ingress_highest(NodeId(node)) > PAUSE_ABOVE));
    assert_eq!((bench.rig.dropped_packets(), bench.ended.len()), (0, 8));
}

/// Whatever is on the way when the pause is sent has to fit: the longer the cable, the more.
#[test]
fn headroom_covers_long_cables_and_is_needed() {
    let cable = PacketRigConfig { propagation: Span::us(2), ..network(9, EthernetStack::ROCE) };
    let mut bench = Bench::new(rivals::dcqcn(&dcqcn_config(), &cable));
    for source in 0..8 {
        write(&mut bench, Time::ZERO, source, 8, MEGABYTE);
    }
    bench.run();
    let highest = bench.rig.switch().ingress_highest(NodeId(0)).count();
    let on_the_way = cable.rate.bytes_in(cable.propagation * 2).count();
    assert!(highest > PAUSE_ABOVE.count() + on_the_way);
    assert_eq!((bench.rig.dropped_packets(), bench.ended.len()), (0, 8));
}

/// The price of pausing a port: whoever shares it waits too (head-of-line blocking, SIGCOMM'15,
/// 2.2).
#[test]
fn a_paused_host_cannot_reach_an_idle_target_either() {
    let mut bench = Bench::new(dcqcn(10));
    for source in 0..8 {
        write(&mut bench, Time::ZERO, source, 8, 2 * MEGABYTE);
    }
    let victim = write(&mut bench, Time::us(20), 0, 9, 64);
    bench.run();
    let alone = bench.rig.unloaded(Operation::Write, Bytes::new(64)).unwrap();
    assert!(latency(&bench, victim) > alone * 3, "{}", latency(&bench, victim));
}

/// SIGCOMM'13, 4: short flows see an empty network; what is dropped belongs to the longest flows.
#[test]
fn pfabric_lets_a_short_message_pass_long_ones_and_drops_only_the_long() {
    let mut bench = Bench::new(pfabric(6));
    for source in 0..4 {
        write(&mut bench, Time::ZERO, source, 5, MEGABYTE);
    }
    let short = write(&mut bench, Time::us(40), 4, 5, 1460);
    bench.run();
    let alone = bench.rig.unloaded(Operation::Write, Bytes::new(1460)).unwrap();
    let one_packet = Rate::gbps(100).span_of(Bytes::new(1546));
    assert!(latency(&bench, short) <= alone + one_packet, "waits for the packet on the wire at most");
    assert!(bench.rig.dropped_packets() > 0);
    assert_eq!(bench.ended.len(), 5);
}

#[test]
fn pfabric_serves_equal_arrivals_shortest_first() {
    let mut bench = Bench::new(pfabric(4));
    // Flows that timed out start over with one packet, so sizes near each other may swap.
    let sizes = [1_200_000, 100_000, 400_000];
    let tickets: Vec<Ticket> =
        (0..3).map(|source| write(&mut bench, Time::ZERO, source, 3, sizes[source as usize])).collect();
    bench.run();
    let order: Vec<Ticket> = bench.ended.iter().map(|ended| ended.ticket).collect();
    assert_eq!(order, [tickets[1], tickets[2], tickets[0]]);
}

/// Priorities that are all the same choose nothing: what is left is DCTCP, drops and timeouts
/// included.
#[test]
fn pfabric_over_dctcp_is_dctcp_where_all_messages_are_one_segment() {
    let shallow = Bytes::new(12 * 1538);
    let marks = Bytes::new(6 * 1538);
    let plain = Dctcp { queue: shallow, mark_above: marks, ..dctcp_config() };
    let rack = network(65, EthernetStack::TCP);
    let mut left = Bench::new(rivals::dctcp(&plain, &rack));
    let mut right = Bench::new(rivals::pfabric(&over_dctcp_with(shallow, marks, 10), &rack));
    for source in 0..64 {
        let at = Time::ns(100 * u64::from(source % 20));
        write(&mut left, at, source, 64, 1460);
        write(&mut right, at, source, 64, 1452);
    }
    left.run();
    right.run();
    let ends = |ended: &[sim::drive::Ended]| ended.iter().map(|end| (end.ticket, end.end)).collect::<Vec<_>>();
    assert_eq!(ends(&left.ended), ends(&right.ended));
    assert_eq!(left.rig.dropped_packets(), right.rig.dropped_packets());
    assert!(left.rig.dropped_packets() > 20, "{}", left.rig.dropped_packets());
}

/// A flow alone meets no other priority: slow start, marks and cuts are DCTCP's.
#[test]
fn a_lone_long_flow_over_dctcp_takes_as_long_as_dctcp() {
    let segments = 5_000;
    let write = Operation::Write;
    let (plain, _) = packet::lone(dctcp(2), write, Bytes::new(segments * 1460));
    let (over, _) = packet::lone(over_dctcp(2), write, Bytes::new(segments * 1452));
    assert_eq!(plain.end, over.end);
}

/// Marks hold the queue near K and nothing is dropped, as with DCTCP; the flow with less left goes
/// first.
#[test]
fn pfabric_over_dctcp_keeps_its_queue_near_k_and_serves_the_shorter_flow_first() {
    let mut bench = Bench::new(over_dctcp(3));
    let long = write(&mut bench, Time::ZERO, 0, 2, 20 * MEGABYTE);
    let short = write(&mut bench, Time::us(300), 1, 2, 10 * MEGABYTE);
    let samples = queue_samples(&mut bench, NodeId(2), 500, 1_200);
    let threshold = 65.0 * 1538.0;
    let highest = *samples.iter().max().expect("samples") as f64;
    assert!(highest < 1.5 * threshold, "the queue reached {:.2} K", highest / threshold);
    bench.run();
    assert_eq!((bench.rig.dropped_packets(), bench.ended.len()), (0, 2));
    assert!(latency(&bench, short) < Rate::gbps(100).span_of(Bytes::new(10 * MEGABYTE)) * 3 / 2);
    assert!(latency(&bench, long) > Rate::gbps(100).span_of(Bytes::new(30 * MEGABYTE)));
}

#[test]
fn pfabric_over_dctcp_lets_short_messages_pass_long_ones() {
    let mut bench = Bench::new(over_dctcp(12));
    for source in 0..4 {
        write(&mut bench, Time::ZERO, source, 11, 5 * MEGABYTE);
    }
    let alone = bench.rig.unloaded(Operation::Write, Bytes::new(1452)).unwrap();
    let short: Vec<Ticket> = (0..40).map(|at| write(&mut bench, Time::us(40 + 20 * at), 4, 11, 1452)).collect();
    bench.run();
    let one_packet = Rate::gbps(100).span_of(Bytes::new(1538));
    let longest = short.iter().map(|ticket| latency(&bench, *ticket)).max().expect("forty");
    assert!(longest <= alone + one_packet, "waits for the packet on the wire at most: {longest} against {alone}");
}

/// In a host too: the one with the least remaining bytes goes first.
#[test]
fn a_pfabric_host_preempts_its_own_long_message() {
    let mut bench = Bench::new(pfabric(2));
    let long = write(&mut bench, Time::ZERO, 0, 1, MEGABYTE);
    let short = write(&mut bench, Time::us(20), 0, 1, 1460);
    bench.run();
    assert!(latency(&bench, short) < Span::us(4));
    assert!(latency(&bench, long) > Span::us(80));
}

// Does the protocol hold: random traffic, tiny buffers.

#[derive(Clone, Debug)]
struct Planned {
    at: Time,
    operation: Operation,
    source: u32,
    target: u32,
    bytes: u64,
}

const NODES: u32 = 5;

fn traffic() -> impl Strategy<Value = Vec<Planned>> {
    let bytes = prop_oneof![1u64..200, 1_000u64..5_000, 20_000u64..60_000];
    let one = (0u64..20_000, 0usize..3, 0..NODES, 1..NODES, bytes);
    let planned = one.prop_map(|(at, operation, source, step, bytes)| Planned {
        at: Time::ns(at),
        operation: OPERATIONS[operation],
        source,
        target: (source + step) % NODES,
        bytes,
    });
    proptest::collection::vec(planned, 1..40)
}

/// Runs the traffic to the end; the ends, by ticket.
fn play<H: Host, S: Switch>(rig: PacketRig<H, S>, traffic: &[Planned]) -> (Vec<(Ticket, Time)>, Bench<H, S>) {
    let mut bench = Bench::new(rig);
    for planned in traffic {
        let (source, target) = (NodeId(planned.source), NodeId(planned.target));
        bench.issue(planned.at, planned.operation, source, target, Bytes::new(planned.bytes));
    }
    bench.run();
    let mut ends: Vec<(Ticket, Time)> = bench.ended.iter().map(|ended| (ended.ticket, ended.end)).collect();
    ends.sort();
    (ends, bench)
}

fn protocol_holds<H: Host, S: Switch>(make: impl Fn(bool) -> PacketRig<H, S>, traffic: &[Planned]) {
    let (ends, bench) = play(make(true), traffic);
    let tickets: Vec<u32> = ends.iter().map(|(ticket, _)| ticket.0).collect();
    assert_eq!(tickets, (0..traffic.len() as u32).collect::<Vec<_>>(), "each request ends exactly once");
    assert!(bench.rig.is_at_rest());
    let links = || (0..NODES).map(|node| bench.rig.link_bytes(NodeId(node)));
    let (up, down): (u64, u64) = (links().map(|link| link.up).sum(), links().map(|link| link.down).sum());
    assert!(down + bench.rig.dropped_bytes().count() >= up, "the switch loses nothing but what it drops");
    let (unchecked, _) = play(make(false), traffic);
    assert_eq!(ends, unchecked, "checking the wire format changes nothing");
}

fn checked(stack: EthernetStack, wire_check: bool) -> PacketRigConfig {
    PacketRigConfig { wire_check, seed: Seed(7), ..network(NODES, stack) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn dctcp_delivers_every_message_once_over_tiny_buffers(traffic in traffic(), room in 2u64..12) {
        let config = Dctcp {
            queue: Bytes::new(room * 1538),
            mark_above: Bytes::new(room * 769),
            timeout_min: Span::us(20),
            selective: true,
            connections: 1,
            ..dctcp_config()
        };
        protocol_holds(|wire_check| rivals::dctcp(&config, &checked(EthernetStack::TCP, wire_check)), &traffic);
    }

    #[test]
    fn pfabric_delivers_every_message_once_over_tiny_buffers(traffic in traffic(), room in 2u64..12) {
        let control = RateControl::Minimal { probe_after: 3 };
        let config = Pfabric { queue: Bytes::new(room * 1546), control, ..pfabric_config() };
        protocol_holds(|wire_check| rivals::pfabric(&config, &checked(EthernetStack::TCP, wire_check)), &traffic);
    }

    #[test]
    fn pfabric_over_dctcp_delivers_every_message_once_over_tiny_buffers(
        traffic in traffic(), room in 2u64..12, window in 1u32..20,
    ) {
        let config = over_dctcp_with(Bytes::new(room * 1538), Bytes::new(room * 769), window);
        let RateControl::Dctcp(dctcp) = config.control else { unreachable!("it is over DCTCP") };
        let dctcp = Dctcp { timeout_min: Span::us(20), ..dctcp };
        let config = Pfabric { control: RateControl::Dctcp(dctcp), ..config };
        protocol_holds(|wire_check| rivals::pfabric(&config, &checked(EthernetStack::TCP, wire_check)), &traffic);
    }

    /// Ports that share a buffer from less than a packet on, and both ways to answer notifications:
    /// no port stays paused.
    #[test]
    fn dcqcn_with_dynamic_thresholds_delivers_every_message_once_and_never_drops(
        traffic in traffic(), shared in 1u64..100_000, share in 0.01f64..8.0, is_periodic: bool, propagation in 0u64..3_000,
    ) {
        let reaction = match is_periodic {
            true => Reaction::Periodic { cut_interval: Span::us(4) },
            false => Reaction::AtOnce { increase_bytes: Bytes::new(100_000) },
        };
        let config = Dcqcn {
            pause: Pause::Dynamic { shared: Bytes::new(shared), share },
            reaction,
            notification_interval: Span::us(1),
            mark_from: Bytes::new(2_000),
            mark_all: Bytes::new(20_000),
            ..dcqcn_config()
        };
        let network = |wire_check| PacketRigConfig {
            propagation: Span::ns(propagation), ..checked(EthernetStack::ROCE, wire_check)
        };
        protocol_holds(|wire_check| rivals::dcqcn(&config, &network(wire_check)), &traffic);
    }

    #[test]
    fn dcqcn_delivers_every_message_once_and_never_drops(traffic in traffic(), pause in 2u64..20) {
        let config = Dcqcn {
            pause: Pause::Static { above: Bytes::new(pause * 1200), below: Bytes::new(pause * 600) },
            mark_from: Bytes::new(2_000),
            mark_all: Bytes::new(20_000),
            ..dcqcn_config()
        };
        protocol_holds(|wire_check| rivals::dcqcn(&config, &checked(EthernetStack::ROCE, wire_check)), &traffic);
    }
}
