//! DCTCP.

use super::lone::{closed_form, nodes};
use crate::rigs::packet::{Pacing, PacketRig, PacketRigConfig};
use transport::config::Dctcp;
use transport::dctcp;
use transport::framing::Framing;

/// DCTCP hosts around an ECN switch.
pub fn dctcp(config: &Dctcp, rig: &PacketRigConfig) -> PacketRig<dctcp::Host, dctcp::Switch> {
    let hosts = nodes(rig).map(|node| dctcp::host(config, node)).collect();
    let design = *config;
    let pacing = Pacing::SlowStart(u64::from(config.initial_window));
    let unloaded = closed_form(rig, pacing, move |_, bytes| dctcp::train(&design, bytes));
    PacketRig::new(rig, Framing::Tcp, hosts, dctcp::switch(config, rig.nodes), unloaded)
}
