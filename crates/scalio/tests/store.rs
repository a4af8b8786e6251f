//! Does it run: one client, one server, and a host that carries everything out at once.

mod device;

use base::{Program, Span, Time};
use device::Flash;
use scalio::{
    Client, ClientConfig, ClientCounters, ClientId, ClientIn, ClientOut, Condition, Content, Contents, Corrupt, Expiry,
    Extent, FlashAnswer, FlashOperation, GRANULE_BYTES, Index, Item, Kept, Key, Left, Lifetime, LimitError,
    MemoryAnswer, MemoryOperation, Operation, Outcome, Page, Preload, Protocol, RecordPlace, Refusal, Request,
    RequestBody, SECTOR_BYTES, SEGMENT_ITEMS_MAX, Segment, Sequence, Server, ServerConfig, ServerIn, ServerOut, Source,
    Token, VALUE_BYTES_MAX, Value, ZoneKind,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A store in one place.
struct Store {
    now: Time,
    client: Client<Token>,
    server: Server<Token>,
    index: Index<Token>,
    /// What was written where, by first sector.
    flash: Flash,
    preload: Option<Preload<Users>>,
    tickets: u64,
    inputs: VecDeque<Input>,
    done: VecDeque<(Outcome<Token>, Source)>,
    reads: u32,
    writes: u32,
    /// Time that a read of the client takes.
    read_takes: Span,
    /// Writes fail.
    is_broken: bool,
    /// Writes of pages fail.
    loses_pages: bool,
    /// Records that were read, and zones whose contents were.
    records_read: Vec<Key>,
    listed: Vec<u64>,
}

enum Input {
    Client(ClientIn<Token>),
    Server(ServerIn<Token>),
}

struct Users(u32);

impl Contents for Users {
    type Value = Token;
    fn keys(&self) -> u32 {
        self.0
    }
    fn key(&self, number: u32) -> Key {
        key(number)
    }
    fn number_of(&self, key: &Key) -> Option<u32> {
        let digits = str::from_utf8(key.as_bytes().strip_prefix(b"user")?).ok()?;
        digits.parse().ok().filter(|number| *number < self.0)
    }
    fn value(&self, number: u32) -> Token {
        value(number.into())
    }
    fn value_bytes(&self) -> u32 {
        64
    }
}

fn key(number: u32) -> Key {
    Key::new(format!("user{number:08}").as_bytes()).expect("twelve bytes")
}
fn value(id: u64) -> Token {
    Token { id, bytes: 64 }
}

const CONFIG: ServerConfig = ServerConfig {
    device: 0,
    devices: 1,
    blocks: 4,
    protocol: Protocol::Linearizable,
    group_updates: 1,
    group_wait: Span::us(1),
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

fn client_config(config: ServerConfig) -> ClientConfig {
    ClientConfig {
        client: ClientId(1),
        blocks: config.blocks,
        devices: 1,
        protocol: config.protocol,
        lease: Span::ms(1),
        retry_wait: Span::us(1),
        attempts_max: 10,
        share_waits: false,
        reply_timeout: Span::ms(1),
        sends_max: 2,
        touch: true,
        start_second: 0,
    }
}

impl Store {
    fn new(slots: u8) -> Store {
        Store::with(CONFIG, slots)
    }

    fn with(config: ServerConfig, slots: u8) -> Store {
        Store {
            now: Time::ZERO,
            client: Client::new(client_config(config)),
            server: Server::new(config),
            index: Index::new(config.blocks, slots),
            flash: Flash::new(),
            preload: None,
            tickets: 0,
            inputs: VecDeque::new(),
            done: VecDeque::new(),
            reads: 0,
            writes: 0,
            read_takes: Span::ZERO,
            is_broken: false,
            loses_pages: false,
            records_read: Vec::new(),
            listed: Vec::new(),
        }
    }

    fn get(&mut self, key: Key) -> (Outcome<Token>, Source) {
        self.ask(Operation::Get { key })
    }
    fn found(&mut self, number: u32) -> Option<u64> {
        match self.get(key(number)).0 {
            Outcome::Value(found) => found.map(|token| token.id),
            other => panic!("{other:?}"),
        }
    }
    fn put(&mut self, number: u32, id: u64) -> Outcome<Token> {
        self.put_for(number, id, None)
    }
    fn put_for(&mut self, number: u32, id: u64, time_to_live: Option<Lifetime>) -> Outcome<Token> {
        self.ask(Operation::Update(RequestBody::Put {
            key: key(number),
            value: value(id),
            time_to_live,
            condition: Condition::Always,
        }))
        .0
    }
    fn put_value(&mut self, number: u32, value: Token, condition: Condition) -> Outcome<Token> {
        let body = RequestBody::Put { key: key(number), value, time_to_live: None, condition };
        self.ask(Operation::Update(body)).0
    }
    fn delete(&mut self, number: u32) -> Outcome<Token> {
        self.ask(Operation::Update(RequestBody::Delete { key: key(number) })).0
    }
    fn take(&mut self, number: u32) -> Outcome<Token> {
        self.ask(Operation::Update(RequestBody::Take { key: key(number) })).0
    }
    fn expire(&mut self, number: u32, time_to_live: Option<Lifetime>) -> Outcome<Token> {
        self.ask(Operation::Update(RequestBody::Expire { key: key(number), time_to_live })).0
    }
    fn swap(&mut self, number: u32, expected: Option<u64>, new: u64) -> Outcome<Token> {
        self.ask(Operation::Update(RequestBody::CompareAndSwap {
            key: key(number),
            expected: expected.map(value),
            new: value(new),
        }))
        .0
    }

    fn described(&mut self, number: u32) -> (Option<Left>, Source) {
        self.tickets += 1;
        match self.settled(ClientIn::Describe { ticket: self.tickets, key: key(number) }) {
            (Outcome::Described(left), source) => (left, source),
            other => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, operation: Operation<Token>) -> (Outcome<Token>, Source) {
        self.tickets += 1;
        self.settled(ClientIn::Issue { ticket: self.tickets, operation })
    }

    fn settled(&mut self, input: ClientIn<Token>) -> (Outcome<Token>, Source) {
        self.inputs.push_back(Input::Client(input));
        for _ in 0..100_000 {
            self.carry_all();
            if let Some(done) = self.done.pop_front() {
                return done;
            }
            self.now += Span::us(1);
            let (mut from_server, mut from_client) = (Vec::new(), Vec::new());
            self.server.on_wakeup(self.now, &mut from_server);
            self.client.on_wakeup(self.now, &mut from_client);
            self.carry_server(from_server);
            self.carry_client(from_client);
        }
        panic!("nothing ends");
    }

    fn feed_server(&mut self, input: ServerIn<Token>) {
        self.inputs.push_back(Input::Server(input));
        self.carry_all();
    }

    fn carry_all(&mut self) {
        let mut steps = 0;
        while let Some(input) = self.inputs.pop_front() {
            steps += 1;
            assert!(steps < 1_000_000, "nothing ends: {:?}", self.server.counters());
            match input {
                Input::Client(input) => {
                    let mut out = Vec::new();
                    self.client.on(self.now, input, &mut out);
                    self.carry_client(out);
                }
                Input::Server(input) => {
                    let mut out = Vec::new();
                    self.server.on(self.now, input, &mut out);
                    self.carry_server(out);
                }
            }
        }
    }

    fn carry_client(&mut self, out: Vec<ClientOut<Token>>) {
        for action in out {
            match action {
                ClientOut::Memory { request, block, operation } => {
                    let answer = self.index.carry_out(block, operation);
                    self.inputs.extend(request.map(|request| Input::Client(ClientIn::Memory { request, answer })));
                }
                ClientOut::Flash { request, operation, .. } => {
                    self.now += self.read_takes;
                    let answer = self.flash(operation);
                    self.inputs.push_back(Input::Client(ClientIn::Flash { request, answer }));
                }
                ClientOut::Send { request, .. } => self.inputs.push_back(Input::Server(ServerIn::Request(request))),
                ClientOut::Done { outcome, source, .. } => self.done.push_back((outcome, source)),
            }
        }
    }

    fn carry_server(&mut self, out: Vec<ServerOut<Token>>) {
        for action in out {
            let input = match action {
                ServerOut::Memory { request, block, operation } => {
                    Input::Server(ServerIn::Memory { request, answer: self.index.carry_out(block, operation) })
                }
                ServerOut::Flash { request, operation } => {
                    Input::Server(ServerIn::Flash { request, answer: self.flash(operation) })
                }
                ServerOut::Reply(reply) => Input::Client(ClientIn::Reply(reply)),
            };
            self.inputs.push_back(input);
        }
    }

    fn flash(&mut self, operation: FlashOperation<Token>) -> FlashAnswer<Token> {
        match operation {
            FlashOperation::ReadSegment { block, pointer } => self.read_segment(block, pointer.extent.sector),
            FlashOperation::ReadRecord { item } => self.read_record(&item),
            FlashOperation::Write { .. } if self.is_broken => FlashAnswer::Failed,
            FlashOperation::Write { content: Content::Page(_), .. } if self.loses_pages => FlashAnswer::Failed,
            FlashOperation::Write { extent, content } => {
                self.writes += 1;
                device::write(&mut self.flash, extent, content)
            }
            FlashOperation::Flush => FlashAnswer::Done,
            FlashOperation::ReadKind { sector } => device::kind(&self.flash, sector),
            FlashOperation::List { extent } => {
                self.listed.push(extent.sector / u64::from(extent.sectors));
                device::list(&self.flash, extent)
            }
            FlashOperation::Scan { .. } | FlashOperation::ReadHead { .. } => panic!("tokens have no names"),
            FlashOperation::Trim { extent } => device::trim(&mut self.flash, extent),
        }
    }

    fn read_segment(&mut self, block: u32, sector: u64) -> FlashAnswer<Token> {
        self.reads += 1;
        let loaded = || self.preload.as_ref().map(|preload| preload.segment(block).into());
        FlashAnswer::Segment(match self.flash.get(&sector) {
            Some(Content::Segment(segment)) => Ok(segment.clone()),
            _ => loaded().ok_or(Corrupt::Foreign { what: "content" }),
        })
    }

    fn read_record(&mut self, item: &Item) -> FlashAnswer<Token> {
        self.reads += 1;
        self.records_read.push(item.key);
        let place = |(sector, content): (&u64, &Content<Token>)| match content {
            Content::Page(page) => {
                page.places(*sector).find(|(place, _)| *place == item.record).map(|(_, record)| record.clone())
            }
            Content::Segment(_) => None,
        };
        let written = self.flash.range(..=item.record.sector()).next_back().and_then(place);
        let loaded = |preload: &Preload<Users>| preload.record(&item.key);
        let record = written.or_else(|| self.preload.as_ref().and_then(loaded));
        FlashAnswer::Record(record.ok_or(Corrupt::Foreign { what: "content" }))
    }

    /// All memory is gone; the device is not.
    fn restart(&mut self, slots: u8) {
        self.restart_as(CONFIG, slots);
    }

    fn restart_as(&mut self, config: ServerConfig, slots: u8) {
        self.index = Index::new(config.blocks, slots);
        let mut out = Vec::new();
        self.server = Server::recover(config, &mut out);
        self.carry_server(out);
        self.carry_all();
    }

    /// What is on a device, found by a server and a client that know nothing of it.
    fn found_on(flash: Flash) -> Store {
        let mut store = Store::new(0);
        store.flash = flash;
        store.restart(0);
        store
    }

    /// Where the page with that value lies.
    fn page_of(&self, id: u64) -> u64 {
        let holds = |content: &Content<Token>| match content {
            Content::Page(page) => page.records.iter().any(|record| record.value == value(id)),
            Content::Segment(_) => false,
        };
        *self.flash.iter().find(|(_, content)| holds(content)).expect("it was written").0
    }
}

/// Two keys in different blocks.
fn keys_apart() -> (u32, u32) {
    let block = |number: u32| key(number).place(CONFIG.blocks).block;
    (0, (1..).find(|number| block(*number) != block(0)).expect("there are four blocks"))
}

#[test]
fn what_is_put_is_got_first_from_flash_and_then_from_the_cache() {
    let mut store = Store::new(4);
    assert_eq!(store.put(1, 10), Outcome::Stored);
    assert_eq!(store.get(key(1)), (Outcome::Value(Some(value(10))), Source::Flash));
    assert_eq!(store.get(key(1)), (Outcome::Value(Some(value(10))), Source::Cache));
    assert_eq!(store.put(1, 11), Outcome::Stored);
    assert_eq!(store.get(key(1)), (Outcome::Value(Some(value(11))), Source::Flash));
    assert_eq!(store.get(key(2)).0, Outcome::Value(None));
}

#[test]
fn a_filler_whose_lease_has_ended_answers_and_leaves_the_slot_alone() {
    // The lease is a millisecond, up to the next 67 us; a miss reads twice.
    for (read_takes, next) in [(Span::us(400), Source::Cache), (Span::us(600), Source::Flash)] {
        let mut store = Store::new(1);
        store.put(1, 10);
        store.read_takes = read_takes;
        assert_eq!(store.get(key(1)), (Outcome::Value(Some(value(10))), Source::Flash));
        assert_eq!(store.get(key(1)), (Outcome::Value(Some(value(10))), next));
    }
}

#[test]
fn a_miss_reads_flash_twice_and_an_update_alone_reads_once_and_writes_twice() {
    let mut store = Store::new(4);
    store.put(1, 10);
    (store.reads, store.writes) = (0, 0);
    store.get(key(1));
    assert_eq!((store.reads, store.writes), (2, 0));
    store.get(key(1));
    assert_eq!((store.reads, store.writes), (2, 0));
    store.put(1, 11);
    assert_eq!((store.reads, store.writes), (3, 2));
}

#[test]
fn the_records_of_a_group_share_a_page() {
    let mut store = Store::with(ServerConfig { group_updates: 8, ..CONFIG }, 4);
    for number in 0..8 {
        let condition = Condition::Always;
        let body = RequestBody::Put { key: key(number), value: value(1), time_to_live: None, condition };
        let request = Request { client: ClientId(9), number: number.into(), settled: 0, epoch: 0, body };
        store.feed_server(ServerIn::Request(request));
    }
    let blocks: BTreeSet<u32> = (0..8).map(|number| key(number).place(CONFIG.blocks).block).collect();
    assert_eq!(store.writes as usize, 1 + blocks.len());
    assert_eq!((store.server.counters().groups, store.server.counters().updates), (1, 8));
}

#[test]
fn a_deleted_key_is_gone_over_a_restart_too() {
    let mut store = Store::new(4);
    store.put(1, 10);
    store.put(2, 20);
    assert_eq!(store.delete(1), Outcome::Deleted { found: true });
    assert_eq!(store.delete(1), Outcome::Deleted { found: false });
    store.restart(4);
    assert_eq!((store.found(1), store.found(2)), (None, Some(20)));
    assert_eq!(store.server.epoch(), 1);
}

#[test]
fn a_client_of_the_epoch_before_learns_that_its_update_is_unknown_and_the_next_one_succeeds() {
    let mut store = Store::new(4);
    store.put(1, 10);
    store.restart(4);
    assert_eq!(store.put(1, 11), Outcome::Unknown);
    assert_eq!(store.put(1, 12), Outcome::Stored);
    assert_eq!(store.found(1), Some(12));
}

#[test]
fn compare_and_swap_swaps_what_it_expects_and_says_what_it_found() {
    let mut store = Store::new(4);
    assert_eq!(store.swap(1, None, 1), Outcome::Stored);
    assert_eq!(store.swap(1, None, 2), Outcome::Differs { found: Some(value(1)) });
    assert_eq!(store.swap(1, Some(1), 3), Outcome::Stored);
    assert_eq!(store.found(1), Some(3));
}

#[test]
fn a_time_to_live_ends_at_the_second_after_it_on_flash_and_in_the_cache() {
    let mut store = Store::new(4);
    store.now = Time::ms(1500);
    assert_eq!(store.put_for(1, 10, Some(Lifetime(600))), Outcome::Stored);
    assert_eq!((store.found(1), store.found(1)), (Some(10), Some(10)));
    store.now = Time::ms(2999);
    assert_eq!(store.found(1), Some(10));
    store.now = Time::secs(3);
    assert_eq!(store.found(1), None);
    assert!(Expiry(3).is_past(store.now, 0) && !Expiry(0).is_past(Time::MAX, 9));
    // The dead record goes with the next update of its segment.
    let (before, other) =
        (store.server.live_bytes(), (2..100).find(|other| key(*other).place(4).block == key(1).place(4).block));
    store.put(other.expect("a quarter of the keys"), 1);
    assert_eq!(store.server.live_bytes(), before);
}

#[test]
fn what_is_taken_is_answered_once_and_gone() {
    let mut store = Store::new(2);
    assert_eq!(store.take(1), Outcome::Taken { found: None });
    store.put(1, 10);
    assert_eq!(store.found(1), Some(10));
    assert_eq!(store.take(1), Outcome::Taken { found: Some(value(10)) });
    // Neither the slot that held it nor flash has it any more.
    assert_eq!((store.found(1), store.take(1)), (None, Outcome::Taken { found: None }));
    store.put_for(2, 20, Some(Lifetime::secs(1)));
    store.now += Span::secs(2);
    assert_eq!(store.take(2), Outcome::Taken { found: None });
}

#[test]
fn how_long_a_key_is_kept_can_be_changed_in_slots_and_on_flash_and_survives_a_move() {
    let config = ServerConfig { blocks: 64, ..CONFIG };
    let mut store = Store::with(config, 2);
    assert_eq!(store.expire(1, Some(Lifetime::secs(5))), Outcome::Unmet);
    store.put(1, 10);
    assert_eq!(store.found(1), Some(10));
    assert_eq!(store.expire(1, Some(Lifetime::secs(5))), Outcome::Stored);
    assert!(matches!(store.described(1), (Some(Left::For(_)), Source::Flash)), "no slot has the old time");
    assert_eq!(store.found(1), Some(10));
    let (Some(Left::For(left)), Source::Cache) = store.described(1) else { panic!("the slot has the new one") };
    assert!(left > Lifetime::secs(4) && left <= Lifetime::secs(6), "{left:?}");
    assert_eq!(store.expire(1, None), Outcome::Stored);
    assert_eq!(store.expire(1, None), Outcome::Unmet, "it is kept for ever already");
    assert_eq!(store.described(1).0, Some(Left::Ever));
    assert_eq!(store.expire(1, Some(Lifetime::secs(500))), Outcome::Stored);
    // Its zone is won back while it is of use, and so its record moves.
    let item = |store: &mut Store| {
        let pointer = store.server.pointer(key(1).place(config.blocks).block).expect("it was published");
        match store.flash.get(&pointer.extent.sector) {
            Some(Content::Segment(segment)) => *segment.find(&key(1)).expect("it is listed"),
            other => panic!("{other:?}"),
        }
    };
    (2..2_500).for_each(|number| assert_eq!(store.put(number, 1), Outcome::Stored));
    let first = item(&mut store).record;
    for id in 1.. {
        store.put(2 + (id * 7_919 % 2_498) as u32, id);
        if item(&mut store).record != first {
            break;
        }
        assert!(id < 100_000, "nothing is won back: {:?}", store.server.counters());
    }
    let (Some(Left::For(left)), _) = store.described(1) else { panic!("it is kept for 500 s") };
    assert!(left > Lifetime::secs(400) && left < Lifetime::secs(502), "{left:?}");
    assert_eq!(store.found(1), Some(10));
    let (Some(Left::For(_)), Source::Cache) = store.described(1) else { panic!("the slot knows, too") };
    store.now = store.now + Span::ms(left.0) + Span::secs(1);
    assert_eq!((store.found(1), store.described(1).0), (None, None));
}

#[test]
fn a_description_takes_no_slot_and_reads_no_record() {
    let mut store = Store::new(4);
    assert_eq!(store.described(1), (None, Source::Flash));
    store.put(1, 10);
    store.put_for(2, 20, Some(Lifetime::secs(5)));
    let words = |store: &mut Store| {
        let block = key(1).place(CONFIG.blocks).block;
        let MemoryAnswer::Block(block) = store.index.carry_out(block, MemoryOperation::ReadBlock) else { panic!() };
        block.slots.iter().map(|slot| slot.word).collect::<Vec<_>>()
    };
    let (reads, before) = (store.reads, words(&mut store));
    assert_eq!(store.described(1), (Some(Left::Ever), Source::Flash));
    assert_eq!((store.reads, words(&mut store)), (reads + 1, before));
    store.found(2);
    let (Some(Left::For(left)), Source::Cache) = store.described(2) else { panic!() };
    assert!(left > Lifetime::secs(4) && left <= Lifetime::secs(6), "{left:?}");
    // The last moment, then the second after it: in the slot, and on flash.
    let end = Time::secs((store.now + Span::ms(left.0)).as_ps().div_ceil(Span::secs(1).as_ps()));
    store.now = end - Span::ps(1);
    assert_eq!(store.described(2).0, Some(Left::For(Lifetime(0))));
    store.now += Span::ps(1);
    assert_eq!(store.described(2).0, None);
    store.delete(1);
    assert_eq!(store.described(1).0, None);
}

#[test]
fn a_time_to_live_beyond_the_clock_is_refused() {
    let mut store = Store::new(4);
    store.now = Time::secs(10);
    let got = Lifetime(u64::MAX);
    assert_eq!(store.put_for(1, 10, Some(got)), Outcome::Refused(Refusal::Limit(LimitError::TimeToLive { got })));
}

#[test]
fn a_value_over_the_limit_is_refused_and_one_at_it_is_stored() {
    let mut store = Store::new(4);
    let mut put = |bytes| {
        store
            .ask(Operation::Update(RequestBody::Put {
                key: key(1),
                value: Token { id: 1, bytes },
                time_to_live: None,
                condition: Condition::Always,
            }))
            .0
    };
    assert_eq!(put(65), Outcome::Refused(Refusal::Limit(LimitError::Value { got: 65, most: 64 })));
    assert_eq!(put(64), Outcome::Stored);
}

/// Records of higher numbers would be taken for rotten ones.
#[test]
fn the_last_numbers_are_for_no_update_and_what_is_stored_stays() {
    let mut store = Store::new(4);
    assert_eq!(store.put(1, 10), Outcome::Stored);
    store.restart(4);
    // A put takes two: for its record and for the segment.
    let sequence = Sequence(Sequence::UPDATES_MAX.0 - 1);
    let kept = Kept { sequence, ..store.server.kept() };
    store.server = Server::resume(CONFIG, kept).expect("it is of the same size");
    assert_eq!(store.put(2, 20), Outcome::Unknown, "the client knows the epoch before");
    assert_eq!(store.put(2, 20), Outcome::Stored);
    for _ in 0..2 {
        assert_eq!(store.put(3, 30), Outcome::Refused(Refusal::UsedUp));
        assert_eq!(store.delete(1), Outcome::Refused(Refusal::UsedUp));
        assert_eq!([1, 2, 3].map(|number| store.found(number)), [Some(10), Some(20), None]);
        store.restart(4);
        assert_eq!(store.put(3, 30), Outcome::Unknown);
    }
}

#[test]
fn a_full_device_refuses_new_keys_by_name_and_still_deletes() {
    let mut store = Store::with(ServerConfig { blocks: 64, ..CONFIG }, 4);
    let mut stored = 0;
    let refusal = loop {
        match store.put(stored, 1) {
            Outcome::Stored => stored += 1,
            Outcome::Refused(refusal) => break refusal,
            other => panic!("{other:?}"),
        }
    };
    let (live, capacity) = (store.server.live_bytes(), store.server.capacity_bytes());
    assert_eq!(refusal, Refusal::Full { live, capacity });
    assert!(live + 112 > capacity && live <= capacity + 2048, "{live} of {capacity}");
    assert_eq!(store.put(3, 2), Outcome::Stored);
    assert_eq!(store.delete(0), Outcome::Deleted { found: true });
    assert_eq!(store.put(stored, 1), Outcome::Stored);
    assert!((1..stored).all(|number| store.found(number) == Some(if number == 3 { 2 } else { 1 })));
}

#[test]
fn a_log_whose_zones_are_too_small_for_its_segments_refuses_and_does_not_hang() {
    let mut store = Store::new(4);
    let refused = (0..3000).map(|number| store.put(number, 1)).find(|outcome| *outcome != Outcome::Stored);
    assert!(matches!(refused, Some(Outcome::Refused(Refusal::Full { .. }))), "{refused:?}");
}

#[test]
fn a_segment_lists_so_many_keys_and_no_more() {
    let one_block = ServerConfig { blocks: 1, zones: 400, ..CONFIG };
    let mut store = Store::with(one_block, 0);
    for number in 0..SEGMENT_ITEMS_MAX {
        assert_eq!(store.put(number, 1), Outcome::Stored);
    }
    assert_eq!(store.put(SEGMENT_ITEMS_MAX, 1), Outcome::Refused(Refusal::SegmentFull { most: SEGMENT_ITEMS_MAX }));
    assert_eq!(store.put(5, 2), Outcome::Stored);
}

#[test]
fn compaction_wins_space_back_under_load_and_keeps_what_is_of_use() {
    let mut store = Store::new(2);
    for round in 0..200u64 {
        for number in 0..20 {
            assert_eq!(store.put(number, round), Outcome::Stored);
        }
    }
    assert!((0..20).all(|number| store.found(number) == Some(199)));
    let counters = store.server.counters();
    assert!(counters.zones_reclaimed > 50, "{counters:?}");
    // 4 segments of one sector (five keys each), 20 records.
    assert_eq!(store.server.live_bytes(), 4 * 512 + 20 * 112);
    store.restart(2);
    assert!((0..20).all(|number| store.found(number) == Some(199)));
}

#[test]
fn a_corrupt_record_is_never_data_and_is_counted() {
    let mut store = Store::new(4);
    store.put(1, 10);
    store.flash.retain(|_, content| matches!(content, Content::Segment(_)));
    assert_eq!(store.get(key(1)).0, Outcome::Refused(Refusal::Corrupt));
    assert_eq!(store.client.counters().foreign + store.client.counters().corrupt, 2);
    assert_eq!(store.swap(1, Some(10), 11), Outcome::Refused(Refusal::Corrupt));
    assert_eq!(store.server.counters().corrupt, 1);
    // It can be written over.
    assert_eq!(store.put(1, 12), Outcome::Stored);
    assert_eq!(store.found(1), Some(12));
}

#[test]
fn a_rotten_record_costs_its_own_key_and_no_other_over_a_restart() {
    let mut store = Store::with(ServerConfig { blocks: 1, ..CONFIG }, 0);
    store.put(1, 10);
    let first_page =
        *store.flash.iter().find(|(_, content)| matches!(content, Content::Page(_))).expect("a page was written").0;
    store.put(2, 20);
    store.flash.remove(&first_page);
    store.restart_as(ServerConfig { blocks: 1, ..CONFIG }, 0);
    assert_eq!(store.found(2), Some(20));
    assert_eq!(store.get(key(1)).0, Outcome::Refused(Refusal::Corrupt));
}

#[test]
fn a_record_that_rots_is_missed_once_a_later_update_of_any_block_speaks_for_it() {
    let (this, other) = keys_apart();
    for speaks in [false, true] {
        let mut store = Store::new(0);
        store.put(this, 10);
        store.put(this, 11);
        if speaks {
            store.put(other, 20);
        }
        let page = store.page_of(11);
        store.flash.remove(&page);
        let mut store = Store::found_on(store.flash);
        // Nobody speaks for the last group: it is taken for one that was cut off, and the value
        // before counts.
        let expected = if speaks { Outcome::Refused(Refusal::Corrupt) } else { Outcome::Value(Some(value(10))) };
        assert_eq!(store.get(key(this)).0, expected);
        let ClientCounters { foreign, corrupt, .. } = store.client.counters();
        assert_eq!(foreign + corrupt, 2 * u64::from(speaks));
        assert_eq!(store.found(other), speaks.then_some(20));
        // It can be written over.
        assert_eq!((store.put(this, 12), store.found(this)), (Outcome::Stored, Some(12)));
    }
}

#[test]
fn whichever_page_rots_no_older_value_comes_back_but_that_of_the_last_group() {
    let mut store = Store::new(0);
    let ids: Vec<u64> = (0..3).flat_map(|round| (0..6).map(move |number| 10 * round + number)).collect();
    ids.iter().for_each(|id| assert_eq!(store.put((id % 10) as u32, *id), Outcome::Stored));
    for rotten in &ids {
        let mut flash = store.flash.clone();
        flash.remove(&store.page_of(*rotten));
        let mut found = Store::found_on(flash);
        for number in 0..6u64 {
            let outcome = found.get(key(number as u32)).0;
            let expected = match *rotten {
                25 if number == 5 => Outcome::Value(Some(value(15))),
                rotten if rotten == 20 + number => Outcome::Refused(Refusal::Corrupt),
                _ => Outcome::Value(Some(value(20 + number))),
            };
            assert_eq!(outcome, expected, "{number} without the page of {rotten}");
        }
    }
}

#[test]
fn wherever_a_group_is_cut_off_the_value_before_it_counts_and_goes_on_to_count() {
    let (this, other) = keys_apart();
    let mut before = Store::new(0);
    before.put(this, 10);
    let mut after = Store::new(0);
    after.put(this, 10);
    after.put(this, 11);
    let fresh: Vec<u64> = after.flash.keys().filter(|sector| !before.flash.contains_key(*sector)).copied().collect();
    assert_eq!(fresh.len(), 2, "a page and a segment");
    for kept in [&fresh[..0], &fresh[..1], &fresh[1..]] {
        let mut flash = before.flash.clone();
        flash.extend(kept.iter().map(|sector| (*sector, after.flash[sector].clone())));
        let mut found = Store::found_on(flash);
        assert_eq!(found.found(this), Some(10));
        // Later epochs speak for their own segments alone, whatever their sequences.
        found.put(other, 20);
        assert_eq!(found.put(other, 21), Outcome::Stored);
        assert_eq!(found.put(other, 22), Outcome::Stored);
        let mut found = Store::found_on(found.flash);
        assert_eq!((found.found(this), found.found(other)), (Some(10), Some(22)));
    }
}

#[test]
fn a_restart_reads_segments_and_of_records_those_of_the_last_group_alone() {
    let mut store = Store::new(0);
    (0..80).for_each(|number| assert_eq!(store.put(number, 10), Outcome::Stored));
    let is_page = |content: &Content<Token>| matches!(content, Content::Page(_));
    let of_records: Vec<u64> =
        store.flash.iter().filter(|(_, content)| is_page(content)).map(|(at, _)| at / 64).collect();
    assert!(of_records.iter().any(|zone| *zone != of_records[0]), "they fill more than a zone: {of_records:?}");
    let mut store = Store::found_on(store.flash);
    assert_eq!(store.records_read, [key(79)]);
    assert!(of_records.iter().all(|zone| !store.listed.contains(zone)), "{:?}", store.listed);
    assert!((0..80).all(|number| store.found(number) == Some(10)));
    // A zone of records that does not begin with a whole page is read.
    store.flash.remove(&(of_records[0] * 64));
    let store = Store::found_on(store.flash);
    assert!(store.listed.contains(&of_records[0]));
}

#[test]
fn a_zone_whose_first_write_was_cut_off_is_read_whole() {
    let mut store = Store::new(0);
    (0..8).for_each(|number| assert_eq!(store.put(number, 10), Outcome::Stored));
    let is_segment = |(_, content): &(&u64, &Content<Token>)| matches!(content, Content::Segment(_));
    let first = *store.flash.iter().find(is_segment).expect("there are some").0;
    assert_eq!(first % 64, 0, "a zone begins with it");
    // Another segment of its block came later.
    store.put(0, 11);
    store.flash.remove(&first);
    let mut store = Store::found_on(store.flash);
    assert_eq!(store.found(0), Some(11));
    assert!((1..8).all(|number| store.found(number) == Some(10)));
}

#[test]
fn what_is_of_no_use_is_forgotten_before_its_zone_is_filled_anew_and_no_epoch_begins_twice() {
    let mut store = Store::new(0);
    (0..3).for_each(|id| assert_eq!(store.put(1, id), Outcome::Stored));
    store.delete(1);
    store.restart(0);
    let of_records = |content: &Content<Token>| content.kind() == ZoneKind::Records;
    assert!(!store.flash.values().any(of_records), "it could be taken for a part of a zone of segments");
    let mut store = Store::new(0);
    store.restart(0);
    let mark = *store.flash.first_key_value().expect("there is a mark").0;
    // The mark of the epoch before is of no use any more, and that of the last epoch still is.
    store.restart(0);
    assert_eq!((store.server.epoch(), store.flash.contains_key(&mark)), (2, true));
    store.is_broken = true;
    store.restart(0);
    assert_eq!(store.server.recovered(), Some(false));
    store.is_broken = false;
    for epoch in 3..40 {
        store.restart(0);
        assert_eq!((store.server.epoch(), store.server.recovered()), (epoch, Some(true)));
        assert!(store.flash.len() <= 2, "two marks at most: {:?}", store.flash.keys());
    }
}

#[test]
fn nobody_speaks_for_a_group_that_failed() {
    let (this, other) = keys_apart();
    let mut store = Store::new(0);
    store.put(this, 10);
    store.loses_pages = true;
    assert_eq!(store.put(this, 11), Outcome::Unknown);
    store.loses_pages = false;
    store.put(other, 20);
    store.put(other, 21);
    let mut store = Store::found_on(store.flash);
    assert_eq!((store.found(this), store.found(other)), (Some(10), Some(21)));
}

#[test]
fn what_a_broken_device_did_not_write_is_unknown_and_the_value_before_is_still_there() {
    let mut store = Store::new(4);
    store.put(1, 10);
    store.is_broken = true;
    assert_eq!(store.put(1, 11), Outcome::Unknown);
    store.is_broken = false;
    assert_eq!(store.found(1), Some(10));
    assert_eq!(store.put(1, 12), Outcome::Stored);
    assert_eq!(store.found(1), Some(12));
}

/// As one who knows the seal of a store could write it.
#[test]
fn what_no_server_of_the_device_has_written_does_not_count() {
    let mut store = Store::new(4);
    assert_eq!(store.put(1, 10), Outcome::Stored);
    let of_block = |content: &Content<Token>| match content {
        Content::Segment(segment) if !segment.items.is_empty() => Some(Segment::clone(segment)),
        _ => None,
    };
    let mut segment = store.flash.values().find_map(of_block).expect("it lists the key");
    let sectors = u64::from(CONFIG.zones * CONFIG.zone_sectors);
    let granules = u64::from(SECTOR_BYTES / GRANULE_BYTES);
    segment.sequence.0 += 1;
    // Two granules before the end of the device, and behind it: a record has seven.
    for place in [sectors * granules - 2, sectors * granules] {
        segment.items[0].record = RecordPlace(place);
        segment.items[0].is_fresh = false;
        store.flash.insert(20 * u64::from(CONFIG.zone_sectors), Content::Segment(segment.clone().into()));
        store.restart(4);
        assert_eq!(store.found(1), Some(10), "what was there before");
        assert_eq!(store.server.counters().corrupt, 1);
    }
    // The last epoch that there is.
    let last = Page { epoch: u32::MAX, records: Vec::new() };
    store.flash.insert(20 * u64::from(CONFIG.zone_sectors), Content::Page(last.into()));
    store.restart(4);
    assert_eq!(store.server.recovered(), Some(false));
}

#[test]
fn a_loaded_store_is_read_changed_and_compacted_like_one_that_was_filled() {
    let preload = Preload::new(Users(40), CONFIG.blocks, 1, CONFIG.zone_sectors, 8).expect("ten keys a block");
    let mut store = Store::new(4);
    preload.install(0, &mut store.server);
    for block in 0..CONFIG.blocks {
        if let Some(segment) = preload.pointer(block) {
            store.index.carry_out(block, scalio::MemoryOperation::Publish { segment });
        }
    }
    assert_eq!(preload.sectors_needed(0), 2 * 64);
    for (sector, content) in preload.scan(0, Extent { sector: 0, sectors: 128 }) {
        store.flash.insert(sector, content);
    }
    store.preload = Some(preload);
    assert!((0..40).all(|number| store.found(number) == Some(number.into())));
    for round in 0..60 {
        for number in 0..20 {
            assert_eq!(store.put(number, 1000 + round), Outcome::Stored);
        }
    }
    assert!(store.server.counters().zones_reclaimed > 5);
    assert!((20..40).all(|number| store.found(number) == Some(number.into())));
    assert!((0..20).all(|number| store.found(number) == Some(1059)));
}

#[test]
fn memory_of_a_server_that_recovers_is_unreachable_and_a_client_waits() {
    let mut index: Index<Token> = Index::new(1, 1);
    index.carry_out(0, scalio::MemoryOperation::Close);
    assert_eq!(index.carry_out(0, scalio::MemoryOperation::ReadBlock), MemoryAnswer::Unreachable);
    assert_eq!(value(1).bytes(), 64);
}

/// Values of up to 3,800 bytes: a page of one takes an eighth of a zone.
const LONG: ServerConfig = ServerConfig { value_bytes_max: 3_800, zones: 40, group_updates: 8, ..CONFIG };

#[test]
fn longer_values_than_a_slot_holds_survive_churn_compaction_and_restarts() {
    let mut store = Store::with(LONG, 4);
    let mut random = base::Seed(3).stream("lengths");
    let mut held: BTreeMap<u32, Token> = BTreeMap::new();
    let mut reclaimed = 0;
    for id in 0..3_000u64 {
        let number = random.below(60) as u32;
        let bytes = [8, 64, 65, 255, 256, 300, 1_000, 3_800][random.below(8) as usize];
        if random.below(5) == 0 {
            let found = held.remove(&number).is_some();
            assert_eq!(store.delete(number), Outcome::Deleted { found });
        } else {
            let value = Token { id, bytes };
            assert_eq!(store.put_value(number, value, Condition::Always), Outcome::Stored, "{id}");
            held.insert(number, value);
        }
        if id % 1_000 == 999 {
            reclaimed += store.server.counters().zones_reclaimed;
            store.restart_as(LONG, 4);
            store.client.learn_epoch(0, store.server.epoch());
        }
        let number = random.below(60) as u32;
        assert_eq!(store.get(key(number)).0, Outcome::Value(held.get(&number).copied()), "{id}");
    }
    assert!(reclaimed > 10, "{reclaimed}");
    assert_eq!(store.server.keys(), held.len() as u64);
}

#[test]
fn a_slot_holds_values_of_up_to_64_bytes() {
    for (bytes, next) in [(64, Source::Cache), (65, Source::Flash)] {
        let mut store = Store::with(LONG, 4);
        let value = Token { id: 1, bytes };
        store.put_value(1, value, Condition::Always);
        assert_eq!(store.get(key(1)), (Outcome::Value(Some(value)), Source::Flash));
        assert_eq!(store.get(key(1)), (Outcome::Value(Some(value)), next));
        // Whoever takes a slot for nothing gives it back.
        assert!((0..4).all(|block| {
            let slots = store.index.slots(block).iter();
            slots.map(|slot| slot.word.state()).all(|state| state != scalio::SlotState::Filling)
        }));
    }
}

#[test]
fn a_put_stores_if_its_condition_holds_and_says_so_if_not() {
    let mut store = Store::new(4);
    let mut put = |id, condition| store.put_value(1, value(id), condition);
    assert_eq!(put(1, Condition::Present), Outcome::Unmet);
    assert_eq!(put(2, Condition::Absent), Outcome::Stored);
    assert_eq!(put(3, Condition::Absent), Outcome::Unmet);
    assert_eq!(put(4, Condition::Present), Outcome::Stored);
    assert_eq!(store.found(1), Some(4));
    store.put_for(1, 5, Some(Lifetime(10)));
    store.now += Span::secs(2);
    assert_eq!(store.put_value(1, value(6), Condition::Present), Outcome::Unmet, "it has expired");
    assert_eq!(store.put_value(1, value(7), Condition::Absent), Outcome::Stored);
    assert_eq!(store.server.keys(), 1);
}

#[test]
fn the_clock_of_expiries_goes_on_where_it_was_told_to() {
    let mut store = Store::new(4);
    store.put_for(1, 5, Some(Lifetime::secs(10)));
    let time = store.now;
    for (second, found) in [(5, Some(5)), (11, None)] {
        store.now = Time::ZERO;
        let config = ServerConfig { start_second: second, ..CONFIG };
        store.restart_as(config, 4);
        let client = ClientConfig { start_second: second, ..client_config(CONFIG) };
        store.client = Client::new(client);
        store.client.learn_epoch(0, store.server.epoch());
        assert_eq!(store.found(1), found, "{second}");
    }
    assert!(time < Time::secs(1));
}
