//! The bytes of a namespace: in memory, nowhere, in a file or block device.

use crate::draft::{PRIVATE, sync_folder_of};
use crate::error::StartError;
use crate::in_use::InUse;
use crate::room::{check_room, next_data, reserve, warn_of_room};
use crate::syncs::Syncs;
use memmap2::{Advice, MmapMut};
use rustix::fs::{FallocateFlags, OFlags, fallocate, fcntl_getfl};
use rustix::io::{ReadWriteFlags, preadv2};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes at addresses. Ranges outside are errors of the kind `UnexpectedEof`. Several threads may
/// use it at a time.
pub trait Storage: Send + Sync {
    /// Returns its size.
    fn bytes(&self) -> u64;
    /// Fills `buffer` from `at` on.
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Returns its bytes, to be sent from where they lie; `None` if they are not in memory. Nothing
    /// changes them meanwhile. With `alone` nobody else reads them either, and the lender writes.
    fn lend(&self, _alone: bool) -> Option<Lender<'_>> {
        None
    }
    /// As [`Self::read`] without waiting. If it would wait, or fails, it returns false, and
    /// `buffer` has any content.
    fn read_cached(&self, _at: u64, _buffer: &mut [u8]) -> bool {
        false
    }
    /// Writes `data` at `at`. It survives a power loss only after a later [`Self::sync`].
    fn write(&self, at: u64, data: &[u8]) -> io::Result<()>;
    /// Zeroes a range; `gives_back` allows to free its room.
    fn zero(&self, at: u64, bytes: u64, gives_back: bool) -> io::Result<()>;
    /// Frees the room of a range. It then reads as zeros or as before.
    fn give_back(&self, at: u64, bytes: u64) -> io::Result<()>;
    /// Returns when all earlier writes would survive a power loss.
    fn sync(&self) -> io::Result<()>;
    /// Returns the same storage for one request, and what ends that request early: with an error,
    /// and nothing that it has not begun is done later. `None` if requests end soon by themselves.
    fn leavable(&self) -> Option<(Arc<dyn Storage>, Leave)> {
        None
    }
    /// Returns the underlying file, for several system calls at a time.
    #[doc(hidden)]
    fn file(&self) -> Option<&DiskFile> {
        None
    }
    /// Resizes it to `bytes`.
    fn resize(&self, bytes: u64) -> io::Result<()>;
}

/// Ends a request whose host has gone.
pub type Leave = Box<dyn FnOnce() + Send>;

/// Lent bytes.
pub enum Lender<'a> {
    /// Of a RAM disk.
    Memory(LentMemory<'a>),
    /// So many zeros.
    Zeros(u64),
}

impl Lender<'_> {
    /// Writes `data` at `at`; `None`: the storage itself has to.
    pub fn write(&mut self, at: u64, data: &[u8]) -> Option<io::Result<()>> {
        match self {
            Lender::Memory(LentMemory::Alone(pieces)) => Some(write_to(pieces, at, data)),
            Lender::Memory(LentMemory::Shared(_)) | Lender::Zeros(_) => None,
        }
    }

    /// Returns `bytes` from `at` on; `None` if they are not contiguous, or beyond the end.
    pub fn bytes(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        match self {
            Lender::Memory(LentMemory::Alone(pieces)) => bytes_of(pieces, at, bytes),
            Lender::Memory(LentMemory::Shared(pieces)) => bytes_of(pieces, at, bytes),
            Lender::Zeros(all) => {
                end_of(at, bytes as u64, *all).ok()?;
                ZEROS.0.get(..bytes)
            }
        }
    }
}

/// All bytes of a RAM disk, which nothing else changes meanwhile.
pub enum LentMemory<'a> {
    /// Others read them too.
    Shared(RwLockReadGuard<'a, Vec<Piece>>),
    /// Nobody else does, and the lender may change them.
    Alone(RwLockWriteGuard<'a, Vec<Piece>>),
}

/// The zeros that an empty disk lends: as many as are lent at a time.
static ZEROS: Zeros = Zeros([0; 16 << 10]);

/// Page-aligned, as the memory of a RAM disk is: the system copies other memory more slowly.
#[repr(align(4096))]
struct Zeros([u8; 16 << 10]);

fn outside() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "outside of the storage")
}

/// The checked end of a range.
fn end_of(at: u64, bytes: u64, limit: u64) -> io::Result<u64> {
    at.checked_add(bytes).filter(|end| *end <= limit).ok_or_else(outside)
}

/// Memory of this process. Pages that were never written take no room.
pub struct Memory {
    pieces: RwLock<Vec<Piece>>,
    /// The system provides all of it at the start.
    prefaults: bool,
}

/// Memory allocated at one time, of which so many bytes are still used.
pub struct Piece {
    memory: MmapMut,
    length: usize,
}

impl Piece {
    /// Zeros that the system provides on first touch, in large pages if it has them: random
    /// accesses would otherwise miss the TLB.
    fn new(length: usize, prefaults: bool) -> io::Result<Piece> {
        let memory = MmapMut::map_anon(length)?;
        // It works without large pages as well.
        let _ = memory.advise(Advice::HugePage);
        if prefaults {
            memory.advise(Advice::PopulateWrite)?;
        }
        Ok(Piece { memory, length })
    }
}

fn length_of(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.length as u64).sum()
}

/// A contiguous range.
fn bytes_of(pieces: &[Piece], at: u64, bytes: usize) -> Option<&[u8]> {
    let mut start = 0;
    for piece in pieces {
        if let Some(from) = at.checked_sub(start).filter(|from| *from < piece.length as u64) {
            let from = from as usize;
            return piece.memory[..piece.length].get(from..from.checked_add(bytes)?);
        }
        start += piece.length as u64;
    }
    None
}

impl Memory {
    /// All zeros.
    pub fn new(bytes: u64) -> io::Result<Memory> {
        Memory::sized(bytes, false)
    }
    /// As [`Self::new`], but the system provides all of it at once, so that no first write waits
    /// for that.
    pub fn prefaulted(bytes: u64) -> io::Result<Memory> {
        Memory::sized(bytes, true)
    }
    fn sized(bytes: u64, prefaults: bool) -> io::Result<Memory> {
        let memory = Memory { pieces: RwLock::default(), prefaults };
        memory.resize(bytes).map(|()| memory)
    }
    fn shared(&self) -> RwLockReadGuard<'_, Vec<Piece>> {
        self.pieces.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn alone(&self) -> RwLockWriteGuard<'_, Vec<Piece>> {
        self.pieces.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place in a piece of `length` bytes from `start` on of what a range has there, and how far
/// behind the begin of the range that is. `start` moves on to the next piece.
fn part_of(start: &mut u64, length: usize, range: &Range<u64>) -> Option<(Range<usize>, usize)> {
    let begin = std::mem::replace(start, *start + length as u64);
    let part = range.start.max(begin)..range.end.min(*start);
    let place = |at: u64| (at - begin) as usize;
    (part.start < part.end).then(|| (place(part.start)..place(part.end), (part.start - range.start) as usize))
}

fn read_from(pieces: &[Piece], at: u64, buffer: &mut [u8]) -> io::Result<()> {
    let range = at..end_of(at, buffer.len() as u64, length_of(pieces))?;
    let mut start = 0;
    for piece in pieces {
        if let Some((place, from)) = part_of(&mut start, piece.length, &range) {
            buffer[from..from + place.len()].copy_from_slice(&piece.memory[place]);
        }
    }
    Ok(())
}

/// Calls `work` on the bytes of a range, in order: on all of them, or on several parts if the
/// memory has grown. The offset of a part counts from `at`.
fn with(pieces: &mut [Piece], at: u64, bytes: usize, mut work: impl FnMut(usize, &mut [u8])) -> io::Result<()> {
    let range = at..end_of(at, bytes as u64, length_of(pieces))?;
    let mut start = 0;
    for piece in pieces {
        if let Some((place, from)) = part_of(&mut start, piece.length, &range) {
            work(from, &mut piece.memory[place]);
        }
    }
    Ok(())
}

fn write_to(pieces: &mut [Piece], at: u64, data: &[u8]) -> io::Result<()> {
    with(pieces, at, data.len(), |from, there| {
        there.copy_from_slice(&data[from..from + there.len()]);
    })
}

impl Storage for Memory {
    fn bytes(&self) -> u64 {
        length_of(&self.shared())
    }
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        read_from(&self.shared(), at, buffer)
    }
    fn lend(&self, alone: bool) -> Option<Lender<'_>> {
        Some(Lender::Memory(match alone {
            true => LentMemory::Alone(self.alone()),
            false => LentMemory::Shared(self.shared()),
        }))
    }
    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        write_to(&mut self.alone(), at, data)
    }
    fn zero(&self, at: u64, bytes: u64, _: bool) -> io::Result<()> {
        let length = usize::try_from(bytes).map_err(|_| outside())?;
        with(&mut self.alone(), at, length, |_, there| there.fill(0))
    }
    fn give_back(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.zero(at, bytes, true)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    /// Growing adds a piece: nothing is moved, and untouched pages stay so. Bytes that were cut off
    /// are never seen again.
    fn resize(&self, bytes: u64) -> io::Result<()> {
        let mut pieces = self.alone();
        if let Some(missing) = bytes.checked_sub(length_of(&pieces)).filter(|missing| *missing > 0) {
            let missing = usize::try_from(missing).map_err(|_| io::ErrorKind::OutOfMemory)?;
            pieces.push(Piece::new(missing, self.prefaults)?);
            return Ok(());
        }
        let mut left = bytes;
        for piece in pieces.iter_mut() {
            piece.length = (piece.length as u64).min(left) as usize;
            left -= piece.length as u64;
        }
        pieces.retain(|piece| piece.length > 0);
        Ok(())
    }
}

/// Discards writes, and reads as zeros.
pub struct Nothing {
    bytes: AtomicU64,
}

impl Nothing {
    /// Of a size.
    pub fn new(bytes: u64) -> Nothing {
        Nothing { bytes: AtomicU64::new(bytes) }
    }
    fn check(&self, at: u64, bytes: u64) -> io::Result<()> {
        end_of(at, bytes, self.bytes()).map(drop)
    }
}

impl Storage for Nothing {
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.check(at, buffer.len() as u64)?;
        buffer.fill(0);
        Ok(())
    }
    fn lend(&self, _: bool) -> Option<Lender<'_>> {
        Some(Lender::Zeros(self.bytes()))
    }
    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.check(at, data.len() as u64)
    }
    fn zero(&self, at: u64, bytes: u64, _: bool) -> io::Result<()> {
        self.check(at, bytes)
    }
    fn give_back(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.check(at, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn resize(&self, bytes: u64) -> io::Result<()> {
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// A regular file or a block device, locked exclusively or shared.
pub struct DiskFile {
    path: PathBuf,
    file: File,
    bytes: AtomicU64,
    is_regular: bool,
    is_direct: bool,
    syncs: Syncs,
    luck: Luck,
    /// An open file with its lock, which ends with the last copy of it.
    lock: Arc<File>,
    undo: Mutex<Undo>,
    /// What nobody needs any more is given back.
    gives_back: AtomicBool,
}

/// How to undo the opening of a file.
#[derive(Debug)]
enum Undo {
    Nothing,
    /// It was created.
    Remove,
    /// It had so many bytes.
    Shorten(u64),
}

/// The lock of a file.
pub enum Hold {
    /// Nobody else may open it.
    Alone,
    /// The same, for what has no setting to share it.
    Ever,
    /// Others who share it may open it, too.
    Shared,
    /// By a lock that this process has already.
    As(Arc<File>),
    /// Nobody: another process has the file and changes it, and this one reads along.
    Unlocked,
}

/// Whether to look for data in the page cache: not after a row of misses.
#[derive(Default)]
struct Luck(AtomicU32);

impl Luck {
    /// Misses in a row after which one read of [`Self::REST`] looks.
    const MISSES_MAX: u32 = 16;
    const REST: u32 = 64;

    fn holds(&self) -> bool {
        let misses = self.0.load(Ordering::Relaxed);
        let holds = misses < Self::MISSES_MAX || misses.is_multiple_of(Self::REST);
        if !holds {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        holds
    }

    fn note(&self, was_there: bool) {
        if was_there {
            self.0.store(0, Ordering::Relaxed);
        } else {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Alignment of direct transfers in memory and, on every drive of today, in the file.
const ALIGNMENT: usize = 4096;

impl DiskFile {
    /// Opens `path`, and creates it if it does not exist. A regular file that is shorter than
    /// `size` grows; without `size` it keeps its length.
    pub fn open(path: &Path, size: Option<u64>, direct: bool, read_only: bool) -> Result<DiskFile, StartError> {
        DiskFile::try_open(path, size, direct, read_only, Hold::Ever, &InUse::Refused).inspect(DiskFile::keep)
    }

    /// A file that another process holds, given to this one for reading: it takes no lock.
    ///
    /// # Errors
    /// When its length is not known.
    pub fn view(mut file: File) -> io::Result<DiskFile> {
        let bytes = file.seek(SeekFrom::End(0))?;
        let storage = DiskFile::new(Path::new(""), file, false, Undo::Nothing)?;
        storage.bytes.store(bytes, Ordering::Relaxed);
        Ok(storage)
    }

    /// One whose length is not known yet.
    fn new(path: &Path, file: File, is_direct: bool, undo: Undo) -> io::Result<DiskFile> {
        Ok(DiskFile {
            path: path.into(),
            lock: Arc::new(file.try_clone()?),
            is_regular: file.metadata()?.is_file(),
            file,
            bytes: AtomicU64::new(0),
            is_direct,
            syncs: Syncs::default(),
            luck: Luck::default(),
            undo: Mutex::new(undo),
            gives_back: AtomicBool::new(true),
        })
    }

    /// Its file once more, for [`Self::view`] in another process: it cannot be written, and does
    /// not keep the lock.
    ///
    /// # Errors
    /// When the system does not open it.
    pub fn for_reading(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// As [`Self::open`], but until [`Self::keep`], dropping it undoes that the file was created or
    /// has grown. If another process holds it, and that is only noted, it does not grow.
    pub fn try_open(
        path: &Path,
        size: Option<u64>,
        direct: bool,
        read_only: bool,
        hold: Hold,
        in_use: &InUse,
    ) -> Result<DiskFile, StartError> {
        let fail = |reason: io::Error| StartError::file(path, reason);
        let is_new = !path.exists();
        if is_new && size.is_none() {
            return Err(StartError::file(path, "it is not there; with a `size` it is made"));
        }
        // File systems heed no lock of a device: they claim it, and so does who alone writes it.
        let claims = !read_only && matches!(hold, Hold::Alone | Hold::Ever) && is_device(path);
        let open = |claims| open_or_make(path, is_new && !read_only, direct, read_only, claims);
        let file = claimed(path, claims, in_use, open)?.map_err(|error| explained(path, error, direct))?;
        let kind = file.metadata().map_err(fail)?.file_type();
        let undo = if is_new { Undo::Remove } else { Undo::Nothing };
        let storage = DiskFile::new(path, file, direct, undo).map_err(fail)?;
        if !kind.is_file() && !kind.is_block_device() {
            return Err(StartError::file(path, "neither a regular file nor a block device"));
        }
        let (storage, is_held) = storage.locked(hold, in_use)?;
        storage.settle_size(size, read_only, is_held)?;
        if is_new {
            sync_folder_of(path).map_err(fail)?;
        }
        storage.try_direct()?;
        if storage.is_regular && !read_only {
            warn_of_room(path, &storage.file, storage.bytes()).map_err(fail)?;
        }
        Ok(storage)
    }

    /// Whether it is locked now, too.
    fn locked(mut self, hold: Hold, in_use: &InUse) -> Result<(DiskFile, bool), StartError> {
        let (is_locked, reason) = match hold {
            Hold::Ever => (self.lock.try_lock().is_ok(), "another process has it open"),
            Hold::Alone => (
                self.lock.try_lock().is_ok(),
                "another process has it open as a disk; `shared = true` on both says it is meant",
            ),
            Hold::Shared => (
                self.lock.try_lock_shared().is_ok(),
                "another process has it open as a disk, and does not share it; \
                 `shared = true` on both says it is meant",
            ),
            Hold::As(lock) => {
                self.lock = lock;
                (true, "")
            }
            Hold::Unlocked => return Ok((self, false)),
        };
        if !is_locked {
            in_use.meet(StartError::file(&self.path, reason))?;
        }
        Ok((self, is_locked))
    }

    /// Determines its length, and grows it to `size` if it is locked.
    fn settle_size(&self, size: Option<u64>, read_only: bool, is_held: bool) -> Result<(), StartError> {
        let fail = |reason: String| Err(StartError::file(&self.path, reason));
        let length = (&self.file).seek(SeekFrom::End(0)).map_err(|error| StartError::file(&self.path, error))?;
        let wanted = size.unwrap_or(length);
        if wanted == 0 {
            return fail("it is empty: give a `size`, such as 1GiB, to have it grow to that".into());
        }
        if wanted > length && !self.is_regular {
            return fail(format!("the device has {length} bytes, and {wanted} are wanted"));
        }
        if wanted > length && read_only {
            return fail(format!("it has {length} bytes, {wanted} are wanted, and a read-only disk does not grow"));
        }
        if wanted > length && is_held {
            let mut undo = self.undo.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*undo, Undo::Nothing) {
                *undo = Undo::Shorten(length);
            }
            if let Err(error) = self.file.set_len(wanted).and_then(|()| self.file.sync_all()) {
                return fail(format!("it cannot have {wanted} bytes: {error}"));
            }
        }
        self.bytes.store(wanted, Ordering::Relaxed);
        Ok(())
    }

    /// Keeps a file that was created or has grown.
    pub fn keep(&self) {
        *self.undo.lock().unwrap_or_else(PoisonError::into_inner) = Undo::Nothing;
    }

    /// Undoes that it was created or has grown when it was opened.
    pub fn undo(&self) {
        let mut undo = self.undo.lock().unwrap_or_else(PoisonError::into_inner);
        let undone = match std::mem::replace(&mut *undo, Undo::Nothing) {
            Undo::Nothing => Ok(()),
            Undo::Remove => std::fs::remove_file(&self.path),
            Undo::Shorten(length) => self.file.set_len(length),
        };
        if let Err(error) = undone {
            tracing::warn!(path = %self.path.display(), %error, "it could not be made as it was");
        }
    }

    /// Takes the room of the whole file, and from then on gives nothing back of it. A device has
    /// its own. With `only_checks` it takes none.
    ///
    /// # Errors
    /// When the file system has too little room, or cannot reserve any.
    pub fn reserve(&self, only_checks: bool) -> io::Result<()> {
        if self.is_regular {
            let take = if only_checks { check_room } else { reserve };
            take(&self.file, self.bytes())?;
        }
        self.gives_back.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back what nobody needs from now on, as without [`Self::reserve`].
    pub fn end_reservation(&self) {
        self.gives_back.store(true, Ordering::Relaxed);
    }

    /// As [`next_data`], of this file.
    ///
    /// # Errors
    /// When the system fails.
    pub fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        next_data(&self.file, at)
    }

    /// The length of the file.
    pub fn length(&self) -> io::Result<u64> {
        (&self.file).seek(SeekFrom::End(0))
    }

    /// Truncates a regular file to its former length.
    pub fn shorten(&self, length: u64) -> io::Result<()> {
        if self.is_regular { self.file.set_len(length) } else { Ok(()) }
    }

    /// Returns the lock, for another opening of the same file in this process.
    pub fn lock(&self) -> Arc<File> {
        self.lock.clone()
    }

    /// Makes the lock exclusive or shared.
    pub fn share(&self, is_shared: bool) -> Result<(), StartError> {
        let changed = if is_shared { self.lock.try_lock_shared() } else { self.lock.try_lock() };
        changed.map_err(|_| StartError::file(&self.path, "another process serves it too, so that it stays shared"))
    }

    /// Returns the system's metadata.
    pub fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.file.metadata()
    }

    /// Direct transfers need blocks that the medium supports: checked now, not by the first host.
    fn try_direct(&self) -> Result<(), StartError> {
        if !self.is_direct || self.bytes() < 512 {
            return Ok(());
        }
        let tried = self.read(0, &mut [0; 512]);
        tried.map_err(|error| {
            StartError::file(&self.path, format!("direct reads of 512 B fail ({error}); `direct = false` works"))
        })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the same file once more, for syncs of its own: the system tells each opening of a file
    /// once that it could not write.
    ///
    /// # Errors
    /// When the system does not open it.
    pub fn another(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let flags = if self.is_direct { OFlags::DIRECT } else { OFlags::empty() };
        options.read(true).write(!self.is_read_only()?).custom_flags(flags.bits() as i32);
        options.open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    fn is_read_only(&self) -> io::Result<bool> {
        Ok(!fcntl_getfl(&self.file)?.intersects(OFlags::WRONLY | OFlags::RDWR))
    }

    /// Whether transfers have to be aligned.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Checks that `bytes` at `at` may be read or written.
    pub fn check_access(&self, at: u64, bytes: u64, is_read: bool) -> io::Result<()> {
        if !is_read {
            self.check_whole()?;
        }
        self.check(at, bytes)
    }

    /// Notes the outcome of a sync. After a failure nothing more is promised.
    pub fn note_sync(&self, result: io::Result<()>) -> io::Result<()> {
        result.inspect_err(|error| {
            self.syncs.fail();
            tracing::error!(path = %self.path.display(), %error, "sync failed: no more writes are taken until a restart");
        })?;
        self.check_whole()
    }

    fn check(&self, at: u64, bytes: u64) -> io::Result<()> {
        end_of(at, bytes, self.bytes()).map(drop)
    }

    fn check_whole(&self) -> io::Result<()> {
        self.syncs.check()
    }

    fn write_zeros(&self, at: u64, bytes: u64) -> io::Result<()> {
        const CHUNK: usize = 1 << 20;
        let zeros = vec![0; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
        let mut done = 0;
        while done < bytes {
            let length = zeros.len().min((bytes - done) as usize);
            self.write(at + done, &zeros[..length])?;
            done += length as u64;
        }
        Ok(())
    }
}

/// Creates a file exclusively: if another process creates it at the same time, this fails. With
/// `claims` a device that somebody else has claimed is busy.
fn open_or_make(path: &Path, make: bool, direct: bool, read_only: bool, claims: bool) -> io::Result<File> {
    let [direct, claims] = [(direct, OFlags::DIRECT), (claims, OFlags::EXCL)]
        .map(|(is_set, flag)| if is_set { flag } else { OFlags::empty() });
    let mut options = OpenOptions::new();
    options.read(true).write(!read_only).create_new(make).mode(PRIVATE);
    options.custom_flags((direct | claims).bits() as i32);
    options.open(path).inspect_err(|error| {
        // It was created before direct reads turned out to be impossible.
        if make && !direct.is_empty() && error.kind() == io::ErrorKind::InvalidInput {
            let _ = std::fs::remove_file(path);
        }
    })
}

/// What `open` gives; without the claim where somebody else has it, and that is only noted.
fn claimed(
    path: &Path,
    claims: bool,
    in_use: &InUse,
    open: impl Fn(bool) -> io::Result<File>,
) -> Result<io::Result<File>, StartError> {
    match open(claims) {
        Err(error) if claims && error.kind() == io::ErrorKind::ResourceBusy => {
            let reason = "it is mounted, a part of another device, or claimed by another process";
            in_use.meet(StartError::file(path, reason))?;
            Ok(open(false))
        }
        file => Ok(file),
    }
}

fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.file_type().is_block_device())
}

fn explained(path: &Path, error: io::Error, direct: bool) -> StartError {
    match error.kind() {
        io::ErrorKind::InvalidInput if direct => {
            StartError::file(path, "its file system has no direct I/O; `direct = false` works")
        }
        _ => StartError::file(path, error),
    }
}

/// A buffer for `bytes` whose address is a multiple of 4 KiB: the buffer, and where to
/// begin in it.
pub fn aligned(bytes: usize) -> (Vec<u8>, usize) {
    let room = vec![0u8; bytes + ALIGNMENT];
    let start = room.as_ptr().align_offset(ALIGNMENT);
    (room, start)
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        self.undo();
    }
}

impl Storage for DiskFile {
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.check(at, buffer.len() as u64)?;
        if !self.is_direct {
            return self.file.read_exact_at(buffer, at);
        }
        let (mut room, start) = aligned(buffer.len());
        let place = &mut room[start..start + buffer.len()];
        self.file.read_exact_at(place, at)?;
        buffer.copy_from_slice(place);
        Ok(())
    }
    /// Reads from the page cache. Waking a thread would cost several times the copy.
    fn read_cached(&self, at: u64, buffer: &mut [u8]) -> bool {
        let bytes = buffer.len();
        if self.is_direct || self.check(at, bytes as u64).is_err() || !self.luck.holds() {
            return false;
        }
        let got = preadv2(&self.file, &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT);
        self.luck.note(got == Ok(bytes));
        got == Ok(bytes)
    }
    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.check_whole()?;
        self.check(at, data.len() as u64)?;
        if !self.is_direct {
            return self.file.write_all_at(data, at);
        }
        let (mut room, start) = aligned(data.len());
        let place = &mut room[start..start + data.len()];
        place.copy_from_slice(data);
        self.file.write_all_at(place, at)
    }
    fn zero(&self, at: u64, bytes: u64, gives_back: bool) -> io::Result<()> {
        self.check_whole()?;
        self.check(at, bytes)?;
        let gives_back = gives_back && self.gives_back.load(Ordering::Relaxed);
        let how = if gives_back { FallocateFlags::PUNCH_HOLE } else { FallocateFlags::ZERO_RANGE };
        // Not every file system or device supports it; all can be written.
        match fallocate(&self.file, how | FallocateFlags::KEEP_SIZE, at, bytes) {
            Ok(()) => Ok(()),
            Err(_) => self.write_zeros(at, bytes),
        }
    }
    fn give_back(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.check_whole()?;
        self.check(at, bytes)?;
        if !self.gives_back.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Advice: if the medium does not support it, nothing changes.
        let _ = fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, bytes);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.syncs.run(|| self.note_sync(self.file.sync_data()))
    }
    fn file(&self) -> Option<&DiskFile> {
        Some(self)
    }
    fn resize(&self, bytes: u64) -> io::Result<()> {
        if self.is_regular && bytes > self.file.metadata()?.len() {
            if self.gives_back.load(Ordering::Relaxed) {
                self.file.set_len(bytes)?;
                warn_of_room(&self.path, &self.file, bytes)?;
            } else {
                reserve(&self.file, bytes)?;
            }
            self.file.sync_all()?;
        }
        let length = (&self.file).seek(SeekFrom::End(0))?;
        if bytes > length {
            return Err(outside());
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::{free_bytes, hole_bytes};

    fn stores(folder: &Path) -> Vec<Box<dyn Storage>> {
        let file =
            |name: &str, direct| DiskFile::open(&folder.join(name), Some(1 << 20), direct, false).expect("it is made");
        vec![
            Box::new(Memory::new(1 << 20).expect("there is room")),
            Box::new(file("plain", false)),
            Box::new(file("direct", true)),
        ]
    }

    #[test]
    fn a_reserved_file_keeps_its_room_and_none_is_taken_that_is_not_there() {
        const BYTES: u64 = 1 << 20;
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let path = folder.path().join("disk");
        let holes = || hole_bytes(u64::MAX, &std::fs::metadata(&path).expect("it is there"));
        let free = free_bytes(&File::open(folder.path()).expect("it opens")).expect("it tells");
        let file = DiskFile::open(&path, Some(2 * free + (1 << 30)), false, false).expect("it is made");
        let before = holes();
        assert_eq!(file.reserve(false).map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
        assert_eq!(holes(), before, "nothing was taken");
        drop(file);
        std::fs::remove_file(&path).expect("it is there");
        let file = DiskFile::open(&path, Some(BYTES), false, false).expect("it is made");
        file.write(0, &[1; 4096]).and_then(|()| file.zero(0, BYTES, true)).expect("it is written");
        assert!(holes() > u64::MAX - BYTES, "what nobody needs was given back");
        file.reserve(false).expect("there is room");
        assert!(holes() <= u64::MAX - BYTES);
        file.write(0, &[1; 4096]).and_then(|()| file.zero(0, BYTES, true)).expect("it is written");
        file.give_back(0, BYTES).expect("it is advice");
        assert!(holes() <= u64::MAX - BYTES);
        let mut bytes = [1; 4096];
        file.read(0, &mut bytes).expect("it is there");
        assert_eq!(bytes, [0; 4096]);
        file.resize(2 * BYTES).expect("there is room");
        assert!(holes() <= u64::MAX - 2 * BYTES, "what is new is reserved too");
        let error = file.resize(2 * free + (1 << 30)).map_err(|error| error.kind());
        assert_eq!((error, file.bytes()), (Err(io::ErrorKind::StorageFull), 2 * BYTES));
        file.end_reservation();
        file.give_back(0, BYTES).expect("it is advice");
        assert!(holes() > u64::MAX - 2 * BYTES);
    }

    #[test]
    fn what_was_written_is_read_and_the_rest_is_zeros() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        for storage in stores(folder.path()) {
            let data: Vec<u8> = (0..4096).map(|byte| byte as u8 | 1).collect();
            storage.write(8192, &data).expect("it is inside");
            let mut back = vec![7; 3 * 4096];
            storage.read(4096, &mut back).expect("it is inside");
            assert_eq!(back, [vec![0; 4096], data, vec![0; 4096]].concat());
            storage.zero(8192, 4096, true).expect("it is inside");
            storage.read(4096, &mut back).expect("it is inside");
            assert!(back.iter().all(|byte| *byte == 0));
            storage.sync().expect("there is a medium");
        }
    }

    #[test]
    fn the_last_byte_is_inside_and_the_next_is_not() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let mut all = stores(folder.path());
        all.push(Box::new(Nothing::new(1 << 20)));
        for storage in all {
            let last = storage.bytes() - 4096;
            storage.write(last, &[1; 4096]).expect("it is inside");
            for at in [last + 4096, u64::MAX - 4095, u64::MAX] {
                let refused = [
                    storage.write(at, &[1; 4096]),
                    storage.read(at, &mut [0; 4096]),
                    storage.zero(at, 4096, false),
                    storage.give_back(at, 4096),
                ];
                for error in refused.map(|result| result.expect_err("it is outside")) {
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                }
            }
            storage.resize(2 << 20).expect("it grows");
            storage.write(last + 4096, &[1; 4096]).expect("it is inside now");
        }
    }

    #[test]
    fn memory_that_has_grown_is_one_range_and_what_was_cut_off_does_not_come_back() {
        let memory = Memory::new(10).expect("there is room");
        memory.write(0, &[1; 10]).expect("it is inside");
        memory.resize(6).expect("it shrinks");
        assert!(memory.read(6, &mut [0]).is_err(), "it is cut off");
        memory.resize(16).expect("it grows");
        memory.resize(20).expect("it grows");
        let mut back = [9; 20];
        memory.read(0, &mut back).expect("it is inside");
        assert_eq!(back, [[1; 6].as_slice(), &[0; 14]].concat()[..]);
        let data: Vec<u8> = (10..26).collect();
        memory.write(3, &data).expect("it is over all three pieces");
        let mut there = [7; 18];
        memory.read(2, &mut there).expect("it is inside");
        assert_eq!(there, [&[1], data.as_slice(), &[0]].concat()[..]);
        assert_eq!((memory.bytes(), memory.zero(15, 6, false).is_err()), (20, true));
        memory.resize(0).expect("it may be empty");
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn memory_lends_what_lies_in_one_piece_and_an_empty_disk_zeros() {
        let memory = Memory::new(8).expect("there is room");
        memory.resize(20).expect("it grows");
        memory.write(0, &(0..20).collect::<Vec<u8>>()).expect("it is inside");
        let lendable = [(0, 8), (7, 1), (8, 12), (19, 1)];
        let refused = [(7, 2), (0, 9), (19, 2), (20, 1), (u64::MAX, 1), (0, usize::MAX)];
        for (at, bytes) in lendable {
            let lent = memory.lend(true).expect("it is memory");
            let there = lent.bytes(at, bytes).expect("it is in one piece");
            assert_eq!((there.len(), u64::from(there[0])), (bytes, at));
        }
        for (at, bytes) in refused {
            assert!(memory.lend(true).is_some_and(|lent| lent.bytes(at, bytes).is_none()));
        }
        let nothing = Nothing::new(1 << 20);
        let zeros = nothing.lend(true).expect("it has zeros");
        assert!(zeros.bytes((1 << 20) - 16384, 16384).is_some());
        assert!(zeros.bytes((1 << 20) - 4096, 4097).is_none());
        assert!(zeros.bytes(0, 16385).is_none(), "more than it has zeros");
        assert_eq!(zeros.bytes(5, 4096), Some(&[0; 4096][..]));
    }

    #[test]
    fn holes_are_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = DiskFile::open(&folder.path().join("file"), Some(16 << 20), false, false).expect("it is made");
        assert_eq!(file.next_data(0).expect("it can be asked"), None);
        file.write(8 << 20, &[1; 4096]).expect("there is room");
        let data = file.next_data(4096).expect("it can be asked").expect("there are data");
        // A file system without holes has data everywhere.
        assert!(data == 8 << 20 || data == 4096, "{data}");
        assert_eq!(file.next_data((8 << 20) + 5).expect("it can be asked"), Some((8 << 20) + 5));
    }

    #[test]
    fn a_file_belongs_to_one_target_alone_and_keeps_its_data() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk");
        let absent = DiskFile::open(&path, None, false, false).err().expect("it is not there").to_string();
        assert!(absent.ends_with("it is not there; with a `size` it is made"), "{absent}");
        let first = DiskFile::open(&path, Some(8192), false, false).expect("it is made");
        first.write(0, b"kept").expect("it is inside");
        let second = DiskFile::open(&path, None, false, false).err().expect("it is taken").to_string();
        assert!(second.contains("another process"), "{second}");
        drop(first);
        let again = DiskFile::open(&path, None, false, false).expect("it is free again");
        let mut back = [0; 4];
        again.read(0, &mut back).expect("it is inside");
        assert_eq!((&back, again.bytes()), (b"kept", 8192));
    }

    #[test]
    fn an_image_that_appears_meanwhile_is_another_s_and_one_that_was_made_for_nothing_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk");
        std::fs::write(&path, b"another's").expect("it is made");
        // It was missing a moment ago.
        let refused = open_or_make(&path, true, false, false, false).expect_err("it is there");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).expect("it is there"), b"another's");
        let new = folder.path().join("new");
        let refused = DiskFile::open(&new, Some(u64::MAX), false, false).err().expect("it is too large").to_string();
        assert!(refused.contains("it cannot have"), "{refused}");
        assert!(!new.exists() && path.exists());
    }

    #[test]
    fn a_check_leaves_an_image_that_another_has_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk");
        let first = DiskFile::open(&path, Some(8192), false, false).expect("it is made");
        let in_use = InUse::noted();
        let checked = |size| DiskFile::try_open(&path, size, false, false, Hold::Alone, &in_use);
        let larger = checked(Some(16384)).expect("it is noted");
        assert_eq!((larger.bytes(), first.length().expect("it is there")), (16384, 8192));
        assert_eq!(checked(None).expect("it is noted").bytes(), 8192);
        assert_eq!(in_use.into_all().len(), 2);
        drop(first);
        let free = InUse::noted();
        drop(DiskFile::try_open(&path, Some(16384), false, false, Hold::Alone, &free).expect("it is free"));
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), 8192, "what has grown is cut off again");
        assert!(free.into_all().is_empty());
    }

    /// Resident memory of this process, MiB.
    fn resident_mib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is told");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") >> 10
    }

    #[test]
    fn a_disk_with_prefault_holds_its_memory_from_the_start() {
        let before = resident_mib();
        let lazy = Memory::new(256 << 20).expect("there is room");
        assert!(resident_mib() < before + 128, "what nobody has touched takes no room");
        let ready = Memory::prefaulted(256 << 20).expect("there is room");
        assert!(resident_mib() >= before + 240, "all of it is there");
        drop(lazy);
        let mut back = [1; 512];
        ready.read((256 << 20) - 512, &mut back).expect("it is inside");
        assert_eq!(back, [0; 512]);
    }

    #[test]
    fn what_lies_in_the_page_cache_is_read_without_waiting_and_nothing_else_is() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let disk = DiskFile::open(&folder.path().join("disk"), Some(1 << 20), false, false).expect("it is made");
        disk.write(4096, &[7; 8192]).expect("it is inside");
        let mut tried = [0; 512];
        let mut room = [IoSliceMut::new(&mut tried)];
        if preadv2(&disk.file, &mut room, 4096, ReadWriteFlags::NOWAIT).is_err() {
            return println!("SKIPPED: this file system does not read without waiting");
        }
        let mut room = [0; 4096];
        assert!(disk.read_cached(8192, &mut room));
        assert_eq!(room, [7; 4096]);
        assert!(!disk.read_cached((1 << 20) - 512, &mut room), "a part of it is outside");
        assert!(!disk.read_cached(u64::MAX, &mut room));
        let direct = DiskFile::open(&folder.path().join("direct"), Some(1 << 20), true, false).expect("it is made");
        assert!(!direct.read_cached(0, &mut room));
    }

    #[test]
    fn data_that_are_never_in_the_cache_are_looked_for_rarely_and_often_again_once_they_are() {
        let luck = Luck::default();
        let looks = |times: usize, is_there: bool| {
            (0..times)
                .filter(|_| {
                    let holds = luck.holds();
                    if holds {
                        luck.note(is_there);
                    }
                    holds
                })
                .count()
        };
        assert_eq!(looks(16, false), 16);
        assert_eq!(looks(640, false), 10);
        assert!(looks(65, true) >= 1);
        assert_eq!(looks(100, true), 100);
    }
}
