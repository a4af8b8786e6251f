//! S-Direct's commands (see [`crate::vendor`]): who may do what is decided here, how it is done by
//! the engine that the caller has.

use crate::target::Target;
use crate::target::config::NamespaceConfig;
use crate::target::io::{EngineDevice, EngineOperation, EnginePlace, IoOperation};
use crate::target::nvm::copy_range_blocks_max;
use crate::target::reservations::Intent;
use crate::target::subsystem::Wanted;
use crate::vendor::{MultiCastTarget, TARGETS_MAX, VendorCommand};
use crate::{Command, Status};

/// Bytes of a word of add_write.
const WORD: u64 = 8;

impl EngineDevice {
    fn of(config: &NamespaceConfig) -> EngineDevice {
        EngineDevice { backend: config.backend, block_shift: config.block_shift, blocks: config.blocks }
    }

    /// The place of a block that the namespace has.
    fn block(self, start: u64) -> EnginePlace {
        EnginePlace { device: self, address: start << self.block_shift }
    }
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
                [first, second].into_iter().try_for_each(|byte| self.admit_word(index, command.namespace, byte))?;
                Ok(0)
            }
        }
    }

    /// A word of a namespace that may be written.
    fn admit_word(&self, index: u32, id: u32, byte: u64) -> Result<(), Status> {
        let any = Wanted { intent: Some(Intent::Write), changes: true, range: None };
        let config = &self.admit_to(index, id, any)?.config;
        match byte >> config.block_shift {
            _ if !byte.is_multiple_of(WORD) => Err(Status::INVALID_FIELD.without_retry()),
            block if block >= config.blocks => Err(Status::LBA_OUT_OF_RANGE.without_retry()),
            _ => Ok(()),
        }
    }

    /// Everything that the command needs is here.
    pub(super) fn on_sdirect(&mut self, index: u32, slot: u32, asked: VendorCommand) {
        let command = self.flights[slot].command;
        let operation = self.sdirect_bytes(index, &command, asked).and_then(|_| match asked {
            VendorCommand::MultiCast { start, blocks_minus_one, targets_minus_one } => {
                let blocks = u64::from(blocks_minus_one) + 1;
                self.multi_cast(index, slot, start, blocks, usize::from(targets_minus_one) + 1)
            }
            VendorCommand::AddWrite { first, second } => {
                let device = self.engine_device(index, command.namespace)?;
                Ok((device, EngineOperation::AddWrite { device, first, second }))
            }
        });
        match operation {
            Ok((device, operation)) => self.request(slot, device.backend, IoOperation::Engine(operation)),
            Err(status) => self.finish(slot, status, 0),
        }
    }

    /// A namespace that was admitted.
    fn engine_device(&self, index: u32, id: u32) -> Result<EngineDevice, Status> {
        let namespace = self.admit_to(index, id, Wanted { intent: None, changes: false, range: None })?;
        Ok(EngineDevice::of(&namespace.config))
    }

    fn multi_cast(
        &self,
        index: u32,
        slot: u32,
        start: u64,
        blocks: u64,
        count: usize,
    ) -> Result<(EngineDevice, EngineOperation), Status> {
        let source = self.engine_device(index, self.flights[slot].command.namespace)?;
        let targets = MultiCastTarget::view(&self.flights[slot].buffer, count);
        let targets = targets.map_err(|_| Status::INVALID_SGL_LENGTH.without_retry())?;
        let mut to = Vec::with_capacity(count);
        for target in targets {
            let start = target.start.get();
            let wanted = Wanted { intent: Some(Intent::Write), changes: true, range: Some((start, blocks)) };
            let device = EngineDevice::of(&self.admit_to(index, target.namespace.get(), wanted)?.config);
            // Blocks are counted, so that they have to be of one size.
            if device.block_shift != source.block_shift {
                return Err(Status::INVALID_FIELD.without_retry());
            }
            to.push(device.block(start));
        }
        let bytes = blocks << source.block_shift;
        Ok((source, EngineOperation::MultiCast { from: source.block(start), to, bytes }))
    }
}
