//! Is the model right: where units go.

use super::support::{all, config, geometry, layer, write};
use hardware::ssd::{BlockId, FtlError, PageAddress, TranslationLayer};

#[test]
fn pages_go_to_the_channels_in_turn_and_then_to_the_next_die_of_each() {
    let geometry = geometry(8, 4, 1);
    let mut layer = layer(config(geometry, 32));
    let dies: Vec<u32> =
        (0..5).map(|unit| layer.write(unit).expect("an empty array has room").at.page.block.0 / 8).collect();
    // Dies 0 and 1 are on channel 0, 2 and 3 on channel 1.
    assert_eq!(dies, [0, 2, 1, 3, 0]);
    assert_eq!(layer.dies().iter().map(|die| die.0).collect::<Vec<_>>(), [0, 2, 1, 3]);
}

#[test]
fn a_page_is_programmed_when_its_last_unit_has_come() {
    let mut layer = layer(config(geometry(8, 4, 3), 90));
    let programs: Vec<_> = (0..4).map(|unit| layer.write(unit).expect("an empty array has room").program).collect();
    let first = PageAddress { block: BlockId(0), page: 0 };
    assert_eq!(programs, [None, None, Some(first), None]);
    let second = PageAddress { block: BlockId(16), page: 0 };
    assert!(layer.is_gathering(second) && !layer.is_gathering(first));
    assert_eq!(layer.counters().programs, 1);
}

#[test]
fn padding_closes_the_page_that_gathers_and_none_else() {
    let mut layer = layer(config(geometry(8, 4, 3), 90));
    assert_eq!(layer.pad(), []);
    layer.write(5).expect("an empty array has room");
    let page = PageAddress { block: BlockId(0), page: 0 };
    assert_eq!(layer.pad(), [page]);
    assert_eq!(layer.pad(), []);
    let counters = layer.counters();
    assert_eq!((counters.padded_units, counters.programs, layer.write_amplification()), (2, 1, 3.0));
    assert_eq!(layer.locate(5).map(|at| (at.page, at.slot)), Some((page, 0)));
    layer.check().expect("the books are in order");
}

#[test]
fn a_die_without_a_block_to_spare_loses_its_turn() {
    let geometry = geometry(8, 1, 1);
    // Four blocks on the first die, eight on the second: the first has room for three pages before
    // garbage is collected.
    let blocks = (0..4).chain(8..16).map(BlockId);
    let mut layer = TranslationLayer::new(config(geometry, 6), blocks).expect("there are spare blocks");
    let dies: Vec<u32> =
        (0..10).map(|count| layer.write(count % 6).expect("there is room").at.page.block.0 / 8).collect();
    assert_eq!(dies, [0, 1, 0, 1, 0, 1, 1, 1, 1, 1]);
    assert_eq!(layer.write(0), Err(FtlError::NoFreeBlock));
}

#[test]
fn free_blocks_are_those_not_yet_opened() {
    let geometry = geometry(8, 4, 1);
    let mut layer = layer(config(geometry, 64));
    assert_eq!((layer.free_blocks(), layer.owned_blocks()), (32, 32));
    layer.write(0).expect("an empty array has room");
    assert_eq!((layer.free_blocks(), layer.free_blocks_of(geometry.die_of(BlockId(0)))), (31, 7));
    assert_eq!(layer.free_ratio(), 31.0 / 32.0);
}

#[test]
fn a_victim_stays_the_victim_until_it_is_erased() {
    let mut layer = layer(config(geometry(8, 4, 1), 60));
    (0..240).for_each(|count| write(&mut layer, count * 7 % 60).expect("nothing wears out"));
    let victim = layer.victim(None).expect("there is garbage");
    assert_eq!(layer.victim(None), Some(victim));
    let die = layer.config().geometry.die_of(victim);
    assert_eq!(layer.victim(Some(die)), Some(victim));
    let before = layer.valid_units_of(victim).expect("it is owned");
    let moved: u32 = std::iter::from_fn(|| layer.relocate_next(victim)).map(|relocation| relocation.units).sum();
    assert_eq!((moved, layer.valid_units_of(victim)), (before, Some(0)));
    assert_eq!(layer.erased(victim), hardware::ssd::EraseOutcome::Free);
    assert_ne!(layer.victim(Some(die)), Some(victim));
}

#[test]
fn blocks_that_hold_only_valid_data_are_no_victims() {
    let geometry = geometry(8, 4, 1);
    let mut layer = layer(config(geometry, 64));
    (0..64).for_each(|unit| write(&mut layer, unit).expect("an empty array has room"));
    assert_eq!(layer.victim(None), None);
    layer.trim(3);
    let victim = layer.victim(None).expect("a trimmed unit is garbage");
    assert_eq!(layer.valid_units_of(victim), Some(3));
    let blocks = all(geometry).filter(|block| layer.valid_units_of(*block) == Some(4)).count();
    assert_eq!(blocks, 15);
}
