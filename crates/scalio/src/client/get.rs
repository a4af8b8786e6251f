//! A GET of our protocol.
//!
//! | case | why it is linearizable |
//! | --- | --- |
//! | a hit | the word was valid when it was read, and a write frees the word before it is answered; the payload identifies its word |
//! | a miss | the second read covers the other slots, then the pointer, then the own word: when the pointer was read the slot was ours, and no other slot could hold the key or get it. A writer that publishes later takes our slot away |
//! | without a slot | the pointer is older than a moment at which no slot could hold the key, so its record was committed, or is by then |
//!
//! A filler with an expired lease is never just ignored: its word is taken away first, or it could
//! still make an older value valid after our answer.

use super::{Client, ClientOut, Outcome, Protocol, Source};
use crate::{
    Block, Corrupt, FlashAnswer, FlashOperation, Item, Key, MemoryAnswer, MemoryOperation, Payload, Place, Record,
    RecordPlace, Refusal, Segment, SegmentPointer, Slot, SlotState, SlotWord, VALUE_BYTES_MAX, Value,
};
use base::Time;

/// A slot that is ours, as its word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    slot: u8,
    word: SlotWord,
}

/// What a GET waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The first read of the block.
    Look,
    /// The compare-and-swap that takes a slot.
    Lock { slot: u8, expected: SlotWord, held: Held },
    /// The second read, with a slot in hand.
    Check { held: Held },
    /// The second read without one; `pointer` is the first's.
    CheckWithout { pointer: Option<SegmentPointer> },
    /// The segment.
    Segment { held: Option<Held>, pointer: SegmentPointer },
    /// The record.
    Record { held: Option<Held>, item: Item },
    /// A pause before the next poll.
    Pause { held: Option<Held> },
}

/// What of a key is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wanted {
    Value,
    /// Whether it is there and for how long: no slot is taken, and no record read.
    Life,
}

/// An open GET.
#[derive(Clone, Copy, Debug)]
pub(super) struct Get {
    key: Key,
    wanted: Wanted,
    place: Place,
    step: Step,
    pub(super) attempts: u32,
    /// What was not whole when it was last read: if the same is not whole again, it is corrupt.
    suspect: Option<Suspect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suspect {
    Segment(SegmentPointer),
    Record(RecordPlace),
}

impl Get {
    /// What it asks for.
    pub(super) fn name(&self) -> (Key, Wanted) {
        (self.key, self.wanted)
    }
}

/// What the slots of a block mean for a key, seen with a slot of our own in hand or without.
enum Others<V> {
    /// One holds it.
    Holds(Payload<V>),
    /// One may hold it and has to be taken away first.
    Stale { slot: u8, word: SlotWord },
    /// One is being filled, by a living client.
    Filling { slot: u8 },
    /// None can.
    None,
}

impl<V: Value> Client<V> {
    pub(super) fn begin_get(&mut self, ticket: u64, key: Key, wanted: Wanted, out: &mut Vec<ClientOut<V>>) {
        let place = key.place(self.config.blocks);
        let get = Get { key, wanted, place, step: Step::Look, attempts: 0, suspect: None };
        let index = self.tasks.add(ticket, super::tasks::Work::Get(get));
        self.ask_block(index, place.block, out);
    }

    pub(super) fn get_memory(
        &mut self,
        now: Time,
        index: usize,
        mut get: Get,
        answer: MemoryAnswer<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match (get.step, answer) {
            (Step::Look, MemoryAnswer::Block(block)) => self.looked(now, index, &mut get, block, out),
            (Step::Lock { expected, held, .. }, MemoryAnswer::Found(found)) => {
                self.locked(index, &mut get, held, found == expected, out)
            }
            (Step::Check { held }, MemoryAnswer::Checked { block, word }) if word == held.word => {
                self.checked(now, index, &mut get, held, block, out)
            }
            (Step::Check { .. }, MemoryAnswer::Checked { .. }) => {
                self.counters.evictions += 1;
                self.restart(index, &mut get, out);
            }
            (Step::CheckWithout { pointer }, MemoryAnswer::Block(block)) => {
                self.checked_without(now, index, &mut get, pointer, block, out)
            }
            // A server that restarts is back soon; a slot that was ours then is not any more.
            (_, MemoryAnswer::Unreachable) => self.pause(now, index, &mut get, None, out),
            _ => self.finish(index, Outcome::Unavailable, Source::Cache, out),
        }
        self.put_back(index, get);
    }

    pub(super) fn get_flash(
        &mut self,
        now: Time,
        index: usize,
        mut get: Get,
        answer: FlashAnswer<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match (get.step, answer) {
            (Step::Segment { held, pointer }, FlashAnswer::Segment(answer)) => {
                let segment = answer.and_then(|segment| pointer.check(get.place.block, &segment).map(|()| segment));
                match segment {
                    Ok(segment) => self.segment_read(now, index, &mut get, held, &segment, out),
                    Err(error) => self.not_whole(index, &mut get, held, (error, Suspect::Segment(pointer)), out),
                }
            }
            (Step::Record { held, item }, FlashAnswer::Record(answer)) => {
                match answer.and_then(|record| item.check(&record).map(|()| record)) {
                    Ok(record) => {
                        // How long it is kept may have changed since it was written.
                        let record = Record { expiry: item.expiry, ..record };
                        self.record_read(now, index, &get, held, record, out)
                    }
                    Err(error) => self.not_whole(index, &mut get, held, (error, Suspect::Record(item.record)), out),
                }
            }
            (Step::Segment { held, .. } | Step::Record { held, .. }, _) => {
                self.release(&get, held, out);
                self.finish(index, Outcome::Refused(Refusal::Device), Source::Flash, out);
            }
            _ => self.finish(index, Outcome::Unavailable, Source::Flash, out),
        }
        self.put_back(index, get);
    }

    pub(super) fn get_woken(&mut self, index: usize, mut get: Get, out: &mut Vec<ClientOut<V>>) {
        if let Step::Pause { held } = get.step {
            if held.is_none() {
                self.shared.asks(index, &get);
            }
            get.step = held.map_or(Step::Look, |held| Step::Check { held });
            self.ask_step(index, &get, out);
        }
        self.put_back(index, get);
    }

    fn looked(&mut self, now: Time, index: usize, get: &mut Get, block: Block<V>, out: &mut Vec<ClientOut<V>>) {
        self.note_epoch(get.place.block, block.header.epoch);
        // The words of the paper's slots have no fingerprints. A description needs none of them.
        if block.slots.is_empty() || self.config.protocol != Protocol::Linearizable {
            return self.read_segment(index, get, None, block.header.segment, out);
        }
        match others(&block, get, None, now) {
            Others::Holds(payload) => return self.hit(now, index, get, &block, payload, out),
            Others::Filling { .. } => {
                self.counters.waits += 1;
                return self.pause(now, index, get, None, out);
            }
            Others::Stale { .. } | Others::None => {}
        }
        match victim(&block, get, now).filter(|_| get.wanted == Wanted::Value) {
            Some(slot) => self.lock(now, index, get, slot, block.slots[usize::from(slot)].word, out),
            None => {
                get.step = Step::CheckWithout { pointer: block.header.segment };
                self.ask_block(index, get.place.block, out);
            }
        }
    }

    fn lock(
        &mut self,
        now: Time,
        index: usize,
        get: &mut Get,
        slot: u8,
        expected: SlotWord,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let held = Held { slot, word: expected.fill(get.place.fingerprint, now + self.config.lease) };
        get.step = Step::Lock { slot, expected, held };
        let operation = MemoryOperation::Swap { slot, expected, new: held.word };
        self.ask_memory(index, get.place.block, operation, out);
    }

    fn locked(&mut self, index: usize, get: &mut Get, held: Held, is_ours: bool, out: &mut Vec<ClientOut<V>>) {
        if is_ours {
            get.step = Step::Check { held };
        } else {
            self.counters.lost_races += 1;
            get.step = Step::Look;
            get.attempts += 1;
        }
        self.ask_step(index, get, out);
    }

    fn checked(
        &mut self,
        now: Time,
        index: usize,
        get: &mut Get,
        held: Held,
        block: Block<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match others(&block, get, Some(held.slot), now) {
            Others::None => self.read_segment(index, get, Some(held), block.header.segment, out),
            Others::Stale { slot, word } => {
                self.take_away(get, slot, word, out);
                self.ask_again(index, get, Step::Check { held }, out);
            }
            Others::Holds(payload) => {
                self.release(get, Some(held), out);
                self.hit(now, index, get, &block, payload, out);
            }
            // Two that wait for each other would wait for ever: the one with the higher slot gives
            // way (ours; the paper lets both).
            Others::Filling { slot } if slot < held.slot => {
                self.counters.ties += 1;
                self.release(get, Some(held), out);
                self.pause(now, index, get, None, out);
            }
            Others::Filling { .. } => {
                self.counters.waits += 1;
                self.pause(now, index, get, Some(held), out);
            }
        }
    }

    fn checked_without(
        &mut self,
        now: Time,
        index: usize,
        get: &mut Get,
        pointer: Option<SegmentPointer>,
        block: Block<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match others(&block, get, None, now) {
            Others::None => {
                self.counters.bypasses += 1;
                self.read_segment(index, get, None, pointer, out);
            }
            Others::Holds(payload) => self.hit(now, index, get, &block, payload, out),
            Others::Stale { slot, word } => {
                self.take_away(get, slot, word, out);
                self.ask_again(index, get, Step::Look, out);
            }
            Others::Filling { .. } => {
                self.counters.waits += 1;
                self.pause(now, index, get, None, out);
            }
        }
    }

    fn hit(
        &mut self,
        now: Time,
        index: usize,
        get: &Get,
        block: &Block<V>,
        payload: Payload<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        self.counters.hits += 1;
        if self.config.touch {
            let slot = block.slots.iter().position(|slot| slot.whole().is_some_and(|held| held.key == payload.key));
            let touch = slot.map(|slot| MemoryOperation::Touch { slot: slot as u8, at: now });
            self.tell_memory(get.place.block, touch, out);
        }
        let left = payload.expiry.left(now, self.config.start_second);
        let outcome = match get.wanted {
            Wanted::Value => Outcome::Value(left.map(|_| payload.value)),
            Wanted::Life => Outcome::Described(left),
        };
        self.finish(index, outcome, Source::Cache, out);
    }

    fn read_segment(
        &mut self,
        index: usize,
        get: &mut Get,
        held: Option<Held>,
        pointer: Option<SegmentPointer>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let Some(pointer) = pointer else {
            return self.found_nothing(index, get, held, out);
        };
        get.step = Step::Segment { held, pointer };
        self.ask_flash(index, get.place.block, FlashOperation::ReadSegment { block: get.place.block, pointer }, out);
    }

    fn segment_read(
        &mut self,
        now: Time,
        index: usize,
        get: &mut Get,
        held: Option<Held>,
        segment: &Segment,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let item = segment.find(&get.key);
        let left = item.and_then(|item| item.expiry.left(now, self.config.start_second));
        match item.filter(|_| left.is_some()) {
            Some(_) if get.wanted == Wanted::Life => {
                self.counters.misses += 1;
                self.release(get, held, out);
                self.finish(index, Outcome::Described(left), Source::Flash, out);
            }
            Some(item) => {
                // The answer is of the moment at which the pointer was read: from here on the slot
                // is for the filling alone, and no slot has room for a longer value.
                let (held, idle) = if item.value_bytes > VALUE_BYTES_MAX { (None, held) } else { (held, None) };
                self.release(get, idle, out);
                get.step = Step::Record { held, item: *item };
                self.ask_flash(index, get.place.block, FlashOperation::ReadRecord { item: *item }, out);
            }
            _ => self.found_nothing(index, get, held, out),
        }
    }

    /// That there is nothing is as good an answer as any, and of the moment of the second read; the
    /// slot has nothing to hold.
    fn found_nothing(&mut self, index: usize, get: &Get, held: Option<Held>, out: &mut Vec<ClientOut<V>>) {
        self.counters.misses += 1;
        self.release(get, held, out);
        let outcome = match get.wanted {
            Wanted::Value => Outcome::Value(None),
            Wanted::Life => Outcome::Described(None),
        };
        self.finish(index, outcome, Source::Flash, out);
    }

    /// Answers, and fills the slot behind the answer. If the slot was taken away meanwhile, the
    /// last compare-and-swap fails and nobody reads what was written.
    fn record_read(
        &mut self,
        now: Time,
        index: usize,
        get: &Get,
        held: Option<Held>,
        record: Record<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        self.counters.misses += 1;
        // Late is late: a payload that is written long after its lease could meet its version
        // again, which comes back after 2^24 changes of the slot.
        let (held, late) =
            if held.is_some_and(|held| held.word.lease_ended(now)) { (None, held) } else { (held, None) };
        self.release(get, late, out);
        if let Some(Held { slot, word }) = held {
            self.counters.fills += 1;
            let payload =
                Payload { version: word.version(), key: get.key, value: record.value.clone(), expiry: record.expiry };
            let fill = [
                MemoryOperation::WritePayload { slot, payload },
                MemoryOperation::Touch { slot, at: now },
                MemoryOperation::Swap { slot, expected: word, new: word.validate() },
            ];
            self.tell_memory(get.place.block, fill, out);
        }
        self.finish(index, Outcome::Value(Some(record.value)), Source::Flash, out);
    }

    /// The place was used again while we were on our way, so the block has another pointer by now;
    /// or it is really damaged.
    fn not_whole(
        &mut self,
        index: usize,
        get: &mut Get,
        held: Option<Held>,
        found: (Corrupt, Suspect),
        out: &mut Vec<ClientOut<V>>,
    ) {
        self.release(get, held, out);
        let (error, suspect) = found;
        if matches!(error, Corrupt::Foreign { .. }) {
            self.counters.foreign += 1
        } else {
            self.counters.corrupt += 1
        }
        if get.suspect.replace(suspect) == Some(suspect) {
            return self.finish(index, Outcome::Refused(Refusal::Corrupt), Source::Flash, out);
        }
        self.restart(index, get, out);
    }

    fn restart(&mut self, index: usize, get: &mut Get, out: &mut Vec<ClientOut<V>>) {
        self.ask_again(index, get, Step::Look, out);
    }

    fn ask_again(&mut self, index: usize, get: &mut Get, step: Step, out: &mut Vec<ClientOut<V>>) {
        get.step = step;
        if !self.gives_up(index, get, out) {
            self.ask_step(index, get, out);
        }
    }

    fn ask_step(&mut self, index: usize, get: &Get, out: &mut Vec<ClientOut<V>>) {
        let operation = match get.step {
            Step::Check { held } => MemoryOperation::Check { slot: held.slot },
            _ => MemoryOperation::ReadBlock,
        };
        self.ask_memory(index, get.place.block, operation, out);
    }

    fn pause(&mut self, now: Time, index: usize, get: &mut Get, held: Option<Held>, out: &mut Vec<ClientOut<V>>) {
        get.step = Step::Pause { held };
        if !self.gives_up(index, get, out) && (held.is_some() || !self.joins(index, get)) {
            self.tasks.sleep_until(index, Some(now + self.config.retry_wait));
        }
    }

    fn gives_up(&mut self, index: usize, get: &mut Get, out: &mut Vec<ClientOut<V>>) -> bool {
        get.attempts += 1;
        let over = get.attempts > self.config.attempts_max;
        if over {
            let held = match get.step {
                Step::Check { held } => Some(held),
                Step::Pause { held } => held,
                _ => None,
            };
            self.release(get, held, out);
            self.put_back(index, *get);
            self.finish(index, Outcome::Unavailable, Source::Cache, out);
        }
        over
    }

    fn release(&mut self, get: &Get, held: Option<Held>, out: &mut Vec<ClientOut<V>>) {
        if let Some(held) = held {
            self.take_away(get, held.slot, held.word, out);
        }
    }

    fn take_away(&mut self, get: &Get, slot: u8, word: SlotWord, out: &mut Vec<ClientOut<V>>) {
        let free = MemoryOperation::Swap { slot, expected: word, new: word.free() };
        self.tell_memory(get.place.block, [free], out);
    }

    /// Unless the task has ended meanwhile.
    fn put_back(&mut self, index: usize, get: Get) {
        self.tasks.resume(index, super::tasks::Work::Get(get));
    }
}

/// What all slots but `own` mean for the key.
fn others<V: Value>(block: &Block<V>, get: &Get, own: Option<u8>, now: Time) -> Others<V> {
    let of_key = |(_, slot): &(u8, &Slot<V>)| slot.word.is_of(get.place.fingerprint);
    let slots = (0u8..).zip(&block.slots).filter(|(at, _)| Some(*at) != own).filter(of_key);
    let mut worst = Others::None;
    for (at, slot) in slots {
        match (slot.word.state(), slot.whole()) {
            (SlotState::Valid, Some(payload)) if payload.key == get.key => return Others::Holds(payload.clone()),
            (SlotState::Valid, Some(_)) => {}
            (SlotState::Valid, None) => worst = Others::Stale { slot: at, word: slot.word },
            _ if slot.word.lease_ended(now) => worst = Others::Stale { slot: at, word: slot.word },
            _ => return Others::Filling { slot: at },
        }
    }
    worst
}

/// The slot to take: one that is of no use to anybody, else a free one, else the one that was not
/// used for longest.
fn victim<V: Value>(block: &Block<V>, get: &Get, now: Time) -> Option<u8> {
    let useless = |slot: &Slot<V>| slot.word.state() == SlotState::Filling || slot.whole().is_none();
    let rank = |slot: &Slot<V>| match slot.word.state() {
        SlotState::Filling if !slot.word.lease_ended(now) => None,
        SlotState::Filling | SlotState::Valid if slot.word.is_of(get.place.fingerprint) && useless(slot) => {
            Some((0, Time::ZERO))
        }
        SlotState::Free => Some((1, Time::ZERO)),
        _ => Some((2, slot.last_use)),
    };
    (0u8..).zip(&block.slots).filter_map(|(at, slot)| rank(slot).map(|rank| (rank, at))).min().map(|(_, at)| at)
}
