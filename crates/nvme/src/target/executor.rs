//! Commands while backends work on them: their flights, the requests, loans and buffers.

use crate::outgoing::Freed;
use crate::pool::Pool;
use crate::target::connection::Connections;
use crate::target::flight::{Flights, Own, Phase};
use crate::target::io::{IoOperation, IoRequest, IoResult, IoStatus, IoTag};
use crate::target::loans::Loans;
use crate::target::requests::Requests;
use crate::target::{BackendId, ConnectionId};
use base::Time;

/// What an answer of a backend means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// No request has this tag.
    Unknown,
    /// Other requests of the command are not answered yet.
    Partial,
    /// A request to lend was granted or refused.
    Loan { slot: u32, is_granted: bool },
    /// All requests of the command are answered.
    Complete(u32),
}

/// Commands and requests of the target itself, with all that they hold.
#[derive(Debug)]
pub(super) struct Executor {
    pub(super) flights: Flights,
    pub(super) requests: Requests,
    pub(super) loans: Option<Loans>,
    pub(super) pool: Pool,
}

impl Executor {
    /// An executor without commands, which keeps free buffers up to this size.
    pub(super) fn new(pool_bytes_max: u64) -> Self {
        let (flights, requests) = (Flights::default(), Requests::default());
        Executor { flights, requests, loans: None, pool: Pool::new(pool_bytes_max) }
    }

    /// Requests `operation` of a backend for a command of `controller`, 0 for the target itself.
    pub(super) fn request(&mut self, slot: u32, backend: BackendId, controller: u16, operation: IoOperation) {
        let flight = &mut self.flights[slot];
        flight.phase = Phase::Working;
        flight.pending += 1;
        let tag = self.flights.tag(slot);
        self.requests.push(IoRequest { tag, backend, controller, operation });
    }

    /// The next request. Loans end before a request that changes their blocks.
    pub(super) fn next(&mut self, connections: &mut Connections, now: Time) -> Option<IoRequest> {
        if self.loans.is_some() && self.requests.first().is_some_and(|next| self.ends_loans(next, connections)) {
            self.end_loans(connections, now);
        }
        self.requests.take()
    }

    /// Takes the answer of a backend.
    pub(super) fn answer(&mut self, tag: IoTag, result: IoResult) -> Answer {
        let Some(slot) = self.flights.working(tag) else {
            self.pool.give(result.buffer);
            return Answer::Unknown;
        };
        let flight = &mut self.flights[slot];
        flight.pending -= 1;
        if std::mem::take(&mut flight.is_loan) {
            return Answer::Loan { slot, is_granted: result.status == IoStatus::Done };
        }
        flight.fail(result.status.status());
        if !result.buffer.is_empty() {
            flight.buffer = result.buffer;
        }
        if flight.pending == 0 { Answer::Complete(slot) } else { Answer::Partial }
    }

    /// Withdraws the requests of a command, if no backend has taken one. A command that changes
    /// reservations has changed them, and goes on.
    pub(super) fn withdraw(&mut self, slot: u32) -> bool {
        let (tag, flight) = (self.flights.tag(slot), &self.flights[slot]);
        let (mut waiting, mut is_decided) = (0, false);
        for request in self.requests.of(tag) {
            waiting += 1;
            is_decided |= matches!(request.operation, IoOperation::PersistReservations { .. });
        }
        if waiting != flight.pending || is_decided || flight.partner.is_some() {
            return false;
        }
        debug_assert!(!flight.is_loan, "no command comes before requests to lend are taken");
        self.requests.withdraw(tag);
        self.flights[slot].pending = 0;
        true
    }

    /// Frees a command and its buffer. Returns its connection and the bytes that it was charged
    /// there, if any.
    pub(super) fn release(&mut self, slot: u32) -> Option<(u32, u64)> {
        let flight = &mut self.flights[slot];
        let (charged, connection) = (flight.charged, flight.connection);
        self.pool.give(std::mem::take(&mut flight.buffer));
        self.flights.close(slot);
        connection.filter(|_| charged > 0).map(|index| (index, charged))
    }

    /// Output was sent or dropped: the loans in it are over.
    pub(super) fn freed(&mut self, freed: Freed) {
        self.loans_over(freed.loans);
    }

    /// Opens a flight for the bytes of a loan, and requests them before all else.
    pub(super) fn request_loan(
        &mut self,
        now: Time,
        (connection, payload): (ConnectionId, u64),
        lender: BackendId,
        (range, bytes): (crate::target::BlockRange, usize),
    ) {
        let slot = self.flights.open_own(now, Own::Loan { connection, payload });
        let flight = &mut self.flights[slot];
        (flight.phase, flight.pending) = (Phase::Working, 1);
        let (tag, buffer) = (self.flights.tag(slot), self.pool.take(bytes));
        let operation = IoOperation::EndLoan { range, buffer };
        self.requests.push_first(IoRequest { tag, backend: lender, controller: 0, operation });
    }
}
