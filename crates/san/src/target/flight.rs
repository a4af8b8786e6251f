//! Commands in progress, and the known command identifiers of each session.

use crate::gimbal::{GimbalIo, IoKind, Started};
use crate::id::Port;
use crate::packet::{Outcome, Packet};
use crate::session::{Attempt, LANES_MAX, is_earlier_command, is_earlier_generation};
use base::{Operation, Time};
use nvme::pdu::HostData;
use nvme::transfer::{ReadyPlan, TargetWrite};
use prefetch_index::prefetch_index;
use std::slice;

/// A job of a drive: the slot of its flight, and a count of the slot's uses, by which late reports
/// are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(u64);

impl JobId {
    const fn new(place: u32, uses: u32) -> Self {
        JobId((uses as u64) << 32 | place as u64)
    }

    pub(super) const fn place(self) -> u32 {
        self.0 as u32
    }

    const fn uses(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The progress of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its data were requested and have not all arrived.
    AwaitingData,
    /// It waits for its turn at the drive.
    Waiting,
    /// The drive executes it.
    AtDrive,
}

/// The memory order is fixed: the first cache line holds the fields that every step uses (see
/// [`Place`]), the two behind it the packet, and the end the fields only for writes without
/// in-capsule data.
#[repr(C)]
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) port: Port,
    pub(super) stage: Stage,
    /// Its association was reset: no answer is sent.
    pub(super) is_orphan: bool,
    /// Index of its session.
    session: u32,
    /// When its command arrived.
    pub(super) arrived: Time,
    /// When its last data arrived; for reads, when the command did.
    pub(super) ready_at: Time,
    /// When it was submitted to the drive.
    pub(super) submitted: Time,
    pub(super) started: Option<Started>,
    /// The newest packet that the answer refers to.
    pub(super) packet: Packet,
    pub(super) write: TargetWrite,
    received: u32,
    /// A packet of its data is missing: the rest is useless, the host will resend all.
    is_broken: bool,
}

impl Flight {
    fn new(now: Time, session: usize, port: Port, packet: &Packet, plan: ReadyPlan) -> Self {
        Flight {
            write: TargetWrite::new(packet.tag.command, packet.bytes, plan),
            packet: packet.copied(),
            port,
            session: session as u32,
            stage: Stage::AwaitingData,
            arrived: now,
            ready_at: now,
            submitted: now,
            started: None,
            received: 0,
            is_broken: false,
            is_orphan: false,
        }
    }

    /// Reuses the slot of an earlier flight, together with the memory of its transfer.
    fn begin(&mut self, now: Time, session: usize, port: Port, packet: &Packet) {
        self.packet.become_copy_of(packet);
        // No data are requested for a read.
        if packet.operation != Operation::Read {
            self.restart();
        }
        (self.port, self.session, self.stage) = (port, session as u32, Stage::AwaitingData);
        (self.arrived, self.ready_at, self.submitted) = (now, now, now);
        (self.started, self.is_orphan) = (None, false);
    }

    /// Discards the received data.
    pub(super) fn restart(&mut self) {
        self.write.restart(self.packet.tag.command, self.packet.bytes);
        (self.received, self.is_broken) = (0, false);
    }

    /// Accepts a packet of data. Returns whether all requested data have arrived.
    pub(super) fn take_data(&mut self, packet: &Packet, last: bool, ready_max: u32) -> bool {
        let (command, offset, length) = (packet.tag.command, self.received, packet.payload);
        let is_last = (offset + length).is_multiple_of(ready_max) || offset + length == self.packet.bytes;
        let data = HostData { command, tag: command, offset, length, is_last };
        // The host's mark on the last packet reveals a gap that lengths alone do not.
        let is_whole = last == (offset + length == self.packet.bytes);
        let taken = if is_whole && !self.is_broken { self.write.on_data(&data).ok() } else { None };
        self.is_broken = taken.is_none();
        if taken.is_some() {
            self.received += length;
            self.packet.trail.become_copy_of(&packet.trail);
        }
        taken == Some(true)
    }

    /// Returns the index of its session.
    pub(super) fn session(&self) -> usize {
        self.session as usize
    }

    /// Returns the bytes of data received so far.
    pub(super) fn received(&self) -> u32 {
        self.received
    }

    pub(super) fn io(&self, job: JobId) -> GimbalIo {
        GimbalIo { ticket: job.place(), kind: IoKind::of(self.packet.operation), bytes: self.packet.bytes }
    }

    pub(super) fn attempt(&self) -> Attempt {
        Attempt::of_bits(self.packet.tag.attempt)
    }
}

/// Flights in a slab; free slots are reused together with their memory.
#[derive(Clone, Debug)]
pub(super) struct Flights {
    places: Vec<Place>,
    free: Vec<u32>,
    most: u32,
    count: usize,
    highest: u32,
    plan: ReadyPlan,
}

#[repr(C, align(64))]
#[derive(Clone, Debug)]
struct Place {
    uses: u32,
    /// Otherwise the flight has ended, and only its memory is kept.
    is_used: bool,
    flight: Flight,
}

impl Flights {
    pub(super) fn new(most: u32, ready_max: u32) -> Self {
        let plan = ReadyPlan { ready_bytes_max: ready_max, open_max: 1 };
        Flights { places: Vec::new(), free: Vec::new(), most, count: 0, highest: 0, plan }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn highest(&self) -> u32 {
        self.highest
    }

    /// Allocates a flight for a command, or returns `None` if the maximum number is in progress.
    pub(super) fn open(&mut self, now: Time, session: usize, port: Port, packet: &Packet) -> Option<JobId> {
        let place = match self.free.pop() {
            Some(place) => {
                let Place { is_used, flight, .. } = &mut self.places[place as usize];
                flight.begin(now, session, port, packet);
                *is_used = true;
                place
            }
            None if (self.places.len() as u32) < self.most => {
                let flight = Flight::new(now, session, port, packet, self.plan);
                self.places.push(Place { uses: 0, is_used: true, flight });
                self.places.len() as u32 - 1
            }
            None => return None,
        };
        self.count += 1;
        self.highest = self.highest.max(self.count as u32);
        Some(JobId::new(place, self.places[place as usize].uses))
    }

    pub(super) fn get(&self, job: JobId) -> Option<&Flight> {
        let place = self.places.get(job.place() as usize)?;
        place.is(job).then_some(&place.flight)
    }

    pub(super) fn get_mut(&mut self, job: JobId) -> Option<&mut Flight> {
        let place = self.places.get_mut(job.place() as usize)?;
        place.is(job).then_some(&mut place.flight)
    }

    /// Prefetches three cache lines: the packet with its trail, and the fields before it.
    #[inline]
    pub(super) fn prefetch(&self, job: JobId) {
        let Some(Place { flight, .. }) = self.places.get(job.place() as usize) else { return };
        prefetch_index(slice::from_ref(&flight.arrived), 0);
        prefetch_index(slice::from_ref(&flight.packet), 0);
        prefetch_index(flight.packet.trail.near.as_slice(), 0);
    }

    pub(super) fn at_mut(&mut self, number: u32) -> Option<(JobId, &mut Flight)> {
        let place = self.places.get_mut(number as usize)?;
        place.is_used.then(|| (JobId::new(number, place.uses), &mut place.flight))
    }

    /// Frees the slot of a flight; its old key no longer finds it.
    pub(super) fn close(&mut self, job: JobId) {
        let Some(place) = self.places.get_mut(job.place() as usize).filter(|place| place.is(job)) else { return };
        (place.is_used, place.uses) = (false, place.uses.wrapping_add(1));
        self.free.push(job.place());
        self.count -= 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (JobId, &Flight)> {
        let used = (0..).zip(&self.places).filter(|(_, place)| place.is_used);
        used.map(|(number, place)| (JobId::new(number, place.uses), &place.flight))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (JobId, &mut Flight)> {
        let used = (0..).zip(&mut self.places).filter(|(_, place)| place.is_used);
        used.map(|(number, place)| (JobId::new(number, place.uses), &mut place.flight))
    }
}

impl Place {
    /// Returns whether the slot still holds this job.
    fn is(&self, job: JobId) -> bool {
        self.is_used && self.uses == job.uses()
    }
}

/// The newest known command in a slot of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// None has arrived.
    Unused,
    /// It is in progress.
    UnderWay { id: u16, job: JobId },
    /// It was answered with this outcome.
    Over { id: u16, outcome: Outcome },
}

/// The relation of a packet's command to its slot in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reception {
    /// The first packet of a newer command than the slot's.
    New,
    /// A packet of the command in progress in its slot.
    UnderWay(JobId),
    /// A packet of the command last answered in its slot.
    Over(Outcome),
    /// A packet of an older command than the slot's.
    Late,
}

/// One cache line: there are many sessions, and each packet uses a different one.
#[repr(align(64))]
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Index of its drive.
    pub(super) drive: usize,
    /// Its tenant number at the drive.
    pub(super) tenant: u32,
    lanes: u8,
    slot_bits: u32,
    /// By slot, then by lane; grows up to the highest slot used.
    slots: Vec<Slot>,
    /// State of resets; usually `None`, as none ever arrived.
    resets: Option<Box<Resets>>,
}

/// The resets of a session, by lane.
#[derive(Clone, Debug, Default)]
struct Resets {
    /// The first association that was not reset.
    live_from: [Option<u8>; LANES_MAX],
    /// The reset that waits for the last command of the dead associations, and its ingress port.
    waiting: [Option<(Port, Packet)>; LANES_MAX],
}

const _: () = assert!(size_of::<Session>() == 64);

impl Session {
    pub(super) fn new(drive: usize, tenant: u32, lanes: u8, queue_entries: u16) -> Self {
        // Slots are numbered as in nvme::queue::HostQueue: one entry less than the queue has, in
        // the low bits of an identifier.
        let slot_bits = (queue_entries - 2).checked_ilog2().map_or(0, |bits| bits + 1);
        Session { drive, tenant, lanes, slot_bits, slots: Vec::new(), resets: None }
    }

    pub(super) fn has_lane(&self, attempt: Attempt) -> bool {
        attempt.lane < self.lanes
    }

    pub(super) fn is_reset(&self, attempt: Attempt) -> bool {
        let live_from = self.resets.as_ref().and_then(|resets| resets.live_from[usize::from(attempt.lane)]);
        live_from.is_some_and(|live| is_earlier_generation(attempt.generation, live))
    }

    /// Declares this association of its lane and all earlier ones dead. The reset in `packet`,
    /// received on `port`, is to be answered.
    pub(super) fn reset(&mut self, attempt: Attempt, port: Port, packet: &Packet) {
        let next = attempt.generation.wrapping_add(1);
        let resets = self.resets.get_or_insert_default();
        let live_from = &mut resets.live_from[usize::from(attempt.lane)];
        if live_from.is_none_or(|live| is_earlier_generation(live, next)) {
            *live_from = Some(next);
        }
        resets.waiting[usize::from(attempt.lane)] = Some((port, packet.copied()));
    }

    /// Returns the unanswered reset of a lane, and its ingress port.
    pub(super) fn waiting_reset(&self, lane: u8) -> Option<&(Port, Packet)> {
        self.resets.as_ref()?.waiting[usize::from(lane)].as_ref()
    }

    /// Records that the reset of a lane was answered.
    pub(super) fn reset_is_answered(&mut self, lane: u8) {
        if let Some(resets) = &mut self.resets {
            resets.waiting[usize::from(lane)] = None;
        }
    }

    fn slot_of(&self, packet: &Packet) -> usize {
        let lane = usize::from(Attempt::of_bits(packet.tag.attempt).lane);
        let slot = usize::from(packet.tag.command) & ((1 << self.slot_bits) - 1);
        slot * usize::from(self.lanes) + lane
    }

    fn slot_mut(&mut self, packet: &Packet) -> &mut Slot {
        let slot = self.slot_of(packet);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Slot::Unused);
        }
        &mut self.slots[slot]
    }

    #[inline]
    pub(super) fn prefetch(&self, packet: &Packet) {
        prefetch_index(&self.slots, self.slot_of(packet));
    }

    pub(super) fn receive(&mut self, packet: &Packet) -> Reception {
        let id = packet.tag.command;
        match *self.slot_mut(packet) {
            Slot::Unused => Reception::New,
            Slot::UnderWay { id: known, job } if known == id => Reception::UnderWay(job),
            Slot::Over { id: known, outcome } if known == id => Reception::Over(outcome),
            Slot::UnderWay { id: known, .. } | Slot::Over { id: known, .. } if is_earlier_command(id, known) => {
                Reception::Late
            }
            _ => Reception::New,
        }
    }

    pub(super) fn begin(&mut self, packet: &Packet, job: JobId) {
        *self.slot_mut(packet) = Slot::UnderWay { id: packet.tag.command, job };
    }

    /// Records a command that was answered without a flight.
    pub(super) fn refuse(&mut self, packet: &Packet, outcome: Outcome) {
        *self.slot_mut(packet) = Slot::Over { id: packet.tag.command, outcome };
    }

    /// Records the outcome of a command, unless its slot has a newer one.
    pub(super) fn end(&mut self, packet: &Packet, job: JobId, outcome: Outcome) {
        let slot = self.slot_mut(packet);
        if matches!(*slot, Slot::UnderWay { job: other, .. } if other == job) {
            *slot = Slot::Over { id: packet.tag.command, outcome };
        }
    }
}
