//! The controller's rates against shares worked out by hand, and its periods on both sides of their
//! ends.

use super::*;
use proptest::prelude::*;

const CONTROLLER: NodeId = NodeId(50);
const PERIOD: Span = Span::ms(100);
const WRITE_COST: u32 = 10;
const UNITS: u64 = 100_000;
/// 12.5 MB/s with messages of 5,000 B: 2,500 of them a second.
const SLOW_LINK: Rate = Rate::bps(100_000_000);

/// One volume on server 10 and, when `copies` is 2, also on server 11, each device of 100,000 units
/// a second.
fn config(copies: usize, rate: Rate) -> VdcConfig {
    let replicas = [(NodeId(10), VssdId(0)), (NodeId(11), VssdId(1))];
    let device = |vssd| Device { units_per_second: UNITS, vssds: vec![VssdId(vssd)] };
    VdcConfig {
        node: CONTROLLER,
        clients: 4,
        period: PERIOD,
        write_cost: WRITE_COST,
        page_message: Bytes::new(5_000),
        links: vec![Link { server: NodeId(10), rate }, Link { server: NodeId(11), rate }],
        devices: vec![device(0), device(1)],
        volumes: vec![Volume { replicas: replicas[..copies].to_vec() }],
    }
}

fn controller(copies: usize, rate: Rate) -> Controller {
    Controller::new(config(copies, rate)).expect("a sound configuration")
}

fn report(controller: &mut Controller, now: Time, client: u32, requests: u32, writes: u32) -> Vec<ControllerOut> {
    let body = Body::Control(ControlMessage::Demand { requests, writes });
    let packet = Packet { vssd: VssdId(0), latency_ns: 0, source: NodeId(client), target: CONTROLLER, body };
    let mut out = Vec::new();
    controller.on(now, packet, &mut out);
    out
}

/// The rates of the period that ends at `now`, by client.
fn rates(controller: &mut Controller, now: Time) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    controller.on_wakeup(now, &mut out);
    out.into_iter().map(client_and_rate).collect()
}

fn client_and_rate(out: ControllerOut) -> (u32, u32) {
    let ControllerOut::Send(Packet { vssd, source, target, body, .. }) = out;
    assert_eq!((vssd, source), (VssdId(0), CONTROLLER));
    let Body::Control(ControlMessage::Rate { per_second }) = body else { panic!("a controller sends rates") };
    (target.0, per_second)
}

#[test]
fn a_device_asked_for_too_much_is_shared_max_min() {
    let mut controller = controller(1, Rate::gbps(50));
    // In a period of 100 ms: 10,000, 80,000 and 90,000 units a second.
    for (client, requests) in [(0, 1_000), (1, 8_000), (2, 9_000)] {
        report(&mut controller, Time::us(1), client, requests, 0);
    }
    assert_eq!(rates(&mut controller, Time::ZERO + PERIOD), [(0, 10_000), (1, 45_000), (2, 45_000)]);
}

#[test]
fn a_write_counts_as_many_units_as_it_costs() {
    let mut controller = controller(1, Rate::gbps(50));
    report(&mut controller, Time::us(1), 0, 2_000, 0);
    report(&mut controller, Time::us(1), 1, 8_500, 150);
    let rates = rates(&mut controller, Time::ZERO + PERIOD);
    // Demands are 20,000 and 83,500 + 15,000 units a second; the second gets what the first leaves.
    assert_eq!(rates, [(0, 20_000), (1, 80_000)]);
}

#[test]
fn what_nobody_asked_for_is_shared_equally_on_top() {
    let mut controller = controller(1, Rate::gbps(50));
    report(&mut controller, Time::us(1), 0, 1_000, 0);
    report(&mut controller, Time::us(1), 1, 3_000, 0);
    assert_eq!(rates(&mut controller, Time::ZERO + PERIOD), [(0, 10_000 + 30_000), (1, 30_000 + 30_000)]);
}

#[test]
fn a_link_limits_as_well_as_a_device_and_only_in_its_direction() {
    let mut controller = controller(1, SLOW_LINK);
    report(&mut controller, Time::us(1), 0, 10_000, 0);
    report(&mut controller, Time::us(1), 1, 10_000, 10_000);
    // Reads fill the way out with 2,500 messages a second, writes the way in with as many, which
    // are ten units each.
    assert_eq!(rates(&mut controller, Time::ZERO + PERIOD), [(0, 2_500), (1, 25_000)]);
}

#[test]
fn a_write_also_takes_the_way_out_to_the_replica_and_the_replicas_device() {
    let mut two = controller(2, SLOW_LINK);
    report(&mut two, Time::us(1), 0, 10_000, 0);
    report(&mut two, Time::us(1), 1, 10_000, 10_000);
    // At a rate of x units each, reads take x messages a second of the way out and writes x / 10: x
    // = 2,500 / 1.1 = 2,272.7.
    assert_eq!(rates(&mut two, Time::ZERO + PERIOD), [(0, 2_272), (1, 2_272)]);

    let mut config = config(2, Rate::gbps(50));
    config.devices[1].units_per_second = 5_000;
    let mut narrow = Controller::new(config).expect("a sound configuration");
    report(&mut narrow, Time::us(1), 0, 10_000, 10_000);
    assert_eq!(rates(&mut narrow, Time::ZERO + PERIOD), [(0, 5_000)]);
}

#[test]
fn nothing_is_sent_before_a_period_ends_and_once_when_it_does() {
    let mut controller = controller(1, Rate::gbps(50));
    assert_eq!(report(&mut controller, Time::us(1), 0, 100, 0), []);
    assert_eq!(controller.next_wakeup(), Some(Time::ZERO + PERIOD));
    assert_eq!(rates(&mut controller, Time::ZERO + PERIOD - Span::ps(1)), []);
    assert_eq!(rates(&mut controller, Time::ZERO + PERIOD).len(), 1);
    assert_eq!(rates(&mut controller, Time::ZERO + PERIOD), []);
    assert_eq!(controller.next_wakeup(), Some(Time::ZERO + PERIOD * 2));
}

#[test]
fn a_report_after_the_end_belongs_to_the_next_period() {
    let mut controller = controller(1, Rate::gbps(50));
    report(&mut controller, Time::us(1), 0, 9_000, 0);
    let sent = report(&mut controller, Time::ZERO + PERIOD, 1, 9_000, 0);
    assert_eq!(sent.into_iter().map(client_and_rate).collect::<Vec<_>>(), [(0, 100_000)]);
    assert_eq!(rates(&mut controller, Time::ZERO + PERIOD * 2), [(0, 5_000), (1, 95_000)]);
}

#[test]
fn rates_follow_demand_from_one_period_to_the_next() {
    let mut controller = controller(1, Rate::gbps(50));
    let mut seen = Vec::new();
    for (period, demands) in (1..).zip([[9_000, 1_000], [9_000, 9_000], [1_000, 9_000]]) {
        let now = Time::ZERO + PERIOD * period;
        report(&mut controller, now - Span::us(1), 0, demands[0], 0);
        report(&mut controller, now - Span::us(1), 1, demands[1], 0);
        seen.push(rates(&mut controller, now));
    }
    let expected = [[(0, 90_000), (1, 10_000)], [(0, 50_000), (1, 50_000)], [(0, 10_000), (1, 90_000)]];
    assert_eq!(seen, expected);
}

#[test]
fn a_flow_squeezed_out_is_told_one_unit_because_zero_means_no_limit() {
    let mut config = config(1, Rate::gbps(50));
    config.devices[0].units_per_second = 1;
    let mut controller = Controller::new(config).expect("a sound configuration");
    report(&mut controller, Time::us(1), 0, 1_000, 0);
    report(&mut controller, Time::us(1), 1, 1_000, 0);
    assert_eq!(rates(&mut controller, Time::ZERO + PERIOD), [(0, 1), (1, 1)]);
}

#[test]
fn reports_that_cannot_be_are_refused_and_make_no_flow() {
    let mut controller = controller(1, Rate::gbps(50));
    report(&mut controller, Time::us(1), 4, 100, 0);
    report(&mut controller, Time::us(1), 0, 100, 101);
    let unknown = Body::Control(ControlMessage::Demand { requests: 1, writes: 0 });
    let packet = Packet { vssd: VssdId(9), latency_ns: 0, source: NodeId(0), target: CONTROLLER, body: unknown };
    controller.on(Time::us(1), packet, &mut Vec::new());
    controller.on(Time::us(1), Packet { vssd: VssdId(0), body: Body::Delete, ..packet }, &mut Vec::new());
    assert_eq!((controller.refused(), rates(&mut controller, Time::ZERO + PERIOD)), (4, vec![]));
}

#[test]
fn a_configuration_that_counts_twice_or_cannot_run_is_refused() {
    let sound = config(2, Rate::gbps(50));
    let twice = Device { units_per_second: 1, vssds: vec![VssdId(1)] };
    let empty = Volume { replicas: vec![] };
    let bad = [
        (VdcConfig { period: Span::ZERO, ..sound.clone() }, VdcConfigError::NoPeriod),
        (VdcConfig { write_cost: 0, ..sound.clone() }, VdcConfigError::FreeWrites),
        (VdcConfig { devices: vec![twice.clone(), twice], ..sound.clone() }, VdcConfigError::OnTwoDevices(VssdId(1))),
        (
            VdcConfig { volumes: vec![sound.volumes[0].clone(); 2], ..sound.clone() },
            VdcConfigError::InTwoVolumes(VssdId(0)),
        ),
        (VdcConfig { links: vec![sound.links[0]; 2], ..sound.clone() }, VdcConfigError::TwoLinks(NodeId(10))),
        (VdcConfig { volumes: vec![empty], ..sound }, VdcConfigError::NoReplica(0)),
    ];
    for (config, error) in bad {
        assert_eq!(Controller::new(config).err(), Some(error));
    }
}

proptest! {
    #[test]
    fn rates_promise_what_the_device_has_and_no_more(
        demands in prop::collection::vec((0_u32..30_000, 0_u32..30_000), 1..4),
    ) {
        let mut controller = controller(1, Rate::gbps(50));
        for (client, (reads, writes)) in (0..).zip(&demands) {
            report(&mut controller, Time::us(1), client, reads + writes, *writes);
        }
        let total: u64 = rates(&mut controller, Time::ZERO + PERIOD).iter().map(|(_, rate)| u64::from(*rate)).sum();
        // The link is too fast to matter; what is not enough for a unit each is left by either
        // filling.
        prop_assert!((UNITS - 2 * demands.len() as u64..=UNITS).contains(&total), "{}", total);
    }
}
