//! `rackweave-bench`: measures the CPU time of Rackweave against references, and writes the figures
//! to a file.

mod blox;
mod datagrams;
mod edm;
mod flash;
mod harness;
mod kernel;
mod loops;
mod memory;
mod results;
mod san;
mod scalio;
mod switch;
mod target;
mod torus_load;

use anyhow::Context;
use clap::Parser;
use harness::{Figures, Group};
use std::path::{Path, PathBuf};

/// Measures Rackweave in CPU time and writes the figures as one flat JSON object.
#[derive(Parser)]
struct Arguments {
    /// Only modules whose name starts with this.
    module: Option<String>,
    /// Only figures whose key starts with this, and no memory run.
    #[arg(long)]
    key: Option<String>,
    /// Where the figures go.
    #[arg(long, default_value = "target/bench.json")]
    out: PathBuf,
    /// Makes the memory run of a key and prints its peak: how this program measures a process of
    /// its own.
    #[arg(long, hide = true)]
    memory_child: Option<String>,
}

/// Measures and prints the figures of a module whose keys start with this.
type Measure = fn(&str) -> anyhow::Result<Figures>;

/// Every module; a new module adds one line.
const MODULES: &[(&str, Measure)] = &[
    ("blox", |only| Ok(measured(blox::benchmarks(), only))),
    ("datagrams", |only| Ok(measured(datagrams::benchmarks(), only))),
    ("edm", |only| Ok(measured(edm::benchmarks(), only))),
    ("flash", |only| Ok(measured(flash::benchmarks(), only))),
    ("kernel", |only| Ok(measured(kernel::benchmarks(), only))),
    ("loops", loops::figures),
    ("results", |only| Ok(measured(results::benchmarks(), only))),
    // Their speed is measured with EDM's.
    ("rivals", |_| Ok(Figures::new())),
    ("san", |only| Ok(measured(san::benchmarks(), only))),
    ("scalio", |only| Ok(measured(scalio::benchmarks(), only))),
    ("switch", |only| Ok(measured(switch::benchmarks(), only))),
    ("target", target_figures),
];

fn measured(groups: Vec<Group>, only: &str) -> Figures {
    groups.into_iter().filter_map(|group| group.only(only)).flat_map(Group::measure_and_print).collect()
}

/// Measures the live target as a whole, so that its figures are ratios of one run.
fn target_figures(only: &str) -> anyhow::Result<Figures> {
    let wanted = only.is_empty() || only.starts_with("target");
    let mut figures = if wanted { target::figures()? } else { Figures::new() };
    figures.retain(|key, _| key.starts_with(only));
    Ok(figures)
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(key) = &arguments.memory_child {
        return memory::child(key);
    }
    let prefix = arguments.module.unwrap_or_default();
    let mut figures = Figures::new();
    let only = arguments.key.as_deref().unwrap_or_default();
    for (name, measure) in chosen(&prefix)? {
        figures.extend(measure(only)?);
        if arguments.key.is_none() {
            figures.extend(memory::of(name)?);
        }
    }
    anyhow::ensure!(!figures.is_empty(), "no figure's key starts with {:?}", arguments.key.unwrap_or_default());
    write(&figures, &arguments.out)
}

fn chosen(prefix: &str) -> anyhow::Result<Vec<(&'static str, Measure)>> {
    let chosen: Vec<_> = MODULES.iter().filter(|(name, _)| name.starts_with(prefix)).copied().collect();
    let names: Vec<_> = MODULES.iter().map(|(name, _)| *name).collect();
    anyhow::ensure!(!chosen.is_empty(), "no module starts with {prefix:?}; there are: {}", names.join(", "));
    Ok(chosen)
}

fn write(figures: &Figures, path: &Path) -> anyhow::Result<()> {
    let describe = || format!("cannot write the figures to {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(describe)?;
    }
    let text = serde_json::to_string_pretty(figures)?;
    std::fs::write(path, text + "\n").with_context(describe)?;
    println!("figures: {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_chooses_modules_and_an_unknown_one_names_them_all() {
        assert_eq!(chosen("ker").expect("kernel starts so").len(), 1);
        assert_eq!(chosen("").expect("everything starts so").len(), MODULES.len());
        let error = chosen("colonel").expect_err("there is no such module").to_string();
        assert!(error.contains("kernel"), "{error}");
    }

    #[test]
    fn figures_are_written_as_one_flat_object_with_sorted_keys() {
        let folder = std::env::temp_dir().join(format!("rackweave-bench-{}", std::process::id()));
        let path = folder.join("deep/bench.json");
        let figures = Figures::from([("b.ns".to_owned(), 2.5), ("a.ns".to_owned(), 1.0)]);
        write(&figures, &path).expect("the folder is made");
        let text = std::fs::read_to_string(&path).expect("just written");
        std::fs::remove_dir_all(&folder).expect("just made");
        assert_eq!(text, "{\n  \"a.ns\": 1.0,\n  \"b.ns\": 2.5\n}\n");
    }
}
