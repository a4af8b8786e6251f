//! What breaks.

use super::{Ctx, EdmRig, FaultKind, Flight};
use base::{NodeId, Program, Time};
use edm::SwitchIn;
use record::Outcome;

impl EdmRig {
    #[inline(never)]
    pub(super) fn fault(&mut self, kind: FaultKind, context: Ctx) {
        match kind {
            FaultKind::LinkDown(node) => {
                if self.planes.lose_link(node) {
                    self.port_down(node, context);
                }
            }
            FaultKind::SwitchDown(plane) => self.planes.lose_switch(plane),
            FaultKind::NodeDown(node) if !self.paces[node.index()].up => {}
            FaultKind::NodeDown(node) => {
                self.paces[node.index()].up = false;
                self.port_down(node, context);
                self.drop_requests_of(node, context);
            }
        }
        self.find_free_uplinks();
    }

    fn find_free_uplinks(&mut self) {
        for (pace, node) in self.paces.iter_mut().zip((0..).map(NodeId)) {
            let carrying = self.planes.iter().filter(|plane| plane.carries(node));
            let free_at = carrying.map(|plane| plane.uplinks[node.index()].free_at()).max();
            pace.uplink_free_at = free_at.unwrap_or(Time::ZERO);
        }
    }

    fn port_down(&mut self, port: NodeId, context: Ctx) {
        for plane in 0..self.planes.len() {
            let mut out = std::mem::take(&mut self.scratch.switch);
            self.planes[plane].switch.on(context.now, SwitchIn::PortDown { port }, &mut out);
            out.clear();
            self.scratch.switch = out;
            self.arm_match(context);
        }
    }

    /// A dead node's own requests have nobody left to answer, and what it had yet to send is gone.
    fn drop_requests_of(&mut self, node: NodeId, context: Ctx) {
        for sent in self.nodes[node.index()].host.take_unsent() {
            self.tracks[sent.tag.0 as usize].never_left();
            self.lose(Flight::sent(0, node, &sent.what, sent.word, sent.tag), context);
        }
        for tag in self.nodes[node.index()].host.outstanding() {
            self.end(tag.0, Outcome::Lost, context.now, context);
        }
    }
}
