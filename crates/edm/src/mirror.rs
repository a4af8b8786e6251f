//! Two interfaces, one stream: accepts the first copy of each message from a primary and a backup
//! network, and decides which of them nodes use (paper 3.3, fault tolerance).
//!
//! Both networks carry the same messages of one kind from one peer in the same order. The k-th copy
//! on either is thus the same message, and no number is needed on the wire. An interface that has
//! missed a message can never return: it would have to be resynchronised first.

mod copies;

use base::NodeId;

/// What a dead link to the primary switch makes of the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLoss {
    /// The node is cut off; the others go on.
    Node,
    /// Every node abandons the primary network and goes on with the backup.
    Primary,
}

/// The networks of a rack: one, or a primary and a backup whose switches run in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Networks {
    is_redundant: bool,
    /// In use, by number; 0 is the primary.
    used: [bool; 2],
}

impl Networks {
    /// All networks in use.
    pub fn new(is_redundant: bool) -> Networks {
        Networks { is_redundant, used: [true, is_redundant] }
    }
    /// Handles the loss of one link to the primary switch. That switch no longer receives what its
    /// twin receives, so their schedulers would diverge: a network in step is all or nothing.
    pub fn on_link_loss(&mut self) -> LinkLoss {
        if !self.is_redundant {
            return LinkLoss::Node;
        }
        self.on_switch_loss(PRIMARY);
        LinkLoss::Primary
    }
    /// Handles the loss of a switch: its network is abandoned.
    pub fn on_switch_loss(&mut self, network: usize) {
        self.used[network] = false;
    }
    /// Returns whether nodes send on `network`.
    pub fn is_used(&self, network: usize) -> bool {
        self.used[network]
    }
    /// The networks that nodes send on, the primary first.
    pub fn used(&self) -> impl Iterator<Item = usize> {
        let used = self.used;
        (0..used.len()).filter(move |network| used[*network])
    }
}

const PRIMARY: usize = 0;

/// What is counted apart, because only messages of one kind from one peer keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// /G/ for a write to the peer.
    WriteGrant,
    /// /G/ for a response to the peer.
    ResponseGrant,
    /// RREQ or RMWREQ of the peer.
    Request,
    /// WREQ of the peer.
    Write,
    /// RRES of the peer.
    Response,
}

const KINDS: usize = 5;

/// One node's filter for duplicates.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// By peer and kind: copies seen on each interface.
    seen: Vec<[[u64; 2]; KINDS]>,
}

impl Mirror {
    /// A filter for the messages of `nodes` peers.
    pub fn new(nodes: u32) -> Mirror {
        Mirror { seen: vec![[[0; 2]; KINDS]; nodes as usize] }
    }
    /// Counts a copy that came in on `interface` (0 or 1); whether it is the first of its message.
    fn accept(&mut self, interface: usize, peer: NodeId, kind: Kind) -> bool {
        let seen = &mut self.seen[peer.index()][kind as usize];
        seen[interface] += 1;
        seen[interface] > seen[1 - interface]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_backup_takes_over_where_the_primary_stopped() {
        let mut mirror = Mirror::new(1);
        let mut copy = |interface| mirror.accept(interface, NodeId(0), Kind::Request);
        assert!(copy(0));
        assert!(!copy(1));
        assert!(copy(0));
        // The primary dies here, with its second message delivered and the backup's copy of it
        // still to come.
        assert!(!copy(1));
        assert!(copy(1));
    }

    #[test]
    fn one_dead_link_disables_the_primary_where_there_is_a_backup() {
        let mut pair = Networks::new(true);
        assert_eq!(pair.used().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(pair.on_link_loss(), LinkLoss::Primary);
        assert_eq!(pair.used().collect::<Vec<_>>(), [1]);
        assert!(!pair.is_used(0));
    }

    #[test]
    fn without_a_backup_a_dead_link_costs_one_node() {
        let mut single = Networks::new(false);
        assert_eq!(single.on_link_loss(), LinkLoss::Node);
        assert_eq!(single.used().collect::<Vec<_>>(), [0]);
        single.on_switch_loss(0);
        assert_eq!(single.used().count(), 0);
    }

    #[test]
    fn a_dead_backup_leaves_the_primary() {
        let mut pair = Networks::new(true);
        pair.on_switch_loss(1);
        assert_eq!(pair.used().collect::<Vec<_>>(), [0]);
    }

    proptest! {
        #[test]
        fn every_message_is_accepted_once_in_any_interleaving(order in proptest::collection::vec(0usize..2, 0..200)) {
            let mut mirror = Mirror::new(1);
            let accepted = order.iter().filter(|i| mirror.accept(**i, NodeId(0), Kind::Write)).count();
            let on = |interface| order.iter().filter(|i| **i == interface).count();
            prop_assert_eq!(accepted, on(0).max(on(1)));
        }
    }
}
