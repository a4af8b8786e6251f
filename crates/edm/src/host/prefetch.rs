//! What a host will need soon is fetched from memory meanwhile: the hosts of a rack are more than a
//! core's own caches hold. Nothing else comes of it.

use super::Host;
use crate::Tag;
use base::NodeId;
use prefetch_index::prefetch_index;

impl Host {
    /// Prefetches the state for `peer`: a message of or for it will arrive shortly.
    #[inline]
    pub fn prefetch(&self, peer: NodeId) {
        self.peers.prefetch(peer.0);
    }
    /// The same a little later: prefetches open items with `peer`.
    #[inline]
    pub fn prefetch_item(&self, peer: NodeId) {
        prefetch_index(&self.items, self.peers.get(peer.0).under_way as usize);
    }
    /// Something will be sent shortly.
    #[inline]
    pub fn prefetch_transmission(&self) {
        self.control.prefetch_front();
        self.data.prefetch_front();
    }
    /// The request that the next control message belongs to.
    #[inline]
    pub fn next_control(&self) -> Option<Tag> {
        self.control.front().map(|sent| sent.tag)
    }
    /// A request for `target` will be submitted shortly.
    #[inline]
    pub fn prefetch_request(&self, target: NodeId) {
        self.peers.prefetch(target.0);
        prefetch_index(&self.next_ids, target.index());
        prefetch_index(&self.items, self.free_item as usize);
    }
}
