//! Which flaw is shown in which scenario, and what is found there. Ours is explored in the same
//! scenarios, so that the flaw alone makes the difference.

use crate::scenario::Operation::{CompareAndSwap, Delete, Get, Put, ServerGet};
use crate::scenario::{Budget, KEYS_MAX, Key, Operation, SLOTS_MAX, Scenario, Tearing, Value};
use crate::state::Fault;
use crate::variant::{Flaw, Variant};

const X: Key = 0;
const Y: Key = 1;

/// An entry of the table of scenarios.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its number, as in `docs/concepts/one-sided-caches.md`.
    pub name: &'static str,
    /// The scenario.
    pub variant: Variant,
    /// In what.
    pub scenario: Scenario,
    /// What is found wrong; `None`: nothing.
    pub fault: Option<Fault>,
}

/// Everything that is explored in the small.
pub fn cases() -> Vec<Case> {
    [flawed(), paper()].concat()
}

/// The case of that name, in either writing.
pub fn find(name: &str) -> Option<Case> {
    cases().into_iter().find(|case| case.name.eq_ignore_ascii_case(name))
}

fn case(name: &'static str, flaw: Flaw, fault: Fault, scenario: Scenario) -> Case {
    Case { name, variant: Variant::ours_with(flaw), scenario, fault: Some(fault) }
}

fn lapses(lapses: u8) -> Budget {
    Budget { lapses, ..Budget::default() }
}
fn deaths(deaths: u8) -> Budget {
    Budget { deaths, ..Budget::default() }
}
fn crashes(crashes: u8) -> Budget {
    Budget { crashes, ..Budget::default() }
}
fn overwrites(overwrites: u8) -> Budget {
    Budget { overwrites, ..Budget::default() }
}

const X_CACHED: [Option<Key>; SLOTS_MAX] = [Some(X), None, None];
/// x=1 and y=5.
const BOTH: [Value; KEYS_MAX] = [1, 5];

fn one_slot(programs: &[&[Operation]]) -> Scenario {
    Scenario::new(programs)
}
fn two_slots(programs: &[&[Operation]]) -> Scenario {
    Scenario { slots: 2, ..one_slot(programs) }
}

/// One reads x, one reads it twice, one overwrites it: the smallest company in which new-then-old
/// shows.
fn company() -> [&'static [Operation]; 3] {
    [&[Get(X)], &[Get(X), Get(X)], &[Put(X, 2)]]
}

/// While one write is in flight to its slot, two other clients change it four times.
pub fn late_by_four() -> [&'static [Operation]; 3] {
    [&[Get(X)], &[Get(X), Get(X)], &[Put(X, 2), Put(X, 3)]]
}

/// Ours with one thing done wrong, each.
pub fn flawed() -> Vec<Case> {
    [reads(), leases(), writes(), durability()].concat()
}

/// Wrong in how a client reads the block.
fn reads() -> Vec<Case> {
    let torn_to_words = Scenario { tearing: Tearing::Words, payload_parts: 2, ..one_slot(&[&[Get(X)], &[Get(Y)]]) };
    vec![
        case("H1", Flaw::OffsetOfFirstRead, Fault::NotLinearizable, one_slot(&[&[Get(X)], &[Put(X, 2), Get(X)]])),
        case(
            "H1b",
            Flaw::OffsetInAnyOrder,
            Fault::NotLinearizable,
            Scenario { tearing: Tearing::Slots, ..two_slots(&company()) },
        ),
        case(
            "H2",
            Flaw::PlainPayload,
            Fault::ForeignBytes,
            Scenario { initial: BOTH, cached: X_CACHED, ..torn_to_words },
        ),
        case("H3", Flaw::BothGiveWay, Fault::Livelock, two_slots(&[&[Get(X)], &[Get(X)]])),
        case("H5", Flaw::ReadsPastFiller, Fault::NotLinearizable, one_slot(&company())),
    ]
}

/// Wrong in what a client does to a slot that is, or is no more, its own.
fn leases() -> Vec<Case> {
    let one_lapse = Scenario { budget: lapses(1), ..one_slot(&company()) };
    let values_in_parts = Scenario { payload_parts: 2, budget: lapses(1), ..one_slot(&[&[Get(X)], &[Get(Y), Get(Y)]]) };
    let two_writes: [&[Operation]; 3] = [&[Get(X)], &[Get(X), Get(X)], &[Put(X, 2), Put(X, 3)]];
    vec![
        case("H8", Flaw::PlainPayload, Fault::ForeignBytes, Scenario { initial: BOTH, ..values_in_parts }),
        case("H9", Flaw::PlainWord, Fault::NotLinearizable, one_lapse.clone()),
        case("H9b", Flaw::OwnWordUnchecked, Fault::NotLinearizable, one_lapse),
        case(
            "H9c",
            Flaw::OwnWordInAnyOrder,
            Fault::NotLinearizable,
            Scenario { tearing: Tearing::Slots, ..one_slot(&two_writes) },
        ),
        case(
            "H9d",
            Flaw::DamagedIgnored,
            Fault::NotLinearizable,
            Scenario { tearing: Tearing::Words, ..two_slots(&company()) },
        ),
        case(
            "H9e",
            Flaw::LapsedIgnored,
            Fault::NotLinearizable,
            Scenario { budget: lapses(1), ..two_slots(&company()) },
        ),
        case("H19", Flaw::VersionsWrap, Fault::NotLinearizable, one_slot(&late_by_four())),
        case(
            "H12",
            Flaw::LockThenInstall,
            Fault::WaitsForEver,
            Scenario { initial: BOTH, cached: X_CACHED, budget: deaths(1), ..one_slot(&[&[Get(Y)], &[Get(X)]]) },
        ),
    ]
}

/// Wrong in how a write becomes visible.
fn writes() -> Vec<Case> {
    let beside_a_reader = one_slot(&[&[Get(X)], &[Put(X, 2)]]);
    let cached_writer_dies = Scenario { cached: X_CACHED, budget: deaths(1), ..beside_a_reader.clone() };
    let server_reads = Scenario { cached: X_CACHED, ..one_slot(&[&[ServerGet(X), Get(X)], &[Put(X, 2)]]) };
    let two_batches = Scenario { batches: 2, ..one_slot(&[&[Put(X, 2)], &[Put(Y, 5)]]) };
    vec![
        case("H4", Flaw::FirstMatchAlone, Fault::StaleForEver, two_slots(&[&[Get(X)], &[Get(X)], &[Put(X, 2)]])),
        case("H10", Flaw::WriterInvalidates, Fault::StaleForEver, cached_writer_dies),
        case("H11", Flaw::ServerReadsBetween, Fault::NotLinearizable, server_reads),
        case("H13", Flaw::OffsetOfAnyBatch, Fault::LostWrite, two_batches),
        case("H17", Flaw::PlainStores, Fault::StaleForEver, beside_a_reader.clone()),
        case("H18", Flaw::InvalidatesThenStores, Fault::StaleForEver, beside_a_reader),
    ]
}

/// Wrong in what survives.
fn durability() -> Vec<Case> {
    let restart = Scenario { budget: crashes(1), ..one_slot(&[&[Get(X)], &[Put(X, 2)]]) };
    let late_filler = Scenario { budget: crashes(1), ..one_slot(&[&[Get(X)], &[Put(X, 2), Get(X)]]) };
    let recycled = Scenario { budget: overwrites(1), ..one_slot(&[&[Get(X)], &[Put(X, 2)]]) };
    let deleted = Scenario { budget: crashes(1), ..one_slot(&[&[Get(X)], &[Delete(X)]]) };
    vec![
        case("H14", Flaw::NoTombstone, Fault::DeletedKeyBack, deleted),
        case("H15a", Flaw::PublishesUnflushed, Fault::NotLinearizable, restart.clone()),
        case("H15b", Flaw::CacheSurvivesRestart, Fault::StaleForEver, Scenario { cached: X_CACHED, ..restart.clone() }),
        case("H15c", Flaw::VersionsBeginAgain, Fault::StaleForEver, late_filler),
        case("H15d", Flaw::RecoversSlotsFirst, Fault::StaleForEver, restart),
        case("H16", Flaw::RecordUnchecked, Fault::ForeignBytes, recycled.clone()),
        case("H16b", Flaw::RecordUnchecked, Fault::ForeignBytes, Scenario { values_apart: true, ..recycled }),
    ]
}

/// The paper's protocol as it is written.
pub fn paper() -> Vec<Case> {
    let of_paper = |name, variant, fault, scenario| Case { name, variant, scenario, fault };
    let torn =
        Scenario { initial: BOTH, cached: X_CACHED, tearing: Tearing::Words, ..one_slot(&[&[Get(X)], &[Get(Y)]]) };
    let values_late = Scenario { initial: BOTH, budget: lapses(1), ..one_slot(&[&[Get(X)], &[Get(Y), Get(Y)]]) };
    let writer_dies = Scenario { cached: X_CACHED, budget: deaths(1), ..one_slot(&[&[Get(X)], &[Put(X, 2)]]) };
    let filler_dies =
        Scenario { initial: BOTH, cached: X_CACHED, budget: deaths(1), ..one_slot(&[&[Get(Y)], &[Get(X)]]) };
    let one_lapse = Scenario { budget: lapses(1), ..one_slot(&company()) };
    let recycled = Scenario { budget: overwrites(1), ..one_slot(&[&[Get(X)], &[Put(X, 2)]]) };
    vec![
        of_paper("paper", Variant::PAPER, None, one_slot(&company())),
        of_paper("paper-H2", Variant::PAPER, Some(Fault::ForeignBytes), torn),
        of_paper("paper-H3", Variant::PAPER, Some(Fault::Livelock), two_slots(&[&[Get(X)], &[Get(X)]])),
        of_paper("paper-H8", Variant::PAPER_WITH_LEASE, Some(Fault::ForeignBytes), values_late),
        of_paper("paper-H9", Variant::PAPER_WITH_LEASE, Some(Fault::NotLinearizable), one_lapse),
        of_paper("paper-H10", Variant::PAPER, Some(Fault::StaleForEver), writer_dies),
        of_paper("paper-H12", Variant::PAPER_WITH_LEASE, Some(Fault::WaitsForEver), filler_dies),
        of_paper("paper-H16", Variant::PAPER, Some(Fault::ForeignBytes), recycled),
    ]
}

/// A scenario in which ours is explored in larger company, and what it is there for.
#[derive(Clone, Debug)]
pub struct Large {
    /// What is in it.
    pub name: &'static str,
    /// What is large in it.
    pub scenario: Scenario,
}

/// What `make models` explores beside the cases: ours whole, in all the company that the small
/// sizes leave out. The bounds are ours, each a step beyond what any known flaw needs: the most
/// that one takes is three clients, four operations, two slots and two mishaps (H1b, H9c, H9e,
/// H15c).
pub fn large() -> Vec<Large> {
    [crowds(), torn(), struck(), updates()].concat()
}

fn large_case(name: &'static str, scenario: Scenario) -> Large {
    Large { name, scenario: Scenario { initial: BOTH, answers_early: true, ..scenario } }
}

fn slots(slots: usize, programs: &[&[Operation]]) -> Scenario {
    Scenario { slots, ..one_slot(programs) }
}

/// Many concurrent fillers: which gives way, and which waits.
fn crowds() -> Vec<Large> {
    let readers: [&[Operation]; 3] = [&[Get(X), Get(X)], &[Get(X), Get(Y)], &[Put(X, 2), Put(X, 3)]];
    let three: [&[Operation]; 4] = [&[Get(X)], &[Get(X)], &[Get(X), Get(X)], &[Put(X, 2)]];
    let four: [&[Operation]; 4] = [&[Get(X)], &[Get(X)], &[Get(X)], &[Get(X)]];
    vec![
        large_case("two slots, two lapses", Scenario { budget: lapses(2), ..slots(2, &readers) }),
        large_case("two slots, three readers, a lapse", Scenario { budget: lapses(1), ..slots(2, &three) }),
        large_case("three slots, three readers", slots(3, &three)),
        large_case("three slots, a lapse", Scenario { budget: lapses(1), ..slots(3, &company()) }),
        large_case("three slots, four readers", slots(3, &four)),
        Large {
            name: "two slots, three readers, answered after the filling",
            scenario: Scenario { initial: BOTH, budget: lapses(1), ..slots(2, &three) },
        },
    ]
}

/// Blocks that are read piece by piece.
fn torn() -> Vec<Large> {
    let readers: [&[Operation]; 3] = [&[Get(X), Get(X)], &[Get(X), Get(Y)], &[Put(X, 2), Put(X, 3)]];
    let slotwise = |scenario| Scenario { tearing: Tearing::Slots, ..scenario };
    let wordwise = |scenario| Scenario { tearing: Tearing::Words, ..scenario };
    let in_parts = |scenario| Scenario { payload_parts: 2, ..wordwise(scenario) };
    let lapse = |scenario| Scenario { budget: lapses(1), ..scenario };
    vec![
        large_case(
            "two slots, torn to slots, two lapses",
            Scenario { budget: lapses(2), ..slotwise(slots(2, &readers)) },
        ),
        large_case("two slots, torn to words, a lapse", lapse(wordwise(slots(2, &readers)))),
        large_case("two slots, torn to words, payloads in parts", in_parts(slots(2, &company()))),
        large_case("one slot, torn to words, payloads in parts, a lapse", lapse(in_parts(slots(1, &readers)))),
        large_case("three slots, torn to slots", slotwise(slots(3, &company()))),
        large_case(
            "two slots, one fingerprint, torn to words",
            Scenario { fingerprints_collide: true, ..wordwise(slots(2, &readers)) },
        ),
    ]
}

/// Everything that can happen to a client, a server or flash.
fn struck() -> Vec<Large> {
    let everything = Budget { lapses: 1, deaths: 1, crashes: 1, overwrites: 1, moves: 1 };
    let mixed: [&[Operation]; 3] = [&[Get(X), Get(X)], &[Delete(X), Get(X)], &[Put(X, 2), Get(Y)]];
    let early: [&[Operation]; 3] = [&[Get(X)], &[Get(X), Get(X)], &[Put(X, 2), Delete(X)]];
    let space = Budget { overwrites: 2, moves: 1, ..Budget::default() };
    vec![
        large_case(
            "two slots, two deaths and a lapse",
            Scenario { budget: Budget { lapses: 1, ..deaths(2) }, ..slots(2, &company()) },
        ),
        large_case("two slots, every mishap once", Scenario { budget: everything, ..slots(2, &company()) }),
        large_case(
            "one slot, every mishap once, torn to words",
            Scenario { budget: everything, tearing: Tearing::Words, ..slots(1, &company()) },
        ),
        large_case(
            "one slot, two restarts, two batches",
            Scenario { budget: crashes(2), batches: 2, ..slots(1, &mixed) },
        ),
        large_case(
            "two slots, a restart, torn to slots",
            Scenario { budget: crashes(1), tearing: Tearing::Slots, ..slots(2, &mixed) },
        ),
        large_case(
            "two slots, values apart, recycled and moved",
            Scenario { values_apart: true, budget: space, ..slots(2, &early) },
        ),
        large_case(
            "one slot, values apart, every mishap once",
            Scenario { values_apart: true, budget: everything, ..slots(1, &early) },
        ),
    ]
}

/// Writers beside writers.
fn updates() -> Vec<Large> {
    let swaps: [&[Operation]; 3] = [
        &[Get(X), ServerGet(X)],
        &[CompareAndSwap { key: X, expected: 1, new: 2 }, Get(X)],
        &[CompareAndSwap { key: X, expected: 1, new: 3 }, Put(Y, 6)],
    ];
    let writers: [&[Operation]; 4] =
        [&[Get(X), Get(X)], &[Get(X), ServerGet(X)], &[Put(X, 2), Delete(X)], &[Put(X, 4), Get(Y)]];
    vec![
        large_case("two slots, swaps, one fingerprint", Scenario { fingerprints_collide: true, ..slots(2, &swaps) }),
        large_case(
            "two slots, two writers, two batches, a lapse",
            Scenario { batches: 2, budget: lapses(1), ..slots(2, &writers) },
        ),
        large_case(
            "one slot, two writers, two batches, a restart",
            Scenario { batches: 2, budget: crashes(1), ..slots(1, &writers) },
        ),
    ]
}
