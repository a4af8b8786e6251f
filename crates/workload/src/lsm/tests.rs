//! Stores as stories.

use super::*;
use crate::generator::Arrival;
use crate::outbox::play;
use base::{Bytes, Operation, Seed, Span};
use std::collections::BTreeMap;

const SERVED: Span = Span::us(80);
const RECORD: u64 = 1024;

/// Small enough for a test: 64 MiB of data, memtables of 1 MiB, levels of 4, 40 and 64 MiB.
fn config() -> LsmConfig {
    LsmConfig {
        stores: 1,
        clients: 1,
        volumes: 1,
        keys: 65_536,
        record: Bytes::new(RECORD),
        theta: 0.99,
        mix: YcsbMix { reads: 1.0, updates: 0.0, read_modify_writes: 0.0 },
        threads: 4,
        warm_up_requests: 0,
        warm_up: Span::ZERO,
        service: Span::us(2),
        tree: TreeConfig {
            block: Bytes::kib(4),
            memtable: Bytes::kib(1024),
            memtables_max: 2,
            level0_trigger: 4,
            level0_stop: 12,
            level_base: Bytes::kib(4096),
            multiplier: 10,
            table: Bytes::kib(1024),
            false_positive: 0.0,
            block_cache: Bytes::ZERO,
            wal: Wal::Synced,
            chunk: Bytes::kib(128),
            chunk_depth: 4,
        },
        operations: Some(20_000),
        duration: None,
    }
}

const UPDATES: YcsbMix = YcsbMix { reads: 0.0, updates: 1.0, read_modify_writes: 0.0 };

fn played(config: &LsmConfig) -> (Lsm, Vec<Arrival>) {
    let mut lsm = Lsm::new(config, Seed(1));
    let mut seen = Vec::new();
    play(&mut lsm, |_| SERVED, |arrival| seen.push(*arrival), 4_000_000);
    (lsm, seen)
}

fn bytes_of(arrivals: &[Arrival], operation: Operation) -> u64 {
    let of = arrivals.iter().filter(|arrival| arrival.request.operation == operation);
    of.map(|arrival| arrival.request.bytes.count()).sum()
}

#[test]
fn a_read_is_one_block_where_filters_never_err_and_nothing_is_cached() {
    let (lsm, arrivals) = played(&config());
    let reads = lsm.operations().of(Kind::Read);
    assert_eq!((reads.count, reads.ios), (20_000, 1.0));
    assert_eq!(arrivals.len(), 20_000);
    assert!(
        arrivals.iter().all(|each| each.request.operation == Operation::Read && each.request.bytes == Bytes::kib(4))
    );
    assert!((reads.mean.as_ns_f64() - 82_000.0).abs() < 100.0, "service and one I/O: {}", reads.mean);
    assert!((lsm.operations().per_second() / (4.0 / 82e-6) - 1.0).abs() < 0.01, "four threads");
}

#[test]
fn a_filter_that_always_lets_pass_costs_a_block_a_level() {
    let mut leaky = config();
    leaky.tree.false_positive = 1.0;
    leaky.theta = 0.01;
    let (lsm, _) = played(&leaky);
    // 64 MiB with base 4 and multiplier 10 are levels of 4, 40 and 64 MiB. Nearly uniform keys are
    // in the first with a probability of 1 - exp(-4/64), in the second with 1 - exp(-40/64).
    let (first, second) = (1.0 - (-4.0f64 / 64.0).exp(), 1.0 - (-40.0f64 / 64.0).exp());
    let expected = 1.0 + (1.0 - first) + (1.0 - first) * (1.0 - second);
    let ios = lsm.operations().of(Kind::Read).ios;
    assert!((ios / expected - 1.0).abs() < 0.01, "{ios} {expected}");
}

#[test]
fn a_block_cache_spares_what_is_hot_and_one_as_large_as_the_data_nearly_all() {
    let ios = |cache: Bytes| {
        let mut cached = config();
        cached.tree.block_cache = cache;
        played(&cached).0.operations().of(Kind::Read).ios
    };
    let (none, some, all) = (ios(Bytes::ZERO), ios(Bytes::kib(4096)), ios(Bytes::kib(128 << 10)));
    assert!(none == 1.0 && some < 0.75 && all < 0.45, "{none} {some} {all}");
    assert!(all < some);
}

#[test]
fn updates_that_come_together_share_a_write_of_the_log() {
    let updates = LsmConfig { mix: UPDATES, operations: Some(800), ..config() };
    let (lsm, arrivals) = played(&updates);
    assert_eq!(lsm.operations().of(Kind::Update).count, 800);
    // One thread writes alone, the other three come during its write and go together, and so on.
    assert!((200..500).contains(&arrivals.len()), "{}", arrivals.len());
    let addresses: Vec<u64> = arrivals.iter().map(|arrival| arrival.request.address).collect();
    let follows = |pair: &[Arrival]| pair[0].request.address + pair[0].request.bytes.count() == pair[1].request.address;
    assert!(arrivals.windows(2).all(follows), "the log is sequential: {:?}", &addresses[..5]);
    let alone = LsmConfig { threads: 1, ..updates };
    assert_eq!(played(&alone).1.len(), 800);
}

#[test]
fn a_buffered_log_is_written_a_buffer_at_a_time_by_who_fills_it() {
    let mut buffered = LsmConfig { mix: UPDATES, operations: Some(1_000), ..config() };
    buffered.tree.wal = Wal::Buffered { buffer: Bytes::kib(64) };
    let (lsm, arrivals) = played(&buffered);
    assert_eq!(arrivals.len(), 1_000 * 1024 / (64 << 10));
    assert!(arrivals.iter().all(|arrival| arrival.request.bytes == Bytes::kib(64)));
    let updates = lsm.operations().of(Kind::Update);
    assert!(updates.percentile(0.5) <= Span::ns(2_100) && updates.percentile(0.99) >= Span::us(80), "{updates:?}");
}

#[test]
fn full_memtables_are_flushed_and_levels_compacted_into_the_next() {
    let mut updates = LsmConfig { mix: UPDATES, operations: Some(60_000), threads: 16, ..config() };
    updates.tree.wal = Wal::Buffered { buffer: Bytes::kib(16) };
    let (lsm, arrivals) = played(&updates);
    let amplification = lsm.operations().write_amplification();
    let written = bytes_of(&arrivals, Operation::Write);
    assert!((written as f64 / (60_000 * RECORD) as f64 - amplification).abs() < 0.01);
    // Log and flush once each; level 0 merges with level 1, which is as large; each level below
    // costs up to 1 + 10 at this skew-free model's worst.
    assert!((3.0..16.0).contains(&amplification), "{amplification}");
    assert!(bytes_of(&arrivals, Operation::Read) > 60_000 * RECORD, "compactions read what they merge");
    let chunks = arrivals.iter().filter(|arrival| arrival.request.bytes == Bytes::kib(128)).count();
    assert!(chunks > 500, "{chunks}");
}

#[test]
fn writers_wait_when_flushes_fall_behind() {
    let mut updates = LsmConfig { mix: UPDATES, operations: Some(20_000), threads: 64, ..config() };
    updates.tree.wal = Wal::Buffered { buffer: Bytes::kib(4) };
    updates.tree.chunk_depth = 1;
    let stalls = |served: Span| {
        let mut lsm = Lsm::new(&updates, Seed(1));
        play(&mut lsm, |_| served, |_| {}, 4_000_000);
        assert_eq!(lsm.operations().count(), 20_000, "whoever waits goes on");
        lsm.operations().stalls()
    };
    assert!(stalls(Span::ms(5)) > 0);
    assert_eq!(stalls(Span::ns(100)), 0);
}

#[test]
fn a_read_modify_write_is_a_read_and_then_a_write_of_the_log() {
    let mix = YcsbMix { reads: 0.0, updates: 0.0, read_modify_writes: 1.0 };
    let (lsm, arrivals) = played(&LsmConfig { mix, threads: 1, operations: Some(500), ..config() });
    let summary = lsm.operations().of(Kind::ReadModifyWrite);
    assert_eq!(summary.count, 500);
    assert!(summary.ios > 1.5 && summary.ios <= 2.0, "{}: the hottest keys are in the memtable", summary.ios);
    assert_eq!(arrivals.iter().filter(|arrival| arrival.request.operation == Operation::Write).count(), 500);
}

#[test]
fn hot_keys_move_up_and_cost_less() {
    let mix = YcsbMix { reads: 0.5, updates: 0.5, read_modify_writes: 0.0 };
    let (lsm, _) = played(&LsmConfig { mix, operations: Some(2_000), ..config() });
    let reads = lsm.operations().of(Kind::Read);
    assert!(reads.ios < 0.95, "after 1,000 updates the hottest keys are in the memtable: {}", reads.ios);
}

#[test]
fn stores_lie_apart_on_their_volumes_within_what_a_volume_must_have() {
    let eight = LsmConfig {
        stores: 8,
        clients: 4,
        volumes: 3,
        mix: YcsbMix { reads: 0.5, updates: 0.5, read_modify_writes: 0.0 },
        ..config()
    };
    let (lsm, arrivals) = played(&eight);
    assert_eq!(lsm.operations().count(), 20_000);
    let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for Arrival { request, .. } in &arrivals {
        *pairs.entry((request.source.0, request.target.0)).or_default() += 1;
        assert!(request.address + request.bytes.count() <= eight.volume_bytes().count());
    }
    let expected: BTreeMap<(u32, u32), ()> = (0..8).map(|store| ((store % 4, 4 + store % 3), ())).collect();
    assert!(pairs.keys().eq(expected.keys()), "{pairs:?}");
}

#[test]
fn what_trees_move_in_the_warm_up_does_not_count() {
    let of = |warm_up_requests| {
        let config = LsmConfig { mix: UPDATES, operations: Some(4_000), warm_up_requests, ..config() };
        let (lsm, _) = played(&config);
        (lsm.operations().updated / RECORD, lsm.operations().written)
    };
    let ((all, written), (half, written_since)) = (of(0), of(2_000));
    // A thread may have begun its update before, and have it done after.
    assert!(all == 4_000 && (2_000..=2_004).contains(&half), "{all} and {half}");
    assert!(written_since > 0 && written_since < written * 2 / 3, "{written_since} of {written}");
}

#[test]
fn the_load_ends_with_its_time_and_is_the_same_for_the_same_seed() {
    let timed = LsmConfig { operations: None, duration: Some(Span::ms(10)), ..config() };
    let ((first, arrivals), (_, again)) = (played(&timed), played(&timed));
    assert_eq!(arrivals, again);
    assert!(arrivals.iter().all(|arrival| arrival.at < base::Time::ms(10)));
    assert!((400..500).contains(&first.operations().count()), "{}", first.operations().count());
    let mut other = Lsm::new(&timed, Seed(2));
    let mut seen = Vec::new();
    play(&mut other, |_| SERVED, |arrival| seen.push(*arrival), 100_000);
    assert_ne!(arrivals, seen);
}

#[test]
fn a_key_value_request_lasts_from_its_begin_to_the_end_of_its_last_io_or_to_what_memory_says() {
    // Every read finds its key in the last level: the code's 2 us and one block.
    let (lsm, _) = played(&config());
    let all = lsm.operations().all();
    assert_eq!((all.count, all.ios), (20_000, 1.0));
    let exact = (Span::us(2) + SERVED).as_ns_f64();
    for span in [all.mean, all.percentile(0.5), all.percentile(0.99), all.percentile(0.999)] {
        assert!((span.as_ns_f64() / exact - 1.0).abs() < 1e-3, "{span}");
    }
    // Of updates into a buffered log, three of four end in memory after the code's 2 us and the
    // fourth with the log's write.
    let wal = Wal::Buffered { buffer: Bytes::new(4 * RECORD) };
    let tree = TreeConfig { wal, memtable: Bytes::kib(1 << 20), ..config().tree };
    let (lsm, _) = played(&LsmConfig { mix: UPDATES, tree, ..config() });
    let all = lsm.operations().all();
    assert_eq!(all.ios, 0.25);
    let exact = Span::us(2).as_ns_f64() + SERVED.as_ns_f64() / 4.0;
    assert!((all.mean.as_ns_f64() / exact - 1.0).abs() < 1e-3, "{}", all.mean);
    assert!(all.percentile(0.5) < Span::us(3) && all.percentile(0.99) > SERVED);
}

#[test]
fn what_begins_in_the_warm_up_is_played_and_not_timed() {
    let (_, whole) = played(&config());
    let (lsm, arrivals) = played(&LsmConfig { warm_up_requests: 5_000, ..config() });
    assert_eq!(arrivals, whole);
    assert_eq!(lsm.operations().all().count, 15_000);
    // Four threads, one request each 82 us.
    let (lsm, _) = played(&LsmConfig { warm_up: Span::us(82 * 100), ..config() });
    assert_eq!(lsm.operations().all().count, 20_000 - 400);
    assert!((lsm.operations().per_second() / (4.0 / 82e-6) - 1.0).abs() < 1e-3);
}

#[test]
fn what_is_impossible_is_named() {
    let problem = |change: fn(&mut LsmConfig)| {
        let mut config = config();
        change(&mut config);
        config.problems().first().map(ToString::to_string).unwrap_or_default()
    };
    assert_eq!(problem(|_| {}), "");
    assert_eq!(problem(|config| config.theta = 1.0), "theta: 1 is not between 0 and 1, both excluded");
    assert_eq!(problem(|config| config.service = Span::ZERO), "service: 0ps is too short, allowed is 1ps or more");
    assert_eq!(problem(|config| config.tree.memtables_max = 1), "tree.memtables_max: 1 is outside 2..=1024");
    assert_eq!(problem(|config| config.tree.level0_stop = 4), "tree.level0_stop: 4 is outside 5..=2048");
    assert_eq!(
        problem(|config| config.operations = None),
        "requests, duration: neither is given, one of them must end the run"
    );
}
