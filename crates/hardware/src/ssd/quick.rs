//! A closed-form solid-state drive, for racks with so many drives that the whole model
//! ([`SolidState`](super::SolidState)) would take too much memory or time.
//!
//! Flash is a number of lanes (dies). A read uses the lanes of its pages and then the link. A write
//! is answered when it is in the buffer, and its programs become *backlog* of the lanes. A lane
//! processes its backlog, in steps, whenever no read needs it: a read waits for the end of the
//! current step, and costs the lane the time to suspend and resume. A write that finds its lanes'
//! part of the buffer full waits for the time that the lane alone needs to make room.
//!
//! The numbers contain the cost of collection: a fragmented drive programs more for each byte that
//! the host writes, and reads more pages for the same bytes. Not modelled: the places of data
//! (addresses select lanes directly), and variations of collection.

use super::drive::{Command, CommandKind, Cost, Done, DriveError, HostLink, SolidStateConfig};
use super::geometry::{PageTimes, Suspension};
use base::{Bytes, Serialization, Span, Time};

const PIECE: u64 = 4_096;
/// Writes that a drive recognises as sequential side by side. Ours: several clients of a drive.
pub const STREAMS: usize = 16;

/// Such a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickConfig {
    /// What the host can address.
    pub capacity: Bytes,
    /// To the host.
    pub link: HostLink,
    /// Dies that work side by side. Neighbouring pages are on neighbouring lanes.
    pub lanes: u32,
    /// What a lane reads at once; a whole number of 4 KiB.
    pub page: Bytes,
    /// The controller's time for a read.
    pub read: Cost,
    /// A lane's time to read a page.
    pub page_read: Span,
    /// Whether a lane's register still has the page that it read last: reading that one again,
    /// before any other and before a program, takes none of the lane's time.
    pub keeps_page: bool,
    /// The controller's time for a write: into the buffer.
    pub write: Cost,
    /// A lane's time for each 4 KiB that the host writes in order, collection included; also the
    /// step after which a read may go before.
    pub program: Span,
    /// The same for each 4 KiB of a write that continues none of the last 16 streams: random
    /// writes make collection copy more.
    pub scattered: Span,
    /// Least time between the starts of two reads: the controller's limit.
    pub read_gap: Span,
    /// Additional lane time of a read that precedes a program.
    pub suspend: Span,
    /// Write buffer, shared by the lanes in equal parts.
    pub buffer: Bytes,
}

/// A drive, which answers [`Command`]s as a [`SolidState`](super::SolidState) does.
#[derive(Clone, Debug)]
pub struct QuickDrive {
    config: QuickConfig,
    lanes: Vec<Lane>,
    /// Pieces of 4 KiB that a lane's part of the buffer has room for.
    pieces_a_lane: u64,
    /// Where the last writes ended, and the oldest of them.
    ends: [u64; STREAMS],
    oldest: usize,
    /// When the controller starts the next read at the earliest.
    next_read: Time,
    /// On the link.
    serialization: Serialization,
    to_host: Time,
    from_host: Time,
    next_write_lane: usize,
    busy: Span,
}

/// Up to `free_at` the lane is booked for reads; from then on it works at its backlog.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    free_at: Time,
    backlog: Span,
    /// The page in its register, plus one; 0 is none.
    register: u64,
}

impl QuickConfig {
    /// The few sums of a drive of flash that was written once in order, of another capacity: its
    /// dies are the lanes. The channel's time is part of the controller's, so that channels are
    /// never short; a program's, with its page's transfer, is divided by the 4 KiB of a page.
    /// Nothing is collected.
    pub fn of_flash(flash: &SolidStateConfig, capacity: Bytes) -> QuickConfig {
        let SolidStateConfig { geometry, timing, firmware, buffer, .. } = flash;
        let kinds = timing.pages.len() as u64;
        let mean = |of: fn(&PageTimes) -> Span| timing.pages.iter().map(of).sum::<Span>() / kinds;
        let page = Bytes::new(geometry.page.count().next_multiple_of(PIECE));
        let pieces = page.count() / PIECE;
        let program = (mean(|page| page.program) + timing.transfer(page)) / pieces;
        let more = |one: Cost, command: Span, per_4_kib: Span| Cost {
            command: one.command + command,
            per_4_kib: one.per_4_kib + per_4_kib,
        };
        QuickConfig {
            capacity,
            link: flash.link,
            lanes: geometry.dies(),
            page,
            read: more(firmware.read, timing.transfer(Bytes::new(PIECE)), Span::ZERO),
            page_read: mean(|page| page.read),
            keeps_page: false,
            write: more(firmware.write, buffer.write_in.command, buffer.write_in.per_4_kib),
            program,
            scattered: program,
            read_gap: Span::ZERO,
            suspend: match timing.suspension {
                Suspension::None => Span::ZERO,
                Suspension::Reads { overhead, .. } => overhead * 2,
            },
            buffer: Bytes::new(buffer.capacity.count().max(PIECE * u64::from(geometry.dies()))),
        }
    }
}

impl Lane {
    /// Works at the backlog until `now`; returns how much was done.
    fn advance(&mut self, now: Time) -> Span {
        let idle = now.saturating_since(self.free_at);
        let worked = idle.min(self.backlog);
        self.backlog -= worked;
        self.free_at = self.free_at.max(now);
        worked
    }
}

impl QuickDrive {
    /// An idle drive with nothing in its buffer.
    ///
    /// # Errors
    /// When a number is zero that must not be, or a page is not a whole number of 4 KiB.
    pub fn new(config: QuickConfig) -> Result<QuickDrive, DriveError> {
        let numbers = [
            ("lanes", u64::from(config.lanes)),
            ("capacity", config.capacity.count()),
            ("link.rate", config.link.rate.as_bps()),
            ("program", config.program.as_ps()),
            ("scattered", config.scattered.as_ps()),
            ("buffer", config.buffer.count() / PIECE / u64::from(config.lanes.max(1))),
            ("page", config.page.count() / PIECE),
        ];
        if let Some((field, _)) = numbers.iter().find(|(_, number)| *number == 0) {
            return Err(DriveError::Config { field, reason: "too small".to_owned() });
        }
        if !config.page.count().is_multiple_of(PIECE) {
            return Err(DriveError::Config { field: "page", reason: "not a whole number of 4 KiB".to_owned() });
        }
        let pieces_a_lane = config.buffer.count() / PIECE / u64::from(config.lanes);
        Ok(QuickDrive {
            config,
            lanes: vec![Lane::default(); config.lanes as usize],
            pieces_a_lane,
            ends: [u64::MAX; STREAMS],
            oldest: 0,
            next_read: Time::ZERO,
            serialization: Serialization::new(config.link.rate),
            to_host: Time::ZERO,
            from_host: Time::ZERO,
            next_write_lane: 0,
            busy: Span::ZERO,
        })
    }
    /// Books a command. `now` must not be before that of any earlier call. Trim and flush take a
    /// command's time.
    ///
    /// # Errors
    /// When the command is beyond the end or has no bytes.
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
    /// The time of all lanes spent on the host's reads and programs so far, programs when they are
    /// accepted.
    pub fn busy(&self) -> Span {
        self.busy
    }
    /// Returns how many lanes share that time.
    pub fn lanes(&self) -> u32 {
        self.config.lanes
    }

    fn read(&mut self, now: Time, command: Command) -> Done {
        let page = self.config.page.count();
        let (first, end) = (command.address / page, (command.address + command.bytes.count()).div_ceil(page));
        let start = self.next_read.max(now);
        self.next_read = start + self.config.read_gap;
        let mut last = Done::at(now).wait_until(start);
        for number in first..end {
            let read = self.read_page(now, start, number);
            last = if read.end >= last.end { read } else { last };
        }
        let fetched = last.then(self.config.read.of(command.bytes));
        let start = fetched.end.max(self.to_host);
        let length = self.serialization.of(command.bytes);
        self.to_host = start + length;
        fetched.wait_until(start).then(length + self.config.link.command)
    }
    /// Books the lane of a page from `at` on, for a command of `now`.
    fn read_page(&mut self, now: Time, at: Time, number: u64) -> Done {
        let QuickConfig { page_read, program, suspend, keeps_page, .. } = self.config;
        let place = (number % self.lanes.len() as u64) as usize;
        let lane = &mut self.lanes[place];
        let booked_before = lane.free_at > at;
        if lane.advance(at) > Span::ZERO {
            lane.register = 0;
        }
        if keeps_page && lane.register == number + 1 {
            return Done::at(now).wait_until(lane.free_at);
        }
        lane.register = number + 1;
        let mut start = lane.free_at;
        if !booked_before && lane.backlog > Span::ZERO {
            // The current step ends first. A backlog of a fraction of a step starts a step.
            let rest = lane.backlog % program;
            lane.backlog -= rest;
            start = start + rest + suspend;
        }
        lane.free_at = start + page_read;
        self.busy += page_read;
        Done::at(now).wait_until(start).then(page_read)
    }
    fn write(&mut self, now: Time, command: Command) -> Done {
        let length = self.serialization.of(command.bytes);
        let start = self.from_host.max(now);
        self.from_host = start + length;
        let arrived = Done::at(now).wait_until(start).then(length);
        let pieces = (command.address + command.bytes.count()).div_ceil(PIECE) - command.address / PIECE;
        let program = if self.continues(command) { self.config.program } else { self.config.scattered };
        let mut room_at = arrived.end;
        for _ in 0..pieces {
            room_at = room_at.max(self.program_piece(now, arrived.end, program));
        }
        self.busy += program * pieces;
        arrived.wait_until(room_at).then(self.config.write.of(command.bytes) + self.config.link.command)
    }
    /// Whether a write begins where one of the last ended, and notes where it ends.
    fn continues(&mut self, write: Command) -> bool {
        let end = write.address + write.bytes.count();
        let known = self.ends.iter().position(|before| *before == write.address);
        let place = known.unwrap_or(self.oldest);
        if known.is_none() {
            self.oldest = (self.oldest + 1) % STREAMS;
        }
        self.ends[place] = end;
        known.is_some()
    }
    /// Adds 4 KiB that take `program` to a lane's backlog, one lane after the other; returns when
    /// there is room for it.
    fn program_piece(&mut self, now: Time, at: Time, program: Span) -> Time {
        let lane = &mut self.lanes[self.next_write_lane];
        self.next_write_lane = (self.next_write_lane + 1) % self.config.lanes as usize;
        lane.advance(now);
        lane.backlog += program;
        at + lane.backlog.saturating_sub(program * self.pieces_a_lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rate;

    const KIB: u64 = 1_024;

    /// Reads of 50 us a page, writes that 8 lanes program at 40 us for each 4 KiB, 10 us and 5 us
    /// of controller, 1 us a command, 4 GB/s.
    fn config() -> QuickConfig {
        QuickConfig {
            capacity: Bytes::kib(1 << 20),
            link: HostLink { rate: Rate::gbps(32), command: Span::us(1) },
            lanes: 8,
            page: Bytes::kib(16),
            read: Cost { command: Span::us(10), per_4_kib: Span::ZERO },
            page_read: Span::us(50),
            keeps_page: false,
            write: Cost { command: Span::us(5), per_4_kib: Span::ZERO },
            program: Span::us(40),
            scattered: Span::us(40),
            read_gap: Span::ZERO,
            suspend: Span::us(3),
            buffer: Bytes::kib(8 * 4 * 4),
        }
    }
    #[test]
    fn the_few_sums_of_flash_read_and_write_as_the_whole_drive_does_when_it_is_idle() {
        let flash = crate::ssd::presets::tlc_gen4(base::Seed(1));
        let mut quick = QuickDrive::new(QuickConfig::of_flash(&flash, Bytes::kib(1 << 20))).expect("the numbers fit");
        let transfer = flash.timing.transfer(Bytes::kib(4));
        let link = flash.link.rate.span_of(Bytes::kib(4)) + flash.link.command;
        // The mean of 56.5, 77.5 and 106 us.
        let expected = Span::us(80) + Span::us(5) + transfer + link;
        assert_eq!(quick.submit(Time::ZERO, read(0)).unwrap().total(), expected);
        let written = quick.submit(Time::secs(1), write(0)).unwrap().total();
        assert_eq!(written, Span::us(5) + Span::us(2) + Span::ns(200) + link);
    }

    fn drive() -> QuickDrive {
        QuickDrive::new(config()).expect("the numbers fit")
    }
    fn of(kind: CommandKind, address: u64, kib: u64) -> Command {
        Command { kind, address, bytes: Bytes::kib(kib) }
    }
    fn read(address: u64) -> Command {
        of(CommandKind::Read, address, 4)
    }
    fn write(address: u64) -> Command {
        of(CommandKind::Write, address, 4)
    }

    #[test]
    fn a_lone_read_takes_page_controller_link_and_command() {
        let done = drive().submit(Time::us(7), read(0)).unwrap();
        let transfer = Rate::gbps(32).span_of(Bytes::kib(4));
        assert_eq!(done.end, Time::us(7 + 50 + 10 + 1) + transfer);
        assert_eq!((done.wait, done.service), (Span::ZERO, done.total()));
    }

    #[test]
    fn reads_of_one_lane_follow_each_other_and_those_of_two_do_not() {
        let mut one = drive();
        let first = one.submit(Time::ZERO, read(0)).unwrap();
        let second = one.submit(Time::ZERO, read(8 * 16 * KIB)).unwrap();
        assert_eq!(second.end - first.end, Span::us(50));
        assert_eq!(second.wait, Span::us(50));
        let mut two = drive();
        two.submit(Time::ZERO, read(0)).unwrap();
        let second = two.submit(Time::ZERO, read(16 * KIB)).unwrap();
        // Both pages are there at once; the link takes one after the other.
        assert_eq!(second.wait, Rate::gbps(32).span_of(Bytes::kib(4)));
    }

    #[test]
    fn a_page_that_is_in_the_register_takes_none_of_its_lane_s_time_until_another_one_is_read_or_one_is_programmed() {
        let config = QuickConfig { keeps_page: true, ..config() };
        let page = Span::us(50);
        let mut drive = QuickDrive::new(config).unwrap();
        let first = drive.submit(Time::ZERO, read(0)).unwrap();
        let again = drive.submit(Time::us(200), read(4 * KIB)).unwrap();
        assert_eq!(first.total() - again.total(), page);
        let meanwhile = drive.submit(Time::us(400), read(8 * 16 * KIB)).unwrap();
        assert_eq!(meanwhile.total(), first.total());
        let behind = drive.submit(Time::us(410), read(8 * 16 * KIB)).unwrap();
        let transfer = config.link.rate.span_of(Bytes::kib(4));
        assert_eq!(
            behind.wait,
            Span::us(40) + transfer,
            "it is being read, and then goes over the link behind the other"
        );
        assert_eq!(drive.submit(Time::us(600), read(0)).unwrap().total(), first.total());
        drive.submit(Time::us(800), write(0)).unwrap();
        assert_eq!(drive.submit(Time::us(900), read(0)).unwrap().total(), first.total());
    }

    #[test]
    fn a_large_read_waits_once_for_all_its_lanes() {
        let done = drive().submit(Time::ZERO, of(CommandKind::Read, 0, 128)).unwrap();
        assert_eq!(done.end, Time::us(61) + Rate::gbps(32).span_of(Bytes::kib(128)));
        let beyond = drive().submit(Time::ZERO, of(CommandKind::Read, 0, 129)).unwrap();
        assert_eq!(beyond.end, Time::us(111) + Rate::gbps(32).span_of(Bytes::kib(129)));
    }

    #[test]
    fn a_write_is_quick_while_the_buffer_has_room_and_then_waits_for_a_program() {
        let mut drive = drive();
        let alone = Span::us(6) + Rate::gbps(32).span_of(Bytes::kib(4));
        for index in 0..32 {
            let done = drive.submit(Time::ZERO, write(index * 4 * KIB)).unwrap();
            assert_eq!(done.total() - done.wait, alone);
            assert!(done.wait < Span::us(40), "{index}: {done:?}");
        }
        let full = drive.submit(Time::ZERO, write(0)).unwrap();
        assert!(full.wait >= Span::us(40), "{full:?}");
        assert_eq!(full.total(), full.wait + full.service);
    }

    #[test]
    fn writes_in_a_closed_loop_settle_at_what_the_lanes_program() {
        let mut drive = drive();
        let mut now = Time::ZERO;
        let mut done_bytes = 0;
        let mut pending = std::collections::BTreeSet::new();
        for index in 0..20_000_u64 {
            if pending.len() == 64 {
                (now, _) = pending.pop_first().expect("64 are pending");
            }
            let done = drive.submit(now, write(index % 1_000 * 4 * KIB)).unwrap();
            pending.insert((done.end, index));
            done_bytes += 4 * KIB;
        }
        let rate = done_bytes as f64 / now.as_secs_f64();
        let peak = 8.0 * 4_096.0 / 40e-6;
        assert!((rate / peak - 1.0).abs() < 0.02, "{rate} against {peak}");
    }

    #[test]
    fn a_read_goes_before_programs_but_not_into_one() {
        let mut drive = drive();
        for index in 0..16 {
            drive.submit(Time::ZERO, write(index * 4 * KIB)).unwrap();
        }
        // Ten microseconds into the first of two programs of each lane.
        let done = drive.submit(Time::us(10), read(0)).unwrap();
        assert_eq!(done.wait, Span::us(30 + 3));
        // The lane then continues with the second.
        let free_at = Time::us(10 + 33 + 50);
        let next = drive.submit(free_at + Span::us(15), read(0)).unwrap();
        assert_eq!(next.wait, Span::us(25 + 3));
    }

    #[test]
    fn numbers_that_cannot_be_are_refused_and_so_is_what_lies_beyond() {
        for wrong in [
            QuickConfig { lanes: 0, ..config() },
            QuickConfig { program: Span::ZERO, ..config() },
            QuickConfig { scattered: Span::ZERO, ..config() },
            QuickConfig { buffer: Bytes::kib(31), ..config() },
            QuickConfig { page: Bytes::new(5_000), ..config() },
        ] {
            assert!(QuickDrive::new(wrong).is_err(), "{wrong:?}");
        }
        assert!(drive().submit(Time::ZERO, read(1 << 30)).is_err());
        assert!(drive().submit(Time::ZERO, read((1 << 30) - 4 * KIB)).is_ok());
    }

    /// Closed loop of random 4 KiB commands, `reads` of ten of them reads; bytes a second.
    fn throughput(config: QuickConfig, reads: u64, depth: usize) -> f64 {
        let mut drive = QuickDrive::new(config).expect("a preset fits");
        let mut stream = base::Seed(5).stream("quick");
        let (mut now, mut pending) = (Time::ZERO, std::collections::BTreeSet::new());
        for index in 0..200_000_u64 {
            if pending.len() == depth {
                (now, _) = pending.pop_first().expect("some are pending");
            }
            let kind = if stream.below(10) < reads { CommandKind::Read } else { CommandKind::Write };
            let address = stream.below(200_000) * 4 * KIB;
            pending.insert((drive.submit(now, of(kind, address, 4)).unwrap().end, index));
        }
        200_000.0 * 4_096.0 / now.as_secs_f64()
    }

    #[test]
    fn a_pm9a3_loses_about_as_much_by_mixing_as_the_study_measured() {
        let clean = super::super::presets::pm9a3_960_quick(Bytes::kib(1 << 20));
        let lost = throughput(clean, 10, 72) - throughput(clean, 5, 72);
        assert!((267e6..=445e6).contains(&lost), "{} MB/s", lost / 1e6);
    }

    /// 64 lanes of 55 us could read 1.16 million pages a second; the gap of two reads is the
    /// sheet's 580,000. Writes are 64 lanes over the time of a piece, in order and at random.
    #[test]
    fn a_pm9a3_does_what_its_sheet_says_and_a_fragmented_one_less() {
        let capacity = Bytes::kib(1 << 20);
        let clean = super::super::presets::pm9a3_960_quick(capacity);
        let fragmented = super::super::presets::pm9a3_960_quick_fragmented(capacity);
        let [reads, writes] = [10, 0].map(|reads| throughput(clean, reads, 256) / 4_096.0);
        assert!((568e3..=580.1e3).contains(&reads), "{reads} reads a second");
        assert!((180e3..=200e3).contains(&writes), "{writes} writes a second");
        let [fewer_reads, fewer_writes] = [10, 0].map(|reads| throughput(fragmented, reads, 256) / 4_096.0);
        assert!(fewer_reads < 0.85 * reads && fewer_writes < 0.75 * writes, "{fewer_reads}, {fewer_writes}");
        let in_order = |config: QuickConfig| {
            let mut drive = QuickDrive::new(config).expect("a preset fits");
            let mut now = Time::ZERO;
            for index in 0..6_000_u64 {
                let write = of(CommandKind::Write, index % 4_000 * 128 * KIB, 128);
                now = drive.submit(now, write).unwrap().end;
            }
            6_000.0 * 131_072.0 / now.as_secs_f64()
        };
        assert!((1.46e9..=1.54e9).contains(&in_order(clean)), "{}", in_order(clean));
        assert!(in_order(fragmented) < 0.75 * in_order(clean));
    }

    #[test]
    fn writes_of_as_many_streams_as_are_known_side_by_side_are_in_order_and_of_one_more_are_not() {
        let config = QuickConfig { scattered: Span::us(80), ..config() };
        for (streams, expected) in [(STREAMS as u64, 40), (STREAMS as u64 + 1, 80)] {
            let mut drive = QuickDrive::new(config).unwrap();
            for index in 0..100 * streams {
                let (stream, number) = (index % streams, index / streams);
                drive.submit(Time::ZERO, write((stream * 1_000 + number) * 4 * KIB)).unwrap();
            }
            // The first write of a stream continues none.
            let all = Span::us(80) * streams + Span::us(expected) * (99 * streams);
            assert_eq!(drive.busy(), all, "{streams} streams");
        }
    }

    #[test]
    fn reads_start_no_closer_together_than_the_controller_s_gap() {
        let mut drive = QuickDrive::new(QuickConfig { read_gap: Span::us(9), ..config() }).unwrap();
        let first = drive.submit(Time::ZERO, read(0)).unwrap();
        let second = drive.submit(Time::us(1), read(16 * KIB)).unwrap();
        assert_eq!((first.wait, second.wait), (Span::ZERO, Span::us(8)));
        assert_eq!(second.end - first.end, Span::us(9));
        let later = drive.submit(Time::us(200), read(32 * KIB)).unwrap();
        assert_eq!(later.wait, Span::ZERO);
    }

    /// Lone commands of the sheet's depth 1, and random reads and writes of 512 B to 4 KiB at a
    /// depth that keeps all lanes busy: a drive counts commands, not bytes.
    #[test]
    fn a_970_pro_does_what_its_sheet_says_at_both_depths_and_for_small_commands_too() {
        let config = super::super::presets::samsung_970_pro_quick(Bytes::kib(1 << 20));
        let alone = |kind| QuickDrive::new(config).unwrap().submit(Time::ZERO, of(kind, 0, 4)).unwrap().total();
        assert!((66_000..67_500).contains(&(alone(CommandKind::Read).as_ps() / 1_000)), "{}", alone(CommandKind::Read));
        assert!(
            (17_800..18_500).contains(&(alone(CommandKind::Write).as_ps() / 1_000)),
            "{}",
            alone(CommandKind::Write)
        );
        for reads in [10, 0] {
            let rate = throughput(config, reads, 128) / 4_096.0;
            assert!((485e3..=515e3).contains(&rate), "{reads} of ten reads: {rate} a second");
        }
        let mut drive = QuickDrive::new(config).unwrap();
        let small = Command { kind: CommandKind::Read, address: 0, bytes: Bytes::new(512) };
        let saved = alone(CommandKind::Read) - drive.submit(Time::ZERO, small).unwrap().total();
        assert_eq!(saved, config.link.rate.span_of(Bytes::kib(4)) - config.link.rate.span_of(Bytes::new(512)));
    }

    #[test]
    fn a_fragmented_pm9a3_is_slower_at_everything() {
        let capacity = Bytes::kib(1 << 20);
        let clean = super::super::presets::pm9a3_960_quick(capacity);
        let fragmented = super::super::presets::pm9a3_960_quick_fragmented(capacity);
        for (reads, least, most) in [(10, 0.19, 0.40), (0, 0.24, 0.40)] {
            let lost = 1.0 - throughput(fragmented, reads, 64) / throughput(clean, reads, 64);
            assert!((least..=most).contains(&lost), "{reads} of ten reads: {lost}");
        }
    }
}
