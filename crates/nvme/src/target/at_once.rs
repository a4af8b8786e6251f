//! Reads and writes that a backend carries out while bytes are being received: their data have no buffer of their own and are copied once,
//! between the socket's room and the medium.
//!
//! Whoever calls [`Target::receive`] gets every request by [`Target::next_io`]; each command is answered the same.

use crate::command::moved_blocks;
use crate::pdu::{Digests, Event, Header};
use crate::target::connection::Incoming;
use crate::target::flight::{Phase, Transfer};
use crate::target::nvm::is_durable;
use crate::target::{BackendId, BlockRange, ConnectionId, IoStatus, Target};
use crate::transfer::TargetRead;
use crate::{Body, Fuse, Io, Sqe, Status};
use base::Time;

/// Bytes of a read or write that is carried out at once: more keeps other connections waiting.
const BYTES_MAX: u32 = 16 << 10;
/// Answers that gather before the caller may send them: they stay in the cache, and the host has something to do while we go on. At 64 KiB a call
/// to send cost more than that saved.
const GATHERED_MAX: usize = 256 << 10;
/// Answers that wait on a connection, beyond which reads get a buffer within the connection's budget: the host does not keep up.
pub(crate) const WAITING_MAX: usize = 288 << 10;

/// Carries reads and writes out in the caller's thread.
pub trait AtOnce {
    /// Appends all bytes of `range` to `out`, or none if it fails. `None`: not at once, ask by [`Target::next_io`].
    fn read(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus>;
    /// Writes `data`; `is_durable` as in [`IoOperation::Write`](crate::target::IoOperation::Write). `None` as above.
    fn write(&mut self, backend: BackendId, range: BlockRange, data: &[u8], is_durable: bool) -> Option<IoStatus>;
    /// Whether [`Self::expect`] does anything.
    fn wants_to_expect(&self) -> bool;
    /// A host says that it will ask for these blocks next. Nothing has been checked: good to warm caches, and for nothing else.
    fn expect(&mut self, backend: BackendId, range: BlockRange);
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
    fn wants_to_expect(&self) -> bool {
        false
    }
    fn expect(&mut self, _: BackendId, _: BlockRange) {}
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
        self.take_in(now, connection, bytes, GATHERED_MAX, backends)
    }

    /// Takes `bytes` until `gathered_max` more bytes of answers wait, to the end of a PDU.
    pub(super) fn take_in(
        &mut self,
        now: Time,
        connection: ConnectionId,
        bytes: &[u8],
        gathered_max: usize,
        backends: &mut dyn AtOnce,
    ) -> usize {
        self.pass(now);
        let Some(index) = self.connections.find(connection) else { return bytes.len() };
        let mut input = bytes;
        let announces = backends.wants_to_expect();
        let enough = self.connections[index].out.waiting_bytes().saturating_add(gathered_max);
        while self.connections[index].takes_input(&self.limits) {
            match self.connections[index].reader.next(&mut input) {
                Ok(Some(Event::End { is_sound })) => {
                    self.on_event(index, Event::End { is_sound }, backends);
                    if self.connections[index].out.waiting_bytes() >= enough {
                        break;
                    }
                }
                Ok(Some(event)) => {
                    if announces {
                        self.announce(index, input, backends);
                    }
                    self.on_event(index, event, backends);
                }
                Ok(None) => break,
                Err(error) => self.terminate(index, error),
            }
        }
        self.refresh_idle(index);
        bytes.len() - input.len()
    }

    /// Says what the next command in `rest` is about, if that begins with one.
    fn announce(&self, index: u32, rest: &[u8], backends: &mut dyn AtOnce) {
        /// PDU-Type of a command capsule, and where its entry begins (NVMe/TCP Transport 1.0, 3.6.2.6).
        const COMMAND: u8 = 4;
        const ENTRY: usize = 8;
        if rest.first() != Some(&COMMAND) || self.connections[index].framing.digests != Digests::default() {
            return;
        }
        let Some(entry) = rest.get(ENTRY..).and_then(|rest| Sqe::view(rest).ok()) else { return };
        let Some(access) = moved_blocks(entry) else { return };
        if let Ok(namespace) = self.namespace_at(index, entry.namespace.get())
            && u64::from(access.blocks()) << namespace.config.block_shift <= u64::from(BYTES_MAX)
        {
            backends.expect(namespace.config.backend, access.into());
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
        let room = WAITING_MAX.min(self.limits.backlog_bytes_max / 2);
        let fits = place.out.waiting_bytes() + length as usize <= room;
        if !fits || !place.parked.is_empty() || length > BYTES_MAX.min(most) {
            return false;
        }
        // That it may be read has just been found out.
        let Ok(namespace) = self.namespace_at(index, command.namespace) else { return false };
        let backend = namespace.config.backend;
        let place = &mut self.connections[index];
        let mut read = TargetRead::new(command.id, length, most, place.may_flag_success);
        let Some(data) = read.next_data() else { return false };
        let fill = |out: &mut Vec<u8>| backends.read(backend, access.into(), out);
        let Some(status) = place.out.push_filled(place.framing, &Header::ControllerData(data), fill) else {
            return false;
        };
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
        let written = backends.write(namespace.config.backend, access.into(), data, is_durable(access.flags));
        let Some(status) = written else { return false };
        self.connections[index].incoming = Incoming::Discard;
        self.finish(slot, status.status(), 0);
        true
    }
}
