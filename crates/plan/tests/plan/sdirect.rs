//! A machine with devices as an experiment file: what is filled in, what is refused, and what is
//! warned of.

use crate::common;

use crate::common::{all_are_refused, complaint, plan};
use base::{Bytes, Span};
use plan::sdirect::{ByName, SDirect, TaskName};
use plan::{DesignName, Plan, Scene, schema};
use sdirect::baseline::stack::Notice;

const SMALL: &str = "title = 'devices'\ndesign.name = 's-direct'\nrun.requests = 100\n";

const EVERY_KEY_OF_A_NIC: &str = r#"
title = "every key"
seed = 9
[design]
name = "s-direct"
[machine]
devices = 5
preset = "tlc-gen4"
blocks_per_plane = 32
filled = 0.25
commands_per_second = 100000
device_link = "16Gbps"
nic_link = "32Gbps"
root_link = "64Gbps"
payload_max = "128B"
read_max = "256B"
packet_overhead = "20B"
link_latency = "200ns"
memory_latency = "90ns"
memory_bandwidth = "200Gbps"
[nic]
queue_depth = 64
transfer_max = "64KiB"
fifo = "128KiB"
processing = "1us"
commands_max = 1000
grant_timeout = "2ms"
grants_max = 8
[clients]
count = 3
remote = true
rate = "25Gbps"
delay = "3us"
packet = "1KiB"
header = "100B"
loss_percent = 0.5
timeout = "5ms"
attempts = 7
[task]
kind = "replicate"
moved_by = "client"
targets = 3
bytes = "16KiB"
[io]
addresses = "zipfian"
theta = 0.8
arrivals = "closed"
depth = 4
think = "1us"
[run]
requests = 500
"#;

fn sdirect(plan: &Plan) -> SDirect {
    let Scene::SDirect(sdirect) = &plan.scene else { panic!("{:?}", plan.scene) };
    (**sdirect).clone()
}

fn with(keys: &str) -> String {
    format!("{SMALL}{keys}\n")
}

fn of(design: &str, keys: &str) -> String {
    with(keys).replace("s-direct", design)
}

#[test]
fn a_title_and_a_design_are_one_device_and_local_reads() {
    let plan = sdirect(&plan(SMALL));
    assert_eq!((plan.design, plan.machine.devices, plan.clients.remote), (DesignName::SDirect, 1, false));
    assert_eq!((plan.task.kind, plan.task.bytes), (TaskName::ReadWrite, Bytes::kib(4)));
    assert!(plan.nic.is_some() && plan.software.is_none());
    assert_eq!(plan.io.mix.write_share(), 0.0);
}

#[test]
fn software_has_costs_of_its_own_kind() {
    let stack = |design: &str| sdirect(&plan(&of(design, "machine.devices = 2"))).software.expect("it is software");
    let (linux, spdk) = (stack("linux"), stack("spdk"));
    assert_eq!((linux.cores, linux.batch, spdk.cores, spdk.batch), (8, 1, 2, 128));
    assert!(
        matches!(linux.notice, Notice::Interrupt { context_switch, threshold: 1, .. } if context_switch == Span::ns(1_400))
    );
    assert!(matches!(spdk.notice, Notice::Poll { .. }));
}

#[test]
fn every_key_reaches_the_plan_and_the_printed_plan_is_the_same() {
    let software = of(
        "linux",
        "[software]\ncores = 3\nqueue_depth = 9\nsubmission = '3us'\ndoorbell = '1us'\ncompletion = '2us'\nbatch = 4\nbatch_time = '7us'\n\
         interrupt = '1us'\ncontext_switch = '5us'\ncoalesce = 6\ncoalesce_time = '20us'",
    );
    let polled = of(
        "spdk",
        "software.poll = '1us'\nio.write_share = 0.3\nio.arrivals = 'poisson'\nio.requests_per_second = 1000.0",
    );
    for text in [EVERY_KEY_OF_A_NIC, &software, &polled, SMALL] {
        let plan = plan(text);
        let again = common::plan(&plan.to_toml());
        assert_eq!((again.hash(), &again), (plan.hash(), &plan));
        let written = serde_json::to_value(&plan).expect("a plan is JSON");
        let asked: toml::Table = toml::from_str(text).expect("it is TOML");
        for (table, keys) in &asked {
            for (key, value) in keys.as_table().into_iter().flatten() {
                assert_eq!(written[table][key], serde_json::to_value(value).expect("it is plain"), "{table}.{key}");
            }
        }
    }
}

#[test]
fn every_key_of_the_schema_is_tried_here() {
    let (root, asked) = (schema(), toml::from_str::<toml::Table>(EVERY_KEY_OF_A_NIC).expect("it is TOML"));
    for (table, name) in
        [("machine", "MachineFile"), ("nic", "NicFile"), ("clients", "ClientsFile"), ("task", "TaskFile")]
    {
        let properties = root["$defs"][name]["properties"].as_object().expect("a table");
        let written = asked[table].as_table().expect("a table");
        let missing: Vec<&String> = properties.keys().filter(|key| !written.contains_key(key.as_str())).collect();
        assert_eq!(missing, Vec::<&String>::new(), "{table}");
    }
}

#[test]
fn mistakes_are_named_with_their_place_and_what_is_allowed() {
    let cases = [
        (with("machine.devices = 0"), "machine.devices: 0 is out of range"),
        (with("machine.preset = 'optane'"), "machine.preset: a machine's devices are flash here"),
        (
            with("machine.blocks_per_plane = 8"),
            "machine.blocks_per_plane: the 8 blocks of a die, less 3.0 that collection keeps empty, leave 1.2 blocks of spare space at an over-provisioning of 30 %, and 2.0 are the least with which collection works as asked: at least 12 blocks a plane or more over-provisioning are needed",
        ),
        (
            with("machine.preset = '970-pro'\nmachine.blocks_per_plane = 33"),
            "machine.blocks_per_plane: the 33 blocks of a die, less 3.0 that collection keeps empty, leave 2.0 blocks",
        ),
        (with("machine.root_link = 5"), "machine.root_link"),
        (with("nic.fifo = '64KiB'"), "nic.fifo: a FIFO of 64KiB does not hold a transfer of 128KiB"),
        (with("nic.transfer_max = '5KiB'"), "nic.transfer_max: 5KiB is out of range; allowed is a multiple of 4KiB"),
        (with("software.cores = 2"), "`software` is not valid with the design s-direct"),
        (of("linux", "nic.queue_depth = 2"), "`nic` is not valid with the design linux"),
        (of("linux", "software.poll = '1us'"), "`poll` is not valid with the design linux"),
        (of("spdk", "software.coalesce = 2"), "`coalesce` is not valid with the design spdk"),
        (with("clients.rate = '10Gbps'"), "`rate` is valid only with remote = true, not with false"),
        (with("task.kind = 'copy'"), "2 devices are needed, and the machine has 1"),
        (
            of("linux", "task.kind = 'copy'\nmachine.devices = 2\ntask.moved_by = 'nic'"),
            "the design linux has no commands between devices",
        ),
        (
            with("task.kind = 'copy'\nmachine.devices = 2\ntask.moved_by = 'client'"),
            "data go through a client only with clients.remote = true",
        ),
        (with("task.moved_by = 'nic'"), "`moved_by` is valid only with kind = copy"),
        (with("task.targets = 2"), "`targets` is valid only with kind = replicate"),
        (with("task.bytes = '5KiB'"), "task.bytes: 5KiB is out of range"),
        (with("io.profile = 'ycsb-a'"), "`profile` is not valid with the design s-direct"),
        (with("io.theta = 0.8"), "`theta` is valid only with addresses = zipfian, scrambled-zipfian or latest"),
        (with("io.arrivals = 'poisson'"), "`requests_per_second` is missing: arrivals = poisson needs it"),
        (
            with("task.kind = 'add-write'\nio.write_share = 0.5"),
            "`write_share` is valid only with task.kind = read-write",
        ),
        (with("fabric = { nodes = 2, rate = '1Gbps' }"), "`fabric` is not valid with the design s-direct"),
        (with("[[fault]]\nkind = 'switch-down'\nat = '1us'"), "`fault` is not valid with the design s-direct"),
        (with("machine.devics = 3"), "unknown key `devics`, did you mean `devices`?"),
    ];
    all_are_refused(&cases);
    let other = "title = 't'\ndesign.name = 'rackblox'\nrun.requests = 5\nmachine.devices = 2\n";
    assert!(complaint(other).contains("`machine` is not valid with the design rackblox"), "{}", complaint(other));
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
    let open = "io.arrivals = 'poisson'\nio.requests_per_second = 460000.0";
    assert!(warnings(open).contains("more than the devices' controllers begin"), "{}", warnings(open));
    assert_eq!(warnings(&open.replace("460000", "459999")), "");
    let remote =
        "clients.remote = true\nclients.rate = '1Gbps'\nio.arrivals = 'poisson'\nio.requests_per_second = 29848.0";
    assert!(warnings(remote).contains("the network is overloaded"), "{}", warnings(remote));
    assert_eq!(warnings(&remote.replace("29848", "29847")), "");
    let idle = complaint(&with("run.warm_up_requests = 100"));
    assert!(idle.contains("nothing is measured"), "{idle}");
    assert_eq!(warnings("run.warm_up_requests = 99"), "");
}

#[test]
fn who_moves_data_follows_from_the_design() {
    let by = |text: &str| sdirect(&plan(text)).task.moved_by;
    let copy = "task.kind = 'copy'\nmachine.devices = 2\nclients.remote = true";
    assert_eq!((by(&with(copy)), by(&of("linux", copy))), (ByName::Nic, ByName::Client));
}
