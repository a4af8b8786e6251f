//! Abort: what has not come as far as a backend ends, and bit 0 of the answer says whether it did.

use crate::common::raw::Raw;
use crate::common::*;
use nvme::pdu::{Header, HostData};
use nvme::*;

const VICTIM: u16 = 7;
const ABORT: u16 = 8;
/// Blocks of the longest transfer, half of a connection's budget.
const LONG: u16 = 64;

struct Scene {
    world: World,
    admin: Raw,
    queue: Raw,
}

fn scene() -> Scene {
    let mut world = World::new(config());
    let admin = Raw::admin(&mut world);
    let queue = Raw::queue(&mut world, &admin, 1, 15);
    Scene { world, admin, queue }
}

fn access(blocks: u16) -> Access {
    Access { start: 0, blocks_minus_one: blocks - 1, flags: AccessFlags::empty() }
}

impl Scene {
    fn submit(&mut self, id: u16, io: Io, blocks: u16) {
        let data = Sgl::Transport { length: u32::from(blocks) * 512 };
        let command = Command { data, namespace: 1, ..Command::new(id, Body::Io(io)) };
        self.queue.command(&mut self.world, command, &[]);
    }

    /// Bit 0 of the answer.
    fn abort(&mut self, queue: u16, id: u16) -> u64 {
        let abort = Command::new(ABORT, Body::Admin(Admin::Abort { queue, id }));
        self.admin.command(&mut self.world, abort, &[]);
        let answer = self.admin.completion(&mut self.world, ABORT).expect("an answer at once");
        assert_eq!(answer.status, Status::SUCCESS);
        answer.result
    }

    fn ended(&mut self, id: u16) -> Option<Status> {
        self.queue.completion(&mut self.world, id).map(|completion| completion.status)
    }
}

#[test]
fn there_is_nothing_to_abort_where_nothing_is() {
    for (queue, id) in [(1, 77), (9, 0), (0, ABORT)] {
        assert_eq!(scene().abort(queue, id), 1, "queue {queue}, command {id}");
    }
}

#[test]
fn a_command_that_no_backend_has_taken_ends() {
    let mut scene = scene();
    scene.submit(VICTIM, Io::Read(access(1)), 1);
    assert_eq!(scene.abort(1, VICTIM), 0);
    assert_eq!(scene.ended(VICTIM), Some(Status::ABORT_REQUESTED));
    assert!(scene.world.disks.log.is_empty(), "no backend heard of it");
}

#[test]
fn a_command_that_waits_for_memory_ends_and_those_before_it_do_not() {
    let mut scene = scene();
    scene.world.answers = false;
    for id in [1, 2, VICTIM] {
        scene.submit(id, Io::Read(access(LONG)), LONG);
    }
    scene.world.work();
    assert_eq!(scene.abort(1, VICTIM), 0);
    assert_eq!(scene.ended(VICTIM), Some(Status::ABORT_REQUESTED));
    scene.world.answer_held();
    assert_eq!([1, 2].map(|id| scene.ended(id)), [Some(Status::SUCCESS); 2]);
    assert_eq!(scene.world.disks.log, ["read", "read"]);
}

#[test]
fn a_write_whose_data_are_on_their_way_is_not_carried_out_when_they_are_there() {
    let mut scene = scene();
    scene.submit(VICTIM, Io::Write(access(8)), 8);
    let asked = scene.queue.listen(&mut scene.world).iter().find_map(|pdu| match pdu.header {
        Header::ReadyToTransfer(ready) => Some(ready),
        _ => None,
    });
    assert_eq!(scene.abort(1, VICTIM), 1, "it has not ended yet");
    assert_eq!(scene.ended(VICTIM), None);
    let asked = asked.expect("the target asks for data");
    let data = HostData { command: VICTIM, tag: asked.tag, offset: 0, length: 4096, is_last: true };
    scene.queue.send(&mut scene.world, &Header::HostData(data), &[1; 4096]);
    assert_eq!(scene.ended(VICTIM), Some(Status::ABORT_REQUESTED));
    assert!(scene.world.disks.log.is_empty(), "nothing was written");
}

#[test]
fn what_a_backend_does_already_goes_on() {
    let mut scene = scene();
    scene.world.answers = false;
    scene.submit(VICTIM, Io::Read(access(1)), 1);
    scene.world.work();
    assert_eq!(scene.abort(1, VICTIM), 1);
    assert_eq!(scene.ended(VICTIM), None);
    scene.world.answer_held();
    assert_eq!(scene.ended(VICTIM), Some(Status::SUCCESS));
}
