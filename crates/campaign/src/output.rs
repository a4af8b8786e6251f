//! The folder of results: made anew, never mixed with something else, files whole or not there.

use crate::VERSION;
use crate::failure::{Failure, bad_input, failed_at};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The file by which a folder of results is known: only such a folder is ever replaced.
pub const MARKER: &str = "rackweave-output";
/// Default place of results: the current folder.
const PARENT: &str = "rackweave-results";

/// Contents of the marker of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// The command that has made it.
    pub command: String,
    /// The program's version.
    pub version: String,
    /// SHA-256 over everything that decides what is in the folder, hex; only a sweep is gone on
    /// with and has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<String>,
}

impl Marker {
    /// The marker of this program.
    pub fn new(command: &str) -> Marker {
        Marker { command: command.into(), version: VERSION.into(), fingerprint: None }
    }

    /// The marker of the folder `root`, if it has one.
    pub fn read(root: &Path) -> Option<Marker> {
        serde_json::from_str(&fs::read_to_string(root.join(MARKER)).ok()?).ok()
    }
}

/// The requested folder, or the default for `name`.
pub fn place(asked: Option<&PathBuf>, name: &str) -> PathBuf {
    asked.cloned().unwrap_or_else(|| Path::new(PARENT).join(name))
}

/// Refuses a folder that is there. With `force`, one that is empty or has our marker may be
/// replaced. Changes nothing.
pub fn check_free(root: &Path, force: bool) -> Result<(), Failure> {
    let place = root.display();
    if fs::symlink_metadata(root).is_err() {
        return Ok(());
    }
    if !force {
        return Err(bad_input(format!("{place} exists; give another --out, or --force to replace it")));
    }
    let is_empty = fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_none());
    if is_empty || root.join(MARKER).is_file() {
        return Ok(());
    }
    Err(bad_input(format!("{place} is not replaced: it has no file `{MARKER}`, so that it is no output of rackweave")))
}

/// Makes the folder, in place of what [`check_free`] has allowed to replace.
pub fn create(root: &Path, force: bool, marker: &Marker) -> Result<(), Failure> {
    check_free(root, force)?;
    if fs::symlink_metadata(root).is_ok() {
        fs::remove_dir_all(root).map_err(failed_at(root))?;
    }
    let parent = root.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(parent).map_err(failed_at(parent))?;
    fs::create_dir(root).map_err(failed_at(root))?;
    write_json(&root.join(MARKER), marker)
}

/// Takes back what [`create`] has made. What cannot be removed stays: the failure that counts is
/// the one before.
pub fn discard(root: &Path) {
    if root.join(MARKER).is_file() {
        let _ = fs::remove_dir_all(root);
    }
}

/// Writes a file under another name first: readers find it whole, or as it was before.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    // Several programs may write to one folder: the shares of a sweep.
    let temporary = hidden(path, &format!("{}.tmp", std::process::id()));
    let written = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // Half a file is of no use; the reason that counts is the first one.
        let _ = fs::remove_file(&temporary);
        failed_at(path)(error)
    })
}

/// Writes `value` as indented JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    write(path, json(value))
}

/// `value` as indented JSON.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("results have texts as keys") + "\n"
}

/// A hidden neighbour of `path`, for what is not finished.
pub fn hidden(path: &Path, extension: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{extension}"))
}

/// Puts the finished folder `from` at `to`, in place of an older one.
pub fn publish(from: &Path, to: &Path) -> Result<(), Failure> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(failed_at(to))?;
    }
    fs::rename(from, to).map_err(failed_at(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_of_ours_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("out");
        create(&root, false, &Marker::new("run")).unwrap();
        fs::write(root.join("old"), "").unwrap();
        assert!(matches!(create(&root, false, &Marker::new("run")), Err(Failure::BadInput(_))));
        create(&root, true, &Marker::new("run")).unwrap();
        assert!(!root.join("old").exists() && Marker::read(&root) == Some(Marker::new("run")));
        fs::remove_file(root.join(MARKER)).unwrap();
        create(&root, true, &Marker::new("run")).expect("an empty folder holds nothing to lose");
        fs::remove_file(root.join(MARKER)).unwrap();
        fs::write(root.join("thesis.tex"), "").unwrap();
        assert!(matches!(create(&root, true, &Marker::new("run")), Err(Failure::BadInput(_))));
        assert!(root.join("thesis.tex").exists());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named_and_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("none").join("summary.json");
        let error = write(&path, "text").unwrap_err().to_string();
        assert!(error.contains("none/summary.json"), "{error}");
        fs::create_dir(home.path().join("full.json")).unwrap();
        write(&home.path().join("full.json"), "text").unwrap_err();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
