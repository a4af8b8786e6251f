//! The storage node: commands from the network go to drives, answers go back.
//!
//! A command takes a *flight*: it waits for its data (writes that do not carry them), then for its
//! turn at the drive ([`crate::gimbal`], or first in first out), is at the drive, and is answered.
//! Drives are models outside: the node says [`TargetOut::Submit`] and is told [`TargetIn::Done`].
//!
//! * Every packet to a host carries the drive's credit for the session; an answer carries the trail
//!   of the request's last packet, turned around.
//! * A command is known by session, lane, identifier and send. A copy that comes again is not
//!   executed again: one that is under way goes on (and is answered along the newest copy's way), a
//!   write that is over is answered again, a copy of a command whose identifier has been used since
//!   is dropped.
//! * A reset ([`crate::retry`]) makes sure that every command of an association, and of those
//!   before it on its lane, is done or dead, and answers then.
//! * When a drive fails all of its commands are answered with an error at once; while it is away so
//!   are new ones.
//!
//! A command is refused ([`Outcome::Aborted`]) when flights or queues are full, and when it could
//! not begin within its life: nothing of it was done then.

mod answer;
mod drive;
mod flight;
mod reset;
mod stream;

use crate::connection::{Connections, StreamConfig};
use crate::gimbal::GimbalConfig;
use crate::id::{DriveId, Port, SessionId};
use crate::packet::{Outcome, Packet, PacketKind};
use crate::session::Attempt;
use crate::stream::{Streams, by_windows, pause, repair};
use crate::wire::{WireConfig, WireFormat};
use base::{Operation, Program, Rate, RequestId, Span, Time};
use drive::Drive;
use flight::{Flights, Reception, Session, Stage};
use nvme::wire::MtuError;
use prefetch_index::prefetch_index;
use std::collections::VecDeque;

pub use flight::JobId;

/// How commands get to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A switch that watches the drive's latency, shares it among sessions and gives them credits.
    Gimbal(GimbalConfig),
    /// The rival: first in, first out.
    Fifo {
        /// Commands at the drive at a time.
        depth: u32,
        /// Commands that may wait for a drive.
        waiting_max: usize,
        /// The credit that every answer carries.
        credit: u32,
    },
}

/// A session that ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetSession {
    /// Its name. Sessions of one target should be numbered near each other: tables reach from the
    /// least to the greatest.
    pub id: SessionId,
    /// Its drive, one of the target's.
    pub drive: DriveId,
}

/// A storage node.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetConfig {
    /// How sessions use the wire.
    pub wire: WireConfig,
    /// How commands get to drives.
    pub admission: Admission,
    /// Its drives.
    pub drives: Vec<DriveId>,
    /// Its sessions.
    pub sessions: Vec<TargetSession>,
    /// Entries of the queue pair of each lane of a session, 2 or more, as hosts have it.
    pub queue_entries: u16,
    /// Lanes of a session, as hosts have it.
    pub lanes: u8,
    /// Commands that may be under way in all.
    pub flights_max: u32,
    /// How long after its arrival a command may begin at the drive; a later one is aborted (the
    /// target's part of a quiesce time). `None`: no limit, and a write whose host has given it up
    /// before its data came stays until its association is reset.
    pub command_life_max: Option<Span>,
    /// How old a packet may be when it comes, by the time that its first hop wrote; an older one is
    /// dropped. `None`: no limit.
    pub packet_life_max: Option<Span>,
    /// How sessions share the network, as hosts have it.
    pub stream: Option<StreamConfig>,
    /// By port: the rate of its link, as hosts have it.
    pub links: Vec<Rate>,
}

/// Why a target cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The wire has no room.
    #[error(transparent)]
    Mtu(#[from] MtuError),
    /// A session with a drive that is not here.
    #[error("session {} is with drive {}, which is not of this target", session.0, drive.0)]
    ForeignDrive {
        /// The misconfigured session.
        session: SessionId,
        /// The drive.
        drive: DriveId,
    },
    /// A queue pair without room for a command.
    #[error("a queue of {got} entries, allowed are 2 to 65535")]
    Queue {
        /// Entries.
        got: u16,
    },
    /// More lanes than an attempt can name.
    #[error("{got} lanes, allowed are 1 to 8")]
    Lanes {
        /// Lanes.
        got: u8,
    },
}

/// What may happen to a target.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation a packet")]
pub enum TargetIn {
    /// A packet has come in whole.
    Packet {
        /// By which port.
        port: Port,
        /// The packet as received.
        packet: Packet,
    },
    /// A drive has done a job.
    Done {
        /// The completed job.
        job: JobId,
    },
    /// A drive has failed. Its jobs are not to be reported any more, and not to be done any more:
    /// what is not done yet is lost.
    DriveFailed(DriveId),
    /// A drive works (again).
    DriveBack(DriveId),
    /// The link of a port is there again.
    LinkUp(Port),
}

/// What a target decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation a packet")]
pub enum TargetOut {
    /// Hand to the first-in-first-out queue of a port.
    Send {
        /// Which port.
        port: Port,
        /// The packet to send.
        packet: Packet,
    },
    /// Give to a drive; answer with [`TargetIn::Done`] when it is done.
    Submit {
        /// Which drive.
        drive: DriveId,
        /// What to call it.
        job: JobId,
        /// What to do.
        operation: Operation,
        /// First byte.
        address: u64,
        /// Bytes, at least one.
        bytes: u32,
        /// The request that it serves: of a write, what to write.
        request: RequestId,
    },
}

/// What a target has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetCounters {
    /// Commands that came for the first time.
    pub commands: u64,
    /// Copies of commands and data that were not executed: of the same send, or behind a newer one.
    pub duplicates: u64,
    /// Packets of associations that were reset, of identifiers that were used since, or past their
    /// life.
    pub late: u64,
    /// Packets of sessions or commands that nobody knows.
    pub unknown: u64,
    /// Commands that were refused or given up.
    pub aborted: u64,
    /// Commands answered by the failure of their drive.
    pub failed: u64,
    /// Most flights at a time.
    pub flights_highest: u32,
}

/// The storage node.
#[derive(Clone, Debug)]
pub struct Target {
    format: WireFormat,
    flights: Flights,
    /// Those that were ever used: of a large network most never are.
    sessions: Vec<Session>,
    queue_entries: u16,
    /// By the number of a session less `first_session`.
    seats: Vec<Seat>,
    first_session: u32,
    drives: Vec<Drive>,
    command_life_max: Option<Span>,
    packet_life_max: Option<Span>,
    /// When commands are to have begun, in the order of their arrival.
    deadlines: VecDeque<(Time, JobId)>,
    counters: TargetCounters,
    streams: Streams<TargetOut>,
    lanes: usize,
}

/// Where things of a session lie, in a table that is small enough to be at hand.
#[derive(Clone, Copy, Debug)]
struct Seat {
    /// Place in the target's sessions; or [`UNUSED`].
    place: u32,
    /// Place of its drive, or [`NO_SESSION`].
    drive: u32,
    /// Its number there.
    tenant: u32,
}

impl Target {
    /// A target with idle, working drives.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn new(config: &TargetConfig) -> Result<Self, TargetError> {
        if config.queue_entries < 2 {
            return Err(TargetError::Queue { got: config.queue_entries });
        }
        if config.lanes == 0 || usize::from(config.lanes) > crate::session::LANES_MAX {
            return Err(TargetError::Lanes { got: config.lanes });
        }
        let first_session = config.sessions.iter().map(|session| session.id.0).min().unwrap_or(0);
        Ok(Target {
            format: WireFormat::new(&config.wire)?,
            flights: Flights::new(config.flights_max, config.wire.ready_max.max(1)),
            seats: seats_of(config, first_session)?,
            first_session,
            sessions: Vec::new(),
            queue_entries: config.queue_entries,
            drives: config.drives.iter().map(|id| Drive::new(*id, &config.admission)).collect(),
            command_life_max: config.command_life_max,
            packet_life_max: config.packet_life_max,
            deadlines: VecDeque::new(),
            counters: TargetCounters::default(),
            streams: Streams::new(config.stream.map(|stream| Connections::new(stream, &config.links))),
            lanes: usize::from(config.lanes),
        })
    }

    /// What was counted so far.
    pub fn counters(&self) -> TargetCounters {
        TargetCounters { flights_highest: self.flights.highest(), ..self.counters }
    }

    /// Commands that are under way.
    pub fn under_way(&self) -> usize {
        self.flights.len()
    }

    /// The switch of a drive, by its place in the configuration; `None` without one.
    pub fn gimbal(&self, drive: usize) -> Option<&crate::gimbal::Gimbal> {
        self.drives.get(drive).and_then(Drive::gimbal)
    }

    /// A packet will come shortly: what is kept for its session can be on its way from memory
    /// meanwhile. Nothing else comes of it.
    #[inline]
    pub fn foresee(&self, packet: &Packet) {
        if let Some(seat) = self.seat(packet.tag.session).filter(|seat| seat.place != UNUSED) {
            self.drives[seat.drive as usize].foresee(seat.tenant);
            prefetch_index(&self.sessions, seat.place as usize);
        }
    }

    /// Prefetches the slot of the packet that arrives next, after [`foresee`](Self::foresee).
    #[inline]
    pub fn foresee_next(&self, packet: &Packet) {
        if let Some(seat) = self.seat(packet.tag.session).filter(|seat| seat.place != UNUSED) {
            self.sessions[seat.place as usize].foresee(packet);
        }
    }

    /// As [`foresee`](Self::foresee) of a job that will be done shortly.
    #[inline]
    pub fn foresee_job(&self, job: JobId) {
        self.flights.foresee(job);
    }

    /// The job is done next: what its answer changes.
    #[inline]
    pub fn foresee_answer(&self, job: JobId) {
        if let Some(flight) = self.flights.get(job) {
            self.foresee_session(&self.sessions[flight.session()], &flight.packet);
        }
    }

    #[inline]
    fn foresee_session(&self, session: &Session, packet: &Packet) {
        session.foresee(packet);
        self.drives[session.drive].foresee(session.tenant);
    }

    /// The place of a session, which is used from now on.
    #[inline]
    fn meet(&mut self, id: SessionId) -> Option<usize> {
        let seat = self.seat(id)?;
        Some(if seat.place == UNUSED { self.add(id) } else { seat.place as usize })
    }

    #[cold]
    fn add(&mut self, id: SessionId) -> usize {
        let place = self.sessions.len();
        let seat = &mut self.seats[(id.0 - self.first_session) as usize];
        let drive = seat.drive as usize;
        let tenant = self.drives[drive].add_tenant();
        (seat.place, seat.tenant) = (place as u32, tenant);
        self.sessions.push(Session::new(drive, tenant, self.lanes as u8, self.queue_entries));
        place
    }

    #[inline]
    fn seat(&self, id: SessionId) -> Option<&Seat> {
        let seat = self.seats.get(id.0.checked_sub(self.first_session)? as usize)?;
        (seat.drive != NO_SESSION).then_some(seat)
    }

    /// A packet has come, in its turn.
    fn take(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        if packet.kind == PacketKind::Command && packet.status == Outcome::Rejected {
            // A hop has answered it: only its stream wanted it here.
            return;
        }
        let Some(place) = self.meet(packet.tag.session) else {
            self.counters.unknown += 1;
            return;
        };
        let attempt = Attempt::of_bits(packet.tag.attempt);
        if !self.sessions[place].has_lane(attempt) {
            self.counters.unknown += 1;
            return;
        }
        if packet.kind == PacketKind::Command && packet.bytes == 0 {
            self.on_reset(place, port, packet, out);
        } else if self.is_late(now, place, packet, attempt) {
            self.counters.late += 1;
        } else {
            self.on_live_packet(now, place, port, packet, out);
        }
    }

    fn on_live_packet(&mut self, now: Time, place: usize, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        match packet.kind {
            PacketKind::Command => self.on_command(now, place, port, packet, out),
            PacketKind::WriteData { last } => self.on_data(now, place, packet, last, out),
            _ => self.counters.unknown += 1,
        }
    }

    /// Whether the packet's association was reset, or it is older than packets get.
    fn is_late(&self, now: Time, place: usize, packet: &Packet, attempt: Attempt) -> bool {
        if self.sessions[place].is_reset(attempt) {
            return true;
        }
        let (Some(life), Some(hop)) = (self.packet_life_max, packet.trail.hops().first()) else { return false };
        let now_ns = (now.as_ps() / 1_000) as u32;
        u64::from(now_ns.wrapping_sub(hop.time_ns)) * 1_000 > life.as_ps()
    }

    fn on_command(&mut self, now: Time, place: usize, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        match self.sessions[place].receive(packet) {
            Reception::New => self.begin(now, place, port, packet, out),
            Reception::Late => self.counters.late += 1,
            Reception::UnderWay(job) => self.on_copy(job, port, packet, out),
            // A read may be done again: it finds what is there now, while its host still waits.
            Reception::Over(_) if packet.operation == Operation::Read => self.begin(now, place, port, packet, out),
            Reception::Over(outcome) => {
                self.counters.duplicates += 1;
                let credit = self.credit(place);
                answer::respond(&self.format, port, packet, outcome, credit, out);
            }
        }
    }

    /// A command that is under way came again. A later send is answered instead of the earlier one,
    /// and its data are asked for anew.
    fn on_copy(&mut self, job: JobId, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        self.counters.duplicates += 1;
        let Some(flight) = self.flights.get_mut(job) else { return };
        let (sent, known) = (Attempt::of_bits(packet.tag.attempt), Attempt::of_bits(flight.packet.tag.attempt));
        if !crate::session::is_later_send(sent.send, known.send) {
            return;
        }
        flight.packet.become_copy_of(packet);
        flight.port = port;
        if flight.stage == Stage::AwaitingData {
            flight.restart();
            let place = flight.session();
            self.ask(job, place, out);
        }
    }

    fn begin(&mut self, now: Time, place: usize, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        self.counters.commands += 1;
        let drive = self.sessions[place].drive;
        if !self.drives[drive].is_up {
            self.counters.failed += 1;
            return self.refuse(place, port, packet, Outcome::DriveFailed, out);
        }
        let Some(job) = self.flights.open(now, place, port, packet) else {
            self.counters.aborted += 1;
            return self.refuse(place, port, packet, Outcome::Aborted, out);
        };
        self.sessions[place].begin(packet, job);
        if let Some(life) = self.command_life_max {
            self.deadlines.push_back((now + life, job));
        }
        let carries_data = packet.payload == packet.bytes;
        if packet.operation == Operation::Read || carries_data {
            self.enqueue(now, job, out);
        } else {
            self.ask(job, place, out);
        }
    }

    /// Asks for the next data of a write.
    fn ask(&mut self, job: JobId, place: usize, out: &mut Vec<TargetOut>) {
        let credit = self.credit(place);
        let Some(flight) = self.flights.get_mut(job) else { return };
        if flight.write.next_ready(flight.packet.tag.command).is_some() {
            answer::ready(&self.format, flight, credit, out);
        }
    }

    fn on_data(&mut self, now: Time, place: usize, packet: &Packet, last: bool, out: &mut Vec<TargetOut>) {
        let Reception::UnderWay(job) = self.sessions[place].receive(packet) else {
            self.counters.late += 1;
            return;
        };
        let Some(flight) = self.flights.get_mut(job) else { return };
        if flight.stage != Stage::AwaitingData || flight.packet.tag.attempt != packet.tag.attempt {
            self.counters.duplicates += 1;
            return;
        }
        if !flight.take_data(packet, last, self.format.config().ready_max) {
            if last && self.format.config().fast_retransmit {
                self.miss(job, place, out);
            }
            return;
        }
        match flight.write.outcome() {
            None => self.ask(job, place, out),
            Some(_) => self.enqueue(now, job, out),
        }
    }

    /// The last data of a write have come and others have not. Its host sends it again; the next
    /// copy finds it under way.
    fn miss(&mut self, job: JobId, place: usize, out: &mut Vec<TargetOut>) {
        let credit = self.credit(place);
        let Some(flight) = self.flights.get_mut(job) else { return };
        answer::respond(&self.format, flight.port, &flight.packet, Outcome::Incomplete, credit, out);
    }

    /// A command has all that it needs.
    fn enqueue(&mut self, now: Time, job: JobId, out: &mut Vec<TargetOut>) {
        let Some(flight) = self.flights.get_mut(job) else { return };
        (flight.stage, flight.ready_at) = (Stage::Waiting, now);
        let drive = self.sessions[flight.session()].drive;
        let (tenant, io) = (self.sessions[flight.session()].tenant, flight.io(job));
        if self.drives[drive].submit(tenant, io) {
            self.pump(now, drive, out);
        } else {
            self.counters.aborted += 1;
            self.finish(now, job, Outcome::Aborted, out);
        }
    }

    /// Gives the drive what may go to it now.
    fn pump(&mut self, now: Time, drive: usize, out: &mut Vec<TargetOut>) {
        while let Some(started) = self.drives[drive].next(now) {
            let Some((job, flight)) = self.flights.at_mut(started.io.ticket) else { continue };
            flight.started = Some(started);
            if self.command_life_max.is_some_and(|life| now.saturating_since(flight.arrived) > life) {
                self.counters.aborted += 1;
                self.drives[drive].abandon(started);
                self.finish(now, job, Outcome::Aborted, out);
                continue;
            }
            (flight.stage, flight.submitted) = (Stage::AtDrive, now);
            let &Packet { operation, address, bytes, request, .. } = &flight.packet;
            let drive = self.drives[drive].id;
            out.push(TargetOut::Submit { drive, job, operation, address, bytes, request });
        }
    }

    fn on_done(&mut self, now: Time, job: JobId, out: &mut Vec<TargetOut>) {
        let Some(flight) = self.flights.get_mut(job).filter(|flight| flight.stage == Stage::AtDrive) else { return };
        let (drive, latency) = (self.sessions[flight.session()].drive, now.saturating_since(flight.submitted));
        if let Some(started) = flight.started.take() {
            self.drives[drive].complete(now, started, latency);
        }
        self.finish(now, job, Outcome::Success, out);
        self.pump(now, drive, out);
    }

    /// A flight is over: answered, unless nobody waits for it, and forgotten.
    fn finish(&mut self, now: Time, job: JobId, outcome: Outcome, out: &mut Vec<TargetOut>) {
        let Some(flight) = self.flights.get(job) else { return };
        let (place, attempt) = (flight.session(), flight.attempt());
        if !flight.is_orphan {
            self.sessions[place].end(&flight.packet, job, outcome);
            answer::all(&self.format, now, flight, outcome, self.credit(place), out);
        }
        self.flights.close(job);
        self.after_flight(place, attempt, out);
        self.forget_deadlines();
    }

    /// Answers a command that takes no flight.
    fn refuse(&mut self, place: usize, port: Port, packet: &Packet, outcome: Outcome, out: &mut Vec<TargetOut>) {
        self.sessions[place].refuse(packet, outcome);
        let credit = self.credit(place);
        answer::respond(&self.format, port, packet, outcome, credit, out);
    }

    fn credit(&self, place: usize) -> u32 {
        let Session { drive, tenant, .. } = self.sessions[place];
        self.drives[drive].credit(tenant)
    }

    fn on_drive_failed(&mut self, now: Time, id: DriveId, out: &mut Vec<TargetOut>) {
        let Some(drive) = self.drives.iter().position(|drive| drive.id == id) else { return };
        self.drives[drive].fail();
        let jobs: Vec<JobId> = self.flights.iter().map(|(job, _)| job).collect();
        for job in jobs {
            let is_here =
                self.flights.get_mut(job).is_some_and(|flight| self.sessions[flight.session()].drive == drive);
            if is_here {
                self.counters.failed += 1;
                self.finish(now, job, Outcome::DriveFailed, out);
            }
        }
    }

    /// Gives up what could not begin within its life.
    fn expire(&mut self, now: Time, out: &mut Vec<TargetOut>) {
        while let Some(&(_, job)) = self.deadlines.front().filter(|(deadline, _)| *deadline < now) {
            self.deadlines.pop_front();
            if self.flights.get_mut(job).is_some_and(|flight| flight.stage != Stage::AtDrive) {
                self.withdraw(job);
                self.counters.aborted += 1;
                self.finish(now, job, Outcome::Aborted, out);
            }
        }
    }

    /// Gives up what is late, and feeds drives that have tokens again.
    fn run_timers(&mut self, now: Time, out: &mut Vec<TargetOut>) {
        self.expire(now, out);
        for drive in 0..self.drives.len() {
            if self.drives[drive].next_wakeup().is_some_and(|at| at <= now) {
                self.pump(now, drive, out);
            }
        }
    }

    /// Forgets the oldest deadlines as long as their commands are over or at the drive, so that the
    /// next wake-up is of use.
    fn forget_deadlines(&mut self) {
        while let Some((_, job)) = self.deadlines.front() {
            if self.flights.get_mut(*job).is_some_and(|flight| flight.stage != Stage::AtDrive) {
                return;
            }
            self.deadlines.pop_front();
        }
    }

    /// Takes a flight that waits for its turn out of the drive's queue.
    fn withdraw(&mut self, job: JobId) {
        let Some(flight) = self.flights.get_mut(job).filter(|flight| flight.stage == Stage::Waiting) else { return };
        let Session { drive, tenant, .. } = self.sessions[flight.session()];
        self.drives[drive].withdraw(tenant, job.place());
    }
}

const NO_SESSION: u32 = u32::MAX;
const UNUSED: u32 = u32::MAX;

fn seats_of(config: &TargetConfig, first: u32) -> Result<Vec<Seat>, TargetError> {
    let last = config.sessions.iter().map(|session| session.id.0).max();
    let nobody = Seat { place: UNUSED, drive: NO_SESSION, tenant: 0 };
    let mut seats = vec![nobody; last.map_or(0, |last| (last - first) as usize + 1)];
    for TargetSession { id, drive } in &config.sessions {
        let place = config.drives.iter().position(|other| other == drive);
        let place = place.ok_or(TargetError::ForeignDrive { session: *id, drive: *drive })?;
        seats[(id.0 - first) as usize].drive = place as u32;
    }
    Ok(seats)
}

impl Program for Target {
    type In = TargetIn;
    type Out = TargetOut;

    fn on(&mut self, now: Time, input: TargetIn, out: &mut Vec<TargetOut>) {
        match input {
            TargetIn::Packet { port, packet } => self.receive(now, port, &packet, out),
            TargetIn::Done { job } => by_windows(self, out, now, |target, out| target.on_done(now, job, out)),
            TargetIn::DriveFailed(drive) => {
                by_windows(self, out, now, |target, out| target.on_drive_failed(now, drive, out));
            }
            TargetIn::LinkUp(port) => pause(self, now, port, false, out),
            TargetIn::DriveBack(drive) => {
                self.drives.iter_mut().filter(|other| other.id == drive).for_each(|drive| drive.is_up = true);
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        // A command may begin at its last moment, and not behind it.
        let deadline = self.deadlines.front().map_or(Time::MAX, |(deadline, _)| *deadline + Span::ps(1));
        let drives = self.drives.iter().filter_map(Drive::next_wakeup);
        let next = drives.chain(self.streams.next_wakeup()).fold(deadline, Time::min);
        (next < Time::MAX).then_some(next)
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<TargetOut>) {
        repair(self, now, out);
        by_windows(self, out, now, |target, out| target.run_timers(now, out));
    }
}
