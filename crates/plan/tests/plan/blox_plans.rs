//! Racks of volumes as experiment files: what is filled in, that a printed plan is the plan, and
//! what tells plans apart.

use crate::common;

use crate::common::plan;
use base::{Bytes, Span};
use plan::blox::{Blox, CoordinationName, PolicyName};
use plan::{NoFiles, Plan, Scene, parse, schema};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

const SMALL: &str = "title = \"rack\"\ndesign.name = \"rackblox\"\nrun.requests = 100000\n";
const TABLES: [&str; 9] =
    ["rack", "emulate", "flash", "vssd", "scheduler", "collection", "controller", "membership", "io"];

const EVERY_KEY: &str = r#"
title = "every key"
seed = 7
design.name = "rackblox-software"
[rack]
servers = 6
ssds = 2
clients = 9
rate = "25Gbps"
propagation = "15ns"
host = "2us"
pipeline = "700ns"
recirculation = "1ms"
switch_queue = "1MiB"
scheduling = "fair-queue"
background_load = 0.25
background_burst = "300us"
network = "medium"
network_scale = 1.5
remote_replica = false
remote_delay = "200us"
[emulate]
mode = "delay"
redirects = true
[flash]
preset = "970-pro"
pages_per_block = 256
dies_per_channel = 3
read = ["31us", "43us"]
program = ["190us", "210us"]
erase = "2ms"
channel = "6300Mbps"
read_firmware = "20us"
write_firmware = "3us"
suspension_overhead = "7us"
suspension_limit = 3
victim = "cost-benefit"
hot_cold = true
state = "fragmented"
[flash.steady]
window = 0.5
windows = 4
tolerance = 0.05
windows_max = 30
[vssd]
per_ssd = 4
isolation = "software"
channels = 2
group = 4
capacity = "32GiB"
data = 0.45
write_cache = "3MiB"
write_ack = "dequeued"
flush_above = 0.75
device_depth = 24
rate = 9000
borrow = "512MiB"
swap_batch = 32
swap_wait_max = "150us"
[scheduler]
policy = "deadline"
coordinated = false
read_target = "900us"
write_target = "5ms"
window = 50
[collection]
coordination = "controller"
soft = 0.3
regular = 0.2
stop = 0.4
check_period = "10s"
retries = 5
retry_after = "2ms"
background = false
background_below = 0.55
grain = "die"
idle_alpha = 0.25
idle_threshold = "20ms"
streams = 2
burst = 8
[controller]
period = "50ms"
write_cost = 7
capacity = 120000
[membership]
heartbeat = "5ms"
misses = 7
lease = "25ms"
replace_after = "3s"
resend = "15ms"
replay = "45ms"
fetch_window = 32
client_timeout = "250ms"
client_attempts = 4
client_silence = 5
[io]
write_share = 0.375
write_run = 20.0
addresses = "zipfian"
theta = 0.9
arrivals = "closed"
depth = 12
think = "30us"
assignment = "all"
check_history = true
[run]
duration = "30s"
requests = 500000
warm_up = "2s"
drain_limit = "3s"
[[fault]]
at = "1s"
kind = "node-down"
node = 2
[[fault]]
at = "2s"
kind = "node-up"
node = 2
[[fault]]
at = "3s"
kind = "switch-down"
"#;

fn blox(plan: &Plan) -> &Blox {
    let Scene::Blox(blox) = &plan.scene else { panic!("{:?}", plan.scene) };
    blox
}

fn with(changes: &[(&str, String)]) -> Plan {
    let changes: Vec<(String, String)> = changes.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
    let experiment = parse("rack.toml", SMALL, &NoFiles, &changes).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

fn changed(key: &str, value: &str) -> Plan {
    with(&[(key, value.to_string())])
}

#[test]
fn a_title_a_design_and_an_end_are_the_rack_of_the_paper() {
    let plan = plan(SMALL);
    let blox = blox(&plan);
    assert_eq!((blox.rack.servers, blox.rack.rate, blox.rack.remote_replica), (4, base::Rate::gbps(50), true));
    assert_eq!((blox.collection.soft, blox.collection.regular), (0.35, 0.25));
    assert_eq!((blox.collection.check_period, blox.collection.idle_threshold), (Span::secs(30), Span::ms(30)));
    assert_eq!(
        (blox.scheduler.policy, blox.scheduler.coordinated, blox.scheduler.window),
        (PolicyName::Kyber, true, 100)
    );
    assert_eq!((blox.scheduler.read_target, blox.scheduler.write_target), (Span::us(1_750), Span::ms(4)));
    // 64 GiB for each of two virtual drives on each of four drives: a volume for every two of them.
    assert_eq!((blox.vssd.capacity, blox.io.volumes), (Bytes::kib(64 << 20), 4));
    let data = (64_u64 << 30) as f64 * blox.vssd.data;
    assert_eq!(blox.io.working_set_blocks, data as u64 / 4_096);
}

#[test]
fn each_design_has_its_own_way_to_collect_and_to_schedule() {
    for (design, coordination, coordinated, read_us) in [
        ("rackblox", CoordinationName::Switch, true, 1_750),
        ("rackblox-software", CoordinationName::Controller, true, 1_750),
        ("vdc", CoordinationName::Uncoordinated, false, 750),
    ] {
        let plan = changed("design.name", design);
        assert_eq!(blox(&plan).collection.coordination, coordination, "{design}");
        assert_eq!(blox(&plan).scheduler.coordinated, coordinated, "{design}");
        assert_eq!(blox(&plan).scheduler.read_target, Span::us(read_us), "{design}");
    }
}

#[test]
fn every_key_reaches_the_plan_and_the_printed_plan_is_the_same() {
    let plan = plan(EVERY_KEY);
    let again = common::plan(&plan.to_toml());
    assert_eq!((again.hash(), &again), (plan.hash(), &plan), "{}", plan.to_toml());
    let written: Value = serde_json::to_value(&plan).expect("a plan is JSON");
    let asked: toml::Table = toml::from_str(EVERY_KEY).expect("it is TOML");
    for table in TABLES {
        for (key, value) in asked[table].as_table().expect("a table") {
            let asked = serde_json::to_value(value).expect("it is plain");
            assert_eq!(written[table][key], asked, "{table}.{key}");
        }
    }
    assert_eq!(blox(&plan).faults.len(), 3);
}

#[test]
fn every_key_of_the_schema_is_among_them_and_every_default_is_in_a_plan() {
    let (root, printed) = (schema(), serde_json::to_value(plan(SMALL)).expect("a plan is JSON"));
    let asked: toml::Table = toml::from_str(EVERY_KEY).expect("it is TOML");
    let of_traces = ["trace", "trace_digest", "time_scale", "beyond", "skip_bad", "inversions", "format", "stripe"];
    let of_sans = ["size", "sizes", "footprint", "drive", "job", "job_digest", "imitation"];
    // With another state of the drives than the one that is tried here.
    let of_snapshots = ["snapshot", "snapshot_digest", "used_before"];
    let of_networks = ["network_file", "network_unit", "network_digest"];
    let others = [&["profile", "requests_per_second"][..], &of_traces, &of_sans, &of_snapshots, &of_networks].concat();
    let mut defaults = 0;
    let names = ["Rack", "Emulate", "Flash", "Vssd", "Scheduler", "Collection", "Controller", "Membership", "Io"];
    for (table, name) in TABLES.iter().zip(names) {
        let properties = root["$defs"][format!("{name}File")]["properties"].as_object().expect("a table of the schema");
        for (key, property) in properties {
            let is_written = asked[*table].as_table().expect("a table").contains_key(key);
            assert!(is_written || others.contains(&key.as_str()), "{table}.{key} is not tried");
            let Some(default) = property.get("default") else { continue };
            let is_of_another = printed[table][key].is_null();
            assert!(
                is_of_another || printed[table][key] == *default,
                "{table}.{key}: {} and {default}",
                printed[table][key]
            );
            defaults += u32::from(!is_of_another);
        }
    }
    assert!(defaults > 50, "{defaults}");
}

const RECORDED: &str = "[rack]\nnetwork_file = \"net.txt\"\nnetwork_unit = \"1us\"\nnetwork_scale = 2.0\n";

#[test]
fn a_recorded_network_is_part_of_a_plan_which_plays_it_again() {
    let files = common::files().with("net.txt", "100\n101\n99us\n").with("other.txt", "100\n101\n98us\n");
    let read = |text: &str| parse("rack.toml", text, &files, &[]).map(|it| it.points(None).remove(0).plan);
    let first = read(&format!("{SMALL}{RECORDED}")).unwrap_or_else(|errors| panic!("{errors}"));
    let recorded = blox(&first).recorded_network.as_ref().expect("it has a file");
    assert_eq!(*recorded.delays, [Span::us(100), Span::us(101), Span::us(99)]);
    assert_eq!(read(&first.to_toml()).map(|again| again.hash()), Ok(first.hash()), "{}", first.to_toml());
    let errors = read(&first.to_toml().replace("net.txt", "other.txt")).expect_err("its delays are others");
    assert!(errors.to_string().contains("its delays are others"), "{errors}");
}

/// Another value of a key, in TOML.
fn other(key: &str, value: &toml::Value) -> String {
    match (key, value) {
        ("preset", _) => "p-ssd".into(),
        ("victim", _) => "random".into(),
        ("policy", _) => "fifo".into(),
        ("coordination", _) => "uncoordinated".into(),
        ("scheduling", _) => "priority".into(),
        ("network", _) => "slow".into(),
        ("mode", _) => "label".into(),
        ("write_ack", _) => "dram".into(),
        ("grain", _) => "channel".into(),
        ("addresses", _) => "latest".into(),
        ("assignment", _) => "round-robin".into(),
        ("group", _) => "2".into(),
        (_, toml::Value::Boolean(value)) => (!value).to_string(),
        (_, toml::Value::Integer(value)) => (value - 1).to_string(),
        (_, toml::Value::Float(value)) => format!("{:?}", value * 0.99),
        (_, toml::Value::String(value)) => {
            let digits = value.chars().take_while(char::is_ascii_digit).count();
            let number: u64 = value[..digits].parse().expect("a quantity");
            format!("{}{}", number + 1, &value[digits..])
        }
        ("steady", _) => "{ window = 0.75 }".into(),
        (_, toml::Value::Array(times)) => format!("[{}, \"999us\"]", times[0]),
        other => panic!("{other:?}"),
    }
}

/// Whatever changes what is simulated changes the name of the plan.
#[test]
fn every_value_has_a_say_in_the_hash_and_the_seed_and_the_way_it_is_written_have_none() {
    let base = plan(EVERY_KEY);
    let asked: toml::Table = toml::from_str(EVERY_KEY).expect("it is TOML");
    let mut hashes = BTreeSet::from([base.hash()]);
    let mut tried = 0;
    for table in TABLES {
        for (key, value) in asked[table].as_table().expect("a table") {
            // These say what kind of plan it is, and others go with them.
            if ["isolation", "arrivals", "per_ssd", "suspension_limit", "state", "lease"].contains(&key.as_str()) {
                continue;
            }
            let change = (format!("{table}.{key}"), other(key, value));
            let experiment = parse("rack.toml", EVERY_KEY, &NoFiles, std::slice::from_ref(&change));
            let experiment = experiment.unwrap_or_else(|errors| panic!("{change:?}: {errors}"));
            assert!(hashes.insert(experiment.points(None).remove(0).plan.hash()), "{change:?} changes nothing");
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
    assert_eq!(changed("seed", "99").hash(), plan(SMALL).hash());
    assert_eq!(changed("rack.host", "1000ns").hash(), plan(SMALL).hash());
}

#[test]
fn a_run_waits_as_long_as_a_client_may() {
    let limit = |key, value| changed(key, value).to_toml();
    assert!(plan(SMALL).to_toml().contains("drain_limit = \"2s\""));
    assert!(limit("membership.client_timeout", "1s").contains("drain_limit = \"4s\""));
    assert!(limit("membership.client_timeout", "1ms").contains("drain_limit = \"100ms\""));
    assert!(limit("run.drain_limit", "1ms").contains("drain_limit = \"1ms\""));
}

fn pick(values: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(values).prop_map(str::to_string)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_plan_reads_back_as_itself(
        numbers in (2_u32..=64, 1_u32..=16, 1_u32..=64, 1_u64..1_000_000_000, 0.0_f64..100.0, 0.0_f64..0.95),
        drive in (pick(&["p-ssd", "intel-dc", "optane", "970-pro", "pm9a3", "p3700", "tlc-gen4"]), 8_u32..=512, 0.01_f64..0.5, 0.0_f64..=1.0),
        loads in (0.0_f64..=1.0, 0.011_f64..0.999, pick(&["uniform", "zipfian", "scrambled-zipfian", "latest", "sequential"]), 1_u32..=65_536),
        words in (
            pick(&["rackblox", "rackblox-software", "vdc"]), pick(&["fifo", "deadline", "kyber"]),
            pick(&["fifo", "token-bucket", "fair-queue", "priority"]), pick(&["none", "fast", "medium", "slow"]),
            pick(&["greedy", "cost-benefit", "random"]),
        ),
        flags in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        spans_ps in (1_000_000_u64..1_000_000_000_000, 0_u64..1_000_000_000_000, 1_000_000_u64..3_600_000_000_000_000),
        seed in 0..=i64::MAX as u64,
    ) {
        let has_theta = !["uniform", "sequential"].contains(&loads.2.as_str());
        let mut changes = vec![
            ("seed", seed.to_string()),
            ("rack.servers", (numbers.0 / 2 * 2).to_string()),
            ("rack.ssds", numbers.1.to_string()),
            ("rack.clients", numbers.2.to_string()),
            ("run.requests", numbers.3.to_string()),
            ("rack.network_scale", format!("{:?}", numbers.4)),
            ("rack.background_load", format!("{:?}", numbers.5)),
            ("flash.preset", drive.0),
            ("flash.pages_per_block", drive.1.to_string()),
            ("vssd.data", format!("{:?}", drive.2)),
            ("vssd.used_before", format!("{:?}", drive.3)),
            ("io.write_share", format!("{:?}", loads.0)),
            ("io.addresses", loads.2),
            ("io.depth", loads.3.to_string()),
            ("design.name", words.0),
            ("scheduler.policy", words.1),
            ("rack.scheduling", words.2),
            ("rack.network", words.3),
            ("flash.victim", words.4),
            ("flash.hot_cold", flags.0.to_string()),
            ("scheduler.coordinated", flags.1.to_string()),
            ("collection.background", flags.2.to_string()),
            ("rack.remote_replica", flags.3.to_string()),
            ("scheduler.read_target", format!("{}ps", spans_ps.0)),
            ("rack.recirculation", format!("{}ps", spans_ps.1)),
            ("collection.check_period", format!("{}ps", spans_ps.2)),
        ];
        if has_theta {
            changes.push(("io.theta", format!("{:?}", loads.1)));
        }
        let plan = with(&changes);
        let again = common::plan(&plan.to_toml());
        prop_assert_eq!(again.hash(), plan.hash(), "{}", plan.to_toml());
        prop_assert_eq!(again, plan);
    }

    #[test]
    fn every_profile_reads_back_as_itself(place in 0..workload::storage::PROFILES.len(), rate in 1.0_f64..1e9) {
        let profile = workload::storage::PROFILES[place].name.to_string();
        for arrivals in ["closed", "poisson", "deterministic"] {
            let mut changes = vec![("io.profile", profile.clone()), ("io.arrivals", arrivals.to_string())];
            if arrivals != "closed" {
                changes.push(("io.requests_per_second", format!("{rate:?}")));
            }
            let plan = with(&changes);
            prop_assert_eq!(common::plan(&plan.to_toml()), plan, "{} {}", profile, arrivals);
        }
    }
}

#[test]
fn swaps_are_printed_in_the_order_of_time_and_give_regions_a_batch_more() {
    let tables = "[rack]\nssds = 3\n[[swap]]\nat = \"2s\"\nserver = 3\nssds = [2, 0]\n[[swap]]\nat = \"1s\"\nserver = 0\nssds = [0, 1]\n";
    let with = plan(&format!("{SMALL}{tables}"));
    let swaps: Vec<_> = blox(&with).swaps.iter().map(|swap| (swap.at, swap.server, swap.ssds)).collect();
    assert_eq!(swaps, [(base::Time::secs(1), 0, (0, 1)), (base::Time::secs(2), 3, (2, 0))]);
    assert_eq!(common::plan(&with.to_toml()), with);
    let without = plan(&format!("{SMALL}[rack]\nssds = 3\n"));
    let pages = blox(&without).io.working_set_blocks;
    assert_eq!((blox(&without).region_units(), blox(&with).region_units()), (pages, pages + 64));
    assert_ne!(with.hash(), without.hash());
}
