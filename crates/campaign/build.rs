//! Builds the experiments into the program, so that `rackweave reproduce` works from any folder.
//!
//! (The crate `include_dir` was rejected: on a stable compiler it does not notice that a file was
//! added.)

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What an experiment consists of.
const EXTENSIONS: [&str; 6] = ["toml", "csv", "md", "txt", "json", "fio"];
/// The claims' ledgers are built into `report`.
const NOT_AN_EXPERIMENT: &str = "claims";

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../experiments");
    let root = fs::canonicalize(root)?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let lines: String = files.iter().map(|file| line(&root, file)).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("shipped.rs");
    fs::write(out, format!("&[\n{lines}]\n"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with(NOT_AN_EXPERIMENT) {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)) {
            files.push(path);
        }
    }
    Ok(())
}

/// One entry: the path from `experiments` and the text.
fn line(root: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(root).expect("it was found there");
    let name = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
    format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string())
}
