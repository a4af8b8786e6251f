//! A role's journal: what came in, when, and what the role did about it, without data.
//!
//! A file begins with `RWROLE01`, the length of a JSON document (u32, little-endian) and that
//! document, a [`Beginning`]. Entries follow until the end. An entry is a kind (one byte) and:
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
//!
//! Numbers are LEB128. A wait is the time since the wait before, in nanoseconds. A packet is its
//! length and its datagram without the page of data. Entries 4, 5 and 8 follow what caused
//! them.

use crate::configs;
use base::{NodeId, Span, Time};
use blox::{
    ClientOutcome, ControlState, PAGE_BYTES, Packet, Page, Tag, Value, VssdId, decode_datagram, encode_datagram,
};
use plan::rack::Rack;
use runtime::clock::Clock;
use runtime::error::StartError;
use runtime::metrics::Number;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hash::Hasher;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

/// Name and version, at the beginning.
const MAGIC: [u8; 8] = *b"RWROLE01";
const BUFFER: usize = 1 << 18;
/// Bytes that go to the file together.
const PIECE: usize = 1 << 16;
/// Pieces that may wait for the disk: 64 MiB.
const PIECES: usize = 1_024;
/// What a killed process may lose.
const UNWRITTEN: Span = Span::ms(100);
/// The longest document in a journal: a storage server's has 30 B a written page.
const DOCUMENT_MAX: u64 = 1 << 30;
/// The latest time: 106 days, half of what a [`Time`] can say.
const TIME_MAX_PS: u64 = u64::MAX / 2;
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
    /// The role had done what a wake-up made it do.
    Rested {
        /// Its time by the role's clock.
        at: Time,
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
        matches!(self, Entry::Packet { .. } | Entry::Wakeup { .. } | Entry::Asked { .. })
    }
}

/// The journals of a role by their numbers, in a folder.
fn path_of(folder: &Path, name: &str, number: u32) -> PathBuf {
    folder.join(format!("{name}.{number}.journal"))
}

/// Writes a journal. A thread writes the file: a disk that is busy for seconds must not hold up a
/// role, or others take it for dead. After a failure the role goes on, and its journal ends there.
pub(crate) struct Writer {
    pieces: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    piece: Vec<u8>,
    path: PathBuf,
    at: Time,
    /// When all entries were on their way to the file.
    written: Time,
    has_done: bool,
    entry: Vec<u8>,
    packet: Vec<u8>,
}

impl Writer {
    /// Begins the journal of a role, if the rack's file asks for one.
    ///
    /// # Errors
    /// When its folder or file cannot be made.
    pub fn begin(rack: &Rack, node: NodeId, clock: Clock, state: State) -> Result<Option<Writer>, StartError> {
        let Some(folder) = &rack.journal else { return Ok(None) };
        fs::create_dir_all(folder).map_err(|error| StartError::file(folder, error))?;
        let name = configs::name_of(rack, node);
        let (path, file) = fresh(folder, &name)?;
        let beginning = Beginning {
            program: env!("CARGO_PKG_VERSION").into(),
            rack: configs::version(rack),
            name,
            node: node.0,
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into(),
            clock_ns: monotonic_ns().saturating_sub(clock.now().as_ps() / 1_000),
            state,
        };
        let (entry, packet) = (Vec::new(), Vec::new());
        let (pieces, written) = sync_channel(PIECES);
        let own = path.clone();
        let run = move || write_all(file, &own, &written);
        let thread =
            thread::Builder::new().name("journal".into()).spawn(run).map_err(StartError::system("a thread"))?;
        let (pieces, thread, piece) = (Some(pieces), Some(thread), Vec::with_capacity(PIECE));
        let mut writer =
            Writer { pieces, thread, piece, path, at: Time::ZERO, written: Time::ZERO, has_done: false, entry, packet };
        let text = serde_json::to_vec(&beginning).expect("numbers and names make a text");
        writer.write(&[&MAGIC, &(text.len() as u32).to_le_bytes(), &text]);
        writer.flush();
        Ok(Some(writer))
    }

    /// A packet came in.
    pub fn came(&mut self, at: Time, packet: &Packet) {
        self.input(PACKET, at, |entry, bare| put_packet(packet, bare, entry));
    }

    /// Time passed.
    pub fn woke(&mut self, at: Time) {
        self.input(WAKEUP, at, |_, _| {});
        self.has_done = false;
    }

    /// The role rests, if it has done something since it woke.
    pub fn rests(&mut self, at: impl FnOnce() -> Time) {
        if self.has_done {
            self.input(RESTED, at(), |_, _| {});
        }
        self.has_done = false;
        if self.at.saturating_since(self.written) > UNWRITTEN {
            self.written = self.at;
            self.flush();
        }
    }

    /// A host wants a page.
    pub fn asked(&mut self, at: Time, volume: u32, page: Page, is_write: bool) {
        let numbers = [u64::from(volume), page.0, u64::from(is_write)];
        self.input(ASKED, at, |entry, _| numbers.into_iter().for_each(|number| put(number, entry)));
    }

    /// The role sent a packet.
    pub fn sent(&mut self, to: NodeId, packet: &Packet) {
        self.has_done = true;
        self.entry(SENT, |entry, bare| {
            put(to.0.into(), entry);
            put_packet(packet, bare, entry);
        });
    }

    /// A request ended.
    pub fn ended(&mut self, tag: Tag, end: End) {
        self.entry(ENDED, |entry, _| [tag.0, end as u64].into_iter().for_each(|number| put(number, entry)));
    }

    /// A read has found a page rotten.
    pub fn rotted(&mut self, vssd: VssdId, page: Page, named: Option<Value>) {
        let numbers = [u64::from(vssd.0), page.0, named.map_or(0, |value| value.0)];
        self.entry(ROTTED, |entry, _| numbers.into_iter().for_each(|number| put(number, entry)));
    }

    /// The role ended in order, with these counters.
    pub fn finish(&mut self, numbers: &[Number]) {
        let numbers: BTreeMap<&str, u64> = numbers.iter().map(|number| (number.name, number.value)).collect();
        let text = serde_json::to_vec(&numbers).expect("numbers and names make a text");
        self.entry(FINISHED, |entry, _| {
            put(text.len() as u64, entry);
            entry.extend_from_slice(&text);
        });
        self.flush();
    }

    fn input(&mut self, kind: u8, at: Time, rest: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
        let wait = at.saturating_since(self.at).as_ps() / 1_000;
        self.at = at.max(self.at);
        self.entry(kind, |entry, bare| {
            put(wait, entry);
            rest(entry, bare);
        });
    }

    fn entry(&mut self, kind: u8, rest: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
        let (mut entry, mut bare) = (std::mem::take(&mut self.entry), std::mem::take(&mut self.packet));
        entry.clear();
        entry.push(kind);
        rest(&mut entry, &mut bare);
        self.write(&[&entry]);
        (self.entry, self.packet) = (entry, bare);
    }

    fn write(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.piece.extend_from_slice(part));
        if self.piece.len() >= PIECE {
            self.flush();
        }
    }

    /// Hands what there is to the thread.
    fn flush(&mut self) {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let Some(pieces) = self.pieces.as_ref().filter(|_| !piece.is_empty()) else { return };
        match pieces.try_send(piece) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                tracing::error!(path = %self.path.display(), "the journal ends here: its disk is too slow");
                self.pieces = None;
            }
            // The thread has said why.
            Err(TrySendError::Disconnected(_)) => self.pieces = None,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.flush();
        self.pieces = None;
        // A panic of the thread has been reported where it happened.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Writes pieces of a journal until there are no more.
fn write_all(mut file: File, path: &Path, pieces: &Receiver<Vec<u8>>) {
    for piece in pieces {
        if let Err(error) = file.write_all(&piece) {
            return tracing::error!(path = %path.display(), %error, "the journal ends here: it cannot be written");
        }
    }
}

/// The first file of a role that is not there yet.
fn fresh(folder: &Path, name: &str) -> Result<(PathBuf, File), StartError> {
    for number in 1..=u32::MAX {
        let path = path_of(folder, name, number);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StartError::file(&path, error)),
        }
    }
    Err(StartError::file(folder, "it has as many journals as there can be"))
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
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

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system's reason.
    #[error("{}: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// It is no journal, or a damaged one.
    #[error("{}, byte {at}: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first byte of the entry.
        at: u64,
        /// What is wrong.
        what: String,
    },
}

/// Reads a journal.
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    position: u64,
    at: Time,
    bytes: Vec<u8>,
    is_cut: bool,
    beginning: Beginning,
}

impl Reader {
    /// Opens a journal and reads its beginning.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Reader, JournalError> {
        let wrong = |reason| JournalError::File { path: path.into(), reason };
        let mut file = BufReader::with_capacity(BUFFER, File::open(path).map_err(wrong)?);
        let damaged = |at, what: &str| JournalError::Damaged { path: path.into(), at, what: what.into() };
        let mut head = [0; 12];
        let is_whole = file.read_exact(&mut head).is_ok();
        if !is_whole || head[..8] != MAGIC {
            return Err(damaged(0, "it does not begin as a journal of this version does"));
        }
        let length = u64::from(u32::from_le_bytes([head[8], head[9], head[10], head[11]]));
        let mut text = Vec::new();
        (&mut file).take(length.min(DOCUMENT_MAX)).read_to_end(&mut text).map_err(wrong)?;
        let beginning = serde_json::from_slice(&text).map_err(|error| damaged(12, &error.to_string()))?;
        let position = 12 + length;
        let (path, bytes) = (path.into(), Vec::new());
        Ok(Reader { path, file, position, at: Time::ZERO, bytes, is_cut: false, beginning })
    }

    /// What the role was when it started.
    pub fn beginning(&self) -> &Beginning {
        &self.beginning
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the last entry was cut off: its process was killed, or its disk was full.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or holds what no role writes.
    #[expect(clippy::should_implement_trait, reason = "an iterator would have to return its errors as items")]
    pub fn next(&mut self) -> Result<Option<Entry>, JournalError> {
        let begin = self.position;
        match self.entry() {
            Ok(entry) => Ok(entry),
            Err(Broken::Cut) => {
                self.is_cut = true;
                Ok(None)
            }
            Err(Broken::File(reason)) => Err(JournalError::File { path: self.path.clone(), reason }),
            Err(Broken::Wrong(what)) => Err(JournalError::Damaged { path: self.path.clone(), at: begin, what }),
        }
    }

    fn entry(&mut self) -> Result<Option<Entry>, Broken> {
        if self.is_cut || self.file.fill_buf().map_err(Broken::File)?.is_empty() {
            return Ok(None);
        }
        let kind = self.byte()?;
        let entry = match kind {
            PACKET => Entry::Packet { at: self.time()?, packet: self.packet()? },
            WAKEUP => Entry::Wakeup { at: self.time()? },
            ASKED => {
                let at = self.time()?;
                let (volume, page, is_write) = (self.number32("volume")?, Page(self.number()?), self.number()? == 1);
                Entry::Asked { at, volume, page, is_write }
            }
            SENT => Entry::Sent { to: NodeId(self.number32("node")?), packet: self.packet()? },
            ENDED => {
                let (tag, end) = (Tag(self.number()?), self.number()?);
                let end = End::ALL.get(end as usize).ok_or_else(|| Broken::Wrong(format!("end {end}")))?;
                Entry::Ended { tag, end: *end }
            }
            RESTED => Entry::Rested { at: self.time()? },
            ROTTED => {
                let (vssd, page, named) = (VssdId(self.number32("vSSD")?), Page(self.number()?), self.number()?);
                Entry::Rotted { vssd, page, named: Some(Value(named)).filter(|named| *named != Value(0)) }
            }
            FINISHED => {
                let length = self.number()?;
                let text = self.take(length, DOCUMENT_MAX)?;
                let numbers = serde_json::from_slice(text).map_err(|error| Broken::Wrong(error.to_string()))?;
                Entry::Finished { numbers }
            }
            kind => return Err(Broken::Wrong(format!("an entry of kind {kind}"))),
        };
        Ok(Some(entry))
    }

    fn byte(&mut self) -> Result<u8, Broken> {
        let mut byte = [0];
        self.file.read_exact(&mut byte).map_err(Broken::of)?;
        self.position += 1;
        Ok(byte[0])
    }

    fn number(&mut self) -> Result<u64, Broken> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Broken::Wrong("a number of more than 64 bits".into()))
    }

    fn number32(&mut self, what: &str) -> Result<u32, Broken> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| Broken::Wrong(format!("{what} {number}")))
    }

    fn time(&mut self) -> Result<Time, Broken> {
        let picoseconds = self.number()?.checked_mul(1_000).and_then(|wait| self.at.as_ps().checked_add(wait));
        let known = picoseconds.filter(|picoseconds| *picoseconds <= TIME_MAX_PS);
        self.at = Time::ps(known.ok_or_else(|| Broken::Wrong("a time beyond all journals".into()))?);
        Ok(self.at)
    }

    fn take(&mut self, length: u64, most: u64) -> Result<&[u8], Broken> {
        if length > most {
            return Err(Broken::Wrong(format!("{length} bytes where {most} are the most")));
        }
        self.bytes.resize(length as usize, 0);
        self.file.read_exact(&mut self.bytes).map_err(Broken::of)?;
        self.position += length;
        Ok(&self.bytes)
    }

    fn packet(&mut self) -> Result<Packet, Broken> {
        let said = self.number()?;
        let has_page = said % 2 == 1;
        let bytes = self.take(said / 2, PACKET_MAX)?;
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
}

/// What is wrong with an entry.
enum Broken {
    Cut,
    File(io::Error),
    Wrong(String),
}

impl Broken {
    fn of(error: io::Error) -> Broken {
        if error.kind() == io::ErrorKind::UnexpectedEof { Broken::Cut } else { Broken::File(error) }
    }
}
