use super::*;
use crate::REPLICAS_MAX;
use proptest::prelude::*;

const OWN: NodeId = NodeId(0);
const FIRST: (NodeId, VssdId) = (NodeId(2), VssdId(20));
const SECOND: (NodeId, VssdId) = (NodeId(3), VssdId(30));
const REMOTE: (NodeId, VssdId) = (NodeId(9), VssdId(90));
const CONTROLLER: NodeId = NodeId(5);
const READ_TIMEOUT: Span = Span::ms(10);
const WRITE_TIMEOUT: Span = Span::ms(50);

fn config() -> ClientConfig {
    ClientConfig {
        node: OWN,
        rack_nodes: 6,
        volumes: vec![vec![FIRST, REMOTE, SECOND]],
        read_timeout: READ_TIMEOUT,
        write_timeout: WRITE_TIMEOUT,
        attempts_max: 4,
        silence: 3,
        probe_period: Span::secs(1),
        limit: None,
        adds_labels: false,
        resend: None,
        life: NonZero::<u32>::MIN,
        hello: None,
    }
}

struct Desk {
    client: Client,
    now: Time,
    next: u64,
}

impl Desk {
    fn new(config: ClientConfig) -> Desk {
        Desk { client: Client::new(config).expect("a sound configuration"), now: Time::ZERO, next: 0 }
    }

    fn on(&mut self, input: ClientIn) -> Vec<ClientOut> {
        let mut out = Vec::new();
        self.client.on(self.now, input, &mut out);
        out
    }

    fn issue(&mut self, operation: Operation) -> (Tag, Vec<ClientOut>) {
        self.next += 1;
        let tag = Tag(self.next);
        let (page, value) = (Page(8), Value(1_000 + self.next));
        (tag, self.on(ClientIn::Issue { tag, operation, vssd_group: 0, page, value }))
    }

    /// Issues a request and gives where it was sent.
    fn ask(&mut self, operation: Operation) -> (Tag, (NodeId, VssdId)) {
        let (tag, out) = self.issue(operation);
        (tag, sent_to(&out))
    }

    fn hear(&mut self, from: (NodeId, VssdId), body: Body) -> Vec<ClientOut> {
        let packet = Packet { vssd: from.1, latency_ns: 7, source: from.0, target: OWN, body };
        self.on(ClientIn::Packet(packet))
    }

    fn members(&mut self, epoch: u32, members: &[(NodeId, VssdId)], stale: Option<(NodeId, VssdId)>) {
        let mut replicas = [None; REPLICAS_MAX];
        replicas.iter_mut().zip(members).for_each(|(place, member)| *place = Some(*member));
        let order = Body::Control(ControlMessage::Members { epoch, replicas, stale });
        assert_eq!(self.hear((CONTROLLER, FIRST.1), order), []);
    }

    /// Lets the next moment come at which the client wants to run.
    fn wake(&mut self) -> Vec<ClientOut> {
        self.now = self.client.next_wakeup().expect("something is awaited");
        let mut out = Vec::new();
        self.client.on_wakeup(self.now, &mut out);
        out
    }
}

fn sent_to(out: &[ClientOut]) -> (NodeId, VssdId) {
    match out {
        [ClientOut::Send(packet)] => (packet.target, packet.vssd),
        other => panic!("one packet was expected, not {other:?}"),
    }
}

fn done(tag: Tag, outcome: ClientOutcome) -> Vec<ClientOut> {
    vec![ClientOut::Done { tag, outcome, label: Span::ZERO }]
}

fn read_reply(tag: Tag, value: Result<Value, Refusal>) -> Body {
    Body::ReadReply { tag, value }
}

fn write_reply(tag: Tag, done: Result<(), Refusal>) -> Body {
    Body::WriteReply { tag, done }
}

#[test]
fn a_read_and_a_write_go_to_the_first_replica_and_end_with_its_answer() {
    let mut desk = Desk::new(config());
    let (read, out) = desk.issue(Operation::Read);
    let body = Body::Read { tag: read, page: Page(8) };
    assert_eq!(out, [ClientOut::Send(Packet { vssd: FIRST.1, latency_ns: 0, source: OWN, target: FIRST.0, body })]);
    let (write, out) = desk.issue(Operation::Write);
    let body = Body::Write { tag: write, page: Page(8), value: Value(1_002), session: None };
    assert_eq!(out, [ClientOut::Send(Packet { vssd: FIRST.1, latency_ns: 0, source: OWN, target: FIRST.0, body })]);
    assert_eq!(desk.hear(FIRST, write_reply(write, Ok(()))), done(write, ClientOutcome::Written));
    let redirected = desk.hear(SECOND, read_reply(read, Ok(Value(5))));
    assert_eq!(redirected, done(read, ClientOutcome::Read(Value(5))));
    assert_eq!((desk.client.next_wakeup(), desk.client.under_way()), (None, 0));
}

#[test]
fn a_read_without_an_answer_tries_the_rack_and_then_the_other_rack() {
    let mut desk = Desk::new(config());
    let (tag, first) = desk.ask(Operation::Read);
    assert_eq!(first, FIRST);
    assert_eq!(sent_to(&desk.wake()), SECOND);
    assert_eq!(desk.now, Time::ZERO + READ_TIMEOUT);
    assert_eq!(sent_to(&desk.wake()), REMOTE);
    assert_eq!(sent_to(&desk.wake()), FIRST);
    assert_eq!(desk.wake(), done(tag, ClientOutcome::Unanswered));
    assert_eq!(desk.now, Time::ZERO + READ_TIMEOUT * 4);
    assert_eq!(desk.hear(FIRST, read_reply(tag, Ok(Value(1)))), [], "too late");
    assert_eq!(desk.client.counters().ignored, 1);
}

#[test]
fn a_late_answer_to_an_earlier_attempt_is_an_answer() {
    let mut desk = Desk::new(config());
    let (tag, _) = desk.ask(Operation::Read);
    desk.wake();
    assert_eq!(desk.hear(FIRST, read_reply(tag, Ok(Value(4)))), done(tag, ClientOutcome::Read(Value(4))));
    assert_eq!(desk.hear(SECOND, read_reply(tag, Ok(Value(4)))), []);
}

#[test]
fn an_answer_at_the_last_moment_counts() {
    let mut desk = Desk::new(config());
    let (tag, _) = desk.ask(Operation::Write);
    desk.now = Time::ZERO + WRITE_TIMEOUT;
    assert_eq!(desk.hear(FIRST, write_reply(tag, Ok(()))), done(tag, ClientOutcome::Written));
}

#[test]
fn a_write_without_an_answer_is_never_sent_again() {
    let mut desk = Desk::new(config());
    let (tag, _) = desk.ask(Operation::Write);
    assert_eq!(desk.wake(), done(tag, ClientOutcome::Indeterminate));
    assert_eq!(desk.now, Time::ZERO + WRITE_TIMEOUT);
    assert_eq!(desk.client.next_wakeup(), None);
    assert_eq!(desk.client.counters().sent, 1);
}

#[test]
fn a_refused_read_goes_round_the_replicas_until_it_has_been_tried_enough() {
    let mut desk = Desk::new(config());
    let (tag, _) = desk.ask(Operation::Read);
    let refused = |refusal| read_reply(tag, Err(refusal));
    assert_eq!(sent_to(&desk.hear(FIRST, refused(Refusal::Stale))), SECOND);
    assert_eq!(sent_to(&desk.hear(SECOND, refused(Refusal::UnknownVssd))), REMOTE);
    assert_eq!(sent_to(&desk.hear(REMOTE, refused(Refusal::Stale))), FIRST);
    let failed = done(tag, ClientOutcome::Failed(Refusal::WornOut));
    assert_eq!(desk.hear(FIRST, refused(Refusal::WornOut)), failed);
}

#[test]
fn a_refused_write_asks_each_replica_once() {
    let mut desk = Desk::new(config());
    let (tag, _) = desk.ask(Operation::Write);
    let refused = |refusal| write_reply(tag, Err(refusal));
    assert_eq!(sent_to(&desk.hear(FIRST, refused(Refusal::Stale))), SECOND);
    assert_eq!(sent_to(&desk.hear(SECOND, refused(Refusal::UnknownVssd))), REMOTE);
    let failed = done(tag, ClientOutcome::Failed(Refusal::WornOut));
    assert_eq!(desk.hear(REMOTE, refused(Refusal::WornOut)), failed);
}

#[test]
fn a_page_beyond_the_volume_is_beyond_every_replica() {
    let mut desk = Desk::new(config());
    let (tag, _) = desk.ask(Operation::Read);
    let failed = done(tag, ClientOutcome::Failed(Refusal::OutOfRange));
    assert_eq!(desk.hear(FIRST, read_reply(tag, Err(Refusal::OutOfRange))), failed);
}

#[test]
fn a_refusal_by_a_replica_that_was_asked_before_does_not_send_a_write_twice() {
    let mut desk = Desk::new(config());
    let (tag, _) = desk.ask(Operation::Write);
    assert_eq!(sent_to(&desk.hear(FIRST, write_reply(tag, Err(Refusal::Stale)))), SECOND);
    assert_eq!(desk.hear(FIRST, write_reply(tag, Err(Refusal::Stale))), [], "a duplicate");
    assert_eq!(desk.hear(SECOND, write_reply(tag, Ok(()))), done(tag, ClientOutcome::Written));
}

#[test]
fn a_read_modify_write_reads_and_then_writes() {
    let mut desk = Desk::new(config());
    let (tag, first) = desk.ask(Operation::ReadModifyWrite);
    assert_eq!(first, FIRST);
    let out = desk.hear(SECOND, read_reply(tag, Ok(Value(3))));
    let body = Body::Write { tag, page: Page(8), value: Value(1_001), session: None };
    let write = Packet { vssd: FIRST.1, latency_ns: 0, source: OWN, target: FIRST.0, body };
    assert_eq!(out, [ClientOut::Send(write)]);
    assert_eq!(desk.hear(SECOND, read_reply(tag, Ok(Value(3)))), [], "the first half is over");
    assert_eq!(desk.wake(), done(tag, ClientOutcome::Indeterminate));
    assert_eq!(desk.now, Time::ZERO + WRITE_TIMEOUT);
}

#[test]
fn a_silent_rack_is_left_for_the_other_but_for_probes() {
    let mut desk = Desk::new(config());
    for _ in 0..3 {
        desk.ask(Operation::Write);
    }
    desk.wake();
    assert_eq!(desk.client.counters().timeouts, 3);
    assert_eq!(desk.ask(Operation::Write).1, REMOTE);
    let (probe, target) = desk.ask(Operation::Read);
    assert_eq!(target, FIRST, "the first read probes");
    let (read, target) = desk.ask(Operation::Read);
    assert_eq!(target, REMOTE);
    let answer = done(read, ClientOutcome::Read(Value(0)));
    assert_eq!(desk.hear(REMOTE, read_reply(read, Ok(Value(0)))), answer);
    assert_eq!(desk.ask(Operation::Read).1, REMOTE, "the other rack's answer says nothing about this one");
    assert_eq!(desk.hear(SECOND, read_reply(probe, Ok(Value(0)))).len(), 1);
    assert_eq!(desk.ask(Operation::Read).1, FIRST);
    assert_eq!(desk.ask(Operation::Write).1, FIRST);
}

#[test]
fn orders_of_the_control_plane_say_who_serves() {
    let mut desk = Desk::new(config());
    let new = (NodeId(4), VssdId(40));
    desk.members(2, &[SECOND, REMOTE, new], Some(new));
    assert_eq!(desk.ask(Operation::Read).1, SECOND);
    desk.members(1, &[FIRST, SECOND, REMOTE], None);
    assert_eq!(desk.ask(Operation::Read).1, SECOND, "an older order");
    desk.members(3, &[REMOTE, new], None);
    assert_eq!(desk.ask(Operation::Write).1, new, "the rack goes first");
    desk.members(4, &[], None);
    assert_eq!(desk.ask(Operation::Write).1, new, "nobody is no order");
    assert_eq!(desk.client.counters().ignored, 2);
}

fn limited() -> ClientConfig {
    let limit = LimitConfig { controller: CONTROLLER, period: Span::ms(100), burst: 3, write_cost: 3 };
    ClientConfig { limit: Some(limit), read_timeout: Span::secs(9), write_timeout: Span::secs(9), ..config() }
}

/// 100 units a second: one read each 10 ms, one write each 30 ms, in the order of issue.
#[test]
fn a_rate_holds_requests_back_and_zero_lets_them_go() {
    let mut desk = Desk::new(ClientConfig {
        limit: limited().limit.map(|limit| LimitConfig { period: Span::secs(60), ..limit }),
        ..limited()
    });
    desk.hear((CONTROLLER, FIRST.1), Body::Control(ControlMessage::Rate { per_second: 100 }));
    let operations = [Operation::Write, Operation::Read, Operation::Write, Operation::Read, Operation::Read];
    let sent: Vec<usize> = operations.map(|operation| desk.issue(operation).1.len()).into();
    assert_eq!(sent, [1, 0, 0, 0, 0], "the burst is spent");
    let times = [10, 40, 50].map(|_| {
        assert_eq!(desk.wake().len(), 1);
        desk.now
    });
    assert_eq!(times, [10, 40, 50].map(Time::ms));
    let out = desk.hear((CONTROLLER, FIRST.1), Body::Control(ControlMessage::Rate { per_second: 0 }));
    assert_eq!(sent_to(&out), FIRST);
    assert_eq!(desk.issue(Operation::Write).1.len(), 1);
}

#[test]
fn demand_is_told_at_the_end_of_each_period_in_which_there_was_any() {
    let mut desk = Desk::new(limited());
    desk.now = Time::ms(130);
    let mut tags = Vec::new();
    for operation in [Operation::Read, Operation::Write, Operation::ReadModifyWrite] {
        tags.push(desk.issue(operation).0);
    }
    let body = Body::Control(ControlMessage::Demand { requests: 3, writes: 2 });
    let report = Packet { vssd: FIRST.1, latency_ns: 0, source: OWN, target: CONTROLLER, body };
    assert_eq!(desk.wake(), [ClientOut::Send(report)]);
    assert_eq!(desk.now, Time::ms(200));
    assert_eq!(desk.client.next_wakeup(), Some(Time::ms(9_130)), "no demand, no report");
}

#[test]
fn packets_that_are_not_for_a_client_are_counted() {
    let mut desk = Desk::new(config());
    assert_eq!(desk.hear(FIRST, Body::Heartbeat { beat: 1 }), []);
    assert_eq!(desk.hear(FIRST, read_reply(Tag(77), Ok(Value(1)))), []);
    assert_eq!(desk.hear((CONTROLLER, FIRST.1), Body::Control(ControlMessage::Rate { per_second: 1 })), []);
    assert_eq!(desk.client.counters().ignored, 3);
}

#[test]
fn an_unknown_volume_is_refused_at_once() {
    let mut desk = Desk::new(config());
    let issue =
        ClientIn::Issue { tag: Tag(1), operation: Operation::Read, vssd_group: 1, page: Page(0), value: Value(0) };
    assert_eq!(desk.on(issue), done(Tag(1), ClientOutcome::Failed(Refusal::UnknownVssd)));
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let refused = |config| Client::new(config).expect_err("refused");
    assert_eq!(refused(ClientConfig { attempts_max: 0, ..config() }), ClientError::Zero { field: "attempts_max" });
    let empty = vec![vec![FIRST], vec![]];
    assert_eq!(refused(ClientConfig { volumes: empty, ..config() }), ClientError::NoReplicas { volume: 1 });
    let same = ClientError::SameName { first: 0, second: 1, vssd: FIRST.1 };
    assert_eq!(refused(ClientConfig { volumes: vec![vec![FIRST], vec![FIRST]], ..config() }), same);
}

/// What the world does with the oldest packet of the client that it has not looked at.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lose,
    Serve,
    ServeTwice,
    Refuse(Refusal),
    Issue(Operation),
    Wait(u64),
    Rate(u32),
}

fn fate() -> impl Strategy<Value = Fate> {
    let refusals = vec![Refusal::UnknownVssd, Refusal::OutOfRange, Refusal::Stale, Refusal::WornOut];
    let operations = vec![Operation::Read, Operation::Write, Operation::ReadModifyWrite];
    prop_oneof![
        1 => Just(Fate::Lose),
        3 => Just(Fate::Serve),
        1 => Just(Fate::ServeTwice),
        1 => prop::sample::select(refusals).prop_map(Fate::Refuse),
        6 => prop::sample::select(operations).prop_map(Fate::Issue),
        3 => (0_u64..30).prop_map(Fate::Wait),
        1 => (0_u32..500).prop_map(Fate::Rate),
    ]
}

/// Everything the client has said.
#[derive(Default)]
struct Record {
    open: std::collections::VecDeque<Packet>,
    done: BTreeMap<Tag, u32>,
    /// Copies of a write that have not been refused.
    writes: BTreeMap<Tag, u32>,
}

impl Record {
    fn note(&mut self, out: Vec<ClientOut>) {
        for event in out {
            match event {
                ClientOut::Send(packet) => {
                    if let Body::Write { tag, .. } = packet.body {
                        *self.writes.entry(tag).or_default() += 1;
                        assert_eq!(self.writes[&tag], 1, "a second copy of {tag:?} while the first may be done");
                    }
                    self.open.push_back(packet);
                }
                ClientOut::Done { tag, .. } => *self.done.entry(tag).or_default() += 1,
            }
        }
    }

    fn answer(&mut self, desk: &mut Desk, refusal: Option<Refusal>, copies: u32) {
        let Some(packet) = self.open.pop_front() else { return };
        let body = match packet.body {
            Body::Read { tag, .. } => read_reply(tag, refusal.map_or(Ok(Value(1)), Err)),
            Body::Write { tag, .. } => {
                let left = self.writes.get_mut(&tag).expect("a write that was sent");
                *left -= u32::from(refusal.is_some());
                write_reply(tag, refusal.map_or(Ok(()), Err))
            }
            _ => return,
        };
        for _ in 0..copies {
            let out = desk.hear((packet.target, packet.vssd), body);
            self.note(out);
        }
    }
}

proptest! {
    #[test]
    fn every_request_ends_once_and_no_write_is_under_way_twice(fates in prop::collection::vec(fate(), 1..200)) {
        let mut desk = Desk::new(ClientConfig {
            limit: limited().limit, silence: 2, ..config()
        });
        let mut record = Record::default();
        for fate in fates {
            match fate {
                Fate::Lose => drop(record.open.pop_front()),
                Fate::Serve => record.answer(&mut desk, None, 1),
                Fate::ServeTwice => record.answer(&mut desk, None, 2),
                Fate::Refuse(refusal) => record.answer(&mut desk, Some(refusal), 2),
                Fate::Issue(operation) => {
                    let (_, out) = desk.issue(operation);
                    record.note(out);
                }
                Fate::Wait(ms) => {
                    let end = desk.now + Span::ms(ms);
                    while desk.client.next_wakeup().is_some_and(|next| next <= end) {
                        let out = desk.wake();
                        record.note(out);
                    }
                    desk.now = end;
                }
                Fate::Rate(per_second) => {
                    let rate = Body::Control(ControlMessage::Rate { per_second });
                    let out = desk.hear((CONTROLLER, FIRST.1), rate);
                    record.note(out);
                }
            }
        }
        while desk.client.next_wakeup().is_some() {
            let out = desk.wake();
            record.note(out);
        }
        prop_assert_eq!(desk.client.under_way(), 0);
        prop_assert!(record.done.values().all(|ends| *ends == 1));
        prop_assert_eq!(record.done.len() as u64, desk.next);
    }
}

#[test]
fn the_lat_of_answers_is_added_up_where_networks_are_labels() {
    let answer = |body| Packet { vssd: FIRST.1, latency_ns: 700, source: FIRST.0, target: OWN, body };
    for (adds_labels, each) in [(false, 0), (true, 700)] {
        let mut desk = Desk::new(ClientConfig { adds_labels, ..config() });
        let (tag, _) = desk.ask(Operation::ReadModifyWrite);
        let mut out = Vec::new();
        desk.client.on(desk.now, ClientIn::Packet(answer(read_reply(tag, Ok(Value(1))))), &mut out);
        assert!(matches!(out[..], [ClientOut::Send(_)]), "{out:?}");
        out.clear();
        // A second answer to the read is nobody's.
        desk.client.on(desk.now, ClientIn::Packet(answer(read_reply(tag, Ok(Value(1))))), &mut out);
        desk.client.on(desk.now, ClientIn::Packet(answer(write_reply(tag, Ok(())))), &mut out);
        assert_eq!(out, [ClientOut::Done { tag, outcome: ClientOutcome::Written, label: Span::ns(2 * each) }]);
    }
}

/// A live client: it sends again for a second, and asks node 5 for members.
fn resending() -> Desk {
    let (resend, hello) = (Some(Span::secs(1)), Some((CONTROLLER, Span::ms(200))));
    Desk::new(ClientConfig { resend, hello, ..config() })
}

/// What there is beside questions for members.
fn but_questions(out: Vec<ClientOut>) -> Vec<ClientOut> {
    let is_question = |sent: &ClientOut| matches!(sent, ClientOut::Send(packet) if packet.target == CONTROLLER);
    out.into_iter().filter(|sent| !is_question(sent)).collect()
}

/// What it sends next beside questions for members, and when.
fn next_request(desk: &mut Desk) -> (Span, Vec<ClientOut>) {
    loop {
        let out = but_questions(desk.wake());
        if !out.is_empty() {
            return (desk.now.saturating_since(Time::ZERO), out);
        }
    }
}

#[test]
fn an_unanswered_write_is_sent_to_the_same_server_until_time_is_up() {
    let mut desk = resending();
    let (tag, out) = desk.issue(Operation::Write);
    let first = sent_to(&but_questions(out));
    // Each copy has twice as long, up to 8 times as long.
    for timeouts in [1, 3, 7, 15] {
        let (at, out) = next_request(&mut desk);
        assert_eq!((at, sent_to(&out)), (WRITE_TIMEOUT * timeouts, first));
    }
    let (at, out) = next_request(&mut desk);
    let (outcome, label) = (ClientOutcome::Indeterminate, Span::ZERO);
    assert_eq!((at, out), (WRITE_TIMEOUT * 23, vec![ClientOut::Done { tag, outcome, label }]));
}

/// An answer that turns it away is an answer: its server is not late.
#[test]
fn a_write_that_is_turned_away_has_the_first_time_again() {
    let mut desk = resending();
    let (tag, out) = desk.issue(Operation::Write);
    assert_eq!(sent_to(&but_questions(out)), FIRST);
    for timeouts in [1, 3] {
        assert_eq!(next_request(&mut desk).0, WRITE_TIMEOUT * timeouts);
    }
    assert_eq!(desk.hear(FIRST, Body::WriteReply { tag, done: Err(Refusal::Full) }), []);
    for timeouts in [7, 8, 10] {
        assert_eq!(next_request(&mut desk).0, WRITE_TIMEOUT * timeouts);
    }
}

/// Replicas that refuse are all asked at once, then again at the deadline: none is asked in a loop.
/// A write that no server may have begun ends with their reason.
#[test]
fn what_every_server_refuses_is_sent_once_to_each_and_then_at_the_deadline() {
    let refuse = |desk: &mut Desk, tag, from, is_write| {
        let refused = Err(Refusal::WornOut);
        let body = if is_write {
            Body::WriteReply { tag, done: refused }
        } else {
            Body::ReadReply { tag, value: refused.map(|()| Value(0)) }
        };
        desk.hear(from, body)
    };
    for (operation, timeout) in [(Operation::Write, WRITE_TIMEOUT), (Operation::Read, READ_TIMEOUT)] {
        let is_write = operation == Operation::Write;
        let mut desk = resending();
        let (tag, out) = desk.issue(operation);
        let mut sent = but_questions(out);
        let rounds = Span::secs(1).as_ps() / timeout.as_ps();
        for round in 1..=rounds {
            let mut asked = vec![];
            for _ in 0..3 {
                asked.push(sent_to(&sent));
                sent = refuse(&mut desk, tag, sent_to(&sent), is_write);
            }
            assert_eq!(sent, [], "all have refused");
            asked.sort();
            assert_eq!(asked, [FIRST, SECOND, REMOTE]);
            let at;
            (at, sent) = next_request(&mut desk);
            assert_eq!(at, timeout * round);
        }
        let (outcome, label) = (ClientOutcome::Failed(Refusal::WornOut), Span::ZERO);
        assert_eq!(sent, [ClientOut::Done { tag, outcome, label }]);
        assert_eq!(desk.client.counters().timeouts, 0);
    }
}

/// A refusal is an answer: the next server has the first time.
#[test]
fn a_write_that_is_refused_has_the_first_time_again_and_may_have_begun_before() {
    let mut desk = resending();
    let (tag, _) = desk.issue(Operation::Write);
    for timeouts in [1, 3] {
        assert_eq!(next_request(&mut desk).0, WRITE_TIMEOUT * timeouts);
    }
    let mut asked = FIRST;
    for _ in 0..2 {
        let out = desk.hear(asked, Body::WriteReply { tag, done: Err(Refusal::WornOut) });
        assert_ne!(sent_to(&out), asked);
        asked = sent_to(&out);
    }
    for timeouts in [4, 6, 10] {
        assert_eq!(next_request(&mut desk).0, WRITE_TIMEOUT * timeouts);
    }
    // Whoever refuses it last: a server that did not answer may have begun it.
    loop {
        desk.hear(asked, Body::WriteReply { tag, done: Err(Refusal::Full) });
        match next_request(&mut desk).1[..] {
            [ClientOut::Done { outcome, .. }] => break assert_eq!(outcome, ClientOutcome::Indeterminate),
            ref out => asked = sent_to(out),
        }
    }
}

/// Its host has it done by another client, and writes again: a copy would overwrite that.
#[test]
fn what_nobody_waits_for_is_not_sent_again() {
    for (operation, outcome) in
        [(Operation::Write, ClientOutcome::Indeterminate), (Operation::Read, ClientOutcome::Unanswered)]
    {
        let mut desk = resending();
        let (tag, _) = desk.issue(operation);
        let (other, _) = desk.issue(operation);
        let done = ClientOut::Done { tag, outcome, label: Span::ZERO };
        assert_eq!(but_questions(desk.on(ClientIn::Leave(tag))), [done]);
        assert_eq!(desk.on(ClientIn::Leave(tag)), [], "it is over");
        loop {
            match next_request(&mut desk).1[..] {
                [ClientOut::Send(Packet { body: Body::Write { tag, session, .. }, .. })] => {
                    assert_eq!((tag, session.expect("it may be sent again").oldest), (other, other));
                }
                [ClientOut::Send(Packet { body: Body::Read { tag, .. }, .. })] => assert_eq!(tag, other),
                [ClientOut::Done { tag, .. }] => break assert_eq!(tag, other),
                ref out => panic!("{out:?}"),
            }
        }
        assert_eq!(desk.client.counters().left, 1);
    }
}

/// A client that was stopped hears first whether its hosts are still there.
#[test]
fn a_client_that_slept_waits_before_it_sends_again() {
    for (slept, at) in [(SLEPT, SLEPT * 2), (SLEPT - Span::ps(1), SLEPT - Span::ps(1))] {
        let mut desk = resending();
        let (_, out) = desk.issue(Operation::Write);
        assert!(!but_questions(out).is_empty());
        // Half of that counts from the deadline, half from when it last ran: both are passed.
        let asleep = WRITE_TIMEOUT + slept;
        desk.now = Time::ZERO + asleep;
        let mut out = Vec::new();
        desk.client.on_wakeup(desk.now, &mut out);
        let sent = !but_questions(out).is_empty();
        assert_eq!(sent, slept < SLEPT);
        let again = if sent { asleep } else { next_request(&mut desk).0 };
        assert_eq!(again, WRITE_TIMEOUT + at);
    }
}

/// A machine that is slow for ever has its requests sent again all the same.
#[test]
fn a_client_that_always_sleeps_sends_every_other_time() {
    let mut desk = resending();
    desk.issue(Operation::Write);
    let mut sent = 0;
    for turn in 1..=8 {
        desk.now = Time::ZERO + SLEPT * 2 * turn;
        let mut out = Vec::new();
        desk.client.on_wakeup(desk.now, &mut out);
        sent += but_questions(out).len();
    }
    assert!(sent > 0, "it gives up at least");
}

/// The server that has read is not late.
#[test]
fn the_write_of_a_read_modify_write_has_the_first_time() {
    let mut desk = resending();
    let (tag, _) = desk.issue(Operation::ReadModifyWrite);
    next_request(&mut desk);
    let (read, _) = next_request(&mut desk);
    assert_eq!(read, READ_TIMEOUT * 3);
    sent_to(&desk.hear(FIRST, Body::ReadReply { tag, value: Ok(Value(5)) }));
    assert_eq!(next_request(&mut desk).0, read + WRITE_TIMEOUT);
}

/// Who has refused to read has not refused to write.
#[test]
fn the_write_of_a_read_modify_write_asks_all_servers_at_once() {
    let mut desk = resending();
    let (tag, out) = desk.issue(Operation::ReadModifyWrite);
    let mut sent = but_questions(out);
    for _ in 0..2 {
        sent = desk.hear(sent_to(&sent), Body::ReadReply { tag, value: Err(Refusal::WornOut) });
    }
    sent = desk.hear(sent_to(&sent), Body::ReadReply { tag, value: Ok(Value(5)) });
    let mut asked = vec![];
    for _ in 0..3 {
        asked.push(sent_to(&sent));
        sent = desk.hear(sent_to(&sent), Body::WriteReply { tag, done: Err(Refusal::WornOut) });
    }
    assert_eq!(sent, [], "all have refused");
    asked.sort();
    assert_eq!(asked, [FIRST, SECOND, REMOTE]);
}

#[test]
fn a_write_goes_on_elsewhere_when_its_server_has_left_or_is_stale() {
    let mut desk = resending();
    let (tag, out) = desk.issue(Operation::Write);
    let first = sent_to(&but_questions(out));
    assert_eq!(first, FIRST);
    desk.members(2, &[SECOND, REMOTE], None);
    assert_ne!(sent_to(&next_request(&mut desk).1), FIRST);
    let asked = sent_to(&next_request(&mut desk).1);
    let stale = Body::WriteReply { tag, done: Err(Refusal::Stale) };
    assert_eq!(desk.hear(asked, stale), [], "not at once: two stale servers would hand it to and fro");
    assert_ne!(sent_to(&next_request(&mut desk).1), asked);
    let out = desk.hear(SECOND, Body::WriteReply { tag, done: Ok(()) });
    assert!(matches!(out[..], [ClientOut::Done { outcome: ClientOutcome::Written, .. }]), "{out:?}");
}

#[test]
fn it_asks_for_members_at_once_and_again_after_each_period() {
    let mut desk = resending();
    for question in 0..3 {
        let out = desk.wake();
        assert_eq!(desk.now, Time::ZERO + Span::ms(200) * question);
        let [ClientOut::Send(packet)] = out[..] else { panic!("{out:?}") };
        assert_eq!((packet.target, packet.body), (CONTROLLER, Body::Heartbeat { beat: question }));
    }
}

#[test]
fn a_copy_does_not_go_to_a_server_that_has_been_away_since() {
    let mut desk = resending();
    desk.wake();
    desk.members(1, &[FIRST, SECOND], None);
    let (_, out) = desk.issue(Operation::Write);
    assert_eq!(sent_to(&but_questions(out)), FIRST);
    // It leaves, is built anew and serves again before the copy is due: it has forgotten the write.
    desk.members(2, &[SECOND], None);
    desk.members(3, &[FIRST, SECOND], Some(FIRST));
    let (_, out) = desk.issue(Operation::Write);
    assert_eq!(sent_to(&but_questions(out)), SECOND);
    desk.members(4, &[FIRST, SECOND], None);
    let both = next_request(&mut desk).1;
    assert_eq!(both.iter().map(|one| sent_to(std::slice::from_ref(one))).collect::<Vec<_>>(), [SECOND, SECOND]);
    // The second write began when it was a member, though a stale one: it has seen that.
    desk.members(5, &[FIRST], None);
    let both = next_request(&mut desk).1;
    assert_eq!(both.iter().map(|one| sent_to(std::slice::from_ref(one))).collect::<Vec<_>>(), [FIRST, FIRST]);
}
