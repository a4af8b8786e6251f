//! Two interfaces, one stream: accepts the first copy of each message from a primary and a backup
//! network (paper 3.3, fault tolerance).
//!
//! Both networks carry the same messages of one kind from one peer in the same order. The k-th copy
//! on either is thus the same message, and no number is needed on the wire. An interface that has
//! missed a message can never return: it would have to be resynchronised first.

use base::NodeId;

/// What is counted apart, because only messages of one kind from one peer keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    pub fn accept(&mut self, interface: usize, peer: NodeId, kind: Kind) -> bool {
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
