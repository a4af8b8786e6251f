//! RackBlox (Software) (4.1): the controller of virtual datacenters also tracks which vSSDs collect
//! garbage, grants collection by the rules of 3.5.1, and names the replica to which the storage
//! server may redirect reads meanwhile. Redirecting is the server's work; each question costs it a
//! round trip to the controller.

use super::ControllerOut;
use super::vdc::{self, VdcConfig, VdcConfigError};
use crate::id::VssdId;
use crate::packet::{Body, CollectionNote, ControlMessage, Packet};
use base::{NodeId, Program, Time};
use std::collections::BTreeSet;

/// The controller.
#[derive(Clone, Debug)]
pub struct Controller {
    flows: vdc::Controller,
    /// Those that have been granted collection, or have said that they collect, and have not
    /// finished.
    collecting: BTreeSet<VssdId>,
}

impl Controller {
    /// A controller of a rack in which nobody collects.
    pub fn new(config: VdcConfig) -> Result<Controller, VdcConfigError> {
        Ok(Controller { flows: vdc::Controller::new(config)?, collecting: BTreeSet::new() })
    }

    /// Messages that were not understood.
    pub fn refused(&self) -> u64 {
        self.flows.refused()
    }

    /// Returns whether a vSSD collects, as far as the controller knows.
    pub fn is_collecting(&self, vssd: VssdId) -> bool {
        self.collecting.contains(&vssd)
    }

    fn on_ask(&mut self, server: NodeId, vssd: VssdId, note: CollectionNote, out: &mut Vec<ControllerOut>) {
        if !self.flows.replicas_here(vssd).any(|replica| replica == (server, vssd)) {
            return self.flows.refuse();
        }
        match note {
            CollectionNote::Soft if self.another_collects(vssd) => {
                self.answer(server, vssd, CollectionNote::Delay, out)
            }
            CollectionNote::Soft | CollectionNote::Regular | CollectionNote::Background => {
                self.collecting.insert(vssd);
                self.answer(server, vssd, CollectionNote::Accept, out);
            }
            CollectionNote::Finish => {
                self.collecting.remove(&vssd);
            }
            CollectionNote::Accept | CollectionNote::Delay => self.flows.refuse(),
        }
    }

    /// Returns whether a replica of the same volume in this rack collects. A repeated request of a
    /// vSSD does not block itself.
    fn another_collects(&self, vssd: VssdId) -> bool {
        self.flows.replicas_here(vssd).any(|(_, other)| other != vssd && self.is_collecting(other))
    }

    fn answer(&self, server: NodeId, vssd: VssdId, note: CollectionNote, out: &mut Vec<ControllerOut>) {
        let may_redirect = note == CollectionNote::Accept;
        let mut others = self.flows.replicas_here(vssd).filter(|(_, other)| *other != vssd);
        let free = others.find(|(_, other)| may_redirect && !self.is_collecting(*other));
        let body = Body::Control(ControlMessage::Answer { note, free });
        out.push(ControllerOut::Send(Packet { vssd, latency_ns: 0, source: self.flows.node(), target: server, body }));
    }
}

impl Program for Controller {
    type In = Packet;
    type Out = ControllerOut;

    fn on(&mut self, now: Time, packet: Packet, out: &mut Vec<ControllerOut>) {
        match packet.body {
            Body::Control(ControlMessage::Ask(note)) => {
                self.on_wakeup(now, out);
                self.on_ask(packet.source, packet.vssd, note, out);
            }
            _ => self.flows.on(now, packet, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.flows.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<ControllerOut>) {
        self.flows.on_wakeup(now, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::vdc::{Link, Volume};
    use base::{Bytes, Rate, Span};
    use proptest::prelude::*;

    const CONTROLLER: NodeId = NodeId(50);
    const REMOTE: NodeId = NodeId(60);

    /// Two volumes of two replicas in this rack (servers 10 and 11) and one elsewhere: vSSDs 0, 1,
    /// 2 and 3, 4, 5.
    fn controller() -> Controller {
        let link = |server| Link { server: NodeId(server), rate: Rate::gbps(50) };
        let volume = |first| Volume {
            replicas: vec![(NodeId(10), VssdId(first)), (NodeId(11), VssdId(first + 1)), (REMOTE, VssdId(first + 2))],
        };
        let config = VdcConfig {
            node: CONTROLLER,
            clients: 4,
            period: Span::ms(100),
            write_cost: 10,
            page_message: Bytes::new(4_300),
            links: vec![link(10), link(11)],
            devices: vec![],
            volumes: vec![volume(0), volume(3)],
        };
        Controller::new(config).expect("a sound configuration")
    }

    fn server_of(vssd: u32) -> NodeId {
        [NodeId(10), NodeId(11), REMOTE][vssd as usize % 3]
    }

    fn ask(controller: &mut Controller, vssd: u32, note: CollectionNote) -> Option<ControlMessage> {
        let body = Body::Control(ControlMessage::Ask(note));
        let packet = Packet { vssd: VssdId(vssd), latency_ns: 0, source: server_of(vssd), target: CONTROLLER, body };
        let mut out = Vec::new();
        controller.on(Time::ZERO, packet, &mut out);
        let ControllerOut::Send(packet) = out.pop()?;
        assert_eq!((packet.source, packet.target, packet.vssd), (CONTROLLER, server_of(vssd), VssdId(vssd)));
        let Body::Control(message) = packet.body else { panic!("an answer is a control message") };
        Some(message)
    }

    fn accept(free: Option<u32>) -> Option<ControlMessage> {
        let free = free.map(|vssd| (server_of(vssd), VssdId(vssd)));
        Some(ControlMessage::Answer { note: CollectionNote::Accept, free })
    }

    const DELAY: Option<ControlMessage> = Some(ControlMessage::Answer { note: CollectionNote::Delay, free: None });

    #[test]
    fn a_soft_request_is_delayed_until_the_replica_has_finished() {
        let mut controller = controller();
        assert_eq!(ask(&mut controller, 0, CollectionNote::Soft), accept(Some(1)));
        assert_eq!(ask(&mut controller, 1, CollectionNote::Soft), DELAY);
        assert_eq!(ask(&mut controller, 0, CollectionNote::Finish), None);
        assert_eq!(ask(&mut controller, 1, CollectionNote::Soft), accept(Some(0)));
    }

    #[test]
    fn volumes_do_not_stand_in_each_others_way() {
        let mut controller = controller();
        assert_eq!(ask(&mut controller, 0, CollectionNote::Soft), accept(Some(1)));
        assert_eq!(ask(&mut controller, 3, CollectionNote::Soft), accept(Some(4)));
    }

    #[test]
    fn a_regular_request_is_never_denied_but_finds_no_free_replica() {
        let mut controller = controller();
        ask(&mut controller, 0, CollectionNote::Background);
        assert_eq!(ask(&mut controller, 1, CollectionNote::Regular), accept(None));
    }

    #[test]
    fn a_request_that_was_granted_is_granted_again_when_its_answer_was_lost() {
        let mut controller = controller();
        assert_eq!(ask(&mut controller, 0, CollectionNote::Soft), accept(Some(1)));
        assert_eq!(ask(&mut controller, 0, CollectionNote::Soft), accept(Some(1)));
    }

    #[test]
    fn what_a_server_may_not_ask_is_refused_and_changes_nothing() {
        let mut controller = controller();
        let before = controller.collecting.clone();
        for (vssd, note) in [
            (0, CollectionNote::Accept),
            (0, CollectionNote::Delay),
            (2, CollectionNote::Soft),
            (9, CollectionNote::Regular),
        ] {
            assert_eq!(ask(&mut controller, vssd, note), None);
        }
        let body = Body::Control(ControlMessage::Ask(CollectionNote::Regular));
        let packet = Packet { vssd: VssdId(0), latency_ns: 0, source: NodeId(11), target: CONTROLLER, body };
        controller.on(Time::ZERO, packet, &mut Vec::new());
        assert_eq!((controller.refused(), controller.collecting), (5, before));
    }

    fn notes() -> impl Strategy<Value = CollectionNote> {
        use CollectionNote::{Background, Finish, Regular, Soft};
        prop_oneof![4 => Just(Soft), 1 => Just(Regular), 1 => Just(Background), 3 => Just(Finish)]
    }

    proptest! {
        #[test]
        fn no_two_replicas_of_a_volume_are_ever_granted_a_soft_request(steps in prop::collection::vec((0_u32..6, any::<bool>()), 1..80)) {
            let mut controller = controller();
            let mut holders = BTreeSet::new();
            for (vssd, asks) in steps.into_iter().filter(|(vssd, _)| vssd % 3 < 2) {
                let answer = ask(&mut controller, vssd, if asks { CollectionNote::Soft } else { CollectionNote::Finish });
                if !asks {
                    holders.remove(&vssd);
                } else if answer != DELAY {
                    holders.insert(vssd);
                }
                prop_assert!([[0, 1], [3, 4]].iter().all(|pair| !pair.iter().all(|vssd| holders.contains(vssd))));
            }
        }

        #[test]
        fn a_replica_is_named_free_and_a_soft_request_granted_only_while_it_does_not_collect(
            steps in prop::collection::vec((0_u32..6, notes()), 1..80),
        ) {
            let mut controller = controller();
            let mut collecting = BTreeSet::new();
            for (vssd, note) in steps.into_iter().filter(|(vssd, _)| vssd % 3 < 2) {
                let other = if vssd % 3 == 0 { vssd + 1 } else { vssd - 1 };
                let free = (!collecting.contains(&other)).then_some(other);
                let expected = match note {
                    CollectionNote::Finish => None,
                    CollectionNote::Soft if free.is_none() => DELAY,
                    _ => accept(free),
                };
                prop_assert_eq!(ask(&mut controller, vssd, note), expected);
                if note == CollectionNote::Finish {
                    collecting.remove(&vssd);
                } else if expected != DELAY {
                    collecting.insert(vssd);
                }
            }
        }
    }
}
