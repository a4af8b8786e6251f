//! Metrics of volumes on software-defined flash: RackBlox and its rivals.

super::metrics! {
    "Volumes on software-defined flash"
    "The designs `rackblox`, `rackblox-software` and `vdc`. Servers, drives and channels count from \
     0. Drives of the other rack are left out, except in counts of writes. `swap` metrics are of \
     plans with `[[swap]]`."

    /// Pages programmed (host writes, relocation, padding, swaps) over pages that servers wrote; 1
    /// if they wrote none.
    write_amplification: Ratio ["ratio"];
    /// Blocks erased.
    erases: Count ["blocks"];
    /// Bytes that hosts can write: flash x 3,000 erases / write amplification, in 10^12 B.
    endurance_tbw: Sample ["TB"];
    /// Drive writes a day for five years: endurance / (capacity x 365 x 5).
    endurance_dwpd_5_years: Sample ["1/day"];
    /// Reads, programs and erases of collection.
    collection_steps: Count ["operations"];
    /// Time that collection kept dies busy, summed over dies.
    collection_flash_ms: Count ["ms"];
    /// Writes that found no free block.
    flash_write_stalls: Count ["writes"];
    /// Most erases of one block of all drives, preparation included.
    wear_erases_max: Highest ["erases"] whole "wear accumulates over the life of a drive";
    /// Most less least erases of a block of all drives, preparation included.
    wear_erases_spread: Highest ["erases"] whole "wear accumulates over the life of a drive";
    /// Busy time of a channel that virtual drives use, over time.
    server_ssd_channel_utilisation_fraction
        = "server_{server}_ssd_{ssd}_channel_{channel}_utilisation_fraction": Ratio ["fraction"];
    /// Busy time over time of the least busy channel of a server.
    server_channel_utilisation_min_fraction
        = "server_{server}_channel_utilisation_min_fraction": Lowest ["fraction"];
    /// Busy time over time, mean of the channels of a server.
    server_channel_utilisation_mean_fraction
        = "server_{server}_channel_utilisation_mean_fraction": Sample ["fraction"];
    /// Busy time over time of the busiest channel of a server.
    server_channel_utilisation_max_fraction
        = "server_{server}_channel_utilisation_max_fraction": Highest ["fraction"];
    /// Busy time over time of the least busy channel.
    channel_utilisation_min_fraction: Lowest ["fraction"];
    /// Busy time over time, mean of all channels.
    channel_utilisation_mean_fraction: Sample ["fraction"];
    /// Busy time over time of the busiest channel.
    channel_utilisation_max_fraction: Highest ["fraction"];
    /// Time that collection and swaps kept a channel busy over time, mean of all channels.
    channel_collection_mean_fraction: Sample ["fraction"];
    /// Blocks that a virtual drive had from another of its channel group.
    blocks_lent: Count ["blocks"];
    /// Blocks that went back to the virtual drive which had lent them.
    blocks_given_back: Count ["blocks"];
    /// Writes that no block could take any more.
    writes_to_worn_out_flash: Count ["writes"];

    /// Reads that the write cache of a server answered.
    reads_from_write_cache: Count ["reads"];
    /// Reads that flash answered.
    reads_from_flash: Count ["reads"];
    /// Reads that a storage server sent on to the other replica.
    reads_redirected_by_servers: Count ["reads"];
    /// Writes that waited for room in the write cache.
    writes_that_waited_for_cache: Count ["writes"];
    /// Writes that found no free block, each time they were offered.
    writes_refused_by_flash: Count ["writes"];
    /// Requests that a server left unanswered: its lease did not hold, or the outcome was open.
    requests_left_unanswered: Count ["requests"];
    /// Lost replicas that were built again.
    replicas_adopted: Count ["replicas"];
    /// Lost replicas for which there was no place.
    replicas_not_adopted: Count ["replicas"];

    /// Pairs of virtual drives that have changed places.
    swaps_of_vssds_done: Count ["pairs"] whole "a swap counts whenever it began";
    /// Pairs of virtual drives that have not changed places by the end.
    swaps_of_vssds_unfinished: State ["pairs"];
    /// Pages that swaps read.
    swap_pages_read: Count ["pages"] whole "a swap counts whenever it began";
    /// Pages that swaps wrote: no writes of requests, but part of write amplification.
    swap_pages_written: Count ["pages"] whole "a swap counts whenever it began";
    /// Requests that waited because their page was moving, in the span `collection_wait`.
    swap_requests_held: Count ["requests"] whole "a swap counts whenever it began";
    /// Time from the first page of a pair to the last, mean over pairs.
    swap_time_mean_ms: Ratio ["ms"] whole "a swap counts whenever it began";
    /// Pages that a swap wrote into a drive over the pages of its flash. The paper (3.6) counts 1,
    /// a whole write; ours is the share that holds data.
    swap_erases_of_every_block: Ratio ["erases"] whole "a swap counts whenever it began";
    /// `swap_erases_of_every_block` x 152 swaps (every 12 days for five years) / 30,000 erases, for
    /// the 0.5 % of the paper.
    swap_every_12_days_lifetime_fraction: Sample ["fraction"] whole "a swap counts whenever it began";

    /// Reads that the switch sent to the replica which does not collect.
    reads_redirected_by_switch: Count ["reads"];
    /// Reads that the switch sent to another replica because their server was not reached.
    reads_rescued_by_switch: Count ["reads"];
    /// Requests to collect soon that the switch accepted.
    soft_requests_accepted: Count ["requests"];
    /// Requests to collect soon that the switch delayed.
    soft_requests_delayed: Count ["requests"];
    /// Announcements of servers that have to collect now.
    regular_requests: Count ["requests"];
    /// Announcements of idle servers that collect.
    background_collections: Count ["collections"];
    /// Packets that passed the switch's pipeline again.
    switch_recirculations: Count ["packets"];
    /// Packets that the switch dropped because they were not valid.
    switch_malformed_packets: Count ["packets"] whole "a broken rule is a defect at any time";
    /// Size of one replica table of 131,072 entries.
    switch_table_bytes: Fixed ["B"];
    /// Predictions of the way back that were right within 25 us, over all predictions.
    predictions_within_25us_fraction: Ratio ["fraction"];
    /// Packets that the rack sent.
    packets_sent: Count ["packets"];
    /// Packets to or from a server, a link or a switch that was down.
    packets_lost_at_dead_places: Count ["packets"];
    /// Frames of other traffic.
    background_frames: Count ["frames"];
    /// Writes that were not answered and may have taken effect.
    writes_indeterminate: Count ["writes"];
}
