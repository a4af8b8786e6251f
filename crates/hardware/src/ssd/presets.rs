//! Named drives. A number without a source beside it is ours, chosen so that the drive shows its
//! published latencies and bandwidths, and says so. Presets whose latencies are published only as
//! those of the whole drive are *calibrated*: the split into parts is ours.
//!
//! Flash is mapped by 4 KiB, and a table for a whole drive takes about 5 B for each:
//! [`SolidStateConfig::with_blocks_per_plane`] makes the same drive with less flash, which has the
//! same latencies and bandwidths.

use super::direct::DirectConfig;
use super::drive::{CollectionConfig, Cost, Firmware, FlushPolicy, HostLink, SolidStateConfig, WriteBuffer};
use super::ftl::VictimPolicy;
use super::geometry::{Geometry, PageTimes, Suspension, Timing};
use super::quick::QuickConfig;
use base::{Bytes, Rate, Seed, Span};

/// What a preset is a preset of.
#[derive(Clone, Debug, PartialEq)]
pub enum DriveConfig {
    /// Flash.
    SolidState(SolidStateConfig),
    /// A medium that is written in place.
    Direct(DirectConfig),
}

/// A named drive.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name in experiments.
    pub name: &'static str,
    /// What it is, and where its numbers are from.
    pub source: &'static str,
    /// Its configuration, with the seed of the run.
    pub config: fn(Seed) -> DriveConfig,
}

/// All presets.
pub const PRESETS: [Preset; 7] = [
    Preset {
        name: "p-ssd",
        source: "open-channel SSD of CNEX with Micron L95B MLC: FEMU, hw/block/femu/nand/nand.h (MLC table); RackBlox, 4.5.3 calls it P-SSD",
        config: |seed| DriveConfig::SolidState(p_ssd(seed)),
    },
    Preset {
        name: "intel-dc",
        source: "calibrated to about 80 us and 20 us for a read and a write of 4 KiB at queue depth 1 (RackBlox, 4.5.3, Intel DC)",
        config: |seed| DriveConfig::SolidState(intel_dc(seed)),
    },
    Preset {
        name: "optane",
        source: "calibrated to 10 us for a read or a write of 4 KiB at queue depth 1, 550 k reads and 500 k writes a second (Intel Optane SSD 900P, product page)",
        config: |_| DriveConfig::Direct(optane()),
    },
    Preset {
        name: "970-pro",
        source: "Samsung 970 Pro 512 GB as fitted by NVMeVirt (FAST'23): ssd_config.h, SAMSUNG_970PRO",
        config: |seed| DriveConfig::SolidState(samsung_970_pro(seed)),
    },
    Preset {
        name: "pm9a3",
        source: "calibrated to Samsung's sheet for PM9A3 U.2 3.84 TB: 6.5 and 3.5 GB/s, 900 k reads and 180 k to 200 k writes a second",
        config: |seed| DriveConfig::SolidState(pm9a3(seed)),
    },
    Preset {
        name: "p3700",
        source: "calibrated to AnandTech 11209 (78 us for a read of 4 KiB at queue depth 1) and Intel's specification 330566-005 (writes of 20 us and of 2 GB/s)",
        config: |seed| DriveConfig::SolidState(p3700(seed)),
    },
    Preset {
        name: "tlc-gen4",
        source: "no product: TLC times of SimpleSSD as FEMU's nand.h cites them, with today's bus, PCIe 4.0 x4 and suspension",
        config: |seed| DriveConfig::SolidState(tlc_gen4(seed)),
    },
];

/// The preset of a name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// P-SSD: FEMU's profile of the Micron L95B MLC chips in CNEX's open-channel SSD (read 48 and 64
/// us, program 850 and 2300 us, erase 3 ms, 52.433 us for the transfer of a page of 16 KiB; 256
/// pages a block), 16 channels, 1 TB (RackBlox, 3.7). Of chips a channel, its link and its firmware
/// nothing is published: 8 dies of 4 planes, PCIe 3.0 x8, 2 us and a buffer of 4 MiB are ours. No
/// suspension.
pub fn p_ssd(seed: Seed) -> SolidStateConfig {
    let lower = PageTimes { read: Span::us(48), program: Span::us(850) };
    let upper = PageTimes { read: Span::us(64), program: Span::us(2_300) };
    let geometry = geometry(16, 8, 4, 514, 256, 16);
    let timing = Timing {
        pages: vec![lower, upper],
        erase: Span::ms(3),
        // 16 KiB in 52.433 us.
        channel: Rate::bps(2_499_799_744),
        command: Span::ZERO,
        suspension: Suspension::None,
    };
    SolidStateConfig {
        over_provisioning: 0.08,
        link: HostLink { rate: PCIE_3_X8, command: Span::us(1) },
        firmware: Firmware { read: once(Span::us(2)), write: once(Span::us(2)) },
        buffer: buffer(4 << 10, Span::us(2), Span::ns(460)),
        ..drive(seed, geometry, timing)
    }
}

/// Intel DC: RackBlox names the series only. Reads of 80 us and writes of 20 us at queue depth 1
/// come out; the parts are ours, those of [`p3700`], with slower firmware.
pub fn intel_dc(seed: Seed) -> SolidStateConfig {
    let p3700 = p3700(seed);
    SolidStateConfig { firmware: Firmware { read: once(Span::us(8)), write: once(Span::ns(15_700)) }, ..p3700 }
}

/// Intel Optane 900P, 480 GB. 3D XPoint is no flash: nothing is collected, and its latencies are a
/// table. Four lanes of 7.2 us and 8 us give 555 k reads and 500 k writes a second; the rest of 10
/// us is controller and link.
pub fn optane() -> DirectConfig {
    DirectConfig {
        capacity: Bytes::new(480_000_000_000 / 4096 * 4096),
        link: HostLink { rate: PCIE_3_X4, command: Span::ns(500) },
        lanes: 4,
        read: Cost { command: Span::ns(1_080), per_4_kib: Span::ns(7_200) },
        write: Cost { command: Span::ns(280), per_4_kib: Span::ns(8_000) },
    }
}

/// Samsung 970 Pro 512 GB, as NVMeVirt fitted it: 8 channels of 2 LUNs, one-shot pages of 32 KiB,
/// reads of 4 KiB in 35.76 us less or more 6 us (lower and upper pages), program 185 us, no time
/// for an erase (it is in the program's), 800 MB/s a channel, 3360 MB/s of PCIe, firmware 21.5 us a
/// read, write buffer 4 us and 0.46 us for each 4 KiB, two pages for each LUN in it, 7 %
/// over-provisioning. Our own: 512 pages a block, and thresholds.
pub fn samsung_970_pro(seed: Seed) -> SolidStateConfig {
    let lower = PageTimes { read: Span::ns(29_760), program: Span::us(185) };
    let upper = PageTimes { read: Span::ns(41_760), program: Span::us(185) };
    let geometry = geometry(8, 2, 1, 2_048, 512, 32);
    let timing = Timing {
        pages: vec![lower, upper],
        erase: Span::ZERO,
        channel: mega_bytes_a_second(800),
        command: Span::ZERO,
        suspension: Suspension::None,
    };
    SolidStateConfig {
        link: HostLink { rate: mega_bytes_a_second(3_360), command: Span::ZERO },
        firmware: Firmware { read: once(Span::ns(21_500)), write: Cost::NONE },
        buffer: buffer(8 * 2 * 32 * 2, Span::us(4), Span::ns(460)),
        ..drive(seed, geometry, timing)
    }
}

/// Samsung PM9A3 U.2, 3.84 TB. Of its inside nothing is published: 8 channels of 8 dies of
/// 128-layer TLC at 1200 MT/s, one-shot programs over four planes of 16 KiB and suspension are
/// ours. What comes out are about 80 us for a read at queue depth 1 and 12 us for a write.
pub fn pm9a3(seed: Seed) -> SolidStateConfig {
    let geometry = geometry(8, 8, 1, 1_890, 528, 64);
    let timing = Timing {
        pages: tlc([50, 65, 85], 1_150),
        erase: Span::us(3_500),
        channel: mega_bytes_a_second(1_200),
        command: Span::ns(200),
        suspension: Suspension::Reads { overhead: Span::us(5), limit: 8 },
    };
    SolidStateConfig {
        over_provisioning: 0.09,
        link: HostLink { rate: mega_bytes_a_second(6_800), command: Span::us(1) },
        firmware: Firmware { read: once(Span::us(7)), write: once(Span::us(7)) },
        buffer: buffer(16 << 10, Span::us(3), Span::ns(200)),
        ..drive(seed, geometry, timing)
    }
}

/// Samsung PM9A3 U.2, as a few sums. 580 k reads of 4 KiB a second are the sheet's of 960 GB: the
/// controller starts one each 1.724 us. 64 lanes of 55 us a page reach that from 128 outstanding
/// on. 174.8 us for 4 KiB in order give its 1.5 GB/s of writes, 337 us at random 190 k a second:
/// the series' sheet has 180 k to 200 k, for 3.84 TB and more. The lanes alone would read 19 GB/s;
/// the link, 128 KiB in 19.3 us and 1 us, makes that the sheet's 6.5 GB/s.
///
/// Fitted to calibration claims of the SAN study (NSDI'26) alone: 64.6 us for a read of 4 KiB and
/// 102.5 us for one of 256 KiB, so that a hop of 2.9 us is 3.4 % and one of 3.1 us 1.7 % of a read
/// (Figure 2c); 7 us of controller for a write, so that the network has 12.7 % of writes (Figure
/// 4). Number of lanes, page and buffer are ours, and that suspension costs a lane nothing: a read
/// waits for half a program already.
pub fn pm9a3_960_quick(capacity: Bytes) -> QuickConfig {
    QuickConfig {
        capacity,
        link: HostLink { rate: mega_bytes_a_second(6_800), command: Span::us(1) },
        lanes: 64,
        page: Bytes::kib(16),
        read: once(Span::us(8)),
        page_read: Span::us(55),
        keeps_page: false,
        write: once(Span::us(7)),
        program: Span::ns(174_800),
        scattered: Span::us(337),
        read_gap: Span::ns(1_724),
        suspend: Span::ZERO,
        buffer: Bytes::kib(8 << 10),
    }
}

/// The same drive after random writes of 128 KiB all over it. Fitted to Figure 9 alone, where reads
/// lose 25.9 % and writes 31.9 % of their throughput at queue depth 1: a page takes 29 us more (the
/// map's own reads and waits behind collection), a write 14 us more, and a program is 1 / (1 -
/// 0.319) times as long. The controller reads as much less as Figure 9's reads.
pub fn pm9a3_960_quick_fragmented(capacity: Bytes) -> QuickConfig {
    QuickConfig {
        page_read: Span::us(84),
        write: once(Span::us(21)),
        program: Span::ns(256_700),
        scattered: Span::us(495),
        read_gap: Span::ns(2_327),
        ..pm9a3_960_quick(capacity)
    }
}

/// Samsung 970 PRO, 1 TB, as a few sums. Its sheet (Samsung, NVMe SSD 970 PRO data sheet, rev. 1.0)
/// gives 500 k reads and 500 k writes of 4 KiB a second with 128 outstanding, and 15 k reads and 55
/// k writes with one, which are 66.7 us and 18.2 us. 12 lanes of 20 us a page give the reads a
/// second (128 commands spread at random keep 12 lanes busy for 85 % of the time), 24 us a program
/// the writes, and the controller takes what is left of a lone command. Number and times of lanes
/// are ours, and that a lane's register keeps its page, as that of every NAND chip does (without,
/// the hottest key of a store is read at most 50,000 times a second); a read does not interrupt a
/// program. Capacitors for the buffer are assumed: a flush costs no more than a command, which is
/// not so with the drive that one can buy.
pub fn samsung_970_pro_quick(capacity: Bytes) -> QuickConfig {
    QuickConfig {
        capacity,
        link: HostLink { rate: mega_bytes_a_second(3_360), command: Span::ns(500) },
        lanes: 12,
        page: Bytes::kib(32),
        read: once(Span::ns(44_950)),
        page_read: Span::us(20),
        keeps_page: true,
        write: once(Span::ns(16_460)),
        program: Span::us(24),
        scattered: Span::us(24),
        read_gap: Span::ZERO,
        suspend: Span::ZERO,
        buffer: Bytes::kib(1_024),
    }
}

/// Intel P3700, 800 GB: 20 nm MLC, 18 channels. Reads of 78 us and writes of 20 us at queue depth 1
/// and sequential writes of 2 GB/s come out; times and number of dies, bus, firmware and spare
/// space are ours. Its published 460 k reads a second are a limit of its controller, which is not
/// modelled.
pub fn p3700(seed: Seed) -> SolidStateConfig {
    let lower = PageTimes { read: Span::us(50), program: Span::us(500) };
    let upper = PageTimes { read: Span::us(62), program: Span::us(1_700) };
    let geometry = geometry(18, 4, 1, 1_722, 256, 32);
    let timing = Timing {
        pages: vec![lower, upper],
        erase: Span::ms(3),
        channel: mega_bytes_a_second(333),
        command: Span::ns(700),
        suspension: Suspension::Reads { overhead: Span::us(10), limit: 4 },
    };
    SolidStateConfig {
        over_provisioning: 0.3,
        link: HostLink { rate: PCIE_3_X4, command: Span::us(1) },
        firmware: Firmware { read: once(Span::us(6)), write: once(Span::ns(15_700)) },
        buffer: buffer(16 << 10, Span::us(2), Span::ns(200)),
        ..drive(seed, geometry, timing)
    }
}

/// No product: a drive of 512 GB of TLC (56.5, 77.5 and 106 us a read: SimpleSSD's measurements, as
/// FEMU's nand.h has them; a one-shot program of three pages in 2.1 ms, 700 us for each; erase 5
/// ms), 8 channels at 1200 MT/s, PCIe 4.0 x4, suspension. All of it is ours save the reads.
pub fn tlc_gen4(seed: Seed) -> SolidStateConfig {
    let read = |ns| PageTimes { read: Span::ns(ns), program: Span::us(700) };
    let geometry = geometry(8, 4, 4, 340, 768, 16);
    let timing = Timing {
        pages: vec![read(56_500), read(77_500), read(106_000)],
        erase: Span::ms(5),
        channel: mega_bytes_a_second(1_200),
        command: Span::ns(200),
        suspension: Suspension::Reads { overhead: Span::us(10), limit: 4 },
    };
    SolidStateConfig {
        link: HostLink { rate: mega_bytes_a_second(6_800), command: Span::us(1) },
        firmware: Firmware { read: once(Span::us(5)), write: once(Span::us(5)) },
        buffer: buffer(8 << 10, Span::us(2), Span::ns(200)),
        ..drive(seed, geometry, timing)
    }
}

/// PCIe 3.0 x4 and x8: 985 MB/s a lane less the headers of packets of 256 B.
const PCIE_3_X4: Rate = mega_bytes_a_second(3_500);
const PCIE_3_X8: Rate = mega_bytes_a_second(7_000);

/// A drive of this flash. The rest is what most presets share: greedy collection, endless
/// endurance, no retries, 7 % over-provisioning, and neither firmware nor buffer time; what a
/// preset knows better it says.
fn drive(seed: Seed, geometry: Geometry, timing: Timing) -> SolidStateConfig {
    SolidStateConfig {
        geometry,
        timing,
        over_provisioning: 0.07,
        link: HostLink { rate: PCIE_3_X4, command: Span::us(1) },
        firmware: Firmware { read: Cost::NONE, write: Cost::NONE },
        buffer: buffer(8 << 10, Span::ZERO, Span::ZERO),
        collection: CollectionConfig { victim: VictimPolicy::Greedy, hot_cold: false },
        endurance: None,
        read_retry: Vec::new(),
        seed,
    }
}

/// Pages in KiB, mapped by 4 KiB.
const fn geometry(
    channels: u32,
    dies_per_channel: u32,
    planes_per_die: u32,
    blocks_per_plane: u32,
    pages_per_block: u32,
    page_kib: u64,
) -> Geometry {
    Geometry {
        channels,
        dies_per_channel,
        planes_per_die,
        blocks_per_plane,
        pages_per_block,
        page: Bytes::kib(page_kib),
        unit: Bytes::kib(4),
    }
}

fn tlc(reads_us: [u64; 3], program_us: u64) -> Vec<PageTimes> {
    reads_us.map(|read| PageTimes { read: Span::us(read), program: Span::us(program_us) }).to_vec()
}

const fn mega_bytes_a_second(count: u64) -> Rate {
    Rate::bps(count * 8_000_000)
}

const fn once(command: Span) -> Cost {
    Cost { command, per_4_kib: Span::ZERO }
}

const fn buffer(capacity_kib: u64, command: Span, per_4_kib: Span) -> WriteBuffer {
    WriteBuffer {
        capacity: Bytes::kib(capacity_kib),
        write_in: Cost { command, per_4_kib },
        flush: FlushPolicy::FullPages,
    }
}
