//! A role's journal: what came in, when, and what the role did about it, without data.
//!
//! The document in front ([`runtime::journal`]) is a [`Beginning`]. An entry is a kind (one byte)
//! and:
//!
//! | kind | content |
//! | --- | --- |
//! | 1 packet came | wait, packet |
//! | 2 wake-up | wait |
//! | 3 page asked for | wait, volume, page, 1 for a write |
//! | 4 packet sent | node, packet |
//! | 5 request ended | tag, 0 read, 1 written, 2 refused, 3 unanswered |
//! | 6 orderly end | length, a JSON document of the role's counters |
//! | 7 rest | wait: the role has nothing more to do, after a wake-up that made it do something |
//! | 8 page rotten | vSSD, page, the value that it should have or 0: so the last read of it will end |
//! | 9 packets leave | wait: what was sent since the last such entry is handed to the system |
//! | 10 host gone | wait, tag: nobody waits for this request of a door any more |
//! | 11 processor | 0 before and 1 after what a role does between two sleeps, the time that it ran since the last such entry, the time that it waited for a processor |
//! | 12 machine | how long all processors of the machine were busy so far |
//!
//! A packet is its length and its datagram without the page of data. Entries 4, 5 and 8 follow what
//! caused them.

use crate::configs;
use base::{NodeId, Span, Time};
use blox::{
    ClientOutcome, ControlState, PAGE_BYTES, Packet, Page, Tag, Value, VssdId, decode_datagram, encode_datagram,
};
use plan::rack::Rack;
use runtime::clock::Clock;
use runtime::error::StartError;
pub use runtime::journal::JournalError;
use runtime::journal::{self, Broken, Kind, Source, put};
use runtime::metrics::Number;
use runtime::processor::{self, Had, Processor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::path::Path;

/// The longest packet without its page.
const PACKET_MAX: u64 = 1 << 12;
const PAGE: usize = PAGE_BYTES as usize;
const VALUE: usize = 8;
static NO_DATA: [u8; PAGE] = [0; PAGE];

const PACKET: u8 = 1;
const WAKEUP: u8 = 2;
const ASKED: u8 = 3;
const SENT: u8 = 4;
const ENDED: u8 = 5;
const FINISHED: u8 = 6;
const RESTED: u8 = 7;
const ROTTED: u8 = 8;
const LEFT: u8 = 9;
const HOST_LEFT: u8 = 10;
const PROCESSOR: u8 = 11;
const MACHINE: u8 = 12;

/// How often a journal says how busy its machine is. Ours.
const MACHINE_EVERY: Span = Span::ms(500);

/// What a role was when its journal began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Beginning {
    /// The version of this program.
    pub program: String,
    /// Identifies the rack and all that its file says.
    pub rack: u64,
    /// The role's name.
    pub name: String,
    /// The role's node.
    pub node: u32,
    /// The boot of its machine: clocks of one boot agree.
    pub boot: String,
    /// The machine's monotonic clock at the role's time zero, in nanoseconds.
    pub clock_ns: u64,
    /// Processors of the machine; 0 where that is not known.
    #[serde(default)]
    pub processors: u32,
    /// What the role knew.
    pub state: State,
}

/// What a role knew when it started.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The switch.
    Switch {
        /// The number of its first sign of life.
        hello: u64,
    },
    /// The control plane.
    Control {
        /// What it had decided before.
        state: Option<Box<ControlState>>,
    },
    /// A storage server.
    Storage {
        /// Its place in the rack's file.
        server: usize,
        /// How often it had been started.
        starts: u32,
        /// The vSSDs that it had taken in, with their pages.
        adopted: Vec<(VssdId, u64)>,
        /// Pages and values on its flash, by vSSD.
        values: Vec<(VssdId, Vec<(u64, u64)>)>,
    },
    /// A door.
    Door {
        /// Its place in the rack's file.
        door: usize,
        /// Its first tag, and the number that tells this start from others.
        start: u64,
    },
}

/// How a request of a door ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The page came.
    Read,
    /// The page is written.
    Written,
    /// Every replica refused.
    Refused,
    /// Nobody answered in time.
    Unanswered,
}

impl End {
    const ALL: [End; 4] = [End::Read, End::Written, End::Refused, End::Unanswered];

    pub(crate) fn of(outcome: ClientOutcome) -> End {
        match outcome {
            ClientOutcome::Read(_) => End::Read,
            ClientOutcome::Written => End::Written,
            ClientOutcome::Failed(_) => End::Refused,
            ClientOutcome::Indeterminate | ClientOutcome::Unanswered => End::Unanswered,
        }
    }
}

/// What a journal holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A packet came in.
    Packet {
        /// Its time by the role's clock.
        at: Time,
        /// The packet.
        packet: Packet,
    },
    /// Time passed.
    Wakeup {
        /// Its time by the role's clock.
        at: Time,
    },
    /// A host wants a page.
    Asked {
        /// Its time by the role's clock.
        at: Time,
        /// The volume's place in the rack's file.
        volume: u32,
        /// The page.
        page: Page,
        /// Whether it is to be written.
        is_write: bool,
    },
    /// Nobody waits for a request of a door any more.
    HostLeft {
        /// Its time by the role's clock.
        at: Time,
        /// The request's number.
        tag: Tag,
    },
    /// The role sent a packet.
    Sent {
        /// To whom.
        to: NodeId,
        /// The packet.
        packet: Packet,
    },
    /// A request of a door ended.
    Ended {
        /// Its number.
        tag: Tag,
        /// Its outcome.
        end: End,
    },
    /// A read of the flash has found a page rotten, and will end so.
    Rotted {
        /// The vSSD.
        vssd: VssdId,
        /// The page.
        page: Page,
        /// The value that it should have, if that is known.
        named: Option<Value>,
    },
    /// What the role has sent was handed to the system.
    Left {
        /// When that began, by the role's clock.
        at: Time,
    },
    /// The role had done what a wake-up made it do.
    Rested {
        /// Its time by the role's clock.
        at: Time,
    },
    /// What the role had of processors since the last such entry.
    Processor {
        /// Whether it has done something since: it was asleep, and is now about to begin.
        is_done: bool,
        /// How long it ran, and how long it waited.
        had: Had,
    },
    /// How long all processors of its machine were busy so far.
    Machine {
        /// By all threads, in nanoseconds.
        busy_ns: u64,
    },
    /// The role ended in order.
    Finished {
        /// Its counters.
        numbers: BTreeMap<String, u64>,
    },
}

impl Entry {
    /// Whether it came from outside the role.
    pub fn is_input(&self) -> bool {
        matches!(self, Entry::Packet { .. } | Entry::Wakeup { .. } | Entry::Asked { .. } | Entry::HostLeft { .. })
    }
}

/// Writes a role's journal.
pub(crate) struct Writer {
    file: journal::Writer,
    has_done: bool,
    /// Whether something came in since it slept.
    is_busy: bool,
    /// Of the role's thread, once that runs.
    processor: Option<Processor>,
    /// When it said last how busy its machine is.
    machine_at: Option<Time>,
    packet: Vec<u8>,
}

impl Writer {
    /// Begins the journal of a role, if the rack's file asks for one.
    ///
    /// # Errors
    /// When its folder or file cannot be made.
    pub fn begin(rack: &Rack, node: NodeId, clock: Clock, state: State) -> Result<Option<Writer>, StartError> {
        let Some(folder) = &rack.journal else { return Ok(None) };
        let name = configs::name_of(rack, node);
        let beginning = Beginning {
            program: env!("CARGO_PKG_VERSION").into(),
            rack: configs::version(rack),
            name: name.clone(),
            node: node.0,
            boot: journal::boot(),
            clock_ns: journal::clock_ns(clock),
            processors: processor::count(),
            state,
        };
        let text = serde_json::to_vec(&beginning).expect("numbers and names make a text");
        let file = journal::Writer::begin(folder, &name, Kind::Volumes, &text)?;
        let (has_done, is_busy, processor, machine_at) = (false, false, None, None);
        Ok(Some(Writer { file, has_done, is_busy, processor, machine_at, packet: Vec::new() }))
    }

    /// A packet came in.
    pub fn came(&mut self, at: Time, packet: &Packet) {
        self.begin_to_work();
        let bare = &mut self.packet;
        self.file.input(PACKET, at, |entry| put_packet(packet, bare, entry));
    }

    /// Time passed.
    pub fn woke(&mut self, at: Time) {
        if !self.is_busy {
            self.note_processor(false);
        }
        self.file.input(WAKEUP, at, |_| {});
        self.has_done = false;
        self.note_machine(at);
    }

    /// The role rests, if it has done something since it woke.
    pub fn rests(&mut self, at: impl FnOnce() -> Time) {
        if self.has_done {
            self.file.input(RESTED, at(), |_| {});
        }
        if self.has_done || self.is_busy {
            self.note_processor(true);
        }
        (self.has_done, self.is_busy) = (false, false);
        self.file.flush_when_due();
    }

    fn begin_to_work(&mut self) {
        if !std::mem::replace(&mut self.is_busy, true) {
            self.note_processor(false);
        }
    }

    fn note_processor(&mut self, is_done: bool) {
        let processor = self.processor.get_or_insert_with(Processor::of_this_thread);
        if let Some(Had { ran, waited }) = processor.since() {
            let numbers = [is_done.into(), ran.as_ps() / 1_000, waited.as_ps() / 1_000];
            self.file.entry(PROCESSOR, |entry| numbers.into_iter().for_each(|number| put(number, entry)));
        }
    }

    /// Says how busy the machine is, now and then.
    fn note_machine(&mut self, at: Time) {
        let is_due = self.machine_at.is_none_or(|before| at.saturating_since(before) >= MACHINE_EVERY);
        if let Some(busy_ns) = is_due.then(processor::busy_ns).flatten() {
            self.machine_at = Some(at);
            self.file.entry(MACHINE, |entry| put(busy_ns, entry));
        }
    }

    /// A host wants a page.
    pub fn asked(&mut self, at: Time, volume: u32, page: Page, is_write: bool) {
        self.begin_to_work();
        let numbers = [u64::from(volume), page.0, u64::from(is_write)];
        self.file.input(ASKED, at, |entry| numbers.into_iter().for_each(|number| put(number, entry)));
    }

    /// The host of a request has gone.
    pub fn host_left(&mut self, at: Time, tag: Tag) {
        self.file.input(HOST_LEFT, at, |entry| put(tag.0, entry));
    }

    /// The role sent a packet.
    pub fn sent(&mut self, to: NodeId, packet: &Packet) {
        self.has_done = true;
        let bare = &mut self.packet;
        self.file.entry(SENT, |entry| {
            put(to.0.into(), entry);
            put_packet(packet, bare, entry);
        });
    }

    /// What was sent is handed to the system.
    pub fn left(&mut self, at: Time) {
        self.file.input(LEFT, at, |_| {});
    }

    /// A request ended.
    pub fn ended(&mut self, tag: Tag, end: End) {
        self.file.entry(ENDED, |entry| [tag.0, end as u64].into_iter().for_each(|number| put(number, entry)));
    }

    /// A read has found a page rotten.
    pub fn rotted(&mut self, vssd: VssdId, page: Page, named: Option<Value>) {
        let numbers = [u64::from(vssd.0), page.0, named.map_or(0, |value| value.0)];
        self.file.entry(ROTTED, |entry| numbers.into_iter().for_each(|number| put(number, entry)));
    }

    /// The role ended in order, with these counters.
    pub fn finish(&mut self, numbers: &[Number]) {
        let numbers: BTreeMap<&str, u64> = numbers.iter().map(|number| (number.name, number.value)).collect();
        let text = serde_json::to_vec(&numbers).expect("numbers and names make a text");
        self.file.entry(FINISHED, |entry| {
            put(text.len() as u64, entry);
            entry.extend_from_slice(&text);
        });
        self.file.flush();
    }
}

/// A datagram without its page: the value behind it stays.
fn put_packet(packet: &Packet, bare: &mut Vec<u8>, bytes: &mut Vec<u8>) {
    bare.clear();
    encode_datagram(packet, &NO_DATA, bare);
    let whole = bare.len();
    let page = packet.body.value().map_or(whole..whole, |_| whole - VALUE - PAGE..whole - VALUE);
    put(2 * (whole - page.len()) as u64 + u64::from(!page.is_empty()), bytes);
    bytes.extend_from_slice(&bare[..page.start]);
    bytes.extend_from_slice(&bare[page.end..]);
}

/// Tells packets apart, in short.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printer {
    bare: Vec<u8>,
    bytes: Vec<u8>,
}

impl Printer {
    /// Of two packets that differ, this differs, but for one in 2^64.
    pub fn print(&mut self, packet: &Packet) -> u64 {
        self.bytes.clear();
        put_packet(packet, &mut self.bare, &mut self.bytes);
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(&self.bytes);
        hasher.finish()
    }
}

/// Reads a journal.
pub struct Reader {
    source: Source,
    beginning: Beginning,
}

impl Reader {
    /// Opens a journal and reads its beginning.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Reader, JournalError> {
        Source::open(path, Kind::Volumes).and_then(Reader::of)
    }

    /// Reads a journal of these bytes. `path` is for messages.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Reader, JournalError> {
        Source::of(path, Kind::Volumes, Box::new(std::io::Cursor::new(bytes))).and_then(Reader::of)
    }

    fn of((source, document): (Source, Vec<u8>)) -> Result<Reader, JournalError> {
        let beginning = serde_json::from_slice(&document).map_err(|error| source.damaged(&error))?;
        Ok(Reader { source, beginning })
    }

    /// What the role was when it started.
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

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or holds what no role writes.
    #[expect(clippy::should_implement_trait, reason = "an iterator would have to return its errors as items")]
    pub fn next(&mut self) -> Result<Option<Entry>, JournalError> {
        self.source.next(parse)
    }
}

fn parse(kind: u8, source: &mut Source) -> Result<Entry, Broken> {
    Ok(match kind {
        PACKET => Entry::Packet { at: source.time()?, packet: packet(source)? },
        WAKEUP => Entry::Wakeup { at: source.time()? },
        ASKED => {
            let at = source.time()?;
            let (volume, page) = (source.number32("volume")?, Page(source.number()?));
            Entry::Asked { at, volume, page, is_write: source.number()? == 1 }
        }
        SENT => Entry::Sent { to: NodeId(source.number32("node")?), packet: packet(source)? },
        ENDED => {
            let (tag, end) = (Tag(source.number()?), source.number()?);
            let end = End::ALL.get(end as usize).ok_or_else(|| Broken::Wrong(format!("end {end}")))?;
            Entry::Ended { tag, end: *end }
        }
        RESTED => Entry::Rested { at: source.time()? },
        LEFT => Entry::Left { at: source.time()? },
        PROCESSOR => {
            let (is_done, ran, waited) = (source.number()? == 1, source.span()?, source.span()?);
            Entry::Processor { is_done, had: Had { ran, waited } }
        }
        MACHINE => Entry::Machine { busy_ns: source.number()? },
        HOST_LEFT => Entry::HostLeft { at: source.time()?, tag: Tag(source.number()?) },
        ROTTED => {
            let (vssd, page, named) = (VssdId(source.number32("vSSD")?), Page(source.number()?), source.number()?);
            Entry::Rotted { vssd, page, named: Some(Value(named)).filter(|named| *named != Value(0)) }
        }
        FINISHED => {
            let numbers = serde_json::from_slice(source.document()?);
            Entry::Finished { numbers: numbers.map_err(|error| Broken::Wrong(error.to_string()))? }
        }
        kind => return Err(Broken::Wrong(format!("an entry of kind {kind}"))),
    })
}

fn packet(source: &mut Source) -> Result<Packet, Broken> {
    let said = source.number()?;
    let has_page = said % 2 == 1;
    let bytes = source.take(said / 2, PACKET_MAX)?;
    let decoded = if has_page {
        let Some(split) = bytes.len().checked_sub(VALUE) else {
            return Err(Broken::Wrong("a packet with a page and no value".into()));
        };
        let whole = [&bytes[..split], &NO_DATA, &bytes[split..]].concat();
        decode_datagram(&whole).map(|(packet, _)| packet)
    } else {
        decode_datagram(bytes).map(|(packet, _)| packet)
    };
    decoded.map_err(|error| Broken::Wrong(error.to_string()))
}
