//! Does the protocol hold: each flaw is found, in an execution that shows it, and ours is clean in
//! the same company.

use base::Seed;
use models::catalog::{self, Case};
use models::explore::{explore, explore_reduced};
use models::scenario::Tearing;
use models::variant::{Flaw, Variant};
use models::{Fault, page, sweep};

/// Of each case, what its execution must show, in this order.
const SHAPES: &[(&str, &[&str])] = &[
    (
        "H1",
        &[
            "reads block, miss",
            "invalidates slot 0",
            "locks slot 0",
            "rereads block: offset 1",
            "=> done",
            "GET x: reads block => x=1",
        ],
    ),
    (
        "H1b",
        &[
            "rereads header",
            "stores offset 2",
            "rereads header",
            "=> x=2",
            "rereads slot 1: offset 1",
            "=> x=1",
            "=> x=1",
        ],
    ),
    ("H2", &["reads key of slot 0", "makes slot 0 valid => y=5", "reads value of slot 0 => x=5"]),
    ("H3", &["gives way", "gives way", "gives way", "gives way"]),
    ("H4", &["makes slot 1 valid => x=1", "invalidates slot 0", "invalidates slot 1", "=> done"]),
    ("H5", &["goes past it", "makes slot 0 valid => x=1", "=> x=2", "GET x: reads block => x=1"]),
    (
        "H8",
        &[
            "writes key x into slot 0",
            "runs out",
            "writes value 5 into slot 0",
            "writes value 1 into slot 0",
            "VALID y v2: y|1",
            "=> y=1",
        ],
    ),
    (
        "H9",
        &[
            "writes x=1 into slot 0",
            "invalidates slot 0",
            "=> done",
            "locks slot 0",
            "makes slot 0 valid => x=1",
            "=> x=1",
        ],
    ),
    (
        "H9b",
        &[
            "locks slot 0",
            "runs out",
            "locks slot 0",
            "rereads block: offset 1",
            "rereads block: offset 2",
            "=> x=2",
            "=> x=1",
        ],
    ),
    (
        "H9c",
        &["rereads slot 0", "invalidates slot 0", "stores offset 3", "rereads header: offset 3", "=> x=3", "=> x=2"],
    ),
    (
        "H9d",
        &[
            "rereads key of slot 0",
            "makes slot 0 valid => x=1",
            "rereads word of slot 0",
            "makes slot 1 valid => x=2",
            "=> x=1",
        ],
    ),
    ("H9e", &["runs out", "rereads block: offset 2", "makes slot 0 valid => x=1", "=> x=2", "=> x=1"]),
    (
        "H19",
        &[
            "locks slot 0",
            "FILL x by A v1",
            "free v0",
            "FILL x by B v1",
            "writes x=3",
            "writes x=2",
            "=> x=3",
            "=> x=2",
        ],
    ),
    ("H10", &["stores offset 2", "dies"]),
    ("H11", &["stores offset 2", "=> x=2", "reads block => x=1"]),
    ("H12", &["locks slot 0", "waits for slot 0", "dies"]),
    ("H13", &["stores offset 3", "stores offset 2", "=> done", "=> done"]),
    ("H14", &["=> deleted", "crashes", "recovers the offset by a scan", "1: x=1"]),
    ("H15a", &["=> done", "crashes; unflushed records are lost", "=> x=1"]),
    ("H15b", &["VALID x v1: x=1", "crashes; unflushed records survive", "2: x=2"]),
    (
        "H15c",
        &[
            "crashes",
            "writes x=2 into slot 0",
            "writes x=1 into slot 0",
            "makes slot 0 valid => x=2",
            "VALID x v1: x=1",
        ],
    ),
    ("H15d", &["empties slot 0", "rereads block: offset 1", "makes slot 0 valid => x=1", "2: x=2"]),
    ("H16", &["rereads block: offset 1", "uses place 0 again", "=> x=foreign bytes"]),
    ("H16b", &["reads record 1", "uses value 0 again", "=> x=foreign bytes"]),
    ("H17", &["first half", "invalidates slot 0", "second half"]),
    ("H18", &["invalidates slot 0", "rereads block: offset 1", "makes slot 0 valid", "stores offset 2"]),
    ("paper-H2", &["reads flags and key of slot 0", "reads value of slot 0 => x=5"]),
    ("paper-H3", &["gives way", "gives way", "gives way", "gives way"]),
    ("paper-H8", &["runs out", "writes value 5", "writes value 1", "=> y=1"]),
    ("paper-H9", &["runs out", "writes value 2", "writes value 1", "complete=1", "=> x=1"]),
    ("paper-H10", &["stores offset 2", "dies"]),
    ("paper-H12", &["complete=0", "waits for slot 0", "dies"]),
    ("paper-H16", &["uses place 0 again", "=> x=foreign bytes"]),
];

fn shape_of(case: &Case) -> &'static [&'static str] {
    SHAPES.iter().find(|(name, _)| *name == case.name).unwrap_or_else(|| panic!("{} has no shape", case.name)).1
}

/// Finds the pieces one after the other.
fn shows(trace: &str, pieces: &[&str]) -> Result<(), String> {
    pieces
        .iter()
        .try_fold(trace, |rest, piece| {
            rest.split_once(piece).map(|(_, rest)| rest).ok_or(format!("after that: no {piece:?}"))
        })
        .map(|_| ())
}

fn is_violated_as_said(case: &Case) {
    let outcome = explore(case.variant, case.scenario.clone(), None);
    let trace = outcome.trace.unwrap_or_else(|| panic!("{} is found clean", case.name));
    assert_eq!(trace.fault(), case.fault, "{}\n{trace}", case.name);
    if let Err(lack) = shows(&trace.to_string(), shape_of(case)) {
        panic!("{}: {lack}\n{trace}", case.name);
    }
}

#[test]
fn every_flaw_is_found_and_its_execution_shows_it() {
    catalog::flawed().iter().for_each(is_violated_as_said);
}

#[test]
fn the_papers_protocol_breaks_with_its_own_options_and_holds_without() {
    let (broken, whole): (Vec<Case>, Vec<Case>) = catalog::paper().into_iter().partition(|case| case.fault.is_some());
    broken.iter().for_each(is_violated_as_said);
    for case in whole {
        let outcome = explore(case.variant, case.scenario, None);
        assert!(outcome.is_whole && outcome.trace.is_none(), "{}", case.name);
    }
}

#[test]
fn ours_is_clean_wherever_a_flaw_is_shown() {
    for case in catalog::cases() {
        // The largest of them is explored to its end in fewer states, and by `make models` in all.
        let outcome = explore(Variant::OURS, case.scenario.clone(), Some(400_000));
        if let Some(trace) = outcome.trace {
            panic!("ours breaks in the scenario of {}\n{trace}", case.name);
        }
        let is_whole = outcome.is_whole || explore_reduced(Variant::OURS, case.scenario, None).is_whole;
        assert!(is_whole && outcome.states > 20, "{}: {} states", case.name, outcome.states);
    }
}

#[test]
fn ours_is_clean_in_random_company() {
    for number in 0..30 {
        let scenario = sweep::scenario(Seed(21), number);
        let outcome = explore_reduced(Variant::OURS, scenario.clone(), Some(100_000));
        if let Some(trace) = outcome.trace {
            panic!("ours breaks in {scenario:?}\n{trace}");
        }
    }
}

#[test]
fn random_company_finds_flaws_that_no_case_was_made_for() {
    for flaw in [Flaw::RecoversSlotsFirst, Flaw::OffsetOfFirstRead] {
        let is_found =
            |number| explore(Variant::ours_with(flaw), sweep::scenario(Seed(3), number), Some(20_000)).trace.is_some();
        assert!((0..200).any(is_found), "{flaw:?}");
    }
}

#[test]
fn an_exploration_that_is_cut_short_says_so() {
    let case = catalog::find("h5").expect("names are found in either writing");
    let outcome = explore(Variant::OURS, case.scenario, Some(100));
    assert!(!outcome.is_whole && outcome.trace.is_none());
}

#[test]
fn torn_reads_break_what_whole_reads_do_not() {
    for (name, tearing) in [("H1b", Tearing::Slots), ("H9c", Tearing::Slots)] {
        let case = catalog::find(name).expect("the case exists");
        assert_eq!(case.scenario.tearing, tearing);
        let mut whole = case.scenario;
        whole.tearing = Tearing::None;
        assert!(explore(case.variant, whole, None).trace.is_none(), "{name}");
    }
}

#[test]
fn versions_that_come_back_hurt_nobody_who_is_late_by_fewer_changes() {
    let case = catalog::find("H19").expect("the case exists");
    let mut fewer = case.scenario;
    fewer.programs[2].pop();
    assert!(explore(case.variant, fewer, None).is_whole);
}

#[test]
fn a_lease_is_what_frees_the_slot_of_a_dead_filler() {
    let case = catalog::find("H12").expect("the case exists");
    assert_eq!(case.fault, Some(Fault::WaitsForEver));
    // Ours in the same company has a lease from the first instant, and nobody waits.
    assert!(explore(Variant::OURS, case.scenario, None).trace.is_none());
}

#[test]
fn the_page_shows_the_executions_that_the_model_finds_now() {
    let written = include_str!("../../docs/concepts/one-sided-caches.md");
    let now = page::refresh(written).expect("every marker names a case with a trace");
    let different = written.lines().zip(now.lines()).find(|(written, now)| written != now);
    assert_eq!(written, now, "refresh it: cargo run -p models -- --page < the page; first difference: {different:?}");
    for case in catalog::flawed() {
        assert!(written.contains(&format!("<!-- trace {} -->", case.name)), "the page lacks {}", case.name);
    }
}
