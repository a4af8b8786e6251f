//! Tests of the claim that a naive retry over another path loses acknowledged data, and the safe
//! policies do not. Covers every schedule of a small case: one block, two paths, one failure, and
//! two writes, the second submitted when the first was acknowledged.

mod net;

use base::{Operation, Span, Time};
use net::{BLOCK, Net, host_config, target_config};
use san::PacketKind;
use san::retry::{RetryPolicy, quiesce_wait};

/// One schedule, times in microseconds.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// Delay of outward packets on path 0.
    slow: u64,
    /// Delay of answers on path 0.
    answer: u64,
    /// Delay of all packets on path 1.
    other: u64,
    drive: u64,
    /// When the link of path 0 goes down.
    fails: u64,
    in_capsule: bool,
}

const SLOW: [u64; 4] = [1, 6, 15, 40];
const DRIVE: [u64; 2] = [1, 4];

fn schedules() -> impl Iterator<Item = Schedule> {
    let mut all = Vec::new();
    for slow in SLOW {
        for answer in [1, 5] {
            for other in [1, 3] {
                for drive in DRIVE {
                    for fails in 0..24 {
                        all.extend([true, false].map(|in_capsule| Schedule {
                            slow,
                            answer,
                            other,
                            drive,
                            fails,
                            in_capsule,
                        }));
                    }
                }
            }
        }
    }
    all.into_iter()
}

/// Runs a schedule. The second write is submitted as soon as the first is acknowledged.
fn play(schedule: Schedule, retry: RetryPolicy) -> Net {
    let in_capsule_max = if schedule.in_capsule { BLOCK } else { 0 };
    let mut host = host_config(retry);
    host.wire.in_capsule_max = in_capsule_max;
    let mut target = target_config();
    target.wire.in_capsule_max = in_capsule_max;
    let mut net = Net::new(host, &target);
    net.drive_time = Box::new(move |_| Span::us(schedule.drive));
    net.way = Box::new(move |_, port, packet| {
        let outward = matches!(packet.kind, PacketKind::Command | PacketKind::WriteData { .. });
        Some(Span::us(match (port.0, outward) {
            (0, true) => schedule.slow,
            (0, false) => schedule.answer,
            _ => schedule.other,
        }))
    });
    net.ask(Time::us(0), 1, Operation::Write, 7, BLOCK);
    net.link_down(Time::us(schedule.fails), 0);
    while net.done_at(1).is_none() && net.step(Time::ms(10)) {}
    net.ask(net.now, 2, Operation::Write, 7, BLOCK);
    net.run(Time::ms(20));
    net
}

/// Returns whether the drive holds the first write although both were acknowledged.
fn is_corrupt(net: &Net) -> bool {
    assert_eq!(net.done.len(), 2, "both writes end:\n{}", net.log.join("\n"));
    net.disk[&7] == 1
}

fn safe_wait() -> Span {
    quiesce_wait(Span::us(SLOW[3]), Span::ZERO, Span::us(DRIVE[1]))
}

#[test]
fn a_naive_retry_loses_an_acknowledged_write() {
    let corrupt: Vec<Schedule> =
        schedules().filter(|schedule| is_corrupt(&play(*schedule, RetryPolicy::Naive))).collect();
    assert!(!corrupt.is_empty(), "no schedule shows the danger");
    let net = play(corrupt[0], RetryPolicy::Naive);
    println!(
        "{} of {} schedules lose data; the first is {:?}:\n{}",
        corrupt.len(),
        schedules().count(),
        corrupt[0],
        net.log.join("\n")
    );
    assert_eq!(net.executions(1), 2, "the first copy came after the second write");
}

#[test]
fn waiting_until_no_copy_can_live_loses_nothing() {
    for schedule in schedules() {
        let net = play(schedule, RetryPolicy::Quiesce { wait: safe_wait() });
        assert!(!is_corrupt(&net), "{schedule:?}:\n{}", net.log.join("\n"));
    }
}

#[test]
fn waiting_less_than_a_copy_can_live_loses_data() {
    let short = RetryPolicy::Quiesce { wait: Span::us(SLOW[3] / 4) };
    assert!(schedules().any(|schedule| is_corrupt(&play(schedule, short))));
}

#[test]
fn a_reset_over_the_other_way_loses_nothing() {
    for schedule in schedules() {
        let net = play(schedule, RetryPolicy::CrossControllerReset);
        assert!(!is_corrupt(&net), "{schedule:?}:\n{}", net.log.join("\n"));
    }
}

/// The benefit of a reset: it takes a round trip, where waiting takes the longest life of a packet.
#[test]
fn a_reset_recovers_sooner_than_waiting() {
    let schedule = Schedule { slow: 40, answer: 1, other: 1, drive: 1, fails: 2, in_capsule: true };
    let ended = |retry| play(schedule, retry).done_at(1).unwrap();
    let reset = ended(RetryPolicy::CrossControllerReset);
    // Reset out and back, write out, drive, answer back.
    assert_eq!(reset, Time::us(2 + 2 + 1 + 1 + 1));
    assert_eq!(ended(RetryPolicy::Quiesce { wait: safe_wait() }), Time::us(2) + safe_wait() + Span::us(3));
}
