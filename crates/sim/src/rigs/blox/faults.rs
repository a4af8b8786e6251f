//! What breaks and comes back.

use super::{BloxRig, Now};
use base::NodeId;
use blox::{CarrierIn, ControlIn, NodeIn, SwitchIn};

/// The servers that can be reached: those that run and have a link.
pub struct Reach {
    is_linked: Vec<bool>,
    is_running: Vec<bool>,
}

impl Reach {
    /// All of so many servers.
    pub fn new(servers: usize) -> Reach {
        Reach { is_linked: vec![true; servers], is_running: vec![true; servers] }
    }
    /// Whether a server runs and has a link.
    pub fn is_up(&self, server: usize) -> bool {
        self.is_running[server] && self.is_linked[server]
    }
}

impl BloxRig {
    pub(super) fn fault(&mut self, index: usize, context: Now<'_, '_>) {
        use plan::FaultKind;
        match self.plan.faults[index].kind {
            FaultKind::LinkDown { node, .. } | FaultKind::LinkCorrupt { node, .. } => {
                self.reach(node, |reach| reach.is_linked[node.index()] = false, context);
            }
            FaultKind::LinkUp { node } => self.reach(node, |reach| reach.is_linked[node.index()] = true, context),
            FaultKind::NodeDown { node } => {
                self.reach(node, |reach| reach.is_running[node.index()] = false, context);
                self.feed(node.index(), NodeIn::Fail, context);
                self.carrier_fault(node.index(), CarrierIn::Fail, context);
            }
            FaultKind::NodeUp { node } => {
                self.reach(node, |reach| reach.is_running[node.index()] = true, context);
                self.feed(node.index(), NodeIn::Recover, context);
                self.carrier_fault(node.index(), CarrierIn::Recover, context);
            }
            FaultKind::SwitchDown { .. } => self.tell_switch(SwitchIn::Fail, context),
            FaultKind::SwitchUp => {
                self.tell_switch(SwitchIn::Recover, context);
                self.tell_control(ControlIn::SwitchRecovered, context);
            }
        }
    }

    /// Changes a server or its link. The switch's port is up while both are, and hears of it when
    /// that changes.
    fn reach(&mut self, server: NodeId, change: impl FnOnce(&mut Reach), context: Now<'_, '_>) {
        let was_up = self.reach.is_up(server.index());
        change(&mut self.reach);
        let (is_up, node) = (self.reach.is_up(server.index()), self.places.server(server.0));
        if is_up != was_up {
            self.tell_switch(if is_up { SwitchIn::LinkUp(node) } else { SwitchIn::LinkDown(node) }, context);
        }
    }
}
