//! From a plan to the configurations of a rack's programs.

use super::layout::Layout;
use super::wires::Places;
use base::{Bytes, NodeId, Span, Time};
use blox::baseline::{Controller, software, vdc};
use blox::{
    Body, BorrowConfig, CacheConfig, CacheScope, ClientConfig, CollectionConfig, ControlConfig, ControlLink,
    Coordination, Emulation, Grain, IdleConfig, IsolationConfig, LimitConfig, NetworkMode, NetworkScheduling,
    NodeConfig, Packet, Policy, ReplicationConfig, SchedulerConfig, ServerPlace, SwitchConfig, VssdConfig, VssdId,
    VssdPlace, WriteAck,
};
use plan::DesignName;
use plan::blox::{Blox, GrainName, NetworkModeName, NetworkSchedulingName, PolicyName, WriteAckName};
use std::collections::BTreeMap;

/// vSSDs that the switch's tables have room for: 64 servers of 16 drives of 128 vSSDs (RackBlox,
/// 3.3, its own count corrected).
pub(super) const TABLE_ENTRIES: u32 = 131_072;
/// A round of fair queueing: the largest frame, so that every flow can send each round.
const QUANTUM: Bytes = Bytes::new(9_038);
/// The class of requests in priority scheduling, behind background traffic (RackBlox, 4.5.2).
const STORAGE_CLASS: u8 = 3;

pub(super) fn node_config(plan: &Blox, layout: &Layout, server: usize) -> NodeConfig {
    let vssd = &plan.vssd;
    let pages = (vssd.write_cache.count() / plan::blox::PAGE.count()).max(1) as u32;
    let block = plan.flash.block_bytes().count();
    let group_blocks = (vssd.borrow.count() / block).max(1) as u32;
    NodeConfig {
        id: layout.node(server),
        vssds: layout
            .placement
            .of_server(server)
            .map(|(slot, volume)| vssd_config(plan, layout, slot, volume))
            .collect(),
        cache: CacheConfig {
            pages,
            flush_above: ((f64::from(pages) * vssd.flush_above) as u32).min(pages - 1),
            scope: CacheScope::Vssd,
        },
        write_ack: match vssd.write_ack {
            WriteAckName::Dram => WriteAck::Dram,
            WriteAckName::Dequeued => WriteAck::Dequeued,
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
        adds_labels: emulation(plan).adds_labels(),
        replication: replication_config(&plan.membership),
        control: Some(control_link(plan, layout)),
        marks: true,
        remember: None,
        scrub: None,
    }
}

fn control_link(plan: &Blox, layout: &Layout) -> ControlLink {
    let membership = &plan.membership;
    ControlLink { node: layout.places.control(), heartbeat: membership.heartbeat, lease: membership.lease }
}

pub(super) fn emulation(plan: &Blox) -> Emulation {
    let mode = match plan.emulate.mode {
        NetworkModeName::Label => NetworkMode::Label,
        NetworkModeName::Delay => NetworkMode::Delay,
    };
    Emulation { mode, redirects: plan.emulate.redirects }
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

fn replication_config(membership: &plan::blox::Membership) -> ReplicationConfig {
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
        background_ppm: parts(collection.background_below),
        coordination: coordination(plan, layout, server),
        grain: match collection.grain {
            GrainName::Die => Grain::Die,
            GrainName::Channel => Grain::Channel,
        },
    }
}

/// The other rack has a switch and a controller of its own, which are not modelled: there is one
/// replica to collect.
fn coordination(plan: &Blox, layout: &Layout, server: usize) -> Coordination {
    use plan::blox::CoordinationName;
    if layout.placement.is_remote(server) {
        return Coordination::Uncoordinated;
    }
    match plan.collection.coordination {
        CoordinationName::Uncoordinated => Coordination::Uncoordinated,
        CoordinationName::Switch => Coordination::Switch(layout.node(server)),
        CoordinationName::Controller => Coordination::Controller(layout.places.controller()),
    }
}

pub(super) fn switch_config(plan: &Blox, places: &Places) -> SwitchConfig {
    SwitchConfig {
        nodes: places.in_rack(),
        uplink: places.uplink(),
        // The wires before it have it.
        pipeline: Span::ZERO,
        recirculation: plan.rack.recirculation,
        coordination: plan.design == DesignName::Rackblox,
        scheduling: match plan.rack.scheduling {
            NetworkSchedulingName::Fifo => NetworkScheduling::Fifo,
            // A client may use what the link has, divided by the clients; its bursts are a page for
            // each request that it keeps.
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

pub(super) fn control_config(plan: &Blox, layout: &Layout, groups: Vec<Vec<(NodeId, VssdId)>>) -> ControlConfig {
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
        patience: plan.membership.heartbeat * u64::from(plan.membership.misses),
        lease: plan.membership.lease,
        resend: plan.membership.resend,
        first_beat: Span::ZERO,
        replace_after: plan.membership.replace_after,
        next_vssd,
        vssd_step: 1,
    }
}

pub(super) fn client_config(
    plan: &Blox,
    places: &Places,
    node: NodeId,
    groups: &[Vec<(NodeId, VssdId)>],
) -> ClientConfig {
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
        adds_labels: emulation(plan).adds_labels(),
        resend: None,
        life: std::num::NonZero::<u32>::MIN,
        hello: None,
    }
}

pub(super) fn controller(
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
    let body = Body::Write { tag: blox::Tag(0), page: blox::Page(0), value: blox::Value(0), session: None };
    Packet { vssd: VssdId(0), latency_ns: 0, source: NodeId(0), target: NodeId(0), body }.wire_bytes()
}
