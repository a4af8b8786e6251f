//! What doors and a JBOF say to each other over a stream, as frames of bytes.
//!
//! A frame is the length of its body (4 bytes; all numbers are little endian), then the body: its
//! kind (1 byte), and fields. Requests and replies are those of [`scalio::layout`]. A length beyond
//! what its reader allows ends the connection before memory is taken.

use base::Time;
use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};
use fabric::Place;
use scalio::layout::{MessageError, Seal, decode_reply, decode_request, encode_reply, encode_request};
use scalio::{
    ClientId, Done, ENTRY_BYTES, Extent, Protocol, RECORD_VALUE_BYTES_MAX, Reply, Request, RequestId, ServerCounters,
    Verb,
};

/// Bytes of the length in front of a frame.
pub const LENGTH_BYTES: usize = 4;
/// Verbs of a frame at most: no operation has more than three.
const VERBS_MAX: usize = 16;
/// Bytes that a verb reads or writes at most: a block of 64 slots has 7,184.
const VERB_BYTES_MAX: usize = 8 << 10;
/// Bytes of a provider's name and of an address of libfabric at most: those of sockets have 28.
const PLACE_PART_MAX: usize = 256;
/// Bytes of a text at most.
const TEXT_MAX: usize = 1 << 10;

/// What a door says.
#[derive(Clone, Debug, PartialEq)]
pub enum ToJbof {
    /// The first frame.
    Hello {
        /// How it wants to access the memory.
        access: Access,
    },
    /// Verbs, to be executed in their order.
    Verbs {
        /// For the answer; without, nobody waits for one.
        request: Option<RequestId>,
        /// The verbs.
        verbs: Vec<Verb>,
    },
    /// A read of flash.
    Read {
        /// For the answer.
        request: RequestId,
        /// The sectors.
        extent: Extent,
    },
    /// A request to the helper.
    Request(Request<Bytes>),
    /// Asks for a [`ToDoor::Pong`].
    Ping {
        /// The door's time, which comes back.
        at: Time,
    },
}

/// How a door accesses the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The JBOF executes its verbs.
    Asked,
    /// It shares the memory, if it comes by a Unix socket.
    Shared,
    /// By libfabric. The memory's place follows the welcome.
    Far,
}

/// What a JBOF says.
#[derive(Clone, Debug, PartialEq)]
pub enum ToDoor {
    /// The answer to the first frame.
    Welcome(Welcome),
    /// Why there will be no other answer.
    Refused(String),
    /// Of verbs, one result each.
    Results {
        /// The request.
        request: RequestId,
        /// The results.
        results: Vec<Done>,
    },
    /// Of a read of flash.
    Read {
        /// The request.
        request: RequestId,
        /// What is there; `None` where the device failed, or the door may not read it.
        bytes: Option<Vec<u8>>,
    },
    /// Of the helper.
    Reply(Reply<Bytes>),
    /// Answers a ping.
    Pong {
        /// The door's time when it asked.
        asked: Time,
        /// The JBOF's time.
        now: Time,
        /// The numbers of the JBOF.
        tally: Tally,
    },
    /// The numbers of the JBOF, before replies.
    Tally(Tally),
    /// Where the memory is for libfabric.
    Place(Place),
}

/// What a door has to know of a JBOF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The door's own name at this JBOF.
    pub client: ClientId,
    /// How often the JBOF was started.
    pub epoch: u32,
    /// Blocks of the index.
    pub blocks: u32,
    /// Slots of a block.
    pub slots: u8,
    /// Bytes of the longest value.
    pub value_bytes_max: u32,
    /// The secret of checksums on flash.
    pub seal: Seal,
    /// Second of the store's clock at the JBOF's time zero.
    pub start_second: u32,
    /// The JBOF's time.
    pub now: Time,
    /// How it and its doors keep the slots in memory right.
    pub protocol: Protocol,
    /// Whether the files of memory and flash come with this frame.
    pub shares: bool,
}

/// The numbers of a JBOF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Keys that are listed on flash; some may have expired.
    pub keys: u64,
    /// Bytes of use on flash.
    pub live_bytes: u64,
    /// Bytes that these may be at most.
    pub capacity_bytes: u64,
    /// Bytes of registered memory.
    pub memory_bytes: u64,
    /// What the helper has counted.
    pub helper: ServerCounters,
}

/// Why bytes are no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It is longer than its reader allows.
    #[error("a frame of {got} bytes, allowed are at most {most}")]
    TooLong {
        /// Its length.
        got: usize,
        /// The limit.
        most: usize,
    },
    /// It ends too early.
    #[error("a frame ends before its last field")]
    Short,
    /// It goes on behind its last field.
    #[error("{0} bytes behind the last field of a frame")]
    Rest(usize),
    /// A field says what it cannot.
    #[error("{field} = {got} is not allowed")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// The rejected value.
        got: u64,
    },
    /// A text is none.
    #[error("a text is not UTF-8")]
    Text,
    /// It holds no message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// It was not made by one who knows the secret, or was changed.
    #[error("a frame was not sealed with this secret, or was changed on the way")]
    Forged,
    /// What comes first is not what a JBOF or its doors say.
    #[error("the other end does not speak to JBOFs")]
    Greeting,
    /// One end has a secret, and the other has none.
    #[error("{0}")]
    Secret(&'static str),
}

impl From<TryGetError> for FrameError {
    fn from(_: TryGetError) -> FrameError {
        FrameError::Short
    }
}

impl ToJbof {
    /// Appends the body of a frame.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            ToJbof::Hello { access } => out.put_slice(&[1, *access as u8]),
            ToJbof::Verbs { request, verbs } => {
                out.put_u8(2);
                put_request(*request, out);
                out.put_u16_le(verbs.len() as u16);
                verbs.iter().for_each(|verb| put_verb(verb, out));
            }
            ToJbof::Read { request, extent } => {
                out.put_u8(3);
                out.put_u64_le(request.0);
                out.put_u64_le(extent.sector);
                out.put_u32_le(extent.sectors);
            }
            ToJbof::Request(request) => {
                out.put_u8(4);
                out.put_slice(&encode_request(request));
            }
            ToJbof::Ping { at } => {
                out.put_u8(5);
                out.put_u64_le(at.as_ps());
            }
        }
    }

    /// Parses the body of a frame.
    ///
    /// # Errors
    /// If it is no such body.
    pub fn decode(mut body: Bytes) -> Result<ToJbof, FrameError> {
        let message = match body.try_get_u8()? {
            1 => ToJbof::Hello { access: access(&mut body)? },
            2 => {
                let request = body.try_get_u64_le()?;
                let count = counted(&mut body, "count of verbs", VERBS_MAX)?;
                let verbs = (0..count).map(|_| verb(&mut body)).collect::<Result<_, _>>()?;
                ToJbof::Verbs { request: (request != u64::MAX).then_some(RequestId(request)), verbs }
            }
            3 => {
                let request = RequestId(body.try_get_u64_le()?);
                let extent = Extent { sector: body.try_get_u64_le()?, sectors: body.try_get_u32_le()? };
                ToJbof::Read { request, extent }
            }
            4 => return Ok(ToJbof::Request(decode_request(&body)?)),
            5 => ToJbof::Ping { at: Time::ps(body.try_get_u64_le()?) },
            kind => return Err(FrameError::Field { field: "kind", got: kind.into() }),
        };
        ended(&body, message)
    }
}

impl ToDoor {
    /// Appends the body of a frame.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            ToDoor::Welcome(welcome) => put_welcome(welcome, out),
            ToDoor::Refused(text) => {
                out.put_u8(2);
                out.put_slice(text.as_bytes());
            }
            ToDoor::Results { request, results } => {
                out.put_u8(3);
                out.put_u64_le(request.0);
                out.put_u16_le(results.len() as u16);
                results.iter().for_each(|done| put_done(done, out));
            }
            ToDoor::Read { request, bytes } => {
                out.put_u8(4);
                out.put_u64_le(request.0);
                out.put_u8(bytes.is_some().into());
                out.put_slice(bytes.as_deref().unwrap_or(&[]));
            }
            ToDoor::Reply(reply) => {
                out.put_u8(5);
                out.put_slice(&encode_reply(reply));
            }
            ToDoor::Pong { asked, now, tally } => {
                out.put_u8(6);
                out.put_u64_le(asked.as_ps());
                out.put_u64_le(now.as_ps());
                put_tally(tally, out);
            }
            ToDoor::Tally(tally) => {
                out.put_u8(7);
                put_tally(tally, out);
            }
            ToDoor::Place(place) => put_place(place, out),
        }
    }

    /// Parses the body of a frame.
    ///
    /// # Errors
    /// If it is no such body.
    pub fn decode(mut body: Bytes) -> Result<ToDoor, FrameError> {
        let message = match body.try_get_u8()? {
            1 => ToDoor::Welcome(welcome(&mut body)?),
            2 => {
                if body.len() > TEXT_MAX {
                    return Err(FrameError::TooLong { got: body.len(), most: TEXT_MAX });
                }
                let text = str::from_utf8(&body);
                return text.map(|text| ToDoor::Refused(text.into())).map_err(|_| FrameError::Text);
            }
            3 => {
                let request = RequestId(body.try_get_u64_le()?);
                let count = counted(&mut body, "count of results", VERBS_MAX)?;
                let results = (0..count).map(|_| done(&mut body)).collect::<Result<_, _>>()?;
                ToDoor::Results { request, results }
            }
            4 => {
                let request = RequestId(body.try_get_u64_le()?);
                let bytes = flag(&mut body)?.then(|| Vec::from(body.split_off(0)));
                ToDoor::Read { request, bytes }
            }
            5 => return Ok(ToDoor::Reply(decode_reply(&body)?)),
            6 => {
                let times = [body.try_get_u64_le()?, body.try_get_u64_le()?].map(Time::ps);
                ToDoor::Pong { asked: times[0], now: times[1], tally: tally(&mut body)? }
            }
            7 => ToDoor::Tally(tally(&mut body)?),
            8 => ToDoor::Place(place(&mut body)?),
            kind => return Err(FrameError::Field { field: "kind", got: kind.into() }),
        };
        ended(&body, message)
    }
}

fn ended<T>(body: &Bytes, message: T) -> Result<T, FrameError> {
    if body.is_empty() { Ok(message) } else { Err(FrameError::Rest(body.len())) }
}

fn flag(body: &mut Bytes) -> Result<bool, FrameError> {
    match body.try_get_u8()? {
        0 => Ok(false),
        1 => Ok(true),
        got => Err(FrameError::Field { field: "flag", got: got.into() }),
    }
}

fn access(body: &mut Bytes) -> Result<Access, FrameError> {
    match body.try_get_u8()? {
        0 => Ok(Access::Asked),
        1 => Ok(Access::Shared),
        2 => Ok(Access::Far),
        got => Err(FrameError::Field { field: "access", got: got.into() }),
    }
}

fn put_place(place: &Place, out: &mut BytesMut) {
    out.put_u8(8);
    out.put_u32_le(place.format);
    out.put_u64_le(place.key);
    out.put_u64_le(place.base);
    for part in [place.provider.as_bytes(), &place.address] {
        out.put_u16_le(part.len() as u16);
        out.put_slice(part);
    }
}

fn place(body: &mut Bytes) -> Result<Place, FrameError> {
    let (format, key, base) = (body.try_get_u32_le()?, body.try_get_u64_le()?, body.try_get_u64_le()?);
    let provider = part(body, "bytes of a provider")?;
    let provider = String::from_utf8(provider).map_err(|_| FrameError::Text)?;
    Ok(Place { provider, format, address: part(body, "bytes of an address")?, key, base })
}

/// A part of a place, before there is memory for it.
fn part(body: &mut Bytes, field: &'static str) -> Result<Vec<u8>, FrameError> {
    let length = counted(body, field, PLACE_PART_MAX)?;
    if body.len() < length {
        return Err(FrameError::Short);
    }
    Ok(body.split_to(length).into())
}

/// A number of things, before there is memory for them.
fn counted(body: &mut Bytes, field: &'static str, most: usize) -> Result<usize, FrameError> {
    let count = usize::from(body.try_get_u16_le()?);
    if count > most { Err(FrameError::Field { field, got: count as u64 }) } else { Ok(count) }
}

/// A length of bytes that a verb is about.
fn length(body: &mut Bytes) -> Result<usize, FrameError> {
    let length = body.try_get_u32_le()?;
    let allowed = (length as usize <= VERB_BYTES_MAX).then_some(length as usize);
    allowed.ok_or(FrameError::Field { field: "bytes of a verb", got: length.into() })
}

fn data(body: &mut Bytes) -> Result<Vec<u8>, FrameError> {
    let length = length(body)?;
    if body.len() < length {
        return Err(FrameError::Short);
    }
    Ok(body.split_to(length).into())
}

fn put_data(data: &[u8], out: &mut BytesMut) {
    out.put_u32_le(data.len() as u32);
    out.put_slice(data);
}

fn put_request(request: Option<RequestId>, out: &mut BytesMut) {
    out.put_u64_le(request.map_or(u64::MAX, |request| request.0));
}

fn put_verb(verb: &Verb, out: &mut BytesMut) {
    match verb {
        Verb::Read { at, bytes } => {
            out.put_u8(1);
            out.put_u64_le(*at);
            out.put_u32_le(*bytes as u32);
        }
        Verb::Write { at, data } => {
            out.put_u8(2);
            out.put_u64_le(*at);
            put_data(data, out);
        }
        Verb::Swap { at, expected, new } => {
            out.put_u8(3);
            [at, expected, new].into_iter().for_each(|word| out.put_u64_le(*word));
        }
        Verb::Bits { at, mask, bits } => {
            out.put_u8(4);
            [at, mask, bits].into_iter().for_each(|word| out.put_u64_le(*word));
        }
    }
}

fn verb(body: &mut Bytes) -> Result<Verb, FrameError> {
    let kind = body.try_get_u8()?;
    let at = body.try_get_u64_le()?;
    match kind {
        1 => Ok(Verb::Read { at, bytes: length(body)? }),
        2 => Ok(Verb::Write { at, data: data(body)? }),
        3 => Ok(Verb::Swap { at, expected: body.try_get_u64_le()?, new: body.try_get_u64_le()? }),
        4 => Ok(Verb::Bits { at, mask: body.try_get_u64_le()?, bits: body.try_get_u64_le()? }),
        kind => Err(FrameError::Field { field: "verb", got: kind.into() }),
    }
}

fn put_done(done: &Done, out: &mut BytesMut) {
    match done {
        Done::Read(data) => {
            out.put_u8(1);
            put_data(data, out);
        }
        Done::Written => out.put_u8(2),
        Done::Found(word) => {
            out.put_u8(3);
            out.put_u64_le(*word);
        }
        Done::Refused => out.put_u8(4),
    }
}

fn done(body: &mut Bytes) -> Result<Done, FrameError> {
    match body.try_get_u8()? {
        1 => Ok(Done::Read(data(body)?)),
        2 => Ok(Done::Written),
        3 => Ok(Done::Found(body.try_get_u64_le()?)),
        4 => Ok(Done::Refused),
        kind => Err(FrameError::Field { field: "result", got: kind.into() }),
    }
}

fn put_welcome(welcome: &Welcome, out: &mut BytesMut) {
    out.put_u8(1);
    out.put_u16_le(welcome.client.0);
    out.put_u8(welcome.slots);
    out.put_u8(welcome.shares.into());
    out.put_u8(protocol_code(welcome.protocol));
    for word in [welcome.epoch, welcome.blocks, welcome.value_bytes_max, welcome.seal.0, welcome.start_second] {
        out.put_u32_le(word);
    }
    out.put_u64_le(welcome.now.as_ps());
}

fn welcome(body: &mut Bytes) -> Result<Welcome, FrameError> {
    let client = ClientId(body.try_get_u16_le()?);
    let (slots, shares, protocol) = (body.try_get_u8()?, flag(body)?, protocol(body)?);
    let [epoch, blocks] = [body.try_get_u32_le()?, body.try_get_u32_le()?];
    let [value_bytes_max, seal, start_second] =
        [body.try_get_u32_le()?, body.try_get_u32_le()?, body.try_get_u32_le()?];
    if blocks == 0 {
        return Err(FrameError::Field { field: "blocks", got: 0 });
    }
    if value_bytes_max > RECORD_VALUE_BYTES_MAX - ENTRY_BYTES {
        return Err(FrameError::Field { field: "value", got: value_bytes_max.into() });
    }
    let now = Time::ps(body.try_get_u64_le()?);
    Ok(Welcome { client, epoch, blocks, slots, value_bytes_max, seal: Seal(seal), start_second, now, protocol, shares })
}

const fn protocol_code(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Linearizable => 0,
        Protocol::Paper { lease: false } => 1,
        Protocol::Paper { lease: true } => 2,
    }
}

fn protocol(body: &mut Bytes) -> Result<Protocol, FrameError> {
    let got = body.try_get_u8()?;
    let all = [Protocol::Linearizable, Protocol::Paper { lease: false }, Protocol::Paper { lease: true }];
    let found = all.into_iter().find(|protocol| protocol_code(*protocol) == got);
    found.ok_or(FrameError::Field { field: "protocol", got: got.into() })
}

fn put_tally(tally: &Tally, out: &mut BytesMut) {
    let Tally { keys, live_bytes, capacity_bytes, memory_bytes, helper } = tally;
    let of_helper = [
        helper.updates,
        helper.groups,
        helper.invalidations,
        helper.invalidation_retries,
        helper.repeats,
        helper.handed_over,
        helper.corrupt,
        helper.sectors_written,
        helper.sectors_moved,
        helper.zones_reclaimed,
    ];
    let all = [*keys, *live_bytes, *capacity_bytes, *memory_bytes].into_iter().chain(of_helper);
    all.for_each(|number| out.put_u64_le(number));
}

fn tally(body: &mut Bytes) -> Result<Tally, FrameError> {
    let mut number = || body.try_get_u64_le();
    Ok(Tally {
        keys: number()?,
        live_bytes: number()?,
        capacity_bytes: number()?,
        memory_bytes: number()?,
        helper: ServerCounters {
            updates: number()?,
            groups: number()?,
            invalidations: number()?,
            invalidation_retries: number()?,
            repeats: number()?,
            handed_over: number()?,
            corrupt: number()?,
            sectors_written: number()?,
            sectors_moved: number()?,
            zones_reclaimed: number()?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use scalio::{Condition, Key, RequestBody, RequestResult};

    fn to_jbof() -> Vec<ToJbof> {
        let key = Key::new(b"key").expect("short");
        let body =
            RequestBody::Put { key, value: Bytes::from_static(b"v"), time_to_live: None, condition: Condition::Absent };
        let verbs = vec![
            Verb::Read { at: 16, bytes: 8 },
            Verb::Write { at: u64::MAX, data: vec![1; 9] },
            Verb::Swap { at: 8, expected: 3, new: 4 },
            Verb::Bits { at: 8, mask: 5, bits: 4 },
        ];
        vec![
            ToJbof::Hello { access: Access::Asked },
            ToJbof::Hello { access: Access::Shared },
            ToJbof::Hello { access: Access::Far },
            ToJbof::Verbs { request: None, verbs: verbs.clone() },
            ToJbof::Verbs { request: Some(RequestId(7)), verbs },
            ToJbof::Read { request: RequestId(8), extent: Extent { sector: 5, sectors: 6 } },
            ToJbof::Request(Request { client: ClientId(9), number: 1, settled: 0, epoch: 3, body }),
            ToJbof::Ping { at: Time::us(4) },
        ]
    }

    fn to_door() -> Vec<ToDoor> {
        let helper = ServerCounters { updates: 1, zones_reclaimed: 10, corrupt: 7, ..ServerCounters::default() };
        let tally = Tally { keys: 1, live_bytes: 2, capacity_bytes: 3, memory_bytes: 4, helper };
        let reply = Reply { client: ClientId(1), number: 2, epoch: 3, result: RequestResult::Deleted { found: true } };
        let results = vec![Done::Read(vec![1, 2]), Done::Written, Done::Found(5), Done::Refused];
        vec![
            ToDoor::Welcome(Welcome {
                client: ClientId(1),
                epoch: 2,
                blocks: 3,
                slots: 4,
                value_bytes_max: 5,
                seal: Seal(6),
                start_second: 7,
                now: Time::ps(8),
                protocol: Protocol::Paper { lease: true },
                shares: true,
            }),
            ToDoor::Refused("no".into()),
            ToDoor::Results { request: RequestId(1), results },
            ToDoor::Read { request: RequestId(2), bytes: Some(vec![1, 2, 3]) },
            ToDoor::Read { request: RequestId(2), bytes: None },
            ToDoor::Reply(reply),
            ToDoor::Pong { asked: Time::ps(1), now: Time::ps(2), tally },
            ToDoor::Tally(tally),
            ToDoor::Place(Place { provider: "tcp".into(), format: 2, address: vec![9; 16], key: 3, base: 4 }),
        ]
    }

    fn bytes_of(encode: impl Fn(&mut BytesMut)) -> Bytes {
        let mut out = BytesMut::new();
        encode(&mut out);
        out.freeze()
    }

    #[test]
    fn every_frame_survives_its_bytes_and_no_part_of_it_is_another() {
        for message in to_jbof() {
            let bytes = bytes_of(|out| message.encode(out));
            assert_eq!(ToJbof::decode(bytes.clone()), Ok(message.clone()));
            for end in 0..bytes.len() {
                assert!(ToJbof::decode(bytes.slice(..end)).is_err(), "{message:?} up to {end}");
            }
        }
        for message in to_door() {
            let bytes = bytes_of(|out| message.encode(out));
            assert_eq!(ToDoor::decode(bytes.clone()), Ok(message.clone()));
            let ends_anywhere = matches!(message, ToDoor::Refused(_) | ToDoor::Read { bytes: Some(_), .. });
            for end in (0..bytes.len()).filter(|_| !ends_anywhere) {
                assert!(ToDoor::decode(bytes.slice(..end)).is_err(), "{message:?} up to {end}");
            }
        }
    }

    #[test]
    fn lengths_are_bounded_before_memory_is_taken() {
        let verbs = |count: u16, verb: &[u8]| {
            let head = [&[2][..], &[0; 8], &count.to_le_bytes()].concat();
            ToJbof::decode([&head[..], verb].concat().into())
        };
        let read = |bytes: u32| [&[1][..], &[0; 8], &bytes.to_le_bytes()].concat();
        assert!(verbs(1, &read(8 << 10)).is_ok());
        let error = |field, got| Err(FrameError::Field { field, got });
        assert_eq!(verbs(1, &read((8 << 10) + 1)), error("bytes of a verb", (8 << 10) + 1));
        assert!(verbs(16, &read(8).repeat(16)).is_ok());
        assert_eq!(verbs(17, &read(8).repeat(17)), error("count of verbs", 17));
        assert_eq!(verbs(1, &read(8).repeat(2)), Err(FrameError::Rest(13)));
    }

    #[test]
    fn a_place_is_bounded_before_memory_is_taken() {
        let place = |length: u16| [&[8][..], &[0; 20], &length.to_le_bytes(), &vec![b'a'; 300], &[0, 0]].concat();
        let error = Err(FrameError::Field { field: "bytes of a provider", got: 257 });
        assert_eq!(ToDoor::decode(place(257).into()), error);
        assert_eq!(ToJbof::decode([1, 3][..].into()), Err(FrameError::Field { field: "access", got: 3 }));
    }

    #[test]
    fn a_welcome_that_cannot_be_is_none() {
        let good = to_door().remove(0);
        let ToDoor::Welcome(welcome) = good else { panic!("it is one") };
        let decoded = |welcome| ToDoor::decode(bytes_of(|out| ToDoor::Welcome(welcome).encode(out)));
        let longest = RECORD_VALUE_BYTES_MAX - ENTRY_BYTES;
        assert!(decoded(Welcome { value_bytes_max: longest, ..welcome }).is_ok());
        assert!(decoded(Welcome { value_bytes_max: longest + 1, ..welcome }).is_err());
        assert!(decoded(Welcome { blocks: 0, ..welcome }).is_err());
        let mut bytes = BytesMut::new();
        ToDoor::Welcome(welcome).encode(&mut bytes);
        bytes[5] = 3;
        assert_eq!(ToDoor::decode(bytes.freeze()), Err(FrameError::Field { field: "protocol", got: 3 }));
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..10) {
            let mut bytes = bytes;
            bytes.insert(0, kind);
            let _ = ToJbof::decode(bytes.clone().into());
            let _ = ToDoor::decode(bytes.into());
        }
    }
}
