//! Requests as messages, and where their time goes.

use super::{Events, Flight, Leg, PacketEvent, PacketRig, Transfer, WORD};
use crate::drive::Ended;
use base::{Bytes, NodeId, Operation, Request, Span, Time};
use hardware::RemoteAccess;
use record::{Outcome, Place as At, SpanKind};
use transport::{Host, HostIn, Message, Switch};

impl<H: Host, S: Switch> PacketRig<H, S> {
    pub(super) fn submit(&mut self, id: u32, target: NodeId, bytes: Bytes, events: Events) {
        let transfer = &mut self.transfers[id];
        let source = transfer.sender;
        transfer.submitted = events.now;
        transfer.own = Span::ZERO;
        transfer.busy_at_submit = self.places[source.index()].busy_until(events.now);
        let is_answer = transfer.leg == Leg::Last && transfer.request.operation != Operation::Write;
        let expects_answer = transfer.leg == Leg::Ask;
        let message = Message { id, source, target, bytes, is_answer, expects_answer };
        self.tell_host(source, HostIn::Submit(message), None, events);
    }

    /// The memory has the answer: the second message goes the other way.
    pub(super) fn answer(&mut self, id: u32, events: Events) {
        let transfer = &mut self.transfers[id];
        transfer.leg = Leg::Last;
        transfer.sender = transfer.request.target;
        let (requester, bytes) = (transfer.request.source, transfer.request.bytes);
        self.submit(id, requester, bytes, events);
    }

    /// Every byte of the current message of transfer `id` is there; `flight` brought the last one.
    pub(super) fn delivered(&mut self, id: u32, flight: &Flight, events: Events) {
        self.account(id, flight);
        let Transfer { leg, request, .. } = self.transfers[id];
        match leg {
            Leg::Ask => self.access_memory(id, &request, events),
            Leg::Last => self.store(id, &request, flight.packet.target, events),
        }
    }

    /// What remote requests take of a memory that takes time.
    pub(super) fn remote(&self) -> RemoteAccess {
        self.config.remote.in_memory(&self.config.memory)
    }

    /// Reads the data of a write, which are sent when they are there.
    pub(super) fn fetch_write(&mut self, id: u32, request: &Request, events: Events) {
        let done = self.access(id, request.source, request.bytes, events);
        events.at(done, PacketEvent::Fetched(id));
    }

    pub(super) fn fetched(&mut self, id: u32, events: Events) {
        let Request { target, bytes, .. } = self.transfers[id].request;
        self.submit(id, target, bytes, events);
    }

    /// The data are at `receiver`: the request ends there, or in its memory.
    fn store(&mut self, id: u32, request: &Request, receiver: NodeId, events: Events) {
        let stores = self.remote().stores(request.operation);
        let end = if stores { self.access(id, receiver, request.bytes, events) } else { events.now };
        self.end(id, end, events);
    }

    /// Accesses the memory of `node` for a transfer; returns when that is done.
    fn access(&mut self, id: u32, node: NodeId, size: Bytes, events: Events) -> Time {
        let done = self.places[node.index()].memory.submit(events.now, size);
        self.transfers[id].ledger.claim(SpanKind::Memory, events.now, done, At::Memory(node.0));
        done
    }

    fn access_memory(&mut self, id: u32, request: &Request, events: Events) {
        let size = if request.operation == Operation::Read { request.bytes } else { WORD };
        let done = self.access(id, request.target, size, events);
        events.at(done, PacketEvent::Answer(id));
    }

    fn end(&mut self, id: u32, end: Time, events: Events) {
        let Transfer { ticket, start, ledger, .. } = self.transfers.remove(id);
        events.end(Ended { ticket, outcome: Outcome::Finished, start, end, label: Span::ZERO, ledger });
    }

    /// Claims the time since the message was submitted. Before its completing packet left, the
    /// sender's link was busy with the message's own packets (serialization, retransmissions
    /// included), busy with others (NIC queue), or idle (schedule). After that it claims the
    /// packet's way.
    fn account(&mut self, id: u32, flight: &Flight) {
        let transfer = &mut self.transfers[id];
        assert!(flight.left_at >= transfer.submitted, "a message was delivered by a packet older than itself");
        let busy = flight.busy_before - transfer.busy_at_submit;
        let own = if flight.packet.message == id { flight.own_before } else { transfer.own }.min(busy);
        let idle = flight.left_at - transfer.submitted - busy;
        let (submitted, sender) = (transfer.submitted, transfer.sender.0);
        let before = [(SpanKind::Schedule, idle), (SpanKind::NicQueue, busy - own), (SpanKind::Serialization, own)];
        let ledger = &mut transfer.ledger;
        ledger.claim_parts(submitted, At::Host(sender), before);
        let (wire, receiver) = (flight.packet.wire, flight.packet.target.0);
        ledger.claim_parts(flight.left_at, At::Link(sender), self.path.way_to_switch(wire));
        ledger.claim(SpanKind::SwitchQueue, flight.switch_in, flight.switch_out, At::Port(receiver));
        ledger.claim_parts(flight.switch_out, At::Link(receiver), self.path.way_to_host(wire));
    }
}
