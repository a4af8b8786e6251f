//! Tests of order, priority and capacity.

use super::*;
use crate::packet::{Outcome, PacketKind};
use crate::testing::{command, read_data};
use crate::trail::{Trail, Way};
use base::Operation;
use proptest::prelude::*;
use topology::VertexId;

fn ranks() -> RankConfig {
    RankConfig { quantum: 8, rank_max: 7, unknown_credit: 16, read_rank: 4 }
}

fn storage_driven(queues: u8, service: Service) -> SchedulingConfig {
    SchedulingConfig::StorageDriven(StorageDrivenConfig { rank: ranks(), queues, service })
}

/// Builds write data of `rank`, identified by `number`.
fn ranked(rank: u8, number: u32) -> Packet {
    let write = command(Operation::Write, 4096, VertexId(0), VertexId(1));
    Packet { kind: PacketKind::WriteData { last: false }, rank, payload: number, frame: 1_000, ..write }
}

fn write_response(number: u32) -> Packet {
    Packet { kind: PacketKind::Response, frame: 120, ..ranked(7, number) }
}

fn stray(number: u32) -> Packet {
    let mut trail = Trail::default();
    trail.leave(Way::Detour);
    Packet { trail, payload: number, ..read_data(0, 1_000) }
}

fn leave(queue: &mut EgressQueue) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop().map(|packet| packet.payload)).collect()
}

fn order(config: &SchedulingConfig, packets: &[Packet]) -> Vec<u32> {
    let mut queue = EgressQueue::new(config, Bytes::kib(1 << 10));
    assert!(packets.iter().all(|packet| queue.push(packet)));
    leave(&mut queue)
}

#[test]
fn more_credit_is_a_more_urgent_rank_by_steps() {
    let rank = |credit| ranks().of_credit(credit);
    assert_eq!([0, 7, 8, 15, 16, 55, 56, 10_000].map(|credit| rank(Some(credit))), [7, 7, 6, 6, 5, 1, 0, 0]);
    assert_eq!(rank(None), 5);
}

#[test]
fn what_completes_writes_goes_first_reads_share_a_rank_and_strays_go_last() {
    let packets =
        [stray(1), ranked(7, 2), Packet { payload: 3, ..read_data(0, 1_000) }, ranked(0, 4), write_response(5)];
    assert_eq!(order(&storage_driven(8, Service::Strict), &packets), [5, 4, 3, 1, 2]);
    assert_eq!(order(&SchedulingConfig::Fifo, &packets), [1, 2, 3, 4, 5]);
}

#[test]
fn a_ready_to_transfer_goes_with_what_completes_writes_and_a_refused_read_with_reads() {
    let ready = Packet { kind: PacketKind::ReadyToTransfer, ..write_response(0) };
    assert_eq!(Traffic::of(&ready, &ranks()), Traffic::WriteCompletion);
    let refused = Packet { kind: PacketKind::Response, status: Outcome::Rejected, ..read_data(0, 120) };
    assert_eq!(Traffic::of(&refused, &ranks()), Traffic::Ranked(4));
}

#[test]
fn weighted_turns_let_the_last_queue_out_too() {
    let config = storage_driven(3, Service::WeightedRoundRobin(vec![2, 1]));
    let packets = [ranked(7, 1), ranked(7, 2), ranked(0, 3), ranked(0, 4), ranked(0, 5)];
    assert_eq!(order(&config, &packets), [3, 4, 1, 5, 2]);
    assert_eq!(order(&storage_driven(3, Service::Strict), &packets), [3, 4, 5, 1, 2]);
}

#[test]
fn the_last_byte_of_room_is_used_and_the_next_is_refused() {
    for config in [SchedulingConfig::Fifo, storage_driven(4, Service::Strict)] {
        let mut queue = EgressQueue::new(&config, Bytes::new(2_120));
        assert!(queue.push(&ranked(0, 1)) && queue.push(&write_response(2)) && queue.push(&ranked(1, 3)));
        assert!(!queue.push(&Packet { frame: 1, ..ranked(0, 4) }));
        assert_eq!((queue.used(), queue.room_left()), (Bytes::new(2_120), Bytes::ZERO));
        assert_eq!(leave(&mut queue).len(), 3);
        assert_eq!((queue.used(), queue.highest(), queue.is_empty()), (Bytes::ZERO, Bytes::new(2_120), true));
    }
}

#[test]
fn a_rank_beyond_all_that_is_known_is_the_least_urgent_one() {
    let config = storage_driven(9, Service::Strict);
    assert_eq!(order(&config, &[ranked(255, 1), ranked(7, 2), ranked(0, 3)]), [3, 1, 2]);
}

proptest! {
    #[test]
    fn packets_of_a_rank_never_overtake_each_other_whatever_moves_the_bounds(
        queues in 2u8..9, is_strict in any::<bool>(),
        steps in prop::collection::vec((0u8..12, any::<bool>(), any::<bool>()), 1..300),
    ) {
        let weights = (1..u32::from(queues)).rev().collect();
        let service = if is_strict { Service::Strict } else { Service::WeightedRoundRobin(weights) };
        let mut queue = EgressQueue::new(&storage_driven(queues, service), Bytes::kib(1 << 20));
        let (mut pushed, mut left) = (0, Vec::new());
        for (kind, pops, passes) in steps {
            let packet = match kind {
                0..=7 => ranked(kind, pushed),
                8 => write_response(pushed),
                9 => stray(pushed),
                _ => Packet { payload: pushed, ..read_data(0, 1_000) },
            };
            if queue.is_empty() && passes {
                queue.pass(&packet);
            } else {
                prop_assert!(queue.push(&packet));
                pushed += 1;
            }
            if pops {
                left.extend(queue.pop().cloned());
            }
        }
        left.extend(std::iter::from_fn(|| queue.pop().cloned()));
        prop_assert_eq!(left.len() as u32, pushed);
        let traffic = |packet: &Packet| Traffic::of(packet, &ranks());
        for first in &left {
            let same: Vec<u32> = left.iter().filter(|other| traffic(other) == traffic(first)).map(|other| other.payload).collect();
            prop_assert!(same.is_sorted(), "{:?}: {:?}", traffic(first), same);
        }
    }
}
