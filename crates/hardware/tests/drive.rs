//! Whole drives: unloaded latencies, the write buffer, collection, preparation, snapshots, named
//! presets.

use base::{Bytes, Rate, Seed, Span, Time};
use hardware::ssd::presets::{self, DriveConfig, PRESETS};
use hardware::ssd::{
    CollectionConfig, Command, CommandKind, Cost, DirectDrive, Done, DriveError, Firmware, FlushPolicy, Geometry,
    HostLink, PageTimes, Pattern, Precondition, PreconditionError, RetryStep, SolidState, SolidStateConfig, Steady,
    Suspension, Timing, VictimPolicy, WriteBuffer,
};
use proptest::prelude::*;
use std::collections::BinaryHeap;

const KIB_4: Bytes = Bytes::kib(4);
const READ: Span = Span::us(50);
const PROGRAM: Span = Span::us(500);

/// 2 channels of 2 dies, 16 blocks each of 16 pages of 8 KiB: 1024 pages. One byte takes a
/// nanosecond on channel and link.
fn config() -> SolidStateConfig {
    SolidStateConfig {
        geometry: Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 16,
            pages_per_block: 16,
            page: Bytes::kib(8),
            unit: KIB_4,
        },
        timing: Timing {
            pages: vec![PageTimes { read: READ, program: PROGRAM }],
            erase: Span::ms(3),
            channel: Rate::gbps(8),
            command: Span::ZERO,
            suspension: Suspension::None,
        },
        over_provisioning: 0.3,
        link: HostLink { rate: Rate::gbps(8), command: Span::us(1) },
        firmware: Firmware { read: once(Span::us(7)), write: once(Span::us(3)) },
        buffer: WriteBuffer {
            capacity: Bytes::kib(64),
            write_in: Cost { command: Span::us(2), per_4_kib: Span::us(1) },
            flush: FlushPolicy::FullPages,
        },
        collection: CollectionConfig { victim: VictimPolicy::Greedy, hot_cold: false },
        endurance: None,
        read_retry: Vec::new(),
        seed: Seed(5),
    }
}
fn once(command: Span) -> Cost {
    Cost { command, per_4_kib: Span::ZERO }
}
fn drive(config: SolidStateConfig) -> SolidState {
    SolidState::new(config).expect("a sound drive")
}
fn command(kind: CommandKind, address: u64, bytes: Bytes) -> Command {
    Command { kind, address, bytes }
}
fn read(drive: &mut SolidState, now: Time, unit: u64) -> Done {
    drive.submit(now, command(CommandKind::Read, unit * 4096, KIB_4)).expect("in range")
}
fn write(drive: &mut SolidState, now: Time, unit: u64) -> Done {
    drive.submit(now, command(CommandKind::Write, unit * 4096, KIB_4)).expect("in range")
}
fn flush(drive: &mut SolidState, now: Time) -> Done {
    drive.submit(now, command(CommandKind::Flush, 0, Bytes::ZERO)).expect("a flush names nothing")
}
fn filled(pattern: Pattern) -> SolidState {
    let mut drive = drive(config());
    drive.precondition(Precondition { fill: 1.0, pattern }).expect("it fits");
    drive
}
/// Overwrites at random, `depth` at a time, each after one before it has ended; returns the end of
/// the last.
fn overwrite(drive: &mut SolidState, start: Time, depth: usize, count: u64) -> Time {
    let units = drive.capacity().count() / 4096;
    let mut stream = Seed(9).stream("overwrite");
    let mut ends = BinaryHeap::from(vec![std::cmp::Reverse(start); depth]);
    for _ in 0..count {
        let std::cmp::Reverse(now) = ends.pop().expect("depth is not 0");
        ends.push(std::cmp::Reverse(write(drive, now, stream.below(units)).end));
    }
    ends.into_iter().map(|end| end.0).max().expect("depth is not 0")
}
const STEADY: Steady = Steady { window: 1.0, windows: 3, tolerance: 0.1, windows_max: 40 };

#[test]
fn an_unloaded_read_is_firmware_sensing_channel_and_link() {
    let mut drive = filled(Pattern::Sequential);
    let done = read(&mut drive, Time::us(1), 0);
    let transfer = Span::ns(4_096);
    assert_eq!(done.service, Span::us(7) + READ + transfer + transfer + Span::us(1));
    assert_eq!((done.wait, done.collection_wait, done.end), (Span::ZERO, Span::ZERO, Time::us(1) + done.service));
}

#[test]
fn an_unloaded_write_is_link_firmware_and_write_in() {
    let done = write(&mut drive(config()), Time::us(1), 0);
    assert_eq!(done.service, Span::ns(4_096) + Span::us(3) + Span::us(3) + Span::us(1));
    assert_eq!(done.end, Time::us(1) + done.service);
}

#[test]
fn units_of_one_page_are_one_read_and_of_two_pages_two_side_by_side() {
    let mut drive = filled(Pattern::Sequential);
    let both = drive.submit(Time::ZERO, command(CommandKind::Read, 0, Bytes::kib(8))).expect("in range");
    assert_eq!(both.service, Span::us(7) + READ + Span::ns(2 * 8_192) + Span::us(1));
    let four = drive.submit(Time::secs(1), command(CommandKind::Read, 0, Bytes::kib(16))).expect("in range");
    // The second page waits for the link behind the first.
    assert_eq!(four.end - Time::secs(1), both.service + Span::ns(8_192));
    assert_eq!(four.wait, Span::ns(8_192));
}

#[test]
fn what_is_written_is_read_from_the_buffer_until_it_is_in_flash_and_from_flash_after() {
    let mut drive = drive(config());
    write(&mut drive, Time::ZERO, 0);
    write(&mut drive, Time::ZERO, 1);
    let in_flash = Time::ZERO + Span::ns(8_192) + PROGRAM;
    let from_buffer = Span::us(7) + Span::ns(4_096) + Span::us(1);
    assert_eq!(read(&mut drive, in_flash - Span::ps(1), 0).service, from_buffer);
    assert_eq!(read(&mut drive, in_flash, 0).service, from_buffer + READ + Span::ns(4_096));
}

#[test]
fn the_buffer_takes_what_it_holds_at_once_and_one_unit_more_waits_for_a_program() {
    let mut drive = drive(config());
    for unit in 0..16 {
        let done = write(&mut drive, Time::ZERO, unit);
        assert_eq!(done.end - Time::ZERO, Span::ns(4_096) * (unit + 1) + Span::us(7), "only the link is waited for");
    }
    // Eight pages on four dies: the first program ends first.
    let first_room = Time::ZERO + Span::ns(8_192) + PROGRAM;
    assert_eq!(write(&mut drive, Time::ZERO, 16).end, first_room + Span::us(7));
    let report = drive.report();
    assert_eq!((report.stalls, report.forced_collections), (1, 0));
}

#[test]
fn a_flush_ends_when_all_is_in_flash() {
    let mut drive = drive(config());
    write(&mut drive, Time::ZERO, 0);
    let done = flush(&mut drive, Time::ZERO);
    assert_eq!(done.end, Time::ZERO + Span::ns(8_192) + PROGRAM + Span::us(4));
    assert_eq!(flush(&mut drive, Time::ms(10)).end, Time::ms(10) + Span::us(4), "nothing is left to flush");
}

#[test]
fn a_page_that_is_not_full_is_flushed_after_the_idle_time_and_not_before() {
    let policy = WriteBuffer { flush: FlushPolicy::AfterIdle(Span::ms(2)), ..config().buffer };
    let idle = || {
        let mut drive = drive(SolidStateConfig { buffer: policy, ..config() });
        write(&mut drive, Time::ZERO, 0);
        drive
    };
    let (mut before, mut after) = (idle(), idle());
    read(&mut before, Time::ms(2) - Span::ps(1), 100);
    read(&mut after, Time::ms(2), 100);
    assert_eq!((before.layer().counters().programs, after.layer().counters().programs), (0, 1));
}

#[test]
fn without_a_buffer_a_write_ends_with_its_program() {
    let through = WriteBuffer { flush: FlushPolicy::Through, capacity: Bytes::ZERO, ..config().buffer };
    let mut drive = drive(SolidStateConfig { buffer: through, ..config() });
    let done = write(&mut drive, Time::ZERO, 0);
    assert_eq!(done.service, Span::ns(4_096 + 8_192) + PROGRAM + Span::us(4));
    assert_eq!(drive.report().write_amplification, Some(2.0), "half of the page is padding");
}

#[test]
fn a_part_of_a_unit_is_written_after_the_rest_was_read() {
    let mut drive = filled(Pattern::Sequential);
    let part = command(CommandKind::Write, 4096 + 512, Bytes::new(512));
    drive.submit(Time::ZERO, part).expect("in range");
    assert_eq!(drive.report().partial_writes, 1);
    let behind = read(&mut drive, Time::ZERO, 0);
    assert_eq!(behind.wait, READ + Span::ns(4_096), "units 0 and 1 share a page and its die");
}

#[test]
fn trimmed_units_are_read_without_flash_and_their_neighbours_with() {
    let mut drive = filled(Pattern::Sequential);
    drive.submit(Time::ZERO, command(CommandKind::Trim, 4096 - 1, Bytes::new(4096 + 2))).expect("in range");
    assert_eq!(read(&mut drive, Time::us(10), 1).service, Span::us(8) + Span::ns(4_096));
    assert!(read(&mut drive, Time::ms(10), 0).service > READ && read(&mut drive, Time::ms(20), 2).service > READ);
}

#[test]
fn reads_of_worn_blocks_are_repeated_from_the_step_of_their_wear_on() {
    let mut steady = filled(Pattern::Fragmented(STEADY));
    let wear = steady.report().wear;
    let mut bytes = Vec::new();
    steady.save(&mut bytes).expect("memory can be written");
    let with_step = |erases| {
        let config = SolidStateConfig { read_retry: vec![RetryStep { erases, retries: 2 }], ..config() };
        SolidState::restore(config, bytes.as_slice()).expect("a snapshot of the same flash")
    };
    let (mut all, mut none) = (with_step(wear.min), with_step(wear.max + 1));
    let once = read(&mut steady, Time::ZERO, 3).service;
    assert_eq!(read(&mut all, Time::ZERO, 3).service, once + (READ + Span::ns(4_096)) * 2);
    assert_eq!(read(&mut none, Time::ZERO, 3).service, once);
    assert_eq!((all.report().read_retries, none.report().read_retries), (2, 0));
}

#[test]
fn a_drive_that_is_overwritten_collects_without_stopping_for_it() {
    let mut drive = filled(Pattern::Fragmented(STEADY));
    overwrite(&mut drive, Time::ZERO, 8, 5_000);
    let report = drive.report();
    assert_eq!(report.forced_collections, 0, "collection keeps the host's pace");
    assert!(report.collection_time > Span::ZERO && report.relocated_units > 0 && report.erases > 0);
    assert!(report.stalls > 0, "dies are slower than the link");
    assert!(report.channel_utilisation.iter().all(|share| (0.0..=1.0).contains(share)), "{report:?}");
    assert_eq!(drive.layer().check(), Ok(()));
}

#[test]
fn a_drive_that_must_collect_at_once_says_so() {
    // Blocks go bad until what is left holds less room than collection wants to keep.
    let mut drive = drive(SolidStateConfig { endurance: Some(40), ..config() });
    let units = drive.capacity().count() / 4096;
    let mut stream = Seed(9).stream("overwrite");
    let mut until_worn_out = 0..1_000_000u64;
    let is_worn = until_worn_out.any(|at| {
        drive.submit(Time::us(at * 300), command(CommandKind::Write, stream.below(units) * 4096, KIB_4)).is_err()
    });
    assert!(is_worn && drive.report().forced_collections > 0, "{:?}", drive.report());
    assert_eq!(drive.layer().check(), Ok(()));
}

#[test]
fn reads_of_an_idle_drive_that_collects_say_what_they_waited_for() {
    let mut drive = filled(Pattern::Fragmented(STEADY));
    let end = overwrite(&mut drive, Time::ZERO, 8, 500);
    let mut waited = Span::ZERO;
    for unit in 0..100 {
        waited += read(&mut drive, end + Span::us(10 * unit), unit).collection_wait;
    }
    assert!(waited > Span::ZERO);
}

#[test]
fn a_drive_can_be_clean_partly_filled_or_fragmented() {
    let mut drive = drive(config());
    let mut state = |fill, pattern| drive.precondition(Precondition { fill, pattern }).expect("it fits");
    let units = config().logical_units();
    let half = state(0.5, Pattern::Sequential);
    assert_eq!((half.filled_units, half.written_units, half.windows.len()), (units / 2, units / 2, 0));
    let fragmented = state(1.0, Pattern::Fragmented(STEADY));
    assert!(fragmented.windows.len() >= 3 && fragmented.written_units > units);
    assert_eq!(state(0.0, Pattern::Sequential).filled_units, 0);
    assert_eq!(drive.layer().valid_units(), 0, "a clean drive holds nothing");
    assert_eq!(read(&mut drive, Time::ZERO, 0).service, Span::us(8) + Span::ns(4_096));
}

#[test]
fn states_that_cannot_be_reached_are_refused() {
    let mut drive = drive(config());
    for fill in [1.01, -0.1, f64::NAN] {
        let refused = drive.precondition(Precondition { fill, pattern: Pattern::Sequential });
        assert!(matches!(refused, Err(PreconditionError::Fill { .. })));
    }
    for steady in [
        Steady { window: 0.0, ..STEADY },
        Steady { windows: 1, ..STEADY },
        Steady { tolerance: 0.0, ..STEADY },
        Steady { windows_max: 2, ..STEADY },
        Steady { window: f64::NAN, ..STEADY },
    ] {
        let refused = drive.precondition(Precondition { fill: 1.0, pattern: Pattern::Fragmented(steady) });
        assert!(matches!(refused, Err(PreconditionError::Windows { .. })));
    }
}

#[test]
fn write_amplification_that_never_settles_ends_in_an_error() {
    let never = Steady { window: 0.05, windows: 5, tolerance: 1e-9, windows_max: 20 };
    let refused = drive(config()).precondition(Precondition { fill: 1.0, pattern: Pattern::Fragmented(never) });
    assert!(matches!(refused, Err(PreconditionError::NotSteady { windows: 20, compared: 5, .. })), "{refused:?}");
}

#[test]
fn a_drive_that_wears_out_in_preparation_ends_in_an_error() {
    let config = SolidStateConfig { endurance: Some(3), ..config() };
    let long = Steady { tolerance: 1e-9, windows_max: 10_000, ..STEADY };
    let refused = drive(config).precondition(Precondition { fill: 1.0, pattern: Pattern::Fragmented(long) });
    assert!(matches!(refused, Err(PreconditionError::Drive(DriveError::Layer(_)))), "{refused:?}");
}

#[test]
fn a_drive_from_a_snapshot_answers_as_the_one_that_was_saved() {
    let mut saved = filled(Pattern::Fragmented(STEADY));
    let mut bytes = Vec::new();
    saved.save(&mut bytes).expect("memory can be written");
    let mut restored = SolidState::restore(config(), bytes.as_slice()).expect("its own snapshot");
    for index in 0..500u64 {
        let now = Time::us(index * 100);
        assert_eq!(write(&mut saved, now, index * 37 % 600), write(&mut restored, now, index * 37 % 600));
        assert_eq!(read(&mut saved, now, index * 11 % 600), read(&mut restored, now, index * 11 % 600));
    }
    assert_eq!(saved.report().write_amplification, restored.report().write_amplification);
}

#[test]
fn a_damaged_snapshot_or_one_of_another_drive_is_refused() {
    let mut bytes = Vec::new();
    filled(Pattern::Sequential).save(&mut bytes).expect("memory can be written");
    let other = SolidStateConfig { over_provisioning: 0.7, ..config() };
    assert!(matches!(SolidState::restore(other, bytes.as_slice()), Err(DriveError::Snapshot(_))));
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    assert!(matches!(SolidState::restore(config(), bytes.as_slice()), Err(DriveError::Snapshot(_))));
    assert!(matches!(SolidState::restore(config(), &bytes[..middle]), Err(DriveError::Snapshot(_))));
}

#[test]
fn drives_that_cannot_work_are_refused_with_the_numbers() {
    let refusal = |config| SolidState::new(config).expect_err("it cannot work").to_string();
    let message = refusal(SolidStateConfig { over_provisioning: 0.0, ..config() });
    assert!(message.contains("0.0 blocks of spare space at an over-provisioning of 0 %"), "{message}");
    let message = refusal(SolidStateConfig { over_provisioning: 0.07, ..config() });
    assert!(message.contains("at least 113 blocks a plane or more over-provisioning are needed"), "{message}");
    assert!(refusal(SolidStateConfig { over_provisioning: -0.1, ..config() }).contains("-0.1"));
    let small = WriteBuffer { capacity: Bytes::new(8_191), ..config().buffer };
    assert!(refusal(SolidStateConfig { buffer: small, ..config() }).contains("8191 B do not hold a page of 8192 B"));
    let steps = vec![RetryStep { erases: 9, retries: 1 }, RetryStep { erases: 3, retries: 2 }];
    assert!(refusal(SolidStateConfig { read_retry: steps, ..config() }).contains("order"));
    let silent = HostLink { rate: Rate::bps(0), ..config().link };
    assert!(refusal(SolidStateConfig { link: silent, ..config() }).contains("0 b/s"));
}

#[test]
fn commands_beyond_the_drive_are_refused_and_the_last_byte_is_not() {
    let mut drive = drive(config());
    let end = drive.capacity().count();
    let mut submit = |address, bytes| drive.submit(Time::ZERO, command(CommandKind::Read, address, Bytes::new(bytes)));
    assert!(submit(end - 1, 1).is_ok());
    assert!(matches!(submit(end - 1, 2), Err(DriveError::Beyond { bytes: 2, .. })));
    assert!(matches!(submit(u64::MAX, 2), Err(DriveError::Beyond { .. })));
    assert!(matches!(submit(0, 0), Err(DriveError::NoBytes { address: 0 })));
}

#[test]
fn sequential_reads_run_at_the_slower_of_dies_and_link() {
    let dies = sequential_read(READ) / (READ + Span::ns(8_192)).ratio(Span::ns(8_192)) * 4.0;
    assert!((1.0..1.05).contains(&dies), "{dies} of the time of four dies");
    let link = sequential_read(Span::us(5));
    assert!((1.0..1.05).contains(&link), "{link} of the time of the link");
}
/// The time of reading the drive once, all at once, in that of the link alone.
fn sequential_read(sense: Span) -> f64 {
    let timing = Timing { pages: vec![PageTimes { read: sense, program: PROGRAM }], ..config().timing };
    let mut drive = drive(SolidStateConfig { timing, ..config() });
    drive.precondition(Precondition { fill: 1.0, pattern: Pattern::Sequential }).expect("it fits");
    let size = Bytes::kib(64);
    let commands = drive.capacity().count() / size.count();
    let ends = (0..commands).map(|index| command(CommandKind::Read, index * size.count(), size));
    let end = ends.map(|command| drive.submit(Time::ZERO, command).expect("in range").end).max().expect("commands");
    (end - Time::ZERO).ratio(Span::ns(commands * size.count()))
}

#[test]
fn the_published_latencies_of_970_pro_and_p_ssd_come_out() {
    let samsung = drive(presets::samsung_970_pro(Seed(1)).with_blocks_per_plane(64));
    let fixed = Span::ns(21_500 + 5_120) + Rate::bps(3_360 * 8_000_000).span_of(KIB_4);
    assert_eq!(unloaded_read(samsung.clone(), 0), fixed + Span::ns(29_760));
    assert_eq!(unloaded_read(samsung, 1), fixed + Span::ns(41_760));

    let p_ssd = drive(presets::p_ssd(Seed(1)).with_blocks_per_plane(16));
    // Firmware and command 3 us, a quarter of a page's 52.433 us, PCIe.
    let fixed = Span::us(3) + Rate::bps(2_499_799_744).span_of(KIB_4) + Rate::bps(7_000 * 8_000_000).span_of(KIB_4);
    assert_eq!(unloaded_read(p_ssd.clone(), 0), fixed + Span::us(48));
    assert_eq!(unloaded_read(p_ssd, 1), fixed + Span::us(64));
}
/// Of the first unit of a page of the first die, of a drive that was written in order.
fn unloaded_read(mut drive: SolidState, page: u64) -> Span {
    drive.precondition(Precondition { fill: FILL, pattern: Pattern::Sequential }).expect("it fits");
    let geometry = drive.config().geometry;
    let pages_of_all_dies = u64::from(geometry.dies() * geometry.units_per_page());
    read(&mut drive, Time::ZERO, page * pages_of_all_dies).service
}

/// Means of reads and writes of 4 KiB at queue depth 1, in microseconds, as their sources have
/// them, with what is left open.
#[test]
fn every_preset_has_the_latencies_of_its_source() {
    let published = [
        ("p-ssd", 72.7, 6.0),
        ("intel-dc", 80.0, 20.0),
        ("optane", 10.0, 10.0),
        ("970-pro", 63.6, 5.7),
        ("pm9a3", 79.0, 12.0),
        ("p3700", 77.9, 20.0),
        ("tlc-gen4", 90.7, 9.0),
    ];
    assert_eq!(PRESETS.map(|preset| preset.name), published.map(|row| row.0));
    for (name, reads_us, writes_us) in published {
        let (read_us, write_us) = queue_depth_1(name);
        assert!((read_us / reads_us - 1.0).abs() < 0.03, "{name} reads in {read_us} us");
        assert!((write_us / writes_us - 1.0).abs() < 0.04, "{name} writes in {write_us} us");
    }
    assert!(presets::preset("970-evo").is_none());
}

/// Enough for all kinds of pages on all dies.
const FILL: f64 = 0.02;

fn queue_depth_1(name: &str) -> (f64, f64) {
    let preset = presets::preset(name).expect("a preset of this name");
    match (preset.config)(Seed(1)) {
        DriveConfig::SolidState(config) => {
            let planes = config.geometry.planes_per_die;
            let mut drive = drive(config.with_blocks_per_plane(48 / planes));
            drive.precondition(Precondition { fill: FILL, pattern: Pattern::Sequential }).expect("it fits");
            means(drive.capacity(), |now, command| drive.submit(now, command))
        }
        DriveConfig::Direct(config) => {
            let mut drive = DirectDrive::new(config).expect("a sound drive");
            means(drive.capacity(), |now, command| drive.submit(now, command))
        }
    }
}
/// Far apart, so that each finds an idle drive; reads all over what is filled.
fn means(capacity: Bytes, mut submit: impl FnMut(Time, Command) -> Result<Done, DriveError>) -> (f64, f64) {
    let units = (capacity.count() as f64 * FILL) as u64 / 4096;
    let mut stream = Seed(2).stream("queue depth 1");
    let mut mean = |kind, start: u64| {
        let mut sum = Span::ZERO;
        for index in 0..2_000 {
            let now = Time::ms(start + index * 5);
            let done = submit(now, command(kind, stream.below(units) * 4096, KIB_4)).expect("in range");
            sum += done.end - now;
        }
        sum.as_ns_f64() / 2_000.0 / 1_000.0
    };
    (mean(CommandKind::Read, 0), mean(CommandKind::Write, 100_000))
}

#[test]
fn a_drive_that_writes_in_place_fills_its_lanes_and_no_more() {
    let mut drive = DirectDrive::new(presets::optane()).expect("a sound drive");
    let last = |drive: &mut DirectDrive, kind, now| {
        let commands = (0..10_000u64).map(|index| command(kind, index * 4096, KIB_4));
        let ends = commands.map(|command| drive.submit(now, command).expect("in range").end);
        (ends.max().expect("commands") - now).as_secs_f64()
    };
    let reads = 10_000.0 / last(&mut drive, CommandKind::Read, Time::ZERO);
    let writes = 10_000.0 / last(&mut drive, CommandKind::Write, Time::secs(1));
    assert!((reads / 555_000.0 - 1.0).abs() < 0.01, "{reads} reads a second");
    assert!((writes / 500_000.0 - 1.0).abs() < 0.01, "{writes} writes a second");
    let beyond = command(CommandKind::Read, drive.capacity().count(), KIB_4);
    assert!(matches!(drive.submit(Time::secs(2), beyond), Err(DriveError::Beyond { .. })));
}

#[test]
fn a_drive_without_lanes_is_refused() {
    let none = hardware::ssd::DirectConfig { lanes: 0, ..presets::optane() };
    assert!(matches!(DirectDrive::new(none), Err(DriveError::Config { field: "lanes", .. })));
}

#[derive(Clone, Copy, Debug)]
struct Step {
    gap: Span,
    kind: CommandKind,
    address: u64,
    bytes: u64,
}

fn step(capacity: u64) -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        6 => Just(CommandKind::Read),
        12 => Just(CommandKind::Write),
        1 => Just(CommandKind::Trim),
        1 => Just(CommandKind::Flush),
    ];
    (0..300u64, kind, 0..capacity, 1..40_000u64).prop_map(move |(gap, kind, address, bytes)| Step {
        gap: Span::us(gap),
        kind,
        address,
        bytes: bytes.min(capacity - address),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_parts_of_every_command_are_its_whole_and_no_unit_is_lost(
        steps in prop::collection::vec(step(5_000_000), 1..600),
        flush in prop_oneof![
            Just(FlushPolicy::FullPages),
            Just(FlushPolicy::AfterIdle(Span::us(200))),
            Just(FlushPolicy::Through),
        ],
        suspension in prop_oneof![
            Just(Suspension::None),
            Just(Suspension::Reads { overhead: Span::us(20), limit: 2 }),
        ],
    ) {
        let timing = Timing { suspension, ..config().timing };
        let buffer = WriteBuffer { flush, ..config().buffer };
        let mut drive = drive(SolidStateConfig { timing, buffer, ..config() });
        let mut now = Time::ZERO;
        for Step { gap, kind, address, bytes } in steps {
            now += gap;
            let done = drive.submit(now, command(kind, address, Bytes::new(bytes))).expect("in range");
            prop_assert_eq!(done.total(), done.end - now, "{:?}", kind);
        }
        prop_assert_eq!(drive.layer().check(), Ok(()));
    }
}
