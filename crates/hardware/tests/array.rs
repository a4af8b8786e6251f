//! Is the timing of dies and channels right? Closed forms, both sides of each edge, and that the
//! parts of a wait are its whole.

use base::{Bytes, Rate, Span, Time};
use hardware::ssd::{
    BlockId, Booked, FlashArray, FlashOperation, Geometry, PageAddress, PageTimes, Purpose, Suspension, Timing,
};
use proptest::prelude::*;

const OVERHEAD: Span = Span::us(20);

fn geometry(channels: u32, dies_per_channel: u32) -> Geometry {
    Geometry {
        channels,
        dies_per_channel,
        planes_per_die: 1,
        blocks_per_plane: 8,
        pages_per_block: 16,
        page: Bytes::kib(8),
        unit: Bytes::kib(4),
    }
}
/// The MLC chips of the closed form in blox.md; the bus takes 0.7 us for command, address and the
/// data's check bytes.
fn mlc(suspension: Suspension) -> Timing {
    Timing {
        pages: vec![PageTimes { read: Span::us(75), program: Span::us(1_300) }],
        erase: Span::ms(3),
        channel: Rate::bps(333_000_000 * 8),
        command: Span::ns(700),
        suspension,
    }
}
fn suspending(limit: u32) -> Suspension {
    Suspension::Reads { overhead: OVERHEAD, limit }
}
fn array(channels: u32, dies_per_channel: u32, suspension: Suspension) -> FlashArray {
    FlashArray::new(geometry(channels, dies_per_channel), mlc(suspension)).expect("geometry and timing are sound")
}
fn page(die: u32, page: u32) -> PageAddress {
    PageAddress { block: BlockId(die * 8), page }
}
fn read(die: u32) -> FlashOperation {
    FlashOperation::Read { page: page(die, 0), bytes: Bytes::kib(4), retries: 0 }
}
fn program(die: u32) -> FlashOperation {
    FlashOperation::Program { page: page(die, 0) }
}
fn erase(die: u32) -> FlashOperation {
    FlashOperation::Erase { block: BlockId(die * 8) }
}
/// 4096 B at 333 MB/s, and a page of twice that, with the command.
fn transfer() -> Span {
    mlc(Suspension::None).transfer(Bytes::kib(4))
}
fn page_transfer() -> Span {
    mlc(Suspension::None).transfer(Bytes::kib(8))
}
fn read_service() -> Span {
    Span::us(75) + transfer()
}

#[test]
fn a_lone_4_kib_read_takes_88_us() {
    let booked = array(1, 1, Suspension::None).submit(Time::us(5), read(0), Purpose::Host);
    assert_eq!(booked.service, Span::us(75) + Span::ns(700) + Span::ps(12_300_301));
    assert_eq!((booked.end - Time::us(5)).as_ps().div_ceil(1_000_000), 89, "75 us + 12.3 us + 0.7 us of bus overhead");
    assert!((booked.service.as_ns_f64() - 88_000.0).abs() < 1.0);
    assert_eq!((booked.wait, booked.collection_wait), (Span::ZERO, Span::ZERO));
}

#[test]
fn each_retry_senses_and_sends_again() {
    let again = FlashOperation::Read { page: page(0, 0), bytes: Bytes::kib(4), retries: 2 };
    let booked = array(1, 1, Suspension::None).submit(Time::ZERO, again, Purpose::Host);
    assert_eq!(booked.service, read_service() * 3);
    assert_eq!(booked.end, Time::ZERO + read_service() * 3);
}

#[test]
fn enough_dies_fill_a_channel_and_no_more() {
    let mut array = array(1, 8, Suspension::None);
    let last = (0..800).map(|index| array.submit(Time::ZERO, read(index % 8), Purpose::Host).end).max();
    assert_eq!(last, Some(Time::ZERO + Span::us(75) + transfer() * 800));
    assert_eq!(array.counters().channels[0].host, transfer() * 800);
}

#[test]
fn a_die_reads_a_page_each_sensing_and_transfer_and_programs_one_each_transfer_and_program() {
    let mut reading = array(1, 1, Suspension::None);
    let mut programming = reading.clone();
    let last_read = (0..100).map(|_| reading.submit(Time::ZERO, read(0), Purpose::Host).end).max();
    let last_program = (0..100).map(|_| programming.submit(Time::ZERO, program(0), Purpose::Host).end).max();
    assert_eq!(last_read, Some(Time::ZERO + read_service() * 100));
    assert_eq!(last_program, Some(Time::ZERO + (page_transfer() + Span::us(1_300)) * 100));
}

#[test]
fn dies_of_different_channels_do_not_meet() {
    let mut array = array(4, 2, Suspension::None);
    for channel in 0..4 {
        assert_eq!(array.submit(Time::ZERO, program(channel * 2), Purpose::Host).wait, Span::ZERO);
    }
}

#[test]
fn kinds_of_pages_take_turns_inside_a_block() {
    let lower = PageTimes { read: Span::us(48), program: Span::us(850) };
    let upper = PageTimes { read: Span::us(64), program: Span::us(2_300) };
    let timing = Timing { pages: vec![lower, upper], ..mlc(Suspension::None) };
    let mut array = FlashArray::new(geometry(1, 1), timing).expect("geometry and timing are sound");
    let service = |array: &mut FlashArray, place| {
        array.submit(Time::secs(place), FlashOperation::Program { page: page(0, place as u32) }, Purpose::Host).service
    };
    assert_eq!(service(&mut array, 2), page_transfer() + Span::us(850));
    assert_eq!(service(&mut array, 3), page_transfer() + Span::us(2_300));
}

#[test]
fn a_read_waits_a_picosecond_before_the_die_is_free_and_not_at_that_moment() {
    let mut early = array(1, 1, Suspension::None);
    let free_at = early.submit(Time::ZERO, erase(0), Purpose::Host).end;
    let mut punctual = early.clone();
    assert_eq!(early.submit(free_at - Span::ps(1), read(0), Purpose::Host).wait, Span::ps(1));
    assert_eq!(punctual.submit(free_at, read(0), Purpose::Host).wait, Span::ZERO);
}

#[test]
fn a_transfer_that_is_due_later_keeps_the_channel_from_nobody() {
    let mut array = array(1, 2, Suspension::None);
    array.submit(Time::ZERO, erase(0), Purpose::Host);
    let late = array.submit(Time::ZERO, read(0), Purpose::Host);
    assert_eq!(late.end, Time::ms(3) + read_service());
    assert_eq!(array.submit(Time::ZERO, read(1), Purpose::Host).wait, Span::ZERO);
}

#[test]
fn a_wait_is_split_by_what_the_die_did_meanwhile() {
    let mut array = array(1, 1, Suspension::None);
    array.submit(Time::ZERO, erase(0), Purpose::Collection);
    array.submit(Time::ZERO, read(0), Purpose::Host);
    array.submit(Time::ZERO, erase(0), Purpose::Collection);
    let booked = array.submit(Time::ms(1), read(0), Purpose::Host);
    assert_eq!(booked.collection_wait, Span::ms(2) + Span::ms(3));
    assert_eq!(booked.wait, read_service());
    assert_eq!(array.counters().dies[0].collection, Span::ms(6));
}

#[test]
fn a_wait_for_the_channel_is_split_too() {
    let mut array = array(1, 3, Suspension::None);
    array.submit(Time::ZERO, read(0), Purpose::Collection);
    array.submit(Time::ZERO, read(1), Purpose::Host);
    let booked = array.submit(Time::ZERO, read(2), Purpose::Host);
    assert_eq!((booked.wait, booked.collection_wait), (transfer(), transfer()));
}

#[test]
fn a_read_interrupts_an_erase_and_prolongs_it_by_itself_and_twice_the_overhead() {
    let mut array = array(1, 1, suspending(2));
    let erasing = array.submit(Time::ZERO, erase(0), Purpose::Collection);
    let ticket = erasing.ticket.expect("an erase has one");
    let reading = array.submit(Time::ms(1), read(0), Purpose::Host);
    assert_eq!((reading.collection_wait, reading.wait), (OVERHEAD, Span::ZERO));
    assert_eq!(array.end_of(ticket), Some(erasing.end + read_service() + OVERHEAD * 2));
    assert_eq!(array.counters().interruptions, 1);
    assert_eq!(array.counters().dies[0].collection, Span::ms(3) + OVERHEAD * 2);
}

#[test]
fn the_last_allowed_interruption_is_made_and_the_next_read_waits_for_the_end() {
    let mut array = array(1, 1, suspending(2));
    let erasing = array.submit(Time::ZERO, erase(0), Purpose::Host);
    let ticket = erasing.ticket.expect("an erase has one");
    let first = array.submit(Time::us(100), read(0), Purpose::Host);
    let second = array.submit(first.end + Span::us(100), read(0), Purpose::Host);
    assert_eq!((first.wait, second.wait), (OVERHEAD, OVERHEAD));
    let now = second.end + Span::us(100);
    let erased = array.end_of(ticket).expect("the erase goes on");
    assert_eq!(erased, erasing.end + (read_service() + OVERHEAD * 2) * 2);
    assert_eq!(array.submit(now, read(0), Purpose::Host).wait, erased - now);
    assert_eq!(array.end_of(ticket), Some(erased));
}

#[test]
fn a_read_that_finds_the_die_reading_joins_without_another_interruption() {
    let mut array = array(1, 1, suspending(1));
    array.submit(Time::ZERO, erase(0), Purpose::Host);
    let first = array.submit(Time::us(100), read(0), Purpose::Host);
    let joining = array.submit(first.end - Span::ps(1), read(0), Purpose::Host);
    assert_eq!(joining.wait, Span::ps(1));
    assert_eq!(array.counters().interruptions, 1);
}

#[test]
fn a_read_goes_before_a_program_that_has_not_begun() {
    let mut array = array(1, 1, suspending(1));
    array.submit(Time::ZERO, erase(0), Purpose::Host);
    let queued = array.submit(Time::ZERO, program(0), Purpose::Host);
    array.submit(Time::ms(1), read(0), Purpose::Host);
    let late = array.submit(Time::ms(2), read(0), Purpose::Host);
    let erased = Time::ms(3) + read_service() + OVERHEAD * 2;
    assert_eq!(late.end, erased + read_service());
    let ticket = queued.ticket.expect("a program has one");
    assert_eq!(array.end_of(ticket), Some(queued.end + (read_service() + OVERHEAD) * 2));
}

#[test]
fn an_operation_that_ends_sooner_than_it_could_stop_is_not_interrupted() {
    let mut exact = array(1, 1, suspending(1));
    exact.submit(Time::ZERO, erase(0), Purpose::Host);
    let mut earlier = exact.clone();
    let moment = Time::ms(3) - OVERHEAD;
    assert_eq!(exact.submit(moment, read(0), Purpose::Host).wait, OVERHEAD);
    assert_eq!(exact.counters().interruptions, 0);
    assert_eq!(earlier.submit(moment - Span::ps(1), read(0), Purpose::Host).wait, OVERHEAD);
    assert_eq!(earlier.counters().interruptions, 1);
}

#[test]
fn geometry_and_timing_that_make_no_array_are_refused() {
    let without_dies = Geometry { dies_per_channel: 0, ..geometry(1, 1) };
    assert!(FlashArray::new(without_dies, mlc(Suspension::None)).is_err());
    let without_pages = Timing { pages: Vec::new(), ..mlc(Suspension::None) };
    assert!(FlashArray::new(geometry(1, 1), without_pages).is_err());
}

#[derive(Clone, Copy, Debug)]
struct Step {
    gap: Span,
    operation: FlashOperation,
    purpose: Purpose,
}

fn step(dies: u32) -> impl Strategy<Value = Step> {
    let purpose = prop_oneof![Just(Purpose::Host), Just(Purpose::Collection)];
    (0..400u64, 0..dies, 0..4u32, purpose).prop_map(|(gap, die, kind, purpose)| {
        let operation = match kind {
            0 => program(die),
            1 => erase(die),
            2 => FlashOperation::Read { page: page(die, 1), bytes: Bytes::kib(8), retries: 1 },
            _ => read(die),
        };
        Step { gap: Span::us(gap), operation, purpose }
    })
}
fn play(array: &mut FlashArray, steps: &[Step]) -> Vec<(Time, Booked)> {
    let mut now = Time::ZERO;
    let mut booked = Vec::new();
    for step in steps {
        now += step.gap;
        booked.push((now, array.submit(now, step.operation, step.purpose)));
    }
    booked
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_parts_of_an_operation_are_its_whole(
        steps in prop::collection::vec(step(6), 1..120),
        suspension in prop_oneof![Just(Suspension::None), Just(suspending(1)), Just(suspending(3))],
    ) {
        let mut array = array(2, 3, suspension);
        for (now, booked) in play(&mut array, &steps) {
            prop_assert_eq!(booked.total(), booked.end - now);
        }
    }

    #[test]
    fn nobody_waits_for_collection_where_there_is_none(steps in prop::collection::vec(step(4), 1..120)) {
        let steps: Vec<Step> = steps.iter().map(|step| Step { purpose: Purpose::Host, ..*step }).collect();
        let mut array = array(2, 2, suspending(2));
        for (_, booked) in play(&mut array, &steps) {
            prop_assert_eq!(booked.collection_wait, Span::ZERO);
        }
    }

    /// A lone die on its channel never idles while something is booked: the last end is the busy
    /// periods' sum.
    #[test]
    fn a_lone_die_is_busy_exactly_as_long_as_it_serves(steps in prop::collection::vec(step(1), 1..120)) {
        let mut array = array(1, 1, Suspension::None);
        let mut free_at = Time::ZERO;
        for (now, booked) in play(&mut array, &steps) {
            free_at = free_at.max(now) + booked.service;
            prop_assert_eq!(booked.end, free_at);
        }
        prop_assert_eq!(array.die_free_at(hardware::ssd::DieId(0)), free_at);
    }

    /// A die that is never idle has ended after all service and all overheads. (Programs are left
    /// out: the transfer of one that moved back may keep a read from the channel.)
    #[test]
    fn suspension_loses_no_work(erases in prop::collection::vec(any::<bool>(), 1..60), limit in 1..4u32) {
        let mut array = array(1, 1, suspending(limit));
        let mut now = Time::ZERO;
        let mut service = Span::ZERO;
        for (index, is_erase) in erases.into_iter().enumerate() {
            now += Span::us(index as u64 % 3);
            service += array.submit(now, if is_erase { erase(0) } else { read(0) }, Purpose::Host).service;
        }
        let free_at = array.die_free_at(hardware::ssd::DieId(0));
        let overheads = OVERHEAD * 2 * array.counters().interruptions;
        prop_assert_eq!(free_at, Time::ZERO + service + overheads);
    }
}
