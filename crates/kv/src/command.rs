//! Commands of Redis: from arguments to what they ask of the store.

use crate::protocol::{Reply, Version};
use crate::slowlog::Wanted;
use bytes::Bytes;
use globset::{GlobBuilder, GlobMatcher};
use scalio::{Condition, Left, Lifetime, Name};
use std::borrow::Cow;

/// Longest text of a client that is kept or repeated.
const TEXT_MAX: usize = 128;
/// Seconds that a time to live may be at most: the store counts 2^32 of them, from 1970 on.
const SECONDS_MAX: u64 = u32::MAX as u64;

/// A command.
#[derive(Clone, Debug)]
pub enum Command {
    /// Known at once.
    Reply(Reply),
    /// Known when all commands before it are done.
    Late(Late),
    /// A value, or several as a list.
    Get {
        /// Of these keys.
        names: Vec<Name>,
        /// Whether the reply is a list.
        is_list: bool,
    },
    /// How many are there.
    Exists(Vec<Name>),
    /// How long a key is there.
    Left {
        /// The key.
        name: Name,
        /// In which terms.
        unit: Unit,
    },
    /// Forgets, and says how many there were.
    Delete(Vec<Name>),
    /// Forgets, and answers with what was there.
    Take(Name),
    /// Sets how long a key is there.
    Expire {
        /// The key.
        name: Name,
        /// For so long; `None` is for ever.
        time_to_live: Option<Lifetime>,
    },
    /// The names of some blocks.
    Scan {
        /// The first block.
        cursor: u64,
        /// How many names are wanted, about.
        count: u64,
        /// What they have to be like; `None`: anything.
        pattern: Option<Box<GlobMatcher>>,
    },
    /// Stores.
    Put {
        /// Keys and values.
        pairs: Vec<(Name, Bytes)>,
        /// For so long.
        time_to_live: Option<Lifetime>,
        /// If this is so.
        condition: Condition,
        /// Whether the reply is 1 or 0 in place of OK or nothing.
        is_number: bool,
    },
    /// Proves itself, chooses a version, and takes a name.
    Greet {
        /// The version, if the reply describes the server.
        hello: Option<Option<Version>>,
        /// User and password.
        proof: Option<(Bytes, Bytes)>,
        /// The name.
        name: Option<Bytes>,
    },
    /// The name of this connection.
    MyName,
    /// The number of this connection.
    MyNumber,
    /// Ends the connection after the reply.
    Quit,
}

/// In which terms the life of a key is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Whole seconds, -1 for ever, -2 for a key that is not there.
    Seconds,
    /// The same in milliseconds.
    Milliseconds,
    /// "string" or "none".
    Kind,
}

impl Unit {
    /// What a client is told.
    pub fn reply(self, left: Option<Left>) -> Reply {
        let milliseconds = match left {
            _ if self == Unit::Kind => return Reply::Status(if left.is_some() { "string" } else { "none" }),
            None => return Reply::Number(-2),
            Some(Left::Ever) => return Reply::Number(-1),
            Some(Left::For(Lifetime(milliseconds))) => milliseconds,
        };
        Reply::Number((milliseconds / if self == Unit::Seconds { 1_000 } else { 1 }) as i64)
    }
}

/// What only the host knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// DBSIZE.
    Keys,
    /// INFO.
    Info,
    /// SLOWLOG.
    Slow(Wanted),
}

/// A command that there is: name, arguments (with the name; negative: at least), first key, last
/// key and step as COMMAND reports them.
struct Known(&'static str, i64, i64, i64, i64);

const KNOWN: [Known; 31] = [
    Known("auth", -2, 0, 0, 0),
    Known("client", -2, 0, 0, 0),
    Known("command", -1, 0, 0, 0),
    Known("config", -2, 0, 0, 0),
    Known("dbsize", 1, 0, 0, 0),
    Known("del", -2, 1, -1, 1),
    Known("echo", 2, 0, 0, 0),
    Known("exists", -2, 1, -1, 1),
    Known("expire", 3, 1, 1, 1),
    Known("get", 2, 1, 1, 1),
    Known("getdel", 2, 1, 1, 1),
    Known("hello", -1, 0, 0, 0),
    Known("info", -1, 0, 0, 0),
    Known("mget", -2, 1, -1, 1),
    Known("mset", -3, 1, -1, 2),
    Known("persist", 2, 1, 1, 1),
    Known("pexpire", 3, 1, 1, 1),
    Known("ping", -1, 0, 0, 0),
    Known("psetex", 4, 1, 1, 1),
    Known("pttl", 2, 1, 1, 1),
    Known("quit", -1, 0, 0, 0),
    Known("reset", 1, 0, 0, 0),
    Known("scan", -2, 0, 0, 0),
    Known("select", 2, 0, 0, 0),
    Known("set", -3, 1, 1, 1),
    Known("setex", 4, 1, 1, 1),
    Known("setnx", 3, 1, 1, 1),
    Known("slowlog", -2, 0, 0, 0),
    Known("ttl", 2, 1, 1, 1),
    Known("type", 2, 1, 1, 1),
    Known("unlink", -2, 1, -1, 1),
];

type Parsed = Result<Command, Reply>;

fn error(text: impl Into<String>) -> Reply {
    Reply::Error(text.into())
}
fn syntax() -> Reply {
    error("ERR syntax error")
}
fn shown(bytes: &[u8]) -> String {
    cut(bytes, TEXT_MAX).into_owned()
}
/// The first bytes as text.
fn cut(bytes: &[u8], most: usize) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(most)])
}
fn name_of(bytes: &Bytes) -> Result<Name, Reply> {
    Name::new(bytes.clone()).map_err(|wrong| error(format!("ERR {wrong}")))
}
fn names_of(bytes: &[Bytes]) -> Result<Vec<Name>, Reply> {
    bytes.iter().map(name_of).collect()
}
fn lower(bytes: &[u8]) -> String {
    shown(bytes).to_ascii_lowercase()
}
fn ok() -> Command {
    Command::Reply(Reply::Status("OK"))
}

/// What arguments, the name of the command first, ask for.
pub fn parse(arguments: &[Bytes]) -> Command {
    let Some((name, rest)) = arguments.split_first() else { return ok() };
    let lowered = lower(name);
    let Some(known) = KNOWN.iter().find(|known| known.0 == lowered) else {
        return Command::Reply(unknown(name, rest));
    };
    let count = arguments.len() as i64;
    let fits = if known.1 < 0 { count >= -known.1 } else { count == known.1 };
    let parsed = if fits { of_name(known.0, rest) } else { Err(wrong_count(known.0)) };
    parsed.unwrap_or_else(Command::Reply)
}

fn wrong_count(name: &str) -> Reply {
    error(format!("ERR wrong number of arguments for '{name}' command"))
}

fn unknown(name: &[u8], rest: &[Bytes]) -> Reply {
    let mut arguments = String::new();
    for argument in rest {
        let left = TEXT_MAX.saturating_sub(arguments.len());
        if left == 0 {
            break;
        }
        arguments += &format!("'{}' ", cut(argument, left));
    }
    error(format!("ERR unknown command '{}', with args beginning with: {arguments}", shown(name)))
}

fn of_name(name: &'static str, rest: &[Bytes]) -> Parsed {
    match name {
        "auth" => auth(rest),
        "client" => client(rest),
        "command" => Ok(command(rest)),
        "config" => config(rest),
        "dbsize" => Ok(Command::Late(Late::Keys)),
        "del" | "unlink" => Ok(Command::Delete(names_of(rest)?)),
        "echo" => Ok(Command::Reply(Reply::Bulk(rest[0].clone()))),
        "exists" => Ok(Command::Exists(names_of(rest)?)),
        "expire" => expire(rest, 1_000, name),
        "pexpire" => expire(rest, 1, name),
        "persist" => Ok(Command::Expire { name: name_of(&rest[0])?, time_to_live: None }),
        "getdel" => Ok(Command::Take(name_of(&rest[0])?)),
        "scan" => scan(rest),
        "get" => Ok(Command::Get { names: names_of(rest)?, is_list: false }),
        "hello" => hello(rest),
        "info" => Ok(Command::Late(Late::Info)),
        "mget" => Ok(Command::Get { names: names_of(rest)?, is_list: true }),
        "mset" => mset(rest),
        "ping" => ping(rest),
        "pttl" => left(rest, Unit::Milliseconds),
        "ttl" => left(rest, Unit::Seconds),
        "type" => left(rest, Unit::Kind),
        "quit" => Ok(Command::Quit),
        "select" if rest[0] == b"0"[..] => Ok(ok()),
        "select" if number(&rest[0]).is_ok() => Err(error("ERR DB index is out of range")),
        "set" => set(rest),
        "setex" => {
            put(rest[0].clone(), rest[2].clone(), Some(lifetime(&rest[1], 1_000, name)?), Condition::Always, false)
        }
        "psetex" => put(rest[0].clone(), rest[2].clone(), Some(lifetime(&rest[1], 1, name)?), Condition::Always, false),
        "setnx" => put(rest[0].clone(), rest[1].clone(), None, Condition::Absent, true),
        "slowlog" => slowlog(rest),
        "reset" => Err(error("ERR RESET is not supported: connect anew")),
        _ => Err(error("ERR value is not an integer or out of range")),
    }
}

/// A number as Redis writes it: without a plus sign, and without zeros in front.
fn number(bytes: &[u8]) -> Result<i64, Reply> {
    let text = str::from_utf8(bytes).ok();
    let parsed = text.and_then(|text| text.parse().ok().filter(|number: &i64| number.to_string() == text));
    parsed.ok_or_else(|| error("ERR value is not an integer or out of range"))
}

/// A time to live in units of so many milliseconds.
fn lifetime(bytes: &[u8], milliseconds: u64, command: &str) -> Result<Lifetime, Reply> {
    let wrong = || error(format!("ERR invalid expire time in '{command}' command: 1 ms to {SECONDS_MAX} s"));
    let count = u64::try_from(number(bytes)?).ok().filter(|count| *count > 0).ok_or_else(wrong)?;
    let total = count.checked_mul(milliseconds).filter(|total| *total <= SECONDS_MAX * 1_000).ok_or_else(wrong)?;
    Ok(Lifetime(total))
}

fn put(name: Bytes, value: Bytes, time_to_live: Option<Lifetime>, condition: Condition, is_number: bool) -> Parsed {
    Ok(Command::Put { pairs: vec![(name_of(&name)?, value)], time_to_live, condition, is_number })
}

/// A key that is kept for no time is deleted.
fn expire(rest: &[Bytes], milliseconds: u64, command: &str) -> Parsed {
    let name = name_of(&rest[0])?;
    if number(&rest[1])? <= 0 {
        return Ok(Command::Delete(vec![name]));
    }
    Ok(Command::Expire { name, time_to_live: Some(lifetime(&rest[1], milliseconds, command)?) })
}

fn scan(rest: &[Bytes]) -> Parsed {
    let cursor = str::from_utf8(&rest[0]).ok().and_then(|text| text.parse().ok());
    let cursor = cursor.ok_or_else(|| error("ERR invalid cursor"))?;
    let (mut pattern, mut count) = (None, 10);
    let mut options = rest[1..].iter();
    while let Some(option) = options.next() {
        let value = options.next().ok_or_else(syntax)?;
        match lower(option).as_str() {
            "match" => pattern = Some(Box::new(glob(value)?)),
            "count" => {
                count = u64::try_from(number(value)?).ok().filter(|count| *count > 0).ok_or_else(syntax)?;
            }
            "type" if lower(value) == "string" => {}
            "type" => return Err(error("ERR the only type of SCAN is string")),
            _ => return Err(syntax()),
        }
    }
    Ok(Command::Scan { cursor, count, pattern })
}

/// A pattern of Redis: `*`, `?`, `[a-z]`, `[^a]`, and a backslash.
fn glob(pattern: &[u8]) -> Result<GlobMatcher, Reply> {
    /// Bytes of the longest pattern: what it costs grows with it.
    const PATTERN_MAX: usize = 1_024;
    let wrong = || error("ERR the pattern of SCAN is no glob of at most 1024 bytes in UTF-8");
    let text = str::from_utf8(pattern).ok().filter(|text| text.len() <= PATTERN_MAX).ok_or_else(wrong)?;
    // Braces have no meaning in Redis, and repeated stars none of their own.
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '{' | '}' if !escaped.ends_with('\\') => escaped.extend(['\\', letter]),
            '*' if escaped.ends_with('*') && !escaped.ends_with("\\*") => {}
            _ => escaped.push(letter),
        }
    }
    let built = GlobBuilder::new(&escaped).literal_separator(false).backslash_escape(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|_| wrong())
}

fn left(rest: &[Bytes], unit: Unit) -> Parsed {
    Ok(Command::Left { name: name_of(&rest[0])?, unit })
}

fn set(rest: &[Bytes]) -> Parsed {
    let (mut life, mut condition) = (None, Condition::Always);
    let mut options = rest[2..].iter();
    while let Some(option) = options.next() {
        match lower(option).as_str() {
            "nx" if condition != Condition::Present => condition = Condition::Absent,
            "xx" if condition != Condition::Absent => condition = Condition::Present,
            unit @ ("ex" | "px") => {
                let (count, milliseconds) = (options.next().ok_or_else(syntax)?, if unit == "ex" { 1_000 } else { 1 });
                // The same option again replaces the first one.
                if life.replace((count, milliseconds)).is_some_and(|(_, before)| before != milliseconds) {
                    return Err(syntax());
                }
            }
            other @ ("get" | "keepttl" | "exat" | "pxat") => {
                return Err(error(format!("ERR the option {} of SET is not supported", other.to_uppercase())));
            }
            _ => return Err(syntax()),
        }
    }
    let life = life.map(|(count, milliseconds)| lifetime(count, milliseconds, "set")).transpose()?;
    put(rest[0].clone(), rest[1].clone(), life, condition, false)
}

fn mset(rest: &[Bytes]) -> Parsed {
    if rest.len() % 2 == 1 {
        return Err(wrong_count("mset"));
    }
    let pairs = rest.chunks_exact(2).map(|pair| Ok((name_of(&pair[0])?, pair[1].clone())));
    let pairs = pairs.collect::<Result<_, Reply>>()?;
    Ok(Command::Put { pairs, time_to_live: None, condition: Condition::Always, is_number: false })
}

fn ping(rest: &[Bytes]) -> Parsed {
    match rest {
        [] => Ok(Command::Reply(Reply::Status("PONG"))),
        [text] => Ok(Command::Reply(Reply::Bulk(text.clone()))),
        _ => Err(wrong_count("ping")),
    }
}

fn auth(rest: &[Bytes]) -> Parsed {
    let proof = match rest {
        [password] => (Bytes::from_static(b"default"), password.clone()),
        [user, password] => (user.clone(), password.clone()),
        _ => return Err(syntax()),
    };
    Ok(Command::Greet { hello: None, proof: Some(proof), name: None })
}

fn hello(rest: &[Bytes]) -> Parsed {
    let (mut version, mut proof, mut name) = (None, None, None);
    let mut words = rest.iter();
    if let Some(word) = words.next() {
        version = match &word[..] {
            b"2" => Some(Version::Two),
            b"3" => Some(Version::Three),
            _ if number(word).is_ok() => return Err(error("NOPROTO unsupported protocol version")),
            _ => return Err(error("ERR Protocol version is not an integer or out of range")),
        };
    }
    while let Some(word) = words.next() {
        let wrong = || error(format!("ERR Syntax error in HELLO option '{}'", shown(word)));
        match lower(word).as_str() {
            "auth" => match (words.next(), words.next()) {
                (Some(user), Some(password)) => proof = Some((user.clone(), password.clone())),
                _ => return Err(wrong()),
            },
            "setname" => name = Some(client_name(words.next().ok_or_else(wrong)?)?),
            _ => return Err(wrong()),
        }
    }
    Ok(Command::Greet { hello: Some(version), proof, name })
}

fn client_name(bytes: &Bytes) -> Result<Bytes, Reply> {
    if bytes.len() > TEXT_MAX || !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(error("ERR Client names cannot contain spaces, newlines or special characters."));
    }
    // The request that it is a part of may be long.
    Ok(Bytes::copy_from_slice(bytes))
}

fn client(rest: &[Bytes]) -> Parsed {
    match (lower(&rest[0]).as_str(), &rest[1..]) {
        ("id", []) => Ok(Command::MyNumber),
        ("getname", []) => Ok(Command::MyName),
        ("setname", [name]) => Ok(Command::Greet { hello: None, proof: None, name: Some(client_name(name)?) }),
        ("setinfo", [_, _]) => Ok(ok()),
        _ => Err(unknown_part(&rest[0])),
    }
}

fn slowlog(rest: &[Bytes]) -> Parsed {
    /// Entries of an answer where nothing else is said.
    const LATEST: usize = 10;
    let count = |bytes: &Bytes| match number(bytes)? {
        -1 => Ok(usize::MAX),
        count => usize::try_from(count).map_err(|_| error("ERR count should be greater than or equal to -1")),
    };
    let wanted = match (lower(&rest[0]).as_str(), &rest[1..]) {
        ("get", []) => Wanted::Latest(LATEST),
        ("get", [most]) => Wanted::Latest(count(most)?),
        ("len", []) => Wanted::Count,
        ("reset", []) => Wanted::Reset,
        _ => return Err(unknown_part(&rest[0])),
    };
    Ok(Command::Late(Late::Slow(wanted)))
}

fn unknown_part(word: &[u8]) -> Reply {
    error(format!("ERR unknown subcommand or wrong number of arguments for '{}'", shown(word)))
}

fn config(rest: &[Bytes]) -> Parsed {
    let [get, patterns @ ..] = rest else { return Err(syntax()) };
    if lower(get) != "get" || patterns.is_empty() {
        return Err(unknown_part(get));
    }
    let known = [("appendonly", "yes"), ("databases", "1"), ("save", ""), ("timeout", "0")];
    let wanted = |name: &str| patterns.iter().any(|pattern| lower(pattern) == name || pattern == &b"*"[..]);
    let found = known.into_iter().filter(|(name, _)| wanted(name)).map(|(name, value)| (name, Reply::text(value)));
    Ok(Command::Reply(Reply::Map(found.collect())))
}

fn command(rest: &[Bytes]) -> Command {
    let entry = |known: &Known| {
        let Known(name, count, first, last, step) = *known;
        let numbers = [first, last, step].map(Reply::Number);
        let mut entry = vec![Reply::text(name), Reply::Number(count), Reply::List(Vec::new())];
        entry.extend(numbers);
        Reply::List(entry)
    };
    Command::Reply(match rest.first().map(|word| lower(word)).as_deref() {
        None => Reply::List(KNOWN.iter().map(entry).collect()),
        Some("count") => Reply::Number(KNOWN.len() as i64),
        Some("docs") => Reply::Map(Vec::new()),
        Some(other) => error(format!("ERR unknown subcommand '{other}'")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Command {
        parse(&line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect::<Vec<_>>())
    }
    fn refused(line: &str) -> String {
        match parsed(line) {
            Command::Reply(Reply::Error(text)) => text,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_set_with_options() {
        let Command::Put { pairs, time_to_live, condition, is_number } = parsed("sEt k v NX Ex 5") else { panic!() };
        assert_eq!(pairs[0].1, "v");
        assert_eq!((time_to_live, condition, is_number), (Some(Lifetime::secs(5)), Condition::Absent, false));
        for line in ["set k v NX XX", "set k v EX", "set k v EX 1 PX 1", "set k v what", "set k v EX EX EX"] {
            assert_eq!(refused(line), "ERR syntax error", "{line}");
        }
        assert!(refused("set k v EX 0").starts_with("ERR invalid expire time in 'set' command"));
        assert!(refused("set k v EX 4294967296").starts_with("ERR invalid expire time"));
        assert!(refused("set k v PX 4294967295001").starts_with("ERR invalid expire time"));
        assert!(matches!(parsed("set k v EX 4294967295"), Command::Put { .. }));
        let Command::Put { time_to_live, condition, .. } = parsed("set k v PX 1 XX px 2 xx") else { panic!() };
        assert_eq!((time_to_live, condition), (Some(Lifetime(2)), Condition::Present));
        for number in ["x", "+5", "05", "5 ", "1e3", "9223372036854775808", "-0", ""] {
            let arguments = ["set", "k", "v", "EX", number].map(|word| Bytes::copy_from_slice(word.as_bytes()));
            let Command::Reply(Reply::Error(text)) = parse(&arguments) else { panic!("{number}") };
            assert_eq!(text, "ERR value is not an integer or out of range", "{number}");
        }
        assert!(refused("set k v EX x").starts_with("ERR value is not an integer"));
        assert!(refused("set k v KEEPTTL").contains("KEEPTTL"));
    }

    #[test]
    fn what_is_not_there_is_told_as_redis_does() {
        assert_eq!(refused("foo a b"), "ERR unknown command 'foo', with args beginning with: 'a' 'b' ");
        assert_eq!(refused("get"), "ERR wrong number of arguments for 'get' command");
        assert_eq!(refused("mset a b c"), "ERR wrong number of arguments for 'mset' command");
        assert_eq!(refused("select 1"), "ERR DB index is out of range");
        assert_eq!(refused("hello 4"), "NOPROTO unsupported protocol version");
        assert_eq!(refused("hello x"), "ERR Protocol version is not an integer or out of range");
        assert_eq!(refused("hello 2 setname"), "ERR Syntax error in HELLO option 'setname'");
        // Its name has 128 bytes at most, and so have its arguments before the quotes of the last.
        let (name, first, second) = ("x".repeat(1000), "y".repeat(100), "z".repeat(1000));
        let told = format!("ERR unknown command '{}', with args beginning with: '{first}' ", "x".repeat(128));
        assert_eq!(refused(&format!("{name} {first} {second} more")), format!("{told}'{}' ", "z".repeat(25)));
    }

    #[test]
    fn what_the_slow_log_is_asked_for() {
        let wanted = |line: &str| match parsed(line) {
            Command::Late(Late::Slow(wanted)) => wanted,
            other => panic!("{line}: {other:?}"),
        };
        let lines = ["slowlog get", "SLOWLOG GET 3", "slowlog get -1", "slowlog len", "slowlog RESET"];
        let all = [Wanted::Latest(10), Wanted::Latest(3), Wanted::Latest(usize::MAX), Wanted::Count, Wanted::Reset];
        assert_eq!(lines.map(wanted), all);
        assert_eq!(refused("slowlog get -2"), "ERR count should be greater than or equal to -1");
        assert!(refused("slowlog get x").starts_with("ERR value is not an integer"));
        assert!(refused("slowlog what").starts_with("ERR unknown subcommand"));
    }

    #[test]
    fn commands_are_in_order_so_that_their_list_is_the_same_always() {
        assert!(KNOWN.is_sorted_by(|one, next| one.0 < next.0));
        let Command::Reply(Reply::List(all)) = parsed("command") else { panic!() };
        assert_eq!(all.len(), KNOWN.len());
    }
}
