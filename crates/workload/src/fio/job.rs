//! What a job is.

use base::Span;
use serde::Serialize;

/// A job file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobFile {
    /// Its jobs, in order.
    pub jobs: Vec<Job>,
    /// What was accepted and changes nothing, each with its place.
    pub notes: Vec<String>,
}

/// A job. Pairs are for reads and for writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Job {
    /// Its section.
    pub name: String,
    /// Reads, writes or both.
    pub mixture: Mixture,
    /// One after the other or at random.
    pub order: Order,
    /// `bs`, `bsrange` or `bssplit`.
    pub sizes: [BlockSizes; 2],
    /// `iodepth`; 1 for engines that wait for each I/O.
    pub depth: u32,
    /// `numjobs`.
    pub threads: u32,
    /// `size`; the whole of the files when not given.
    pub size: Option<Amount>,
    /// `io_size`; as `size` when not given.
    pub io_size: Option<Amount>,
    /// `offset`.
    pub offset: Amount,
    /// `offset_increment`, which counts a thread.
    pub offset_increment: Amount,
    /// `runtime`.
    pub runtime: Option<Span>,
    /// `ramp_time`, by which the job runs longer.
    pub ramp: Span,
    /// `time_based`.
    pub is_time_based: bool,
    /// `startdelay`, from and to; each thread draws its own.
    pub start_delay: (Span, Span),
    /// `number_ios`.
    pub number_ios: Option<u64>,
    /// `loops`.
    pub loops: u64,
    /// `rate_iops` and `rate`.
    pub rates: [RateLimit; 2],
    /// `rate_process`.
    pub rate_process: RateProcess,
    /// `random_distribution`.
    pub distributions: [Distribution; 2],
    /// Whether random I/O covers every block before it takes one again; `norandommap` turns it off.
    pub has_random_map: bool,
    /// `randseed`.
    pub random_seed: Option<u64>,
    /// `filename`; empty when fio would make one up for each thread.
    pub files: Vec<String>,
    /// `file_service_type`.
    pub file_order: FileOrder,
    /// `stonewall`: waits for all jobs before it.
    pub is_walled: bool,
}

/// Reads, writes or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mixture {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Both.
    Mixed {
        /// `rwmixread`.
        read_percent: u8,
    },
}

/// The order of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One after the other; reads and writes keep a position each.
    Sequential {
        /// What is left out behind each I/O (`rw=read:8k`), in bytes.
        hole: u64,
    },
    /// At random.
    Random {
        /// How many I/Os follow each other from one random address on (`rw=randread:8`); 1 unless
        /// it is given.
        run: u32,
    },
}

/// Sizes of I/Os in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockSizes {
    /// Always the same.
    One {
        /// In bytes.
        bytes: u64,
    },
    /// Uniform over the multiples of the least one.
    Range {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// By percentages, which add up to 100.
    Split {
        /// In the order of the file.
        parts: Vec<Split>,
    },
}

/// A part of `bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Split {
    /// In bytes.
    pub bytes: u64,
    /// Of 100.
    pub percent: u32,
}

/// Bytes, or a percentage of a file's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// From 1 to 100.
    Percent(u8),
}

/// How fast one direction may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RateLimit {
    /// `rate_iops`.
    pub ios_per_second: Option<u64>,
    /// `rate`.
    pub bytes_per_second: Option<u64>,
}

/// How a rate is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateProcess {
    /// On a schedule of equal gaps; a late request catches up.
    Linear,
    /// With exponential gaps.
    Poisson,
}

/// Distribution of random I/O. `center` is the place of the most frequent access, as a share of the
/// region.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Every block alike.
    Uniform,
    /// Zipf's, scattered over the region.
    Zipf {
        /// Its exponent, positive and not 1.
        theta: f64,
        /// Random when not given.
        center: Option<f64>,
    },
    /// Pareto's, scattered over the region.
    Pareto {
        /// The power, between 0 and 1.
        power: f64,
        /// Random when not given.
        center: Option<f64>,
    },
    /// Gauss'.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
        /// 0.5 when not given.
        center: f64,
    },
    /// Zones one behind the other.
    Zoned {
        /// In order of address.
        zones: Vec<Zone>,
    },
}

/// A part of the region.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Zone {
    /// How many of 100 I/Os go there.
    pub access_percent: u32,
    /// How large it is.
    pub extent: ZoneExtent,
}

/// How large a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneExtent {
    /// Of the region.
    Percent(u32),
    /// Absolutely.
    Bytes(u64),
}

/// Which of a job's files is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOrder {
    /// In turn.
    RoundRobin,
    /// Any.
    Random,
    /// One is finished before the next is begun.
    Sequential,
}

impl JobFile {
    /// The names of all files, in the order in which the jobs first use them.
    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.jobs.iter().flat_map(|job| (0..job.threads).flat_map(|thread| job.files_of(thread))) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl Job {
    /// The files of one of its threads.
    pub fn files_of(&self, thread: u32) -> Vec<String> {
        if self.files.is_empty() { vec![format!("{}.{thread}.0", self.name)] } else { self.files.clone() }
    }

    /// The directions that it has, 0 for reads and 1 for writes.
    pub fn directions(&self) -> &'static [usize] {
        match self.mixture {
            Mixture::Read => &[0],
            Mixture::Write => &[1],
            Mixture::Mixed { .. } => &[0, 1],
        }
    }

    /// Its one size, if it has no other.
    pub fn only_size(&self) -> Option<u64> {
        let mut sizes = self.directions().iter().map(|direction| &self.sizes[*direction]);
        let first = sizes.next()?;
        let same = sizes.all(|size| size == first);
        (same && first.least() == first.most()).then(|| first.least())
    }
}

impl BlockSizes {
    /// The smallest.
    pub fn least(&self) -> u64 {
        match self {
            BlockSizes::One { bytes } => *bytes,
            BlockSizes::Range { min, .. } => *min,
            BlockSizes::Split { parts } => parts.iter().map(|part| part.bytes).min().unwrap_or(0),
        }
    }

    /// The largest.
    pub fn most(&self) -> u64 {
        match self {
            BlockSizes::One { bytes } => *bytes,
            BlockSizes::Range { max, .. } => *max,
            BlockSizes::Split { parts } => parts.iter().map(|part| part.bytes).max().unwrap_or(0),
        }
    }
}
