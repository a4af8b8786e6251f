//! The second half of a group: written, durable, published, invalidated, answered.

use super::group::{Group, Member, Step, pages_of};
use super::log::Rows;
use super::{Part, Pending, Purpose, Server, ServerOut, Update};
use crate::{
    Block, Content, Extent, FlashOperation, MemoryAnswer, MemoryOperation, Page, Protocol, Record, RecordPlace,
    Refusal, RequestBody, RequestResult, Segment, SegmentPointer, Sequence, SlotWord, Value, ZoneKind, record_bytes,
};
use base::Time;
use std::sync::Arc;

impl<V: Value> Member<V> {
    fn place(&mut self, record: &Record<V>, place: RecordPlace) {
        let segment = self.segment.as_mut().expect("a member without a segment is refused");
        segment.find_mut(&record.key).expect("a fresh record is listed").record = place;
        self.placed.push((place, record_bytes(record.value.bytes())));
    }
}

impl<V: Value> Server<V> {
    /// Writes the records of puts, which nobody has to know anything for.
    pub(super) fn write_puts(&mut self, group: usize, out: &mut Vec<ServerOut<V>>) {
        let mut members = std::mem::take(&mut self.groups[group].members);
        let mut records: Vec<(usize, Record<V>)> = Vec::new();
        for (at, member) in members.iter().enumerate() {
            for pending in &member.pending {
                let Pending::Update(Update { body, expiry, .. }) = pending else { continue };
                let RequestBody::Put { key, value, .. } = body else { continue };
                let (sequence, expiry) = (self.next_sequence(), *expiry);
                records.push((at, Record { key: *key, sequence, expiry, value: value.clone() }));
            }
        }
        let places = self.write_records(group, records.iter().map(|(_, record)| record), out);
        for ((at, record), place) in records.into_iter().zip(places) {
            members[at].early.push_back((place, record));
        }
        self.groups[group].members = members;
        self.groups[group].early_open = std::mem::take(&mut self.groups[group].open);
    }

    pub(super) fn write(&mut self, now: Time, group: usize, out: &mut Vec<ServerOut<V>>) {
        let mut members = std::mem::take(&mut self.groups[group].members);
        self.groups[group].before = self.sequence;
        members.iter_mut().for_each(|member| self.apply(now, member));
        self.groups[group].step = Step::Writes;
        self.groups[group].open = std::mem::take(&mut self.groups[group].early_open);
        for extent in std::mem::take(&mut self.groups[group].early_done) {
            self.log.written(extent);
        }
        self.groups[group].promised = Rows::default();
        self.write_pages(group, &mut members, out);
        members.iter_mut().filter(|member| member.dirty).for_each(|member| self.write_segment(group, member, out));
        self.groups[group].members = members;
        if self.groups[group].open == 0 {
            self.publish(now, group, out);
        }
    }

    /// The other records of all members together, packed into pages.
    fn write_pages(&mut self, group: usize, members: &mut [Member<V>], out: &mut Vec<ServerOut<V>>) {
        let fresh: Vec<Record<V>> = members.iter_mut().flat_map(|member| member.fresh.drain(..)).collect();
        let places = self.write_records(group, fresh.iter(), out);
        for (record, place) in fresh.iter().zip(places) {
            self.log.count_records(place.sector(), record_bytes(record.value.bytes()), 1, true);
            let block = record.key.place(self.config.blocks).block;
            let member =
                members.iter_mut().find(|member| member.block == block).expect("a fresh record is of a member");
            member.place(record, place);
        }
    }

    /// Packs records into pages. Returns their places, in their order.
    fn write_records<'a>(
        &mut self,
        group: usize,
        records: impl Iterator<Item = &'a Record<V>>,
        out: &mut Vec<ServerOut<V>>,
    ) -> Vec<RecordPlace>
    where
        V: 'a,
    {
        let records: Vec<&Record<V>> = records.collect();
        let lengths: Vec<u32> = records.iter().map(|record| record.value.bytes()).collect();
        let mut all = vec![RecordPlace(u64::MAX); records.len()];
        for page in pages_of(&lengths) {
            let places = self.write_page(group, page.iter().map(|at| records[*at].clone()).collect(), out);
            page.into_iter().zip(places).for_each(|(at, place)| all[at] = place);
        }
        all
    }

    /// Returns the places of the records.
    fn write_page(&mut self, group: usize, records: Vec<Record<V>>, out: &mut Vec<ServerOut<V>>) -> Vec<RecordPlace> {
        let page = Page { epoch: self.epoch, records };
        let extent = self.room(group, page.sectors(), ZoneKind::Records);
        let places = page.places(extent.sector).map(|(place, _)| place).collect();
        self.write_content(group, extent, Content::Page(Arc::new(page)), out);
        places
    }

    fn write_segment(&mut self, group: usize, member: &mut Member<V>, out: &mut Vec<ServerOut<V>>) {
        let (sequence, epoch) = (self.next_sequence(), self.epoch);
        let segment = member.segment.take().expect("a member without a segment is not dirty");
        let segment = Segment { sequence, epoch, settled: self.settled(), ..segment };
        let extent = self.room(group, segment.sectors(), ZoneKind::Segments);
        self.log.count_segment(extent, true);
        member.new = Some(SegmentPointer::new(extent, sequence));
        let segment = Arc::new(segment);
        member.written = Some(segment.clone());
        self.write_content(group, extent, Content::Segment(segment), out);
    }

    /// All segments of this epoch up to this sequence are whole on the device. What a failed group
    /// has left there never counts.
    fn settled(&self) -> Sequence {
        let is_written = |group: &Group<V>| matches!(group.step, Step::Writes | Step::Flush);
        let writing = self.groups.iter().filter(|(_, group)| is_written(group)).map(|(_, group)| group.before);
        writing.chain(self.failed_after).min().unwrap_or(self.sequence)
    }

    fn room(&mut self, group: usize, sectors: u32, kind: ZoneKind) -> Extent {
        let purpose = self.groups[group].room;
        match purpose {
            super::log::Purpose::Update => {
                self.counters.sectors_written += u64::from(sectors);
                self.since_compaction = self.since_compaction.saturating_add(sectors);
            }
            super::log::Purpose::Compaction => self.counters.sectors_moved += u64::from(sectors),
        }
        self.log.allocate(sectors, kind, purpose).expect("a group begins only with room for its worst case")
    }

    fn write_content(&mut self, group: usize, extent: Extent, content: Content<V>, out: &mut Vec<ServerOut<V>>) {
        self.groups[group].open += 1;
        let purpose = Purpose::Group { group, part: Part::Write { extent } };
        self.ask_flash(purpose, FlashOperation::Write { extent, content }, out);
    }

    pub(super) fn flush(&mut self, group: usize, out: &mut Vec<ServerOut<V>>) {
        self.groups[group].step = Step::Flush;
        self.groups[group].open = 1;
        self.ask_flash(Purpose::Group { group, part: Part::Flush }, FlashOperation::Flush, out);
    }

    /// The new places first and the slots after them: the other way round a reader could fill a
    /// slot from the old place behind our back.
    pub(super) fn publish(&mut self, now: Time, group: usize, out: &mut Vec<ServerOut<V>>) {
        self.groups[group].step = Step::Publish;
        self.groups[group].open = 0;
        if self.groups[group].failed {
            let before = self.groups[group].before;
            self.failed_after = Some(self.failed_after.map_or(before, |first| first.min(before)));
        } else {
            for member in 0..self.groups[group].members.len() {
                self.publish_member(group, member, out);
            }
        }
        if self.groups[group].open == 0 {
            self.end_group(now, group, out);
        }
    }

    fn publish_member(&mut self, group: usize, at: usize, out: &mut Vec<ServerOut<V>>) {
        let member = &self.groups[group].members[at];
        let Some(segment) = member.new else { return };
        let block = member.block;
        self.set_pointer(block, segment);
        self.groups[group].open += 1;
        let purpose = Purpose::Group { group, part: Part::Publish { member: at } };
        self.ask_memory(purpose, block, MemoryOperation::Publish { segment }, out);
    }

    fn published(&mut self, group: usize, at: usize, out: &mut Vec<ServerOut<V>>) {
        let Member { block, changed, .. } = &self.groups[group].members[at];
        if !changed.is_empty() && self.config.protocol == Protocol::Linearizable {
            self.read_block(group, at, *block, out);
        }
    }

    fn read_block(&mut self, group: usize, member: usize, block: u32, out: &mut Vec<ServerOut<V>>) {
        self.groups[group].open += 1;
        self.ask_memory(Purpose::Group { group, part: Part::Block { member } }, block, MemoryOperation::ReadBlock, out);
    }

    pub(super) fn group_memory(
        &mut self,
        now: Time,
        group: usize,
        part: Part,
        answer: MemoryAnswer<V>,
        out: &mut Vec<ServerOut<V>>,
    ) {
        self.groups[group].open -= 1;
        match (part, answer) {
            (Part::Publish { member }, MemoryAnswer::Done) => self.published(group, member, out),
            (Part::Block { member }, MemoryAnswer::Block(block)) => self.take_slots_away(group, member, &block, out),
            (Part::Swap { member, expected }, MemoryAnswer::Found(found)) => {
                self.slot_taken(group, member, found == expected, out)
            }
            (part, answer) => unreachable!("the server's own memory answers {part:?} with {answer:?}"),
        }
        if self.groups[group].open == 0 {
            self.end_group(now, group, out);
        }
    }

    /// Every slot that holds, or will hold, a key that may have changed. A slot of another key with
    /// the same fingerprint is lost for nothing.
    fn take_slots_away(&mut self, group: usize, at: usize, block: &Block<V>, out: &mut Vec<ServerOut<V>>) {
        let member = &self.groups[group].members[at];
        let stale = |word: &SlotWord| member.changed.iter().any(|fingerprint| word.is_of(*fingerprint));
        let words: Vec<(u8, SlotWord)> =
            (0u8..).zip(block.slots.iter().map(|slot| slot.word)).filter(|(_, word)| stale(word)).collect();
        let number = member.block;
        for (slot, expected) in &words {
            let purpose = Purpose::Group { group, part: Part::Swap { member: at, expected: *expected } };
            let operation = MemoryOperation::Swap { slot: *slot, expected: *expected, new: expected.free() };
            self.ask_memory(purpose, number, operation, out);
        }
        self.groups[group].open += words.len() as u32;
        self.groups[group].members[at].swaps = words.len() as u32;
        self.groups[group].members[at].late = false;
    }

    fn slot_taken(&mut self, group: usize, at: usize, taken: bool, out: &mut Vec<ServerOut<V>>) {
        self.counters.invalidations += u64::from(taken);
        self.counters.invalidation_retries += u64::from(!taken);
        let member = &mut self.groups[group].members[at];
        member.swaps -= 1;
        member.late |= !taken;
        if member.swaps == 0 && member.late {
            let block = member.block;
            self.read_block(group, at, block, out);
        }
    }

    fn end_group(&mut self, now: Time, group: usize, out: &mut Vec<ServerOut<V>>) {
        let Group { members, failed, room, .. } = self.groups.remove(group);
        for mut member in members {
            self.locked.remove(&member.block);
            self.account(&member, failed);
            if self.config.hand_over && !failed {
                self.keep(&mut member);
            }
            self.answer(member, failed, out);
        }
        match room {
            super::log::Purpose::Update => self.counters.groups += 1,
            super::log::Purpose::Compaction => self.moved(),
        }
        self.advance(now, out);
    }

    /// Keeps a segment in memory, as it now is on the device, where an update waits for it.
    fn keep(&mut self, member: &mut Member<V>) {
        let unchanged = member.segment.take().filter(|_| !member.dirty && member.old.is_some()).map(Arc::new);
        let segment = member.written.take().or(unchanged);
        if self.ring.iter().any(|update| update.block == member.block) {
            self.kept.extend(segment.map(|segment| (member.block, segment)));
        }
    }

    /// What was replaced is of no use any more; of a group that failed, what it wrote is not.
    fn account(&mut self, member: &Member<V>, failed: bool) {
        let Some(new) = member.new else { return };
        let (segment, records) = if failed { (Some(new), &member.placed) } else { (member.old, &member.dead) };
        if let Some(segment) = segment {
            self.log.count_segment(segment.extent, false);
        }
        for (place, bytes) in records {
            self.log.count_records(place.sector(), *bytes, 1, false);
        }
    }

    fn answer(&mut self, member: Member<V>, failed: bool, out: &mut Vec<ServerOut<V>>) {
        let updates = member.pending.into_iter().filter_map(|pending| match pending {
            Pending::Update(update) => Some(update),
            Pending::Move { .. } => None,
        });
        for (update, result) in updates.zip(member.results) {
            let result = if failed { RequestResult::Refused(Refusal::Device) } else { result };
            let is_done =
                matches!(result, RequestResult::Stored | RequestResult::Deleted { .. } | RequestResult::Taken { .. });
            self.counters.updates += u64::from(is_done);
            self.settle(update.client, update.number, result, out);
        }
    }
}
