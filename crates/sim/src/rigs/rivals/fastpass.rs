//! Fastpass, with the closed form of a lone message.

use super::lone::{behind, request_of_messages};
use crate::rigs::packet::{PacketRig, PacketRigConfig, Path};
use base::{Bytes, Span, Time};
use transport::config::Fastpass;
use transport::fastpass as slots;
use transport::framing::{Framing, fastpass_demand_wire};

/// A rig of Fastpass. Its arbiter is the host and port behind the last node's.
pub type FastpassRig = PacketRig<slots::Host, slots::Switch>;

/// Endpoints and an arbiter of its own link around a switch with a class for control. The unloaded
/// time is that of a request at the start of a slot.
pub fn fastpass(config: &Fastpass, rig: &PacketRigConfig) -> FastpassRig {
    let (network, copy) = (*rig, *config);
    let message = move |at, bytes| fastpass_message(&copy, &network, at, bytes);
    let hosts = slots::hosts(config, rig.nodes, rig.rate, fastpass_lead(config, rig));
    let switch = slots::switch(rig.nodes + 1);
    PacketRig::new(rig, Framing::Fastpass, hosts, switch, request_of_messages(rig, message))
}

/// From the moment the arbiter sends an allocation until the endpoint knows it, behind one data
/// frame at most.
pub fn fastpass_lead(config: &Fastpass, rig: &PacketRigConfig) -> Span {
    let path = Path::new(rig);
    let data = slots::Slots::new(config, rig.rate).wire;
    path.trip(slots::longest_allocation_wire(config)) + path.serialization(data)
}

/// Returns the delivery time of a lone message submitted at `at`. That is a demand's trip to the
/// arbiter, the first slot that the answer can reach, a slot for each further packet, and the last
/// packet's trip.
pub fn fastpass_message(config: &Fastpass, rig: &PacketRigConfig, at: Time, bytes: Bytes) -> Time {
    let (path, train) = (Path::new(rig), slots::train(config, bytes));
    let grid = slots::Slots::new(config, rig.rate);
    let asked = at + path.trip(fastpass_demand_wire(1));
    let first = grid.at(asked + fastpass_lead(config, rig)) + 1;
    match train.packets {
        1 => grid.start(first) + path.trip(train.first),
        packets => grid.start(first + packets - 2) + behind(&path, (Span::ZERO, train.middle), (grid.span, train.last)),
    }
}
