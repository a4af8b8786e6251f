//! From `rack.toml` to the configurations of the rack's programs.
//!
//! Nodes are numbered: storage servers first, then doors, the control plane last, behind the
//! switch's uplink. A volume's replicas have the vSSDs `volume * REPLICAS_MAX + rank`.

use base::{Bytes, NodeId, Rate, Span, Time};
use blox::{
    CacheConfig, CacheScope, ClientConfig, CollectionConfig, ControlConfig, ControlLink, Coordination, Grain,
    IdleConfig, NetworkScheduling, NodeConfig, Policy, REPLICAS_MAX, ReplicationConfig, SchedulerConfig, ServerPlace,
    SwitchConfig, VssdConfig, VssdId, WriteAck,
};
use hardware::ssd::{Geometry, PageTimes, SdfConfig, Suspension, Timing};
use plan::rack::{PAGE, Rack};
use std::net::SocketAddr;

/// Time during which a request without an answer is sent again; then the host has an error.
const GIVE_UP: Span = Span::secs(30);
/// How long servers know which writes they have seen.
const REMEMBER: Span = Span::secs(60);
/// Interval at which requests without an answer are sent again.
const RESEND: Span = Span::ms(50);
/// Interval at which a door asks for the members of its volumes.
const HELLO: Span = Span::ms(200);
/// Interval between looks at free blocks. The paper's 30 s fit drives of a terabyte.
const CHECK: Span = Span::ms(100);
/// Free blocks below which a vSSD must collect, would like to, and stops, as parts of the blocks
/// that its volume leaves free when it is full: all of them can be won back.
const MUST: f64 = 0.3;
const WOULD: f64 = 0.5;
const STOP: f64 = 0.75;

/// Where each node receives packets.
pub(crate) fn addresses(rack: &Rack) -> Vec<SocketAddr> {
    let storage = rack.storage.iter().map(|server| server.listen);
    let doors = rack.doors.iter().map(|door| door.listen);
    storage.chain(doors).chain([rack.control.listen]).collect()
}

pub(crate) fn control_node(rack: &Rack) -> NodeId {
    NodeId((rack.storage.len() + rack.doors.len()) as u32)
}

pub(crate) fn door_node(rack: &Rack, door: usize) -> NodeId {
    NodeId((rack.storage.len() + door) as u32)
}

fn vssd_of(volume: usize, rank: usize) -> VssdId {
    VssdId((volume * REPLICAS_MAX + rank) as u32)
}

/// The volume that a vSSD was made for at the start; none for one that replaces a lost one.
pub(crate) fn volume_of(rack: &Rack, vssd: VssdId) -> Option<usize> {
    Some(vssd.index() / REPLICAS_MAX).filter(|volume| *volume < rack.volumes.len())
}

fn groups(rack: &Rack) -> Vec<Vec<(NodeId, VssdId)>> {
    let group = |(volume, plan): (usize, &plan::rack::Volume)| {
        let replicas = plan.replicas.iter().enumerate();
        replicas.map(|(rank, server)| (NodeId(*server as u32), vssd_of(volume, rank))).collect()
    };
    rack.volumes.iter().enumerate().map(group).collect()
}

fn next_vssd(rack: &Rack) -> u32 {
    (rack.volumes.len() * REPLICAS_MAX) as u32
}

/// The pages of a volume.
pub(crate) fn pages(rack: &Rack, volume: usize) -> u64 {
    rack.volumes[volume].size.count() / PAGE.count()
}

pub(crate) fn switch(rack: &Rack) -> SwitchConfig {
    let room: u32 = rack.storage.iter().map(|server| server.room).sum();
    let nodes = control_node(rack).0;
    SwitchConfig {
        nodes,
        uplink: NodeId(nodes),
        // The machine takes the time that it takes.
        pipeline: Span::ZERO,
        recirculation: Span::ZERO,
        coordination: rack.switch.coordination,
        scheduling: NetworkScheduling::Fifo,
        queue_bytes: Bytes::kib(1_024),
        table_entries: next_vssd(rack) + room,
    }
}

pub(crate) fn control(rack: &Rack) -> ControlConfig {
    let servers = rack.storage.iter().enumerate();
    let place = |(server, plan): (usize, &plan::rack::Storage)| ServerPlace {
        node: NodeId(server as u32),
        rack: 0,
        room: plan.room,
    };
    let control = &rack.control;
    ControlConfig {
        own: control_node(rack),
        rack: 0,
        servers: servers.map(place).collect(),
        groups: groups(rack),
        clients: (0..rack.doors.len()).map(|door| door_node(rack, door)).collect(),
        beat: control.beat,
        misses: control.misses,
        lease: control.lease,
        resend: control.resend,
        replace_after: control.replace_after,
        next_vssd: next_vssd(rack),
    }
}

/// A vSSD of a server. Its channels are those of all others here: they collect together.
pub(crate) fn vssd(rack: &Rack, server: usize, id: VssdId, pages: u64) -> VssdConfig {
    let mut replicas = [None; REPLICAS_MAX];
    let group = volume_of(rack, id).map(|volume| groups(rack)[volume].clone());
    let group = group.unwrap_or_else(|| vec![(NodeId(server as u32), id)]);
    replicas.iter_mut().zip(group).for_each(|(place, replica)| *place = Some(replica));
    let streams = rack.storage[server].flash.channels;
    VssdConfig { id, pages, unit: 0, streams, isolation: None, epoch: 1, replicas }
}

/// The vSSDs that a server has from the start, with their pages.
pub(crate) fn vssds_of(rack: &Rack, server: usize) -> Vec<(VssdId, u64)> {
    let volumes = rack.volumes.iter().enumerate();
    let here = volumes.filter_map(|(volume, plan)| {
        let rank = plan.replicas.iter().position(|replica| *replica == server)?;
        Some((vssd_of(volume, rank), pages(rack, volume)))
    });
    here.collect()
}

pub(crate) fn node(rack: &Rack, server: usize, vssds: Vec<VssdConfig>) -> NodeConfig {
    let plan = &rack.storage[server];
    let id = NodeId(server as u32);
    let control = &rack.control;
    NodeConfig {
        id,
        vssds,
        cache: CacheConfig {
            pages: (plan.cache.count() / PAGE.count()).clamp(1, u64::from(u32::MAX)) as u32,
            // DRAM is gone with its process: it holds what the device is about to take.
            flush_above: 0,
            scope: CacheScope::Vssd,
        },
        write_ack: WriteAck::Dram,
        scheduler: SchedulerConfig { policy: Policy::Fifo, coordinated: true },
        device_depth: 32,
        collection: collection(rack, server),
        borrow: None,
        idle: IdleConfig { alpha_permille: 500, threshold: Span::ms(30) },
        return_window: blox::RETURN_WINDOW,
        adds_labels: false,
        replication: ReplicationConfig { retransmit: Span::ms(20), replay: Span::ms(200), fetch_window: 64 },
        control: Some(ControlLink { node: control_node(rack), heartbeat: control.beat, lease: control.lease }),
        marks: false,
        remember: Some(REMEMBER),
    }
}

fn collection(rack: &Rack, server: usize) -> CollectionConfig {
    let free = rack.storage[server].flash.spare;
    let parts = |share: f64| (free * share * 1e6) as u32;
    let phase = CHECK * (server as u64 + 1) / rack.storage.len() as u64;
    let node = NodeId(server as u32);
    CollectionConfig {
        check_period: CHECK,
        // In step they would all ask at once.
        first_check: Time::ZERO + phase,
        regular_ppm: parts(MUST),
        soft_ppm: parts(WOULD),
        stop_ppm: parts(STOP),
        retries: 3,
        answer_timeout: Span::ms(5),
        background: true,
        background_ppm: parts(STOP),
        coordination: if rack.switch.coordination { Coordination::Switch(node) } else { Coordination::Uncoordinated },
        grain: Grain::Die,
    }
}

pub(crate) fn client(rack: &Rack, door: usize) -> ClientConfig {
    ClientConfig {
        node: door_node(rack, door),
        rack_nodes: control_node(rack).0,
        volumes: groups(rack),
        read_timeout: RESEND,
        write_timeout: RESEND * 2,
        attempts_max: u32::MAX,
        silence: u32::MAX,
        probe_period: RESEND,
        limit: None,
        adds_labels: false,
        resend: Some(GIVE_UP),
        hello: Some((control_node(rack), HELLO)),
    }
}

/// The emulated flash of a server: one die a channel, whose blocks all vSSDs share.
pub(crate) fn flash(rack: &Rack, server: usize) -> SdfConfig {
    let flash = &rack.storage[server].flash;
    let block = PAGE.count() * u64::from(flash.pages_per_block) * u64::from(flash.channels);
    // No operation takes no time in the model: what is not imposed takes a nanosecond.
    let least = |span: Span| span.max(Span::ns(1));
    SdfConfig {
        geometry: Geometry {
            channels: flash.channels,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: (flash.size.count() / block).min(u64::from(u32::MAX)) as u32,
            pages_per_block: flash.pages_per_block,
            page: PAGE,
            unit: PAGE,
        },
        timing: Timing {
            pages: vec![PageTimes { read: least(flash.read), program: least(flash.program) }],
            erase: flash.erase,
            channel: Rate::gbps(1_000),
            command: Span::ZERO,
            suspension: Suspension::None,
        },
        without_flash: Span::ZERO,
    }
}
