//! The time of an emulated drive: a model of `hardware::ssd` in real time.

use crate::error::StartError;
use base::{Bytes, Seed, Span, Time};
use hardware::ssd::presets::{DriveConfig, preset};
use hardware::ssd::{Command, CommandKind, DirectConfig, DirectDrive, Done, DriveError, SolidState, SolidStateConfig};
use nvme::target::{BlockRange, IoOperation};

/// A drive that says when a request would complete.
pub(crate) enum Drive {
    SolidState(Box<SolidState>),
    Direct(DirectDrive),
}

/// The parts of a request's time, as the drive reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriveTime {
    /// Time behind other requests.
    pub wait: Span,
    /// Time behind garbage collection.
    pub collection_wait: Span,
    /// Service time.
    pub service: Span,
}

impl Drive {
    /// The preset `name`, with as much flash as `bytes` of data need: tables are kept for that
    /// alone.
    pub(crate) fn of_preset(name: &str, seed: u64, bytes: Bytes) -> Result<Drive, StartError> {
        let fail = |reason: String| StartError::Drive { drive: name.into(), reason };
        let found = preset(name).ok_or_else(|| fail("there is no such preset".into()))?;
        match (found.config)(Seed(seed)) {
            DriveConfig::Direct(config) => {
                DirectDrive::new(DirectConfig { capacity: bytes, ..config }).map(Drive::Direct)
            }
            DriveConfig::SolidState(config) => {
                let config = large_enough(config, bytes).map_err(&fail)?;
                SolidState::new(config).map(|drive| Drive::SolidState(Box::new(drive)))
            }
        }
        .map_err(|error| fail(error.to_string()))
    }

    /// When a request that arrives at `now` completes, and the parts of its time. `shift` is that
    /// of its blocks.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        operation: &IoOperation,
        shift: u8,
    ) -> Result<(Time, DriveTime), DriveError> {
        let mut time = DriveTime::default();
        let mut end = now;
        for command in commands(operation, shift) {
            let done = self.command(now, command)?;
            if done.end >= end {
                end = done.end;
                time = DriveTime { wait: done.wait, collection_wait: done.collection_wait, service: done.service };
            }
        }
        Ok((end, time))
    }

    fn command(&mut self, now: Time, command: Command) -> Result<Done, DriveError> {
        match self {
            Drive::SolidState(drive) => drive.submit(now, command),
            Drive::Direct(drive) => drive.submit(now, command),
        }
    }
}

/// The least number of blocks per plane with which the drive holds `bytes` and its garbage
/// collection has room.
fn large_enough(config: SolidStateConfig, bytes: Bytes) -> Result<SolidStateConfig, String> {
    /// Enough that the reserve of garbage collection is a small part of a die.
    const BLOCKS_MIN: u32 = 64;
    let own = config.geometry.blocks_per_plane;
    let mut blocks = BLOCKS_MIN.min(own);
    loop {
        let tried = config.clone().with_blocks_per_plane(blocks);
        let holds = tried.logical_units().saturating_mul(tried.geometry.unit.count());
        if holds >= bytes.count() && tried.check().is_ok() {
            return Ok(tried);
        }
        // A namespace may be larger than the product: the drive then has larger dies.
        let most = own.saturating_mul(16);
        if blocks >= most {
            return Err(format!("{bytes} are more than it can hold ({})", Bytes::new(holds)));
        }
        blocks = blocks.saturating_add(blocks / 2).min(most);
    }
}

/// The drive's operations for a request.
fn commands(operation: &IoOperation, shift: u8) -> Vec<Command> {
    use CommandKind::{Flush, Read, Trim, Write};
    let one = |kind, range: BlockRange| Command {
        kind,
        address: range.start << shift,
        bytes: Bytes::new(u64::from(range.blocks) << shift),
    };
    let flush = Command { kind: Flush, address: 0, bytes: Bytes::ZERO };
    let durable = |mut commands: Vec<Command>, is_durable: bool| {
        commands.extend(is_durable.then_some(flush));
        commands
    };
    match operation {
        IoOperation::Read { range, .. } | IoOperation::Compare { range, .. } | IoOperation::Verify { range } => {
            vec![one(Read, *range)]
        }
        IoOperation::Write { range, is_durable, .. } => durable(vec![one(Write, *range)], *is_durable),
        IoOperation::CompareAndWrite { range, is_durable, .. } => {
            durable(vec![one(Read, *range), one(Write, *range)], *is_durable)
        }
        IoOperation::WriteZeroes { range, deallocate, is_durable } => {
            durable(vec![one(if *deallocate { Trim } else { Write }, *range)], *is_durable)
        }
        IoOperation::Deallocate { ranges } => ranges.iter().map(|range| one(Trim, *range)).collect(),
        IoOperation::Copy { start, sources, is_durable } => {
            let blocks = sources.iter().map(|source| source.range.blocks).sum();
            durable(vec![one(Write, BlockRange { start: *start, blocks })], *is_durable)
        }
        IoOperation::Flush => vec![flush],
        // A drive lends nothing.
        IoOperation::Lend { .. } | IoOperation::EndLoan { .. } | IoOperation::WriteInput { .. } => Vec::new(),
        IoOperation::PersistReservations { .. } | IoOperation::Engine(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hardware::ssd::presets::PRESETS;

    #[test]
    fn every_preset_makes_a_drive_that_holds_the_namespace_to_its_last_block() {
        for preset in PRESETS {
            for bytes in [Bytes::kib(1 << 10), Bytes::kib(4 << 20)] {
                let mut drive = Drive::of_preset(preset.name, 1, bytes).expect("it is made");
                let last = BlockRange { start: bytes.count() / 4096 - 1, blocks: 1 };
                let write = IoOperation::Write { range: last, data: Vec::new(), is_durable: false };
                let (end, time) = drive.submit(Time::us(5), &write, 12).expect("it is inside");
                let parts = time.wait + time.collection_wait + time.service;
                assert_eq!(Time::us(5) + parts, end, "{}", preset.name);
                assert!(end > Time::us(6), "{}: a write takes its time", preset.name);
            }
        }
    }

    #[test]
    fn a_durable_write_takes_as_long_as_the_flush_behind_it() {
        let write = |is_durable| {
            let mut drive = Drive::of_preset("tlc-gen4", 1, Bytes::kib(1 << 20)).expect("it is made");
            let range = BlockRange { start: 0, blocks: 1 };
            drive.submit(Time::ZERO, &IoOperation::Write { range, data: Vec::new(), is_durable }, 12).expect("inside").0
        };
        // A program takes 700 us (hardware::ssd::presets::tlc_gen4); the buffer takes the data in
        // well below 100.
        assert!(write(false) < Time::us(100) && write(true) > Time::us(700));
    }
}
