use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn read(ticket: u32, bytes: u32) -> GimbalIo {
    GimbalIo { ticket, kind: IoKind::Read, bytes }
}

fn write(ticket: u32, bytes: u32) -> GimbalIo {
    GimbalIo { ticket, kind: IoKind::Write, bytes }
}

/// Returns everything that may start at `now`.
fn drain(gimbal: &mut Gimbal, now: Time) -> Vec<Started> {
    std::iter::from_fn(|| gimbal.next(now)).collect()
}

mod monitor {
    use super::*;

    /// Creates a monitor whose mean is `mean` and whose threshold is at its upper bound.
    fn with_mean(mean: Span) -> LatencyMonitor {
        let mut monitor = LatencyMonitor::new(&GimbalConfig::PUBLISHED);
        monitor.record(mean);
        monitor
    }

    #[test]
    fn the_first_latency_is_the_mean_and_each_other_counts_half() {
        let mut monitor = with_mean(Span::us(100));
        assert_eq!(monitor.mean(), Some(Span::us(100)));
        monitor.record(Span::us(300));
        assert_eq!(monitor.mean(), Some(Span::us(200)));
        monitor.record(Span::us(0));
        assert_eq!(monitor.mean(), Some(Span::us(100)));
    }

    #[test]
    fn a_mean_at_the_lower_bound_is_underused_and_above_it_is_not() {
        let first = |latency| LatencyMonitor::new(&GimbalConfig::PUBLISHED).record(latency);
        assert_eq!(first(Span::us(250)), Condition::Underused);
        assert_eq!(first(Span::us(250) + Span::ps(1)), Condition::Avoiding);
    }

    #[test]
    fn a_mean_at_the_upper_bound_is_not_overloaded_and_above_it_is() {
        let first = |latency| LatencyMonitor::new(&GimbalConfig::PUBLISHED).record(latency);
        assert_eq!(first(Span::us(1500)), Condition::Avoiding);
        assert_eq!(first(Span::us(1500) + Span::ps(1)), Condition::Overloaded);
    }

    #[test]
    fn the_threshold_falls_by_a_sixteenth_of_its_distance_to_the_mean() {
        let mut monitor = with_mean(Span::us(700));
        assert_eq!(monitor.threshold(), Span::us(1500) - Span::us(50));
        monitor.record(Span::us(700));
        assert_eq!(monitor.threshold(), Span::us(1450) - Span::ns(46_875));
    }

    #[test]
    fn a_mean_over_the_threshold_is_congested_and_raises_it_halfway_to_the_bound() {
        let mut monitor = with_mean(Span::us(700));
        assert_eq!(monitor.record(Span::us(2200)), Condition::Avoiding, "a mean of 1,450 us is at the threshold");
        let mut monitor = with_mean(Span::us(700));
        assert_eq!(monitor.record(Span::us(2201)), Condition::Congested);
        assert_eq!(monitor.threshold(), Span::us(1475));
    }

    #[test]
    fn the_threshold_never_falls_below_the_lower_bound() {
        let mut monitor = with_mean(Span::us(50));
        for _ in 0..200 {
            assert_eq!(monitor.record(Span::us(50)), Condition::Underused);
        }
        assert_eq!(monitor.threshold(), Span::us(250));
    }

    proptest! {
        #[test]
        fn mean_and_threshold_stay_within_what_came_and_the_bounds(latencies in prop::collection::vec(0u64..5_000_000, 1..200)) {
            let mut monitor = LatencyMonitor::new(&GimbalConfig::PUBLISHED);
            let most = Span::ns(*latencies.iter().max().unwrap());
            for latency in latencies {
                let condition = monitor.record(Span::ns(latency));
                prop_assert!(monitor.mean().unwrap() <= most);
                prop_assert!(monitor.threshold() >= Span::us(250) && monitor.threshold() <= Span::us(1500));
                prop_assert_eq!(condition == Condition::Overloaded, monitor.mean().unwrap() > Span::us(1500));
            }
        }
    }
}

mod rate {
    use super::*;

    fn full() -> (RateController, WriteCost) {
        (RateController::new(&GimbalConfig::PUBLISHED), WriteCost::new(&GimbalConfig::PUBLISHED))
    }

    fn empty() -> (RateController, WriteCost) {
        let (mut rate, cost) = full();
        rate.take(IoKind::Read, 256 << 10);
        rate.take(IoKind::Write, 256 << 10);
        (rate, cost)
    }

    #[test]
    fn each_condition_changes_the_rate_as_published() {
        let after = |condition| {
            let (mut rate, _) = full();
            rate.complete(Time::us(1), 4096, condition);
            rate.target()
        };
        assert_eq!(after(Condition::Underused), 1000 * MIB + 8 * 4096);
        assert_eq!(after(Condition::Avoiding), 1000 * MIB + 4096);
        assert_eq!(after(Condition::Congested), 1000 * MIB - 4096);
        assert_eq!(after(Condition::Overloaded), 1000 * MIB - 4096);
    }

    #[test]
    fn overload_empties_both_buckets_and_congestion_does_not() {
        let (mut rate, _) = full();
        rate.complete(Time::us(1), 4096, Condition::Congested);
        assert_eq!((rate.tokens(IoKind::Read), rate.tokens(IoKind::Write)), (256 << 10, 256 << 10));
        rate.complete(Time::us(1), 4096, Condition::Overloaded);
        assert_eq!((rate.tokens(IoKind::Read), rate.tokens(IoKind::Write)), (0, 0));
    }

    #[test]
    fn overload_brings_the_rate_down_to_what_the_drive_completes() {
        let (mut rate, _) = full();
        // 16 MiB in 40 ms: 400 MiB/s.
        for io in 1..=128u64 {
            rate.complete(Time::ZERO + Span::us(312) * io + Span::us(64) * (io / 128), 128 << 10, Condition::Avoiding);
        }
        assert_eq!(rate.completion(), Some(400 * MIB));
        assert_eq!(rate.target(), 1000 * MIB + 16 * MIB);
        rate.complete(Time::us(40_001), 4096, Condition::Overloaded);
        assert_eq!(rate.target(), 400 * MIB - 4096);
    }

    #[test]
    fn a_sample_is_taken_at_16_mib_and_not_a_byte_sooner() {
        let (mut rate, _) = full();
        rate.complete(Time::ms(10), (16 << 20) - 1, Condition::Avoiding);
        assert_eq!(rate.completion(), None);
        rate.complete(Time::ms(16), 1, Condition::Avoiding);
        assert_eq!(rate.completion(), Some(1000 * MIB));
    }

    #[test]
    fn the_rate_stays_between_its_bounds() {
        let (mut rate, _) = full();
        (0..300).for_each(|_| rate.complete(Time::us(1), 16 << 20, Condition::Congested));
        assert_eq!(rate.target(), 50 * MIB);
        (0..300).for_each(|_| rate.complete(Time::us(1), 16 << 20, Condition::Underused));
        assert_eq!(rate.target(), 4096 * MIB);
    }

    #[test]
    fn tokens_are_shared_by_the_write_cost() {
        let (mut rate, cost) = empty();
        // 1000 MiB/s for 100 us: 104,857 bytes, nine tenths of them for reads.
        rate.refill(Time::us(100), cost);
        assert_eq!((rate.tokens(IoKind::Read), rate.tokens(IoKind::Write)), (94_371, 10_486));
    }

    #[test]
    fn what_overflows_one_bucket_goes_to_the_other() {
        let (mut rate, cost) = full();
        rate.take(IoKind::Write, 200 << 10);
        rate.refill(Time::us(100), cost);
        assert_eq!(rate.tokens(IoKind::Read), 256 << 10);
        assert_eq!(rate.tokens(IoKind::Write), (56 << 10) + 104_857);
        let (mut rate, cost) = full();
        rate.take(IoKind::Read, 200 << 10);
        rate.refill(Time::us(100), cost);
        assert_eq!(rate.tokens(IoKind::Read), (56 << 10) + 104_857);
    }

    #[test]
    fn no_fraction_of_a_byte_is_lost_in_small_steps() {
        let (mut once, cost) = empty();
        let mut often = once;
        once.refill(Time::us(100), cost);
        (1..=100_000).for_each(|step| often.refill(Time::ns(step), cost));
        let sum = |rate: &RateController| rate.tokens(IoKind::Read) + rate.tokens(IoKind::Write);
        assert_eq!(sum(&often), sum(&once));
    }

    #[test]
    fn a_bucket_allows_what_it_holds_and_not_a_byte_more() {
        let (mut rate, _) = full();
        rate.take(IoKind::Read, 252 << 10);
        assert!(rate.allows(IoKind::Read, 4096));
        assert!(!rate.allows(IoKind::Read, 4097));
    }

    #[test]
    fn an_io_larger_than_a_bucket_needs_a_full_one_and_owes_the_rest() {
        let (mut rate, cost) = full();
        assert!(rate.allows(IoKind::Read, 1 << 20));
        rate.take(IoKind::Read, 1 << 20);
        assert_eq!(rate.tokens(IoKind::Read), 0);
        assert!(!rate.allows(IoKind::Read, 1));
        // 768 KiB are owed; the write bucket is full, so all tokens go to reads.
        let wait = rate.wait_for(IoKind::Read, 4096, cost);
        let exact = Span::ps((772u128 * 1024 * 1_000_000_000_000 / (1000 * MIB) as u128) as u64);
        assert!(wait >= exact && wait <= exact + Span::ns(2), "{wait:?} against {exact:?}");
    }

    #[test]
    fn time_without_end_fills_both_buckets_and_no_more() {
        let (mut rate, cost) = empty();
        rate.refill(Time::secs(100_000), cost);
        assert_eq!((rate.tokens(IoKind::Read), rate.tokens(IoKind::Write)), (256 << 10, 256 << 10));
    }

    proptest! {
        /// The wait suffices, and no shorter one would.
        #[test]
        fn the_wait_for_tokens_is_the_time_until_they_are_there(
            reads in 0u32..=256 << 10, writes in 0u32..=256 << 10, bytes in 1u32..600_000, is_write: bool, quick in 0u32..20,
        ) {
            let (mut rate, mut cost) = full();
            for period in 1..=u64::from(quick) {
                cost.record(Time::ms(100 * period), IoKind::Write, Span::us(20));
            }
            rate.take(IoKind::Read, reads);
            rate.take(IoKind::Write, writes);
            let kind = if is_write { IoKind::Write } else { IoKind::Read };
            prop_assume!(!rate.allows(kind, bytes));
            let wait = rate.wait_for(kind, bytes, cost);
            let (mut late, mut early) = (rate, rate);
            late.refill(Time::ZERO + wait, cost);
            prop_assert!(late.allows(kind, bytes));
            if wait > Span::ns(30) {
                early.refill(Time::ZERO + (wait - Span::ns(30)), cost);
                prop_assert!(!early.allows(kind, bytes));
            }
        }

        #[test]
        fn tokens_never_exceed_the_buckets_nor_what_was_earned(steps in prop::collection::vec((0u64..300, 0u32..200_000, any::<bool>()), 1..100)) {
            let (mut rate, cost) = full();
            let (mut now, mut taken) = (Time::ZERO, 0u64);
            for (gap, bytes, is_write) in steps {
                now += Span::us(gap);
                rate.refill(now, cost);
                let kind = if is_write { IoKind::Write } else { IoKind::Read };
                if bytes > 0 && rate.allows(kind, bytes) {
                    rate.take(kind, bytes);
                    taken += u64::from(bytes);
                }
                prop_assert!(rate.tokens(IoKind::Read) <= 256 << 10 && rate.tokens(IoKind::Write) <= 256 << 10);
                let earned = (512 << 10) + u128::from(now.as_ps()) * u128::from(rate.target()) / 1_000_000_000_000;
                prop_assert!(u128::from(taken) <= earned);
            }
        }
    }
}

mod cost {
    use super::*;

    fn after(latencies: &[Span]) -> f64 {
        let mut cost = WriteCost::new(&GimbalConfig::PUBLISHED);
        for (period, latency) in latencies.iter().enumerate() {
            cost.record(Time::ms(100 * (period as u64 + 1)), IoKind::Write, *latency);
        }
        cost.as_f64()
    }

    #[test]
    fn quick_writes_cost_half_less_each_period_down_to_one() {
        assert_eq!(after(&[]), 9.0);
        assert_eq!(after(&[Span::us(250)]), 8.5);
        assert_eq!(after(&[Span::us(250); 16]), 1.0);
        assert_eq!(after(&[Span::us(250); 40]), 1.0);
    }

    #[test]
    fn slow_writes_cost_halfway_to_nine() {
        let quick = [Span::us(250); 16];
        assert_eq!(after(&[&quick[..], &[Span::us(251)]].concat()), 5.0);
        assert_eq!(after(&[&quick[..], &[Span::us(251); 2]].concat()), 7.0);
    }

    #[test]
    fn the_mean_of_the_period_decides() {
        let mut cost = WriteCost::new(&GimbalConfig::PUBLISHED);
        // 100, 400, 249: a mean of 249.67 us is fast, whatever the single latencies.
        for (at, latency) in [(10, 100), (20, 400), (100, 249)] {
            cost.record(Time::ms(at), IoKind::Write, Span::us(latency));
        }
        assert_eq!(cost.as_f64(), 8.5);
    }

    #[test]
    fn a_period_without_writes_says_nothing() {
        let mut cost = WriteCost::new(&GimbalConfig::PUBLISHED);
        cost.record(Time::ms(100), IoKind::Read, Span::us(20));
        assert_eq!(cost.as_f64(), 9.0);
    }

    /// Returns the cost after periods of 100 ms, given the latency of each period's writes in
    /// microseconds, and whether it has reads.
    fn released(periods: &[(Option<u64>, bool)]) -> f64 {
        let mut cost = WriteCost::new(&GimbalConfig { cost_is_as_released: true, ..GimbalConfig::PUBLISHED });
        for (place, (write, reads)) in periods.iter().enumerate() {
            let (within, end) = (Time::ms(100 * place as u64 + 50), Time::ms(100 * (place as u64 + 1)));
            if let Some(latency) = write {
                cost.record(within, IoKind::Write, Span::us(*latency));
            }
            let last = if *reads { IoKind::Read } else { IoKind::Write };
            if *reads || write.is_some() {
                cost.record(end, last, Span::us(write.unwrap_or(20)));
            }
        }
        cost.as_f64()
    }

    #[test]
    fn as_released_slow_writes_without_reads_cost_less_until_the_drive_is_overloaded() {
        let quick = [(Some(200), true); 8];
        assert_eq!(released(&quick), 5.0);
        let then = |last| released(&[&quick[..], &[last]].concat());
        assert_eq!(then((Some(300), true)), 7.0);
        assert_eq!(then((Some(300), false)), 4.5);
        assert_eq!(then((Some(1_501), false)), 7.0);
    }

    #[test]
    fn as_released_a_period_without_writes_costs_less() {
        assert_eq!(released(&[(None, true)]), 8.5);
        assert_eq!(released(&[(Some(200), true), (None, false), (None, false), (None, true)]), 7.0);
    }

    #[test]
    fn nothing_changes_before_the_period_is_over() {
        let mut cost = WriteCost::new(&GimbalConfig::PUBLISHED);
        cost.record(Time::ms(99), IoKind::Write, Span::us(20));
        assert_eq!(cost.as_f64(), 9.0);
    }

    #[test]
    fn a_write_weighs_its_cost() {
        let cost = WriteCost::new(&GimbalConfig::PUBLISHED);
        assert_eq!(cost.weight(IoKind::Read, 4096), 4096);
        assert_eq!(cost.weight(IoKind::Write, 4096), 9 * 4096);
    }
}

mod slots {
    use super::*;

    /// Creates a switch that never lacks tokens.
    fn rich(tenants: usize) -> Gimbal {
        Gimbal::new(GimbalConfig { bucket_max: Bytes::kib(1 << 20), ..GimbalConfig::PUBLISHED }, tenants)
    }

    #[test]
    fn a_lone_tenant_has_eight_slots_of_128_kib() {
        let mut gimbal = rich(1);
        (0..300).for_each(|ticket| gimbal.submit(0, read(ticket, 4096)).unwrap());
        assert_eq!(drain(&mut gimbal, Time::ZERO).len(), 8 * 32);
        assert_eq!(gimbal.open_slots(0), 8);
    }

    #[test]
    fn a_written_byte_fills_a_slot_by_its_cost() {
        let mut gimbal = rich(1);
        (0..300).for_each(|ticket| gimbal.submit(0, write(ticket, 4096)).unwrap());
        // 9 x 4 KiB each: the fourth I/O reaches 128 KiB.
        assert_eq!(drain(&mut gimbal, Time::ZERO).len(), 8 * 4);
    }

    #[test]
    fn tenants_share_the_slots_and_each_has_at_least_one() {
        for (tenants, slots) in [(2, 4), (3, 2), (8, 1), (20, 1)] {
            let mut gimbal = rich(tenants);
            for tenant in 0..tenants as u32 {
                (0..300).for_each(|ticket| gimbal.submit(tenant, read(ticket, 4096)).unwrap());
            }
            drain(&mut gimbal, Time::ZERO);
            for tenant in 0..tenants as u32 {
                assert_eq!(gimbal.open_slots(tenant), slots, "{tenants} tenants");
            }
        }
    }

    #[test]
    fn a_tenant_that_waits_when_others_come_opens_no_slot_beyond_its_new_share() {
        let mut gimbal = rich(8);
        (0..40).for_each(|ticket| gimbal.submit(0, read(ticket, 128 << 10)).unwrap());
        (0..3).for_each(|_| assert!(gimbal.next(Time::ZERO).is_some()));
        (1..8).for_each(|tenant| gimbal.submit(tenant, read(0, 4096)).unwrap());
        drain(&mut gimbal, Time::ZERO);
        assert_eq!(gimbal.open_slots(0), 3);
        assert_eq!(gimbal.open_slots(7), 1);
    }

    #[test]
    fn a_slot_is_free_when_the_last_of_its_ios_is_done() {
        let mut gimbal = rich(1);
        (0..300).for_each(|ticket| gimbal.submit(0, read(ticket, 4096)).unwrap());
        let started = drain(&mut gimbal, Time::ZERO);
        let (last, others) = started[..32].split_last().unwrap();
        for io in others {
            gimbal.complete(Time::us(90), *io, Span::us(90));
        }
        assert_eq!(gimbal.next(Time::us(90)), None);
        gimbal.complete(Time::us(90), *last, Span::us(90));
        assert_eq!(drain(&mut gimbal, Time::us(90)).len(), 32);
    }

    #[test]
    fn the_credit_is_32_and_then_the_slots_times_the_ios_of_the_last_one() {
        let mut gimbal = rich(1);
        assert_eq!(gimbal.credit(0), 32);
        (0..300).for_each(|ticket| gimbal.submit(0, read(ticket, 32 << 10)).unwrap());
        let started = drain(&mut gimbal, Time::ZERO);
        let credits: Vec<u32> =
            started[..4].iter().map(|io| gimbal.complete(Time::us(90), *io, Span::us(90))).collect();
        assert_eq!(credits, [32, 32, 32, 8 * 4]);
    }

    #[test]
    fn a_failed_drive_gives_slots_back_and_teaches_nothing() {
        let mut gimbal = rich(1);
        (0..40).for_each(|ticket| gimbal.submit(0, read(ticket, 4096)).unwrap());
        let before = *gimbal.rate();
        let started = drain(&mut gimbal, Time::ZERO);
        for io in started {
            gimbal.abandon(io);
        }
        assert_eq!(gimbal.rate().target(), before.target());
        assert_eq!(gimbal.open_slots(0), 1, "the slot that is not full yet");
    }

    #[test]
    fn a_full_queue_refuses_and_a_withdrawn_io_makes_room() {
        let mut gimbal = Gimbal::new(GimbalConfig { waiting_max: 2, slots: 1, ..GimbalConfig::PUBLISHED }, 1);
        gimbal.submit(0, read(0, 128 << 10)).unwrap();
        assert_eq!(drain(&mut gimbal, Time::ZERO).len(), 1);
        gimbal.submit(0, read(1, 4096)).unwrap();
        gimbal.submit(0, read(2, 4096)).unwrap();
        assert_eq!(gimbal.submit(0, read(3, 4096)), Err(TenantFull { tenant: 0, waiting: 2 }));
        assert!(gimbal.withdraw(0, 1));
        assert!(!gimbal.withdraw(0, 1));
        assert_eq!(gimbal.submit(0, read(3, 4096)), Ok(()));
        assert_eq!(gimbal.waiting(), 2);
    }
}

mod turns {
    use super::*;

    /// Simulates a drive that serves 4 I/Os at a time, each in a fixed time. Returns the bytes that
    /// it served for each tenant within `span`.
    fn serve(gimbal: &mut Gimbal, queues: &[GimbalIo], service: Span, span: Span) -> Vec<u64> {
        let mut served = vec![0; queues.len()];
        let mut at_drive: VecDeque<(Time, Started)> = VecDeque::new();
        let mut now = Time::ZERO;
        let depth = 512;
        for (tenant, io) in queues.iter().enumerate() {
            (0..depth).for_each(|_| gimbal.submit(tenant as u32, *io).unwrap());
        }
        while now < Time::ZERO + span {
            while let Some(started) = gimbal.next(now) {
                let free = at_drive.iter().rev().nth(3).map_or(now, |(done, _)| (*done).max(now));
                at_drive.push_back((free + service, started));
            }
            let done = at_drive.front().map(|(done, _)| *done);
            let Some(next) = [done, gimbal.next_wakeup()].into_iter().flatten().min() else { break };
            now = now.max(next);
            while let Some(&(_, started)) = at_drive.front().filter(|(done, _)| *done <= now) {
                at_drive.pop_front();
                gimbal.complete(now, started, service);
                served[started.tenant as usize] += u64::from(started.io.bytes);
                gimbal.submit(started.tenant, queues[started.tenant as usize]).unwrap();
            }
        }
        served
    }

    #[test]
    fn readers_of_small_and_of_large_blocks_get_the_same_bytes() {
        let mut gimbal = Gimbal::new(GimbalConfig::PUBLISHED, 2);
        let served = serve(&mut gimbal, &[read(0, 4096), read(0, 128 << 10)], Span::us(100), Span::ms(60));
        let ratio = served[0] as f64 / served[1] as f64;
        assert!((0.8..1.25).contains(&ratio), "{served:?}");
    }

    #[test]
    fn equal_tenants_get_equal_shares() {
        let mut gimbal = Gimbal::new(GimbalConfig::PUBLISHED, 7);
        let served = serve(&mut gimbal, &[read(0, 32 << 10); 7], Span::us(100), Span::ms(60));
        let (least, most) = (*served.iter().min().unwrap(), *served.iter().max().unwrap());
        assert!(most - least <= 2 * (128 << 10), "{served:?}");
    }

    #[test]
    fn a_reader_gets_the_write_cost_times_a_writer() {
        // Writes are slow, so their cost stays at nine.
        let mut gimbal = Gimbal::new(GimbalConfig::PUBLISHED, 2);
        let served = serve(&mut gimbal, &[read(0, 16 << 10), write(0, 16 << 10)], Span::us(260), Span::ms(300));
        let ratio = served[0] as f64 / served[1] as f64;
        assert!((7.0..11.0).contains(&ratio), "{served:?}");
    }

    #[test]
    fn a_large_write_is_not_starved_by_small_ones() {
        let mut gimbal = Gimbal::new(
            GimbalConfig {
                rate_max: Rate::bps(60 * MIB * 8),
                rate_initial: Rate::bps(60 * MIB * 8),
                ..GimbalConfig::PUBLISHED
            },
            9,
        );
        let mut queues = vec![write(0, 4096); 8];
        queues.push(write(0, 128 << 10));
        let served = serve(&mut gimbal, &queues, Span::us(100), Span::ms(400));
        assert!(served[8] * 12 >= served.iter().sum(), "{served:?}");
    }

    #[test]
    fn a_want_of_tokens_for_writes_does_not_hold_back_reads() {
        let mut gimbal = Gimbal::new(GimbalConfig::PUBLISHED, 2);
        (0..3).for_each(|ticket| gimbal.submit(0, write(ticket, 100 << 10)).unwrap());
        (0..4).for_each(|ticket| gimbal.submit(1, read(ticket, 4096)).unwrap());
        let started = drain(&mut gimbal, Time::ZERO);
        let of = |tenant| started.iter().filter(|io| io.tenant == tenant).count();
        assert_eq!((of(0), of(1)), (2, 4), "256 KiB of tokens are two writes and a half");
        assert!(gimbal.next_wakeup().is_some());
    }

    proptest! {
        /// For any input: every submitted I/O starts once, nothing waits while tokens, slots and
        /// turns allow it, and waiting ends.
        #[test]
        fn everything_is_started_once_and_the_switch_never_idles_without_reason(
            ios in prop::collection::vec((0u32..5, any::<bool>(), 1u32..300_000), 1..120),
            latencies in prop::collection::vec(1u64..4_000, 16),
        ) {
            let mut gimbal = Gimbal::new(GimbalConfig::PUBLISHED, 5);
            for (ticket, (tenant, is_write, bytes)) in ios.iter().enumerate() {
                let kind = if *is_write { IoKind::Write } else { IoKind::Read };
                gimbal.submit(*tenant, GimbalIo { ticket: ticket as u32, kind, bytes: *bytes }).unwrap();
            }
            let mut seen = vec![false; ios.len()];
            let mut at_drive: Vec<(Time, Time, Started)> = Vec::new();
            let (mut now, mut steps) = (Time::ZERO, 0);
            while gimbal.waiting() > 0 || !at_drive.is_empty() {
                while let Some(started) = gimbal.next(now) {
                    prop_assert!(!std::mem::replace(&mut seen[started.io.ticket as usize], true), "started twice");
                    let latency = Span::us(latencies[started.io.ticket as usize % latencies.len()]);
                    at_drive.push((now + latency, now, started));
                }
                let done = at_drive.iter().map(|(done, ..)| *done).min();
                // Without work at the drive only tokens can be missing, and then there is a wake-up
                // for them.
                prop_assert!(done.is_some() || gimbal.next_wakeup().is_some());
                now = [done, gimbal.next_wakeup()].into_iter().flatten().min().unwrap().max(now);
                while let Some(place) = at_drive.iter().position(|(done, ..)| *done <= now) {
                    let (_, begun, started) = at_drive.swap_remove(place);
                    prop_assert!(gimbal.complete(now, started, now - begun) >= 1);
                }
                steps += 1;
                prop_assert!(steps < 10_000, "no end");
            }
            prop_assert!(seen.iter().all(|seen| *seen));
        }
    }
}
