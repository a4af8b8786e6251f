//! The journal of a program of a store: what came in, when, and what it decided, without values.
//!
//! The document in front ([`runtime::journal`]) is a [`Beginning`]. An entry is a kind (one byte)
//! and:
//!
//! | kind | content |
//! | --- | --- |
//! | 1 turn | time since the turn before, in nanoseconds: the program's time until the next turn |
//! | 2 input | wait, a [`ClientIn`] or a [`ServerIn`] |
//! | 3 wake-up | wait |
//! | 4 decision | a [`ClientOut`] or a [`ServerOut`] |
//! | 5 JBOF met | wait, its [`Welcome`] without the seal: the client begins anew |
//! | 6 JBOF lost | wait: there is no client until one is met |
//! | 7 time learnt | wait, the JBOF's time in picoseconds |
//! | 8 door gone | wait, its name: the helper forgets it |
//! | 9 helper begins | wait, its [`ServerConfig`], what it [knows](Kept) |
//! | 10 rest | wait: all inputs of the turn are dealt with |
//! | 11 orderly end | length, a JSON document of the program's counters |
//!
//! Decisions follow what caused them. A wait ends when the program gets the input, which may be
//! later than the beginning of its turn. Of values there are the lengths. Keys are as the store has
//! them: short names, and digests of long ones.

mod codec;

use crate::config::Journal;
use crate::frames::Welcome;
use base::Time;
pub use codec::{Put, Take};
use runtime::clock::Clock;
use runtime::error::StartError;
use runtime::journal::{self, Broken, JournalError, Kind, Source, after, put};
use scalio::{ClientId, ClientIn, ClientOut, Kept, ServerConfig, ServerIn, ServerOut};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const TURN: u8 = 1;
const INPUT: u8 = 2;
const WOKE: u8 = 3;
const DECIDED: u8 = 4;
const MET: u8 = 5;
const LOST: u8 = 6;
const LEARNT: u8 = 7;
const GONE: u8 = 8;
const BEGAN: u8 = 9;
const RESTED: u8 = 10;
const FINISHED: u8 = 11;

/// Which program a journal is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The client of a JBOF in this loop of a store.
    Loop(usize),
    /// The helper of a JBOF.
    Helper,
}

/// What is known of a program before its first input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beginning {
    /// The version of this program.
    pub program: String,
    /// The name of the store or the JBOF in the rack's file.
    pub role: String,
    /// Which of its programs.
    pub part: Part,
    /// The boot of its machine: clocks of one boot agree.
    pub boot: String,
    /// The machine's monotonic clock at the program's time zero, in nanoseconds.
    pub clock_ns: u64,
}

impl Beginning {
    /// The name of its journals: of the role and of the part.
    pub fn name(&self) -> String {
        name_of(&self.role, self.part)
    }
}

fn name_of(role: &str, part: Part) -> String {
    match part {
        Part::Loop(number) => format!("{role}.loop-{number}"),
        Part::Helper => format!("{role}.helper"),
    }
}

/// What a journal holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry<I, O> {
    /// A turn begins.
    Turn {
        /// The program's time in it.
        now: Time,
    },
    /// Something came in.
    Input {
        /// When the program got it.
        at: Time,
        /// The input.
        input: I,
    },
    /// Time passed.
    Woke {
        /// When the program was told so.
        at: Time,
    },
    /// The program decided something.
    Decided(O),
    /// A JBOF is there.
    Met {
        /// Since when.
        at: Time,
        /// What it is like.
        welcome: Welcome,
    },
    /// The JBOF is away.
    Lost {
        /// Since when.
        at: Time,
    },
    /// The JBOF's time is known anew.
    Learnt {
        /// The loop's time.
        at: Time,
        /// The JBOF's time.
        there: Time,
    },
    /// A door is gone.
    Gone {
        /// Since when.
        at: Time,
        /// Its name.
        client: ClientId,
    },
    /// A helper begins.
    Began {
        /// The JBOF's time.
        at: Time,
        /// Its configuration.
        config: ServerConfig,
        /// What it knows.
        kept: Kept,
    },
    /// The turn has ended.
    Rested {
        /// Its end.
        at: Time,
    },
    /// The program ended in order.
    Finished {
        /// Its counters.
        numbers: BTreeMap<String, u64>,
    },
}

impl<I, O> Entry<I, O> {
    /// When it was, where it has a time of its own.
    pub fn at(&self) -> Option<Time> {
        match self {
            Entry::Input { at, .. }
            | Entry::Woke { at }
            | Entry::Met { at, .. }
            | Entry::Lost { at }
            | Entry::Learnt { at, .. }
            | Entry::Gone { at, .. }
            | Entry::Began { at, .. }
            | Entry::Rested { at } => Some(*at),
            Entry::Turn { .. } | Entry::Decided(_) | Entry::Finished { .. } => None,
        }
    }
}

/// An entry without input and decision.
pub type Bare = Entry<(), ()>;
/// An entry of a loop.
pub type ClientEntry<V> = Entry<ClientIn<V>, ClientOut<V>>;
/// An entry of a helper.
pub type ServerEntry<V> = Entry<ServerIn<V>, ServerOut<V>>;

/// Writes the journal of a program.
pub struct Writer {
    file: journal::Writer,
    clock: Clock,
    /// The program's time in the turn that was noted last.
    turn: Time,
    has_turned: bool,
}

impl Writer {
    /// Begins the journal of a part of a role, whose time is `clock`.
    ///
    /// # Errors
    /// When its folder or file cannot be made.
    pub fn begin(place: &Journal, part: Part, clock: Clock) -> Result<Writer, StartError> {
        let beginning = Beginning {
            program: env!("CARGO_PKG_VERSION").into(),
            role: place.role.clone(),
            part,
            boot: journal::boot(),
            clock_ns: journal::clock_ns(clock),
        };
        let text = serde_json::to_vec(&beginning).expect("numbers and names make a text");
        let file = journal::Writer::begin(&place.folder, &beginning.name(), Kind::Stores, &text)?;
        Ok(Writer { file, clock, turn: Time::ZERO, has_turned: false })
    }

    /// The program, whose time is `now`, gets an input.
    pub fn told(&mut self, now: Time, input: &impl Put) {
        self.turn(now);
        self.write(&Entry::<_, ()>::Input { at: self.clock.now(), input });
    }

    /// The program is told that it is `now`.
    pub fn woke(&mut self, now: Time) {
        self.turn(now);
        self.write(&Bare::Woke { at: self.clock.now() });
    }

    /// The program has decided this.
    pub fn decided(&mut self, all: &[impl Put]) {
        all.iter().for_each(|one| self.write(&Entry::<(), _>::Decided(one)));
    }

    /// A turn has ended. It is noted if something came in.
    pub fn rests(&mut self) {
        if std::mem::take(&mut self.has_turned) {
            self.write(&Bare::Rested { at: self.clock.now() });
        }
        self.file.flush_when_due();
    }

    /// Notes something that has no turn.
    pub fn note(&mut self, entry: impl FnOnce(Time) -> Bare) {
        let entry = entry(self.clock.now());
        self.write(&entry);
    }

    fn turn(&mut self, now: Time) {
        if !std::mem::replace(&mut self.has_turned, true) || now != self.turn {
            self.write(&Bare::Turn { now });
        }
    }

    /// Appends an entry as it is.
    pub fn write<I: Put, O: Put>(&mut self, entry: &Entry<I, O>) {
        let file = &mut self.file;
        match entry {
            Entry::Turn { now } => {
                let wait = now.saturating_since(self.turn).as_ps() / 1_000;
                self.turn = self.turn.max(*now);
                file.entry(TURN, |out| put(wait, out));
            }
            Entry::Input { at, input } => file.input(INPUT, *at, |out| input.put(out)),
            Entry::Woke { at } => file.input(WOKE, *at, |_| {}),
            Entry::Decided(decision) => file.entry(DECIDED, |out| decision.put(out)),
            Entry::Met { at, welcome } => file.input(MET, *at, |out| welcome.put(out)),
            Entry::Lost { at } => file.input(LOST, *at, |_| {}),
            Entry::Learnt { at, there } => file.input(LEARNT, *at, |out| there.put(out)),
            Entry::Gone { at, client } => file.input(GONE, *at, |out| client.put(out)),
            Entry::Began { at, config, kept } => file.input(BEGAN, *at, |out| (config, kept).put(out)),
            Entry::Rested { at } => file.input(RESTED, *at, |_| {}),
            Entry::Finished { numbers } => {
                let text = serde_json::to_vec(numbers).expect("numbers and names make a text");
                file.entry(FINISHED, |out| {
                    put(text.len() as u64, out);
                    out.extend_from_slice(&text);
                });
                file.flush();
            }
        }
    }
}

/// Reads a journal.
pub struct Reader {
    source: Source,
    beginning: Beginning,
    turn: Time,
}

impl Reader {
    /// Opens a journal and reads its beginning.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Reader, JournalError> {
        Source::open(path, Kind::Stores).and_then(Reader::of)
    }

    /// Reads a journal of these bytes. `path` is for messages.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Reader, JournalError> {
        Source::of(path, Kind::Stores, Box::new(std::io::Cursor::new(bytes))).and_then(Reader::of)
    }

    fn of((source, document): (Source, Vec<u8>)) -> Result<Reader, JournalError> {
        let beginning = serde_json::from_slice(&document).map_err(|error| source.damaged(&error))?;
        Ok(Reader { source, beginning, turn: Time::ZERO })
    }

    /// What is known of the program.
    pub fn beginning(&self) -> &Beginning {
        &self.beginning
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Whether the last entry was cut off: its process was killed, or its disk was full.
    pub fn is_cut(&self) -> bool {
        self.source.is_cut()
    }

    /// Says that the last entry is of no program.
    pub fn damaged(&self, what: &dyn std::fmt::Display) -> JournalError {
        self.source.damaged(what)
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or holds what no program writes.
    #[expect(clippy::should_implement_trait, reason = "an iterator would have to return its errors as items")]
    pub fn next<I: Take, O: Take>(&mut self) -> Result<Option<Entry<I, O>>, JournalError> {
        let turn = &mut self.turn;
        self.source.next(|kind, source| parse(kind, source, turn))
    }
}

fn parse<I: Take, O: Take>(kind: u8, source: &mut Source, turn: &mut Time) -> Result<Entry<I, O>, Broken> {
    Ok(match kind {
        TURN => {
            *turn = after(*turn, source.number()?)?;
            Entry::Turn { now: *turn }
        }
        INPUT => Entry::Input { at: source.time()?, input: Take::take(source)? },
        WOKE => Entry::Woke { at: source.time()? },
        DECIDED => Entry::Decided(Take::take(source)?),
        MET => Entry::Met { at: source.time()?, welcome: Take::take(source)? },
        LOST => Entry::Lost { at: source.time()? },
        LEARNT => Entry::Learnt { at: source.time()?, there: Take::take(source)? },
        GONE => Entry::Gone { at: source.time()?, client: Take::take(source)? },
        BEGAN => Entry::Began { at: source.time()?, config: Take::take(source)?, kept: Take::take(source)? },
        RESTED => Entry::Rested { at: source.time()? },
        FINISHED => {
            let numbers = serde_json::from_slice(source.document()?);
            Entry::Finished { numbers: numbers.map_err(|error| Broken::Wrong(error.to_string()))? }
        }
        kind => return Err(Broken::Wrong(format!("an entry of kind {kind}"))),
    })
}
