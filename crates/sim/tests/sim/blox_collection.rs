//! Does coordination hold: who collects when, where reads go meanwhile, and whether collecting
//! keeps up.

use crate::blox_support;

use crate::blox_support::{Change, Played, plan, played, rack};
use base::{Bytes, Operation, Request, Seed, Span, Time};
use blox::VssdId;
use plan::Files;
use record::RunIdentity;
use record::metric::Meter;
use sim::drive::{Context, Limits, Rig, Ticket, Unobserved, WarmUp, drive};
use sim::rigs::blox::{BloxEvent, BloxRig};
use std::collections::BTreeMap;

/// A rack whose drives have to collect all the time, but not so hard that they ever must.
const SOFT: [Change<'_>; 7] = [
    ("collection.regular", "0.0"),
    ("collection.background", "false"),
    ("collection.check_period", "3ms"),
    ("io.write_share", "0.5"),
    ("io.think", "1ms"),
    ("io.depth", "2"),
    ("run.requests", "6000"),
];

/// What was seen of a pair of replicas: vSSD 0 on the first server and vSSD 1 on the second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    events: u64,
    /// With the one, and with both, collecting; at the servers and as the switch knows it.
    one_collects: u64,
    both_collect: u64,
    both_granted: u64,
    least_free: f64,
    last_free: f64,
}

/// Looks at a rig after each of its events.
struct Probe {
    rig: BloxRig,
    seen: Seen,
}

impl Probe {
    fn look(&mut self) {
        let [one, other] = [0, 1].map(|place| self.rig.is_collecting(place, VssdId(place as u32)));
        let free = [0, 1].map(|place| self.rig.free_share(place, VssdId(place as u32)));
        let seen = &mut self.seen;
        seen.events += 1;
        seen.one_collects += u64::from(one.0 != other.0);
        seen.both_collect += u64::from(one.0 && other.0);
        seen.both_granted += u64::from(one.1 && other.1);
        seen.least_free = seen.least_free.min(free[0]).min(free[1]);
        seen.last_free = free[0].min(free[1]);
    }
}

impl Rig for Probe {
    type Event = BloxEvent;
    fn start(&mut self, context: &mut Context<'_, BloxEvent>) {
        self.rig.start(context);
    }
    fn issue(&mut self, ticket: Ticket, request: &Request, intended: Time, context: &mut Context<'_, BloxEvent>) {
        self.rig.issue(ticket, request, intended, context);
        self.look();
    }
    fn on(&mut self, event: BloxEvent, context: &mut Context<'_, BloxEvent>) {
        self.rig.on(event, context);
        self.look();
    }
    fn unloaded(&self, operation: Operation, bytes: Bytes) -> Option<Span> {
        self.rig.unloaded(operation, bytes)
    }
    fn link_busy(&self, out: &mut Vec<Span>) {
        self.rig.link_busy(out);
    }
    fn dropped_packets(&self) -> u64 {
        self.rig.dropped_packets()
    }
    fn measure(&self, now: Time, meter: &mut Meter) {
        self.rig.measure(now, meter);
    }
}

/// Plays a plan under a probe; every request has to finish.
fn probed(changes: &[Change<'_>]) -> (Seen, BTreeMap<String, f64>) {
    let plan = plan(changes);
    let seed = Seed(plan.seed);
    let rig = BloxRig::new(rack(&plan), seed, false).expect("a sound plan");
    let mut probe = Probe { rig, seen: Seen { least_free: 1.0, ..Seen::default() } };
    let mut source = workload::storage::Generator::new(&rack(&plan).io, seed);
    let limits = Limits {
        warm_up: WarmUp::Time(Span::ZERO),
        drain: Span::secs(2),
        memory: hardware::DramConfig { latency: Span::ZERO, bandwidth: None },
        planned_load: None,
        first_fault: None,
        spans: record::Keep::Nothing,
        series: None,
    };
    let mut rows = Vec::new();
    let outcomes = drive(&mut probe, &mut source, &mut rows, RunIdentity::default(), &limits, &mut Unobserved);
    let summary = outcomes.expect("a vector takes every row").summary;
    assert_eq!(summary.counts.finished, summary.counts.offered, "{:#?}", summary.metrics);
    (probe.seen, summary.metrics)
}

fn with<'a>(changes: &[Change<'a>]) -> Vec<Change<'a>> {
    [SOFT.as_slice(), changes].concat()
}

#[test]
fn soft_grants_never_overlap_however_long_a_second_pass_through_the_switch_takes() {
    for recirculation in ["0ns", "600ns", "50us", "1ms"] {
        // An answer that takes two passes has to be waited for.
        let slow = [("rack.recirculation", recirculation), ("collection.retry_after", "5ms")];
        let (seen, metrics) = probed(&with(&slow));
        assert_eq!((seen.both_collect, seen.both_granted), (0, 0), "{recirculation}: {seen:?}");
        assert_eq!(metrics["regular_requests"], 0.0, "{recirculation}");
        assert!(seen.one_collects > 1_000 && metrics["soft_requests_accepted"] > 10.0, "{recirculation}: {seen:?}");
        assert!(metrics["soft_requests_delayed"] > 0.0, "{recirculation}: they do want to at the same time");
        assert!(metrics["reads_redirected_by_switch"] > 50.0, "{recirculation}");
    }
}

#[test]
fn the_controller_of_rackblox_in_software_keeps_replicas_apart_too() {
    let (seen, metrics) = probed(&with(&[("design.name", "rackblox-software")]));
    assert_eq!(seen.both_collect, 0, "{seen:?}");
    assert!(seen.one_collects > 1_000 && metrics["reads_redirected_by_servers"] > 50.0, "{seen:?} {metrics:#?}");
    assert_eq!((metrics["reads_redirected_by_switch"], metrics["soft_requests_accepted"]), (0.0, 0.0));
}

#[test]
fn without_coordination_replicas_collect_at_the_same_time_and_reads_wait() {
    // Not below the soft threshold, which nobody looks at then, but below the regular one.
    let alone = [("collection.coordination", "uncoordinated"), ("collection.regular", "0.35")];
    let (seen, metrics) = probed(&with(&alone));
    assert!(seen.both_collect > 100, "{seen:?}");
    for name in
        ["reads_redirected_by_switch", "reads_redirected_by_servers", "soft_requests_accepted", "regular_requests"]
    {
        assert_eq!(metrics[name], 0.0, "{name}");
    }
    let waits = |changes: &[Change<'_>]| {
        played(&with(changes)).mean(|row| row.operation == Operation::Read && row.end > Time::ms(300))
    };
    let (coordinated, uncoordinated) = (waits(&[]), waits(&alone));
    assert!(uncoordinated > coordinated, "{uncoordinated} and {coordinated}");
}

#[test]
fn collecting_keeps_up_and_the_free_share_stays_between_its_thresholds() {
    let long = with(&[("run.requests", "30000"), ("io.check_history", "false"), ("vssd.used_before", "0.1")]);
    let (seen, metrics) = probed(&long);
    // A check, and the wait for the replica to finish, let it sink a little.
    assert!(seen.least_free > 0.2 && seen.least_free < 0.36, "{seen:?}");
    assert!((0.25..0.5).contains(&seen.last_free), "{seen:?}");
    assert_eq!((metrics["flash_write_stalls"], metrics["writes_refused_by_flash"]), (0.0, 0.0));
    let amplification = metrics["write_amplification"];
    assert!((1.05..3.0).contains(&amplification), "half of the flash is full: {amplification}");
    let erased = metrics["wear_erases_max"];
    assert!(erased > 3.0, "blocks were collected again and again: {erased}");
}

#[test]
fn who_must_collect_is_never_denied() {
    let hard = [
        ("collection.regular", "0.3"),
        ("collection.soft", "0.3"),
        ("io.write_share", "1.0"),
        ("io.think", "0ns"),
        ("io.depth", "8"),
        ("run.requests", "4000"),
    ];
    let (seen, metrics) = probed(&with(&hard));
    assert!(metrics["regular_requests"] >= 2.0 && seen.both_collect > 0, "{seen:?} {metrics:#?}");
    assert_eq!(metrics["soft_requests_accepted"] + metrics["soft_requests_delayed"], 0.0);
}

#[test]
fn an_idle_rack_collects_in_the_background_and_a_busy_one_does_not() {
    let background = |think: &str| -> f64 {
        let plan = [
            ("collection.background", "true"),
            ("collection.regular", "0.05"),
            ("collection.soft", "0.06"),
            ("vssd.used_before", "0.7"),
            ("io.write_share", "0.2"),
            ("io.think", think),
            ("io.depth", "1"),
            ("run.requests", "300"),
        ];
        played(&with(&plan)).all_finished().metric("background_collections")
    };
    assert!(background("80ms") > 0.0);
    assert_eq!(background("1ms"), 0.0);
    let forbidden =
        [("collection.background", "false"), ("io.think", "80ms"), ("io.depth", "1"), ("run.requests", "200")];
    assert_eq!(played(&with(&forbidden)).metric("background_collections"), 0.0);
}

/// Four virtual drives on each drive in a group that shares its channels.
const SHARED: [Change<'_>; 6] = [
    ("vssd.isolation", "software"),
    ("vssd.per_ssd", "4"),
    ("vssd.group", "4"),
    ("rack.clients", "4"),
    ("vssd.capacity", "16MiB"),
    ("io.think", "0ns"),
];

#[test]
fn a_token_bucket_holds_each_virtual_drive_to_its_rate() {
    let rate = |per_second: &str| {
        let limited =
            [("vssd.rate", per_second), ("io.write_share", "0.0"), ("io.depth", "32"), ("run.requests", "4000")];
        let played = played(&[SHARED.as_slice(), &limited].concat()).all_finished();
        4_000.0 / (played.ends().as_ps() as f64 / 1e12)
    };
    // Four volumes, whose reads go to their first replicas.
    for (per_second, each) in [("500", 500.0), ("1000", 1_000.0), ("4000", 4_000.0)] {
        let served = rate(per_second);
        assert!((3.6..4.5).contains(&(served / each)), "{served} a second at {per_second} for each of four");
    }
}

/// A full group whose members all write: streams of a member that had nothing to collect begin
/// again when it runs short, though others still collect.
#[test]
fn nobody_waits_for_the_collection_of_others_in_its_group() {
    let full = [
        ("rack.clients", "1"),
        ("io.write_share", "1.0"),
        ("vssd.borrow", "512KiB"),
        ("vssd.used_before", "0.9"),
        ("collection.check_period", "400ms"),
        ("collection.background", "false"),
        ("run.requests", "20000"),
        ("io.depth", "32"),
    ];
    let played = played(&[SHARED.as_slice(), &full].concat()).all_finished();
    let slowest = played.rows.iter().map(record::Row::latency).max().expect("there are rows");
    assert!(slowest < Span::ms(200), "{slowest}");
}

/// A block trace in memory.
struct Trace(String);

impl Files for Trace {
    fn open(&self, _: &str) -> std::io::Result<Box<dyn std::io::BufRead>> {
        Ok(Box::new(std::io::Cursor::new(self.0.clone())))
    }
}

#[test]
fn a_group_lends_blocks_to_who_runs_short_and_gets_them_back() {
    // One volume of four is written, all over: every 150 us a page, on both servers.
    let line = |number: u64| format!("{} 0 {} 8 0\n", number * 150_000, number * 797 % 1_600 * 8);
    let trace = Trace((0..12_000).map(line).collect());
    let borrow = [
        ("io.trace", "pages.trace"),
        ("io.check_history", "true"),
        ("vssd.borrow", "512KiB"),
        ("vssd.used_before", "0.5"),
        ("collection.check_period", "300ms"),
        ("collection.background", "false"),
        ("run.requests", "12000"),
    ];
    let text = blox_support::SMALL.replace("addresses = \"uniform\"\n", "");
    let plan = blox_support::plan_of(&text, &trace, &[&SHARED[..5], &borrow].concat());
    let played = blox_support::play(&plan).all_finished();
    let (lent, given_back) = (played.metric("blocks_lent"), played.metric("blocks_given_back"));
    assert!(
        lent > 0.0 && given_back > 0.0 && given_back <= lent,
        "{lent} and {given_back}: {:#?}",
        played.outcomes.summary.metrics
    );
}

fn storage_delay(scheduling: &str, load: &str) -> Span {
    let loaded = [
        ("rack.scheduling", scheduling),
        ("rack.background_load", load),
        ("rack.background_burst", "200us"),
        ("rack.rate", "10Gbps"),
        ("io.write_share", "0.0"),
        ("vssd.used_before", "0.0"),
        ("run.requests", "1500"),
        ("io.depth", "1"),
    ];
    let played = played(&loaded).all_finished();
    let queued = |played: &Played| -> Span {
        let waits = played.rows.iter().map(|row| row.spans.get(record::SpanKind::SwitchQueue));
        waits.sum::<Span>() / played.rows.len() as u64
    };
    queued(&played)
}

#[test]
fn background_traffic_delays_storage_under_priority_and_no_more_than_its_turn_under_fair_queueing() {
    let frame = base::Rate::gbps(10).span_of(Bytes::new(9_038));
    let [priority, fifo, fair, shaped] =
        ["priority", "fifo", "fair-queue", "token-bucket"].map(|name| storage_delay(name, "0.7"));
    assert!(priority > Span::us(50), "bursts of 200 us go first: {priority}");
    // In order of arrival, bursts at line rate leave as they come: one frame at most is before a
    // packet.
    assert!(fifo < frame * 2, "{fifo}");
    assert!(fair < frame * 2, "the rest of one frame, and a turn: {fair}");
    assert!(shaped < frame * 2, "{shaped}");
    assert!(storage_delay("priority", "0.0") < Span::ns(100));
}

#[test]
fn every_scheduler_works_plain_and_coordinated_and_none_starves_reads_or_writes() {
    for policy in ["fifo", "deadline", "kyber"] {
        for coordinated in ["false", "true"] {
            let changes = [
                ("scheduler.policy", policy),
                ("scheduler.coordinated", coordinated),
                ("rack.network", "slow"),
                ("io.depth", "32"),
                ("run.requests", "3000"),
                ("vssd.device_depth", "8"),
            ];
            let played = played(&changes).all_finished();
            let slowest =
                |operation| played.rows.iter().filter(|row| row.operation == operation).map(record::Row::latency).max();
            for operation in [Operation::Read, Operation::Write] {
                let slowest = slowest(operation).expect("both are asked for");
                assert!(slowest < Span::ms(400), "{policy} {coordinated} {operation:?}: {slowest}");
            }
        }
    }
}

#[test]
fn reads_see_coordinated_collection_in_their_tail() {
    let slow = |coordination: &str| {
        let changes =
            [("collection.coordination", coordination), ("collection.regular", "0.3"), ("run.requests", "8000")];
        let mut reads: Vec<Span> = played(&with(&changes))
            .rows
            .iter()
            .filter(|row| row.operation == Operation::Read)
            .map(record::Row::latency)
            .collect();
        reads.sort_unstable();
        reads[reads.len() * 99 / 100]
    };
    let (switch, nobody) = (slow("switch"), slow("uncoordinated"));
    assert!(switch < nobody, "p99 of reads is {switch} when the switch coordinates and {nobody} when nobody does");
}
