//! The page of a run or of a sweep.

use crate::export::export;
use crate::failure::Failure;
use crate::output::write;
use record::Summary;
use report::export::exports;
use report::page::{PageFile, pages};
use report::{PageInput, Section, figure};
use std::path::{Path, PathBuf};

/// Seconds between two readings of the page of a sweep that goes on.
const REFRESH: u32 = 5;

/// Writes `index.html` into the folder of a run or a sweep, and its figures into `exported`.
/// `progress` is what a sweep that goes on says of itself; a browser reads its page again and
/// again.
pub fn write_page(
    root: &Path,
    title: &str,
    points: &[Summary],
    progress: Option<String>,
    exported: Option<&PathBuf>,
) -> Result<(), Failure> {
    let refresh = progress.as_ref().map(|_| REFRESH);
    let facts = progress.into_iter().map(|progress| ("Progress".to_owned(), progress)).collect();
    let input = PageInput { facts, refresh, ..input(title, points) };
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

/// Writes the pages of a report into a folder, and its figures into `exported`.
pub fn write_pages(root: &Path, input: &PageInput, exported: Option<&PathBuf>) -> Result<(), Failure> {
    pages(input).into_iter().try_for_each(|file| write(&root.join(file.name), file.text))?;
    exported.map_or(Ok(()), |folder| export(folder, input))
}
