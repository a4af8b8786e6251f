//! Metrics of memory messages over Ethernet: EDM and its rivals.

super::metrics! {
    "Memory messages"
    "The design `edm`, also as the carrier of a key-value store, and the rivals that send packets. \
     `background_` metrics are of ordinary frames (`[background]`), `matching_` metrics of \
     `edm.matching_trials`."

    /// Most notifications that waited for one target port of the switch.
    longest_notification_queue: Highest ["notifications"];
    /// Iterations of the switch's matching.
    matching_iterations: Count ["iterations"];
    /// Longest time that granted data waited for a downlink.
    longest_data_wait_at_switch_ns: Highest ["ns"];
    /// Longest time that a forwarded request waited for a downlink.
    longest_request_wait_at_switch_ns: Highest ["ns"];
    /// Messages that broke a rule of the protocol, as the switch noticed.
    protocol_violations: Count ["messages"] whole "a broken rule is a defect at any time";
    /// Messages that reached a node which did not expect them.
    unexpected_messages: Count ["messages"] whole "a broken rule is a defect at any time";
    /// Bits of the fields of notifications over bits of the data that they announced; absent if
    /// nothing was announced.
    notification_bits_per_data_bit: Sample ["ratio"];

    /// Writes a microsecond that the uplinks of the nodes which ask were sending, requests and
    /// notifications included: what the direction of the requests could carry if answers cost
    /// nothing. By the shares of the mix. Of the pattern `role-split` only.
    uplink_write_rate: Sample ["1/us"] whole "links count from the begin of the run";

    /// Frames that hosts handed to their MAC.
    background_frames_sent: Count ["frames"];
    /// Frames that reached their receiver.
    background_frames_delivered: Count ["frames"];
    /// Frames that full queues and dead links dropped.
    background_frames_dropped: Count ["frames"];
    /// Frames that had not arrived when the run ended.
    background_frames_under_way: State ["frames"];
    /// Frames that arrived behind a later one of the same pair of nodes.
    background_frames_out_of_order: Count ["frames"];
    /// Bits of frames that arrived, a second up to the last arrival and a node.
    background_delivered_gbps_per_node: Ratio ["Gb/s"];
    /// Mean latency of the frames of a stream that were sent after the warm-up.
    background_stream_latency_mean_ns = "background_{stream}_latency_mean_ns": Sample ["ns"];
    /// 99th percentile of the latency of the frames of a stream that were sent after the warm-up.
    background_stream_latency_p99_ns = "background_{stream}_latency_p99_ns": Percentile ["ns"];
    /// Most bytes of frames that waited in one host, the frame on the line included.
    background_longest_host_queue_bytes: Highest ["B"];
    /// Most bytes of frames that waited at one port of the switch, the frame on the line included.
    background_longest_egress_queue_bytes: Highest ["B"];

    /// Iterations until a matching of random demands is maximal, mean over trials.
    matching_iterations_to_maximal: Fixed ["iterations"];
    /// Iterations until a matching has 99 % of the pairs of the maximal one, mean over trials.
    matching_iterations_to_99_percent: Fixed ["iterations"];
    /// Time until a matching of random demands is maximal, mean over trials.
    matching_latency_ns: Fixed ["ns"];
    /// Time until a matching has 99 % of the pairs of the maximal one, mean over trials.
    matching_latency_to_99_percent_ns: Fixed ["ns"];
    /// Ports that the maximal matching has matched over all ports, mean over trials.
    matching_matched_fraction: Fixed ["fraction"];

    /// Packets that rivals sent again.
    retransmitted_packets: Count ["packets"];
    /// Packets that reached their host.
    received_packets: Count ["packets"];
}
