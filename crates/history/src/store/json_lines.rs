//! The lines that `tools/porcupine` reads.

use super::{StoreAction, StoreAnswer, StoreKey, StoreOperation, StoreValue};
use base::Time;
use std::fmt::{self, Display};
use std::io::{self, Write};

/// A decimal string, or null.
struct Text(StoreValue);

impl Display for Text {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(out, "\"{number}\""),
            None => out.write_str("null"),
        }
    }
}

struct Answer(Option<StoreAnswer>);

impl Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(StoreAnswer::Found(value)) => Text(value).fmt(out),
            Some(StoreAnswer::Removed(did_it) | StoreAnswer::Swapped(did_it)) => write!(out, "{did_it}"),
            Some(StoreAnswer::Stored) | None => out.write_str("null"),
        }
    }
}

/// A picosecond later, for the initial values come first.
fn shifted(time: Time) -> u64 {
    time.as_ps().saturating_add(1)
}

/// Puts the initial value there, at time 0; nothing if there is none.
pub fn write_initial(out: &mut impl Write, key: StoreKey, value: StoreValue) -> io::Result<()> {
    let Some(value) = value else { return Ok(()) };
    let put = r#""operation":"put""#;
    writeln!(
        out,
        r#"{{"client":0,{put},"key":"{key}","value":"{value}","expected":null,"result":null,"start":0,"end":0}}"#
    )
}

/// An operation as a line.
pub fn write(out: &mut impl Write, operation: &StoreOperation) -> io::Result<()> {
    let (name, value, expected) = match operation.action {
        StoreAction::Get => ("get", None, None),
        StoreAction::Put(value) => ("put", Some(value), None),
        StoreAction::Delete => ("delete", None, None),
        StoreAction::CompareAndSwap { expected, new } => ("cas", new, expected),
    };
    let StoreOperation { client, key, invoked, answered, .. } = *operation;
    write!(
        out,
        r#"{{"client":{client},"operation":"{name}","key":"{key}","value":{},"expected":{},"#,
        Text(value),
        Text(expected)
    )?;
    write!(out, r#""result":{},"start":{},"end":"#, Answer(answered.map(|(_, answer)| answer)), shifted(invoked))?;
    match answered {
        Some((at, _)) => writeln!(out, "{}}}", shifted(at)),
        None => writeln!(out, "null}}"),
    }
}
