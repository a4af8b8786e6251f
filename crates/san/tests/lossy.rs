//! Tests of the protocol: every request of a session ends, whatever the network loses or delays.

mod net;

use base::{Bytes, Operation, Rate, Seed, Span, Stream, Time};
use net::{Net, host_config, target_config};
use proptest::prelude::*;
use san::connection::{PacedConfig, Sharing, StreamConfig, WindowConfig};
use san::retry::RetryPolicy;
use san::{Packet, PacketKind};
use transport::config::{Dcqcn, Pause};

const WINDOW: StreamConfig =
    stream(Sharing::Window(WindowConfig { initial: 14_600, max: 256 << 10, obeys_marks: true }));
/// The first returns to a gap at once, the second tolerates reordered packets.
const PACED: [StreamConfig; 2] = [paced(Span::ZERO), paced(Span::us(50))];

const fn stream(sharing: Sharing) -> StreamConfig {
    StreamConfig { segment: 4_600, timeout_min: Span::us(100), acknowledgement: 84, sharing }
}

const fn paced(reorder_timeout: Span) -> StreamConfig {
    let dcqcn = Dcqcn {
        mark_from: Bytes::new(12_500),
        mark_all: Bytes::new(500_000),
        pause: Pause::Static { above: Bytes::new(600_000), below: Bytes::new(590_000) },
        additive_bps: 100_000_000,
        hyper_bps: 1_000_000_000,
        ..Dcqcn::PUBLISHED
    };
    stream(Sharing::Paced(PacedConfig { dcqcn, reorder_timeout }))
}

fn streams() -> impl Strategy<Value = StreamConfig> {
    prop_oneof![Just(WINDOW), Just(PACED[0]), Just(PACED[1])]
}
/// Far beyond the need of any of these loads, with every timer at its maximum.
const END: Time = Time::secs(600);

#[derive(Clone, Copy, Debug)]
struct Network {
    loss: f64,
    jitter: Span,
    seed: u64,
}

/// Builds a session between a host and a target over two paths that lose and delay packets.
fn world(stream: Option<StreamConfig>, network: Network) -> Net {
    let mut host = host_config(RetryPolicy::CrossControllerReset);
    let mut target = target_config();
    (host.stream, target.stream) = (stream, stream);
    (host.links, target.links) = (vec![Rate::gbps(100); 2], vec![Rate::gbps(100); 2]);
    if stream.is_some() {
        (host.probe, host.timeout) = (Span::ms(50), Span::ms(50));
    }
    let mut net = Net::new(host, &target);
    let mut random: Stream = Seed(network.seed).stream("network");
    net.way = Box::new(move |_, _, _| {
        let jitter = Span::ps(random.below(network.jitter.as_ps() + 1));
        (random.unit() >= network.loss).then_some(Span::us(2) + jitter)
    });
    net
}

/// Runs a load: start in microseconds, whether it writes, blocks. Returns the number of ended
/// requests.
fn play(net: &mut Net, load: &[(u64, bool, u32)]) -> usize {
    for (request, (at, writes, blocks)) in (0..).zip(load) {
        let operation = if *writes { Operation::Write } else { Operation::Read };
        net.ask(Time::us(*at), request, operation, request * 64, blocks * net::BLOCK);
    }
    net.run(END);
    net.done.len()
}

fn load() -> impl Strategy<Value = Vec<(u64, bool, u32)>> {
    prop::collection::vec((0u64..2_000, any::<bool>(), 1u32..40), 1..30)
}

fn network() -> impl Strategy<Value = Network> {
    let loss = prop_oneof![Just(0.0), Just(0.15), 0.0..0.3];
    let jitter = prop_oneof![Just(0), 0u64..20_000];
    (loss, jitter, any::<u64>()).prop_map(|(loss, jitter, seed)| Network { loss, jitter: Span::ns(jitter), seed })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_request_of_a_session_with_streams_ends(
        stream in streams(), network in network(), load in load(), marks in 0.0..0.3f64, pauses in 0u64..20,
    ) {
        let mut net = world(Some(stream), network);
        net.annoy(marks, pauses);
        prop_assert_eq!(play(&mut net, &load), load.len());
        prop_assert_eq!((net.host.under_way(), net.target.under_way()), (0, 0));
    }

    /// Whole commands are resent, so they must be small: a command of 40 packets would almost never
    /// arrive complete.
    #[test]
    fn every_small_request_of_a_session_without_windows_ends(network in network(), mut load in load()) {
        let mut net = world(None, Network { loss: network.loss.min(0.15), ..network });
        load.iter_mut().for_each(|(.., blocks)| *blocks = *blocks % 2 + 1);
        prop_assert_eq!(play(&mut net, &load), load.len());
    }
}

/// A stream repairs losses: no command is sent twice, and each request is executed once by the
/// drive.
#[test]
fn streams_send_lost_packets_again_and_no_command() {
    for stream in [WINDOW, PACED[0], PACED[1]] {
        let mut net = world(Some(stream), Network { loss: 0.15, jitter: Span::us(5), seed: 3 });
        let load: Vec<_> = (0..20).map(|place| (0, place % 2 == 0, 32)).collect();
        assert_eq!(play(&mut net, &load), 20, "{stream:?}");
        assert!(net.done.iter().all(|(_, done)| done.sends == 1), "{:?}", net.host.counters());
        assert_eq!(net.executed.len(), 20);
    }
}

/// A lone packet is sent at once, and nothing is resent.
#[test]
fn without_losses_nothing_is_sent_again() {
    let mut net = world(Some(WINDOW), Network { loss: 0.0, jitter: Span::ZERO, seed: 1 });
    assert_eq!(play(&mut net, &[(0, false, 1)]), 1);
    // A command, data and a response, each with its acknowledgement.
    assert_eq!(net.sent.len(), 6);
    for stream in PACED {
        let mut net = world(Some(stream), Network { loss: 0.0, jitter: Span::ZERO, seed: 1 });
        assert_eq!(play(&mut net, &[(0, false, 1)]), 1);
        assert_eq!(net.sent.len(), 6);
    }
}

/// The mark of a command is not copied to its answer.
#[test]
fn an_answer_leaves_unmarked_whatever_its_command_met() {
    for stream in [WINDOW, PACED[0]] {
        let mut net = world(Some(stream), Network { loss: 0.0, jitter: Span::ZERO, seed: 1 });
        net.annoy(1.0, 0);
        assert_eq!(play(&mut net, &[(0, false, 4), (0, true, 4)]), 2);
        let has_data =
            |packet: &Packet| matches!(packet.kind, PacketKind::ReadData { .. } | PacketKind::WriteData { .. });
        let data: Vec<_> = net.sent.iter().filter(|(_, packet)| has_data(packet)).collect();
        assert!(data.len() == 8 && data.iter().all(|(_, packet)| !packet.marked));
    }
}

/// A loss amid other packets is revealed by those that follow, and repaired long before the
/// timeout. Nothing reveals a loss at the end.
#[test]
fn a_hole_is_gone_back_to_at_once_and_silence_is_waited_for() {
    let read_without = |lost: u64, stream: StreamConfig| {
        let mut net = world(Some(stream), Network { loss: 0.0, jitter: Span::ZERO, seed: 1 });
        let mut data = 0;
        net.way = Box::new(move |_, _, packet| {
            data += u64::from(matches!(packet.kind, PacketKind::ReadData { .. } | PacketKind::Response));
            (!matches!(packet.kind, PacketKind::ReadData { .. } | PacketKind::Response) || data != lost)
                .then_some(Span::us(2))
        });
        assert_eq!(play(&mut net, &[(0, false, 32)]), 1);
        net.done_at(0).unwrap().saturating_since(Time::ZERO)
    };
    let whole = read_without(0, PACED[0]);
    assert!(read_without(5, PACED[0]) < whole + Span::us(15));
    let patient = read_without(5, PACED[1]);
    assert!((whole + Span::us(38)..whole + Span::us(60)).contains(&patient), "{patient} {whole}");
    let silent = read_without(33, PACED[0]);
    assert!((whole + Span::us(95)..whole + Span::us(110)).contains(&silent), "{silent} {whole}");
}

/// A burst of a paced session leaves at the rate of its link, and only its end is acknowledged.
#[test]
fn a_paced_burst_leaves_at_the_rate_of_its_link() {
    let mut net = world(Some(PACED[0]), Network { loss: 0.0, jitter: Span::ZERO, seed: 1 });
    assert_eq!(play(&mut net, &[(0, false, 32)]), 1);
    let data: Vec<_> =
        net.sent.iter().filter(|(_, packet)| matches!(packet.kind, PacketKind::ReadData { .. })).collect();
    assert_eq!(data.len(), 32);
    for pair in data.windows(2) {
        let frame = Bytes::new(u64::from(pair[0].1.frame));
        assert_eq!(pair[1].0 - pair[0].0, Rate::gbps(100).span_of(frame));
    }
    let acknowledged = net.sent.iter().filter(|(_, packet)| packet.kind.is_control()).count();
    assert_eq!(acknowledged, 3, "the command, the last data, and the response");
}

/// A pause holds data, and marked packets are answered at most once in 50 us.
#[test]
fn a_pause_holds_data_until_it_ends_and_marks_are_told_at_most_once_in_an_interval() {
    let mut net = world(Some(PACED[0]), Network { loss: 0.0, jitter: Span::ZERO, seed: 1 });
    net.pause_target(Time::us(10), true);
    net.pause_target(Time::us(400), false);
    net.annoy(1.0, 0);
    assert_eq!(play(&mut net, &[(0, false, 256)]), 1);
    let data: Vec<Time> = net
        .sent
        .iter()
        .filter(|(_, packet)| matches!(packet.kind, PacketKind::ReadData { .. }))
        .map(|(at, _)| *at)
        .collect();
    assert!(data.iter().all(|at| *at >= Time::us(400)), "{data:?}");
    let is_told = |packet: &Packet| packet.kind == PacketKind::Notification { to_target: true };
    let told: Vec<Time> = net.sent.iter().filter(|(_, packet)| is_told(packet)).map(|(at, _)| *at).collect();
    assert!(told.len() > 1 && told.windows(2).all(|pair| pair[1] - pair[0] >= Span::us(50)), "{told:?}");
}

/// The first notification halves the rate (SIGCOMM 2015, equation 1, with an alpha of 1).
#[test]
fn a_told_sender_sends_at_half_its_rate() {
    let mut net = world(Some(PACED[0]), Network { loss: 0.0, jitter: Span::ZERO, seed: 1 });
    net.annoy(1.0, 0);
    assert_eq!(play(&mut net, &[(0, false, 256)]), 1);
    let is_data = |packet: &Packet| matches!(packet.kind, PacketKind::ReadData { .. });
    let data: Vec<_> = net.sent.iter().filter(|(_, packet)| is_data(packet)).collect();
    let is_half = |pair: &[&(Time, Packet)]| {
        let line = Rate::gbps(100).span_of(Bytes::new(u64::from(pair[0].1.frame)));
        (pair[1].0 - pair[0].0).as_ps().abs_diff(line.as_ps() * 2) <= 1
    };
    assert!(data.windows(2).any(is_half));
}
