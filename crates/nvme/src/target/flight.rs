//! Commands between their arrival and their answer.

use crate::target::io::IoTag;
use crate::target::{BackendId, ConnectionId};
use crate::transfer::{ReadyPlan, TargetWrite};
use crate::{Body, Command, Fabrics, Io, Sgl, Status};
use base::Time;

/// State of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The place is free.
    Free,
    /// Its data wait for the connection's budget.
    Parked,
    /// Receives its data.
    Receiving,
    /// One half of a fused pair, waiting for the other.
    Fused,
    /// Backends work on it.
    Working,
    /// It completes when something happens: event requests, reservation commands behind another.
    Waiting,
}

/// Bytes and direction of a command's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Transfer {
    /// Nothing.
    #[default]
    None,
    /// So many bytes from the host.
    In(u32),
    /// So many bytes to the host.
    Out(u32),
}

/// A command that may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admitted {
    pub(super) transfer: Transfer,
    /// The backend in memory that may lend the data of a read, or write from the input.
    pub(super) lender: Option<BackendId>,
}

impl From<Transfer> for Admitted {
    fn from(transfer: Transfer) -> Self {
        Admitted { transfer, lender: None }
    }
}

/// Purpose of the target's own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// A flush, before this controller shuts down.
    Shutdown(u16),
    /// A reservation command of another member of the group.
    Reservation,
    /// The bytes of a loan, which are this payload of the connection.
    Loan { connection: ConnectionId, payload: u64 },
}

/// A command.
#[derive(Debug)]
pub(super) struct Flight {
    /// Changes with every use of the place.
    pub(super) use_count: u32,
    pub(super) phase: Phase,
    /// Its connection; `None` when that is gone, or for the target's own.
    pub(super) connection: Option<u32>,
    pub(super) command: Command,
    pub(super) transfer: Transfer,
    pub(super) buffer: Vec<u8>,
    /// Of the connection's budget.
    pub(super) charged: u64,
    pub(super) write: TargetWrite,
    /// Requests that backends have not answered.
    pub(super) pending: u32,
    /// The first failure.
    pub(super) status: Status,
    /// The other half of a fused pair.
    pub(super) partner: Option<u32>,
    /// The backend to flush before the host gets what was read.
    pub(super) flush_after: Option<BackendId>,
    /// Its purpose, if it is the target's own.
    pub(super) own: Option<Own>,
    /// A backend was asked to lend its data.
    pub(super) is_loan: bool,
    /// Time of arrival.
    pub(super) received: Time,
}

impl Flight {
    fn new() -> Self {
        let nothing = Command::new(0, Body::Fabrics(Fabrics::Disconnect));
        Flight {
            use_count: 0,
            phase: Phase::Free,
            connection: None,
            command: nothing,
            transfer: Transfer::None,
            buffer: Vec::new(),
            charged: 0,
            write: TargetWrite::new(0, 0, ReadyPlan { ready_bytes_max: 1, open_max: 1 }),
            pending: 0,
            status: Status::SUCCESS,
            partner: None,
            flush_after: None,
            own: None,
            is_loan: false,
            received: Time::ZERO,
        }
    }

    /// Puts data that the target makes into the buffer: cut, or zeros behind.
    pub(super) fn fill(&mut self, data: &[u8]) {
        let count = data.len().min(self.buffer.len());
        self.buffer[..count].copy_from_slice(&data[..count]);
        self.buffer[count..].fill(0);
    }

    /// Moves in-capsule data that begin at an offset to the front of the buffer.
    pub(super) fn trim_capsule(&mut self) {
        if let (Transfer::In(length), Sgl::InCapsule { offset, .. }) = (self.transfer, self.command.data) {
            let (offset, length) = (offset as usize, length as usize);
            if offset > 0 {
                self.buffer.copy_within(offset..offset + length, 0);
            }
            self.buffer.truncate(length);
        }
    }

    /// The result of S-Direct's engine beside its status; 0 where it was never asked.
    pub(super) fn engine_result(&self) -> u64 {
        self.buffer.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The command failed: the first failure counts.
    pub(super) fn fail(&mut self, status: Status) {
        if self.status.is_success() {
            self.status = status;
        }
    }
}

/// All of them; a place keeps its memory for the next.
#[derive(Debug, Default)]
pub(super) struct Flights {
    places: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    /// A place for a command. Connections and their queues bound the number.
    pub(super) fn open(&mut self, now: Time, connection: Option<u32>, command: Command) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(Flight::new());
            (self.places.len() - 1) as u32
        });
        let flight = &mut self.places[slot as usize];
        (flight.connection, flight.command, flight.received) = (connection, command, now);
        (flight.phase, flight.status) = (Phase::Receiving, Status::SUCCESS);
        slot
    }

    /// A place for a request of the target itself.
    pub(super) fn open_own(&mut self, now: Time, own: Own) -> u32 {
        let slot = self.open(now, None, Command::new(0, Body::Fabrics(Fabrics::Disconnect)));
        self.places[slot as usize].own = Some(own);
        slot
    }

    /// Frees a place. Its buffer has to have been taken.
    pub(super) fn close(&mut self, slot: u32) {
        let flight = &mut self.places[slot as usize];
        flight.use_count = flight.use_count.wrapping_add(1);
        (flight.phase, flight.transfer, flight.connection) = (Phase::Free, Transfer::None, None);
        (flight.charged, flight.pending, flight.partner, flight.own) = (0, 0, None, None);
        (flight.flush_after, flight.is_loan) = (None, false);
        self.free.push(slot);
    }

    pub(super) fn tag(&self, slot: u32) -> IoTag {
        IoTag { slot, use_count: self.places[slot as usize].use_count }
    }

    /// The place that backends work on by this tag.
    pub(super) fn working(&self, tag: IoTag) -> Option<u32> {
        let flight = self.places.get(tag.slot as usize)?;
        let is_it = flight.use_count == tag.use_count && flight.phase == Phase::Working && flight.pending > 0;
        is_it.then_some(tag.slot)
    }

    /// The tags of the commands that backends work on and that are such.
    pub(super) fn working_ones(&self, is_it: impl Fn(u32) -> bool) -> Vec<IoTag> {
        let places = (0..).zip(&self.places).filter(|(_, flight)| flight.phase == Phase::Working);
        places.filter(|(slot, _)| is_it(*slot)).map(|(slot, _)| self.tag(slot)).collect()
    }

    /// Whether two commands are a Compare and a Write of the same blocks.
    pub(super) fn is_pair(&self, first: u32, second: u32) -> bool {
        let (compare, write) = (&self[first].command, &self[second].command);
        match (compare.body, write.body) {
            (Body::Io(Io::Compare(compared)), Body::Io(Io::Write(written))) => {
                compare.namespace == write.namespace
                    && compared.start == written.start
                    && compared.blocks_minus_one == written.blocks_minus_one
            }
            _ => false,
        }
    }

    /// Returns the number of places in use.
    pub(super) fn open_count(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl std::ops::Index<u32> for Flights {
    type Output = Flight;
    fn index(&self, slot: u32) -> &Flight {
        &self.places[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Flights {
    fn index_mut(&mut self, slot: u32) -> &mut Flight {
        &mut self.places[slot as usize]
    }
}
