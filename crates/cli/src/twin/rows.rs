//! Simulated requests for pages as records.

use crate::failure::{Failure, failed_at};
use base::{Bytes, NodeId, Operation, RequestId, Span, Time};
use live::FileParts;
use plan::rack::{PAGE, Rack};
use record::{Outcome, ParquetWriter, Provenance, Row, Sink, SpanKind, Spans};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use volumes::journal::End;
use volumes::twin::Request;

/// Writes a row a request into `folder`: all requests, and whether each is measured.
pub fn write_rows(folder: &Path, rack: &Rack, requests: &[Request], measured: &[bool]) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(failed_at(folder))?;
    let said = format!("{:?}", (&rack.switch, &rack.control, &rack.storage, &rack.volumes, &rack.loads));
    let plan_hash = Sha256::digest(said).iter().map(|byte| format!("{byte:02x}")).collect();
    let provenance = Provenance { version: env!("CARGO_PKG_VERSION").into(), plan_hash };
    let mut writer = ParquetWriter::new(FileParts::new(folder.into()), &provenance);
    let stop = requests.iter().filter_map(|request| request.ended).map(|(at, _)| at).max().unwrap_or_default();
    let mut rows = (0..)
        .zip(requests.iter().zip(measured))
        .map(|(number, (request, measured))| Row { measured: *measured, ..row(RequestId(number), request, stop) });
    let written = rows.try_for_each(|row| writer.row(&row)).and_then(|()| writer.finish().map(drop));
    written.map_err(|error| Failure::Failed(error.to_string()))
}

/// A request without an end is unfinished when the simulation stops.
fn row(number: RequestId, request: &Request, stop: Time) -> Row {
    let asked = request.asked;
    let (end, outcome) = match request.ended {
        Some((at, End::Read | End::Written)) => (at, Outcome::Finished),
        Some((at, End::Refused)) => (at, Outcome::Rejected),
        Some((at, End::Unanswered)) => (at, Outcome::TimedOut),
        None => (stop.max(asked), Outcome::Unfinished),
    };
    Row {
        request: number,
        operation: if request.is_write { Operation::Write } else { Operation::Read },
        source: request.door,
        target: request.served.map_or(NodeId(0), |served| served.server),
        address: request.page.0.saturating_mul(PAGE.count()),
        bytes: Bytes::new(PAGE.count()),
        outcome,
        intended: asked,
        start: asked,
        end,
        unloaded: Span::ZERO,
        measured: true,
        spans: spans(request, end - asked),
    }
}

/// To the server, there, and back. Without an answer, all of it is a wait.
fn spans(request: &Request, total: Span) -> Spans {
    let mut spans = Spans::default();
    match request.spans() {
        Some(parts) => {
            spans.add(SpanKind::Network, parts.out);
            spans.add(SpanKind::StorageQueue, parts.server);
            spans.add(SpanKind::Return, parts.back);
        }
        None => spans.add(SpanKind::Schedule, total),
    }
    spans
}
