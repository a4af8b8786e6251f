//! What control costs a SAN by default, against the same network without it.

use base::Time;
use plan::Plan;
use record::{Row, Summary};
use sim::drive::Unobserved;
use sim::{RunOptions, run};

/// A file of a SAN whose defaults are on trial: `more` are lines of tables that are not here.
fn file(design: &str, fabric: &str, io: &str, more: &str) -> String {
    format!(
        "title = \"costs\"\ndesign.name = \"{design}\"\n[fabric]\nrate = \"100Gbps\"\n{fabric}\n[io]\n\
         write_share = 0.0\naddresses = \"uniform\"\narrivals = \"closed\"\n{io}\n{more}\n"
    )
}

fn plan(text: &str) -> Plan {
    let experiment = plan::parse("costs.toml", text, &plan::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

fn play(text: &str) -> (Summary, Vec<Row>) {
    let mut rows: Vec<Row> = Vec::new();
    let outcomes = run(&plan(text), &RunOptions::default(), &mut rows, &mut Unobserved);
    (outcomes.unwrap_or_else(|error| panic!("{error}")).summary, rows)
}

/// The mean latency of reads of one size at a depth of 1, of one drive, in nanoseconds.
fn alone(design: &str, size: &str, more: &str) -> f64 {
    let fabric = "kind = \"single-switch\"\nhosts = 1\ntargets = 1";
    let io = format!("size = \"{size}\"\ndepth = 1");
    let run = "[drives]\nper_target = 1\nmodel = \"quick\"\n[run]\nrequests = 400\nwarm_up_requests = 100\n";
    let rows = play(&file(design, fabric, &io, &format!("{run}{more}"))).1;
    rows.iter().map(|row| (row.end - row.intended).as_ns_f64()).sum::<f64>() / rows.len() as f64
}

/// Gigabits a second that reads of 128 KiB bring from the first millisecond on: 4 drives behind
/// each of two links of 200 Gb/s, which is what they read, to two hosts of 32 reads outstanding.
fn saturated(design: &str, more: &str) -> f64 {
    let fabric = "kind = \"single-switch\"\nhosts = 2\ntargets = 2\ntrunk = 2";
    let run = "[drives]\nper_target = 4\nmodel = \"quick\"\n[run]\nrequests = 3000\nwarm_up_requests = 0\n";
    let rows = play(&file(design, fabric, "size = \"128KiB\"\ndepth = 32", &format!("{run}{more}"))).1;
    let (from, to) = (Time::ms(1), Time::ms(8));
    let bytes: u64 = rows.iter().filter(|row| (from..to).contains(&row.end)).map(|row| row.bytes.count()).sum();
    bytes as f64 * 8.0 / (to - from).as_ns_f64()
}

/// The paper's ratio of 1 (Figure 18).
const RATIO_1: &str = "[reservation]\nover_commitment = [[0.0, 1.0]]\n";

#[test]
fn a_lone_read_takes_no_longer_with_control_than_without() {
    for size in ["4KiB", "128KiB"] {
        let (controlled, plain) = (alone("san", size, ""), alone("san-plain", size, ""));
        assert!(controlled < 1.03 * plain, "{size}: {controlled} ns with control, {plain} ns without");
    }
}

/// The paper, 5.5: a ratio of 1 "throttles the response traffic even if there is available
/// bandwidth".
#[test]
fn a_ratio_of_1_throttles_a_lone_read() {
    let (strict, plain) = (alone("san", "128KiB", RATIO_1), alone("san-plain", "128KiB", ""));
    assert!(strict > 1.3 * plain, "{strict} ns at a ratio of 1, {plain} ns without control");
}

#[test]
fn control_takes_nothing_of_a_saturated_network_after_the_first_millisecond() {
    let (controlled, plain) = (saturated("san", ""), saturated("san-plain", ""));
    assert!(plain > 300.0, "two links of 200 Gb/s: {plain} Gb/s");
    assert!(controlled > 0.97 * plain, "{controlled} Gb/s with control, {plain} Gb/s without");
}

/// Gimbal's constants are of a drive that reads 3.2 GB/s: its first rate on a quicker one takes
/// long to grow.
#[test]
fn the_published_rate_of_gimbal_holds_a_quicker_drive_back_for_longer_than_that() {
    let published = "[gimbal]\nrate_initial = \"8.388608Gbps\"\nrate_max = \"34.359738368Gbps\"\nslots = 8\n";
    let (published, known) = (saturated("san", published), saturated("san", ""));
    assert!(published < 0.6 * known, "{published} Gb/s from its first rate, {known} Gb/s from the drive's");
}
