//! A block for a fill: from the client's own, from a chunk that the storage node gives, or from an
//! object that has not been used for long.

use super::{Client, Fill, Purpose, Step};
use crate::Value;
use crate::baseline::ditto::ClientOut;
use crate::baseline::ditto::pool::{Object, PoolAnswer, PoolRequest};
use crate::baseline::ditto::slot::{Metadata, ObjectWord, SLOTS, Slot, SlotId};

/// A hunt for a victim.
#[derive(Clone, Debug, Default)]
pub(super) struct Hunt {
    /// The first of the buckets that are being read; meaningless once a victim was chosen.
    first: u32,
    /// Objects to choose from, the least recently used last.
    sampled: Vec<(SlotId, Slot)>,
    victim: Option<(SlotId, ObjectWord)>,
    reads: u32,
}

impl<V: Value> Client<V> {
    /// LEED said what the key's value is: put it in.
    pub(super) fn fill(&mut self, task: usize, value: V, out: &mut Vec<ClientOut<V>>) {
        if !self.config.answers_after_fill {
            self.tell(task, out);
        }
        let object = Object { key: self.tasks[task].key, value };
        if object.bytes() > self.config.pool.block_bytes {
            self.counters.oversize += 1;
            return self.end(task, out);
        }
        let fill = Fill { value: object.value, address: 0, word: ObjectWord::EMPTY, slot: SlotId(0) };
        self.tasks[task].fill = Some(fill);
        self.find_block(task, out);
    }

    fn find_block(&mut self, task: usize, out: &mut Vec<ClientOut<V>>) {
        if let Some(address) = self.heap.take() {
            return self.write_object(task, address, out);
        }
        if self.heap.is_dry() {
            return self.sample(task, Hunt::default(), out);
        }
        self.tasks[task].step = Step::Chunk;
        self.waiting_for_chunk.push(task);
        if !std::mem::replace(&mut self.has_asked, true) {
            out.push(ClientOut::AskChunk);
        }
    }

    pub(super) fn on_chunk(&mut self, chunk: Option<u64>, out: &mut Vec<ClientOut<V>>) {
        self.has_asked = false;
        self.heap.add_chunk(chunk);
        for task in std::mem::take(&mut self.waiting_for_chunk) {
            self.find_block(task, out);
        }
    }

    /// Writes the object and reads the bucket at once: the result shows the available slots, and
    /// that the object is present.
    fn write_object(&mut self, task: usize, address: u64, out: &mut Vec<ClientOut<V>>) {
        let key = self.tasks[task].key;
        let Some(fill) = &mut self.tasks[task].fill else { return };
        let object = Object { key, value: fill.value.clone() };
        fill.address = address;
        fill.word = ObjectWord::new(ObjectWord::fingerprint_of(&key), object.bytes(), address);
        out.push(ClientOut::Pool { request: None, operation: PoolRequest::WriteObject { address, object } });
        self.search(task, Purpose::Fill, out);
    }

    fn sample(&mut self, task: usize, mut hunt: Hunt, out: &mut Vec<ClientOut<V>>) {
        let count = self.config.sample_buckets;
        hunt.first = self.stream.below(u64::from(self.config.pool.buckets - count + 1)) as u32;
        hunt.victim = None;
        hunt.reads += 1;
        let operation = PoolRequest::ReadBuckets { first: hunt.first, count };
        self.tasks[task].step = Step::Hunt(hunt);
        self.ask(task, operation, out);
    }

    pub(super) fn on_hunt(&mut self, task: usize, hunt: Hunt, answer: PoolAnswer<V>, out: &mut Vec<ClientOut<V>>) {
        match (answer, hunt.victim) {
            (PoolAnswer::Slots(slots), None) => self.on_sampled(task, hunt, &slots, out),
            (PoolAnswer::Found(found), Some((slot, expected))) if found == expected => {
                self.on_evicted(task, slot, expected, out);
            }
            (_, Some(_)) => {
                self.counters.lost_races += 1;
                self.evict(task, hunt, out);
            }
            (_, None) => self.abandon_fill(task, out),
        }
    }

    /// Takes the first objects of the read buckets. Reads others until there are enough, or the
    /// limit of reads is reached.
    fn on_sampled(&mut self, task: usize, mut hunt: Hunt, slots: &[Slot], out: &mut Vec<ClientOut<V>>) {
        let missing = (self.config.samples as usize).saturating_sub(hunt.sampled.len());
        let base = u64::from(hunt.first) * SLOTS as u64;
        let named = slots.iter().enumerate().map(|(place, slot)| (SlotId(base + place as u64), *slot));
        hunt.sampled.extend(named.filter(|(_, slot)| !slot.word.is_empty()).take(missing));
        if hunt.sampled.len() < self.config.samples as usize && hunt.reads < self.config.attempts_max {
            return self.sample(task, hunt, out);
        }
        hunt.sampled.sort_by_key(|(_, slot)| std::cmp::Reverse(slot.metadata.accessed));
        self.evict(task, hunt, out);
    }

    /// Takes out the least recently used of what is left of the sample.
    fn evict(&mut self, task: usize, mut hunt: Hunt, out: &mut Vec<ClientOut<V>>) {
        match hunt.sampled.pop() {
            Some((slot, Slot { word, .. })) => {
                hunt.victim = Some((slot, word));
                self.tasks[task].step = Step::Hunt(hunt);
                self.ask(task, PoolRequest::Swap { slot, expected: word, new: ObjectWord::EMPTY }, out);
            }
            None if hunt.reads < self.config.attempts_max => self.sample(task, hunt, out),
            None => self.abandon_fill(task, out),
        }
    }

    fn on_evicted(&mut self, task: usize, slot: SlotId, word: ObjectWord, out: &mut Vec<ClientOut<V>>) {
        self.counters.evictions += 1;
        let operation = PoolRequest::Describe { slot, metadata: Metadata::default() };
        out.push(ClientOut::Pool { request: None, operation });
        match word.address() {
            Some(address) => self.write_object(task, address, out),
            None => self.abandon_fill(task, out),
        }
    }
}
