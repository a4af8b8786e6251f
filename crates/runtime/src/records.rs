//! Records of a live role: rows in the simulator's columns, for a sample of all requests and for
//! every slow one.
//!
//! A role numbers its requests and hands rows over; a thread of its own writes them. No request
//! waits for its record.

use crate::draft::MadeFolder;
use crate::error::StartError;
use crate::parts::FileParts;
use base::{RequestId, Span};
use record::{ParquetWriter, Provenance, Row, Sink, SinkError};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Rows that wait for the writer. More are dropped and counted.
const ROWS_MAX: usize = 65_536;
/// Rows that a killed process may lose, beside those that wait.
const ROWS_PER_PART: usize = 16_384;
/// The time whose rows a killed process may lose: a part is written after so long, full or not.
const PART_AFTER: Duration = Duration::from_secs(60);

/// Which requests leave a row, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// The folder, which is made. Each start of a role has a folder of its own there.
    pub folder: PathBuf,
    /// The inverse of the share of requests that are kept, at least 1.
    pub sample: u64,
    /// Every request that takes at least this long is kept besides.
    pub tail: Span,
}

/// Makes a folder for this start of the role `name`: the first of `NAME.1`, `NAME.2` and so on that
/// is not there. Of two roles that start at the same time, each has its own.
fn claim(folder: &Path, name: &str) -> Result<PathBuf, StartError> {
    fs::create_dir_all(folder).map_err(|error| StartError::file(folder, error))?;
    for number in 1..u32::MAX {
        let place = folder.join(format!("{name}.{number}"));
        match fs::create_dir(&place) {
            Ok(()) => return Ok(place),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StartError::file(&place, error)),
        }
    }
    Err(StartError::file(folder, "it has folders of too many starts"))
}

/// Numbers the requests of a role and hands rows to a thread. It may be cloned for the threads of a
/// role; the last one that is dropped writes the rest.
#[derive(Clone)]
pub struct Recorder(Arc<Desk>);

struct Desk {
    folder: PathBuf,
    sample: u64,
    tail: Span,
    seen: AtomicU64,
    dropped: AtomicU64,
    rows: Option<SyncSender<Row>>,
    writer: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Checks that records can go to `folder`, and changes nothing there.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    pub fn check(folder: &Path) -> Result<(), StartError> {
        MadeFolder::make(folder).map(drop).map_err(|error| StartError::file(folder, error))
    }

    /// Writes records of the role `name`, into a folder of this start: `NAME.1` first. `plan` is a
    /// text that says all that the role is.
    ///
    /// # Errors
    /// Those of [`Self::check`], or when the system has no more threads.
    pub fn start(records: &Records, name: &str, plan: &str) -> Result<Recorder, StartError> {
        let folder = claim(&records.folder, name)?;
        let plan_hash = Sha256::digest(plan.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let provenance = Provenance { version: env!("CARGO_PKG_VERSION").into(), plan_hash };
        let parts = FileParts::new(folder.clone());
        let writer = ParquetWriter::new(parts, &provenance).with_rows_per_part(ROWS_PER_PART);
        let (sender, receiver) = sync_channel(ROWS_MAX);
        let thread = thread::Builder::new().name("records".into()).spawn(move || write(writer, &receiver, PART_AFTER));
        let writer = Some(thread.map_err(StartError::system("threads"))?);
        let (sample, tail) = (records.sample.max(1), records.tail);
        let (seen, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Recorder(Arc::new(Desk { folder, sample, tail, seen, dropped, rows: Some(sender), writer })))
    }

    /// The folder of this start.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// The next request's number, from 0.
    pub fn number(&self) -> RequestId {
        RequestId(self.0.seen.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether a request leaves a row however long it takes.
    pub fn is_sampled(&self, request: RequestId) -> bool {
        request.0.is_multiple_of(self.0.sample)
    }

    /// Hands a row over, if its request is sampled or slow.
    pub fn take(&self, row: Row) {
        if self.is_sampled(row.request) || row.latency() >= self.0.tail {
            let is_taken = self.0.rows.as_ref().is_some_and(|rows| rows.try_send(row).is_ok());
            self.0.dropped.fetch_add(u64::from(!is_taken), Ordering::Relaxed);
        }
    }

    /// Counts a request whose row cannot be made.
    pub fn lose(&self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Rows that the writer could not take, or that could not be made.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.rows = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been reported where it happened.
            let _ = writer.join();
        }
        // One with rows stays.
        let _ = fs::remove_dir(&self.folder);
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "the records lack rows");
        }
    }
}

fn write(mut writer: ParquetWriter<FileParts>, rows: &Receiver<Row>, part_after: Duration) {
    if let Err(error) = write_all(&mut writer, rows, part_after) {
        tracing::error!(%error, "writing records stopped");
    }
}

/// Writes rows until nobody sends any more. A part that does not fill ends `part_after` its first
/// row. Without rows there is no part: a role that did not start can be started again.
fn write_all(
    writer: &mut ParquetWriter<FileParts>,
    rows: &Receiver<Row>,
    part_after: Duration,
) -> Result<(), SinkError> {
    let (mut due, mut has_rows): (Option<Instant>, bool) = (None, false);
    loop {
        let wait = due.map_or(part_after, |due| due.saturating_duration_since(Instant::now()));
        let end = match rows.recv_timeout(wait) {
            Ok(row) => {
                has_rows = true;
                let parts = writer.written().parts;
                writer.row(&row)?;
                let is_whole = writer.written().parts > parts;
                due = if is_whole { None } else { due.or_else(|| Some(Instant::now() + part_after)) };
                due.is_some_and(|due| due <= Instant::now())
            }
            Err(RecvTimeoutError::Timeout) => due.is_some(),
            Err(RecvTimeoutError::Disconnected) if has_rows => return writer.finish().map(drop),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        if end {
            writer.finish()?;
            due = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Bytes, NodeId, Operation, Time};
    use record::{Outcome, Spans, part_name, read_part};

    fn row(request: u64, took: u64) -> Row {
        Row {
            request: RequestId(request),
            operation: Operation::Read,
            source: NodeId(0),
            target: NodeId(1),
            address: 0,
            bytes: Bytes::new(64),
            outcome: Outcome::Finished,
            intended: Time::ZERO,
            start: Time::ZERO,
            end: Time::ps(took),
            unloaded: Span::ZERO,
            measured: true,
            spans: Spans::default(),
        }
    }

    fn requests(folder: &Path, part: u32) -> Vec<u64> {
        let file = fs::File::open(folder.join(part_name(part))).expect("it was written");
        let rows = read_part("part", &file).expect("it is whole").rows;
        rows.iter().map(|row| row.request.0).collect()
    }

    fn records(folder: &Path) -> Records {
        Records { folder: folder.into(), sample: 10, tail: Span::us(50) }
    }

    #[test]
    fn one_of_so_many_is_kept_and_every_slow_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = records(&folder.path().join("rows"));
        let recorder = Recorder::start(&records, "role", "").expect("it starts");
        let place = recorder.folder().to_owned();
        for _ in 0..100 {
            let number = recorder.number();
            let took = if number.0 == 33 { Span::us(50) } else { Span::us(50) - Span::ps(1) };
            recorder.take(row(number.0, took.as_ps()));
        }
        let other = recorder.clone();
        drop(recorder);
        assert_eq!(other.number(), RequestId(100));
        drop(other);
        assert_eq!(requests(&place, 0), [0, 10, 20, 30, 33, 40, 50, 60, 70, 80, 90]);
    }

    #[test]
    fn each_start_has_a_folder_of_its_own_and_one_without_requests_leaves_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records { sample: 1, ..records(folder.path()) };
        let start = || Recorder::start(&records, "role", "").expect("it starts");
        for _ in 0..2 {
            assert_eq!(start().folder(), folder.path().join("role.1"));
        }
        assert!(!folder.path().join("role.1").exists());
        let (one, other) = (start(), start());
        assert_eq!(other.folder(), folder.path().join("role.2"), "both have no rows yet");
        one.take(row(one.number().0, 1));
        drop((one, other));
        assert_eq!(requests(&folder.path().join("role.1"), 0), [0]);
        assert_eq!(start().folder(), folder.path().join("role.2"));
    }

    #[test]
    fn roles_that_start_at_the_same_time_share_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = records(folder.path());
        let start = || Recorder::start(&records, "role", "").expect("it starts");
        let all: Vec<Recorder> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        let places: std::collections::BTreeSet<&Path> = all.iter().map(Recorder::folder).collect();
        assert_eq!(places.len(), 16);
    }

    #[test]
    fn rows_that_nobody_can_write_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records { sample: 1, ..records(&folder.path().join("rows")) };
        let recorder = Recorder::start(&records, "role", "").expect("it starts");
        fs::remove_dir(recorder.folder()).expect("nothing is there yet");
        let mut count = 0;
        while recorder.dropped() == 0 {
            assert!(count < 100 * ROWS_MAX as u64, "the writer takes rows that it cannot write");
            recorder.take(row(recorder.number().0, 1));
            count += 1;
        }
    }

    #[test]
    fn a_part_that_does_not_fill_is_written_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = ParquetWriter::new(FileParts::new(folder.path().into()), &Provenance::default());
        let (sender, receiver) = sync_channel(8);
        let thread = thread::spawn(move || write(writer, &receiver, Duration::from_millis(5)));
        for part in 0..3u32 {
            sender.send(row(part.into(), 1)).expect("it is taken");
            while !folder.path().join(part_name(part)).exists() {
                thread::sleep(Duration::from_millis(1));
            }
        }
        drop(sender);
        thread.join().expect("it does not panic");
        for part in 0..3 {
            assert_eq!(requests(folder.path(), part), [u64::from(part)]);
        }
        assert!(!folder.path().join(part_name(3)).exists(), "there were no more rows");
    }
}
