//! `rackweave rack up --netns`: a network namespace of its own for each role, joined by a bridge.
//!
//! Packets between roles pass pairs of virtual Ethernet then, as between machines. What was made is
//! noted in `network.json`, so that later commands use and remove it. All is done by `ip` and `tc`
//! of iproute2, and by `ethtool` where the switch forwards in the kernel.

use super::{Kind, Role, Site};
use crate::failure::{Failure, bad_input, failed_at};
use base::{Seed, Span};
use ipnet::IpNet;
use plan::rack::Rack;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Room for a page with its headers and its seal.
const MTU: &str = "9000";
/// The interface of a role in its namespace.
const INSIDE: &str = "eth0";
/// Packets that wait for their delay, in each direction.
const DELAYED_MAX: &str = "100000";

/// The network of a rack's namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// This machine's address in it, and its prefix.
    own: IpNet,
    /// How long each packet of a role takes to leave.
    delay: Span,
    bridge: String,
}

impl Network {
    /// The network that an earlier command has made.
    pub fn read(site: &Site) -> Result<Option<Network>, Failure> {
        let path = file_of(site);
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed_at(&path)(error)),
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(io::Error::other).map_err(failed_at(&path)),
        }
    }

    /// The network of these roles: the one that is there, or a new one if `own` asks for it.
    ///
    /// # Errors
    /// When the one that is there is another, or a role has an address outside of it.
    pub fn of(
        site: &Site,
        own: Option<IpNet>,
        delay: Option<Span>,
        roles: &[Role],
    ) -> Result<Option<Network>, Failure> {
        let found = Network::read(site)?;
        let Some(own) = own else {
            // The file outlives a restart of the machine, and the bridge does not.
            found.as_ref().map(Network::make).transpose()?;
            return Ok(found);
        };
        let delay = delay.unwrap_or_default();
        let network = Network { own, delay, bridge: format!("rw{}", digits_of(site)) };
        if let Some(found) = found.filter(|found| *found != network) {
            let Network { own, delay, .. } = found;
            let reason = format!("this rack has the network {own} with a delay of {delay}");
            return Err(bad_input(format!("{}: {reason}; `rackweave rack down` removes it", file_of(site).display())));
        }
        roles.iter().try_for_each(|role| network.addresses(site, role).map(|_| ()))?;
        let path = file_of(site);
        // Before anything is made: what is not noted is never removed.
        let text = serde_json::to_string(&network).expect("addresses and times make a text");
        fs::write(&path, text).map_err(failed_at(&path))?;
        let made = network.make().inspect_err(|_| drop(remove(site)));
        made.map(|()| Some(network))
    }

    fn make(&self) -> Result<(), Failure> {
        if Path::new("/sys/class/net").join(&self.bridge).exists() {
            return Ok(());
        }
        ip(&["link", "add", &self.bridge, "mtu", MTU, "type", "bridge"])?;
        ip(&["link", "set", &self.bridge, "up"])?;
        address(&["addr", "add", &self.own.to_string(), "dev", &self.bridge], self.own.addr())
    }

    /// The addresses that a role needs.
    fn addresses(&self, site: &Site, role: &Role) -> Result<Vec<IpAddr>, Failure> {
        let Rack { doors, storage, switch, control, .. } = &site.rack;
        let door = doors.iter().find(|door| door.name == role.name).map(|door| door.listen);
        let server = storage.iter().find(|server| server.name == role.name).map(|server| server.listen);
        let listen = match role.kind {
            Kind::Switch => Some(switch.listen),
            Kind::Control => Some(control.listen),
            _ => door.or(server),
        };
        let bound = listen.filter(|listen| !listen.ip().is_unspecified()).map(|listen| listen.to_string());
        let mut all = Vec::new();
        for text in [&role.address, &role.metrics, &bound].into_iter().flatten() {
            let ip = text.parse::<SocketAddr>().ok().map(|address| address.ip());
            match ip.filter(|ip| self.own.contains(ip) && *ip != self.own.addr()) {
                Some(ip) if all.contains(&ip) => {}
                Some(ip) => all.push(ip),
                None => {
                    let (own, network, name) = (self.own.addr(), self.own.trunc(), &role.name);
                    let allowed = format!("addresses in {network} other than {own}");
                    return Err(bad_input(format!(
                        "{name}: {text} is not in the network of `--netns`; allowed are {allowed}"
                    )));
                }
            }
        }
        Ok(all)
    }

    /// Makes the namespace of a role unless it is there.
    pub fn join(&self, site: &Site, role: &Role) -> Result<(), Failure> {
        let (space, outside) = (space_of(site, &role.name), outside_of(site, &role.name));
        let addresses = self.addresses(site, role)?;
        if Path::new("/run/netns").join(&space).exists() {
            if self.is_whole(&space, &addresses) {
                return complete_sums(site, &space);
            }
            // A command was ended while it made it, or the file gives other addresses now.
            ip(&["netns", "delete", &space])?;
        }
        // One whose namespace was removed by somebody else takes its time to go.
        if Path::new("/sys/class/net").join(&outside).exists() {
            ip(&["link", "delete", &outside])?;
        }
        ip(&["netns", "add", &space])?;
        let joined = self.connect(&space, &outside, &addresses).and_then(|()| complete_sums(site, &space));
        joined.inspect_err(|_| drop(ip(&["netns", "delete", &space])))
    }

    /// Whether a namespace has an interface that is up with these addresses.
    fn is_whole(&self, space: &str, addresses: &[IpAddr]) -> bool {
        let words = ["-netns", space, "-oneline", "addr", "show", "dev", INSIDE, "up"];
        let said = Command::new("ip").args(words).output().map(|said| said.stdout).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let has = |one: &IpAddr| said.contains(&format!(" {one}/{} ", self.own.prefix_len()));
        addresses.iter().all(has)
    }

    fn connect(&self, space: &str, outside: &str, addresses: &[IpAddr]) -> Result<(), Failure> {
        let pair = ["type", "veth", "peer", "name", INSIDE, "mtu", MTU, "netns", space];
        ip(&[&["link", "add", outside, "mtu", MTU][..], &pair].concat())?;
        ip(&["link", "set", outside, "master", &self.bridge, "up"])?;
        for one in addresses {
            let whole = format!("{one}/{}", self.own.prefix_len());
            address(&["-netns", space, "addr", "add", &whole, "dev", INSIDE], *one)?;
        }
        ip(&["-netns", space, "link", "set", "lo", "up"])?;
        ip(&["-netns", space, "link", "set", INSIDE, "up"])?;
        if self.delay > Span::ZERO {
            // tc knows no unit below this one.
            let delay = format!("{}us", self.delay.as_ns_f64() / 1e3);
            let queue = ["root", "netem", "delay", &delay, "limit", DELAYED_MAX];
            run("tc", &[&["-netns", space, "qdisc", "replace", "dev", INSIDE][..], &queue].concat())?;
        }
        Ok(())
    }
}

/// Lets a role compute checksums by itself, where the switch forwards in the kernel. On virtual
/// Ethernet nobody computes what is left to a card, and the kernel would leave all to the switch.
fn complete_sums(site: &Site, space: &str) -> Result<(), Failure> {
    match site.rack.switch.xdp {
        Some(_) => run("ip", &["netns", "exec", space, "ethtool", "-K", INSIDE, "tx", "off"]),
        None => Ok(()),
    }
}

/// A program in the namespace of a role. It keeps the number of the process.
pub fn command(site: &Site, name: &str, program: &Path) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &space_of(site, name)]).arg(program);
    command
}

/// Removes all namespaces of a rack whose roles have ended, and its bridge.
pub fn remove(site: &Site) -> Result<(), Failure> {
    let Some(network) = Network::read(site)? else { return Ok(()) };
    let tail = format!("-{}", digits_of(site));
    for space in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let space = space.file_name();
        let is_ours = |name: &&str| name.starts_with("rackweave-") && name.ends_with(&tail);
        if let Some(name) = space.to_str().filter(is_ours) {
            ip(&["netns", "delete", name])?;
        }
    }
    if Path::new("/sys/class/net").join(&network.bridge).exists() {
        ip(&["link", "delete", &network.bridge])?;
    }
    let path = file_of(site);
    fs::remove_file(&path).map_err(failed_at(&path))
}

fn file_of(site: &Site) -> PathBuf {
    site.rack.folder.join("network.json")
}

/// The namespace of a role; racks do not share any.
fn space_of(site: &Site, role: &str) -> String {
    format!("rackweave-{role}-{}", digits_of(site))
}

/// The end of a role's pair outside of its namespace.
fn outside_of(site: &Site, role: &str) -> String {
    format!("rw{}", digits(&[&digits_of(site), role]))
}

/// Digits of a rack, however its file is called.
fn digits_of(site: &Site) -> String {
    let file = fs::canonicalize(&site.file).unwrap_or_else(|_| site.file.clone());
    digits(&[&file.display().to_string()])
}

/// Twelve digits for texts: with two letters they fit into the name of an interface.
fn digits(texts: &[&str]) -> String {
    let hash = texts.iter().fold(Seed(0), |seed, text| seed.child(text)).0;
    format!("{:012x}", hash >> 16)
}

/// Adds an address. One of IPv6 is not searched for elsewhere, which would take a second.
fn address(words: &[&str], ip_address: IpAddr) -> Result<(), Failure> {
    let more: &[&str] = if ip_address.is_ipv6() { &["nodad"] } else { &[] };
    ip(&[words, more].concat())
}

fn ip(words: &[&str]) -> Result<(), Failure> {
    run("ip", words)
}

fn run(program: &str, words: &[&str]) -> Result<(), Failure> {
    let wrong = |reason: String| {
        let needs = "`--netns` needs root and iproute2, and ethtool with `switch.xdp`";
        Failure::Failed(format!("{program} {}: {}; {needs}", words.join(" "), reason.trim()))
    };
    match Command::new(program).args(words).output() {
        Err(error) => Err(wrong(error.to_string())),
        Ok(said) if said.status.success() => Ok(()),
        Ok(said) => Err(wrong(String::from_utf8_lossy(&said.stderr).into_owned())),
    }
}
