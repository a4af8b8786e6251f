//! Does the protocol hold: data that rot on flash are never read, and are written anew from another
//! replica as long as one has them.

use base::{NodeId, Program, Seed, Span, Stream, Time};
use blox::{
    Body, Contents, Membership, NodeConfig, NodeIn, NodeOut, Packet, Page, REPLICAS_MAX, Reading, Refusal, Replica,
    ReplicaConfig, ReplicaMessage, ReplicaOut, StorageNode, Tag, Ticket, Timestamp, Value, VssdConfig, VssdId,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const CLIENT: NodeId = NodeId(9);
const PAGES: u64 = 4;
const PERIOD: Span = Span::ms(40);

fn member(server: usize) -> (NodeId, VssdId) {
    (NodeId(server as u32), VssdId(10 + server as u32))
}

fn members(count: usize) -> [Option<(NodeId, VssdId)>; REPLICAS_MAX] {
    let mut replicas = [None; REPLICAS_MAX];
    (0..count).for_each(|server| replicas[server] = Some(member(server)));
    replicas
}

fn node(place: usize, count: usize) -> StorageNode {
    let ((id, vssd), replicas) = (member(place), members(count));
    let vssd = VssdConfig { id: vssd, pages: PAGES, unit: 0, streams: 1, isolation: None, epoch: 1, replicas };
    let config = NodeConfig { scrub: Some(PERIOD), ..NodeConfig::quiet(id, vec![vssd]) };
    StorageNode::new(config).expect("it is possible")
}

/// What a flash has of a page: its value, and whether the data are those of it.
type Kept = (Value, bool);

/// Servers with one volume, a network that delays and loses, and flash that rots.
struct World {
    nodes: Vec<StorageNode>,
    flash: Vec<BTreeMap<Page, Kept>>,
    now: Time,
    events: BTreeMap<(Time, u64), (usize, NodeIn)>,
    answers: Vec<Body>,
    count: u64,
    stream: Stream,
    loss_percent: u64,
}

impl World {
    fn new(count: usize, seed: u64, loss_percent: u64) -> World {
        World {
            nodes: (0..count).map(|place| node(place, count)).collect(),
            flash: vec![BTreeMap::new(); count],
            now: Time::ZERO,
            events: BTreeMap::new(),
            answers: Vec::new(),
            count: 0,
            stream: Seed(seed).stream("world"),
            loss_percent,
        }
    }
    fn push(&mut self, server: usize, input: NodeIn) {
        self.count += 1;
        let at = self.now + Span::us(20 + self.stream.below(200));
        self.events.insert((at, self.count), (server, input));
    }
    fn carry_out(&mut self, server: usize, out: Vec<NodeOut>) {
        for action in out {
            match action {
                NodeOut::Send(packet) if packet.target == CLIENT => self.answers.push(packet.body),
                NodeOut::Send(_) if self.stream.below(100) < self.loss_percent => {}
                NodeOut::Send(packet) => self.push(packet.target.index(), NodeIn::Packet(packet)),
                NodeOut::Read { job, page, .. } => {
                    let answer = match self.flash[server].get(&page).copied().unwrap_or((Value(0), true)) {
                        (Value::ROTTEN, _) => NodeIn::ReadRotten { job, named: None },
                        (value, true) => NodeIn::ReadDone { job, value },
                        (value, false) => NodeIn::ReadRotten { job, named: Some(value) },
                    };
                    self.push(server, answer);
                }
                NodeOut::Write { job, page, value, .. } => {
                    self.flash[server].insert(page, (value, true));
                    self.push(server, NodeIn::WriteDone { job });
                }
                _ => {}
            }
        }
    }
    fn step(&mut self) {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let alarms = self.nodes.iter().enumerate().filter_map(|(place, node)| Some((node.next_wakeup()?, place)));
        let (alarm, place) = alarms.min().expect("they scrub for ever");
        let mut out = Vec::new();
        if let Some(at) = event.filter(|at| *at <= alarm) {
            let (server, input) = self.events.pop_first().expect("it is there").1;
            self.now = self.now.max(at);
            self.nodes[server].on(self.now, input, &mut out);
            self.carry_out(server, out);
        } else {
            self.now = self.now.max(alarm);
            self.nodes[place].on_wakeup(self.now, &mut out);
            self.carry_out(place, out);
        }
    }
    fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }
    /// What a server answers to a request.
    fn ask(&mut self, server: usize, body: Body) -> Body {
        let (target, vssd) = member(server);
        self.push(server, NodeIn::Packet(Packet { vssd, latency_ns: 0, source: CLIENT, target, body }));
        let end = self.now + Span::secs(2);
        while self.answers.is_empty() {
            assert!(self.now < end, "{body:?} has no answer");
            self.step();
        }
        self.answers.remove(0)
    }
    fn read(&mut self, server: usize, page: Page) -> Result<Value, Refusal> {
        match self.ask(server, Body::Read { tag: Tag(1), page }) {
            Body::ReadReply { value, .. } => value,
            other => panic!("{other:?}"),
        }
    }
    fn write(&mut self, server: usize, page: Page, value: Value) {
        let answer = self.ask(server, Body::Write { tag: Tag(2), page, value, session: None });
        assert!(matches!(answer, Body::WriteReply { done: Ok(()), .. }), "{answer:?}");
    }
    fn rot(&mut self, server: usize, page: Page) {
        self.flash[server].entry(page).and_modify(|(_, is_sound)| *is_sound = false);
    }
    fn is_sound(&self, server: usize, page: Page) -> bool {
        self.flash[server].get(&page).is_none_or(|(value, is_sound)| *is_sound && *value != Value::ROTTEN)
    }
    fn repaired(&self) -> u64 {
        self.nodes.iter().map(StorageNode::pages_repaired).sum()
    }
}

#[test]
fn a_read_that_meets_a_rotten_page_is_served_from_another_replica_and_the_page_repaired() {
    let mut world = World::new(2, 1, 0);
    world.write(0, Page(2), Value(7));
    world.run(Span::ms(5));
    world.rot(1, Page(2));
    assert_eq!(world.read(1, Page(2)), Ok(Value(7)));
    world.run(Span::ms(5));
    assert!(world.is_sound(1, Page(2)));
    assert_eq!((world.nodes[1].pages_repaired(), world.nodes[1].counters().pages_rotten), (1, 1));
    assert_eq!((world.nodes[0].pages_repaired(), world.nodes[1].pages_lost()), (0, 0));
}

#[test]
fn a_page_without_a_sound_copy_is_an_error_until_it_is_written() {
    for count in 1..=3 {
        let mut world = World::new(count, 2, 0);
        world.write(0, Page(2), Value(7));
        world.run(Span::ms(5));
        (0..count).for_each(|server| world.rot(server, Page(2)));
        for server in 0..count {
            assert_eq!(world.read(server, Page(2)), Err(Refusal::Lost), "server {server} of {count}");
            assert_eq!(world.nodes[server].pages_lost(), 1);
        }
        assert_eq!(world.read(0, Page(1)), Ok(Value(0)), "others are there");
        world.write(0, Page(2), Value(8));
        world.run(Span::ms(5));
        for server in 0..count {
            assert_eq!(world.read(server, Page(2)), Ok(Value(8)), "server {server} of {count}");
            assert_eq!(world.nodes[server].pages_lost(), 0);
        }
    }
}

#[test]
fn a_device_that_reads_a_page_again_has_lost_none() {
    let mut world = World::new(1, 4, 0);
    world.write(0, Page(2), Value(7));
    world.run(Span::ms(5));
    world.rot(0, Page(2));
    assert_eq!((world.read(0, Page(2)), world.nodes[0].pages_lost()), (Err(Refusal::Lost), 1));
    world.flash[0].insert(Page(2), (Value(7), true));
    world.run(PERIOD + Span::ms(5));
    assert_eq!((world.nodes[0].pages_lost(), world.read(0, Page(2))), (0, Ok(Value(7))));
}

#[test]
fn a_scrub_finds_what_nobody_reads_within_its_period() {
    let mut world = World::new(3, 3, 0);
    (0..PAGES).for_each(|page| world.write(0, Page(page), Value(page + 1)));
    world.run(Span::ms(5));
    (0..PAGES).for_each(|page| world.rot(page as usize % 3, Page(page)));
    world.run(PERIOD + Span::ms(5));
    for page in 0..PAGES {
        assert!((0..3).all(|server| world.is_sound(server, Page(page))), "page {page}");
    }
    assert_eq!(world.repaired(), PAGES);
    assert!(world.nodes.iter().all(|node| (4..=7).contains(&node.counters().pages_scrubbed)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Whatever rots when, and whatever is lost on the way: a read has the last write, or an error
    /// where nobody has it. In the end all is repaired that can be.
    #[test]
    fn no_read_has_other_data_than_were_written(
        count in 1_usize..4,
        seed in any::<u64>(),
        loss_percent in prop_oneof![Just(0_u64), 0_u64..30],
        steps in prop::collection::vec((0_u8..6, 0_usize..3, 0..PAGES), 1..60),
    ) {
        let mut world = World::new(count, seed, loss_percent);
        let mut last = BTreeMap::new();
        for (number, (what, server, page)) in (1..).zip(steps) {
            let (server, page) = (server % count, Page(page));
            match what {
                0 | 1 => {
                    world.write(server, page, Value(number));
                    last.insert(page, Value(number));
                }
                2 | 3 => {
                    // Its copies may be in memory alone until now, and rot meanwhile.
                    let had_one = (0..count).any(|server| world.is_sound(server, page));
                    match world.read(server, page) {
                        Ok(value) => prop_assert_eq!(value, last.get(&page).copied().unwrap_or(Value(0))),
                        Err(refusal) => {
                            prop_assert_eq!(refusal, Refusal::Lost);
                            prop_assert!(!had_one, "a copy of page {} is sound", page.0);
                        }
                    }
                }
                4 => world.rot(server, page),
                _ => world.run(Span::us(700)),
            }
        }
        world.loss_percent = 0;
        world.run(PERIOD * 2 + Span::ms(200));
        for page in (0..PAGES).map(Page) {
            let sound = (0..count).filter(|server| world.is_sound(*server, page)).count();
            prop_assert!(sound == count || sound == 0, "page {} is sound at {sound} of {count}", page.0);
        }
    }
}

const PAGE: Page = Page(3);
const NOW: Time = Time::us(10);
const STALE: usize = 2;

/// A member of three, of which the last may be stale; it has not restarted itself.
fn replica(place: usize, stale: Option<usize>) -> Replica {
    let (retransmit, replay) = (Span::us(100), Span::us(250));
    let config = ReplicaConfig { own: member(place), pages: 8, retransmit, replay, fetch_window: 1, remember: None };
    let contents = if stale == Some(place) { Contents::Lost } else { Contents::Original };
    let mut replica = Replica::new(config, contents);
    let order = Membership { epoch: 1, replicas: members(3), stale: stale.map(member) };
    replica.members(NOW, &order, &mut Vec::new());
    replica
}

fn step(act: impl FnOnce(&mut Vec<ReplicaOut>)) -> Vec<ReplicaOut> {
    let mut out = Vec::new();
    act(&mut out);
    out
}

fn fetch_from(place: usize) -> ReplicaOut {
    let (to, vssd) = member(place);
    ReplicaOut::Send { to, vssd, message: ReplicaMessage::Fetch { page: PAGE, after: None, epoch: 1 } }
}

fn fetched(version: u32, value: Value) -> ReplicaMessage {
    let timestamp = Timestamp { version, node: NodeId(if version == 0 { 0 } else { 1 }) };
    ReplicaMessage::Fetched { page: PAGE, timestamp, value, epoch: 1 }
}

fn hear(replica: &mut Replica, from: usize, message: ReplicaMessage) -> Vec<ReplicaOut> {
    step(|out| replica.message(NOW, member(from).0, &message, out))
}

#[test]
fn a_stale_peer_helps_with_the_value_that_the_flash_names_and_with_no_other() {
    for (named, offered, is_taken) in [(Some(7), 7, true), (Some(7), 6, false), (None, 7, false)] {
        let mut holder = replica(0, Some(STALE));
        let asked = step(|out| {
            holder.rotten(NOW, PAGE, named.map(Value), Some(Ticket(1)), out);
        });
        assert_eq!(asked, [fetch_from(1)], "first the one that serves");
        let next = hear(&mut holder, 1, fetched(0, Value::ROTTEN));
        let said = if named.is_some() {
            assert_eq!(next, [fetch_from(STALE)]);
            hear(&mut holder, STALE, fetched(0, Value(offered)))
        } else {
            next
        };
        let ready = ReplicaOut::ReadReady { ticket: Ticket(1), value: Value(7) };
        assert_eq!(
            (said.contains(&ready), said.contains(&ReplicaOut::Lost { ticket: Ticket(1) })),
            (is_taken, !is_taken)
        );
    }
}

#[test]
fn a_copy_of_another_write_is_not_taken_from_a_peer_that_serves() {
    let mut holder = replica(0, None);
    step(|out| {
        holder.rotten(NOW, PAGE, None, Some(Ticket(1)), out);
    });
    assert_eq!(hear(&mut holder, 1, fetched(1, Value(9))), [fetch_from(2)]);
    let said = hear(&mut holder, 2, fetched(0, Value(7)));
    assert!(said.contains(&ReplicaOut::ReadReady { ticket: Ticket(1), value: Value(7) }), "{said:?}");
}

#[test]
fn a_reader_that_waits_for_a_copy_gets_the_write_that_overtakes_it() {
    let mut holder = replica(0, None);
    step(|out| {
        holder.rotten(NOW, PAGE, None, Some(Ticket(1)), out);
    });
    let timestamp = Timestamp { version: 1, node: NodeId(1) };
    let write = ReplicaMessage::Invalidate { page: PAGE, timestamp, value: Value(8), epoch: 1, origin: None };
    hear(&mut holder, 1, write);
    assert_eq!(holder.read(PAGE, Ticket(2)), Reading::Wait);
    assert_eq!(hear(&mut holder, 2, fetched(0, Value(7))), [], "an answer that is too late");
    let said = hear(&mut holder, 1, ReplicaMessage::Validate { page: PAGE, timestamp, epoch: 1 });
    let ready = |ticket| ReplicaOut::ReadReady { ticket: Ticket(ticket), value: Value(8) };
    assert_eq!(said, [ready(1), ready(2)]);
}

#[test]
fn a_stale_peer_waits_for_the_repair_and_hears_if_there_is_none() {
    for (helps, value) in [(true, Value(7)), (false, Value::ROTTEN)] {
        let mut holder = replica(0, Some(STALE));
        let fetch = ReplicaMessage::Fetch { page: PAGE, after: None, epoch: 1 };
        assert_eq!(hear(&mut holder, STALE, fetch), [ReplicaOut::Load { page: PAGE }]);
        let said = step(|out| assert!(holder.load_rotten(NOW, PAGE, Some(Value(7)), out)));
        assert_eq!(said, [fetch_from(1)], "nothing for the stale one yet");
        let mut said = hear(&mut holder, 1, fetched(0, if helps { Value(7) } else { Value::ROTTEN }));
        if !helps {
            assert_eq!(said, [fetch_from(STALE)], "it may have what was lost here");
            said = hear(&mut holder, STALE, fetched(0, Value::ROTTEN));
        }
        let (to, vssd) = member(STALE);
        let handed = ReplicaOut::Send { to, vssd, message: fetched(0, value) };
        assert_eq!(said.iter().filter(|output| **output == handed).count(), 1, "{said:?}");
        // It counts the page as lost, and its rebuild goes on.
        let mut stale = replica(STALE, Some(STALE));
        let next = hear(&mut stale, 0, fetched(0, value));
        assert_eq!(stale.pages_lost(), 0, "it has asked for page 0");
        drop(next);
    }
}

#[test]
fn a_stale_replica_answers_with_what_its_flash_has() {
    let mut stale = replica(STALE, Some(STALE));
    let fetch = ReplicaMessage::Fetch { page: PAGE, after: None, epoch: 1 };
    assert_eq!(hear(&mut stale, 0, fetch), [ReplicaOut::Load { page: PAGE }]);
    let (to, vssd) = member(0);
    let answer = |value| ReplicaOut::Send { to, vssd, message: fetched(0, value) };
    assert_eq!(step(|out| stale.loaded(PAGE, Value(7), out)), [answer(Value(7))]);
    hear(&mut stale, 0, fetch);
    let rotten = step(|out| assert!(!stale.load_rotten(NOW, PAGE, Some(Value(7)), out), "it is rebuilt anyway"));
    assert_eq!(rotten, [answer(Value::ROTTEN)]);
}

#[test]
fn a_peer_that_does_not_answer_is_asked_again_after_the_others() {
    let mut holder = replica(0, None);
    step(|out| {
        holder.rotten(NOW, PAGE, None, None, out);
    });
    let mut asked = Vec::new();
    for _ in 0..4 {
        let due = holder.next_wakeup().expect("an answer is missing");
        asked.extend(step(|out| holder.on_wakeup(due, out)));
    }
    assert_eq!(asked, [fetch_from(2), fetch_from(1), fetch_from(2), fetch_from(1)]);
}

#[test]
fn a_new_epoch_asks_anew_and_one_without_it_ends_the_wait() {
    let mut holder = replica(0, None);
    step(|out| {
        holder.rotten(NOW, PAGE, None, Some(Ticket(1)), out);
    });
    let order = |epoch, replicas| Membership { epoch, replicas, stale: None };
    let mut two = members(3);
    two[1] = None;
    let said = step(|out| holder.members(NOW, &order(2, two), out));
    let (to, vssd) = member(2);
    let message = ReplicaMessage::Fetch { page: PAGE, after: None, epoch: 2 };
    assert!(said.contains(&ReplicaOut::Send { to, vssd, message }), "{said:?}");
    let mut others = members(3);
    others[0] = None;
    let said = step(|out| holder.members(NOW, &order(3, others), out));
    assert!(said.contains(&ReplicaOut::Abandoned { ticket: Ticket(1), started: false }), "{said:?}");
    assert_eq!(holder.next_wakeup(), None);
}
