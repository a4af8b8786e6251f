//! Collection: Algorithm 2, lines 7 to 19, channel groups, and who is asked.

use super::*;

/// Two software-isolated vSSDs on the same channels.
fn group() -> NodeConfig {
    let mut config = config();
    config.vssds.push(vssd(NEIGHBOUR, 0));
    config.borrow = Some(BorrowConfig { group_blocks: 16, keep_blocks: 2 });
    config
}

fn check(server: &mut Server, number: u64) -> Vec<NodeOut> {
    server.until(Time::secs(30 * number))
}

/// Requests keep coming until the check, so that the vSSD is not idle.
fn keep_busy(server: &mut Server, until: Time) {
    for back in (0..40).rev() {
        server.now = until - Span::ms(back);
        let out = server.read(back, PAGE);
        server.on(NodeIn::ReadDone { job: device_read(&out), value: Value(0) });
    }
}

#[test]
fn the_ratio_decides_what_is_asked_at_each_check() {
    for (free, note) in [
        (24, Some(CollectionNote::Regular)),
        (25, Some(CollectionNote::Soft)),
        (34, Some(CollectionNote::Soft)),
        (35, None),
    ] {
        let mut server = Server::new(config());
        server.blocks(VSSD, free);
        keep_busy(&mut server, Time::secs(30));
        let asked = sent(&check(&mut server, 1));
        assert_eq!(asked, note.map(collection).into_iter().collect::<Vec<_>>(), "{free} of 100");
    }
}

#[test]
fn an_accepted_collection_runs_step_by_step_until_enough_is_free() {
    let mut server = Server::new(config());
    server.blocks(VSSD, 30);
    assert_eq!(sent(&check(&mut server, 1)), [collection(CollectionNote::Soft)]);
    let step = NodeOut::Collect { vssd: VSSD, stream: 0 };
    assert_eq!(server.note(VSSD, CollectionNote::Accept), [step]);
    assert!(server.node.is_collecting(VSSD));
    assert_eq!(
        server.on(NodeIn::Collected { vssd: VSSD, stream: 0, freed: false, nothing: false }),
        [step],
        "a page has moved"
    );
    assert_eq!(server.collected(VSSD, 49), [step]);
    assert_eq!(sent(&server.collected(VSSD, 50)), [collection(CollectionNote::Finish)]);
    assert!(!server.node.is_collecting(VSSD));
}

#[test]
fn a_delayed_soft_request_comes_again_at_the_next_check() {
    let mut server = Server::new(config());
    server.blocks(VSSD, 30);
    check(&mut server, 1);
    assert!(server.note(VSSD, CollectionNote::Delay).is_empty());
    assert!(server.until(Time::secs(59)).is_empty());
    assert_eq!(sent(&check(&mut server, 2)), [collection(CollectionNote::Soft)]);
}

#[test]
fn without_a_switch_a_regular_request_collects_after_three_repeats() {
    let mut server = Server::new(config());
    server.blocks(VSSD, 10);
    assert_eq!(sent(&check(&mut server, 1)), [collection(CollectionNote::Regular)]);
    for repeat in 1..=3 {
        let at = Time::secs(30) + Span::ms(repeat);
        assert_eq!(server.node.next_wakeup(), Some(at));
        assert_eq!(sent(&server.until(at)), [collection(CollectionNote::Regular)]);
    }
    assert_eq!(server.until(Time::secs(30) + Span::ms(4)), [NodeOut::Collect { vssd: VSSD, stream: 0 }]);
}

#[test]
fn an_idle_vssd_collects_in_the_background_and_a_request_ends_that() {
    let mut server = Server::new(config());
    server.blocks(VSSD, 40);
    let out = check(&mut server, 1);
    assert_eq!(sent(&out), [collection(CollectionNote::Background)]);
    assert!(out.contains(&NodeOut::Collect { vssd: VSSD, stream: 0 }));
    server.read(1, PAGE);
    let out = server.on(NodeIn::Collected { vssd: VSSD, stream: 0, freed: false, nothing: false });
    assert_eq!(sent(&out), [collection(CollectionNote::Finish)]);
}

#[test]
fn an_uncoordinated_server_collects_when_it_must_and_asks_nobody() {
    let mut server = Server::of(|config| {
        config.collection.coordination = Coordination::Uncoordinated;
        config.collection.background = false;
    });
    server.blocks(VSSD, 25);
    assert!(check(&mut server, 1).is_empty());
    server.blocks(VSSD, 24);
    assert_eq!(check(&mut server, 2), [NodeOut::Collect { vssd: VSSD, stream: 0 }]);
    assert!(server.collected(VSSD, 50).is_empty());
}

#[test]
fn the_controller_variant_sends_reads_on_while_it_collects_and_keeps_writes() {
    let controller = NodeId(80);
    let mut server = Server::of(|config| config.collection.coordination = Coordination::Controller(controller));
    server.blocks(VSSD, 30);
    assert_eq!(sent(&check(&mut server, 1)), [(controller, Body::Control(ControlMessage::Ask(CollectionNote::Soft)))]);
    let answer = ControlMessage::Answer { note: CollectionNote::Accept, free: Some((PEER, PEERS_VSSD)) };
    server.packet(controller, VSSD, 0, Body::Control(answer));
    let body = Body::Read { tag: Tag(4), page: PAGE };
    let onward = Packet { vssd: PEERS_VSSD, latency_ns: 100, source: CLIENT, target: PEER, body };
    assert_eq!(server.read(4, PAGE), [NodeOut::Send(onward)], "the peer will answer the client itself");
    assert_eq!(sent(&server.write(5, PAGE, 1)), [write_reply(5)]);
    let end = server.collected(VSSD, 50);
    assert!(sent(&end).contains(&(controller, Body::Control(ControlMessage::Ask(CollectionNote::Finish)))));
    assert_eq!(sent(&server.read(6, PAGE)), [read_reply(6, 1)]);
}

#[test]
fn a_group_asks_for_each_member_and_a_no_to_one_delays_all() {
    let mut server = Server::new(group());
    server.blocks(VSSD, 10);
    server.blocks(NEIGHBOUR, 50);
    assert_eq!(sent(&check(&mut server, 1)), [collection(CollectionNote::Soft), collection(CollectionNote::Soft)]);
    assert!(server.note(VSSD, CollectionNote::Accept).is_empty());
    assert_eq!(sent(&server.note(NEIGHBOUR, CollectionNote::Delay)), [collection(CollectionNote::Finish)]);
    assert!(!server.node.is_collecting(VSSD));
}

#[test]
fn a_member_without_free_blocks_borrows_and_gives_back_after_the_collection() {
    let mut server = Server::new(group());
    server.blocks(NEIGHBOUR, 90);
    let loan = BlockMove { from: NEIGHBOUR, to: VSSD, blocks: 16 };
    assert_eq!(server.blocks(VSSD, 1), [NodeOut::Lend(loan)]);
    server.on(NodeIn::Lent(loan));
    server.on(NodeIn::Blocks { vssd: NEIGHBOUR, free: 20, owned: 84 });
    server.on(NodeIn::Blocks { vssd: VSSD, free: 17, owned: 116 });

    assert_eq!(
        sent(&check(&mut server, 1)),
        [collection(CollectionNote::Regular), collection(CollectionNote::Regular)]
    );
    server.note(VSSD, CollectionNote::Accept);
    server.note(NEIGHBOUR, CollectionNote::Accept);
    let more = NodeIn::Collected { vssd: NEIGHBOUR, stream: 0, freed: false, nothing: true };
    assert!(server.on(more).is_empty());
    server.on(NodeIn::Blocks { vssd: VSSD, free: 60, owned: 116 });
    let end = server.on(NodeIn::Collected { vssd: VSSD, stream: 0, freed: true, nothing: false });
    assert_eq!(sent(&end), [collection(CollectionNote::Finish), collection(CollectionNote::Finish)]);
    let back = BlockMove { from: VSSD, to: NEIGHBOUR, blocks: 16 };
    assert!(end.contains(&NodeOut::Return(back)), "{end:?}");
    server.on(NodeIn::Returned(back));
}

#[test]
fn a_refused_write_goes_on_with_borrowed_blocks_and_nobody_collects() {
    let mut server = Server::new(group());
    server.blocks(NEIGHBOUR, 90);
    let flush = device_write(&server.write(1, PAGE, 7));
    let loan = BlockMove { from: NEIGHBOUR, to: VSSD, blocks: 16 };
    assert_eq!(server.blocks(VSSD, 0), [NodeOut::Lend(loan)]);
    assert!(server.on(NodeIn::WriteRefused { job: flush }).is_empty(), "help is on its way");
    assert_eq!(device_write(&server.on(NodeIn::Lent(loan))), flush);
}

#[test]
fn a_refused_write_collects_when_nobody_can_lend() {
    let mut server = Server::new(group());
    server.blocks(NEIGHBOUR, 17);
    server.blocks(VSSD, 0);
    let flush = device_write(&server.write(1, PAGE, 7));
    let asked = sent(&server.on(NodeIn::WriteRefused { job: flush }));
    assert_eq!(asked, [collection(CollectionNote::Regular), collection(CollectionNote::Regular)]);
}

#[test]
fn a_loan_of_which_nothing_came_leads_to_a_collection() {
    let mut server = Server::new(group());
    server.blocks(NEIGHBOUR, 90);
    let flush = device_write(&server.write(1, PAGE, 7));
    server.blocks(VSSD, 0);
    server.on(NodeIn::WriteRefused { job: flush });
    let nothing = BlockMove { from: NEIGHBOUR, to: VSSD, blocks: 0 };
    assert_eq!(sent(&server.on(NodeIn::Lent(nothing))).len(), 2);
}

#[test]
fn idle_time_is_used_below_a_share_of_free_blocks() {
    for (free, collects) in [(54, true), (55, false), (99, false)] {
        let mut server = Server::of(|config| config.collection.background_ppm = 550_000);
        server.blocks(VSSD, free);
        let note = collects.then(|| collection(CollectionNote::Background));
        assert_eq!(sent(&check(&mut server, 1)), note.into_iter().collect::<Vec<_>>(), "{free} of 100");
    }
    // Algorithm 2 asks for idle time alone.
    let mut server = Server::new(config());
    server.blocks(VSSD, 99);
    assert_eq!(sent(&check(&mut server, 1)), [collection(CollectionNote::Background)]);
}

#[test]
fn a_channel_issues_nothing_during_a_step_and_what_waits_between_two() {
    for grain in [Grain::Die, Grain::Channel] {
        let mut server = Server::of(|config| {
            config.collection.grain = grain;
            config.collection.coordination = Coordination::Uncoordinated;
            config.vssds[0].streams = 2;
        });
        server.blocks(VSSD, 10);
        let steps = [0, 1].map(|stream| NodeOut::Collect { vssd: VSSD, stream });
        assert_eq!(check(&mut server, 1), steps);
        let is_read = |out: &[NodeOut]| out.iter().any(|one| matches!(one, NodeOut::Read { .. }));
        let at_once = server.read(1, PAGE);
        let moved = |stream| NodeIn::Collected { vssd: VSSD, stream, freed: false, nothing: false };
        let first = server.on(moved(0));
        let second = server.on(moved(1));
        match grain {
            Grain::Die => {
                assert!(is_read(&at_once));
                assert_eq!((first, second), (vec![steps[0]], vec![steps[1]]));
            }
            Grain::Channel => {
                assert!(at_once.is_empty() && first.is_empty(), "{at_once:?} {first:?}");
                // The read is before the next steps, which come together.
                assert!(is_read(&second[..1]), "{second:?}");
                assert_eq!(second[1..], steps);
            }
        }
    }
}

#[test]
fn the_channels_are_free_when_collection_has_ended() {
    let mut server = Server::of(|config| {
        config.collection.grain = Grain::Channel;
        config.collection.coordination = Coordination::Uncoordinated;
    });
    server.blocks(VSSD, 10);
    check(&mut server, 1);
    assert!(server.read(1, PAGE).is_empty());
    let out = server.collected(VSSD, 50);
    assert!(matches!(out[..], [NodeOut::Read { .. }]), "{out:?}");
    assert!(matches!(server.read(2, PAGE)[..], [NodeOut::Read { .. }]));
}
