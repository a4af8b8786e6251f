//! Results of a run, read back from its folder.

use crate::failure::{Failure, bad_input};
use record::{Part, ReadError, Row, SeriesRow, SpanRow, Summary, read_part, read_series, read_spans};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A run in its folder: `summary.json`, and `seed-N/` with records.
#[derive(Clone, Debug)]
pub struct Run {
    folder: PathBuf,
    summary: Summary,
}

impl Run {
    /// Opens the folder of one run.
    pub fn open(folder: &Path) -> Result<Run, Failure> {
        let summary = summary(&folder.join("summary.json")).map_err(|reason| wrong(folder, &reason))?;
        Ok(Run { folder: folder.into(), summary })
    }

    /// Opens a run, or all points of a sweep in their order.
    pub fn all_below(folder: &Path) -> Result<Vec<Run>, Failure> {
        let points = folder.join("points");
        if !points.is_dir() {
            return Run::open(folder).map(|run| vec![run]);
        }
        let mut folders = Vec::new();
        for entry in fs::read_dir(&points).map_err(|error| bad_input(format!("{}: {error}", points.display())))? {
            folders.push(entry.map_err(|error| bad_input(format!("{}: {error}", points.display())))?.path());
        }
        if let Some(unfinished) = folders.iter().find(|path| name_of(path).ends_with(".unfinished")) {
            let place = unfinished.display();
            return Err(bad_input(format!("{place}: this point is not finished; `rackweave sweep --resume` goes on")));
        }
        folders.sort();
        folders.iter().map(|folder| Run::open(folder)).collect()
    }

    /// Opens the folder of one run; a sweep of several points is refused.
    pub fn one(folder: &Path) -> Result<Run, Failure> {
        let mut runs = Run::all_below(folder)?;
        match runs.len() {
            1 => Ok(runs.remove(0)),
            count => Err(bad_input(format!("{}: a sweep of {count} points; give the folder of one", folder.display()))),
        }
    }

    /// The given seed if it was run, or the first that was.
    pub fn seed_or_first(&self, seed: Option<u64>) -> Result<u64, Failure> {
        let seeds = &self.summary.seeds;
        let chosen = seed.or(seeds.first().copied()).filter(|seed| seeds.contains(seed));
        chosen.ok_or_else(|| bad_input(format!("{}: it has no such seed; its seeds are {seeds:?}", self.name())))
    }

    /// The folder, as it was given.
    pub fn name(&self) -> String {
        self.folder.display().to_string()
    }

    /// The seeds that were run.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + '_ {
        self.summary.seeds.iter().copied()
    }

    /// The summary of one seed.
    pub fn summary_of(&self, seed: u64) -> Result<Summary, Failure> {
        let path = self.seed(seed).join("summary.json");
        summary(&path).map_err(|reason| bad_input(format!("{}: {reason}", path.display())))
    }

    /// Passes the rows of a seed to `each`, a part at a time.
    pub fn each_part(&self, seed: u64, each: &mut dyn FnMut(&[Row])) -> Result<(), Failure> {
        let absent = "there are no records; a sweep with --no-records keeps none";
        self.each_of(seed, "records", absent, read_part, each)
    }

    /// Passes the kept spans of a seed to `each`, a part at a time.
    pub fn each_part_of_spans(&self, seed: u64, each: &mut dyn FnMut(&[SpanRow])) -> Result<(), Failure> {
        let absent = "no spans were kept; `rackweave run --spans slowest:20` keeps those of the 20 slowest requests";
        self.each_of(seed, "spans", absent, read_spans, each)
    }

    /// Passes the samples of a seed to `each`, a part at a time.
    pub fn each_part_of_series(&self, seed: u64, each: &mut dyn FnMut(&[SeriesRow])) -> Result<(), Failure> {
        let absent = "nothing was sampled; the key record.series = \"10us\" samples every 10 us";
        self.each_of(seed, "series", absent, read_series, each)
    }

    /// Whether the state of a seed was sampled.
    pub fn has_series(&self, seed: u64) -> bool {
        self.seed(seed).join("series").is_dir()
    }

    /// Whether spans of a seed were kept.
    pub fn has_spans(&self, seed: u64) -> bool {
        self.seed(seed).join("spans").is_dir()
    }

    fn each_of<R>(
        &self,
        seed: u64,
        name: &str,
        absent: &str,
        read: impl Fn(&str, &File) -> Result<Part<R>, ReadError>,
        each: &mut dyn FnMut(&[R]),
    ) -> Result<(), Failure> {
        for part in self.parts(seed, name, absent)? {
            let place = part.display().to_string();
            let file = File::open(&part).map_err(|error| bad_input(format!("{place}: {error}")))?;
            each(&read(&place, &file).map_err(bad_input)?.rows);
        }
        Ok(())
    }

    fn seed(&self, seed: u64) -> PathBuf {
        self.folder.join(format!("seed-{seed}"))
    }

    /// The parts of a dataset of a seed, in their order.
    fn parts(&self, seed: u64, name: &str, absent: &str) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.seed(seed).join(name);
        let entries = fs::read_dir(&folder).into_iter().flatten();
        let mut parts: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        parts.retain(|part| part.extension().is_some_and(|extension| extension == "parquet"));
        parts.sort();
        if parts.is_empty() { Err(bad_input(format!("{}: {absent}", folder.display()))) } else { Ok(parts) }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn summary(path: &Path) -> Result<Summary, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("not a summary of this version of rackweave: {error}"))
}

/// Why a folder is not that of a run.
fn wrong(folder: &Path, reason: &str) -> Failure {
    let place = folder.display();
    let has = |name: &str| folder.join(name).exists();
    bad_input(if !folder.is_dir() {
        format!("{place}: there is no such folder")
    } else if has("summary.json") {
        format!("{place}/summary.json: {reason}")
    } else if has("plan.toml") {
        format!("{place}: the run did not finish: it has a plan and no summary.json")
    } else {
        format!("{place}: no run: a run has summary.json and seed-N/records")
    })
}
