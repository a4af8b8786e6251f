//! Loans: data of reads that a backend in memory keeps in place until they are sent.
//!
//! A small read of such a backend is a request to lend ([`IoOperation::Lend`]), and nothing is
//! copied. [`Target::pieces`] names the blocks, the host sends them from where they lie, and
//! [`Target::end_loans`] ends the loans that the socket did not take: their bytes are read into
//! buffers ([`IoOperation::EndLoan`]). Loans end before a request that changes their blocks is
//! handed out. Each counts against its connection's data budget as a buffer does.
//!
//! One backend lends to one connection at a time; other reads are copied meanwhile.

use crate::pdu::Header;
use crate::target::connection::Connection;
use crate::target::flight::{Own, Phase, Transfer};
use crate::target::io::{IoOperation, IoRequest};
use crate::target::{BackendId, BlockRange, CloseReason, ConnectionId, Pieces, Target};
use crate::transfer::TargetRead;
use crate::{Body, Io, Status};

/// Bytes of a read that is lent: more at a time keeps other connections waiting.
const BYTES_MAX: u32 = 16 << 10;

/// The loans that were asked for or granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loans {
    borrower: ConnectionId,
    lender: BackendId,
    /// How many: at least one.
    count: u32,
}

impl Connection {
    /// Whether data may be sent from where they lie: neither enciphered nor with a digest behind.
    fn may_borrow(&self) -> bool {
        self.channel.is_none() && !self.framing.digests.data
    }
}

impl Target {
    /// What waits to be sent, in order. Blocks that are lent belong to [`Self::lender`].
    pub fn pieces(&self, connection: ConnectionId) -> Pieces<'_> {
        match self.connections.find(connection) {
            Some(index) => self.connections[index].out.pieces(),
            None => Pieces::none(),
        }
    }

    /// The backend whose blocks [`Self::pieces`] may name; `None` when it names none.
    pub fn lender(&self, connection: ConnectionId) -> Option<BackendId> {
        self.loans.filter(|loans| loans.borrower == connection).map(|loans| loans.lender)
    }

    /// The socket takes no more for now: [`Self::next_io`] asks for the bytes of all loans. Call it
    /// for a connection with a [lender](Self::lender) before the backend does anything else.
    pub fn end_loans(&mut self, connection: ConnectionId) {
        if self.lender(connection).is_some() {
            self.end_all_loans();
        }
    }

    /// Asks for the loan of a read, or returns false: it needs a buffer.
    pub(super) fn borrow(&mut self, index: u32, slot: u32, lender: BackendId) -> bool {
        let (place, flight) = (&self.connections[index], &mut self.flights[slot]);
        let (Transfer::Out(length), Body::Io(Io::Read(access))) = (flight.transfer, flight.command.body) else {
            return false;
        };
        if length > BYTES_MAX.min(self.limits.controller_data_max) || !place.may_borrow() {
            return false;
        }
        let borrower = place.id;
        match &mut self.loans {
            Some(loans) if (loans.borrower, loans.lender) == (borrower, lender) => loans.count += 1,
            Some(_) => return false,
            none => *none = Some(Loans { borrower, lender, count: 1 }),
        }
        flight.is_loan = true;
        self.request(slot, lender, IoOperation::Lend { range: access.into() });
        true
    }

    /// The backend has answered a request to lend.
    pub(super) fn on_loan_answered(&mut self, slot: u32, is_granted: bool) {
        let flight = &mut self.flights[slot];
        flight.is_loan = false;
        let (command, connection) = (flight.command, flight.connection);
        if connection.is_none() || !is_granted {
            self.loans_over(1);
        }
        let (Some(index), Body::Io(Io::Read(access))) = (connection, command.body) else { return self.release(slot) };
        if is_granted {
            return self.send_lent(index, slot, access.into());
        }
        let Some(lender) = self.backend_of(index, command.namespace) else {
            return self.finish(slot, Status::INVALID_NAMESPACE.without_retry(), 0);
        };
        let Transfer::Out(length) = self.flights[slot].transfer else { unreachable!("a read moves data out") };
        let buffer = self.pool.take(length as usize);
        self.request(slot, lender, IoOperation::Read { range: access.into(), buffer });
    }

    fn backend_of(&self, index: u32, namespace: u32) -> Option<BackendId> {
        self.namespace_at(index, namespace).ok().map(|namespace| namespace.config.backend)
    }

    /// Completes a read whose data are lent.
    fn send_lent(&mut self, index: u32, slot: u32, range: BlockRange) {
        let flight = &mut self.flights[slot];
        let Transfer::Out(length) = flight.transfer else { unreachable!("a read moves data out") };
        // Its charge ends when they have left.
        flight.charged = 0;
        let place = &mut self.connections[index];
        let most = self.limits.controller_data_max;
        let mut read = TargetRead::new(flight.command.id, length, most, place.may_flag_success);
        let data = read.next_data().expect("a read that is lent has data");
        place.out.push_lent(place.framing, &Header::ControllerData(data), range);
        self.count(index, slot, Status::SUCCESS);
        self.respond(index, slot, Status::SUCCESS, 0, !read.needs_response());
        self.release(slot);
    }

    /// Whether `request` changes blocks that are lent. Two backends may share their memory: any
    /// change of another one counts.
    pub(super) fn ends_loans(&self, request: &IoRequest) -> bool {
        let Some(Loans { borrower, lender, .. }) = self.loans.filter(|_| request.operation.may_change()) else {
            return false;
        };
        let Some(borrower) = self.connections.find(borrower) else { return false };
        let out = &self.connections[borrower].out;
        let is_lent = |range: BlockRange| request.backend != lender || out.borrows(|lent| lent.overlaps(range));
        request.operation.changes(is_lent)
    }

    /// Has the lender copy what is lent before it does anything else.
    pub(super) fn end_all_loans(&mut self) {
        let Some(Loans { borrower: connection, lender, .. }) = self.loans else { return };
        let Some(index) = self.connections.find(connection) else { return };
        let ended = self.connections[index].out.end_loans();
        self.loans_over(ended.len() as u32);
        for (payload, range, bytes) in ended.into_iter().rev() {
            let slot = self.flights.open_own(self.now, Own::Loan { connection, payload });
            let flight = &mut self.flights[slot];
            (flight.phase, flight.pending) = (Phase::Working, 1);
            let (tag, buffer) = (self.flights.tag(slot), self.pool.take(bytes));
            let operation = IoOperation::EndLoan { range, buffer };
            self.requests.push_first(IoRequest { tag, backend: lender, controller: 0, operation });
        }
    }

    /// The bytes of a loan have come, or cannot.
    pub(super) fn on_loan_ended(&mut self, slot: u32, connection: ConnectionId, payload: u64, status: Status) {
        let buffer = std::mem::take(&mut self.flights[slot].buffer);
        self.release(slot);
        let Some(index) = self.connections.find(connection) else { return self.pool.give(buffer) };
        if status.is_success() {
            match self.connections[index].out.take_in(payload, buffer) {
                Ok(()) => return self.mark_active(index),
                Err(buffer) => self.pool.give(buffer),
            }
        }
        // The header has promised them: the stream cannot go on.
        self.close(index, CloseReason::Backend);
        self.drop_output(index);
    }

    /// So many loans were ended, refused or sent.
    pub(super) fn loans_over(&mut self, count: u32) {
        if let Some(loans) = &mut self.loans {
            loans.count -= count;
            if loans.count == 0 {
                self.loans = None;
            }
        }
    }
}
