//! Operations on a store, and what clients are told.
#![allow(dead_code, reason = "not every test needs all of it")]

use crate::common::{Client, Frame, ok};
use history::{StoreAction, StoreAnswer};

/// What a client is told of an operation.
pub enum Told {
    /// This.
    Answer(StoreAnswer),
    /// That it was not made.
    Refused(String),
    /// Nothing: it may have been made, or may yet be.
    Unknown,
}

/// Values of all lengths: those that a slot holds and those that it does not.
pub fn bytes_of(value: u64) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.resize([8, 60, 300][value as usize % 3], b' ');
    bytes
}

pub fn value_in(frame: &Frame) -> Option<u64> {
    match frame {
        Frame::Null => None,
        Frame::BulkString(bytes) => {
            let value = str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok());
            let is_whole = |value: &u64| *bytes == bytes_of(*value);
            Some(value.filter(is_whole).unwrap_or_else(|| {
                eprintln!("a value that nobody stored: {bytes:?}");
                NEVER_STORED
            }))
        }
        other => panic!("{other:?}"),
    }
}

/// Stands for a value that no client has stored, such as parts of two: no order explains it.
pub const NEVER_STORED: u64 = u64::MAX;

/// The only value of a game in which it matters alone whether a key is there.
pub const ONLY: u64 = 1;

/// Sends the request of an action.
///
/// # Errors
/// The connection is gone.
pub fn send(client: &mut Client, key: &[u8], action: StoreAction, asks: bool) -> std::io::Result<()> {
    match action {
        StoreAction::Get if asks => client.try_send(&[b"EXISTS", key]),
        StoreAction::Get => client.try_send(&[b"GET", key]),
        StoreAction::Put(value) => client.try_send(&[b"SET", key, &bytes_of(value)]),
        StoreAction::Delete => client.try_send(&[b"DEL", key]),
        StoreAction::CompareAndSwap { new, .. } => {
            client.try_send(&[b"SETNX", key, &bytes_of(new.expect("SETNX stores something"))])
        }
    }
}

/// What the store says to it.
pub fn told(frame: Option<Frame>, action: StoreAction, asks: bool) -> Told {
    let is_one = |frame: &Frame| match frame {
        Frame::Integer(number @ 0..=1) => *number == 1,
        other => panic!("{action:?}: {other:?}"),
    };
    let Some(frame) = frame else { return Told::Unknown };
    if let Frame::Error(text) = &frame {
        let is_known = !text.starts_with("ERR the outcome is unknown");
        return if is_known { Told::Refused(text.to_string()) } else { Told::Unknown };
    }
    Told::Answer(match action {
        StoreAction::Get if asks => StoreAnswer::Found(is_one(&frame).then_some(ONLY)),
        StoreAction::Get => StoreAnswer::Found(value_in(&frame)),
        StoreAction::Put(_) => {
            assert_eq!(frame, ok());
            StoreAnswer::Stored
        }
        StoreAction::Delete => StoreAnswer::Removed(is_one(&frame)),
        StoreAction::CompareAndSwap { .. } => StoreAnswer::Swapped(is_one(&frame)),
    })
}

/// Half of the keys are their own names in the store, half are hashed.
pub fn name_of(key: u64) -> String {
    if key.is_multiple_of(2) { format!("k{key}") } else { format!("a longer name of a key: {key}") }
}
