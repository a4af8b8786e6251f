//! `rackweave rack units`: systemd units for the roles of a rack.

use super::{Kind, Role, Site};
use crate::failure::{Failure, print};
use std::path::Path;

/// Where the program is installed.
const PROGRAM: &str = "/usr/local/bin/rackweave";
/// Where systemd makes folders for services (`StateDirectory=`).
const STATE: &str = "/var/lib";

/// What no role needs, as in examples/systemd, and where a unit is installed.
const REST: &str = "ConfigurationDirectory=rackweave
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
";

/// Prints a unit for each role.
pub fn units(site: &Site) -> Result<(), Failure> {
    let units: Vec<String> = site.roles.iter().map(|role| unit(site, role)).collect();
    print(&units.join("\n"))
}

fn unit(site: &Site, role: &Role) -> String {
    let name = &role.name;
    let before: String = site
        .roles
        .iter()
        .filter(|other| other.kind.stage() < role.kind.stage())
        .map(|other| format!(" rackweave-{}.service", other.name))
        .collect();
    let reload = if matches!(role.kind, Kind::Door | Kind::Target | Kind::Store) {
        "ExecReload=/bin/kill -HUP $MAINPID\n"
    } else {
        ""
    };
    let file = quoted(&site.file);
    let owner = owner(&site.rack.folder);
    format!(
        "# /etc/systemd/system/rackweave-{name}.service
[Unit]
Description=Rackweave {kind} {name}
Documentation=https://github.com/rackweave/rackweave
After=network-online.target{before}
Wants=network-online.target

[Service]
ExecStart={PROGRAM} rack role {file} {name}
{reload}Restart=on-failure
RestartSec=1
TimeoutStopSec=60

# All roles are one user, who needs no rights but those on their files.
{owner}{REST}",
        kind = role.kind.word(),
    )
}

/// The user of a unit, and the right to write the folder.
fn owner(folder: &Path) -> String {
    match folder.strip_prefix(STATE) {
        Ok(rest) if !rest.as_os_str().is_empty() => {
            format!("DynamicUser=yes\nUser=rackweave\nStateDirectory={}\n", quoted(rest))
        }
        _ => format!(
            "# Make the user (useradd --system rackweave) and give it this folder. One in {STATE} needs neither.\n\
             User=rackweave\nReadWritePaths={}\n",
            quoted(folder)
        ),
    }
}

/// A path as one word of a unit (systemd.syntax(7), systemd.unit(5)).
fn quoted(path: &Path) -> String {
    let text = path.display().to_string().replace('%', "%%").replace('\\', "\\\\").replace('"', "\\\"");
    let is_plain = text.chars().all(|letter| letter.is_alphanumeric() || "/._-+%".contains(letter));
    if is_plain { text } else { format!("\"{}\"", text.replace('$', "$$")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word_of_a_unit() {
        assert_eq!(quoted(Path::new("/etc/rack-1/a.toml")), "/etc/rack-1/a.toml");
        assert_eq!(quoted(Path::new("/a b/50%/$x\"")), "\"/a b/50%%/$$x\\\"\"");
    }

    #[test]
    fn a_folder_of_services_needs_no_user_to_be_made() {
        let of_services = owner(Path::new("/var/lib/rackweave/one"));
        assert!(of_services.contains("StateDirectory=rackweave/one\n") && of_services.contains("DynamicUser=yes"));
        let other = owner(Path::new("/srv/rack"));
        assert!(other.contains("ReadWritePaths=/srv/rack\n") && !other.contains("DynamicUser"));
    }
}
