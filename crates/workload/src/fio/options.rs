//! What each option means.

use super::ini::Written;
use super::job::{Amount, BlockSizes, Distribution, FileOrder, Job, Mixture, Order, RateLimit, RateProcess};
use super::value::{Values, time, times, truth};
use crate::file::{FileError, Reason};
use crate::problem::DEPTH_MAX;
use base::Span;

/// The block size when none is given.
const BLOCK: u64 = 4096;
/// The most threads of a job.
const THREADS_MAX: u64 = 1 << 16;

/// Options that concern fio's own machinery, its files, its reports or the contents of buffers:
/// they change no request.
const HARMLESS: [&str; 69] = [
    "allow_file_create",
    "allow_mounted_write",
    "allrandrepeat",
    "bandwidth_log",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "buffered",
    "bwavgtime",
    "clat_percentiles",
    "clocksource",
    "continue_on_error",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_fsync",
    "create_on_open",
    "create_serialize",
    "dedupe_percentage",
    "description",
    "direct",
    "directory",
    "disable_bw",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "fadvise_hint",
    "fallocate",
    "fixedbufs",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "hipri",
    "hugepage-size",
    "invalidate",
    "iomem",
    "iomem_align",
    "iopsavgtime",
    "ioscheduler",
    "lat_percentiles",
    "lockmem",
    "log_avg_msec",
    "log_hist_msec",
    "log_offset",
    "mem",
    "mem_align",
    "name",
    "new_group",
    "nice",
    "nonvectored",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "openfiles",
    "overwrite",
    "percentile_list",
    "random_generator",
    "randrepeat",
    "refill_buffers",
    "registerfiles",
    "scramble_buffers",
    "slat_percentiles",
    "softrandommap",
    "sqthread_poll",
    "thread",
    "unified_rw_reporting",
    "unlink",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
];
/// Engines that keep `iodepth` I/Os in flight.
const ASYNCHRONOUS: [&str; 11] = [
    "libaio",
    "io_uring",
    "io_uring_cmd",
    "posixaio",
    "windowsaio",
    "solarisaio",
    "sg",
    "null",
    "nvme",
    "xnvme",
    "libblkio",
];
/// Engines that wait for each I/O: "increasing iodepth beyond 1 will not affect synchronous
/// ioengines". fio's default is one of them.
const SYNCHRONOUS: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];

/// The job of a section, whose options are all that go for it, later ones over earlier ones.
pub(super) fn job(file: &str, section: &str, options: Vec<Written>, notes: &mut Vec<String>) -> Result<Job, FileError> {
    let mut building = Building::new(file, section, notes);
    building.find_base(&options)?;
    for option in &options {
        building.take(option).map_err(|why| building.error(option, why))?;
    }
    building.finish(&options)
}

/// A job in the making.
struct Building<'a> {
    file: &'a str,
    values: Values,
    job: Job,
    /// `iodepth` as it is written.
    depth: u32,
    waits_for_each: bool,
    is_direct: bool,
    engine: Option<String>,
    read_percent: u8,
    is_mixed: bool,
    notes: &'a mut Vec<String>,
}

impl<'a> Building<'a> {
    fn new(file: &'a str, section: &str, notes: &'a mut Vec<String>) -> Building<'a> {
        Building {
            file,
            values: Values { kb_base: 1024 },
            job: plain(section),
            depth: 1,
            waits_for_each: true,
            is_direct: false,
            engine: None,
            read_percent: 50,
            is_mixed: false,
            notes,
        }
    }

    fn error(&self, option: &Written, why: String) -> FileError {
        let reason = Reason::Option { option: option.key.clone(), why };
        FileError { file: self.file.into(), line: option.line, reason }
    }

    /// `kb_base` also applies to the values before it.
    fn find_base(&mut self, options: &[Written]) -> Result<(), FileError> {
        for option in options.iter().filter(|option| option.key == "kb_base") {
            self.values.kb_base = match option.value.as_str() {
                "1000" => 1000,
                "1024" => 1024,
                other => return Err(self.error(option, format!("has the value `{other}`, allowed are 1000 and 1024"))),
            };
        }
        Ok(())
    }

    fn take(&mut self, option: &Written) -> Result<(), String> {
        let Written { key, value, .. } = option;
        if value.contains('$') || value.contains('(') {
            return Err(format!("has the value `{value}`: variables and arithmetic are not supported"));
        }
        if HARMLESS.contains(&key.as_str()) {
            self.is_direct |= key == "direct" && truth(value)?;
            let Written { line, .. } = option;
            let file = self.file;
            let note = format!("{file}:{line}: `{key}` concerns fio's own machinery and changes nothing here");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
            return Ok(());
        }
        let taken = [Self::take_pattern, Self::take_amount, Self::take_time, Self::take_machinery];
        for take in taken {
            if take(self, key, value)? {
                return Ok(());
            }
        }
        Err("is not supported: it would be ignored silently".into())
    }

    /// Operation and place.
    fn take_pattern(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let values = self.values;
        let job = &mut self.job;
        match key {
            "rw" | "readwrite" => self.take_direction(value)?,
            "rwmixread" => self.read_percent = values.within(value, 0, 100)? as u8,
            "rwmixwrite" => self.read_percent = 100 - values.within(value, 0, 100)? as u8,
            "bs" | "blocksize" => values.directions(value, &mut job.sizes, |text| values.one_size(text))?,
            "bsrange" | "blocksize_range" => {
                values.directions(value, &mut job.sizes, |text| values.size_range(text))?
            }
            "bssplit" => values.directions(value, &mut job.sizes, |text| values.split(text))?,
            "random_distribution" => self.take_distribution(value)?,
            "norandommap" => job.has_random_map = !truth(value)?,
            "randseed" => job.random_seed = Some(values.integer(value)?),
            "filename" => job.files = file_names(value)?,
            "nrfiles" => {
                values.within(value, 1, 1)?;
            }
            "file_service_type" => job.file_order = file_order(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Length in bytes.
    fn take_amount(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let values = self.values;
        let job = &mut self.job;
        match key {
            "size" => job.size = Some(values.amount(value)?),
            "io_size" | "io_limit" => job.io_size = Some(values.amount(value)?),
            "offset" => job.offset = values.amount(value)?,
            "offset_increment" => job.offset_increment = values.amount(value)?,
            "number_ios" => job.number_ios = Some(values.within(value, 1, u64::MAX)?),
            "loops" => job.loops = values.within(value, 1, u64::from(u32::MAX))?,
            "numjobs" => job.threads = values.within(value, 1, THREADS_MAX)? as u32,
            "iodepth" => self.depth = values.within(value, 1, u64::from(DEPTH_MAX))? as u32,
            "rate_iops" => {
                let mut rates = job.rates.map(|rate| rate.ios_per_second);
                values.directions(value, &mut rates, |text| values.within(text, 1, 1 << 40).map(Some))?;
                job.rates.iter_mut().zip(rates).for_each(|(rate, ios)| rate.ios_per_second = ios);
            }
            "rate" => {
                let mut rates = job.rates.map(|rate| rate.bytes_per_second);
                values.directions(value, &mut rates, |text| values.within(text, 1, 1 << 50).map(Some))?;
                job.rates.iter_mut().zip(rates).for_each(|(rate, bytes)| rate.bytes_per_second = bytes);
            }
            "rate_process" => {
                job.rate_process = match value {
                    "linear" => RateProcess::Linear,
                    "poisson" => RateProcess::Poisson,
                    _ => return Err(format!("has the value `{value}`, allowed are linear and poisson")),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The time.
    fn take_time(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let job = &mut self.job;
        match key {
            // A runtime of nothing is none.
            "runtime" | "timeout" => job.runtime = Some(time(value)?).filter(|time| *time > Span::ZERO),
            "ramp_time" => job.ramp = time(value)?,
            "time_based" => job.is_time_based = truth(value)?,
            "startdelay" => job.start_delay = times(value)?,
            "stonewall" | "wait_for_previous" => job.is_walled = truth(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What matters only by what it says about other options.
    fn take_machinery(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "kb_base" => {}
            "ioengine" => self.take_engine(value)?,
            "fsync" | "fdatasync" | "end_fsync" | "fsync_on_close" | "verify" | "thinktime" | "sync" => {
                if !["0", "none"].contains(&value) {
                    return Err(format!("is not supported with the value `{value}`: there is no such operation here"));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_direction(&mut self, value: &str) -> Result<(), String> {
        let (name, suffix) = value.split_once(':').map_or((value, None), |(name, suffix)| (name, Some(suffix)));
        let (mixture, is_random, is_mixed) = match name.trim() {
            "read" => (Mixture::Read, false, false),
            "write" => (Mixture::Write, false, false),
            "randread" => (Mixture::Read, true, false),
            "randwrite" => (Mixture::Write, true, false),
            "rw" | "readwrite" => (Mixture::Read, false, true),
            "randrw" => (Mixture::Read, true, true),
            "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                return Err(format!("has the value `{value}`: there is no trim here"));
            }
            _ => {
                return Err(format!(
                    "has the value `{value}`, allowed are read, write, randread, randwrite, rw, randrw"
                ));
            }
        };
        (self.job.mixture, self.is_mixed) = (mixture, is_mixed);
        self.job.order = match is_random {
            true => Order::Random { run: suffix.map_or(Ok(1), |text| self.values.within(text, 1, 1 << 30))? as u32 },
            false => Order::Sequential { hole: suffix.map_or(Ok(0), |text| self.values.within(text, 0, 1 << 40))? },
        };
        Ok(())
    }

    fn take_distribution(&mut self, value: &str) -> Result<(), String> {
        let values = self.values;
        // Only zones may differ between reads and writes; only the first has their name.
        let Some((kind, rest)) = value.split_once([':', '=']).filter(|(kind, _)| kind.starts_with("zoned")) else {
            let one = values.distribution(value)?;
            self.job.distributions = [one.clone(), one];
            return Ok(());
        };
        values.directions(rest, &mut self.job.distributions, |part| values.distribution(&format!("{kind}:{part}")))
    }

    fn take_engine(&mut self, value: &str) -> Result<(), String> {
        let is_asynchronous =
            ASYNCHRONOUS.contains(&value) || value.starts_with("spdk") || value.starts_with("external:");
        if !is_asynchronous && !SYNCHRONOUS.contains(&value) {
            return Err(format!("has the value `{value}`, which is no engine for block storage that is known here"));
        }
        self.waits_for_each = !is_asynchronous;
        self.engine = Some(value.into());
        Ok(())
    }

    fn finish(mut self, options: &[Written]) -> Result<Job, FileError> {
        self.settle_depth();
        if self.is_mixed {
            self.job.mixture = Mixture::Mixed { read_percent: self.read_percent };
        }
        let is_endless = self.job.is_time_based && self.job.runtime.is_none();
        if let Some(option) = options.iter().rev().find(|option| is_endless && option.key == "time_based") {
            return Err(self.error(option, "needs a `runtime`".into()));
        }
        self.settle_map();
        Ok(self.job)
    }

    fn settle_depth(&mut self) {
        let (name, depth) = (&self.job.name, self.depth);
        if self.waits_for_each && depth > 1 {
            let engine = self.engine.as_deref().unwrap_or("psync, fio's default");
            let note = format!(
                "{}: [{name}]: iodepth {depth} is 1, since the engine ({engine}) waits for each I/O",
                self.file
            );
            self.notes.push(note);
        }
        if self.engine.as_deref() == Some("libaio") && depth > 1 && !self.is_direct {
            let note = format!(
                "{}: [{name}]: libaio queues only with direct=1 on Linux; iodepth {depth} is kept here",
                self.file
            );
            self.notes.push(note);
        }
        self.job.depth = if self.waits_for_each { 1 } else { depth };
    }

    /// A map of blocks needs blocks of one size.
    fn settle_map(&mut self) {
        let job = &mut self.job;
        let is_random = matches!(job.order, Order::Random { .. });
        let is_uniform = job.directions().iter().all(|each| job.distributions[*each] == Distribution::Uniform);
        if is_random && is_uniform && job.has_random_map && job.only_size().is_none() {
            self.notes.push(format!("{}: [{}]: several block sizes: as with norandommap", self.file, job.name));
        }
        let has_runs = matches!(job.order, Order::Random { run } if run > 1);
        job.has_random_map &= is_random && is_uniform && !has_runs && job.only_size().is_some();
    }
}

fn plain(section: &str) -> Job {
    Job {
        name: section.into(),
        mixture: Mixture::Read,
        order: Order::Sequential { hole: 0 },
        sizes: [BlockSizes::One { bytes: BLOCK }, BlockSizes::One { bytes: BLOCK }],
        depth: 1,
        threads: 1,
        size: None,
        io_size: None,
        offset: Amount::Bytes(0),
        offset_increment: Amount::Bytes(0),
        runtime: None,
        ramp: Span::ZERO,
        is_time_based: false,
        start_delay: (Span::ZERO, Span::ZERO),
        number_ios: None,
        loops: 1,
        rates: [RateLimit::default(); 2],
        rate_process: RateProcess::Linear,
        distributions: [Distribution::Uniform, Distribution::Uniform],
        has_random_map: true,
        random_seed: None,
        files: Vec::new(),
        file_order: FileOrder::RoundRobin,
        is_walled: false,
    }
}

/// Names with colons between; `\:` is a colon of a name.
fn file_names(value: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut is_escaped = false;
    for c in value.chars() {
        let last = names.last_mut().expect("there is a name from the start on");
        match c {
            '\\' if !is_escaped => is_escaped = true,
            ':' if !is_escaped => names.push(String::new()),
            c => {
                if is_escaped && c != ':' && c != '\\' {
                    last.push('\\');
                }
                last.push(c);
                is_escaped = false;
            }
        }
    }
    if names.iter().any(String::is_empty) || value == "-" {
        return Err(format!("has the value `{value}`, which is no list of names with `:` between"));
    }
    Ok(names)
}

fn file_order(value: &str) -> Result<FileOrder, String> {
    match value {
        "roundrobin" => Ok(FileOrder::RoundRobin),
        "random" => Ok(FileOrder::Random),
        "sequential" => Ok(FileOrder::Sequential),
        _ => Err(format!("has the value `{value}`, allowed are roundrobin, random and sequential")),
    }
}
