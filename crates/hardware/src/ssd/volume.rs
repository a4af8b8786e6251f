//! A translation layer put to work on an array: what the layer answers becomes booked operations.
//! Regions of software-defined flash and whole drives are made of it.

use super::array::{Booked, FlashArray, FlashOperation, Purpose};
use super::ftl::{EraseOutcome, FtlError, TranslationLayer};
use super::geometry::{BlockId, DieId, PageAddress, UnitAddress};
use base::Time;

/// One step of collection, paced by its owner, which requests the next one when this has ended, so
/// that requests run in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectStep {
    /// A page was read out of the victim. If that filled a page, the next step on this die programs
    /// it.
    Read(Booked),
    /// A page that moved data had filled was programmed.
    Programmed(Booked),
    /// The victim was empty and was erased. `freed` is false when that was its last time.
    Erased {
        /// The erase.
        booked: Booked,
        /// Whether the region has a free block more.
        freed: bool,
    },
    /// There is nothing to gain.
    Nothing,
}

/// Where a unit is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Never written, or given up.
    Nowhere,
    /// In the controller's memory: its page has not been programmed.
    InMemory,
    /// In flash.
    InFlash(UnitAddress),
}

/// What a step of collection does to the flash.
enum Move {
    /// Reads the valid units of a page of the victim.
    Read { page: PageAddress, units: u32 },
    /// Programs a page that moved units had filled.
    Program(PageAddress),
    /// Erases the victim. `freed` is false when that was its last time.
    Erase { block: BlockId, freed: bool },
}

/// The layer, and what collection has underway.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    pub(super) layer: TranslationLayer,
    /// For each die of the array, the page that its last step of collection filled and that its
    /// next step programs.
    filled: Vec<Option<PageAddress>>,
    filled_pages: u32,
}

impl CollectStep {
    /// Returns the time at which it ends, if it is one.
    pub fn end(&self) -> Option<Time> {
        self.booked().map(|booked| booked.end)
    }
    /// Its operation, if it is one.
    pub fn booked(&self) -> Option<Booked> {
        match self {
            CollectStep::Read(booked) | CollectStep::Programmed(booked) => Some(*booked),
            CollectStep::Erased { booked, .. } => Some(*booked),
            CollectStep::Nothing => None,
        }
    }
    /// Returns whether it has freed a block.
    pub fn freed(&self) -> bool {
        matches!(self, CollectStep::Erased { freed: true, .. })
    }
}

impl Volume {
    pub(super) fn new(layer: TranslationLayer) -> Volume {
        let dies = layer.config().geometry.dies() as usize;
        Volume { layer, filled: vec![None; dies], filled_pages: 0 }
    }
    /// Returns the place of a unit.
    pub(super) fn find(&self, unit: u64) -> Found {
        match self.layer.locate(unit) {
            None => Found::Nowhere,
            Some(at) if self.is_unprogrammed(at.page) => Found::InMemory,
            Some(at) => Found::InFlash(at),
        }
    }
    /// Takes the next step of collection on a die, or on that with the best victim.
    pub(super) fn collect_step(&mut self, now: Time, array: &mut FlashArray, die: Option<DieId>) -> CollectStep {
        match self.next_move(die) {
            None => CollectStep::Nothing,
            Some(Move::Program(page)) => {
                CollectStep::Programmed(array.submit(now, FlashOperation::Program { page }, Purpose::Collection))
            }
            Some(Move::Read { page, units }) => {
                let bytes = array.geometry().unit * u64::from(units);
                let read = FlashOperation::Read { page, bytes, retries: 0 };
                CollectStep::Read(array.submit(now, read, Purpose::Collection))
            }
            Some(Move::Erase { block, freed }) => {
                // The block may be written at once: its programs wait on its die until the erase is
                // done.
                let booked = array.submit(now, FlashOperation::Erase { block }, Purpose::Collection);
                CollectStep::Erased { booked, freed }
            }
        }
    }
    /// The same step without taking time: what it leaves behind is the same to the page. False if
    /// there is nothing to gain.
    pub(super) fn collect_step_untimed(&mut self, die: DieId) -> bool {
        self.next_move(Some(die)).is_some()
    }
    /// Collects a victim without taking time; what was underway counts as done. Returns whether a
    /// block was freed.
    pub(super) fn collect_untimed(&mut self, die: Option<DieId>) -> bool {
        self.settle();
        let Some(victim) = self.layer.victim(die) else { return false };
        while self.layer.relocate_next(victim).is_some() {}
        self.layer.erased(victim) == EraseOutcome::Free
    }
    /// Writes a unit without taking time, and collects first if that is needed. Ends in any case:
    /// every round of collection frees a block or is the last.
    pub(super) fn write_untimed(&mut self, unit: u64) -> Result<(), FtlError> {
        loop {
            match self.layer.write(unit) {
                Err(FtlError::NoFreeBlock) if self.collect_untimed(None) => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
    }
    /// Lets pages that wait for their program count as programmed.
    pub(super) fn settle(&mut self) {
        if self.filled_pages > 0 {
            self.filled.fill(None);
            self.filled_pages = 0;
        }
    }

    fn next_move(&mut self, die: Option<DieId>) -> Option<Move> {
        if let Some(page) = self.take_filled(die) {
            return Some(Move::Program(page));
        }
        let victim = self.layer.victim(die)?;
        let Some(moved) = self.layer.relocate_next(victim) else {
            return match self.layer.erased(victim) {
                EraseOutcome::Free => Some(Move::Erase { block: victim, freed: true }),
                EraseOutcome::Bad => Some(Move::Erase { block: victim, freed: false }),
                EraseOutcome::Refused => None,
            };
        };
        if let Some(page) = moved.programs {
            self.put_filled(self.layer.config().geometry.die_of(moved.from.block), page);
        }
        Some(Move::Read { page: moved.from, units: moved.units })
    }
    fn is_unprogrammed(&self, page: PageAddress) -> bool {
        self.layer.is_gathering(page) || (self.filled_pages > 0 && self.filled.contains(&Some(page)))
    }
    fn take_filled(&mut self, die: Option<DieId>) -> Option<PageAddress> {
        if self.filled_pages == 0 {
            return None;
        }
        let page = match die {
            Some(die) => self.filled[die.0 as usize].take(),
            None => self.filled.iter_mut().find_map(Option::take),
        };
        self.filled_pages -= u32::from(page.is_some());
        page
    }
    fn put_filled(&mut self, die: DieId, page: PageAddress) {
        self.filled[die.0 as usize] = Some(page);
        self.filled_pages += 1;
    }
}
