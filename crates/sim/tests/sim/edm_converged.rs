//! Converged Ethernet: ordinary frames on the links of EDM's memory messages, with and without
//! intra-frame preemption (paper 3.2.3).

use crate::support::{Script, cluster, play, testbed, uniform};
use base::{Bytes, NodeId, Operation, Rate, Seed, Span, Time};
use edm::pcs::frame::frame_blocks;
use edm::pcs::memory::{read_request_blocks, response_blocks};
use edm::pcs::multiplex::Policy;
use plan::BackgroundStream;
use proptest::prelude::*;
use record::{Outcome, Row, SpanKind, Summary};
use sim::drive::Rig;
use sim::rigs::edm::{Background, EdmRig, EdmRigConfig, Fault, FaultKind};

const POLICIES: [Policy; 3] = [Policy::Strict, Policy::Fair, Policy::None];
/// 1,500 bytes of payload.
const FULL_FRAME: u64 = 1_518;
/// A block at 100 Gb/s.
const BLOCK: Span = Span::ps(640);

fn stream(name: &str, frame: u64, load: f64, burst_frames: u32) -> BackgroundStream {
    BackgroundStream { name: name.into(), frame: Bytes::new(frame), load, burst_frames }
}

fn with(config: EdmRigConfig, preemption: Policy, streams: Vec<BackgroundStream>) -> EdmRigConfig {
    let frames = plan::Background { streams, egress_queue: Bytes::kib(1_024) };
    let background = Background { frames, preemption, seed: Seed(11) };
    EdmRigConfig { background: Some(background), ..config }
}

fn blocks_of(frame: u64) -> u64 {
    frame_blocks(frame as usize - 4).frame
}

fn blocks(span: Span) -> f64 {
    span.ratio(BLOCK)
}

/// Reads of one size by node 0 from node 1, far apart, and at all phases of the frames.
fn lone_reads(count: u64, bytes: u64) -> Script {
    let at = |index: u64| Time::us(50) + Span::ps(5_003_017) * index;
    let reads: Vec<_> = (0..count).map(|index| (at(index), 0, 1, Operation::Read, bytes)).collect();
    Script::new(&reads)
}

/// By how much each request is slower than alone in the network.
fn delays(config: &EdmRigConfig, rows: &[Row]) -> Vec<Span> {
    let rig = EdmRig::new(config.clone());
    rows.iter().map(|row| row.latency() - rig.unloaded(row.operation, row.bytes).unwrap()).collect()
}

fn mean_blocks(delays: &[Span]) -> f64 {
    delays.iter().map(|delay| blocks(*delay)).sum::<f64>() / delays.len() as f64
}

fn saturated(preemption: Policy, frame: u64) -> EdmRigConfig {
    with(cluster(4), preemption, vec![stream("ip", frame, 1.5, 1)])
}

fn told(summary: &Summary, name: &str) -> f64 {
    summary.metrics[&format!("background_{name}")]
}

/// Every frame is with its receiver, dropped by a full queue, or still under way.
fn assert_frames_are_conserved(summary: &Summary) {
    let ends = ["frames_delivered", "frames_dropped", "frames_under_way"].map(|name| told(summary, name));
    assert_eq!(told(summary, "frames_sent"), ends.iter().sum::<f64>());
    assert_eq!(told(summary, "frames_out_of_order"), 0.0);
}

#[test]
fn without_frames_shared_links_carry_a_lone_request_in_its_closed_form() {
    for policy in POLICIES {
        for plain in [testbed(), cluster(4)] {
            let config = with(plain.clone(), policy, Vec::new());
            for operation in [Operation::Read, Operation::Write, Operation::ReadModifyWrite] {
                for bytes in [1, 8, 64, 65, 256, 257, 4_096, 65_535] {
                    let mut rig = EdmRig::new(config.clone());
                    let request = [(Time::ns(7), 0, 1, operation, bytes)];
                    let (rows, _) = play(&mut rig, &mut Script::new(&request));
                    let closed_form = rig.unloaded(operation, Bytes::new(bytes)).unwrap();
                    assert_eq!(rows[0].latency(), closed_form, "{policy:?}: {operation:?} of {bytes} B");
                    let (rows_of_plain_links, _) = play(&mut EdmRig::new(plain.clone()), &mut Script::new(&request));
                    assert_eq!(rows, rows_of_plain_links);
                }
            }
        }
    }
}

/// Two independent models of the same links: FIFOs by calculation, and multiplexers by events.
/// Reads of one chunk need no /G/, which the first inserts at the cost of what follows and the
/// second at the cost of what is on its way.
#[test]
fn without_frames_shared_links_carry_loaded_reads_as_the_plain_links_do() {
    let load = || uniform(8, 5_000, 60_000.0, 1.0, 200, 5);
    let (mut plain, _) = play(&mut EdmRig::new(cluster(8)), &mut load());
    // Requests that end at the same time may be reported in another order.
    plain.sort_by_key(|row| row.request);
    assert!(plain.iter().any(|row| row.spans.get(SpanKind::SwitchQueue) > Span::ZERO), "nothing ever waits");
    for policy in POLICIES {
        let (mut shared, _) = play(&mut EdmRig::new(with(cluster(8), policy, Vec::new())), &mut load());
        shared.sort_by_key(|row| row.request);
        assert!(shared == plain, "{policy:?}");
    }
}

/// Table 1 of the paper for raw Ethernet, 557.44 ns with 10 ns of fibre a hop, and the frame
/// itself. The frame counts once a hop on the line, and once more in the receiver's buffer when it
/// may have been interleaved.
#[test]
fn a_frame_alone_takes_its_closed_form() {
    let frames = [64, FULL_FRAME, 9_018];
    for (frame, policy) in frames.into_iter().flat_map(|frame| POLICIES.map(|policy| (frame, policy))) {
        let config = with(cluster(2), policy, vec![stream("ip", frame, 1e-6 * frame as f64 / 64.0, 1)]);
        let end = [(Time::ms(400), 0, 1, Operation::Read, 64)];
        let (_, summary) = play(&mut EdmRig::new(config), &mut Script::new(&end));
        let length = blocks_of(frame);
        let in_buffers = if policy == Policy::None { 0 } else { 2 * (length - 1) };
        let closed_form = Span::ps(557_440) + BLOCK * (2 * length + in_buffers);
        assert!(told(&summary, "frames_delivered") > 60.0);
        let mean = told(&summary, "ip_latency_mean_ns");
        assert!((mean - closed_form.as_ns_f64()).abs() < 1e-6, "{policy:?}, {frame} B: {mean} for {closed_form}");
    }
}

#[test]
fn frames_of_a_burst_follow_each_other_at_the_line_rate() {
    for policy in POLICIES {
        let config = with(cluster(2), policy, vec![stream("storage", FULL_FRAME, 1e-4, 3)]);
        let end = [(Time::ms(400), 0, 1, Operation::Read, 64)];
        let (_, summary) = play(&mut EdmRig::new(config), &mut Script::new(&end));
        let frame = frame_blocks(FULL_FRAME as usize - 4);
        let in_buffers = if policy == Policy::None { 0 } else { 2 * (frame.frame - 1) };
        let alone = Span::ps(557_440) + BLOCK * (2 * frame.frame + in_buffers);
        // The first waits for nothing, the second for one frame and its gap, the third for two.
        let mean = (alone + BLOCK * frame.total()).as_ns_f64();
        assert!((told(&summary, "storage_latency_mean_ns") - mean).abs() < 1e-6, "{policy:?}");
    }
}

#[test]
fn strict_preemption_costs_a_read_at_most_one_block_a_hop() {
    for frame in [64, FULL_FRAME, 9_018] {
        let config = saturated(Policy::Strict, frame);
        let (rows, _) = play(&mut EdmRig::new(config.clone()), &mut lone_reads(300, 64));
        let delays = delays(&config, &rows);
        assert!(delays.iter().all(|delay| *delay <= BLOCK * 4), "{frame} B: {:?}", delays.iter().max());
        // On average half a block: the line is never idle.
        assert!((1.0..3.0).contains(&mean_blocks(&delays)), "{frame} B: {}", mean_blocks(&delays));
        assert!(rows.iter().all(Row::adds_up));
    }
}

#[test]
fn fair_preemption_at_most_doubles_the_serialization() {
    for bytes in [8, 64, 256] {
        let config = saturated(Policy::Fair, FULL_FRAME);
        let (rows, _) = play(&mut EdmRig::new(config.clone()), &mut lone_reads(300, bytes));
        let delays = delays(&config, &rows);
        let (request, data) = (read_request_blocks(bytes as u32), response_blocks(bytes as u32));
        // A block for a block; and cut-through data waits for its first turn on the downlink once
        // more.
        let doubled = 2 * request + data;
        assert!(delays.iter().all(|delay| *delay <= BLOCK * (doubled + 1)), "{bytes} B: {:?}", delays.iter().max());
        // The last frame block that a message waits for is the one before its own last; gaps let it
        // through faster.
        let least = (2 * (request - 1) + data - 1) as f64;
        assert!(mean_blocks(&delays) > 0.9 * least, "{bytes} B: {} blocks", mean_blocks(&delays));
        assert!(rows.iter().all(Row::adds_up));
    }
}

/// 2.4: a frame of 1,500 bytes costs up to 120 ns at 100 Gb/s (191 blocks with its headers: 122
/// ns), at each hop.
#[test]
fn without_preemption_a_read_waits_up_to_a_whole_frame_at_each_hop() {
    for (long, short) in [(FULL_FRAME, 1_200), (9_018, 7_000)] {
        // Of two lengths: frames of one keep all lines in step, and a message that waited at one
        // hop waits equally at the next.
        let streams = vec![stream("long", long, 1.0, 1), stream("short", short, 1.0, 1)];
        let config = with(cluster(4), Policy::None, streams);
        let (rows, _) = play(&mut EdmRig::new(config.clone()), &mut lone_reads(600, 64));
        let delays = delays(&config, &rows);
        let longest = delays.iter().copied().max().unwrap();
        assert!(longest <= BLOCK * (4 * blocks_of(long)), "{long} B: {longest}");
        assert!(longest >= BLOCK * (3 * blocks_of(long)), "{long} B: {longest}");
        // Half a frame at each of four hops on average; each length has half of the time.
        let expected = 4.0 * (blocks_of(long) + blocks_of(short)) as f64 / 4.0;
        let mean = mean_blocks(&delays);
        assert!((mean / expected - 1.0).abs() < 0.1, "{long} B: {mean} blocks of {expected}");
        assert!(rows.iter().all(Row::adds_up));
    }
}

#[test]
fn a_read_of_many_chunks_gets_half_the_line_or_all_of_it() {
    let bytes = 16_384;
    for (policy, most) in [(Policy::Strict, 1.1), (Policy::Fair, 2.1)] {
        let config = saturated(policy, FULL_FRAME);
        let (rows, _) = play(&mut EdmRig::new(config.clone()), &mut lone_reads(50, bytes));
        for (row, delay) in rows.iter().zip(delays(&config, &rows)) {
            let slower = 1.0 + delay.ratio(row.spans.get(SpanKind::Serialization));
            assert!((most - 0.2..most).contains(&slower), "{policy:?}: {slower} of the serialization");
            assert!(row.adds_up());
        }
    }
}

/// Memory, storage and IP on a rack of eight.
fn rack(preemption: Policy) -> EdmRigConfig {
    let streams = vec![stream("storage", 9_018, 0.2, 4), stream("ip", FULL_FRAME, 0.15, 1), stream("rpc", 64, 0.05, 1)];
    with(cluster(8), preemption, streams)
}

fn rack_load(bytes: u64) -> workload::Generator {
    // About 0.3 of each link.
    uniform(8, 4_000, 27_000.0 * bytes as f64 / 64.0, 0.5, bytes, 9)
}

#[test]
fn on_a_busy_rack_every_message_and_every_frame_arrives() {
    for policy in POLICIES {
        for bytes in [64, 1_000] {
            let (rows, summary) = play(&mut EdmRig::new(rack(policy)), &mut rack_load(bytes));
            assert!(rows.iter().all(|row| row.outcome == Outcome::Finished && row.adds_up()), "{policy:?}, {bytes} B");
            assert!(rows.iter().all(|row| row.latency() >= row.unloaded));
            assert_eq!(rows.len(), 4_000);
            assert_frames_are_conserved(&summary);
            assert_eq!(told(&summary, "frames_dropped"), 0.0);
            assert!(told(&summary, "frames_delivered") > 100.0);
            assert_eq!(summary.metrics["protocol_violations"] + summary.metrics["unexpected_messages"], 0.0);
        }
    }
}

#[test]
fn the_more_preemption_the_less_memory_waits() {
    let mean = |policy| {
        let (rows, _) = play(&mut EdmRig::new(rack(policy)), &mut rack_load(64));
        rows.iter().map(|row| row.latency().as_ns_f64()).sum::<f64>() / rows.len() as f64
    };
    let [strict, fair, none] = POLICIES.map(mean);
    assert!(strict < fair && fair < none, "{strict} ns, {fair} ns, {none} ns");
    assert!(none > 1.5 * fair, "jumbo frames are in the way of messages that may not preempt them");
}

#[test]
fn offered_background_is_carried() {
    let load = 0.4;
    let config = with(cluster(4), Policy::Fair, vec![stream("ip", FULL_FRAME, load, 1)]);
    let ends = [Time::us(100), Time::ms(4)].map(|at| (at, 0, 1, Operation::Read, 64));
    let (_, summary) = play(&mut EdmRig::new(config), &mut Script::new(&ends));
    // Of each frame and its gap, the bytes between preamble and gap count.
    let expected = 100.0 * load * FULL_FRAME as f64 / (8 * frame_blocks(FULL_FRAME as usize - 4).total()) as f64;
    let carried = told(&summary, "delivered_gbps_per_node");
    assert!((carried / expected - 1.0).abs() < 0.03, "{carried} of {expected} Gb/s");
    assert!((summary.load.busiest_link - load).abs() < 0.05);
}

#[test]
fn a_full_egress_queue_drops_frames_and_says_so() {
    let mut config = with(cluster(4), Policy::Fair, vec![stream("storage", 9_018, 0.8, 32)]);
    config.background.as_mut().unwrap().frames.egress_queue = Bytes::kib(64);
    let end = [(Time::ms(2), 0, 1, Operation::Read, 64)];
    let (rows, summary) = play(&mut EdmRig::new(config), &mut Script::new(&end));
    assert!(told(&summary, "frames_dropped") > 0.0);
    assert_frames_are_conserved(&summary);
    let longest = told(&summary, "longest_egress_queue_bytes");
    assert!((65_536.0 - 9_018.0..=65_536.0).contains(&longest), "{longest}");
    assert_eq!(rows[0].outcome, Outcome::Finished);
}

#[test]
fn the_same_seed_gives_the_same_rows_and_another_does_not() {
    let run = |seed| {
        let mut config = rack(Policy::Fair);
        config.background.as_mut().unwrap().seed = Seed(seed);
        play(&mut EdmRig::new(config), &mut rack_load(64))
    };
    let (rows, summary) = run(1);
    let (again, summary_again) = run(1);
    assert!(rows == again);
    assert_eq!(summary.metrics, summary_again.metrics);
    assert!(rows != run(2).0);
}

#[test]
fn a_backup_plane_carries_the_same_frames_and_takes_over() {
    let plain = play(&mut EdmRig::new(rack(Policy::Fair)), &mut rack_load(64));
    let config = EdmRigConfig { redundant: true, ..rack(Policy::Fair) };
    let both = play(&mut EdmRig::new(config.clone()), &mut rack_load(64));
    assert!(plain.0 == both.0);
    for name in ["frames_sent", "frames_delivered", "frames_under_way", "ip_latency_p99_ns"] {
        assert_eq!(told(&plain.1, name), told(&both.1, name), "{name}");
    }
    let fault = Fault { at: Time::us(5), kind: FaultKind::LinkDown(NodeId(3)) };
    let (rows, summary) = play(&mut EdmRig::new(EdmRigConfig { faults: vec![fault], ..config }), &mut rack_load(64));
    assert!(rows.iter().all(|row| row.outcome == Outcome::Finished && row.adds_up()));
    assert_frames_are_conserved(&summary);
    assert_eq!(told(&summary, "frames_dropped"), 0.0);
}

#[test]
fn without_a_backup_the_frames_of_a_dead_node_are_dropped_and_the_others_go_on() {
    for kind in [FaultKind::NodeDown(NodeId(3)), FaultKind::LinkDown(NodeId(3))] {
        let mut config = EdmRigConfig { faults: vec![Fault { at: Time::us(5), kind }], ..rack(Policy::Fair) };
        config.edm.timeout = Span::us(30);
        let (rows, summary) = play(&mut EdmRig::new(config), &mut rack_load(1_000));
        assert!(told(&summary, "frames_dropped") > 0.0, "{kind:?}");
        assert_frames_are_conserved(&summary);
        let touches_it = |row: &Row| row.source == NodeId(3) || row.target == NodeId(3);
        assert!(rows.iter().all(Row::adds_up), "{kind:?}");
        let others = rows.iter().filter(|row| !touches_it(row));
        assert!(others.into_iter().all(|row| row.outcome == Outcome::Finished), "{kind:?}");
    }
}

/// 4.2.1: on the 25 GbE testbed, reads stay at about 300 ns under interference from IP traffic.
#[test]
fn reads_on_the_testbed_stay_near_300_ns_beside_ip_traffic() {
    let mean_ns = |policy| {
        let config = with(testbed(), policy, vec![stream("ip", FULL_FRAME, 0.5, 1)]);
        let (rows, _) = play(&mut EdmRig::new(config), &mut lone_reads(500, 64));
        let without_serialization = |row: &Row| row.latency() - row.spans.get(SpanKind::Serialization);
        rows.iter().map(|row| without_serialization(row).as_ns_f64()).sum::<f64>() / rows.len() as f64
    };
    let [strict, fair, none] = POLICIES.map(mean_ns);
    assert!((299.52..305.0).contains(&strict), "{strict}");
    assert!((299.52..330.0).contains(&fair), "{fair}");
    assert!(none > 600.0, "half of the time a message meets a frame of 489 ns, at each of four hops: {none}");
}

fn any_policy() -> impl Strategy<Value = Policy> {
    prop_oneof![Just(Policy::Strict), Just(Policy::Fair), Just(Policy::None)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the traffic: every request finishes, no sooner than alone, with spans that sum to
    /// its latency, and no frame is lost or overtaken within its pair.
    #[test]
    fn any_mixture_arrives(
        policy in any_policy(),
        (nodes, gigabits, redundant) in (2u32..6, prop_oneof![Just(25u64), Just(30), Just(100)], any::<bool>()),
        (bytes, reads, gap_ns) in (1u64..3_000, 0.0f64..1.0, 20.0f64..2_000.0),
        streams in proptest::collection::vec((64u64..=9_018, 0.01f64..1.2, 1u32..5), 0..3),
        (chunk, memory_ns, seed) in (prop_oneof![Just(64u64), Just(256), Just(1_024)], 0u64..200, any::<u64>()),
    ) {
        let mut config = EdmRigConfig { rate: Rate::gbps(gigabits), redundant, ..cluster(nodes) };
        config.edm.chunk = Bytes::new(chunk);
        config.memory.latency = Span::ns(memory_ns);
        // Without preemption a saturated line carries one message a frame: requests would be given
        // up.
        config.edm.timeout = Span::ms(50);
        let streams = streams.iter().enumerate();
        let streams = streams.map(|(index, (frame, load, burst))| stream(&index.to_string(), *frame, *load, *burst));
        let config = with(config, policy, streams.collect());
        let mut load = uniform(nodes, 300, gap_ns * 1_000.0, reads, bytes, seed);
        let (rows, summary) = play(&mut EdmRig::new(config), &mut load);
        prop_assert_eq!(rows.len(), 300);
        for row in &rows {
            prop_assert_eq!(row.outcome, Outcome::Finished);
            prop_assert!(row.adds_up());
            prop_assert!(row.latency() >= row.unloaded, "{:?} sooner than alone", row);
        }
        assert_frames_are_conserved(&summary);
        prop_assert_eq!(summary.metrics["protocol_violations"] + summary.metrics["unexpected_messages"], 0.0);
    }
}
