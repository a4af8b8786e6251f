//! Journals of roles as files: a thread that writes them, numbers as bytes, and what is read back.
//!
//! A file begins with the eight letters of its [`Kind`], the length of a JSON document (u32,
//! little-endian) and that document. Entries follow until the end: a kind (one byte), and what the
//! role says of it. Numbers are LEB128. A wait is the time since the wait before, in nanoseconds.

use crate::clock::Clock;
use crate::error::StartError;
use base::{Span, Time};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

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
/// Letters of a kind.
const LETTERS: usize = 8;

/// Whose journal a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of a role of volumes.
    Volumes,
    /// Of a loop or a JBOF of a store.
    Stores,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Volumes, Kind::Stores];

    /// Name and version, at the beginning.
    pub const fn letters(self) -> [u8; LETTERS] {
        match self {
            Kind::Volumes => *b"RWROLE02",
            Kind::Stores => *b"RWSTOR01",
        }
    }
}

/// The boot of this machine: clocks of one boot agree.
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

/// The machine's monotonic clock at the zero of `clock`, in nanoseconds.
pub fn clock_ns(clock: Clock) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64);
    now_ns.saturating_sub(clock.now().as_ps() / 1_000)
}

/// The journals of a kind in a folder, in no order. A file that begins as no journal does counts as
/// one of every kind: it is damaged.
///
/// # Errors
/// When the folder or a file of it cannot be read.
pub fn paths(folder: &Path, kind: Kind) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "journal") && !is_of_another(&path, kind)? {
            paths.push(path);
        }
    }
    Ok(paths)
}

fn is_of_another(path: &Path, kind: Kind) -> io::Result<bool> {
    let mut letters = [0; LETTERS];
    match File::open(path)?.read_exact(&mut letters) {
        Ok(()) => Ok(Kind::ALL.iter().any(|other| *other != kind && other.letters() == letters)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a journal. A thread writes the file: a disk that is busy for seconds must not hold up a
/// role, or others take it for dead. After a failure the role goes on, and its journal ends there.
pub struct Writer {
    pieces: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    piece: Vec<u8>,
    path: PathBuf,
    at: Time,
    /// When all entries were on their way to the file.
    written: Time,
}

impl Writer {
    /// Begins the next journal of the role `name` in `folder`, with a document. Its owner alone may
    /// read the file.
    ///
    /// # Errors
    /// When its folder, its file or its thread cannot be made.
    pub fn begin(folder: &Path, name: &str, kind: Kind, document: &[u8]) -> Result<Writer, StartError> {
        fs::create_dir_all(folder).map_err(|error| StartError::file(folder, error))?;
        let (path, file) = fresh(folder, name)?;
        let own = path.clone();
        let (pieces, written) = sync_channel(PIECES);
        let run = move || write_all(file, &own, &written);
        let thread =
            thread::Builder::new().name("journal".into()).spawn(run).map_err(StartError::system("a thread"))?;
        let (pieces, thread, piece) = (Some(pieces), Some(thread), Vec::with_capacity(PIECE));
        let mut writer = Writer { pieces, thread, piece, path, at: Time::ZERO, written: Time::ZERO };
        writer.piece.extend_from_slice(&kind.letters());
        writer.piece.extend_from_slice(&(document.len() as u32).to_le_bytes());
        writer.piece.extend_from_slice(document);
        writer.flush();
        Ok(writer)
    }

    /// Appends an entry with a time.
    pub fn input(&mut self, kind: u8, at: Time, rest: impl FnOnce(&mut Vec<u8>)) {
        let wait = at.saturating_since(self.at).as_ps() / 1_000;
        self.at = at.max(self.at);
        self.entry(kind, |entry| {
            put(wait, entry);
            rest(entry);
        });
    }

    /// Appends an entry.
    pub fn entry(&mut self, kind: u8, rest: impl FnOnce(&mut Vec<u8>)) {
        if self.pieces.is_none() {
            return;
        }
        self.piece.push(kind);
        rest(&mut self.piece);
        if self.piece.len() >= PIECE {
            self.flush();
        }
    }

    /// Hands what waits to the thread, if the last time that was noted is late enough.
    pub fn flush_when_due(&mut self) {
        if self.at.saturating_since(self.written) > UNWRITTEN {
            self.written = self.at;
            self.flush();
        }
    }

    /// Hands what there is to the thread.
    pub fn flush(&mut self) {
        if self.piece.is_empty() {
            return;
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let Some(pieces) = &self.pieces else { return };
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
        let path = folder.join(format!("{name}.{number}.journal"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StartError::file(&path, error)),
        }
    }
    Err(StartError::file(folder, "it has as many journals as there can be"))
}

/// Appends a number.
pub fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
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

/// What is wrong with an entry.
#[derive(Debug)]
pub enum Broken {
    /// It ends too early.
    Cut,
    /// The system's reason.
    File(io::Error),
    /// It says what no role writes.
    Wrong(String),
}

impl Broken {
    fn of(error: io::Error) -> Broken {
        if error.kind() == io::ErrorKind::UnexpectedEof { Broken::Cut } else { Broken::File(error) }
    }
}

/// Entries of a journal as bytes.
pub struct Source {
    path: PathBuf,
    file: Box<dyn BufRead>,
    position: u64,
    /// The first byte of the last entry.
    begin: u64,
    at: Time,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Source {
    /// Opens a journal of a kind. Returns its document too.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn open(path: &Path, kind: Kind) -> Result<(Source, Vec<u8>), JournalError> {
        let file = File::open(path).map_err(|reason| JournalError::File { path: path.into(), reason })?;
        Source::of(path, kind, Box::new(BufReader::with_capacity(BUFFER, file)))
    }

    /// A journal that comes from anywhere. `path` is for messages.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn of(path: &Path, kind: Kind, mut file: Box<dyn BufRead>) -> Result<(Source, Vec<u8>), JournalError> {
        let mut head = [0; LETTERS + 4];
        let is_whole = file.read_exact(&mut head).is_ok();
        if !is_whole || head[..LETTERS] != kind.letters() {
            let what = "it does not begin as a journal of this version does".into();
            return Err(JournalError::Damaged { path: path.into(), at: 0, what });
        }
        let length = u64::from(u32::from_le_bytes([head[8], head[9], head[10], head[11]]));
        let mut document = Vec::new();
        let taken = (&mut file).take(length.min(DOCUMENT_MAX)).read_to_end(&mut document);
        taken.map_err(|reason| JournalError::File { path: path.into(), reason })?;
        let position = head.len() as u64 + length;
        let (path, begin, bytes) = (path.into(), (LETTERS + 4) as u64, Vec::new());
        let source = Source { path, file, position, begin, at: Time::ZERO, bytes, is_cut: false };
        Ok((source, document))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says that the last entry is wrong, or the document where none was read.
    pub fn damaged(&self, what: &dyn std::fmt::Display) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), at: self.begin, what: what.to_string() }
    }

    /// Whether the last entry was cut off: its process was killed, or its disk was full.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next entry, which `parse` reads behind its kind; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or holds what no role writes.
    pub fn next<T>(
        &mut self,
        parse: impl FnOnce(u8, &mut Source) -> Result<T, Broken>,
    ) -> Result<Option<T>, JournalError> {
        self.begin = self.position;
        match self.entry(parse) {
            Ok(entry) => Ok(entry),
            Err(Broken::Cut) => {
                self.is_cut = true;
                Ok(None)
            }
            Err(Broken::File(reason)) => Err(JournalError::File { path: self.path.clone(), reason }),
            Err(Broken::Wrong(what)) => Err(self.damaged(&what)),
        }
    }

    fn entry<T>(&mut self, parse: impl FnOnce(u8, &mut Source) -> Result<T, Broken>) -> Result<Option<T>, Broken> {
        if self.is_cut || self.file.fill_buf().map_err(Broken::File)?.is_empty() {
            return Ok(None);
        }
        let kind = self.byte()?;
        parse(kind, self).map(Some)
    }

    /// A byte.
    ///
    /// # Errors
    /// When there is none.
    pub fn byte(&mut self) -> Result<u8, Broken> {
        let mut byte = [0];
        self.file.read_exact(&mut byte).map_err(Broken::of)?;
        self.position += 1;
        Ok(byte[0])
    }

    /// A number.
    ///
    /// # Errors
    /// When there is none, or it has more than 64 bits.
    pub fn number(&mut self) -> Result<u64, Broken> {
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

    /// A number of 32 bits.
    ///
    /// # Errors
    /// When there is none, or it has more bits.
    pub fn number32(&mut self, what: &str) -> Result<u32, Broken> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| Broken::Wrong(format!("{what} {number}")))
    }

    /// A time, by its wait.
    ///
    /// # Errors
    /// When there is none, or it is too late.
    pub fn time(&mut self) -> Result<Time, Broken> {
        let wait = self.number()?;
        self.at = after(self.at, wait)?;
        Ok(self.at)
    }

    /// So many nanoseconds.
    ///
    /// # Errors
    /// When there is no number, or it is too large for a time.
    pub fn span(&mut self) -> Result<Span, Broken> {
        let number = self.number()?;
        after(Time::ZERO, number).map(|end| end.saturating_since(Time::ZERO))
    }

    /// Some bytes, up to `most`.
    ///
    /// # Errors
    /// When there are fewer, or more are wanted.
    pub fn take(&mut self, length: u64, most: u64) -> Result<&[u8], Broken> {
        if length > most {
            return Err(Broken::Wrong(format!("{length} bytes where {most} are the most")));
        }
        // Memory grows with what is there, not with what is said.
        self.bytes.clear();
        let taken = (&mut self.file).take(length).read_to_end(&mut self.bytes).map_err(Broken::File)?;
        if (taken as u64) < length {
            return Err(Broken::Cut);
        }
        self.position += length;
        Ok(&self.bytes)
    }

    /// A JSON document with its length.
    ///
    /// # Errors
    /// When there is none, or it is too long.
    pub fn document(&mut self) -> Result<&[u8], Broken> {
        let length = self.number()?;
        self.take(length, DOCUMENT_MAX)
    }
}

/// The time so many nanoseconds after another one.
///
/// # Errors
/// When no journal is that long.
pub fn after(time: Time, wait_ns: u64) -> Result<Time, Broken> {
    let picoseconds = wait_ns.checked_mul(1_000).and_then(|wait| time.as_ps().checked_add(wait));
    let known = picoseconds.filter(|picoseconds| *picoseconds <= TIME_MAX_PS);
    Ok(Time::ps(known.ok_or_else(|| Broken::Wrong("a time beyond all journals".into()))?))
}
