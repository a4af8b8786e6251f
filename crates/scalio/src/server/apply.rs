//! What a group does to one segment, before anything of it is written.

use super::group::Member;
use super::{Pending, Server, Update};
use crate::{
    Expiry, Item, Key, Record, RecordPlace, Refusal, RequestBody, RequestResult, SEGMENT_ITEMS_MAX, Value,
    listed_bytes, record_bytes,
};
use base::Time;

/// Where the record of an item will lie is known when it is written: with the segment, unless it is
/// a put's.
const UNPLACED: RecordPlace = RecordPlace(u64::MAX);

impl<V: Value> Server<V> {
    /// Carries out all that is pending for a segment, in the order in which it came.
    pub(super) fn apply(&mut self, now: Time, member: &mut Member<V>) {
        forget_expired(now, self.config.start_second, member);
        for pending in std::mem::take(&mut member.pending) {
            match &pending {
                Pending::Update(update) => {
                    let result = self.apply_update(now, member, update);
                    member.results.push(result);
                }
                Pending::Move { zone } => self.apply_move(member, *zone),
            }
            member.pending.push(pending);
        }
    }

    fn apply_update(&mut self, now: Time, member: &mut Member<V>, update: &Update<V>) -> RequestResult<V> {
        if let Some(refusal) = member.refused {
            return RequestResult::Refused(refusal);
        }
        match &update.body {
            RequestBody::Put { key, condition, .. } => {
                let (place, record) = member.early.pop_front().expect("the record of a put is written first");
                // What has expired was forgotten before.
                let segment = member.segment.as_ref().expect("a member without a segment is refused");
                if !condition.holds(segment.find(key).is_some()) {
                    return RequestResult::Unmet;
                }
                self.apply_put(member, record, Some(place))
            }
            RequestBody::Delete { key } => {
                let found = self.take_out(member, key);
                RequestResult::Deleted { found }
            }
            RequestBody::Take { key } => match current(now, self.config.start_second, member, key) {
                Err(refusal) => RequestResult::Refused(refusal),
                Ok(found) => {
                    self.take_out(member, key);
                    RequestResult::Taken { found }
                }
            },
            RequestBody::Expire { key, .. } => self.apply_expiry(member, key, update.expiry),
            RequestBody::CompareAndSwap { key, expected, new } => {
                match current(now, self.config.start_second, member, key) {
                    Err(refusal) => RequestResult::Refused(refusal),
                    Ok(found) if found == *expected => {
                        let (sequence, expiry) = (self.next_sequence(), Expiry::default());
                        self.apply_put(member, Record { key: *key, sequence, expiry, value: new.clone() }, None)
                    }
                    Ok(found) => RequestResult::Differs { found },
                }
            }
        }
    }

    /// Lists a record, which is at `place` already or has yet to be written.
    fn apply_put(&mut self, member: &mut Member<V>, record: Record<V>, place: Option<RecordPlace>) -> RequestResult<V> {
        let key = record.key;
        let segment = member.segment.as_ref().expect("a member without a segment is refused");
        let listed = segment.find(&key).map(|item| record_bytes(item.value_bytes));
        if listed.is_none() && segment.items.len() >= SEGMENT_ITEMS_MAX as usize {
            return RequestResult::Refused(Refusal::SegmentFull { most: SEGMENT_ITEMS_MAX });
        }
        let (live, capacity) = (self.log.live(), self.log.capacity());
        let bytes = record_bytes(record.value.bytes());
        let more = u64::from(bytes.saturating_sub(listed.unwrap_or(0)));
        if more > 0 && live + more > capacity {
            return RequestResult::Refused(Refusal::Full { live, capacity });
        }
        if let Some(place) = place {
            self.log.count_records(place.sector(), bytes, 1, true);
            member.placed.push((place, bytes));
        }
        self.put_in(member, record, place);
        self.note_change(member, &key);
        RequestResult::Stored
    }

    /// What a slot holds has the older expiry, so it counts as changed. Nothing changes where what
    /// is kept for ever is to be kept so.
    fn apply_expiry(&self, member: &mut Member<V>, key: &Key, expiry: Expiry) -> RequestResult<V> {
        let segment = member.segment.as_mut().expect("a member without a segment is refused");
        let Some(item) = segment.find_mut(key) else { return RequestResult::Unmet };
        if item.expiry == expiry && expiry == Expiry::default() {
            return RequestResult::Unmet;
        }
        item.expiry = expiry;
        member.dirty = true;
        self.note_change(member, key);
        RequestResult::Stored
    }

    /// Lists a record instead of what was listed under its key; without a place it is yet to be
    /// written.
    fn put_in(&self, member: &mut Member<V>, record: Record<V>, place: Option<RecordPlace>) {
        let item = Item {
            key: record.key,
            record: place.unwrap_or(UNPLACED),
            sequence: record.sequence,
            value_bytes: listed_bytes(record.value.bytes()),
            expiry: record.expiry,
            is_fresh: true,
        };
        let segment = member.segment.as_mut().expect("a member without a segment is refused");
        if let Some(replaced) = segment.put(item) {
            drop_record(member, &replaced);
        }
        match place {
            Some(_) => drop(member.known.insert(record.key, Ok(record))),
            None => member.fresh.push(record),
        }
        member.dirty = true;
    }

    fn take_out(&self, member: &mut Member<V>, key: &Key) -> bool {
        let segment = member.segment.as_mut().expect("a member without a segment is refused");
        let Some(removed) = segment.remove(key) else { return false };
        drop_record(member, &removed);
        member.dirty = true;
        self.note_change(member, key);
        true
    }

    fn note_change(&self, member: &mut Member<V>, key: &Key) {
        member.changed.push(key.place(self.config.blocks).fingerprint);
    }

    /// Moves records, and the segment itself, out of a zone. A record that cannot be read keeps its
    /// zone from being used again.
    fn apply_move(&mut self, member: &mut Member<V>, zone: u32) {
        let Some(segment) = &member.segment else { return self.log.keep(zone) };
        let within = |item: &&Item| item.record != UNPLACED && self.log.zone_of(item.record.sector()) == zone;
        let moving: Vec<Item> = segment.items.iter().filter(within).copied().collect();
        member.dirty |= member.old.is_some_and(|pointer| self.log.zone_of(pointer.extent.sector) == zone);
        for item in moving {
            match member.known.get(&item.key) {
                // How long it is kept may have changed since it was written.
                Some(Ok(record)) if record.sequence == item.sequence => {
                    let record = Record { expiry: item.expiry, ..record.clone() };
                    self.put_in(member, record, None)
                }
                _ => self.log.keep(zone),
            }
        }
    }
}

/// What is under a key before the next update.
fn current<V: Value>(now: Time, start_second: u32, member: &Member<V>, key: &Key) -> Result<Option<V>, Refusal> {
    let segment = member.segment.as_ref().expect("a member without a segment is refused");
    let Some(item) = segment.find(key).filter(|item| !item.expiry.is_past(now, start_second)) else { return Ok(None) };
    if let Some(fresh) = member.fresh.iter().find(|record| record.key == *key) {
        return Ok(Some(fresh.value.clone()));
    }
    match member.known.get(key) {
        Some(Ok(record)) if record.sequence == item.sequence => Ok(Some(record.value.clone())),
        Some(Err(refusal)) => Err(*refusal),
        _ => Err(Refusal::Corrupt),
    }
}

/// What is listed no more: on flash it is dead, and what was not yet written need not be.
fn drop_record<V>(member: &mut Member<V>, item: &Item) {
    if item.record == UNPLACED {
        member.fresh.retain(|record| record.key != item.key);
    } else {
        member.dead.push((item.record, record_bytes(item.value_bytes)));
    }
}

fn forget_expired<V>(now: Time, start_second: u32, member: &mut Member<V>) {
    let Some(segment) = member.segment.as_mut() else { return };
    let is_past = |item: &Item| item.expiry.is_past(now, start_second);
    let (expired, kept): (Vec<Item>, Vec<Item>) = segment.items.drain(..).partition(is_past);
    segment.items = kept;
    member.dirty |= !expired.is_empty();
    expired.iter().for_each(|item| drop_record(member, item));
}
