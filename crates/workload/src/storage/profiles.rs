//! Loads of known applications.

use super::{Action, Addresses, Class, Mix};

/// YCSB's zipfian constant.
pub const YCSB_THETA: f64 = 0.99;
/// YCSB's `maxscanlength`; a record is a block here.
pub const YCSB_SCAN_BLOCKS_MAX: u32 = 100;
/// Mean length of AuctionMark's runs of writes, in requests. RackBlox (4.3) says that long
/// sequences of writes and of reads take turns, and gives no length: this one is ours.
pub const AUCTION_MARK_WRITE_RUN: f64 = 256.0;

const TABLE_2: &str = "write share: RackBlox, SOSP'23, Table 2; addresses as in its YCSB runs, ours";
const AUCTION_MARK: &str =
    "write share: RackBlox, SOSP'23, Table 2; runs: 4.3, their length ours; addresses as in its YCSB runs, ours";
const YCSB: &str = "YCSB core workloads (brianfrankcooper/YCSB, Apache-2.0); a record is a block";

/// One application's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// As experiment files name it.
    pub name: &'static str,
    /// As figures and tables name it.
    pub title: &'static str,
    /// Where the figures come from, and which are ours.
    pub source: &'static str,
    /// What is done, with weights.
    pub classes: &'static [Class],
    /// Mean length of a run of writes in requests, where writes and reads come in runs.
    pub write_run: Option<f64>,
    /// Distribution of addresses.
    pub addresses: Addresses,
}

impl Profile {
    /// The mix of this profile.
    pub fn mix(&self) -> Mix {
        let independent = Mix::Independent { classes: self.classes.to_vec() };
        match self.write_run {
            Some(write_run) => Mix::Runs { write_share: independent.write_share(), write_run },
            None => independent,
        }
    }
}

const ZIPFIAN: Addresses = Addresses::ScrambledZipfian { theta: YCSB_THETA };
const LATEST: Addresses = Addresses::Latest { theta: YCSB_THETA };
const SCAN: Action = Action::Scan { blocks_max: YCSB_SCAN_BLOCKS_MAX };

/// The five applications of RackBlox's Table 2 and YCSB's six core workloads.
///
/// YCSB D and E insert new records and grow; here an insertion overwrites the oldest block of a
/// working set that stays as large as it is. YCSB F counts a read-modify-write as one operation; as
/// block requests, a third of F is writes.
pub const PROFILES: [Profile; 11] = [
    table_2("tpc-h", "TPC-H", &mix(97.73, Action::Write, 2.27)),
    table_2("seats", "Seats", &mix(89.66, Action::Write, 10.34)),
    Profile {
        source: AUCTION_MARK,
        write_run: Some(AUCTION_MARK_WRITE_RUN),
        ..table_2("auction-mark", "AuctionMark", &mix(46.24, Action::Write, 53.76))
    },
    table_2("tpc-c", "TPC-C", &mix(40.05, Action::Write, 59.95)),
    table_2("twitter", "Twitter", &mix(2.14, Action::Write, 97.86)),
    ycsb("ycsb-a", "YCSB-A", &mix(50.0, Action::Write, 50.0), ZIPFIAN),
    ycsb("ycsb-b", "YCSB-B", &mix(95.0, Action::Write, 5.0), ZIPFIAN),
    ycsb("ycsb-c", "YCSB-C", &[Class { action: Action::Read, weight: 100.0 }], ZIPFIAN),
    ycsb("ycsb-d", "YCSB-D", &mix(95.0, Action::Insert, 5.0), LATEST),
    ycsb(
        "ycsb-e",
        "YCSB-E",
        &[Class { action: SCAN, weight: 95.0 }, Class { action: Action::Insert, weight: 5.0 }],
        ZIPFIAN,
    ),
    ycsb("ycsb-f", "YCSB-F", &mix(50.0, Action::ReadThenWrite, 50.0), ZIPFIAN),
];

const fn mix(reads: f64, other: Action, others: f64) -> [Class; 2] {
    [Class { action: Action::Read, weight: reads }, Class { action: other, weight: others }]
}

const fn table_2(name: &'static str, title: &'static str, classes: &'static [Class]) -> Profile {
    Profile { name, title, source: TABLE_2, classes, write_run: None, addresses: ZIPFIAN }
}

const fn ycsb(name: &'static str, title: &'static str, classes: &'static [Class], addresses: Addresses) -> Profile {
    Profile { name, title, source: YCSB, classes, write_run: None, addresses }
}

/// The profile with this name, or `None`; [`PROFILES`] lists the names.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_the_write_share_that_is_published() {
        let shares = [2.27, 10.34, 53.76, 59.95, 97.86, 50.0, 5.0, 0.0, 5.0, 5.0, 100.0 / 3.0];
        for (profile, percent) in PROFILES.iter().zip(shares) {
            let share = profile.mix().write_share() * 100.0;
            assert!((share - percent).abs() < 1e-9, "{}: {share}", profile.name);
        }
    }

    #[test]
    fn profiles_are_found_by_their_names_alone() {
        for each in &PROFILES {
            assert_eq!(profile(each.name), Some(each));
        }
        assert_eq!(profile("TPC-H"), None);
    }
}
