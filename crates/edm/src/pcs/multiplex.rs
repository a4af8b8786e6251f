//! Multiplexes memory blocks and frame blocks on one line, and separates them again (paper 3.2.3).
//!
//! [`Multiplexer`] chooses the block of each cycle. [`Demultiplexer`] removes the memory blocks,
//! replaces them by idles and holds a frame until its /T/, so that the decoder gets it in
//! consecutive cycles. Notifications and grants may be between any two blocks (with
//! [`Policy::None`], not inside a frame). Memory replaces idles, also in the gap between frames.
//!
//! # Owner of a data block
//!
//! /MD/ and /D/ look the same (paper 3.2). While only a message or only a frame is open the owner
//! is clear. While both are, the two ends follow the same rule, computed only from the blocks that
//! have been on the line:
//!
//! * [`Policy::Fair`]: data blocks take turns. The turn belongs to the class that did *not* have
//!   the last block; /N/, /G/ and /M*/ are memory's, /S/ and /T/ the frame's. An idle is a *pass*:
//!   it uses the turn of a class that has nothing ready.
//! * [`Policy::Strict`]: data blocks are memory's until /MT/.
//! * [`Policy::None`]: both are never open.
//!
//! Control blocks identify their class, so they need no turn.
//!
//! The cost is zero while both classes have blocks, since fairness alternates anyway, and at the
//! end of a message or a frame, since /MT/ and /T/ need no turn. Only when a class runs dry
//! *inside* its message or frame while the other is open too, `Fair` sends one idle for each data
//! block of the other class, and `Strict` sends idles until memory has a block again. A MAC never
//! runs dry inside a frame, and a host's message is in its buffer before it starts. A switch that
//! forwards a message cut-through from an interleaved line gets M, gap, M, gap, exactly the turns
//! of `Fair`.
//!
//! Rejected:
//!
//! * A marked /MD/ must be a control block, which costs a byte in eight.
//! * An announcement before each change of owner costs a block per change, half the line under fair
//!   alternation.
//! * A count of the blocks that an /MS/ announces gives the number of memory's blocks but not which
//!   they are.
//!
//! The policy is a property of the line: both ends must be given the same one.

use super::block::{Block, BlockError, Content};
use super::frame::{FRAME_BLOCKS_MAX, gap_blocks};
use super::header::NODE_MAX;
pub use super::line::Class;
use super::line::Line;
use super::memory::{MemoryError, encode_message};
use super::sequence::{Sequence, Step};
use crate::message::{Body, Message, MessageId};
use base::{BoundedQueue, Full, NodeId};
use std::collections::VecDeque;

/// Blocks of frames that may wait at the multiplexer: the back pressure to the MAC takes four
/// cycles (paper 3.2.3).
pub const FRAME_BUFFER_BLOCKS: usize = 4;

/// The longest gap between two frames, in blocks.
const GAP_BLOCKS_MAX: u64 = gap_blocks(7);

/// Priority when both classes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Block by block in turn; the paper's default.
    Fair,
    /// Memory whenever it has a block.
    Strict,
    /// No preemption: whole frames and whole messages in turn.
    None,
}

/// Reason why a block was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// The frame buffer is full: back pressure. The MAC keeps the block and offers it in the next
    /// cycle.
    #[error("the buffer of {FRAME_BUFFER_BLOCKS} frame blocks is full")]
    Full(Block),
    /// Not a block at all.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Not a block of a memory message, or out of sequence.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Not a block of a frame, or out of sequence.
    #[error("{got} offered {place} a frame")]
    Frame {
        /// Its name.
        got: &'static str,
        /// Inside or outside.
        place: &'static str,
    },
}

/// The three queues before the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// /N/ and /G/.
    Control,
    /// /M*/.
    Message,
    Frame,
}

/// The transmitting side: offer blocks, then call [`Multiplexer::next_block`] once a cycle.
#[derive(Clone, Debug)]
pub struct Multiplexer {
    policy: Policy,
    line: Line,
    /// Bounded by the grants that their owner holds, as are the messages' blocks: memory is never
    /// pushed back (paper 3.1.1).
    control: VecDeque<Block>,
    messages: VecDeque<Block>,
    frames: BoundedQueue<Block>,
    /// What has been offered so far, to refuse blocks out of sequence before they are on the line.
    offered_message: Sequence,
    offered_frame_open: bool,
    gap_left: u64,
}

impl Multiplexer {
    /// Nothing waits, the line is idle.
    pub fn new(policy: Policy) -> Multiplexer {
        Multiplexer {
            policy,
            line: Line::new(policy),
            control: VecDeque::new(),
            messages: VecDeque::new(),
            frames: BoundedQueue::new(FRAME_BUFFER_BLOCKS),
            offered_message: Sequence::default(),
            offered_frame_open: false,
            gap_left: 0,
        }
    }

    /// Queues a block of a message, a notification or a grant. A message may be offered block by
    /// block, as it comes.
    ///
    /// # Errors
    /// [`OfferError::Memory`] for any other block, and for one out of sequence. A refused block
    /// changes nothing.
    pub fn offer_memory(&mut self, block: Block) -> Result<(), OfferError> {
        let content = block.content()?;
        if matches!(content, Content::Notification(_) | Content::Grant(_)) {
            self.control.push_back(block);
            return Ok(());
        }
        let mut after = self.offered_message;
        if let (_, Some(fault)) = after.accept(content) {
            return Err(fault.into());
        }
        self.offered_message = after;
        self.messages.push_back(block);
        Ok(())
    }

    /// Queues an /MST/ in the middle of a message of which no more will come. The receiver sees a
    /// fault, and then it.
    ///
    /// # Errors
    /// [`OfferError::Memory`] for any other block. A refused block changes nothing.
    pub fn cut_message(&mut self, block: Block) -> Result<(), OfferError> {
        let content = block.content()?;
        let mut after = self.offered_message;
        match after.accept(content) {
            (Step::Single(..), _) => {
                self.offered_message = after;
                self.messages.push_back(block);
                Ok(())
            }
            (_, fault) => Err(fault.unwrap_or(MemoryError::NotMemory { got: content.name() }).into()),
        }
    }

    /// Ends the offered message, if it is not whole: no more of it will come, since the link is
    /// disabled or its network abandoned. Otherwise frames would wait for it, or pass every second
    /// block, for ever. The /MST/ is a NULL response from a node to itself, so for nobody. Returns
    /// whether there was such a message.
    pub fn end_message(&mut self) -> bool {
        let is_open = self.offered_message.is_open();
        if is_open {
            self.cut_message(null_for_nobody()).expect("a message of one block");
        }
        is_open
    }

    /// Queues a block of a frame. Idles are taken and forgotten: the multiplexer keeps the gap
    /// itself.
    ///
    /// # Errors
    /// [`OfferError::Full`] is back pressure; [`OfferError::Frame`] is a block that cannot come
    /// here.
    pub fn offer_frame(&mut self, block: Block) -> Result<(), OfferError> {
        let content = block.content()?;
        let open_after = match (content, self.offered_frame_open) {
            (Content::Idle, false) => return Ok(()),
            (Content::OrderedSet { .. }, false) | (Content::Terminate(_), true) => false,
            (Content::Start(_), false) | (Content::Data(_), true) => true,
            (other, open) => {
                return Err(OfferError::Frame { got: other.name(), place: if open { "inside" } else { "outside" } });
            }
        };
        self.frames.push(block).map_err(|Full(block)| OfferError::Full(block))?;
        self.offered_frame_open = open_after;
        Ok(())
    }

    /// The block of this cycle.
    pub fn next_block(&mut self) -> Block {
        let block = match self.choose() {
            Some(Lane::Control) => self.control.pop_front(),
            Some(Lane::Message) => self.messages.pop_front(),
            Some(Lane::Frame) => self.frames.pop(),
            None => None,
        }
        .unwrap_or(Block::IDLE);
        let content = block.content().expect("only blocks with a meaning were taken");
        self.line.observe(&content);
        self.gap_left = gap_after(&content, self.gap_left);
        block
    }

    /// Returns whether nothing waits and no gap is due.
    pub fn is_idle(&self) -> bool {
        self.control.is_empty() && self.messages.is_empty() && self.frames.is_empty() && self.gap_left == 0
    }

    /// Blocks that wait: of /N/ and /G/, of messages, of frames.
    pub fn waiting(&self) -> [usize; 3] {
        [self.control.len(), self.messages.len(), self.frames.len()]
    }

    /// The most frame blocks that ever waited at once.
    pub fn frame_buffer_highest(&self) -> usize {
        self.frames.highest()
    }

    fn choose(&self) -> Option<Lane> {
        match (self.memory_ready(), self.frame_ready().then_some(Lane::Frame)) {
            (Some(memory), Some(frame)) => match self.policy {
                Policy::Strict => Some(memory),
                Policy::Fair | Policy::None if self.line.turn() == Class::Memory => Some(memory),
                Policy::Fair | Policy::None => Some(frame),
            },
            (memory, frame) => memory.or(frame),
        }
    }

    fn memory_ready(&self) -> Option<Lane> {
        if self.policy == Policy::None && self.line.frame_open {
            return None;
        }
        if !self.control.is_empty() {
            return Some(Lane::Control);
        }
        let front = self.messages.front()?;
        self.admits(Class::Memory, front).then_some(Lane::Message)
    }

    fn frame_ready(&self) -> bool {
        if self.policy == Policy::None && self.line.message_open {
            return false;
        }
        self.frames.front().is_some_and(|front| {
            let gap_is_kept = self.line.frame_open || self.gap_left == 0;
            gap_is_kept && self.admits(Class::Frame, front)
        })
    }

    /// Returns whether the receiver would know that `block` is of `class`.
    fn admits(&self, class: Class, block: &Block) -> bool {
        block.sync == super::block::Sync::Control || self.line.owner_of_data() == Some(class)
    }
}

fn null_for_nobody() -> Block {
    let (nobody, body) = (NodeId(NODE_MAX), Body::ReadResponse { bytes: 0, last: true });
    let mut blocks = Vec::new();
    encode_message(&Message { source: nobody, target: nobody, id: MessageId(0), body }, &[], &mut blocks)
        .expect("the numbers fit");
    blocks[0]
}

/// The gap that is still due after this block: any block after /T/ shortens it, a memory block too.
fn gap_after(content: &Content, gap_left: u64) -> u64 {
    match content {
        Content::Terminate(tail) => gap_blocks(tail.bytes().len()),
        _ => gap_left.saturating_sub(1),
    }
}

/// Reason why a received block is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// 66 bits that are no block.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A memory block out of sequence, or a header that contradicts itself.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A data block while neither a message nor a frame is open.
    #[error("a data block outside any frame and any memory message")]
    DataOutside,
    /// /S/ (or /O/) before /T/: the open frame is dropped.
    #[error("{got} inside a frame: /T/ must come first")]
    FrameNotEnded {
        /// The block.
        got: &'static str,
    },
    /// /T/ without /S/.
    #[error("/T/ outside any frame: /S/ must come first")]
    EndWithoutStart,
    /// More blocks than the longest frame: it is dropped.
    #[error("a frame of more than {max} blocks")]
    FrameTooLong {
        /// The most.
        max: u64,
    },
    /// Frames came closer together than the gap between them allows for, and the buffer is full:
    /// this one is dropped.
    #[error("frames without the gap between them: the buffer of {max} blocks is full")]
    Overrun {
        /// Its capacity.
        max: u64,
    },
}

/// What one cycle of the receiver brings forth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The memory block that came in, for [`super::memory::Assembler`] or, of /N/ and /G/, for
    /// their decoders.
    pub memory: Option<Block>,
    /// The block for the frame decoder.
    pub frame: Block,
    /// What was wrong with the block that came in. It may come with a memory block: the start that
    /// ended another message.
    pub fault: Option<Fault>,
}

/// The frame that is coming in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// None.
    Closed,
    /// Its blocks are kept.
    Open,
    /// Too long: its blocks are dropped up to /T/.
    Dropping,
}

/// The receiving side: one block in, at most one memory block and exactly one frame block out, each
/// cycle.
#[derive(Clone, Debug)]
pub struct Demultiplexer {
    line: Line,
    sequence: Sequence,
    hold: Hold,
    /// The frame that is coming in, from /S/ on.
    assembling: Vec<Block>,
    /// Whole frames in transit to the decoder.
    released: VecDeque<Block>,
    gap_left: u64,
    buffered_highest: u64,
}

impl Demultiplexer {
    /// The most blocks in its buffers: the longest frame, and what comes in during the gap after
    /// the one before.
    pub const BUFFER_BLOCKS_MAX: u64 = FRAME_BLOCKS_MAX + GAP_BLOCKS_MAX;

    /// An idle line. The policy must be the transmitter's.
    pub fn new(policy: Policy) -> Demultiplexer {
        Demultiplexer {
            line: Line::new(policy),
            sequence: Sequence::default(),
            hold: Hold::Closed,
            assembling: Vec::new(),
            released: VecDeque::new(),
            gap_left: 0,
            buffered_highest: 0,
        }
    }

    /// One cycle, from the 66 bits on the line. Bits that are no block change nothing but are
    /// reported.
    #[inline]
    pub fn push_bits(&mut self, bits: u128) -> Received {
        // Most of a line: as `push` does it, without a look at what it cannot be.
        if bits == Block::IDLE.to_bits() && self.released.is_empty() {
            self.line.observe(&Content::Idle);
            self.gap_left = self.gap_left.saturating_sub(1);
            return Received { memory: None, frame: Block::IDLE, fault: None };
        }
        match Block::from_bits(bits) {
            Ok(block) => self.push(block),
            Err(error) => Received { memory: None, frame: self.release(), fault: Some(error.into()) },
        }
    }

    /// One cycle.
    pub fn push(&mut self, block: Block) -> Received {
        let (memory, fault) = match block.content() {
            Ok(content) => self.sort(block, content),
            Err(error) => (None, Some(error.into())),
        };
        self.buffered_highest = self.buffered_highest.max(self.buffered());
        Received { memory, frame: self.release(), fault }
    }

    /// Blocks in the buffers now.
    pub fn buffered(&self) -> u64 {
        (self.assembling.len() + self.released.len()) as u64
    }

    /// The most blocks that were ever in the buffers.
    pub fn buffered_highest(&self) -> u64 {
        self.buffered_highest
    }

    fn sort(&mut self, block: Block, content: Content) -> (Option<Block>, Option<Fault>) {
        let owner = self.line.owner_of_data();
        self.line.observe(&content);
        match (content, owner) {
            (Content::Idle, _) => (None, None),
            (Content::Notification(_) | Content::Grant(_), _) => (Some(block), None),
            (Content::MemoryStart(_) | Content::MemoryEnd(_) | Content::MemorySingle(_), _)
            | (Content::Data(_), Some(Class::Memory)) => self.message_block(block, content),
            (Content::Data(_), None) => (None, Some(Fault::DataOutside)),
            (Content::Data(_), Some(Class::Frame)) => (None, self.keep(block)),
            (Content::Start(_), _) => (None, self.start_frame(block)),
            (Content::Terminate(_), _) => (None, self.end_frame(block)),
            (Content::OrderedSet { .. }, _) => (None, self.ordered_set(block)),
        }
    }

    /// The header's count decides when a message is over, so that a lost /MT/ never claims the
    /// blocks of frames for long.
    fn message_block(&mut self, block: Block, content: Content) -> (Option<Block>, Option<Fault>) {
        let (step, fault) = self.sequence.accept(content);
        self.line.message_open = self.sequence.is_open();
        ((step != Step::Drop).then_some(block), fault.map(Fault::Memory))
    }

    fn start_frame(&mut self, block: Block) -> Option<Fault> {
        let fault = self.drop_unfinished("/S/");
        self.hold = Hold::Open;
        self.keep(block).or(fault)
    }

    fn ordered_set(&mut self, block: Block) -> Option<Fault> {
        self.line.frame_open = false;
        let fault = self.drop_unfinished("/O/");
        if self.buffered() < Self::BUFFER_BLOCKS_MAX {
            self.released.push_back(block);
        }
        fault
    }

    fn drop_unfinished(&mut self, got: &'static str) -> Option<Fault> {
        self.assembling.clear();
        let before = std::mem::replace(&mut self.hold, Hold::Closed);
        (before == Hold::Open).then_some(Fault::FrameNotEnded { got })
    }

    /// Keeps a block of the open frame while there is room for it.
    fn keep(&mut self, block: Block) -> Option<Fault> {
        if self.hold != Hold::Open {
            return None;
        }
        let fault = if self.assembling.len() as u64 == FRAME_BLOCKS_MAX {
            Fault::FrameTooLong { max: FRAME_BLOCKS_MAX }
        } else if self.buffered() == Self::BUFFER_BLOCKS_MAX {
            Fault::Overrun { max: Self::BUFFER_BLOCKS_MAX }
        } else {
            self.assembling.push(block);
            return None;
        };
        self.assembling.clear();
        self.hold = Hold::Dropping;
        Some(fault)
    }

    fn end_frame(&mut self, block: Block) -> Option<Fault> {
        if self.hold == Hold::Closed {
            return Some(Fault::EndWithoutStart);
        }
        let fault = self.keep(block);
        self.released.extend(self.assembling.drain(..));
        self.hold = Hold::Closed;
        fault
    }

    /// The block of this cycle for the decoder: frames back to back but for the gap, idles
    /// otherwise.
    fn release(&mut self) -> Block {
        if self.gap_left > 0 {
            self.gap_left -= 1;
            return Block::IDLE;
        }
        let block = self.released.pop_front().unwrap_or(Block::IDLE);
        if let Ok(content) = block.content() {
            self.gap_left = gap_after(&content, 0);
        }
        block
    }
}

#[cfg(test)]
mod tests;
