//! The initiator against targets that break the rules: every command is told once, the association
//! ends, nothing panics.

use crate::common;

use crate::common::*;
use nvme::initiator::{HostEvent, InitiatorConfig, InitiatorError, Payload, Ticket};
use nvme::pdu::*;
use nvme::queue::QueueError;
use nvme::*;
use proptest::prelude::*;

/// A host that is connected and has one command on queue 1, which the target does not answer.
fn waiting(config: InitiatorConfig, body: Io, payload: Payload) -> (World, Ticket, u16) {
    let mut world = World::connected(common::config(), config);
    let ticket = world.submit(0, 1, 1, Body::Io(body), payload);
    let sent: Vec<u8> = world.guests[0].initiator.transmit(1).flatten().copied().collect();
    world.guests[0].initiator.transmitted(1, sent.len());
    let id = u16::from_le_bytes([sent[10], sent[11]]);
    (world, ticket, id)
}

fn access(blocks: u16) -> Access {
    Access { start: 0, blocks_minus_one: blocks - 1, flags: AccessFlags::empty() }
}

fn reading() -> (World, Ticket, u16) {
    waiting(initiator(1), Io::Read(access(2)), Payload::ToHost(1024))
}

fn writing() -> (World, Ticket, u16) {
    waiting(initiator(1), Io::Write(access(32)), Payload::ToController(vec![1; 16 << 10]))
}

fn data(command: u16, offset: u32, length: u32, is_last: bool) -> Vec<u8> {
    let header = ControllerData { command, offset, length, is_last, is_success: false };
    bytes(&Header::ControllerData(header), &vec![9; length as usize])
}

fn bytes(header: &Header, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Framing::INITIAL.write(header, data, &mut bytes);
    bytes
}

fn ready(command: u16, tag: u16, offset: u32, length: u32) -> Vec<u8> {
    bytes(&Header::ReadyToTransfer(ReadyToTransfer { command, tag, offset, length }), &[])
}

fn response(id: u16, status: Status) -> Vec<u8> {
    bytes(&Header::Response(Cqe { result: 0, sq_head: 2, sq_id: 1, id, status }), &[])
}

/// What the target says is the end of the association: for this reason, and the command is told
/// once.
fn ends(mut world: World, ticket: Ticket, said: &[u8]) -> InitiatorError {
    world.guests[0].events.clear();
    let now = world.now;
    let host = &mut world.guests[0].initiator;
    host.receive(now, 1, said);
    let events: Vec<HostEvent> = std::iter::from_fn(|| host.next_event()).collect();
    let told =
        events.iter().filter(|event| matches!(event, HostEvent::Completed { ticket: ended, .. } if *ended == ticket));
    assert_eq!(told.count(), 1, "{events:?}");
    match events.last() {
        Some(HostEvent::Failed(error)) => *error,
        other => panic!("the host went on: {other:?}"),
    }
}

fn fatal(world: World, ticket: Ticket, said: &[u8]) -> FatalStatus {
    match ends(world, ticket, said) {
        InitiatorError::Protocol { queue: 1, error } => error.fatal_status(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_header_length_of_255_ends_it() {
    let (world, ticket, id) = reading();
    let mut said = response(id, Status::SUCCESS);
    said[2] = 255;
    assert_eq!(fatal(world, ticket, &said), FatalStatus::InvalidField);
}

#[test]
fn two_r2ts_in_one_segment_where_one_was_allowed_end_it() {
    // The first alone is answered at once and no longer open: two that are open need a command that
    // is not a write's.
    let (world, ticket, id) = reading();
    let said = [ready(id, 1, 0, 512), ready(id, 2, 512, 512)].concat();
    assert_eq!(fatal(world, ticket, &said), FatalStatus::Sequence);
}

#[test]
fn an_r2t_beyond_the_write_or_out_of_order_ends_it() {
    for (offset, length) in [(0, (16 << 10) + 4), (512, 512), (u32::MAX - 3, 8), (0, 0)] {
        let (world, ticket, id) = writing();
        assert_eq!(fatal(world, ticket, &ready(id, 1, offset, length)), FatalStatus::OutOfRange);
    }
}

#[test]
fn an_r2t_for_data_that_went_in_the_capsule_ends_it() {
    let payload = Payload::ToController(vec![1; 512]);
    let (world, ticket, id) = waiting(initiator(1), Io::Write(access(1)), payload);
    assert_eq!(fatal(world, ticket, &ready(id, 1, 0, 512)), FatalStatus::OutOfRange);
}

#[test]
fn data_for_a_command_without_data_and_for_none_at_all_end_it() {
    let (world, ticket, id) = waiting(initiator(1), Io::Flush, Payload::None);
    assert_eq!(fatal(world, ticket, &data(id, 0, 512, true)), FatalStatus::OutOfRange);
    let (world, ticket, id) = reading();
    assert_eq!(fatal(world, ticket, &data(id ^ 0x5000, 0, 512, true)), FatalStatus::InvalidField);
}

#[test]
fn data_outside_of_the_read_end_it() {
    for (offset, length) in [(512, 512), (0, 1028), (1024, 4), (u32::MAX - 3, 8)] {
        let (world, ticket, id) = reading();
        assert_eq!(fatal(world, ticket, &data(id, offset, length, true)), FatalStatus::OutOfRange);
    }
}

#[test]
fn data_twice_and_success_without_all_data_end_it() {
    let (world, ticket, id) = reading();
    let said = [data(id, 0, 512, false), data(id, 0, 512, false)].concat();
    assert_eq!(fatal(world, ticket, &said), FatalStatus::OutOfRange);
    let (world, ticket, id) = reading();
    let said = [data(id, 0, 512, false), response(id, Status::SUCCESS)].concat();
    assert_eq!(fatal(world, ticket, &said), FatalStatus::Sequence);
}

#[test]
fn a_write_that_succeeds_before_its_data_were_asked_for_ends_it() {
    let (world, ticket, id) = writing();
    assert_eq!(fatal(world, ticket, &response(id, Status::SUCCESS)), FatalStatus::Sequence);
}

#[test]
fn a_completion_of_nothing_or_twice_ends_it() {
    let (world, ticket, id) = reading();
    let unknown = InitiatorError::Queue { queue: 1, error: QueueError::Unknown { id: id ^ 0x1000 } };
    assert_eq!(ends(world, ticket, &response(id ^ 0x1000, Status::SUCCESS)), unknown);
    let (world, ticket, id) = reading();
    let twice = [response(id, Status::INTERNAL_ERROR), response(id, Status::INTERNAL_ERROR)].concat();
    let unknown = InitiatorError::Queue { queue: 1, error: QueueError::Unknown { id } };
    assert_eq!(ends(world, ticket, &twice), unknown);
}

#[test]
fn a_damaged_read_fails_its_command_and_the_queue_goes_on() {
    let digests = Digests { header: true, data: true };
    let (mut world, ticket, id) =
        waiting(InitiatorConfig { digests, ..initiator(1) }, Io::Read(access(2)), Payload::ToHost(1024));
    let framing = Framing { digests, alignment: 0 };
    let header = ControllerData { command: id, offset: 0, length: 1024, is_last: true, is_success: false };
    let mut said = Vec::new();
    framing.write(&Header::ControllerData(header), &[0; 1024], &mut said);
    *said.last_mut().unwrap() ^= 1;
    framing.write(
        &Header::Response(Cqe { result: 0, sq_head: 2, sq_id: 1, id, status: Status::SUCCESS }),
        &[],
        &mut said,
    );
    let now = world.now;
    world.guests[0].initiator.receive(now, 1, &said);
    let event = world.guests[0].initiator.next_event();
    assert!(
        matches!(event, Some(HostEvent::Completed { ticket: ended, status: Status::TRANSIENT_TRANSPORT, .. }) if ended == ticket)
    );
    assert_eq!(world.guests[0].initiator.next_event(), None);
}

#[test]
fn a_target_that_does_not_answer_is_given_up_at_the_timeout() {
    let (mut world, ticket, _) = reading();
    world.now += base::Span::ms(9_999);
    let now = world.now;
    world.guests[0].initiator.on_wakeup(now);
    assert_eq!(world.guests[0].initiator.next_event(), None);
    let host = &mut world.guests[0].initiator;
    host.on_wakeup(now + base::Span::ms(1));
    let HostEvent::Completed { ticket: ended, status, .. } = host.next_event().unwrap() else { panic!("not told") };
    assert_eq!((ended, status), (ticket, Status::HOST_ABORTED));
    assert_eq!(host.next_event(), Some(HostEvent::Failed(InitiatorError::Timeout { queue: 1 })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn noise_from_a_target_never_harms_the_host(
        noise in prop::collection::vec(any::<u8>(), 0..400),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        portion in 1usize..100,
        writes in any::<bool>(),
    ) {
        let (mut world, ticket, id) = if writes { writing() } else { reading() };
        // Sound answers with changed bytes, and then noise.
        let mut said = if writes {
            [ready(id, 1, 0, 8192), ready(id, 2, 8192, 8192), response(id, Status::SUCCESS)].concat()
        } else {
            [data(id, 0, 512, false), data(id, 512, 512, true), response(id, Status::SUCCESS)].concat()
        };
        for (place, value) in changes {
            let at = place.index(said.len());
            said[at] = value;
        }
        said.extend(noise);
        let now = world.now;
        let host = &mut world.guests[0].initiator;
        said.chunks(portion).for_each(|piece| host.receive(now, 1, piece));
        host.closed(now, 1);
        let mut told = 0;
        while let Some(event) = host.next_event() {
            told += u32::from(matches!(event, HostEvent::Completed { ticket: ended, .. } if ended == ticket));
        }
        prop_assert_eq!(told, 1);
    }

    #[test]
    fn noise_while_connecting_never_harms_the_host(noise in prop::collection::vec(any::<u8>(), 0..300), kind in 0u8..10) {
        let mut host = nvme::initiator::Initiator::new(initiator(1));
        let now = base::Time::secs(1);
        host.opened(now, 0);
        let mut said = noise;
        if let Some(first) = said.first_mut() {
            *first = kind;
        }
        host.receive(now, 0, &said);
        host.closed(now, 0);
        prop_assert!(std::iter::from_fn(|| host.next_event()).any(|event| matches!(event, HostEvent::Failed(_))));
    }
}
