//! Does the protocol hold when things break: nothing stale is served, no run hangs, and what has
//! come back serves again.

use crate::blox_support::{Change, Played, cases, plan_with, play};
use base::{Span, Time};
use proptest::prelude::*;
use record::{Outcome, Row};

/// A rack that notices the dead within milliseconds, for 300 ms.
const QUICK: [Change<'_>; 14] = [
    ("membership.heartbeat", "1ms"),
    ("membership.lease", "4ms"),
    ("membership.resend", "2ms"),
    ("membership.replay", "6ms"),
    ("membership.replace_after", "30ms"),
    ("membership.client_timeout", "12ms"),
    ("vssd.capacity", "16MiB"),
    ("vssd.data", "0.02"),
    ("collection.stop", "0.6"),
    ("collection.soft", "0.5"),
    ("rack.recirculation", "2us"),
    ("io.think", "200us"),
    ("io.depth", "2"),
    ("rack.servers", "3"),
];

/// By when everything has come back, and when all of it must serve again: a rebuild whose peer was
/// away may ask it once more only 64 times `resend` later.
const BACK: Time = Time::ms(150);
const SERVES: Time = Time::ms(330);
/// The same where the server that asks knows that it was away itself.
const SERVES_SOON: Time = Time::ms(240);
const END: Span = Span::ms(400);

#[derive(Clone, Copy, Debug)]
struct Fault {
    at_us: u64,
    kind: &'static str,
    node: Option<u32>,
}

fn written(faults: &[Fault]) -> String {
    let one = |fault: &Fault| {
        let node = fault.node.map(|node| format!("node = {node}\n")).unwrap_or_default();
        format!("[[fault]]\nat = \"{}us\"\nkind = \"{}\"\n{node}", fault.at_us, fault.kind)
    };
    faults.iter().map(one).collect()
}

/// Plays a schedule; the run lasts for [`END`], whatever happens.
fn break_it(faults: &[Fault], changes: &[Change<'_>]) -> Played {
    let text = written(faults);
    let lasts = [("vssd.per_ssd", "2")];
    let duration = format!("\"{}ms\"", END.as_ps() / 1_000_000_000);
    let until = [("run.requests", "1000000"), ("run.duration", duration.as_str())];
    play(&plan_with(&text, &[QUICK.as_slice(), &lasts, &until, changes].concat()))
}

fn asked_after(played: &Played, at: Time) -> Vec<Row> {
    played.rows.iter().filter(|row| row.intended >= at).copied().collect()
}

/// Both switches and links and servers up again, whatever they were.
fn repaired(servers: u32) -> Vec<Fault> {
    let at_us = BACK.as_ps() / 1_000_000;
    let up = |kind, node| Fault { at_us, kind, node };
    let of_servers = (0..servers).flat_map(|node| [up("link-up", Some(node)), up("node-up", Some(node))]);
    of_servers.chain([up("switch-up", None)]).collect()
}

fn assert_serves_again(played: &Played, what: &dyn std::fmt::Debug) {
    assert_serves_from(played, SERVES, what);
}

fn assert_serves_from(played: &Played, from: Time, what: &dyn std::fmt::Debug) {
    let late = asked_after(played, from);
    assert!(late.len() > 100, "{what:?}: {} requests in the end", late.len());
    let open = late.iter().filter(|row| row.outcome != Outcome::Finished).count();
    assert_eq!(
        open,
        0,
        "{what:?}: of {} requests in the end {open} have no answer: {:#?}",
        late.len(),
        played.outcomes.summary.metrics
    );
    assert_eq!(played.ended(Outcome::Unfinished), 0, "{what:?}");
}

/// Faults of these kinds at these servers, and of the switch.
fn faults(kinds: &'static [&'static str], servers: u32) -> impl Strategy<Value = Vec<Fault>> {
    let at = prop_oneof![1 => Just(0_u64), 8 => 0_u64..150_000];
    let server = (at.clone(), prop::sample::select(kinds), 0..servers).prop_map(|(at_us, kind, node)| Fault {
        at_us,
        kind,
        node: Some(node),
    });
    let switch = (at, prop::sample::select(&["switch-down", "switch-up"][..])).prop_map(|(at_us, kind)| Fault {
        at_us,
        kind,
        node: None,
    });
    prop::collection::vec(prop_oneof![4 => server, 1 => switch], 1..16)
}

/// Racks on which faults may mean different things.
fn rack() -> impl Strategy<Value = Vec<Change<'static>>> {
    let choices = [
        ("design.name", &["rackblox", "rackblox-software", "vdc"][..]),
        ("rack.remote_replica", &["false", "true"]),
        ("rack.network", &["none", "fast"]),
        ("rack.scheduling", &["fifo", "token-bucket", "fair-queue", "priority"]),
        ("vssd.isolation", &["hardware", "software"]),
        ("vssd.write_cache", &["4KiB", "256KiB"]),
        ("seed", &["1", "2", "3", "4"]),
    ];
    choices.map(|(key, values)| (Just(key), prop::sample::select(values))).to_vec()
}

fn config() -> ProptestConfig {
    let usual = ProptestConfig { max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() };
    ProptestConfig { cases: cases(24), ..usual }
}

fn assert_recovers(faults: &[Fault], changes: &[Change<'_>]) {
    assert_recovers_by(SERVES, faults, changes);
}

fn assert_recovers_by(serves: Time, faults: &[Fault], changes: &[Change<'_>]) {
    let all = [faults, &repaired(3)].concat();
    assert_serves_from(&break_it(&all, changes), serves, &(faults, changes));
}

proptest! {
    #![proptest_config(config())]

    /// A cut link loses no data.
    #[test]
    fn whatever_links_and_switches_do_histories_stay_lawful_and_the_rack_recovers(
        faults in faults(&["link-down", "link-up"], 3), changes in rack(),
    ) {
        assert_recovers(&faults, &changes);
    }

    /// Of the replicas of a volume one may lose its memory, again and again.
    #[test]
    fn however_often_one_server_dies_histories_stay_lawful_and_the_rack_recovers(
        faults in faults(&["node-down", "node-up"], 1), changes in rack(),
    ) {
        assert_recovers(&faults, &changes);
    }

    /// Where all replicas of a volume die, what they had in memory alone is lost, and the history
    /// shows it. Whoever comes back serves.
    #[test]
    fn whatever_breaks_in_whatever_order_the_rack_recovers(
        faults in faults(&["link-down", "link-up", "node-down", "node-up"], 3), changes in rack(),
    ) {
        assert_recovers(&faults, &[changes.as_slice(), &[("io.check_history", "false")]].concat());
    }
}

fn at(at_us: u64, kind: &'static str, node: u32) -> Fault {
    Fault { at_us, kind, node: Some(node) }
}

fn of_switch(at_us: u64, kind: &'static str) -> Fault {
    Fault { at_us, kind, node: None }
}

#[test]
fn all_servers_die_at_once_and_serve_again_when_they_are_back() {
    let die: Vec<Fault> = (0..3).map(|node| at(40_000, "node-down", node)).collect();
    for design in ["rackblox", "rackblox-software", "vdc"] {
        assert_recovers(&die, &[("design.name", design), ("io.check_history", "false")]);
        assert_recovers(&die, &[("design.name", design), ("io.write_share", "0.0")]);
    }
}

#[test]
fn a_server_that_stays_dead_is_replaced_on_channels_that_nobody_uses() {
    let played = break_it(&[at(50_000, "node-down", 0)], &[("rack.remote_replica", "true")]);
    assert!(played.metric("replicas_adopted") >= 1.0 && played.metric("replicas_not_adopted") == 0.0);
    assert_serves_again(&played, &"a dead server");
}

/// All channels of all drives have owners: the volume goes on with the replicas that it has, for
/// reads and for writes.
#[test]
fn a_server_that_stays_dead_and_cannot_be_replaced_keeps_nobody_from_writing() {
    let full = [("vssd.per_ssd", "16"), ("rack.clients", "4"), ("vssd.used_before", "0.0")];
    let played = break_it(&[at(50_000, "node-down", 0)], &full);
    assert_eq!(played.metric("replicas_adopted"), 0.0);
    assert_serves_again(&played, &"a full rack");
    let back = [at(50_000, "node-down", 0), at(140_000, "node-up", 0), at(200_000, "node-down", 1)];
    // The first is whole again by the time the second dies.
    assert_serves_again(&break_it(&back, &full), &"one after the other");
}

/// Until the control plane has noticed anything, it is the switch that knows.
const PATIENT: [Change<'_>; 4] = [
    ("io.write_share", "0.0"),
    ("membership.heartbeat", "40ms"),
    ("membership.lease", "150ms"),
    ("rack.remote_replica", "true"),
];

#[test]
fn reads_of_a_server_behind_a_dead_link_are_rescued_by_the_switch() {
    let cut = [at(50_000, "link-down", 0), at(120_000, "link-up", 0)];
    let played = break_it(&cut, &PATIENT);
    assert!(played.metric("reads_rescued_by_switch") > 10.0);
    assert_serves_again(&played, &"a dead link");
    // Only what was on its way was lost, and asked for again.
    assert_eq!(played.ended(Outcome::Finished), played.rows.len());
}

/// A port is up when the server behind it and its link are: the return of the one does not hide
/// that the other is down.
#[test]
fn a_server_that_is_back_behind_a_dead_link_is_still_rescued() {
    let both = [at(50_000, "link-down", 0), at(52_000, "node-down", 0), at(54_000, "node-up", 0)];
    let [played, cut] = [&both[..], &both[..1]].map(|faults| break_it(faults, &PATIENT));
    assert_eq!(played.bytes(), cut.bytes(), "nobody can tell what goes on behind the link");
    assert!(played.metric("reads_rescued_by_switch") > 10.0);
    assert_eq!(played.ended(Outcome::Finished), played.rows.len());
}

#[test]
fn what_is_down_twice_is_up_at_once_and_what_was_never_down_stays_up() {
    let twice = [
        at(40_000, "node-down", 1),
        at(45_000, "node-down", 1),
        at(50_000, "link-down", 1),
        at(50_000, "link-down", 1),
        at(60_000, "link-up", 1),
        at(60_000, "link-up", 1),
        at(70_000, "node-up", 1),
        at(70_000, "node-up", 1),
        at(80_000, "node-up", 2),
        at(80_000, "link-up", 2),
        of_switch(90_000, "switch-up"),
    ];
    assert_serves_again(&break_it(&twice, &[]), &"twice");
}

#[test]
fn a_server_that_dies_while_it_collects_collects_again_when_it_is_back() {
    let busy = [
        ("io.write_share", "1.0"),
        ("io.think", "0ns"),
        ("io.depth", "16"),
        ("vssd.data", "0.4"),
        ("collection.soft", "0.35"),
        ("collection.stop", "0.38"),
        ("collection.regular", "0.3"),
        ("membership.replace_after", "10s"),
        ("membership.client_timeout", "60ms"),
    ];
    for design in ["rackblox", "rackblox-software", "vdc"] {
        let times = [30_000, 60_000, 90_000];
        let faults = times.map(|at_us| [at(at_us, "node-down", 0), at(at_us + 9_000, "node-up", 0)]).concat();
        let played = break_it(&faults, &[busy.as_slice(), &[("design.name", design)]].concat());
        assert!(played.metric("collection_steps") > 1_000.0, "{design}");
        let late = asked_after(&played, Time::ms(200));
        assert!(late.iter().filter(|row| row.outcome == Outcome::Finished).count() > 50, "{design}: {}", late.len());
    }
}

/// The first server that is heard again is not alone with the data: nobody else has failed.
#[test]
fn what_one_server_holds_is_not_lost_with_it_when_the_switch_was_dead_before() {
    let faults = [of_switch(402, "switch-down"), of_switch(105_144, "switch-up"), at(106_001, "node-down", 0)];
    let changes = [
        ("design.name", "vdc"),
        ("rack.remote_replica", "true"),
        ("rack.network", "none"),
        ("rack.scheduling", "fifo"),
        ("vssd.isolation", "hardware"),
        ("vssd.write_cache", "256KiB"),
        ("seed", "4"),
    ];
    assert_recovers(&faults, &changes);
}

/// What it had asked for in vain it asks for at once, and not after twice the time it has waited.
#[test]
fn a_rebuild_that_a_dead_switch_held_up_goes_on_when_the_switch_is_back() {
    let faults =
        [at(0, "link-down", 1), at(2_001, "link-down", 2), at(17_001, "link-up", 1), of_switch(18_010, "switch-down")];
    let changes = [("vssd.write_cache", "4KiB"), ("seed", "3"), ("io.check_history", "false")];
    assert_recovers_by(SERVES_SOON, &faults, &changes);
}

/// All are members from the start, so all have the data.
#[test]
fn what_one_server_holds_is_not_lost_when_nobody_was_heard_before() {
    let faults = [
        of_switch(0, "switch-down"),
        of_switch(7_144, "switch-up"),
        at(12_451, "node-down", 0),
        of_switch(12_452, "switch-down"),
    ];
    assert_recovers(&faults, &[("design.name", "rackblox-software"), ("rack.remote_replica", "true"), ("seed", "1")]);
}

/// Its peers hear of the epoch a little later, and do not answer until then.
#[test]
fn a_rebuild_whose_epoch_began_in_an_outage_goes_on_when_the_switch_is_back() {
    let faults = [
        at(0, "node-down", 0),
        of_switch(3_002, "switch-down"),
        at(20_163, "node-down", 2),
        of_switch(68_144, "switch-up"),
        of_switch(73_005, "switch-down"),
    ];
    let changes = [("vssd.write_cache", "4KiB"), ("rack.remote_replica", "true"), ("io.check_history", "false")];
    assert_recovers_by(SERVES_SOON, &faults, &changes);
}
