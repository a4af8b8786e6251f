//! From an experiment file on disk to its points.

use crate::arguments::{Setting, SourceArguments};
use crate::failure::{Failure, bad_input};
use plan::{Experiment, Files, Point};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Files that an experiment refers to are relative to its folder. Keeps the names of those that
/// were opened.
struct Beside {
    folder: PathBuf,
    opened: RefCell<BTreeSet<String>>,
}

impl Files for Beside {
    fn open(&self, relative: &str) -> io::Result<Box<dyn BufRead>> {
        let file = File::open(self.folder.join(relative))?;
        self.opened.borrow_mut().insert(relative.to_owned());
        Ok(Box::new(BufReader::new(file)))
    }
}

/// The text of a TOML file.
pub fn text_of(file: &Path) -> Result<String, Failure> {
    let name = file.display();
    let bytes = fs::read(file).map_err(|error| bad_input(format!("{name}: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        bad_input(format!("{name}: it is not text (byte {at} is not UTF-8); needed is a TOML file"))
    })
}

/// Reads and checks the experiment.
pub fn experiment(source: &SourceArguments) -> Result<Experiment, Failure> {
    Ok(experiment_with_files(source)?.0)
}

/// The names of the files that the experiment reads, relative to its folder.
pub fn files(source: &SourceArguments) -> Result<Vec<String>, Failure> {
    Ok(experiment_with_files(source)?.1.into_iter().collect())
}

fn experiment_with_files(source: &SourceArguments) -> Result<(Experiment, BTreeSet<String>), Failure> {
    let name = source.file.display().to_string();
    let text = source.text.clone().map_or_else(|| text_of(&source.file), Ok)?;
    if text.trim().is_empty() {
        let needed = "an experiment has at least `title` and `design.name`, and the tables of its scene";
        return Err(bad_input(format!("{name}: the file is empty: {needed}; `rackweave schema` lists all keys")));
    }
    let folder = source.file.parent().unwrap_or(Path::new(""));
    let settings: Vec<_> = source.settings.iter().map(|Setting(key, value)| (key.clone(), value.clone())).collect();
    let beside = Beside { folder: folder.into(), opened: RefCell::default() };
    let experiment = plan::parse(&name, &text, &beside, &settings)?;
    Ok((experiment, beside.opened.into_inner()))
}

/// The points of the experiment at the selected scale.
pub fn points(source: &SourceArguments) -> Result<Vec<Point>, Failure> {
    points_of(source, &experiment(source)?)
}

fn points_of(source: &SourceArguments, experiment: &Experiment) -> Result<Vec<Point>, Failure> {
    let mut points = experiment.points(source.scale);
    if experiment.reads_files() {
        let folder = source.file.parent().unwrap_or(Path::new(""));
        for plan in points.iter_mut().map(|point| &mut point.plan) {
            let place = Path::new(".").join(folder).join(plan.files.as_deref().unwrap_or_default());
            let place = place.canonicalize();
            let place = place.map_err(|error| bad_input(format!("{}: {error}", folder.display())))?;
            plan.files = Some(place.to_string_lossy().into_owned());
        }
    }
    Ok(points)
}

/// The only point of an experiment; a sweep is bad input.
pub fn only_point(source: &SourceArguments) -> Result<Point, Failure> {
    let experiment = experiment(source)?;
    let mut points = points_of(source, &experiment)?;
    if points.len() == 1 {
        return Ok(points.remove(0));
    }
    let axes: Vec<String> = experiment.axes().into_iter().map(|(name, _)| name).collect();
    Err(bad_input(format!(
        "{}: this is a sweep of {} points over {}; `rackweave sweep` plays them, `--set AXIS=VALUE` chooses one",
        source.file.display(),
        points.len(),
        axes.join(", ")
    )))
}

/// The name of the experiment in the names of folders: that of its file.
pub fn stem(file: &Path) -> String {
    file.file_stem().map_or("experiment".into(), |stem| stem.to_string_lossy().into_owned())
}

/// The place of a point in its sweep, for people: `load=0.8 mix=reads`; empty without a sweep.
pub fn describe(point: &Point) -> String {
    point.labels.iter().map(|(axis, label)| format!("{axis}={label}")).collect::<Vec<_>>().join(" ")
}

/// The folder of a point among others: its number, and where it lies, in letters that no file
/// system minds.
pub fn folder_name(index: usize, point: &Point) -> String {
    /// File systems allow 255 bytes; what surrounds the name needs some.
    const LETTERS_MAX: usize = 120;
    let short = |axis: &str| axis.trim_end_matches(".name").rsplit('.').next().unwrap_or_default().to_string();
    let labels: Vec<String> = point.labels.iter().map(|(axis, label)| format!("{}={label}", short(axis))).collect();
    let safe = |letter: char| if letter.is_ascii_alphanumeric() || ".=,-_".contains(letter) { letter } else { '_' };
    let text: String = labels.join(",").chars().map(safe).take(LETTERS_MAX).collect();
    if text.is_empty() { format!("{index:03}") } else { format!("{index:03}-{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::NoFiles;

    fn points(labels: &str) -> Vec<Point> {
        let text = "title = 't'\nfabric = { nodes = 4, rate = '100Gbps' }\ndesign = { name = 'edm' }\nworkload = { load = 0.5 }\nrun = { requests = 10 }\n";
        plan::parse("t", &format!("{text}{labels}"), &NoFiles, &[]).unwrap().points(None)
    }

    #[test]
    fn a_folder_is_named_for_its_point_in_safe_letters() {
        assert_eq!(folder_name(0, &points("")[0]), "000");
        let swept = points("[sweep]\n'design.name' = ['edm', 'cxl']\n'workload.load' = [0.2]\n");
        assert_eq!(folder_name(1, &swept[1]), "001-design=cxl,load=0.2");
        let strange =
            format!("[[sweep.axis]]\nname = 'mix'\npoints = [{{ label = '../ä b{}', set = {{}} }}]\n", "x".repeat(300));
        let name = folder_name(1234, &points(&strange)[0]);
        assert!(name.starts_with("1234-mix=..___bx") && name.len() < 130, "{name}");
    }
}
