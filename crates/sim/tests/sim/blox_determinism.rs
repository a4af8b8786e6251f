//! Does it run, and is it the same run: one seed, one sequence of rows; every request in exactly
//! one of them.

use crate::blox_support::{Change, THREE_REPLICAS, plan, play, play_with, played};
use std::collections::BTreeSet;

/// All designs, with everything in use that draws: networks, random victims, bursts of background
/// traffic, a third replica, isolation in software.
const BUSY: [Change<'_>; 12] = [
    ("rack.network", "fast"),
    ("rack.rate", "10Gbps"),
    ("rack.background_load", "0.3"),
    ("rack.remote_replica", "true"),
    ("flash.victim", "random"),
    ("vssd.per_ssd", "2"),
    ("vssd.isolation", "software"),
    ("vssd.rate", "20000"),
    ("rack.clients", "3"),
    ("collection.check_period", "2ms"),
    ("run.requests", "1200"),
    ("rack.scheduling", "fair-queue"),
];

const DESIGNS: [&str; 3] = ["rackblox", "rackblox-software", "vdc"];

fn busy<'a>(design: &'a str, more: &[Change<'a>]) -> Vec<Change<'a>> {
    [BUSY.as_slice(), &[("design.name", design)], more].concat()
}

#[test]
fn the_same_seed_gives_the_same_rows_and_the_same_facts() {
    for design in DESIGNS {
        let runs = [0, 1].map(|_| played(&busy(design, &[])));
        assert_eq!(runs[0].bytes(), runs[1].bytes(), "{design}");
        assert_eq!(runs[0].outcomes.summary, runs[1].outcomes.summary, "{design}");
        assert!(runs[0].metric("collection_steps") > 0.0 && runs[0].metric("background_frames") > 0.0, "{design}");
    }
}

#[test]
fn every_seed_gives_other_rows() {
    let seeds = ["1", "2", "3", "4"];
    let runs: BTreeSet<String> =
        seeds.iter().map(|seed| played(&busy("rackblox", &[("seed", seed)])).bytes()).collect();
    assert_eq!(runs.len(), seeds.len());
}

#[test]
fn encoding_and_decoding_every_packet_changes_no_row() {
    for design in DESIGNS {
        let plan = plan(&busy(design, &THREE_REPLICAS));
        assert_eq!(play_with(&plan, true).bytes(), play(&plan).bytes(), "{design}");
    }
}

#[test]
fn remembering_the_history_changes_no_row() {
    for design in DESIGNS {
        let forgetful = play(&plan(&busy(design, &[("io.check_history", "false")])));
        assert_eq!(forgetful.bytes(), played(&busy(design, &[])).bytes(), "{design}");
        assert!(!forgetful.outcomes.summary.metrics.contains_key("history_violations"));
    }
}

#[test]
fn a_shorter_run_is_the_beginning_of_a_longer_one() {
    let rows = |requests| {
        let mut rows = played(&busy("rackblox", &[("run.requests", requests)])).rows;
        rows.retain(|row| row.request.0 < 500);
        rows
    };
    assert_eq!(rows("1000"), rows("1500"));
}
