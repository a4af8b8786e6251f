//! The initiator: sends the I/Os of its sessions to drives as NVMe-oF commands, and ends each once.
//!
//! An I/O waits until the session's credit (from the target's last packet) and the queue pair have
//! room. It leaves by the uplink that routing chooses, and ends with its response. Failures and
//! their handling:
//!
//! * A hop refuses the bandwidth, or has no route: the host resends the command after a back-off
//!   that doubles.
//! * Part of a complete answer is missing, or the target reports missing data of a write: the host
//!   resends the command after a back-off
//!   ([`WireConfig::fast_retransmit`](crate::wire::WireConfig::fast_retransmit)).
//! * No answer arrives: the host resends the command after [`HostConfig::probe`], then after every
//!   [`HostConfig::timeout`], up to [`HostConfig::sends_max`] times. Then the association of its
//!   lane has failed.
//! * The link of an uplink goes down: its associations have failed.
//! * An association has failed: its I/Os are sent as new commands under another association, reads
//!   at once, writes when [`RetryPolicy`] allows.
//! * The target aborts a command: the host sends a new command after a back-off.
//! * The drive has failed: the I/O ends with [`Outcome::DriveFailed`].
//!
//! "Send" puts a packet into the first-in-first-out queue of a port, which belongs to the rig.

mod cores;
mod io;
mod lane;
mod receive;
mod recover;
mod stream;

pub use cores::CoresConfig;

use crate::connection::{Connections, StreamConfig};
use crate::id::{DriveId, Port, SessionId, Tag};
use crate::packet::{Outcome, Packet, PacketKind};
use crate::retry::RetryPolicy;
use crate::route::{Advertisement, Router};
use crate::session::{Attempt, LANES_MAX};
use crate::stream::{Streams, by_windows, pause, repair};
use crate::trail::Trail;
use crate::wire::{WireConfig, WireFormat};
use base::{Operation, Program, Rate, RequestId, Span, Time};
use cores::Cores;
use io::{Io, IoPlace, Ios, Stage};
use lane::{Lanes, Session, Sessions};
use nvme::queue::QueueError;
use nvme::wire::MtuError;
use recover::{Later, Timers};
use std::sync::Arc;
use topology::VertexId;
use transport::Allowance;

/// A session of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSession {
    /// Its identifier in the network.
    pub id: SessionId,
    /// Its drive.
    pub drive: DriveId,
    /// The vertex of the target that has the drive.
    pub target: VertexId,
}

/// The sessions of a host by index, at most one per drive. Hosts share the table of drives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSessions {
    /// By session index: the drive, and the vertex of its target.
    pub drives: Arc<[(DriveId, VertexId)]>,
    /// The identifier of the first session.
    pub first: SessionId,
    /// The difference between the identifiers of consecutive sessions.
    pub stride: u32,
}

impl HostSessions {
    /// Returns the number of sessions.
    pub fn len(&self) -> usize {
        self.drives.len()
    }

    /// Returns whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.drives.is_empty()
    }

    fn get(&self, place: u32) -> HostSession {
        let (drive, target) = self.drives[place as usize];
        HostSession { id: SessionId(self.first.0 + place * self.stride), drive, target }
    }

    /// Tries the drive's own number first: usually drives are numbered in this order.
    #[inline]
    fn place_of(&self, drive: DriveId) -> Option<u32> {
        let is_it = |entry: &(DriveId, VertexId)| entry.0 == drive;
        let place = if self.drives.get(drive.index()).is_some_and(is_it) {
            drive.index()
        } else {
            self.drives.iter().position(is_it)?
        };
        Some(place as u32)
    }
}

/// The configuration of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// The host's vertex.
    pub vertex: VertexId,
    /// Its sessions.
    pub sessions: HostSessions,
    /// The format of packets.
    pub wire: WireConfig,
    /// Entries of the queue pair of each lane of a session; at most one fewer commands are open.
    pub queue_entries: u16,
    /// Whether credit limits the outstanding I/Os of a session.
    pub credits: bool,
    /// The credit before the first packet from the target; published 32 (Gimbal).
    pub credit_initial: u32,
    /// Maximum of waiting I/Os of a session.
    pub waiting_max: usize,
    /// Timeout of a command that was sent once: the tail loss probe of TCP (RFC 8985, 7.2).
    /// `timeout` if that is shorter.
    pub probe: Span,
    /// Timeout of a command that was sent more than once.
    pub timeout: Span,
    /// Floor of the adaptive timeout: the smoothed time from a session's sends to their ends plus
    /// four deviations (RFC 6298), doubled by each loss up to `timeout`, in place of `probe` and
    /// `timeout` from the first end on. `None`: those two.
    pub timeout_min: Option<Span>,
    /// Unanswered sends of a command after which its association has failed; at least 1.
    pub sends_max: u8,
    /// Back-off after the first refusal of a command; doubles with each.
    pub back_off: Span,
    /// Maximum back-off.
    pub back_off_max: Span,
    /// Time for which a lane whose association timed out is avoided while another is usable.
    pub suspect_for: Span,
    /// The handling of the writes of a failed association.
    pub retry: RetryPolicy,
    /// Congestion control. `None`: packets leave as soon as the link is free, and lost ones are
    /// repaired by resending commands.
    pub stream: Option<StreamConfig>,
    /// The link rate of each port. Used only by paced connections.
    pub links: Vec<Rate>,
    /// The cores that process I/Os. `None`: there are always enough.
    pub cores: Option<CoresConfig>,
}

/// The uplinks of a host.
#[derive(Clone, Debug)]
pub enum Uplinks {
    /// One port, 0: the network makes all routing decisions.
    One,
    /// Several ports, chosen by routing.
    Routed(Box<Router>),
}

/// An I/O to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostIo {
    /// The request's identifier in the run.
    pub request: RequestId,
    /// Read, write or read-modify-write.
    pub operation: Operation,
    /// First byte on the drive.
    pub address: u64,
    /// Length in bytes, at least one.
    pub bytes: u32,
}

/// An input of a host.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation a packet")]
pub enum HostIn {
    /// A client submits an I/O.
    Submit {
        /// Index of the session in the configuration.
        session: u32,
        /// The I/O to queue.
        io: HostIo,
    },
    /// A whole packet was received.
    Packet {
        /// The ingress port.
        port: Port,
        /// The packet as received.
        packet: Packet,
    },
    /// A neighbour's distance advertisement.
    Advertisement {
        /// The ingress port.
        port: Port,
        /// The distances.
        advertisement: Advertisement,
    },
    /// The link of a port went down; packets in the port's queue are lost.
    LinkDown(Port),
    /// The link of a port came up.
    LinkUp(Port),
}

/// An output of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation a packet")]
pub enum HostOut {
    /// A packet for the first-in-first-out queue of a port.
    Send {
        /// The egress port.
        port: Port,
        /// The packet to send.
        packet: Packet,
    },
    /// An I/O has ended.
    Done(HostDone),
}

/// The result of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostDone {
    /// The request that ended.
    pub request: RequestId,
    /// Index of its session.
    pub session: u32,
    /// [`Outcome::Success`]; [`Outcome::DriveFailed`]; or [`Outcome::Aborted`] if the session's
    /// queue was full and nothing was done.
    pub outcome: Outcome,
    /// When its first packet was sent; `None` if none was.
    pub first_sent: Option<Time>,
    /// When the command that ended it was last sent; `None` if none was.
    pub last_sent: Option<Time>,
    /// Number of commands sent for it, repeats included.
    pub sends: u32,
    /// Time in the target's queue and at its drive, from the answer's header, nanoseconds.
    pub drive_latency_ns: u32,
}

/// The counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Commands that a hop refused.
    pub rejected: u64,
    /// Commands for which a hop had no route.
    pub unreachable: u64,
    /// Commands that the target aborted.
    pub aborted: u64,
    /// Sends that timed out.
    pub timeouts: u64,
    /// Answers with missing parts, and writes whose target reported missing data.
    pub gaps: u64,
    /// Associations that failed.
    pub path_failures: u64,
    /// I/Os that were resent under another association.
    pub retries: u64,
    /// Packets that matched no open command.
    pub stale: u64,
    /// The longest queue of waiting I/Os of any session.
    pub waiting_highest: usize,
}

/// An invalid configuration of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The MTU has no room behind the headers.
    #[error(transparent)]
    Mtu(#[from] MtuError),
    /// A queue pair without room for a command.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// More uplinks than an attempt can encode, or none.
    #[error("{got} uplinks, allowed are 1 to 8")]
    Uplinks {
        /// Number of uplinks.
        got: usize,
    },
}

/// The initiator.
#[derive(Clone, Debug)]
pub struct Host {
    config: HostConfig,
    format: WireFormat,
    uplinks: Uplinks,
    /// By port: whether its link is up.
    ports_up: Vec<bool>,
    sessions: Sessions,
    lanes: Lanes,
    ios: Ios,
    timers: Timers,
    counters: HostCounters,
    streams: Streams<HostOut>,
    cores: Option<Cores>,
}

impl Host {
    /// Creates a host whose uplinks are all up.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn new(config: HostConfig, uplinks: Uplinks) -> Result<Self, HostError> {
        let ports = match &uplinks {
            Uplinks::One => 1,
            Uplinks::Routed(router) => router.distances().port_count(),
        };
        if ports == 0 || ports > LANES_MAX {
            return Err(HostError::Uplinks { got: ports });
        }
        Ok(Host {
            format: WireFormat::new(&config.wire)?,
            uplinks,
            ports_up: vec![true; ports],
            sessions: Sessions::new(&config),
            lanes: Lanes::new(ports, &config)?,
            ios: Ios::default(),
            timers: Timers::default(),
            counters: HostCounters::default(),
            cores: config.cores.map(Cores::new),
            streams: Streams::new(config.stream.map(|stream| Connections::new(stream, &config.links))),
            config,
        })
    }

    /// Returns the counters.
    pub fn counters(&self) -> HostCounters {
        self.counters
    }

    /// Returns the number of I/Os that have not ended.
    pub fn under_way(&self) -> usize {
        self.ios.len()
    }

    /// Returns the number of I/Os that wait for credit or for room in a queue pair.
    pub fn waiting(&self) -> usize {
        self.sessions.waiting_and_credit().0
    }

    /// Returns the I/Os that credit lets all used sessions still send; `None` without credits.
    pub fn credit_left(&self) -> Option<u64> {
        self.config.credits.then(|| self.sessions.waiting_and_credit().1)
    }

    /// Returns what congestion control lets all connections send.
    pub fn allowance(&self) -> Allowance {
        self.streams.allowance()
    }

    /// Returns the credit of a session, by its index.
    pub fn credit(&self, place: u32) -> u32 {
        self.sessions.at(place).map_or(self.config.credit_initial, |session| self.sessions[session].credit)
    }

    /// Returns the router, or `None` with a single uplink.
    pub fn router(&self) -> Option<&Router> {
        match &self.uplinks {
            Uplinks::One => None,
            Uplinks::Routed(router) => Some(router),
        }
    }

    /// Returns the internal index of the session at `place` of the configuration, and adds it at
    /// its first use.
    fn meet(&mut self, place: u32) -> u32 {
        let (session, is_new) = self.sessions.meet(place);
        if is_new {
            self.lanes.add();
        }
        session
    }

    fn submit(&mut self, now: Time, place: u32, io: HostIo, out: &mut Vec<HostOut>) {
        let waiting = self.sessions[place].waiting.len();
        if waiting >= self.config.waiting_max {
            return out.push(HostOut::Done(refused(self.sessions[place].place, io)));
        }
        let io = self.ios.open(place, io, &self.format);
        if let Some(cores) = &mut self.cores {
            let start = cores.book(now, self.sessions[place].place);
            if start > now {
                return self.timers.at(start, Later::Begin(io));
            }
        }
        self.begin(now, place, io, out);
    }

    /// Sends an I/O behind those of its session that wait already.
    fn begin(&mut self, now: Time, place: u32, io: IoPlace, out: &mut Vec<HostOut>) {
        let waiting = self.sessions[place].waiting.len();
        self.counters.waiting_highest = self.counters.waiting_highest.max(waiting + 1);
        if waiting == 0 {
            self.send_or_keep(now, place, io, out);
        } else {
            self.sessions[place].waiting.push_back(io);
            self.pump(now, place, out);
        }
    }

    /// Sends the only unsent I/O of a session, or queues it.
    fn send_or_keep(&mut self, now: Time, place: u32, io: IoPlace, out: &mut Vec<HostOut>) {
        match self.leave_to_send(now, place, io) {
            Some(lane) => self.send_new(now, io, lane, out),
            None => self.sessions[place].waiting.push_back(io),
        }
    }

    /// Returns the lane for a new command, or `None` if credit, queue pairs or uplinks allow none.
    fn leave_to_send(&mut self, now: Time, place: u32, io: IoPlace) -> Option<u8> {
        let session = &self.sessions[place];
        if self.config.credits && session.outstanding >= session.credit.max(1) {
            return None;
        }
        self.choose_lane(now, place, io)
    }

    /// Sends as many waiting I/Os as credit, queue pairs and uplinks allow.
    fn pump(&mut self, now: Time, place: u32, out: &mut Vec<HostOut>) {
        while let Some(&io) = self.sessions[place].waiting.front() {
            let Some(lane) = self.leave_to_send(now, place, io) else { return };
            self.sessions[place].waiting.pop_front();
            self.send_new(now, io, lane, out);
        }
    }

    /// Chooses the lane for a new command: the routed one if it is up, not suspected and has room.
    /// Otherwise the first such lane, and failing that the first that is up and has room.
    fn choose_lane(&mut self, now: Time, place: u32, io: IoPlace) -> Option<u8> {
        let session = &self.sessions[place];
        let chosen = match &mut self.uplinks {
            Uplinks::One => Some(0),
            Uplinks::Routed(router) => {
                let command = self.ios.get(io)?.io.request.0 as u16;
                let tag = Tag { session: session.id, command, attempt: 0 };
                // Hops, not the host, set the limit on the links of a route.
                router.choose(now, session.target, tag, &mut Trail::default()).map(Port::index)
            }
        };
        let states = self.lanes.of(place);
        let can = |lane: usize| self.ports_up[lane] && states[lane].queue.has_room();
        let is_fine = |lane: usize| can(lane) && states[lane].suspect_until <= now;
        let lanes = 0..states.len();
        let lane = chosen.filter(|lane| is_fine(*lane)).or_else(|| lanes.clone().find(|lane| is_fine(*lane)));
        lane.or_else(|| lanes.clone().find(|lane| can(*lane))).map(|lane| lane as u8)
    }

    /// Sends an I/O as a new command.
    fn send_new(&mut self, now: Time, place: IoPlace, lane: u8, out: &mut Vec<HostOut>) {
        let Some(io) = self.ios.get_mut(place) else { return };
        let session = &mut self.sessions[io.session];
        let state = &mut self.lanes[(io.session, usize::from(lane))];
        let command = state.queue.submit(place).map_err(|(_, full)| full);
        let command = command.expect("a lane is chosen only where its queue pair has room");
        session.outstanding += 1;
        let attempt = Attempt { lane, generation: state.generation, send: 0 };
        io.tag = Tag { session: session.id, command, attempt: attempt.bits() };
        (io.losses, io.refusals) = (0, io.refusals);
        self.send(now, place, out);
    }

    /// Sends the command of an I/O under its present tag.
    fn send(&mut self, now: Time, place: IoPlace, out: &mut Vec<HostOut>) {
        let Some(io) = self.ios.get_mut(place) else { return };
        io.begin_send(now);
        let session = &self.sessions[io.session];
        let payload = self.format.in_capsule(io.io.operation, io.io.bytes);
        let frame = self.format.frame(PacketKind::Command, payload, 0);
        let packet = command_packet(&self.config, session, io, payload, frame);
        let port = Port(u16::from(Attempt::of_bits(io.tag.attempt).lane));
        let (session, losses, tag) = (io.session, io.losses, io.tag);
        out.push(HostOut::Send { port, packet });
        self.watch(now, place, session, losses, tag);
    }

    /// Ends an I/O and reports its result.
    fn finish(&mut self, now: Time, place: IoPlace, outcome: Outcome, drive_latency_ns: u32, out: &mut Vec<HostOut>) {
        let Some(io) = self.ios.get(place) else { return };
        let (session, tag) = (io.session, io.tag);
        out.push(HostOut::Done(HostDone {
            request: io.io.request,
            session: self.sessions[session].place,
            outcome,
            first_sent: io.first_sent,
            last_sent: Some(io.sent),
            sends: io.sends,
            drive_latency_ns,
        }));
        // An answer to a repeated command may be one to an earlier send (Karn).
        if self.config.timeout_min.is_some() && io.sends == 1 {
            let seen = now.saturating_since(io.sent);
            self.sessions[session].round_trip.sample(seen);
        }
        self.release(session, tag);
        self.ios.close(place);
        self.timers.forget_answered(&self.ios);
        self.pump(now, session, out);
    }

    /// Releases the command identifier of an ended command.
    fn release(&mut self, session: u32, tag: Tag) {
        let lane = usize::from(Attempt::of_bits(tag.attempt).lane);
        if self.lanes[(session, lane)].queue.complete_by_flag(tag.command).is_ok() {
            self.sessions[session].outstanding -= 1;
        }
    }
}

fn sooner(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

fn refused(session: u32, io: HostIo) -> HostDone {
    let (first_sent, last_sent) = (None, None);
    let outcome = Outcome::Aborted;
    HostDone { request: io.request, session, outcome, first_sent, last_sent, sends: 0, drive_latency_ns: 0 }
}

#[inline(always)]
fn command_packet(config: &HostConfig, session: &Session, io: &Io, payload: u32, frame: u32) -> Packet {
    Packet {
        request: io.io.request,
        operation: io.io.operation,
        address: io.io.address,
        bytes: io.io.bytes,
        payload,
        ..bare_command(config, session, io.tag, frame)
    }
}

/// A command of no request and of no bytes.
#[inline(always)]
fn bare_command(config: &HostConfig, session: &Session, tag: Tag, frame: u32) -> Packet {
    Packet {
        tag,
        request: RequestId(u64::MAX),
        kind: PacketKind::Command,
        operation: Operation::Write,
        address: 0,
        bytes: 0,
        payload: 0,
        frame,
        source: config.vertex,
        target: session.target,
        drive: session.drive,
        trail: Trail::default(),
        status: Outcome::Success,
        credit: 0,
        rank: 0,
        ingress: 0,
        marked: false,
        length: 0,
        stream: 0,
    }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;

    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match input {
            HostIn::Submit { session, io } => self.issue(now, session, io, out),
            HostIn::Packet { port, packet } => self.receive(now, port, &packet, out),
            HostIn::Advertisement { port, advertisement } => {
                if let Uplinks::Routed(router) = &mut self.uplinks {
                    router.distances_mut().on_advertisement(now, port, &advertisement);
                }
            }
            HostIn::LinkDown(port) => by_windows(self, out, now, |host, out| host.link_down(now, port, out)),
            HostIn::LinkUp(port) => {
                pause(self, now, port, false, out);
                by_windows(self, out, now, |host, out| host.link_up(now, port, out));
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        let timers = sooner(self.timers.next(), self.streams.next_wakeup());
        match &self.uplinks {
            Uplinks::One => timers,
            Uplinks::Routed(router) => sooner(timers, router.distances().next_wakeup()),
        }
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<HostOut>) {
        if let Uplinks::Routed(router) = &mut self.uplinks {
            // Hosts receive advertisements and send none: no route leads through them.
            router.distances_mut().poll(now, |_, _| {});
        }
        repair(self, now, out);
        by_windows(self, out, now, |host, out| host.run_timers(now, out));
    }
}
