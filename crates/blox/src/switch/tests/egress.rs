//! Who goes next at a port, and what is lost.

use super::*;
use base::Rate;
use proptest::prelude::*;

fn flow(source: u32, bytes: u32) -> Packet {
    packet(VssdId(0), NodeId(source), FIRST, Body::Background { bytes, priority: 0 })
}

/// Payload of a frame of 1,000 B on the wire.
const KILOBYTE: u32 = 1_000 - 66;

/// Puts packets into the queue of one port at once, then lets the link take one every `period`;
/// gives `(time, packet)`.
fn drained(scheduling: NetworkScheduling, packets: &[Packet], period: Span) -> Vec<(Time, Packet)> {
    let mut rack = Rack::new(SwitchConfig { scheduling, pipeline: Span::ZERO, ..config() });
    let blocker = flow(5, 1);
    rack.on(SwitchIn::Packet(blocker));
    packets.iter().for_each(|packet| rack.on(SwitchIn::Packet(*packet)));
    rack.switch.on_wakeup(rack.now, &mut rack.out);
    rack.out.clear();
    let mut sent = Vec::new();
    while sent.len() < packets.len() {
        rack.now += period;
        rack.on(SwitchIn::PortIdle(FIRST));
        while rack.out.is_empty() {
            rack.now = rack.switch.next_wakeup().expect("a packet waits for its time");
            rack.switch.on_wakeup(rack.now, &mut rack.out);
        }
        for event in rack.out.drain(..) {
            let SwitchOut::Transmit { packet, .. } = event else { panic!("nothing is lost, but {event:?}") };
            sent.push((rack.now, packet));
        }
    }
    sent
}

fn sources(sent: &[(Time, Packet)]) -> Vec<u32> {
    sent.iter().map(|(_, packet)| packet.source.0).collect()
}

#[test]
fn fifo_keeps_the_order() {
    let packets = [flow(1, 9), flow(2, 9), flow(1, 9), flow(0, 9)];
    assert_eq!(sources(&drained(NetworkScheduling::Fifo, &packets, Span::ns(1))), [1, 2, 1, 0]);
}

#[test]
fn fair_queueing_shares_bytes_and_not_packets() {
    let fair = NetworkScheduling::FairQueue { quantum: Bytes::new(2_000) };
    let mut packets = vec![flow(1, 2 * KILOBYTE + 66); 6];
    packets.extend([flow(2, KILOBYTE); 12]);
    let sent = drained(fair, &packets, Span::ns(1));
    for round in sources(&sent).chunks(3) {
        assert_eq!(round, [1, 2, 2], "2,000 B each a round");
    }
}

#[test]
fn a_packet_larger_than_the_quantum_saves_for_its_turn() {
    let fair = NetworkScheduling::FairQueue { quantum: Bytes::new(500) };
    let packets = [flow(1, KILOBYTE), flow(2, KILOBYTE), flow(1, KILOBYTE), flow(2, KILOBYTE)];
    assert_eq!(sources(&drained(fair, &packets, Span::ns(1))), [1, 2, 1, 2]);
}

/// 1,000 B at 8 Gb/s: one microsecond a packet once the burst is used up.
#[test]
fn a_token_bucket_holds_a_flow_to_its_rate_and_no_other() {
    let shaped = NetworkScheduling::TokenBucket { rate: Rate::gbps(8), burst: Bytes::new(2_000) };
    let mut packets = vec![flow(1, KILOBYTE); 5];
    packets.push(flow(2, KILOBYTE));
    let sent = drained(shaped, &packets, Span::ns(10));
    assert_eq!(sources(&sent), [1, 1, 2, 1, 1, 1]);
    let times: Vec<Time> = sent.iter().filter(|(_, packet)| packet.source.0 == 1).map(|(time, _)| *time).collect();
    assert_eq!(times[..2], [Time::ns(10), Time::ns(20)], "the burst");
    // The bucket is full until the first leaves at 10 ns; 1,000 B are earned each microsecond from
    // then on.
    assert_eq!(times[2..], [Time::ns(1_010), Time::ns(2_010), Time::ns(3_010)]);
}

#[test]
fn the_more_urgent_class_goes_first_and_storage_has_its_own() {
    let background = |priority| packet(VssdId(0), CLIENT, FIRST, Body::Background { bytes: 9, priority });
    let priority = NetworkScheduling::Priority { storage: 4 };
    let sent = drained(priority, &[background(0), write(RED, FIRST), background(7), background(4)], Span::ns(1));
    let sent: Vec<Body> = sent.iter().map(|(_, packet)| packet.body).collect();
    assert_eq!(sent, [background(7).body, write(RED, FIRST).body, background(4).body, background(0).body]);
}

/// Fills a port whose link is busy, then sends one more; gives who is lost.
fn lost_to_a_full_port(scheduling: NetworkScheduling, filler: &[Packet], last: Packet) -> Vec<Packet> {
    let mut rack =
        Rack::new(SwitchConfig { scheduling, queue_bytes: Bytes::new(10_000), pipeline: Span::ZERO, ..config() });
    let mut send = |packet| {
        rack.on(SwitchIn::Packet(packet));
        rack.switch.on_wakeup(rack.now, &mut rack.out);
    };
    send(flow(5, 1));
    filler.iter().for_each(|packet| send(*packet));
    send(last);
    let lost = |event: &SwitchOut| match event {
        SwitchOut::Dropped { packet, why: DropReason::QueueFull } => Some(*packet),
        _ => None,
    };
    rack.out.iter().filter_map(lost).collect()
}

#[test]
fn a_full_port_loses_the_packet_that_one_byte_does_not_fit() {
    let fifo = NetworkScheduling::Fifo;
    let nine = [flow(1, KILOBYTE); 9];
    assert_eq!(lost_to_a_full_port(fifo, &nine, flow(2, KILOBYTE)), []);
    assert_eq!(lost_to_a_full_port(fifo, &nine, flow(2, KILOBYTE + 1)), [flow(2, KILOBYTE + 1)]);
}

#[test]
fn a_full_port_that_knows_flows_loses_from_the_longest() {
    let fair = NetworkScheduling::FairQueue { quantum: Bytes::new(9_038) };
    let shaped = NetworkScheduling::TokenBucket { rate: Rate::gbps(1), burst: Bytes::new(9_038) };
    for scheduling in [fair, shaped] {
        let ten = [flow(1, KILOBYTE); 10];
        assert_eq!(lost_to_a_full_port(scheduling, &ten, flow(2, KILOBYTE)), [flow(1, KILOBYTE)]);
        assert_eq!(lost_to_a_full_port(scheduling, &ten, flow(1, 1)), [flow(1, 1)], "the flood loses its own");
    }
}

#[test]
fn a_full_port_makes_room_for_the_more_urgent_alone() {
    let priority = NetworkScheduling::Priority { storage: 3 };
    let background = |priority| packet(VssdId(0), CLIENT, FIRST, Body::Background { bytes: KILOBYTE, priority });
    let ten = [background(3); 10];
    assert_eq!(lost_to_a_full_port(priority, &ten, background(4)), [background(3)]);
    assert_eq!(lost_to_a_full_port(priority, &ten, background(3)), [background(3)], "the newcomer");
    assert_eq!(lost_to_a_full_port(priority, &ten, background(2)), [background(2)]);
}

fn scheduling() -> impl Strategy<Value = NetworkScheduling> {
    prop_oneof![
        Just(NetworkScheduling::Fifo),
        (1_u64..40)
            .prop_map(|gbps| NetworkScheduling::TokenBucket { rate: Rate::gbps(gbps), burst: Bytes::new(3_000) }),
        (1_u64..10_000).prop_map(|quantum| NetworkScheduling::FairQueue { quantum: Bytes::new(quantum) }),
        (0_u8..8).prop_map(|storage| NetworkScheduling::Priority { storage }),
    ]
}

/// What may happen next: most of all a packet.
fn event() -> impl Strategy<Value = SwitchIn> {
    let background = (0..NODES + 3, 0..NODES + 3, 0_u32..8_000, 0_u8..8).prop_map(|(from, to, bytes, priority)| {
        SwitchIn::Packet(packet(VssdId(0), NodeId(from), NodeId(to), Body::Background { bytes, priority }))
    });
    let storage = (0..NODES + 3, 0..NODES + 3)
        .prop_map(|(from, to)| SwitchIn::Packet(Packet { source: NodeId(from), ..write(RED, NodeId(to)) }));
    let node = || (0..=NODES).prop_map(NodeId);
    prop_oneof![
        20 => background,
        10 => storage,
        2 => node().prop_map(SwitchIn::LinkDown),
        3 => node().prop_map(SwitchIn::LinkUp),
        1 => Just(SwitchIn::Fail),
        2 => Just(SwitchIn::Recover),
    ]
}

/// Links that take a while, so that ports fill; everything ends in a transmission or a loss.
#[derive(Default)]
struct Ledger {
    idle: Vec<(Time, NodeId)>,
    transmitted: u64,
    dropped: u64,
}

impl Ledger {
    fn note(&mut self, now: Time, out: &mut Vec<SwitchOut>) {
        for event in out.drain(..) {
            match event {
                SwitchOut::Transmit { port, packet } => {
                    self.transmitted += 1;
                    assert!(self.idle.iter().all(|(_, busy)| *busy != port), "{port:?} was busy");
                    self.idle.push((now + Rate::gbps(25).span_of(packet.wire_bytes()), port));
                }
                SwitchOut::Dropped { .. } => self.dropped += 1,
            }
        }
    }

    fn next(&self) -> Option<(Time, NodeId)> {
        self.idle.iter().copied().min()
    }

    /// Lets links and switch go on up to `end`.
    fn run(&mut self, rack: &mut Rack, end: Time) {
        loop {
            let (link, switch) = (self.next(), rack.switch.next_wakeup());
            let next = link.map_or(Time::MAX, |(time, _)| time).min(switch.unwrap_or(Time::MAX));
            if next > end || next == Time::MAX {
                return;
            }
            rack.now = next;
            match link {
                Some((time, port)) if time == next => {
                    self.idle.retain(|(_, busy)| *busy != port);
                    rack.on(SwitchIn::PortIdle(port));
                }
                _ => rack.switch.on_wakeup(next, &mut rack.out),
            }
            self.note(next, &mut rack.out);
        }
    }
}

proptest! {
    #[test]
    fn every_packet_is_sent_or_lost_exactly_once(
        scheduling in scheduling(), events in prop::collection::vec((0_u64..2_000, event()), 1..150),
    ) {
        let mut rack =
            Rack::new(SwitchConfig { scheduling, queue_bytes: Bytes::new(20_000), ..config() });
        let mut ledger = Ledger::default();
        let mut packets = 0;
        for (gap_ns, event) in events {
            let at = rack.now + Span::ns(gap_ns);
            ledger.run(&mut rack, at);
            rack.now = at;
            packets += u64::from(matches!(event, SwitchIn::Packet(_)));
            // A link that comes up is idle: the one that went down took its packet with it.
            if let SwitchIn::LinkUp(node) = event {
                ledger.idle.retain(|(_, busy)| *busy != node);
            }
            rack.on(event);
            ledger.note(at, &mut rack.out);
        }
        ledger.run(&mut rack, Time::MAX);
        prop_assert_eq!(ledger.transmitted + ledger.dropped, packets);
        let counters = rack.switch.counters();
        prop_assert_eq!((counters.transmitted, counters.lost), (ledger.transmitted, ledger.dropped));
    }
}
