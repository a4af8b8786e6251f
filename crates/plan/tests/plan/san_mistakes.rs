//! Each kind of mistake in a SAN, and the sentence with which it is answered.

use crate::common::{Memory, complaint, complaints, plan, reason};
use plan::parse;

const SMALL: &str = "title = \"san\"\ndesign.name = \"san\"\nrun.requests = 10000\n[fabric]\nkind = \"torus\"\ndimensions = [2, 2]\nhosts = 4\n";

fn with(tables: &str) -> String {
    format!("{SMALL}{tables}\n")
}

/// The complaint about these tables, without the place that it begins with.
fn said(tables: &str) -> String {
    reason(&with(tables))
}

#[test]
fn a_shape_needs_its_own_keys_and_takes_no_others() {
    let missing = complaint(&SMALL.replace("dimensions = [2, 2]\n", ""));
    assert_eq!(missing, "small.toml:4:2: fabric: `dimensions` is missing: kind = torus needs it");
    assert_eq!(said("leaves = 3"), "fabric.leaves: `leaves` is valid only with kind = leaf-spine, not with torus");
    assert_eq!(said("propagation = \"10ns\""), "fabric.propagation: `propagation` is not valid with the design san");
    let switched = SMALL.replace("\"torus\"\ndimensions = [2, 2]", "\"single-switch\"");
    assert_eq!(
        complaint(&switched),
        "small.toml:4:2: fabric: `targets` is missing: how many storage nodes a switched fabric joins"
    );
}

#[test]
fn what_cannot_be_built_is_refused_with_its_line_and_numbers() {
    assert_eq!(
        complaint(&SMALL.replace("[2, 2]", "[2, 1]")),
        "small.toml:6:14: fabric.dimensions: dimension 2 of 2x1 is 1, each must be 2 or more"
    );
    assert_eq!(
        said("endpoint_cables = 2\nendpoint_ports = 1"),
        "fabric.endpoint_ports: host h0 has 2 cables but 1 ports"
    );
    assert_eq!(
        said("adapter_ports = 4"),
        "fabric.hosts: 4 hosts, but there is room for 0: 4 adapters with their free ports, 1 cables a host"
    );
    assert_eq!(said("targets = 5"), "fabric.targets: 5 targets, but there is room for 4: one an adapter");
    assert_eq!(said("mtu = \"100B\""), "fabric.mtu: 100B is out of range; allowed is 576B..=9KB");
}

#[test]
fn a_graph_that_falls_apart_is_refused_with_its_own_line() {
    let text = "title = \"own\"\ndesign.name = \"san\"\nfabric = { kind = \"custom\", file = \"own.toml\" }\nrun.requests = 100\n";
    let own = "[[vertex]]\nname = \"a\"\nkind = \"adapter\"\nports = 1\n[[vertex]]\nname = \"b\"\nkind = \"adapter\"\nports = 1\n";
    let errors = parse("small.toml", text, &Memory::default().with("own.toml", own), &[]).unwrap_err();
    let said = errors.to_string();
    assert!(said.starts_with("small.toml:3:36: fabric.file: file `own.toml`: own.toml:6: disconnected: "), "{said}");
}

#[test]
fn contradictory_techniques_are_refused() {
    assert_eq!(
        said("[routing]\nsymmetric = false\n[reservation]\non = false"),
        "routing.symmetric: policy = isr learns from answers that come back the same way"
    );
    assert_eq!(
        said("[routing]\npolicy = \"ecmp-io\""),
        "reservation: a booking is of the port by which the answer leaves: reservation.on needs routing.symmetric"
    );
    assert_eq!(
        said("[routing]\nheader = false\n[reservation]\non = false"),
        "routing.header: answers cannot go back the way of their request without the header that records it"
    );
    assert_eq!(
        said("[host]\nretry = \"quiesce\"\n[target]\ncommand_life = \"unlimited\""),
        "host.retry: retry = quiesce needs target.command_life and target.packet_life: without them no wait is long enough"
    );
    assert_eq!(
        said("[scheduling]\nqueues = 4\nweights = [1, 2]"),
        "scheduling.weights: 2 weights for 3 queues: the first of 4 has none"
    );
}

#[test]
fn io_beyond_a_drive_and_loads_that_contradict_themselves_are_refused() {
    assert_eq!(
        said("[io]\nfootprint = \"3GiB\""),
        "io.footprint: 3GiB is out of range; allowed is 8MiB..=2GiB, what a drive has, in whole sectors"
    );
    assert_eq!(said("[io]\nsizes = [[\"4KiB\", 50]]"), "io.sizes: percentages add up to 50, and must to 100");
    assert_eq!(said("[io]\nsizes = [[\"4KiB\", 100]]\nsize = \"4KiB\""), "io.size: `size` is not valid with `sizes`");
    assert_eq!(
        said("[io]\nsize = \"1000B\""),
        "io.size: 1KB is out of range; allowed is 512B..=8MiB in whole sectors of 512B"
    );
    assert_eq!(said("[io]\ndrive = 16"), "io.drive: 16 is out of range; allowed is 0..=15");
    let said = said("[io]\nimitation = \"oltp\"");
    assert!(said.starts_with("io.imitation: `oltp` is not allowed, did you mean `oltp-like`?"), "{said}");
}

#[test]
fn a_traces_request_beyond_the_footprint_is_refused_with_its_line_there() {
    let files = Memory::default().with("own.trace", "0 0 0 8 1\n100 0 40000000 8 1\n");
    let errors = parse("small.toml", &with("[io]\ntrace = \"own.trace\""), &files, &[]).unwrap_err();
    let said = errors.to_string();
    assert!(said.contains("io.trace: file `own.trace`: own.trace:2: "), "{said}");
}

#[test]
fn faults_of_what_does_not_exist_are_refused_with_what_does() {
    let fault = |rest: &str| said(&format!("[[fault]]\nat = \"1ms\"\n{rest}"));
    assert_eq!(
        fault("kind = \"adapter-down\"\nvertex = \"a9\""),
        "fault.0.vertex: there is no adapter `a9`; there are a0, a1, a2, a3"
    );
    assert_eq!(
        fault("kind = \"switch-down\"\nvertex = \"a1\""),
        "fault.0.vertex: there is no switch `a1`; there are none"
    );
    assert_eq!(
        fault("kind = \"link-down\"\nends = [\"a0\", \"a3\"]"),
        "fault.0.ends: there is no link between a0 and a3"
    );
    assert_eq!(fault("kind = \"drive-down\"\ndrive = 16"), "fault.0.drive: 16 is out of range; allowed is 0..=15");
    assert_eq!(fault("kind = \"drive-down\""), "fault.0: `drive` is missing: kind = drive-down needs it");
    assert_eq!(
        fault("kind = \"link-down\"\nnode = 1\nends = [\"a0\", \"a1\"]"),
        "fault.0.node: `node` is not valid with the design san"
    );
}

#[test]
fn drives_that_no_model_has_are_refused() {
    assert!(said("[drives]\nmodel = \"quick\"\nbuffer = \"64KiB\"").starts_with("drives.buffer: "));
    assert!(said("[drives]\nmodel = \"whole\"\nbuffer = \"1MiB\"").starts_with("drives.buffer: "));
    assert_eq!(
        said("[drives]\nmodel = \"quick\"\npreset = \"p3700\""),
        "drives.model: model = quick knows the numbers of pm9a3 alone, and not of p3700"
    );
    assert_eq!(
        said("[drives]\npreset = \"optane\""),
        "drives.preset: optane is written in place: targets here have drives of flash"
    );
}

#[test]
fn other_designs_refuse_what_only_a_san_reads() {
    let edm = "title = \"x\"\ndesign.name = \"edm\"\nfabric = { nodes = 4, rate = \"100Gbps\", kind = \"ring\" }\nworkload.load = 0.5\nrun.requests = 1000\n";
    assert_eq!(complaint(edm), "small.toml:3:48: fabric.kind: `kind` is not valid with the design edm");
}

#[test]
fn what_is_probably_not_meant_is_a_warning_with_its_numbers() {
    let warnings = |tables: &str| plan(&with(tables)).warnings;
    assert!(warnings("").is_empty(), "{:?}", warnings(""));
    let load = "[io]\nwrite_share = 0.0\nsize = \"128KiB\"\narrivals = \"poisson\"\nrequests_per_second = 500000.0";
    // 524 Gb/s of reads for four hosts of one cable each.
    let said = warnings(load);
    assert!(
        said.iter().any(|text| text
            .starts_with("524.3 Gb/s of data one way are offered, and the links of all hosts carry 400.0 Gb/s")),
        "{said:?}"
    );
    let chain = SMALL.replace("\"torus\"\ndimensions = [2, 2]", "\"daisy-chain\"\nnodes = 8");
    let said = plan(&chain).warnings;
    // The mean distance in a chain of 8 is 3.
    assert!(said.iter().any(|text| text.starts_with("67 % of what the cables between adapters carry")), "{said:?}");
    let run = "run = { requests = 2000, warm_up_requests = 2000 }";
    let said = complaint(&SMALL.replace("run.requests = 10000", run));
    assert!(said.contains("the warm-up of 2000 requests is as long as the run of 2000"), "{said}");
    let said = warnings("[host]\nretry = \"naive\"\n[[fault]]\nat = \"1ms\"\nkind = \"adapter-down\"\nvertex = \"a1\"");
    assert!(said.iter().any(|text| text.starts_with("retry = naive loses acknowledged writes")), "{said:?}");
}

#[test]
fn more_uplinks_than_an_attempt_can_name_are_refused_with_their_line() {
    let cables = |count| format!("{SMALL}endpoint_cables = {count}\nadapter_ports = 20\n");
    assert_eq!(complaint(&cables(9)), "small.toml:8:19: fabric.endpoint_cables: h0 has 9 uplinks, allowed are 1 to 8");
    plan(&cables(8));
    let switches = |count| {
        SMALL.replace(
            "\"torus\"\ndimensions = [2, 2]",
            &format!("\"redundant-switches\"\ntargets = 4\nswitches = {count}"),
        )
    };
    assert_eq!(complaint(&switches(9)), "small.toml:7:12: fabric.switches: h0 has 9 uplinks, allowed are 1 to 8");
    plan(&switches(8));
}

#[test]
fn a_way_that_no_header_records_is_refused_and_so_is_a_stretch_behind_it() {
    let chain = |nodes: u32, stretch: &str| {
        let shape = format!("\"daisy-chain\"\nnodes = {nodes}");
        format!("{}{stretch}\n", SMALL.replace("\"torus\"\ndimensions = [2, 2]", &shape))
    };
    // 1,500 B less IP, TCP with timestamps, a capsule and what the header begins with leave 1,356.
    assert_eq!(
        complaint(&chain(170, "")),
        "small.toml:6:9: fabric.nodes: the way from h0 to t169 passes 170 hops, and in a frame of 1500 B the header \
         that records them has room for 169"
    );
    plan(&chain(169, ""));
    plan(&chain(170, "mtu = \"2000B\""));
    let stretched = |stretch| chain(160, &format!("[routing]\nstretch = {stretch}"));
    assert_eq!(
        complaint(&stretched(10)),
        "small.toml:9:11: routing.stretch: 10 is out of range; allowed is 0..=9, as the longest way has 160 hops of 169"
    );
    plan(&stretched(9));
    // What has no header has no such bound.
    plan(&chain(400, "").replace("\"san\"\nrun", "\"san-plain\"\nrun"));
}

#[test]
fn an_exponent_of_a_skew_that_is_not_there_is_refused() {
    for addresses in ["uniform", "sequential"] {
        let reason = format!(
            "io.theta: `theta` is valid only with addresses = zipfian, scrambled-zipfian or latest, not with {addresses}"
        );
        assert_eq!(said(&format!("[io]\naddresses = \"{addresses}\"\ntheta = 0.9")), reason);
        assert_eq!(said(&format!("[io]\nsizes = [[\"4KiB\", 100]]\naddresses = \"{addresses}\"\ntheta = 0.9")), reason);
    }
    plan(&with("[io]\ntheta = 0.9"));
    plan(&with("[io]\nsizes = [[\"4KiB\", 100]]\ntheta = 0.9"));
}

#[test]
fn keys_of_one_transport_do_not_go_with_another() {
    let by = |transport: &str, key: &str| said(&format!("[wire]\ntransport = \"{transport}\"\n{key}"));
    assert_eq!(
        said("[wire]\ntimeout_min = \"1ms\""),
        "wire.timeout_min: `timeout_min` is valid only with transport = tcp, dctcp or dcqcn+pfc, not with unpaced"
    );
    assert_eq!(
        by("dcqcn+pfc", "window_max = \"64KiB\""),
        "wire.window_max: `window_max` is valid only with transport = tcp or dctcp, not with dcqcn+pfc"
    );
    assert_eq!(
        by("tcp", "dcqcn.preset = \"hpcc\""),
        "wire.dcqcn: `dcqcn` is valid only with transport = dcqcn+pfc, not with tcp"
    );
    assert_eq!(
        by("dcqcn+pfc", "tcp_options = 12"),
        "wire.tcp_options: `tcp_options` is valid only with transport = tcp, dctcp or unpaced, not with dcqcn+pfc"
    );
    assert_eq!(
        by("dcqcn+pfc", "dcqcn.mtu = \"1KiB\""),
        "wire.dcqcn.mtu: packets are those of `fabric.mtu` and `wire.segment`"
    );
    assert_eq!(
        by("dcqcn+pfc", "dcqcn.shared_buffer = \"1MiB\""),
        "wire.dcqcn.shared_buffer: `shared_buffer` is valid only with pfc = dynamic, not with static"
    );
    assert_eq!(
        by("dcqcn+pfc", "dcqcn = { mark_from = \"0B\", mark_all = \"0B\" }"),
        "wire.dcqcn.mark_all: 0B is out of range; allowed is 1B..=1TiB"
    );
    assert_eq!(
        said("queue = \"1MiB\"\n[wire]\ntransport = \"dcqcn+pfc\""),
        "fabric.queue: `queue` is valid only with wire.transport = tcp, dctcp or unpaced, not with dcqcn+pfc"
    );
}

/// Marks shrink windows on the way back too, and a hop that rejects a command of a stream passes
/// it.
#[test]
fn hops_do_what_streams_need() {
    let windows = plan(&with("[reservation]\non = false\n[wire]\ntransport = \"dctcp\""));
    let plan::Scene::San(san) = windows.scene else { panic!("it is a SAN") };
    assert!(san.target.stream.is_some_and(|stream| stream.obeys_marks()) && san.routing.marks_answers);
    for (transport, passes) in [("tcp", true), ("dcqcn+pfc", true), ("unpaced", false)] {
        let plan = plan(&with(&format!("[wire]\ntransport = \"{transport}\"")));
        let plan::Scene::San(san) = plan.scene else { panic!("it is a SAN") };
        assert_eq!(san.reservation.map(|config| config.passes_rejected), Some(passes), "{transport}");
    }
}

/// The paper's hosts speak NVMe/TCP; its own design books bandwidth instead.
#[test]
fn the_rival_has_the_windows_of_tcp_and_the_design_none() {
    let window = |text: &str| match plan(text).scene {
        plan::Scene::San(san) => (san.host.stream, san.target.stream, san.host.timeout),
        _ => panic!("it is a SAN"),
    };
    let (host, target, timeout) = window(&SMALL.replace("\"san\"\nrun", "\"san-plain\"\nrun"));
    assert!(host.is_some_and(|stream| !stream.obeys_marks()) && host == target);
    assert_eq!(timeout, base::Span::secs(30));
    assert_eq!(window(SMALL), (None, None, base::Span::ms(20)));
}

#[test]
fn a_load_that_replaces_single_requests_leaves_none_of_their_keys() {
    for (tables, expected) in [
        ("[lsm]\nstores = 1\n[io]\nsize = \"4KiB\"", "io: `io` is not valid with `lsm`"),
        ("[io]\njob = \"x.fio\"\ndepth = 3", "io.depth: `depth` is not valid with `job`"),
        ("[io]\njob = \"x.fio\"\nimitation = \"oltp-like\"", "io.imitation: `imitation` is not valid with `job`"),
        ("[io]\nimitation = \"oltp-like\"\ndrive = 1", "io.drive: `drive` is not valid with `imitation`"),
        ("[io]\ntrace = \"x.txt\"\nsizes = [[\"4KiB\", 100]]", "io.sizes: `sizes` is not valid with `trace`"),
        ("[io]\nsizes = [[\"4KiB\", 100]]\nthink = \"1us\"", "io.think: `think` is not valid with `sizes`"),
        ("[io]\ntime_scale = 2.0", "io.time_scale: `time_scale` is valid only with `trace` or `imitation`"),
    ] {
        let all = complaints(&with(tables));
        assert!(all.iter().any(|said| said.contains(expected)), "{tables}: {all:?}");
    }
    plan(&with("[io]\nimitation = \"oltp-like\"\ntime_scale = 2.0\nfootprint = \"1GiB\""));
    plan(&with("[io]\nsizes = [[\"4KiB\", 100]]\narrivals = \"poisson\"\nrequests_per_second = 9.0\ndepth = 3"));
}
