//! Does EDM's protocol hold when hardware dies? Any link, switch or node, at any time (paper 3.3).

use crate::support::{Plain, Script, cluster, everything_ends_once, loads, play, testbed, uniform};
use base::{Bytes, NodeId, Operation, Span, Time};
use proptest::prelude::*;
use record::{Outcome, Row};
use sim::drive::Rig;
use sim::rigs::edm::{EdmRig, EdmRigConfig, Fault, FaultKind};

const NODES: u32 = 5;

fn networks() -> impl Strategy<Value = EdmRigConfig> {
    (any::<bool>(), prop_oneof![Just(0u64), Just(256)], prop_oneof![Just(0u64), Just(100)]).prop_map(
        |(asic, batch, latency)| {
            let mut config = if asic { cluster(NODES) } else { EdmRigConfig { nodes: NODES, ..testbed() } };
            config.edm.batch = Bytes::new(batch);
            // Beyond the wait of a request that nothing has happened to, and short enough to drain
            // one after the other.
            config.edm.timeout = Span::us(400);
            config.memory.latency = Span::ns(latency);
            config
        },
    )
}

fn faults(kinds: impl Strategy<Value = FaultKind>) -> impl Strategy<Value = Vec<Fault>> {
    let at = prop_oneof![0u64..3_000, 0u64..30_000].prop_map(Time::ns);
    prop::collection::vec((at, kinds).prop_map(|(at, kind)| Fault { at, kind }), 1..4)
}

fn any_kind() -> impl Strategy<Value = FaultKind> {
    let node = || (0..NODES).prop_map(NodeId);
    prop_oneof![
        2 => node().prop_map(FaultKind::LinkDown),
        2 => node().prop_map(FaultKind::NodeDown),
        1 => Just(FaultKind::SwitchDown(0)),
    ]
}

fn touches(row: &Row, fault: &Fault) -> bool {
    match fault.kind {
        FaultKind::LinkDown(node) | FaultKind::NodeDown(node) => [row.source, row.target].contains(&node),
        FaultKind::SwitchDown(_) => true,
    }
}

fn run(config: &EdmRigConfig, requests: &[Plain]) -> (EdmRig, Vec<Row>) {
    let mut rig = EdmRig::new(config.clone());
    let (mut rows, _) = play(&mut rig, &mut Script::new(requests));
    rows.sort_by_key(|row| row.request);
    (rig, rows)
}

fn same_rows(rows: &[Row], untroubled: &[Row]) {
    assert_eq!(rows.len(), untroubled.len());
    for (row, without) in rows.iter().zip(untroubled) {
        assert_eq!(row, without);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without redundancy: every request ends exactly once, and those that have nothing to do with
    /// what died all finish.
    #[test]
    fn every_request_ends_once_whatever_dies(config in networks(), requests in loads(NODES, 60), faults in faults(any_kind())) {
        let (rig, rows) = run(&EdmRigConfig { faults: faults.clone(), ..config }, &requests);
        everything_ends_once(&requests, &rows);
        for row in &rows {
            prop_assert!(row.adds_up(), "{:?}", row);
            let may_fail = faults.iter().any(|fault| touches(row, fault) && fault.at <= row.end);
            prop_assert!(may_fail || row.outcome == Outcome::Finished, "{:?} had nothing to do with {:?}", row, faults);
        }
        for node in (0..NODES).map(NodeId) {
            let dead = faults.iter().any(|fault| fault.kind == FaultKind::NodeDown(node));
            prop_assert!(dead || rig.host(node).outstanding().is_empty());
        }
    }

    /// A request is lost or NULL only if it could not have been done. A request that is issued
    /// after everything it needs has died never finishes, and a read ends at its timer.
    #[test]
    fn what_is_issued_to_the_dead_ends_without_an_answer(config in networks(), requests in loads(NODES, 40), node in 1..NODES) {
        let faults = vec![Fault { at: Time::ZERO, kind: FaultKind::NodeDown(NodeId(node)) }];
        let (_, rows) = run(&EdmRigConfig { faults: faults.clone(), ..config.clone() }, &requests);
        everything_ends_once(&requests, &rows);
        for row in rows.iter().filter(|row| touches(row, &faults[0])) {
            if row.source == NodeId(node) {
                prop_assert_eq!(row.outcome, Outcome::Lost);
                prop_assert_eq!(row.latency(), Span::ZERO);
            } else {
                prop_assert_eq!(row.outcome, Outcome::TimedOut);
                // One write of a batch stands for all in its records.
                prop_assert!(row.latency() >= config.edm.timeout);
                prop_assert!(config.edm.batch > Bytes::ZERO || row.end == row.start + config.edm.timeout);
            }
        }
    }

    /// With redundancy the loss of the primary switch, or of any link to it, at any time changes
    /// nothing: nothing is lost, nothing happens twice, and not one record differs.
    #[test]
    fn the_backup_takes_over_without_a_trace(
        config in networks(),
        requests in loads(NODES, 60),
        faults in faults(prop_oneof![(0..NODES).prop_map(|node| FaultKind::LinkDown(NodeId(node))), Just(FaultKind::SwitchDown(0))]),
    ) {
        let (_, untroubled) = run(&config, &requests);
        let (_, rows) = run(&EdmRigConfig { redundant: true, faults, ..config }, &requests);
        everything_ends_once(&requests, &rows);
        same_rows(&rows, &untroubled);
    }

    /// The other way round too: the primary does not need the backup.
    #[test]
    fn the_loss_of_the_backup_is_not_noticed(config in networks(), requests in loads(NODES, 60), at in 0u64..30_000) {
        let (_, untroubled) = run(&config, &requests);
        let faults = vec![Fault { at: Time::ns(at), kind: FaultKind::SwitchDown(1) }];
        let (_, rows) = run(&EdmRigConfig { redundant: true, faults, ..config }, &requests);
        same_rows(&rows, &untroubled);
    }

    /// Both at once: nodes die under redundancy, and the primary as well.
    #[test]
    fn nodes_and_the_primary_may_die_together(config in networks(), requests in loads(NODES, 60), faults in faults(any_kind())) {
        let (_, rows) = run(&EdmRigConfig { redundant: true, faults: faults.clone(), ..config }, &requests);
        everything_ends_once(&requests, &rows);
        for row in &rows {
            let node_died = |fault: &Fault| matches!(fault.kind, FaultKind::NodeDown(_)) && touches(row, fault);
            prop_assert!(faults.iter().any(node_died) || row.outcome == Outcome::Finished, "{:?}", row);
        }
    }

    /// Until something dies, nothing of it is seen.
    #[test]
    fn records_before_a_fault_are_those_without_it(config in networks(), requests in loads(NODES, 60), faults in faults(any_kind())) {
        let (_, untroubled) = run(&config, &requests);
        let first = faults.iter().map(|fault| fault.at).min().unwrap();
        let (_, rows) = run(&EdmRigConfig { faults, ..config }, &requests);
        for (row, without) in rows.iter().zip(&untroubled) {
            if row.end < first || without.end < first {
                prop_assert_eq!(row, without);
            }
        }
    }

    /// Primary and backup decide the same: their schedulers are equal to the last bit after any run
    /// in step.
    #[test]
    fn primary_and_backup_schedulers_stay_in_step(config in networks(), requests in loads(NODES, 60)) {
        let (rig, _) = run(&EdmRigConfig { redundant: true, ..config }, &requests);
        let state = |plane: usize| format!("{:?}", rig.switch(plane));
        prop_assert_eq!(state(0), state(1));
    }
}

/// A loaded network in which tickets are used again and again: faults in the middle of it.
#[test]
fn under_steady_load_a_fault_hits_only_what_it_must() {
    let kinds = [FaultKind::LinkDown(NodeId(3)), FaultKind::NodeDown(NodeId(3)), FaultKind::SwitchDown(0)];
    for (kind, redundant) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for bytes in [16, 64, 700] {
            let mut config = cluster(8);
            config.edm.timeout = Span::us(20);
            let gap = 20_000.0 * bytes as f64 / 64.0 + 8_000.0;
            let whole_fabric = matches!(kind, FaultKind::SwitchDown(_));
            let faults = vec![Fault { at: Time::us(10), kind }];
            let config = EdmRigConfig { redundant, faults, wire_check: false, ..config };
            let requests = if whole_fabric && !redundant { 1_500 } else { 6_000 };
            let mut rig = EdmRig::new(config);
            let (rows, summary) = play(&mut rig, &mut uniform(8, requests, gap, 0.5, bytes, 3));
            assert_eq!(rows.len() as u64, requests);
            assert_eq!(summary.counts.in_flight_at_end, 0);
            let survives = redundant && !matches!(kind, FaultKind::NodeDown(_));
            for row in &rows {
                assert!(row.adds_up() && row.outcome != Outcome::Unfinished, "{kind:?} {redundant} {bytes}: {row:?}");
                let touched = whole_fabric || [row.source, row.target].contains(&NodeId(3));
                assert!(row.outcome == Outcome::Finished || (touched && !survives), "{kind:?} {redundant}: {row:?}");
            }
        }
    }
}

/// An answer that comes after its timer: a little late, the host counts and ignores it; much later,
/// its circuit has lapsed and the switch drops it. Neither disturbs the request that has the
/// driver's ticket by then.
#[test]
fn an_answer_after_its_timer_is_ignored() {
    for (late, unexpected, dropped) in [(Span::ns(20), 1, 0), (Span::us(5), 0, 1)] {
        let mut config = cluster(2);
        config.edm.timeout = Span::us(1);
        let alone = EdmRig::new(config.clone()).unloaded(Operation::Read, Bytes::new(64)).unwrap();
        config.memory.latency = config.edm.timeout - alone + late;
        let mut rig = EdmRig::new(config);
        let writes = (0..40).map(|number| (Time::ns(900 + 200 * number), 0, 1, Operation::Write, 64));
        let requests: Vec<Plain> = [(Time::ns(5), 0, 1, Operation::Read, 64)].into_iter().chain(writes).collect();
        let (mut rows, _) = play(&mut rig, &mut Script::new(&requests));
        everything_ends_once(&requests, &rows);
        rows.sort_by_key(|row| row.request);
        assert_eq!((rows[0].outcome, rows[0].latency()), (Outcome::TimedOut, Span::us(1)));
        assert!(rows[1..].iter().all(|row| row.outcome == Outcome::Finished && row.latency() == row.unloaded));
        assert_eq!((rig.unexpected(), rig.dropped_packets()), (unexpected, dropped));
    }
}

/// A write to a memory node that dies is Lost if its data had left, and NULL if it still waited.
#[test]
fn writes_to_a_node_that_dies_are_lost_in_flight_or_null_at_home() {
    let mut outcomes = std::collections::BTreeSet::new();
    for at in (0..800).step_by(10) {
        let mut config = cluster(2);
        config.edm.timeout = Span::us(2);
        config.faults = vec![Fault { at: Time::ns(at), kind: FaultKind::NodeDown(NodeId(1)) }];
        let mut rig = EdmRig::new(config);
        let (rows, _) = play(&mut rig, &mut Script::new(&[(Time::ns(5), 0, 1, Operation::Write, 64)]));
        outcomes.insert(rows[0].outcome.name());
        assert_eq!(
            rig.dropped_packets() > 0,
            rows[0].outcome == Outcome::Lost || at < 200 && rig.dropped_packets() > 0
        );
    }
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), ["finished", "lost", "timed-out"]);
}
