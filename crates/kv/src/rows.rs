//! Rows of the records: what a door was asked, and what a JBOF was asked by doors.

use base::{Bytes as Size, NodeId, Operation as Kind, Span, Time};
use bytes::Bytes;
use record::{Outcome as Ended, Row, SpanKind, Spans};
use runtime::records::Recorder;
use scalio::{ClientId, Extent, Key, Operation, Outcome, Reply, Request, RequestBody, SECTOR_BYTES, Source};
use std::collections::BTreeMap;

/// Requests of doors that are followed at most. Rows of more are lost, and counted.
const FOLLOWED_MAX: usize = 65_536;

/// What is known of an operation before its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When its command came.
    pub came: Time,
    /// When the client's program got it: commands of a connection wait for each other.
    pub begun: Time,
    kind: Kind,
    address: u64,
    given: u64,
}

impl Asked {
    /// An operation on a key.
    pub fn operation(came: Time, begun: Time, operation: &Operation<Bytes>) -> Asked {
        let (kind, key, given) = match operation {
            Operation::Get { key } => (Kind::Read, key, 0),
            Operation::Update(body) => (Kind::Write, body.key(), given(body)),
        };
        Asked { came, begun, kind, address: address(key), given }
    }

    /// A look at a key without its value.
    pub fn look(came: Time, begun: Time, key: &Key) -> Asked {
        Asked { came, begun, kind: Kind::Read, address: address(key), given: 0 }
    }

    /// A walk over a block.
    pub fn walk(came: Time, begun: Time) -> Asked {
        Asked { came, begun, kind: Kind::Read, address: 0, given: 0 }
    }

    /// Its row, of the connection of that number. `source` is who has answered, if anybody has.
    pub fn row(
        &self,
        request: base::RequestId,
        connection: u64,
        (outcome, source): (&Outcome<Bytes>, Option<Source>),
        end: Time,
    ) -> Row {
        let end = end.max(self.begun);
        let mut spans = Spans::default();
        spans.add(SpanKind::Schedule, self.begun.saturating_since(self.came));
        spans.add(of_source(source), end.saturating_since(self.begun));
        let bytes = Size::new(self.given + found(outcome));
        let (source, target) = (NodeId(connection as u32), NodeId(0));
        row((request, self.kind), (source, target), (self.address, bytes), ended(outcome), (self.came, end), spans)
    }
}

/// A hash of 32 bits of the key. Its bytes would tell what is stored.
fn address(key: &Key) -> u64 {
    key.place(u32::MAX).block.into()
}

/// Bytes of the value that comes with an update.
fn given(body: &RequestBody<Bytes>) -> u64 {
    match body {
        RequestBody::Put { value, .. } => value.len() as u64,
        RequestBody::CompareAndSwap { new, .. } => new.len() as u64,
        RequestBody::Delete { .. } | RequestBody::Take { .. } | RequestBody::Expire { .. } => 0,
    }
}

/// Bytes of the value that an outcome brings.
fn found(outcome: &Outcome<Bytes>) -> u64 {
    match outcome {
        Outcome::Value(Some(value)) | Outcome::Taken { found: Some(value) } => value.len() as u64,
        _ => 0,
    }
}

/// Where the time of an operation is that was answered from there.
fn of_source(source: Option<Source>) -> SpanKind {
    match source {
        Some(Source::Cache) => SpanKind::Memory,
        Some(Source::Flash) => SpanKind::Flash,
        Some(Source::Server) | None => SpanKind::StorageQueue,
    }
}

fn ended(outcome: &Outcome<Bytes>) -> Ended {
    match outcome {
        Outcome::Refused(_) => Ended::Rejected,
        Outcome::Unknown | Outcome::Unavailable => Ended::TimedOut,
        Outcome::Value(_)
        | Outcome::Described(_)
        | Outcome::Names(_)
        | Outcome::Stored
        | Outcome::Unmet
        | Outcome::Deleted { .. }
        | Outcome::Taken { .. }
        | Outcome::Differs { .. } => Ended::Finished,
    }
}

fn row(
    (request, operation): (base::RequestId, Kind),
    (source, target): (NodeId, NodeId),
    (address, bytes): (u64, Size),
    outcome: Ended,
    (came, end): (Time, Time),
    spans: Spans,
) -> Row {
    Row {
        request,
        operation,
        source,
        target,
        address,
        bytes,
        outcome,
        intended: came,
        start: came,
        end,
        unloaded: Span::ZERO,
        measured: true,
        spans,
    }
}

/// Requests of doors to a JBOF, until they are answered. Verbs are executed when they come, and
/// leave no row.
pub struct DoorRows {
    recorder: Recorder,
    open: BTreeMap<(ClientId, u64), (Time, u64, u64)>,
}

impl DoorRows {
    /// Of doors that are yet to come.
    pub fn new(recorder: Recorder) -> DoorRows {
        DoorRows { recorder, open: BTreeMap::new() }
    }

    /// Rows that could not be written.
    pub fn dropped(&self) -> u64 {
        self.recorder.dropped()
    }

    /// A door wants an update. One that comes again counts from the first time.
    pub fn came(&mut self, now: Time, request: &Request<Bytes>) {
        let name = (request.client, request.number);
        if self.open.len() >= FOLLOWED_MAX && !self.open.contains_key(&name) {
            return self.recorder.lose();
        }
        self.open.entry(name).or_insert((now, address(request.body.key()), given(&request.body)));
    }

    /// It is answered.
    pub fn answered(&mut self, now: Time, reply: &Reply<Bytes>) {
        let Some((came, address, given)) = self.open.remove(&(reply.client, reply.number)) else { return };
        let outcome = Outcome::from(reply.result.clone());
        let bytes = Size::new(given + found(&outcome));
        let place = (address, bytes);
        self.take(Kind::Write, reply.client, place, ended(&outcome), (came, now), SpanKind::StorageQueue);
    }

    /// A read of flash for a door has ended; `None` where it failed.
    pub fn read(&mut self, door: ClientId, extent: Extent, is_there: bool, came: Time, now: Time) {
        let sector = u64::from(SECTOR_BYTES);
        let place = (extent.sector * sector, Size::new(u64::from(extent.sectors) * sector));
        let outcome = if is_there { Ended::Finished } else { Ended::Rejected };
        self.take(Kind::Read, door, place, outcome, (came, now), SpanKind::Flash);
    }

    fn take(
        &mut self,
        kind: Kind,
        door: ClientId,
        place: (u64, Size),
        outcome: Ended,
        (came, end): (Time, Time),
        span: SpanKind,
    ) {
        let mut spans = Spans::default();
        spans.add(span, end.saturating_since(came));
        let nodes = (NodeId(door.0.into()), NodeId(0));
        self.recorder.take(row((self.recorder.number(), kind), nodes, place, outcome, (came, end), spans));
    }

    /// A door is gone: nobody hears the answers to its requests.
    pub fn forget(&mut self, now: Time, door: ClientId) {
        let mut gone = self.open.split_off(&(door, 0));
        if let Some(next) = door.0.checked_add(1) {
            self.open.append(&mut gone.split_off(&(ClientId(next), 0)));
        }
        for (came, address, given) in gone.into_values() {
            let place = (address, Size::new(given));
            self.take(Kind::Write, door, place, Ended::Lost, (came, now), SpanKind::StorageQueue);
        }
    }
}
