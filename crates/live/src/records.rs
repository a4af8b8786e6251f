//! Records of a live target: a row per request in the simulator's columns, for a sample of all
//! requests and for every slow one.

use crate::backend::{Completion, Facts};
use crate::error::StartError;
use crate::parts::FileParts;
use base::{Bytes, NodeId, RequestId, Span, Time};
use plan::target::{Records, TargetPlan};
use record::{Outcome, ParquetWriter, Provenance, Row, Sink, SpanKind, Spans};
use runtime::draft::MadeFolder;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Rows that wait for the writer. More are dropped and counted, since no request waits for its
/// record.
const ROWS_MAX: usize = 65_536;
/// The time whose records a killed process may lose.
const ROWS_PER_PART: usize = 16_384;

/// Chooses rows and hands them to a thread that writes them. Dropping it writes the rest.
pub(crate) struct Recorder {
    sample: u64,
    tail: Span,
    seen: u64,
    dropped: u64,
    rows: Option<SyncSender<Row>>,
    writer: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Checks that records can go to the folder of `records`, and changes nothing there.
    pub(crate) fn check(records: &Records) -> Result<(), StartError> {
        let folder = PathBuf::from(&records.folder);
        let fail = |error| StartError::file(&folder, error);
        let made = MadeFolder::make(&folder).map_err(fail)?;
        let is_empty = fs::read_dir(&folder).map_err(fail)?.next().is_none();
        drop(made);
        let reason = "it is not empty, and records of two runs do not mix";
        if is_empty { Ok(()) } else { Err(StartError::file(&folder, reason)) }
    }

    /// Writes records into the folder of `records`, which must not hold records yet.
    pub(crate) fn start(records: &Records, plan: &TargetPlan) -> Result<Recorder, StartError> {
        Recorder::check(records)?;
        let folder = PathBuf::from(&records.folder);
        fs::create_dir_all(&folder).map_err(|error| StartError::file(&folder, error))?;
        let digest = Sha256::digest(plan.to_toml().as_bytes());
        let plan_hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let provenance = Provenance { version: env!("CARGO_PKG_VERSION").into(), plan_hash };
        let (sender, receiver) = sync_channel(ROWS_MAX);
        let writer = ParquetWriter::new(FileParts::new(folder), &provenance).with_rows_per_part(ROWS_PER_PART);
        let thread = thread::Builder::new().name("records".into()).spawn(move || write(writer, &receiver));
        let writer = Some(thread.map_err(StartError::system("threads"))?);
        let (sample, tail) = (u64::from(records.sample), records.tail);
        Ok(Recorder { sample, tail, seen: 0, dropped: 0, rows: Some(sender), writer })
    }

    /// Looks at a completed request; calls `end` only if it needs the time.
    pub(crate) fn observe(&mut self, completion: &Completion, end: impl FnOnce() -> Time) {
        if completion.facts.transfer.is_none() {
            return;
        }
        let request = self.seen;
        self.seen += 1;
        let was_at_once = completion.facts.done == completion.facts.came && completion.facts.drive.is_none();
        let is_sampled = request.is_multiple_of(self.sample);
        if was_at_once && !is_sampled {
            return;
        }
        let end = end();
        let is_slow = end.saturating_since(completion.facts.came) >= self.tail;
        if let Some(row) = row(request, &completion.facts, end).filter(|_| is_sampled || is_slow) {
            let is_taken = self.rows.as_ref().is_some_and(|rows| rows.try_send(row).is_ok());
            self.dropped += u64::from(!is_taken);
        }
    }

    /// Rows that the writer could not take.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.rows = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been reported where it happened.
            let _ = writer.join();
        }
    }
}

fn write(mut writer: ParquetWriter<FileParts>, rows: &Receiver<Row>) {
    let written = rows.iter().try_for_each(|row| writer.row(&row)).and_then(|()| writer.finish().map(drop));
    if let Err(error) = written {
        tracing::error!(%error, "writing records stopped");
    }
}

/// A completed request as a row whose spans sum to its latency. `None` when it moved no data.
fn row(request: u64, facts: &Facts, end: Time) -> Option<Row> {
    let (operation, address, bytes) = facts.transfer?;
    let end = end.max(facts.came);
    Some(Row {
        request: RequestId(request),
        operation,
        source: NodeId(facts.controller.into()),
        target: NodeId(facts.backend.0),
        address,
        bytes: Bytes::new(bytes),
        outcome: Outcome::Finished,
        intended: facts.came,
        start: facts.came,
        end,
        unloaded: Span::ZERO,
        measured: true,
        spans: spans(facts, end),
    })
}

fn spans(facts: &Facts, end: Time) -> Spans {
    let mut spans = Spans::default();
    let total = end - facts.came;
    if let Some(drive) = facts.drive {
        spans.add(SpanKind::FlashWait, drive.wait);
        spans.add(SpanKind::CollectionWait, drive.collection_wait);
        spans.add(SpanKind::Flash, drive.service);
        // The model's times end when the answer is due; the rest is the loop's.
        spans.add(SpanKind::StorageQueue, total.saturating_sub(spans.total()));
    } else if facts.done > facts.came {
        let (taken_up, done) = (facts.taken_up.min(end), facts.done.min(end));
        spans.add(SpanKind::StorageQueue, taken_up - facts.came);
        spans.add(SpanKind::Flash, done.saturating_since(taken_up));
        spans.add(SpanKind::Stack, end - done);
    } else {
        spans.add(SpanKind::Memory, total);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::DriveTime;
    use base::Operation;
    use nvme::target::BackendId;
    use proptest::prelude::*;

    fn facts(came: u64, taken_up: u64, done: u64, drive: Option<DriveTime>) -> Facts {
        Facts {
            backend: BackendId(1),
            controller: 5,
            transfer: Some((Operation::Read, 4096, 512)),
            came: Time::ps(came),
            taken_up: Time::ps(came + taken_up),
            done: Time::ps(came + taken_up + done),
            drive,
        }
    }

    proptest! {
        #[test]
        fn every_picosecond_of_a_request_is_accounted_for(
            came in 0..1u64 << 50, taken_up in 0..1u64 << 30, done in 0..1u64 << 30, after in 0..1u64 << 30,
            wait in 0..1u64 << 30, collection_wait in 0..1u64 << 30, service in 0..1u64 << 30,
        ) {
            let end = Time::ps(came + taken_up + done + after);
            let plain = row(0, &facts(came, taken_up, done, None), end).expect("a read");
            prop_assert!(plain.adds_up() && (plain.source, plain.target) == (NodeId(5), NodeId(1)));
            prop_assert!(row(0, &facts(came, 0, 0, None), end).expect("a read").adds_up());
            let drive = DriveTime { wait: Span::ps(wait), collection_wait: Span::ps(collection_wait), service: Span::ps(service) };
            let due = Time::ps(came + wait + collection_wait + service + after);
            prop_assert!(row(0, &facts(came, 0, 0, Some(drive)), due).expect("a read").adds_up());
        }
    }

    #[test]
    fn one_of_so_many_is_kept_and_every_slow_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("rows");
        let records = Records { folder: place.display().to_string(), sample: 10, tail: Span::us(50) };
        let mut recorder = Recorder::start(&records, &TargetPlan::standard()).expect("it starts");
        for number in 0..100u64 {
            let took = if number == 33 { 60_000_000 } else { 1_000 };
            let facts = facts(number, 10, 10, None);
            let result = nvme::target::IoResult::bare(nvme::target::IoStatus::Done);
            let completion = Completion { tag: nvme::target::IoTag::of_bits(number), result, facts, due: Time::ZERO };
            recorder.observe(&completion, || Time::ps(number + took));
        }
        drop(recorder);
        let part = fs::File::open(place.join("part-00000.parquet")).expect("it was written");
        let rows = record::read_part("part", &part).expect("it is whole").rows;
        let requests: Vec<u64> = rows.iter().map(|row| row.request.0).collect();
        assert_eq!(requests, [0, 10, 20, 30, 33, 40, 50, 60, 70, 80, 90]);
        let error = Recorder::start(&records, &TargetPlan::standard()).err().expect("there are rows").to_string();
        assert!(error.ends_with("records of two runs do not mix"), "{error}");
    }
}
