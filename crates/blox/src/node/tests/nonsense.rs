//! Whatever arrives, from peers or from a confused host, nothing breaks.

use super::*;
use proptest::prelude::*;

fn body() -> impl Strategy<Value = Body> {
    let page = prop_oneof![4 => (0_u64..4).prop_map(Page), 1 => any::<u64>().prop_map(Page)];
    let stamp = (0_u32..4, 0_u32..3).prop_map(|(version, node)| Timestamp { version, node: NodeId(node) });
    let note = prop_oneof![
        Just(CollectionNote::Soft),
        Just(CollectionNote::Accept),
        Just(CollectionNote::Delay),
        Just(CollectionNote::Finish)
    ];
    let members = prop::collection::vec(prop::option::of((1_u32..4, 10_u32..13)), 4);
    (0_u8..14, page, stamp, note, members, any::<u64>()).prop_map(|(kind, page, timestamp, note, members, number)| {
        let (epoch, tag, value) = (number as u32 % 4, Tag(number), Value(number));
        let member = |place: usize| members[place].map(|(node, vssd)| (NodeId(node), VssdId(vssd)));
        let replicas = [member(0), member(1), member(2), member(3)];
        // Few writes, so that they meet.
        let session = Session {
            life: if number & 1 == 0 { LIFE } else { NonZero::<u32>::MAX },
            oldest: Tag(number % 3),
            epoch,
            again: number & 8 == 0,
        };
        let origin = session.origin(NodeId(number as u32 % 2), Tag(3 + number % 4));
        let (known, round) = (number & 16 == 0, number as u32 % 4);
        match kind {
            0 => Body::Write { tag, page, value, session: None },
            1 => Body::Write { tag: origin.id.tag, page, value, session: Some(session) },
            2 => Body::Read { tag, page },
            3 => Body::Collection(note),
            9 => Body::Control(ControlMessage::Members { epoch, replicas, stale: member(0) }),
            10 => Body::Replica(ReplicaMessage::Remembered { page, origin, silence: Span::ps(number << 40), epoch }),
            11 => Body::Replica(ReplicaMessage::Recall { page, origin, known, round, epoch }),
            12 => Body::Replica(ReplicaMessage::Recalled { page, id: origin.id, known, round, epoch }),
            13 if known => Body::Heartbeat { beat: number },
            13 => Body::Control(ControlMessage::Lease { beat: number, span: Span::ps(number << 40) }),
            _ => Body::Replica(about_a_page(kind, page, (timestamp, value, epoch), Some(origin).filter(|_| known))),
        }
    })
}

fn about_a_page(
    kind: u8,
    page: Page,
    (timestamp, value, epoch): (Timestamp, Value, u32),
    origin: Option<Origin>,
) -> ReplicaMessage {
    match kind {
        4 => ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin },
        5 => ReplicaMessage::Acknowledge { page, timestamp, epoch },
        6 => ReplicaMessage::Validate { page, timestamp, epoch },
        7 => ReplicaMessage::Fetched { page, timestamp, value, epoch },
        _ => ReplicaMessage::Fetch { page, after: origin.map(|origin| origin.id), epoch },
    }
}

fn input() -> impl Strategy<Value = NodeIn> {
    let name = || prop_oneof![8 => (10_u32..13).prop_map(VssdId), 1 => any::<u32>().prop_map(VssdId)];
    let job = || (0_u32..6, 0_u32..2).prop_map(|(slot, life)| DeviceJob { slot, life });
    let moved = || (name(), name(), any::<u32>()).prop_map(|(from, to, blocks)| BlockMove { from, to, blocks });
    let packet = (name(), any::<u32>(), 0_u32..4, body()).prop_map(|(vssd, latency_ns, source, body)| {
        NodeIn::Packet(Packet { vssd, latency_ns, source: NodeId(source), target: SERVER, body })
    });
    prop_oneof![
        12 => packet,
        2 => (job(), any::<u64>()).prop_map(|(job, value)| NodeIn::ReadDone { job, value: Value(value) }),
        2 => job().prop_map(|job| NodeIn::WriteDone { job }),
        1 => job().prop_map(|job| NodeIn::WriteRefused { job }),
        1 => (name(), any::<u32>(), any::<bool>(), any::<bool>())
            .prop_map(|(vssd, stream, freed, nothing)| NodeIn::Collected { vssd, stream: stream % 3, freed, nothing }),
        1 => (name(), any::<u32>(), any::<u32>()).prop_map(|(vssd, free, owned)| NodeIn::Blocks { vssd, free, owned }),
        1 => moved().prop_map(NodeIn::Lent),
        1 => moved().prop_map(NodeIn::Returned),
        1 => name().prop_map(|vssd| NodeIn::WornOut { vssd }),
        1 => (name(), any::<u32>()).prop_map(|(id, unit)| NodeIn::Adopt(vssd(id, unit % 4))),
        1 => Just(NodeIn::Fail),
        1 => Just(NodeIn::Recover),
    ]
}

proptest! {
    #[test]
    fn nonsense_breaks_nothing_and_asks_the_device_for_nothing_that_is_not_here(
        inputs in prop::collection::vec((input(), 0_u64..3_000), 1..150),
        shared in any::<bool>(),
        remembers in any::<bool>(),
    ) {
        let mut server = Server::of(|config| {
            config.vssds[0].replicas = with_peer();
            config.cache.pages = 2;
            config.remember = remembers.then_some(Span::ms(50));
            config.cache.scope = if shared { CacheScope::Server } else { CacheScope::Vssd };
            config.borrow = Some(BorrowConfig { group_blocks: 16, keep_blocks: 2 });
            config.collection.check_period = Span::ms(10);
            config.collection.first_check = Time::ms(10);
        });
        for (input, gap_us) in inputs {
            let later = server.now + Span::us(gap_us);
            let mut out = server.until(later);
            out.extend(server.on(input));
            for decided in out {
                if let NodeOut::Read { vssd, page, .. } | NodeOut::Write { vssd, page, .. } = decided {
                    prop_assert!(server.node.by_name.contains_key(&vssd) && page.0 < 64);
                }
            }
        }
    }
}
