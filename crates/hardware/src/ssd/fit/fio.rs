//! Parses fio's JSON (`fio --output-format=json`, version 3).
//!
//! Jobs of one group ran at the same time: they are one point, with the sum of their depths, and
//! must be alike. Jobs after a `stonewall` have groups of their own. The parser compares the
//! requested depth with the measured one (commands per second times mean latency). A synchronous
//! engine keeps one command in flight for any `iodepth`, and a rate limit keeps fewer.

use super::{ClosedLoad, FitPoint};
use base::{Bytes, Span};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Read;

/// What came of a file of fio.
#[derive(Clone, Debug, PartialEq)]
pub struct FioRun {
    /// fio's version, as it says.
    pub version: String,
    /// The points, in the order of the file.
    pub points: Vec<FitPoint>,
    /// What may be wrong with the measurement, with the job.
    pub warnings: Vec<String>,
}

/// What is wrong with a file of fio, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct FioError {
    /// The path in the file, `jobs[2] (qd4).read.iops`; or line and column where it is no JSON.
    pub place: String,
    /// What was got and what is allowed.
    pub reason: String,
}

/// Required share of the requested depth. The measured depth may exceed it: fio's mean latency
/// counts commands before and after the run. Ours.
const DEPTH_SHARE: (f64, f64) = (0.85, 1.1);
/// Options that make another load than the model plays, with the values that do not.
const REFUSED: [(&str, &[&str], &str); 7] = [
    ("random_distribution", &["random"], "the model draws addresses evenly"),
    ("percentage_random", &["100"], "the model draws every address at random"),
    ("bssplit", &[], "the commands of a point must be of one size"),
    ("bsrange", &[], "the commands of a point must be of one size"),
    ("fsync", &["0"], "the model does not flush"),
    ("fdatasync", &["0"], "the model does not flush"),
    ("sync", &["0", "none"], "the model does not flush"),
];
/// Engines that bypass the page cache by default.
const ALWAYS_DIRECT: [&str; 4] = ["spdk", "spdk_bdev", "io_uring_cmd", "libblkio"];

/// Reads a file of fio.
pub fn read_fio(source: impl Read) -> Result<FioRun, FioError> {
    let value: Value = serde_json::from_reader(source).map_err(not_json)?;
    let root = At { value: &value, path: String::new() };
    let version = root.get("fio version")?.text()?.to_owned();
    let global = root.find("global options");
    let mut groups: Vec<(f64, Vec<Job<'_>>)> = Vec::new();
    for (index, entry) in root.get("jobs")?.list()?.iter().enumerate() {
        let job = Job::new(index, entry, global.clone())?;
        let group = job.at.get("groupid")?.number()?;
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, jobs)) => jobs.push(job),
            None => groups.push((group, vec![job])),
        }
    }
    if groups.is_empty() {
        return Err(FioError::new("jobs", "no job, and at least one is needed"));
    }
    let mut warnings = Vec::new();
    let points = groups.iter().map(|(_, jobs)| point(jobs, &mut warnings)).collect::<Result<Vec<_>, _>>()?;
    Ok(FioRun { version, points: named_apart(points), warnings })
}

fn not_json(error: serde_json::Error) -> FioError {
    let place = format!("line {} column {}", error.line(), error.column());
    let hint =
        "needed is what `fio --output-format=json` writes; fio's own notes before it go away with `--output=FILE`";
    // The parser's message ends with the position, which is already at its start here.
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    FioError { place, reason: format!("not JSON: {said}; {hint}") }
}

/// A point of jobs that ran together.
fn point(jobs: &[Job<'_>], warnings: &mut Vec<String>) -> Result<FitPoint, FioError> {
    let first = &jobs[0];
    let pattern = first.pattern()?;
    let bytes = first.bytes()?;
    let mut sum = Sum::default();
    let mut depth = 0.0;
    for job in jobs {
        job.check()?;
        if (job.pattern()?, job.bytes()?) != (pattern, bytes) {
            let reason = format!(
                "ran together with {} ({pattern}, {bytes}) but is {}, {}; put `stonewall` between jobs that differ",
                first.name,
                job.pattern()?,
                job.bytes()?
            );
            return Err(job.at.wrong(reason));
        }
        sum.add(job)?;
        depth += job.whole("iodepth", 1)? as f64;
    }
    if jobs.len() == 1 {
        depth *= first.whole("numjobs", 1)? as f64;
    }
    let depth = sum.checked_depth(first, depth)?;
    warnings.extend(jobs.iter().find_map(|job| job.cache_warning()));
    let load = ClosedLoad { read_share: sum.reads / sum.iops, bytes, depth };
    let latency = Span::from_ps_f64(sum.latency_ns / sum.iops * 1e3);
    Ok(FitPoint { name: first.name.clone(), load, iops: sum.iops, latency })
}

/// Points of one name get numbers.
fn named_apart(mut points: Vec<FitPoint>) -> Vec<FitPoint> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    points.iter().for_each(|point| *count.entry(point.name.clone()).or_default() += 1);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for point in points.iter_mut().filter(|point| count[&point.name] > 1) {
        let number = seen.entry(point.name.clone()).or_default();
        *number += 1;
        point.name = format!("{}#{number}", point.name);
    }
    points
}

/// A job of the file.
struct Job<'a> {
    name: String,
    at: At<'a>,
    options: Option<At<'a>>,
    global: Option<At<'a>>,
}

impl<'a> Job<'a> {
    fn new(index: usize, value: &'a Value, global: Option<At<'a>>) -> Result<Job<'a>, FioError> {
        let unnamed = At { value, path: format!("jobs[{index}]") };
        let name = unnamed.get("jobname")?.text()?.to_owned();
        let at = At { value, path: format!("jobs[{index}] ({name})") };
        let options = at.find("job options");
        Ok(Job { name, at, options, global })
    }
    /// An option of the job or of all jobs.
    fn option(&self, name: &str) -> Result<Option<(At<'a>, &'a str)>, FioError> {
        let own = self.options.as_ref().and_then(|options| options.find(name));
        let found = own.or_else(|| self.global.as_ref().and_then(|global| global.find(name)));
        found.map(|at| at.text().map(|text| (at.clone(), text))).transpose()
    }
    fn check(&self) -> Result<(), FioError> {
        let error = self.at.get("error")?;
        if error.number()? != 0.0 {
            return Err(error.wrong(format!("the job failed with error {}", error.value)));
        }
        for (name, allowed, reason) in REFUSED {
            if let Some((at, text)) = self.option(name)?.filter(|(_, text)| !allowed.contains(text)) {
                return Err(at.wrong(format!("`{text}` cannot be fitted: {reason}")));
            }
        }
        Ok(())
    }
    fn pattern(&self) -> Result<&'a str, FioError> {
        let Some((at, text)) = self.option("rw")? else {
            return Err(self
                .at
                .wrong("no option `rw`, so that it was sequential reads; needed is randread, randwrite or randrw"));
        };
        match text {
            "randread" | "randwrite" | "randrw" => Ok(text),
            _ => Err(at.wrong(format!(
                "the pattern `{text}` cannot be fitted; needed is randread, randwrite or randrw, for the model draws addresses at random"
            ))),
        }
    }
    fn bytes(&self) -> Result<Bytes, FioError> {
        // fio's own default.
        let Some((at, text)) = self.option("bs")? else { return Ok(Bytes::kib(4)) };
        let needed =
            || at.wrong(format!("the size `{text}` cannot be fitted; needed is one size up to 16 MiB, as 4k or 4096"));
        if self.option("kb_base")?.is_some_and(|(_, base)| base != "1024") {
            return Err(at.wrong(format!("`{text}` in units of `kb_base` other than 1024")));
        }
        let bytes = size(text).ok_or_else(needed)?;
        if bytes == Bytes::ZERO || bytes > ClosedLoad::BYTES_MAX { Err(needed()) } else { Ok(bytes) }
    }
    fn whole(&self, name: &str, default: u32) -> Result<u32, FioError> {
        let Some((at, text)) = self.option(name)? else { return Ok(default) };
        let number = text.parse::<u32>().ok().filter(|number| (1..=ClosedLoad::DEPTH_MAX).contains(number));
        number.ok_or_else(|| {
            at.wrong(format!("`{text}`, and a whole number of 1 to {} is needed", ClosedLoad::DEPTH_MAX))
        })
    }
    fn cache_warning(&self) -> Option<String> {
        let is = |name: &str, values: &[&str]| {
            self.option(name).ok().flatten().is_some_and(|(_, text)| values.contains(&text))
        };
        let is_direct = is("direct", &["1"]) || is("buffered", &["0"]) || is("ioengine", &ALWAYS_DIRECT);
        let warning =
            || format!("{}: neither direct=1 nor buffered=0: fio may have measured the page cache", self.name);
        (!is_direct).then(warning)
    }
}

/// A size as fio writes it: 4096, 4k, 4KiB, 1m. (With fio's usual `kb_base`, k and kb are 1024
/// too.)
fn size(text: &str) -> Option<Bytes> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let shift = match text[end..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" | "ki" => 10,
        "m" | "mb" | "mib" | "mi" => 20,
        _ => return None,
    };
    number.checked_mul(1 << shift).map(Bytes::new)
}

/// What jobs that ran together did.
#[derive(Default)]
struct Sum {
    iops: f64,
    reads: f64,
    /// Mean latencies, weighted with commands per second: by Little's law 10^9 times the commands
    /// in flight.
    latency_ns: f64,
}

impl Sum {
    fn add(&mut self, job: &Job<'_>) -> Result<(), FioError> {
        let (reads, read_latency) = direction(&job.at.get("read")?)?;
        let (writes, write_latency) = direction(&job.at.get("write")?)?;
        if reads + writes == 0.0 {
            return Err(job.at.wrong("no read and no write was done (read.iops and write.iops are 0)"));
        }
        self.iops += reads + writes;
        self.reads += reads;
        self.latency_ns += reads * read_latency + writes * write_latency;
        Ok(())
    }
    fn checked_depth(&self, first: &Job<'_>, asked: f64) -> Result<u32, FioError> {
        let share = self.latency_ns / 1e9 / asked;
        if asked > f64::from(ClosedLoad::DEPTH_MAX) {
            let reason = format!("{asked} commands at a time, and at most {} are allowed", ClosedLoad::DEPTH_MAX);
            return Err(first.at.wrong(reason));
        }
        if !(DEPTH_SHARE.0..=DEPTH_SHARE.1).contains(&share) {
            let mean = self.latency_ns / 1e9;
            return Err(first.at.wrong(format!(
                "{mean:.2} commands were in flight on average ({:.1} a second of {:.1} us each), and {asked} were requested \
                 (iodepth times numjobs): an engine that is synchronous, a rate limit, or a processor that cannot keep up",
                self.iops,
                self.latency_ns / self.iops / 1e3
            )));
        }
        Ok(asked as u32)
    }
}

/// Commands a second and mean latency in ns of `read` or `write`; nothing if there were none.
fn direction(at: &At<'_>) -> Result<(f64, f64), FioError> {
    let iops = at.get("iops")?;
    let rate = iops.not_negative()?;
    if rate == 0.0 {
        return Ok((0.0, 0.0));
    }
    let runtime = at.get("runtime")?;
    if runtime.not_negative()? == 0.0 {
        return Err(runtime.wrong(format!("0 ms, with {rate} commands a second")));
    }
    let total = at.find("lat_ns").or_else(|| at.find("clat_ns"));
    let total = total.ok_or_else(|| at.wrong("neither `lat_ns` nor `clat_ns`, which fio writes since version 3.0"))?;
    let mean = total.get("mean")?;
    match mean.not_negative()? {
        0.0 => Err(mean.wrong(format!("0 ns, with {rate} commands a second"))),
        latency => Ok((rate, latency)),
    }
}

/// A value and its position.
#[derive(Clone)]
struct At<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> At<'a> {
    fn find(&self, key: &str) -> Option<At<'a>> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        self.value.get(key).map(|value| At { value, path })
    }
    fn get(&self, key: &str) -> Result<At<'a>, FioError> {
        self.find(key).ok_or_else(|| self.wrong(format!("`{key}` is missing")))
    }
    fn text(&self) -> Result<&'a str, FioError> {
        self.value.as_str().ok_or_else(|| self.wrong(format!("{}, and a text is needed", shown(self.value))))
    }
    fn list(&self) -> Result<&'a Vec<Value>, FioError> {
        self.value.as_array().ok_or_else(|| self.wrong(format!("{}, and a list is needed", shown(self.value))))
    }
    fn number(&self) -> Result<f64, FioError> {
        self.value.as_f64().ok_or_else(|| self.wrong(format!("{}, and a number is needed", shown(self.value))))
    }
    fn not_negative(&self) -> Result<f64, FioError> {
        let number = self.number()?;
        if number >= 0.0 { Ok(number) } else { Err(self.wrong(format!("{number}, and at least 0 is needed"))) }
    }
    fn wrong(&self, reason: impl Display) -> FioError {
        let place = if self.path.is_empty() { "the whole file" } else { &self.path };
        FioError::new(place, reason)
    }
}

impl FioError {
    fn new(place: impl Into<String>, reason: impl Display) -> FioError {
        FioError { place: place.into(), reason: reason.to_string() }
    }
}

/// A value for an error: short.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(_) => "a table".into(),
        other => other.to_string().chars().take(60).collect(),
    }
}

#[cfg(test)]
mod tests;
