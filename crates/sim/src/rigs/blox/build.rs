//! From a plan to the programs and models of a rack.

use super::background::Background;
use super::devices::Devices;
use super::drives::{DriveConfig, Drives, region};
use super::facts::Counts;
use super::faults::Reach;
use super::judges::Judges;
use super::network::Network;
use super::prepare::prepare;
use super::programs::Programs;
use super::swaps::Swaps;
use super::track::Tracks;
use super::wires::{Places, WireConfig};
use super::{BloxRig, Now};
use crate::rigs::seat::Seat;
use base::{Bytes, NodeId, Seed, Span, Time};
use blox::baseline::{Controller, software, vdc};
use blox::{
    Body, BorrowConfig, CacheConfig, CacheScope, Client, ClientConfig, CollectionConfig, Control, ControlConfig,
    ControlLink, Coordination, IdleConfig, IsolationConfig, LimitConfig, NetworkScheduling, NodeConfig, NodeIn, Packet,
    Placement, PlacementConfig, Policy, REPLICAS_MAX, ReplicationConfig, SchedulerConfig, ServerPlace, StorageNode,
    Switch, SwitchConfig, VssdConfig, VssdId, VssdPlace, first_fit,
};
use hardware::ssd::{DieId, Isolation, RegionConfig, SdfConfig};
use hardware::{DelaySource, NetworkLatency};
use spec::DesignName;
use spec::blox::{Blox, NetworkName, NetworkSchedulingName, PolicyName};
use std::collections::{BTreeMap, VecDeque};

/// vSSDs that the switch's tables have room for: 64 servers of 16 drives of 128 vSSDs (RackBlox, 3.3, its own count corrected).
const TABLE_ENTRIES: u32 = 131_072;
/// A round of fair queueing: the largest frame, so that every flow can send each round.
const QUANTUM: Bytes = Bytes::new(9_038);
/// The class of requests in priority scheduling, behind background traffic (RackBlox, 4.5.2).
const STORAGE_CLASS: u8 = 3;

/// Why a plan's rack cannot be built. Plans that `spec` has checked can be, save for what only the parts themselves know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rack cannot be built: {0}")]
pub struct BuildError(pub String);

impl BuildError {
    pub(in crate::rigs) fn of(error: impl std::fmt::Display) -> BuildError {
        BuildError(error.to_string())
    }
}

/// The virtual drives of a rack, and the names of its nodes.
pub(super) struct Layout {
    places: Places,
    placement: Placement,
}

impl Layout {
    pub(super) fn new(plan: &Blox) -> Layout {
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

    fn node(&self, server: usize) -> NodeId {
        self.places.storage(server)
    }

    fn names(&self, volume: &[VssdPlace]) -> Vec<(NodeId, VssdId)> {
        volume.iter().map(|place| (self.node(place.server), place.id)).collect()
    }

    fn replicas(&self, volume: &[VssdPlace]) -> [Option<(NodeId, VssdId)>; REPLICAS_MAX] {
        let mut replicas = [None; REPLICAS_MAX];
        self.names(volume).into_iter().zip(&mut replicas).for_each(|(name, place)| *place = Some(name));
        replicas
    }

    fn servers(&self) -> usize {
        self.placement.servers()
    }
}

impl BloxRig {
    /// The rack of a plan, its drives prepared. With `wire_check` every packet is encoded and decoded on each leg of its way.
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
            judges: Judges::new(plan.scheduler.window, plan.check_history),
            swaps: Swaps::new(plan, layout.servers())?,
            background: Background::new(plan, seed),
            counts: Counts::default(),
        })
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

/// The drives of a server, prepared; for each vSSD the write amplification of each window, where it had to become steady.
type PreparedDrives = (Drives, Vec<(VssdId, Vec<f64>)>);

/// The drives of all servers, those of the other rack last.
pub(super) fn drives_of_all(plan: &Blox, seed: Seed) -> Result<Vec<PreparedDrives>, BuildError> {
    let layout = Layout::new(plan);
    (0..layout.servers()).map(|server| drives_of(plan, &layout, server, seed)).collect()
}

/// The drives of a server with all vSSDs, filled and used as the plan says. Replicas have had the same writes.
fn drives_of(plan: &Blox, layout: &Layout, server: usize, seed: Seed) -> Result<PreparedDrives, BuildError> {
    let geometry = plan.geometry();
    let mut drives = Drives::new(&DriveConfig {
        count: plan.rack.ssds,
        flash: SdfConfig { geometry, timing: plan.flash.timing(), without_flash: Span::ZERO },
        direct: plan.flash.direct(),
        overhead: plan.flash.overhead(),
        page: spec::blox::PAGE,
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

fn node_config(plan: &Blox, layout: &Layout, server: usize) -> NodeConfig {
    let vssd = &plan.vssd;
    let pages = (vssd.write_cache.count() / spec::blox::PAGE.count()).max(1) as u32;
    let block = plan.flash.block_bytes().count();
    let group_blocks = (vssd.borrow.count() / block).max(1) as u32;
    NodeConfig {
        id: layout.node(server),
        vssds: layout.placement.of_server(server).map(|(slot, volume)| vssd_config(plan, layout, slot, volume)).collect(),
        cache: CacheConfig {
            pages,
            flush_above: ((f64::from(pages) * vssd.flush_above) as u32).min(pages - 1),
            scope: CacheScope::Vssd,
        },
        scheduler: SchedulerConfig { policy: policy(plan), coordinated: plan.scheduler.coordinated },
        device_depth: vssd.device_depth,
        collection: collection_config(plan, layout, server),
        borrow: (vssd.group > 1).then_some(BorrowConfig { group_blocks, keep_blocks: group_blocks }),
        idle: IdleConfig {
            alpha_permille: (plan.collection.idle_alpha * 1_000.0).round() as u32,
            threshold: plan.collection.idle_threshold,
        },
        return_window: plan.scheduler.window as usize,
        replication: replication_config(&plan.membership),
        control: Some(ControlLink {
            node: layout.places.control(),
            heartbeat: plan.membership.heartbeat,
            lease: plan.membership.lease,
        }),
        marks: true,
    }
}

fn vssd_config(plan: &Blox, layout: &Layout, slot: &VssdPlace, volume: &[VssdPlace]) -> VssdConfig {
    let vssd = &plan.vssd;
    VssdConfig {
        id: slot.id,
        pages: plan.io.working_set_blocks,
        unit: slot.drive as u32 * vssd.per_ssd + layout.placement.group_of(slot),
        streams: plan.collection.streams,
        isolation: vssd.rate.map(|rate| IsolationConfig {
            per_second: u64::from(rate),
            burst: u64::from(vssd.device_depth),
            write_cost: 1,
        }),
        epoch: 1,
        replicas: layout.replicas(volume),
    }
}

fn replication_config(membership: &spec::blox::Membership) -> ReplicationConfig {
    ReplicationConfig {
        retransmit: membership.resend,
        replay: membership.replay,
        fetch_window: membership.fetch_window as usize,
    }
}

fn policy(plan: &Blox) -> Policy {
    let (read, write) = (plan.scheduler.read_target, plan.scheduler.write_target);
    match plan.scheduler.policy {
        PolicyName::Fifo => Policy::Fifo,
        PolicyName::Deadline => Policy::Deadline { read, write },
        PolicyName::Kyber => Policy::Kyber { read, write },
    }
}

/// Servers look at their free blocks at times of their own: in step they would all ask at once.
fn collection_config(plan: &Blox, layout: &Layout, server: usize) -> CollectionConfig {
    let collection = &plan.collection;
    let parts = |share: f64| (share * 1e6).round() as u32;
    let phase = collection.check_period * (server as u64 + 1) / (layout.servers() as u64);
    CollectionConfig {
        check_period: collection.check_period,
        first_check: Time::ZERO + phase,
        regular_ppm: parts(collection.regular),
        soft_ppm: parts(collection.soft),
        stop_ppm: parts(collection.stop),
        retries: collection.retries,
        answer_timeout: collection.retry_after,
        background: collection.background,
        coordination: coordination(plan, layout, server),
    }
}

/// The other rack has a switch and a controller of its own, which are not modelled: there is one replica to collect.
fn coordination(plan: &Blox, layout: &Layout, server: usize) -> Coordination {
    use spec::blox::CoordinationName;
    if layout.placement.is_remote(server) {
        return Coordination::Uncoordinated;
    }
    match plan.collection.coordination {
        CoordinationName::Uncoordinated => Coordination::Uncoordinated,
        CoordinationName::Switch => Coordination::Switch(layout.node(server)),
        CoordinationName::Controller => Coordination::Controller(layout.places.controller()),
    }
}

fn switch_config(plan: &Blox, places: &Places) -> SwitchConfig {
    SwitchConfig {
        nodes: places.in_rack(),
        uplink: places.uplink(),
        // The wires before it have it.
        pipeline: Span::ZERO,
        recirculation: plan.rack.recirculation,
        coordination: plan.design == DesignName::Rackblox,
        scheduling: match plan.rack.scheduling {
            NetworkSchedulingName::Fifo => NetworkScheduling::Fifo,
            // A client may use what the link has, divided by the clients; its bursts are a page for each request that it keeps.
            NetworkSchedulingName::TokenBucket => NetworkScheduling::TokenBucket {
                rate: base::Rate::bps(plan.rack.rate.as_bps() / u64::from(plan.rack.clients)),
                burst: QUANTUM * 16,
            },
            NetworkSchedulingName::FairQueue => NetworkScheduling::FairQueue { quantum: QUANTUM },
            NetworkSchedulingName::Priority => NetworkScheduling::Priority { storage: STORAGE_CLASS },
        },
        queue_bytes: plan.rack.switch_queue,
        table_entries: TABLE_ENTRIES,
    }
}

fn control_config(plan: &Blox, layout: &Layout, groups: Vec<Vec<(NodeId, VssdId)>>) -> ControlConfig {
    let place = |server: usize| ServerPlace {
        node: layout.node(server),
        rack: u32::from(layout.placement.is_remote(server)),
        room: layout.placement.room(server, plan.geometry().channels),
    };
    let next_vssd = layout.placement.vssds().map(|slot| slot.id.0 + 1).max().unwrap_or(0);
    ControlConfig {
        own: layout.places.control(),
        rack: 0,
        servers: (0..layout.servers()).map(place).collect(),
        groups,
        clients: (0..layout.places.clients).map(NodeId).collect(),
        beat: plan.membership.heartbeat,
        misses: plan.membership.misses,
        lease: plan.membership.lease,
        resend: plan.membership.resend,
        replace_after: plan.membership.replace_after,
        next_vssd,
    }
}

fn client_config(plan: &Blox, places: &Places, node: NodeId, groups: &[Vec<(NodeId, VssdId)>]) -> ClientConfig {
    let membership = &plan.membership;
    let limit = (plan.design != DesignName::Rackblox).then(|| LimitConfig {
        controller: places.controller(),
        period: plan.controller.period,
        burst: plan.vssd.device_depth,
        write_cost: plan.controller.write_cost,
    });
    ClientConfig {
        node,
        rack_nodes: places.in_rack(),
        volumes: groups.to_vec(),
        read_timeout: membership.client_timeout,
        write_timeout: membership.client_timeout,
        attempts_max: membership.client_attempts,
        silence: membership.client_silence,
        probe_period: membership.client_timeout,
        limit,
    }
}

fn controller(
    plan: &Blox,
    layout: &Layout,
    groups: Vec<Vec<(NodeId, VssdId)>>,
) -> Result<Option<Controller>, vdc::VdcConfigError> {
    if plan.design == DesignName::Rackblox {
        return Ok(None);
    }
    let capacity = plan.controller.capacity.map_or(plan.reads_per_second() * f64::from(plan.vssd.group), f64::from);
    let mut devices: BTreeMap<(usize, usize, u32), Vec<VssdId>> = BTreeMap::new();
    for slot in layout.placement.vssds().filter(|slot| !layout.placement.is_remote(slot.server)) {
        devices.entry((slot.server, slot.drive, layout.placement.group_of(slot))).or_default().push(slot.id);
    }
    let config = vdc::VdcConfig {
        node: layout.places.controller(),
        clients: layout.places.clients,
        period: plan.controller.period,
        write_cost: plan.controller.write_cost,
        page_message: page_message(),
        links: (0..layout.places.servers)
            .map(|server| vdc::Link { server: layout.places.server(server), rate: plan.rack.rate })
            .collect(),
        devices: devices.into_values().map(|vssds| vdc::Device { units_per_second: capacity as u64, vssds }).collect(),
        volumes: groups.into_iter().map(|replicas| vdc::Volume { replicas }).collect(),
    };
    Ok(Some(match plan.design {
        DesignName::RackbloxSoftware => Controller::Software(software::Controller::new(config)?),
        _ => Controller::Vdc(vdc::Controller::new(config)?),
    }))
}

/// What a page takes on a link, with its headers.
fn page_message() -> Bytes {
    let body = Body::Write { tag: blox::Tag(0), page: blox::Page(0), value: blox::Value(0) };
    Packet { vssd: VssdId(0), latency_ns: 0, source: NodeId(0), target: NodeId(0), body }.wire_bytes()
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
