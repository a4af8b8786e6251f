//! What is between two places.
//!
//! A large rack has tens of thousands, and each is read once, long after it was written. Their
//! total size decides whether the state of the rack stays in the cache. So one is kept in half a
//! cache line, without the enums that it was made of. It is four whole words: small fields beside
//! each other would be read together right after they were written one by one, and a core waits for
//! that.

use base::NodeId;
use edm::pcs::memory as encoded;
use edm::{Body, Grant, Message, MessageId, Modify, Notification, Tag, Wire};

/// One thing on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    pub(super) kept: Kept,
    /// The second argument of a compare-and-swap, which alone has one.
    pub(super) second_argument: u64,
}

/// All of a [`Flight`] that most have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) address: u64,
    /// The word of a chunk, or the (first) argument of a read-modify-write.
    pub(super) word: u64,
    /// The tag, and above it the bytes.
    pub(super) share: u64,
    /// The other fields, from [`SOURCE_AT`] on.
    pub(super) label: u64,
}

/// In [`Kept::label`]: who sends it; of a grant, to whom it goes. Nodes are at most 512.
const SOURCE_AT: u32 = 0;
const TARGET_AT: u32 = 16;
/// The message's number.
const ID_AT: u32 = 32;
/// A [`Kind::code`].
const CODE_AT: u32 = 40;
const PLANE_AT: u32 = 48;
/// Set if the host at the end of the link is the message's target, not its source.
pub(super) const AT_TARGET: u64 = 1 << 49;

/// What travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An /N/ from a host to the switch; its address holds how many messages it announces.
    Notification,
    /// A /G/ from the switch.
    Grant,
    /// A chunk of a WREQ.
    Write,
    /// The last chunk of a WREQ.
    WriteEnd,
    /// A chunk of an RRES.
    Response,
    /// The last chunk of an RRES.
    ResponseEnd,
    /// An RREQ or RMWREQ.
    Request(Stage, Asked),
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From its host to the switch.
    Sent,
    /// From the switch to the memory node.
    Granted,
    /// In the memory node, while its memory reads.
    Reading,
}

/// What a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Bytes.
    Read,
    /// [`Modify::CompareAndSwap`].
    CompareAndSwap,
    /// [`Modify::FetchAndAdd`].
    FetchAndAdd,
    /// [`Modify::Swap`].
    Swap,
}

/// Codes of chunks.
const WRITE: u64 = 2;
const RESPONSE_END: u64 = 5;
/// Codes of requests: from here on, four a stage, one for each that may be asked.
const REQUEST: u64 = 8;

impl Kind {
    #[inline(always)]
    fn code(self) -> u64 {
        match self {
            Kind::Notification => 0,
            Kind::Grant => 1,
            Kind::Write => WRITE,
            Kind::WriteEnd => 3,
            Kind::Response => 4,
            Kind::ResponseEnd => RESPONSE_END,
            Kind::Request(stage, asked) => REQUEST + 4 * stage as u64 + asked as u64,
        }
    }
    #[inline(always)]
    fn of(code: u64) -> Kind {
        match code {
            0 => Kind::Notification,
            1 => Kind::Grant,
            WRITE => Kind::Write,
            3 => Kind::WriteEnd,
            4 => Kind::Response,
            RESPONSE_END => Kind::ResponseEnd,
            _ => Kind::Request(Stage::of((code - REQUEST) / 4), Asked::of((code - REQUEST) % 4)),
        }
    }
}

impl Stage {
    #[inline(always)]
    fn of(number: u64) -> Stage {
        match number {
            0 => Stage::Sent,
            1 => Stage::Granted,
            _ => Stage::Reading,
        }
    }
}

impl Asked {
    #[inline(always)]
    fn of(number: u64) -> Asked {
        match number {
            0 => Asked::Read,
            1 => Asked::CompareAndSwap,
            2 => Asked::FetchAndAdd,
            _ => Asked::Swap,
        }
    }
}

impl Kept {
    #[inline(always)]
    fn field(&self, at: u32) -> u16 {
        (self.label >> at) as u16
    }
    #[inline(always)]
    fn code(&self) -> u64 {
        self.label >> CODE_AT & 0xff
    }
    #[inline(always)]
    pub(super) fn tag(&self) -> Tag {
        Tag(self.share as u32)
    }
    #[inline(always)]
    fn bytes(&self) -> u32 {
        (self.share >> 32) as u32
    }
    #[inline(always)]
    pub(super) fn source(&self) -> NodeId {
        NodeId(u32::from(self.field(SOURCE_AT)))
    }
    #[inline(always)]
    pub(super) fn target(&self) -> NodeId {
        NodeId(u32::from(self.field(TARGET_AT)))
    }
    #[inline(always)]
    pub(super) fn is_at_target(&self) -> bool {
        self.label & AT_TARGET != 0
    }
    fn with(self, address: u64, word: u64, bytes: u32) -> Kept {
        Kept { address, word, share: self.share | u64::from(bytes) << 32, ..self }
    }
}

/// How a flight is made.
impl Flight {
    /// What a host sends up by `plane`. Only chunks have a word.
    #[inline]
    pub fn sent(plane: usize, port: NodeId, what: &Wire, word: u64, tag: Tag) -> Flight {
        match what {
            Wire::Notification(said) => Flight::notification(plane, port, said, tag),
            Wire::Memory(message) => Flight::of(plane, message, word, tag, Stage::Sent),
        }
    }
    /// A /G/ that a switch sends down.
    #[inline]
    pub fn granting(plane: usize, to: NodeId, grant: Grant, tag: Tag) -> Flight {
        let flight = Flight::between(plane, to, grant.target, grant.id, Kind::Grant, tag);
        Flight { kept: flight.kept.with(0, 0, u32::from(grant.bytes)), ..flight }
    }
    /// A buffered request that a switch sends down to its memory node.
    #[inline]
    pub fn request(plane: usize, message: &Message, tag: Tag) -> Flight {
        Flight::of(plane, message, 0, tag, Stage::Granted).to_target()
    }
    /// A request in its memory node.
    pub fn reading(message: &Message, tag: Tag) -> Flight {
        Flight::of(0, message, 0, tag, Stage::Reading).to_target()
    }
    /// Sent on to the target of its message.
    #[inline]
    pub fn to_target(mut self) -> Flight {
        self.kept.label |= AT_TARGET;
        self
    }

    /// The same by another plane, before it is sent down.
    #[inline]
    pub fn by_plane(mut self, plane: usize) -> Flight {
        self.kept.label = self.kept.label & !(AT_TARGET | 1 << PLANE_AT) | (plane as u64) << PLANE_AT;
        self
    }

    fn notification(plane: usize, port: NodeId, said: &Notification, tag: Tag) -> Flight {
        let flight = Flight::between(plane, port, said.target, said.id, Kind::Notification, tag);
        Flight { kept: flight.kept.with(u64::from(said.batch), 0, said.bytes), ..flight }
    }

    #[inline]
    fn of(plane: usize, message: &Message, word: u64, tag: Tag, stage: Stage) -> Flight {
        let (kind, address, bytes) = match message.body {
            Body::ReadRequest { address, bytes } => (Kind::Request(stage, Asked::Read), address, bytes),
            Body::WriteRequest { address, bytes, last: false } => (Kind::Write, address, bytes),
            Body::WriteRequest { address, bytes, last: true } => (Kind::WriteEnd, address, bytes),
            Body::ReadResponse { bytes, last: false } => (Kind::Response, 0, bytes),
            Body::ReadResponse { bytes, last: true } => (Kind::ResponseEnd, 0, bytes),
            Body::ReadModifyWrite { .. } => return Flight::of_modify(plane, message, tag, stage),
        };
        let flight = Flight::between(plane, message.source, message.target, message.id, kind, tag);
        Flight { kept: flight.kept.with(address, word, bytes), ..flight }
    }

    #[cold]
    fn of_modify(plane: usize, message: &Message, tag: Tag, stage: Stage) -> Flight {
        let Body::ReadModifyWrite { address, modify } = message.body else { unreachable!("the caller has looked") };
        let (asked, word, second_argument) = match modify {
            Modify::CompareAndSwap { expected, new } => (Asked::CompareAndSwap, expected, new),
            Modify::FetchAndAdd { addend } => (Asked::FetchAndAdd, addend, 0),
            Modify::Swap { new } => (Asked::Swap, new, 0),
        };
        let kind = Kind::Request(stage, asked);
        let flight = Flight::between(plane, message.source, message.target, message.id, kind, tag);
        Flight { kept: flight.kept.with(address, word, 0), second_argument }
    }

    #[inline]
    fn between(plane: usize, source: NodeId, target: NodeId, id: MessageId, kind: Kind, tag: Tag) -> Flight {
        let ends = u64::from(source.0 as u16) << SOURCE_AT | u64::from(target.0 as u16) << TARGET_AT;
        let label = ends | u64::from(id.0) << ID_AT | kind.code() << CODE_AT | (plane as u64) << PLANE_AT;
        Flight { kept: Kept { address: 0, word: 0, share: u64::from(tag.0), label }, second_argument: 0 }
    }
}

/// What is in a flight.
impl Flight {
    /// What travels.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::of(self.kept.code())
    }
    /// The request that it belongs to.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.kept.tag()
    }
    /// By which switch.
    #[inline]
    pub fn plane(&self) -> usize {
        (self.kept.label >> PLANE_AT & 1) as usize
    }
    /// The host at the end of the link that it is on.
    #[inline]
    pub fn node(&self) -> NodeId {
        if self.kept.is_at_target() { self.target() } else { self.source() }
    }
    /// Payload of up to eight bytes.
    #[inline]
    pub fn word(&self) -> u64 {
        self.kept.word
    }
    /// Whether it is a chunk of a WREQ or RRES.
    #[inline]
    pub fn is_data(&self) -> bool {
        (WRITE..=RESPONSE_END).contains(&self.kept.code())
    }
    /// How many 66-bit blocks it makes.
    #[inline]
    pub fn blocks(&self) -> u64 {
        match self.kind() {
            Kind::Notification => encoded::NOTIFICATION_BLOCKS,
            Kind::Grant => encoded::GRANT_BLOCKS,
            Kind::Write | Kind::WriteEnd => encoded::write_blocks(self.bytes()),
            Kind::Response | Kind::ResponseEnd => encoded::response_blocks(self.bytes()),
            Kind::Request(_, asked) => encoded::message_blocks(&self.request_body(asked)),
        }
    }
    /// The memory message that it is.
    ///
    /// # Panics
    /// If it is a /N/ or a /G/.
    #[inline]
    pub fn message(&self) -> Message {
        let (address, bytes) = (self.kept.address, self.bytes());
        let body = match self.kind() {
            Kind::Write => Body::WriteRequest { address, bytes, last: false },
            Kind::WriteEnd => Body::WriteRequest { address, bytes, last: true },
            Kind::Response => Body::ReadResponse { bytes, last: false },
            Kind::ResponseEnd => Body::ReadResponse { bytes, last: true },
            Kind::Request(_, asked) => self.request_body(asked),
            Kind::Notification | Kind::Grant => unreachable!("only messages are asked for their message"),
        };
        Message { source: self.source(), target: self.target(), id: self.id(), body }
    }
    /// The notification that it is.
    #[inline]
    pub fn said(&self) -> Notification {
        debug_assert_eq!(self.kind(), Kind::Notification);
        let batch = self.kept.address as u8;
        Notification { target: self.target(), id: self.id(), bytes: self.bytes(), batch }
    }
    /// The grant that it is.
    #[inline]
    pub fn grant(&self) -> Grant {
        debug_assert_eq!(self.kind(), Kind::Grant);
        Grant { target: self.target(), id: self.id(), bytes: self.bytes() as u16 }
    }
    /// The message's number between the two.
    #[inline]
    pub fn id(&self) -> MessageId {
        MessageId((self.kept.label >> ID_AT) as u8)
    }
    /// Whether it is a grant for a write: those have the top bit of their number set.
    #[inline]
    pub fn is_for_write(&self) -> bool {
        self.kind() == Kind::Grant && self.id().0 & 0x80 != 0
    }
    /// What it asks for, announces, permits or carries.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.kept.bytes()
    }
    /// Who sends it; of a grant, to whom it goes.
    #[inline]
    pub fn source(&self) -> NodeId {
        self.kept.source()
    }
    /// Who gets it; of a grant, to whom the data goes.
    #[inline]
    pub fn target(&self) -> NodeId {
        self.kept.target()
    }

    fn request_body(&self, asked: Asked) -> Body {
        let Kept { address, word, .. } = self.kept;
        let modify = match asked {
            Asked::Read => return Body::ReadRequest { address, bytes: self.bytes() },
            Asked::CompareAndSwap => Modify::CompareAndSwap { expected: word, new: self.second_argument },
            Asked::FetchAndAdd => Modify::FetchAndAdd { addend: word },
            Asked::Swap => Modify::Swap { new: word },
        };
        Body::ReadModifyWrite { address, modify }
    }
}

#[cfg(test)]
mod tests;
