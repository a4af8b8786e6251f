//! Is the model of EDM right? Unloaded latencies against Table 1 of the paper and closed forms.

mod support;

use base::{Bytes, Operation, Span, Time};
use record::{Row, SpanKind};
use sim::drive::Rig;
use sim::rigs::edm::{EdmRig, EdmRigConfig};
use support::{Script, cluster, play, testbed};

fn lone(config: EdmRigConfig, operation: Operation, bytes: u64) -> Row {
    let (rows, _) = play(&mut EdmRig::new(config), &mut Script::new(&[(Time::ns(7), 0, 1, operation, bytes)]));
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
