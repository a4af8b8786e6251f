//! Stacks without congestion control: raw Ethernet, RoCEv2 and TCP in hardware, as EDM (ASPLOS'25)
//! measures them in Table 1 and Figure 6. Messages are split into packets that leave as soon as the
//! link is free, round robin over the peers. The switch queues without a limit, so nothing is lost
//! and nothing needs an acknowledgement.

use crate::common::{Arrived, Inbox, Ready, ReadyRing, Sparse};
use crate::cost::{Train, WireCost};
use crate::framing::{Framing, frame_wire, roce_wire, tcp_wire};
use crate::outgoing::Outgoing;
use crate::{HostIn, HostOut, Packet};
use base::{Bytes, NodeId, Operation, Program, Time};
use serde::Serialize;

/// The parameters of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Uncontrolled {
    /// Maximum payload of a packet.
    pub mtu: Bytes,
}

/// Returns the wire bytes of a packet with `payload` bytes of a message; `first` is the message's
/// first packet.
pub fn wire(framing: Framing, payload: u32, first: bool) -> u32 {
    match framing {
        Framing::Roce => roce_wire(payload, first),
        Framing::Tcp => tcp_wire(payload),
        _ => frame_wire(payload),
    }
}

/// Returns the packets of a lone message.
pub fn train(config: &Uncontrolled, framing: Framing, bytes: Bytes) -> Train {
    let packets = Train::new(bytes, config.mtu, |payload, first| wire(framing, payload, first), 0);
    Train { acknowledgements: 0, ..packets }
}

/// Returns the wire cost of a lone request.
pub fn wire_cost(
    config: &Uncontrolled,
    framing: Framing,
    operation: Operation,
    bytes: Bytes,
    read_request: Bytes,
) -> WireCost {
    WireCost::of_messages(operation, bytes, read_request, |bytes| train(config, framing, bytes))
}

/// A host.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    mtu: Bytes,
    framing: Framing,
    outgoing: Sparse<Outgoing>,
    inboxes: Sparse<Inbox>,
    ring: ReadyRing,
}

/// Creates the stack of `node`.
pub fn host(config: &Uncontrolled, framing: Framing, node: NodeId) -> Host {
    let (outgoing, inboxes, ring) = (Sparse::default(), Sparse::default(), ReadyRing::default());
    Host { node, mtu: config.mtu, framing, outgoing, inboxes, ring }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;

    fn on(&mut self, _now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match input {
            HostIn::Submit(message) => {
                self.outgoing[message.target.index()].push(&message);
                self.ring.add(message.target);
            }
            HostIn::Receive(packet) => {
                if let Arrived::Complete(_) = self.inboxes[packet.source.index()].take(&packet) {
                    out.push(HostOut::Deliver { message: packet.message });
                }
            }
            HostIn::Announced(_) => {}
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _now: Time, _out: &mut Vec<HostOut>) {}
}

impl crate::Host for Host {
    fn may_transmit(&self) -> bool {
        !self.ring.is_empty()
    }
    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        let peer = self.ring.front()?;
        let outgoing = &mut self.outgoing[peer.index()];
        let piece = outgoing.take(self.mtu)?;
        self.ring.turn(if outgoing.is_empty() { Ready::Done } else { Ready::Again });
        Some(piece.packet(self.node, peer, wire(self.framing, piece.payload, piece.offset == 0)))
    }
}

/// Output queues without a limit; there are no control packets.
pub use crate::common::ClassSwitch as Switch;

/// Creates a switch with `ports` ports.
pub fn switch(ports: u32) -> Switch {
    Switch::new(ports)
}
