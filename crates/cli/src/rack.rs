//! `rackweave rack`: starts the roles of a rack as processes of this machine, watches and ends
//! them.

mod down;
mod live;
mod netns;
mod page;
mod process;
mod role;
mod status;
mod units;
mod up;

use crate::arguments::{RackArguments, RackVerb};
use crate::failure::{Failure, bad_input, failed_at};
use crate::load;
use plan::rack::{Rack, RackError};
use process::Started;
use runtime::lock::lock_file;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs the selected command.
pub fn rack(arguments: &RackArguments) -> Result<(), Failure> {
    match &arguments.verb {
        RackVerb::Up { file, only, wait, netns, delay } => {
            up::up(&Site::of(file)?, only, Duration::from_secs(*wait), *netns, *delay)
        }
        RackVerb::Status { file, listen: Some(listen), .. } => live::serve(&Site::of(file)?, *listen),
        RackVerb::Status { file, only, json, listen: None } => status::status(&Site::of(file)?, only, *json),
        RackVerb::Down { file, only } => down::down(&Site::of(file)?, only),
        RackVerb::Role { file, name, own_session } => role::role(&Site::of(file)?, name, *own_session),
        RackVerb::Units { file } => units::units(&Site::of(file)?),
    }
}

/// Kinds of roles. Each needs those before it, which are started first and ended last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The control plane.
    Control,
    /// The switch.
    Switch,
    /// A storage server.
    Storage,
    /// An NVMe/TCP target.
    Door,
    /// Memory and flash of a key-value store.
    Jbof,
    /// An NVMe/TCP target without volumes, such as that of a JBOF's flash.
    Target,
    /// A key-value store.
    Store,
}

impl Kind {
    /// Roles of a stage are started together, and ready before those of the next.
    fn stage(self) -> u8 {
        match self {
            Kind::Control | Kind::Switch => 0,
            Kind::Storage => 1,
            Kind::Door => 2,
            Kind::Jbof => 3,
            Kind::Target => 4,
            Kind::Store => 5,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::Control => "control",
            Kind::Switch => "switch",
            Kind::Storage => "storage",
            Kind::Door => "door",
            Kind::Jbof => "jbof",
            Kind::Target => "target",
            Kind::Store => "store",
        }
    }
}

/// A process of the rack, as files describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Role {
    name: String,
    kind: Kind,
    /// Where others reach it; `None` where that is in a file of its own.
    address: Option<String>,
    /// Where its metrics are.
    metrics: Option<String>,
    /// Its own file.
    config: Option<PathBuf>,
}

impl Role {
    fn new(name: &str, kind: Kind, address: impl ToString, metrics: Option<impl ToString>) -> Role {
        let metrics = metrics.map(|address| address.to_string());
        Role { name: name.into(), kind, address: Some(address.to_string()), metrics, config: None }
    }

    fn with_config(name: &str, kind: Kind, config: &Path) -> Role {
        Role { name: name.into(), kind, address: None, metrics: None, config: Some(config.into()) }
    }

    /// Adds the addresses of its own file.
    fn complete(&mut self) -> Result<(), Failure> {
        let Some(config) = &self.config else { return Ok(()) };
        let (name, text) = (config.display().to_string(), load::text_of(config)?);
        let (address, metrics) = match self.kind {
            Kind::Door | Kind::Target => {
                let plan = plan::target::parse(&name, &text).map_err(bad_input)?;
                (plan.ports[0].address.clone(), plan.metrics)
            }
            Kind::Jbof => {
                let plan = plan::jbof::parse(&name, &text).map_err(bad_input)?;
                (plan.listen.or(plan.socket).unwrap_or_default(), plan.metrics)
            }
            _ => {
                let plan = plan::kv::parse(&name, &text).map_err(bad_input)?;
                (plan.listen, plan.metrics)
            }
        };
        // A port that the system chooses is not known here.
        self.metrics = metrics.filter(|address| !address.ends_with(":0"));
        self.address = Some(address);
        Ok(())
    }
}

/// A rack and its place on this machine.
struct Site {
    /// Its file, absolute.
    file: PathBuf,
    rack: Rack,
    /// In the order of their start.
    roles: Vec<Role>,
}

/// Reads and checks the file of a rack.
pub fn read(file: &Path) -> Result<Rack, Failure> {
    Rack::read(file).map_err(|error| match error {
        RackError::Plan(errors) => errors.into(),
        other => bad_input(other),
    })
}

impl Site {
    fn of(file: &Path) -> Result<Site, Failure> {
        let rack = read(file)?;
        let file = std::path::absolute(file).map_err(failed_at(file))?;
        let roles = roles_of(&rack);
        Ok(Site { file, rack, roles })
    }

    /// The folder of the rack's file, in which every role runs.
    fn base(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.rack.folder.join(format!("{name}.log"))
    }

    fn pid_file(&self, name: &str) -> PathBuf {
        self.rack.folder.join(format!("{name}.pid"))
    }

    /// The process that a role was started as the last time.
    ///
    /// # Errors
    /// When a role of another rack runs by this name in this folder.
    fn started(&self, name: &str) -> Result<Option<Started>, Failure> {
        let path = self.pid_file(name);
        let found = Started::read(&path)?;
        match found.as_ref().filter(|found| found.rack != self.file && found.is_alive()) {
            Some(other) => Err(bad_input(format!(
                "{}: process {} is a role of {}; give each rack a `folder` of its own",
                path.display(),
                other.pid,
                other.rack.display()
            ))),
            None => Ok(found),
        }
    }

    /// The roles called `only`, or all.
    fn chosen(&self, only: &[String]) -> Result<Vec<Role>, Failure> {
        only.iter().try_for_each(|name| self.role(name).map(|_| ()))?;
        let is_chosen = |role: &&Role| only.is_empty() || only.contains(&role.name);
        Ok(self.roles.iter().filter(is_chosen).cloned().collect())
    }

    fn role(&self, name: &str) -> Result<&Role, Failure> {
        self.roles.iter().find(|role| role.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.roles.iter().map(|role| role.name.as_str()).collect();
            bad_input(format!("{}: there is no role `{name}`; allowed are {}", self.file.display(), names.join(", ")))
        })
    }

    /// Keeps other commands from starting and ending roles, until it is dropped.
    fn lock(&self) -> Result<File, Failure> {
        let path = self.rack.folder.join("rack.lock");
        lock_file(&path).map_err(failed_at(&path))?.ok_or_else(|| {
            let other = "another `rackweave rack up` or `rackweave rack down` works on this rack";
            Failure::Failed(format!("{}: {other}", path.display()))
        })
    }
}

/// What runs of a rack. A switch and its control plane are there for storage servers alone.
fn roles_of(rack: &Rack) -> Vec<Role> {
    let mut roles = Vec::new();
    let reached: Vec<String> = rack.places().into_iter().map(|place| place.reached).collect();
    if let ([.., control, switch], false) = (&reached[..], rack.storage.is_empty()) {
        roles.push(Role::new("control", Kind::Control, control, rack.control.metrics));
        roles.push(Role::new("switch", Kind::Switch, switch, rack.switch.metrics));
    }
    let storage = rack.storage.iter().zip(&reached);
    roles.extend(storage.map(|(one, address)| Role::new(&one.name, Kind::Storage, address, one.metrics)));
    roles.extend(rack.doors.iter().map(|one| Role::with_config(&one.name, Kind::Door, &one.config)));
    roles.extend(rack.jbofs.iter().map(|one| Role::with_config(&one.name, Kind::Jbof, &one.config)));
    roles.extend(rack.targets.iter().map(|one| Role::with_config(&one.name, Kind::Target, &one.config)));
    roles.extend(rack.stores.iter().map(|one| Role::with_config(&one.name, Kind::Store, &one.config)));
    roles
}

/// Groups roles by stage.
fn stages(roles: &[Role]) -> impl DoubleEndedIterator<Item = &[Role]> {
    roles.chunk_by(|one, other| one.kind.stage() == other.kind.stage()).collect::<Vec<_>>().into_iter()
}
