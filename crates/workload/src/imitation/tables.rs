//! The statistics.

use super::Imitation;

const DFTL: &str = "DFTL (Gupta et al., ASPLOS'09), table of enterprise-scale workloads, of UMass' OLTP trace `Financial`: mean size 4.38 KB, \
    9.0 % reads, 2.0 % sequential, 133.50 ms between requests; 24 devices: UMass";
const SAMPLE: &str = "measured with `rackweave trace` on the sample of CMU-SAFARI/MQSim (MIT)";

/// The traces that the SAN paper plays (Figure 13), and MQSim's sample of TPC-C.
pub const IMITATIONS: [Imitation; 4] = [
    Imitation {
        name: "oltp-like",
        title: "OLTP-like",
        source: DFTL,
        ours: "the mix of sizes, of which only the mean is published; variation of gaps; skew",
        read_share: 0.09,
        reads: OLTP_SIZES,
        writes: OLTP_SIZES,
        sequential_share: 0.02,
        requests_per_second: 1e3 / 133.5,
        gap_variation: 2.0,
        theta: 0.9,
        devices: 24,
    },
    Imitation {
        name: "tpcc-like",
        title: "TPC-C-like",
        source: SAMPLE,
        ours: "skew; what is below 1 % of the sizes is counted as 32 KiB",
        read_share: 0.6259,
        reads: &[(8192, 1.0)],
        writes: &[(8192, 0.907), (16_384, 0.039), (32_768, 0.054)],
        sequential_share: 0.0124,
        requests_per_second: 51_278.9,
        gap_variation: 1.0692,
        theta: 0.9,
        devices: 16,
    },
    Imitation {
        name: "systor-like",
        title: "Systor-like",
        source: "6 LUNs and 2,706 files of an hour each: README of SNIA IOTTA 4964; 492,030,661 requests of LUN1: the copy among CMU's cache \
            data sets; over 451 hours and 6 such LUNs that is the rate",
        ours: "all but the devices and the rate: for share of reads, sizes, sequentiality and variation no figure was found (of desktops in \
            general, Evaluator Group reports 30 to 60 % reads and 512 B to 2 MB)",
        read_share: 0.6,
        reads: SYSTOR_SIZES,
        writes: SYSTOR_SIZES,
        sequential_share: 0.1,
        requests_per_second: 6.0 * 492_030_661.0 / (451.0 * 3600.0),
        gap_variation: 2.0,
        theta: 0.9,
        devices: 6,
    },
    Imitation {
        name: "websearch-like",
        title: "Web-search-like",
        source: SAMPLE,
        ours: "skew; what is below 0.1 % of the sizes is counted as 86 KiB, which keeps the mean (DFTL prints 14.86 KB, 99 % reads and 14 % \
            sequential for a longer part of the trace)",
        read_share: 0.999_839,
        reads: &[(8192, 0.600_751), (16_384, 0.122_442), (24_576, 0.077_646), (32_768, 0.198_111), (88_064, 0.001_05)],
        writes: &[(8192, 1.0)],
        sequential_share: 0.096_034,
        requests_per_second: 412.67,
        gap_variation: 1.331_68,
        theta: 0.9,
        devices: 6,
    },
];

const OLTP_SIZES: &[(u64, f64)] = &[(512, 0.2), (4096, 0.55), (8192, 0.24), (16_384, 0.01)];
const SYSTOR_SIZES: &[(u64, f64)] =
    &[(512, 0.05), (4096, 0.5), (8192, 0.15), (16_384, 0.1), (32_768, 0.1), (65_536, 0.1)];

/// The imitation with this name, or `None`; [`IMITATIONS`] lists the names.
pub fn imitation(name: &str) -> Option<&'static Imitation> {
    IMITATIONS.iter().find(|imitation| imitation.name == name)
}
