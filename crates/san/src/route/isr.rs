//! Path selection of ISR (paper, 4.3, Algorithm 1, `PATH_SELECTION`).

use super::delay::Learnt;
use super::{Candidate, DelayTables, DistanceVector};
use crate::id::Port;
use crate::trail::Trail;
use base::Time;
use topology::VertexId;

/// Selects the port with the least delay, ties by fewer hops, never to a hop of the trail. The
/// whole path is at most `stretch_max` hops longer than the shortest one at the first choice: hops
/// so far and those ahead count. A neighbour that *is* the destination is not bypassed.
///
/// The paper has no bound. Up to a stretch of 2 no path can meet itself. Returning to a hop takes
/// at least three hops, so a port whose nearest path leads over a hop of the trail is never within
/// the bound. There is always one within it.
///
/// Longer paths are unknown at first and after a while without updates. The paper does not say when
/// they are tried. Here, one I/O tries one if the best known path was marked as congested.
pub(super) fn choose(
    distances: &DistanceVector,
    delays: &mut DelayTables,
    now: Time,
    destination: VertexId,
    trail: &mut Trail,
    stretch_max: u16,
) -> Option<Port> {
    let candidates = distances.candidates(destination);
    let nearest = candidates.first()?.distance;
    let left = trail.links_left(nearest.saturating_add(stretch_max));
    let farthest = if nearest == 1 { 1 } else { left };
    let epoch = delays.epoch(now);
    let survey = survey(distances, delays.of(destination), epoch, candidates, trail, farthest);
    match survey.unknown.filter(|_| survey.is_marked) {
        Some(port) => {
            delays.suppose(epoch, destination, port, survey.least);
            Some(port)
        }
        None => survey.best.or_else(|| any_unvisited(distances, destination, trail)),
    }
}

/// The known ports that a packet may take.
struct Survey {
    best: Option<Port>,
    least: u32,
    /// Whether the best one was marked.
    is_marked: bool,
    /// The nearest longer path without a known delay.
    unknown: Option<Port>,
}

fn survey(
    distances: &DistanceVector,
    learnt: &[Learnt],
    epoch: u32,
    candidates: &[Candidate],
    trail: &Trail,
    farthest: u16,
) -> Survey {
    let mut survey = Survey { best: None, least: u32::MAX, is_marked: false, unknown: None };
    let mut nearest = None;
    let is_first = trail.hops().is_empty();
    for candidate in candidates {
        let is_nearest = nearest.is_none_or(|nearest| candidate.distance == nearest);
        if !is_nearest && candidate.distance > farthest {
            break;
        }
        if !is_first && is_visited(distances, candidate.port, trail) {
            continue;
        }
        nearest = nearest.or(Some(candidate.distance));
        let known = learnt.get(candidate.port.index()).copied().unwrap_or_default();
        let delay = if is_nearest { Some(known.estimate(epoch)) } else { known.fresh(epoch) };
        match delay {
            Some(delay) if delay < survey.least => {
                (survey.least, survey.best, survey.is_marked) = (delay, Some(candidate.port), known.is_marked());
            }
            None if survey.unknown.is_none() => survey.unknown = Some(candidate.port),
            _ => {}
        }
    }
    survey
}

/// Returns the nearest of all ports, kept for the destination or not, that leads to no hop of the
/// trail.
fn any_unvisited(distances: &DistanceVector, destination: VertexId, trail: &Trail) -> Option<Port> {
    let ports = (0..distances.port_count()).map(|port| Port(port as u16));
    let free = ports.filter(|port| !is_visited(distances, *port, trail));
    let near = free.filter_map(|port| Some(Candidate { distance: distances.distance_by(destination, port)?, port }));
    near.min().map(|candidate| candidate.port)
}

/// Algorithm 1 exactly as printed, ports in order, except that hops of the trail are skipped, as
/// the text says.
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

/// Returns the first of `candidates` that leads to no hop of the trail.
pub(super) fn first_unvisited<'a>(
    distances: &DistanceVector,
    mut candidates: impl Iterator<Item = &'a Candidate>,
    trail: &Trail,
) -> Option<Port> {
    candidates.find(|candidate| !is_visited(distances, candidate.port, trail)).map(|candidate| candidate.port)
}

/// Returns whether the neighbour at `port` is a hop of the trail.
pub(super) fn is_visited(distances: &DistanceVector, port: Port, trail: &Trail) -> bool {
    distances.peer(port).is_none_or(|peer| trail.has_visited(peer))
}
