//! Requests as messages, and where their time goes.

use super::{Events, Flight, Leg, PacketEvent, PacketRig, WORD};
use crate::drive::Ended;
use base::{Bytes, NodeId, Operation, Request, Span, Time};
use record::{Outcome, SpanKind};
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
        self.account(id, flight, events.now);
        let transfer = self.transfers[id];
        match transfer.leg {
            Leg::Ask => self.access_memory(id, &transfer.request, events),
            Leg::Last => self.end(id, events),
        }
    }

    fn access_memory(&mut self, id: u32, request: &Request, events: Events) {
        let size = if request.operation == Operation::Read { request.bytes } else { WORD };
        let done = self.places[request.target.index()].memory.submit(events.now, size);
        self.transfers[id].spans.add(SpanKind::Memory, done - events.now);
        events.at(done, PacketEvent::Answer(id));
    }

    fn end(&mut self, id: u32, events: Events) {
        let transfer = self.transfers.remove(id);
        let (spans, end) = (transfer.spans, events.now);
        assert_eq!(spans.total(), end - transfer.intended, "spans do not add up");
        events.end(Ended { ticket: transfer.ticket, outcome: Outcome::Finished, start: transfer.start, end, spans });
    }

    /// Splits the time since the message was submitted: before its completing packet left, the sender's link was busy with
    /// the message's own packets (serialization, retransmissions included), busy with others (NIC queue) or idle (schedule);
    /// after that, the packet's way.
    fn account(&mut self, id: u32, flight: &Flight, now: Time) {
        let transfer = &mut self.transfers[id];
        assert!(flight.left_at >= transfer.submitted, "a message was delivered by a packet older than itself");
        let busy = flight.busy_before - transfer.busy_at_submit;
        let own = if flight.packet.message == id { flight.own_before } else { transfer.own }.min(busy);
        let spans = &mut transfer.spans;
        spans.add(SpanKind::Serialization, own);
        spans.add(SpanKind::NicQueue, busy - own);
        spans.add(SpanKind::Schedule, flight.left_at - transfer.submitted - busy);
        spans.add(SpanKind::SwitchQueue, flight.switch_out - flight.switch_in);
        self.path.add_fixed(flight.packet.wire, spans);
        debug_assert!(spans.total() == now - transfer.intended, "a packet's way does not add up");
    }
}
