//! Files with several mistakes: each is reported once, in the order of lines, and none that only
//! follows from another.

use crate::common::{SMALL, complaints, files};
use plan::parse;

/// The line and the key of each complaint, `8 workload.load`.
fn places(text: &str) -> Vec<String> {
    let place = |said: &String| {
        let (place, rest) = said.strip_prefix("small.toml:").and_then(|said| said.split_once(": ")).expect("a place");
        let key = rest.split_once(": ").map_or("", |(key, _)| key);
        let line = place.split(':').next().expect("a line");
        format!("{line} {}", if key.contains(' ') { "" } else { key }).trim_end().to_owned()
    };
    complaints(text).iter().map(place).collect()
}

#[test]
fn mistakes_of_the_schema_and_of_tables_that_were_read_are_reported_together() {
    let text = "title = 'messages'
fabric = { nodes = 4, rate = '100Gbps', propagation = '2s', kind = 'ring' }
memory = { latency = '5' }
[design]
name = 'dcqcn'
dcqcn = { mark_from = '10KB', mark_all = '9KB' }
[workload]
pattern = 'role-split'
compute = 3
laod = 0.5
[run]
duration = '0s'
drain_limit = '25h'
[[fault]]
at = '1us'
kind = 'node-up'
node = 1
";
    let expected = [
        "2 fabric.kind",
        "2 fabric.propagation",
        "3 memory.latency",
        "6 design.dcqcn.mark_from",
        "10 workload",
        "12 run.duration",
        "13 run.drain_limit",
        "14 fault",
        "16 fault.0.kind",
    ];
    let mut found = places(text);
    found.sort_by_key(|place| place.split(' ').next().and_then(|line| line.parse::<u32>().ok()));
    assert_eq!(found, places(text), "in the order of lines");
    let mut expected = expected.to_vec();
    let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_table_that_cannot_be_read_is_not_missing_and_nothing_is_judged_by_it() {
    // Neither the nodes of faults and patterns, nor EDM's limit, nor the load follow from a rack
    // that is not known.
    let rack = "nodes = 'many'\nrate = '100Gbps'";
    let text = SMALL.replace("nodes = 144\nrate = \"100Gbps\"", rack)
        + "[[fault]]\nat = '1us'\nkind = 'node-down'\nnode = 70000\n";
    let text = text.replace("load = 0.5", "load = 0.5\npattern = 'incast'\ntarget = 70000");
    assert_eq!(places(&text), ["3 fabric.nodes"]);
    let text = SMALL.replace("[fabric]", "[fabrik]");
    assert_eq!(places(&text), ["2"]);
    assert_eq!(places(&SMALL.replace("load = 0.5", "load = 'half'")), ["8 workload.load"]);
    let whole = "title = 't'\ndesign.name = 'edm'\nfabric = 5\nworkload = 6\nrun.requests = 9\n";
    assert_eq!(places(whole), ["3 fabric", "4 workload"]);
}

#[test]
fn what_is_missing_is_reported_beside_what_is_wrong() {
    let text = "title = 't'\ndesign.name = 'dctcp'\nmemory = { latency = '2s' }\nseed = 1\nseeds = [2, 2]\n";
    let said = complaints(text);
    for part in ["`fabric` is missing", "`workload` is missing", "memory.latency", "seed: ", "2 is listed twice"] {
        assert_eq!(said.iter().filter(|line| line.contains(part)).count(), 1, "{part}: {said:#?}");
    }
    assert_eq!(said.len(), 5, "{said:#?}");
}

#[test]
fn a_duplicate_key_and_what_else_is_wrong_are_reported_together() {
    let text = SMALL.replace("nodes = 144", "nodes = 144\nnodes = 145") + "[run]\n";
    let said = complaints(&text.replace("load = 0.5", "load = 11.0"));
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said[0].contains(":4:1: not valid TOML: duplicate key `nodes`"), "{said:#?}");
    assert!(said[1].contains("workload.load: 11 is out of range"), "{said:#?}");
    assert!(said[2].contains("duplicate key `run`"), "{said:#?}");
}

#[test]
fn volumes_report_each_table() {
    let text = "title = 'volumes'
design.name = 'rackblox'
rack = { servers = 3, propagation = '2s' }
flash = { read = ['1us'] }
vssd = { per_ssd = 1, group = 2 }
scheduler = { read_target = '61s' }
collection = { soft = 0.2, regular = 0.3, streams = 9 }
controller = { period = '2h' }
membership = { lease = '50ms' }
io = { profile = 'ycsb-g', time_scale = 2.0 }
run = { requests = 100, warm_up_requests = 100 }
fault = [{ at = '1s', kind = 'node-down', node = 9 }]
swap = [{ at = '1s', server = 9, ssds = [0, 0] }, { at = '25h', server = 0, ssds = [0, 1] }]
";
    let expected = [
        "3 rack.propagation",
        "4 flash.read",
        "5 vssd.group",
        "6 scheduler.read_target",
        "7 collection.soft",
        "8 controller.period",
        "9 membership.lease",
        "10 io.profile",
        "10 io.time_scale",
        "11 run.warm_up_requests",
        "13 swap.1.at",
        "13 swap.0.ssds",
    ];
    let mut found = places(text);
    let mut expected = expected.map(str::to_owned);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    // With a rack, the pairs of its replicas, the fault's node and the swap's server are judged.
    let sound = text.replace(", propagation = '2s'", "");
    let found = places(&sound);
    for place in ["5 vssd.per_ssd", "12 fault.0.node", "13 swap.0.server"] {
        assert!(found.iter().any(|other| other == place), "{place}: {found:?}");
    }
}

#[test]
fn sans_report_each_table_without_a_network_too() {
    let text = "title = 'san'
design.name = 'san'
fabric = { hosts = 4, queue = '1KiB' }
drives = { capacity = '1MiB' }
routing = { period = '1s', hold = '1ms' }
reservation = { burst = '1B' }
scheduling = { queues = 4, weights = [1, 2] }
gimbal = { latency_min = '2ms' }
host = { probe = '2h' }
target = { command_life = '2h' }
wire = { segment = '16MiB' }
io = { imitation = 'oltp', drive = 70000 }
fault = [{ at = '1s', kind = 'link-down', node = 3 }]
";
    let found = places(text);
    for place in [
        "3 fabric",
        "3 fabric.queue",
        "4 drives.capacity",
        "5 routing.hold",
        "6 reservation.burst",
        "7 scheduling.weights",
        "8 gimbal.latency_min",
        "9 host.probe",
        "10 target.command_life",
        "11 wire.segment",
        "12 io.imitation",
        "13 fault.0",
        "13 fault.0.node",
        "1 run",
    ] {
        assert_eq!(found.iter().filter(|other| *other == place).count(), 1, "{place}: {found:#?}");
    }
    assert!(!found.iter().any(|place| place.contains("footprint")), "{found:#?}");
}

#[test]
fn devices_and_pairs_report_each_table() {
    let devices = "title = 'devices'
design.name = 'linux'
machine = { payload_max = '8KiB', root_link = '1bps' }
software = { poll = '1us' }
clients = { rate = '1Gbps' }
task = { kind = 'copy', bytes = '5KiB' }
io = { theta = 0.5 }
run = { duration = '25h' }
";
    let expected = [
        "3 machine.payload_max",
        "3 machine.root_link",
        "4 software.poll",
        "5 clients.rate",
        "6 task.bytes",
        "7 io.theta",
        "8 run.duration",
    ];
    let mut found = places(devices);
    found.sort_unstable();
    assert_eq!(found, expected);
    let pairs = "title = 'pairs'
design.name = 'leed'
store = { clients = 2 }
rdma = { post = '11ms' }
cores = { count = 3, network = 5 }
ditto = {}
io = { profile = 'ycsb-e' }
fault = [{ at = '1s', kind = 'link-down', node = 70000, vertex = 'a' }]
";
    let mut found = places(pairs);
    found.sort_unstable();
    let mut expected = [
        "1 run",
        "3 store.client_nodes",
        "4 rdma.post",
        "5 cores.count",
        "6 ditto",
        "7 io.profile",
        "8 fault",
        "8 fault.0.kind",
        "8 fault.0.vertex",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_sweep_that_is_wrong_hides_neither_the_rest_nor_makes_its_keys_missing() {
    let text = SMALL.replace("load = 0.5\n", "size = '2GiB'\n").replace("nodes = 144", "nodes = 513")
        + "[sweep]\nworkload.load = 0.5\n[memory]\nlatency = '2s'\n";
    assert_eq!(places(&text), ["3 fabric.nodes", "12 workload.load", "14 memory.latency"]);
}

#[test]
fn a_mistake_of_one_point_hides_none_of_another_point_or_of_the_file() {
    let text = format!("{SMALL}[sweep]\nworkload.local_fraction = [0.5, 1.5]\n[memory]\nlatency = '2s'\n");
    let said = complaints(&text);
    let at = |line: usize| said.iter().filter(|said| said.contains(&format!("small.toml:{line}:"))).count();
    assert_eq!((said.len(), at(12), at(14)), (3, 2, 1), "{said:#?}");
}

#[test]
fn a_setting_from_outside_that_is_wrong_does_not_hide_the_file() {
    let settings = [("fabric.nods".to_owned(), "4".to_owned()), ("run.requests".to_owned(), "0".to_owned())];
    let text = format!("{SMALL}[memory]\nlatency = '2s'\n");
    let errors = parse("small.toml", &text, &files(), &settings).expect_err("three mistakes");
    let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said[0].contains(":12:") && said[1].contains("`nods`") && said[2].contains("run.requests"), "{said:#?}");
}

#[test]
fn the_file_of_a_target_reports_each_table_too() {
    let text = "metrics = '127.0.0.1'
log = 'loud'
busy_poll = '2ms'
[limits]
transfer = '5KiB'
[[port]]
address = '4420'
[[subsystem]]
ports = [2]
[[subsystem.namespace]]
block = '768B'
[[subsystem.namespace]]
size = 5
backend = 'file'
";
    let errors = plan::target::parse("target.toml", text).expect_err("it is wrong");
    let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let expected = [
        ":1:11: metrics: ",
        ":2:7: log: ",
        ":3:13: busy_poll: ",
        ":5:12: limits.transfer: ",
        ":7:11: port.0.address: ",
        ":9:10: subsystem.0.ports.0: ",
        ":11:9: subsystem.0.namespace.0.block: ",
        ":13:8: subsystem.0.namespace.1.size: ",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{said} lacks {expected}");
    }
}
