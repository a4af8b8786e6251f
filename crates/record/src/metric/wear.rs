//! Metrics of wear over years: RackBlox's wear levelling.

super::metrics! {
    "Wear over years"
    "Plans with `[wear]`, see [wear levelling](../concepts/wear-levelling.md). They have no requests \
     and no warm-up. An imbalance is the largest over the mean wear."

    /// Imbalance of the drives of a server, worst server, last day.
    server_imbalance_max_ratio: Highest ["ratio"];
    /// Imbalance of the drives of a server, mean of all servers, last day.
    server_imbalance_mean_ratio: Sample ["ratio"];
    /// Largest `server_imbalance_max_ratio` of all days since the end of the first year; absent in
    /// shorter runs.
    server_imbalance_max_from_year_1_ratio: Highest ["ratio"];
    /// Imbalance of all drives of the rack, last day (Figure 23).
    rack_imbalance_ratio: Sample ["ratio"];
    /// Imbalance of the means of servers, which local swaps cannot change, last day.
    rack_imbalance_of_servers_ratio: Sample ["ratio"];
    /// Days on which the imbalance of some server exceeded 1 + gamma.
    uneven_days: Sample ["days"];
    /// Endurance that a drive in every swap of the busiest server, and in one of each pair between
    /// servers, would spend (0.5 % in 3.6).
    swaps_worst_case_lifetime_fraction: Highest ["fraction"];
    /// Endurance that drives spent on swaps, mean.
    swaps_mean_lifetime_fraction: Sample ["fraction"];
    /// Endurance that one drive spent on swaps, maximum.
    swaps_max_lifetime_fraction: Highest ["fraction"];
    /// Endurance that drives spent in all, mean.
    used_mean_lifetime_fraction: Sample ["fraction"];
    /// Endurance that one drive spent in all, maximum; above 1 a real drive would be dead.
    used_max_lifetime_fraction: Highest ["fraction"];
    /// Time until the most worn drive is used up, at the rate so far.
    first_worn_out_at_this_rate_years: Lowest ["years"];
    /// Drives beyond their endurance on the last day; the model lets them go on, and the run warns.
    worn_out_drives: Sample ["drives"];
    /// Swaps within servers.
    local_swaps: Count ["swaps"];
    /// Swaps within the server that swapped most.
    local_swaps_of_a_server_max: Highest ["swaps"];
    /// Swaps between servers.
    global_swaps: Count ["swaps"];
    /// Wear of a drive over the mean of its server, last day (Figure 22); of server 0 only.
    server_ssd_wear_ratio = "server_{server}_ssd_{ssd}_wear_ratio": Sample ["ratio"];
    /// Imbalance of the drives of one server, last day; of server 0 only.
    server_imbalance_ratio = "server_{server}_imbalance_ratio": Sample ["ratio"];
}
