//! Is the model right: the anomalies that have names, and their lawful neighbours.

use base::{Seed, Time};
use history::{Action, History, Operation, Violation, Why};

const PAGE: (u64, u64) = (3, 7);

fn write(value: u64, invoked: u64, responded: u64) -> Operation {
    let (invoked, responded) = (Time::ns(invoked), Some(Time::ns(responded)));
    Operation { id: 100 + value, register: PAGE, action: Action::Write, value, invoked, responded }
}

fn read(value: u64, invoked: u64, responded: u64) -> Operation {
    Operation { id: invoked, action: Action::Read, ..write(value, invoked, responded) }
}

fn verdict(operations: &[Operation]) -> Result<(), Violation> {
    let mut history = History::default();
    operations.iter().for_each(|operation| history.record(*operation));
    history.check()
}

fn why(operations: &[Operation]) -> Option<Why> {
    verdict(operations).err().map(|violation| violation.why)
}

#[test]
fn a_stale_read_is_found_and_a_concurrent_one_is_lawful() {
    assert_eq!(why(&[write(1, 0, 10), write(2, 20, 30), read(1, 31, 40)]), Some(Why::Stale));
    assert_eq!(why(&[write(1, 0, 10), write(2, 20, 30), read(1, 30, 40)]), None);
}

#[test]
fn a_lost_write_is_found() {
    assert_eq!(why(&[write(1, 0, 10), read(0, 11, 20)]), Some(Why::Stale));
    assert_eq!(why(&[write(1, 0, 10), write(2, 11, 20), read(1, 21, 30), read(1, 31, 40)]), Some(Why::Stale));
}

#[test]
fn a_read_of_the_future_and_one_of_nothing_are_found() {
    assert_eq!(why(&[read(1, 0, 9), write(1, 10, 20)]), Some(Why::FutureRead));
    assert_eq!(why(&[read(1, 0, 10), write(1, 10, 20)]), None);
    assert_eq!(why(&[read(5, 0, 10)]), Some(Why::NeverWritten));
}

#[test]
fn old_after_new_is_found_while_the_write_still_runs() {
    assert_eq!(why(&[write(1, 0, 1), write(2, 10, 100), read(2, 20, 30), read(1, 31, 40)]), Some(Why::Stale));
    let both = [write(1, 0, 1), write(2, 10, 100), read(2, 20, 30), read(1, 31, 40), read(2, 41, 50)];
    assert_eq!(why(&both), Some(Why::Interleaved));
    assert_eq!(why(&[write(1, 0, 1), write(2, 10, 100), read(1, 20, 30), read(2, 31, 40)]), None);
}

#[test]
fn a_write_that_was_never_answered_may_happen_late_or_never() {
    let lost = Operation { responded: None, ..write(2, 5, 5) };
    assert_eq!(why(&[write(1, 0, 1), lost, read(1, 10, 20), read(1, 30, 40)]), None);
    assert_eq!(why(&[write(1, 0, 1), lost, read(1, 10, 20), read(2, 30, 40)]), None);
    assert_eq!(why(&[write(1, 0, 1), lost, read(2, 10, 20), read(1, 30, 40)]), Some(Why::Stale));
}

#[test]
fn registers_are_apart_and_the_message_names_the_one_that_is_wrong() {
    let elsewhere = Operation { register: (3, 8), ..write(1, 0, 10) };
    assert_eq!(why(&[elsewhere, read(0, 20, 30)]), None);
    let violation = verdict(&[write(1, 0, 10), read(0, 11, 20)]).expect_err("the write is lost");
    assert_eq!(violation.register, PAGE);
    assert!(violation.to_string().contains("operation 101 wrote 1 from 0 ps to 10000 ps"), "{violation}");
}

#[test]
fn a_value_that_is_written_twice_is_a_mistake_of_the_caller() {
    assert_eq!(why(&[write(1, 0, 10), write(1, 20, 30)]), Some(Why::WrittenTwice));
}

/// A lawful history of a million operations on a thousand registers; what is settled takes no
/// memory.
#[test]
fn a_long_run_is_judged_in_little_memory() {
    let mut stream = Seed(1).stream("run");
    let mut history = History::default();
    let mut values = vec![0u64; 1_000];
    let mut most = 0;
    for id in 0..1_000_000u64 {
        let place = stream.below(1_000);
        let is_write = stream.below(2) == 0;
        if is_write {
            values[place as usize] = id + 1;
        }
        let (value, invoked) = (values[place as usize], Time::ns(id * 10));
        let action = if is_write { Action::Write } else { Action::Read };
        let responded = Some(Time::ns(id * 10 + 5));
        history.record(Operation { id, register: (0, place), action, value, invoked, responded });
        if id % 20_000 == 0 {
            most = most.max(history.values());
            history.settle(invoked).expect("one client at a time is linearizable");
            assert!(history.values() <= 2_000, "{}", history.values());
        }
    }
    assert!(most < 14_000, "{most}");
    history.check().expect("one client at a time is linearizable");
    let stale = Operation {
        id: 0,
        register: (0, 0),
        action: Action::Read,
        value: 0,
        invoked: Time::secs(1),
        responded: Some(Time::secs(2)),
    };
    history.record(stale);
    assert_eq!(history.check().expect_err("that value is long gone").why, Why::NeverWritten);
}
