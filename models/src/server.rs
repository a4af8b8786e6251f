//! The server: takes requests in batches, appends a record of the block, flushes, stores the
//! offset, invalidates, acknowledges; and recovers.

use crate::client::{PaperPhase, PaperView, Phase};
use crate::judge::{Answer, apply};
use crate::model::CacheModel;
use crate::scenario::{ABSENT, CLIENTS_MAX, KEYS_MAX, Key, Operation, Value};
use crate::state::{Durability, Header, Item, Record, SlotState, State, ValueRecord, Version, Word};
use crate::variant::{Flaw, Protocol};

/// The server's program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Batches in flight.
    pub lanes: Vec<Option<Batch>>,
    /// Of the last record that was begun.
    pub sequence: u8,
    /// What the keys hold by it.
    pub values: [Value; KEYS_MAX],
    /// Where they are, if values are apart.
    pub items: [Item; KEYS_MAX],
    /// The next step of recovery: 0 is the header, then the slots. `None`: it serves.
    pub recovering: Option<usize>,
}

/// A batch in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// The answers, by client.
    pub answers: [Option<Answer>; CLIENTS_MAX],
    /// Keys that are written.
    pub keys: [bool; KEYS_MAX],
    /// Its record.
    pub header: Header,
    /// The next step.
    pub stage: Stage,
}

/// The next step of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The record lies in the drive's cache: flush it.
    Flush,
    /// Store the offset.
    Store,
    /// Invalidate this slot; whether one was found before it.
    Invalidate { slot: usize, found: bool },
    /// Answers the clients.
    Acknowledge,
}

/// Clients of a batch, in the order in which their requests are carried out.
pub type Order = [Option<u8>; CLIENTS_MAX];

/// The order of these.
pub fn order_of(clients: &[usize]) -> Order {
    std::array::from_fn(|place| clients.get(place).map(|client| *client as u8))
}

/// All orders, the given one first.
fn orders(clients: &[usize]) -> Vec<Vec<usize>> {
    if clients.is_empty() {
        return vec![Vec::new()];
    }
    let first = |place: usize| {
        let mut left = clients.to_vec();
        let head = left.remove(place);
        orders(&left).into_iter().map(move |tail| [vec![head], tail].concat())
    };
    (0..clients.len()).flat_map(first).collect()
}

impl CacheModel {
    /// The first batch that could be taken now: a free lane.
    pub fn free_lane(&self, state: &State) -> Option<usize> {
        let serves = state.server.recovering.is_none();
        state.server.lanes.iter().position(|lane| lane.is_none()).filter(|_| serves)
    }

    fn is_idle(state: &State) -> bool {
        state.server.lanes.iter().all(|lane| lane.is_none()) && state.server.recovering.is_none()
    }

    fn requests(&self, state: &State) -> Vec<(usize, Operation)> {
        let sent = |(client, it): (usize, &crate::client::Client)| {
            (it.phase == Phase::Sent).then(|| (client, self.scenario.programs[client][usize::from(it.done)]))
        };
        state.clients.iter().enumerate().filter_map(sent).collect()
    }

    /// Which waiting writers could be the next batch, and in which order: each alone, and all in
    /// any.
    pub fn next_batches(&self, state: &State) -> Vec<Order> {
        if self.free_lane(state).is_none() {
            return Vec::new();
        }
        let is_write = |request: &(usize, Operation)| !matches!(request.1, Operation::ServerGet(_));
        let writers: Vec<usize> = self.requests(state).into_iter().filter(is_write).map(|(client, _)| client).collect();
        let alone = writers.iter().map(|writer| order_of(&[*writer]));
        let together = orders(&writers).into_iter().filter(|_| writers.len() > 1);
        alone.chain(together.map(|order| order_of(&order))).collect()
    }

    /// Returns whether the server answers reads now.
    pub fn serves_reads(&self, state: &State) -> bool {
        Self::is_idle(state) || self.variant.has(Flaw::ServerReadsBetween) && state.server.recovering.is_none()
    }

    /// Clients whose read the server could answer now.
    pub fn next_server_gets(&self, state: &State) -> Vec<usize> {
        if !self.serves_reads(state) {
            return Vec::new();
        }
        let reads = self.requests(state).into_iter();
        reads.filter(|(_, request)| matches!(request, Operation::ServerGet(_))).map(|(client, _)| client).collect()
    }

    /// Takes a batch, and appends its record.
    pub fn take(&self, state: &mut State, order: Order) {
        let lane = self.free_lane(state).expect("a batch is taken when there is room");
        let mut batch = Batch {
            answers: Default::default(),
            keys: Default::default(),
            header: Header::default(),
            stage: self.first_stage(),
        };
        let mut deletes_only = true;
        for client in order.into_iter().flatten().map(usize::from) {
            let operation = self.operation(state, client);
            let key = usize::from(operation.key());
            let (answer, value) = apply(operation, state.server.values[key]);
            batch.answers[client] = Some(answer);
            batch.keys[key] = true;
            self.set_value(state, key, value);
            state.clients[client].phase = Phase::Taken;
            deletes_only &= matches!(operation, Operation::Delete(_));
        }
        batch.header = self.append(state, deletes_only);
        state.server.lanes[lane] = Some(batch);
    }

    /// The next record will hold this. A value that lies apart is written with it.
    fn set_value(&self, state: &mut State, key: usize, value: Value) {
        let is_new = value != ABSENT && value != state.server.values[key];
        state.server.values[key] = value;
        if !self.scenario.values_apart || !is_new {
            return;
        }
        let record = ValueRecord { sequence: state.server.sequence + 1, value, is_durable: false };
        let recycled = self.garbage_values(state).into_iter().next().filter(|_| self.scenario.budget.overwrites > 0);
        let place = recycled.unwrap_or_else(|| {
            state.values.push(record);
            (state.values.len() - 1) as u8
        });
        state.values[usize::from(place)] = record;
        state.server.items[key] = Item { place, sequence: record.sequence };
    }

    /// Values that no current record, nor the next, leads to.
    pub fn garbage_values(&self, state: &State) -> Vec<u8> {
        let in_flight = state.server.lanes.iter().flatten().map(|batch| batch.header.place);
        let records = in_flight.chain([state.memory.header.place]).map(|place| state.flash[usize::from(place)].items);
        let used: Vec<Item> = records.chain([state.server.items]).flatten().collect();
        (0..state.values.len() as u8).filter(|place| used.iter().all(|item| item.place != *place)).collect()
    }

    fn append(&self, state: &mut State, deletes_only: bool) -> Header {
        state.server.sequence += 1;
        let is_kept_in_memory = deletes_only && self.variant.has(Flaw::NoTombstone);
        let durability = if is_kept_in_memory { Durability::MemoryOnly } else { Durability::Cached };
        let record = Record {
            sequence: state.server.sequence,
            values: state.server.values,
            items: state.server.items,
            durability,
        };
        let place = self.place_record(state, record);
        Header { epoch: state.memory.header.epoch, place, sequence: record.sequence }
    }

    /// Another block's record has a place of its own only in scenarios in which flash is used
    /// again: then the oldest place that nobody needs.
    fn place_record(&self, state: &mut State, record: Record) -> u8 {
        let recycles = self.scenario.budget.overwrites > 0;
        match self.garbage(state).into_iter().next().filter(|_| recycles) {
            Some(place) => {
                state.flash[usize::from(place)] = record;
                place
            }
            None => {
                state.flash.push(record);
                (state.flash.len() - 1) as u8
            }
        }
    }

    /// Places that neither the index nor a batch points to.
    pub fn garbage(&self, state: &State) -> Vec<u8> {
        let in_flight = |place| state.server.lanes.iter().flatten().any(|batch| batch.header.place == place);
        let places = 0..state.flash.len() as u8;
        places.filter(|place| *place != state.memory.header.place && !in_flight(*place)).collect()
    }

    /// The next step of the batch in a lane.
    pub fn advance(&self, state: &mut State, lane: usize) {
        let mut batch = state.server.lanes[lane].take().expect("a step is of a batch");
        batch.stage = match batch.stage {
            Stage::Flush => self.flush(state, &batch),
            Stage::Store => self.store(state, &batch),
            Stage::Invalidate { slot, found } => self.invalidate_next(state, &batch, slot, found),
            Stage::Acknowledge => return self.acknowledge(state, &batch),
        };
        state.server.lanes[lane] = Some(batch);
    }

    fn first_stage(&self) -> Stage {
        if self.variant.has(Flaw::PublishesUnflushed) { Stage::Store } else { Stage::Flush }
    }

    fn flush(&self, state: &mut State, batch: &Batch) -> Stage {
        let record = &mut state.flash[usize::from(batch.header.place)];
        if record.durability == Durability::Cached {
            record.durability = Durability::Durable;
        }
        state.values.iter_mut().for_each(|value| value.is_durable = true);
        if self.variant.has(Flaw::InvalidatesThenStores) {
            return Stage::Invalidate { slot: 0, found: false };
        }
        Stage::Store
    }

    fn store(&self, state: &mut State, batch: &Batch) -> Stage {
        let is_newer = batch.header.sequence > state.memory.header.sequence;
        if is_newer || self.variant.has(Flaw::OffsetOfAnyBatch) {
            state.memory.header = batch.header;
        }
        if self.variant.has(Flaw::InvalidatesThenStores) || self.writer_invalidates() {
            return Stage::Acknowledge;
        }
        Stage::Invalidate { slot: 0, found: false }
    }

    /// Returns whether invalidating is the writing client's task.
    pub fn writer_invalidates(&self) -> bool {
        self.variant.protocol != Protocol::Ours || self.variant.has(Flaw::WriterInvalidates)
    }

    fn invalidate_next(&self, state: &mut State, batch: &Batch, slot: usize, found: bool) -> Stage {
        let keys = (0..KEYS_MAX as Key).filter(|key| batch.keys[usize::from(*key)]);
        let is_over = found && self.variant.has(Flaw::FirstMatchAlone);
        let found_here =
            !is_over && keys.map(|key| self.invalidate(state, slot, key)).fold(false, |any, one| any | one);
        match slot + 1 < state.memory.slots.len() {
            true => Stage::Invalidate { slot: slot + 1, found: found || found_here },
            false if self.variant.has(Flaw::InvalidatesThenStores) => Stage::Store,
            false => Stage::Acknowledge,
        }
    }

    /// Frees a slot if it is of the key: a read of the word, and compare-and-swaps until one
    /// succeeds.
    pub fn invalidate(&self, state: &mut State, slot: usize, key: Key) -> bool {
        let word = state.memory.slots[slot].word;
        let is_match = word.state != SlotState::Free && word.fingerprint == self.fingerprint(key);
        if is_match {
            self.set_word(state, slot, self.freed(word));
        }
        is_match
    }

    fn acknowledge(&self, state: &mut State, batch: &Batch) {
        for (client, answer) in batch.answers.iter().enumerate() {
            let Some(answer) = *answer else { continue };
            match self.variant.protocol {
                Protocol::Paper { .. } => {
                    state.clients[client].phase =
                        Phase::Paper(PaperPhase::InvalidateLook { view: PaperView::default(), answer });
                }
                Protocol::Ours if self.writer_invalidates() => {
                    state.clients[client].phase = Phase::Invalidate { slot: 0, answer }
                }
                Protocol::Ours => self.finish(state, client, answer),
            }
        }
    }

    /// Answers a read from the index.
    pub fn serve_get(&self, state: &mut State, client: usize) {
        let key = self.operation(state, client).key();
        let record = state.flash[usize::from(state.memory.header.place)];
        self.finish(state, client, Answer::Value(record.values[usize::from(key)]));
    }

    /// The server restarts. Its batches are forgotten, and so is what only memory knew; what the
    /// drive had not flushed is there or not.
    pub fn crash(&self, state: &mut State, loses_cached: bool) {
        for batch in state.server.lanes.iter_mut().filter_map(Option::take) {
            for (client, _) in batch.answers.iter().enumerate().filter(|(_, answer)| answer.is_some()) {
                state.clients[client].phase = Phase::Unanswered;
            }
        }
        for record in &mut state.flash {
            record.durability = match record.durability {
                Durability::Cached if !loses_cached => Durability::Durable,
                other => other,
            };
            if record.durability != Durability::Durable {
                *record = Record {
                    sequence: 0,
                    values: Default::default(),
                    items: Default::default(),
                    durability: Durability::Durable,
                };
            }
        }
        for value in state.values.iter_mut().filter(|value| !value.is_durable) {
            value.is_durable = true;
            value.sequence *= u8::from(!loses_cached);
        }
        state.server.recovering = Some(0);
    }

    /// The next step of recovery: the newest record becomes current, then each slot is freed.
    pub fn recover(&self, state: &mut State, step: usize) {
        let keeps_cache = self.variant.has(Flaw::CacheSurvivesRestart);
        let slots = if keeps_cache { 0 } else { state.memory.slots.len() };
        let comes_last = self.variant.has(Flaw::RecoversSlotsFirst);
        match step.checked_sub(1) {
            None if !comes_last => self.recover_header(state),
            Some(slot) if !comes_last => self.recover_slot(state, slot),
            _ if step == slots => self.recover_header(state),
            _ => self.recover_slot(state, step),
        }
        let is_over = step == slots;
        state.server.recovering = (!is_over).then_some(step + 1);
    }

    fn recover_header(&self, state: &mut State) {
        let records = state.flash.iter().enumerate();
        let (place, record) = records.max_by_key(|(_, record)| record.sequence).expect("a block has a record");
        let is_counted = !self.variant.has(Flaw::VersionsBeginAgain);
        let epoch = state.memory.header.epoch + u8::from(is_counted);
        state.memory.header = Header { epoch, place: place as u8, sequence: record.sequence };
        state.server.sequence = record.sequence;
        state.server.values = record.values;
        state.server.items = record.items;
    }

    fn recover_slot(&self, state: &mut State, slot: usize) {
        let version = Version { epoch: state.memory.header.epoch, count: 0 };
        self.set_word(state, slot, Word { version, ..Word::default() });
    }
}
