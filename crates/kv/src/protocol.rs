//! Requests and replies as bytes: RESP2, and RESP3 after `HELLO 3`.
//!
//! A request is a flat array of bulk strings, or a line of words. Its lengths are checked before
//! the library `redis-protocol` decodes it: that takes frames of any kind, nested to any depth.

use crate::output::{Output, PART_BYTES};
use bytes::{Buf, Bytes, BytesMut};
use redis_protocol::resp2::{self, types::BytesFrame as Frame2};
use redis_protocol::resp3::{self, types::BytesFrame as Frame3};

/// Bytes of a line: `*N`, `$N`, or a request of words.
const LINE_MAX: usize = 64 << 10;

/// Limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Arguments, the name of the command among them.
    pub arguments: usize,
    /// Bytes of the whole.
    pub bytes: usize,
}

/// Reason why bytes are no request. After it the connection ends, since where the next request
/// begins is unknown. The texts are those of Redis, where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The number of arguments.
    #[error("Protocol error: invalid multibulk length")]
    Arguments,
    /// The length of an argument.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// An argument is no bulk string.
    #[error("Protocol error: expected '$'")]
    Kind,
    /// A line without an end.
    #[error("Protocol error: too big inline request")]
    Line,
    /// More bytes than allowed.
    #[error("Protocol error: too big request")]
    Request,
    /// An argument does not end where it says.
    #[error("Protocol error: an argument does not end with CRLF")]
    End,
}

/// Takes the next request from the front of `bytes`, once it is complete. An empty line is a
/// request of no arguments.
///
/// # Errors
/// When it is none, or beyond the limits; nothing that a length announces is allocated before its
/// bytes are there.
pub fn take_request(bytes: &mut BytesMut, limits: RequestLimits) -> Result<Option<Vec<Bytes>>, ProtocolError> {
    match bytes.first() {
        None => return Ok(None),
        Some(b'*') => {}
        Some(_) => return take_words(bytes, limits),
    }
    let Some(length) = request_length(bytes, limits)? else { return Ok(None) };
    let mut request = bytes.split_to(length);
    if request.starts_with(b"*0") || request.starts_with(b"*-") {
        return Ok(Some(Vec::new()));
    }
    match resp2::decode::decode_bytes_mut(&mut request) {
        Ok(Some((Frame2::Array(items), ..))) => items.into_iter().map(argument).collect::<Result<_, _>>().map(Some),
        _ => Err(ProtocolError::Kind),
    }
}

fn argument(frame: Frame2) -> Result<Bytes, ProtocolError> {
    match frame {
        Frame2::BulkString(bytes) => Ok(bytes),
        _ => Err(ProtocolError::Kind),
    }
}

/// The length of the array at the front, once all of it is there.
fn request_length(bytes: &[u8], limits: RequestLimits) -> Result<Option<usize>, ProtocolError> {
    let Some((count, mut at)) = header(bytes, 0, ProtocolError::Arguments)? else {
        return Ok(None);
    };
    if count > limits.arguments as i64 {
        return Err(ProtocolError::Arguments);
    }
    for _ in 0..count {
        match bytes.get(at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(_) => return Err(ProtocolError::Kind),
        }
        let Some((length, from)) = header(bytes, at, ProtocolError::Length)? else { return Ok(None) };
        let length = usize::try_from(length).map_err(|_| ProtocolError::Length)?;
        if length > limits.bytes {
            return Err(ProtocolError::Length);
        }
        at = from + length + 2;
        if at > limits.bytes {
            return Err(ProtocolError::Request);
        }
        if bytes.get(at - 2..at).is_some_and(|end| end != b"\r\n") {
            return Err(ProtocolError::End);
        }
    }
    Ok((bytes.len() >= at).then_some(at))
}

/// The number in a line that begins with a byte of its kind, and where the next line begins.
fn header(bytes: &[u8], at: usize, error: ProtocolError) -> Result<Option<(i64, usize)>, ProtocolError> {
    /// Digits of an `i64` with its sign.
    const DIGITS_MAX: usize = 20;
    let rest = &bytes[at + 1..];
    let Some(end) = rest.iter().take(DIGITS_MAX + 2).position(|byte| *byte == b'\n') else {
        return if rest.len() > DIGITS_MAX + 1 { Err(error) } else { Ok(None) };
    };
    let digits = rest[..end].strip_suffix(b"\r").ok_or(error)?;
    let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or(error)?;
    Ok(Some((number, at + 1 + end + 1)))
}

/// A line of words, as people type it.
fn take_words(bytes: &mut BytesMut, limits: RequestLimits) -> Result<Option<Vec<Bytes>>, ProtocolError> {
    let most = LINE_MAX.min(limits.bytes);
    let Some(end) = bytes.iter().take(most).position(|byte| *byte == b'\n') else {
        return if bytes.len() >= most { Err(ProtocolError::Line) } else { Ok(None) };
    };
    let line = bytes.split_to(end).freeze();
    bytes.advance(1);
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<Bytes> = words.take(limits.arguments + 1).map(|word| line.slice_ref(word)).collect();
    if words.len() > limits.arguments { Err(ProtocolError::Arguments) } else { Ok(Some(words)) }
}

/// Version of the protocol in which a connection is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// RESP2.
    #[default]
    Two,
    /// RESP3.
    Three,
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A word such as `OK`.
    Status(&'static str),
    /// Bytes.
    Bulk(Bytes),
    /// There is nothing.
    Nothing,
    /// A number.
    Number(i64),
    /// An error: a word in capitals, then what happened.
    Error(String),
    /// Several.
    List(Vec<Reply>),
    /// Names and what they stand for; a list of both in RESP2.
    Map(Vec<(&'static str, Reply)>),
}

impl Reply {
    /// Text as bytes.
    pub fn text(text: impl Into<Bytes>) -> Reply {
        Reply::Bulk(text.into())
    }

    /// Appends it. Long values are not copied, so what is around them is written here.
    pub fn write(self, version: Version, output: &mut Output) {
        match self {
            Reply::Bulk(value) if value.len() >= PART_BYTES => {
                output.text().extend_from_slice(format!("${}\r\n", value.len()).as_bytes());
                output.append(value);
                output.text().extend_from_slice(b"\r\n");
            }
            Reply::List(all) if all.iter().any(Reply::is_long) => {
                output.text().extend_from_slice(format!("*{}\r\n", all.len()).as_bytes());
                all.into_iter().for_each(|reply| reply.write(version, output));
            }
            short => short.encode(version, output.text()),
        }
    }

    fn is_long(&self) -> bool {
        match self {
            Reply::Bulk(value) => value.len() >= PART_BYTES,
            Reply::List(all) => all.iter().any(Reply::is_long),
            _ => false,
        }
    }

    fn encode(self, version: Version, bytes: &mut BytesMut) {
        let written = match version {
            Version::Two => resp2::encode::extend_encode(bytes, &self.two(), false),
            Version::Three => resp3::encode::complete::extend_encode(bytes, &self.three(), false),
        };
        written.expect("a buffer that grows takes every reply");
    }

    fn two(self) -> Frame2 {
        match self {
            Reply::Status(word) => Frame2::SimpleString(Bytes::from_static(word.as_bytes())),
            Reply::Bulk(bytes) => Frame2::BulkString(bytes),
            Reply::Nothing => Frame2::Null,
            Reply::Number(number) => Frame2::Integer(number),
            Reply::Error(text) => Frame2::Error(one_line(text).into()),
            Reply::List(all) => Frame2::Array(all.into_iter().map(Reply::two).collect()),
            Reply::Map(all) => {
                let pair = |(name, reply): (&'static str, Reply)| [Reply::text(name).two(), reply.two()];
                Frame2::Array(all.into_iter().flat_map(pair).collect())
            }
        }
    }

    fn three(self) -> Frame3 {
        let attributes = None;
        match self {
            Reply::Status(word) => Frame3::SimpleString { data: Bytes::from_static(word.as_bytes()), attributes },
            Reply::Bulk(data) => Frame3::BlobString { data, attributes },
            Reply::Nothing => Frame3::Null,
            Reply::Number(data) => Frame3::Number { data, attributes },
            Reply::Error(text) => Frame3::SimpleError { data: one_line(text).into(), attributes },
            Reply::List(all) => Frame3::Array { data: all.into_iter().map(Reply::three).collect(), attributes },
            Reply::Map(all) => {
                let pair = |(name, reply): (&'static str, Reply)| (Reply::text(name).three(), reply.three());
                Frame3::Map { data: all.into_iter().map(pair).collect(), attributes }
            }
        }
    }
}

/// An error is one line, whatever of a request it repeats.
fn one_line(text: String) -> String {
    text.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: RequestLimits = RequestLimits { arguments: 8, bytes: 1000 };

    fn take(text: &[u8]) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        take_request(&mut BytesMut::from(text), LIMITS)
    }

    #[test]
    fn an_array_and_a_line_say_the_same() {
        let words = Ok(Some(vec![Bytes::from_static(b"GET"), Bytes::from_static(b"a")]));
        assert_eq!(take(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), words);
        assert_eq!(take(b"  GET a \r\n"), words);
        assert_eq!(take(b"\r\n"), Ok(Some(Vec::new())));
        assert_eq!(take(b"*0\r\n"), Ok(Some(Vec::new())));
        assert_eq!(take(b"*1\r\n$0\r\n\r\n"), Ok(Some(vec![Bytes::new()])));
    }

    #[test]
    fn lengths_are_refused_before_their_bytes_come() {
        for (text, error) in [
            (&b"*9\r\n"[..], ProtocolError::Arguments),
            (b"*999999999999\r\n", ProtocolError::Arguments),
            (b"*x\r\n", ProtocolError::Arguments),
            (b"*11111111111111111111111", ProtocolError::Arguments),
            (b"*1\r\n$1001\r\n", ProtocolError::Length),
            (b"*1\r\n$-1\r\n", ProtocolError::Length),
            (b"*2\r\n$600\r\n", ProtocolError::Request),
            (b"*1\r\n*1\r\n", ProtocolError::Kind),
            (b"*1\r\n:1\r\n", ProtocolError::Kind),
            (b"*1\r\n$1\r\naXX", ProtocolError::End),
            (&[b'a'; 1000], ProtocolError::Line),
            (b"1 2 3 4 5 6 7 8 9\r\n", ProtocolError::Arguments),
        ] {
            let text = if error == ProtocolError::Request {
                let mut long = text.to_vec();
                long.extend(vec![b'x'; 600]);
                long.extend(b"\r\n$600\r\n");
                long
            } else {
                text.to_vec()
            };
            assert_eq!(take(&text), Err(error), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn replies_in_both_versions() {
        let shown = |reply: Reply, version| {
            let mut output = Output::default();
            reply.write(version, &mut output);
            String::from_utf8(output.bytes()).expect("text")
        };
        let all = || {
            Reply::List(vec![
                Reply::Status("OK"),
                Reply::text("v"),
                Reply::Nothing,
                Reply::Number(-3),
                Reply::Error("ERR a\r\nb".into()),
                Reply::Map(vec![("k", Reply::Number(1)), ("a", Reply::Number(2))]),
            ])
        };
        let two = "*6\r\n+OK\r\n$1\r\nv\r\n$-1\r\n:-3\r\n-ERR a  b\r\n*4\r\n$1\r\nk\r\n:1\r\n$1\r\na\r\n:2\r\n";
        let three = "*6\r\n+OK\r\n$1\r\nv\r\n_\r\n:-3\r\n-ERR a  b\r\n%2\r\n$1\r\nk\r\n:1\r\n$1\r\na\r\n:2\r\n";
        assert_eq!(shown(all(), Version::Two), two);
        assert_eq!(shown(all(), Version::Three), three);
    }

    #[test]
    fn a_long_value_is_written_as_the_library_writes_it() {
        for length in [PART_BYTES - 1, PART_BYTES, PART_BYTES + 1] {
            let long = || Reply::text(vec![b'x'; length]);
            let list = || Reply::List(vec![Reply::Nothing, long(), Reply::List(vec![long()]), Reply::text("short")]);
            for (reply, version) in [(long(), Version::Two), (list(), Version::Two), (list(), Version::Three)] {
                let (mut ours, mut theirs) = (Output::default(), BytesMut::new());
                reply.clone().write(version, &mut ours);
                reply.encode(version, &mut theirs);
                assert!(ours.bytes() == theirs, "{length} bytes in {version:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_request_in_pieces_is_the_request(
            arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..8), cut in 0usize..300,
        ) {
            let mut whole = BytesMut::new();
            Reply::List(arguments.iter().map(|bytes| Reply::text(bytes.clone())).collect())
                .encode(Version::Two, &mut whole);
            let cut = cut.min(whole.len() - 1);
            let mut front = BytesMut::from(&whole[..cut]);
            prop_assert_eq!(take_request(&mut front, LIMITS), Ok(None));
            prop_assert_eq!(&front[..], &whole[..cut]);
            front.extend_from_slice(&whole[cut..]);
            let expected = arguments.into_iter().map(Bytes::from).collect();
            prop_assert_eq!(take_request(&mut front, LIMITS), Ok(Some(expected)));
            prop_assert!(front.is_empty());
        }

        #[test]
        fn no_bytes_make_it_fall_over(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = take_request(&mut bytes, LIMITS) {}
        }
    }
}
