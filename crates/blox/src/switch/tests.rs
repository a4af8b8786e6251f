//! Stories about one switch; `interleavings` and `egress` hold what needs more than a story.

mod egress;
mod interleavings;
mod redirects;

use super::*;
use crate::{Page, Tag, Value};

const NODES: u32 = 6;
const CLIENT: NodeId = NodeId(0);
const FIRST: NodeId = NodeId(3);
const SECOND: NodeId = NodeId(4);
const CONTROLLER: NodeId = NodeId(5);
const UPLINK: NodeId = NodeId(6);
const PIPELINE: Span = Span::ns(400);
const ROUND: Span = Span::ns(700);
/// Two replicas of one volume.
const RED: VssdId = VssdId(7);
const BLUE: VssdId = VssdId(9);

fn config() -> SwitchConfig {
    SwitchConfig {
        nodes: NODES,
        uplink: UPLINK,
        pipeline: PIPELINE,
        recirculation: ROUND,
        coordination: true,
        scheduling: NetworkScheduling::Fifo,
        queue_bytes: Bytes::kib(1024),
        table_entries: 16,
    }
}

fn packet(vssd: VssdId, source: NodeId, target: NodeId, body: Body) -> Packet {
    Packet { vssd, latency_ns: 0, source, target, body }
}

fn read(vssd: VssdId, target: NodeId) -> Packet {
    packet(vssd, CLIENT, target, Body::Read { tag: Tag(1), page: Page(2) })
}

fn write(vssd: VssdId, target: NodeId) -> Packet {
    packet(vssd, CLIENT, target, Body::Write { tag: Tag(1), page: Page(2), value: Value(3), session: None })
}

fn note(vssd: VssdId, server: NodeId, note: CollectionNote) -> Packet {
    packet(vssd, server, server, Body::Collection(note))
}

fn create(vssd: VssdId, server: NodeId, replica: VssdId, replica_server: NodeId) -> Packet {
    packet(vssd, server, server, Body::Create { server, replica, replica_server })
}

/// A switch whose links are infinitely fast, and a clock.
struct Rack {
    switch: Switch,
    now: Time,
    out: Vec<SwitchOut>,
}

impl Rack {
    fn new(config: SwitchConfig) -> Rack {
        let switch = Switch::new(config).expect("a sound configuration");
        Rack { switch, now: Time::ZERO, out: Vec::new() }
    }

    /// With the two replicas in its tables.
    fn with_replicas(config: SwitchConfig) -> Rack {
        let mut rack = Rack::new(config);
        rack.create_replicas();
        rack
    }

    fn create_replicas(&mut self) {
        assert_eq!(self.send(create(RED, FIRST, BLUE, SECOND)), []);
        assert_eq!(self.send(create(BLUE, SECOND, RED, FIRST)), []);
    }

    fn on(&mut self, input: SwitchIn) {
        self.switch.on(self.now, input, &mut self.out);
    }

    /// Lets everything happen that is under way, and gives it with its times.
    fn settle(&mut self) -> Vec<(Time, SwitchOut)> {
        let mut seen = Vec::new();
        loop {
            for event in std::mem::take(&mut self.out) {
                seen.push((self.now, event));
                if let SwitchOut::Transmit { port, .. } = event {
                    self.on(SwitchIn::PortIdle(port));
                }
            }
            if !self.out.is_empty() {
                continue;
            }
            let Some(next) = self.switch.next_wakeup() else { return seen };
            self.now = next;
            self.switch.on_wakeup(next, &mut self.out);
        }
    }

    fn send(&mut self, packet: Packet) -> Vec<SwitchOut> {
        self.on(SwitchIn::Packet(packet));
        self.settle().into_iter().map(|(_, event)| event).collect()
    }

    /// Where a packet comes out, and as what.
    fn route(&mut self, packet: Packet) -> (NodeId, Packet) {
        match self.send(packet)[..] {
            [SwitchOut::Transmit { port, packet }] => (port, packet),
            ref other => panic!("one packet was expected to come out, not {other:?}"),
        }
    }

    /// The switch's answer to a `gc_op`.
    fn ask(&mut self, vssd: VssdId, server: NodeId, request: CollectionNote) -> CollectionNote {
        let (port, packet) = self.route(note(vssd, server, request));
        assert_eq!((port, packet.vssd, packet.target), (server, vssd, server));
        match packet.body {
            Body::Collection(answer) => answer,
            other => panic!("a note was expected, not {other:?}"),
        }
    }

    fn bits(&self) -> Vec<(bool, tables::Phase)> {
        (0..16).map(|vssd| self.switch.tables.bits(VssdId(vssd))).collect()
    }
}

use CollectionNote::{Accept, Background, Delay, Finish, Regular, Soft};

#[test]
fn a_packet_leaves_by_the_port_of_its_target_and_everything_foreign_by_the_uplink() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST);
    assert_eq!(rack.route(write(RED, FIRST)).0, FIRST);
    assert_eq!(rack.route(write(RED, NodeId(5))).0, NodeId(5));
    assert_eq!(rack.route(write(RED, NodeId(6))).0, UPLINK);
    assert_eq!(rack.route(write(RED, NodeId(1_000_000))).0, UPLINK);
}

#[test]
fn only_a_read_of_a_collecting_vssd_with_an_idle_replica_is_redirected() {
    let mut rack = Rack::with_replicas(config());
    let redirected = (SECOND, Packet { vssd: BLUE, target: SECOND, latency_ns: 400, ..read(RED, FIRST) });
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST);
    assert_eq!(rack.ask(BLUE, SECOND, Regular), Accept);
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST, "only the replica collects");
    assert_eq!(rack.ask(RED, FIRST, Regular), Accept);
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST, "both collect");
    assert_eq!(rack.ask(BLUE, SECOND, Finish), Finish);
    assert_eq!(rack.route(read(RED, FIRST)), redirected);
    assert_eq!(rack.route(write(RED, FIRST)).0, FIRST, "a write stays");
    assert_eq!(rack.ask(RED, FIRST, Finish), Finish);
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST);
    assert_eq!(rack.switch.counters().redirected, 1);
}

#[test]
fn a_soft_request_is_delayed_exactly_while_the_replica_collects() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.ask(RED, FIRST, Soft), Accept);
    assert_eq!(rack.ask(BLUE, SECOND, Soft), Delay);
    assert_eq!(rack.ask(RED, FIRST, Finish), Finish);
    assert_eq!(rack.ask(BLUE, SECOND, Background), Accept);
    assert_eq!(rack.ask(RED, FIRST, Soft), Delay);
    assert_eq!(rack.ask(RED, FIRST, Regular), Accept, "a regular request is never denied");
    assert!(rack.switch.is_collecting(RED) && rack.switch.is_collecting(BLUE));
}

#[test]
fn a_request_whose_answer_was_lost_may_be_repeated() {
    let mut rack = Rack::with_replicas(config());
    for request in [Soft, Regular, Background] {
        assert_eq!(rack.ask(RED, FIRST, request), Accept);
        assert_eq!(rack.ask(RED, FIRST, request), Accept);
        assert_eq!(rack.ask(RED, FIRST, Finish), Finish);
        assert_eq!(rack.ask(RED, FIRST, Finish), Finish);
        assert!(!rack.switch.is_collecting(RED));
    }
}

#[test]
fn a_vssd_without_a_replica_in_the_rack_is_accepted_and_never_redirected() {
    let mut rack = Rack::new(config());
    assert_eq!(rack.send(create(RED, FIRST, BLUE, NodeId(99))), []);
    assert_eq!(rack.ask(RED, FIRST, Soft), Accept);
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST);
    assert_eq!(rack.ask(RED, FIRST, Finish), Finish);
    assert!(!rack.switch.is_collecting(RED));
}

/// Pipeline once, and a round for each further pass: one to accept, two to take a bit back (the
/// higher number does not wait).
#[test]
fn latency_is_stamped_with_pipeline_and_rounds() {
    let mut rack = Rack::with_replicas(config());
    let mut spent = |packet: Packet| rack.route(packet).1.latency_ns;
    assert_eq!(spent(read(RED, FIRST)), 400);
    assert_eq!(spent(Packet { latency_ns: 1_000, ..read(RED, FIRST) }), 1_400);
    assert_eq!(spent(Packet { latency_ns: u32::MAX - 1, ..read(RED, FIRST) }), u32::MAX);
    assert_eq!(spent(note(RED, FIRST, Regular)), 400);
    assert_eq!(spent(note(BLUE, SECOND, Soft)), 400 + 2 * 700);
    assert_eq!(spent(note(RED, FIRST, Finish)), 400 + 700);
    assert_eq!(spent(note(RED, FIRST, Soft)), 400 + 700);
}

#[test]
fn waiting_for_the_link_is_stamped_too() {
    let mut rack = Rack::with_replicas(config());
    rack.on(SwitchIn::Packet(read(RED, FIRST)));
    rack.on(SwitchIn::Packet(write(RED, FIRST)));
    rack.now += PIPELINE;
    rack.switch.on_wakeup(rack.now, &mut rack.out);
    assert_eq!(rack.out.len(), 1, "the link is busy with the first");
    rack.now += Span::us(3);
    rack.on(SwitchIn::PortIdle(FIRST));
    let [SwitchOut::Transmit { packet: first, .. }, SwitchOut::Transmit { packet: second, .. }] = rack.out[..] else {
        panic!("two packets were expected, not {:?}", rack.out)
    };
    assert_eq!((first.latency_ns, second.latency_ns), (400, 3_400));
}

#[test]
fn reads_of_an_unreachable_server_go_to_the_replica_and_writes_are_lost() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.ask(BLUE, SECOND, Regular), Accept);
    rack.on(SwitchIn::LinkDown(FIRST));
    assert_eq!(rack.route(read(RED, FIRST)).0, SECOND, "better a collecting replica than none");
    let lost = SwitchOut::Dropped { packet: write(RED, FIRST), why: DropReason::LinkDown };
    assert_eq!(rack.send(write(RED, FIRST)), [lost]);
    rack.on(SwitchIn::LinkDown(SECOND));
    let lost = SwitchOut::Dropped { packet: read(RED, FIRST), why: DropReason::LinkDown };
    assert_eq!(rack.send(read(RED, FIRST)), [lost]);
    rack.on(SwitchIn::LinkUp(FIRST));
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST);
    assert_eq!((rack.switch.counters().rescued, rack.switch.counters().lost), (1, 2));
}

#[test]
fn a_collecting_vssd_keeps_its_reads_when_its_replica_cannot_be_reached() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.ask(RED, FIRST, Regular), Accept);
    rack.on(SwitchIn::LinkDown(SECOND));
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST);
}

#[test]
fn a_failed_switch_loses_everything_and_is_repopulated() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.ask(RED, FIRST, Regular), Accept);
    rack.on(SwitchIn::Packet(read(RED, FIRST)));
    rack.on(SwitchIn::Packet(note(BLUE, SECOND, Soft)));
    rack.on(SwitchIn::Fail);
    assert_eq!(rack.settle().len(), 2, "what was inside is lost");
    let down = SwitchOut::Dropped { packet: read(RED, FIRST), why: DropReason::SwitchDown };
    assert_eq!(rack.send(read(RED, FIRST)), [down]);
    rack.on(SwitchIn::Recover);
    assert!(!rack.switch.is_registered(RED) && !rack.switch.is_collecting(RED));
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST, "without tables it still forwards");
    rack.create_replicas();
    assert_eq!(rack.ask(RED, FIRST, Soft), Accept);
    assert_eq!(rack.route(read(RED, FIRST)).0, SECOND);
}

#[test]
fn a_vssd_that_is_told_a_new_replica_keeps_its_status_and_one_that_moves_does_not() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.ask(RED, FIRST, Soft), Accept);
    let green = VssdId(11);
    assert_eq!(rack.send(create(green, CONTROLLER, RED, FIRST)), []);
    let by_controller = Packet { source: CONTROLLER, ..create(RED, FIRST, green, CONTROLLER) };
    assert_eq!(rack.send(by_controller), []);
    assert!(rack.switch.is_collecting(RED));
    assert_eq!(rack.route(read(RED, FIRST)).1.vssd, green);
    assert_eq!(rack.send(create(RED, SECOND, green, CONTROLLER)), []);
    assert!(!rack.switch.is_collecting(RED));
}

#[test]
fn a_deleted_vssd_is_forgotten() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.ask(RED, FIRST, Regular), Accept);
    assert_eq!(rack.send(packet(RED, FIRST, FIRST, Body::Delete)), []);
    assert!(!rack.switch.is_registered(RED));
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST);
    assert_eq!(rack.ask(BLUE, SECOND, Regular), Accept);
    assert_eq!(rack.route(read(BLUE, SECOND)).0, SECOND, "there is no replica to go to");
}

#[test]
fn what_has_no_say_changes_no_table_and_is_counted() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.ask(RED, FIRST, Regular), Accept);
    let before = rack.bits();
    let wrong = [
        (note(RED, FIRST, Accept), DropReason::NotARequest),
        (note(RED, FIRST, Delay), DropReason::NotARequest),
        (note(RED, SECOND, Finish), DropReason::NotItsServer),
        (note(BLUE, FIRST, Soft), DropReason::NotItsServer),
        (note(VssdId(1), FIRST, Regular), DropReason::UnknownVssd),
        (note(VssdId(16), FIRST, Regular), DropReason::OutsideTables),
        (note(VssdId(u32::MAX), FIRST, Finish), DropReason::OutsideTables),
        (create(VssdId(16), FIRST, RED, FIRST), DropReason::OutsideTables),
        (create(RED, FIRST, VssdId(16), SECOND), DropReason::OutsideTables),
        (create(RED, NodeId(6), BLUE, SECOND), DropReason::OutsideTables),
        (packet(VssdId(16), FIRST, FIRST, Body::Delete), DropReason::OutsideTables),
    ];
    for (packet, why) in wrong {
        assert_eq!(rack.send(packet), [SwitchOut::Dropped { packet, why }]);
    }
    assert_eq!(rack.bits(), before);
    assert_eq!(rack.switch.counters().malformed, wrong.len() as u64);
}

#[test]
fn damaged_bytes_change_no_table_and_foreign_ones_are_told_apart() {
    let mut rack = Rack::with_replicas(config());
    let before = rack.bits();
    let mut bytes = Vec::new();
    crate::packet::encode(&note(RED, FIRST, Regular), &mut bytes);
    for place in 0..bytes.len() - 12 {
        bytes[place] ^= 1;
        assert!(rack.switch.on_bytes(Time::ZERO, &bytes, &mut rack.out).is_err());
        bytes[place] ^= 1;
    }
    assert_eq!((rack.settle(), rack.bits()), (vec![], before));
    assert_eq!(rack.switch.counters().malformed, bytes.len() as u64 - 12);
    assert_eq!(rack.switch.on_bytes(Time::ZERO, &bytes, &mut rack.out), Ok(()));
    assert!(rack.switch.is_collecting(RED));
}

#[test]
fn a_plain_switch_forwards_and_leaves_coordination_alone() {
    let mut rack = Rack::new(SwitchConfig { coordination: false, ..config() });
    let ignored = |packet| [SwitchOut::Dropped { packet, why: DropReason::NoCoordination }];
    for packet in [create(RED, FIRST, BLUE, SECOND), note(RED, FIRST, Regular), packet(RED, FIRST, FIRST, Body::Delete)]
    {
        assert_eq!(rack.send(packet), ignored(packet));
    }
    assert_eq!(rack.route(read(RED, FIRST)).0, FIRST);
    assert_eq!(rack.route(write(RED, FIRST)).0, FIRST);
    assert_eq!((rack.switch.counters().ignored, rack.switch.counters().transmitted), (3, 2));
}

#[test]
fn foreign_traffic_passes_unstamped_and_is_counted() {
    let mut rack = Rack::with_replicas(config());
    let foreign = packet(VssdId(0), CLIENT, FIRST, Body::Background { bytes: 9_000, priority: 3 });
    assert_eq!(rack.route(foreign), (FIRST, foreign));
    assert_eq!(rack.switch.counters().foreign, 1);
}

#[test]
fn reads_for_another_rack_are_not_looked_up() {
    let mut rack = Rack::with_replicas(config());
    assert_eq!(rack.ask(RED, FIRST, Regular), Accept);
    assert_eq!(rack.route(read(RED, NodeId(77))).0, UPLINK, "vSSD 7 of another rack is another vSSD");
}

/// 3.3: at most 1.3 MB a table.
#[test]
fn the_tables_take_what_the_paper_allows() {
    let paper = table_bytes(64 * 16 * 128);
    assert_eq!(paper.replica, Bytes::new(1_179_648));
    assert_eq!(paper.destination, paper.replica);
    assert_eq!(paper.registers, Bytes::kib(256));
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused_with_its_numbers() {
    let refused = |config| Switch::new(config).expect_err("refused");
    let uplink = SwitchError::Uplink { uplink: 5, nodes: 6 };
    assert_eq!(refused(SwitchConfig { uplink: NodeId(5), ..config() }), uplink);
    let small = |field, got, least| SwitchError::TooSmall { field, got, least };
    assert_eq!(
        refused(SwitchConfig { queue_bytes: Bytes::new(9_037), ..config() }),
        small("queue_bytes", 9_037, 9_038)
    );
    assert_eq!(refused(SwitchConfig { table_entries: 0, ..config() }), small("table_entries", 0, 1));
    let fair = NetworkScheduling::FairQueue { quantum: Bytes::ZERO };
    assert_eq!(refused(SwitchConfig { scheduling: fair, ..config() }), small("quantum", 0, 1));
    let urgent = NetworkScheduling::Priority { storage: 8 };
    let large = SwitchError::TooLarge { field: "storage", got: 8, most: 7 };
    assert_eq!(refused(SwitchConfig { scheduling: urgent, ..config() }), large);
}
