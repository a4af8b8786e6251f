//! Memory that processes of one machine share, as words of 8 B that are accessed atomically.
//!
//! [`Mapped::create`] makes it. Another process gets its file over a Unix socket and calls
//! [`Mapped::open`]. The size is sealed (memfd_create(2)), so no process can take a page away from
//! another, and no access can end in a signal.

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;

const WORD: usize = size_of::<AtomicU64>();
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// Words that are shared. They are zero at first.
#[derive(Debug)]
pub struct Mapped {
    map: MmapRaw,
}

impl Mapped {
    /// Memory of so many words, and the file by which others open it. `name` is for people, in
    /// /proc.
    ///
    /// # Errors
    /// When the system has no memory for it, or no words are wanted.
    pub fn create(name: &str, words: usize) -> io::Result<(Mapped, OwnedFd)> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let bytes = words.checked_mul(WORD).ok_or(io::ErrorKind::OutOfMemory)?;
        ftruncate(&file, bytes as u64)?;
        fcntl_add_seals(&file, SIZE_SEALS | SealFlags::SEAL)?;
        Ok((Mapped::open(&file)?, file))
    }

    /// The memory that another process has made.
    ///
    /// # Errors
    /// When the file is none that [`Self::create`] has made, or cannot be mapped.
    pub fn open(file: impl AsFd) -> io::Result<Mapped> {
        let file = file.as_fd();
        let wrong = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
        if !fcntl_get_seals(file)?.contains(SIZE_SEALS) {
            return Err(wrong("the size of the shared memory is not sealed"));
        }
        let bytes = usize::try_from(fstat(file)?.st_size).unwrap_or(0);
        if bytes == 0 || !bytes.is_multiple_of(WORD) {
            return Err(wrong("the shared memory has no whole words"));
        }
        Ok(Mapped { map: MmapOptions::new().len(bytes).map_raw(&file)? })
    }
}

impl Deref for Mapped {
    type Target = [AtomicU64];

    #[expect(unsafe_code, reason = "the slice of a mapping; nobody else makes references to its bytes")]
    fn deref(&self) -> &[AtomicU64] {
        let first: *const AtomicU64 = self.map.as_ptr().cast();
        // SAFETY: a mapping begins at a page, so words are aligned. It has `len` bytes until it is
        // dropped, for the size of its file is sealed. Every word of any bits is an `AtomicU64`,
        // and other processes change it as such.
        unsafe { std::slice::from_raw_parts(first, self.map.len() / WORD) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn what_one_mapping_writes_another_one_reads() {
        let (one, file) = Mapped::create("test", 3).expect("there is memory");
        let other = Mapped::open(&file).expect("it is there");
        one[2].store(7, SeqCst);
        let seen: Vec<u64> = other.iter().map(|word| word.load(SeqCst)).collect();
        assert_eq!(seen, [0, 0, 7]);
        assert_eq!(other[2].compare_exchange(7, 8, SeqCst, SeqCst), Ok(7));
        assert_eq!(one[2].load(SeqCst), 8);
    }

    #[test]
    fn a_file_whose_size_may_change_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let open = |bytes, seals| {
            let file = memfd_create("test", flags).expect("there is memory");
            ftruncate(&file, bytes).expect("it is ours");
            fcntl_add_seals(&file, seals).expect("it may be sealed");
            Mapped::open(&file).map_err(|error| error.to_string())
        };
        assert!(open(8, SealFlags::GROW).is_err_and(|error| error.contains("not sealed")));
        assert!(open(12, SIZE_SEALS).is_err_and(|error| error.contains("no whole words")));
        assert!(open(0, SIZE_SEALS).is_err());
        assert!(open(16, SIZE_SEALS).is_ok());
        let (_, file) = Mapped::create("test", 1).expect("there is memory");
        assert!(ftruncate(&file, 0).is_err(), "a page could be taken away");
    }
}
