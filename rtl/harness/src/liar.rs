//! Says other blocks than the true sender does, in one direction of a link, with a scrambler of its
//! own: the line has no fault.

use crate::system::{Descrambler, Scrambler};
use edm::pcs::block::Block;
use std::collections::VecDeque;

/// The bits of an idle.
const IDLE: u128 = 0x1e << 2 | 0b01;

/// Says other blocks in place of idles. Its line must not have had a block yet.
#[derive(Default)]
pub struct Liar {
    heard: Descrambler,
    says: Scrambler,
    /// What it will say.
    pub waiting: VecDeque<Block>,
    /// Whether a message of the true sender is on the line: nothing may come between its blocks.
    is_open: bool,
    /// Whether it withholds the /N/ of zero bytes.
    pub withholds: bool,
    /// Blocks that it has said.
    pub said: u64,
}

impl Liar {
    /// What is on the line instead of these 66 bits.
    pub fn push(&mut self, line: u128) -> u128 {
        let mut bits = self.heard.push(line);
        match bits >> 2 & 0xff {
            0x33 if bits & 3 == 1 => self.is_open = true,
            0x2d if bits & 3 == 1 => self.is_open = false,
            _ => {}
        }
        if self.withholds && is_withdrawal(bits) {
            bits = IDLE;
        }
        if bits == IDLE
            && !self.is_open
            && let Some(block) = self.waiting.pop_front()
        {
            self.said += 1;
            bits = block.to_bits();
        }
        self.says.push(bits)
    }
}

/// An /N/ of zero bytes: the size is above synchronisation bits, type, target and id.
fn is_withdrawal(bits: u128) -> bool {
    bits & 3 == 1 && bits >> 2 & 0xff == 0x55 && bits >> 27 & 0xffff_ffff == 0
}
