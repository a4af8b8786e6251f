//! The page of a run or of a sweep.

use crate::export::export;
use crate::failure::Failure;
use crate::output::write;
use crate::results::Run;
use crate::timeline;
use record::Summary;
use report::export::exports;
use report::figure::Figure;
use report::page::{PageFile, pages};
use report::series::{Survey, Tracing};
use report::timeline::picture;
use report::{PageInput, Picture, Section, figure, series};
use std::path::{Path, PathBuf};

/// Seconds between two readings of the page of a sweep that goes on.
const REFRESH: u32 = 5;
/// Requests in the picture of a run's page.
const PICTURED: usize = 20;

/// More runs than this are too many lines for a figure of series.
const RUNS_WITH_SERIES: usize = 8;

/// Writes `index.html` into the folder of a run or a sweep, and its figures into `exported`.
/// `progress` is what a sweep that goes on says of itself; a browser reads its page again and
/// again. `runs` are names and folders of the points whose series are drawn.
pub fn write_page(
    root: &Path,
    title: &str,
    points: &[Summary],
    progress: Option<String>,
    runs: &[(String, PathBuf)],
    exported: Option<&PathBuf>,
) -> Result<(), Failure> {
    let refresh = progress.as_ref().map(|_| REFRESH);
    let facts = progress.into_iter().map(|progress| ("Progress".to_owned(), progress)).collect();
    let mut input = PageInput { facts, refresh, ..input(title, points) };
    let section = &mut input.sections[0];
    section.figures.extend(series_of(runs)?);
    section.pictures = pictures(root)?;
    write_pages(root, &input, exported)
}

/// The figures of a run's or a sweep's page: `NAME.csv` and `NAME.vl.json`, with their texts.
pub fn figures(title: &str, points: &[Summary]) -> Vec<PageFile> {
    exports(&input(title, points))
}

fn input(title: &str, points: &[Summary]) -> PageInput {
    let (points, figures) = figure::automatic(points);
    let section = Section { experiment: title.to_owned(), points, figures, ..Section::default() };
    PageInput { title: title.to_owned(), sections: vec![section], ..PageInput::default() }
}

/// The slowest requests of a run whose spans were kept, from place to place.
fn pictures(root: &Path) -> Result<Vec<Picture>, Failure> {
    let Ok(run) = Run::open(root) else { return Ok(Vec::new()) };
    let kept = run.seeds().find(|seed| run.has_spans(*seed));
    let picture = |seed| {
        let requests = timeline::slowest(&run, seed, PICTURED)?;
        let title = format!("The slowest {} requests from place to place", requests.len());
        Ok(Picture {
            caption: format!(
                "Of those whose spans were kept, seed {seed}. The command rackweave timeline writes them for Perfetto."
            ),
            svg: picture(&requests, &title),
            title,
        })
    };
    kept.map(picture).into_iter().collect()
}

/// Figures of the series of some runs, each of its first seed.
fn series_of(runs: &[(String, PathBuf)]) -> Result<Vec<Figure>, Failure> {
    let mut opened = Vec::new();
    for (name, folder) in runs {
        let run = Run::open(folder)?;
        let seed = run.seed_or_first(None)?;
        if run.has_series(seed) {
            opened.push((name, run, seed));
        }
    }
    let left_out = opened.len().saturating_sub(RUNS_WITH_SERIES);
    opened.truncate(RUNS_WITH_SERIES);
    let mut traced = Vec::new();
    for (name, run, seed) in &opened {
        let mut survey = Survey::default();
        run.each_part_of_series(*seed, &mut |rows| survey.add(rows))?;
        let mut tracing = Tracing::new(survey, opened.len() > 1);
        run.each_part_of_series(*seed, &mut |rows| tracing.add(rows))?;
        traced.push(((*name).clone(), tracing));
    }
    let mut figures = series::figures(&traced);
    let note = match (opened.first(), left_out) {
        (Some((_, run, seed)), 0) if run.seeds().count() > 1 => Some(format!("Drawn is seed {seed}, the first.")),
        (_, 0) => None,
        _ => Some(format!("Drawn are the first {RUNS_WITH_SERIES} points; {left_out} more have series.")),
    };
    figures.iter_mut().for_each(|figure| figure.definition.notes.extend(note.clone()));
    Ok(figures)
}

/// Writes the pages of a report into a folder, and its figures into `exported`.
pub fn write_pages(root: &Path, input: &PageInput, exported: Option<&PathBuf>) -> Result<(), Failure> {
    pages(input).into_iter().try_for_each(|file| write(&root.join(file.name), file.text))?;
    exported.map_or(Ok(()), |folder| export(folder, input))
}
