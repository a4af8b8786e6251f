//! A client: reads the pool, calls LEED on a miss, and fills and empties slots by compare-and-swap.
//! This file has the search for a key in its bucket, and the actions on its result; `evict` wins a
//! block for a fill.

mod evict;

use super::heap::Heap;
use super::pool::{Object, PoolAnswer, PoolRequest};
use super::slot::{Metadata, ObjectWord, Slot, SlotId, oldest};
use super::{ClientConfig, ClientConfigError, ClientIn, ClientOut};
use crate::baseline::leed;
use crate::baseline::leed::key_of;
use crate::{Key, Operation, Outcome, RequestId, Source, Value};
use base::{Program, Stream, Time};
use evict::Hunt;
use slab::Slab;

/// What a client has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// GETs that the pool answered.
    pub hits: u64,
    /// GETs that LEED answered.
    pub misses: u64,
    /// Objects put in.
    pub fills: u64,
    /// Fills that were given up: no block could be won, or the slot was lost too often.
    pub fills_abandoned: u64,
    /// Values that no block has room for.
    pub oversize: u64,
    /// Objects taken out for their blocks, anywhere in the table.
    pub evictions: u64,
    /// Objects taken out for their slots, in a full bucket.
    pub bucket_evictions: u64,
    /// Objects taken out after a PUT or a DELETE.
    pub invalidations: u64,
    /// Objects removed by the client that inserted them, because another client had inserted the
    /// key too.
    pub duplicates: u64,
    /// Compare-and-swaps that came too late.
    pub lost_races: u64,
    /// Answers that match no request.
    pub unknown_answers: u64,
}

/// A client of LEED with a cache.
#[derive(Clone, Debug)]
pub struct Client<V> {
    config: ClientConfig,
    leed: leed::Client<V>,
    heap: Heap,
    stream: Stream,
    tasks: Slab<Task<V>>,
    /// The tasks of requests to the pool.
    requests: Slab<usize>,
    waiting_for_chunk: Vec<usize>,
    has_asked: bool,
    counters: Counters,
}

/// An open operation.
#[derive(Clone, Debug)]
struct Task<V> {
    ticket: u64,
    key: Key,
    step: Step<V>,
    /// What is put in, from the moment when LEED said it.
    fill: Option<Fill<V>>,
    /// The result for the application; `None` once delivered.
    outcome: Option<(Outcome<V>, Source)>,
    /// Races lost.
    attempts: u32,
}

/// What an operation waits for.
#[derive(Clone, Debug)]
enum Step<V> {
    /// LEED's answer.
    Called,
    /// Its bucket.
    Bucket(Purpose),
    /// The object at `place` of the bucket that was read.
    Object { purpose: Purpose, bucket: Vec<Slot>, place: usize },
    /// A compare-and-swap.
    Swap(Swap),
    /// A chunk from the storage node.
    Chunk,
    /// A block that some object has to leave.
    Hunt(Hunt),
    /// Nothing: it is being decided.
    Deciding(std::marker::PhantomData<V>),
}

/// The reason for searching a key in its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A GET wants its value.
    Get,
    /// A fill wants its slot, or another one.
    Fill,
    /// A fill that is done wants to know whether the key is there twice.
    Duplicate,
    /// It has to go.
    Invalidate,
}

/// An open compare-and-swap.
#[derive(Clone, Debug)]
struct Swap {
    slot: SlotId,
    expected: ObjectWord,
    why: Why,
}

#[derive(Clone, Debug, PartialEq)]
enum Why {
    /// To put an object in: into an empty slot, or instead of another key's, or of its own key's
    /// older one.
    Insert { is_same_key: bool },
    /// To take out what this task has put in.
    Withdraw,
    /// Removes a replaced object; then the search continues in this bucket.
    Invalidate { bucket: Vec<Slot>, next: usize },
}

#[derive(Clone, Debug)]
struct Fill<V> {
    value: V,
    /// Its block, once it has one, and its word there.
    address: u64,
    word: ObjectWord,
    slot: SlotId,
}

impl<V: Value> Client<V> {
    /// A client of an empty pool; `stream` draws the places where it searches victims.
    pub fn new(config: ClientConfig, stream: Stream) -> Result<Client<V>, ClientConfigError> {
        config.check()?;
        Ok(Client {
            leed: leed::Client::new(config.client, config.blocks, config.devices),
            heap: Heap::new(config.pool),
            stream,
            tasks: Slab::new(),
            requests: Slab::new(),
            waiting_for_chunk: Vec::new(),
            has_asked: false,
            counters: Counters::default(),
            config,
        })
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Blocks that it has, and that hold nothing.
    pub fn free_blocks(&self) -> &[u64] {
        self.heap.free()
    }

    /// Returns whether no operation is open.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    fn issue(&mut self, now: Time, ticket: u64, operation: Operation<V>, out: &mut Vec<ClientOut<V>>) {
        let step = Step::Deciding(Default::default());
        let key = *key_of(&operation);
        let task = self.tasks.insert(Task { ticket, key, step, fill: None, outcome: None, attempts: 0 });
        match operation {
            Operation::Get { .. } => self.search(task, Purpose::Get, out),
            Operation::Update(_) => self.call(now, task, operation, out),
        }
    }

    fn call(&mut self, now: Time, task: usize, operation: Operation<V>, out: &mut Vec<ClientOut<V>>) {
        self.tasks[task].step = Step::Called;
        self.tell_leed(now, leed::ClientIn::Issue { ticket: task as u64, operation }, out);
    }

    fn tell_leed(&mut self, now: Time, input: leed::ClientIn<V>, out: &mut Vec<ClientOut<V>>) {
        let mut said = Vec::new();
        self.leed.on(now, input, &mut said);
        for each in said {
            match each {
                leed::ClientOut::Send { device, call } => out.push(ClientOut::Send { device, call }),
                leed::ClientOut::Done { ticket, outcome, source } => {
                    self.on_called(ticket as usize, outcome, source, out);
                }
            }
        }
    }

    /// LEED has done its part.
    fn on_called(&mut self, task: usize, outcome: Outcome<V>, source: Source, out: &mut Vec<ClientOut<V>>) {
        let value = match &outcome {
            Outcome::Value(Some(value)) => Some(value.clone()),
            _ => None,
        };
        let has_changed = matches!(outcome, Outcome::Stored | Outcome::Deleted { .. });
        self.tasks[task].outcome = Some((outcome, source));
        match value {
            Some(value) => self.fill(task, value, out),
            None if has_changed => self.search(task, Purpose::Invalidate, out),
            None => self.end(task, out),
        }
    }

    fn bucket(&self, key: &Key) -> u32 {
        key.place(self.config.pool.buckets).block
    }

    fn search(&mut self, task: usize, purpose: Purpose, out: &mut Vec<ClientOut<V>>) {
        let first = self.bucket(&self.tasks[task].key);
        self.tasks[task].step = Step::Bucket(purpose);
        self.ask(task, PoolRequest::ReadBuckets { first, count: 1 }, out);
    }

    fn ask(&mut self, task: usize, operation: PoolRequest<V>, out: &mut Vec<ClientOut<V>>) {
        let request = Some(RequestId(self.requests.insert(task) as u64));
        out.push(ClientOut::Pool { request, operation });
    }

    /// Checks the slots of a bucket from `next` on for the task's key.
    fn probe(
        &mut self,
        now: Time,
        task: usize,
        purpose: Purpose,
        bucket: Vec<Slot>,
        next: usize,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let fingerprint = ObjectWord::fingerprint_of(&self.tasks[task].key);
        let mut matches = (next..bucket.len()).filter(|place| bucket[*place].word.is_of(fingerprint));
        let found = matches.next();
        // A fill finds its own object, and only with another one is there anything to compare.
        if purpose == Purpose::Duplicate && matches.next().is_none() {
            return self.end(task, out);
        }
        match found.and_then(|place| Some((place, bucket[place].word.address()?))) {
            Some((place, address)) => {
                self.tasks[task].step = Step::Object { purpose, bucket, place };
                self.ask(task, PoolRequest::ReadObject { address }, out);
            }
            None => self.on_absent(now, task, purpose, &bucket, out),
        }
    }

    fn on_object(
        &mut self,
        now: Time,
        task: usize,
        found: (Purpose, Vec<Slot>, usize),
        object: Option<Object<V>>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let (purpose, bucket, place) = found;
        match object.filter(|object| object.key == self.tasks[task].key) {
            Some(object) => self.on_present(now, task, purpose, bucket, place, object, out),
            None => self.probe(now, task, purpose, bucket, place + 1, out),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all that a search has found")]
    fn on_present(
        &mut self,
        now: Time,
        task: usize,
        purpose: Purpose,
        bucket: Vec<Slot>,
        place: usize,
        object: Object<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let slot = SlotId::of(self.bucket(&object.key), place);
        let expected = bucket[place].word;
        match purpose {
            Purpose::Get => self.hit(now, task, slot, object.value, out),
            Purpose::Fill => self.insert(task, slot, expected, true, out),
            Purpose::Duplicate => self.on_duplicate(task, slot, out),
            Purpose::Invalidate => {
                let why = Why::Invalidate { bucket, next: place + 1 };
                self.swap(task, Swap { slot, expected, why }, ObjectWord::EMPTY, out);
            }
        }
    }

    fn hit(&mut self, now: Time, task: usize, slot: SlotId, value: V, out: &mut Vec<ClientOut<V>>) {
        self.counters.hits += 1;
        out.push(ClientOut::Pool { request: None, operation: PoolRequest::Touch { slot, accessed: now } });
        self.tasks[task].outcome = Some((Outcome::Value(Some(value)), Source::Cache));
        self.end(task, out);
    }

    fn on_absent(&mut self, now: Time, task: usize, purpose: Purpose, bucket: &[Slot], out: &mut Vec<ClientOut<V>>) {
        match purpose {
            Purpose::Get => {
                self.counters.misses += 1;
                let key = self.tasks[task].key;
                self.call(now, task, Operation::Get { key }, out);
            }
            Purpose::Fill => self.choose(task, bucket, out),
            Purpose::Duplicate | Purpose::Invalidate => self.end(task, out),
        }
    }

    /// Puts the task's object into an empty slot of its bucket, or in place of the least recently
    /// used.
    fn choose(&mut self, task: usize, bucket: &[Slot], out: &mut Vec<ClientOut<V>>) {
        let empty = bucket.iter().position(|slot| slot.word.is_empty());
        let used = || oldest(bucket.iter().copied().enumerate()).map(|(place, _)| place);
        let Some(place) = empty.or_else(used) else {
            return self.abandon_fill(task, out);
        };
        let slot = SlotId::of(self.bucket(&self.tasks[task].key), place);
        self.insert(task, slot, bucket[place].word, false, out);
    }

    fn insert(
        &mut self,
        task: usize,
        slot: SlotId,
        expected: ObjectWord,
        is_same_key: bool,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let Some(fill) = &mut self.tasks[task].fill else { return };
        fill.slot = slot;
        let new = fill.word;
        self.swap(task, Swap { slot, expected, why: Why::Insert { is_same_key } }, new, out);
    }

    fn swap(&mut self, task: usize, swap: Swap, new: ObjectWord, out: &mut Vec<ClientOut<V>>) {
        let operation = PoolRequest::Swap { slot: swap.slot, expected: swap.expected, new };
        self.tasks[task].step = Step::Swap(swap);
        self.ask(task, operation, out);
    }

    fn on_swapped(&mut self, now: Time, task: usize, swap: Swap, found: ObjectWord, out: &mut Vec<ClientOut<V>>) {
        let has_won = found == swap.expected;
        self.counters.lost_races += u64::from(!has_won);
        match swap.why {
            Why::Insert { is_same_key } if has_won => self.on_inserted(now, task, &swap, is_same_key, out),
            Why::Insert { .. } => self.try_again(task, Purpose::Fill, out),
            Why::Withdraw => {
                if has_won {
                    self.counters.duplicates += 1;
                    self.take_out(&swap, out);
                }
                self.end(task, out);
            }
            Why::Invalidate { .. } if !has_won => self.try_again(task, Purpose::Invalidate, out),
            Why::Invalidate { ref bucket, next } => {
                self.counters.invalidations += 1;
                self.take_out(&swap, out);
                self.probe(now, task, Purpose::Invalidate, bucket.clone(), next, out);
            }
        }
    }

    /// The block of the removed object belongs to this client, and its last access no longer
    /// matters.
    fn take_out(&mut self, swap: &Swap, out: &mut Vec<ClientOut<V>>) {
        if let Some(address) = swap.expected.address() {
            self.heap.give_back(address);
        }
        let metadata = Metadata::default();
        let operation = PoolRequest::Describe { slot: swap.slot, metadata };
        out.push(ClientOut::Pool { request: None, operation });
    }

    fn on_inserted(&mut self, now: Time, task: usize, swap: &Swap, is_same_key: bool, out: &mut Vec<ClientOut<V>>) {
        self.counters.fills += 1;
        if let Some(address) = swap.expected.address() {
            self.heap.give_back(address);
            self.counters.bucket_evictions += u64::from(!is_same_key);
        }
        let metadata = Metadata { inserted: now, accessed: now, frequency: 1 };
        let operation = PoolRequest::Describe { slot: swap.slot, metadata };
        out.push(ClientOut::Pool { request: None, operation });
        if is_same_key { self.end(task, out) } else { self.search(task, Purpose::Duplicate, out) }
    }

    /// The first object of the key stays; a client that finds another one than its own takes out
    /// its own.
    fn on_duplicate(&mut self, task: usize, first: SlotId, out: &mut Vec<ClientOut<V>>) {
        match &self.tasks[task].fill {
            Some(fill) if fill.slot != first => {
                let swap = Swap { slot: fill.slot, expected: fill.word, why: Why::Withdraw };
                self.swap(task, swap, ObjectWord::EMPTY, out);
            }
            _ => self.end(task, out),
        }
    }

    fn try_again(&mut self, task: usize, purpose: Purpose, out: &mut Vec<ClientOut<V>>) {
        self.tasks[task].attempts += 1;
        if self.tasks[task].attempts < self.config.attempts_max {
            return self.search(task, purpose, out);
        }
        if purpose == Purpose::Fill {
            self.give_up_block(task);
            return self.abandon_fill(task, out);
        }
        self.end(task, out);
    }

    fn give_up_block(&mut self, task: usize) {
        if let Some(fill) = &self.tasks[task].fill {
            self.heap.give_back(fill.address);
        }
    }

    fn abandon_fill(&mut self, task: usize, out: &mut Vec<ClientOut<V>>) {
        self.counters.fills_abandoned += 1;
        self.end(task, out);
    }

    fn tell(&mut self, task: usize, out: &mut Vec<ClientOut<V>>) {
        let ticket = self.tasks[task].ticket;
        if let Some((outcome, source)) = self.tasks[task].outcome.take() {
            out.push(ClientOut::Done { ticket, outcome, source });
        }
    }

    fn end(&mut self, task: usize, out: &mut Vec<ClientOut<V>>) {
        self.tell(task, out);
        self.tasks.remove(task);
    }

    fn on_pool(&mut self, now: Time, request: RequestId, answer: PoolAnswer<V>, out: &mut Vec<ClientOut<V>>) {
        let Some(task) = self.requests.try_remove(request.0 as usize) else {
            self.counters.unknown_answers += 1;
            return;
        };
        let step = std::mem::replace(&mut self.tasks[task].step, Step::Deciding(Default::default()));
        match (step, answer) {
            (Step::Bucket(purpose), PoolAnswer::Slots(bucket)) => self.probe(now, task, purpose, bucket, 0, out),
            (Step::Object { purpose, bucket, place }, PoolAnswer::Object(object)) => {
                self.on_object(now, task, (purpose, bucket, place), object, out);
            }
            (Step::Swap(swap), PoolAnswer::Found(found)) => self.on_swapped(now, task, swap, found, out),
            (Step::Hunt(hunt), answer) => self.on_hunt(task, hunt, answer, out),
            // An answer of the wrong kind: the host is broken, and the operation ends as if nothing
            // were cached.
            _ => {
                self.counters.unknown_answers += 1;
                self.end(task, out);
            }
        }
    }
}

impl<V: Value> Program for Client<V> {
    type In = ClientIn<V>;
    type Out = ClientOut<V>;

    fn on(&mut self, now: Time, input: ClientIn<V>, out: &mut Vec<ClientOut<V>>) {
        match input {
            ClientIn::Issue { ticket, operation } => self.issue(now, ticket, operation, out),
            ClientIn::Answer(answer) => self.tell_leed(now, leed::ClientIn::Answer(answer), out),
            ClientIn::Pool { request, answer } => self.on_pool(now, request, answer, out),
            ClientIn::Chunk(chunk) => self.on_chunk(chunk, out),
        }
    }

    /// Only an input can change anything.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn on_wakeup(&mut self, _now: Time, _out: &mut Vec<ClientOut<V>>) {}
}
