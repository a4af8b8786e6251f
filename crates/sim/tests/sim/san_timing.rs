//! What an unloaded request takes, by closed formula.

use crate::san_support::{BLOCK, Played, config, load, network, play};
use base::{Operation, Rate, Span};
use hardware::ssd::presets::pm9a3_960_quick;
use record::{Row, SpanKind};
use san::route::Policy;
use san::wire::WireFormat;
use san::{PacketKind, Trail};
use sim::rigs::san::{DriveModel, SanRigConfig};
use topology::Kind;

/// A chain with one host, at its first adapter, and one request a time.
fn chain(nodes: u32) -> SanRigConfig {
    let mut config = config(network(Kind::DaisyChain { nodes }, 1, nodes));
    config.hop.route.policy = Policy::ShortestPath;
    config
}

/// The latencies of one read or write of 4 KiB at each drive of a chain, nearest first.
fn latencies(config: &SanRigConfig, write_share: f64) -> Vec<Row> {
    let load = load(config, write_share, 1, 200);
    let mut rows = play(config.clone(), &load, 2).rows;
    rows.sort_by_key(|row| (row.target, row.request));
    rows.dedup_by_key(|row| row.target);
    rows
}

/// One hop more on the way of a packet: its bits once more, 2 m of cable, and the adapter.
fn pass(config: &SanRigConfig, frame: u32) -> Span {
    Rate::gbps(100).span_of(base::Bytes::new(u64::from(frame))) + Span::ns(10) + config.passing.adapter_latency
}

/// Bytes of a packet that has been at so many hops.
fn frame(config: &SanRigConfig, kind: PacketKind, payload: u32, hops: u32) -> u32 {
    WireFormat::new(&config.host.wire).unwrap().frame(kind, payload, 0) + hops * Trail::HOP_BYTES
}

#[test]
fn each_hop_of_a_chain_adds_to_a_read_one_pass_there_and_one_back() {
    let config = chain(5);
    let rows = latencies(&config, 0.0);
    assert_eq!(rows.len(), 5);
    let bytes = BLOCK.count() as u32;
    for (index, pair) in rows.windows(2).enumerate() {
        // Hop `index + 2` is new; the trail is longer by one at every hop and at the ends from
        // there on.
        let hops = index as u32 + 1;
        let command = pass(&config, frame(&config, PacketKind::Command, 0, hops));
        let data = pass(&config, frame(&config, PacketKind::ReadData { last: true }, bytes, hops + 1));
        let added = pair[1].latency() - pair[0].latency();
        let floor = command + data;
        // All frames carry eight bytes more on the links that both ways have: at most two links a
        // hop before, both ways, and boards.
        let header = Rate::gbps(100).span_of(base::Bytes::new(u64::from(Trail::HOP_BYTES)));
        assert!(
            added >= floor && added <= floor + header * u64::from(2 * hops + 4),
            "{added:?} for hop {hops}, {floor:?}"
        );
    }
}

#[test]
fn a_read_alone_takes_its_parts_and_nothing_waits() {
    let config = chain(2);
    let DriveModel::Quick(drive) = config.drives.model else { panic!("tests use the quick drive") };
    assert_eq!(drive, pm9a3_960_quick(drive.capacity));
    let nearest = latencies(&config, 0.0).remove(0);
    let of = |kind| nearest.spans.get(kind);
    let transfer = drive.link.rate.span_of(BLOCK);
    assert_eq!(of(SpanKind::Flash), drive.page_read + drive.read.command + transfer + drive.link.command);
    let ends = config.ends;
    assert_eq!(
        of(SpanKind::Stack),
        ends.host_send + ends.target_receive + ends.target_send + ends.host_complete + ends.per_4_kib
    );
    // Host to adapter and back, adapter to target and back.
    assert_eq!(of(SpanKind::Forwarding), config.passing.adapter_latency * 2 + config.passing.board_latency * 2);
    assert_eq!(of(SpanKind::Propagation), Span::ns(20));
    for kind in
        [SpanKind::Schedule, SpanKind::NicQueue, SpanKind::SwitchQueue, SpanKind::FlashWait, SpanKind::StorageQueue]
    {
        assert_eq!(of(kind), Span::ZERO, "{kind:?}");
    }
}

#[test]
fn a_write_crosses_the_network_four_times() {
    let config = chain(2);
    let write = latencies(&config, 1.0).remove(0);
    assert_eq!(write.operation, Operation::Write);
    assert_eq!(write.spans.get(SpanKind::Propagation), Span::ns(40));
    assert_eq!(
        write.spans.get(SpanKind::Forwarding),
        config.passing.adapter_latency * 4 + config.passing.board_latency * 4
    );
    assert_eq!(write.spans.get(SpanKind::Schedule), Span::ZERO);
}

#[test]
fn a_hop_costs_a_read_about_what_the_study_measured() {
    let rows = latencies(&chain(4), 0.0);
    let last = rows.len() - 1;
    let hop = (rows[last].latency() - rows[0].latency()).as_ns_f64() / last as f64 / 1e3;
    // san.fig2c.hop.4k: 2.9 us.
    assert!((2.2..=3.6).contains(&hop), "{hop} us");
}

/// With a card for each cable, a read of a drive `d` adapters away crosses at `d` adapters there
/// and back: the last one passes it to its board. With all cables on one card it never crosses.
#[test]
fn transit_between_two_cards_of_an_adapter_costs_its_crossing() {
    let with = |card_ports, crossing| {
        let mut config = chain(4);
        (config.passing.card_ports, config.passing.card_crossing) = (card_ports, crossing);
        latencies(&config, 0.0)
    };
    let (alone, apart, together) = (with(2, Span::ZERO), with(1, Span::us(2)), with(64, Span::us(2)));
    assert_eq!(alone.len(), 4);
    for (distance, ((alone, apart), together)) in alone.iter().zip(&apart).zip(&together).enumerate() {
        let crossings = Span::us(2) * (2 * distance as u64);
        assert_eq!(apart.latency() - alone.latency(), crossings, "{distance} adapters away");
        let [of_apart, of_alone] = [apart, alone].map(|row| row.spans.get(SpanKind::Forwarding));
        assert_eq!(of_apart - of_alone, crossings);
        assert_eq!(together.latency(), alone.latency());
    }
}

/// An adapter is a server with a fixed time a frame: what passes it one at a time never waits, and
/// a full one passes so many frames a second and no more.
#[test]
fn an_adapter_forwards_so_many_frames_a_second() {
    let gap = Span::us(2);
    let with = |gap, depth, requests| {
        let mut config = chain(2);
        config.passing.adapter_gap = gap;
        play(config.clone(), &load(&config, 0.0, depth, requests), 2)
    };
    let is_full = |played: &Played| played.summary.warnings.iter().any(|said| said.contains("fabric.adapter_gap"));
    let mean =
        |rows: &[Row], kind| rows.iter().map(|row| row.spans.get(kind).as_ns_f64()).sum::<f64>() / rows.len() as f64;
    let (alone, full) = (with(gap, 1, 200), with(gap, 64, 4_000));
    assert_eq!(mean(&alone.rows, SpanKind::SwitchQueue), 0.0);
    assert_eq!((is_full(&alone), is_full(&full)), (false, true), "{:?}", full.summary.warnings);
    let rows = full.rows;
    // The first of both passes all: a command and the frames of an answer each.
    let config = chain(2);
    let answer = frame(&config, PacketKind::ReadData { last: true }, BLOCK.count() as u32, 1);
    let frames = 1 + answer.div_ceil(1_538);
    let (first, last) = (rows.iter().map(|row| row.start).min(), rows.iter().map(|row| row.end).max());
    let time = last.unwrap() - first.unwrap();
    let each = time.as_ns_f64() / (rows.len() as f64 * f64::from(frames) * gap.as_ns_f64());
    assert!((1.0..1.03).contains(&each), "{each} of its time a frame, with {frames} frames a read");
    assert!(mean(&rows, SpanKind::SwitchQueue) > 0.5 * 64.0 * f64::from(frames) * 2_000.0);
}
