//! From a plan to the programs and models of a rack.

use super::background::Background;
use super::configs::{client_config, control_config, controller, emulation, node_config, switch_config};
use super::devices::Devices;
use super::drives::{DriveConfig, Drives, region};
use super::facts::Counts;
use super::faults::Reach;
use super::judges::Judges;
use super::layout::Layout;
use super::network::Network;
use super::prepare::prepare;
use super::programs::Programs;
use super::swaps::Swaps;
use super::track::Tracks;
use super::wires::{Places, WireConfig};
use super::{BloxRig, Now};
use crate::rigs::seat::Seat;
use base::{NodeId, Seed, Span};
use blox::{Body, Client, Control, NodeIn, Packet, REPLICAS_MAX, StorageNode, Switch, VssdConfig, VssdId, first_fit};
use hardware::ssd::{DieId, Isolation, RegionConfig, SdfConfig};
use hardware::{DelaySource, NetworkLatency};
use plan::blox::{Blox, NetworkName};
use std::collections::VecDeque;

/// Why a plan's rack cannot be built. Plans that `plan` has checked can be, save for what only the
/// parts themselves know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rack cannot be built: {0}")]
pub struct BuildError(pub String);

impl BuildError {
    pub(in crate::rigs) fn of(error: impl std::fmt::Display) -> BuildError {
        BuildError(error.to_string())
    }
}

impl BloxRig {
    /// The rack of a plan, its drives prepared. With `wire_check` every packet is encoded and
    /// decoded on each leg of its way.
    ///
    /// # Errors
    /// When a part refuses its numbers.
    pub fn new(plan: &Blox, seed: Seed, wire_check: bool) -> Result<BloxRig, BuildError> {
        let layout = Layout::new(plan);
        let places = layout.places;
        let drives: Vec<Drives> = drives_of_all(plan, seed)?.into_iter().map(|(drives, _)| drives).collect();
        let volumes = layout.placement.volumes().iter();
        let groups: Vec<Vec<(NodeId, VssdId)>> = volumes.map(|volume| layout.names(volume)).collect();
        let programs = Programs {
            clients: clients_of(plan, &places, &groups)?,
            switch: Seat::new(Switch::new(switch_config(plan, &places)).map_err(BuildError::of)?),
            control: Seat::new(Control::new(control_config(plan, &layout, groups.clone())).map_err(BuildError::of)?),
            controller: controller(plan, &layout, groups).map_err(BuildError::of)?.map(Seat::new),
            servers: servers_of(plan, &layout)?,
            inputs: VecDeque::new(),
        };
        Ok(BloxRig {
            plan: plan.clone(),
            places,
            programs,
            reach: Reach::new(layout.servers()),
            devices: Devices::new(drives),
            network: Network::new(wire_config(plan, places, seed), wire_check),
            tracks: Tracks::default(),
            judges: Judges::new(plan.scheduler.window, emulation(plan), plan.check_history),
            swaps: Swaps::new(plan, layout.servers())?,
            background: Background::new(plan, seed),
            counts: Counts::default(),
        })
    }

    /// The same whose programs follow these policies of a user's own.
    pub fn with_policies(mut self, policies: &blox::Policies) -> BloxRig {
        self.programs.switch.set_policy(policies.replica.clone());
        self.programs.servers.iter_mut().for_each(|server| server.set_policies(policies.clone()));
        self
    }

    /// Servers register their vSSDs with the switch (RackBlox, 3.3).
    pub(super) fn announce(&mut self, context: Now<'_, '_>) {
        let layout = Layout::new(&self.plan);
        for volume in layout.placement.volumes() {
            let in_rack: Vec<_> = volume.iter().filter(|place| !layout.placement.is_remote(place.server)).collect();
            let [one, other] = in_rack.as_slice() else { continue };
            for (own, replica) in [(one, other), (other, one)] {
                let (server, replica_server) = (layout.node(own.server), layout.node(replica.server));
                let body = Body::Create { server, replica: replica.id, replica_server };
                let packet = Packet { vssd: own.id, latency_ns: 0, source: server, target: server, body };
                self.send(server, packet, context);
            }
        }
    }

    /// Makes room for a replica that was lost elsewhere, on channels that nobody uses.
    pub(super) fn adopt(&mut self, index: usize, vssd: VssdId) {
        let drives = &mut self.devices[index];
        let unused = (0..drives.count()).map(|drive| drives.spare_channels(drive));
        let Some((drive, channels)) = first_fit(unused, self.plan.vssd.channels) else {
            self.counts.not_adopted += 1;
            return;
        };
        let dies = drives.dies_of(&channels);
        let streams = self.plan.collection.streams.min(dies.len() as u32);
        let rest = region_config(&self.plan, Seed(u64::from(vssd.0)));
        if drives.create(vssd, drive, region(dies, None, rest), streams).is_err() {
            self.counts.not_adopted += 1;
            return;
        }
        self.counts.adopted += 1;
        let unit = u32::MAX - vssd.0;
        let replicas = [None; REPLICAS_MAX];
        let pages = self.plan.io.working_set_blocks;
        let config = VssdConfig { id: vssd, pages, unit, streams, isolation: None, epoch: 1, replicas };
        self.programs.inputs.push_back((index, NodeIn::Adopt(config)));
        self.report_blocks(index, vssd);
    }
}

fn servers_of(plan: &Blox, layout: &Layout) -> Result<Vec<Seat<StorageNode>>, BuildError> {
    let server = |server| StorageNode::new(node_config(plan, layout, server)).map(Seat::new).map_err(BuildError::of);
    (0..layout.servers()).map(server).collect()
}

fn clients_of(plan: &Blox, places: &Places, groups: &[Vec<(NodeId, VssdId)>]) -> Result<Vec<Seat<Client>>, BuildError> {
    let client = |client| {
        let config = client_config(plan, places, NodeId(client), groups);
        Client::new(config).map(Seat::new).map_err(BuildError::of)
    };
    (0..places.clients).map(client).collect()
}

fn wire_config(plan: &Blox, places: Places, seed: Seed) -> WireConfig {
    WireConfig {
        places,
        rate: plan.rack.rate,
        host: plan.rack.host,
        propagation: plan.rack.propagation,
        pipeline: plan.rack.pipeline,
        remote_delay: plan.rack.remote_delay,
        network: network_of(plan),
        emulation: emulation(plan),
        seed,
    }
}

/// What all regions have in common.
fn region_config(plan: &Blox, seed: Seed) -> RegionConfig {
    RegionConfig {
        dies: Vec::new(),
        isolation: Isolation::Hardware,
        logical_units: plan.region_units(),
        victim: plan.flash.victim.policy(),
        hot_cold: plan.flash.hot_cold,
        endurance: None,
        seed,
    }
}

/// The drives of a server, prepared; for each vSSD the write amplification of each window, where it
/// had to become steady.
type PreparedDrives = (Drives, Vec<(VssdId, Vec<f64>)>);

/// The drives of all servers, those of the other rack last.
pub(super) fn drives_of_all(plan: &Blox, seed: Seed) -> Result<Vec<PreparedDrives>, BuildError> {
    let layout = Layout::new(plan);
    (0..layout.servers()).map(|server| drives_of(plan, &layout, server, seed)).collect()
}

/// The drives of a server with all vSSDs, filled and used as the plan says. Replicas have had the
/// same writes.
fn drives_of(plan: &Blox, layout: &Layout, server: usize, seed: Seed) -> Result<PreparedDrives, BuildError> {
    let geometry = plan.geometry();
    let mut drives = Drives::new(&DriveConfig {
        count: plan.rack.ssds,
        flash: SdfConfig { geometry, timing: plan.flash.timing(), without_flash: Span::ZERO },
        direct: plan.flash.direct(),
        overhead: plan.flash.overhead(),
        page: plan::blox::PAGE,
        burst: plan.collection.burst,
    })?;
    let mut prepared = Vec::new();
    for (slot, volume) in layout.placement.of_server(server) {
        let channels: Vec<u32> = layout.placement.channels_of(slot).collect();
        let dies: Vec<DieId> = drives.dies_of(&channels);
        let share = layout.placement.share_of(slot, geometry.blocks_per_die());
        // The victim policy draws alike for replicas, too.
        let seed = seed.child(&format!("volume/{}", volume[0].id.0));
        let rest = region_config(plan, seed.child("victims"));
        drives
            .create(slot.id, slot.drive, region(dies, share, rest), plan.collection.streams)
            .map_err(BuildError::of)?;
        prepared.push((slot.id, prepare(plan, &mut drives, slot.id, seed)?));
    }
    Ok((drives, prepared))
}

fn network_of(plan: &Blox) -> Option<DelaySource> {
    if let Some(recorded) = &plan.recorded_network {
        return Some(DelaySource::Recorded(recorded.delays.clone(), plan.rack.network_scale));
    }
    let law = match plan.rack.network {
        NetworkName::None => return None,
        NetworkName::Fast => NetworkLatency::Fast,
        NetworkName::Medium => NetworkLatency::Medium,
        NetworkName::Slow => NetworkLatency::Slow,
    };
    Some(DelaySource::Model(NetworkLatency::Scaled { factor: law.factor() * plan.rack.network_scale }))
}
