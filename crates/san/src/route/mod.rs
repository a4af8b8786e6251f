//! Which port a packet takes.

/// One neighbour's distances: by vertex, in hops; a distance at or over the bound of the network is "no way".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// By vertex.
    pub distances: Box<[u16]>,
}
