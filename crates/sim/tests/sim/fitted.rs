//! A fitted drive works in every scene that has drives. The table that `rackweave fit` writes is
//! accepted as it is, and latency is the fitted drive's.

use plan::NoFiles;
use record::Summary;
use sim::drive::Unobserved;
use sim::{RunOptions, run};

const DEVICES: &str = "
[design]
name = 's-direct'
[machine]
blocks_per_plane = 64
[io]
depth = 1
[run]
requests = 400
";
const PAIRS: &str = "
[design]
name = 'nvme-of'
[store]
devices = 2
clients = 1
client_nodes = 1
[io]
depth = 1
[run]
requests = 1000
";
const SAN: &str = "
[design]
name = 'san-plain'
[fabric]
kind = 'single-switch'
hosts = 1
targets = 1
[drives]
per_target = 1
capacity = '256MiB'
MODEL
[io]
write_share = 0.0
depth = 1
[run]
requests = 400
";
const VOLUMES: &str = "
[design]
name = 'vdc'
[rack]
servers = 2
clients = 1
network = 'none'
remote_replica = false
[vssd]
per_ssd = 1
capacity = '1GiB'
[io]
write_share = 0.0
depth = 1
[run]
requests = 400
";

/// What `rackweave fit` writes, with reads of `read_us` and programs of 400 us.
fn fitted(read_us: u32) -> String {
    format!(
        "
[flash]
preset = 'tlc-gen4'
dies_per_channel = 4
read = ['{read_us}us', '{read_us}us', '{read_us}us']
program = ['400us', '400us', '400us']
channel = '9.6Gbps'
read_firmware = '5us'
write_firmware = '5us'
[fit]
version = '0.1.0'
state = 'steady'
fitted = ['array-read']
held_out = []
used_error_mean = 0.001
used_error_largest = 0.002
[[fit.input]]
file = 'fio.json'
sha256 = '00'
fio = 'fio-3.36'
"
    )
}

fn play(text: &str) -> Summary {
    let text = format!("title = 'fitted'\nseed = 1\n{text}");
    let experiment =
        plan::parse("fitted.toml", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let plan = experiment.points(None).remove(0).plan;
    let printed = plan.to_toml();
    let again =
        plan::parse("printed.toml", &printed, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}\n{printed}"));
    assert_eq!(again.points(None).remove(0).plan.hash(), plan.hash(), "a printed plan is the plan\n{printed}");
    let mut rows: Vec<record::Row> = Vec::new();
    run(&plan, &RunOptions::default(), &mut rows, &mut Unobserved).unwrap_or_else(|error| panic!("{error}")).summary
}

/// The mean latency of reads, in microseconds.
fn read_us(text: &str) -> f64 {
    let summary = play(text);
    summary.latency_ns.get("read").unwrap_or_else(|| panic!("{:?}", summary.latency_ns.keys())).mean / 1e3
}

#[test]
fn a_fitted_drive_reads_as_slowly_as_it_does_in_every_scene_with_drives() {
    let whole = SAN.replace("MODEL", "model = 'whole'\nstate = 'fragmented'");
    let quick = SAN.replace("MODEL", "model = 'quick'");
    for scene in [DEVICES, PAIRS, VOLUMES, whole.as_str(), quick.as_str()] {
        let [fast, slow] = [60, 260].map(|read| read_us(&format!("{scene}{}", fitted(read))));
        assert!((slow - fast - 200.0).abs() < 10.0, "{fast} us and {slow} us with 200 us more\n{scene}");
    }
}

#[test]
fn a_preset_that_two_tables_name_must_be_one() {
    let text = format!("title = 'two'\n{DEVICES}{}", fitted(60)).replace("[machine]", "[machine]\npreset = 'p3700'");
    let said = plan::parse("two.toml", &text, &NoFiles, &[]).unwrap_err().to_string();
    assert!(said.contains("machine.preset: preset = p3700 here, and tlc-gen4 in [flash]"), "{said}");
}

#[test]
fn a_device_that_is_fragmented_starts_at_the_amplification_that_it_keeps() {
    let scene = DEVICES.replace("400", "60000").replace("blocks_per_plane = 64", "blocks_per_plane = 24\nfilled = 1.0");
    let scene = scene.replace("depth = 1", "depth = 32\nwrite_share = 1.0");
    let flash = "preset = 'tlc-gen4'\ndies_per_channel = 1\npages_per_block = 24\nstate = 'fragmented'\n";
    let fragmented = play(&format!("{scene}\n[flash]\n{flash}")).metrics;
    // Greedy victims of 96 units, 7 % of spare space.
    let closed = 7.4;
    let amplification = fragmented["device_write_amplification"];
    assert!((amplification / closed - 1.0).abs() < 0.05, "{amplification}");
    assert!(fragmented["device_erases"] > 0.0 && fragmented["device_collection_ms"] > 0.0, "{fragmented:?}");
    // TBW of 1.07 and the reserve times the capacity, and 3,000 erases.
    let dwpd = fragmented["device_endurance_dwpd_5_years"] * 365.0 * 5.0 * amplification / 3_000.0;
    assert!((1.07..1.3).contains(&dwpd), "{dwpd}");
}
