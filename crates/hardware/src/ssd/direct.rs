//! A drive of a medium that is written in place (3D XPoint): no pages, no translation that matters,
//! no garbage, no erases. It is its table of latencies and a number of lanes that work side by
//! side.

use super::array::{Calendar, Purpose};
use super::drive::{Command, CommandKind, Cost, Done, DriveError, HostLink};
use base::{Bytes, Span, Time};

/// A drive that writes in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectConfig {
    /// What the host can address.
    pub capacity: Bytes,
    /// To the host.
    pub link: HostLink,
    /// Accesses to the medium that go on at once. Neighbouring pieces of 4 KiB are on neighbouring
    /// lanes.
    pub lanes: u32,
    /// The time of a read: once of the controller, and for each 4 KiB of the lane.
    pub read: Cost,
    /// The time of a write, likewise.
    pub write: Cost,
}

/// A drive, which answers [`Command`]s as a [`SolidState`](super::SolidState) does.
#[derive(Clone, Debug)]
pub struct DirectDrive {
    config: DirectConfig,
    lanes: Vec<Calendar>,
    to_host: Calendar,
    from_host: Calendar,
}

const PIECE: u64 = 4096;

impl DirectDrive {
    /// An idle drive. Fails without lanes, capacity or link.
    pub fn new(config: DirectConfig) -> Result<DirectDrive, DriveError> {
        let numbers = [
            ("lanes", u64::from(config.lanes)),
            ("capacity", config.capacity.count()),
            ("link.rate", config.link.rate.as_bps()),
        ];
        match numbers.iter().find(|(_, number)| *number == 0) {
            Some((field, _)) => Err(DriveError::Config { field, reason: "0, and more is needed".to_owned() }),
            None => Ok(DirectDrive {
                config,
                lanes: vec![Calendar::default(); config.lanes as usize],
                to_host: Calendar::default(),
                from_host: Calendar::default(),
            }),
        }
    }
    /// Books a command. `now` must not be before that of any earlier call. Trim and flush have
    /// nothing to do and take a command's time.
    pub fn submit(&mut self, now: Time, command: Command) -> Result<Done, DriveError> {
        command.check_range(self.config.capacity)?;
        Ok(match command.kind {
            CommandKind::Read => self.read(now, command),
            CommandKind::Write => self.write(now, command),
            CommandKind::Trim | CommandKind::Flush => Done::at(now).then(self.config.link.command),
        })
    }
    /// What the host can address.
    pub fn capacity(&self) -> Bytes {
        self.config.capacity
    }

    fn read(&mut self, now: Time, command: Command) -> Done {
        let Cost { command: once, per_4_kib } = self.config.read;
        let fetched = self.access(now, Done::at(now), command, per_4_kib).then(once);
        let length = self.config.link.rate.span_of(command.bytes);
        let (start, _) = self.to_host.book(now, fetched.end, length, Purpose::Host);
        fetched.wait_until(start).then(length + self.config.link.command)
    }
    fn write(&mut self, now: Time, command: Command) -> Done {
        let Cost { command: once, per_4_kib } = self.config.write;
        let length = self.config.link.rate.span_of(command.bytes);
        let (start, _) = self.from_host.book(now, now, length, Purpose::Host);
        let arrived = Done::at(now).wait_until(start).then(length);
        self.access(now, arrived, command, per_4_kib).then(once + self.config.link.command)
    }
    /// All pieces of a command at once, when it is ready for that; its times are those of the last
    /// to be done.
    fn access(&mut self, now: Time, ready: Done, command: Command, each: Span) -> Done {
        let (first, end) = (command.address / PIECE, (command.address + command.bytes.count()).div_ceil(PIECE));
        let mut last = ready;
        for piece in first..end {
            let lane = (piece % u64::from(self.config.lanes)) as usize;
            let (start, _) = self.lanes[lane].book(now, ready.end, each, Purpose::Host);
            if start + each >= last.end {
                last = ready.wait_until(start).then(each);
            }
        }
        last
    }
}
