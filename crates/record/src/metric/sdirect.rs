//! Metrics of a machine whose NIC drives its NVMe devices: S-Direct and its rivals.

super::metrics! {
    "A NIC that drives devices"
    "The designs `s-direct`, `linux`, `spdk` and `target-offload`."

    /// Bytes of data and queue entries that the host's memory took and gave.
    host_memory_bytes: Count ["B"];
    /// Bytes of data between PCIe switch and root complex, both directions.
    root_link_data_bytes: Count ["B"];
    /// Bytes between PCIe switch and root complex with headers, both directions.
    root_link_wire_bytes: Count ["B"];
    /// Busy time of the link between PCIe switch and root complex, of the busier direction.
    root_link_busy_s: Sample ["s"];
    /// Bytes of data between NIC and PCIe switch, both directions.
    nic_link_data_bytes: Count ["B"];
    /// Bytes that the network carried.
    network_bytes: Count ["B"];
    /// Requests that failed.
    requests_failed: Count ["requests"];
    /// Commands that clients sent again.
    commands_repeated: Count ["commands"];
    /// Time of the machine's cores; of a core that polls, all of it.
    host_cpu_s: Count ["s"];
    /// Time of the machine's cores by work: submission, doorbell, interrupt, poll, completion,
    /// context_switch.
    host_cpu_work_s = "host_cpu_{work}_s": Count ["s"];
    /// Most bytes of data on the NIC at a time.
    nic_memory_highest_bytes: Highest ["B"];
    /// Most bytes in one FIFO over its size.
    fifo_highest_ratio: Highest ["ratio"];
    /// Doorbells that were rung.
    doorbells: Count ["doorbells"];
    /// Commands that the NIC refused.
    commands_refused: Count ["commands"];
    /// Data and completions that belong to no command.
    strays: Count ["messages"];
}
