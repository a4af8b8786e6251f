//! Memory that is read and written word by word.

use base::{Stream, Time};
use scalio::layout::{SLOT_BYTES, SlotBytes, block_bytes, decode_block, encode_header, encode_payload, offset};
use scalio::{Block, BlockHeader, MemoryAnswer, MemoryOperation, RequestId, SlotWord, Token};
use std::collections::VecDeque;
use zerocopy::IntoBytes;

type Bytes = Vec<u8>;

/// An operation, and what of it is still to do.
pub struct Job {
    request: Option<RequestId>,
    block: u32,
    operation: MemoryOperation<Token>,
    /// Words yet to be touched, in rows that come one after the other; within a row in any order.
    rows: Option<VecDeque<Vec<usize>>>,
    read: Bytes,
}

impl Job {
    pub fn new(request: Option<RequestId>, block: u32, operation: MemoryOperation<Token>) -> Job {
        Job { request, block, operation, rows: None, read: Vec::new() }
    }
}

/// Jobs without an earlier one of the same block.
pub fn ready(jobs: &VecDeque<Job>) -> Vec<usize> {
    let first = |at: &usize| jobs.iter().take(*at).all(|earlier| earlier.block != jobs[*at].block);
    (0..jobs.len()).filter(first).collect()
}

pub struct Memory {
    bytes: Bytes,
    slots: u8,
}

impl Memory {
    pub fn new(blocks: u32, slots: u8) -> Memory {
        let mut memory = Memory { bytes: vec![0; blocks as usize * block_bytes(slots)], slots };
        (0..blocks).for_each(|block| memory.reset(block, BlockHeader::default()));
        memory
    }

    /// One step of a job; its answer when that was the last.
    pub fn progress(&mut self, job: &mut Job, random: &mut Stream) -> Option<(Option<RequestId>, MemoryAnswer<Token>)> {
        if job.rows.is_none() {
            job.rows = Some(self.rows(&job.operation));
            job.read = vec![0; block_bytes(self.slots)];
        }
        let rows = job.rows.as_mut()?;
        while rows.front().is_some_and(Vec::is_empty) {
            rows.pop_front();
        }
        let Some(row) = rows.front_mut() else {
            let answer = self.finish(job);
            return Some((job.request, answer));
        };
        let at = row.swap_remove(random.below(row.len() as u64) as usize);
        self.touch(job, at);
        None
    }

    /// Words that are read or written one by one.
    fn rows(&self, operation: &MemoryOperation<Token>) -> VecDeque<Vec<usize>> {
        let words = |from: usize, to: usize| (from / 8..to / 8).collect::<Vec<usize>>();
        let all = block_bytes(self.slots);
        let rows = match operation {
            MemoryOperation::ReadBlock => vec![words(0, all)],
            MemoryOperation::Check { slot } => vec![words(16, all), words(0, 16), vec![offset::word(*slot) / 8]],
            MemoryOperation::WritePayload { slot, .. } => {
                vec![words(offset::payload(*slot), offset::word(*slot) + SLOT_BYTES)]
            }
            MemoryOperation::StoreFlags { occupied, complete, lease, .. } => {
                vec![[occupied.map(|_| 0), complete.map(|_| 1), lease.map(|_| 2)].into_iter().flatten().collect()]
            }
            _ => Vec::new(),
        };
        rows.into()
    }

    fn touch(&mut self, job: &mut Job, at: usize) {
        let start = job.block as usize * block_bytes(self.slots);
        let place = start + at * 8..start + at * 8 + 8;
        match &job.operation {
            MemoryOperation::WritePayload { slot, payload } => {
                let view = encode_payload(payload);
                let from = at * 8 - offset::word(*slot);
                self.bytes[place].copy_from_slice(&view.as_bytes()[from..from + 8]);
            }
            MemoryOperation::StoreFlags { slot, occupied, complete, lease } => {
                let word = self.word(job.block, *slot);
                let word = match at {
                    0 => word.with_flags(*occupied, None),
                    1 => word.with_flags(None, *complete),
                    _ => word.with_lease(lease.unwrap_or(Time::ZERO)),
                };
                self.set_word(job.block, *slot, word);
            }
            _ => job.read[at * 8..at * 8 + 8].copy_from_slice(&self.bytes[place]),
        }
    }

    /// What is one step alone, and the answer.
    fn finish(&mut self, job: &Job) -> MemoryAnswer<Token> {
        let read = || decode_block::<Token>(&job.read);
        match &job.operation {
            MemoryOperation::ReadBlock => read().map_or(MemoryAnswer::Unreachable, MemoryAnswer::Block),
            MemoryOperation::Check { slot } => read().map_or(MemoryAnswer::Unreachable, |block: Block<Token>| {
                let word = block.slots[usize::from(*slot)].word;
                MemoryAnswer::Checked { word, block }
            }),
            MemoryOperation::Swap { slot, expected, new } => {
                let found = self.word(job.block, *slot);
                if found == *expected {
                    self.set_word(job.block, *slot, *new);
                }
                MemoryAnswer::Found(found)
            }
            MemoryOperation::Touch { slot, at } => {
                let start = self.place(job.block, offset::last_use(*slot));
                self.bytes[start..start + 8].copy_from_slice(&at.as_ps().to_le_bytes());
                MemoryAnswer::Done
            }
            MemoryOperation::Publish { segment } => {
                let header = encode_header(&BlockHeader { epoch: 0, segment: Some(*segment) });
                let start = self.place(job.block, 0);
                self.bytes[start..start + 8].copy_from_slice(&header.as_bytes()[..8]);
                MemoryAnswer::Done
            }
            MemoryOperation::Close => {
                let start = self.place(job.block, 0);
                self.bytes[start..start + 8].fill(0);
                MemoryAnswer::Done
            }
            MemoryOperation::Reset { header } => {
                self.reset(job.block, *header);
                MemoryAnswer::Done
            }
            MemoryOperation::WritePayload { .. } | MemoryOperation::StoreFlags { .. } => MemoryAnswer::Done,
        }
    }

    fn place(&self, block: u32, within: usize) -> usize {
        block as usize * block_bytes(self.slots) + within
    }
    fn word(&self, block: u32, slot: u8) -> SlotWord {
        let start = self.place(block, offset::word(slot));
        SlotWord(u64::from_le_bytes(self.bytes[start..start + 8].try_into().expect("eight bytes")))
    }
    fn set_word(&mut self, block: u32, slot: u8, word: SlotWord) {
        let start = self.place(block, offset::word(slot));
        self.bytes[start..start + 8].copy_from_slice(&word.0.to_le_bytes());
    }

    fn reset(&mut self, block: u32, header: BlockHeader) {
        let start = self.place(block, 0);
        let end = start + block_bytes(self.slots);
        self.bytes[start..end].fill(0);
        self.bytes[start..start + 16].copy_from_slice(encode_header(&header).as_bytes());
        for slot in 0..self.slots {
            self.set_word(block, slot, SlotWord::fresh(header.epoch));
        }
    }

    /// Memory that did not survive: until it is initialised again, its content is no valid slot.
    pub fn scramble(&mut self, device: u32, devices: u32) {
        let blocks = (self.bytes.len() / block_bytes(self.slots)) as u32;
        for block in (device..blocks).step_by(devices as usize) {
            let start = self.place(block, 0);
            let end = start + block_bytes(self.slots);
            self.bytes[start..end].fill(0);
        }
    }
}

const _: () = assert!(size_of::<SlotBytes>() == SLOT_BYTES);
