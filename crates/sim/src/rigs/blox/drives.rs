//! The drives of one storage server: regions of software-defined flash (or of a medium that is
//! written in place), and what is written in them.

mod moving;
mod state;

use super::BuildError;
use base::{Bytes, Span, Time};
use blox::{BlockMove, CollectionStep, CollectionStream, Page, Value, VssdId};
use hardware::ssd::{
    Booked, Command, CommandKind, DieId, DirectConfig, DirectDrive, DriveError, Isolation, RegionConfig, RegionId,
    SdfConfig, SdfError, SoftwareDefinedFlash, Wear,
};

/// What a page of a vSSD holds, by number. Pages that were never written hold `Value(0)` and take
/// no memory by themselves: the table grows by chunks.
#[derive(Clone, Debug, Default)]
struct Contents(Vec<Option<Box<[u64; CHUNK]>>>);

const CHUNK: usize = 512;

impl Contents {
    fn get(&self, page: Page) -> Value {
        let (chunk, place) = (page.0 as usize / CHUNK, page.0 as usize % CHUNK);
        Value(self.0.get(chunk).and_then(Option::as_ref).map_or(0, |values| values[place]))
    }
    fn set(&mut self, page: Page, value: Value) {
        let (chunk, place) = (page.0 as usize / CHUNK, page.0 as usize % CHUNK);
        if self.0.len() <= chunk {
            self.0.resize(chunk + 1, None);
        }
        self.0[chunk].get_or_insert_with(|| Box::new([0; CHUNK]))[place] = value.0;
    }
}

/// One vSSD on its drive.
struct Volume {
    drive: usize,
    region: RegionId,
    contents: Contents,
    streams: Vec<CollectionStream<DieId>>,
    /// What the node was last told.
    reported: (u32, u32),
}

/// What came of a step of collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// When it ends; now when there was nothing.
    pub end: Time,
    /// A block has become free.
    pub freed: bool,
    /// There was nothing to collect.
    pub nothing: bool,
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Taken, and done at this time.
    At(Time),
    /// There is no free block.
    Refused,
    /// The flash can no longer hold the vSSD's data.
    WornOut,
}

/// What drives are made of.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    /// How many a server has.
    pub count: u32,
    /// Their flash.
    pub flash: SdfConfig,
    /// The medium in its place that is written in place; its regions are kept all the same, and
    /// hold no data.
    pub direct: Option<DirectConfig>,
    /// Controller and host link of a read and of a write, beside the flash.
    pub overhead: [Span; 2],
    /// What one request is about.
    pub page: Bytes,
    /// Pages that a die moves before host requests get their turn.
    pub burst: u32,
}

/// The drives of one server.
pub struct Drives {
    config: DriveConfig,
    drives: Vec<SoftwareDefinedFlash>,
    direct: Vec<DirectDrive>,
    /// In the order of their making.
    volumes: Vec<Volume>,
    /// By the number of a vSSD its place among them, or [`NOWHERE`].
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Drives {
    /// Equal drives without regions.
    pub fn new(config: &DriveConfig) -> Result<Drives, BuildError> {
        let flash = (0..config.count).map(|_| SoftwareDefinedFlash::new(config.flash.clone()).map_err(BuildError::of));
        let direct = config.direct.iter().flat_map(|medium| (0..config.count).map(|_| DirectDrive::new(*medium)));
        Ok(Drives {
            drives: flash.collect::<Result<_, _>>()?,
            direct: direct.collect::<Result<_, DriveError>>().map_err(BuildError::of)?,
            volumes: Vec::new(),
            places: Vec::new(),
            config: config.clone(),
        })
    }

    /// Makes a vSSD of a region of a drive, with so many streams of collection.
    pub fn create(&mut self, vssd: VssdId, drive: usize, region: RegionConfig, streams: u32) -> Result<(), SdfError> {
        let dies = region.dies.clone();
        let region = self.drives[drive].create(region)?;
        let streams = CollectionStream::deal(&dies, streams);
        let contents = Contents::default();
        let place = self.volumes.len() as u32;
        self.volumes.push(Volume { drive, region, contents, streams, reported: (0, 0) });
        if self.places.len() <= vssd.index() {
            self.places.resize(vssd.index() + 1, NOWHERE);
        }
        self.places[vssd.index()] = place;
        Ok(())
    }

    /// Channels of a drive that no region uses, in order.
    pub fn spare_channels(&self, drive: usize) -> Vec<u32> {
        let flash = &self.drives[drive];
        let on_drive = self.volumes.iter().filter(|volume| volume.drive == drive);
        let used: Vec<u32> = on_drive
            .flat_map(|volume| flash.dies(volume.region).unwrap_or(&[]))
            .map(|die| flash.geometry().channel_of(*die))
            .collect();
        (0..flash.geometry().channels).filter(|channel| !used.contains(channel)).collect()
    }

    /// How many drives there are.
    pub fn count(&self) -> usize {
        self.drives.len()
    }

    /// The dies of whole channels of a drive.
    pub fn dies_of(&self, channels: &[u32]) -> Vec<DieId> {
        let geometry = self.drives[0].geometry();
        channels.iter().flat_map(|channel| geometry.dies_of(*channel)).collect()
    }

    /// Fills a vSSD with data from its first page on. Then overwrites the pages that `next` names
    /// until only the share `keep` of its free blocks is left. Takes no time.
    pub fn prepare(
        &mut self,
        vssd: VssdId,
        pages: u64,
        keep: f64,
        mut next: impl FnMut() -> u64,
    ) -> Result<(), SdfError> {
        if self.config.direct.is_some() {
            return Ok(());
        }
        let (flash, region) = self.flash(vssd);
        (0..pages).try_for_each(|page| flash.write_untimed(region, page))?;
        let goal = flash.free_ratio(region)? * keep;
        // A block takes so many pages at most; a device that frees more than it takes would never
        // get there.
        let most = flash.geometry().units();
        for _ in 0..most {
            if flash.free_ratio(region)? <= goal {
                break;
            }
            flash.write_untimed(region, next())?;
        }
        Ok(())
    }

    /// Reads a page: what it holds, and when the answer is there.
    pub fn read(&mut self, now: Time, vssd: VssdId, page: Page) -> Result<(Value, Booked), BuildError> {
        let (bytes, overhead) = (self.config.page, self.config.overhead[0]);
        let value = self.volume(vssd).contents.get(page);
        if self.config.direct.is_some() {
            return Ok((value, self.access(now, vssd, page, CommandKind::Read)?));
        }
        let (flash, region) = self.flash(vssd);
        let booked = flash.read(now, region, page.0, bytes).map_err(BuildError::of)?;
        Ok((value, Booked { end: booked.end + overhead, service: booked.service + overhead, ..booked }))
    }

    /// Writes a page. Reads return it from now on. It is done when its program is, or at once while
    /// its flash page gathers more pages in memory that survives a loss of power.
    pub fn write(&mut self, now: Time, vssd: VssdId, page: Page, value: Value) -> Written {
        let overhead = self.config.overhead[1];
        let stored = if self.config.direct.is_some() {
            self.access(now, vssd, page, CommandKind::Write).map(|booked| booked.end).map_err(|_| Written::WornOut)
        } else {
            let (flash, region) = self.flash(vssd);
            match flash.write(now, region, page.0) {
                Ok(booked) => Ok(booked.program.map_or(now, |program| program.end) + overhead),
                Err(error) if error.is_no_free_block() => Err(Written::Refused),
                Err(_) => Err(Written::WornOut),
            }
        };
        match stored {
            Ok(end) => {
                self.volume(vssd).contents.set(page, value);
                Written::At(end)
            }
            Err(why) => why,
        }
    }

    /// A page of a medium that is written in place. Its vSSDs lie one behind the other, over and
    /// over.
    fn access(&mut self, now: Time, vssd: VssdId, page: Page, kind: CommandKind) -> Result<Booked, BuildError> {
        let Volume { drive, region, .. } = self.volumes[self.place(vssd)];
        let bytes = self.config.page;
        let size = self.drives[drive].geometry().physical_bytes().count();
        let medium = &mut self.direct[drive];
        let last = medium.capacity().count() / bytes.count();
        let address = (u64::from(region.0) * size / bytes.count() + page.0) % last * bytes.count();
        let done = medium.submit(now, Command { kind, address, bytes }).map_err(BuildError::of)?;
        let (wait, collection_wait, service) = (done.wait, done.collection_wait, done.service);
        Ok(Booked { end: done.end, wait, collection_wait, service, ..Booked::without_flash(now, Span::ZERO) })
    }

    /// Books the next steps of one of a vSSD's streams of collection, up to a burst.
    pub fn collect(&mut self, now: Time, vssd: VssdId, stream: u32) -> Result<Collected, SdfError> {
        let mut collected = Collected { end: now, freed: false, nothing: true };
        let (place, burst) = (self.place(vssd), self.config.burst);
        let Volume { drive, region, streams, .. } = &mut self.volumes[place];
        let Some(stream) = streams.get_mut(stream as usize) else { return Ok(collected) };
        let flash = &mut self.drives[*drive];
        stream.collect(burst, |die| -> Result<_, SdfError> {
            let step = flash.collect_step(now, *region, Some(die))?;
            let Some(end) = step.end() else { return Ok(CollectionStep::Nothing) };
            (collected.nothing, collected.end) = (false, collected.end.max(end));
            collected.freed |= step.freed();
            Ok(if step.freed() { CollectionStep::Freed } else { CollectionStep::Moved })
        })?;
        Ok(collected)
    }

    /// Free and all blocks of a vSSD, if they are not what was reported last.
    pub fn changed_blocks(&mut self, vssd: VssdId) -> Option<(u32, u32)> {
        let (flash, region) = self.flash(vssd);
        let layer = flash.layer(region).ok()?;
        let blocks = (layer.free_blocks(), layer.owned_blocks());
        let volume = self.volume(vssd);
        (volume.reported != blocks).then(|| {
            volume.reported = blocks;
            blocks
        })
    }

    /// Moves free blocks from one vSSD to another of its channel group; how many have moved.
    pub fn lend(&mut self, moved: BlockMove) -> BlockMove {
        let (from, to) = (self.region_of(moved.from), self.region_of(moved.to));
        let (flash, _) = self.flash(moved.from);
        let blocks = if flash.lend(from, to, moved.blocks).is_ok() { moved.blocks } else { 0 };
        BlockMove { blocks, ..moved }
    }

    /// Gives a borrower's free blocks back; how many went.
    pub fn give_back(&mut self, moved: BlockMove) -> BlockMove {
        let (flash, region) = self.flash(moved.from);
        let blocks = flash.return_lent(region).unwrap_or(0).min(moved.blocks);
        BlockMove { blocks, ..moved }
    }

    /// The vSSDs here, in order.
    pub fn vssds(&self) -> impl Iterator<Item = VssdId> + '_ {
        let numbered = (0..).map(VssdId).zip(&self.places);
        numbered.filter(|(_, place)| **place != NOWHERE).map(|(vssd, _)| vssd)
    }

    /// The region of a vSSD with its drive.
    pub fn region(&self, vssd: VssdId) -> (&SoftwareDefinedFlash, RegionId) {
        let volume = &self.volumes[self.place(vssd)];
        (&self.drives[volume.drive], volume.region)
    }

    /// Erase counts of all drives.
    pub fn wear(&self) -> impl Iterator<Item = Wear> + '_ {
        self.drives.iter().filter_map(SoftwareDefinedFlash::device_wear)
    }

    fn volume(&mut self, vssd: VssdId) -> &mut Volume {
        let place = self.place(vssd);
        &mut self.volumes[place]
    }

    fn region_of(&self, vssd: VssdId) -> RegionId {
        self.volumes[self.place(vssd)].region
    }

    fn flash(&mut self, vssd: VssdId) -> (&mut SoftwareDefinedFlash, RegionId) {
        let volume = &self.volumes[self.place(vssd)];
        (&mut self.drives[volume.drive], volume.region)
    }

    /// A node names only vSSDs that it hosts: another has no place, and panics.
    fn place(&self, vssd: VssdId) -> usize {
        self.places[vssd.index()] as usize
    }
}

/// The region of whole channels, or of a share of each die's blocks.
pub fn region(dies: Vec<DieId>, share: Option<std::ops::Range<u32>>, rest: RegionConfig) -> RegionConfig {
    let isolation = share.map_or(Isolation::Hardware, |blocks| Isolation::Software { blocks });
    RegionConfig { dies, isolation, ..rest }
}
