//! A small network of hops with minimal hosts and targets, to observe the effect of hops on
//! packets.

use crate::hop::{Hop, HopConfig, HopIn, HopOut, LosslessConfig};
use crate::id::{Port, SessionId, Tag};
use crate::packet::{Outcome, Packet, PacketKind};
use crate::route::{converge, neighbours, peer};
use crate::testing::command;
use base::{Bytes, Operation, Program, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use topology::{Graph, LinkId, VertexId};

/// Service time of a drive.
const DRIVE: Span = Span::us(10);
const PROPAGATION: Span = Span::ns(200);
/// Size of a data packet with all headers except the trail.
const DATA_FRAME: u32 = 4_200;

enum Event {
    Arrive { at: VertexId, port: Port, link: LinkId, packet: Packet },
    Tell { at: VertexId, link: LinkId, input: HopIn },
    Wake { at: VertexId, port: Port },
    Timer { at: VertexId },
    Answer { at: VertexId, port: Port, packet: Packet },
    Toggle { link: LinkId },
}

pub(super) struct Net {
    pub graph: Graph,
    pub hops: Vec<Option<Hop>>,
    events: BTreeMap<(Time, u64), Event>,
    scheduled: u64,
    pub broken: BTreeSet<LinkId>,
    /// When the last frame on a channel has left.
    busy: Vec<Time>,
    pub now: Time,
    /// Every packet received by a host, with its time.
    pub at_hosts: Vec<(Time, Packet)>,
    pub at_targets: Vec<(Time, Packet)>,
    pub dropped: Vec<Packet>,
    /// Packets that were on a link when it failed, or were sent to a failed one.
    pub lost: Vec<Packet>,
    /// Number of packets that endpoints have sent.
    pub made: usize,
    pub refused: u64,
    /// Missing write data of a target, by session and command.
    writes: BTreeMap<(SessionId, u16), u32>,
    /// The credit that targets return.
    pub credit: u32,
    /// Whether targets send no response after the data of reads.
    pub data_end_reads: bool,
    pub out: Vec<HopOut>,
}

/// Fills in the headrooms: between hops, the bytes that a link and its ends hold; from endpoints,
/// which ignore pauses, all that they send.
fn with_headrooms(lossless: LosslessConfig, graph: &Graph, vertex: VertexId) -> LosslessConfig {
    let headroom = |hop: &topology::Hop| {
        let rate = graph.link(hop.channel.link()).rate;
        let is_hop = graph.vertex(hop.to).kind.forwards();
        let in_loop = rate.bytes_in(PROPAGATION * 2) + Bytes::new(84 + 4 * 4_400);
        if is_hop { in_loop } else { Bytes::kib(1 << 20) }
    };
    LosslessConfig { headrooms: graph.hops(vertex).iter().map(headroom).collect(), ..lossless }
}

impl Net {
    /// Creates a converged network with all links up. It fills in the hop-specific parts of
    /// `settings`.
    pub fn new(graph: Graph, settings: &HopConfig) -> Net {
        let hop = |vertex: VertexId| {
            let vertices = graph.vertices().len();
            let lossless = settings.lossless.clone().map(|lossless| with_headrooms(lossless, &graph, vertex));
            let neighbours = neighbours(&graph, vertex, false);
            let own = HopConfig { here: vertex, vertices, neighbours, lossless, ..settings.clone() };
            graph.vertex(vertex).kind.forwards().then(|| Hop::new(own))
        };
        let mut hops: Vec<Option<Hop>> = graph.vertex_ids().map(hop).collect();
        let mut distances: Vec<_> =
            hops.iter_mut().map(|hop| hop.as_mut().map(|hop| hop.router_mut().distances_mut())).collect();
        converge(&mut distances, &graph, Time::ZERO);
        Net {
            busy: vec![Time::ZERO; graph.channel_count()],
            graph,
            hops,
            events: BTreeMap::new(),
            scheduled: 0,
            broken: BTreeSet::new(),
            now: Time::ZERO,
            at_hosts: Vec::new(),
            at_targets: Vec::new(),
            dropped: Vec::new(),
            lost: Vec::new(),
            made: 0,
            refused: 0,
            writes: BTreeMap::new(),
            credit: 8,
            data_end_reads: false,
            out: Vec::new(),
        }
    }

    pub fn hop(&self, vertex: u32) -> &Hop {
        self.hops[vertex as usize].as_ref().expect("it is a hop")
    }

    fn at(&mut self, time: Time, event: Event) {
        self.events.insert((time, self.scheduled), event);
        self.scheduled += 1;
    }

    /// Starts an I/O of a host at `time`.
    pub fn begin(&mut self, time: Time, host: VertexId, target: VertexId, operation: Operation, bytes: u32, tag: Tag) {
        let packet = Packet { tag, ..command(operation, bytes, host, target) };
        let port = Port((usize::from(tag.command) % self.graph.degree(host)) as u16);
        self.at(time, Event::Answer { at: host, port, packet });
    }

    /// Fails or restores a link at `time`; both ends are notified at once.
    pub fn toggle(&mut self, time: Time, link: LinkId) {
        self.at(time, Event::Toggle { link });
    }

    pub fn run(&mut self, until: Time) {
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= until) {
            let ((now, _), event) = entry.remove_entry();
            assert!(now >= self.now, "time runs forward");
            self.now = now;
            self.on(event);
        }
        self.now = until;
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Arrive { link, packet, .. } if self.broken.contains(&link) => self.lose(packet),
            Event::Arrive { at, port, packet, .. } if self.hops[at.index()].is_some() => {
                self.tell(at, HopIn::Packet { port, packet });
            }
            // Endpoints ignore pauses: the headroom of their ports absorbs their packets.
            Event::Arrive { packet, .. } if matches!(packet.kind, PacketKind::Pause { .. }) => {}
            Event::Arrive { at, port, packet, .. } if packet.destination() != at => {
                panic!("{at:?} by {port:?} is not where {packet:?} goes")
            }
            Event::Arrive { at, port, packet, .. } if packet.kind.is_outward() => self.at_target(at, port, packet),
            Event::Arrive { at, port, packet, .. } => self.at_host(at, port, packet),
            Event::Tell { at, link, input } if !self.broken.contains(&link) => self.tell(at, input),
            Event::Tell { .. } => {}
            Event::Wake { at, port } => self.tell(at, HopIn::PortFree(port)),
            Event::Timer { at } => {
                let hop = self.hops[at.index()].as_mut().expect("it is a hop");
                hop.on_wakeup(self.now, &mut self.out);
                self.carry_out(at);
            }
            Event::Answer { at, port, packet } => {
                self.made += 1;
                self.send(at, port, packet);
            }
            Event::Toggle { link } => self.on_toggle(link),
        }
    }

    fn on_toggle(&mut self, link: LinkId) {
        let is_up = self.broken.remove(&link);
        if !is_up {
            self.broken.insert(link);
            // Packets on the wire are lost, even if the link recovers before they would have
            // arrived.
            let on_wire = |event: &Event| matches!(event, Event::Arrive { link: of, .. } if *of == link);
            let keys: Vec<_> = self.events.iter().filter(|(_, event)| on_wire(event)).map(|(key, _)| *key).collect();
            for key in keys {
                let Some(Event::Arrive { packet, .. }) = self.events.remove(&key) else { continue };
                self.lose(packet);
            }
        }
        for channel in [link.forward(), link.backward()] {
            let vertex = self.graph.source(channel);
            let port =
                self.graph.hops(vertex).iter().position(|hop| hop.channel == channel).expect("it has the channel");
            let port = Port(port as u16);
            if !is_up {
                self.busy[channel.index()] = self.now;
            }
            if self.hops[vertex.index()].is_some() {
                self.tell(vertex, if is_up { HopIn::LinkUp(port) } else { HopIn::LinkDown(port) });
            }
        }
    }

    /// A pause belongs to its link, and does not count as lost.
    fn lose(&mut self, packet: Packet) {
        if !matches!(packet.kind, PacketKind::Pause { .. }) {
            self.lost.push(packet);
        }
    }

    fn tell(&mut self, at: VertexId, input: HopIn) {
        let hop = self.hops[at.index()].as_mut().expect("it is a hop");
        hop.on(self.now, input, &mut self.out);
        self.carry_out(at);
    }

    fn carry_out(&mut self, at: VertexId) {
        for decision in std::mem::take(&mut self.out) {
            match decision {
                HopOut::Send { port, packet } => {
                    let hop = self.graph.hops(at)[port.index()];
                    assert!(!self.broken.contains(&hop.channel.link()), "sent by a port that is down");
                    assert!(self.busy[hop.channel.index()] <= self.now, "sent while the last frame is still leaving");
                    self.send(at, port, packet);
                }
                HopOut::Wake { port, at: time } => self.at(time.max(self.now), Event::Wake { at, port }),
                HopOut::Advertise { port, advertisement } => {
                    let (to, by) = peer(&self.graph, at, port).expect("it is a port");
                    let link = self.graph.hops(at)[port.index()].channel.link();
                    let input = HopIn::Advertisement { port: by, advertisement };
                    self.at(self.now + Span::us(1), Event::Tell { at: to, link, input });
                }
                HopOut::Drop { packet, .. } => self.dropped.push(packet),
            }
        }
        if let Some(time) = self.hops[at.index()].as_ref().and_then(Hop::next_wakeup) {
            self.at(time.max(self.now), Event::Timer { at });
        }
    }

    /// Sends a frame on a wire. Endpoints wait until theirs is free.
    fn send(&mut self, at: VertexId, port: Port, packet: Packet) {
        let hop = self.graph.hops(at)[port.index()];
        let (to, by) = peer(&self.graph, at, port).expect("it is a port");
        let link = hop.channel.link();
        let leaves = self.busy[hop.channel.index()].max(self.now)
            + self.graph.link(link).rate.span_of(Bytes::new(u64::from(packet.frame)));
        self.busy[hop.channel.index()] = leaves;
        self.at(leaves + PROPAGATION, Event::Arrive { at: to, port: by, link, packet });
    }

    fn at_target(&mut self, at: VertexId, port: Port, packet: Packet) {
        self.at_targets.push((self.now, packet.clone()));
        let (pieces, key) = (packet.bytes.div_ceil(4096), (packet.tag.session, packet.tag.command));
        let credit = self.credit;
        let answer = |kind, frame, payload| Packet {
            kind,
            frame: frame + packet.trail.hops().len() as u32 * 8,
            payload,
            credit,
            trail: packet.trail.clone().turned_at_target(DRIVE.as_ps() as u32 / 1_000),
            ..packet.clone()
        };
        match (packet.kind, packet.operation) {
            (PacketKind::Command, Operation::Write) => {
                self.writes.insert(key, pieces);
                self.at(
                    self.now + DRIVE,
                    Event::Answer { at, port, packet: answer(PacketKind::ReadyToTransfer, 130, 0) },
                );
            }
            (PacketKind::WriteData { .. }, _) => {
                let left = self.writes.get_mut(&key).expect("data follow a command");
                *left -= 1;
                if *left == 0 {
                    self.at(self.now + DRIVE, Event::Answer { at, port, packet: answer(PacketKind::Response, 120, 0) });
                }
            }
            _ => {
                for piece in 0..pieces {
                    let kind = PacketKind::ReadData { last: piece + 1 == pieces };
                    self.at(self.now + DRIVE, Event::Answer { at, port, packet: answer(kind, DATA_FRAME, piece) });
                }
                if !self.data_end_reads {
                    self.at(self.now + DRIVE, Event::Answer { at, port, packet: answer(PacketKind::Response, 120, 0) });
                }
            }
        }
    }

    fn at_host(&mut self, at: VertexId, port: Port, packet: Packet) {
        self.at_hosts.push((self.now, packet.clone()));
        self.refused += u64::from(packet.status != Outcome::Success);
        if packet.kind == PacketKind::ReadyToTransfer {
            let packet = packet.with_trail(packet.trail.clone().turned_at_host());
            let pieces = packet.bytes.div_ceil(4096);
            for piece in 0..pieces {
                let kind = PacketKind::WriteData { last: piece + 1 == pieces };
                let frame = DATA_FRAME + packet.trail.hops().len() as u32 * 8;
                self.at(
                    self.now,
                    Event::Answer { at, port, packet: Packet { kind, frame, payload: piece, ..packet.clone() } },
                );
            }
        }
    }

    /// Returns the number of unaccounted packets: neither delivered nor dropped nor lost.
    pub fn missing(&self) -> i64 {
        let ended = self.at_hosts.len() + self.at_targets.len() + self.dropped.len() + self.lost.len();
        self.made as i64 - ended as i64
    }

    /// Returns the responses received by hosts.
    pub fn responses(&self) -> impl Iterator<Item = &Packet> {
        self.at_hosts.iter().map(|(_, packet)| packet).filter(|packet| packet.kind == PacketKind::Response)
    }
}
