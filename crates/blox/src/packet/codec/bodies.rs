//! The OP byte and the body that follows the RackBlox header for each.
//!
//! Table 1 names five operations without numbers; the numbers are ours, and so is every operation
//! from 16 on.

use super::headers::{get_address, put_address};
use super::{CodecError, PAGE_BYTES, needs};
use crate::packet::{
    Body, CollectionNote, ControlMessage, REPLICAS_MAX, Refusal, ReplicaMessage as Message, Session, Timestamp,
};
use crate::{Origin, Page, Tag, Value, VssdId, WriteId};
use base::{NodeId, Span};
use bytes::{Buf, BufMut};
use std::num::NonZero;

const CREATE: u8 = 1;
const DELETE: u8 = 2;
const WRITE: u8 = 3;
const READ: u8 = 4;
const COLLECTION: u8 = 5;
const READ_REPLY: u8 = 16;
const WRITE_REPLY: u8 = 17;
const REPEATABLE_WRITE: u8 = 18;
const INVALIDATE: u8 = 32;
const ACKNOWLEDGE: u8 = 33;
const VALIDATE: u8 = 34;
const FETCH: u8 = 35;
const FETCHED: u8 = 36;
const REPEATABLE_INVALIDATE: u8 = 37;
const FETCH_AFTER: u8 = 38;
const REMEMBERED: u8 = 39;
const RECALL: u8 = 40;
const RECALLED: u8 = 41;
const HEARTBEAT: u8 = 48;
const MEMBERS: u8 = 64;
const UP_TO_DATE: u8 = 65;
const ASK: u8 = 66;
const ANSWER: u8 = 67;
const DEMAND: u8 = 68;
const RATE: u8 = 69;
const LEASE: u8 = 70;

/// Status byte of a reply that carries no [`Refusal`].
const SERVED: u8 = 0;
/// A replica: whether there is one, its server's address, its vSSD.
const PLACE: u32 = 9;
/// A write: its client, the client's life, its tag.
const WRITE_ID: u32 = 16;
/// A write, and the oldest that its client has open.
const ORIGIN: u32 = WRITE_ID + 8;
/// Life, oldest write, epoch, whether it is a further copy.
const SESSION: u32 = 17;
/// Epoch and page.
const SUBJECT: u32 = 12;

pub(super) fn operation(body: &Body) -> u8 {
    match body {
        Body::Create { .. } => CREATE,
        Body::Delete => DELETE,
        Body::Write { session: None, .. } => WRITE,
        Body::Write { session: Some(_), .. } => REPEATABLE_WRITE,
        Body::Read { .. } => READ,
        Body::Collection(_) => COLLECTION,
        Body::ReadReply { .. } => READ_REPLY,
        Body::WriteReply { .. } => WRITE_REPLY,
        Body::Replica(Message::Invalidate { origin: None, .. }) => INVALIDATE,
        Body::Replica(Message::Invalidate { origin: Some(_), .. }) => REPEATABLE_INVALIDATE,
        Body::Replica(Message::Acknowledge { .. }) => ACKNOWLEDGE,
        Body::Replica(Message::Validate { .. }) => VALIDATE,
        Body::Replica(Message::Fetch { after: None, .. }) => FETCH,
        Body::Replica(Message::Fetch { after: Some(_), .. }) => FETCH_AFTER,
        Body::Replica(Message::Fetched { .. }) => FETCHED,
        Body::Replica(Message::Remembered { .. }) => REMEMBERED,
        Body::Replica(Message::Recall { .. }) => RECALL,
        Body::Replica(Message::Recalled { .. }) => RECALLED,
        Body::Heartbeat { .. } => HEARTBEAT,
        Body::Control(ControlMessage::Members { .. }) => MEMBERS,
        Body::Control(ControlMessage::UpToDate { .. }) => UP_TO_DATE,
        Body::Control(ControlMessage::Ask(_)) => ASK,
        Body::Control(ControlMessage::Answer { .. }) => ANSWER,
        Body::Control(ControlMessage::Demand { .. }) => DEMAND,
        Body::Control(ControlMessage::Rate { .. }) => RATE,
        Body::Control(ControlMessage::Lease { .. }) => LEASE,
        Body::Background { .. } => unreachable!("background traffic has no RackBlox header"),
    }
}

/// Bytes behind the header.
pub(super) fn length(body: &Body) -> u32 {
    match body {
        Body::Delete | Body::Background { .. } => 0,
        Body::Create { .. } => 12,
        Body::Write { session: None, .. } => 16 + PAGE_BYTES,
        Body::Write { session: Some(_), .. } => 16 + SESSION + PAGE_BYTES,
        Body::Read { .. } => 16,
        Body::Collection(_) | Body::Control(ControlMessage::Ask(_)) => 1,
        Body::ReadReply { value: Ok(_), .. } => 9 + PAGE_BYTES,
        Body::ReadReply { value: Err(_), .. } | Body::WriteReply { .. } => 9,
        Body::Replica(Message::Invalidate { origin: None, .. } | Message::Fetched { .. }) => 20 + PAGE_BYTES,
        Body::Replica(Message::Invalidate { origin: Some(_), .. }) => 20 + ORIGIN + PAGE_BYTES,
        Body::Replica(Message::Acknowledge { .. } | Message::Validate { .. }) => 20,
        Body::Replica(Message::Fetch { after: None, .. }) => SUBJECT,
        Body::Replica(Message::Fetch { after: Some(_), .. }) => SUBJECT + WRITE_ID,
        Body::Replica(Message::Remembered { .. }) => SUBJECT + ORIGIN + 8,
        Body::Replica(Message::Recall { .. }) => SUBJECT + ORIGIN + 5,
        Body::Replica(Message::Recalled { .. }) => SUBJECT + WRITE_ID + 5,
        Body::Heartbeat { .. } | Body::Control(ControlMessage::Demand { .. }) => 8,
        Body::Control(ControlMessage::Members { .. }) => 4 + PLACE * (REPLICAS_MAX as u32 + 1),
        Body::Control(ControlMessage::UpToDate { .. } | ControlMessage::Rate { .. }) => 4,
        Body::Control(ControlMessage::Answer { .. }) => 1 + PLACE,
        Body::Control(ControlMessage::Lease { .. }) => 16,
    }
}

pub(super) fn write(body: &Body, bytes: &mut Vec<u8>) {
    match *body {
        Body::Create { server, replica, replica_server } => {
            put_address(server, bytes);
            bytes.put_u32(replica.0);
            put_address(replica_server, bytes);
        }
        Body::Delete | Body::Background { .. } => {}
        Body::Write { tag, page, value, session } => {
            put_request(tag, page, bytes);
            session.iter().for_each(|session| put_session(session, bytes));
            put_data(value, bytes);
        }
        Body::Read { tag, page } => put_request(tag, page, bytes),
        Body::Collection(note) => bytes.put_u8(note as u8),
        Body::ReadReply { tag, value } => {
            bytes.put_u64(tag.0);
            put_status(value.err(), bytes);
            value.iter().for_each(|value| put_data(*value, bytes));
        }
        Body::WriteReply { tag, done } => {
            bytes.put_u64(tag.0);
            put_status(done.err(), bytes);
        }
        Body::Replica(message) => write_replica(message, bytes),
        Body::Heartbeat { beat } => bytes.put_u64(beat),
        Body::Control(message) => write_control(message, bytes),
    }
}

fn write_replica(message: Message, bytes: &mut Vec<u8>) {
    match message {
        Message::Invalidate { page, timestamp, value, epoch, origin } => {
            put_stamped(page, timestamp, epoch, bytes);
            origin.iter().for_each(|origin| put_origin(origin, bytes));
            put_data(value, bytes);
        }
        Message::Fetched { page, timestamp, value, epoch } => {
            put_stamped(page, timestamp, epoch, bytes);
            put_data(value, bytes);
        }
        Message::Acknowledge { page, timestamp, epoch } | Message::Validate { page, timestamp, epoch } => {
            put_stamped(page, timestamp, epoch, bytes);
        }
        Message::Fetch { page, after, epoch } => {
            put_subject(page, epoch, bytes);
            after.iter().for_each(|id| put_write(id, bytes));
        }
        Message::Remembered { page, origin, silence, epoch } => {
            put_subject(page, epoch, bytes);
            put_origin(&origin, bytes);
            bytes.put_u64(silence.as_ps());
        }
        Message::Recall { page, origin, known, round, epoch } => {
            put_subject(page, epoch, bytes);
            put_origin(&origin, bytes);
            bytes.put_u8(u8::from(known));
            bytes.put_u32(round);
        }
        Message::Recalled { page, id, known, round, epoch } => {
            put_subject(page, epoch, bytes);
            put_write(&id, bytes);
            bytes.put_u8(u8::from(known));
            bytes.put_u32(round);
        }
    }
}

fn write_control(message: ControlMessage, bytes: &mut Vec<u8>) {
    match message {
        ControlMessage::Members { epoch, replicas, stale } => {
            bytes.put_u32(epoch);
            replicas.iter().for_each(|place| put_place(*place, bytes));
            put_place(stale, bytes);
        }
        ControlMessage::UpToDate { epoch } => bytes.put_u32(epoch),
        ControlMessage::Ask(note) => bytes.put_u8(note as u8),
        ControlMessage::Answer { note, free } => {
            bytes.put_u8(note as u8);
            put_place(free, bytes);
        }
        ControlMessage::Demand { requests, writes } => {
            bytes.put_u32(requests);
            bytes.put_u32(writes);
        }
        ControlMessage::Rate { per_second } => bytes.put_u32(per_second),
        ControlMessage::Lease { beat, span } => {
            bytes.put_u64(beat);
            bytes.put_u64(span.as_ps());
        }
    }
}

fn put_request(tag: Tag, page: Page, bytes: &mut Vec<u8>) {
    bytes.put_u64(tag.0);
    bytes.put_u64(page.0);
}

fn put_session(session: &Session, bytes: &mut Vec<u8>) {
    bytes.put_u32(session.life.get());
    bytes.put_u64(session.oldest.0);
    bytes.put_u32(session.epoch);
    bytes.put_u8(u8::from(session.again));
}

fn put_write(id: &WriteId, bytes: &mut Vec<u8>) {
    bytes.put_u32(id.client.0);
    bytes.put_u32(id.life.get());
    bytes.put_u64(id.tag.0);
}

fn put_origin(origin: &Origin, bytes: &mut Vec<u8>) {
    put_write(&origin.id, bytes);
    bytes.put_u64(origin.oldest.0);
}

fn put_subject(page: Page, epoch: u32, bytes: &mut Vec<u8>) {
    bytes.put_u32(epoch);
    bytes.put_u64(page.0);
}

fn put_stamped(page: Page, timestamp: Timestamp, epoch: u32, bytes: &mut Vec<u8>) {
    put_subject(page, epoch, bytes);
    bytes.put_u32(timestamp.version);
    bytes.put_u32(timestamp.node.0);
}

fn put_data(value: Value, bytes: &mut Vec<u8>) {
    bytes.put_u64(value.0);
    bytes.put_bytes(0, PAGE_BYTES as usize - size_of::<u64>());
}

fn put_status(refusal: Option<Refusal>, bytes: &mut Vec<u8>) {
    bytes.put_u8(refusal.map_or(SERVED, |refusal| refusal as u8));
}

fn put_place(place: Option<(NodeId, VssdId)>, bytes: &mut Vec<u8>) {
    bytes.put_u8(u8::from(place.is_some()));
    let (server, vssd) = place.unwrap_or_default();
    put_address(server, bytes);
    bytes.put_u32(vssd.0);
}

/// Takes the body of `operation` from the front of `bytes`.
pub(super) fn read(operation: u8, bytes: &mut &[u8]) -> Result<Body, CodecError> {
    needs("the body", bytes, least(operation)?)?;
    Ok(match operation {
        CREATE => Body::Create {
            server: get_address(bytes)?,
            replica: VssdId(bytes.get_u32()),
            replica_server: get_address(bytes)?,
        },
        DELETE => Body::Delete,
        WRITE | REPEATABLE_WRITE => {
            let (tag, page) = (get_tag(bytes), get_page(bytes));
            let session = (operation == REPEATABLE_WRITE).then(|| get_session(tag, bytes)).transpose()?;
            Body::Write { tag, page, value: get_data(bytes)?, session }
        }
        READ => Body::Read { tag: get_tag(bytes), page: get_page(bytes) },
        COLLECTION => Body::Collection(get_note(bytes)?),
        READ_REPLY => Body::ReadReply {
            tag: get_tag(bytes),
            value: match get_status(bytes)? {
                None => Ok(get_data(bytes)?),
                Some(refusal) => Err(refusal),
            },
        },
        WRITE_REPLY => Body::WriteReply { tag: get_tag(bytes), done: get_status(bytes)?.map_or(Ok(()), Err) },
        HEARTBEAT => Body::Heartbeat { beat: bytes.get_u64() },
        INVALIDATE..=RECALLED => Body::Replica(read_replica(operation, bytes)?),
        _ => Body::Control(read_control(operation, bytes)?),
    })
}

/// The least length of a body: that of a reply is what a refusal has.
fn least(operation: u8) -> Result<u32, CodecError> {
    Ok(match operation {
        DELETE => 0,
        COLLECTION | ASK => 1,
        UP_TO_DATE | RATE => 4,
        HEARTBEAT | DEMAND => 8,
        READ_REPLY | WRITE_REPLY => 9,
        ANSWER => 1 + PLACE,
        CREATE => 12,
        FETCH => SUBJECT,
        FETCH_AFTER => SUBJECT + WRITE_ID,
        REMEMBERED => SUBJECT + ORIGIN + 8,
        RECALL => SUBJECT + ORIGIN + 5,
        RECALLED => SUBJECT + WRITE_ID + 5,
        READ | LEASE => 16,
        ACKNOWLEDGE | VALIDATE => 20,
        MEMBERS => 4 + PLACE * (REPLICAS_MAX as u32 + 1),
        WRITE => 16 + PAGE_BYTES,
        REPEATABLE_WRITE => 16 + SESSION + PAGE_BYTES,
        REPEATABLE_INVALIDATE => 20 + ORIGIN + PAGE_BYTES,
        INVALIDATE | FETCHED => 20 + PAGE_BYTES,
        _ => return Err(CodecError::Field { field: "OP", got: u64::from(operation) }),
    })
}

fn read_replica(operation: u8, bytes: &mut &[u8]) -> Result<Message, CodecError> {
    let (epoch, page) = (bytes.get_u32(), get_page(bytes));
    match operation {
        FETCH => return Ok(Message::Fetch { page, after: None, epoch }),
        FETCH_AFTER => return Ok(Message::Fetch { page, after: Some(get_write(bytes)?), epoch }),
        REMEMBERED => {
            let (origin, silence) = (get_origin(bytes)?, Span::ps(bytes.get_u64()));
            return Ok(Message::Remembered { page, origin, silence, epoch });
        }
        RECALL => {
            let (origin, known) = (get_origin(bytes)?, get_flag("knowledge of a write", bytes)?);
            return Ok(Message::Recall { page, origin, known, round: bytes.get_u32(), epoch });
        }
        RECALLED => {
            let (id, known) = (get_write(bytes)?, get_flag("knowledge of a write", bytes)?);
            return Ok(Message::Recalled { page, id, known, round: bytes.get_u32(), epoch });
        }
        _ => {}
    }
    let timestamp = Timestamp { version: bytes.get_u32(), node: NodeId(bytes.get_u32()) };
    Ok(match operation {
        INVALIDATE => Message::Invalidate { page, timestamp, value: get_data(bytes)?, epoch, origin: None },
        REPEATABLE_INVALIDATE => {
            let origin = Some(get_origin(bytes)?);
            Message::Invalidate { page, timestamp, value: get_data(bytes)?, epoch, origin }
        }
        ACKNOWLEDGE => Message::Acknowledge { page, timestamp, epoch },
        VALIDATE => Message::Validate { page, timestamp, epoch },
        _ => Message::Fetched { page, timestamp, value: get_data(bytes)?, epoch },
    })
}

fn read_control(operation: u8, bytes: &mut &[u8]) -> Result<ControlMessage, CodecError> {
    Ok(match operation {
        MEMBERS => {
            ControlMessage::Members { epoch: bytes.get_u32(), replicas: get_places(bytes)?, stale: get_place(bytes)? }
        }
        UP_TO_DATE => ControlMessage::UpToDate { epoch: bytes.get_u32() },
        ASK => ControlMessage::Ask(get_note(bytes)?),
        ANSWER => ControlMessage::Answer { note: get_note(bytes)?, free: get_place(bytes)? },
        DEMAND => ControlMessage::Demand { requests: bytes.get_u32(), writes: bytes.get_u32() },
        LEASE => ControlMessage::Lease { beat: bytes.get_u64(), span: Span::ps(bytes.get_u64()) },
        _ => ControlMessage::Rate { per_second: bytes.get_u32() },
    })
}

fn get_tag(bytes: &mut &[u8]) -> Tag {
    Tag(bytes.get_u64())
}

fn get_session(tag: Tag, bytes: &mut &[u8]) -> Result<Session, CodecError> {
    let (life, oldest, epoch) = (get_life(bytes)?, get_oldest(tag, bytes)?, bytes.get_u32());
    Ok(Session { life, oldest, epoch, again: get_flag("number of the copy", bytes)? })
}

fn get_life(bytes: &mut &[u8]) -> Result<NonZero<u32>, CodecError> {
    NonZero::new(bytes.get_u32()).ok_or(CodecError::Field { field: "life of a client", got: 0 })
}

fn get_write(bytes: &mut &[u8]) -> Result<WriteId, CodecError> {
    Ok(WriteId { client: NodeId(bytes.get_u32()), life: get_life(bytes)?, tag: get_tag(bytes) })
}

fn get_origin(bytes: &mut &[u8]) -> Result<Origin, CodecError> {
    let id = get_write(bytes)?;
    Ok(Origin { id, oldest: get_oldest(id.tag, bytes)? })
}

/// The oldest open write of a client that sends the one with `tag`.
fn get_oldest(tag: Tag, bytes: &mut &[u8]) -> Result<Tag, CodecError> {
    match get_tag(bytes) {
        oldest if oldest <= tag => Ok(oldest),
        later => Err(CodecError::Field { field: "oldest open write", got: later.0 }),
    }
}

fn get_flag(field: &'static str, bytes: &mut &[u8]) -> Result<bool, CodecError> {
    match bytes.get_u8() {
        0 => Ok(false),
        1 => Ok(true),
        got => Err(CodecError::Field { field, got: u64::from(got) }),
    }
}

fn get_page(bytes: &mut &[u8]) -> Page {
    Page(bytes.get_u64())
}

fn get_data(bytes: &mut &[u8]) -> Result<Value, CodecError> {
    needs("a page", bytes, PAGE_BYTES)?;
    let value = Value(bytes.get_u64());
    bytes.advance(PAGE_BYTES as usize - size_of::<u64>());
    Ok(value)
}

fn get_note(bytes: &mut &[u8]) -> Result<CollectionNote, CodecError> {
    Ok(match bytes.get_u8() {
        0 => CollectionNote::Soft,
        1 => CollectionNote::Regular,
        2 => CollectionNote::Background,
        3 => CollectionNote::Accept,
        4 => CollectionNote::Delay,
        5 => CollectionNote::Finish,
        got => return Err(CodecError::Field { field: "gc", got: u64::from(got) }),
    })
}

fn get_status(bytes: &mut &[u8]) -> Result<Option<Refusal>, CodecError> {
    Ok(match bytes.get_u8() {
        SERVED => None,
        1 => Some(Refusal::UnknownVssd),
        2 => Some(Refusal::OutOfRange),
        3 => Some(Refusal::Stale),
        4 => Some(Refusal::WornOut),
        5 => Some(Refusal::Full),
        6 => Some(Refusal::Lost),
        got => return Err(CodecError::Field { field: "status", got: u64::from(got) }),
    })
}

fn get_places(bytes: &mut &[u8]) -> Result<[Option<(NodeId, VssdId)>; REPLICAS_MAX], CodecError> {
    let mut places = [None; REPLICAS_MAX];
    for place in &mut places {
        *place = get_place(bytes)?;
    }
    Ok(places)
}

fn get_place(bytes: &mut &[u8]) -> Result<Option<(NodeId, VssdId)>, CodecError> {
    let is_there = get_flag("presence of a replica", bytes)?;
    let place = (get_address(bytes)?, VssdId(bytes.get_u32()));
    Ok(is_there.then_some(place))
}
