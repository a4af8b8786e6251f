//! Metrics of storage networks, and of key-value stores on their volumes.

super::metrics! {
    "Storage networks"
    "The designs `san` and `san-plain`. `fault` metrics are of plans in which something breaks, \
     `key_value_` metrics of log-structured trees (`[stores]`), whose warm-up counts key-value \
     requests."

    /// Busy time over time of the cables, mean over directions.
    link_load_mean_fraction: Sample ["fraction"];
    /// Busy time over time of the busiest direction of a cable.
    link_load_max_fraction: Highest ["fraction"];
    /// Busy time over time of links between adapters or switches, mean over directions.
    fabric_link_load_mean_fraction: Sample ["fraction"];
    /// Busy time over time of the busiest direction of a link between adapters or switches.
    fabric_link_load_max_fraction: Highest ["fraction"];
    /// Commands that took a shortest path over all commands.
    ways_shortest_fraction: Ratio ["fraction"];
    /// Hops that commands passed, mean.
    way_mean_hops: Ratio ["hops"];
    /// Packets lost on cut links.
    packets_lost_on_wires: Count ["packets"];
    /// Links that packets crossed.
    link_crossings: Count ["crossings"];
    /// Most packets on links at a time.
    in_flight_packets_max: Highest ["packets"];
    /// Bytes that reached targets, as their cards count: without preamble, gap and check sequence.
    target_in_bytes: Count ["B"];
    /// Bytes that left targets, as their cards count: without preamble, gap and check sequence.
    target_out_bytes: Count ["B"];

    /// Packets that a hop dropped because its buffer was full.
    hop_dropped_full: Count ["packets"];
    /// Packets that a hop dropped because it knew no route.
    hop_dropped_no_route: Count ["packets"];
    /// Packets that a hop dropped because their trail had no room.
    hop_dropped_trail_full: Count ["packets"];
    /// Commands whose reservation a hop refused.
    reservations_rejected: Count ["commands"];
    /// Commands that a hop knew no route for.
    commands_unreachable: Count ["commands"];
    /// Answers that left the path of their command.
    answers_detoured: Count ["packets"];
    /// Packets that a hop marked for congestion.
    packets_marked: Count ["packets"];
    /// Answers that the policer of a port held.
    answers_held_by_policer: Count ["packets"];
    /// Messages of routing that hops sent.
    distances_told: Count ["messages"];
    /// Most bytes of frames that queued at one port.
    hop_queue_max_bytes: Highest ["B"];
    /// Most bytes of frames that the policer of one port held.
    hop_held_max_bytes: Highest ["B"];
    /// Pause frames that hops sent.
    pause_frames: Count ["frames"];
    /// Most bytes that one hop held of what came in by one port, with flow control.
    hop_ingress_max_bytes: Highest ["B"];
    /// Links that carry no data any more because each waits for the next.
    pfc_deadlocked_links: Highest ["links"] whole "a deadlock lasts until the end";

    /// Commands in a drive, mean over time and drives.
    drive_depth_mean: Sample ["commands"];
    /// Commands in a drive, mean over time, of the fullest drive.
    drive_depth_max: Highest ["commands"];
    /// Commands that drives served.
    drive_commands: Count ["commands"];
    /// Time of a command in its drive, mean.
    drive_time_mean_us: Ratio ["us"];
    /// Bytes that hosts read from drives.
    drive_read_bytes: Count ["B"];
    /// Bytes that hosts wrote to drives.
    drive_written_bytes: Count ["B"];
    /// Commands beyond the end of their drive.
    drive_commands_refused: Count ["commands"] whole "a broken rule is a defect at any time";
    /// Drives of the network.
    drives: Fixed ["drives"];

    /// Commands that a hop refused, as hosts count.
    host_commands_rejected: Count ["commands"];
    /// Commands that a hop knew no route for, as hosts count.
    host_commands_unreachable: Count ["commands"];
    /// Commands that the target gave up, as hosts count.
    host_commands_aborted: Count ["commands"];
    /// Commands without an answer in time.
    host_timeouts: Count ["commands"];
    /// Answers of which a part was missing, and writes of whose data the target said so.
    host_gaps: Count ["commands"];
    /// Associations that failed.
    host_path_failures: Count ["associations"];
    /// I/Os that were sent again under another association.
    host_retries: Count ["I/Os"];
    /// Packets that no request of the host waited for.
    host_packets_stale: Count ["packets"];
    /// Commands that reached their target for the first time.
    target_commands: Count ["commands"];
    /// Copies of commands and data that targets did not execute.
    target_duplicates: Count ["packets"];
    /// Packets of an association or an identifier that was no longer valid at the target.
    target_packets_late: Count ["packets"];
    /// Packets of a session or a command that the target did not know.
    target_packets_unknown: Count ["packets"];
    /// Commands that targets refused or gave up.
    target_commands_aborted: Count ["commands"];
    /// Commands that targets answered with the failure of their drive.
    target_commands_failed: Count ["commands"];
    /// Credit of a session at the end, mean over all pairs of a host and a drive.
    credit_mean: State ["commands"];
    /// Least credit of a session at the end.
    credit_min: Lowest ["commands"] whole "it is what the run ends with";

    /// Mean latency of reads of a size, rounded up to a power of two, where sizes differ.
    read_bytes_latency_mean_ns = "read_{bytes}_bytes_latency_mean_ns": Sample ["ns"];
    /// Mean latency of writes of a size, rounded up to a power of two, where sizes differ.
    write_bytes_latency_mean_ns = "write_{bytes}_bytes_latency_mean_ns": Sample ["ns"];

    /// Mean latency of reads from their first send: without the wait for credit at their host.
    read_from_send_mean_ns: Sample ["ns"];
    /// Mean latency of writes from their first send.
    write_from_send_mean_ns: Sample ["ns"];
    /// The same of reads of a size, rounded up to a power of two, where sizes differ.
    read_bytes_from_send_mean_ns = "read_{bytes}_bytes_from_send_mean_ns": Sample ["ns"];
    /// The same of writes of a size, rounded up to a power of two, where sizes differ.
    write_bytes_from_send_mean_ns = "write_{bytes}_bytes_from_send_mean_ns": Sample ["ns"];

    /// I/Os that were sent again, or failed, because of the first fault.
    fault_affected: Count ["I/Os"] whole "it begins with the fault";
    /// Time from the first fault to the end of the last I/O that it hit.
    fault_recovery_us: Sample ["us"] whole "it begins with the fault";
    /// Throughput lost: 1 - (mean of the millisecond after the fault / mean of the two before).
    fault_drop_fraction: Sample ["fraction"] whole "it begins with the fault";
    /// The same of the worst 100 us after the fault.
    fault_deepest_drop_fraction: Highest ["fraction"] whole "it begins with the fault";

    /// Reads that found what an acknowledged write had replaced.
    write_order_violations: Count ["reads"] whole "a violation in the warm-up is one";
    /// Reads that were judged by the order of writes.
    write_order_reads_judged: Count ["reads"] whole "reads are judged from the first write";

    /// Price of the network, by the example of the paper: ports of storage nodes (Table 1).
    fabric_cost_usd: Fixed ["USD"];
    /// Price of the network by the formula of the paper: as many ports again for clients.
    fabric_cost_by_formula_usd: Fixed ["USD"];
    /// Ports of storage nodes.
    fabric_storage_ports: Fixed ["ports"];

    /// Key-value requests a second, from the begin of the first to the end of the last.
    key_value_requests_per_s: Sample ["1/s"];
    /// Bytes written to drives (log, flushes, compactions) over bytes of updates; 0 without any.
    key_value_write_amplification: Sample ["ratio"];
    /// Writers that waited for a flush or a compaction.
    key_value_write_stalls: Count ["waits"];
    /// Key-value requests of a kind that have ended; `request` is all kinds.
    key_value_kinds = "key_value_{kind}s": Count ["requests"];
    /// I/Os of a key-value request of a kind, mean.
    key_value_kind_ios = "key_value_{kind}_ios": Sample ["I/Os"];
    /// Mean time of a key-value request of a kind, from its begin to the end of its last I/O.
    key_value_kind_mean_ns = "key_value_{kind}_mean_ns": Sample ["ns"];
    /// Median time of a key-value request of a kind.
    key_value_kind_p50_ns = "key_value_{kind}_p50_ns": Percentile ["ns"];
    /// 99th percentile of the time of a key-value request of a kind.
    key_value_kind_p99_ns = "key_value_{kind}_p99_ns": Percentile ["ns"];
    /// 99.9th percentile of the time of a key-value request of a kind.
    key_value_kind_p999_ns = "key_value_{kind}_p999_ns": Percentile ["ns"];
}
