//! Each kind of mistake, and the sentence with which it is answered.

use crate::common;

use crate::common::{SMALL, complaint, complaints, files, with};
use plan::{NoFiles, Place, Problem, parse};

#[test]
fn broken_syntax_is_reported_with_its_line() {
    let said = complaint("title = \"small\"\nfabric = [1, \n");
    assert!(said.starts_with("small.toml:2:"), "{said}");
    assert!(said.contains("not valid TOML"), "{said}");
}

#[test]
fn an_unknown_key_names_the_allowed_ones_and_the_closest() {
    assert_eq!(
        complaint(&with("load = 0.5", "laod = 0.5\nload = 0.5")),
        "small.toml:8:1: workload: unknown key `laod`, did you mean `load`?; allowed are arrivals, compute, depth, digest, \
         file, inversions, load, load_basis, local_fraction, mix, off, on, pattern, read_fraction, size, sources, target, \
         think"
    );
    assert_eq!(
        complaint(&format!("{SMALL}[memroy]\nlatency = \"1ns\"\n")),
        "small.toml:11:2: unknown key `memroy`, did you mean `memory`?; allowed are background, carrier, check, clients, \
         collection, controller, cores, design, ditto, drives, emulate, fabric, fault, files, fit, flash, gimbal, host, io, leed, lsm, machine, \
         membership, memory, nic, prices, rack, rdma, record, reservation, routing, run, scale, scalio, scheduler, scheduling, seed, seeds, software, \
         store, swap, sweep, target, task, title, vssd, wear, wire, workload"
    );
}

#[test]
fn a_key_that_looks_like_none_gets_no_suggestion() {
    let said = complaint(&with("nodes = 144", "nodes = 144\nxyz = 1"));
    assert!(said.starts_with("small.toml:4:1: fabric: unknown key `xyz`; allowed are adapter_gap, "), "{said}");
    assert!(said.contains(", nodes, ") && !said.contains("did you mean"), "{said}");
}

#[test]
fn a_bare_number_where_a_unit_belongs_is_refused_with_the_units() {
    assert_eq!(
        complaint(&with("rate = \"100Gbps\"", "rate = 100")),
        "small.toml:4:8: fabric.rate: `100` has no unit: write it with one of bps, Kbps, Mbps, Gbps, Tbps"
    );
    assert_eq!(
        complaint(&with("rate = \"100Gbps\"", "rate = \"100Gbps\"\npropagation = \"10B\"")),
        "small.toml:5:15: fabric.propagation: `10B` has the unit `B`; allowed are ps, ns, us, ms, s, min, h"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nsize = 64")),
        "small.toml:9:8: workload.size: `64` has no unit: write it with one of B, KB, KiB, MB, MiB, GB, GiB, TB, TiB"
    );
}

#[test]
fn a_wrong_type_says_what_belongs_there() {
    assert_eq!(
        complaint(&with("nodes = 144", "nodes = \"many\"")),
        "small.toml:3:9: fabric.nodes: the text \"many\" where a whole number belongs"
    );
    assert_eq!(
        complaint(&with("nodes = 144", "nodes = 2024-01-01")),
        "small.toml:3:9: fabric.nodes: the date 2024-01-01 where a whole number belongs"
    );
    assert_eq!(
        complaint(&with("requests = 100000", "requests = 1.5")),
        "small.toml:10:12: run.requests: the bare number 1.5 where a whole number belongs"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nsize = [1]")),
        "small.toml:9:8: workload.size: a list where a quantity with its unit, such as \"64B\", or a table belongs"
    );
}

#[test]
fn a_word_that_is_none_names_the_words() {
    assert_eq!(
        complaint(&with("name = \"edm\"", "name = \"dctpc\"")),
        "small.toml:6:8: design.name: `dctpc` is not allowed, did you mean `dctcp`?; allowed are edm, dctcp, dcqcn, pfabric, \
         receiver-driven, cxl, fastpass, raw-ethernet, rocev2, hardware-tcp, rackblox, rackblox-software, vdc, \
         san, san-plain, wear-levelling, s-direct, linux, spdk, target-offload, scalio, leed, \
         leed-ditto, nvme-of, nvme-of-offload"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nsize = { profile = \"spark-sq\" }")),
        "small.toml:9:20: workload.size.profile: `spark-sq` is not allowed, did you mean `spark-sql`?; allowed are hadoop, \
         spark, spark-sql, graphlab, memcached"
    );
}

#[test]
fn a_limit_is_a_quantity_or_the_word_for_none() {
    let memory = |bandwidth: &str| format!("{SMALL}[memory]\nbandwidth = {bandwidth}\n");
    common::experiment(&memory("\"unlimited\""));
    common::experiment(&memory("\"512Gbps\""));
    assert_eq!(
        complaint(&memory("\"unlimted\"")),
        "small.toml:12:13: memory.bandwidth: `unlimted` is not allowed, did you mean `unlimited`?; allowed are a quantity with \
         its unit, such as \"100Gbps\", unlimited"
    );
    assert_eq!(
        complaint(&memory("512")),
        "small.toml:12:13: memory.bandwidth: `512` has no unit: write it with one of bps, Kbps, Mbps, Gbps, Tbps"
    );
}

#[test]
fn a_value_out_of_range_names_the_range_on_both_sides() {
    assert_eq!(
        complaint(&with("nodes = 144", "nodes = 1")),
        "small.toml:3:9: fabric.nodes: 1 is out of range; allowed is 2..=65536"
    );
    assert_eq!(
        complaint(&with("nodes = 144", "nodes = 5000000000")),
        "small.toml:3:9: fabric.nodes: 5000000000 is out of range; allowed is 2..=65536"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.0")),
        "small.toml:8:8: workload.load: 0 is out of range; allowed is above 0, up to 10"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = nan")),
        "small.toml:8:8: workload.load: NaN is out of range; allowed is above 0, up to 10"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nread_fraction = 1.01")),
        "small.toml:9:17: workload.read_fraction: 1.01 is out of range; allowed is 0..=1"
    );
    common::experiment(&with("load = 0.5", "load = 0.5\nread_fraction = 1"));
    assert_eq!(
        complaint(&with("rate = \"100Gbps\"", "rate = \"0bps\"")),
        "small.toml:4:8: fabric.rate: 0bps is out of range; allowed is 1Mbps..=100Tbps"
    );
}

#[test]
fn what_is_missing_is_named_with_what_it_is_for() {
    assert_eq!(
        complaint(&with("nodes = 144", "")),
        "small.toml:2:2: fabric: `nodes` is missing: Messages: how many nodes the switch has; ids run from 0. SAN: how many adapters."
    );
    assert_eq!(
        complaint(&with("requests = 100000", "")),
        "small.toml:9:2: run: `run.requests` is missing: a run ends after `requests` or after `duration`, one of them must be \
         given"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "")),
        "small.toml:7:2: workload: `load` is missing: arrivals = poisson needs it"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\narrivals = \"on-off\"\non = \"1us\"")),
        "small.toml:7:2: workload: `off` is missing: arrivals = on-off needs it"
    );
}

#[test]
fn a_run_without_an_end_is_reported_once_whatever_it_plays() {
    let messages = "fabric = { nodes = 4, rate = '100Gbps' }\nworkload.load = 0.5\n";
    let san = "fabric = { kind = 'ring', nodes = 3, hosts = 3 }\n";
    for (design, tables) in [
        ("edm", messages),
        ("rackblox", ""),
        ("san", san),
        ("san-plain", &format!("{san}io.imitation = 'oltp-like'\n")),
        ("s-direct", ""),
        ("scalio", ""),
        ("nvme-of", ""),
    ] {
        let text = format!("title = 'a run'\ndesign.name = '{design}'\n{tables}");
        let errors = parse("small.toml", &text, &NoFiles, &[]).expect_err("it never ends");
        let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let [only] = &said[..] else { panic!("{design}: {said:?}") };
        assert!(only.contains("run: `run.requests` is missing: a run ends after"), "{design}: {only}");
    }
}

#[test]
fn keys_that_do_not_go_together_are_refused() {
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\ndepth = 4")),
        "small.toml:9:9: workload.depth: `depth` is valid only with arrivals = closed, not with poisson"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "arrivals = \"closed\"\nload = 0.5")),
        "small.toml:9:8: workload.load: `load` is valid only with arrivals = poisson, deterministic or on-off, not with closed"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "arrivals = \"trace\"\nfile = \"messages.csv\"\nload = 0.5")),
        "small.toml:10:8: workload.load: `load` is valid only with arrivals = poisson, deterministic or on-off, not with trace"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nsize = \"64B\"\nmix = [{ operation = \"read\", size = \"64B\" }]")),
        "small.toml:9:8: workload.size: `size` is not valid with `mix`"
    );
    assert_eq!(
        complaint(&with("requests = 100000", "requests = 10\nwarm_up = \"1us\"\nwarm_up_requests = 1")),
        "small.toml:11:11: run.warm_up: `warm_up` is not valid with `warm_up_requests`"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nsize = { profile = \"spark\", cdf = \"sizes.txt\" }")),
        "small.toml:9:1: workload.size: exactly one of `profile`, `cdf`, `table` and `points` says how large requests are"
    );
}

#[test]
fn numbers_that_do_not_fit_the_rack_are_refused() {
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\npattern = \"role-split\"\ncompute = 144")),
        "small.toml:10:11: workload.compute: 144 is out of range; allowed is 1..=143"
    );
    common::experiment(&with("load = 0.5", "load = 0.5\npattern = \"role-split\"\ncompute = 143"));
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\npattern = \"incast\"\ntarget = 144")),
        "small.toml:10:10: workload.target: 144 is out of range; allowed is 0..=143"
    );
    assert_eq!(
        complaint(&with("nodes = 144", "nodes = 513")),
        "small.toml:3:9: fabric.nodes: 513 is out of range; allowed is 2..=512 with design edm"
    );
    common::experiment(&with("nodes = 144", "nodes = 512"));
}

#[test]
fn a_run_stays_within_virtual_time() {
    assert!(complaint(&with("load = 0.5", "load = 1e-300")).contains("requests come so slowly"));
    let said = complaint(&with("load = 0.5", "load = 1e-12"));
    assert!(said.starts_with("small.toml:7:2: workload: requests come so slowly that the run could last "), "{said}");
    let closed = |requests: u64| {
        with("load = 0.5", "arrivals = \"closed\"\nthink = \"24h\"").replace("100000", &requests.to_string())
    };
    common::experiment(&closed(144 * 30));
    assert!(complaint(&closed(144 * 30 + 1)).contains("the run could last 30 days; at most 720h fit"));
}

#[test]
fn requests_are_at_most_a_gibibyte() {
    common::experiment(&with("load = 0.5", "load = 0.5\nsize = \"1GiB\""));
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nsize = \"1073741825B\"")),
        "small.toml:9:8: workload.size: 1073741825B is out of range; allowed is 1B..=1GiB"
    );
    assert!(complaint(&with("load = 0.5", "load = 0.5\nsize = \"0B\"")).contains("workload.size"));
}

#[test]
fn a_design_checks_its_own_table() {
    assert_eq!(
        complaint(&with("name = \"edm\"", "name = \"edm\"\nedm = { chunk = \"128B\", batch = \"129B\" }")),
        "small.toml:7:33: design.edm.batch: a batch of 129B is more than a chunk of 128B: one grant must cover it"
    );
    assert_eq!(
        complaint(&with("name = \"edm\"", "name = \"edm\"\nedm.active_per_pair = 0")),
        "small.toml:7:23: design.edm.active_per_pair: 0 is out of range; allowed is 1..=64"
    );
    assert_eq!(
        complaint(&with("name = \"edm\"", "name = \"edm\"\nstack = \"tcp\"")),
        "small.toml:7:9: design.stack: `stack` is not valid with the design edm"
    );
    assert_eq!(
        complaint(&with("name = \"edm\"", "name = \"dcqcn\"\ndcqcn = { mark_from = \"10KB\", mark_all = \"9KB\" }")),
        "small.toml:7:23: design.dcqcn.mark_from: 10KB is out of range; allowed is 0B..=9KB"
    );
    assert_eq!(
        complaint(&with("name = \"edm\"", "name = \"edm\"\ndctcp.gain = 0.5")),
        "small.toml:7:1: design.dctcp: no point of this experiment uses the design dctcp; it uses edm"
    );
}

#[test]
fn files_are_named_with_their_line_and_reason() {
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nsize = { cdf = \"none.txt\" }")),
        "small.toml:9:16: workload.size.cdf: file `none.txt`: there is no such file"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\nsize = { cdf = \"falling.txt\" }")),
        "small.toml:9:16: workload.size.cdf: file `falling.txt`: falling.txt:2: size 3 comes after 4, it must not fall"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "arrivals = \"trace\"\nfile = \"inverted.csv\"\ninversions = \"refuse\"")),
        "small.toml:9:8: workload.file: file `inverted.csv`: inverted.csv:3: time 0ns comes after 10ns, it must not fall"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "load = 0.5\ninversions = \"sort\"")),
        "small.toml:9:14: workload.inversions: `inversions` is valid only with arrivals = trace, not with poisson"
    );
    assert_eq!(
        complaint(&with("load = 0.5", "arrivals = \"trace\"\nfile = \"messages.csv\"\ndigest = \"00\""))
            .split(" has ")
            .next(),
        Some("small.toml:10:10: workload.digest: `messages.csv`")
    );
}

/// [`SMALL`] with one stream of frames, which starts in line 11; `keys` are its keys but for the
/// name.
fn with_stream(keys: &str) -> String {
    format!("{SMALL}[[background.stream]]\nname = \"ip\"\n{keys}\n")
}

#[test]
fn background_frames_are_those_of_an_ethernet() {
    let frame = |bytes: u32| with_stream(&format!("load = 0.1\nframe = \"{bytes}B\""));
    common::experiment(&frame(64));
    common::experiment(&frame(9_018));
    for outside in [0, 63, 9_019] {
        assert_eq!(
            complaint(&frame(outside)),
            format!("small.toml:14:9: background.stream.0.frame: {outside}B is out of range; allowed is 64B..=9018B")
        );
    }
}

#[test]
fn background_streams_offer_a_part_of_a_link_in_bursts() {
    common::experiment(&with_stream("load = 1\nburst_frames = 1000"));
    assert_eq!(
        complaints(&with_stream("load = 0.0\nburst_frames = 0")),
        [
            "small.toml:13:8: background.stream.0.load: 0 is out of range; allowed is above 0, up to 1",
            "small.toml:14:16: background.stream.0.burst_frames: 0 is out of range; allowed is 1..=1000",
        ]
    );
    assert_eq!(
        complaints(&with_stream("load = 1.01\nburst_frames = 1001")),
        [
            "small.toml:13:8: background.stream.0.load: 1.01 is out of range; allowed is above 0, up to 1",
            "small.toml:14:16: background.stream.0.burst_frames: 1001 is out of range; allowed is 1..=1000",
        ]
    );
    let said = complaint(&with_stream("load = 1e-300"));
    assert!(said.starts_with("small.toml:13:8: background.stream.0.load: bursts come so slowly that "), "{said}");
    assert!(complaint(&with_stream("")).contains("background.stream.0: `load` is missing"));
}

/// 192 blocks of 640 ps are 122.88 ns; fifty of such gaps fit into 30 days from a load of 2.37e-12
/// on.
#[test]
fn the_longest_gap_between_bursts_fits_into_a_run() {
    common::experiment(&with_stream("load = 2.4e-12"));
    assert!(complaint(&with_stream("load = 2.3e-12")).contains("bursts come so slowly that one could be 31 days away"));
}

#[test]
fn background_streams_have_names_of_their_own() {
    let again =
        |name: &str| format!("{}[[background.stream]]\nname = \"{name}\"\nload = 0.1\n", with_stream("load = 0.1"));
    common::experiment(&again("storage-2_b"));
    assert_eq!(
        complaint(&again("ip")),
        "small.toml:15:8: background.stream.1.name: background.stream.0 is called `ip` too"
    );
    assert_eq!(
        complaint(&again("storage.a")),
        "small.toml:15:8: background.stream.1.name: `storage.a` becomes a part of metric names: only letters, digits, `-` and `_` \
         will do"
    );
    assert!(complaint(&again("")).contains("background.stream.1.name"));
}

#[test]
fn an_egress_queue_has_room_for_the_largest_frame() {
    let queue = |bytes: u32| with_stream("load = 0.1") + &format!("[background]\negress_queue = \"{bytes}B\"\n");
    common::experiment(&queue(1_518));
    assert_eq!(
        complaint(&queue(1_517)),
        "small.toml:15:16: background.egress_queue: 1517B is out of range; allowed is 1518B, the largest frame, to 1TiB"
    );
}

#[test]
fn a_background_has_streams() {
    assert!(
        complaint(&format!("{SMALL}[background]\n")).starts_with("small.toml:11:2: background: `stream` is missing")
    );
    assert!(
        complaint(&format!("{SMALL}[background]\nstream = []\n")).starts_with("small.toml:12:10: background.stream:")
    );
}

#[test]
fn background_frames_are_refused_beside_the_packets_of_a_rival() {
    let text = with_stream("load = 0.1").replace("name = \"edm\"", "name = \"dctcp\"");
    let said = complaint(&text);
    assert!(said.starts_with("small.toml:11:3: background: `background` is not valid with the design dctcp"), "{said}");
    let swept = with_stream("load = 0.1") + "[sweep]\ndesign.name = [\"edm\", \"cxl\"]\n";
    assert!(complaint(&swept).ends_with("is not valid with the design cxl (at the sweep point design.name = cxl)"));
}

#[test]
fn faults_name_what_exists() {
    let with_fault = |fault: &str| format!("{SMALL}[[fault]]\nat = \"1us\"\n{fault}\n");
    assert_eq!(
        complaint(&with_fault("kind = \"switch-down\"\nswitch = 1")),
        "small.toml:14:10: fault.0.switch: there is a switch 1 only with design.edm.redundant = true"
    );
    assert_eq!(
        complaint(&with_fault("kind = \"node-down\"\nnode = 144")),
        "small.toml:14:8: fault.0.node: 144 is out of range; allowed is 0..=143"
    );
    assert_eq!(
        complaint(&with_fault("kind = \"link-down\"")),
        "small.toml:11:1: fault.0: `node` is missing: The node, or the node at the end of the link: a storage server with \
         volumes, a client of a key-value store, whose JBOF has the number after the last client's."
    );
}

#[test]
fn every_mistake_is_reported_at_once_in_the_order_of_the_file() {
    let text = "title = \"\"\n[fabric]\nnodes = 1\nrate = 5\n[design]\nname = \"none\"\n[workload]\nlaod = 1\n";
    let lines: Vec<String> = complaints(text).iter().map(|said| said.split(": ").next().unwrap().to_string()).collect();
    let expected = ["small.toml:1:9", "small.toml:3:9", "small.toml:4:8", "small.toml:6:8", "small.toml:8:1"];
    assert_eq!(lines, expected);
}

#[test]
fn a_mistake_inside_a_sweep_names_the_point_and_the_line_of_its_value() {
    let text = with("load = 0.5", "") + "[sweep]\n\"workload.load\" = [0.2, 11.0]\n";
    assert_eq!(
        complaint(&text),
        "small.toml:12:25: workload.load: 11 is out of range; allowed is above 0, up to 10 (at the sweep point \
         workload.load = 11)"
    );
}

#[test]
fn a_mistake_at_several_points_is_reported_once_with_their_number() {
    let text = with("nodes = 144", "nodes = 513") + "[sweep]\nworkload.load = [0.2, 0.4, 0.6]\n";
    let text = text.replace("load = 0.5\n", "");
    assert_eq!(
        complaint(&text),
        "small.toml:3:9: fabric.nodes: 513 is out of range; allowed is 2..=512 with design edm (at the sweep point \
         workload.load = 0.2, and at 2 more)"
    );
}

#[test]
fn a_sweep_path_that_names_no_key_is_refused() {
    assert_eq!(
        complaint(&format!("{SMALL}[sweep]\n\"run.request\" = [1]\n")),
        "small.toml:12:17: run.request: unknown key `request`, did you mean `requests`?; allowed are drain_limit, duration, \
         requests, warm_up, warm_up_requests"
    );
    assert_eq!(
        complaint(&format!("{SMALL}[sweep]\nrun.requests = 1\n")),
        "small.toml:12:16: run.requests: the bare number 1 where a list of values to vary belongs"
    );
}

#[test]
fn a_point_sets_keys_of_its_own_design_only() {
    let text = format!("{SMALL}[sweep]\ndesign.name = [\"edm\", \"dctcp\"]\ndesign.edm.chunk = [\"64B\"]\n");
    assert_eq!(
        complaint(&text),
        "small.toml:13:21: design.edm.chunk: this sets a key of another design than the point's, which is dctcp; set both on one \
         [[sweep.axis]] (at the sweep point design.name = dctcp, design.edm.chunk = 64B)"
    );
}

#[test]
fn two_axes_cannot_set_one_key() {
    let axis = "[[sweep.axis]]\nname = \"mix\"\npoints = [{ label = \"r\", set = { \"workload.load\" = 1.0 } }]\n";
    let text = format!("{SMALL}[sweep]\nworkload.load = [0.1]\n{axis}");
    assert_eq!(complaint(&text), "small.toml:13:1: mix: the axes `workload.load` and `mix` both set `workload.load`");
}

#[test]
fn a_setting_from_outside_is_blamed_on_the_outside() {
    let settings = [("fabric.rate".to_string(), "fast".to_string())];
    let errors = parse("small.toml", SMALL, &files(), &settings).unwrap_err();
    let only = errors.iter().next().unwrap();
    assert_eq!((errors.count(), only.place), (1, Place::CommandLine));
    assert!(matches!(only.problem, Problem::Quantity(_)));
    assert_eq!(
        errors.to_string(),
        "small.toml with a setting from outside: fabric.rate: `fast` does not start with a non-negative decimal number"
    );
}

#[test]
fn without_files_a_reference_is_an_error_and_nothing_else_is() {
    assert!(parse("small.toml", SMALL, &NoFiles, &[]).is_ok());
    let text = with("load = 0.5", "load = 0.5\nsize = { cdf = \"sizes.txt\" }");
    assert!(parse("small.toml", &text, &NoFiles, &[]).is_err());
}

#[test]
fn what_means_nothing_to_a_design_is_refused_wherever_it_stands() {
    let cases = [
        ("san", "fabric = { kind = 'ring', nodes = 4, hosts = 4 }\nswap = []", "`swap`"),
        ("san", "fabric = { kind = 'ring', nodes = 4, hosts = 4 }\nflash.state = 'filled'", "`state`"),
        ("edm", "fit = {}", "`fit`"),
        ("scalio", "flash.victim = 'fifo'", "`victim`"),
        ("rackblox", "lsm = {}", "`lsm`"),
        ("rackblox", "design.stack = 'raw'", "`stack`"),
        ("scalio", "design.stack = 'raw'", "`stack`"),
        ("s-direct", "wire = {}", "`wire`"),
        ("vdc", "target = {}", "`target`"),
        ("scalio", "io.write_run = 3.0", "`write_run`"),
        ("linux", "io.check_history = true", "`check_history`"),
    ];
    for (design, keys, what) in cases {
        let said = complaints(&format!("title = 't'\ndesign.name = '{design}'\nrun.requests = 9\n{keys}\n")).join("\n");
        assert!(said.contains(&format!("{what} is not valid with the design {design}")), "{said}");
    }
}

#[test]
fn of_a_table_that_is_refused_the_table_alone_is_named() {
    let said = complaints(&format!("{SMALL}[io]\nsize = '4KiB'\nprofile = 'ycsb-a'\n"));
    assert_eq!(said, ["small.toml:11:2: io: `io` is not valid with the design edm"]);
}

/// Keys with an old name, as paths: the new one and the old one.
fn renamed(root: &serde_json::Value, schema: &serde_json::Value, path: &str, out: &mut Vec<(String, String, String)>) {
    let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
    let schema = name.map_or(schema, |name| &root["$defs"][name]);
    if schema.is_null() {
        return;
    }
    let inner = schema["anyOf"].as_array().into_iter().flatten().chain([&schema["items"]]);
    inner.for_each(|schema| renamed(root, schema, path, out));
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(old) = below["was"].as_str() {
            out.push((path.to_owned(), key.clone(), old.to_owned()));
        }
        let below_path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        renamed(root, below, &below_path, out);
    }
}

#[test]
fn an_old_name_of_a_key_is_an_error_that_says_the_new_one_in_the_file_the_sweep_and_settings() {
    let mut all = Vec::new();
    renamed(&plan::schema(), &plan::schema(), "", &mut all);
    assert!(all.contains(&(String::new(), "clients".into(), "askers".into())), "{all:?}");
    for (table, key, old) in all {
        let path = if table.is_empty() { old.clone() } else { format!("{table}.{old}") };
        let expected = format!("`{old}` is now called `{key}`");
        let text = format!("title = \"old\"\n{path} = 1\ndesign.name = \"edm\"\n");
        let said = complaints(&text);
        assert!(said.iter().any(|said| said.contains(&expected)), "{path}: {said:?}");
        let said = complaints(&format!("{SMALL}[sweep]\n\"{path}\" = [1, 2]\n"));
        assert!(said.iter().any(|said| said.ends_with(&expected)), "{path}: {said:?}");
        let setting = [(path.clone(), "1".to_owned())];
        let errors = plan::parse("small.toml", SMALL, &common::files(), &setting).expect_err("an old name is refused");
        assert!(errors.to_string().contains(&expected), "{path}: {errors}");
    }
}

#[test]
fn what_is_needed_is_not_missed_twice_where_its_old_name_stands() {
    let text = "title = \"old\"\ndesign.name = \"s-direct\"\nrun.requests = 10\n[askers]\nremote = true\n";
    assert_eq!(complaint(text), "small.toml:4:2: `askers` is now called `clients`");
}
