//! Group commit: from updates in the ring to answers.

use super::log::{Purpose as Room, Row, Rows};
use super::{Part, Pending, Purpose, Server, ServerOut, Update};
use crate::{
    Extent, FlashAnswer, FlashOperation, Item, Key, Record, RecordPlace, Refusal, RequestBody, RequestResult,
    SECTOR_BYTES, Segment, SegmentPointer, Sequence, VALUE_BYTES_MAX, Value, page_sectors, record_bytes,
};
use base::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Records in a page at most: what fits 4 KiB with values of the longest kind.
pub(super) const PAGE_RECORDS_MAX: usize = 36;
/// Sectors of such a page.
pub(super) const PAGE_SECTORS_MAX: u32 = 8;

/// Sectors of a page of longer values at most, unless it has one record alone. When they move, each
/// page but the last is half full, so the padding of its last sector is little.
pub const LONG_PAGE_SECTORS_MAX: u32 = 32;

/// Sectors of the record's own page, if it does not share one with short values.
fn long_sectors(value_bytes: u32) -> u32 {
    if value_bytes > VALUE_BYTES_MAX { page_sectors(value_bytes) } else { 0 }
}

/// Sectors that may stay empty at the end of a zone because the next page is longer. Pages of short
/// values do not count: a zone has room for many.
pub(super) fn tail_sectors(config: &super::ServerConfig) -> u32 {
    long_sectors(config.value_bytes_max)
}

/// The longest page of a store.
pub(super) fn longest_page(config: &super::ServerConfig) -> u32 {
    match tail_sectors(config) {
        0 => PAGE_SECTORS_MAX,
        tail => tail.max(LONG_PAGE_SECTORS_MAX),
    }
}

/// Pages of records of these lengths, in the worst case.
fn pages_at_worst(values: impl Iterator<Item = u32>) -> Row {
    let mut short = 0usize;
    let mut long = Row::default();
    for bytes in values {
        match long_sectors(bytes) {
            0 => short += 1,
            sectors => long = long.and(Row::of([sectors].into_iter())),
        }
    }
    let short = Row::of((0..short.div_ceil(PAGE_RECORDS_MAX)).map(|_| PAGE_SECTORS_MAX));
    // Long records share pages, which take no more than one page for each, but are longer.
    let longest = if long.count > 1 { LONG_PAGE_SECTORS_MAX.max(long.longest) } else { long.longest };
    short.and(Row { longest, ..long })
}

/// Which records, of these lengths, share a page: short values with short ones.
pub(super) fn pages_of(values: &[u32]) -> Vec<Vec<usize>> {
    let mut pages: Vec<Vec<usize>> = Vec::new();
    for is_long in [false, true] {
        let most = if is_long { LONG_PAGE_SECTORS_MAX } else { PAGE_SECTORS_MAX } * SECTOR_BYTES;
        let mut bytes = most;
        let mut records = PAGE_RECORDS_MAX;
        for (at, value) in values.iter().enumerate().filter(|(_, value)| (long_sectors(**value) > 0) == is_long) {
            bytes += record_bytes(*value);
            records += 1;
            if bytes > most || records > PAGE_RECORDS_MAX {
                pages.push(Vec::new());
                (bytes, records) = (crate::PAGE_HEADER_BYTES + record_bytes(*value), 1);
            }
            pages.last_mut().expect("a page was begun").push(at);
        }
    }
    pages
}

/// One segment of a group.
#[derive(Clone, Debug)]
pub(super) struct Member<V> {
    pub block: u32,
    pub pending: Vec<Pending<V>>,
    pub old: Option<SegmentPointer>,
    /// As it was read, then as it will be.
    pub segment: Option<Segment>,
    /// Records of its puts, in their order, with the places to which they are being written.
    pub early: VecDeque<(RecordPlace, Record<V>)>,
    /// Records that are listed or were read for it: what is under a key, or that it cannot be read.
    pub known: BTreeMap<Key, Result<Record<V>, Refusal>>,
    /// Records to be written for it with its segment: what a compare-and-swap stores, and what
    /// moves.
    pub fresh: Vec<Record<V>>,
    /// What is of no use any more once it is published: place and length of a record.
    pub dead: Vec<(RecordPlace, u32)>,
    /// Fingerprints of keys whose values have changed.
    pub changed: Vec<u16>,
    /// Where the new segment lies.
    pub new: Option<SegmentPointer>,
    /// Compare-and-swaps on its slots: the number in flight, and whether one failed.
    pub swaps: u32,
    pub late: bool,
    pub results: Vec<RequestResult<V>>,
    pub refused: Option<Refusal>,
    /// Whether its segment has to be written.
    pub dirty: bool,
    /// What was written.
    pub written: Option<Arc<Segment>>,
    /// Places and lengths of new records that it has listed.
    pub placed: Vec<(RecordPlace, u32)>,
}

/// Updates of several segments that are committed at once.
#[derive(Clone, Debug)]
pub(super) struct Group<V> {
    pub members: Vec<Member<V>>,
    /// Answers that its step waits for.
    pub open: u32,
    pub step: Step,
    pub failed: bool,
    /// The last sequence before those that it writes.
    pub before: Sequence,
    pub room: Room,
    /// What it has yet to write, in the worst case.
    pub promised: Rows,
    /// Pages of puts that are being written, and those that are. The log takes them for being
    /// written until segments list their records: nothing else keeps their zones.
    pub early_open: u32,
    pub early_done: Vec<Extent>,
}

/// What a group does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Segments,
    Records,
    Writes,
    Flush,
    Publish,
}

impl<V: Value> Server<V> {
    /// Returns the time at which the oldest update in the ring has waited long enough.
    pub(super) fn group_due(&self) -> Option<Time> {
        if self.recovery.is_some() || self.groups.len() >= self.config.groups_max as usize {
            return None;
        }
        let free = self.ring.iter().find(|update| !self.locked.contains(&update.block))?;
        // Without room there is nothing to wait for but compaction.
        self.has_room_for_updates().then_some(free.came + self.config.group_wait)
    }

    /// Takes what can be committed together out of the ring, if that is a full group or has waited
    /// long enough.
    pub(super) fn form_group(&mut self, now: Time, out: &mut Vec<ServerOut<V>>) -> bool {
        let most = self.config.group_updates as usize;
        let is_due = match self.group_due() {
            None => false,
            Some(due) => due <= now || self.next_updates().count() == most,
        };
        if is_due {
            let (_, later) = self.rows_of_updates();
            let taken = self.take_updates(self.next_updates().count());
            self.begin_group(now, taken, later, Room::Update, out);
        }
        is_due
    }

    /// Returns the updates of the next group.
    fn next_updates(&self) -> impl Iterator<Item = &Update<V>> {
        let free = self.ring.iter().filter(|update| !self.locked.contains(&update.block));
        let mut sectors = 0;
        let fits = move |update: &&Update<V>| {
            let is_first = sectors == 0;
            sectors += update.value().map_or(0, |value| long_sectors(value.bytes()));
            is_first || sectors <= self.config.zone_sectors / 2
        };
        free.take(self.config.group_updates as usize).take_while(fits)
    }

    /// What a group writes at once and what later: each update in a segment of its own that grows,
    /// and records of the longest kind.
    fn rows_of_updates(&self) -> (Rows, Rows) {
        let grown = |update: &Update<V>| self.pointer(update.block).map_or(1, |pointer| pointer.extent.sectors + 1);
        let bytes = |is_put: bool| {
            let of_kind = self.next_updates().filter(move |update| update.is_put() == is_put);
            pages_at_worst(of_kind.filter_map(|update| update.value()).map(Value::bytes))
        };
        let at_once = Rows { pages: bytes(true), ..Rows::default() };
        (at_once, Rows { segments: Row::of(self.next_updates().map(grown)), pages: bytes(false) })
    }

    fn has_room_for_updates(&self) -> bool {
        let (at_once, later) = self.rows_of_updates();
        self.has_room(at_once.and(later), Room::Update)
    }

    /// Room beside the data that groups in flight have yet to write.
    pub(super) fn has_room(&self, rows: Rows, purpose: Room) -> bool {
        let promised = self.groups.iter().map(|(_, group)| group.promised).fold(Rows::default(), Rows::and);
        self.log.has_room(rows.and(promised), purpose)
    }

    /// Returns whether updates wait for nothing but room.
    pub(super) fn lacks_room(&self) -> bool {
        !self.ring.is_empty() && !self.has_room_for_updates()
    }

    fn take_updates(&mut self, most: usize) -> Vec<(u32, Pending<V>)> {
        let mut taken = Vec::with_capacity(most);
        let mut left = std::collections::VecDeque::with_capacity(self.ring.len());
        for update in self.ring.drain(..) {
            if taken.len() < most && !self.locked.contains(&update.block) {
                taken.push((update.block, Pending::Update(update)));
            } else {
                left.push_back(update);
            }
        }
        self.ring = left;
        taken
    }

    pub(super) fn begin_group(
        &mut self,
        now: Time,
        pending: Vec<(u32, Pending<V>)>,
        promised: Rows,
        room: Room,
        out: &mut Vec<ServerOut<V>>,
    ) {
        let mut by_block: BTreeMap<u32, Vec<Pending<V>>> = BTreeMap::new();
        for (block, pending) in pending {
            by_block.entry(block).or_default().push(pending);
        }
        let members: Vec<Member<V>> =
            by_block.into_iter().map(|(block, pending)| self.member(block, pending)).collect();
        self.locked.extend(members.iter().map(|member| member.block));
        let (step, before) = (Step::Segments, Sequence::default());
        let (early_open, early_done) = (0, Vec::new());
        let group = Group { members, open: 0, step, failed: false, before, room, promised, early_open, early_done };
        let group = self.groups.insert(group);
        self.write_puts(group, out);
        self.read_segments(group, out);
        if self.groups[group].open == 0 {
            self.read_records(now, group, out);
        }
    }

    /// Reads those that are not in memory.
    fn read_segments(&mut self, group: usize, out: &mut Vec<ServerOut<V>>) {
        let missing = |(at, member): (usize, &Member<V>)| {
            let pointer = member.old.filter(|_| member.segment.is_none())?;
            Some((at, FlashOperation::ReadSegment { block: member.block, pointer }))
        };
        let reads: Vec<_> = self.groups[group].members.iter().enumerate().filter_map(missing).collect();
        self.groups[group].open = reads.len() as u32;
        for (member, operation) in reads {
            self.ask_flash(Purpose::Group { group, part: Part::Segment { member } }, operation, out);
        }
    }

    fn member(&mut self, block: u32, pending: Vec<Pending<V>>) -> Member<V> {
        let old = self.pointer(block);
        let (epoch, none) = (self.epoch, Sequence::default());
        let empty = || Segment { block, epoch, sequence: none, settled: none, items: Vec::new() };
        let kept = self.kept.remove(&block);
        self.counters.handed_over += u64::from(kept.is_some());
        Member {
            block,
            pending,
            old,
            segment: kept.map(settled).or_else(|| old.is_none().then(empty)),
            early: VecDeque::new(),
            known: BTreeMap::new(),
            fresh: Vec::new(),
            dead: Vec::new(),
            changed: Vec::new(),
            new: None,
            swaps: 0,
            late: false,
            results: Vec::new(),
            refused: None,
            dirty: false,
            written: None,
            placed: Vec::new(),
        }
    }

    pub(super) fn group_flash(
        &mut self,
        now: Time,
        group: usize,
        part: Part,
        answer: FlashAnswer<V>,
        out: &mut Vec<ServerOut<V>>,
    ) {
        match part {
            Part::Segment { member } => self.segment_came(group, member, answer),
            Part::Record { member, item } => self.record_came(group, member, item, answer),
            Part::Write { extent } => {
                self.groups[group].failed |= answer != FlashAnswer::Done;
                if matches!(self.groups[group].step, Step::Segments | Step::Records) {
                    self.groups[group].early_open -= 1;
                    return self.groups[group].early_done.push(extent);
                }
                self.log.written(extent);
            }
            Part::Flush => self.groups[group].failed |= answer != FlashAnswer::Done,
            Part::Publish { .. } | Part::Block { .. } | Part::Swap { .. } => return,
        }
        self.groups[group].open -= 1;
        if self.groups[group].open > 0 {
            return;
        }
        match self.groups[group].step {
            Step::Segments => self.read_records(now, group, out),
            Step::Records => self.write(now, group, out),
            Step::Writes if self.config.volatile_cache && !self.groups[group].failed => self.flush(group, out),
            Step::Writes | Step::Flush => self.publish(now, group, out),
            Step::Publish => {}
        }
    }

    fn segment_came(&mut self, group: usize, member: usize, answer: FlashAnswer<V>) {
        let member = &mut self.groups[group].members[member];
        let pointer = member.old.expect("only what has a pointer is read");
        let whole = match answer {
            FlashAnswer::Segment(read) => read
                .and_then(|segment| pointer.check(member.block, &segment).map(|()| segment))
                .map_err(|_| Refusal::Corrupt),
            _ => Err(Refusal::Device),
        };
        match whole {
            Ok(segment) => member.segment = Some(settled(segment)),
            Err(refusal) => {
                self.counters.corrupt += u64::from(refusal == Refusal::Corrupt);
                member.refused = Some(refusal);
            }
        }
    }

    fn record_came(&mut self, group: usize, member: usize, item: Item, answer: FlashAnswer<V>) {
        let whole = match answer {
            FlashAnswer::Record(read) => {
                read.and_then(|record| item.check(&record).map(|()| record)).map_err(|_| Refusal::Corrupt)
            }
            _ => Err(Refusal::Device),
        };
        self.counters.corrupt += u64::from(whole == Err(Refusal::Corrupt));
        self.groups[group].members[member].known.insert(item.key, whole);
    }

    /// Reads the records that have to be known: what a compare-and-swap compares, what is taken,
    /// and what moves.
    fn read_records(&mut self, now: Time, group: usize, out: &mut Vec<ServerOut<V>>) {
        self.groups[group].step = Step::Records;
        let mut wanted: Vec<(usize, Item)> = Vec::new();
        for (at, member) in self.groups[group].members.iter().enumerate() {
            wanted.extend(self.needed(member).into_iter().map(|item| (at, item)));
        }
        self.groups[group].open = wanted.len() as u32;
        for (member, item) in &wanted {
            let purpose = Purpose::Group { group, part: Part::Record { member: *member, item: *item } };
            self.ask_flash(purpose, FlashOperation::ReadRecord { item: *item }, out);
        }
        if wanted.is_empty() {
            self.write(now, group, out);
        }
    }

    fn needed(&self, member: &Member<V>) -> Vec<Item> {
        let Some(segment) = &member.segment else { return Vec::new() };
        let mut items: Vec<Item> = Vec::new();
        for pending in &member.pending {
            match pending {
                Pending::Update(Update {
                    body: RequestBody::CompareAndSwap { key, .. } | RequestBody::Take { key },
                    ..
                }) => items.extend(segment.find(key)),
                Pending::Update(_) => {}
                Pending::Move { zone } => {
                    items.extend(segment.items.iter().filter(|item| self.log.zone_of(item.record.sector()) == *zone))
                }
            }
        }
        items.sort_by_key(|item| item.key);
        items.dedup_by_key(|item| item.key);
        items
    }
}

/// A segment that is published: its records are on the device.
fn settled(segment: Arc<Segment>) -> Segment {
    let mut segment = Arc::unwrap_or_clone(segment);
    segment.items.iter_mut().for_each(|item| item.is_fresh = false);
    segment
}
