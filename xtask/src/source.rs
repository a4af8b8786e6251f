//! The sources of a crate, parsed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use syn::spanned::Spanned;

use crate::product::{is_test, lines_of_tests};
use crate::workspace::{Crate, relative};

/// One file of one crate.
pub(crate) struct Source {
    /// The crate of the file.
    pub crate_name: String,
    /// The file, from the root of the workspace.
    pub file: String,
    /// Whether it is product code: under `src/`, and no module that is compiled for tests only.
    pub is_product: bool,
    /// Number of its lines, without those in items that are compiled for tests only.
    pub product_lines: usize,
    /// The parsed file.
    pub syntax: syn::File,
}

/// Parses every Rust file of a crate, in the order of the paths.
pub(crate) fn read_all(root: &Path, one: &Crate) -> anyhow::Result<Vec<Source>> {
    let build = one.folder.join("build.rs");
    let mut files: Vec<PathBuf> = build.is_file().then_some(build).into_iter().collect();
    for folder in ["benches", "examples", "src", "tests"] {
        list(&one.folder.join(folder), "rs", &mut files)?;
    }
    let parsed = files.into_iter().map(|path| parse(root, path)).collect::<anyhow::Result<Vec<_>>>()?;
    let product = one.folder.join("src");
    let test_modules: BTreeSet<PathBuf> =
        parsed.iter().flat_map(|(path, _, syntax)| test_modules(path, syntax)).collect();
    let is_product = |path: &Path| {
        path.starts_with(&product) && !path.ancestors().any(|part| test_modules.contains(&part.with_extension("")))
    };
    let sources = parsed.into_iter().map(|(path, lines, syntax)| Source {
        crate_name: one.name.clone(),
        file: relative(root, &path),
        is_product: is_product(&path),
        product_lines: lines - lines_of_tests(&syntax),
        syntax,
    });
    Ok(sources.collect())
}

/// Returns every file below `path` with this extension, in the order of the paths, or `path`
/// itself.
pub(crate) fn files(path: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if path.is_file() {
        files.push(path.to_owned());
    }
    list(path, extension, &mut files)?;
    Ok(files)
}

/// Appends the files with `extension` under `folder`, which need not exist.
fn list(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            list(&path, extension, files)?;
        } else if path.extension().is_some_and(|own| own == extension) {
            files.push(path);
        }
    }
    Ok(())
}

fn parse(root: &Path, path: PathBuf) -> anyhow::Result<(PathBuf, usize, syn::File)> {
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let syntax = syn::parse_file(&text)
        .map_err(|error| anyhow!("{}:{}: {error}", relative(root, &path), error.span().start().line))?;
    Ok((path, text.lines().count(), syntax))
}

/// Returns the files of modules that are compiled for tests only (`#[cfg(test)] mod tests;`),
/// without their extension.
fn test_modules(path: &Path, syntax: &syn::File) -> Vec<PathBuf> {
    let own_folder = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") => path.parent().unwrap_or(path).to_owned(),
        _ => path.with_extension(""),
    };
    let modules = syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && is_test(&module.attrs) => Some(module),
        _ => None,
    });
    modules.map(|module| own_folder.join(module.ident.to_string())).collect()
}

/// Returns the first line of a syntax node.
pub(crate) fn line_of(something: &impl Spanned) -> usize {
    something.span().start().line
}
