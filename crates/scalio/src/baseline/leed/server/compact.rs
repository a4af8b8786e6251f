//! Compaction of both logs. It starts when little space is free and some can be gained, and never
//! waits for room that only it could free.
//!
//! Segments are moved without locks: the index accepts the new place only where it still has the
//! old one. Records are moved under the locks of the segments that list them, all requested at
//! once.

use super::{Holder, Operated, Server, Space, item_of, segment_in};
use crate::baseline::leed::ServerOut;
use crate::baseline::leed::log::Chunk;
use crate::{Content, Extent, FlashAnswer, FlashOperation, Page, Refusal, RequestId, Segment, SegmentPointer, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A chunk of segments in transit.
#[derive(Clone, Debug)]
pub(super) struct SegmentJob {
    chunk: Chunk,
    /// What lives in it, with where it lies; `None` until the chunk is read.
    found: Option<Vec<(SegmentPointer, Arc<Segment>)>>,
    /// Its destination; `None` while there is no room.
    run: Option<u64>,
}

/// Records with their sectors, each alone in its page.
type Records<V> = Vec<(u64, Arc<Page<V>>)>;

/// A chunk of records in transit.
#[derive(Clone, Debug)]
pub(super) struct RecordJob<V> {
    chunk: Chunk,
    /// Records of the chunk with their sectors, by the segments of their keys.
    candidates: BTreeMap<u32, Records<V>>,
    locks_missing: usize,
    /// Segments that came with their locks.
    handed_over: BTreeMap<u32, Arc<Segment>>,
    reads_missing: usize,
    /// Segments that list some of them.
    moving: Vec<Moving<V>>,
    /// Where the records go; `None` while there is no room.
    run: Option<u64>,
    is_run_written: bool,
    /// How many of `moving` have a place, and how many the index knows there.
    placed: usize,
    published: usize,
    /// The device failed it: it does nothing more, and its chunk stays as it is.
    is_abandoned: bool,
}

/// A locked segment that lists moved records.
#[derive(Clone, Debug)]
struct Moving<V> {
    segment: u32,
    listed: Segment,
    records: Vec<Arc<Page<V>>>,
    position: Option<u64>,
    is_written: bool,
    is_published: bool,
}

impl Space {
    /// Returns whether there is need to compact, and something to win.
    fn wants_compaction(&self) -> bool {
        let is_short = self.log.free() < u64::from(self.config.compact_below);
        is_short && self.log.used() > self.live && self.log.chunks() < self.config.chunks_at_once as usize
    }

    fn next_chunk(&mut self) -> Option<Chunk> {
        if !self.wants_compaction() {
            return None;
        }
        self.log.next_chunk(u64::from(self.config.chunk_sectors))
    }

    fn extent_of(&self, chunk: Chunk) -> Extent {
        self.extent(chunk.start, (chunk.end - chunk.start) as u32)
    }
}

impl<V: Value> Server<V> {
    pub(super) fn start_compaction(&mut self, out: &mut Vec<ServerOut<V>>) {
        if self.segment_job.is_none() {
            self.start_segment_job(out);
        }
        while self.start_record_job(out) {}
    }

    fn start_segment_job(&mut self, out: &mut Vec<ServerOut<V>>) {
        let Some(chunk) = self.segments.next_chunk() else { return };
        self.segment_job = Some(SegmentJob { chunk, found: None, run: None });
        let extent = self.segments.extent_of(chunk);
        let position = self.segments.log.begin_read(extent.sector);
        self.counters.compaction_reads += 1;
        self.operate(Operated::SegmentChunk { position }, FlashOperation::Scan { extent }, out);
    }

    pub(super) fn on_segment_chunk(&mut self, answer: FlashAnswer<V>) {
        let FlashAnswer::Scanned(contents) = answer else {
            self.has_failed = true;
            return;
        };
        let found = contents.into_iter().filter_map(|(sector, content)| match content {
            Content::Segment(segment) => self.pointer_to(sector, &segment).map(|pointer| (pointer, segment)),
            Content::Page(_) => None,
        });
        let found = found.collect();
        if let Some(job) = &mut self.segment_job {
            job.found = Some(found);
        }
    }

    /// What the index says of a segment, if it says that it lies at `sector`.
    fn pointer_to(&self, sector: u64, segment: &Segment) -> Option<SegmentPointer> {
        let is_mine = segment.block % self.config.devices == self.config.device && segment.block < self.config.blocks;
        let pointer = is_mine.then(|| self.index.get(self.segment_of(segment.block))).flatten()?;
        (pointer.extent.sector == sector && pointer.check(segment.block, segment).is_ok()).then_some(pointer)
    }

    /// Writes what lives in the chunk of segments that was read, as soon as there is room.
    pub(super) fn place_segment_run(&mut self, out: &mut Vec<ServerOut<V>>) {
        let Some(job) = self.segment_job.as_ref().filter(|job| job.run.is_none()) else { return };
        let Some(found) = &job.found else { return };
        let sectors: u32 = found.iter().map(|(pointer, _)| pointer.extent.sectors).sum();
        if sectors == 0 {
            return self.end_segment_job(0);
        }
        let Some(run) = self.segments.log.append(sectors.into(), true) else { return };
        let mut contents = Vec::with_capacity(found.len());
        let mut position = run;
        for (pointer, segment) in found {
            self.segments.log.begin_entry(position);
            contents.push((self.segments.log.sector_of(position), Content::Segment(segment.clone())));
            position += u64::from(pointer.extent.sectors);
        }
        let extent = self.segments.extent(run, sectors);
        self.segment_job.as_mut().expect("it was there").run = Some(run);
        self.write_run(Operated::SegmentRun, extent, contents, out);
    }

    fn write_run(
        &mut self,
        operated: Operated,
        extent: Extent,
        contents: Vec<(u64, Content<V>)>,
        out: &mut Vec<ServerOut<V>>,
    ) {
        self.counters.compaction_writes += 1;
        self.counters.moved += contents.len() as u64;
        let request = RequestId(self.operations.insert(operated) as u64);
        out.push(ServerOut::WriteRun { request, extent, contents });
    }

    pub(super) fn on_segment_run(&mut self, answer: FlashAnswer<V>) {
        if answer != FlashAnswer::Done {
            self.has_failed = true;
            return;
        }
        let job = self.segment_job.as_ref().expect("a run belongs to the job");
        let run = job.run.expect("it was written");
        let mut position = run;
        let mut moved = 0;
        for (old, segment) in job.found.clone().unwrap_or_default() {
            let place = self.segment_of(segment.block);
            if self.index.get(place) == Some(old) {
                let extent = self.segments.extent(position, old.extent.sectors);
                self.index.set(place, Some(SegmentPointer { extent, tag: old.tag }));
                moved += u64::from(old.extent.sectors);
            }
            position += u64::from(old.extent.sectors);
        }
        self.segments.log.known(run);
        self.end_segment_job(moved);
    }

    fn end_segment_job(&mut self, moved: u64) {
        if let Some(job) = self.segment_job.take() {
            self.counters.reclaimed_sectors += (job.chunk.end - job.chunk.start).saturating_sub(moved);
            self.segments.log.finish(job.chunk.start);
        }
    }

    /// Returns whether there was need to start one.
    fn start_record_job(&mut self, out: &mut Vec<ServerOut<V>>) -> bool {
        let Some(chunk) = self.records.next_chunk() else { return false };
        let job = self.record_jobs.insert(RecordJob {
            chunk,
            candidates: BTreeMap::new(),
            locks_missing: 0,
            handed_over: BTreeMap::new(),
            reads_missing: 0,
            moving: Vec::new(),
            run: None,
            is_run_written: false,
            placed: 0,
            published: 0,
            is_abandoned: false,
        });
        let extent = self.records.extent_of(chunk);
        let position = self.records.log.begin_read(extent.sector);
        self.counters.compaction_reads += 1;
        self.operate(Operated::RecordChunk { job, position }, FlashOperation::Scan { extent }, out);
        true
    }

    pub(super) fn on_record_chunk(&mut self, job: usize, answer: FlashAnswer<V>) {
        let FlashAnswer::Scanned(contents) = answer else { return self.abandon_job(job) };
        let mut candidates: BTreeMap<u32, Records<V>> = BTreeMap::new();
        for (sector, content) in contents {
            let Content::Page(page) = content else { continue };
            let Some(record) = page.records.first() else { continue };
            let block = record.key.place(self.config.blocks).block;
            if block % self.config.devices == self.config.device {
                candidates.entry(self.segment_of(block)).or_default().push((sector, page));
            }
        }
        let segments: Vec<u32> = candidates.keys().copied().collect();
        let state = &mut self.record_jobs[job];
        state.candidates = candidates;
        state.locks_missing = segments.len();
        if segments.is_empty() {
            return self.end_record_job(job);
        }
        segments.into_iter().for_each(|segment| self.lock(segment, Holder::Job(job)));
    }

    /// The job has one lock more, and perhaps its segment; with the last, it reads the others.
    pub(super) fn on_job_locked(
        &mut self,
        job: usize,
        segment: u32,
        listed: Option<Arc<Segment>>,
        out: &mut Vec<ServerOut<V>>,
    ) {
        let state = &mut self.record_jobs[job];
        state.handed_over.extend(listed.map(|listed| (segment, listed)));
        state.locks_missing -= 1;
        if state.locks_missing > 0 {
            return;
        }
        let segments: Vec<u32> = state.candidates.keys().copied().collect();
        state.reads_missing = segments.len();
        let mut handed_over = std::mem::take(&mut state.handed_over);
        for segment in segments {
            match (handed_over.remove(&segment), self.index.get(segment)) {
                (None, Some(pointer)) => self.read_for_job(job, segment, pointer, out),
                (listed, _) => self.on_job_listed(job, segment, listed),
            }
        }
    }

    fn read_for_job(&mut self, job: usize, segment: u32, pointer: SegmentPointer, out: &mut Vec<ServerOut<V>>) {
        let position = self.segments.log.begin_read(pointer.extent.sector);
        self.counters.compaction_reads += 1;
        self.read_segment(segment, pointer, Operated::JobSegment { job, segment, position }, out);
    }

    pub(super) fn on_job_segment(&mut self, job: usize, segment: u32, answer: FlashAnswer<V>) {
        match segment_in(answer) {
            Ok(listed) => self.on_job_listed(job, segment, Some(listed)),
            // Nobody can find what a corrupt segment lists.
            Err(Refusal::Corrupt) => {
                self.counters.corrupt += 1;
                self.on_job_listed(job, segment, None);
            }
            Err(_) => self.abandon_job(job),
        }
    }

    pub(super) fn is_abandoned(&self, job: usize) -> bool {
        self.record_jobs[job].is_abandoned
    }

    /// The device failed the job: nobody waits for its locks any longer.
    pub(super) fn abandon_job(&mut self, job: usize) {
        self.has_failed = true;
        let state = &mut self.record_jobs[job];
        state.is_abandoned = true;
        let (candidates, moving) = (std::mem::take(&mut state.candidates), std::mem::take(&mut state.moving));
        let unpublished = moving.iter().filter(|moving| !moving.is_published).map(|moving| moving.segment);
        let locked: Vec<u32> = candidates.into_keys().chain(unpublished).collect();
        locked.into_iter().for_each(|segment| self.unlock(segment, None));
    }

    fn on_job_listed(&mut self, job: usize, segment: u32, listed: Option<Arc<Segment>>) {
        let state = &mut self.record_jobs[job];
        state.reads_missing -= 1;
        let all_read = state.reads_missing == 0;
        let candidates = state.candidates.remove(&segment).unwrap_or_default();
        match listed.as_ref().and_then(|listed| moving(segment, listed, candidates)) {
            Some(moving) => state.moving.push(moving),
            None => self.unlock(segment, listed),
        }
        if !all_read {
            return;
        }
        if self.record_jobs[job].moving.is_empty() {
            return self.end_record_job(job);
        }
        self.waiting_jobs.push_back(job);
    }

    /// Writes the records that live, as soon as there is room, and lists them where they will be;
    /// `false` while there is none.
    pub(super) fn place_record_run(&mut self, job: usize, out: &mut Vec<ServerOut<V>>) -> bool {
        let pages = self.record_jobs[job].moving.iter().flat_map(|moving| &moving.records);
        let sectors: u32 = pages.map(|page| page.sectors()).sum();
        let Some(run) = self.records.log.append(sectors.into(), true) else { return false };
        let mut contents = Vec::new();
        let mut position = run;
        for moving in &mut self.record_jobs[job].moving {
            for page in &moving.records {
                self.records.log.begin_entry(position);
                let sector = self.records.log.sector_of(position);
                moving.listed.put(item_of(page, sector));
                contents.push((sector, Content::Page(page.clone())));
                position += u64::from(page.sectors());
            }
        }
        self.record_jobs[job].run = Some(run);
        let extent = self.records.extent(run, sectors);
        self.write_run(Operated::RecordRun { job }, extent, contents, out);
        self.waiting_for_segments.push_back(Holder::Job(job));
        true
    }

    pub(super) fn on_record_run(&mut self, job: usize, answer: FlashAnswer<V>) {
        if answer != FlashAnswer::Done {
            return self.abandon_job(job);
        }
        self.record_jobs[job].is_run_written = true;
        self.publish_moved(job);
    }

    /// Writes those of the job's segments for which there is room, as one where they lie in a row;
    /// `false` while some have none.
    pub(super) fn place_job_segments(&mut self, job: usize, out: &mut Vec<ServerOut<V>>) -> bool {
        let first = self.record_jobs[job].placed;
        while self.place_job_segment(job) {}
        let placed = self.record_jobs[job].placed;
        for (first, count) in self.rows(job, first, placed) {
            self.write_job_row(job, first, count, out);
        }
        placed == self.record_jobs[job].moving.len()
    }

    /// Room for the job's next segment; `false` when there is none, or no such segment.
    fn place_job_segment(&mut self, job: usize) -> bool {
        let next = self.record_jobs[job].placed;
        let Some(sectors) = self.record_jobs[job].moving.get(next).map(|moving| moving.listed.sectors()) else {
            return false;
        };
        if self.segments.claim(sectors, 0).is_err() {
            return false;
        }
        let Some(position) = self.segments.log.append(sectors.into(), false) else {
            self.segments.live -= u64::from(sectors);
            return false;
        };
        let sequence = self.next_sequence();
        let state = &mut self.record_jobs[job];
        state.moving[next].listed.sequence = sequence;
        state.moving[next].position = Some(position);
        state.placed += 1;
        true
    }

    /// Segments of a job that lie in a row, as (first, count).
    fn rows(&self, job: usize, first: usize, end: usize) -> Vec<(usize, usize)> {
        let mut rows: Vec<(usize, usize)> = Vec::new();
        let mut next = None;
        for (at, moving) in self.record_jobs[job].moving.iter().enumerate().take(end).skip(first) {
            let position = moving.position.expect("it has a place");
            match rows.last_mut() {
                Some((_, count)) if next == Some(position) => *count += 1,
                _ => rows.push((at, 1)),
            }
            next = Some(position + u64::from(moving.listed.sectors()));
        }
        rows
    }

    fn write_job_row(&mut self, job: usize, first: usize, count: usize, out: &mut Vec<ServerOut<V>>) {
        let row = &self.record_jobs[job].moving[first..first + count];
        let mut contents = Vec::with_capacity(count);
        let mut sectors = 0;
        for moving in row {
            let sector = self.segments.log.sector_of(moving.position.expect("it has a place"));
            contents.push((sector, Content::Segment(Arc::new(moving.listed.clone()))));
            sectors += moving.listed.sectors();
        }
        let extent = self.segments.extent(row[0].position.expect("it has a place"), sectors);
        self.write_run(Operated::SegmentRunOfJob { job, first, count }, extent, contents, out);
    }

    pub(super) fn on_job_run(&mut self, job: usize, first: usize, count: usize, answer: FlashAnswer<V>) {
        if answer != FlashAnswer::Done {
            return self.abandon_job(job);
        }
        for moving in &mut self.record_jobs[job].moving[first..first + count] {
            moving.is_written = true;
        }
        self.publish_moved(job);
    }

    /// Puts the index onto segments that are written, once the records are; the chunk is done with
    /// the last.
    fn publish_moved(&mut self, job: usize) {
        if !self.record_jobs[job].is_run_written {
            return;
        }
        for at in 0..self.record_jobs[job].moving.len() {
            let moving = &mut self.record_jobs[job].moving[at];
            if !moving.is_written || std::mem::replace(&mut moving.is_published, true) {
                continue;
            }
            let (segment, listed) = (moving.segment, Arc::new(moving.listed.clone()));
            let position = moving.position.expect("it was written");
            self.record_jobs[job].published += 1;
            self.publish(segment, &listed, position);
            self.unlock(segment, Some(listed));
        }
        if self.record_jobs[job].published == self.record_jobs[job].moving.len() {
            self.end_record_job(job);
        }
    }

    fn end_record_job(&mut self, job: usize) {
        let job = self.record_jobs.remove(job);
        if let Some(run) = job.run {
            self.records.log.known(run);
        }
        let pages = job.moving.iter().flat_map(|moving| &moving.records);
        let moved: u64 = pages.map(|page| u64::from(page.sectors())).sum();
        self.counters.reclaimed_sectors += (job.chunk.end - job.chunk.start).saturating_sub(moved);
        self.records.log.finish(job.chunk.start);
    }
}

/// A segment with those of the candidates that it lists; `None` where it lists none.
fn moving<V: Value>(segment: u32, listed: &Segment, candidates: Records<V>) -> Option<Moving<V>> {
    let is_listed = |(sector, page): &(u64, Arc<Page<V>>)| {
        let item = item_of(page, *sector);
        listed.find(&item.key).is_some_and(|found| found.record == item.record && found.sequence == item.sequence)
    };
    let records: Vec<_> = candidates.into_iter().filter(is_listed).map(|(_, page)| page).collect();
    let listed = listed.clone();
    (!records.is_empty()).then_some(Moving {
        segment,
        listed,
        records,
        position: None,
        is_written: false,
        is_published: false,
    })
}
