//! A server's flash: the data of each vSSD in a file, and the blocks, the collection and the times
//! of an emulated drive beside it.
//!
//! The drive is [`hardware::ssd::SoftwareDefinedFlash`], which the simulator uses too: it knows
//! which blocks are free, what a step of collection moves, and when an operation ends. A page's
//! data lie at the page's number in the vSSD's file, whatever block the drive has them in. Its
//! value and a checksum are in a second file ([`crate::notes`]). Without a sync, both survive the
//! process, not the machine.

use crate::kept_pages::{Content, KeptPages};
use base::{Seed, Time};
use blox::{CollectionStep, CollectionStream, PAGE_BYTES, Page, Value, VssdId};
use hardware::ssd::{Booked, DieId, Isolation, RegionConfig, RegionId, SdfConfig, SoftwareDefinedFlash, VictimPolicy};
use runtime::error::StartError;
use rustc_hash::FxHashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Pages that a die moves before requests of clients have their turn.
const BURST: u32 = 16;

struct Vssd {
    region: RegionId,
    streams: Vec<CollectionStream<DieId>>,
    pages: Pages,
    /// Free and all blocks that the program was told last.
    reported: (u32, u32),
}

/// What a vSSD holds.
enum Pages {
    Files(KeptPages),
    /// The values alone, in a twin.
    Values(Vec<Value>),
}

/// What came of a step of collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collected {
    pub end: Time,
    pub freed: bool,
    pub nothing: bool,
}

/// The vSSDs of a server.
pub(crate) struct Flash {
    drive: SoftwareDefinedFlash,
    /// Where its files are; none in a twin, which has no data.
    folder: Option<PathBuf>,
    /// Values that a twin begins with.
    given: FxHashMap<VssdId, Vec<(u64, u64)>>,
    vssds: FxHashMap<VssdId, Vssd>,
    /// Blocks of each die that vSSDs have: the rest is free for others.
    taken: u32,
    plan: plan::rack::Flash,
}

impl Flash {
    /// A drive whose files are in `folder`.
    pub fn open(config: SdfConfig, folder: &Path, plan: &plan::rack::Flash) -> Result<Flash, StartError> {
        fs::create_dir_all(folder).map_err(|error| StartError::file(folder, error))?;
        Flash::new(config, Some(folder.into()), Vec::new(), plan)
    }

    /// A drive without files, whose pages have these values and no data.
    pub fn without_data(
        config: SdfConfig,
        values: Vec<(VssdId, Vec<(u64, u64)>)>,
        plan: &plan::rack::Flash,
    ) -> Result<Flash, StartError> {
        Flash::new(config, None, values, plan)
    }

    fn new(
        config: SdfConfig,
        folder: Option<PathBuf>,
        given: Vec<(VssdId, Vec<(u64, u64)>)>,
        plan: &plan::rack::Flash,
    ) -> Result<Flash, StartError> {
        let drive = folder.as_deref().unwrap_or(Path::new("a twin's flash")).display().to_string();
        let wrong = |reason: String| StartError::Drive { drive, reason };
        let drive = SoftwareDefinedFlash::new(config).map_err(|error| wrong(error.to_string()))?;
        let given = given.into_iter().collect();
        Ok(Flash { drive, folder, given, vssds: FxHashMap::default(), taken: 0, plan: plan.clone() })
    }

    /// The folder of its files, for messages.
    pub fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new(""))
    }

    /// Written pages with their values, by vSSD.
    pub fn values(&self) -> Vec<(VssdId, Vec<(u64, u64)>)> {
        let written = |vssd: &Vssd| {
            let values = (0..).zip(vssd.pages.values());
            values.filter(|(_, value)| *value != Value(0)).map(|(page, value)| (page, value.0)).collect()
        };
        let mut all: Vec<_> = self.vssds.iter().map(|(id, vssd)| (*id, written(vssd))).collect();
        all.sort_unstable_by_key(|(id, _)| id.0);
        all
    }

    /// Opens a vSSD, or makes an empty one.
    pub fn add(&mut self, id: VssdId, pages: u64) -> io::Result<()> {
        let geometry = *self.drive.geometry();
        let blocks = u32::try_from(self.plan.blocks_for(pages)).unwrap_or(u32::MAX);
        if blocks > geometry.blocks_per_die().saturating_sub(self.taken) {
            let left = geometry.blocks_per_die() - self.taken;
            let reason = format!("vSSD {} needs {blocks} blocks of each channel, and {left} are left", id.0);
            return Err(io::Error::new(io::ErrorKind::StorageFull, reason));
        }
        let dies: Vec<DieId> = (0..geometry.dies()).map(DieId).collect();
        let region = RegionConfig {
            dies: dies.clone(),
            isolation: Isolation::Software { blocks: self.taken..self.taken + blocks },
            logical_units: pages,
            victim: VictimPolicy::Greedy,
            hot_cold: false,
            endurance: None,
            seed: Seed(u64::from(id.0)),
        };
        let region = self.drive.create(region).map_err(io::Error::other)?;
        self.taken += blocks;
        let pages = self.kept(id, pages)?;
        // The blocks are not where they were, but as full.
        for (page, _) in (0..).zip(pages.values()).filter(|(_, value)| *value != Value(0)) {
            self.drive.write_untimed(region, page).map_err(io::Error::other)?;
        }
        let streams = CollectionStream::deal(&dies, geometry.channels);
        self.vssds.insert(id, Vssd { region, streams, pages, reported: (0, 0) });
        Ok(())
    }

    fn kept(&mut self, id: VssdId, pages: u64) -> io::Result<Pages> {
        if let Some(folder) = &self.folder {
            return KeptPages::open(folder, id, pages, self.plan.reserve).map(Pages::Files);
        }
        let mut values = vec![Value(0); pages as usize];
        for (page, value) in self.given.remove(&id).unwrap_or_default() {
            *values.get_mut(page as usize).ok_or_else(beyond)? = Value(value);
        }
        Ok(Pages::Values(values))
    }

    /// Reads a page: what it has, and when the drive has it. `data` has its bytes if it is sound.
    /// `is_checked`: its note is looked at too, which no reader needs.
    pub fn read(
        &mut self,
        now: Time,
        id: VssdId,
        page: Page,
        is_checked: bool,
        data: &mut [u8],
    ) -> io::Result<(Content, Time)> {
        let vssd = known(&mut self.vssds, id)?;
        if page.0 >= vssd.pages.len() {
            return Err(beyond());
        }
        let content = match &mut vssd.pages {
            Pages::Files(files) => {
                let content = files.read(page, data)?;
                if is_checked {
                    files.check_note(page)?;
                }
                content
            }
            Pages::Values(values) => {
                data.fill(0);
                match values[page.0 as usize] {
                    Value::ROTTEN => Content::Rotten(None),
                    value => Content::Sound(value),
                }
            }
        };
        let bytes = base::Bytes::new(u64::from(PAGE_BYTES));
        let booked: Booked = self.drive.read(now, vssd.region, page.0, bytes).map_err(io::Error::other)?;
        Ok((content, booked.end))
    }

    /// Writes a page; when the drive has it, or `None` where it has no free block. What is read
    /// from now on is the new page.
    pub fn write(&mut self, now: Time, id: VssdId, page: Page, value: Value, data: &[u8]) -> io::Result<Option<Time>> {
        let vssd = known(&mut self.vssds, id)?;
        if page.0 >= vssd.pages.len() {
            return Err(beyond());
        }
        let end = match self.drive.write(now, vssd.region, page.0) {
            Ok(booked) => booked.program.map_or(now, |program| program.end),
            Err(error) if error.is_no_free_block() => return Ok(None),
            Err(error) => return Err(io::Error::other(error)),
        };
        vssd.pages.write(page, value, data)?;
        Ok(Some(end))
    }

    /// Writes a page that was in memory only, at an orderly end.
    pub fn save(&mut self, id: VssdId, page: Page, value: Value, data: &[u8]) -> io::Result<()> {
        known(&mut self.vssds, id)?.pages.write(page, value, data)
    }

    /// Has all files survive a loss of power.
    pub fn sync(&self) -> io::Result<()> {
        self.vssds.values().try_for_each(|vssd| match &vssd.pages {
            Pages::Files(files) => files.sync(),
            Pages::Values(_) => Ok(()),
        })
    }

    /// Books the next steps of a stream of collection.
    pub fn collect(&mut self, now: Time, id: VssdId, stream: u32) -> io::Result<Collected> {
        let mut collected = Collected { end: now, freed: false, nothing: true };
        let vssd = known(&mut self.vssds, id)?;
        let Some(stream) = vssd.streams.get_mut(stream as usize) else { return Ok(collected) };
        let (drive, region) = (&mut self.drive, vssd.region);
        let stepped = stream.collect(BURST, |die| {
            let step = drive.collect_step(now, region, Some(die))?;
            let Some(end) = step.end() else { return Ok(CollectionStep::Nothing) };
            (collected.nothing, collected.end) = (false, collected.end.max(end));
            collected.freed |= step.freed();
            Ok::<_, hardware::ssd::SdfError>(if step.freed() { CollectionStep::Freed } else { CollectionStep::Moved })
        });
        stepped.map(|()| collected).map_err(io::Error::other)
    }

    /// Free and all blocks of a vSSD, if they are not what was told last.
    pub fn changed_blocks(&mut self, id: VssdId) -> Option<(u32, u32)> {
        let vssd = self.vssds.get_mut(&id)?;
        let layer = self.drive.layer(vssd.region).ok()?;
        let blocks = (layer.free_blocks(), layer.owned_blocks());
        (std::mem::replace(&mut vssd.reported, blocks) != blocks).then_some(blocks)
    }
}

impl Pages {
    fn len(&self) -> u64 {
        match self {
            Pages::Files(files) => files.values().len() as u64,
            Pages::Values(values) => values.len() as u64,
        }
    }

    fn values(&self) -> Box<dyn ExactSizeIterator<Item = Value> + '_> {
        match self {
            Pages::Files(files) => Box::new(files.values()),
            Pages::Values(values) => Box::new(values.iter().copied()),
        }
    }

    fn write(&mut self, page: Page, value: Value, data: &[u8]) -> io::Result<()> {
        match self {
            Pages::Files(files) => files.write(page, value, data),
            Pages::Values(values) => {
                values[page.0 as usize] = value;
                Ok(())
            }
        }
    }
}

fn known(vssds: &mut FxHashMap<VssdId, Vssd>, id: VssdId) -> io::Result<&mut Vssd> {
    vssds.get_mut(&id).ok_or_else(|| io::Error::other(format!("vSSD {} is not here", id.0)))
}

fn beyond() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the page is beyond the vSSD")
}
