//! Anybody on the network sends datagrams to the roles of a live rack: none falls over, and what decodes comes out of the encoder as it came in.
#![no_main]

use base::{Bytes, NodeId, Program, Span, Time};
use blox::*;
use libfuzzer_sys::fuzz_target;

const PAGES: u64 = 16;
const SERVER: NodeId = NodeId(0);
const PEER: NodeId = NodeId(1);
const DOOR: NodeId = NodeId(2);
const CONTROL: NodeId = NodeId(3);
const REPLICAS: [(NodeId, VssdId); 2] = [(SERVER, VssdId(0)), (PEER, VssdId(1))];

fn switch() -> Switch {
    let (pipeline, recirculation, queue_bytes) = (Span::ZERO, Span::ZERO, Bytes::kib(64));
    let scheduling = NetworkScheduling::Fifo;
    let config = SwitchConfig { nodes: 3, uplink: CONTROL, pipeline, recirculation, coordination: true, scheduling, queue_bytes, table_entries: 8 };
    Switch::new(config).expect("it is possible")
}

fn control() -> Control {
    let server = |node| ServerPlace { node, rack: 0, room: 1 };
    let config = ControlConfig {
        own: CONTROL,
        rack: 0,
        servers: vec![server(SERVER), server(PEER)],
        groups: vec![REPLICAS.to_vec()],
        clients: vec![DOOR],
        beat: Span::ms(10),
        misses: 6,
        patience: Span::ms(100),
        lease: Span::ms(40),
        resend: Span::ms(10),
        first_beat: Span::ZERO,
        replace_after: Span::ms(200),
        next_vssd: 4,
        vssd_step: 1,
    };
    Control::new(config).expect("it is possible")
}

fn client() -> Client {
    let config = ClientConfig {
        node: DOOR,
        rack_nodes: 3,
        volumes: vec![REPLICAS.to_vec()],
        read_timeout: Span::ms(5),
        write_timeout: Span::ms(10),
        attempts_max: 8,
        silence: 9,
        probe_period: Span::ms(10),
        limit: None,
        adds_labels: false,
        resend: Some(Span::ms(100)),
        life: std::num::NonZero::<u32>::MIN,
        hello: Some((CONTROL, Span::ms(50))),
    };
    Client::new(config).expect("it is possible")
}

fn server() -> StorageNode {
    let replicas = [Some(REPLICAS[0]), Some(REPLICAS[1]), None, None];
    let vssd =
        VssdConfig { id: VssdId(0), pages: PAGES, unit: 0, streams: 1, isolation: None, epoch: 1, replicas };
    let quiet = NodeConfig::quiet(SERVER, vec![vssd]);
    let config = NodeConfig {
        cache: CacheConfig { pages: 4, ..quiet.cache },
        collection: CollectionConfig {
            check_period: Span::ms(10),
            first_check: Time::ms(5),
            regular_ppm: 100_000,
            soft_ppm: 200_000,
            stop_ppm: 300_000,
            answer_timeout: Span::ms(1),
            background: true,
            background_ppm: 300_000,
            coordination: Coordination::Switch(SERVER),
            ..quiet.collection
        },
        idle: IdleConfig { threshold: Span::ms(30), ..quiet.idle },
        return_window: RETURN_WINDOW,
        replication: ReplicationConfig { retransmit: Span::ms(2), replay: Span::ms(5), fetch_window: 4 },
        control: Some(ControlLink { node: CONTROL, heartbeat: Span::ms(10), lease: Span::ms(40) }),
        remember: Some(Span::ms(200)),
        ..quiet
    };
    StorageNode::new(config).expect("it is possible")
}

/// A datagram of a few bytes: what begins as one with a page gets a page of zeros, and its last byte as its value.
fn datagram(bytes: &[u8]) -> Vec<u8> {
    let short = [b"RBX1", bytes].concat();
    if decode_datagram(&short).is_ok() {
        return short;
    }
    let value = u64::from(bytes.last().copied().unwrap_or(0));
    [&short, &[0; PAGE_BYTES as usize][..], &value.to_be_bytes()].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let _ = decode_datagram(bytes);
    let (mut switch, mut control, mut client, mut server) = (switch(), control(), client(), server());
    let (mut now, mut rest, mut tag) = (Time::ZERO, bytes, 0);
    while let [length, wait, after @ ..] = rest {
        let (record, next) = after.split_at(after.len().min(usize::from(*length & 63)));
        rest = next;
        now = now + Span::us(u64::from(*wait) * 100);
        tag += 1;
        let operation = if wait & 1 == 0 { base::Operation::Read } else { base::Operation::Write };
        let issue = ClientIn::Issue { tag: Tag(tag), operation, vssd_group: 0, page: Page(tag % PAGES), value: Value(tag) };
        client.on(now, issue, &mut Vec::new());
        let frame = datagram(record);
        let Ok((packet, page)) = decode_datagram(&frame) else { continue };
        let mut again = Vec::new();
        encode_datagram(&packet, page, &mut again);
        assert_eq!(decode_datagram(&again), Ok((packet, page)));
        let mut sent = Vec::new();
        switch.on(now, SwitchIn::Packet(packet), &mut sent);
        for out in sent {
            let SwitchOut::Transmit { port, .. } = out else { continue };
            switch.on(now, SwitchIn::PortIdle(port), &mut Vec::new());
        }
        control.on(now, ControlIn::Packet(packet), &mut Vec::new());
        control.on_wakeup(now, &mut Vec::new());
        client.on(now, ClientIn::Packet(packet), &mut Vec::new());
        serve(&mut server, now, packet);
    }
});

/// A server with a drive that answers at once.
fn serve(server: &mut StorageNode, now: Time, packet: Packet) {
    let mut out = Vec::new();
    server.on(now, NodeIn::Packet(packet), &mut out);
    server.on_wakeup(now, &mut out);
    for _ in 0..64 {
        let Some(action) = out.pop() else { break };
        let answer = match action {
            NodeOut::Read { job, .. } => NodeIn::ReadDone { job, value: Value(0) },
            NodeOut::Write { job, .. } => NodeIn::WriteDone { job },
            NodeOut::Collect { vssd, stream } => NodeIn::Collected { vssd, stream, freed: true, nothing: false },
            NodeOut::Wanted { vssd } => {
                let replicas = [None; REPLICAS_MAX];
                NodeIn::Adopt(VssdConfig { id: vssd, pages: PAGES, unit: 0, streams: 1, isolation: None, epoch: 1, replicas })
            }
            _ => continue,
        };
        server.on(now, answer, &mut out);
    }
    assert!(server.held_values().count() < 10_000);
}
