//! `rackweave rack down`: ends what runs.

use super::process::{Started, end};
use super::{Site, netns, stages};
use crate::failure::{Failure, failed_at, print};
use campaign::terminal::say;
use std::fs;
use std::time::Duration;

/// How long a role may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the chosen roles, the last started first. Without a choice also those that an earlier
/// version of the file named.
pub fn down(site: &Site, only: &[String]) -> Result<(), Failure> {
    let roles = site.chosen(only)?;
    if !site.rack.folder.exists() {
        return print("nothing runs\n");
    }
    let _lock = site.lock()?;
    if only.is_empty() {
        end_all(site, &former(site)?)?;
    }
    for stage in stages(&roles).rev() {
        end_all(site, &stage.iter().rev().map(|role| role.name.clone()).collect::<Vec<_>>())?;
    }
    if only.is_empty() { netns::remove(site) } else { Ok(()) }
}

/// Names of processes of this rack that no role of its file has any more.
fn former(site: &Site) -> Result<Vec<String>, Failure> {
    let folder = &site.rack.folder;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed_at(folder))? {
        let name = entry.map_err(failed_at(folder))?.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(".pid")).map(str::to_owned);
        if let Some(name) = name.filter(|name| site.role(name).is_err()) {
            let is_ours = Started::read(&site.pid_file(&name))?.is_some_and(|started| started.rack == site.file);
            names.extend(is_ours.then_some(name));
        }
    }
    names.sort();
    Ok(names)
}

/// Ends roles at the same time, and removes their files.
fn end_all(site: &Site, names: &[String]) -> Result<(), Failure> {
    let mut found: Vec<(&str, Started, bool)> = Vec::new();
    for name in names {
        if let Some(started) = site.started(name)? {
            let is_alive = started.is_alive();
            found.push((name, started, is_alive));
        }
    }
    let processes: Vec<Started> = found.iter().map(|(_, started, _)| started.clone()).collect();
    let killed = end(&processes, PATIENCE).map_err(|error| Failure::Failed(error.to_string()))?;
    for ((name, started, was_alive), killed) in found.iter().zip(killed) {
        if killed {
            say(format_args!("warning: {name} did not end within {} s of SIGTERM and was killed", PATIENCE.as_secs()));
        }
        let what = if *was_alive { format!("ended (process {})", started.pid) } else { "had ended already".into() };
        let path = site.pid_file(name);
        fs::remove_file(&path).map_err(failed_at(&path))?;
        print(&format!("{name} {what}\n"))?;
    }
    Ok(())
}
