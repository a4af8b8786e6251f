//! Rivals that ask before they send: receiver-driven, credit-based and Fastpass, each with the closed form of a lone
//! request.

use super::packet::{PacketRig, PacketRigConfig, Path, Unloaded, unloaded_by_simulation};
use base::{Bytes, NodeId, Operation, Span, Time};
use hardware::Dram;
use transport::config::{CreditBased, Fastpass, ReceiverDriven};
use transport::cost::MODIFY_REQUEST;
use transport::framing::{Framing, fastpass_demand_wire};
use transport::{credit_based as credits, fastpass as slots, receiver_driven as receivers};

/// A rig of the idealised receiver-driven protocol.
pub type ReceiverDrivenRig = PacketRig<receivers::Host, receivers::Switch>;
/// A rig of the credit-based fabric.
pub type CreditBasedRig = PacketRig<credits::Host, credits::Switch>;
/// A rig of Fastpass. Its arbiter is the host and port behind the last node's.
pub type FastpassRig = PacketRig<slots::Host, slots::Switch>;

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

/// Devices around an input-buffered switch. `rig.stack` should be [`EthernetStack::CXL`](hardware::EthernetStack::CXL).
pub fn credit_based(config: &CreditBased, rig: &PacketRigConfig) -> CreditBasedRig {
    let (network, copy) = (*rig, *config);
    let unloaded = if never_out_of_credits(config, rig) {
        request_of_messages(rig, move |at, bytes| at + credit_based_message(&copy, &network, bytes))
    } else {
        let pair = PacketRigConfig { nodes: 2, ..network };
        unloaded_by_simulation(move || credit_based_rig(&copy, &pair, Box::new(|_, _| Span::ZERO)))
    };
    credit_based_rig(config, rig, unloaded)
}

fn credit_based_rig(config: &CreditBased, rig: &PacketRigConfig, unloaded: Unloaded) -> CreditBasedRig {
    let hosts = (0..rig.nodes).map(|node| credits::host(config, NodeId(node))).collect();
    PacketRig::new(rig, Framing::Flit, hosts, credits::switch(config, rig.nodes), unloaded)
}

/// Endpoints and an arbiter of its own link around a switch with a class for control. The unloaded time is that of a
/// request at the start of a slot.
pub fn fastpass(config: &Fastpass, rig: &PacketRigConfig) -> FastpassRig {
    let (network, copy) = (*rig, *config);
    let message = move |at, bytes| fastpass_message(&copy, &network, at, bytes);
    let hosts = slots::hosts(config, rig.nodes, rig.rate, fastpass_lead(config, rig));
    let switch = slots::switch(rig.nodes + 1);
    PacketRig::new(rig, Framing::Fastpass, hosts, switch, request_of_messages(rig, message))
}

/// The time of a lone request whose messages, submitted at a time, are there at `message` of that time and their size.
fn request_of_messages(rig: &PacketRigConfig, message: impl Fn(Time, Bytes) -> Time + Send + 'static) -> Unloaded {
    const WORD: Bytes = Bytes::new(8);
    let (memory, read_request) = (rig.memory, rig.read_request_bytes);
    let asked = move |request, accessed, bytes| {
        let there = message(Time::ZERO, request);
        match accessed {
            None => there,
            Some(accessed) => message(Dram::new(memory).submit(there, accessed), bytes),
        }
    };
    Box::new(move |operation, bytes| {
        let end = match operation {
            Operation::Write => asked(bytes, None, bytes),
            Operation::Read => asked(read_request, Some(bytes), bytes),
            Operation::ReadModifyWrite => asked(MODIFY_REQUEST, Some(WORD), bytes),
        };
        end - Time::ZERO
    })
}

/// The payload that a receiver calls for from one source ahead: as many packets as a credit and its data take a round
/// trip for, if each waits for a packet that is on the wire at either hop.
pub fn receiver_driven_source_limit(config: &ReceiverDriven, rig: &PacketRigConfig) -> Bytes {
    let (path, train) = (Path::new(rig), receivers::train(config, config.mtu));
    let packet = path.serialization(train.middle);
    let round_trip = path.trip(receivers::CREDIT_WIRE) + path.trip(train.middle) + packet * 4;
    config.mtu * round_trip.as_ps().div_ceil(packet.as_ps())
}

/// From the submission of a lone message to its delivery: a credit's trip, and a train of packets that leave as their
/// credits come. Credits are a data packet apart, and no more are out than `outstanding` allows.
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

/// When a packet is there that has left the sender at `last.0`, if the one before it left at `before.0`; second are
/// their wire bytes. A short packet waits in the switch for the long one before it.
fn behind(path: &Path, before: (Span, u32), last: (Span, u32)) -> Span {
    let first_hop = |wire| path.trip(wire) - path.fixed() - path.serialization(wire);
    let switch_is_free = before.0 + first_hop(before.1) + path.serialization(before.1);
    let forwarded = switch_is_free.max(last.0 + first_hop(last.1));
    forwarded + path.serialization(last.1) + path.fixed()
}

/// When the packet `index` of a window of `window` packets starts, if nothing else limits it but its predecessor.
fn paced(index: u64, window: u64, packet: Span, round_trip: Span) -> Span {
    if packet * window >= round_trip {
        return packet * index;
    }
    round_trip * (index / window) + packet * (index % window)
}

/// From the submission of a lone message to its delivery when no flit waits for a credit.
pub fn credit_based_message(config: &CreditBased, rig: &PacketRigConfig, bytes: Bytes) -> Span {
    let (path, train) = (Path::new(rig), credits::train(config, bytes));
    path.trip(train.first) + path.serialization(train.middle) * (train.packets - 1)
}

/// Whether both buffers on a flit's way cover the time until the credits of a batch are back, so that one sender alone
/// is limited by its link only.
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

/// From the moment the arbiter sends an allocation until the endpoint knows it, behind one data frame at most.
pub fn fastpass_lead(config: &Fastpass, rig: &PacketRigConfig) -> Span {
    let path = Path::new(rig);
    let data = slots::Slots::new(config, rig.rate).wire;
    path.trip(slots::longest_allocation_wire(config)) + path.serialization(data)
}

/// When a lone message submitted at `at` is delivered: a demand's trip to the arbiter, the first slot that the answer
/// can reach, a slot for each further packet, the last packet's trip.
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

/// The rig of each rival by its key, as `spec::rivals!` has it. A seed is for what a switch draws.
pub mod rig {
    use super::super::packet::{self, PacketRig, PacketRigConfig};
    use super::{CreditBasedRig, FastpassRig, ReceiverDrivenRig};
    use base::Seed;
    use transport::config::{CreditBased, Dcqcn, Dctcp, Fastpass, Pfabric, ReceiverDriven};
    use transport::framing::Framing;
    use transport::uncontrolled::{self, Uncontrolled};
    use transport::{dcqcn, dctcp, pfabric};

    /// A rig of DCTCP.
    pub fn dctcp(config: &Dctcp, rig: &PacketRigConfig, _: Seed) -> PacketRig<dctcp::Host, dctcp::Switch> {
        packet::dctcp(config, rig)
    }
    /// A rig of DCQCN, whose switch draws what it marks.
    pub fn dcqcn(config: &Dcqcn, rig: &PacketRigConfig, seed: Seed) -> PacketRig<dcqcn::Host, dcqcn::Switch> {
        packet::dcqcn(config, rig, seed)
    }
    /// A rig of pFabric.
    pub fn pfabric(config: &Pfabric, rig: &PacketRigConfig, _: Seed) -> PacketRig<pfabric::Host, pfabric::Switch> {
        packet::pfabric(config, rig)
    }
    /// A rig of the idealised receiver-driven protocol.
    pub fn receiver_driven(config: &ReceiverDriven, rig: &PacketRigConfig, _: Seed) -> ReceiverDrivenRig {
        super::receiver_driven(config, rig)
    }
    /// A rig of the credit-based fabric.
    pub fn cxl(config: &CreditBased, rig: &PacketRigConfig, _: Seed) -> CreditBasedRig {
        super::credit_based(config, rig)
    }
    /// A rig of Fastpass.
    pub fn fastpass(config: &Fastpass, rig: &PacketRigConfig, _: Seed) -> FastpassRig {
        super::fastpass(config, rig)
    }
    /// A rig of frames alone.
    pub fn raw_ethernet(config: &Uncontrolled, rig: &PacketRigConfig, _: Seed) -> UncontrolledRig {
        packet::uncontrolled(config, Framing::Raw, rig)
    }
    /// A rig of RoCEv2 without congestion control.
    pub fn rocev2(config: &Uncontrolled, rig: &PacketRigConfig, _: Seed) -> UncontrolledRig {
        packet::uncontrolled(config, Framing::Roce, rig)
    }
    /// A rig of hardware TCP without congestion control.
    pub fn hardware_tcp(config: &Uncontrolled, rig: &PacketRigConfig, _: Seed) -> UncontrolledRig {
        packet::uncontrolled(config, Framing::Tcp, rig)
    }

    type UncontrolledRig = PacketRig<uncontrolled::Host, uncontrolled::Switch>;
}
