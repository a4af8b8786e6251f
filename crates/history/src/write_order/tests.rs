use super::*;
use proptest::prelude::*;

const BLOCK: BlockId = (3, 77);

fn at(us: u64) -> Time {
    Time::us(us)
}

/// A checker in which each of these writes `(id, begun, ended)` was acknowledged.
fn acknowledged(writes: &[(u64, u64, u64)]) -> WriteOrder {
    let mut events: Vec<(u64, bool, u64)> = Vec::new();
    for (id, begun, ended) in writes {
        events.extend([(*begun, false, *id), (*ended, true, *id)]);
    }
    events.sort();
    let mut order = WriteOrder::new();
    for (time, is_end, id) in events {
        match is_end {
            true => order.write_ends(at(time), BLOCK, id, WriteEnd::Acknowledged),
            false => order.write_begins(at(time), BLOCK, id),
        }
    }
    order
}

#[test]
fn a_block_holds_zero_at_first_and_not_after_a_write() {
    let mut order = WriteOrder::new();
    assert_eq!(order.holds(at(1), BLOCK, 0), Ok(()));
    let mut order = acknowledged(&[(1, 10, 20)]);
    assert_eq!(order.holds(at(30), BLOCK, 1), Ok(()));
    assert!(order.holds(at(31), BLOCK, 0).is_err());
}

#[test]
fn an_overwritten_write_that_comes_back_is_a_violation_that_names_both() {
    let mut order = acknowledged(&[(1, 10, 20), (2, 30, 40)]);
    let violation = order.holds(at(50), BLOCK, 1).unwrap_err();
    assert_eq!(violation.block, BLOCK);
    assert!(matches!(violation.found, Found::Write(Write { id: 1, .. })));
    assert_eq!((violation.winner.id, violation.winner.ended), (2, Some(at(40))));
    assert_eq!(
        violation.to_string(),
        "block 77 of drive 3: a read from 50000000 ps to 50000000 ps found write 1 (begun at 10000000 ps, acknowledged at 20000000 ps), but write 2 \
         (begun at 30000000 ps, acknowledged at 40000000 ps) came after that"
    );
}

#[test]
fn writes_at_the_same_time_may_end_either_way() {
    for id in [1, 2] {
        assert_eq!(acknowledged(&[(1, 10, 30), (2, 20, 40)]).holds(at(50), BLOCK, id), Ok(()));
        assert_eq!(acknowledged(&[(1, 10, 30), (2, 30, 40)]).holds(at(50), BLOCK, id), Ok(()), "the same instant");
    }
    assert!(acknowledged(&[(1, 10, 29), (2, 30, 40)]).holds(at(50), BLOCK, 1).is_err());
}

#[test]
fn a_read_may_find_what_was_replaced_while_it_was_under_way_and_not_before() {
    let mut order = acknowledged(&[(1, 10, 20)]);
    order.write_begins(at(30), BLOCK, 2);
    order.read_begins(at(40), BLOCK);
    order.write_ends(at(40), BLOCK, 2, WriteEnd::Acknowledged);
    order.read_begins(at(41), BLOCK);
    assert_eq!(order.read_ends(at(50), BLOCK, at(40), 1), Ok(()));
    assert!(order.read_ends(at(50), BLOCK, at(41), 1).is_err());
}

#[test]
fn a_write_under_way_may_be_found_before_it_is_acknowledged() {
    let mut order = acknowledged(&[(1, 10, 20)]);
    order.write_begins(at(30), BLOCK, 2);
    assert_eq!(order.holds(at(31), BLOCK, 2), Ok(()));
    assert_eq!(order.holds(at(32), BLOCK, 1), Ok(()));
}

#[test]
fn a_failed_write_may_have_been_done_and_must_not_be_done_after_a_later_one() {
    let mut order = acknowledged(&[(1, 10, 20)]);
    order.write_begins(at(30), BLOCK, 2);
    order.write_ends(at(40), BLOCK, 2, WriteEnd::Failed);
    assert_eq!(order.holds(at(41), BLOCK, 1), Ok(()));
    assert_eq!(order.holds(at(41), BLOCK, 2), Ok(()));
    order.write_begins(at(50), BLOCK, 3);
    order.write_ends(at(60), BLOCK, 3, WriteEnd::Acknowledged);
    assert!(order.holds(at(61), BLOCK, 2).is_err());
    assert!(order.holds(at(62), BLOCK, 1).is_err());
}

#[test]
fn a_value_that_nobody_wrote_is_a_violation() {
    let violation = acknowledged(&[(1, 10, 20)]).holds(at(30), BLOCK, 9).unwrap_err();
    assert_eq!(violation.found, Found::Forgotten(9));
    assert_eq!(violation.winner.id, 1);
}

#[test]
fn memory_is_what_is_in_flight_and_one_write_a_block() {
    let mut order = WriteOrder::new();
    for round in 1..=10_000u64 {
        let block = (0, round % 16);
        order.write_begins(at(10 * round), block, round);
        order.read_begins(at(10 * round + 1), block);
        order.write_ends(at(10 * round + 2), block, round, WriteEnd::Acknowledged);
        assert_eq!(order.read_ends(at(10 * round + 3), block, at(10 * round + 1), round), Ok(()));
        assert!(order.remembered() <= 16 + 1);
    }
    assert_eq!((order.remembered(), order.blocks()), (16, 16));
}

/// Returns whether a read may find a write, by the definition and with everything remembered.
fn may_find(writes: &[(u64, u64, u64)], begun: u64, id: u64) -> bool {
    let found = writes.iter().find(|write| write.0 == id);
    let found_end = found.map_or(0, |write| write.2);
    let exists = id == 0 || found.is_some();
    exists && !writes.iter().any(|other| other.0 != id && (id == 0 || found_end < other.1) && other.2 < begun)
}

proptest! {
    /// Writes of random lengths, then a read of any of their values at any later time.
    #[test]
    fn the_checker_judges_as_its_definition(
        spans in prop::collection::vec((0u64..40, 1u64..20), 1..8), read_at in 60u64..70, pick in 0u64..9,
    ) {
        let writes: Vec<(u64, u64, u64)> =
            spans.iter().enumerate().map(|(index, (begun, length))| (index as u64 + 1, *begun, begun + length)).collect();
        let judged = acknowledged(&writes).holds(at(read_at), BLOCK, pick);
        prop_assert_eq!(judged.is_ok(), may_find(&writes, read_at, pick), "{:?} {}", writes, pick);
    }
}
