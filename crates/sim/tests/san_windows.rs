//! Sessions with windows share the network: incast ends, and ends in time.

use base::{Bytes, Rate, Span};
use record::{Outcome, Row, Summary};
use sim::drive::Unobserved;
use sim::{RunOptions, run};

fn play(text: &str) -> (Summary, Vec<Row>) {
    let experiment = spec::parse("incast.toml", text, &spec::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let (plan, mut rows) = (experiment.points(None).remove(0).plan, Vec::new());
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
    rows.iter().map(|row| row.end.saturating_since(base::Time::ZERO)).max().expect("there are rows")
}

/// The time of the bits on the host's link, and of a read alone.
fn bound(width: u64, size: Bytes) -> Span {
    let alone = end(&incast("tcp", 1, size).1);
    Rate::gbps(100).span_of(size * width) + alone
}

#[test]
fn incast_of_any_width_ends_within_twice_the_time_of_its_slowest_link() {
    for transport in ["tcp", "dctcp"] {
        for (width, size) in [(2, 1 << 10), (16, 1 << 10), (128, 256), (1_280, 64)] {
            let size = Bytes::kib(size);
            let (summary, rows) = incast(transport, width, size);
            let finished = rows.iter().filter(|row| row.outcome == Outcome::Finished).count();
            let (took, limit) = (end(&rows), bound(width, size) * 2);
            assert_eq!(finished as u64, width, "{transport}, {width} wide: every read ends");
            assert!(took <= limit, "{transport}, {width} wide: {took}, allowed are {limit}");
            // Each packet of 4 KiB once lost at most, on average.
            let packets = width * size.count().div_ceil(4_096);
            let dropped = summary.counts.dropped_packets;
            assert!(dropped <= packets, "{transport}, {width} wide: {dropped} drops of {packets} packets");
        }
    }
}
