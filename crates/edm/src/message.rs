//! The messages of EDM and the fields of its control blocks (paper 2.3, 3.1.4, 3.2).

use base::NodeId;

/// Identifies a message of one ordered pair of nodes (8 bits on the wire; the paper, 3.1.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u8);

/// The modify operation of an RMWREQ. Arguments are 64-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Modify {
    /// Stores `new` if the word equals `expected`; the response is one byte, 1 if it was stored.
    CompareAndSwap {
        /// What the word must hold.
        expected: u64,
        /// What is stored then.
        new: u64,
    },
    /// Adds (wrapping); the response is the old word, 8 bytes.
    FetchAndAdd {
        /// The added value.
        addend: u64,
    },
    /// Stores `new`; the response is the old word, 8 bytes.
    Swap {
        /// The stored value.
        new: u64,
    },
}

impl Modify {
    /// Bytes of the RRES that answers it: the switch infers the demand from the opcode (paper
    /// 3.1.1).
    pub const fn response_bytes(self) -> u32 {
        match self {
            Modify::CompareAndSwap { .. } => 1,
            Modify::FetchAndAdd { .. } | Modify::Swap { .. } => 8,
        }
    }
}

/// What a memory message is, with the fields of that kind. Payload bytes travel beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// Read request: `bytes` from `address` at the target. No payload.
    ReadRequest {
        /// Address at the memory node.
        address: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// One chunk of a write: `bytes` of payload for `address`; self-describing, so that the memory
    /// node keeps no state for it.
    WriteRequest {
        /// Address of this chunk at the memory node.
        address: u64,
        /// Payload of this chunk.
        bytes: u32,
        /// Whether it is the last chunk of its message.
        last: bool,
    },
    /// Atomic read-modify-write of the word at `address`. No payload beside the arguments.
    ReadModifyWrite {
        /// Address at the memory node.
        address: u64,
        /// The operation.
        modify: Modify,
    },
    /// One chunk of a response. Zero bytes and `last`: the NULL response.
    ReadResponse {
        /// Payload of this chunk.
        bytes: u32,
        /// Whether it is the last chunk of its message.
        last: bool,
    },
}

/// A memory message on a wire: one /MS/ ... /MT/ or one /MST/.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// The sender.
    pub source: NodeId,
    /// The receiver.
    pub target: NodeId,
    /// The message's number between these two; a response carries that of its request.
    pub id: MessageId,
    /// The content.
    pub body: Body,
}

/// A demand notification, /N/: "I have `bytes` for `target`" (paper 3.1.4). One of zero bytes
/// withdraws what is left of the demand for `target` with this id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Notification {
    /// The destination; the port identifies the sender.
    pub target: NodeId,
    /// The message's number between these two.
    pub id: MessageId,
    /// Bytes of the whole message, or of all messages of a batch; zero: there is nothing left of
    /// it.
    pub bytes: u32,
    /// How many messages the batch holds, 1 to 16.
    pub batch: u8,
}

/// A grant, /G/: "send `bytes` of message `id` to `target`" (paper 3.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// The destination of the chunk.
    pub target: NodeId,
    /// The message's number.
    pub id: MessageId,
    /// Bytes of the chunk.
    pub bytes: u16,
}
