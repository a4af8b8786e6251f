//! The credit-based fabric, with the closed form of a lone message.

use super::lone::request_of_messages;
use crate::rigs::packet::{PacketRig, PacketRigConfig, Path, Unloaded, unloaded_by_simulation};
use base::{Bytes, NodeId, Span};
use hardware::RemoteAccess;
use transport::config::CreditBased;
use transport::credit_based as credits;
use transport::framing::Framing;

/// A rig of the credit-based fabric.
pub type CreditBasedRig = PacketRig<credits::Host, credits::Switch>;

/// Devices around an input-buffered switch. `rig.stack` should be
/// [`EthernetStack::CXL`](hardware::EthernetStack::CXL).
pub fn cxl(config: &CreditBased, rig: &PacketRigConfig) -> CreditBasedRig {
    let (network, copy) = (*rig, *config);
    let unloaded = if never_out_of_credits(config, rig) {
        request_of_messages(rig, move |at, bytes| at + credit_based_message(&copy, &network, bytes))
    } else {
        let pair = PacketRigConfig { nodes: 2, remote: RemoteAccess::default(), ..network };
        unloaded_by_simulation(move || credit_based_rig(&copy, &pair, Box::new(|_, _| Span::ZERO)))
    };
    credit_based_rig(config, rig, unloaded)
}

fn credit_based_rig(config: &CreditBased, rig: &PacketRigConfig, unloaded: Unloaded) -> CreditBasedRig {
    let hosts = (0..rig.nodes).map(|node| credits::host(config, NodeId(node))).collect();
    PacketRig::new(rig, Framing::Flit, hosts, credits::switch(config, rig.nodes), unloaded)
}

/// From the submission of a lone message to its delivery when no flit waits for a credit.
pub fn credit_based_message(config: &CreditBased, rig: &PacketRigConfig, bytes: Bytes) -> Span {
    let (path, train) = (Path::new(rig), credits::train(config, bytes));
    path.trip(train.first) + path.serialization(train.middle) * (train.packets - 1)
}

/// Whether both buffers on a flit's way cover the time until the credits of a batch are back, so
/// that one sender alone is limited by its link only.
pub fn never_out_of_credits(config: &CreditBased, rig: &PacketRigConfig) -> bool {
    let (path, stack) = (Path::new(rig), &rig.stack);
    let wire = config.flit_wire.count() as u32;
    let flit = path.serialization(wire);
    let back = path.serialization(credits::CREDIT_PACKET_WIRE) + path.neighbour();
    let to_switch = flit + stack.host_pass() + rig.propagation + stack.switch_receive();
    let to_device = flit + stack.switch_transmit() + rig.propagation + stack.host_pass();
    let covers = |buffer: u32, loop_span: Span| flit * u64::from(buffer - credits::return_from(buffer)) >= loop_span;
    covers(config.switch_buffer_flits, to_switch + back) && covers(config.device_buffer_flits, to_device + back)
}
