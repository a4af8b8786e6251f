//! S-Direct's commands, by ordinary operations of backends: see [`crate::vendor`].

use crate::target::flight::Flight;
use crate::target::io::{BlockRange, CopySource, IoOperation};
use crate::target::nvm::{Wanted, copy_range_blocks_max};
use crate::target::reservations::Intent;
use crate::target::{BackendId, Target};
use crate::vendor::{MultiCastTarget, TARGETS_MAX, VendorCommand};
use crate::{Command, Status};

/// Bytes of a word of add_write.
const WORD: u64 = 8;
/// How often add_write begins anew when its block was changed meanwhile: ours. Then the host may try again.
const ATTEMPTS_MAX: u32 = 16;

/// How far an add_write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Adding {
    stage: Stage,
    backend: BackendId,
    /// Byte of the second word.
    second: u64,
    block_shift: u8,
    /// Where the word that is read next stands in its block.
    place: usize,
    addend: u64,
    sum: u64,
    attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first word is read.
    First,
    /// The second word is read.
    Second,
    /// The sum is written.
    Sum,
}

fn word(buffer: &[u8], place: usize) -> u64 {
    let bytes = buffer.get(place..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Target {
    /// Bytes of data that a command of S-Direct brings, if it may be carried out.
    pub(super) fn sdirect_bytes(&self, index: u32, command: &Command, asked: VendorCommand) -> Result<u32, Status> {
        match asked {
            VendorCommand::MultiCast { start, blocks_minus_one, targets_minus_one } => {
                let blocks = u64::from(blocks_minus_one) + 1;
                let wanted = Wanted { intent: Some(Intent::Read), changes: false, range: Some((start, blocks)) };
                let namespace = self.admit_to(index, command.namespace, wanted)?;
                let count = usize::from(targets_minus_one) + 1;
                let most = copy_range_blocks_max(&self.limits, namespace.config.block_shift);
                if count > TARGETS_MAX || blocks > u64::from(most) {
                    return Err(Status::SIZE_LIMIT.without_retry());
                }
                Ok((count * MultiCastTarget::BYTES) as u32)
            }
            VendorCommand::AddWrite { first, second } => {
                if first % WORD != 0 || second % WORD != 0 {
                    return Err(Status::INVALID_FIELD.without_retry());
                }
                self.admit_word(index, command.namespace, first)?;
                self.admit_word(index, command.namespace, second)?;
                Ok(0)
            }
        }
    }

    /// The block with a word of a namespace that may be written.
    fn admit_word(&self, index: u32, id: u32, byte: u64) -> Result<(), Status> {
        let any = Wanted { intent: Some(Intent::Write), changes: true, range: None };
        let namespace = self.admit_to(index, id, any)?;
        let block = byte >> namespace.config.block_shift;
        let is_within = block < namespace.config.blocks;
        if is_within { Ok(()) } else { Err(Status::LBA_OUT_OF_RANGE.without_retry()) }
    }

    /// Everything that the command needs is here.
    pub(super) fn on_sdirect(&mut self, index: u32, slot: u32, asked: VendorCommand) {
        let command = self.flights[slot].command;
        let begun = self.sdirect_bytes(index, &command, asked).and_then(|_| match asked {
            VendorCommand::MultiCast { start, blocks_minus_one, targets_minus_one } => {
                let range = BlockRange { start, blocks: u32::from(blocks_minus_one) + 1 };
                self.multi_cast(index, slot, range, usize::from(targets_minus_one) + 1)
            }
            VendorCommand::AddWrite { first, second } => self.add_write(index, slot, first, second),
        });
        if let Err(status) = begun {
            self.finish(slot, status, 0);
        }
    }

    fn multi_cast(&mut self, index: u32, slot: u32, range: BlockRange, count: usize) -> Result<(), Status> {
        let own = self.flights[slot].command.namespace;
        let source = &self.admit_to(index, own, Wanted { intent: None, changes: false, range: None })?.config;
        let (backend, shift) = (source.backend, source.block_shift);
        let targets = MultiCastTarget::view(&self.flights[slot].buffer, count);
        let targets = targets.map_err(|_| Status::INVALID_SGL_LENGTH.without_retry())?;
        // Every place that is written, and first the one that is read: none may share a block with another.
        let mut places = vec![(own, range.start)];
        let mut copies = Vec::with_capacity(count);
        for target in targets {
            let (id, start) = (target.namespace.get(), target.start.get());
            let wanted =
                Wanted { intent: Some(Intent::Write), changes: true, range: Some((start, range.blocks.into())) };
            let config = &self.admit_to(index, id, wanted)?.config;
            let overlaps = |(other, at): &(u32, u64)| *other == id && at.abs_diff(start) < u64::from(range.blocks);
            if config.block_shift != shift || places.iter().any(overlaps) {
                return Err(Status::INVALID_FIELD.without_retry());
            }
            places.push((id, start));
            copies.push((config.backend, start));
        }
        for (target, start) in copies {
            let sources = vec![CopySource { backend, range }];
            self.request(slot, target, IoOperation::Copy { start, sources, is_durable: false });
        }
        Ok(())
    }

    fn add_write(&mut self, index: u32, slot: u32, first: u64, second: u64) -> Result<(), Status> {
        let id = self.flights[slot].command.namespace;
        let config = &self.admit_to(index, id, Wanted { intent: None, changes: false, range: None })?.config;
        let (backend, block_shift) = (config.backend, config.block_shift);
        let (stage, addend, sum, attempts) = (Stage::First, 0, 0, 0);
        let adding = Adding { stage, backend, second, block_shift, place: 0, addend, sum, attempts };
        self.read_word(slot, adding, first);
        Ok(())
    }

    /// Reads the block of the word at `byte`.
    fn read_word(&mut self, slot: u32, adding: Adding, byte: u64) {
        let block_bytes = 1usize << adding.block_shift;
        let place = byte as usize & (block_bytes - 1);
        self.flights[slot].adding = Some(Adding { place, ..adding });
        let range = BlockRange { start: byte >> adding.block_shift, blocks: 1 };
        let buffer = self.pool.take(block_bytes);
        self.request(slot, adding.backend, IoOperation::Read { range, buffer });
    }

    /// A step of an add_write is done.
    pub(super) fn on_added(&mut self, slot: u32, adding: Adding) {
        let Flight { status, connection, .. } = self.flights[slot];
        let changed = Status::COMPARE_FAILURE.without_retry();
        match adding.stage {
            _ if connection.is_none() => self.finish(slot, status, 0),
            Stage::Sum if status == changed && adding.attempts < ATTEMPTS_MAX => {
                self.flights[slot].status = Status::SUCCESS;
                let again = Adding { stage: Stage::Second, attempts: adding.attempts + 1, ..adding };
                self.read_word(slot, again, adding.second);
            }
            Stage::Sum if status == changed => self.finish(slot, Status::INTERRUPTED, 0),
            _ if !status.is_success() => self.finish(slot, status, 0),
            Stage::First => {
                let addend = word(&self.flights[slot].buffer, adding.place);
                self.read_word(slot, Adding { stage: Stage::Second, addend, ..adding }, adding.second);
            }
            Stage::Second => self.write_sum(slot, adding),
            Stage::Sum => self.finish(slot, status, adding.sum),
        }
    }

    /// The sum takes the second word's place if its block is still as it was read.
    fn write_sum(&mut self, slot: u32, adding: Adding) {
        let expected = std::mem::take(&mut self.flights[slot].buffer);
        let sum = word(&expected, adding.place).wrapping_add(adding.addend);
        let mut data = self.pool.take(expected.len());
        data.copy_from_slice(&expected);
        if let Some(room) = data.get_mut(adding.place..adding.place + WORD as usize) {
            room.copy_from_slice(&sum.to_le_bytes());
        }
        self.flights[slot].adding = Some(Adding { stage: Stage::Sum, sum, ..adding });
        let range = BlockRange { start: adding.second >> adding.block_shift, blocks: 1 };
        let operation = IoOperation::CompareAndWrite { range, expected, data, is_durable: false };
        self.request(slot, adding.backend, operation);
    }
}
