//! A circular log of sectors: where things begin, what may be written where, and how far it has
//! been compacted.
//!
//! Positions count sectors since the beginning of time and never repeat; the place on flash is the
//! position modulo the log's size. Between head and tail lies what may still be of use:
//!
//! ```text
//!   reuse limit <= head <= scanned <= tail <= reuse limit + size
//! ```
//!
//! Compaction takes chunks at `scanned`, moves what lives in them to the tail, and gives them back
//! in any order; the head passes finished ones. Space behind the head is overwritten only when
//! nobody reads there, and a chunk ends where something is not yet known to the index.

use std::collections::{BTreeMap, VecDeque};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct CircularLog {
    /// First sector of the log on its device.
    base: u64,
    sectors: u64,
    /// What only compaction may take, so that it always can.
    reserve: u64,
    head: u64,
    scanned: u64,
    tail: u64,
    /// A bit for each sector of flash: something begins there.
    starts: Vec<u64>,
    reads: Pins,
    appends: Pins,
    chunks: VecDeque<Chunk>,
}

/// A stretch of the log that is being compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) end: u64,
    is_done: bool,
}

/// Positions in use, each as often as it is used.
#[derive(Clone, Debug, Default)]
struct Pins(BTreeMap<u64, u32>);

impl Pins {
    fn set(&mut self, position: u64) {
        *self.0.entry(position).or_insert(0) += 1;
    }

    fn clear(&mut self, position: u64) {
        let count = self.0.get_mut(&position).expect("what is released was pinned");
        *count -= 1;
        if *count == 0 {
            self.0.remove(&position);
        }
    }

    fn oldest(&self) -> Option<u64> {
        self.0.first_key_value().map(|(position, _)| *position)
    }
}

impl CircularLog {
    /// An empty log in `sectors` sectors from `base` on, of which only compaction takes the last
    /// `reserve`.
    pub(super) fn new(base: u64, sectors: u64, reserve: u64) -> CircularLog {
        CircularLog {
            base,
            sectors,
            reserve,
            head: 0,
            scanned: 0,
            tail: 0,
            starts: vec![0; sectors.div_ceil(64) as usize],
            reads: Pins::default(),
            appends: Pins::default(),
            chunks: VecDeque::new(),
        }
    }

    /// Sector of the device at which `position` lies.
    pub(super) fn sector_of(&self, position: u64) -> u64 {
        self.base + position % self.sectors
    }

    /// Sectors that could be written now, by compaction too.
    pub(super) fn free(&self) -> u64 {
        self.sectors - (self.tail - self.reuse_limit())
    }

    /// Sectors between head and tail: of use, of none, and skipped.
    pub(super) fn used(&self) -> u64 {
        self.tail - self.head
    }

    /// Chunks that the head has not passed.
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Allocates `count` consecutive sectors at the tail and returns the first; `None` if there is
    /// no room. No allocation crosses the end of the log: sectors there are skipped, and freed with
    /// the rest. Until [`known`](CircularLog::known) is called for the position, no compaction
    /// reads it.
    pub(super) fn append(&mut self, count: u64, by_compaction: bool) -> Option<u64> {
        let position = self.next_position(count);
        let kept = if by_compaction { 0 } else { self.reserve };
        if position + count + kept > self.reuse_limit() + self.sectors {
            return None;
        }
        for skipped in self.tail..position + count {
            self.mark(skipped, false);
        }
        self.tail = position + count;
        self.begin_entry(position);
        self.appends.set(position);
        Some(position)
    }

    /// Where an append of `count` sectors would begin.
    pub(super) fn next_position(&self, count: u64) -> u64 {
        let left = self.sectors - self.tail % self.sectors;
        if count > left { self.tail + left } else { self.tail }
    }

    /// Something begins at `position` within an append.
    pub(super) fn begin_entry(&mut self, position: u64) {
        self.mark(position, true);
    }

    fn mark(&mut self, position: u64, is_start: bool) {
        let sector = position % self.sectors;
        let word = &mut self.starts[(sector / 64) as usize];
        let bit = 1 << (sector % 64);
        *word = if is_start { *word | bit } else { *word & !bit };
    }

    fn is_start(&self, position: u64) -> bool {
        let sector = position % self.sectors;
        self.starts[(sector / 64) as usize] >> (sector % 64) & 1 == 1
    }

    /// The index knows of the append at `position`, or never will.
    pub(super) fn known(&mut self, position: u64) {
        self.appends.clear(position);
    }

    /// Somebody reads what lies at a sector of the device: it is not overwritten before
    /// [`end_read`](CircularLog::end_read), if it has not been already. Returns its position.
    pub(super) fn begin_read(&mut self, sector: u64) -> u64 {
        // The latest position at that sector. Positions before the head hold no space back that is
        // not free already.
        let back = (self.base + self.tail + self.sectors - 1 - sector) % self.sectors;
        let position = (self.tail + self.sectors - 1 - back).saturating_sub(self.sectors);
        self.reads.set(position);
        position
    }

    pub(super) fn end_read(&mut self, position: u64) {
        self.reads.clear(position);
    }

    /// The next stretch to compact, at most `limit` sectors, ending where something begins or
    /// nothing is yet.
    pub(super) fn next_chunk(&mut self, limit: u64) -> Option<Chunk> {
        let wrap = self.scanned + self.sectors - self.scanned % self.sectors;
        let known = self.appends.oldest().unwrap_or(self.tail);
        let limit = known.min(self.scanned + limit).min(wrap);
        let is_border = |position: &u64| *position == wrap || *position == self.tail || self.is_start(*position);
        let end = (self.scanned + 1..=limit).rev().find(is_border)?;
        let chunk = Chunk { start: self.scanned, end, is_done: false };
        self.scanned = end;
        self.chunks.push_back(chunk);
        Some(chunk)
    }

    /// Nothing in the chunk that begins at `start` is of use any more.
    pub(super) fn finish(&mut self, start: u64) {
        let chunk = self.chunks.iter_mut().find(|chunk| chunk.start == start).expect("a finished chunk was begun");
        chunk.is_done = true;
        while let Some(chunk) = self.chunks.front().filter(|chunk| chunk.is_done) {
            self.head = chunk.end;
            self.chunks.pop_front();
        }
    }

    fn reuse_limit(&self) -> u64 {
        self.reads.oldest().unwrap_or(self.head).min(self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten sectors from 100 on, two of them for compaction.
    fn log() -> CircularLog {
        CircularLog::new(100, 10, 2)
    }

    fn append(log: &mut CircularLog, count: u64) -> Option<u64> {
        let position = log.append(count, false)?;
        log.known(position);
        Some(position)
    }

    fn reclaim(log: &mut CircularLog, limit: u64) -> Option<(u64, u64)> {
        let chunk = log.next_chunk(limit)?;
        log.finish(chunk.start);
        Some((chunk.start, chunk.end))
    }

    #[test]
    fn all_but_the_reserve_can_be_written_and_compaction_takes_the_rest() {
        let mut log = log();
        assert_eq!(append(&mut log, 8), Some(0));
        assert_eq!((append(&mut log, 1), log.append(2, true)), (None, Some(8)));
        assert_eq!((log.append(1, true), log.free(), log.used()), (None, 0, 10));
    }

    #[test]
    fn nothing_lies_across_the_end_and_what_is_skipped_comes_back() {
        let mut log = log();
        append(&mut log, 8);
        assert_eq!(reclaim(&mut log, 8), Some((0, 8)));
        assert_eq!((append(&mut log, 3), log.sector_of(10)), (Some(10), 100), "sectors 8 and 9 are skipped");
        assert_eq!((append(&mut log, 4), log.used()), (None, 5));
        assert_eq!(reclaim(&mut log, 8), Some((8, 10)), "a chunk does not lie across the end either");
        assert_eq!(append(&mut log, 4), Some(13));
    }

    #[test]
    fn a_chunk_ends_where_something_begins() {
        let mut log = log();
        [3, 3, 2].into_iter().for_each(|count| assert!(append(&mut log, count).is_some()));
        assert_eq!(reclaim(&mut log, 5), Some((0, 3)));
        assert_eq!(reclaim(&mut log, 5), Some((3, 8)), "to the tail");
        assert_eq!(reclaim(&mut log, 5), None);
    }

    #[test]
    fn what_the_index_does_not_know_is_not_compacted() {
        let mut log = log();
        append(&mut log, 2);
        let unknown = log.append(2, false).expect("there is room");
        append(&mut log, 2);
        assert_eq!((reclaim(&mut log, 9), reclaim(&mut log, 9)), (Some((0, 2)), None));
        log.known(unknown);
        assert_eq!(reclaim(&mut log, 9), Some((2, 6)));
    }

    #[test]
    fn chunks_come_back_in_any_order_and_the_head_passes_them_in_theirs() {
        let mut log = log();
        [4, 4].into_iter().for_each(|count| assert!(append(&mut log, count).is_some()));
        let [first, second] = [log.next_chunk(4), log.next_chunk(4)].map(|chunk| chunk.expect("there are two"));
        log.finish(second.start);
        assert_eq!((log.used(), log.chunks()), (8, 2));
        log.finish(first.start);
        assert_eq!((log.used(), log.chunks()), (0, 0));
    }

    #[test]
    fn what_is_read_is_not_overwritten_until_the_last_reader_has_left() {
        let mut log = log();
        append(&mut log, 8);
        let readers = [log.begin_read(103), log.begin_read(103)];
        assert_eq!(readers, [3, 3]);
        reclaim(&mut log, 8);
        // Five of the ten are still held, so that two and the reserve fit, and skipped sectors are
        // not free either.
        assert_eq!((log.free(), append(&mut log, 4)), (5, None));
        log.end_read(3);
        assert_eq!(append(&mut log, 4), None);
        log.end_read(3);
        assert_eq!((log.free(), append(&mut log, 4)), (10, Some(10)));
        assert_eq!(log.begin_read(103), 13, "there lies something newer now");
    }
}
