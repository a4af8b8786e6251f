//! Reads and writes: Algorithm 2, lines 1 to 6.

use super::*;

#[test]
fn a_write_is_done_in_dram_and_reaches_the_flash_later() {
    let mut server = Server::new(config());
    let out = server.write(1, PAGE, 77);
    assert_eq!(sent(&out), [write_reply(1)]);
    let flush = device_write(&out);
    assert_eq!(server.node.pages_held(), 1);
    assert!(server.on(NodeIn::WriteDone { job: flush }).is_empty());
    assert_eq!((server.node.pages_held(), server.node.counters().flushes), (0, 1));
}

#[test]
fn a_read_goes_to_the_device_and_its_answer_carries_the_network_time_on() {
    let mut server = Server::new(config());
    let out = server.packet(CLIENT, VSSD, 4_000, Body::Read { tag: Tag(3), page: PAGE });
    let [NodeOut::Read { job, vssd: VSSD, page: PAGE, request: Some((CLIENT, Tag(3))) }] = out[..] else {
        panic!("{out:?}")
    };
    let answer = server.on(NodeIn::ReadDone { job, value: Value(9) });
    let body = Body::ReadReply { tag: Tag(3), value: Ok(Value(9)) };
    assert_eq!(answer, [NodeOut::Send(Packet { vssd: VSSD, latency_ns: 4_000, source: SERVER, target: CLIENT, body })]);
}

#[test]
fn a_dirty_page_is_read_from_dram() {
    let mut server = Server::new(config());
    let flush = device_write(&server.write(1, PAGE, 77));
    assert_eq!(server.read(2, PAGE), [NodeOut::Send(packet_to_client(read_reply(2, 77).1))]);
    server.on(NodeIn::WriteDone { job: flush });
    device_read(&server.read(3, PAGE));
}

fn packet_to_client(body: Body) -> Packet {
    Packet { vssd: VSSD, latency_ns: 100, source: SERVER, target: CLIENT, body }
}

#[test]
fn the_device_gets_no_more_than_its_depth() {
    let mut server = Server::of(|config| config.device_depth = 2);
    let first = device_read(&server.read(1, Page(1)));
    device_read(&server.read(2, Page(2)));
    assert!(server.read(3, Page(3)).is_empty());
    let out = server.on(NodeIn::ReadDone { job: first, value: Value(0) });
    assert_eq!(sent(&out), [read_reply(1, 0)]);
    device_read(&out);
}

#[test]
fn a_full_cache_makes_writes_wait_first_come_first_served() {
    let mut server = Server::of(|config| config.cache.pages = 1);
    let flush = device_write(&server.write(1, Page(1), 71));
    assert!(server.write_late(2, Page(2), 72, 100).is_empty());
    server.now = Time::us(1);
    assert!(server.write_late(3, Page(3), 73, 900_000).is_empty());
    let out = server.on(NodeIn::WriteDone { job: flush });
    assert_eq!(sent(&out), [write_reply(2)]);
    assert_eq!(sent(&server.on(NodeIn::WriteDone { job: device_write(&out) })), [write_reply(3)]);
    assert_eq!(server.node.counters().waits_for_room, 2);
}

#[test]
fn a_coordinated_server_lets_the_write_with_the_slowest_network_in_first() {
    let mut server = Server::of(|config| {
        config.cache.pages = 1;
        config.scheduler.coordinated = true;
    });
    let flush = device_write(&server.write(1, Page(1), 71));
    server.write_late(2, Page(2), 72, 100);
    server.now = Time::us(1);
    server.write_late(3, Page(3), 73, 900_000);
    assert_eq!(sent(&server.on(NodeIn::WriteDone { job: flush })), [write_reply(3)]);
}

#[test]
fn a_write_over_a_held_page_needs_no_room() {
    let mut server = Server::of(|config| config.cache.pages = 1);
    let flush = device_write(&server.write(1, PAGE, 71));
    assert_eq!(sent(&server.write(2, PAGE, 72)), [write_reply(2)]);
    let again = server.on(NodeIn::WriteDone { job: flush });
    assert!(matches!(again[..], [NodeOut::Write { value: Value(72), .. }]), "{again:?}");
}

#[test]
fn a_cache_shared_by_a_server_lets_one_vssd_stall_another_and_an_own_one_does_not() {
    for (scope, stalls) in [(CacheScope::Server, true), (CacheScope::Vssd, false)] {
        let mut server = Server::of(|config| {
            config.cache = CacheConfig { pages: 1, flush_above: 0, scope };
            config.vssds.push(vssd(NEIGHBOUR, 1));
        });
        let flush = device_write(&server.write(1, PAGE, 71));
        let body = Body::Write { tag: Tag(2), page: PAGE, value: Value(72), session: None };
        let out = server.packet(CLIENT, NEIGHBOUR, 0, body);
        assert_eq!(out.is_empty(), stalls, "{scope:?}");
        let later = server.on(NodeIn::WriteDone { job: flush });
        assert_eq!(sent(&later).len(), usize::from(stalls), "{scope:?}");
    }
}

#[test]
fn a_write_without_a_free_block_stands_aside_and_reads_go_on() {
    let mut server = Server::of(|config| config.device_depth = 1);
    let flush = device_write(&server.write(1, Page(1), 71));
    server.blocks(VSSD, 0);
    let out = server.on(NodeIn::WriteRefused { job: flush });
    assert_eq!(sent(&out), [collection(CollectionNote::Regular)], "it asks at once");
    assert_eq!(sent(&server.write(2, Page(2), 72)), [write_reply(2)], "DRAM still has room");
    let read = device_read(&server.read(3, Page(3)));
    server.on(NodeIn::ReadDone { job: read, value: Value(0) });

    server.note(VSSD, CollectionNote::Accept);
    let offered = server.collected(VSSD, 1);
    assert_eq!(device_write(&offered), flush, "offered again under its name");
    let next = server.on(NodeIn::WriteDone { job: flush });
    assert!(matches!(next[..], [NodeOut::Write { page: Page(2), .. }]), "{next:?}");
}

#[test]
fn a_refused_write_takes_the_newest_value_along_when_it_is_offered_again() {
    let mut server = Server::new(config());
    let flush = device_write(&server.write(1, PAGE, 71));
    server.on(NodeIn::WriteRefused { job: flush });
    server.write(2, PAGE, 72);
    let offered = server.on(NodeIn::Collected { vssd: VSSD, stream: 0, freed: true, nothing: false });
    assert_eq!(offered, [NodeOut::Write { job: flush, vssd: VSSD, page: PAGE, value: Value(72) }]);
    server.on(NodeIn::WriteDone { job: flush });
    assert_eq!(server.node.pages_held(), 0, "one flush was enough");
}

#[test]
fn what_is_not_here_is_refused_with_the_reason() {
    let mut server = Server::new(config());
    let refused = |refusal| [(CLIENT, Body::ReadReply { tag: Tag(1), value: Err(refusal) })];
    let elsewhere = server.packet(CLIENT, VssdId(99), 0, Body::Read { tag: Tag(1), page: PAGE });
    assert_eq!(sent(&elsewhere), refused(Refusal::UnknownVssd));
    assert_eq!(sent(&server.read(1, Page(64))), refused(Refusal::OutOfRange));
    device_read(&server.read(1, Page(63)));
    server.on(NodeIn::WornOut { vssd: VSSD });
    let done = Err(Refusal::WornOut);
    assert_eq!(sent(&server.write(2, PAGE, 1)), [(CLIENT, Body::WriteReply { tag: Tag(2), done })]);
}

#[test]
fn a_worn_out_vssd_turns_away_the_writes_that_wait_for_room() {
    let mut server = Server::of(|config| config.cache.pages = 1);
    server.write(1, Page(1), 71);
    server.write(2, Page(2), 72);
    let done = Err(Refusal::WornOut);
    assert_eq!(sent(&server.on(NodeIn::WornOut { vssd: VSSD })), [(CLIENT, Body::WriteReply { tag: Tag(2), done })]);
    assert_eq!(server.node.open_requests(), 0);
}

#[test]
fn a_software_isolated_vssd_passes_no_more_than_its_tokens() {
    let limit = IsolationConfig { per_second: 1_000, burst: 1, write_cost: 2 };
    let mut server = Server::of(|config| config.vssds[0].isolation = Some(limit));
    device_read(&server.read(1, Page(1)));
    assert!(server.read(2, Page(2)).is_empty());
    assert!(server.until(Time::us(999)).is_empty());
    device_read(&server.until(Time::ms(1)));
}

#[test]
fn marks_tell_where_a_requests_time_went() {
    let mut server = Server::of(|config| config.marks = true);
    let marks = |out: &[NodeOut]| -> Vec<Stage> {
        out.iter().filter_map(|out| if let NodeOut::Mark { stage, .. } = out { Some(*stage) } else { None }).collect()
    };
    let out = server.read(1, PAGE);
    assert_eq!(marks(&out), [Stage::Dispatched]);
    assert_eq!(marks(&server.on(NodeIn::ReadDone { job: device_read(&out), value: Value(0) })), [Stage::Fetched]);
    assert_eq!(marks(&server.write(2, PAGE, 7)), [Stage::Admitted, Stage::Replicated]);
    assert_eq!(marks(&server.read(3, PAGE)), [Stage::Cached]);
}

mod with_a_peer {
    use super::*;

    fn server() -> Server {
        Server::of(|config| config.vssds[0].replicas = with_peer())
    }
    fn from_peer(server: &mut Server, message: ReplicaMessage) -> Vec<NodeOut> {
        server.packet(PEER, VSSD, 0, Body::Replica(message))
    }
    fn timestamp(version: u32) -> Timestamp {
        Timestamp { version, node: PEER }
    }
    fn invalidate(page: Page, version: u32, value: u64) -> ReplicaMessage {
        ReplicaMessage::Invalidate { page, timestamp: timestamp(version), value: Value(value), epoch: 1, origin: None }
    }
    fn acknowledge(page: Page, version: u32) -> (NodeId, Body) {
        (PEER, Body::Replica(ReplicaMessage::Acknowledge { page, timestamp: timestamp(version), epoch: 1 }))
    }
    fn validate(page: Page, version: u32) -> ReplicaMessage {
        ReplicaMessage::Validate { page, timestamp: timestamp(version), epoch: 1 }
    }

    #[test]
    fn a_write_is_done_when_the_peer_has_a_copy() {
        let mut server = server();
        let out = server.write(1, PAGE, 77);
        let Some((PEER, Body::Replica(ReplicaMessage::Invalidate { timestamp, .. }))) = sent(&out).first().copied()
        else {
            panic!("{out:?}")
        };
        let done = from_peer(&mut server, ReplicaMessage::Acknowledge { page: PAGE, timestamp, epoch: 1 });
        assert!(sent(&done).contains(&write_reply(1)));
    }

    #[test]
    fn a_read_during_invalid_waits_for_the_validation_and_gets_the_new_value() {
        let mut server = server();
        from_peer(&mut server, invalidate(PAGE, 1, 77));
        assert!(server.read(1, PAGE).is_empty());
        assert_eq!(sent(&from_peer(&mut server, validate(PAGE, 1))), [read_reply(1, 77)]);
    }

    #[test]
    fn what_the_device_has_read_is_thrown_away_when_a_write_came_in_between() {
        let mut server = server();
        let read = device_read(&server.read(1, PAGE));
        let flush = device_write(&from_peer(&mut server, invalidate(PAGE, 1, 77)));
        server.on(NodeIn::WriteDone { job: flush });
        let fetched = server.on(NodeIn::ReadDone { job: read, value: Value(77) });
        assert!(fetched.is_empty(), "the peer's other readers may still get the old value: {fetched:?}");
        assert_eq!(sent(&from_peer(&mut server, validate(PAGE, 1))), [read_reply(1, 77)]);
    }

    #[test]
    fn a_peers_write_waits_for_room_too_and_is_acknowledged_only_then() {
        let mut server = Server::of(|config| {
            config.vssds[0].replicas = with_peer();
            config.cache.pages = 1;
        });
        let first = from_peer(&mut server, invalidate(Page(1), 1, 71));
        assert_eq!(sent(&first), [acknowledge(Page(1), 1)]);
        assert!(from_peer(&mut server, invalidate(Page(2), 1, 72)).is_empty());
        assert!(from_peer(&mut server, invalidate(Page(2), 1, 72)).is_empty(), "sent again, and waits once");
        let room = server.on(NodeIn::WriteDone { job: device_write(&first) });
        assert_eq!(sent(&room), [acknowledge(Page(2), 1)]);
    }

    #[test]
    fn a_replica_that_leaves_its_group_refuses_what_it_had_not_begun_and_is_silent_on_the_rest() {
        let mut server = server();
        server.write(1, PAGE, 77);
        assert!(server.write(2, PAGE, 78).is_empty());
        assert!(server.read(3, PAGE).is_empty());
        let order =
            ControlMessage::Members { epoch: 2, replicas: [Some((PEER, PEERS_VSSD)), None, None, None], stale: None };
        let out = server.packet(NodeId(70), VSSD, 0, Body::Control(order));
        let stale = Err(Refusal::Stale);
        let answers = sent(&out);
        assert!(answers.contains(&(CLIENT, Body::WriteReply { tag: Tag(2), done: stale })), "{answers:?}");
        assert!(
            answers.contains(&(CLIENT, Body::ReadReply { tag: Tag(3), value: Err(Refusal::Stale) })),
            "{answers:?}"
        );
        assert_eq!(answers.len(), 2, "write 1 may or may not take effect: no answer is the only true one");
        assert_eq!(server.node.open_requests(), 0);
    }
}

mod with_a_control_plane {
    use super::*;

    const CONTROL: NodeId = NodeId(70);

    fn server() -> Server {
        let link = ControlLink { node: CONTROL, heartbeat: Span::ms(10), lease: Span::ms(25) };
        let mut server = Server::of(|config| config.control = Some(link));
        let confirmed = (CONTROL, Body::Control(ControlMessage::UpToDate { epoch: 1 }));
        assert_eq!(sent(&server.blocks(VSSD, 50)), [confirmed], "the first thing that a server says");
        server
    }
    fn echo(server: &mut Server, out: &[NodeOut]) {
        let [(CONTROL, body @ Body::Heartbeat { .. })] = sent(out)[..] else { panic!("{out:?}") };
        server.packet(CONTROL, VssdId(0), 0, body);
    }

    #[test]
    fn a_server_whose_lease_has_lapsed_says_nothing() {
        let mut server = server();
        let read = device_read(&server.read(1, PAGE));
        server.now = Time::ms(25) - Span::ps(1);
        assert_eq!(sent(&server.on(NodeIn::ReadDone { job: read, value: Value(0) })), [read_reply(1, 0)]);
        server.now = Time::ms(25);
        assert!(server.read(2, PAGE).is_empty(), "the lease of the start has lapsed");
        let beat = server.until(Time::ms(25));
        echo(&mut server, &beat);
        let late = device_read(&server.read(3, PAGE));
        server.now = Time::ms(50);
        assert!(server.on(NodeIn::ReadDone { job: late, value: Value(0) }).is_empty());
        assert_eq!((server.node.counters().unanswered, server.node.open_requests()), (2, 0));
    }

    #[test]
    fn a_server_beats_regularly_and_counts_its_restarts() {
        let mut server = server();
        let beats = |out: Vec<NodeOut>| sent(&out);
        assert_eq!(beats(server.until(Time::ZERO)), [(CONTROL, Body::Heartbeat { beat: 0 })]);
        assert_eq!(server.node.next_wakeup(), Some(Time::ms(10)));
        assert_eq!(beats(server.until(Time::ms(10))), [(CONTROL, Body::Heartbeat { beat: 1 })]);
        server.on(NodeIn::Fail);
        server.on(NodeIn::Recover);
        assert_eq!(beats(server.until(Time::ms(10))), [(CONTROL, Body::Heartbeat { beat: 1 << 32 })]);
    }

    #[test]
    fn a_replacement_is_made_room_for_and_then_follows_the_order() {
        let mut server = server();
        let new = VssdId(31);
        let replicas = [Some((PEER, PEERS_VSSD)), Some((SERVER, new)), None, None];
        let order = Body::Control(ControlMessage::Members { epoch: 5, replicas, stale: Some((SERVER, new)) });
        assert_eq!(server.packet(CONTROL, new, 0, order), [NodeOut::Wanted { vssd: new }]);
        assert!(server.packet(CONTROL, new, 0, order).is_empty(), "asked for once");
        let out = server.on(NodeIn::Adopt(vssd(new, 9)));
        let fetches = sent(&out)
            .iter()
            .filter(|(_, body)| matches!(body, Body::Replica(ReplicaMessage::Fetch { epoch: 5, .. })))
            .count();
        assert_eq!(fetches, 4, "the window of its rebuild");
    }

    #[test]
    fn an_order_for_a_vssd_that_is_long_gone_is_confirmed() {
        let mut server = server();
        let replicas = [Some((PEER, PEERS_VSSD)), None, None, None];
        let order = Body::Control(ControlMessage::Members { epoch: 5, replicas, stale: None });
        let confirmed = (CONTROL, Body::Control(ControlMessage::UpToDate { epoch: 5 }));
        assert_eq!(sent(&server.packet(CONTROL, VssdId(31), 0, order)), [confirmed]);
    }
}

#[test]
fn a_restart_loses_dram_and_hears_no_answers_of_its_earlier_life() {
    let mut server = Server::new(config());
    let flush = device_write(&server.write(1, PAGE, 71));
    let read = device_read(&server.read(2, Page(6)));
    server.on(NodeIn::Fail);
    assert!(server.on(NodeIn::ReadDone { job: read, value: Value(0) }).is_empty());
    assert_eq!(sent(&server.on(NodeIn::Recover)), [collection(CollectionNote::Finish)], "old grants bind nobody");
    assert!(server.on(NodeIn::WriteDone { job: flush }).is_empty());
    assert_eq!((server.node.pages_held(), server.node.open_requests()), (0, 0));
    let refused = Body::ReadReply { tag: Tag(3), value: Err(Refusal::Stale) };
    assert_eq!(sent(&server.read(3, PAGE)), [(CLIENT, refused)], "its data may be old");
}

#[test]
fn an_answer_carries_the_predicted_way_back_where_that_is_a_label() {
    let mut server = Server::of(|config| config.adds_labels = true);
    for (tag, latency_ns, carried) in [(1, 4_000, 8_000), (2, 2_000, 5_000)] {
        let out = server.packet(CLIENT, VSSD, latency_ns, Body::Read { tag: Tag(tag), page: PAGE });
        let out = server.on(NodeIn::ReadDone { job: device_read(&out), value: Value(9) });
        let [NodeOut::Send(answer)] = out[..] else { panic!("{out:?}") };
        assert_eq!(answer.latency_ns, carried, "its own, and the mean of those so far");
    }
}

#[test]
fn a_write_is_answered_once_the_device_has_taken_it_where_dram_does_not_count() {
    let mut server = Server::of(|config| {
        (config.write_ack, config.device_depth, config.cache.flush_above) = (WriteAck::Dequeued, 1, 3);
    });
    let read = device_read(&server.read(1, Page(1)));
    assert!(server.write(2, PAGE, 77).is_empty(), "the device is busy");
    assert!(server.write(3, PAGE, 78).is_empty(), "over it in DRAM");
    let out = server.on(NodeIn::ReadDone { job: read, value: Value(0) });
    assert_eq!(sent(&out), [read_reply(1, 0), write_reply(2), write_reply(3)], "one flush holds both");
    let flush = device_write(&out);
    // It has begun without this one, which needs a flush of its own.
    assert!(server.write(4, PAGE, 79).is_empty());
    let out = server.on(NodeIn::WriteDone { job: flush });
    assert_eq!(sent(&out), [write_reply(4)]);
    device_write(&out);
}

#[test]
fn a_write_that_the_device_has_taken_still_waits_for_the_other_replicas() {
    let mut server = Server::of(|config| {
        config.write_ack = WriteAck::Dequeued;
        config.vssds[0].replicas = with_peer();
    });
    let out = server.write(1, PAGE, 77);
    device_write(&out);
    let Some((PEER, Body::Replica(ReplicaMessage::Invalidate { page, timestamp, epoch, .. }))) =
        sent(&out).first().copied()
    else {
        panic!("{out:?}")
    };
    let acknowledge = Body::Replica(ReplicaMessage::Acknowledge { page, timestamp, epoch });
    let out = server.packet(PEER, VSSD, 0, acknowledge);
    assert!(sent(&out).contains(&write_reply(1)), "{out:?}");
}

/// A server whose clients send writes again.
fn remembering() -> Server {
    Server::of(|config| {
        config.remember = Some(Span::secs(10));
        config.vssds[0].replicas = with_peer();
        config.vssds[0].unit = 0;
    })
}

fn session(oldest: u64, again: bool) -> Session {
    Session { life: LIFE, oldest: Tag(oldest), epoch: 1, again }
}

/// The write with that tag of the client, whose oldest is the first.
fn origin(tag: u64) -> Origin {
    session(1, false).origin(CLIENT, Tag(tag))
}

/// A copy of a write.
fn copy(server: &mut Server, tag: u64, value: u64, session: Session) -> Vec<NodeOut> {
    let body = Body::Write { tag: Tag(tag), page: PAGE, value: Value(value), session: Some(session) };
    server.packet(CLIENT, VSSD, 100, body)
}

/// The answer of the peer to the last question about a write.
fn recalled(server: &mut Server, asked: &[NodeOut], known: bool) -> Vec<NodeOut> {
    let question = sent(asked).into_iter().find_map(|(to, body)| match body {
        Body::Replica(ReplicaMessage::Recall { page, origin, round, epoch, .. }) if to == PEER => {
            Some(ReplicaMessage::Recalled { page, id: origin.id, known, round, epoch })
        }
        _ => None,
    });
    server.packet(PEER, VSSD, 0, Body::Replica(question.expect("the peer is asked")))
}

fn replies(out: &[NodeOut]) -> usize {
    let is_reply =
        |out: &&NodeOut| matches!(out, NodeOut::Send(Packet { body: Body::WriteReply { done: Ok(()), .. }, .. }));
    out.iter().filter(is_reply).count()
}

fn invalidations(out: &[NodeOut]) -> usize {
    let is_inv = |out: &&NodeOut| {
        matches!(out, NodeOut::Send(Packet { body: Body::Replica(ReplicaMessage::Invalidate { .. }), .. }))
    };
    out.iter().filter(is_inv).count()
}

/// Questions to the peer, and whether each says that the write is done.
fn questions(out: &[NodeOut]) -> Vec<bool> {
    let questions = sent(out).into_iter().filter_map(|(_, body)| match body {
        Body::Replica(ReplicaMessage::Recall { known, .. }) => Some(known),
        _ => None,
    });
    questions.collect()
}

#[test]
fn a_write_that_is_sent_again_is_done_once_and_answered_again() {
    let mut server = remembering();
    assert_eq!(invalidations(&copy(&mut server, 1, 77, session(1, false))), 1);
    assert!(copy(&mut server, 1, 77, session(1, true)).is_empty(), "it is open");
    let timestamp = Timestamp { version: 1, node: SERVER };
    let acknowledge = Body::Replica(ReplicaMessage::Acknowledge { page: PAGE, timestamp, epoch: 1 });
    assert_eq!(replies(&server.packet(PEER, VSSD, 0, acknowledge)), 1);
    let again = copy(&mut server, 1, 77, session(1, true));
    assert_eq!((questions(&again), replies(&again)), (vec![true], 0), "the peer must know it too");
    let repeated = copy(&mut server, 1, 77, session(1, true));
    assert_eq!(questions(&repeated), [true], "what is lost is sent again with the client's next copy");
    let again = recalled(&mut server, &again, true);
    assert_eq!((replies(&again), invalidations(&again)), (1, 0), "it is done");
    assert_eq!(invalidations(&copy(&mut server, 2, 78, session(2, false))), 1, "another one is not");
    assert!(copy(&mut server, 1, 77, session(1, true)).is_empty(), "nobody waits for the first any longer");
    assert_eq!((server.node.counters().writes_known, server.node.counters().writes_over), (1, 1));
    assert_eq!(server.node.writes_remembered(), 1);
}

#[test]
fn a_write_that_a_newer_one_had_overtaken_is_not_done_once_more() {
    let mut server = remembering();
    for (version, value, tag) in [(2, 78, 2), (1, 77, 1)] {
        let (timestamp, value, origin) = (Timestamp { version, node: PEER }, Value(value), Some(origin(tag)));
        let invalidate = ReplicaMessage::Invalidate { page: PAGE, timestamp, value, epoch: 1, origin };
        server.packet(PEER, VSSD, 0, Body::Replica(invalidate));
        let validate = ReplicaMessage::Validate { page: PAGE, timestamp, epoch: 1 };
        server.packet(PEER, VSSD, 0, Body::Replica(validate));
    }
    let again = copy(&mut server, 1, 77, session(1, true));
    assert_eq!((replies(&again), invalidations(&again)), (0, 0));
    let again = recalled(&mut server, &again, true);
    assert_eq!((replies(&again), invalidations(&again)), (1, 0));
}

#[test]
fn a_write_that_a_peer_had_begun_is_known_here_and_forgotten_with_the_group() {
    let mut server = remembering();
    let (timestamp, value) = (Timestamp { version: 1, node: PEER }, Value(77));
    let invalidate = ReplicaMessage::Invalidate { page: PAGE, timestamp, value, epoch: 1, origin: Some(origin(1)) };
    server.packet(PEER, VSSD, 0, Body::Replica(invalidate));
    let early = copy(&mut server, 1, 77, session(1, true));
    assert_eq!((replies(&early), questions(&early)), (0, vec![]), "it is not valid here yet");
    let validate = ReplicaMessage::Validate { page: PAGE, timestamp, epoch: 1 };
    let valid = server.packet(PEER, VSSD, 0, Body::Replica(validate));
    let again = recalled(&mut server, &valid, true);
    assert_eq!((replies(&again), invalidations(&again)), (1, 0));
    assert_eq!(server.node.writes_remembered(), 1);
    // The server was away: the peer alone, then itself as the stale member, then whole again.
    let mut order = |epoch, stale| {
        let (replicas, members) = (with_peer(), Body::Control);
        server.packet(PEER, VSSD, 0, members(ControlMessage::Members { epoch, replicas, stale }));
    };
    order(3, Some((SERVER, VSSD)));
    order(5, None);
    assert_eq!(server.node.writes_remembered(), 0);
}

#[test]
fn a_further_copy_of_a_write_that_no_member_knows_is_done() {
    let mut server = remembering();
    let asked = copy(&mut server, 1, 77, session(1, true));
    assert_eq!((questions(&asked), invalidations(&asked)), (vec![false], 0));
    assert!(server.node.held_values().any(|value| value == Value(77)), "its data are kept");
    assert_eq!(invalidations(&recalled(&mut server, &asked, false)), 1);
    assert_eq!(server.node.open_requests(), 1);
}

#[test]
fn a_further_copy_of_a_write_that_a_peer_alone_knows_is_answered_when_all_know_it() {
    let mut server = remembering();
    let asked = copy(&mut server, 1, 77, session(1, true));
    let told = recalled(&mut server, &asked, true);
    assert_eq!((replies(&told), invalidations(&told)), (1, 0), "the one peer and this server");
    assert_eq!(server.node.writes_remembered(), 1);
}

#[test]
fn of_two_servers_that_ask_at_once_none_does_the_write_before_its_client_asks_again() {
    let mut server = remembering();
    let asked = copy(&mut server, 1, 77, session(1, true));
    let recall = ReplicaMessage::Recall { page: PAGE, origin: origin(1), known: false, round: 9, epoch: 1 };
    let said = server.packet(PEER, VSSD, 0, Body::Replica(recall));
    let recalled_here = ReplicaMessage::Recalled { page: PAGE, id: origin(1).id, known: false, round: 9, epoch: 1 };
    assert_eq!(sent(&said), [(PEER, Body::Replica(recalled_here))]);
    assert_eq!(invalidations(&recalled(&mut server, &asked, false)), 0, "an answer to a question given up");
    assert_eq!(server.node.open_requests(), 0);
    let asked = copy(&mut server, 1, 77, session(1, true));
    assert_eq!(invalidations(&recalled(&mut server, &asked, false)), 1);
    let said = server.packet(PEER, VSSD, 0, Body::Replica(recall));
    assert_eq!(said, [], "it has begun: there is no answer yet");
}

/// A client whose first write never ends.
#[test]
fn a_client_that_has_too_many_writes_behind_its_oldest_is_refused_and_none_is_forgotten() {
    let mut server = remembering();
    let mut tag = 0;
    loop {
        tag += 1;
        assert!(tag < 1 << 17, "what is known is bounded");
        let out = copy(&mut server, tag, tag, session(1, false));
        let full = Body::WriteReply { tag: Tag(tag), done: Err(Refusal::Full) };
        if sent(&out).contains(&(CLIENT, full)) {
            break;
        }
        let timestamp = Timestamp { version: tag as u32, node: SERVER };
        let acknowledge = Body::Replica(ReplicaMessage::Acknowledge { page: PAGE, timestamp, epoch: 1 });
        let done = server.packet(PEER, VSSD, 0, acknowledge);
        assert_eq!(replies(&done), 1);
        if let Some(job) = done.iter().chain(&out).find_map(|out| match out {
            NodeOut::Write { job, .. } => Some(*job),
            _ => None,
        }) {
            server.on(NodeIn::WriteDone { job });
        }
    }
    assert_eq!(server.node.writes_remembered() as u64, tag - 1);
    assert_eq!(server.node.counters().refusals, 1);
    assert_eq!(questions(&copy(&mut server, 2, 2, session(1, true))), [true], "an old one is known");
    assert_eq!(invalidations(&copy(&mut server, tag, tag, session(tag, false))), 1, "the oldest has ended");
    assert_eq!(server.node.writes_remembered(), 1);
}
