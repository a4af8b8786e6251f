//! add_write: two words of a device are added, and the sum takes the place of the second.
//!
//! Devices read and write blocks, so that the blocks of both words are read, the second is changed
//! and written back. Blocks are the engine's, one add_write at a time, from the reading of the
//! first to the completion of the write.

use super::{Engine, EngineOut, Use};
use crate::locks::Block;
use crate::{CommandId, DeviceId, DeviceOperation, Extent, Outcome, Payload};

/// An add_write that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Adding<P> {
    id: CommandId,
    device: DeviceId,
    /// Of the first and the second word.
    addresses: [u64; 2],
    /// Whether it has its blocks.
    has_turn: bool,
    /// What has come of each block. One block is read once.
    blocks: [Option<P>; 2],
    /// Reads that have not been completed.
    reading: u32,
    has_failed: bool,
    /// How much of the sum's block the device has fetched.
    fetched: u32,
}

impl<P: Payload> Engine<P> {
    pub(super) fn begin_add(&mut self, id: CommandId, device: DeviceId, addresses: [u64; 2]) {
        let adding = Adding {
            id,
            device,
            addresses,
            has_turn: false,
            blocks: [None, None],
            reading: 0,
            has_failed: false,
            fetched: 0,
        };
        let number = self.adds.insert(adding) as u32;
        let blocks = self.blocks_of(number);
        if self.locks.enter(number, &blocks) {
            self.read_blocks(number);
        }
    }

    /// The blocks of its words, one or two.
    fn blocks_of(&self, number: u32) -> Vec<Block> {
        let Adding { device, addresses, .. } = self.adds[number as usize];
        let mut blocks = addresses.map(|address| (device, address - address % self.block_bytes(device))).to_vec();
        blocks.dedup();
        blocks
    }

    fn block_bytes(&self, device: DeviceId) -> u64 {
        self.devices[device.0 as usize].geometry.block.count()
    }

    fn read_blocks(&mut self, number: u32) {
        let count = self.blocks_of(number).len();
        let adding = &mut self.adds[number as usize];
        (adding.has_turn, adding.reading) = (true, count as u32);
        let device = adding.device;
        // With one block, it is the second's: the one that is written.
        self.device(device).adds.extend((2 - count..2).map(|which| Use::AddRead(number, which)));
    }

    pub(super) fn submit_adds(&mut self, device: DeviceId, out: &mut Vec<EngineOut<P>>) {
        while self.device(device).slots.has_free() {
            let Some(what) = self.device(device).adds.pop_front() else { return };
            let (number, which, operation) = match what {
                Use::AddRead(number, which) => (number, which, DeviceOperation::Read),
                Use::AddWrite(number) => (number, 1, DeviceOperation::Write),
                Use::Read(_) | Use::Write(..) => continue,
            };
            let bytes = self.block_bytes(device);
            let Adding { id, addresses, .. } = &self.adds[number as usize];
            let (id, address) = (*id, addresses[which]);
            let place = Extent { device, address: address - address % bytes };
            self.submit(id, place, operation, bytes as u32, what, out);
        }
    }

    pub(super) fn fill_add(&mut self, number: u32, which: usize, data: P) {
        let device = self.adds[number as usize].device;
        let (block, size) = (self.block_bytes(device), u64::from(data.size()));
        let there = &mut self.adds[number as usize].blocks[which];
        let before = there.as_ref().map_or(0, |there| u64::from(there.size()));
        if size > block - before {
            return self.counters.strays += 1;
        }
        match there {
            Some(there) => there.append(&data),
            None => *there = Some(data),
        }
        self.hold(size);
    }

    pub(super) fn add_read_completed(
        &mut self,
        number: u32,
        which: usize,
        is_success: bool,
        out: &mut Vec<EngineOut<P>>,
    ) {
        let block = self.block_bytes(self.adds[number as usize].device);
        let adding = &mut self.adds[number as usize];
        let is_whole = adding.blocks[which].as_ref().is_some_and(|data| u64::from(data.size()) == block);
        adding.has_failed |= !is_success || !is_whole;
        adding.reading -= 1;
        if adding.reading > 0 {
            return;
        }
        if adding.has_failed {
            return self.end_add(number, Outcome::SourceFailed, out);
        }
        let device = adding.device;
        self.add_up(number);
        match self.device(device).is_gone {
            true => self.end_add(number, Outcome::SourceFailed, out),
            false => self.device(device).adds.push_back(Use::AddWrite(number)),
        }
    }

    /// Puts the sum into the second block.
    fn add_up(&mut self, number: u32) {
        let block = self.block_bytes(self.adds[number as usize].device);
        let adding = &mut self.adds[number as usize];
        let [first, second] = adding.addresses.map(|address| (address % block) as u32);
        let [one, two] = &adding.blocks;
        let Some(target) = two else { return };
        let sum = one.as_ref().unwrap_or(target).word(first).wrapping_add(target.word(second));
        let changed = target.with_word(second, sum);
        adding.blocks[1] = Some(changed);
    }

    pub(super) fn supply_add(&mut self, number: u32, slot: u16, bytes: u32, out: &mut Vec<EngineOut<P>>) {
        let adding = &mut self.adds[number as usize];
        let Some(block) = &adding.blocks[1] else { return };
        if bytes == 0 || bytes > block.size() - adding.fetched {
            return self.counters.strays += 1;
        }
        let data = block.part(adding.fetched, bytes);
        adding.fetched += bytes;
        out.push(EngineOut::Supply { device: adding.device, slot, data });
    }

    pub(super) fn add_write_completed(&mut self, number: u32, is_success: bool, out: &mut Vec<EngineOut<P>>) {
        let adding = &self.adds[number as usize];
        let is_whole = adding.blocks[1].as_ref().is_some_and(|block| block.size() == adding.fetched);
        let outcome = match is_success && is_whole {
            true => Outcome::Done,
            false => Outcome::TargetsFailed(vec![adding.device]),
        };
        self.end_add(number, outcome, out);
    }

    /// Ends it, and gives its blocks to those that waited for them.
    fn end_add(&mut self, number: u32, outcome: Outcome, out: &mut Vec<EngineOut<P>>) {
        let blocks = self.blocks_of(number);
        let adding = self.adds.remove(number as usize);
        let held: u64 = adding.blocks.iter().flatten().map(|data| u64::from(data.size())).sum();
        self.counters.held -= held;
        for next in self.locks.leave(number, &blocks) {
            let blocks = self.blocks_of(next);
            if !self.adds[next as usize].has_turn && self.locks.is_first(next, &blocks) {
                self.read_blocks(next);
            }
        }
        self.answer(adding.id, outcome, out);
    }

    /// Everything of a removed device that waits for a slot or for a turn fails.
    pub(super) fn drop_adds(&mut self, device: DeviceId, out: &mut Vec<EngineOut<P>>) {
        self.device(device).adds.clear();
        let here = |adding: &Adding<P>| adding.device == device;
        while let Some(number) = self.adds.iter().find(|(_, adding)| here(adding)).map(|(number, _)| number) {
            self.end_add(number as u32, Outcome::SourceFailed, out);
            self.device(device).adds.clear();
        }
    }
}
