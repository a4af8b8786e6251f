//! Demands that are longer than their messages: a bit of the size in an /N/ has flipped on the
//! line. Hosts withdraw them, and nobody else has to wait for a timer.

use base::{Bytes, NodeId, Program, Rate, Span, Time};
use edm::scheduler::Refused;
use edm::{Access, Body, Config, Host, HostIn, HostOut, Notification, Ordering, Place, Switch, SwitchIn, SwitchOut};
use edm::{Tag, Transmission, Wire};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const TIMEOUT: Span = Span::us(500);
/// From the end of a sender to the next program.
const HOP: Span = Span::ns(100);

enum Event {
    Submit(u32, HostIn),
    AtHost(u32, HostIn),
    AtSwitch(SwitchIn, Tag),
}

/// Hosts around a switch, with lines of a fixed length.
struct Rack {
    hosts: Vec<Host>,
    uplink_free_at: Vec<Time>,
    switch: Switch,
    place: Place,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    /// The bit that flips in the size of an /N/, by its number.
    flips: BTreeMap<u64, u32>,
    notifications: u64,
    /// Whether the withdrawal with this number is lost on the line.
    lost: Vec<bool>,
    withdrawals: usize,
    unexpected: u64,
    /// Requests that are lost between the switch and their memory node, by their number.
    requests_lost: BTreeSet<u64>,
    requests: u64,
    /// Requests whose /N/ was hit, or that the switch refused since their channel was full.
    hit: BTreeSet<Tag>,
    refused: BTreeSet<Tag>,
    ended: BTreeSet<Tag>,
    nulls: BTreeSet<Tag>,
    without_circuit: u64,
}

impl Rack {
    fn new(nodes: u32, ordering: Ordering) -> Rack {
        let config = Config { timeout: TIMEOUT, batch: Bytes::ZERO, ordering, ..Config::TESTBED };
        let place = Place { nodes, rate: Rate::gbps(25) };
        Rack {
            hosts: (0..nodes).map(|node| Host::new(NodeId(node), config, place)).collect(),
            uplink_free_at: vec![Time::ZERO; nodes as usize],
            switch: Switch::new(config, place),
            place,
            now: Time::ZERO,
            events: BTreeMap::new(),
            sequence: 0,
            flips: BTreeMap::new(),
            notifications: 0,
            lost: Vec::new(),
            withdrawals: 0,
            unexpected: 0,
            requests_lost: BTreeSet::new(),
            requests: 0,
            hit: BTreeSet::new(),
            refused: BTreeSet::new(),
            ended: BTreeSet::new(),
            nulls: BTreeSet::new(),
            without_circuit: 0,
        }
    }

    fn at(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn submit(&mut self, at: Time, node: u32, tag: u32, target: u32, bytes: u32, is_write: bool) {
        let access =
            if is_write { Access::Write { address: 0, bytes, word: 0 } } else { Access::Read { address: 0, bytes } };
        self.at(at, Event::Submit(node, HostIn::Submit { tag: Tag(tag), target: NodeId(target), access }));
    }

    /// Runs until nothing is left to do.
    ///
    /// # Panics
    /// If that takes longer than some timers, one after the other.
    fn run(&mut self) {
        while let Some(at) = self.next() {
            self.now = self.now.max(at);
            assert!(self.now < Time::ZERO + TIMEOUT * 20, "a ghost goes on; {:?}", self.nulls);
            while let Some(first) = self.events.first_entry().filter(|first| first.key().0 <= self.now) {
                let event = first.remove();
                self.handle(event);
            }
            let mut said = Vec::new();
            self.switch.on_wakeup(self.now, &mut said);
            self.switch_said(said, Tag::NONE);
            for node in 0..self.hosts.len() {
                let mut out = Vec::new();
                self.hosts[node].on_wakeup(self.now, &mut out);
                self.host_said(out);
                self.transmit(node);
            }
        }
    }

    fn next(&self) -> Option<Time> {
        let events = self.events.first_key_value().map(|((at, _), _)| *at);
        let hosts = self.hosts.iter().zip(&self.uplink_free_at).flat_map(|(host, free_at)| {
            [host.next_wakeup(), host.transmit_ready().map(|ready| ready.max(*free_at))].into_iter().flatten()
        });
        hosts.chain(events).chain(self.switch.next_wakeup()).min()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Submit(node, input) | Event::AtHost(node, input) => {
                let mut out = Vec::new();
                self.hosts[node as usize].on(self.now, input, &mut out);
                self.host_said(out);
            }
            Event::AtSwitch(input, tag) => {
                let mut said = Vec::new();
                self.switch.on(self.now, input, &mut said);
                if let (Some(SwitchOut::Forward { to }), SwitchIn::Data { message }) = (said.first(), input) {
                    let at = self.now + HOP;
                    self.at(at, Event::AtHost(to.0, HostIn::Take { message, word: 0 }));
                    if matches!(message.body, Body::WriteRequest { last: true, .. }) {
                        self.ended.insert(tag);
                    }
                }
                self.switch_said(said, tag);
            }
        }
    }

    fn host_said(&mut self, out: Vec<HostOut>) {
        for said in out {
            match said {
                HostOut::Answered { tag, .. } => drop(self.ended.insert(tag)),
                HostOut::Null { tag } => drop(self.nulls.insert(tag)),
                HostOut::Unexpected => self.unexpected += 1,
                HostOut::Written => {}
            }
        }
    }

    fn switch_said(&mut self, said: Vec<SwitchOut>, about: Tag) {
        for said in said {
            match said {
                SwitchOut::Grant { at, to, grant, .. } => {
                    self.at(at + HOP, Event::AtHost(to.0, HostIn::Granted(grant)));
                }
                SwitchOut::Request { at, message, tag, .. } => {
                    self.requests += 1;
                    if self.requests_lost.contains(&(self.requests - 1)) {
                        self.hit.insert(tag);
                        continue;
                    }
                    self.at(at + HOP, Event::AtHost(message.target.0, HostIn::Serve { message, tag }));
                }
                SwitchOut::Swallowed => panic!("no port dies"),
                SwitchOut::NoCircuit => self.without_circuit += 1,
                SwitchOut::Refused { reason: Refused::PairFull { .. }, .. } => drop(self.refused.insert(about)),
                SwitchOut::Refused { reason, .. } => panic!("{reason}"),
                SwitchOut::Forward { .. } | SwitchOut::Forgotten { .. } => {}
            }
        }
    }

    fn transmit(&mut self, node: usize) {
        if self.uplink_free_at[node] > self.now {
            return;
        }
        let Some(sent) = self.hosts[node].poll_transmit(self.now) else { return };
        self.uplink_free_at[node] = self.now + self.place.blocks(sent.blocks);
        let Transmission { what, tag, .. } = sent;
        let port = NodeId(node as u32);
        let input = match what {
            Wire::Notification(said) => match self.on_the_line(said, tag) {
                Some(notification) => SwitchIn::Notification { port, notification, tag },
                None => return,
            },
            Wire::Memory(message) => match message.body {
                Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => SwitchIn::Request { message, tag },
                Body::WriteRequest { .. } | Body::ReadResponse { .. } => SwitchIn::Data { message },
            },
        };
        self.at(self.uplink_free_at[node] + HOP, Event::AtSwitch(input, tag));
    }

    /// What the line makes of an /N/.
    fn on_the_line(&mut self, said: Notification, tag: Tag) -> Option<Notification> {
        assert_eq!(said.batch, 1, "nothing is batched here");
        if said.bytes == 0 {
            self.withdrawals += 1;
            let is_lost = self.lost.get(self.withdrawals - 1).copied().unwrap_or(false);
            return (!is_lost).then_some(said);
        }
        self.notifications += 1;
        let Some(bit) = self.flips.get(&(self.notifications - 1)) else { return Some(said) };
        self.hit.insert(tag);
        Some(Notification { bytes: said.bytes ^ 1 << bit, ..said })
    }
}

/// When it is made, source, how far the target is, bytes, and whether it is a write.
type Request = (u64, u32, u32, u32, bool);

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let bytes = prop_oneof![1u32..=64, Just(256u32), Just(512u32), 1u32..3_000];
    prop::collection::vec((0u64..20_000, 0u32..3, 1u32..3, bytes, any::<bool>()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever sizes become, every request ends. By its timer ends only one that was hit itself,
    /// or one for each such that came while the ghost had its place of X.
    #[test]
    fn only_requests_whose_size_was_hit_wait_for_their_timers(
        nodes in 2u32..4,
        in_pairs in any::<bool>(),
        requests in requests(),
        flips in prop::collection::btree_map(0u64..40, 0u32..32, 0..4),
        lost in prop::collection::vec(any::<bool>(), 0..20),
        requests_lost in prop::collection::btree_set(0u64..40, 0..3),
    ) {
        let mut rack = Rack::new(nodes, if in_pairs { Ordering::Pair } else { Ordering::Channel });
        (rack.flips, rack.lost, rack.requests_lost) = (flips, lost, requests_lost);
        for (tag, (at, source, far, bytes, is_write)) in requests.iter().enumerate() {
            let source = source % nodes;
            let target = (source + 1 + far % (nodes - 1)) % nodes;
            rack.submit(Time::ns(*at), source, tag as u32, target, *bytes, *is_write);
        }
        rack.run();
        for tag in (0..requests.len() as u32).map(Tag) {
            prop_assert!(rack.ended.contains(&tag) != rack.nulls.contains(&tag), "{tag:?} ends once");
        }
        let allowed: BTreeSet<Tag> = rack.hit.union(&rack.refused).copied().collect();
        prop_assert!(rack.nulls.is_subset(&allowed), "{:?} waited for their timers, {allowed:?} may", rack.nulls);
        prop_assert!(rack.refused.len() <= rack.hit.len(), "{:?} refused, {:?} hit", rack.refused, rack.hit);
        prop_assert_eq!(rack.without_circuit, 0, "circuits are whole");
        prop_assert_eq!(rack.switch.violations(), rack.refused.len() as u64);
        if rack.hit.is_empty() {
            prop_assert_eq!((rack.withdrawals, rack.unexpected), (0, 0));
        }
        for node in 0..nodes {
            prop_assert_eq!(rack.switch.scheduler().waiting(NodeId(node)), 0);
        }
    }
}

/// A write of 1 byte becomes one of 2^31 + 1. Its first grant says so, and the next write of the
/// pair has its own grant one round trip later.
#[test]
fn a_ghost_is_gone_after_a_round_trip() {
    let mut rack = Rack::new(2, Ordering::Pair);
    rack.flips.insert(0, 31);
    rack.submit(Time::ZERO, 0, 0, 1, 1, true);
    rack.submit(Time::ZERO, 0, 1, 1, 64, true);
    rack.run();
    assert_eq!(rack.ended.len(), 2);
    assert_eq!(rack.switch.withdrawals().ended, 1);
    assert!(rack.switch.withdrawals().idle <= 3, "grants were on the way: {:?}", rack.switch.withdrawals());
    assert!(rack.now < Time::us(2), "{:?}", rack.now);
}

/// The memory node gets the later grants of a read whose request was lost. 128 reads later the id
/// is in use again, and the answer has no more than what the switch grants.
#[test]
fn a_read_whose_request_was_lost_harms_no_later_one() {
    let mut rack = Rack::new(2, Ordering::Pair);
    rack.requests_lost.insert(0);
    for tag in 0..129u32 {
        rack.submit(Time::us(u64::from(tag)), 0, tag, 1, 600, false);
    }
    rack.run();
    assert_eq!((rack.nulls, rack.ended.len()), (BTreeSet::from([Tag(0)]), 128));
    assert_eq!(rack.without_circuit, 0, "circuits are whole");
    assert_eq!((rack.unexpected, rack.withdrawals), (1, 0), "the next request in its place ends it");
}

/// The same without a later read: the demand is over, so its withdrawal names nothing.
#[test]
fn what_was_granted_for_a_lost_request_is_withdrawn_once() {
    let mut rack = Rack::new(2, Ordering::Pair);
    rack.requests_lost.insert(0);
    rack.submit(Time::ZERO, 0, 0, 1, 600, false);
    rack.run();
    assert_eq!((rack.unexpected, rack.withdrawals, rack.switch.withdrawals().idle), (1, 1, 1));
}
