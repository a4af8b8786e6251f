//! The data path of a live rack's switch in the kernel.

use super::{Checks, Rack};
use crate::error::Problem;
use crate::file::words;
use crate::table::table;
use std::path::PathBuf;

/// Longest name of an interface (linux/if.h, `IFNAMSIZ` with its end).
const INTERFACE_MAX: usize = 15;

/// The data path of a switch in the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Xdp {
    /// The interface through which all nodes are reached.
    pub interface: String,
    /// The compiled program. [`Rack::read`] makes it absolute.
    pub object: PathBuf,
    /// Where it runs.
    pub mode: XdpModeName,
}

words! {
    /// Where an XDP program runs.
    XdpModeName {
        /// In the network stack: behind any driver.
        Generic,
        /// In the driver, where it can. Untested under traffic: there was no such driver.
        Native,
    }
}

table! {
    /// The data path of the switch in the kernel. It needs Linux 5.18 and root, or the capabilities
    /// CAP_BPF and CAP_NET_ADMIN.
    XdpFile => Xdp {
        /// The interface that has the address in `listen`. Packets for nodes that are not reached
        /// through it, without a router, go through the switch's process.
        interface: String [length from 1] where [needed] => String::new(),
        /// The compiled program, as `make xdp` leaves it in `target/xdp/switch.bpf.o`.
        object: String [length from 1] where [needed] => String::new(),
        /// Where it runs.
        mode: XdpModeName = XdpModeName::Generic,
    } as { interface, object: file, mode } from {
        let file = PathBuf::from(object);
    } to {
        let object = file.to_string_lossy().into_owned();
    }
}

impl Checks<'_> {
    /// Whether the kernel can forward packets of the rack, and nothing is missing then.
    pub(super) fn xdp(&mut self, rack: &Rack) {
        let Some(Xdp { interface, .. }) = &rack.switch.xdp else { return };
        let (is_name, allowed) = (interface.len() <= INTERFACE_MAX, format!("{INTERFACE_MAX} bytes at most"));
        self.resolver.expect("switch.xdp.interface", is_name, format!("`{interface}`"), &allowed);
        let (listen, ip) = (rack.switch.listen, rack.switch.listen.ip());
        let is_right = ip.is_ipv4() && !ip.is_unspecified() && !ip.is_loopback();
        self.resolver.expect("switch.listen", is_right, listen, "with `xdp`, an IPv4 address of its interface");
        let conflicts = [
            (rack.secret.is_some(), "`secret_file`: the kernel cannot open packets that are sealed with it"),
            (rack.journal.is_some(), "`journal`: it would lack all packets that the kernel forwards"),
        ];
        for (_, reason) in conflicts.into_iter().filter(|(is_given, _)| *is_given) {
            self.resolver.report("switch.xdp", Problem::Conflict(format!("it does not go with {reason}")));
        }
    }
}
