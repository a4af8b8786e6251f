//! A host with two uplinks, a target with one drive, and two paths between them, whose effect on
//! each packet is defined by a test.
#![allow(dead_code)]

use base::{Bytes, Operation, Program, RequestId, Seed, Span, Stream, Time};
use nvme::pdu::Framing;
use san::host::{Host, HostConfig, HostDone, HostIn, HostIo, HostOut, HostSessions, Uplinks};
use san::retry::RetryPolicy;
use san::route::{Advertisement, DistanceConfig, Horizon, Neighbour, Policy, RouteConfig, Router};
use san::target::{Admission, JobId, Target, TargetConfig, TargetIn, TargetOut, TargetSession};
use san::wire::WireConfig;
use san::{DriveId, Packet, PacketKind, Port, SessionId, Tag, Trail};
use std::collections::BTreeMap;
use topology::VertexId;

pub const BLOCK: u32 = 4096;

/// The effect of a path on a packet: its delay, or `None` if the packet is lost.
pub type Way = Box<dyn FnMut(Time, Port, &Packet) -> Option<Span>>;

enum Event {
    Ask(HostIo),
    ToTarget(Port, Packet),
    ToHost(Port, Packet),
    Done(u64, JobId),
    LinkDown(Port),
    LinkUp(Port),
    DriveFailed,
    DriveBack,
    /// Priority flow control of a path: at the target if set, else at the host.
    Pause(bool, Packet),
}

pub struct Net {
    pub host: Host,
    pub target: Target,
    pub now: Time,
    pub way: Way,
    pub drive_time: Box<dyn FnMut(RequestId) -> Span>,
    /// By block: the request that wrote it last.
    pub disk: BTreeMap<u64, u64>,
    /// The time of each drive operation, its request, and the request number read or written, in
    /// order of execution.
    pub executed: Vec<(Time, RequestId, Operation, u64)>,
    pub done: Vec<(Time, HostDone)>,
    pub sent: Vec<(Time, Packet)>,
    pub log: Vec<String>,
    links: [bool; 2],
    /// Number of failures of the drive: jobs submitted before a failure are void.
    drive_lives: u64,
    jobs: Vec<(JobId, Operation, u64, RequestId)>,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    /// By path and direction: when the last packet arrives; a connection keeps order.
    arrivals: [[Time; 2]; 2],
    /// The fraction of packets that the network marks.
    marks: (f64, Stream),
}

pub fn wire() -> WireConfig {
    WireConfig {
        mtu: 9000,
        tcp_options: 12,
        has_header: true,
        framing: Framing::INITIAL,
        segment_max: 4096,
        in_capsule_max: 0,
        host_data_max: 128 << 10,
        controller_data_max: 128 << 10,
        ready_max: 128 << 10,
        success_flag: false,
        fast_retransmit: true,
    }
}

pub fn host_config(retry: RetryPolicy) -> HostConfig {
    HostConfig {
        vertex: VertexId(0),
        sessions: HostSessions { drives: [(DriveId(2), VertexId(3))].into(), first: SessionId(5), stride: 1 },
        wire: wire(),
        queue_entries: 17,
        credits: true,
        credit_initial: 32,
        waiting_max: 1000,
        probe: Span::us(500),
        timeout: Span::us(500),
        timeout_min: None,
        cores: None,
        sends_max: 3,
        back_off: Span::us(10),
        back_off_max: Span::us(100),
        suspect_for: Span::ms(1),
        stream: None,
        links: Vec::new(),
        retry,
    }
}

pub fn target_config() -> TargetConfig {
    TargetConfig {
        wire: wire(),
        admission: Admission::Fifo { depth: 4, waiting_max: 64, credit: 32 },
        drives: vec![DriveId(2)],
        sessions: vec![TargetSession { id: SessionId(5), drive: DriveId(2) }],
        queue_entries: 17,
        lanes: 2,
        flights_max: 64,
        command_life_max: None,
        packet_life_max: None,
        stream: None,
        links: Vec::new(),
    }
}

/// Builds a router with two parallel switches between host 0 and target 3.
fn router() -> Router {
    let distance = DistanceConfig {
        infinity: 16,
        period: Span::secs(1_000),
        hold: Span::secs(10_000),
        trigger_gap: Span::us(1),
        candidates: 2,
        horizon: Horizon::PoisonedReverse,
    };
    let config = RouteConfig {
        policy: Policy::ShortestPath,
        is_symmetric: true,
        has_header: true,
        ewma_weight: 512,
        ecn_threshold: Some(Bytes::kib(64)),
        marks_answers: false,
        stretch_max: 2,
        stale_after: Span::ms(1),
        teams: false,
        distance,
    };
    let neighbour =
        |vertex| Neighbour { vertex: VertexId(vertex), forwards: true, listens: true, rate: base::Rate::gbps(100) };
    Router::new(VertexId(0), 4, vec![neighbour(1), neighbour(2)], &config)
}

impl Net {
    pub fn new(host: HostConfig, target: &TargetConfig) -> Net {
        let mut net = Net {
            host: Host::new(host, Uplinks::Routed(Box::new(router()))).unwrap(),
            target: Target::new(target).unwrap(),
            now: Time::ZERO,
            way: Box::new(|_, _, _| Some(Span::us(2))),
            drive_time: Box::new(|_| Span::us(10)),
            disk: BTreeMap::new(),
            executed: Vec::new(),
            done: Vec::new(),
            sent: Vec::new(),
            log: Vec::new(),
            links: [true; 2],
            drive_lives: 0,
            jobs: Vec::new(),
            events: BTreeMap::new(),
            count: 0,
            arrivals: [[Time::ZERO; 2]; 2],
            marks: (0.0, Seed(1).stream("marks")),
        };
        for port in [Port(0), Port(1)] {
            let told = [1, 0, 0, 1].map(|distance| if distance == 0 { 2 } else { distance });
            net.tell_host(HostIn::Advertisement { port, advertisement: Advertisement { distances: Box::new(told) } });
        }
        net
    }

    pub fn ask(&mut self, at: Time, request: u64, operation: Operation, block: u64, bytes: u32) {
        let io = HostIo { request: RequestId(request), operation, address: block * u64::from(BLOCK), bytes };
        self.schedule(at, Event::Ask(io));
    }
    pub fn link_down(&mut self, at: Time, port: u16) {
        self.schedule(at, Event::LinkDown(Port(port)));
    }
    pub fn link_up(&mut self, at: Time, port: u16) {
        self.schedule(at, Event::LinkUp(Port(port)));
    }
    pub fn drive_failed(&mut self, at: Time) {
        self.schedule(at, Event::DriveFailed);
    }
    pub fn drive_back(&mut self, at: Time) {
        self.schedule(at, Event::DriveBack);
    }
    /// Returns when a request ended.
    pub fn done_at(&self, request: u64) -> Option<Time> {
        self.done.iter().find(|(_, done)| done.request.0 == request).map(|(at, _)| *at)
    }
    /// Returns how often the drive executed a request's operation.
    pub fn executions(&self, request: u64) -> usize {
        self.executed.iter().filter(|(_, other, ..)| other.0 == request).count()
    }

    /// Runs until nothing is pending, or until `end`.
    pub fn run(&mut self, end: Time) {
        while self.step(end) {}
    }

    /// Executes one event or wake-up; returns `false` if none is pending before `end`.
    pub fn step(&mut self, end: Time) -> bool {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let wakeups = [self.host.next_wakeup(), self.target.next_wakeup()];
        let Some(next) = wakeups.into_iter().flatten().chain(event).min().filter(|next| *next <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        if event == Some(next) {
            let (_, event) = self.events.pop_first().unwrap();
            self.handle(event);
            return true;
        }
        let (mut to_host, mut to_target) = (Vec::new(), Vec::new());
        self.host.on_wakeup(self.now, &mut to_host);
        self.target.on_wakeup(self.now, &mut to_target);
        self.host_said(to_host);
        self.target_said(to_target);
        true
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Ask(io) => {
                self.note(format!(
                    "asks for {:?} {} of block {}",
                    io.operation,
                    io.request.0,
                    io.address / u64::from(BLOCK)
                ));
                self.tell_host(HostIn::Submit { session: 0, io });
            }
            Event::ToTarget(port, packet) => {
                self.note_packet("target gets", port, &packet);
                self.tell_target(TargetIn::Packet { port, packet });
            }
            Event::ToHost(port, packet) if self.links[port.index()] => {
                self.note_packet("host gets", port, &packet);
                self.tell_host(HostIn::Packet { port, packet });
            }
            Event::ToHost(port, packet) => self.note_packet("lost at the failed link:", port, &packet),
            Event::Done(life, job) => self.drive_done(life, job),
            Event::LinkDown(port) => {
                self.note(format!("link {} goes down", port.0));
                self.links[port.index()] = false;
                self.tell_host(HostIn::LinkDown(port));
            }
            Event::LinkUp(port) => {
                self.links[port.index()] = true;
                self.tell_host(HostIn::LinkUp(port));
            }
            Event::DriveFailed => {
                self.drive_lives += 1;
                self.tell_target(TargetIn::DriveFailed(DriveId(2)));
            }
            Event::Pause(true, packet) => self.tell_target(TargetIn::Packet { port: Port(0), packet }),
            Event::Pause(false, packet) => self.tell_host(HostIn::Packet { port: Port(0), packet }),
            Event::DriveBack => self.tell_target(TargetIn::DriveBack(DriveId(2))),
        }
    }

    fn drive_done(&mut self, life: u64, job: JobId) {
        if life != self.drive_lives {
            return;
        }
        let place = self.jobs.iter().position(|(other, ..)| *other == job).unwrap();
        let (_, operation, block, request) = self.jobs.swap_remove(place);
        let value = match operation {
            Operation::Read => self.disk.get(&block).copied().unwrap_or(0),
            _ => {
                self.disk.insert(block, request.0);
                request.0
            }
        };
        self.note(format!("drive has done {operation:?} {} of block {block}", request.0));
        self.executed.push((self.now, request, operation, value));
        self.tell_target(TargetIn::Done { job });
    }

    fn tell_host(&mut self, input: HostIn) {
        let mut out = Vec::new();
        self.host.on(self.now, input, &mut out);
        self.host_said(out);
    }
    fn tell_target(&mut self, input: TargetIn) {
        let mut out = Vec::new();
        self.target.on(self.now, input, &mut out);
        self.target_said(out);
    }
    fn host_said(&mut self, out: Vec<HostOut>) {
        for action in out {
            match action {
                HostOut::Send { port, packet } => self.carry(port, packet),
                HostOut::Done(done) => {
                    self.note(format!(
                        "client is told {:?} of {} ({} sends)",
                        done.outcome, done.request.0, done.sends
                    ));
                    self.done.push((self.now, done));
                }
            }
        }
    }
    fn target_said(&mut self, out: Vec<TargetOut>) {
        for action in out {
            match action {
                TargetOut::Send { port, packet } => self.carry(port, packet),
                TargetOut::Submit { job, operation, address, request, .. } => {
                    let at = self.now + (self.drive_time)(request);
                    self.jobs.push((job, operation, address / u64::from(BLOCK), request));
                    self.schedule(at, Event::Done(self.drive_lives, job));
                }
            }
        }
    }
    fn carry(&mut self, port: Port, mut packet: Packet) {
        self.sent.push((self.now, packet.clone()));
        packet.marked |= self.marks.0 > 0.0 && self.marks.1.unit() < self.marks.0;
        let is_outward = packet.kind.is_outward();
        if is_outward && !self.links[port.index()] {
            return;
        }
        let Some(span) = (self.way)(self.now, port, &packet) else { return };
        let last = &mut self.arrivals[port.index()][usize::from(is_outward)];
        *last = (*last).max(self.now + span);
        let at = *last;
        self.schedule(at, if is_outward { Event::ToTarget(port, packet) } else { Event::ToHost(port, packet) });
    }
    fn schedule(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }
    fn note(&mut self, what: String) {
        self.log.push(format!("{:>10.3} us  {what}", self.now.as_ns_f64() / 1e3));
    }
    fn note_packet(&mut self, what: &str, port: Port, packet: &Packet) {
        let kind = match packet.kind {
            PacketKind::Command if packet.bytes == 0 => "reset".to_string(),
            kind => format!("{kind:?}"),
        };
        self.note(format!("{what} {kind} of {} by way {} ({:?})", packet.request.0, port.0, packet.status));
    }
}

impl Net {
    /// Marks a fraction of all packets, and pauses both ends `pauses` times for 5 us.
    pub fn annoy(&mut self, marks: f64, pauses: u64) {
        self.marks.0 = marks;
        for pause in 0..pauses {
            let at = Time::us(pause * 40);
            for at_target in [true, false] {
                self.pause(at, at_target, true);
                self.pause(at + Span::us(5), at_target, false);
            }
        }
    }
    /// Pauses or resumes the target on its first link.
    pub fn pause_target(&mut self, at: Time, stop: bool) {
        self.pause(at, true, stop);
    }
    fn pause(&mut self, at: Time, at_target: bool, stop: bool) {
        self.schedule(at, Event::Pause(at_target, pause_packet(stop)));
    }
    /// Removes the last command from the network and lets a hop refuse it.
    pub fn refuse_last(&mut self) {
        let last = self.events.iter().rev().find(|(_, event)| matches!(event, Event::ToTarget(..))).map(|(at, _)| *at);
        if let Some(Event::ToTarget(port, packet)) = last.and_then(|at| self.events.remove(&at)) {
            let refusal = Packet { kind: PacketKind::Response, status: san::Outcome::Rejected, ..packet };
            self.schedule(self.now + Span::us(2), Event::ToHost(port, refusal));
        }
    }
    /// Delivers a packet to the target, once more.
    pub fn deliver(&mut self, packet: Packet) {
        self.schedule(self.now + Span::us(1), Event::ToTarget(Port(0), packet));
    }
}

fn pause_packet(stop: bool) -> Packet {
    Packet {
        kind: PacketKind::Pause { stop },
        request: RequestId(u64::MAX),
        address: 0,
        tag: Tag::default(),
        bytes: 0,
        payload: 0,
        frame: 84,
        source: VertexId(0),
        target: VertexId(3),
        drive: DriveId(2),
        credit: 0,
        operation: Operation::Read,
        status: san::Outcome::Success,
        marked: false,
        rank: 0,
        ingress: 0,
        length: 0,
        stream: 0,
        trail: Trail::default(),
    }
}
