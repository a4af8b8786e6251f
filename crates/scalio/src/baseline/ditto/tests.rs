//! Clients that share a pool, and LEED behind them as a map.

use super::leed::{Answer, Call, CallResult};
use super::*;
use crate::{Condition, Key, LimitError, RequestBody, RequestResult};
use base::{Program, Seed, Span, Stream, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Bytes = Vec<u8>;

/// What a client has asked for and has not been done.
#[derive(Default)]
struct Outbox {
    /// One-sided operations and the answers to them: one reliable connection, in order.
    one_sided: VecDeque<ClientOut<Bytes>>,
    /// Calls to LEED.
    calls: VecDeque<Call<Bytes>>,
    /// Answers of LEED on their way.
    answers: VecDeque<Answer<Bytes>>,
}

struct Rack {
    clients: Vec<Client<Bytes>>,
    outboxes: Vec<Outbox>,
    pool: Pool<Bytes>,
    store: BTreeMap<Key, Bytes>,
    done: Vec<(usize, u64, Outcome<Bytes>, Source)>,
    issued: u64,
    now: Time,
    /// One-sided operations whose answers a client waited for.
    round_trips: u64,
    /// Those that nobody waited for.
    asynchronous: u64,
}

const POOL: PoolGeometry = PoolGeometry { buckets: 64, block_bytes: 256, chunk_blocks: 8, chunks: 8 };

fn config(client: u16, pool: PoolGeometry) -> ClientConfig {
    ClientConfig {
        client: ClientId(client),
        blocks: 16,
        devices: 2,
        pool,
        samples: 5,
        sample_buckets: 4,
        attempts_max: 8,
        answers_after_fill: true,
    }
}

impl Rack {
    fn new(clients: usize, pool: PoolGeometry) -> Rack {
        Rack::with(clients, pool, |config| config)
    }

    fn with(clients: usize, pool: PoolGeometry, change: impl Fn(ClientConfig) -> ClientConfig) -> Rack {
        let client = |number: usize| {
            let stream = Seed(7).stream(&format!("client/{number}"));
            Client::new(change(config(number as u16, pool)), stream).expect("a sound configuration")
        };
        Rack {
            clients: (0..clients).map(client).collect(),
            outboxes: (0..clients).map(|_| Outbox::default()).collect(),
            pool: Pool::new(pool),
            store: BTreeMap::new(),
            done: Vec::new(),
            issued: 0,
            now: Time::us(1),
            round_trips: 0,
            asynchronous: 0,
        }
    }

    fn input(&mut self, client: usize, input: ClientIn<Bytes>) {
        let mut out = Vec::new();
        self.now += Span::ns(1);
        self.clients[client].on(self.now, input, &mut out);
        for action in out {
            match action {
                ClientOut::Send { device, call } => {
                    assert_eq!(device, leed::key_of(&call.operation).place(16).block % 2);
                    self.outboxes[client].calls.push_back(call);
                }
                ClientOut::Done { ticket, outcome, source } => self.done.push((client, ticket, outcome, source)),
                other => self.outboxes[client].one_sided.push_back(other),
            }
        }
    }

    fn issue(&mut self, client: usize, operation: Operation<Bytes>) -> u64 {
        let ticket = self.issued;
        self.issued += 1;
        self.input(client, ClientIn::Issue { ticket, operation });
        ticket
    }

    /// Does the oldest one-sided operation of a client.
    fn do_one_sided(&mut self, client: usize) {
        match self.outboxes[client].one_sided.pop_front().expect("something was asked for") {
            ClientOut::Pool { request: Some(request), operation } => {
                self.round_trips += 1;
                let answer = self.pool.execute(operation);
                self.input(client, ClientIn::Pool { request, answer });
            }
            ClientOut::Pool { request: None, operation } => {
                self.asynchronous += 1;
                self.pool.execute(operation);
            }
            ClientOut::AskChunk => {
                let chunk = self.pool.give_chunk();
                self.input(client, ClientIn::Chunk(chunk));
            }
            other => panic!("{other:?} is not one-sided"),
        }
    }

    /// LEED does the oldest call of a client; its answer is on its way.
    fn do_call(&mut self, client: usize) {
        let call = self.outboxes[client].calls.pop_front().expect("something was called");
        let result = match call.operation {
            Operation::Get { key } => CallResult::Value(self.store.get(&key).cloned()),
            Operation::Update(RequestBody::Put { key, value, .. }) => {
                self.store.insert(key, value);
                CallResult::Update(RequestResult::Stored)
            }
            Operation::Update(RequestBody::Delete { key }) => {
                CallResult::Update(RequestResult::Deleted { found: self.store.remove(&key).is_some() })
            }
            other => panic!("{other:?} is not tested here"),
        };
        self.outboxes[client].answers.push_back(Answer { client: call.client, number: call.number, result });
    }

    fn deliver(&mut self, client: usize) {
        let answer = self.outboxes[client].answers.pop_front().expect("an answer is on its way");
        self.input(client, ClientIn::Answer(answer));
    }

    /// Does the next thing of a client, of each kind whether it may; `false` when it waits for
    /// nothing.
    fn step(&mut self, client: usize) -> bool {
        let outbox = &self.outboxes[client];
        if !outbox.one_sided.is_empty() {
            self.do_one_sided(client);
        } else if !outbox.calls.is_empty() {
            self.do_call(client);
        } else if !outbox.answers.is_empty() {
            self.deliver(client);
        } else {
            return false;
        }
        true
    }

    fn settle(&mut self) {
        for client in 0..self.clients.len() {
            while self.step(client) {}
            assert!(self.clients[client].is_idle());
        }
    }

    /// Plays one operation to its end: how it ended, round trips to the pool, one-sided operations
    /// that nobody waited for.
    fn play(&mut self, client: usize, operation: Operation<Bytes>) -> (Outcome<Bytes>, Source, u64, u64) {
        let (round_trips, asynchronous) = (self.round_trips, self.asynchronous);
        self.issue(client, operation);
        self.settle();
        let (_, _, outcome, source) = self.done.pop().expect("every operation ends");
        (outcome, source, self.round_trips - round_trips, self.asynchronous - asynchronous)
    }

    /// Plays one operation of a client to its end, while the others stand still.
    fn play_alone(&mut self, client: usize, operation: Operation<Bytes>) -> (Outcome<Bytes>, Source) {
        self.issue(client, operation);
        while self.step(client) {}
        let (_, _, outcome, source) = self.done.pop().expect("every operation ends");
        (outcome, source)
    }

    fn objects(&self) -> Vec<u64> {
        self.pool.slots().iter().filter_map(|slot| slot.word.address()).collect()
    }

    /// No block is used twice, and in a quiet rack none is lost.
    fn check_blocks(&self, is_quiet: bool) {
        let mut blocks = self.objects();
        blocks.extend(self.clients.iter().flat_map(|client| client.free_blocks()));
        let distinct: BTreeSet<u64> = blocks.iter().copied().collect();
        assert_eq!(distinct.len(), blocks.len(), "a block is used twice");
        let given = u64::from(self.pool.chunks_given()) * u64::from(self.pool.geometry().chunk_blocks);
        assert!(blocks.len() as u64 <= given && given <= self.pool.geometry().blocks());
        if is_quiet {
            assert_eq!(blocks.len() as u64, given, "a block is lost");
        }
    }
}

fn key(name: &str) -> Key {
    Key::new(name.as_bytes()).expect("1 to 16 bytes")
}

fn get(name: &str) -> Operation<Bytes> {
    Operation::Get { key: key(name) }
}

fn put(name: &str, value: &str) -> Operation<Bytes> {
    Operation::Update(RequestBody::Put {
        key: key(name),
        value: value.into(),
        time_to_live: None,
        condition: Condition::Always,
    })
}

fn delete(name: &str) -> Operation<Bytes> {
    Operation::Update(RequestBody::Delete { key: key(name) })
}

fn value(text: &str) -> Outcome<Bytes> {
    Outcome::Value(Some(text.into()))
}

#[test]
fn a_hit_takes_two_round_trips_and_writes_the_time_of_the_access_meanwhile() {
    let mut rack = Rack::new(1, POOL);
    rack.store.insert(key("a"), "1".into());
    rack.play(0, get("a"));
    assert_eq!(rack.play(0, get("a")), (value("1"), Source::Cache, 2, 1));
    let accessed = |rack: &Rack| rack.pool.slots().iter().map(|slot| slot.metadata.accessed).max();
    let before = accessed(&rack);
    rack.play(0, get("a"));
    assert!(accessed(&rack) > before);
}

#[test]
fn a_miss_looks_once_calls_leed_and_fills() {
    let mut rack = Rack::new(1, POOL);
    rack.store.insert(key("a"), "1".into());
    // Bucket; then, behind LEED's answer, bucket again, compare-and-swap, and bucket once more.
    // Object and metadata are written without waiting.
    assert_eq!(rack.play(0, get("a")), (value("1"), Source::Server, 4, 2));
    assert_eq!(rack.play(0, get("nothing")), (Outcome::Value(None), Source::Server, 1, 0));
    assert_eq!((rack.clients[0].counters().misses, rack.clients[0].counters().fills), (2, 1));
}

#[test]
fn a_put_takes_out_what_it_has_replaced_and_looks_in_vain_where_nothing_is() {
    let mut rack = Rack::new(2, POOL);
    assert_eq!(rack.play(0, put("a", "1")), (Outcome::Stored, Source::Server, 1, 0));
    rack.play(1, get("a"));
    assert_eq!(rack.play(0, put("a", "2")), (Outcome::Stored, Source::Server, 3, 1));
    assert_eq!(rack.play(1, get("a")).0, value("2"));
    assert_eq!(rack.play(1, delete("a")), (Outcome::Deleted { found: true }, Source::Server, 3, 1));
    assert_eq!(rack.play(0, get("a")).0, Outcome::Value(None));
    assert_eq!(rack.objects(), []);
    rack.check_blocks(true);
}

#[test]
fn an_answer_need_not_wait_for_the_fill() {
    let change = |config| ClientConfig { answers_after_fill: false, ..config };
    let mut rack = Rack::with(1, POOL, change);
    rack.store.insert(key("a"), "1".into());
    rack.issue(0, get("a"));
    rack.do_one_sided(0);
    rack.do_call(0);
    rack.deliver(0);
    assert_eq!(rack.done, [(0, 0, value("1"), Source::Server)]);
    rack.settle();
    assert_eq!((rack.done.len(), rack.play(0, get("a")).1), (1, Source::Cache));
}

/// The paper's Figure 8b: the reason for which Scalio's protocol exists.
#[test]
fn a_fill_that_a_put_overtook_serves_an_old_value_to_those_who_come_after_a_newer_one_was_read() {
    let mut rack = Rack::new(4, POOL);
    rack.store.insert(key("x"), "42".into());
    // Client 0 misses, and LEED reads 42 for it.
    rack.issue(0, get("x"));
    rack.do_one_sided(0);
    rack.do_call(0);
    // Client 1 stores 43, and finds nothing in the cache to take out. Client 2 reads 43.
    assert_eq!(rack.play_alone(1, put("x", "43")), (Outcome::Stored, Source::Server));
    assert_eq!(rack.play_alone(2, get("x")), (value("43"), Source::Server));
    // Only now does client 0 fill the cache.
    rack.deliver(0);
    while rack.step(0) {}
    // Client 3 comes after all of them, and is told 42; so is everybody until the next PUT.
    assert_eq!(rack.play_alone(3, get("x")), (value("42"), Source::Cache));
    assert_eq!(rack.play_alone(2, get("x")), (value("42"), Source::Cache));
}

/// Up to the compare-and-swap of a fill: bucket, LEED's answer, chunk, object, and the bucket that
/// shows which slots are empty.
fn up_to_the_swap(rack: &mut Rack, client: usize, name: &str) {
    rack.issue(client, get(name));
    rack.do_one_sided(client);
    rack.do_call(client);
    rack.deliver(client);
    (0..3).for_each(|_| rack.do_one_sided(client));
}

#[test]
fn of_two_clients_that_want_the_same_slot_the_second_looks_again_and_replaces() {
    let mut rack = Rack::new(2, POOL);
    rack.store.insert(key("a"), "1".into());
    up_to_the_swap(&mut rack, 0, "a");
    up_to_the_swap(&mut rack, 1, "a");
    rack.settle();
    let lost = rack.clients[1].counters().lost_races;
    assert_eq!((lost, rack.objects().len()), (1, 1));
    rack.check_blocks(true);
}

#[test]
fn of_two_clients_that_put_the_same_key_into_two_slots_the_later_slot_is_given_up() {
    let mut rack = Rack::new(3, POOL);
    let other = neighbour("a", POOL.buckets, false, 0);
    rack.store.extend([(key("a"), "1".into()), (key(&other), "2".into())]);
    // The first slot is taken when client 0 looks, and free when client 1 does.
    rack.play_alone(2, get(&other));
    up_to_the_swap(&mut rack, 0, "a");
    rack.play_alone(2, delete(&other));
    rack.play_alone(1, get("a"));
    assert_eq!(rack.objects().len(), 1);
    rack.do_one_sided(0);
    assert_eq!(rack.objects().len(), 2);
    rack.settle();
    assert_eq!((rack.clients[0].counters().duplicates, rack.objects().len()), (1, 1));
    rack.check_blocks(true);
}

/// A key of another name in the same bucket, with the same fingerprint or not.
fn neighbour(of: &str, buckets: u32, same_print: bool, after: u32) -> String {
    let place = key(of).place(buckets);
    let is_neighbour = |name: &String| {
        let other = key(name).place(buckets);
        other.block == place.block && ((other.fingerprint ^ place.fingerprint) & 0xff == 0) == same_print
    };
    (after..).map(|number| format!("n{number}")).find(is_neighbour).expect("there are enough names")
}

#[test]
fn a_key_that_shares_bucket_and_fingerprint_costs_a_round_trip_and_deceives_nobody() {
    let other = neighbour("a", POOL.buckets, true, 0);
    let mut rack = Rack::new(1, POOL);
    rack.store.extend([(key("a"), "1".into()), (key(&other), "2".into())]);
    rack.play(0, get("a"));
    assert_eq!(rack.play(0, get(&other)).0, value("2"));
    assert_eq!(rack.play(0, get(&other)), (value("2"), Source::Cache, 3, 1));
    assert_eq!(rack.play(0, put("a", "3")).0, Outcome::Stored);
    assert_eq!(rack.play(0, get(&other)), (value("2"), Source::Cache, 2, 1));
    assert_eq!(rack.play(0, get("a")).0, value("3"));
}

#[test]
fn a_full_bucket_gives_up_its_least_recently_used_object() {
    let mut rack = Rack::new(1, POOL);
    let mut names = vec!["a".to_string()];
    for number in 0..8 {
        let name = neighbour("a", POOL.buckets, false, number * 10_000);
        names.push(name);
    }
    rack.store.extend(names.iter().map(|name| (key(name), name.as_bytes().to_vec())));
    for name in &names[..8] {
        rack.play(0, get(name));
    }
    assert_eq!(rack.play(0, get("a")).1, Source::Cache, "it is used again");
    rack.play(0, get(&names[8]));
    assert_eq!((rack.clients[0].counters().bucket_evictions, rack.objects().len()), (1, 8));
    assert_eq!(rack.play(0, get("a")).1, Source::Cache);
    assert_eq!(rack.play(0, get(&names[1])).1, Source::Server);
    rack.check_blocks(true);
}

#[test]
fn a_pool_without_a_block_caches_nothing_and_answers_all_the_same() {
    let mut rack = Rack::new(1, PoolGeometry { chunks: 0, ..POOL });
    rack.store.insert(key("a"), "1".into());
    for _ in 0..2 {
        assert_eq!(rack.play(0, get("a")).0, value("1"));
    }
    assert_eq!(rack.clients[0].counters().fills_abandoned, 2);
}

#[test]
fn a_value_that_fits_a_block_exactly_is_cached_and_a_longer_one_is_not() {
    // Eight bytes of lengths, one of the key.
    for (block_bytes, cost) in [(8 + 1 + 10, (Source::Cache, 2, 1)), (8 + 1 + 9, (Source::Server, 1, 0))] {
        let mut rack = Rack::new(1, PoolGeometry { block_bytes, ..POOL });
        rack.store.insert(key("a"), "0123456789".into());
        rack.play(0, get("a"));
        let (source, round_trips, asynchronous) = cost;
        assert_eq!(rack.play(0, get("a")), (value("0123456789"), source, round_trips, asynchronous));
    }
}

#[test]
fn what_the_store_cannot_take_is_refused_by_name() {
    let mut rack = Rack::new(1, POOL);
    let operation = Operation::Update(RequestBody::Put {
        key: key("a"),
        value: vec![0; 65],
        time_to_live: None,
        condition: Condition::Always,
    });
    let refused = Outcome::Refused(LimitError::Value { got: 65, most: 64 }.into());
    assert_eq!(rack.play(0, operation), (refused, Source::Server, 0, 0));
}

#[test]
fn a_client_that_could_not_work_is_not_made() {
    let made = |config| Client::<Bytes>::new(config, Seed(1).stream("client")).map(|_| ());
    assert_eq!(made(config(0, POOL)), Ok(()));
    let narrow = |buckets| config(0, PoolGeometry { buckets, ..POOL });
    assert_eq!(made(narrow(4)), Ok(()));
    assert_eq!(made(narrow(3)), Err(ClientConfigError::Sample { sample_buckets: 4, buckets: 3 }));
    let samples = ClientConfig { samples: 0, ..config(0, POOL) };
    assert_eq!(made(samples), Err(ClientConfigError::Zero { field: "samples" }));
}

#[test]
fn an_answer_to_nothing_is_counted_and_changes_nothing() {
    let mut rack = Rack::new(1, POOL);
    rack.input(0, ClientIn::Pool { request: RequestId(5), answer: PoolAnswer::Written });
    assert_eq!((rack.clients[0].counters().unknown_answers, rack.clients[0].is_idle()), (1, true));
}

/// Ranks of keys, the most frequent first: rank r comes with a probability in proportion to r^-0.99
/// (YCSB).
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(keys: usize) -> Zipf {
        let sums = (1..=keys).scan(0.0, |sum, rank| {
            *sum += (rank as f64).powf(-0.99);
            Some(*sum)
        });
        Zipf(sums.collect())
    }

    fn rank(&self, stream: &mut Stream) -> usize {
        let at = stream.unit() * self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|sum| *sum < at)
    }
}

/// The least recently used is the first: (last use, rank).
struct Lru {
    capacity: usize,
    by_use: BTreeSet<(u64, usize)>,
    uses: BTreeMap<usize, u64>,
}

impl Lru {
    fn get(&mut self, now: u64, rank: usize) -> bool {
        let before = self.uses.insert(rank, now);
        if let Some(before) = before {
            self.by_use.remove(&(before, rank));
        } else if self.uses.len() > self.capacity {
            let (_, victim) = self.by_use.pop_first().expect("the cache is full");
            self.uses.remove(&victim);
        }
        self.by_use.insert((now, rank));
        before.is_some()
    }
}

#[test]
fn on_zipf_it_hits_almost_as_often_as_an_ideal_lru() {
    let pool = PoolGeometry { buckets: 500, block_bytes: 256, chunk_blocks: 25, chunks: 80 };
    let mut rack = Rack::new(4, pool);
    let zipf = Zipf::new(20_000);
    for rank in 0..20_000 {
        rack.store.insert(key(&rank.to_string()), vec![0; 64]);
    }
    let capacity = pool.blocks() as usize;
    let mut ideal = Lru { capacity, by_use: BTreeSet::new(), uses: BTreeMap::new() };
    let mut stream = Seed(3).stream("keys");
    let (mut hits, mut ideal_hits) = (0u32, 0u32);
    for number in 0..60_000 {
        let rank = zipf.rank(&mut stream);
        let is_ideal_hit = ideal.get(number, rank);
        let is_hit = rack.play_alone(number as usize % 4, get(&rank.to_string())).1 == Source::Cache;
        if number >= 20_000 {
            hits += u32::from(is_hit);
            ideal_hits += u32::from(is_ideal_hit);
        }
    }
    rack.check_blocks(true);
    let [ratio, ideal] = [hits, ideal_hits].map(|hits| f64::from(hits) / 40_000.0);
    assert!((ideal - ratio).abs() < 0.02, "Ditto {ratio}, an ideal LRU of {capacity} objects {ideal}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn eviction_keeps_the_pool_within_its_bound_and_no_block_is_lost_or_used_twice(seed: u64) {
        let pool = PoolGeometry { buckets: 6, block_bytes: 256, chunk_blocks: 3, chunks: 5 };
        let mut rack = Rack::new(3, pool);
        rack.store.extend((0..40).map(|number| (key(&number.to_string()), "x".into())));
        let mut stream = Seed(seed).stream("play");
        for step in 0..1_500 {
            let client = stream.below(3) as usize;
            let name = stream.below(40).to_string();
            match stream.below(40) {
                0..6 => { rack.issue(client, get(&name)); }
                6 => { rack.issue(client, put(&name, &step.to_string())); }
                7 => { rack.issue(client, delete(&name)); }
                8..12 if !rack.outboxes[client].calls.is_empty() => rack.do_call(client),
                12..16 if !rack.outboxes[client].answers.is_empty() => rack.deliver(client),
                _ => { rack.step(client); }
            }
            rack.check_blocks(false);
            prop_assert!(rack.objects().len() <= 15);
        }
        rack.settle();
        rack.check_blocks(true);
        let issued = rack.issued as usize;
        prop_assert_eq!(rack.done.len(), issued);
        let evictions: u64 = rack.clients.iter().map(|client| client.counters().evictions).sum();
        prop_assert!(evictions > 10, "{} evictions", evictions);
    }

    #[test]
    fn a_lone_client_never_reads_an_old_value(steps in prop::collection::vec((0..12u8, 0..4u8), 1..120)) {
        let pool = PoolGeometry { buckets: 4, block_bytes: 256, chunk_blocks: 2, chunks: 3 };
        let mut rack = Rack::new(1, pool);
        let mut reference: BTreeMap<String, String> = BTreeMap::new();
        for (number, (name, what)) in steps.into_iter().enumerate() {
            let name = name.to_string();
            match what {
                0 => {
                    rack.play(0, put(&name, &number.to_string()));
                    reference.insert(name, number.to_string());
                }
                1 => {
                    let found = reference.remove(&name).is_some();
                    prop_assert_eq!(rack.play(0, delete(&name)).0, Outcome::Deleted { found });
                }
                _ => {
                    let expected = reference.get(&name).map(|text| text.clone().into_bytes());
                    prop_assert_eq!(rack.play(0, get(&name)).0, Outcome::Value(expected));
                }
            }
        }
        rack.check_blocks(true);
    }
}
