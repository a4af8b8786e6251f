//! Hosts, targets and drives.

use super::track::End;
use super::{Now, Place as At, SanEvent, SanRig, outcome_of};
use crate::drive::{Ended, Ticket};
use base::{Bytes, Operation, Program, Request, RequestId, Span};
use hardware::ssd::Done;
use record::{Outcome, Place, SpanKind};
use san::host::{HostIn, HostIo, HostOut};
use san::route::Advertisement;
use san::target::{JobId, TargetIn, TargetOut};
use san::{DriveId, PacketKind, Port};
use topology::VertexId;

/// Software's unit of copying.
const COPY: u64 = 4_096;

/// Something that a drive is doing.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriveWork {
    /// Whose drive it is.
    pub target: VertexId,
    /// The target's name for it.
    pub job: JobId,
    pub drive: DriveId,
    /// For which request.
    pub request: RequestId,
    pub operation: Operation,
    pub address: u64,
    pub bytes: u32,
    done: Done,
    /// The drive has failed meanwhile, or its target stopped: nobody hears of it and nothing was
    /// done.
    pub is_lost: bool,
}

/// Hosts.
impl SanRig {
    pub(super) fn ask(&mut self, ticket: Ticket, request: &Request, context: Now<'_, '_>) {
        let name = self.tracks.open(ticket, request, context);
        let host = self.vertices.hosts[request.source.index()];
        let drive = DriveId(request.target.0 - self.vertices.hosts.len() as u32);
        if let Some(order) = &mut self.order {
            order.begins(context.now, name, request);
        }
        let bytes = request.bytes.count() as u32;
        let (operation, address) = (request.operation, request.address);
        let io = HostIo { request: name, operation, address, bytes };
        let At::Host(place) = self.vertices.places[host.index()] else { return };
        self.programs.hosts[place as usize].issue(context.now, drive.0, io, &mut self.programs.host_out);
        self.host_did(host, place, context);
    }

    /// A packet has come, which is read where it lies.
    pub(super) fn host_receives(&mut self, host: VertexId, place: u32, port: Port, flight: u32, context: Now<'_, '_>) {
        let packet = &self.carrier.flights[flight].packet;
        self.tracks.came(context.now, packet);
        self.programs.hosts[place as usize].receive(context.now, port, packet, &mut self.programs.host_out);
        self.carrier.flights.discard(flight);
        self.host_did(host, place, context);
    }

    pub(super) fn host_hears(&mut self, host: VertexId, port: Port, distances: Advertisement, context: Now<'_, '_>) {
        self.tell_host(host, HostIn::Advertisement { port, advertisement: distances }, context);
    }

    pub(super) fn host_notices(&mut self, host: VertexId, port: Port, is_up: bool, context: Now<'_, '_>) {
        self.tell_host(host, if is_up { HostIn::LinkUp(port) } else { HostIn::LinkDown(port) }, context);
    }

    fn tell_host(&mut self, host: VertexId, input: HostIn, context: Now<'_, '_>) {
        let At::Host(place) = self.vertices.places[host.index()] else { return };
        self.programs.hosts[place as usize].on(context.now, input, &mut self.programs.host_out);
        self.host_did(host, place, context);
    }

    pub(super) fn wake_host(&mut self, host: VertexId, context: Now<'_, '_>) {
        let At::Host(place) = self.vertices.places[host.index()] else { return };
        self.programs.hosts[place as usize].on_wakeup(context.now, &mut self.programs.host_out);
        self.host_did(host, place, context);
    }

    fn host_did(&mut self, host: VertexId, place: u32, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.programs.host_out);
        for action in &out {
            match action {
                HostOut::Send { port, packet } => {
                    if packet.kind == PacketKind::Command {
                        self.tracks.sent(context.now, packet);
                    } else if let Some(track) = self.tracks.of(packet) {
                        track.goes(context.now, End::Host, SpanKind::Schedule, Place::Host(packet.source.0));
                    }
                    self.carrier.send(host, *port, packet, context);
                }
                HostOut::Done(done) => self.end(done.request, outcome_of(done.outcome), context),
            }
        }
        out.clear();
        self.programs.host_out = out;
        let next = self.programs.hosts[place as usize].next_wakeup();
        self.wake_at(host, next, context);
    }

    fn end(&mut self, name: RequestId, outcome: Outcome, context: Now<'_, '_>) {
        let Some(track) = self.tracks.get(name) else { return };
        let (request, asked_at, was_repeated) = (track.request, track.asked_at, track.was_repeated());
        let held = track.start.unwrap_or(context.now).saturating_since(asked_at);
        let was_answered = outcome == Outcome::Finished;
        if let Some(order) = &mut self.order {
            order.ends(context.now, name, &request, was_answered, asked_at);
        }
        let copies = request.bytes.count().div_ceil(COPY);
        let stack = self.config.ends.host_complete + self.config.ends.per_4_kib * copies;
        let Some((ticket, start, ledger)) = self.tracks.close(context.now, name, stack, was_answered) else { return };
        if was_answered {
            let latency = context.now + stack - asked_at;
            self.observed.sizes.add(request.operation, request.bytes, asked_at, held, latency);
        }
        let was_hit = was_repeated || !was_answered;
        let bytes = if was_answered { request.bytes } else { Bytes::ZERO };
        self.observed.aftermath.ended(context.now, bytes, asked_at, was_hit, self.config.passing.detection);
        context.end(Ended { ticket, outcome, start, end: context.now + stack, label: Span::ZERO, ledger });
    }
}

/// Targets and drives.
impl SanRig {
    /// A packet has come, which is read where it lies.
    pub(super) fn target_receives(
        &mut self,
        target: VertexId,
        place: u32,
        port: Port,
        flight: u32,
        context: Now<'_, '_>,
    ) {
        let packet = &self.carrier.flights[flight].packet;
        self.observed.counts.at_target(packet, true);
        self.observed.ways.count(packet, &mut self.observed.shortest);
        self.tracks.came(context.now, packet);
        self.programs.targets[place as usize].receive(context.now, port, packet, &mut self.programs.target_out);
        self.carrier.flights.discard(flight);
        self.target_did(target, place, context);
    }

    /// The link of a port is there again.
    pub(super) fn target_notices(&mut self, target: VertexId, port: Port, context: Now<'_, '_>) {
        self.tell_target(target, TargetIn::LinkUp(port), context);
    }

    fn tell_target(&mut self, target: VertexId, input: TargetIn, context: Now<'_, '_>) {
        let At::Target(place) = self.vertices.places[target.index()] else { return };
        self.programs.targets[place as usize].on(context.now, input, &mut self.programs.target_out);
        self.target_did(target, place, context);
    }

    pub(super) fn wake_target(&mut self, target: VertexId, context: Now<'_, '_>) {
        let At::Target(place) = self.vertices.places[target.index()] else { return };
        self.programs.targets[place as usize].on_wakeup(context.now, &mut self.programs.target_out);
        self.target_did(target, place, context);
    }

    fn target_did(&mut self, target: VertexId, place: u32, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.programs.target_out);
        // What is ready to leave waits for its window or its rate only.
        let waited = if self.config.target.stream.is_some() { SpanKind::Schedule } else { SpanKind::StorageQueue };
        for action in &out {
            match *action {
                TargetOut::Send { port, ref packet } => {
                    if let Some(track) = self.tracks.of(packet) {
                        track.goes(context.now, End::Target, waited, Place::Target(target.0));
                    }
                    self.observed.counts.at_target(packet, false);
                    self.carrier.send(target, port, packet, context);
                }
                TargetOut::Submit { drive, job, operation, address, bytes, request } => {
                    let done = self.drives.submit(context.now, drive.index(), operation, address, bytes);
                    if let Some(track) = self.tracks.get(request) {
                        track.waited(context.now, SpanKind::StorageQueue, Place::Target(target.0));
                    }
                    let is_lost = !self.drives.is_up(drive.index());
                    let work = DriveWork { target, job, drive, request, operation, address, bytes, done, is_lost };
                    let work = self.working.insert(work);
                    context.at(done.end, SanEvent::DriveDone(work));
                }
            }
        }
        out.clear();
        self.programs.target_out = out;
        let next = self.programs.targets[place as usize].next_wakeup();
        self.wake_at(target, next, context);
    }

    pub(super) fn drive_done(&mut self, work: u32, context: Now<'_, '_>) {
        let work = self.working.remove(work);
        if work.is_lost {
            return;
        }
        if let Some(track) = self.tracks.get(work.request) {
            let Done { wait, collection_wait, service, .. } = work.done;
            let waits = [(SpanKind::FlashWait, wait), (SpanKind::CollectionWait, collection_wait)];
            let begun = context.now - work.done.total();
            let at = Place::Drive(work.drive.0);
            track.claim_device(begun, [waits[0], waits[1], (SpanKind::Flash, service)], at);
            track.passed(context.now, End::Target);
        }
        if let Some(order) = &mut self.order {
            order.store(&work);
        }
        let At::Target(place) = self.vertices.places[work.target.index()] else { return };
        self.programs.targets[place as usize].job_done(context.now, work.job, &mut self.programs.target_out);
        self.target_did(work.target, place, context);
    }

    /// A drive fails or comes back. What it was doing is not done.
    pub(super) fn set_drive(&mut self, drive: DriveId, is_up: bool, context: Now<'_, '_>) {
        self.drives.set_up(drive.index(), is_up);
        let target = self.vertices.targets[drive.index() / self.config.drives.per_target as usize];
        if self.carrier.is_running[target.index()] {
            self.drive_changes(target, drive, is_up, context);
        }
    }

    fn drive_changes(&mut self, target: VertexId, drive: DriveId, is_up: bool, context: Now<'_, '_>) {
        if !is_up {
            self.working.iter_mut().filter(|work| work.drive == drive).for_each(|work| work.is_lost = true);
        }
        let input = if is_up { TargetIn::DriveBack(drive) } else { TargetIn::DriveFailed(drive) };
        self.tell_target(target, input, context);
    }

    /// A target stops or starts: for its commands that is as if its drives did. Nobody hears their
    /// answers.
    pub(super) fn set_target(&mut self, target: u32, is_up: bool, context: Now<'_, '_>) {
        let vertex = self.vertices.targets[target as usize];
        let first = target * self.config.drives.per_target;
        for drive in first..first + self.config.drives.per_target {
            if self.drives.is_up(drive as usize) {
                self.drive_changes(vertex, DriveId(drive), is_up, context);
            }
        }
    }
}
