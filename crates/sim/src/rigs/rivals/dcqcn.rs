//! RoCEv2 with DCQCN.

use super::lone::{closed_form, nodes};
use crate::rigs::packet::{Pacing, PacketRig, PacketRigConfig, Path};
use base::Bytes;
use transport::config::Dcqcn;
use transport::dcqcn;
use transport::framing::{Framing, pause_wire, roce_wire};

/// RoCEv2 NICs with DCQCN around a switch with priority flow control. Its random marks follow
/// from the seed of `rig`.
pub fn dcqcn(config: &Dcqcn, rig: &PacketRigConfig) -> PacketRig<dcqcn::Host, dcqcn::Switch> {
    let hosts = nodes(rig).map(|node| dcqcn::host(config, node, rig.rate)).collect();
    let switch = dcqcn::switch(config, rig.nodes, headroom(config, rig), rig.seed.stream("switch/marks"));
    let design = *config;
    let unloaded = closed_form(rig, Pacing::Line, move |part, bytes| dcqcn::train(&design, part, bytes));
    PacketRig::new(rig, Framing::Roce, hosts, switch, unloaded)
}

/// What an ingress port may still receive after it crossed the pause threshold: all that the host
/// sends until the pause reaches its program, and the packet that crossed it.
fn headroom(config: &Dcqcn, rig: &PacketRigConfig) -> Bytes {
    let longest = roce_wire(config.mtu.count() as u32, true);
    let in_loop = rig.rate.bytes_in(Path::new(rig).pause_loop(pause_wire(), longest));
    in_loop + Bytes::new(2 * u64::from(longest))
}
