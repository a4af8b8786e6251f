//! Scenarios of one host, one drive and two paths between them.

mod net;

use base::{Operation, Program, Span, Time};
use net::{BLOCK, Net, host_config, target_config};
use proptest::prelude::*;
use san::gimbal::GimbalConfig;
use san::retry::RetryPolicy;
use san::session::Attempt;
use san::target::{Admission, TargetConfig};
use san::{Outcome, PacketKind, Trail};
use std::cell::Cell;
use std::rc::Rc;

const US: fn(u64) -> Time = Time::us;

fn net() -> Net {
    Net::new(host_config(RetryPolicy::CrossControllerReset), &target_config())
}

/// Returns the kinds of the packets that were sent, in order.
fn kinds(net: &Net) -> Vec<PacketKind> {
    net.sent.iter().map(|(_, packet)| packet.kind).collect()
}

/// Loses the packets whose numbers, in the order of sending, are listed.
fn lose(net: &mut Net, lost: &'static [usize]) {
    let mut sent = 0;
    net.way = Box::new(move |_, _, _| {
        sent += 1;
        (!lost.contains(&(sent - 1))).then_some(Span::us(2))
    });
}

mod transfers {
    use super::*;
    use PacketKind::*;

    #[test]
    fn a_read_is_a_command_data_in_segments_and_a_response() {
        let mut net = net();
        net.ask(US(0), 1, Operation::Read, 0, 3 * BLOCK);
        net.run(US(100));
        assert_eq!(
            kinds(&net),
            [Command, ReadData { last: false }, ReadData { last: false }, ReadData { last: true }, Response]
        );
        // Two transits of 2 us, and 10 us at the drive.
        assert_eq!(net.done_at(1), Some(US(14)));
        let done = net.done[0].1;
        assert_eq!((done.outcome, done.sends, done.drive_latency_ns), (Outcome::Success, 1, 10_000));
        assert_eq!(done.first_sent, Some(US(0)));
    }

    #[test]
    fn a_write_waits_for_the_target_to_ask_for_its_data() {
        let mut net = net();
        net.ask(US(0), 1, Operation::Write, 0, 2 * BLOCK);
        net.run(US(100));
        assert_eq!(
            kinds(&net),
            [Command, ReadyToTransfer, WriteData { last: false }, WriteData { last: true }, Response]
        );
        assert_eq!(net.done_at(1), Some(US(18)));
    }

    #[test]
    fn data_in_the_capsule_save_a_round_trip() {
        let (mut host, mut target) = (host_config(RetryPolicy::Naive), target_config());
        (host.wire.in_capsule_max, target.wire.in_capsule_max) = (BLOCK, BLOCK);
        let mut net = Net::new(host, &target);
        net.ask(US(0), 1, Operation::Write, 0, BLOCK);
        net.ask(US(50), 2, Operation::Write, 0, BLOCK + 1);
        net.run(US(200));
        assert_eq!(kinds(&net)[..2], [Command, Response]);
        assert_eq!(kinds(&net)[2..4], [Command, ReadyToTransfer], "a byte too many");
        assert_eq!((net.done_at(1), net.done_at(2)), (Some(US(14)), Some(US(68))));
    }

    #[test]
    fn a_large_write_is_asked_for_in_pieces() {
        let (mut host, mut target) = (host_config(RetryPolicy::Naive), target_config());
        (host.wire.ready_max, target.wire.ready_max) = (8192, 8192);
        let mut net = Net::new(host, &target);
        net.ask(US(0), 1, Operation::Write, 0, 20_000);
        net.run(US(200));
        let asked = kinds(&net).iter().filter(|kind| **kind == ReadyToTransfer).count();
        assert_eq!((asked, net.done[0].1.outcome), (3, Outcome::Success));
        let payload: u32 =
            net.sent.iter().filter(|(_, packet)| packet.kind.is_outward()).map(|(_, packet)| packet.payload).sum();
        assert_eq!(payload, 20_000);
    }

    #[test]
    fn the_success_flag_saves_the_response_of_reads_only() {
        let (mut host, mut target) = (host_config(RetryPolicy::Naive), target_config());
        (host.wire.success_flag, target.wire.success_flag) = (true, true);
        let mut net = Net::new(host, &target);
        net.ask(US(0), 1, Operation::Read, 0, BLOCK);
        net.ask(US(50), 2, Operation::Write, 0, BLOCK);
        net.run(US(200));
        assert_eq!(kinds(&net)[..2], [Command, ReadData { last: true }]);
        assert_eq!(kinds(&net).last(), Some(&Response));
        assert_eq!(net.done.len(), 2);
    }

    #[test]
    fn every_packet_of_the_target_carries_the_credit_and_none_of_the_host_does() {
        let mut net = net();
        net.ask(US(0), 1, Operation::Read, 0, BLOCK);
        net.ask(US(0), 2, Operation::Write, 1, BLOCK);
        net.run(US(100));
        assert!(net.sent.iter().all(|(_, packet)| packet.credit == if packet.kind.is_outward() { 0 } else { 32 }));
    }
}

mod credits {
    use super::*;

    fn outstanding_highest(net: &mut Net) -> i32 {
        (0..100).for_each(|request| net.ask(US(0), request, Operation::Read, request, BLOCK));
        net.run(Time::ms(50));
        assert_eq!(net.done.len(), 100);
        let (mut now, mut most) = (0, 0);
        for (_, packet) in &net.sent {
            match packet.kind {
                PacketKind::Command => now += 1,
                PacketKind::Response => now -= 1,
                _ => {}
            }
            most = most.max(now);
        }
        most
    }

    fn with(credits: bool, queue_entries: u16, admission: Admission) -> Net {
        let host = san::host::HostConfig { credits, queue_entries, ..host_config(RetryPolicy::Naive) };
        Net::new(host, &TargetConfig { admission, queue_entries, ..target_config() })
    }

    #[test]
    fn outstanding_ios_stay_within_the_credit() {
        let fifo = |credit| Admission::Fifo { depth: 4, waiting_max: 1000, credit };
        // The first 32 are sent before the first packet from the target.
        assert_eq!(outstanding_highest(&mut with(true, 129, fifo(32))), 32);
        assert!(outstanding_highest(&mut with(true, 129, fifo(50))) > 32);
        assert_eq!(outstanding_highest(&mut with(false, 129, fifo(32))), 100, "all at once");
    }

    #[test]
    fn outstanding_ios_stay_within_the_queue_pair() {
        let fifo = Admission::Fifo { depth: 4, waiting_max: 1000, credit: 32 };
        assert_eq!(outstanding_highest(&mut with(true, 9, fifo)), 16, "eight commands of either lane");
    }
}

mod repeats {
    use super::*;

    #[test]
    fn a_lost_packet_costs_a_timeout_and_nothing_else() {
        // The packets of a write: command, ready-to-transfer, data, response.
        for (lost, executions) in [(&[0][..], 1), (&[1], 1), (&[2], 1), (&[3], 1)] {
            let mut net = net();
            lose(&mut net, lost);
            net.ask(US(0), 1, Operation::Write, 0, BLOCK);
            net.run(Time::ms(10));
            assert_eq!(net.executions(1), executions, "{lost:?}");
            let done = net.done[0].1;
            assert_eq!((done.outcome, done.sends), (Outcome::Success, 2), "{lost:?}");
            // Measured from the last packet received, at most 16 us into the first send.
            assert!(net.done[0].0 >= US(500) && net.done[0].0 < US(560), "{lost:?}");
            assert_eq!(net.host.counters().retries, 0);
        }
    }

    fn with_fast_retransmit(is_on: bool) -> Net {
        let (mut host, mut target) = (host_config(RetryPolicy::CrossControllerReset), target_config());
        (host.wire.fast_retransmit, target.wire.fast_retransmit) = (is_on, is_on);
        Net::new(host, &target)
    }

    /// Ways take 2 us, the drive 10 us, a back-off 10 us, and software no time.
    #[test]
    fn a_lost_segment_in_the_middle_is_noticed_by_what_comes_behind_it_and_all_are_sent_again() {
        // For a write, the target reports the loss at 6 us; for a read, the host detects it at 14
        // us.
        for (lost, operation, end) in [(&[3][..], Operation::Write, 36), (&[2], Operation::Read, 38)] {
            let mut net = with_fast_retransmit(true);
            lose(&mut net, lost);
            net.ask(US(0), 1, operation, 0, 4 * BLOCK);
            net.run(Time::ms(10));
            assert_eq!((net.done[0].1.outcome, net.done[0].1.sends), (Outcome::Success, 2));
            assert_eq!(net.done_at(1), Some(US(end)), "{operation:?}");
            assert_eq!((net.host.counters().gaps, net.host.counters().timeouts), (1, 0));
        }
    }

    #[test]
    fn without_fast_retransmit_a_lost_segment_costs_the_timeout() {
        for (lost, operation) in [(&[3][..], Operation::Write), (&[2], Operation::Read)] {
            let mut net = with_fast_retransmit(false);
            lose(&mut net, lost);
            net.ask(US(0), 1, operation, 0, 4 * BLOCK);
            net.run(Time::ms(10));
            assert_eq!((net.done[0].1.outcome, net.done[0].1.sends), (Outcome::Success, 2));
            assert!(net.done_at(1) >= Some(US(500)) && net.host.counters().timeouts == 1, "{operation:?}");
        }
    }

    /// Nothing follows the lost packet, as nothing follows the only packet of a short answer.
    #[test]
    fn a_lost_tail_costs_the_probe_and_what_is_lost_again_the_timeout() {
        for (lost, end) in [(&[1][..], 100 + 14), (&[1, 3], 100 + 500 + 14)] {
            let (mut host, mut target) = (host_config(RetryPolicy::CrossControllerReset), target_config());
            (host.wire.success_flag, target.wire.success_flag) = (true, true);
            host.probe = Span::us(100);
            let mut net = Net::new(host, &target);
            lose(&mut net, lost);
            net.ask(US(0), 1, Operation::Read, 0, BLOCK);
            net.run(Time::ms(10));
            assert_eq!(net.done_at(1), Some(US(end)), "{lost:?}");
            assert_eq!((net.host.counters().timeouts, net.host.counters().gaps), (lost.len() as u64, 0));
        }
    }

    /// Ten I/Os of a session at once: its core starts one every 3 us. A lone one takes what it
    /// takes without cores.
    #[test]
    fn the_ios_of_a_session_start_one_after_the_other_on_its_core() {
        let cores = Some(san::host::CoresConfig { count: 4, per_io: Span::us(3) });
        let mut target = target_config();
        target.admission = san::target::Admission::Fifo { depth: 64, waiting_max: 64, credit: 32 };
        let mut net = Net::new(san::host::HostConfig { cores, ..host_config(RetryPolicy::Naive) }, &target);
        (0..10).for_each(|request| net.ask(US(0), request, Operation::Read, request, BLOCK));
        net.run(Time::ms(1));
        let ends: Vec<_> = (0..10).map(|request| net.done_at(request).expect("it ends")).collect();
        assert_eq!(ends, (0..10).map(|request| US(14 + 3 * request)).collect::<Vec<_>>());
    }

    /// Equal reads of 14 us leave no deviation: a lost one is sent again after 14 us or the floor,
    /// lost again after twice that.
    #[test]
    fn an_adaptive_timeout_is_the_smoothed_round_trip_and_no_less_than_its_floor() {
        for (floor, lost, after) in [(1, 1, 14), (40, 1, 40), (1, 2, 14 + 28), (40, 2, 40 + 80)] {
            let (mut host, mut target) = (host_config(RetryPolicy::CrossControllerReset), target_config());
            (host.wire.success_flag, target.wire.success_flag) = (true, true);
            (host.probe, host.timeout) = (Span::ms(3), Span::ms(5));
            host.timeout_min = Some(Span::us(floor));
            let mut net = Net::new(host, &target);
            let loses_from = Time::us(20_000);
            let mut left = lost;
            net.way = Box::new(move |now, _, packet| {
                let is_lost = now >= loses_from && packet.kind == PacketKind::Command && left > 0;
                left -= i32::from(is_lost);
                (!is_lost).then(|| Span::us(2))
            });
            (0..200).for_each(|request| net.ask(US(50 * request), request, Operation::Read, 0, BLOCK));
            net.ask(US(20_000), 200, Operation::Read, 0, BLOCK);
            net.run(Time::ms(60));
            let took = net.done_at(200).expect("it ends").saturating_since(US(20_000));
            let late = took.saturating_sub(Span::us(after + 14));
            assert!(took >= Span::us(after + 14) && late < Span::ns(10), "floor {floor}, {lost} lost: {took}");
            assert_eq!(net.host.counters().timeouts, lost as u64);
        }
    }

    /// Before a session has had a response, the first timeout is the configured one.
    #[test]
    fn an_adaptive_timeout_begins_as_the_configured_one() {
        let mut host = host_config(RetryPolicy::CrossControllerReset);
        (host.probe, host.timeout_min) = (Span::us(300), Some(Span::us(1)));
        let mut net = Net::new(host, &target_config());
        lose(&mut net, &[0]);
        net.ask(US(0), 1, Operation::Read, 0, BLOCK);
        net.run(Time::ms(10));
        assert_eq!(net.done_at(1), Some(US(300 + 14)));
    }

    #[test]
    fn a_late_answer_to_an_earlier_send_ends_a_read() {
        let mut net = Net::new(
            san::host::HostConfig { probe: Span::us(100), ..host_config(RetryPolicy::Naive) },
            &target_config(),
        );
        net.way = Box::new(|_, _, packet| Some(if packet.kind.is_outward() { Span::us(2) } else { Span::us(150) }));
        net.ask(US(0), 1, Operation::Read, 0, 2 * BLOCK);
        net.run(Time::ms(10));
        assert_eq!((net.done_at(1), net.done[0].1.sends), (Some(US(2 + 10 + 150)), 2));
        assert_eq!(net.done.len(), 1);
    }

    /// One wake-up per command would be an additional event for each.
    #[test]
    fn who_is_answered_in_time_is_never_woken() {
        let target = TargetConfig { command_life_max: Some(Span::us(400)), ..target_config() };
        let mut net = Net::new(host_config(RetryPolicy::CrossControllerReset), &target);
        (0..100).for_each(|request| net.ask(US(20 * request), request, Operation::Read, 0, BLOCK));
        net.run(US(1_998));
        let pending = net.host.next_wakeup().filter(|at| *at < Time::secs(1));
        assert_eq!((net.done.len(), pending, net.target.next_wakeup()), (100, None, None));
    }

    #[test]
    fn a_write_whose_response_was_lost_is_answered_again_and_not_done_again() {
        let mut net = net();
        lose(&mut net, &[3]);
        net.ask(US(0), 1, Operation::Write, 0, BLOCK);
        net.run(Time::ms(10));
        assert_eq!(net.executions(1), 1);
        assert_eq!(net.target.counters().duplicates, 1);
    }

    #[test]
    fn silence_fails_the_association_and_the_other_lane_takes_over() {
        let mut net = net();
        net.way = Box::new(|_, port, _| (port.0 == 1).then_some(Span::us(2)));
        net.ask(US(0), 1, Operation::Write, 0, BLOCK);
        net.run(Time::ms(10));
        assert_eq!(net.done[0].1.outcome, Outcome::Success);
        assert_eq!((net.host.counters().timeouts, net.host.counters().path_failures), (3, 1));
        // Three timeouts of 500 us, then the reset and the write.
        assert_eq!(net.done_at(1), Some(US(1500 + 4 + 18)));
    }

    #[test]
    fn a_refused_command_backs_off_and_keeps_its_identifier() {
        let mut net = net();
        let refusals = Rc::new(Cell::new(3));
        // The test acts as a hop here: it refuses each command explicitly.
        net.way = Box::new(|_, _, _| Some(Span::us(2)));
        net.ask(US(0), 1, Operation::Read, 0, BLOCK);
        let mut seen = Vec::new();
        while refusals.get() > 0 && net.step(Time::ms(1)) {
            let Some((at, packet)) = net.sent.last().cloned() else { continue };
            if packet.kind == PacketKind::Command && seen.last() != Some(&(at, packet.tag)) {
                seen.push((at, packet.tag));
                refusals.set(refusals.get() - 1);
                net.refuse_last();
            }
        }
        net.run(Time::ms(10));
        let gaps: Vec<Span> = seen.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert_eq!(gaps, [Span::us(10) + Span::us(2), Span::us(20) + Span::us(2)]);
        assert!(seen.windows(2).all(|pair| pair[0].1.command == pair[1].1.command));
        assert_eq!(net.done[0].1.outcome, Outcome::Success);
        assert_eq!((net.host.counters().rejected, net.done[0].1.sends), (3, 4));
    }

    #[test]
    fn a_copy_of_an_identifier_that_was_used_since_is_dropped() {
        let mut net = net();
        net.ask(US(0), 1, Operation::Write, 0, BLOCK);
        net.run(US(100));
        let first = net.sent[0].1.clone();
        // Enough writes to reuse the queue slot of the first.
        (2..40).for_each(|request| net.ask(US(100 * request), request, Operation::Write, 0, BLOCK));
        net.run(Time::ms(10));
        let (late, executed) = (net.target.counters().late, net.executed.len());
        net.deliver(first);
        net.run(Time::ms(20));
        assert_eq!(net.target.counters().late, late + 1);
        assert_eq!(net.executed.len(), executed);
    }
}

mod failures {
    use super::*;

    #[test]
    fn a_drive_that_fails_answers_everything_with_an_error_and_serves_again_when_it_is_back() {
        let mut net = net();
        net.drive_time = Box::new(|_| Span::us(50));
        (0..12).for_each(|request| net.ask(US(request), request, Operation::Write, request, BLOCK));
        net.drive_failed(US(30));
        net.ask(US(60), 50, Operation::Read, 0, BLOCK);
        net.drive_back(US(100));
        net.ask(US(120), 51, Operation::Read, 0, BLOCK);
        net.run(Time::ms(10));
        assert_eq!(net.done.len(), 14);
        let outcome = |request| net.done.iter().find(|(_, done)| done.request.0 == request).unwrap().1.outcome;
        assert!((0..12).chain([50]).all(|request| outcome(request) == Outcome::DriveFailed));
        assert_eq!(outcome(51), Outcome::Success);
        assert_eq!((net.executed.len(), net.target.under_way(), net.host.under_way()), (1, 0, 0));
    }

    #[test]
    fn a_command_that_cannot_begin_within_its_life_is_given_up_and_comes_as_a_new_one() {
        let admission = Admission::Fifo { depth: 1, waiting_max: 64, credit: 32 };
        let mut net = Net::new(
            host_config(RetryPolicy::Naive),
            &TargetConfig { admission, command_life_max: Some(Span::us(100)), ..target_config() },
        );
        net.drive_time = Box::new(|_| Span::us(90));
        (0..4).for_each(|request| net.ask(US(0), request, Operation::Read, request, BLOCK));
        net.run(Time::ms(10));
        assert!(net.target.counters().aborted > 0);
        assert_eq!(net.done.len(), 4);
        assert!((0..4).all(|request| net.executions(request) == 1));
    }

    #[test]
    fn a_full_target_refuses_and_nothing_is_lost() {
        let config = TargetConfig { flights_max: 2, ..target_config() };
        let mut net = Net::new(host_config(RetryPolicy::Naive), &config);
        (0..30).for_each(|request| net.ask(US(0), request, Operation::Write, request, BLOCK));
        net.run(Time::ms(50));
        assert_eq!((net.done.len(), net.executed.len()), (30, 30));
        assert_eq!(net.target.counters().flights_highest, 2);
    }

    #[test]
    fn a_full_host_refuses_at_once() {
        let host = san::host::HostConfig { waiting_max: 1, credit_initial: 1, ..host_config(RetryPolicy::Naive) };
        let mut net = Net::new(host, &target_config());
        (0..3).for_each(|request| net.ask(US(0), request, Operation::Read, request, BLOCK));
        net.run(US(1));
        assert_eq!(net.done.len(), 1);
        assert_eq!((net.done[0].1.request.0, net.done[0].1.outcome, net.done[0].1.sends), (2, Outcome::Aborted, 0));
    }

    #[test]
    fn with_every_link_down_ios_wait_and_go_on_when_one_is_back() {
        for retry in [RetryPolicy::Quiesce { wait: Span::us(200) }, RetryPolicy::CrossControllerReset] {
            let mut net = Net::new(host_config(retry), &target_config());
            (0..8).for_each(|request| net.ask(US(request), request, Operation::Write, request, BLOCK));
            net.link_down(US(3), 0);
            net.link_down(US(4), 1);
            net.link_up(US(2_000), 1);
            net.run(Time::ms(20));
            assert_eq!(net.done.len(), 8);
            assert!(net.done.iter().all(|(at, done)| *at > US(2_000) && done.outcome == Outcome::Success));
        }
    }

    #[test]
    fn a_reset_waits_for_what_is_at_the_drive() {
        let mut net = net();
        net.drive_time = Box::new(|_| Span::us(300));
        net.ask(US(0), 1, Operation::Write, 0, BLOCK);
        net.link_down(US(20), 0);
        net.run(Time::ms(10));
        // At the drive at 6 us, done at 306 us; only then the reset is answered, and the write is
        // resent.
        assert_eq!(net.executed.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [US(306), US(308 + 6 + 300)]);
    }

    #[test]
    fn reads_do_not_wait_for_the_reset() {
        let mut net = net();
        net.drive_time = Box::new(|_| Span::us(300));
        net.ask(US(0), 1, Operation::Read, 0, BLOCK);
        net.link_down(US(20), 0);
        net.run(Time::ms(10));
        assert_eq!(net.done_at(1), Some(US(20 + 4 + 300)));
    }

    /// Returns a trail of one hop that was passed at `passed`.
    fn trail(passed: Time) -> Trail {
        let mut bytes = [0; 20];
        (bytes[0], bytes[2]) = (1, 1);
        bytes[16..].copy_from_slice(&((passed.as_ps() / 1_000) as u32).to_le_bytes());
        Trail::decode(&bytes).unwrap()
    }

    #[test]
    fn a_packet_at_the_end_of_its_life_is_taken_and_one_past_it_is_not() {
        let config = TargetConfig { packet_life_max: Some(Span::us(50)), ..target_config() };
        for (passed, executions) in [(US(101), 1), (US(101) - Span::ns(1), 0)] {
            let mut net = Net::new(host_config(RetryPolicy::Naive), &config);
            net.ask(US(0), 1, Operation::Read, 0, BLOCK);
            net.run(US(100));
            let late = net.target.counters().late;
            // A new command that arrives at 151 us.
            let command = net.sent[0].1.clone();
            let tag = san::Tag { command: command.tag.command + 16, ..command.tag };
            net.now = US(150);
            net.deliver(san::Packet { tag, request: base::RequestId(9), trail: trail(passed), ..command });
            net.run(Time::ms(1));
            assert_eq!(net.executions(9), executions);
            assert_eq!(net.target.counters().late - late, 1 - executions as u64);
        }
    }

    #[test]
    fn the_age_of_a_packet_is_right_when_the_time_of_the_header_wraps() {
        let config = TargetConfig { packet_life_max: Some(Span::us(50)), ..target_config() };
        let mut net = Net::new(host_config(RetryPolicy::Naive), &config);
        net.ask(US(0), 1, Operation::Read, 0, BLOCK);
        net.run(US(100));
        let command = net.sent[0].1.clone();
        let tag = san::Tag { command: command.tag.command + 16, ..command.tag };
        // 2^32 ns and 10 us later.
        net.now = Time::ns((1 << 32) + 10_000);
        net.deliver(san::Packet { tag, request: base::RequestId(9), trail: trail(net.now - Span::us(40)), ..command });
        net.run(net.now + Span::ms(1));
        assert_eq!(net.executions(9), 1);
    }
}

mod gimbal {
    use super::*;

    #[test]
    fn a_target_with_gimbal_serves_everything_and_tells_its_credits() {
        let admission = Admission::Gimbal(GimbalConfig { waiting_max: 256, ..GimbalConfig::PUBLISHED });
        let mut net = Net::new(
            san::host::HostConfig {
                queue_entries: 513,
                probe: Span::ms(20),
                timeout: Span::ms(20),
                ..host_config(RetryPolicy::Naive)
            },
            &TargetConfig { admission, queue_entries: 513, flights_max: 1000, ..target_config() },
        );
        for request in 0..400 {
            let operation = if request % 3 == 0 { Operation::Write } else { Operation::Read };
            net.ask(US(request), request, operation, request, BLOCK);
        }
        net.run(Time::ms(100));
        assert_eq!((net.done.len(), net.executed.len()), (400, 400));
        assert!(net.host.credit(0) > 32, "a slot has completed: {}", net.host.credit(0));
        assert!(net.target.gimbal(0).unwrap().rate().target() > 1000 << 20, "a quick drive is underused");
    }
}

/// Returns a generator of pseudo-random numbers from a proptest seed, for delays and losses.
fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut stream = base::Seed(seed).stream("test/net");
    move |bound| stream.below(bound)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// For any losses, delays and link failures: every I/O ends once and successfully, no state
    /// remains, and within one association nothing is done twice.
    #[test]
    fn every_io_ends_exactly_once(
        seed: u64, loss in 0u64..20, ios in prop::collection::vec((0u64..3_000, any::<bool>(), 0u64..6, 1u32..40_000), 1..60),
        failures in prop::collection::vec((0u64..3_000, 0u16..2, 1u64..2_000), 0..4), policy in 0u8..3,
    ) {
        let retry = [RetryPolicy::Naive, RetryPolicy::Quiesce { wait: Span::us(700) }, RetryPolicy::CrossControllerReset][usize::from(policy)];
        // Without a limit the target would keep commands whose host has given up sending their
        // data.
        let target = TargetConfig { command_life_max: Some(Span::ms(3)), ..target_config() };
        let mut net = Net::new(host_config(retry), &target);
        let mut roll = dice(seed);
        net.way = Box::new(move |_, _, _| (roll(100) >= loss).then(|| Span::us(1 + roll(60))));
        let mut roll = dice(!seed);
        net.drive_time = Box::new(move |_| Span::us(5 + roll(200)));
        for (request, (at, is_read, block, bytes)) in ios.iter().enumerate() {
            let operation = if *is_read { Operation::Read } else { Operation::Write };
            net.ask(US(*at), request as u64, operation, *block, *bytes);
        }
        for (at, port, span) in &failures {
            net.link_down(US(*at), *port);
            net.link_up(US(at + span), *port);
        }
        net.run(Time::secs(2));
        let mut ended: Vec<u64> = net.done.iter().map(|(_, done)| done.request.0).collect();
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..ios.len() as u64).collect::<Vec<_>>());
        prop_assert!(net.done.iter().all(|(_, done)| done.outcome == Outcome::Success));
        prop_assert_eq!((net.host.under_way(), net.target.under_way()), (0, 0));
        if net.host.counters().path_failures == 0 {
            let twice = (0..ios.len() as u64).filter(|request| !ios[*request as usize].1 && net.executions(*request) != 1);
            prop_assert_eq!(twice.count(), 0);
        }
        let lanes = net.sent.iter().map(|(_, packet)| Attempt::of_bits(packet.tag.attempt).lane).max();
        prop_assert!(lanes.is_none_or(|lane| lane < 2));
    }
}
