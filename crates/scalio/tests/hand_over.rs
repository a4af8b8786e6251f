//! Does the protocol hold: updates of one block that wait for one another, on a device whose
//! operations end in the order of the test.

mod device;

use base::{Program, Span, Time};
use device::Flash;
use scalio::{
    ClientId, Condition, Content, Corrupt, FlashAnswer, FlashOperation, Index, Key, Protocol, Refusal, Reply, Request,
    RequestBody, RequestId, RequestResult, Server, ServerConfig, ServerIn, ServerOut, Token, VALUE_BYTES_MAX,
};

/// A block for all keys, and updates one by one.
const CONFIG: ServerConfig = ServerConfig {
    device: 0,
    devices: 1,
    blocks: 1,
    protocol: Protocol::Linearizable,
    group_updates: 1,
    group_wait: Span::ZERO,
    groups_max: 4,
    zones: 24,
    zone_sectors: 64,
    reserve_zones: 4,
    compact_below: 6,
    volatile_cache: true,
    value_bytes_max: VALUE_BYTES_MAX,
    start_second: 0,
    hand_over: true,
};

/// A server whose memory answers at once, and what it waits for from its device.
struct Bench {
    server: Server<Token>,
    index: Index<Token>,
    flash: Flash,
    pending: Vec<(RequestId, FlashOperation<Token>)>,
    replies: Vec<Reply<Token>>,
    requests: u64,
}

impl Bench {
    fn new(config: ServerConfig) -> Bench {
        let (server, index) = (Server::new(config), Index::new(config.blocks, 0));
        let (flash, pending, replies) = (Flash::new(), Vec::new(), Vec::new());
        Bench { server, index, flash, pending, replies, requests: 0 }
    }

    fn input(&mut self, input: ServerIn<Token>) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut out = Vec::new();
            self.server.on(Time::us(1), input, &mut out);
            for action in out {
                match action {
                    ServerOut::Memory { request, block, operation } => {
                        let answer = self.index.carry_out(block, operation);
                        inputs.push(ServerIn::Memory { request, answer });
                    }
                    ServerOut::Flash { request, operation } => self.pending.push((request, operation)),
                    ServerOut::Reply(reply) => self.replies.push(reply),
                }
            }
        }
    }

    fn request(&mut self, body: RequestBody<Token>) {
        let (number, epoch) = (self.requests, self.server.epoch());
        self.requests += 1;
        self.input(ServerIn::Request(Request { client: ClientId(1), number, settled: 0, epoch, body }));
    }
    fn put(&mut self, number: u32, id: u64) {
        self.request(RequestBody::Put {
            key: key(number),
            value: value(id),
            time_to_live: None,
            condition: Condition::Always,
        });
    }

    /// Ends the first operation of a kind, well or not.
    fn end(&mut self, kind: &str, is_well: bool) {
        let at = self.pending.iter().position(|(_, operation)| name(operation) == kind);
        let (request, operation) = self.pending.remove(at.unwrap_or_else(|| panic!("{kind} of {:?}", self.names())));
        let answer = if is_well { self.carry_out(operation) } else { FlashAnswer::Failed };
        self.input(ServerIn::Flash { request, answer });
    }

    fn settle(&mut self) {
        while let Some((_, operation)) = self.pending.first() {
            self.end(name(operation), true);
        }
        assert!(self.server.is_idle());
    }

    fn carry_out(&mut self, operation: FlashOperation<Token>) -> FlashAnswer<Token> {
        match operation {
            FlashOperation::ReadSegment { pointer, .. } => {
                FlashAnswer::Segment(match self.flash.get(&pointer.extent.sector) {
                    Some(Content::Segment(segment)) => Ok(segment.clone()),
                    _ => Err(Corrupt::Foreign { what: "segment" }),
                })
            }
            FlashOperation::ReadRecord { item } => {
                let records = self.flash.iter().filter_map(|(sector, content)| match content {
                    Content::Page(page) => page.places(*sector).find(|(place, _)| *place == item.record),
                    Content::Segment(_) => None,
                });
                let record = records.map(|(_, record)| record.clone()).next();
                FlashAnswer::Record(record.ok_or(Corrupt::Foreign { what: "record" }))
            }
            FlashOperation::Write { extent, content } => device::write(&mut self.flash, extent, content),
            FlashOperation::ReadKind { sector } => device::kind(&self.flash, sector),
            FlashOperation::List { extent } => device::list(&self.flash, extent),
            FlashOperation::Scan { .. } | FlashOperation::ReadHead { .. } => panic!("tokens have no names"),
            FlashOperation::Trim { extent } => device::trim(&mut self.flash, extent),
            FlashOperation::Flush => FlashAnswer::Done,
        }
    }

    fn names(&self) -> Vec<&'static str> {
        self.pending.iter().map(|(_, operation)| name(operation)).collect()
    }
    fn results(&self) -> Vec<RequestResult<Token>> {
        self.replies.iter().map(|reply| reply.result.clone()).collect()
    }

    /// The keys whose records were written with the block's segment.
    fn fresh(&mut self) -> Vec<Key> {
        let pointer = self.server.pointer(0).expect("it was published");
        let answer = self.carry_out(FlashOperation::ReadSegment { block: 0, pointer });
        let FlashAnswer::Segment(Ok(segment)) = answer else { panic!("{answer:?}") };
        segment.items.iter().filter(|item| item.is_fresh).map(|item| item.key).collect()
    }

    /// The value that flash has under a key, as a client would find it.
    fn found(&mut self, number: u32) -> Option<u64> {
        let pointer = self.server.pointer(0)?;
        let answer = self.carry_out(FlashOperation::ReadSegment { block: 0, pointer });
        let FlashAnswer::Segment(Ok(segment)) = answer else { panic!("{answer:?}") };
        let item = *segment.find(&key(number))?;
        match self.carry_out(FlashOperation::ReadRecord { item }) {
            FlashAnswer::Record(Ok(record)) => item.check(&record).map(|()| Some(record.value.id)).expect("its own"),
            other => panic!("{other:?}"),
        }
    }
}

fn key(number: u32) -> Key {
    Key::new(format!("user{number:08}").as_bytes()).expect("twelve bytes")
}
fn value(id: u64) -> Token {
    Token { id, bytes: 64 }
}

fn name(operation: &FlashOperation<Token>) -> &'static str {
    match operation {
        FlashOperation::ReadSegment { .. } => "read segment",
        FlashOperation::ReadRecord { .. } | FlashOperation::ReadHead { .. } => "read record",
        FlashOperation::Write { content: Content::Segment(_), .. } => "segment",
        FlashOperation::Write { content: Content::Page(_), .. } => "page",
        FlashOperation::Flush => "flush",
        FlashOperation::ReadKind { .. } | FlashOperation::Scan { .. } | FlashOperation::List { .. } => "scan",
        FlashOperation::Trim { .. } => "trim",
    }
}

/// One put is stored, and of two others the first writes its segment.
fn two_puts(config: ServerConfig) -> Bench {
    let mut bench = Bench::new(config);
    bench.put(1, 10);
    bench.settle();
    bench.put(1, 11);
    bench.put(2, 20);
    assert_eq!(bench.names(), ["page", "read segment"]);
    bench.end("read segment", true);
    bench
}

#[test]
fn a_put_writes_its_record_while_its_segment_is_read_and_its_segment_without_waiting_for_the_record() {
    let mut bench = two_puts(CONFIG);
    assert_eq!(bench.names(), ["page", "segment"]);
    bench.end("segment", true);
    assert_eq!(bench.names(), ["page"]);
    assert_eq!(bench.replies.len(), 1);
    bench.end("page", true);
    bench.end("flush", true);
    assert_eq!((bench.replies.len(), bench.found(1)), (2, Some(11)));
}

#[test]
fn an_update_that_waited_writes_the_segment_that_the_one_before_left_in_memory() {
    for (hand_over, names) in [(true, ["page", "segment"]), (false, ["page", "read segment"])] {
        let mut bench = two_puts(ServerConfig { hand_over, ..CONFIG });
        ["page", "segment", "flush"].into_iter().for_each(|kind| bench.end(kind, true));
        assert_eq!(bench.names(), names);
        bench.settle();
        assert_eq!(bench.server.counters().handed_over, u64::from(hand_over));
        assert_eq!((bench.found(1), bench.found(2)), (Some(11), Some(20)));
        assert_eq!(bench.fresh(), [key(2)], "a recovery looks for the record of this alone");
    }
}

#[test]
fn an_update_that_changed_nothing_leaves_what_it_read() {
    let mut bench = two_puts(CONFIG);
    bench.settle();
    bench.request(RequestBody::Delete { key: key(9) });
    bench.put(3, 30);
    bench.end("read segment", true);
    assert_eq!(bench.names(), ["page", "segment"]);
    bench.settle();
    assert_eq!([1, 2, 3].map(|number| bench.found(number)), [Some(11), Some(20), Some(30)]);
}

#[test]
fn nobody_waits_for_a_segment_that_nobody_keeps() {
    let mut bench = two_puts(CONFIG);
    bench.settle();
    let before = bench.server.counters().handed_over;
    bench.put(3, 30);
    assert_eq!(bench.names(), ["page", "read segment"]);
    bench.settle();
    assert_eq!(bench.server.counters().handed_over, before);
}

#[test]
fn after_an_update_that_failed_at_any_step_the_next_one_reads_the_device() {
    for failing in ["page", "segment", "flush"] {
        let mut bench = Bench::new(CONFIG);
        bench.put(1, 10);
        bench.settle();
        bench.put(3, 30);
        bench.put(2, 20);
        bench.end("read segment", true);
        for kind in ["page", "segment", "flush"] {
            if bench.names().contains(&kind) {
                bench.end(kind, kind != failing);
            }
        }
        assert_eq!(bench.names(), ["page", "read segment"], "{failing}");
        bench.settle();
        let results = [RequestResult::Stored, RequestResult::Refused(Refusal::Device), RequestResult::Stored];
        assert_eq!(bench.results(), results, "{failing}");
        assert_eq!([1, 2, 3].map(|number| bench.found(number)), [Some(10), Some(20), None], "{failing}");
        // Two records and their segment: what the failed one wrote is of no use.
        assert_eq!(bench.server.live_bytes(), 512 + 2 * 112, "{failing}");
    }
}

#[test]
fn a_record_whose_segment_cannot_be_read_is_of_no_use() {
    let mut bench = Bench::new(CONFIG);
    bench.put(1, 10);
    bench.settle();
    let live = bench.server.live_bytes();
    bench.put(2, 20);
    bench.end("read segment", false);
    bench.settle();
    assert_eq!(bench.results()[1], RequestResult::Refused(Refusal::Device));
    assert_eq!((bench.found(2), bench.server.live_bytes()), (None, live));
    bench.put(2, 21);
    bench.settle();
    assert_eq!(bench.found(2), Some(21));
}

#[test]
fn compare_and_swaps_of_a_group_see_its_puts_and_only_what_is_last_is_listed() {
    let mut bench = Bench::new(ServerConfig { group_updates: 4, ..CONFIG });
    bench.put(1, 10);
    bench.put(1, 11);
    bench.request(RequestBody::CompareAndSwap { key: key(1), expected: Some(value(11)), new: value(12) });
    bench.put(2, 20);
    bench.settle();
    assert_eq!(bench.results(), [const { RequestResult::Stored }; 4]);
    assert_eq!((bench.found(1), bench.found(2)), (Some(12), Some(20)));
    assert_eq!(bench.server.live_bytes(), 512 + 2 * 112);
    bench.put(1, 13);
    bench.request(RequestBody::CompareAndSwap { key: key(1), expected: Some(value(12)), new: value(14) });
    bench.put(3, 30);
    bench.put(3, 31);
    bench.settle();
    assert_eq!(bench.results()[5], RequestResult::Differs { found: Some(value(13)) });
    assert_eq!([1, 2, 3].map(|number| bench.found(number)), [Some(13), Some(20), Some(31)]);
    assert_eq!(bench.server.live_bytes(), 512 + 3 * 112);
}

/// A reader of the segment can be slower than all else.
#[test]
fn compaction_does_not_take_a_record_that_no_segment_lists_yet() {
    let config = ServerConfig { blocks: 2, ..CONFIG };
    let of_block = |block: u32| (0..).filter(move |number| key(*number).place(2).block == block);
    let (slow, quick) = (of_block(0).next().expect("half of the keys"), of_block(1).next().expect("the others"));
    let mut bench = Bench::new(config);
    bench.put(slow, 10);
    bench.settle();
    // The zone of what was stored is full, and nothing but the new record is in the next one.
    for id in 0..80 {
        bench.put(quick, id);
        bench.settle();
    }
    bench.put(slow, 11);
    bench.end("page", true);
    // The read stays; others fill and win back zone after zone.
    for id in 0..2_000 {
        bench.put(quick, id);
        while bench.pending.len() > 1 {
            let (request, operation) = bench.pending.remove(1);
            let answer = bench.carry_out(operation);
            bench.input(ServerIn::Flash { request, answer });
        }
    }
    assert!(bench.server.counters().zones_reclaimed > 20, "{:?}", bench.server.counters());
    bench.settle();
    assert_eq!(bench.found(slow), Some(11));
}
