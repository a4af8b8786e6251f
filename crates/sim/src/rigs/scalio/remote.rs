//! Operations of clients on the index: from the call, by whatever carries them, to the box's memory
//! and back.

use super::asks::Owner;
use super::inputs::ToClient;
use super::torn_reads::{BlockRead, Found, State, Window};
use super::{InFlight, Now, ScalioRig, faults, sizes};
use base::{Span, Time};
use scalio::{Block, Change, Index, MemoryAnswer, MemoryOperation, RequestId, Token};

/// Value of a slot whose bytes are of two values, in the paper's protocol: nobody writes it.
const OF_TWO_VALUES: Token = Token { id: u64::MAX - 1, bytes: 8 };

/// A client's operation on the index.
#[derive(Clone, Debug)]
pub struct RemoteOperation {
    /// The request that it belongs to.
    pub owner: Owner,
    /// Who asks.
    pub client: u32,
    /// For the answer, if one is wanted.
    pub request: Option<RequestId>,
    /// On which block.
    pub block: u32,
    /// The operation.
    pub operation: MemoryOperation<Token>,
    /// Since when.
    pub since: Time,
}

/// What came of an operation that has reached memory.
#[derive(Clone, Debug)]
pub enum Touched {
    /// It was carried out.
    Answer(MemoryAnswer<Token>),
    /// A block is being read: what is found shows when the answer is seen.
    Read {
        /// The read.
        read: BlockRead,
        /// The box's life that it is of.
        life: u32,
    },
}

impl ScalioRig {
    /// A client asks.
    pub(super) fn begin_remote(&mut self, remote: RemoteOperation, context: Now<'_, '_>) {
        if let Some(fabric) = &self.fabric {
            let at = context.now + fabric.post_takes();
            return self.post(at, InFlight::Submission(remote), context);
        }
        let (messages, bytes) = sizes::carried(&remote.operation);
        let at = (0..messages).map(|_| self.hardware.post(context.now, remote.client, bytes)).max();
        let at = at.expect("an operation has a message");
        self.post(at, InFlight::Verb(remote), context);
    }

    /// An operation has come to the box's adapter: it takes effect now, or its reads begin.
    pub(super) fn verb(&mut self, remote: RemoteOperation, context: Now<'_, '_>) {
        let RemoteOperation { owner, client, request, .. } = remote;
        let now = context.now;
        self.claim_awaited_way(owner, request, remote.since, now);
        let (verb, bytes) = sizes::of_verb(&remote.operation, self.slots());
        self.counts.verbs += u64::from(sizes::carried(&remote.operation).0);
        let mut touched = self.touch(now, &remote, self.hardware.memory_read());
        if let Touched::Read { read, .. } = &mut touched {
            read_in_order(read, self.hardware.memory_read());
        }
        let at = match (&touched, &remote.operation) {
            (Touched::Answer(MemoryAnswer::Unreachable), _) => now + faults::GIVE_UP,
            (_, MemoryOperation::Check { .. }) => {
                self.hardware.serve_in_order(now, &[bytes, sizes::BLOCK_HEADER, sizes::WORD])
            }
            _ => self.hardware.serve(now, verb, bytes),
        };
        if let Some(request) = request {
            self.post(at, InFlight::Answer { owner, client, request, touched, since: now }, context);
        }
    }

    /// An operation reaches memory. Reads take `span` from now on; of a check only the first is
    /// begun.
    pub(super) fn touch(&mut self, now: Time, remote: &RemoteOperation, span: Span) -> Touched {
        let (block, operation) = (remote.block, &remote.operation);
        let slot = match operation {
            MemoryOperation::ReadBlock => None,
            MemoryOperation::Check { slot } => Some(*slot),
            _ => return Touched::Answer(self.memory(now, block, operation.clone())),
        };
        let is_awaited = !self.state.is_unreachable(block, operation) && remote.request.is_some();
        let (Some(torn_reads), Some(index), true) = (&mut self.store.torn_reads, &self.store.index, is_awaited) else {
            return Touched::Answer(self.memory(now, block, operation.clone()));
        };
        torn_reads.open(now, block);
        // It is looked at when the read is closed.
        index.prefetch(block);
        let read = BlockRead { block, slot, lines: Window::after(now, None, span), header: None, word: None };
        Touched::Read { read, life: self.state.life }
    }

    /// What an operation has found, now that its client sees it.
    pub(super) fn settled(&mut self, touched: Touched) -> MemoryAnswer<Token> {
        let (read, life) = match touched {
            Touched::Answer(answer) => return answer,
            Touched::Read { read, life } => (read, life),
        };
        let (Some(torn_reads), Some(index)) = (&mut self.store.torn_reads, &mut self.store.index) else {
            return MemoryAnswer::Unreachable;
        };
        let seen = torn_reads.close(&read, index);
        if life != self.state.life {
            return MemoryAnswer::Unreachable;
        }
        let Some(seen) = seen else {
            let answer = read_now(index, &read);
            if self.wire_check {
                sizes::check_block(&answer);
            }
            return answer;
        };
        let block = match seen.found {
            Found::Whole(State { header, slots }) => header.map(|header| Block { header, slots }),
            Found::Mixed(bytes) => self.store.protocol.decode(&bytes, &OF_TWO_VALUES),
        };
        MemoryAnswer::of_read(block, seen.header, seen.word)
    }

    /// Carries an operation out.
    pub(super) fn memory(&mut self, now: Time, block: u32, operation: MemoryOperation<Token>) -> MemoryAnswer<Token> {
        let Some(index) = &mut self.store.index else { return MemoryAnswer::Unreachable };
        if self.state.is_unreachable(block, &operation) {
            return MemoryAnswer::Unreachable;
        }
        let change = index.change(block, &operation);
        if let (Some(torn_reads), Some(_)) = (&mut self.store.torn_reads, change) {
            torn_reads.changes(now, block, index);
        }
        if matches!(operation, MemoryOperation::Swap { .. }) {
            self.counts.swaps += 1;
            self.counts.swaps_failed += u64::from(change.is_none());
        }
        let answer = index.carry_out(block, operation);
        match (&mut self.fabric, change) {
            (Some(fabric), Some(Change::Word(slot))) => fabric.mirror(index, block, slot..slot + 1),
            (Some(fabric), Some(Change::All)) => fabric.mirror(index, block, 0..u8::MAX),
            _ => {}
        }
        answer
    }

    /// How much of an answer's way is the memory's.
    pub(super) fn memory_takes(&self, input: &ToClient) -> Span {
        if let Some(fabric) = &self.fabric {
            return fabric.memory_takes();
        }
        let reads = if let ToClient::Memory { answer: MemoryAnswer::Checked { .. }, .. } = input { 3 } else { 1 };
        self.hardware.memory_read() * reads
    }
}

/// Of a check: the header, then the word, each when the memory has answered the read before.
fn read_in_order(read: &mut BlockRead, span: Span) {
    if read.slot.is_some() {
        let header = Window::after(read.lines.until, None, span);
        (read.header, read.word) = (Some(header), Some(Window::after(header.until, None, span)));
    }
}

/// A block that nobody has changed since its read began.
fn read_now(index: &mut Index<Token>, read: &BlockRead) -> MemoryAnswer<Token> {
    let operation = read.slot.map_or(MemoryOperation::ReadBlock, |slot| MemoryOperation::Check { slot });
    index.carry_out(read.block, operation)
}
