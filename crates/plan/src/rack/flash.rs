//! Emulated flash of a storage server.

use super::{Checks, PAGE};
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Span};
use std::path::PathBuf;

/// An emulated flash drive on a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Flash {
    /// Its file; absolute. [`super::Rack::read`] leaves none without.
    pub path: Option<PathBuf>,
    /// All of its pages.
    pub size: Bytes,
    /// Whether the room of a replica is taken when it is made or opened.
    pub reserve: bool,
    /// The share of its blocks that a replica leaves free when it is full.
    pub spare: f64,
    /// Channels that work at the same time.
    pub channels: u32,
    /// Pages that are erased together.
    pub pages_per_block: u32,
    /// Least time of reading a page; zero for what the file takes.
    pub read: Span,
    /// Least time of programming a page.
    pub program: Span,
    /// Least time of erasing a block.
    pub erase: Span,
}

/// Blocks of each channel that collection needs beyond the spare ones, of each replica: one that is
/// being filled, and one that takes what a victim still holds.
const BLOCKS_FOR_COLLECTION: u64 = 2;

impl Flash {
    /// Pages of one block on every channel.
    fn stripe(&self) -> u64 {
        u64::from(self.pages_per_block) * u64::from(self.channels)
    }
    /// Blocks of each channel.
    pub fn blocks(&self) -> u64 {
        self.size.count() / PAGE.count() / self.stripe().max(1)
    }
    /// Blocks of each channel that a replica of so many pages takes.
    pub fn blocks_for(&self, pages: u64) -> u64 {
        let filled = pages.div_ceil(self.stripe().max(1)) as f64;
        (filled / (1.0 - self.spare)).ceil() as u64 + BLOCKS_FOR_COLLECTION
    }
    /// The largest replica that so many blocks of each channel hold.
    pub(super) fn held_by(&self, blocks: u64) -> Bytes {
        let mut filled = (blocks.saturating_sub(BLOCKS_FOR_COLLECTION) as f64 * (1.0 - self.spare)).ceil() as u64;
        while filled > 0 && self.blocks_for(filled * self.stripe()) > blocks {
            filled -= 1;
        }
        PAGE * (filled * self.stripe())
    }
}

table! {
    /// Emulated flash on a file. It erases a block before it programs its pages again.
    FlashFile => Flash {
        /// Its file. `NAME.flash` in `folder` when not given.
        path: String [length from 1],
        /// All of its pages of 4 KiB: whole blocks on every channel.
        size: Quantity<Bytes> ["1MiB" to "16TiB"] = Bytes::new(1 << 30),
        /// Take the room of a whole replica on the file system when it is made or opened, so that
        /// nothing else fills the disk under it.
        reserve: bool = false,
        /// The share of its blocks that a replica leaves free when it is full, for garbage
        /// collection. It takes two blocks of each channel more.
        spare: f64 [0.01 to 0.9] = 0.2,
        /// Channels that work at the same time.
        channels: u32 [1 to 64] = 4,
        /// Pages that are erased together.
        pages_per_block: u32 [4 to 65_536] = 256,
        /// Least time of reading a page. `"0us"`: what the file takes.
        read: Quantity<Span> [to "1s"] = Span::ZERO,
        /// Least time of programming a page.
        program: Quantity<Span> [to "1s"] = Span::ZERO,
        /// Least time of erasing a block.
        erase: Quantity<Span> [to "10s"] = Span::ZERO,
    } as { path: file, size, reserve, spare, channels, pages_per_block, read, program, erase } from {
        let file = path.map(PathBuf::from);
    } to {
        let path = file.map(|file| file.to_string_lossy().into_owned());
    }
}

impl Checks<'_> {
    pub(super) fn flash(&mut self, place: usize, flash: &Flash) {
        let unit = PAGE.count() * u64::from(flash.pages_per_block) * u64::from(flash.channels);
        let blocks = flash.size.count() / unit;
        let is_whole = blocks >= 4 && flash.size.count().is_multiple_of(unit);
        let unit = Bytes::new(unit);
        let allowed = format!("a multiple of {unit} (`channels` x `pages_per_block` x 4KiB), and 4 of them at least");
        self.resolver.expect(&format!("storage.{place}.flash.size"), is_whole, flash.size, &allowed);
    }
}
