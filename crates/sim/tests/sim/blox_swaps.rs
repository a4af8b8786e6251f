//! Does the protocol hold: two drives of a server exchange what they hold while clients read and
//! write, and no read is stale.

use crate::blox_support::{Change, Played, cases, plan_with, play, rack};
use base::{Operation, Span, Time};
use proptest::prelude::*;
use record::SpanKind;

/// Two drives a server, and enough to do that a swap takes some of the run.
const TWO_DRIVES: [Change<'_>; 3] = [("rack.ssds", "2"), ("run.requests", "6000"), ("vssd.data", "0.1")];

fn swap(at: &str, server: u32) -> String {
    format!("[[swap]]\nat = \"{at}\"\nserver = {server}\nssds = [0, 1]\n")
}

fn swapped(tables: &str, changes: &[Change<'_>]) -> Played {
    play(&plan_with(tables, &[TWO_DRIVES.as_slice(), changes].concat()))
}

fn pages() -> f64 {
    rack(&plan_with("", &TWO_DRIVES)).io.working_set_blocks as f64
}

#[test]
fn every_page_of_both_drives_moves_once_and_no_read_is_stale() {
    for design in ["rackblox", "rackblox-software", "vdc"] {
        let played = swapped(&swap("20ms", 0), &[("design.name", design)]).all_finished();
        assert_eq!(played.metric("swap_pages_read"), 2.0 * pages(), "{design}");
        assert_eq!(played.metric("swap_pages_written"), 2.0 * pages(), "{design}");
        assert!(played.metric("swap_requests_held") > 0.0, "{design}: some request met a batch");
        assert_eq!(played.metric("history_violations"), 0.0);
        assert!(played.metric("write_amplification") > 1.0, "what a swap writes nobody asked for");
    }
}

/// Paper, 3.6: a drive is written once as a whole; one swap every 12 days for five years takes 0.5
/// % of 30,000 erases.
#[test]
fn a_swap_costs_what_the_paper_says_for_the_share_of_the_drive_that_holds_data() {
    for (data, stop) in [("0.1", "0.38"), ("0.3", "0.37")] {
        let shares = [("vssd.data", data), ("collection.stop", stop), ("run.requests", "12000")];
        let played = swapped(&swap("20ms", 0), &shares).all_finished();
        assert_eq!(played.metric("swaps_of_vssds_done"), 1.0);
        let data: f64 = data.parse().unwrap();
        let erases = played.metric("swap_erases_of_every_block");
        assert!((erases - data).abs() < 0.001, "{erases} of {data}");
        let lifetime = played.metric("swap_every_12_days_lifetime_fraction");
        assert!((lifetime - data * 152.0 / 30_000.0).abs() < 1e-5 && lifetime < 0.0055, "{lifetime}");
    }
}

#[test]
fn drives_that_swap_twice_are_where_they_were_and_serve_on() {
    let twice = swap("20ms", 0) + &swap("21ms", 0) + &swap("20ms", 1);
    let played = swapped(&twice, &[("vssd.per_ssd", "2"), ("run.requests", "30000")]).all_finished();
    assert_eq!(played.metric("swaps_of_vssds_done"), 6.0);
    assert_eq!(played.metric("swap_pages_written"), 12.0 * pages());
}

#[test]
fn a_server_that_dies_in_the_midst_of_a_swap_goes_on_with_it_when_it_is_back() {
    let dies = "[[fault]]\nat = \"40ms\"\nkind = \"node-down\"\nnode = 0\n[[fault]]\nat = \"300ms\"\nkind = \"node-up\"\nnode = 0\n";
    let changes = [("rack.servers", "4"), ("io.think", "1ms"), ("run.requests", "20000")];
    let tables = swap("20ms", 0) + dies;
    let played = swapped(&tables, &changes);
    assert!(played.ends() > Time::ms(400));
    assert_eq!(played.metric("swaps_of_vssds_done"), 1.0, "{:#?}", played.outcomes.summary.metrics);
    assert_eq!(played.metric("history_violations"), 0.0);
    let undisturbed = swapped(&swap("20ms", 0), &changes);
    assert!(played.metric("swap_time_mean_ms") > undisturbed.metric("swap_time_mean_ms") + 200.0);
}

#[test]
fn a_swap_that_never_begins_changes_nothing() {
    let (with, without) = (swapped(&swap("1h", 0), &[]), swapped("", &[]));
    assert_eq!(with.bytes(), without.bytes());
    assert_eq!(with.metric("swaps_of_vssds_unfinished"), 1.0);
    assert!(!without.outcomes.summary.metrics.contains_key("swaps_of_vssds_done"));
    let mean = |played: &Played| played.mean(|row| row.operation == Operation::Read);
    let amid = swapped(&swap("20ms", 0), &[]);
    assert!(mean(&amid) > mean(&without) && mean(&amid) < mean(&without) * 2, "{} and {}", mean(&amid), mean(&without));
    let longest = amid.rows.iter().map(|row| row.spans.get(SpanKind::CollectionWait)).max();
    assert!(longest > Some(Span::us(500)), "{longest:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    /// The history of each run is checked as it is played.
    #[test]
    fn whenever_and_however_drives_swap_histories_stay_lawful(
        seed in 0..1_000_u32,
        at in prop::collection::vec((0..80_u32, 0..2_u32), 1..4),
        batch in prop::sample::select(vec!["1", "7", "64", "500"]),
        write_share in prop::sample::select(vec!["0.1", "0.5", "1.0"]),
        data in prop::sample::select(vec!["0.01", "0.1"]),
    ) {
        let tables: String = at.iter().map(|(at, server)| swap(&format!("{at}ms"), *server)).collect();
        let seed = seed.to_string();
        let changes = [("seed", seed.as_str()), ("vssd.swap_batch", batch), ("io.write_share", write_share), ("vssd.data", data)];
        let played = swapped(&tables, &changes).all_finished();
        prop_assert_eq!(played.metric("history_violations"), 0.0);
    }
}
