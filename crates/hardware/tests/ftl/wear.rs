//! Is the model right: wear, levelling and the end of life.

use super::support::{config, empty, geometry, layer, write};
use base::Seed;
use hardware::ssd::{FtlConfig, FtlError, TranslationLayer};

/// Overwrites a tenth of a layer's units at random, `writes` times; what is in the rest never
/// changes.
fn overwrite_a_tenth(layer: &mut TranslationLayer, writes: u32, spread_max: Option<u32>) {
    let mut stream = Seed(3).stream("overwrites");
    for _ in 0..writes {
        let unit = stream.below(layer.logical_units() / 10);
        write(layer, unit).expect("nothing wears out");
        if let Some(victim) = spread_max.and_then(|spread| layer.level_step(spread)) {
            empty(layer, victim);
        }
    }
}

#[test]
fn blocks_of_data_that_lie_still_wear_only_if_they_are_levelled() {
    let spread = |spread_max| {
        let mut layer = layer(config(geometry(32, 16, 1), 1_600));
        (0..1_600).for_each(|unit| write(&mut layer, unit).expect("nothing wears out"));
        overwrite_a_tenth(&mut layer, 60_000, spread_max);
        layer.check().expect("the books are in order");
        (layer.wear(), layer.counters().levelled_blocks)
    };
    let (still, moved) = spread(None);
    assert_eq!((still.min, moved), (0, 0));
    assert!(still.spread() > 60, "{still:?}");
    let (levelled, moved) = spread(Some(5));
    // Dies are not levelled against each other, and blocks go on wearing while one waits for its
    // die's turn.
    assert!(levelled.spread() < 15 && levelled.min > 0 && moved > 0, "{levelled:?}");
}

#[test]
fn the_coldest_block_is_a_least_worn_one_and_the_hottest_a_most_worn_one() {
    let mut layer = layer(config(geometry(32, 16, 1), 1_600));
    assert_eq!(layer.coldest(), None);
    (0..1_600).for_each(|unit| write(&mut layer, unit).expect("nothing wears out"));
    overwrite_a_tenth(&mut layer, 10_000, None);
    let erases = |block| layer.erases_of(block).expect("it is owned");
    assert_eq!(layer.coldest().map(erases), Some(layer.wear().min));
    assert_eq!(layer.hottest().map(erases), Some(layer.wear().max));
}

#[test]
fn a_block_goes_bad_with_its_last_erase_and_the_region_ends_when_nothing_can_be_collected() {
    let endurance = 20;
    let mut layer = layer(FtlConfig { endurance: Some(endurance), ..config(geometry(16, 8, 2), 700) });
    let mut stream = Seed(4).stream("overwrites");
    let end = loop {
        let unit = stream.below(700);
        if let Err(error) = write(&mut layer, unit) {
            break error;
        }
    };
    layer.check().expect("the books are in order");
    let FtlError::WornOut { good_blocks, bad_blocks, valid_units } = end else { panic!("{end}") };
    assert_eq!((u64::from(good_blocks) + bad_blocks, valid_units), (64, 700));
    assert!(bad_blocks > 0 && layer.counters().bad_blocks == bad_blocks);
    // No block was erased more often than it may be, and none had less than all erases when it went
    // bad.
    assert!(layer.wear().max < endurance);
    assert!(layer.counters().erases >= bad_blocks * u64::from(endurance));
    assert!((0..700).all(|unit| layer.locate(unit).is_some()));
}

#[test]
fn capacity_shrinks_with_each_bad_block() {
    let mut layer = layer(FtlConfig { endurance: Some(1), ..config(geometry(8, 4, 1), 16) });
    let before = layer.units_max();
    (0..48).for_each(|count| write(&mut layer, count % 16).expect("there is room"));
    let victim = layer.victim(None).expect("there is garbage");
    while layer.relocate_next(victim).is_some() {}
    assert_eq!(layer.erased(victim), hardware::ssd::EraseOutcome::Bad);
    assert_eq!((layer.owned_blocks(), layer.units_max()), (31, before - 4));
    assert_eq!(layer.erased(victim), hardware::ssd::EraseOutcome::Refused);
}
