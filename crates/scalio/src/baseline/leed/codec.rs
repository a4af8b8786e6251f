//! Calls and answers as bytes: those of Scalio's requests and replies, preceded by a byte for the
//! calls that Scalio's servers do not have.
//!
//! | first byte | call | answer |
//! | --- | --- | --- |
//! | 0 | the following update | the following result |
//! | 1 | a GET of the key of the following deletion | the value that the following difference has found |

use super::{Answer, Call, CallResult};
use crate::layout::{
    MessageError, decode_reply, decode_request, encode_reply, encode_request, reply_bytes, request_bytes,
};
use crate::{Operation, Reply, Request, RequestBody, RequestResult, Value};

/// A call as bytes.
pub fn encode_call<V: Value>(call: &Call<V>) -> Vec<u8> {
    let (first, body) = match &call.operation {
        Operation::Get { key } => (1, RequestBody::Delete { key: *key }),
        Operation::Update(body) => (0, body.clone()),
    };
    let request = Request { client: call.client, number: call.number, settled: 0, epoch: 0, body };
    prefixed(first, encode_request(&request))
}

/// The length of a call as bytes.
pub fn call_bytes<V: Value>(call: &Call<V>) -> usize {
    1 + match &call.operation {
        Operation::Get { key } => request_bytes(&RequestBody::<V>::Delete { key: *key }),
        Operation::Update(body) => request_bytes(body),
    }
}

/// Parses a call.
///
/// # Errors
/// If the bytes are no valid call.
pub fn decode_call<V: Value>(bytes: &[u8]) -> Result<Call<V>, MessageError> {
    let (first, rest) = split(bytes)?;
    let request = decode_request(rest)?;
    let operation = match (first, request.body) {
        (0, body) => Operation::Update(body),
        (1, RequestBody::Delete { key }) => Operation::Get { key },
        (first, _) => return Err(unknown(first)),
    };
    Ok(Call { client: request.client, number: request.number, operation })
}

/// An answer as bytes.
pub fn encode_answer<V: Value>(answer: &Answer<V>) -> Vec<u8> {
    let (first, result) = match answer.result.clone() {
        CallResult::Value(found) => (1, RequestResult::Differs { found }),
        CallResult::Update(result) => (0, result),
    };
    prefixed(first, encode_reply(&Reply { client: answer.client, number: answer.number, epoch: 0, result }))
}

/// The length of an answer as bytes.
pub fn answer_bytes<V: Value>(answer: &Answer<V>) -> usize {
    1 + match &answer.result {
        CallResult::Value(found) => reply_bytes(&RequestResult::Differs { found: found.clone() }),
        CallResult::Update(result) => reply_bytes(result),
    }
}

/// Parses an answer.
///
/// # Errors
/// If the bytes are no valid answer.
pub fn decode_answer<V: Value>(bytes: &[u8]) -> Result<Answer<V>, MessageError> {
    let (first, rest) = split(bytes)?;
    let reply = decode_reply(rest)?;
    let result = match (first, reply.result) {
        (0, result) => CallResult::Update(result),
        (1, RequestResult::Differs { found }) => CallResult::Value(found),
        (first, _) => return Err(unknown(first)),
    };
    Ok(Answer { client: reply.client, number: reply.number, result })
}

fn prefixed(first: u8, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.insert(0, first);
    bytes
}

fn split(bytes: &[u8]) -> Result<(u8, &[u8]), MessageError> {
    let (first, rest) = bytes.split_first().ok_or(MessageError::Length { got: 0 })?;
    Ok((*first, rest))
}

fn unknown(first: u8) -> MessageError {
    MessageError::Field { field: "first byte", got: first.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientId, Condition, Key, Lifetime, Refusal};

    fn calls() -> Vec<Operation<Vec<u8>>> {
        let key = Key::new(b"key").expect("short");
        let value = b"value".to_vec();
        let bodies = [
            RequestBody::Put {
                key,
                value: value.clone(),
                time_to_live: Some(Lifetime::secs(3)),
                condition: Condition::Always,
            },
            RequestBody::Delete { key },
            RequestBody::CompareAndSwap { key, expected: None, new: value },
        ];
        bodies.into_iter().map(Operation::Update).chain([Operation::Get { key }]).collect()
    }

    #[test]
    fn calls_survive_their_bytes_and_no_changed_byte_passes() {
        for operation in calls() {
            let call = Call { client: ClientId(7), number: 1 << 40, operation };
            let bytes = encode_call(&call);
            assert_eq!(call_bytes(&call), bytes.len());
            assert_eq!(decode_call(&bytes), Ok(call.clone()));
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 4;
                assert!(decode_call::<Vec<u8>>(&changed).is_err(), "byte {at} of {call:?}");
                assert!(decode_call::<Vec<u8>>(&bytes[..at]).is_err());
            }
        }
    }

    #[test]
    fn answers_survive_their_bytes() {
        let found = || Some(b"value".to_vec());
        let results = [
            CallResult::Value(found()),
            CallResult::Value(None),
            CallResult::Update(RequestResult::Stored),
            CallResult::Update(RequestResult::Deleted { found: true }),
            CallResult::Update(RequestResult::Differs { found: found() }),
            CallResult::Update(RequestResult::Refused(Refusal::Full { live: 1 << 40, capacity: 1 << 41 })),
        ];
        for result in results {
            let answer = Answer { client: ClientId(7), number: 3, result };
            let bytes = encode_answer(&answer);
            assert_eq!(answer_bytes(&answer), bytes.len());
            assert_eq!(decode_answer(&bytes), Ok(answer));
            assert!(decode_answer::<Vec<u8>>(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
