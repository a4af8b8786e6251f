//! Compaction: what is of use in the emptiest zone moves to the head of the log, then the zone is
//! forgotten.

use super::group::{PAGE_RECORDS_MAX, PAGE_SECTORS_MAX, longest_page, tail_sectors};
use super::log::{Purpose as Room, Row, Rows};
use super::{Pending, Purpose, Server, ServerOut};
use crate::{BUCKET_ITEMS, Content, FlashAnswer, FlashOperation, Length, Value};
use base::Time;
use std::collections::BTreeSet;

/// Segments that move at once: a quarter of a group, or so many where groups are small. What the
/// paper leaves open; ours.
const MOVES_MIN: u32 = 8;

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
        let most = MOVES_MIN.max(self.config.group_updates / 4) as usize;
        let mut free: Vec<u32> = left.iter().filter(|block| !self.locked.contains(block)).take(most).copied().collect();
        while !self.has_room(self.rows_to_move(zone, &free), Room::Compaction) && !free.is_empty() {
            free.truncate(free.len() / 2);
        }
        if !free.is_empty() {
            self.begin_moves(now, zone, free, out);
        }
    }

    /// In the worst case: all that is of use in the zone is of these segments, in pages of one
    /// record each.
    fn rows_to_move(&self, zone: u32, blocks: &[u32]) -> Rows {
        let segments = blocks.iter().filter_map(|block| self.pointer(*block)).map(|pointer| pointer.extent.sectors);
        let (of_use, sectors) = self.log.of_use(zone);
        let records = segments.clone().map(|sectors| sectors * BUCKET_ITEMS).sum::<u32>().min(of_use);
        let whole = self.config.zone_sectors.div_ceil(PAGE_SECTORS_MAX - 1);
        if tail_sectors(&self.config) == 0 {
            return Rows::new(segments, records.div_ceil(PAGE_RECORDS_MAX as u32).min(whole), PAGE_SECTORS_MAX);
        }
        if records == 0 {
            return Rows::new(segments, 0, 1);
        }
        // The header and the padding of a page are less than a sector each.
        let sectors = sectors + 2 * records;
        let pages = Row { count: records, sectors, longest: longest_page(&self.config).min(sectors) };
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
        let rows = self.rows_to_move(zone, &blocks);
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

#[cfg(test)]
mod tests {
    use super::super::ServerConfig;
    use super::*;
    use crate::{Extent, Protocol, SegmentPointer, Sequence, Token, VALUE_BYTES_MAX, ZoneKind, page_sectors};
    use base::Span;

    /// A server whose zone 0 has `records` records of use, `bytes` together.
    fn server(value_bytes_max: u32, records: u32, bytes: u32) -> Server<Token> {
        let mut server = Server::new(ServerConfig {
            device: 0,
            devices: 1,
            blocks: 2,
            protocol: Protocol::Linearizable,
            group_updates: 1,
            group_wait: Span::ZERO,
            groups_max: 1,
            zones: 12,
            zone_sectors: 1024,
            reserve_zones: 4,
            compact_below: 6,
            volatile_cache: false,
            value_bytes_max,
            start_second: 0,
            hand_over: false,
        });
        let page = server.log.allocate(1024, ZoneKind::Records, Room::Update).expect("all is free");
        server.log.count_records(page.sector, bytes, records, true);
        for block in 0..2 {
            let extent = Extent { sector: 1024 + u64::from(block) * 2, sectors: 2 };
            server.set_pointer(block, SegmentPointer::new(extent, Sequence(1)));
        }
        server
    }

    #[test]
    fn what_a_move_takes_at_worst_is_what_is_of_use_in_the_zone_and_no_zone_full() {
        let pages = |server: &Server<Token>, blocks: &[u32]| server.rows_to_move(0, blocks).pages;
        // Of long values: 20 records of 512 B in all, of which one segment may list all.
        let some = server(50_000, 20, 20 * 512);
        assert_eq!(pages(&some, &[0]), Row { count: 20, sectors: 20 + 40, longest: 60 });
        // More records than two segments can list.
        let many = server(50_000, 500, 500 * 512);
        let longest = page_sectors(50_000);
        assert_eq!(pages(&many, &[0]), Row { count: 30, sectors: 500 + 60, longest });
        assert_eq!(pages(&many, &[0, 1]), Row { count: 60, sectors: 500 + 120, longest });
        assert_eq!(pages(&server(50_000, 0, 0), &[0, 1]).count, 0);
        // Of short values, pages of eight sectors.
        assert_eq!(pages(&server(VALUE_BYTES_MAX, 5, 560), &[0, 1]), Row { count: 1, sectors: 8, longest: 8 });
        assert_eq!(pages(&server(VALUE_BYTES_MAX, 500, 56_000), &[0, 1]), Row { count: 2, sectors: 16, longest: 8 });
    }
}
