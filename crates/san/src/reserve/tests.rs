//! Tests of bookings, releases and the policer.

use super::*;
use crate::testing::{read_data, reservation};
use base::Time;
use proptest::prelude::*;
use transport::TokenBucket;

const KIB_4: u32 = 4 << 10;
/// Larger than any packet here.
const ROOM: base::Bytes = base::Bytes::kib(16);
const KIB_128: u32 = 128 << 10;

fn gbps(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 1e9
}

/// Buckets that all fill at the same rate, independent of bookings.
struct Equal {
    fill: Rate,
    buckets: Vec<TokenBucket>,
}

impl Equal {
    fn new(fill: Rate) -> Equal {
        Equal { fill, buckets: vec![TokenBucket::new(reservation().burst); 4] }
    }

    fn offer(&mut self, policer: &mut Policer, now: Time, packet: &crate::Packet) -> Held {
        let class = ClassId(packet.tag.session.0);
        policer.offer(now, class, self.bucket(now, class), packet, ROOM)
    }
}

impl Buckets for Equal {
    fn bucket(&mut self, now: Time, class: ClassId) -> &mut TokenBucket {
        let bucket = &mut self.buckets[class.index()];
        bucket.set_rate(now, self.fill);
        bucket
    }
}

fn release(session: u32, bytes: u32, booked_at: Time) -> Release {
    Release { class: ClassId(session), bytes, booked_at }
}

#[test]
fn reads_book_their_estimate_until_the_port_is_full_and_a_response_makes_room() {
    let config = reservation();
    let mut port = Bookings::new(&config, Rate::gbps(25));
    let book = |port: &mut Bookings, bytes| port.book(&config, Time::ZERO, ClassId(1), bytes);
    assert!(book(&mut port, KIB_128) && book(&mut port, KIB_128));
    assert!(!book(&mut port, KIB_128), "30 of 25 Gb/s");
    assert!((0..5).all(|_| book(&mut port, KIB_4)), "what is left is filled");
    assert!(!book(&mut port, KIB_4));
    assert_eq!(port.booked(), Rate::gbps(25));
    port.release(&config, Time::us(1), release(1, KIB_128, Time::ZERO));
    assert_eq!(port.booked(), Rate::gbps(15));
    assert!(book(&mut port, KIB_128));
}

#[test]
fn over_commitment_follows_its_steps_and_all_of_it_comes_back() {
    let step = |headroom_min, factor| OverCommitment { headroom_min, factor };
    let config = ReservationConfig { over_commitment: vec![step(512, 1024), step(0, 256)], ..reservation() };
    let mut port = Bookings::new(&config, Rate::gbps(40));
    let booked: Vec<f64> = (0..5)
        .map(|_| {
            assert!(port.book(&config, Time::ZERO, ClassId(0), KIB_128));
            gbps(port.booked())
        })
        .collect();
    assert_eq!(booked, [10.0, 20.0, 30.0, 32.5, 35.0], "half free still books whole, less than half a quarter");
    assert_eq!(port.fill_rate(&config, ClassId(0)), port.booked());
    let estimates = ReservationConfig { fills_at_booked: false, ..config.clone() };
    let fill = gbps(port.fill_rate(&estimates, ClassId(0)));
    assert!((fill - 50.0 * 50.0 / 35.0).abs() < 0.1, "50 Gb/s over a mean factor of 35 / 50: {fill}");
    (0..5).for_each(|_| port.release(&config, Time::us(1), release(0, KIB_128, Time::ZERO)));
    assert_eq!((port.booked(), port.fill_rate(&config, ClassId(0))), (Rate::bps(0), Rate::bps(0)));
}

#[test]
fn a_port_without_headroom_is_over_subscribed_and_a_conservative_one_doubles_its_factor() {
    let step = |headroom_min, factor| OverCommitment { headroom_min, factor };
    let over_commitment = vec![step(1, 128), step(0, 256)];
    let book_three = |is_conservative, limit_gbps| {
        let config = ReservationConfig { over_commitment: over_commitment.clone(), is_conservative, ..reservation() };
        let mut port = Bookings::new(&config, Rate::gbps(limit_gbps));
        let booked = [0, 1, 2].map(|_| {
            assert!(port.book(&config, Time::ZERO, ClassId(0), KIB_128));
            gbps(port.booked())
        });
        (booked, port.is_over_subscribed())
    };
    assert_eq!(book_three(false, 20), ([1.25, 2.5, 5.0], true));
    assert_eq!(book_three(true, 20), ([1.25, 2.5, 7.5], true));
    assert_eq!(book_three(true, 40), ([1.25, 2.5, 3.75], false), "there is headroom");
}

#[test]
fn an_answer_may_take_its_estimate_over_the_factor_and_no_less_where_that_is_one() {
    let fill = |factor, fills_at_booked| {
        let over_commitment = vec![OverCommitment { headroom_min: 0, factor }];
        let config = ReservationConfig { over_commitment, fills_at_booked, ..reservation() };
        let mut port = Bookings::new(&config, Rate::gbps(100));
        assert!(port.book(&config, Time::ZERO, ClassId(0), KIB_128));
        gbps(port.fill_rate(&config, ClassId(0)))
    };
    assert_eq!([1024, 512, 128].map(|factor| fill(factor, true)), [10.0, 5.0, 1.25]);
    let over = [1024, 512, 128].map(|factor| fill(factor, false));
    for (fill, expected) in over.into_iter().zip([10.0, 20.0, 80.0]) {
        assert!((fill - expected).abs() < 1e-5 * expected, "{fill} Gb/s");
    }
}

#[test]
fn a_read_larger_than_the_port_still_passes_an_idle_one() {
    let config = reservation();
    let mut port = Bookings::new(&config, Rate::gbps(5));
    assert!(port.book(&config, Time::ZERO, ClassId(0), KIB_128));
    assert_eq!(port.booked(), Rate::gbps(5));
    assert!(!port.book(&config, Time::ZERO, ClassId(0), KIB_4));
}

#[test]
fn bookings_whose_response_never_comes_lapse_and_a_late_response_takes_nothing_of_others() {
    let config = reservation();
    let mut port = Bookings::new(&config, Rate::gbps(25));
    assert!(port.book(&config, Time::ms(9), ClassId(0), KIB_128));
    assert!(port.book(&config, Time::ms(19), ClassId(0), KIB_4));
    assert_eq!(port.booked(), Rate::gbps(11), "still in the span before");
    assert!(port.book(&config, Time::ms(20), ClassId(1), KIB_4));
    assert_eq!(port.booked(), Rate::gbps(2), "the first has lapsed");
    let at = |now| port.booked_at(&config, now);
    assert_eq!([Time::ms(29), Time::ms(30), Time::ms(40)].map(at), [Rate::gbps(2), Rate::gbps(1), Rate::bps(0)]);
    port.release(&config, Time::ms(21), release(0, KIB_128, Time::ms(9)));
    assert_eq!(port.booked(), Rate::gbps(2));
    assert!(port.book(&config, Time::secs(1), ClassId(1), KIB_4));
    assert_eq!(port.booked(), Rate::gbps(1));
}

#[test]
fn a_failure_revokes_all_and_late_responses_change_nothing() {
    let config = reservation();
    let mut port = Bookings::new(&config, Rate::gbps(25));
    assert!(port.book(&config, Time::ZERO, ClassId(0), KIB_128));
    port.revoke();
    assert_eq!((port.booked(), port.fill_rate(&config, ClassId(0))), (Rate::bps(0), Rate::bps(0)));
    port.release(&config, Time::us(1), release(0, KIB_128, Time::ZERO));
    assert_eq!(port.booked(), Rate::bps(0));
}

#[test]
fn who_has_booked_too_little_waits_and_nobody_else() {
    let (mut policer, mut buckets) = (Policer::new(), Equal::new(Rate::gbps(1)));
    let packet = read_data(1, 9_000);
    assert_eq!(buckets.offer(&mut policer, Time::ZERO, &packet), Held::No, "the burst");
    assert_eq!(buckets.offer(&mut policer, Time::ZERO, &packet), Held::Yes);
    assert_eq!(buckets.offer(&mut policer, Time::ZERO, &read_data(1, 100)), Held::Yes, "nobody overtakes its session");
    assert_eq!(buckets.offer(&mut policer, Time::ZERO, &read_data(2, 9_000)), Held::No, "another session");
    let mut unbooked = Equal::new(Rate::bps(0));
    assert_eq!(unbooked.offer(&mut policer, Time::ZERO, &read_data(3, 9_000)), Held::No, "nothing booked: no control");
    let due = policer.next_due().expect("one waits");
    let expected = Rate::gbps(1).span_of(Bytes::new(9_000));
    assert!(due.saturating_since(Time::ZERO + expected) < base::Span::ns(1) && due >= Time::ZERO + expected);
    assert_eq!(policer.release(due - base::Span::ns(1), ROOM, &mut buckets), Released::Nothing);
    assert_eq!(policer.release(due, ROOM, &mut buckets), Released::Packet(packet));
    assert_eq!((policer.release(due, ROOM, &mut buckets), policer.held()), (Released::Nothing, 1));
}

#[test]
fn what_waits_leaves_at_once_when_its_booking_has_lapsed_and_sooner_when_more_is_booked() {
    let (mut policer, mut buckets) = (Policer::new(), Equal::new(Rate::gbps(1)));
    for _ in 0..3 {
        buckets.offer(&mut policer, Time::ZERO, &read_data(1, 9_000));
    }
    buckets.fill = Rate::gbps(9);
    policer.refill(Time::ZERO, ClassId(1), buckets.bucket(Time::ZERO, ClassId(1)));
    let due = policer.next_due().expect("two wait");
    assert!(due <= Time::us(8) + base::Span::ns(1));
    assert!(matches!(policer.release(due, ROOM, &mut buckets), Released::Packet(_)));
    buckets.fill = Rate::bps(0);
    policer.refill(due, ClassId(1), buckets.bucket(due, ClassId(1)));
    assert!(matches!(policer.release(due, ROOM, &mut buckets), Released::Packet(_)));
    assert_eq!((policer.held(), policer.release(Time::secs(1), ROOM, &mut buckets)), (0, Released::Nothing));
}

proptest! {
    #[test]
    fn the_sum_never_passes_the_limit_and_everything_given_back_leaves_nothing(
        ios in prop::collection::vec((0u32..5, 0u32..200_000, 0u64..200), 1..80), quarter in any::<bool>(),
    ) {
        let over = OverCommitment { headroom_min: if quarter { 900 } else { 300 }, factor: 700 };
        let rest = OverCommitment { headroom_min: 0, factor: 100 };
        let config = ReservationConfig { over_commitment: vec![over, rest], classes: 3, ..reservation() };
        let mut port = Bookings::new(&config, Rate::gbps(60));
        let (mut now, mut open) = (Time::ZERO, Vec::new());
        for (session, bytes, gap_us) in ios {
            now += base::Span::us(gap_us);
            if port.book(&config, now, ClassId(session % 3), bytes) {
                open.push(release(session % 3, bytes, now));
            } else if let Some(oldest) = open.first().copied() {
                open.remove(0);
                port.release(&config, now, oldest);
            }
            prop_assert!(port.booked() <= Rate::gbps(60));
            let fills: u64 = (0..3).map(|class| port.fill_rate(&config, ClassId(class)).as_bps()).sum();
            prop_assert_eq!(fills, port.booked().as_bps());
        }
        open.drain(..).for_each(|oldest| port.release(&config, now, oldest));
        prop_assert!(port.booked() < Rate::bps(1), "left: {:?}", port.booked());
    }

    #[test]
    fn a_session_gets_what_it_booked_in_order_and_loses_nothing(
        frames in prop::collection::vec((0u32..3, 64u32..9_000, 0u64..3_000), 1..100),
    ) {
        let fill = Rate::gbps(4);
        let (mut policer, mut buckets) = (Policer::new(), Equal::new(fill));
        let (mut now, mut left) = (Time::ZERO, vec![Vec::new(); 3]);
        let mut passed = |at: Time, packet: &crate::Packet| left[packet.tag.session.index()].push((at, packet.payload, packet.frame));
        for (number, (session, frame, gap_ns)) in frames.iter().enumerate() {
            let arrival = now + base::Span::ns(*gap_ns);
            while let Some(due) = policer.next_due().filter(|due| *due <= arrival) {
                while let Released::Packet(packet) = policer.release(due, ROOM, &mut buckets) {
                    passed(due, &packet);
                }
            }
            now = arrival;
            let packet = crate::Packet { payload: number as u32, ..read_data(*session, *frame) };
            if buckets.offer(&mut policer, now, &packet) == Held::No {
                passed(now, &packet);
            }
        }
        while let Some(due) = policer.next_due() {
            while let Released::Packet(packet) = policer.release(due, ROOM, &mut buckets) {
                passed(due, &packet);
            }
        }
        prop_assert_eq!(left.iter().map(Vec::len).sum::<usize>(), frames.len());
        for session in left {
            prop_assert!(session.is_sorted_by_key(|(_, number, _)| *number));
            let mut sum = 0;
            for (at, _, frame) in session {
                sum += u64::from(frame);
                prop_assert!(sum <= 9_001 + fill.bytes_in(at - Time::ZERO).count());
            }
        }
    }
}

/// A read of 128 KiB books 10 Gb/s: without a control plane its bucket fills so at once, with one
/// of 100 us from 100 us after the booking until 100 us after the release.
#[test]
fn a_control_plane_installs_rates_a_delay_after_they_were_booked() {
    let config = ReservationConfig { control_delay: Span::us(100), ..reservation() };
    let mut port = Bookings::new(&config, Rate::gbps(25));
    let fills = |port: &mut Bookings, now: Time| {
        while port.install(&config, now).is_some() {}
        port.bucket(&config, now, ClassId(1)).fills()
    };
    assert!(port.book(&config, Time::ZERO, ClassId(1), KIB_128));
    let place = port.meet(&config, ClassId(1));
    port.request(&config, Time::ZERO, ClassId(1), place);
    assert_eq!(port.booked(), Rate::gbps(10), "admission follows at once");
    assert_eq!(port.next_install(), Some(Time::us(100)));
    assert!(!fills(&mut port, Time::us(99)) && fills(&mut port, Time::us(100)));
    assert!(port.bucket(&config, Time::us(100), ClassId(1)).take(Time::us(100), config.burst));
    let level = port.bucket(&config, Time::us(102), ClassId(1)).level(Time::us(102));
    // 2 us of 10 Gb/s, rounded down.
    assert!((2_499..=2_500).contains(&level.count()), "{level}");
    port.release(&config, Time::us(150), release(1, KIB_128, Time::ZERO));
    port.request(&config, Time::us(150), ClassId(1), place);
    assert!(fills(&mut port, Time::us(249)) && !fills(&mut port, Time::us(250)));
    assert_eq!(port.next_install(), None);
}
