//! What a file comes to: defaults, rates, warnings, and the way back to a file.

use crate::common;

use crate::common::{DESIGNS, Memory, SMALL, complaint, experiment, files, plan, with};
use base::{Bytes, NodeId, Operation, Span, Time};
use plan::{BackgroundStream, Design, FaultKind, Plan, Protocol, Scale, WarmUp, parse, wire_cost};
use workload::{Arrivals, Pattern, SizeDistribution};

const EVERY_KEY: &str = include_str!("experiments/every-key.toml");
const SWEEP: &str = include_str!("experiments/sweep.toml");
const FILES: &str = include_str!("experiments/files.toml");
const TRACE: &str = include_str!("experiments/trace.toml");

fn designed(name: &str) -> String {
    with("name = \"edm\"", &format!("name = \"{name}\""))
}

fn read_again(plan: &Plan) -> Plan {
    let text = plan.to_toml();
    let again = parse("printed.toml", &text, &files(), &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    again.points(None).remove(0).plan
}

#[test]
fn a_printed_plan_reads_back_as_the_same_plan_with_the_same_hash() {
    let every: Vec<String> = DESIGNS.iter().map(|name| designed(name)).collect();
    for text in [EVERY_KEY, SWEEP, FILES, TRACE].into_iter().chain(every.iter().map(String::as_str)) {
        for scale in [None, Some(Scale::Quick), Some(Scale::Paper)] {
            for point in experiment(text).points(scale) {
                let again = read_again(&point.plan);
                assert_eq!(again, point.plan);
                assert_eq!(again.hash(), point.plan.hash());
            }
        }
    }
}

#[test]
fn the_hash_names_what_decides_a_result_but_not_title_and_seed() {
    let hash = |text: &str| plan(text).hash();
    assert_eq!(hash(SMALL).len(), 64);
    assert_eq!(hash(SMALL), hash(&with("title = \"small\"", "title = \"other\"\nseed = 99")));
    assert_eq!(hash(SMALL), hash(&with("load = 0.5", "load = 0.50\nsize = \"64 B\"")));
    assert_eq!(hash(SMALL), hash(&format!("{SMALL}[memory]\nlatency = \"0ns\"\n")));
    assert_ne!(hash(SMALL), hash(&with("load = 0.5", "load = 0.51")));
    assert_ne!(hash(SMALL), hash(&with("nodes = 144", "nodes = 143")));
    assert_ne!(hash(SMALL), hash(&format!("{SMALL}[memory]\nlatency = \"1ns\"\n")));
}

#[test]
fn a_trace_counts_by_its_messages_and_not_by_its_name() {
    let trace = "time,source,target,operation,bytes\n0ns,0,1,read,64\n";
    let memory = Memory::default()
        .with("a.csv", trace)
        .with("b.csv", &format!("# same\n{trace}"))
        .with("c.csv", &trace.replace("64", "65"));
    let hash = |name: &str| {
        let text = TRACE.replace("messages.csv", name);
        parse("trace.toml", &text, &memory, &[]).unwrap().points(None)[0].plan.hash()
    };
    assert_eq!(hash("a.csv"), hash("b.csv"));
    assert_ne!(hash("a.csv"), hash("c.csv"));
}

#[test]
fn messages_that_are_a_little_behind_are_put_in_order_and_told_of() {
    let header = "time,source,target,operation,bytes\n";
    let (early, late) = ("0ns,2,3,write,4096\n", "10ns,0,1,read,64\n");
    let memory = Memory::default()
        .with("sorted.csv", &[header, early, late].concat())
        .with("behind.csv", &[header, late, early].concat());
    let plan = |name: &str| {
        let text = TRACE.replace("messages.csv", name);
        parse("trace.toml", &text, &memory, &[]).unwrap().points(None).remove(0).plan
    };
    let (sorted, behind) = (plan("sorted.csv"), plan("behind.csv"));
    assert_eq!(sorted.hash(), behind.hash());
    let told = |plan: &plan::Plan| plan.warnings.iter().any(|it| it.starts_with("1 messages of the trace came behind"));
    assert!(told(&behind) && !told(&sorted), "{:?}", behind.warnings);
}

#[test]
fn an_automatic_warm_up_is_written_as_it_was_asked_for() {
    let auto = plan(&SMALL.replace("requests = 100000", "requests = 100000\nwarm_up = \"auto\""));
    assert_eq!(auto.messages().unwrap().run.warm_up, WarmUp::Auto);
    assert!(auto.to_toml().contains("warm_up = \"auto\""), "{}", auto.to_toml());
    assert_eq!(common::plan(&auto.to_toml()).hash(), auto.hash());
    let given = auto.with_warm_up(Span::us(3));
    assert_eq!(given.messages().unwrap().run.warm_up, WarmUp::Time(Span::us(3)));
}

#[test]
fn every_key_reaches_the_plan() {
    let plan = plan(EVERY_KEY);
    let Design::Edm(edm) = plan.messages().unwrap().design else { panic!("{:?}", plan.messages().unwrap().design) };
    assert_eq!((edm.config.chunk, edm.config.batch, edm.redundant), (Bytes::new(128), Bytes::new(64), true));
    assert_eq!((plan.seed, plan.messages().unwrap().memory.dram.latency), (7, Span::ns(50)));
    assert_eq!(plan.messages().unwrap().workload.pattern, Pattern::RoleSplit { compute: 8 });
    assert_eq!(plan.messages().unwrap().workload.mix.len(), 4);
    assert_eq!(
        (plan.messages().unwrap().run.warm_up, plan.messages().unwrap().run.drain_limit),
        (WarmUp::Time(Span::us(10)), Span::ms(20))
    );
    assert_eq!(edm.preemption, edm::pcs::multiplex::Policy::Strict);
    let background = plan.messages().unwrap().background.clone().expect("the file has a table for it");
    assert_eq!(background.egress_queue, Bytes::kib(64));
    let stream = |name: &str, frame: u64, load: f64, burst_frames: u32| BackgroundStream {
        name: name.into(),
        frame: Bytes::new(frame),
        load,
        burst_frames,
    };
    assert_eq!(background.streams, [stream("storage", 9_018, 0.3, 4), stream("ip-4_of_all", 64, 0.05, 1)]);
    let kinds: Vec<_> = plan.messages().unwrap().faults.iter().map(|fault| (fault.at, fault.kind)).collect();
    let expected = [
        (Time::us(10), FaultKind::SwitchDown { switch: 1 }),
        (Time::us(20), FaultKind::LinkDown { node: NodeId(3), switch: 0 }),
        (Time::us(30), FaultKind::NodeDown { node: NodeId(9) }),
        (Time::us(40), FaultKind::LinkCorrupt { node: NodeId(2), switch: 0 }),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn sizes_come_from_files_in_their_unit() {
    let plan = plan(FILES);
    let SizeDistribution::Cdf { points, .. } = &plan.messages().unwrap().workload.mix[0].size else {
        panic!("a file gives a CDF")
    };
    assert_eq!(points, &[(1460.0, 0.0), (1460.0, 0.5), (14_600.0, 1.0)]);
    assert_eq!(plan.messages().unwrap().workload.arrivals, Arrivals::Closed { depth: 4, think: Span::us(1) });
    assert_eq!(plan.messages().unwrap().load, None);
}

#[test]
fn a_batch_is_as_large_as_a_chunk_unless_it_is_given() {
    let Design::Edm(edm) =
        plan(&with("name = \"edm\"", "name = \"edm\"\nedm.chunk = \"128B\"")).messages().unwrap().design
    else {
        panic!()
    };
    assert_eq!(edm.config.batch, Bytes::new(128));
}

#[test]
fn the_warm_up_is_a_tenth_of_what_ends_the_run() {
    assert_eq!(plan(SMALL).messages().unwrap().run.warm_up, WarmUp::Requests(10_000));
    assert_eq!(
        plan(&with("requests = 100000", "duration = \"1ms\"")).messages().unwrap().run.warm_up,
        WarmUp::Time(Span::us(100))
    );
}

fn gap_of(plan: &Plan) -> f64 {
    match plan.messages().unwrap().workload.arrivals {
        Arrivals::Poisson { mean_gap_ps } | Arrivals::OnOff { mean_gap_ps, .. } => mean_gap_ps,
        Arrivals::Deterministic { gap_ps } => gap_ps,
        ref other => panic!("no gap in {other:?}"),
    }
}

fn close(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-12, "{got} instead of {expected}");
}

/// 64 B at 100 Gb/s are 5.12 ns; each node sends the data of its writes and of the reads of others:
/// 64 B a request.
#[test]
fn a_payload_load_gives_the_same_rate_to_every_design() {
    for design in DESIGNS.iter() {
        let text = designed(design).replace("load = 0.5", "load = 0.5\nload_basis = \"payload\"");
        close(gap_of(&plan(&text)), 10_240.0);
    }
}

/// Reads and writes half and half: a node's uplink carries what both sides of a request send.
#[test]
fn a_link_load_counts_what_each_design_puts_on_the_wire() {
    for design in DESIGNS.iter() {
        let plan = plan(&designed(design));
        let cost = |operation| wire_cost(&plan.messages().unwrap().design, operation, Bytes::new(64));
        let (read, write) = (cost(Operation::Read), cost(Operation::Write));
        let up = (read.requester_up + read.target_up + write.requester_up + write.target_up) as f64 / 2.0;
        let down = (read.requester_down + read.target_down + write.requester_down + write.target_down) as f64 / 2.0;
        close(gap_of(&plan), up.max(down) * 80.0 / 0.5);
        close(plan.messages().unwrap().load.unwrap().busiest_link, 0.5);
    }
}

/// 10 us on, 30 us off: requests come four times as fast while on as on average.
#[test]
fn bursts_keep_the_mean_load() {
    let steady = gap_of(&plan(SMALL));
    let bursty = plan(&with("load = 0.5", "load = 0.5\narrivals = \"on-off\"\non = \"10us\"\noff = \"30us\""));
    close(gap_of(&bursty), steady / 4.0);
    close(gap_of(&plan(&with("load = 0.5", "load = 0.5\narrivals = \"deterministic\""))), steady);
}

#[test]
fn a_target_of_an_incast_is_the_busiest_link_whoever_asks() {
    let incast = |sources: u32| {
        let keys = format!("load = 0.5\npattern = \"incast\"\nread_fraction = 0\nsources = {sources}");
        gap_of(&plan(&with("load = 0.5", &keys)))
    };
    close(incast(100), incast(50) * 2.0);
}

fn warned(text: &str) -> Vec<String> {
    plan(text).warnings
}

#[test]
fn a_plan_without_a_catch_has_no_warning() {
    for design in DESIGNS.iter().filter(|design| *design != "fastpass") {
        let long = designed(design).replace("requests = 100000", "requests = 1000000");
        assert_eq!(warned(&long), [""; 0], "{design}");
    }
}

#[test]
fn more_than_a_link_can_carry_is_a_warning_with_numbers() {
    assert!(warned(&with("load = 0.5", "load = 1.0")).is_empty());
    let said = warned(&with("load = 0.5", "load = 1.01"));
    assert!(said[0].starts_with("load 1.01 (link) puts 1.010 of its rate on the busiest link direction:"), "{said:?}");
    let said = warned(&with("load = 0.5", "load = 0.95\nload_basis = \"payload\""));
    assert!(said[0].starts_with("load 0.95 (payload) puts 1."), "{said:?}");
}

/// Two streams on the links of [`SMALL`], whose load is 0.5.
fn shared(first: f64, second: f64) -> String {
    let stream = |name: &str, load: f64| format!("[[background.stream]]\nname = \"{name}\"\nload = {load}\n");
    format!("{SMALL}{}{}", stream("storage", first), stream("ip", second))
}

#[test]
fn memory_and_frames_together_can_be_more_than_a_link_carries() {
    assert_eq!(warned(&shared(0.25, 0.25)), [""; 0]);
    let said = warned(&shared(0.3, 0.3));
    let expected = "load 0.5 (link) puts 1.100 of its rate on the busiest link direction (0.600 of it background):";
    assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
}

#[test]
fn frames_alone_can_be_more_than_a_link_carries() {
    let closed = |first: f64| shared(first, 0.5).replacen("load = 0.5", "arrivals = \"closed\"", 1);
    assert_eq!(warned(&closed(0.5)), [""; 0]);
    let said = warned(&closed(0.75));
    assert!(said.len() == 1 && said[0].starts_with("background streams offer 1.250 of every uplink:"), "{said:?}");
}

#[test]
fn a_stream_of_frames_has_defaults() {
    let background =
        plan(&shared(0.1, 0.2)).messages().unwrap().background.clone().expect("the file has a table for it");
    let names: Vec<&str> = background.streams.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["storage", "ip"]);
    assert_eq!(background.egress_queue, Bytes::kib(1_024));
    let ip = &background.streams[1];
    assert_eq!((ip.frame, ip.load, ip.burst_frames), (Bytes::new(1_518), 0.2, 1));
    assert!((background.load() - 0.3).abs() < 1e-12);
}

#[test]
fn every_key_of_a_stream_of_frames_decides_a_result() {
    let hash = |text: &str| plan(text).hash();
    let text = shared(0.1, 0.2);
    let with = |keys: &str| format!("{text}{keys}\n");
    assert_eq!(hash(&text), hash(&with("frame = \"1518B\"\nburst_frames = 1")));
    let others = ["frame = \"1519B\"", "burst_frames = 2", "[background]\negress_queue = \"1025KiB\""];
    for other in
        others.map(with).iter().chain([&shared(0.1, 0.3), &text.replace("storage", "disk"), &SMALL.to_string()])
    {
        assert_ne!(hash(&text), hash(other), "{other}");
    }
}

#[test]
fn the_arbiter_of_fastpass_is_named_as_the_bottleneck_of_many_nodes() {
    let long = designed("fastpass").replace("requests = 100000", "requests = 1000000");
    let said = warned(&long);
    assert!(said.len() == 1 && said[0].contains("on the arbiter's link"), "{said:?}");
    let few = long.replace("nodes = 144", "nodes = 2").replace("load = 0.5", "load = 0.2");
    assert_eq!(warned(&few), [""; 0]);
}

#[test]
fn a_burst_over_the_link_rate_is_a_hint() {
    let text =
        |off: &str| with("load = 0.5", &format!("load = 0.5\narrivals = \"on-off\"\non = \"10us\"\noff = \"{off}\""));
    assert!(warned(&text("9us")).is_empty());
    assert!(warned(&text("30us"))[0].starts_with("while a node is on it offers 2.000 of the busiest link direction"));
}

#[test]
fn a_warm_up_as_long_as_the_run_leaves_nothing_to_measure() {
    let text = |count: u64| with("requests = 100000", &format!("requests = 100000\nwarm_up_requests = {count}"));
    assert!(warned(&text(99_000)).is_empty());
    assert_eq!(warned(&text(99_001)), ["about 999 requests are measured, fewer than 1000: p99.9 is their largest"]);
    let said = complaint(&text(100_000));
    assert!(said.contains("run.warm_up_requests: the warm-up of 100000 requests is as long as the run"), "{said}");
    let timed = complaint(&with("requests = 100000", "requests = 100000\nwarm_up = \"1s\""));
    assert!(timed.contains("run.warm_up: the warm-up of 1s is as long as the run"), "{timed}");
}

#[test]
fn a_short_run_has_no_steady_state() {
    let said = warned(&with("requests = 100000", "requests = 1200\nwarm_up_requests = 0"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("arrivals last about ") && said[0].ends_with("too short for a steady state"),
        "{said:?}"
    );
}

#[test]
fn a_drain_limit_under_the_unloaded_time_cuts_the_last_requests() {
    let text = |limit: &str| with("requests = 100000", &format!("requests = 100000\ndrain_limit = \"{limit}\""));
    assert!(warned(&text("1us")).is_empty());
    assert!(warned(&text("200ns"))[0].starts_with("the drain limit of 200ns is shorter than the "));
}

#[test]
fn a_queue_smaller_than_a_packet_and_idle_nodes_are_noticed() {
    let text = designed("dctcp").replace("name = \"dctcp\"", "name = \"dctcp\"\ndctcp.queue = \"1537B\"");
    assert_eq!(warned(&text), ["design.dctcp.queue of 1537B has no room for a full packet of 1538B on the wire"]);
    assert!(warned(&text.replace("1537B", "1538B")).is_empty());
    let incast = with("load = 0.5", "load = 0.5\npattern = \"incast\"\nsources = 100");
    assert_eq!(warned(&incast), ["43 of 144 nodes neither send nor receive requests"]);
}

#[test]
fn a_stack_is_chosen_by_name_and_keeps_the_fabrics_transceiver() {
    let with_stack = |stack: &str| {
        let text = designed("dctcp").replace("name = \"dctcp\"", &format!("name = \"dctcp\"\nstack = \"{stack}\""));
        let Design::Packet(packet) = plan(&text).messages().unwrap().design else { panic!("dctcp is a packet design") };
        assert!(matches!(packet.protocol, Protocol::Dctcp(_)));
        packet.stack
    };
    assert_eq!(with_stack("own"), hardware::EthernetStack::TCP);
    assert_eq!(with_stack("roce"), hardware::EthernetStack::ROCE);
    assert_eq!(with_stack("none").host_pass(), Span::ns(19));
}
