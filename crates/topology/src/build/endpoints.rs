//! Attaches hosts and targets to a fabric.

use super::{Edge, Fabric};
use crate::config::Placement;
use crate::error::BuildError;
use crate::graph::{VertexId, VertexKind};

pub(super) fn attach(fabric: &mut Fabric<'_>, edge: &Edge) -> Result<(), BuildError> {
    match edge {
        Edge::All(switches) => attach_to_all(fabric, switches),
        Edge::One(switches, room) => attach_to_one(fabric, switches, *room),
        Edge::FreePorts(adapters) => attach_to_adapters(fabric, adapters),
    }
}

impl Fabric<'_> {
    /// Adds every target, then every host.
    fn add_endpoints(&mut self) -> Vec<VertexId> {
        let mut added = self.add(VertexKind::Target, 0, self.config.endpoints.targets);
        added.extend(self.add(VertexKind::Host, 0, self.config.endpoints.hosts));
        added
    }

    fn join_endpoint(&mut self, endpoint: VertexId, to: VertexId) {
        for _ in 0..self.config.cabling.endpoint_cables {
            self.builder.cable([endpoint, to], self.config.cabling.rate, self.config.cabling.lengths.endpoint);
        }
    }

    fn endpoints(&self) -> u64 {
        u64::from(self.config.endpoints.hosts) + u64::from(self.config.endpoints.targets)
    }
}

fn attach_to_all(fabric: &mut Fabric<'_>, switches: &[VertexId]) -> Result<(), BuildError> {
    let (ports, cables) = (fabric.config.ports.switch, fabric.config.cabling.endpoint_cables);
    let because = || format!("{ports} ports a switch, {cables} cables an endpoint");
    check_room("hosts and targets", fabric.endpoints(), u64::from(ports / cables), because)?;
    for endpoint in fabric.add_endpoints() {
        for switch in switches {
            fabric.join_endpoint(endpoint, *switch);
        }
    }
    Ok(())
}

fn attach_to_one(fabric: &mut Fabric<'_>, switches: &[VertexId], room: u32) -> Result<(), BuildError> {
    let because = || format!("{} switches take {room} each", switches.len());
    check_room("hosts and targets", fabric.endpoints(), u64::from(room) * switches.len() as u64, because)?;
    for (index, endpoint) in fabric.add_endpoints().into_iter().enumerate() {
        let place = match fabric.config.endpoints.placement {
            Placement::Packed => index / room as usize,
            Placement::Spread => index % switches.len(),
        };
        fabric.join_endpoint(endpoint, switches[place]);
    }
    Ok(())
}

fn attach_to_adapters(fabric: &mut Fabric<'_>, adapters: &[VertexId]) -> Result<(), BuildError> {
    let (targets, hosts) = (fabric.config.endpoints.targets, fabric.config.endpoints.hosts);
    check_room("targets", u64::from(targets), adapters.len() as u64, || "one an adapter".into())?;
    let cables = fabric.config.cabling.endpoint_cables;
    let places = places_for_hosts(fabric, adapters);
    let because = || format!("{} adapters with their free ports, {cables} cables a host", adapters.len());
    check_room("hosts", u64::from(hosts), places.len() as u64, because)?;
    for (target, adapter) in fabric.add(VertexKind::Target, 0, targets).into_iter().zip(adapters) {
        fabric.builder.board([target, *adapter], fabric.config.cabling.board_rate);
    }
    for (host, adapter) in fabric.add(VertexKind::Host, 0, hosts).into_iter().zip(places) {
        fabric.join_endpoint(host, adapter);
    }
    Ok(())
}

/// Returns the adapter of each host for which there is room.
fn places_for_hosts(fabric: &Fabric<'_>, adapters: &[VertexId]) -> Vec<VertexId> {
    let config = fabric.config;
    let (hosts, cables) = (config.endpoints.hosts, config.cabling.endpoint_cables);
    let room: Vec<(VertexId, u32)> =
        adapters.iter().map(|adapter| (*adapter, (fabric.builder.free_ports(*adapter) / cables).min(hosts))).collect();
    let rounds = room.iter().map(|(_, room)| *room).max().unwrap_or(0);
    let in_round = |round: u32| room.iter().filter(move |(_, room)| *room > round).map(|(adapter, _)| *adapter);
    match config.endpoints.placement {
        Placement::Spread => (0..rounds).flat_map(in_round).take(hosts as usize).collect(),
        Placement::Packed => {
            let whole = room.iter().flat_map(|(adapter, room)| (0..*room).map(|_| *adapter));
            whole.take(hosts as usize).collect()
        }
    }
}

fn check_room(what: &'static str, got: u64, places: u64, because: impl FnOnce() -> String) -> Result<(), BuildError> {
    if got <= places { Ok(()) } else { Err(BuildError::NoRoom { what, got, places, because: because() }) }
}
