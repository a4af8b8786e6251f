//! The virtual drives of a rack and the names of its nodes.

use super::wires::Places;
use base::NodeId;
use blox::{Placement, PlacementConfig, REPLICAS_MAX, VssdId, VssdPlace};
use plan::blox::Blox;

/// The virtual drives of a rack, and the names of its nodes.
pub struct Layout {
    /// The names.
    pub places: Places,
    /// The virtual drives.
    pub placement: Placement,
}

impl Layout {
    pub fn new(plan: &Blox) -> Layout {
        let placement = Placement::new(PlacementConfig {
            servers: plan.rack.servers,
            drives: plan.rack.ssds,
            vssds: plan.vssd.per_ssd,
            group: plan.vssd.group,
            channels: plan.vssd.channels,
            is_remote: plan.rack.remote_replica,
        });
        let (clients, servers) = (plan.rack.clients, plan.rack.servers);
        Layout { places: Places { clients, servers, remote: placement.remote_servers() }, placement }
    }

    pub fn node(&self, server: usize) -> NodeId {
        self.places.storage(server)
    }

    pub fn names(&self, volume: &[VssdPlace]) -> Vec<(NodeId, VssdId)> {
        volume.iter().map(|place| (self.node(place.server), place.id)).collect()
    }

    pub fn replicas(&self, volume: &[VssdPlace]) -> [Option<(NodeId, VssdId)>; REPLICAS_MAX] {
        let mut replicas = [None; REPLICAS_MAX];
        self.names(volume).into_iter().zip(&mut replicas).for_each(|(name, place)| *place = Some(name));
        replicas
    }

    pub fn servers(&self) -> usize {
        self.placement.servers()
    }
}
