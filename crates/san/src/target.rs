//! The storage node: submits commands from the network to drives, and returns answers.
//!
//! Each command has a *flight*. It waits for its data (writes without in-capsule data), then for
//! its turn at the drive ([`crate::gimbal`], or first in, first out). It is then at the drive, and
//! is finally answered. Drives are models outside: the node emits [`TargetOut::Submit`] and
//! receives [`TargetIn::Done`].
//!
//! * Every packet to a host carries the drive's credit for the session. An answer carries the trail
//!   of the request's last packet, turned around.
//! * A command is identified by session, lane, identifier and send. A copy is not executed again.
//!   If the command is in progress, it continues, and is answered along the newest copy's path. If
//!   it is a finished write, it is answered again. If its identifier has been reused since, the
//!   copy is dropped.
//! * A reset ([`crate::retry`]) waits until every command of an association, and of earlier ones on
//!   its lane, is done or dead. Then it is answered.
//! * When a drive fails, all of its commands are answered with an error at once. So are new
//!   commands until the drive is back.
//!
//! A command is refused ([`Outcome::Aborted`]) if flights or queues are full, and if it could not
//! begin within its life: nothing of it was done then.

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
use std::collections::VecDeque;
use transport::Allowance;

pub use flight::JobId;

/// The admission of commands to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A switch that monitors the drive's latency, shares the drive among sessions and assigns
    /// credits.
    Gimbal(GimbalConfig),
    /// The baseline: first in, first out.
    Fifo {
        /// Maximum number of commands at the drive.
        depth: u32,
        /// Maximum number of commands that wait for a drive.
        waiting_max: usize,
        /// The credit in every answer.
        credit: u32,
    },
}

/// A session of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetSession {
    /// Its identifier. Sessions of one target should have close numbers: tables span the range from
    /// the least to the greatest.
    pub id: SessionId,
    /// Its drive, one of the target's.
    pub drive: DriveId,
}

/// The configuration of a storage node.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetConfig {
    /// The format of packets.
    pub wire: WireConfig,
    /// The admission of commands to drives.
    pub admission: Admission,
    /// Its drives.
    pub drives: Vec<DriveId>,
    /// Its sessions.
    pub sessions: Vec<TargetSession>,
    /// Entries of the queue pair of each lane of a session, 2 or more, as configured at hosts.
    pub queue_entries: u16,
    /// Lanes of a session, as configured at hosts.
    pub lanes: u8,
    /// Maximum number of commands in progress.
    pub flights_max: u32,
    /// Time after its arrival within which a command may begin at the drive; later ones are aborted
    /// (the target's part of a quiesce time). `None`: no limit. A write that its host gave up
    /// before its data arrived then stays until its association is reset.
    pub command_life_max: Option<Span>,
    /// Maximum age of a packet on arrival, by the timestamp of its first hop; older ones are
    /// dropped. `None`: no limit.
    pub packet_life_max: Option<Span>,
    /// Congestion control, as configured at hosts.
    pub stream: Option<StreamConfig>,
    /// The link rate of each port, as configured at hosts.
    pub links: Vec<Rate>,
}

/// An invalid configuration of a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The MTU has no room behind the headers.
    #[error(transparent)]
    Mtu(#[from] MtuError),
    /// A session with a drive that is not one of the target's.
    #[error("session {} is with drive {}, which is not of this target", session.0, drive.0)]
    ForeignDrive {
        /// The misconfigured session.
        session: SessionId,
        /// The unknown drive.
        drive: DriveId,
    },
    /// A queue pair without room for a command.
    #[error("a queue of {got} entries, allowed are 2 to 65535")]
    Queue {
        /// Number of entries.
        got: u16,
    },
    /// More lanes than an attempt can encode, or none.
    #[error("{got} lanes, allowed are 1 to 8")]
    Lanes {
        /// Number of lanes.
        got: u8,
    },
}

/// An input of a target.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation a packet")]
pub enum TargetIn {
    /// A whole packet was received.
    Packet {
        /// The ingress port.
        port: Port,
        /// The packet as received.
        packet: Packet,
    },
    /// A drive has completed a job.
    Done {
        /// The completed job.
        job: JobId,
    },
    /// A drive has failed. Its jobs must not be executed or reported any more: unfinished work is
    /// lost.
    DriveFailed(DriveId),
    /// A drive works (again).
    DriveBack(DriveId),
    /// The link of a port came up.
    LinkUp(Port),
}

/// An output of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation a packet")]
pub enum TargetOut {
    /// A packet for the first-in-first-out queue of a port.
    Send {
        /// The egress port.
        port: Port,
        /// The packet to send.
        packet: Packet,
    },
    /// A job for a drive; its completion is reported by [`TargetIn::Done`].
    Submit {
        /// The drive.
        drive: DriveId,
        /// Identifier of the job.
        job: JobId,
        /// The operation.
        operation: Operation,
        /// First byte on the drive.
        address: u64,
        /// Length in bytes, at least one.
        bytes: u32,
        /// The request that it serves; it represents the data of a write.
        request: RequestId,
    },
}

/// The counters of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetCounters {
    /// Commands received for the first time.
    pub commands: u64,
    /// Copies of commands and data that were not executed: of the same send, or superseded by a
    /// newer one.
    pub duplicates: u64,
    /// Packets of reset associations, of reused identifiers, or past their maximum age.
    pub late: u64,
    /// Packets of unknown sessions or commands.
    pub unknown: u64,
    /// Commands that were refused or aborted.
    pub aborted: u64,
    /// Commands that failed with their drive.
    pub failed: u64,
    /// Maximum number of simultaneous flights.
    pub flights_highest: u32,
}

/// The storage node.
#[derive(Clone, Debug)]
pub struct Target {
    format: WireFormat,
    flights: Flights,
    /// Sessions that have been used: most of a large network's never are.
    sessions: Vec<Session>,
    queue_entries: u16,
    /// Indexed by session number less `first_session`.
    seats: Vec<Seat>,
    first_session: u32,
    drives: Vec<Drive>,
    command_life_max: Option<Span>,
    packet_life_max: Option<Span>,
    /// The deadlines by which commands must begin, in the order of their arrival.
    deadlines: VecDeque<(Time, JobId)>,
    counters: TargetCounters,
    streams: Streams<TargetOut>,
    lanes: usize,
}

/// The location of a session's state. The table is small enough to stay in the cache.
#[derive(Clone, Copy, Debug)]
struct Seat {
    /// Index into the target's sessions, or [`UNUSED`].
    place: u32,
    /// Index of its drive, or [`NO_SESSION`].
    drive: u32,
    /// Its tenant number at the drive.
    tenant: u32,
}

impl Target {
    /// Creates a target with idle, working drives.
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

    /// Returns the counters.
    pub fn counters(&self) -> TargetCounters {
        TargetCounters { flights_highest: self.flights.highest(), ..self.counters }
    }

    /// Returns the number of commands in progress.
    pub fn under_way(&self) -> usize {
        self.flights.len()
    }

    /// Returns what congestion control lets all connections send.
    pub fn allowance(&self) -> Allowance {
        self.streams.allowance()
    }

    /// Returns the switch of a drive, by its index in the configuration, or `None` if the drive has
    /// none.
    pub fn gimbal(&self, drive: usize) -> Option<&crate::gimbal::Gimbal> {
        self.drives.get(drive).and_then(Drive::gimbal)
    }

    /// Prefetches the session state of a packet that will arrive soon. Has no other effect.
    #[inline]
    pub fn prefetch(&self, packet: &Packet) {
        if let Some(seat) = self.seat(packet.tag.session).filter(|seat| seat.place != UNUSED) {
            self.drives[seat.drive as usize].prefetch(seat.tenant);
            self.sessions[seat.place as usize].prefetch(packet);
        }
    }

    /// As [`prefetch`](Self::prefetch), for a job that will soon complete.
    #[inline]
    pub fn prefetch_job(&self, job: JobId) {
        self.flights.prefetch(job);
    }

    /// Prefetches the state that the answer of the next completed job changes.
    #[inline]
    pub fn prefetch_answer(&self, job: JobId) {
        if let Some(flight) = self.flights.get(job) {
            self.prefetch_session(&self.sessions[flight.session()], &flight.packet);
        }
    }

    #[inline]
    fn prefetch_session(&self, session: &Session, packet: &Packet) {
        session.prefetch(packet);
        self.drives[session.drive].prefetch(session.tenant);
    }

    /// Returns the index of a session, and adds it at its first use.
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

    /// Handles a packet that is next in order.
    fn take(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<TargetOut>) {
        if packet.kind == PacketKind::Command && packet.status == Outcome::Rejected {
            // A hop has answered it; it was forwarded only to complete the byte stream.
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

    /// Returns whether the packet's association was reset, or the packet exceeds its maximum age.
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
            // A read may be done again: it returns the current data, while its host still waits.
            Reception::Over(_) if packet.operation == Operation::Read => self.begin(now, place, port, packet, out),
            Reception::Over(outcome) => {
                self.counters.duplicates += 1;
                let credit = self.credit(place);
                answer::respond(&self.format, port, packet, outcome, credit, out);
            }
        }
    }

    /// Handles a copy of a command in progress. A later send replaces the earlier one in the
    /// answer, and its data are requested again.
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

    /// Requests the next data of a write.
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

    /// Reports that the last data of a write arrived and others did not. The host resends the
    /// command; that copy will find it in progress.
    fn miss(&mut self, job: JobId, place: usize, out: &mut Vec<TargetOut>) {
        let credit = self.credit(place);
        let Some(flight) = self.flights.get_mut(job) else { return };
        answer::respond(&self.format, flight.port, &flight.packet, Outcome::Incomplete, credit, out);
    }

    /// Queues a command, whose data are complete, for its drive.
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

    /// Submits to the drive what may begin now.
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

    /// Ends a flight: answers it, unless it is an orphan, and frees it.
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

    /// Answers a command without a flight.
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

    /// Aborts commands that could not begin within their life.
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

    /// Aborts expired commands, and resumes drives that have tokens again.
    fn run_timers(&mut self, now: Time, out: &mut Vec<TargetOut>) {
        self.expire(now, out);
        for drive in 0..self.drives.len() {
            if self.drives[drive].next_wakeup().is_some_and(|at| at <= now) {
                self.pump(now, drive, out);
            }
        }
    }

    /// Drops the oldest deadlines as long as their commands are over or at the drive, so that no
    /// wake-up is wasted.
    fn forget_deadlines(&mut self) {
        while let Some((_, job)) = self.deadlines.front() {
            if self.flights.get_mut(*job).is_some_and(|flight| flight.stage != Stage::AtDrive) {
                return;
            }
            self.deadlines.pop_front();
        }
    }

    /// Removes a waiting flight from the drive's queue.
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
            TargetIn::Done { job } => self.job_done(now, job, out),
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
        // A command may begin exactly at its deadline, but not after it.
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
