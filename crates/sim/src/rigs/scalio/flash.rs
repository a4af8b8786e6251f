//! The devices: when their operations end, and what is then found where.

use super::keys::Keys;
use super::leed_preload::LeedPreload;
use base::Time;
use hardware::ssd::{Command, CommandKind, Done, QuickDrive};
use scalio::{
    Content, Corrupt, Extent, FlashAnswer, FlashOperation, Item, Page, Preload, Record, SECTOR_BYTES, Segment,
    SegmentPointer, Sequence, Token,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Versions of a block's segment that are kept: those that somebody may still be on the way to
/// read. An older one is then found to have been overwritten, which is what may become of it
/// anyway.
const VERSIONS_KEPT: usize = 3;

/// What lies on all devices when a run begins.
pub enum PreloadedStore {
    /// Scalio's log.
    Scalio(Box<Preload<Keys>>),
    /// LEED's two.
    Leed(Box<LeedPreload>),
    /// Nothing that anybody torn_reads at.
    Bare,
}

impl PreloadedStore {
    fn segment(&self, block: u32, pointer: SegmentPointer, lent: &mut Lent) -> Option<Arc<Segment>> {
        match self {
            PreloadedStore::Scalio(preload) => {
                (preload.pointer(block) == Some(pointer)).then(|| lent.one(|segment| preload.fill(block, segment)))
            }
            PreloadedStore::Leed(preload) => {
                (preload.pointer(block) == pointer).then(|| Arc::new(preload.segment(block)))
            }
            PreloadedStore::Bare => None,
        }
    }

    fn record(&self, device: u32, item: &Item) -> Option<Record<Token>> {
        match self {
            PreloadedStore::Scalio(preload) if item.sequence == Sequence(0) => preload.record(&item.key),
            PreloadedStore::Leed(preload) if item.sequence <= preload.last_sequence(device) => {
                Some(preload.record(item))
            }
            _ => None,
        }
    }

    fn scan(&self, device: u32, extent: Extent) -> Vec<(u64, Content<Token>)> {
        match self {
            PreloadedStore::Scalio(preload) => preload.scan(device, extent),
            PreloadedStore::Leed(preload) => preload.scan(device, extent),
            PreloadedStore::Bare => Vec::new(),
        }
    }
}

/// Segments that are given to readers for a while. Those that nobody holds any more are filled
/// again, so that reading one takes no memory.
#[derive(Default)]
struct Lent {
    segments: Vec<Arc<Segment>>,
    next: usize,
}

/// Ours: more than readers of one device have in their hands at once.
const LENT_MAX: usize = 16;

impl Lent {
    /// The next one, after `fill`.
    fn one(&mut self, fill: impl FnOnce(&mut Segment)) -> Arc<Segment> {
        if self.segments.len() < LENT_MAX {
            self.next = self.segments.len();
            self.segments.push(Arc::new(Segment::empty(0)));
        }
        let place = &mut self.segments[self.next];
        self.next = (self.next + 1) % LENT_MAX;
        if Arc::get_mut(place).is_none() {
            *place = Arc::new(Segment::empty(0));
        }
        fill(Arc::get_mut(place).expect("nobody else holds it"));
        Arc::clone(place)
    }
}

/// Versions of a segment, the latest last, and the sector at which each lies.
type Versions = Vec<(u64, Arc<Segment>)>;

/// One device.
pub struct Device {
    number: u32,
    devices: u32,
    drive: QuickDrive,
    last: Time,
    /// What was written in the run, by first sector, and how many sectors each takes.
    pages: BTreeMap<u64, (u32, Arc<Page<Token>>)>,
    /// Of each of its blocks, by `block / devices`, what was written in the run.
    segments: Vec<Versions>,
    lent: Lent,
    /// Rows of sectors that have been given up, or written over, since the run began.
    gone: Vec<Extent>,
    reads: u64,
    writes: u64,
    written: base::Bytes,
}

impl Device {
    /// An idle device, one of so many that share so many blocks.
    pub fn new(number: u32, devices: u32, blocks: u32, drive: QuickDrive) -> Device {
        let segments = vec![Versions::new(); blocks.div_ceil(devices) as usize];
        let (pages, lent, gone) = (BTreeMap::new(), Lent::default(), Vec::new());
        Device {
            number,
            devices,
            drive,
            last: Time::ZERO,
            pages,
            segments,
            lent,
            gone,
            reads: 0,
            writes: 0,
            written: base::Bytes::ZERO,
        }
    }

    /// Reads and writes so far.
    pub fn commands(&self) -> (u64, u64) {
        (self.reads, self.writes)
    }

    /// Bytes written so far.
    pub fn written(&self) -> base::Bytes {
        self.written
    }

    /// What the device has room for.
    pub fn capacity(&self) -> base::Bytes {
        self.drive.capacity()
    }

    /// Books an operation. A moment before that of an earlier one counts as that.
    pub fn submit(&mut self, now: Time, kind: CommandKind, extent: Option<Extent>) -> Done {
        self.last = self.last.max(now);
        match kind {
            CommandKind::Read => self.reads += 1,
            CommandKind::Write => self.writes += 1,
            CommandKind::Trim | CommandKind::Flush => {}
        }
        let extent = extent.unwrap_or(Extent { sector: 0, sectors: 1 });
        let sector = u64::from(SECTOR_BYTES);
        let (address, bytes) = (extent.sector * sector, base::Bytes::new(u64::from(extent.sectors) * sector));
        self.written += if kind == CommandKind::Write { bytes } else { base::Bytes::ZERO };
        self.drive.submit(self.last, Command { kind, address, bytes }).expect("programs keep to the device's capacity")
    }

    /// What the end of an operation brings.
    pub fn finish(&mut self, operation: &FlashOperation<Token>, preloaded: &PreloadedStore) -> FlashAnswer<Token> {
        match operation {
            FlashOperation::ReadSegment { block, pointer } => {
                FlashAnswer::Segment(self.segment(*block, *pointer, preloaded))
            }
            FlashOperation::ReadRecord { item } => FlashAnswer::Record(self.record(item, preloaded)),
            // Simulated keys are their own names.
            FlashOperation::ReadHead { .. } => FlashAnswer::Head(Err(Corrupt::Foreign { what: "name" })),
            FlashOperation::Write { extent, content } => {
                self.put(extent.sector, content.clone());
                FlashAnswer::Done
            }
            FlashOperation::Flush => FlashAnswer::Done,
            FlashOperation::Scan { extent } => FlashAnswer::Scanned(self.scan(*extent, preloaded)),
            FlashOperation::List { extent } => {
                let found = self.scan(*extent, preloaded);
                FlashAnswer::Listed(found.iter().map(|(sector, content)| (*sector, content.listed())).collect())
            }
            FlashOperation::ReadKind { sector } => {
                let found = self.scan(Extent { sector: *sector, sectors: 1 }, preloaded);
                FlashAnswer::Kind(found.first().map(|(_, content)| content.kind()))
            }
            FlashOperation::Trim { extent } => {
                self.trim(*extent);
                FlashAnswer::Done
            }
        }
    }

    /// Puts something where it was written.
    pub fn put(&mut self, sector: u64, content: Content<Token>) {
        match content {
            Content::Page(page) => {
                self.pages.insert(sector, (page.sectors(), page));
            }
            Content::Segment(segment) => {
                let versions = &mut self.segments[(segment.block / self.devices) as usize];
                versions.retain(|(other, _)| *other != sector);
                if versions.len() == VERSIONS_KEPT {
                    versions.remove(0);
                }
                versions.push((sector, segment));
            }
        }
    }

    fn segment(
        &mut self,
        block: u32,
        pointer: SegmentPointer,
        preloaded: &PreloadedStore,
    ) -> Result<Arc<Segment>, Corrupt> {
        let versions = &self.segments[(block / self.devices) as usize];
        let is_it =
            |segment: &Segment, sector: u64| sector == pointer.extent.sector && pointer.check(block, segment).is_ok();
        if let Some((_, segment)) = versions.iter().rev().find(|(sector, segment)| is_it(segment, *sector)) {
            return Ok(Arc::clone(segment));
        }
        let is_there = !self.is_gone(pointer.extent.sector);
        let first = is_there.then(|| preloaded.segment(block, pointer, &mut self.lent)).flatten();
        first.ok_or(Corrupt::Foreign { what: "segment" })
    }

    fn record(&self, item: &Item, preloaded: &PreloadedStore) -> Result<Record<Token>, Corrupt> {
        let sector = item.record.sector();
        if let Some((first, (sectors, page))) = self.pages.range(..=sector).next_back()
            && sector < first + u64::from(*sectors)
            && let Some((_, record)) = page.places(*first).find(|(place, _)| *place == item.record)
        {
            return item.check(record).map(|()| record.clone());
        }
        let first = preloaded.record(self.number, item).filter(|_| !self.is_gone(sector));
        first.ok_or(Corrupt::Foreign { what: "record" })
    }

    fn scan(&self, extent: Extent, preloaded: &PreloadedStore) -> Vec<(u64, Content<Token>)> {
        let end = extent.sector + u64::from(extent.sectors);
        let mut found = preloaded.scan(self.number, extent);
        found.retain(|(sector, _)| !self.is_gone(*sector));
        found.extend(
            self.pages.range(extent.sector..end).map(|(sector, (_, page))| (*sector, Content::Page(Arc::clone(page)))),
        );
        let written = self.segments.iter().flatten().filter(|(sector, _)| (extent.sector..end).contains(sector));
        found.extend(written.map(|(sector, segment)| (*sector, Content::Segment(Arc::clone(segment)))));
        found.sort_by_key(|(sector, _)| *sector);
        found
    }

    fn trim(&mut self, extent: Extent) {
        let end = extent.sector + u64::from(extent.sectors);
        let mut behind = self.pages.split_off(&extent.sector);
        self.pages.append(&mut behind.split_off(&end));
        for versions in &mut self.segments {
            versions.retain(|(sector, _)| !(extent.sector..end).contains(sector));
        }
        if !self.is_gone(extent.sector) {
            self.gone.push(extent);
        }
    }

    fn is_gone(&self, sector: u64) -> bool {
        self.gone.iter().any(|extent| (extent.sector..extent.sector + u64::from(extent.sectors)).contains(&sector))
    }
}
