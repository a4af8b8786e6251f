//! Does the protocol hold: a snapshot is all of a layer or an error.

use super::support::{config, geometry, layer, write};
use base::Seed;
use hardware::ssd::{FtlConfig, TranslationLayer, VictimPolicy};
use proptest::prelude::*;

/// In the middle of collecting, and with pages that are not full.
fn busy_layer() -> TranslationLayer {
    let random = FtlConfig { victim: VictimPolicy::Random, hot_cold: true, ..config(geometry(16, 8, 3), 1_000) };
    let mut layer = layer(random);
    let mut stream = Seed(5).stream("overwrites");
    (0..8_000).for_each(|_| write(&mut layer, stream.below(1_000)).expect("nothing wears out"));
    let victim = layer.victim(None).expect("there is garbage");
    layer.relocate_next(victim).expect("it holds something valid");
    layer
}

fn saved(layer: &TranslationLayer) -> Vec<u8> {
    let mut bytes = Vec::new();
    layer.save(&mut bytes).expect("memory takes all bytes");
    bytes
}

#[test]
fn a_restored_layer_goes_on_as_the_saved_one() {
    let mut one = busy_layer();
    let bytes = saved(&one);
    let mut other = TranslationLayer::restore(one.config().clone(), bytes.as_slice()).expect("the snapshot is good");
    assert_eq!(saved(&other), bytes);
    let mut stream = Seed(6).stream("overwrites");
    for _ in 0..5_000 {
        let unit = stream.below(1_000);
        write(&mut one, unit).expect("nothing wears out");
        write(&mut other, unit).expect("nothing wears out");
        assert_eq!(one.locate(unit), other.locate(unit));
    }
    assert_eq!(saved(&one), saved(&other));
}

#[test]
fn a_snapshot_of_another_configuration_is_refused() {
    let layer = busy_layer();
    let bytes = saved(&layer);
    let with = |config| TranslationLayer::restore(config, bytes.as_slice());
    let original = layer.config().clone();
    assert!(with(FtlConfig { geometry: geometry(16, 8, 1), ..original.clone() }).is_err());
    assert!(with(FtlConfig { logical_units: 999, ..original.clone() }).is_err());
    assert!(with(FtlConfig { hot_cold: false, ..original.clone() }).is_err());
    let greedy = with(FtlConfig { victim: VictimPolicy::Greedy, ..original }).expect("a policy may change");
    assert_eq!(greedy.config().victim, VictimPolicy::Greedy);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_damaged_snapshot_is_an_error(at in any::<prop::sample::Index>(), bit in 0u32..8, is_cut in any::<bool>()) {
        let layer = busy_layer();
        let mut bytes = saved(&layer);
        let at = at.index(bytes.len());
        if is_cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        prop_assert!(TranslationLayer::restore(layer.config().clone(), bytes.as_slice()).is_err());
    }

    /// Whoever forges a checksum still meets bounds everywhere.
    #[test]
    fn a_forged_snapshot_is_an_error_or_a_layer_in_order(at in any::<prop::sample::Index>(), word in any::<u64>(), small in any::<bool>()) {
        let layer = busy_layer();
        let mut bytes = saved(&layer);
        let words = bytes.len() / 8 - 1;
        let at = at.index(words) * 8;
        let word = if small { word % 2_000 } else { word };
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        let checksum = u64::from(crc32fast::hash(&bytes[..words * 8]));
        bytes[words * 8..].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(mut forged) = TranslationLayer::restore(layer.config().clone(), bytes.as_slice()) {
            for unit in 0..200 {
                // It may have no spare blocks, which a write says.
                let _ = forged.write(unit);
                forged.victim(None).into_iter().for_each(|victim| while forged.relocate_next(victim).is_some() {});
            }
            forged.check().expect("the books are in order");
        }
    }
}
