//! Does the protocol hold: whatever the rack is made of, clients see one copy of each page, and
//! every request ends.

use crate::blox_support::{Change, cases, plan, play, played};
use history::{Action, History, Operation};
use proptest::prelude::*;
use record::{Outcome, Row};

/// Keys with some of their values; a configuration is one value of each.
const CHOICES: [(&str, &[&str]); 19] = [
    ("design.name", &["rackblox", "rackblox-software", "vdc"]),
    ("rack.servers", &["2", "3", "4"]),
    ("rack.ssds", &["1", "2"]),
    ("rack.clients", &["1", "2", "5"]),
    ("rack.network", &["none", "fast", "slow"]),
    ("rack.scheduling", &["fifo", "token-bucket", "fair-queue", "priority"]),
    ("rack.remote_replica", &["false", "true"]),
    ("rack.recirculation", &["0ns", "600ns", "1ms"]),
    ("flash.preset", &["p-ssd", "970-pro", "p3700", "optane"]),
    ("flash.victim", &["greedy", "cost-benefit", "random"]),
    ("flash.hot_cold", &["false", "true"]),
    ("vssd.device_depth", &["1", "16", "1000"]),
    ("vssd.flush_above", &["0.0", "0.5", "0.9999"]),
    ("scheduler.policy", &["fifo", "deadline", "kyber"]),
    ("scheduler.coordinated", &["false", "true"]),
    ("io.write_share", &["0.0", "0.1", "0.5", "0.9", "1.0"]),
    ("io.addresses", &["uniform", "scrambled-zipfian", "latest", "sequential"]),
    ("io.depth", &["1", "4", "64"]),
    ("io.assignment", &["all", "round-robin"]),
];

/// Isolation with what goes only with it.
const ISOLATIONS: [&[Change<'_>]; 4] = [
    &[("vssd.isolation", "hardware"), ("vssd.per_ssd", "2")],
    &[("vssd.isolation", "software"), ("vssd.per_ssd", "2")],
    &[("vssd.isolation", "software"), ("vssd.per_ssd", "4"), ("vssd.group", "4"), ("vssd.rate", "3000")],
    &[("vssd.isolation", "software"), ("vssd.per_ssd", "4"), ("vssd.borrow", "\"256KiB\"")],
];

fn configuration() -> impl Strategy<Value = Vec<Change<'static>>> {
    let picks: Vec<_> = CHOICES.iter().map(|(key, values)| (Just(*key), prop::sample::select(*values))).collect();
    (picks, prop::sample::select(ISOLATIONS.as_slice()))
        .prop_map(|(picks, isolation)| [picks, isolation.to_vec()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_rack_answers_everything_and_its_history_is_linearizable(changes in configuration(), seed in 0_u32..1_000) {
        let seed = seed.to_string();
        // The blocks of these presets have from 128 KiB to 256 KiB, on 2 to 8 dies.
        let size = [("vssd.capacity", "\"32MiB\""), ("run.requests", "600"), ("seed", seed.as_str())];
        let played = played(&[changes.as_slice(), &size].concat());
        prop_assert_eq!(played.ended(Outcome::Finished), played.rows.len(), "{:#?}", played.outcomes.summary.metrics);
    }
}

/// The tests can fail: one row that is not true breaks the history of a run that is in order.
#[test]
fn a_forged_answer_is_noticed() {
    let rows =
        played(&[("vssd.data", "0.01"), ("io.write_share", "0.5"), ("run.requests", "4000")]).all_finished().rows;
    let mut writes: Vec<&Row> = rows.iter().filter(|row| row.operation == base::Operation::Write).collect();
    writes.sort_by_key(|row| (row.address, row.intended));
    let apart = |pair: &&[&Row]| pair[0].address == pair[1].address && pair[0].end < pair[1].intended;
    let (old, new) =
        writes.windows(2).filter(apart).map(|pair| (pair[0], pair[1])).next().expect("a page is written twice");
    let operation = |row: &Row, action, value| Operation {
        id: row.request.0,
        register: (0, row.address),
        action,
        value,
        invoked: row.intended,
        responded: Some(row.end),
    };
    let mut history = History::default();
    history.record(operation(old, Action::Write, 1));
    history.record(operation(new, Action::Write, 2));
    let later = |value| Operation {
        id: 0,
        invoked: new.end + base::Span::ns(1),
        responded: Some(new.end + base::Span::ns(2)),
        ..operation(new, Action::Read, value)
    };
    history.record(later(2));
    assert_eq!(history.check(), Ok(()));
    history.record(Operation {
        invoked: new.end + base::Span::ns(3),
        responded: Some(new.end + base::Span::ns(4)),
        ..later(1)
    });
    assert!(history.check().is_err(), "a stale read after {new:?}");
}

#[test]
fn histories_count_every_page_of_every_request() {
    let scans = played(&[("io.profile", "ycsb-e"), ("io.addresses", "scrambled-zipfian"), ("vssd.data", "0.3")]);
    let scans = scans.all_finished();
    let pages: u64 = scans.rows.iter().map(|row| row.bytes.count() / 4_096).sum();
    assert_eq!(scans.metric("history_operations"), pages as f64);
    assert!(pages > 10 * scans.rows.len() as u64, "scans are long");
}

#[test]
fn every_profile_and_every_workload_of_the_paper_plays() {
    for profile in workload::storage::PROFILES {
        let plan = plan(&[("io.profile", profile.name), ("run.requests", "800")]);
        assert_eq!(play(&plan).all_finished().rows.len(), 800, "{}", profile.name);
    }
}

#[test]
fn open_loops_and_thinking_clients_play_too() {
    for arrivals in ["poisson", "deterministic"] {
        let offered = [("io.arrivals", arrivals), ("io.requests_per_second", "5000")];
        let played = played(&offered).all_finished();
        let seconds = played.ends().as_ps() as f64 / 1e12;
        assert!((0.27..0.35).contains(&seconds), "1500 requests at 5000/s take {seconds} s");
    }
    let thinking = played(&[("io.think", "1ms"), ("io.depth", "1")]).all_finished();
    assert!(thinking.ends() > base::Time::ms(700), "two clients that think for a millisecond: {:?}", thinking.ends());
}
