//! Does the claim hold: what the rivals' own papers show, played with our programs. Numbers beside
//! the published ones are in `docs/concepts/rivals-dcqcn.md` and `rivals-pfabric.md`; `--nocapture`
//! prints ours.

use base::{Bytes, NodeId, Operation, Rate, Seed, Span, Time};
use hardware::{DramConfig, EthernetStack, RemoteAccess};
use plan::{Design, Protocol};
use sim::drive::{Rig, Ticket};
use sim::rigs::packet::{Bench, PacketRig, PacketRigConfig};
use sim::rigs::rivals;
use transport::config::{Dcqcn, Dctcp, Pfabric, RateControl};
use transport::{Host, Switch};

fn network(nodes: u32, rate: Rate, stack: EthernetStack) -> PacketRigConfig {
    PacketRigConfig {
        nodes,
        rate,
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

fn write<H: Host, S: Switch>(bench: &mut Bench<H, S>, at: Time, source: u32, target: u32, bytes: u64) -> Ticket {
    bench.issue(at, Operation::Write, NodeId(source), NodeId(target), Bytes::new(bytes))
}

mod dcqcn {
    use super::*;

    /// SIGCOMM'15: of its testbed.
    const RATE: Rate = Rate::gbps(40);

    /// What a plan has by `design.dcqcn.preset`; `plan` holds it against what is published.
    fn preset(name: &str, rate: Rate) -> Dcqcn {
        let text = format!(
            "title = 'preset'\nfabric = {{ nodes = 2, rate = '{rate}' }}\n\
             design = {{ name = 'dcqcn', dcqcn.preset = '{name}' }}\n\
             workload = {{ load = 0.5 }}\nrun = {{ requests = 1000 }}\n"
        );
        let experiment = plan::parse("preset.toml", &text, &plan::NoFiles, &[]);
        let plan = experiment.unwrap_or_else(|errors| panic!("{errors}")).points(None).remove(0).plan;
        let Design::Packet(rival) = plan.messages().expect("DCQCN carries messages").design else { panic!("a rival") };
        let Protocol::Dcqcn(config) = rival.protocol else { panic!("DCQCN") };
        config
    }
    fn paper() -> Dcqcn {
        preset("paper", RATE)
    }

    type Rack = Bench<transport::dcqcn::Host, transport::dcqcn::Switch>;

    /// Far more than any of these runs sends.
    const WITHOUT_END: u64 = 4_000_000_000;

    /// `senders` flows to the node behind them, the first at once and each other `apart` later.
    fn incast(config: &Dcqcn, rate: Rate, senders: u32, apart: Span, seed: u64) -> Rack {
        let rack = PacketRigConfig { seed: Seed(seed), ..network(senders + 2, rate, EthernetStack::ROCE) };
        let mut bench = Bench::new(rivals::dcqcn(config, &rack));
        for source in 0..senders {
            write(&mut bench, Time::ZERO + apart * u64::from(source), source, senders, WITHOUT_END);
        }
        bench
    }

    /// What each sender's link carries from one time until another, in bits a second.
    fn rates(bench: &mut Rack, senders: u32, from: Time, until: Time) -> Vec<f64> {
        let mut sent = |at| {
            bench.run_until(at);
            (0..senders).map(|node| bench.rig.link_bytes(NodeId(node)).up).collect::<Vec<_>>()
        };
        let (before, after) = (sent(from), sent(until));
        let seconds = (until - from).as_secs_f64();
        before.iter().zip(&after).map(|(before, after)| (after - before) as f64 * 8.0 / seconds).collect()
    }

    /// Jain, Chiu and Hawe (1984): 1 where all are equal, 1/n where one has everything.
    fn fairness(rates: &[f64]) -> f64 {
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
        sum * sum / (rates.len() as f64 * squares)
    }

    /// SIGCOMM'15, 6.1 and Figure 8: senders that share a bottleneck come to equal rates, and the
    /// link stays in use.
    #[test]
    fn senders_that_join_one_after_the_other_come_to_equal_shares() {
        let presets = [("paper", RATE), ("hpcc", Rate::gbps(100))];
        for (config, rate, until) in presets.map(|(name, rate)| (preset(name, rate), rate, 60)) {
            for senders in [2, 4, 8, 16] {
                let mut bench = incast(&config, rate, senders, Span::us(500), 1);
                let rates = rates(&mut bench, senders, Time::ms(until - 30), Time::ms(until));
                let (fairness, used) = (fairness(&rates), rates.iter().sum::<f64>() / rate.as_bps() as f64);
                println!("{rate} {senders} senders: fairness {fairness:.3}, use {used:.3}");
                assert!(fairness > 0.9, "{senders} at {rate}: {rates:?}");
                assert!(used > 0.9, "{senders} at {rate}: {used}");
                assert_eq!(bench.rig.switch().pause_frames(), 0, "marks come before pauses");
            }
        }
    }

    /// The fixed point of the paper's fluid model (SIGCOMM'15, 5.1, equations 5 to 9, all
    /// derivatives zero), found by bisection. Returns the marking probability with which `flows` of
    /// packets of `wire` bytes share `rate`.
    fn fluid_probability(flows: f64, rate: Rate, wire: f64) -> f64 {
        let packets = rate.as_bps() as f64 / 8.0 / wire;
        let (share, step) = (packets / flows, 40e6 / 8.0 / wire);
        let (interval, timer) = (50e-6, 55e-6);
        let counter = 10e6 / wire;
        let rounds = 5.0;
        // How often an event comes that needs `count` packets without a mark.
        let events = |p: f64, count: f64| share * p / ((1.0 - p).powf(-count) - 1.0);
        let surplus = |p: f64| {
            let notified = 1.0 - (1.0 - p).powf(interval * share);
            let in_timer = timer * share;
            let raises = step
                * (events(p, counter) * (1.0 - p).powf(rounds * counter)
                    + events(p, in_timer) * (1.0 - p).powf(rounds * in_timer));
            // The target's balance gives its distance to the rate, and that the rate's.
            let distance = raises * interval / notified;
            let gained = distance / 2.0 * (events(p, counter) + events(p, in_timer));
            gained - share * notified / (2.0 * interval) * notified
        };
        let (mut low, mut high) = (1e-9, 0.5);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if surplus(middle) > 0.0 { low = middle } else { high = middle }
        }
        low
    }

    /// SIGCOMM'15, 5: the queue settles where its marks balance the increases.
    #[test]
    fn the_queue_settles_at_the_fixed_point_of_the_fluid_model() {
        for flows in [2, 4, 8] {
            let mut bench = incast(&paper(), RATE, flows, Span::us(100), 3);
            let mut queued = Vec::new();
            for at in 3_000..6_000 {
                bench.run_until(Time::us(at * 10));
                queued.push(bench.rig.switch().queued(NodeId(flows)).count() as f64);
            }
            let mean = queued.iter().sum::<f64>() / queued.len() as f64;
            let wire = f64::from(transport::framing::roce_wire(1024, false));
            let probability = fluid_probability(f64::from(flows), RATE, wire);
            let fluid = 5_000.0 + probability / 0.01 * 195_000.0;
            println!("{flows} flows: queue {:.1} KB, fluid model {:.1} KB", mean / 1e3, fluid / 1e3);
            assert!((mean / fluid - 1.0).abs() < 0.3, "{flows} flows: {mean:.0} against {fluid:.0}");
        }
    }

    /// SIGCOMM'15, 2.2 and Figure 9: a flow to an idle target suffers from its host's part in an
    /// incast elsewhere under priority flow control alone, and not under DCQCN.
    #[test]
    fn a_victim_of_priority_flow_control_is_free_with_dcqcn() {
        let unmarked = Dcqcn { mark_from: Bytes::new(1 << 39), mark_all: Bytes::new(1 << 40), ..paper() };
        let victim = |config: &Dcqcn| {
            let mut bench = incast(config, RATE, 8, Span::ZERO, 5);
            write(&mut bench, Time::ZERO, 0, 9, WITHOUT_END);
            let mut received = |at| {
                bench.run_until(at);
                bench.rig.link_bytes(NodeId(9)).down
            };
            let (before, after) = (received(Time::ms(20)), received(Time::ms(40)));
            (after - before) as f64 * 8.0 / 20e-3 / 1e9
        };
        let (alone, controlled) = (victim(&unmarked), victim(&paper()));
        println!("victim: {alone:.1} Gb/s with priority flow control alone, {controlled:.1} Gb/s with DCQCN");
        assert!(alone < 40.0 / 7.0, "no more than the paused share: {alone}");
        assert!(controlled > 25.0, "{controlled}");
    }
}

mod pfabric {
    use super::*;

    /// SIGCOMM'13, 5.1: 10 Gb/s hosts.
    const RATE: Rate = Rate::gbps(10);
    const FLOWS: u32 = 1_200;
    /// What the paper calls short: at most 100 KB.
    const SHORT: u64 = 100_000;
    /// Web search (SIGCOMM'10, Figure 4; SIGCOMM'13, 5.1), as its public simulations write it:
    /// packets of 1460 bytes.
    const WEB_SEARCH: [(f64, f64); 12] = [
        (1.0, 0.0),
        (6.0, 0.15),
        (13.0, 0.2),
        (19.0, 0.3),
        (33.0, 0.4),
        (53.0, 0.53),
        (133.0, 0.6),
        (667.0, 0.7),
        (1_333.0, 0.8),
        (3_333.0, 0.9),
        (6_667.0, 0.97),
        (20_000.0, 1.0),
    ];

    #[derive(Clone, Copy)]
    struct Flow {
        at: Time,
        bytes: u64,
    }

    /// The size at a point of the distribution, linear between its points.
    fn size(point: f64) -> u64 {
        let above = WEB_SEARCH.iter().position(|(_, cumulative)| *cumulative >= point).unwrap_or(11).max(1);
        let ((low, from), (high, until)) = (WEB_SEARCH[above - 1], WEB_SEARCH[above]);
        ((low + (high - low) * (point - from) / (until - from)) * 1_460.0).round() as u64
    }

    fn mean_size() -> f64 {
        WEB_SEARCH.windows(2).map(|pair| (pair[0].0 + pair[1].0) / 2.0 * (pair[1].1 - pair[0].1)).sum::<f64>() * 1_460.0
    }

    /// Poisson arrivals of flows to one target, whose link they load so far. Each has a source of
    /// its own: messages of one pair would follow each other in DCTCP's one connection.
    fn flows(load: f64) -> Vec<Flow> {
        let mut random = Seed(11).stream("flows");
        let mean_gap = mean_size() * 8.0 / (load * RATE.as_bps() as f64);
        let mut at = 0.0;
        let mut next = || {
            at += -mean_gap * (1.0 - random.unit()).ln();
            Flow { at: Time::ps((at * 1e12) as u64), bytes: size(random.unit()) }
        };
        (0..FLOWS).map(|_| next()).collect()
    }

    /// When each flow would end if its target's link always served the one with the least left (the
    /// paper's ideal for one bottleneck), in seconds after its arrival; `service` is what it takes
    /// alone there.
    fn ideal(flows: &[Flow], service: impl Fn(u64) -> f64) -> Vec<f64> {
        let mut left: Vec<f64> = flows.iter().map(|flow| service(flow.bytes)).collect();
        let mut ends = vec![0.0; flows.len()];
        let mut open: Vec<usize> = Vec::new();
        for (place, flow) in flows.iter().enumerate() {
            let mut now = flow.at.as_secs_f64();
            open.push(place);
            let until = flows.get(place + 1).map_or(f64::INFINITY, |next| next.at.as_secs_f64());
            while let Some(first) = (0..open.len()).min_by(|a, b| left[open[*a]].total_cmp(&left[open[*b]])) {
                let served = open[first];
                let spent = left[served].min(until - now);
                (left[served], now) = (left[served] - spent, now + spent);
                if now >= until {
                    break;
                }
                ends[served] = now - flows[served].at.as_secs_f64();
                open.swap_remove(first);
            }
        }
        ends
    }

    /// Completion times over those of a lone flow, and over the ideal ones: means of short flows
    /// and of all, and the 99th percentile of the short ones.
    struct Figures {
        short: f64,
        short_99: f64,
        all: f64,
        short_to_ideal: f64,
        all_to_ideal: f64,
    }

    fn play<H: Host, S: Switch>(rig: PacketRig<H, S>, load: f64) -> Figures {
        let flows = flows(load);
        let mut bench = Bench::new(rig);
        for (source, flow) in (0..).zip(&flows) {
            write(&mut bench, flow.at, source, FLOWS, flow.bytes);
        }
        bench.run();
        let mut took = vec![0.0; flows.len()];
        bench.ended.iter().for_each(|end| took[end.ticket.0 as usize] = (end.end - end.start).as_secs_f64());
        assert_eq!(bench.ended.len(), flows.len());
        let lone = |bytes| bench.rig.unloaded(Operation::Write, Bytes::new(bytes)).unwrap().as_secs_f64();
        let service = |bytes: u64| {
            let packets = bytes.div_ceil(1_452);
            (bytes + packets * 86) as f64 * 8.0 / RATE.as_bps() as f64
        };
        let ideal = ideal(&flows, service);
        let of = |is_meant: &dyn Fn(&Flow) -> bool, value: &dyn Fn(usize) -> f64| {
            let mut values: Vec<f64> = (0..flows.len()).filter(|place| is_meant(&flows[*place])).map(value).collect();
            values.sort_by(f64::total_cmp);
            (values.iter().sum::<f64>() / values.len() as f64, values[values.len() * 99 / 100])
        };
        let normalized = |place: usize| took[place] / lone(flows[place].bytes);
        let best = |place: usize| ideal[place] + lone(flows[place].bytes) - service(flows[place].bytes);
        let (short, short_99) = of(&|flow| flow.bytes <= SHORT, &normalized);
        let ratio = |is_meant: &dyn Fn(&Flow) -> bool| of(is_meant, &|place| took[place]).0 / of(is_meant, &best).0;
        Figures {
            short,
            short_99,
            all: of(&|_| true, &normalized).0,
            short_to_ideal: ratio(&|flow| flow.bytes <= SHORT),
            all_to_ideal: ratio(&|_| true),
        }
    }

    fn rack() -> PacketRigConfig {
        network(FLOWS + 1, RATE, EthernetStack::TCP)
    }

    /// SIGCOMM'13, 4: two bandwidth-delay products of queue, one of window; 6 frames at 10 Gb/s and
    /// these stacks.
    const MINIMAL: Pfabric = Pfabric {
        mss: Bytes::new(1_452),
        queue: Bytes::new(12 * 1_538),
        window: 6,
        timeout: Span::us(26),
        control: RateControl::Minimal { probe_after: 5 },
    };
    /// SIGCOMM'10, 3.4: K of 65 frames at 10 Gb/s; 1 ms of least timeout.
    const DCTCP: Dctcp = Dctcp {
        mss: Bytes::new(1_452),
        mark_above: Bytes::new(65 * 1_538),
        queue: Bytes::new(700_000),
        gain: 1.0 / 16.0,
        initial_window: 10,
        timeout_min: Span::ms(1),
        selective: true,
        connections: 1,
    };

    fn over_dctcp() -> Pfabric {
        let Pfabric { mss, queue, window: initial_window, timeout: timeout_min, .. } = MINIMAL;
        let mark_above = Bytes::new(6 * 1_538);
        let dctcp = Dctcp { mss, queue, initial_window, timeout_min, mark_above, ..DCTCP };
        Pfabric { control: RateControl::Dctcp(dctcp), ..MINIMAL }
    }

    fn print(name: &str, load: f64, figures: &Figures) {
        let Figures { short, short_99, all, short_to_ideal, all_to_ideal } = figures;
        println!(
            "{name} at {load}: short {short:.2}, 99th {short_99:.2}, all {all:.2}; to ideal {short_to_ideal:.3}, {all_to_ideal:.3}"
        );
    }

    /// SIGCOMM'13, abstract and 5.3: near the ideal at every load, for short flows to the 99th
    /// percentile.
    #[test]
    fn completion_times_stay_near_the_ideal_whatever_the_load() {
        for load in [0.2, 0.4, 0.6, 0.8] {
            let figures = play(rivals::pfabric(&MINIMAL, &rack()), load);
            print("pfabric", load, &figures);
            assert!((0.99..1.1).contains(&figures.short_to_ideal), "{load}: {}", figures.short_to_ideal);
            assert!((0.99..1.2).contains(&figures.all_to_ideal), "{load}: {}", figures.all_to_ideal);
            assert!(figures.short_99 < 3.0, "{load}: {}", figures.short_99);
        }
    }

    /// SIGCOMM'13, 5.3: DCTCP's short flows wait in queues that it does not empty. EDM's
    /// combination lies between.
    #[test]
    fn short_flows_of_dctcp_take_longer_and_those_of_pfabric_over_dctcp_do_not() {
        for load in [0.4, 0.8] {
            let dctcp = play(rivals::dctcp(&DCTCP, &rack()), load);
            let over = play(rivals::pfabric(&over_dctcp(), &rack()), load);
            print("dctcp", load, &dctcp);
            print("pfabric over dctcp", load, &over);
            assert!(dctcp.short > 2.0 * over.short, "{load}: {} against {}", dctcp.short, over.short);
            assert!(over.short_to_ideal < 2.5, "{load}: {}", over.short_to_ideal);
        }
    }
}
