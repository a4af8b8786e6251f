//! Is the model right: how much fits, and what is refused with which numbers.

use super::support::{all, config, geometry, layer};
use base::Bytes;
use hardware::ssd::{BlockId, FtlConfig, FtlError, Geometry, SpareBlock, TranslationLayer, VictimPolicy};

#[test]
fn a_region_holds_its_blocks_without_three_of_each_die_and_not_a_unit_more() {
    let geometry = geometry(8, 4, 2);
    let fits = u64::from(4 * (8 - 3) * geometry.units_per_block());
    assert_eq!(layer(config(geometry, fits)).units_max(), fits);
    let error = TranslationLayer::new(config(geometry, fits + 1), all(geometry)).expect_err("a unit too much");
    assert_eq!(
        error.to_string(),
        "161 units do not fit: 32 blocks on 4 dies hold at most 160 beside the 3 spare blocks that each die needs"
    );
    let apart = FtlConfig { hot_cold: true, ..config(geometry, fits) };
    assert!(matches!(TranslationLayer::new(apart, all(geometry)), Err(FtlError::NoSpare { spare: 5, .. })));
}

#[test]
fn a_region_without_over_provisioning_is_refused() {
    let geometry = geometry(8, 4, 1);
    let error = TranslationLayer::new(config(geometry, geometry.units()), all(geometry)).expect_err("no spare space");
    assert!(
        matches!(error, FtlError::NoSpare { logical_units: 128, units_max: 80, blocks: 32, dies: 4, spare: 3 }),
        "{error}"
    );
}

#[test]
fn blocks_that_do_not_exist_or_come_twice_are_refused() {
    let geometry = geometry(8, 4, 1);
    let with = |blocks: Vec<u32>| TranslationLayer::new(config(geometry, 1), blocks.into_iter().map(BlockId)).map(drop);
    assert_eq!(with((0..33).collect()), Err(FtlError::UnknownBlock { block: BlockId(32), blocks: 32 }));
    assert_eq!(with(vec![1, 2, 3, 4, 1]), Err(FtlError::OwnedAlready { block: BlockId(1) }));
    let mut all = layer(config(geometry, 1));
    let again = [SpareBlock { block: BlockId(5), erases: 0 }];
    assert_eq!(all.give(&again), Err(FtlError::OwnedAlready { block: BlockId(5) }));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let bad = Geometry { unit: Bytes::new(3000), ..geometry(8, 4, 1) };
    let error = TranslationLayer::new(config(bad, 1), []).expect_err("3000 B do not divide a page");
    assert_eq!(error.to_string(), "unit: 3000 B do not divide a page of 4096 B");
    let choices = FtlConfig { victim: VictimPolicy::Choices(0), ..config(geometry(8, 4, 1), 1) };
    assert_eq!(TranslationLayer::new(choices, []).map(drop), Err(FtlError::NoChoice));
    let mut layer = layer(config(geometry(8, 4, 1), 10));
    assert_eq!(layer.write(10).map(drop), Err(FtlError::OutOfRange { unit: 10, units: 10 }));
}

#[test]
fn lending_stops_at_what_the_data_need_and_blocks_come_back_with_their_wear() {
    let geometry = geometry(8, 4, 1);
    // Five blocks of each die can hold data: 16 of those 20 are needed.
    let mut layer = layer(config(geometry, 64));
    let lent = layer.take_free(100);
    assert_eq!((lent.len(), layer.owned_blocks(), layer.units_max()), (4, 28, 64));
    let dies: Vec<u32> = lent.iter().map(|spare| geometry.die_of(spare.block).0).collect();
    assert_eq!(dies, [0, 1, 2, 3]);
    assert_eq!(layer.locate(0), None);
    let worn: Vec<SpareBlock> = lent.iter().map(|spare| SpareBlock { erases: 9, ..*spare }).collect();
    layer.give(&worn).expect("they are not owned");
    assert_eq!((layer.erases_of(lent[0].block), layer.wear().max, layer.owned_blocks()), (Some(9), 9, 32));
}

#[test]
fn a_region_can_grow_onto_dies_that_it_had_no_blocks_on() {
    let geometry = geometry(8, 4, 1);
    let mut layer = TranslationLayer::new(config(geometry, 20), (0..8).map(BlockId)).expect("there are spare blocks");
    let blocks: Vec<SpareBlock> = (8..32).map(|block| SpareBlock { block: BlockId(block), erases: 1 }).collect();
    layer.give(&blocks).expect("they are not owned");
    assert_eq!(layer.dies().iter().map(|die| die.0).collect::<Vec<_>>(), [0, 2, 1, 3]);
    for unit in 0..20 {
        layer.write(unit).expect("there is room");
    }
    assert_eq!((0..20).filter_map(|unit| layer.locate(unit)).count(), 20);
    layer.check().expect("the books are in order");
}

/// 512 GB in units of 16 KiB with 12.5 % beside; 16 channels, 8 dies each, 256 pages a block. A
/// drive that shows 512 GB and has 12.5 % more, mapped in units of this size: how many units it
/// shows, and what its tables take.
fn tables_of_512_gb(unit: Bytes) -> (u64, u64) {
    let geometry = Geometry {
        channels: 16,
        dies_per_channel: 8,
        planes_per_die: 2,
        blocks_per_plane: 537,
        pages_per_block: 256,
        page: Bytes::kib(16),
        unit,
    };
    let logical_units = 512_000_000_000 / unit.count();
    assert!(geometry.units() as f64 > 1.125 * logical_units as f64);
    (logical_units, layer(config(geometry, logical_units)).memory_bytes())
}

#[test]
fn the_tables_of_512_gb_in_whole_pages_take_less_than_200_mb() {
    let (_, bytes) = tables_of_512_gb(Bytes::kib(16));
    assert!(bytes < 200_000_000, "{bytes}");
}

/// 125 million units cannot be told apart in less than 27 bits each, which is 422 MB for one
/// direction of the map.
#[test]
fn the_tables_of_512_gb_in_units_of_4_kib_take_less_than_7_bytes_a_unit() {
    let (units, bytes) = tables_of_512_gb(Bytes::kib(4));
    assert!(bytes < 7 * units, "{bytes}");
}
