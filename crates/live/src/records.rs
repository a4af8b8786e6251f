//! Records of a live target: a row per request in the simulator's columns, for a sample of all
//! requests and for every slow one.

use crate::backend::{Completion, Facts};
use crate::error::StartError;
use base::{Bytes, NodeId, RequestId, Span, Time};
use nvme::target::IoStatus;
use plan::target::{Records, TargetPlan};
use record::{Outcome, Row, SpanKind, Spans};
use runtime::records;

/// Chooses rows of all loops and hands them to a thread that writes them. Dropping the last writes
/// the rest.
#[derive(Clone)]
pub(crate) struct Recorder(records::Recorder);

impl Recorder {
    /// Checks that records can go to the folder of `records`, and changes nothing there.
    pub(crate) fn check(records: &Records) -> Result<(), StartError> {
        records::Recorder::check(records.folder.as_ref())
    }

    /// Writes records into a folder of this start in the folder of `records`: `target.1` first.
    pub(crate) fn start(records: &Records, plan: &TargetPlan) -> Result<Recorder, StartError> {
        let Records { folder, sample, tail } = records;
        let records = records::Records { folder: folder.into(), sample: (*sample).into(), tail: *tail };
        records::Recorder::start(&records, "target", &plan.to_toml()).map(Recorder)
    }

    /// Looks at a completed request; calls `end` only if it needs the time.
    pub(crate) fn observe(&self, completion: &Completion, end: impl FnOnce() -> Time) {
        if completion.facts.transfer.is_none() {
            return;
        }
        let request = self.0.number();
        let was_at_once = completion.facts.done == completion.facts.came && completion.facts.drive.is_none();
        if was_at_once && !self.0.is_sampled(request) {
            return;
        }
        let is_done = completion.result.status == IoStatus::Done;
        let outcome = if is_done { Outcome::Finished } else { Outcome::Rejected };
        if let Some(row) = row(request, &completion.facts, outcome, end()) {
            self.0.take(row);
        }
    }

    /// Rows that the writer could not take.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}

/// A completed request as a row whose spans sum to its latency. `None` when it moved no data.
fn row(request: RequestId, facts: &Facts, outcome: Outcome, end: Time) -> Option<Row> {
    let (operation, address, bytes) = facts.transfer?;
    let end = end.max(facts.came);
    Some(Row {
        request,
        operation,
        source: NodeId(facts.controller.into()),
        target: NodeId(facts.backend.0),
        address,
        bytes: Bytes::new(bytes),
        outcome,
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
            let row = |facts, end| row(RequestId(0), &facts, Outcome::Finished, end).expect("a read");
            let plain = row(facts(came, taken_up, done, None), end);
            prop_assert!(plain.adds_up() && (plain.source, plain.target) == (NodeId(5), NodeId(1)));
            prop_assert!(row(facts(came, 0, 0, None), end).adds_up());
            let drive = DriveTime { wait: Span::ps(wait), collection_wait: Span::ps(collection_wait), service: Span::ps(service) };
            let due = Time::ps(came + wait + collection_wait + service + after);
            prop_assert!(row(facts(came, 0, 0, Some(drive)), due).adds_up());
        }
    }

    #[test]
    fn what_failed_is_rejected_and_what_moves_no_data_leaves_no_row() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("rows");
        let records = Records { folder: place.display().to_string(), sample: 1, tail: Span::us(50) };
        let recorder = Recorder::start(&records, &TargetPlan::standard()).expect("it starts");
        let observe = |status, facts| {
            let result = nvme::target::IoResult::bare(status);
            let completion = Completion { tag: nvme::target::IoTag::of_bits(1), result, facts, due: Time::ZERO };
            recorder.observe(&completion, || Time::ps(1_000));
        };
        observe(IoStatus::Done, facts(0, 10, 10, None));
        observe(IoStatus::Done, Facts { transfer: None, ..facts(0, 10, 10, None) });
        observe(IoStatus::ReadError, facts(0, 10, 10, None));
        drop(recorder);
        let part = std::fs::File::open(place.join("target.1/part-00000.parquet")).expect("it was written");
        let rows = record::read_part("part", &part).expect("it is whole").rows;
        let all: Vec<(u64, Outcome)> = rows.iter().map(|row| (row.request.0, row.outcome)).collect();
        assert_eq!(all, [(0, Outcome::Finished), (1, Outcome::Rejected)]);
    }
}
