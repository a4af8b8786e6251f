//! Commands of the NVM command set: checked against namespace, path and reservation, and given to
//! backends.

use crate::range::{CopyFormat, CopyRange, DatasetRange};
use crate::target::config::NamespaceConfig;
use crate::target::controller::Controller;
use crate::target::flight::{Admitted, Phase, Transfer};
use crate::target::io::{BlockRange, CopySource, IoOperation};
use crate::target::reservations::Intent;
use crate::target::subsystem::{Namespace, Wanted};
use crate::target::{BackendId, Target, TargetLimits};
use crate::vendor::VendorCommand;
use crate::{Access, AccessFlags, Body, Command, Copy, DatasetManagement, DatasetUse, Fuse, Io, Sgl, Status};

/// Ranges of a Copy (MSRC + 1).
pub(super) const COPY_RANGES_MAX: usize = 128;
/// The namespace of all.
const ALL: u32 = u32::MAX;
/// A source whose blocks are of another size (NVM Command Set 1.1, 3.2.2: incompatible namespace or
/// format).
const INCOMPATIBLE_NAMESPACE: Status = Status::new(1, 0x85);

/// Blocks of a range of Copy (MSSRL): as many as one transfer moves.
pub(super) fn copy_range_blocks_max(limits: &TargetLimits, block_shift: u8) -> u16 {
    (limits.transfer_bytes() >> block_shift).clamp(1, u32::from(u16::MAX)) as u16
}

/// Blocks of a Copy (MCL): four ranges of full length, so that one command holds a backend for
/// milliseconds and not for seconds.
pub(super) fn copy_blocks_max(limits: &TargetLimits, block_shift: u8) -> u32 {
    u32::from(copy_range_blocks_max(limits, block_shift)) * 4
}

impl From<Access> for BlockRange {
    fn from(access: Access) -> Self {
        BlockRange { start: access.start, blocks: access.blocks() }
    }
}

/// Whether what was written has to survive a loss of power before the answer.
pub(super) fn is_durable(flags: AccessFlags) -> bool {
    flags.contains(AccessFlags::FORCE_UNIT_ACCESS)
}

/// Whether a read has to come from where no loss of power reaches it (NVM Command Set 1.0, 3.2.4,
/// FUA): what stands in a volatile cache alone is written through before the host is answered.
fn flushes_after(io: Io, config: &NamespaceConfig) -> Option<BackendId> {
    let is_forced = matches!(io, Io::Read(access) if access.flags.contains(AccessFlags::FORCE_UNIT_ACCESS));
    (is_forced && config.has_volatile_cache).then_some(config.backend)
}

/// Which blocks a command is about.
fn access_of(io: Io) -> Option<Access> {
    match io {
        Io::Read(access) | Io::Write(access) | Io::Compare(access) | Io::WriteZeroes(access) | Io::Verify(access) => {
            Some(access)
        }
        _ => None,
    }
}

/// What a command does to blocks, for reservations; `None` when they do not mind it.
fn intent_of(io: Io) -> Option<Intent> {
    match io {
        Io::Read(_) | Io::Compare(_) | Io::Verify(_) => Some(Intent::Read),
        Io::Write(_) | Io::WriteZeroes(_) | Io::DatasetManagement(_) | Io::Copy(_) | Io::Flush => Some(Intent::Write),
        _ => None,
    }
}

/// The backend that may lend the data of a read, or write from the input.
fn lender(command: &Command, io: Io, config: &NamespaceConfig) -> Option<BackendId> {
    let may_lend = match io {
        Io::Read(_) => !config.has_volatile_cache,
        Io::Write(_) => true,
        _ => false,
    };
    (config.lends && may_lend && command.fuse == Fuse::None).then_some(config.backend)
}

fn is_write(io: Io) -> bool {
    matches!(io, Io::Write(_) | Io::WriteZeroes(_) | Io::DatasetManagement(_) | Io::Copy(_))
}

/// Room for all the ranges that Dataset Management can have.
const LIST_BYTES_MAX: u32 = 256 * DatasetRange::BYTES as u32;

/// Bytes of a list of ranges: a host may describe more than it has filled. Linux always describes
/// room for 256 ranges (drivers/nvme/host/core.c, nvme_setup_discard).
fn list_bytes(data: Sgl, needed: u32) -> u32 {
    data.length().filter(|given| (needed..=needed.max(LIST_BYTES_MAX)).contains(given)).unwrap_or(needed)
}

impl Target {
    fn storage(&self, index: u32) -> Result<(&Controller, usize), Status> {
        let controller = self.connections[index].controller().and_then(|id| self.controllers.get(id));
        let controller = controller.ok_or(Status::INTERNAL_ERROR)?;
        Ok((controller, controller.subsystem().ok_or(Status::INVALID_OPCODE.without_retry())?))
    }

    /// The namespace of a command that may be carried out now.
    pub(super) fn admit(&self, index: u32, command: &Command, io: Io) -> Result<&Namespace, Status> {
        let range = access_of(io).map(|access| (access.start, u64::from(access.blocks())));
        self.admit_to(index, command.namespace, Wanted { intent: intent_of(io), changes: is_write(io), range })
    }

    /// The namespace `id`, if what is wanted of it may be done now.
    pub(super) fn admit_to(&self, index: u32, id: u32, wanted: Wanted) -> Result<&Namespace, Status> {
        let (controller, subsystem) = self.storage(index)?;
        if !controller.is_ready() {
            return Err(Status::COMMAND_SEQUENCE.without_retry());
        }
        self.subsystems[subsystem].admit(controller.port, controller.host_id, id, wanted)
    }

    /// What an I/O command moves, if it may be carried out.
    pub(super) fn io_transfer(&self, index: u32, command: &Command, io: Io) -> Result<Admitted, Status> {
        if io == Io::Flush && command.namespace == ALL {
            return self.storage(index).map(|_| Transfer::None.into());
        }
        if let Io::Vendor(vendor) = io {
            let asked = VendorCommand::decode(&vendor).ok_or(Status::INVALID_OPCODE.without_retry())?;
            let bytes = self.sdirect_bytes(index, command, asked)?;
            return Ok(if bytes > 0 { Transfer::In(bytes) } else { Transfer::None }.into());
        }
        let namespace = self.admit(index, command, io)?;
        let bytes = |access: Access| {
            // At most 2^16 blocks of 2^16 bytes: fits in 33 bits.
            let bytes = u64::from(access.blocks()) << namespace.config.block_shift;
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let transfer = match io {
            Io::Read(access) => Transfer::Out(bytes(access)),
            Io::Write(access) | Io::Compare(access) => Transfer::In(bytes(access)),
            Io::DatasetManagement(manage) => {
                let needed = (u32::from(manage.ranges_minus_one) + 1) * DatasetRange::BYTES as u32;
                Transfer::In(list_bytes(command.data, needed))
            }
            Io::Copy(copy) => {
                let needed = (u32::from(copy.ranges_minus_one) + 1) * copy.format.bytes() as u32;
                Transfer::In(list_bytes(command.data, needed))
            }
            Io::ReservationRegister(_) | Io::ReservationAcquire(_) => Transfer::In(16),
            Io::ReservationRelease(_) => Transfer::In(8),
            Io::ReservationReport { dwords_minus_one, .. } => {
                Transfer::Out(dwords_minus_one.saturating_add(1).saturating_mul(4))
            }
            Io::Flush | Io::WriteZeroes(_) | Io::Verify(_) => Transfer::None,
            Io::Vendor(_) => return Err(Status::INVALID_OPCODE.without_retry()),
        };
        Ok(Admitted { transfer, lender: lender(command, io, &namespace.config) })
    }

    /// Everything that an I/O command needs is here.
    pub(super) fn on_io(&mut self, index: u32, slot: u32, io: Io) {
        let command = self.flights[slot].command;
        if io == Io::Flush && command.namespace == ALL {
            return self.flush_all(index, slot);
        }
        if let Io::Vendor(vendor) = io {
            return match VendorCommand::decode(&vendor) {
                Some(asked) => self.on_sdirect(index, slot, asked),
                None => self.finish(slot, Status::INVALID_OPCODE.without_retry(), 0),
            };
        }
        // A namespace may have gone, shrunk or been reserved while data came.
        let admitted = self.admit(index, &command, io);
        let admitted = admitted.map(|found| (found.config.backend, flushes_after(io, &found.config)));
        match (admitted, io) {
            (Err(status), _) => self.finish(slot, status, 0),
            (
                Ok(_),
                Io::ReservationRegister(_)
                | Io::ReservationAcquire(_)
                | Io::ReservationRelease(_)
                | Io::ReservationReport { .. },
            ) => self.on_reservation(index, slot),
            (Ok((backend, flush_after)), _) => {
                self.flights[slot].flush_after = flush_after;
                self.ask(index, slot, io, backend);
            }
        }
    }

    /// Gives the command to its backend.
    fn ask(&mut self, index: u32, slot: u32, io: Io, backend: BackendId) {
        match self.operation(index, slot, io) {
            Ok(Some(operation)) => self.request(slot, backend, operation),
            Ok(None) => self.finish(slot, Status::SUCCESS, 0),
            Err(status) => self.finish(slot, status, 0),
        }
    }

    /// What a backend has to do for the command; `None` when there is nothing to do.
    fn operation(&mut self, index: u32, slot: u32, io: Io) -> Result<Option<IoOperation>, Status> {
        let take = |flight: &mut crate::target::flight::Flight| std::mem::take(&mut flight.buffer);
        Ok(Some(match io {
            Io::Read(access) => IoOperation::Read { range: access.into(), buffer: take(&mut self.flights[slot]) },
            Io::Write(access) => IoOperation::Write {
                range: access.into(),
                data: take(&mut self.flights[slot]),
                is_durable: is_durable(access.flags),
            },
            Io::Compare(access) => IoOperation::Compare { range: access.into(), data: take(&mut self.flights[slot]) },
            Io::WriteZeroes(access) => IoOperation::WriteZeroes {
                range: access.into(),
                deallocate: access.flags.contains(AccessFlags::DEALLOCATE),
                is_durable: is_durable(access.flags),
            },
            Io::Verify(access) => IoOperation::Verify { range: access.into() },
            Io::Flush => IoOperation::Flush,
            Io::DatasetManagement(manage) => return self.deallocation(index, slot, manage),
            Io::Copy(copy) => return self.copy(index, slot, copy),
            _ => return Err(Status::INVALID_OPCODE.without_retry()),
        }))
    }

    /// A flush of all namespaces: of those that have a cache.
    fn flush_all(&mut self, index: u32, slot: u32) {
        let subsystem = match self.storage(index) {
            Ok((controller, subsystem)) if controller.is_ready() => subsystem,
            Ok(_) => return self.finish(slot, Status::COMMAND_SEQUENCE.without_retry(), 0),
            Err(status) => return self.finish(slot, status, 0),
        };
        let backends = self.volatile_backends(subsystem);
        if backends.is_empty() {
            return self.finish(slot, Status::SUCCESS, 0);
        }
        for backend in backends {
            self.request(slot, backend, IoOperation::Flush);
        }
    }

    pub(super) fn namespace_at(&self, index: u32, id: u32) -> Result<&Namespace, Status> {
        let (_, subsystem) = self.storage(index)?;
        self.subsystems[subsystem].namespace(id)
    }

    fn deallocation(&self, index: u32, slot: u32, manage: DatasetManagement) -> Result<Option<IoOperation>, Status> {
        let flight = &self.flights[slot];
        let capacity = self.namespace_at(index, flight.command.namespace)?.config.blocks;
        let ranges = DatasetRange::view(&flight.buffer, usize::from(manage.ranges_minus_one) + 1);
        let ranges = ranges.map_err(|_| Status::INVALID_SGL_LENGTH.without_retry())?;
        let is_within = |range: &&DatasetRange| {
            range.start.get().checked_add(range.blocks.get().into()).is_some_and(|end| end <= capacity)
        };
        if !ranges.iter().all(|range| is_within(&range)) {
            return Err(Status::LBA_OUT_OF_RANGE.without_retry());
        }
        let ranges = ranges.iter().map(|range| BlockRange { start: range.start.get(), blocks: range.blocks.get() });
        let ranges: Vec<BlockRange> = ranges.filter(|range| range.blocks > 0).collect();
        // What else a host says of its blocks is a hint.
        let has_work = manage.intent.contains(DatasetUse::DEALLOCATE) && !ranges.is_empty();
        Ok(has_work.then_some(IoOperation::Deallocate { ranges }))
    }

    fn copy(&self, index: u32, slot: u32, copy: Copy) -> Result<Option<IoOperation>, Status> {
        let flight = &self.flights[slot];
        let here = self.namespace_at(index, flight.command.namespace)?;
        let (controller, _) = self.storage(index)?;
        let count = usize::from(copy.ranges_minus_one) + 1;
        let is_enabled = match copy.format {
            CopyFormat::Short | CopyFormat::Long => true,
            across => controller.behavior.copy_formats & 1 << across.code() != 0,
        };
        if !is_enabled {
            return Err(Status::INVALID_FIELD.without_retry());
        }
        if count > COPY_RANGES_MAX {
            return Err(Status::SIZE_LIMIT.without_retry());
        }
        let ranges = CopyRange::list(&flight.buffer, count, copy.format);
        let ranges = ranges.map_err(|_| Status::INVALID_SGL_LENGTH.without_retry())?;
        let most = copy_range_blocks_max(&self.limits, here.config.block_shift);
        let (mut sources, mut total) = (Vec::with_capacity(count), 0);
        for range in ranges {
            if range.blocks_minus_one >= most {
                return Err(Status::SIZE_LIMIT.without_retry());
            }
            total += u32::from(range.blocks_minus_one) + 1;
            sources.push(self.copy_source(index, controller, here, flight.command.namespace, range)?);
        }
        if total > copy_blocks_max(&self.limits, here.config.block_shift) {
            return Err(Status::SIZE_LIMIT.without_retry());
        }
        let end = copy.start.checked_add(total.into());
        if end.is_none_or(|end| end > here.config.blocks) {
            return Err(Status::LBA_OUT_OF_RANGE.without_retry());
        }
        Ok(Some(IoOperation::Copy { start: copy.start, sources, is_durable: is_durable(copy.flags) }))
    }

    /// Where a range of Copy comes from, if it may be read.
    fn copy_source(
        &self,
        index: u32,
        controller: &Controller,
        here: &Namespace,
        own: u32,
        range: CopyRange,
    ) -> Result<CopySource, Status> {
        let source = self.namespace_at(index, range.namespace.unwrap_or(own))?;
        if source.config.block_shift != here.config.block_shift {
            return Err(INCOMPATIBLE_NAMESPACE.without_retry());
        }
        if !source.config.reservations.allows(controller.host_id, Intent::Read) {
            return Err(Status::RESERVATION_CONFLICT.without_retry());
        }
        let blocks = u32::from(range.blocks_minus_one) + 1;
        let is_within = range.start.checked_add(blocks.into()).is_some_and(|end| end <= source.config.blocks);
        if !is_within {
            return Err(Status::LBA_OUT_OF_RANGE.without_retry());
        }
        let range = BlockRange { start: range.start, blocks };
        Ok(CopySource { backend: source.config.backend, range })
    }

    /// Both halves of a fused pair have their data.
    pub(super) fn on_compare_and_write(&mut self, first: u32, second: u32) {
        let command = self.flights[second].command;
        let (Some(index), Body::Io(io @ Io::Write(access))) = (self.flights[second].connection, command.body) else {
            return self.finish(second, Status::INTERNAL_ERROR, 0);
        };
        let backend: BackendId = match self.admit(index, &command, io) {
            Ok(namespace) => namespace.config.backend,
            Err(status) => return self.finish(second, status, 0),
        };
        debug_assert_eq!(self.flights[first].phase, Phase::Fused);
        let expected = std::mem::take(&mut self.flights[first].buffer);
        let data = std::mem::take(&mut self.flights[second].buffer);
        let (range, is_durable) = (access.into(), is_durable(access.flags));
        self.request(second, backend, IoOperation::CompareAndWrite { range, expected, data, is_durable });
    }
}
