//! Each kind of mistake in a rack of volumes, and the sentence with which it is answered.

use crate::common;

use crate::common::{complaint, complaints, plan, reason};
use plan::{NoFiles, parse};
use proptest::prelude::*;

const SMALL: &str = "title = \"rack\"\ndesign.name = \"rackblox\"\nrun.requests = 100000\n";

fn with(tables: &str) -> String {
    format!("{SMALL}{tables}\n")
}

/// The complaint about these tables, without the place that it begins with.
fn said(tables: &str) -> String {
    reason(&with(tables))
}

#[test]
fn flash_that_does_not_divide_or_fit_is_refused_with_its_numbers() {
    for (tables, expected) in [
        (
            "[vssd]\ncapacity = \"16MiB\"",
            "vssd.capacity: 16MiB is out of range; allowed is at least 256MiB: 8 blocks of 4MiB on each of 8 dies",
        ),
        (
            "[vssd]\nper_ssd = 17",
            "vssd.channels: 17 virtual drives of 1 channels want 17 channels, and another owns each of the drive's 16",
        ),
        (
            "[vssd]\nper_ssd = 5\nchannels = 4",
            "vssd.channels: 5 virtual drives of 4 channels want 20 channels, and another owns each of the drive's 16",
        ),
        (
            "[vssd]\nisolation = \"software\"\nper_ssd = 12\ngroup = 4\nchannels = 6",
            "vssd.channels: 3 groups of 6 channels want 18 channels, and another owns each of the drive's 16",
        ),
        (
            "[vssd]\nisolation = \"software\"\nper_ssd = 5",
            "vssd.group: 5 virtual drives on a drive do not make groups of 2",
        ),
        (
            "[rack]\nservers = 3\n[vssd]\nper_ssd = 1",
            "vssd.per_ssd: 3 virtual drives in the rack do not make pairs of replicas",
        ),
        ("[vssd]\nwrite_cache = \"1KiB\"", "vssd.write_cache: 1KiB is out of range; allowed is at least 4KiB"),
        (
            "[vssd]\ncapacity = \"512MiB\"\ndata = 0.85\n[collection]\nstop = 0.1\nsoft = 0.09\nregular = 0.08",
            "vssd.data: 85.0 % of 512MiB leave less than the 3 spare blocks that each die needs beside its data, of 16",
        ),
        (
            "[vssd]\ncapacity = \"512MiB\"\ndata = 0.75\n[flash]\nhot_cold = true\n[collection]\nstop = 0.1\nsoft = 0.09\nregular = 0.08",
            "vssd.data: 75.0 % of 512MiB leave less than the 5 spare blocks that each die needs beside its data, of 16",
        ),
    ] {
        assert_eq!(said(tables), expected);
    }
}

#[test]
fn the_edges_of_what_fits_are_plans() {
    for tables in [
        "[vssd]\ncapacity = \"256MiB\"",
        "[vssd]\nper_ssd = 16",
        "[vssd]\nper_ssd = 4\nchannels = 4",
        "[vssd]\nisolation = \"software\"\nper_ssd = 12\ngroup = 4\nchannels = 5",
        "[vssd]\ncapacity = \"512MiB\"\ndata = 0.8125\n[collection]\nstop = 0.1\nsoft = 0.09\nregular = 0.08",
        "[rack]\nservers = 3\n[vssd]\nper_ssd = 2",
        "[vssd]\nwrite_cache = \"4KiB\"",
    ] {
        plan(&with(tables));
    }
}

#[test]
fn a_drives_own_numbers_are_refused_when_no_drive_has_them() {
    for (tables, expected) in [
        ("read = [\"40us\"]", "flash.read: 1 time for the 2 kinds of pages of p-ssd"),
        (
            "preset = \"tlc-gen4\"\nprogram = [\"1us\", \"2us\"]",
            "flash.program: 2 times for the 3 kinds of pages of tlc-gen4",
        ),
        ("read = [\"40us\", \"0us\"]", "flash.read: 0ps is out of range; allowed is 1ns up to 1s"),
        ("program = [\"40us\", \"1001ms\"]", "flash.program: 1001ms is out of range; allowed is 1ns up to 1s"),
        ("erase = \"2s\"", "flash.erase: 2s is out of range; allowed is up to 1s"),
        ("read_firmware = \"1001ms\"", "flash.read_firmware: 1001ms is out of range; allowed is up to 1s"),
        ("write_firmware = \"1001ms\"", "flash.write_firmware: 1001ms is out of range; allowed is up to 1s"),
        ("channel = \"999Kbps\"", "flash.channel: 999Kbps is out of range; allowed is 1Mbps..=100Tbps"),
        ("dies_per_channel = 65", "flash.dies_per_channel: 65 is out of range; allowed is 1..=64"),
        ("preset = \"optane\"\nchannel = \"1Gbps\"", "flash.channel: `channel` is not valid with preset = optane"),
    ] {
        assert_eq!(said(&format!("[flash]\n{tables}")), expected);
    }
    let bare = said("[flash]\nread = [40]");
    assert!(bare.starts_with("flash.read") && bare.contains("`40` has no unit"), "{bare}");
    for tables in ["read = [\"1ns\", \"1s\"]", "erase = \"0ns\"", "channel = \"1Mbps\"", "dies_per_channel = 64"] {
        plan(&with(&format!("[flash]\n{tables}\n[vssd]\ncapacity = \"64GiB\"")));
    }
}

#[test]
fn states_of_drives_that_contradict_themselves_are_refused() {
    for (tables, expected) in [
        ("[flash]\nsteady.windows = 5", "flash.steady: `steady` is valid only with state = fragmented, not with used"),
        (
            "[flash]\nstate = \"fragmented\"\nsteady.windows_max = 2",
            "flash.steady.windows_max: 3 windows are compared, and 2 written",
        ),
        (
            "[flash]\nstate = \"clean\"\n[vssd]\nused_before = 0.5",
            "vssd.used_before: `used_before` is valid only with flash.state = used, not with clean",
        ),
        (
            "[flash]\nstate = \"fragmented\"\n[vssd]\nused_before = 0.5",
            "vssd.used_before: `used_before` is valid only with flash.state = used, not with fragmented",
        ),
        ("[flash]\nsnapshot_digest = \"00\"", "flash.snapshot_digest: `snapshot_digest` is valid only with `snapshot`"),
        ("[flash]\npreset = \"p3700\"\nsnapshot = \"none\"", "flash.snapshot: file `none`: there is no such file"),
        (
            "[flash]\npreset = \"optane\"\nsnapshot_digest = \"00\"",
            "flash.snapshot_digest: `snapshot_digest` is valid only with `snapshot`",
        ),
        ("[flash]\npreset = \"optane\"\nerase = \"1ms\"", "flash.erase: `erase` is not valid with preset = optane"),
        ("[flash]\nsnapshot = \"none\"", "flash.snapshot: file `none`: there is no such file"),
        ("[rack]\nnetwork_file = \"none\"", "rack.network_file: file `none`: there is no such file"),
        ("[rack]\nnetwork_unit = \"1us\"", "rack.network_unit: `network_unit` is valid only with `network_file`"),
    ] {
        assert_eq!(said(tables), expected);
    }
    for state in ["clean", "filled", "used", "fragmented"] {
        plan(&with(&format!("[flash]\nstate = \"{state}\"")));
    }
}

#[test]
fn swaps_that_no_server_can_carry_out_are_refused() {
    let swap = |rest: &str| format!("[[swap]]\nat = \"1s\"\nserver = 0\n{rest}\n[rack]\nssds = 2");
    for (tables, expected) in [
        (swap("ssds = [1, 1]"), "swap.0.ssds: drive 1 cannot exchange anything with itself"),
        (swap("ssds = [0, 2]"), "swap.0.ssds: 2 is out of range; allowed is 0..=1, with rack.ssds = 2"),
        (
            swap("ssds = [0, 1]").replace("server = 0", "server = 4"),
            "swap.0.server: 4 is out of range; allowed is 0..=3",
        ),
        (swap("ssds = [0, 1]").replace("1s", "25h"), "swap.0.at: 25h is out of range; allowed is up to 24h"),
        (
            swap("ssds = [0, 1]") + "\n[flash]\npreset = \"optane\"",
            "swap: preset = optane is written in place and does not wear: there is nothing to swap",
        ),
        (
            swap("ssds = [0, 1]") + "\n[vssd]\nisolation = \"software\"",
            "swap: with isolation = software blocks are lent within a drive: its vSSDs cannot leave it",
        ),
        (
            swap("ssds = [0, 1]") + "\n[vssd]\ncapacity = \"512MiB\"\nswap_batch = 50000",
            "vssd.swap_batch: data and a batch of a swap are 409712KiB, and beside 4 spare blocks a die there is room for 384MiB",
        ),
    ] {
        assert_eq!(said(&tables), expected);
    }
    assert!(said("[[swap]]\nat = \"1s\"\nserver = 0").contains("ssds"));
    plan(&with(&(swap("ssds = [1, 0]") + "\n[vssd]\ncapacity = \"512MiB\"")));
}

#[test]
fn thresholds_in_the_wrong_order_are_refused_both_ways() {
    assert_eq!(
        said("[collection]\nsoft = 0.2\nregular = 0.3"),
        "collection.soft: soft = 0.2 lies below regular = 0.3: it has to come first"
    );
    assert_eq!(
        said("[collection]\nsoft = 0.3\nstop = 0.3"),
        "collection.stop: stop = 0.3 is not above soft = 0.3: collection would not end"
    );
    assert_eq!(
        said("[collection]\nstop = 0.55\n[vssd]\ndata = 0.5"),
        "collection.stop: stop = 0.55 is never reached: with data = 0.5 at most 0.500 of the blocks are free"
    );
    plan(&with("[collection]\nsoft = 0.3\nregular = 0.3\nstop = 0.301"));
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    for (tables, expected) in [
        ("[vssd]\ngroup = 2", "vssd.group: `group` is valid only with isolation = software, not with hardware"),
        ("[vssd]\nrate = 5", "vssd.rate: `rate` is valid only with isolation = software, not with hardware"),
        (
            "[vssd]\nborrow = \"1GiB\"",
            "vssd.borrow: `borrow` is valid only with isolation = software, not with hardware",
        ),
        (
            "[flash]\nsuspension_limit = 3",
            "flash.suspension_limit: suspension is given by `suspension_overhead` and `suspension_limit` together, or by suspension_limit = 0 alone",
        ),
        ("[io]\nprofile = \"ycsb-a\"\nwrite_share = 0.5", "io.write_share: `write_share` is not valid with `profile`"),
        (
            "[io]\nrequests_per_second = 5.0",
            "io.requests_per_second: `requests_per_second` is valid only with arrivals = poisson or deterministic, not with closed",
        ),
        (
            "[io]\narrivals = \"poisson\"\nrequests_per_second = 5.0\ndepth = 3",
            "io.depth: `depth` is not valid with arrivals = poisson",
        ),
        ("[io]\ntime_scale = 2.0", "io.time_scale: `time_scale` is valid only with `trace` or `imitation`"),
        (
            "[membership]\nlease = \"50ms\"",
            "membership.lease: a lease of 50ms is not shorter than the 50ms after which a server counts as dead: two sets of replicas could serve",
        ),
        ("[collection]\nstreams = 9", "collection.streams: 9 is out of range; allowed is 1..=8"),
    ] {
        assert_eq!(said(tables), expected);
    }
    let vdc = SMALL.replace("\"rackblox\"", "\"vdc\"") + "[collection]\ncoordination = \"switch\"\n";
    assert!(complaint(&vdc).ends_with("collection.coordination: the design vdc has no switch that coordinates"));
}

#[test]
fn what_a_part_of_the_rack_would_refuse_is_refused_before_the_run() {
    // A lease within a beat would lapse between two signs of life.
    let short = said("[membership]\nlease = \"10ms\"");
    assert!(short.starts_with("membership.lease: ") && short.contains("10ms"), "{short}");
    let zero = said("[membership]\nclient_timeout = \"0ns\"");
    assert!(zero.starts_with("membership.client_timeout: "), "{zero}");
    let zero = said("[membership]\nresend = \"0ns\"");
    assert!(zero.starts_with("membership.resend: "), "{zero}");
    let zero = said("[membership]\nreplay = \"0ns\"");
    assert!(zero.starts_with("membership.replay: "), "{zero}");
    let runs = said("[io]\nwrite_share = 0.9\nwrite_run = 2.0");
    assert!(runs.starts_with("io: mix.write_run"), "{runs}");
}

#[test]
fn faults_of_servers_that_are_not_there_are_refused() {
    let fault = |keys: &str| said(&format!("[[fault]]\nat = \"1s\"\n{keys}"));
    assert_eq!(fault("kind = \"node-down\"\nnode = 4"), "fault.0.node: 4 is out of range; allowed is 0..=3");
    assert_eq!(fault("kind = \"switch-down\"\nnode = 0"), "fault.0.node: `node` is not valid with kind = switch-down");
    assert_eq!(
        fault("kind = \"switch-down\"\nswitch = 1"),
        "fault.0.switch: there is no switch 1: a rack of volumes has one, 0"
    );
    assert_eq!(fault("kind = \"link-corrupt\"\nnode = 0"), "fault.0.kind: corruption is modelled for design edm only");
    let missing = fault("kind = \"link-down\"");
    assert!(missing.contains("`node`") && missing.contains("a storage server with volumes"), "{missing}");
}

#[test]
fn tables_of_racks_of_another_kind_are_refused() {
    for table in ["fabric", "memory", "workload", "background", "wear"] {
        let needed = match table {
            "fabric" => "nodes = 4\nrate = \"1Gbps\"",
            "background" => "[[background.stream]]\nname = \"ip\"\nload = 0.1",
            _ => "",
        };
        let all = complaints(&with(&format!("[{table}]\n{needed}")));
        assert!(
            all.iter().any(|said| said.ends_with(&format!("{table}: `{table}` is not valid with the design rackblox"))),
            "{all:?}"
        );
    }
    for table in ["rack", "flash", "vssd", "scheduler", "collection", "controller", "membership", "io"] {
        let all = complaints(&format!("{}[{table}]\n", common::SMALL));
        assert!(
            all.iter().any(|said| said.ends_with(&format!("{table}: `{table}` is not valid with the design edm"))),
            "{all:?}"
        );
    }
}

#[test]
fn unknown_keys_words_and_units_are_named() {
    for (tables, parts) in [
        ("[rack]\nserver = 3", &["rack: unknown key `server`, did you mean `servers`?"][..]),
        ("[vssd]\ncapcity = \"1GiB\"", &["unknown key `capcity`, did you mean `capacity`?"]),
        ("[flash]\npreset = \"970\"", &["flash.preset: `970` is not allowed", "970-pro", "optane"]),
        ("[io]\nprofile = \"ycsb-g\"", &["io.profile: `ycsb-g` is not allowed", "ycsb-a"]),
        ("[scheduler]\npolicy = \"cfq\"", &["scheduler.policy: `cfq` is not allowed", "fifo, deadline, kyber"]),
        ("[rack]\nhost = 3", &["rack.host: `3` has no unit"]),
        ("[rack]\nhost = \"3B\"", &["rack.host: `3B` has the unit `B`"]),
        ("[vssd]\ncapacity = \"3us\"", &["vssd.capacity: `3us` has the unit `us`"]),
        ("[rack]\nservers = 1", &["rack.servers: 1 is out of range; allowed is 2..=64"]),
        ("[rack]\nbackground_load = 0.96", &["rack.background_load: 0.96 is out of range"]),
        ("[io]\nwrite_share = 1.1", &["io.write_share: 1.1 is out of range"]),
        ("[rack]\nrecirculation = \"2s\"", &["rack.recirculation"]),
    ] {
        let said = said(tables);
        parts.iter().for_each(|part| assert!(said.contains(part), "{said} lacks {part}"));
    }
}

#[test]
fn every_mistake_is_reported_at_once() {
    let many = "[vssd]\nper_ssd = 17\nwrite_cache = \"1B\"\n[collection]\nsoft = 0.1\n[membership]\nlease = \"1s\"\n[[fault]]\nat = \"1s\"\nkind = \"node-up\"\nnode = 77";
    assert_eq!(complaints(&with(many)).len(), 5, "{:#?}", complaints(&with(many)));
}

#[test]
fn what_is_probably_not_meant_is_warned_of_with_its_numbers() {
    let warned = |tables: &str, part: &str| {
        let plan = plan(&format!("title = \"rack\"\ndesign.name = \"rackblox\"\n{tables}\n"));
        assert!(plan.warnings.iter().any(|warning| warning.contains(part)), "{part}: {:#?}", plan.warnings);
    };
    warned("[run]\nrequests = 100\nwarm_up_requests = 10", "90 requests are measured, fewer than 1000");
    for (run, part) in [
        ("requests = 100\nwarm_up_requests = 100", "the warm-up of 100 requests is as long as the run of 100"),
        ("duration = \"1s\"\nwarm_up = \"1s\"", "the warm-up of 1s is as long as the run of 1s"),
    ] {
        let said = complaints(&format!("title = \"rack\"\ndesign.name = \"rackblox\"\n[run]\n{run}\n"));
        assert!(said.len() == 1 && said[0].contains(part) && said[0].contains(":5:"), "{said:?}");
    }
    warned("[run]\nduration = \"89s\"", "a run of 89s has fewer than 3 checks of the free blocks, one every 30s");
    warned("[rack]\nnetwork = \"none\"\n[run]\nrequests = 5000", "coordinated I/O scheduling has nothing to weigh");
    warned(
        "[io]\narrivals = \"poisson\"\nrequests_per_second = 1e9\n[run]\nrequests = 5000",
        "queues grow for as long as requests arrive",
    );
    warned(
        "[run]\nrequests = 5000\ndrain_limit = \"100ms\"",
        "drain_limit = 100ms is shorter than a client's wait of up to 2s",
    );
    warned("[rack]\nrecirculation = \"1ms\"\n[run]\nrequests = 5000", "answers to soft requests come too late");
    let calm = plan("title = \"rack\"\ndesign.name = \"rackblox\"\nrack.network = \"slow\"\nrun.requests = 100000\n");
    assert_eq!(calm.warnings, Vec::<String>::new());
}

const VALUES: [&str; 16] = [
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "0.0",
    "1e308",
    "nan",
    "true",
    "\"\"",
    "\"0ns\"",
    "\"18446744073709551615ps\"",
    "\"1TiB\"",
    "\"16000000TiB\"",
    "[]",
    "{}",
    "\"slow\"",
];

const KEYS: [&str; 30] = [
    "rack.servers",
    "rack.ssds",
    "rack.clients",
    "rack.rate",
    "rack.host",
    "rack.switch_queue",
    "rack.network_scale",
    "flash.pages_per_block",
    "flash.suspension_overhead",
    "vssd.per_ssd",
    "vssd.channels",
    "vssd.capacity",
    "vssd.data",
    "vssd.used_before",
    "vssd.write_cache",
    "vssd.flush_above",
    "vssd.device_depth",
    "scheduler.read_target",
    "scheduler.window",
    "collection.soft",
    "collection.stop",
    "collection.check_period",
    "collection.idle_alpha",
    "controller.period",
    "membership.heartbeat",
    "membership.misses",
    "membership.client_timeout",
    "membership.client_attempts",
    "io.theta",
    "run.drain_limit",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Panics are what this is about.
    #[test]
    fn no_value_in_the_place_of_another_panics(
        changes in prop::collection::vec((prop::sample::select(&KEYS[..]), prop::sample::select(&VALUES[..])), 1..4),
    ) {
        let changes: Vec<(String, String)> = changes.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        match parse("any.toml", SMALL, &NoFiles, &changes) {
            Ok(experiment) => experiment.points(None).iter().for_each(|point| {
                drop(point.plan.hash());
                prop_assert_eq_plans(&point.plan);
            }),
            Err(errors) => assert!(!errors.to_string().is_empty()),
        }
    }
}

fn prop_assert_eq_plans(plan: &plan::Plan) {
    assert_eq!(&common::plan(&plan.to_toml()), plan);
}
