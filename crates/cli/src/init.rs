//! `rackweave init`: an experiment file to start from.

use crate::arguments::{InitArguments, Scene};
use crate::failure::{Failure, bad_input, failed_at, print};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes the file, and prints how to go on.
pub fn init(arguments: &InitArguments) -> Result<(), Failure> {
    let (name, text) = starter(arguments.scene);
    let path = arguments.file.clone().unwrap_or_else(|| PathBuf::from(name));
    if path == Path::new("-") {
        return print(text);
    }
    let place = path.display();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!arguments.force);
    let mut file = options.open(&path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => bad_input(format!("{place} exists; give another name, or --force to replace it")),
        _ => bad_input(format!("{place}: {error}")),
    })?;
    file.write_all(text.as_bytes()).map_err(failed_at(&path))?;
    print(&format!("{place}\nnext       rackweave run {place}\n"))
}

/// The name and the text of a file.
fn starter(scene: Scene) -> (&'static str, &'static str) {
    match scene {
        Scene::Messages => ("messages.toml", include_str!("../starters/messages.toml")),
        Scene::Volumes => ("volumes.toml", include_str!("../starters/volumes.toml")),
        Scene::Wear => ("wear.toml", include_str!("../starters/wear.toml")),
        Scene::San => ("san.toml", include_str!("../starters/san.toml")),
        Scene::Devices => ("devices.toml", include_str!("../starters/devices.toml")),
        Scene::KeyValue => ("key-value.toml", include_str!("../starters/key-value.toml")),
    }
}
