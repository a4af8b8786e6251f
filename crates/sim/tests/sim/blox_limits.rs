//! Does it run at the edges: least and greatest of everything that a plan may say. Nothing hangs,
//! nothing panics, everything is answered.

use crate::blox_support::{Change, plan, play, played, rack};
use base::{Operation, Span};
use record::{Outcome, SpanKind};

/// Each alone, on the small rack.
const EDGES: [&[Change<'_>]; 34] = [
    &[("vssd.write_cache", "4KiB")],
    &[("vssd.write_cache", "4KiB"), ("vssd.flush_above", "0.9999"), ("io.depth", "64")],
    &[("vssd.write_cache", "1GiB")],
    &[("vssd.device_depth", "1"), ("io.depth", "64")],
    &[("vssd.device_depth", "4096"), ("io.depth", "1000")],
    &[("io.depth", "1000"), ("rack.clients", "1")],
    // Eight blocks a die, the least.
    &[("vssd.capacity", "8MiB")],
    &[("vssd.capacity", "8MiB"), ("io.write_share", "1.0"), ("io.depth", "32")],
    &[("vssd.data", "0.8"), ("collection.stop", "0.1"), ("collection.soft", "0.08"), ("collection.regular", "0.05")],
    &[
        ("vssd.data", "0.9"),
        ("vssd.capacity", "64MiB"),
        ("collection.stop", "0.06"),
        ("collection.soft", "0.05"),
        ("collection.regular", "0.04"),
        ("io.write_share", "1.0"),
    ],
    &[("vssd.used_before", "1.0"), ("io.write_share", "1.0")],
    &[("vssd.used_before", "0.0")],
    &[("vssd.data", "0.01")],
    &[("io.profile", "ycsb-e"), ("io.depth", "32")],
    &[("io.profile", "ycsb-f"), ("io.depth", "32")],
    &[("io.profile", "ycsb-d"), ("io.depth", "32")],
    &[("rack.clients", "1"), ("vssd.per_ssd", "16")],
    &[("rack.clients", "1"), ("vssd.per_ssd", "16"), ("io.assignment", "all"), ("rack.ssds", "2")],
    &[("rack.clients", "40"), ("io.assignment", "all")],
    &[("rack.servers", "3"), ("vssd.per_ssd", "2")],
    &[("rack.servers", "5"), ("vssd.per_ssd", "4"), ("rack.remote_replica", "true")],
    &[("rack.servers", "7"), ("rack.ssds", "2"), ("rack.remote_replica", "true"), ("run.requests", "400")],
    &[("rack.ssds", "4"), ("vssd.per_ssd", "3"), ("rack.remote_replica", "true")],
    &[("vssd.channels", "16"), ("vssd.capacity", "128MiB")],
    &[("vssd.isolation", "software"), ("vssd.per_ssd", "8"), ("vssd.group", "8"), ("vssd.rate", "200")],
    &[("vssd.isolation", "software"), ("vssd.per_ssd", "2"), ("vssd.borrow", "4KiB"), ("io.write_share", "1.0")],
    &[("vssd.isolation", "software"), ("vssd.per_ssd", "2"), ("vssd.borrow", "1GiB"), ("io.write_share", "1.0")],
    &[("collection.streams", "1"), ("io.write_share", "1.0")],
    &[("collection.burst", "4096"), ("io.write_share", "1.0")],
    &[("collection.check_period", "1us"), ("run.requests", "200")],
    &[("collection.retries", "0"), ("collection.retry_after", "1us"), ("io.write_share", "1.0")],
    &[("rack.switch_queue", "16KiB"), ("io.depth", "1"), ("rack.clients", "1")],
    &[("rack.rate", "100Mbps"), ("io.depth", "1"), ("run.requests", "300")],
    &[
        ("scheduler.read_target", "1us"),
        ("scheduler.write_target", "1us"),
        ("io.depth", "64"),
        ("scheduler.window", "1"),
    ],
];

#[test]
fn every_edge_is_played_to_its_end_by_every_design() {
    for edge in EDGES {
        for design in ["rackblox", "rackblox-software", "vdc"] {
            let name = [("design.name", design), ("run.requests", "600")];
            let played = played(&[name.as_slice(), edge].concat());
            let unanswered = played.rows.len() - played.ended(Outcome::Finished);
            assert_eq!(unanswered, 0, "{design} {edge:?}: {:#?}", played.outcomes.summary.metrics);
        }
    }
}

#[test]
fn a_pass_through_the_switch_of_a_millisecond_only_delays_collection() {
    for retry_after in ["1us", "1ms", "10ms"] {
        let slow = [
            ("rack.recirculation", "1ms"),
            ("collection.retry_after", retry_after),
            ("io.write_share", "1.0"),
            ("run.requests", "4000"),
            ("io.depth", "8"),
        ];
        let played = played(&slow).all_finished();
        assert!(played.metric("collection_steps") > 100.0, "{retry_after}");
    }
}

/// Writes of the same page follow each other through three replicas, one at a time.
#[test]
fn a_single_page_that_everybody_writes_is_written_in_some_order() {
    let hot = [
        ("vssd.capacity", "8MiB"),
        ("vssd.data", "0.01"),
        ("io.addresses", "zipfian"),
        ("io.theta", "0.999"),
        ("io.depth", "64"),
        ("rack.remote_replica", "true"),
        ("rack.network", "fast"),
        ("rack.clients", "8"),
        ("run.requests", "6000"),
    ];
    let played = played(&hot).all_finished();
    assert!(
        played
            .rows
            .iter()
            .any(|row| row.operation == Operation::Read && row.spans.get(SpanKind::Replication) > Span::ZERO)
    );
}

#[test]
fn a_full_queue_of_the_switch_loses_packets_and_no_request() {
    let narrow = [
        ("rack.switch_queue", "16KiB"),
        ("rack.clients", "16"),
        ("io.depth", "16"),
        ("io.write_share", "0.0"),
        ("membership.client_timeout", "20ms"),
        ("membership.client_attempts", "100"),
        ("rack.rate", "1Gbps"),
    ];
    let played = played(&narrow).all_finished();
    assert!(played.outcomes.summary.counts.dropped_packets > 20, "{:?}", played.outcomes.summary.counts);
}

#[test]
fn a_network_of_a_hundred_times_the_slowest_is_waited_for() {
    let far = [
        ("rack.network", "slow"),
        ("rack.network_scale", "100.0"),
        ("membership.client_timeout", "20s"),
        ("run.requests", "200"),
    ];
    let played = played(&far).all_finished();
    assert!(played.mean(|_| true) > Span::ms(50));
}

#[test]
fn runs_that_end_by_time_end_by_time() {
    let timed = plan(&[("run.requests", "100000000"), ("run.duration", "50ms")]);
    let played = play(&timed);
    let last = played.rows.iter().map(|row| row.intended).max().expect("there are rows");
    assert!(last < base::Time::ms(50) && last > base::Time::ms(45), "{last:?}");
    assert_eq!(
        rack(&timed).run.drain_limit,
        Span::secs(2),
        "a client's longest wait: three attempts of 500 ms and one more"
    );
}
