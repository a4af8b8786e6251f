//! Reads and writes that a backend carries out while bytes are being received: their data have no buffer of their own and are copied once,
//! between the socket's room and the medium, or not at all: a backend in memory lends what is read, and it is sent from where it lies.
//!
//! Loans end with the call that made them, and before a write touches them: what the socket has not taken by then is copied.
//!
//! Whoever calls [`Target::receive`] gets every request by [`Target::next_io`]; each command is answered the same.

use crate::pdu::{ControllerData, Event, Header};
use crate::target::connection::{Connection, Incoming};
use crate::target::flight::{Phase, Transfer};
use crate::target::nvm::is_durable;
use crate::target::{BackendId, BlockRange, CloseReason, ConnectionId, IoStatus, Pieces, Target};
use crate::transfer::TargetRead;
use crate::{Body, Fuse, Io, Status};
use base::Time;

/// Bytes of a read or write that is carried out at once: more keeps other connections waiting.
const BYTES_MAX: u32 = 16 << 10;
/// Copied answers that gather before the caller may send them: they stay in the cache. At 64 KiB a call to send cost more than that saved.
const COPIED_MAX: usize = 256 << 10;
/// Lent answers that gather: more than a queue of 128 reads of 4 KiB asks for. A host that gets them in one go sleeps less often in between.
const LENT_MAX: usize = 640 << 10;
/// Copied answers that wait on a connection, beyond which reads get a buffer within the connection's budget: the host does not keep up.
pub(crate) const WAITING_MAX: usize = 288 << 10;
/// Less is copied: it costs less than another slice to send.
const LENT_MIN: u32 = 2 << 10;

/// Carries reads and writes out in the caller's thread.
pub trait AtOnce {
    /// Appends all bytes of `range` to `out`, or none if it fails. `None`: not at once, ask by [`Target::next_io`].
    fn read(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus>;
    /// Writes `data`; `is_durable` as in [`IoOperation::Write`](crate::target::IoOperation::Write). `None` as above.
    fn write(&mut self, backend: BackendId, range: BlockRange, data: &[u8], is_durable: bool) -> Option<IoStatus>;
    /// Whether the bytes of `range` can be sent to `connection` from where they lie: as far as [`Self::send`] takes them, before anything
    /// but [`Self::write`] may change them. That is a read, and done.
    fn lends(&mut self, _connection: ConnectionId, _backend: BackendId, _range: BlockRange) -> bool {
        false
    }
    /// Appends bytes that were lent and not sent: no other read, and it cannot be refused.
    fn take_back(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        self.read(backend, range, out)
    }
    /// Sends what the connection takes of `pieces`, whose [lent](crate::target::Piece::Lent) ones are of `lender`. How many bytes it took.
    fn send(&mut self, _connection: ConnectionId, _lender: BackendId, _pieces: Pieces<'_>) -> usize {
        0
    }
}

/// Nothing is carried out at once.
pub(super) struct Never;

impl AtOnce for Never {
    fn read(&mut self, _: BackendId, _: BlockRange, _: &mut Vec<u8>) -> Option<IoStatus> {
        None
    }
    fn write(&mut self, _: BackendId, _: BlockRange, _: &[u8], _: bool) -> Option<IoStatus> {
        None
    }
}

impl Connection {
    /// Whether a read of `length` bytes may be sent from where `backend` keeps them.
    fn may_borrow(&self, backend: BackendId, length: u32) -> bool {
        length >= LENT_MIN && !self.framing.digests.data && self.out.may_borrow_from(backend)
    }

    /// Puts the data of a read behind what waits, lent or copied. `None`: they have to come another way.
    fn push_read(
        &mut self,
        backend: BackendId,
        range: BlockRange,
        data: ControllerData,
        waiting_max: usize,
        backends: &mut dyn AtOnce,
    ) -> Option<IoStatus> {
        let header = Header::ControllerData(data);
        let room = waiting_max.saturating_sub(self.out.copied_bytes());
        if room > 0 && self.may_borrow(backend, data.length) && backends.lends(self.id, backend, range) {
            self.out.push_lent(self.framing, &header, backend, range);
            return Some(IoStatus::Done);
        }
        let fill = |out: &mut Vec<u8>| backends.read(backend, range, out);
        if data.length as usize > room { None } else { self.out.push_filled(self.framing, &header, fill) }
    }
}

impl Target {
    /// As [`Self::receive`], with small reads and writes carried out by `backends` where they can. Returns also when enough answers have
    /// gathered: send them, then bring the rest.
    pub fn receive_at_once(
        &mut self,
        now: Time,
        connection: ConnectionId,
        bytes: &[u8],
        backends: &mut dyn AtOnce,
    ) -> usize {
        self.take_in(now, connection, bytes, COPIED_MAX, backends)
    }

    /// Takes `bytes` until `copied_max` more bytes of copied answers wait, or [`LENT_MAX`] of lent ones, to the end of a PDU.
    pub(super) fn take_in(
        &mut self,
        now: Time,
        connection: ConnectionId,
        bytes: &[u8],
        copied_max: usize,
        backends: &mut dyn AtOnce,
    ) -> usize {
        self.pass(now);
        let Some(index) = self.connections.find(connection) else { return bytes.len() };
        let (mut input, commands) = (bytes, self.counters.commands);
        let enough = self.connections[index].out.copied_bytes().saturating_add(copied_max);
        while self.connections[index].takes_input(&self.limits) {
            let out = &self.connections[index].out;
            if out.copied_bytes() >= enough || out.lent_bytes() >= LENT_MAX {
                break;
            }
            if !self.take_pdu(index, &mut input, backends) {
                break;
            }
        }
        if self.counters.commands > commands {
            self.keep_alive_of(index);
        }
        self.refresh_idle(index);
        self.send_lent(index, backends);
        bytes.len() - input.len()
    }

    /// Takes what comes next: a command that is whole, or the next event. False when nothing more can be told from `input`.
    fn take_pdu(&mut self, index: u32, input: &mut &[u8], backends: &mut dyn AtOnce) -> bool {
        if let Some((entry, data)) = self.connections[index].reader.next_capsule(input) {
            self.on_command(index, entry, data.len() as u32, backends);
            if !data.is_empty() && !self.connections[index].is_closing() {
                self.on_data(index, 0, data, backends);
            }
            if !self.connections[index].is_closing() {
                self.on_end(index, true);
            }
            return true;
        }
        loop {
            match self.connections[index].reader.next(input) {
                Ok(Some(event @ Event::End { .. })) => {
                    self.on_event(index, event, backends);
                    return true;
                }
                Ok(Some(event)) => self.on_event(index, event, backends),
                Ok(None) => return false,
                Err(error) => {
                    self.terminate(index, error);
                    return false;
                }
            }
            if !self.connections[index].takes_input(&self.limits) {
                return false;
            }
        }
    }

    /// Sends what is lent, with what waits before and between, and copies the rest of it.
    fn send_lent(&mut self, index: u32, backends: &mut dyn AtOnce) {
        let place = &self.connections[index];
        let Some(lender) = place.out.lender() else { return };
        let id = place.id;
        let sent = backends.send(id, lender, place.out.pieces());
        self.transmitted(id, sent);
        self.end_loans(index, backends);
    }

    /// Copies what is lent.
    fn end_loans(&mut self, index: u32, backends: &mut dyn AtOnce) {
        let out = &mut self.connections[index].out;
        let Some(lender) = out.lender() else { return };
        if !out.end_loans(|range, bytes| backends.take_back(lender, range, bytes)) {
            self.close(index, CloseReason::Backend);
            self.drop_output(index);
        }
    }

    /// Carries a small read out, its data straight behind what waits to be sent. False when it has to go the long way.
    pub(super) fn read_at_once(
        &mut self,
        index: u32,
        slot: u32,
        transfer: Transfer,
        backends: &mut dyn AtOnce,
    ) -> bool {
        let command = self.flights[slot].command;
        let (Transfer::Out(length), Body::Io(Io::Read(access)), Fuse::None) = (transfer, command.body, command.fuse)
        else {
            return false;
        };
        let most = self.limits.controller_data_max;
        let place = &self.connections[index];
        if !place.parked.is_empty() || length > BYTES_MAX.min(most) {
            return false;
        }
        // That it may be read has just been found out.
        let Ok(namespace) = self.namespace_at(index, command.namespace) else { return false };
        let backend = namespace.config.backend;
        let waiting_max = WAITING_MAX.min(self.limits.backlog_bytes_max / 2);
        let place = &mut self.connections[index];
        let mut read = TargetRead::new(command.id, length, most, place.may_flag_success);
        let Some(data) = read.next_data() else { return false };
        let Some(status) = place.push_read(backend, access.into(), data, waiting_max, backends) else { return false };
        self.flights[slot].transfer = transfer;
        if status == IoStatus::Done {
            self.count(index, slot, Status::SUCCESS);
            self.respond(index, slot, Status::SUCCESS, 0, !read.needs_response());
            self.release(slot);
        } else {
            self.finish(slot, status.status(), 0);
        }
        true
    }

    /// Carries a write out whose data came in its capsule, all in one piece. False when they have to be gathered.
    pub(super) fn write_at_once(&mut self, index: u32, slot: u32, data: &[u8], backends: &mut dyn AtOnce) -> bool {
        let flight = &self.flights[slot];
        let command = flight.command;
        // Data with a digest may be wrong, which shows only behind them.
        let is_sound = !self.connections[index].framing.digests.data;
        let is_whole = flight.transfer == Transfer::In(data.len() as u32) && flight.buffer.len() == data.len();
        let is_awaited = flight.phase == Phase::Receiving && flight.status.is_success();
        let (Body::Io(io @ Io::Write(access)), Fuse::None) = (command.body, command.fuse) else { return false };
        if !is_sound || !is_whole || !is_awaited || data.len() > BYTES_MAX as usize {
            return false;
        }
        let Ok(namespace) = self.admit(index, &command, io) else { return false };
        let (backend, range) = (namespace.config.backend, access.into());
        if self.connections[index].out.borrows(backend, range) {
            self.end_loans(index, backends);
        }
        let written = backends.write(backend, range, data, is_durable(access.flags));
        let Some(status) = written else { return false };
        self.connections[index].incoming = Incoming::Discard;
        self.finish(slot, status.status(), 0);
        true
    }
}
