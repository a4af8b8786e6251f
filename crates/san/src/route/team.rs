//! Link aggregation: parallel links to one neighbour share sessions by a hash (paper, 3.1).

use super::Neighbour;
use crate::id::Port;

/// Returns, by port, all ports to the same neighbour in order.
pub(super) fn teams(neighbours: &[Neighbour]) -> Vec<Vec<Port>> {
    let team = |one: &Neighbour| {
        let same = neighbours.iter().enumerate().filter(|(_, other)| other.vertex == one.vertex);
        same.map(|(port, _)| Port(port as u16)).collect()
    };
    neighbours.iter().map(team).collect()
}

/// Selects by `hash` among the ports of a team that work, or `None` if none does.
pub(super) fn choose(team: &[Port], hash: u32, works: impl Fn(Port) -> bool) -> Option<Port> {
    let working = || team.iter().copied().filter(|port| works(*port));
    let count = working().count() as u64;
    working().nth(((u64::from(hash) * count) >> 32) as usize)
}
