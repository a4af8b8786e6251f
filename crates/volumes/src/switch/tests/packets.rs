//! Packets of all kinds, sound and damaged, while vSSDs come, go and collect.

use super::*;
use blox::{CollectionNote, ControlMessage, Origin, Refusal, ReplicaMessage, Session, Timestamp, WriteId};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::num::NonZero;

const VSSDS: u32 = 4;

fn life() -> impl Strategy<Value = NonZero<u32>> {
    select(vec![NonZero::<u32>::MIN, NonZero::<u32>::MAX])
}

/// Small, so that two are often equal, and one whose bytes are all different.
fn tag() -> impl Strategy<Value = Tag> {
    select(vec![0, 1, 2, 0x0102_0304_0506_0708, u64::MAX]).prop_map(Tag)
}

fn page() -> impl Strategy<Value = Page> {
    any::<u64>().prop_map(Page)
}

fn value() -> impl Strategy<Value = Value> {
    any::<u64>().prop_map(Value)
}

fn refusal() -> impl Strategy<Value = Refusal> {
    use Refusal::{Full, Lost, OutOfRange, Stale, UnknownVssd, WornOut};
    select(vec![UnknownVssd, OutOfRange, Stale, WornOut, Full, Lost])
}

fn write_id() -> impl Strategy<Value = WriteId> {
    (any::<u32>(), life(), tag()).prop_map(|(client, life, tag)| WriteId { client: NodeId(client), life, tag })
}

/// Also such as no client has: with an oldest open write that is newer.
fn origin() -> impl Strategy<Value = Origin> {
    (write_id(), tag()).prop_map(|(id, oldest)| Origin { id, oldest })
}

fn messages() -> impl Strategy<Value = ReplicaMessage> {
    let stamped = || (page(), any::<[u32; 3]>());
    let stamp = |[version, node, _]: [u32; 3]| Timestamp { version, node: NodeId(node) };
    prop_oneof![
        (stamped(), value(), prop::option::of(origin())).prop_map(move |((page, words), value, origin)| {
            ReplicaMessage::Invalidate { page, timestamp: stamp(words), value, epoch: words[2], origin }
        }),
        stamped().prop_map(move |(page, words)| ReplicaMessage::Acknowledge {
            page,
            timestamp: stamp(words),
            epoch: words[2]
        }),
        stamped().prop_map(move |(page, words)| ReplicaMessage::Validate {
            page,
            timestamp: stamp(words),
            epoch: words[2]
        }),
        (page(), prop::option::of(write_id()), any::<u32>()).prop_map(|(page, after, epoch)| ReplicaMessage::Fetch {
            page,
            after,
            epoch
        }),
        (stamped(), value()).prop_map(move |((page, words), value)| ReplicaMessage::Fetched {
            page,
            timestamp: stamp(words),
            value,
            epoch: words[2]
        }),
        (page(), origin(), any::<u64>(), any::<u32>()).prop_map(|(page, origin, silence, epoch)| {
            ReplicaMessage::Remembered { page, origin, silence: Span::ps(silence), epoch }
        }),
        (page(), origin(), any::<bool>(), any::<[u32; 2]>()).prop_map(|(page, origin, known, [round, epoch])| {
            ReplicaMessage::Recall { page, origin, known, round, epoch }
        }),
        (page(), write_id(), any::<bool>(), any::<[u32; 2]>()).prop_map(|(page, id, known, [round, epoch])| {
            ReplicaMessage::Recalled { page, id, known, round, epoch }
        }),
    ]
}

fn session() -> impl Strategy<Value = Session> {
    (life(), tag(), any::<u32>(), any::<bool>()).prop_map(|(life, oldest, epoch, again)| Session {
        life,
        oldest,
        epoch,
        again,
    })
}

fn data() -> impl Strategy<Value = Body> {
    prop_oneof![
        6 => (tag(), page()).prop_map(|(tag, page)| Body::Read { tag, page }),
        2 => (tag(), page(), value(), prop::option::of(session()))
            .prop_map(|(tag, page, value, session)| Body::Write { tag, page, value, session }),
        1 => (tag(), prop_oneof![value().prop_map(Ok), refusal().prop_map(Err)])
            .prop_map(|(tag, value)| Body::ReadReply { tag, value }),
        1 => (tag(), prop_oneof![Just(Ok(())), refusal().prop_map(Err)])
            .prop_map(|(tag, done)| Body::WriteReply { tag, done }),
        4 => messages().prop_map(Body::Replica),
    ]
}

/// What changes tables, and what passes them.
fn control() -> impl Strategy<Value = Body> {
    use CollectionNote::{Accept, Background, Finish, Regular, Soft};
    let node = || (0_u32..7).prop_map(NodeId);
    prop_oneof![
        4 => (node(), 0..VSSDS, node()).prop_map(|(server, replica, replica_server)| {
            Body::Create { server, replica: VssdId(replica), replica_server }
        }),
        1 => Just(Body::Delete),
        8 => select(vec![Soft, Regular, Background, Finish, Accept]).prop_map(Body::Collection),
        1 => any::<u64>().prop_map(|beat| Body::Heartbeat { beat }),
        1 => any::<u32>().prop_map(|epoch| Body::Control(ControlMessage::UpToDate { epoch })),
        1 => any::<u64>().prop_map(|beat| Body::Control(ControlMessage::Lease { beat, span: Span::ms(1) })),
    ]
}

/// What happens to a datagram before it is in a frame.
#[derive(Clone, Copy, Debug)]
enum Harm {
    None,
    /// A byte, counted from the front, is another one.
    Byte(usize, u8),
    Shorter(usize),
    Longer(usize),
}

impl Harm {
    fn any() -> impl Strategy<Value = Harm> {
        let more = || select(vec![1, 2, 8, 4_096]);
        prop_oneof![
            8 => Just(Harm::None),
            3 => (0..75_usize, prop_oneof![Just(1_u8), Just(2), Just(255), any::<u8>()]).prop_map(|(at, by)| Harm::Byte(at, by)),
            1 => more().prop_map(Harm::Shorter),
            1 => more().prop_map(Harm::Longer),
        ]
    }

    fn to(self, datagram: &mut Vec<u8>) {
        match self {
            Harm::None => {}
            Harm::Byte(at, by) => datagram.get_mut(at).into_iter().for_each(|byte| *byte ^= by),
            Harm::Shorter(less) => datagram.truncate(datagram.len().saturating_sub(less)),
            Harm::Longer(more) => datagram.resize(datagram.len() + more, 0),
        }
    }
}

fn frames() -> impl Strategy<Value = Frame> {
    prop_oneof![6 => Just(Frame::Plain), 2 => select(Frame::ALL.to_vec()), 1 => (1..60_usize).prop_map(Frame::Padded)]
}

#[derive(Clone, Debug)]
struct Step {
    vssd: u32,
    nodes: (u32, u32),
    latency_ns: u32,
    /// Whether it is of the vSSD's own server, which alone speaks for it.
    is_own: bool,
    body: Body,
    frame: Frame,
    harm: Harm,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // One node more than there are, and one far beyond.
    let node = || prop_oneof![20 => 0..8_u32, 1 => Just(u32::MAX)];
    let vssd = prop_oneof![20 => 0..VSSDS, 1 => any::<u32>()];
    let body = prop_oneof![3 => data(), 2 => control()];
    let step = (vssd, (node(), node()), any::<u32>(), prop::bool::weighted(0.9), body, frames(), Harm::any()).prop_map(
        |(vssd, nodes, latency_ns, is_own, body, frame, harm)| Step {
            vssd,
            nodes,
            latency_ns,
            is_own,
            body,
            frame,
            harm,
        },
    );
    prop::collection::vec(step, 1..300)
}

impl Both {
    fn plays(&mut self, step: &Step) -> Verdict {
        let vssd = VssdId(step.vssd);
        let (source, target) = (NodeId(step.nodes.0), NodeId(step.nodes.1));
        // In these worlds vSSDs have the servers 0 to 3, by their numbers.
        let is_table = matches!(step.body, Body::Create { .. } | Body::Collection(_) | Body::Delete);
        let own = NodeId(step.vssd % VSSDS);
        let source = if is_table && step.is_own { own } else { source };
        let body = match step.body {
            Body::Create { replica, .. } if step.is_own => {
                let [server, replica_server] = [own, NodeId(replica.0 % VSSDS)];
                Body::Create { server, replica, replica_server }
            }
            body => body,
        };
        let mut datagram = self.datagram(&Packet { vssd, latency_ns: step.latency_ns, source, target, body });
        step.harm.to(&mut datagram);
        self.step(&step.frame, &datagram)
    }
}

#[test]
fn the_kernel_does_what_the_role_does_whatever_comes() {
    let rack = rack();
    if both_for(&rack).is_none() {
        return;
    }
    let (forwarded, redirected, left) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: 24, ..Config::default() });
    let played = runner.run(&steps(), |steps| {
        let mut both = Both::new(&rack).expect("it was there");
        both.pairs();
        for step in &steps {
            both.plays(step);
        }
        let counts = both.counts();
        forwarded.set(forwarded.get() + counts.forwarded);
        redirected.set(redirected.get() + counts.redirected);
        left.set(left.get() + counts.unsound);
        Ok(())
    });
    played.unwrap_or_else(|error| panic!("{error}"));
    let counts = [&forwarded, &redirected, &left].map(Cell::get);
    println!("forwarded, of them redirected, and unsound: {counts:?}");
    assert!(counts.iter().all(|count| *count > 20), "{counts:?} show little");
}

/// One of each kind, with numbers that stand on edges.
fn of_each_kind() -> Vec<Body> {
    let (tag, page, value, epoch) = (Tag(7), Page(9), Value(3), 4);
    let life = NonZero::<u32>::MIN;
    let timestamp = Timestamp { version: 5, node: NodeId(1) };
    let id = WriteId { client: NodeId(4), life, tag };
    let origin = Origin { id, oldest: tag };
    let session = Session { life, oldest: tag, epoch, again: false };
    let message = |message| Body::Replica(message);
    vec![
        Body::Read { tag, page },
        Body::Write { tag, page, value, session: None },
        Body::Write { tag, page, value, session: Some(session) },
        Body::ReadReply { tag, value: Ok(value) },
        Body::ReadReply { tag, value: Err(Refusal::Lost) },
        Body::WriteReply { tag, done: Ok(()) },
        Body::WriteReply { tag, done: Err(Refusal::Lost) },
        message(ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin: None }),
        message(ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin: Some(origin) }),
        message(ReplicaMessage::Acknowledge { page, timestamp, epoch }),
        message(ReplicaMessage::Validate { page, timestamp, epoch }),
        message(ReplicaMessage::Fetch { page, after: None, epoch }),
        message(ReplicaMessage::Fetch { page, after: Some(id), epoch }),
        message(ReplicaMessage::Fetched { page, timestamp, value, epoch }),
        message(ReplicaMessage::Remembered { page, origin, silence: Span::secs(3), epoch }),
        message(ReplicaMessage::Recall { page, origin, known: true, round: 6, epoch }),
        message(ReplicaMessage::Recalled { page, id, known: true, round: 6, epoch }),
        Body::Heartbeat { beat: 8 },
    ]
}

#[test]
fn the_kernel_reads_each_byte_of_each_kind_of_packet_as_the_role_does() {
    let Some(mut both) = collecting() else { return };
    for body in of_each_kind() {
        let packet = Packet { vssd: VssdId(0), latency_ns: 5, source: NodeId(4), target: NodeId(0), body };
        let sound = both.datagram(&packet);
        let is_data = !matches!(body, Body::Heartbeat { .. });
        assert_eq!(both.step(&Frame::Plain, &sound) == Verdict::Send, is_data, "{body:?}");
        for (at, by) in (0..sound.len().min(90)).flat_map(|at| [1, 2, 4, 7, 8, 0x80, 0xff].map(|by| (at, by))) {
            let mut changed = sound.clone();
            changed[at] ^= by;
            both.step(&Frame::Plain, &changed);
        }
        for frame in Frame::ALL {
            both.step(&frame, &sound);
        }
        for length in (0..=sound.len() + 9).filter(|length| *length < 90 || *length + 10 > sound.len()) {
            let mut changed = sound.clone();
            changed.resize(length, 0);
            both.step(&Frame::Plain, &changed);
        }
    }
}

/// Two replicas of which the first collects.
fn collecting() -> Option<Both> {
    let mut both = both_for(&rack())?;
    both.pairs();
    both.says(0, Body::Collection(CollectionNote::Regular));
    Some(both)
}

impl Both {
    /// Two volumes with two replicas each.
    fn pairs(&mut self) {
        for (vssd, replica) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
            let [server, replica_server] = [vssd, replica].map(NodeId);
            let body = Body::Create { server, replica: VssdId(replica), replica_server };
            assert_eq!(self.says(vssd, body), Verdict::Pass);
        }
    }

    /// A server speaks for its vSSD.
    fn says(&mut self, vssd: u32, body: Body) -> Verdict {
        let server = NodeId(vssd);
        let packet = Packet { vssd: VssdId(vssd), latency_ns: 0, source: server, target: server, body };
        let datagram = self.datagram(&packet);
        self.step(&Frame::Plain, &datagram)
    }

    /// The node to which the kernel sends a read of a vSSD, by the last byte of its station.
    fn read(&mut self, vssd: u32) -> u8 {
        let body = Body::Read { tag: Tag(7), page: Page(9) };
        let packet = Packet { vssd: VssdId(vssd), latency_ns: 5, source: NodeId(4), target: NodeId(vssd), body };
        let bytes = Frame::Plain.bytes(&self.own, &self.datagram(&packet));
        let ran = self.kernel().express.run(&bytes, 1).expect("the kernel runs it");
        assert_eq!(ran.verdict, Verdict::Send);
        ran.frame[5]
    }
}

#[test]
fn reads_go_to_the_replica_from_the_grant_of_a_collection_until_its_end() {
    let Some(mut both) = collecting() else { return };
    assert_eq!([both.read(0), both.read(1)], [1, 1]);
    both.says(1, Body::Collection(CollectionNote::Regular));
    assert_eq!([both.read(0), both.read(1)], [0, 1], "both collect");
    both.says(0, Body::Collection(CollectionNote::Finish));
    assert_eq!([both.read(0), both.read(1)], [0, 0]);
    both.says(1, Body::Collection(CollectionNote::Finish));
    assert_eq!([both.read(0), both.read(1)], [0, 1]);
}

/// A server may begin when it has its answer.
#[test]
fn the_kernel_knows_of_a_grant_before_it_is_sent() {
    struct Broken;
    impl Carrier for Broken {
        fn send(&mut self, _: NodeId, packet: &Packet, _: Option<&Bytes>) {
            assert_eq!(packet.body, Body::Collection(CollectionNote::Accept));
            std::panic::resume_unwind(Box::new("here the world ends"));
        }
        fn asked(&mut self, _: Time, _: u32, _: Page, _: bool) {}
        fn ended(&mut self, _: Tag, _: End) {}
        fn rotted(&mut self, _: VssdId, _: Page, _: Option<Value>) {}
    }
    let Some(mut both) = collecting() else { return };
    both.says(0, Body::Collection(CollectionNote::Finish));
    assert_eq!(both.read(0), 0);
    let body = Body::Collection(CollectionNote::Soft);
    let ask = Packet { vssd: VssdId(0), latency_ns: 0, source: NodeId(0), target: NodeId(0), body };
    let asked = || both.role.on_packet(Time::ZERO + Span::secs(1), ask, &Bytes::new(), &mut Broken);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(asked)).expect_err("the answer is never sent");
    assert_eq!(both.read(0), 1);
}
