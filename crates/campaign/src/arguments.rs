//! What a verb is asked to do: read from a command line, or filled in by another door.

use crate::own::Own;
use crate::seeds::{SEED_MAX, Seeds};
use clap::{Args, ValueEnum};
use plan::Scale;
use record::Keep;
use std::path::PathBuf;
use std::str::FromStr;

/// The experiment file and how it is changed from outside.
#[derive(Debug, Args)]
pub struct SourceArguments {
    /// The experiment file (TOML)
    pub file: PathBuf,
    /// Its text; read from the file when not given
    #[arg(skip)]
    pub text: Option<String>,
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
    /// Policies of a user's own
    #[arg(skip)]
    pub own: Own,
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

fn worst(text: &str) -> Result<usize, String> {
    number_within(text, 0, 10_000)
}

/// Rows in a part, as text.
///
/// # Errors
/// When it is out of range.
pub fn rows_per_part(text: &str) -> Result<usize, String> {
    number_within(text, 1, 16_777_216)
}

/// Points at a time, as text.
///
/// # Errors
/// When it is out of range.
pub fn jobs(text: &str) -> Result<usize, String> {
    number_within(text, 1, 4096)
}

/// A number within bounds, as text.
///
/// # Errors
/// When it is none, or out of bounds.
pub fn number_within(text: &str, min: usize, max: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("allowed is {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_from_zero() {
        assert_eq!("0/1".parse(), Ok(Share { index: 0, count: 1 }));
        assert_eq!("7/8".parse(), Ok(Share { index: 7, count: 8 }));
        for text in ["8/8", "0/0", "1", "a/b", "-1/2"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
