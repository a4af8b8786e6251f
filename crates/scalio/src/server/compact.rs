//! Compaction: what is of use in the emptiest zone moves to the head of the log, then the zone is
//! forgotten.

use super::group::{PAGE_RECORDS_MAX, PAGE_SECTORS_MAX, longest_page, tail_sectors};
use super::log::{Purpose as Room, Row, Rows};
use super::{Pending, Purpose, Server, ServerOut};
use crate::{BUCKET_ITEMS, Content, FlashAnswer, FlashOperation, Length, Value};
use base::Time;
use std::collections::BTreeSet;

/// Segments that move at once.
const MOVES_MAX: usize = 8;

/// The zone that is being won back.
#[derive(Clone, Debug)]
pub(super) struct Compaction {
    zone: u32,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    /// Its contents are read.
    Scan,
    /// Blocks that may have valid data in it, and whether some of them are in transit.
    Move { left: BTreeSet<u32>, moving: bool },
    /// It is forgotten.
    Trim,
}

impl<V: Value> Server<V> {
    /// Takes the next step, if there is one to be taken.
    pub(super) fn compact(&mut self, now: Time, out: &mut Vec<ServerOut<V>>) {
        if self.compaction.is_none() && self.log.free_zones() < self.config.compact_below && self.may_compact() {
            self.begin_compaction(out);
        }
        let Some(Compaction { zone, step: Step::Move { left, moving: false } }) = &self.compaction else { return };
        let zone = *zone;
        if left.is_empty() {
            return self.end_moves(zone, out);
        }
        let mut free: Vec<u32> =
            left.iter().filter(|block| !self.locked.contains(block)).take(MOVES_MAX).copied().collect();
        while !self.has_room(self.rows_to_move(&free), Room::Compaction) && !free.is_empty() {
            free.truncate(free.len() / 2);
        }
        if !free.is_empty() {
            self.begin_moves(now, zone, free, out);
        }
    }

    /// In the worst case: all records of these segments lie in the zone.
    fn rows_to_move(&self, blocks: &[u32]) -> Rows {
        let segments = blocks.iter().filter_map(|block| self.pointer(*block)).map(|pointer| pointer.extent.sectors);
        let records = segments.clone().map(|sectors| sectors * BUCKET_ITEMS).sum::<u32>();
        let whole = self.config.zone_sectors.div_ceil(PAGE_SECTORS_MAX - 1);
        if tail_sectors(&self.config) == 0 {
            return Rows::new(segments, records.div_ceil(PAGE_RECORDS_MAX as u32).min(whole), PAGE_SECTORS_MAX);
        }
        // Of longer values at most the zone with the padding of its pages.
        let pages = Row { count: records, sectors: whole * PAGE_SECTORS_MAX, longest: longest_page(&self.config) };
        Rows { segments: Row::of(segments), pages }
    }

    /// A zone for each quarter of a zone that updates wrote, and more when they wait for room: a
    /// full store without updates moves nothing.
    fn may_compact(&self) -> bool {
        self.since_compaction >= self.config.zone_sectors / 4 || self.lacks_room()
    }

    fn begin_compaction(&mut self, out: &mut Vec<ServerOut<V>>) {
        let Some(zone) = self.log.victim(self.lacks_room()) else { return };
        self.since_compaction = 0;
        if self.log.is_empty(zone) {
            return self.trim(zone, out);
        }
        self.compaction = Some(Compaction { zone, step: Step::Scan });
        let extent = self.log.extent_of(zone);
        self.ask_flash(Purpose::Compaction, FlashOperation::List { extent }, out);
    }

    fn begin_moves(&mut self, now: Time, zone: u32, blocks: Vec<u32>, out: &mut Vec<ServerOut<V>>) {
        if let Some(Compaction { step: Step::Move { left, moving }, .. }) = &mut self.compaction {
            *moving = true;
            blocks.iter().for_each(|block| {
                left.remove(block);
            });
        }
        let rows = self.rows_to_move(&blocks);
        let moves = blocks.into_iter().map(|block| (block, Pending::Move { zone })).collect();
        self.begin_group(now, moves, rows, Room::Compaction, out);
    }

    /// Returns whether an answer that it waits for will bring compaction on. Moves that find no
    /// room wait for nobody.
    pub(super) fn is_compacting(&self) -> bool {
        self.compaction.as_ref().is_some_and(|compaction| !matches!(compaction.step, Step::Move { moving: false, .. }))
    }

    /// A group of moves has ended.
    pub(super) fn moved(&mut self) {
        if let Some(Compaction { step: Step::Move { moving, .. }, .. }) = &mut self.compaction {
            *moving = false;
        }
    }

    fn end_moves(&mut self, zone: u32, out: &mut Vec<ServerOut<V>>) {
        if self.log.is_empty(zone) {
            return self.trim(zone, out);
        }
        self.log.keep(zone);
        self.compaction = None;
    }

    fn trim(&mut self, zone: u32, out: &mut Vec<ServerOut<V>>) {
        self.compaction = Some(Compaction { zone, step: Step::Trim });
        let extent = self.log.extent_of(zone);
        self.ask_flash(Purpose::Compaction, FlashOperation::Trim { extent }, out);
    }

    pub(super) fn compaction_flash(&mut self, now: Time, answer: FlashAnswer<V>, out: &mut Vec<ServerOut<V>>) {
        let Some(Compaction { zone, step }) = self.compaction.take() else { return };
        match (step, answer) {
            (Step::Scan, FlashAnswer::Listed(found)) => {
                let left = found.iter().flat_map(|(_, content)| self.blocks_in(content)).collect();
                self.compaction = Some(Compaction { zone, step: Step::Move { left, moving: false } });
            }
            (Step::Trim, FlashAnswer::Done) => {
                self.counters.zones_reclaimed += 1;
                self.log.reclaim(zone);
            }
            _ => self.log.keep(zone),
        }
        self.advance(now, out);
    }

    /// Whose segments or records these are; a record whose segment lists another one by now moves
    /// nothing.
    fn blocks_in(&self, content: &Content<Length>) -> Vec<u32> {
        match content {
            Content::Segment(segment) => vec![segment.block],
            Content::Page(page) => {
                page.records.iter().map(|record| record.key.place(self.config.blocks).block).collect()
            }
        }
    }
}
