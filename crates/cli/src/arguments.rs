//! Arguments of the command line.

mod live;
mod rack;

pub use live::{
    AttackArguments, BenchArguments, BenchLoad, ConnectionArguments, DiskArguments, DiskVerb, KvArguments,
    ProofArguments, TargetArguments, TargetFlags,
};
pub use rack::{RackArguments, RackVerb};

pub use campaign::arguments::{
    CompareArguments, ExplainArguments, ReproduceArguments, RunArguments, SourceArguments, SweepArguments,
};

use crate::seeds::SEED_MAX;
use base::Bytes;
use campaign::arguments::{jobs, number_within};
use clap::{Args, Parser, Subcommand, ValueEnum};
use plan::Scale;
use std::path::PathBuf;
use workload::block_trace::Format;

/// A disaggregated rack, simulated and live: plays an experiment file, and published experiments
/// with a verdict on each claim; serves disks to real hosts.
///
/// Exit codes: 0 success, 1 something failed on the way, 2 bad input (nothing was written), 4 a
/// role of a rack is not ready, 130 interrupted (what was finished is there).
#[derive(Debug, Parser)]
#[command(name = "rackweave", version, max_term_width = 110)]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a commented experiment file to start from
    Init(InitArguments),
    /// Write a program in Rust with a policy of one's own, for a decision of EDM or RackBlox
    NewPolicy(NewPolicyArguments),
    /// Print the plan of an experiment file, with every default, its hash and its warnings
    Check(CheckArguments),
    /// Play an experiment file of one point
    Run(RunArguments),
    /// Play every point of an experiment file on all cores; goes on where it was stopped
    Sweep(SweepArguments),
    /// Show why the slow requests of a run are slow
    Explain(ExplainArguments),
    /// Write the ordered spans of requests as a trace for Perfetto, and as a picture
    Timeline(TimelineArguments),
    /// Show what differs between runs of the same arrivals, with an interval over seeds
    Compare(CompareArguments),
    /// Play the published experiments that are shipped, and give a verdict on each claim
    Reproduce(ReproduceArguments),
    /// Search the parameters that a paper does not print for values at which its claims hold
    Settle(SettleArguments),
    /// Show the published claims with our values and verdicts
    Claims(ClaimsArguments),
    /// Fit a drive's model to what fio measured, and print the error on the points that the fit did
    /// not use
    Fit(FitArguments),
    /// Bring the drives of an experiment into its initial state, and save that for other runs
    /// (`flash.snapshot`)
    Precondition(PreconditionArguments),
    /// Sum up a recorded load of block storage: mix, sizes, rate, footprint, devices
    Trace(TraceArguments),
    /// Show the network of a SAN: parts, distances, bisection and cost, side by side for every
    /// point of a sweep
    Fabric(FabricArguments),
    /// Explain every column of the records and every field of a summary, with its unit
    Describe(DescribeArguments),
    /// Print the JSON Schema of the experiment file, or of that of a live target, a key-value
    /// store, its JBOF, or a rack
    Schema(SchemaArguments),
    /// Serve disks to real hosts over NVMe/TCP
    Target(TargetArguments),
    /// Serve a key-value store on flash to Redis clients
    Kv(KvArguments),
    /// Serve memory and flash to the doors of a key-value store, `rackweave kv`
    Jbof(KvArguments),
    /// Start, watch and end a rack on this machine: a process for each role
    ///
    /// The file (TOML; `rackweave schema rack` explains every key) names the switch, the control
    /// plane, storage servers with their volumes, NVMe/TCP targets ("doors"), key-value stores and
    /// their JBOFs.
    /// Each is a role: a process with NAME.log and NAME.pid in the `folder` of the file.
    ///
    /// Exit codes: 0 success, 1 something failed, 2 a file is wrong (nothing was started), 4 a role
    /// is not ready.
    Rack(RackArguments),
    /// Run a live rack again from the journals of its roles: compare decisions and times
    ///
    /// With `journal = "FOLDER"` in the rack's file, roles note what comes in and what they do.
    /// Each journal is replayed by the same program, and every decision compared. Then all roles
    /// run in virtual time with the requests of the doors. Links, processors and timers are fitted
    /// to journals. Times of both are shown side by side, span by span.
    ///
    /// Exit codes: 0 decisions are equal, 1 some differ, 2 a file is wrong.
    Twin(TwinArguments),
    /// Use a disk of an NVMe/TCP target: identify, read, write, verify, bench
    Disk(DiskArguments),
    /// Try known faults on an NVMe/TCP target of yours, with a verdict on each
    Attack(AttackArguments),
}

/// `rackweave init`
#[derive(Debug, Args)]
pub struct InitArguments {
    /// The kind of experiment
    #[arg(value_enum)]
    pub scene: Scene,
    /// The file to write, `-` for the standard output. `SCENE.toml` when not given
    pub file: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
}

/// `rackweave new-policy`
#[derive(Debug, Args)]
pub struct NewPolicyArguments {
    /// The folder to make for the program; its name is that of the policy
    pub folder: PathBuf,
    /// What the policy decides
    #[arg(long, value_enum, default_value_t = Decision::Priority)]
    pub decision: Decision,
    /// The sources of rackweave. Those that this program was built from when not given
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
}

/// Decisions that a policy may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Decision {
    /// Which demand wins in EDM's scheduler
    Priority,
    /// Which job goes first at the queue of a server of RackBlox
    Order,
    /// Which replica serves a read in RackBlox
    Replica,
    /// When the flash of RackBlox collects garbage
    Collect,
}

/// Kinds of experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scene {
    /// Messages between nodes around a switch: EDM and its rivals
    Messages,
    /// Volumes on storage servers: RackBlox
    Volumes,
    /// Years of wear, without requests: RackBlox
    Wear,
    /// Hosts and drives on a storage network
    San,
    /// Devices of one machine: S-Direct
    Devices,
    /// A key-value store on flash: Scalio
    KeyValue,
}

/// `rackweave check`
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The experiment.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Print this point of the sweep, from 1
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub point: Option<usize>,
    /// Print every point of the sweep
    #[arg(long)]
    pub all: bool,
}

/// `rackweave fabric`
#[derive(Debug, Args)]
pub struct FabricArguments {
    /// The experiment.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Show this point of the sweep alone, from 1
    #[arg(long, value_name = "N")]
    pub point: Option<usize>,
    /// Draw the network into this file (SVG); of one point
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// Also compute what the network can give at best when every host reads from every target
    #[arg(long)]
    pub oracle: bool,
    /// Print a list of objects for programs
    #[arg(long)]
    pub json: bool,
}

/// `rackweave timeline`
#[derive(Debug, Args)]
pub struct TimelineArguments {
    /// The folder of a run that was played with `--spans`
    pub run: PathBuf,
    /// A request, by its number; may be repeated. The slowest when not given
    #[arg(long = "request", value_name = "N")]
    pub requests: Vec<u64>,
    /// How many of the slowest requests
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = shown, conflicts_with = "requests")]
    pub slowest: usize,
    /// The seed; the first of the run when not given
    #[arg(long)]
    pub seed: Option<u64>,
    /// The trace. `RUN/timeline.pftrace` when not given
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also draw the requests into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// `rackweave settle`
#[derive(Debug, Args)]
pub struct SettleArguments {
    /// What to settle: a design, an experiment or a claim: `edm`, `edm/fig6`, `edm.fig6.throughput`
    #[arg(value_name = "DESIGN[/FIGURE]|CLAIM")]
    pub selection: String,
    /// Points that cover the whole box, beside the defaults
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub points: u32,
    /// Points around the nearest after them
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(..=65_536))]
    pub around: u32,
    /// Size of the runs
    #[arg(long, default_value = "quick")]
    pub scale: Scale,
    /// Folder of the results; must not exist, unless the search is resumed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with a search in its folder
    #[arg(long)]
    pub resume: bool,
    /// Points at a time; as many as there are cores when not given
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Folder of experiments, in place of those of the program
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
}

/// `rackweave claims`
#[derive(Debug, Args)]
pub struct ClaimsArguments {
    /// Only the claims of this design: edm, blox, san, sdirect or scalio
    #[arg(long)]
    pub design: Option<String>,
    /// Print a list of objects for programs
    #[arg(long)]
    pub json: bool,
    /// Print the counts by verdict, and what decides the claims that hang on an unprinted number,
    /// as a page of Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Take our values from this output folder of `rackweave reproduce` instead of the shipped
    /// results
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
}

/// `rackweave fit`
#[derive(Debug, Args)]
pub struct FitArguments {
    /// Output of fio (`--output-format=json`): one file with several jobs, or several files
    #[arg(required = true, value_name = "FIO.json")]
    pub files: Vec<PathBuf>,
    /// Begin with this drive; what is not fitted stays as it is there
    #[arg(long, value_name = "NAME", default_value = "tlc-gen4")]
    pub preset: String,
    /// Write the drive that was fitted to this file (TOML)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Points that the fit must not use: job names with commas between, `none`, or `alternate` for
    /// every second point inside each sweep
    #[arg(long, value_name = "JOBS", default_value = "alternate")]
    pub hold_out: String,
    /// Fit these and nothing else: array-read, program, read-firmware, write-firmware, channel,
    /// dies, with commas between. All that the points determine when not given
    #[arg(long, value_name = "PARAMETERS", value_delimiter = ',')]
    pub parameters: Option<Vec<String>>,
    /// State of the drive in measurements of writes: `steady` (full, and overwritten at random for
    /// long) or `fresh` (nothing)
    #[arg(long, value_name = "STATE", default_value = "steady", value_parser = ["steady", "fresh"])]
    pub state: String,
    /// Error of a measured value, in percent: decides which parameters count as determined
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub point_error: f64,
}

/// `rackweave precondition`
#[derive(Debug, Args)]
pub struct PreconditionArguments {
    /// The experiment.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Prepare with this seed instead of the file's
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: Option<u64>,
    /// The file to write
    #[arg(long, value_name = "SNAPSHOT")]
    pub out: PathBuf,
}

/// `rackweave trace`
#[derive(Debug, Args)]
pub struct TraceArguments {
    /// The trace, plain or packed with gzip
    pub file: PathBuf,
    /// Format: mqsim, disksim, spc, systor, msr, alibaba, tencent, blktrace, blktrace-issued or
    /// fio-iolog. Detected from its first lines when not given
    #[arg(long)]
    pub format: Option<Format>,
    /// Skip up to this many bad lines, and report them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_bad: u64,
    /// Refuse requests that come behind a later one. They are put in order when it is by 1 ms at
    /// most, and reported
    #[arg(long)]
    pub strict: bool,
    /// Size of every device, such as 64GiB: a request that ends beyond it is a bad line
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<Bytes>,
    /// Print an object for programs
    #[arg(long)]
    pub json: bool,
}

/// `rackweave twin`
#[derive(Debug, Args)]
pub struct TwinArguments {
    /// The rack's file
    pub file: PathBuf,
    /// The folder of the journals. The `journal` of the file when not given
    #[arg(long, value_name = "FOLDER")]
    pub journal: Option<PathBuf>,
    /// Fit links and roles to the journals in this folder, of another run of the same rack. To
    /// those of the run itself when not given
    #[arg(long, value_name = "FOLDER", conflicts_with = "model")]
    pub calibration: Option<PathBuf>,
    /// Take links and roles from the `model.json` of an earlier `--out`
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// What if: simulate this rack too, with the same roles and load, and compare the two
    /// simulations
    #[arg(long, value_name = "FILE")]
    pub with: Option<PathBuf>,
    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write a page with both distributions of each span, twin.json and model.json
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Print an object for programs
    #[arg(long)]
    pub json: bool,
}

/// `rackweave describe`
#[derive(Debug, Args)]
pub struct DescribeArguments {
    /// A page in place of the columns: metrics, series, keys, keys-messages, keys-volumes,
    /// keys-san, keys-wear, keys-devices, keys-key-value, target-keys, kv-keys,
    /// jbof-keys, rack-keys
    #[arg(conflicts_with = "json")]
    pub page: Option<String>,
    /// Print a list of objects for programs
    #[arg(long)]
    pub json: bool,
}

/// `rackweave schema`
#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// The kind of file
    #[arg(value_enum, default_value_t = SchemaKind::Experiment)]
    pub of: SchemaKind,
}

/// Files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaKind {
    /// Input of `check`, `run` and `sweep`.
    Experiment,
    /// Input of `target --config`.
    Target,
    /// Input of `kv --config`.
    Kv,
    /// Input of `jbof --config`.
    Jbof,
    /// Input of `rack`.
    Rack,
}

fn shown(text: &str) -> Result<usize, String> {
    number_within(text, 1, 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
