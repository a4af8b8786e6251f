//! Requests and replies as bytes: a header of 32 B, then keys and values.
//!
//! | bytes of the header | request | reply |
//! | --- | --- | --- |
//! | 0 | version, 2 | the same |
//! | 1 | kind: 1 put, 2 delete, 3 compare-and-swap, 4 take, 5 expire | 14 taken, 15 condition not met, 16 stored, 17 deleted, 18 differs, 19 and above refused |
//! | 2..4 | client | client |
//! | 4..8 | CRC-32C of everything else | the same |
//! | 8..16 | number | number |
//! | 16..24 | numbers below are settled | what a refusal says first |
//! | 24..28 | epoch | epoch |
//! | 28..32 | 1: it has a time to live; 2: only if absent; 4: only if present | what a refusal says second, or whether something was found |
//!
//! Behind it a request has its key (a byte of length, then bytes), its time to live (8 bytes,
//! milliseconds), and its values: a byte (0: none; 1: a byte of length follows; 2: four bytes of
//! length), the length, bytes.

use crate::{
    ClientId, Condition, KEY_BYTES_MAX, Key, Lifetime, LimitError, RECORD_VALUE_BYTES_MAX, Refusal, Reply, Request,
    RequestBody, RequestResult, SEGMENT_ITEMS_MAX, VALUE_BYTES_MAX, Value,
};

const VERSION: u8 = 2;
const HEADER_BYTES: usize = 32;

/// Reason why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The message is too short or too long.
    #[error("a message of {got} bytes does not end where it says")]
    Length {
        /// The actual length.
        got: usize,
    },
    /// Another version.
    #[error("version {0} of the messages is not known, {VERSION} is")]
    Version(u8),
    /// The message was corrupted in transit.
    #[error("the checksum is {got:#010x}, and {expected:#010x} was sent")]
    Checksum {
        /// Of what came.
        got: u32,
        /// What the message says.
        expected: u32,
    },
    /// A field says what it cannot.
    #[error("{field} = {got} is not allowed")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// The rejected value.
        got: u64,
    },
}

/// The same in requests and replies.
struct Header {
    kind: u8,
    client: ClientId,
    number: u64,
    first: u64,
    epoch: u32,
    second: u32,
}

/// A request as bytes.
pub fn encode_request<V: Value>(request: &Request<V>) -> Vec<u8> {
    let mut body = Vec::new();
    let mut second = 0;
    put_key(request.body.key(), &mut body);
    let kind = match &request.body {
        RequestBody::Put { value, time_to_live, condition, .. } => {
            second = put_time_to_live(*time_to_live, &mut body) | condition_bits(*condition);
            put_value(Some(value), &mut body);
            1
        }
        RequestBody::Delete { .. } => 2,
        RequestBody::Take { .. } => 4,
        RequestBody::Expire { time_to_live, .. } => {
            second = put_time_to_live(*time_to_live, &mut body);
            5
        }
        RequestBody::CompareAndSwap { expected, new, .. } => {
            put_value(expected.as_ref(), &mut body);
            put_value(Some(new), &mut body);
            3
        }
    };
    let header = Header {
        kind,
        client: request.client,
        number: request.number,
        first: request.settled,
        epoch: request.epoch,
        second,
    };
    seal(&header, &body)
}

/// The length of a request as bytes.
pub fn request_bytes<V: Value>(body: &RequestBody<V>) -> usize {
    let key = 1 + body.key().as_bytes().len();
    let rest = match body {
        RequestBody::Put { value, time_to_live, .. } => {
            time_to_live.map_or(0, |_| size_of::<u64>()) + value_bytes(Some(value))
        }
        RequestBody::Delete { .. } | RequestBody::Take { .. } => 0,
        RequestBody::Expire { time_to_live, .. } => time_to_live.map_or(0, |_| size_of::<u64>()),
        RequestBody::CompareAndSwap { expected, new, .. } => value_bytes(expected.as_ref()) + value_bytes(Some(new)),
    };
    HEADER_BYTES + key + rest
}

/// Parses a request.
///
/// # Errors
/// If the bytes are no valid request.
pub fn decode_request<V: Value>(bytes: &[u8]) -> Result<Request<V>, MessageError> {
    let (header, mut reader) = open(bytes)?;
    let key = reader.key()?;
    let body = match header.kind {
        1 => {
            let condition = condition_of(header.second)?;
            let time_to_live = reader.time_to_live(header.second)?;
            let value = reader.value()?.ok_or(MessageError::Field { field: "value", got: 0 })?;
            RequestBody::Put { key, value, time_to_live, condition }
        }
        2 => RequestBody::Delete { key },
        3 => {
            let expected = reader.value()?;
            let new = reader.value()?.ok_or(MessageError::Field { field: "value", got: 0 })?;
            RequestBody::CompareAndSwap { key, expected, new }
        }
        4 => RequestBody::Take { key },
        5 if header.second <= 1 => RequestBody::Expire { key, time_to_live: reader.time_to_live(header.second)? },
        kind => return Err(MessageError::Field { field: "kind", got: kind.into() }),
    };
    reader.end()?;
    Ok(Request { client: header.client, number: header.number, settled: header.first, epoch: header.epoch, body })
}

/// A reply as bytes.
pub fn encode_reply<V: Value>(reply: &Reply<V>) -> Vec<u8> {
    let mut body = Vec::new();
    let (kind, first, second) = match &reply.result {
        RequestResult::Unmet => (15, 0, 0),
        RequestResult::Stored => (16, 0, 0),
        RequestResult::Deleted { found } => (17, 0, u32::from(*found)),
        RequestResult::Taken { found } => {
            put_value(found.as_ref(), &mut body);
            (14, 0, 0)
        }
        RequestResult::Differs { found } => {
            put_value(found.as_ref(), &mut body);
            (18, 0, 0)
        }
        RequestResult::Refused(refusal) => refusal_fields(refusal, &mut body),
    };
    seal(&Header { kind, client: reply.client, number: reply.number, first, epoch: reply.epoch, second }, &body)
}

/// The length of a reply as bytes.
pub fn reply_bytes<V: Value>(result: &RequestResult<V>) -> usize {
    let rest = match result {
        RequestResult::Differs { found } | RequestResult::Taken { found } => value_bytes(found.as_ref()),
        RequestResult::Refused(Refusal::Full { .. }) => size_of::<u64>(),
        RequestResult::Stored | RequestResult::Unmet | RequestResult::Deleted { .. } | RequestResult::Refused(_) => 0,
    };
    HEADER_BYTES + rest
}

fn value_bytes<V: Value>(value: Option<&V>) -> usize {
    let length = |bytes: u32| if bytes <= VALUE_BYTES_MAX { 1 } else { size_of::<u32>() };
    1 + value.map_or(0, |value| length(value.bytes()) + value.bytes() as usize)
}

fn refusal_fields(refusal: &Refusal, body: &mut Vec<u8>) -> (u8, u64, u32) {
    match refusal {
        Refusal::Limit(LimitError::Key { got }) => (19, *got as u64, 0),
        Refusal::Limit(LimitError::Value { got, most }) => (20, (*got).into(), *most),
        Refusal::Limit(LimitError::TimeToLive { got }) => (21, got.0, 0),
        Refusal::Full { live, capacity } => {
            body.extend(capacity.to_le_bytes());
            (22, *live, 0)
        }
        Refusal::SegmentFull { most } => (23, (*most).into(), 0),
        Refusal::Corrupt => (24, 0, 0),
        Refusal::Device => (25, 0, 0),
        Refusal::WrongEpoch { got, current } => (26, (*got).into(), *current),
        Refusal::Recovering => (27, 0, 0),
        Refusal::NoOperation => (28, 0, 0),
        Refusal::UsedUp => (29, 0, 0),
    }
}

/// Parses a reply.
///
/// # Errors
/// If the bytes are no valid reply.
pub fn decode_reply<V: Value>(bytes: &[u8]) -> Result<Reply<V>, MessageError> {
    let (header, mut reader) = open(bytes)?;
    let result = match header.kind {
        14 => RequestResult::Taken { found: reader.value()? },
        15 => RequestResult::Unmet,
        16 => RequestResult::Stored,
        17 => RequestResult::Deleted { found: header.second != 0 },
        18 => RequestResult::Differs { found: reader.value()? },
        _ => RequestResult::Refused(refusal(&header, &mut reader)?),
    };
    reader.end()?;
    Ok(Reply { client: header.client, number: header.number, epoch: header.epoch, result })
}

fn refusal(header: &Header, reader: &mut Reader) -> Result<Refusal, MessageError> {
    let low = header.first as u32;
    Ok(match header.kind {
        19 => LimitError::Key { got: header.first as usize }.into(),
        20 => LimitError::Value { got: low, most: header.second }.into(),
        21 => LimitError::TimeToLive { got: Lifetime(header.first) }.into(),
        22 => Refusal::Full { live: header.first, capacity: u64::from_le_bytes(reader.array()?) },
        23 if low == SEGMENT_ITEMS_MAX => Refusal::SegmentFull { most: low },
        24 => Refusal::Corrupt,
        25 => Refusal::Device,
        26 => Refusal::WrongEpoch { got: low, current: header.second },
        27 => Refusal::Recovering,
        28 => Refusal::NoOperation,
        29 => Refusal::UsedUp,
        kind => return Err(MessageError::Field { field: "kind", got: kind.into() }),
    })
}

fn seal(header: &Header, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend([VERSION, header.kind]);
    bytes.extend(header.client.0.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(header.number.to_le_bytes());
    bytes.extend(header.first.to_le_bytes());
    bytes.extend(header.epoch.to_le_bytes());
    bytes.extend(header.second.to_le_bytes());
    bytes.extend_from_slice(body);
    let sum = checksum(&bytes);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..4]), &bytes[8..])
}

fn open(bytes: &[u8]) -> Result<(Header, Reader<'_>), MessageError> {
    if bytes.len() < HEADER_BYTES {
        return Err(MessageError::Length { got: bytes.len() });
    }
    let mut reader = Reader { bytes, length: bytes.len() };
    let [version, kind] = reader.array()?;
    let client = ClientId(u16::from_le_bytes(reader.array()?));
    let expected = u32::from_le_bytes(reader.array()?);
    if version != VERSION {
        return Err(MessageError::Version(version));
    }
    let got = checksum(bytes);
    if got != expected {
        return Err(MessageError::Checksum { got, expected });
    }
    let [number, first] = [u64::from_le_bytes(reader.array()?), u64::from_le_bytes(reader.array()?)];
    let [epoch, second] = [u32::from_le_bytes(reader.array()?), u32::from_le_bytes(reader.array()?)];
    Ok((Header { kind, client, number, first, epoch, second }, reader))
}

fn put_key(key: &Key, bytes: &mut Vec<u8>) {
    bytes.push(key.as_bytes().len() as u8);
    bytes.extend_from_slice(key.as_bytes());
}

fn put_value<V: Value>(value: Option<&V>, bytes: &mut Vec<u8>) {
    let Some(value) = value else { return bytes.push(0) };
    if value.bytes() <= VALUE_BYTES_MAX {
        bytes.extend([1, value.bytes() as u8]);
    } else {
        bytes.push(2);
        bytes.extend(value.bytes().to_le_bytes());
    }
    value.encode(bytes);
}

/// Returns the bit that says whether there is one.
fn put_time_to_live(time_to_live: Option<Lifetime>, bytes: &mut Vec<u8>) -> u32 {
    time_to_live.iter().for_each(|lifetime| bytes.extend(lifetime.0.to_le_bytes()));
    time_to_live.is_some().into()
}

fn condition_bits(condition: Condition) -> u32 {
    match condition {
        Condition::Always => 0,
        Condition::Absent => 2,
        Condition::Present => 4,
    }
}

fn condition_of(bits: u32) -> Result<Condition, MessageError> {
    match bits & !1 {
        0 => Ok(Condition::Always),
        2 => Ok(Condition::Absent),
        4 => Ok(Condition::Present),
        _ => Err(MessageError::Field { field: "condition", got: bits.into() }),
    }
}

/// What is left of a message.
struct Reader<'a> {
    bytes: &'a [u8],
    length: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], MessageError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(MessageError::Length { got: self.length })?;
        self.bytes = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        self.take(N)?.try_into().map_err(|_| MessageError::Length { got: self.length })
    }
    fn key(&mut self) -> Result<Key, MessageError> {
        let [length] = self.array()?;
        if usize::from(length) > KEY_BYTES_MAX {
            return Err(MessageError::Field { field: "length of the key", got: length.into() });
        }
        Key::new(self.take(length.into())?)
            .map_err(|_| MessageError::Field { field: "length of the key", got: length.into() })
    }
    fn value<V: Value>(&mut self) -> Result<Option<V>, MessageError> {
        let [there] = self.array()?;
        if there == 0 {
            return Ok(None);
        }
        let length = match there {
            1 => u32::from(self.array::<1>()?[0]),
            _ => u32::from_le_bytes(self.array()?),
        };
        let wrong = MessageError::Field { field: "length of a value", got: length.into() };
        let allowed = match there {
            1 => 0..=VALUE_BYTES_MAX,
            2 => VALUE_BYTES_MAX + 1..=RECORD_VALUE_BYTES_MAX,
            _ => return Err(wrong),
        };
        if !allowed.contains(&length) {
            return Err(wrong);
        }
        V::decode(self.take(length as usize)?).map(Some).ok_or(wrong)
    }
    fn time_to_live(&mut self, bits: u32) -> Result<Option<Lifetime>, MessageError> {
        if bits & 1 == 0 { Ok(None) } else { self.array().map(|bytes| Some(Lifetime(u64::from_le_bytes(bytes)))) }
    }
    fn end(&self) -> Result<(), MessageError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(MessageError::Length { got: self.length }) }
    }
}
