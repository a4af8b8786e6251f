//! Many points on all cores. A point's folder appears when the point is finished, whole.

use crate::failure::{Failure, failed_at};
use crate::output::{hidden, publish};
use crate::play::{Played, Playing, Task, play};
use crate::progress::Meter;
use rayon::prelude::*;
use record::Summary;
use std::fs;
use std::time::Instant;

/// Called with the index of each finished task.
pub type Finished<'a> = dyn Fn(usize, &Summary) -> Result<(), Failure> + Sync + 'a;

/// Plays `tasks`, `jobs` at a time (as many as there are cores when not given). A task that was not
/// reached before an interrupt has no summary.
///
/// # Errors
/// The first failure; the points that were finished until then are there.
pub fn play_all(
    tasks: &[Task],
    jobs: Option<usize>,
    playing: &Playing,
    meter: &Meter<'_>,
    finished: &Finished<'_>,
) -> Result<Vec<Option<Played>>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0)).build();
    let pool = pool.map_err(|error| Failure::Failed(format!("threads cannot be started: {error}")))?;
    let one = |(index, task): (usize, &Task)| {
        let played = play_apart(task, playing, meter).inspect_err(|_| meter.stop().halt())?;
        played.iter().try_for_each(|played| finished(index, &played.summary))?;
        Ok(played)
    };
    let played = pool.install(|| tasks.par_iter().enumerate().with_max_len(1).map(one).collect());
    meter.finish();
    played
}

/// Plays a point under another name, and shows it when it is finished.
fn play_apart(task: &Task, playing: &Playing, meter: &Meter<'_>) -> Result<Option<Played>, Failure> {
    if meter.stop().is_set() {
        return Ok(None);
    }
    let began = Instant::now();
    let unfinished = hidden(&task.folder, "unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(failed_at(&unfinished))?;
    }
    let Some(played) = play(task, &unfinished, playing, meter)? else { return Ok(None) };
    publish(&unfinished, &task.folder)?;
    meter.point_done(&task.name, &played.summary, began.elapsed());
    Ok(Some(played))
}
