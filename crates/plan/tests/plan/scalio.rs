//! A key-value store on a box of SSDs as an experiment file: what is filled in, what is refused,
//! and what is warned of.

use crate::common;

use crate::common::{all_are_refused, complaint, plan};
use base::{Bytes, Span};
use plan::scalio::{ProtocolName, Scalio};
use plan::{DesignName, FaultKind, Plan, Scene, schema};
use workload::storage::{Addresses, Arrivals};

const SMALL: &str = "title = 'pairs'\ndesign.name = 'scalio'\nrun.requests = 100\n";

const EVERY_KEY: &str = r#"
title = "every key"
seed = 9
[design]
name = "scalio"
[store]
devices = 5
clients = 20
client_nodes = 4
keys = 1000000
value = "32B"
zone = "8MiB"
cached_keys = 50000
warmed = 0.5
spare = 0.25
keeps_page = false
[rdma]
rate = "100Gbps"
messages_per_second = 100000000
swaps_per_second = 5000000
post = "300ns"
processing = "100ns"
wire = "400ns"
memory_read = "500ns"
memory_write = "200ns"
header = "60B"
offload_commands_per_second = 4000000
offload_submission = "2us"
offload_completion = "3us"
[carrier]
name = "edm"
rate = "25Gbps"
propagation = "11ns"
transceiver = "20ns"
post = "60ns"
completion = "70ns"
memory_latency = "90ns"
memory_bandwidth = "100Gbps"
[cores]
count = 12
network = 4
flash = 6
receive = "700ns"
send = "500ns"
submit = "2us"
complete = "2500ns"
memory = "150ns"
batch = "600ns"
target = "2us"
[scalio]
protocol = "paper"
cache = true
batching = true
slots = 16
batch = 4
idle_flush = "500us"
groups = 5
compact_below = 9
leases = true
lease = "5ms"
retry = "10us"
timeout = "30ms"
attempts = 7
torn_reads = false
volatile_cache = false
hand_over = false
[io]
profile = "ycsb-a"
addresses = "zipfian"
theta = 1.01
arrivals = "closed"
depth = 4
think = "1us"
check_history = true
[run]
requests = 500
[[fault]]
kind = "node-down"
node = 20
at = "1ms"
"#;

fn scalio(plan: &Plan) -> Scalio {
    let Scene::Scalio(scalio) = &plan.scene else { panic!("{:?}", plan.scene) };
    (**scalio).clone()
}

fn with(keys: &str) -> String {
    format!("{SMALL}{keys}\n")
}

fn of(design: &str, keys: &str) -> String {
    with(keys).replace("'scalio'", &format!("'{design}'"))
}

#[test]
fn a_title_and_a_design_are_the_paper_s_box() {
    let plan = scalio(&plan(SMALL));
    assert_eq!(
        (plan.design, plan.store.devices, plan.store.clients, plan.store.keys),
        (DesignName::Scalio, 7, 160, 20_000_000)
    );
    assert_eq!((plan.cores.count, plan.cores.network, plan.cores.flash), (8, 3, 4));
    let options = plan.options.expect("scalio has options");
    assert_eq!((options.protocol, options.slots, options.batch), (ProtocolName::Linearizable, 8, 8));
    assert!(!options.share_waits, "as the paper's clients");
    assert!(plan.leed.is_none() && plan.ditto.is_none() && !plan.check_history);
    assert_eq!(plan.io.arrivals, Arrivals::Closed { depth: 3, think: Span::ZERO });
}

#[test]
fn cores_are_dealt_as_the_paper_deals_them() {
    let dealt = |count: &str| {
        let cores = scalio(&plan(&with(&format!("cores.count = {count}")))).cores;
        (cores.network, cores.flash)
    };
    assert_eq!((dealt("4"), dealt("8"), dealt("16")), ((1, 2), (3, 4), (6, 9)));
}

#[test]
fn rivals_have_their_own_tables() {
    let leed = scalio(&plan(&of("leed", "")));
    assert!(leed.options.is_none() && leed.ditto.is_none());
    assert_eq!(leed.leed.map(|leed| leed.tokens), Some(1_024));
    let ditto = scalio(&plan(&of("leed-ditto", "")));
    assert_eq!((ditto.leed.is_some(), ditto.ditto.map(|ditto| ditto.samples)), (true, Some(5)));
    let bare = scalio(&plan(&of("nvme-of", "")));
    assert!(bare.options.is_none() && bare.leed.is_none());
    assert_eq!((bare.io.volumes, bare.io.block, bare.io.mix.write_share()), (7, Bytes::kib(4), 0.0));
}

#[test]
fn popular_keys_follow_the_law_over_the_store_s_own_keys_unless_the_file_says_otherwise() {
    let addresses = |keys: &str| scalio(&plan(&with(keys))).io.addresses;
    assert_eq!(addresses("io.profile = 'ycsb-a'"), Addresses::Zipfian { theta: 0.99 });
    assert_eq!(addresses("io.profile = 'ycsb-a'\nio.theta = 1.01"), Addresses::Zipfian { theta: 1.01 });
    assert_eq!(addresses("io.profile = 'ycsb-d'"), Addresses::Latest { theta: 0.99 });
    assert_eq!(addresses("io.profile = 'ycsb-d'\nio.theta = 0.8"), Addresses::Latest { theta: 0.8 });
    let scrambled = "io.profile = 'ycsb-a'\nio.addresses = 'scrambled-zipfian'";
    assert_eq!(addresses(scrambled), Addresses::ScrambledZipfian { theta: 0.99 });
}

#[test]
fn clients_and_the_box_stop_and_come_back() {
    let text = with(
        "[[fault]]\nkind = 'node-up'\nnode = 160\nat = '2ms'\n[[fault]]\nkind = 'node-down'\nnode = 160\nat = '1ms'",
    );
    let faults = scalio(&plan(&text)).faults;
    assert!(matches!(faults[0].kind, FaultKind::NodeDown { node } if node.0 == 160));
    assert!(matches!(faults[1].kind, FaultKind::NodeUp { .. }));
}

#[test]
fn every_key_reaches_the_plan_and_the_printed_plan_is_the_same() {
    let keys = "segments = 100000, tokens = 64, hand_over = false";
    let leed = of("leed-ditto", &format!("leed = {{ {keys} }}\nditto.samples = 3\nio.write_share = 0.3"));
    let bare =
        of("nvme-of-offload", "io.arrivals = 'poisson'\nio.requests_per_second = 1000.0\nio.addresses = 'uniform'");
    let bare_of_leases = with("scalio.protocol = 'paper'\nscalio.leases = false");
    let sharing = with("scalio.share_waits = true");
    assert!(scalio(&plan(&sharing)).options.is_some_and(|options| options.share_waits));
    for text in [EVERY_KEY, &leed, &bare, &bare_of_leases, &sharing, SMALL] {
        let plan = plan(text);
        let again = common::plan(&plan.to_toml());
        assert_eq!((again.hash(), &again), (plan.hash(), &plan));
        let written = serde_json::to_value(&plan).expect("a plan is JSON");
        let asked: toml::Table = toml::from_str(text).expect("it is TOML");
        for (table, keys) in asked.iter().filter(|(_, keys)| keys.is_table()) {
            for (key, value) in keys.as_table().into_iter().flatten() {
                assert_eq!(written[table][key], serde_json::to_value(value).expect("it is plain"), "{table}.{key}");
            }
        }
    }
}

#[test]
fn every_key_of_the_schema_is_tried_here() {
    let (root, asked) = (schema(), toml::from_str::<toml::Table>(EVERY_KEY).expect("it is TOML"));
    for (table, name) in [
        ("store", "StoreFile"),
        ("rdma", "RdmaFile"),
        ("carrier", "CarrierFile"),
        ("cores", "CoresFile"),
        ("scalio", "ScalioFile"),
    ] {
        let properties = root["$defs"][name]["properties"].as_object().expect("a table");
        let written = asked[table].as_table().expect("a table");
        // `size` is in the place of `spare`; clients of the paper's protocol share no answer.
        let elsewhere = ["size", "share_waits"];
        let is_there = |key: &&String| written.contains_key(key.as_str()) || elsewhere.contains(&key.as_str());
        let missing: Vec<&String> = properties.keys().filter(|key| !is_there(key)).collect();
        assert_eq!(missing, Vec::<&String>::new(), "{table}");
    }
}

#[test]
fn a_log_of_a_given_size_has_no_spare_and_long_values_are_warned_of() {
    let text = with("store = { size = '192MiB', zone = '16MiB', value = '1MiB', keys = 100, cached_keys = 800 }");
    let plan = plan(&text);
    assert_eq!(scalio(&plan).store.size, Some(Bytes::new(192 << 20)));
    assert!(plan.warnings.iter().any(|warning| warning.contains("every GET reads flash")), "{:?}", plan.warnings);
    let printed = plan.to_toml();
    assert!(printed.contains("size = \"192MiB\"") && !printed.contains("spare"), "{printed}");
    assert_eq!(common::plan(&printed).to_toml(), printed, "it is a file again");
}

#[test]
fn mistakes_are_named_with_their_place_and_what_is_allowed() {
    let cases = [
        (with("store.devices = 0"), "store.devices: 0 is out of range"),
        (
            of("leed", "store.value = '65B'"),
            "store.value: 65B is out of range; allowed is 8B to 64B with the design leed",
        ),
        // A ninth of 4 MiB, less 12 KiB.
        (with("store.value = '453746B'"), "store.value: 453746B is out of range; allowed is a ninth of a zone of 4MiB"),
        (with("store.value = '513MiB'"), "store.value: 513MiB is out of range"),
        (with("store.zone = '129KiB'"), "store.zone: 129KiB is out of range; allowed is a multiple of 4KiB"),
        (with("store.size = '44MiB'"), "store.size: 44MiB is out of range; allowed is whole zones of 4MiB"),
        (with("store.size = '49MiB'"), "store.size: 49MiB is out of range"),
        (with("store = { size = '48MiB', spare = 1.0 }"), "`spare`"),
        (of("leed", "store.zone = '1MiB'"), "`zone` is not valid with the design leed"),
        (with("store.value = 64"), "`64` has no unit"),
        (with("store.clients = 3"), "3 clients cannot be on 5 machines"),
        (with("cores.network = 7"), "7 cores for the network, 1 for SSDs and one of control are more than 8"),
        (with("cores = { network = 4, flash = 4 }"), "more than 8"),
        (with("leed.tokens = 9"), "`leed` is not valid with the design scalio"),
        (of("leed", "carrier.name = 'edm'"), "`carrier` is not valid with the design leed"),
        (with("carrier.post = '1ns'"), "`post` is valid only with name = edm"),
        (with("carrier = { name = 'edm', completion = '2ms' }"), "carrier.completion: 2ms is out of range"),
        (of("leed", "scalio.slots = 4"), "`scalio` is not valid with the design leed"),
        (of("leed", "ditto.samples = 4"), "`ditto` is not valid with the design leed"),
        (of("nvme-of", "leed.tokens = 9"), "`leed` is not valid with the design nvme-of"),
        (of("nvme-of", "store.keys = 9"), "`keys` is not valid with the design nvme-of"),
        (of("nvme-of", "io.profile = 'ycsb-a'"), "`profile` is not valid with the design nvme-of"),
    ];
    all_are_refused(&cases);
}

#[test]
fn mistakes_of_options_and_loads_are_named_too() {
    let cases = [
        (with("scalio.leases = false"), "`leases` is valid only with protocol = paper"),
        (
            with("scalio = { protocol = 'paper', leases = false, lease = '1ms' }"),
            "`lease` is valid only with leases = true, not with false",
        ),
        (
            with("scalio = { batching = false, batch = 4 }"),
            "`batch` and `idle_flush` are not valid with batching = false",
        ),
        (with("scalio.lease = '9s'"), "scalio.lease: 9s is out of range"),
        (with("scalio.slots = 65"), "scalio.slots: 65 is out of range"),
        (with("io.profile = 'ycsb-e'"), "ycsb-e scans, and the store has no order of keys"),
        (with("io.size = '4KiB'"), "`size` is not valid with the design scalio"),
        (with("io.theta = 1.0"), "addresses.theta: 1 is not above 0, up to 4 and not 1"),
        (with("io.arrivals = 'poisson'"), "`requests_per_second` is missing: arrivals = poisson needs it"),
        (
            of("leed", "[[fault]]\nkind = 'node-down'\nnode = 0\nat = '1us'"),
            "faults are not modelled with the design leed",
        ),
        (with("[[fault]]\nkind = 'node-down'\nnode = 161\nat = '1us'"), "161 is out of range; allowed is 0..=160"),
        (with("[[fault]]\nkind = 'switch-down'\nat = '1us'"), "clients and the JBOF stop and come back"),
        (with("[[fault]]\nkind = 'node-down'\nat = '1us'"), "whose JBOF has the number after the last"),
        (with("machine.devices = 3"), "`machine` is not valid with the design scalio"),
        (with("fabric = { nodes = 2, rate = '1Gbps' }"), "`fabric` is not valid with the design scalio"),
        (with("store.kyes = 3"), "unknown key `kyes`, did you mean `keys`?"),
    ];
    all_are_refused(&cases);
    let other = "title = 't'\ndesign.name = 's-direct'\nrun.requests = 5\nstore.devices = 2\n";
    assert!(complaint(other).contains("`store` is not valid with the design s-direct"), "{}", complaint(other));
}

#[test]
fn what_is_legal_and_hardly_meant_is_warned_of() {
    // The file's hundred requests are few, which every plan here says too.
    let warnings = |keys: &str| {
        let plan = plan(&with(keys));
        let others = plan.warnings.iter().filter(|warning| !warning.contains("p99.9 is their largest"));
        others.cloned().collect::<Vec<_>>().join("\n")
    };
    assert_eq!(warnings(""), "");
    let idle = complaint(&with("run.warm_up_requests = 100"));
    assert!(idle.contains("nothing is measured"), "{idle}");
    assert!(warnings("store.cached_keys = 20000000").contains("nothing is ever evicted"));
    assert_eq!(warnings("store.cached_keys = 19999999"), "");
    assert!(warnings("store.warmed = 0.0").contains("those of a cold cache"));
    assert!(warnings("scalio.protocol = 'paper'").contains("is not linearizable"));
    assert!(warnings("scalio = { protocol = 'paper', leases = false }").contains("a mixture of two values"));
    assert_eq!(warnings("scalio = { protocol = 'paper', leases = false, torn_reads = false }"), "");
    assert!(warnings("store = { clients = 10, client_nodes = 1 }").contains("cannot fill a group of 8"));
    assert_eq!(warnings("store = { clients = 19, client_nodes = 1 }"), "");
    let at_once = "store = { clients = 10, client_nodes = 1 }\nscalio.idle_flush = '0ps'";
    assert_eq!(warnings(at_once), "", "no group waits");
}
