//! Metrics of key-value stores on a box of SSDs: Scalio and its rivals.

super::metrics! {
    "Key-value stores"
    "The designs `scalio`, `leed`, `leed-ditto`, `nvme-of` and `nvme-of-offload`. An operation is a \
     GET or a PUT that ended."

    /// GETs that ended; a read-modify-write is one GET and one PUT.
    gets: Count ["operations"];
    /// PUTs that ended; a read-modify-write is one GET and one PUT.
    puts: Count ["operations"];
    /// GETs that a slot (Scalio) or an object (Ditto) answered, over GETs.
    cache_hit_ratio: Ratio ["ratio"];
    /// GETs that a slot (Scalio) or an object (Ditto) answered, over operations.
    absorbed_ratio: Ratio ["ratio"];
    /// Keys that were put into the cache.
    fills: Count ["keys"];
    /// Keys that Ditto took out of its cache for room.
    evictions: Count ["keys"];
    /// Operations of which no answer came.
    requests_unknown: Count ["operations"];
    /// GETs that gave up.
    gets_unavailable: Count ["operations"];
    /// Requests that clients sent again.
    requests_repeated: Count ["requests"];
    /// Writes that were under way when the JBOF stopped and are not there.
    writes_lost_in_crashes: Count ["writes"] whole "a crash counts whenever it was";
    /// Keys whose histories were judged.
    keys_checked: Count ["keys"] whole "a history is judged from its first operation";

    /// Reads that reached the drives over operations.
    ssd_reads_per_operation: Ratio ["ratio"];
    /// Writes that reached the drives over operations.
    ssd_writes_per_operation: Ratio ["ratio"];
    /// Writes that reached the drives over PUTs.
    ssd_writes_per_update: Ratio ["ratio"];
    /// Commands that reached the drives over operations.
    ssd_ios_per_operation: Ratio ["ratio"];
    /// Commands that reached the drives a second.
    ssd_iops: Ratio ["1/s"];
    /// Commands that reached the drives a second, over 500,000 for each drive.
    ssd_iops_of_peak_ratio: Ratio ["ratio"];
    /// Reads that the target in the adapter did, over operations.
    offloaded_reads_per_operation: Ratio ["ratio"];
    /// Segments that updates got from memory with their lock, without a read of the drives.
    segments_handed_over: Count ["segments"];
    /// Zones that Scalio's compaction won back.
    zones_reclaimed: Count ["zones"];
    /// Sectors that LEED's compaction won back.
    sectors_reclaimed: Count ["sectors"];

    /// Busy time of all cores over time; 100 is one core.
    server_cpu_percent: Ratio ["%"];
    /// Busy time of cores with SSDs and the store's own work over time; 100 is one core.
    flash_cores_percent: Ratio ["%"];
    /// Busy time of cores with the network over time; 100 is one core.
    network_cores_percent: Ratio ["%"];
    /// Busy time of cores with an NVMe-oF target in software over time; 100 is one core.
    target_percent: Ratio ["%"];
    /// Busy time of all cores over operations.
    server_cpu_ns_per_operation: Ratio ["ns"];
    /// Busy time of all cores by work: receive, send, submit, complete, memory, batch, control,
    /// target.
    server_cpu_work_s = "server_cpu_{work}_s": Count ["s"];
    /// Messages that the adapter of the JBOF began, a second.
    adapter_messages_per_second: Ratio ["1/s"];
    /// Messages that the adapter of the JBOF began over the most that it can begin.
    adapter_used_ratio: Ratio ["ratio"];
    /// One-sided messages to memory over operations; a check of a block is three.
    verbs_per_operation: Ratio ["ratio"];
    /// Compare-and-swaps on the index over operations.
    swaps_per_operation: Ratio ["ratio"];
    /// Compare-and-swaps that found another word.
    swaps_failed: Count ["operations"];
    /// Reads of a block that brought back what the block never was.
    torn_reads: Count ["reads"];

    /// Polls of a slot that another client was filling.
    waits: Count ["polls"];
    /// GETs that another GET of the same client answered, by `scalio.share_waits`.
    reads_shared: Count ["operations"];
    /// Misses without a slot to take.
    bypasses: Count ["operations"];
    /// GETs that began again because their slot was taken before.
    restarts_lost_race: Count ["operations"];
    /// GETs that began again because their slot was taken away meanwhile.
    restarts_evicted: Count ["operations"];
    /// GETs that began again because another client filled the same key.
    restarts_tie: Count ["operations"];
    /// GETs that began again because payload and word of a slot did not belong together.
    restarts_torn: Count ["operations"];
    /// GETs that began again because flash held something else.
    restarts_foreign: Count ["operations"];
    /// Segments and records whose checksum did not agree.
    reads_corrupt: Count ["reads"];
    /// PUTs that servers committed.
    updates: Count ["operations"];
    /// Groups in which servers committed PUTs.
    groups: Count ["groups"];
    /// PUTs that were committed at once, mean.
    updates_per_group: Ratio ["ratio"];
    /// Slots that servers emptied.
    invalidations: Count ["slots"];
    /// Compare-and-swaps that servers repeated to empty a slot.
    invalidation_retries: Count ["operations"];
    /// Most calls of one device that waited for tokens, with LEED.
    tokens_waiting_max: Highest ["calls"];
}
