//! The formats by name.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How a trace is written down. `docs/reference/traces.md` shows a line of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// MQSim (CMU-SAFARI/MQSim): `time_ns device first_sector sectors type`; 0 writes, 1 reads.
    Mqsim,
    /// DiskSim's ASCII format (DiskSim 4.0 manual, 7): as MQSim's, with the time in milliseconds
    /// and a decimal point.
    Disksim,
    /// The Storage Performance Council's (SPC trace file format, revision 1.0.1), as UMass has its
    /// traces: `asu,sector,bytes,r|w,seconds`.
    Spc,
    /// Systor '17 (SNIA IOTTA 4964): `Timestamp,Response,IOType,LUN,Offset,Size` in seconds and
    /// bytes.
    Systor,
    /// Microsoft Research Cambridge (SNIA IOTTA 388):
    /// `filetime,host,disk,Read|Write,offset,bytes,response`; a FILETIME counts 100 ns.
    Msr,
    /// Alibaba block traces (alibaba/block-traces): `device,R|W,offset,bytes,microseconds`.
    Alibaba,
    /// Tencent block storage (SNIA IOTTA 27917): `seconds,sector,sectors,type,volume`; 0 reads, 1
    /// writes.
    Tencent,
    /// What `blkparse` prints by default, of which the requests as they were queued (action `Q`)
    /// are taken.
    Blktrace,
    /// The same, of which the requests as they were issued to the drive (action `D`) are taken:
    /// merged and scheduled.
    BlktraceIssued,
    /// fio's I/O log, version 2 (times from `wait` lines) and 3 (a time in every line), in
    /// microseconds and bytes.
    FioIolog,
}

/// A name that is none of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{got}` is no format of traces: allowed are {}", Format::names())]
pub struct UnknownFormat {
    /// The name.
    pub got: String,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 10] = [
        Format::Mqsim,
        Format::Disksim,
        Format::Spc,
        Format::Systor,
        Format::Msr,
        Format::Alibaba,
        Format::Tencent,
        Format::Blktrace,
        Format::BlktraceIssued,
        Format::FioIolog,
    ];

    /// As files and command lines name it.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Mqsim => "mqsim",
            Format::Disksim => "disksim",
            Format::Spc => "spc",
            Format::Systor => "systor",
            Format::Msr => "msr",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Blktrace => "blktrace",
            Format::BlktraceIssued => "blktrace-issued",
            Format::FioIolog => "fio-iolog",
        }
    }

    /// All names, with commas between.
    pub fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }

    /// Picoseconds of the unit of its times.
    pub const fn tick_ps(self) -> u64 {
        match self {
            Format::Mqsim => 1_000,
            Format::Msr => 100_000,
            Format::Alibaba | Format::FioIolog => 1_000_000,
            Format::Disksim => 1_000_000_000,
            Format::Spc | Format::Systor | Format::Tencent | Format::Blktrace | Format::BlktraceIssued => {
                1_000_000_000_000
            }
        }
    }

    /// Returns whether a file may end without a newline: only where the last column is one
    /// character, so that a line that was cut off has too few columns.
    pub(super) const fn may_lack_last_newline(self) -> bool {
        matches!(self, Format::Mqsim | Format::Disksim)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| UnknownFormat { got: text.into() })
    }
}
