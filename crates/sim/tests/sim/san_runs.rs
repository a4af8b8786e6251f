//! Both architectures run, account for all time, and repeat.

use crate::san_support::{config, load, network, play};
use record::SpanKind;
use topology::Kind;

fn torus() -> topology::Graph {
    network(Kind::Torus { dimensions: vec![3, 3] }, 4, 9)
}

fn two_switches() -> topology::Graph {
    network(Kind::RedundantSwitches { switches: 2 }, 4, 9)
}

#[test]
fn both_architectures_finish_every_request_with_all_of_traffic_control_on() {
    for graph in [torus(), two_switches(), network(Kind::SingleSwitch, 4, 9)] {
        let config = config(graph);
        let load = load(&config, 0.3, 32, 3_000);
        let played = play(config, &load, 1);
        assert_eq!(played.finished(), 3_000, "{:?}", played.summary);
        assert_eq!(played.fact("write_order_violations"), 0.0);
        assert!(played.fact("write_order_reads_judged") > 1_000.0);
        assert_eq!(played.summary.counts.dropped_packets, 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_rows_and_another_seed_others() {
    let rows = |seed| {
        let config = config(torus());
        let load = load(&config, 0.3, 16, 1_000);
        play(config, &load, seed).rows
    };
    assert_eq!(rows(7), rows(7));
    assert_ne!(rows(7), rows(8));
}

#[test]
fn encoding_every_packet_changes_no_record() {
    for graph in [torus(), two_switches()] {
        let plain = config(graph);
        let load = load(&plain, 0.5, 16, 1_000);
        let mut checked = plain.clone();
        checked.checks.wire = true;
        assert_eq!(play(plain, &load, 3).rows, play(checked, &load, 3).rows);
    }
}

#[test]
fn a_loaded_request_waits_where_it_says_and_an_unloaded_one_does_not() {
    let waits = |depth: u32| {
        let config = config(torus());
        let load = load(&config, 0.0, depth, 2_000);
        let rows = play(config, &load, 5).rows;
        let waited = |row: &record::Row| {
            let of = |kind| row.spans.get(kind).as_ns_f64();
            of(SpanKind::Schedule) + of(SpanKind::StorageQueue) + of(SpanKind::FlashWait) + of(SpanKind::SwitchQueue)
        };
        rows.iter().map(waited).sum::<f64>() / rows.len() as f64
    };
    assert!(waits(256) > 20.0 * waits(1), "{} {}", waits(256), waits(1));
}

/// Wandering costs every other claim about a switchless network: ISR takes longer ways only to go
/// around congestion.
#[test]
fn where_nothing_is_congested_nearly_all_ways_are_the_shortest_and_none_ends_nowhere() {
    for (depth, shortest_min) in [(1, 0.9), (16, 0.9), (512, 0.6)] {
        let config = config(network(Kind::Torus { dimensions: vec![3, 3, 3] }, 27, 27));
        let load = load(&config, 0.3, depth, 6_000);
        let played = play(config, &load, 11);
        assert_eq!(played.finished(), 6_000);
        let shortest = played.fact("ways_shortest_fraction");
        assert!(shortest > shortest_min, "{shortest} of ways are the shortest at a depth of {depth}");
        assert_eq!([played.fact("commands_unreachable"), played.fact("hop_dropped_trail_full")], [0.0, 0.0]);
    }
}
