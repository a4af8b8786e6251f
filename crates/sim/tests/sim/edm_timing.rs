//! Is the model of EDM right? Unloaded latencies against Table 1 of the paper and closed forms.

use crate::support::{Script, cluster, play, testbed};
use base::{Bytes, Operation, Span, Time};
use edm::Matching;
use edm::pcs::memory::{response_blocks, write_blocks};
use hardware::RemoteAccess;
use record::{Row, SpanKind};
use sim::drive::Rig;
use sim::rigs::edm::{EdmRig, EdmRigConfig};

fn lone(config: EdmRigConfig, operation: Operation, bytes: u64) -> Row {
    lone_in(EdmRig::new(config), operation, bytes)
}

fn lone_in(mut rig: EdmRig, operation: Operation, bytes: u64) -> Row {
    let (rows, _) = play(&mut rig, &mut Script::new(&[(Time::ns(7), 0, 1, operation, bytes)]));
    rows[0]
}

/// Table 1: total fabric latency without serialization, and the network-stack part of it.
#[test]
fn table_1_comes_out_to_the_digit() {
    for (operation, total, stack) in [(Operation::Read, 299_520, 107_520), (Operation::Write, 296_960, 104_960)] {
        let row = lone(testbed(), operation, 64);
        let without_serialization = row.latency() - row.spans.get(SpanKind::Serialization);
        assert_eq!(without_serialization, Span::ps(total), "{operation:?}");
        let wires = row.spans.get(SpanKind::Transceiver) + row.spans.get(SpanKind::Propagation);
        assert_eq!(without_serialization - wires, Span::ps(stack), "{operation:?}");
    }
}

#[test]
fn a_lone_request_takes_its_closed_form_at_any_size() {
    for config in [testbed(), cluster(16)] {
        for operation in [Operation::Read, Operation::Write, Operation::ReadModifyWrite] {
            for bytes in [1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 511, 512, 513, 4096, 5840, 65_535, 65_536, 1_576_800] {
                let row = lone(config.clone(), operation, bytes);
                let closed_form = EdmRig::new(config.clone()).unloaded(operation, Bytes::new(bytes)).unwrap();
                assert_eq!(row.latency(), closed_form, "{operation:?} of {bytes} B");
                assert!(row.adds_up());
                assert_eq!(
                    row.spans.get(SpanKind::Schedule),
                    Span::ZERO,
                    "{operation:?} of {bytes} B waits for nothing"
                );
            }
        }
    }
}

#[test]
fn memory_latency_is_part_of_a_read_and_bandwidth_of_a_large_one() {
    let mut config = cluster(2);
    let without = lone(config.clone(), Operation::Read, 64).latency();
    config.memory.latency = Span::ns(80);
    let row = lone(config.clone(), Operation::Read, 64);
    assert_eq!(row.latency(), without + Span::ns(80));
    assert_eq!(row.spans.get(SpanKind::Memory), Span::ns(80));
    let large = lone(config.clone(), Operation::Read, 4096);
    assert_eq!(large.latency(), EdmRig::new(config).unloaded(Operation::Read, Bytes::new(4096)).unwrap());
    assert!(large.adds_up());
}

/// What each access of memory adds to a lone request: the target's at the end of a write, the
/// source's at the end of a read, and of a read of the source's what notification and grant (167.68
/// ns at 25 Gb/s: 18 cycles, two hops of 58.24 ns, two blocks) do not hide.
#[test]
fn a_remote_request_takes_the_memories_that_it_accesses() {
    let hidden = Span::ps(18 * 2_560 + 2 * 58_240 + 2 * 2_560);
    let of = |fetches_writes, stores_writes, stores_reads| RemoteAccess { fetches_writes, stores_writes, stores_reads };
    for (latency, beyond_grant) in [(Span::ns(82), Span::ZERO), (Span::ns(500), Span::ns(500) - hidden)] {
        let mut config = testbed();
        config.memory.latency = latency;
        for (remote, write, read) in [
            (of(false, false, false), Span::ZERO, Span::ZERO),
            (of(false, true, false), latency, Span::ZERO),
            (of(true, false, false), beyond_grant, Span::ZERO),
            (of(true, true, true), beyond_grant + latency, latency),
        ] {
            for (operation, added, served) in [
                (Operation::Write, write, Span::ZERO),
                (Operation::Read, read, latency),
                (Operation::ReadModifyWrite, Span::ZERO, latency),
            ] {
                let row = lone_in(EdmRig::new(config.clone()).with_remote_access(remote), operation, 64);
                let fabric = lone(testbed(), operation, 64).latency();
                assert_eq!(row.latency(), fabric + served + added, "{operation:?} with {remote:?}");
                assert_eq!(row.latency(), row.unloaded, "{operation:?} with {remote:?}");
                assert_eq!(row.spans.get(SpanKind::Memory), served + added);
                assert!(row.adds_up());
            }
        }
    }
}

/// A demand waits for its slot, less than one, and each further chunk takes a slot.
#[test]
fn a_lone_request_in_slots_takes_its_closed_form_and_the_wait_for_a_slot() {
    let mut config = cluster(16);
    config.edm.matching = Matching::Slotted;
    let place = edm::Place { nodes: config.nodes, rate: config.rate };
    let slot = edm::budget::slot(&config.edm, &place).expect("it has slots");
    // An RREQ is a block longer than a /G/, and takes a cycle more until its chunk is ready.
    let ahead = place.blocks(1) + config.edm.phy_clock.cycles(1);
    for operation in [Operation::Read, Operation::Write] {
        let one = lone(config.clone(), operation, 256);
        assert!(one.spans.get(SpanKind::Schedule) < slot);
        assert_eq!(one.latency(), one.unloaded + one.spans.get(SpanKind::Schedule));
        for chunks in [2, 255] {
            let many = lone(config.clone(), operation, 256 * chunks);
            let (granted, sent) = match operation {
                Operation::Write => (slot * (chunks - 1), place.blocks(write_blocks(256)) * (chunks - 1)),
                _ => (slot * (chunks - 1) - ahead, place.blocks(response_blocks(256)) * (chunks - 1)),
            };
            assert_eq!(many.latency(), one.latency() + granted.max(sent), "{operation:?} of {chunks} chunks");
            assert_eq!(many.unloaded, one.unloaded + granted.max(sent));
            assert!(many.adds_up());
        }
    }
}
