//! Does the protocol hold: every request of a session ends, whatever the network loses or delays.

mod net;

use base::{Operation, Seed, Span, Stream, Time};
use net::{Net, host_config, target_config};
use proptest::prelude::*;
use san::connection::WindowConfig;
use san::retry::RetryPolicy;

const WINDOW: WindowConfig = WindowConfig {
    segment: 4_600,
    initial_window: 14_600,
    window_max: 256 << 10,
    timeout_min: Span::us(100),
    obeys_marks: true,
    acknowledgement: 84,
};
/// Far beyond what any of these loads needs, with every timer at its longest.
const END: Time = Time::secs(600);

#[derive(Clone, Copy, Debug)]
struct Network {
    loss: f64,
    jitter: Span,
    seed: u64,
}

/// A session between a host and a target over two ways that lose and delay packets.
fn world(window: Option<WindowConfig>, network: Network) -> Net {
    let mut host = host_config(RetryPolicy::CrossControllerReset);
    let mut target = target_config();
    (host.window, target.window) = (window, window);
    if window.is_some() {
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

/// Plays a load: start in microseconds, whether it writes, blocks. Returns how many ended.
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
    fn every_request_of_a_session_with_windows_ends(network in network(), load in load()) {
        let mut net = world(Some(WINDOW), network);
        prop_assert_eq!(play(&mut net, &load), load.len());
        prop_assert_eq!((net.host.under_way(), net.target.under_way()), (0, 0));
    }

    /// Whole commands are sent again: small ones, or next to none of 40 packets would ever come whole.
    #[test]
    fn every_small_request_of_a_session_without_windows_ends(network in network(), mut load in load()) {
        let mut net = world(None, Network { loss: network.loss.min(0.15), ..network });
        load.iter_mut().for_each(|(.., blocks)| *blocks = *blocks % 2 + 1);
        prop_assert_eq!(play(&mut net, &load), load.len());
    }
}

/// A window repairs what is lost: no command is sent twice, and every drive works once a request.
#[test]
fn windows_send_lost_packets_again_and_no_command() {
    let mut net = world(Some(WINDOW), Network { loss: 0.15, jitter: Span::us(5), seed: 3 });
    let load: Vec<_> = (0..20).map(|place| (0, place % 2 == 0, 32)).collect();
    assert_eq!(play(&mut net, &load), 20);
    assert!(net.done.iter().all(|(_, done)| done.sends == 1), "{:?}", net.host.counters());
    assert_eq!(net.executed.len(), 20);
}

/// A lone packet is sent at once, and nothing again.
#[test]
fn without_losses_nothing_is_sent_again() {
    let mut net = world(Some(WINDOW), Network { loss: 0.0, jitter: Span::ZERO, seed: 1 });
    assert_eq!(play(&mut net, &[(0, false, 1)]), 1);
    // A command, data and a response, each with its acknowledgement.
    assert_eq!(net.sent.len(), 6);
}
