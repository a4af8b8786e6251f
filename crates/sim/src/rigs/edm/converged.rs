//! EDM's links when ordinary frames share them (paper 3.2.3): the same messages, by events instead
//! of by calculation.
//!
//! A frame crosses MAC, PCS and multiplexer of its host, the uplink, and the PCS of the switch,
//! which holds it until its /T/. Then come MAC, layer-2 forwarding, the bounded queue of the egress
//! port, multiplexer, downlink, PCS and MAC. With two planes the NICs send frames on both, as they
//! do messages, so that the planes stay in step; the frames of the first living one are counted.

use super::background::{Background, Traffic};
use super::flight::{Flight, Kind};
use super::ports::{Direction, Item, Left, LinkId, Sending, SharedLink};
use super::{Ctx, EdmEvent, EdmRig, EdmRigConfig};
use crate::sampler::Probe;
use base::{Bytes, NodeId, Span, Time};
use edm::Tag;
use record::Series;
use record::metric::{self, Meter};

/// The shared links of one plane.
struct Ports {
    uplinks: Vec<SharedLink>,
    downlinks: Vec<SharedLink>,
}

/// All shared links, and the frames on them.
pub struct Converged {
    planes: Vec<Ports>,
    traffic: Traffic,
    egress_queue: Bytes,
    /// By flight: when the last block of a chunk can leave the switch at the earliest, once its
    /// uplink has sent it.
    earliest: Vec<Option<Time>>,
}

impl Converged {
    /// Idle links.
    pub fn new(config: &EdmRigConfig, background: &Background) -> Converged {
        let links = || (0..config.nodes).map(|_| SharedLink::new(config.rate, background.preemption)).collect();
        let planes = if config.redundant { 2 } else { 1 };
        Converged {
            planes: (0..planes).map(|_| Ports { uplinks: links(), downlinks: links() }).collect(),
            traffic: Traffic::new(config, background),
            egress_queue: background.frames.egress_queue,
            earliest: Vec::new(),
        }
    }

    fn link(&mut self, id: LinkId) -> &mut SharedLink {
        let ports = &mut self.planes[usize::from(id.plane)];
        match id.direction {
            Direction::Up => &mut ports.uplinks[id.node.index()],
            Direction::Down => &mut ports.downlinks[id.node.index()],
        }
    }

    fn set_earliest(&mut self, flight: u32, at: Option<Time>) {
        let index = flight as usize;
        if self.earliest.len() <= index {
            self.earliest.resize(index + 1, None);
        }
        self.earliest[index] = at;
    }

    /// Queues a frame on a link.
    fn send_frame(&mut self, now: Time, link: LinkId, frame: u32) {
        let (blocks, bytes) = (self.traffic.blocks(frame), self.traffic.bytes(frame));
        self.link(link).send_frame(now, blocks, bytes, frame);
    }

    /// A link has sent a frame; returns when its receiver's decoder has all of it.
    fn sent_frame(&mut self, at: Time, link: LinkId, frame: u32) -> Time {
        let (blocks, bytes) = (self.traffic.blocks(frame), self.traffic.bytes(frame));
        self.link(link).sent_frame(at, blocks, bytes) + self.traffic.delays.line + self.traffic.delays.from_line
    }

    /// For [`Rig::link_busy`](crate::drive::Rig::link_busy).
    pub fn busy(&self, out: &mut Vec<Span>) {
        for ports in &self.planes {
            out.extend(ports.uplinks.iter().chain(&ports.downlinks).map(SharedLink::busy));
        }
    }

    /// For [`Rig::measure`](crate::drive::Rig::measure), from the frames of `plane`.
    pub fn measure(&self, plane: usize, meter: &mut Meter) {
        self.traffic.measure(plane, meter);
        let longest = |links: &[SharedLink]| {
            let bytes = links.iter().map(|link| link.queued_highest().count()).max();
            bytes.unwrap_or(0) as f64
        };
        meter.put(metric::background_longest_host_queue_bytes, longest(&self.planes[plane].uplinks));
        meter.put(metric::background_longest_egress_queue_bytes, longest(&self.planes[plane].downlinks));
    }

    /// For [`Rig::sample`](crate::drive::Rig::sample), from the frames of `plane`.
    pub fn sample(&self, plane: usize, probe: &mut Probe) {
        let queued =
            |links: &[SharedLink]| -> Vec<f64> { links.iter().map(|link| link.queued().count() as f64).collect() };
        let Ports { uplinks, downlinks } = &self.planes[plane];
        probe.put_each(Series::PortQueueBytes, 0, queued(downlinks).into_iter());
        probe.put_each(Series::HostQueueBytes, 0, queued(uplinks).into_iter());
    }

    /// For [`Rig::end_warm_up`](crate::drive::Rig::end_warm_up).
    pub fn end_warm_up(&mut self, now: Time) {
        self.traffic.end_warm_up(now);
        let links = self.planes.iter_mut().flat_map(|ports| ports.uplinks.iter_mut().chain(&mut ports.downlinks));
        links.for_each(SharedLink::restart_queued_highest);
    }
}

fn up(plane: usize, node: NodeId) -> LinkId {
    LinkId { plane: plane as u8, direction: Direction::Up, node }
}

fn down(plane: usize, node: NodeId) -> LinkId {
    LinkId { plane: plane as u8, direction: Direction::Down, node }
}

impl EdmRig {
    fn shared(&mut self) -> &mut Converged {
        self.planes.converged.as_mut().expect("only a rig with background traffic has shared links")
    }

    fn arm_link(&mut self, link: LinkId, context: Ctx) {
        if let Some(at) = self.shared().link(link).arm() {
            let LinkId { plane, direction, node } = link;
            context.at(at, EdmEvent::Link { plane, direction, node });
        }
    }

    /// Whether a shared uplink of `node` still carries a message. The end of that message starts
    /// the next.
    #[inline(always)]
    pub(super) fn is_sending(&self, node: NodeId) -> bool {
        self.planes.converged.as_ref().is_some_and(|converged| self.is_sending_shared(converged, node))
    }

    #[inline(never)]
    fn is_sending_shared(&self, converged: &Converged, node: NodeId) -> bool {
        let mut living = self.planes.iter().zip(&converged.planes).filter(|(plane, _)| plane.carries(node));
        living.any(|(_, ports)| ports.uplinks[node.index()].is_sending())
    }

    /// Puts one transmission onto the shared uplink of its plane.
    #[inline(never)]
    pub(super) fn launch_shared(&mut self, sent: Flight, context: Ctx) {
        let link = up(sent.plane(), sent.node());
        let flight = self.flights.add(sent);
        let serialization = self.timing.block * sent.blocks();
        let sending = Sending { flight: Some(flight), submitted: context.now, serialization };
        let first = self.shared().link(link).send_up(context.now, sent.blocks(), sending);
        self.shared().set_earliest(flight, None);
        if sent.is_data() {
            context.at(first + self.timing.hop + self.timing.delays.forward, EdmEvent::AtSwitch(flight));
        }
        self.arm_link(link, context);
    }

    /// Ends a flight at the switch. Its uplink may still be sending it.
    #[inline(always)]
    pub(super) fn forget_flight(&mut self, index: u32) {
        if self.planes.converged.is_some() {
            self.forget_shared(index);
        }
        self.flights.remove(index);
    }

    #[inline(never)]
    fn forget_shared(&mut self, index: u32) {
        let flight = self.flights.get(index);
        if let Some(converged) = &mut self.planes.converged {
            converged.link(up(flight.plane(), flight.node())).forget(index);
        }
    }

    /// The first block of a chunk is at its egress port.
    #[inline(never)]
    pub(super) fn forward_shared(&mut self, index: u32, sent: Flight, context: Ctx) {
        let serialization = self.timing.block * sent.blocks();
        let link = down(sent.plane(), sent.target());
        let converged = self.shared();
        let earliest = converged.earliest[index as usize];
        converged.link(link).send_down(context.now, sent.blocks(), serialization, index, earliest);
        self.flights.turn_to_target(index);
        self.arm_link(link, context);
    }

    /// A grant to its node.
    #[inline(never)]
    pub(super) fn grant_shared(&mut self, flight: Flight, context: Ctx) {
        let link = down(flight.plane(), flight.node());
        let index = self.flights.add(flight);
        self.shared().link(link).send_grant(context.now, index);
        self.arm_link(link, context);
    }

    /// A buffered request to its memory node.
    #[inline(never)]
    pub(super) fn request_shared(&mut self, flight: Flight, context: Ctx) {
        let link = down(flight.plane(), flight.node());
        let index = self.flights.add(flight);
        let blocks = flight.blocks();
        let serialization = self.timing.block * blocks;
        let earliest = Some(context.now + serialization);
        self.shared().link(link).send_down(context.now, blocks, serialization, index, earliest);
        self.arm_link(link, context);
    }

    /// A shared link may have sent something.
    #[inline(never)]
    pub(super) fn link_sent(&mut self, link: LinkId, context: Ctx) {
        // An event that an earlier one has overtaken finds its link armed for later, or for
        // nothing.
        if !self.shared().link(link).disarm(context.now) {
            return;
        }
        while let Some(done) = self.shared().link(link).pop_completed(context.now) {
            let at = done.last_block_end;
            match (link.direction, done.tag) {
                (Direction::Up, Item::Frame(frame)) => self.frame_sent_up(link, frame, at, context),
                (Direction::Up, _) => self.message_sent_up(link, at, context),
                (Direction::Down, Item::Frame(frame)) => self.frame_sent_down(link, frame, at),
                (Direction::Down, Item::Grant { flight, submitted }) => self.grant_sent(flight, submitted, at, context),
                (Direction::Down, Item::Message(flight)) => {
                    self.shared().link(link).sent_down(flight, at);
                    self.release(link, context);
                }
            }
        }
        self.arm_link(link, context);
    }

    fn message_sent_up(&mut self, link: LinkId, at: Time, context: Ctx) {
        let Sending { flight, submitted, serialization } = self.shared().link(link).take_sending();
        if let Some(flight) = flight {
            let waited = (at - submitted).saturating_sub(serialization);
            self.last_block_sent_up(flight, waited, at, context);
        }
        if self.paces[link.node.index()].up {
            self.transmit(link.node, context);
        }
    }

    fn last_block_sent_up(&mut self, flight: u32, waited: Span, at: Time, context: Ctx) {
        let sent = self.flights.get(flight);
        if !sent.is_data() {
            self.tracks.control_interleaved(sent.tag(), waited);
            return context.at(at + self.timing.hop + self.timing.delays.insert, EdmEvent::AtSwitch(flight));
        }
        self.tracks.data_interleaved(sent.tag(), waited);
        let earliest = at + self.timing.hop + self.timing.delays.forward;
        self.shared().set_earliest(flight, Some(earliest));
        // Its first block may be on the downlink already.
        let link = down(sent.plane(), sent.node());
        self.shared().link(link).not_before(flight, earliest);
        self.release(link, context);
    }

    /// Lets every message go on whose last block has a time to leave this downlink.
    fn release(&mut self, link: LinkId, context: Ctx) {
        while let Some(left) = self.shared().link(link).pop_left() {
            let flight = self.flights.get(left.flight);
            if matches!(flight.kind(), Kind::Request(..)) {
                self.flights.remove(left.flight);
                let serialization = self.timing.block * flight.blocks();
                self.request_waited(left.at - left.waited - serialization, left.waited, flight);
                self.serve(flight, left.at, context);
            } else {
                self.data_left(left, flight.tag(), context);
            }
        }
    }

    fn data_left(&mut self, left: Left, tag: Tag, context: Ctx) {
        self.counts.longest_data_wait = self.counts.longest_data_wait.max(left.waited);
        self.tracks[tag.0 as usize].forwarded(left.waited);
        context.at(left.at + self.timing.hop + self.timing.delays.take_data, EdmEvent::AtHost(left.flight));
    }

    fn grant_sent(&mut self, flight: u32, submitted: Time, at: Time, context: Ctx) {
        let grant = self.flights.remove(flight);
        let blocks = grant.blocks();
        let waited = (at - submitted).saturating_sub(self.timing.block * blocks);
        self.tracks[grant.tag().0 as usize].granted(submitted, waited, blocks);
        self.land_grant(grant, at, context);
    }

    /// Expects the first frames of every generator.
    pub(super) fn start_background(&mut self, context: Ctx) {
        let Some(converged) = &self.planes.converged else { return };
        for (index, at) in converged.traffic.next_bursts().enumerate() {
            context.at(at, EdmEvent::Burst(index as u32));
        }
    }

    /// A node hands frames to its uplinks.
    #[inline(never)]
    pub(super) fn burst(&mut self, generator: u32, context: Ctx) {
        let node = self.shared().traffic.node(generator);
        if !self.paces[node.index()].up {
            return;
        }
        let (burst, next) = self.shared().traffic.burst(generator);
        for plane in 0..self.planes.len() {
            if !self.planes[plane].up {
                continue;
            }
            for _ in 0..burst.frames {
                let converged = self.shared();
                let frame = converged.traffic.create(&burst, plane);
                converged.send_frame(context.now, up(plane, node), frame);
            }
            self.arm_link(up(plane, node), context);
        }
        context.at(next, EdmEvent::Burst(generator));
    }

    fn frame_sent_up(&mut self, link: LinkId, frame: u32, at: Time, context: Ctx) {
        let converged = self.shared();
        let at_mac = converged.sent_frame(at, link, frame);
        let delays = converged.traffic.delays;
        context.at(at_mac + delays.forwarding + delays.to_line, EdmEvent::FrameAtEgress(frame));
    }

    /// The switch has looked a frame up and puts it into the queue of its port.
    #[inline(never)]
    pub(super) fn frame_at_egress(&mut self, index: u32, context: Ctx) {
        let frame = self.shared().traffic.frame(index);
        let side = &self.planes[frame.plane];
        let is_connected = side.carries(frame.source) && side.carries(frame.target);
        let link = down(frame.plane, frame.target);
        let counts = self.planes.first_living() == frame.plane;
        let converged = self.shared();
        let (bytes, capacity) = (converged.traffic.bytes(index), converged.egress_queue);
        if !is_connected || !converged.link(link).has_room(bytes, capacity) {
            return converged.traffic.drop(index, counts);
        }
        converged.send_frame(context.now, link, index);
        self.arm_link(link, context);
    }

    fn frame_sent_down(&mut self, link: LinkId, frame: u32, at: Time) {
        let is_connected = self.planes[usize::from(link.plane)].carries(link.node) && self.paces[link.node.index()].up;
        let counts = self.planes.first_living() == usize::from(link.plane);
        let converged = self.shared();
        let delivered = converged.sent_frame(at, link, frame);
        if is_connected {
            converged.traffic.deliver(frame, delivered, counts);
        } else {
            converged.traffic.drop(frame, counts);
        }
    }
}
