//! A whole solid-state drive that manages itself: host link, firmware, write buffer, translation
//! layer, garbage collection.
//!
//! [`SolidState::submit`] answers when a command ends, and `now` never runs backward over the
//! calls. What the drive does by itself happens, in the order of time, before the next command:
//! steps of collection, and the flush of pages that wait for more.
//!
//! * **Read**: firmware, then each page that holds a part of it, then the host link. Parts that are
//!   still in the write buffer or were never written need no flash. The command ends with the part
//!   that is last, and its waits are that part's.
//! * **Write**: host link, room in the write buffer, firmware, write-in. A page is programmed when
//!   it is full; its room is free again when the program has ended. Where less than a unit is
//!   written, the rest is read first. Without a buffer ([`FlushPolicy::Through`]) a command ends
//!   when its pages are programmed.
//! * **Collection** keeps a fixed reserve of room on every die: what a page of the host takes from
//!   it is won back, a step after the other, with requests between, and at the latest with the next
//!   page. Where a write finds no free block at all, a whole victim is collected at once in front
//!   of it (counted as forced).
//!
//! Flash is booked at a command's arrival and fixed times before it (firmware) are added after:
//! shifting all by the same time changes no wait. A program is booked when its last data arrive at
//! the link, even when the buffer has room for them a little later.

mod buffer;
mod collector;
mod config;
mod precondition;
mod report;

pub use config::{
    CollectionConfig, Cost, DriveError, Firmware, FlushPolicy, HostLink, RetryStep, SolidStateConfig, WriteBuffer,
};
pub use precondition::{Pattern, Precondition, PreconditionError, PreconditionReport, Steady};
pub(super) use report::amplification;
pub use report::{DriveReport, LatencyQuantiles};

use super::array::{Booked, Calendar, FlashArray, FlashOperation, Purpose};
use super::ftl::{FtlError, TranslationLayer};
use super::geometry::PageAddress;
use super::volume::{Found, Volume};
use base::{Bytes, Span, Time};
use buffer::Buffer;
use collector::{Collector, Work};
use report::Observed;
use std::io::{Read, Write};
use std::ops::Range;

/// A request to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The operation.
    pub kind: CommandKind,
    /// First byte.
    pub address: u64,
    /// Number of bytes; none for a flush.
    pub bytes: Bytes,
}

/// Kinds of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Data to the host.
    Read,
    /// Data from the host.
    Write,
    /// Gives up the units that lie wholly inside.
    Trim,
    /// Ends when all that was written is in flash.
    Flush,
}

/// When a command ends, and why then: the three spans sum to the time from its arrival to `end`,
/// exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Time at which it is done.
    pub end: Time,
    /// Waiting behind other commands: for dies, channels, the link, room in the buffer.
    pub wait: Span,
    /// Waiting behind collection.
    pub collection_wait: Span,
    /// Being served.
    pub service: Span,
}

/// A drive, see the [module's description](self).
#[derive(Clone, Debug)]
pub struct SolidState {
    config: SolidStateConfig,
    logical_units: u64,
    array: FlashArray,
    volume: Volume,
    collector: Collector,
    buffer: Buffer,
    to_host: Calendar,
    from_host: Calendar,
    observed: Observed,
    /// The size that crossed the link last and how long that takes: most commands are of one size,
    /// and the division is slow.
    link_time: (Bytes, Span),
}

impl SolidState {
    /// A fresh drive. Fails when the numbers do not fit each other.
    pub fn new(config: SolidStateConfig) -> Result<SolidState, DriveError> {
        config.check()?;
        let layer = TranslationLayer::new(config.layer(), config.blocks())?;
        SolidState::around(config, layer)
    }
    /// Books a command. `now` must not be before that of any earlier call.
    pub fn submit(&mut self, now: Time, command: Command) -> Result<Done, DriveError> {
        command.check_range(self.capacity())?;
        self.advance(now);
        let done = match command.kind {
            CommandKind::Read => self.read(now, command),
            CommandKind::Write => self.write(now, command)?,
            CommandKind::Trim => self.trim(now, command),
            CommandKind::Flush => self.flush(now),
        };
        self.observed.command(now, command, &done);
        Ok(done)
    }
    /// What the host can address.
    pub fn capacity(&self) -> Bytes {
        self.config.geometry.unit * self.logical_units
    }
    /// What it is made of.
    pub fn config(&self) -> &SolidStateConfig {
        &self.config
    }
    /// Its translation layer.
    pub fn layer(&self) -> &TranslationLayer {
        &self.volume.layer
    }
    /// Whether collection goes on: a die owes steps of it, as of the last command.
    pub fn is_collecting(&self) -> bool {
        self.collector.next_due().is_some()
    }
    /// Counters since construction, preparation, or the last reset.
    pub fn report(&self) -> DriveReport {
        self.observed.report(&self.array, &self.volume.layer)
    }
    /// Starts a new report; data, wear and what is underway stay.
    pub fn restart_report(&mut self) {
        self.observed = Observed::from(&self.array, &self.volume.layer);
    }
    /// Saves where the data lie. A drive that takes it up is idle: what is underway counts as done.
    pub fn save(&self, target: impl Write) -> std::io::Result<()> {
        self.volume.layer.save(target)
    }
    /// A drive with the data of one of the same configuration. Fails when that differs, or the
    /// snapshot is damaged.
    pub fn restore(config: SolidStateConfig, source: impl Read) -> Result<SolidState, DriveError> {
        config.check()?;
        let layer = TranslationLayer::restore(config.layer(), source)?;
        SolidState::around(config, layer)
    }
}

impl SolidState {
    fn around(config: SolidStateConfig, layer: TranslationLayer) -> Result<SolidState, DriveError> {
        let array = FlashArray::new(config.geometry, config.timing.clone())?;
        let dies = config.geometry.dies() as usize;
        Ok(SolidState {
            logical_units: layer.logical_units(),
            observed: Observed::from(&array, &layer),
            collector: Collector::new(config.reserve_units(), u64::from(config.geometry.units_per_page()), dies),
            buffer: Buffer::new(config.buffer, &config.geometry, config.timing.suspension),
            to_host: Calendar::default(),
            from_host: Calendar::default(),
            link_time: (Bytes::ZERO, Span::ZERO),
            volume: Volume::new(layer),
            array,
            config,
        })
    }
    /// Does what was due until now: flushes and steps of collection, the earlier first.
    fn advance(&mut self, now: Time) {
        loop {
            let step = self.collector.next_due();
            match self.buffer.idle_flush_at() {
                Some(at) if at <= now && step.is_none_or(|step| at <= step) => self.program_partial(at),
                _ if step.is_some_and(|step| step <= now) => {
                    self.collector.step(Work {
                        array: &mut self.array,
                        volume: &mut self.volume,
                        observed: &mut self.observed,
                    });
                }
                _ => return,
            };
        }
    }

    fn read(&mut self, now: Time, command: Command) -> Done {
        let unit_bytes = self.config.geometry.unit.count();
        let firmware = self.config.firmware.read.of(command.bytes);
        let end = command.address + command.bytes.count();
        let mut address = command.address;
        let mut last: Option<Done> = None;
        while address < end {
            let found = self.volume.find(address / unit_bytes);
            let mut part_end = end.min((address / unit_bytes + 1) * unit_bytes);
            // Units that follow each other in one page are one read.
            while part_end < end && is_same_page(found, self.volume.find(part_end / unit_bytes)) {
                part_end = end.min(part_end + unit_bytes);
            }
            let bytes = Bytes::new(part_end - address);
            let booked = self.fetch(now, found, bytes);
            let part = self.send(now, booked, firmware, bytes);
            last = Some(last.filter(|last| last.end >= part.end).unwrap_or(part));
            address = part_end;
        }
        last.expect("a read has bytes")
    }
    /// From flash to the controller.
    fn fetch(&mut self, now: Time, found: Found, bytes: Bytes) -> Booked {
        let Found::InFlash(at) = found else { return self.without_flash(now) };
        let page = at.page;
        let die = self.config.geometry.die_of(page.block);
        if self.buffer.holds(now, die, page) {
            return self.without_flash(now);
        }
        let retries = match self.config.read_retry.is_empty() {
            true => 0,
            false => self.config.retries(self.volume.layer.erases_of(page.block).unwrap_or(0)),
        };
        self.array.submit(now, FlashOperation::Read { page, bytes, retries }, Purpose::Host)
    }
    fn without_flash(&mut self, now: Time) -> Booked {
        self.observed.without_flash += 1;
        Booked::without_flash(now, Span::ZERO)
    }
    /// From the controller to the host.
    fn send(&mut self, now: Time, booked: Booked, firmware: Span, bytes: Bytes) -> Done {
        let length = self.link_time(bytes);
        let ready = booked.end + firmware;
        let (start, _) = self.to_host.book(now, ready, length, Purpose::Host);
        Done {
            end: start + length + self.config.link.command,
            wait: booked.wait + (start - ready),
            collection_wait: booked.collection_wait,
            service: booked.service + firmware + length + self.config.link.command,
        }
    }

    fn write(&mut self, now: Time, command: Command) -> Result<Done, DriveError> {
        let length = self.link_time(command.bytes);
        let (start, _) = self.from_host.book(now, now, length, Purpose::Host);
        let fixed = self.config.firmware.write.of(command.bytes) + self.config.link.command;
        self.read_rest(now, command);
        let arrived = Done::at(now).wait_until(start).then(length);
        if self.config.buffer.flush == FlushPolicy::Through {
            return Ok(self.write_through(now, command, arrived)?.then(fixed));
        }
        let stored = self.write_back(now, command, arrived)?;
        Ok(stored.then(fixed + self.config.buffer.write_in.of(command.bytes)))
    }
    fn write_back(&mut self, now: Time, command: Command, arrived: Done) -> Result<Done, DriveError> {
        let mut done = arrived;
        for unit in self.units(command) {
            done = self.make_room(now, done);
            self.buffer.put(now);
            if let Some(page) = self.write_unit(now, unit)? {
                let booked = self.program(now, page);
                self.buffer.programming(now, self.config.geometry.die_of(page.block), page, &booked);
            }
        }
        Ok(done)
    }
    fn write_through(&mut self, now: Time, command: Command, arrived: Done) -> Result<Done, DriveError> {
        let mut last = Booked::without_flash(now, Span::ZERO);
        for unit in self.units(command) {
            if let Some(page) = self.write_unit(now, unit)? {
                last = later(last, self.program(now, page));
            }
        }
        for page in self.volume.layer.pad() {
            last = later(last, self.program(now, page));
        }
        // Flash is booked at the command's arrival. That its data wait for the link shows only
        // where the wait is longer than that for flash.
        let link_wait = arrived.wait.saturating_sub(last.wait + last.collection_wait);
        Ok(Done {
            end: last.end + link_wait + arrived.service,
            wait: last.wait + link_wait,
            collection_wait: last.collection_wait,
            service: arrived.service + last.service,
        })
    }
    /// Gives a unit a place, and returns the page that it filled.
    fn write_unit(&mut self, now: Time, unit: u64) -> Result<Option<PageAddress>, DriveError> {
        loop {
            match self.volume.layer.write(unit) {
                Ok(written) => return Ok(written.program),
                Err(FtlError::NoFreeBlock) => self.collect_at_once(now)?,
                Err(error) => return Err(error.into()),
            }
        }
    }
    /// Collects whole victims until one has given a free block.
    fn collect_at_once(&mut self, now: Time) -> Result<(), DriveError> {
        let work = Work { array: &mut self.array, volume: &mut self.volume, observed: &mut self.observed };
        match self.collector.collect_at_once(now, work) {
            true => Ok(()),
            false => Err(FtlError::NoFreeBlock.into()),
        }
    }
    /// Programs a page of the host, and takes the steps of collection that go with it.
    fn program(&mut self, now: Time, page: PageAddress) -> Booked {
        let booked = self.array.submit(now, FlashOperation::Program { page }, Purpose::Host);
        let die = self.config.geometry.die_of(page.block);
        let work = Work { array: &mut self.array, volume: &mut self.volume, observed: &mut self.observed };
        self.collector.host_programs(now, die, work);
        booked
    }
    /// Waits until the buffer has room for a unit more.
    fn make_room(&mut self, now: Time, done: Done) -> Done {
        if self.buffer.has_room() {
            return done;
        }
        if self.buffer.is_all_gathering() {
            self.program_partial(now);
        }
        let room = self.buffer.make_room(&self.array);
        let wait = room.at.saturating_since(done.end);
        let collection_wait = wait.min(room.collection_wait);
        self.observed.stalls += u64::from(wait > Span::ZERO);
        self.observed.stall_time += wait;
        Done {
            end: done.end + wait,
            wait: done.wait + (wait - collection_wait),
            collection_wait: done.collection_wait + collection_wait,
            service: done.service,
        }
    }
    /// Programs the pages that are not full.
    fn program_partial(&mut self, now: Time) {
        let pages = self.volume.layer.pad();
        for (index, page) in pages.iter().enumerate() {
            let booked = self.program(now, *page);
            let die = self.config.geometry.die_of(page.block);
            self.buffer.programming_partial(now, die, *page, &booked, index + 1 == pages.len());
        }
        self.buffer.gathers_nothing();
    }
    /// Reads the old data of units that are written in part only. The write does not wait for them,
    /// its dies do.
    fn read_rest(&mut self, now: Time, command: Command) {
        let unit = self.config.geometry.unit.count();
        let end = command.address + command.bytes.count();
        let first = (!command.address.is_multiple_of(unit)).then_some(command.address / unit);
        let last = (!end.is_multiple_of(unit)).then_some(end / unit).filter(|last| Some(*last) != first);
        for unit in [first, last].into_iter().flatten() {
            let found = self.volume.find(unit);
            if found != Found::Nowhere {
                self.observed.partial_writes += 1;
                self.fetch(now, found, self.config.geometry.unit);
            }
        }
    }

    fn trim(&mut self, now: Time, command: Command) -> Done {
        let unit = self.config.geometry.unit.count();
        let (first, end) = (command.address.div_ceil(unit), (command.address + command.bytes.count()) / unit);
        for unit in first..end {
            self.volume.layer.trim(unit);
        }
        Done::at(now).then(self.config.firmware.write.of(Bytes::ZERO) + self.config.link.command)
    }
    fn flush(&mut self, now: Time) -> Done {
        self.program_partial(now);
        let empty_at = self.buffer.empty_at(&self.array);
        Done::at(now).wait_until(empty_at).then(self.config.firmware.write.of(Bytes::ZERO) + self.config.link.command)
    }
    fn link_time(&mut self, bytes: Bytes) -> Span {
        if self.link_time.0 != bytes {
            self.link_time = (bytes, self.config.link.rate.span_of(bytes));
        }
        self.link_time.1
    }
    fn units(&self, command: Command) -> Range<u64> {
        let unit = self.config.geometry.unit.count();
        command.address / unit..(command.address + command.bytes.count()).div_ceil(unit)
    }
}

impl Command {
    /// Whether a drive of this capacity has what is named.
    pub(super) fn check_range(&self, capacity: Bytes) -> Result<(), DriveError> {
        let (address, bytes, capacity) = (self.address, self.bytes.count(), capacity.count());
        match self.kind {
            CommandKind::Flush => Ok(()),
            _ if bytes == 0 => Err(DriveError::NoBytes { address }),
            _ if address.checked_add(bytes).is_none_or(|end| end > capacity) => {
                Err(DriveError::Beyond { address, bytes, capacity })
            }
            _ => Ok(()),
        }
    }
}

impl Done {
    pub(super) fn at(now: Time) -> Done {
        Done { end: now, wait: Span::ZERO, collection_wait: Span::ZERO, service: Span::ZERO }
    }
    /// Served for a while more.
    pub(super) fn then(self, service: Span) -> Done {
        Done { end: self.end + service, service: self.service + service, ..self }
    }
    /// Waiting until then, if that is later.
    pub(super) fn wait_until(self, start: Time) -> Done {
        let wait = start.saturating_since(self.end);
        Done { end: self.end + wait, wait: self.wait + wait, ..self }
    }
    /// All of its time.
    pub fn total(&self) -> Span {
        self.wait + self.collection_wait + self.service
    }
}

fn later(one: Booked, other: Booked) -> Booked {
    if other.end >= one.end { other } else { one }
}

fn is_same_page(one: Found, other: Found) -> bool {
    match (one, other) {
        (Found::InFlash(one), Found::InFlash(other)) => one.page == other.page,
        _ => false,
    }
}
