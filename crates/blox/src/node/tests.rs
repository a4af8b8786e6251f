//! Stories of one server with scripted packets and device answers; `tests/rack.rs` is about several
//! servers that fail.

use super::*;
use crate::cache::CacheConfig;
use crate::collect::{CollectionConfig, Coordination, Grain};
use crate::groups::{BlockMove, BorrowConfig};
use crate::id::{Origin, Page, Tag, Value};
use crate::packet::{CollectionNote, REPLICAS_MAX, Refusal, ReplicaMessage, Session, Timestamp};
use crate::predict::IdleConfig;
use crate::schedule::{Policy, SchedulerConfig};
use std::num::NonZero;

mod collection;
mod nonsense;
mod rack;
mod requests;

const CLIENT: NodeId = NodeId(50);
const SERVER: NodeId = NodeId(1);
const PEER: NodeId = NodeId(2);
const SWITCH: NodeId = NodeId(90);
const VSSD: VssdId = VssdId(11);
const NEIGHBOUR: VssdId = VssdId(12);
const PEERS_VSSD: VssdId = VssdId(21);
const PAGE: Page = Page(5);
const LIFE: NonZero<u32> = NonZero::<u32>::MIN;

fn alone(vssd: VssdId) -> [Option<(NodeId, VssdId)>; REPLICAS_MAX] {
    [Some((SERVER, vssd)), None, None, None]
}

fn with_peer() -> [Option<(NodeId, VssdId)>; REPLICAS_MAX] {
    [Some((SERVER, VSSD)), Some((PEER, PEERS_VSSD)), None, None]
}

fn vssd(id: VssdId, unit: u32) -> VssdConfig {
    VssdConfig { id, pages: 64, unit, streams: 1, isolation: None, epoch: 1, replicas: alone(id) }
}

/// One vSSD without peers, first come first served, every page flushed at once.
fn config() -> NodeConfig {
    NodeConfig {
        id: SERVER,
        vssds: vec![vssd(VSSD, 0)],
        cache: CacheConfig { pages: 4, flush_above: 0, scope: CacheScope::Vssd },
        write_ack: WriteAck::Dram,
        scheduler: SchedulerConfig { policy: Policy::Fifo, coordinated: false },
        device_depth: 4,
        collection: CollectionConfig {
            check_period: Span::secs(30),
            first_check: Time::secs(30),
            regular_ppm: 250_000,
            soft_ppm: 350_000,
            stop_ppm: 500_000,
            retries: 3,
            answer_timeout: Span::ms(1),
            background: true,
            background_ppm: 1_000_000,
            grain: Grain::Die,
            coordination: Coordination::Switch(SWITCH),
        },
        borrow: None,
        idle: IdleConfig { alpha_permille: 500, threshold: Span::ms(30) },
        return_window: 100,
        adds_labels: false,
        replication: ReplicationConfig { retransmit: Span::ms(2), replay: Span::ms(5), fetch_window: 4 },
        control: None,
        marks: false,
        remember: None,
        scrub: None,
    }
}

/// A server under test; every call returns what it decided.
struct Server {
    node: StorageNode,
    now: Time,
}

impl Server {
    fn new(config: NodeConfig) -> Server {
        Server { node: StorageNode::new(config).expect("a configuration that fits"), now: Time::ZERO }
    }
    fn of(change: impl FnOnce(&mut NodeConfig)) -> Server {
        let mut config = config();
        change(&mut config);
        Server::new(config)
    }
    fn on(&mut self, input: NodeIn) -> Vec<NodeOut> {
        let mut out = Vec::new();
        self.node.on(self.now, input, &mut out);
        out
    }
    fn packet(&mut self, source: NodeId, vssd: VssdId, latency_ns: u32, body: Body) -> Vec<NodeOut> {
        self.on(NodeIn::Packet(Packet { vssd, latency_ns, source, target: SERVER, body }))
    }
    fn read(&mut self, tag: u64, page: Page) -> Vec<NodeOut> {
        self.packet(CLIENT, VSSD, 100, Body::Read { tag: Tag(tag), page })
    }
    fn write(&mut self, tag: u64, page: Page, value: u64) -> Vec<NodeOut> {
        self.write_late(tag, page, value, 100)
    }
    /// A write that has spent some time in the network.
    fn write_late(&mut self, tag: u64, page: Page, value: u64, latency_ns: u32) -> Vec<NodeOut> {
        self.packet(CLIENT, VSSD, latency_ns, Body::Write { tag: Tag(tag), page, value: Value(value), session: None })
    }
    fn note(&mut self, vssd: VssdId, note: CollectionNote) -> Vec<NodeOut> {
        self.packet(SERVER, vssd, 0, Body::Collection(note))
    }
    fn blocks(&mut self, vssd: VssdId, free: u32) -> Vec<NodeOut> {
        self.on(NodeIn::Blocks { vssd, free, owned: 100 })
    }
    fn collected(&mut self, vssd: VssdId, free: u32) -> Vec<NodeOut> {
        let mut out = self.blocks(vssd, free);
        out.extend(self.on(NodeIn::Collected { vssd, stream: 0, freed: true, nothing: false }));
        out
    }
    fn until(&mut self, now: Time) -> Vec<NodeOut> {
        self.now = now;
        let mut out = Vec::new();
        self.node.on_wakeup(now, &mut out);
        out
    }
}

fn device_read(out: &[NodeOut]) -> DeviceJob {
    out.iter().find_map(|out| if let NodeOut::Read { job, .. } = out { Some(*job) } else { None }).expect("a read")
}
fn device_write(out: &[NodeOut]) -> DeviceJob {
    out.iter().find_map(|out| if let NodeOut::Write { job, .. } = out { Some(*job) } else { None }).expect("a write")
}
/// Bodies of the packets sent, with their targets.
fn sent(out: &[NodeOut]) -> Vec<(NodeId, Body)> {
    let packets = out.iter().filter_map(|out| if let NodeOut::Send(packet) = out { Some(packet) } else { None });
    packets.map(|packet| (packet.target, packet.body)).collect()
}
fn read_reply(tag: u64, value: u64) -> (NodeId, Body) {
    (CLIENT, Body::ReadReply { tag: Tag(tag), value: Ok(Value(value)) })
}
fn write_reply(tag: u64) -> (NodeId, Body) {
    (CLIENT, Body::WriteReply { tag: Tag(tag), done: Ok(()) })
}
fn collection(note: CollectionNote) -> (NodeId, Body) {
    (SWITCH, Body::Collection(note))
}

#[test]
fn a_configuration_that_cannot_work_is_an_error_with_its_numbers() {
    let error = |change: fn(&mut NodeConfig)| {
        let mut config = config();
        change(&mut config);
        StorageNode::new(config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(error(|config| config.collection.soft_ppm = 200_000).contains("regular 250000, soft 200000, stop 500000"));
    assert_eq!(error(|config| config.cache.flush_above = 4), "cache.flush_above: 4 is outside 0..=3");
    assert!(error(|config| config.cache.pages = 0).starts_with("cache.pages: 0 is outside 1..="));
    assert!(error(|config| config.vssds.push(vssd(VSSD, 1))).contains("twice"));
    assert!(error(|config| config.vssds[0].replicas = [None; 4]).contains("not among the replicas"));
    let heartbeat = Span::ms(10);
    assert_eq!(config().control, None);
    let mut config = config();
    config.control = Some(ControlLink { node: NodeId(70), heartbeat, lease: heartbeat });
    assert_eq!(StorageNode::new(config).err(), Some(NodeError::Lease { lease: heartbeat, heartbeat }));
}
