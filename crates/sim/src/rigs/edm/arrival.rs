//! What reaches a host.

use super::flight::{Flight, Kind, Stage};
use super::{Ctx, EdmRig};
use base::Bytes;
use edm::{Body, HostIn, Tag};
use record::Outcome;

impl EdmRig {
    pub(super) fn at_host(&mut self, index: u32, context: Ctx) {
        let flight = self.flights.remove(index);
        let node = flight.node();
        let is_inside = matches!(flight.kind(), Kind::Request(Stage::Reading, _));
        if !self.paces[node.index()].up || !(is_inside || self.planes[flight.plane()].carries(node)) {
            return self.lose(flight, context);
        }
        if !is_inside && !self.is_first_copy(flight) {
            return;
        }
        match flight.kind() {
            Kind::Grant if self.remote.fetches_writes => self.granted(flight, context),
            Kind::Grant => self.tell_host(node, HostIn::Granted(flight.grant()), context),
            Kind::Request(Stage::Granted, _) if self.memory_takes_time() => self.asked(flight, context),
            Kind::Request(stage, _) => {
                let (message, tag) = (flight.message(), flight.tag());
                if stage == Stage::Granted {
                    self.note_reached(tag);
                }
                self.tell_host(node, HostIn::Serve { message, tag }, context);
            }
            _ => self.take(flight, context),
        }
    }

    /// The first copy of a request is at a memory node whose memory takes time.
    #[inline(never)]
    fn asked(&mut self, flight: Flight, context: Ctx) {
        let (node, message) = (flight.node(), flight.message());
        self.note_reached(flight.tag());
        self.tell_host(node, HostIn::Begin { message }, context);
        let bytes = match message.body {
            Body::ReadRequest { bytes, .. } => Bytes::new(u64::from(bytes)),
            _ => Bytes::new(8),
        };
        let read = self.nodes[node.index()].memory.submit(context.now, bytes);
        self.tracks.memory_read(flight.tag(), read - context.now);
        self.land(Flight::reading(&message, flight.tag()), read + self.timing.delays.make_response, context);
    }

    fn note_reached(&mut self, tag: Tag) {
        if let Some(reached) = &mut self.probes.reached {
            reached.push(self.tracks[tag.0 as usize].ticket);
        }
    }

    fn take(&mut self, chunk: Flight, context: Ctx) {
        let (node, tag, now) = (chunk.node(), chunk.tag(), context.now);
        if self.remote.stores_reads && chunk.kind() == Kind::ResponseEnd {
            self.stored_at = self.store(tag, node, now);
        }
        self.tell_host(node, HostIn::Take { message: chunk.message(), word: chunk.word() }, context);
        if chunk.kind() == Kind::WriteEnd {
            self.tracks[tag.0 as usize].arrived();
            let end = if self.remote.stores_writes { self.store(tag, node, now) } else { now };
            self.end(tag.0, Outcome::Finished, end, context);
        }
    }

    fn is_first_copy(&mut self, flight: Flight) -> bool {
        let Some(mirror) = &mut self.nodes[flight.node().index()].mirror else { return true };
        match flight.kind() {
            Kind::Grant => mirror.accept_grant(flight.plane(), &flight.grant()),
            _ => mirror.accept_message(flight.plane(), &flight.message()),
        }
    }
}
