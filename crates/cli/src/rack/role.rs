//! `rackweave rack role`: one role of a rack, in this process.

use super::{Kind, Site};
use crate::failure::{Failure, failed_at, print};
use crate::target::{log_as, refused};
use plan::rack::Rack;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use volumes::Start;

/// Runs the role until a signal ends it. It runs in the folder of the rack's file, at which
/// relative paths in files of doors, JBOFs, targets and stores therefore begin.
pub fn role(site: &Site, name: &str, own_session: bool) -> Result<(), Failure> {
    let role = site.role(name)?;
    if own_session {
        let wrong = |error| Failure::Failed(format!("a session of its own: {error}"));
        rustix::process::setsid().map_err(wrong)?;
    }
    std::env::set_current_dir(site.base()).map_err(failed_at(site.base()))?;
    match (&role.config, role.kind) {
        (Some(config), Kind::Door | Kind::Target) => Err(becomes("target", config, None)),
        (Some(config), Kind::Jbof) => Err(becomes("jbof", config, site.rack.journal.as_deref().zip(Some(name)))),
        (Some(config), _) => Err(becomes("kv", config, site.rack.journal.as_deref().zip(Some(name)))),
        (None, _) => {
            log_as(site.rack.log, site.rack.log_format);
            run_role(&site.rack, role.kind, name)
        }
    }
}

/// Replaces this process by a command of the same program, with the folder of its journals and its
/// name in them. Returns why it could not.
fn becomes(command: &str, config: &Path, journal: Option<(&Path, &str)>) -> Failure {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Failure::Failed(format!("the program itself: {error}")),
    };
    let mut becoming = Command::new(&program);
    becoming.arg(command).arg("--config").arg(config);
    if let Some((folder, role)) = journal {
        becoming.arg("--journal").arg(folder).args(["--role", role]);
    }
    let error = becoming.exec();
    failed_at(&program)(error)
}

/// Runs the switch, the control plane or a storage server until a signal ends it. Once it receives
/// packets it prints a line that begins with `ready`.
fn run_role(rack: &Rack, kind: Kind, name: &str) -> Result<(), Failure> {
    std::fs::create_dir_all(&rack.folder).map_err(failed_at(&rack.folder))?;
    let running = match kind {
        Kind::Switch => volumes::switch::start(rack, Start::Process),
        Kind::Control => volumes::control::start(rack, Start::Process),
        _ => {
            let place = rack.storage.iter().position(|server| server.name == name);
            volumes::storage::start(rack, place.expect("a role of the rack has a name of it"), Start::Process)
        }
    };
    let running = running.map_err(refused)?;
    print(&format!("ready: {name} receives at {}\n", running.address()))?;
    running.run().map_err(|error| Failure::Failed(error.to_string()))
}
