//! Prefetches the state that coming events will touch. The state of a rack is larger than a core's
//! own caches. An event touches several places of it, and each leads to the next. Nothing else
//! comes of it.

use super::{EdmEvent, EdmRig};
use crate::drive::Ticket;
use base::NodeId;
use kernel::Soon;

impl EdmEvent {
    /// The number in it, or zero.
    #[inline(always)]
    fn number(self) -> u32 {
        match self {
            EdmEvent::AtSwitch(number)
            | EdmEvent::AtHost(number)
            | EdmEvent::Fetched(number)
            | EdmEvent::Fault(number)
            | EdmEvent::Burst(number)
            | EdmEvent::FrameAtEgress(number) => number,
            EdmEvent::Transmit(node) | EdmEvent::Timer(node) | EdmEvent::Link { node, .. } => node.0,
            EdmEvent::Match | EdmEvent::Emit(_) => 0,
        }
    }
}

impl EdmRig {
    /// For [`Rig::prefetch`](crate::drive::Rig::prefetch).
    #[inline(always)]
    pub(super) fn fetch(&self, soon: Soon, event: EdmEvent) -> Option<Ticket> {
        match (soon, event) {
            // What kind comes is anybody's guess: to fetch a flight for those that have none costs
            // less than to ask.
            (Soon::Later, event) => self.flights.prefetch(event.number()),
            (Soon::Shortly, EdmEvent::Transmit(node)) => self.nodes[node.index()].host.prefetch_transmission(),
            (Soon::Shortly, EdmEvent::AtSwitch(index)) => self.prefetch_at_switch(index),
            (Soon::Shortly, EdmEvent::AtHost(index)) => self.prefetch_at_host(index),
            (Soon::Next, EdmEvent::AtHost(index)) => return Some(self.prefetch_end(index)),
            (Soon::Next, EdmEvent::Transmit(node)) => self.prefetch_control(node),
            _ => {}
        }
        None
    }

    /// A node sends next, most often the control message of a request that it has taken up a while
    /// ago.
    #[inline]
    fn prefetch_control(&self, node: NodeId) {
        if let Some(tag) = self.nodes[node.index()].host.next_control() {
            self.tracks.prefetch(tag);
        }
    }

    /// A flight will arrive at the switch shortly: the state that it will change.
    #[inline]
    fn prefetch_at_switch(&self, index: u32) {
        let ends = self.flights.ends(index);
        self.tracks.prefetch(ends.tag);
        self.planes[0].switch.prefetch(ends.here, ends.there);
    }

    /// A flight will arrive at a host shortly: the state that it will change.
    #[inline]
    fn prefetch_at_host(&self, index: u32) {
        let ends = self.flights.ends(index);
        self.tracks.prefetch(ends.tag);
        self.nodes[ends.here.index()].host.prefetch(ends.there);
    }

    /// A flight arrives at a host next: what it will change there, and its request's ticket, which
    /// it may end.
    #[inline]
    fn prefetch_end(&self, index: u32) -> Ticket {
        let ends = self.flights.ends(index);
        self.nodes[ends.here.index()].host.prefetch_item(ends.there);
        Ticket(self.tracks[ends.tag.0 as usize].ticket)
    }
}
