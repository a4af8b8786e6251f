//! The paper's client, step by step as in its section 5.2, errors included, for study.
//!
//! | the paper | here |
//! | --- | --- |
//! | CAS of `complete` to 0 locks a slot | compare-and-swap of the word with that flag cleared |
//! | the key is written, `occupied` set | a payload without a value, then a store of the flag |
//! | a key that others fill: back off | release, wait, restart |
//! | the value is written, `complete` set | a payload, then a store of the flag |
//! | a writer sets `occupied` to 0 | in the first slot that matches |
//!
//! A payload has no version, so its writer is unknown.

use super::tasks::Work;
use super::{Client, ClientOut, Outcome, Protocol, Source};
use crate::{
    Block, FlashAnswer, FlashOperation, Key, MemoryAnswer, MemoryOperation, Payload, Refusal, Segment, SegmentPointer,
    Slot, SlotState, SlotWord, VALUE_BYTES_MAX, Value, Version,
};
use base::Time;

/// What a GET waits for.
#[derive(Clone, Copy, Debug)]
enum Step {
    Look,
    Lock { slot: u8, expected: SlotWord },
    Check { slot: u8 },
    Segment { slot: Option<u8> },
    Record { slot: Option<u8>, expiry: crate::Expiry },
    Pause,
}

/// An open GET.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaperGet {
    key: Key,
    block: u32,
    step: Step,
    attempts: u32,
}

/// The invalidation after an update.
#[derive(Clone, Debug)]
pub(super) struct PaperInvalidation {
    key: Key,
    block: u32,
}

impl<V: Value> Client<V> {
    pub(super) fn begin_paper_get(&mut self, ticket: u64, key: Key, out: &mut Vec<ClientOut<V>>) {
        let block = key.place(self.config.blocks).block;
        let index = self.tasks.add(ticket, Work::PaperGet(PaperGet { key, block, step: Step::Look, attempts: 0 }));
        self.ask_block(index, block, out);
    }

    pub(super) fn paper_memory(
        &mut self,
        now: Time,
        index: usize,
        mut get: PaperGet,
        answer: MemoryAnswer<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match (get.step, answer) {
            (Step::Look, MemoryAnswer::Block(block)) => self.paper_looked(now, index, &mut get, &block, out),
            (Step::Lock { slot, expected }, MemoryAnswer::Found(found)) if found == expected => {
                self.paper_locked(now, index, &mut get, slot, out)
            }
            (Step::Lock { .. }, MemoryAnswer::Found(_)) => {
                self.counters.lost_races += 1;
                self.paper_pause(now, index, &mut get, out);
            }
            (Step::Check { slot }, MemoryAnswer::Block(block)) => {
                self.paper_checked(now, index, &mut get, slot, &block, out)
            }
            _ => self.finish(index, Outcome::Unavailable, Source::Cache, out),
        }
        self.tasks.resume(index, Work::PaperGet(get));
    }

    pub(super) fn paper_flash(
        &mut self,
        now: Time,
        index: usize,
        mut get: PaperGet,
        answer: FlashAnswer<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match (get.step, answer) {
            (Step::Segment { slot }, FlashAnswer::Segment(Ok(segment))) => {
                self.paper_segment(now, index, &mut get, slot, &segment, out)
            }
            (Step::Record { slot, expiry }, FlashAnswer::Record(Ok(record))) => {
                if record.value.bytes() > VALUE_BYTES_MAX {
                    self.paper_release(&get, slot, out);
                } else {
                    self.paper_fill(now, &get, slot, record.value.clone(), expiry, out);
                }
                self.counters.misses += 1;
                self.finish(index, Outcome::Value(Some(record.value)), Source::Flash, out);
            }
            (Step::Segment { slot } | Step::Record { slot, .. }, _) => {
                self.counters.corrupt += 1;
                self.paper_release(&get, slot, out);
                self.finish(index, Outcome::Refused(Refusal::Corrupt), Source::Flash, out);
            }
            _ => self.finish(index, Outcome::Unavailable, Source::Flash, out),
        }
        self.tasks.resume(index, Work::PaperGet(get));
    }

    pub(super) fn paper_woken(&mut self, index: usize, mut get: PaperGet, out: &mut Vec<ClientOut<V>>) {
        get.step = Step::Look;
        self.ask_block(index, get.block, out);
        self.tasks.resume(index, Work::PaperGet(get));
    }

    pub(super) fn begin_invalidation(
        &mut self,
        index: usize,
        key: Key,
        outcome: Outcome<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let block = key.place(self.config.blocks).block;
        self.tasks.promise(index, outcome);
        self.tasks.sleep_until(index, None);
        self.tasks.resume(index, Work::Invalidate(PaperInvalidation { key, block }));
        self.ask_block(index, block, out);
    }

    pub(super) fn invalidate(
        &mut self,
        index: usize,
        work: &PaperInvalidation,
        answer: MemoryAnswer<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        if let MemoryAnswer::Block(block) = answer {
            let slot = matching(&block, &work.key).next().map(|(slot, _)| slot);
            let store = slot.map(|slot| MemoryOperation::StoreFlags {
                slot,
                occupied: Some(false),
                complete: None,
                lease: None,
            });
            self.tell_memory(work.block, store, out);
        }
        let outcome = self.tasks.promised(index).unwrap_or(Outcome::Unknown);
        self.finish(index, outcome, Source::Server, out);
    }

    fn paper_looked(
        &mut self,
        now: Time,
        index: usize,
        get: &mut PaperGet,
        block: &Block<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        self.note_epoch(get.block, block.header.epoch);
        if block.slots.is_empty() {
            return self.paper_offset(index, get, None, block.header.segment, out);
        }
        let leased = matches!(self.config.protocol, Protocol::Paper { lease: true });
        let expired = |slot: &Slot<V>| leased && slot.word.lease_ended(now);
        let key = get.key;
        match matching(block, &key).find(|(_, slot)| slot.word.state() == SlotState::Valid || !expired(slot)) {
            Some((slot, found)) if found.word.state() == SlotState::Valid => {
                self.paper_hit(now, index, get, slot, found, out)
            }
            Some(_) => {
                self.counters.waits += 1;
                self.paper_pause(now, index, get, out);
            }
            None => match paper_victim(block, expired) {
                Some(slot) => self.paper_lock(now, index, get, slot, block.slots[usize::from(slot)].word, out),
                None => self.paper_pause(now, index, get, out),
            },
        }
    }

    fn paper_hit(
        &mut self,
        now: Time,
        index: usize,
        get: &PaperGet,
        slot: u8,
        found: &Slot<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        self.counters.hits += 1;
        if self.config.touch {
            self.tell_memory(get.block, [MemoryOperation::Touch { slot, at: now }], out);
        }
        let payload = found.payload.as_ref().filter(|payload| !payload.expiry.is_past(now, self.config.start_second));
        self.finish(index, Outcome::Value(payload.map(|payload| payload.value.clone())), Source::Cache, out);
    }

    /// Clearing a flag that is clear already, in a slot whose lease has ended, would change
    /// nothing: the new lease makes the difference.
    fn paper_lock(
        &mut self,
        now: Time,
        index: usize,
        get: &mut PaperGet,
        slot: u8,
        expected: SlotWord,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let cleared = expected.with_flags(None, Some(false));
        let new = if cleared == expected { cleared.with_lease(now + self.config.lease) } else { cleared };
        get.step = Step::Lock { slot, expected };
        self.ask_memory(index, get.block, MemoryOperation::Swap { slot, expected, new }, out);
    }

    fn paper_locked(&mut self, now: Time, index: usize, get: &mut PaperGet, slot: u8, out: &mut Vec<ClientOut<V>>) {
        let leased = matches!(self.config.protocol, Protocol::Paper { lease: true });
        let lease = leased.then(|| now + self.config.lease);
        let claim =
            Payload { version: Version::default(), key: get.key, value: V::default(), expiry: Default::default() };
        let operations = [
            MemoryOperation::WritePayload { slot, payload: claim },
            MemoryOperation::StoreFlags { slot, occupied: Some(true), complete: None, lease },
        ];
        self.tell_memory(get.block, operations, out);
        get.step = Step::Check { slot };
        self.ask_block(index, get.block, out);
    }

    fn paper_checked(
        &mut self,
        now: Time,
        index: usize,
        get: &mut PaperGet,
        slot: u8,
        block: &Block<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        if matching(block, &get.key).any(|(other, _)| other != slot) {
            self.counters.ties += 1;
            self.paper_release(get, Some(slot), out);
            return self.paper_pause(now, index, get, out);
        }
        self.paper_offset(index, get, Some(slot), block.header.segment, out);
    }

    fn paper_offset(
        &mut self,
        index: usize,
        get: &mut PaperGet,
        slot: Option<u8>,
        pointer: Option<SegmentPointer>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let Some(pointer) = pointer else {
            return self.paper_nothing(index, get, slot, out);
        };
        get.step = Step::Segment { slot };
        self.ask_flash(index, get.block, FlashOperation::ReadSegment { block: get.block, pointer }, out);
    }

    fn paper_segment(
        &mut self,
        now: Time,
        index: usize,
        get: &mut PaperGet,
        slot: Option<u8>,
        segment: &Segment,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match segment.find(&get.key) {
            Some(item) if !item.expiry.is_past(now, self.config.start_second) => {
                get.step = Step::Record { slot, expiry: item.expiry };
                self.ask_flash(index, get.block, FlashOperation::ReadRecord { item: *item }, out);
            }
            _ => self.paper_nothing(index, get, slot, out),
        }
    }

    fn paper_nothing(&mut self, index: usize, get: &PaperGet, slot: Option<u8>, out: &mut Vec<ClientOut<V>>) {
        self.counters.misses += 1;
        self.paper_release(get, slot, out);
        self.finish(index, Outcome::Value(None), Source::Flash, out);
    }

    fn paper_fill(
        &mut self,
        now: Time,
        get: &PaperGet,
        slot: Option<u8>,
        value: V,
        expiry: crate::Expiry,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let Some(slot) = slot else { return };
        self.counters.fills += 1;
        let payload = Payload { version: Version::default(), key: get.key, value, expiry };
        let operations = [
            MemoryOperation::WritePayload { slot, payload },
            MemoryOperation::Touch { slot, at: now },
            MemoryOperation::StoreFlags { slot, occupied: None, complete: Some(true), lease: None },
        ];
        self.tell_memory(get.block, operations, out);
    }

    fn paper_release(&mut self, get: &PaperGet, slot: Option<u8>, out: &mut Vec<ClientOut<V>>) {
        let free = slot.map(|slot| MemoryOperation::StoreFlags {
            slot,
            occupied: Some(false),
            complete: Some(true),
            lease: None,
        });
        self.tell_memory(get.block, free, out);
    }

    fn paper_pause(&mut self, now: Time, index: usize, get: &mut PaperGet, out: &mut Vec<ClientOut<V>>) {
        get.step = Step::Pause;
        get.attempts += 1;
        if get.attempts > self.config.attempts_max {
            return self.finish(index, Outcome::Unavailable, Source::Cache, out);
        }
        self.tasks.sleep_until(index, Some(now + self.config.retry_wait));
    }
}

/// Slots with that key and `occupied`.
fn matching<'a, V>(block: &'a Block<V>, key: &'a Key) -> impl Iterator<Item = (u8, &'a Slot<V>)> {
    let occupied = |slot: &Slot<V>| matches!(slot.word.state(), SlotState::Filling | SlotState::Valid);
    let of_key = move |slot: &Slot<V>| slot.payload.as_ref().is_some_and(|payload| payload.key == *key);
    (0u8..).zip(&block.slots).filter(move |(_, slot)| occupied(slot) && of_key(slot))
}

fn paper_victim<V>(block: &Block<V>, expired: impl Fn(&Slot<V>) -> bool) -> Option<u8> {
    let rank = |slot: &Slot<V>| match slot.word.state() {
        SlotState::Free => Some((0, Time::ZERO)),
        SlotState::Valid => Some((1, slot.last_use)),
        SlotState::Filling | SlotState::Dead => expired(slot).then_some((1, slot.last_use)),
    };
    (0u8..).zip(&block.slots).filter_map(|(at, slot)| rank(slot).map(|rank| (rank, at))).min().map(|(_, at)| at)
}
