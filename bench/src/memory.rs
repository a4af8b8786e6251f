//! The peak memory of some work, executed by a child process of this program.

use crate::harness::Figures;
use crate::{edm, flash, results, san, scalio, target};
use anyhow::Context;
use std::process::Command;

/// Runs: a module, the key of its peak in MB, and the work.
const RUNS: [(&str, &str, fn()); 8] = [
    ("edm", "edm.peak_mb_10m_messages", edm::memory_child),
    ("flash", "flash.mb_per_512gb", flash::memory_child),
    ("results", "results.explain_mb_10m_rows", results::memory_child),
    ("rivals", "rivals.memory_mb.4096", edm::rivals_memory_child),
    ("san", "san.memory_mb.512", || san::memory_child(8)),
    ("san", "san.memory_mb.4096", || san::memory_child(16)),
    ("scalio", "scalio.peak_mb", scalio::memory_child),
    ("target", "target.memory_mb", target::memory_child),
];

/// Returns the figures of a module's memory runs, if it has any: their peaks, and the `key value`
/// lines printed by their children.
pub fn of(module: &str) -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    for (_, key, _) in RUNS.iter().filter(|(name, _, _)| *name == module) {
        figures.extend(of_run(key)?);
    }
    Ok(figures)
}

fn of_run(key: &str) -> anyhow::Result<Figures> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).args(["--memory-child", key]).output();
    let text = String::from_utf8(output.context("the memory run does not start")?.stdout)?;
    let figures: Option<Figures> = text.lines().map(figure).collect();
    let figures = figures.with_context(|| format!("the memory run printed {text:?}"))?;
    figures.iter().for_each(|(key, value)| println!("{key:<44} {value:>12.2}"));
    Ok(figures)
}

fn figure(line: &str) -> Option<(String, f64)> {
    let (key, value) = line.split_once(' ')?;
    Some((key.to_owned(), value.parse().ok()?))
}

/// Executes a run and prints the peak memory of this process.
pub fn child(key: &str) -> anyhow::Result<()> {
    let found = RUNS.iter().find(|(_, name, _)| *name == key);
    let (_, _, work) = found.with_context(|| format!("there is no memory run {key}"))?;
    work();
    let status = std::fs::read_to_string("/proc/self/status").context("the peak of a process is read from /proc")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in /proc/self/status")?;
    let kilobytes: f64 = peak.trim().trim_end_matches("kB").trim().parse()?;
    println!("{key} {}", kilobytes / 1e3);
    Ok(())
}
