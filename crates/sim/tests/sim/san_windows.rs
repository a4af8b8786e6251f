//! Sessions share the network, by windows or by rates: incast ends, and ends in time; a saturated
//! torus carries what it can; nobody starves.

use base::{Bytes, Rate, Span, Time};
use plan::{Plan, Scene};
use record::{Outcome, Row, Summary};
use sim::drive::Unobserved;
use sim::{RunOptions, run};

fn plan(text: &str) -> Plan {
    let experiment = plan::parse("shared.toml", text, &plan::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

fn play(text: &str) -> (Summary, Vec<Row>) {
    let (plan, mut rows) = (plan(text), Vec::new());
    let outcomes = run(&plan, &RunOptions::default(), &mut rows, &mut Unobserved);
    (outcomes.unwrap_or_else(|error| panic!("{error}")).summary, rows)
}

/// So many reads of one host at once, of drives behind a ToR with links of 100 Gb/s.
fn incast(transport: &str, width: u64, size: Bytes) -> (Summary, Vec<Row>) {
    let (kib, targets) = (size.count() >> 10, width.min(16));
    play(&format!(
        "title = \"incast\"\ndesign.name = \"san-plain\"\nwire.transport = \"{transport}\"\n\
         [fabric]\nkind = \"single-switch\"\nhosts = 1\ntargets = {targets}\nrate = \"100Gbps\"\n\
         [drives]\nmodel = \"quick\"\n[io]\nsize = \"{kib}KiB\"\nwrite_share = 0.0\n\
         addresses = \"uniform\"\narrivals = \"closed\"\ndepth = {width}\n\
         [run]\nrequests = {width}\nwarm_up_requests = 0\ndrain_limit = \"5s\"\n"
    ))
}

/// When the last of some rows ended.
fn end(rows: &[Row]) -> Span {
    rows.iter().map(|row| row.end.saturating_since(Time::ZERO)).max().expect("there are rows")
}

/// The time of the bits on the host's link, and of a read alone.
fn bound(width: u64, size: Bytes) -> Span {
    let alone = end(&incast("tcp", 1, size).1);
    Rate::gbps(100).span_of(size * width) + alone
}

fn finished(rows: &[Row]) -> u64 {
    rows.iter().filter(|row| row.outcome == Outcome::Finished).count() as u64
}

/// Each packet of 4 KiB is lost once at most, on average; with flow control none is.
#[test]
fn incast_of_any_width_ends_within_twice_the_time_of_its_slowest_link() {
    let windows = [(2, 1 << 10), (16, 1 << 10), (128, 256), (1_280, 64)];
    let lossless = [(2, 1 << 10), (64, 1 << 10), (1_280, 1 << 10)];
    for (transport, widths, drops_a_packet) in
        [("tcp", &windows[..], 1), ("dctcp", &windows, 1), ("dcqcn+pfc", &lossless, 0)]
    {
        for (width, size) in widths {
            let (width, size) = (*width, Bytes::kib(*size));
            let (summary, rows) = incast(transport, width, size);
            let (took, limit) = (end(&rows), bound(width, size) * 2);
            assert_eq!(finished(&rows), width, "{transport}, {width} wide: every read ends");
            assert!(took <= limit, "{transport}, {width} wide: {took}, allowed are {limit}");
            let most = width * size.count().div_ceil(4_096) * drops_a_packet;
            let dropped = summary.counts.dropped_packets;
            assert!(dropped <= most, "{transport}, {width} wide: {dropped} drops, allowed are {most}");
        }
    }
}

/// Payload a second between the ends of the first fifth of the requests and of the fourth, bits:
/// what is before is a transient, what is behind is a tail.
fn throughput(rows: &[Row]) -> f64 {
    let mut ends: Vec<(Time, Bytes)> = rows.iter().map(|row| (row.end, row.bytes)).collect();
    ends.sort_unstable();
    let middle = &ends[ends.len() / 5..ends.len() * 4 / 5];
    let (first, last) = (middle[0].0, middle[middle.len() - 1].0);
    let bits: f64 = middle[1..].iter().map(|(_, bytes)| bytes.count() as f64 * 8.0).sum();
    bits / ((last - first).as_ps() as f64 / 1e12)
}

/// What one mind that sees everything could give all pairs alike, in bits a second.
fn optimum(plan: &Plan) -> f64 {
    let Scene::San(san) = &plan.scene else { panic!("it is a SAN") };
    let best = san::oracle::max_concurrent_flow(&san.fabric.graph, &san.demands()).expect("it is small");
    best.rates_bps.iter().sum()
}

fn torus(transport: &str) -> String {
    format!(
        "title = \"torus\"\ndesign.name = \"san-plain\"\nwire.transport = \"{transport}\"\n\
         [fabric]\nkind = \"torus\"\ndimensions = [4, 4]\nhosts = 16\nrate = \"100Gbps\"\n\
         [drives]\nmodel = \"quick\"\n[io]\nsize = \"128KiB\"\nwrite_share = 0.0\n\
         addresses = \"uniform\"\narrivals = \"closed\"\ndepth = 64\n\
         [run]\nrequests = 8000\nwarm_up_requests = 0\n"
    )
}

#[test]
fn a_saturated_torus_carries_a_good_part_of_the_optimum() {
    let optimum = optimum(&plan(&torus("tcp")));
    for (transport, least) in [("tcp", 0.8), ("dctcp", 0.8), ("dcqcn+pfc", 0.8)] {
        let (summary, rows) = play(&torus(transport));
        let share = throughput(&rows) / optimum;
        assert_eq!(finished(&rows), 8_000, "{transport}: {:?}", summary.warnings);
        assert!(share >= least && share <= 1.0, "{transport}: {share} of the optimum");
    }
}

/// Two hosts write to one drive, over one link of 5 Gb/s that is slower than it: Jain's index of
/// what each gets, and what both get of the link.
#[test]
fn two_sessions_share_a_bottleneck_alike() {
    for transport in ["tcp", "dctcp", "dcqcn+pfc"] {
        let (_, rows) = play(&format!(
            "title = \"fair\"\ndesign.name = \"san-plain\"\nwire.transport = \"{transport}\"\n\
             [fabric]\nkind = \"single-switch\"\nhosts = 2\ntargets = 1\nrate = \"5Gbps\"\n\
             [drives]\nmodel = \"quick\"\nper_target = 1\n[io]\nsize = \"128KiB\"\nwrite_share = 1.0\n\
             addresses = \"uniform\"\narrivals = \"closed\"\ndepth = 32\n\
             [run]\nrequests = 1500\nwarm_up_requests = 0\n"
        ));
        let of = |host: u32| rows.iter().filter(|row| row.source.0 == host).cloned().collect::<Vec<_>>();
        let each = [throughput(&of(0)), throughput(&of(1))];
        let jain = (each[0] + each[1]).powi(2) / (2.0 * (each[0].powi(2) + each[1].powi(2)));
        assert!(jain >= 0.985, "{transport}: {each:?}");
        assert!(each[0] + each[1] >= 0.85 * 5e9, "{transport}: {each:?}");
    }
}

/// At depth 1 there is nobody to share with.
#[test]
fn an_idle_network_is_as_quick_with_any_transport() {
    let mean = |transport: &str, kib: u64, write_share: f64| {
        let (_, rows) = play(&format!(
            "title = \"idle\"\ndesign.name = \"san-plain\"\nwire.transport = \"{transport}\"\n\
             [fabric]\nkind = \"torus\"\ndimensions = [3, 3]\nhosts = 1\nrate = \"100Gbps\"\n\
             [drives]\nmodel = \"quick\"\n[io]\nsize = \"{kib}KiB\"\nwrite_share = {write_share:.1}\n\
             addresses = \"uniform\"\narrivals = \"closed\"\ndepth = 1\n\
             [run]\nrequests = 200\nwarm_up_requests = 0\n"
        ));
        rows.iter().map(|row| row.latency().as_ns_f64()).sum::<f64>() / rows.len() as f64
    };
    for (kib, write_share) in [(4, 0.0), (128, 0.0), (4, 1.0), (128, 1.0)] {
        let plain = mean("unpaced", kib, write_share);
        for transport in ["tcp", "dctcp", "dcqcn+pfc"] {
            let took = mean(transport, kib, write_share);
            // A window begins with ten segments; a rate with that of the link.
            let bears = if kib > 4 && transport != "dcqcn+pfc" { 0.25 } else { 0.03 };
            assert!((took / plain - 1.0).abs() <= bears, "{kib} KiB, {transport}: {took} ns, {plain} ns");
        }
    }
}

/// What `check` takes, runs: every request ends.
#[test]
fn whatever_is_accepted_of_flow_control_runs() {
    let mut played = 0;
    for design in ["san", "san-plain"] {
        for fabric in [
            "kind = \"single-switch\"\ntargets = 3",
            "kind = \"ring\"\nnodes = 3",
            "kind = \"torus\"\ndimensions = [3, 3]",
        ] {
            for keys in [
                "",
                "preset = \"paper\"",
                "preset = \"hpcc\"",
                "pause_above = \"1B\"\nresume_below = \"1B\"\nmark_from = \"0B\"\nmark_all = \"1B\"",
                "pfc = \"dynamic\"\nshared_buffer = \"1B\"\nfree_share = 0.01",
                "rate_min_bps = 1\nnotification_interval = \"1us\"\nalpha_timer = \"1ns\"\nincrease_timer = \"1us\"",
            ] {
                let text = format!(
                    "title = \"all\"\ndesign.name = \"{design}\"\nwire.transport = \"dcqcn+pfc\"\n\
                     [wire.dcqcn]\n{keys}\n[fabric]\n{fabric}\nhosts = 2\n[drives]\nmodel = \"quick\"\n\
                     [io]\nsize = \"64KiB\"\nwrite_share = 0.3\narrivals = \"closed\"\ndepth = 16\n\
                     [run]\nrequests = 300\nwarm_up_requests = 0\n"
                );
                let (summary, rows) = play(&text);
                assert_eq!(finished(&rows), 300, "{text}\n{:?}", summary.warnings);
                assert_eq!(summary.counts.dropped_packets, 0, "{text}");
                played += 1;
            }
        }
    }
    assert_eq!(played, 36);
}

/// Booked bandwidth and a stream: a hop that rejects much leaves no hole, so that no command is
/// sent again by a timer, and every drive works once a request.
#[test]
fn streams_go_with_reservation() {
    let play_by = |transport: &str| {
        play(&format!(
            "title = \"booked\"\ndesign.name = \"san\"\nwire.transport = \"{transport}\"\n\
             reservation.over_commitment = [[0.0, 1.0]]\n\
             [fabric]\nkind = \"single-switch\"\nhosts = 2\ntargets = 4\nrate = \"25Gbps\"\n\
             [drives]\nmodel = \"quick\"\n[io]\nsize = \"128KiB\"\nwrite_share = 0.0\n\
             addresses = \"uniform\"\narrivals = \"closed\"\ndepth = 64\n\
             [run]\nrequests = 3000\nwarm_up_requests = 0\n"
        ))
    };
    let (_, free) = play_by("unpaced");
    for transport in ["tcp", "dctcp", "dcqcn+pfc"] {
        let (summary, rows) = play_by(transport);
        let fact = |name: &str| summary.metrics[name];
        assert_eq!(finished(&rows), 3_000, "{transport}");
        assert!(fact("reservations_rejected") > 100.0, "{transport}");
        assert_eq!((fact("host_timeouts"), fact("target_commands")), (0.0, 3_000.0), "{transport}");
        assert!(throughput(&rows) >= 0.9 * throughput(&free), "{transport}");
    }
}
