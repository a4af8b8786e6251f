//! What a lone request costs in each design: bytes on the wire, and time.

use crate::plan::{Design, Fabric, Memory, Messages, Packet, Protocol};
use base::{Bytes, Operation, Span};
use transport::cost::{MODIFY_REQUEST, WireCost};
use transport::fastpass;

/// The read request of every rival: an address of 8 bytes (EDM, 4.2).
pub const READ_REQUEST: Bytes = Bytes::new(8);

/// Bytes that a lone request puts on each direction of its two links, control messages included.
/// This is what a load with `load_basis = "link"` counts.
pub fn wire_cost(design: &Design, operation: Operation, bytes: Bytes) -> WireCost {
    match design {
        Design::Edm(edm) => edm::cost::wire_cost(&edm.config, operation, bytes),
        Design::Packet(packet) => packet.protocol.wire_cost(operation, bytes),
    }
}

/// The wire bytes of a rival's largest packet; a queue must have room for it.
pub(crate) fn largest_packet(protocol: &Protocol) -> Bytes {
    Bytes::new(u64::from(protocol.train(protocol.full()).first))
}

/// What a lone request of Fastpass puts on the arbiter's link: demands down to it, allocations up
/// from it. `None` for the others.
pub(crate) fn arbiter_cost(design: &Design, operation: Operation, bytes: Bytes) -> Option<[f64; 2]> {
    let Design::Packet(Packet { protocol: Protocol::Fastpass(config), .. }) = design else { return None };
    let all = fastpass::wire_cost(config, operation, bytes, READ_REQUEST);
    let data = WireCost::of_messages(operation, bytes, READ_REQUEST, |bytes| fastpass::train(config, bytes));
    let demands = all.requester_up + all.target_up - data.requester_up - data.target_up;
    let allocations = all.requester_down + all.target_down - data.requester_down - data.target_down;
    Some([demands as f64, allocations as f64])
}

/// The end-to-end time of a lone request: exact for EDM, an estimate that is good enough for
/// warnings for the rivals (a simulator measures theirs).
pub(crate) fn unloaded(plan: &Messages, operation: Operation, bytes: Bytes) -> Span {
    let (fabric, Memory { dram, remote }) = (&plan.fabric, plan.memory);
    let access = |takes: bool| if takes { dram.access(bytes) } else { Span::ZERO };
    let fetch = access(remote.fetches(operation));
    let in_fabric = match &plan.design {
        Design::Edm(edm) => {
            let place = edm::Place { nodes: fabric.nodes, rate: fabric.rate };
            let Fabric { transceiver, propagation, .. } = *fabric;
            let granted = edm::cost::until_granted(&edm.config, &place, transceiver, propagation);
            let gaps = edm::cost::slot_gaps(&edm.config, &place, operation, bytes);
            edm::cost::unloaded(&edm.config, &place, transceiver, propagation, operation, bytes)
                + fetch.saturating_sub(granted).max(gaps)
        }
        Design::Packet(packet) => {
            let request = match operation {
                Operation::Write => None,
                Operation::Read => Some(READ_REQUEST),
                Operation::ReadModifyWrite => Some(MODIFY_REQUEST),
            };
            let request = request.map_or(Span::ZERO, |request| one_way(packet, fabric, request));
            fetch + request + one_way(packet, fabric, bytes)
        }
    };
    in_fabric + access(operation != Operation::Write) + access(remote.stores(operation))
}

/// A message from application to application: the stack, the fibre, and every packet once plus the
/// first again at the switch.
fn one_way(packet: &Packet, fabric: &Fabric, bytes: Bytes) -> Span {
    let stack = &packet.stack;
    let train = packet.protocol.train(bytes);
    let sent = Bytes::new(train.data_bytes() + u64::from(train.first));
    let crossing = stack.host_pass() * 2 + stack.switch_receive() + stack.switch_transmit();
    crossing + fabric.propagation * 2 + fabric.rate.span_of(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;
    use crate::sources::NoFiles;

    fn plan(design: &str, rate: &str) -> Messages {
        let text = format!(
            "title = \"t\"\nfabric = {{ nodes = 2, rate = \"{rate}\" }}\ndesign.name = \"{design}\"\nworkload.load = 0.1\nrun.requests = 1\n"
        );
        let experiment = parse("t.toml", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        experiment.points(None).remove(0).plan.messages().unwrap().clone()
    }

    /// Table 1 of EDM without serialization, and two frames (host and switch) of the message at 25
    /// Gb/s: a bare RREQ is 84 B, 64 B of data make 102 B with raw Ethernet, 142 B with TCP.
    #[test]
    fn unloaded_times_are_table_1_and_serialization() {
        let wire = |bytes: u64| base::Rate::gbps(25).span_of(Bytes::new(2 * bytes));
        let data = Bytes::new(64);
        let raw = plan("raw-ethernet", "25Gbps");
        assert_eq!(unloaded(&raw, Operation::Write, data), Span::ps(557_440) + wire(102));
        assert_eq!(unloaded(&raw, Operation::Read, data), Span::ps(1_114_880) + wire(102) + wire(84));
        let tcp = plan("hardware-tcp", "25Gbps");
        assert_eq!(unloaded(&tcp, Operation::Write, data), Span::ps(1_889_840) + wire(142));
        let edm = plan("edm", "25Gbps");
        assert!(unloaded(&edm, Operation::Read, data) > Span::ns(290));
    }

    #[test]
    fn a_frame_without_control_costs_both_ends_of_its_way_alike() {
        let cost = wire_cost(&plan("raw-ethernet", "25Gbps").design, Operation::Read, Bytes::new(3_000));
        // 8 B in a least frame one way; two frames of 1500 B the other.
        let expected = WireCost { requester_up: 84, target_down: 84, target_up: 2 * 1538, requester_down: 2 * 1538 };
        assert_eq!(cost, expected);
    }

    /// A read is two messages: two demands, and two allocations, of a least frame each.
    #[test]
    fn the_arbiter_of_fastpass_hears_of_every_message() {
        let fastpass = plan("fastpass", "100Gbps");
        assert_eq!(arbiter_cost(&fastpass.design, Operation::Read, Bytes::new(64)), Some([168.0, 168.0]));
        assert_eq!(arbiter_cost(&fastpass.design, Operation::Write, Bytes::new(64)), Some([84.0, 84.0]));
        assert_eq!(arbiter_cost(&plan("edm", "100Gbps").design, Operation::Read, Bytes::new(64)), None);
    }
}
