//! Answers: each command once.

use crate::log::ErrorEntry;
use crate::pdu::Header;
use crate::target::flight::{Own, Phase, Transfer};
use crate::target::io::{IoOperation, IoRequest, IoResult, IoStatus, IoTag};
use crate::target::{BackendId, Target};
use crate::transfer::TargetRead;
use crate::{Body, Fuse, Io, Status};
use base::Time;

/// TRTYPE of TCP in the error log.
const TRANSPORT_TCP: u8 = 3;
/// No field of the command is known to be wrong.
const NO_PARAMETER: u16 = u16::MAX;

impl IoStatus {
    /// What the host is told.
    pub(super) fn status(self) -> Status {
        match self {
            IoStatus::Done => Status::SUCCESS,
            IoStatus::OutOfRange => Status::LBA_OUT_OF_RANGE.without_retry(),
            IoStatus::Miscompare => Status::COMPARE_FAILURE.without_retry(),
            IoStatus::ReadError => Status::UNRECOVERED_READ.without_retry(),
            IoStatus::WriteError => Status::WRITE_FAULT.without_retry(),
            IoStatus::NoSpace => Status::CAPACITY_EXCEEDED.without_retry(),
            IoStatus::Unsupported => Status::INVALID_OPCODE.without_retry(),
            IoStatus::Unavailable => Status::INTERNAL_PATH,
            IoStatus::Busy => Status::INTERRUPTED,
            IoStatus::Invalid => Status::INVALID_FIELD.without_retry(),
        }
    }
}

impl Target {
    /// A backend has to do this for the command.
    pub(super) fn request(&mut self, slot: u32, backend: BackendId, operation: IoOperation) {
        let flight = &mut self.flights[slot];
        flight.phase = Phase::Working;
        flight.pending += 1;
        let controller = flight.connection.and_then(|index| self.connections[index].controller()).unwrap_or(0);
        let tag = self.flights.tag(slot);
        self.requests.push(IoRequest { tag, backend, controller, operation });
    }

    /// A backend answers. Once for each request; what is not awaited is counted and dropped.
    pub fn complete(&mut self, now: Time, tag: IoTag, result: IoResult) {
        self.pass(now);
        let Some(slot) = self.flights.working(tag) else {
            self.counters.unknown_results += 1;
            self.pool.give(result.buffer);
            return;
        };
        let flight = &mut self.flights[slot];
        flight.pending -= 1;
        if flight.is_loan {
            return self.on_loan_answered(slot, result.status == IoStatus::Done);
        }
        flight.fail(result.status.status());
        if !result.buffer.is_empty() {
            flight.buffer = result.buffer;
        }
        if flight.pending == 0 {
            self.on_worked(slot);
        }
    }

    /// All that backends had to do for the command is done.
    fn on_worked(&mut self, slot: u32) {
        let flight = &self.flights[slot];
        let (status, command) = (flight.status, flight.command);
        match flight.own {
            Some(Own::Shutdown(controller)) => {
                self.release(slot);
                return self.on_shutdown_done(controller);
            }
            Some(Own::Loan { connection, payload }) => return self.on_loan_ended(slot, connection, payload, status),
            None => {}
        }
        if let Some(backend) = self.flights[slot].flush_after.take().filter(|_| status.is_success()) {
            return self.request(slot, backend, IoOperation::Flush);
        }
        match command.body {
            Body::Io(Io::Vendor(_)) => self.finish(slot, status, self.engine_result(slot)),
            Body::Io(Io::ReservationRegister(_) | Io::ReservationAcquire(_) | Io::ReservationRelease(_)) => {
                self.on_reserved(slot, status);
            }
            _ if command.fuse != Fuse::None => self.finish_pair(slot, status),
            _ => self.finish(slot, status, 0),
        }
    }

    /// What the engine of S-Direct has said beside its status; nothing where it was never asked.
    fn engine_result(&self, slot: u32) -> u64 {
        let bytes = self.flights[slot].buffer.first_chunk();
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Both halves end; only the first tells that blocks were not as expected.
    fn finish_pair(&mut self, second: u32, status: Status) {
        if let Some(first) = self.flights[second].partner.take() {
            self.flights[first].partner = None;
            self.finish(first, status, 0);
        }
        let failed = Status::FAILED_FUSED.without_retry();
        self.finish(second, if status.is_success() { status } else { failed }, 0);
    }

    /// The command is over. Data that it read stand in its buffer.
    pub(super) fn finish(&mut self, slot: u32, status: Status, result: u64) {
        if let Some(partner) = self.flights[slot].partner.take() {
            self.flights[partner].partner = None;
            self.fail_early(partner, Status::FAILED_FUSED.without_retry());
        }
        if let Some(index) = self.flights[slot].connection {
            self.leave_fused(index, slot);
            self.count(index, slot, status);
            self.answer(index, slot, status, result);
        }
        self.release(slot);
    }

    /// A first half that is over has failed for the second that comes.
    fn leave_fused(&mut self, index: u32, slot: u32) {
        use crate::target::connection::Fused;
        let fused = &mut self.connections[index].fused;
        if *fused == Fused::First(slot) {
            *fused = Fused::Failed;
        }
    }

    fn answer(&mut self, index: u32, slot: u32, status: Status, result: u64) {
        let is_read = matches!(self.flights[slot].transfer, Transfer::Out(_)) && status.is_success();
        let was_flagged = is_read && self.send_data(index, slot, result);
        self.respond(index, slot, status, result, was_flagged);
    }

    /// Completes the command; `was_flagged`: the last of its data has said so already.
    pub(super) fn respond(&mut self, index: u32, slot: u32, status: Status, result: u64, was_flagged: bool) {
        let id = self.flights[slot].command.id;
        if was_flagged {
            self.connections[index].queue.complete_by_flag(id).expect("a command is answered once");
            self.has_more(index);
        } else {
            let completed = self.connections[index].queue.complete(id, status, result);
            let (_, completion) = completed.expect("a command is answered once");
            self.send(index, &Header::Response(completion));
        }
    }

    /// Sends what was read. Returns whether that was all, by the flag of its last piece.
    fn send_data(&mut self, index: u32, slot: u32, result: u64) -> bool {
        let flight = &mut self.flights[slot];
        let payload = std::mem::take(&mut flight.buffer);
        // The buffer goes with the data: its charge ends when they have left.
        let charged = std::mem::take(&mut flight.charged);
        let place = &mut self.connections[index];
        let may_flag = place.may_flag_success && result == 0;
        let most = self.limits.controller_data_max;
        let mut read = TargetRead::new(flight.command.id, payload.len() as u32, most, may_flag);
        let pieces = std::iter::from_fn(|| read.next_data()).map(Header::ControllerData);
        if let Some(buffer) = place.out.push_data(place.framing, pieces, payload) {
            (flight.buffer, flight.charged) = (buffer, charged);
        }
        !read.needs_response()
    }

    /// Frees the place and whatever it holds; those that wait for the budget may go on.
    pub(super) fn release(&mut self, slot: u32) {
        let flight = &mut self.flights[slot];
        let (charged, connection) = (flight.charged, flight.connection);
        self.pool.give(std::mem::take(&mut flight.buffer));
        self.flights.close(slot);
        if let Some(index) = connection.filter(|_| charged > 0) {
            self.connections[index].charged -= charged;
            self.unpark(index);
        }
    }

    pub(super) fn count(&mut self, index: u32, slot: u32, status: Status) {
        let flight = &self.flights[slot];
        let (command, transfer) = (flight.command, flight.transfer);
        if !status.is_success() {
            self.counters.commands_failed += 1;
            let is_media = [IoStatus::ReadError, IoStatus::WriteError].iter().any(|known| known.status() == status);
            self.counters.media_errors += u64::from(is_media);
            return self.log_error(index, slot, status);
        }
        match (command.body, transfer) {
            (Body::Io(Io::Read(_)), Transfer::Out(bytes)) => {
                self.counters.reads += 1;
                self.counters.read_bytes += u64::from(bytes);
            }
            (Body::Io(Io::Write(_)), Transfer::In(bytes)) => {
                self.counters.writes += 1;
                self.counters.written_bytes += u64::from(bytes);
            }
            _ => {}
        }
    }

    fn log_error(&mut self, index: u32, slot: u32, status: Status) {
        let place = &self.connections[index];
        let command = self.flights[slot].command;
        let Some(controller) = place.controller().and_then(|id| self.controllers.get_mut(id)) else { return };
        let block = match command.body {
            Body::Io(Io::Read(access) | Io::Write(access) | Io::Compare(access)) => access.start,
            _ => 0,
        };
        controller.log_error(ErrorEntry {
            count: 0,
            queue: place.queue_id(),
            id: command.id,
            status_bits: status.bits() << 1,
            parameter: NO_PARAMETER,
            block,
            namespace: command.namespace,
            transport: TRANSPORT_TCP,
            specific: 0,
        });
    }
}
