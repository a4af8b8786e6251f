use super::*;
use crate::{Cqe, Status};
use proptest::prelude::*;

fn shape(size: u32, flow_control: bool) -> QueueShape {
    QueueShape::new(1, (size - 1) as u16, flow_control).unwrap()
}

#[test]
fn a_queue_of_one_entry_is_no_queue() {
    assert_eq!(QueueShape::new(1, 0, true), Err(QueueError::Size { got: 1 }));
    assert_eq!(shape(2, true).size(), 2);
    assert_eq!(shape(65_536, true).size(), 65_536);
}

#[test]
fn a_host_sends_one_command_less_than_the_queue_has_entries() {
    for flow_control in [false, true] {
        let mut host = HostQueue::new(shape(4, flow_control));
        let ids: Vec<u16> = (0..3).map(|command| host.submit(command).unwrap()).collect();
        assert_eq!(host.submit(9), Err((9, QueueError::Full { outstanding: 3, most: 3 })));
        assert_eq!(host.get_mut(ids[1]), Ok(&mut 1));
        assert_eq!(host.outstanding(), 3);
    }
}

fn completion(id: u16, sq_head: u16) -> Cqe {
    Cqe { result: 0, sq_head, sq_id: 1, id, status: Status::SUCCESS }
}

#[test]
fn with_flow_control_an_entry_is_free_when_the_head_has_passed_it_or_its_command_completes() {
    let mut host = HostQueue::new(shape(3, true));
    let ids = ['a', 'b'].map(|command| host.submit(command).unwrap());
    assert_eq!(host.room(), 0);
    assert_eq!(host.complete(&completion(ids[1], 1)), Ok('b'));
    assert_eq!(host.room(), 1, "the second was taken, and the first before it");
    let mut other = HostQueue::new(shape(4, true));
    let ids = ['a', 'b', 'c'].map(|command| other.submit(command).unwrap());
    assert_eq!(other.complete(&completion(ids[0], 3)), Ok('a'));
    assert_eq!(other.room(), 1, "the head has passed all three, of which two are outstanding");
    assert!(!other.had_odd_head());
}

#[test]
fn a_head_that_cannot_be_is_passed_over_and_the_queue_never_stalls() {
    for sq_head in [2, 3, 4, 0xffff] {
        let mut host = HostQueue::new(shape(4, true));
        let id = host.submit(()).unwrap();
        assert_eq!(host.complete(&completion(id, sq_head)), Ok(()));
        assert!(host.had_odd_head() && host.room() == 3, "{sq_head}");
    }
    // A controller that sends 0 for ever, as where the field is not kept at all.
    let mut host = HostQueue::new(shape(4, true));
    for _ in 0..20 {
        let id = host.submit(()).unwrap();
        assert_eq!(host.complete(&completion(id, 0)), Ok(()));
    }
    assert_eq!(host.room(), 3);
}

#[test]
fn a_completion_of_nothing_or_twice_is_refused_and_the_queue_it_names_is_not_read() {
    let mut host = HostQueue::new(shape(4, true));
    let id = host.submit(()).unwrap();
    assert_eq!(host.complete(&completion(3, 1)), Err(QueueError::Unknown { id: 3 }));
    assert_eq!(host.complete(&Cqe { sq_id: 0xffff, ..completion(id, 1) }), Ok(()));
    assert_eq!(host.complete(&completion(id, 1)), Err(QueueError::Unknown { id }), "twice");
}

#[test]
fn an_id_is_not_used_again_at_once() {
    let mut host = HostQueue::new(shape(2, false));
    let ids: Vec<u16> =
        (0..5).map(|_| host.submit(()).inspect(|id| host.complete_by_flag(*id).unwrap()).unwrap()).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
}

#[test]
fn what_is_outstanding_when_the_connection_goes_comes_back_once() {
    let mut host = HostQueue::new(shape(8, true));
    let ids: Vec<u16> = ['a', 'b', 'c'].map(|command| host.submit(command).unwrap()).to_vec();
    host.complete(&Cqe { result: 0, sq_head: 1, sq_id: 1, id: ids[1], status: Status::SUCCESS }).unwrap();
    assert_eq!(host.abandon(), [(ids[0], 'a'), (ids[2], 'c')]);
    assert!(host.abandon().is_empty() && host.outstanding() == 0);
    assert!((0..7).all(|_| host.submit('d').is_ok()), "the queue begins anew");
    let mut target = TargetQueue::new(shape(8, true));
    target.receive(0xffff, 'a').unwrap();
    target.receive(3, 'b').unwrap();
    assert_eq!(target.abandon(), [(3, 'b'), (0xffff, 'a')]);
}

#[test]
fn a_target_takes_as_many_commands_as_entries_and_not_one_more() {
    let mut target = TargetQueue::new(shape(4, true));
    (0..4).for_each(|id| target.receive(id * 0x1111, ()).unwrap());
    assert_eq!(target.receive(9, ()), Err(QueueError::Full { outstanding: 4, most: 4 }));
    assert_eq!(target.outstanding(), 4);
}

#[test]
fn an_id_in_use_is_refused_and_its_entry_counts_as_taken() {
    let mut target = TargetQueue::new(shape(4, true));
    target.receive(0xabcd, 'a').unwrap();
    assert_eq!(target.receive(0xabcd, 'b'), Err(QueueError::InUse { id: 0xabcd }));
    let refusal = target.refuse(0xabcd, Status::COMMAND_ID_CONFLICT, 0);
    assert_eq!((refusal.sq_head, refusal.id), (2, 0xabcd));
    assert_eq!(target.get_mut(0xabcd), Some(&mut 'a'), "the first goes on");
}

#[test]
fn a_command_completes_once_and_by_flag_only_without_flow_control() {
    let mut controlled = TargetQueue::new(shape(4, true));
    controlled.receive(1, ()).unwrap();
    assert_eq!(controlled.complete_by_flag(1), Err(QueueError::FlowControl { id: 1 }));
    assert!(controlled.complete(1, Status::SUCCESS, 0).is_ok());
    assert_eq!(controlled.complete(1, Status::SUCCESS, 0), Err(QueueError::Unknown { id: 1 }));
    let mut free = TargetQueue::new(shape(4, false));
    free.receive(1, ()).unwrap();
    free.receive(2, ()).unwrap();
    assert_eq!(free.complete_by_flag(1), Ok(()));
    let (_, completion) = free.complete(2, Status::SUCCESS, 5).unwrap();
    assert_eq!((completion.sq_head, completion.result, completion.sq_id), (0, 5, 0));
}

proptest! {
    #[test]
    fn both_ends_agree_whatever_the_order_of_completions(
        size in 2u32..20, flow_control in any::<bool>(), choices in prop::collection::vec(any::<(bool, prop::sample::Index)>(), 1..300),
    ) {
        let (mut host, mut target) = (HostQueue::new(shape(size, flow_control)), TargetQueue::new(shape(size, flow_control)));
        let (mut sent, mut done) = (0u32, Vec::new());
        for (submits, which) in choices {
            if submits && host.has_room() {
                let id = host.submit(sent).unwrap();
                target.receive(id, sent).unwrap();
                sent += 1;
            } else if target.outstanding() > 0 {
                let (id, _) = target.iter().nth(which.index(target.outstanding() as usize)).unwrap();
                let (command, completion) = target.complete(id, Status::SUCCESS, 0).unwrap();
                prop_assert_eq!(host.complete(&completion), Ok(command));
                prop_assert_eq!(completion.sq_head, if flow_control { (sent % size) as u16 } else { 0 });
                done.push(command);
            }
            prop_assert_eq!(host.outstanding(), target.outstanding());
            prop_assert!(host.outstanding() < size);
        }
        let mut left: Vec<u32> = host.abandon().into_iter().map(|(_, command)| command).collect();
        left.append(&mut done);
        left.sort_unstable();
        prop_assert_eq!(left, (0..sent).collect::<Vec<u32>>(), "each command ends once");
    }
}
