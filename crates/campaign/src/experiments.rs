//! The published experiments: those built into the program, or a folder like them.
//!
//! `DESIGN/FIGURE/` holds `experiment*.toml` (all their points together are the run),
//! `figure*.toml`, `README.md`, and as needed `claims.toml` and `published.csv`. Without an
//! experiment, the figures are of what a tool has measured.

use crate::failure::{Failure, bad_input};
use plan::{Files, Point, Scale};
use report::bindings::{self, Bindings};
use report::figure::{self, Figure};
use report::published::{self, PublishedRow};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, Cursor};
use std::path::Path;

/// Path from `experiments` and text of each file.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The rooms, each with the name of its paper in the ledgers.
pub const DESIGNS: [(&str, &str); 5] =
    [("edm", "edm"), ("blox", "rackblox"), ("san", "san"), ("sdirect", "sdirect"), ("scalio", "scalio")];

/// The design with this name, or with a paper of this name.
pub fn design(name: &str) -> Result<(&'static str, &'static str), Failure> {
    let found = DESIGNS.into_iter().find(|(room, paper)| name == *room || name == *paper);
    let allowed = DESIGNS.map(|(room, _)| room).join(", ");
    found.ok_or_else(|| bad_input(format!("there is no design `{name}`; allowed are {allowed}")))
}

/// Whether an experiment is of this room.
pub fn in_room(name: &str, room: &str) -> bool {
    name.split_once('/').is_some_and(|(design, _)| design == room)
}

/// The files of experiments.
pub struct Library {
    /// The prefix of a file's name in messages.
    place: String,
    files: BTreeMap<String, String>,
}

/// The measures of an experiment.
pub struct Measured {
    /// Its name, `edm/fig8a`.
    pub name: String,
    /// How it measures claims.
    pub bindings: Bindings,
    /// What others printed.
    pub published: Vec<PublishedRow>,
}

/// The runs and figures of an experiment.
pub struct Experiment {
    /// Its name, `edm/fig8a`.
    pub name: String,
    /// Its README.
    pub readme: String,
    /// The points of all its files at the selected scale.
    pub points: Vec<Point>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

impl Library {
    /// The experiments of the program.
    pub fn shipped() -> Library {
        let files = SHIPPED.iter().map(|(name, text)| (name.to_string(), text.to_string()));
        Library { place: "experiments".into(), files: files.collect() }
    }

    /// The library of a folder, or that of the program.
    pub fn open(folder: Option<&Path>) -> Result<Library, Failure> {
        let Some(folder) = folder else { return Ok(Library::shipped()) };
        let mut library = Library { place: folder.display().to_string(), files: BTreeMap::new() };
        library.collect(folder, "")?;
        Ok(library)
    }

    /// Takes up `DESIGN/FIGURE/FILE`; what is no text is of no concern.
    fn collect(&mut self, folder: &Path, prefix: &str) -> Result<(), Failure> {
        let failed = |error: io::Error| bad_input(format!("{}: {error}", folder.display()));
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                self.collect(&entry.path(), &format!("{name}/"))?;
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                self.files.insert(name, text);
            }
        }
        Ok(())
    }

    /// The names of all experiments, `edm/fig8a`: room by room, in the order of its `contents.txt`,
    /// the others behind.
    pub fn names(&self) -> Vec<String> {
        let folders = self.files.keys().filter_map(|path| {
            let (folder, file) = path.rsplit_once('/')?;
            let counts = ["experiment", "figure"].iter().any(|stem| is_numbered(file, stem)) || file == "claims.toml";
            (counts && folder.split('/').count() == 2).then(|| folder.to_string())
        });
        let mut names: Vec<String> = folders.collect::<BTreeSet<_>>().into_iter().collect();
        names.sort_by_cached_key(|name| {
            let (room, figure) = name.split_once('/').unwrap_or((name, ""));
            (room.to_string(), self.place_in_contents(room, figure))
        });
        names
    }

    fn place_in_contents(&self, room: &str, figure: &str) -> usize {
        let contents = self.text(&format!("{room}/contents.txt")).map_or("", |(_, text)| text);
        contents.lines().position(|line| line.trim() == figure).unwrap_or(usize::MAX)
    }

    /// The text of the results that are shipped for a room.
    pub fn results(&self, room: &str) -> Option<(String, &str)> {
        self.text(&format!("{room}/results.json"))
    }

    /// The text of the searches that are shipped for a room.
    pub fn settled(&self, room: &str) -> Option<(String, &str)> {
        self.text(&format!("{room}/settled.json"))
    }

    /// The measures of the experiment.
    pub fn measured(&self, name: &str) -> Result<Measured, Failure> {
        let bindings = match self.text(&format!("{name}/claims.toml")) {
            Some((file, text)) => bindings::parse(&file, text).map_err(bad_input)?,
            None => Bindings { file: format!("{}/{name}/claims.toml", self.place), bindings: Vec::new() },
        };
        Ok(Measured {
            name: name.into(),
            bindings,
            published: self.published(name, "published.csv")?.unwrap_or_default(),
        })
    }

    /// The runs and figures of the experiment, checked.
    pub fn experiment(&self, name: &str, scale: Scale) -> Result<Experiment, Failure> {
        let readme = self.text(&format!("{name}/README.md")).map_or(String::new(), |(_, text)| text.into());
        let mut experiment = Experiment { name: name.into(), readme, points: Vec::new(), figures: Vec::new() };
        experiment.points = self.points_with(name, scale, &[])?;
        experiment.figures = self.figures(name)?;
        Ok(experiment)
    }

    /// The figures of the experiment.
    pub fn figures(&self, name: &str) -> Result<Vec<Figure>, Failure> {
        self.numbered(name, "figure").iter().map(|path| self.figure(name, path)).collect()
    }

    /// The points of all files of the experiment, with other values for some keys.
    pub fn points_with(&self, name: &str, scale: Scale, settings: &[(String, String)]) -> Result<Vec<Point>, Failure> {
        let mut points = Vec::new();
        for path in self.numbered(name, "experiment") {
            let (file, text) = self.text(&path).expect("it was listed");
            let beside = Beside { library: self, folder: name };
            points.extend(plan::parse(&file, text, &beside, settings).map_err(bad_input)?.points(Some(scale)));
        }
        Ok(points)
    }

    /// The boxes of a room: the experiment, the file and its text.
    pub fn boxes(&self, room: &str) -> Vec<(String, String, &str)> {
        let boxes = self.names().into_iter().filter(|name| in_room(name, room));
        boxes
            .filter_map(|name| {
                let (file, text) = self.text(&format!("{name}/settle.toml"))?;
                Some((name, file, text))
            })
            .collect()
    }

    /// The texts of all files beside an experiment.
    pub fn texts(&self, name: &str) -> BTreeMap<&str, &str> {
        let inside =
            self.files.iter().filter(|(path, _)| path.rsplit_once('/').is_some_and(|(folder, _)| folder == name));
        inside.map(|(path, text)| (path.as_str(), text.as_str())).collect()
    }

    fn figure(&self, name: &str, path: &str) -> Result<Figure, Failure> {
        let (file, text) = self.text(path).expect("it was listed");
        let definition = figure::parse(&file, text).map_err(bad_input)?;
        let published = match &definition.published {
            None => Vec::new(),
            Some(overlay) => self.published(name, &overlay.file)?.ok_or_else(|| {
                bad_input(format!("{file}: there is no file `{}` beside it, which `published` names", overlay.file))
            })?,
        };
        Ok(Figure { definition, published, given: Vec::new() })
    }

    fn published(&self, name: &str, file: &str) -> Result<Option<Vec<PublishedRow>>, Failure> {
        let found = self.text(&format!("{name}/{file}"));
        found.map(|(file, text)| published::parse(&file, text).map_err(bad_input)).transpose()
    }

    /// `experiment.toml`, `experiment-2.toml` and so on.
    fn numbered(&self, name: &str, stem: &str) -> Vec<String> {
        let inside = |path: &&String| {
            path.rsplit_once('/').is_some_and(|(folder, file)| folder == name && is_numbered(file, stem))
        };
        let mut found: Vec<String> = self.files.keys().filter(inside).cloned().collect();
        found.sort_by_key(|path| path.trim_end_matches(".toml").to_string());
        found
    }

    /// A file's name for messages, and its text.
    fn text(&self, path: &str) -> Option<(String, &str)> {
        self.files.get(path).map(|text| (format!("{}/{path}", self.place), text.as_str()))
    }
}

fn is_numbered(file: &str, stem: &str) -> bool {
    let rest = file.strip_prefix(stem).and_then(|rest| rest.strip_suffix(".toml"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Files of an experiment of the library.
struct Beside<'a> {
    library: &'a Library,
    folder: &'a str,
}

impl Files for Beside<'_> {
    fn open(&self, relative: &str) -> io::Result<Box<dyn BufRead>> {
        let mut path: Vec<&str> = self.folder.split('/').collect();
        for part in relative.split('/') {
            match part {
                "." | "" => {}
                ".." => drop(path.pop()),
                name => path.push(name),
            }
        }
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no such file beside the experiment");
        let text = self.library.files.get(&path.join("/")).ok_or_else(missing)?;
        Ok(Box::new(Cursor::new(text.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(files: &[(&str, &str)]) -> Library {
        let files = files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        Library { place: "experiments".into(), files }
    }

    #[test]
    fn an_experiment_is_a_folder_two_levels_down() {
        let library = library(&[
            ("README.md", ""),
            ("claims/edm.toml", ""),
            ("edm/results.json", ""),
            ("edm/fig8a/experiment-writes.toml", ""),
            ("edm/fig8a/experiment.toml", ""),
            ("edm/fig8a/experimental.toml", ""),
            ("edm/fig9/README.md", ""),
            ("edm/rtl/figure-x.toml", ""),
            ("edm/table1/claims.toml", ""),
            ("edm/bare/experiment.toml", ""),
            ("edm/contents.txt", "table1\nfig8a\n"),
        ]);
        assert_eq!(library.names(), ["edm/table1", "edm/fig8a", "edm/bare", "edm/rtl"]);
        let files = library.numbered("edm/fig8a", "experiment");
        assert_eq!(files, ["edm/fig8a/experiment.toml", "edm/fig8a/experiment-writes.toml"]);
    }

    #[test]
    fn files_are_found_beside_the_experiment_and_above_it() {
        let library = library(&[("edm/fig8a/sizes.txt", "here"), ("edm/sizes.txt", "above")]);
        let beside = Beside { library: &library, folder: "edm/fig8a" };
        let read = |name: &str| beside.open(name).map(|file| io::read_to_string(file).unwrap());
        assert_eq!(read("sizes.txt").unwrap(), "here");
        assert_eq!(read("./../sizes.txt").unwrap(), "above");
        assert_eq!(read("other.txt").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn every_shipped_experiment_is_sound_at_every_scale() {
        let library = Library::shipped();
        for name in library.names() {
            for scale in Scale::ALL {
                library.experiment(&name, scale).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            library.measured(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
