//! The page of a run or of a sweep.

use crate::failure::Failure;
use crate::output::write;
use record::Summary;
use report::page::pages;
use report::{PageInput, Section, figure};
use std::path::Path;

/// Seconds between two readings of the page of a sweep that goes on.
const REFRESH: u32 = 5;

/// Writes `index.html` into the folder of a run or a sweep. `progress` is what a sweep that goes on
/// says of itself; a browser reads its page again and again.
pub fn write_page(root: &Path, title: &str, points: &[Summary], progress: Option<String>) -> Result<(), Failure> {
    let (points, figures) = figure::automatic(points);
    let section = Section { experiment: title.to_owned(), points, figures, ..Section::default() };
    let refresh = progress.as_ref().map(|_| REFRESH);
    let facts = progress.into_iter().map(|progress| ("Progress".to_owned(), progress)).collect();
    let input = PageInput { title: title.to_owned(), facts, sections: vec![section], refresh, ..PageInput::default() };
    pages(&input).into_iter().try_for_each(|file| write(&root.join(file.name), file.text))
}
