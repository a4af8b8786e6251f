//! What an event will need is fetched from memory meanwhile: thousands of I/Os are more than a
//! core's own caches hold. Nothing else comes of it.

use super::{Place, SanEvent, SanRig};
use crate::drive::Ticket;
use base::Request;
use kernel::Soon;
use san::DriveId;

impl SanRig {
    /// An event is due soon; returns the request that it may end.
    #[inline(always)]
    pub(super) fn fetch(&self, soon: Soon, event: SanEvent) -> Option<Ticket> {
        match (event, soon) {
            (SanEvent::Arrive(flight), Soon::Later) => {
                self.carrier.flights.prefetch(flight);
                None
            }
            (SanEvent::Arrive(flight), Soon::Shortly) => self.prefetch_arrival(flight),
            (SanEvent::DriveDone(work), Soon::Later) => {
                self.working.prefetch(work);
                None
            }
            (SanEvent::DriveDone(work), Soon::Shortly) => self.prefetch_job(work),
            (SanEvent::DriveDone(work), Soon::Next) => self.prefetch_answer(work),
            _ => None,
        }
    }

    /// A drive will be done soon: the request, and the job of its target.
    #[inline(never)]
    fn prefetch_job(&self, work: u32) -> Option<Ticket> {
        let work = self.working.get(work)?;
        self.tracks.prefetch(work.request);
        self.tracks.prefetch_end(work.request);
        if let Place::Target(target) = self.vertices.places[work.target.index()] {
            self.programs.targets[target as usize].prefetch_job(work.job);
        }
        None
    }

    /// A drive is done next: what the answer changes.
    #[inline(never)]
    fn prefetch_answer(&self, work: u32) -> Option<Ticket> {
        let work = self.working.get(work)?;
        if let Place::Target(target) = self.vertices.places[work.target.index()] {
            self.programs.targets[target as usize].prefetch_answer(work.job);
        }
        None
    }

    /// A request will be made soon: its session.
    #[inline]
    pub(super) fn fetch_session(&self, request: &Request) {
        let drive = request.target.index().checked_sub(self.vertices.hosts.len());
        if let (Some(host), Some(drive)) = (self.programs.hosts.get(request.source.index()), drive) {
            host.prefetch_session(DriveId(drive as u32));
        }
    }

    /// A packet will be at the end of its link: what is known of its request, and what its next
    /// vertex keeps for it.
    #[inline(never)]
    fn prefetch_arrival(&self, flight: u32) -> Option<Ticket> {
        let flight = self.carrier.flights.get(flight)?;
        let packet = &flight.packet;
        self.tracks.prefetch(packet.request);
        let (vertex, port) = self.carrier.wires.end(flight.leaving.channel);
        match self.vertices.places[vertex.index()] {
            Place::Hop(hop) => self.programs.hops[hop as usize].prefetch(port, packet),
            Place::Target(target) => {
                self.tracks.prefetch_end(packet.request);
                self.programs.targets[target as usize].prefetch(packet);
            }
            Place::Host(host) => {
                self.tracks.prefetch_end(packet.request);
                self.programs.hosts[host as usize].prefetch(packet);
                return self.tracks.ticket(packet.request);
            }
        }
        None
    }
}
