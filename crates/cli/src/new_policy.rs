//! `rackweave new-policy`: a program with a policy of one's own, to start from.

use crate::VERSION;
use crate::arguments::{Decision, NewPolicyArguments};
use crate::failure::{Failure, bad_input, failed_at, print};
use std::fs;
use std::path::{Path, PathBuf};

const MANIFEST: &str = include_str!("../starters/policy/manifest.toml");
/// The sources that this program was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The program and the crate that has the decision.
fn program(decision: Decision) -> (&'static str, &'static str) {
    match decision {
        Decision::Priority => (include_str!("../starters/policy/priority.rs"), "edm"),
        Decision::Order => (include_str!("../starters/policy/order.rs"), "blox"),
        Decision::Replica => (include_str!("../starters/policy/replica.rs"), "blox"),
        Decision::Collect => (include_str!("../starters/policy/collect.rs"), "blox"),
    }
}

/// Writes the crate, and prints how to go on.
pub fn new_policy(arguments: &NewPolicyArguments) -> Result<(), Failure> {
    let (folder, place) = (&arguments.folder, arguments.folder.display());
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.chars().all(is_letter) {
        return Err(bad_input(format!("{place}: allowed in the name are a-z, 0-9, - and _, and a letter first")));
    }
    if folder.exists() {
        return Err(bad_input(format!("{place} exists; give another name")));
    }
    let source = source(arguments.source.as_deref())?;
    let (text, room) = program(arguments.decision);
    let manifest = MANIFEST.replace("NAME", &name).replace("CRATE", room).replace("VERSION", VERSION);
    let manifest = manifest.replace("SOURCE", &source.to_string_lossy());
    let program = folder.join("src");
    fs::create_dir_all(&program).map_err(failed_at(&program))?;
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&program.join("main.rs"), &text.replace("NAME", &name))?;
    // The versions that rackweave was tested with.
    let (lock, own) = (source.join("Cargo.lock"), folder.join("Cargo.lock"));
    fs::copy(&lock, &own).map_err(failed_at(&lock))?;
    print(&format!("{place}/src/main.rs\nnext       cd {place} && cargo run --release -- run FILE --out DIR\n"))
}

/// The sources of rackweave, as a path that does not depend on the current folder.
fn source(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let source = given.unwrap_or(Path::new(BUILT_FROM));
    let place = source.display();
    if !source.join("crates/campaign/Cargo.toml").is_file() {
        return Err(bad_input(format!("{place}: there are no sources of rackweave; --source names them")));
    }
    source.canonicalize().map_err(failed_at(source))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(failed_at(path))
}
