//! Message traces as comma-separated values.
//!
//! Lines are split here and not by the `csv` crate. With comments, blank lines or CRLF endings the
//! line numbers of its records (1.4) are those of an earlier line, and it does not detect a
//! truncated last line.

use crate::block_trace::Inversions;
use crate::config::TraceMessage;
use crate::file::{FileError, Lines, Reason, is_silent};
use crate::problem::SIZE_MAX;
use base::{Bytes, NodeId, Operation, Time};
use std::io::{self, BufRead, Write};

/// The first line of every trace.
pub(crate) const HEADER: &str = "time,source,target,operation,bytes";
const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::ReadModifyWrite];

/// Reads a trace for a rack of `nodes` nodes. The first line is
/// `time,source,target,operation,bytes`, the others one message each, such as `10.5ns,0,3,read,64`:
/// a time with its unit, two node numbers, `read`, `write` or `read-modify-write`, and a number of
/// bytes. Small decreases of time are sorted (see [`Inversions`]). Blank lines and lines that begin
/// with `#` are skipped. The last line must end in a newline, so that truncation is detected.
/// Errors contain `name`.
///
/// # Errors
/// The first line that breaks these rules, with its reason.
pub fn read_trace(
    name: &str,
    nodes: u32,
    inversions: Inversions,
    reader: impl BufRead,
) -> Result<MessageTrace, FileError> {
    let mut lines = Lines::new(name, reader);
    let (latest, read) = (Time::ZERO, MessageTrace::default());
    let mut trace = Trace { nodes, inversions, has_header: false, latest, read };
    while let Some(line) = lines.next()? {
        let taken = if is_silent(line.text) { Ok(()) } else { trace.take(line.text, line.is_whole) };
        taken.map_err(|reason| lines.error(reason))?;
    }
    let Trace { mut read, .. } = trace;
    if read.messages.is_empty() {
        return Err(lines.error(Reason::Empty));
    }
    read.messages.sort_by_key(|message| message.at);
    Ok(read)
}

/// What a trace holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageTrace {
    /// Its messages, in the order of their times; those of one time as their lines are.
    pub messages: Vec<TraceMessage>,
    /// How many of them came behind a later one.
    pub inverted: u64,
}

/// Writes a trace that [`read_trace`] reads back as it is.
///
/// # Errors
/// Those of the writer.
pub fn write_trace(messages: &[TraceMessage], mut writer: impl Write) -> io::Result<()> {
    writeln!(writer, "{HEADER}")?;
    for TraceMessage { at, operation, source, target, bytes } in messages {
        writeln!(writer, "{at},{},{},{},{}", source.0, target.0, operation.name(), bytes.count())?;
    }
    writer.flush()
}

/// The messages so far.
struct Trace {
    nodes: u32,
    inversions: Inversions,
    has_header: bool,
    latest: Time,
    read: MessageTrace,
}

impl Trace {
    fn take(&mut self, line: &str, is_whole: bool) -> Result<(), Reason> {
        if !is_whole {
            return Err(Reason::Truncated { got: line.into() });
        }
        if !self.has_header {
            self.has_header = true;
            return header(line);
        }
        let message = self.message(line)?;
        self.read.inverted += u64::from(message.at < self.latest);
        self.latest = self.latest.max(message.at);
        self.read.messages.push(message);
        Ok(())
    }

    fn message(&self, line: &str) -> Result<TraceMessage, Reason> {
        let [time, source, target, operation, bytes] = split(line)?;
        let (source, target) = (self.node("source", source)?, self.node("target", target)?);
        if source == target {
            return Err(Reason::AsksItself { node: source.0 });
        }
        let (operation, bytes) = (named_operation(operation)?, size(bytes)?);
        Ok(TraceMessage { at: self.time(time)?, operation, source, target, bytes })
    }

    fn time(&self, text: &str) -> Result<Time, Reason> {
        let time: Time = text.parse().map_err(|error| Reason::Unit { field: "time", error })?;
        match self.latest.saturating_since(time) > self.inversions.longest() {
            true => Err(Reason::Falls { field: "time", got: text.into(), before: self.latest.to_string() }),
            false => Ok(time),
        }
    }

    fn node(&self, field: &'static str, text: &str) -> Result<NodeId, Reason> {
        match text.parse::<u32>() {
            Ok(node) if node < self.nodes => Ok(NodeId(node)),
            _ => Err(Reason::Value { field, got: text.into(), allowed: format!("a node in 0..{}", self.nodes) }),
        }
    }
}

fn header(line: &str) -> Result<(), Reason> {
    let line = line.trim_start_matches('\u{feff}');
    let is_header = line.split(',').map(str::trim).eq(HEADER.split(','));
    if is_header { Ok(()) } else { Err(Reason::Header { got: line.into(), allowed: HEADER }) }
}

fn split(line: &str) -> Result<[&str; 5], Reason> {
    let mut columns = line.split(',').map(str::trim);
    let mut fields = [""; 5];
    for field in &mut fields {
        *field = columns.next().ok_or_else(|| columns_error(line))?;
    }
    if columns.next().is_some() { Err(columns_error(line)) } else { Ok(fields) }
}

fn columns_error(line: &str) -> Reason {
    Reason::Columns { line: line.into(), got: line.split(',').count(), allowed: format!("5: {HEADER}") }
}

fn named_operation(text: &str) -> Result<Operation, Reason> {
    let allowed = || OPERATIONS.map(Operation::name).join(", ");
    let found = OPERATIONS.into_iter().find(|operation| operation.name() == text);
    found.ok_or_else(|| Reason::Value {
        field: "operation",
        got: text.into(),
        allowed: format!("one of {}", allowed()),
    })
}

fn size(text: &str) -> Result<Bytes, Reason> {
    match text.parse::<u64>() {
        Ok(bytes) if (1..=SIZE_MAX.count()).contains(&bytes) => Ok(Bytes::new(bytes)),
        _ => Err(Reason::Value {
            field: "bytes",
            got: text.into(),
            allowed: format!("a whole number in 1..={}", SIZE_MAX.count()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_with(inversions: Inversions, lines: &str) -> Result<MessageTrace, FileError> {
        read_trace("trace.csv", 4, inversions, format!("{HEADER}\n{lines}").as_bytes())
    }

    fn read(lines: &str) -> Result<Vec<TraceMessage>, FileError> {
        read_with(Inversions::Refuse, lines).map(|trace| trace.messages)
    }

    fn error(lines: &str) -> String {
        read(lines).unwrap_err().to_string()
    }

    #[test]
    fn messages_are_read_as_they_are_written() {
        let messages =
            read("# a comment\n0ps,0,3,read,64\n\n10.5ns, 1, 0, write, 4096\r\n10.5ns,2,1,read-modify-write,8\n")
                .unwrap();
        let message = |at, source, target, operation, bytes| TraceMessage {
            at: Time::ps(at),
            operation,
            source: NodeId(source),
            target: NodeId(target),
            bytes: Bytes::new(bytes),
        };
        let expected = [
            message(0, 0, 3, Operation::Read, 64),
            message(10_500, 1, 0, Operation::Write, 4096),
            message(10_500, 2, 1, Operation::ReadModifyWrite, 8),
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn a_bad_line_is_named_with_its_reason_and_value() {
        assert_eq!(
            error("2ns,0,1,read,64\n1ns,0,1,read,64\n"),
            "trace.csv:3: time 1ns comes after 2ns, it must not fall"
        );
        let not_a_time =
            |text: &str| format!("trace.csv:2: time: `{text}` does not start with a non-negative decimal number");
        assert_eq!(error("-1ns,0,1,read,64\n"), not_a_time("-1ns"));
        assert_eq!(error("NaN,0,1,read,64\n"), not_a_time("NaN"));
        assert_eq!(
            error("1,0,1,read,64\n"),
            "trace.csv:2: time: `1` has no unit: write it with one of ps, ns, us, ms, s, min, h"
        );
        assert_eq!(error("1ns,4,1,read,64\n"), "trace.csv:2: source `4` is not a node in 0..4");
        assert_eq!(error("1ns,0,-1,read,64\n"), "trace.csv:2: target `-1` is not a node in 0..4");
        assert_eq!(error("1ns,2,2,read,64\n"), "trace.csv:2: source and target are both 2, they must differ");
        assert_eq!(
            error("1ns,0,1,erase,64\n"),
            "trace.csv:2: operation `erase` is not one of read, write, read-modify-write"
        );
        let not_a_size = |text: &str| format!("trace.csv:2: bytes `{text}` is not a whole number in 1..=1099511627776");
        assert_eq!(error("1ns,0,1,read,0\n"), not_a_size("0"));
        assert_eq!(error("1ns,0,1,read,NaN\n"), not_a_size("NaN"));
        assert_eq!(error("1ns,0,1,read,1099511627777\n"), not_a_size("1099511627777"));
    }

    #[test]
    fn what_is_a_little_behind_is_put_in_order_and_what_is_further_is_refused() {
        let lines = "0ns,0,1,read,64\n2ms,0,2,read,64\n1ms,0,3,read,64\n2ms,1,0,read,64\n1.5ms,1,2,read,64\n";
        let sorted = read_with(Inversions::Sort, lines).unwrap();
        let order: Vec<(u32, u32)> = sorted.messages.iter().map(|it| (it.source.0, it.target.0)).collect();
        assert_eq!((order, sorted.inverted), (vec![(0, 1), (0, 3), (1, 2), (0, 2), (1, 0)], 2));
        assert!(error(lines).starts_with("trace.csv:4: time 1ms comes after 2ms"));
        let far = "2ms,0,1,read,64\n999999ns,0,1,read,64\n";
        assert!(read_with(Inversions::Sort, far).unwrap_err().to_string().starts_with("trace.csv:3: time 999999ns"));
    }

    #[test]
    fn missing_and_extra_columns_a_cut_line_and_a_wrong_header_are_refused() {
        let columns = "5: time,source,target,operation,bytes";
        assert_eq!(error("1ns,0,1\n"), format!("trace.csv:2: `1ns,0,1` has 3 columns, it must have {columns}"));
        assert_eq!(
            error("1ns,0,1,read,64,\n"),
            format!("trace.csv:2: `1ns,0,1,read,64,` has 6 columns, it must have {columns}")
        );
        let cut = "trace.csv:3: `2ns,0,1,read,6` does not end in a newline: the file is cut off";
        assert_eq!(error("1ns,0,1,read,64\n2ns,0,1,read,6"), cut);
        assert_eq!(error("# none\n"), "trace.csv:2: the file holds no data");
        let read = |text: &str| read_trace("trace.csv", 4, Inversions::Sort, text.as_bytes()).unwrap_err().to_string();
        assert_eq!(read(""), "trace.csv:1: the file holds no data");
        let header = "trace.csv:1: the header is `1ns,0,1,read,64`, it must be `time,source,target,operation,bytes`";
        assert_eq!(read("1ns,0,1,read,64\n"), header);
    }

    prop_compose! {
        fn any_message()(
            gap in 0..1u64 << 40, source in 0..8u32, step in 1..8u32, operation in 0..3usize, bytes in 1..=SIZE_MAX.count(),
        ) -> TraceMessage {
            let target = NodeId((source + step) % 8);
            TraceMessage { at: Time::ps(gap), operation: OPERATIONS[operation], source: NodeId(source), target, bytes: Bytes::new(bytes) }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(mut messages in proptest::collection::vec(any_message(), 1..20)) {
            messages.sort_by_key(|message| message.at);
            let mut text = Vec::new();
            write_trace(&messages, &mut text).unwrap();
            let read = read_trace("trace.csv", 8, Inversions::Refuse, text.as_slice()).unwrap();
            prop_assert_eq!(read, MessageTrace { messages, inverted: 0 });
        }

        #[test]
        fn a_trace_cut_anywhere_is_noticed_or_loses_whole_lines_only(
            mut messages in proptest::collection::vec(any_message(), 1..5), cut in any::<proptest::sample::Index>(),
        ) {
            messages.sort_by_key(|message| message.at);
            let mut text = Vec::new();
            write_trace(&messages, &mut text).unwrap();
            text.truncate(cut.index(text.len()));
            if let Ok(read) = read_trace("trace.csv", 8, Inversions::Refuse, text.as_slice()) {
                prop_assert_eq!(&read.messages[..], &messages[..read.messages.len()]);
                prop_assert!(text.ends_with(b"\n"));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_trace("any", 4, Inversions::Sort, bytes.as_slice());
        }

        #[test]
        fn no_line_panics(line in "([0-9a-z.,-]|ns){0,40}") {
            let _ = read(&format!("{line}\n"));
        }
    }
}
