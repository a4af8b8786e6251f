//! Whose constants a rival has, and keys that choose between ways.

use crate::common::{complaint, plan, with};
use base::{Bytes, Span};
use plan::{Design, Protocol};
use transport::config::{Dcqcn, Pause, Pfabric, RateControl, Reaction};

fn text(rate: &str, design: &str, table: &str) -> String {
    with("name = \"edm\"", &format!("name = \"{design}\"\n{design} = {{ {table} }}")).replace("100Gbps", rate)
}

fn protocol(text: &str) -> Protocol {
    let plan = plan(text);
    let Design::Packet(packet) = plan.messages().expect("messages are played").design else { panic!("a rival") };
    packet.protocol
}

fn dcqcn(rate: &str, table: &str) -> Dcqcn {
    let Protocol::Dcqcn(config) = protocol(&text(rate, "dcqcn", table)) else { panic!("DCQCN") };
    config
}

fn pfabric(table: &str) -> Pfabric {
    let Protocol::Pfabric(config) = protocol(&text("100Gbps", "pfabric", table)) else { panic!("pFabric") };
    config
}

#[test]
fn the_papers_preset_is_its_figure_14_at_any_rate() {
    assert_eq!(dcqcn("40Gbps", "preset = \"paper\""), Dcqcn::PUBLISHED);
    assert_eq!(dcqcn("100Gbps", "preset = \"paper\""), Dcqcn::PUBLISHED);
}

/// The default scales what depends on the rate, and is the paper's at its own; its static
/// thresholds and its hyper step are ours.
#[test]
fn the_default_is_the_paper_at_its_own_rate() {
    let pause = Pause::Static { above: Bytes::new(240_000), below: Bytes::new(240_000 - 2 * 1_538) };
    let ours = Dcqcn { pause, hyper_bps: 400_000_000, ..Dcqcn::PUBLISHED };
    assert_eq!(dcqcn("40Gbps", ""), ours);
    assert_eq!(dcqcn("40Gbps", "preset = \"scaled\""), ours);
    let faster = dcqcn("100Gbps", "");
    assert_eq!((faster.mark_from, faster.mark_all), (Bytes::new(12_500), Bytes::new(500_000)));
    assert_eq!((faster.additive_bps, faster.hyper_bps), (100_000_000, 1_000_000_000));
}

/// HPCC's run.py at 100 Gb/s: thresholds of 400 and 1600 KB, steps of 20 and 200 Mb/s, 32 MiB.
#[test]
fn the_preset_of_hpcc_is_its_script_at_its_rate() {
    let expected = Dcqcn {
        mtu: Bytes::new(1_000),
        mark_from: Bytes::new(400_000),
        mark_all: Bytes::new(1_600_000),
        mark_probability: 0.2,
        pause: Pause::Dynamic { shared: Bytes::new(32 << 20), share: 0.125 },
        reaction: Reaction::Periodic { cut_interval: Span::us(4) },
        gain: 1.0 / 256.0,
        rate_min_bps: 1_000_000_000,
        notification_interval: Span::us(1),
        alpha_timer: Span::us(1),
        increase_timer: Span::us(300),
        fast_recovery_rounds: 1,
        additive_bps: 20_000_000,
        hyper_bps: 200_000_000,
    };
    assert_eq!(dcqcn("100Gbps", "preset = \"hpcc\""), expected);
    let slower = dcqcn("25Gbps", "preset = \"hpcc\"");
    assert_eq!((slower.mark_from, slower.mark_all), (Bytes::new(100_000), Bytes::new(400_000)));
    assert_eq!((slower.additive_bps, slower.hyper_bps), (5_000_000, 50_000_000));
}

#[test]
fn a_key_counts_more_than_the_preset() {
    let config = dcqcn("100Gbps", "preset = \"hpcc\", mark_from = \"1KB\", pfc = \"static\", pause_above = \"2MB\"");
    assert_eq!(config.mark_from, Bytes::new(1_000));
    assert!(matches!(config.pause, Pause::Static { above, .. } if above == Bytes::new(2_000_000)));
    assert_eq!(config.additive_bps, 20_000_000);
}

#[test]
fn pfabric_over_dctcp_takes_its_queue_window_and_timeout_along() {
    let minimal = pfabric("");
    assert_eq!(minimal.control, RateControl::Minimal { probe_after: 5 });
    let over = pfabric("rate_control = \"dctcp\", window = 9, timeout = \"30us\"");
    let RateControl::Dctcp(dctcp) = over.control else { panic!("over DCTCP") };
    assert_eq!((dctcp.mss, dctcp.queue), (over.mss, over.queue));
    assert_eq!((dctcp.initial_window, dctcp.timeout_min), (9, Span::us(30)));
    assert_eq!((dctcp.mark_above, dctcp.gain), (Bytes::new(33 * 1_538), 1.0 / 16.0));
}

#[test]
fn a_plan_says_all_of_a_chosen_way_and_reads_back_as_itself() {
    for (design, table) in [
        ("dcqcn", "preset = \"hpcc\""),
        ("dcqcn", "preset = \"paper\", reaction = \"periodic\""),
        ("dcqcn", "pfc = \"dynamic\", free_share = 0.5"),
        ("pfabric", "rate_control = \"dctcp\", mark_above = \"7KB\""),
    ] {
        let first = plan(&text("100Gbps", design, table));
        assert_eq!(plan(&first.to_toml()), first, "{design}: {table}");
    }
}

#[test]
fn a_key_that_the_chosen_way_does_not_read_is_an_error() {
    for (design, table, key, needs) in [
        ("dcqcn", "shared_buffer = \"1MB\"", "shared_buffer", "pfc = dynamic, not with static"),
        ("dcqcn", "free_share = 0.5", "free_share", "pfc = dynamic, not with static"),
        ("dcqcn", "preset = \"paper\", pause_above = \"1MB\"", "pause_above", "pfc = static, not with dynamic"),
        ("dcqcn", "pfc = \"dynamic\", resume_below = \"1MB\"", "resume_below", "pfc = static, not with dynamic"),
        ("dcqcn", "cut_interval = \"1us\"", "cut_interval", "reaction = periodic, not with at-once"),
        (
            "dcqcn",
            "preset = \"hpcc\", increase_bytes = \"1MB\"",
            "increase_bytes",
            "reaction = at-once, not with periodic",
        ),
        ("pfabric", "mark_above = \"1KB\"", "mark_above", "rate_control = dctcp, not with minimal"),
        (
            "pfabric",
            "rate_control = \"dctcp\", probe_after = 3",
            "probe_after",
            "rate_control = minimal, not with dctcp",
        ),
    ] {
        let got = complaint(&text("100Gbps", design, table));
        let end = format!("design.{design}.{key}: `{key}` is valid only with {needs}");
        assert!(got.ends_with(&end), "{got}");
    }
}
