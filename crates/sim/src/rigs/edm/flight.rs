//! What is between two places.
//!
//! Tens of thousands are under way in a large rack, and each is read once, long after it was written: what they take together
//! decides whether the state of the rack stays in the cache. So one is kept in half a cache line, without the enums that it
//! was made of.

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
    tag: Tag,
    bytes: u32,
    /// Who sends it; of a grant, to whom it goes. Nodes are at most 512.
    source: u16,
    target: u16,
    id: MessageId,
    kind: Kind,
    /// The plane, and [`AT_TARGET`].
    way: u8,
}

/// In [`Kept::way`]: the host at the end of the link is the message's target, not its source.
const AT_TARGET: u8 = 2;

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
        let mut flight = Flight::between(plane, to, grant.target, grant.id, Kind::Grant, tag);
        flight.kept.bytes = u32::from(grant.bytes);
        flight
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
        self.kept.way |= AT_TARGET;
        self
    }

    /// The same by another plane, before it is sent down.
    #[inline]
    pub fn by_plane(mut self, plane: usize) -> Flight {
        self.kept.way = plane as u8;
        self
    }

    fn notification(plane: usize, port: NodeId, said: &Notification, tag: Tag) -> Flight {
        let mut flight = Flight::between(plane, port, said.target, said.id, Kind::Notification, tag);
        (flight.kept.address, flight.kept.bytes) = (u64::from(said.batch), said.bytes);
        flight
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
        let mut flight = Flight::between(plane, message.source, message.target, message.id, kind, tag);
        (flight.kept.address, flight.kept.word, flight.kept.bytes) = (address, word, bytes);
        flight
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
        Flight { kept: Kept { address, word, ..flight.kept }, second_argument }
    }

    #[inline]
    fn between(plane: usize, source: NodeId, target: NodeId, id: MessageId, kind: Kind, tag: Tag) -> Flight {
        let (source, target) = (source.0 as u16, target.0 as u16);
        let kept = Kept { address: 0, word: 0, tag, bytes: 0, source, target, id, kind, way: plane as u8 };
        Flight { kept, second_argument: 0 }
    }
}

/// What is in a flight.
impl Flight {
    /// What travels.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kept.kind
    }
    /// The request that it belongs to.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.kept.tag
    }
    /// By which switch.
    #[inline]
    pub fn plane(&self) -> usize {
        usize::from(self.kept.way & !AT_TARGET)
    }
    /// The host at the end of the link that it is on.
    #[inline]
    pub fn node(&self) -> NodeId {
        if self.kept.way & AT_TARGET == 0 { self.source() } else { self.target() }
    }
    /// Payload of up to eight bytes.
    #[inline]
    pub fn word(&self) -> u64 {
        self.kept.word
    }
    /// Whether it is a chunk of a WREQ or RRES.
    #[inline]
    pub fn is_data(&self) -> bool {
        matches!(self.kept.kind, Kind::Write | Kind::WriteEnd | Kind::Response | Kind::ResponseEnd)
    }
    /// How many 66-bit blocks it makes.
    #[inline]
    pub fn blocks(&self) -> u64 {
        match self.kept.kind {
            Kind::Notification => encoded::NOTIFICATION_BLOCKS,
            Kind::Grant => encoded::GRANT_BLOCKS,
            Kind::Write | Kind::WriteEnd => encoded::write_blocks(self.kept.bytes),
            Kind::Response | Kind::ResponseEnd => encoded::response_blocks(self.kept.bytes),
            Kind::Request(_, asked) => encoded::message_blocks(&self.request_body(asked)),
        }
    }
    /// The memory message that it is.
    ///
    /// # Panics
    /// If it is a /N/ or a /G/.
    #[inline]
    pub fn message(&self) -> Message {
        let Kept { address, bytes, id, kind, .. } = self.kept;
        let body = match kind {
            Kind::Write => Body::WriteRequest { address, bytes, last: false },
            Kind::WriteEnd => Body::WriteRequest { address, bytes, last: true },
            Kind::Response => Body::ReadResponse { bytes, last: false },
            Kind::ResponseEnd => Body::ReadResponse { bytes, last: true },
            Kind::Request(_, asked) => self.request_body(asked),
            Kind::Notification | Kind::Grant => unreachable!("only messages are asked for their message"),
        };
        Message { source: self.source(), target: self.target(), id, body }
    }
    /// The notification that it is.
    #[inline]
    pub fn said(&self) -> Notification {
        debug_assert_eq!(self.kept.kind, Kind::Notification);
        let Kept { address: batch, bytes, id, .. } = self.kept;
        Notification { target: self.target(), id, bytes, batch: batch as u8 }
    }
    /// The grant that it is.
    #[inline]
    pub fn grant(&self) -> Grant {
        debug_assert_eq!(self.kept.kind, Kind::Grant);
        Grant { target: self.target(), id: self.kept.id, bytes: self.kept.bytes as u16 }
    }
    /// The message's number between the two.
    #[inline]
    pub fn id(&self) -> MessageId {
        self.kept.id
    }
    /// What it asks for, announces, permits or carries.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.kept.bytes
    }
    /// Who sends it; of a grant, to whom it goes.
    #[inline]
    pub fn source(&self) -> NodeId {
        NodeId(u32::from(self.kept.source))
    }
    /// Who gets it; of a grant, to whom the data goes.
    #[inline]
    pub fn target(&self) -> NodeId {
        NodeId(u32::from(self.kept.target))
    }

    fn request_body(&self, asked: Asked) -> Body {
        let Kept { address, word, bytes, .. } = self.kept;
        let modify = match asked {
            Asked::Read => return Body::ReadRequest { address, bytes },
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
        let second_argument = match kept.kind {
            Kind::Request(_, Asked::CompareAndSwap) => self.second_arguments.get(index as usize).copied().unwrap_or(0),
            _ => 0,
        };
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
        let Kept { tag, source, target, way, .. } = self.slots[index as usize].0;
        let (source, target) = (NodeId(u32::from(source)), NodeId(u32::from(target)));
        let (here, there) = if way & AT_TARGET == 0 { (source, target) } else { (target, source) };
        Ends { tag, here, there }
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
        self.slots[index as usize].0.way |= AT_TARGET;
    }

    #[inline(always)]
    fn store(&mut self, kept: Kept) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Slot(kept);
            return index;
        }
        self.slots.push(Slot(kept));
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
