//! Drives that exchange what they hold: which, when, and whether they can.

use super::PAGE;
use crate::blox::file::{IsolationName, SwapFile};
use crate::blox::{Blox, PlannedSwap};
use crate::error::Problem;
use crate::file::ExperimentFile;
use crate::resolve::Resolver;

/// The swaps of a file, in order of time.
pub(super) fn swaps_of(file: &ExperimentFile) -> Vec<PlannedSwap> {
    let mut swaps: Vec<PlannedSwap> =
        file.swap.iter().flatten().filter(|swap| swap.at.is_some()).map(SwapFile::resolve).collect();
    swaps.sort_by_key(|swap| swap.at);
    swaps
}

impl Resolver<'_> {
    /// Problems are reported in the order of time, and named by the place in that order.
    pub(super) fn check_swaps(&mut self, blox: &Blox) {
        if blox.swaps.is_empty() {
            return;
        }
        for (index, swap) in blox.swaps.iter().enumerate() {
            self.check_swap(&format!("swap.{index}"), swap, blox);
        }
        if blox.flash.direct().is_some() && self.sound(&["flash"]) {
            let preset = blox.flash.preset.word();
            self.conflict(
                "swap",
                format!("preset = {preset} is written in place and does not wear: there is nothing to swap"),
            );
        }
        if blox.vssd.isolation == IsolationName::Software && self.sound(&["vssd"]) {
            self.conflict(
                "swap",
                "with isolation = software blocks are lent within a drive: its vSSDs cannot leave it",
            );
        }
        if self.sound(&["swap", "vssd", "flash", "rack"]) {
            self.check_room_for_swaps(blox);
        }
    }

    fn check_swap(&mut self, key: &str, swap: &PlannedSwap, blox: &Blox) {
        let is_rack_known = self.sound(&["rack"]);
        if is_rack_known {
            let last = u64::from(blox.rack.servers.saturating_sub(1));
            self.range(&format!("{key}.server"), u64::from(swap.server), 0..=last);
        }
        let (one, other) = swap.ssds;
        let key = format!("{key}.ssds");
        if one == other {
            self.conflict(&key, format!("drive {one} cannot exchange anything with itself"));
        }
        for ssd in [one, other] {
            if ssd >= blox.rack.ssds && is_rack_known {
                let allowed = format!("0..={}, with rack.ssds = {}", blox.rack.ssds - 1, blox.rack.ssds);
                self.report(&key, Problem::out_of_range(ssd, allowed));
            }
        }
    }

    fn check_room_for_swaps(&mut self, blox: &Blox) {
        let geometry = blox.geometry();
        let dies = u64::from(blox.vssd.channels * geometry.dies_per_channel);
        // As for data alone, and a block of each die more: what is moved twice within a batch.
        let spare = if blox.flash.hot_cold { 6 } else { 4 };
        let blocks = u64::from(geometry.blocks_per_die()).saturating_sub(spare);
        let room = blox.flash.block_bytes() * (dies * blocks);
        let wanted = PAGE * blox.region_units();
        if wanted > room {
            let reason = format!(
                "data and a batch of a swap are {wanted}, and beside {spare} spare blocks a die there is room for {room}"
            );
            self.conflict("vssd.swap_batch", reason);
        }
    }
}
