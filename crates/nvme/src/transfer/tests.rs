use super::*;
use crate::Status;
use crate::pdu::{ControllerData, FatalStatus, HostData, ReadyToTransfer};
use proptest::prelude::*;

const PLAN: ReadyPlan = ReadyPlan { ready_bytes_max: 100, open_max: 2 };

fn data(tag: u16, offset: u32, length: u32, is_last: bool) -> HostData {
    HostData { command: 7, tag, offset, length, is_last }
}

fn ready(offset: u32, length: u32) -> ReadyToTransfer {
    ReadyToTransfer { command: 7, tag: offset as u16, offset, length }
}

fn back(offset: u32, length: u32, is_last: bool, is_success: bool) -> ControllerData {
    ControllerData { command: 7, offset, length, is_last, is_success }
}

fn status<T: std::fmt::Debug>(result: Result<T, PduError>) -> (FatalStatus, u32) {
    let error = result.expect_err("the peer is wrong");
    (error.fatal_status(), error.information())
}

proptest! {
    #[test]
    fn a_write_arrives_whole_and_once(
        length in 1u32..5_000, window in 1u32..6, host_window in 0u32..6, request in 1u32..2_000, piece in 1u32..1_500,
    ) {
        let plan = ReadyPlan { ready_bytes_max: request, open_max: window.min(host_window + 1) };
        let mut target = TargetWrite::new(7, length, plan);
        let mut host = HostWrite::new(7, length, host_window, piece);
        let mut tags = Tags::new(8);
        let mut seen = vec![0u8; length as usize];
        while target.outcome().is_none() {
            while target.wants_ready() {
                let tag = tags.open(()).unwrap();
                host.on_ready(&target.next_ready(tag).unwrap()).unwrap();
            }
            prop_assert!(tags.open_count() <= plan.open_max as usize);
            let data = host.next_data().expect("what was asked for is sent");
            prop_assert!(data.length <= piece);
            seen[data.offset as usize..][..data.length as usize].iter_mut().for_each(|count| *count += 1);
            tags.find(data.tag).unwrap();
            if target.on_data(&data).unwrap() {
                tags.close(data.tag).unwrap();
            }
        }
        prop_assert!(seen.iter().all(|count| *count == 1));
        prop_assert!(host.is_sent() && host.next_data().is_none() && tags.open_count() == 0);
        prop_assert_eq!(target.outcome(), Some(Status::SUCCESS));
    }

    #[test]
    fn a_read_arrives_whole_and_once_and_ends_once(length in 0u32..5_000, piece in 1u32..1_500, may_flag in any::<bool>()) {
        let mut target = TargetRead::new(7, length, piece, may_flag);
        let mut host = HostRead::new(7, length);
        let (mut next, mut ends) = (0, 0);
        while let Some(data) = target.next_data() {
            prop_assert_eq!(data.offset, next);
            prop_assert_eq!(data.is_last, data.offset + data.length == length);
            next += data.length;
            ends += u32::from(host.on_data(&data).unwrap());
        }
        if target.needs_response() {
            host.on_response(Status::SUCCESS).unwrap();
            ends += 1;
        }
        prop_assert_eq!((next, ends, host.received()), (length, 1, length));
        prop_assert_eq!(target.needs_response(), !may_flag || length == 0);
        prop_assert!(host.on_response(Status::SUCCESS).is_err(), "the command is over");
    }

    #[test]
    fn random_data_never_panic_and_never_count_beyond_the_command(
        all in prop::collection::vec((0u16..3, 0u32..260, prop_oneof![0u32..130, Just(u32::MAX)], any::<bool>()), 0..30),
    ) {
        let mut target = TargetWrite::new(7, 250, PLAN);
        let mut received = 0;
        for (tag, offset, length, is_last) in all {
            while target.next_ready(tag).is_some() {}
            if target.on_data(&data(tag, offset, length, is_last)).is_ok() {
                received += length;
            }
        }
        prop_assert!(received <= 250);
        prop_assert_eq!(target.outcome().is_some(), received == 250);
    }
}

#[test]
fn data_in_the_capsule_go_whole_or_not_at_all() {
    assert_eq!(Carriage::of_write(8192, 8192), Carriage::InCapsule);
    assert_eq!(Carriage::of_write(8193, 8192), Carriage::Separate);
    assert_eq!(Carriage::InCapsule.sgl(5), Sgl::InCapsule { offset: 0, length: 5 });
    assert_eq!(Carriage::Separate.sgl(5), Sgl::Transport { length: 5 });
}

#[test]
fn a_target_asks_up_to_its_window_and_again_when_one_is_done() {
    let mut target = TargetWrite::new(7, 250, PLAN);
    assert_eq!(target.next_ready(1), Some(ReadyToTransfer { command: 7, tag: 1, offset: 0, length: 100 }));
    assert_eq!(target.next_ready(2), Some(ReadyToTransfer { command: 7, tag: 2, offset: 100, length: 100 }));
    assert_eq!(target.next_ready(3), None);
    assert_eq!(target.on_data(&data(2, 100, 100, true)), Ok(true), "the second may be answered first");
    assert_eq!(target.next_ready(3), Some(ReadyToTransfer { command: 7, tag: 3, offset: 200, length: 50 }));
    assert_eq!(target.next_ready(4), None);
    assert_eq!(target.tags().collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn a_host_splits_at_maxh2cdata_and_marks_the_last_of_each_request() {
    let mut host = HostWrite::new(7, 150, 1, 60);
    host.on_ready(&ready(0, 100)).unwrap();
    host.on_ready(&ready(100, 50)).unwrap();
    let sent: Vec<_> =
        std::iter::from_fn(|| host.next_data()).map(|data| (data.offset, data.length, data.is_last)).collect();
    assert_eq!(sent, [(0, 60, false), (60, 40, true), (100, 50, true)]);
    assert!(host.is_sent());
}

/// The faults of CVE-2023-6535, 6536, 6356 and 2026-22998 among others.
#[test]
fn data_that_nobody_asked_for_end_the_connection_with_the_right_status() {
    let mut target = TargetWrite::new(7, 250, PLAN);
    assert_eq!(status(target.on_data(&data(1, 0, 10, false))), (FatalStatus::InvalidField, 10), "before any R2T");
    target.next_ready(1);
    assert_eq!(status(target.on_data(&data(2, 0, 10, false))), (FatalStatus::InvalidField, 10), "another tag");
    let other = HostData { command: 8, ..data(1, 0, 10, false) };
    assert_eq!(status(target.on_data(&other)), (FatalStatus::InvalidField, 8), "another command");
    for (offset, length) in [(1, 10), (0, 101), (0, 0), (100, 1), (u32::MAX, 10), (0, u32::MAX)] {
        let is_last = offset == 0 && length > 100;
        assert_eq!(status(target.on_data(&data(1, offset, length, is_last))), (FatalStatus::OutOfRange, 0));
    }
    assert_eq!(status(target.on_data(&data(1, 0, 99, true))), (FatalStatus::InvalidField, 1), "LAST too early");
    assert_eq!(status(target.on_data(&data(1, 0, 100, false))), (FatalStatus::InvalidField, 1), "LAST missing");
    assert_eq!(target.on_data(&data(1, 0, 99, false)), Ok(false));
    assert_eq!(status(target.on_data(&data(1, 98, 1, false))), (FatalStatus::OutOfRange, 0), "twice");
    assert_eq!(target.on_data(&data(1, 99, 1, true)), Ok(true));
    assert_eq!(status(target.on_data(&data(1, 99, 1, true))), (FatalStatus::InvalidField, 10), "a finished tag");
}

#[test]
fn a_write_that_fails_asks_for_nothing_more_and_waits_for_what_was_asked() {
    let mut target = TargetWrite::new(7, 250, PLAN);
    target.next_ready(1);
    target.fail(Status::TRANSIENT_TRANSPORT);
    target.fail(Status::INTERNAL_ERROR);
    assert_eq!((target.next_ready(2), target.outcome()), (None, None));
    target.on_data(&data(1, 0, 100, true)).unwrap();
    assert_eq!(target.outcome(), Some(Status::TRANSIENT_TRANSPORT), "the first failure counts");
}

#[test]
fn a_controller_that_asks_wrongly_ends_the_connection_with_the_right_status() {
    let mut host = HostWrite::new(7, 150, 0, 60);
    let other = ReadyToTransfer { command: 8, ..ready(0, 10) };
    assert_eq!(status(host.on_ready(&other)), (FatalStatus::InvalidField, 8));
    for (offset, length) in [(1, 10), (0, 151), (0, 0), (u32::MAX, 1), (0, u32::MAX)] {
        assert_eq!(status(host.on_ready(&ready(offset, length))), (FatalStatus::OutOfRange, 0));
    }
    host.on_ready(&ready(0, 100)).unwrap();
    assert_eq!(status(host.on_ready(&ready(100, 50))), (FatalStatus::LimitExceeded, 0), "two open, one allowed");
    while host.next_data().is_some() {}
    assert_eq!(status(host.on_ready(&ready(0, 100))), (FatalStatus::OutOfRange, 0), "the same again");
    host.on_ready(&ready(100, 50)).unwrap();
    while host.next_data().is_some() {}
    assert_eq!(status(host.on_ready(&ready(150, 1))), (FatalStatus::OutOfRange, 0), "beyond the end");
    let mut none = HostWrite::new(7, 0, 0, 60);
    assert_eq!(status(none.on_ready(&ready(0, 1))), (FatalStatus::OutOfRange, 0), "a command without data");
}

#[test]
fn a_controller_that_sends_wrongly_ends_the_connection_with_the_right_status() {
    let host = HostRead::new(7, 100);
    let on = |data: &ControllerData| status(host.clone().on_data(data));
    assert_eq!(on(&ControllerData { command: 8, ..back(0, 100, true, false) }), (FatalStatus::InvalidField, 8));
    assert_eq!(on(&back(4, 10, false, false)), (FatalStatus::OutOfRange, 0), "a gap");
    assert_eq!(on(&back(0, 101, true, false)), (FatalStatus::OutOfRange, 0), "too much");
    assert_eq!(on(&back(0, 0, false, false)), (FatalStatus::OutOfRange, 0), "nothing");
    assert_eq!(on(&back(0, 50, true, true)), (FatalStatus::InvalidField, 1), "success with bytes missing");
    assert_eq!(on(&back(0, 50, false, true)), (FatalStatus::InvalidField, 1), "success without LAST");
    let mut none = HostRead::new(7, 0);
    assert_eq!(status(none.on_data(&back(0, 4, true, true))), (FatalStatus::OutOfRange, 0), "a command without data");
    let mut unended = HostRead::new(7, 100);
    assert_eq!(unended.on_data(&back(0, 100, false, false)), Ok(false), "the whole without LAST");
    assert!(unended.lacks_last());
    assert_eq!(
        status(unended.on_data(&back(100, 4, true, false))),
        (FatalStatus::OutOfRange, 0),
        "more than the whole"
    );
    assert_eq!(unended.on_response(Status::SUCCESS), Ok(()));
}

#[test]
fn a_read_ends_by_flag_or_by_response_and_not_by_both() {
    let mut host = HostRead::new(7, 100);
    assert_eq!(host.on_data(&back(0, 100, true, true)), Ok(true));
    assert_eq!(status(host.on_response(Status::SUCCESS)), (FatalStatus::Sequence, 0));
    let mut host = HostRead::new(7, 100);
    assert_eq!(host.on_data(&back(0, 50, true, false)), Ok(false), "the last comes early: the read failed");
    assert_eq!(status(host.on_data(&back(50, 50, true, false))), (FatalStatus::Sequence, 0));
    assert_eq!(status(host.on_response(Status::SUCCESS)), (FatalStatus::Sequence, 0), "bytes are missing");
    assert_eq!(host.on_response(Status::UNRECOVERED_READ), Ok(()));
}

#[test]
fn a_read_that_stops_is_answered_with_a_response() {
    let mut target = TargetRead::new(7, 100, 60, true);
    target.next_data();
    assert!(target.stop() && target.next_data().is_none() && target.needs_response());
    let mut said = TargetRead::new(7, 100, 100, true);
    said.next_data();
    assert!(!said.stop() && !said.needs_response(), "success was said");
}

#[test]
fn a_finished_tag_is_not_taken_for_its_successor() {
    let mut tags = Tags::new(3);
    let first = tags.open('a').unwrap();
    assert_eq!(tags.find(first), Ok(&'a'));
    assert_eq!(tags.close(first), Ok('a'));
    assert!(tags.find(first).is_err() && tags.close(first).is_err());
    let second = tags.open('b').unwrap();
    assert!(second != first && tags.find(first).is_err());
    assert_eq!(tags.find(second), Ok(&'b'));
}

#[test]
fn tags_end_at_their_capacity_and_any_number_is_looked_up() {
    for capacity in [0u16, 1, 2, 3, 8, 9] {
        let mut tags = Tags::new(capacity);
        let open: Vec<u16> = std::iter::from_fn(|| tags.open(())).collect();
        assert_eq!(open.len(), usize::from(capacity));
        let found = (0..=u16::MAX).filter(|tag| tags.find(*tag).is_ok()).count();
        assert_eq!(found, usize::from(capacity));
    }
}

#[test]
fn a_transfer_that_is_started_again_has_forgotten_the_last_command() {
    let mut host = HostWrite::new(7, 300, 0, 50);
    host.on_ready(&ready(0, 100)).unwrap();
    host.next_data();
    host.restart(7, 80);
    assert_eq!((host.next_data(), host.is_sent()), (None, false));
    host.on_ready(&ready(0, 80)).unwrap();
    let sent: Vec<(u32, u32)> =
        std::iter::from_fn(|| host.next_data()).map(|data| (data.offset, data.length)).collect();
    assert_eq!((sent, host.is_sent()), (vec![(0, 50), (50, 30)], true));

    let mut target = TargetWrite::new(7, 300, PLAN);
    target.next_ready(1);
    target.fail(Status::WRITE_FAULT);
    target.restart(7, 80);
    assert_eq!((target.outcome(), target.wants_ready(), target.tags().count()), (None, true, 0));
    assert_eq!(target.next_ready(4).map(|ready| (ready.offset, ready.length)), Some((0, 80)));
    target.on_data(&data(4, 0, 80, true)).unwrap();
    assert_eq!(target.outcome(), Some(Status::SUCCESS));
}
