//! From `rack.toml` to the configurations of the rack's programs.
//!
//! Nodes are numbered: storage servers first, then doors, the control plane last, behind the
//! switch's uplink. A volume's replicas have the vSSDs `volume * REPLICAS_MAX + rank`; one that
//! replaces a lost one has a number above those of all volumes that there may ever be.

use base::{Bytes, NodeId, Rate, Seed, Span, Time};
use blox::{
    CacheConfig, CacheScope, ClientConfig, CollectionConfig, ControlConfig, ControlLink, Coordination, Grain,
    IdleConfig, NetworkScheduling, NodeConfig, Policy, REPLICAS_MAX, ReplicationConfig, SchedulerConfig, ServerPlace,
    SwitchConfig, VssdConfig, VssdId, WriteAck,
};
use hardware::ssd::{Geometry, PageTimes, SdfConfig, Suspension, Timing};
use plan::rack::{PAGE, Rack, VOLUMES_MAX};
use std::num::NonZero;

/// The number of the first vSSD that replaces a lost one.
const NEXT_VSSD: u32 = (VOLUMES_MAX * REPLICAS_MAX) as u32;
/// Replacements in the life of a rack that the switch has places for. Its tables are arrays, of
/// which each replacement takes a place of every volume. They take 11 MB.
const REPLACEMENTS: u32 = 256;
/// Time during which a request without an answer is sent again; then the host has an error.
const GIVE_UP: Span = Span::secs(30);
/// How long servers know the writes of a door from which nothing comes: longer than it sends one
/// again.
const REMEMBER: Span = Span::secs(60);
/// Interval at which requests without an answer are sent again.
const RESEND: Span = Span::ms(50);
/// Interval at which a door asks for the members of its volumes.
const HELLO: Span = Span::ms(200);
/// How long a new server has to start, on whatever machine: without it, a volume waits so long.
const FIRST_BEAT: Span = Span::secs(10);
/// Interval between looks at free blocks. The paper's 30 s fit drives of a terabyte.
const CHECK: Span = Span::ms(100);
/// Free blocks below which a vSSD must collect, would like to, and stops, as parts of the blocks
/// that its volume leaves free when it is full: all of them can be won back.
const MUST: f64 = 0.3;
const WOULD: f64 = 0.5;
const STOP: f64 = 0.75;

/// Tells racks apart, and roles with different versions of a rack's file: it comes of all
/// addresses, of what each volume is, and of whether packets are sealed. Paths, times, and where
/// sockets are bound may differ from machine to machine.
pub(crate) fn tag(rack: &Rack) -> u64 {
    let addresses = rack.places().into_iter().map(|place| place.reached);
    let volumes = rack.volumes.iter().map(|volume| format!("{volume:?}"));
    let sealed = rack.secret.iter().map(|_| "sealed".into());
    addresses.chain(volumes).chain(sealed).fold(Seed(0), |seed, text| seed.child(&text)).0
}

/// Identifies a rack and all that its file says of its roles, wherever their files are.
pub(crate) fn version(rack: &Rack) -> u64 {
    let mut said = Rack { folder: "".into(), secret: None, journal: None, ..rack.clone() };
    said.storage.iter_mut().for_each(|server| server.flash.path = None);
    Seed(tag(rack)).child(&format!("{:?}", (said.switch, said.control, said.storage, said.volumes))).0
}

/// The name of the role at a node.
pub(crate) fn name_of(rack: &Rack, node: NodeId) -> String {
    let storage = rack.storage.iter().map(|server| &*server.name);
    let doors = rack.doors.iter().map(|door| &*door.name);
    storage.chain(doors).chain(["control", "switch"]).nth(node.index()).unwrap_or_default().into()
}

pub(crate) fn control_node(rack: &Rack) -> NodeId {
    NodeId((rack.storage.len() + rack.doors.len()) as u32)
}

/// The place of the switch in [`Rack::places`]. No packet names it: all are sent to it.
pub(crate) fn switch_node(rack: &Rack) -> NodeId {
    NodeId(control_node(rack).0 + 1)
}

pub(crate) fn door_node(rack: &Rack, door: usize) -> NodeId {
    NodeId((rack.storage.len() + door) as u32)
}

fn vssd_of(volume: usize, rank: usize) -> VssdId {
    VssdId((volume * REPLICAS_MAX + rank) as u32)
}

/// The volume that a vSSD holds; none if the rack has no such volume.
pub(crate) fn volume_of(rack: &Rack, vssd: VssdId) -> Option<usize> {
    let volume = match vssd.0.checked_sub(NEXT_VSSD) {
        Some(new) => new as usize % VOLUMES_MAX,
        None => vssd.index() / REPLICAS_MAX,
    };
    Some(volume).filter(|volume| *volume < rack.volumes.len())
}

fn groups(rack: &Rack) -> Vec<Vec<(NodeId, VssdId)>> {
    let group = |(volume, plan): (usize, &plan::rack::Volume)| {
        let replicas = plan.replicas.iter().enumerate();
        replicas.map(|(rank, server)| (NodeId(*server as u32), vssd_of(volume, rank))).collect()
    };
    rack.volumes.iter().enumerate().map(group).collect()
}

/// The pages of a volume.
pub(crate) fn pages(rack: &Rack, volume: usize) -> u64 {
    rack.volumes[volume].size.count() / PAGE.count()
}

pub(crate) fn switch(rack: &Rack) -> SwitchConfig {
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
        table_entries: NEXT_VSSD + REPLACEMENTS * VOLUMES_MAX as u32,
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
        patience: control.patience,
        lease: control.lease,
        resend: control.resend,
        first_beat: FIRST_BEAT,
        replace_after: control.replace_after,
        next_vssd: NEXT_VSSD,
        vssd_step: VOLUMES_MAX as u32,
    }
}

/// A vSSD of a server. Its channels are those of all others here: they collect together.
pub(crate) fn vssd(rack: &Rack, server: usize, id: VssdId, pages: u64) -> VssdConfig {
    let mut replicas = [None; REPLICAS_MAX];
    let first = groups(rack).into_iter().find(|group| group.iter().any(|(_, member)| *member == id));
    // One that replaces a lost one hears from the control plane who its peers are.
    let group = first.unwrap_or_else(|| vec![(NodeId(server as u32), id)]);
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
        scrub: Some(plan.scrub),
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

/// `life` tells one start of a door from all others.
pub(crate) fn client(rack: &Rack, door: usize, life: NonZero<u32>) -> ClientConfig {
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
        life,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racks_that_differ_in_an_address_or_a_volume_have_other_tags() {
        let with = |port: u16, size: &str| {
            let text = format!(
                "[[storage]]\nname = 's'\nlisten = '127.0.0.1:{port}'\n\
                 [[volume]]\nname = 'v'\nsize = '{size}'\nreplicas = ['s']\n"
            );
            tag(&plan::rack::parse("rack.toml", &text).expect("a rack"))
        };
        assert_eq!(with(7_010, "1MiB"), with(7_010, "1024KiB"));
        assert_ne!(with(7_010, "1MiB"), with(7_011, "1MiB"));
        assert_ne!(with(7_010, "1MiB"), with(7_010, "2MiB"));
    }

    #[test]
    fn a_vssd_tells_its_volume_and_no_volume_that_comes_later_takes_its_number() {
        let rack = |volumes: usize| {
            let volume = |name| format!("[[volume]]\nname = 'v{name}'\nsize = '1MiB'\nreplicas = ['s']\n");
            let volumes: String = (0..volumes).map(volume).collect();
            let storage = "[[storage]]\nname = 's'\nlisten = '127.0.0.1:7010'\n[storage.flash]\nsize = '64GiB'\n";
            plan::rack::parse("rack.toml", &format!("{storage}{volumes}")).expect("a rack")
        };
        let (small, large) = (rack(1), rack(VOLUMES_MAX));
        let [few, many] = [&small, &large].map(control);
        assert_eq!((few.next_vssd, few.vssd_step), (many.next_vssd, many.vssd_step));
        let last = VOLUMES_MAX - 1;
        assert!(vssd_of(last, REPLICAS_MAX - 1).0 < many.next_vssd);
        for (place, volume) in [(0, Some(0)), (last as u32, Some(last))] {
            for new in 0..3 {
                let vssd = VssdId(many.next_vssd + new * many.vssd_step + place);
                assert_eq!(volume_of(&large, vssd), volume);
                assert_eq!(volume_of(&small, vssd), volume.filter(|volume| *volume == 0));
            }
        }
        assert_eq!(volume_of(&large, vssd_of(last, 2)), Some(last));
        assert_eq!(volume_of(&small, vssd_of(1, 0)), None);
    }
}
