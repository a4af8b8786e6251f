//! S-Direct's commands (see [`crate::vendor`]). Access is decided here; the caller's engine carries
//! them out.

use crate::target::config::NamespaceConfig;
use crate::target::flight::Flight;
use crate::target::io::{EngineDevice, EngineOperation, EnginePlace};
use crate::target::nvm::{IoController, copy_range_blocks_max};
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

impl IoController<'_> {
    /// Bytes of data that a command of S-Direct brings, if it may be carried out.
    pub(super) fn sdirect_bytes(&self, command: &Command, asked: VendorCommand) -> Result<u32, Status> {
        match asked {
            VendorCommand::MultiCast { start, blocks_minus_one, targets_minus_one } => {
                let blocks = u64::from(blocks_minus_one) + 1;
                let wanted = Wanted { intent: Some(Intent::Read), changes: false, range: Some((start, blocks)) };
                let namespace = self.admit_to(command.namespace, wanted)?;
                let count = usize::from(targets_minus_one) + 1;
                let most = copy_range_blocks_max(self.limits, namespace.config.block_shift);
                if count > TARGETS_MAX || blocks > u64::from(most) {
                    return Err(Status::SIZE_LIMIT.without_retry());
                }
                Ok((count * MultiCastTarget::BYTES) as u32)
            }
            VendorCommand::AddWrite { first, second } => {
                [first, second].into_iter().try_for_each(|byte| self.admit_word(command.namespace, byte))?;
                Ok(0)
            }
        }
    }

    /// Checks that a word of a namespace may be written.
    fn admit_word(&self, id: u32, byte: u64) -> Result<(), Status> {
        let any = Wanted { intent: Some(Intent::Write), changes: true, range: None };
        let config = &self.admit_to(id, any)?.config;
        match byte >> config.block_shift {
            _ if !byte.is_multiple_of(WORD) => Err(Status::INVALID_FIELD.without_retry()),
            block if block >= config.blocks => Err(Status::LBA_OUT_OF_RANGE.without_retry()),
            _ => Ok(()),
        }
    }

    /// What the engine has to do for a command whose data are here, by the backend of this device.
    pub(super) fn sdirect(
        &self,
        flight: &Flight,
        asked: VendorCommand,
    ) -> Result<(EngineDevice, EngineOperation), Status> {
        let command = &flight.command;
        self.sdirect_bytes(command, asked)?;
        let device = EngineDevice::of(&self.admit_to(command.namespace, Wanted::ANYTHING)?.config);
        match asked {
            VendorCommand::MultiCast { start, blocks_minus_one, targets_minus_one } => {
                let count = usize::from(targets_minus_one) + 1;
                let targets = MultiCastTarget::view(&flight.buffer, count);
                let targets = targets.map_err(|_| Status::INVALID_SGL_LENGTH.without_retry())?;
                let blocks = u64::from(blocks_minus_one) + 1;
                Ok((device, self.multi_cast(device, start, blocks, targets)?))
            }
            VendorCommand::AddWrite { first, second } => {
                Ok((device, EngineOperation::AddWrite { device, first, second }))
            }
        }
    }

    fn multi_cast(
        &self,
        source: EngineDevice,
        start: u64,
        blocks: u64,
        targets: &[MultiCastTarget],
    ) -> Result<EngineOperation, Status> {
        let mut to = Vec::with_capacity(targets.len());
        for target in targets {
            let start = target.start.get();
            let wanted = Wanted { intent: Some(Intent::Write), changes: true, range: Some((start, blocks)) };
            let device = EngineDevice::of(&self.admit_to(target.namespace.get(), wanted)?.config);
            // The command counts blocks, so they have to be of one size.
            if device.block_shift != source.block_shift {
                return Err(Status::INVALID_FIELD.without_retry());
            }
            to.push(device.block(start));
        }
        Ok(EngineOperation::MultiCast { from: source.block(start), to, bytes: blocks << source.block_shift })
    }
}
