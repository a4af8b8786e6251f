//! After a restart: segments are read, the newest whole one of each block is its segment, and the
//! index begins anew in a later epoch.
//!
//! Zones of records are not read: their first sector says what they are. It tells the truth, since
//! a zone is forgotten as a whole before it is filled anew. Where it says nothing (the first write
//! to the zone was cut off, or has rotted), all of the zone is listed.
//!
//! A segment counts only if all records that were written together with it are whole: of a group
//! that was cut off, some writes may be there and others not. What had been answered was all there,
//! since it was durable before it was published. So a later segment of the same epoch says up to
//! which sequence all was whole: what is not whole below has rotted since. It counts all the same:
//! its key stays listed, and reading it says so. The last groups of an epoch have no later segment
//! that speaks for them: of these alone, records are read, and one that has rotted is taken for one
//! that was cut off. (A segment that has rotted itself is not missed: the one before it counts.)
//!
//! Nothing is answered before the new epoch is on the device: its mark is a page without records,
//! in a zone of segments. Zones without anything of use are forgotten before, but for the one that
//! says which epoch was the last: a restart that is cut off here begins that epoch once.

use super::{Purpose, Server, ServerConfig, ServerOut, log};
use crate::{
    BlockHeader, Content, Extent, FlashAnswer, FlashOperation, Item, Length, MemoryOperation, Page, RecordPlace,
    Segment, SegmentPointer, Sequence, Value, ZoneKind, record_bytes,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A segment with its sequence and its first sector.
type Found = (Sequence, u64, Arc<Segment>);

/// Segments of a block that are kept before those are looked for that cannot count any more.
const CANDIDATES: usize = 2;

/// What the device is asked at a time: what is found waits in memory.
const ASKS: usize = 4;

/// Sequences of records that no segment lists are below the newest one that was read and this.
const UNLISTED_MAX: u64 = 1 << 16;

/// What the device is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    /// Of which kind a zone is.
    Kind { zone: u32 },
    /// All that is whole in a zone.
    List { zone: u32 },
    /// Whether a record was written.
    Record { item: Item },
    /// To forget a zone.
    Trim { zone: u32 },
    /// To write the mark of the new epoch.
    Mark { extent: Extent },
    /// To make that durable.
    Flush,
}

/// What was found so far.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    step: Step,
    /// What the device is yet to be asked in this step, and answers that are to come.
    asks: VecDeque<Ask>,
    open: usize,
    /// Segments of each block of this device that may count, in order of block.
    segments: Vec<Vec<Found>>,
    /// Fresh records that were read and are whole.
    whole: BTreeSet<(RecordPlace, Sequence)>,
    /// The last epoch, and a zone that says so.
    epoch: u32,
    epoch_zone: Option<u32>,
    /// By epoch: its segments up to this sequence were whole once.
    settled: BTreeMap<u32, Sequence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// No block can be read any more: what its pointer leads to may soon be something else.
    Close,
    /// Segments are read.
    Read,
    /// Records of segments that nobody speaks for are read.
    Check,
    /// Zones without anything of use are forgotten.
    Trim,
    Mark,
    Flush,
    /// The device failed: nothing can be answered.
    Failed,
}

impl Recovery {
    fn new(blocks: usize) -> Recovery {
        Recovery {
            step: Step::Close,
            asks: VecDeque::new(),
            open: blocks,
            segments: vec![Vec::new(); blocks],
            whole: BTreeSet::new(),
            epoch: 0,
            epoch_zone: None,
            settled: BTreeMap::new(),
        }
    }

    pub fn has_failed(&self) -> bool {
        self.step == Step::Failed
    }

    /// Whether a later segment speaks for this one.
    fn is_settled(&self, segment: &Segment) -> bool {
        self.settled.get(&segment.epoch) >= Some(&segment.sequence)
    }

    fn note_epoch(&mut self, epoch: u32, zone: u32) {
        if self.epoch_zone.is_none() || epoch > self.epoch {
            (self.epoch, self.epoch_zone) = (epoch, Some(zone));
        }
    }

    /// Keeps a segment of the block at `at`, and drops those that are older than one that was whole
    /// once: a log has many of each block.
    fn keep(&mut self, at: usize, found: Found) {
        let mut of_block = std::mem::take(&mut self.segments[at]);
        of_block.push(found);
        if of_block.len() > CANDIDATES {
            self.drop_older(&mut of_block);
        }
        self.segments[at] = of_block;
    }

    fn drop_older(&self, segments: &mut Vec<Found>) {
        let settled = segments.iter().filter(|(_, _, segment)| self.is_settled(segment));
        let newest = settled.map(|(sequence, ..)| *sequence).max();
        segments.retain(|(sequence, ..)| Some(*sequence) >= newest);
    }

    /// The records that decide whether a segment counts.
    fn doubtful(&mut self) -> VecDeque<Ask> {
        let mut all = std::mem::take(&mut self.segments);
        all.iter_mut().for_each(|segments| self.drop_older(segments));
        let unsettled = all.iter().flatten().filter(|(_, _, segment)| !self.is_settled(segment));
        let items = unsettled.flat_map(|(_, _, segment)| segment.items.iter().filter(|item| item.is_fresh));
        let asks = items.map(|item| Ask::Record { item: *item }).collect();
        self.segments = all;
        asks
    }

    /// The segment of a block that counts.
    fn newest(&self, mut segments: Vec<Found>) -> Option<Found> {
        segments.sort_by_key(|(sequence, sector, _)| std::cmp::Reverse((*sequence, *sector)));
        let is_whole = |item: &Item| !item.is_fresh || self.whole.contains(&(item.record, item.sequence));
        segments.into_iter().find(|(_, _, segment)| self.is_settled(segment) || segment.items.iter().all(is_whole))
    }
}

impl<V: Value> Server<V> {
    /// A server that begins with what an earlier one left on the device.
    pub fn recover(config: ServerConfig, out: &mut Vec<ServerOut<V>>) -> Server<V> {
        let mut server = Server::new(config);
        for block in server.own_blocks() {
            server.ask_memory(Purpose::Closed, block, MemoryOperation::Close, out);
        }
        let recovery = Recovery::new(server.pointers.len());
        server.go_on(recovery, out);
        server
    }

    fn own_blocks(&self) -> impl Iterator<Item = u32> + use<V> {
        (self.config.device..self.config.blocks).step_by(self.config.devices as usize)
    }

    /// Which of this device's blocks it is.
    fn own(&self, block: u32) -> Option<usize> {
        let is_own = block < self.config.blocks && block % self.config.devices == self.config.device;
        is_own.then_some((block / self.config.devices) as usize)
    }

    pub(super) fn block_closed(&mut self, out: &mut Vec<ServerOut<V>>) {
        let Some(mut recovery) = self.recovery.take() else { return };
        recovery.open -= 1;
        self.go_on(recovery, out);
    }

    /// Asks what is to be asked. When all has been answered, the next step begins.
    fn go_on(&mut self, mut recovery: Recovery, out: &mut Vec<ServerOut<V>>) {
        loop {
            while recovery.open < ASKS
                && let Some(ask) = recovery.asks.pop_front()
            {
                recovery.open += 1;
                let operation = self.operation(ask);
                self.ask_flash(Purpose::Recovery(ask), operation, out);
            }
            if recovery.open > 0 || recovery.has_failed() {
                self.recovery = Some(recovery);
                return;
            }
            if recovery.step == Step::Flush {
                // Nothing waits yet that work could begin with.
                return self.reset_blocks(out);
            }
            self.next_step(&mut recovery);
        }
    }

    fn next_step(&mut self, recovery: &mut Recovery) {
        (recovery.step, recovery.asks) = match recovery.step {
            Step::Close => (Step::Read, (0..self.config.zones).map(|zone| Ask::Kind { zone }).collect()),
            Step::Read => (Step::Check, recovery.doubtful()),
            // Nothing of ours has come that far.
            Step::Check if recovery.epoch == u32::MAX => (Step::Failed, VecDeque::new()),
            Step::Check => {
                self.rebuild(recovery);
                let useless = self.log.empty().filter(|zone| Some(*zone) != recovery.epoch_zone);
                (Step::Trim, useless.map(|zone| Ask::Trim { zone }).collect())
            }
            Step::Trim => {
                let room = self.log.allocate(mark::<V>(0).sectors(), ZoneKind::Segments, log::Purpose::Compaction);
                room.map_or((Step::Failed, VecDeque::new()), |extent| {
                    self.log.written(extent);
                    (Step::Mark, VecDeque::from([Ask::Mark { extent }]))
                })
            }
            Step::Mark => (Step::Flush, VecDeque::from([Ask::Flush])),
            Step::Flush | Step::Failed => (recovery.step, VecDeque::new()),
        };
    }

    fn operation(&self, ask: Ask) -> FlashOperation<V> {
        match ask {
            Ask::Kind { zone } => FlashOperation::ReadKind { sector: self.log.extent_of(zone).sector },
            Ask::List { zone } => FlashOperation::List { extent: self.log.extent_of(zone) },
            Ask::Record { item } => FlashOperation::ReadRecord { item },
            Ask::Trim { zone } => FlashOperation::Trim { extent: self.log.extent_of(zone) },
            Ask::Mark { extent } => FlashOperation::Write { extent, content: mark(self.epoch) },
            Ask::Flush => FlashOperation::Flush,
        }
    }

    pub(super) fn recovery_flash(&mut self, ask: Ask, answer: FlashAnswer<V>, out: &mut Vec<ServerOut<V>>) {
        let Some(mut recovery) = self.recovery.take() else { return };
        recovery.open -= 1;
        match (ask, answer) {
            (Ask::Kind { zone }, FlashAnswer::Kind(Some(ZoneKind::Records))) => self.log.found_used(zone),
            (Ask::Kind { zone }, FlashAnswer::Kind(_)) => recovery.asks.push_front(Ask::List { zone }),
            (Ask::List { .. }, FlashAnswer::Listed(found)) => {
                found.iter().for_each(|(sector, content)| self.note(&mut recovery, *sector, content));
            }
            (Ask::Record { item }, FlashAnswer::Record(found)) => {
                if found.is_ok_and(|record| item.check(&record).is_ok()) {
                    recovery.whole.insert((item.record, item.sequence));
                }
            }
            (Ask::Trim { zone }, FlashAnswer::Done) => self.log.reclaim(zone),
            (Ask::Trim { zone }, _) => self.log.keep(zone),
            (Ask::Mark { .. } | Ask::Flush, FlashAnswer::Done) => {}
            _ => (recovery.step, recovery.asks) = (Step::Failed, VecDeque::new()),
        }
        self.go_on(recovery, out);
    }

    fn note(&mut self, recovery: &mut Recovery, sector: u64, content: &Content<Length>) {
        let zone = self.log.zone_of(sector);
        self.log.found_used(zone);
        match content {
            Content::Segment(segment) if !self.may_have_written(segment) => self.counters.corrupt += 1,
            Content::Segment(segment) => {
                self.sequence = self.sequence.max(segment.sequence);
                recovery.note_epoch(segment.epoch, zone);
                let settled = recovery.settled.entry(segment.epoch).or_default();
                *settled = segment.settled.max(*settled);
                if let Some(at) = self.own(segment.block) {
                    recovery.keep(at, (segment.sequence, sector, Arc::clone(segment)));
                }
            }
            Content::Page(page) => recovery.note_epoch(page.epoch, zone),
        }
    }

    /// Whether all that a segment lists lies within the device. That of another device, or one that
    /// was made up, does not count.
    fn may_have_written(&self, segment: &Segment) -> bool {
        let end = u64::from(self.config.zones) * u64::from(self.config.zone_sectors);
        segment.items.iter().all(|item| {
            let Extent { sector, sectors } = item.record.extent(item.value_bytes);
            sector + u64::from(sectors) <= end
        })
    }

    fn rebuild(&mut self, recovery: &mut Recovery) {
        self.epoch = recovery.epoch + 1;
        self.sequence.0 += UNLISTED_MAX;
        let all = std::mem::take(&mut recovery.segments);
        for (block, segments) in self.own_blocks().zip(all) {
            if let Some((sequence, sector, segment)) = recovery.newest(segments) {
                self.install_found(block, sequence, sector, &segment);
            }
        }
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

    fn reset_blocks(&mut self, out: &mut Vec<ServerOut<V>>) {
        for block in self.own_blocks() {
            let header = BlockHeader { epoch: self.epoch, segment: self.pointer(block) };
            self.ask_memory(Purpose::Nothing, block, MemoryOperation::Reset { header }, out);
        }
    }
}

/// Says which epoch has begun, so that no other restart begins the same one.
fn mark<V>(epoch: u32) -> Content<V> {
    Content::Page(Arc::new(Page { epoch, records: Vec::new() }))
}
