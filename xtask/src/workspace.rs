//! The crates of the workspace, read from cargo.

use std::path::{Path, PathBuf};

use anyhow::Context;
use cargo_metadata::{CargoOpt, MetadataCommand, Package};

/// A member of the workspace.
pub(crate) struct Crate {
    /// The package's name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its manifest, from the root of the workspace.
    pub manifest: String,
    /// The manifest's text, to find lines in.
    pub manifest_text: String,
    /// The members of the workspace on which it depends, including dependencies of tests and
    /// builds.
    pub imports: Vec<String>,
}

impl Crate {
    /// Returns the line of a dependency in the manifest; 0 if it is written in an unusual way.
    pub(crate) fn line_of(&self, import: &str) -> usize {
        let names_it = |line: &str| line.split(['.', '=', ' ', ']']).next().is_some_and(|word| word == import);
        self.manifest_text.lines().position(names_it).map_or(0, |index| index + 1)
    }
}

/// Returns every member, sorted by name.
pub(crate) fn crates(root: &Path) -> anyhow::Result<Vec<Crate>> {
    let mut command = MetadataCommand::new();
    command.manifest_path(root.join("Cargo.toml")).no_deps().features(CargoOpt::AllFeatures);
    let metadata = command.exec().context("cargo cannot read the workspace")?;
    let members: Vec<&Package> = metadata.workspace_packages();
    let is_member = |name: &str| members.iter().any(|package| *package.name == name);
    let mut crates = members.iter().map(|package| member(root, package, is_member)).collect::<Result<Vec<_>, _>>()?;
    crates.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(crates)
}

fn member(root: &Path, package: &Package, is_member: impl Fn(&str) -> bool) -> anyhow::Result<Crate> {
    let manifest = package.manifest_path.as_std_path();
    let declared = package.dependencies.iter().map(|dependency| dependency.name.to_string());
    let mut imports: Vec<String> = declared.filter(|name| is_member(name)).collect();
    imports.sort();
    imports.dedup();
    Ok(Crate {
        name: package.name.to_string(),
        folder: manifest.parent().context("a manifest lies in a folder")?.to_owned(),
        manifest: relative(root, manifest),
        manifest_text: std::fs::read_to_string(manifest)?,
        imports,
    })
}

/// Returns a path relative to the root of the workspace, with `/` on every system.
pub(crate) fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
