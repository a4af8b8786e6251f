//! A swap while it is carried out (RackBlox, 3.6), see [`SwapProgress`].

#[cfg(test)]
mod tests;

use super::WearError;
use std::collections::{BTreeMap, BTreeSet};

/// One of the two places of a swap, and the content that was there before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The first.
    One,
    /// The second.
    Other,
}

/// A logical block: as much of one content as a flash block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SwapBlock {
    /// Its content, by the side where that was before the swap.
    pub content: Side,
    /// Its place in the content, from 0.
    pub index: u32,
}

/// What is to be swapped. Durable: a swap resumes with the plan that it began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapPlan {
    /// Blocks of the content of [`Side::One`].
    pub one_blocks: u32,
    /// Blocks of the content of [`Side::Other`].
    pub other_blocks: u32,
    /// Blocks of each content that move together: both sides need this many free ones, and memory
    /// holds twice as many.
    pub batch: u32,
    /// How often one batch is tried; then the swap stops where it is, which is a state like any
    /// other.
    pub attempts_max: u32,
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapStage {
    /// Copies that do not count are erased; all requests are served.
    Clearing,
    /// Requests to the batch are held, and those that were underway end.
    Pausing,
    /// The batch is read into memory.
    Reading,
    /// It is written to its new places.
    Writing,
    /// The record of its new places becomes durable.
    Committing,
    /// Every block has changed places.
    Done,
    /// A batch has failed too often: blocks before it have changed places, the others have not.
    Stopped,
}

/// What the caller is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapAction {
    /// Read a block into memory.
    Read {
        /// The block.
        block: SwapBlock,
        /// Its place.
        from: Side,
    },
    /// Write a block from memory to free flash.
    Write {
        /// The block.
        block: SwapBlock,
        /// The destination.
        to: Side,
    },
    /// Make this number durable: blocks with a smaller index lie on the side that is not their
    /// content's. The memory of the batch is free then.
    Commit {
        /// For [`SwapProgress::resume`].
        moved: u32,
    },
    /// Erase what one side has of a block, if it has anything: that copy does not count.
    Erase {
        /// The block.
        block: SwapBlock,
        /// The on.
        on: Side,
    },
    /// Serve a request that was held.
    Serve {
        /// Its name, given to [`SwapProgress::admit`].
        ticket: u64,
        /// What it is about.
        block: SwapBlock,
        /// Where that lies now.
        on: Side,
    },
}

/// Reports of the caller. Unrequested ones are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapEvent {
    /// A block is in memory.
    Read(SwapBlock),
    /// A block is in its new place.
    Written(SwapBlock),
    /// A block could not be read or written. The remaining operations of its batch are cancelled,
    /// and end before the erases that follow.
    Failed(SwapBlock),
    /// The record is durable.
    Committed,
    /// A copy is gone, or its flash block has gone bad and is never read again.
    Erased(SwapBlock),
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Serve it now, on this side.
    Serve(Side),
    /// It waits for a [`SwapAction::Serve`].
    Held,
    /// Neither content has this block.
    NoSuchBlock,
}

/// A swap in progress (RackBlox, 3.6): the contents of two drives, or of two vSSDs, change places,
/// a batch of blocks at a time.
///
/// The caller's side, in order of use:
///
/// * [`SwapProgress::new`], or [`SwapProgress::resume`] after a crash; then
///   [`start`](SwapProgress::start).
/// * [`admit`](SwapProgress::admit) each request to either content and [`end`](SwapProgress::end)
///   it when it is done, also those in progress when the swap starts.
/// * Execute each [`SwapAction`] and report it with [`on_event`](SwapProgress::on_event). Flash
///   serves client requests first: the paper gives them a higher priority than a swap's.
///
/// Why nothing is lost: a batch is written to free blocks beside the old ones, nothing writes to it
/// meanwhile, and the one record that [`SwapAction::Commit`] makes durable changes the place of the
/// whole batch atomically. Before it the old copies are valid, after it the new ones, and the
/// invalid copies are erased before the next batch begins, also after a crash. Only that one number
/// has to survive; held requests were not answered, and are repeated.
#[derive(Clone, Debug)]
pub struct SwapProgress {
    plan: SwapPlan,
    stage: SwapStage,
    /// Blocks with a smaller index lie on the side that is not their content's.
    moved: u32,
    attempts: u32,
    /// Blocks whose read, write or erase has not ended.
    pending: BTreeSet<SwapBlock>,
    /// Requests underway.
    underway: BTreeMap<SwapBlock, u32>,
    /// Requests that wait, in their order.
    held: Vec<(u64, SwapBlock)>,
}

impl Side {
    /// The other one.
    pub fn opposite(self) -> Side {
        match self {
            Side::One => Side::Other,
            Side::Other => Side::One,
        }
    }
}

impl SwapPlan {
    fn check(&self) -> Result<(), WearError> {
        WearError::check(self.batch > 0, "batch", 0, "at least one block is needed")?;
        WearError::check(self.attempts_max > 0, "attempts_max", 0, "at least one is needed")
    }
    /// Blocks of the longer content.
    fn blocks(&self) -> u32 {
        self.one_blocks.max(self.other_blocks)
    }
    fn has(&self, block: SwapBlock) -> bool {
        block.index < if block.content == Side::One { self.one_blocks } else { self.other_blocks }
    }
    /// Where the batch ends that begins at `start`.
    fn end_of(&self, start: u32) -> u32 {
        start.saturating_add(self.batch).min(self.blocks())
    }
    /// The blocks of both contents from an index to another.
    fn blocks_in(self, start: u32, end: u32) -> impl Iterator<Item = SwapBlock> {
        let both = |index| [Side::One, Side::Other].map(|content| SwapBlock { content, index });
        (start..end).flat_map(both).filter(move |block| self.has(*block))
    }
}

/// Commands.
impl SwapProgress {
    /// A swap of which nothing has happened. Fails without a batch or an attempt.
    pub fn new(plan: SwapPlan) -> Result<SwapProgress, WearError> {
        SwapProgress::resume(plan, 0)
    }
    /// A swap that a crash has interrupted, from the number that was last made durable (0: none
    /// was). Fails as `new` does, and for a number that the plan never makes durable.
    pub fn resume(plan: SwapPlan, moved: u32) -> Result<SwapProgress, WearError> {
        plan.check()?;
        let is_end_of_batch = moved.is_multiple_of(plan.batch) || moved == plan.blocks();
        let allowed = "a multiple of the batch up to the longer content's blocks, or these, are allowed";
        WearError::check(moved <= plan.blocks() && is_end_of_batch, "moved", moved, allowed)?;
        Ok(SwapProgress {
            plan,
            stage: SwapStage::Clearing,
            moved,
            attempts: 0,
            pending: BTreeSet::new(),
            underway: BTreeMap::new(),
            held: Vec::new(),
        })
    }
    /// Starts: first erases what a crash may have left of the batches on both sides of the last
    /// record.
    pub fn start(&mut self, out: &mut Vec<SwapAction>) {
        let last = self.moved.saturating_sub(1) / self.plan.batch * self.plan.batch;
        let end = self.plan.end_of(self.moved);
        self.clear(last, end, out);
        self.go_on(out);
    }
    /// A request to a block wants to be served. Each that is let through is to be
    /// [ended](SwapProgress::end).
    pub fn admit(&mut self, block: SwapBlock, ticket: u64) -> Admission {
        if !self.plan.has(block) {
            return Admission::NoSuchBlock;
        }
        if self.is_paused(block) {
            self.held.push((ticket, block));
            return Admission::Held;
        }
        *self.underway.entry(block).or_default() += 1;
        Admission::Serve(self.side_of(block))
    }
    /// A request that was served has ended.
    pub fn end(&mut self, block: SwapBlock, out: &mut Vec<SwapAction>) {
        if let Some(count) = self.underway.get_mut(&block) {
            *count -= 1;
            if *count == 0 {
                self.underway.remove(&block);
            }
        }
        self.go_on(out);
    }
    /// A requested operation has completed.
    pub fn on_event(&mut self, event: SwapEvent, out: &mut Vec<SwapAction>) {
        match (self.stage, event) {
            (SwapStage::Reading, SwapEvent::Read(block))
            | (SwapStage::Writing, SwapEvent::Written(block))
            | (SwapStage::Clearing, SwapEvent::Erased(block)) => {
                self.pending.remove(&block);
            }
            (SwapStage::Reading | SwapStage::Writing, SwapEvent::Failed(block)) if self.pending.contains(&block) => {
                self.give_up_batch(out);
            }
            (SwapStage::Committing, SwapEvent::Committed) => self.finish_batch(out),
            _ => return,
        }
        self.go_on(out);
    }
}

/// Questions.
impl SwapProgress {
    /// How far it is.
    pub fn stage(&self) -> SwapStage {
        self.stage
    }
    /// Returns whether nothing more will happen.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, SwapStage::Done | SwapStage::Stopped)
    }
    /// Blocks with a smaller index have changed places.
    pub fn moved(&self) -> u32 {
        self.moved
    }
    /// Where a block is read and written.
    pub fn side_of(&self, block: SwapBlock) -> Side {
        if block.index < self.moved { block.content.opposite() } else { block.content }
    }
    /// Requests that wait.
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

impl SwapProgress {
    fn is_paused(&self, block: SwapBlock) -> bool {
        use SwapStage::{Committing, Pausing, Reading, Writing};
        let is_batch_paused = matches!(self.stage, Pausing | Reading | Writing | Committing);
        is_batch_paused && (self.moved..self.plan.end_of(self.moved)).contains(&block.index)
    }
    fn batch(&self) -> impl Iterator<Item = SwapBlock> + use<> {
        self.plan.blocks_in(self.moved, self.plan.end_of(self.moved))
    }
    /// Enters stages as long as nothing has to be waited for.
    fn go_on(&mut self, out: &mut Vec<SwapAction>) {
        while self.pending.is_empty() && self.enter_next(out) {}
    }
    fn enter_next(&mut self, out: &mut Vec<SwapAction>) -> bool {
        match self.stage {
            SwapStage::Clearing => self.stage = self.after_clearing(),
            SwapStage::Pausing if self.batch().all(|block| !self.underway.contains_key(&block)) => self.read(out),
            SwapStage::Reading => self.write(out),
            SwapStage::Writing => {
                self.stage = SwapStage::Committing;
                out.push(SwapAction::Commit { moved: self.plan.end_of(self.moved) });
            }
            SwapStage::Pausing | SwapStage::Committing | SwapStage::Done | SwapStage::Stopped => return false,
        }
        true
    }
    fn after_clearing(&self) -> SwapStage {
        if self.moved == self.plan.blocks() {
            SwapStage::Done
        } else if self.attempts == self.plan.attempts_max {
            SwapStage::Stopped
        } else {
            SwapStage::Pausing
        }
    }
    fn read(&mut self, out: &mut Vec<SwapAction>) {
        self.stage = SwapStage::Reading;
        self.pending = self.batch().collect();
        out.extend(self.batch().map(|block| SwapAction::Read { block, from: block.content }));
    }
    fn write(&mut self, out: &mut Vec<SwapAction>) {
        self.stage = SwapStage::Writing;
        self.pending = self.batch().collect();
        out.extend(self.batch().map(|block| SwapAction::Write { block, to: block.content.opposite() }));
    }
    /// The old places count again.
    fn give_up_batch(&mut self, out: &mut Vec<SwapAction>) {
        self.attempts += 1;
        self.clear(self.moved, self.plan.end_of(self.moved), out);
        self.serve_held(out);
    }
    /// The new places count.
    fn finish_batch(&mut self, out: &mut Vec<SwapAction>) {
        let start = self.moved;
        self.moved = self.plan.end_of(start);
        self.attempts = 0;
        self.clear(start, self.moved, out);
        self.serve_held(out);
    }
    /// Erases the copies that do not count, of blocks from an index to another.
    fn clear(&mut self, start: u32, end: u32, out: &mut Vec<SwapAction>) {
        self.stage = SwapStage::Clearing;
        self.pending = self.plan.blocks_in(start, end).collect();
        let erase = |block: &SwapBlock| SwapAction::Erase { block: *block, on: self.side_of(*block).opposite() };
        out.extend(self.pending.iter().map(erase));
    }
    fn serve_held(&mut self, out: &mut Vec<SwapAction>) {
        for (ticket, block) in std::mem::take(&mut self.held) {
            *self.underway.entry(block).or_default() += 1;
            out.push(SwapAction::Serve { ticket, block, on: self.side_of(block) });
        }
    }
}
