//! `rackweave rack role`: one role of a rack, in this process.

use super::{Kind, Site};
use crate::failure::{Failure, failed_at};
use crate::target::log_as;
use plan::rack::Rack;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Runs the role until a signal ends it. It runs in the folder of the rack's file, at which
/// relative paths in files of doors and stores therefore begin.
pub fn role(site: &Site, name: &str, own_session: bool) -> Result<(), Failure> {
    let role = site.role(name)?;
    if own_session {
        let wrong = |error| Failure::Failed(format!("a session of its own: {error}"));
        rustix::process::setsid().map_err(wrong)?;
    }
    std::env::set_current_dir(site.base()).map_err(failed_at(site.base()))?;
    match (&role.config, role.kind) {
        (Some(config), Kind::Door) => Err(becomes("target", config)),
        (Some(config), _) => Err(becomes("kv", config)),
        (None, _) => {
            log_as(site.rack.log, site.rack.log_format);
            run_role(&site.rack, name)
        }
    }
}

/// Replaces this process by a command of the same program. Returns why it could not.
fn becomes(command: &str, config: &Path) -> Failure {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Failure::Failed(format!("the program itself: {error}")),
    };
    let error = Command::new(&program).arg(command).arg("--config").arg(config).exec();
    failed_at(&program)(error)
}

/// Runs the switch, the control plane or a storage server until a signal ends it. Once it receives
/// packets it prints a line that begins with `ready`.
fn run_role(_rack: &Rack, name: &str) -> Result<(), Failure> {
    Err(Failure::Failed(format!("`{name}`: the switch, the control plane and storage servers are not built in")))
}
