//! Commands of the NVM command set, checked against namespace, ANA state and reservation, and
//! turned into requests to backends.

use crate::range::{CopyFormat, CopyRange, DatasetRange};
use crate::target::config::NamespaceConfig;
use crate::target::connection::Connection;
use crate::target::controller::Controller;
use crate::target::controllers::Controllers;
use crate::target::flight::{Admitted, Flight, Transfer};
use crate::target::io::{BlockRange, CopySource, IoOperation};
use crate::target::reservations::Intent;
use crate::target::subsystem::{Namespace, Subsystem, Wanted};
use crate::target::{BackendId, TargetLimits};
use crate::vendor::VendorCommand;
use crate::{Access, AccessFlags, Command, Copy, DatasetManagement, DatasetUse, Fuse, Io, Sgl, Status};

/// Ranges of a Copy (MSRC + 1).
pub(super) const COPY_RANGES_MAX: usize = 128;
/// The broadcast namespace identifier.
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

/// Whether the data have to survive a power loss before the answer.
pub(super) fn is_durable(flags: AccessFlags) -> bool {
    flags.contains(AccessFlags::FORCE_UNIT_ACCESS)
}

/// The backend to flush before a forced read (NVM Command Set 1.0, 3.2.4, FUA) is answered: data
/// that are in its volatile cache alone would not survive a power loss.
fn flushes_after(io: Io, config: &NamespaceConfig) -> Option<BackendId> {
    let is_forced = matches!(io, Io::Read(access) if access.flags.contains(AccessFlags::FORCE_UNIT_ACCESS));
    (is_forced && config.has_volatile_cache).then_some(config.backend)
}

/// The blocks of a command.
fn access_of(io: Io) -> Option<Access> {
    match io {
        Io::Read(access) | Io::Write(access) | Io::Compare(access) | Io::WriteZeroes(access) | Io::Verify(access) => {
            Some(access)
        }
        _ => None,
    }
}

/// The access of a command, for reservations; `None` if they do not restrict it.
pub(super) fn intent_of(io: Io) -> Option<Intent> {
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

fn is_reservation(io: Io) -> bool {
    use Io::{ReservationAcquire, ReservationRegister, ReservationRelease, ReservationReport};
    matches!(io, ReservationRegister(_) | ReservationAcquire(_) | ReservationRelease(_) | ReservationReport { .. })
}

/// Bytes of the longest list of ranges of Dataset Management.
const LIST_BYTES_MAX: u32 = 256 * DatasetRange::BYTES as u32;

/// Bytes of a list of ranges: a host may describe more than it has filled. Linux always describes
/// room for 256 ranges (drivers/nvme/host/core.c, nvme_setup_discard).
fn list_bytes(data: Sgl, needed: u32) -> u32 {
    data.length().filter(|given| (needed..=needed.max(LIST_BYTES_MAX)).contains(given)).unwrap_or(needed)
}

/// The requests of an I/O command.
#[derive(Debug)]
pub(super) enum Work {
    /// Nothing: it has succeeded.
    Nothing,
    /// One request. The data of a read are flushed to `flush_after` before the host gets them.
    Request { backend: BackendId, operation: IoOperation, flush_after: Option<BackendId> },
    /// A flush of all of these.
    Flush(Vec<BackendId>),
    /// A reservation command: the namespace decides.
    Reservation,
}

/// An I/O controller with the subsystem that it serves: checks commands and turns them into
/// requests to backends.
#[derive(Clone, Copy)]
pub(super) struct IoController<'a> {
    pub(super) controller: &'a Controller,
    pub(super) subsystem: &'a Subsystem,
    pub(super) limits: &'a TargetLimits,
}

impl<'a> IoController<'a> {
    /// The controller whose queue `connection` is. Fails on a discovery controller.
    pub(super) fn of(
        connection: &Connection,
        controllers: &'a Controllers,
        subsystems: &'a [Subsystem],
        limits: &'a TargetLimits,
    ) -> Result<Self, Status> {
        let controller = connection.controller().and_then(|id| controllers.get(id)).ok_or(Status::INTERNAL_ERROR)?;
        let subsystem = controller.subsystem().ok_or(Status::INVALID_OPCODE.without_retry())?;
        Ok(IoController { controller, subsystem: &subsystems[subsystem], limits })
    }

    /// The namespace of a command, if the command is allowed now.
    pub(super) fn admit(&self, command: &Command, io: Io) -> Result<&'a Namespace, Status> {
        let range = access_of(io).map(|access| (access.start, u64::from(access.blocks())));
        self.admit_to(command.namespace, Wanted { intent: intent_of(io), changes: is_write(io), range })
    }

    /// The namespace `id`, if the access is allowed now.
    pub(super) fn admit_to(&self, id: u32, wanted: Wanted) -> Result<&'a Namespace, Status> {
        if !self.controller.is_ready() {
            return Err(Status::COMMAND_SEQUENCE.without_retry());
        }
        self.subsystem.admit(self.controller.port, self.controller.host_id, id, wanted)
    }

    /// Bytes and direction of an I/O command, if it may be carried out.
    pub(super) fn check(&self, command: &Command, io: Io) -> Result<Admitted, Status> {
        if io == Io::Flush && command.namespace == ALL {
            return Ok(Transfer::None.into());
        }
        if let Io::Vendor(vendor) = io {
            let asked = VendorCommand::decode(&vendor).ok_or(Status::INVALID_OPCODE.without_retry())?;
            let bytes = self.sdirect_bytes(command, asked)?;
            return Ok(if bytes > 0 { Transfer::In(bytes) } else { Transfer::None }.into());
        }
        let namespace = self.admit(command, io)?;
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

    /// The requests of a command whose data are here.
    pub(super) fn work(&self, flight: &mut Flight, io: Io) -> Result<Work, Status> {
        let command = flight.command;
        if io == Io::Flush && command.namespace == ALL {
            return self.flush_all();
        }
        if let Io::Vendor(vendor) = io {
            let asked = VendorCommand::decode(&vendor).ok_or(Status::INVALID_OPCODE.without_retry())?;
            let (device, operation) = self.sdirect(flight, asked)?;
            let operation = IoOperation::Engine(operation);
            return Ok(Work::Request { backend: device.backend, operation, flush_after: None });
        }
        // A namespace may have been removed, shrunk or reserved while data arrived.
        let namespace = self.admit(&command, io)?;
        let (backend, flush_after) = (namespace.config.backend, flushes_after(io, &namespace.config));
        if is_reservation(io) {
            return Ok(Work::Reservation);
        }
        Ok(match self.operation(namespace, flight, io)? {
            Some(operation) => Work::Request { backend, operation, flush_after },
            None => Work::Nothing,
        })
    }

    /// The operation of a backend for the command; `None` for none.
    fn operation(&self, namespace: &Namespace, flight: &mut Flight, io: Io) -> Result<Option<IoOperation>, Status> {
        let take = |flight: &mut Flight| std::mem::take(&mut flight.buffer);
        Ok(Some(match io {
            Io::Read(access) => IoOperation::Read { range: access.into(), buffer: take(flight) },
            Io::Write(access) => {
                IoOperation::Write { range: access.into(), data: take(flight), is_durable: is_durable(access.flags) }
            }
            Io::Compare(access) => IoOperation::Compare { range: access.into(), data: take(flight) },
            Io::WriteZeroes(access) => IoOperation::WriteZeroes {
                range: access.into(),
                deallocate: access.flags.contains(AccessFlags::DEALLOCATE),
                is_durable: is_durable(access.flags),
            },
            Io::Verify(access) => IoOperation::Verify { range: access.into() },
            Io::Flush => IoOperation::Flush,
            Io::DatasetManagement(manage) => return namespace.deallocation(&flight.buffer, manage),
            Io::Copy(copy) => return self.copy(namespace, flight, copy),
            _ => return Err(Status::INVALID_OPCODE.without_retry()),
        }))
    }

    /// A flush of all namespaces: of those that have a cache.
    fn flush_all(&self) -> Result<Work, Status> {
        if !self.controller.is_ready() {
            return Err(Status::COMMAND_SEQUENCE.without_retry());
        }
        let backends = self.subsystem.volatile_backends();
        Ok(if backends.is_empty() { Work::Nothing } else { Work::Flush(backends) })
    }

    fn copy(&self, here: &Namespace, flight: &Flight, copy: Copy) -> Result<Option<IoOperation>, Status> {
        let count = usize::from(copy.ranges_minus_one) + 1;
        let is_enabled = match copy.format {
            CopyFormat::Short | CopyFormat::Long => true,
            across => self.controller.behavior.copy_formats & 1 << across.code() != 0,
        };
        if !is_enabled {
            return Err(Status::INVALID_FIELD.without_retry());
        }
        if count > COPY_RANGES_MAX {
            return Err(Status::SIZE_LIMIT.without_retry());
        }
        let ranges = CopyRange::list(&flight.buffer, count, copy.format);
        let ranges = ranges.map_err(|_| Status::INVALID_SGL_LENGTH.without_retry())?;
        let most = copy_range_blocks_max(self.limits, here.config.block_shift);
        let (mut sources, mut total) = (Vec::with_capacity(count), 0);
        for range in ranges {
            if range.blocks_minus_one >= most {
                return Err(Status::SIZE_LIMIT.without_retry());
            }
            total += u32::from(range.blocks_minus_one) + 1;
            sources.push(self.copy_source(here, flight.command.namespace, range)?);
        }
        if total > copy_blocks_max(self.limits, here.config.block_shift) {
            return Err(Status::SIZE_LIMIT.without_retry());
        }
        let end = copy.start.checked_add(total.into());
        if end.is_none_or(|end| end > here.config.blocks) {
            return Err(Status::LBA_OUT_OF_RANGE.without_retry());
        }
        Ok(Some(IoOperation::Copy { start: copy.start, sources, is_durable: is_durable(copy.flags) }))
    }

    /// The source of a range of Copy, if it may be read.
    fn copy_source(&self, here: &Namespace, own: u32, range: CopyRange) -> Result<CopySource, Status> {
        let source = self.subsystem.namespace(range.namespace.unwrap_or(own))?;
        if source.config.block_shift != here.config.block_shift {
            return Err(INCOMPATIBLE_NAMESPACE.without_retry());
        }
        if !source.config.reservations.allows(self.controller.host_id, Intent::Read) {
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
}

impl Namespace {
    fn deallocation(&self, list: &[u8], manage: DatasetManagement) -> Result<Option<IoOperation>, Status> {
        let capacity = self.config.blocks;
        let ranges = DatasetRange::view(list, usize::from(manage.ranges_minus_one) + 1);
        let ranges = ranges.map_err(|_| Status::INVALID_SGL_LENGTH.without_retry())?;
        let is_within = |range: &&DatasetRange| {
            range.start.get().checked_add(range.blocks.get().into()).is_some_and(|end| end <= capacity)
        };
        if !ranges.iter().all(|range| is_within(&range)) {
            return Err(Status::LBA_OUT_OF_RANGE.without_retry());
        }
        let ranges = ranges.iter().map(|range| BlockRange { start: range.start.get(), blocks: range.blocks.get() });
        let ranges: Vec<BlockRange> = ranges.filter(|range| range.blocks > 0).collect();
        // All other attributes are hints.
        let has_work = manage.intent.contains(DatasetUse::DEALLOCATE) && !ranges.is_empty();
        Ok(has_work.then_some(IoOperation::Deallocate { ranges }))
    }
}
