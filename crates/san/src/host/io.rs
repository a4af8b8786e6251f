//! I/Os that are not over, by place; places are used again.

use super::HostIo;
use crate::id::Tag;
use crate::packet::{Packet, PacketKind};
use crate::wire::WireFormat;
use base::{Operation, Time};
use nvme::pdu::{ControllerData, HostData, ReadyToTransfer};
use nvme::transfer::{HostRead, HostWrite};
use prefetch_index::prefetch_index;
use std::slice;

/// Where an I/O is kept, and a count of uses of that place, so that a late timer is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IoPlace {
    place: u32,
    uses: u32,
}

/// How far an I/O is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits to be sent as a new command.
    Waiting,
    /// Its command is out.
    Sent,
    /// Its command was refused and will be sent again.
    BackedOff,
    /// Its association has failed and it may not be sent yet.
    Held,
}

/// In this order in memory: what a read's data touch, what its end does, and what only writes do,
/// each in a cache line (see [`Place`]).
#[repr(C)]
#[derive(Clone, Debug)]
pub(super) struct Io {
    pub(super) io: HostIo,
    pub(super) tag: Tag,
    /// Place of the session.
    pub(super) session: u32,
    pub(super) stage: Stage,
    /// Sends of this command that were not answered.
    pub(super) losses: u8,
    /// Which send of the command the data of a read answer that have come: the present one, unless
    /// an earlier one was answered late.
    answered: u16,
    read: HostRead,
    /// When something last came for it.
    pub(super) heard: Time,
    /// When the present send began.
    pub(super) sent: Time,
    /// When the last packet of it left.
    pub(super) last_out: Time,
    pub(super) first_sent: Option<Time>,
    pub(super) sends: u32,
    /// Refusals, for the back-off.
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

    /// As a new one, where an earlier one was: the memory of its transfer is kept.
    fn begin(&mut self, session: u32, io: HostIo) {
        (self.io, self.session, self.stage, self.tag) = (io, session, Stage::Waiting, Tag::default());
        (self.first_sent, self.sends, self.losses, self.refusals) = (None, 0, 0, 0);
    }

    /// A send begins: whatever came for an earlier one is forgotten.
    pub(super) fn begin_send(&mut self, now: Time) {
        self.stage = Stage::Sent;
        self.first_sent.get_or_insert(now);
        (self.sent, self.last_out, self.heard) = (now, now, now);
        self.sends += 1;
        self.asked = 0;
        self.answered = self.tag.attempt;
        self.read = HostRead::new(self.tag.command, self.io.bytes);
        // Nothing is ever asked of a read.
        if self.io.operation != Operation::Read {
            self.write.restart(self.tag.command, self.io.bytes);
        }
    }

    /// Whether a packet is of the answer that is waited for. Data of a read count whichever send
    /// they answer, if nothing has come of another answer.
    pub(super) fn awaits(&mut self, packet: &Packet) -> bool {
        if let PacketKind::ReadData { .. } = packet.kind
            && self.read.received() == 0
        {
            self.answered = packet.tag.attempt;
        }
        let attempt = if self.io.operation == Operation::Read { self.answered } else { self.tag.attempt };
        self.stage == Stage::Sent && packet.tag.attempt == attempt
    }

    /// Whether data of a read are missing.
    pub(super) fn is_short(&self) -> bool {
        self.read.received() < self.io.bytes
    }

    /// The target asks for the next data: where they begin and end; `None` when it asks for what it
    /// may not.
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

    /// The next PDU of data.
    pub(super) fn next_data(&mut self) -> Option<HostData> {
        self.write.next_data()
    }

    pub(super) fn data_max(&self) -> u32 {
        self.data_max
    }

    /// Data came. Whether the I/O is over by them; `None` when some are missing: the rest is of no
    /// use.
    pub(super) fn on_data(&mut self, length: u32, is_last: bool) -> Option<bool> {
        let (command, offset) = (self.tag.command, self.read.received());
        let is_success = is_last && self.success_flag;
        self.read.on_data(&ControllerData { command, offset, length, is_last, is_success }).ok()
    }

    /// A response says success: whether everything that belongs to it has come.
    pub(super) fn is_complete(&mut self) -> bool {
        self.io.operation != Operation::Read || self.read.on_response(nvme::Status::SUCCESS).is_ok()
    }
}

/// I/Os by place; places are used again, with the memory of what was there.
#[derive(Clone, Debug, Default)]
pub(super) struct Ios {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[repr(C, align(64))]
#[derive(Clone, Debug)]
struct Place {
    uses: u32,
    /// Else the I/O is over, and lies here for its memory alone.
    is_used: bool,
    io: Io,
}

impl Ios {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// An I/O begins.
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
    pub(super) fn foresee(&self, place: IoPlace) {
        let Some(Place { io, .. }) = self.places.get(place.place as usize) else { return };
        prefetch_index(slice::from_ref(&io.tag), 0);
        prefetch_index(slice::from_ref(&io.sends), 0);
    }

    /// An I/O is over: nobody finds it at this place again.
    pub(super) fn close(&mut self, place: IoPlace) {
        let Some(found) = self.places.get_mut(place.place as usize).filter(|found| found.is(place)) else { return };
        (found.is_used, found.uses) = (false, found.uses.wrapping_add(1));
        self.free.push(place.place);
    }
}

impl Place {
    /// Whether it is still the I/O that was put here then.
    fn is(&self, place: IoPlace) -> bool {
        self.is_used && self.uses == place.uses
    }
}
