use super::*;
use CollectorAction::{Ended, Say, Step};
use proptest::prelude::*;

const ONE: VssdId = VssdId(1);
const TWO: VssdId = VssdId(2);

fn config() -> CollectionConfig {
    CollectionConfig {
        check_period: Span::secs(30),
        first_check: Time::secs(30),
        regular_ppm: 250_000,
        soft_ppm: 350_000,
        stop_ppm: 500_000,
        retries: 3,
        answer_timeout: Span::ms(1),
        background: true,
        background_ppm: 450_000,
        grain: Grain::Die,
        coordination: Coordination::Switch(NodeId(99)),
    }
}

/// A unit of `members`, and what it has decided since it was last asked.
struct Unit {
    collector: Collector,
    now: Time,
    out: Vec<CollectorAction>,
}

impl Unit {
    fn of(config: CollectionConfig, members: &[VssdId]) -> Unit {
        let mut collector = Collector::new(config);
        for &vssd in members {
            collector.add_member(vssd, 1);
            collector.report(vssd, 500, 1_000);
        }
        Unit { collector, now: Time::ZERO, out: Vec::new() }
    }
    fn free(&mut self, vssd: VssdId, free: u32) -> &mut Unit {
        self.collector.report(vssd, free, 1_000);
        self
    }
    fn until(&mut self, now: Time, idle: bool) -> Vec<CollectorAction> {
        self.now = now;
        self.collector.on_wakeup(now, idle, &mut self.out);
        std::mem::take(&mut self.out)
    }
    /// Time passes to the `number`th check.
    fn check(&mut self, number: u64) -> Vec<CollectorAction> {
        self.until(Time::secs(30 * number), false)
    }
    fn answer(&mut self, vssd: VssdId, note: CollectionNote) -> Vec<CollectorAction> {
        self.collector.answer(vssd, note, None, &mut self.out);
        std::mem::take(&mut self.out)
    }
    fn silence(&mut self) -> Vec<CollectorAction> {
        let deadline = self.collector.next_wakeup();
        self.until(deadline, false)
    }
    fn freed(&mut self, vssd: VssdId) -> Vec<CollectorAction> {
        self.collector.step_done(vssd, 0, true, false, &mut self.out);
        std::mem::take(&mut self.out)
    }
    fn press(&mut self) -> Vec<CollectorAction> {
        self.collector.press(self.now, &mut self.out);
        std::mem::take(&mut self.out)
    }
}

fn say(vssd: VssdId, note: CollectionNote) -> CollectorAction {
    Say { vssd, note }
}
fn step(vssd: VssdId) -> CollectorAction {
    Step { vssd, stream: 0 }
}

#[test]
fn each_threshold_has_two_sides() {
    let look = |free, idle| urgency(&config(), free, 1_000, idle);
    assert_eq!(look(249, false), Some(Urgency::Regular));
    assert_eq!(look(250, false), Some(Urgency::Soft));
    assert_eq!(look(349, true), Some(Urgency::Soft));
    assert_eq!(look(350, false), None);
    assert_eq!(look(350, true), Some(Urgency::Background));
    assert_eq!(look(449, true), Some(Urgency::Background));
    assert_eq!(look(450, true), None, "idle time is used below a share of its own");
}

#[test]
fn a_soft_request_that_is_accepted_collects_until_enough_is_free_and_says_so() {
    let mut unit = Unit::of(config(), &[ONE]);
    assert_eq!(unit.free(ONE, 300).check(1), [say(ONE, CollectionNote::Soft)]);
    assert_eq!(unit.answer(ONE, CollectionNote::Accept), [step(ONE)]);
    assert_eq!(unit.free(ONE, 499).freed(ONE), [step(ONE)]);
    assert_eq!(unit.free(ONE, 500).freed(ONE), [say(ONE, CollectionNote::Finish), Ended]);
}

#[test]
fn a_delayed_soft_request_is_repeated_at_the_next_check() {
    let mut unit = Unit::of(config(), &[ONE]);
    unit.free(ONE, 300).check(1);
    assert!(unit.answer(ONE, CollectionNote::Delay).is_empty());
    assert_eq!(unit.collector.next_wakeup(), Time::secs(60));
    assert_eq!(unit.check(2), [say(ONE, CollectionNote::Soft)]);
}

#[test]
fn an_unanswered_soft_request_is_taken_back_and_a_late_yes_given_back() {
    let mut unit = Unit::of(config(), &[ONE]);
    unit.free(ONE, 300).check(1);
    assert_eq!(unit.silence(), [say(ONE, CollectionNote::Finish)]);
    assert_eq!(unit.answer(ONE, CollectionNote::Accept), [say(ONE, CollectionNote::Finish)]);
    assert!(!unit.collector.is_collecting());
}

#[test]
fn an_unanswered_regular_request_is_repeated_three_times_and_then_collects_anyway() {
    let mut unit = Unit::of(config(), &[ONE]);
    assert_eq!(unit.free(ONE, 200).check(1), [say(ONE, CollectionNote::Regular)]);
    for _ in 0..3 {
        assert_eq!(unit.silence(), [say(ONE, CollectionNote::Regular)]);
    }
    assert_eq!(unit.silence(), [step(ONE)]);
    assert_eq!(unit.now, Time::secs(30) + Span::ms(4));
}

#[test]
fn a_stale_no_does_not_deny_a_regular_request() {
    let mut unit = Unit::of(config(), &[ONE]);
    unit.free(ONE, 300).check(1);
    assert_eq!(
        unit.press(),
        [say(ONE, CollectionNote::Regular)],
        "free blocks ran out while the switch was asked softly"
    );
    assert!(unit.answer(ONE, CollectionNote::Delay).is_empty());
    assert_eq!(unit.answer(ONE, CollectionNote::Accept), [step(ONE)]);
}

#[test]
fn a_no_to_one_member_delays_the_group_and_gives_the_others_grants_back() {
    let mut unit = Unit::of(config(), &[ONE, TWO]);
    let asked = unit.free(ONE, 100).free(TWO, 500).check(1);
    assert_eq!(asked, [say(ONE, CollectionNote::Soft), say(TWO, CollectionNote::Soft)], "600 of 2,000 is 30 %");
    assert!(unit.answer(ONE, CollectionNote::Accept).is_empty());
    assert_eq!(unit.answer(TWO, CollectionNote::Delay), [say(ONE, CollectionNote::Finish)]);
}

#[test]
fn a_yes_that_comes_after_another_members_no_is_given_back() {
    let mut unit = Unit::of(config(), &[ONE, TWO]);
    unit.free(ONE, 100).check(1);
    assert!(unit.answer(TWO, CollectionNote::Delay).is_empty());
    assert_eq!(unit.answer(ONE, CollectionNote::Accept), [say(ONE, CollectionNote::Finish)]);
}

#[test]
fn a_group_collects_together_and_says_finish_for_each() {
    let mut unit = Unit::of(config(), &[ONE, TWO]);
    unit.free(ONE, 0).free(TWO, 400).check(1);
    assert!(unit.answer(TWO, CollectionNote::Accept).is_empty());
    assert_eq!(unit.answer(ONE, CollectionNote::Accept), [step(ONE), step(TWO)]);
    assert!(unit.free(TWO, 500).freed(TWO).is_empty(), "the second has enough for itself");
    assert_eq!(unit.free(ONE, 499).freed(ONE), [step(ONE)]);
    let end = unit.free(ONE, 500).freed(ONE);
    assert_eq!(end, [say(ONE, CollectionNote::Finish), say(TWO, CollectionNote::Finish), Ended]);
}

#[test]
fn a_regular_request_of_a_group_repeats_only_what_was_not_answered() {
    let mut unit = Unit::of(config(), &[ONE, TWO]);
    unit.free(ONE, 0).free(TWO, 400).check(1);
    unit.answer(ONE, CollectionNote::Accept);
    assert_eq!(unit.silence(), [say(TWO, CollectionNote::Regular)]);
}

#[test]
fn an_idle_unit_collects_without_asking_and_makes_way_for_requests() {
    let mut unit = Unit::of(config(), &[ONE]);
    unit.free(ONE, 400);
    assert_eq!(unit.until(Time::secs(30), true), [say(ONE, CollectionNote::Background), step(ONE)]);
    assert!(unit.answer(ONE, CollectionNote::Accept).is_empty(), "the switch answers, and nobody needed it to");
    unit.collector.disturb();
    assert_eq!(unit.freed(ONE), [say(ONE, CollectionNote::Finish), Ended]);
}

#[test]
fn background_collection_that_has_become_a_must_does_not_make_way() {
    let mut unit = Unit::of(config(), &[ONE]);
    unit.free(ONE, 400).until(Time::secs(30), true);
    unit.collector.disturb();
    assert!(unit.free(ONE, 200).check(2).is_empty());
    assert_eq!(unit.freed(ONE), [step(ONE)]);
}

#[test]
fn nobody_is_asked_where_nobody_coordinates() {
    let mut unit = Unit::of(CollectionConfig { coordination: Coordination::Uncoordinated, ..config() }, &[ONE]);
    assert!(unit.free(ONE, 250).check(1).is_empty());
    assert_eq!(unit.free(ONE, 249).check(2), [step(ONE)]);
    assert_eq!(unit.free(ONE, 500).freed(ONE), [Ended]);
}

#[test]
fn a_collection_that_frees_nothing_is_not_begun_again_before_the_next_check() {
    let mut unit = Unit::of(config(), &[ONE]);
    unit.free(ONE, 0).press();
    unit.answer(ONE, CollectionNote::Accept);
    unit.collector.step_done(ONE, 0, false, true, &mut unit.out);
    assert_eq!(std::mem::take(&mut unit.out), [say(ONE, CollectionNote::Finish), Ended]);
    assert!(unit.press().is_empty());
    assert_eq!(unit.check(1), [say(ONE, CollectionNote::Regular)]);
}

#[test]
fn a_finish_that_is_not_echoed_is_said_again_at_the_checks() {
    let mut unit = Unit::of(config(), &[ONE]);
    unit.free(ONE, 300).check(1);
    unit.answer(ONE, CollectionNote::Accept);
    unit.free(ONE, 600).freed(ONE);
    assert_eq!(unit.check(2), [say(ONE, CollectionNote::Finish)]);
    assert!(unit.answer(ONE, CollectionNote::Finish).is_empty());
    assert!(unit.check(3).is_empty());
}

#[test]
fn checks_that_were_slept_through_are_one_check() {
    let mut unit = Unit::of(config(), &[ONE]);
    assert_eq!(unit.free(ONE, 300).until(Time::secs(100), false), [say(ONE, CollectionNote::Soft)]);
    assert_eq!(unit.collector.next_check, Time::secs(120));
}

#[test]
fn the_controller_names_where_reads_go_while_a_member_collects() {
    let elsewhere = Some((NodeId(7), VssdId(70)));
    let mut unit = Unit::of(CollectionConfig { coordination: Coordination::Controller(NodeId(9)), ..config() }, &[ONE]);
    unit.free(ONE, 300).check(1);
    unit.collector.answer(ONE, CollectionNote::Accept, elsewhere, &mut unit.out);
    assert_eq!(unit.collector.replica_for_reads(ONE), elsewhere);
    unit.free(ONE, 900).freed(ONE);
    assert_eq!(unit.collector.replica_for_reads(ONE), None);
}

#[test]
fn a_member_that_runs_short_while_others_collect_looks_for_garbage_again() {
    let mut unit = Unit::of(CollectionConfig { coordination: Coordination::Uncoordinated, ..config() }, &[ONE, TWO]);
    unit.free(ONE, 200).free(TWO, 200);
    assert_eq!(unit.check(1), [step(ONE), step(TWO)]);
    unit.collector.step_done(ONE, 0, false, true, &mut unit.out);
    assert_eq!(std::mem::take(&mut unit.out), [], "the other goes on");
    assert_eq!(unit.press(), [step(ONE)]);
    assert_eq!(unit.press(), [], "both are at work");
    unit.collector.step_done(ONE, 0, false, true, &mut unit.out);
    unit.free(ONE, 500);
    assert_eq!(unit.press(), [], "who has enough does not");
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Report(bool, u32),
    Answer(bool, bool),
    StepDone(bool, u8),
    Wait(u64),
    Press,
    Disturb,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (any::<bool>(), 0_u32..=600).prop_map(|(one, free)| Event::Report(one, free)),
        (any::<bool>(), any::<bool>()).prop_map(|(one, yes)| Event::Answer(one, yes)),
        (any::<bool>(), 0_u8..3).prop_map(|(one, outcome)| Event::StepDone(one, outcome)),
        prop_oneof![Just(1_u64), Just(1_000), Just(30_000)].prop_map(Event::Wait),
        Just(Event::Press),
        Just(Event::Disturb),
    ]
}

proptest! {
    /// Whatever happens: no stream has two steps at once, steps come only while collecting, and
    /// every collection that began ends with one `Ended` and a finish for each member.
    #[test]
    fn collections_are_balanced(events in prop::collection::vec(event(), 1..200)) {
        let mut unit = Unit::of(config(), &[ONE, TWO]);
        let mut running = [false; 2];
        let which = |one: bool| if one { ONE } else { TWO };
        for event in events {
            let was_collecting = unit.collector.is_collecting();
            let mut out = Vec::new();
            match event {
                Event::Report(one, free) => unit.collector.report(which(one), free, 1_000),
                Event::Answer(one, true) => unit.collector.answer(which(one), CollectionNote::Accept, None, &mut out),
                Event::Answer(one, false) => unit.collector.answer(which(one), CollectionNote::Delay, None, &mut out),
                Event::StepDone(one, _) if !running[usize::from(one)] => {}
                Event::StepDone(one, outcome) => {
                    running[usize::from(one)] = false;
                    unit.collector.step_done(which(one), 0, outcome == 0, outcome == 1, &mut out);
                }
                Event::Wait(milliseconds) => {
                    unit.now += Span::ms(milliseconds);
                    unit.collector.on_wakeup(unit.now, milliseconds == 30_000, &mut out);
                }
                Event::Press => unit.collector.press(unit.now, &mut out),
                Event::Disturb => unit.collector.disturb(),
            }
            for action in &out {
                if let Step { vssd, .. } = action {
                    let stream = &mut running[usize::from(*vssd == ONE)];
                    prop_assert!(!*stream && unit.collector.is_collecting());
                    *stream = true;
                }
            }
            let finishes = out.iter().filter(|action| matches!(action, Say { note: CollectionNote::Finish, .. })).count();
            prop_assert_eq!(out.contains(&Ended), was_collecting && !unit.collector.is_collecting());
            prop_assert!(!out.contains(&Ended) || finishes == 2);
            prop_assert_eq!(unit.collector.is_collecting(), running[0] || running[1]);
        }
    }
}
