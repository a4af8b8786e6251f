//! What is between two places.
//!
//! Tens of thousands are under way in a large rack, and each is read once, long after it was written: what they take together
//! decides whether the state of the rack stays in the cache. So one is kept in half a cache line, without the enums that it
//! was made of. It is four whole words: small fields beside each other would be read together right after they were written one by
//! one, and a core waits for that.

use base::NodeId;
use edm::pcs::memory as encoded;
use edm::{Body, Grant, Message, MessageId, Modify, Notification, Tag, Wire};
use prefetch_index::prefetch_index;

/// One thing on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    kept: Kept,
    /// The second argument of a compare-and-swap, which alone has one.
    second_argument: u64,
}

/// All of a [`Flight`] that most have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    address: u64,
    /// The word of a chunk, or the (first) argument of a read-modify-write.
    word: u64,
    /// The tag, and above it the bytes.
    share: u64,
    /// The other fields, from [`SOURCE_AT`] on.
    label: u64,
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
const AT_TARGET: u64 = 1 << 49;

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
    fn tag(&self) -> Tag {
        Tag(self.share as u32)
    }
    #[inline(always)]
    fn bytes(&self) -> u32 {
        (self.share >> 32) as u32
    }
    #[inline(always)]
    fn source(&self) -> NodeId {
        NodeId(u32::from(self.field(SOURCE_AT)))
    }
    #[inline(always)]
    fn target(&self) -> NodeId {
        NodeId(u32::from(self.field(TARGET_AT)))
    }
    #[inline(always)]
    fn is_at_target(&self) -> bool {
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

/// Whose a flight is, and between whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The request that it belongs to.
    pub tag: Tag,
    /// The host at the end of the link that it is on.
    pub here: NodeId,
    /// The other one.
    pub there: NodeId,
}

/// Half a cache line, never two.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Slot(Kept);

const _: () = assert!(size_of::<Slot>() == 32);

/// Everything on its way, addressed by small numbers that are used again.
#[derive(Debug, Default)]
pub struct Flights {
    slots: Vec<Slot>,
    /// By the same numbers, as far as any was needed.
    second_arguments: Vec<u64>,
    free: Vec<u32>,
}

impl Flights {
    /// Takes `flight` in and gives its number.
    #[inline(always)]
    pub fn add(&mut self, flight: Flight) -> u32 {
        let index = self.store(flight.kept);
        if flight.second_argument != 0 {
            self.second_arguments.resize(self.slots.len(), 0);
            self.second_arguments[index as usize] = flight.second_argument;
        }
        index
    }
    /// The flight with this number.
    #[inline]
    pub fn get(&self, index: u32) -> Flight {
        let kept = self.slots[index as usize].0;
        // Few racks have any: most do not look at what it is.
        let second_argument = self.second_arguments.get(index as usize).copied().unwrap_or(0);
        Flight { kept, second_argument }
    }
    /// The flight with this number will be needed soon.
    #[inline]
    pub fn foresee(&self, index: u32) {
        prefetch_index(&self.slots, index as usize);
    }
    /// Whose flight this is, and between whom.
    #[inline]
    pub fn ends(&self, index: u32) -> Ends {
        let kept = self.slots[index as usize].0;
        let (source, target) = (kept.source(), kept.target());
        let (here, there) = if kept.is_at_target() { (target, source) } else { (source, target) };
        Ends { tag: kept.tag(), here, there }
    }
    /// Ends a flight.
    #[inline]
    pub fn remove(&mut self, index: u32) -> Flight {
        let flight = self.get(index);
        if let Some(second_argument) = self.second_arguments.get_mut(index as usize) {
            *second_argument = 0;
        }
        self.free.push(index);
        flight
    }
    /// Sends a flight on to the target of its message.
    #[inline]
    pub fn turn_to_target(&mut self, index: u32) {
        self.slots[index as usize].0.label |= AT_TARGET;
    }

    /// Word by word: a copy of pairs of words from where they have just been written one by one would wait for them.
    #[inline(always)]
    fn store(&mut self, kept: Kept) -> u32 {
        let Kept { address, word, share, label } = kept;
        let Some(index) = self.free.pop() else { return self.grow(address, word, share, label) };
        let slot = &mut self.slots[index as usize].0;
        slot.address = address;
        slot.word = word;
        slot.share = share;
        slot.label = label;
        index
    }
    #[cold]
    #[inline(never)]
    fn grow(&mut self, address: u64, word: u64, share: u64, label: u64) -> u32 {
        self.slots.push(Slot(Kept { address, word, share, label }));
        self.slots.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOURCE: NodeId = NodeId(511);
    const TARGET: NodeId = NodeId(3);

    fn any_modify() -> impl Strategy<Value = Modify> {
        prop_oneof![
            any::<(u64, u64)>().prop_map(|(expected, new)| Modify::CompareAndSwap { expected, new }),
            any::<u64>().prop_map(|addend| Modify::FetchAndAdd { addend }),
            any::<u64>().prop_map(|new| Modify::Swap { new }),
        ]
    }

    fn any_message() -> impl Strategy<Value = Message> {
        let body = prop_oneof![
            any::<(u64, u32)>().prop_map(|(address, bytes)| Body::ReadRequest { address, bytes }),
            any::<(u64, u32, bool)>().prop_map(|(address, bytes, last)| Body::WriteRequest { address, bytes, last }),
            any::<(u32, bool)>().prop_map(|(bytes, last)| Body::ReadResponse { bytes, last }),
            (any::<u64>(), any_modify()).prop_map(|(address, modify)| Body::ReadModifyWrite { address, modify }),
        ];
        let id = any::<u8>().prop_map(MessageId);
        (id, body).prop_map(|(id, body)| Message { source: SOURCE, target: TARGET, id, body })
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in(
            messages in proptest::collection::vec((any_message(), any::<u32>(), 0usize..2), 1..20),
        ) {
            let mut flights = Flights::default();
            // Twice, so that slots are used again.
            for _ in 0..2 {
                let sent = |(message, tag, plane): &(Message, u32, usize)| {
                    Flight::sent(*plane, SOURCE, &Wire::Memory(*message), 0, Tag(*tag))
                };
                let numbers: Vec<u32> = messages.iter().map(|message| flights.add(sent(message))).collect();
                for ((message, tag, plane), number) in messages.iter().zip(numbers) {
                    flights.turn_to_target(number);
                    let flight = flights.remove(number);
                    prop_assert_eq!(flight.message(), *message);
                    prop_assert_eq!(flight.blocks(), encoded::message_blocks(&message.body));
                    prop_assert_eq!((flight.tag(), flight.plane(), flight.node()), (Tag(*tag), *plane, TARGET));
                }
            }
        }

        #[test]
        fn requests_keep_their_stage(message in any_message(), plane in 0usize..2) {
            let is_at = |flight: Flight, stage| matches!(flight.kind(), Kind::Request(at, _) if at == stage);
            prop_assume!(matches!(message.body, Body::ReadRequest { .. } | Body::ReadModifyWrite { .. }));
            let sent = Flight::sent(plane, SOURCE, &Wire::Memory(message), 0, Tag(1));
            let (granted, reading) = (Flight::request(plane, &message, Tag(1)), Flight::reading(&message, Tag(1)));
            prop_assert!(is_at(sent, Stage::Sent) && is_at(granted, Stage::Granted) && is_at(reading, Stage::Reading));
            prop_assert_eq!((sent.message(), granted.message(), reading.message()), (message, message, message));
            prop_assert_eq!((sent.node(), granted.node(), reading.node()), (SOURCE, TARGET, TARGET));
        }

        #[test]
        fn chunks_keep_their_words(bytes: u32, last: bool, word: u64) {
            let message = Message { source: SOURCE, target: TARGET, id: MessageId(1), body: Body::ReadResponse { bytes, last } };
            let flight = Flight::sent(0, SOURCE, &Wire::Memory(message), word, Tag(0));
            prop_assert_eq!((flight.word(), flight.is_data(), flight.node()), (word, true, SOURCE));
        }

        #[test]
        fn control_comes_out_as_it_went_in(id: u8, bytes: u32, batch: u8, plane in 0usize..2) {
            let id = MessageId(id);
            let said = Notification { target: TARGET, id, bytes, batch };
            let flight = Flight::sent(plane, SOURCE, &Wire::Notification(said), 0, Tag(7));
            prop_assert_eq!((flight.said(), flight.node(), flight.plane()), (said, SOURCE, plane));
            let grant = Grant { target: TARGET, id, bytes: bytes as u16 };
            let flight = Flight::granting(plane, SOURCE, grant, Tag(7));
            prop_assert_eq!((flight.grant(), flight.node(), flight.plane()), (grant, SOURCE, plane));
        }
    }
}
