//! pFabric.

use super::lone::{closed_form, nodes};
use crate::rigs::packet::{Pacing, PacketRig, PacketRigConfig};
use transport::config::{Pfabric, RateControl};
use transport::framing::Framing;
use transport::pfabric;

/// pFabric hosts around a priority-dropping switch.
pub fn pfabric(config: &Pfabric, rig: &PacketRigConfig) -> PacketRig<pfabric::Host, pfabric::Switch> {
    let hosts = nodes(rig).map(|node| pfabric::host(config, node)).collect();
    let design = *config;
    let pacing = match config.control {
        RateControl::Minimal { .. } => Pacing::Window(u64::from(config.window)),
        RateControl::Dctcp(_) => Pacing::SlowStart(u64::from(config.window)),
    };
    let unloaded = closed_form(rig, pacing, move |_, bytes| pfabric::train(&design, bytes));
    PacketRig::new(rig, Framing::Pfabric, hosts, pfabric::switch(config, rig.nodes), unloaded)
}
