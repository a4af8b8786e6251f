//! Does the protocol hold: histories of a key-value store are judged as one who tries every order
//! would, and as Porcupine does.

mod porcupine;

use base::{Seed, Stream, Time};
use history::{StoreAction, StoreAnswer, StoreHistory, StoreOperation, StoreValue, StoreVerdict};
use std::collections::BTreeSet;

const STEPS_MAX: u64 = 1_000_000;

fn nothing_at_first(_: u64) -> StoreValue {
    None
}

/// Key 1 holds 7 at first.
fn seven_at_first(key: u64) -> StoreValue {
    (key == 1).then_some(7)
}

fn history(initial: fn(u64) -> StoreValue, operations: &[StoreOperation]) -> StoreHistory {
    let mut history = StoreHistory::new(initial);
    operations.iter().for_each(|operation| history.record(*operation));
    history
}

fn operation(id: u64, action: StoreAction, invoked: u64, answered: Option<(u64, StoreAnswer)>) -> StoreOperation {
    let answered = answered.map(|(at, answer)| (Time::ps(at), answer));
    StoreOperation { id, client: id, key: 1, action, invoked: Time::ps(invoked), answered }
}

fn get(id: u64, invoked: u64, at: u64, found: StoreValue) -> StoreOperation {
    operation(id, StoreAction::Get, invoked, Some((at, StoreAnswer::Found(found))))
}
fn put(id: u64, invoked: u64, at: u64, value: u64) -> StoreOperation {
    operation(id, StoreAction::Put(value), invoked, Some((at, StoreAnswer::Stored)))
}
fn delete(id: u64, invoked: u64, at: u64, was_there: bool) -> StoreOperation {
    operation(id, StoreAction::Delete, invoked, Some((at, StoreAnswer::Removed(was_there))))
}
fn swap(id: u64, invoked: u64, at: u64, [expected, new]: [StoreValue; 2], did_it: bool) -> StoreOperation {
    operation(id, StoreAction::CompareAndSwap { expected, new }, invoked, Some((at, StoreAnswer::Swapped(did_it))))
}

fn illegal_at(operations: &[u64]) -> StoreVerdict {
    StoreVerdict::Illegal { key: 1, operations: operations.to_vec() }
}

#[test]
fn a_deleted_key_does_not_come_back() {
    let story = [put(1, 0, 10, 5), delete(2, 11, 20, true), get(3, 21, 30, None), get(4, 31, 40, Some(5))];
    assert_eq!(history(nothing_at_first, &story[..3]).check(STEPS_MAX), StoreVerdict::Linearizable);
    assert_eq!(history(nothing_at_first, &story).check(STEPS_MAX), illegal_at(&[4]));
}

#[test]
fn the_second_of_two_deletions_finds_nothing() {
    let story = |second| [delete(1, 0, 10, true), delete(2, 5, 15, second)];
    assert_eq!(history(seven_at_first, &story(false)).check(STEPS_MAX), StoreVerdict::Linearizable);
    assert_eq!(history(seven_at_first, &story(true)).check(STEPS_MAX), illegal_at(&[2]));
}

#[test]
fn one_of_two_swaps_from_the_same_value_wins() {
    let story = |did_it| [swap(1, 0, 10, [Some(7), Some(8)], true), swap(2, 0, 10, [Some(7), Some(9)], did_it)];
    assert_eq!(history(seven_at_first, &story(false)).check(STEPS_MAX), StoreVerdict::Linearizable);
    assert!(matches!(history(seven_at_first, &story(true)).check(STEPS_MAX), StoreVerdict::Illegal { .. }));
}

#[test]
fn a_swap_without_an_answer_happens_late_or_never_and_not_twice() {
    let lost = operation(1, StoreAction::CompareAndSwap { expected: Some(7), new: Some(8) }, 0, None);
    for (seen, is_right) in [(vec![7, 7, 7], true), (vec![7, 8, 8], true), (vec![7, 8, 7], false)] {
        let reads = seen
            .iter()
            .enumerate()
            .map(|(n, value)| get(10 + n as u64, 10 * n as u64, 10 * n as u64 + 5, Some(*value)));
        let story: Vec<StoreOperation> = std::iter::once(lost).chain(reads).collect();
        let verdict = history(seven_at_first, &story).check(STEPS_MAX);
        assert_eq!(verdict == StoreVerdict::Linearizable, is_right, "{seen:?}: {verdict:?}");
    }
}

#[test]
fn operations_that_touch_overlap() {
    let touching = [put(1, 0, 10, 5), get(2, 10, 20, Some(7))];
    let apart = [put(1, 0, 10, 5), get(2, 11, 20, Some(7))];
    assert_eq!(history(seven_at_first, &touching).check(STEPS_MAX), StoreVerdict::Linearizable);
    assert!(matches!(history(seven_at_first, &apart).check(STEPS_MAX), StoreVerdict::Illegal { key: 1, .. }));
}

#[test]
fn values_that_are_written_twice_are_searched() {
    let story = [put(1, 0, 10, 5), put(2, 11, 20, 6), put(3, 21, 30, 5), get(4, 31, 40, Some(5))];
    assert_eq!(history(nothing_at_first, &story).check(STEPS_MAX), StoreVerdict::Linearizable);
    let stale = [story[0], story[1], story[2], get(4, 31, 40, Some(6))];
    assert_eq!(history(nothing_at_first, &stale).check(STEPS_MAX), illegal_at(&[4]));
}

#[test]
fn an_answer_of_another_kind_is_illegal() {
    let odd = operation(1, StoreAction::Get, 0, Some((5, StoreAnswer::Stored)));
    assert_eq!(history(nothing_at_first, &[odd]).check(STEPS_MAX), illegal_at(&[1]));
}

#[test]
fn a_search_that_takes_too_long_says_that_it_does_not_know() {
    let mut story: Vec<StoreOperation> = (0..24).map(|id| put(id, 0, 100, id)).collect();
    story.push(delete(30, 0, 100, true));
    story.push(get(31, 101, 110, Some(99)));
    assert_eq!(history(nothing_at_first, &story).check(10_000), StoreVerdict::Unknown { key: 1 });
    let crowd: Vec<StoreOperation> = (0..200).map(|id| operation(id, StoreAction::Delete, id, None)).collect();
    assert_eq!(history(nothing_at_first, &crowd).check(STEPS_MAX), StoreVerdict::Unknown { key: 1 });
}

#[test]
fn an_illegal_key_counts_more_than_an_unknown_one() {
    let mut story: Vec<StoreOperation> = (0..24).map(|id| put(id, 0, 100, id)).collect();
    story.push(delete(30, 0, 100, true));
    story.push(get(31, 101, 110, Some(99)));
    story.push(StoreOperation { key: 2, ..get(32, 0, 1, Some(3)) });
    assert_eq!(history(nothing_at_first, &story).check(10_000), StoreVerdict::Illegal { key: 2, operations: vec![32] });
}

#[test]
fn writes_and_deletions_that_were_never_answered_take_few_steps_however_many_they_are() {
    let lost =
        (0..40).map(|id| operation(id, if id % 2 == 0 { StoreAction::Put(id) } else { StoreAction::Delete }, id, None));
    let answered = [delete(100, 50, 51, true), delete(101, 52, 53, true), get(102, 54, 55, None)];
    let operations: Vec<StoreOperation> = lost.chain(answered).collect();
    assert_eq!(history(nothing_at_first, &operations).check(10_000), StoreVerdict::Linearizable);
    // One of them was seen: that one cannot come after all.
    let operations =
        [&operations[..], &[get(103, 56, 57, Some(6)), delete(104, 58, 59, true), get(105, 60, 61, Some(6))]].concat();
    assert_eq!(history(nothing_at_first, &operations).check(10_000), illegal_at(&[105]));
}

#[test]
fn a_long_history_of_a_busy_key_takes_few_steps() {
    let story = lived(Seed(5), Life { operations: 20_000, concurrent: 6, keys: 1, lies: 0, losses: 0 });
    assert_eq!(history(nothing_at_first, &story).check(2_000_000), StoreVerdict::Linearizable);
}

#[test]
fn lines_carry_everything_and_start_with_what_was_there() {
    let story = [
        get(1, 0, 10, Some(7)),
        put(2, 11, 20, 8),
        swap(3, 21, 30, [Some(8), None], true),
        delete(4, 31, 40, false),
        operation(5, StoreAction::Put(9), 41, None),
    ];
    let mut lines = Vec::new();
    history(seven_at_first, &story).write_json_lines(&mut lines).expect("a Vec takes everything");
    assert_eq!(
        String::from_utf8(lines).expect("JSON is text"),
        r#"{"client":0,"operation":"put","key":"1","value":"7","expected":null,"result":null,"start":0,"end":0}
{"client":1,"operation":"get","key":"1","value":null,"expected":null,"result":"7","start":1,"end":11}
{"client":2,"operation":"put","key":"1","value":"8","expected":null,"result":null,"start":12,"end":21}
{"client":3,"operation":"cas","key":"1","value":null,"expected":"8","result":true,"start":22,"end":31}
{"client":4,"operation":"delete","key":"1","value":null,"expected":null,"result":false,"start":32,"end":41}
{"client":5,"operation":"put","key":"1","value":"9","expected":null,"result":null,"start":42,"end":null}
"#
    );
}

/// How a random history comes about.
#[derive(Clone, Copy)]
struct Life {
    operations: u64,
    /// Clients, each with one operation at a time.
    concurrent: u64,
    keys: u64,
    /// One answer in so many is made up; 0: none.
    lies: u64,
    /// One operation in so many is never answered; 0: none.
    losses: u64,
}

/// Clients of a correct store: an operation takes effect somewhere between its call and its answer.
/// Some are never answered, some answers are made up.
fn lived(seed: Seed, life: Life) -> Vec<StoreOperation> {
    let mut draw = seed.stream("life");
    let mut held = vec![None; life.keys as usize + 1];
    let mut free_at = vec![0; life.concurrent as usize];
    let mut stories: Vec<(u64, StoreOperation, u64)> =
        (0..life.operations).map(|id| plan(&mut draw, &mut free_at, id, life.keys)).collect();
    stories.sort_by_key(|(effect, operation, _)| (*effect, operation.id));
    let mut lived = Vec::new();
    for (_, mut operation, end) in stories {
        let key = operation.key as usize;
        let (answer, next) = obey(operation.action, held[key]);
        let is_lost = life.losses > 0 && draw.below(life.losses) == 0;
        if !is_lost || draw.below(2) == 0 {
            held[key] = next;
        }
        let is_lie = life.lies > 0 && draw.below(life.lies) == 0;
        let told = if is_lie { lie(&mut draw, answer, life.operations) } else { answer };
        operation.answered = (!is_lost).then_some((Time::ps(end), told));
        lived.push(operation);
    }
    lived
}

/// When it takes effect, the operation, when it is answered.
fn plan(draw: &mut Stream, free_at: &mut [u64], id: u64, keys: u64) -> (u64, StoreOperation, u64) {
    let client = draw.below(free_at.len() as u64);
    let invoked = free_at[client as usize] + draw.below(4);
    let effect = invoked + draw.below(6);
    let end = effect + draw.below(6);
    free_at[client as usize] = end + 1;
    let action = match draw.below(10) {
        0..5 => StoreAction::Get,
        5..8 => StoreAction::Put(id),
        8 => StoreAction::Delete,
        _ => StoreAction::CompareAndSwap { expected: (draw.below(2) == 0).then(|| draw.below(id + 1)), new: Some(id) },
    };
    (
        effect,
        StoreOperation { id, client, key: 1 + draw.below(keys), action, invoked: Time::ps(invoked), answered: None },
        end,
    )
}

fn obey(action: StoreAction, held: StoreValue) -> (StoreAnswer, StoreValue) {
    match action {
        StoreAction::Get => (StoreAnswer::Found(held), held),
        StoreAction::Put(value) => (StoreAnswer::Stored, Some(value)),
        StoreAction::Delete => (StoreAnswer::Removed(held.is_some()), None),
        StoreAction::CompareAndSwap { expected, new } if expected == held => (StoreAnswer::Swapped(true), new),
        StoreAction::CompareAndSwap { .. } => (StoreAnswer::Swapped(false), held),
    }
}

fn lie(draw: &mut Stream, answer: StoreAnswer, values: u64) -> StoreAnswer {
    match answer {
        StoreAnswer::Found(_) => StoreAnswer::Found((draw.below(3) > 0).then(|| draw.below(values))),
        StoreAnswer::Stored => StoreAnswer::Stored,
        StoreAnswer::Removed(did_it) => StoreAnswer::Removed(!did_it),
        StoreAnswer::Swapped(did_it) => StoreAnswer::Swapped(!did_it),
    }
}

/// Small enough to try every order: sets of operations that have taken effect, and the value then.
fn some_order_explains(operations: &[StoreOperation]) -> bool {
    let mut stack = vec![(0u32, None)];
    let mut seen = BTreeSet::new();
    let is_answered = |place: usize| operations[place].answered.is_some();
    while let Some((done, held)) = stack.pop() {
        let open = |place: &usize| done & (1 << place) == 0;
        if !(0..operations.len()).filter(open).any(is_answered) {
            return true;
        }
        if !seen.insert((done, held)) {
            continue;
        }
        for place in (0..operations.len()).filter(open) {
            let it = operations[place];
            let precedes = |other: usize| operations[other].answered.is_some_and(|(end, _)| end < it.invoked);
            let (answer, next) = obey(it.action, held);
            let fits = it.answered.is_none_or(|(_, told)| told == answer);
            if fits && !(0..operations.len()).filter(open).any(precedes) {
                stack.push((done | 1 << place, next));
            }
        }
    }
    false
}

#[test]
fn the_search_agrees_with_one_that_tries_every_order() {
    let mut counts = [0; 2];
    for seed in 0..3_000 {
        let story = lived(Seed(seed), Life { operations: 9, concurrent: 4, keys: 1, lies: 6, losses: 25 });
        let expected = some_order_explains(&story);
        let verdict = history(nothing_at_first, &story).check(STEPS_MAX);
        assert_eq!(verdict == StoreVerdict::Linearizable, expected, "seed {seed}: {verdict:?}, {story:#?}");
        counts[usize::from(expected)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 500), "both kinds come up: {counts:?}");
}

#[test]
fn porcupine_agrees_on_small_and_on_long_histories_right_and_corrupted() {
    let lives = [(9, 4, 1, 6), (40, 5, 2, 60), (300, 4, 3, 600), (200, 6, 2, 0)];
    let mut counts = [0; 2];
    for (seed, (operations, concurrent, keys, lies)) in (0..80).zip(lives.into_iter().cycle()) {
        let story = lived(Seed(seed), Life { operations, concurrent, keys, lies, losses: 25 });
        let history = history(seven_at_first, &story);
        let is_right = porcupine::verdict(&history, STEPS_MAX) == StoreVerdict::Linearizable;
        counts[usize::from(is_right)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 10), "both kinds come up: {counts:?}");
}

#[test]
fn porcupine_names_the_first_wrong_key_by_its_number_not_by_its_text() {
    let wrong = |key| StoreOperation { key, ..get(key, 0, 1, Some(5)) };
    let verdict = porcupine::verdict(&history(nothing_at_first, &[wrong(11), wrong(6)]), STEPS_MAX);
    assert_eq!(verdict, StoreVerdict::Illegal { key: 6, operations: vec![6] });
}
