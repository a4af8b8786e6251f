//! After a restart: the log is read, the newest whole segment of each block is its segment, and the
//! index begins anew in a later epoch.
//!
//! A segment counts only if all records that were written together with it are whole: of a group
//! that was cut off, some writes may be there and others not. What had been answered was all there,
//! since it was durable before it was published. So a later segment of the same epoch says up to
//! which sequence all was whole: what is not whole below has rotted since. It counts all the same:
//! its key stays listed, and reading it says so. The last groups of an epoch have no later segment
//! that speaks for them: of these alone, one that has rotted is taken for one that was cut off. (A
//! segment that has rotted itself is not missed: the one before it counts.) Nothing is answered
//! before the new epoch is on the device.

use super::{Purpose, Server, ServerConfig, ServerOut, log};
use crate::{
    BlockHeader, Content, FlashAnswer, FlashOperation, Item, Key, Length, MemoryOperation, Page, RecordPlace, Segment,
    SegmentPointer,
};
use crate::{Extent, Sequence, Value, record_bytes};
use base::Time;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// A segment with its sequence and its first sector.
type Found = (Sequence, u64, Arc<Segment>);

/// Segments of a block that are kept before those are looked for that cannot count any more.
const CANDIDATES: usize = 2;

/// Zones that are listed at a time: what is found in them waits in memory.
const LISTS: usize = 4;

/// Drops those that are older than one that was whole once: a log has many of each block.
fn drop_older(segments: &mut Vec<Found>, settled: &BTreeMap<u32, Sequence>) {
    let was_whole = |segment: &Segment| settled.get(&segment.epoch) >= Some(&segment.sequence);
    let newest = segments.iter().filter(|(_, _, segment)| was_whole(segment)).map(|(sequence, ..)| *sequence).max();
    segments.retain(|(sequence, ..)| Some(*sequence) >= newest);
}

/// What was found so far.
#[derive(Clone, Debug)]
pub(super) struct Recovery<V> {
    /// Answers that are to come.
    open: u32,
    /// Zones that are yet to be listed.
    zones: Range<u32>,
    step: Step,
    /// Segments of each block of this device that may count, in order of block.
    segments: Vec<Vec<Found>>,
    /// Records by place.
    records: BTreeMap<RecordPlace, (Key, Sequence)>,
    epoch: u32,
    /// By epoch: its segments up to this sequence were whole once.
    settled: BTreeMap<u32, Sequence>,
    values: PhantomData<V>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// No block can be read any more: what its pointer leads to may soon be something else.
    Close,
    Scan,
    Mark,
    Flush,
    /// The device failed: nothing can be answered.
    Failed,
}

impl<V> Recovery<V> {
    pub fn has_failed(&self) -> bool {
        self.step == Step::Failed
    }
}

impl<V: Value> Server<V> {
    /// A server that begins with what an earlier one left on the device.
    pub fn recover(config: ServerConfig, out: &mut Vec<ServerOut<V>>) -> Server<V> {
        let mut server = Server::new(config);
        for block in server.own_blocks() {
            server.ask_memory(Purpose::Recovery, block, MemoryOperation::Close, out);
        }
        let open = server.pointers.len() as u32;
        server.recovery = Some(Recovery {
            open,
            zones: 0..server.config.zones,
            step: Step::Close,
            segments: Vec::new(),
            records: BTreeMap::new(),
            epoch: 0,
            settled: BTreeMap::new(),
            values: PhantomData,
        });
        if open == 0 {
            server.scan(out);
        }
        server
    }

    fn own_blocks(&self) -> impl Iterator<Item = u32> + use<V> {
        (self.config.device..self.config.blocks).step_by(self.config.devices as usize)
    }

    /// Which of this device's blocks it is.
    fn own(&self, block: u32) -> Option<usize> {
        let is_own = block % self.config.devices == self.config.device;
        is_own.then_some((block / self.config.devices) as usize)
    }

    pub(super) fn recovery_memory(&mut self, out: &mut Vec<ServerOut<V>>) {
        let Some(recovery) = &mut self.recovery else { return };
        recovery.open -= 1;
        if recovery.open == 0 && recovery.step == Step::Close {
            self.scan(out);
        }
    }

    fn scan(&mut self, out: &mut Vec<ServerOut<V>>) {
        let Some(mut recovery) = self.recovery.take() else { return };
        recovery.step = Step::Scan;
        recovery.segments = vec![Vec::new(); self.pointers.len()];
        (0..LISTS).for_each(|_| self.list_next(&mut recovery, out));
        self.recovery = Some(recovery);
    }

    fn list_next(&mut self, recovery: &mut Recovery<V>, out: &mut Vec<ServerOut<V>>) {
        let Some(zone) = recovery.zones.next() else { return };
        recovery.open += 1;
        let extent = self.log.extent_of(zone);
        self.ask_flash(Purpose::Recovery, FlashOperation::List { extent }, out);
    }

    pub(super) fn recovery_flash(&mut self, now: Time, answer: FlashAnswer<V>, out: &mut Vec<ServerOut<V>>) {
        let Some(mut recovery) = self.recovery.take() else { return };
        recovery.open -= 1;
        match (recovery.step, answer) {
            (Step::Scan, FlashAnswer::Listed(found)) => {
                self.list_next(&mut recovery, out);
                found.into_iter().for_each(|(sector, content)| self.note(&mut recovery, sector, content));
                if recovery.open == 0 {
                    self.rebuild(&mut recovery);
                    self.mark(&mut recovery, out);
                }
                self.recovery = Some(recovery);
            }
            (Step::Mark, FlashAnswer::Done) => {
                recovery.step = Step::Flush;
                recovery.open = 1;
                self.recovery = Some(recovery);
                self.ask_flash(Purpose::Recovery, FlashOperation::Flush, out);
            }
            (Step::Flush, FlashAnswer::Done) => {
                self.reset_blocks(out);
                self.advance(now, out);
            }
            _ => self.recovery = Some(Recovery { step: Step::Failed, ..recovery }),
        }
    }

    fn note(&mut self, recovery: &mut Recovery<V>, sector: u64, content: Content<Length>) {
        self.log.found_used(self.log.zone_of(sector));
        let epoch = match content {
            Content::Segment(segment) => {
                self.sequence = self.sequence.max(segment.sequence);
                let epoch = segment.epoch;
                let settled = recovery.settled.entry(epoch).or_default();
                *settled = segment.settled.max(*settled);
                let at = self.own(segment.block);
                if let Some(of_block) = at.and_then(|at| recovery.segments.get_mut(at)) {
                    of_block.push((segment.sequence, sector, segment));
                    if of_block.len() > CANDIDATES {
                        drop_older(of_block, &recovery.settled);
                    }
                }
                epoch
            }
            Content::Page(page) => {
                for (place, record) in page.places(sector) {
                    self.sequence = self.sequence.max(record.sequence);
                    recovery.records.insert(place, (record.key, record.sequence));
                }
                page.epoch
            }
        };
        recovery.epoch = recovery.epoch.max(epoch);
    }

    fn rebuild(&mut self, recovery: &mut Recovery<V>) {
        self.epoch = recovery.epoch + 1;
        let all = std::mem::take(&mut recovery.segments);
        for (block, mut segments) in self.own_blocks().zip(all) {
            segments.sort_by_key(|(sequence, sector, _)| std::cmp::Reverse((*sequence, *sector)));
            let is_there = |item: &Item| recovery.records.get(&item.record) == Some(&(item.key, item.sequence));
            let lacks =
                |segment: &Segment| segment.items.iter().filter(|item| item.is_fresh && !is_there(item)).count();
            let was_whole = |segment: &Segment| recovery.settled.get(&segment.epoch) >= Some(&segment.sequence);
            let newest = segments.iter().find(|(_, _, segment)| lacks(segment) == 0 || was_whole(segment));
            if let Some((sequence, sector, segment)) = newest {
                self.counters.corrupt += lacks(segment) as u64;
                self.install_found(block, *sequence, *sector, segment);
            }
        }
        recovery.records = BTreeMap::new();
        self.log.reclaim_empty();
    }

    fn install_found(&mut self, block: u32, sequence: Sequence, sector: u64, segment: &Segment) {
        self.install_segment(block, SegmentPointer::new(Extent { sector, sectors: segment.sectors() }, sequence));
        for item in &segment.items {
            // Where nothing could be read there may be records all the same.
            self.log.found_used(self.log.zone_of(item.record.sector()));
            self.log.count_records(item.record.sector(), record_bytes(item.value_bytes), 1, true);
        }
    }

    fn install_segment(&mut self, block: u32, pointer: SegmentPointer) {
        self.set_pointer(block, pointer);
        self.log.count_segment(pointer.extent, true);
    }

    /// The server begins with a segment that is on the device already, and with the records that it
    /// lists: `records` of them, of `bytes` bytes together, in the zone of `sector`.
    pub fn install(&mut self, block: u32, pointer: SegmentPointer, sector: u64, records: u32, bytes: u32) {
        self.log.found_used(self.log.zone_of(pointer.extent.sector));
        self.log.found_used(self.log.zone_of(sector));
        self.install_segment(block, pointer);
        self.log.count_records(sector, bytes, records, true);
    }

    /// A page without records says which epoch has begun, so that no other restart begins the same
    /// one.
    fn mark(&mut self, recovery: &mut Recovery<V>, out: &mut Vec<ServerOut<V>>) {
        let page = Page { epoch: self.epoch, records: Vec::new() };
        let Some(extent) = self.log.allocate(page.sectors(), log::Kind::Records, log::Purpose::Compaction) else {
            recovery.step = Step::Failed;
            return;
        };
        self.log.written(extent);
        recovery.step = Step::Mark;
        recovery.open = 1;
        let operation = FlashOperation::Write { extent, content: Content::Page(Arc::new(page)) };
        self.ask_flash(Purpose::Recovery, operation, out);
    }

    fn reset_blocks(&mut self, out: &mut Vec<ServerOut<V>>) {
        for block in self.own_blocks() {
            let header = BlockHeader { epoch: self.epoch, segment: self.pointer(block) };
            self.ask_memory(Purpose::Nothing, block, MemoryOperation::Reset { header }, out);
        }
    }
}
