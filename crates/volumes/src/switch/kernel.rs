//! The switch's data path in the kernel: what the role tells it, and when.
//!
//! The program [`blox::Switch`] decides. What its tables say of reads is told before an answer that
//! came of the same packet is sent: a server that may collect knows that its reads go elsewhere.
//! Where nodes are, the kernel's own table of neighbours says; it is looked at again and again.

use crate::role::Carrier;
use base::NodeId;
use blox::{Packet, Redirects, Switch};
use express::{Counts, Express, ExpressError, Mode, Neighbour, Own, Station};
use nix::ifaddrs::getifaddrs;
use plan::rack::{Xdp, XdpModeName};
use procfs::FromRead;
use procfs::net::{ARPEntry, ARPFlags, ArpEntries};
use runtime::error::{RunError, StartError};
use runtime::metrics::{Number, counter};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// The kernel's table of neighbours in the network namespace of this thread.
const NEIGHBOURS: &str = "/proc/thread-self/net/arp";

pub(super) struct Kernel {
    pub(super) express: Express,
    interface: String,
    redirects: Redirects,
    /// What was told of each node.
    told: Vec<Option<Neighbour>>,
    pub(super) fault: Option<ExpressError>,
    /// Whether the last look at the neighbours failed.
    is_blind: bool,
}

impl Kernel {
    /// Loads the program and attaches it.
    ///
    /// # Errors
    /// When its object cannot be read, the interface lacks the switch's address, or the kernel
    /// refuses.
    pub fn start(xdp: &Xdp, own: &Told) -> Result<Kernel, StartError> {
        let Xdp { interface, object, mode } = xdp;
        let bytes = fs::read(object)
            .map_err(|error| StartError::file(object, format!("{error}; `make xdp` compiles the program")))?;
        let station = station_of(interface, *own.address.ip())?;
        let refused = |error| StartError::plan(format!("switch.xdp: {interface}: {error}"));
        let express = Express::load(&bytes, &own.with(station)).map_err(refused)?;
        let mut kernel = Kernel::new(express, interface, own.nodes);
        let mode = match mode {
            XdpModeName::Generic => Mode::Generic,
            XdpModeName::Native => Mode::Native,
        };
        kernel.express.attach(interface, mode).map_err(refused)?;
        Ok(kernel)
    }

    pub(super) fn new(express: Express, interface: &str, nodes: u32) -> Kernel {
        Kernel {
            express,
            interface: interface.into(),
            redirects: Redirects::default(),
            told: vec![None; nodes as usize],
            fault: None,
            is_blind: false,
        }
    }

    /// Tells what a packet, which `program` has processed, has changed.
    pub fn follow(&mut self, program: &mut Switch, packet: &Packet) {
        for (vssd, to) in self.redirects.after(program, packet) {
            let done = self.express.set_redirect(vssd, to);
            self.keep(done);
        }
    }

    /// Tells where nodes are now.
    pub fn look(&mut self, wire: &mut dyn Carrier) {
        let entries = ArpEntries::from_file(NEIGHBOURS);
        if let Err(error) = &entries
            && !self.is_blind
        {
            tracing::warn!(%error, "where nodes are cannot be read: what the kernel forwards goes where they were");
        }
        self.is_blind = entries.is_err();
        if let Ok(ArpEntries(entries)) = entries {
            let stations = stations(entries, &self.interface);
            for node in (0..self.told.len() as u32).map(NodeId) {
                self.tell(node, neighbour(wire.address_of(node), &stations));
            }
        }
    }

    pub(super) fn tell(&mut self, node: NodeId, place: Option<Neighbour>) {
        let told = &mut self.told[node.index()];
        if *told != place {
            *told = place;
            let done = self.express.set_node(node, place);
            self.keep(done);
        }
    }

    fn keep(&mut self, done: Result<(), ExpressError>) {
        if let Err(error) = done {
            self.fault.get_or_insert(error);
        }
    }

    /// Why the kernel does not know what it has to.
    pub fn fault(&mut self) -> Option<RunError> {
        self.fault.take().map(io::Error::other).map(RunError::in_("telling the kernel what to forward"))
    }

    pub fn numbers(&self) -> Vec<Number> {
        let Counts { forwarded, redirected, control, unsound, unknown, unsummed } =
            self.express.counts().unwrap_or_else(|error| {
                tracing::error!(%error, "the kernel's counters cannot be read");
                Counts::default()
            });
        vec![
            counter("xdp_forwarded", "Packets that the kernel forwarded.", forwarded),
            counter("xdp_redirected", "Those of them that were reads sent to another replica.", redirected),
            counter("xdp_control", "Packets that the kernel left to the switch: not of its data path.", control),
            counter("xdp_unsound", "Frames for the switch that are not exactly one packet of the rack.", unsound),
            counter("xdp_unknown", "Packets for nodes of which the kernel does not know where they are.", unknown),
            counter("xdp_unsummed", "Packets whose checksum was left to a card that they did not pass.", unsummed),
        ]
    }
}

/// What the role tells its program at the start.
pub(super) struct Told {
    pub tag: [u8; 8],
    pub address: SocketAddrV4,
    /// As [`blox::SwitchConfig::nodes`].
    pub inside: u32,
    /// All nodes, the control plane too.
    pub nodes: u32,
    /// vSSDs in the tables.
    pub vssds: u32,
}

impl Told {
    fn with(&self, station: Station) -> Own {
        let Told { tag, address, inside, vssds, .. } = *self;
        Own { tag, address, station, inside, redirects: vssds }
    }
}

/// The station of an interface that has an address.
fn station_of(interface: &str, address: Ipv4Addr) -> Result<Station, StartError> {
    let all = getifaddrs().map_err(|error| StartError::system("the interfaces")(error.into()))?;
    let (mut station, mut addresses, mut names) = (None, Vec::new(), Vec::new());
    for one in all {
        if one.interface_name != interface {
            names.push(one.interface_name);
            continue;
        }
        station = station.or(one.address.and_then(|address| address.as_link_addr()?.addr()));
        addresses.extend(one.address.and_then(|address| Some(address.as_sockaddr_in()?.ip())));
    }
    names.dedup();
    let wrong = |reason: String| StartError::plan(format!("switch.xdp.interface: {reason}"));
    match station {
        None => {
            Err(wrong(format!("there is no Ethernet interface `{interface}` here: there are {}", names.join(", "))))
        }
        Some(_) if !addresses.contains(&address) => {
            Err(wrong(format!("`{interface}` has the addresses {addresses:?}, and not {address} of `switch.listen`")))
        }
        Some(station) => Ok(station),
    }
}

/// The stations of neighbours behind an interface.
fn stations(entries: Vec<ARPEntry>, interface: &str) -> BTreeMap<Ipv4Addr, Station> {
    let known = entries.into_iter().filter(|entry| entry.device == interface && entry.flags.contains(ARPFlags::COM));
    known.filter_map(|entry| Some((entry.ip_address, entry.hw_address?))).collect()
}

fn neighbour(address: Option<SocketAddr>, stations: &BTreeMap<Ipv4Addr, Station>) -> Option<Neighbour> {
    let Some(SocketAddr::V4(address)) = address else { return None };
    Some(Neighbour { address, station: *stations.get(address.ip())? })
}
