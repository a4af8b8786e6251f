//! Arguments of the command line.

mod live;

pub use live::{
    AttackArguments, BenchArguments, BenchLoad, ConnectionArguments, DiskArguments, DiskVerb, ProofArguments,
    TargetArguments, TargetFlags,
};

use crate::seeds::{SEED_MAX, Seeds};
use base::Bytes;
use clap::{Args, Parser, Subcommand, ValueEnum};
use plan::Scale;
use record::Keep;
use std::path::PathBuf;
use std::str::FromStr;
use workload::block_trace::Format;

/// A disaggregated rack, simulated and live: plays an experiment file, and published experiments
/// with a verdict on each claim; serves disks to real hosts.
///
/// Exit codes: 0 success, 1 something failed on the way, 2 bad input (nothing was written), 130
/// interrupted (what was finished is there).
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
    /// Print the JSON Schema of the experiment file, or of the file of a live target
    Schema(SchemaArguments),
    /// Serve disks to real hosts over NVMe/TCP
    Target(TargetArguments),
    /// Use a disk of an NVMe/TCP target: identify, read, write, verify, bench
    Disk(DiskArguments),
    /// Try known faults on an NVMe/TCP target of yours, with a verdict on each
    Attack(AttackArguments),
}

/// The experiment file and how it is changed from outside.
#[derive(Debug, Args)]
pub struct SourceArguments {
    /// The experiment file (TOML)
    pub file: PathBuf,
    /// Run at this size: `quick`, `judged` or `paper`. The file's own size when not given
    #[arg(long)]
    pub scale: Option<Scale>,
    /// Change a value of the file, or fix an axis of its sweep: `--set workload.load=0.5`. May be
    /// repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<Setting>,
}

/// Which seeds are run.
#[derive(Debug, Args)]
pub struct SeedArguments {
    /// Run with this seed instead of the file's
    #[arg(long, conflicts_with = "seeds", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub seed: Option<u64>,
    /// Run with several seeds: `A..B` is A to B-1, `A..=B` is A to B
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<Seeds>,
}

impl SeedArguments {
    /// The requested seeds, if any.
    pub fn chosen(&self) -> Option<Vec<u64>> {
        let range = self.seeds.as_ref().map(|seeds| seeds.list().to_vec());
        range.or_else(|| self.seed.map(|seed| vec![seed]))
    }
}

/// The folder of results.
#[derive(Debug, Args)]
pub struct OutputArguments {
    /// The folder to make for the results. `rackweave-results/NAME` when not given
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder if it is there, and holds results of rackweave
    #[arg(long)]
    pub force: bool,
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

/// `rackweave run`
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The experiment.
    #[command(flatten)]
    pub source: SourceArguments,
    /// The seeds.
    #[command(flatten)]
    pub seeds: SeedArguments,
    /// The results.
    #[command(flatten)]
    pub output: OutputArguments,
    /// Begin even where there are more requests than can be played in days
    #[arg(long)]
    pub long: bool,
    /// Encode and decode every message on its way; changes no record
    #[arg(long)]
    pub wire: bool,
    /// Also keep the operations and results of a key-value store's clients: `seed-N/history.jsonl`,
    /// a line an operation, as `tools/porcupine` reads it. Every key's history is judged, whatever
    /// the file says
    #[arg(long)]
    pub history: bool,
    /// Keep the spans of some requests in their order, with begin, end and place, as
    /// `seed-N/spans/part-00000.parquet`: of none, all, every:N (each N-th request) or slowest:K
    #[arg(long, value_name = "WHOSE", default_value_t = Keep::Nothing)]
    pub spans: Keep,
    /// Rows in a part of the records: the most that is lost when the program is killed
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = rows_per_part)]
    pub rows_per_part: usize,
    /// Form of the results on the screen
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
    /// Write each figure as SVG, PNG, PDF, CSV and Vega-Lite into this folder, and a LaTeX table of
    /// claims; needs the Python package vl-convert-python
    #[arg(long, value_name = "DIR")]
    pub export: Option<PathBuf>,
}

/// `rackweave sweep`
#[derive(Debug, Args)]
pub struct SweepArguments {
    /// The experiment.
    #[command(flatten)]
    pub source: SourceArguments,
    /// The seeds.
    #[command(flatten)]
    pub seeds: SeedArguments,
    /// The results.
    #[command(flatten)]
    pub output: OutputArguments,
    /// Go on with the sweep in the folder; it must be there. Without this a folder with the same
    /// sweep is gone on with too
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Keep summaries and histograms only, no row a request
    #[arg(long)]
    pub no_records: bool,
    /// Begin even where there are more requests than can be played in days
    #[arg(long)]
    pub long: bool,
    /// Encode and decode every message on its way; changes no record
    #[arg(long)]
    pub wire: bool,
    /// Points at a time; as many as there are cores when not given
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Play the I-th of N shares of the points, from 0: one a machine
    /// (`--index $SLURM_ARRAY_TASK_ID/8`), all into one folder
    #[arg(long, value_name = "I/N", conflicts_with = "force")]
    pub index: Option<Share>,
    /// Write index.html while points are played, with progress and the figures so far. A browser
    /// that has it open reads it again every 5 s
    #[arg(long)]
    pub watch: bool,
    /// Form of the results on the screen
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
    /// Write each figure as SVG, PNG, PDF, CSV and Vega-Lite into this folder, and a LaTeX table of
    /// claims; needs the Python package vl-convert-python
    #[arg(long, value_name = "DIR")]
    pub export: Option<PathBuf>,
}

/// `rackweave explain`
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// The folder of a run, or of one point of a sweep
    pub run: PathBuf,
    /// The seed; the first of the run when not given
    #[arg(long)]
    pub seed: Option<u64>,
    /// How many of the slowest requests to show
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = worst)]
    pub worst: usize,
    /// Draw the time of usual and of slow requests, as SVG, into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = ExplainForm::Text)]
    pub format: ExplainForm,
}

/// Forms of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainForm {
    /// Words and tables.
    Text,
    /// An object.
    Json,
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

/// `rackweave compare`
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Folders of runs; the folder of a sweep stands for all its points. The first run is compared
    /// with each of the others. With --vary, one experiment file
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Play the experiment file with each of these values, and compare the runs:
    /// `--vary workload.load=0.2,0.4`. Repeated: every combination
    #[arg(long, value_name = "KEY=A,B")]
    pub vary: Vec<Variation>,
    /// Run at this size: `quick`, `judged` or `paper`. The file's own size when not given
    #[arg(long, requires = "vary")]
    pub scale: Option<Scale>,
    /// Change a value of the file for all variants. May be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "vary")]
    pub settings: Vec<Setting>,
    /// The seeds of the variants.
    #[command(flatten)]
    pub seeds: SeedArguments,
    /// The results of the variants.
    #[command(flatten)]
    pub output: OutputArguments,
    /// Begin even where there are more requests than can be played in days
    #[arg(long, requires = "vary")]
    pub long: bool,
    /// Points at a time; as many as there are cores when not given
    #[arg(long, value_name = "N", value_parser = jobs, requires = "vary")]
    pub jobs: Option<usize>,
    /// Compare runs of different arrivals, each with its own requests
    #[arg(long)]
    pub unpaired: bool,
    /// Show all spans and metrics too
    #[arg(long)]
    pub all: bool,
    /// Form of the output; json and csv have every value
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

/// Forms of a result on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// An aligned table.
    Table,
    /// A list of objects.
    Json,
    /// A header, and one value a line.
    Csv,
}

/// One `--vary KEY=A,B`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    /// The key.
    pub key: String,
    /// Its values.
    pub values: Vec<String>,
}

impl FromStr for Variation {
    type Err = String;
    fn from_str(text: &str) -> Result<Variation, String> {
        let expected = || "expected KEY=A,B, for instance workload.load=0.2,0.4".to_string();
        let (key, values) = text.split_once('=').ok_or_else(expected)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        let is_whole = !key.trim().is_empty() && values.iter().all(|value| !value.is_empty());
        if is_whole { Ok(Variation { key: key.trim().into(), values }) } else { Err(expected()) }
    }
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

/// `rackweave reproduce`
#[derive(Debug, Args)]
pub struct ReproduceArguments {
    /// Which experiments: `edm`, `edm/fig8a`, or several of such; all when not given
    #[arg(value_name = "DESIGN[/FIGURE]")]
    pub selections: Vec<String>,
    /// Size of the runs: `quick` shows the shape in minutes, `judged` is that of the shipped
    /// verdicts, `paper` is that of the paper
    #[arg(long, default_value = "quick")]
    pub scale: Scale,
    /// The results.
    #[command(flatten)]
    pub output: OutputArguments,
    /// The seeds.
    #[command(flatten)]
    pub seeds: SeedArguments,
    /// List the selected experiments, with their points and requests at this scale, and play none
    #[arg(long)]
    pub list: bool,
    /// Points at a time; as many as there are cores when not given
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Keep summaries and histograms only, no row a request
    #[arg(long)]
    pub no_records: bool,
    /// Take the experiments from this folder instead of the shipped ones
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
    /// Write each figure as SVG, PNG, PDF, CSV and Vega-Lite into this folder, and a LaTeX table of
    /// claims; needs the Python package vl-convert-python
    #[arg(long, value_name = "DIR")]
    pub export: Option<PathBuf>,
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

/// `rackweave describe`
#[derive(Debug, Args)]
pub struct DescribeArguments {
    /// A page in place of the columns: metrics, series, keys, keys-messages, keys-volumes,
    /// keys-san, keys-wear, keys-devices, keys-key-value, target-keys
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
}

/// One `--set KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting(pub String, pub String);

impl FromStr for Setting {
    type Err = String;
    fn from_str(text: &str) -> Result<Setting, String> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, for instance workload.load=0.5")?;
        Ok(Setting(key.trim().into(), value.trim().into()))
    }
}

/// One `--index I/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which share, from 0.
    pub index: usize,
    /// Number of shares.
    pub count: usize,
}

impl FromStr for Share {
    type Err = String;
    fn from_str(text: &str) -> Result<Share, String> {
        let expected = || "expected I/N with I from 0 to N-1, for instance 0/8".to_string();
        let (index, count) = text.split_once('/').ok_or_else(expected)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| expected());
        let share = Share { index: number(index)?, count: number(count)? };
        if share.index < share.count { Ok(share) } else { Err(expected()) }
    }
}

fn shown(text: &str) -> Result<usize, String> {
    number_within(text, 1, 10_000)
}

fn worst(text: &str) -> Result<usize, String> {
    number_within(text, 0, 10_000)
}

fn rows_per_part(text: &str) -> Result<usize, String> {
    number_within(text, 1, 16_777_216)
}

fn jobs(text: &str) -> Result<usize, String> {
    number_within(text, 1, 4096)
}

fn number_within(text: &str, min: usize, max: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("allowed is {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn shares_count_from_zero() {
        assert_eq!("0/1".parse(), Ok(Share { index: 0, count: 1 }));
        assert_eq!("7/8".parse(), Ok(Share { index: 7, count: 8 }));
        for text in ["8/8", "0/0", "1", "a/b", "-1/2"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
