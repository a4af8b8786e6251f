//! Peers that have something to send, served round robin, each listed at most once.

use super::Sparse;
use base::NodeId;
use std::collections::VecDeque;

/// Whether a peer stays in the ring after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It has more to send: move it to the back of the ring.
    Again,
    /// It has nothing to send now.
    Done,
}

/// A round robin over the peers that can send.
#[derive(Clone, Debug, Default)]
pub struct ReadyRing {
    ring: VecDeque<u32>,
    listed: Sparse<bool>,
}

impl ReadyRing {
    /// Lists `peer`, unless it is listed already.
    pub fn add(&mut self, peer: NodeId) {
        if !std::mem::replace(&mut self.listed[peer.index()], true) {
            self.ring.push_back(peer.0);
        }
    }
    /// Returns the next peer.
    pub fn front(&self) -> Option<NodeId> {
        self.ring.front().map(|peer| NodeId(*peer))
    }
    /// Ends the turn of the peer in front.
    pub fn turn(&mut self, ready: Ready) {
        let Some(peer) = self.ring.pop_front() else { return };
        match ready {
            Ready::Again => self.ring.push_back(peer),
            Ready::Done => self.listed[peer as usize] = false,
        }
    }
    /// Returns whether no peer is listed.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round_and_nobody_is_listed_twice() {
        let mut ring = ReadyRing::default();
        ring.add(NodeId(2));
        ring.add(NodeId(0));
        ring.add(NodeId(2));
        assert_eq!(ring.front(), Some(NodeId(2)));
        ring.turn(Ready::Again);
        assert_eq!(ring.front(), Some(NodeId(0)));
        ring.turn(Ready::Done);
        ring.turn(Ready::Done);
        assert!(ring.is_empty());
        ring.add(NodeId(2));
        assert_eq!(ring.front(), Some(NodeId(2)));
    }
}
