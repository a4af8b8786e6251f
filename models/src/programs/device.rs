//! A device that writes and reads sector by sector, and may lose unflushed data.

use super::world::Input;
use base::Stream;
use scalio::layout::{Seal, decode_head, decode_record, decode_segment, encode_content, scan, zone_kind};
use scalio::{
    ClientIn, Corrupt, Extent, FlashAnswer, FlashOperation, RequestId, SegmentPointer, ServerIn, Token, record_bytes,
};
use std::collections::BTreeMap;

pub const ZONE_SECTORS: u32 = 16;
const SECTOR: usize = 512;

struct Job {
    /// Which client; `None`: the server.
    place: Option<usize>,
    request: RequestId,
    operation: FlashOperation<Token>,
    /// Sectors yet to be touched, counted from the first.
    left: Vec<u32>,
    bytes: Vec<u8>,
}

pub struct Device {
    durable: Vec<u8>,
    cached: BTreeMap<u64, [u8; SECTOR]>,
    jobs: Vec<Job>,
}

impl Device {
    pub fn new(zones: u32) -> Device {
        Device { durable: vec![0; (zones * ZONE_SECTORS) as usize * SECTOR], cached: BTreeMap::new(), jobs: Vec::new() }
    }
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty()
    }

    pub fn ask(&mut self, place: Option<usize>, request: RequestId, operation: FlashOperation<Token>) {
        let extent = operation.extent();
        let left = (0..extent.map_or(0, |extent| extent.sectors)).collect();
        let bytes = match &operation {
            FlashOperation::Write { content, .. } => encode_content(content, Seal::default()),
            _ => vec![0; extent.map_or(0, |extent| extent.sectors as usize * SECTOR)],
        };
        self.jobs.push(Job { place, request, operation, left, bytes });
    }

    /// One step of some job.
    pub fn progress(&mut self, random: &mut Stream, is_volatile: bool) -> Option<(Option<usize>, Input)> {
        if self.jobs.is_empty() {
            return None;
        }
        let at = random.below(self.jobs.len() as u64) as usize;
        let job = &mut self.jobs[at];
        // A whole zone in one go: nobody writes to one that is listed or forgotten.
        let is_whole = matches!(job.operation, FlashOperation::List { .. } | FlashOperation::Trim { .. });
        let steps = if is_whole { job.left.len() } else { job.left.len().min(1) };
        for _ in 0..steps {
            let sector = job.left.swap_remove(random.below(job.left.len() as u64) as usize);
            let place = job.operation.extent().expect("only what has an extent has sectors").sector + u64::from(sector);
            let piece = &mut job.bytes[sector as usize * SECTOR..(sector as usize + 1) * SECTOR];
            match (&job.operation, is_volatile) {
                (FlashOperation::Write { .. } | FlashOperation::Trim { .. }, true) => {
                    self.cached.insert(place, piece.try_into().expect("a sector"));
                }
                (FlashOperation::Write { .. } | FlashOperation::Trim { .. }, false) => {
                    self.durable[place as usize * SECTOR..][..SECTOR].copy_from_slice(piece)
                }
                _ => piece.copy_from_slice(sector_of(&self.durable, &self.cached, place)),
            }
        }
        if steps > 0 && !self.jobs[at].left.is_empty() {
            return None;
        }
        let job = self.jobs.swap_remove(at);
        let answer = self.answer(&job);
        let input = match job.place {
            Some(_) => Input::Client(ClientIn::Flash { request: job.request, answer }),
            None => Input::Server(ServerIn::Flash { request: job.request, answer }),
        };
        Some((job.place, input))
    }

    fn answer(&mut self, job: &Job) -> FlashAnswer<Token> {
        match &job.operation {
            FlashOperation::ReadSegment { .. } => {
                FlashAnswer::Segment(decode_segment(&job.bytes, Seal::default()).map(Into::into))
            }
            FlashOperation::ReadRecord { item } => FlashAnswer::Record(
                job.bytes
                    .get(item.record.within()..)
                    .ok_or(Corrupt::Foreign { what: "sector" })
                    .and_then(|bytes| decode_record(bytes, Seal::default())),
            ),
            FlashOperation::ReadHead { item } => {
                FlashAnswer::Head(decode_head(item, job.bytes.get(item.record.within()..).unwrap_or(&[])))
            }
            FlashOperation::ReadKind { .. } => FlashAnswer::Kind(zone_kind(&job.bytes, Seal::default())),
            FlashOperation::Scan { extent } => FlashAnswer::Scanned(scan(*extent, &job.bytes, Seal::default()).found),
            FlashOperation::List { extent } => FlashAnswer::Listed(scan(*extent, &job.bytes, Seal::default()).found),
            FlashOperation::Flush => {
                self.flush(|_| true);
                FlashAnswer::Done
            }
            FlashOperation::Write { .. } | FlashOperation::Trim { .. } => FlashAnswer::Done,
        }
    }

    fn flush(&mut self, mut keep: impl FnMut(u64) -> bool) {
        for (sector, bytes) in std::mem::take(&mut self.cached) {
            if keep(sector) {
                self.durable[sector as usize * SECTOR..][..SECTOR].copy_from_slice(&bytes);
            }
        }
    }

    /// Cancels the server's requests; any unflushed sector may be kept, and any sector of a zone
    /// that was about to be forgotten may be zeros.
    pub fn crash(&mut self, random: &mut Stream) {
        let cancelled = self.jobs.extract_if(.., |job| job.place.is_none());
        let trims = cancelled.filter(|job| matches!(job.operation, FlashOperation::Trim { .. }));
        for Extent { sector, sectors } in trims.filter_map(|job| job.operation.extent()).collect::<Vec<_>>() {
            let half = (0..u64::from(sectors)).filter(|_| random.below(2) == 0);
            self.cached.extend(half.map(|at| (sector + at, [0; SECTOR])));
        }
        self.flush(|_| random.below(2) == 0);
    }

    /// Bytes of a segment and of what it lists.
    pub fn live_of(&self, pointer: SegmentPointer) -> u64 {
        let Extent { sector, sectors } = pointer.extent;
        let bytes: Vec<u8> = (0..u64::from(sectors))
            .flat_map(|at| sector_of(&self.durable, &self.cached, sector + at).to_vec())
            .collect();
        let segment = decode_segment(&bytes, Seal::default()).expect("a published segment is whole");
        let records: u32 = segment.items.iter().map(|item| record_bytes(item.value_bytes)).sum();
        u64::from(segment.sectors() * SECTOR as u32 + records)
    }
}

fn sector_of<'a>(durable: &'a [u8], cached: &'a BTreeMap<u64, [u8; SECTOR]>, sector: u64) -> &'a [u8] {
    cached.get(&sector).map_or(&durable[sector as usize * SECTOR..][..SECTOR], |bytes| &bytes[..])
}
