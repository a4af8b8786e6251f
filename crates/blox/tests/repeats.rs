//! Does the protocol hold: a write that its client sends again is done once, whatever its servers
//! lose meanwhile. Directed schedules over the programs themselves. (Random schedules with faults:
//! `crates/volumes/tests/repeats.rs`.)

use base::{NodeId, Operation, Program, Span, Time};
use blox::{
    Body, CacheConfig, CacheScope, Client, ClientConfig, ClientIn, ClientOut, ClientOutcome, ControlLink,
    ControlMessage, DeviceJob, NodeConfig, NodeIn, NodeOut, Packet, Page, REPLICAS_MAX, ReplicaMessage,
    ReplicationConfig, Session, StorageNode, Tag, Timestamp, Value, VssdConfig, VssdId,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZero;

const PAGES: u64 = 4;
const PAGE: Page = Page(2);
const CONTROL: NodeId = NodeId(9);
const CLIENTS: [NodeId; 2] = [NodeId(4), NodeId(5)];
const RESEND: Span = Span::ms(50);

fn member(server: usize) -> (NodeId, VssdId) {
    (NodeId(server as u32), VssdId(10 + server as u32))
}

fn places(members: &[usize]) -> [Option<(NodeId, VssdId)>; REPLICAS_MAX] {
    let mut replicas = [None; REPLICAS_MAX];
    replicas.iter_mut().zip(members).for_each(|(place, server)| *place = Some(member(*server)));
    replicas
}

fn server(place: usize, members: &[usize]) -> StorageNode {
    let (id, vssd) = member(place);
    let replicas = places(members);
    let vssd = VssdConfig { id: vssd, pages: PAGES, unit: 0, streams: 1, isolation: None, epoch: 1, replicas };
    let config = NodeConfig {
        cache: CacheConfig { pages: 8, flush_above: 0, scope: CacheScope::Vssd },
        device_depth: 4,
        replication: ReplicationConfig { retransmit: Span::ms(2), replay: Span::ms(5), fetch_window: 4 },
        control: Some(ControlLink { node: CONTROL, heartbeat: Span::ms(1), lease: Span::ms(4) }),
        remember: Some(Span::secs(60)),
        ..NodeConfig::quiet(id, vec![vssd])
    };
    StorageNode::new(config).expect("it is possible")
}

fn client(node: NodeId, members: &[usize], life: u32) -> Client {
    let config = ClientConfig {
        node,
        rack_nodes: 9,
        volumes: vec![members.iter().map(|server| member(*server)).collect()],
        read_timeout: RESEND,
        write_timeout: RESEND,
        attempts_max: u32::MAX,
        silence: u32::MAX,
        probe_period: RESEND,
        limit: None,
        adds_labels: false,
        resend: Some(Span::secs(30)),
        life: NonZero::new(life).expect("it is more"),
        hello: None,
    };
    Client::new(config).expect("it is possible")
}

/// Servers and clients on a network without delay, whose packets a story may drop.
struct Rack {
    now: Time,
    servers: Vec<StorageNode>,
    clients: [Client; 2],
    flash: BTreeMap<(usize, Page), Value>,
    network: VecDeque<Packet>,
    drops: Box<dyn FnMut(&Packet) -> bool>,
    dropped: Vec<Packet>,
    /// Timestamps under which a value was sent to a replica.
    begun: BTreeMap<Value, BTreeSet<Timestamp>>,
    done: Vec<(Tag, ClientOutcome)>,
    next_tag: u64,
    next_value: u64,
}

impl Rack {
    fn new(count: usize) -> Rack {
        let members: Vec<usize> = (0..count).collect();
        let mut rack = Rack {
            now: Time::ZERO,
            servers: members.iter().map(|place| server(*place, &members)).collect(),
            clients: CLIENTS.map(|node| client(node, &members, 1)),
            flash: BTreeMap::new(),
            network: VecDeque::new(),
            drops: Box::new(|_| false),
            dropped: Vec::new(),
            begun: BTreeMap::new(),
            done: Vec::new(),
            next_tag: 1,
            next_value: 101,
        };
        rack.pass(Span::ms(10));
        rack.order(1, &members, None);
        rack
    }

    /// Lets time pass in steps of a millisecond.
    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now += Span::ms(1);
            for place in 0..self.servers.len() {
                let mut out = Vec::new();
                self.servers[place].on_wakeup(self.now, &mut out);
                self.obey(place, out);
            }
            for place in 0..2 {
                let mut out = Vec::new();
                self.clients[place].on_wakeup(self.now, &mut out);
                self.hear(out);
            }
            self.carry();
        }
    }

    fn carry(&mut self) {
        while let Some(packet) = self.network.pop_front() {
            if let Body::Replica(ReplicaMessage::Invalidate { value, timestamp, .. }) = packet.body {
                self.begun.entry(value).or_default().insert(timestamp);
            }
            if (self.drops)(&packet) {
                self.dropped.push(packet);
            } else if packet.target == CONTROL {
                // Every server keeps its lease.
                if let Body::Heartbeat { .. } = packet.body {
                    self.tell(packet.source.index(), NodeIn::Packet(Packet { target: packet.source, ..packet }));
                }
            } else if let Some(place) = CLIENTS.iter().position(|node| *node == packet.target) {
                let mut out = Vec::new();
                self.clients[place].on(self.now, ClientIn::Packet(packet), &mut out);
                self.hear(out);
            } else {
                self.tell(packet.target.index(), NodeIn::Packet(packet));
            }
        }
    }

    fn hear(&mut self, out: Vec<ClientOut>) {
        for output in out {
            match output {
                ClientOut::Send(packet) => self.network.push_back(packet),
                ClientOut::Done { tag, outcome, .. } => self.done.push((tag, outcome)),
            }
        }
    }

    fn tell(&mut self, place: usize, input: NodeIn) {
        let mut out = Vec::new();
        self.servers[place].on(self.now, input, &mut out);
        self.obey(place, out);
    }

    fn obey(&mut self, place: usize, out: Vec<NodeOut>) {
        for output in out {
            match output {
                NodeOut::Send(packet) => self.network.push_back(packet),
                NodeOut::Read { job, page, .. } => {
                    let value = self.flash.get(&(place, page)).copied().unwrap_or_default();
                    self.tell(place, NodeIn::ReadDone { job, value });
                }
                NodeOut::Write { job, page, value, .. } => self.store(place, job, page, value),
                _ => {}
            }
        }
    }

    fn store(&mut self, place: usize, job: DeviceJob, page: Page, value: Value) {
        self.flash.insert((place, page), value);
        self.tell(place, NodeIn::WriteDone { job });
    }

    /// An order of the control plane, to the members and all clients.
    fn order(&mut self, epoch: u32, members: &[usize], stale: Option<usize>) {
        self.order_to(&(0..self.servers.len()).collect::<Vec<_>>(), epoch, members, stale);
        let body =
            Body::Control(ControlMessage::Members { epoch, replicas: places(members), stale: stale.map(member) });
        let to_client = |target| Packet { vssd: member(0).1, latency_ns: 0, source: CONTROL, target, body };
        self.network.extend(CLIENTS.map(to_client));
        self.carry();
        self.pass(Span::ms(8));
    }

    /// The same to some servers alone.
    fn order_to(&mut self, servers: &[usize], epoch: u32, members: &[usize], stale: Option<usize>) {
        let body =
            Body::Control(ControlMessage::Members { epoch, replicas: places(members), stale: stale.map(member) });
        for server in servers {
            let (target, vssd) = member(*server);
            self.network.push_back(Packet { vssd, latency_ns: 0, source: CONTROL, target, body });
        }
        self.carry();
    }

    /// A server fails, and the others go on.
    fn lose(&mut self, epoch: u32, lost: usize, others: &[usize]) {
        self.tell(lost, NodeIn::Fail);
        self.order(epoch, others, None);
    }

    /// A server that has lost its memory is brought back: stale at first, and then whole.
    fn rebuild(&mut self, epoch: u32, lost: usize, others: &[usize]) {
        self.tell(lost, NodeIn::Recover);
        self.pass(Span::ms(5));
        let all = [others, &[lost]].concat();
        self.order(epoch, &all, Some(lost));
        self.order(epoch + 1, &all, None);
    }

    fn issue(&mut self, client: usize, operation: Operation) -> Tag {
        let (tag, value) = (Tag(self.next_tag), Value(self.next_value));
        self.next_tag += 1;
        self.next_value += 1;
        let issue = ClientIn::Issue { tag, operation, vssd_group: 0, page: PAGE, value };
        let mut out = Vec::new();
        self.clients[client].on(self.now, issue, &mut out);
        self.hear(out);
        self.carry();
        tag
    }

    fn outcome(&self, tag: Tag) -> Option<ClientOutcome> {
        self.done.iter().find(|(done, _)| *done == tag).map(|(_, outcome)| *outcome)
    }

    /// What a client reads now.
    fn read(&mut self, client: usize) -> Value {
        let tag = self.issue(client, Operation::Read);
        self.pass(Span::ms(200));
        match self.outcome(tag) {
            Some(ClientOutcome::Read(value)) => value,
            other => panic!("a read ends with a value, and not with {other:?}"),
        }
    }

    /// A write of a client that ends at once.
    fn write(&mut self, client: usize) -> Value {
        let value = Value(self.next_value);
        let tag = self.issue(client, Operation::Write);
        assert_eq!(self.outcome(tag), Some(ClientOutcome::Written));
        value
    }

    fn drop_if(&mut self, drops: impl FnMut(&Packet) -> bool + 'static) {
        self.drops = Box::new(drops);
    }
}

fn is_answer_to_first(packet: &Packet) -> bool {
    matches!(packet.body, Body::WriteReply { tag: Tag(1), .. })
}

/// Client 0's write is done, and its answer is lost. Then its server is lost, client 1 writes, and
/// the other server that has seen the write is lost too.
#[test]
fn a_write_is_done_once_though_both_that_have_seen_it_are_lost_while_it_waits() {
    let mut rack = Rack::new(2);
    rack.drop_if(is_answer_to_first);
    let first = rack.issue(0, Operation::Write);
    assert_eq!((rack.outcome(first), rack.dropped.len()), (None, 1), "done, and not answered");
    rack.lose(2, 0, &[1]);
    let newer = rack.write(1);
    rack.rebuild(3, 0, &[1]);
    rack.lose(5, 1, &[0]);
    rack.drop_if(|_| false);
    rack.pass(Span::ms(500));
    assert_eq!(rack.outcome(first), Some(ClientOutcome::Written));
    assert_eq!([rack.read(0), rack.read(1)], [newer; 2], "the first write is not done over the newer one");
}

/// The same, with many writes of the page that are still known and a network that loses the first
/// word of a rebuild about a third of them.
#[test]
fn a_rebuild_fetches_every_write_that_is_known_of_a_page() {
    let mut rack = Rack::new(2);
    rack.drop_if(is_answer_to_first);
    let first = rack.issue(0, Operation::Write);
    for _ in 0..40 {
        rack.write(0);
    }
    rack.lose(2, 0, &[1]);
    let newer = rack.write(1);
    let mut lost = BTreeSet::new();
    rack.drop_if(move |packet| match packet.body {
        Body::Replica(ReplicaMessage::Remembered { origin, .. }) => origin.id.tag.0 % 3 == 0 && lost.insert(origin.id),
        _ => is_answer_to_first(packet),
    });
    rack.tell(0, NodeIn::Recover);
    rack.pass(Span::ms(5));
    rack.order(3, &[1, 0], Some(0));
    assert!(rack.servers[0].writes_remembered() < 42, "some words are lost");
    rack.pass(Span::ms(1_000));
    assert_eq!(rack.servers[0].writes_remembered(), 42, "40 after the first, and the other client's last");
    rack.order(4, &[1, 0], None);
    rack.lose(5, 1, &[0]);
    rack.drop_if(|_| false);
    rack.pass(Span::ms(500));
    assert_eq!(rack.outcome(first), Some(ClientOutcome::Written));
    assert_eq!(rack.read(0), newer);
    rack.write(0);
    assert_eq!(rack.servers[0].writes_remembered(), 2, "the last of each client");
}

/// The first server dies when one of its two peers has the write. The client asks the other before
/// the one replays it.
#[test]
fn a_write_that_a_peer_will_replay_is_not_done_besides() {
    let mut rack = Rack::new(3);
    rack.drop_if(|packet| match packet.body {
        Body::Replica(ReplicaMessage::Invalidate { epoch: 1, .. }) => packet.target == member(2).0,
        Body::Replica(ReplicaMessage::Acknowledge { epoch: 1, .. }) => true,
        _ => false,
    });
    let first = rack.issue(0, Operation::Write);
    rack.tell(0, NodeIn::Fail);
    // The second server hears of the new epoch last; until then it is of another.
    rack.order_to(&[2], 2, &[1, 2], None);
    let body = Body::Control(ControlMessage::Members { epoch: 2, replicas: places(&[2, 1]), stale: None });
    let hears = Packet { vssd: member(0).1, latency_ns: 0, source: CONTROL, target: CLIENTS[0], body };
    rack.network.push_back(hears);
    rack.pass(Span::ms(300));
    assert_eq!(rack.outcome(first), None, "nobody says that it is not known");
    rack.order_to(&[1], 2, &[1, 2], None);
    rack.pass(Span::ms(300));
    assert_eq!(rack.outcome(first), Some(ClientOutcome::Written));
    assert_eq!(rack.begun[&Value(101)].len(), 1, "{:?}", rack.begun);
    assert_eq!([rack.read(0), rack.read(1)], [Value(101); 2]);
}

/// The first server dies when nobody has the write: the client's copy is the write.
#[test]
fn a_write_that_nobody_has_seen_is_done_by_the_server_that_its_client_asks_next() {
    let mut rack = Rack::new(3);
    rack.drop_if(|packet| matches!(packet.body, Body::Replica(ReplicaMessage::Invalidate { epoch: 1, .. })));
    let first = rack.issue(0, Operation::Write);
    rack.lose(2, 0, &[1, 2]);
    rack.pass(Span::ms(300));
    assert_eq!(rack.outcome(first), Some(ClientOutcome::Written));
    assert_eq!([rack.read(0), rack.read(1)], [Value(101); 2]);
}

/// A client that was started anew counts from the same number. A copy of its earlier life comes
/// late.
#[test]
fn writes_of_a_client_that_was_started_anew_are_others_and_late_ones_of_its_earlier_life_are_known() {
    let mut rack = Rack::new(2);
    rack.drop_if(is_answer_to_first);
    rack.issue(0, Operation::Write);
    rack.pass(Span::ms(70));
    let session = Some(Session { life: NonZero::<u32>::MIN, oldest: Tag(1), epoch: 1, again: true });
    let body = Body::Write { tag: Tag(1), page: PAGE, value: Value(101), session };
    let late = Packet { vssd: member(0).1, latency_ns: 0, source: CLIENTS[0], target: member(0).0, body };
    rack.drop_if(|_| false);
    rack.clients[0] = client(CLIENTS[0], &[0, 1], 2);
    rack.next_tag = 1;
    let newer = rack.write(0);
    assert_eq!(rack.read(1), newer);
    rack.network.push_back(late);
    rack.pass(Span::ms(100));
    assert_eq!([rack.read(0), rack.read(1)], [newer; 2]);
}

/// Doors come and go, and servers lose their memory in turns. Each tells the other of all writes
/// that it knows.
#[test]
fn clients_that_have_gone_are_forgotten_though_servers_tell_each_other_of_them() {
    let mut rack = Rack::new(2);
    let mut epoch = 1;
    for life in 2..=300 {
        rack.clients[1] = client(CLIENTS[1], &[0, 1], life);
        rack.write(1);
        rack.pass(Span::ms(400));
        if life % 8 == 0 {
            let lost = life as usize / 8 % 2;
            rack.lose(epoch + 1, lost, &[1 - lost]);
            rack.rebuild(epoch + 2, lost, &[1 - lost]);
            epoch += 3;
        }
    }
    let known = rack.servers.iter().map(StorageNode::writes_remembered).max();
    assert!(known > Some(130) && known < Some(190), "{known:?}: those of 60 to 75 s");
}
