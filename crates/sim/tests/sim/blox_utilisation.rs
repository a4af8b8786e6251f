//! Is the model right: what a run says of its channels and of write amplification is what its
//! requests have moved.

use crate::blox_support::{plan, play, played, rack};
use plan::blox::PAGE;
use record::{Row, SpanKind};

#[test]
fn of_a_load_of_reads_the_channels_carry_a_pages_transfer_a_read() {
    let plan = plan(&[("io.write_share", "0.0"), ("vssd.used_before", "0.0")]);
    let played = play(&plan).all_finished();
    let transfer = rack(&plan).flash.timing().transfer(PAGE).as_ns_f64();
    let run = played.outcomes.summary.simulated_ns;
    let busy: Vec<f64> = [0, 1]
        .map(|server| played.metric(&format!("server_{server}_ssd_0_channel_0_utilisation_fraction")) * run)
        .into();
    // The last page that was filled still gathers, in the controller's memory.
    let overhead = rack(&plan).flash.overhead()[0];
    let is_sensed = |row: &&Row| row.spans.get(SpanKind::Flash) > overhead;
    let reads = played.rows.iter().filter(is_sensed).count() as f64;
    assert!((1490.0..=1500.0).contains(&reads), "{reads}");
    assert!((busy.iter().sum::<f64>() - reads * transfer).abs() < 1.0, "{busy:?}: {reads} reads of {transfer} ns");
    // Without collection all reads go to the first replica.
    assert_eq!(busy.iter().filter(|busy| **busy == 0.0).count(), 1, "{busy:?}");
    assert_eq!(played.metric("channel_utilisation_min_fraction"), 0.0);
    assert_eq!(
        played.metric("channel_utilisation_max_fraction"),
        played.metric("channel_utilisation_mean_fraction") * 2.0
    );
    assert_eq!(played.metric("channel_collection_mean_fraction"), 0.0);
}

#[test]
fn the_spread_of_a_server_is_over_the_channels_that_it_uses() {
    let wide = [("vssd.per_ssd", "2"), ("vssd.channels", "2"), ("vssd.capacity", "32MiB"), ("rack.ssds", "2")];
    let played = played(&wide).all_finished();
    for server in 0..2 {
        let shares: Vec<f64> = (0..8)
            .map(|place| format!("server_{server}_ssd_{}_channel_{}_utilisation_fraction", place / 4, place % 4))
            .map(|name| played.metric(&name))
            .collect();
        let of = |which: &str| played.metric(&format!("server_{server}_channel_utilisation_{which}_fraction"));
        assert_eq!(of("min"), shares.iter().copied().fold(f64::INFINITY, f64::min));
        assert_eq!(of("max"), shares.iter().copied().fold(0.0, f64::max));
        assert!((of("mean") - shares.iter().sum::<f64>() / 8.0).abs() < 1e-12 && of("max") > of("min"));
        assert!(
            !played
                .outcomes
                .summary
                .metrics
                .contains_key(&format!("server_{server}_ssd_0_channel_4_utilisation_fraction"))
        );
    }
}

#[test]
fn what_was_written_before_the_run_is_no_part_of_its_write_amplification() {
    let fresh = played(&[("flash.state", "fragmented"), ("io.write_share", "0.0")]).all_finished();
    assert_eq!(fresh.metric("write_amplification"), 1.0, "nothing was written");
    let collecting = played(&[("io.write_share", "1.0"), ("run.requests", "6000")]).all_finished();
    assert!(
        collecting.metric("collection_steps") > 100.0 && collecting.metric("channel_collection_mean_fraction") > 0.0
    );
    assert!(collecting.metric("write_amplification") > 1.02, "{}", collecting.metric("write_amplification"));
}
