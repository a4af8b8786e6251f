//! The log of one device: zones that are filled in order and won back whole.

use super::KeptZone;
use crate::{Extent, SECTOR_BYTES, ZoneKind};
use std::collections::BTreeSet;

/// A zone's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ZoneState {
    /// Nothing in it is of use.
    Free,
    /// New data go here.
    Open,
    /// Full.
    Closed,
    /// Something in it could not be read, so it stays as it is.
    Kept,
}

/// A zone.
#[derive(Clone, Copy, Debug)]
struct Zone {
    state: ZoneState,
    /// Bytes of segments and records that are of use.
    live: u64,
    /// Records among them.
    records: u32,
    /// Writes in flight.
    writing: u32,
}

/// Rows of sectors of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub count: u32,
    /// Of all together.
    pub sectors: u32,
    pub longest: u32,
}

impl Row {
    pub fn of(rows: impl Iterator<Item = u32>) -> Row {
        rows.fold(Row::default(), |row, sectors| row.and(Row { count: 1, sectors, longest: sectors }))
    }
    pub fn and(self, other: Row) -> Row {
        Row {
            count: self.count + other.count,
            sectors: self.sectors + other.sectors,
            longest: self.longest.max(other.longest),
        }
    }
}

/// Rows that are to be written, in the worst case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub segments: Row,
    pub pages: Row,
}

impl Rows {
    /// Segments of these many sectors, and `pages` pages of `page_sectors`.
    pub fn new(segments: impl Iterator<Item = u32>, pages: u32, page_sectors: u32) -> Rows {
        Rows { segments: Row::of(segments), pages: Row::of((0..pages).map(|_| page_sectors)) }
    }
    /// Both together.
    pub fn and(self, other: Rows) -> Rows {
        Rows { segments: self.segments.and(other.segments), pages: self.pages.and(other.pages) }
    }
}

/// The purpose of a space request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An update: may not touch the reserve.
    Update,
    /// Compaction, which wins back more than it takes.
    Compaction,
}

/// All zones.
#[derive(Clone, Debug)]
pub(super) struct Log {
    zones: Vec<Zone>,
    free: BTreeSet<u32>,
    zone_sectors: u32,
    reserve: u32,
    /// Sectors that may stay empty at the end of a zone, before a long page.
    tail: u32,
    /// The open zone of each kind and its first unused sector.
    open: [Option<(u32, u32)>; 2],
    live: u64,
    /// Segments of use, and their bytes.
    segments: u64,
    segment_bytes: u64,
}

impl Log {
    /// A log in which nothing is stored.
    pub fn new(zones: u32, zone_sectors: u32, reserve: u32, tail: u32) -> Log {
        let zone = Zone { state: ZoneState::Free, live: 0, records: 0, writing: 0 };
        Log {
            zones: vec![zone; zones as usize],
            free: (0..zones).collect(),
            zone_sectors,
            reserve,
            tail,
            open: [None; 2],
            live: 0,
            segments: 0,
            segment_bytes: 0,
        }
    }

    /// The zones as they are, and the open ones with their first unused sectors.
    pub fn kept(&self) -> (Vec<KeptZone>, [Option<(u32, u32)>; 2]) {
        let zone = |zone: &Zone| KeptZone {
            is_free: zone.state == ZoneState::Free,
            is_kept: zone.state == ZoneState::Kept,
            live: zone.live,
            records: zone.records,
        };
        (self.zones.iter().map(zone).collect(), self.open)
    }

    /// Begins with zones and with segments of use that an earlier log had; `None` where they are
    /// none of its own.
    pub fn resume(
        &mut self,
        zones: &[KeptZone],
        open: [Option<(u32, u32)>; 2],
        segments: impl Iterator<Item = Extent>,
    ) -> Option<()> {
        let is_own = |(zone, next): &(u32, u32)| (*zone as usize) < zones.len() && *next <= self.zone_sectors;
        if zones.len() != self.zones.len() || !open.iter().flatten().all(is_own) {
            return None;
        }
        for (own, kept) in self.zones.iter_mut().zip(zones) {
            let state = match (kept.is_free, kept.is_kept) {
                (true, _) => ZoneState::Free,
                (false, true) => ZoneState::Kept,
                (false, false) => ZoneState::Closed,
            };
            *own = Zone { state, live: kept.live, records: kept.records, writing: 0 };
        }
        open.iter().flatten().for_each(|(zone, _)| self.zones[*zone as usize].state = ZoneState::Open);
        self.free =
            (0..).zip(&self.zones).filter(|(_, zone)| zone.state == ZoneState::Free).map(|(at, _)| at).collect();
        self.live = zones.iter().map(|zone| zone.live).try_fold(0, u64::checked_add)?;
        self.open = open;
        for extent in segments {
            self.segments += 1;
            self.segment_bytes += u64::from(extent.sectors) * u64::from(SECTOR_BYTES);
        }
        Some(())
    }

    /// All of a zone.
    pub fn extent_of(&self, zone: u32) -> Extent {
        Extent { sector: u64::from(zone) * u64::from(self.zone_sectors), sectors: self.zone_sectors }
    }
    pub fn zone_of(&self, sector: u64) -> u32 {
        (sector / u64::from(self.zone_sectors)) as u32
    }
    pub fn free_zones(&self) -> u32 {
        self.free.len() as u32
    }
    /// Records of use.
    pub fn records(&self) -> u64 {
        self.zones.iter().map(|zone| u64::from(zone.records)).sum()
    }
    /// Bytes of use.
    pub fn live(&self) -> u64 {
        self.live
    }
    /// Maximum valid bytes: three quarters of all zones except the reserve and two in transit. Some
    /// zone then has a quarter to gain, and its valid data take at most an eighth more space when
    /// moved (records of a few segments fill their last sector in part): compaction always gains.
    pub fn capacity(&self) -> u64 {
        let zones = (self.zones.len() as u64).saturating_sub(u64::from(self.reserve) + 2);
        // The end of a zone is left empty where the next segment or long page does not fit.
        let sectors = u64::from(self.zone_sectors.saturating_sub(self.tail));
        let zone = (sectors * u64::from(SECTOR_BYTES)).saturating_sub(self.mean_segment());
        zones * zone / 4 * 3
    }

    fn mean_segment(&self) -> u64 {
        self.segment_bytes.checked_div(self.segments).unwrap_or(0)
    }

    /// Returns whether there is room for rows of sectors, in any order. Updates wait until what
    /// compaction has taken of the reserve is there again: they would fill the zones that it opens,
    /// until it can open none.
    pub fn has_room(&self, rows: Rows, purpose: Purpose) -> bool {
        if purpose == Purpose::Update && self.free_zones() < self.reserve {
            return false;
        }
        self.zones_for(ZoneKind::Segments, rows.segments) + self.zones_for(ZoneKind::Records, rows.pages)
            <= self.usable(purpose)
    }

    /// A zone ends where the next row does not fit: up to one sector less than the longest row
    /// stays empty, and as many of the longest rows as fit do fit.
    fn zones_for(&self, kind: ZoneKind, row: Row) -> u32 {
        if row.count == 0 {
            return 0;
        }
        let empty = row.longest - 1;
        let left = self.open[kind as usize].map_or(0, |(_, next)| (self.zone_sectors - next).saturating_sub(empty));
        let by_length = row.sectors.saturating_sub(left).div_ceil(self.zone_sectors.saturating_sub(empty).max(1));
        let by_count = row.count.div_ceil((self.zone_sectors / row.longest).max(1));
        by_length.min(by_count)
    }

    fn usable(&self, purpose: Purpose) -> u32 {
        let kept = if purpose == Purpose::Update { self.reserve } else { 0 };
        self.free_zones().saturating_sub(kept)
    }

    /// Room for a row of sectors within one zone, which counts as being written; `None` where there
    /// is none.
    pub fn allocate(&mut self, sectors: u32, kind: ZoneKind, purpose: Purpose) -> Option<Extent> {
        let (zone, next) = match self.open[kind as usize] {
            Some((zone, next)) if next + sectors <= self.zone_sectors => (zone, next),
            _ => (self.open_another(kind, purpose)?, 0),
        };
        self.open[kind as usize] = Some((zone, next + sectors));
        self.zones[zone as usize].writing += 1;
        Some(Extent { sector: self.extent_of(zone).sector + u64::from(next), sectors })
    }

    fn open_another(&mut self, kind: ZoneKind, purpose: Purpose) -> Option<u32> {
        if self.usable(purpose) == 0 {
            return None;
        }
        let zone = self.free.pop_first()?;
        if let Some((full, _)) = self.open[kind as usize].replace((zone, 0)) {
            self.zones[full as usize].state = ZoneState::Closed;
        }
        self.zones[zone as usize].state = ZoneState::Open;
        Some(zone)
    }

    /// A write that was allocated has ended, well or not.
    pub fn written(&mut self, extent: Extent) {
        let zone = self.zone_of(extent.sector) as usize;
        self.zones[zone].writing -= 1;
    }

    /// A segment is of use from now on, or no more.
    pub fn count_segment(&mut self, extent: Extent, is_live: bool) {
        let bytes = extent.sectors * SECTOR_BYTES;
        self.count(extent.sector, bytes, 0, is_live);
        (self.segments, self.segment_bytes) = if is_live {
            (self.segments + 1, self.segment_bytes + u64::from(bytes))
        } else {
            (self.segments - 1, self.segment_bytes - u64::from(bytes))
        };
    }
    /// `records` records of together `bytes` bytes, which lie in the zone of `sector`, are of use
    /// from now on, or no more.
    pub fn count_records(&mut self, sector: u64, bytes: u32, records: u32, is_live: bool) {
        self.count(sector, bytes, records, is_live);
    }

    fn count(&mut self, sector: u64, bytes: u32, records: u32, is_live: bool) {
        let at = self.zone_of(sector) as usize;
        let (zone, bytes) = (&mut self.zones[at], u64::from(bytes));
        if is_live {
            (zone.live, zone.records, self.live) = (zone.live + bytes, zone.records + records, self.live + bytes);
        } else {
            (zone.live, zone.records, self.live) = (zone.live - bytes, zone.records - records, self.live - bytes);
        }
    }

    /// The log was found like this: the zone holds something.
    pub fn found_used(&mut self, zone: u32) {
        if self.free.remove(&zone) {
            self.zones[zone as usize].state = ZoneState::Closed;
        }
    }

    /// The zone that is cheapest to win back; `None` where less than a quarter of a zone is to be
    /// won (an eighth if it is urgent), or less than what may stay empty at the end of the zone
    /// into which it moves. To move less would be to move the same for ever. What moves is what is
    /// of use, and for each record its segment.
    pub fn victim(&self, is_urgent: bool) -> Option<u32> {
        let bytes = u64::from(self.zone_sectors) * u64::from(SECTOR_BYTES);
        let segment = self.mean_segment();
        let tail = u64::from(self.tail) * u64::from(SECTOR_BYTES);
        let least = (bytes / if is_urgent { 8 } else { 4 }).max(2 * segment).max(tail);
        let most = bytes.saturating_sub(least);
        let closed = |zone: &Zone| zone.state == ZoneState::Closed && zone.writing == 0 && zone.live <= most;
        let cost = |zone: &Zone| {
            (zone.live + u64::from(zone.records).min(self.segments) * segment) * bytes / (bytes - zone.live)
        };
        let zones = (0u32..).zip(&self.zones).filter(|(_, zone)| closed(zone));
        zones.min_by_key(|(at, zone)| (cost(zone), *at)).map(|(at, _)| at)
    }
    /// Records of use in the zone, and the sectors of all that is of use in it.
    pub fn of_use(&self, zone: u32) -> (u32, u32) {
        let Zone { records, live, .. } = self.zones[zone as usize];
        (records, live.div_ceil(u64::from(SECTOR_BYTES)) as u32)
    }
    /// Returns whether nothing in the zone is of use.
    pub fn is_empty(&self, zone: u32) -> bool {
        self.zones[zone as usize].live == 0
    }
    /// Closed zones without anything of use.
    pub fn empty(&self) -> impl Iterator<Item = u32> {
        let is_empty = |zone: &Zone| zone.state == ZoneState::Closed && zone.live == 0;
        (0u32..).zip(&self.zones).filter(move |(_, zone)| is_empty(zone)).map(|(at, _)| at)
    }
    /// The zone was forgotten, and can be filled anew. What it held before would be taken for a
    /// part of what it will hold.
    pub fn reclaim(&mut self, zone: u32) {
        self.zones[zone as usize].state = ZoneState::Free;
        self.free.insert(zone);
    }
    /// The zone stays as it is: something of use in it cannot be read.
    pub fn keep(&mut self, zone: u32) {
        self.zones[zone as usize].state = ZoneState::Kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_sectors_lies_in_one_zone_of_its_kind() {
        let mut log = Log::new(4, 10, 1, 0);
        let mut allocate = |sectors, kind| log.allocate(sectors, kind, Purpose::Update).map(|extent| extent.sector);
        assert_eq!(allocate(6, ZoneKind::Segments), Some(0));
        assert_eq!(allocate(6, ZoneKind::Segments), Some(10));
        assert_eq!(allocate(4, ZoneKind::Records), Some(20));
        assert_eq!(allocate(4, ZoneKind::Segments), Some(16));
        assert_eq!(allocate(6, ZoneKind::Records), Some(24));
    }

    #[test]
    fn updates_leave_the_reserve_to_compaction() {
        let mut log = Log::new(2, 10, 1, 0);
        let rows = |segments: &[u32], pages| Rows::new(segments.iter().copied(), pages, 1);
        assert!(log.has_room(rows(&[10], 0), Purpose::Update) && !log.has_room(rows(&[10], 1), Purpose::Update));
        assert!(
            log.has_room(rows(&[10], 10), Purpose::Compaction) && !log.has_room(rows(&[10], 11), Purpose::Compaction)
        );
        assert!(log.allocate(10, ZoneKind::Segments, Purpose::Update).is_some());
        assert_eq!(log.allocate(1, ZoneKind::Records, Purpose::Update), None);
        assert_eq!(log.allocate(1, ZoneKind::Records, Purpose::Compaction), Some(Extent { sector: 10, sectors: 1 }));
    }

    #[test]
    fn room_for_rows_is_room_in_any_order() {
        let log = Log::new(4, 10, 0, 0);
        // Six and six do not share a zone of ten.
        assert!(log.has_room(Rows::new([6, 4, 6, 4].into_iter(), 0, 1), Purpose::Update));
        assert!(log.has_room(Rows::new([6; 4].into_iter(), 0, 1), Purpose::Update));
        assert!(!log.has_room(Rows::new([6; 5].into_iter(), 0, 1), Purpose::Update));
    }

    #[test]
    fn the_victim_is_closed_without_writes_on_their_way_and_has_enough_to_win() {
        let mut log = Log::new(5, 16, 1, 0);
        let rows: Vec<Extent> = (0..3).filter_map(|_| log.allocate(16, ZoneKind::Records, Purpose::Update)).collect();
        // Zones of 8192 bytes: over three quarters, little, little.
        for (row, live) in rows.iter().zip([7000, 700, 300]) {
            log.count_records(row.sector, live, 7, true);
        }
        assert_eq!(log.victim(false), None);
        log.written(rows[0]);
        log.written(rows[1]);
        assert_eq!(log.victim(false), Some(1));
        log.count_records(rows[1].sector, 700, 7, false);
        assert!(log.is_empty(1));
        log.reclaim(1);
        assert_eq!((log.victim(false), log.victim(true), log.free_zones()), (None, Some(0), 3));
    }

    #[test]
    fn records_are_dearer_to_move_than_segments_of_as_many_bytes() {
        let mut log = Log::new(6, 16, 1, 0);
        let records = log.allocate(16, ZoneKind::Records, Purpose::Update).expect("room");
        let segments: Vec<Extent> =
            (0..3).filter_map(|_| log.allocate(1, ZoneKind::Segments, Purpose::Update)).collect();
        log.allocate(16, ZoneKind::Records, Purpose::Update).expect("room");
        log.allocate(16, ZoneKind::Segments, Purpose::Update).expect("room");
        log.written(records);
        segments.iter().for_each(|extent| log.written(*extent));
        log.count_records(records.sector, 1120, 10, true);
        segments.iter().for_each(|extent| log.count_segment(*extent, true));
        // 1120 bytes and three segments against three segments.
        assert_eq!(log.victim(false), Some(1));
    }
}
