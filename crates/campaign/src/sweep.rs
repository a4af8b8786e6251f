//! `rackweave sweep`: every point of an experiment file.
//!
//! ```text
//! DIR/rackweave-output        what the sweep is, by which it is known again
//! DIR/index.html              figures of the finished points
//! DIR/points.json             summaries of finished points, in the order of the sweep
//! DIR/points/000-load=0.2/    one a point, as in `play`; called `.unfinished` until it is whole
//! ```

use crate::Done;
use crate::arguments::{Form, Share, SweepArguments};
use crate::console::Console;
use crate::estimate;
use crate::export;
use crate::failure::{Failure, bad_input};
use crate::labels;
use crate::load;
use crate::output::{self, Marker, json, write_json};
use crate::own::Own;
use crate::page::write_page;
use crate::parallel::play_all;
use crate::play::{self, Playing, Task};
use record::{Keep, ParquetWriter, Summary};
use report::page::INDEX;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Plays the points that are not finished yet.
///
/// # Errors
/// When the file is not valid, the folder holds something else, or a point fails.
pub fn sweep(arguments: &SweepArguments, console: &dyn Console) -> Result<Done, Failure> {
    let root = output::place(arguments.output.out.as_ref(), &load::stem(&arguments.source.file));
    let tasks = tasks(arguments, &root)?;
    play::refuse_endless(&tasks, arguments.long)?;
    arguments.export.as_ref().map_or(Ok(()), |_| export::check())?;
    prepare(&root, arguments, &tasks)?;
    console.listen()?;
    let title = tasks.first().map_or_else(String::new, |task| task.point.plan.title.clone());
    let table = Table::read(&root, &tasks, arguments.watch.then(|| title.clone()));
    let left = table.left(arguments.index);
    if arguments.watch {
        table.show(&mut table.lock())?;
        console.say(&format!("page: {}", root.join(INDEX).display()));
    }
    let remaining: Vec<Task> = left.iter().map(|index| tasks[*index].clone()).collect();
    estimate::announce(&remaining, !arguments.no_records, console);
    let meter = play::meter(&remaining, console);
    let finished = |index: usize, summary: &Summary| table.add(left[index], summary);
    let played = play_all(&remaining, arguments.jobs, &playing(arguments), &meter, &finished);
    // Other machines may have finished points of their own meanwhile.
    let table = Table::read(&root, &tasks, None);
    table.write(&title, arguments.export.as_ref())?;
    let partial = played?.iter().flatten().filter(|played| played.summary.partial).count();
    let names: Vec<String> = tasks.iter().map(|task| task.name.clone()).collect();
    let text = table.facts(arguments.format, &names, tasks.len() - left.len(), partial);
    let end = console.stop().outcome(&root).and_then(|()| match partial {
        0 => Ok(()),
        _ => Err(Failure::Partial(format!("{partial} points ended early; their warnings say why"))),
    });
    Ok(Done { root, text, end })
}

fn playing(arguments: &SweepArguments) -> Playing {
    let rows = (!arguments.no_records).then_some(ParquetWriter::<live::FileParts>::ROWS_PER_PART);
    Playing { rows_per_part: rows, wire: arguments.wire, history: false, spans: Keep::Nothing, own: Own::default() }
}

fn tasks(arguments: &SweepArguments, root: &Path) -> Result<Vec<Task>, Failure> {
    let seeds = arguments.seeds.chosen();
    let points = load::points(&arguments.source)?;
    let labels = labels::of_points(&points);
    let task = |(index, (point, labels))| {
        let folder = root.join("points").join(load::folder_name(index, &point));
        Task::new(load::describe(&point), folder, point, labels, seeds.as_deref())
    };
    Ok(points.into_iter().zip(labels).enumerate().map(task).collect())
}

/// A new folder, or one that holds this very sweep.
fn prepare(root: &Path, arguments: &SweepArguments, tasks: &[Task]) -> Result<(), Failure> {
    let marker = Marker { fingerprint: Some(fingerprint(arguments, tasks)), ..Marker::new("sweep") };
    let (force, is_shared) = (arguments.output.force, arguments.index.is_some());
    match if is_shared { awaited(root) } else { Marker::read(root) } {
        Some(known) if known == marker && !force => Ok(()),
        Some(known) if known.command == marker.command && !force => Err(bad_input(format!(
            "{} holds another sweep: its plans, seeds, options or version of rackweave differ; give another --out, \
             or --force to replace it",
            root.display()
        ))),
        _ if arguments.resume => Err(bad_input(format!("--resume: {} holds no sweep", root.display()))),
        _ => output::create(root, force, &marker).or_else(|failure| {
            let made_by_another = is_shared && awaited(root) == Some(marker);
            made_by_another.then_some(()).ok_or(failure)
        }),
    }
}

/// The marker of a folder that another share of the sweep may be making just now.
fn awaited(root: &Path) -> Option<Marker> {
    let tries = 0..50;
    tries.take_while(|_| root.exists()).find_map(|_| {
        Marker::read(root).or_else(|| {
            std::thread::sleep(Duration::from_millis(100));
            None
        })
    })
}

/// SHA-256 over what decides the results: points in their order, plans and seeds, and what is
/// recorded.
fn fingerprint(arguments: &SweepArguments, tasks: &[Task]) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("records {}\n", !arguments.no_records));
    for task in tasks {
        hash.update(format!("{:?} {} {:?}\n", task.point.labels, task.point.plan.hash(), task.seeds));
        // Of no influence on the hash of the plan.
        if let Some(interval) = task.point.plan.series {
            hash.update(format!("series {interval}\n"));
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The points that are finished.
struct Table {
    root: PathBuf,
    path: PathBuf,
    /// Names and folders of all points.
    points: Vec<(String, PathBuf)>,
    state: Mutex<State>,
    /// The title of the page to write after points, if any.
    watched: Option<String>,
}

struct State {
    summaries: Vec<Option<Summary>>,
    next_write: Instant,
    began: Instant,
    /// How many were finished when this process began.
    before: usize,
}

/// The table is written after a point, but no more than this share of the time goes into it.
const SHARE_OF_TIME: u32 = 50;
/// And no more often than this.
const BETWEEN_WRITES: Duration = Duration::from_millis(500);

impl Table {
    /// Existing contents of the folder.
    fn read(root: &Path, tasks: &[Task], watched: Option<String>) -> Table {
        let summaries: Vec<Option<Summary>> = tasks.iter().map(finished).collect();
        let (now, before) = (Instant::now(), summaries.iter().flatten().count());
        let state = Mutex::new(State { summaries, next_write: now, began: now, before });
        let points = tasks.iter().map(|task| (task.name.clone(), task.folder.clone())).collect();
        Table { root: root.to_owned(), path: root.join("points.json"), points, state, watched }
    }

    /// Writes the page of a sweep that goes on.
    fn show(&self, state: &mut State) -> Result<(), Failure> {
        let Some(title) = &self.watched else { return Ok(()) };
        let points: Vec<Summary> = state.summaries.iter().flatten().cloned().collect();
        write_page(&self.root, title, &points, Some(state.progress()), &[], None)
    }

    /// The points of a share that are still to be played.
    fn left(&self, share: Option<Share>) -> Vec<usize> {
        let share = share.unwrap_or(Share { index: 0, count: 1 });
        let state = self.lock();
        let missing = state.summaries.iter().enumerate().filter(|(_, summary)| summary.is_none());
        missing.map(|(index, _)| index).filter(|index| index % share.count == share.index).collect()
    }

    fn add(&self, index: usize, summary: &Summary) -> Result<(), Failure> {
        let mut state = self.lock();
        state.summaries[index] = Some(summary.clone());
        let began = Instant::now();
        if began < state.next_write {
            return Ok(());
        }
        let written = write_json(&self.path, &state.present()).and_then(|()| self.show(&mut state));
        state.next_write = Instant::now() + BETWEEN_WRITES.max(began.elapsed() * SHARE_OF_TIME);
        written
    }

    fn write(&self, title: &str, exported: Option<&PathBuf>) -> Result<(), Failure> {
        let state = self.lock();
        write_json(&self.path, &state.present())?;
        let points: Vec<Summary> = state.summaries.iter().flatten().cloned().collect();
        let runs = self.points.iter().zip(&state.summaries).filter(|(_, summary)| summary.is_some());
        let runs: Vec<(String, PathBuf)> = runs.map(|(run, _)| run.clone()).collect();
        write_page(&self.root, title, &points, None, &runs, exported)
    }

    /// The results of the finished points, and how many there are.
    fn facts(&self, form: Form, names: &[String], before: usize, partial: usize) -> String {
        let state = self.lock();
        let named = names.iter().zip(&state.summaries);
        let points: Vec<(String, &Summary)> =
            named.filter_map(|(name, summary)| Some((name.clone(), summary.as_ref()?))).collect();
        let (done, all) = (points.len(), state.summaries.len());
        match form {
            Form::Json => json(&state.present()),
            Form::Csv => report::points::csv(&points),
            Form::Table => format!(
                "{}\n{done} of {all} points are finished ({before} were before, or belong to others); {partial} were cut \
                 short\nresults    {}\npage       {}\n",
                report::points::text(&points),
                self.path.display(),
                self.root.join(INDEX).display()
            ),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the table")
    }
}

impl State {
    /// "3 of 12 points, about 40 s left".
    fn progress(&self) -> String {
        let (done, all) = (self.summaries.iter().flatten().count(), self.summaries.len());
        let here = done.saturating_sub(self.before);
        let left = match here {
            0 => String::new(),
            _ => {
                let seconds = self.began.elapsed().as_secs_f64() / here as f64 * (all - done) as f64;
                format!(", about {} left", estimate::seconds(seconds))
            }
        };
        format!("{done} of {all} points{left}")
    }

    fn present(&self) -> Vec<&Summary> {
        self.summaries.iter().flatten().collect()
    }
}

/// The summary of a point that was played whole, with this plan and these seeds, by this program.
fn finished(task: &Task) -> Option<Summary> {
    let text = fs::read_to_string(task.folder.join("summary.json")).ok()?;
    let summary: Summary = serde_json::from_str(&text).ok()?;
    let is_same = summary.plan_hash == task.point.plan.hash()
        && summary.seeds == task.seeds
        && summary.version == crate::VERSION
        && !summary.partial;
    is_same.then_some(summary)
}
