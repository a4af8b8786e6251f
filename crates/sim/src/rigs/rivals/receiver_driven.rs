//! The idealised receiver-driven protocol, with the closed form of a lone message.

use super::lone::{behind, paced, request_of_messages};
use crate::rigs::packet::{PacketRig, PacketRigConfig, Path};
use base::{Bytes, NodeId, Span};
use transport::config::ReceiverDriven;
use transport::framing::Framing;
use transport::receiver_driven as receivers;

/// A rig of the idealised receiver-driven protocol.
pub type ReceiverDrivenRig = PacketRig<receivers::Host, receivers::Switch>;

/// Receiver-driven hosts around a switch with a class for credits.
pub fn receiver_driven(config: &ReceiverDriven, rig: &PacketRigConfig) -> ReceiverDrivenRig {
    let source_limit = receiver_driven_source_limit(config, rig);
    let host = |node| receivers::host(config, NodeId(node), rig.rate, source_limit);
    let (network, copy) = (*rig, *config);
    let message = move |at, bytes| at + receiver_driven_message(&copy, &network, bytes);
    let switch = receivers::switch(config, rig.nodes);
    let hosts = (0..rig.nodes).map(host).collect();
    PacketRig::new(rig, Framing::ReceiverDriven, hosts, switch, request_of_messages(rig, message))
}

/// The payload that a receiver requests from one source ahead. It covers the round trip of a credit
/// and its data, if each waits for a packet that is on the wire at either hop.
pub fn receiver_driven_source_limit(config: &ReceiverDriven, rig: &PacketRigConfig) -> Bytes {
    let (path, train) = (Path::new(rig), receivers::train(config, config.mtu));
    let packet = path.serialization(train.middle);
    let round_trip = path.trip(receivers::CREDIT_WIRE) + path.trip(train.middle) + packet * 4;
    config.mtu * round_trip.as_ps().div_ceil(packet.as_ps())
}

/// From the submission of a lone message to its delivery: a credit's trip, and a train of packets
/// that leave as their credits come. Credits are a data packet apart, and no more are out than
/// `outstanding` allows.
pub fn receiver_driven_message(config: &ReceiverDriven, rig: &PacketRigConfig, bytes: Bytes) -> Span {
    let (path, train) = (Path::new(rig), receivers::train(config, bytes));
    let to_first_data = path.trip(receivers::CREDIT_WIRE);
    if train.packets == 1 {
        return to_first_data + path.trip(train.first);
    }
    let mtu = config.mtu.count();
    let outstanding = config.outstanding.min(receiver_driven_source_limit(config, rig)).count();
    let window_with = |last: u64| outstanding.saturating_sub(last) / mtu + 1;
    let (packet, round_trip) = (path.serialization(train.middle), to_first_data + path.trip(train.middle));
    let start = |index: u64| paced(index, window_with(mtu), packet, round_trip);
    let last = train.packets - 1;
    // The last packet may be small enough to fit beside a full window.
    let freed_by = last.checked_sub(window_with(bytes.count() - last * mtu));
    let last_start = freed_by.map_or(Span::ZERO, |index| start(index) + round_trip).max(start(last - 1) + packet);
    to_first_data + behind(&path, (start(last - 1), train.middle), (last_start, train.last))
}
