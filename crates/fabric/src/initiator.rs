//! The end that reads and writes memory of another one.

use crate::abi::{self, MsgRma, RmaIov};
use crate::end::{End, Where};
use crate::library::FabricError;
use crate::target::Place;
use libc::{c_int, c_void, iovec};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

const WORD: usize = size_of::<u64>();
/// Words of an entry at least: those of a swap.
const SWAP_WORDS: usize = 3;

/// Names an operation under way.
pub type Entry = usize;

/// What an operation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// What was read.
    Read(Vec<u8>),
    /// It is written, and everybody sees it.
    Written,
    /// What a compare-and-swap found.
    Found(u64),
}

#[derive(Clone, Copy)]
enum Kind {
    Read { bytes: usize },
    Write,
    Swap,
}

/// Buffers of operations, which the provider fills and empties. They are reached through a pointer
/// alone, since the provider has one too.
struct Pool {
    words: NonNull<u64>,
    count: usize,
}

impl Pool {
    #[expect(unsafe_code, reason = "memory that the provider has a pointer to as well")]
    fn new(count: usize) -> Pool {
        let words = Box::into_raw(vec![0u64; count].into_boxed_slice());
        // SAFETY: a box is not at zero.
        Pool { words: unsafe { NonNull::new_unchecked(words.cast()) }, count }
    }
}

impl Drop for Pool {
    #[expect(unsafe_code, reason = "memory that was a box")]
    fn drop(&mut self) {
        // SAFETY: it was a box of so many words, and the provider uses it no more.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.words.as_ptr(), self.count)) });
    }
}

/// An end with a peer whose memory it accesses.
pub struct Initiator {
    end: End,
    peer: u64,
    place: Place,
    pool: Option<Pool>,
    entry_words: usize,
    kinds: Vec<Option<Kind>>,
    free: Vec<Entry>,
    completed: Vec<usize>,
    reads_by_atomics: bool,
    orders_reads: bool,
}

// SAFETY: the pool is this end's alone.
#[expect(unsafe_code, reason = "pointers are no threads'")]
unsafe impl Send for Initiator {}

/// Whether a provider moves bytes with the processor, by calls of the system that may tear a word.
/// Then words are read by atomics, which its program at the other end executes one by one. Cards
/// read aligned words whole.
fn moves_bytes(provider: &str) -> bool {
    let core = provider.split(';').next().unwrap_or(provider);
    ["tcp", "sockets", "udp", "net", "shm"].contains(&core)
}

/// Words that one atomic reads, swaps, and swaps with a mask; 0 where there is none.
#[expect(unsafe_code, reason = "questions to the provider")]
fn atomics(ep: *mut abi::Ep) -> [usize; 3] {
    let [mut read, mut swap, mut bits] = [0; 3];
    // SAFETY: the endpoint is open, and its atomics are there: they were asked for.
    unsafe {
        let atomic = &*(*ep).atomic;
        (atomic.readwritevalid)(ep, abi::UINT64, abi::ATOMIC_READ, &mut read);
        (atomic.compwritevalid)(ep, abi::UINT64, abi::CSWAP, &mut swap);
        (atomic.compwritevalid)(ep, abi::UINT64, abi::MSWAP, &mut bits);
    }
    [read, swap, bits]
}

impl Initiator {
    /// An end that has up to `entries` operations under way, of up to `bytes` each. It has not
    /// reached the other one yet: the first operation does.
    ///
    /// # Errors
    /// When the library is missing or does not have the provider here, or the place is none.
    #[expect(unsafe_code, reason = "buffers that are registered")]
    pub fn open(place: Place, entries: usize, bytes: usize) -> Result<Initiator, FabricError> {
        let mut end = End::open(&place.provider, &Where::There(place.format, &place.address))?;
        let peer = end.insert(&place.address)?;
        let lack = |lack| FabricError::Unable { provider: place.provider.clone(), lack };
        let ep = end.ep.expect("it is open").as_ptr();
        let reads_by_atomics = moves_bytes(&end.provider);
        let [read, swap, bits] = atomics(ep);
        if swap == 0 || bits == 0 {
            return Err(lack("has no compare-and-swap, or none with a mask, of 64 bits"));
        }
        if reads_by_atomics && read < bytes / WORD {
            return Err(lack("does not read a whole block by atomics"));
        }
        let order = if reads_by_atomics { abi::ORDER_ATOMIC_RAR } else { abi::ORDER_RMA_RAR };
        let orders_reads = end.orders_reads(order);
        let entry_words = (bytes / WORD).max(SWAP_WORDS);
        let pool = Pool::new(entries * entry_words);
        if end.wants(abi::MR_LOCAL) {
            let access = abi::READ | abi::WRITE;
            // SAFETY: the pool is dropped after the end is closed.
            unsafe { end.register(pool.words.as_ptr().cast(), pool.count * WORD, access, 0) }?;
        }
        Ok(Initiator {
            end,
            peer,
            place,
            pool: Some(pool),
            entry_words,
            kinds: vec![None; entries],
            free: (0..entries).rev().collect(),
            completed: Vec::new(),
            reads_by_atomics,
            orders_reads,
        })
    }

    /// Whether reads are executed in the order in which they were posted.
    pub fn orders_reads(&self) -> bool {
        self.orders_reads
    }

    /// Operations under way.
    pub fn under_way(&self) -> usize {
        self.kinds.len() - self.free.len()
    }

    /// The first word of an entry.
    #[expect(unsafe_code, reason = "a place in the pool")]
    fn words(&self, entry: Entry) -> *mut u64 {
        let pool = self.pool.as_ref().expect("it is open");
        assert!(entry < self.kinds.len(), "an entry of the pool");
        // SAFETY: the pool has so many words for each entry.
        unsafe { pool.words.as_ptr().add(entry * self.entry_words) }
    }

    /// What the provider calls the pool, where it has to know it.
    #[expect(unsafe_code, reason = "a field of the library")]
    fn descriptor(&self) -> *mut c_void {
        // SAFETY: it is open.
        self.end.mr.map_or(std::ptr::null_mut(), |mr| unsafe { (*mr.as_ptr()).mem_desc })
    }

    /// Posts an operation with `post`, whose entry, buffer and context it is given. `None` where
    /// there is no room for now.
    fn post(
        &mut self,
        kind: Kind,
        what: &'static str,
        post: impl FnOnce(&Initiator, *mut u64, *mut c_void) -> isize,
    ) -> Result<Option<Entry>, FabricError> {
        let Some(entry) = self.free.pop() else { return Ok(None) };
        let number = post(self, self.words(entry), std::ptr::without_provenance_mut(entry));
        if number == 0 {
            self.kinds[entry] = Some(kind);
            return Ok(Some(entry));
        }
        self.free.push(entry);
        if number == -(abi::EAGAIN as isize) {
            return Ok(None);
        }
        Err(self.end.library.failed(what, number as i64))
    }

    /// Reads. `at` and `bytes` are of whole words. `None` where there is no room for now.
    ///
    /// # Errors
    /// When the provider does not take it.
    #[expect(unsafe_code, reason = "functions of the library")]
    pub fn read(&mut self, at: u64, bytes: usize) -> Result<Option<Entry>, FabricError> {
        assert!(bytes.is_multiple_of(WORD) && bytes <= self.entry_words * WORD, "whole words that fit");
        self.post(Kind::Read { bytes }, "reading", |this, buffer, context| {
            let (ep, place) = (this.endpoint(), &this.place);
            let (buffer, at) = (buffer.cast(), place.base.wrapping_add(at));
            // SAFETY: the buffer has room for so many bytes until the operation is done.
            unsafe {
                if this.reads_by_atomics {
                    let read = (*(*ep).atomic).readwrite;
                    let (none, words) = (std::ptr::null_mut(), bytes / WORD);
                    let (desc, kind) = (this.descriptor(), [abi::UINT64, abi::ATOMIC_READ]);
                    read(ep, none, words, none, buffer, desc, this.peer, at, place.key, kind[0], kind[1], context)
                } else {
                    let read = (*(*ep).rma).read;
                    read(ep, buffer, bytes, this.descriptor(), this.peer, at, place.key, context)
                }
            }
        })
    }

    /// Writes whole words. `None` where there is no room for now.
    ///
    /// # Errors
    /// When the provider does not take it.
    #[expect(unsafe_code, reason = "functions of the library, and a buffer of the pool")]
    pub fn write(&mut self, at: u64, data: &[u8]) -> Result<Option<Entry>, FabricError> {
        assert!(data.len() <= self.entry_words * WORD, "bytes that fit");
        self.post(Kind::Write, "writing", |this, buffer, context| {
            let ep = this.endpoint();
            let local = iovec { iov_base: buffer.cast(), iov_len: data.len() };
            let addr = this.place.base.wrapping_add(at);
            let remote = RmaIov { addr, len: data.len(), key: this.place.key };
            let mut descriptor = this.descriptor();
            let message = MsgRma {
                msg_iov: &raw const local,
                desc: &raw mut descriptor,
                iov_count: 1,
                addr: this.peer,
                rma_iov: &raw const remote,
                rma_iov_count: 1,
                context,
                data: 0,
            };
            // SAFETY: the buffer has room for the data, nobody else uses it, and the message lives
            // during the call.
            unsafe {
                std::ptr::copy_nonoverlapping(data.as_ptr(), buffer.cast(), data.len());
                ((*(*ep).rma).writemsg)(ep, &raw const message, abi::COMPLETION | abi::DELIVERY_COMPLETE)
            }
        })
    }

    /// Compares an aligned word and swaps it. `None` where there is no room for now.
    ///
    /// # Errors
    /// When the provider does not take it.
    pub fn swap(&mut self, at: u64, expected: u64, new: u64) -> Result<Option<Entry>, FabricError> {
        self.compare(Kind::Swap, at, abi::CSWAP, [expected, new])
    }

    /// Replaces the bits of an aligned word that `mask` has. `None` where there is no room for now.
    ///
    /// # Errors
    /// When the provider does not take it.
    pub fn set_bits(&mut self, at: u64, mask: u64, bits: u64) -> Result<Option<Entry>, FabricError> {
        self.compare(Kind::Write, at, abi::MSWAP, [mask, bits])
    }

    /// A comparing atomic, with what is compared and what is stored.
    #[expect(unsafe_code, reason = "functions of the library, and a buffer of the pool")]
    fn compare(
        &mut self,
        kind: Kind,
        at: u64,
        operation: c_int,
        [compared, stored]: [u64; 2],
    ) -> Result<Option<Entry>, FabricError> {
        self.post(kind, "swapping", |this, buffer, context| {
            let (ep, desc) = (this.endpoint(), this.descriptor());
            let (at, key) = (this.place.base.wrapping_add(at), this.place.key);
            // SAFETY: an entry has three words at least: what is found, compared, and stored.
            unsafe {
                let [found, of_compared, of_stored] = [0, 1, 2].map(|word| buffer.add(word));
                of_compared.write(compared);
                of_stored.write(stored);
                let [stored, compared]: [*const c_void; 2] = [of_stored.cast(), of_compared.cast()];
                let (call, found, word) = ((*(*ep).atomic).compwrite, found.cast(), abi::UINT64);
                call(ep, stored, 1, desc, compared, desc, found, desc, this.peer, at, key, word, operation, context)
            }
        })
    }

    fn endpoint(&self) -> *mut abi::Ep {
        self.end.ep.expect("it is open").as_ptr()
    }

    /// Has the provider work, and appends what is done.
    ///
    /// # Errors
    /// When an operation has failed. What else is under way will not be known: this end is of no
    /// more use.
    pub fn take(&mut self, done: &mut Vec<(Entry, Done)>) -> Result<(), FabricError> {
        let mut completed = std::mem::take(&mut self.completed);
        let taken = self.end.take(&mut completed);
        done.extend(completed.drain(..).filter_map(|entry| Some((entry, self.ended(entry)?))));
        self.completed = completed;
        taken
    }

    #[expect(unsafe_code, reason = "a buffer of the pool")]
    fn ended(&mut self, entry: Entry) -> Option<Done> {
        let kind = self.kinds.get_mut(entry)?.take()?;
        self.free.push(entry);
        let words = self.words(entry);
        Some(match kind {
            // SAFETY: the provider has filled so many bytes, and uses them no more.
            Kind::Read { bytes } => Done::Read(unsafe { std::slice::from_raw_parts(words.cast(), bytes) }.to_vec()),
            Kind::Write => Done::Written,
            // SAFETY: it has written what it found there.
            Kind::Swap => Done::Found(unsafe { words.read() }),
        })
    }

    /// Whether a thread may wait for [`Self::fd`]. Asked after all else.
    pub fn may_sleep(&mut self) -> bool {
        self.end.may_sleep()
    }

    /// A file that is readable when there is something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.end.fd()
    }
}

impl Drop for Initiator {
    fn drop(&mut self) {
        let pool = self.pool.take();
        if !self.end.close() {
            // The provider might still use it.
            std::mem::forget(pool);
        }
    }
}
