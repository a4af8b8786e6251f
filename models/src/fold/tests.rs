//! Is the fold right: states with one key have the same futures.

use super::{Bytes, Folding};
use crate::catalog;
use crate::model::{CacheModel, Step};
use crate::scenario::Scenario;
use crate::state::State;
use crate::sweep;
use crate::variant::Variant;
use base::Seed;
use stateright::Model;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hash;

/// The keys of what can follow; a mishap that strikes nobody is none.
fn futures(folding: &Folding, state: &State) -> Vec<(Step, State)> {
    let mut steps = Vec::new();
    folding.model.actions(state, &mut steps);
    let is_felt = |step: &Step| match *step {
        Step::Overwrite { place } => folding.leads_to(state, place),
        Step::OverwriteValue { place } => folding.leads_to_value(state, place),
        _ => true,
    };
    let steps = steps.into_iter().filter(is_felt);
    steps.filter_map(|step| Some((step, folding.model.next_state(state, step)?))).collect()
}

fn whole(state: &State) -> Vec<u8> {
    let mut bytes = Bytes(Vec::new());
    state.hash(&mut bytes);
    bytes.0
}

/// States that were seen, and keys, and the first two states with one key and different futures.
fn compare(variant: Variant, scenario: Scenario, states_max: usize) -> (usize, usize, Option<String>) {
    let folding = Folding::new(CacheModel { variant, scenario });
    let mut seen = BTreeSet::new();
    let mut by_key: BTreeMap<Vec<u8>, (BTreeSet<Vec<u8>>, State)> = BTreeMap::new();
    let mut left: VecDeque<State> = folding.model.init_states().into();
    while let Some(state) = left.pop_front().filter(|_| seen.len() < states_max) {
        let next = futures(&folding, &state);
        let keys: BTreeSet<Vec<u8>> = next.iter().map(|(_, state)| folding.key(state)).collect();
        let (known, first) = by_key.entry(folding.key(&state)).or_insert_with(|| (keys.clone(), state.clone()));
        if *known != keys {
            let different = format!("{first:?}\n{state:?}");
            return (seen.len(), by_key.len(), Some(different));
        }
        left.extend(next.into_iter().map(|(_, state)| state).filter(|state| seen.insert(whole(state))));
    }
    (seen.len(), by_key.len(), None)
}

#[test]
fn states_that_count_as_one_have_the_same_futures_in_every_case() {
    for case in catalog::cases() {
        for variant in [case.variant, Variant::OURS] {
            let (_, _, different) = compare(variant, case.scenario.clone(), 4_000);
            assert!(different.is_none(), "{}, {variant:?}: {}", case.name, different.unwrap_or_default());
        }
    }
}

#[test]
fn states_that_count_as_one_have_the_same_futures_in_random_company() {
    let (mut states, mut keys) = (0, 0);
    for number in 0..40 {
        let scenario = sweep::scenario(Seed(5), number);
        let (all, folded, different) = compare(Variant::OURS, scenario.clone(), 4_000);
        assert!(different.is_none(), "{scenario:?}: {}", different.unwrap_or_default());
        (states, keys) = (states + all, keys + folded);
    }
    assert!(keys * 10 < states * 9, "{keys} of {states}");
}
