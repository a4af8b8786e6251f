//! One thread of a job: its next request.

use super::address::Chooser;
use super::job::{BlockSizes, FileOrder, Job, Mixture, Order, RateLimit, RateProcess};
use crate::permutation::Permutation;
use base::{NodeId, Operation, Seed, Span, Stream, Time};

/// An I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub operation: Operation,
    pub target: NodeId,
    pub address: u64,
    pub bytes: u64,
}

/// A part of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub target: NodeId,
    pub start: u64,
    pub length: u64,
}

/// A thread that runs.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    job: Job,
    files: Vec<File>,
    turn: usize,
    /// The remaining bytes; `None` if only time ends it.
    bytes_left: Option<u64>,
    ios_left: Option<u64>,
    is_over: bool,
    direction: Stream,
    size: Stream,
    address: Stream,
    file: Stream,
}

/// Position in a file. Pairs are for reads and for writes.
#[derive(Clone, Debug)]
struct File {
    region: Region,
    positions: [u64; 2],
    wraps: [u64; 2],
    choosers: [Chooser; 2],
    /// The pass of a random map and how far it is.
    pass: Permutation,
    passed: u64,
    /// What is left of a run from a random address on.
    run_left: u32,
    run_next: u64,
    /// What is left of it when files are finished one by one.
    bytes_left: u64,
}

impl Thread {
    /// The thread with the given `regions`. Every region holds the job's largest I/O.
    pub(super) fn new(job: &Job, regions: &[Region], io_bytes: Option<u64>, seed: Seed) -> Thread {
        let stream = |purpose: &str| seed.stream(purpose);
        let mut address = stream("address");
        let files: Vec<File> = regions.iter().map(|region| File::new(job, *region, &mut address)).collect();
        let whole: u64 = files.iter().map(|file| file.bytes_left).fold(0, u64::saturating_add);
        let bytes = io_bytes.unwrap_or(whole).saturating_mul(job.loops);
        Thread {
            job: job.clone(),
            files,
            turn: 0,
            bytes_left: (!job.is_time_based).then_some(bytes),
            ios_left: job.number_ios,
            is_over: false,
            direction: stream("direction"),
            size: stream("size"),
            address,
            file: stream("file"),
        }
    }

    /// Returns the next I/O, or `None` at the end of the thread.
    pub(super) fn next(&mut self) -> Option<Io> {
        if self.is_over || self.bytes_left == Some(0) || self.ios_left == Some(0) {
            self.is_over = true;
            return None;
        }
        let direction = self.draw_direction();
        let bytes = self.job.sizes[direction].draw(&mut self.size);
        let file = self.draw_file();
        let ends_with_region = self.job.io_size.is_none() && !self.job.is_time_based;
        let passes_max = if ends_with_region { self.job.loops } else { u64::MAX };
        let (job, address) = (&self.job, &mut self.address);
        let Some(offset) = self.files[file].offset(job, direction, bytes, passes_max, address) else {
            self.is_over = true;
            return None;
        };
        self.count(file, bytes);
        let operation = if direction == 0 { Operation::Read } else { Operation::Write };
        let Region { target, start, .. } = self.files[file].region;
        Some(Io { operation, target, address: start + offset, bytes })
    }

    fn count(&mut self, file: usize, bytes: u64) {
        if let Some(left) = &mut self.bytes_left {
            *left = left.saturating_sub(bytes);
        }
        if let Some(left) = &mut self.ios_left {
            *left -= 1;
        }
        self.files[file].bytes_left = self.files[file].bytes_left.saturating_sub(bytes);
    }

    fn draw_direction(&mut self) -> usize {
        match self.job.mixture {
            Mixture::Read => 0,
            Mixture::Write => 1,
            Mixture::Mixed { read_percent } => usize::from(self.direction.below(100) >= u64::from(read_percent)),
        }
    }

    fn draw_file(&mut self) -> usize {
        let count = self.files.len();
        let now = self.turn;
        match self.job.file_order {
            FileOrder::RoundRobin => self.turn = (now + 1) % count,
            FileOrder::Random => return self.file.below(count as u64) as usize,
            FileOrder::Sequential if self.files[now].bytes_left == 0 => {
                self.files[now].bytes_left = self.files[now].usable(&self.job);
                self.turn = (now + 1) % count;
                return self.turn;
            }
            FileOrder::Sequential => {}
        }
        now
    }
}

impl BlockSizes {
    fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            BlockSizes::One { bytes } => *bytes,
            BlockSizes::Range { min, max } => min * (1 + stream.below(max / min)),
            BlockSizes::Split { parts } => {
                let mut percent = stream.below(100) as u32;
                let part = parts.iter().find(|part| {
                    let is_it = percent < part.percent;
                    percent = percent.saturating_sub(part.percent);
                    is_it
                });
                part.or(parts.last()).map_or(0, |part| part.bytes)
            }
        }
    }
}

impl File {
    fn new(job: &Job, region: Region, stream: &mut Stream) -> File {
        let chooser = |direction: usize, stream: &mut Stream| {
            let block = job.sizes[direction].least();
            Chooser::new(&job.distributions[direction], (region.length / block).max(1), block, stream)
        };
        let choosers = [chooser(0, stream), chooser(1, stream)];
        let mut file = File {
            region,
            positions: [0; 2],
            wraps: [0; 2],
            choosers,
            pass: Permutation::new(1, 0),
            passed: 0,
            run_left: 0,
            run_next: 0,
            bytes_left: 0,
        };
        file.bytes_left = file.usable(job);
        file
    }

    /// Bytes of one pass: whole blocks, if there is one size of them.
    fn usable(&self, job: &Job) -> u64 {
        job.only_size().map_or(self.region.length, |size| self.region.length - self.region.length % size)
    }

    /// Returns the place of an I/O in the region; `None` beyond its end if no passes are left.
    fn offset(&mut self, job: &Job, direction: usize, bytes: u64, passes_max: u64, stream: &mut Stream) -> Option<u64> {
        match job.order {
            Order::Sequential { hole } => self.sequential(direction, bytes, hole, passes_max),
            Order::Random { run } => Some(self.random(job, direction, bytes, run, stream)),
        }
    }

    fn sequential(&mut self, direction: usize, bytes: u64, hole: u64, passes_max: u64) -> Option<u64> {
        if self.positions[direction] + bytes > self.region.length {
            self.wraps[direction] += 1;
            self.positions[direction] = 0;
            // Only holes bring a position to the end before all bytes are requested.
            if hole > 0 && self.wraps[direction] >= passes_max {
                return None;
            }
        }
        let offset = self.positions[direction];
        self.positions[direction] = offset.saturating_add(bytes).saturating_add(hole);
        Some(offset)
    }

    fn random(&mut self, job: &Job, direction: usize, bytes: u64, run: u32, stream: &mut Stream) -> u64 {
        let last = self.region.length - bytes;
        let is_in_run = self.run_left > 0 && self.run_next <= last;
        let offset = if is_in_run { self.run_next } else { self.block(job, direction, last, stream) };
        self.run_left = if is_in_run { self.run_left - 1 } else { run - 1 };
        self.run_next = offset + bytes;
        offset
    }

    /// A block's offset, at most `last`.
    fn block(&mut self, job: &Job, direction: usize, last: u64, stream: &mut Stream) -> u64 {
        let size = job.sizes[direction].least();
        let block = match job.has_random_map {
            true => self.next_of_pass(self.region.length / size, stream),
            false => self.choosers[direction].draw(stream),
        };
        block.min(last / size) * size
    }

    fn next_of_pass(&mut self, blocks: u64, stream: &mut Stream) -> u64 {
        if self.passed == 0 {
            self.pass = Permutation::new(blocks, stream.below(u64::MAX));
        }
        let block = self.pass.at(self.passed);
        self.passed = (self.passed + 1) % blocks;
        block
    }
}

/// Returns the earliest time of the thread's next request, by its rates.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    rates: [RateLimit; 2],
    process: RateProcess,
    start: Time,
    /// So far, a direction.
    ios: [u64; 2],
    bytes: [u64; 2],
    /// When the next is due with exponential gaps, in picoseconds after the start.
    due_ps: [f64; 2],
    gaps: Stream,
}

impl Pace {
    pub(super) fn new(job: &Job, start: Time, seed: Seed) -> Pace {
        let gaps = seed.stream("rate");
        Pace { rates: job.rates, process: job.rate_process, start, ios: [0; 2], bytes: [0; 2], due_ps: [0.0; 2], gaps }
    }

    /// Returns the time at which `io` is due, and counts it.
    pub(super) fn due(&mut self, io: &Io) -> Time {
        let direction = usize::from(io.operation != Operation::Read);
        let RateLimit { ios_per_second, bytes_per_second } = self.rates[direction];
        let after = match self.process {
            RateProcess::Linear => {
                let ios = ios_per_second.map_or(0, |rate| picoseconds(self.ios[direction], rate));
                let bytes = bytes_per_second.map_or(0, |rate| picoseconds(self.bytes[direction], rate));
                Span::ps(ios.max(bytes))
            }
            RateProcess::Poisson => {
                let due = self.due_ps[direction];
                let by_ios = ios_per_second.map_or(0.0, |rate| 1e12 / rate as f64);
                let by_bytes = bytes_per_second.map_or(0.0, |rate| 1e12 * io.bytes as f64 / rate as f64);
                self.due_ps[direction] += self.gaps.exponential(by_ios.max(by_bytes));
                Span::from_ps_f64(due)
            }
        };
        self.ios[direction] += 1;
        self.bytes[direction] += io.bytes;
        self.start.checked_add(after).unwrap_or(Time::MAX)
    }
}

/// How long `amount` takes at `rate` a second.
fn picoseconds(amount: u64, rate: u64) -> u64 {
    let span = u128::from(amount) * u128::from(Span::secs(1).as_ps()) / u128::from(rate);
    u64::try_from(span).unwrap_or(u64::MAX)
}
