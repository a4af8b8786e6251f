//! What a drive is made of, and how long its parts take.

use base::{Bytes, Rate, Span};
use serde::Serialize;

/// Channels, dies, planes, blocks and pages. A die (LUN) executes one operation at a time; its
/// planes only multiply blocks and the pages that one operation moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// Buses between controller and flash.
    pub channels: u32,
    /// Dies on each bus.
    pub dies_per_channel: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Erase blocks of a plane.
    pub blocks_per_plane: u32,
    /// Program units of a block.
    pub pages_per_block: u32,
    /// A page's data.
    pub page: Bytes,
    /// What is mapped as one: a page, or an equal part of it (several units are gathered into one
    /// program).
    pub unit: Bytes,
}

/// A number that does not fit the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct GeometryError {
    /// The field of [`Geometry`] or [`Timing`].
    pub field: &'static str,
    /// What was got and what is allowed, with the numbers.
    pub reason: String,
}

/// How long the parts of a drive take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// Array time of each kind of page, in the order in which kinds alternate inside a block (one
    /// entry for SLC, lower and upper for MLC, three for TLC).
    pub pages: Vec<PageTimes>,
    /// Array time of an erase.
    pub erase: Span,
    /// Data rate of a channel's bus.
    pub channel: Rate,
    /// What a transfer costs on the bus beside its data (command and address cycles).
    pub command: Span,
    /// Whether a read may interrupt a program or an erase.
    pub suspension: Suspension,
}

/// Array times of one kind of page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PageTimes {
    /// Array to register.
    pub read: Span,
    /// Register to array.
    pub program: Span,
}

/// Whether a read may interrupt a program or an erase on its die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suspension {
    /// It waits.
    None,
    /// It starts after `overhead`; the interrupted operation ends later by the read and twice the
    /// overhead.
    Reads {
        /// To stop, and again to go on.
        overhead: Span,
        /// How often one operation lets itself be interrupted.
        limit: u32,
    },
}

impl Geometry {
    /// Most units that a block may have, so that a unit's place in its block takes 16 bits.
    pub const UNITS_PER_BLOCK_MAX: u64 = 1 << 16;
    /// Most units that an array may have (256 TiB of 4 KiB units), so that a unit's number fits the
    /// packed tables.
    pub const UNITS_MAX: u64 = 1 << 36;

    /// Whether all numbers are there and fit each other. Everything below takes a checked geometry.
    pub fn check(&self) -> Result<(), GeometryError> {
        self.check_counts()?;
        self.check_sizes()?;
        self.check_limits()
    }
    /// Dies of the array.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }
    /// Erase blocks of a die, all its planes together.
    pub fn blocks_per_die(&self) -> u32 {
        self.planes_per_die * self.blocks_per_plane
    }
    /// Erase blocks of the array.
    pub fn blocks(&self) -> u32 {
        self.dies() * self.blocks_per_die()
    }
    /// Mapped units in a page.
    pub fn units_per_page(&self) -> u32 {
        (self.page.count() / self.unit.count()) as u32
    }
    /// Mapped units in a block.
    pub fn units_per_block(&self) -> u32 {
        self.pages_per_block * self.units_per_page()
    }
    /// Mapped units in the array.
    pub fn units(&self) -> u64 {
        u64::from(self.blocks()) * u64::from(self.units_per_block())
    }
    /// What a block holds.
    pub fn block_bytes(&self) -> Bytes {
        self.page * u64::from(self.pages_per_block)
    }
    /// What the array holds, spare space included.
    pub fn physical_bytes(&self) -> Bytes {
        self.block_bytes() * u64::from(self.blocks())
    }
    /// The units of a region of `blocks` blocks of which `over_provisioning` (a share of what the
    /// user sees: 0.07 makes 1.07 times the user's bytes) is kept spare, rounded down.
    pub fn logical_units(&self, blocks: u32, over_provisioning: f64) -> u64 {
        (u64::from(blocks) as f64 * f64::from(self.units_per_block()) / (1.0 + over_provisioning)) as u64
    }
    /// The die that a block is on.
    pub fn die_of(&self, block: BlockId) -> DieId {
        DieId(block.0 / self.blocks_per_die())
    }
    /// The channel that a die is on, from 0.
    pub fn channel_of(&self, die: DieId) -> u32 {
        die.0 / self.dies_per_channel
    }
    /// The dies of a channel, in order.
    pub fn dies_of(&self, channel: u32) -> impl Iterator<Item = DieId> + use<> {
        (channel * self.dies_per_channel..(channel + 1) * self.dies_per_channel).map(DieId)
    }
    /// The blocks of a die, in order.
    pub fn blocks_of(&self, die: DieId) -> impl Iterator<Item = BlockId> + use<> {
        (die.0 * self.blocks_per_die()..(die.0 + 1) * self.blocks_per_die()).map(BlockId)
    }

    fn check_counts(&self) -> Result<(), GeometryError> {
        let counts = [
            ("channels", self.channels),
            ("dies_per_channel", self.dies_per_channel),
            ("planes_per_die", self.planes_per_die),
            ("blocks_per_plane", self.blocks_per_plane),
            ("pages_per_block", self.pages_per_block),
        ];
        match counts.iter().find(|(_, count)| *count == 0) {
            Some((field, _)) => Err(GeometryError::new(field, "0, and at least 1 is needed")),
            None => Ok(()),
        }
    }
    fn check_sizes(&self) -> Result<(), GeometryError> {
        let (page, unit) = (self.page.count(), self.unit.count());
        if page == 0 || unit == 0 {
            return Err(GeometryError::new(if page == 0 { "page" } else { "unit" }, "0 B, and at least 1 B is needed"));
        }
        if !page.is_multiple_of(unit) {
            return Err(GeometryError::new("unit", format!("{unit} B do not divide a page of {page} B")));
        }
        Ok(())
    }
    fn check_limits(&self) -> Result<(), GeometryError> {
        let per_block = u128::from(self.pages_per_block) * u128::from(self.page.count() / self.unit.count());
        if per_block > u128::from(Geometry::UNITS_PER_BLOCK_MAX) {
            let reason =
                format!("a block has {per_block} units, and at most {} are allowed", Geometry::UNITS_PER_BLOCK_MAX);
            return Err(GeometryError::new("pages_per_block", reason));
        }
        let parts = [self.channels, self.dies_per_channel, self.planes_per_die, self.blocks_per_plane];
        let blocks = parts.iter().fold(1u128, |product, part| product.saturating_mul(u128::from(*part)));
        if blocks >= u128::from(u32::MAX) || blocks * per_block > u128::from(Geometry::UNITS_MAX) {
            let reason = format!(
                "{blocks} blocks of {per_block} units, and at most {} blocks and {} units are allowed",
                u32::MAX - 1,
                Geometry::UNITS_MAX
            );
            return Err(GeometryError::new("blocks_per_plane", reason));
        }
        Ok(())
    }
}

impl GeometryError {
    /// An error about a field.
    pub(crate) fn new(field: &'static str, reason: impl Into<String>) -> GeometryError {
        GeometryError { field, reason: reason.into() }
    }
}

impl Timing {
    /// Whether all times are there. An erase may take no time (media that are written in place);
    /// all else may not.
    pub fn check(&self) -> Result<(), GeometryError> {
        if self.pages.is_empty() {
            return Err(GeometryError::new("pages", "no kind of page, and at least one is needed"));
        }
        if let Some(kind) = self.pages.iter().position(|page| page.read == Span::ZERO || page.program == Span::ZERO) {
            let reason = format!("kind {kind} reads or programs in no time");
            return Err(GeometryError::new("pages", reason));
        }
        if self.channel.as_bps() == 0 {
            return Err(GeometryError::new("channel", "0 b/s, and more is needed"));
        }
        match self.suspension {
            Suspension::Reads { limit: 0, .. } => Err(GeometryError::new(
                "suspension",
                "a limit of 0 interruptions; say that there is no suspension instead",
            )),
            _ => Ok(()),
        }
    }
    /// The array times of a page, by its place in its block: kinds of pages take turns. The timing
    /// must be checked.
    pub fn of_page(&self, page: u32) -> PageTimes {
        self.pages[page as usize % self.pages.len()]
    }
    /// How long the channel is taken by a transfer of `data`, command included.
    pub fn transfer(&self, data: Bytes) -> Span {
        self.command + self.channel.span_of(data)
    }
}

/// A die of the array: `channel * dies_per_channel + die of the channel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct DieId(pub u32);

/// An erase block of the array: `die * blocks of a die + block of the die`; the planes of a die
/// take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct BlockId(pub u32);

/// A physical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageAddress {
    /// Its block.
    pub block: BlockId,
    /// Its place in the block, in the order of programming.
    pub page: u32,
}

/// A physical unit: a page or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitAddress {
    /// Its page.
    pub page: PageAddress,
    /// Its place in the page, from 0.
    pub slot: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chips of blox.md's P-SSD, in a small array.
    fn mlc() -> Geometry {
        Geometry {
            channels: 16,
            dies_per_channel: 8,
            planes_per_die: 2,
            blocks_per_plane: 512,
            pages_per_block: 256,
            page: Bytes::kib(16),
            unit: Bytes::kib(4),
        }
    }
    fn timing() -> Timing {
        let kind = |read, program| PageTimes { read: Span::us(read), program: Span::us(program) };
        Timing {
            pages: vec![kind(48, 850), kind(64, 2300)],
            erase: Span::ms(3),
            channel: Rate::bps(333_000_000 * 8),
            command: Span::ns(100),
            suspension: Suspension::None,
        }
    }

    #[test]
    fn an_array_is_the_product_of_its_parts() {
        let geometry = mlc();
        assert_eq!(geometry.check(), Ok(()));
        assert_eq!((geometry.dies(), geometry.blocks_per_die(), geometry.blocks()), (128, 1024, 131_072));
        assert_eq!((geometry.units_per_page(), geometry.units_per_block(), geometry.units()), (4, 1024, 1 << 27));
        assert_eq!(geometry.physical_bytes(), Bytes::new(512 << 30));
        assert_eq!(geometry.logical_units(geometry.blocks(), 0.25), (1 << 27) * 4 / 5);
    }

    #[test]
    fn blocks_dies_and_channels_are_numbered_one_inside_the_other() {
        let geometry = mlc();
        assert_eq!((geometry.die_of(BlockId(1023)), geometry.die_of(BlockId(1024))), (DieId(0), DieId(1)));
        assert_eq!((geometry.channel_of(DieId(7)), geometry.channel_of(DieId(8))), (0, 1));
        assert_eq!(geometry.dies_of(1).collect::<Vec<_>>(), (8..16).map(DieId).collect::<Vec<_>>());
        assert!(geometry.blocks_of(DieId(3)).all(|block| geometry.die_of(block) == DieId(3)));
    }

    #[test]
    fn a_count_of_zero_and_a_unit_that_does_not_divide_are_named() {
        let field = |geometry: Geometry| geometry.check().map_err(|error| error.field);
        assert_eq!(field(Geometry { channels: 0, ..mlc() }), Err("channels"));
        assert_eq!(field(Geometry { pages_per_block: 0, ..mlc() }), Err("pages_per_block"));
        assert_eq!(field(Geometry { unit: Bytes::ZERO, ..mlc() }), Err("unit"));
        assert_eq!(field(Geometry { unit: Bytes::kib(32), ..mlc() }), Err("unit"));
        let error = Geometry { unit: Bytes::kib(5), ..mlc() }.check().expect_err("5 KiB do not divide 16 KiB");
        assert_eq!(error.to_string(), "unit: 5120 B do not divide a page of 16384 B");
    }

    #[test]
    fn sizes_are_checked_on_both_sides_of_their_limits() {
        let field = |geometry: Geometry| geometry.check().map_err(|error| error.field);
        assert_eq!(field(Geometry { pages_per_block: 1 << 14, ..mlc() }), Ok(()));
        assert_eq!(field(Geometry { pages_per_block: (1 << 14) + 1, ..mlc() }), Err("pages_per_block"));
        assert_eq!(field(Geometry { blocks_per_plane: 1 << 18, ..mlc() }), Ok(()));
        assert_eq!(field(Geometry { blocks_per_plane: (1 << 18) + 1, ..mlc() }), Err("blocks_per_plane"));
        assert_eq!(
            field(Geometry { channels: u32::MAX, dies_per_channel: u32::MAX, ..mlc() }),
            Err("blocks_per_plane")
        );
    }

    #[test]
    fn kinds_of_pages_take_turns_in_a_block() {
        let timing = timing();
        assert_eq!(timing.check(), Ok(()));
        let reads: Vec<Span> = (0..3).map(|page| timing.of_page(page).read).collect();
        assert_eq!(reads, [Span::us(48), Span::us(64), Span::us(48)]);
    }

    #[test]
    fn a_transfer_takes_its_command_and_its_bytes() {
        // 4096 B at 333 MB/s are 12.3003 us.
        assert_eq!(timing().transfer(Bytes::kib(4)), Span::ns(100) + Span::ps(12_300_301));
    }

    #[test]
    fn times_that_are_missing_are_named() {
        let field = |timing: Timing| timing.check().map_err(|error| error.field);
        assert_eq!(field(Timing { pages: Vec::new(), ..timing() }), Err("pages"));
        let instant = PageTimes { read: Span::us(1), program: Span::ZERO };
        assert_eq!(field(Timing { pages: vec![instant], ..timing() }), Err("pages"));
        assert_eq!(field(Timing { channel: Rate::bps(0), ..timing() }), Err("channel"));
        assert_eq!(field(Timing { erase: Span::ZERO, ..timing() }), Ok(()));
        let never = Suspension::Reads { overhead: Span::us(5), limit: 0 };
        assert_eq!(field(Timing { suspension: never, ..timing() }), Err("suspension"));
    }
}
