//! Values that no slot has room for, in logs of a given size.

use base::{Bytes, Operation, Span};
use hardware::Verb;
use hardware::ssd::presets::samsung_970_pro_quick;
use plan::{Plan, Scene};
use record::{Row, SpanKind, Summary};
use scalio::SECTOR_BYTES;
use sim::drive::Unobserved;
use sim::{RunOptions, run};

/// An NVMe-oF command: its entry of 64 B and the address of the buffer.
const COMMAND: Bytes = Bytes::new(80);
/// A read of memory: address, key and length.
const READ: Bytes = Bytes::new(16);

fn plan(text: &str) -> Plan {
    let experiment = plan::parse("values.toml", text, &plan::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

fn play(text: &str, wire_check: bool) -> (Summary, Vec<Row>) {
    let mut rows: Vec<Row> = Vec::new();
    let options = RunOptions { wire_check, ..RunOptions::default() };
    let outcomes = run(&plan(text), &options, &mut rows, &mut Unobserved).unwrap_or_else(|error| panic!("{error}"));
    (outcomes.summary, rows)
}

/// One client with one request at a time, on one SSD whose keys are alone in their blocks.
fn lone(value: u32, more: &str) -> String {
    format!(
        "title = 'values'\ndesign.name = 'scalio'\n\
         store = {{ devices = 1, clients = 1, client_nodes = 1, keys = 20, cached_keys = 100000, value = '{value}B', \
         zone = '16MiB', size = '512MiB', keeps_page = false }}\n\
         io = {{ depth = 1, addresses = 'uniform', think = '10ms', {more} }}\n\
         run = {{ requests = 200, warm_up_requests = 0 }}\n"
    )
}

/// What the adapters, the network and the SSD take for a read of so many sectors.
fn offloaded(scalio: &plan::scalio::Scalio, sectors: u32) -> Span {
    let (adapter, offload) = (scalio.rdma.adapter, scalio.rdma.offload);
    let bytes = Bytes::new((sectors * SECTOR_BYTES).into());
    let drive = samsung_970_pro_quick(Bytes::kib(1 << 20));
    let flash = drive.page_read + drive.read.of(bytes) + drive.link.rate.span_of(bytes) + drive.link.command;
    let back = adapter.rate.span_of(adapter.header + bytes) + adapter.wire;
    adapter.unloaded_message(COMMAND) + offload.submission + flash + offload.completion + back
}

#[test]
fn a_lone_get_of_a_long_value_takes_its_block_its_segment_and_all_sectors_of_its_record() {
    // A record's header and the page's are 56 B. Lengths above 255 B are listed in steps of a 32nd:
    // from 2,048 B on of 64 B. So a value of 4,096 B takes 9 sectors, and one of 4,480 B the last
    // that 9 sectors hold.
    for (value, sectors) in [(65, 1), (1_000, 3), (4_096, 9), (4_480, 9), (4_481, 10), (100_000, 197)] {
        assert_eq!(scalio::page_sectors(value), sectors, "{value} B");
        let text = format!("{}scalio.cache = false\n", lone(value, "write_share = 0.0"));
        let plan = plan(&text);
        let Scene::Scalio(scalio) = &plan.scene else { panic!("{:?}", plan.scene) };
        let block = Bytes::new(scalio::layout::block_bytes(0) as u64);
        let look = scalio.rdma.adapter.unloaded(Verb::Read, READ, block);
        let alone = look + offloaded(scalio, 1) + offloaded(scalio, sectors);
        let (summary, rows) = play(&text, true);
        assert_eq!(summary.counts.finished, 200);
        for row in &rows {
            assert_eq!((row.latency(), row.bytes.count()), (alone, value.into()), "{value} B: {row:?}");
            assert_eq!(row.spans.total(), row.latency());
        }
    }
}

#[test]
fn a_long_value_is_in_no_slot_and_a_short_one_is() {
    for (value, is_short) in [(64, true), (65, false)] {
        let (summary, _) = play(&lone(value, "write_share = 0.0"), true);
        let hits = summary.metrics["cache_hit_ratio"];
        assert_eq!(hits > 0.5, is_short, "{value} B: {hits}");
        assert_eq!(summary.metrics["ssd_reads_per_operation"] == 2.0, !is_short, "{value} B");
    }
}

/// A lone update reads and writes the same for a value of any length, and one sector more takes as
/// long as it takes on the wire and to the SSD.
#[test]
fn a_sector_more_takes_a_lone_set_the_time_of_its_transfers() {
    let first = |value| {
        let (summary, rows) = play(&lone(value, "write_share = 1.0"), true);
        assert_eq!(summary.counts.finished, 200);
        assert!(rows.iter().all(|row| row.operation == Operation::Write && row.adds_up()));
        rows[0].latency()
    };
    let (less, more) = (first(4_480), first(4_481));
    assert!(more > less && more - less < Span::us(1), "{less} and {more}");
}

#[test]
fn stores_of_long_values_are_linearizable_are_compacted_and_change_nothing_on_the_wire() {
    let text = "title = 'values'\ndesign.name = 'scalio'\n\
        store = { devices = 2, clients = 8, client_nodes = 2, keys = 300, cached_keys = 800, value = '20000B', \
        zone = '1MiB', size = '24MiB' }\n\
        scalio = { idle_flush = '0ps', groups = 4, compact_below = 6 }\n\
        io = { profile = 'ycsb-a', depth = 2, check_history = true }\n\
        run = { requests = 6000, warm_up_requests = 0 }\n";
    let (summary, rows) = play(text, false);
    assert_eq!((summary.counts.finished, summary.counts.rejected), (6_000, 0), "{:?}", summary.warnings);
    assert_eq!(summary.metrics["history_violations"], 0.0);
    assert!(rows.iter().all(Row::adds_up));
    assert!(rows.iter().all(|row| row.spans.get(SpanKind::Unattributed) == Span::ZERO));
    // 3,000 updates of 20 KB are 60 MB, and there are 48 MiB.
    assert!(summary.metrics["zones_reclaimed"] > 10.0, "{:?}", summary.metrics);
    assert!(rows == play(text, true).1);
    let full = text.replace("keys = 300", "keys = 2000");
    let refused = run(&plan(&full), &RunOptions::default(), &mut Vec::new(), &mut Unobserved).err().expect("no room");
    assert!(refused.to_string().contains("store.size"), "{refused}");
}
