//! Does the machine with devices run, is its model right, and do all designs keep what they
//! promise?

use base::{Bytes, Rate, Span, Time};
use plan::{NoFiles, Plan};
use record::{Outcome, Row, SpanKind};
use sim::drive::{Outcomes, Unobserved};
use sim::{RunOptions, run};

const SMALL: &str = "title = 'devices'\nmachine.blocks_per_plane = 16\nrun.warm_up = '0ns'\n";
const DESIGNS: [&str; 4] = ["s-direct", "linux", "spdk", "target-offload"];

fn plan(keys: &str) -> Plan {
    let design = if keys.contains("design.name") { "" } else { "design.name = 's-direct'\n" };
    let requests = if keys.contains("run.requests") { "" } else { "run.requests = 400\n" };
    let text = format!("{SMALL}{design}{requests}{keys}\n");
    let experiment =
        plan::parse("small.toml", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    experiment.points(None).remove(0).plan
}

fn of(design: &str, keys: &str) -> Plan {
    plan(&format!("{keys}\ndesign.name = '{design}'"))
}

/// Every request ends once, and its spans sum to its latency.
fn play(plan: &Plan) -> (Vec<Row>, Outcomes) {
    let mut rows: Vec<Row> = Vec::new();
    let outcomes = run(plan, &RunOptions::default(), &mut rows, &mut Unobserved).expect("a sound plan");
    assert_eq!(rows.len() as u64, outcomes.summary.counts.offered);
    for row in &rows {
        assert_eq!(row.spans.total(), row.end - row.intended, "{row:?}");
    }
    (rows, outcomes)
}

fn finished(plan: &Plan) -> (Vec<Row>, Outcomes) {
    let (rows, outcomes) = play(plan);
    assert!(rows.iter().all(|row| row.outcome == Outcome::Finished), "{:?}", outcomes.summary.counts);
    (rows, outcomes)
}

fn metric(outcomes: &Outcomes, name: &str) -> f64 {
    *outcomes.summary.metrics.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", outcomes.summary.metrics))
}

/// Data and overhead of so many packets on a PCIe link of four lanes.
fn link(data: u64, packets: u64) -> Span {
    Rate::bps(31_520_000_000).span_of(Bytes::new(data + packets * 24))
}

const ALONE: &str = "io.arrivals = 'closed'\nio.depth = 1";

#[test]
fn a_read_alone_takes_logic_queue_entries_flash_and_transfer() {
    let (rows, _) = finished(&plan(ALONE));
    // Two links each way, the NIC's twice as fast: a transfer ends with the slower. 300 ns of logic
    // for the command, and for the completion.
    let hop = Span::ns(110) * 2;
    let way = Span::ns(600) + (link(4, 1) + hop) + (link(0, 1) + hop) + (link(64, 1) + hop) + (link(4_096, 16) + hop);
    // The completion leaves behind the data.
    let completion = link(16, 1);
    for row in &rows {
        let flash = row.spans.get(SpanKind::Flash);
        assert_eq!(row.latency(), way + completion + flash, "{row:?}");
        assert_eq!(row.spans.get(SpanKind::Stack), Span::ns(600));
        assert!(flash > Span::us(60) && flash < Span::us(90), "{flash}");
    }
}

#[test]
fn software_alone_adds_its_own_costs() {
    let (rows, _) = finished(&of("linux", ALONE));
    // Submission, completion and context switch are its own; doorbell and handler are the core's
    // for all.
    assert!(rows.iter().all(|row| row.spans.get(SpanKind::Stack) == Span::ns(1_500 + 700 + 1_400)));
    assert!(rows.iter().all(|row| row.spans.get(SpanKind::StorageQueue) == Span::ns(100 + 700)));
}

/// Nothing else is underway that could fill the batch: a lone read takes its costs alone, and a
/// doorbell each.
#[test]
fn a_lone_command_does_not_wait_for_a_batch() {
    let (rows, outcomes) = finished(&of("spdk", &format!("{ALONE}\nsoftware.batch_time = '500us'")));
    assert!(rows.iter().all(|row| row.spans.get(SpanKind::StorageQueue) < Span::us(5)));
    assert_eq!(metric(&outcomes, "doorbells"), 400.0);
}

#[test]
fn a_depth_of_a_batch_rings_once_for_all() {
    let (rows, full) = finished(&of("spdk", "io.depth = 128\nsoftware.batch_time = '100ms'\nrun.requests = 1280"));
    assert_eq!(metric(&full, "doorbells"), 10.0);
    assert!(rows.iter().all(|row| row.latency() < Span::ms(2)));
}

#[test]
fn every_design_serves_clients_here_and_elsewhere_and_the_same_seed_gives_the_same_rows() {
    for design in DESIGNS {
        for remote in [false, true] {
            let keys = format!(
                "clients.remote = {remote}\nclients.count = 2\nmachine.devices = 3\nio.write_share = 0.5\ntask.bytes = '16KiB'\nio.arrivals = 'poisson'\n\
                 io.requests_per_second = 50000.0"
            );
            let plan = of(design, &keys);
            let (rows, _) = finished(&plan);
            assert_eq!(rows, play(&plan).0, "{design}");
        }
    }
}

#[test]
fn only_software_uses_cores_and_only_buffers_in_memory_use_memory() {
    let keys = "clients.remote = true\nmachine.devices = 2\nio.arrivals = 'poisson'\nio.requests_per_second = 20000.0";
    for (design, uses_cores, memory_accesses) in
        [("s-direct", false, 0.0), ("target-offload", false, 2.0), ("linux", true, 2.0), ("spdk", true, 2.0)]
    {
        let (rows, outcomes) = finished(&of(design, keys));
        let data = rows.len() as f64 * 4_096.0;
        assert_eq!(metric(&outcomes, "host_cpu_s") > 0.0, uses_cores, "{design}");
        // Capsules and answers of software pass through memory too: less than a tenth.
        let accesses = metric(&outcomes, "host_memory_bytes") / data;
        assert!((memory_accesses..memory_accesses + 0.1).contains(&accesses), "{design}: {accesses}");
        assert_eq!(metric(&outcomes, "root_link_data_bytes") > 0.0, memory_accesses > 0.0, "{design}");
    }
}

#[test]
fn encoding_every_message_changes_no_row() {
    for design in DESIGNS {
        let keys =
            "clients.remote = true\nmachine.devices = 2\nio.write_share = 0.5\ntask.bytes = '8KiB'\nio.depth = 4";
        let plan = of(design, keys);
        let mut rows: Vec<Row> = Vec::new();
        let options = RunOptions { wire_check: true, ..RunOptions::default() };
        run(&plan, &options, &mut rows, &mut Unobserved).expect("a sound plan");
        assert_eq!(rows, play(&plan).0, "{design}");
    }
}

#[test]
fn commands_between_devices_leave_network_and_memory_alone() {
    for (task, reads_and_writes) in [("'copy'", 2.0), ("'replicate'\ntask.targets = 3", 4.0), ("'add-write'", 3.0)] {
        let keys = format!(
            "machine.devices = 4\nclients.remote = true\ntask.bytes = '16KiB'\nio.depth = 4\ntask.kind = {task}"
        );
        let (rows, outcomes) = finished(&plan(&keys));
        assert_eq!(metric(&outcomes, "doorbells"), rows.len() as f64 * reads_and_writes, "{task}");
        assert_eq!(metric(&outcomes, "host_memory_bytes") + metric(&outcomes, "root_link_data_bytes"), 0.0, "{task}");
        // A command and an answer.
        assert_eq!(metric(&outcomes, "network_bytes"), rows.len() as f64 * (92.0 + 64.0 + 92.0 + 16.0), "{task}");
        assert!(metric(&outcomes, "fifo_highest_ratio") <= 1.0);
    }
}

#[test]
fn lost_packets_cost_time_and_no_request() {
    for share in ["0.0", "1.0"] {
        let keys = format!(
            "clients.remote = true\nclients.loss_percent = 3.0\nclients.timeout = '2ms'\nclients.attempts = 20\nio.write_share = {share}\ntask.bytes = '16KiB'\nio.depth = 8"
        );
        let (_, outcomes) = finished(&plan(&keys));
        assert!(outcomes.summary.counts.dropped_packets > 20, "{:?}", outcomes.summary.counts);
        assert!(metric(&outcomes, "commands_repeated") > 5.0);
    }
}

#[test]
fn a_client_that_gets_no_answer_gives_up() {
    let keys = "clients.remote = true\nclients.loss_percent = 50.0\nclients.timeout = '1ms'\nclients.attempts = 2\nio.depth = 8";
    let (rows, _) = play(&plan(keys));
    let lost = rows.iter().filter(|row| row.outcome == Outcome::TimedOut).count();
    assert!(lost > 20 && lost < rows.len(), "{lost} of {}", rows.len());
}

#[test]
fn a_devices_controller_begins_no_more_commands_than_it_can() {
    for design in DESIGNS {
        let keys = "io.depth = 256\nmachine.commands_per_second = 100000\nrun.requests = 5000";
        let (rows, _) = finished(&of(design, keys));
        let last = rows.iter().map(|row| row.end).max().expect("there are rows");
        let rate = rows.len() as f64 / (last - Time::ZERO).as_secs_f64();
        assert!((95_000.0..=100_000.0).contains(&rate), "{design}: {rate}");
    }
}
