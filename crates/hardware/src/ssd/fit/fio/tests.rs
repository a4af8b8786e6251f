//! Files of fio, whole and broken. The template is trimmed from a run of fio 3.33.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// A job of random reads of 4 KiB at this depth, with latencies that go with it.
fn job(name: &str, group: u32, depth: u32) -> Value {
    json!({
        "jobname": name, "groupid": group, "error": 0,
        "job options": { "iodepth": depth.to_string() },
        "read": {
            "bw": 40000, "iops": 10_000.0, "runtime": 1002, "total_ios": 10020,
            "clat_ns": { "mean": 1.0 }, "lat_ns": { "mean": 100_000.0 * f64::from(depth), "N": 10020 }
        },
        "write": { "bw": 0, "iops": 0.0, "runtime": 0, "lat_ns": { "mean": 0.0, "N": 0 } }
    })
}

fn file(jobs: Vec<Value>) -> Value {
    json!({
        "fio version": "fio-3.33",
        "global options": { "rw": "randread", "bs": "4k", "direct": "1", "ioengine": "libaio" },
        "jobs": jobs
    })
}

fn read(file: &Value) -> Result<FioRun, FioError> {
    read_fio(file.to_string().as_bytes())
}

fn refused(file: &Value) -> String {
    read(file).expect_err("the file is wrong").to_string()
}

/// A file of one job, changed at a path.
fn changed(path: &str, value: Value) -> Value {
    let mut file = file(vec![job("qd1", 0, 1)]);
    let place = file.pointer_mut(path).unwrap_or_else(|| panic!("{path} is in the template"));
    *place = value;
    file
}

#[test]
fn a_sweep_in_one_file_is_a_point_for_each_job() {
    let run = read(&file(vec![job("qd1", 0, 1), job("qd16", 1, 16)])).expect("the file is whole");
    assert_eq!((run.version.as_str(), run.warnings.len()), ("fio-3.33", 0));
    let load = |depth| ClosedLoad { read_share: 1.0, bytes: Bytes::kib(4), depth };
    let point = |name: &str, depth| FitPoint {
        name: name.into(),
        load: load(depth),
        iops: 10_000.0,
        latency: Span::us(100) * u64::from(depth),
    };
    assert_eq!(run.points, [point("qd1", 1), point("qd16", 16)]);
}

#[test]
fn jobs_of_one_group_ran_together_and_are_one_point() {
    let run = read(&file(vec![job("x", 0, 8), job("x", 0, 8)])).expect("the file is whole");
    assert_eq!(run.points.len(), 1);
    assert_eq!((run.points[0].load.depth, run.points[0].iops), (16, 20_000.0));
    // The same with --group_reporting: fio has summed, and says how many there were.
    let mut summed = job("x", 0, 8);
    summed["job options"]["numjobs"] = json!("2");
    summed["read"]["iops"] = json!(20_000.0);
    assert_eq!(read(&file(vec![summed])).expect("the file is whole").points, run.points);
}

#[test]
fn jobs_that_differ_must_not_run_together() {
    let mut larger = job("large", 0, 1);
    larger["job options"]["bs"] = json!("8k");
    let error = refused(&file(vec![job("small", 0, 1), larger]));
    assert!(
        error.starts_with("jobs[1] (large): ran together with small (randread, 4KiB) but is randread, 8KiB"),
        "{error}"
    );
}

#[test]
fn a_mix_is_one_point_with_the_share_of_reads_that_came_of_it() {
    let mut mixed = job("mix", 0, 2);
    mixed["job options"]["rw"] = json!("randrw");
    mixed["read"]["iops"] = json!(7_500.0);
    mixed["write"] = json!({ "iops": 2_500.0, "runtime": 1000, "lat_ns": { "mean": 200_000.0 } });
    let run = read(&file(vec![mixed])).expect("the file is whole");
    assert_eq!((run.points[0].load.read_share, run.points[0].iops), (0.75, 10_000.0));
}

#[test]
fn what_is_missing_or_of_another_kind_is_named_with_its_place() {
    for (path, value, words) in [
        ("/jobs", json!([]), "jobs: no job"),
        ("/jobs", json!("none"), "jobs: \"none\", and a list is needed"),
        ("/jobs/0/read", json!({}), "jobs[0] (qd1).read: `iops` is missing"),
        ("/jobs/0/read/iops", json!("fast"), "jobs[0] (qd1).read.iops: \"fast\", and a number is needed"),
        ("/jobs/0/read/iops", json!(-1.0), "jobs[0] (qd1).read.iops: -1, and at least 0 is needed"),
        ("/jobs/0/read/iops", json!(0), "jobs[0] (qd1): no read and no write was done"),
        ("/jobs/0/read/runtime", json!(0), "jobs[0] (qd1).read.runtime: 0 ms"),
        ("/jobs/0/read/lat_ns", json!({}), "jobs[0] (qd1).read.lat_ns: `mean` is missing"),
        ("/jobs/0/read/lat_ns/mean", json!(0), "jobs[0] (qd1).read.lat_ns.mean: 0 ns"),
        ("/jobs/0/error", json!(5), "jobs[0] (qd1).error: the job failed with error 5"),
        ("/jobs/0/job options/iodepth", json!("0"), "jobs[0] (qd1).job options.iodepth: `0`"),
        ("/jobs/0/job options/iodepth", json!(4), "jobs[0] (qd1).job options.iodepth: 4, and a text"),
        (
            "/global options/rw",
            json!("read"),
            "global options.rw: the pattern `read` cannot be fitted; needed is randread",
        ),
        ("/global options/bs", json!("4k,8k"), "global options.bs: the size `4k,8k` cannot be fitted"),
        ("/global options/bs", json!("17m"), "global options.bs: the size `17m` cannot be fitted"),
        ("/global options", json!({ "direct": "1" }), "jobs[0] (qd1): no option `rw`"),
        (
            "/global options",
            json!({ "rw": "randread", "random_distribution": "zipf:1.2" }),
            "the model draws addresses evenly",
        ),
    ] {
        let error = refused(&changed(path, value));
        assert!(error.contains(words), "{words}: {error}");
    }
    let old = json!({ "iops": 10_000.0, "runtime": 1000, "lat": { "mean": 100.0 } });
    assert!(refused(&changed("/jobs/0/read", old)).contains("since version 3.0"));
}

#[test]
fn text_before_the_json_is_named_with_the_remedy() {
    let text = format!("note: both iodepth >= 1 and synchronous I/O engine are selected\n{}", file(vec![]));
    let error = read_fio(text.as_bytes()).expect_err("a note is no JSON").to_string();
    assert!(error.starts_with("line 1 column 2: ") && error.contains("--output=FILE"), "{error}");
}

#[test]
fn a_depth_that_was_not_kept_is_an_error_and_one_that_nearly_was_is_none() {
    let kept = |share: f64| changed("/jobs/0/read/lat_ns/mean", json!(100_000.0 * share));
    assert!(read(&kept(0.86)).is_ok() && read(&kept(1.09)).is_ok());
    assert!(refused(&kept(0.84)).contains("0.84 commands were in flight on average"));
    assert!(refused(&kept(1.11)).contains("1.11 commands were in flight on average"));
}

#[test]
fn reads_that_the_page_cache_may_have_answered_are_warned_of() {
    let warnings = |value| read(&changed("/global options", value)).expect("the file is whole").warnings;
    assert_eq!(warnings(json!({ "rw": "randread", "buffered": "0" })).len(), 0);
    assert!(warnings(json!({ "rw": "randread" }))[0].starts_with("qd1: neither direct=1 nor buffered=0"));
}

#[test]
fn points_of_one_name_are_told_apart() {
    let run = read(&file(vec![job("x", 0, 1), job("y", 1, 1), job("x", 2, 4)])).expect("the file is whole");
    let names: Vec<&str> = run.points.iter().map(|point| point.name.as_str()).collect();
    assert_eq!(names, ["x#1", "y", "x#2"]);
}

#[test]
fn sizes_are_read_as_fio_writes_them() {
    for (text, bytes) in [("4096", Some(4096)), ("4k", Some(4096)), ("4KiB", Some(4096)), ("1M", Some(1 << 20))] {
        assert_eq!(size(text), bytes.map(Bytes::new), "{text}");
    }
    for text in ["", "k", "4k,4k", "4k-8k", "99999999999999999999", "18446744073709551615m", "4 g"] {
        assert_eq!(size(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn no_damage_to_a_file_panics(cut in 0usize..900, put in any::<u8>()) {
        let mut bytes = file(vec![job("qd1", 0, 1)]).to_string().into_bytes();
        let place = cut % bytes.len();
        bytes[place] = put;
        let _ = read_fio(bytes.as_slice());
        let _ = read_fio(&bytes[..place]);
    }
}
