//! Metrics that several designs have.

/// Kinds of work of the cores of a server, of S-Direct's stacks and of the key-value stores.
pub(super) const WORKS: [&str; 14] = [
    "batch",
    "complete",
    "completion",
    "context_switch",
    "control",
    "doorbell",
    "interrupt",
    "memory",
    "poll",
    "receive",
    "send",
    "submission",
    "submit",
    "target",
];

super::metrics! {
    "Several designs"
    "Each design that has what is counted. `device_` metrics are of drives with a translation layer, \
     see [flash](flash.md); the key-value stores on SSDs have the two of them that count writes."

    /// Length of the warm-up that `warm_up = "auto"` has found.
    warm_up_us: State ["us"];
    /// Operations of the history that was judged.
    history_operations: Count ["operations"] whole "a history is judged from its first operation";
    /// Histories that are not linearizable: of each key of a store, or the one history of volumes.
    history_violations: Count ["histories"] whole "a violation in the warm-up is one";
    /// Requests that a server refused.
    requests_refused: Count ["requests"];
    /// Units programmed (host writes, relocation, padding) over units that hosts wrote, mean over
    /// the drives that were written; 1 if none was.
    device_write_amplification: Sample ["ratio"];
    /// Blocks erased.
    device_erases: Count ["blocks"];
    /// Most erases of one block, preparation included.
    device_wear_erases_max: Highest ["erases"] whole "wear accumulates over the life of a drive";
    /// Time that collection kept dies busy, summed over operations and drives.
    device_collection_ms: Count ["ms"];
    /// Collections that a write waited for because no block was free.
    device_forced_collections: Count ["collections"];
    /// Bytes that hosts wrote to the drives.
    device_written_bytes: Count ["B"];
    /// Bytes that hosts wrote over the capacity of all drives, a day of simulated time.
    device_drive_writes_per_day: Sample ["1/day"];
    /// Bytes that a host can write: flash x erases / write amplification, in 10^12 B.
    device_endurance_tbw: Sample ["TB"];
    /// Drive writes a day for five years: endurance / (capacity x 365 x 5).
    device_endurance_dwpd_5_years: Sample ["1/day"];
}
