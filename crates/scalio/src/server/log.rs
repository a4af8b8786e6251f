//! The log of one device: zones that are filled in order and won back whole.

use crate::{Extent, SECTOR_BYTES};
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
    /// Writes on their way.
    writing: u32,
}

/// Who wants room.
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
    /// The open zone and its first unused sector.
    open: Option<(u32, u32)>,
    live: u64,
}

impl Log {
    /// A log in which nothing is stored.
    pub fn new(zones: u32, zone_sectors: u32, reserve: u32) -> Log {
        let zone = Zone { state: ZoneState::Free, live: 0, writing: 0 };
        Log { zones: vec![zone; zones as usize], free: (0..zones).collect(), zone_sectors, reserve, open: None, live: 0 }
    }

    /// All of the log.
    pub fn zone_extents(&self) -> impl Iterator<Item = Extent> + use<> {
        let sectors = self.zone_sectors;
        (0..self.zones.len() as u64).map(move |zone| Extent { sector: zone * u64::from(sectors), sectors })
    }
    pub fn extent_of(&self, zone: u32) -> Extent {
        Extent { sector: u64::from(zone) * u64::from(self.zone_sectors), sectors: self.zone_sectors }
    }
    pub fn zone_of(&self, sector: u64) -> u32 {
        (sector / u64::from(self.zone_sectors)) as u32
    }
    pub fn free_zones(&self) -> u32 {
        self.free.len() as u32
    }
    /// Bytes of use.
    pub fn live(&self) -> u64 {
        self.live
    }
    /// Bytes that may be of use at most: of all zones but the reserve and two that are on their way, 15 of 16, so that compaction always has something to win.
    pub fn capacity(&self) -> u64 {
        let zones = (self.zones.len() as u64).saturating_sub(u64::from(self.reserve) + 2);
        zones * u64::from(self.zone_sectors) * u64::from(SECTOR_BYTES) / 16 * 15
    }

    /// Whether [`allocate`](Log::allocate) would find room for rows of sectors of these lengths, one after the other.
    pub fn has_room(&self, rows: impl IntoIterator<Item = u32>, purpose: Purpose) -> bool {
        let mut left = self.open.map_or(0, |(_, next)| self.zone_sectors - next);
        let mut zones = self.usable(purpose);
        rows.into_iter().all(|sectors| {
            if sectors > left {
                let Some(fewer) = zones.checked_sub(1) else { return false };
                (zones, left) = (fewer, self.zone_sectors);
            }
            left = left.saturating_sub(sectors);
            true
        })
    }

    fn usable(&self, purpose: Purpose) -> u32 {
        let kept = if purpose == Purpose::Update { self.reserve } else { 0 };
        self.free_zones().saturating_sub(kept)
    }

    /// Room for a row of sectors within one zone, which counts as being written; `None` where there is none.
    pub fn allocate(&mut self, sectors: u32, purpose: Purpose) -> Option<Extent> {
        let (zone, next) = match self.open {
            Some((zone, next)) if next + sectors <= self.zone_sectors => (zone, next),
            _ => (self.open_another(purpose)?, 0),
        };
        self.open = Some((zone, next + sectors));
        self.zones[zone as usize].writing += 1;
        Some(Extent { sector: self.extent_of(zone).sector + u64::from(next), sectors })
    }

    fn open_another(&mut self, purpose: Purpose) -> Option<u32> {
        if self.usable(purpose) == 0 {
            return None;
        }
        let zone = self.free.pop_first()?;
        if let Some((full, _)) = self.open.replace((zone, 0)) {
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
    /// What begins at `sector` is of use.
    pub fn add(&mut self, sector: u64, bytes: u32) {
        let zone = self.zone_of(sector) as usize;
        self.zones[zone].live += u64::from(bytes);
        self.live += u64::from(bytes);
    }
    /// It is no more.
    pub fn remove(&mut self, sector: u64, bytes: u32) {
        let zone = self.zone_of(sector) as usize;
        self.zones[zone].live -= u64::from(bytes);
        self.live -= u64::from(bytes);
    }
    /// The log was found like this: the zone holds something.
    pub fn found_used(&mut self, zone: u32) {
        if self.free.remove(&zone) {
            self.zones[zone as usize].state = ZoneState::Closed;
        }
    }

    /// The zone from which there is most to win; `None` where nothing is to be won.
    pub fn victim(&self) -> Option<u32> {
        let bytes = u64::from(self.zone_sectors) * u64::from(SECTOR_BYTES);
        let closed = |zone: &Zone| zone.state == ZoneState::Closed && zone.writing == 0 && zone.live < bytes;
        let zones = (0u32..).zip(&self.zones).filter(|(_, zone)| closed(zone));
        zones.min_by_key(|(at, zone)| (zone.live, *at)).map(|(at, _)| at)
    }
    /// Whether nothing in the zone is of use.
    pub fn is_empty(&self, zone: u32) -> bool {
        self.zones[zone as usize].live == 0
    }
    /// The zone can be filled anew.
    pub fn reclaim(&mut self, zone: u32) {
        self.zones[zone as usize].state = ZoneState::Free;
        self.free.insert(zone);
    }
    /// All closed zones without anything of use can be filled anew.
    pub fn reclaim_empty(&mut self) {
        for zone in 0..self.zones.len() as u32 {
            if self.zones[zone as usize].state == ZoneState::Closed && self.is_empty(zone) {
                self.reclaim(zone);
            }
        }
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
    fn a_row_of_sectors_lies_in_one_zone() {
        let mut log = Log::new(4, 10, 1);
        assert_eq!(log.allocate(6, Purpose::Update), Some(Extent { sector: 0, sectors: 6 }));
        assert_eq!(log.allocate(6, Purpose::Update), Some(Extent { sector: 10, sectors: 6 }));
        assert_eq!(log.allocate(4, Purpose::Update), Some(Extent { sector: 16, sectors: 4 }));
    }

    #[test]
    fn updates_leave_the_reserve_to_compaction() {
        let mut log = Log::new(2, 10, 1);
        assert!(log.has_room([10], Purpose::Update) && !log.has_room([10, 1], Purpose::Update));
        assert!(log.has_room([10, 10], Purpose::Compaction) && !log.has_room([10, 10, 1], Purpose::Compaction));
        assert!(log.allocate(10, Purpose::Update).is_some());
        assert_eq!(log.allocate(1, Purpose::Update), None);
        assert_eq!(log.allocate(1, Purpose::Compaction), Some(Extent { sector: 10, sectors: 1 }));
    }

    #[test]
    fn the_emptiest_closed_zone_is_the_victim_once_all_its_writes_have_ended() {
        let mut log = Log::new(5, 10, 1);
        let rows: Vec<Extent> = (0..3).filter_map(|_| log.allocate(10, Purpose::Update)).collect();
        for (row, live) in rows.iter().zip([5120, 700, 300]) {
            log.add(row.sector, live);
        }
        assert_eq!(log.victim(), None);
        log.written(rows[0]);
        log.written(rows[1]);
        // The first is full of use, the third still open.
        assert_eq!(log.victim(), Some(1));
        log.remove(rows[1].sector, 700);
        assert!(log.is_empty(1));
        log.reclaim(1);
        assert_eq!((log.victim(), log.free_zones()), (None, 3));
    }
}
