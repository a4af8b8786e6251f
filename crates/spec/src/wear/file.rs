//! The written form of wear levelling, and its defaults, each with its source. "Paper" is RackBlox, SOSP'23.

use crate::file::{words, written};
use crate::quantity::Quantity;
use base::Bytes;

words! {
    /// Who swaps the contents of drives.
    ArmName {
        /// Nobody.
        None,
        /// Each server, between its own drives.
        Local,
        /// Each server, and the rack between servers.
        LocalAndGlobal,
    }
}

words! {
    /// What makes a server's look at its drives swap.
    TriggerName {
        /// Each look, unless the most worn drive wears no faster than the others.
        EveryLook,
        /// Wear that is more uneven than gamma allows, or will be within the horizon.
        Uneven,
    }
}

words! {
    /// Which vSSD runs which workload. vSSDs are dealt to servers in turn, and there to drives in turn (paper, 4.6).
    WearAssignmentName {
        /// The next vSSD runs the next workload.
        InTurn,
        /// Each runs one that is drawn.
        Drawn,
    }
}

written! {
    /// A rack of drives over years, and who levels their wear. With the design wear-levelling.
    WearFile {
        /// Servers of the rack (paper, 4.6: 32).
        #[schemars(range(min = 1, max = 4_096), extend("default" = 32))]
        servers: u32,
        /// Drives of a server (paper, 4.6: 16).
        #[schemars(range(min = 1, max = 1_024), extend("default" = 16))]
        ssds: u32,
        /// vSSDs of a drive (paper, 4.6: 4). They move together when the drive's contents are swapped.
        #[schemars(range(min = 1, max = 1_024), extend("default" = 4))]
        vssds: u32,
        /// Years that are played, of 365 days; five when neither it nor `days` is given (paper, 3.6: a drive lasts five). Not together with `days`.
        #[schemars(range(max = 100.0), extend("exclusiveMinimum" = 0.0))]
        years: f64,
        /// Days that are played. Not together with `years`.
        #[schemars(range(min = 1, max = 36_500))]
        days: u32,
        /// Who swaps.
        #[schemars(extend("default" = "local-and-global"))]
        arm: ArmName,
        /// By how much the most worn drive of a server may exceed the mean of the server (paper, 3.6: 0.1). It decides with `trigger = "uneven"`, and is
        /// counted against in any case.
        #[schemars(range(min = 0.0, max = 100.0), extend("default" = 0.1))]
        gamma: f64,
        /// Days between two looks of a server at its drives, each of which swaps one pair at most (paper, 3.6: 12).
        #[schemars(range(min = 1, max = 36_500), extend("default" = 12))]
        local_period_days: u32,
        /// What makes a look swap. Ours: the paper (3.6) swaps "periodically" and counts the cost of one swap every 12 days, but does not say whether a
        /// look at even drives swaps too.
        #[schemars(extend("default" = "every-look"))]
        trigger: TriggerName,
        /// With `trigger = "uneven"`: wear is compared as it will be after so many days at the present rates. 0 waits until it is uneven.
        #[schemars(range(max = 36_500), extend("default" = 0))]
        horizon_days: u32,
        /// Days between two looks of the rack at its servers (paper, 3.6: 8 weeks).
        #[schemars(range(min = 1, max = 36_500), extend("default" = 56))]
        global_period_days: u32,
        /// Drives of either server that such a look exchanges at most. Ours: the paper does not say how many.
        #[schemars(range(min = 1, max = 1_024), extend("default" = 1))]
        global_pairs: u32,
        /// Days over which a drive's rate of wear is smoothed. Ours: four local periods, as the last one alone sends heavy loads back to worn drives.
        #[schemars(range(min = 1, max = 36_500))]
        rate_window_days: u32,
        /// What vSSDs run: names of `io.profile`. The five applications of the paper's Table 2 when not given.
        #[schemars(length(min = 1))]
        workloads: Vec<String>,
        /// Which vSSD runs which. Ours: the paper (4.6) deals vSSDs to servers in turn and does not give the order of their workloads; in turn is the
        /// reading nearest to its words.
        #[schemars(extend("default" = "in-turn"))]
        assignment: WearAssignmentName,
        /// What a vSSD would write a day if all its requests were writes. Ours: 52 MB/s, with which the mean drive uses nine tenths of its erases in
        /// five years.
        #[schemars(extend("default" = "4500GB"))]
        peak_per_day: Quantity<Bytes>,
        /// Pages written to flash for each that was asked for. Ours.
        #[schemars(range(min = 1.0, max = 100.0), extend("default" = 2.0))]
        write_amplification: f64,
        /// Each vSSD writes at its workload's rate times a factor between 1 minus this and 1 plus this, drawn once. Ours.
        #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.2))]
        spread: f64,
        /// A vSSD's rate goes steadily from one factor between 1 minus this and 1 plus this to the next. Ours.
        #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.2))]
        drift: f64,
        /// Days from one such factor to the next. Ours: a month.
        #[schemars(range(min = 1, max = 36_500), extend("default" = 30))]
        drift_days: u32,
        /// Flash of a drive, spare blocks included. Ours.
        #[schemars(extend("default" = "1TiB"))]
        capacity: Quantity<Bytes>,
        /// Erases that a block endures (paper, 3.6: 30,000 writes).
        #[schemars(range(min = 1, max = 1_000_000_000), extend("default" = 30_000))]
        endurance: u32,
        /// What a swap costs either drive, in erases of all its blocks: 1, as it is written once as a whole (paper, 3.6).
        #[schemars(range(min = 0.0, max = 1_000.0), extend("default" = 1.0))]
        swap_erases: f64,
        /// Drives that are replaced by new ones on the way; what they held comes back from replicas.
        replacement: Vec<ReplacementFile>,
    }
}

written! {
    /// A drive that is replaced by a new one.
    #[schemars(extend("required" = ["day", "server", "ssd"]))]
    ReplacementFile {
        /// At the start of which day; the first is 1.
        #[schemars(range(min = 1, max = 36_500))]
        day: u32,
        /// Its server, from 0.
        server: u32,
        /// Its place in the server, from 0.
        ssd: u32,
    }
}
