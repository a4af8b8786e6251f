//! Switched and switchless storage networks in the simulator: hosts, targets with their drives,
//! adapters or switches. What they decide is in the crate `san`; here their packets travel, their
//! drives answer and time passes.

mod aftermath;
mod build;
mod bytes;
mod carrier;
mod config;
mod drives;
mod ends;
mod engines;
mod facts;
mod faults;
mod flights;
mod network;
mod order;
mod pauses;
mod plan;
mod prefetch;
mod prime;
mod sample;
mod scene;
mod sizes;
mod source;
mod track;
mod wires;

use crate::drive::{Context, Rig, Ticket};
use crate::rigs::seat::Alarm;
use crate::sampler::Probe;
use crate::slab::Slab;
use base::{Bytes, Operation, Request, Span, Time};
use build::Vertices;
use carrier::Carrier;
use drives::Drives;
use ends::DriveWork;
use engines::Engines;
use facts::Observed;
use kernel::Soon;
use order::OrderCheck;
use record::Outcome;
use record::metric::Meter;
use san::hop::{Hop, HopOut};
use san::host::{Host, HostOut};
use san::route::Advertisement;
use san::target::{Target, TargetOut};
use sizes::Sizes;
use std::collections::BTreeSet;
use topology::{Channel, LinkId, VertexId};
use track::Tracks;

pub use config::{Checks, DriveModel, DrivesConfig, Fault, FaultKind, HopPolicy, SanBuildError, SanRigConfig};

/// An event of the rig.
#[derive(Clone, Copy, Debug)]
pub enum SanEvent {
    /// A packet is at the end of its link.
    Arrive(u32),
    /// A hop asked to be called about a port.
    PortFree(VertexId, san::Port),
    /// The engine of an adapter begins with a packet that has waited for it.
    Forward(u32),
    /// A program wants to run.
    Wake(VertexId),
    /// A drive has done something.
    DriveDone(u32),
    /// Distances are at a neighbour.
    Told(u32),
    /// Something breaks or comes back.
    Fault(u32),
    /// The end of a channel notices that its link has gone or come back.
    Notice(Channel, bool),
}

/// What a vertex is, by its place among its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host(u32),
    Target(u32),
    Hop(u32),
}

/// The programs of all vertices, by their places.
struct Programs {
    hosts: Vec<Host>,
    targets: Vec<Target>,
    hops: Vec<Hop>,
    /// By vertex: when its program is to be woken next.
    wakes: Vec<Alarm>,
    /// The length of a response, which hops reserve.
    response_frame: u32,
    /// Decisions of all programs of a kind: one buffer that stays in the cache, where a
    /// [`Seat`](super::seat::Seat) has one each.
    hop_out: Vec<HopOut>,
    host_out: Vec<HostOut>,
    target_out: Vec<TargetOut>,
}

/// Distances on their way to neighbours.
struct Gossip {
    told: Slab<(VertexId, san::Port, Advertisement, Channel)>,
    /// Whether hops are being told the distances that a settled network has.
    is_priming: bool,
}

/// A storage network with its drives.
pub struct SanRig {
    config: SanRigConfig,
    vertices: Vertices,
    programs: Programs,
    carrier: Carrier,
    engines: Engines,
    drives: Drives,
    gossip: Gossip,
    working: Slab<DriveWork>,
    tracks: Tracks,
    order: Option<OrderCheck>,
    observed: Observed,
    /// Links that are cut, whether or not their ends run.
    cut_links: BTreeSet<LinkId>,
}

type Now<'a, 'b> = &'a mut Context<'b, SanEvent>;

impl Rig for SanRig {
    type Event = SanEvent;

    fn start(&mut self, context: Now<'_, '_>) {
        self.prime(context);
        for index in 0..self.config.faults.len() {
            context.at(self.config.faults[index].at, SanEvent::Fault(index as u32));
        }
        for vertex in 0..self.vertices.places.len() {
            self.arm(VertexId(vertex as u32), context);
        }
    }

    fn issue(&mut self, ticket: Ticket, request: &Request, _intended: Time, context: Now<'_, '_>) {
        self.ask(ticket, request, context);
    }

    fn on(&mut self, event: SanEvent, context: Now<'_, '_>) {
        self.observed.latest = context.now;
        match event {
            SanEvent::Arrive(flight) => self.arrive(flight, context),
            SanEvent::Forward(flight) => self.forward(flight, context),
            SanEvent::PortFree(vertex, port) => self.port_free(vertex, port, context),
            SanEvent::Wake(vertex) => self.wake(vertex, context),
            SanEvent::DriveDone(work) => self.drive_done(work, context),
            SanEvent::Told(told) => self.hear(told, context),
            SanEvent::Fault(index) => self.fault(index as usize, context),
            SanEvent::Notice(channel, is_up) => self.notice(channel, is_up, context),
        }
    }

    const PREFETCHES: bool = true;

    /// In line, since `soon` is known where it is called.
    #[inline(always)]
    fn prefetch(&self, soon: Soon, event: SanEvent) -> Option<Ticket> {
        self.fetch(soon, event)
    }

    #[inline]
    fn prefetch_issue(&self, soon: Soon, request: &Request) {
        if soon == Soon::Shortly {
            self.fetch_session(request);
        }
    }

    /// Not known: requests of one size take ways of different lengths.
    fn unloaded(&self, _: Operation, _: Bytes) -> Option<Span> {
        None
    }

    fn link_busy(&self, out: &mut Vec<Span>) {
        self.carrier.wires.busy(out);
    }

    fn dropped_packets(&self) -> u64 {
        self.observed.counts.dropped + self.carrier.lost
    }

    fn measure(&self, _now: Time, meter: &mut Meter) {
        self.engines.warn(self.observed.latest - Time::ZERO, &self.config.graph, meter);
        self.facts(meter);
    }

    fn sample(&self, now: Time, probe: &mut Probe) {
        self.sample_state(now, probe);
    }

    fn end_warm_up(&mut self, now: Time) {
        self.observed.sizes = Sizes::from(now);
        self.carrier.flights.restart_highest();
        self.drives.restart_reports();
        self.programs.hops.iter_mut().for_each(Hop::restart_highest);
    }
}

/// Running programs when they want to.
impl SanRig {
    fn wake(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        if !self.programs.wakes[vertex.index()].ring(context.now) {
            return;
        }
        match self.vertices.places[vertex.index()] {
            Place::Hop(_) => self.wake_hop(vertex, context),
            Place::Host(_) => self.wake_host(vertex, context),
            Place::Target(_) => self.wake_target(vertex, context),
        }
    }

    /// Schedules the next run of a program, unless one is scheduled before that.
    fn arm(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        use base::Program;
        let next = match self.vertices.places[vertex.index()] {
            Place::Host(place) => self.programs.hosts[place as usize].next_wakeup(),
            Place::Target(place) => self.programs.targets[place as usize].next_wakeup(),
            Place::Hop(place) => self.programs.hops[place as usize].next_wakeup(),
        };
        self.wake_at(vertex, next, context);
    }

    #[inline]
    fn wake_at(&mut self, vertex: VertexId, next: Option<Time>, context: Now<'_, '_>) {
        if !self.carrier.is_running[vertex.index()] {
            return;
        }
        let next = next.map(|at| at.max(context.now));
        if let Some(at) = self.programs.wakes[vertex.index()].arm(next) {
            context.at(at, SanEvent::Wake(vertex));
        }
    }
}

/// How the room's outcome of an I/O reads in records.
fn outcome_of(outcome: san::Outcome) -> Outcome {
    match outcome {
        san::Outcome::Success => Outcome::Finished,
        san::Outcome::Rejected | san::Outcome::Unreachable | san::Outcome::Incomplete => Outcome::Rejected,
        san::Outcome::DriveFailed | san::Outcome::Aborted => Outcome::Lost,
    }
}
