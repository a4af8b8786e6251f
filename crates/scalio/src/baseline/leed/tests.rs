//! A server on a device whose operations end in any order.

use super::*;
use crate::{
    BUCKETS_MAX, ClientId, Condition, Corrupt, Item, Key, Lifetime, LimitError, Outcome, Page, Refusal, RequestBody,
    RequestResult, SEGMENT_ITEMS_MAX, Segment, SegmentPointer, Source,
};
use base::{Program, Seed, Stream, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What lies on a device, by first sector.
#[derive(Default)]
struct Device {
    contents: BTreeMap<u64, (u32, Content<Vec<u8>>)>,
    is_broken: bool,
}

impl Device {
    fn write(&mut self, sector: u64, content: Content<Vec<u8>>) {
        let sectors = match &content {
            Content::Segment(segment) => segment.sectors(),
            Content::Page(page) => page.sectors(),
        };
        let end = sector + u64::from(sectors);
        let overwritten = |first: &u64, length: &u32| *first < end && *first + u64::from(*length) > sector;
        self.contents.retain(|first, (length, _)| !overwritten(first, length));
        self.contents.insert(sector, (sectors, content));
    }

    fn segment(&self, block: u32, pointer: SegmentPointer) -> Result<Arc<Segment>, Corrupt> {
        match self.contents.get(&pointer.extent.sector) {
            Some((_, Content::Segment(segment))) => pointer.check(block, segment).map(|()| segment.clone()),
            _ => Err(Corrupt::Foreign { what: "segment" }),
        }
    }

    fn record(&self, item: Item) -> Result<crate::Record<Vec<u8>>, Corrupt> {
        let foreign = Corrupt::Foreign { what: "record" };
        let Some((_, Content::Page(page))) = self.contents.get(&item.record.sector()) else { return Err(foreign) };
        let same = |record: &&crate::Record<_>| record.key == item.key && record.sequence == item.sequence;
        page.records.iter().find(same).cloned().ok_or(foreign)
    }

    fn scan(&self, extent: Extent) -> Vec<(u64, Content<Vec<u8>>)> {
        let end = extent.sector + u64::from(extent.sectors);
        let whole =
            self.contents.range(extent.sector..end).filter(|(sector, (length, _))| *sector + u64::from(*length) <= end);
        whole.map(|(sector, (_, content))| (*sector, content.clone())).collect()
    }

    fn answer(&mut self, action: ServerOut<Vec<u8>>) -> FlashAnswer<Vec<u8>> {
        if self.is_broken {
            return FlashAnswer::Failed;
        }
        match action {
            ServerOut::WriteRun { contents, .. } => {
                contents.into_iter().for_each(|(sector, content)| self.write(sector, content));
                FlashAnswer::Done
            }
            ServerOut::Flash { operation: FlashOperation::Write { extent, content }, .. } => {
                self.write(extent.sector, content);
                FlashAnswer::Done
            }
            ServerOut::Flash { operation: FlashOperation::ReadSegment { block, pointer }, .. } => {
                FlashAnswer::Segment(self.segment(block, pointer))
            }
            ServerOut::Flash { operation: FlashOperation::ReadRecord { item }, .. } => {
                FlashAnswer::Record(self.record(item))
            }
            ServerOut::Flash { operation: FlashOperation::Scan { extent }, .. } => {
                FlashAnswer::Scanned(self.scan(extent))
            }
            other => panic!("LEED asks its device for no {other:?}"),
        }
    }
}

/// A server, its device, and what is on its way between them.
struct Rack {
    server: Server<Vec<u8>>,
    device: Device,
    pending: Vec<ServerOut<Vec<u8>>>,
    answers: Vec<Answer<Vec<u8>>>,
    called: u64,
    now: Time,
}

impl Rack {
    fn new(config: ServerConfig) -> Rack {
        let server = Server::new(config).expect("a sound configuration");
        let (device, pending, answers) = (Device::default(), Vec::new(), Vec::new());
        Rack { server, device, pending, answers, called: 0, now: Time::us(1) }
    }

    fn input(&mut self, input: ServerIn<Vec<u8>>) {
        let mut out = Vec::new();
        self.server.on(self.now, input, &mut out);
        for action in out {
            match action {
                ServerOut::Answer(answer) => self.answers.push(answer),
                other => self.pending.push(other),
            }
        }
    }

    fn call(&mut self, operation: Operation<Vec<u8>>) -> u64 {
        let number = self.called;
        self.called += 1;
        self.input(ServerIn::Call(Call { client: ClientId(1), number, operation }));
        number
    }

    /// Ends the operation of the device at `place` among those that are on their way.
    fn end(&mut self, place: usize) {
        let action = self.pending.remove(place);
        let (ServerOut::Flash { request, .. } | ServerOut::WriteRun { request, .. }) = &action else { unreachable!() };
        let request = *request;
        let answer = self.device.answer(action);
        self.input(ServerIn::Flash { request, answer });
    }

    fn settle(&mut self) {
        while !self.pending.is_empty() {
            self.end(0);
        }
        assert!(self.server.is_idle());
    }

    fn ask(&mut self, operation: Operation<Vec<u8>>) -> CallResult<Vec<u8>> {
        let number = self.call(operation);
        self.settle();
        self.answers.iter().find(|answer| answer.number == number).expect("every call is answered").result.clone()
    }

    /// Reads and writes of the device that an operation costs, and how it ended.
    fn cost(&mut self, operation: Operation<Vec<u8>>) -> (u64, u64, CallResult<Vec<u8>>) {
        let before = *self.server.counters();
        let result = self.ask(operation);
        let after = self.server.counters();
        (after.reads - before.reads, after.writes - before.writes, result)
    }
}

fn key(name: &str) -> Key {
    Key::new(name.as_bytes()).expect("1 to 16 bytes")
}

fn get(name: &str) -> Operation<Vec<u8>> {
    Operation::Get { key: key(name) }
}

fn put(name: &str, value: &str) -> Operation<Vec<u8>> {
    Operation::Update(RequestBody::Put {
        key: key(name),
        value: value.into(),
        time_to_live: None,
        condition: Condition::Always,
    })
}

fn put_for(name: &str, value: &str, time_to_live: Lifetime) -> Operation<Vec<u8>> {
    let time_to_live = Some(time_to_live);
    Operation::Update(RequestBody::Put {
        key: key(name),
        value: value.into(),
        time_to_live,
        condition: Condition::Always,
    })
}

fn delete(name: &str) -> Operation<Vec<u8>> {
    Operation::Update(RequestBody::Delete { key: key(name) })
}

fn swap(name: &str, expected: Option<&str>, new: &str) -> Operation<Vec<u8>> {
    let expected = expected.map(Into::into);
    Operation::Update(RequestBody::CompareAndSwap { key: key(name), expected, new: new.into() })
}

fn value(text: &str) -> CallResult<Vec<u8>> {
    CallResult::Value(Some(text.into()))
}

const NOTHING: CallResult<Vec<u8>> = CallResult::Value(None);
const TOKENS: Tokens = Tokens { capacity: 1024, get: 3, put: 8, delete: 4 };

fn log(sector: u64, sectors: u32, chunk_sectors: u32, chunks_at_once: u32) -> LogConfig {
    let extent = Extent { sector, sectors };
    LogConfig { extent, chunk_sectors, chunks_at_once, compact_below: sectors / 2 }
}

/// One block, so that all keys share a segment.
fn roomy() -> ServerConfig {
    let (segments, records) = (log(0, 8_192, 512, 1), log(8_192, 8_192, 256, 4));
    ServerConfig { device: 0, devices: 1, blocks: 1, tokens: TOKENS, segments, records, hand_over: true }
}

/// 24 blocks and logs so small that compaction never rests.
fn tight() -> ServerConfig {
    let (segments, records) = (log(100, 420, 63, 1), log(1_000, 60, 4, 3));
    ServerConfig { device: 0, devices: 1, blocks: 24, tokens: TOKENS, segments, records, hand_over: true }
}

/// Blocks for 120 keys, and logs in which most lives for long.
fn crowded() -> ServerConfig {
    ServerConfig { blocks: 300, records: log(1_000, 230, 8, 3), ..tight() }
}

#[test]
fn each_operation_costs_the_reads_and_writes_of_the_table() {
    let mut rack = Rack::new(roomy());
    assert_eq!(rack.cost(get("a")), (0, 0, NOTHING));
    assert_eq!(
        rack.cost(put("a", "1")),
        (0, 2, CallResult::Update(RequestResult::Stored)),
        "there is no segment to read yet"
    );
    assert_eq!(rack.cost(put("a", "2")), (1, 2, CallResult::Update(RequestResult::Stored)));
    assert_eq!(rack.cost(put("b", "3")), (1, 2, CallResult::Update(RequestResult::Stored)));
    assert_eq!(rack.cost(get("a")), (2, 0, value("2")));
    assert_eq!(rack.cost(get("c")), (1, 0, NOTHING));
    assert_eq!(rack.cost(swap("a", Some("2"), "4")), (2, 2, CallResult::Update(RequestResult::Stored)));
    assert_eq!(
        rack.cost(swap("a", Some("2"), "5")),
        (2, 0, CallResult::Update(RequestResult::Differs { found: Some("4".into()) }))
    );
    assert_eq!(
        rack.cost(swap("c", Some("2"), "5")),
        (1, 0, CallResult::Update(RequestResult::Differs { found: None }))
    );
    assert_eq!(rack.cost(delete("a")), (1, 1, CallResult::Update(RequestResult::Deleted { found: true })));
    assert_eq!(rack.cost(delete("a")), (1, 0, CallResult::Update(RequestResult::Deleted { found: false })));
    assert_eq!(rack.cost(swap("a", None, "6")), (1, 2, CallResult::Update(RequestResult::Stored)));
}

#[test]
fn a_put_writes_its_record_while_it_reads_its_segment_and_is_answered_when_both_are_written() {
    let mut rack = Rack::new(roomy());
    rack.ask(put("a", "old"));
    rack.call(put("a", "new"));
    let [record, segment] = &rack.pending[..] else { panic!("{:?}", rack.pending) };
    assert!(matches!(record, ServerOut::Flash { operation: FlashOperation::Write { .. }, .. }));
    assert!(matches!(segment, ServerOut::Flash { operation: FlashOperation::ReadSegment { .. }, .. }));
    rack.end(1);
    rack.end(1);
    assert_eq!(rack.answers.len(), 1, "the segment is written, and the record is not");
    rack.call(get("a"));
    rack.end(1);
    rack.end(1);
    assert_eq!(rack.answers.last().map(|answer| &answer.result), Some(&value("old")));
    rack.end(0);
    assert_eq!(rack.answers.last().map(|answer| &answer.result), Some(&CallResult::Update(RequestResult::Stored)));
    assert_eq!(rack.ask(get("a")), value("new"));
}

/// Two changes of one segment. The first holds its lock and has read it, and both records are
/// written: what is on its way is the first one's segment.
fn two_puts_of_a_segment(config: ServerConfig) -> Rack {
    let mut rack = Rack::new(config);
    rack.ask(put("a", "old"));
    rack.call(put("a", "new"));
    rack.call(put("b", "other"));
    (0..3).for_each(|_| rack.end(0));
    let [ServerOut::Flash { operation: FlashOperation::Write { .. }, .. }] = rack.pending[..] else {
        panic!("{:?}", rack.pending)
    };
    rack
}

#[test]
fn a_change_that_waited_for_a_lock_writes_the_segment_that_it_got_from_memory() {
    for (hand_over, reads) in [(true, 1), (false, 2)] {
        let mut rack = two_puts_of_a_segment(ServerConfig { hand_over, ..roomy() });
        rack.end(0);
        let [ServerOut::Flash { operation, .. }] = &rack.pending[..] else { panic!("{:?}", rack.pending) };
        assert_eq!(matches!(operation, FlashOperation::Write { .. }), hand_over, "{operation:?}");
        rack.settle();
        let counters = rack.server.counters();
        assert_eq!((counters.reads, counters.handed_over), (reads, u64::from(hand_over)));
        assert_eq!((rack.ask(get("a")), rack.ask(get("b"))), (value("new"), value("other")));
    }
}

#[test]
fn a_change_that_changed_nothing_hands_over_what_it_read() {
    let mut rack = Rack::new(roomy());
    rack.ask(put("a", "old"));
    rack.call(delete("none"));
    rack.call(swap("a", Some("other"), "x"));
    rack.call(put("a", "new"));
    rack.settle();
    // One read of the segment, and one of the record that the swap compares.
    assert_eq!((rack.server.counters().reads, rack.server.counters().handed_over), (2, 2));
    assert_eq!(rack.ask(get("a")), value("new"));
}

#[test]
fn who_waited_for_a_change_that_failed_reads_the_device() {
    let mut rack = two_puts_of_a_segment(roomy());
    rack.device.is_broken = true;
    rack.end(0);
    rack.device.is_broken = false;
    let [ServerOut::Flash { operation, .. }] = &rack.pending[..] else { panic!("{:?}", rack.pending) };
    assert!(matches!(operation, FlashOperation::ReadSegment { .. }), "{operation:?}");
    rack.settle();
    assert_eq!(rack.server.counters().handed_over, 0);
    assert_eq!((rack.ask(get("a")), rack.ask(get("b"))), (value("old"), value("other")));
}

#[test]
fn a_key_that_has_lived_its_time_is_not_there_in_a_segment_that_was_handed_over() {
    let mut rack = Rack::new(roomy());
    rack.call(put_for("a", "1", Lifetime::secs(1)));
    rack.call(delete("a"));
    rack.now = Time::secs(5);
    rack.settle();
    assert_eq!(rack.server.counters().handed_over, 1);
    let last = rack.answers.last().map(|answer| &answer.result);
    assert_eq!(last, Some(&CallResult::Update(RequestResult::Deleted { found: false })));
}

#[test]
fn gets_start_to_the_last_token_and_the_next_waits_for_one_to_end() {
    let mut rack = Rack::new(roomy());
    rack.ask(put("a", "1"));
    for _ in 0..341 {
        rack.call(get("a"));
    }
    assert_eq!((rack.server.tokens(), rack.pending.len()), ((1_023, 0), 341));
    rack.call(get("a"));
    assert_eq!((rack.server.tokens(), rack.pending.len()), ((1_023, 1), 341));
    // The first GET's segment is read, and then its record.
    rack.end(0);
    assert_eq!(rack.server.tokens(), (1_023, 1));
    rack.end(340);
    assert_eq!(rack.server.tokens(), (1_023, 0));
}

#[test]
fn a_hundred_and_twenty_eight_puts_take_all_tokens_and_a_get_behind_them_waits() {
    let mut rack = Rack::new(roomy());
    for _ in 0..128 {
        rack.call(put("a", "1"));
    }
    assert_eq!(rack.server.tokens(), (1_024, 0));
    rack.call(get("a"));
    assert_eq!(rack.server.tokens(), (1_024, 1));
    rack.settle();
    assert_eq!((rack.server.tokens(), rack.server.counters().waiting_max), ((0, 0), 1));
    rack.server.restart_waiting_max();
    assert_eq!(rack.server.counters().waiting_max, 0);
}

#[test]
fn a_long_run_of_puts_never_fills_the_logs() {
    let mut rack = Rack::new(tight());
    for round in 0..400 {
        for name in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(rack.ask(put(name, &format!("{name}{round}"))), CallResult::Update(RequestResult::Stored));
        }
    }
    for name in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(rack.ask(get(name)), value(&format!("{name}399")));
    }
    // 2,400 records were written into 60 sectors, and as many segments into 420.
    let counters = rack.server.counters();
    assert!(counters.reclaimed_sectors > 2 * 2_400 - 480, "{counters:?}");
    assert_eq!(counters.corrupt, 0);
    assert_eq!(rack.server.live_bytes().1, 6 * 512);
}

#[test]
fn what_somebody_reads_is_not_overwritten_though_others_wait() {
    let mut rack = Rack::new(crowded());
    rack.ask(put("slow", "1"));
    let slow = rack.call(get("slow"));
    for round in 0..1_000 {
        rack.call(put("quick", &round.to_string()));
        while rack.pending.len() > 1 {
            rack.end(1);
        }
    }
    assert!(rack.answers.iter().all(|answer| answer.number != slow));
    // The log of segments has 420 sectors, 126 of them for compaction, and the slow reader is in
    // the first.
    assert!(rack.answers.len() < 420 - 126, "{} calls were answered", rack.answers.len());
    rack.settle();
    assert_eq!(rack.answers.len(), 1_002);
    let last = rack.answers.iter().find(|answer| answer.number == slow);
    assert_eq!(last.map(|answer| &answer.result), Some(&value("1")));
    assert_eq!(rack.ask(get("quick")), value("999"));
}

#[test]
fn a_full_device_refuses_a_put_by_name_and_takes_one_again_when_something_was_deleted() {
    let mut rack = Rack::new(tight());
    // 60 sectors, without 24 for compaction and 8 for what may be skipped.
    let room = 28;
    for number in 0..room {
        assert_eq!(rack.ask(put(&number.to_string(), "x")), CallResult::Update(RequestResult::Stored), "{number}");
    }
    let full = CallResult::Update(RequestResult::Refused(Refusal::Full { live: room * 512, capacity: room * 512 }));
    assert_eq!(rack.ask(put("more", "x")), full);
    assert_eq!(rack.ask(swap("more", None, "x")), full);
    assert_eq!(rack.ask(get("more")), NOTHING);
    assert_eq!(rack.ask(delete("0")), CallResult::Update(RequestResult::Deleted { found: true }));
    assert_eq!(rack.ask(put("more", "y")), CallResult::Update(RequestResult::Stored));
    assert_eq!(rack.ask(get("more")), value("y"));
    for number in 1..room {
        assert_eq!(rack.ask(get(&number.to_string())), value("x"), "{number}");
    }
}

#[test]
fn a_segment_lists_so_many_keys_and_no_more() {
    let mut rack = Rack::new(roomy());
    for number in 0..SEGMENT_ITEMS_MAX {
        rack.call(put(&number.to_string(), "x"));
        rack.settle();
    }
    let refused = CallResult::Update(RequestResult::Refused(Refusal::SegmentFull { most: SEGMENT_ITEMS_MAX }));
    assert_eq!(rack.ask(put("one more", "x")), refused);
    assert_eq!(rack.ask(put("0", "y")), CallResult::Update(RequestResult::Stored));
    assert_eq!(rack.ask(get("0")), value("y"));
    assert_eq!(rack.server.live_bytes(), (u64::from(BUCKETS_MAX) * 512, u64::from(SEGMENT_ITEMS_MAX) * 512));
}

#[test]
fn what_has_lived_its_time_is_not_there() {
    let mut rack = Rack::new(roomy());
    rack.ask(put_for("a", "1", Lifetime::secs(2)));
    rack.now = Time::secs(2);
    assert_eq!(rack.ask(get("a")), value("1"), "stored at 1 us, it lives into the third second");
    rack.now = Time::secs(3);
    assert_eq!(rack.ask(get("a")), NOTHING);
    assert_eq!(rack.ask(delete("a")), CallResult::Update(RequestResult::Deleted { found: false }));
    let got = Lifetime::secs(u32::MAX);
    rack.now = Time::secs(4);
    assert_eq!(
        rack.ask(put_for("a", "1", got)),
        CallResult::Update(RequestResult::Refused(LimitError::TimeToLive { got }.into()))
    );
}

#[test]
fn corrupt_things_are_refused_and_counted_and_never_answered_as_data() {
    let mut rack = Rack::new(roomy());
    rack.ask(put("a", "1"));
    let is_page = |content: &Content<_>| matches!(content, Content::Page(_));
    rack.device.contents.retain(|_, (_, content)| !is_page(content));
    let refused = CallResult::Update(RequestResult::Refused(Refusal::Corrupt));
    assert_eq!(rack.ask(get("a")), refused);
    assert_eq!(rack.ask(swap("a", Some("1"), "2")), refused);
    assert_eq!(rack.ask(put("a", "2")), CallResult::Update(RequestResult::Stored));
    assert_eq!(rack.ask(get("a")), value("2"));
    rack.device.contents.retain(|_, (_, content)| is_page(content));
    assert_eq!(rack.ask(get("a")), refused);
    assert_eq!(rack.ask(put("a", "3")), refused);
    assert_eq!(rack.server.counters().corrupt, 4);
    assert_eq!(rack.server.live_bytes(), (512, 512));
}

#[test]
fn a_device_that_fails_ends_every_call_and_changes_nothing() {
    let mut rack = Rack::new(roomy());
    rack.ask(put("a", "1"));
    let before = rack.server.live_bytes();
    rack.device.is_broken = true;
    for operation in [get("a"), put("a", "2"), delete("a"), swap("a", None, "2")] {
        assert_eq!(rack.ask(operation), CallResult::Update(RequestResult::Refused(Refusal::Device)));
    }
    rack.device.is_broken = false;
    assert_eq!((rack.ask(get("a")), rack.server.live_bytes()), (value("1"), before));
}

#[test]
fn a_device_that_fails_under_compaction_refuses_who_waits_for_room() {
    let mut rack = Rack::new(tight());
    for round in 0..60 {
        rack.device.is_broken = round > 20;
        rack.call(put("a", "x"));
        while !rack.pending.is_empty() {
            rack.end(0);
        }
    }
    assert_eq!(rack.answers.len(), 60);
    assert_eq!(
        rack.answers.last().map(|answer| &answer.result),
        Some(&CallResult::Update(RequestResult::Refused(Refusal::Device)))
    );
}

#[test]
fn what_was_loaded_is_there() {
    let mut rack = Rack::new(tight());
    let mut blocks: BTreeMap<u32, Vec<(Key, Vec<u8>)>> = BTreeMap::new();
    for number in 0..20 {
        let key = key(&format!("key {number}"));
        blocks.entry(key.place(24).block).or_default().push((key, number.to_string().into()));
    }
    for (block, pairs) in blocks {
        for (extent, content) in rack.server.load(block, pairs).expect("there is room") {
            rack.device.write(extent.sector, content);
        }
    }
    for number in 0..20 {
        assert_eq!(rack.cost(get(&format!("key {number}"))), (2, 0, value(&number.to_string())));
        assert_eq!(rack.ask(put(&format!("key {number}"), "new")), CallResult::Update(RequestResult::Stored));
    }
    assert_eq!(rack.ask(get("key 7")), value("new"));
}

#[test]
fn a_server_that_could_not_work_is_not_made() {
    let made = |config| Server::<Vec<u8>>::new(config).map(|_| ());
    assert_eq!(made(tight()), Ok(()));
    assert_eq!(made(ServerConfig { device: 1, ..tight() }), Err(ServerConfigError::Device { device: 1, devices: 1 }));
    let tokens = |capacity| ServerConfig { tokens: Tokens { capacity, ..TOKENS }, ..tight() };
    assert_eq!(made(tokens(8)), Ok(()));
    assert_eq!(made(tokens(7)), Err(ServerConfigError::Tokens { cost: 8, capacity: 7 }));
    let segments = |sectors, chunk| ServerConfig { segments: log(0, sectors, chunk, 1), ..tight() };
    assert_eq!(made(segments(420, 62)), Err(ServerConfigError::Chunk { got: 62, needed: 63 }));
    let needed = 6 * 63;
    assert_eq!(made(segments(378, 63)), Ok(()));
    assert_eq!(made(segments(377, 63)), Err(ServerConfigError::Log { sectors: 377, needed }));
}

#[test]
fn a_client_calls_the_server_of_its_key_and_refuses_what_no_server_takes() {
    let mut client: Client<Vec<u8>> = Client::new(ClientId(3), 64, 4);
    let mut out = Vec::new();
    client.on(Time::ZERO, ClientIn::Issue { ticket: 70, operation: get("a") }, &mut out);
    let call = Call { client: ClientId(3), number: 0, operation: get("a") };
    assert_eq!(out, [ClientOut::Send { device: key("a").place(64).block % 4, call }]);
    out.clear();
    let operation = Operation::Update(RequestBody::Put {
        key: key("a"),
        value: vec![0; 65],
        time_to_live: None,
        condition: Condition::Always,
    });
    client.on(Time::ZERO, ClientIn::Issue { ticket: 71, operation }, &mut out);
    let outcome = Outcome::Refused(LimitError::Value { got: 65, most: 64 }.into());
    assert_eq!(out, [ClientOut::Done { ticket: 71, outcome, source: Source::Server }]);
    out.clear();
    for (client_of_answer, number) in [(3, 0), (3, 0), (4, 0), (3, 9)] {
        let answer = Answer { client: ClientId(client_of_answer), number, result: value("1") };
        client.on(Time::ZERO, ClientIn::Answer(answer), &mut out);
    }
    assert_eq!(
        out,
        [ClientOut::Done { ticket: 70, outcome: Outcome::Value(Some("1".into())), source: Source::Server }]
    );
    assert_eq!(client.unknown_answers(), 3);
}

/// What a key has held, with the step from which on.
type History = Vec<(usize, Option<Vec<u8>>)>;

/// Plays random calls against a device that ends its operations in random order. The index changes
/// in the step that answers a change, so those answers, in their order, are the history; a GET must
/// answer what the key held at some step of its own.
struct Play {
    rack: Rack,
    stream: Stream,
    keys: usize,
    histories: BTreeMap<Key, History>,
    /// Calls on their way: number, when it began, what.
    calls: BTreeMap<u64, (usize, Operation<Vec<u8>>)>,
    answered: usize,
    step: usize,
}

impl Play {
    fn new(config: ServerConfig, keys: usize, seed: u64) -> Play {
        let (rack, stream) = (Rack::new(config), Seed(seed).stream("play"));
        let (histories, calls) = (BTreeMap::new(), BTreeMap::new());
        let mut play = Play { rack, stream, keys, histories, calls, answered: 0, step: 0 };
        for name in (0..keys).map(|number| number.to_string()) {
            play.rack.ask(put(&name, "x"));
            play.histories.insert(key(&name), vec![(0, Some("x".into()))]);
        }
        play.answered = play.rack.answers.len();
        play
    }

    fn pick(&mut self, bound: usize) -> usize {
        self.stream.below(bound as u64) as usize
    }

    /// One of the operations of the device on their way, rather a new one: so that some take very
    /// long.
    fn pick_pending(&mut self) -> usize {
        let waits = self.rack.pending.len();
        (0..3).map(|_| self.pick(waits)).max().unwrap_or(0)
    }

    fn call(&mut self) {
        let among = if self.pick(2) == 0 { 6 } else { self.keys };
        let name = &self.pick(among).to_string();
        let text = self.step.to_string();
        let held = self.histories.get(&key(name)).and_then(|history| history.last()?.1.clone());
        let held = held.map(|bytes| String::from_utf8(bytes).expect("text"));
        let operation = match self.pick(10) {
            0..=3 => get(name),
            4..=7 => put(name, &text),
            8 => delete(name),
            _ => swap(name, held.as_deref(), &text),
        };
        let number = self.rack.call(operation.clone());
        self.calls.insert(number, (self.step, operation));
        self.check_answers();
    }

    fn check_answers(&mut self) {
        let answers = self.rack.answers.split_off(self.answered);
        for answer in &answers {
            let (begun, operation) = self.calls.remove(&answer.number).expect("each call is answered once");
            self.check(begun, &operation, &answer.result);
        }
        self.rack.answers.extend(answers);
        self.answered = self.rack.answers.len();
        self.step += 1;
    }

    fn check(&mut self, begun: usize, operation: &Operation<Vec<u8>>, result: &CallResult<Vec<u8>>) {
        let step = self.step;
        let history = self.histories.entry(*key_of(operation)).or_insert_with(|| vec![(0, None)]);
        let held = history.last().and_then(|(_, value)| value.clone());
        match (operation, result) {
            (Operation::Get { .. }, CallResult::Value(value)) => {
                let first = history.iter().rposition(|(since, _)| *since <= begun).unwrap_or(0);
                assert!(
                    history[first..].iter().any(|(_, held)| held == value),
                    "{value:?} in {history:?} since {begun}"
                );
            }
            (Operation::Update(RequestBody::Put { value, .. }), CallResult::Update(RequestResult::Stored)) => {
                history.push((step, Some(value.clone())));
            }
            (Operation::Update(RequestBody::Delete { .. }), CallResult::Update(RequestResult::Deleted { found })) => {
                assert_eq!(*found, held.is_some());
                history.push((step, None));
            }
            (
                Operation::Update(RequestBody::CompareAndSwap { expected, new, .. }),
                CallResult::Update(RequestResult::Stored),
            ) => {
                assert_eq!(*expected, held);
                history.push((step, Some(new.clone())));
            }
            (
                Operation::Update(RequestBody::CompareAndSwap { .. }),
                CallResult::Update(RequestResult::Differs { found }),
            ) => {
                assert_eq!(*found, held);
            }
            (_, CallResult::Update(RequestResult::Refused(Refusal::Device))) => assert!(self.rack.device.is_broken),
            // Old and new records are both of use for a while.
            (Operation::Update(_), CallResult::Update(RequestResult::Refused(Refusal::Full { .. }))) => {}
            other => panic!("{other:?}"),
        }
    }

    fn run(&mut self, steps: usize) {
        self.go(steps);
        self.finish();
        assert!(self.rack.server.is_idle());
        for (key, history) in self.histories.clone() {
            let held = history.last().and_then(|(_, value)| value.clone());
            assert_eq!(self.rack.ask(Operation::Get { key }), CallResult::Value(held));
        }
    }

    fn go(&mut self, steps: usize) {
        for _ in 0..steps {
            if self.rack.pending.is_empty() || (self.calls.len() < 12 && self.pick(2) == 0) {
                self.call();
            } else {
                let place = self.pick_pending();
                self.rack.end(place);
                self.check_answers();
            }
        }
    }

    fn finish(&mut self) {
        while !self.rack.pending.is_empty() {
            let place = self.pick_pending();
            self.rack.end(place);
            self.check_answers();
        }
        assert!(self.calls.is_empty(), "every call ends");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_update_is_lost_in_whatever_order_the_device_ends_its_operations(seed: u64, is_crowded: bool) {
        let mut play = if is_crowded { Play::new(crowded(), 120, seed) } else { Play::new(tight(), 18, seed) };
        play.run(4_000);
        let counters = *play.rack.server.counters();
        prop_assert_eq!(counters.corrupt, 0);
        prop_assert!(counters.moved > 50 && counters.handed_over > 100, "{:?}", counters);
        let held = play.histories.values().filter(|history| history.last().is_some_and(|(_, value)| value.is_some()));
        prop_assert_eq!(play.rack.server.live_bytes().1, 512 * held.count() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_ends_when_the_device_fails_at_any_moment(seed: u64, steps in 1..1_500_usize) {
        let mut play = Play::new(crowded(), 120, seed);
        play.go(steps);
        play.rack.device.is_broken = true;
        play.go(200);
        play.finish();
    }
}

#[test]
fn the_tests_device_forgets_what_is_overwritten() {
    let mut device = Device::default();
    let page = |count: usize| {
        let records = (0..count).map(|_| crate::Record {
            key: key("a"),
            sequence: crate::Sequence(1),
            expiry: crate::Expiry(0),
            value: vec![0; 64],
        });
        Content::Page(Arc::new(Page { epoch: 0, records: records.collect() }))
    };
    device.write(4, page(8));
    device.write(6, page(1));
    assert_eq!(device.scan(Extent { sector: 0, sectors: 9 }).len(), 2);
    device.write(5, page(1));
    assert_eq!(device.scan(Extent { sector: 0, sectors: 9 }).len(), 2);
}
