//! Loans: data of reads that a backend in memory keeps in place until they are sent.
//!
//! A small read of such a backend is a request to lend ([`IoOperation::Lend`]), and nothing is
//! copied. [`Target::pieces`] names the blocks, the host sends them from where they lie, and
//! [`Target::end_loans`] ends the loans that the socket did not take: their bytes are read into
//! buffers ([`IoOperation::EndLoan`]). Loans end before a request that changes their blocks is
//! handed out. Each counts against its connection's data budget as a buffer does.
//!
//! One backend lends to one connection at a time; other reads are copied meanwhile.

use crate::target::connection::{Connection, Connections};
use crate::target::executor::Executor;
use crate::target::flight::Transfer;
use crate::target::io::{IoOperation, IoRequest};
use crate::target::{BackendId, BlockRange, ConnectionId};
use crate::{Body, Io};
use base::Time;

/// Bytes of a read that is lent: more at a time keeps other connections waiting.
const BYTES_MAX: u32 = 16 << 10;

/// The loans that were requested or granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loans {
    pub(super) borrower: ConnectionId,
    pub(super) lender: BackendId,
    /// At least one.
    count: u32,
}

impl Connection {
    /// Whether data can be sent from where they lie: neither encrypted nor followed by a digest.
    fn may_borrow(&self) -> bool {
        self.channel.is_none() && !self.framing.digests.data
    }
}

impl Executor {
    /// Requests the loan of a read, whose data fit one PDU of `data_max` bytes. Returns false when
    /// the read needs a buffer, as while another connection borrows or another backend lends.
    pub(super) fn borrow(&mut self, connection: &Connection, slot: u32, lender: BackendId, data_max: u32) -> bool {
        let flight = &mut self.flights[slot];
        let (Transfer::Out(length), Body::Io(Io::Read(access))) = (flight.transfer, flight.command.body) else {
            return false;
        };
        if length > BYTES_MAX.min(data_max) || !connection.may_borrow() {
            return false;
        }
        let borrower = connection.id;
        match &mut self.loans {
            Some(loans) if (loans.borrower, loans.lender) == (borrower, lender) => loans.count += 1,
            Some(_) => return false,
            none => *none = Some(Loans { borrower, lender, count: 1 }),
        }
        flight.is_loan = true;
        let operation = IoOperation::Lend { range: access.into() };
        self.request(slot, lender, connection.controller().unwrap_or(0), operation);
        true
    }

    /// The backend that lends to a connection.
    pub(super) fn lender(&self, connection: ConnectionId) -> Option<BackendId> {
        self.loans.filter(|loans| loans.borrower == connection).map(|loans| loans.lender)
    }

    /// Whether `request` changes blocks that are lent. Two backends may share their memory, so any
    /// change by another one counts.
    pub(super) fn ends_loans(&self, request: &IoRequest, connections: &Connections) -> bool {
        let Some(Loans { borrower, lender, .. }) = self.loans.filter(|_| request.operation.may_change()) else {
            return false;
        };
        let borrower = connections.get(borrower);
        let is_lent = |range: BlockRange| {
            let Some(borrower) = borrower else { return false };
            request.backend != lender || borrower.out.borrows(|lent| lent.overlaps(range))
        };
        borrower.is_some() && request.operation.changes(is_lent)
    }

    /// Has the lender copy what is lent before it does anything else. Returns the number of loans.
    pub(super) fn end_loans(&mut self, connections: &mut Connections, now: Time) -> usize {
        let Some(Loans { borrower, lender, .. }) = self.loans else { return 0 };
        let Some(index) = connections.find(borrower) else { return 0 };
        let ended = connections[index].out.end_loans();
        let count = ended.len();
        self.loans_over(count as u32);
        for (payload, range, bytes) in ended.into_iter().rev() {
            self.request_loan(now, (borrower, payload), lender, (range, bytes));
        }
        count
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
