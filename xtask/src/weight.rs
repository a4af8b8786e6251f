//! The weight of what is in the tree, or would be with the next commit.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::finding::Finding;

/// Checks all files that git tracks, and those that it neither tracks nor ignores. Outside of a
/// checkout there are none.
pub(crate) fn check(root: &Path, most_kib: u64) -> anyhow::Result<Vec<Finding>> {
    if !root.join(".git").exists() {
        return Ok(Vec::new());
    }
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").current_dir(root).args(arguments).output().context("cannot run git")?;
    anyhow::ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(names.split_terminator('\0').filter_map(|name| too_heavy(root, name, most_kib)).collect())
}

fn too_heavy(root: &Path, name: &str, most_kib: u64) -> Option<Finding> {
    // A tracked file may be gone from the folder.
    let kib = std::fs::symlink_metadata(root.join(name)).ok()?.len().div_ceil(1024);
    let message = || format!("{kib} KiB, at most {most_kib}: what a trial has written belongs elsewhere");
    (kib > most_kib).then(|| Finding::error(name, 0, message()))
}
