//! Caches as they are after a long run: what the load's own requests leave in them, without the
//! time that these take.
//!
//! Requests of the plan's load are drawn with a seed of their own, some five for each place in the
//! cache. Under the paper's skew no place then has its first content any more. A GET fills, a PUT
//! empties. Loads that insert have moved on by then, and the run begins at their beginning: keys
//! are counted from the newest.

use super::keys::Keys;
use base::{Operation, Seed, Time};
use scalio::baseline::ditto::{Metadata, Object, ObjectWord, Pool, PoolRequest, SLOTS, SlotId};
use scalio::{Contents, Expiry, Index, Key, MemoryOperation, Payload, Slot, SlotState, Token};
use workload::Source;
use workload::storage::{Addresses, Config, Generator};

/// Requests drawn for each place of a cache.
const DRAWS: u64 = 5;

/// Requests between the fetching of a block from memory and the look at it. Measured.
const AHEAD: usize = 8;

/// One request: a key's number, and whether it is changed.
type Draw = (u32, bool);

/// The requests that came before a run.
pub fn draws(io: &Config, places: u64, seed: Seed) -> Vec<Draw> {
    let count = places.saturating_mul(DRAWS);
    let config = Config { requests: Some(count), duration: None, ..io.clone() };
    let mut generator = Generator::new(&config, seed);
    let mut arrivals = Vec::new();
    generator.start(&mut arrivals);
    let mut draws: Vec<Draw> = Vec::with_capacity(count as usize);
    let (mut next, mut inserts) = (std::collections::VecDeque::from(arrivals), 0u64);
    while let Some(arrival) = next.pop_front() {
        let request = arrival.request;
        let is_change = request.operation != Operation::Read;
        inserts += u64::from(is_change);
        draws.push(((request.address / io.block.count()) as u32, is_change));
        next.extend(generator.after_arrival(&arrival));
        next.extend(generator.after_end(arrival.at, &request));
    }
    if matches!(io.addresses, Addresses::Latest { .. }) {
        let keys = io.working_set_blocks;
        draws.iter_mut().for_each(|(key, _)| *key = ((u64::from(*key) + keys - inserts % keys) % keys) as u32);
    }
    draws
}

/// Fills Scalio's blocks, each by itself the least recently used first, as clients do.
pub fn fill_index(index: &mut Index<Token>, blocks: u32, keys: &Keys, draws: &[Draw]) {
    for (moment, (number, is_change)) in (0u64..).zip(draws) {
        if let Some((number, _)) = draws.get(moment as usize + AHEAD) {
            index.prefetch(keys.key(*number).place(blocks).block);
        }
        let key = keys.key(*number);
        let place = key.place(blocks);
        let slots = index.slots(place.block);
        let held = slots.iter().position(|slot| holds(slot, &key));
        let now = Time::ps(moment);
        let operations = match (held, is_change) {
            (Some(slot), true) => vec![swap(&slots[slot], slot, |word| word.free())],
            (None, true) => Vec::new(),
            (Some(slot), false) => vec![MemoryOperation::Touch { slot: slot as u8, at: now }],
            (None, false) => fill(slots, key, keys.value(*number), place.fingerprint, now),
        };
        operations.into_iter().for_each(|operation| drop(index.carry_out(place.block, operation)));
    }
}

fn holds(slot: &Slot<Token>, key: &Key) -> bool {
    slot.word.state() == SlotState::Valid && slot.payload.as_ref().is_some_and(|payload| payload.key == *key)
}

fn swap(
    slot: &Slot<Token>,
    at: usize,
    change: impl FnOnce(scalio::SlotWord) -> scalio::SlotWord,
) -> MemoryOperation<Token> {
    MemoryOperation::Swap { slot: at as u8, expected: slot.word, new: change(slot.word) }
}

/// The slot that is free, or was used longest ago.
fn fill(slots: &[Slot<Token>], key: Key, value: Token, fingerprint: u16, now: Time) -> Vec<MemoryOperation<Token>> {
    let by_age =
        slots.iter().enumerate().min_by_key(|(_, slot)| (slot.word.state() == SlotState::Valid, slot.last_use));
    let Some((at, slot)) = by_age else { return Vec::new() };
    let word = slot.word.fill(fingerprint, Time::ZERO).validate();
    let payload = Payload { version: word.version(), key, value, expiry: Expiry(0) };
    let slot = at as u8;
    vec![
        MemoryOperation::Swap { slot, expected: slots[at].word, new: word },
        MemoryOperation::WritePayload { slot, payload },
        MemoryOperation::Touch { slot, at: now },
    ]
}

/// Fills Ditto's pool with the keys that were used last, and gives out all of its room.
pub fn fill_pool(pool: &mut Pool<Token>, keys: &Keys, draws: &[Draw]) {
    let geometry = *pool.geometry();
    while pool.give_chunk().is_some() {}
    let mut seen = vec![false; keys.count as usize];
    let mut block = 0u64;
    for (moment, (number, is_change)) in draws.iter().enumerate().rev() {
        if block == geometry.blocks() {
            break;
        }
        if std::mem::replace(&mut seen[*number as usize], true) || *is_change {
            continue;
        }
        let address = block * u64::from(geometry.block_bytes);
        block += u64::from(put(pool, keys, *number, address, Time::ps(moment as u64)));
    }
}

/// Whether there was a slot for it.
fn put(pool: &mut Pool<Token>, keys: &Keys, number: u32, address: u64, accessed: Time) -> bool {
    let (key, value) = (keys.key(number), keys.value(number));
    let first = u64::from(key.place(pool.geometry().buckets).block) * SLOTS as u64;
    let bucket = &pool.slots()[first as usize..first as usize + SLOTS];
    let Some(free) = bucket.iter().position(|slot| slot.word.is_empty()) else { return false };
    let slot = SlotId(first + free as u64);
    let object = Object { key, value };
    let new = ObjectWord::new(ObjectWord::fingerprint_of(&key), object.bytes(), address);
    pool.execute(PoolRequest::Swap { slot, expected: ObjectWord::EMPTY, new });
    pool.execute(PoolRequest::Describe { slot, metadata: Metadata { inserted: accessed, accessed, frequency: 1 } });
    pool.execute(PoolRequest::WriteObject { address, object });
    true
}
