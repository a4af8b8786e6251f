//! The slow log: commands whose outcome took long to be known, the latest first (SLOWLOG).

use crate::protocol::Reply;
use base::{Span, Time};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Arguments of a command that are kept, as Redis does.
const ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument that are kept.
const BYTES_MAX: usize = 128;

/// What a client has said, and when it was taken.
#[derive(Clone, Debug)]
pub struct Said {
    /// The command's name, and what follows it.
    pub arguments: Vec<Bytes>,
    /// The turn of the loop in which it was taken.
    pub at: Time,
}

/// What SLOWLOG asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The latest entries, so many.
    Latest(usize),
    /// How many there are.
    Count,
    /// Forgets all.
    Reset,
}

/// A command that took long, without what is too much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    arguments: Vec<Bytes>,
    took: Span,
}

impl Slow {
    /// What is kept of a command that took so long.
    pub fn new(said: &Said, took: Span) -> Slow {
        let count = said.arguments.len();
        let kept = if count > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { count };
        let mut arguments: Vec<Bytes> = said.arguments[..kept].iter().map(clipped).collect();
        if count > kept {
            arguments.push(format!("... ({} more arguments)", count - kept).into());
        }
        Slow { arguments, took }
    }
}

/// Copied, since the request that it is a part of may be long.
fn clipped(argument: &Bytes) -> Bytes {
    match argument.len().checked_sub(BYTES_MAX) {
        None | Some(0) => Bytes::copy_from_slice(argument),
        Some(more) => [&argument[..BYTES_MAX], format!("... ({more} more bytes)").as_bytes()].concat().into(),
    }
}

struct Entry {
    number: u64,
    second: u64,
    slow: Slow,
    peer: SocketAddr,
    name: Bytes,
}

/// The latest slow commands.
#[derive(Default)]
pub struct SlowLog {
    entries: VecDeque<Entry>,
    next: u64,
}

impl SlowLog {
    /// Adds one that a client called `name` gave, and forgets the oldest beyond `most`.
    pub fn add(&mut self, slow: Slow, second: u64, (peer, name): (SocketAddr, Bytes), most: usize) {
        self.entries.push_front(Entry { number: self.next, second, slow, peer, name });
        self.next += 1;
        self.entries.truncate(most);
    }

    /// Answers SLOWLOG.
    pub fn answer(&mut self, wanted: Wanted) -> Reply {
        match wanted {
            Wanted::Latest(count) => Reply::List(self.entries.iter().take(count).map(Entry::reply).collect()),
            Wanted::Count => Reply::Number(self.entries.len() as i64),
            Wanted::Reset => {
                self.entries.clear();
                Reply::Status("OK")
            }
        }
    }
}

impl Entry {
    fn reply(&self) -> Reply {
        let microseconds = self.slow.took / Span::us(1);
        let numbers = [self.number, self.second, microseconds].map(|number| Reply::Number(number as i64));
        let arguments = self.slow.arguments.iter().cloned().map(Reply::Bulk).collect();
        let peer = Reply::text(self.peer.to_string());
        Reply::List(numbers.into_iter().chain([Reply::List(arguments), peer, Reply::Bulk(self.name.clone())]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(arguments: Vec<Bytes>) -> Slow {
        Slow::new(&Said { arguments, at: Time::ZERO }, Span::us(15))
    }

    #[test]
    fn much_of_a_command_is_told_by_its_size() {
        let long = |bytes| vec![Bytes::from_static(b"SET"), Bytes::from(vec![b'x'; bytes])];
        assert_eq!(slow(long(128)).arguments[1].len(), 128);
        assert!(slow(long(129)).arguments[1].ends_with(b"x... (1 more bytes)"));
        let many = |count| slow(vec![Bytes::from_static(b"k"); count]).arguments;
        assert_eq!(many(32), vec!["k"; 32]);
        assert_eq!((many(40).len(), &many(40)[31][..]), (32, &b"... (9 more arguments)"[..]));
    }

    #[test]
    fn the_latest_stay_with_their_numbers() {
        let mut log = SlowLog::default();
        let client = || ("127.0.0.1:5".parse().expect("an address"), Bytes::from_static(b"me"));
        (0..5).for_each(|second| log.add(slow(vec![Bytes::from_static(b"PING")]), second, client(), 3));
        assert_eq!(log.answer(Wanted::Count), Reply::Number(3));
        let Reply::List(latest) = log.answer(Wanted::Latest(2)) else { panic!("a list") };
        let entry = |number| {
            let numbers = [number, number, 15].map(Reply::Number);
            let texts = [Reply::List(vec![Reply::text("PING")]), Reply::text("127.0.0.1:5"), Reply::text("me")];
            Reply::List(numbers.into_iter().chain(texts).collect())
        };
        assert_eq!(latest, [entry(4), entry(3)]);
        log.answer(Wanted::Reset);
        assert_eq!(log.answer(Wanted::Count), Reply::Number(0));
    }
}
