//! One connection without its socket: commands are taken in their order, and answered in it.
//!
//! Commands of a pipeline run at the same time unless one of two that name the same key reads what
//! the other writes. Then the later one waits.

use crate::command::{Command, Late, Unit, parse};
use crate::config::Config;
use crate::output::Output;
use crate::protocol::{ProtocolError, Reply, RequestLimits, Version, take_request};
use crate::slowlog::{Said, Slow};
use base::{Span, Time};
use bytes::{Bytes, BytesMut};
use globset::GlobMatcher;
use scalio::{Key, Name, Operation, Outcome, Refusal, RequestBody};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Commands under way at most.
const COMMANDS_MAX: usize = 1_024;
/// Operations on the store under way at most, before the next command is taken.
const OPERATIONS_MAX: usize = 256;
/// Limits before a client has proved itself.
const STRANGER: RequestLimits = RequestLimits { arguments: 10, bytes: 16 << 10 };

/// What is asked of the store.
#[derive(Debug, PartialEq)]
pub enum Want {
    /// An operation.
    Operation(Operation<Bytes>),
    /// Whether a key is there and for how long.
    Describe(Key),
    /// All names of a block.
    Names(u32),
}

/// What a command wants of the store.
#[derive(Debug, PartialEq)]
pub struct Ask {
    /// The command.
    pub command: u64,
    /// Which part of it.
    pub part: usize,
    /// When the command came.
    pub came: Time,
    /// Key or block, and what is done with it.
    pub want: Want,
}

/// Rules for all sessions.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What clients prove themselves by.
    pub password: Option<Bytes>,
    /// Limits of a request.
    pub limits: RequestLimits,
    /// Bytes of the longest value.
    pub value_bytes: usize,
    /// Bytes of values that one command may answer with.
    pub reply_bytes: usize,
    /// Operations under way at most, before the next command is taken.
    pub operations: usize,
    /// Blocks of the store.
    pub blocks: u32,
    /// Commands that take so long are slow; `None`: nobody asks.
    pub slow_after: Option<Span>,
}

impl Rules {
    /// The rules of a store. As many operations are under way as values of the greatest length are
    /// in the longest reply: what a client makes the store hold is bounded before it is there.
    pub fn new(config: &Config, blocks: u32, value_bytes_max: u32) -> Rules {
        let limits = &config.limits;
        let value_bytes = value_bytes_max as usize;
        Rules {
            password: config.password.clone(),
            limits: RequestLimits { arguments: limits.arguments, bytes: limits.request },
            value_bytes,
            reply_bytes: limits.reply,
            operations: (limits.reply / value_bytes.max(1)).clamp(1, OPERATIONS_MAX),
            blocks,
            slow_after: (limits.slow_commands > 0).then_some(limits.slow_after),
        }
    }
}

/// How the reply of a command is made of the outcomes of its operations.
#[derive(Clone, Debug)]
enum Shape {
    Ready(Reply),
    Late(Late),
    Get { is_list: bool },
    Count,
    Left { unit: Unit },
    Names { next: u64, pattern: Option<Box<GlobMatcher>> },
    Put { is_number: bool },
}

/// A command under way.
struct Open {
    names: Vec<Name>,
    is_write: bool,
    outcomes: Vec<Option<Outcome<Bytes>>>,
    left: usize,
    /// Bytes of the values that it stores.
    given: usize,
    /// Bytes of the values that it answers with.
    bytes: usize,
    shape: Shape,
    version: Version,
    /// What was said, where the slow log may want it, and when.
    said: Option<Said>,
}

impl Open {
    /// Bytes of values that it holds: of a reply that would be longer than `most`, none.
    fn held(&self, most: usize) -> usize {
        self.given + if self.bytes <= most { self.bytes } else { 0 }
    }
}

/// Readers and writers of a key under way.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    reads: u32,
    writes: u32,
}

/// A command whose outcome is known.
pub struct Ended {
    /// Whether it writes keys.
    pub is_write: bool,
    /// How long that took.
    pub took: Span,
    /// What the slow log gets of it.
    pub slow: Option<Slow>,
}

/// One connection.
pub struct Session {
    number: u64,
    version: Version,
    is_known: bool,
    name: Bytes,
    open: VecDeque<Open>,
    /// The number of the first open command.
    first: u64,
    operations: usize,
    /// Of those at most, and of the bytes of a reply.
    operations_max: usize,
    reply_bytes_max: usize,
    /// Bytes of values of open commands.
    held: usize,
    uses: BTreeMap<Name, Uses>,
    slow_after: Option<Span>,
    waiting: Option<(Command, Said)>,
    is_over: bool,
    is_broken: bool,
    failed_proofs: u32,
}

impl Session {
    /// A connection that has said nothing yet.
    pub fn new(number: u64, rules: &Rules) -> Session {
        Session {
            number,
            version: Version::default(),
            is_known: rules.password.is_none(),
            name: Bytes::new(),
            open: VecDeque::new(),
            first: 0,
            operations: 0,
            operations_max: rules.operations,
            reply_bytes_max: rules.reply_bytes,
            held: 0,
            uses: BTreeMap::new(),
            slow_after: rules.slow_after,
            waiting: None,
            is_over: false,
            is_broken: false,
            failed_proofs: 0,
        }
    }

    /// Whether the client has proved itself, or needs not.
    pub fn is_known(&self) -> bool {
        self.is_known
    }
    /// What its operator should hear of at its end.
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Session { is_broken: true, .. } => Some("it broke the protocol"),
            Session { is_known: false, failed_proofs: 1.., .. } => Some("it gave wrong passwords and no right one"),
            _ => None,
        }
    }
    /// What the client calls itself.
    pub fn name(&self) -> &Bytes {
        &self.name
    }
    /// Whether nothing more is read from the client.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
    /// Whether every command is answered.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.waiting.is_none()
    }
    /// Whether it takes no command before one under way is done.
    pub fn is_full(&self) -> bool {
        self.waiting.is_some() || self.open.len() >= COMMANDS_MAX || self.operations >= self.operations_max
    }
    /// Bytes of values that its open commands store or answer with.
    pub fn held(&self) -> usize {
        self.held
    }
    /// Nothing more comes from the client; what has come is still answered.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Takes commands from the front of `input`, and adds what they ask for to `asks`. Returns how
    /// many it has taken.
    pub fn take(&mut self, now: Time, input: &mut BytesMut, rules: &Rules, asks: &mut Vec<Ask>) -> usize {
        let mut taken = 0;
        if let Some((command, said)) = self.waiting.take() {
            self.begin(command, said, rules, asks);
        }
        while !self.is_over && !self.is_full() {
            let limits = if self.is_known { rules.limits } else { STRANGER };
            match take_request(input, limits) {
                Ok(None) => break,
                Ok(Some(arguments)) => {
                    taken += 1;
                    // An empty line is answered by nothing.
                    if !arguments.is_empty() {
                        self.begin(parse(&arguments), Said { arguments, at: now }, rules, asks);
                    }
                }
                Err(error) => self.break_off(error),
            }
        }
        taken
    }

    fn break_off(&mut self, error: ProtocolError) {
        self.ready(Reply::Error(format!("ERR {error}")));
        (self.is_over, self.is_broken) = (true, true);
    }

    fn ready(&mut self, reply: Reply) {
        self.push((Vec::new(), false), 0, 0, Shape::Ready(reply), None);
    }

    fn push(
        &mut self,
        (names, is_write): (Vec<Name>, bool),
        parts: usize,
        given: usize,
        shape: Shape,
        said: Option<Said>,
    ) {
        let (outcomes, version) = (vec![None; parts], self.version);
        self.operations += parts;
        self.held += given;
        self.open.push_back(Open { names, is_write, outcomes, left: parts, given, bytes: 0, shape, version, said });
    }

    fn begin(&mut self, command: Command, said: Said, rules: &Rules, asks: &mut Vec<Ask>) {
        if !self.is_known && !matches!(command, Command::Greet { .. } | Command::Quit) {
            return self.ready(Reply::Error("NOAUTH Authentication required.".into()));
        }
        if let Command::Put { pairs, .. } = &command
            && let Some((_, value)) = pairs.iter().find(|(_, value)| value.len() > rules.value_bytes)
        {
            let (got, most) = (value.len(), rules.value_bytes);
            return self.ready(Reply::Error(format!("ERR a value of {got} bytes, allowed are at most {most}")));
        }
        let Some((names, is_write)) = keys_of(&command) else { return self.at_once(command, rules) };
        // A walk finds all that was stored before it.
        let is_walk = matches!(command, Command::Scan { .. });
        if is_walk && self.uses.values().any(|uses| uses.writes > 0)
            || names.iter().any(|name| self.is_in_the_way(name, is_write))
        {
            self.waiting = Some((command, said));
            return;
        }
        for name in &names {
            let uses = self.uses.entry(name.clone()).or_default();
            *if is_write { &mut uses.writes } else { &mut uses.reads } += 1;
        }
        let number = self.first + self.open.len() as u64;
        let given = match &command {
            Command::Put { pairs, .. } => pairs.iter().map(|(_, value)| value.len()).sum(),
            _ => 0,
        };
        let (shape, wants) = wants_of(command, rules);
        let came = said.at;
        // What nobody asks for is not kept.
        let arguments = if self.slow_after.is_some() { said.arguments } else { Vec::new() };
        self.push((names, is_write), wants.len(), given, shape, Some(Said { arguments, at: came }));
        let ask = |(part, want)| Ask { command: number, part, came, want };
        asks.extend(wants.into_iter().enumerate().map(ask));
    }

    fn is_in_the_way(&self, name: &Name, is_write: bool) -> bool {
        let uses = self.uses.get(name).copied().unwrap_or_default();
        if is_write { uses.reads > 0 } else { uses.writes > 0 }
    }

    fn at_once(&mut self, command: Command, rules: &Rules) {
        match command {
            Command::Late(late) => self.push((Vec::new(), false), 0, 0, Shape::Late(late), None),
            Command::Greet { hello, proof, name } => self.greet(hello, proof, name, rules),
            Command::MyName if self.name.is_empty() => self.ready(Reply::Nothing),
            Command::MyName => self.ready(Reply::Bulk(self.name.clone())),
            Command::MyNumber => self.ready(Reply::Number(self.number as i64)),
            Command::Quit => {
                self.ready(Reply::Status("OK"));
                self.is_over = true;
            }
            Command::Reply(reply) => self.ready(reply),
            Command::Get { .. }
            | Command::Exists(_)
            | Command::Left { .. }
            | Command::Scan { .. }
            | Command::Delete(_)
            | Command::Take(_)
            | Command::Expire { .. }
            | Command::Put { .. } => {}
        }
    }

    fn greet(
        &mut self,
        hello: Option<Option<Version>>,
        proof: Option<(Bytes, Bytes)>,
        name: Option<Bytes>,
        rules: &Rules,
    ) {
        if let Some(refusal) = proof.and_then(|proof| self.prove(&proof, rules)) {
            return self.ready(Reply::Error(refusal.into()));
        }
        if !self.is_known {
            let text = "NOAUTH HELLO must be called with AUTH, or after it: a password is required";
            return self.ready(Reply::Error(text.into()));
        }
        self.name = name.unwrap_or_else(|| self.name.clone());
        let Some(version) = hello else { return self.ready(Reply::Status("OK")) };
        self.version = version.unwrap_or(self.version);
        let number = if self.version == Version::Three { 3 } else { 2 };
        self.ready(Reply::Map(vec![
            ("server", Reply::text("rackweave")),
            ("version", Reply::text(env!("CARGO_PKG_VERSION"))),
            ("proto", Reply::Number(number)),
            ("id", Reply::Number(self.number as i64)),
            ("mode", Reply::text("standalone")),
            ("role", Reply::text("master")),
            ("modules", Reply::List(Vec::new())),
        ]));
    }

    /// Checks a password; the reason of a refusal.
    fn prove(&mut self, (user, password): &(Bytes, Bytes), rules: &Rules) -> Option<&'static str> {
        /// Wrong passwords until the connection ends.
        const TRIES_MAX: u32 = 8;
        let Some(right) = &rules.password else {
            return Some("ERR AUTH without a password being configured: this store lets everybody in");
        };
        if user == &b"default"[..] && is_same(password, right) {
            self.is_known = true;
            return None;
        }
        self.failed_proofs += 1;
        self.is_over |= self.failed_proofs >= TRIES_MAX;
        Some("WRONGPASS invalid username-password pair or user is disabled.")
    }

    /// An operation of a command has ended. If it was the last one, so has the command.
    pub fn done(&mut self, now: Time, command: u64, part: usize, outcome: Outcome<Bytes>) -> Option<Ended> {
        let at = command.checked_sub(self.first).and_then(|at| usize::try_from(at).ok())?;
        let open = self.open.get_mut(at)?;
        let slot = open.outcomes.get_mut(part).filter(|slot| slot.is_none())?;
        let bytes = match &outcome {
            // Its record may have the name, too.
            Outcome::Value(Some(record)) | Outcome::Taken { found: Some(record) } => {
                open.names[part].value(record.clone()).map_or(0, |value| value.len())
            }
            Outcome::Names(names) => names.iter().map(|name| name.as_bytes().len()).sum(),
            _ => 0,
        };
        *slot = Some(outcome);
        self.held -= open.held(self.reply_bytes_max);
        open.bytes += bytes;
        self.held += open.held(self.reply_bytes_max);
        open.left -= 1;
        self.operations -= 1;
        if open.bytes > self.reply_bytes_max {
            // The reply will be an error: what it has of values is of no use.
            open.outcomes.iter_mut().flatten().for_each(|outcome| *outcome = Outcome::Value(None));
        }
        if open.left > 0 {
            return None;
        }
        let said = open.said.take();
        let (names, is_write) = (std::mem::take(&mut open.names), open.is_write);
        names.iter().for_each(|name| self.release(name, is_write));
        self.open[at].names = names;
        let said = said?;
        let took = now.saturating_since(said.at);
        let slow = self.slow_after.filter(|after| took >= *after).map(|_| Slow::new(&said, took));
        Some(Ended { is_write, took, slow })
    }

    fn release(&mut self, name: &Name, is_write: bool) {
        let Some(uses) = self.uses.get_mut(name) else { return };
        *if is_write { &mut uses.writes } else { &mut uses.reads } -= 1;
        if uses.reads + uses.writes == 0 {
            self.uses.remove(name);
        }
    }

    /// Appends the replies of commands that are done, up to `most` bytes and what the last one has.
    /// `late` knows what the host knows.
    pub fn write(&mut self, output: &mut Output, most: usize, mut late: impl FnMut(&Late) -> Reply) {
        while output.len() < most && self.open.front().is_some_and(|open| open.left == 0) {
            let Some(open) = self.open.pop_front() else { return };
            self.first += 1;
            self.held -= open.held(self.reply_bytes_max);
            let version = open.version;
            let reply = match open.shape {
                Shape::Ready(reply) => reply,
                Shape::Late(ref wanted) => late(wanted),
                _ => reply_of(open, self.reply_bytes_max),
            };
            reply.write(version, output);
        }
    }
}

/// The keys that a command reads or writes, and whether it writes; `None` for one that asks nothing
/// of the store.
fn keys_of(command: &Command) -> Option<(Vec<Name>, bool)> {
    Some(match command {
        Command::Get { names, .. } | Command::Exists(names) => (names.clone(), false),
        Command::Left { name, .. } => (vec![name.clone()], false),
        Command::Scan { .. } => (Vec::new(), false),
        Command::Delete(names) => (names.clone(), true),
        Command::Take(name) | Command::Expire { name, .. } => (vec![name.clone()], true),
        Command::Put { pairs, .. } => (pairs.iter().map(|(name, _)| name.clone()).collect(), true),
        _ => return None,
    })
}

/// Without a hint in the time that it takes at which byte the two differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

fn wants_of(command: Command, rules: &Rules) -> (Shape, Vec<Want>) {
    let get = |name: Name| Want::Operation(Operation::Get { key: name.key() });
    let describe = |name: &Name| Want::Describe(name.key());
    let update = |body| Want::Operation(Operation::Update(body));
    match command {
        Command::Get { names, is_list } => (Shape::Get { is_list }, names.into_iter().map(get).collect()),
        Command::Exists(names) => (Shape::Count, names.iter().map(describe).collect()),
        Command::Left { name, unit } => (Shape::Left { unit }, vec![describe(&name)]),
        Command::Scan { cursor, count, pattern } => {
            let first = cursor.min(rules.blocks.into()) as u32;
            let end = first + (rules.blocks - first).min(count.min(rules.operations as u64) as u32);
            let next = if end == rules.blocks { 0 } else { end.into() };
            (Shape::Names { next, pattern }, (first..end).map(Want::Names).collect())
        }
        Command::Take(name) => (Shape::Get { is_list: false }, vec![update(RequestBody::Take { key: name.key() })]),
        Command::Expire { name, time_to_live } => {
            (Shape::Put { is_number: true }, vec![update(RequestBody::Expire { key: name.key(), time_to_live })])
        }
        Command::Delete(names) => {
            let delete = |name: Name| update(RequestBody::Delete { key: name.key() });
            (Shape::Count, names.into_iter().map(delete).collect())
        }
        Command::Put { pairs, time_to_live, condition, is_number } => {
            let put = |(name, value): (Name, Bytes)| {
                let (key, value) = (name.key(), name.record(value));
                update(RequestBody::Put { key, value, time_to_live, condition })
            };
            (Shape::Put { is_number }, pairs.into_iter().map(put).collect())
        }
        _ => (Shape::Count, Vec::new()),
    }
}

fn reply_of(open: Open, most: usize) -> Reply {
    if open.bytes > most {
        return Reply::Error(format!("ERR the values of the reply have more than {most} bytes: see `limits.reply`"));
    }
    let outcomes: Vec<Outcome<Bytes>> = open.outcomes.into_iter().flatten().collect();
    if let Some(error) = outcomes.iter().find_map(error_of) {
        return Reply::Error(error);
    }
    let value = |(name, outcome): (&Name, Outcome<Bytes>)| match outcome {
        Outcome::Value(Some(record)) | Outcome::Taken { found: Some(record) } => name.value(record),
        _ => None,
    };
    let is_unmet = outcomes.contains(&Outcome::Unmet);
    match open.shape {
        Shape::Get { is_list } => {
            let values = open.names.iter().zip(outcomes).map(value);
            let mut replies = values.map(|value| value.map_or(Reply::Nothing, Reply::Bulk));
            if is_list { Reply::List(replies.collect()) } else { replies.next().unwrap_or(Reply::Nothing) }
        }
        Shape::Names { next, pattern } => walked(next, pattern.as_deref(), outcomes),
        Shape::Left { unit } => match outcomes.first() {
            Some(Outcome::Described(Some(left))) => unit.reply(Some(*left)),
            _ => unit.reply(None),
        },
        Shape::Put { is_number: true } => Reply::Number((!is_unmet).into()),
        Shape::Put { is_number: false } if is_unmet => Reply::Nothing,
        Shape::Put { is_number: false } => Reply::Status("OK"),
        _ => {
            let counts = |outcome: &&Outcome<Bytes>| {
                matches!(outcome, Outcome::Deleted { found: true } | Outcome::Described(Some(_)))
            };
            Reply::Number(outcomes.iter().filter(counts).count() as i64)
        }
    }
}

/// Where the walk goes on, and the names so far that are like the pattern.
fn walked(next: u64, pattern: Option<&GlobMatcher>, outcomes: Vec<Outcome<Bytes>>) -> Reply {
    let names = outcomes.into_iter().flat_map(|outcome| match outcome {
        Outcome::Names(names) => names,
        _ => Vec::new(),
    });
    let is_wanted = |name: &Name| {
        let path = Path::new(OsStr::from_bytes(name.as_bytes()));
        pattern.is_none_or(|pattern| pattern.is_match(path))
    };
    let names = names.filter(is_wanted).map(|name| Reply::Bulk(name.as_bytes().clone())).collect();
    Reply::List(vec![Reply::Bulk(next.to_string().into()), Reply::List(names)])
}

/// What went wrong, if something did.
fn error_of(outcome: &Outcome<Bytes>) -> Option<String> {
    match outcome {
        Outcome::Value(_)
        | Outcome::Taken { .. }
        | Outcome::Described(_)
        | Outcome::Names(_)
        | Outcome::Stored
        | Outcome::Unmet
        | Outcome::Deleted { .. }
        | Outcome::Differs { .. } => None,
        Outcome::Refused(refusal @ (Refusal::Full { .. } | Refusal::SegmentFull { .. })) => {
            Some(format!("OOM command not allowed: {refusal}"))
        }
        Outcome::Refused(Refusal::Recovering) => Some("LOADING the store is recovering".into()),
        Outcome::Refused(refusal) => Some(format!("ERR {refusal}")),
        Outcome::Unknown => Some("ERR the outcome is unknown: the update may have been made, or may yet be".into()),
        Outcome::Unavailable => Some("ERR the value could not be read now".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;
    use base::Span;
    use scalio::{Left, Lifetime};

    const REPLY: usize = 1000;

    fn rules(password: Option<&'static str>) -> Rules {
        Rules {
            password: password.map(|text| Bytes::from_static(text.as_bytes())),
            limits: RequestLimits { arguments: 100, bytes: 1 << 20 },
            value_bytes: 2 * REPLY,
            reply_bytes: REPLY,
            operations: 64,
            blocks: 100,
            slow_after: Some(Span::ms(10)),
        }
    }

    struct Desk {
        session: Session,
        rules: Rules,
        asks: Vec<Ask>,
        input: BytesMut,
    }

    impl Desk {
        fn new(password: Option<&'static str>) -> Desk {
            let rules = rules(password);
            Desk { session: Session::new(7, &rules), rules, asks: Vec::new(), input: BytesMut::new() }
        }
        fn say(&mut self, text: &str) -> usize {
            self.input.extend_from_slice(text.as_bytes());
            self.session.take(Time::ms(5), &mut self.input, &self.rules, &mut self.asks)
        }
        fn done(&mut self, at: usize, outcome: Outcome<Bytes>) {
            let Ask { command, part, .. } = self.asks[at];
            self.session.done(Time::ms(5), command, part, outcome);
            self.say("");
        }
        fn told(&mut self) -> String {
            let mut out = Output::default();
            self.session.write(&mut out, usize::MAX, |_| Reply::Number(42));
            String::from_utf8_lossy(&out.bytes()).into_owned()
        }
    }

    fn value(text: &'static str) -> Outcome<Bytes> {
        Outcome::Value(Some(Bytes::from_static(text.as_bytes())))
    }

    #[test]
    fn replies_come_in_the_order_of_commands() {
        let mut desk = Desk::new(None);
        assert_eq!(desk.say("GET a\r\nGET b\r\nPING\r\nDBSIZE\r\n"), 4);
        desk.done(1, value("2"));
        assert_eq!(desk.told(), "");
        desk.done(0, value("1"));
        assert_eq!(desk.told(), "$1\r\n1\r\n$1\r\n2\r\n+PONG\r\n:42\r\n");
        assert!(desk.session.is_idle());
    }

    #[test]
    fn a_command_waits_for_one_that_reads_what_it_writes_or_writes_what_it_reads() {
        for (text, first) in [("SET a 1\r\nGET a\r\n", Outcome::Stored), ("GET a\r\nDEL a\r\n", value("1"))] {
            let mut desk = Desk::new(None);
            desk.say(text);
            assert_eq!(desk.asks.len(), 1, "{text}");
            desk.say("PING\r\n");
            desk.done(0, first);
            assert_eq!(desk.asks.len(), 2, "{text}");
        }
        for text in ["SET a 1\r\nSET a 2\r\n", "GET a\r\nGET a\r\n", "SET a 1\r\nGET b\r\n", "MGET a a\r\n"] {
            let mut desk = Desk::new(None);
            desk.say(text);
            assert_eq!(desk.asks.len(), 2, "{text}");
        }
    }

    #[test]
    fn a_command_is_slow_by_its_last_operation_and_what_asks_nothing_never_is() {
        let slow = |end| {
            let mut desk = Desk::new(None);
            desk.say("PING\r\nMGET a b\r\n");
            let mut done = |part, at| desk.session.done(at, 1, part, Outcome::Value(None));
            assert!(done(1, Time::secs(9)).is_none(), "a part is missing");
            let ended = done(0, end).expect("it was the last one");
            assert_eq!((ended.is_write, ended.took), (false, end - Time::ms(5)));
            ended.slow
        };
        assert_eq!(slow(Time::ms(15) - Span::ps(1)), None);
        let said = ["MGET", "a", "b"].map(|text| Bytes::from_static(text.as_bytes())).to_vec();
        let expected = Slow::new(&Said { arguments: said, at: Time::ms(5) }, Span::ms(10));
        assert_eq!(slow(Time::ms(15)), Some(expected));
    }

    #[test]
    fn a_stranger_learns_nothing_before_the_password() {
        let mut desk = Desk::new(Some("secret"));
        desk.say("GET a\r\nPING\r\nAUTH wrong\r\nHELLO 3\r\nAUTH other secret\r\n");
        assert!(desk.asks.is_empty() && !desk.session.is_known());
        assert_eq!(desk.told().matches("NOAUTH").count(), 3);
        desk.say("HELLO 3 AUTH default secret SETNAME me\r\nCLIENT GETNAME\r\nGET a\r\n");
        assert_eq!(desk.asks.len(), 1);
        let told = desk.told();
        assert!(told.starts_with("%7\r\n") && told.ends_with("$2\r\nme\r\n"), "{told}");
        let mut desk = Desk::new(Some("secret"));
        desk.say(&"AUTH secrets\r\n".repeat(20));
        assert_eq!(desk.told().matches("WRONGPASS").count(), 8);
        assert!(desk.session.is_over());
        assert_eq!(desk.session.fault(), Some("it gave wrong passwords and no right one"));
        let mut desk = Desk::new(Some("secret"));
        desk.say("AUTH wrong\r\nAUTH secret\r\nGET a\r\n");
        assert_eq!(desk.session.fault(), None);
        desk.say("*1\r\n$-1\r\n");
        assert_eq!(desk.session.fault(), Some("it broke the protocol"));
    }

    #[test]
    fn replies_are_made_of_outcomes() {
        for (text, outcomes, reply) in [
            ("SET a 1 NX", vec![Outcome::Unmet], "$-1\r\n"),
            ("SETNX a 1", vec![Outcome::Unmet], ":0\r\n"),
            ("SETNX a 1", vec![Outcome::Stored], ":1\r\n"),
            (
                "DEL a b c",
                vec![
                    Outcome::Deleted { found: true },
                    Outcome::Deleted { found: false },
                    Outcome::Deleted { found: true },
                ],
                ":2\r\n",
            ),
            ("EXISTS a b", vec![Outcome::Described(Some(Left::Ever)), Outcome::Described(None)], ":1\r\n"),
            ("GETDEL a", vec![Outcome::Taken { found: Some(Bytes::from_static(b"12")) }], "$2\r\n12\r\n"),
            ("GETDEL a", vec![Outcome::Taken { found: None }], "$-1\r\n"),
            ("EXPIRE a 5", vec![Outcome::Stored], ":1\r\n"),
            ("PERSIST a", vec![Outcome::Unmet], ":0\r\n"),
            ("EXPIRE a -5", vec![Outcome::Deleted { found: true }], ":1\r\n"),
            ("TTL a", vec![Outcome::Described(None)], ":-2\r\n"),
            ("TTL a", vec![Outcome::Described(Some(Left::Ever))], ":-1\r\n"),
            ("TTL a", vec![Outcome::Described(Some(Left::For(Lifetime(1_999))))], ":1\r\n"),
            ("PTTL a", vec![Outcome::Described(Some(Left::For(Lifetime(1_999))))], ":1999\r\n"),
            ("TYPE a", vec![Outcome::Described(Some(Left::Ever))], "+string\r\n"),
            ("TYPE a", vec![Outcome::Described(None)], "+none\r\n"),
            ("MGET a b", vec![value("1"), Outcome::Value(None)], "*2\r\n$1\r\n1\r\n$-1\r\n"),
            ("MSET a 1 b 2", vec![Outcome::Stored, Outcome::Stored], "+OK\r\n"),
        ] {
            let mut desk = Desk::new(None);
            desk.say(&format!("{text}\r\n"));
            (0..).zip(outcomes).for_each(|(at, outcome)| desk.done(at, outcome));
            assert_eq!(desk.told(), reply, "{text}");
        }
        let mut desk = Desk::new(None);
        desk.say("SET a 1\r\nSET b 1\r\n");
        desk.done(0, Outcome::Refused(Refusal::Full { live: 1, capacity: 2 }));
        desk.done(1, Outcome::Unknown);
        let told = desk.told();
        assert!(told.starts_with("-OOM ") && told.contains("\r\n-ERR the outcome is unknown"), "{told}");
    }

    #[test]
    fn a_walk_asks_for_some_blocks_at_a_time_and_knows_its_end() {
        let blocks = |desk: &Desk| desk.asks.iter().map(|ask| format!("{:?}", ask.want)).collect::<Vec<_>>();
        let mut desk = Desk::new(None);
        desk.say("SCAN 97 COUNT 5\r\n");
        assert_eq!(blocks(&desk), ["Names(97)", "Names(98)", "Names(99)"]);
        let name = |text: &'static str| Name::new(Bytes::from_static(text.as_bytes())).expect("it is short");
        (0..3).for_each(|at| desk.done(at, Outcome::Names(vec![name("a/b"), name("c")])));
        assert!(desk.told().starts_with("*2\r\n$1\r\n0\r\n*6\r\n$3\r\na/b\r\n"));
        let mut desk = Desk::new(None);
        desk.say("SCAN 90 MATCH a*[a-c] COUNT 2\r\n");
        (0..2).for_each(|at| desk.done(at, Outcome::Names(vec![name("a/b"), name("ax"), name("b")])));
        assert_eq!(desk.told(), "*2\r\n$2\r\n92\r\n*2\r\n$3\r\na/b\r\n$3\r\na/b\r\n");
        // Behind the end, and from a number that nobody was given.
        let mut desk = Desk::new(None);
        desk.say("SCAN 100\r\nSCAN 18446744073709551615\r\nSCAN -1\r\nSCAN 0 COUNT 0\r\nSCAN 0 MATCH [\r\n");
        assert!(desk.asks.is_empty());
        let told = desk.told();
        assert!(told.starts_with("*2\r\n$1\r\n0\r\n*0\r\n*2\r\n$1\r\n0\r\n*0\r\n-ERR invalid cursor"), "{told}");
        assert!(told.contains("-ERR syntax error") && told.contains("-ERR the pattern"), "{told}");
        // It waits for what is stored before it.
        let mut desk = Desk::new(None);
        desk.say("SET a 1\r\nSCAN 0 COUNT 1\r\n");
        assert_eq!(desk.asks.len(), 1);
        desk.done(0, Outcome::Stored);
        assert_eq!(desk.asks.len(), 2);
    }

    #[test]
    fn a_value_of_the_greatest_length_is_stored_and_a_longer_one_is_not() {
        let mut desk = Desk::new(None);
        desk.say(&format!("SET k {}\r\nMSET a 1 b {}\r\n", "x".repeat(2 * REPLY), "x".repeat(2 * REPLY + 1)));
        assert_eq!(desk.asks.len(), 1);
        desk.done(0, Outcome::Stored);
        assert_eq!(desk.told(), "+OK\r\n-ERR a value of 2001 bytes, allowed are at most 2000\r\n");
    }

    #[test]
    fn what_it_holds_is_given_back_with_the_replies() {
        let mut desk = Desk::new(None);
        desk.say("SET a 12345\r\nMGET b c d\r\n");
        assert_eq!(desk.session.held(), 5);
        desk.done(0, Outcome::Stored);
        desk.done(1, value("123"));
        assert_eq!(desk.session.held(), 8);
        // Over the limit it holds none of the values, whatever comes behind them.
        desk.done(2, Outcome::Value(Some(Bytes::from(vec![0; REPLY]))));
        assert_eq!(desk.session.held(), 5);
        desk.done(3, value("1234"));
        assert_eq!(desk.session.held(), 5);
        assert!(desk.told().contains("-ERR the values"));
        assert_eq!(desk.session.held(), 0);
    }

    #[test]
    fn operations_under_way_are_bounded_by_the_longest_reply() {
        let limits = Limits { reply: 6_000, ..Limits::default() };
        let rules = |value_bytes_max| Rules::new(&Config { limits, ..Config::default() }, 100, value_bytes_max);
        let counts = [1, 1_000, 3_000, 6_000, 9_000].map(|bytes| rules(bytes).operations);
        assert_eq!(counts, [256, 6, 2, 1, 1]);
        let mut desk = Desk::new(None);
        desk.rules.operations = 2;
        desk.session = Session::new(7, &desk.rules);
        assert_eq!(desk.say("GET a\r\nGET b\r\nGET c\r\n"), 2);
        assert!(desk.session.is_full());
        desk.done(0, value("1"));
        assert_eq!(desk.asks.len(), 3);
    }

    #[test]
    fn a_reply_that_would_be_too_long_is_an_error_and_holds_nothing() {
        let mut desk = Desk::new(None);
        desk.say("MGET a b c\r\n");
        let long = Bytes::from(vec![0; REPLY / 2 + 1]);
        (0..3).for_each(|at| desk.done(at, Outcome::Value(Some(long.clone()))));
        assert!(desk.session.open[0].outcomes.iter().flatten().all(|outcome| *outcome == Outcome::Value(None)));
        assert!(desk.told().starts_with("-ERR the values of the reply"));
    }

    #[test]
    fn broken_bytes_end_the_session_behind_what_came_before() {
        let mut desk = Desk::new(None);
        desk.say("PING\r\n*1\r\n:1\r\nPING\r\n");
        assert_eq!(desk.told(), "+PONG\r\n-ERR Protocol error: expected '$'\r\n");
        assert!(desk.session.is_over());
    }
}
