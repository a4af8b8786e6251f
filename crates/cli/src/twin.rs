//! `rackweave twin`: a live rack's journals again, each role alone, and all in the simulator.

mod compare;
mod doors;
mod page;
mod rows;
pub mod run;
mod stores;
mod text;

use crate::arguments::TwinArguments;
use crate::failure::{Failure, bad_input, failed_at, print};
use crate::output::{json, write_json};
use crate::rack::read;
use base::Seed;
use campaign::terminal::say;
use compare::{Comparison, Side};
use plan::rack::{Rack, Volume};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use volumes::twin::{Fit, Journals, Load, Model, Replayed, Told, TwinError, simulate};

/// What the command finds out.
#[derive(Serialize)]
struct Report {
    /// Each journal, replayed: those of volumes, then those of stores.
    roles: Vec<Replayed>,
    /// What is compared: live and simulated, or the rack and another one, both simulated.
    sides: [&'static str; 2],
    /// Of volumes; none where there are no journals of them, or a simulation is impossible.
    comparison: Option<Comparison>,
    /// Why it is.
    no_simulation: Option<String>,
    /// Each JBOF with its doors, live and simulated.
    stores: Vec<doors::Site>,
    /// How far off times of one machine may be to those of another, in nanoseconds; 0 on one
    /// machine, and where it is not known.
    clocks_within_ns: u64,
    /// What was between the roles of volumes; it has a file of its own.
    #[serde(skip)]
    model: Model,
}

/// Replays and simulates a rack, and says how far they are from what it did.
pub fn twin(arguments: &TwinArguments) -> Result<(), Failure> {
    let rack = read(&arguments.file)?;
    let folder = folder_of(&rack, arguments)?;
    let mut report = volumes_of(&rack, arguments, &folder)?;
    let (calibration, seed) = (arguments.calibration.as_deref(), Seed(arguments.seed));
    let stores = doors::twin(&rack, &arguments.file, &folder, (calibration, seed))?;
    report.roles.extend(stores.roles);
    report.stores = stores.sites;
    report.clocks_within_ns = report.clocks_within_ns.max(stores.clocks_within_ns);
    if report.roles.is_empty() {
        return Err(wrong(TwinError::Empty { folder }));
    }
    if let Some(out) = &arguments.out {
        fs::create_dir_all(out).map_err(failed_at(out))?;
        write_json(&out.join("model.json"), &report.model)?;
        if !report.stores.is_empty() {
            let models: BTreeMap<_, _> = report.stores.iter().map(|site| (&site.name, &site.model)).collect();
            write_json(&out.join("stores.json"), &models)?;
        }
        write_json(&out.join("twin.json"), &report)?;
        page::write_page(out, &arguments.file, &report)?;
    }
    print(&if arguments.json { json(&report) } else { text::text(&report) })?;
    verdict(&report)
}

/// The twin of volumes, where there are journals of them.
fn volumes_of(rack: &Rack, arguments: &TwinArguments, folder: &Path) -> Result<Report, Failure> {
    let other = arguments.with.as_deref().map(|file| changed(rack, file)).transpose()?;
    let sides = if other.is_some() { ["twin", "changed"] } else { ["live", "twin"] };
    let (roles, stores, model) = (Vec::new(), Vec::new(), Model::default());
    let mut report = Report { roles, sides, comparison: None, no_simulation: None, stores, clocks_within_ns: 0, model };
    let journals = match Journals::open(rack, folder) {
        Err(TwinError::Empty { .. }) => return Ok(report),
        journals => journals.map_err(wrong)?,
    };
    let told = journals.replay(rack).map_err(wrong)?;
    report.model = model_of(rack, arguments, &told)?;
    match compared(rack, other.as_ref(), &journals, &told, (&report.model, Seed(arguments.seed))) {
        Ok(comparison) => report.comparison = Some(comparison),
        Err(TwinError::Lacking(why)) => report.no_simulation = Some(why),
        Err(error) => return Err(wrong(error)),
    }
    report.roles = told.replayed;
    report.clocks_within_ns = doors::within_ns(journals.within());
    Ok(report)
}

/// The rack live and simulated, or that simulation and the one of `other`.
fn compared(
    rack: &Rack,
    other: Option<&Rack>,
    journals: &Journals,
    told: &Told,
    (model, seed): (&Model, Seed),
) -> Result<Comparison, TwinError> {
    let (load, lives) = (Load::of(&told.requests), journals.lives(rack, told)?);
    let run = |rack: &Rack| simulate(rack, &lives, &load, model, seed);
    let twin = run(rack)?;
    Ok(match other {
        None => Comparison::of(&Side::live(told), &Side::simulated(&twin)),
        Some(other) => Comparison::of(&Side::simulated(&twin), &Side::simulated(&run(other)?)),
    })
}

/// Another rack with the same roles, and volumes that are no smaller.
fn changed(rack: &Rack, file: &Path) -> Result<Rack, Failure> {
    let other = read(file)?;
    let roles = |rack: &Rack| (rack.storage.len(), rack.doors.len());
    let holds = |(one, other): (&Volume, &Volume)| other.size >= one.size;
    let same = roles(rack) == roles(&other) && rack.volumes.len() == other.volumes.len();
    if same && rack.volumes.iter().zip(&other.volumes).all(holds) {
        return Ok(other);
    }
    let why = "it needs as many storage servers, doors and volumes, and no volume may be smaller";
    Err(bad_input(format!("{}: {why}", file.display())))
}

fn folder_of(rack: &Rack, arguments: &TwinArguments) -> Result<PathBuf, Failure> {
    arguments.journal.clone().or_else(|| rack.journal.clone()).ok_or_else(|| {
        let file = arguments.file.display();
        bad_input(format!(
            "{file}: its roles write no journals; `journal = \"FOLDER\"` before its tables has them do so"
        ))
    })
}

/// Of another run, of a file, or of this run itself.
fn model_of(rack: &Rack, arguments: &TwinArguments, told: &Told) -> Result<Model, Failure> {
    if let Some(file) = &arguments.model {
        return read_model(file);
    }
    let fit: Fit = match &arguments.calibration {
        None => told.fit.clone(),
        Some(folder) => Journals::open(rack, folder).and_then(|other| other.replay(rack)).map_err(wrong)?.fit,
    };
    Ok(fit.model())
}

/// The model in a file.
fn read_model(file: &Path) -> Result<Model, Failure> {
    let wrong = |error: &dyn std::fmt::Display| bad_input(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let model: Model = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    model.is_sound().then_some(model).ok_or_else(|| wrong(&"it has times above an hour"))
}

/// A role that decides differently is an error: its program, or what it noted, has a flaw.
fn verdict(report: &Report) -> Result<(), Failure> {
    let differing: Vec<&str> = report.roles.iter().filter(|role| role.differs()).map(|role| &*role.name).collect();
    let cut: Vec<&str> = report.roles.iter().filter(|role| !role.is_whole).map(|role| &*role.name).collect();
    if !cut.is_empty() {
        let cut = cut.join(", ");
        say(format_args!("warning: no orderly end in journals of {cut}: their roles run still, or were killed"));
    }
    if report.clocks_within_ns > 0 {
        let within = text::time(report.clocks_within_ns);
        say(format_args!("note: the journals are of several machines, whose clocks are known within {within}"));
    }
    let stores = report.stores.iter().filter_map(|site| site.no_simulation.as_ref());
    for why in report.no_simulation.iter().chain(stores) {
        say(format_args!("warning: not simulated: {why}"));
    }
    for site in report.stores.iter().filter(|site| site.walks > 0) {
        say(format_args!("warning: not simulated: {} steps of SCAN at the doors of `{}`", site.walks, site.name));
    }
    match differing.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!("decisions differ in the replay of {}", differing.join(", ")))),
    }
}

fn wrong(error: TwinError) -> Failure {
    bad_input(error.to_string())
}
