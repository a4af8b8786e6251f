//! What leaves a host.

use super::flight::Flight;
use super::{Ctx, EdmEvent, EdmRig};
use base::NodeId;

impl EdmRig {
    /// Sends what waits if the uplink is free, or makes sure that it is tried again when it is.
    #[inline(always)]
    pub(super) fn transmit(&mut self, node: NodeId, context: Ctx) {
        let pace = &self.paces[node.index()];
        // Many calls end here, and none of what waits has been touched.
        if pace.uplink_free_at <= context.now || pace.transmit.time() > pace.uplink_free_at {
            self.transmit_ready(node, context);
        }
    }

    #[inline(never)]
    fn transmit_ready(&mut self, node: NodeId, context: Ctx) {
        let now = context.now;
        while !self.is_sending(node) {
            let pace = &mut self.paces[node.index()];
            let free_at = pace.uplink_free_at;
            if free_at > now && pace.transmit.time() <= free_at {
                return;
            }
            let Some(ready) = self.nodes[node.index()].host.transmit_ready() else { return };
            let at = ready.max(free_at).max(now);
            if at > now {
                if let Some(at) = pace.transmit.arm(Some(at)) {
                    context.at(at, EdmEvent::Transmit(node));
                }
                return;
            }
            self.transmit_next(node, context);
        }
    }

    /// Apart from [`transmit`](Self::transmit), which mostly has nothing to send and should be
    /// quick about it.
    #[inline(never)]
    fn transmit_next(&mut self, node: NodeId, context: Ctx) {
        let (now, living) = (context.now, self.planes.living());
        let EdmRig { nodes, tracks, encoder, .. } = self;
        let sent = nodes[node.index()].host.transmit_with(now, |sent| {
            tracks.sent(sent, now, living);
            match encoder.transmission(sent, node) {
                None => Flight::sent(0, node, &sent.what, sent.word, sent.tag),
                Some(received) => Flight::sent(0, node, &received.what, received.word, received.tag),
            }
        });
        let flight = sent.expect("a ready host has something to send");
        let is_plain = self.planes.len() == 1 && self.planes.converged.is_none() && self.planes[0].carries(node);
        if is_plain {
            self.launch_on(flight, node, context);
        } else {
            self.launch(flight, node, context);
        }
    }

    /// Puts a flight onto the uplinks of all planes.
    #[inline(never)]
    fn launch(&mut self, flight: Flight, node: NodeId, context: Ctx) {
        let mut copies = 0;
        for plane in 0..self.planes.len() {
            if self.planes[plane].carries(node) {
                copies += 1;
                let flight = flight.by_plane(plane);
                match self.planes.converged {
                    Some(_) => self.launch_shared(flight, context),
                    None => self.launch_on(flight, node, context),
                }
            }
        }
        if copies == 0 {
            self.lose(flight, context);
        }
    }

    #[inline(always)]
    fn launch_on(&mut self, sent: Flight, node: NodeId, context: Ctx) {
        let uplink = &mut self.planes[sent.plane()].uplinks[node.index()];
        let (first, last) = uplink.occupy(context.now, self.timing.block * sent.blocks());
        let pace = &mut self.paces[node.index()];
        pace.uplink_free_at = pace.uplink_free_at.max(last);
        let at = match sent.is_data() {
            true => first + self.timing.hop + self.timing.delays.forward,
            false => last + self.timing.hop + self.timing.delays.insert,
        };
        let flight = self.flights.add(sent);
        context.at(at, EdmEvent::AtSwitch(flight));
    }
}
