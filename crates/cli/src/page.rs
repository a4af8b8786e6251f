//! The page of a run or of a sweep.

use crate::export::export;
use crate::failure::Failure;
use crate::output::write;
use crate::results::Run;
use crate::timeline;
use record::Summary;
use report::page::pages;
use report::timeline::picture;
use report::{PageInput, Picture, Section, figure};
use std::path::{Path, PathBuf};

/// Seconds between two readings of the page of a sweep that goes on.
const REFRESH: u32 = 5;
/// Requests in the picture of a run's page.
const PICTURED: usize = 20;

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
    let (points, figures) = figure::automatic(points);
    let pictures = pictures(root)?;
    let section = Section { experiment: title.to_owned(), points, figures, pictures, ..Section::default() };
    let refresh = progress.as_ref().map(|_| REFRESH);
    let facts = progress.into_iter().map(|progress| ("Progress".to_owned(), progress)).collect();
    let input = PageInput { title: title.to_owned(), facts, sections: vec![section], refresh, ..PageInput::default() };
    write_pages(root, &input, exported)
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

/// Writes the pages of a report into a folder, and its figures into `exported`.
pub fn write_pages(root: &Path, input: &PageInput, exported: Option<&PathBuf>) -> Result<(), Failure> {
    pages(input).into_iter().try_for_each(|file| write(&root.join(file.name), file.text))?;
    exported.map_or(Ok(()), |folder| export(folder, input))
}
