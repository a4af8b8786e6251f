//! SANs as experiment files: what is filled in, that a printed plan is the plan, and what tells
//! plans apart.

use crate::common::{Memory, plan};
use base::{Bytes, Rate, Span};
use plan::san::{San, SanLoad, SanPart, Shape};
use plan::{NoFiles, Plan, parse};
use topology::VertexKind;

const SMALL: &str = r#"title = "san"
design.name = "san"
[fabric]
kind = "torus"
dimensions = [2, 2]
hosts = 4
[run]
requests = 10000
"#;

fn with(tables: &str) -> String {
    format!("{SMALL}{tables}\n")
}

fn san(plan: &Plan) -> &San {
    plan.san().expect("a SAN was asked for")
}

/// Parses what a plan prints.
fn again(plan: &Plan) -> Plan {
    let text = plan.to_toml();
    let again = parse("again.toml", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    again.points(None).remove(0).plan
}

#[test]
fn the_least_file_is_a_whole_plan_with_the_papers_drives_and_prices() {
    let plan = plan(SMALL);
    let san = san(&plan);
    assert_eq!(san.fabric.graph.of_kind(VertexKind::Target).count(), 4);
    assert_eq!((san.drives.per_target, san.drives.preset.drive()), (4, plan::blox::PresetName::Pm9a3.drive()));
    assert_eq!((san.prices.switch, san.prices.switchless_adapter), (23_000.0, 2_600.0));
    assert_eq!(san.fabric.passing.adapter_latency, Span::ns(1_400));
    assert!(san.reservation.is_some() && san.routing.is_symmetric && !san.check_write_order);
    let SanLoad::Requests { config, .. } = &san.io.load else { panic!("{:?}", san.io.load) };
    assert_eq!((config.clients, config.volumes), (4, 16));
}

/// Paper, 5.1: four ports of 100 Gb/s a node, here as cables and there as one teamed pipe.
#[test]
fn a_node_has_the_same_bandwidth_in_both_architectures() {
    let switchless = plan(SMALL);
    let text = SMALL.replace("\"torus\"", "\"single-switch\"").replace("dimensions = [2, 2]", "trunk = 4\ntargets = 4");
    let switched = plan(&text);
    let rate_of = |plan: &Plan| -> Rate {
        let graph = &san(plan).fabric.graph;
        let target = graph.named("t0").unwrap();
        Rate::bps(graph.hops(target).iter().map(|hop| graph.link(hop.channel.link()).rate.as_bps()).sum())
    };
    assert_eq!((rate_of(&switchless), rate_of(&switched)), (Rate::gbps(400), Rate::gbps(400)));
    let Shape::Config { config } = &san(&switchless).fabric.shape else { panic!("no file was given") };
    assert_eq!(config.ports.adapter, 5, "four to its neighbours and one to a host");
}

#[test]
fn without_the_techniques_each_can_be_turned_on_alone() {
    let plain = SMALL.replace("\"san\"\n[", "\"san-plain\"\n[");
    let plan_of = |tables: &str| plan(&format!("{plain}{tables}\n"));
    let off = plan_of("");
    assert!(san(&off).reservation.is_none() && !san(&off).routing.is_symmetric && !san(&off).routing.has_header);
    let routed = plan_of("[routing]\npolicy = \"isr\"");
    assert!(san(&routed).reservation.is_none() && san(&routed).routing.is_symmetric);
    let booked = plan_of("[routing]\nsymmetric = true\n[reservation]\non = true");
    assert!(san(&booked).reservation.is_some());
    assert_eq!(san(&booked).routing.policy, san(&off).routing.policy);
    let queued = plan_of("[scheduling]\npolicy = \"storage-driven\"");
    assert_ne!(san(&queued).scheduling, san(&off).scheduling);
    let hashes = [&off, &routed, &booked, &queued].map(Plan::hash);
    assert_eq!(hashes.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn architecture_and_techniques_are_axes_of_one_sweep() {
    let text = format!(
        "{SMALL}{}",
        r#"
[sweep]
"reservation.on" = [true, false]
"design.name" = ["san", "san-plain"]
"routing.symmetric" = [true]
[[sweep.axis]]
name = "architecture"
[[sweep.axis.points]]
label = "switched"
set = { "fabric.kind" = "single-switch", "fabric.trunk" = 4, "fabric.targets" = 4 }
[[sweep.axis.points]]
label = "switchless"
set = { "fabric.dimensions" = [2, 2] }
"#
    );
    let text = text.replace("dimensions = [2, 2]\nhosts", "hosts");
    let experiment = parse("sweep.toml", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(experiment.points(None).len(), 8);
}

const EVERY_KEY: &str = r#"
title = "every key"
seed = 7
design.name = "san-plain"
[fabric]
kind = "dragonfly"
routers = 3
global_cables = 3
groups = 9
hosts = 9
targets = 20
placement = "packed"
switch_ports = 12
adapter_ports = 12
endpoint_ports = 3
rate = "25Gbps"
board_rate = "333Gbps"
trunk = 2
fabric_cables = 2
endpoint_cables = 2
endpoint_length = "3m"
near_length = "4m"
far_length = "50m"
adapter_latency = "1us"
adapter_gap = "60ns"
switch_latency = "2us"
board_latency = "3us"
detection = "4us"
queue = "100KiB"
mtu = "9KB"
[drives]
per_target = 3
preset = "pm9a3"
state = "fragmented"
model = "quick"
capacity = "1GiB"
[host]
send = "1us"
complete = "2us"
per_4_kib = "3us"
target_receive = "4us"
target_send = "5us"
credits = true
retry = "quiesce"
quiesce_wait = "1s"
probe = "5ms"
timeout = "7ms"
sends = 5
back_off = "6us"
back_off_max = "2ms"
suspect = "9ms"
queue_entries = 65
waiting_max = 1000
[target]
policy = "gimbal"
flights_max = 1234
command_life = "3ms"
packet_life = "4ms"
[wire]
transport = "unpaced"
tcp_options = 0
segment = "3KiB"
in_capsule = "8KiB"
host_data = "64KiB"
controller_data = "32KiB"
ready = "16KiB"
success_flag = true
fast_retransmit = false
header_digest = true
data_digest = true
[routing]
policy = "ecmp-io"
symmetric = true
header = true
ewma_weight = 77
ecn_threshold = "unlimited"
mark_answers = true
stretch = 3
stale_after = "1ms"
candidates = 4
period = "5ms"
hold = "11ms"
trigger_gap = "70us"
horizon = "best-other"
[reservation]
on = true
estimates = [["4KiB", "1Gbps"], ["64KiB", "2Gbps"]]
over_commitment = [[0.5, 0.75], [0.0, 0.125]]
limit = 0.75
conservative = true
fills_at_booked = true
burst = "1MiB"
classes = 12
timeout = "3ms"
[scheduling]
policy = "storage-driven"
queues = 4
weights = [9, 3, 1]
strict = false
credit_quantum = 3
rank_max = 7
unknown_credit = 5
read_rank = 2
[gimbal]
latency_max = "2ms"
latency_min = "200us"
latency_shift = 2
threshold_shift = 5
underused_factor = 9
rate_initial = "7Gbps"
rate_min = "1Gbps"
rate_max = "9Gbps"
bucket_max = "512KiB"
sample_bytes = "8MiB"
cost_max_halves = 20
cost_step_halves = 2
cost_period = "50ms"
cost_is_as_released = true
quantum = "64KiB"
slot_bytes = "32KiB"
slots = 4
credit_initial = 16
waiting_max = 99
[io]
write_share = 0.25
addresses = "uniform"
arrivals = "poisson"
requests_per_second = 12345.0
drive = 3
size = "8KiB"
footprint = "512MiB"
[prices]
switched_adapter_ports = 3
switched_adapter = 1.5
switch_ports = 48
switch = 2.5
switchless_adapter_ports = 5
switchless_adapter = 3.5
cable = 4.5
cable_metre = 5.5
[check]
write_order = false
[run]
requests = 5000
duration = "1s"
warm_up_requests = 10
drain_limit = "2s"
[[fault]]
at = "1ms"
kind = "link-down"
ends = ["a0", "a1"]
[[fault]]
at = "2ms"
kind = "adapter-down"
vertex = "a5"
[[fault]]
at = "3ms"
kind = "drive-down"
drive = 59
[[fault]]
at = "4ms"
kind = "node-up"
vertex = "t3"
"#;

#[test]
fn a_printed_plan_is_the_plan() {
    let by = |transport: &str| format!("{SMALL}\n[wire]\ntransport = \"{transport}\"\n");
    let paced = by("dcqcn+pfc");
    for text in [
        SMALL,
        EVERY_KEY,
        &SMALL.replace("\"san\"\n[", "\"san-plain\"\n["),
        &by("dctcp"),
        &paced,
        &format!("{paced}timeout_min = \"3ms\"\n[wire.dcqcn]\npreset = \"hpcc\"\ngain = 0.25\n"),
        &format!("{paced}[wire.dcqcn]\npause_above = \"1MB\"\nresume_below = \"7KB\"\nhyper_bps = 77\n"),
    ] {
        let plan = plan(text);
        assert_eq!(again(&plan), plan);
        assert_eq!(again(&plan).hash(), plan.hash());
    }
}

#[test]
fn every_key_is_heard() {
    let plan = plan(EVERY_KEY);
    let san = san(&plan);
    let SanLoad::Requests { config, requests_per_second } = &san.io.load else { panic!("{:?}", san.io.load) };
    assert_eq!(*requests_per_second, Some(12_345.0));
    assert_eq!((config.block, config.working_set()), (Bytes::kib(8), Bytes::kib(512 << 10)));
    assert_eq!(san.faults.len(), 4);
    // Two cables between neighbours.
    assert!(matches!(&san.faults[0].part, SanPart::Links(links) if links.len() == 2));
    assert_eq!(san.faults[2].part, SanPart::Drive(59));
    assert!(san.faults[3].is_repair && !san.faults[2].is_repair);
    let text: toml::Table = toml::from_str(EVERY_KEY).unwrap();
    let printed: toml::Table = toml::from_str(&plan.to_toml()).unwrap();
    for table in [
        "fabric",
        "drives",
        "host",
        "target",
        "wire",
        "routing",
        "reservation",
        "scheduling",
        "gimbal",
        "io",
        "prices",
        "check",
    ] {
        for (key, value) in text[table].as_table().unwrap() {
            assert_eq!(printed[table].get(key), Some(value), "{table}.{key}");
        }
    }
}

/// The thresholds follow the rate of hosts' links, as those of the rival; a ring of four may
/// deadlock.
#[test]
fn flow_control_has_the_rivals_defaults_and_warns_of_circles() {
    let by = |rate: u64, nodes: u32| {
        plan(&format!(
            "title = \"own\"\ndesign.name = \"san-plain\"\nrun.requests = 100\nwire.transport = \"dcqcn+pfc\"\n\
             fabric = {{ kind = \"ring\", nodes = {nodes}, hosts = 2, rate = \"{rate}Gbps\" }}\n"
        ))
    };
    for (rate, mark_from) in [(100, 12_500), (40, 5_000)] {
        let plan = by(rate, 3);
        let stream = san(&plan).host.stream.expect("it has one");
        let dcqcn = stream.dcqcn().expect("it is paced");
        assert_eq!(dcqcn.mark_from, Bytes::new(mark_from));
        assert!((stream.timeout_min.as_ns_f64() - 67_108_864.0).abs() < 1.0);
        assert!(!plan.warnings.iter().any(|warning| warning.contains("deadlock")), "{:?}", plan.warnings);
    }
    let warned = by(100, 4).warnings.iter().any(|warning| {
        warning.starts_with("priority flow control may deadlock here: packets take links that make a circle (a")
    });
    assert!(warned);
}

const CUSTOM: &str =
    "title = \"own\"\ndesign.name = \"san\"\nfabric = { kind = \"custom\", file = \"own.toml\" }\nrun.requests = 100\n";

fn own() -> Memory {
    let vertex = |name: &str, kind: &str| format!("[[vertex]]\nname = \"{name}\"\nkind = \"{kind}\"\nports = 4\n");
    let link = |ends: &str, medium: &str, length: &str| {
        format!("[[link]]\nends = [{ends}]\nmedium = \"{medium}\"\nrate = \"100Gbps\"\nlength = \"{length}\"\n")
    };
    let parts = [
        vertex("a", "adapter"),
        vertex("store", "target"),
        vertex("client", "host"),
        link("\"store\", \"a\"", "board", "0mm"),
        link("\"client\", \"a\"", "cable", "2m"),
    ];
    Memory::default().with("own.toml", &parts.concat())
}

#[test]
fn a_graph_of_ones_own_counts_by_what_it_is_and_not_by_its_name() {
    let parsed = |text: &str, files: &Memory| {
        let parsed = parse("own.toml", text, files, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        parsed.points(None).remove(0).plan
    };
    let plan = parsed(CUSTOM, &own());
    assert_eq!(san(&plan).fabric.graph.vertices().len(), 3);
    assert_eq!(parsed(&plan.to_toml(), &own()), plan);
    let Shape::Custom { digest, .. } = &san(&plan).fabric.shape else { panic!("a file was given") };
    let other =
        CUSTOM.replace("\"own.toml\"", &format!("\"own.toml\", file_digest = \"{}\"", "0".repeat(digest.len())));
    let said = parse("own.toml", &other, &own(), &[]).unwrap_err().to_string();
    assert!(said.contains(&format!("has the digest {digest}: it is another graph")), "{said}");
}

#[test]
fn what_breaks_turns_the_check_of_writes_on() {
    let fault = "[[fault]]\nat = \"1ms\"\nkind = \"adapter-down\"\nvertex = \"a3\"";
    assert!(san(&plan(&with(fault))).check_write_order);
    assert!(!san(&plan(&with(&format!("{fault}\n[check]\nwrite_order = false")))).check_write_order);
}

#[test]
fn every_kind_of_load_reads_back_as_itself() {
    let job = "[global]\nbs=4k\nsize=64m\n[reads]\nrw=randread\nnumjobs=4\n[writes]\nrw=write\niodepth=4\n";
    let files = || Memory::default().with("mix.fio", job).with("own.trace", "0 0 0 8 1\n100 1 4096 8 0\n");
    let loads = [
        "[io]\nsizes = [[\"4KiB\", 70], [\"128KiB\", 30]]\nwrite_share = 0.05",
        "[io]\nsizes = [[\"4KiB\", 100]]\narrivals = \"poisson\"\nrequests_per_second = 1000.0\naddresses = \"uniform\"\ndrive = 2",
        "[io]\njob = \"mix.fio\"",
        "[io]\ntrace = \"own.trace\"\ntime_scale = 0.01\nstripe = \"1MiB\"",
        "[io]\nimitation = \"oltp-like\"\ntime_scale = 0.001",
        "[drives]\ncapacity = \"4GiB\"\n[lsm]\nreads = 0.95\nupdates = 0.05\nsync = true",
        "[drives]\ncapacity = \"4GiB\"\n[lsm]\nstores = 4",
    ];
    let mut hashes = std::collections::BTreeSet::new();
    for load in loads {
        let read = |text: &str| {
            let parsed = parse("load.toml", text, &files(), &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            parsed.points(None).remove(0).plan
        };
        let plan = read(&with(load));
        assert_eq!(read(&plan.to_toml()), plan, "{load}");
        hashes.insert(plan.hash());
    }
    assert_eq!(hashes.len(), loads.len(), "every load decides what is simulated");
}

#[test]
fn the_examples_of_the_guide_are_plans() {
    for (text, points) in [
        (include_str!("../../../../docs/guide/examples/fabrics.toml"), 6),
        (include_str!("../../../../docs/guide/examples/table1.toml"), 2),
        (include_str!("../../../../docs/guide/examples/san.toml"), 4),
    ] {
        let parsed = parse("example.toml", text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(parsed.points(None).len(), points);
    }
}

/// 10,000 requests of 4 KiB, half of them writes, to 16 drives: 1.2 MiB each.
#[test]
fn writes_that_fit_into_the_buffers_of_quick_drives_are_warned_of() {
    let warned = |buffer: &str| {
        let text = with(&format!("[drives]\nmodel = \"quick\"\nbuffer = \"{buffer}\"\n[io]\nwrite_share = 0.5"));
        let plan = plan(&text);
        assert_eq!(again(&plan), plan);
        let experiment = parse("t.toml", &text, &NoFiles, &[]).unwrap();
        let warnings = experiment.points(None).remove(0).plan.warnings;
        warnings.iter().any(|warning| warning.starts_with("a run writes 1.2 MiB to a drive, which its buffer"))
    };
    assert!(warned("8MiB") && warned("1280KiB"));
    assert!(!warned("1MiB"));
}

/// The paper's switched prototype has a control plane (4.4), adapters have none.
#[test]
fn a_control_plane_delays_the_rates_of_switches_alone() {
    let switched = SMALL.replace("\"torus\"\ndimensions = [2, 2]", "\"single-switch\"\ntargets = 4");
    for (text, delay) in [(SMALL.to_string(), Span::ZERO), (switched, Span::us(200))] {
        let plan = plan(&format!("{text}[reservation]\ncontrol_delay = \"200us\"\n"));
        assert_eq!(san(&plan).reservation.as_ref().expect("it is on").control_delay, delay);
        assert_eq!(again(&plan), plan);
    }
}

#[test]
fn cores_and_the_floor_of_timeouts_are_off_unless_given_and_come_back_from_a_printed_plan() {
    let host = &san(&plan(SMALL)).host.clone();
    assert_eq!((host.cores, host.timeout_min), (None, None));
    let plan = plan(&with("[host]\ncores = 8\ncore_time = \"3us\"\ntimeout_min = \"10us\"\n[routing]\nteams = true"));
    let host = &san(&plan).host;
    assert_eq!(host.cores.map(|cores| (cores.count, cores.per_io)), Some((8, Span::us(3))));
    assert_eq!((host.timeout_min, san(&plan).routing.teams), (Some(Span::us(10)), true));
    assert_eq!(again(&plan), plan);
}
