//! Changes of a segment: PUT, DELETE, and compare-and-swap.
//!
//! A change allocates room for its record and writes it, acquires the lock of its segment, reads
//! the segment, and writes it anew. When record and segment are written the index gets the new
//! place. Only then is the lock released and the call answered, so a reader of the index never sees
//! data that are not yet written. The next change of the segment gets it from memory with the lock.
//! After a write that failed it reads the device.

use super::{Holder, Operated, Server, check_length, item_of, record_in, segment_in};
use crate::baseline::leed::{CallResult, ServerOut};
use crate::{
    BUCKETS_MAX, Condition, Content, Expiry, FlashAnswer, FlashOperation, Item, Key, Operation, Page, Record, Refusal,
    RequestBody, RequestResult, Segment, SegmentPointer, VALUE_BYTES_MAX, Value, check_value,
};
use base::Time;
use std::sync::Arc;

/// An open change.
#[derive(Clone, Debug)]
pub(super) struct Update<V> {
    /// What it stores, if it does, and where: `None` while it waits for room.
    record: Option<NewRecord<V>>,
    /// The segment that it writes, once it is known.
    segment: Option<NewSegment>,
    /// The segment as it was when the lock was acquired, once it is known.
    listed: Option<Arc<Segment>>,
    /// Writes that have not ended, and whether one has failed.
    writes: u32,
    has_failed: bool,
    /// How it ends, where it does not store anything.
    result: Option<CallResult<V>>,
}

#[derive(Clone, Debug)]
struct NewRecord<V> {
    page: Arc<Page<V>>,
    position: Option<u64>,
}

#[derive(Clone, Debug)]
struct NewSegment {
    segment: Arc<Segment>,
    position: Option<u64>,
    /// What its writing leaves behind.
    replaced: Option<Item>,
    /// The result of the call.
    is_found: bool,
}

impl<V: Value> Server<V> {
    pub(super) fn start_update(&mut self, now: Time, work: usize, out: &mut Vec<ServerOut<V>>) {
        match self.claim_record(now, work) {
            Err(refusal) => self.answer(work, CallResult::Update(RequestResult::Refused(refusal)), out),
            Ok(record) => {
                let waits = record.is_some();
                self.works[work].update =
                    Some(Update { record, segment: None, listed: None, writes: 0, has_failed: false, result: None });
                if waits {
                    self.waiting_for_records.push_back(work);
                } else {
                    self.lock(self.works[work].segment, Holder::Work(work));
                }
            }
        }
    }

    /// The record that a change will write, if it does; room for it is claimed, though not yet
    /// found.
    fn claim_record(&mut self, now: Time, work: usize) -> Result<Option<NewRecord<V>>, Refusal> {
        let (key, value, time_to_live) = match &self.works[work].call.operation {
            Operation::Update(RequestBody::Put { key, value, time_to_live, .. }) => {
                (*key, value.clone(), *time_to_live)
            }
            Operation::Update(RequestBody::CompareAndSwap { key, new, .. }) => (*key, new.clone(), None),
            Operation::Update(RequestBody::Delete { .. }) | Operation::Get { .. } => return Ok(None),
            Operation::Update(RequestBody::Take { .. } | RequestBody::Expire { .. }) => {
                return Err(Refusal::NoOperation);
            }
        };
        check_value(&value, VALUE_BYTES_MAX)?;
        let expiry = time_to_live.map_or(Ok(Expiry(0)), |lifetime| Expiry::after(now, lifetime, 0))?;
        let record = Record { key, sequence: self.next_sequence(), expiry, value };
        let page = Page { epoch: 0, records: vec![record] };
        self.records.claim(page.sectors(), 0)?;
        Ok(Some(NewRecord { page: Arc::new(page), position: None }))
    }

    /// Finds room for the record of a change that waits for it; `false` while there is none.
    pub(super) fn place_record(&mut self, work: usize, out: &mut Vec<ServerOut<V>>) -> bool {
        let record = self.update(work).record.as_ref().expect("who waits for room has a record");
        let sectors = record.page.sectors();
        let Some(position) = self.records.log.append(sectors.into(), false) else { return false };
        self.update(work).record.as_mut().expect("it had one").position = Some(position);
        // What has a condition does not know yet whether it will write.
        let operation = &self.works[work].call.operation;
        if matches!(operation, Operation::Update(RequestBody::Put { condition: Condition::Always, .. })) {
            self.write_record(work, out);
        }
        self.lock(self.works[work].segment, Holder::Work(work));
        true
    }

    fn write_record(&mut self, work: usize, out: &mut Vec<ServerOut<V>>) {
        let record = self.update(work).record.clone().expect("it stores something");
        let position = record.position.expect("room was found before");
        let extent = self.records.extent(position, record.page.sectors());
        self.update(work).writes += 1;
        self.counters.writes += 1;
        let content = Content::Page(record.page);
        self.operate(Operated::UpdateWrite { work }, FlashOperation::Write { extent, content }, out);
    }

    pub(super) fn on_locked(
        &mut self,
        now: Time,
        work: usize,
        listed: Option<Arc<Segment>>,
        out: &mut Vec<ServerOut<V>>,
    ) {
        if let Some(listed) = listed {
            return self.on_listed(now, work, listed, out);
        }
        let segment = self.works[work].segment;
        match self.index.get(segment) {
            Some(pointer) => {
                let position = self.segments.log.begin_read(pointer.extent.sector);
                self.counters.reads += 1;
                self.read_segment(segment, pointer, Operated::UpdateSegment { work, position }, out);
            }
            None => self.on_listed(now, work, Arc::new(Segment::empty(self.block_of(segment))), out),
        }
    }

    pub(super) fn on_update_segment(
        &mut self,
        now: Time,
        work: usize,
        answer: FlashAnswer<V>,
        out: &mut Vec<ServerOut<V>>,
    ) {
        match segment_in(answer) {
            Ok(segment) => self.on_listed(now, work, segment, out),
            Err(refusal) => self.refuse(work, refusal, out),
        }
    }

    /// What the segment lists is known.
    fn on_listed(&mut self, now: Time, work: usize, listed: Arc<Segment>, out: &mut Vec<ServerOut<V>>) {
        self.update(work).listed = Some(Arc::clone(&listed));
        let Operation::Update(body) = &self.works[work].call.operation else { return };
        let key = *body.key();
        let found = listed.find(&key).filter(|item| !item.expiry.is_past(now, 0)).copied();
        match body {
            RequestBody::Put { condition: Condition::Always, .. } => self.list(work, &listed, out),
            RequestBody::Put { condition, .. } if condition.holds(found.is_some()) => {
                self.write_record(work, out);
                self.list(work, &listed, out);
            }
            RequestBody::Put { .. } => self.end_update(work, CallResult::Update(RequestResult::Unmet), out),
            RequestBody::Delete { .. } => self.unlist(work, &listed, key, found.is_some(), out),
            RequestBody::CompareAndSwap { .. } => self.compare(work, found, out),
            RequestBody::Take { .. } | RequestBody::Expire { .. } => self.refuse(work, Refusal::NoOperation, out),
        }
    }

    /// Lists the change's record in its segment.
    fn list(&mut self, work: usize, listed: &Segment, out: &mut Vec<ServerOut<V>>) {
        let record = self.update(work).record.clone().expect("it stores something");
        let sector = self.records.log.sector_of(record.position.expect("room was found before"));
        let mut segment = listed.clone();
        let replaced = segment.put(item_of(&record.page, sector));
        self.claim_segment(work, segment, replaced, true, out);
    }

    fn unlist(&mut self, work: usize, listed: &Segment, key: Key, is_found: bool, out: &mut Vec<ServerOut<V>>) {
        let mut segment = listed.clone();
        match segment.remove(&key) {
            Some(item) => self.claim_segment(work, segment, Some(item), is_found, out),
            None => self.end_update(work, CallResult::Update(RequestResult::Deleted { found: false }), out),
        }
    }

    fn compare(&mut self, work: usize, found: Option<Item>, out: &mut Vec<ServerOut<V>>) {
        match found {
            Some(item) => {
                let position = self.records.log.begin_read(item.record.sector());
                self.counters.reads += 1;
                self.operate(Operated::UpdateOldRecord { work, position }, FlashOperation::ReadRecord { item }, out);
            }
            None => self.on_compared(work, None, out),
        }
    }

    pub(super) fn on_old_record(&mut self, work: usize, answer: FlashAnswer<V>, out: &mut Vec<ServerOut<V>>) {
        match record_in(answer) {
            Ok(record) => self.on_compared(work, Some(record.value), out),
            Err(refusal) => self.refuse(work, refusal, out),
        }
    }

    fn on_compared(&mut self, work: usize, found: Option<V>, out: &mut Vec<ServerOut<V>>) {
        let Operation::Update(RequestBody::CompareAndSwap { expected, .. }) = &self.works[work].call.operation else {
            return;
        };
        if *expected != found {
            return self.end_update(work, CallResult::Update(RequestResult::Differs { found }), out);
        }
        let listed = self.update(work).listed.clone().expect("the segment was read");
        self.write_record(work, out);
        self.list(work, &listed, out);
    }

    /// Claims room for the new segment, and waits for it.
    fn claim_segment(
        &mut self,
        work: usize,
        mut segment: Segment,
        replaced: Option<Item>,
        is_found: bool,
        out: &mut Vec<ServerOut<V>>,
    ) {
        segment.sequence = self.next_sequence();
        let claimed = check_length(&segment).and_then(|()| self.segments.claim(segment.sectors(), BUCKETS_MAX));
        if let Err(refusal) = claimed {
            return self.refuse(work, refusal, out);
        }
        let segment = NewSegment { segment: Arc::new(segment), position: None, replaced, is_found };
        self.update(work).segment = Some(segment);
        self.waiting_for_segments.push_back(Holder::Work(work));
    }

    /// Finds room for the segment of a change that waits for it; `false` while there is none.
    pub(super) fn place_segment(&mut self, work: usize, out: &mut Vec<ServerOut<V>>) -> bool {
        let new = self.update(work).segment.clone().expect("who waits for room has a segment");
        let sectors = new.segment.sectors();
        let Some(position) = self.segments.log.append(sectors.into(), false) else { return false };
        let update = self.update(work);
        update.segment.as_mut().expect("it had one").position = Some(position);
        update.writes += 1;
        self.counters.writes += 1;
        let extent = self.segments.extent(position, sectors);
        let content = Content::Segment(new.segment);
        self.operate(Operated::UpdateWrite { work }, FlashOperation::Write { extent, content }, out);
        true
    }

    pub(super) fn on_written(&mut self, work: usize, answer: FlashAnswer<V>, out: &mut Vec<ServerOut<V>>) {
        let update = self.update(work);
        update.writes -= 1;
        update.has_failed |= answer != FlashAnswer::Done;
        self.conclude(work, out);
    }

    /// Abandons a change before it writes its segment.
    pub(super) fn refuse(&mut self, work: usize, refusal: Refusal, out: &mut Vec<ServerOut<V>>) {
        self.counters.corrupt += u64::from(refusal == Refusal::Corrupt);
        self.end_update(work, CallResult::Update(RequestResult::Refused(refusal)), out);
    }

    /// Abandons a change without room for its record, before it requests its lock.
    pub(super) fn refuse_unlocked(&mut self, work: usize, refusal: Refusal, out: &mut Vec<ServerOut<V>>) {
        let update = self.works[work].update.take().expect("a change on its way");
        self.abandon(update.record, update.segment);
        self.answer(work, CallResult::Update(RequestResult::Refused(refusal)), out);
    }

    fn end_update(&mut self, work: usize, result: CallResult<V>, out: &mut Vec<ServerOut<V>>) {
        self.update(work).result = Some(result);
        self.conclude(work, out);
    }

    /// Ends a change of which everything is written, or which is given up and writes no more.
    fn conclude(&mut self, work: usize, out: &mut Vec<ServerOut<V>>) {
        let update = self.update(work);
        let is_written = update.segment.as_ref().is_some_and(|new| new.position.is_some());
        if update.writes > 0 || (update.result.is_none() && !is_written) {
            return;
        }
        let update = self.works[work].update.take().expect("a change on its way");
        let segment = self.works[work].segment;
        let failed = update.has_failed.then_some(CallResult::Update(RequestResult::Refused(Refusal::Device)));
        let is_failed = failed.is_some();
        let (result, listed) = match failed.or(update.result) {
            Some(result) => {
                self.abandon(update.record, update.segment);
                (result, update.listed.filter(|_| !is_failed))
            }
            None => {
                let new = update.segment.expect("it was written");
                let listed = Arc::clone(&new.segment);
                (self.commit(work, update.record, new), Some(listed))
            }
        };
        self.answer(work, result, out);
        self.unlock(segment, listed);
    }

    fn commit(&mut self, work: usize, record: Option<NewRecord<V>>, new: NewSegment) -> CallResult<V> {
        if let Some(position) = record.and_then(|record| record.position) {
            self.records.log.known(position);
        }
        self.publish(self.works[work].segment, &new.segment, new.position.expect("it was written"));
        if let Some(item) = new.replaced {
            self.records.live -= u64::from(item.record.extent(item.value_bytes).sectors);
        }
        match &self.works[work].call.operation {
            Operation::Update(RequestBody::Delete { .. }) => {
                CallResult::Update(RequestResult::Deleted { found: new.is_found })
            }
            _ => CallResult::Update(RequestResult::Stored),
        }
    }

    /// Puts the index onto a segment that has been written, or onto nothing where it lists nothing.
    pub(super) fn publish(&mut self, segment: u32, new: &Segment, position: u64) {
        self.segments.log.known(position);
        if let Some(old) = self.index.get(segment) {
            self.segments.live -= u64::from(old.extent.sectors);
        }
        let extent = self.segments.extent(position, new.sectors());
        if new.items.is_empty() {
            self.segments.live -= u64::from(extent.sectors);
            return self.index.set(segment, None);
        }
        self.index.set(segment, Some(SegmentPointer::new(extent, new.sequence)));
    }

    /// What was taken for a change that did not happen is of no use.
    fn abandon(&mut self, record: Option<NewRecord<V>>, new: Option<NewSegment>) {
        if let Some(record) = record {
            self.records.live -= u64::from(record.page.sectors());
            record.position.inspect(|position| self.records.log.known(*position));
        }
        if let Some(new) = new {
            self.segments.live -= u64::from(new.segment.sectors());
            new.position.inspect(|position| self.segments.log.known(*position));
        }
    }

    fn update(&mut self, work: usize) -> &mut Update<V> {
        self.works[work].update.as_mut().expect("a change on its way")
    }
}
