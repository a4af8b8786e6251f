//! Path selection of ISR (paper, 4.3, Algorithm 1, `PATH_SELECTION`).

use super::{Candidate, DelayTables, DistanceVector};
use crate::id::Port;
use crate::trail::Trail;
use base::Time;
use topology::VertexId;

/// Among the nearest ports: the one with the least delay, ties to fewer hops, never to a hop of the trail. A neighbour that *is* the
/// destination is not passed by, whatever was learnt: no way through others can be shorter.
pub(super) fn choose(
    distances: &DistanceVector,
    delays: &DelayTables,
    now: Time,
    destination: VertexId,
    trail: &Trail,
    stretch_max: u16,
) -> Option<Port> {
    let candidates = distances.candidates(destination);
    let nearest = candidates.first()?.distance;
    let farthest = if nearest == 1 { 1 } else { nearest.saturating_add(stretch_max) };
    let (epoch, learnt) = (delays.epoch(now), delays.of(destination));
    let (mut least, mut best) = (u32::MAX, None);
    for candidate in candidates {
        if candidate.distance > farthest {
            break;
        }
        if is_visited(distances, candidate.port, trail) {
            continue;
        }
        let delay = learnt.get(candidate.port.index()).map_or(0, |learnt| learnt.estimate(epoch));
        if delay < least {
            (least, best) = (delay, Some(candidate.port));
        }
    }
    best.or_else(|| {
        let beyond = candidates.iter().skip_while(|candidate| candidate.distance <= farthest);
        first_unvisited(distances, beyond, trail)
    })
}

/// Algorithm 1 to the letter, ports in their order, except that hops of the trail are passed over, as the text has it.
pub(super) fn choose_as_printed(
    distances: &DistanceVector,
    delays: &DelayTables,
    now: Time,
    destination: VertexId,
    trail: &Trail,
) -> Option<Port> {
    let epoch = delays.epoch(now);
    let (mut net_delay, mut distance, mut chosen) = (u32::MAX, u16::MAX, None);
    for port in (0..distances.port_count()).map(|port| Port(port as u16)) {
        let Some(hops) = distances.distance_by(destination, port) else { continue };
        if is_visited(distances, port, trail) {
            continue;
        }
        let delay = delays.estimate(epoch, destination, port);
        if delay <= net_delay && hops < distance {
            (net_delay, distance, chosen) = (delay, hops, Some(port));
        }
    }
    chosen
}

/// The first of `candidates` that leads to no hop of the trail.
pub(super) fn first_unvisited<'a>(
    distances: &DistanceVector,
    mut candidates: impl Iterator<Item = &'a Candidate>,
    trail: &Trail,
) -> Option<Port> {
    candidates.find(|candidate| !is_visited(distances, candidate.port, trail)).map(|candidate| candidate.port)
}

/// Whether the neighbour at `port` is a hop of the trail.
pub(super) fn is_visited(distances: &DistanceVector, port: Port, trail: &Trail) -> bool {
    distances.peer(port).is_none_or(|peer| trail.has_visited(peer))
}
