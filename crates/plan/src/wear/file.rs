//! The written form of wear levelling, and its defaults, each with its source. "Paper" is RackBlox,
//! SOSP'23.

use super::{DAYS_PER_YEAR, ENDURANCE, GlobalLevelling, LocalLevelling, Replacement, Wear, WearLoad, WornDrive};
use crate::file::words;
use crate::quantity::Quantity;
use crate::table::table;
use base::Bytes;
use workload::storage::Profile;

words! {
    /// Policy of swaps.
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
    /// Which vSSD runs which workload. vSSDs are dealt to servers in turn, and there to drives in
    /// turn (paper, 4.6).
    WearAssignmentName {
        /// The next vSSD runs the next workload.
        InTurn,
        /// Each runs one that is drawn.
        Drawn,
    }
}

table! {
    /// A rack of drives over years, and its wear levelling. With the design wear-levelling.
    WearFile => Wear with workloads_named: Vec<&'static Profile> {
        /// Servers of the rack (paper, 4.6: 32).
        servers: u32 [1 to 4_096] = 32,
        /// Drives of a server (paper, 4.6: 16).
        ssds: u32 [1 to 1_024] = 16,
        /// vSSDs of a drive (paper, 4.6: 4). They move together when the drive's contents are
        /// swapped.
        vssds: u32 [1 to 1_024] = 4,
        /// Years that are played, of 365 days; five when neither it nor `days` is given (paper,
        /// 3.6: a drive lasts five).
        years: f64 [above 0.0 to 100.0] where [without days],
        /// Days that are played.
        days: u32 [1 to 36_500],
        /// Policy of swaps.
        arm: ArmName = ArmName::LocalAndGlobal,
        /// By how much the most worn drive of a server may exceed the mean of the server (paper,
        /// 3.6: 0.1). It decides with `trigger = "uneven"`, and is counted against in any case.
        gamma: f64 [0.0 to 100.0] = 0.1,
        /// Days between two checks of a server, each of which swaps at most one pair (paper, 3.6:
        /// 12).
        local_period_days: u32 [1 to 36_500] = 12,
        /// What makes a look swap. Ours: the paper (3.6) swaps "periodically" and counts the cost
        /// of one swap every 12 days, but does not say whether a look at even drives swaps too.
        trigger: TriggerName = TriggerName::EveryLook,
        /// Days of extrapolation at the present rates before wear is compared. 0 waits until it is
        /// uneven.
        horizon_days: u32 [to 36_500] where [trigger = "uneven"] = 0,
        /// Days between two checks of the rack (paper, 3.6: 8 weeks).
        global_period_days: u32 [1 to 36_500] = 56,
        /// Drives of either server that such a look exchanges at most. Ours: the paper does not say
        /// how many.
        global_pairs: u32 [1 to 1_024] = 1,
        /// Days over which a drive's rate of wear is smoothed. Ours: four local periods, as the
        /// last one alone sends heavy loads back to worn drives.
        rate_window_days: u32 [1 to 36_500] => local_period_days.saturating_mul(WINDOW_PERIODS),
        /// What vSSDs run: names of `io.profile`. The five applications of the paper's Table 2 when
        /// not given.
        workloads: Vec<String> [length from 1],
        /// Which vSSD runs which. Ours: the paper (4.6) deals vSSDs to servers in turn and does not
        /// give the order of their workloads; in turn is the reading nearest to its words.
        assignment: WearAssignmentName = WearAssignmentName::InTurn,
        /// What a vSSD would write a day if all its requests were writes. Ours: 52 MB/s, with which
        /// the mean drive uses nine tenths of its erases in five years.
        peak_per_day: Quantity<Bytes> [above "0B"] = Bytes::new(4_500_000_000_000),
        /// Write amplification: pages written to flash for each page of the host. Ours.
        write_amplification: f64 [1.0 to 100.0] = 2.0,
        /// Each vSSD writes at its workload's rate times a factor between 1 minus this and 1 plus
        /// this, drawn once. Ours.
        spread: f64 [0.0 to 1.0] = 0.2,
        /// A vSSD's rate goes steadily from one factor between 1 minus this and 1 plus this to the
        /// next. Ours.
        drift: f64 [0.0 to 1.0] = 0.2,
        /// Days from one such factor to the next. Ours: a month.
        drift_days: u32 [1 to 36_500] = 30,
        /// Flash of a drive, spare blocks included. Ours.
        capacity: Quantity<Bytes> [above "0B"] = Bytes::kib(1 << 30),
        /// Erases that a block endures (paper, 3.6: 30,000 writes).
        endurance: u32 [1 to 1_000_000_000] = ENDURANCE,
        /// What a swap costs either drive, in erases of all its blocks: 1, as it is written once as
        /// a whole (paper, 3.6).
        swap_erases: f64 [0.0 to 1_000.0] = 1.0,
        /// Drives that are replaced by new ones on the way; what they held comes back from
        /// replicas.
        replacement: Vec<ReplacementFile>,
    } as {
        servers,
        ssds,
        vssds,
        days: days_played,
        arm,
        local: LocalLevelling { gamma, period_days: local_period_days, trigger, horizon_days },
        global: GlobalLevelling { period_days: global_period_days, pairs: global_pairs },
        rate_window_days,
        load: WearLoad {
            workloads: workloads_named,
            assignment,
            peak_per_day,
            write_amplification,
            spread,
            drift,
            drift_days,
        },
        drive: WornDrive { capacity, endurance, swap_erases },
        replacements,
    } from {
        let days_played = days.unwrap_or((years.unwrap_or(YEARS) * f64::from(DAYS_PER_YEAR)).round() as u32);
        // In order of their days, so that the order in a file decides nothing.
        let mut replacements: Vec<Replacement> = replacement.unwrap_or_default();
        replacements.sort_by_key(|each| (each.day, each.server, each.ssd));
    } to {
        let (days, years) = (Some(days_played), None::<f64>);
        let workloads = Some(workloads_named.iter().map(|each| each.name.to_owned()).collect::<Vec<_>>());
        let replacement = Some(replacements).filter(|all| !all.is_empty());
    }
}

/// RackBlox, 3.6: a drive lasts five years.
const YEARS: f64 = 5.0;
/// Ours, see [`WearFile`].
const WINDOW_PERIODS: u32 = 4;

table! {
    /// A drive that is replaced by a new one.
    ReplacementFile => Replacement {
        /// At the start of which day; the first is 1.
        day: u32 [1 to 36_500] where [needed] => 1,
        /// Its server, from 0.
        server: u32 where [needed] => 0,
        /// Its place in the server, from 0.
        ssd: u32 where [needed] => 0,
    }
}
