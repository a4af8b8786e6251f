//! The files that an experiment refers to: read once, through the caller.

use crate::error::Problem;
use crate::plan::hex;
use base::{Bytes, Span};
use hardware::ssd::RegionArchive;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::sync::Arc;
use topology::Graph;
use workload::block_trace::{BlockTrace, Format, Inversions, Tolerance, open_block_trace};
use workload::fio::{JobFile, read_job_file};
use workload::{SizeDistribution, TraceMessage, read_delays};

/// Opens the files that an experiment refers to. `plan` never sees a path: the caller decides what
/// a name is relative to.
pub trait Files {
    /// Opens `relative` as it is written in the experiment.
    ///
    /// # Errors
    /// Whatever keeps the file from being read; it becomes the reason in the error about the key.
    fn open(&self, relative: &str) -> io::Result<Box<dyn BufRead>>;
}

/// Files of a folder among those of another opener.
pub(crate) struct Within<'a> {
    pub files: &'a dyn Files,
    pub folder: &'a str,
}

impl Files for Within<'_> {
    fn open(&self, relative: &str) -> io::Result<Box<dyn BufRead>> {
        match self.folder {
            "" => self.files.open(relative),
            _ if relative.starts_with('/') => self.files.open(relative),
            folder => self.files.open(&format!("{folder}/{relative}")),
        }
    }
}

/// For experiments that refer to no file: none is found.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn open(&self, _: &str) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(io::ErrorKind::NotFound, "this experiment was given no files"))
    }
}

/// A trace with the digest of its messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trace {
    pub messages: Vec<TraceMessage>,
    pub inverted: u64,
    pub digest: String,
}

/// What was read so far, so that no file is read twice, and none after [`crate::parse`] has
/// returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    distributions: BTreeMap<(String, u64), Result<SizeDistribution, Problem>>,
    traces: BTreeMap<(String, u32, bool), Result<Trace, Problem>>,
    snapshots: BTreeMap<String, Result<SharedSnapshot, Problem>>,
    jobs: BTreeMap<String, Result<SharedJobs, Problem>>,
    graphs: BTreeMap<String, Result<SharedNetwork, Problem>>,
    delays: BTreeMap<(String, Option<u64>), Result<SharedDelays, Problem>>,
    block_traces: Vec<ReadTrace>,
}

/// The states of drives, which the points of a sweep share, with the digest of their file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedSnapshot {
    pub archive: Arc<RegionArchive>,
    pub digest: String,
}

/// The parameters of a block trace, and the result of reading it.
#[derive(Clone, Debug)]
struct ReadTrace {
    file: String,
    format: Option<Format>,
    tolerance: Tolerance,
    result: Result<SharedTrace, Problem>,
}

/// The jobs of a file, with the digest of what they are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedJobs {
    pub jobs: JobFile,
    pub digest: String,
}

/// A network of one's own, which the points of a sweep share, with the digest of what it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedNetwork {
    pub graph: Arc<Graph>,
    pub digest: String,
}

/// Recorded delays, which the points of a sweep share, with their digest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedDelays {
    pub delays: Arc<[Span]>,
    pub digest: String,
}

/// A block trace, which the points of a sweep share, with the digest of its requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedTrace {
    pub trace: Arc<BlockTrace>,
    pub format: Format,
    pub digest: String,
}

impl Sources {
    /// Whether a plan needs no file to be played again; it has distributions of sizes in itself.
    pub(crate) fn is_empty(&self) -> bool {
        let Sources { distributions: _, traces, snapshots, jobs, graphs, delays, block_traces } = self;
        let recorded = traces.is_empty() && block_traces.is_empty() && delays.is_empty();
        recorded && snapshots.is_empty() && jobs.is_empty() && graphs.is_empty()
    }

    /// The distribution in `file`, whose sizes count in `unit`.
    pub(crate) fn distribution(
        &mut self,
        files: &dyn Files,
        file: &str,
        unit: Bytes,
    ) -> Result<SizeDistribution, Problem> {
        let read = || {
            let reader = files.open(file).map_err(|error| refused(file, error))?;
            workload::read_cdf(file, unit, reader).map_err(|error| refused(file, error))
        };
        self.distributions.entry((file.into(), unit.count())).or_insert_with(read).clone()
    }

    /// The trace in `file`, for a rack of `nodes`.
    pub(crate) fn trace(
        &mut self,
        files: &dyn Files,
        file: &str,
        nodes: u32,
        inversions: Inversions,
    ) -> Result<Trace, Problem> {
        let read = || {
            let reader = files.open(file).map_err(|error| refused(file, error))?;
            let read = workload::read_trace(file, nodes, inversions, reader).map_err(|error| refused(file, error))?;
            Ok(Trace { digest: digest_of(&read.messages), messages: read.messages, inverted: read.inverted })
        };
        self.traces.entry((file.into(), nodes, inversions == Inversions::Sort)).or_insert_with(read).clone()
    }

    /// The fio jobs in `file`.
    pub(crate) fn jobs(&mut self, files: &dyn Files, file: &str) -> Result<SharedJobs, Problem> {
        let read = || {
            let reader = files.open(file).map_err(|error| refused(file, error))?;
            let jobs = read_job_file(file, reader).map_err(|error| refused(file, error))?;
            Ok(SharedJobs { digest: digest_of_jobs(&jobs), jobs })
        };
        self.jobs.entry(file.into()).or_insert_with(read).clone()
    }

    /// The network in `file`.
    pub(crate) fn graph(&mut self, files: &dyn Files, file: &str) -> Result<SharedNetwork, Problem> {
        let read = || {
            let reader = files.open(file).map_err(|error| refused(file, error))?;
            let graph = topology::file::read(file, reader).map_err(|error| refused(file, error))?;
            Ok(SharedNetwork { digest: digest_of_graph(&graph), graph: Arc::new(graph) })
        };
        self.graphs.entry(file.into()).or_insert_with(read).clone()
    }

    /// The delays in `file`, of which those without a unit count in `unit`.
    pub(crate) fn delays(
        &mut self,
        files: &dyn Files,
        file: &str,
        unit: Option<Span>,
    ) -> Result<SharedDelays, Problem> {
        let read = || {
            let reader = files.open(file).map_err(|error| refused(file, error))?;
            let delays = read_delays(file, unit, reader).map_err(|error| refused(file, error))?;
            Ok(SharedDelays { digest: digest_of_delays(&delays), delays: delays.into() })
        };
        self.delays.entry((file.into(), unit.map(Span::as_ps))).or_insert_with(read).clone()
    }

    /// The block trace in `file`, of which some lines may be bad.
    pub(crate) fn block_trace(
        &mut self,
        files: &dyn Files,
        file: &str,
        format: Option<Format>,
        tolerance: Tolerance,
    ) -> Result<SharedTrace, Problem> {
        let known = |read: &&ReadTrace| read.file == file && read.format == format && read.tolerance == tolerance;
        if let Some(read) = self.block_traces.iter().find(known) {
            return read.result.clone();
        }
        let read = || {
            let reader = files.open(file).map_err(|error| refused(file, error))?;
            let opened = open_block_trace(file, format, tolerance, reader).map_err(|error| refused(file, error))?;
            let told = opened.format();
            let trace = opened.collect(None).map_err(|error| refused(file, error))?;
            Ok(SharedTrace { format: told, digest: digest_of_blocks(&trace), trace: Arc::new(trace) })
        };
        let result = read();
        self.block_traces.push(ReadTrace { file: file.into(), format, tolerance, result: result.clone() });
        result
    }

    /// The states of drives in `file`.
    pub(crate) fn snapshot(&mut self, files: &dyn Files, file: &str) -> Result<SharedSnapshot, Problem> {
        let read = || {
            let mut bytes = Vec::new();
            let opened = files.open(file).and_then(|mut reader| reader.read_to_end(&mut bytes));
            opened.map_err(|error| refused(file, error))?;
            let archive = RegionArchive::read(bytes.as_slice()).map_err(|error| refused(file, error))?;
            Ok(SharedSnapshot { archive: Arc::new(archive), digest: hex(&Sha256::digest(&bytes)) })
        };
        self.snapshots.entry(file.into()).or_insert_with(read).clone()
    }
}

fn refused(file: &str, reason: impl ToString) -> Problem {
    Problem::File { file: file.into(), reason: reason.to_string() }
}

/// SHA-256 over the messages as numbers, so that blank lines and units do not matter.
fn digest_of(messages: &[TraceMessage]) -> String {
    let mut hash = Sha256::new();
    for message in messages {
        hash.update(message.at.as_ps().to_le_bytes());
        hash.update(message.operation.name());
        hash.update(message.source.0.to_le_bytes());
        hash.update(message.target.0.to_le_bytes());
        hash.update(message.bytes.count().to_le_bytes());
    }
    hex(&hash.finalize())
}

/// SHA-256 over what the jobs mean, so that comments and the way they are written do not matter.
fn digest_of_jobs(jobs: &JobFile) -> String {
    let text = serde_json::to_string(&jobs.jobs).expect("every job can be written in JSON");
    hex(&Sha256::digest(text))
}

/// SHA-256 over the file that says all of the graph, so that blank lines and units do not matter.
fn digest_of_graph(graph: &Graph) -> String {
    let mut text = Vec::new();
    topology::file::write(graph, &mut text).expect("memory takes whatever is written");
    hex(&Sha256::digest(text))
}

/// SHA-256 over the delays in picoseconds.
fn digest_of_delays(delays: &[Span]) -> String {
    let mut hash = Sha256::new();
    delays.iter().for_each(|delay| hash.update(delay.as_ps().to_le_bytes()));
    hex(&hash.finalize())
}

/// SHA-256 over the requests as numbers.
fn digest_of_blocks(trace: &BlockTrace) -> String {
    let mut hash = Sha256::new();
    for request in &trace.requests {
        hash.update(request.at.as_ps().to_le_bytes());
        hash.update(request.device.to_le_bytes());
        hash.update(request.operation.name());
        hash.update(request.address.to_le_bytes());
        hash.update(request.bytes.count().to_le_bytes());
    }
    hex(&hash.finalize())
}
