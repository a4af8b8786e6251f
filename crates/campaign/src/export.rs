//! `--export DIR`: figures and claims as files. SVG, PNG and PDF are drawn by the Python package
//! vl-convert-python, without a browser.

use crate::failure::{Failure, bad_input, failed_at};
use crate::output::write;
use report::PageInput;
use report::export::{SPECIFICATION, SVG, exports};
use std::fs;
use std::path::Path;
use std::process::Command;

const PACKAGE: &str = "vl-convert-python";
/// Draws specifications in three forms, and pictures in the two that they are not.
const DRAW: &str = include_str!("export.py");

/// The interpreter that draws: `RACKWEAVE_PYTHON`, or else `python3`.
fn python() -> String {
    std::env::var("RACKWEAVE_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Refuses an export that could not draw, before anything is played.
pub fn check() -> Result<(), Failure> {
    let python = python();
    let is_there =
        Command::new(&python).args(["-c", "import vl_convert"]).output().is_ok_and(|out| out.status.success());
    let missing = || {
        bad_input(format!(
            "--export: {python} has no package {PACKAGE}, which draws SVG, PNG and PDF: pip install {PACKAGE}, or name an \
             interpreter that has it in RACKWEAVE_PYTHON"
        ))
    };
    if is_there { Ok(()) } else { Err(missing()) }
}

/// Writes all figures and claims of a report into a folder, which is made.
pub fn export(folder: &Path, input: &PageInput) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(failed_at(folder))?;
    let files = exports(input);
    for file in &files {
        write(&folder.join(&file.name), &file.text)?;
    }
    let drawings = files.iter().filter(|file| file.name.ends_with(SPECIFICATION) || file.name.ends_with(SVG));
    let drawings = drawings.map(|file| folder.join(&file.name));
    let out = Command::new(python()).args(["-c", DRAW]).args(drawings).output().map_err(failed_at(folder))?;
    match out.status.success() {
        true => Ok(()),
        false => Err(Failure::Failed(format!("--export: {}", String::from_utf8_lossy(&out.stderr).trim_end()))),
    }
}
