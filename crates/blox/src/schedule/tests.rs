//! Each scheduler against what its rules say in closed form, and coordination against sorting again
//! at every dispatch.

use super::*;
use proptest::prelude::*;

const FIFO: Policy = Policy::Fifo;
/// The paper's plain targets (4.5.1).
const DEADLINE: Policy = Policy::Deadline { read: Span::us(500), write: Span::us(1_750) };
const KYBER: Policy = Policy::Kyber { read: READ_TARGET, write: WRITE_TARGET };
const READ_TARGET: Span = Span::us(750);
const WRITE_TARGET: Span = Span::us(3_000);

fn plain(policy: Policy) -> Scheduler {
    Scheduler::new(SchedulerConfig { policy, coordinated: false })
}

fn coordinated(policy: Policy) -> Scheduler {
    Scheduler::new(SchedulerConfig { policy, coordinated: true })
}

/// A job for the page with its own number, with `latency` in the network.
fn job(id: u32, kind: JobKind, arrived: Time, latency: Span) -> Job {
    Job {
        id: JobId(id),
        kind,
        page: Page(u64::from(id)),
        key: SchedulingKey::new(arrived, latency, Span::ZERO),
        arrived,
    }
}

fn push_all(scheduler: &mut Scheduler, now: Time, kind: JobKind, ids: impl IntoIterator<Item = u32>) {
    for id in ids {
        scheduler.push(now, job(id, kind, now, Span::ZERO));
    }
}

fn pop_all(scheduler: &mut Scheduler, now: Time) -> Vec<u32> {
    std::iter::from_fn(|| scheduler.pop(now)).map(|job| job.id.0).collect()
}

fn kinds(scheduler: &mut Scheduler, now: Time) -> Vec<JobKind> {
    std::iter::from_fn(|| scheduler.pop(now)).map(|job| job.kind).collect()
}

fn runs(kinds: &[JobKind]) -> Vec<(JobKind, usize)> {
    kinds.chunk_by(|first, second| first == second).map(|run| (run[0], run.len())).collect()
}

mod keys {
    use super::*;

    #[test]
    fn priority_is_network_plus_storage_plus_predicted_time() {
        let key = SchedulingKey::new(Time::us(100), Span::us(40), Span::us(7));
        assert_eq!(key.priority(Time::us(100)), Span::us(47));
        assert_eq!(key.priority(Time::us(160)), Span::us(107));
    }

    #[test]
    fn the_largest_latency_of_a_header_fits_at_the_very_start_of_a_run() {
        let most = Span::ns(u64::from(u32::MAX));
        assert_eq!(SchedulingKey::new(Time::ZERO, most, most).priority(Time::ZERO), most * 2);
        assert_eq!(SchedulingKey::new(Time::ZERO, Span::MAX, Span::MAX).priority(Time::ZERO), KEY_ORIGIN);
    }
}

mod fifo {
    use super::*;

    #[test]
    fn plain_serves_in_order_of_arrival_whatever_the_network_did() {
        let mut scheduler = plain(FIFO);
        for (id, latency_us) in [(3, 0), (1, 900), (2, 400)] {
            scheduler.push(Time::us(1), job(id, JobKind::Read, Time::us(1), Span::us(latency_us)));
        }
        assert_eq!(pop_all(&mut scheduler, Time::us(2)), [3, 1, 2]);
    }

    #[test]
    fn coordinated_lets_a_late_arrival_pass_if_the_network_held_it_for_longer_than_the_other_has_waited() {
        let (first, now) = (Time::us(1_000), Time::us(1_100));
        for (held_us, order) in [(99, [1, 2]), (100, [1, 2]), (101, [2, 1])] {
            let mut scheduler = coordinated(FIFO);
            scheduler.push(first, job(1, JobKind::Read, first, Span::ZERO));
            scheduler.push(now, job(2, JobKind::Write, now, Span::us(held_us)));
            assert_eq!(pop_all(&mut scheduler, now), order, "held for {held_us} us against 100 us in the queue");
        }
    }

    #[test]
    fn predicted_time_counts_as_much_as_time_spent() {
        let mut scheduler = coordinated(FIFO);
        let keys = [(1, 30, 30), (2, 0, 61), (3, 59, 0)];
        for (id, network_us, predicted_us) in keys {
            let key = SchedulingKey::new(Time::us(5), Span::us(network_us), Span::us(predicted_us));
            scheduler.push(Time::us(5), Job { key, ..job(id, JobKind::Read, Time::us(5), Span::ZERO) });
        }
        assert_eq!(pop_all(&mut scheduler, Time::us(5)), [2, 1, 3]);
    }
}

mod deadline {
    use super::super::deadline::{BATCH, WRITES_STARVED};
    use super::*;

    #[test]
    fn one_batch_goes_by_page_and_the_next_starts_behind_it() {
        let mut scheduler = plain(DEADLINE);
        push_all(&mut scheduler, Time::ZERO, JobKind::Read, [40, 10, 30, 20]);
        assert_eq!(scheduler.pop(Time::ZERO).map(|job| job.id), Some(JobId(40)), "no position yet: the oldest");
        assert_eq!(
            pop_all(&mut scheduler, Time::ZERO),
            [10, 20, 30],
            "the scan starts again at the oldest that is left"
        );
    }

    #[test]
    fn an_expired_job_starts_a_batch_and_one_a_picosecond_younger_does_not() {
        for (age, starts) in [(Span::us(500) - Span::ps(1), 101), (Span::us(500), 1), (Span::us(501), 1)] {
            let mut scheduler = plain(DEADLINE);
            // A full batch moves the position to page 99, so that page 1 would be the last in the
            // order of the scan.
            push_all(&mut scheduler, Time::ZERO, JobKind::Read, 84..100);
            assert!((84..100).all(|id| scheduler.pop(Time::ZERO).is_some_and(|job| job.id.0 == id)));
            push_all(&mut scheduler, Time::ZERO, JobKind::Read, [1, 101, 102]);
            assert_eq!(scheduler.pop(Time::ZERO + age).map(|job| job.id.0), Some(starts), "at an age of {age:?}");
        }
    }

    #[test]
    fn writes_have_a_deadline_of_their_own() {
        for (age_us, starts) in [(1_749, 101), (1_750, 1)] {
            let mut scheduler = plain(DEADLINE);
            push_all(&mut scheduler, Time::ZERO, JobKind::Write, 84..100);
            assert_eq!(pop_all(&mut scheduler, Time::ZERO).len(), BATCH as usize);
            push_all(&mut scheduler, Time::ZERO, JobKind::Write, [1, 101]);
            assert_eq!(scheduler.pop(Time::us(age_us)).map(|job| job.id.0), Some(starts));
        }
    }

    #[test]
    fn waiting_writes_see_two_batches_of_reads_pass_and_then_get_one() {
        let mut scheduler = plain(DEADLINE);
        push_all(&mut scheduler, Time::ZERO, JobKind::Write, 0..40);
        push_all(&mut scheduler, Time::ZERO, JobKind::Read, 0..80);
        let (read, write) = (JobKind::Read, JobKind::Write);
        let two = (BATCH * WRITES_STARVED) as usize;
        let expected = [(read, two), (write, 16), (read, two), (write, 16), (read, 80 - 2 * two), (write, 8)];
        assert_eq!(runs(&kinds(&mut scheduler, Time::ZERO)), expected);
    }

    #[test]
    fn coordinated_goes_by_key_within_a_direction_and_keeps_directions_apart() {
        let mut scheduler = coordinated(DEADLINE);
        for (id, kind, latency_us) in
            [(1, JobKind::Read, 10), (2, JobKind::Write, 90), (3, JobKind::Read, 50), (4, JobKind::Write, 95)]
        {
            scheduler.push(Time::ZERO, job(id, kind, Time::ZERO, Span::us(latency_us)));
        }
        assert_eq!(scheduler.pop(Time::ZERO).map(|job| job.id.0), Some(3));
        scheduler.push(Time::ZERO, job(5, JobKind::Read, Time::ZERO, Span::us(70)));
        assert_eq!(pop_all(&mut scheduler, Time::ZERO), [5, 1, 4, 2], "the newcomer joins the batch at its place");
    }

    #[test]
    fn a_coordinated_job_is_overtaken_until_it_expires_and_no_longer() {
        for (age_us, starts) in [(499, 17), (500, 0)] {
            let mut scheduler = coordinated(DEADLINE);
            push_all(&mut scheduler, Time::ZERO, JobKind::Read, [0]);
            let later = Time::us(100);
            for id in 1..=17 {
                scheduler.push(later, job(id, JobKind::Read, later, Span::ms(1)));
            }
            assert!((1..=16).all(|id| scheduler.pop(later).is_some_and(|job| job.id.0 == id)));
            assert_eq!(scheduler.pop(Time::us(age_us)).map(|job| job.id.0), Some(starts));
        }
    }

    proptest! {
        #[test]
        fn no_job_is_lost_and_a_write_waits_for_at_most_a_begun_batch_and_two_more(
            reads in prop::collection::vec(0_u64..50, 1..200), before in 0_usize..40, ordered in any::<bool>(),
        ) {
            let mut scheduler = if ordered { coordinated(DEADLINE) } else { plain(DEADLINE) };
            for (id, page) in (0_u32..).zip(&reads) {
                scheduler.push(Time::ZERO, Job { page: Page(*page), ..job(id, JobKind::Read, Time::ZERO, Span::ZERO) });
            }
            let before = before.min(reads.len());
            prop_assert!((0..before).all(|_| scheduler.pop(Time::ZERO).is_some()));
            scheduler.push(Time::ZERO, job(1_000, JobKind::Write, Time::ZERO, Span::ZERO));
            let rest = kinds(&mut scheduler, Time::ZERO);
            prop_assert_eq!(rest.len(), reads.len() - before + 1);
            let passed = rest.iter().take_while(|kind| **kind == JobKind::Read).count();
            prop_assert!(passed < (BATCH * (WRITES_STARVED + 1)) as usize);
        }
    }
}

mod kyber {
    use super::*;

    const SAMPLES: u32 = 500;
    const WINDOW: Span = Span::ms(100);

    /// `count` jobs of a kind come, pass the device in `device` and end after `total` since their
    /// arrival, one after another.
    fn serve(scheduler: &mut Scheduler, now: Time, kind: JobKind, count: u32, device: Span, total: Span) {
        for id in 0..count {
            scheduler.push(now, job(id, kind, now - total, Span::ZERO));
            let popped = scheduler.pop(now).expect("a lone job always has a token");
            scheduler.completed(now, &popped, device);
        }
    }

    /// A window of enough samples with the given shares of the targets in the device and in total,
    /// and its end.
    fn window(scheduler: &mut Scheduler, now: &mut Time, reads: (Span, Span), writes: (Span, Span)) {
        serve(scheduler, *now, JobKind::Read, SAMPLES, reads.0, reads.1);
        serve(scheduler, *now, JobKind::Write, SAMPLES, writes.0, writes.1);
        *now += WINDOW;
        scheduler.on_wakeup(*now);
    }

    fn depths(scheduler: &Scheduler) -> [u32; 3] {
        [JobKind::Read, JobKind::Write, JobKind::Other].map(|kind| scheduler.depth(kind).expect("Kyber has depths"))
    }

    const QUICK: (Span, Span) = (Span::us(80), Span::us(100));

    #[test]
    fn domains_start_with_256_128_and_16_tokens_and_hold_them_until_completion() {
        for (kind, tokens) in [(JobKind::Read, 256), (JobKind::Write, 128), (JobKind::Other, 16)] {
            let mut scheduler = plain(KYBER);
            push_all(&mut scheduler, Time::ZERO, kind, 0..300);
            assert_eq!(pop_all(&mut scheduler, Time::ZERO).len(), tokens);
            assert_eq!(scheduler.len(), 300 - tokens);
            scheduler.completed(Time::us(80), &job(0, kind, Time::ZERO, Span::ZERO), Span::us(80));
            assert_eq!(pop_all(&mut scheduler, Time::us(80)), [tokens as u32]);
        }
    }

    #[test]
    fn domains_take_turns_in_batches_of_16_8_and_1() {
        let mut scheduler = plain(KYBER);
        for kind in [JobKind::Other, JobKind::Write, JobKind::Read] {
            push_all(&mut scheduler, Time::ZERO, kind, 0..16);
        }
        let (read, write, other) = (JobKind::Read, JobKind::Write, JobKind::Other);
        let expected = [(read, 16), (write, 8), (other, 1), (write, 8), (other, 15)];
        assert_eq!(runs(&kinds(&mut scheduler, Time::ZERO)), expected);
    }

    #[test]
    fn a_domain_out_of_tokens_lets_the_others_pass() {
        let mut scheduler = plain(KYBER);
        push_all(&mut scheduler, Time::ZERO, JobKind::Read, 0..257);
        assert_eq!(pop_all(&mut scheduler, Time::ZERO).len(), 256);
        push_all(&mut scheduler, Time::ZERO, JobKind::Write, [7]);
        assert_eq!(kinds(&mut scheduler, Time::ZERO), [JobKind::Write]);
    }

    #[test]
    fn slow_reads_cut_the_depth_of_writes_in_proportion_to_their_slack() {
        // Total time of writes in quarters of their target, both sides of each bucket's edge, and
        // the depth out of 128.
        let quarter = WRITE_TARGET / 4;
        let after =
            [(quarter, 32), (quarter + Span::ps(1), 64), (quarter * 2, 64), (quarter * 3, 96), (quarter * 4, 128)];
        for (total, depth) in after {
            let (mut scheduler, mut now) = (plain(KYBER), Time::secs(1));
            window(&mut scheduler, &mut now, (READ_TARGET * 2, READ_TARGET * 2), (Span::us(300), total));
            assert_eq!(depths(&scheduler), [256, depth, 16], "writes took {total:?}");
        }
    }

    #[test]
    fn depth_stays_while_the_device_is_on_target_and_falls_when_it_is_a_picosecond_above() {
        for (device, depth) in [(READ_TARGET, 128), (READ_TARGET + Span::ps(1), 32)] {
            let (mut scheduler, mut now) = (plain(KYBER), Time::secs(1));
            window(&mut scheduler, &mut now, (device, READ_TARGET * 2), QUICK);
            assert_eq!(depths(&scheduler)[1], depth, "reads took {device:?} in the device");
        }
    }

    #[test]
    fn a_tenth_of_slow_reads_is_no_congestion_and_one_more_is() {
        for (slow, depth) in [(50, 128), (51, 32)] {
            let (mut scheduler, now) = (plain(KYBER), Time::secs(1));
            serve(&mut scheduler, now, JobKind::Read, slow, READ_TARGET * 2, READ_TARGET * 2);
            serve(&mut scheduler, now, JobKind::Read, SAMPLES - slow, QUICK.0, QUICK.1);
            serve(&mut scheduler, now, JobKind::Write, SAMPLES, QUICK.0, QUICK.1);
            scheduler.on_wakeup(now + WINDOW);
            assert_eq!(depths(&scheduler)[1], depth, "{slow} of {SAMPLES} were slow");
        }
    }

    #[test]
    fn sustained_slow_reads_bring_writes_down_to_one_token_and_slow_writes_get_them_back() {
        let (mut scheduler, mut now) = (plain(KYBER), Time::secs(1));
        let seen: Vec<u32> = (0..5)
            .map(|_| {
                window(&mut scheduler, &mut now, (READ_TARGET * 2, READ_TARGET * 2), QUICK);
                depths(&scheduler)[1]
            })
            .collect();
        assert_eq!(seen, [32, 8, 2, 1, 1], "a quarter each time, never none");
        let back: Vec<u32> = (0..9)
            .map(|_| {
                window(&mut scheduler, &mut now, QUICK, (Span::us(300), WRITE_TARGET * 2));
                depths(&scheduler)[1]
            })
            .collect();
        assert_eq!(back, [2, 4, 8, 16, 32, 64, 128, 128, 128], "doubled each time, never more than at first");
    }

    #[test]
    fn once_reads_are_quick_again_writes_keep_the_depth_with_which_they_meet_their_target() {
        let (mut scheduler, mut now) = (plain(KYBER), Time::secs(1));
        window(&mut scheduler, &mut now, (READ_TARGET * 2, READ_TARGET * 2), QUICK);
        window(&mut scheduler, &mut now, QUICK, QUICK);
        assert_eq!(depths(&scheduler), [256, 32, 16]);
    }

    #[test]
    fn nothing_happens_before_the_window_ends() {
        let (mut scheduler, now) = (plain(KYBER), Time::secs(1));
        assert_eq!(scheduler.next_wakeup(), None, "no completion, no window");
        serve(&mut scheduler, now, JobKind::Read, SAMPLES, READ_TARGET * 2, READ_TARGET * 2);
        serve(&mut scheduler, now, JobKind::Write, SAMPLES, QUICK.0, QUICK.1);
        assert_eq!(scheduler.next_wakeup(), Some(now + WINDOW));
        scheduler.on_wakeup(now + WINDOW - Span::ps(1));
        assert_eq!(depths(&scheduler)[1], 128);
        scheduler.on_wakeup(now + WINDOW);
        scheduler.on_wakeup(now + WINDOW);
        assert_eq!((depths(&scheduler)[1], scheduler.next_wakeup()), (32, None));
    }

    #[test]
    fn too_few_samples_wait_for_more_or_for_a_second() {
        let (mut scheduler, start) = (plain(KYBER), Time::secs(1));
        let few = SAMPLES - 1;
        serve(&mut scheduler, start, JobKind::Read, few, READ_TARGET * 2, READ_TARGET * 2);
        serve(&mut scheduler, start, JobKind::Write, SAMPLES, QUICK.0, QUICK.1);
        scheduler.on_wakeup(start + WINDOW);
        assert_eq!(depths(&scheduler)[1], 128, "499 say nothing yet");
        let late = start + WINDOW + Span::secs(1);
        scheduler.completed(late - Span::ps(1) - WINDOW, &job(0, JobKind::Write, start, Span::ZERO), Span::us(1));
        scheduler.on_wakeup(late - Span::ps(1));
        assert_eq!(depths(&scheduler)[1], 128, "not yet a second after the first look");
        scheduler.completed(late - WINDOW, &job(0, JobKind::Write, start, Span::ZERO), Span::us(1));
        scheduler.on_wakeup(late);
        assert_eq!(depths(&scheduler)[1], 32, "and the percentile of writes is remembered from the first window");
    }

    #[test]
    fn a_remembered_percentile_throttles_once() {
        let (mut scheduler, mut now) = (plain(KYBER), Time::secs(1));
        window(&mut scheduler, &mut now, QUICK, QUICK);
        for _ in 0..3 {
            serve(&mut scheduler, now, JobKind::Read, SAMPLES, READ_TARGET * 2, READ_TARGET * 2);
            now += WINDOW;
            scheduler.on_wakeup(now);
        }
        assert_eq!(depths(&scheduler)[1], 32, "no write completed since");
    }

    #[test]
    fn coordinated_total_time_contains_the_network_and_plain_does_not() {
        for (mut scheduler, depth) in [(plain(KYBER), 32), (coordinated(KYBER), 64)] {
            let now = Time::secs(1);
            serve(&mut scheduler, now, JobKind::Read, SAMPLES, READ_TARGET * 2, READ_TARGET * 2);
            for id in 0..SAMPLES {
                // 100 us here and 1 ms in the network: the first or the second quarter of 3 ms.
                scheduler.push(now, job(id, JobKind::Write, now - Span::us(100), Span::ms(1)));
                let popped = scheduler.pop(now).expect("a lone job always has a token");
                scheduler.completed(now, &popped, QUICK.0);
            }
            scheduler.on_wakeup(now + WINDOW);
            assert_eq!(depths(&scheduler)[1], depth);
        }
    }

    #[test]
    fn coordinated_goes_by_key_within_a_domain() {
        let mut scheduler = coordinated(KYBER);
        for (id, kind, latency_us) in
            [(1, JobKind::Read, 10), (2, JobKind::Write, 90), (3, JobKind::Read, 50), (4, JobKind::Write, 95)]
        {
            scheduler.push(Time::ZERO, job(id, kind, Time::ZERO, Span::us(latency_us)));
        }
        assert_eq!(pop_all(&mut scheduler, Time::ZERO), [3, 1, 4, 2]);
    }
}

/// What happens next in a random run: a job comes with its latencies in microseconds, or one is
/// sent.
#[derive(Clone, Debug)]
enum Step {
    Come { kind: JobKind, network_us: u64, predicted_us: u64 },
    Send,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let kind = prop_oneof![Just(JobKind::Read), Just(JobKind::Write)];
    let come = (kind, 0_u64..300, 0_u64..300).prop_map(|(kind, network_us, predicted_us)| Step::Come {
        kind,
        network_us,
        predicted_us,
    });
    prop::collection::vec((0_u64..50, prop_oneof![3 => come, 2 => Just(Step::Send)]), 1..120)
}

/// A job as the paper has it: its three times apart.
#[derive(Clone, Debug)]
struct Waiting {
    job: Job,
    network: Span,
    predicted: Span,
}

impl Waiting {
    fn priority(&self, now: Time) -> Span {
        self.network + (now - self.job.arrived) + self.predicted
    }
}

/// Sorts all that wait again and takes the largest priority; the earlier arrival among equals.
fn take_by_sorting(waiting: &mut Vec<Waiting>, now: Time, kind: Option<JobKind>) -> Option<Job> {
    waiting.sort_by_key(|entry| (std::cmp::Reverse(entry.priority(now)), entry.job.id));
    let place = waiting.iter().position(|entry| kind.is_none_or(|kind| kind == entry.job.kind))?;
    Some(waiting.remove(place).job)
}

proptest! {
    #[test]
    fn the_heap_serves_as_if_everything_were_sorted_again_at_every_dispatch(steps in steps()) {
        for policy in [FIFO, KYBER, Policy::Deadline { read: Span::secs(1), write: Span::secs(1) }] {
            let (mut scheduler, mut waiting, mut now) = (coordinated(policy), Vec::new(), Time::ZERO);
            for (id, (gap_us, step)) in (0_u32..).zip(&steps) {
                now += Span::us(*gap_us);
                match *step {
                    Step::Come { kind, network_us, predicted_us } => {
                        let (network, predicted) = (Span::us(network_us), Span::us(predicted_us));
                        let key = SchedulingKey::new(now, network, predicted);
                        let job = Job { key, ..job(id, kind, now, Span::ZERO) };
                        waiting.push(Waiting { job, network, predicted });
                        scheduler.push(now, job);
                    }
                    Step::Send => {
                        let sent = scheduler.pop(now);
                        // Which queue is served is the policy's choice; which job of it must be the
                        // one that sorting finds.
                        let kind = sent.filter(|_| policy != FIFO).map(|job| job.kind);
                        prop_assert_eq!(sent, take_by_sorting(&mut waiting, now, kind));
                    }
                }
            }
        }
    }
}
