//! Which flaw is shown in which scenario, and what is found there. Ours is explored in the same scenarios, so that the flaw alone makes the difference.

use crate::scenario::Operation::{Delete, Get, Put, ServerGet};
use crate::scenario::{Budget, Key, Scenario, Tearing};
use crate::state::Fault;
use crate::variant::{Flaw, Variant};

const X: Key = 0;
const Y: Key = 1;

/// An entry of the table of scenarios.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its number, as in `docs/concepts/one-sided-caches.md`.
    pub name: &'static str,
    /// What runs.
    pub variant: Variant,
    /// In what.
    pub scenario: Scenario,
    /// What is found wrong first; `None`: nothing.
    pub fault: Option<Fault>,
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

/// Ours with one thing done wrong, each.
pub fn flawed() -> Vec<Case> {
    let one_slot = |programs| Scenario::new("", programs);
    let two_slots = |programs| Scenario { slots: 2, ..Scenario::new("", programs) };
    let x_cached = [Some(X), None];
    let both = [1, 5];
    vec![
        case("H1", Flaw::OffsetOfFirstRead, Fault::NotLinearizable, one_slot(&[&[Get(X)], &[Put(X, 2), Get(X)]])),
        case(
            "H2",
            Flaw::PlainPayload,
            Fault::ForeignBytes,
            Scenario { initial: both, cached: x_cached, tearing: Tearing::Words, payload_parts: 2, ..one_slot(&[&[Get(X)], &[Get(Y)]]) },
        ),
        case("H3", Flaw::BothGiveWay, Fault::Livelock, two_slots(&[&[Get(X)], &[Get(X)]])),
        case("H4", Flaw::FirstMatchAlone, Fault::StaleForEver, two_slots(&[&[Get(X)], &[Get(X)], &[Put(X, 2)]])),
        case("H5", Flaw::ReadsPastFiller, Fault::NotLinearizable, one_slot(&[&[Get(X)], &[Put(X, 2)], &[Get(X), Get(X)]])),
        case(
            "H8",
            Flaw::PlainPayload,
            Fault::ForeignBytes,
            Scenario { initial: both, payload_parts: 2, budget: lapses(1), ..one_slot(&[&[Get(X)], &[Get(Y), Get(Y)]]) },
        ),
        case("H9", Flaw::PlainWord, Fault::StaleForEver, Scenario { budget: lapses(1), ..one_slot(&[&[Get(X)], &[Put(X, 2)], &[Get(X), Get(X)]]) }),
        case(
            "H9b",
            Flaw::OwnWordUnchecked,
            Fault::NotLinearizable,
            Scenario { budget: lapses(1), ..one_slot(&[&[Get(X)], &[Put(X, 2)], &[Get(X), Get(X)]]) },
        ),
        case(
            "H9c",
            Flaw::OwnWordInAnyOrder,
            Fault::NotLinearizable,
            Scenario { tearing: Tearing::Slots, ..one_slot(&[&[Get(X)], &[Put(X, 2), Put(X, 3)], &[Get(X), Get(X)]]) },
        ),
        case(
            "H10",
            Flaw::WriterInvalidates,
            Fault::StaleForEver,
            Scenario { cached: x_cached, budget: deaths(1), ..one_slot(&[&[Put(X, 2)], &[Get(X)]]) },
        ),
        case(
            "H11",
            Flaw::ServerReadsBetween,
            Fault::NotLinearizable,
            Scenario { cached: x_cached, ..one_slot(&[&[Put(X, 2)], &[ServerGet(X), Get(X)]]) },
        ),
        case(
            "H12",
            Flaw::LockThenInstall,
            Fault::WaitsForEver,
            Scenario { initial: both, cached: x_cached, budget: deaths(1), ..one_slot(&[&[Get(Y)], &[Get(X)]]) },
        ),
        case("H13", Flaw::OffsetOfAnyBatch, Fault::LostWrite, Scenario { batches: 2, ..one_slot(&[&[Put(X, 2)], &[Put(Y, 5)]]) }),
        case("H14", Flaw::NoTombstone, Fault::DeletedKeyBack, Scenario { budget: crashes(1), ..one_slot(&[&[Delete(X)], &[Get(X)]]) }),
        case("H15a", Flaw::PublishesUnflushed, Fault::LostWrite, Scenario { budget: crashes(1), ..one_slot(&[&[Put(X, 2)], &[Get(X)]]) }),
        case(
            "H15b",
            Flaw::CacheSurvivesRestart,
            Fault::StaleForEver,
            Scenario { cached: x_cached, budget: crashes(1), ..one_slot(&[&[Put(X, 2)], &[Get(X)]]) },
        ),
        case(
            "H15c",
            Flaw::VersionsBeginAgain,
            Fault::StaleForEver,
            Scenario { budget: crashes(1), ..one_slot(&[&[Get(X)], &[Put(X, 2), Get(X)]]) },
        ),
        case("H16", Flaw::RecordUnchecked, Fault::ForeignBytes, Scenario { budget: overwrites(1), ..one_slot(&[&[Get(X)], &[Put(X, 2)]]) }),
        case("H17", Flaw::PlainStores, Fault::StaleForEver, one_slot(&[&[Get(X)], &[Put(X, 2)]])),
        case("order", Flaw::InvalidatesThenStores, Fault::StaleForEver, one_slot(&[&[Get(X)], &[Put(X, 2)]])),
    ]
}
/// q
pub fn unused() -> Variant { Variant::PAPER }
