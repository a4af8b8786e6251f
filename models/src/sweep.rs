//! Random scenarios: they find what nobody thought of. (H1b was found so.)

use crate::scenario::Operation::{CompareAndSwap, Delete, Get, Put, ServerGet};
use crate::scenario::{ABSENT, Budget, Key, Operation, Scenario, Tearing, Value};
use base::{Seed, Stream};

/// The scenario of that number; the same for the same seed.
pub fn scenario(seed: Seed, number: u64) -> Scenario {
    let mut draw = seed.stream(&format!("scenario/{number}"));
    let mut value = 10;
    let clients = 2 + draw.below(2);
    let scenario = Scenario {
        slots: 1 + draw.below(2) as usize,
        initial: [1, if is_one_in(&mut draw, 2) { 5 } else { ABSENT }],
        cached: [[None, Some(0), Some(1)][draw.below(3) as usize], None, None],
        programs: (0..clients).map(|_| program(&mut draw, &mut value)).collect(),
        tearing: [Tearing::None, Tearing::None, Tearing::Slots, Tearing::Words][draw.below(4) as usize],
        payload_parts: 1 + usize::from(is_one_in(&mut draw, 3)),
        values_apart: is_one_in(&mut draw, 3),
        batches: 1 + usize::from(is_one_in(&mut draw, 3)),
        fingerprints_collide: is_one_in(&mut draw, 3),
        answers_early: is_one_in(&mut draw, 2),
        budget: budget(&mut draw),
    };
    within_bounds(scenario)
}

/// Three clients that read two slots word by word take hours: `catalog::large` has some of them,
/// random ones read slot by slot.
fn within_bounds(scenario: Scenario) -> Scenario {
    let is_crowded = scenario.slots > 1 && scenario.programs.len() > 2;
    let tearing = if is_crowded && scenario.tearing == Tearing::Words { Tearing::Slots } else { scenario.tearing };
    Scenario { tearing, ..scenario }
}

fn is_one_in(draw: &mut Stream, many: u64) -> bool {
    draw.below(many) == 0
}

/// One or two operations, of which most are reads, and most on `x`.
fn program(draw: &mut Stream, value: &mut Value) -> Vec<Operation> {
    let length = 1 + draw.below(2);
    (0..length).map(|_| operation(draw, value)).collect()
}

fn operation(draw: &mut Stream, value: &mut Value) -> Operation {
    let key = Key::from(is_one_in(draw, 3));
    *value += 1;
    match draw.below(18) {
        0..10 => Get(key),
        10..14 => Put(key, *value),
        14..16 => Delete(key),
        16 => ServerGet(key),
        _ => CompareAndSwap { key, expected: 1, new: *value },
    }
}

/// Up to two mishaps.
fn budget(draw: &mut Stream) -> Budget {
    let mut budget = Budget::default();
    for _ in 0..draw.below(3) {
        match draw.below(6) {
            0 | 1 => budget.lapses += 1,
            2 => budget.deaths = 1,
            3 => budget.crashes = 1,
            4 => budget.overwrites = 1,
            _ => budget.moves = 1,
        }
    }
    budget
}
