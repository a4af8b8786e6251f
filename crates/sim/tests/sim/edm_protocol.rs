//! Does EDM's protocol hold in its whole network? Random workloads on the rig, and what must be
//! true of every one.

use crate::support::{Plain, Script, cluster, everything_ends_once, loads, play, play_with, testbed, uniform};
use base::{Bytes, NodeId, Operation, Rate, Span, Time};
use edm::pcs::memory as encoded;
use edm::{Matching, Ordering, Policy, cost};
use hardware::RemoteAccess;
use proptest::prelude::*;
use record::{Outcome, Row, SpanKind};
use sim::drive::Rig;
use sim::rigs::edm::{EdmRig, EdmRigConfig};

/// Both fabrics, every policy and order, and the other choices that a plan may make.
fn configs(nodes: u32) -> impl Strategy<Value = EdmRigConfig> {
    let orders = prop_oneof![Just(Ordering::None), Just(Ordering::Channel), Just(Ordering::Pair)];
    let matching = prop_oneof![Just(Matching::Continuous), Just(Matching::Slotted)];
    let scheduler = (any::<bool>(), orders, matching, 1u32..4, 0u32..5);
    let host = (1u8..4, any::<bool>(), prop_oneof![Just(0u64), Just(64), Just(256)]);
    let memory = prop_oneof![Just((0, None)), Just((80, None)), Just((80, Some(512)))];
    (any::<bool>(), scheduler, host, memory).prop_map(move |(asic, scheduler, host, (latency, bandwidth))| {
        let (fcfs, ordering, matching, iterations_per_round, look_ahead_cycles) = scheduler;
        let (active_per_pair, active_together, batch) = host;
        let mut config = if asic { cluster(nodes) } else { EdmRigConfig { nodes, ..testbed() } };
        config.edm.policy = if fcfs { Policy::Fcfs } else { Policy::Srpt };
        config.edm.ordering = ordering;
        config.edm.matching = matching;
        config.edm.active_per_pair = active_per_pair;
        config.edm.active_together = active_together;
        config.edm.iterations_per_round = iterations_per_round;
        config.edm.look_ahead_cycles = look_ahead_cycles;
        config.edm.batch = Bytes::new(batch);
        // No fault here: the timer is far beyond any wait.
        config.edm.timeout = Span::ms(50);
        config.memory.latency = Span::ns(latency);
        config.memory.bandwidth = bandwidth.map(Rate::gbps);
        config
    })
}

/// What remote requests may take of memory.
fn remotes() -> impl Strategy<Value = RemoteAccess> {
    any::<[bool; 3]>().prop_map(|[stores_writes, fetches_writes, stores_reads]| RemoteAccess {
        stores_writes,
        fetches_writes,
        stores_reads,
    })
}

fn network() -> impl Strategy<Value = (EdmRigConfig, Vec<Plain>)> {
    (2u32..7).prop_flat_map(|nodes| (configs(nodes), loads(nodes, 60)))
}

/// Bytes that the rows' requests put on each of the four directions, without framing of batches, in
/// closed form.
fn wire_bytes(config: &EdmRigConfig, rows: &[Row]) -> u64 {
    rows.iter()
        .map(|row| {
            let cost = cost::wire_cost(&config.edm, row.operation, row.bytes);
            cost.requester_up + cost.requester_down + cost.target_up + cost.target_down
        })
        .sum()
}

fn carried_bytes(rig: &EdmRig, config: &EdmRigConfig) -> u64 {
    let mut busy = Vec::new();
    rig.link_busy(&mut busy);
    let block = config.rate.span_of_bits(64);
    busy.iter().map(|span| span.as_ps() / block.as_ps() * 8).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_once_and_its_spans_and_bytes_add_up((config, requests) in network(), remote in remotes()) {
        let mut rig = EdmRig::new(config.clone()).with_remote_access(remote);
        let (rows, summary) = play(&mut rig, &mut Script::new(&requests));
        everything_ends_once(&requests, &rows);
        for row in &rows {
            prop_assert_eq!(row.outcome, Outcome::Finished, "{:?}", row);
            prop_assert!(row.adds_up(), "{:?}", row);
            prop_assert!(row.intended <= row.start && row.start <= row.end);
            // A batch may save a write its /N/ and /G/: never more than the whole control path's
            // serialization.
            prop_assert!(row.latency() >= row.unloaded, "{:?} is faster than alone: {}", row, row.unloaded);
        }
        // Nothing is lost, refused or sent for nothing.
        let zero = ["protocol_violations", "unexpected_messages"];
        prop_assert!(zero.iter().all(|name| summary.metrics[*name] == 0.0), "{:?}", summary.metrics);
        prop_assert_eq!(rig.dropped_packets(), 0);
        if config.edm.batch == Bytes::ZERO {
            prop_assert_eq!(carried_bytes(&rig, &config), wire_bytes(&config, &rows));
        } else {
            prop_assert!(carried_bytes(&rig, &config) <= wire_bytes(&config, &rows));
        }
        let sources = f64::from(config.nodes - 1);
        prop_assert!(summary.metrics["longest_notification_queue"] <= 2.0 * f64::from(config.edm.active_per_pair) * sources);
    }

    #[test]
    fn a_request_that_is_alone_takes_its_closed_form(
        config in configs(3),
        remote in remotes(),
        bytes in 1u64..100_000,
        kind in 0usize..3,
    ) {
        let operation = [Operation::Read, Operation::Write, Operation::ReadModifyWrite][kind];
        let place = edm::Place { nodes: config.nodes, rate: config.rate };
        // A demand may wait for its slot.
        let slot = edm::budget::slot(&config.edm, &place).unwrap_or(Span::ps(1));
        let mut rig = EdmRig::new(config).with_remote_access(remote);
        let (rows, _) = play(&mut rig, &mut Script::new(&[(Time::ns(3), 0, 2, operation, bytes)]));
        let (took, alone) = (rows[0].latency(), rows[0].unloaded);
        prop_assert!(alone <= took && took < alone + slot, "{:?} takes {}, not {}", rows[0], took, alone);
    }

    #[test]
    fn encoding_every_message_changes_no_record((config, requests) in network()) {
        let run = |wire_check| {
            let mut rig = EdmRig::new(EdmRigConfig { wire_check, ..config.clone() });
            play(&mut rig, &mut Script::new(&requests))
        };
        let ((with, _), (without, _)) = (run(true), run(false));
        prop_assert_eq!(with, without);
    }

    #[test]
    fn the_backup_in_step_changes_no_record((config, requests) in network()) {
        let run = |redundant| {
            let mut rig = EdmRig::new(EdmRigConfig { redundant, ..config.clone() });
            play(&mut rig, &mut Script::new(&requests)).0
        };
        prop_assert_eq!(run(true), run(false));
    }

    /// Requests of one kind from one node to another end in the order in which they were issued,
    /// whatever the policy.
    #[test]
    fn requests_of_one_kind_end_in_order_within_their_pair((mut config, requests) in network()) {
        if config.edm.ordering == Ordering::None {
            config.edm.ordering = Ordering::Channel;
        }
        let (mut rows, _) = play(&mut EdmRig::new(config), &mut Script::new(&requests));
        rows.sort_by_key(|row| row.request);
        let mut last = std::collections::BTreeMap::new();
        for row in rows {
            let pair = (row.source, row.target, row.operation == Operation::Write);
            let before = last.insert(pair, row.end);
            prop_assert!(before.is_none_or(|before| before <= row.end), "{row:?} overtook, {before:?}");
        }
    }
}

/// Sizes that need the 16-bit fields of /N/, /G/ and RREQ to their end and beyond, all at once and
/// encoded.
#[test]
fn messages_above_64_kib_survive_their_encoding() {
    let sizes = [65_534u64, 65_535, 65_536, 65_537, 131_072, 1 << 20];
    let requests: Vec<Plain> = sizes
        .iter()
        .flat_map(|bytes| [(Time::ns(1), 0, 1, Operation::Read, *bytes), (Time::ns(1), 1, 0, Operation::Write, *bytes)])
        .collect();
    let (rows, _) = play(&mut EdmRig::new(cluster(2)), &mut Script::new(&requests));
    everything_ends_once(&requests, &rows);
    assert!(rows.iter().all(|row| row.outcome == Outcome::Finished));
}

/// Reads, writes and all of them at once, at and above what the links carry.
fn saturating(nodes: u32, bytes: u64, reads: f64, factor: f64) -> workload::Generator {
    let config = cluster(nodes);
    let cost = |operation| {
        let cost = cost::wire_cost(&config.edm, operation, Bytes::new(bytes));
        ((cost.requester_up + cost.target_up) as f64).max((cost.requester_down + cost.target_down) as f64)
    };
    let mean = reads * cost(Operation::Read) + (1.0 - reads) * cost(Operation::Write);
    uniform(nodes, 6_000, mean * 8.0 / 100.0 * 1_000.0 / factor, reads, bytes, 7)
}

/// No queue for data at the switch beyond what is bounded (3.1.1), at and beyond saturation. A
/// chunk on its circuit waits at its egress port behind the look-ahead, by which it was granted
/// early, and behind late chunks. Their slots follow one another, so it waits no longer than the
/// latest of them is late. A chunk is late by the /N/ and RREQ that its host has put before it and
/// that the scheduler had not seen when it made the grant: X of each for every other node, one and
/// two blocks. It doubles by those that the scheduler saw after its timer of that uplink had
/// expired, and took for already sent (`book_uplink`). And it may be late by one chunk of its host
/// that these have delayed.
#[test]
fn granted_data_wait_at_the_switch_for_no_more_than_unseen_control_blocks_explain() {
    let nodes = 16;
    for (bytes, chunk) in [(64, 64), (256, 256), (4_096, 256)] {
        for (reads, factor) in [(1.0, 0.8), (0.0, 0.8), (0.5, 0.8), (1.0, 1.3), (0.0, 1.3), (0.5, 1.3)] {
            let config = EdmRigConfig { wire_check: false, ..cluster(nodes) };
            let block = config.rate.span_of_bits(64);
            let chunk_time = block * encoded::write_blocks(chunk);
            let unseen = block * (3 * u64::from(config.edm.active_per_pair) * u64::from(nodes - 1));
            let look_ahead = config.edm.scheduler_clock.cycles(u64::from(config.edm.look_ahead_cycles));
            let mut rig = EdmRig::new(config);
            let (rows, _) = play(&mut rig, &mut saturating(nodes, bytes, reads, factor));
            assert!(rows.iter().all(|row| row.outcome == Outcome::Finished));
            let (wait, bound) = (rig.longest_data_wait(), look_ahead + unseen * 2 + chunk_time);
            assert!(wait <= bound, "{bytes} B, {reads} reads, {factor}: {wait} is more than {bound}");
            // Writes only: control is one block a chunk, and what waits is less than one chunk.
            assert!(reads > 0.0 || wait < chunk_time, "{bytes} B writes at {factor}: {wait}");
            // And most hardly wait: on average, with what RREQs wait, for less than one chunk, or
            // two when there is too much to do.
            let waits: f64 = rows.iter().map(|row| row.spans.get(SpanKind::SwitchQueue).as_ns_f64()).sum();
            let mean = waits / rows.len() as f64;
            assert!(
                mean < chunk_time.as_ns_f64() * factor.ceil(),
                "{bytes} B, {reads} reads, {factor}: {mean} ns on average"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_rows_and_another_seed_does_not() {
    let rows = |seed| {
        let mut rig = EdmRig::new(cluster(8));
        play_with(&mut rig, &mut uniform(8, 2_000, 40_000.0, 0.5, 300, seed), Span::us(3)).0
    };
    assert_eq!(rows(1), rows(1));
    assert_ne!(rows(1), rows(2));
}

/// Bandwidth of a memory, not of the link, sets the pace of reads from it; its latency overlaps.
#[test]
fn a_slow_memory_sets_the_pace_of_reads_from_it() {
    let mut config = cluster(4);
    config.memory.latency = Span::ns(100);
    config.memory.bandwidth = Some(Rate::gbps(10));
    for redundant in [false, true] {
        let requests: Vec<Plain> = (0..90).map(|number| (Time::ns(1), number % 3, 3, Operation::Read, 1_000)).collect();
        let mut rig = EdmRig::new(EdmRigConfig { redundant, ..config.clone() });
        let (rows, _) = play(&mut rig, &mut Script::new(&requests));
        let last = rows.iter().map(|row| row.end).max().unwrap();
        let bus = Rate::gbps(10).span_of(Bytes::new(90_000));
        assert!(last >= Time::ZERO + bus, "redundant {redundant}: {last:?} is before the memory can be done");
        assert!(last <= Time::ZERO + bus + Span::us(2), "redundant {redundant}: {last:?}");
        assert!(rows.iter().all(|row| row.adds_up() && row.outcome == Outcome::Finished));
    }
}

/// More matching iterations before the grants leave cost exactly their cycles when alone.
#[test]
fn a_round_of_more_iterations_costs_its_cycles() {
    let latency = |iterations| {
        let mut config = cluster(2);
        config.edm.iterations_per_round = iterations;
        let (rows, _) = play(&mut EdmRig::new(config), &mut Script::new(&[(Time::ns(1), 0, 1, Operation::Read, 64)]));
        rows[0].latency()
    };
    let iteration = cluster(2).edm.scheduler_clock.cycles(3);
    assert_eq!(latency(4), latency(1) + iteration * 3);
}

/// Small writes that had to wait share a notification; on a slow line the first of a batch is long
/// over when the last leaves.
#[test]
fn writes_of_one_batch_have_spans_that_add_up_on_a_slow_line() {
    let mut config = EdmRigConfig { nodes: 3, ..testbed() };
    config.rate = Rate::gbps(10);
    let requests: Vec<Plain> =
        (0..2_000).map(|number| (Time::ns(25 * number), 0, 1 + (number % 2) as u32, Operation::Write, 16)).collect();
    let (rows, _) = play(&mut EdmRig::new(config), &mut Script::new(&requests));
    everything_ends_once(&requests, &rows);
    for row in rows {
        assert!(row.adds_up() && row.latency() >= Span::ZERO);
        assert!(row.spans.get(SpanKind::Wait) < row.latency(), "{row:?}");
    }
}

/// Under a load far beyond capacity the timer of a read runs only from its RREQ. With a timer
/// longer than X*N chunks no request times out. With a shorter one requests end as NULL, once, and
/// the network goes on.
#[test]
fn a_timer_that_is_too_short_for_the_load_gives_null_and_nothing_breaks() {
    let mut config = cluster(8);
    config.edm.timeout = Span::ns(700);
    let requests: Vec<Plain> = (0..800u32)
        .map(|number| {
            let operation = if number % 2 == 0 { Operation::Read } else { Operation::Write };
            (Time::ns(u64::from(number)), number % 7, 7, operation, 2_000)
        })
        .collect();
    let mut rig = EdmRig::new(config);
    let (rows, _) = play(&mut rig, &mut Script::new(&requests));
    everything_ends_once(&requests, &rows);
    assert!(rows.iter().any(|row| row.outcome == Outcome::TimedOut));
    assert!(rows.iter().any(|row| row.outcome == Outcome::Finished));
    assert!(rows.iter().all(|row| row.adds_up() && row.outcome != Outcome::Unfinished));
    assert_eq!(rig.host(NodeId(0)).outstanding(), []);
}
