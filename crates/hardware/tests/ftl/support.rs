//! Small arrays, and flash that keeps data so that what a layer says can be believed or not.

use base::{Bytes, Seed};
use hardware::ssd::{
    BlockId, DieId, EraseOutcome, FtlConfig, FtlError, Geometry, SpareBlock, TranslationLayer, UnitAddress,
    VictimPolicy,
};

/// Two channels with two dies of two planes, `blocks` blocks a die of `pages` pages with `units`
/// units each.
pub fn geometry(blocks: u32, pages: u32, units: u64) -> Geometry {
    Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: blocks / 2,
        pages_per_block: pages,
        page: Bytes::new(4096 * units),
        unit: Bytes::new(4096),
    }
}

/// Greedy, no separation, endless.
pub fn config(geometry: Geometry, logical_units: u64) -> FtlConfig {
    let (victim, hot_cold, endurance, seed) = (VictimPolicy::Greedy, false, None, Seed(7));
    FtlConfig { geometry, logical_units, victim, hot_cold, endurance, seed }
}

/// All blocks of an array.
pub fn all(geometry: Geometry) -> impl Iterator<Item = BlockId> {
    (0..geometry.blocks()).map(BlockId)
}

/// A layer over a whole array.
pub fn layer(config: FtlConfig) -> TranslationLayer {
    let blocks = all(config.geometry);
    TranslationLayer::new(config, blocks).expect("the test's array has spare blocks")
}

/// Writes, and collects garbage whenever that is asked for.
pub fn write(layer: &mut TranslationLayer, unit: u64) -> Result<(), FtlError> {
    loop {
        match layer.write(unit) {
            Err(FtlError::NoFreeBlock) => collect(layer),
            other => return other.map(drop),
        }
    }
}

/// Collects one victim from wherever.
pub fn collect(layer: &mut TranslationLayer) {
    let victim = layer.victim(None).expect("a layer that wants garbage collected has a victim");
    empty(layer, victim);
}

/// Moves what is valid in a victim and erases it.
pub fn empty(layer: &mut TranslationLayer, victim: BlockId) {
    while layer.relocate_next(victim).is_some() {}
    assert_ne!(layer.erased(victim), EraseOutcome::Refused);
}

/// A layer on flash that holds, for each physical unit, whose data it has and in which version.
pub struct Flash {
    pub layer: TranslationLayer,
    geometry: Geometry,
    cells: Vec<Option<(u64, u64)>>,
    /// By logical unit: the version last written; `None` if it has none or was trimmed.
    latest: Vec<Option<u64>>,
    lent: Vec<SpareBlock>,
    version: u64,
}

impl Flash {
    pub fn new(layer: TranslationLayer) -> Flash {
        let geometry = layer.config().geometry;
        let latest = vec![None; layer.logical_units() as usize];
        Flash { layer, geometry, cells: vec![None; geometry.units() as usize], latest, lent: Vec::new(), version: 0 }
    }
    /// Writes if there is room, and says whether.
    pub fn write(&mut self, unit: u64) -> bool {
        let Ok(written) = self.layer.write(unit) else { return false };
        self.version += 1;
        assert_eq!(self.layer.locate(unit), Some(written.at));
        self.program(written.at, (unit, self.version));
        self.latest[unit as usize] = Some(self.version);
        true
    }
    pub fn trim(&mut self, unit: u64) {
        assert_eq!(self.layer.trim(unit), self.latest[unit as usize].is_some());
        self.latest[unit as usize] = None;
    }
    /// Moves up to `pages` pages of a die's victim, and erases it when it is empty.
    pub fn collect(&mut self, die: Option<DieId>, pages: u32) {
        if let Some(victim) = self.layer.victim(die) {
            self.move_out(victim, pages);
        }
    }
    pub fn level(&mut self) {
        if let Some(victim) = self.layer.level_step(1) {
            self.move_out(victim, 3);
        }
    }
    pub fn collect_block(&mut self, block: BlockId) {
        if self.layer.collect_block(block) {
            self.move_out(block, 2);
        }
    }
    pub fn lend(&mut self, count: u32) {
        let lent = self.layer.take_free(count);
        assert!(lent.iter().all(|spare| self.cells_of(spare.block).iter().all(Option::is_none)));
        self.lent.extend(lent);
    }
    pub fn take_back(&mut self) {
        let lent = std::mem::take(&mut self.lent);
        self.layer.give(&lent).expect("blocks that were lent are welcome back");
    }
    /// Every unit reads as it was last written, and the books are in order.
    pub fn assert_all_is_well(&self) {
        self.layer.check().expect("the books are in order");
        for (unit, latest) in (0u64..).zip(&self.latest) {
            let read = self.layer.locate(unit).map(|at| self.cells[self.cell(at)]);
            assert_eq!(read, latest.map(|version| Some((unit, version))), "unit {unit}");
        }
    }

    fn move_out(&mut self, victim: BlockId, pages: u32) {
        for _ in 0..pages {
            let Some(relocation) = self.layer.relocate_next(victim) else {
                assert_ne!(self.layer.erased(victim), EraseOutcome::Refused);
                self.cells_of_mut(victim).fill(None);
                return;
            };
            self.move_page(relocation.from, relocation.units);
        }
    }
    fn move_page(&mut self, from: hardware::ssd::PageAddress, units: u32) {
        let mut moved = 0;
        for slot in 0..self.geometry.units_per_page() {
            let source = self.cell(UnitAddress { page: from, slot });
            let Some((unit, version)) =
                self.cells[source].filter(|(unit, version)| self.latest[*unit as usize] == Some(*version))
            else {
                continue;
            };
            let target = self.layer.locate(unit).expect("a unit that was moved lies somewhere");
            self.program(target, (unit, version));
            moved += 1;
        }
        assert_eq!(moved, units);
    }
    /// Flash cannot be written twice.
    fn program(&mut self, at: UnitAddress, data: (u64, u64)) {
        let cell = self.cell(at);
        assert_eq!(self.cells[cell], None, "{at:?} is written without having been erased");
        self.cells[cell] = Some(data);
    }
    fn cell(&self, at: UnitAddress) -> usize {
        let page = at.page.block.0 * self.geometry.pages_per_block + at.page.page;
        (page * self.geometry.units_per_page() + at.slot) as usize
    }
    fn cells_of(&self, block: BlockId) -> &[Option<(u64, u64)>] {
        let units = self.geometry.units_per_block() as usize;
        &self.cells[block.0 as usize * units..(block.0 as usize + 1) * units]
    }
    fn cells_of_mut(&mut self, block: BlockId) -> &mut [Option<(u64, u64)>] {
        let units = self.geometry.units_per_block() as usize;
        &mut self.cells[block.0 as usize * units..(block.0 as usize + 1) * units]
    }
}
