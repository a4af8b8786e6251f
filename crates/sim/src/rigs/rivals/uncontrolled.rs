//! Stacks without congestion control.

use super::lone::{closed_form, nodes};
use crate::rigs::packet::{Pacing, PacketRig, PacketRigConfig};
use transport::framing::Framing;
use transport::uncontrolled::{self, Uncontrolled};

/// A rig of a stack without congestion control.
pub type UncontrolledRig = PacketRig<uncontrolled::Host, uncontrolled::Switch>;

/// Ethernet frames with nothing above the MAC.
pub fn raw_ethernet(config: &Uncontrolled, rig: &PacketRigConfig) -> UncontrolledRig {
    uncontrolled(config, Framing::Raw, rig)
}

/// RoCEv2 in hardware.
pub fn rocev2(config: &Uncontrolled, rig: &PacketRigConfig) -> UncontrolledRig {
    uncontrolled(config, Framing::Roce, rig)
}

/// TCP in hardware.
pub fn hardware_tcp(config: &Uncontrolled, rig: &PacketRigConfig) -> UncontrolledRig {
    uncontrolled(config, Framing::Tcp, rig)
}

/// Hosts without congestion control, whose frames are those of `framing`, around a switch without a
/// limit.
pub fn uncontrolled(config: &Uncontrolled, framing: Framing, rig: &PacketRigConfig) -> UncontrolledRig {
    let hosts = nodes(rig).map(|node| uncontrolled::host(config, framing, node)).collect();
    let design = *config;
    let unloaded = closed_form(rig, Pacing::Line, move |_, bytes| uncontrolled::train(&design, framing, bytes));
    PacketRig::new(rig, framing, hosts, uncontrolled::switch(rig.nodes), unloaded)
}
