//! A journal of the inputs and decisions of a [`Target`], so that a live session can be replayed
//! under another clock and compared.
//!
//! The journal begins with [`MAGIC`]. Entries follow; all numbers are little-endian. Every entry is
//! a kind (one byte), a time (u64, ps) and:
//!
//! | kind | input | decision |
//! | --- | --- | --- |
//! | 1 accept | port u16 | connection u64, or FFFFFFFFFFFFFFFFh when it was refused |
//! | 2 receive | connection u64, length u32, bytes | bytes taken u32 |
//! | 3 transmitted | connection u64, length u32 | CRC32C of the sent bytes u32 |
//! | 4 closed | connection u64 | |
//! | 5 complete | tag u64, status u8, length u32, buffer | |
//! | 6 wakeup | | next wake-up u64, or FFFFFFFFFFFFFFFFh for none |
//! | 7 request | | tag u64, backend u32, CRC32C of the operation u32 |
//! | 8 add a namespace | subsystem (length u8, name), id u32, backend u32, blocks u64, block shift u8, UUID 16 B, NGUID 16 B, EUI-64 8 B, group u32, flags u8 (read only, volatile cache, reservations are kept, its backend lends) | whether it was done u8 |
//! | 9 remove a namespace | subsystem, id u32 | as above |
//! | 10 resize a namespace | subsystem, id u32, blocks u64 | as above |
//! | 11 set a path | subsystem, port u16, group u32, state u8 | as above |
//! | 12 a connection is secured | connection u64, host (length u8, name), subsystem | |
//! | 13 loans end | connection u64 | |
//!
//! Bytes that were sent from the blocks of a lender count as 16 bytes. These are their first block
//! (u64), the first byte of the loan that was sent and the first that was not (u32 each).
//!
//! [`Recorder`] wraps a target and writes the journal. [`replay`] reads it, passes the inputs to a
//! fresh target and compares its decisions. Secrets are no part of it: a replay has them in its
//! configuration, with the entropy of challenges. Reservations of a namespace that is added are not
//! recorded: it begins without.

mod changes;

use crate::outgoing::{Piece, Pieces, Slices};
use crate::target::{
    CloseReason, ConfigError, ConnectionId, IoOperation, IoRequest, IoResult, IoStatus, IoTag, Notice, PortId, Refused,
    Target, TargetConfig,
};
use base::Time;
use std::io::{self, Read, Write};

/// Name and version, at the beginning of a journal.
pub const MAGIC: [u8; 8] = *b"RWNVMJ02";
/// Longest piece of bytes in an entry: more is a journal that is damaged.
const PIECE_MAX: u32 = 64 << 20;
const NONE: u64 = u64::MAX;

const ACCEPT: u8 = 1;
const RECEIVE: u8 = 2;
const TRANSMITTED: u8 = 3;
const CLOSED: u8 = 4;
const COMPLETE: u8 = 5;
const WAKEUP: u8 = 6;
const REQUEST: u8 = 7;
const ADD: u8 = 8;
const REMOVE: u8 = 9;
const RESIZE: u8 = 10;
const PATH: u8 = 11;
const SECURED: u8 = 12;
const END_LOANS: u8 = 13;

const STATUSES: [IoStatus; 10] = [
    IoStatus::Done,
    IoStatus::OutOfRange,
    IoStatus::Miscompare,
    IoStatus::ReadError,
    IoStatus::WriteError,
    IoStatus::NoSpace,
    IoStatus::Unsupported,
    IoStatus::Unavailable,
    IoStatus::Busy,
    IoStatus::Invalid,
];

/// A target whose inputs and decisions are recorded. After a failure to write, the target goes on
/// and the journal ends: see [`Recorder::finish`].
#[derive(Debug)]
pub struct Recorder<W> {
    target: Target,
    sink: W,
    now: Time,
    /// The bytes that came last: requests may be about them.
    input: Vec<u8>,
    failure: Option<io::Error>,
}

impl<W: Write> Recorder<W> {
    /// A fresh target and an empty journal. Buffer the sink: entries are small.
    pub fn new(config: TargetConfig, sink: W) -> Result<Self, ConfigError> {
        let target = Target::new(config)?;
        let mut recorder = Recorder { target, sink, now: Time::ZERO, input: Vec::new(), failure: None };
        recorder.write(&[&MAGIC]);
        Ok(recorder)
    }

    /// The target, to look at.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// As [`Target::accept`].
    pub fn accept(&mut self, now: Time, port: PortId) -> Result<ConnectionId, Refused> {
        let accepted = self.target.accept(now, port);
        let decided = accepted.map_or(NONE, ConnectionId::bits);
        self.entry(ACCEPT, now, &[&port.0.to_le_bytes(), &decided.to_le_bytes()]);
        accepted
    }

    /// As [`Target::receive`].
    pub fn receive(&mut self, now: Time, connection: ConnectionId, bytes: &[u8]) -> usize {
        let taken = self.target.receive(now, connection, bytes);
        self.input.clear();
        self.input.extend_from_slice(bytes);
        let (id, length) = (connection.bits().to_le_bytes(), (bytes.len() as u32).to_le_bytes());
        self.entry(RECEIVE, now, &[&id, &length, bytes, &(taken as u32).to_le_bytes()]);
        taken
    }

    /// As [`Target::wants_input`].
    pub fn wants_input(&self, connection: ConnectionId) -> bool {
        self.target.wants_input(connection)
    }

    /// As [`Target::transmit`].
    pub fn transmit(&self, connection: ConnectionId) -> Slices<'_> {
        self.target.transmit(connection)
    }

    /// As [`Target::pieces`].
    pub fn pieces(&self, connection: ConnectionId) -> Pieces<'_> {
        self.target.pieces(connection)
    }

    /// As [`Target::end_loans`].
    pub fn end_loans(&mut self, connection: ConnectionId) -> usize {
        let count = self.target.end_loans(connection);
        self.entry(END_LOANS, self.now, &[&connection.bits().to_le_bytes()]);
        count
    }

    /// As [`Target::transmitted`].
    pub fn transmitted(&mut self, connection: ConnectionId, bytes: usize) {
        let digest = leaving(&self.target, connection, bytes);
        self.target.transmitted(connection, bytes);
        let (id, length) = (connection.bits().to_le_bytes(), (bytes as u32).to_le_bytes());
        self.entry(TRANSMITTED, self.now, &[&id, &length, &digest.to_le_bytes()]);
    }

    /// As [`Target::closed`].
    pub fn closed(&mut self, now: Time, connection: ConnectionId) {
        self.target.closed(now, connection);
        self.entry(CLOSED, now, &[&connection.bits().to_le_bytes()]);
    }

    /// As [`Target::should_close`].
    pub fn should_close(&self, connection: ConnectionId) -> Option<CloseReason> {
        self.target.should_close(connection)
    }

    /// As [`Target::next_active`].
    pub fn next_active(&mut self) -> Option<ConnectionId> {
        self.target.next_active()
    }

    /// As [`Target::next_io`].
    pub fn next_io(&mut self) -> Option<IoRequest> {
        let request = self.target.next_io()?;
        let (tag, backend, digest) = decided(&request, &self.input);
        self.entry(REQUEST, self.now, &[&tag.to_le_bytes(), &backend.to_le_bytes(), &digest.to_le_bytes()]);
        Some(request)
    }

    /// As [`Target::complete`].
    pub fn complete(&mut self, now: Time, tag: IoTag, result: IoResult) {
        let status = STATUSES.iter().position(|status| *status == result.status).unwrap_or(0) as u8;
        let length = (result.buffer.len() as u32).to_le_bytes();
        self.entry(COMPLETE, now, &[&tag.bits().to_le_bytes(), &[status], &length, &result.buffer]);
        self.target.complete(now, tag, result);
    }

    /// As [`Target::next_notice`].
    pub fn next_notice(&mut self) -> Option<Notice> {
        self.target.next_notice()
    }

    /// As [`Target::next_wakeup`].
    pub fn next_wakeup(&self) -> Option<Time> {
        self.target.next_wakeup()
    }

    /// As [`Target::on_wakeup`].
    pub fn on_wakeup(&mut self, now: Time) {
        self.target.on_wakeup(now);
        let next = self.target.next_wakeup().map_or(NONE, Time::as_ps);
        self.entry(WAKEUP, now, &[&next.to_le_bytes()]);
    }

    /// The target and the sink; the error that ended the journal, if one did.
    pub fn finish(mut self) -> (Target, io::Result<W>) {
        let outcome = self.failure.take().map_or_else(|| self.sink.flush(), Err);
        (self.target, outcome.map(|()| self.sink))
    }

    fn entry(&mut self, kind: u8, now: Time, parts: &[&[u8]]) {
        self.now = self.now.max(now);
        self.write(&[&[kind], &now.as_ps().to_le_bytes()]);
        self.write(parts);
    }

    fn write(&mut self, parts: &[&[u8]]) {
        for part in parts {
            if self.failure.is_none() {
                self.failure = self.sink.write_all(part).err();
            }
        }
    }
}

/// CRC32C of the next `count` bytes that leave by a connection, of loans by their names.
fn leaving(target: &Target, connection: ConnectionId, count: usize) -> u32 {
    let (mut digest, mut left) = (0, count);
    for piece in target.pieces(connection) {
        left -= match piece {
            Piece::Bytes(bytes) => {
                let now = bytes.len().min(left);
                digest = crc32c::crc32c_append(digest, &bytes[..now]);
                now
            }
            Piece::Lent { range, from, to } => {
                let now = (to - from).min(left);
                let place = [from as u32, (from + now) as u32].map(u32::to_le_bytes).concat();
                let named = [&range.start.to_le_bytes()[..], &place].concat();
                digest = crc32c::crc32c_append(digest, &named);
                now
            }
        };
        if left == 0 {
            break;
        }
    }
    digest
}

/// A request in short: its tag, its backend, a digest of the rest.
fn decided(request: &IoRequest, input: &[u8]) -> (u64, u32, u32) {
    (request.tag.bits(), request.backend.0, digest_of(&request.operation, input))
}

/// A read's buffer holds old data and is no part of the decision.
fn digest_of(operation: &IoOperation, input: &[u8]) -> u32 {
    let described = match operation {
        IoOperation::Read { range, buffer } => format!("read {range:?} {}", buffer.len()),
        IoOperation::EndLoan { range, buffer } => format!("end loan {range:?} {}", buffer.len()),
        IoOperation::WriteInput { range, from, to, is_durable } => {
            let data = input.get(*from..*to).unwrap_or_default();
            format!("write input {range:?} {} {is_durable}", crc32c::crc32c(data))
        }
        IoOperation::Write { range, data, is_durable } => {
            format!("write {range:?} {} {is_durable}", crc32c::crc32c(data))
        }
        IoOperation::Compare { range, data } => format!("compare {range:?} {}", crc32c::crc32c(data)),
        IoOperation::CompareAndWrite { range, expected, data, is_durable } => {
            format!("{range:?} {} {} {is_durable}", crc32c::crc32c(expected), crc32c::crc32c(data))
        }
        other => format!("{other:?}"),
    };
    crc32c::crc32c(described.as_bytes())
}

/// Why a journal was not played to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The target's configuration cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The journal cannot be read.
    #[error("the journal cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is no journal, or a damaged one.
    #[error("entry {entry}: {what} is {got}, which no journal has")]
    Damaged {
        /// Which entry, from 0 on.
        entry: u64,
        /// The field.
        what: &'static str,
        /// Its value.
        got: u64,
    },
    /// The target decided otherwise.
    #[error("entry {entry} at {now:?}: {what} was {recorded:#x} and is now {got:#x}")]
    Differs {
        /// Which entry, from 0 on.
        entry: u64,
        /// Its time.
        now: Time,
        /// The decision.
        what: &'static str,
        /// Its recorded value.
        recorded: u64,
        /// Its value now.
        got: u64,
    },
}

/// Statistics of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Entries.
    pub entries: u64,
    /// Of them such that hold a decision that was compared.
    pub compared: u64,
    /// Of them requests to lend.
    pub loans: u64,
    /// When the last entry was.
    pub end: Time,
}

/// Passes the recorded inputs to a fresh target, and compares every decision.
pub fn replay(config: TargetConfig, journal: impl Read) -> Result<Replayed, ReplayError> {
    let (target, played) = (Target::new(config)?, Replayed::default());
    let mut player = Player { target, journal, played, now: Time::ZERO, input: Vec::new() };
    let magic = u64::from_le_bytes(player.bytes()?);
    if magic != u64::from_le_bytes(MAGIC) {
        return Err(player.damaged("its beginning", magic));
    }
    while player.next_entry()? {}
    Ok(Replayed { end: player.now, ..player.played })
}

struct Player<R> {
    target: Target,
    journal: R,
    played: Replayed,
    now: Time,
    /// As in [`Recorder`].
    input: Vec<u8>,
}

impl<R: Read> Player<R> {
    fn next_entry(&mut self) -> Result<bool, ReplayError> {
        let mut kind = [0];
        if self.journal.read(&mut kind)? == 0 {
            return Ok(false);
        }
        self.now = Time::ps(self.u64()?);
        self.play(kind[0])?;
        self.played.entries += 1;
        Ok(true)
    }

    fn play(&mut self, kind: u8) -> Result<(), ReplayError> {
        let now = self.now;
        match kind {
            ACCEPT => {
                let port = PortId(u16::from_le_bytes(self.bytes()?));
                let got = self.target.accept(now, port).map_or(NONE, ConnectionId::bits);
                self.compare_u64("the accepted connection", got)
            }
            RECEIVE => {
                let connection = ConnectionId::of_bits(self.u64()?);
                self.input = self.piece()?;
                let taken = self.target.receive(now, connection, &self.input);
                self.compare_u32("the bytes taken", taken as u32)
            }
            TRANSMITTED => {
                let connection = ConnectionId::of_bits(self.u64()?);
                let count = self.u32()? as usize;
                let digest = leaving(&self.target, connection, count);
                self.target.transmitted(connection, count);
                self.compare_u32("the digest of bytes that left", digest)
            }
            END_LOANS => {
                let connection = ConnectionId::of_bits(self.u64()?);
                self.target.end_loans(connection);
                Ok(())
            }
            CLOSED => {
                let connection = ConnectionId::of_bits(self.u64()?);
                self.target.closed(now, connection);
                Ok(())
            }
            COMPLETE => self.complete(),
            WAKEUP => {
                self.target.on_wakeup(now);
                let next = self.target.next_wakeup().map_or(NONE, Time::as_ps);
                self.compare_u64("the next wake-up", next)
            }
            REQUEST => self.request(),
            SECURED => self.secured(),
            ADD | REMOVE | RESIZE | PATH => self.change(kind),
            other => Err(self.damaged("its kind", other.into())),
        }
    }

    fn complete(&mut self) -> Result<(), ReplayError> {
        let tag = IoTag::of_bits(self.u64()?);
        let [code] = self.bytes()?;
        let buffer = self.piece()?;
        let status = STATUSES.get(usize::from(code)).copied().ok_or(self.damaged("a status", code.into()))?;
        self.target.complete(self.now, tag, IoResult { status, buffer });
        Ok(())
    }

    fn request(&mut self) -> Result<(), ReplayError> {
        let request = self.target.next_io();
        let is_loan = request.as_ref().is_some_and(|request| matches!(request.operation, IoOperation::Lend { .. }));
        self.played.loans += u64::from(is_loan);
        let (tag, backend, digest) = request.map_or((NONE, 0, 0), |request| decided(&request, &self.input));
        self.compare_u64("the tag of a request", tag)?;
        self.compare_u32("the backend of a request", backend)?;
        self.compare_u32("the digest of a request", digest)
    }

    fn compare_u32(&mut self, what: &'static str, got: u32) -> Result<(), ReplayError> {
        let recorded = self.u32()?;
        self.compare(what, recorded.into(), got.into())
    }

    fn compare_u64(&mut self, what: &'static str, got: u64) -> Result<(), ReplayError> {
        let recorded = self.u64()?;
        self.compare(what, recorded, got)
    }

    fn compare(&mut self, what: &'static str, recorded: u64, got: u64) -> Result<(), ReplayError> {
        self.played.compared += 1;
        let (entry, now) = (self.played.entries, self.now);
        if recorded == got { Ok(()) } else { Err(ReplayError::Differs { entry, now, what, recorded, got }) }
    }

    fn damaged(&self, what: &'static str, got: u64) -> ReplayError {
        ReplayError::Damaged { entry: self.played.entries, what, got }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReplayError> {
        let mut bytes = [0; N];
        self.journal.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, ReplayError> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, ReplayError> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// A length and as many bytes.
    fn piece(&mut self) -> Result<Vec<u8>, ReplayError> {
        let length = self.u32()?;
        if length > PIECE_MAX {
            return Err(self.damaged("a length", length.into()));
        }
        let mut piece = vec![0; length as usize];
        self.journal.read_exact(&mut piece)?;
        Ok(piece)
    }
}
