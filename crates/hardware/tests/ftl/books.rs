//! Does the protocol hold: no data are lost, whatever is called in whatever order.

use super::support::{Flash, config, geometry, layer};
use base::Seed;
use hardware::ssd::{BlockId, DieId, EraseOutcome, FtlConfig, TranslationLayer, VictimPolicy};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Call {
    Write(u64),
    Trim(u64),
    Pad,
    Collect(Option<u32>, u32),
    CollectBlock(u32),
    Level,
    Lend(u32),
    TakeBack,
    SaveAndRestore,
    Nonsense(u32),
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        60 => any::<u64>().prop_map(Call::Write),
        6 => any::<u64>().prop_map(Call::Trim),
        2 => Just(Call::Pad),
        12 => (prop::option::of(0u32..4), 1u32..12).prop_map(|(die, pages)| Call::Collect(die, pages)),
        2 => any::<u32>().prop_map(Call::CollectBlock),
        3 => Just(Call::Level),
        2 => (1u32..8).prop_map(Call::Lend),
        2 => Just(Call::TakeBack),
        1 => Just(Call::SaveAndRestore),
        2 => any::<u32>().prop_map(Call::Nonsense),
    ]
}

fn any_config() -> impl Strategy<Value = FtlConfig> {
    let policy = prop_oneof![
        Just(VictimPolicy::Greedy),
        Just(VictimPolicy::CostBenefit),
        Just(VictimPolicy::Random),
        (1u32..5).prop_map(VictimPolicy::Choices)
    ];
    (policy, any::<bool>(), prop::option::of(2u32..12), any::<u64>(), 1u32..6, 1u64..4, 1u64..101).prop_map(
        |(victim, hot_cold, endurance, seed, pages, units, percent)| {
            let geometry = geometry(8, pages, units);
            // Of eight blocks a die, up to five are spare.
            let logical_units = (12 * u64::from(geometry.units_per_block()) * percent / 100).max(1);
            FtlConfig { victim, hot_cold, endurance, seed: Seed(seed), ..config(geometry, logical_units) }
        },
    )
}

fn play(flash: &mut Flash, call: &Call) {
    let units = flash.layer.logical_units();
    match call {
        Call::Write(unit) => {
            if !flash.write(unit % units) {
                flash.collect(None, 100);
            }
        }
        Call::Trim(unit) => flash.trim(unit % units),
        Call::Pad => drop(flash.layer.pad()),
        Call::Collect(die, pages) => flash.collect(die.map(DieId), *pages),
        Call::CollectBlock(block) => flash.collect_block(BlockId(block % 32)),
        Call::Level => flash.level(),
        Call::Lend(count) => flash.lend(*count),
        Call::TakeBack => flash.take_back(),
        Call::SaveAndRestore => save_and_restore(&mut flash.layer),
        Call::Nonsense(number) => talk_nonsense(&mut flash.layer, *number),
    }
}

fn save_and_restore(layer: &mut TranslationLayer) {
    let mut bytes = Vec::new();
    layer.save(&mut bytes).expect("memory takes all bytes");
    *layer = TranslationLayer::restore(layer.config().clone(), bytes.as_slice()).expect("a snapshot just made is good");
}

/// Calls that make no sense at any time.
fn talk_nonsense(layer: &mut TranslationLayer, number: u32) {
    let (unit, block) = (layer.logical_units() + u64::from(number), BlockId(32 + number % 1000));
    assert!(layer.write(unit).is_err() && !layer.trim(unit) && layer.locate(unit).is_none());
    assert_eq!((layer.victim(Some(DieId(4 + number % 1000))), layer.relocate_next(block)), (None, None));
    assert_eq!(layer.erased(block), EraseOutcome::Refused);
    assert!(!layer.collect_block(block) && layer.take_block(block).is_none());
    // A block that is not being emptied, or not yet empty, is not erased.
    let block = BlockId(number % 32);
    if layer.valid_units_of(block).is_some_and(|valid| valid > 0) {
        assert_eq!(layer.erased(block), EraseOutcome::Refused);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a_read_returns_the_last_write_whatever_is_moved_erased_trimmed_or_lent_meanwhile(
        config in any_config(),
        calls in prop::collection::vec(any_call(), 1..900),
    ) {
        let mut flash = Flash::new(layer(config));
        for (count, call) in calls.iter().enumerate() {
            play(&mut flash, call);
            if count % 16 == 0 {
                flash.assert_all_is_well();
            }
        }
        flash.assert_all_is_well();
    }

    #[test]
    fn erase_counts_only_rise(config in any_config(), calls in prop::collection::vec(any_call(), 1..600)) {
        let mut flash = Flash::new(layer(config));
        let mut worn = vec![0; 32];
        for call in &calls {
            play(&mut flash, call);
            for (block, before) in (0u32..).zip(&mut worn) {
                let now = flash.layer.erases_of(BlockId(block)).unwrap_or(*before);
                prop_assert!(now >= *before);
                *before = now;
            }
        }
        let lent_back = { flash.take_back(); worn.iter().map(|erases| u64::from(*erases)).sum::<u64>() };
        prop_assert_eq!(lent_back, flash.layer.counters().erases);
    }
}
