//! Scalio, LEED and Ditto in their rack: closed formulae, counts of I/Os, histories, faults.

use base::{Bytes, Span};
use hardware::Verb;
use plan::{Plan, Scene};
use record::{Row, SpanKind, Summary};
use sim::drive::Unobserved;
use sim::{RunOptions, run};

const SMALL: &str = r#"
title = "pairs"
[design]
name = "scalio"
[store]
devices = 2
clients = 8
client_nodes = 2
keys = 4000
cached_keys = 400
[io]
profile = "ycsb-a"
depth = 2
[run]
requests = 6000
warm_up_requests = 0
"#;

fn plan(text: &str) -> Plan {
    let experiment = plan::parse("pairs.toml", text, &plan::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

fn play(text: &str, wire_check: bool) -> (Summary, Vec<Row>) {
    let mut rows: Vec<Row> = Vec::new();
    let options = RunOptions { wire_check, ..RunOptions::default() };
    let outcomes = run(&plan(text), &options, &mut rows, &mut Unobserved).unwrap_or_else(|error| panic!("{error}"));
    (outcomes.summary, rows)
}

fn summary(text: &str) -> Summary {
    play(text, false).0
}

/// SMALL with a design and other keys: `("io.profile", "'ycsb-c'")` takes the place of the line of
/// that key.
fn with(design: &str, changes: &[(&str, &str)]) -> String {
    let mut table: toml::Table = toml::from_str(SMALL).expect("the small plan is TOML");
    let set = |table: &mut toml::Table, path: &str, value: &str| {
        let (name, key) = path.split_once('.').expect("a table and a key");
        let value: toml::Table = toml::from_str(&format!("value = {value}")).expect("a value");
        let inner = table.entry(name).or_insert_with(|| toml::Table::new().into());
        inner.as_table_mut().expect("a table").insert(key.into(), value["value"].clone());
    };
    set(&mut table, "design.name", &format!("'{design}'"));
    changes.iter().for_each(|(path, value)| set(&mut table, path, value));
    toml::to_string(&table).expect("it is TOML")
}

fn metric(summary: &Summary, name: &str) -> f64 {
    *summary.metrics.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", summary.metrics.keys()))
}

const DESIGNS: [&str; 3] = ["scalio", "leed", "leed-ditto"];

#[test]
fn every_request_ends_and_its_spans_are_its_latency() {
    for design in DESIGNS {
        let (summary, rows) = play(&with(design, &[]), false);
        assert_eq!((summary.counts.finished, rows.len()), (6_000, 6_000), "{design}");
        for row in &rows {
            assert_eq!(row.spans.total(), row.end - row.intended, "{design}: {row:?}");
        }
    }
}

#[test]
fn equal_seeds_give_equal_rows_and_bytes_on_the_wire_change_nothing() {
    for design in DESIGNS {
        let text = with(design, &[]);
        let (first, second) = (play(&text, false), play(&text, true));
        assert!(first.1 == second.1, "{design}");
        let other = play(&format!("seed = 2\n{text}"), false);
        assert!(first.1 != other.1, "{design}");
    }
}

#[test]
fn a_lone_hit_takes_one_read_of_its_block() {
    let changes = [("store.clients", "1"), ("store.client_nodes", "1"), ("io.depth", "1"), ("io.profile", "'ycsb-c'")];
    let text = with("scalio", &changes);
    let plan = plan(&text);
    let Scene::Scalio(scalio) = &plan.scene else { panic!("{:?}", plan.scene) };
    let bytes = scalio::layout::block_bytes(8) as u64;
    let alone = scalio.rdma.adapter.unloaded(Verb::Read, Bytes::new(16), Bytes::new(bytes));
    let (_, rows) = play(&text, false);
    let shortest = rows.iter().map(|row| row.end - row.intended).min();
    assert_eq!(shortest, Some(alone));
}

#[test]
fn a_miss_reads_flash_twice_whoever_reads_it() {
    for (design, changes) in [("scalio", vec![("scalio.cache", "false")]), ("leed", vec![])] {
        let changes = [changes, vec![("io.profile", "'ycsb-c'"), ("io.addresses", "'uniform'")]].concat();
        let summary = summary(&with(design, &changes));
        assert_eq!(metric(&summary, "ssd_reads_per_operation"), 2.0, "{design}");
        assert_eq!(metric(&summary, "ssd_writes_per_operation"), 0.0, "{design}");
    }
}

#[test]
fn an_update_of_leed_is_a_read_and_two_writes_and_one_that_waited_saves_the_read() {
    for hand_over in [true, false] {
        let summary = summary(&with("leed", &[("leed.hand_over", &hand_over.to_string())]));
        let handed_over = metric(&summary, "segments_handed_over");
        assert_eq!(handed_over > 100.0, hand_over, "{handed_over}");
        let reads = metric(&summary, "ssd_reads_per_operation") * 6_000.0;
        let saved = 2.0 * metric(&summary, "gets") + metric(&summary, "puts") - reads;
        // A few are handed to compaction, whose reads are counted apart.
        assert!(saved <= handed_over && saved >= 0.9 * handed_over, "{saved} of {handed_over}");
        assert_eq!(metric(&summary, "ssd_writes_per_update"), 2.0);
    }
}

/// Updates of one key: once it has the lock, each takes the segment's write alone.
#[test]
fn updates_of_one_key_are_quicker_where_the_segment_is_handed_over() {
    let load = [("io.profile", "'ycsb-a'"), ("io.theta", "1.2"), ("store.clients", "32")];
    let rate = |design: &str, hand_over: &str| {
        let (alone, name) = match design {
            "scalio" => (Some(("scalio.batching", "false")), "scalio.hand_over"),
            _ => (None, "leed.hand_over"),
        };
        let changes: Vec<_> = load.into_iter().chain(alone).chain([(name, hand_over)]).collect();
        summary(&with(design, &changes)).load.requests_per_second
    };
    for design in ["scalio", "leed"] {
        let gain = rate(design, "true") / rate(design, "false");
        assert!(gain > 1.5, "{design}: {gain}");
    }
}

#[test]
fn a_drive_that_does_not_keep_a_page_reads_the_hottest_one_again() {
    let hot = [("io.profile", "'ycsb-c'"), ("io.theta", "1.2"), ("scalio.cache", "false"), ("store.clients", "64")];
    let rate = |keeps: &'static str| {
        let changes: Vec<_> = hot.into_iter().chain([("store.keeps_page", keeps)]).collect();
        summary(&with("scalio", &changes)).load.requests_per_second
    };
    let (keeps, reads_again) = (rate("true"), rate("false"));
    assert!(keeps > 1.3 * reads_again, "{keeps} {reads_again}");
}

#[test]
fn an_update_of_scalio_is_two_writes_alone_and_little_more_than_one_in_a_group() {
    let alone = summary(&with("scalio", &[("scalio.batching", "false")]));
    assert_eq!(metric(&alone, "ssd_writes_per_update"), 2.0);
    let grouped = summary(&with(
        "scalio",
        &[
            ("store.clients", "64"),
            ("store.keys", "40000"),
            ("store.cached_keys", "8000"),
            ("io.addresses", "'uniform'"),
        ],
    ));
    let writes = metric(&grouped, "ssd_writes_per_update");
    // A page for eight records, and a segment each.
    assert!((1.05..=1.2).contains(&writes), "{writes}");
    assert!(metric(&grouped, "updates_per_group") > 6.0);
}

#[test]
fn offloaded_reads_take_nothing_of_the_box_s_cores() {
    let reads = [("io.profile", "'ycsb-c'"), ("io.addresses", "'uniform'")];
    let scalio = summary(&with("scalio", &reads));
    assert_eq!(metric(&scalio, "server_cpu_percent"), 0.0);
    assert!(metric(&scalio, "offloaded_reads_per_operation") > 1.5);
    let leed = summary(&with("leed", &reads));
    // Two I/Os of 3.3 us and a call of 1 us.
    assert_eq!(metric(&leed, "server_cpu_ns_per_operation"), 7_600.0);
}

#[test]
fn a_target_in_software_costs_its_time_for_each_read_and_one_in_the_adapter_none() {
    let bare = |design: &str| {
        let text = format!(
            "title = 'bare'\ndesign.name = '{design}'\nstore = {{ devices = 7 }}\nrun = {{ requests = 60000 }}\n"
        );
        summary(&text)
    };
    let (software, adapter) = (bare("nvme-of"), bare("nvme-of-offload"));
    assert_eq!(metric(&adapter, "server_cpu_percent"), 0.0);
    let rate = software.load.requests_per_second;
    let expected = rate * 1.606e-6 * 100.0;
    assert!(
        (metric(&software, "target_percent") / expected - 1.0).abs() < 0.05,
        "{} {expected}",
        metric(&software, "target_percent")
    );
    assert!(rate > 3.0e6 && adapter.load.requests_per_second > 3.0e6, "{rate}");
}

#[test]
fn leed_stops_growing_with_the_fourth_ssd() {
    let rate = |devices: &str| {
        let changes = [
            ("store.devices", devices),
            ("store.clients", "160"),
            ("io.profile", "'ycsb-c'"),
            ("io.addresses", "'uniform'"),
            ("run.requests", "20000"),
        ];
        summary(&with("leed", &changes)).load.requests_per_second
    };
    let (two, four, seven) = (rate("2"), rate("4"), rate("7"));
    assert!(four > 1.8 * two && seven < 1.08 * four, "{two} {four} {seven}");
    assert!((500e3..700e3).contains(&seven), "{seven}");
}

/// Keys that few enough clients fight for, and eight of which sleep longer than a lease.
fn contended(protocol: &str, more: &str) -> String {
    let changes = [
        ("io.check_history", "true"),
        ("store.keys", "300"),
        ("store.cached_keys", "64"),
        ("store.clients", "40"),
        ("scalio.lease", "'1ms'"),
        ("scalio.protocol", protocol),
        ("run.requests", "12000"),
    ];
    with("scalio", &changes) + more
}

/// Clients that sleep for 4 ms, one after the other.
fn sleepers() -> String {
    let sleep = |client: u32| {
        let (from, to) = (200 + 100 * client, 4_200 + 100 * client);
        format!(
            "[[fault]]\nkind = 'node-down'\nnode = {client}\nat = '{from}us'\n[[fault]]\nkind = 'node-up'\nnode = {client}\nat = '{to}us'\n"
        )
    };
    (0..20).map(sleep).collect()
}

#[test]
fn our_histories_are_linearizable_whoever_sleeps() {
    for more in [String::new(), sleepers()] {
        let summary = summary(&contended("'linearizable'", &more));
        assert_eq!(metric(&summary, "history_violations"), 0.0, "{:?}", summary.warnings);
        assert_eq!(summary.counts.finished, 12_000);
    }
}

#[test]
fn reads_that_wait_share_an_answer_if_they_are_told_to_and_histories_stay_linearizable() {
    // One key in twenty is in a slot, so several reads of a client want the same missing one.
    let crowd = [
        ("io.check_history", "true"),
        ("io.depth", "64"),
        ("io.theta", "1.2"),
        ("store.keys", "300"),
        ("store.cached_keys", "16"),
        ("run.requests", "12000"),
    ];
    let [alone, shared] = ["false", "true"].map(|share| {
        let changes: Vec<_> = crowd.into_iter().chain([("scalio.share_waits", share)]).collect();
        play(&with("scalio", &changes), false)
    });
    for (summary, rows) in [&alone, &shared] {
        assert_eq!((metric(summary, "history_violations"), summary.counts.finished), (0.0, 12_000));
        rows.iter().for_each(|row| assert_eq!(row.spans.get(SpanKind::Unattributed), Span::ZERO, "{row:?}"));
    }
    assert_eq!(metric(&alone.0, "reads_shared"), 0.0);
    assert!(metric(&shared.0, "reads_shared") > 100.0, "{}", metric(&shared.0, "reads_shared"));
    assert!(metric(&shared.0, "waits") < metric(&alone.0, "waits"));
}

#[test]
fn the_paper_s_protocol_loses_linearizability_when_fillers_sleep_over_their_leases() {
    let summary = summary(&contended("'paper'", &sleepers()));
    assert!(metric(&summary, "history_violations") > 0.0);
    assert!(summary.warnings.iter().any(|warning| warning.contains("not linearizable")), "{:?}", summary.warnings);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_box_stops_and_comes_back() {
    let stops =
        "[[fault]]\nkind = 'node-down'\nnode = 40\nat = '3ms'\n[[fault]]\nkind = 'node-up'\nnode = 40\nat = '4ms'\n";
    let summary = summary(&contended("'linearizable'", stops));
    assert_eq!(metric(&summary, "history_violations"), 0.0, "{:?}", summary.warnings);
    assert!(metric(&summary, "requests_unknown") > 0.0, "some requests were on their way");
    assert!(summary.counts.finished > 8_000, "{:?}", summary.counts);
}

#[test]
fn a_client_that_dies_holds_up_nobody_else() {
    let dies = "[[fault]]\nkind = 'node-down'\nnode = 3\nat = '1ms'\n";
    let summary = summary(&contended("'linearizable'", dies));
    assert_eq!((summary.counts.unavailable, summary.counts.in_flight_at_end), (2, 0), "its own two requests");
    assert_eq!(summary.counts.finished, 12_000 - 2);
    assert_eq!(metric(&summary, "history_violations"), 0.0, "{:?}", summary.warnings);
}

#[test]
fn a_get_of_what_is_filled_by_another_waits_and_says_so() {
    let summary = summary(&contended("'linearizable'", ""));
    assert!(metric(&summary, "waits") > 0.0);
    let schedule = summary.span_mean_ns["read"][SpanKind::Schedule.name()];
    assert!(schedule > 0.0 && schedule < Span::ms(1).as_ns_f64(), "{schedule}");
}

/// The same contention as above, and blocks that hold so few keys that everybody reads what others
/// write.
fn hot(protocol: &str, torn_reads: &str) -> Summary {
    let text = contended(protocol, "").replace("requests = 12000", "requests = 30000");
    let mut table: toml::Table = toml::from_str(&text).expect("it is TOML");
    let scalio = table["scalio"].as_table_mut().expect("a table");
    scalio.insert("torn_reads".into(), (torn_reads == "true").into());
    scalio.insert("lease".into(), "1s".into());
    summary(&toml::to_string(&table).expect("it is TOML"))
}

#[test]
fn torn_reads_are_survived_and_counted() {
    let summary = hot("'linearizable'", "true");
    assert!(metric(&summary, "torn_reads") > 0.0);
    assert_eq!(metric(&summary, "history_violations"), 0.0, "{:?}", summary.warnings);
    assert_eq!(metric(&hot("'linearizable'", "false"), "torn_reads"), 0.0);
}

#[test]
fn the_paper_s_protocol_believes_torn_reads_where_nobody_sleeps() {
    let torn = hot("'paper'", "true");
    assert!(metric(&torn, "torn_reads") > 0.0);
    let whole = hot("'paper'", "false");
    assert!(
        metric(&torn, "history_violations") > metric(&whole, "history_violations"),
        "{} and {}",
        metric(&torn, "history_violations"),
        metric(&whole, "history_violations")
    );
}

/// SMALL over EDM, with other keys.
fn over_edm(changes: &[(&str, &str)]) -> String {
    with("scalio", &[&[("carrier.name", "'edm'")], changes].concat())
}

#[test]
fn over_edm_every_request_ends_and_blocks_of_66_bits_change_nothing() {
    let (summary, rows) = play(&over_edm(&[]), false);
    assert_eq!((summary.counts.finished, rows.len()), (6_000, 6_000));
    for row in &rows {
        assert_eq!(row.spans.total(), row.end - row.intended, "{row:?}");
    }
    assert!(rows == play(&over_edm(&[]), true).1);
    assert!(metric(&summary, "swaps_per_operation") > 0.0);
    assert_eq!(metric(&summary, "unexpected_messages") + metric(&summary, "protocol_violations"), 0.0);
}

#[test]
fn a_lone_hit_over_edm_takes_one_read_of_its_block_by_edm_s_own_formula() {
    let changes = [("store.clients", "1"), ("store.client_nodes", "1"), ("io.depth", "1"), ("io.profile", "'ycsb-c'")];
    let text = over_edm(&changes);
    let plan = plan(&text);
    let Scene::Scalio(scalio) = &plan.scene else { panic!("{:?}", plan.scene) };
    let carrier = scalio.carrier.expect("the plan has a carrier");
    let bytes = Bytes::new(scalio::layout::block_bytes(8) as u64);
    let place = edm::Place { nodes: 2, rate: carrier.rate };
    let network = edm::cost::unloaded(
        &carrier.edm(),
        &place,
        carrier.transceiver,
        carrier.propagation,
        base::Operation::Read,
        bytes,
    );
    let memory = carrier.memory_latency + carrier.memory_bandwidth.span_of(bytes);
    let (_, rows) = play(&text, false);
    let shortest = rows.iter().map(|row| row.end - row.intended).min();
    assert_eq!(shortest, Some(network + memory + carrier.post + carrier.completion));
}

#[test]
fn over_edm_histories_are_linearizable_whoever_sleeps_and_whatever_stops() {
    let stops =
        "[[fault]]\nkind = 'node-down'\nnode = 40\nat = '3ms'\n[[fault]]\nkind = 'node-up'\nnode = 40\nat = '4ms'\n";
    for more in [String::new(), sleepers(), stops.into()] {
        let text = format!("{}\n[carrier]\nname = 'edm'\n", contended("'linearizable'", &more));
        let summary = summary(&text);
        assert_eq!(metric(&summary, "history_violations"), 0.0, "{:?}", summary.warnings);
        assert!(summary.counts.finished > 8_000, "{:?}", summary.counts);
    }
}

#[test]
fn a_kept_history_is_judged_and_holds_every_operation_that_says_something() {
    let options = RunOptions { keep_history: true, ..RunOptions::default() };
    for (text, is_right) in [(contended("'linearizable'", ""), true), (contended("'paper'", &sleepers()), false)] {
        let outcomes = run(&plan(&text), &options, &mut Vec::new(), &mut Unobserved).expect("it runs");
        let history = outcomes.history.expect("it was to be kept");
        assert!(history.operations() as u64 >= outcomes.summary.counts.finished);
        assert_eq!(metric(&outcomes.summary, "history_violations") == 0.0, is_right);
        assert_eq!(history.check(1 << 20) == history::StoreVerdict::Linearizable, is_right);
    }
}
