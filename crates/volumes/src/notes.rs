//! What a storage server's flash should have of each page, in a file beside the data: the value,
//! and the CRC-32C of the page (Castagnoli et al., IEEE Trans. Commun. 41(6), 1993).
//!
//! A file `vssd-N.notes` has 32 B for each page, little-endian:
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | the page's value |
//! | 8 | the value that it had before |
//! | 4 + 4 | CRC-32C of the data of each |
//! | 4 | CRC-32C of those 24 B and the page's number (8 B) |
//! | 4 | zeros |
//!
//! A note is written before its page, but for a page's first one. A process that is killed in
//! between leaves the page as it was before, and the note says so. A note that does not fit its own
//! checksum, or is not there, says nothing of its page: the page is rotten.

use crate::kept_pages::is_of_the_medium;
use blox::{PAGE_BYTES, Page, Value};
use crc32c::{crc32c, crc32c_append};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const NOTE: usize = 32;
const SUMMED: usize = 24;
/// Notes that are read together: a page of memory.
const PIECE: usize = 128 * NOTE;

/// A value, and the checksum of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub value: Value,
    pub sum: u32,
}

impl Named {
    /// The page that has these bytes.
    pub fn of(value: Value, data: &[u8]) -> Named {
        Named { value, sum: if value == Value::ROTTEN { 0 } else { crc32c(data) } }
    }
    /// A page that was never written.
    pub fn never() -> Named {
        Named::of(Value(0), &[0; PAGE_BYTES as usize])
    }
    /// A page of which nothing is known.
    pub fn rotten() -> Named {
        Named::of(Value::ROTTEN, &[])
    }
}

/// A note: what a page should be, and what it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub now: Named,
    pub before: Named,
}

impl Note {
    fn bytes(&self, page: Page) -> [u8; NOTE] {
        let mut bytes = [0; NOTE];
        bytes[..8].copy_from_slice(&self.now.value.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.before.value.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.now.sum.to_le_bytes());
        bytes[20..SUMMED].copy_from_slice(&self.before.sum.to_le_bytes());
        let own = own_sum(&bytes, page);
        bytes[SUMMED..SUMMED + 4].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; NOTE], page: Page) -> Option<Note> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| Value(u64::from(word(at)) | u64::from(word(at + 4)) << 32);
        let note =
            Note { now: Named { value: long(0), sum: word(16) }, before: Named { value: long(8), sum: word(20) } };
        (word(SUMMED) == own_sum(bytes, page)).then_some(note)
    }
}

fn own_sum(bytes: &[u8; NOTE], page: Page) -> u32 {
    crc32c_append(crc32c(&bytes[..SUMMED]), &page.0.to_le_bytes())
}

/// The file of the notes.
pub(crate) struct Notes(File);

impl Notes {
    /// Opens the notes of a vSSD with so many pages; makes those of one that is new. Returns what
    /// they say too.
    ///
    /// # Errors
    /// When the file cannot be opened or made.
    pub fn open(path: &Path, pages: u64) -> io::Result<(Notes, Vec<Named>)> {
        if !path.exists() {
            make(path, pages)?;
        }
        let notes = Notes(OpenOptions::new().read(true).write(true).open(path)?);
        let named = notes.read_all(pages)?;
        Ok((notes, named))
    }

    fn read_all(&self, pages: u64) -> io::Result<Vec<Named>> {
        let mut all = Vec::with_capacity(pages as usize);
        let mut piece = vec![0; PIECE];
        while (all.len() as u64) < pages {
            let first = all.len() as u64;
            let count = (pages - first).min((PIECE / NOTE) as u64) as usize;
            let length = self.read_piece(first, &mut piece[..count * NOTE])?;
            let (notes, _) = piece[..length].as_chunks();
            let read = (first..).zip(notes).map(|(page, note)| Note::read(note, Page(page)));
            all.extend(read.map(|note| note.map_or(Named::rotten(), |note| note.now)));
            all.resize(first as usize + count, Named::rotten());
        }
        Ok(all)
    }

    /// Reads notes from that of a page on, as far as there are any: returns their bytes.
    fn read_piece(&self, first: u64, piece: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        while length < piece.len() {
            match self.0.read_at(&mut piece[length..], first * NOTE as u64 + length as u64) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_of_the_medium(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }

    /// The note of a page; none if there is no sound one.
    pub fn read(&self, page: Page) -> io::Result<Option<Note>> {
        let mut bytes = [0; NOTE];
        let length = self.read_piece(page.0, &mut bytes)?;
        Ok(Note::read(&bytes, page).filter(|_| length == NOTE))
    }

    pub fn write(&self, page: Page, note: Note) -> io::Result<()> {
        self.0.write_all_at(&note.bytes(page), page.0 * NOTE as u64)
    }

    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Makes the notes of pages that were never written, whole or not at all: a note of zeros does not
/// fit its checksum, as a disk may read so what it has lost. Without a sync: pages whose notes a
/// loss of power takes are rotten.
fn make(path: &Path, pages: u64) -> io::Result<()> {
    let beside = path.with_extension("notes.new");
    let mut file = BufWriter::new(File::create(&beside)?);
    let note = Note { now: Named::never(), before: Named::never() };
    (0..pages).try_for_each(|page| file.write_all(&note.bytes(Page(page))))?;
    file.flush()?;
    drop(file);
    fs::rename(beside, path)
}
