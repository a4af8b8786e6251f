//! `rackweave trace`: what is in a recorded load.

use crate::support::Home;
use std::path::Path;

const SPC: &str = "0,0,4096,R,0.0\n0,8,4096,R,0.5\n1,0,8192,W,1.0\n0,100,512,r,2.0\n";

fn home() -> Home {
    Home::new().with("small.spc", SPC)
}

#[test]
fn a_trace_is_summed_up_with_its_format_told_from_its_lines() {
    let out = home().run("trace small.spc");
    let has = |line: &str| assert!(out.contains(line), "{line}: {out}");
    has("format      spc\n");
    has("requests    4 (75.00 % reads)\n");
    has("reads       3; bytes: mean 2901.3, least 512, median 4096, p90 4096, p99 4096, most 4096\n");
    has("span        2.000000 s\n");
    has("rate        2.0 requests/s, 0.008 MB/s\n");
    has("sequential  25.00 % begin where the last on their device has ended\n");
    has("footprint   0.020 MB in blocks of 4 KiB\n");
    assert!(out.lines().any(|line| line.split_whitespace().eq(["1", "0", "1", "8192", "8192"])), "{out}");
}

#[test]
fn json_says_the_same_for_programs() {
    let out = home().run("trace small.spc --json");
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&found["format"], &found["requests"]), (&"spc".into(), &4.into()));
    assert_eq!(found["devices"][1]["writes"], 1);
    assert_eq!(found["footprint"]["bytes"], 5 * 4096);
}

#[test]
fn bad_lines_are_named_skipped_as_allowed_and_reported() {
    let home = Home::new().with("bad.spc", "0,0,512,R,1.0\n0,0,512,X,1.1\n0,0,512,R,0.5\n0,0,512,R,2.0\n");
    home.say("trace bad.spc --format spc").refused(2, &["bad.spc:2: opcode `X` is not R or W"]);
    home.say("trace bad.spc --skip-bad 1").refused(2, &["bad.spc:3: time 0.5 comes after 1, it must not fall"]);
    let said = home.say("trace bad.spc --skip-bad 2");
    said.refused(0, &["warning: 2 bad lines were skipped", "bad.spc:2: opcode `X`", "bad.spc:3: time 0.5"]);
    assert!(said.out.contains("requests    2 "), "{}", said.out);
}

#[test]
fn requests_behind_a_later_one_are_put_in_order_with_a_warning_or_refused() {
    let text = "0,0,512,R,1.0\n0,0,512,R,0.9999999\n0,0,512,W,2.0\n";
    let home = Home::new().with("merged.spc", text);
    let said = home.say("trace merged.spc");
    said.refused(0, &["warning: merged.spc: 1 requests came behind a later one, and were put in order"]);
    assert!(said.out.contains("span        1.000000 s\n"), "{}", said.out);
    home.say("trace merged.spc --strict").refused(2, &["merged.spc:2: time 0.9999999 comes after 1"]);
}

#[test]
fn an_io_beyond_the_device_an_unknown_format_and_a_missing_file_are_bad_input() {
    let beyond = ["small.spc:4: address `51200 + 512` is not within the device of 51200 bytes"];
    home().say("trace small.spc --capacity 50KiB").refused(2, &beyond);
    assert!(home().run("trace small.spc --capacity 51712B").contains("requests    4 "));
    home()
        .say("trace small.spc --format umass")
        .refused(2, &["`umass` is no format of traces: allowed are mqsim, disksim, spc"]);
    home().say("trace none.spc").refused(2, &["none.spc: "]);
    let text = Home::new().with("notes.txt", "these are no requests\n");
    text.say("trace notes.txt")
        .refused(2, &["notes.txt:1: the format cannot be detected from `these are no requests`"]);
}

#[test]
fn real_traces_are_read_where_they_are_at_hand() {
    for (name, line) in [
        ("tpcc-small.trace", "requests    6999 (62.59 % reads)"),
        ("wsrch-small.trace", "requests    24783 (99.98 % reads)"),
    ] {
        let path = format!("{}/../../../shared/data/traces/{name}", env!("CARGO_MANIFEST_DIR"));
        if !Path::new(&path).exists() {
            eprintln!("skipped: {name} is not at hand");
            continue;
        }
        let out = Home::new().run(&format!("trace {path} --capacity 256GiB"));
        assert!(out.contains("format      mqsim\n") && out.contains(line), "{out}");
    }
}
