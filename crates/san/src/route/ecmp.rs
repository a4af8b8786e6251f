//! Equal-cost multipath: one of the shortest paths, selected by a hash.

use super::isr::{first_unvisited, is_visited};
use super::{DistanceVector, EcmpHash};
use crate::id::{Port, Tag};
use crate::trail::Trail;
use topology::VertexId;

/// Selects a port by `hash` among the nearest ports that lead to no hop of the trail; hash 0
/// selects the lowest port.
pub(super) fn choose(distances: &DistanceVector, destination: VertexId, trail: &Trail, hash: u32) -> Option<Port> {
    let candidates = distances.candidates(destination);
    let nearest = candidates.first()?.distance;
    let equal = || candidates.iter().take_while(|candidate| candidate.distance == nearest);
    let free = || equal().filter(|candidate| !is_visited(distances, candidate.port, trail));
    match free().count() as u64 {
        0 => first_unvisited(distances, candidates.iter(), trail),
        count => free().nth(((u64::from(hash) * count) >> 32) as usize).map(|candidate| candidate.port),
    }
}

/// Returns a hash of the session or I/O, different at each vertex so that choices along a path are
/// independent.
pub(super) fn hash(of: EcmpHash, tag: Tag, here: VertexId) -> u32 {
    let command = match of {
        EcmpHash::Session => 0,
        // A repeat may take another path than the original.
        EcmpHash::Io => (u64::from(tag.command) << 16) | u64::from(tag.attempt),
    };
    let key = mix(u64::from(tag.session.0)) ^ command;
    (mix(key ^ mix(u64::from(here.0) + 1)) >> 32) as u32
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA'14): every bit of the input affects
/// every bit of the output.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
