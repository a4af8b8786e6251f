//! The unfinished I/Os, in a slab: free slots are reused.

use super::HostIo;
use crate::id::Tag;
use crate::packet::{Packet, PacketKind};
use crate::wire::WireFormat;
use base::{Operation, Time};
use nvme::pdu::{ControllerData, HostData, ReadyToTransfer};
use nvme::transfer::{HostRead, HostWrite};
use prefetch_index::prefetch_index;
use std::slice;

/// The slot of an I/O, and a count of the slot's uses, by which late timers are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IoPlace {
    place: u32,
    uses: u32,
}

/// The progress of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits to be sent as a new command.
    Waiting,
    /// Its command was sent.
    Sent,
    /// Its command was refused and will be resent.
    BackedOff,
    /// Its association has failed, or its command was aborted, and it may not be sent yet.
    Held,
}

/// The memory order is fixed: the fields that a read's data use, those that its end uses, and those
/// that only writes use, each in a cache line (see [`Place`]).
#[repr(C)]
#[derive(Clone, Debug)]
pub(super) struct Io {
    pub(super) io: HostIo,
    pub(super) tag: Tag,
    /// Internal index of the session.
    pub(super) session: u32,
    pub(super) stage: Stage,
    /// Unanswered sends of this command.
    pub(super) losses: u8,
    /// The send of the command that the received data of a read answer: the present one, unless an
    /// earlier one was answered late.
    answered: u16,
    read: HostRead,
    /// When a packet for it last arrived.
    pub(super) heard: Time,
    /// When the present send started.
    pub(super) sent: Time,
    /// When its last packet left.
    pub(super) last_out: Time,
    pub(super) first_sent: Option<Time>,
    pub(super) sends: u32,
    /// Number of refusals, for the back-off.
    pub(super) refusals: u32,
    asked: u32,
    ready_max: u32,
    data_max: u32,
    success_flag: bool,
    write: HostWrite,
}

impl Io {
    fn new(session: u32, io: HostIo, format: &WireFormat) -> Self {
        Io {
            io,
            session,
            stage: Stage::Waiting,
            tag: Tag::default(),
            answered: 0,
            first_sent: None,
            sent: Time::ZERO,
            last_out: Time::ZERO,
            heard: Time::ZERO,
            sends: 0,
            losses: 0,
            refusals: 0,
            read: HostRead::new(0, io.bytes),
            write: HostWrite::new(0, 0, 0, format.config().host_data_max),
            asked: 0,
            ready_max: format.config().ready_max,
            data_max: format.config().host_data_max,
            success_flag: format.config().success_flag,
        }
    }

    /// Reuses the slot of an earlier I/O, together with the memory of its transfer.
    fn begin(&mut self, session: u32, io: HostIo) {
        (self.io, self.session, self.stage, self.tag) = (io, session, Stage::Waiting, Tag::default());
        (self.first_sent, self.sends, self.losses, self.refusals) = (None, 0, 0, 0);
    }

    /// Starts a send, and forgets packets received for an earlier one.
    pub(super) fn begin_send(&mut self, now: Time) {
        self.stage = Stage::Sent;
        self.first_sent.get_or_insert(now);
        (self.sent, self.last_out, self.heard) = (now, now, now);
        self.sends += 1;
        self.asked = 0;
        self.answered = self.tag.attempt;
        self.read = HostRead::new(self.tag.command, self.io.bytes);
        // Targets never request data for a read.
        if self.io.operation != Operation::Read {
            self.write.restart(self.tag.command, self.io.bytes);
        }
    }

    /// Returns whether a packet belongs to the expected answer. Data of a read count for any send,
    /// if none of another answer have arrived.
    pub(super) fn awaits(&mut self, packet: &Packet) -> bool {
        if let PacketKind::ReadData { .. } = packet.kind
            && self.read.received() == 0
        {
            self.answered = packet.tag.attempt;
        }
        let attempt = if self.io.operation == Operation::Read { self.answered } else { self.tag.attempt };
        self.stage == Stage::Sent && packet.tag.attempt == attempt
    }

    /// Returns whether data of a read are missing.
    pub(super) fn is_short(&self) -> bool {
        self.read.received() < self.io.bytes
    }

    /// Handles the target's request for the next data. Returns the begin and end of the data, or
    /// `None` for an invalid request.
    pub(super) fn on_ready(&mut self) -> Option<(u32, u32)> {
        if self.io.operation == Operation::Read {
            return None;
        }
        let (offset, length) = (self.asked, (self.io.bytes - self.asked).min(self.ready_max));
        let ready = ReadyToTransfer { command: self.tag.command, tag: self.tag.command, offset, length };
        self.write.on_ready(&ready).ok()?;
        self.asked += length;
        Some((offset, offset + length))
    }

    /// Returns the next PDU of data.
    pub(super) fn next_data(&mut self) -> Option<HostData> {
        self.write.next_data()
    }

    pub(super) fn data_max(&self) -> u32 {
        self.data_max
    }

    /// Handles received data. Returns whether they complete the I/O, or `None` if some before them
    /// are missing, which makes the rest useless.
    pub(super) fn on_data(&mut self, length: u32, is_last: bool) -> Option<bool> {
        let (command, offset) = (self.tag.command, self.read.received());
        let is_success = is_last && self.success_flag;
        self.read.on_data(&ControllerData { command, offset, length, is_last, is_success }).ok()
    }

    /// Returns whether a successful response finds the I/O complete.
    pub(super) fn is_complete(&mut self) -> bool {
        self.io.operation != Operation::Read || self.read.on_response(nvme::Status::SUCCESS).is_ok()
    }
}

/// I/Os in a slab; free slots are reused together with their memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Ios {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[repr(C, align(64))]
#[derive(Clone, Debug)]
struct Place {
    uses: u32,
    /// Otherwise the I/O has ended, and only its memory is kept.
    is_used: bool,
    io: Io,
}

impl Ios {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Allocates a slot for an I/O.
    pub(super) fn open(&mut self, session: u32, io: HostIo, format: &WireFormat) -> IoPlace {
        let Some(place) = self.free.pop() else {
            self.places.push(Place { uses: 0, is_used: true, io: Io::new(session, io, format) });
            return IoPlace { place: self.places.len() as u32 - 1, uses: 0 };
        };
        let Place { uses, is_used, io: known } = &mut self.places[place as usize];
        known.begin(session, io);
        *is_used = true;
        IoPlace { place, uses: *uses }
    }

    pub(super) fn get(&self, place: IoPlace) -> Option<&Io> {
        let found = self.places.get(place.place as usize)?;
        found.is(place).then_some(&found.io)
    }

    pub(super) fn get_mut(&mut self, place: IoPlace) -> Option<&mut Io> {
        let found = self.places.get_mut(place.place as usize)?;
        found.is(place).then_some(&mut found.io)
    }

    #[inline]
    pub(super) fn prefetch(&self, place: IoPlace) {
        let Some(Place { io, .. }) = self.places.get(place.place as usize) else { return };
        prefetch_index(slice::from_ref(&io.tag), 0);
        prefetch_index(slice::from_ref(&io.sends), 0);
    }

    /// Frees the slot of an I/O; stale keys no longer find it.
    pub(super) fn close(&mut self, place: IoPlace) {
        let Some(found) = self.places.get_mut(place.place as usize).filter(|found| found.is(place)) else { return };
        (found.is_used, found.uses) = (false, found.uses.wrapping_add(1));
        self.free.push(place.place);
    }
}

impl Place {
    /// Returns whether the slot still holds the I/O of this key.
    fn is(&self, place: IoPlace) -> bool {
        self.is_used && self.uses == place.uses
    }
}
