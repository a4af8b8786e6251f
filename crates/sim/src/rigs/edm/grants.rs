//! Rounds of the scheduler: their grants and requests on the way to the nodes.

use super::flight::Flight;
use super::planes::Round;
use super::{Ctx, EdmEvent, EdmRig};
use base::{NodeId, Program, Span, Time};
use edm::{Grant, SwitchOut, Tag};

impl EdmRig {
    /// Schedules the next match, if none is due before.
    pub(super) fn arm_match(&mut self, context: Ctx) {
        if let Some(at) = self.planes.arm(context.now) {
            context.at(at, EdmEvent::Match);
        }
    }

    pub(super) fn match_all(&mut self, context: Ctx) {
        if !self.planes.ring(context.now) {
            return;
        }
        for plane in 0..self.planes.len() {
            if self.planes[plane].up {
                self.match_round(plane, context);
            }
        }
        self.arm_match(context);
    }

    fn match_round(&mut self, plane: usize, context: Ctx) {
        let side = &mut self.planes[plane];
        let mut said = side.spare.pop().unwrap_or_default();
        side.switch.on_wakeup(context.now, &mut said);
        let Some(SwitchOut::Grant { at, .. } | SwitchOut::Request { at, .. }) = said.first() else {
            return side.spare.push(said);
        };
        let at = *at + self.timing.delays.emit;
        side.emitting.push_back(Round { at, said });
        context.at(at, EdmEvent::Emit(plane as u8));
    }

    /// The grants of one round go to their egress ports.
    pub(super) fn emit(&mut self, plane: usize, context: Ctx) {
        while self.planes[plane].emitting.front().is_some_and(|round| round.at <= context.now) {
            let Some(Round { mut said, .. }) = self.planes[plane].emitting.pop_front() else { return };
            for said in &said {
                match *said {
                    SwitchOut::Grant { to, grant, tag, .. } => self.send_grant(plane, to, grant, tag, context),
                    SwitchOut::Request { message, tag, .. } => self.send_request(plane, message, tag, context),
                    _ => unreachable!("a round makes grants and requests only"),
                }
            }
            said.clear();
            self.planes[plane].spare.push(said);
        }
    }

    fn send_grant(&mut self, plane: usize, to: NodeId, grant: Grant, tag: Tag, context: Ctx) {
        let grant = self.encoder.grant(grant, to);
        if self.planes.converged.is_some() {
            return self.grant_shared(Flight::granting(plane, to, grant, tag), context);
        }
        // A /G/ is one block and goes between the blocks of whatever the downlink carries (paper
        // 3.2.3). Behind queued data it would make its own data late, which would then queue behind
        // other data.
        let blocks = edm::pcs::memory::GRANT_BLOCKS;
        let last = self.planes[plane].downlinks[to.index()].insert(context.now, self.timing.block * blocks);
        self.tracks[tag.0 as usize].granted(context.now, Span::ZERO, blocks);
        self.land_grant(Flight::granting(plane, to, grant, tag), last, context);
    }

    /// The buffered request goes on to its memory node, whose memory is read as soon as it is
    /// there.
    fn send_request(&mut self, plane: usize, message: edm::Message, tag: Tag, context: Ctx) {
        let message = self.encoder.request(message, message.source);
        if self.planes.converged.is_some() {
            return self.request_shared(Flight::request(plane, &message, tag), context);
        }
        let flight = Flight::request(plane, &message, tag);
        let serialization = self.timing.block * flight.blocks();
        let downlink = &mut self.planes[plane].downlinks[message.target.index()];
        let (first, last) = downlink.occupy(context.now, serialization);
        self.request_waited(context.now, first - context.now, flight);
        self.serve(flight, last, context);
    }

    /// A request has waited for its downlink from `at` on.
    pub(super) fn request_waited(&mut self, at: Time, waited: Span, request: Flight) {
        self.counts.longest_request_wait = self.counts.longest_request_wait.max(waited);
        self.tracks[request.tag().0 as usize].request_granted(at, waited, request.blocks());
    }

    /// A request whose last block leaves the downlink at `last` reaches its memory node, and the
    /// memory is read.
    #[inline(always)]
    pub(super) fn serve(&mut self, request: Flight, last: Time, context: Ctx) {
        let asked = last + self.timing.hop + self.timing.delays.take_request;
        // A memory that takes no time needs no event of its own.
        let made = if self.memory_takes_time() { Span::ZERO } else { self.timing.delays.make_response };
        self.land(request, asked + made, context);
    }

    /// A grant whose last block leaves the downlink at `last` reaches its host.
    #[inline(always)]
    pub(super) fn land_grant(&mut self, grant: Flight, last: Time, context: Ctx) {
        let at = last + self.timing.hop + self.timing.delays.take_grant;
        self.land(grant, at, context);
    }

    pub(super) fn memory_takes_time(&self) -> bool {
        self.config.memory.takes_time()
    }

    #[inline(always)]
    pub(super) fn land(&mut self, flight: Flight, at: Time, context: Ctx) {
        let flight = self.flights.add(flight);
        context.at(at, EdmEvent::AtHost(flight));
    }
}
