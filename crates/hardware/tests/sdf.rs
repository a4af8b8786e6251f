//! Software-defined flash: regions keep apart what they should, collect step by step, lend and get
//! back, and never lose data.

use base::{Bytes, Rate, Seed, Span, Time};
use hardware::ssd::{
    BlockId, CollectStep, DieId, Geometry, Isolation, KeptFree, PageTimes, PreconditionError, RegionConfig, RegionId,
    SdfConfig, SdfError, SoftwareDefinedFlash, Steady, Suspension, Timing, UnitAddress, VictimPolicy,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const CHANNELS: u32 = 4;
const DIES: u32 = 2;
const BLOCKS: u32 = 16;
const PAGES: u32 = 8;
const WITHOUT_FLASH: Span = Span::us(2);

fn flash() -> SoftwareDefinedFlash {
    let geometry = Geometry {
        channels: CHANNELS,
        dies_per_channel: DIES,
        planes_per_die: 1,
        blocks_per_plane: BLOCKS,
        pages_per_block: PAGES,
        page: Bytes::kib(8),
        unit: Bytes::kib(4),
    };
    let timing = Timing {
        pages: vec![PageTimes { read: Span::us(50), program: Span::us(500) }],
        erase: Span::ms(3),
        channel: Rate::gbps(8),
        command: Span::ZERO,
        suspension: Suspension::None,
    };
    SoftwareDefinedFlash::new(SdfConfig { geometry, timing, without_flash: WITHOUT_FLASH }).expect("a sound array")
}
fn dies(channels: std::ops::Range<u32>) -> Vec<DieId> {
    (channels.start * DIES..channels.end * DIES).map(DieId).collect()
}
fn region(dies: Vec<DieId>, isolation: Isolation, logical_units: u64) -> RegionConfig {
    let (victim, seed) = (VictimPolicy::Greedy, Seed(1));
    RegionConfig { dies, isolation, logical_units, victim, hot_cold: false, endurance: None, seed }
}
/// One channel: 2 dies of 16 blocks of 16 units are 512 units.
fn one_channel(channel: u32) -> RegionConfig {
    region(dies(channel..channel + 1), Isolation::Hardware, 300)
}
/// Half of the blocks of two channels: 4 dies of 8 blocks.
fn half(blocks: std::ops::Range<u32>) -> RegionConfig {
    region(dies(0..2), Isolation::Software { blocks }, 200)
}
/// Fills a region and overwrites until it has `free` free blocks.
fn age(flash: &mut SoftwareDefinedFlash, id: RegionId, free: u32) {
    let units = flash.layer(id).expect("a region").logical_units();
    let mut unit = 0;
    while unit < units || flash.layer(id).expect("a region").free_blocks() > free {
        flash.write_untimed(id, unit * 7 % units).expect("room");
        unit += 1;
    }
}
/// Collects on a die until a block is erased; returns when that is done.
fn collect_block(flash: &mut SoftwareDefinedFlash, id: RegionId, die: Option<DieId>, start: Time) -> Option<Time> {
    let mut now = start;
    loop {
        let step = flash.collect_step(now, id, die).expect("a region");
        now = step.end()?;
        if let CollectStep::Erased { .. } = step {
            return Some(now);
        }
    }
}

#[test]
fn a_unit_that_was_never_written_or_still_gathers_is_answered_without_flash() {
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    let fresh = flash.read(Time::us(1), id, 5, Bytes::kib(4)).expect("in range");
    assert_eq!((fresh.end, fresh.service), (Time::us(3), WITHOUT_FLASH));
    assert_eq!(flash.write(Time::us(1), id, 5).expect("room").program, None);
    assert_eq!(flash.read(Time::us(1), id, 5, Bytes::kib(4)).expect("in range").service, WITHOUT_FLASH);
    assert!(flash.write(Time::us(1), id, 6).expect("room").program.is_some());
    assert!(flash.read(Time::us(1), id, 5, Bytes::kib(4)).expect("in range").end > Time::us(500));
}

#[test]
fn a_partial_page_is_programmed_on_demand() {
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    flash.write(Time::ZERO, id, 0).expect("room");
    let transfer = Rate::gbps(8).span_of(Bytes::kib(8));
    assert_eq!(flash.flush_partial(Time::ZERO, id).expect("a region"), Some(Time::us(500) + transfer));
    assert_eq!(flash.flush_partial(Time::ZERO, id).expect("a region"), None);
}

#[test]
fn writes_stall_when_blocks_run_out_and_go_on_after_collection() {
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    let mut written = 0;
    let refused = loop {
        match flash.write(Time::ZERO, id, written % 300) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(refused.is_no_free_block(), "{refused}");
    assert_eq!(flash.counters(id).expect("a region").stalls, 1);
    assert!((300..512).contains(&written));
    collect_block(&mut flash, id, None, Time::secs(1)).expect("something to collect");
    flash.write(Time::secs(2), id, 0).expect("a block is free again");
}

#[test]
fn collection_of_one_region_does_not_touch_reads_of_another_on_other_channels() {
    let mut flash = flash();
    let (quiet, busy) = (flash.create(one_channel(0)), flash.create(one_channel(1)));
    let (quiet, busy) = (quiet.expect("free channels"), busy.expect("free channels"));
    age(&mut flash, quiet, 6);
    age(&mut flash, busy, 6);
    flash.collect_step(Time::ZERO, busy, None).expect("a region");
    let booked = flash.read(Time::ZERO, quiet, 1, Bytes::kib(4)).expect("in range");
    assert_eq!((booked.wait, booked.collection_wait), (Span::ZERO, Span::ZERO));
}

#[test]
fn a_read_behind_a_step_of_collection_says_so() {
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    age(&mut flash, id, 6);
    let unit = 1;
    let at = flash.layer(id).expect("a region").locate(unit).expect("written");
    let die = flash.geometry().die_of(at.page.block);
    let step = flash.collect_step(Time::ZERO, id, Some(die)).expect("a region");
    let end = step.end().expect("something to collect");
    let booked = flash.read(Time::ZERO, id, unit, Bytes::kib(4)).expect("in range");
    assert_eq!((booked.wait, booked.collection_wait), (Span::ZERO, end - Time::ZERO));
    assert_eq!(flash.counters(id).expect("a region").read_collection_wait, booked.collection_wait);
}

#[test]
fn dies_of_a_region_collect_side_by_side() {
    let mut flash = flash();
    let id = flash.create(region(dies(0..2), Isolation::Hardware, 600)).expect("free channels");
    age(&mut flash, id, 10);
    let first = flash.collect_step(Time::ZERO, id, Some(DieId(0))).expect("a region");
    let second = flash.collect_step(Time::ZERO, id, Some(DieId(2))).expect("a region");
    let waits = |step: CollectStep| step.booked().map(|booked| booked.wait + booked.collection_wait);
    assert_eq!((waits(first), waits(second)), (Some(Span::ZERO), Some(Span::ZERO)));
}

#[test]
fn a_collected_block_is_read_programmed_and_erased_and_then_free() {
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    age(&mut flash, id, 6);
    let before = flash.layer_counters(id).expect("a region");
    let free = flash.layer(id).expect("a region").free_blocks();
    let mut steps = (0, 0, 0);
    let mut now = Time::ZERO;
    while steps.2 == 0 {
        let step = flash.collect_step(now, id, Some(DieId(1))).expect("a region");
        match step {
            CollectStep::Read(_) => steps.0 += 1,
            CollectStep::Programmed(_) => steps.1 += 1,
            CollectStep::Erased { freed, .. } => {
                assert!(freed);
                steps.2 += 1;
            }
            CollectStep::Nothing => panic!("there is something to collect"),
        }
        now = step.end().expect("a step ends");
    }
    let after = flash.layer_counters(id).expect("a region");
    assert!(steps.0 <= u64::from(PAGES) && after.relocated_units - before.relocated_units >= steps.0);
    assert_eq!(after.programs - before.programs, steps.1);
    assert!(flash.layer(id).expect("a region").free_blocks() >= free);
    assert!(flash.free_ratio(id).expect("a region") > 0.0);
}

#[test]
fn regions_that_do_not_fit_are_refused_with_the_numbers() {
    let mut flash = flash();
    flash.create(half(0..8)).expect("free blocks");
    let refusal =
        |flash: &mut SoftwareDefinedFlash, config| flash.create(config).expect_err("does not fit").to_string();
    assert_eq!(refusal(&mut flash, half(7..12)), "blocks 7..8 of die 0 belong to region 0");
    assert_eq!(refusal(&mut flash, half(8..17)), "blocks 8..17 of each die do not exist: a die has 16");
    assert_eq!(refusal(&mut flash, one_channel(1)), "channel 1 belongs to region 0");
    let part = region(vec![DieId(6)], Isolation::Hardware, 10);
    assert_eq!(
        refusal(&mut flash, part),
        "hardware isolation needs whole channels: 1 of the 2 dies of channel 3 were given"
    );
    assert_eq!(
        refusal(&mut flash, region(vec![DieId(8)], Isolation::Hardware, 10)),
        "die 8 does not exist: the array has 8"
    );
    assert!(refusal(&mut flash, region(dies(2..3), Isolation::Hardware, 512)).contains("512 units do not fit"));
    flash.create(half(8..16)).expect("the other half is free");
}

#[test]
fn nothing_is_done_for_regions_units_or_dies_that_do_not_exist() {
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    assert!(matches!(flash.read(Time::ZERO, RegionId(9), 0, Bytes::kib(4)), Err(SdfError::UnknownRegion(_))));
    assert!(flash.read(Time::ZERO, id, 300, Bytes::kib(4)).is_err());
    assert!(flash.write(Time::ZERO, id, 300).is_err());
    assert!(flash.trim(id, 300).is_err());
    assert!(matches!(flash.read(Time::ZERO, id, 0, Bytes::kib(8)), Err(SdfError::BeyondUnit { .. })));
    assert!(matches!(flash.collect_step(Time::ZERO, id, Some(DieId(8))), Err(SdfError::UnknownDie { .. })));
}

#[test]
fn borrowed_blocks_let_a_full_neighbour_write_on_and_go_back_after_its_collection() {
    let mut flash = flash();
    let (lender, borrower) = (flash.create(half(0..8)), flash.create(half(8..16)));
    let (lender, borrower) = (lender.expect("free blocks"), borrower.expect("free blocks"));
    let free = flash.layer(lender).expect("a region").free_blocks();
    while flash.write(Time::ZERO, borrower, 0).is_ok() {}
    flash.lend(lender, borrower, 6).expect("an empty neighbour can lend");
    assert_eq!(flash.layer(lender).expect("a region").free_blocks(), free - 6);
    for _ in 0..64 {
        flash.write(Time::ZERO, borrower, 0).expect("six blocks of 16 units more");
    }
    while flash.borrowed(borrower) > 0 {
        collect_block(&mut flash, borrower, None, Time::secs(1)).expect("only one unit is valid");
        flash.return_lent(borrower).expect("regions");
    }
    assert_eq!(flash.lent(lender), 0);
    assert_eq!(flash.layer(lender).expect("a region").free_blocks(), free);
    let erased: u64 = [lender, borrower].iter().map(|id| u64::from(flash.wear(*id).expect("a region").max)).sum();
    assert!(erased > 0);
}

#[test]
fn lending_is_all_or_nothing_and_inside_a_channel_group_only() {
    let mut flash = flash();
    let (lender, borrower) = (flash.create(half(0..8)), flash.create(half(8..16)));
    let (lender, borrower) = (lender.expect("free blocks"), borrower.expect("free blocks"));
    let stranger = flash.create(one_channel(3)).expect("a free channel");
    assert!(matches!(flash.lend(lender, stranger, 1), Err(SdfError::NotOneGroup { .. })));
    assert!(matches!(flash.lend(lender, lender, 1), Err(SdfError::NotOneGroup { .. })));
    let free = flash.layer(lender).expect("a region").free_blocks();
    assert!(matches!(flash.lend(lender, borrower, free), Err(SdfError::TooFewFree { .. })));
    assert_eq!(flash.layer(lender).expect("a region").free_blocks(), free);
    assert_eq!(flash.return_lent(borrower).expect("a region"), 0);
}

#[test]
fn a_deleted_region_leaves_its_blocks_erased_and_their_wear_behind() {
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    age(&mut flash, id, 6);
    for unit in 0..2_000 {
        flash.write_untimed(id, unit % 300).expect("room");
    }
    let worn = flash.wear(id).expect("a region").mean;
    let erased = flash.delete(Time::ZERO, id).expect("no debts");
    assert_eq!(erased, Time::ms(3 * u64::from(BLOCKS)), "both dies erase all their blocks at the same time");
    assert!(flash.read(erased, id, 0, Bytes::kib(4)).is_err());
    let next = flash.create(one_channel(0)).expect("its channels are free again");
    let wear = flash.wear(next).expect("a region").mean;
    assert!((wear - worn - 1.0).abs() < 1e-9, "{wear} after {worn}");
    assert_eq!(flash.device_wear().expect("blocks").blocks, DIES * BLOCKS);
}

#[test]
fn a_region_with_debts_can_neither_be_deleted_nor_restored() {
    let mut flash = flash();
    let (lender, borrower) = (flash.create(half(0..8)), flash.create(half(8..16)));
    let (lender, borrower) = (lender.expect("free blocks"), borrower.expect("free blocks"));
    let mut saved = Vec::new();
    flash.save(lender, &mut saved).expect("memory can be written");
    flash.lend(lender, borrower, 2).expect("free blocks");
    assert!(matches!(flash.delete(Time::ZERO, lender), Err(SdfError::Indebted { blocks: 2, .. })));
    assert!(matches!(flash.restore(borrower, saved.as_slice()), Err(SdfError::Indebted { blocks: 2, .. })));
    flash.return_lent(borrower).expect("free blocks");
    flash.restore(lender, saved.as_slice()).expect("its own snapshot");
    flash.delete(Time::ZERO, lender).expect("no debts left");
}

/// What flash really holds: a version of a unit at each physical place that was written since its
/// erase.
#[derive(Default)]
struct Chips {
    contents: BTreeMap<UnitAddress, (u64, u64)>,
    /// Where each unit of each region was found last.
    places: BTreeMap<(RegionId, u64), UnitAddress>,
    versions: BTreeMap<(RegionId, u64), u64>,
}

impl Chips {
    fn write(&mut self, id: RegionId, unit: u64, at: UnitAddress) {
        let version = self.versions.entry((id, unit)).or_default();
        *version += 1;
        assert_eq!(self.contents.insert(at, (unit, *version)), None, "a place is written once between erases");
        self.places.insert((id, unit), at);
    }
    /// Copies what collection has moved, from place to place as a controller does.
    fn follow(&mut self, flash: &SoftwareDefinedFlash, id: RegionId) {
        let layer = flash.layer(id).expect("a region");
        for ((_, unit), place) in self.places.iter_mut().filter(|((region, _), _)| *region == id) {
            let at = layer.locate(*unit).expect("written units stay mapped");
            if at != *place {
                let moved = self.contents[place];
                assert_eq!(self.contents.insert(at, moved), None, "a place is written once between erases");
                *place = at;
            }
        }
    }
    fn erase(&mut self, flash: &SoftwareDefinedFlash, id: RegionId, blocks: &BTreeMap<BlockId, u32>) {
        let erased = erase_counts(flash, id);
        let changed = |block: &BlockId| erased.get(block) != blocks.get(block);
        self.contents.retain(|at, _| !changed(&at.page.block) || !blocks.contains_key(&at.page.block));
    }
    fn check(&self) {
        for (unit, place) in &self.places {
            assert_eq!(self.contents.get(place), Some(&(unit.1, self.versions[unit])), "a read finds the last write");
        }
    }
}

fn erase_counts(flash: &SoftwareDefinedFlash, id: RegionId) -> BTreeMap<BlockId, u32> {
    let counts = flash.layer(id).expect("a region").erase_counts();
    counts.into_iter().map(|spare| (spare.block, spare.erases)).collect()
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Write(u64),
    Collect(Option<u32>),
    Level,
    Lend,
    Return,
    Flush,
}

fn act() -> impl Strategy<Value = (usize, Act)> {
    let act = prop_oneof![
        20 => (0..200u64).prop_map(Act::Write),
        20 => prop::option::of(0..4u32).prop_map(Act::Collect),
        1 => Just(Act::Level),
        1 => Just(Act::Lend),
        1 => Just(Act::Return),
        1 => Just(Act::Flush),
    ];
    (0..2usize, act)
}

/// Takes a step of collection, and lets the chips do the same.
fn collect(flash: &mut SoftwareDefinedFlash, chips: &mut Chips, now: Time, id: RegionId, die: Option<DieId>) {
    let blocks = erase_counts(flash, id);
    let step = flash.collect_step(now, id, die).expect("a region");
    chips.follow(flash, id);
    if let CollectStep::Erased { .. } = step {
        chips.erase(flash, id, &blocks);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_data_are_lost_whatever_is_collected_levelled_or_lent(acts in prop::collection::vec(act(), 1..1_500)) {
        let mut flash = flash();
        let ids = [flash.create(half(0..8)).expect("free blocks"), flash.create(half(8..16)).expect("free blocks")];
        let mut chips = Chips::default();
        let mut now = Time::ZERO;
        for (index, act) in acts {
            let (id, neighbour) = (ids[index], ids[1 - index]);
            now += Span::us(100);
            match act {
                Act::Write(unit) => match flash.write(now, id, unit) {
                    Ok(written) => chips.write(id, unit, written.at),
                    Err(error) => {
                        prop_assert!(error.is_no_free_block(), "{error}");
                        (0..40).for_each(|_| collect(&mut flash, &mut chips, now, id, None));
                    }
                },
                Act::Collect(die) => collect(&mut flash, &mut chips, now, id, die.map(DieId)),
                Act::Level => {
                    flash.level_step(id, 2).expect("a region");
                }
                Act::Lend => {
                    // Refused where the neighbour needs its blocks itself, which is as good.
                    let _ = flash.lend(neighbour, id, 2);
                }
                Act::Return => {
                    flash.return_lent(id).expect("a region");
                }
                Act::Flush => {
                    flash.flush_partial(now, id).expect("a region");
                }
            }
        }
        chips.check();
        for id in ids {
            prop_assert_eq!(flash.layer(id).expect("a region").check(), Ok(()));
        }
        let owned: u32 = ids.iter().map(|id| flash.layer(*id).expect("a region").owned_blocks()).sum();
        prop_assert_eq!(owned, 4 * BLOCKS);
    }
}

const KEPT: KeptFree = KeptFree { begin: 0.2, end: 0.25 };

#[test]
fn a_region_is_fragmented_until_its_write_amplification_is_steady_with_its_free_blocks_kept() {
    let steady = Steady { window: 1.0, windows: 3, tolerance: 0.1, windows_max: 60 };
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    (0..300).for_each(|unit| flash.write_untimed(id, unit).expect("room"));
    let mut stream = Seed(5).stream("fragment");
    let windows = flash.fragment(id, 300, KEPT, steady, || stream.below(300)).expect("it becomes steady");
    let last = &windows[windows.len() - 3..];
    assert!(last.iter().all(|value| *value > 1.05), "moved data count: {windows:?}");
    let spread = last.iter().fold(0.0, |most: f64, value| most.max((value - last[0]).abs()));
    assert!(spread <= 0.1 * 1.1 * last[0], "{windows:?}");
    let free = flash.free_ratio(id).expect("a region");
    // 32 blocks: a fifth are 6.4, hence 7 at least; a quarter are 8.
    assert!((7.0..=8.0).contains(&(free * 32.0)), "{free}");
    let layer = flash.layer(id).expect("a region");
    layer.check().expect("nothing is lost");
    assert_eq!(layer.valid_units(), 300);
}

#[test]
fn fragmenting_ends_with_an_error_when_nothing_becomes_steady() {
    let mut flash = flash();
    let id = flash.create(one_channel(0)).expect("free channels");
    (0..300).for_each(|unit| flash.write_untimed(id, unit).expect("room"));
    let mut stream = Seed(5).stream("fragment");
    let never = Steady { window: 0.1, windows: 2, tolerance: 1e-12, windows_max: 5 };
    let error = flash.fragment(id, 300, KEPT, never, || stream.below(300)).unwrap_err();
    assert!(matches!(error, PreconditionError::NotSteady { windows: 5, .. }), "{error}");
    let none = Steady { windows: 1, ..never };
    assert!(matches!(
        flash.fragment(id, 300, KEPT, none, || 0).unwrap_err(),
        PreconditionError::Windows { windows: 1, .. }
    ));
}
