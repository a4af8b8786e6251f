//! Rows of the records of a storage server: a request for a page, from its packet until the answer
//! leaves.

use base::{Bytes, NodeId, Operation, RequestId, Span, Time};
use blox::{Body, PAGE_BYTES, Packet, Page, Tag};
use plan::rack::Rack;
use record::{Outcome, Row, SpanKind, Spans};
use runtime::error::StartError;
use runtime::records::{Recorder, Records};
use std::collections::BTreeMap;

/// Requests that are followed at most. Of more, the oldest of a door are lost, and counted.
const FOLLOWED_MAX: usize = 65_536;

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    came: Time,
    page: Page,
    operation: Operation,
    /// What the flash took.
    flash: Span,
}

/// Requests of doors at a server.
pub(crate) struct Rows {
    recorder: Recorder,
    server: NodeId,
    open: BTreeMap<(NodeId, Tag), Open>,
}

impl Rows {
    /// Those of a server of a rack, if its file asks for them.
    ///
    /// # Errors
    /// When their folder cannot be had.
    pub fn begin(rack: &Rack, server: NodeId, name: &str) -> Result<Option<Rows>, StartError> {
        let Some(plan::target::Records { folder, sample, tail }) = &rack.records else { return Ok(None) };
        let records = Records { folder: folder.into(), sample: (*sample).into(), tail: *tail };
        let said = format!("{:?}", (&rack.switch, &rack.control, &rack.storage, &rack.volumes));
        let recorder = Recorder::start(&records, name, &said)?;
        Ok(Some(Rows { recorder, server, open: BTreeMap::new() }))
    }

    /// Rows that could not be written.
    pub fn dropped(&self) -> u64 {
        self.recorder.dropped()
    }

    /// A packet has come. A request that comes again counts from the first time.
    pub fn came(&mut self, now: Time, packet: &Packet) {
        let (tag, page, operation) = match packet.body {
            Body::Read { tag, page } => (tag, page, Operation::Read),
            Body::Write { tag, page, .. } => (tag, page, Operation::Write),
            _ => return,
        };
        if packet.target != self.server {
            return;
        }
        let open = Open { came: now, page, operation, flash: Span::ZERO };
        self.open.entry((packet.source, tag)).or_insert(open);
        if self.open.len() > FOLLOWED_MAX {
            // A door's tags count up.
            self.open.pop_first();
            self.recorder.lose();
        }
    }

    /// The flash reads a page for a request.
    pub fn flash(&mut self, request: (NodeId, Tag), span: Span) {
        self.open.entry(request).and_modify(|open| open.flash += span);
    }

    /// A packet leaves.
    pub fn sent(&mut self, now: impl FnOnce() -> Time, packet: &Packet) {
        let (tag, is_done) = match packet.body {
            Body::ReadReply { tag, value } => (tag, value.is_ok()),
            Body::WriteReply { tag, done } => (tag, done.is_ok()),
            _ => return,
        };
        let Some(open) = self.open.remove(&(packet.target, tag)) else { return };
        let outcome = if is_done { Outcome::Finished } else { Outcome::Rejected };
        self.end(packet.target, open, outcome, now());
    }

    /// The server ends: what is open has no answer.
    pub fn finish(&mut self, now: Time) {
        for ((door, _), open) in std::mem::take(&mut self.open) {
            self.end(door, open, Outcome::Unfinished, now);
        }
    }

    fn end(&self, door: NodeId, open: Open, outcome: Outcome, now: Time) {
        self.recorder.take(row(self.recorder.number(), (door, self.server), open, outcome, now));
    }
}

/// The spans add up to the time: what is not the flash's is a wait, of a write for its replicas.
fn row(request: RequestId, (source, target): (NodeId, NodeId), open: Open, outcome: Outcome, now: Time) -> Row {
    let Open { came, page, operation, flash } = open;
    let end = now.max(came);
    let mut spans = Spans::default();
    let flash = flash.min(end - came);
    spans.add(SpanKind::Flash, flash);
    let rest = if operation == Operation::Write { SpanKind::Replication } else { SpanKind::StorageQueue };
    spans.add(rest, end - came - flash);
    Row {
        request,
        operation,
        source,
        target,
        address: page.0.saturating_mul(PAGE_BYTES.into()),
        bytes: Bytes::new(PAGE_BYTES.into()),
        outcome,
        intended: came,
        start: came,
        end,
        unloaded: Span::ZERO,
        measured: true,
        spans,
    }
}
