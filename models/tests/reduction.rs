//! Is the reduction right: the same verdicts as from the whole space, and no flaw escapes it.

use base::Seed;
use models::catalog;
use models::explore::{explore, explore_reduced};
use models::sweep;
use models::variant::{Flaw, Variant};

#[test]
fn every_flaw_is_found_in_the_reduced_space_too_and_ours_is_clean_there() {
    for case in catalog::cases() {
        let outcome = explore_reduced(case.variant, case.scenario.clone(), None);
        assert_eq!(outcome.trace.is_some(), case.fault.is_some(), "{}", case.name);
        let ours = explore_reduced(Variant::OURS, case.scenario, None);
        assert!(ours.is_whole, "ours in the company of {}", case.name);
    }
}

#[test]
fn in_random_company_the_reduced_space_has_the_verdict_of_the_whole_one() {
    let flaws = [
        None,
        Some(Flaw::OffsetOfFirstRead),
        Some(Flaw::OffsetInAnyOrder),
        Some(Flaw::ReadsPastFiller),
        Some(Flaw::OwnWordUnchecked),
        Some(Flaw::LapsedIgnored),
        Some(Flaw::DamagedIgnored),
        Some(Flaw::FirstMatchAlone),
        Some(Flaw::WriterInvalidates),
        Some(Flaw::ServerReadsBetween),
        Some(Flaw::OffsetOfAnyBatch),
        Some(Flaw::NoTombstone),
        Some(Flaw::PublishesUnflushed),
        Some(Flaw::CacheSurvivesRestart),
        Some(Flaw::RecordUnchecked),
        Some(Flaw::InvalidatesThenStores),
        Some(Flaw::PlainPayload),
        Some(Flaw::PlainWord),
    ];
    let (mut found, mut states, mut reduced_states) = (0, 0, 0);
    for number in 0..120 {
        let scenario = sweep::scenario(Seed(11), number);
        let flaw = flaws[number as usize % flaws.len()];
        let variant = Variant { flaw, ..Variant::OURS };
        let whole = explore(variant, scenario.clone(), Some(15_000));
        if !whole.is_whole && whole.trace.is_none() {
            continue;
        }
        let reduced = explore_reduced(variant, scenario.clone(), None);
        assert_eq!(whole.trace.is_some(), reduced.trace.is_some(), "{number}: {flaw:?} in {scenario:?}");
        found += u32::from(whole.trace.is_some());
        if whole.is_whole {
            (states, reduced_states) = (states + whole.states, reduced_states + reduced.states);
        }
    }
    assert!(found > 4, "{found}");
    assert!(reduced_states * 3 < states, "{reduced_states} of {states}");
}
